//! The distribution of `Domain::random`.
//!
//! The chi-square statistic of a uniform sample over `cells` cells has mean `cells - 1` and
//! variance `2 (cells - 1)`. The tests refuse values further than six standard deviations from the
//! mean, which a correct generator gives with a probability below 10^-6. Seeds are fixed, so the
//! tests pass always or never.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a failure here is a failed test

use keyquorum_math::{BitLanes, Domain, Element, Prg, Z2k64, Z2k128, Zq, Zq128};
use proptest::prelude::*;

fn assert_uniform(cells: usize, samples: impl Iterator<Item = usize>) {
    let mut counts = vec![0u64; cells];
    samples.for_each(|cell| counts[cell] += 1);
    let total: u64 = counts.iter().sum();
    let expected = total as f64 / cells as f64;
    assert!(expected > 50.0, "too few samples for the chi-square law");
    let square = |&count: &u64| (count as f64 - expected).powi(2) / expected;
    let statistic: f64 = counts.iter().map(square).sum();
    let mean = (cells - 1) as f64;
    let deviation = (statistic - mean) / (2.0 * mean).sqrt();
    assert!(
        deviation.abs() < 6.0,
        "{deviation} standard deviations over {cells} cells"
    );
}

fn sample<D: Domain>(domain: &D, n: usize) -> Vec<D::E> {
    let mut out = vec![domain.one(); n];
    domain.random(&mut Prg::new(*b"fixed test seed.", 0), &mut out);
    out
}

#[test]
fn small_fields_hit_every_element_equally() {
    for q in [3u64, 5, 7, 17, 251, 257, 521] {
        let values = sample(&Zq::new(q).unwrap(), 1 << 18);
        assert_uniform(q as usize, values.iter().map(|&x| x as usize));
        // Neighbours are independent.
        if q < 20 {
            let pairs = values.chunks_exact(2).map(|pair| pair[0] * q + pair[1]);
            assert_uniform((q * q) as usize, pairs.map(|x| x as usize));
        }
    }
}

#[test]
fn wide_fields_are_uniform_in_high_and_low_parts() {
    for q in [18_446_744_073_709_551_629, (1 << 100) - 15, (1 << 127) - 1] {
        let values = sample(&Zq128::new(q).unwrap(), 1 << 17);
        assert!(values.iter().all(|&x| x < q));
        assert_uniform(300, values.iter().map(|&x| (x / (q / 300 + 1)) as usize));
        assert_uniform(300, values.iter().map(|&x| (x % 300) as usize));
    }
}

#[test]
fn large_fields_are_uniform_in_high_and_low_parts() {
    for q in [
        65_537,
        35_184_358_850_561,
        (1 << 61) - 1,
        (1 << 61) + 15,
        (1u64 << 62) - 57,
    ] {
        let values = sample(&Zq::new(q).unwrap(), 1 << 17);
        assert!(values.iter().all(|&x| x < q));
        let cells = 300;
        let high = |&x: &u64| (u128::from(x) * cells as u128 / u128::from(q)) as usize;
        assert_uniform(cells, values.iter().map(high));
        let low = values.iter().map(|&x| (x % 256) as usize);
        if q > 1 << 40 {
            assert_uniform(256, low);
        }
    }
}

/// All bits below `bits` are fair, and all above are zero.
fn assert_fair_bits<E: Element>(values: &[E], bits: u32) {
    for i in 0..bits {
        assert_uniform(2, values.iter().map(|x| (x.to_u128() >> i) as usize & 1));
        if i + 8 <= bits {
            assert_uniform(
                256,
                values.iter().map(|x| (x.to_u128() >> i) as usize & 255),
            );
        }
    }
    assert!(bits == 128 || values.iter().all(|x| x.to_u128() >> bits == 0));
}

#[test]
fn rings_have_fair_bits() {
    for k in [1, 13, 60, 64] {
        assert_fair_bits(&sample(&Z2k64::new(k).unwrap(), 1 << 15), k);
    }
    for k in [65, 104, 128] {
        assert_fair_bits(&sample(&Z2k128::new(k).unwrap(), 1 << 15), k);
    }
    assert_fair_bits(&sample(&BitLanes, 1 << 15), 64);
}

proptest! {
    /// Parties that share a seed draw the same elements, however they split their requests.
    #[test]
    fn cuts_do_not_matter(
        seed: [u8; 16],
        cuts in prop::collection::vec(0usize..300, 1..10),
        q in prop::sample::select(vec![3u64, 257, 1_152_921_504_606_584_833, (1 << 61) + 15]),
    ) {
        fn check<D: Domain>(domain: &D, seed: [u8; 16], cuts: &[usize]) {
            let mut whole = vec![domain.zero(); cuts.iter().sum()];
            let mut prg = Prg::new(seed, 5);
            domain.random(&mut prg, &mut whole);
            let mut parts = Vec::new();
            let mut other = Prg::new(seed, 5);
            for &cut in cuts {
                let mut part = vec![domain.one(); cut];
                domain.random(&mut other, &mut part);
                parts.extend(part);
            }
            assert_eq!(parts, whole);
            assert_eq!(prg.next_u64(), other.next_u64());
        }
        check(&Zq::new(q).unwrap(), seed, &cuts);
        check(&Z2k64::new(40).unwrap(), seed, &cuts);
        check(&Z2k128::new(100).unwrap(), seed, &cuts);
        check(&BitLanes, seed, &cuts);
    }
}
