//! Base OT: random OTs of 16 bytes between two parties, secure against malicious parties in the random oracle model.
//!
//! Masny and Rindal, "Endemic oblivious transfer" (CCS 2019, eprint 2019/706), figure 8, with programmed keys: the receiver of choice c
//! knows the secret key of r_c + H(r_{1-c}) only. Endemic: a corrupted party can fix its own strings, which the extension allows.
//!
//! Modules: `curve25519` (Diffie-Hellman on Ristretto; one round), `ml_kem` (ML-KEM-768, section D.3 of the paper; two rounds),
//! `module` (what keys of ML-KEM are made of).

pub mod curve25519;
pub mod ml_kem;
mod module;

use sha2::{Digest, Sha512};
use zeroize::{Zeroize, Zeroizing};

use crate::{LinkKey, OtError, Seed};

/// How base OTs are made: the same at both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BaseOt {
    /// Secure under CDH on Curve25519, which a quantum computer solves.
    #[default]
    Curve25519,
    /// Secure under Module-LWE, as ML-KEM-768 of FIPS 203.
    MlKem,
}

impl BaseOt {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Curve25519, Self::MlKem];

    /// The name in committee files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Curve25519 => "curve25519",
            Self::MlKem => "ml-kem",
        }
    }

    /// Bytes of the sender's first message, which does not depend on the receiver's.
    pub fn first_bytes(self) -> usize {
        match self {
            Self::Curve25519 => curve25519::SENDER_BYTES,
            Self::MlKem => 0,
        }
    }

    /// Bytes of the receiver's message for one OT.
    pub fn receiver_bytes(self) -> usize {
        match self {
            Self::Curve25519 => curve25519::RECEIVER_BYTES,
            Self::MlKem => ml_kem::RECEIVER_BYTES,
        }
    }

    /// Bytes of the sender's answer to it for one OT.
    pub fn answer_bytes(self) -> usize {
        match self {
            Self::Curve25519 => 0,
            Self::MlKem => ml_kem::SENDER_BYTES,
        }
    }
}

/// The sender's state between its first message and the receiver's message.
pub(crate) enum BaseSender {
    Curve25519(curve25519::BaseSender),
    MlKem,
}

impl BaseSender {
    /// Starts; the message goes to the receiver.
    pub(crate) fn start(base: BaseOt) -> Result<(Self, Vec<u8>), OtError> {
        match base {
            BaseOt::Curve25519 => {
                let (sender, message) = curve25519::BaseSender::start()?;
                Ok((Self::Curve25519(sender), message))
            }
            BaseOt::MlKem => Ok((Self::MlKem, Vec::new())),
        }
    }

    /// Both strings of `count` OTs, and the answer to the receiver.
    pub(crate) fn finish(
        self,
        context: &[u8],
        count: usize,
        theirs: &[u8],
    ) -> Result<(Vec<[Seed; 2]>, Vec<u8>), OtError> {
        match self {
            Self::Curve25519(sender) => Ok((sender.finish(context, count, theirs)?, Vec::new())),
            Self::MlKem => ml_kem::send(context, count, theirs),
        }
    }
}

/// The receiver's state between its message and the last one of the sender.
pub(crate) enum BaseReceiver {
    Curve25519(curve25519::BaseReceiver),
    MlKem(ml_kem::BaseReceiver),
}

impl BaseReceiver {
    /// Chooses the string that is NOT bit i of `key` in OT i; the message goes to the sender.
    pub(crate) fn start(
        base: BaseOt,
        context: &[u8],
        key: &LinkKey,
    ) -> Result<(Self, Vec<u8>), OtError> {
        Ok(match base {
            BaseOt::Curve25519 => {
                let (receiver, message) = curve25519::BaseReceiver::start(context, key)?;
                (Self::Curve25519(receiver), message)
            }
            BaseOt::MlKem => {
                let (receiver, message) = ml_kem::BaseReceiver::start(context, key)?;
                (Self::MlKem(receiver), message)
            }
        })
    }

    /// The chosen string of every OT, from the sender's first message and its answer.
    pub(crate) fn finish(
        self,
        context: &[u8],
        first: &[u8],
        answer: &[u8],
    ) -> Result<Vec<Seed>, OtError> {
        match self {
            Self::Curve25519(receiver) => receiver.finish(context, first),
            Self::MlKem(receiver) => receiver.finish(context, answer),
        }
    }
}

/// The choices of a receiver: the bits that those of `key` are NOT.
fn choices(key: &LinkKey) -> Result<Zeroizing<Vec<u8>>, OtError> {
    let mut choices = Zeroizing::new(Vec::with_capacity(key.len()));
    for i in 0..key.len() {
        choices.push(1 - key.bit(i)?);
    }
    Ok(choices)
}

/// A hash of OT `number` of a context, for one of its two choices.
fn tagged_hash<H: Digest>(tag: &[u8], context: &[u8], number: usize, choice: u8) -> H {
    let mut hash = H::new();
    hash.update(tag);
    hash.update((context.len() as u64).to_le_bytes());
    hash.update(context);
    hash.update((number as u64).to_le_bytes());
    hash.update([choice]);
    hash
}

/// The string of a hash: its first 16 bytes.
fn string_of(hash: Sha512) -> Seed {
    let mut digest: [u8; 64] = hash.finalize().into();
    let mut seed = Zeroizing::new([0u8; 16]);
    for (s, d) in seed.iter_mut().zip(&digest) {
        *s = *d;
    }
    digest.zeroize();
    seed
}
