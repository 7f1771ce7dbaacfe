//! Parties in one process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::one_line;
use crate::frame::MAX_REASON;
use crate::inbox::{Inbox, Message, PushError};
use crate::receive::Receiver;
use crate::shape::{Bucket, LinkShape};
use crate::{Counters, Length, NetError, Transport};

/// Bound on the bytes queued from one party of this process.
const QUEUE_LIMIT: usize = 1 << 30;

/// One party of an in-process mesh: messages are moved through bounded queues in memory. Move each to its own thread.
///
/// Dropping it closes it; dropping it in a panic aborts the session.
pub struct LocalTransport {
    me: usize,
    inboxes: Vec<Arc<Inbox>>,
    receiver: Receiver,
    /// Of everything that it sends, on simulated links that share their bandwidth.
    egress: Option<Bucket>,
    closed: bool,
}

/// Makes `n` connected in-process parties, in order of index; every wait of theirs ends after `timeout`.
#[must_use]
pub fn local_mesh(n: usize, timeout: Duration) -> Vec<LocalTransport> {
    local_mesh_with_limit(n, timeout, QUEUE_LIMIT)
}

/// As [`local_mesh`], with simulated links between all parties.
///
/// # Errors
/// [`NetError::Internal`].
pub fn shaped_local_mesh(
    n: usize,
    timeout: Duration,
    shape: LinkShape,
) -> Result<Vec<LocalTransport>, NetError> {
    let mut mesh = local_mesh(n, timeout);
    for party in &mut mesh {
        party.egress = shape.is_shared().then(|| Bucket::new(shape));
        for peer in (0..n).filter(|peer| *peer != party.me) {
            let inbox = &party.receiver.inbox;
            inbox.shape(peer, shape, Duration::ZERO)?;
        }
    }
    Ok(mesh)
}

pub(crate) fn local_mesh_with_limit(
    n: usize,
    timeout: Duration,
    limit: usize,
) -> Vec<LocalTransport> {
    let inboxes: Vec<Arc<Inbox>> = (0..n)
        .map(|me| Arc::new(Inbox::new(me, n, limit)))
        .collect();
    inboxes
        .iter()
        .enumerate()
        .map(|(me, own)| LocalTransport {
            me,
            inboxes: inboxes.clone(),
            receiver: Receiver::new(Arc::clone(own), n, timeout),
            egress: None,
            closed: false,
        })
        .collect()
}

impl LocalTransport {
    fn put(&mut self, to: usize, payload: &[u8]) -> Result<(), NetError> {
        self.receiver.inbox.check_open(to)?;
        let Some(inbox) = self.inboxes.get(to) else {
            return Err(NetError::NoSuchPeer {
                index: to,
                me: self.me,
                parties: self.inboxes.len(),
            });
        };
        let message = Message {
            payload: payload.to_vec(),
            wire: payload.len(),
            leaves: (self.egress.as_mut()).map(|bucket| bucket.pass(payload.len(), Instant::now())),
        };
        match inbox.push(self.me, message, self.receiver.timeout) {
            Ok(()) => {
                let counters = &mut self.receiver.counters;
                counters.count_sent(to, payload.len(), payload.len())
            }
            Err(PushError::OwnerClosed) => {
                // The peer's abort or close reaches our inbox as well, and is more specific.
                self.receiver.inbox.check_open(to)?;
                Err(NetError::PeerClosed { peer: to })
            }
            Err(PushError::Ended(error)) => {
                self.receiver.inbox.check_open(to)?;
                Err(error)
            }
            Err(PushError::Full) => Err(NetError::Timeout {
                peer: to,
                waiting_for: format!(
                    "it to take a message of {} bytes ({:.1} s)",
                    payload.len(),
                    self.receiver.timeout.as_secs_f64()
                ),
            }),
        }
    }

    fn peers(&self) -> impl Iterator<Item = &Arc<Inbox>> {
        let me = self.me;
        self.inboxes
            .iter()
            .enumerate()
            .filter(move |(index, _)| *index != me)
            .map(|(_, inbox)| inbox)
    }
}

impl Transport for LocalTransport {
    fn party(&self) -> usize {
        self.me
    }

    fn parties(&self) -> usize {
        self.inboxes.len()
    }

    fn send(&mut self, to: usize, payload: &[u8]) -> Result<(), NetError> {
        let result = self.put(to, payload);
        self.receiver.note(result)
    }

    fn take(&mut self, from: usize, len: Length) -> Result<Vec<u8>, NetError> {
        self.receiver.take(from, len)
    }

    fn settle(&mut self) -> Result<(), NetError> {
        self.receiver.settle()
    }

    fn counters(&self) -> &Counters {
        &self.receiver.counters
    }

    fn close(&mut self) {
        if self.closed {
            return;
        }
        if let Some(reason) = self.receiver.failure() {
            return self.abort(&reason);
        }
        self.closed = true;
        for inbox in self.peers() {
            inbox.peer_closed(self.me);
        }
        self.receiver.inbox.close_owner("closed");
    }

    fn abort(&mut self, reason: &str) {
        if self.closed {
            return;
        }
        self.closed = true;
        let reason = one_line(reason, MAX_REASON);
        for inbox in self.peers() {
            inbox.peer_failed(
                self.me,
                NetError::PeerAborted {
                    peer: self.me,
                    reason: reason.clone(),
                },
            );
        }
        self.receiver
            .inbox
            .close_owner(&format!("aborted: {reason}"));
    }
}

impl Drop for LocalTransport {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.abort("its thread panicked");
        }
        self.close();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic
