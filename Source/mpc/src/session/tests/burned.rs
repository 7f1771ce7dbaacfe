//! What a failed MAC check tells the adversary, and what it could do with it under the same key.
//!
//! Party 1 opens a stored value as another one. The check that fails reveals the honest party's sum, which is the error times the MAC
//! key: with the key party 1 makes a share of any value it likes, with the MAC that belongs to it. It need not even let the check end:
//! who has got the sums of the others can break off before it gives its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use keyquorum_math::{Domain, DomainKind, Element, Prg, Zq};
use keyquorum_net::{Counters, Length, NetError, Transport, local_mesh};
use sha2::{Digest, Sha256};

use super::parties;
use crate::engine::Engine;
use crate::error::{Check, EngineError, Result};
use crate::guard::Guard;
use crate::mac_key::{MOST_ABORTED, MacKeyFile};
use crate::session::{EngineOptions, Session, os_random};

const PRIME: u64 = 1_152_921_504_606_584_833;
const SECRETS: [i64; 3] = [1, 2, 3];
/// What the adversary adds to the first value when it forges.
const FORGED: u64 = 41;
/// Nonce of a commitment.
const NONCE: usize = 32;
/// Tag of a message.
const TAG: usize = 8;

/// Messages of a party: those that it sent, and those that it got.
#[derive(Clone, Default)]
struct Transcript(Arc<Mutex<[Vec<Vec<u8>>; 2]>>);

/// A transport that keeps what goes over it.
struct Tap {
    inner: Box<dyn Transport>,
    transcript: Transcript,
    /// The message that is not sent, if any: by its number.
    withheld: Option<usize>,
}

impl Transport for Tap {
    fn party(&self) -> usize {
        self.inner.party()
    }

    fn parties(&self) -> usize {
        self.inner.parties()
    }

    fn send(&mut self, to: usize, payload: &[u8]) -> std::result::Result<(), NetError> {
        let number = {
            let sent = &mut self.transcript.0.lock().unwrap()[0];
            sent.push(payload.to_vec());
            sent.len()
        };
        if Some(number) == self.withheld {
            return Ok(());
        }
        self.inner.send(to, payload)
    }

