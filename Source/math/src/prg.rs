//! The pseudorandom generator: AES-128 in counter mode.

use std::fmt;

use aes::Aes128;
use cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
use ctr::{Ctr64BE, Ctr128LE};
use zeroize::{Zeroize, Zeroizing};

use crate::word::Word;

/// Words are drawn through a buffer of this many bytes: large enough for the parallel AES, small
/// enough for the first-level cache.
const BUFFER: usize = 1024;

/// Words of a public stream that are used before the next ones are expanded: 128 KB stay in the second-level cache.
const CACHED: usize = 1 << 14;

/// The operating system gave no randomness.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the operating system gave no randomness ({0}): check that getrandom(2) or /dev/urandom works here"
)]
pub struct EntropyError(getrandom::Error);

/// Fills `out` from the operating system's generator.
///
/// # Errors
///
/// [`EntropyError`] if that generator fails.
pub fn os_random(out: &mut [u8]) -> Result<(), EntropyError> {
    getrandom::fill(out).map_err(EntropyError)
}

/// The words `first` to `first + count - 1` of a public stream: block j is AES-128 of j as 16 little-endian bytes, and words are
/// consecutive and little endian. Masks of keys for TFHE-rs are expanded so.
pub fn expand_aes_ctr(seed: [u8; 16], first: u64, count: usize) -> Vec<u64> {
    public_words(seed, 0, first, count)
}

/// The residues `first` to `first + count - 1` of a public stream, uniform modulo `q`, which is at least 1.
///
/// Residue w is the low bits, as many as `q` has, of word w of an attempt; attempt t is the stream of [`expand_aes_ctr`] from block 2^64 t on. The
/// first attempt that is below `q` counts, so every residue is found without those before it.
pub fn expand_uniform(seed: [u8; 16], first: u64, count: usize, q: u64) -> Vec<u64> {
    let q = q.max(1);
    let mask = u64::MAX >> q.leading_zeros();
    let mut words = public_words(seed, 0, first, count);
    let mut complete = true;
    for word in &mut words {
        *word &= mask;
        complete &= *word < q;
    }
    if complete {
        return words;
    }
    for (word, at) in words.iter_mut().zip(first..=u64::MAX) {
        let mut attempt = 0;
        while *word >= q {
            attempt += 1;
            for again in public_words(seed, attempt, at, 1) {
                *word = again & mask;
            }
        }
    }
    words
}

/// The inner products modulo `q` of rows of residues of a public stream with vectors of residues, one vector after another.
///
/// Rows have the length of the vectors, and follow each other from residue `first` on ([`expand_uniform`]). They exist in the cache alone. The time does
/// not depend on the vectors.
pub fn expanded_products(
    seed: [u8; 16],
    first: u64,
    rows: usize,
    vectors: &[&[u64]],
    q: u64,
) -> Vec<Vec<u64>> {
    let width = vectors.iter().map(|vector| vector.len()).max().unwrap_or(0);
    let each = (CACHED / width.max(1)).max(1);
    let mut products = vec![Vec::with_capacity(rows); vectors.len()];
    for start in (0..rows).step_by(each) {
        let at = first + (start * width) as u64;
        let residues = expand_uniform(seed, at, each.min(rows - start) * width, q);
        for (vector, out) in vectors.iter().zip(&mut products) {
            let found = residues.chunks_exact(width.max(1));
            out.extend(found.map(|row| inner_product(row, vector, q)));
        }
    }
    products
}

/// An inner product modulo `q` of vectors of residues.
fn inner_product(a: &[u64], b: &[u64], q: u64) -> u64 {
    let (q, bits) = (u128::from(q.max(1)), u64::BITS - q.leading_zeros());
    // sums of so many products, and one residue, fit 128 bits
    let terms = 1usize << 126u32.saturating_sub(2 * bits).min(20);
    let total = a
        .chunks(terms)
        .zip(b.chunks(terms))
        .fold(0, |total, (a, b)| {
            let products = a
                .iter()
                .zip(b)
                .map(|(x, y)| u128::from(*x) * u128::from(*y));
            (total + products.sum::<u128>()) % q
        });
    total as u64
}

