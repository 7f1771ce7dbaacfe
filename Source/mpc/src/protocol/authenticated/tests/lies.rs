//! Parties that lie, and messages that are changed on their way, through the operations that programs use.

use super::{input, numbers, run, run_with};
use crate::engine::Engine;
use crate::error::Result;
use crate::protocol::authenticated::adversaries::Lie;
use crate::protocol::authenticated::binary::liar::{Change, To, liar};

#[test]
fn numbers_that_are_not_their_bits_are_named() {
    for protocol in ["spdz2k", "mascot"] {
        for lie in [Lie::Number, Lie::AllNumbers, Lie::Test] {
            for n in [2, 3] {
                let results = run(n, protocol, Some(lie), |engine| {
                    engine.edabit(10, 64).map(drop)
                });
                let told = results.iter().any(|result| {
                    result
                        .as_ref()
                        .is_err_and(|e| e.to_string().contains("not what their bits say"))
                });
                assert!(told, "{protocol} {n} {lie:?}");
                assert!(results.iter().all(Result::is_err), "{protocol} {n} {lie:?}");
            }
        }
    }
}

/// Changes a message to party 0 in every `step`th round of `body`, which checks what comes out and tells its rounds.
fn most_changes_are_noticed(
    step: usize,
    body: impl Fn(&mut dyn Engine) -> Result<u64> + Copy + Send + 'static,
) {
    for protocol in ["spdz2k", "mascot"] {
        let rounds = run(2, protocol, None, body).remove(0).unwrap();
        let (mut tried, mut noticed) = (0, 0);
        for round in (0..rounds).step_by(step) {
            let wrap = liar(round, To::First, Change::Flip(11));
            let results = run_with(2, protocol, (1, None), wrap, body);
            (tried, noticed) = (tried + 1, noticed + usize::from(results[0].is_err()));
        }
        // A correction for a digit of a key that is 0, or for a bit that was not chosen, changes nothing.
        assert!(
            10 * noticed >= 7 * tried,
            "{protocol}: {noticed} of {tried}"
        );
    }
}

/// Messages of every few rounds are changed on their way: what comes out is right, or the parties stop.
#[test]
fn changed_messages_about_numbers_are_noticed() {
    let body = |engine: &mut dyn Engine| {
        numbers(engine, 10, 64)?;
        Ok(engine.stats().rounds)
    };
    most_changes_are_noticed(5, body);
}

/// Bits of both domains, with lies of the first party and of the last; every time, in the task that makes them.
#[test]
fn lies_about_bits_are_caught_where_they_are_made() {
    let lies = [
        Lie::Bits,
        Lie::AllBits,
        Lie::Key,
        Lie::Top,
        Lie::Factor,
        Lie::FactorMac,
    ];
    let tries = |lie: Lie| if lie == Lie::Top { 10 } else { 1 };
    for (protocol, n) in [("spdz2k", 2), ("spdz2k", 3), ("mascot", 2), ("mascot", 3)] {
        for lie in lies {
            for (liar, _) in (0..tries(lie)).flat_map(|i| [(0, i), (n - 1, i)]) {
                let results = run_with(
                    n,
                    protocol,
                    (liar, Some(lie)),
                    |transport| transport,
                    |engine| {
                        engine.random_bit(64)?;
                        engine.flush()
                    },
                );
                let honest = results.iter().enumerate().filter(|(i, _)| *i != liar);
                for (_, result) in honest {
                    assert!(result.is_err(), "{protocol} {n} {lie:?} of party {liar}");
                }
            }
        }
    }
}

/// Messages of every other round are changed on their way, as for numbers.
#[test]
fn changed_messages_about_bits_are_noticed() {
    let body = |engine: &mut dyn Engine| {
        let random = engine.random_bits(64)?;
        let (bits, elements) = (engine.open(&random)?, engine.bit_to_arith(&random)?);
        let opened = engine.open(&elements)?;
        let elements = engine.read(&opened)?;
        let bits: Vec<u64> = (engine.read_bits(&bits)?.into_iter().map(u64::from)).collect();
        assert_eq!(elements, bits);
        Ok(engine.stats().rounds)
    };
    most_changes_are_noticed(2, body);
}

const LIES: [Lie; 17] = [
    Lie::Vector,
    Lie::Digit,
    Lie::Choices,
    Lie::Proof,
    Lie::Operand,
    Lie::Payload,
    Lie::Product,
    Lie::Bits,
    Lie::AllBits,
    Lie::Key,
    Lie::Top,
    Lie::Factor,
    Lie::FactorMac,
    Lie::Number,
    Lie::AllNumbers,
    Lie::Test,
    Lie::Check,
];

/// Of two parties and of three, both protocols: 68 cases. Every honest party stops.
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
            let results = run_with(
                n,
                protocol,
                (n - 1, None),
                liar(round, To::First, change),
                product,
            );
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

/// Without the check of MACs a changed opening comes out, of all bits or of the low ones: the check is what stops it.
#[test]
fn the_check_matters() {
    for (protocol, low) in [("spdz2k", None), ("spdz2k", Some(5)), ("mascot", None)] {
        let body = move |engine: &mut dyn Engine| {
            let x = input(engine, 0, &[3])?;
            engine.flush()?;
            let before = engine.stats().rounds;
            let opened = match low {
                Some(bits) => engine.open_low(&x, bits)?,
                None => engine.open(&x)?,
            };
            Ok((engine.read(&opened)?, before))
        };
        let (_, before) = run(2, protocol, None, body).remove(0).unwrap();
        // The opening comes after the random masks of a ring, if any: every round from here on is tried.
        let tries = |lie| {
            (before..before + 10)
                .filter_map(|round| {
                    let wrap = liar(round, To::All, Change::Flip(0));
                    run_with(2, protocol, (1, lie), wrap, body).remove(0).ok()
                })
                .any(|(opened, _)| opened != [3])
        };
        assert!(tries(Some(Lie::NoCheck)), "{protocol} {low:?}");
        assert!(!tries(None), "{protocol} {low:?}");
    }
}
