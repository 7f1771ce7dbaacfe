//! Packed bits, least significant first: bit `i` of a vector is bit `i % 64` of word `i / 64`.

use crate::codec::Word;

/// Bit 0 of every byte.
const ONES: u64 = 0x0101_0101_0101_0101;

/// Number of words that hold `n` bits.
pub fn words(n: usize) -> usize {
    n.div_ceil(64)
}

/// Packs bits, given one to a byte (only bit 0 of a byte counts). The unused high bits of the last
/// word are zero.
pub fn pack(bits: &[u8]) -> Vec<u64> {
    bits.chunks(64)
        .map(|part| {
            part.chunks(8).rev().fold(0, |word, eight| {
                // Byte j moves to bit 56 + j; the partial products never meet, so nothing carries.
                let gathered = (u64::read_le(eight) & ONES).wrapping_mul(0x0102_0408_1020_4080);
                word << 8 | gathered >> 56
            })
        })
        .collect()
}

/// The first `n` bits of `words`, one to a byte. Bits beyond the words are zero.
pub fn unpack(words: &[u64], n: usize) -> Vec<u8> {
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
    out
}
