//! Errors of the engine: one line each, naming the culprit and the cure.

use keyquorum_net::NetError;

/// Everything that can go wrong in a computation.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The network failed, or another party broke off.
    #[error("{phase}: {source}")]
    Network {
        /// What was being done, with the round number.
        phase: String,
        /// The transport's own error.
        source: NetError,
    },
    /// The parties do not run the same computation, or a message does not follow the protocol.
    #[error("{0}")]
    Protocol(String),
    /// An operation was asked for that this protocol, domain or value cannot do.
    #[error("{0}")]
    Usage(String),
    /// A share file could not be read or written, or does not belong here.
    #[error("{0}")]
    Store(String),
}

/// Result of an engine operation.
pub type Result<T> = std::result::Result<T, EngineError>;

impl EngineError {
    /// A [`EngineError::Usage`] with this text.
    pub fn usage(text: impl Into<String>) -> Self {
        Self::Usage(text.into())
    }

    /// A [`EngineError::Protocol`] with this text.
    pub fn protocol(text: impl Into<String>) -> Self {
        Self::Protocol(text.into())
    }

    pub(crate) fn network(phase: impl Into<String>, source: NetError) -> Self {
        Self::Network {
            phase: phase.into(),
            source,
        }
    }
}
