//! All passes give the same results, bit by bit.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // a failed test may panic

#[cfg(target_arch = "x86_64")]
use super::avx2::{Kind, Roots};
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
    let limits = [30, 36, 43, 48, 49, 50, 51, 52, 53, 55, 59, 60, 61].map(|bits| 1 << bits);
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

/// The same tables with every kind of passes that this processor has and the modulus and ring degree allow.
fn every_way(best: &NttTables) -> Vec<NttTables> {
    let mut ways = vec![best.clone()];
    #[cfg(target_arch = "x86_64")]
    if avx2::detected() && best.n >= avx2::GROUP {
        let kinds = Kind::ALL.into_iter().filter(|kind| best.q < kind.limit());
        ways.extend(kinds.map(|kind| {
            let mut way = best.clone();
            way.passes = Passes::avx2(kind, best.q, &best.forward, &best.inverse).unwrap();
            way
        }));
    }
    ways
}

/// Compares all passes, and gives the name of the best.
fn agree(best: &NttTables, inputs: &[Vec<u64>]) -> &'static str {
    let (q, n) = (best.q, best.n);
    let mut portable = best.clone();
    portable.passes = Passes::Portable;
    let ways = every_way(best);
    for a in inputs {
        // Also the inverse of what is no transform of a small polynomial.
        let (mut y, mut back) = (a.clone(), a.clone());
        portable.forward(&mut y).unwrap();
        portable.inverse(&mut back).unwrap();
        for way in &ways {
            let name = way.implementation();
            let (mut x, mut z) = (a.clone(), a.clone());
            way.forward(&mut x).unwrap();
            assert!(x == y, "forward, {name}, q = {q}, n = {n}");
            way.inverse(&mut z).unwrap();
            assert!(z == back, "inverse, {name}, q = {q}, n = {n}");
            way.inverse(&mut x).unwrap();
            assert!(x == *a, "there and back, {name}, q = {q}, n = {n}");
        }
    }
    best.implementation()
}

#[test]
fn passes_agree_on_every_modulus_and_ring_degree() {
    let mut best_names = Vec::new();
    for log_n in 3..=15 {
        let n = 1 << log_n;
        for q in moduli(n) {
            let best = NttTables::new(q, n).unwrap();
            best_names.push(agree(&best, &inputs(q, n)));
        }
    }
    #[cfg(target_arch = "x86_64")]
    for (name, detected) in [
        ("avx512ifma", avx512::detected()),
        ("avx2fma", avx2::detected()),
        ("avx2", avx2::detected()),
    ] {
        assert_eq!(best_names.contains(&name), detected, "{name}");
    }
}

/// The convolution of GHS keys of order 53261, modulo the largest of their primes: 17 layers just below 2^52.
#[test]
fn passes_agree_on_long_convolutions() {
    let (q, n) = (4_503_431_814_316_033, 1 << 17);
    agree(&NttTables::of_degree(q, n).unwrap(), &inputs(q, n));
}

#[test]
fn passes_are_chosen_by_what_they_can_do() {
    let name = |q, n| NttTables::new(q, n).unwrap().implementation();
    let [below, above] = primes_around(1 << 60, 2048);
    let [narrow, wide] = primes_around(1 << 52, 2048);
    let small = primes_around(1 << 30, 64)[0];
    assert_eq!(name(above, 2048), "portable");
    assert_eq!(name(primes_around(1 << 30, 8)[0], 8), "portable");
    let all = [
        name(below, 2048),
        name(wide, 2048),
        name(narrow, 2048),
        name(small, 64),
    ];
    #[cfg(target_arch = "x86_64")]
    if avx512::detected() {
        return assert_eq!(all, ["avx512ifma"; 4]);
    } else if avx2::detected() {
        return assert_eq!(all, ["avx2", "avx2", "avx2fma", "avx2fma"]);
    }
    assert_eq!(all, ["portable"; 4]);
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

/// As above: the check is by the number of roots, by the modulus that they are of, and by its limit.
#[cfg(target_arch = "x86_64")]
#[test]
fn roots_of_other_transforms_are_refused() {
    let table = [Shoup::default(); 256];
    for (kind, n, roots, q, of) in [
        (Kind::Words, 256, 128, 17, 17),
        (Kind::Words, 128, 256, 17, 17),
        (Kind::Words, 8, 8, 17, 17),
        (Kind::Words, 0, 0, 17, 17),
        (Kind::Words, 24, 24, 17, 17),
        (Kind::Words, 256, 256, 17, 19),
        (Kind::Words, 256, 256, 1 << 60, 1 << 60),
        (Kind::WideDoubles, 256, 256, 1 << 52, 1 << 52),
        (Kind::Doubles, 256, 256, 1 << 50, 1 << 50),
    ] {
        let (mut a, before) = (vec![1; n], vec![1; n]);
        let roots = Roots::new(kind, &table[..roots], of).unwrap();
        let refused = avx2::forward(&mut a, &roots, q);
        assert!(matches!(refused, Err(NttError::Internal { .. })), "{n}");
        let refused = avx2::inverse(&mut a, &roots, [Shoup::default(); 2], q);
        assert!(matches!(refused, Err(NttError::Internal { .. })), "{n}");
        assert_eq!(a, before);
    }
}
