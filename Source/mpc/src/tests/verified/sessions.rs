//! Several engines of a session, groups of its parties, and what becomes of a session that broke off.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use keyquorum_math::DomainKind;

use super::coins::CORRUPT;
use super::{Outcome, PRIME, Setting, input, opened};
use crate::adversary::{Adversary, Site};
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::guard::Guard;
use crate::intercept::intercept;
use crate::protocol::testing::Ablated;
use crate::refusal::Refusal;
use crate::session::{EngineOptions, Session};

/// Whose input is opened, and who waits for an input of the corrupted party.
const VICTIM: usize = 1;
const WAITS: usize = 2;

const SECRET: u64 = 1234;
const OWN: i64 = 7;

const LONG: Duration = Duration::from_secs(20);

fn field() -> DomainKind {
    DomainKind::Fq(PRIME)
}

fn engine(session: &Session, protocol: &str, domain: DomainKind) -> Result<Box<dyn Engine>> {
    session.engine(protocol, domain, &EngineOptions::default())
}

/// Honest parties ask one engine for an input of the corrupted party, and open the victim's in another one. The corrupted party asks when it has seen what is opened.
fn inputs_of_two_engines(ablated: Ablated) -> Outcome<Vec<u64>> {
    let mut setting = Setting::honest(PRIME);
    setting.ablated = ablated;
    let parties = setting.clone();
    let results = setting.run_sessions(
        |_, transport| transport,
        LONG,
        move |session| {
            let (mut one, mut other) = (parties.engine(session)?, parties.engine(session)?);
            let (one, other) = (&mut *one, &mut *other);
            let x = input(one, VICTIM, 1, SECRET as i64)?;
            one.flush()?;
            let y = (session.party() != CORRUPT).then(|| input(other, CORRUPT, 1, OWN));
            let x = opened(one, &x)?;
            let y = y.unwrap_or_else(|| input(other, CORRUPT, 1, x[0] as i64))?;
            Ok([x, opened(other, &y)?].concat())
        },
    );
    Outcome::new(results, CORRUPT)
}

#[test]
fn late_inputs_blocked_of_another_engine() {
    let outcome = inputs_of_two_engines(Ablated::default());
    assert!(outcome.outputs.is_empty());
    let said = |error: &String| error.contains("was not sent yet, and could depend on");
    // One may see first that the other is gone.
    assert!(
        outcome.errors.len() == 2 && outcome.errors.iter().any(said),
        "{:?}",
        outcome.errors
    );
}

#[test]
fn late_inputs_ablated_openings_before_inputs_of_another_engine() {
    let outcome = inputs_of_two_engines(Ablated {
        opens_before_inputs: true,
        ..Ablated::default()
    });
    assert!(outcome.errors.is_empty(), "{:?}", outcome.errors);
    let copied = vec![SECRET, SECRET];
    assert_eq!(outcome.outputs, [copied.clone(), copied]);
}

/// The corrupted party withholds its input of one engine from one party. Returns the longest message of another one after that, when it opens a value in another engine.
fn withheld_in_another_engine(alone: bool) -> usize {
    let mut setting = Setting::honest(PRIME);
    setting.alone = alone;
    let (parties, longest) = (setting.clone(), Arc::new(Mutex::new(None)));
    let seen = Arc::clone(&longest);
    // Each of the two parties says itself when its next messages count: neither waits for the other.
    let begun = Arc::new(Mutex::new([false; 3]));
    let begins = Arc::clone(&begun);
    let wrap = move |party: usize, transport| {
        let (begun, longest) = (Arc::clone(&begun), Arc::clone(&longest));
        let sends = move |to: usize, message: &[u8]| {
            let begun = begun.lock().unwrap()[party];
            if party == VICTIM && begun {
                let mut longest = longest.lock().unwrap();
                *longest = (*longest).max(Some(message.len()));
            }
            let withheld = party == CORRUPT && begun && to == WAITS;
            (!withheld).then(|| message.to_vec())
        };
        intercept(transport, sends, |_, _| ())
    };
    let results = setting.run_sessions(wrap, Duration::from_secs(1), move |session| {
        let (mut one, mut other) = (parties.engine(session)?, parties.engine(session)?);
        let (one, other) = (&mut *one, &mut *other);
        let x = input(one, VICTIM, 2, SECRET as i64)?;
        // Nothing waits in this engine when the second value is opened.
        let first = one.slice(&x, 0, 1, 1)?;
        opened(one, &first)?;
        session.compare("who is ready", &[])?;
        begins.lock().unwrap()[session.party()] = true;
        let y = input(other, CORRUPT, 1, OWN)?;
        other.flush()?;
        opened(one, &x)?;
        opened(other, &y)
    });
    assert!(results.iter().all(Result::is_err));
    let longest = *seen.lock().unwrap();
    longest.unwrap()
}

/// Bytes of a message: its tag, and the byte of the round before an opening.
const READY: usize = 9;

#[test]
fn withheld_messages_blocked_before_openings_of_another_engine() {
    assert_eq!(withheld_in_another_engine(false), READY);
}

#[test]
fn withheld_messages_ablated_engines_that_know_their_own_inputs() {
    assert!(withheld_in_another_engine(true) > READY);
}

