//! Simulated links: messages are delivered later than they arrive.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Inbox;
use super::queue::State;
use crate::NetError;
use crate::shape::{Bucket, LinkShape, Pacer};

impl Inbox {
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
        let mut state = self.lock();
        let new = || Arc::new(Mutex::new(Bucket::new(shape)));
        let bucket = if shape.is_shared() {
            Arc::clone(state.shared.get_or_insert_with(new))
        } else {
            new()
        };
        state.queue(from)?.pacer = Some(Pacer::new(shape, path, bucket));
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

    /// Waits until a simulated link delivers a message, after `left`, or until the session's state changes.
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
}

/// How late a thread of this machine wakes up when nothing else delays it: the minimum of several attempts.
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
