//! The last party has another key of elements in the session that uses stored shares than in the one that stored them.
//!
//! It makes its share of the stored MAC fit its new key under a guess of the stored value: then everything that is computed passes all other
//! checks if the guess is right, and fails if it is wrong.

use std::thread;
use std::time::Duration;

use keyquorum_math::{Element, Z2k128, Zq};
use keyquorum_net::local_mesh;

use super::adversaries::Role;
use super::{PRIME, computation, input};
use crate::engine::Engine;
use crate::error::{Check, EngineError, Result};
use crate::protocol::Arithmetic;
use crate::protocol::authenticated::MAC_BITS;
use crate::session::Session;

type Files = Vec<(Vec<u8>, Vec<u8>)>;

/// A committee: its MAC keys are in order until somebody changes one.
#[derive(Clone)]
struct Committee<A> {
    domains: (A, A),
    keys: Vec<[u8; 16]>,
}

impl<A: Arithmetic> Committee<A> {
    fn new(n: usize, domains: (A, A)) -> Self {
        let mut keys = vec![[0; 16]; n];
        for key in &mut keys {
            getrandom::fill(key).unwrap();
            key[13] &= 0x7f; // the key of elements ends here: bits are free for a difference
        }
        Self { domains, keys }
    }

    /// The last party's key of elements is larger by this.
    fn with_other_key(&self, difference: u64) -> Self {
        let mut other = self.clone();
        let key = other.keys.last_mut().unwrap();
        let word = u128::from_le_bytes(*key) + (u128::from(difference) << 64);
        *key = word.to_le_bytes();
        other
    }

