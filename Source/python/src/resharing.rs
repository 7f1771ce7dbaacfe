//! Resharing to another committee.

use keyquorum_mpc::{Dealer as CoreDealer, Dealt as CoreDealt, Members};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use zeroize::Zeroize;

use crate::errors::engine_error;
use crate::session::domain_of;

/// Protocol, parties and threshold of a committee.
pub type Shape = (String, usize, usize);

pub fn members(shape: &Shape) -> PyResult<Members> {
    Members::of(&shape.0, shape.1, shape.2).map_err(engine_error)
}

/// Number of dealers that pass a secret on.
#[pyfunction]
fn dealers_needed(shape: Shape) -> PyResult<usize> {
    Ok(members(&shape)?.dealers())
}

/// An old member that passes its summands on.
#[pyclass(module = "keyquorum._engine", frozen)]
pub struct Dealer {
    core: CoreDealer,
}

#[pymethods]
impl Dealer {
    /// Party `party` of the old committee among its `dealers`, in increasing order. `name`: of this resharing.
    #[new]
    fn new(
        old: Shape,
        new: Shape,
        dealers: Vec<usize>,
        party: usize,
        name: &[u8],
    ) -> PyResult<Self> {
        let (old, new) = (members(&old)?, members(&new)?);
        let core = CoreDealer::new(old, new, &dealers, party, name).map_err(engine_error)?;
        Ok(Self { core })
    }

    /// The seeds for a new member.
    fn seeds<'py>(&self, py: Python<'py>, receiver: usize) -> PyResult<Bound<'py, PyByteArray>> {
        let seeds = self.core.seeds(receiver).map_err(engine_error)?;
        Ok(PyByteArray::new(py, &seeds))
    }

    /// What each new member gets for a vector of which we have these shares; empty for one that has seeds alone. `label`: of the vector, never the same for two vectors.
    fn dealt<'py>(
        &self,
        py: Python<'py>,
        domain: &str,
        label: &[u8],
        shares: &[u8],
    ) -> PyResult<Vec<Bound<'py, PyByteArray>>> {
        let kind = domain_of(domain)?;
        let dealt = py
            .detach(|| self.core.dealt(kind, label, shares))
            .map_err(engine_error)?;
        Ok(dealt
            .iter()
            .map(|sent| PyByteArray::new(py, sent))
            .collect())
    }
}

/// A new member with the seeds of all dealers.
#[pyclass(module = "keyquorum._engine", frozen)]
pub struct Dealt {
    core: CoreDealt,
}

#[pymethods]
impl Dealt {
    /// Party `party` of the new committee, with what each dealer sent of its seeds.
    #[new]
    fn new(new: Shape, party: usize, mut seeds: Vec<Vec<u8>>, name: &[u8]) -> PyResult<Self> {
        let core = members(&new)
            .and_then(|new| CoreDealt::new(new, party, &seeds, name).map_err(engine_error));
        seeds.iter_mut().for_each(Zeroize::zeroize);
        Ok(Self { core: core? })
    }

    /// Our shares of a vector of `count` elements, as share files have them, from what each dealer sent.
    fn taken<'py>(
        &self,
        py: Python<'py>,
        domain: &str,
        label: &[u8],
        count: usize,
        mut sent: Vec<Vec<u8>>,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let kind = domain_of(domain)?;
        let shares = py.detach(|| self.core.taken(kind, label, count, &sent));
        sent.iter_mut().for_each(Zeroize::zeroize);
        Ok(PyByteArray::new(py, &shares.map_err(engine_error)?))
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Dealer>()?;
    m.add_class::<Dealt>()?;
    m.add_function(wrap_pyfunction!(dealers_needed, m)?)
}
