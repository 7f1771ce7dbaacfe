//! Honest runs, through the operations that programs use. Corrupted parties are in [`caught`] and [`omitted`].
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

pub(crate) mod adversaries;
mod caught;
mod changed_messages;
mod factors;
mod key_separation;
mod omitted;
mod personal;
mod refused;
mod silent;
mod stored_keys;
mod two_keys;

use std::thread;
use std::time::Duration;

use keyquorum_math::{DomainKind, Z2k128, Zq};
use keyquorum_net::{Transport, local_mesh};

use self::adversaries::{Deviation, Role};
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::ops::Computation;
use crate::protocol::Arithmetic;
use crate::protocol::authenticated::{Authenticated, MAC_BITS};
use crate::session::{EngineOptions, Session};

const PRIME: u64 = 1_152_921_504_606_584_833;

/// Runs all parties; the last one deviates so.
fn run<T: Send + 'static>(
    n: usize,
    protocol: &'static str,
    deviation: Option<Deviation>,
    body: impl Fn(&mut dyn Engine) -> Result<T> + Clone + Send + 'static,
) -> Vec<Result<T>> {
    run_with(n, protocol, (n - 1, deviation), |transport| transport, body)
}

/// Runs all parties, one of which is corrupted; `wrap` changes the transport of the last one.
fn run_with<T: Send + 'static>(
    n: usize,
    protocol: &'static str,
    (corrupted, deviation): (usize, Option<Deviation>),
    wrap: impl Fn(Box<dyn Transport>) -> Box<dyn Transport>,
    body: impl Fn(&mut dyn Engine) -> Result<T> + Clone + Send + 'static,
) -> Vec<Result<T>> {
    let role = |party| match deviation {
        Some(deviation) if party == corrupted => Role::Deviates(deviation),
        _ => Role::Honest,
    };
    let wrap = |party, transport| match party {
        party if party == n - 1 => wrap(transport),
        _ => transport,
    };
    run_as(n, protocol, role, wrap, body)
}

