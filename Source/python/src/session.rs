//! Sessions.

use std::time::Duration;

use keyquorum_math::DomainKind;
use keyquorum_mpc::{EngineOptions, Session as CoreSession};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::engine::Engine;
use crate::errors::{engine_error, usage};

/// One party's authenticated channels to all others.
#[pyclass(module = "keyquorum._engine", frozen)]
pub struct Session {
    core: CoreSession,
}

impl Session {
    pub fn wrap(core: CoreSession) -> Self {
        Self { core }
    }
}

/// `n` sessions in this process, for tests and notebooks; drive each from a thread of its own.
#[pyfunction]
#[pyo3(signature = (n, timeout=60.0))]
fn local_sessions(py: Python<'_>, n: usize, timeout: f64) -> PyResult<Vec<Session>> {
    if n == 0 || n > 64 {
        return Err(usage(format!("{n} parties in one process: take 1 to 64")));
    }
    let timeout = Duration::try_from_secs_f64(timeout).map_err(|_| usage("the timeout must be a positive number of seconds"))?;
    py.detach(|| {
        let handles: Vec<_> = keyquorum_net::local_mesh(n, timeout)
            .into_iter()
            .map(|transport| std::thread::spawn(move || CoreSession::new(Box::new(transport))))
            .collect();
        handles
            .into_iter()
            .map(|h| match h.join() {
                Ok(result) => result.map(Session::wrap).map_err(engine_error),
                Err(_) => Err(usage("setting up a session failed")),
            })
            .collect()
    })
}

#[pymethods]
impl Session {
    /// Our number.
    #[getter]
    fn party(&self) -> usize {
        self.core.party()
    }

    /// Number of parties.
    #[getter]
    fn parties(&self) -> usize {
        self.core.parties()
    }

    /// Opens an engine; all parties must ask for the same.
    #[pyo3(signature = (protocol, domain, program="", threshold=None, seed=None))]
    fn engine(
        &self,
        py: Python<'_>,
        protocol: &str,
        domain: &str,
        program: &str,
        threshold: Option<usize>,
        seed: Option<Vec<u8>>,
    ) -> PyResult<Engine> {
        let kind: DomainKind = domain.parse().map_err(|e: keyquorum_math::ParseDomainError| usage(e.to_string()))?;
        let options = EngineOptions { program: program.to_owned(), threshold, insecure_seed: seed };
        let engine = py.detach(|| self.core.engine(protocol, kind, &options)).map_err(engine_error)?;
        Ok(Engine::wrap(engine, protocol.to_owned(), kind))
    }

    /// Compares a digest with all parties.
    fn compare(&self, py: Python<'_>, label: &str, digest: &[u8]) -> PyResult<()> {
        py.detach(|| self.core.compare(label, digest)).map_err(engine_error)
    }

    /// Everyone sends its bytes to everyone.
    fn all_gather<'py>(&self, py: Python<'py>, data: &[u8]) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let all = py.detach(|| self.core.all_gather(data)).map_err(engine_error)?;
        Ok(all.iter().map(|d| PyBytes::new(py, d)).collect())
    }

    /// A joint coin toss: commit, then open.
    fn toss<'py>(&self, py: Python<'py>, nbytes: usize) -> PyResult<Bound<'py, PyBytes>> {
        let out = py.detach(|| self.core.toss(nbytes)).map_err(engine_error)?;
        Ok(PyBytes::new(py, &out))
    }

    /// Sends bytes to one party.
    fn send(&self, py: Python<'_>, to: usize, data: &[u8]) -> PyResult<()> {
        py.detach(|| self.core.send(to, data)).map_err(engine_error)
    }

    /// Receives bytes of one party.
    fn recv<'py>(&self, py: Python<'py>, frm: usize, max_len: usize) -> PyResult<Bound<'py, PyBytes>> {
        let data = py.detach(|| self.core.receive(frm, max_len)).map_err(engine_error)?;
        Ok(PyBytes::new(py, &data))
    }

    /// Traffic so far.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.core.stats().map_err(engine_error)?;
        let dict = PyDict::new(py);
        dict.set_item("rounds", stats.rounds)?;
        dict.set_item("bytes_sent", stats.bytes_sent)?;
        dict.set_item("bytes_received", stats.bytes_received)?;
        dict.set_item("messages", stats.messages)?;
        Ok(dict)
    }

    /// Tells all others why we stop.
    fn abort(&self, py: Python<'_>, reason: &str) {
        py.detach(|| self.core.abort(reason));
    }

    /// Orderly end.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.core.close());
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Session>()?;
    m.add_function(wrap_pyfunction!(local_sessions, m)?)
}
