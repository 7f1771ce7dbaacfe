//! How peers and the session end, and which calls fail then.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::Inbox;
use super::queue::State;
use crate::{Length, NetError};

impl Inbox {
    pub(super) fn ended(&self, state: &State) -> Option<NetError> {
        if let Some(reason) = &state.owner_closed {
            return Some(NetError::Closed {
                me: self.me,
                reason: reason.clone(),
            });
        }
        state.fatal.clone()
    }

    /// Fails if nothing can be sent to `to` any more.
    pub(crate) fn check_open(&self, to: usize) -> Result<(), NetError> {
        self.check_peer(to)?;
        let mut state = self.lock();
        if let Some(ended) = self.ended(&state) {
            return Err(ended);
        }
        match state.queue(to)?.ended.clone() {
            Some(ended) => Err(ended),
            None => Ok(()),
        }
    }

    /// The peer closed: messages that it sent before can still be taken.
    pub(crate) fn peer_closed(&self, peer: usize) {
        self.end_peer(peer, NetError::PeerClosed { peer });
    }

    /// The peer vanished: messages that it sent before can still be taken, and every wait ends.
    pub(crate) fn peer_lost(&self, peer: usize, error: NetError) {
        self.lock().lost.get_or_insert_with(|| error.clone());
        self.end_peer(peer, error);
    }

    /// The peer aborted or violated the protocol: the session ends.
    pub(crate) fn peer_failed(&self, peer: usize, error: NetError) {
        self.lock().fatal.get_or_insert_with(|| error.clone());
        self.end_peer(peer, error);
        self.notify_reader();
    }

    fn end_peer(&self, peer: usize, error: NetError) {
        self.lock().end_peer(peer, error);
        self.arrived.notify_all();
        self.space.notify_all();
    }

    /// We ended: no message can be added or taken any more. The queues are emptied.
    pub(crate) fn close_owner(&self, reason: &str) {
        let mut state = self.lock();
        state.owner_closed.get_or_insert_with(|| reason.to_owned());
        for queue in &mut state.queues {
            queue.messages.clear();
            queue.bytes = 0;
            queue.under_way = 0;
            queue.full = false;
        }
        drop(state);
        self.arrived.notify_all();
        self.space.notify_all();
        self.notify_reader();
    }

    /// The failure that ends waits for any peer, if there is one.
    pub(crate) fn failure(&self) -> Option<NetError> {
        let state = self.lock();
        state.fatal.clone().or_else(|| state.lost.clone())
    }

    /// Whether `peer` sends nothing more.
    pub(crate) fn has_ended(&self, peer: usize) -> Result<bool, NetError> {
        Ok(self.lock().queue(peer)?.ended.is_some())
    }

    /// Waits up to `limit` until nothing can be sent to `to` any more, and returns the reason.
    pub(crate) fn wait_for_end(&self, to: usize, limit: Duration) -> Option<NetError> {
        let deadline = Instant::now() + limit;
        let mut state = self.lock();
        loop {
            let ended = match self.ended(&state) {
                Some(ended) => Some(ended),
                None => match state.queue(to) {
                    Ok(queue) => queue.ended.clone(),
                    Err(error) => Some(error),
                },
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if ended.is_some() || left.is_zero() {
                return ended;
            }
            state = self
                .arrived
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Checks the length of a message. After another one the parties no longer run the same program, so it ends the session.
    pub(crate) fn check_len(&self, from: usize, got: usize, want: Length) -> Result<(), NetError> {
        let detail = match want {
            Length::Exactly(bytes) if got != bytes => {
                format!("a message of {got} bytes where {bytes} are due")
            }
            Length::AtMost(bytes) if got > bytes => {
                format!("a message of {got} bytes where at most {bytes} are allowed")
            }
            _ => return Ok(()),
        };
        Err(self.malformed(from, detail))
    }

    pub(super) fn malformed(&self, peer: usize, detail: String) -> NetError {
        let error = NetError::MalformedFrame { peer, detail };
        self.peer_failed(peer, error.clone());
        error
    }
}
