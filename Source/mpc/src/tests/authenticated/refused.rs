//! Who gets a challenge, or the sums of a check, before it gives its own may not like what it sees; and what it said itself may be another thing
//! towards everybody.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use keyquorum_math::{Domain, Zq};
use sha2::{Digest, Sha256};

use super::caught::{Outcome, Program};
use super::{PRIME, input, run_as};
use crate::adversary::{Adversary, Site};
use crate::engine::Engine;
use crate::error::{Check, EngineError, Result};
use crate::guard::Guard;
use crate::protocol::testing::public;
use crate::tests::authenticated::adversaries::Role;

/// Cuts its part of a toss short, the first one after something.
struct Refusing {
    after: Site,
    ready: AtomicBool,
}

impl Adversary for Refusing {
    fn deviates(&self, site: Site) -> bool {
        site == self.after || site == Site::Reveal
    }

    fn words(&self, _site: Site, _to: Option<usize>, _words: &mut [u128]) {
        self.ready.store(true, Ordering::SeqCst);
    }

    fn bytes(&self, site: Site, to: Option<usize>, message: &mut Vec<u8>) {
        if site == self.after {
            self.ready.store(true, Ordering::SeqCst);
        }
        if site == Site::Reveal && to == Some(0) && self.ready.load(Ordering::SeqCst) {
            message.clear();
        }
    }
}

/// What party 0 says when party 1 does not give its part of the toss that comes after this, and when it would go on.
fn refused(protocol: &'static str, after: Site, program: Program) -> [EngineError; 2] {
    let role = |party| match party {
        1 => Role::Plays(Arc::new(Refusing {
            after,
            ready: AtomicBool::new(false),
        })),
        _ => Role::Honest,
    };
    let body = move |engine: &mut dyn Engine| {
        let first = program.run(engine).unwrap_err();
        Ok([first, engine.random(1).map(drop).unwrap_err()])
    };
    let mut results = run_as(2, protocol, role, |_, t| t, body);
    results.remove(0).unwrap()
}

/// The order of edaBits' tests, the subsets that are summed up, the factors of a MAC check. The session is over; how they are counted is shown with keys that have files.
#[test]
fn refused_challenges_blocked_end_the_session() {
    for (protocol, after, program) in [
        ("spdz2k", Site::Tests, Program::Numbers),
        ("mascot", Site::Tests, Program::Numbers),
        ("spdz2k", Site::Product, Program::Product),
        ("mascot", Site::Product, Program::Product),
        ("mascot", Site::Opening, Program::Sum),
        // The subsets for what was made with trees, and the sums themselves.
        ("mascot", Site::Trees, Program::Many),
    ] {
        let [error, then] = refused(protocol, after, program);
        assert!(
            matches!(error, EngineError::Network { .. }),
            "{protocol} {after:?}: {error}"
        );
        let text = then.to_string();
        assert!(
            text.contains("a challenge was cut off") && text.contains("open a new session"),
            "{text}"
        );
    }
}

/// Sums that are open under a key without a file count as a failed check: no later session finishes it.
#[test]
fn refused_challenges_blocked_sums_count_as_a_failed_check() {
    let [error, _] = refused("mascot", Site::SubsetSums, Program::Many);
    let interrupted = matches!(
        error,
        EngineError::Check {
            check: Check::Interrupted,
            ..
        }
    );
    assert!(interrupted, "{error}");
}

/// A toss that comes before what it decides is verified in another round of the program may break off: nothing is burned. So did all.
#[test]
fn refused_challenges_ablated_other_tosses_may_break_off() {
    for protocol in ["spdz2k", "mascot"] {
        let [error, then] = refused(protocol, Site::Vector, Program::Sum);
        assert!(matches!(error, EngineError::Network { .. }), "{error}");
        assert!(
            !then.to_string().contains("a challenge was cut off"),
            "{then}"
        );
    }
}

/// Who broke off before a check cannot try again in the session, which begins no further engine with MACs; without the remedy it does.
#[test]
fn refused_challenges_blocked_a_session_that_broke_off() {
    let guard = Guard::default();
    guard.begin().unwrap();
    guard.judge(EngineError::usage("a slip of the caller"));
    guard.begin().unwrap();
    guard.judge(EngineError::protocol("a message that was cut short"));
    let text = guard.begin().unwrap_err().to_string();
    assert!(text.contains("broke off before: open a new one"), "{text}");

    let guard = Guard::ablated();
    guard.judge(EngineError::protocol("a message that was cut short"));
    guard.begin().unwrap();
}

/// Who refuses a challenge cannot go on in the session with what it has won elsewhere.
#[test]
fn crash_guess_blocked_a_session_after_a_refused_challenge() {
    let guard = Guard::default();
    guard.challenged().unwrap();
    guard.judge(EngineError::protocol("a message that was cut short"));
    let text = guard.refuse().unwrap_err().to_string();
    assert!(
        text.contains("a challenge was cut off") && !guard.poisoned(),
        "{text}"
    );
}

#[test]
fn crash_guess_ablated_a_session_after_a_refused_challenge() {
    let guard = Guard::ablated();
    guard.challenged().unwrap();
    guard.judge(EngineError::protocol("a message that was cut short"));
    guard.refuse().unwrap();
    guard.begin().unwrap();
}

