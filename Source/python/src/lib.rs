//! `keyquorum._engine`: the engine for Python. No logic here: conversions, errors, and the interpreter lock released in
//! every call that works or waits.

mod arithmetic;
mod engine;
mod errors;
mod session;
mod store;

use pyo3::prelude::*;

#[pymodule]
fn _engine(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(m)?;
    session::register(m)?;
    engine::register(m)?;
    arithmetic::register(m)?;
    store::register(m)
}
