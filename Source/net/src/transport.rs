//! The trait through which the engine sends and receives.

use crate::{Counters, NetError};

/// How long a message may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// This number of bytes.
    Exactly(usize),
    /// The sender's choice, up to this number of bytes.
    AtMost(usize),
}

impl Length {
    /// Bytes of the longest message.
    #[must_use]
    pub fn most(self) -> usize {
        match self {
            Self::Exactly(bytes) | Self::AtMost(bytes) => bytes,
        }
    }
}

/// Channels from one party to each of the others: messages arrive whole, unaltered and in the order of sending.
///
/// `send` and `recv` never wait for ever. When any peer aborts, or sends garbage, every later call fails at once
/// with that peer's error; when a peer is lost (killed, cut off), every call that would have to wait fails at once.
/// An orderly close of a peer fails only the calls that concern that peer.
pub trait Transport: Send {
    /// Our own index, in `0..parties()`.
    fn party(&self) -> usize;

    /// Number of parties, ourselves included.
    fn parties(&self) -> usize;

    /// Sends one message to party `to` (not ourselves). Returns when the message is handed over to the network,
    /// not when it is received.
    ///
    /// # Errors
    /// [`NetError::Timeout`] if the peer accepts no bytes for the whole timeout, and every
    /// error that ends the session.
    fn send(&mut self, to: usize, payload: &[u8]) -> Result<(), NetError>;

    /// Announces that `bytes` of party `from` will be taken: they may arrive before [`Transport::take`] asks for them. Parties that send each
    /// other long messages before they take any announce them first: beyond a bound on bytes that are not asked for, sends wait.
    ///
    /// # Errors
    /// [`NetError::NoSuchPeer`], and every error that ends the session.
    fn expect(&mut self, _from: usize, _bytes: usize) -> Result<(), NetError> {
        Ok(())
    }

    /// Takes the next message of party `from`. On a simulated link that is before it is delivered: call
    /// [`Transport::settle`] before anything depends on it. For messages of several parties, which are then waited for once.
    ///
    /// # Errors
    /// [`NetError::MalformedFrame`] for another length, [`NetError::Timeout`], and every error that ends the session.
    fn take(&mut self, from: usize, len: Length) -> Result<Vec<u8>, NetError>;

    /// Waits until all messages that were taken are delivered.
    ///
    /// # Errors
    /// Every error that ends the session.
    fn settle(&mut self) -> Result<(), NetError>;

    /// Takes the next message of party `from`, which must be exactly `len` bytes long.
    ///
    /// # Errors
    /// As [`Transport::take`].
    fn recv(&mut self, from: usize, len: usize) -> Result<Vec<u8>, NetError> {
        let message = self.take(from, Length::Exactly(len))?;
        self.settle()?;
        Ok(message)
    }

    /// Takes the next message of party `from`, which must be at most `max` bytes long.
    ///
    /// # Errors
    /// As [`Transport::take`].
    fn recv_any_len(&mut self, from: usize, max: usize) -> Result<Vec<u8>, NetError> {
        let message = self.take(from, Length::AtMost(max))?;
        self.settle()?;
        Ok(message)
    }

    /// Traffic so far.
    fn counters(&self) -> &Counters;

    /// Orderly end. What was sent before is still delivered; a peer that waits for more from us gets
    /// [`NetError::PeerClosed`]. May be called twice. If the last `send` or `recv` failed, it aborts with that error
    /// instead, so that all parties receive the first cause.
    fn close(&mut self);

    /// Stops every party at once: each peer's pending and later calls fail with [`NetError::PeerAborted`] and `reason`.
    fn abort(&mut self, reason: &str);
}
