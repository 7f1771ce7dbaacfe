//! Among three parties, party 1 says different things to the others of a check that was cut off.
//!
//! It opens a value as another one, and keeps back the commitment to its sums. Then the others have committed, and have the commitments of nobody else: they take those that the next session agrees
//! on. There party 1 speaks for itself.

use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::{Duration, Instant};

use keyquorum_math::{Domain, Element, Prg, Zq};
use sha2::{Digest, Sha256};

use super::*;
use crate::adversary::{Adversary, Site, honest};
use crate::mac_key::checks::{Checks, Record, Sums};
use crate::protocol::authenticated::binary::commitment;

const HONEST: [usize; 2] = [0, 2];
const NONCE: usize = 32;
const MOST: usize = 1 << 20;

/// What a party has noted of checks of elements, the last one last.
fn records(path: &Path) -> Vec<Record> {
    let checks = Checks::load(&path.with_file_name("mac.key.checks")).unwrap();
    let all = checks.all().into_iter().cloned();
    all.filter(|record| record.sums != Sums::Xor).collect()
}

/// Whether a party has opened the sums to which it is committed by `ours`.
fn opened_its_sums(path: &Path, ours: &[u8]) -> bool {
    let of = |record: &&Record| record.ours.as_slice() == ours;
    let found = records(path);
    let mut found = found.iter().filter(of);
    found.any(|record| !record.commitments.is_empty())
}

/// What one party learns.
type Seen = Arc<Mutex<Vec<Vec<u8>>>>;

/// Party 1: what it adds to its share of the first value towards each party, from when it is told to.
struct Cheats {
    path: PathBuf,
    adds: fn(Option<usize>) -> u128,
    starts: Arc<AtomicBool>,
    tosses: Seen,
}

impl Adversary for Cheats {
    fn deviates(&self, site: Site) -> bool {
        matches!(site, Site::Opening | Site::Commitment) && self.starts.load(Ordering::SeqCst)
    }

    fn words(&self, _: Site, to: Option<usize>, words: &mut [u128]) {
        words[0] += (self.adds)(to);
    }

    fn bytes(&self, _: Site, _: Option<usize>, message: &mut Vec<u8>) {
        let last = records(&self.path).pop();
        if last.is_some_and(|record| record.ours.as_slice() == message.as_slice()) {
            panic!("keeps back its commitment");
        }
    }

    fn sees(&self, site: Site, _: usize, message: &[u8]) {
        if site == Site::Toss {
            self.tosses.lock().unwrap().push(message.to_vec());
        }
    }
}

/// Shows the key of an honest party to the test.
struct Shows(Seen);

impl Adversary for Shows {
    fn deviates(&self, site: Site) -> bool {
        site == Site::Key
    }

    fn sees(&self, site: Site, _: usize, message: &[u8]) {
        if site == Site::Key {
            self.0.lock().unwrap().push(message.to_vec());
        }
    }
}

/// A check that was cut off.
struct CutOff {
    kept: Kept,
    /// What each party noted of it.
    noted: Vec<Record>,
    tosses: Vec<Vec<u8>>,
    /// The key of party 2.
    key: u64,
}

fn cut_off(adds: fn(Option<usize>) -> u128) -> CutOff {
    let kept = Kept::new(3);
    let [tosses, keys] = [Seen::default(), Seen::default()];
    let starts = Arc::new(AtomicBool::new(false));
    let paths: Vec<_> = (0..3).map(|party| kept.path(party)).collect();
    let body = {
        let (tosses, keys, shares) = (tosses.clone(), keys.clone(), Arc::clone(&kept.shares));
        move |mut session: Session| {
            let me = session.party();
            session.adversary = match me {
                0 => honest(),
                1 => Arc::new(Cheats {
                    path: paths[1].clone(),
                    adds,
                    starts: Arc::clone(&starts),
                    tosses: tosses.clone(),
                }),
                _ => Arc::new(Shows(keys.clone())),
            };
            let key = fs::read(&paths[me]).unwrap().try_into().unwrap();
            let opened = catch_unwind(AssertUnwindSafe(|| {
                session.set_mac_key(key, Some(&paths[me]))?;
                let mut engine = engine(&session)?;
                let (share, origin) = shares[me].split_at(2 * 8 * SECRETS.len());
                engine.check_origin(origin)?;
                if me == 1 {
                    starts.store(true, Ordering::SeqCst);
                }
                let value = engine.import(share, SECRETS.len())?;
                let opened = engine.open(&value)?;
                engine.read(&opened)
            }));
            session.abort("gone");
            assert!(opened.is_err() == (me == 1) && !matches!(opened, Ok(Ok(_))));
        }
    };
    parties(3, |_, transport| transport, body);
    let noted: Vec<_> = (0..3)
        .map(|party| records(&kept.path(party)).pop().unwrap())
        .collect();
    for record in &noted {
        assert!(record.commitments.is_empty() && record.index == noted[0].index);
    }
    let key = keys.lock().unwrap().pop().unwrap();
    CutOff {
        noted,
        key: u64::from_le_bytes(key.try_into().unwrap()),
        tosses: tosses.lock().unwrap().clone(),
        kept,
    }
}

