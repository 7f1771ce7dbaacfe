//! Sessions that use one key at the same time: a forgery in one of them while the sums of the other are open.

use super::*;

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
                (0, false) => guarded(session, Guard::forgetful()),
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
                    assert_eq!(state[0], b'c');
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
fn failed_check_blocked_session_that_was_open_while_the_sums_of_another_are() {
    let [first, second] = forge_meanwhile(true, true);
    refused_as_in_use(&first);
    assert!(second.is_err());
}

/// The session in which the key would have been used does not come about, and the check of the other one is to be finished.
#[test]
fn failed_check_blocked_session_opened_while_the_sums_of_another_are_open() {
    let [first, second] = forge_meanwhile(false, true);
    refused_as_in_use(&second);
    assert!(
        matches!(first, Err(EngineError::Network { .. })),
        "{first:?}"
    );
}

#[test]
fn failed_check_ablated_session_that_was_open_while_the_sums_of_another_are() {
    let [_, second] = forge_meanwhile(true, false);
    assert_eq!(second.unwrap(), [1 + FORGED, 2, 3]);
}

#[test]
fn failed_check_ablated_session_opened_while_the_sums_of_another_are_open() {
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
