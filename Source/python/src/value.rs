//! Handles on values of an engine.

use std::sync::Mutex;

use keyquorum_mpc::Handle;
use pyo3::prelude::*;

use crate::errors::usage;

/// A handle on a value of an engine.
#[pyclass(module = "keyquorum._engine", frozen)]
pub struct Value {
    pub(crate) handle: Mutex<Option<Handle>>,
    kind: &'static str,
    size: usize,
}

impl Value {
    pub(crate) fn wrap(handle: Handle) -> Self {
        Self {
            kind: handle.kind().code(),
            size: handle.size(),
            handle: Mutex::new(Some(handle)),
        }
    }

    pub(crate) fn with<T>(&self, f: impl FnOnce(&Handle) -> PyResult<T>) -> PyResult<T> {
        let guard = self
            .handle
            .lock()
            .map_err(|_| usage("a value is in use in another thread"))?;
        f(guard
            .as_ref()
            .ok_or_else(|| usage("this value was given up by an assignment"))?)
    }

    pub(crate) fn take(&self) -> PyResult<Handle> {
        let mut guard = self
            .handle
            .lock()
            .map_err(|_| usage("a value is in use in another thread"))?;
        guard
            .take()
            .ok_or_else(|| usage("this value was given up by an assignment"))
    }
}

#[pymethods]
impl Value {
    /// s, c, sb, cb or p.
    #[getter]
    fn kind(&self) -> &'static str {
        self.kind
    }

    /// Elements or bits.
    #[getter]
    fn size(&self) -> usize {
        self.size
    }

    fn __repr__(&self) -> String {
        format!("<Value {} of {}>", self.kind, self.size)
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Value>()
}
