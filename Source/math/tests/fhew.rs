//! The evaluation of FHEW-like ciphertexts, with keys whose secrets are in clear.

#![allow(
    clippy::indexing_slicing,
    clippy::needless_range_loop,
    clippy::unwrap_used
)] // a failure here is a failed test

use keyquorum_math::fhew::{Fhew, FhewError, Gadget, Rows};
use keyquorum_math::{Domain, NttTables, Prg, Zq, expand_uniform};

const Q: u64 = 9_007_199_254_614_017;

fn below(prg: &mut Prg, bound: u64) -> u64 {
    prg.next_u64() % bound
}

fn centred(x: u64, q: u64) -> i64 {
    if x > q / 2 {
        x as i64 - q as i64
    } else {
        x as i64
    }
}

#[test]
fn digits_add_up_to_the_residue() {
    let mut prg = Prg::new([1; 16], 0);
    for (q, base_log, levels) in [
        (Q, 6, 8),
        (Q, 1, 52),
        (Q, 1, 53),
        (Q, 4, 13),
        (65_537, 2, 8),
        (12_289, 7, 2),
        (257, 8, 1),
    ] {
        let gadget = Gadget::new(q, base_log, levels).unwrap();
        let bits = u64::BITS - q.leading_zeros();
        let slack = (1i64 << (bits - base_log * levels)) / 2;
        let half = if base_log == 1 {
            1
        } else {
            1i64 << (base_log - 1)
        };
        let edges = [0, 1, q / 2 - 1, q / 2, q / 2 + 1, q - 1];
        let values = (0..2000).map(|_| below(&mut prg, q));
        for x in values.chain(edges) {
            let mut digits = vec![0; levels as usize];
            gadget.digits(x, &mut digits);
            let (last, others) = digits.split_last().unwrap();
            assert!(
                others
                    .iter()
                    .all(|d| (-half..half + i64::from(base_log == 1)).contains(d))
            );
            assert!((-half..=half).contains(last));
            let sum: i128 = (0..levels)
                .zip(&digits)
                .map(|(j, d)| i128::from(*d) * i128::from(gadget.weight(j)))
                .sum();
            assert!((sum - i128::from(centred(x, q))).abs() <= i128::from(slack));
        }
    }
}

#[test]
fn gadgets_that_do_not_fit_are_refused() {
    for (q, base_log, levels) in [
        (Q, 6, 9),
        (Q, 0, 4),
        (Q, 17, 1),
        (Q, 4, 0),
        ((1 << 61) - 1, 4, 4),
        (Q, u32::MAX, 2),
    ] {
        assert!(matches!(
            Gadget::new(q, base_log, levels),
            Err(FhewError::Gadget { .. })
        ));
    }
    assert!(matches!(
        Fhew::new(Q, 4096, 4, (6, 8), (1, 52)),
        Err(FhewError::Ntt(_))
    ));
    assert!(matches!(
        Fhew::new(Q + 1, 16, 4, (6, 8), (1, 52)),
        Err(FhewError::Modulus(_))
    ));
    assert!(matches!(
        Fhew::new(Q, 16, 4, (6, 8), (16, 3)),
        Err(FhewError::Gadget { .. })
    ));
}

/// A toy key, whose noise is small beside the distance of two messages: secrets, and the bodies of its files.
struct Key {
    fhew: Fhew,
    degree: usize,
    dimension: usize,
    ring: Vec<u64>,
    short: Vec<u64>,
    bootstrapping: Vec<u64>,
    switching: Vec<u64>,
    public: Vec<u64>,
}

const SEEDS: [[u8; 16]; 3] = [[11; 16], [12; 16], [13; 16]];
const ROTATING: (u32, u32) = (6, 8);
const SWITCHING: (u32, u32) = (1, 52);

fn dot(field: &Zq, a: &[u64], s: &[u64]) -> u64 {
    a.iter()
        .zip(s)
        .fold(0, |sum, (x, y)| field.add(sum, field.mul(*x, *y)))
}

fn key(degree: usize, dimension: usize) -> Key {
    let (field, tables) = (Zq::new(Q).unwrap(), NttTables::new(Q, degree).unwrap());
    let mut prg = Prg::new([5; 16], 0);
    let ring: Vec<u64> = (0..degree)
        .map(|_| (below(&mut prg, 2) + Q - below(&mut prg, 2)) % Q)
        .collect();
    let short: Vec<u64> = (0..dimension).map(|_| below(&mut prg, 2)).collect();
    let mut noise = || (below(&mut prg, 7) + Q - 3) % Q;
    let mut z = ring.clone();
    tables.forward(&mut z).unwrap();

    let gadget = Gadget::new(Q, ROTATING.0, ROTATING.1).unwrap();
    let rows = 2 * gadget.levels();
    let masks = expand_uniform(SEEDS[0], 0, dimension * rows * degree, Q);
    let mut bootstrapping = Vec::new();
    for (i, row) in masks.chunks_exact(degree).enumerate() {
        let (s, j) = (short[i / rows], (i % rows / 2) as u32);
        let weight = field.mul(gadget.weight(j), s);
        let mut e: Vec<u64> = (0..degree).map(|_| noise()).collect();
        tables.forward(&mut e).unwrap();
        for k in 0..degree {
            let plain = if i % 2 == 0 {
                field.neg(field.mul(weight, z[k]))
            } else {
                weight
            };
            bootstrapping.push(field.add(field.add(field.mul(row[k], z[k]), e[k]), plain));
        }
    }
    let gadget = Gadget::new(Q, SWITCHING.0, SWITCHING.1).unwrap();
    let levels = gadget.levels();
    let masks = expand_uniform(SEEDS[1], 0, degree * levels * dimension, Q);
    let switching = masks
        .chunks_exact(dimension)
        .enumerate()
        .map(|(i, a)| {
            let plain = field.mul(ring[i / levels], gadget.weight((i % levels) as u32));
            field.add(field.add(dot(&field, a, &short), noise()), plain)
        })
        .collect();
    let masks = expand_uniform(SEEDS[2], 0, 300 * degree, Q);
    let public = masks
        .chunks_exact(degree)
        .map(|a| field.add(dot(&field, a, &ring), noise()))
        .collect();
    let fhew = Fhew::new(Q, degree, dimension, ROTATING, SWITCHING).unwrap();
    Key {
        fhew,
        degree,
        dimension,
        ring,
        short,
        bootstrapping,
        switching,
        public,
    }
}