    fn take(&mut self, from: usize, len: Length) -> std::result::Result<Vec<u8>, NetError> {
        let message = self.inner.take(from, len)?;
        self.transcript.0.lock().unwrap()[1].push(message.clone());
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

impl Transcript {
    /// A message of one of the last rounds, 1 for the last, without its tag: of party 0 and of party 1.
    fn round(&self, from_the_end: usize) -> [Vec<u8>; 2] {
        let all = self.0.lock().unwrap();
        [1, 0].map(|side: usize| {
            let messages = &all[side];
            messages[messages.len() - from_the_end][TAG..].to_vec()
        })
    }

    /// The MAC key, from a check that failed because the first of all opened values was 1 too large: the sums that were revealed add up
    /// to −χα.
    fn key(&self) -> u64 {
        let field = Zq::new(PRIME).unwrap();
        let opened = |messages: [Vec<u8>; 2], bytes: usize| {
            messages.map(|message| message[NONCE..NONCE + bytes].to_vec())
        };
        let mut hash = Sha256::new_with_prefix(b"keyquorum-v1/toss");
        for value in opened(self.round(3), 32) {
            hash.update(value);
        }
        let seed: [u8; 32] = hash.finalize().into();
        let mut factors = vec![field.zero(); SECRETS.len()];
        field.random(&mut Prg::new(*seed.first_chunk().unwrap(), 0), &mut factors);
        let sum = opened(self.round(1), 16)
            .iter()
            .fold(field.zero(), |sum, word| {
                field.add(
                    sum,
                    field.from_u128(u128::from_le_bytes(*word.first_chunk().unwrap())),
                )
            });
        let product = |a: u128, b: u128| a * b % u128::from(PRIME);
        let (mut inverse, mut power, mut exponent) = (1, factors[0].to_u128(), PRIME - 2);
        while exponent > 0 {
            if exponent & 1 == 1 {
                inverse = product(inverse, power);
            }
            power = product(power, power);
            exponent >>= 1;
        }
        PRIME - product(sum.to_u128(), inverse) as u64
    }
}

/// A stored share of which the first value is `by` larger, and its MAC as it must be under `key`.
fn shifted(share: &[u8], by: u64, key: u64) -> Vec<u8> {
    let mut words: Vec<u64> = share
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(*word.first_chunk().unwrap()))
        .collect();
    let add = |a: u64, b: u128| ((u128::from(a) + b) % u128::from(PRIME)) as u64;
    words[0] = add(words[0], u128::from(by));
    let mac = SECRETS.len();
    words[mac] = add(words[mac], u128::from(by) * u128::from(key));
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn engine(session: &Session) -> Result<Box<dyn Engine>> {
    session.engine("mascot", DomainKind::Fq(PRIME), &EngineOptions::default())
}

fn open(engine: &mut dyn Engine, share: &[u8]) -> Result<Vec<u64>> {
    let value = engine.import(share, SECRETS.len())?;
    let opened = engine.open(&value)?;
    engine.read(&opened)
}

/// The session in which the adversary uses the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// That in which the check failed, in a new engine.
    SameOne,
    /// Another one, which was open before.
    OpenBefore,
    /// One that is opened afterwards.
    OpenedAfter,
}

#[derive(Clone, Copy)]
struct Attack {
    place: Place,
    /// Whether the adversary breaks off when it has the sums of the others, so that no check fails.
    cut_off: bool,
    /// Whether party 0 has the remedy: the guard of its session, and the mark beside its key.
    remedy: bool,
}

/// How a run ended for party 0.
struct End {
    /// What the first error was.
    failed: EngineError,
    /// What party 0 opened afterwards.
    then: Result<Vec<u64>>,
}

/// Two parties, each with two sessions with the other; `wrap` changes the transport of the second party's first session.
fn two_sessions<T: Send + 'static>(
    wrap: impl Fn(Box<dyn Transport>) -> Box<dyn Transport>,
    body: impl Fn([Session; 2]) -> T + Clone + Send + 'static,
) -> Vec<T> {
    let wait = Duration::from_secs(20);
    let threads: Vec<_> = local_mesh(2, wait)
        .into_iter()
        .zip(local_mesh(2, wait))
        .enumerate()
        .map(|(party, (first, second))| {
            let (first, body) = (Box::new(first) as Box<dyn Transport>, body.clone());
            let first = if party == 1 { wrap(first) } else { first };
            std::thread::spawn(move || {
                body([
                    Session::new(first).unwrap(),
                    Session::new(Box::new(second)).unwrap(),
                ])
            })
        })
        .collect();
    threads.into_iter().map(|t| t.join().unwrap()).collect()
}

/// The adversary, or a party without the remedy.
fn ablated(mut session: Session) -> Session {
    session.guard = Arc::new(Guard::ablated());
    session
}

/// Keys of both parties and the file of party 0's.
struct Committee {
    keys: [[u8; 16]; 2],
    folder: tempfile::TempDir,
    shares: [Vec<u8>; 2],
}

