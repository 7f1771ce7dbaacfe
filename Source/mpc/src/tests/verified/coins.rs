//! A corrupted party that withholds a message until it knows the challenge: it gets stuck. Where one honest party reveals a challenge alone, it wins.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use keyquorum_math::{Domain, Zq};
use keyquorum_net::{Counters, Length, NetError, Transport};

use super::{Base, Outcome, PRIME, Setting, input, opened};
use crate::adversary::{Adversary, Site};
use crate::engine::Engine;
use crate::error::{Check, Result};
use crate::intercept::intercept;
use crate::protocol::testing::Ablated;
use crate::protocol::testing::{seeded, toss_elements};

/// The corrupted party, the honest one that waits for its message of a product, and the one that does not.
pub(super) const CORRUPT: usize = 0;
const WAITS: usize = 1;
const GOES_ON: usize = 2;

/// Bytes of the tag of a message.
const TAG: usize = 8;

/// Elements of the two products.
const PRODUCTS: usize = 2;

/// The round of a message.
pub(super) fn round(message: &[u8]) -> u64 {
    u64::from_le_bytes(message[..TAG].try_into().unwrap()) >> 32
}

/// Element `index` of the payload of a message.
pub(super) fn element(message: &[u8], index: usize) -> u64 {
    let at = TAG + 8 * index;
    u64::from_le_bytes(message[at..at + 8].try_into().unwrap())
}

/// Adds to element `index` of the payload of a message.
pub(super) fn add_to(field: &Zq, message: &mut [u8], index: usize, value: u64) {
    let at = TAG + 8 * index;
    let sum = field.add(element(message, index), value);
    message[at..at + 8].copy_from_slice(&sum.to_le_bytes());
}

/// Adds one to the first product, and goes on whatever it finds.
struct AddsOne;

impl Adversary for AddsOne {
    fn deviates(&self, site: Site) -> bool {
        site == Site::Summand
    }

    fn words(&self, _: Site, to: Option<usize>, words: &mut [u128]) {
        if let ([first, _], None) = (words, to) {
            *first = (*first + 1) % u128::from(PRIME);
        }
    }

    fn omits(&self, _: Check) -> bool {
        true
    }
}

/// What the corrupted party does with the message that it withholds, when it has seen what the party that goes on sent in the toss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// It computes the challenge, and sends what makes the check pass.
    Repairs,
    /// It waits for the challenge.
    Waits,
    /// It sends what a guess of the challenge asks for.
    Guesses,
}

/// The channels of the corrupted party. In round `crossing` all parties send the product of a mask and an operand, in the next they toss.
struct Withholds {
    inner: Box<dyn Transport>,
    crossing: u64,
    then: Then,
    sends: usize,
    held: Vec<Vec<u8>>,
    /// Our summands of the elements that the toss opens, where it opens elements.
    summands: Vec<Vec<u64>>,
    repair: u64,
}

impl Withholds {
    fn new(inner: Box<dyn Transport>, crossing: u64, then: Then) -> Self {
        Self {
            inner,
            crossing,
            then,
            sends: 0,
            held: Vec::new(),
            summands: Vec::new(),
            repair: 0,
        }
    }

    fn elements(message: &[u8]) -> Vec<u64> {
        let n = toss_elements(field().bits());
        (0..n).map(|i| element(message, i)).collect()
    }

    /// −r·c₀, by which the product of the mask must be off if the first product is off by 1.
    fn repair(&self, third: &[u8]) -> u64 {
        let field = field();
        let mut sum = Self::elements(third);
        for summand in &self.summands {
            field.add_assign(&mut sum, summand);
        }
        let mut challenges = seeded(&field, &sum);
        let (mut factors, mut r) = ([0; PRODUCTS], [0]);
        field.random(&mut challenges, &mut factors);
        field.random(&mut challenges, &mut r);
        field.neg(field.mul(r[0], factors[0]))
    }

    fn release(&mut self) -> std::result::Result<(), NetError> {
        for mut message in std::mem::take(&mut self.held) {
            if round(&message) == self.crossing {
                add_to(&field(), &mut message, 0, self.repair);
            }
            self.inner.send(WAITS, &message)?;
        }
        Ok(())
    }
}

