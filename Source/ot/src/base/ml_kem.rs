//! Base OT from ML-KEM-768 (FIPS 203): two rounds, and no assumption that the keys of FHE do not make as well.
//!
//! For each OT the receiver makes a key pair, an encapsulation key (t, ρ). It sends ρ and two vectors: r_{1-c} uniform, and
//! r_c = t - H(c, ρ, r_{1-c}). The sender encapsulates to the keys (r_b + H(b, ρ, r_{1-b}), ρ), and sends both ciphertexts. A string is a hash
//! of the whole OT and of the encapsulated secret.
//!
//! **Corrupted receiver.** Of H(0, ρ, r_1) and H(1, ρ, r_0) one is asked for last, when ρ and both vectors are fixed. Its key is then uniform,
//! and the ciphertext under a uniform key with the matrix of ρ is pseudorandom under Module-LWE: that string is hidden. A vector has one
//! encoding, so no other input of H gives the same key.
//!
//! **Corrupted sender.** It sees uniform vectors, up to t, which is pseudorandom under Module-LWE with the matrix of ρ. ρ and the secret vectors are
//! both outputs of a hash of the seed of a key pair, so ρ tells nothing of c. A simulator programs H so that it knows both secret keys, and finds both
//! strings by decapsulation, also of malformed ciphertexts: these give a pseudorandom secret in place of an error (FIPS 203, section 6.3).

use aws_lc_rs::kem::{Ciphertext, DecapsulationKey, EncapsulationKey, ML_KEM_768};
use sha2::{Digest, Sha512};
use sha3::Shake256;
use sha3::digest::Update;
use subtle::{Choice, ConditionallySelectable};
use zeroize::Zeroizing;

use super::module::{
    RHO_BYTES, VECTOR_BYTES, Vector, add, module_hash, pack, subtract, unpack, vector_of,
};
use super::{choices, string_of, tagged_hash};
use crate::{LinkKey, OtError, Seed, entropy};

/// Bytes of a ciphertext.
const CIPHERTEXT_BYTES: usize = 1088;
/// Bytes of the receiver's message for one OT: both vectors, and ρ.
pub const RECEIVER_BYTES: usize = 2 * VECTOR_BYTES + RHO_BYTES;
/// Bytes of the sender's message for one OT: both ciphertexts.
pub const SENDER_BYTES: usize = 2 * CIPHERTEXT_BYTES;

/// [`module_hash`], or what a test takes in its place.
type Hash = dyn Fn(&[u8], usize, u8, &[u8], &[u8]) -> Result<Vector, OtError>;

/// ML-KEM fails only where memory or randomness does.
fn kem_failed<E>(_: E) -> OtError {
    OtError::Internal("ML-KEM failed")
}

fn malformed() -> OtError {
    OtError::Message("a base OT key is no key of ML-KEM-768")
}

/// Both vectors and ρ in the receiver's message for one OT.
fn parts(message: &[u8]) -> Result<([&[u8]; 2], &[u8]), OtError> {
    let split = message
        .split_at_checked(VECTOR_BYTES)
        .and_then(|(r0, rest)| {
            let (r1, rho) = rest.split_at_checked(VECTOR_BYTES)?;
            Some(([r0, r1], rho))
        });
    split.ok_or_else(malformed)
}

/// The bytes of one of two slices, `second` says which, without a branch.
fn selected(first: &[u8], other: &[u8], second: u8) -> Zeroizing<Vec<u8>> {
    let choice = Choice::from(second);
    let pairs = first.iter().zip(other);
    Zeroizing::new(
        pairs
            .map(|(a, b)| u8::conditional_select(a, b, choice))
            .collect(),
    )
}

/// The string of choice `choice` in OT `number`: a hash of the encapsulated secret and all messages.
fn string_hash(
    context: &[u8],
    number: usize,
    choice: u8,
    keys: &[u8],
    ciphertexts: &[u8],
    secret: &[u8],
) -> Seed {
    let mut hash: Sha512 = tagged_hash(b"keyquorum-ot/kem-string", context, number, choice);
    Digest::update(&mut hash, keys);
    Digest::update(&mut hash, ciphertexts);
    Digest::update(&mut hash, secret);
    string_of(hash)
}

/// The sender: both strings of `count` OTs, and the message to the receiver.
///
/// # Errors
/// [`OtError::Message`] if the receiver's message has vectors that are not reduced; [`OtError::Length`].
pub fn send(
    context: &[u8],
    count: usize,
    theirs: &[u8],
) -> Result<(Vec<[Seed; 2]>, Vec<u8>), OtError> {
    send_with(context, count, theirs, &module_hash)
}

