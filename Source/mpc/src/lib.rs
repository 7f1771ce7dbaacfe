//! Multi-party computation over vectors: shares, protocols behind one trait, a lazy round scheduler and the share store.
//!
//! A [`Session`] owns the authenticated channels of one party. [`Session::engine`] opens a computation in one arithmetic
//! domain under one protocol; its operations ([`Engine`]) return handles at once, communication is queued, and everything
//! that is ready at one depth leaves in one round.
//!
//! Layout: `value` (what flows), `graph` (the scheduler), `round` (one exchange), `protocol/*` (one file a protocol),
//! `engine` (the operations), `ops` (what they do, for every protocol), `select` (shapes of vectors), `session` (set-up between parties), `store` (share files).

mod engine;
pub mod error;
mod graph;
mod ops;
pub mod protocol;
mod round;
mod select;
mod session;
pub mod store;
mod value;

pub use engine::{ClearOp, Engine, EngineStats};
pub use error::EngineError;
pub use graph::Handle;
pub use session::{EngineOptions, Session, SessionStats};
pub use value::{Kind, Share, Value};
