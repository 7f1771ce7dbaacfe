//! Honest runs and parties that lie, through the operations that programs use.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::thread;
use std::time::Duration;

use keyquorum_math::{DomainKind, Z2k128, Zq};
use keyquorum_net::{Transport, local_mesh};

use super::adversaries::Lie;
use super::binary::liar::{Change, To, liar};
use super::{Authenticated, MAC_BITS};
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::ops::Computation;
use crate::protocol::Arithmetic;
use crate::session::{EngineOptions, Session};

const PRIME: u64 = 1_152_921_504_606_584_833;

/// Runs all parties; the last one tells this lie.
fn run<T: Send + 'static>(
    n: usize,
    protocol: &'static str,
    lie: Option<Lie>,
    body: impl Fn(&mut dyn Engine) -> Result<T> + Clone + Send + 'static,
) -> Vec<Result<T>> {
    run_with(n, protocol, lie, |transport| transport, body)
}

/// Runs all parties; `wrap` changes the transport of the last one, which tells a lie.
fn run_with<T: Send + 'static>(
    n: usize,
    protocol: &'static str,
    lie: Option<Lie>,
    wrap: impl Fn(Box<dyn Transport>) -> Box<dyn Transport>,
    body: impl Fn(&mut dyn Engine) -> Result<T> + Clone + Send + 'static,
) -> Vec<Result<T>> {
    let threads: Vec<_> = local_mesh(n, Duration::from_secs(60))
        .into_iter()
        .enumerate()
        .map(|(party, transport)| {
            let body = body.clone();
            let lie = lie.filter(|lie| party == n - 1 || *lie == Lie::NoCheck);
            let transport: Box<dyn Transport> = Box::new(transport);
            let transport = if party == n - 1 {
                wrap(transport)
            } else {
                transport
            };
            thread::spawn(move || {
                let session = Session::new(transport)?;
                let result =
                    open(&session, protocol, lie).and_then(|mut engine| body(&mut *engine));
                if let Err(error) = &result {
                    session.abort(&error.to_string());
                }
                result
            })
        })
        .collect();
    threads.into_iter().map(|t| t.join().unwrap()).collect()
}

fn computation<A: Arithmetic>(
    session: &Session,
    domains: (A, A),
    lie: Option<Lie>,
) -> Result<Box<dyn Engine>> {
    let mut protocol: Authenticated<A> =
        session.protocol_with_macs(domains.clone(), 1000, &EngineOptions::default())?;
    protocol.lie = lie;
    let threshold = session.parties() - 1;
    Ok(Box::new(Computation::new(
        session.clone(),
        protocol,
        domains,
        threshold,
        false,
    )))
}

fn open(session: &Session, protocol: &str, lie: Option<Lie>) -> Result<Box<dyn Engine>> {
    if protocol == "spdz2k" {
        let shares = Z2k128::new(64 + MAC_BITS).unwrap();
        return computation(session, (Z2k128::new(64).unwrap(), shares), lie);
    }
    let field = Zq::new(PRIME).unwrap();
    computation(session, (field.clone(), field), lie)
}

fn mine(engine: &dyn Engine, owner: usize, values: &[i64]) -> Option<Vec<i64>> {
    (engine.party().0 == owner).then(|| values.to_vec())
}

fn input(engine: &mut dyn Engine, owner: usize, values: &[i64]) -> Result<crate::Handle> {
    let given = mine(engine, owner, values);
    engine.input(owner, values.len(), given.as_deref())
}

/// A program that uses everything; what it must print.
fn everything(engine: &mut dyn Engine) -> Result<Vec<u64>> {
    let last = engine.party().1 - 1;
    let x = input(engine, 0, &[3, -4, 1000, 7])?;
    let y = input(engine, last, &[5, 6, -7, 7])?;
    let product = engine.mul(&x, &y)?;
    let c = engine.clear(&[10, 20, 30, 40]);
    let sum = engine.add(&product, &c)?;
    let scaled = engine.mul(&sum, &c)?;
    let opened = engine.open(&scaled)?;
    let mut out = engine.read(&opened)?;
    let total = engine.dot(&x, &y, 4)?;
    let opened = engine.open(&total)?;
    out.extend(engine.read(&opened)?);
    // Bits: packed, as elements, and back together.
    let given: Option<Vec<u8>> =
        (engine.party().0 == 0).then(|| (0..70).map(|i| u8::from(i % 3 == 0)).collect());
    let bits = engine.input_bits(0, 70, given.as_deref())?;
    let random = engine.random_bits(70)?;
    let masked = engine.xor(&bits, &random)?;
    let again = engine.xor(&masked, &random)?;
    let both = engine.and(&again, &bits)?;
    let elements = engine.bit_to_arith(&both)?;
    let count = engine.sum(&elements, 70)?;
    let opened = engine.open(&count)?;
    out.extend(engine.read(&opened)?);
    let opened = engine.open(&both)?;
    out.extend(
        engine
            .read_bits(&opened)?
            .iter()
            .map(|b| u64::from(*b))
            .take(4),
    );
    let bits = engine.random_bit(100)?;
    let square = engine.mul(&bits, &bits)?;
    let zero = engine.sub(&square, &bits)?;
    let opened = engine.open(&zero)?;
    out.push(engine.read(&opened)?.iter().sum());
    let personal = engine.open_to(&product, last)?;
    engine.flush()?;
    if engine.party().0 == last {
        out.extend(engine.read(&personal)?);
    }
    Ok(out)
}