    fn run<T: Send + 'static>(
        &self,
        honest: &Role,
        body: impl Fn(&mut dyn Engine) -> Result<T> + Clone + Send + 'static,
    ) -> Vec<Result<T>> {
        let n = self.keys.len();
        let threads: Vec<_> = local_mesh(n, Duration::from_secs(60))
            .into_iter()
            .enumerate()
            .map(|(party, transport)| {
                let (body, domains, key) = (body.clone(), self.domains.clone(), self.keys[party]);
                // The last party looks at nothing that would stop it.
                let role = match party {
                    party if party == n - 1 => Role::Omits(Check::StoredKeys),
                    _ => honest.clone(),
                };
                thread::spawn(move || {
                    let session = Session::new(Box::new(transport))?;
                    session.set_mac_key(key, None)?;
                    let result = computation(&session, domains, role)
                        .and_then(|mut engine| body(&mut *engine));
                    if let Err(error) = &result {
                        session.abort(&error.to_string());
                    }
                    result
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    }

    /// Party 0's secret, stored: of every party the share and the key test.
    fn store(&self, secret: i64) -> Files {
        let stored = self.run(&Role::Honest, move |engine| {
            let x = input(engine, 0, &[secret])?;
            let share = engine.export(&x)?;
            Ok((share, engine.origin()?.to_vec()))
        });
        stored.into_iter().map(Result::unwrap).collect()
    }

    /// The last party's share of the MAC as it would be if the value were `guess`, under a key that is larger by `difference`.
    fn repair(&self, files: &mut Files, difference: u64, guess: u64) {
        let d = &self.domains.1;
        let share = &mut files.last_mut().unwrap().0;
        let mac = share.len() / 2;
        let mut word = [0; 16];
        word[..mac].copy_from_slice(&share[mac..]);
        let repair = d.mul(
            d.from_u128(u128::from(difference)),
            d.from_u128(u128::from(guess)),
        );
        let repaired = d.add(d.from_u128(u128::from_le_bytes(word)), repair);
        let word = repaired.to_u128().to_le_bytes();
        share[mac..].copy_from_slice(&word[..mac]);
    }

    /// The stored secret times a secret zero, which reveals nothing of it: the output of the parties.
    fn use_up(&self, files: &Files, honest: &Role) -> Vec<Result<Vec<u128>>> {
        let files = files.clone();
        self.run(honest, move |engine| {
            let (share, origin) = &files[engine.party().0];
            engine.check_origin(origin)?;
            let x = engine.import(share, 1)?;
            let zero = input(engine, 0, &[0])?;
            let product = engine.mul(&x, &zero)?;
            let opened = engine.open(&product)?;
            engine.read_wide(&opened)
        })
    }
}

fn ring(k: u32) -> (Z2k128, Z2k128) {
    let shares = Z2k128::new(k + MAC_BITS).unwrap();
    (Z2k128::new(k).unwrap(), shares)
}

fn field() -> (Zq, Zq) {
    (Zq::new(PRIME).unwrap(), Zq::new(PRIME).unwrap())
}

/// Whether a bet that the stored value is 1 goes unnoticed, whatever it is.
fn bets<A: Arithmetic>(n: usize, domains: (A, A), difference: u64, honest: &Role) {
    for secret in [1, 0] {
        // A key that was burned is not used again.
        let committee = Committee::new(n, domains.clone());
        let mut files = committee.store(secret);
        committee.repair(&mut files, difference, 1);
        let results = committee.with_other_key(difference).use_up(&files, honest);
        let honest_ones = &results[..n - 1];
        match honest {
            Role::Honest => {
                assert!(honest_ones.iter().all(Result::is_err), "{results:?}");
                let stopped = |result: &Result<_>| {
                    matches!(
                        result,
                        Err(EngineError::Check {
                            check: Check::StoredKeys,
                            ..
                        })
                    )
                };
                assert!(honest_ones.iter().any(stopped), "{results:?}");
            }
            _ => {
                let unnoticed = honest_ones.iter().all(|r| matches!(r, Ok(v) if v == &[0]));
                assert_eq!(unnoticed, secret == 1, "{results:?}");
            }
        }
    }
}

/// Honest parties that do not look at the test of stored keys.
const CARELESS: Role = Role::Omits(Check::StoredKeys);

#[test]
fn another_key_later_ablated_a_bet_on_a_stored_value_goes_unnoticed() {
    bets(2, ring(64), 1, &CARELESS);
    bets(2, field(), 1, &CARELESS);
    bets(3, ring(64), 1 << 46, &CARELESS);
}

#[test]
fn another_key_later_blocked_by_the_test_of_stored_keys() {
    for difference in [1, 1 << 46, 0x0123_4567_89ab] {
        bets(2, ring(64), difference, &Role::Honest);
        bets(2, field(), difference, &Role::Honest);
    }
    bets(2, ring(1), 1 << 46, &Role::Honest);
    bets(3, ring(64), 1, &Role::Honest);
    bets(3, field(), 1, &Role::Honest);
}

/// Shares are used in many sessions with one test, and what such a session stores has its own.
#[test]
fn the_same_keys_pass() {
    for n in [2, 3] {
        let committee = Committee::new(n, ring(64));
        let files = committee.store(5);
        for _ in 0..2 {
            for result in committee.use_up(&files, &Role::Honest) {
                assert_eq!(result.unwrap(), [0]);
            }
        }
        let again = files.clone();
        let stored = committee.run(&Role::Honest, move |engine| {
            let (share, origin) = &again[engine.party().0];
            engine.check_origin(origin)?;
            let x = engine.import(share, 1)?;
            let square = engine.mul(&x, &x)?;
            let share = engine.export(&square)?;
            Ok((share, engine.origin()?.to_vec()))
        });
        let stored: Files = stored.into_iter().map(Result::unwrap).collect();
        assert_ne!(stored[0].1, files[0].1);
        let read = committee.run(&Role::Honest, move |engine| {
            let (share, origin) = &stored[engine.party().0];
            engine.check_origin(origin)?;
            let x = engine.import(share, 1)?;
            let opened = engine.open(&x)?;
            engine.read(&opened)
        });
        for result in read {
            assert_eq!(result.unwrap(), [25]);
        }
    }
}

/// Without the test stored shares are refused; a key test of another length, too.
#[test]
fn shares_without_the_test_are_refused() {
    let committee = Committee::new(2, ring(64));
    let files = committee.store(5);
    let refused = committee.run(&Role::Honest, move |engine| {
        let (share, origin) = &files[engine.party().0];
        assert!(matches!(
            engine.import(share, 1),
            Err(EngineError::Store(_))
        ));
        for bad in [&origin[1..], &[]] {
            let refused = engine.check_origin(bad);
            assert!(matches!(refused, Err(EngineError::Store(_))), "{refused:?}");
        }
        assert!(matches!(
            engine.import(share, 1),
            Err(EngineError::Store(_))
        ));
        engine.check_origin(origin)?;
        let before = engine.stats();
        engine.check_origin(origin)?;
        assert_eq!(engine.stats(), before);
        engine.import(share, 1).map(drop)
    });
    for result in refused {
        result.unwrap();
    }
}

/// Files of different times: an honest mistake, which burns nothing.
#[test]
fn files_that_were_not_made_together_burn_nothing() {
    let committee = Committee::new(2, ring(64));
    let (files, others) = (committee.store(5), committee.store(6));
    let mixed = vec![files[0].clone(), others[1].clone()];
    let results = committee.use_up(&mixed, &Role::Honest);
    let refused = |r: &Result<_>| matches!(r, Err(EngineError::Store(_)));
    let broke_off = |r: &Result<_>| matches!(r, Err(EngineError::Network { .. }));
    assert!(results.iter().any(refused), "{results:?}");
    assert!(
        results.iter().all(|r| refused(r) || broke_off(r)),
        "{results:?}"
    );
    for result in committee.use_up(&files, &Role::Honest) {
        assert_eq!(result.unwrap(), [0]);
    }
}

/// Rounds and bytes of a test for which random elements were made before: an element, a commitment, a nonce and the sum; among more than two parties
/// the digest of what was received.
#[test]
fn the_test_of_stored_keys_costs_little() {
    for (n, rounds, bytes) in [(2, 3, 14 + 32 + 48), (3, 4, 14 + 32 + 48 + 32)] {
        let committee = Committee::new(n, ring(64));
        let files = committee.store(5);
        let costs = committee.run(&Role::Honest, move |engine| {
            let _stock = engine.origin()?;
            let before = engine.stats();
            engine.check_origin(&files[engine.party().0].1)?;
            let after = engine.stats();
            Ok((
                after.rounds - before.rounds,
                after.bytes_sent - before.bytes_sent,
            ))
        });
        for cost in costs {
            assert_eq!(cost.unwrap(), (rounds, (n as u64 - 1) * bytes), "{n}");
        }
    }
}