impl Committee {
    /// With shares of [`SECRETS`], of a session that ended in order.
    fn new() -> Self {
        let mut keys = [[0; 16]; 2];
        keys.iter_mut().for_each(|key| os_random(key).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mac.key");
        fs::write(&path, keys[0]).unwrap();
        let shares = parties(
            2,
            |_, transport| transport,
            move |session| {
                let me = session.party();
                let file = (me == 0).then_some(path.as_path());
                session.set_mac_key(keys[me], file).unwrap();
                let mut engine = engine(&session).unwrap();
                let given = (me == 0).then_some(&SECRETS[..]);
                let x = engine.input(0, SECRETS.len(), given).unwrap();
                let share = engine.export(&x).unwrap();
                session.close();
                share
            },
        );
        Self {
            keys,
            folder,
            shares: shares.try_into().unwrap(),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("mac.key")
    }
}

/// The first error of a session in which party 1 opens a stored value as another one, and what party 0 opens afterwards, as far as that
/// is not in a new session.
fn provoke(
    committee: &Committee,
    attack: Attack,
    transcript: &Transcript,
    withheld: Option<usize>,
) -> (EngineError, Option<Result<Vec<u64>>>) {
    let (keys, shares, path) = (committee.keys, committee.shares.clone(), committee.path());
    let tap = |inner| -> Box<dyn Transport> {
        Box::new(Tap {
            inner,
            transcript: transcript.clone(),
            withheld,
        })
    };
    let body = {
        let transcript = transcript.clone();
        move |sessions: [Session; 2]| {
            let me = sessions[0].party();
            // Of party 0 only the first session may be without its guard: in another one the mark on the disk is what stops it.
            let takes_out = attack.place == Place::SameOne || attack.cut_off;
            let [first, second] = sessions;
            let (first, second) = match (me, attack.remedy || !takes_out) {
                (1, _) => (ablated(first), ablated(second)),
                (_, true) => (first, second),
                (_, false) => (ablated(first), second),
            };
            let file = (me == 0).then_some(path.as_path());
            first.set_mac_key(keys[me], file).unwrap();
            second.set_mac_key(keys[me], file).unwrap();
            let mut other = engine(&second).unwrap();
            assert_eq!(open(&mut *other, &shares[me]).unwrap(), [1, 2, 3]);
            let share = shifted(&shares[me], me as u64, 0);
            let failed = open(&mut *engine(&first).unwrap(), &share).unwrap_err();
            if me == 1 && attack.cut_off {
                first.abort("gone");
            }
            if me == 0 && !attack.remedy {
                forget(&path);
            }
            let forged = match me {
                1 => shifted(&shares[1], FORGED, transcript.key()),
                _ => shares[0].clone(),
            };
            let then = match attack.place {
                Place::OpenedAfter => None,
                Place::OpenBefore => Some(open(&mut *other, &forged)),
                Place::SameOne => {
                    Some(engine(&first).and_then(|mut engine| open(&mut *engine, &forged)))
                }
            };
            if let Some(Err(error)) = &then {
                first.abort(&error.to_string());
                second.abort(&error.to_string());
            }
            (failed, then)
        }
    };
    two_sessions(tap, body).remove(0)
}

/// Takes away what is kept beside a burned key: its mark, and those of sessions, of which one says that its sums were open.
fn forget(path: &Path) {
    drop(fs::remove_file(path.with_file_name("mac.key.burned")));
    drop(fs::remove_dir_all(path.with_file_name("mac.key.sessions")));
}

/// Party 1 makes a check fail, finds the key in its transcript, and opens a forged value.
fn run(attack: Attack) -> End {
    let withheld = attack.cut_off.then(|| {
        let (committee, transcript) = (Committee::new(), Transcript::default());
        let whole = Attack {
            place: Place::OpenedAfter,
            cut_off: false,
            remedy: true,
        };
        provoke(&committee, whole, &transcript, None);
        let all = transcript.0.lock().unwrap();
        all[0].len()
    });
    let (committee, transcript) = (Committee::new(), Transcript::default());
    let (failed, then) = provoke(&committee, attack, &transcript, withheld);
    if let Some(then) = then {
        return End { failed, then };
    }
    let (key, keys, path) = (transcript.key(), committee.keys, committee.path());
    let shares = committee.shares.clone();
    let body = move |session: Session| {
        let me = session.party();
        let file = (me == 0).then_some(path.as_path());
        drop(session.all_gather(b"both are there"));
        let then = session.set_mac_key(keys[me], file).and_then(|()| {
            let share = shifted(&shares[me], FORGED * me as u64, key);
            open(&mut *engine(&session)?, &share)
        });
        if let Err(error) = &then {
            session.abort(&error.to_string());
        }
        then
    };
    let then = parties(2, |_, transport| transport, body).remove(0);
    End { failed, then }
}

const FAILED: &str = "MAC check of opened values failed";
const CUT_OFF: &str = "a MAC check was cut off";

/// The check failed, and what came then was refused in one line with cause and cure.
fn blocked(place: Place, cut_off: bool) {
    let end = run(Attack {
        place,
        cut_off,
        remedy: true,
    });
    let (expected, cause) = match cut_off {
        true => (Check::Interrupted, CUT_OFF),
        false => (Check::ElementMacs, FAILED),
    };
    let EngineError::Check { check, text } = &end.failed else {
        panic!("{}", end.failed);
    };
    assert_eq!(*check, expected);
    assert!(text.contains("is burned: make a new committee"), "{text}");
    let text = match &end.then {
        Ok(opened) => panic!("a forged value was opened: {opened:?}"),
        Err(EngineError::Burned(text)) => text,
        Err(error) => panic!("{error}"),
    };
    for part in [cause, "make a new committee and new keys"] {
        assert!(text.contains(part) && !text.contains('\n'), "{text}");
    }
}

/// Without the remedy party 0 accepts what party 1 made up.
fn forged(place: Place, cut_off: bool) {
    let end = run(Attack {
        place,
        cut_off,
        remedy: false,
    });
    assert_eq!(end.then.unwrap(), [1 + FORGED, 2, 3]);
}

#[test]
fn finding_02_blocked_new_engine_of_the_session() {
    blocked(Place::SameOne, false);
}

#[test]
fn finding_02_blocked_other_session_under_the_key() {
    blocked(Place::OpenBefore, false);
}

#[test]
fn finding_02_blocked_new_session_under_the_key() {
    blocked(Place::OpenedAfter, false);
}

#[test]
fn finding_02_blocked_check_cut_off_by_who_has_the_sums() {
    blocked(Place::OpenedAfter, true);
}

#[test]
fn finding_02_ablated_new_engine_of_the_session() {
    forged(Place::SameOne, false);
}

#[test]
fn finding_02_ablated_other_session_under_the_key() {
    forged(Place::OpenBefore, false);
}

#[test]
fn finding_02_ablated_new_session_under_the_key() {
    forged(Place::OpenedAfter, false);
}

#[test]
fn finding_02_ablated_check_cut_off_by_who_has_the_sums() {
    forged(Place::OpenedAfter, true);
}

/// After a failed check in a subgroup the whole session is refused, and after one in the session its subgroups.
#[test]
fn finding_02_blocked_subgroups_and_their_session() {
    for in_the_subgroup in [true, false] {
        let committee = Committee::new();
        let (keys, shares, path) = (committee.keys, committee.shares.clone(), committee.path());
        let texts = parties(
            2,
            |_, transport| transport,
            move |session| {
                let me = session.party();
                let group = session.subgroup(&[0, 1]).unwrap();
                let (cheated, other) = match in_the_subgroup {
                    true => (&group, &session),
                    false => (&session, &group),
                };
                let file = (me == 0).then_some(path.as_path());
                cheated.set_mac_key(keys[me], file).unwrap();
                let mut before = engine(other).unwrap();
                let share = shifted(&shares[me], me as u64, 0);
                open(&mut *engine(cheated).unwrap(), &share).unwrap_err();
                [
                    engine(other).map(drop).unwrap_err(),
                    engine(cheated).map(drop).unwrap_err(),
                    before.random(1).map(drop).unwrap_err(),
                    before.import(&shares[me], 3).map(drop).unwrap_err(),
                    other.toss(1).map(drop).unwrap_err(),
                    other.subgroup(&[0, 1]).map(drop).unwrap_err(),
                ]
                .map(|error| error.to_string())
            },
        );
        for text in texts.iter().flatten() {
            assert!(text.contains(FAILED) && text.contains("new keys"), "{text}");
        }
    }
}

/// Opens an engine with MACs in a session of which party 0 has its key in a file, and ends it as told.
fn session_that(path: &Path, ends: fn(&Session)) -> Result<()> {
    let path = path.to_owned();
    let body = move |session: Session| {
        drop(session.all_gather(b"both are there"));
        let mut key = [0; 16];
        os_random(&mut key).unwrap();
        if session.party() == 1 {
            session.set_mac_key(key, None)?;
            engine(&session)?;
            drop(session.receive(0, 1)); // until party 0 is gone
            return Ok(());
        }
        session.set_mac_key(key, Some(&path))?;
        engine(&session)?;
        let before = MacKeyFile::new(&path).aborted()?;
        let marks = fs::read_dir(path.with_file_name("mac.key.sessions")).unwrap();
        assert_eq!(marks.count(), before + 1, "the mark of a session that runs");
        ends(&session);
        Ok(())
    };
    parties(2, |_, transport| transport, body).remove(0)
}

/// Sessions that break off count, whatever the cause, and too many end the key; those that end in order do not.
#[test]
fn finding_02_blocked_too_many_sessions_that_broke_off() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mac.key");
    let file = MacKeyFile::new(&path);
    type Ending = fn(&Session);
    let endings: [(Ending, usize); 4] = [
        (Session::close, 0),
        (|session| session.abort("lost"), 1),
        (
            |session| {
                session.abort("lost");
                session.close();
            },
            2,
        ),
        (|_| (), 3),
    ];
    for (ending, aborted) in endings {
        session_that(&path, ending).unwrap();
        assert_eq!(file.aborted().unwrap(), aborted);
    }
    while file.aborted().unwrap() < MOST_ABORTED {
        file.check().unwrap();
        drop(file.begin().unwrap());
    }
    let text = session_that(&path, Session::close).unwrap_err().to_string();
    for part in ["32 sessions under this MAC key broke off", "new committee"] {
        assert!(text.contains(part) && !text.contains('\n'), "{text}");
    }
}

/// The adversary guesses a digit of the key of party 0 in every session, and has it killed before the check: without the count it goes
/// on until it has them all.
#[test]
fn finding_02_ablated_too_many_sessions_that_broke_off() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mac.key");
    for session in 0..2 * MOST_ABORTED {
        session_that(&path, |session| session.abort("killed"))
            .unwrap_or_else(|error| panic!("session {session}: {error}"));
        fs::remove_dir_all(path.with_file_name("mac.key.sessions")).unwrap();
    }
}

