//! Traffic counters.

use crate::NetError;

/// Traffic between us and one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerCounters {
    /// Payload bytes sent: the messages of the protocol.
    pub payload_sent: u64,
    /// Payload bytes delivered to the caller.
    pub payload_received: u64,
    /// Bytes put on the wire, with framing and encryption (in-process: the payload alone).
    pub wire_sent: u64,
    /// Bytes taken off the wire, with framing and encryption (in-process: the payload alone).
    pub wire_received: u64,
    /// Messages sent.
    pub messages_sent: u64,
    /// Messages delivered to the caller.
    pub messages_received: u64,
}

impl PeerCounters {
    fn plus(self, other: Self) -> Self {
        Self {
            payload_sent: self.payload_sent + other.payload_sent,
            payload_received: self.payload_received + other.payload_received,
            wire_sent: self.wire_sent + other.wire_sent,
            wire_received: self.wire_received + other.wire_received,
            messages_sent: self.messages_sent + other.messages_sent,
            messages_received: self.messages_received + other.messages_received,
        }
    }
}

/// Traffic of one party, per peer. Set-up traffic (TLS handshakes, hellos) is not counted.
///
/// A message counts as received when it is handed to the caller, so the figures of a phase do not depend
/// on how early the network delivered it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    peers: Vec<PeerCounters>,
}

impl Counters {
    /// Counters of a transport among this many parties, at zero.
    #[must_use]
    pub fn new(parties: usize) -> Self {
        Self {
            peers: vec![PeerCounters::default(); parties],
        }
    }

    /// Traffic with party `index` (zeros for ourselves); `None` if there is no such party.
    #[must_use]
    pub fn peer(&self, index: usize) -> Option<PeerCounters> {
        self.peers.get(index).copied()
    }

    /// Traffic with each party in order of index, ourselves (zeros) included.
    #[must_use]
    pub fn peers(&self) -> &[PeerCounters] {
        &self.peers
    }

    /// Traffic with all peers together.
    #[must_use]
    pub fn total(&self) -> PeerCounters {
        self.peers
            .iter()
            .fold(PeerCounters::default(), |sum, &peer| sum.plus(peer))
    }

    fn of(&mut self, index: usize) -> Result<&mut PeerCounters, NetError> {
        self.peers.get_mut(index).ok_or(NetError::internal(
            "traffic with a party that has no counters",
        ))
    }

    /// Counts a message to party `to`.
    ///
    /// # Errors
    /// [`NetError::Internal`] if there are no counters of this party.
    pub fn count_sent(&mut self, to: usize, payload: usize, wire: usize) -> Result<(), NetError> {
        let peer = self.of(to)?;
        peer.payload_sent += payload as u64;
        peer.wire_sent += wire as u64;
        peer.messages_sent += 1;
        Ok(())
    }

    /// Counts a message of party `from`.
    ///
    /// # Errors
    /// [`NetError::Internal`] if there are no counters of this party.
    pub fn count_received(
        &mut self,
        from: usize,
        payload: usize,
        wire: usize,
    ) -> Result<(), NetError> {
        let peer = self.of(from)?;
        peer.payload_received += payload as u64;
        peer.wire_received += wire as u64;
        peer.messages_received += 1;
        Ok(())
    }
}
