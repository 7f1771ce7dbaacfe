//! Rounds and bytes of the check, by its formulas.

use super::{Base, PRIME, Setting, field, input, input_bits, opened};
use crate::error::Result;
use crate::protocol::testing::steps_of_bits;
use crate::protocol::testing::{Gf64, rounds_in_ring};
use crate::protocol::testing::{elements, last_terms, repetitions, rounds, steps};
use keyquorum_math::Domain;

/// Rounds before the first check of an engine: the ends of chains of coins, and their comparison.
const SET_UP: u64 = 2;

/// Bytes that a party sends there, 32 to each peer in each round, and in a toss.
const SET_UP_BYTES: u64 = 2 * 2 * 32;
const TOSS_BYTES: u64 = 2 * 32;

/// Bytes that a party sends in a check of `n` terms: every vector is opened by its elements, and by a hash or, if that is shorter, their copy.
fn bytes<D: Domain>(domain: &D, n: usize, steps: &[usize]) -> u64 {
    let (products, opened, tosses) = elements(domain.bits(), n, steps).unwrap();
    let opened = opened.into_iter().map(|n| domain.wire_bytes(n));
    let opened: usize = opened.map(|bytes| bytes + bytes.min(32)).sum();
    (domain.wire_bytes(products) + opened) as u64 + TOSS_BYTES * tosses as u64
}

#[test]
fn rounds_and_bytes_of_a_check() {
    for prime in [PRIME, 65_537] {
        for n in [1, 256, 257, 5000, 70_000] {
            let results = Setting::honest(prime).run(move |engine| {
                let (x, y) = (input(engine, 0, n, 1)?, input(engine, 1, n, 2)?);
                let _ = engine.mul(&x, &y)?;
                engine.flush()?;
                Ok(engine.stats())
            });
            for stats in results {
                let stats = stats.unwrap();
                assert_eq!(
                    stats.offline_rounds,
                    SET_UP + rounds(&steps(1, n)),
                    "{prime} {n}"
                );
                assert_eq!(stats.rounds - stats.offline_rounds, 2, "{prime} {n}");
                let wanted = SET_UP_BYTES + bytes(&field(prime), n, &steps(1, n));
                assert_eq!(stats.offline_bytes_sent, wanted, "{prime} {n}");
            }
        }
    }
}

/// Modulo 2^k elements of the check have 47 words. Long inner products of another length have a check of their own, side by side.
#[test]
fn rounds_of_a_check_modulo_a_power_of_two() {
    for (groups, length) in [
        (1, 1),
        (16, 1),
        (17, 1),
        (5000, 1),
        (20_000, 1),
        (20, 30),
        (2, 9000),
    ] {
        let n = groups * length;
        let results = Setting::honest(PRIME).over(Base::Ring).run(move |engine| {
            let (x, y) = (input(engine, 0, n, 1)?, input(engine, 1, n, 2)?);
            let _ = engine.dot(&x, &y, length)?;
            engine.flush()?;
            Ok(engine.stats())
        });
        for stats in results {
            let wanted = SET_UP + rounds_in_ring(groups, length);
            assert_eq!(stats.unwrap().offline_rounds, wanted, "{groups} {length}");
        }
    }
}

/// Bits count as terms of GF(2^64), whole lanes of them.
#[test]
fn rounds_and_bytes_of_a_check_of_bits() {
    for n in [1, 1000, 70_000] {
        let results = Setting::honest(PRIME).run(move |engine| {
            let (x, y) = (input_bits(engine, 0, n, 2)?, input_bits(engine, 1, n, 3)?);
            let _ = engine.and(&x, &y)?;
            engine.flush()?;
            Ok(engine.stats())
        });
        let steps = steps_of_bits(n.div_ceil(64));
        // The first step cuts them into pieces of whole words.
        let pieces = 1 << steps.first().copied().unwrap_or_default();
        let terms = 64 * n.div_ceil(64).next_multiple_of(pieces);
        for stats in results {
            let stats = stats.unwrap();
            assert_eq!(stats.offline_rounds, SET_UP + rounds(&steps), "{n}");
            let wanted = SET_UP_BYTES + bytes(&Gf64, terms, &steps);
            assert_eq!(stats.offline_bytes_sent, wanted, "{n}");
        }
    }
}

