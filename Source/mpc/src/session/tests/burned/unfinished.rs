//! A party that dies at any message of a computation with MACs: what is open then, and that the next session finishes it, with the same key.

mod equivocation;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::ended::DIED;
use super::*;
use crate::mac_key::{MOST_CUT_OFFS, Wear};

const FILES: [&str; 4] = [
    "mac.key",
    "mac.key.session",
    "mac.key.checks",
    "mac.key.burned",
];

/// Messages, sent or received, before which party 0 has said and heard that no check is unfinished, and has noted none.
const MESSAGES_TO_THE_LINKS: usize = 9;

/// What is on the disk beside a party's key: what is left of it if it is killed then.
type Disk = Vec<Option<Vec<u8>>>;

/// Parties with a key file and shares each.
struct Kept {
    folders: Vec<tempfile::TempDir>,
    shares: Arc<Vec<Vec<u8>>>,
}

impl Kept {
    fn new(n: usize) -> Self {
        let folders: Vec<_> = (0..n).map(|_| tempfile::tempdir().unwrap()).collect();
        let mut kept = Self {
            folders,
            shares: Arc::default(),
        };
        for folder in &kept.folders {
            let mut key = [0; 16];
            os_random(&mut key).unwrap();
            fs::write(folder.path().join("mac.key"), key).unwrap();
        }
        let shares = kept.session(None, |session| {
            let mut engine = engine(session)?;
            let given = (session.party() == 0).then_some(&SECRETS[..]);
            let x = engine.input(0, SECRETS.len(), given)?;
            Ok([engine.export(&x)?, engine.origin()?.to_vec()].concat())
        });
        kept.shares = Arc::new(shares.into_iter().map(Result::unwrap).collect());
        kept
    }

    fn path(&self, party: usize) -> PathBuf {
        self.folders[party].path().join("mac.key")
    }

    fn disk(folder: &Path) -> Disk {
        FILES
            .iter()
            .map(|name| fs::read(folder.join(name)).ok())
            .collect()
    }

    /// What parties get of a session under their keys. `dies`: a party, and the number of the message, sent or received, at which it is killed.
    fn session<T: Send + 'static>(
        &self,
        dies: Option<(usize, usize)>,
        body: impl Fn(&Session) -> Result<T> + Clone + Send + 'static,
    ) -> Vec<Result<T>> {
        let paths: Vec<_> = (0..self.folders.len())
            .map(|party| self.path(party))
            .collect();
        let left: Arc<Mutex<Option<Disk>>> = Arc::default();
        let wrap = {
            let (left, paths) = (Arc::clone(&left), paths.clone());
            move |party: usize, inner: Box<dyn Transport>| -> Box<dyn Transport> {
                let Some((_, at)) = dies.filter(|(victim, _)| *victim == party) else {
                    return inner;
                };
                let count = Arc::new(AtomicUsize::new(0));
                let folder = paths[party].parent().unwrap().to_owned();
                let event = move |left: &Mutex<Option<Disk>>| {
                    if count.fetch_add(1, Ordering::SeqCst) + 1 == at {
                        *left.lock().unwrap() = Some(Self::disk(&folder));
                        panic!("killed");
                    }
                };
                let (sends, takes) = (event.clone(), event);
                let (at_send, at_take) = (Arc::clone(&left), Arc::clone(&left));
                intercept_all(
                    inner,
                    move |_, message: &[u8]| {
                        sends(&at_send);
                        Some(message.to_vec())
                    },
                    move |_, _: &[u8]| takes(&at_take),
                )
            }
        };
        let run = {
            let paths = paths.clone();
            move |session: &Session| {
                let key = fs::read(&paths[session.party()]).unwrap();
                let key = <[u8; 16]>::try_from(key.as_slice()).unwrap();
                session.set_mac_key(key, Some(&paths[session.party()]))?;
                body(session)
            }
        };
        let wait = Duration::from_secs(60);
        let threads: Vec<_> = local_mesh(self.folders.len(), wait)
            .into_iter()
            .enumerate()
            .map(|(party, transport)| {
                let (transport, run) = (wrap(party, Box::new(transport)), run.clone());
                std::thread::spawn(move || {
                    let opened = catch_unwind(AssertUnwindSafe(|| {
                        let session = Session::new(transport)?;
                        let result = run(&session);
                        match &result {
                            Ok(_) => session.close(),
                            Err(error) => session.abort(&error.to_string()),
                        }
                        result
                    }));
                    opened.unwrap_or_else(|_| Err(EngineError::usage("killed")))
                })
            })
            .collect();
        let results = threads.into_iter().map(|t| t.join().unwrap()).collect();
        // What the panic still wrote was not written by who is killed.
        if let (Some(disk), Some((party, _))) = (left.lock().unwrap().take(), dies) {
            for (name, content) in FILES.iter().zip(disk) {
                let path = self.path(party).with_file_name(name);
                match content {
                    Some(content) => fs::write(path, content).unwrap(),
                    None => drop(fs::remove_file(path)),
                }
            }
        }
        results
    }

    fn wear(&self, party: usize) -> Wear {
        MacKeyFile::new(&self.path(party)).wear().unwrap()
    }

    /// What all parties open of the shares that were stored.
    fn opened(&self, dies: Option<(usize, usize)>, shift: [u64; 2]) -> Vec<Result<Vec<u64>>> {
        let shares = Arc::clone(&self.shares);
        self.session(dies, move |session| {
            let me = session.party();
            let shift = shift.get(me).copied().unwrap_or(0);
            open(&mut *engine(session)?, &shifted(&shares[me], shift, 0))
        })
    }
}

