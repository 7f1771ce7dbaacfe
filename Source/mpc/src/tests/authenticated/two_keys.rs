//! Party 2 of 3 has another key of elements towards party 1 than towards party 0.
//!
//! Without the check of keys MACs are off by the difference times party 1's summand, which the adversary repairs where that was opened. Party 1's
//! input is masked with such an element: the MACs that are not repaired there reveal the input.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use keyquorum_math::{Domain, DomainKind, Element, Z2k128, Zq};
use keyquorum_net::{Transport, local_mesh};
use keyquorum_ot::{LinkKey, MacKey};

use super::{PRIME, input};
use crate::adversary::{Adversary, Corruption, Site};
use crate::budget::COMBINATIONS;
use crate::engine::Engine;
use crate::error::{Check, EngineError, Result};
use crate::intercept::intercept;
use crate::ops::Computation;
use crate::protocol::Arithmetic;
use crate::protocol::authenticated::{Authenticated, MAC_BITS};
use crate::protocol::testing::MASKS;
use crate::protocol::testing::public;
use crate::session::{EngineOptions, Session};
use crate::standalone::Standalone;
use crate::tests::authenticated::adversaries::Role;

#[derive(Default)]
struct State {
    /// The key towards party 1 without that towards party 0.
    difference: i64,
    toss: [u8; 32],
    /// Our summands of what is being opened, and those of the others.
    own: Vec<u128>,
    others: Vec<(usize, Vec<u128>)>,
    /// Party 1's summands of what was opened to test keys.
    tested: Vec<u128>,
    /// Party 1's summands and the sums of every opening since the last check.
    pending: Vec<(Vec<u128>, Vec<u128>)>,
    openings: usize,
    /// Party 1's input under its mask.
    masked: Option<u128>,
    /// The factor of the first opening of the program.
    factor: u128,
    sums: Vec<u128>,
}

/// The adversary; with a guess of party 1's input it repairs the MACs as if the guess were right, otherwise it leaves them as they are.
struct TwoKeys<A> {
    state: Arc<Mutex<State>>,
    domain: A,
    guess: Option<u128>,
}

impl<A: Arithmetic> TwoKeys<A> {
    fn difference(&self, state: &State) -> A::E {
        let size = self
            .domain
            .from_u128(u128::from(state.difference.unsigned_abs()));
        match state.difference < 0 {
            true => self.domain.neg(size),
            false => size,
        }
    }

    /// Keeps what an opening came to: our summands, party 1's, and the sums.
    fn opened(&self, state: &mut State, from: usize, message: &[u8]) -> Option<[Vec<u128>; 2]> {
        let d = &self.domain;
        let mut words = vec![d.zero(); message.len() / d.wire_bytes(1)];
        d.decode(message, &mut words).unwrap();
        let words = words.iter().map(|word| word.to_u128()).collect();
        state.others.push((from, words));
        if state.others.len() < 2 {
            return None;
        }
        let others = std::mem::take(&mut state.others);
        let mut total = state.own.clone();
        for (_, summands) in &others {
            for (sum, word) in total.iter_mut().zip(summands) {
                *sum = d.add(d.from_u128(*sum), d.from_u128(*word)).to_u128();
            }
        }
        let theirs = others.into_iter().find(|(from, _)| *from == 1).unwrap().1;
        Some([theirs, total])
    }

    /// The wrong parts of the sums of the MAC check: what the adversary takes off.
    fn errors(&self, state: &mut State) -> Vec<A::E> {
        let d = &self.domain;
        let pending = std::mem::take(&mut state.pending);
        let count = pending.iter().map(|(_, sums)| sums.len()).sum();
        let mut stream = public(&state.toss, 0);
        let error = |combination| {
            let mut factors = vec![d.zero(); count];
            d.random(&mut stream, &mut factors);
            self.error(state, &pending, combination, factors)
        };
        (0..COMBINATIONS).map(error).collect()
    }

