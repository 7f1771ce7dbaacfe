//! The receiving half, which all transports share: it takes messages out of the inbox, counts traffic, and keeps the result of the
//! last call.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::inbox::Inbox;
use crate::{Counters, Length, NetError};

pub(crate) struct Receiver {
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) counters: Counters,
    /// Bound on every wait without progress.
    pub(crate) timeout: Duration,
    /// When the last of the messages taken is delivered, on simulated links.
    due: Option<Instant>,
    /// The error of the last call, if it failed and the fault was not the caller's.
    failed: Option<NetError>,
}

impl Receiver {
    pub(crate) fn new(inbox: Arc<Inbox>, parties: usize, timeout: Duration) -> Self {
        Self {
            inbox,
            counters: Counters::new(parties),
            timeout,
            due: None,
            failed: None,
        }
    }

    /// [`crate::Transport::take`].
    pub(crate) fn take(&mut self, from: usize, len: Length) -> Result<Vec<u8>, NetError> {
        let result = self.next(from, len);
        self.note(result)
    }

    /// [`crate::Transport::settle`].
    pub(crate) fn settle(&mut self) -> Result<(), NetError> {
        let Some(due) = self.due.take() else {
            return Ok(());
        };
        let result = self.inbox.wait_until(due);
        self.note(result)
    }

    fn next(&mut self, from: usize, len: Length) -> Result<Vec<u8>, NetError> {
        let most = len.most();
        let (message, due) = self.inbox.pop(from, most, self.timeout, || match len {
            Length::Exactly(_) => format!("a message of {most} bytes"),
            Length::AtMost(_) => format!("a message of at most {most} bytes"),
        })?;
        self.due = self.due.max(due);
        self.counters
            .count_received(from, message.payload.len(), message.wire)?;
        self.inbox.check_len(from, message.payload.len(), len)?;
        Ok(message.payload)
    }

    /// Keeps the result of a call.
    pub(crate) fn note<T>(&mut self, result: Result<T, NetError>) -> Result<T, NetError> {
        match &result {
            Ok(_) => self.failed = None,
            Err(error) if error.is_misuse() => {}
            Err(error) => self.failed = Some(error.clone()),
        }
        result
    }

    /// The reason to send if we end now; `None` if the last call succeeded.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failed.as_ref().map(NetError::to_string)
    }
}
