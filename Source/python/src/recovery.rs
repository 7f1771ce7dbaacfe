//! Recovery of a lost share.

use keyquorum_mpc::{EngineOptions, Recovery as CoreRecovery};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use zeroize::Zeroize;

use crate::errors::engine_error;
use crate::session::{Session, domain_of};

/// One party's part in the recovery of another one's shares.
#[pyclass(module = "keyquorum._engine", frozen)]
pub struct Recovery {
    core: CoreRecovery,
}

#[pymethods]
impl Recovery {
    /// Begins the recovery of the shares of a lost party from those of helpers, in increasing order (`whom`). All parties call this, in the same order as they open engines. `tested`: the caller tests the shares
    /// before they count.
    #[staticmethod]
    #[pyo3(signature = (session, protocol, whom, tested, threshold=None, seed=None))]
    fn begin(
        py: Python<'_>,
        session: &Session,
        protocol: &str,
        whom: (usize, Vec<usize>),
        tested: bool,
        threshold: Option<usize>,
        seed: Option<Vec<u8>>,
    ) -> PyResult<Self> {
        let options = EngineOptions {
            program: String::new(),
            threshold,
            insecure_seed: seed,
        };
        let core = py
            .detach(|| {
                let core = session.core();
                core.recovery(protocol, whom.0, &whom.1, tested, &options)
            })
            .map_err(engine_error)?;
        Ok(Self { core })
    }

    /// The helpers that send something, in the order in which `recovered` takes it.
    #[getter]
    fn senders(&self) -> Vec<usize> {
        self.core.senders()
    }

    /// What we send to the lost party for a vector of which we have these shares. `label`: of the vector, never the same for two vectors.
    fn sent<'py>(
        &self,
        py: Python<'py>,
        domain: &str,
        label: &[u8],
        shares: &[u8],
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let kind = domain_of(domain)?;
        let sent = py
            .detach(|| self.core.sent(kind, label, shares))
            .map_err(engine_error)?;
        Ok(PyByteArray::new(py, &sent))
    }

    /// The shares of a vector of `count` elements from what the senders sent, as share files have them; at the lost party.
    fn recovered<'py>(
        &self,
        py: Python<'py>,
        domain: &str,
        count: usize,
        mut sent: Vec<Vec<u8>>,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let kind = domain_of(domain)?;
        let shares = py.detach(|| self.core.recovered(kind, count, &sent));
        sent.iter_mut().for_each(Zeroize::zeroize);
        Ok(PyByteArray::new(py, &shares.map_err(engine_error)?))
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Recovery>()
}
