//! The state of a MAC key, beside its file: whether it is burned, and what the session that uses it is doing.
//!
//! Beside `mac.key` there are `mac.key.burned`, one line of JSON, made by the first check that failed, `mac.key.checks`, and `mac.key.session`: a state of
//! one byte, the number of a process, and how often a challenge was cut off. A session locks the latter from [`MacKeyFile::hold`] until it ends. So one session at a time
//! computes under a key: what one of them reveals in a check that is still open cannot be used in another one. A second session is refused
//! at once, and does not wait: parties that wait for each other's sessions would wait for ever.
//!
//! # What an abort reveals
//!
//! Outside of checks an honest party does nothing with its keys but add and multiply: words of products and payloads are found invalid by their encoding alone, and what is sent hangs on
//! shares, pads and commitments with fresh nonces, not on keys. An adversary sees a party that is gone; it has caused that, and learns no verdict. So sessions that end there leave a key as it
//! was, however many there are: lost peers, refusals and kills.
//!
//! A *verdict* is something that depends on the secrets of an OT sender (Δ of a link, the MAC keys), and that others see the outcome of. There are three kinds:
//! * *The sums of a MAC check.* A wrong opening makes them the error times the key. All parties are committed to them before they are opened. Our opening is on the disk before we commit, and the
//!   commitments of all before we open (`checks`). So whoever dies afterwards does not change the verdict, and the next session finds it out before it does anything under the key
//!   (`session/unfinished.rs` of `mpc`). A guess that fails burns the key then: a guess of b bits is right with probability 2^-b, and there is no other one.
//! * *Local checks*: that of punctured PRFs in the set-up of a link (a peer that spoils one side of one level passes if and only if one bit of the key is as it guessed), and that of the OT
//!   extension (a peer whose choices differ between rows passes if and only if bits of the key are as it guessed). Others see the outcome by what we send next, or by our silence. Before either, the verdict is on the disk,
//!   good or bad, written in the same way: a party that is killed before has shown nothing, and one that is killed later has the bad one on its disk (`r`). So a guess that fails burns the key. Who kills a
//!   party at a time of its choice sees of a good verdict that is not written as much as of a bad one.
//! * *A program of another framework* that computes under the key, from its start to its end, and the tests of lifted values: we do not see their checks (`r`).
//!
//! *Challenges* are the tosses that decide whether something wrong is noticed (the order of tests, the subsets, the factors of a MAC check), from before our part of one is opened: who sees the result first may
//! refuse a bad one, and try again in another session. Nothing depends on a key until then. So such a session costs an attempt, not the key: it is `c` on the disk meanwhile, the session that ends there, by whatever
//! way, is counted, and the [budget](crate::budget) has room for [`MOST_CUT_OFFS`].
//!
//! A power cut: what must outlive the host is synced before anything is sent. That a check was right is not, so it may be finished twice.

pub mod checks;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use self::checks::{Checks, Commitment, Record};
use crate::error::{EngineError, Result};

/// The content of a key file if no mark could be written beside it: as long as a key, so that it fits on a full disk.
const UNUSABLE: &[u8; 16] = b"KeyQuorum-burned";

/// The cure for a burned key.
pub(crate) const CURE: &str = "make a new committee and new keys";

/// Why a key is burned under which a session ended with an open verdict.
pub(crate) const ENDED: &str = "a MAC check was cut off: its session ended in the middle of it";

/// Challenges that may be cut off under a key: for so many the [budget](crate::budget) has room.
pub const MOST_CUT_OFFS: u32 = 1 << 12;

/// Why a key is burned under which more were.
pub(crate) fn worn_out() -> String {
    format!("{MOST_CUT_OFFS} challenges were cut off under it: each is an attempt for who cheats")
}

/// What a session has open that it may not survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Open {
    /// Nothing.
    Nothing,
    /// The toss that decides whether a deviation is noticed.
    Challenge,
    /// Sums that show a key, if something was opened wrongly; or a check that failed.
    Sums,
}

impl Open {
    const fn byte(self) -> u8 {
        match self {
            Self::Nothing => b'o',
            Self::Challenge => b'c',
            Self::Sums => b'r',
        }
    }
}

