//! Sizes of batches and buckets of leaky AND triples.
//!
//! N triples come from N·B leaky ones, put at random in buckets of B. An adversary that attacks k leaky triples is caught
//! with probability 1 − 2^-k and otherwise knows one operand of these; it breaks a triple if a whole bucket is among them:
//! at most N·C(k, B)/C(N·B, B)·2^-k, for the best k. Wang, Ranellucci, Katz, "Global-scale secure multiparty computation" (CCS
//! 2017), section 4.3 (bucket sizes 3 from 280,000 triples on, 4 from 3,100 on, 5 from 320 on at 2^-40).

/// log2 of the probability that is allowed.
const SECURITY: f64 = 40.0;
/// Triples are made in multiples of this.
const STEP: usize = 128;
/// Buckets are never larger: what N = [`STEP`] needs.
const LARGEST: usize = 6;
/// A batch makes at most this many triples: where buckets of 3 begin to do, and 45 MB.
const MOST: usize = 1 << 18 | 1 << 15;

/// log2 of the number of ways to take `k` of `n`.
pub(in super::super) fn log2_choose(n: usize, k: usize) -> f64 {
    (0..k.min(n - k))
        .map(|i| ((n - i) as f64 / (i + 1) as f64).log2())
        .sum()
}

/// −log2 of the probability that some triple of a batch of `n` with buckets of `size` is broken.
pub(in super::super) fn security(n: usize, size: usize) -> f64 {
    let best = (size..=4 * size)
        .map(|k| log2_choose(k, size) - k as f64)
        .fold(f64::NEG_INFINITY, f64::max);
    log2_choose(n * size, size) - (n as f64).log2() - best
}

/// Size of the buckets of a batch of `n` triples.
pub(super) fn size(n: usize) -> usize {
    (2..LARGEST)
        .find(|size| security(n, *size) >= SECURITY)
        .unwrap_or(LARGEST)
}

/// The least batch, a multiple of [`STEP`], for which buckets of `size` are enough.
fn least(size: usize) -> usize {
    let (mut low, mut high) = (0, 1 << 30);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if security(middle * STEP, size) >= SECURITY {
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
    let cost = |n: usize| n * size(n);
    let larger = (3..LARGEST)
        .map(least)
        .filter(|n| (need..=MOST).contains(n));
    larger
        .chain([need])
        .min_by_key(|n| (cost(*n), usize::MAX - n))
        .unwrap_or(need)
        / 64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_paper() {
        // Within the rounding of the paper and of STEP.
        for (size, published) in [(3, 280_000.0), (4, 3_100.0), (5, 320.0)] {
            let ratio = least(size) as f64 / published;
            assert!((0.95..1.25).contains(&ratio), "{size}: {}", least(size));
        }
        assert!(security(STEP, LARGEST) >= SECURITY);
        assert!(security(MOST, 3) >= SECURITY);
    }

    #[test]
    fn batches_hold_what_is_missing_and_are_secure() {
        for missing in [1, 2, 3, 10, 40, 48, 50, 100, 1000, 4000, 4608] {
            let n = 64 * batch_lanes(missing, missing);
            assert!(n >= 64 * missing && n.is_multiple_of(STEP));
            assert!(security(n, size(n)) >= SECURITY, "{n}");
        }
        // 2,800 triples in buckets of 5 would cost more than 3,100 in buckets of 4.
        assert_eq!(size(64 * batch_lanes(44, 44)), 4);
        assert_eq!(batch_lanes(1 << 20, 1 << 20), MOST / 64);
    }

    /// The bound against the exact chance for small numbers: k = B attacked triples in one bucket.
    #[test]
    fn the_bound_covers_the_smallest_attack() {
        let (n, size) = (1024usize, 4usize);
        let together = (1..size).fold(1.0, |p, i| p * (size - i) as f64 / (n * size - i) as f64);
        assert!(-(together * 2f64.powi(-(size as i32))).log2() >= security(n, size));
    }
}