/// Everything as it should be: two domains of one session.
#[test]
fn engines_of_a_session_compute_side_by_side() {
    let results = Setting::honest(PRIME).run_sessions(
        |_, transport| transport,
        LONG,
        |session| {
            let mut one = engine(session, "mal-rep-field", field())?;
            let mut other = engine(session, "mal-rep-ring", DomainKind::Z2k(64))?;
            let (one, other) = (&mut *one, &mut *other);
            let (x, y) = (input(one, 1, 2, 3)?, input(other, 2, 2, 5)?);
            other.flush()?;
            let (x, y) = (one.mul(&x, &x)?, other.mul(&y, &y)?);
            Ok([opened(one, &x)?, opened(other, &y)?].concat())
        },
    );
    for result in results {
        assert_eq!(result.unwrap(), [9, 16, 25, 36]);
    }
}

/// Groups of parties, and sessions with engines that verify no products.
#[test]
fn groups_and_mixed_sessions_are_refused() {
    let refused = |result: Result<Box<dyn Engine>>| match result.map(drop) {
        Err(EngineError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    };
    let results = Setting::honest(PRIME).run_sessions(
        |_, transport| transport,
        LONG,
        move |session| {
            let group = session.subgroup(&[0, 1, 2])?;
            let in_group = refused(engine(&group, "mal-rep-field", field()));
            engine(session, "mal-rep-field", field())?;
            let mixed = refused(engine(session, "rep-field", field()));
            let late = match session.subgroup(&[0, 1, 2]).map(drop) {
                Err(EngineError::Refused(refusal)) => refusal,
                other => panic!("{other:?}"),
            };
            // The group was made before the engine.
            let beside = refused(engine(&group, "rep-field", field()));
            Ok((in_group, mixed, late, beside))
        },
    );
    for result in results {
        let (in_group, mixed, late, beside) = result.unwrap();
        assert!(matches!(in_group, Refusal::Subgroup { .. }), "{in_group}");
        assert!(matches!(mixed, Refusal::Mixed { .. }), "{mixed}");
        assert_eq!(late, Refusal::Group);
        assert!(matches!(beside, Refusal::Mixed { .. }), "{beside}");
    }
    let results = Setting::honest(PRIME).run_sessions(
        |_, transport| transport,
        LONG,
        move |session| {
            engine(session, "rep-field", field())?;
            Ok(refused(engine(session, "mal-rep-field", field())).to_string())
        },
    );
    for result in results {
        let text = result.unwrap();
        assert!(
            text.contains("of this session verifies no products"),
            "{text}"
        );
    }
}

/// Sends what is no element, in an opening: any error that is no failed check.
struct BreaksOff;

impl Adversary for BreaksOff {
    fn deviates(&self, site: Site) -> bool {
        site == Site::OpenedSummand
    }

    fn words(&self, _: Site, _: Option<usize>, words: &mut [u128]) {
        words.fill(u128::from(u64::MAX));
    }
}

/// How the engine of a party ended, and what it got afterwards: in an engine that was there before, and in another one.
type Tries = (String, Result<Vec<u64>>, Result<Vec<u64>>);

/// A party breaks off in an engine of a session, towards the victim. Then all try to go on.
fn tries_again(ablated: bool) -> Tries {
    fn square(engine: Result<Box<dyn Engine>>) -> Result<Vec<u64>> {
        let mut engine = engine?;
        let x = input(&mut *engine, 1, 1, 3)?;
        let x = engine.mul(&x, &x)?;
        opened(&mut *engine, &x)
    }
    let setting = Setting::corrupted(CORRUPT, BreaksOff);
    let parties = setting.clone();
    let mut results = setting.run_sessions(
        |_, transport| transport,
        LONG,
        move |session| {
            let session = match ablated {
                true => &session.guarded(Guard::ablated()),
                false => session,
            };
            let before = engine(session, "mal-rep-field", field())?;
            let mut attacked = parties.engine(session)?;
            let x = input(&mut *attacked, 1, 1, 3)?;
            let failed = opened(&mut *attacked, &x).map_err(|error| error.to_string());
            let before = square(Ok(before));
            let later = square(engine(session, "mal-rep-field", field()));
            Ok((failed.err().unwrap_or_default(), before, later))
        },
    );
    results.swap_remove(VICTIM).unwrap()
}

#[test]
fn further_tries_blocked_in_a_session_that_broke_off() {
    let (failed, before, later) = tries_again(false);
    assert!(
        failed.contains("party 0 sent a malformed vector"),
        "{failed}"
    );
    for refused in [before, later] {
        let Err(EngineError::Burned(text)) = refused else {
            panic!("{refused:?}");
        };
        let said = "this session broke off (party 0 sent a malformed vector";
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn further_tries_ablated_in_a_session_that_goes_on() {
    let (failed, before, later) = tries_again(true);
    assert!(
        failed.contains("party 0 sent a malformed vector"),
        "{failed}"
    );
    assert_eq!((before.unwrap(), later.unwrap()), (vec![9], vec![9]));
}

/// A share file stays claimed if messages were sent since it was read: rounds count those that failed.
#[test]
fn a_round_counts_though_its_messages_do_not_arrive() {
    let patience = Duration::from_millis(200);
    let setting = Setting::honest(PRIME);
    let results = setting.run_over(
        |_, transport| transport,
        patience,
        move |engine| {
            if engine.party().0 == CORRUPT {
                std::thread::sleep(3 * patience);
                return Ok((true, 0, 1));
            }
            let random = engine.random(1)?;
            let before = engine.stats().rounds;
            let failed = opened(engine, &random).is_err();
            Ok((failed, before, engine.stats().rounds))
        },
    );
    for result in results {
        assert_eq!(result.unwrap(), (true, 0, 1));
    }
}
