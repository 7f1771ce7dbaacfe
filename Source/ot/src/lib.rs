//! Oblivious transfer between two parties: base OT on Ristretto or from ML-KEM, SoftSpokenOT extension, and uses of extended OTs
//! (random bits, correlated OT over Z_2^l, F_q and packed bits). No I/O: the caller sends the byte vectors.
//!
//! A *link* is one direction between two parties: the OT sender has a secret [`LinkKey`], the OT receiver has choice bits. Pads of OTs
//! depend on 128 bits of the key, Δ, which are drawn for every link. MACs depend on other bits ([`MacKey`]), which are the same on all links
//! of a party: a check of MACs that fails reveals their key, and nothing of Δ.
//!
//! Set-up ([`setup`]), once a link: one round of base OTs (roles swapped), and one message of punctured PRFs, before which the answer in base OTs
//! from ML-KEM stands.
//! Then extension ([`extension`]): each OT costs 128/k bits from receiver to sender, 2^k/k AES blocks and the hash.
//!
//! Nothing branches on secrets or uses them as an index. Types that hold secrets wipe them on drop.
//!
//! Layout: `key` (secrets of a link), `link` (its two ends), `base` (base OT), `punctured` (PRFs without one point), `setup` (both, as messages), `extension` (tiles of
//! correlated OTs and their check; `extension::sliced`: rows for MACs of bits), `product` (Gilboa products, correlated OT),
//! `bits` (random OT of bits), `strings` (random OT of keys, for long vectors), `vole` (products with a fixed key), `trees` (noise at secret places), `amplified` (products against malicious senders), `packed` (bit packing of payloads), `tile` and `parameters` (sizes), `threads`,
//! `transpose`, `aes`.

mod aes;
pub mod amplified;
pub mod base;
pub mod bits;
pub mod extension;
mod key;
mod link;
pub mod packed;
mod parameters;
pub mod product;
pub mod punctured;
pub mod setup;
pub mod strings;
mod threads;
mod tile;
pub mod transpose;
pub mod trees;
pub mod vole;

use zeroize::Zeroizing;

pub use aes::Hash;
pub use base::BaseOt;
pub use extension::sliced::{SlicedReceiver, SlicedSender};
pub use extension::{LinearHash, Receiver, ReceiverBatch, Sender, SenderBatch};
pub use key::{BIT_MAC_BITS, ELEMENT_MAC_BITS, LinkKey, MacKey};
pub use link::{ReceiverLink, SenderLink};
pub use parameters::Parameters;
pub use product::{Field, Payload, PowerOfTwo};
pub use setup::{Inbound, Outbound};
pub use tile::MAX_BLOCKS;

/// Computational security in bits: bits of Δ, rows of the extension.
pub const KAPPA: usize = 128;

/// 16 secret bytes.
pub type Seed = Zeroizing<[u8; 16]>;

/// The adversary that the extension is secure against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// Parties follow the protocol.
    SemiHonest,
    /// Parties may deviate; the consistency check of the extension must be run on everything that is used.
    Malicious,
}

/// Errors. They do not name the peer, which this crate does not know: the caller adds it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OtError {
    /// A message of the wrong size.
    #[error("{what} take {expected} bytes, got {got}")]
    Length {
        /// Name of the message.
        what: &'static str,
        /// Bytes expected.
        expected: usize,
        /// Bytes received.
        got: usize,
    },
    /// A message that no honest party sends.
    #[error("{0}")]
    Message(&'static str),
    /// A consistency check failed: the peer deviates from the protocol.
    #[error("the consistency check of {0} failed")]
    Check(&'static str),
    /// Arguments that do not fit.
    #[error("{0}")]
    Usage(String),
    /// A state that the code excludes. The outputs of the call must not be used.
    #[error("internal error: {0}: please report it")]
    Internal(&'static str),
    /// The operating system gave no randomness.
    #[error("the operating system gave no randomness ({0})")]
    Entropy(getrandom::Error),
}

impl From<keyquorum_math::InternalError> for OtError {
    fn from(error: keyquorum_math::InternalError) -> Self {
        Self::Internal(error.found)
    }
}

pub(crate) fn entropy(out: &mut [u8]) -> Result<(), OtError> {
    getrandom::fill(out).map_err(OtError::Entropy)
}

/// The error for an index outside a vector, or vectors of lengths that do not belong together.
pub(crate) fn uneven() -> OtError {
    OtError::Internal("vectors of lengths that do not belong together")
}

/// Fails unless both lengths are the same.
pub(crate) fn check_same(one: usize, other: usize) -> Result<(), OtError> {
    if one == other { Ok(()) } else { Err(uneven()) }
}

pub(crate) fn check_length(
    what: &'static str,
    message: &[u8],
    expected: usize,
) -> Result<(), OtError> {
    if message.len() == expected {
        return Ok(());
    }
    Err(OtError::Length {
        what,
        expected,
        got: message.len(),
    })
}