/// What is kept of the session that uses a key, or of the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kept {
    open: Open,
    cut_offs: u32,
}

/// What became of earlier sessions under a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wear {
    /// Challenges that were cut off, of [`MOST_CUT_OFFS`].
    pub cut_offs: u32,
    /// Checks that the next session finishes.
    pub unfinished: usize,
}

/// The file of a MAC key.
#[derive(Clone, Debug)]
pub struct MacKeyFile {
    path: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Burned {
    check: String,
    date: String,
}

impl MacKeyFile {
    /// The key at `path`, which need not be there.
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    fn beside(&self, ending: &str) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(ending);
        path.into()
    }

    fn folder(&self) -> &Path {
        folder_of(&self.path)
    }

    fn unreadable(&self, error: &std::io::Error) -> EngineError {
        EngineError::Store(format!(
            "{}: cannot tell whether this MAC key is burned ({error}): see to the folder, then try again",
            self.path.display()
        ))
    }

    /// Refuses a key that a failed check has burned.
    ///
    /// # Errors
    /// [`EngineError::Burned`], or [`EngineError::Store`] if that is unknown.
    pub fn refuse_burned(&self) -> Result<()> {
        let refused = |how: String| {
            Err(EngineError::Burned(format!(
                "{}: this MAC key is burned ({how}): others may know it, and nothing that was made under it can be used: {CURE}",
                self.path.display()
            )))
        };
        match fs::read(self.beside(".burned")) {
            Ok(line) => {
                return refused(match serde_json::from_slice::<Burned>(&line) {
                    Ok(mark) => format!("{}, {}", one_line(&mark.check), one_line(&mark.date)),
                    Err(_) => "a MAC check failed; its mark is damaged".to_owned(),
                });
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(self.unreadable(&error)),
        }
        match fs::read(&self.path) {
            Ok(key) if key == UNUSABLE => {
                refused("a MAC check failed, of which no mark could be written".to_owned())
            }
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.unreadable(&error)),
            _ => Ok(()),
        }
    }

