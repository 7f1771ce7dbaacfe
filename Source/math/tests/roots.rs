//! Powers, inverses and square roots in prime fields.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a failure here is a failed test

use keyquorum_math::{Domain, Prg, Zq, is_prime};
use num_bigint::BigUint;
use proptest::prelude::*;

/// The largest prime below 2^bits with exactly `twos` factors 2 in `q - 1`.
fn prime_with_twos(bits: u32, twos: u32) -> u64 {
    let odd_parts = (1u64..1 << (bits - twos)).rev().step_by(2);
    let mut candidates = odd_parts.map(|odd| (odd << twos) + 1);
    candidates.find(|&q| is_prime(q)).unwrap()
}

/// Primes that differ in the 2-part of `q - 1`, which decides the algorithm and its windows.
fn primes() -> Vec<u64> {
    let mut primes = vec![
        3,
        5,
        7,
        13,
        17,
        97,
        257,
        65_537,
        (1 << 61) - 1,
        (1 << 62) - 57,
    ];
    primes
        .extend([1, 2, 3, 7, 8, 9, 15, 16, 17, 24, 25, 32, 40, 55].map(|s| prime_with_twos(61, s)));
    primes
}

proptest! {
    #[test]
    fn powers(q in prop::sample::select(primes()), a: u64, e: u64) {
        let field = Zq::new(q).unwrap();
        let a = a % q;
        let expected = BigUint::from(a).modpow(&BigUint::from(e), &BigUint::from(q));
        prop_assert_eq!(BigUint::from(field.pow(a, e)), expected);
        let mut many = vec![a; 7];
        field.pow_assign(&mut many, e);
        prop_assert_eq!(many, vec![field.pow(a, e); 7]);
    }

    #[test]
    fn inverse_square_roots(q in prop::sample::select(primes()), x: Vec<u64>) {
        let field = Zq::new(q).unwrap();
        let x: Vec<u64> = x.into_iter().map(|x| 1 + x % (q - 1)).collect();
        let squares: Vec<u64> = x.iter().map(|&x| field.mul(x, x)).collect();
        let roots = field.inv_sqrt_batch(&squares);
        prop_assert_eq!(roots.len(), squares.len());
        for (&r, &c) in roots.iter().zip(&squares) {
            prop_assert!(r < q);
            prop_assert_eq!(field.mul(field.mul(r, r), c), 1);
            if q % 4 == 3 {
                prop_assert_eq!(r, field.pow(c, (q - 3) / 4));
            }
            // The result does not depend on the neighbours.
            prop_assert_eq!(field.inv_sqrt_batch(&[c]), vec![r]);
        }
    }

    #[test]
    fn square_roots(q in prop::sample::select(primes()), x: u64) {
        let field = Zq::new(q).unwrap();
        let x = x % q;
        let root = x.min(field.neg(x));
        prop_assert_eq!(field.sqrt(field.mul(x, x)), Some(root));
        let is_square = x == 0 || field.pow(x, (q - 1) / 2) == 1;
        prop_assert_eq!(field.sqrt(x).is_some(), is_square);
    }

    #[test]
    fn batches_of_inverses(q in prop::sample::select(primes()), x: Vec<u64>, zero: prop::sample::Index) {
        let field = Zq::new(q).unwrap();
        let mut x: Vec<u64> = x.into_iter().map(|x| 1 + x % (q - 1)).collect();
        let one_by_one: Option<Vec<u64>> = x.iter().map(|&x| field.invert(x)).collect();
        prop_assert_eq!(field.batch_invert(&x), one_by_one);
        if !x.is_empty() {
            let at = zero.index(x.len());
            x[at] = 0;
            prop_assert_eq!(field.batch_invert(&x), None);
        }
    }
}

#[test]
fn all_square_roots_of_small_fields() {
    for q in (3..2000).filter(|&q| q % 2 == 1 && is_prime(q)) {
        let field = Zq::new(q).unwrap();
        let mut roots = vec![None; q as usize];
        for x in (0..=q / 2).rev() {
            roots[(x * x % q) as usize] = Some(x);
        }
        for (c, &root) in roots.iter().enumerate() {
            assert_eq!(field.sqrt(c as u64), root, "{c} modulo {q}");
        }
    }
}

/// One of the two roots is taken for all squares, and long batches equal short ones.
#[test]
fn long_batches() {
    for q in primes() {
        let field = Zq::new(q).unwrap();
        let mut x = vec![0; 1003];
        field.random(&mut Prg::new([1; 16], 0), &mut x);
        x.iter_mut().for_each(|x| *x = field.mul(*x, *x));
        let batch = field.inv_sqrt_batch(&x);
        for (c, r) in x.iter().zip(batch).filter(|&(&c, _)| c != 0) {
            assert_eq!(field.mul(field.mul(r, r), *c), 1);
        }
    }
}
