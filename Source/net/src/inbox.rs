//! What has arrived at one party and was not asked for yet.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::shape::{LinkShape, Pacer};
use crate::{Length, NetError};

/// Bookkeeping charged for each queued message, so that empty messages are bounded as well.
const MESSAGE_OVERHEAD: usize = 64;

/// The slowest link that a long message is waited for, in bytes a second: bounds the wait for a peer that drips.
pub(crate) const SLOWEST_LINK: u64 = 64 * 1024;

/// Default bound on the bytes that one peer makes us keep beyond those that we wait for.
pub(crate) const DEFAULT_QUEUE_LIMIT: usize = 64 << 20;

/// Every index that comes here was compared with the number of parties.
const NO_QUEUE: &str = "a message of a party that has no queue";

/// One message of a peer.
pub(crate) struct Message {
    pub(crate) payload: Vec<u8>,
    /// Bytes that it took on the wire.
    pub(crate) wire: usize,
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
struct Queued {
    message: Message,
    due: Option<Instant>,
}

#[derive(Default)]
struct Queue {
    messages: VecDeque<Queued>,
    /// On a simulated link.
    pacer: Option<Pacer>,
    bytes: usize,
    /// Threads that wait for a message of this peer.
    waiting: usize,
    /// It was full when something came last, and is still.
    held: bool,
    /// Bytes of the message under way, as they came over the wire.
    midway: usize,
    /// Bytes that we have announced to take, in messages that were not taken yet.
    announced: usize,
    /// Bytes of the message that somebody waits for.
    awaited: usize,
    /// Set when no more messages will come.
    ended: Option<NetError>,
}

impl Queue {
    /// Looks again whether it is full; tells whether it was and is not any more. `limit` is for what we do not wait for.
    fn refresh(&mut self, limit: usize) -> bool {
        let due = self.announced.max(self.awaited);
        let held = self.bytes + self.midway > limit.saturating_add(on_the_wire(due));
        std::mem::replace(&mut self.held, held) && !held
    }
}

/// The most that a message of so many bytes takes on the wire: records of 16 KiB have 22 bytes more.
fn on_the_wire(bytes: usize) -> usize {
    bytes.saturating_add(bytes / 64).saturating_add(1 << 16)
}

struct State {
    queues: Vec<Queue>,
    /// An abort or a protocol violation: ends everything at once.
    fatal: Option<NetError>,
    /// A peer that vanished without a word: ends every wait.
    lost: Option<NetError>,
    /// Our own end is closed: the reason.
    owner_closed: Option<String>,
}

impl State {
    fn queue(&mut self, of: usize) -> Result<&mut Queue, NetError> {
        let queue = self.queues.get_mut(of);
        queue.ok_or(NetError::internal(NO_QUEUE))
    }

    /// Nothing more comes from `peer`, for this reason. A peer that we do not have ends everything.
    fn end_peer(&mut self, peer: usize, error: NetError) {
        match self.queue(peer) {
            Ok(queue) => queue.ended.get_or_insert(error),
            Err(internal) => self.fatal.get_or_insert(internal),
        };
    }
}

/// Queues of arrived messages, one per peer, each bounded in bytes: by a limit, and what we wait for or have announced to take. What was read
/// from the network at once is delivered as a whole. Within one process a queue that is empty takes a message of any size.
pub(crate) struct Inbox {
    me: usize,
    limit: usize,
    state: Mutex<State>,
    /// A message arrived, or the session ended.
    arrived: Condvar,
    /// A message was taken, or the session ended.
    space: Condvar,
    /// Bytes seen per peer, so that a long message under way is not taken for silence.
    progress: Vec<AtomicU64>,
    /// By how much this machine wakes up late, in nanoseconds; measured when a link is shaped.
    lateness: AtomicU64,
    /// See [`Inbox::call_for_more`].
    more: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// What a queued message takes of the limit.
fn cost(message: &Message) -> usize {
    message.payload.len() + MESSAGE_OVERHEAD
}

impl Inbox {
    pub(crate) fn new(me: usize, parties: usize, limit: usize) -> Self {
        Self {
            me,
            limit,
            state: Mutex::new(State {
                queues: (0..parties).map(|_| Queue::default()).collect(),
                fatal: None,
                lost: None,
                owner_closed: None,
            }),
            arrived: Condvar::new(),
            space: Condvar::new(),
            progress: (0..parties).map(|_| AtomicU64::new(0)).collect(),
            lateness: AtomicU64::new(0),
            more: OnceLock::new(),
        }
    }

