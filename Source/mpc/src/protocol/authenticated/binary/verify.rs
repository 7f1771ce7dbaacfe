//! Commitments, coin tossing, and the check of what was opened.
//!
//! For every opened vector of bits x each party keeps s_i = m_i ⊕ x·Δ_i, whose sum over the parties is zero if x is true; a
//! wrong bit makes it the sum of the honest keys there. The check tosses a key of a linear hash after all was opened, and
//! the parties commit to the hashes of the rows of their s_i, then open them: the sums must vanish. Damgård, Keller,
//! Larraia, Pastro, Scholl, Smart, "Practical covertly secure MPC for dishonest majority" (ESORICS 2013), figure 10.

use std::mem::take;

use keyquorum_ot::LinearHash;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

use super::{AuthenticatedBits, MAC_BITS};
use crate::error::{EngineError, Result};
use crate::graph::{SendFn, Step, and_then, join, then};
use crate::protocol::BITS;
use crate::value::Share;
use keyquorum_math::Domain;

/// Lanes that may be opened before they are verified: 5 MB.
pub(super) const MOST_PENDING: usize = 1 << 14;

/// A public random string.
pub(in super::super) type Toss = [u8; 32];

const NONCE: usize = 32;

/// What is to be verified.
#[derive(Default)]
pub(super) struct Verifier {
    /// Bit j of our s_i, in lanes.
    rows: Vec<Vec<u64>>,
    /// Everything that all parties must have got alike.
    transcript: Sha256,
    commitments: u64,
}

impl Drop for Verifier {
    fn drop(&mut self) {
        for row in &mut self.rows {
            row.zeroize();
        }
    }
}

impl Verifier {
    /// Lanes that wait for their check.
    pub fn pending(&self) -> usize {
        self.rows.first().map_or(0, Vec::len)
    }

    /// Notes bits that were opened as `values`.
    pub fn opened(&mut self, share: &Share<u64>, values: &[u64], key: &[u64; MAC_BITS]) {
        self.rows.resize_with(MAC_BITS, Vec::new);
        for ((row, mac), key) in self
            .rows
            .iter_mut()
            .zip(share.parts.iter().skip(1))
            .zip(key)
        {
            row.extend(mac.iter().zip(values).map(|(m, x)| m ^ (x & key)));
        }
    }

    /// Notes bytes that all parties must have got.
    pub fn record(&mut self, bytes: &[u8]) {
        self.transcript.update(bytes);
    }

    /// Notes words that all parties must have got.
    pub fn record_words(&mut self, words: &[u64]) {
        let mut bytes = Vec::with_capacity(8 * words.len());
        BITS.encode(words, &mut bytes);
        self.record(&bytes);
    }

    fn digest(&self) -> Vec<u8> {
        self.transcript.clone().finalize().to_vec()
    }
}

/// Sends each peer its message (by party), and gets as many bytes from each as announced.
pub(in super::super) fn exchange(
    messages: Vec<Vec<u8>>,
    expected: Vec<usize>,
) -> SendFn<AuthenticatedBits, Vec<Vec<u8>>> {
    Box::new(move |p, out| {
        for peer in p.peers() {
            if let Some(message) = messages.get(peer) {
                out.buffer(peer)?.extend_from_slice(message);
            }
            out.expect_bytes(peer, expected.get(peer).copied().unwrap_or(0));
        }
        drop(messages);
        Ok(Box::new(move |p, inbox| {
            (0..p.parties)
                .map(|peer| match expected.get(peer) {
                    Some(n) if peer != p.me => Ok(inbox.take_bytes(peer, *n)?.to_vec()),
                    _ => Ok(Vec::new()),
                })
                .collect::<Result<_>>()
                .map(Step::Done)
        }))
    })
}

/// Sends the same to everybody and gets as much from each; returns all by party.
fn to_all(message: Vec<u8>) -> SendFn<AuthenticatedBits, Vec<Vec<u8>>> {
    Box::new(move |p, out| {
        let task = exchange(
            vec![message.clone(); p.parties],
            vec![message.len(); p.parties],
        );
        then(task, move |p, mut all| {
            if let Some(slot) = all.get_mut(p.me) {
                *slot = message;
            }
            Ok(all)
        })(p, out)
    })
}

/// As [`to_all`]; the next check compares what the parties got.
pub(super) fn broadcast(message: Vec<u8>) -> SendFn<AuthenticatedBits, Vec<Vec<u8>>> {
    then(to_all(message), |p, all| {
        for message in &all {
            p.verifier.record(message);
        }
        Ok(all)
    })
}

