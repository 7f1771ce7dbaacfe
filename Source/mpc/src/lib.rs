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
//! Modules import downwards, and `tests/test_rust_imports.py` refuses a circle. From below:
//!
//! * `value` (shares and clear values), `error`, `round` (one exchange), `task` (the halves of rounds), `adversary`;
//! * `descriptor` (properties of a protocol), `refusal` (engines that do not exist);
//! * `mac_key` (the state of a MAC key), `guard` (whether a session may go on), `budget` (the probability of failure);
//! * `protocol/*` (one file a protocol; the traits [`protocol::Party`] and [`protocol::Protocol`]);
//! * `session` (set-up between parties, oblivious transfer), `subgroup` (sessions among some of them), `graph` (the scheduler);
//! * `circuit` (Boolean circuits, planned), `select` (shapes of vectors), `engine` (operations), `ops` (their implementation, for every protocol);
//! * `opening` (what a session gives to a protocol), `table` (the protocols), `engines` (the parties compare what they ask for);
//! * `recording` (programs, recorded and played), `joint` (numbers that several domains need), `handover` (shares of zero), `recovery` (of a lost share), `resharing` (to another committee), `transfer` (its check among malicious members), `store` (share files), `standalone` (bits alone).

mod adversary;
pub mod budget;
mod bytes;
mod circuit;
pub mod descriptor;
mod engine;
mod engines;
pub mod error;
mod graph;
mod guard;
mod handover;
#[cfg(test)]
mod intercept;
mod joint;
pub mod mac_key;
mod opening;
mod ops;
pub mod protocol;
pub mod recording;
mod recovery;
mod refusal;
mod resharing;
mod round;
mod select;
mod session;
mod standalone;
pub mod store;
mod subgroup;
mod table;
mod task;
pub mod transfer;
mod value;

pub use circuit::{BitCircuit, Gate};
pub use descriptor::Descriptor;
pub use engine::{ClearOp, Engine, Operands, Operation};
pub use error::{Check, EngineError};
pub use graph::{EngineStats, Handle};
pub use handover::ZeroShares;
pub use joint::{JointDistribution, JointIntegers, joint_summands};
pub use keyquorum_ot::BaseOt;
pub use protocol::{Openings, Preprocessed};
pub use recovery::Recovery;
pub use refusal::Refusal;
pub use resharing::{Dealer, Dealt, Members};
pub use session::{EngineOptions, Session, SessionStats};
pub use standalone::Standalone;
pub use table::{named, protocols};
pub use value::{Kind, Share, Value};

/// Whether tests run with all their cases: `KEYQUORUM_LONG=1`.
#[cfg(test)]
fn long_tests() -> bool {
    std::env::var("KEYQUORUM_LONG").as_deref() == Ok("1")
}