    /// From now on messages of `from` arrive as over a link of this shape. `path` is the round trip without it.
    pub(crate) fn shape(
        &self,
        from: usize,
        shape: LinkShape,
        path: Duration,
    ) -> Result<(), NetError> {
        if self.lateness.load(Ordering::Relaxed) == 0 {
            let nanoseconds = u64::try_from(wake_up_lateness().as_nanos())
                .map_err(|_| NetError::internal("a wait of centuries"))?;
            self.lateness.store(nanoseconds.max(1), Ordering::Relaxed);
        }
        self.lock().queue(from)?.pacer = Some(Pacer::new(shape, path));
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere must not take the session's error reporting down with it: the state stays consistent
        // because every critical section below is a few assignments.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails if `index` is not one of our peers.
    pub(crate) fn check_peer(&self, index: usize) -> Result<(), NetError> {
        let parties = self.progress.len();
        if index >= parties || index == self.me {
            return Err(NetError::NoSuchPeer {
                index,
                me: self.me,
                parties,
            });
        }
        Ok(())
    }

    fn progress(&self, from: usize) -> Result<&AtomicU64, NetError> {
        let progress = self.progress.get(from);
        progress.ok_or(NetError::internal(NO_QUEUE))
    }

    /// Notes that of a message under way `bytes` in all have arrived.
    pub(crate) fn note_progress(&self, from: usize, bytes: usize) -> Result<(), NetError> {
        let mut state = self.lock();
        let queue = state.queue(from)?;
        queue.midway = bytes;
        queue.refresh(self.limit);
        // Who waits for it looks whether it has become too long.
        let too_long = queue.waiting > 0 && bytes > on_the_wire(queue.awaited);
        drop(state);
        if too_long {
            self.arrived.notify_all();
        }
        if self.lateness.load(Ordering::Relaxed) != 0 {
            let now = Instant::now();
            if let Some(pacer) = &mut self.lock().queue(from)?.pacer {
                pacer.part(bytes, now)?;
            }
        }
        self.count_progress(from, bytes)
    }

    fn count_progress(&self, from: usize, bytes: usize) -> Result<(), NetError> {
        let progress = self.progress(from)?;
        progress.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Queues a message of `from`; waits up to `timeout` while the queue is full.
    pub(crate) fn push(
        &self,
        from: usize,
        message: Message,
        timeout: Duration,
    ) -> Result<(), PushError> {
        let arrival = Instant::now();
        let deadline = arrival + timeout;
        let mut state = self.lock();
        loop {
            let queue = self.open_queue(&mut state, from)?;
            if queue.messages.is_empty() || queue.bytes + cost(&message) <= self.limit {
                return self.queue(state, from, message, arrival);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(PushError::Full);
            }
            state = self
                .space
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Queues a message of `from`, even if the queue is full then.
    pub(crate) fn deliver(&self, from: usize, message: Message) -> Result<(), PushError> {
        let arrival = Instant::now();
        let mut state = self.lock();
        let queue = self.open_queue(&mut state, from)?;
        queue.midway = cost(&message);
        queue.refresh(self.limit);
        queue.midway = 0;
        self.queue(state, from, message, arrival)
    }

    /// The queue of `from`, if the session goes on.
    fn open_queue<'a>(
        &self,
        state: &'a mut MutexGuard<'_, State>,
        from: usize,
    ) -> Result<&'a mut Queue, PushError> {
        if state.owner_closed.is_some() {
            return Err(PushError::OwnerClosed);
        }
        if let Some(fatal) = &state.fatal {
            return Err(PushError::Ended(fatal.clone()));
        }
        state.queue(from).map_err(PushError::Ended)
    }

    fn queue(
        &self,
        mut state: MutexGuard<'_, State>,
        from: usize,
        message: Message,
        arrival: Instant,
    ) -> Result<(), PushError> {
        let cost = cost(&message);
        let queue = state.queue(from).map_err(PushError::Ended)?;
        let due = queue
            .pacer
            .as_mut()
            .map(|pacer| pacer.last(message.wire, arrival))
            .transpose()
            .map_err(PushError::Ended)?;
        queue.bytes += cost;
        queue.messages.push_back(Queued { message, due });
        // Whoever waits for another peer is not woken: with many peers most messages come before they are asked for.
        let awaited = queue.waiting > 0;
        drop(state);
        let counted = self.count_progress(from, cost);
        if awaited {
            self.arrived.notify_all();
        }
        counted.map_err(PushError::Ended)
    }

    /// Names who is called when [`Inbox::has_room`] may have changed to true.
    pub(crate) fn call_for_more(&self, call: Box<dyn Fn() + Send + Sync>) -> Result<(), NetError> {
        let set = self.more.set(call);
        set.map_err(|_| NetError::internal("two readers of one inbox"))
    }

    /// Whether more of `from` should be read: its queue is not full, or the session is over and nothing is queued any more.
    pub(crate) fn has_room(&self, from: usize) -> bool {
        let mut state = self.lock();
        match state.queue(from) {
            Ok(queue) if queue.held => state.fatal.is_some() || state.owner_closed.is_some(),
            Ok(_) => true,
            Err(error) => {
                state.fatal.get_or_insert(error);
                false
            }
        }
    }

    fn call_more(&self) {
        if let Some(call) = self.more.get() {
            call();
        }
    }

    /// Takes the next message of `from`, and when it is delivered if the link is simulated. `expected` bytes set how long a
    /// message under way may take at most.
    pub(crate) fn pop(
        &self,
        from: usize,
        expected: usize,
        timeout: Duration,
        waiting_for: impl Fn() -> String,
    ) -> Result<(Message, Option<Instant>), NetError> {
        self.check_peer(from)?;
        let start = Instant::now();
        let last = start + timeout + Duration::from_secs(expected as u64 / SLOWEST_LINK);
        let mut deadline = start + timeout;
        let progress = self.progress(from)?;
        let mut seen = progress.load(Ordering::Relaxed);
        let mut state = self.lock();
        loop {
            if let Some(ended) = self.ended(&state) {
                return Err(ended);
            }
            let queue = state.queue(from)?;
            if let Some(Queued { message, due }) = queue.messages.pop_front() {
                let left = queue.bytes.checked_sub(cost(&message));
                queue.bytes =
                    left.ok_or(NetError::internal("a queue shorter than its messages"))?;
                queue.awaited = 0;
                queue.announced = queue.announced.saturating_sub(expected);
                let resumes = queue.refresh(self.limit);
                drop(state);
                self.space.notify_all();
                if resumes {
                    self.call_more();
                }
                return Ok((message, due));
            }
            if let Some(ended) = &queue.ended {
                return Err(ended.clone());
            }
            if queue.midway > on_the_wire(expected) {
                drop(state);
                return Err(self.malformed(
                    from,
                    format!("a message of more than the {expected} bytes that are due"),
                ));
            }
            if queue.awaited != expected {
                queue.awaited = expected;
                if queue.refresh(self.limit) {
                    self.call_more();
                }
            }
            if let Some(lost) = &state.lost {
                return Err(lost.clone());
            }
            let now = Instant::now();
            if now >= deadline {
                let moved = progress.load(Ordering::Relaxed);
                if moved == seen || now >= last {
                    return Err(NetError::Timeout {
                        peer: from,
                        waiting_for: format!(
                            "{} ({:.1} s)",
                            waiting_for(),
                            (now - start).as_secs_f64()
                        ),
                    });
                }
                seen = moved;
                deadline = last.min(now + timeout);
            }
            state.queue(from)?.waiting += 1;
            state = self
                .arrived
                .wait_timeout(state, deadline.saturating_duration_since(now))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            state.queue(from)?.waiting -= 1;
        }
    }

    /// From now on there is room for `bytes` more of `from`, until so many are taken.
    pub(crate) fn expect(&self, from: usize, bytes: usize) -> Result<(), NetError> {
        self.check_peer(from)?;
        let mut state = self.lock();
        let queue = state.queue(from)?;
        queue.announced = queue.announced.saturating_add(bytes);
        let resumes = queue.refresh(self.limit);
        drop(state);
        if resumes {
            self.call_more();
        }
        Ok(())
    }

    /// Waits until `due`, when simulated links have delivered what was taken.
    pub(crate) fn wait_until(&self, due: Instant) -> Result<(), NetError> {
        let mut state = self.lock();
        loop {
            if let Some(ended) = self.ended(&state) {
                return Err(ended);
            }
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            state = self.wait_for_link(state, left);
        }
    }

    /// Waits for a message that a simulated link delivers after `left`, or for news.
    fn wait_for_link<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        left: Duration,
    ) -> MutexGuard<'a, State> {
        let lateness = Duration::from_nanos(self.lateness.load(Ordering::Relaxed));
        match left.checked_sub(lateness) {
            Some(sleep) if !sleep.is_zero() => {
                self.arrived
                    .wait_timeout(state, sleep)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
            }
            _ => {
                drop(state);
                std::thread::yield_now();
                self.lock()
            }
        }
    }

