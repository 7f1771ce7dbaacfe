//! What a failed MAC check reveals to the adversary, and what it could do with it under the same key.
//!
//! Party 1 opens a stored value as another one. The check that fails reveals the honest party's sum, which is the error times the MAC
//! key: with the key party 1 makes a share of any value it likes, with the MAC that belongs to it. It need not even let the check end:
//! who has got the sums of the others can break off before it gives its own.

mod concurrent;
mod ended;
mod transcript;
mod unfinished;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use keyquorum_math::DomainKind;
use keyquorum_net::{Transport, local_mesh};
use keyquorum_ot::{BIT_MAC_BITS, KAPPA, Parameters};

use self::transcript::Transcript;
use super::parties;
use crate::engine::Engine;
use crate::error::{Check, EngineError, Result};
use crate::guard::Guard;
use crate::intercept::intercept_all;
use crate::mac_key::{MacKeyFile, Open};
use crate::session::{EngineOptions, Session, os_random};

const PRIME: u64 = 1_152_921_504_606_584_833;
const SECRETS: [i64; 3] = [1, 2, 3];
/// What the adversary adds to the first value when it forges.
const FORGED: u64 = 41;

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
    let (share, origin) = stored.split_at(2 * 8 * SECRETS.len());
    engine.check_origin(origin)?;
    let value = engine.import(share, SECRETS.len())?;
    let opened = engine.open(&value)?;
    engine.read(&opened)
}

/// The session in which the adversary uses the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Later {
    /// That in which the check failed, in a new engine.
    SameOne,
    /// Another one, which was open before.
    OpenBefore,
    /// One that is opened afterwards.
    OpenedAfter,
}

#[derive(Clone, Copy)]
struct Attack {
    session: Later,
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
                let origin = engine.origin().unwrap();
                session.close();
                [share, origin.to_vec()].concat()
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
            let takes_out = attack.session == Later::SameOne || attack.cut_off;
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
            let then = match attack.session {
                Later::OpenedAfter => None,
                Later::OpenBefore => Some(open(&mut *other, &forged)),
                Later::SameOne => {
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

/// Takes away what is kept beside a key: its mark, the state of its session, and the checks that are not finished.
fn forget(path: &Path) {
    drop(fs::remove_file(path.with_file_name("mac.key.burned")));
    drop(fs::remove_file(path.with_file_name("mac.key.session")));
    drop(fs::remove_file(path.with_file_name("mac.key.checks")));
}

/// The number of the message with which party 1 gives its sums.
fn message_with_the_sums() -> usize {
    let (committee, transcript) = (Committee::new(), Transcript::default());
    let whole = Attack {
        session: Later::OpenedAfter,
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
/// What party 0 says while party 1 does not open the sums of a check that was cut off.
const UNFINISHED: &str = "a MAC check was cut off, and party 1 knows nothing of it";

/// The check failed, and what came then was refused in one line with cause and cure.
fn blocked(session: Later) {
    let end = run(Attack {
        session,
        cut_off: false,
        remedy: true,
    });
    let EngineError::Check { check, text } = &end.failed else {
        panic!("{}", end.failed);
    };
    assert_eq!(*check, Check::ElementMacs);
    assert!(text.contains("is burned: make a new committee"), "{text}");
    let text = match &end.then {
        Ok(opened) => panic!("a forged value was opened: {opened:?}"),
        Err(EngineError::Burned(text)) => text,
        Err(error) => panic!("{error}"),
    };
    for part in [FAILED, "make a new committee and new keys"] {
        assert!(text.contains(part) && !text.contains('\n'), "{text}");
    }
}

/// Without the remedy party 0 accepts what party 1 made up.
fn forged(session: Later, cut_off: bool) {
    let end = run(Attack {
        session,
        cut_off,
        remedy: false,
    });
    assert_eq!(end.then.unwrap(), [1 + FORGED, 2, 3]);
}

#[test]
fn failed_check_blocked_new_engine_of_the_session() {
    blocked(Later::SameOne);
}

#[test]
fn failed_check_blocked_other_session_under_the_key() {
    blocked(Later::OpenBefore);
}

#[test]
fn failed_check_blocked_new_session_under_the_key() {
    blocked(Later::OpenedAfter);
}

#[test]
fn failed_check_blocked_check_cut_off_by_who_has_the_sums() {
    let end = run(Attack {
        session: Later::OpenedAfter,
        cut_off: true,
        remedy: true,
    });
    assert!(
        matches!(end.failed, EngineError::Network { .. }),
        "{}",
        end.failed
    );
    // The key is not used before the check is finished, which party 1 cannot do to its advantage.
    let text = end.then.unwrap_err().to_string();
    for part in [UNFINISHED, "make a new committee and new keys"] {
        assert!(text.contains(part) && !text.contains('\n'), "{text}");
    }
}

#[test]
fn failed_check_ablated_new_engine_of_the_session() {
    forged(Later::SameOne, false);
}

#[test]
fn failed_check_ablated_other_session_under_the_key() {
    forged(Later::OpenBefore, false);
}

#[test]
fn failed_check_ablated_new_session_under_the_key() {
    forged(Later::OpenedAfter, false);
}

#[test]
fn failed_check_ablated_check_cut_off_by_who_has_the_sums() {
    forged(Later::OpenedAfter, true);
}

/// After a failed check in a subgroup the whole session is refused, and after one in the session its subgroups.
#[test]
fn failed_check_blocked_subgroups_and_their_session() {
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
