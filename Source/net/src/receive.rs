//! The half of a transport that all transports share: taking messages out of the inbox, counting, and remembering how
//! the last call went.

use std::sync::Arc;
use std::time::Duration;

use crate::inbox::Inbox;
use crate::{Counters, NetError};

pub(crate) struct Receiver {
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) counters: Counters,
    /// Bound on every wait without progress.
    pub(crate) timeout: Duration,
    /// How the last call failed, if it did and the fault was not the caller's.
    failed: Option<NetError>,
}

impl Receiver {
    pub(crate) fn new(inbox: Arc<Inbox>, parties: usize, timeout: Duration) -> Self {
        Self {
            inbox,
            counters: Counters::new(parties),
            timeout,
            failed: None,
        }
    }

    /// [`crate::Transport::recv`].
    pub(crate) fn recv(&mut self, from: usize, len: usize) -> Result<Vec<u8>, NetError> {
        let result = self
            .take(from, len, || format!("a message of {len} bytes"))
            .and_then(|payload| {
                self.inbox.check_len(from, payload.len(), len)?;
                Ok(payload)
            });
        self.note(result)
    }

    /// [`crate::Transport::recv_any_len`].
    pub(crate) fn recv_any_len(&mut self, from: usize, max: usize) -> Result<Vec<u8>, NetError> {
        let result = self
            .take(from, max, || format!("a message of at most {max} bytes"))
            .and_then(|payload| {
                self.inbox.check_max(from, payload.len(), max)?;
                Ok(payload)
            });
        self.note(result)
    }

    fn take(
        &mut self,
        from: usize,
        expected: usize,
        what: impl Fn() -> String,
    ) -> Result<Vec<u8>, NetError> {
        let message = self.inbox.pop(from, expected, self.timeout, what)?;
        self.counters
            .count_received(from, message.payload.len(), message.wire);
        Ok(message.payload)
    }

    /// Remembers how a call went.
    pub(crate) fn note<T>(&mut self, result: Result<T, NetError>) -> Result<T, NetError> {
        match &result {
            Ok(_) => self.failed = None,
            Err(error) if error.is_misuse() => {}
            Err(error) => self.failed = Some(error.clone()),
        }
        result
    }

    /// The reason to give if we end now; `None` if all is well.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failed.as_ref().map(NetError::to_string)
    }
}