    /// That of one combination.
    fn error(
        &self,
        state: &mut State,
        pending: &[(Vec<u128>, Vec<u128>)],
        combination: usize,
        factors: Vec<A::E>,
    ) -> A::E {
        let d = &self.domain;
        let element = |word: u128| d.from_u128(word);
        // In a ring elements that mask openings come in a batch of their own.
        let batches = match d.kind() {
            DomainKind::Z2k(_) => 2,
            _ => 1,
        };
        let first = state.openings - pending.len();
        let mut factors = factors.into_iter();
        let (mut error, difference) = (d.zero(), self.difference(state));
        for (i, (theirs, sums)) in pending.iter().enumerate() {
            for (j, (theirs, sum)) in theirs.iter().zip(sums).enumerate() {
                let factor = factors.next().unwrap();
                let wrong = match (first + i, self.guess) {
                    // The sums of the first batch, of elements that party 0 knows, then of those that party 1 knows.
                    (0, _) if j / MASKS == 1 => element(*sum),
                    (0, _) => d.zero(),
                    (number, _) if number < batches => element(*theirs),
                    (_, Some(guess)) => d.sub(element(guess), element(state.masked.unwrap())),
                    (_, None) => {
                        if combination == 0 {
                            state.factor = factor.to_u128();
                        }
                        d.zero()
                    }
                };
                error = d.add(error, d.mul(factor, d.mul(difference, wrong)));
            }
        }
        error
    }
}

impl<A: Arithmetic> Adversary for TwoKeys<A> {
    fn deviates(&self, site: Site) -> bool {
        matches!(
            site,
            Site::Opening | Site::KeyOpening | Site::KeySums | Site::Toss | Site::CheckSum
        )
    }

    fn words(&self, site: Site, to: Option<usize>, words: &mut [u128]) {
        let d = &self.domain;
        let mut state = self.state.lock().unwrap();
        match site {
            Site::Opening | Site::KeyOpening if to == Some(2) => {
                state.own = words.to_vec();
                state.others.clear();
            }
            // As if what party 1 opened were its summands.
            Site::KeySums => {
                let difference = self.difference(&state);
                for (word, theirs) in words.iter_mut().zip(&state.tested) {
                    let error = d.mul(difference, d.from_u128(*theirs));
                    *word = d.sub(d.from_u128(*word), error).to_u128();
                }
            }
            Site::CheckSum => {
                state.sums.clear();
                let errors = self.errors(&mut state);
                for (word, error) in words.iter_mut().zip(errors) {
                    *word = d.sub(d.from_u128(*word), error).to_u128();
                }
            }
            _ => {}
        }
    }

    fn sees(&self, site: Site, from: usize, message: &[u8]) {
        let mut state = self.state.lock().unwrap();
        match site {
            Site::Toss => state.toss = message.try_into().unwrap(),
            Site::KeyOpening => {
                if let Some([theirs, _]) = self.opened(&mut state, from, message) {
                    state.tested = theirs;
                }
            }
            Site::Opening => {
                if let Some([theirs, sums]) = self.opened(&mut state, from, message) {
                    state.pending.push((theirs, sums));
                    state.openings += 1;
                }
            }
            Site::CheckSum => {
                let word = u128::from_le_bytes(*message.first_chunk().unwrap());
                state.sums.push(word);
            }
            _ => {}
        }
    }

    fn omits(&self, _check: Check) -> bool {
        true
    }
}

/// Bytes before the body of a message.
const TAG: usize = 8;

/// Keeps the first message of party 1 that is one element, after elements were made: its input under a mask.
fn keep_masked_input(state: &Mutex<State>, from: usize, size: usize, message: &[u8]) {
    let mut state = state.lock().unwrap();
    let is_input = from == 1 && message.len() == TAG + size && state.openings > 0;
    if is_input && state.masked.is_none() {
        let mut word = [0u8; 16];
        word[..size].copy_from_slice(&message[TAG..]);
        state.masked = Some(u128::from_le_bytes(word));
    }
}

/// A program whose links of party 2 have two keys.
#[derive(Clone)]
struct Attack<A> {
    domains: (A, A),
    /// Inputs of parties 0 and 1.
    secrets: [i64; 2],
    /// What of the key towards party 1 is another.
    flipped: u64,
    guess: Option<u128>,
    honest: Role,
    /// Whether the session that computes is a subgroup, and the key one that is kept.
    inside: bool,
}

impl<A: Arithmetic> Attack<A> {
    /// What the honest parties get, and what the adversary has seen.
    fn run(&self) -> (Vec<Result<Vec<u64>>>, State) {
        let state = Arc::new(Mutex::new(State::default()));
        let threads: Vec<_> = local_mesh(3, Duration::from_secs(60))
            .into_iter()
            .enumerate()
            .map(|(party, transport)| {
                let (state, attack) = (Arc::clone(&state), self.clone());
                thread::spawn(move || attack.party(party, Box::new(transport), &state))
            })
            .collect();
        let mut results: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        results.truncate(2);
        let state = std::mem::take(&mut *state.lock().unwrap());
        (results, state)
    }

