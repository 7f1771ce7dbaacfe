//! What all engines of a session have in common: whether a corrupted party may still choose something that some party waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// See the module. One for each session.
#[derive(Debug, Default)]
pub struct Unsettled {
    /// Messages went out, of which a corrupted party may have withheld one.
    messages: AtomicBool,
    /// Inputs that a program has asked for, and that were not sent.
    inputs: AtomicUsize,
}

/// An input that was not sent yet, as long as this lives.
#[must_use]
pub(crate) struct Waiting(Arc<Unsettled>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.inputs.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Unsettled {
    /// Every party has received all messages of all earlier rounds.
    pub(crate) fn settle(&self) {
        self.messages.store(false, Ordering::SeqCst);
    }

    /// A round had messages of which a corrupted party may have withheld one.
    pub(crate) fn unsettle(&self) {
        self.messages.store(true, Ordering::SeqCst);
    }

    /// Whether a round is needed in which all wait for all.
    pub(crate) fn messages(&self) -> bool {
        self.messages.load(Ordering::SeqCst)
    }

    /// Notes an input that is not sent yet.
    pub(crate) fn input(unsettled: &Arc<Self>) -> Waiting {
        unsettled.inputs.fetch_add(1, Ordering::SeqCst);
        Waiting(Arc::clone(unsettled))
    }

    /// Whether an input is not sent yet.
    pub(crate) fn inputs(&self) -> bool {
        self.inputs.load(Ordering::SeqCst) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_wait_until_they_are_dropped() {
        let unsettled = Arc::new(Unsettled::default());
        let (one, other) = (Unsettled::input(&unsettled), Unsettled::input(&unsettled));
        drop(one);
        assert!(unsettled.inputs());
        drop(other);
        assert!(!unsettled.inputs());
    }
}