/// Words of the blocks of a public stream from block `2^64 attempt` on.
fn public_words(seed: [u8; 16], attempt: u64, first: u64, count: usize) -> Vec<u64> {
    let start = (u128::from(attempt) << 64).to_le_bytes();
    let mut keystream = Ctr128LE::<Aes128>::new(&seed.into(), &start.into());
    keystream.seek(u128::from(first) * 8);
    let mut buffer = [0u8; BUFFER];
    let mut words = Vec::with_capacity(count);
    while words.len() < count {
        buffer.fill(0);
        keystream.apply_keystream(&mut buffer);
        let block = buffer.chunks_exact(8).map(u64::read_le);
        words.extend(block.take(count - words.len()));
    }
    words
}

/// AES-128 in counter mode (NIST SP 800-38A) as a stream of pseudorandom bytes.
///
/// The initial counter block is `stream || 0`, both big endian and 64 bits long, so streams of one
/// seed are disjoint. Words are little endian. The state is wiped on drop; it is neither
/// cloned nor printed.
pub struct Prg {
    keystream: Ctr64BE<Aes128>,
}

impl Prg {
    /// Stream number `stream` of `seed`.
    pub fn new(seed: [u8; 16], stream: u64) -> Self {
        let mut block = [0u8; 16];
        for (b, s) in block.iter_mut().zip(stream.to_be_bytes()) {
            *b = s;
        }
        Self::from_block(Zeroizing::new(seed), block)
    }

    /// A generator with a fresh seed of the operating system.
    ///
    /// # Errors
    ///
    /// [`EntropyError`] if the operating system gives no randomness.
    pub fn from_os() -> Result<Self, EntropyError> {
        let mut seed = Zeroizing::new([0u8; 16]);
        os_random(seed.as_mut_slice())?;
        Ok(Self::from_block(seed, [0; 16]))
    }

    fn from_block(seed: Zeroizing<[u8; 16]>, block: [u8; 16]) -> Self {
        Self {
            keystream: Ctr64BE::new((&*seed).into(), &block.into()),
        }
    }

    /// The next `out.len()` bytes of the stream.
    pub fn fill(&mut self, out: &mut [u8]) {
        out.fill(0);
        self.keystream.apply_keystream(out);
    }

    /// The next `out.len()` words of the stream.
    pub fn fill_u64(&mut self, out: &mut [u64]) {
        self.fill_words(out);
    }

    /// The next `out.len()` 128-bit words of the stream.
    pub fn fill_u128(&mut self, out: &mut [u128]) {
        self.fill_words(out);
    }

