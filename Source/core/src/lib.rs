//! What protocols are written with, and what knows no protocol. See [ARCHITECTURE.md](../../../ARCHITECTURE.md), floors of the engine.
//!
//! Modules import downwards, and `tests/test_rust_imports.py` refuses a circle. From below:
//!
//! * `descriptor` (properties of a protocol), `refusal` (engines that do not exist), `error`;
//! * `value` (shares and clear values), `round` (one exchange), `task` (the halves of rounds), `adversary`;
//! * `mac_key` (the state of a MAC key), `guard` (whether a session may go on), `budget` (the probability of failure);
//! * `store` (share files).

pub mod adversary;
pub mod budget;
mod bytes;
pub mod descriptor;
pub mod error;
pub mod guard;
pub mod mac_key;
pub mod refusal;
pub mod round;
pub mod store;
pub mod task;
pub mod value;

pub use error::EngineError;

/// Whether tests run with all their cases: `KEYQUORUM_LONG=1`.
#[cfg(any(test, feature = "testing"))]
pub fn long_tests() -> bool {
    std::env::var("KEYQUORUM_LONG").as_deref() == Ok("1")
}
