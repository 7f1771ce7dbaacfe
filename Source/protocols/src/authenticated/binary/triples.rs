//! AND triples: leaky ones, verified, then put at random in buckets and combined so that what leaks of some is not enough.
//!
//! Of a bucket (x_l, y_l, z_l): x = ⊕ x_l, y = y_0, z = ⊕ (z_l ⊕ d_l·x_l) for opened d_l = y_0 ⊕ y_l (Wang, Ranellucci, Katz, CCS
//! 2017, figure 10). The buckets are tossed when the leaky triples are fixed, and revealed after these have passed their check.

use keyquorum_math::Prg;
use keyquorum_ot::transpose;
use zeroize::{Zeroize, Zeroizing};

use super::leaky::Triples;
use super::verify::{Toss, check, finish_toss, first_half, start_toss};
use super::{AuthenticatedBits, PARTS, buckets, leaky, open};
use crate::error::{EngineError, Result};
use crate::task::{SendFn, Step, and_then, at_start, join, then, then_maybe};
use crate::value::{Share, picked};

/// Leaky triples that are made at once, in lanes, all peers together: bounds memory, about 100 bytes a triple and peer.
const CHUNK: usize = 1 << 11;

/// One word a bit: the share of the bit, then those of its MAC.
#[derive(Default)]
struct Words {
    x: Vec<u64>,
    y: Vec<u64>,
    z: Vec<u64>,
}

impl Drop for Words {
    fn drop(&mut self) {
        self.x.zeroize();
        self.y.zeroize();
        self.z.zeroize();
    }
}

impl Words {
    fn push(&mut self, [x, y, z]: &Triples) -> Result<()> {
        for (share, words) in [(x, &mut self.x), (y, &mut self.y), (z, &mut self.z)] {
            append_words(share, words)?;
        }
        Ok(())
    }
}

/// The share of which these are the words.
pub(in super::super) fn sliced(words: &[u64]) -> Result<Share<u64>> {
    let mut share = Share::zeros(PARTS, 0);
    transpose::planes(words, &mut share.parts).map_err(EngineError::local_ot)?;
    Ok(share)
}

/// One word a bit: its share, then those of its MAC.
pub(in super::super) fn words(share: &Share<u64>) -> Result<Zeroizing<Vec<u64>>> {
    let mut words = Zeroizing::new(Vec::with_capacity(64 * share.len()));
    append_words(share, &mut words)?;
    Ok(words)
}

fn append_words(share: &Share<u64>, words: &mut Vec<u64>) -> Result<()> {
    share.check(PARTS, share.len())?;
    transpose::words(&share.parts, share.len(), words).map_err(EngineError::local_ot)
}

/// A task that makes `lanes` (an even number) lanes of triples.
pub(super) fn task(lanes: usize) -> SendFn<AuthenticatedBits, ()> {
    let size = buckets::size(64 * lanes);
    let raw = collect(lanes * size, Words::default());
    let verified = and_then(raw, |_, raw| {
        Ok(join(check(), start_toss(), |_, (), toss| Ok((raw, toss))))
    });
    let tossed = and_then(verified, |_, (raw, toss)| {
        Ok(then(finish_toss(toss), |_, seed| Ok((raw, seed))))
    });
    and_then(tossed, move |_, (raw, seed)| combine(raw, &seed, size))
}

/// Collects this many lanes of leaky triples, chunk after chunk.
fn collect(lanes: usize, mut words: Words) -> SendFn<AuthenticatedBits, Words> {
    at_start(move |p: &mut AuthenticatedBits| {
        let most = (CHUNK / (p.parties - 1).max(1)).next_multiple_of(2);
        let now = lanes.min(most);
        let triples = leaky::task(now);
        Ok(then_maybe(triples, move |_, triples| {
            words.push(&triples)?;
            Ok(match lanes - now {
                0 => Step::Done(words),
                rest => Step::Next(collect(rest, words)),
            })
        }))
    })
}

/// A random order of `n` numbers (Fisher and Yates).
pub(in super::super) fn permutation(n: usize, seed: &Toss) -> Vec<u32> {
    let mut prg = Prg::new(first_half(seed), 0);
    let mut order: Vec<u32> = (0..n as u32).collect();
    let mut random = vec![0u64; n];
    prg.fill_u64(&mut random);
    for (i, r) in random.iter().enumerate().skip(1).rev() {
        // No order is more likely than 1 + 2^-23 times its share, for less than 2^21 numbers.
        let j = ((u128::from(*r) * (i as u128 + 1)) >> 64) as usize;
        order.swap(i, j);
    }
    order
}

/// Leaky triples in buckets: those of bucket i are consecutive, and of `n` buckets.
struct Buckets {
    x: Zeroizing<Vec<u64>>,
    y: Zeroizing<Vec<u64>>,
    z: Zeroizing<Vec<u64>>,
    size: usize,
    n: usize,
}

impl Buckets {
    /// Buckets of `size` in this order.
    fn new(raw: &Words, order: &[u32], size: usize) -> Result<Self> {
        let all = [&raw.x, &raw.y, &raw.z];
        if size == 0 || !order.len().is_multiple_of(size) || all.map(Vec::len) != [order.len(); 3] {
            return Err(EngineError::uneven());
        }
        Ok(Self {
            x: picked(&raw.x, order)?.into(),
            y: picked(&raw.y, order)?.into(),
            z: picked(&raw.z, order)?.into(),
            size,
            n: order.len() / size,
        })
    }

