//! The consistency check of the malicious protocol (figure 10 of the SoftSpokenOT paper).
//!
//! The receiver sends a linear universal hash of its choices and of every row, under a key that the sender draws after the corrections.
//! A last block of random choices masks what the hashes reveal. A receiver that used other choices in some groups of rows passes only if
//! it guesses the sender's bits of these groups.

use keyquorum_math::mask_of;
use polyval::Polyval;
use polyval::universal_hash::UniversalHash;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::{LinkKey, OtError, check_length, check_same, uneven};

/// A universal hash that is linear over bits: POLYVAL of a vector of 128-bit blocks under a public key.
pub struct LinearHash(Polyval);

impl LinearHash {
    /// The hash with the key that belongs to this seed.
    pub fn new(seed: &[u8]) -> Self {
        Self::with_tag(b"keyquorum-ot/linear", seed)
    }

    /// The hash whose key is the first half of a digest of tag and seed.
    pub(super) fn with_tag(tag: &[u8], seed: &[u8]) -> Self {
        let digest: [u8; 32] = Sha256::new()
            .chain_update(tag)
            .chain_update(seed)
            .finalize()
            .into();
        let mut key = [0; 16];
        key.copy_from_slice(digest.split_at(16).0);
        Self(Polyval::new((&key).into()))
    }

    /// Hash of whole blocks.
    pub fn blocks(&self, words: &[u128]) -> u128 {
        let mut state = self.start();
        let bytes: &[[u8; 16]] = bytemuck::cast_slice(words);
        state
            .0
            .update(aes::cipher::Array::cast_slice_from_core(bytes));
        state.finish()
    }

    /// Hash of lanes; one that has no second one is a block with zeros.
    pub fn lanes(&self, lanes: &[u64]) -> u128 {
        let mut state = self.start();
        let (pairs, single) = lanes.as_chunks::<2>();
        let bytes: &[[u8; 16]] = bytemuck::cast_slice(pairs);
        state
            .0
            .update(aes::cipher::Array::cast_slice_from_core(bytes));
        for lane in single {
            state.update(u128::from(*lane));
        }
        state.finish()
    }

    /// A hash to which blocks are added one by one.
    pub(super) fn start(&self) -> HashState {
        HashState(self.0.clone())
    }

    /// The hash of all words but the last, plus the last.
    pub(super) fn masked(&self, words: &[u128]) -> Result<u128, OtError> {
        let (mask, words) = words.split_last().ok_or_else(uneven)?;
        Ok(self.blocks(words) ^ mask)
    }
}

/// A [`LinearHash`] under way.
pub(super) struct HashState(Polyval);

impl HashState {
    #[inline]
    pub(super) fn update(&mut self, word: u128) {
        self.0.update(&[word.to_le_bytes().into()]);
    }

    pub(super) fn finish(self) -> u128 {
        u128::from_le_bytes(self.0.finalize().into())
    }
}

/// Bytes of a proof for so many rows.
pub(super) const fn proof_bytes(rows: usize) -> usize {
    16 * (rows + 1)
}

/// The receiver's proof: masked hashes of its choices and of its rows.
pub(super) fn proof(choices: u128, rows: &[u128]) -> Vec<u8> {
    let mut proof = Vec::with_capacity(proof_bytes(rows.len()));
    proof.extend_from_slice(&choices.to_le_bytes());
    for row in rows {
        proof.extend_from_slice(&row.to_le_bytes());
    }
    proof
}

/// Verifies a proof against the masked hashes of the sender's rows, which belong to these bits of its key. Returns the hash of the choices.
pub(super) fn verify(
    key: &LinkKey,
    bits: impl Iterator<Item = usize>,
    rows: &[u128],
    proof: &[u8],
) -> Result<u128, OtError> {
    let expected = proof_bytes(rows.len());
    check_length("the proof of the OT extension", proof, expected)?;
    let (choices, theirs) = (proof.as_chunks::<16>().0)
        .split_first()
        .ok_or_else(uneven)?;
    let choices = u128::from_le_bytes(*choices);
    let bits: Vec<usize> = bits.collect();
    check_same(rows.len(), bits.len())?;
    check_same(rows.len(), theirs.len())?;
    let mut wrong = 0u128;
    for ((bit, ours), theirs) in bits.into_iter().zip(rows).zip(theirs) {
        let mask = mask_of(u128::from(key.bit(bit)?));
        wrong |= ours ^ u128::from_le_bytes(*theirs) ^ (choices & mask);
    }
    if bool::from(wrong.ct_eq(&0)) {
        Ok(choices)
    } else {
        Err(OtError::Check("the OT extension"))
    }
}