    fn party(
        self,
        party: usize,
        mut transport: Box<dyn Transport>,
        state: &Arc<Mutex<State>>,
    ) -> Result<Vec<u64>> {
        let domain = self.domains.1.clone();
        let mut corruption: Corruption =
            self.honest.clone().corruption(party, self.domains.clone());
        if party == 2 {
            let (seen, size) = (Arc::clone(state), domain.wire_bytes(1));
            transport = intercept(
                transport,
                |_, payload| Some(payload.to_vec()),
                move |from, message| keep_masked_input(&seen, from, size, message),
            );
            corruption = Arc::new(TwoKeys {
                state: Arc::clone(state),
                domain,
                guess: self.guess,
            });
        }
        let whole = Session::new(transport)?;
        let session = match self.inside {
            true => whole.subgroup(&[0, 1, 2])?,
            false => whole,
        };
        if self.inside {
            let mut key = [0; 16];
            getrandom::fill(&mut key).unwrap();
            session.set_mac_key(key, None)?;
        }
        if party == 2 {
            // The link with party 0 comes first.
            let flips = AtomicU64::new(0);
            session.mac_links_with(|macs: Option<MacKey>| {
                let macs = macs.unwrap();
                let flipped = flips.swap(self.flipped, Ordering::SeqCst);
                let element = macs.element() ^ flipped;
                if flipped != 0 {
                    let difference = element.cast_signed() - macs.element().cast_signed();
                    state.lock().unwrap().difference = difference;
                }
                let word = u128::from(macs.bits()) | u128::from(element) << 64;
                LinkKey::random(Some(MacKey::from_bytes(&word.to_le_bytes())))
            })?;
        }
        let options = EngineOptions::default();
        let domains = self.domains.clone();
        let protocol: Authenticated<A> =
            session.protocol_with_macs(domains.clone(), 9, &options, corruption)?;
        let mut engine = Computation::new(session.clone(), protocol, domains, 2, false);
        let mut body = || {
            let x = input(&mut engine, 0, &[self.secrets[0]])?;
            let y = input(&mut engine, 1, &[self.secrets[1]])?;
            engine.flush()?;
            let sum = engine.add(&x, &y)?;
            let opened = engine.open(&sum)?;
            engine.read(&opened)
        };
        let result = body();
        if let Err(error) = &result {
            session.abort(&error.to_string());
        }
        result
    }
}

fn ring() -> (Z2k128, Z2k128) {
    (
        Z2k128::new(64).unwrap(),
        Z2k128::new(64 + MAC_BITS).unwrap(),
    )
}

fn field() -> (Zq, Zq) {
    (Zq::new(PRIME).unwrap(), Zq::new(PRIME).unwrap())
}

fn attack<A>(domains: (A, A), secret: i64, guess: Option<u128>, honest: &Role) -> Attack<A> {
    Attack {
        domains,
        secrets: [1000, secret],
        flipped: 1,
        guess,
        honest: honest.clone(),
        inside: false,
    }
}

/// Honest parties that do not look at the check of keys.
const CARELESS: Role = Role::Omits(Check::ElementKeys);

/// Runs of which the adversary has all sums: a party that stops may cut off those of another one.
fn with_all_sums<A: Arithmetic>(attack: &Attack<A>) -> State {
    let mut runs = (0..20).map(|_| attack.run().1);
    runs.find(|state| state.sums.len() == 3).unwrap()
}

/// What the sums of a failed check add up to.
fn total<D: Domain>(domain: &D, state: &State) -> D::E {
    let add = |sum, word: &u128| domain.add(sum, domain.from_u128(*word));
    state.sums.iter().fold(domain.zero(), add)
}

/// Modulo 2^k the input of party 1 is read from the sums of the check that fails.
#[test]
fn two_element_keys_ablated_an_input_modulo_2_to_the_k_is_read() {
    for secret in [123_456_789_012i64, 31_415_926_535_897] {
        let state = with_all_sums(&attack(ring(), secret, None, &CARELESS));
        let total = total(&ring().1, &state);
        let zeros = state.factor.trailing_zeros();
        let odd = state.factor >> zeros;
        let inverse = (0..7).fold(1u128, |x, _| {
            x.wrapping_mul(2u128.wrapping_sub(odd.wrapping_mul(x)))
        });
        let mask = (total >> zeros).wrapping_mul(inverse) as u64;
        let mask = mask.wrapping_mul(state.difference.cast_unsigned());
        let found = mask.wrapping_add(state.masked.unwrap() as u64);
        assert_eq!(found.cast_signed(), secret);
    }
}

