//! One queue a peer, and the state of the session.

use std::collections::VecDeque;
use std::time::Instant;

use crate::NetError;
use crate::shape::{Pacer, SharedBucket};

/// Bookkeeping charged for each queued message, so that empty messages are bounded as well.
const MESSAGE_OVERHEAD: usize = 64;

/// Excluded: every index was compared with the number of parties before.
pub(super) const NO_QUEUE: &str = "a message of a party that has no queue";

/// One message of a peer.
pub(crate) struct Message {
    pub(crate) payload: Vec<u8>,
    /// Bytes that it took on the wire.
    pub(crate) wire: usize,
    /// When it leaves the sender, if it was handed over earlier: within one process, on simulated links that share their bandwidth.
    pub(crate) leaves: Option<Instant>,
}

/// Why a push was not taken.
pub(crate) enum PushError {
    /// The owner of the inbox has closed it.
    OwnerClosed,
    /// The session ended with this error.
    Ended(NetError),
    /// The queue stayed full.
    Full,
}

/// A message and, on a simulated link, when it is delivered.
pub(super) struct Queued {
    pub(super) message: Message,
    pub(super) due: Option<Instant>,
}

#[derive(Default)]
pub(super) struct Queue {
    pub(super) messages: VecDeque<Queued>,
    /// On a simulated link.
    pub(super) pacer: Option<Pacer>,
    pub(super) bytes: usize,
    /// Threads that wait for a message of this peer.
    pub(super) waiting: usize,
    /// More of this peer is not read: the queue was full when bytes of it came last, and still is.
    pub(super) full: bool,
    /// Bytes of the message under way, as they came over the wire.
    pub(super) under_way: usize,
    /// Bytes of messages that we have announced to take and not taken yet.
    pub(super) announced: usize,
    /// Bytes of the message that a thread waits for.
    pub(super) awaited: usize,
    /// Why no more messages will come.
    pub(super) ended: Option<NetError>,
}

impl Queue {
    /// Computes again whether the queue is full. Returns whether it was full before and is not now. `limit` bounds the bytes that we neither wait
    /// for nor have announced.
    pub(super) fn refresh(&mut self, limit: usize) -> bool {
        let due = self.announced.max(self.awaited);
        let full = self.bytes + self.under_way > limit.saturating_add(on_the_wire(due));
        std::mem::replace(&mut self.full, full) && !full
    }
}

/// Bound on the wire bytes of a message of so many bytes: a TLS record of 16 KiB has 22 bytes more.
pub(super) fn on_the_wire(bytes: usize) -> usize {
    bytes.saturating_add(bytes / 64).saturating_add(1 << 16)
}

pub(super) struct State {
    pub(super) queues: Vec<Queue>,
    /// The bucket of all links, where they share their bandwidth.
    pub(super) shared: Option<SharedBucket>,
    /// An abort or a protocol violation: ends everything at once.
    pub(super) fatal: Option<NetError>,
    /// A peer that vanished without a close or an abort: ends every wait.
    pub(super) lost: Option<NetError>,
    /// Our own end is closed: the reason.
    pub(super) owner_closed: Option<String>,
}

impl State {
    pub(super) fn queue(&mut self, of: usize) -> Result<&mut Queue, NetError> {
        let queue = self.queues.get_mut(of);
        queue.ok_or(NetError::internal(NO_QUEUE))
    }

    /// Nothing more comes from `peer`, for this reason. A peer that we do not have ends everything.
    pub(super) fn end_peer(&mut self, peer: usize, error: NetError) {
        match self.queue(peer) {
            Ok(queue) => queue.ended.get_or_insert(error),
            Err(internal) => self.fatal.get_or_insert(internal),
        };
    }
}

/// Bytes of the limit that a queued message uses.
pub(super) fn cost(message: &Message) -> usize {
    message.payload.len() + MESSAGE_OVERHEAD
}