impl Key {
    fn rows<'a>(&self, which: usize, bodies: &'a [u64]) -> Rows<'a> {
        Rows {
            seed: SEEDS[which],
            bodies,
        }
    }

    fn phase(&self, secret: &[u64], a: &[u64], b: u64) -> u64 {
        let field = Zq::new(Q).unwrap();
        field.sub(b, dot(&field, a, secret))
    }
}

/// The message of a phase, of 16.
fn message(phase: u64) -> u64 {
    ((u128::from(phase) * 16 + u128::from(Q / 2)) / u128::from(Q)) as u64 % 16
}

#[test]
fn ciphertexts_are_encrypted_switched_and_bootstrapped() {
    let key = key(256, 8);
    let (n, big) = (key.dimension, key.degree);
    let words: Vec<u64> = (0..40).map(|i| i % 16 * (Q / 16)).collect();
    let mut prg = Prg::new([6; 16], 0);
    let (a, b) = key
        .fhew
        .encrypt(key.rows(2, &key.public), big, &words, &mut prg)
        .unwrap();
    for (i, (a, b)) in a.chunks_exact(big).zip(&b).enumerate() {
        let phase = key.phase(&key.ring, a, *b);
        let error = centred((phase + Q - words[i]) % Q, Q);
        // 300 rows with noise up to 3
        assert!(error.abs() <= 900);
    }
    let sums: Vec<u64> = b.iter().map(|x| message(*x)).collect();
    assert_ne!(sums, (0..40).map(|i| i % 16).collect::<Vec<_>>()); // the bodies alone are no messages

    let (short, body) = key
        .fhew
        .switch(key.rows(1, &key.switching), &a, &b)
        .unwrap();
    for (i, (a, b)) in short.chunks_exact(n).zip(&body).enumerate() {
        let error = centred((key.phase(&key.short, a, *b) + Q - words[i]) % Q, Q);
        // the digits are off by 1 at each of 256 coefficients, and 256 * 52 rows have noise up to 3
        assert!(error.abs() <= 900 + 256 + 3 * 256 * 52);
    }
    // x -> x^2 + 1 mod 16 for x < 8, with half a step before the messages; the phases from 8 on give the negatives
    let half = Q / 32;
    let test: Vec<u64> = (0..big)
        .map(|p| {
            let x = (p * 8 / big) as u64;
            (x * x + 1) % 16 * (Q / 16)
        })
        .collect();
    let body: Vec<u64> = body.iter().map(|b| (b + half) % Q).collect();
    let (a, b) = key
        .fhew
        .bootstrap(key.rows(0, &key.bootstrapping), &short, &body, &test)
        .unwrap();
    for (i, (a, b)) in a.chunks_exact(big).zip(&b).enumerate() {
        let x = i as u64 % 16;
        let expected = if x < 8 {
            (x * x + 1) % 16
        } else {
            (16 - ((x - 8) * (x - 8) + 1) % 16) % 16
        };
        assert_eq!(message(key.phase(&key.ring, a, *b)), expected, "{x}");
    }
}

#[test]
fn arrays_of_other_lengths_and_residues_are_refused() {
    let key = key(16, 2);
    let (a, b, test) = (vec![0; 16], vec![0], vec![0; 16]);
    let rows = key.rows(1, &key.switching);
    assert!(key.fhew.switch(rows, &a, &b).is_ok());
    let short = Rows {
        bodies: &key.switching[1..],
        ..rows
    };
    assert!(matches!(
        key.fhew.switch(short, &a, &b),
        Err(FhewError::Length {
            what: "key-switching key",
            ..
        })
    ));
    assert!(matches!(
        key.fhew.switch(rows, &a[1..], &b),
        Err(FhewError::Length { .. })
    ));
    assert!(matches!(
        key.fhew.switch(rows, &a, &[Q]),
        Err(FhewError::Residue {
            what: "bodies of ciphertexts"
        })
    ));
    let rows = key.rows(0, &key.bootstrapping);
    assert!(key.fhew.bootstrap(rows, &a[..2], &b, &test).is_ok());
    assert!(matches!(
        key.fhew.bootstrap(rows, &a, &b, &test),
        Err(FhewError::Length { .. })
    ));
    assert!(matches!(
        key.fhew.bootstrap(rows, &a[..2], &b, &test[1..]),
        Err(FhewError::Length {
            what: "test vector",
            ..
        })
    ));
    let mut prg = Prg::new([6; 16], 0);
    let public = key.rows(2, &key.public);
    assert!(matches!(
        key.fhew.encrypt(public, 16, &[Q], &mut prg),
        Err(FhewError::Residue { what: "messages" })
    ));
}
