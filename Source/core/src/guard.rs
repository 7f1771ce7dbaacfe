//! Whether a session may go on. After a failed check the adversary may know the honest parties' MAC keys: the session is poisoned,
//! and the keys that it used are burned, before the error reaches anybody. After a challenge that was cut off it knows nothing of them, but had an
//! attempt: the session ends, and the attempt is counted. [`crate::mac_key`] has the argument.
//!
//! One guard serves a session, its subgroups and all their engines. It is asked before every operation, and gets every error. It has
//! the session's MAC keys for itself, from the call that sets them to the end of the session: see [`crate::mac_key`].

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};

use crate::error::{Check, EngineError, Result};
use crate::mac_key::checks::{Commitment, Record};
use crate::mac_key::{CURE, ENDED, Hold, MOST_CUT_OFFS, MacKeyFile, Open, in_use, worn_out};

/// Burned keys that have no file, by their hash, with the cause; for as long as this process lives.
static BURNED: Mutex<Vec<([u8; 32], String)>> = Mutex::new(Vec::new());

/// Challenges that were cut off under keys that have no file, by their hash.
static CUT_OFFS: Mutex<Vec<([u8; 32], u32)>> = Mutex::new(Vec::new());

/// Keys that sessions of this process use, by their hash. Those with a file are locked there, too.
static HELD: Mutex<Vec<[u8; 32]>> = Mutex::new(Vec::new());

/// An entry of [`HELD`].
struct InUse([u8; 32]);

impl InUse {
    fn take(digest: [u8; 32], file: Option<&Path>) -> Result<Self> {
        let mut all = held(&HELD);
        if all.contains(&digest) {
            let prefix = file.map_or_else(String::new, |file| format!("{}: ", file.display()));
            return Err(in_use(&prefix, Some(std::process::id())));
        }
        all.push(digest);
        Ok(Self(digest))
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        held(&HELD).retain(|digest| *digest != self.0);
    }
}

/// A MAC key that the caller chose.
struct Key {
    digest: [u8; 32],
    file: Option<MacKeyFile>,
    hold: Option<Hold>,
    /// `None` where several sessions may use a key.
    in_use: Option<InUse>,
}

impl Key {
    fn refuse_burned(&self) -> Result<()> {
        if let Some(file) = &self.file {
            return file.refuse_burned();
        }
        let burned = held(&BURNED);
        match burned.iter().find(|(digest, _)| *digest == self.digest) {
            None => Ok(()),
            Some((_, cause)) => Err(EngineError::Burned(format!(
                "this MAC key is burned ({cause}): others may know it, and nothing that was made under it can be used: {CURE}"
            ))),
        }
    }

    fn burn(&self, cause: &str) -> String {
        if let Some(file) = &self.file {
            return file.burn(cause);
        }
        held(&BURNED).push((self.digest, cause.to_owned()));
        format!("the MAC key is burned: {CURE}")
    }

    /// Challenges that were cut off under this key.
    fn cut_offs(&self) -> u32 {
        if let Some(hold) = &self.hold {
            return hold.cut_offs();
        }
        let all = held(&CUT_OFFS);
        let ours = all.iter().find(|(digest, _)| *digest == self.digest);
        ours.map_or(0, |(_, count)| *count)
    }

    /// Counts one more, and burns a key of which too many were.
    fn cut_off(&mut self) -> Result<()> {
        match &mut self.hold {
            Some(hold) => hold.cut_off()?,
            None => {
                let mut all = held(&CUT_OFFS);
                match all.iter_mut().find(|(digest, _)| *digest == self.digest) {
                    Some((_, count)) => *count += 1,
                    None => all.push((self.digest, 1)),
                }
            }
        }
        if self.cut_offs() >= MOST_CUT_OFFS {
            self.burn(&worn_out());
        }
        Ok(())
    }
}

/// A MAC check that had no verdict: what became of it is unknown.
const CUT_OFF: &str = "a MAC check was cut off in the middle of it";

/// What went on in a session that an error ended.
const UNFINISHED: &str = "a MAC check was cut off, which the next session of all parties finishes";
const CHALLENGE_CUT_OFF: &str = "a challenge was cut off";