/// Values to which all parties are committed.
pub(in super::super) struct Committed {
    /// Nonce and value.
    mine: Zeroizing<Vec<u8>>,
    number: u64,
    all: Vec<Vec<u8>>,
}

fn commitment(party: usize, number: u64, opening: &[u8]) -> Vec<u8> {
    Sha256::new()
        .chain_update(b"keyquorum-v1/commitment")
        .chain_update((party as u64).to_le_bytes())
        .chain_update(number.to_le_bytes())
        .chain_update(opening)
        .finalize()
        .to_vec()
}

/// Commits to a value, which is as long at all parties. One round.
pub(in super::super) fn commit(value: Vec<u8>) -> SendFn<AuthenticatedBits, Committed> {
    Box::new(move |p, out| {
        let mut mine = Zeroizing::new(vec![0; NONCE]);
        p.private.fill(&mut mine);
        mine.extend_from_slice(&value);
        let number = p.verifier.commitments;
        p.verifier.commitments += 1;
        then(broadcast(commitment(p.me, number, &mine)), move |_, all| {
            Ok(Committed { mine, number, all })
        })(p, out)
    })
}

/// Opens what was committed to: the values by party. One round.
pub(in super::super) fn reveal(committed: Committed) -> SendFn<AuthenticatedBits, Vec<Vec<u8>>> {
    let Committed { mine, number, all } = committed;
    then(to_all(mine.to_vec()), move |_, mut openings| {
        for (party, (opening, expected)) in openings.iter_mut().zip(&all).enumerate() {
            if commitment(party, number, opening) != *expected {
                return Err(EngineError::protocol(format!(
                    "party {party} opened another value than it had committed to"
                )));
            }
            opening.drain(..NONCE.min(opening.len()));
        }
        Ok(openings)
    })
}

/// First half of a coin toss: everybody commits to random bytes.
pub(in super::super) fn start_toss() -> SendFn<AuthenticatedBits, Committed> {
    Box::new(move |p, out| {
        let mut random = vec![0; 32];
        p.private.fill(&mut random);
        commit(random)(p, out)
    })
}

/// Second half: a string that nobody knew or could choose before.
pub(in super::super) fn finish_toss(committed: Committed) -> SendFn<AuthenticatedBits, Toss> {
    then(reveal(committed), |_, all| {
        let mut hash = Sha256::new_with_prefix(b"keyquorum-v1/toss");
        for value in &all {
            hash.update(value);
        }
        Ok(hash.finalize().into())
    })
}

/// Compares what all parties got; blames a peer that got something else.
fn compare() -> SendFn<AuthenticatedBits, ()> {
    Box::new(move |p, out| {
        let mine = p.verifier.digest();
        then(to_all(mine.clone()), move |p, all| {
            match all.iter().position(|theirs| *theirs != mine) {
                None => Ok(()),
                Some(peer) => Err(EngineError::protocol(format!(
                    "parties {} and {peer} did not get the same messages: one of the parties cheats",
                    p.me
                ))),
            }
        })(p, out)
    })
}

/// Verifies everything that was opened before it starts.
pub(in super::super) fn check() -> SendFn<AuthenticatedBits, ()> {
    Box::new(move |p, out| {
        let mut rows = take(&mut p.verifier.rows);
        let task = and_then(start_toss(), |_, toss| Ok(finish_toss(toss)));
        and_then(task, move |_, seed| {
            let hash = LinearHash::new(&seed);
            let mut sums = Vec::with_capacity(16 * MAC_BITS);
            rows.resize_with(MAC_BITS, Vec::new);
            for row in &mut rows {
                row.resize(row.len().next_multiple_of(2), 0);
                sums.extend_from_slice(&hash.lanes(row).to_le_bytes());
                row.zeroize();
            }
            Ok(and_then(commit(sums), |p, committed| {
                let others = p.parties > 2;
                let opened = reveal(committed);
                let opened = if others {
                    join(opened, compare(), |_, sums, ()| Ok(sums))
                } else {
                    opened
                };
                Ok(then(opened, |_, all| verify_sums(&all)))
            }))
        })(p, out)
    })
}

fn verify_sums(all: &[Vec<u8>]) -> Result<()> {
    let mut sum = vec![0u8; 16 * MAC_BITS];
    for theirs in all {
        for (s, t) in sum.iter_mut().zip(theirs) {
            *s ^= t;
        }
    }
    if bool::from(sum.ct_eq(&vec![0; sum.len()])) {
        return Ok(());
    }
    Err(EngineError::protocol(
        "the MAC check of opened bits failed: one of the parties cheats, its results must not be used",
    ))
}
