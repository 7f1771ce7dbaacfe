//! The transform against its definition.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a failure here is a failed test

use keyquorum_math::{
    Domain, NttError, NttTables, Prg, Zq, automorphism, automorphism_ntt, is_prime,
};
use proptest::prelude::*;

/// The largest prime below `limit` that is 1 modulo 2n.
fn prime(limit: u64, n: usize) -> u64 {
    let step = 2 * n as u64;
    let mut candidates = (1..limit / step).rev().map(|k| k * step + 1);
    candidates.find(|&q| is_prime(q)).unwrap()
}

/// Moduli below and above the bound where the passes must reduce more often.
fn moduli(n: usize) -> Vec<u64> {
    let limits = [20, 45, 60, 61, 62].map(|bits| 1u64 << bits);
    limits.into_iter().map(|limit| prime(limit, n)).collect()
}

fn power(field: &Zq, base: u64, mut e: u64) -> u64 {
    let (mut square, mut result) = (base, 1);
    while e > 0 {
        if e & 1 == 1 {
            result = field.mul(result, square);
        }
        square = field.mul(square, square);
        e >>= 1;
    }
    result
}

/// The smallest x with x^n = -1, by search; for small moduli only.
fn smallest_root(field: &Zq, n: usize) -> u64 {
    let minus_one = field.modulus() - 1;
    let mut candidates = 2..field.modulus();
    candidates
        .find(|&x| power(field, x, n as u64) == minus_one)
        .unwrap()
}

fn bit_reverse(k: usize, n: usize) -> usize {
    (0..n.ilog2()).fold(0, |r, i| r << 1 | (k >> i & 1))
}

fn evaluate(field: &Zq, a: &[u64], x: u64) -> u64 {
    a.iter()
        .rev()
        .fold(0, |sum, &c| field.add(field.mul(sum, x), c))
}

fn multiply(field: &Zq, a: &[u64], b: &[u64]) -> Vec<u64> {
    let n = a.len();
    let mut out = vec![0; n];
    for (i, &x) in a.iter().enumerate() {
        for (j, &y) in b.iter().enumerate() {
            let product = field.mul(x, y);
            let at = (i + j) % n;
            out[at] = if i + j < n {
                field.add(out[at], product)
            } else {
                field.sub(out[at], product)
            };
        }
    }
    out
}

fn random(field: &Zq, n: usize, stream: u64) -> Vec<u64> {
    let mut out = vec![0; n];
    field.random(&mut Prg::new([3; 16], stream), &mut out);
    out
}

/// Random polynomials, and those with the largest coefficients.
fn inputs(field: &Zq, n: usize) -> Vec<Vec<u64>> {
    let largest = field.modulus() - 1;
    let alternating = (0..n)
        .map(|i| if i % 2 == 0 { largest } else { 0 })
        .collect();
    vec![
        random(field, n, 0),
        vec![largest; n],
        alternating,
        vec![0; n],
    ]
}

#[test]
fn root_is_the_smallest() {
    for n in [2, 4, 8, 64, 1024] {
        let q = prime(1 << 18, n);
        let field = Zq::new(q).unwrap();
        assert_eq!(
            NttTables::new(q, n).unwrap().root(),
            smallest_root(&field, n)
        );
    }
    // Every other primitive root is an odd power of one.
    for n in [16, 256] {
        for q in moduli(n) {
            let field = Zq::new(q).unwrap();
            let psi = NttTables::new(q, n).unwrap().root();
            assert_eq!(power(&field, psi, n as u64), q - 1);
            assert!((0..n as u64).all(|i| power(&field, psi, 2 * i + 1) >= psi));
        }
    }
}

#[test]
fn positions_follow_the_definition() {
    for log_n in 1..=9 {
        let n = 1 << log_n;
        for q in moduli(n) {
            let field = Zq::new(q).unwrap();
            let tables = NttTables::new(q, n).unwrap();
            assert_eq!((tables.modulus(), tables.degree()), (q, n));
            for a in inputs(&field, n) {
                let mut transformed = a.clone();
                tables.forward(&mut transformed).unwrap();
                for (k, &value) in transformed.iter().enumerate() {
                    let exponent = 2 * bit_reverse(k, n) + 1;
                    let x = power(&field, tables.root(), exponent as u64);
                    assert_eq!(
                        value,
                        evaluate(&field, &a, x),
                        "position {k} of {n} modulo {q}"
                    );
                }
            }
        }
    }
}

