//! Inputs near valid ones.

use crate::Random;

/// Most bytes that one mutation adds.
const MOST_ADDED: usize = 64;
/// Most bytes of an input.
const MOST: usize = 1 << 20;

/// Writes to `out` one input of the corpus with 1 to 8 mutations (few are likelier); one in 32 is random bytes.
pub fn mutate(corpus: &[Vec<u8>], random: &mut Random, out: &mut Vec<u8>) {
    out.clear();
    let base = corpus.get(random.below(corpus.len()));
    match base {
        Some(base) if random.below(32) != 0 => out.extend_from_slice(base),
        _ => {
            for _ in 0..random.below(256) {
                out.push(random.byte());
            }
        }
    }
    let count = 1 + (random.word() | 1 << 7).trailing_zeros();
    for _ in 0..count {
        once(corpus, random, out);
    }
    out.truncate(MOST);
}

/// A range of `out`, short ranges likelier.
fn range(random: &mut Random, len: usize) -> std::ops::Range<usize> {
    let start = random.below(len + 1);
    let most = if random.below(2) == 0 { 8 } else { len };
    let size = random.below((len - start).min(most) + 1);
    start..start + size
}

fn once(corpus: &[Vec<u8>], random: &mut Random, out: &mut Vec<u8>) {
    let len = out.len();
    match random.below(12) {
        0 | 1 => {
            let bit = random.below(8);
            if let Some(byte) = out.get_mut(random.below(len)) {
                *byte ^= 1 << bit;
            }
        }
        2 => {
            let value = random.byte();
            if let Some(byte) = out.get_mut(random.below(len)) {
                *byte = value;
            }
        }
        3 | 4 => extreme(random, out),
        5 => {
            let cut = if random.below(2) == 0 {
                random.below(len + 1)
            } else {
                len.saturating_sub(1 + random.below(40))
            };
            out.truncate(cut);
        }
        6 => {
            for _ in 0..=random.below(MOST_ADDED) {
                let byte = random.byte();
                out.push(byte);
            }
        }
        7 => drop(out.drain(range(random, len))),
        8 => {
            let part: Vec<u8> = out
                .get(range(random, len))
                .map(<[u8]>::to_vec)
                .unwrap_or_default();
            let at = random.below(len + 1);
            out.splice(at..at, part);
        }
        9 => {
            // The end of another input after our beginning.
            if let Some(other) = corpus.get(random.below(corpus.len())) {
                let at = if random.below(2) == 0 {
                    random.below(len + 1)
                } else {
                    len.min(other.len())
                };
                let from = if random.below(2) == 0 {
                    at.min(other.len())
                } else {
                    random.below(other.len() + 1)
                };
                out.truncate(at);
                out.extend_from_slice(other.get(from..).unwrap_or_default());
            }
        }
        10 => {
            let value = if random.below(2) == 0 { 0 } else { 0xff };
            let range = range(random, len);
            if let Some(part) = out.get_mut(range) {
                part.fill(value);
            }
        }
        _ => {
            let mut bytes = [0u8; 8];
            bytes.fill_with(|| random.byte());
            let at = random.below(len + 1);
            let size = random.below(9);
            out.splice(at..at, bytes.into_iter().take(size));
        }
    }
}

/// Overwrites 1, 2, 4 or 8 bytes, as if they were a length, with a number at which parsers often fail.
fn extreme(random: &mut Random, out: &mut [u8]) {
    let size = 1usize << random.below(4);
    let near = random.below(9) as u64;
    let value = match random.below(6) {
        0 => near,
        1 => near.wrapping_neg(),
        2 => 1u64 << (8 * size - 1),
        3 => (1u64 << random.below(64)).wrapping_sub(near),
        4 => (out.len() as u64).wrapping_sub(near),
        _ => random.word(),
    };
    let at = random.below(out.len());
    for (byte, new) in out
        .iter_mut()
        .skip(at)
        .zip(value.to_le_bytes().into_iter().take(size))
    {
        *byte = new;
    }
}
