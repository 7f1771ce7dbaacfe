//! The bridge against unmodified TFHE-rs, with a dealer that makes keys in clear text.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // A failed test may panic.

mod circuits;
mod command;
mod dealer;
mod keys;
mod lwe;
mod masks;
mod refusals;
mod stream;