fn negative(protocol: &str, value: u64) -> u64 {
    if protocol == "spdz2k" {
        value.wrapping_neg()
    } else {
        PRIME - value
    }
}

#[test]
fn programs_compute_what_they_say() {
    for protocol in ["spdz2k", "mascot"] {
        for n in [2, 3] {
            let results = run(n, protocol, None, everything);
            for (party, result) in results.into_iter().enumerate() {
                let out = result.unwrap();
                let m = |v| negative(protocol, v);
                let mut wanted = vec![250, m(80), m(209_100), 3560, m(6960), 24, 1, 0, 0, 1, 0];
                if party == n - 1 {
                    wanted.extend([15, m(24), m(7000), 49]);
                }
                assert_eq!(out, wanted, "{protocol} {n} {party}");
            }
        }
    }
}

#[test]
fn random_elements_and_bits_are_random() {
    for protocol in ["spdz2k", "mascot"] {
        let results = run(2, protocol, None, |engine| {
            let (a, b) = (engine.random(500)?, engine.random_bit(4000)?);
            let (a, b) = (engine.open(&a)?, engine.open(&b)?);
            let elements = engine.read(&a)?;
            Ok((elements, engine.read(&b)?))
        });
        let all: Vec<_> = results.into_iter().map(Result::unwrap).collect();
        assert_eq!(all[0], all[1]);
        let (elements, bits) = &all[0];
        let half = 1u64 << (if protocol == "spdz2k" { 63 } else { 59 });
        // 250 and 2000 expected, standard deviations 11 and 32: six of them.
        let large = elements.iter().filter(|x| **x >= half).count();
        assert!(large.abs_diff(250) < 67, "{large}");
        assert!(bits.iter().all(|b| *b < 2));
        assert!(bits.iter().sum::<u64>().abs_diff(2000) < 190);
    }
}

/// Numbers of all parties are what their bits say, of whole lanes and of parts, shorter than the domain and as long as it.
#[test]
fn numbers_are_what_their_bits_say() {
    for (protocol, lengths) in [("spdz2k", &[1, 33, 63, 64][..]), ("mascot", &[1, 18])] {
        for parties in [2, 3] {
            let results = run(parties, protocol, None, |engine| {
                let mut all = Vec::new();
                for (length, n) in lengths.iter().zip([64, 100, 200, 70]) {
                    let (numbers, rows) = engine.edabit(*length, n)?;
                    assert_eq!(rows.len(), *length);
                    let opened = engine.open(&numbers)?;
                    let numbers = engine.read(&opened)?;
                    let mut said = vec![0u64; n];
                    for (j, row) in rows.iter().enumerate() {
                        let opened = engine.open(row)?;
                        for (number, bit) in said.iter_mut().zip(engine.read_bits(&opened)?) {
                            *number |= u64::from(bit) << j;
                        }
                    }
                    assert_eq!(numbers, said, "{length}");
                    all.push(numbers);
                }
                Ok((all, engine.material()))
            });
            let all: Vec<_> = results.into_iter().map(Result::unwrap).collect();
            for (numbers, material) in &all {
                assert_eq!(*numbers, all[0].0);
                let made = material.iter().find(|m| m.name == "edabits").unwrap();
                assert!(made.used >= 128, "{}", made.used);
            }
            // Of at least 100 numbers with 18 bits: a bit is not the same in all, but with probability 2^-95.
            let second = &all[0].0[1];
            assert!(
                (0..18)
                    .all(|j| (1..99).contains(&second.iter().filter(|v| *v >> j & 1 == 1).count()))
            );
        }
    }
}

