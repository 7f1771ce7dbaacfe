//! Messages that are changed on their way, through the operations that programs use.

use super::{input, numbers, run, run_with};
use crate::engine::Engine;
use crate::error::Result;
use crate::long_tests;
use crate::tests::binary::tampering::{Change, To, tampering};

/// Changes a message to party 0 in every `step`th round of `body`, which checks its results and returns its rounds.
fn most_changes_are_noticed(
    step: usize,
    body: impl Fn(&mut dyn Engine) -> Result<u64> + Copy + Send + 'static,
) {
    for protocol in ["spdz2k", "mascot"] {
        let rounds = run(2, protocol, None, body).remove(0).unwrap();
        let (mut tried, mut noticed) = (0, 0);
        for round in (0..rounds).step_by(step) {
            let wrap = tampering(round, To::First, Change::Flip(11));
            let results = run_with(2, protocol, (1, None), wrap, body);
            (tried, noticed) = (tried + 1, noticed + usize::from(results[0].is_err()));
        }
        println!(
            "adversaries: protocol={protocol} rounds={rounds} tried={tried} noticed={noticed}"
        );
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
    most_changes_are_noticed(if long_tests() { 5 } else { 11 }, body);
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
            // A word for a digit of a key that is 0 changes nothing: one of 16, in a few rounds. All six are with probability 2^-24.
            let found = (0..6).any(|_| {
                let adversary = tampering(round, To::First, change);
                let results = run_with(n, protocol, (n - 1, None), adversary, product);
                for result in results.iter().take(n - 1).flatten() {
                    assert_eq!(result.0, [12], "{protocol} {n} {change:?} in round {round}");
                }
                results[0].is_err()
            });
            (tried, noticed) = (tried + 1, noticed + usize::from(found));
        }
        assert!(
            10 * noticed >= 9 * tried,
            "{protocol} {n}: {noticed} of {tried}"
        );
    }
}