    /// The next word of the stream.
    pub fn next_u64(&mut self) -> u64 {
        let mut bytes = [0u8; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// The next 16 bytes of the stream, as a seed.
    pub fn next_seed(&mut self) -> [u8; 16] {
        let mut seed = [0u8; 16];
        self.fill(&mut seed);
        seed
    }

    fn fill_words<T: Word>(&mut self, out: &mut [T]) {
        let mut buffer = [0u8; BUFFER];
        for part in out.chunks_mut(BUFFER / T::BYTES) {
            // Never more than the buffer holds; a word that was not drawn would be a word that everybody knows.
            let (bytes, _) = buffer.split_at_mut(part.len() * T::BYTES);
            self.fill(bytes);
            for (o, b) in part.iter_mut().zip(bytes.chunks_exact(T::BYTES)) {
                *o = T::read_le(b);
            }
        }
        let used = buffer.len().min(out.len() * T::BYTES);
        buffer.split_at_mut(used).0.zeroize();
    }
}

impl fmt::Debug for Prg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Prg(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u32> = hex.chars().filter_map(|c| c.to_digit(16)).collect();
        let byte = |pair: &[u32]| pair.iter().fold(0, |b, d| 16 * b + *d as u8);
        digits.chunks(2).map(byte).collect()
    }

    fn block(hex: &str) -> [u8; 16] {
        let mut out = [0; 16];
        out.copy_from_slice(&bytes(hex));
        out
    }

    /// NIST SP 800-38A, F.5.1 (CTR-AES128.Encrypt): ciphertext XOR plaintext is the keystream.
    #[test]
    fn keystream_is_that_of_the_nist_vector() {
        let key = Zeroizing::new(block("2b7e151628aed2a6abf7158809cf4f3c"));
        let counter = block("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff");
        let plaintext = bytes(
            "6bc1bee22e409f96e93d7e117393172a ae2d8a571e03ac9c9eb76fac45af8e51
             30c81c46a35ce411e5fbc1191a0a52ef f69f2445df4f9b17ad2b417be66c3710",
        );
        let ciphertext = bytes(
            "874d6191b620e3261bef6864990db6ce 9806f66b7970fdff8617187bb9fffdff
             5ae4df3edbd5d35e5b4f09020db03eab 1e031dda2fbe03d1792170a0f3009cee",
        );
        let mut keystream = vec![0; 64];
        Prg::from_block(key, counter).fill(&mut keystream);
        let expected: Vec<u8> = plaintext
            .iter()
            .zip(&ciphertext)
            .map(|(p, c)| p ^ c)
            .collect();
        assert_eq!(keystream, expected);
    }

    /// The first words are those of `docs/pages/formats.md`, section "Keys for TFHE-rs".
    #[test]
    fn a_public_stream_is_that_of_the_formats() {
        let seed = block("000102030405060708090a0b0c0d0e0f");
        let words = expand_aes_ctr(seed, 0, 1000);
        assert_eq!(
            words.get(..2),
            Some(&[0x825b_8f87_373b_a1c6, 0x79d8_c8a1_6281_4f6f][..])
        );
        for (first, count) in [(0, 0), (1, 1), (3, 200), (127, 129), (872, 128)] {
            let part = expand_aes_ctr(seed, first, count);
            assert_eq!(
                words.get(first as usize..first as usize + count),
                Some(&part[..])
            );
        }
        assert_eq!(expand_aes_ctr(seed, u64::MAX, 3).len(), 3);
    }

    /// Half of all words are too large for q = 2^k + 1, so that further attempts decide.
    #[test]
    fn residues_of_a_public_stream_do_not_depend_on_those_before() {
        let seed = block("000102030405060708090a0b0c0d0e0f");
        for q in [1, 2, 3, 257, (1 << 52) + 1, (1 << 53) - 126_975, u64::MAX] {
            let residues = expand_uniform(seed, 0, 500, q);
            assert!(residues.iter().all(|r| *r < q));
            for (first, count) in [(0, 0), (1, 1), (3, 200), (127, 129), (372, 128)] {
                let part = expand_uniform(seed, first, count, q);
                assert_eq!(
                    residues.get(first as usize..first as usize + count),
                    Some(&part[..])
                );
            }
        }
        let low: Vec<u64> = expand_aes_ctr(seed, 0, 500)
            .iter()
            .map(|w| w & ((1 << 53) - 1))
            .collect();
        assert_eq!(expand_uniform(seed, 0, 500, (1 << 53) - 126_975), low);
        // attempt t begins at block 2^64 t, which is AES-128 of t as the upper eight bytes
        let again = public_words(seed, 1, 0, 2);
        assert_ne!(again, public_words(seed, 0, 0, 2));
        let accepted = expand_uniform(seed, 0, 64, 257);
        for (at, residue) in accepted.iter().enumerate() {
            let tries: Vec<u64> = (0..64)
                .filter_map(|t| public_words(seed, t, at as u64, 1).first().map(|w| w & 511))
                .collect();
            assert_eq!(tries.iter().find(|w| **w < 257), Some(residue));
        }
    }
}
