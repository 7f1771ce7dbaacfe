//! One communication round: what every task wants to send is joined in one message a peer. `graph/rounds.rs` chooses the tasks of a round.

use keyquorum_math::Domain;
use keyquorum_net::{Length, NetError, Transport};

use crate::bytes::SecretBytes;
use crate::error::{EngineError, Result};

/// Bytes of the tag at the start of every message.
const TAG: usize = 8;

/// Collects the messages of this round, and how many bytes are expected from whom.
pub struct Outbox {
    /// One message a peer: empty, or the bytes of the tag and then the payload.
    buffers: Vec<SecretBytes>,
    expected: Vec<usize>,
    /// A task wanted to send to, or receive from, a party that does not exist: then nothing is sent.
    stray: Option<usize>,
}

fn no_such_party(number: usize) -> EngineError {
    EngineError::internal(format!("a message of party {number}, which does not exist"))
}

/// A message, which starts with the bytes of the tag.
fn tagged(message: &mut SecretBytes) -> &mut Vec<u8> {
    if message.is_empty() {
        message.resize(TAG, 0);
    }
    message
}

impl Outbox {
    /// An empty one, among so many parties.
    pub fn new(parties: usize) -> Self {
        Self {
            buffers: (0..parties).map(|_| SecretBytes::default()).collect(),
            expected: vec![0; parties],
            stray: None,
        }
    }

    /// Queues elements for one peer.
    pub fn send<D: Domain>(&mut self, domain: &D, to: usize, elements: &[D::E]) {
        match self.buffers.get_mut(to) {
            Some(buffer) => domain.encode(elements, tagged(buffer)),
            None => self.stray = Some(to),
        }
    }

    /// Announces that `n` elements come from this peer.
    pub fn expect<D: Domain>(&mut self, domain: &D, from: usize, n: usize) {
        self.expect_bytes(from, domain.wire_bytes(n));
    }

    /// The message to one peer, for bytes that are made in place.
    pub fn buffer(&mut self, to: usize) -> Result<&mut Vec<u8>> {
        self.buffers
            .get_mut(to)
            .map(tagged)
            .ok_or_else(|| no_such_party(to))
    }

    /// Announces that `n` bytes come from this peer.
    pub fn expect_bytes(&mut self, from: usize, n: usize) {
        match self.expected.get_mut(from) {
            Some(expected) => *expected += n,
            None => self.stray = Some(from),
        }
    }

    /// Sends and receives everything. Each message starts with a tag (round number and a digest of the schedule),
    /// so that parties which run different computations notice at once. Returns the inbox and the payload bytes
    /// (sent, received), tags not counted.
    pub fn exchange(mut self, net: &mut dyn Transport, tag: u64) -> Result<(Inbox, u64, u64)> {
        let me = net.party();
        let parties = net.parties();
        let failed = |error: NetError| EngineError::network(format!("round {}", tag >> 32), error);
        if let Some(stray) = self.stray {
            return Err(EngineError::internal(format!(
                "a message to or from party {stray} of {parties}"
            )));
        }
        if self.buffers.len() != parties {
            return Err(EngineError::internal("a round among other parties"));
        }
        // First, so that all can send before they take anything, however long the messages are.
        for (from, expected) in self.expected.iter().enumerate() {
            if *expected > 0 {
                net.expect(from, expected + TAG).map_err(failed)?;
            }
        }
        let (mut sent, mut received) = (0u64, 0u64);
        for step in 1..parties {
            let to = (me + step) % parties;
            let message = self.buffers.get_mut(to);
            let mut message = std::mem::take(message.ok_or_else(|| no_such_party(to))?);
            if message.is_empty() {
                continue;
            }
            let parts = message.split_first_chunk_mut::<TAG>();
            let (tag_bytes, payload) = parts
                .ok_or_else(|| EngineError::internal("a message without bytes for its tag"))?;
            if payload.is_empty() {
                continue;
            }
            sent += payload.len() as u64;
            *tag_bytes = tag.to_le_bytes();
            net.send(to, &message).map_err(failed)?;
        }
        let mut inbox = Inbox {
            buffers: (0..parties).map(|_| Default::default()).collect(),
        };
        for step in 1..parties {
            let from = (me + parties - step) % parties;
            let expected = *self.expected.get(from).ok_or_else(|| no_such_party(from))?;
            if expected == 0 {
                continue;
            }
            let due = Length::Exactly(expected + TAG);
            let data = SecretBytes::new(net.take(from, due).map_err(failed)?);
            let theirs = data.first_chunk::<TAG>().ok_or_else(|| {
                EngineError::internal("a message of another length than was asked for")
            })?;
            let theirs = u64::from_le_bytes(*theirs);
            if theirs != tag {
                return Err(EngineError::protocol(format!(
                    "party {from} is at another step of the computation (round {} there, {} here): all parties must run the same program with the same arguments, for the same purpose",
                    theirs >> 32,
                    tag >> 32
                )));
            }
            received += expected as u64;
            let slot = inbox.buffers.get_mut(from);
            *slot.ok_or_else(|| no_such_party(from))? = (data, TAG);
        }
        net.settle().map_err(failed)?;
        Ok((inbox, sent, received))
    }
}

/// The messages that arrived in this round, read in the order in which they were queued.
pub struct Inbox {
    buffers: Vec<(SecretBytes, usize)>,
}

impl Inbox {
    /// Takes the next `n` bytes of a peer.
    pub fn take_bytes(&mut self, from: usize, n: usize) -> Result<&[u8]> {
        let (data, at) = self
            .buffers
            .get_mut(from)
            .ok_or_else(|| no_such_party(from))?;
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
            .ok_or_else(|| no_such_party(from))?;
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

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;
    use keyquorum_math::BitLanes;
    use std::time::Duration;

    #[test]
    fn missing_parts_blocked_a_message_to_nobody_stops_the_round() {
        let mut mesh = keyquorum_net::local_mesh(2, Duration::from_secs(1));
        for fault in 0..3 {
            let mut out = Outbox::new(2);
            out.send(&BitLanes, 1, &[1]);
            match fault {
                0 => out.send(&BitLanes, 2, &[1]),
                1 => out.expect(&BitLanes, 2, 1),
                _ => out.expect_bytes(2, 1),
            }
            let error = out.exchange(&mut mesh[0], 0).map(drop).unwrap_err();
            assert!(matches!(error, EngineError::Internal(_)), "{error}");
            assert!(error.to_string().contains("party 2 of 2"), "{error}");
        }
        // Nothing left.
        assert_eq!(mesh[0].counters().total().messages_sent, 0);
        assert!(matches!(
            Outbox::new(3).exchange(&mut mesh[0], 0).map(drop),
            Err(EngineError::Internal(_))
        ));
    }
}