fn field() -> Zq {
    Zq::new(PRIME).unwrap()
}

impl Transport for Withholds {
    fn party(&self) -> usize {
        self.inner.party()
    }

    fn parties(&self) -> usize {
        self.inner.parties()
    }

    fn send(&mut self, to: usize, payload: &[u8]) -> std::result::Result<(), NetError> {
        self.sends += 1;
        // Seeds in common with the two others come first.
        if self.sends <= 2 {
            return self.inner.send(to, payload);
        }
        let (at, mut message) = (round(payload), payload.to_vec());
        if at == self.crossing + 1 && self.then == Then::Repairs {
            self.summands.push(Self::elements(payload));
        }
        if to == WAITS && (self.crossing..=self.crossing + 1).contains(&at) {
            self.held.push(message);
            return Ok(());
        }
        // The verdict: the summand that both this party and the one that waited hold.
        if to == GOES_ON && at == self.crossing + 3 {
            add_to(&field(), &mut message, 0, self.repair);
        }
        self.inner.send(to, &message)
    }

    fn expect(&mut self, from: usize, bytes: usize) -> std::result::Result<(), NetError> {
        self.inner.expect(from, bytes)
    }

    fn take(&mut self, from: usize, len: Length) -> std::result::Result<Vec<u8>, NetError> {
        let message = self.inner.take(from, len)?;
        if !self.held.is_empty() && from == GOES_ON && round(&message) == self.crossing + 1 {
            match self.then {
                Then::Waits => return Ok(message),
                Then::Guesses => self.repair = 1,
                Then::Repairs => self.repair = self.repair(&message),
            }
            self.release()?;
        }
        Ok(message)
    }

    fn settle(&mut self) -> std::result::Result<(), NetError> {
        self.inner.settle()
    }

    fn counters(&self) -> &Counters {
        self.inner.counters()
    }

    fn close(&mut self) {
        self.inner.close();
    }

    fn abort(&mut self, reason: &str) {
        self.inner.abort(reason);
    }
}

fn two_products(engine: &mut dyn Engine) -> Result<Vec<u64>> {
    let (x, y) = (
        input(engine, 1, PRODUCTS, 3)?,
        input(engine, 2, PRODUCTS, 10)?,
    );
    let product = engine.mul(&x, &y)?;
    opened(engine, &product)
}

const RIGHT: [u64; PRODUCTS] = [30, 44];

/// What the honest parties get, and the last round in which the party that lacks a message sent something.
fn attacked(ablated: Ablated, crossing: u64, then: Then) -> (Outcome<Vec<u64>>, u64) {
    let mut setting = Setting::corrupted(CORRUPT, AddsOne);
    setting.ablated = ablated;
    let latest = Arc::new(Mutex::new(0));
    let last = Arc::clone(&latest);
    let wrap = move |party: usize, inner: Box<dyn Transport>| -> Box<dyn Transport> {
        if party == CORRUPT {
            return Box::new(Withholds::new(inner, crossing, then));
        }
        let (last, mut sends) = (Arc::clone(&last), 0);
        let seen = move |_: usize, message: &[u8]| {
            sends += 1;
            if party == WAITS && sends > 2 {
                *last.lock().unwrap() = round(message);
            }
            Some(message.to_vec())
        };
        intercept(inner, seen, |_, _| ())
    };
    let patience = match then {
        Then::Waits => Duration::from_millis(400),
        _ => Duration::from_secs(20),
    };
    let results = setting.run_over(wrap, patience, two_products);
    let latest = *latest.lock().unwrap();
    (Outcome::new(results, CORRUPT), latest)
}

/// Rounds: inputs, products, two for the ends of chains, the products of masks.
const CROSSING: u64 = 4;

#[test]
fn withheld_messages_blocked_by_challenges_of_all_parties() {
    let (outcome, latest) = attacked(Ablated::default(), CROSSING, Then::Waits);
    assert!(outcome.outputs.is_empty() && outcome.checks.is_empty());
    assert_eq!(outcome.errors.len(), 2);
    // It did not reveal its part of the challenge, in the round after.
    assert_eq!(latest, CROSSING, "{:?}", outcome.errors);
}

