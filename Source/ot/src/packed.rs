//! Words of a fixed number of bits, packed without gaps, least significant bit first.

use keyquorum_math::Element;

use crate::tile::TILE;
use crate::{OtError, check_same, uneven};

/// Bytes of `n` words of `width` bits.
pub fn packed_bytes(n: usize, width: u32) -> usize {
    (n * width as usize).div_ceil(8)
}

/// Appends the low `width` bits (1..=64) of every word.
pub fn pack(words: impl ExactSizeIterator<Item = u64>, width: u32, out: &mut Vec<u8>) {
    let end = out.len() + packed_bytes(words.len(), width);
    if width == 64 {
        out.reserve(8 * words.len());
        out.extend(words.flat_map(u64::to_le_bytes));
        return;
    }
    out.reserve(packed_bytes(words.len(), width) + 8);
    let mask = u64::MAX >> (64 - width);
    let (mut pending, mut used) = (0u64, 0);
    for word in words {
        let word = word & mask;
        pending |= word << used;
        used += width;
        if used >= 64 {
            out.extend_from_slice(&pending.to_le_bytes());
            used -= 64;
            // The bits that did not fit; a shift by the whole width gives zero.
            pending = word.checked_shr(width - used).unwrap_or(0);
        }
    }
    out.extend_from_slice(&pending.to_le_bytes());
    out.truncate(end);
}

/// Reads words that [`pack`] wrote.
///
/// # Errors
/// [`OtError::Internal`] if these are not the bytes of so many words.
pub fn unpack(bytes: &[u8], width: u32, out: &mut [u64]) -> Result<(), OtError> {
    check_same(bytes.len(), packed_bytes(out.len(), width))?;
    let mask = u64::MAX >> (64 - width);
    let mut chunks = bytes.chunks(8).map(|chunk| match chunk.first_chunk() {
        Some(full) => u64::from_le_bytes(*full),
        None => chunk
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u64::from(*byte)),
    });
    let (mut pending, mut left) = (0u64, 0);
    for word in out {
        if left >= width {
            *word = pending & mask;
            // Here, too, a shift by the whole width gives zero.
            pending = pending.checked_shr(width).unwrap_or(0);
            left -= width;
        } else {
            let next = chunks.next().ok_or_else(uneven)?;
            *word = (pending | next << left) & mask;
            let taken = width - left;
            pending = next.checked_shr(taken).unwrap_or(0);
            left = 64 - taken;
        }
    }
    Ok(())
}

/// Bytes of `n` elements of `width` bits (1..=128), as [`pack_words`] writes them.
pub(crate) fn wide_bytes(n: usize, width: u32) -> usize {
    packed_bytes(n, width.min(64)) + packed_bytes(n, width.saturating_sub(64))
}

/// Appends the low `width` bits (1..=128) of every element: the low halves of all, then the high halves of all.
pub(crate) fn pack_words<E: Element>(words: &[E], width: u32, out: &mut Vec<u8>) {
    pack(words.iter().map(|w| w.to_u128() as u64), width.min(64), out);
    if width > 64 {
        let high = words.iter().map(|w| (w.to_u128() >> 64) as u64);
        pack(high, width - 64, out);
    }
}

/// Reads at most [`TILE`] elements that [`pack_words`] wrote in one go.
pub(crate) fn unpack_words<E: Element>(
    bytes: &[u8],
    width: u32,
    out: &mut [E],
) -> Result<(), OtError> {
    let mut words = [0u64; TILE];
    let low = width.min(64);
    let parts = bytes.split_at_checked(packed_bytes(out.len(), low));
    let (first, second) = parts.ok_or_else(uneven)?;
    let words = words.get_mut(..out.len()).ok_or_else(uneven)?;
    unpack(first, low, words)?;
    for (o, w) in out.iter_mut().zip(words.iter()) {
        *o = E::from_u128_wrapping(u128::from(*w));
    }
    if width > 64 {
        unpack(second, width - 64, words)?;
        for (o, w) in out.iter_mut().zip(words.iter()) {
            *o = E::from_u128_wrapping(o.to_u128() | u128::from(*w) << 64);
        }
    } else {
        check_same(second.len(), 0)?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn words_come_back(width in 1u32..=64, words in prop::collection::vec(any::<u64>(), 0..200)) {
            let mut bytes = vec![7];
            pack(words.iter().copied(), width, &mut bytes);
            prop_assert_eq!(bytes.len(), 1 + packed_bytes(words.len(), width));
            let mut back = vec![0; words.len()];
            unpack(&bytes[1..], width, &mut back).unwrap();
            prop_assert!(unpack(&bytes, width, &mut back).is_err());
            let mask = u64::MAX >> (64 - width);
            prop_assert!(words.iter().zip(&back).all(|(a, b)| a & mask == *b));
        }
    }
}