    fn ended(&self, state: &State) -> Option<NetError> {
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

    /// The peer ended in good order: what it sent before can still be taken.
    pub(crate) fn peer_closed(&self, peer: usize) {
        self.end_peer(peer, NetError::PeerClosed { peer });
    }

    /// The peer vanished: what it sent before can still be taken, but nobody waits any more.
    pub(crate) fn peer_lost(&self, peer: usize, error: NetError) {
        self.lock().lost.get_or_insert_with(|| error.clone());
        self.end_peer(peer, error);
    }

    /// The peer aborted or broke the protocol: all stops.
    pub(crate) fn peer_failed(&self, peer: usize, error: NetError) {
        self.lock().fatal.get_or_insert_with(|| error.clone());
        self.end_peer(peer, error);
        self.call_more();
    }

    fn end_peer(&self, peer: usize, error: NetError) {
        self.lock().end_peer(peer, error);
        self.arrived.notify_all();
        self.space.notify_all();
    }

    /// We ended: nobody can add or take anything any more. The queues are emptied.
    pub(crate) fn close_owner(&self, reason: &str) {
        let mut state = self.lock();
        state.owner_closed.get_or_insert_with(|| reason.to_owned());
        for queue in &mut state.queues {
            queue.messages.clear();
            queue.bytes = 0;
            queue.midway = 0;
            queue.held = false;
        }
        drop(state);
        self.arrived.notify_all();
        self.space.notify_all();
        self.call_more();
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

    /// Waits up to `limit` until nothing can be sent to `to` any more, and tells why.
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

    fn malformed(&self, peer: usize, detail: String) -> NetError {
        let error = NetError::MalformedFrame { peer, detail };
        self.peer_failed(peer, error.clone());
        error
    }
}

/// By how much a thread of this machine wakes up late, when nothing else delays it: the smallest of several.
fn wake_up_lateness() -> Duration {
    const NAP: Duration = Duration::from_micros(200);
    let (lock, never) = (Mutex::new(()), Condvar::new());
    let late = || {
        let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let start = Instant::now();
        drop(never.wait_timeout(guard, NAP));
        start.elapsed().saturating_sub(NAP)
    };
    (1..15).fold(late(), |least, _| least.min(late()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(10);

    fn is_internal<T>(result: &Result<T, NetError>) -> bool {
        matches!(result, Err(NetError::Internal { .. }))
    }

    #[test]
    fn finding_11_blocked_a_message_without_a_queue_ends_the_session() {
        let inbox = Inbox::new(0, 2, DEFAULT_QUEUE_LIMIT);
        let message = || Message {
            payload: vec![1, 2, 3],
            wire: 3,
        };
        // It is not lost without a word.
        for refused in [inbox.push(2, message(), SOON), inbox.deliver(2, message())] {
            assert!(matches!(
                refused,
                Err(PushError::Ended(NetError::Internal { .. }))
            ));
        }
        assert!(is_internal(&inbox.note_progress(2, 3)));
        assert!(is_internal(&inbox.has_ended(2)));
        assert!(is_internal(&inbox.shape(
            2,
            LinkShape::new(Duration::ZERO, None).unwrap(),
            Duration::ZERO
        )));
        // Where there is nobody to take the error, every wait of the session ends with it.
        inbox.peer_closed(2);
        assert!(is_internal(&inbox.pop(1, 3, SOON, String::new).map(drop)));
        assert!(is_internal(&inbox.check_open(1)));
    }

    #[test]
    fn finding_11_blocked_room_for_nobody_is_not_room() {
        let inbox = Inbox::new(0, 2, DEFAULT_QUEUE_LIMIT);
        assert!(!inbox.has_room(2));
        assert!(inbox.failure().is_some());
    }
}