fn send_with(
    context: &[u8],
    count: usize,
    theirs: &[u8],
    hash: &Hash,
) -> Result<(Vec<[Seed; 2]>, Vec<u8>), OtError> {
    crate::check_length("base OT keys", theirs, count * RECEIVER_BYTES)?;
    let mut message = Vec::with_capacity(count * SENDER_BYTES);
    let mut strings = Vec::with_capacity(count);
    for (number, keys) in theirs.chunks_exact(RECEIVER_BYTES).enumerate() {
        let ([r0, r1], rho) = parts(keys)?;
        let encapsulate = |choice: u8, own: &[u8], other: &[u8]| {
            let own = unpack(own).ok_or_else(malformed)?;
            let vector = add(&own, &hash(context, number, choice, rho, other)?);
            let key = [pack(&vector).as_slice(), rho].concat();
            let key = EncapsulationKey::new(&ML_KEM_768, &key).map_err(|_| malformed())?;
            key.encapsulate().map_err(kem_failed)
        };
        let (first, secret_0) = encapsulate(0, r0, r1)?;
        let (second, secret_1) = encapsulate(1, r1, r0)?;
        let ciphertexts = [first.as_ref(), second.as_ref()].concat();
        let string = |choice: u8, secret: &[u8]| {
            string_hash(context, number, choice, keys, &ciphertexts, secret)
        };
        strings.push([string(0, secret_0.as_ref()), string(1, secret_1.as_ref())]);
        message.extend_from_slice(&ciphertexts);
    }
    Ok((strings, message))
}

/// The receiver's state between its message and the sender's.
pub struct BaseReceiver {
    choices: Zeroizing<Vec<u8>>,
    keys: Vec<DecapsulationKey>,
    message: Vec<u8>,
}

impl BaseReceiver {
    /// Chooses the string that is NOT bit i of `key` in OT i; the message goes to the sender.
    ///
    /// # Errors
    /// [`OtError::Entropy`]; [`OtError::Internal`] if keys cannot be made.
    pub fn start(context: &[u8], key: &LinkKey) -> Result<(Self, Vec<u8>), OtError> {
        let choices = choices(key)?;
        let mut keys = Vec::with_capacity(choices.len());
        let mut message = Vec::with_capacity(choices.len() * RECEIVER_BYTES);
        for (number, bit) in choices.iter().copied().enumerate() {
            let pair = DecapsulationKey::generate(&ML_KEM_768).map_err(kem_failed)?;
            let public = pair.encapsulation_key().map_err(kem_failed)?;
            let public = public.key_bytes().map_err(kem_failed)?;
            let (t, rho) = public
                .as_ref()
                .split_at_checked(VECTOR_BYTES)
                .ok_or_else(malformed)?;
            let t = unpack(t).ok_or_else(malformed)?;
            let other = pack(&random_vector()?);
            let own = pack(&subtract(
                &t,
                &module_hash(context, number, bit, rho, &other)?,
            ));
            message.extend_from_slice(&selected(&own, &other, bit));
            message.extend_from_slice(&selected(&other, &own, bit));
            message.extend_from_slice(rho);
            keys.push(pair);
        }
        let state = Self {
            choices,
            keys,
            message: message.clone(),
        };
        Ok((state, message))
    }

    /// The chosen string of every OT. A malformed ciphertext gives a random one, which the sender does not know.
    ///
    /// # Errors
    /// [`OtError::Length`].
    pub fn finish(self, context: &[u8], theirs: &[u8]) -> Result<Vec<Seed>, OtError> {
        crate::check_length(
            "base OT ciphertexts",
            theirs,
            self.keys.len() * SENDER_BYTES,
        )?;
        crate::check_same(self.keys.len(), self.choices.len())?;
        crate::check_same(self.message.len(), self.keys.len() * RECEIVER_BYTES)?;
        let messages = self.message.chunks_exact(RECEIVER_BYTES);
        self.keys
            .iter()
            .zip(self.choices.iter().copied())
            .zip(messages.zip(theirs.chunks_exact(SENDER_BYTES)))
            .enumerate()
            .map(|(number, ((pair, bit), (keys, ciphertexts)))| {
                let (first, second) = ciphertexts.split_at(CIPHERTEXT_BYTES);
                let chosen = selected(first, second, bit);
                let secret = pair
                    .decapsulate(Ciphertext::from(chosen.as_slice()))
                    .map_err(kem_failed)?;
                Ok(string_hash(
                    context,
                    number,
                    bit,
                    keys,
                    ciphertexts,
                    secret.as_ref(),
                ))
            })
            .collect()
    }
}

/// A uniform vector. It comes from a hash, as the one that is subtracted from t, so that both take the same time.
fn random_vector() -> Result<Vector, OtError> {
    let mut seed = Zeroizing::new([0u8; 32]);
    entropy(seed.as_mut_slice())?;
    let mut hash = Shake256::default();
    hash.update(b"keyquorum-ot/random-vector");
    hash.update(seed.as_slice());
    vector_of(hash)
}

#[cfg(test)]
mod tests;