/// A process that is killed between opening its sums and finding them right leaves a mark that says so: the next one burns the key.
#[test]
fn finding_02_blocked_killed_with_its_sums_open() {
    let folder = tempfile::tempdir().unwrap();
    let file = MacKeyFile::new(&folder.path().join("mac.key"));
    let mut mark = file.begin().unwrap();
    mark.revealed(true).unwrap();
    file.check().unwrap(); // it runs
    drop(mark);
    for _ in 0..2 {
        let text = file.check().unwrap_err().to_string();
        assert!(
            text.contains("had opened its sums") && text.contains("new committee"),
            "{text}"
        );
    }
}

/// Where no mark can be written the key itself is made unusable, and what cannot be done at all is said.
#[test]
fn finding_02_blocked_mark_that_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = MacKeyFile::new(&folder.path().join("gone").join("mac.key"));
    let told = file.burn(FAILED);
    assert!(
        told.contains("neither could") && told.contains("by hand"),
        "{told}"
    );
    let path = folder.path().join("mac.key");
    fs::write(&path, b"KeyQuorum-burned").unwrap();
    let text = MacKeyFile::new(&path).check().unwrap_err().to_string();
    assert!(
        text.contains("burned") && text.contains("new committee"),
        "{text}"
    );
}

/// A damaged mark is a mark.
#[test]
fn a_mark_says_when_and_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mac.key");
    let file = MacKeyFile::new(&path);
    let told = file.burn("first\ncause");
    assert!(told.contains("is burned"), "{told}");
    file.burn("second cause");
    let line = fs::read_to_string(path.with_file_name("mac.key.burned")).unwrap();
    assert!(
        line.starts_with(r#"{"check":"first cause","date":"20"#),
        "{line}"
    );
    assert_eq!(line.lines().count(), 1);
    fs::write(path.with_file_name("mac.key.burned"), "{").unwrap();
    let text = file.check().unwrap_err().to_string();
    assert!(text.contains("its mark is damaged"), "{text}");
}