#[derive(Default)]
struct State {
    /// The check that failed.
    cause: Option<String>,
    /// Whether something else went wrong.
    broken: bool,
    /// Whether products are verified in this session: then it ends with whatever goes wrong.
    verifies: bool,
    /// What went wrong then, or while a challenge was open, if no check failed.
    ended: Option<String>,
    /// Whether the session has ended, and given its keys back.
    over: bool,
    /// Challenges that are open: see [`crate::mac_key`].
    challenges: usize,
    /// Checks of which we may have opened our sums, by our commitments.
    sums: Vec<Commitment>,
    /// Checks of this session that have no verdict yet, by our commitments.
    checking: Vec<Commitment>,
    /// Whether a local check failed.
    failed: bool,
    /// Whether another program computes under the keys.
    elsewhere: bool,
    keys: Vec<Key>,
}

/// See the module.
pub struct Guard {
    state: Mutex<State>,
    /// False takes the remedy out, for the tests that show what it is good for.
    reacts: bool,
    /// Whether this session alone may use its keys. The same.
    alone: bool,
    /// Whether local checks count as verdicts. The same.
    notes_verdicts: bool,
    /// Whether checks are noted, so that a later session finishes them. The same.
    notes_checks: bool,
    /// Whether parties compare what they were told of a check before a later session finishes it. The same.
    compares_checks: bool,
}

impl Default for Guard {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            reacts: true,
            alone: true,
            notes_verdicts: true,
            notes_checks: true,
            compares_checks: true,
        }
    }
}