/// An opening comes after a check if there are products; if there are inputs alone, after one round; and at once if there is nothing new.
#[test]
fn openings_wait_for_products_and_inputs_alone() {
    let results = Setting::honest(PRIME).run(|engine| {
        let x = input(engine, 0, 5, 1)?;
        let (y, before) = (engine.open(&x)?, engine.stats());
        engine.read(&y)?;
        let without = engine.stats();
        opened(engine, &x)?;
        let again = engine.stats();
        let product = engine.mul(&x, &x)?;
        let opened = engine.open(&product)?;
        let squares = engine.read(&opened)?;
        let with = engine.stats();
        Ok((before, without, again, with, squares))
    });
    for result in results {
        let (before, without, again, with, squares) = result.unwrap();
        assert_eq!(squares, [1, 4, 9, 16, 25]);
        assert_eq!(
            (without.rounds - before.rounds, without.offline_rounds),
            (3, 1)
        );
        assert_eq!(without.offline_bytes_sent, 2);
        assert_eq!(
            (again.rounds - without.rounds, again.offline_rounds),
            (1, 1)
        );
        assert_eq!(with.offline_rounds, 1 + SET_UP + rounds(&[]));
        assert_eq!(with.rounds - again.rounds, 2 + SET_UP + rounds(&[]));
    }
}

/// The probability that wrong products pass is below 2^-40, by the bound that the module states.
#[test]
fn repetitions_follow_from_the_bound() {
    for bits in 13..=62 {
        for n in [
            1,
            256,
            257,
            1 << 12,
            1 << 16,
            1 << 20,
            (1 << 20) + 1,
            1 << 22,
        ] {
            let variables: usize = steps(1, n).iter().sum();
            let once: f64 = f64::from(bits - 1) - ((2 * variables + 2) as f64).log2();
            let runs = repetitions(40, bits - 1, variables).unwrap();
            assert!(once * runs as f64 >= 40.0, "{bits} {n}: {runs}");
            assert!(bits < 50 || n > 1 << 20 || runs == 1, "{bits} {n}: {runs}");
        }
    }
    // Steps end at the size that is compared under masks.
    for n in [1, 256, 257, 4096, 4097, 65_536, 65_537, 1 << 20, 1 << 22] {
        for degree in [1, 47] {
            let steps = steps(degree, n);
            let left = steps.iter().fold(n, |n, v| n.div_ceil(1 << v));
            assert!(left <= last_terms(degree), "{n}: {left}");
        }
    }
    assert_eq!(rounds(&steps(1, 1 << 20)), 13);
    assert_eq!(rounds(&steps_of_bits(1 << 14)), 11);
}

/// Memory is bounded: what waits beyond the limit is verified before the next round.
#[test]
fn many_products_are_verified_before_the_end() -> Result<()> {
    let n = (1 << 19) + 5;
    let results = Setting::honest(PRIME).run(move |engine| {
        let x = engine.random(n)?;
        let mut x = engine.mul(&x, &x)?;
        for _ in 0..2 {
            x = engine.mul(&x, &x)?;
        }
        let zero = engine.sub(&x, &x)?;
        let opened = engine.open(&zero)?;
        let zeros = engine.read(&opened)?;
        Ok((zeros.iter().all(|x| *x == 0), engine.stats()))
    });
    for result in results {
        let (zeros, stats) = result?;
        assert!(zeros);
        // Two vectors are more than the limit, so the first is verified alone, then the second; the third before the opening.
        assert_eq!(stats.offline_rounds, SET_UP + 3 * rounds(&steps(1, n)));
    }
    Ok(())
}
