//! What is known of a MAC key beside its file: that it is burned, and which sessions under it have not ended in order.
//!
//! Beside `mac.key` there are `mac.key.burned`, one line of JSON, made by the first check that failed, and the folder
//! `mac.key.sessions`, with a file for every session that opened an engine with MACs. Such a file is locked by its session, and
//! removed at an orderly end: one that nobody has locked is of a session that broke off, by whatever cause. Its only byte says whether
//! the session broke off between opening its sums of a MAC check and finding them right; that counts as a failed check, as who gets the
//! sums of the others first can break off before it gives its own.
//!
//! A session that breaks off elsewhere may still have tested a guess: modulo 2^k and over fields a key is multiplied in digits of four
//! bits, and a wrong word for one of them changes nothing if the digit is as guessed. A wrong guess makes a check fail, and burns the
//! key; but a party may be killed before its check. Each such session rules out one of 16 values of a digit, 8.4 sessions find one
//! on average: after [`MOST_ABORTED`] of them some 15 of the 48 bits of a key of elements, and of the 40 of bits, may be known.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::error::{EngineError, Result};

/// Sessions under one MAC key that may break off.
pub const MOST_ABORTED: usize = 32;

/// What a key file holds if no mark could be written beside it: as long as a key, so that it takes no room on a full disk.
const UNUSABLE: &[u8; 16] = b"KeyQuorum-burned";

/// What to do about a key that is burned.
pub(crate) const CURE: &str = "make a new committee and new keys";

const OPEN: u8 = b'o';
const REVEALED: u8 = b'r';

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
        let parent = self.path.parent();
        parent
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."))
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
    /// [`EngineError::Burned`], or [`EngineError::Store`] if that cannot be told.
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

    /// Refuses a key that is burned, or under which too many sessions broke off.
    ///
    /// # Errors
    /// As [`MacKeyFile::refuse_burned`].
    pub fn check(&self) -> Result<()> {
        self.refuse_burned()?;
        let aborted = self.aborted()?;
        if aborted < MOST_ABORTED {
            return Ok(());
        }
        Err(EngineError::Burned(format!(
            "{}: {aborted} sessions under this MAC key broke off, at most {MOST_ABORTED} may, as each lets an adversary test a guess of some of its bits: {CURE}",
            self.path.display()
        )))
    }

    /// Sessions that broke off. Burns the key if one did so while a check of its was open.
    ///
    /// # Errors
    /// As [`MacKeyFile::refuse_burned`].
    pub fn aborted(&self) -> Result<usize> {
        let entries = match fs::read_dir(self.beside(".sessions")) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
            entries => entries.map_err(|e| self.unreadable(&e))?,
        };
        let mut aborted = 0;
        for entry in entries {
            let path = entry.map_err(|e| self.unreadable(&e))?.path();
            let mut file = match File::open(path) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                file => file.map_err(|e| self.unreadable(&e))?,
            };
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => continue, // it runs
                Err(TryLockError::Error(error)) => return Err(self.unreadable(&error)),
            }
            aborted += 1;
            let mut state = Vec::new();
            file.read_to_end(&mut state)
                .map_err(|e| self.unreadable(&e))?;
            if state.first() == Some(&REVEALED) {
                let how = "a MAC check was cut off after this party had opened its sums";
                let done = self.burn(how);
                self.refuse_burned()?;
                return Err(EngineError::Burned(format!("{how}: {done}")));
            }
        }
        Ok(aborted)
    }

    /// Marks the key as burned by this check, on the disk; returns what was done, for the error that tells of it.
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

    /// Notes that a session under the key begins: on the disk when this returns.
    ///
    /// # Errors
    /// [`EngineError::Store`] if it cannot be noted.
    pub fn begin(&self) -> Result<Mark> {
        let folder = self.beside(".sessions");
        let failed = |error: std::io::Error| {
            EngineError::Store(format!(
                "{}: cannot note that a session begins ({error}): see to the disk, then try again",
                folder.display()
            ))
        };
        let made = || -> std::io::Result<Mark> {
            if !folder.exists() {
                create_folder(&folder)?;
                sync(self.folder())?;
            }
            let mut name = [0u8; 16];
            getrandom::fill(&mut name).map_err(|e| std::io::Error::other(e.to_string()))?;
            let path = folder.join(name.map(|byte| format!("{byte:02x}")).concat());
            let mut file = create(&path)?;
            file.lock()?;
            file.write_all(&[OPEN])?;
            sync(&folder)?;
            Ok(Mark { file, path })
        };
        made().map_err(failed)
    }
}

/// The mark of a session that runs.
#[derive(Debug)]
pub struct Mark {
    file: File,
    path: PathBuf,
}

impl Mark {
    /// Notes that our sums of a MAC check are open, or that they were right. Not synced: it must outlive this process, not the host.
    pub fn revealed(&mut self, revealed: bool) -> Result<()> {
        let state = if revealed { REVEALED } else { OPEN };
        self.file
            .seek(SeekFrom::Start(0))
            .and_then(|_| self.file.write_all(&[state]))
            .map_err(|error| EngineError::Store(format!("{}: {error}", self.path.display())))
    }

    /// Takes the mark away. If that fails the session counts as one that broke off.
    pub fn end(self) {
        drop(fs::remove_file(&self.path));
    }
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

fn create_folder(path: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true); // two sessions may begin at once
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
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
