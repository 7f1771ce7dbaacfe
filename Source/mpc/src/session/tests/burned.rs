//! What a failed MAC check tells the adversary, and what it could do with it under the same key.
//!
//! Party 1 opens a stored value as another one. The check that fails reveals the honest party's sum, which is the error times the MAC
//! key: with the key party 1 makes a share of any value it likes, with the MAC that belongs to it. It need not even let the check end:
//! who has got the sums of the others can break off before it gives its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use keyquorum_math::{Domain, DomainKind, Element, Prg, Zq};
use keyquorum_net::{Transport, local_mesh};
use keyquorum_ot::{BIT_MAC_BITS, KAPPA, Parameters};
use sha2::{Digest, Sha256};

use super::parties;
use crate::engine::Engine;
use crate::error::{Check, EngineError, Result};
use crate::guard::Guard;
use crate::intercept::intercept;
use crate::mac_key::MacKeyFile;
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

impl Transcript {
    /// A transport that keeps what goes over it, and sends all messages but one, if any: by its number.
    fn tap(&self, inner: Box<dyn Transport>, withheld: Option<usize>) -> Box<dyn Transport> {
        let [ours, theirs] = [self.clone(), self.clone()];
        let sends = move |_, payload: &[u8]| {
            let sent = &mut ours.0.lock().unwrap()[0];
            sent.push(payload.to_vec());
            (Some(sent.len()) != withheld).then(|| payload.to_vec())
        };
        intercept(inner, sends, move |_, message| {
            theirs.0.lock().unwrap()[1].push(message.to_vec());
        })
    }

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

/// Shares of [`SECRETS`] with the test of their keys behind them.
fn open(engine: &mut dyn Engine, stored: &[u8]) -> Result<Vec<u64>> {
    let (share, key_test) = stored.split_at(2 * 8 * SECRETS.len());
    engine.test_stored_keys(key_test)?;
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

fn guarded(mut session: Session, guard: Guard) -> Session {
    session.guard = Arc::new(guard);
    session
}

/// The adversary, or a party without the remedy.
fn ablated(session: Session) -> Session {
    guarded(session, Guard::ablated())
}

/// A party whose sessions use a key at the same time.
fn not_alone(session: Session) -> Session {
    guarded(session, Guard::not_alone())
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
                let key_test = engine.key_test().unwrap();
                session.close();
                [share, key_test.to_vec()].concat()
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
    let tap = |inner| transcript.tap(inner, withheld);
    let body = {
        let transcript = transcript.clone();
        move |sessions: [Session; 2]| {
            let me = sessions[0].party();
            // Of party 0 only the first session may be without its guard: in another one the mark on the disk is what stops it. Both have
            // the key at once, which the lock would prevent.
            let takes_out = attack.place == Place::SameOne || attack.cut_off;
            let [first, second] = sessions;
            let (first, second) = match (me, attack.remedy || !takes_out) {
                (1, _) => (ablated(first), ablated(second)),
                (_, true) => (not_alone(first), not_alone(second)),
                (_, false) => (ablated(first), not_alone(second)),
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

/// Takes away what is kept beside a burned key: its mark, and the state of its session, which may say that its sums were open.
fn forget(path: &Path) {
    drop(fs::remove_file(path.with_file_name("mac.key.burned")));
    drop(fs::remove_file(path.with_file_name("mac.key.session")));
}

/// The number of the message with which party 1 gives its sums.
fn message_with_the_sums() -> usize {
    let (committee, transcript) = (Committee::new(), Transcript::default());
    let whole = Attack {
        place: Place::OpenedAfter,
        cut_off: false,
        remedy: true,
    };
    provoke(&committee, whole, &transcript, None);
    let all = transcript.0.lock().unwrap();
    all[0].len()
}

/// Party 1 makes a check fail, finds the key in its transcript, and opens a forged value.
fn run(attack: Attack) -> End {
    let withheld = attack.cut_off.then(message_with_the_sums);
    let (committee, transcript) = (Committee::new(), Transcript::default());
    let (failed, then) = provoke(&committee, attack, &transcript, withheld);
    if let Some(then) = then {
        return End { failed, then };
    }
    if !attack.remedy {
        forget(&committee.path()); // what its session left when it ended
    }
    let then = forge(&committee, transcript.key());
    End { failed, then }
}

/// What party 0 opens in a new session, in which party 1 forges with the key that it knows.
fn forge(committee: &Committee, key: u64) -> Result<Vec<u64>> {
    let (keys, path) = (committee.keys, committee.path());
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
    parties(2, |_, transport| transport, body).remove(0)
}

const FAILED: &str = "MAC check of opened values failed";
const CUT_OFF: &str = "a MAC check was cut off in the middle of it";

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

/// What party 0 opens in two sessions under one key. In the first one party 1 opens a stored value as another one, gets the sums of party 0
/// and withholds its own; while party 0 waits for them, party 1 forges in the second one. `before`: whether party 0 has opened the second
/// session before; `remedy`: whether a session has its key for itself.
fn forge_meanwhile(before: bool, remedy: bool) -> [Result<Vec<u64>>; 2] {
    let withheld = Some(message_with_the_sums());
    let (committee, transcript) = (Committee::new(), Transcript::default());
    let (keys, shares, path) = (committee.keys, committee.shares.clone(), committee.path());
    let tap = |inner| transcript.tap(inner, withheld);
    let body = {
        let transcript = transcript.clone();
        move |[first, second]: [Session; 2]| {
            let me = first.party();
            let file = (me == 0).then_some(path.as_path());
            let guard = |session| match (me, remedy) {
                (0, true) => session,
                (0, false) => not_alone(session),
                _ => ablated(session),
            };
            let (first, second) = (guard(first), guard(second));
            let in_first = || {
                let share = shifted(&shares[me], me as u64, 0);
                let opened = first
                    .set_mac_key(keys[me], file)
                    .and_then(|()| open(&mut *engine(&first)?, &share));
                if matches!(opened, Err(EngineError::InUse(_))) {
                    first.abort("refused");
                }
                opened
            };
            if me == 1 {
                let failed = in_first();
                if matches!(failed, Err(EngineError::Check { .. })) {
                    second.set_mac_key(keys[1], None).unwrap();
                    second.send(0, b"k").unwrap();
                    let forged = shifted(&shares[1], FORGED, transcript.key());
                    drop(engine(&second).and_then(|mut engine| open(&mut *engine, &forged)));
                    drop(second.receive(0, 1)); // until party 0 has opened what it opens
                }
                return [failed, Ok(Vec::new())];
            }
            if before {
                second.set_mac_key(keys[0], file).unwrap();
            }
            std::thread::scope(|scope| {
                let waits = scope.spawn(in_first);
                let in_second = second.receive(1, 1).and_then(|_| {
                    assert!(!waits.is_finished());
                    let state = fs::read(path.with_file_name("mac.key.session")).unwrap();
                    assert_eq!(state[0], b'r');
                    assert!(!path.with_file_name("mac.key.burned").exists());
                    second.set_mac_key(keys[0], file)?;
                    open(&mut *engine(&second)?, &shares[0])
                });
                match &in_second {
                    Ok(_) => second.send(1, b"d").unwrap(),
                    Err(error) => second.abort(&error.to_string()),
                }
                [waits.join().unwrap(), in_second]
            })
        }
    };
    two_sessions(tap, body).remove(0)
}

fn refused_as_in_use(opened: &Result<Vec<u64>>) {
    let Err(EngineError::InUse(text)) = opened else {
        panic!("{opened:?}");
    };
    let process = format!("this process ({})", std::process::id());
    for part in [&*process, "mac.key: ", "wait until that session has ended"] {
        assert!(text.contains(part) && !text.contains('\n'), "{text}");
    }
}

/// The session in which the check would have been held open does not come about.
#[test]
fn finding_02_blocked_session_that_was_open_while_the_sums_of_another_are() {
    let [first, second] = forge_meanwhile(true, true);
    refused_as_in_use(&first);
    assert!(second.is_err());
}

/// The session in which the key would have been used does not come about, and the other one burns the key.
#[test]
fn finding_02_blocked_session_opened_while_the_sums_of_another_are_open() {
    let [first, second] = forge_meanwhile(false, true);
    refused_as_in_use(&second);
    let text = first.unwrap_err().to_string();
    assert!(
        text.contains(CUT_OFF) && text.contains("is burned"),
        "{text}"
    );
}

#[test]
fn finding_02_ablated_session_that_was_open_while_the_sums_of_another_are() {
    let [_, second] = forge_meanwhile(true, false);
    assert_eq!(second.unwrap(), [1 + FORGED, 2, 3]);
}

#[test]
fn finding_02_ablated_session_opened_while_the_sums_of_another_are_open() {
    let [_, second] = forge_meanwhile(false, false);
    assert_eq!(second.unwrap(), [1 + FORGED, 2, 3]);
}

/// A key without a file is used by one session of this process at a time; any end of a session frees a key.
#[test]
fn a_key_is_free_when_its_session_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mac.key");
    let session = || -> Session {
        let mut mesh = local_mesh(1, Duration::from_secs(1));
        Session::new(Box::new(mesh.remove(0))).unwrap()
    };
    for (key, file) in [([1; 16], None), ([2; 16], Some(path.as_path()))] {
        let endings: [fn(Session) -> Option<Session>; 3] = [
            |session| {
                session.close();
                Some(session)
            },
            |session| {
                session.abort("lost");
                Some(session)
            },
            |_| None,
        ];
        for ending in endings {
            let (first, second) = (session(), session());
            first.set_mac_key(key, file).unwrap();
            first.set_mac_key(key, file).unwrap();
            let refused = second.set_mac_key(key, file);
            assert!(matches!(refused, Err(EngineError::InUse(_))), "{refused:?}");
            let ended = ending(first);
            second.set_mac_key(key, file).unwrap();
            if let Some(ended) = ended {
                let text = ended.set_mac_key([3; 16], None).unwrap_err().to_string();
                assert!(text.contains("this session has ended"), "{text}");
            }
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
        ends(&session);
        Ok(())
    };
    parties(2, |_, transport| transport, body).remove(0)
}

/// Sessions that break off without an open verdict tell nothing, and cost nothing, however many there are.
#[test]
fn sessions_that_break_off_leave_the_key_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mac.key");
    let endings: [fn(&Session); 3] = [Session::close, |session| session.abort("lost"), |_| ()];
    for ending in endings.iter().cycle().take(36) {
        session_that(&path, *ending).unwrap();
        MacKeyFile::new(&path).check().unwrap();
    }
}

/// The message of PRFs: after the seed of the session, what engine it is, and the base OTs.
const MESSAGE_OF_PRFS: usize = 4;

/// Tests one bit of party 0's key of elements a session: party 1 spoils one side of one level of a punctured PRF, which party 0 notices if
/// and only if the bit is set; and if it notices, it is killed before it has burned the key. Returns the bits of `tests` sessions, or the
/// error of the one in which the key was refused, with the bits so far.
fn one_bit_tests(key: [u8; 16], tests: usize, remedy: bool) -> (u64, Option<EngineError>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mac.key");
    fs::write(&path, key).unwrap();
    let k = Parameters::default().k();
    let first = KAPPA + BIT_MAC_BITS;
    let mut found = 0;
    for bit in 0..tests {
        let (tree, level) = ((first + bit) / k, (first + bit) % k);
        let place = tree * (32 * k + 32) + (k - 1 - level) * 32;
        let spoils = move |party, inner: Box<dyn Transport>| -> Box<dyn Transport> {
            match party {
                1 => {
                    let mut sent = 0;
                    let sends = move |_, payload: &[u8]| {
                        sent += 1;
                        let mut message = payload.to_vec();
                        if sent == MESSAGE_OF_PRFS {
                            message[place] ^= 1;
                        }
                        Some(message)
                    };
                    intercept(inner, sends, |_, _| ())
                }
                _ => inner,
            }
        };
        let path = path.clone();
        let body = move |session: Session| {
            if session.party() == 1 {
                drop(engine(&session));
                return None;
            }
            let session = guarded(session, Guard::killed(remedy));
            let opened = session
                .set_mac_key(key, Some(&path))
                .and_then(|()| engine(&session).map(drop));
            if opened.is_err() {
                session.abort("killed");
            }
            opened.err()
        };
        match parties(2, spoils, body).remove(0) {
            None => {}
            Some(EngineError::Check {
                check: Check::PuncturedPrfs,
                ..
            }) => found |= 1 << bit,
            Some(error) => return (found, Some(error)),
        }
    }
    (found, None)
}

const TESTED: [u8; 16] = [
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0b1010_0100,
    0b0110_0010,
    3,
    4,
    5,
    6,
    7,
    8,
];

/// The first bit that is not as guessed ends the key, though nobody came to burn it.
#[test]
fn finding_02_blocked_one_bit_tests_of_a_party_that_is_killed() {
    let (found, refused) = one_bit_tests(TESTED, 16, true);
    assert_eq!(found, 0b100);
    let text = refused.unwrap().to_string();
    assert!(text.contains(DIED) && text.contains("new keys"), "{text}");
}

#[test]
fn finding_02_ablated_one_bit_tests_of_a_party_that_is_killed() {
    let (found, refused) = one_bit_tests(TESTED, 16, false);
    assert!(refused.is_none());
    assert_eq!(found, 0b0110_0010_1010_0100);
}

const DIED: &str = "a MAC check was cut off: its session ended in the middle of it";
const FOLDER: &str = "KEYQUORUM_TEST_FOLDER";

/// Not a test: the process that is killed. Party 0 waits for the sums of party 1, which has those of party 0, and writes down the key that it
/// found.
#[test]
#[ignore = "the process that another test kills"]
fn process_that_has_its_sums_open() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    let keys = ["mac.key", "1.key"].map(|name| <[u8; 16]>::try_from(read(name)).unwrap());
    let shares = ["0.share", "1.share"].map(read);
    let transcript = Transcript::default();
    let withheld = Some(message_with_the_sums());
    let tap = |party, inner| -> Box<dyn Transport> {
        match party {
            1 => transcript.tap(inner, withheld),
            _ => inner,
        }
    };
    let body = {
        let transcript = transcript.clone();
        move |session: Session| {
            let me = session.party();
            if me == 0 {
                let path = folder.join("mac.key");
                session.set_mac_key(keys[0], Some(&path)).unwrap();
                drop(open(&mut *engine(&session).unwrap(), &shares[0]));
                return;
            }
            let session = ablated(session);
            session.set_mac_key(keys[1], None).unwrap();
            let share = shifted(&shares[1], 1, 0);
            open(&mut *engine(&session).unwrap(), &share).unwrap_err();
            fs::write(folder.join("found.new"), transcript.key().to_le_bytes()).unwrap();
            fs::rename(folder.join("found.new"), folder.join("found")).unwrap();
            std::thread::sleep(Duration::from_secs(60));
        }
    };
    parties(2, tap, body);
}

/// A committee whose party 0 was killed (SIGKILL) while it had its sums open, and the key that party 1 found.
fn killed_with_its_sums_open() -> (Committee, u64) {
    let committee = Committee::new();
    let folder = committee.folder.path();
    fs::write(folder.join("1.key"), committee.keys[1]).unwrap();
    for (party, share) in committee.shares.iter().enumerate() {
        fs::write(folder.join(format!("{party}.share")), share).unwrap();
    }
    let name = "session::tests::burned::process_that_has_its_sums_open";
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--ignored"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while !folder.join("found").exists() {
        assert!(Instant::now() < until && process.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(5));
    }
    let file = MacKeyFile::new(&committee.path());
    file.check().unwrap(); // it runs
    let text = file.hold().unwrap_err().to_string();
    let holder = format!("process {} uses this MAC key", process.id());
    assert!(text.contains(&holder), "{text}");
    process.kill().unwrap();
    assert!(!process.wait().unwrap().success());
    assert!(!committee.path().with_file_name("mac.key.burned").exists());
    let found = fs::read(folder.join("found")).unwrap();
    let found = u64::from_le_bytes(*found.first_chunk().unwrap());
    (committee, found)
}

/// The state that it leaves says so: whoever comes next burns the key.
#[test]
fn finding_02_blocked_killed_with_its_sums_open() {
    let (committee, found) = killed_with_its_sums_open();
    let text = forge(&committee, found).unwrap_err().to_string();
    assert!(text.contains(DIED) && text.contains("new keys"), "{text}");
    let text = MacKeyFile::new(&committee.path()).check().unwrap_err();
    assert!(text.to_string().contains(DIED), "{text}");
}

#[test]
fn finding_02_ablated_killed_with_its_sums_open() {
    let (committee, found) = killed_with_its_sums_open();
    forget(&committee.path());
    assert_eq!(forge(&committee, found).unwrap(), [1 + FORGED, 2, 3]);
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
    // The name of a mark beside this key is longer than a name may be.
    let long = folder.path().join("k".repeat(250));
    let key = [7; 16];
    fs::write(&long, key).unwrap();
    let told = MacKeyFile::new(&long).burn(FAILED);
    assert!(
        told.contains(".burned could not be written") && told.contains("was overwritten"),
        "{told}"
    );
    assert_ne!(fs::read(&long).unwrap(), key);
    let path = folder.path().join("mac.key");
    fs::rename(&long, &path).unwrap();
    assert!(!path.with_file_name("mac.key.burned").exists());
    let file = MacKeyFile::new(&path);
    for refused in [file.check(), file.hold().map(drop)] {
        let text = refused.unwrap_err().to_string();
        assert!(
            text.contains("no mark could be written") && text.contains("new committee"),
            "{text}"
        );
    }
}

/// An open verdict is synced, a good one is not. A device takes what is written and cannot be synced, which shows it.
#[cfg(target_os = "linux")]
#[test]
fn an_open_verdict_is_synced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mac.key");
    std::os::unix::fs::symlink("/dev/zero", path.with_file_name("mac.key.session")).unwrap();
    let mut hold = MacKeyFile::new(&path).hold().unwrap();
    hold.revealed(false).unwrap();
    let text = hold.revealed(true).unwrap_err().to_string();
    assert!(text.contains("mac.key.session: "), "{text}");
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