    /// Differences of the first y to the others: all of the second of each bucket, all of the third, …
    fn differences(&self) -> Result<Zeroizing<Vec<u64>>> {
        let mut differences = Zeroizing::new(Vec::with_capacity(self.n * (self.size - 1)));
        for l in 1..self.size {
            for bucket in self.y.chunks_exact(self.size) {
                let (Some(first), Some(y)) = (bucket.first(), bucket.get(l)) else {
                    return Err(EngineError::uneven());
                };
                differences.push(first ^ y);
            }
        }
        Ok(differences)
    }

    /// One triple of every bucket; `opened` has the bits of [`Buckets::differences`].
    fn combine(&self, opened: &[u64]) -> Result<Words> {
        let mut combined = Words::default();
        let members = self
            .x
            .chunks_exact(self.size)
            .zip(self.z.chunks_exact(self.size));
        for (i, ((xs, zs), ys)) in members.zip(self.y.chunks_exact(self.size)).enumerate() {
            let (mut x, mut z) = (0, 0);
            for (l, (member, product)) in xs.iter().zip(zs).enumerate() {
                x ^= member;
                z ^= product;
                if l > 0 {
                    let at = (l - 1) * self.n + i;
                    let lane = opened.get(at / 64).ok_or_else(EngineError::uneven)?;
                    z ^= member & (lane >> (at % 64) & 1).wrapping_neg();
                }
            }
            combined.x.push(x);
            combined
                .y
                .push(*ys.first().ok_or_else(EngineError::uneven)?);
            combined.z.push(z);
        }
        Ok(combined)
    }
}

fn combine(raw: Words, seed: &Toss, size: usize) -> Result<SendFn<AuthenticatedBits, ()>> {
    let buckets = Buckets::new(&raw, &permutation(raw.x.len(), seed), size)?;
    drop(raw);
    let opening = open(sliced(&buckets.differences()?)?);
    Ok(then(opening, move |p, opened| {
        let combined = buckets.combine(&opened)?;
        let [x, y, z] = [&combined.x, &combined.y, &combined.z].map(|words| sliced(words));
        p.preprocessing.ands.put([x?, y?, z?])
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn internal<T>(result: Result<T>) -> bool {
        matches!(result, Err(EngineError::Internal(_)))
    }

    fn raw(x: &[u64], y: &[u64], z: &[u64]) -> Words {
        Words {
            x: x.to_vec(),
            y: y.to_vec(),
            z: z.to_vec(),
        }
    }

    /// A missing triple would count as one of zeros, which everybody knows.
    #[test]
    fn missing_parts_blocked_buckets_of_which_a_part_is_missing() {
        let four = [1, 2, 3, 4];
        let made =
            |y: &[u64], order: &[u32], size| Buckets::new(&raw(&four, y, &four), order, size);
        assert!(internal(made(&four[1..], &[0, 1, 2, 3], 2)));
        assert!(internal(made(&four, &[0, 1, 2], 2)));
        assert!(internal(made(&four, &[0, 1, 2], 3)));
        assert!(internal(made(&four, &[0, 1, 2, 4], 2)));
        assert!(internal(made(&four, &[0, 1, 2, 3], 3)));
        assert!(internal(made(&four, &[0, 1, 2, 3], 0)));
        assert!(made(&four, &[0, 1, 2, 3], 2).is_ok_and(|b| internal(b.combine(&[]))));
        let mut share = Share::zeros(PARTS, 2);
        assert!(words(&share).is_ok_and(|words| words.len() == 128));
        share.parts.pop();
        assert!(internal(words(&share)));
        share.parts.push(vec![0; 1]);
        assert!(internal(words(&share)));
    }

    /// Words of one bit, of one party: the product of the sums.
    #[test]
    fn buckets_are_combined() {
        let bits = |all: u64| (0..6).map(|i| all >> i & 1).collect::<Vec<u64>>();
        for (x, y) in (0..64).flat_map(|x| (0..64).map(move |y| (x, y))) {
            let raw = raw(&bits(x), &bits(y), &bits(x & y));
            let order = permutation(6, &[x as u8; 32]);
            let buckets = Buckets::new(&raw, &order, 3);
            let Ok(buckets) = buckets else { unreachable!() };
            let Ok(differences) = buckets.differences() else {
                unreachable!()
            };
            let opened = differences.iter().rev().fold(0, |lane, d| lane << 1 | d);
            let Ok(all) = buckets.combine(&[opened]) else {
                unreachable!()
            };
            assert_eq!(all.x.len(), 2);
            for i in 0..2 {
                assert_eq!(all.z[i], all.x[i] & all.y[i]);
                let sum = (0..3).fold(0, |sum, l| sum ^ raw.x[order[3 * i + l] as usize]);
                assert_eq!(all.x[i], sum);
            }
        }
    }

    #[test]
    fn every_number_comes_once_and_anywhere() {
        let mut first = vec![0u32; 6];
        for seed in 0..6000u32 {
            let mut bytes = [0; 32];
            bytes[..4].copy_from_slice(&seed.to_le_bytes());
            let order = permutation(6, &bytes);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4, 5]);
            first[order[0] as usize] += 1;
        }
        // 1000 each, standard deviation 29: eight of them.
        assert!(first.iter().all(|n| n.abs_diff(1000) < 232), "{first:?}");
    }
}