/// A key outlives the death of a party at every message of checks of MACs, of sums and of stored keys, after which every party has the same key and the right
/// values. Returns what the party that died had open: a challenge, unfinished checks.
fn dies_at_every_message(n: usize, step: usize) -> BTreeSet<(bool, bool)> {
    let kept = Kept::new(n);
    let mut seen = BTreeSet::new();
    let mut cut_offs = 0;
    for at in (1..).step_by(step) {
        let results = kept.opened(Some((0, at)), [0; 2]);
        if results[0].as_ref().is_ok_and(|opened| *opened == [1, 2, 3]) {
            break;
        }
        let wear = kept.wear(0);
        seen.insert((wear.cut_offs > cut_offs, wear.unfinished > 0));
        cut_offs = wear.cut_offs;
        for opened in kept.opened(None, [0; 2]) {
            assert_eq!(opened.unwrap(), [1, 2, 3], "after a death at message {at}");
        }
        for party in 0..n {
            let unfinished = kept.wear(party).unfinished;
            assert_eq!(unfinished, 0, "message {at}, party {party}");
        }
        assert_eq!(kept.wear(0).cut_offs, cut_offs);
    }
    seen
}

#[test]
fn crash_guess_blocked_a_death_at_every_message_burns_no_key() {
    let seen = dies_at_every_message(2, 1);
    for open in [(false, false), (true, false), (true, true)] {
        assert!(seen.contains(&open), "{seen:?}");
    }
}

#[test]
fn crash_guess_blocked_a_death_among_three_parties_burns_no_key() {
    dies_at_every_message(3, 7);
}

/// A host that loses its power forgets that a check was right, which is not synced. By then the next session may have begun, in which no party had an
/// unfinished check.
#[test]
fn crash_guess_blocked_a_host_that_lost_its_power_asks_again() {
    let kept = Kept::new(2);
    let path = kept.path(0).with_file_name("mac.key.checks");
    let mut synced = fs::read(&path).unwrap();
    let (bytes, slots) = (synced.len(), 64);
    for slot in 1..=slots {
        synced[slot * bytes / slots - 1] = 0;
    }
    // The seed of the session, what engine it is, and what became of earlier checks.
    let results = kept.opened(Some((0, MESSAGES_TO_THE_LINKS)), [0; 2]);
    assert!(results.iter().all(Result::is_err), "{results:?}");
    fs::write(&path, synced).unwrap();
    assert!(kept.wear(0).unfinished > 0);
    for opened in kept.opened(None, [0; 2]) {
        assert_eq!(opened.unwrap(), [1, 2, 3]);
    }
    assert_eq!(kept.wear(0).unfinished, 0);
}

