//! Handles on values of an engine.

use std::sync::Mutex;

use keyquorum_mpc::Handle;
use pyo3::prelude::*;

use crate::errors::usage;

/// A handle on a value of an engine.
#[pyclass(module = "keyquorum._engine", frozen)]
pub struct Value {
    handle: Mutex<Option<Handle>>,
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

/// Does something with the handles of values, of which one may stand in the list several times.
pub(crate) fn with_all<T>(
    values: &[&Value],
    f: impl FnOnce(&[&Handle]) -> PyResult<T>,
) -> PyResult<T> {
    // Each lock is taken once.
    let mut unique: Vec<&Value> = Vec::new();
    let mut positions = Vec::with_capacity(values.len());
    for v in values {
        let at = unique.iter().position(|u| std::ptr::eq(*u, *v));
        positions.push(at.unwrap_or_else(|| {
            unique.push(v);
            unique.len() - 1
        }));
    }
    let in_use = |_| usage("a value is in use in another thread");
    let guards = unique.iter().map(|v| v.handle.lock().map_err(in_use));
    let guards = guards.collect::<PyResult<Vec<_>>>()?;
    let handles = positions.iter().map(|at| {
        let handle = guards.get(*at).and_then(|guard| guard.as_ref());
        handle.ok_or_else(|| usage("this value was given up by an assignment"))
    });
    f(&handles.collect::<PyResult<Vec<&Handle>>>()?)
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