/// Opens an element as another one, and commits to one sum towards party 0 and to another towards party 1: two guesses of the honest keys,
/// of which the test makes the second right.
struct TwoSums {
    armed: Arc<AtomicBool>,
    keys: Arc<Mutex<Vec<u64>>>,
    state: Mutex<Sums>,
}

#[derive(Default)]
struct Sums {
    toss: [u8; 32],
    /// Commitments so far, one a party.
    messages: u64,
    /// The message to party 1: nonce and sum.
    opening: Vec<u8>,
    /// Messages of the commitment in which it is.
    left: usize,
}

impl Adversary for TwoSums {
    fn deviates(&self, site: Site) -> bool {
        matches!(
            site,
            Site::Key
                | Site::Opening
                | Site::Toss
                | Site::CheckSum
                | Site::Commitment
                | Site::Reveal
        )
    }

    fn words(&self, site: Site, _to: Option<usize>, words: &mut [u128]) {
        if !self.armed.load(Ordering::SeqCst) {
            return;
        }
        let field = Zq::new(PRIME).unwrap();
        let one = |word: u128| field.add(field.from_u128(word), 1);
        match site {
            Site::Opening => words[0] = u128::from(one(words[0])),
            Site::CheckSum => {
                let mut state = self.state.lock().unwrap();
                let mut factors = public(&state.toss, 0);
                let keys = self.keys.lock().unwrap();
                let key = keys.iter().fold(0, |sum, key| field.add(sum, *key));
                state.opening = vec![0; 32];
                for word in words.iter() {
                    let mut factor = [0];
                    field.random(&mut factors, &mut factor);
                    let error = field.mul(factor[0], key);
                    let sum = field.add(field.from_u128(*word), error);
                    state.opening.extend(u128::from(sum).to_le_bytes());
                }
                state.left = 3;
            }
            _ => {}
        }
    }

    fn bytes(&self, site: Site, to: Option<usize>, message: &mut Vec<u8>) {
        let mut state = self.state.lock().unwrap();
        match site {
            Site::Commitment => {
                let number = state.messages / 3;
                state.messages += 1;
                if state.left > 0 && to == Some(1) {
                    *message = Sha256::new()
                        .chain_update(b"keyquorum-v1/commitment")
                        .chain_update(2u64.to_le_bytes())
                        .chain_update(number.to_le_bytes())
                        .chain_update(&state.opening)
                        .finalize()
                        .to_vec();
                }
                state.left = state.left.saturating_sub(1);
            }
            Site::Reveal if to == Some(1) && message.len() == state.opening.len() => {
                message.clone_from(&state.opening);
            }
            _ => {}
        }
    }

    fn sees(&self, site: Site, _from: usize, message: &[u8]) {
        match site {
            // The toss of elements comes before that of bits, which is not used.
            Site::Toss => {
                self.state.lock().unwrap().toss = message.try_into().unwrap();
            }
            Site::Key => keep(&self.keys, message),
            _ => {}
        }
    }

    fn omits(&self, _check: Check) -> bool {
        true
    }
}

fn keep(keys: &Mutex<Vec<u64>>, message: &[u8]) {
    let mut key = [0];
    Zq::new(PRIME).unwrap().decode(message, &mut key).unwrap();
    keys.lock().unwrap().extend(key);
}

/// An honest party whose key the adversary has guessed.
struct Guessed {
    keys: Arc<Mutex<Vec<u64>>>,
    omits: bool,
}

impl Adversary for Guessed {
    fn deviates(&self, site: Site) -> bool {
        site == Site::Key
    }

    fn sees(&self, site: Site, _from: usize, message: &[u8]) {
        if site == Site::Key {
            keep(&self.keys, message);
        }
    }

    fn omits(&self, check: Check) -> bool {
        self.omits && check == Check::Broadcast
    }
}

/// Party 2 commits to another sum towards each of the others. What they get, and the checks that failed there.
fn two_sums(omits: bool) -> Outcome {
    let armed = Arc::new(AtomicBool::new(false));
    let keys = Arc::new(Mutex::new(Vec::new()));
    let role = |party| {
        let keys = Arc::clone(&keys);
        Role::Plays(match party {
            2 => Arc::new(TwoSums {
                armed: Arc::clone(&armed),
                keys,
                state: Mutex::default(),
            }),
            _ => Arc::new(Guessed { keys, omits }),
        })
    };
    let arm = Arc::clone(&armed);
    let body = move |engine: &mut dyn Engine| -> Result<Vec<u64>> {
        let x = input(engine, 0, &[7])?;
        let opened = engine.open(&x)?;
        assert_eq!(engine.read(&opened)?, [7]);
        if engine.party().0 == 2 {
            arm.store(true, Ordering::SeqCst);
        }
        let opened = engine.open(&x)?;
        engine.read(&opened)
    };
    Outcome::new(run_as(3, "mascot", role, |_, t| t, body), 2)
}

#[test]
fn two_commitments_blocked_before_sums_are_revealed() {
    let outcome = two_sums(false);
    assert!(
        outcome.is_caught(Some(Check::Broadcast)),
        "{:?}",
        outcome.errors
    );
}

/// Where commitments are not compared, one of the honest parties accepts the sum that was right for it alone.
#[test]
fn two_commitments_ablated_are_a_guess_for_each_party() {
    // Party 0, which breaks off, may cut off party 1.
    let accepted = (0..8).any(|_| two_sums(true).outputs == [vec![8]]);
    assert!(accepted);
}
