//! Exceptions.

use keyquorum_mpc::EngineError as Error;
use keyquorum_net::NetError;
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
    LocalError,
    NetworkError,
    "The network cannot be used here: our key file, our port or our configuration."
);
create_exception!(
    _engine,
    ProtocolError,
    EngineError,
    "The parties do not agree, or a message breaks the protocol."
);
create_exception!(
    _engine,
    CheckError,
    ProtocolError,
    "A check failed: one of the parties cheats."
);
create_exception!(
    _engine,
    BurnedError,
    EngineError,
    "A MAC key that others may know, or a session in which a check failed: not used again."
);
create_exception!(
    _engine,
    InUseError,
    EngineError,
    "A MAC key that another session uses."
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

create_exception!(
    _engine,
    InternalError,
    EngineError,
    "A state that the engine's code excludes: a fault of KeyQuorum."
);

pub fn engine_error(e: Error) -> PyErr {
    let text = e.to_string();
    match e {
        Error::Internal(_)
        | Error::Network {
            source: NetError::Internal { .. },
            ..
        } => InternalError::new_err(text),
        Error::Network { .. } => NetworkError::new_err(text),
        Error::Protocol(_) => ProtocolError::new_err(text),
        Error::Check { .. } => CheckError::new_err(text),
        Error::Burned(_) => BurnedError::new_err(text),
        Error::InUse(_) => InUseError::new_err(text),
        Error::Usage(_) | Error::Refused(_) => UsageError::new_err(text),
        Error::Store(_) => StoreError::new_err(text),
    }
}

pub fn network_error(e: NetError) -> PyErr {
    let text = e.to_string();
    match e {
        NetError::Internal { .. } => InternalError::new_err(text),
        NetError::KeyFile { .. }
        | NetError::KeyFileMode { .. }
        | NetError::Listen { .. }
        | NetError::Config { .. } => LocalError::new_err(text),
        _ => NetworkError::new_err(text),
    }
}

pub fn usage(text: impl Into<String>) -> PyErr {
    UsageError::new_err(text.into())
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = m.py();
    m.add("EngineError", py.get_type::<EngineError>())?;
    m.add("NetworkError", py.get_type::<NetworkError>())?;
    m.add("LocalError", py.get_type::<LocalError>())?;
    m.add("ProtocolError", py.get_type::<ProtocolError>())?;
    m.add("CheckError", py.get_type::<CheckError>())?;
    m.add("BurnedError", py.get_type::<BurnedError>())?;
    m.add("InUseError", py.get_type::<InUseError>())?;
    m.add("UsageError", py.get_type::<UsageError>())?;
    m.add("StoreError", py.get_type::<StoreError>())?;
    m.add("InternalError", py.get_type::<InternalError>())
}