/// What party 1 says to one party of the check: nothing, or what all received and its own commitment to this opening.
#[derive(Clone)]
struct Told {
    check: Vec<u8>,
    opening: Vec<u8>,
}

impl CutOff {
    fn path(&self, party: usize) -> PathBuf {
        self.kept.path(party)
    }

    fn words(&self, party: usize) -> Vec<u128> {
        let (words, _) = self.noted[party].opening[NONCE..].as_chunks::<16>();
        words
            .iter()
            .map(|word| u128::from_le_bytes(*word))
            .collect()
    }

    /// That it commits to these sums, of a check in which party 0 received what it did.
    fn told(&self, sums: &[u128]) -> Told {
        let mut opening = vec![7; NONCE];
        opening.extend(sums.iter().flat_map(|sum| sum.to_le_bytes()));
        let ours = commitment(1, self.noted[1].index, &opening);
        let [first, _, last] = self.noted.as_slice() else {
            panic!("three parties");
        };
        let check = [first.transcript, first.ours, ours, last.ours].concat();
        Told { check, opening }
    }

    /// What the honest parties get of an engine in the next session, and their openings, as far as party 1 gets them.
    fn next_session(
        &self,
        guard: fn() -> Guard,
        told: [Told; 2],
    ) -> ([EngineError; 2], [Option<Vec<u8>>; 2]) {
        let paths: Vec<_> = (0..3).map(|party| self.path(party)).collect();
        let ours: Vec<_> = self.noted.iter().map(|record| record.ours).collect();
        let ended = Arc::new(AtomicUsize::new(0));
        let body = move |session: Session| {
            let me = session.party();
            if me == 1 {
                return Err(equivocates(&session, &told));
            }
            let session = guarded(session, guard());
            let key = fs::read(&paths[me]).unwrap().try_into().unwrap();
            let opened = session
                .set_mac_key(key, Some(&paths[me]))
                .and_then(|()| engine(&session).map(drop));
            let error = opened.unwrap_err();
            // The other one comes as far as it does, whichever of them is faster.
            ended.fetch_add(1, Ordering::SeqCst);
            let other = HONEST[usize::from(me == HONEST[0])];
            let patience = Instant::now() + Duration::from_secs(20);
            while ended.load(Ordering::SeqCst) < 2
                && !opened_its_sums(&paths[other], &ours[other])
                && Instant::now() < patience
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            session.abort(&error.to_string());
            Ok(error)
        };
        let ended = parties(3, |_, transport| transport, body);
        let [Ok(first), Err(openings), Ok(last)] = <[_; 3]>::try_from(ended).unwrap() else {
            panic!("party 1 is another one");
        };
        ([first, last], openings)
    }

    /// Whether a party opened its sums.
    fn opened(&self, party: usize) -> bool {
        opened_its_sums(&self.path(party), &self.noted[party].ours)
    }

    /// Nobody opened its sums, and no key burned: the honest parties use them again, once party 1 says the same to all.
    fn nothing_was_revealed(&self) {
        for party in HONEST {
            assert!(!self.opened(party));
            assert_eq!(self.kept.wear(party).unfinished, 0);
        }
        for opened in self.kept.opened(None, [0; 2]) {
            assert_eq!(opened.unwrap(), [1, 2, 3]);
        }
    }
}

