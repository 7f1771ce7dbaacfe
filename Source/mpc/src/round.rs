//! One communication round: what every task wants to send is joined in one message a peer.

use keyquorum_math::Domain;
use keyquorum_net::{Length, NetError, Transport};

use crate::bytes::SecretBytes;
use crate::error::{EngineError, Result};

/// Bytes of the tag at the start of every message.
const TAG: usize = 8;

/// Collects what leaves in this round and how much is expected from whom.
pub struct Outbox {
    /// One message a peer: empty, or room for the tag and then the payload.
    buffers: Vec<SecretBytes>,
    expected: Vec<usize>,
}

/// A message, which starts with room for the tag.
fn tagged(message: &mut SecretBytes) -> &mut Vec<u8> {
    if message.is_empty() {
        message.resize(TAG, 0);
    }
    message
}

impl Outbox {
    pub(crate) fn new(parties: usize) -> Self {
        Self {
            buffers: (0..parties).map(|_| SecretBytes::default()).collect(),
            expected: vec![0; parties],
        }
    }

    /// Queues elements for one peer.
    pub fn send<D: Domain>(&mut self, domain: &D, to: usize, elements: &[D::E]) {
        if let Some(buffer) = self.buffers.get_mut(to) {
            domain.encode(elements, tagged(buffer));
        }
    }

    /// Announces that `n` elements come from this peer.
    pub fn expect<D: Domain>(&mut self, domain: &D, from: usize, n: usize) {
        if let Some(expected) = self.expected.get_mut(from) {
            *expected += domain.wire_bytes(n);
        }
    }

    /// What leaves for one peer, for bytes that are made in place.
    pub fn buffer(&mut self, to: usize) -> Result<&mut Vec<u8>> {
        self.buffers
            .get_mut(to)
            .map(tagged)
            .ok_or_else(|| EngineError::protocol(format!("no such party: {to}")))
    }

    /// Announces that `n` bytes come from this peer.
    pub fn expect_bytes(&mut self, from: usize, n: usize) {
        if let Some(expected) = self.expected.get_mut(from) {
            *expected += n;
        }
    }

    /// Sends and receives everything. Each message starts with a tag (round number and a digest of the schedule),
    /// so that parties which run different computations notice at once. Returns the inbox and the payload bytes
    /// (sent, received), tags not counted.
    pub(crate) fn exchange(
        mut self,
        net: &mut dyn Transport,
        tag: u64,
    ) -> Result<(Inbox, u64, u64)> {
        let me = net.party();
        let parties = net.parties();
        let failed = |error: NetError| EngineError::network(format!("round {}", tag >> 32), error);
        let (mut sent, mut received) = (0u64, 0u64);
        for step in 1..parties {
            let to = (me + step) % parties;
            let Some(mut message) = self.buffers.get_mut(to).map(std::mem::take) else {
                continue;
            };
            if message.len() <= TAG {
                continue;
            }
            sent += (message.len() - TAG) as u64;
            if let Some(place) = message.first_chunk_mut::<TAG>() {
                *place = tag.to_le_bytes();
            }
            net.send(to, &message).map_err(failed)?;
        }
        let mut inbox = Inbox {
            buffers: (0..parties).map(|_| Default::default()).collect(),
        };
        for step in 1..parties {
            let from = (me + parties - step) % parties;
            let expected = self.expected.get(from).copied().unwrap_or(0);
            if expected == 0 {
                continue;
            }
            let due = Length::Exactly(expected + TAG);
            let data = SecretBytes::new(net.take(from, due).map_err(failed)?);
            let theirs = data
                .first_chunk::<TAG>()
                .map_or(0, |t| u64::from_le_bytes(*t));
            if theirs != tag {
                return Err(EngineError::protocol(format!(
                    "party {from} is at another step of the computation (round {} there, {} here): all parties must run the same program with the same arguments, for the same purpose",
                    theirs >> 32,
                    tag >> 32
                )));
            }
            received += expected as u64;
            if let Some(slot) = inbox.buffers.get_mut(from) {
                *slot = (data, TAG);
            }
        }
        net.settle().map_err(failed)?;
        Ok((inbox, sent, received))
    }
}

/// What arrived in this round, taken apart in the order in which it was queued.
pub struct Inbox {
    buffers: Vec<(SecretBytes, usize)>,
}

impl Inbox {
    /// Takes the next `n` bytes of a peer.
    pub fn take_bytes(&mut self, from: usize, n: usize) -> Result<&[u8]> {
        let (data, at) = self
            .buffers
            .get_mut(from)
            .ok_or_else(|| EngineError::protocol(format!("no such party: {from}")))?;
        let end = *at + n;
        let slice = data.get(*at..end).ok_or_else(|| {
            EngineError::protocol(format!("party {from} sent a message that is too short"))
        })?;
        *at = end;
        Ok(slice)
    }

    /// Takes the next `n` elements of a peer; refuses short or non-canonical data.
    pub fn take<D: Domain>(&mut self, domain: &D, from: usize, n: usize) -> Result<Vec<D::E>> {
        let bytes = domain.wire_bytes(n);
        let (data, at) = self
            .buffers
            .get_mut(from)
            .ok_or_else(|| EngineError::protocol(format!("no such party: {from}")))?;
        let end = *at + bytes;
        let slice = data.get(*at..end).ok_or_else(|| {
            EngineError::protocol(format!("party {from} sent a message that is too short"))
        })?;
        let mut out = vec![D::E::default(); n];
        domain.decode(slice, &mut out).map_err(|e| {
            EngineError::protocol(format!(
                "party {from} sent a malformed vector of {}: {e}",
                domain.kind()
            ))
        })?;
        *at = end;
        Ok(out)
    }
}