/// Over a field too.
#[test]
fn two_element_keys_ablated_an_input_over_a_field_is_read() {
    let (field, secret) = (field().0, 987_654_321);
    let state = with_all_sums(&attack(
        (field.clone(), field.clone()),
        secret,
        None,
        &CARELESS,
    ));
    let (mut inverse, mut power) = (1, field.from_u128(state.factor));
    for i in 0..64 {
        if (PRIME - 2) >> i & 1 == 1 {
            inverse = field.mul(inverse, power);
        }
        power = field.mul(power, power);
    }
    let mut mask = field.mul(total(&field, &state), inverse);
    if state.difference < 0 {
        mask = field.neg(mask);
    }
    let found = field.add(mask, field.from_u128(state.masked.unwrap()));
    assert_eq!(found, secret as u64);
}

/// A bet that the input of party 1 is 1 passes if and only if it is, and nobody notices.
#[test]
fn two_element_keys_ablated_a_bet_on_an_input_goes_unnoticed() {
    for secret in [1, 0] {
        let (results, _) = attack(field(), secret, Some(1), &CARELESS).run();
        assert_eq!(results.iter().all(Result::is_ok), secret == 1);
    }
}

fn stopped_by_the_check<A: Arithmetic>(attack: &Attack<A>) {
    let (results, state) = attack.run();
    assert!(state.masked.is_none(), "an input was masked");
    let by_the_check = |result: &Result<Vec<u64>>| {
        matches!(
            result,
            Err(EngineError::Check {
                check: Check::ElementKeys,
                ..
            })
        )
    };
    assert!(results.iter().all(Result::is_err));
    assert!(results.iter().any(by_the_check), "{results:?}");
}

/// The check of keys ends it before anything is masked, whatever the difference, in a session and in a subgroup, with keys that are new and keys that
/// are kept, and in rings so small that one element would be guessed.
#[test]
fn two_element_keys_blocked_by_the_check_of_keys() {
    for flipped in [1, 1 << 47, 0x0123_4567_89ab] {
        for (guess, inside) in [(None, false), (Some(1), false), (None, true)] {
            let wrong = |attack: Attack<_>| Attack {
                flipped,
                inside,
                ..attack
            };
            stopped_by_the_check(&wrong(attack(ring(), 1, guess, &Role::Honest)));
            let small = (Z2k128::new(1).unwrap(), Z2k128::new(1 + MAC_BITS).unwrap());
            stopped_by_the_check(&wrong(attack(small, 1, guess, &Role::Honest)));
            let attack = attack(field(), 1, guess, &Role::Honest);
            stopped_by_the_check(&Attack {
                flipped,
                inside,
                ..attack
            });
        }
    }
}

/// The same programs go through where nothing is wrong, with the check of keys and without.
#[test]
fn one_element_key_passes() {
    for honest in [Role::Honest, CARELESS] {
        let one = Attack {
            flipped: 0,
            ..attack(field(), 5, None, &honest)
        };
        let (results, _) = one.run();
        for result in results {
            assert_eq!(result.unwrap(), [1005]);
        }
    }
}

/// Of one element of 8 bytes, to each peer: a word for each of 12 digits of a key, the summand, a commitment, the digest of what was received, a nonce and
/// the sum. The check of the keys of bits takes as many rounds alone.
const KEY_CHECK_BYTES: u64 = 12 * 8 + 8 + 32 + 32 + (32 + 16);

#[test]
fn the_check_of_keys_costs_little() {
    let threads: Vec<_> = local_mesh(3, Duration::from_secs(60))
        .into_iter()
        .map(|transport| {
            thread::spawn(move || -> Result<()> {
                let session = Session::new(Box::new(transport))?;
                let mut bits = Standalone::new(&session)?;
                bits.prepare()?;
                let (rounds, bytes) = bits.traffic();
                let mut engine = super::open(&session, "mascot", Role::Honest)?;
                let zero = engine.import(&[0; 16], 1)?;
                let mut cost = || -> Result<(u64, u64)> {
                    let before = engine.stats();
                    let opened = engine.open(&zero)?;
                    engine.read(&opened)?;
                    let after = engine.stats();
                    Ok((
                        after.rounds - before.rounds,
                        after.bytes_sent - before.bytes_sent,
                    ))
                };
                let (first, second) = (cost()?, cost()?);
                assert_eq!((rounds, second.0), (11, 1 + 5));
                assert_eq!(first.0 - second.0, rounds);
                assert_eq!(first.1 - second.1 - bytes, 2 * KEY_CHECK_BYTES);
                Ok(())
            })
        })
        .collect();
    for result in threads {
        result.join().unwrap().unwrap();
    }
}
