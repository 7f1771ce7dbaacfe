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
//! Two crates are below: `keyquorum_core` (shares, errors, rounds and tasks, descriptors, MAC key state, share files) and [`keyquorum_protocols`].
//! Modules import downwards, and `tests/test_rust_imports.py` refuses a circle. From below:
//!
//! * `session` (set-up between parties, oblivious transfer), `subgroup` (sessions among some of them), `graph` (the scheduler);
//! * `circuit` (Boolean circuits, planned), `select` (shapes of vectors), `engine` (operations), `ops` (their implementation, for every protocol);
//! * `opening` (what a session gives to a protocol), `table` (the protocols), `engines` (the parties compare what they ask for);
//! * `recording` (programs, recorded and played), `joint` (numbers that several domains need), `handover` (shares of zero), `recovery` (of a lost share), `resharing` (to another committee), `transfer` (its check among malicious members), `standalone` (bits alone);
//! * `tests` (protocols in sessions: honest runs, and attacks).

mod circuit;
mod engine;
mod engines;
mod graph;
mod handover;
#[cfg(test)]
mod intercept;
mod joint;
mod opening;
mod ops;
pub mod recording;
mod recovery;
mod resharing;
mod select;
mod session;
mod standalone;
mod subgroup;
mod table;
#[cfg(test)]
mod tests;
pub mod transfer;

// The floors below, under the names of their modules.
#[cfg(test)]
use keyquorum_core::long_tests;
use keyquorum_core::{adversary, descriptor, error, guard, refusal, round, task, value};
use keyquorum_protocols as protocol;

pub use circuit::{BitCircuit, Gate};
pub use engine::{ClearOp, Engine, Operands, Operation};
pub use graph::{EngineStats, Handle};
pub use handover::ZeroShares;
pub use joint::{JointDistribution, JointIntegers, joint_summands};
pub use keyquorum_core::descriptor::Descriptor;
pub use keyquorum_core::error::{Check, EngineError};
pub use keyquorum_core::refusal::Refusal;
pub use keyquorum_core::value::{Kind, Share, Value};
pub use keyquorum_core::{budget, mac_key, store};
pub use keyquorum_ot::BaseOt;
pub use keyquorum_protocols::{Openings, Preprocessed};
pub use recovery::Recovery;
pub use resharing::{Dealer, Dealt, Members};
pub use session::{EngineOptions, Session, SessionStats};
pub use standalone::Standalone;
pub use table::{named, protocols};
