//! Errors of the engine: one line each, naming the culprit and the cure.

use keyquorum_net::NetError;

use crate::refusal::Refusal;

/// Checks whose failure shows that a party cheats. After such a failure the adversary may know the honest parties' MAC keys, if there are any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Check {
    /// MACs of opened elements.
    ElementMacs,
    /// MACs of opened bits.
    BitMacs,
    /// MACs of opened subset sums, each verified for itself.
    SubsetSums,
    /// One key of elements' MACs towards all parties.
    ElementKeys,
    /// The key of elements' MACs that stored shares are under.
    StoredKeys,
    /// The consistency check of the OT extension.
    OtExtension,
    /// The consistency of punctured PRFs, in the set-up of oblivious transfer.
    PuncturedPrfs,
    /// A commitment against its opening.
    Commitment,
    /// What all parties received from one party, compared among them.
    Broadcast,
    /// edaBits by cut and choose.
    EdaBits,
    /// Products of shares without MACs, verified together.
    Products,
    /// Two copies of one summand of an opened value.
    Openings,
    /// The seeds of streams that subsets of parties have in common.
    SubsetSeeds,
    /// What helpers sent for the share of a party that lost it: points of one polynomial of the threshold's degree.
    RecoveredShares,
    /// A check whose outcome depends on MAC keys and that was cut off before its end: it may reveal as much as a failed one.
    Interrupted,
}

/// Everything that can go wrong in a computation.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The network failed, or another party broke off.
    #[error("{phase}: {source}")]
    Network {
        /// The operation that failed, with the round number.
        phase: String,
        /// The transport's own error.
        source: NetError,
    },
    /// The parties do not run the same computation, or a message does not follow the protocol.
    #[error("{0}")]
    Protocol(String),
    /// A check failed: one of the parties cheats.
    #[error("{text}")]
    Check {
        /// Which check.
        check: Check,
        /// What happened, in one line.
        text: String,
    },
    /// A MAC key that others may know, or a session in which a check failed or, where products are verified, anything else: neither is used again.
    #[error("{0}")]
    Burned(String),
    /// A MAC key that another session uses.
    #[error("{0}")]
    InUse(String),
    /// An operation was asked for that this protocol, domain or value cannot do.
    #[error("{0}")]
    Usage(String),
    /// An engine was asked for that does not exist: an unknown protocol, or one for other parties or another domain.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A share file could not be read or written, or does not belong here.
    #[error("{0}")]
    Store(String),
    /// A state that the code excludes.
    #[error("internal error: {0}: please report it, and run all parties again")]
    Internal(String),
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

    /// A [`EngineError::Check`] with this text.
    pub fn check(check: Check, text: impl Into<String>) -> Self {
        Self::Check {
            check,
            text: text.into(),
        }
    }

    /// The error for vectors of different lengths, or of another shape than their protocol has.
    pub fn uneven() -> Self {
        Self::internal("vectors of lengths that do not belong together")
    }

    /// A [`EngineError::Internal`]: this was found, which the code excludes.
    pub fn internal(found: impl Into<String>) -> Self {
        Self::Internal(found.into())
    }

    /// An error of oblivious transfer: of its check, or of a message; `what` names the step and the peer.
    pub fn ot(check: Check, what: &str, error: &keyquorum_ot::OtError) -> Self {
        let text = format!("{what}: {error}");
        match error {
            keyquorum_ot::OtError::Check(_) => Self::check(check, text),
            keyquorum_ot::OtError::Internal(_) => Self::internal(text),
            _ => Self::protocol(text),
        }
    }

    /// An error of oblivious transfer where no peer has a part in it.
    pub fn local_ot(error: keyquorum_ot::OtError) -> Self {
        match error {
            keyquorum_ot::OtError::Internal(found) => Self::internal(found),
            other => Self::internal(other.to_string()),
        }
    }

    /// A [`EngineError::Network`] in this phase.
    pub fn network(phase: impl Into<String>, source: NetError) -> Self {
        Self::Network {
            phase: phase.into(),
            source,
        }
    }
}

/// The error for a domain that cannot be made.
pub fn invalid(error: keyquorum_math::DomainError) -> EngineError {
    EngineError::usage(error.to_string())
}

impl From<keyquorum_math::InternalError> for EngineError {
    fn from(error: keyquorum_math::InternalError) -> Self {
        Self::internal(error.found)
    }
}
