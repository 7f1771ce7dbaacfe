//! Many elements with MACs for few messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::caught::{Outcome, Program, attack};
use super::{input, made, run, run_as};
use crate::adversary::{Adversary, Corruption, Omitting, Site};
use crate::engine::Engine;
use crate::error::Check;
use crate::protocol::authenticated::adversaries::{Deviation, Role};

/// Inputs of one party, and random elements, which have their MACs.
#[test]
fn many_inputs_and_random_elements_have_macs() {
    // Modulo 2^k all are made one by one.
    for (protocol, parties) in [("mascot", 2), ("spdz2k", 2), ("mascot", 3)] {
        let results = run(parties, protocol, None, move |engine| {
            let values: Vec<i64> = (0..9000).map(|i| 7 * i).collect();
            let x = input(engine, 1, &values)?;
            let opened = engine.open(&x)?;
            let found = engine.read(&opened)?;
            assert!(found.iter().zip(&values).all(|(x, y)| *x as i64 == *y));
            let random = engine.random(9000)?;
            let opened = engine.open(&random)?;
            let random = engine.read(&opened)?;
            let again = engine.random(9000)?;
            let opened = engine.open(&again)?;
            let again = engine.read(&opened)?;
            assert!(made(engine, "input elements") >= 9000);
            Ok([random, again].concat())
        });
        let all: Vec<_> = results.into_iter().map(Result::unwrap).collect();
        assert!(all.iter().all(|elements| *elements == all[0]));
        let mut elements = all[0].clone();
        elements.sort_unstable();
        elements.dedup();
        // Two of 18,000 elements are equal with probability 2^-31.
        assert_eq!(elements.len(), 18_000, "{protocol}");
        let half = 1u64 << (if protocol == "spdz2k" { 63 } else { 59 });
        // 9000 expected, a standard deviation of 67: six of them.
        let large = all[0].iter().filter(|x| **x >= half).count();
        assert!(large.abs_diff(9000) < 403, "{large}");
    }
}

/// Bytes of inputs, beside those of the same number of inputs that are multiplied by the keys one by one: 96 bytes, and 8 for what is under the mask.
#[test]
fn inputs_cost_a_few_bytes() {
    let sent = |n: i64| {
        let results = run(2, "mascot", None, move |engine| {
            let values: Vec<i64> = (0..n).collect();
            let x = input(engine, 0, &values)?;
            let total = engine.sum(&x, values.len())?;
            let opened = engine.open(&total)?;
            engine.read(&opened)?;
            Ok(engine.stats().bytes_sent)
        });
        let total: u64 = results.into_iter().map(Result::unwrap).sum();
        total as f64 / n as f64
    };
    let (few, many) = (sent(3900), sent(1 << 16));
    assert!((104.0..108.0).contains(&few), "{few}");
    assert!(many < 24.0, "{many}");
}

/// The corrupted party changes the sum of the left children at the root of one tree, in its first message. If the path goes to the left, the other party does not use it.
#[derive(Default)]
struct Bet(AtomicBool);

impl Adversary for Bet {
    fn deviates(&self, site: Site) -> bool {
        site == Site::Trees
    }

    fn bytes(&self, _site: Site, _to: Option<usize>, message: &mut Vec<u8>) {
        if !self.0.swap(true, Ordering::Relaxed) {
            message[0] ^= 1;
        }
    }

    fn omits(&self, _check: Check) -> bool {
        true
    }
}

/// Many inputs of party 0, where party 1 is corrupted so.
fn played(corruption: Corruption) -> Outcome {
    let role = |party| match party {
        1 => Role::Plays(Arc::clone(&corruption)),
        _ => Role::Honest,
    };
    let body = |engine: &mut dyn Engine| {
        let values: Vec<i64> = (0..9000).collect();
        let x = input(engine, 0, &values)?;
        // The elements of the first block stay in the pool.
        let total = engine.sum(&x, values.len())?;
        let opened = engine.open(&total)?;
        engine.read(&opened)
    };
    Outcome::new(run_as(2, "mascot", role, |_, t| t, body), 1)
}

/// One bit of a place costs a bet: one of two is caught, and none of 24 or all with probability 2^-23.
#[test]
fn a_bet_on_a_bit_of_a_place_is_caught_half_of_the_time() {
    let caught = (0..24).filter(|_| {
        let outcome = played(Arc::new(Bet::default()));
        assert!(outcome.errors.is_empty() || outcome.is_caught(Some(Check::SubsetSums)));
        !outcome.errors.is_empty()
    });
    let caught = caught.count();
    assert!((1..24).contains(&caught), "{caught}");
}

/// Without checks wrong MACs come into the pools.
#[test]
fn without_checks_wrong_trees_go_unnoticed() {
    let careless = || Omitting([Check::SubsetSums, Check::ElementMacs].into());
    for deviation in [Deviation::Trees, Deviation::Shift] {
        let attacked = |others| attack(2, "mascot", (deviation, Program::Many), 1, &others);
        assert!(attacked(Role::Honest).is_caught(Some(Check::SubsetSums)));
        let outcome = attacked(Role::Plays(Arc::new(careless())));
        assert!(outcome.errors.is_empty(), "{:?}", outcome.errors);
    }
}