/// Party 1 in the next session. To each of the others it says that it was told what that one was told.
fn equivocates(session: &Session, told: &[Told; 2]) -> [Option<Vec<u8>>; 2] {
    let from = |party: usize| session.receive(party, MOST).ok();
    let fields = HONEST.map(from);
    for (party, fields) in HONEST.into_iter().zip(&fields) {
        session.send(party, fields.as_ref().unwrap()).unwrap();
    }
    let says = [&told[0], &told[1]].map(|told| [&[0; 4], told.check.as_slice()].concat());
    for (party, says) in HONEST.into_iter().zip(&says) {
        session.send(party, says).unwrap();
    }
    let said = HONEST.map(from).map(Option::unwrap_or_default);
    for (party, says) in HONEST.into_iter().zip(&says) {
        let mut hash = Sha256::new_with_prefix(b"keyquorum-v1/unfinished checks");
        for message in [&said[0], says, &said[1]] {
            hash.update((message.len() as u64).to_le_bytes());
            hash.update(message);
        }
        // It opens.
        drop(session.send(party, &[&hash.finalize()[..], &[1]].concat()));
    }
    drop(HONEST.map(from));
    for (party, told) in HONEST.into_iter().zip(told) {
        let length = (told.opening.len() as u32).to_le_bytes();
        drop(session.send(party, &[&length, told.opening.as_slice()].concat()));
    }
    let openings = HONEST.map(from);
    // It stays until the others are gone.
    for party in HONEST {
        while from(party).is_some() {}
    }
    session.abort("gone");
    openings
}

/// It is committed to one guess of the honest keys towards party 0, here the right one, and to another one towards party 2.
fn two_guesses(guard: fn() -> Guard) -> (CutOff, [EngineError; 2]) {
    let cut_off = cut_off(|_| 1);
    let field = Zq::new(PRIME).unwrap();
    let element = |word: &u128| field.from_u128(*word);
    let [first, last] = HONEST.map(|party| cut_off.words(party));
    let sums = first.iter().zip(&last);
    let right: Vec<_> = sums
        .map(|(a, b)| field.neg(field.add(element(a), element(b))).to_u128())
        .collect();
    let wrong: Vec<_> = right.iter().map(|sum| sum ^ 1).collect();
    let told = [&right, &wrong].map(|sums| cut_off.told(sums));
    let (errors, _) = cut_off.next_session(guard, told);
    (cut_off, errors)
}

