//! What every check is good for: the honest parties leave one out, and the adversary that it stops reaches its end.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use keyquorum_math::{Domain, Zq};

use super::caught::{Outcome, Program, attack};
use super::{PRIME, input, run_as};
use crate::adversary::{Adversary, Site};
use crate::budget::COMBINATIONS;
use crate::engine::Engine;
use crate::error::Check;
use crate::protocol::testing::public;
use crate::tests::authenticated::adversaries::{Deviation, Omits, Role};

/// Attacks with the check and without it.
fn matters(check: Check, protocol: &'static str, attack: fn(&'static str, Role) -> Outcome) {
    let outcome = attack(protocol, Role::Honest);
    assert!(
        outcome.is_caught(Some(check)),
        "{protocol}: {:?} {:?}",
        outcome.checks,
        outcome.errors
    );
    let outcome = attack(protocol, Role::Omits(check));
    assert!(outcome.errors.is_empty(), "{:?}", outcome.errors);
    assert!(!outcome.outputs.is_empty());
}

/// As [`matters`], where what comes out is wrong.
fn lets_through(
    check: Check,
    protocol: &'static str,
    wanted: &[u64],
    attack: fn(&'static str, Role) -> Outcome,
) {
    matters(check, protocol, attack);
    let outcome = attack(protocol, Role::Omits(check));
    for output in outcome.outputs {
        assert_ne!(output, wanted, "{protocol}");
    }
}

/// An element that is opened as another, in all its bits or in the low ones.
#[test]
fn every_check_ablated_without_macs_of_elements_another_value_comes_out() {
    fn opening(protocol: &'static str, others: Role) -> Outcome {
        attack(2, protocol, (Deviation::Opening, Program::Sum), 1, &others)
    }
    fn low(protocol: &'static str, others: Role) -> Outcome {
        let role = |party| match party {
            1 => Role::Deviates(Deviation::Opening),
            _ => others.clone(),
        };
        let body = |engine: &mut dyn Engine| {
            let x = input(engine, 0, &[3])?;
            let opened = engine.open_low(&x, 5)?;
            engine.read(&opened)
        };
        Outcome::new(run_as(2, protocol, role, |_, t| t, body), 1)
    }
    for protocol in ["spdz2k", "mascot"] {
        lets_through(Check::ElementMacs, protocol, &[7], opening);
    }
    lets_through(Check::ElementMacs, "spdz2k", &[3], low);
}

/// A bit that is opened as another.
#[test]
fn every_check_ablated_without_macs_of_bits_another_bit_comes_out() {
    fn opening(protocol: &'static str, others: Role) -> Outcome {
        let role = |party| match party {
            1 => Role::Deviates(Deviation::BitOpening),
            _ => others.clone(),
        };
        let body = |engine: &mut dyn Engine| {
            let given = (engine.party().0 == 0).then(|| vec![1u8; 3]);
            let x = engine.input_bits(0, 3, given.as_deref())?;
            let opened = engine.open(&x)?;
            let bits = engine.read_bits(&opened)?;
            Ok(bits.into_iter().map(u64::from).collect())
        };
        Outcome::new(run_as(2, protocol, role, |_, t| t, body), 1)
    }
    for protocol in ["spdz2k", "mascot"] {
        lets_through(Check::BitMacs, protocol, &[1, 1, 1], opening);
    }
}

/// Numbers that are not what their bits say.
#[test]
fn every_check_ablated_without_the_check_of_edabits_wrong_numbers_come_out() {
    fn numbers(protocol: &'static str, others: Role) -> Outcome {
        attack(
            2,
            protocol,
            (Deviation::Number, Program::Numbers),
            1,
            &others,
        )
    }
    for protocol in ["spdz2k", "mascot"] {
        lets_through(Check::EdaBits, protocol, &[0; 64], numbers);
    }
}

/// Honest parties that look neither at the sums of subsets nor at the MACs of what is opened.
struct Careless;

impl Adversary for Careless {
    fn deviates(&self, _site: Site) -> bool {
        false
    }

    fn omits(&self, check: Check) -> bool {
        matches!(check, Check::SubsetSums | Check::ElementMacs)
    }
}

/// Modulo 2^l a party adds 2^(l - 1) to what all bits of the others are multiplied by. With the sums of subsets it is caught in every run. Without them the four
/// combinations of a later check notice it too, unless a sum of honest bits is even for each of them, as one combination did not in one of eight runs.
/// Without both nobody notices it.
#[test]
fn every_check_ablated_without_subset_sums_a_bet_on_honest_bits_goes_unnoticed() {
    let bits = |others: &Role| attack(2, "spdz2k", (Deviation::Top, Program::Bits), 1, others);
    for _ in 0..8 {
        assert!(bits(&Role::Honest).is_caught(Some(Check::SubsetSums)));
        let later = bits(&Role::Omits(Check::SubsetSums));
        assert!(!later.is_caught(Some(Check::SubsetSums)));
    }
    let outcome = bits(&Role::Plays(Arc::new(Careless)));
    assert!(outcome.errors.is_empty(), "{:?}", outcome.errors);
}

/// What parties have said in the round in which they open what they had committed to.
#[derive(Default)]
struct Said {
    reveals: Mutex<BTreeMap<usize, Vec<u8>>>,
    news: Condvar,
}

/// An honest party, whose openings the adversary reads before it sends its own: the network is the adversary's.
struct Overheard {
    said: Arc<Said>,
    number: Mutex<usize>,
    omits: Option<Check>,
}

impl Adversary for Overheard {
    fn deviates(&self, site: Site) -> bool {
        site == Site::Reveal
    }

    fn bytes(&self, _site: Site, to: Option<usize>, message: &mut Vec<u8>) {
        if to == Some(1) {
            let mut number = self.number.lock().unwrap();
            let mut reveals = self.said.reveals.lock().unwrap();
            reveals.insert(*number, message.clone());
            *number += 1;
            self.said.news.notify_all();
        }
    }

    fn omits(&self, check: Check) -> bool {
        self.omits == Some(check)
    }
}

/// Opens another element, and then, for its part of the sum of the MAC check, what is missing to zero.
struct Rushing {
    said: Arc<Said>,
    number: Mutex<usize>,
    field: Zq,
}

/// A nonce.
const NONCE: usize = 32;

impl Adversary for Rushing {
    fn deviates(&self, site: Site) -> bool {
        matches!(site, Site::Opening | Site::Reveal)
    }

    fn words(&self, _site: Site, _to: Option<usize>, words: &mut [u128]) {
        words.iter_mut().take(1).for_each(|word| *word += 1);
    }

    fn bytes(&self, _site: Site, to: Option<usize>, message: &mut Vec<u8>) {
        if to != Some(0) {
            return;
        }
        let mut number = self.number.lock().unwrap();
        let mut reveals = self.said.reveals.lock().unwrap();
        // The sums of the check of elements, and no other values, have 16 bytes each.
        if message.len() == NONCE + 16 * COMBINATIONS {
            let limit = Duration::from_secs(20);
            let waits = |said: &mut BTreeMap<usize, Vec<u8>>| !said.contains_key(&number);
            reveals = (self.said.news.wait_timeout_while(reveals, limit, waits))
                .unwrap()
                .0;
            message.truncate(NONCE);
            for theirs in reveals[&*number][NONCE..].as_chunks::<16>().0 {
                let theirs = self.field.from_u128(u128::from_le_bytes(*theirs));
                let ours = u128::from(self.field.neg(theirs));
                message.extend(ours.to_le_bytes());
            }
        }
        drop(reveals);
        *number += 1;
    }

    fn omits(&self, _check: Check) -> bool {
        true
    }
}

/// Who may choose its sum after those of the others makes every sum zero.
#[test]
fn every_check_ablated_without_commitments_another_value_comes_out() {
    fn rushing(protocol: &'static str, others: Role) -> Outcome {
        let said = Arc::new(Said::default());
        let omits = match others {
            Role::Omits(check) => Some(check),
            _ => None,
        };
        let role = |party| {
            let (said, number) = (Arc::clone(&said), Mutex::default());
            Role::Plays(match party {
                0 => Arc::new(Overheard {
                    said,
                    number,
                    omits,
                }),
                _ => Arc::new(Rushing {
                    said,
                    number,
                    field: Zq::new(PRIME).unwrap(),
                }),
            })
        };
        let body = |engine: &mut dyn Engine| {
            let x = input(engine, 0, &[3])?;
            let opened = engine.open(&x)?;
            engine.read(&opened)
        };
        Outcome::new(run_as(2, protocol, role, |_, t| t, body), 1)
    }
    lets_through(Check::Commitment, "mascot", &[3], rushing);
}

/// What everybody gets in the last check of elements, and the key of the party that it is for.
#[derive(Default)]
struct Seen {
    toss: Option<[u8; 32]>,
    sums: Vec<u128>,
    key: u64,
}

/// An honest party; the test sees what it does, and that is no secret from the others but for its key.
struct Watched {
    seen: Arc<Mutex<Seen>>,
    omits: Option<Check>,
}

impl Adversary for Watched {
    fn deviates(&self, site: Site) -> bool {
        site == Site::Key
    }

    fn sees(&self, site: Site, _from: usize, message: &[u8]) {
        let mut seen = self.seen.lock().unwrap();
        match site {
            Site::Key => {
                let mut key = [0];
                Zq::new(PRIME).unwrap().decode(message, &mut key).unwrap();
                [seen.key] = key;
            }
            // That of elements comes before that of bits.
            Site::Toss if seen.toss.is_none() => seen.toss = message.try_into().ok(),
            Site::CheckSum => {
                // Of the first combination.
                let word = u128::from_le_bytes(*message.first_chunk().unwrap());
                seen.sums.push(word);
            }
            _ => {}
        }
    }

    fn omits(&self, check: Check) -> bool {
        self.omits == Some(check)
    }
}

/// As many elements as are opened at once at the end, and never before.
const OPENED: usize = 5;

/// Opens an element differently to party 0 alone.
struct Isolating;

impl Adversary for Isolating {
    fn deviates(&self, site: Site) -> bool {
        site == Site::Opening
    }

    fn words(&self, _site: Site, to: Option<usize>, words: &mut [u128]) {
        if words.len() == OPENED && to == Some(0) {
            words[0] += 1;
        }
    }

    fn omits(&self, _check: Check) -> bool {
        true
    }
}

/// Where it is not compared what parties received, a value that was opened differently to one party makes the sums of the check tell the
/// key of that party, which nothing else does.
#[test]
fn every_check_ablated_without_the_comparison_the_key_of_a_party_comes_out() {
    let run = |omits: Option<Check>| {
        let all: [Arc<Mutex<Seen>>; 2] = Default::default();
        let role = |party| {
            Role::Plays(match all.get(party) {
                Some(seen) => Arc::new(Watched {
                    seen: Arc::clone(seen),
                    omits,
                }),
                None => Arc::new(Isolating),
            })
        };
        let watched = all.clone();
        let body = move |engine: &mut dyn Engine| {
            let x = input(engine, 0, &[3; OPENED])?;
            let first = input(engine, 0, &[1])?;
            let opened = engine.open(&first)?;
            engine.read(&opened)?;
            // Everything so far is verified: the last check is of the last opening.
            if let Some(seen) = watched.get(engine.party().0) {
                let mut seen = seen.lock().unwrap();
                (seen.toss, seen.sums) = (None, Vec::new());
            }
            let opened = engine.open(&x)?;
            engine.read(&opened)
        };
        let outcome = Outcome::new(run_as(3, "mascot", role, |_, t| t, body), 2);
        let seen = all.map(|seen| std::mem::take(&mut *seen.lock().unwrap()));
        (outcome, seen)
    };
    let (outcome, seen) = run(None);
    assert!(
        outcome.is_caught(Some(Check::Broadcast)),
        "{:?}",
        outcome.errors
    );
    assert!(seen.iter().all(|seen| seen.sums.is_empty()));
    let (outcome, seen) = run(Some(Check::Broadcast));
    assert!(
        outcome.is_caught(Some(Check::ElementMacs)),
        "{:?}",
        outcome.errors
    );
    // Of two honest parties one may have broken off before the other had the sums.
    let one = seen.iter().find(|seen| seen.sums.len() == 3).unwrap();
    let field = Zq::new(PRIME).unwrap();
    let sums = one.sums.iter().map(|sum| field.from_u128(*sum));
    let total = sums.fold(0, |total, sum| field.add(total, sum));
    let mut factors = [0; OPENED];
    field.random(&mut public(&one.toss.unwrap(), 0), &mut factors);
    let key = field.mul(field.neg(total), field.invert(factors[0]).unwrap());
    assert_eq!(key, seen[0].key);
}

/// In which random bits of several choices in different rows have MACs that do not fit, and are taken for good.
#[test]
fn every_check_ablated_without_the_check_of_transfers_bits_get_wrong_macs() {
    let outcome = |others: Option<Check>| {
        crate::tests::binary::bits_of_several_choices(move || {
            others.map(|check| -> crate::adversary::Corruption { Arc::new(Omits(check)) })
        })
    };
    let error = outcome(None).unwrap_err();
    assert!(matches!(
        error,
        crate::EngineError::Check {
            check: Check::OtExtension,
            ..
        }
    ));
    assert!(!outcome(Some(Check::OtExtension)).unwrap());
}

/// Every check has its test here; a new one does not compile without an answer.
#[test]
fn every_check_is_left_out_somewhere() {
    let file = |check| match check {
        Check::ElementMacs
        | Check::BitMacs
        | Check::SubsetSums
        | Check::OtExtension
        | Check::Commitment
        | Check::Broadcast
        | Check::EdaBits => include_str!("omitted.rs"),
        Check::PuncturedPrfs => include_str!("../../../../ot/src/punctured.rs"),
        Check::ElementKeys => include_str!("two_keys.rs"),
        Check::StoredKeys => include_str!("stored_keys.rs"),
        Check::Interrupted => include_str!("../../session/tests/burned.rs"),
        Check::Products | Check::Openings => include_str!("../verified/omitted.rs"),
        Check::SubsetSeeds => include_str!("../verified/coins.rs"),
        Check::RecoveredShares => include_str!("../../recovery.rs"),
    };
    for (check, name) in [
        (Check::ElementMacs, "without_macs_of_elements"),
        (Check::BitMacs, "without_macs_of_bits"),
        (Check::SubsetSums, "without_subset_sums"),
        (Check::OtExtension, "without_the_check_of_transfers"),
        (Check::Commitment, "without_commitments"),
        (Check::Broadcast, "without_the_comparison"),
        (Check::EdaBits, "without_the_check_of_edabits"),
        (Check::PuncturedPrfs, "without_the_check_of_prfs"),
        (Check::Interrupted, "check_cut_off_by_who_has_the_sums"),
        (Check::Products, "without_the_check_of_products"),
        (Check::Openings, "without_the_comparison_of_openings"),
        (Check::SubsetSeeds, "without_the_comparison_of_seeds"),
        (Check::RecoveredShares, "without_the_check_of_the_degree"),
    ] {
        let test = ["_ablated_", name].concat();
        assert!(file(check).contains(&test), "{check:?}");
    }
}