    /// Refuses a key that is burned, and burns one whose last session died with an open verdict. A session may use the key meanwhile.
    ///
    /// # Errors
    /// As [`MacKeyFile::refuse_burned`].
    pub fn check(&self) -> Result<()> {
        self.refuse_burned()?;
        let mut file = match File::open(self.beside(".session")) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            file => file.map_err(|e| self.unreadable(&e))?,
        };
        if kept(&mut file).map_err(|e| self.unreadable(&e))?.open != Open::Sums {
            return Ok(());
        }
        match file.try_lock() {
            Ok(()) => self.burn_if_left_open(&mut file).map(drop),
            Err(TryLockError::WouldBlock) => Ok(()), // it runs
            Err(TryLockError::Error(error)) => Err(self.unreadable(&error)),
        }
    }

    /// Burns the key if the last session, which does not run any more, left its sums open. Returns the challenges that were cut off, its own included.
    fn burn_if_left_open(&self, file: &mut File) -> Result<u32> {
        let Kept { open, cut_offs } = kept(file).map_err(|e| self.unreadable(&e))?;
        let cut_offs = cut_offs.saturating_add(u32::from(open == Open::Challenge));
        let cause = match open {
            Open::Sums => ENDED.to_owned(),
            _ if cut_offs >= MOST_CUT_OFFS => worn_out(),
            _ => return Ok(cut_offs),
        };
        let done = self.burn(&cause);
        self.refuse_burned()?;
        Err(EngineError::Burned(format!("{cause}: {done}")))
    }

    /// What became of earlier sessions under this key.
    ///
    /// # Errors
    /// As [`MacKeyFile::check`].
    pub fn wear(&self) -> Result<Wear> {
        self.check()?;
        let mut file = match File::open(self.beside(".session")) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Wear::default()),
            file => file.map_err(|e| self.unreadable(&e))?,
        };
        let Kept { open, cut_offs } = kept(&mut file).map_err(|e| self.unreadable(&e))?;
        let unfinished = Checks::unfinished(&self.beside(".checks"));
        let unfinished = unfinished.map_err(|e| self.unreadable(&e))?;
        let open = open == Open::Challenge;
        // They are those of a session that runs, if it has the lock. The lock is tried if there are any, so as to be in nobody's way.
        if (!open && unfinished == 0) || file.try_lock_shared().is_err() {
            return Ok(Wear {
                cut_offs,
                unfinished: 0,
            });
        }
        Ok(Wear {
            cut_offs: cut_offs.saturating_add(u32::from(open)),
            unfinished,
        })
    }

    /// Marks the key as burned by this check, on the disk; returns what was done, for the error message.
    pub fn burn(&self, check: &str) -> String {
        let path = self.path.display();
        let written = match self.mark(check) {
            Ok(()) => return format!("the MAC key {path} is burned: {CURE}"),
            Err(error) => error,
        };
        let mark = self.beside(".burned");
        let mark = mark.display();
        match overwrite(&self.path) {
            Ok(()) => format!(
                "{mark} could not be written ({written}), so that the MAC key {path} was overwritten: {CURE}"
            ),
            Err(error) => format!(
                "neither could {mark} be written ({written}), nor {path} be overwritten ({error}): delete the MAC key by hand, then {CURE}"
            ),
        }
    }

    fn mark(&self, check: &str) -> std::io::Result<()> {
        let mark = Burned {
            check: one_line(check),
            date: now(),
        };
        let mut line = serde_json::to_vec(&mark)?;
        line.push(b'\n');
        let mut file = match create(&self.beside(".burned")) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(()), // the first cause stays
            file => file?,
        };
        file.write_all(&line)?;
        file.sync_all()?;
        sync(self.folder())
    }

    /// Takes the key for a session, which alone may use it as long as the [`Hold`] lives.
    ///
    /// # Errors
    /// [`EngineError::Burned`]; [`EngineError::InUse`] while another session has it; [`EngineError::Store`] if that cannot be noted.
    pub fn hold(&self) -> Result<Hold> {
        self.take(true)
    }

    /// [`MacKeyFile::hold`]. Not `exclusive`: also if another session has it, for the tests that show what that is good for.
    pub fn take(&self, exclusive: bool) -> Result<Hold> {
        self.refuse_burned()?;
        let path = self.beside(".session");
        let failed = |error: std::io::Error| {
            EngineError::Store(format!(
                "{}: cannot note that a session uses the MAC key ({error}): see to the disk, then try again",
                path.display()
            ))
        };
        let mut file = self.session_file(&path).map_err(failed)?;
        let mut cut_offs = kept(&mut file).map_err(failed)?.cut_offs;
        if exclusive {
            cut_offs = match file.try_lock() {
                Ok(()) => self.burn_if_left_open(&mut file)?,
                Err(TryLockError::WouldBlock) => return Err(self.in_use(&mut file)),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            };
            // Of a session that ended since.
            self.refuse_burned()?;
        }
        let checks = Checks::load(&self.beside(".checks")).map_err(failed)?;
        sync(self.folder()).map_err(failed)?;
        let mut hold = Hold {
            file,
            path,
            cut_offs,
            checks,
        };
        hold.note(Open::Nothing, false)?;
        Ok(hold)
    }

    /// The file of states, which is there on the disk when this returns.
    fn session_file(&self, path: &Path) -> std::io::Result<File> {
        match create(path) {
            Ok(_) => sync(self.folder())?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        OpenOptions::new().read(true).write(true).open(path)
    }

    fn in_use(&self, file: &mut File) -> EngineError {
        let mut line = String::new();
        let read = file
            .seek(SeekFrom::Start(1))
            .and_then(|_| file.take(10).read_to_string(&mut line));
        let process = line.trim().parse().ok().filter(|_| read.is_ok());
        in_use(&format!("{}: ", self.path.display()), process)
    }
}

/// The refusal of a second session under one key, which another session of `process` uses.
pub(crate) fn in_use(prefix: &str, process: Option<u32>) -> EngineError {
    let holder = match process {
        Some(id) if id == std::process::id() => format!("this process ({id})"),
        Some(id) => format!("process {id}"),
        None => "another process".to_owned(),
    };
    EngineError::InUse(format!(
        "{prefix}another session of {holder} uses this MAC key, which one session at a time may: wait until that session has ended, then try again"
    ))
}

