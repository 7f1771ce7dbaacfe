//! `keyquorum._engine`: the engine for Python. No logic here: conversions, errors, and the interpreter lock released in every call
//! that works or waits.

mod arithmetic;
mod budget;
mod circuit;
mod engine;
mod errors;
mod fhew;
mod identity;
mod inputs;
mod operands;
mod protocols;
mod recorder;
mod recording;
mod recovery;
mod resharing;
mod sealed;
mod session;
mod store;
mod transfer;
mod value;
mod wide;

use pyo3::prelude::*;

/// Vectors come and go at every operation; the system's allocator would return their pages to the kernel each time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[pymodule]
fn _engine(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(m)?;
    recorder::register(m)?;
    recording::register(m)?;
    recovery::register(m)?;
    resharing::register(m)?;
    transfer::register(m)?;
    session::register(m)?;
    sealed::register(m)?;
    identity::register(m)?;
    engine::register(m)?;
    value::register(m)?;
    arithmetic::register(m)?;
    wide::register(m)?;
    fhew::register(m)?;
    budget::register(m)?;
    circuit::register(m)?;
    protocols::register(m)?;
    store::register(m)
}
