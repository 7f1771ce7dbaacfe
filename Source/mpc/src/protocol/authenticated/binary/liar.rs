//! A transport that lies: what the party sends in one round is changed on its way.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use keyquorum_net::{Counters, Length, NetError, Transport};

type Result<T> = std::result::Result<T, NetError>;

/// What happens to a message.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Change {
    /// These bytes are inverted.
    Invert(usize, usize),
    /// One bit is flipped.
    Flip(usize),
    /// The last byte is left out.
    Shorten,
    /// One more byte is sent.
    Lengthen,
    /// The message before is sent again.
    Replay,
    /// Nothing is sent.
    Drop,
}

/// To whom: everybody, or party 0 only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum To {
    All,
    First,
}

/// Messages of a session before its rounds, to each peer: its seed, points of base OTs, PRFs.
const SET_UP: usize = 3;

struct Liar {
    inner: Box<dyn Transport>,
    round: u64,
    to: To,
    change: Change,
    sent: Vec<usize>,
    last: Vec<Vec<u8>>,
}

impl Transport for Liar {
    fn party(&self) -> usize {
        self.inner.party()
    }

    fn parties(&self) -> usize {
        self.inner.parties()
    }

    fn send(&mut self, to: usize, payload: &[u8]) -> Result<()> {
        self.sent[to] += 1;
        let mut message = payload.to_vec();
        let round = u64::from_le_bytes(payload[..8].try_into().unwrap()) >> 32;
        let before = std::mem::replace(&mut self.last[to], message.clone());
        if self.sent[to] > SET_UP && round == self.round && (self.to == To::All || to == 0) {
            match self.change {
                Change::Invert(from, until) => {
                    assert!(8 + until <= message.len(), "{} bytes", message.len() - 8);
                    message[8 + from..8 + until]
                        .iter_mut()
                        .for_each(|b| *b = !*b);
                }
                Change::Flip(bit) => message[8 + bit / 8] ^= 1 << (bit % 8),
                Change::Shorten => drop(message.pop()),
                Change::Lengthen => message.push(0),
                Change::Replay => message = before,
                Change::Drop => return Ok(()),
            }
        }
        self.inner.send(to, &message)
    }

    fn take(&mut self, from: usize, len: Length) -> Result<Vec<u8>> {
        self.inner.take(from, len)
    }

    fn settle(&mut self) -> Result<()> {
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

/// A transport that changes what is sent in one round.
pub(in super::super) fn liar(
    round: u64,
    to: To,
    change: Change,
) -> impl Fn(Box<dyn Transport>) -> Box<dyn Transport> {
    move |inner| {
        let n = inner.parties();
        Box::new(Liar {
            inner,
            round,
            to,
            change,
            sent: vec![0; n],
            last: vec![Vec::new(); n],
        })
    }
}
