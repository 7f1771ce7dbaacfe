//! A transport that tampers: the messages of one party in one round are changed on their way.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use keyquorum_net::Transport;

use crate::intercept::intercept;

/// The change of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
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
pub(crate) enum To {
    All,
    First,
}

/// Messages of a session before its rounds, to each peer: its seed, points of base OTs, PRFs.
const SET_UP: usize = 3;

/// A transport that changes what is sent in one round.
pub(crate) fn tampering(
    round: u64,
    to: To,
    change: Change,
) -> impl Fn(Box<dyn Transport>) -> Box<dyn Transport> {
    move |inner| {
        let n = inner.parties();
        let (mut sent, mut last) = (vec![0; n], vec![Vec::new(); n]);
        let sends = move |party: usize, payload: &[u8]| {
            sent[party] += 1;
            let mut message = payload.to_vec();
            let here = u64::from_le_bytes(payload[..8].try_into().unwrap()) >> 32;
            let before = std::mem::replace(&mut last[party], message.clone());
            if sent[party] > SET_UP && here == round && (to == To::All || party == 0) {
                match change {
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
                    Change::Drop => return None,
                }
            }
            Some(message)
        };
        intercept(inner, sends, |_, _| ())
    }
}