/// The session that has a key.
#[derive(Debug)]
pub struct Hold {
    file: File,
    path: PathBuf,
    cut_offs: u32,
    checks: Checks,
}

impl Hold {
    fn failed(&self, error: &std::io::Error) -> EngineError {
        EngineError::Store(format!("{}: {error}", self.path.display()))
    }

    /// Notes our side of a check, before we commit to it, and with the commitments of all before we open it. On the disk when this returns.
    ///
    /// # Errors
    /// As [`Hold::note`].
    pub(crate) fn note_check(&mut self, record: Record) -> Result<()> {
        let noted = self.checks.note(record);
        noted.map_err(|error| self.failed(&error))
    }

    /// Notes that a check was right.
    ///
    /// # Errors
    /// As [`Hold::note`].
    pub(crate) fn finish_check(&mut self, ours: &Commitment) -> Result<()> {
        let noted = self.checks.finish(ours);
        noted.map_err(|error| self.failed(&error))
    }

    /// Forgets the checks among so many parties that we have opened to nobody, as no party has an unfinished one.
    ///
    /// # Errors
    /// As [`Hold::note`].
    pub fn forget_checks(&mut self, parties: usize) -> Result<()> {
        let done = self.checks.forget(parties);
        done.map_err(|error| self.failed(&error))
    }

    /// What is noted of checks.
    pub fn checks(&self) -> &Checks {
        &self.checks
    }

    /// Challenges that were cut off under the key.
    pub fn cut_offs(&self) -> u32 {
        self.cut_offs
    }

    /// Notes what is open. `synced`: it is on the disk when this returns, which costs 0.4 ms on ext4 on a virtual disk (the median of 100; 2 to 8 ms while others write
    /// to the disk), and 1 µs on tmpfs. It takes as long whatever is noted: the whole line is written.
    ///
    /// # Errors
    /// [`EngineError::Store`] if it cannot be noted.
    pub fn note(&mut self, open: Open, synced: bool) -> Result<()> {
        let (state, process) = (char::from(open.byte()), std::process::id());
        let line = format!("{state}{process:>10}{:>10}\n", self.cut_offs);
        let noted = self.file.seek(SeekFrom::Start(0));
        noted
            .and_then(|_| self.file.write_all(line.as_bytes()))
            .and_then(|()| match synced {
                true => self.file.sync_data(),
                false => Ok(()),
            })
            .map_err(|error| self.failed(&error))
    }

    /// Counts a challenge that was cut off. On the disk when this returns.
    ///
    /// # Errors
    /// As [`Hold::note`].
    pub fn cut_off(&mut self) -> Result<()> {
        self.cut_offs = self.cut_offs.saturating_add(1);
        self.note(Open::Nothing, true)
    }

    /// Gives the key back. An orderly end is on the disk when this returns, if it can be.
    pub fn end(self) {
        drop(self.file.sync_data());
    }
}

/// What is kept; of a session that wrote nothing, nothing is open. A file of an earlier build has no count.
fn kept(file: &mut File) -> std::io::Result<Kept> {
    let mut line = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(21).read_to_end(&mut line)?;
    let open = match line.first() {
        Some(b'r') => Open::Sums,
        Some(b'c') => Open::Challenge,
        _ => Open::Nothing,
    };
    let count = line.get(11..).map(str::from_utf8);
    let count = count.and_then(|count| count.ok()?.trim().parse().ok());
    Ok(Kept {
        open,
        cut_offs: count.unwrap_or(0),
    })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn create(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    let parent = path.parent();
    parent
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

fn sync(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

fn overwrite(path: &Path) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.write_all(UNUSABLE)?;
    file.sync_all()
}

/// The time in UTC, as in RFC 3339. A clock before 1970 counts as 1970: the time is shown, nothing depends on it.
fn now() -> String {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs());
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years from March on, in cycles of 400: Fliegel, van Flandern, CACM 11 (1968), as Hinnant counts them.
    let days = days + 719_468;
    let (cycle, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = 400 * cycle + year + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}Z")
}
