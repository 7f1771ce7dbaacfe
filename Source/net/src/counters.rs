//! Traffic counters.

/// Traffic between us and one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerCounters {
    /// Payload bytes sent: what the protocol asked for.
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

    fn minus(self, other: Self) -> Self {
        Self {
            payload_sent: self.payload_sent.saturating_sub(other.payload_sent),
            payload_received: self.payload_received.saturating_sub(other.payload_received),
            wire_sent: self.wire_sent.saturating_sub(other.wire_sent),
            wire_received: self.wire_received.saturating_sub(other.wire_received),
            messages_sent: self.messages_sent.saturating_sub(other.messages_sent),
            messages_received: self
                .messages_received
                .saturating_sub(other.messages_received),
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

    /// Traffic with party `index` (zeros for ourselves or an unknown index).
    #[must_use]
    pub fn peer(&self, index: usize) -> PeerCounters {
        self.peers.get(index).copied().unwrap_or_default()
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

    /// What was added since `earlier`, a copy of these counters.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let peers = self
            .peers
            .iter()
            .enumerate()
            .map(|(index, peer)| peer.minus(earlier.peer(index)))
            .collect();
        Self { peers }
    }

    /// Counts a message to party `to`.
    pub fn count_sent(&mut self, to: usize, payload: usize, wire: usize) {
        if let Some(peer) = self.peers.get_mut(to) {
            peer.payload_sent += payload as u64;
            peer.wire_sent += wire as u64;
            peer.messages_sent += 1;
        }
    }

    /// Counts a message of party `from`.
    pub fn count_received(&mut self, from: usize, payload: usize, wire: usize) {
        if let Some(peer) = self.peers.get_mut(from) {
            peer.payload_received += payload as u64;
            peer.wire_received += wire as u64;
            peer.messages_received += 1;
        }
    }
}