mod tests {
    use super::*;
    use std::thread;
    use std::time::Instant;

    fn pair(timeout_ms: u64) -> (LocalTransport, LocalTransport) {
        let mut mesh = local_mesh(2, Duration::from_millis(timeout_ms));
        let one = mesh.pop().unwrap();
        (mesh.pop().unwrap(), one)
    }

    #[test]
    fn messages_arrive_in_order_and_are_counted() {
        let (mut zero, mut one) = pair(1000);
        zero.send(1, b"abc").unwrap();
        zero.send(1, b"").unwrap();
        assert_eq!(one.recv(0, 3).unwrap(), b"abc");
        assert_eq!(one.recv_any_len(0, 10).unwrap(), b"");
        assert_eq!(zero.counters().peer(1).unwrap().payload_sent, 3);
        assert_eq!(zero.counters().peer(1).unwrap().messages_sent, 2);
        assert_eq!(one.counters().total().payload_received, 3);
        assert_eq!(one.counters().total().messages_received, 2);
    }

    #[test]
    fn wrong_length_names_the_sender() {
        let (mut zero, mut one) = pair(1000);
        zero.send(1, b"abc").unwrap();
        zero.send(1, b"abc").unwrap();
        assert!(matches!(
            one.recv(0, 4),
            Err(NetError::MalformedFrame { peer: 0, .. })
        ));
        assert!(matches!(
            one.recv_any_len(0, 2),
            Err(NetError::MalformedFrame { peer: 0, .. })
        ));
    }

    #[test]
    fn waits_end() {
        let (_zero, mut one) = pair(50);
        let start = Instant::now();
        assert!(matches!(
            one.recv(0, 1),
            Err(NetError::Timeout { peer: 0, .. })
        ));
        assert!(start.elapsed() < Duration::from_secs(1));
    }

    #[test]
    fn full_queue_pushes_back_and_times_out() {
        let mut mesh = local_mesh_with_limit(2, Duration::from_millis(50), 1000);
        let mut one = mesh.pop().unwrap();
        let mut zero = mesh.pop().unwrap();
        zero.send(1, &[0; 5000]).unwrap();
        assert!(matches!(
            zero.send(1, &[0; 1]),
            Err(NetError::Timeout { peer: 1, .. })
        ));
        one.recv(0, 5000).unwrap();
        zero.send(1, &[0; 1]).unwrap();
    }

    #[test]
    fn abort_stops_everybody_at_once() {
        let mut mesh = local_mesh(3, Duration::from_secs(30));
        let mut two = mesh.pop().unwrap();
        let mut one = mesh.pop().unwrap();
        let mut zero = mesh.pop().unwrap();
        // One waits for zero, not for the party that aborts.
        let waiting = thread::spawn(move || one.recv(0, 1));
        thread::sleep(Duration::from_millis(20));
        two.abort("bad\nshare");
        let got = waiting.join().unwrap();
        assert!(
            matches!(&got, Err(NetError::PeerAborted { peer: 2, reason }) if reason == "bad share")
        );
        assert!(matches!(
            zero.send(1, b"x"),
            Err(NetError::PeerAborted { peer: 2, .. })
        ));
        assert!(matches!(
            two.send(1, b"x"),
            Err(NetError::Closed { me: 2, .. })
        ));
    }

    #[test]
    fn close_delivers_what_was_sent() {
        let (mut zero, mut one) = pair(5000);
        zero.send(1, b"last").unwrap();
        drop(zero);
        assert_eq!(one.recv(0, 4).unwrap(), b"last");
        assert!(matches!(
            one.recv(0, 1),
            Err(NetError::PeerClosed { peer: 0 })
        ));
        assert!(matches!(
            one.send(0, b"x"),
            Err(NetError::PeerClosed { peer: 0 })
        ));
    }

    #[test]
    fn a_failure_reaches_all_parties() {
        let mut mesh = local_mesh(3, Duration::from_millis(50));
        let mut two = mesh.pop().unwrap();
        let mut one = mesh.pop().unwrap();
        let mut zero = mesh.pop().unwrap();
        two.send(1, b"first").unwrap();
        assert!(one.recv(0, 1).is_err());
        drop(one);
        let error = two.recv(0, 1).unwrap_err().to_string();
        assert!(
            error.contains("party 1 aborted: party 0 kept us waiting"),
            "{error}"
        );
        // A party that succeeds after a failure ends as usual.
        assert!(zero.recv(1, 1).is_err());
        let mut mesh = local_mesh(2, Duration::from_millis(50));
        let mut one = mesh.pop().unwrap();
        let mut zero = mesh.pop().unwrap();
        assert!(zero.recv(1, 1).is_err());
        zero.send(1, b"x").unwrap();
        drop(zero);
        assert_eq!(one.recv(0, 1).unwrap(), b"x");
    }

    #[test]
    fn a_close_concerns_that_peer_alone() {
        let mut mesh = local_mesh(3, Duration::from_secs(5));
        drop(mesh.pop());
        let mut one = mesh.pop().unwrap();
        let mut zero = mesh.pop().unwrap();
        zero.send(1, b"x").unwrap();
        assert_eq!(one.recv(0, 1).unwrap(), b"x");
    }

    #[test]
    fn own_index_is_refused() {
        let (mut zero, _one) = pair(100);
        assert!(matches!(
            zero.send(0, b""),
            Err(NetError::NoSuchPeer { index: 0, .. })
        ));
        assert!(matches!(
            zero.recv(7, 1),
            Err(NetError::NoSuchPeer { index: 7, .. })
        ));
    }
}
