//! Little-endian encoding of vectors of words: a fixed number of bytes a word, or a fixed number of bits.

use crate::domain::{DecodeError, DomainKind};
use crate::word::Word;

fn encode_width<T: Word, const W: usize>(v: &[T], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + v.len() * W, 0);
    let (_, tail) = out.split_at_mut(start);
    for (chunk, &x) in tail.chunks_exact_mut(W).zip(v) {
        x.write_le(chunk);
    }
}

fn decode_width<T: Word, const W: usize>(bytes: &[u8], out: &mut [T]) {
    for (o, chunk) in out.iter_mut().zip(bytes.chunks_exact(W)) {
        *o = T::read_le(chunk);
    }
}

macro_rules! by_width {
    ($width:expr, $function:ident, $word:ty, ($($argument:expr),*)) => {
        match $width {
            1 => $function::<$word, 1>($($argument),*),
            2 => $function::<$word, 2>($($argument),*),
            3 => $function::<$word, 3>($($argument),*),
            4 => $function::<$word, 4>($($argument),*),
            5 => $function::<$word, 5>($($argument),*),
            6 => $function::<$word, 6>($($argument),*),
            7 => $function::<$word, 7>($($argument),*),
            8 => $function::<$word, 8>($($argument),*),
            9 => $function::<$word, 9>($($argument),*),
            10 => $function::<$word, 10>($($argument),*),
            11 => $function::<$word, 11>($($argument),*),
            12 => $function::<$word, 12>($($argument),*),
            13 => $function::<$word, 13>($($argument),*),
            14 => $function::<$word, 14>($($argument),*),
            15 => $function::<$word, 15>($($argument),*),
            _ => $function::<$word, 16>($($argument),*),
        }
    };
}

/// Refuses widths that words do not have, once before the loop over them.
#[inline(always)]
fn fitting<T: Word>(width: usize) {
    assert!(
        (1..=T::BYTES).contains(&width),
        "internal error: words of {} bytes in {width} bytes",
        T::BYTES
    );
}

/// Appends `width` bytes a word, little endian. Panics if `width` is not in `1..=T::BYTES`.
pub(crate) fn encode<T: Word>(v: &[T], width: usize, out: &mut Vec<u8>) {
    fitting::<T>(width);
    by_width!(width, encode_width, T, (v, out));
}

/// Reads `out.len()` words of `width` bytes and refuses those not at most `max`. Panics if `width` is not in `1..=T::BYTES`.
pub(crate) fn decode<T: Word>(
    domain: DomainKind,
    width: usize,
    max: T,
    bytes: &[u8],
    out: &mut [T],
) -> Result<(), DecodeError> {
    fitting::<T>(width);
    let expected = out.len() * width;
    if bytes.len() != expected {
        out.fill(T::default());
        return Err(DecodeError::Length {
            domain,
            elements: out.len(),
            expected,
            got: bytes.len(),
        });
    }
    by_width!(width, decode_width, T, (bytes, &mut *out));
    if out.iter().fold(false, |bad, &x| bad | (x > max)) {
        let index = out.iter().take_while(|&&x| x <= max).count();
        out.fill(T::default());
        return Err(DecodeError::NotCanonical { domain, index });
    }
    Ok(())
}

/// Appends the low `bits` bits of every word one after another, least significant first; the last byte is filled with zeros.
pub(crate) fn encode_bits<T: Word>(v: &[T], bits: u32, out: &mut Vec<u8>) {
    out.reserve((v.len() * bits as usize).div_ceil(8));
    let (mut pending, mut filled) = (0u128, 0u32);
    for word in v {
        let (mut rest, mut left) = (word.to_u128(), bits);
        while left > 0 {
            let take = left.min(64);
            pending |= (rest & (u128::MAX >> (128 - take))) << filled;
            filled += take;
            rest >>= take;
            left -= take;
            while filled >= 8 {
                out.push(pending as u8);
                pending >>= 8;
                filled -= 8;
            }
        }
    }
    if filled > 0 {
        out.push(pending as u8);
    }
}

