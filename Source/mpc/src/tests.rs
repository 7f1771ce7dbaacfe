//! Protocols in sessions: honest runs, attacks, and what happens without a check.

mod authenticated;
mod binary;
mod verified;
