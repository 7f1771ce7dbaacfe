//! All passes give the same results, bit by bit.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // a failed test may panic

use super::*;
use crate::prg::Prg;
use crate::zq::is_prime;

/// The largest prime below `limit` that is 1 modulo 2n, and the smallest one from `limit` on.
fn primes_around(limit: u64, n: usize) -> [u64; 2] {
    let step = 2 * n as u64;
    let mut below = (1..limit / step).rev().map(|k| k * step + 1);
    [below.find(|q| is_prime(*q)).unwrap(), prime_from(limit, n)]
}

/// The smallest prime from `limit` on that is 1 modulo 2n.
fn prime_from(limit: u64, n: usize) -> u64 {
    let step = 2 * n as u64;
    let mut above = (limit / step..).map(|k| k * step + 1);
    above.find(|q| is_prime(*q)).unwrap()
}

/// Moduli of 30 to 62 bits, on both sides of the bounds of the passes, and the smallest ones.
fn moduli(n: usize) -> Vec<u64> {
    let limits = [30, 36, 43, 48, 49, 50, 52, 55, 59, 60, 61].map(|bits| 1 << bits);
    let mut all: Vec<u64> = limits.iter().flat_map(|l| primes_around(*l, n)).collect();
    all.push(primes_around(1 << 62, n)[0]);
    all.push(prime_from(4 * n as u64, n));
    all
}

/// Random polynomials, and those with the largest and smallest values.
fn inputs(q: u64, n: usize) -> Vec<Vec<u64>> {
    let field = Zq::new(q).unwrap();
    let mut prg = Prg::new([9; 16], q);
    let mut random = || {
        let mut out = vec![0; n];
        field.random(&mut prg, &mut out);
        out
    };
    let mut all = vec![random(), random(), vec![q - 1; n], vec![0; n], vec![1; n]];
    all.extend([2, 16, n].map(|period| {
        let value = |i: usize| if i % period < period / 2 { q - 1 } else { 0 };
        (0..n).map(value).collect()
    }));
    // One coefficient alone, among the first, in the middle, at the end.
    all.extend([0, 1, n / 2, n - 1].map(|at| {
        let mut one = vec![0; n];
        one[at] = q - 1;
        one
    }));
    all
}

#[test]
fn passes_agree_on_every_modulus_and_ring_degree() {
    let mut best_names = Vec::new();
    for log_n in 3..=15 {
        let n = 1 << log_n;
        for q in moduli(n) {
            let best = NttTables::new(q, n).unwrap();
            let mut portable = best.clone();
            portable.passes = Passes::Portable;
            best_names.push(best.implementation());
            for a in inputs(q, n) {
                let (mut x, mut y) = (a.clone(), a.clone());
                best.forward(&mut x).unwrap();
                portable.forward(&mut y).unwrap();
                assert!(x == y, "forward, q = {q}, n = {n}");
                // Also the inverse of what is no transform of a small polynomial.
                let (mut z, mut back) = (a.clone(), a.clone());
                best.inverse(&mut z).unwrap();
                portable.inverse(&mut back).unwrap();
                assert!(z == back, "inverse, q = {q}, n = {n}");
                best.inverse(&mut x).unwrap();
                assert!(x == a, "there and back, q = {q}, n = {n}");
            }
        }
    }
    #[cfg(target_arch = "x86_64")]
    assert_eq!(
        best_names.contains(&"avx512ifma"),
        avx512::detected(),
        "the fastest passes are not taken"
    );
}

#[test]
fn passes_are_chosen_by_what_they_can_do() {
    let name = |q, n| NttTables::new(q, n).unwrap().implementation();
    let [below, above] = primes_around(1 << 60, 2048);
    assert_eq!(name(above, 2048), "portable");
    assert_eq!(name(primes_around(1 << 30, 32)[0], 32), "portable");
    #[cfg(target_arch = "x86_64")]
    if avx512::detected() {
        assert_eq!(name(below, 2048), "avx512ifma");
        assert_eq!(name(primes_around(1 << 30, 64)[0], 64), "avx512ifma");
    }
    #[cfg(not(target_arch = "x86_64"))]
    assert_eq!(name(below, 2048), "portable");
}

/// Without the check, values of a block without its roots would stay as they are.
#[cfg(target_arch = "x86_64")]
#[test]
fn tables_of_other_degrees_are_refused() {
    let roots = [Shoup::default(); 256];
    let last = avx512::last_layers(&roots).unwrap();
    for (n, table, groups, q) in [
        (256, 128, 4, 17),
        (256, 256, 3, 17),
        (128, 256, 4, 17),
        (32, 32, 0, 17),
        (0, 0, 0, 17),
        (256, 256, 4, 1 << 60),
    ] {
        let (mut a, before) = (vec![1; n], vec![1; n]);
        let (roots, last) = (&roots[..table], &last[..groups]);
        let refused = avx512::forward(&mut a, roots, last, q);
        assert!(matches!(refused, Err(NttError::Internal { .. })), "{n}");
        let refused = avx512::inverse(&mut a, roots, last, [Shoup::default(); 2], q);
        assert!(matches!(refused, Err(NttError::Internal { .. })), "{n}");
        assert_eq!(a, before);
    }
}
