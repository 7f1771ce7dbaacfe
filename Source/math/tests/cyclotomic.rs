//! The transform modulo cyclotomic polynomials against its definition.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a failure here is a failed test

use keyquorum_math::{CyclotomicError, CyclotomicTables, Domain, NttError, Prg, Zq, is_prime};

/// Orders with one, two and three prime factors, with a square, and even ones.
const ORDERS: [usize; 8] = [3, 8, 18, 91, 105, 128, 225, 1105];

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn coprime_to(m: usize) -> Vec<usize> {
    (1..m).filter(|j| gcd(*j, m) == 1).collect()
}

/// The largest prime below `limit` that is 1 modulo m and modulo 2n for the convolution of the order.
fn prime(limit: u64, m: usize) -> u64 {
    let n = (m + coprime_to(m).len() - 1).next_power_of_two();
    let step = (2 * n * m / gcd(2 * n, m)) as u64;
    let mut candidates = (1..limit / step).rev().map(|k| k * step + 1);
    candidates.find(|&q| is_prime(q)).unwrap()
}

/// Moduli on both sides of the bounds of the passes.
fn moduli(m: usize) -> [u64; 4] {
    [30, 50, 52, 62].map(|bits| prime(1 << bits, m))
}

fn random(field: &Zq, size: usize, stream: u64) -> Vec<u64> {
    let mut out = vec![0; size];
    field.random(&mut Prg::new([5; 16], stream), &mut out);
    out
}

fn evaluate(field: &Zq, a: &[u64], x: u64) -> u64 {
    let step = |sum: u64, &c: &u64| field.add(field.mul(sum, x), c);
    a.iter().rev().fold(0, step)
}

/// The coefficients of the cyclotomic polynomial of order m, by division of X^m - 1 by those of its proper divisors.
fn polynomial(m: usize) -> Vec<i64> {
    let mut rest = vec![0; m + 1];
    (rest[0], rest[m]) = (-1, 1);
    for d in (1..m).filter(|d| m.is_multiple_of(*d)) {
        let divisor = polynomial(d);
        let degree = divisor.len() - 1;
        let mut quotient = vec![0; rest.len() - degree];
        for i in (0..quotient.len()).rev() {
            quotient[i] = rest[i + degree];
            for (k, c) in divisor.iter().enumerate() {
                rest[i + k] -= quotient[i] * c;
            }
        }
        rest = quotient;
    }
    rest
}

/// A product of two polynomials, reduced modulo the cyclotomic polynomial of order m.
fn multiply(field: &Zq, a: &[u64], b: &[u64], m: usize) -> Vec<u64> {
    let modulus = polynomial(m);
    let degree = modulus.len() - 1;
    let mut product = vec![0; 2 * degree - 1];
    for (i, &x) in a.iter().enumerate() {
        for (j, &y) in b.iter().enumerate() {
            product[i + j] = field.add(product[i + j], field.mul(x, y));
        }
    }
    for i in (degree..product.len()).rev() {
        let top = product[i];
        for (k, &c) in modulus.iter().enumerate() {
            let term = field.mul(top, field.from_i64(c));
            product[i - degree + k] = field.sub(product[i - degree + k], term);
        }
    }
    product.truncate(degree);
    product
}

#[test]
fn values_are_those_at_the_powers_that_are_coprime_to_the_order() {
    for m in ORDERS {
        for q in moduli(m) {
            let (field, tables) = (Zq::new(q).unwrap(), CyclotomicTables::new(q, m).unwrap());
            let (places, root) = (coprime_to(m), tables.root());
            assert_eq!(
                (tables.degree(), tables.order(), tables.modulus()),
                (places.len(), m, q)
            );
            assert_eq!(field.pow(root, m as u64), 1);
            assert!(
                (1..m).all(|i| field.pow(root, i as u64) != 1),
                "order of the root"
            );
            for a in [random(&field, places.len(), 1), vec![q - 1; places.len()]] {
                let mut values = a.clone();
                tables.forward_all(&mut values).unwrap();
                let wanted: Vec<u64> = places
                    .iter()
                    .map(|&j| evaluate(&field, &a, field.pow(root, j as u64)))
                    .collect();
                assert!(values == wanted, "m = {m}, q = {q}");
                tables.inverse_all(&mut values).unwrap();
                assert!(values == a, "there and back, m = {m}, q = {q}");
                // What is no transform of a small polynomial has an inverse as well.
                tables.inverse_all(&mut values).unwrap();
                tables.forward_all(&mut values).unwrap();
                assert!(values == a, "back and there, m = {m}, q = {q}");
            }
        }
    }
}