#[test]
fn withheld_messages_blocked_if_the_challenge_is_guessed() {
    let (outcome, _) = attacked(Ablated::default(), CROSSING, Then::Guesses);
    let caught = outcome.is_caught(&[Check::Products], &RIGHT.to_vec());
    assert!(caught, "{:?}", outcome.errors);
}

/// Without chains there is no round for their ends.
#[test]
fn withheld_messages_ablated_challenges_that_one_party_reveals() {
    let ablated = Ablated {
        opens_coins: true,
        ..Ablated::default()
    };
    let (outcome, _) = attacked(ablated, CROSSING - 2, Then::Repairs);
    assert!(outcome.errors.is_empty(), "{:?}", outcome.errors);
    let wrong = vec![RIGHT[0] + 1, RIGHT[1]];
    assert_eq!(outcome.outputs, [wrong.clone(), wrong]);
}

/// A party that lacks one message sends nothing of a later round, whichever message it is: so nobody has its part of a later challenge, and it opens nothing.
#[test]
fn a_party_that_lacks_a_message_reveals_nothing() {
    for base in [Base::Replicated, Base::Ring, Base::Shamir(4, 1)] {
        let parties = base.parties();
        for withheld in 0..14 {
            let latest = Arc::new(Mutex::new(vec![0; parties]));
            let lacking = Arc::new(Mutex::new(None));
            let (last, lacks) = (Arc::clone(&latest), Arc::clone(&lacking));
            let wrap = move |party: usize, inner: Box<dyn Transport>| {
                let (last, lacks, mut sends) = (Arc::clone(&last), Arc::clone(&lacks), 0);
                let sees = move |to: usize, message: &[u8]| {
                    sends += 1;
                    if sends < parties {
                        return Some(message.to_vec());
                    }
                    last.lock().unwrap()[party] = round(message);
                    if party == CORRUPT && sends == parties + withheld {
                        *lacks.lock().unwrap() = Some((to, round(message)));
                        return None;
                    }
                    Some(message.to_vec())
                };
                intercept(inner, sees, |_, _| ())
            };
            let setting = Setting::honest(PRIME).over(base);
            let results = setting.run_over(wrap, Duration::from_millis(250), two_products);
            let Some((to, at)) = *lacking.lock().unwrap() else {
                assert!(withheld > 8, "{base:?}: {withheld} messages only");
                break;
            };
            let latest = latest.lock().unwrap().clone();
            assert!(latest[to] <= at, "{base:?} {withheld}: {latest:?} {at}");
            assert!(results[to].is_err());
        }
    }
}

fn randoms(engine: &mut dyn Engine) -> Result<Vec<u64>> {
    let random = engine.random(3)?;
    let zeros = engine.sub(&random, &random)?;
    let sum = engine.add(&random, &zeros)?;
    opened(engine, &sum)
}

/// With n > 2t + 1 the honest parties' shares of a random element would belong to no value.
fn with_two_seeds(omitted: &'static [Check]) -> Outcome<Vec<u64>> {
    struct Leaves(&'static [Check]);
    impl Adversary for Leaves {
        fn omits(&self, check: Check) -> bool {
            self.0.contains(&check)
        }
    }
    let mut setting = Setting::corrupted(CORRUPT, Leaves(&[Check::SubsetSeeds, Check::Openings]));
    setting = setting.over(Base::Shamir(4, 1));
    setting.two_seeds = true;
    setting.others = Arc::new(Leaves(omitted));
    Outcome::new(setting.run(randoms), CORRUPT)
}

#[test]
fn subset_seeds_blocked_before_anything_is_opened() {
    let outcome = with_two_seeds(&[Check::Openings]);
    assert!(outcome.outputs.is_empty());
    assert!(outcome.checks.contains(&Check::SubsetSeeds));
    let only = outcome.checks.iter().all(|c| *c == Check::SubsetSeeds);
    assert!(only, "{:?}", outcome.errors);
}

#[test]
fn subset_seeds_ablated_without_the_comparison_of_seeds() {
    let outcome = with_two_seeds(&[Check::SubsetSeeds, Check::Openings]);
    assert!(outcome.errors.is_empty(), "{:?}", outcome.errors);
    let first = &outcome.outputs[0];
    assert!(outcome.outputs.iter().any(|output| output != first));
}