/// Reads `out.len()` words of `bits` bits each: what [`encode_bits`] wrote, in exactly as many bytes.
pub(crate) fn decode_bits<T: Word>(
    domain: DomainKind,
    bits: u32,
    bytes: &[u8],
    out: &mut [T],
) -> Result<(), DecodeError> {
    let expected = (out.len() * bits as usize).div_ceil(8);
    let wrong_length = DecodeError::Length {
        domain,
        elements: out.len(),
        expected,
        got: bytes.len(),
    };
    if bytes.len() != expected {
        out.fill(T::default());
        return Err(wrong_length);
    }
    let mut source = bytes.iter();
    let (mut pending, mut filled) = (0u128, 0u32);
    for slot in out {
        let (mut word, mut have) = (0u128, 0u32);
        while have < bits {
            let take = (bits - have).min(64);
            while filled < take {
                let byte = source.next().ok_or(wrong_length)?;
                pending |= u128::from(*byte) << filled;
                filled += 8;
            }
            word |= (pending & (u128::MAX >> (128 - take))) << have;
            pending >>= take;
            filled -= take;
            have += take;
        }
        *slot = T::from_u128_wrapping(word);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// A width that does not fit is refused: no byte is dropped, and none is filled with zeros.
    #[test]
    fn missing_parts_blocked_words_in_more_bytes_than_they_have() {
        let refused = |f: fn()| std::panic::catch_unwind(f).is_err();
        assert!(refused(|| encode(&[1u64], 9, &mut Vec::new())));
        assert!(refused(|| encode(&[1u64], 0, &mut Vec::new())));
        assert!(refused(|| encode(&[1u128], 17, &mut Vec::new())));
        assert!(refused(|| {
            decode(DomainKind::Bits, 9, u64::MAX, &[0; 9], &mut [0u64]).unwrap_err();
        }));
        assert!(refused(|| 1u64.write_le(&mut [0; 9])));
        assert!(refused(|| assert_eq!(u64::read_le(&[0; 9]), 0)));
        for width in 1..=8 {
            let mut bytes = vec![9];
            encode(&[0x42u64, 7], width, &mut bytes);
            let mut back = [0u64; 2];
            decode(DomainKind::Bits, width, u64::MAX, &bytes[1..], &mut back).unwrap();
            assert_eq!(back, [0x42, 7]);
        }
    }

    #[test]
    fn the_first_word_that_is_no_element_is_named() {
        let mut out = [0u64; 3];
        let refused = decode(DomainKind::Fq(5), 1, 4, &[4, 5, 6], &mut out);
        let (domain, index) = (DomainKind::Fq(5), 1);
        assert_eq!(refused, Err(DecodeError::NotCanonical { domain, index }));
        assert_eq!(out, [0; 3]);
    }

    #[test]
    fn packed_words_come_back_in_as_few_bytes_as_their_bits_need() {
        for bits in (1u32..=128).chain([63, 9, 1]) {
            for n in [0usize, 1, 2, 7, 8, 65] {
                let mask = u128::MAX >> (128 - bits);
                let words: Vec<u128> = (0..n as u128)
                    .map(|i| (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835) & mask)
                    .collect();
                let mut bytes = vec![7u8];
                encode_bits(&words, bits, &mut bytes);
                assert_eq!(bytes.len(), 1 + (n * bits as usize).div_ceil(8));
                let mut back = vec![0u128; n];
                decode_bits(DomainKind::Z2k(bits), bits, &bytes[1..], &mut back).unwrap();
                assert_eq!(back, words);
                if n > 0 {
                    assert!(
                        decode_bits(DomainKind::Z2k(bits), bits, &bytes[2..], &mut back).is_err()
                    );
                }
            }
        }
    }
}