#[test]
fn products_are_those_modulo_the_cyclotomic_polynomial() {
    for m in [91, 105, 1105] {
        let q = prime(1 << 52, m);
        let (field, tables) = (Zq::new(q).unwrap(), CyclotomicTables::new(q, m).unwrap());
        let degree = tables.degree();
        let mut both = random(&field, 2 * degree, 2);
        let (a, b) = both.split_at(degree);
        let wanted = multiply(&field, a, b, m);
        tables.forward_all(&mut both).unwrap();
        let (x, y) = both.split_at(degree);
        let mut product = x.to_vec();
        field.mul_assign(&mut product, y);
        tables.inverse_all(&mut product).unwrap();
        assert!(product == wanted, "m = {m}");
    }
    // The smallest order whose cyclotomic polynomial has a coefficient that is not -1, 0 or 1.
    assert_eq!(polynomial(105)[7], -2);
}

#[test]
fn automorphisms_permute_values() {
    for m in [91, 105, 1105] {
        let q = prime(1 << 52, m);
        let (field, tables) = (Zq::new(q).unwrap(), CyclotomicTables::new(q, m).unwrap());
        let (degree, places) = (tables.degree(), coprime_to(m));
        let a = random(&field, 2 * degree, 3);
        let mut values = a.clone();
        tables.forward_all(&mut values).unwrap();
        for t in [1, 2, m as u64 - 1, m as u64 + 2, 2 * m as u64 + 11] {
            let moved = tables.automorphism(&values, t).unwrap();
            for (block, place) in [(0, 0), (0, 5), (1, 7)] {
                let a = &a[block * degree..(block + 1) * degree];
                let x = field.pow(tables.root(), places[place] as u64 * t);
                let moved = moved[block * degree + place];
                assert_eq!(moved, evaluate(&field, a, x), "m = {m}, t = {t}");
            }
            let mut sorted = moved.clone();
            let mut before = values.clone();
            sorted.sort_unstable();
            before.sort_unstable();
            assert_eq!(sorted, before);
        }
        let refused = tables.automorphism(&values, 13 * m as u64).unwrap_err();
        assert_eq!(
            refused,
            CyclotomicError::Exponent {
                t: 13 * m as u64,
                m
            }
        );
    }
}

#[test]
fn the_rings_of_aes_go_there_and_back() {
    for (m, q) in [
        (53261, 4_503_431_814_316_033),
        (28679, 4_503_490_347_532_289),
    ] {
        let (field, tables) = (Zq::new(q).unwrap(), CyclotomicTables::new(q, m).unwrap());
        let a = random(&field, tables.degree(), 4);
        let mut values = a.clone();
        tables.forward_all(&mut values).unwrap();
        let places = coprime_to(m);
        for i in [0, 1, 1000, places.len() - 1] {
            let x = field.pow(tables.root(), places[i] as u64);
            assert_eq!(values[i], evaluate(&field, &a, x), "m = {m}, place {i}");
        }
        tables.inverse_all(&mut values).unwrap();
        assert!(values == a, "m = {m}");
    }
}

#[test]
fn other_orders_moduli_and_lengths_are_refused() {
    let q = prime(1 << 52, 105);
    for m in [0, 1, 2, 65536] {
        assert_eq!(
            CyclotomicTables::new(q, m).unwrap_err(),
            CyclotomicError::Order { m }
        );
    }
    let refused = CyclotomicTables::new(q, 91).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!(
            "F_{q} has no primitive root of unity of order 91: choose a prime that is 1 modulo 91"
        )
    );
    // 211 is 1 modulo 105, but has no transform for the convolution.
    let refused = CyclotomicTables::new(211, 105).unwrap_err();
    assert_eq!(
        refused,
        CyclotomicError::Ntt(NttError::NoRoot { q: 211, n: 256 })
    );
    let refused = CyclotomicTables::new(15, 7).unwrap_err();
    assert!(matches!(
        refused,
        CyclotomicError::Ntt(NttError::Modulus(_))
    ));
    let tables = CyclotomicTables::new(q, 105).unwrap();
    let wanted = CyclotomicError::Length {
        len: 47,
        degree: 48,
    };
    assert_eq!(tables.forward_all(&mut [0; 47]).unwrap_err(), wanted);
    assert_eq!(tables.inverse_all(&mut [0; 47]).unwrap_err(), wanted);
    assert_eq!(tables.automorphism(&[0; 47], 2).unwrap_err(), wanted);
}