/// Whoever cheats in a check, and is killed or kills in the middle of it, is found by the session that finishes it.
#[test]
fn crash_guess_blocked_a_check_that_fails_when_it_is_finished() {
    let mut failed = 0;
    for at in (1..).step_by(1) {
        let kept = Kept::new(2);
        let results = kept.opened(Some((0, at)), [0, 1]);
        let killed = matches!(&results[0], Err(EngineError::Usage(text)) if text == "killed");
        if !killed {
            assert!(
                matches!(results[0], Err(EngineError::Check { .. })),
                "{:?}",
                results[0]
            );
            break;
        }
        if kept.wear(0).unfinished == 0 {
            continue;
        }
        // Who cheats does not mind that the check fails for it. If it fails there first, its end may come before our own check: then once more.
        let mut tries = (0..10).map(|_| {
            drop(fs::remove_file(
                kept.path(1).with_file_name("mac.key.burned"),
            ));
            kept.opened(None, [0; 2]).remove(0)
        });
        let then = tries
            .find(|then| !matches!(then, Err(EngineError::Network { .. })))
            .unwrap();
        match then {
            Err(EngineError::Check {
                check: Check::Interrupted,
                text,
            }) => {
                assert!(
                    text.contains("cut off failed") && text.contains("is burned"),
                    "{text}"
                );
                assert!(MacKeyFile::new(&kept.path(0)).check().is_err());
                failed += 1;
            }
            // The test of stored keys was right.
            then => assert_eq!(then.unwrap(), [1, 2, 3]),
        }
    }
    assert!(failed > 0);
}

/// Without the note of it nobody knows that a check was cut off, and what it revealed is used: `failed_check_ablated_killed_with_its_sums_open` forges so.
#[test]
fn crash_guess_ablated_a_check_that_nobody_finishes() {
    let (mut unnoticed, mut at) = (0, 1);
    loop {
        let kept = Kept::new(2);
        let results = kept.opened(Some((0, at)), [0, 1]);
        if !matches!(&results[0], Err(EngineError::Usage(text)) if text == "killed") {
            break;
        }
        if kept.wear(0).unfinished > 0 {
            (0..2).for_each(|party| forget(&kept.path(party)));
            unnoticed += usize::from(kept.opened(None, [0; 2]).iter().all(Result::is_ok));
        }
        at += 1;
    }
    assert!(unnoticed > 0);
}

/// A state file with a challenge that was cut off, and so many before.
fn left(path: &Path, cut_offs: u32) {
    fs::write(path, [7; 16]).unwrap();
    let line = format!("c{:>10}{cut_offs:>10}\n", 1);
    fs::write(path.with_file_name("mac.key.session"), line).unwrap();
}

#[test]
fn crash_guess_blocked_refused_challenges_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mac.key");
    left(&path, 5);
    let file = MacKeyFile::new(&path);
    assert_eq!(file.wear().unwrap().cut_offs, 6);
    for _ in 0..2 {
        let hold = file.hold().unwrap();
        assert_eq!(hold.cut_offs(), 6);
        hold.end();
    }
    // At the limit of what the budget has room for the key burns.
    left(&path, MOST_CUT_OFFS - 1);
    let text = file.hold().unwrap_err().to_string();
    assert!(text.contains("challenges were cut off"), "{text}");
    assert!(file.check().is_err());
}

/// A file of an earlier build has no count.
#[test]
fn a_state_of_an_earlier_build_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mac.key");
    fs::write(&path, [7; 16]).unwrap();
    fs::write(path.with_file_name("mac.key.session"), "o       123\n").unwrap();
    assert_eq!(MacKeyFile::new(&path).hold().unwrap().cut_offs(), 0);
    fs::write(path.with_file_name("mac.key.session"), "r       123\n").unwrap();
    let text = MacKeyFile::new(&path).check().unwrap_err().to_string();
    assert!(text.contains(DIED), "{text}");
}
