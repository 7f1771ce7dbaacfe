//! Exceptions.

use keyquorum_mpc::EngineError as Error;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(
    _engine,
    EngineError,
    PyException,
    "Any error of the engine."
);
create_exception!(
    _engine,
    NetworkError,
    EngineError,
    "The network failed, or another party broke off."
);
create_exception!(
    _engine,
    ProtocolError,
    EngineError,
    "The parties do not agree, or a message breaks the protocol."
);
create_exception!(
    _engine,
    UsageError,
    EngineError,
    "The operation is not possible here."
);
create_exception!(
    _engine,
    StoreError,
    EngineError,
    "A share file cannot be used."
);

pub fn engine_error(e: Error) -> PyErr {
    let text = e.to_string();
    match e {
        Error::Network { .. } => NetworkError::new_err(text),
        Error::Protocol(_) => ProtocolError::new_err(text),
        Error::Usage(_) => UsageError::new_err(text),
        Error::Store(_) => StoreError::new_err(text),
    }
}

pub fn network_error(e: keyquorum_net::NetError) -> PyErr {
    NetworkError::new_err(e.to_string())
}

pub fn usage(text: impl Into<String>) -> PyErr {
    UsageError::new_err(text.into())
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = m.py();
    m.add("EngineError", py.get_type::<EngineError>())?;
    m.add("NetworkError", py.get_type::<NetworkError>())?;
    m.add("ProtocolError", py.get_type::<ProtocolError>())?;
    m.add("UsageError", py.get_type::<UsageError>())?;
    m.add("StoreError", py.get_type::<StoreError>())
}