/// Spot checks of the definition at sizes where all positions would take too long.
#[test]
fn positions_follow_the_definition_at_full_size() {
    for n in [1024, 2048, 4096, 8192, 16384, 32768] {
        for q in moduli(n) {
            let field = Zq::new(q).unwrap();
            let tables = NttTables::new(q, n).unwrap();
            for a in inputs(&field, n) {
                let mut transformed = a.clone();
                tables.forward(&mut transformed).unwrap();
                assert!(transformed.iter().all(|&x| x < q));
                for k in [0, 1, 2, 3, 5, n / 3, n / 2, n - 1] {
                    let exponent = 2 * bit_reverse(k, n) + 1;
                    let x = power(&field, tables.root(), exponent as u64);
                    assert_eq!(transformed[k], evaluate(&field, &a, x));
                }
                tables.inverse(&mut transformed).unwrap();
                assert_eq!(transformed, a);
            }
        }
    }
}

#[test]
fn products_are_negacyclic() {
    for n in [2, 4, 8, 16, 32, 64, 128, 256, 512] {
        for q in moduli(n) {
            let field = Zq::new(q).unwrap();
            let tables = NttTables::new(q, n).unwrap();
            for a in inputs(&field, n) {
                let b = random(&field, n, 1);
                let (mut x, mut y) = (a.clone(), b.clone());
                tables.forward(&mut x).unwrap();
                tables.forward(&mut y).unwrap();
                field.mul_assign(&mut x, &y);
                tables.inverse(&mut x).unwrap();
                assert_eq!(x, multiply(&field, &a, &b));
            }
        }
    }
}

#[test]
fn batches_are_transformed_one_by_one() {
    let n = 64;
    let q = prime(1 << 60, n);
    let field = Zq::new(q).unwrap();
    let tables = NttTables::new(q, n).unwrap();
    let a = random(&field, 5 * n, 0);
    let mut one_by_one = a.clone();
    for polynomial in one_by_one.chunks_mut(n) {
        tables.forward(polynomial).unwrap();
    }
    let mut batch = a.clone();
    tables.forward_all(&mut batch).unwrap();
    assert_eq!(batch, one_by_one);
    tables.inverse_all(&mut batch).unwrap();
    assert_eq!(batch, a);
    tables.forward_all(&mut []).unwrap();
}

proptest! {
    #[test]
    fn automorphisms(log_n in 1u32..8, g: u64, seed: u64) {
        let n = 1 << log_n;
        let g = g | 1;
        for q in moduli(n) {
            let field = Zq::new(q).unwrap();
            let tables = NttTables::new(q, n).unwrap();
            let a = random(&field, n, seed);
            let image = automorphism(&a, g, q).unwrap();
            // By definition: the sum of a_i X^(g i), reduced by X^n = -1.
            let mut expected = vec![0; n];
            for (i, &x) in a.iter().enumerate() {
                let e = (i as u64 * (g % (2 * n as u64)) % (2 * n as u64)) as usize;
                expected[e % n] = if e < n { x } else { field.neg(x) };
            }
            prop_assert_eq!(&image, &expected);
            // The same on transforms.
            let (mut before, mut after) = (a, image);
            tables.forward(&mut before).unwrap();
            tables.forward(&mut after).unwrap();
            prop_assert_eq!(automorphism_ntt(&before, g).unwrap(), after);
        }
    }
}

#[test]
fn unusable_parameters_are_refused() {
    let message = |q, n| NttTables::new(q, n).err().unwrap().to_string();
    for n in [0, 1, 3, 24, 65536] {
        let expected = format!("ring degree {n} is unusable: choose a power of two in 2..=32768");
        assert_eq!(message(65_537, n), expected);
    }
    assert_eq!(
        message(97, 32),
        "F_97 has no transform of ring degree 32: choose a prime that is 1 modulo 64"
    );
    assert!(NttTables::new(97, 16).is_ok());
    assert_eq!(
        message(65_535, 16),
        "65535 is no modulus of a prime field here: choose an odd prime below 2^62"
    );
}

#[test]
fn arrays_of_other_lengths_are_refused() {
    let tables = NttTables::new(97, 16).unwrap();
    for len in [0, 8, 15, 17, 32] {
        let error = NttError::Length { len, n: 16 };
        assert_eq!(tables.forward(&mut vec![0; len]), Err(error));
        assert_eq!(tables.inverse(&mut vec![0; len]), Err(error));
    }
    let error = NttError::Length { len: 40, n: 16 };
    assert_eq!(tables.forward_all(&mut [0; 40]), Err(error));
    assert_eq!(tables.inverse_all(&mut [0; 40]), Err(error));
    assert_eq!(
        error.to_string(),
        "40 coefficients are no whole number of polynomials of ring degree 16"
    );
    assert_eq!(
        automorphism(&[0; 12], 3, 97),
        Err(NttError::Degree { n: 12 })
    );
    assert_eq!(automorphism_ntt(&[], 3), Err(NttError::Degree { n: 0 }));
    assert_eq!(
        automorphism(&[0; 16], 4, 97),
        Err(NttError::Galois { g: 4 })
    );
    assert_eq!(
        automorphism_ntt(&[0; 16], 2).err().unwrap().to_string(),
        "X -> X^2 is no automorphism: the Galois element must be odd"
    );
}
