//! Multi-party computation over vectors: shares, protocols behind one trait, a lazy round scheduler and the share store.
//!
//! A [`Session`] owns the authenticated channels of one party. [`Session::engine`] opens a computation in one arithmetic
//! domain under one protocol; its operations ([`Engine`]) return handles at once, communication is queued, and everything
//! that is ready at one depth is sent in one round.
//!
//! Three parties of one process compute an inner product:
//!
//! ```
//! use std::{thread, time::Duration};
//! use keyquorum_math::DomainKind;
//! use keyquorum_mpc::{EngineError, EngineOptions, Session};
//!
//! let threads: Vec<_> = keyquorum_net::local_mesh(3, Duration::from_secs(10))
//!     .into_iter()
//!     .map(|transport| {
//!         thread::spawn(move || -> Result<Vec<u64>, EngineError> {
//!             let session = Session::new(Box::new(transport))?;
//!             let mut engine = session.engine("ring", DomainKind::Z2k(64), &EngineOptions::default())?;
//!             let mine = |party| (session.party() == party).then_some(&[1i64, 2, 3][..]);
//!             let x = engine.input(0, 3, mine(0))?;
//!             let y = engine.input(1, 3, mine(1))?;
//!             let product = engine.dot(&x, &y, 3)?;
//!             let opened = engine.open(&product)?;
//!             engine.read(&opened)
//!         })
//!     })
//!     .collect();
//! for party in threads {
//!     assert_eq!(party.join().expect("no panic").expect("no error"), [14]);
//! }
//! ```
//!
//! Layout: `budget` (the probability of failure), `value` (shares and clear values), `graph` (the scheduler), `task` (the halves of rounds), `round` (one exchange), `protocol/*` (one file a protocol),
//! `circuit` (Boolean circuits, planned), `engine` (the operations), `ops` (their implementation, for every protocol), `select` (shapes of vectors), `recording` (programs that are recorded and played), `session` (set-up between parties), `subgroup` (sessions among some of them), `links` (its oblivious transfer), `guard` (whether a session may go on), `mac_key` (the state of a MAC key), `store` (share files), `joint` (numbers that several domains need).

mod adversary;
pub mod budget;
mod bytes;
mod circuit;
mod engine;
pub mod error;
mod graph;
mod guard;
#[cfg(test)]
mod intercept;
mod joint;
mod links;
pub mod mac_key;
mod ops;
pub mod protocol;
pub mod recording;
mod round;
mod select;
mod session;
pub mod store;
mod subgroup;
mod task;
mod value;

pub use circuit::{BitCircuit, Gate};
pub use engine::{ClearOp, Engine, EngineStats, Operands, Operation, Preprocessed};
pub use error::{Check, EngineError};
pub use graph::Handle;
pub use joint::{JointIntegers, JointLaw, joint_summands};
pub use keyquorum_ot::BaseOt;
pub use protocol::Openings;
pub use protocol::descriptor::Descriptor;
pub use protocol::refusal::Refusal;
pub use protocol::table::{PROTOCOLS, named};
pub use session::{EngineOptions, Session, SessionStats};
pub use value::{Kind, Share, Value};
