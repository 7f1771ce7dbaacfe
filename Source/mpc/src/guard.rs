//! Whether a session may go on. After a failed check the adversary may know the honest parties' MAC keys: the session is poisoned,
//! and the keys that it used are burned, before the error reaches anybody.
//!
//! One guard serves a session, its subgroups and all their engines. It is asked before every operation, and told of every error.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};

use crate::error::{Check, EngineError, Result};
use crate::mac_key::{CURE, MacKeyFile, Mark};

/// Burned keys that have no file, by their hash, with the cause; for as long as this process lives.
static BURNED: Mutex<Vec<([u8; 32], String)>> = Mutex::new(Vec::new());

/// A MAC key that the caller chose.
struct Key {
    digest: [u8; 32],
    file: Option<MacKeyFile>,
    mark: Option<Mark>,
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
                "this MAC key is burned ({cause}): others may know it, and nothing that was made under it can be used: {CURE}, in a process of its own"
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
}

#[derive(Default)]
struct State {
    /// The check that failed.
    cause: Option<String>,
    /// Whether something went wrong: the session does not end in order.
    broken: bool,
    /// MAC checks in which our sums are open, and not yet found right.
    revealed: usize,
    keys: Vec<Key>,
}

/// See the module.
pub(crate) struct Guard {
    state: Mutex<State>,
    /// False takes the remedy out, for the tests that show what it is good for.
    reacts: bool,
}

impl Default for Guard {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            reacts: true,
        }
    }
}

/// What a mutex holds, also if a thread panicked with it: what is noted here only ever grows.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Guard {
    /// One that lets everything pass.
    #[cfg(test)]
    pub fn ablated() -> Self {
        Self {
            state: Mutex::default(),
            reacts: false,
        }
    }

    /// Whether a check failed.
    pub fn poisoned(&self) -> bool {
        held(&self.state).cause.is_some()
    }

    /// Refuses everything after a failed check.
    pub fn refuse(&self) -> Result<()> {
        let state = held(&self.state);
        let Some(cause) = &state.cause else {
            return Ok(());
        };
        let cure = if state.keys.is_empty() {
            "open a new session, without the party that cheats"
        } else {
            CURE
        };
        Err(EngineError::Burned(format!(
            "a check failed in this session ({cause}): others may know its MAC key: {cure}"
        )))
    }

    /// A MAC key that this session will use, and its file, if it has one.
    ///
    /// # Errors
    /// [`EngineError::Burned`] if it must not be used.
    pub fn add_key(&self, key: &[u8; 16], file: Option<&Path>) -> Result<()> {
        let key = Key {
            digest: Sha256::new_with_prefix(b"keyquorum-v1/MAC key")
                .chain_update(key)
                .finalize()
                .into(),
            file: file.map(MacKeyFile::new),
            mark: None,
        };
        key.refuse_burned()?;
        if let Some(file) = &key.file {
            file.check()?;
        }
        held(&self.state).keys.push(key);
        Ok(())
    }

    /// Before the first message under a MAC key: notes on the disk that a session begins.
    ///
    /// # Errors
    /// [`EngineError::Burned`]; [`EngineError::Usage`] if something went wrong before: who broke off could try again under the same key.
    /// [`EngineError::Store`] if it cannot be noted.
    pub fn begin(&self) -> Result<()> {
        self.refuse()?;
        let mut state = held(&self.state);
        if state.broken && self.reacts {
            return Err(EngineError::usage(
                "this session broke off before: open a new one for computations with MACs",
            ));
        }
        for key in &mut state.keys {
            key.refuse_burned()?;
            if let (Some(file), None) = (&key.file, &key.mark) {
                key.mark = Some(file.begin()?);
            }
        }
        Ok(())
    }

    /// Before our sums of a MAC check are opened: until [`Guard::verified`], whatever goes wrong counts as a failed check.
    ///
    /// # Errors
    /// [`EngineError::Store`] if it cannot be noted.
    pub fn revealed(&self) -> Result<()> {
        let mut state = held(&self.state);
        state.revealed += 1;
        state.note_revealed()
    }

    /// The sums of a MAC check were right: what was opened is accepted, unless the key was burned by another session.
    ///
    /// # Errors
    /// [`EngineError::Burned`].
    pub fn verified(&self) -> Result<()> {
        let mut state = held(&self.state);
        state.revealed = state.revealed.saturating_sub(1);
        state.note_revealed()?;
        state.keys.iter().try_for_each(Key::refuse_burned)
    }

    /// Every error of the session and its engines comes by here before it is told. After a failed check the session is poisoned, and
    /// its keys are burned.
    pub fn judge(&self, error: EngineError) -> EngineError {
        let mut state = held(&self.state);
        if !self.reacts || matches!(error, EngineError::Burned(_)) {
            return error;
        }
        let (check, text) = match error {
            EngineError::Check { check, text } => (check, text),
            other if state.revealed > 0 => (
                Check::Interrupted,
                format!("a MAC check was cut off after this party had opened its sums: {other}"),
            ),
            other => {
                state.broken |= !matches!(other, EngineError::Usage(_));
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

    /// The session does not end in order.
    pub fn broken(&self) {
        held(&self.state).broken = true;
    }

    /// The end of a session, which counts as orderly if nothing went wrong.
    pub fn end(&self) {
        let mut state = held(&self.state);
        if !state.broken && state.cause.is_none() && state.revealed == 0 {
            for mark in state.keys.iter_mut().filter_map(|key| key.mark.take()) {
                mark.end();
            }
        }
    }
}

impl State {
    fn note_revealed(&mut self) -> Result<()> {
        let open = self.revealed > 0;
        self.keys
            .iter_mut()
            .filter_map(|key| key.mark.as_mut())
            .try_for_each(|mark| mark.revealed(open))
    }

    fn poison(&mut self, cause: &str) -> Vec<String> {
        let cause = cause.split_whitespace().collect::<Vec<_>>().join(" ");
        self.broken = true;
        let done = self.keys.iter().map(|key| key.burn(&cause)).collect();
        self.cause.get_or_insert(cause);
        done
    }
}
