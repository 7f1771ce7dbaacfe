//! Messages that have arrived at one party and are not taken yet.
//!
//! Modules: `queue` (one queue a peer, and the state of the session), `ends` (how peers and the session end), `simulated` (delays of
//! simulated links).

mod ends;
mod queue;
mod simulated;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use self::queue::{NO_QUEUE, Queue, Queued, State, cost, on_the_wire};
use crate::NetError;

pub(crate) use queue::{Message, PushError};

/// The slowest link that a long message is waited for, in bytes a second: bounds the wait for a peer that sends a few bytes now and then.
pub(crate) const SLOWEST_LINK: u64 = 64 * 1024;

/// Default bound on the bytes that one peer makes us keep beyond those that we wait for.
pub(crate) const DEFAULT_QUEUE_LIMIT: usize = 64 << 20;

/// Queues of arrived messages, one per peer, each bounded in bytes: by a limit, and what we wait for or have announced to take. All messages of one
/// read from the network are queued, even beyond the bound. Within one process a queue that is empty takes a message of any size.
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
    /// How late a thread of this machine wakes up, in nanoseconds; measured when a link is shaped.
    lateness: AtomicU64,
    /// See [`Inbox::on_space`].
    more: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Inbox {
    pub(crate) fn new(me: usize, parties: usize, limit: usize) -> Self {
        Self {
            me,
            limit,
            state: Mutex::new(State {
                queues: (0..parties).map(|_| Queue::default()).collect(),
                shared: None,
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
        queue.under_way = bytes;
        queue.refresh(self.limit);
        // A thread that waits for the message checks whether it has become too long.
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
                return self.enqueue(state, from, message, arrival);
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
        queue.under_way = cost(&message);
        queue.refresh(self.limit);
        queue.under_way = 0;
        self.enqueue(state, from, message, arrival)
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

    fn enqueue(
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
            .map(|pacer| pacer.last(message.wire, arrival, message.leaves))
            .transpose()
            .map_err(PushError::Ended)?;
        queue.bytes += cost;
        queue.messages.push_back(Queued { message, due });
        // A thread that waits for another peer is not woken: with many peers most messages come before they are asked for.
        let awaited = queue.waiting > 0;
        drop(state);
        let counted = self.count_progress(from, cost);
        if awaited {
            self.arrived.notify_all();
        }
        counted.map_err(PushError::Ended)
    }

    /// Sets the function that is called when [`Inbox::may_read`] may have become true.
    pub(crate) fn on_space(&self, call: Box<dyn Fn() + Send + Sync>) -> Result<(), NetError> {
        let set = self.more.set(call);
        set.map_err(|_| NetError::internal("two readers of one inbox"))
    }

    /// Whether more of `from` should be read: its queue is not full, or the session is over and nothing is queued any more.
    pub(crate) fn may_read(&self, from: usize) -> bool {
        let mut state = self.lock();
        match state.queue(from) {
            Ok(queue) if queue.full => state.fatal.is_some() || state.owner_closed.is_some(),
            Ok(_) => true,
            Err(error) => {
                state.fatal.get_or_insert(error);
                false
            }
        }
    }

    fn notify_reader(&self) {
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
                    self.notify_reader();
                }
                return Ok((message, due));
            }
            if let Some(ended) = &queue.ended {
                return Err(ended.clone());
            }
            if queue.under_way > on_the_wire(expected) {
                drop(state);
                return Err(self.malformed(
                    from,
                    format!("a message of more than the {expected} bytes that are due"),
                ));
            }
            if queue.awaited != expected {
                queue.awaited = expected;
                if queue.refresh(self.limit) {
                    self.notify_reader();
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

    /// Raises the bound of `from` by `bytes`, until so many are taken.
    pub(crate) fn expect(&self, from: usize, bytes: usize) -> Result<(), NetError> {
        self.check_peer(from)?;
        let mut state = self.lock();
        let queue = state.queue(from)?;
        queue.announced = queue.announced.saturating_add(bytes);
        let resumes = queue.refresh(self.limit);
        drop(state);
        if resumes {
            self.notify_reader();
        }
        Ok(())
    }
}