/// The content of a mutex, also if a thread panicked with it: nothing panics halfway through a change.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Guard {
    /// One that lets everything pass.
    #[cfg(any(test, feature = "testing"))]
    pub fn ablated() -> Self {
        let mut guard = Self::not_alone();
        guard.reacts = false;
        guard
    }

    /// One that lets other sessions use its keys meanwhile.
    #[cfg(any(test, feature = "testing"))]
    pub fn not_alone() -> Self {
        let mut guard = Self::default();
        guard.alone = false;
        guard
    }

    /// The same, which notes no checks either.
    #[cfg(any(test, feature = "testing"))]
    pub fn forgetful() -> Self {
        let mut guard = Self::not_alone();
        guard.notes_checks = false;
        guard
    }

    /// One that takes every party's word for what became of a check.
    #[cfg(any(test, feature = "testing"))]
    pub fn credulous() -> Self {
        let mut guard = Self::default();
        guard.compares_checks = false;
        guard
    }

    /// That of a party that is killed whenever a check fails, before it can burn its keys.
    #[cfg(any(test, feature = "testing"))]
    pub fn killed(notes_verdicts: bool) -> Self {
        let mut guard = Self::default();
        (guard.reacts, guard.notes_verdicts) = (false, notes_verdicts);
        guard
    }

    /// Whether a check failed.
    pub fn poisoned(&self) -> bool {
        held(&self.state).cause.is_some()
    }

    /// Refuses everything after a failed check, and after the end of a session with MAC keys, which are others' then.
    pub fn refuse(&self) -> Result<()> {
        let state = held(&self.state);
        if let (None, Some(ended)) = (&state.cause, &state.ended) {
            return Err(EngineError::Burned(format!(
                "this session broke off ({ended}): open a new session, as a party that breaks off could try again to pass a check"
            )));
        }
        let Some(cause) = &state.cause else {
            return state.refuse_over();
        };
        Err(EngineError::Burned(if state.keys.is_empty() {
            format!(
                "a check failed in this session ({cause}): open a new session, without the party that cheats"
            )
        } else {
            format!("a check failed in this session ({cause}): others may know its MAC key: {CURE}")
        }))
    }

    /// A MAC key that this session will use, and its file, if it has one. No other session may until this one ends.
    ///
    /// # Errors
    /// [`EngineError::Burned`] if it must not be used; [`EngineError::InUse`] while another session uses it.
    pub fn add_key(&self, key: &[u8; 16], file: Option<&Path>) -> Result<()> {
        let mut state = held(&self.state);
        state.refuse_over()?;
        let digest = Sha256::new_with_prefix(b"keyquorum-v1/MAC key")
            .chain_update(key)
            .finalize()
            .into();
        let path = file;
        let file = path.map(MacKeyFile::new);
        if let Some(known) = state.keys.iter_mut().find(|key| key.digest == digest) {
            if known.file.is_none() && file.is_some() {
                let hold = file.as_ref().map(|file| file.take(self.alone));
                known.hold = hold.transpose()?;
                known.file = file;
            }
            return known.refuse_burned();
        }
        let mut key = Key {
            digest,
            file,
            hold: None,
            in_use: None,
        };
        key.refuse_burned()?;
        if self.alone {
            key.in_use = Some(InUse::take(digest, path)?);
        }
        let hold = key.file.as_ref().map(|file| file.take(self.alone));
        key.hold = hold.transpose()?;
        state.keys.push(key);
        Ok(())
    }

    /// Before the first message under a MAC key.
    ///
    /// # Errors
    /// [`EngineError::Burned`] if it must not be used.
    /// [`EngineError::Usage`] if something went wrong before: who broke off could try again under the same key.
    pub fn begin(&self) -> Result<()> {
        self.refuse()?;
        let state = held(&self.state);
        if state.broken && self.reacts {
            return Err(EngineError::usage(
                "this session broke off before: open a new one for computations with MACs",
            ));
        }
        state.keys.iter().try_for_each(Key::refuse_burned)
    }

    /// Before an engine opens that verifies products. A corrupted party that knows a challenge before others can break off whenever the check would fail. Wrong products
    /// pass a check with a small probability, so it must not try again in the same session: from now on whatever goes wrong ends the session.
    ///
    /// # Errors
    /// [`EngineError::Burned`] if a check failed, or something went wrong after such an engine was opened; [`EngineError::Usage`] if something went wrong before.
    pub fn begin_verified(&self) -> Result<()> {
        self.refuse()?;
        let mut state = held(&self.state);
        if state.broken && self.reacts {
            return Err(EngineError::usage(
                "this session broke off before: open a new one for computations that verify products",
            ));
        }
        state.verifies = true;
        Ok(())
    }

    /// An engine broke off: see [`Guard::begin_verified`].
    pub fn broke_off(&self, error: &EngineError) {
        if self.reacts {
            held(&self.state).break_off(error);
        }
    }

    /// Challenges that were cut off under our keys, those of the key with most.
    pub fn cut_offs(&self) -> u32 {
        let state = held(&self.state);
        state.keys.iter().map(Key::cut_offs).max().unwrap_or(0)
    }

    /// Before our part of a toss is opened that decides whether a deviation of before is noticed: until [`Guard::answered`], whatever goes wrong
    /// is an attempt, which is counted, and ends the session.
    ///
    /// # Errors
    /// [`EngineError::Store`] if it cannot be noted.
    pub fn challenged(&self) -> Result<()> {
        held(&self.state).change(|state| state.challenges += 1)
    }

    /// All that the challenge decides is verified.
    ///
    /// # Errors
    /// As [`Guard::verified`].
    pub fn answered(&self) -> Result<()> {
        let mut state = held(&self.state);
        state.change(|state| state.challenges = state.challenges.saturating_sub(1))?;
        state.keys.iter().try_for_each(Key::refuse_burned)
    }

    /// Before we commit to our sums of a check, without commitments; and with those of all before we open them, which shows our keys if something was opened
    /// wrongly. From then until [`Guard::verified`] the verdict is out: a key with a file has it decided by the next session, a key without one is burned
    /// by whatever goes wrong.
    ///
    /// # Errors
    /// [`EngineError::Store`] if it cannot be noted; [`EngineError::Usage`] if the session has ended.
    pub fn notes_check(&self, record: &Record) -> Result<()> {
        let mut state = held(&self.state);
        state.refuse_over()?;
        if self.notes_checks {
            let mut holds = state.keys.iter_mut().filter_map(|key| key.hold.as_mut());
            holds.try_for_each(|hold| hold.note_check(record.clone()))?;
        }
        match record.commitments.is_empty() {
            true => state.checking.push(record.ours),
            false => state.sums.push(record.ours),
        }
        Ok(())
    }

    /// The verdict was good: what was checked is accepted.
    ///
    /// # Errors
    /// [`EngineError::Burned`] if a key was burned meanwhile; [`EngineError::Usage`] if the session has ended.
    pub fn verified(&self, ours: &Commitment) -> Result<()> {
        let mut state = held(&self.state);
        state.refuse_over()?;
        state.sums.retain(|open| open != ours);
        state.checking.retain(|open| open != ours);
        let mut holds = state.keys.iter_mut().filter_map(|key| key.hold.as_mut());
        holds.try_for_each(|hold| hold.finish_check(ours))?;
        state.keys.iter().try_for_each(Key::refuse_burned)
    }

    /// Our sides of checks that an earlier session did not finish.
    pub fn unfinished(&self) -> Vec<Record> {
        let state = held(&self.state);
        let holds = state.keys.iter().filter_map(|key| key.hold.as_ref());
        let all = holds.flat_map(|hold| hold.checks().open());
        let earlier = all.filter(|record| !state.sums.contains(&record.ours));
        earlier.cloned().collect()
    }

    /// Whether what others say of a check is compared among all parties, and with what we have got in it.
    pub fn compares_checks(&self) -> bool {
        self.compares_checks
    }

    /// What we noted last of the check for which this was our commitment, if it is one of an earlier session: one that goes on here opens what we committed to itself, when it has the
    /// commitments of all.
    pub fn find_check(&self, ours: &Commitment) -> Option<Record> {
        let state = held(&self.state);
        if self.compares_checks && state.checking.contains(ours) {
            return None;
        }
        let mut holds = state.keys.iter().filter_map(|key| key.hold.as_ref());
        holds.find_map(|hold| hold.checks().find(ours).cloned())
    }

    /// Forgets the checks among so many parties that we have opened to nobody, as no party has an unfinished one.
    ///
    /// # Errors
    /// [`EngineError::Store`] if they cannot be removed.
    pub fn forget_checks(&self, parties: usize) -> Result<()> {
        let mut state = held(&self.state);
        if !state.sums.is_empty() {
            return Ok(());
        }
        let mut holds = state.keys.iter_mut().filter_map(|key| key.hold.as_mut());
        holds.try_for_each(|hold| hold.forget_checks(parties))
    }

    /// Whether another program computes under our keys, of whose checks we do not know: as an open verdict, but for errors of this session,
    /// which are no part of it.
    ///
    /// # Errors
    /// As [`Guard::challenged`] and [`Guard::verified`]; [`EngineError::Usage`] if a check is unfinished.
    pub fn elsewhere(&self, runs: bool) -> Result<()> {
        if runs && !self.unfinished().is_empty() {
            return Err(EngineError::usage(
                "a MAC check was cut off, which a session of the embedded engine must finish before: run a program on it first",
            ));
        }
        let mut state = held(&self.state);
        state.change(|state| state.elsewhere = runs)?;
        state.keys.iter().try_for_each(Key::refuse_burned)
    }

    /// A local check whose verdict depends on our keys. Its verdict is on the disk, whatever it is, before anything else is done: nobody learns that it
    /// failed before the key is as good as burned. A party that dies before that has told nobody.
    ///
    /// # Errors
    /// Those of the check, [`EngineError::Store`] if the verdict cannot be noted, and [`EngineError::Burned`] as in [`Guard::verified`].
    pub fn verdict<T>(&self, check: impl FnOnce() -> Result<T>) -> Result<T> {
        let checked = check();
        if !self.notes_verdicts {
            return checked;
        }
        let mut state = held(&self.state);
        state.refuse_over()?;
        if checked.is_err() {
            state.failed = true;
        }
        state.note_open(true)?;
        state.keys.iter().try_for_each(Key::refuse_burned)?;
        checked
    }

    /// Every error of the session and its engines passes through here before it is reported. After a failed check the session is poisoned, and
    /// its keys are burned.
    pub fn judge(&self, error: EngineError) -> EngineError {
        let mut state = held(&self.state);
        if !self.reacts || matches!(error, EngineError::Burned(_)) {
            return error;
        }
        let (check, text) = match error {
            EngineError::Check { check, text } => (check, text),
            other if state.undecided() => (Check::Interrupted, format!("{CUT_OFF}: {other}")),
            other if state.challenges > 0 || !state.sums.is_empty() => {
                state.cut_off(&other);
                return other;
            }
            other => {
                if !matches!(other, EngineError::Usage(_) | EngineError::Refused(_)) {
                    state.broken = true;
                    state.break_off(&other);
                }
                return other;
            }
        };
        let done = state.poison(&text);
        let text = [text].into_iter().chain(done).collect::<Vec<_>>();
        EngineError::check(check, text.join("; "))
    }

    /// A check failed elsewhere, in a computation under our keys: as if it had been here. Returns what was done.
    pub fn burn(&self, cause: &str) -> String {
        held(&self.state).poison(cause).join("; ")
    }

    /// The end of a session, by whatever way: its keys are free for others. A verdict that is open burns them.
    pub fn end(&self) {
        let mut state = held(&self.state);
        if !self.reacts || state.over {
            return;
        }
        if state.undecided() || state.elsewhere {
            state.poison(ENDED);
        } else if state.challenges > 0 {
            // If it cannot be noted it is open on the disk, and counted by the next session.
            drop(state.count_cut_off());
        }
        state.over = true;
        for key in &mut state.keys {
            if let Some(hold) = key.hold.take() {
                hold.end();
            }
            drop(key.in_use.take());
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.end();
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl State {
    /// What is open.
    fn open(&self) -> Open {
        match (self.failed || self.elsewhere, self.challenges > 0) {
            (true, _) => Open::Sums,
            (false, true) => Open::Challenge,
            (false, false) => Open::Nothing,
        }
    }

    /// Whether there is a verdict that no later session can find out: a local check failed, or sums are open under keys without files.
    fn undecided(&self) -> bool {
        let kept = !self.keys.is_empty() && self.keys.iter().all(|key| key.hold.is_some());
        self.failed || (!self.sums.is_empty() && !kept)
    }

    /// Changes what is open, and notes it. Synced: what must outlive the host, and that sums are not open any more, so that a host that loses its power
    /// burns no key for nothing.
    fn change(&mut self, change: impl FnOnce(&mut Self)) -> Result<()> {
        self.refuse_over()?;
        let before = self.open();
        change(self);
        let open = self.open();
        if open == before {
            return Ok(());
        }
        self.note_open(open > before || before == Open::Sums)
    }

    fn refuse_over(&self) -> Result<()> {
        if self.over && !self.keys.is_empty() {
            return Err(EngineError::usage(
                "this session has ended, and others may use its MAC key: open a new session",
            ));
        }
        Ok(())
    }

    fn note_open(&mut self, synced: bool) -> Result<()> {
        let open = self.open();
        self.keys
            .iter_mut()
            .filter_map(|key| key.hold.as_mut())
            .try_for_each(|hold| hold.note(open, synced))
    }

    /// A challenge was cut off, which is counted as an attempt, or a check, which is finished later. The session is over, in which the adversary could use what it had
    /// won. What cannot be noted stays open on the disk, and is counted by the next session.
    fn cut_off(&mut self, error: &EngineError) {
        if self.challenges > 0 {
            drop(self.count_cut_off());
        }
        self.broken = true;
        let what = match self.sums.is_empty() {
            true => CHALLENGE_CUT_OFF,
            false => UNFINISHED,
        };
        let cause = one_line(&format!("{what}: {error}"));
        self.ended.get_or_insert(cause);
    }

    fn count_cut_off(&mut self) -> Result<()> {
        self.challenges = 0;
        self.keys.iter_mut().try_for_each(Key::cut_off)
    }

    fn break_off(&mut self, error: &EngineError) {
        if self.verifies && self.ended.is_none() {
            self.ended = Some(one_line(&error.to_string()));
        }
    }

    fn poison(&mut self, cause: &str) -> Vec<String> {
        let cause = one_line(cause);
        let done = self.keys.iter().map(|key| key.burn(&cause)).collect();
        self.cause.get_or_insert(cause);
        done
    }
}
