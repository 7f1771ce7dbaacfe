//! AND triples: leaky ones, verified, then put at random in buckets and combined so that what leaks of some is not enough.
//!
//! Of a bucket (x_l, y_l, z_l): x = ⊕ x_l, y = y_0, z = ⊕ (z_l ⊕ d_l·x_l) for opened d_l = y_0 ⊕ y_l (Wang, Ranellucci, Katz, CCS
//! 2017, figure 10). The buckets are tossed when the leaky triples are fixed, and told after these have passed their check.

use keyquorum_math::Prg;
use keyquorum_ot::transpose;
use zeroize::{Zeroize, Zeroizing};

use super::leaky::Triples;
use super::verify::{Toss, check, finish_toss, start_toss};
use super::{AuthenticatedBits, PARTS, buckets, leaky, open};
use crate::error::Result;
use crate::graph::{SendFn, Step, and_then, join, then, then_maybe};
use crate::value::Share;

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
    fn push(&mut self, [x, y, z]: &Triples) {
        for (share, words) in [(x, &mut self.x), (y, &mut self.y), (z, &mut self.z)] {
            transpose::words(&share.parts, share.len(), words);
        }
    }
}

/// The share of which these are the words.
pub(in super::super) fn sliced(words: &[u64]) -> Share<u64> {
    let mut share = Share::zeros(PARTS, 0);
    transpose::planes(words, &mut share.parts);
    share
}

/// One word a bit: its share, then those of its MAC.
pub(in super::super) fn words(share: &Share<u64>) -> Zeroizing<Vec<u64>> {
    let mut words = Zeroizing::new(Vec::with_capacity(64 * share.len()));
    transpose::words(&share.parts, share.len(), &mut words);
    words
}

/// A task that puts `lanes` (an even number of) lanes of triples in stock.
pub(super) fn task(lanes: usize) -> SendFn<AuthenticatedBits, ()> {
    let size = buckets::size(64 * lanes);
    let raw = collect(lanes * size, Words::default());
    let verified = and_then(raw, |_, raw| {
        Ok(join(check(), start_toss(), |_, (), toss| Ok((raw, toss))))
    });
    let tossed = and_then(verified, |_, (raw, toss)| {
        Ok(then(finish_toss(toss), |_, seed| Ok((raw, seed))))
    });
    and_then(tossed, move |_, (raw, seed)| Ok(combine(raw, &seed, size)))
}

/// Collects this many lanes of leaky triples, chunk after chunk.
fn collect(lanes: usize, mut words: Words) -> SendFn<AuthenticatedBits, Words> {
    Box::new(move |p, out| {
        let most = (CHUNK / (p.parties - 1).max(1)).next_multiple_of(2);
        let now = lanes.min(most);
        then_maybe(leaky::task(now), move |_, triples| -> Result<_> {
            words.push(&triples);
            Ok(match lanes - now {
                0 => Step::Done(words),
                rest => Step::Next(collect(rest, words)),
            })
        })(p, out)
    })
}

/// A random order of `n` numbers (Fisher and Yates).
pub(in super::super) fn permutation(n: usize, seed: &Toss) -> Vec<u32> {
    let mut key = [0u8; 16];
    for (k, s) in key.iter_mut().zip(seed) {
        *k = *s;
    }
    let mut prg = Prg::new(key, 0);
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

fn pick(words: &[u64], i: u32) -> u64 {
    words.get(i as usize).copied().unwrap_or(0)
}

fn combine(raw: Words, seed: &Toss, size: usize) -> SendFn<AuthenticatedBits, ()> {
    let order = permutation(raw.x.len(), seed);
    let n = order.len() / size;
    // Differences of the first y to the others: all of the second of each bucket, all of the third, …
    let mut differences = vec![0u64; n * (size - 1)];
    for (i, bucket) in order.chunks_exact(size).enumerate() {
        let mut members = bucket.iter().map(|m| pick(&raw.y, *m));
        let first = members.next().unwrap_or(0);
        for (l, y) in members.enumerate() {
            if let Some(slot) = differences.get_mut(l * n + i) {
                *slot = first ^ y;
            }
        }
    }
    let opening = open(sliced(&differences));
    differences.zeroize();
    then(opening, move |p, opened| {
        let mut combined = Words::default();
        for (i, bucket) in order.chunks_exact(size).enumerate() {
            let (mut x, mut y, mut z) = (0, 0, 0);
            for (l, member) in bucket.iter().enumerate() {
                x ^= pick(&raw.x, *member);
                z ^= pick(&raw.z, *member);
                if l == 0 {
                    y = pick(&raw.y, *member);
                    continue;
                }
                let at = (l - 1) * n + i;
                let d = opened.get(at / 64).map_or(0, |lane| lane >> (at % 64) & 1);
                z ^= pick(&raw.x, *member) & d.wrapping_neg();
            }
            combined.x.push(x);
            combined.y.push(y);
            combined.z.push(z);
        }
        let [x, y, z] = [&combined.x, &combined.y, &combined.z].map(|words| sliced(words));
        p.supply.ands.put([x, y, z]);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::permutation;

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
