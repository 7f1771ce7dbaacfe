//! Packed bits, least significant first: bit `i` of a vector is bit `i % 64` of word `i / 64`.

use crate::domain::InternalError;
use crate::word::{Element, Word};

/// Bit 0 of every byte.
const ONES: u64 = 0x0101_0101_0101_0101;

/// Up to how many bit planes are taken one by one, without a transposition of all 64.
const FEW_PLANES: usize = 4;

/// Number of words that hold `n` bits.
pub fn words(n: usize) -> usize {
    n.div_ceil(64)
}

/// Packs bits, given one to a byte (only bit 0 of a byte counts). The unused high bits of the last
/// word are zero.
pub fn pack(bits: &[u8]) -> Vec<u64> {
    bits.chunks(64).map(packed).collect()
}

/// Up to 64 bits, given one to a byte.
fn packed(bits: &[u8]) -> u64 {
    bits.chunks(8).rev().fold(0, |word, eight| {
        // Byte j moves to bit 56 + j; the partial products never meet, so nothing carries.
        let gathered = (u64::read_le(eight) & ONES).wrapping_mul(0x0102_0408_1020_4080);
        word << 8 | gathered >> 56
    })
}

/// The first `n` bits of `words`, one to a byte.
///
/// # Errors
///
/// [`InternalError`] if there are not as many bits.
pub fn unpack(words: &[u64], n: usize) -> Result<Vec<u8>, InternalError> {
    if words.len() < self::words(n) {
        return Err(InternalError {
            found: "fewer packed bits than were asked for",
        });
    }
    let mut out = vec![0u8; n.div_ceil(64) * 64];
    for (part, &word) in out.chunks_exact_mut(64).zip(words) {
        for (eight, byte) in part.chunks_exact_mut(8).zip(word.to_le_bytes()) {
            // Byte j keeps bit j alone, and is then brought to 0x80 by adding 0x80 - 2^j.
            let spread = u64::from(byte).wrapping_mul(ONES) & 0x8040_2010_0804_0201;
            let ones = (spread.wrapping_add(0x0040_6070_787c_7e7f) >> 7) & ONES;
            ones.write_le(eight);
        }
    }
    out.truncate(n);
    Ok(out)
}

/// The bits of words as packed vectors: vector `j` of the result holds bit `j` of every word, for
/// `j < m`. Bits beyond the width of the words are zero.
pub fn planes<E: Element>(words: &[E], m: usize) -> Vec<Vec<u64>> {
    if m <= FEW_PLANES {
        return (0..m as u32).map(|j| plane(words, j)).collect();
    }
    let mut out = vec![Vec::with_capacity(words.len().div_ceil(64)); m];
    for part in words.chunks(64) {
        for (half, planes) in out.chunks_mut(64).enumerate() {
            let mut matrix = [0; 64];
            for (row, word) in matrix.iter_mut().zip(part) {
                // No word has bits from 128 on: they are zero.
                *row = word.to_u128().checked_shr(64 * half as u32).unwrap_or(0) as u64;
            }
            transpose(&mut matrix);
            for (plane, &row) in planes.iter_mut().zip(&matrix) {
                plane.push(row);
            }
        }
    }
    out
}

/// Bit `j` < 64 of every word, packed.
fn plane<E: Element>(words: &[E], j: u32) -> Vec<u64> {
    let mut bytes = [0u8; 64];
    words
        .chunks(64)
        .map(|part| {
            for (byte, word) in bytes.iter_mut().zip(part) {
                *byte = (word.to_u128() as u64 >> j) as u8;
            }
            packed(bytes.split_at(part.len()).0)
        })
        .collect()
}

/// Undoes [`planes`]: the `n` words whose bits `j` are packed in vector `j`. Bits beyond the last
/// vector are zero, and bits beyond the width of the words are dropped.
///
/// # Errors
///
/// [`InternalError`] if one of the vectors does not hold `n` bits.
pub fn from_planes<E: Element, P: AsRef<[u64]>>(
    planes: &[P],
    n: usize,
) -> Result<Vec<E>, InternalError> {
    const UNEVEN: InternalError = InternalError {
        found: "bits of words in vectors of another length",
    };
    if planes.iter().any(|plane| plane.as_ref().len() != words(n)) {
        return Err(UNEVEN);
    }
    let mut out = vec![E::default(); n];
    for (block, part) in out.chunks_mut(64).enumerate() {
        for (half, planes) in planes.chunks(64).enumerate() {
            let mut matrix = [0; 64];
            for (row, plane) in matrix.iter_mut().zip(planes) {
                *row = *plane.as_ref().get(block).ok_or(UNEVEN)?;
            }
            transpose(&mut matrix);
            for (word, &row) in part.iter_mut().zip(&matrix) {
                // Bits from 128 on are dropped: no word has them.
                let bits = u128::from(row).checked_shl(64 * half as u32).unwrap_or(0);
                *word = E::from_u128_wrapping(word.to_u128() | bits);
            }
        }
    }
    Ok(out)
}

/// Transposes a matrix of 64 rows of 64 bits: bit `j` of row `i` and bit `i` of row `j` are
/// swapped (Warren, "Hacker's Delight", section 7-3).
pub fn transpose(matrix: &mut [u64; 64]) {
    let mut size = 32;
    // The low half of every group of 2 * size bits.
    let mut mask = u64::MAX >> 32;
    while size > 0 {
        for rows in matrix.chunks_exact_mut(2 * size) {
            let (top, bottom) = rows.split_at_mut(size);
            for (x, y) in top.iter_mut().zip(bottom) {
                let difference = ((*x >> size) ^ *y) & mask;
                *x ^= difference << size;
                *y ^= difference;
            }
        }
        size /= 2;
        mask ^= mask << size;
    }
}
