//! How a session ended, and what is kept of it beside the key: after lost peers, kills, and marks that cannot be written.

use super::*;

/// Opens an engine with MACs in a session of which party 0 has its key in a file, and ends it so.
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

/// Sessions that break off without an open verdict reveal nothing, and cost nothing, however many there are.
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

/// The message of PRFs: after the seed of the session, what engine it is, what became of earlier checks, and the base OTs.
const MESSAGE_OF_PRFS: usize = 5;

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
        let at = tree * (32 * k + 32) + (k - 1 - level) * 32;
        let spoils = move |party, inner: Box<dyn Transport>| -> Box<dyn Transport> {
            match party {
                1 => {
                    let mut sent = 0;
                    let sends = move |_, payload: &[u8]| {
                        sent += 1;
                        let mut message = payload.to_vec();
                        if sent == MESSAGE_OF_PRFS {
                            message[at] ^= 1;
                        }
                        Some(message)
                    };
                    intercept_all(inner, sends, |_, _| ())
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

/// A key of which bytes 8 and 9 are tested. `last`: tests run at the same time, and one session at a time may use a key.
const fn tested(last: u8) -> [u8; 16] {
    [
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
        last,
    ]
}

/// The first bit that is not as guessed ends the key, though nobody came to burn it.
#[test]
fn failed_check_blocked_one_bit_tests_of_a_party_that_is_killed() {
    let (found, refused) = one_bit_tests(tested(8), 16, true);
    assert_eq!(found, 0b100, "{refused:?}");
    let text = refused.unwrap().to_string();
    assert!(text.contains(DIED) && text.contains("new keys"), "{text}");
}

#[test]
fn failed_check_ablated_one_bit_tests_of_a_party_that_is_killed() {
    let (found, refused) = one_bit_tests(tested(9), 16, false);
    assert!(refused.is_none());
    assert_eq!(found, 0b0110_0010_1010_0100);
}

pub(super) const DIED: &str = "a MAC check was cut off: its session ended in the middle of it";
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
    let name = "session::tests::burned::ended::process_that_has_its_sums_open";
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

/// What it leaves says so: the key is not used before the check is finished, and who cheated in it cannot finish it to its advantage.
#[test]
fn failed_check_blocked_killed_with_its_sums_open() {
    let (committee, found) = killed_with_its_sums_open();
    for _ in 0..2 {
        let text = forge(&committee, found).unwrap_err().to_string();
        assert!(
            text.contains(UNFINISHED) && text.contains("new keys"),
            "{text}"
        );
        let wear = MacKeyFile::new(&committee.path()).wear().unwrap();
        assert!(wear.unfinished >= 1 && wear.cut_offs == 1, "{wear:?}");
    }
}

#[test]
fn failed_check_ablated_killed_with_its_sums_open() {
    let (committee, found) = killed_with_its_sums_open();
    forget(&committee.path());
    assert_eq!(forge(&committee, found).unwrap(), [1 + FORGED, 2, 3]);
}

/// Where no mark can be written the key itself is made unusable, and what cannot be done at all is said.
#[test]
fn failed_check_blocked_mark_that_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = MacKeyFile::new(&folder.path().join("gone").join("mac.key"));
    let done = file.burn(FAILED);
    assert!(
        done.contains("neither could") && done.contains("by hand"),
        "{done}"
    );
    // The name of a mark beside this key is longer than a name may be.
    let long = folder.path().join("k".repeat(250));
    let key = [7; 16];
    fs::write(&long, key).unwrap();
    let done = MacKeyFile::new(&long).burn(FAILED);
    assert!(
        done.contains(".burned could not be written") && done.contains("was overwritten"),
        "{done}"
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

/// What must outlive the host is synced. A device takes what is written and cannot be synced, which shows it.
#[cfg(target_os = "linux")]
#[test]
fn an_open_verdict_is_synced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mac.key");
    std::os::unix::fs::symlink("/dev/zero", path.with_file_name("mac.key.session")).unwrap();
    let mut hold = MacKeyFile::new(&path).hold().unwrap();
    hold.note(Open::Nothing, false).unwrap();
    let text = hold.note(Open::Sums, true).unwrap_err().to_string();
    assert!(text.contains("mac.key.session: "), "{text}");
}

/// A damaged mark is a mark.
#[test]
fn a_mark_says_when_and_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mac.key");
    let file = MacKeyFile::new(&path);
    let done = file.burn("first\ncause");
    assert!(done.contains("is burned"), "{done}");
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
