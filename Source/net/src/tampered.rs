//! A party of this process whose outgoing messages are changed, for tests of what the other parties notice.
//!
//! It wraps a [`LocalTransport`] and nothing else, so no party that is connected over a network can have one.

use crate::{Counters, Length, LocalTransport, NetError, Transport};

/// A party of an in-process mesh that sends other messages than its owner asks it to.
pub struct TamperedTransport<F> {
    inner: LocalTransport,
    tamper: F,
}

impl LocalTransport {
    /// The same party, of which `tamper` gets every outgoing message with its receiver. The messages that it returns are sent instead, in their order: none, one or
    /// several. For tests.
    #[must_use]
    pub fn tampered<F>(self, tamper: F) -> TamperedTransport<F>
    where
        F: FnMut(usize, &[u8]) -> Vec<Vec<u8>> + Send,
    {
        TamperedTransport {
            inner: self,
            tamper,
        }
    }
}

impl<F> Transport for TamperedTransport<F>
where
    F: FnMut(usize, &[u8]) -> Vec<Vec<u8>> + Send,
{
    fn party(&self) -> usize {
        self.inner.party()
    }

    fn parties(&self) -> usize {
        self.inner.parties()
    }

    fn send(&mut self, to: usize, payload: &[u8]) -> Result<(), NetError> {
        for message in (self.tamper)(to, payload) {
            self.inner.send(to, &message)?;
        }
        Ok(())
    }

    fn expect(&mut self, from: usize, bytes: usize) -> Result<(), NetError> {
        self.inner.expect(from, bytes)
    }

    fn take(&mut self, from: usize, len: Length) -> Result<Vec<u8>, NetError> {
        self.inner.take(from, len)
    }

    fn settle(&mut self) -> Result<(), NetError> {
        self.inner.settle()
    }

    fn counters(&self) -> &Counters {
        self.inner.counters()
    }

    fn close(&mut self) {
        self.inner.close();
    }

    fn abort(&mut self, reason: &str) {
        self.inner.abort(reason);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::local_mesh;

    #[test]
    fn messages_are_changed_doubled_and_left_out() {
        let mut mesh = local_mesh(2, Duration::from_millis(50));
        let mut one = mesh.pop().unwrap();
        let mut zero = mesh.pop().unwrap().tampered(|to, message| match message {
            b"drop" => Vec::new(),
            b"twice" => vec![message.to_vec(); 2],
            _ => vec![[message, &[to as u8]].concat()],
        });
        for message in [b"drop".as_slice(), b"twice", b"more"] {
            zero.send(1, message).unwrap();
        }
        assert_eq!(one.recv(0, 5).unwrap(), b"twice");
        assert_eq!(one.recv(0, 5).unwrap(), b"twice");
        assert_eq!(one.recv(0, 5).unwrap(), b"more\x01");
        assert!(matches!(
            one.recv(0, 1),
            Err(NetError::Timeout { peer: 0, .. })
        ));
    }
}