/// Runs all parties: what each is, and its transport.
fn run_as<T: Send + 'static>(
    n: usize,
    protocol: &'static str,
    role: impl Fn(usize) -> Role,
    wrap: impl Fn(usize, Box<dyn Transport>) -> Box<dyn Transport>,
    body: impl Fn(&mut dyn Engine) -> Result<T> + Clone + Send + 'static,
) -> Vec<Result<T>> {
    let threads: Vec<_> = local_mesh(n, Duration::from_secs(60))
        .into_iter()
        .enumerate()
        .map(|(party, transport)| {
            let body = body.clone();
            let role = role(party);
            let transport = wrap(party, Box::new(transport));
            thread::spawn(move || {
                let session = Session::new(transport)?;
                let result =
                    open(&session, protocol, role).and_then(|mut engine| body(&mut *engine));
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
    role: Role,
) -> Result<Box<dyn Engine>> {
    let protocol: Authenticated<A> = session.protocol_with_macs(
        domains.clone(),
        1000,
        &EngineOptions::default(),
        role.corruption(session.party(), domains.clone()),
    )?;
    let threshold = session.parties() - 1;
    Ok(Box::new(Computation::new(
        session.clone(),
        protocol,
        domains,
        threshold,
        false,
    )))
}

fn open(session: &Session, protocol: &str, role: Role) -> Result<Box<dyn Engine>> {
    let ring = match protocol {
        "spdz2k" => Some(64),
        "spdz2k modulo 2^72" => Some(72),
        _ => None,
    };
    if let Some(k) = ring {
        let shares = Z2k128::new(k + MAC_BITS).unwrap();
        return computation(session, (Z2k128::new(k).unwrap(), shares), role);
    }
    let field = Zq::new(PRIME).unwrap();
    computation(session, (field.clone(), field), role)
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

/// Low bits alone are opened, whatever is above them, and sent: so many and those of the key, each under a random element of its own.
#[test]
fn low_bits_are_opened_alone() {
    for (protocol, k) in [("spdz2k", 64), ("spdz2k modulo 2^72", 72)] {
        for parties in [2, 3] {
            for bits in [1, 5, 63, k] {
                let sent = move |n: i64| {
                    run(parties, protocol, None, move |engine| {
                        let value = |i: i64| i.wrapping_mul(0x7654_3210_1234_5679) - 1;
                        let values: Vec<i64> = (0..n).map(value).collect();
                        let x = input(engine, 0, &values)?;
                        let opened = engine.open_low(&x, bits)?;
                        let low =
                            |v: &i64| i128::from(*v).cast_unsigned() & (u128::MAX >> (128 - bits));
                        let wanted: Vec<u128> = values.iter().map(low).collect();
                        assert_eq!(engine.read_wide(&opened)?, wanted);
                        let items = engine.preprocessed();
                        let masks = items.iter().find(|m| m.name == "random elements").unwrap();
                        assert_eq!(masks.used, values.len() as u64);
                        let stats = engine.stats();
                        Ok(stats.bytes_sent - stats.offline_bytes_sent)
                    })
                };
                let few = sent(8).into_iter().map(Result::unwrap);
                let many = sent(808).into_iter().map(Result::unwrap);
                let peers = parties as u64 - 1;
                for (party, (few, many)) in few.zip(many).enumerate() {
                    // The owner also gives its masked inputs, in whole bytes.
                    let given = if party == 0 {
                        (k + MAC_BITS).div_ceil(8)
                    } else {
                        0
                    };
                    let wanted =
                        peers * (100 * u64::from(bits + MAC_BITS) + 800 * u64::from(given));
                    assert_eq!(many - few, wanted, "{parties} {bits}");
                }
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

/// `n` random numbers of `length` bits, opened, which must be what their bits say.
fn numbers(engine: &mut dyn Engine, length: usize, n: usize) -> Result<Vec<u128>> {
    let (numbers, rows) = engine.edabit(length, n)?;
    assert_eq!((numbers.size(), rows.len()), (n, length));
    let opened = engine.open(&numbers)?;
    let numbers = engine.read_wide(&opened)?;
    let mut said = vec![0u128; n];
    for (j, row) in rows.iter().enumerate() {
        let opened = engine.open(row)?;
        for (number, bit) in said.iter_mut().zip(engine.read_bits(&opened)?) {
            *number |= u128::from(bit) << j;
        }
    }
    assert_eq!(numbers, said, "{length}");
    Ok(numbers)
}

fn made(engine: &dyn Engine, name: &str) -> u64 {
    let items = engine.preprocessed();
    items.iter().find(|m| m.name == name).unwrap().made
}

/// Of whole lanes and of parts, shorter than the domain and as long as it; few and short ones bit by bit.
#[test]
fn numbers_are_what_their_bits_say() {
    for (protocol, parties, lengths) in [
        ("spdz2k", 2, &[1, 33, 63, 64][..]),
        ("spdz2k", 5, &[12, 64]),
        ("spdz2k modulo 2^72", 3, &[72, 70]),
        ("mascot", 2, &[1, 18, 59]),
        ("mascot", 3, &[18]),
    ] {
        let results = run(parties, protocol, None, move |engine| {
            let mut all = Vec::new();
            for (length, n) in lengths.iter().zip([64, 100, 200, 70]) {
                all.push(numbers(engine, *length, n)?);
            }
            all.push(numbers(engine, 9, 5)?);
            assert!(made(engine, "edabits") >= 64);
            Ok(all)
        });
        let all: Vec<_> = results.into_iter().map(Result::unwrap).collect();
        assert!(all.iter().all(|numbers| *numbers == all[0]), "{protocol}");
        // Of 64 numbers no bit is the same in all, but with probability 12·2^-63 at most.
        let length = lengths.iter().find(|length| **length >= 12).unwrap();
        let index = lengths.iter().position(|l| l == length).unwrap();
        for j in 0..12 {
            let ones = all[0][index].iter().filter(|v| *v >> j & 1 == 1).count();
            assert!((1..all[0][index].len()).contains(&ones), "{protocol} {j}");
        }
    }
}

/// Numbers are made at once, and leave what was asked for before as it is.
#[test]
fn numbers_come_between_other_operations() {
    for result in run(2, "spdz2k", None, |engine| {
        let x = input(engine, 0, &[3])?;
        let square = engine.mul(&x, &x)?;
        let opened = engine.open(&square)?;
        let (first, _) = engine.edabit(20, 40)?;
        let (second, _) = engine.edabit(20, 24)?;
        let random = engine.random(1)?;
        let product = engine.mul(&random, &square)?;
        let nine = engine.read(&opened)?;
        let both = engine.concat(&[&first, &second, &product])?;
        let both = engine.open(&both)?;
        assert!(engine.read(&both)?.iter().take(64).all(|v| *v < 1 << 20));
        Ok(nine)
    }) {
        assert_eq!(result.unwrap(), [9]);
    }
}

/// Parties that ask for different numbers get an error at once, also if both have them.
#[test]
fn all_parties_ask_for_the_same_numbers() {
    for more in [0, 64] {
        for result in run(2, "spdz2k", None, move |engine| {
            let (_, _) = engine.edabit(9, 64)?;
            engine.edabit(8, 32 + more * engine.party().0)?;
            let x = input(engine, 0, &[1])?;
            let opened = engine.open(&x)?;
            engine.read(&opened)
        }) {
            assert_eq!(result.is_err(), more > 0);
        }
    }
}

/// What a ring has above 2^k does not count, in numbers either.
#[test]
fn numbers_count_modulo_their_ring() {
    for result in run(2, "spdz2k", Some(Deviation::Above), |engine| {
        numbers(engine, 64, 64)
    }) {
        assert_eq!(result.unwrap().len(), 64);
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
                        session.set_mac_key([keys[party]; 16], None)?;
                        let mut engine =
                            session.engine(protocol, domain, &EngineOptions::default())?;
                        let x = match &stored {
                            Some(all) => {
                                let size = 3 * 2 * engine.element_bytes();
                                let (share, origin) = all[party].split_at(size);
                                engine.check_origin(origin)?;
                                engine.import(share, 3)?
                            }
                            None => input(&mut *engine, 0, &[1, 2, 3])?,
                        };
                        let bytes = [engine.export(&x)?, engine.origin()?.to_vec()].concat();
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
        let store = |keys| -> Vec<Vec<u8>> {
            let first = session(2, keys, None).into_iter();
            first.map(|result| result.unwrap().0).collect()
        };
        // A failed check burns the keys: others for every case.
        let keys = if protocol == "spdz2k" { 10 } else { 20 };
        let stored = store([keys, keys + 1]);
        for result in session(2, [keys, keys + 1], Some(stored.clone())) {
            assert_eq!(result.unwrap().1, [1, 2, 3]);
        }
        assert!(
            session(2, [keys, keys + 2], Some(stored))
                .iter()
                .any(Result::is_err)
        );
        // A party that changes its stored share is caught, too.
        let mut wrong = store([keys + 3, keys + 4]);
        wrong[1][0] ^= 1;
        for result in session(2, [keys + 3, keys + 4], Some(wrong)) {
            assert!(matches!(
                result,
                Err(EngineError::Check { .. } | EngineError::Network { .. })
            ));
        }
    }
}
