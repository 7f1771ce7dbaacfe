//! AES on vectors of 128-bit words: streams of many keys, and the hash functions that are made of one public permutation.

use aes::Aes128Enc;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use zeroize::Zeroize;

use crate::{OtError, Security, check_same, uneven};

#[cfg(target_endian = "big")]
compile_error!(
    "words are handed to AES in memory order, which both parties must share: little endian only"
);

/// Words that are encrypted in one go: enough for the widest AES unit, small enough for the first-level cache.
const BATCH: usize = 64;

/// A key of AES-128, expanded. Wiped on drop.
pub struct Key(Aes128Enc);

impl Key {
    pub fn new(key: &[u8; 16]) -> Self {
        Self(Aes128Enc::new(key.into()))
    }

    fn encrypt(&self, words: &mut [u128]) {
        let bytes: &mut [[u8; 16]] = bytemuck::cast_slice_mut(words);
        self.0
            .encrypt_blocks(Array::cast_slice_from_core_mut(bytes));
    }

    /// Counter mode: word `i` is the encryption of `stream || start + i`.
    #[inline]
    pub fn stream(&self, stream: u64, start: u64, out: &mut [u128]) {
        let first = u128::from(stream) << 64 | u128::from(start);
        for (i, word) in out.iter_mut().enumerate() {
            *word = first + i as u128;
        }
        self.encrypt(out);
    }
}

/// The hash that breaks the correlation of extended OTs, from one public random permutation π (AES with a fixed key).
///
/// Semi-honest: H(x) = π(x) ⊕ x, which is correlation robust. Malicious: H(x, i) = π(π(x) ⊕ i) ⊕ π(x) (TMMO), which is
/// tweakable, and robust against inputs that an adversary shifts and against messages that depend on Δ. Both in the ideal
/// permutation model: Guo, Katz, Wang, Yu, "Efficient and secure multiparty computation from fixed-key block ciphers" (IEEE
/// S&P 2020), sections 7.2 and 7.4.
pub struct Hash {
    permutation: Key,
    security: Security,
}

impl Hash {
    /// The hash for this adversary.
    pub fn new(security: Security) -> Self {
        Self {
            // Digits of π: a nothing-up-my-sleeve number.
            permutation: Key::new(b"3141592653589793"),
            security,
        }
    }

    /// The adversary that it is secure against.
    pub fn security(&self) -> Security {
        self.security
    }

    /// `out[i] = H(input[i] ⊕ offset, tweak + i)`; `out` is as long as `input`.
    ///
    /// # Errors
    /// [`OtError::Internal`] if it is not; `out` is as it was then.
    pub fn hash(
        &self,
        tweak: u128,
        offset: u128,
        input: &[u128],
        out: &mut [u128],
    ) -> Result<(), OtError> {
        check_same(input.len(), out.len())?;
        let mut buffer = [0u128; BATCH];
        let mut tweak = tweak;
        for (input, out) in input.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
            for (o, x) in out.iter_mut().zip(input) {
                *o = x ^ offset;
            }
            let buffer = buffer.get_mut(..out.len()).ok_or_else(uneven)?;
            match self.security {
                Security::SemiHonest => {
                    buffer.copy_from_slice(out);
                    self.permutation.encrypt(buffer);
                }
                Security::Malicious => {
                    self.permutation.encrypt(out);
                    for (i, (b, o)) in buffer.iter_mut().zip(out.iter()).enumerate() {
                        *b = o ^ (tweak + i as u128);
                    }
                    self.permutation.encrypt(buffer);
                }
            }
            for (o, b) in out.iter_mut().zip(buffer.iter()) {
                *o ^= b;
            }
            tweak += BATCH as u128;
        }
        buffer.zeroize();
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;

    fn aes(x: u128) -> u128 {
        let mut word = [x];
        Hash::new(Security::SemiHonest)
            .permutation
            .encrypt(&mut word);
        word[0]
    }

    #[test]
    fn hashes_are_those_of_the_paper() {
        let input: Vec<u128> = (0..130u128).map(|i| i * i + 7).collect();
        let mut out = vec![0; 130];
        Hash::new(Security::SemiHonest)
            .hash(5, 9, &input, &mut out)
            .unwrap();
        assert!(
            input
                .iter()
                .zip(&out)
                .all(|(x, h)| *h == aes(x ^ 9) ^ x ^ 9)
        );
        Hash::new(Security::Malicious)
            .hash(5, 9, &input, &mut out)
            .unwrap();
        for (i, (x, h)) in input.iter().zip(&out).enumerate() {
            let inner = aes(x ^ 9);
            assert_eq!(*h, aes(inner ^ (5 + i as u128)) ^ inner);
        }
    }

    #[test]
    fn streams_are_counter_mode() {
        let key = Key::new(b"0123456789abcdef");
        let (mut long, mut part) = ([0u128; 20], [0u128; 3]);
        key.stream(4, 10, &mut long);
        key.stream(4, 15, &mut part);
        assert_eq!(long[5..8], part);
        key.stream(5, 15, &mut part);
        assert_ne!(long[5..8], part);
    }
}