#[test]
fn stored_shares_need_the_key_of_their_session() {
    for (protocol, domain) in [
        ("spdz2k", DomainKind::Z2k(64)),
        ("mascot", DomainKind::Fq(PRIME)),
    ] {
        let session = move |n: usize, keys: [u8; 2], stored: Option<Vec<Vec<u8>>>| {
            let threads: Vec<_> = local_mesh(n, Duration::from_secs(60))
                .into_iter()
                .enumerate()
                .map(|(party, transport)| {
                    let stored = stored.clone();
                    thread::spawn(move || -> Result<(Vec<u8>, Vec<u64>)> {
                        let session = Session::new(Box::new(transport))?;
                        session.set_mac_key([keys[party]; 16])?;
                        let mut engine =
                            session.engine(protocol, domain, &EngineOptions::default())?;
                        let x = match &stored {
                            Some(all) => engine.import(&all[party], 3)?,
                            None => input(&mut *engine, 0, &[1, 2, 3])?,
                        };
                        let bytes = engine.export(&x)?;
                        let opened = engine.open(&x)?;
                        let result = engine.read(&opened);
                        if let Err(e) = &result {
                            session.abort(&e.to_string());
                        }
                        Ok((bytes, result?))
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|t| t.join().unwrap())
                .collect::<Vec<_>>()
        };
        let first: Vec<_> = session(2, [7, 9], None)
            .into_iter()
            .map(Result::unwrap)
            .collect();
        let stored: Vec<Vec<u8>> = first.iter().map(|(bytes, _)| bytes.clone()).collect();
        for result in session(2, [7, 9], Some(stored.clone())) {
            assert_eq!(result.unwrap().1, [1, 2, 3]);
        }
        assert!(
            session(2, [7, 8], Some(stored.clone()))
                .iter()
                .any(Result::is_err)
        );
        // A party that changes its stored share is caught, too.
        let mut wrong = stored;
        wrong[1][0] ^= 1;
        for result in session(2, [7, 9], Some(wrong)) {
            assert!(matches!(
                result,
                Err(EngineError::Protocol(_) | EngineError::Network { .. })
            ));
        }
    }
}

const LIES: [Lie; 12] = [
    Lie::Vector,
    Lie::Digit,
    Lie::Choices,
    Lie::Proof,
    Lie::Operand,
    Lie::Payload,
    Lie::Product,
    Lie::Bits,
    Lie::AllBits,
    Lie::Number,
    Lie::AllNumbers,
    Lie::Check,
];

/// Of two parties and of three, both protocols: 48 cases. Every honest party stops.
#[test]
fn lies_are_caught() {
    for protocol in ["spdz2k", "mascot"] {
        for n in [2, 3] {
            for lie in LIES {
                let results = run(n, protocol, Some(lie), |engine| {
                    let last = engine.party().1 - 1;
                    let (x, y) = (input(engine, 0, &[3])?, input(engine, last, &[4])?);
                    let product = engine.mul(&x, &y)?;
                    let bits = engine.random_bit(2)?;
                    let (numbers, _) = engine.edabit(10, 64)?;
                    let all = engine.concat(&[&product, &bits, &numbers])?;
                    let opened = engine.open(&all)?;
                    engine.read(&opened)
                });
                for result in results.iter().take(n - 1) {
                    assert!(result.is_err(), "{protocol} {n} {lie:?}");
                }
            }
        }
    }
}

/// A product of inputs of both ends; what must come out: 12.
fn product(engine: &mut dyn Engine) -> Result<(Vec<u64>, u64)> {
    let last = engine.party().1 - 1;
    let (x, y) = (input(engine, 0, &[3])?, input(engine, last, &[4])?);
    let product = engine.mul(&x, &y)?;
    let opened = engine.open(&product)?;
    let out = engine.read(&opened)?;
    Ok((out, engine.stats().rounds))
}

/// Messages of every round of a program are changed on their way, one round a run: nothing wrong comes out, and what was
/// changed is noticed.
#[test]
fn changed_messages_are_noticed() {
    for (protocol, n) in [("spdz2k", 2), ("mascot", 2), ("spdz2k", 3), ("mascot", 3)] {
        let (_, rounds) = run(n, protocol, None, product).remove(0).unwrap();
        assert!(rounds > 20, "{rounds}");
        let step = if n == 2 { 1 } else { 3 };
        let (mut tried, mut noticed) = (0, 0);
        for round in (0..rounds).step_by(step) {
            let change = match round % 4 {
                0 | 2 => Change::Flip(5),
                1 => Change::Shorten,
                _ => Change::Lengthen,
            };
            let results = run_with(n, protocol, None, liar(round, To::First, change), product);
            (tried, noticed) = (tried + 1, noticed + usize::from(results[0].is_err()));
            for result in results.iter().take(n - 1).flatten() {
                assert_eq!(result.0, [12], "{protocol} {n} {change:?} in round {round}");
            }
        }
        // A word for a digit of a key that is 0 changes nothing: one of 16, in a few rounds.
        assert!(
            10 * noticed >= 9 * tried,
            "{protocol} {n}: {noticed} of {tried}"
        );
    }
}

/// Without the check of MACs a changed opening comes out: the check is what stops it.
#[test]
fn the_check_matters() {
    for protocol in ["spdz2k", "mascot"] {
        let body = |engine: &mut dyn Engine| {
            let x = input(engine, 0, &[3])?;
            engine.flush()?;
            let before = engine.stats().rounds;
            let opened = engine.open(&x)?;
            Ok((engine.read(&opened)?, before))
        };
        let (_, before) = run(2, protocol, None, body).remove(0).unwrap();
        // The opening comes after the random masks of a ring, if any: every round from here on is tried.
        let tries = |lie| {
            (before..before + 10)
                .filter_map(|round| {
                    let wrap = liar(round, To::All, Change::Flip(0));
                    run_with(2, protocol, lie, wrap, body).remove(0).ok()
                })
                .any(|(opened, _)| opened != [3])
        };
        assert!(tries(Some(Lie::NoCheck)), "{protocol}");
        assert!(!tries(None), "{protocol}");
    }
}
