//! Sizes of batches and buckets of leaky AND triples.
//!
//! N triples come from N·B leaky ones, put at random in buckets of B. An adversary that attacks k leaky triples is caught
//! with probability 1 − 2^-k and otherwise knows one operand of these; it breaks a triple if a whole bucket is among them
//! ([`crate::budget`], which says how likely that may be). Wang, Ranellucci, Katz, "Global-scale secure multiparty computation" (CCS
//! 2017), section 4.3 (bucket sizes 3 from 280,000 triples on, 4 from 3,100 on, 5 from 320 on at 2^-40).

use crate::budget::{ATTEMPT_BITS, FEWEST_BETS, buckets};

/// Triples are made in multiples of this.
const STEP: usize = 128;
/// Buckets are never larger: what N = [`STEP`] needs.
const LARGEST: usize = 6;
/// A batch makes at most this many triples: where buckets of 3 begin to do, and 60 MB.
const MOST: usize = 1 << 18 | 1 << 17;

/// Size of the buckets of a batch of `n` triples.
pub(super) fn size(n: usize) -> usize {
    (FEWEST_BETS..LARGEST)
        .find(|size| buckets(n, *size) >= ATTEMPT_BITS)
        .unwrap_or(LARGEST) // enough for every batch
}

/// The least batch, a multiple of [`STEP`], for which buckets of `size` are enough.
fn least(size: usize) -> usize {
    let (mut low, mut high) = (0, 1 << 30);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if buckets(middle * STEP, size) >= ATTEMPT_BITS {
            high = middle;
        } else {
            low = middle;
        }
    }
    high * STEP
}

/// Lanes of the next batch if this many are missing, and this many are wanted because more will be missing soon. A larger
/// batch is taken if its smaller buckets make it cheaper.
pub(super) fn batch_lanes(missing: usize, wanted: usize) -> usize {
    let round = |lanes: usize| (64 * lanes).next_multiple_of(STEP).min(MOST);
    let need = round(wanted.max(missing));
    let cost = |n: usize| (n * size(n), usize::MAX - n);
    let larger = (3..LARGEST)
        .map(least)
        .filter(|n| (need..=MOST).contains(n));
    let cheaper = |best: usize, n: usize| if cost(n) < cost(best) { n } else { best };
    larger.fold(need, cheaper) / 64
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The least batch at 2^-`bits`.
    fn least_at(size: usize, bits: f64) -> usize {
        (1..)
            .map(|i| i * STEP)
            .find(|n| buckets(*n, size) >= bits)
            .unwrap()
    }

    #[test]
    fn sizes_are_those_of_the_paper() {
        // Within the rounding of the paper and of STEP, for the security of the paper.
        for (size, published) in [(3, 280_000.0), (4, 3_100.0), (5, 320.0)] {
            let ratio = least_at(size, 40.0) as f64 / published;
            assert!((0.95..1.25).contains(&ratio), "{size}: {ratio}");
        }
        assert_eq!([3, 4, 5].map(least), [390_784, 3_840, 384]);
        assert!(buckets(STEP, LARGEST) >= ATTEMPT_BITS);
        assert!(buckets(MOST, 3) >= ATTEMPT_BITS);
    }

    #[test]
    fn batches_hold_what_is_missing_and_are_secure() {
        for missing in [1, 2, 3, 10, 40, 48, 50, 100, 1000, 4000, 4608] {
            let n = 64 * batch_lanes(missing, missing);
            assert!(n >= 64 * missing && n.is_multiple_of(STEP));
            assert!(buckets(n, size(n)) >= ATTEMPT_BITS, "{n}");
        }
        // 3,500 triples in buckets of 5 would cost more than 3,900 in buckets of 4.
        assert_eq!(size(64 * batch_lanes(54, 54)), 4);
        assert_eq!(batch_lanes(1 << 20, 1 << 20), MOST / 64);
    }

    /// The bound against the exact chance for small numbers: k = B attacked triples in one bucket.
    #[test]
    fn the_bound_covers_the_smallest_attack() {
        let (n, size) = (1024usize, 4usize);
        let together = (1..size).fold(1.0, |p, i| p * (size - i) as f64 / (n * size - i) as f64);
        assert!(-(together * 2f64.powi(-(size as i32))).log2() >= buckets(n, size));
    }

    /// A bet on whole buckets, in batch after batch until one is noticed, breaks a triple with 2^-40 at most. Other attacks need a part
    /// of that.
    #[test]
    fn repeated_bets_blocked_all_batches_of_a_life() {
        for n in (1..=MOST / STEP).map(|i| i * STEP) {
            let life = buckets(n, size(n)) + (1.0 - 0.5f64.powi(size(n) as i32)).log2();
            assert!(life > 40.5, "batches of {n}: 2^-{life:.2}");
        }
    }
}