#[test]
fn crash_guess_blocked_a_guess_for_each_honest_party() {
    let (cut_off, errors) = two_guesses(Guard::default);
    for error in errors {
        assert!(!matches!(error, EngineError::Check { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("was told of others than party"), "{text}");
    }
    cut_off.nothing_was_revealed();
}

/// Party 0 finds that the check was right, and goes on with what was opened wrongly, though party 2 finds that it was not.
#[test]
fn crash_guess_ablated_a_guess_for_each_honest_party() {
    let (cut_off, [first, last]) = two_guesses(Guard::credulous);
    assert!(matches!(first, EngineError::Network { .. }), "{first}");
    assert_eq!(cut_off.kept.wear(0).unfinished, 0);
    assert!(cut_off.opened(0));
    assert!(MacKeyFile::new(&cut_off.path(0)).check().is_ok());
    let EngineError::Check { check, .. } = last else {
        panic!("{last}");
    };
    assert_eq!(check, Check::Interrupted);
    assert!(MacKeyFile::new(&cut_off.path(2)).check().is_err());
}

/// It opened another value to party 2 than to party 0, and says to both that it was that of party 0: their sums would differ by the key of party 2 alone.
fn two_values(guard: fn() -> Guard) -> (CutOff, [EngineError; 2], Vec<u64>) {
    let cut_off = cut_off(|to| u128::from(to == Some(2)));
    assert_ne!(cut_off.noted[0].transcript, cut_off.noted[2].transcript);
    let told = cut_off.told(&cut_off.words(1));
    let (errors, openings) = cut_off.next_session(guard, [told.clone(), told]);
    let field = Zq::new(PRIME).unwrap();
    let openings: Option<Vec<_>> = openings.into_iter().collect();
    let found = openings.map(|openings| {
        let sums = openings.iter().map(|message| {
            let sum: [u8; 16] = *message[4 + NONCE..].first_chunk().unwrap();
            u128::from_le_bytes(sum)
        });
        let ours = cut_off.words(1)[0];
        let sum = sums.chain([ours]).fold(field.zero(), |sum, word| {
            field.add(sum, field.from_u128(word))
        });
        // −χα: which of the tosses was that of χ does not matter.
        let factors = cut_off.tosses.iter().map(|toss| {
            let mut factors = vec![field.zero(); SECRETS.len()];
            field.random(&mut Prg::new(*toss.first_chunk().unwrap(), 0), &mut factors);
            factors[0]
        });
        let keys = factors.map(|factor| field.mul(field.neg(sum), field.invert(factor).unwrap()));
        keys.collect()
    });
    (cut_off, errors, found.unwrap_or_default())
}

#[test]
fn crash_guess_blocked_a_check_of_different_values() {
    let (cut_off, errors, found) = two_values(Guard::default);
    for error in errors {
        assert!(!matches!(error, EngineError::Check { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("party 2 has got other messages"), "{text}");
    }
    assert!(found.is_empty());
    cut_off.nothing_was_revealed();
}

/// Party 1 finds the key of party 2.
#[test]
fn crash_guess_ablated_a_check_of_different_values() {
    let (cut_off, _, found) = two_values(Guard::credulous);
    assert!(found.contains(&cut_off.key), "{found:?}");
}

/// It says to party 0 that nothing is unfinished, and to party 2 that the check is.
fn nothing_to_one(guard: fn() -> Guard) -> (CutOff, [EngineError; 2]) {
    let cut_off = cut_off(|_| 1);
    let told = cut_off.told(&cut_off.words(1));
    let nothing = Told {
        check: Vec::new(),
        opening: told.opening.clone(),
    };
    let (errors, _) = cut_off.next_session(guard, [nothing, told]);
    (cut_off, errors)
}

#[test]
fn crash_guess_blocked_a_check_that_one_party_hears_nothing_of() {
    let (cut_off, [first, last]) = nothing_to_one(Guard::default);
    for error in [&first, &last] {
        assert!(!matches!(error, EngineError::Check { .. }), "{error}");
    }
    let text = last.to_string();
    assert!(text.contains("party 0 was told of others than"), "{text}");
    cut_off.nothing_was_revealed();
}

/// Party 2 opens its sums in a check that party 0 does not take part in.
#[test]
fn crash_guess_ablated_a_check_that_one_party_hears_nothing_of() {
    let (cut_off, _) = nothing_to_one(Guard::credulous);
    assert!(cut_off.opened(2) && !cut_off.opened(0));
    assert_eq!(cut_off.kept.wear(2).unfinished, 1);
}

/// Party 1 of two says that a check of this very session is unfinished, which waits for its commitment. Returns whether party 0 opens its sums.
fn asks_for_a_check_that_goes_on(guard: fn() -> Guard) -> bool {
    let kept = Kept::new(2);
    let path = kept.path(0);
    let record = Record {
        me: 0,
        parties: 2,
        sums: Sums::Prime(u128::from(PRIME)),
        index: 0,
        ours: [1; 32],
        transcript: [2; 32],
        opening: zeroize::Zeroizing::new(vec![3; NONCE + 16]),
        commitments: Vec::new(),
    };
    let body = move |session: Session| {
        if session.party() == 1 {
            let check = [record.transcript, record.ours, [4; 32]].concat();
            session
                .send(0, &[&[0; 4], check.as_slice()].concat())
                .unwrap();
            let mut hash = Sha256::new_with_prefix(b"keyquorum-v1/unfinished checks");
            for message in [
                session.receive(0, MOST).unwrap(),
                [&[0; 4], check.as_slice()].concat(),
            ] {
                hash.update((message.len() as u64).to_le_bytes());
                hash.update(message);
            }
            drop(session.send(0, &[&hash.finalize()[..], &[1]].concat()));
            drop(session.receive(0, MOST));
            let opened = session.receive(0, MOST).ok();
            session.abort("gone");
            return opened.is_some_and(|opened| opened[4..] == record.opening[..]);
        }
        let session = guarded(session, guard());
        let key = fs::read(&path).unwrap().try_into().unwrap();
        session.set_mac_key(key, Some(&path)).unwrap();
        session.guard.notes_check(&record).unwrap();
        let error = session.finish_checks().unwrap_err();
        session.abort(&error.to_string());
        false
    };
    parties(2, |_, transport| transport, body).contains(&true)
}

#[test]
fn crash_guess_blocked_a_check_that_goes_on_is_asked_for() {
    assert!(!asks_for_a_check_that_goes_on(Guard::default));
}

/// It commits to the right sums then.
#[test]
fn crash_guess_ablated_a_check_that_goes_on_is_asked_for() {
    assert!(asks_for_a_check_that_goes_on(Guard::credulous));
}
