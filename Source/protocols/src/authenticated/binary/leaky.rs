//! Leaky AND triples: x, y random, z = x·y, all authenticated; an adversary may learn bits of x, at the price of being caught
//! with probability 1/2 for each.
//!
//! x_j are choices of full OTs between all pairs, y_i of correlated ones that only make MACs. With the share m_i of y's MAC,
//! party i multiplies the 49 bits (y_i, m_i) by every x_j: the strings of the OT are pads, one correction of 49 bits goes
//! from i to j. Summed up, the parties share x·y and x·y·Δ: z and its MAC at once. A wrong correction makes both wrong where
//! x_j = 1, and the MAC wrong by a factor that is not the honest keys, which nobody can repair; so a linear hash of all z,
//! masked by a block of authenticated random bits, is opened under the usual MAC check. This is the leaky AND of Wang,
//! Ranellucci, Katz (CCS 2017, figure 9), with the check's values used as the MAC (as in Katz, Ranellucci, Rosulek, Wang,
//! CRYPTO 2018), on MACs of 48 bits. 105 bits a triple and ordered pair.
//!
//! The check also fails if a party has used different keys towards different honest parties, by differences d_a, say: the
//! MACs of z then lack Σ_a d_a·(x·y_a ⊕ z_a), and of the honest parties' z_a nobody knows more than their sum. To pass, the
//! party must guess a hash of 128 bits of that.

use keyquorum_math::Domain;
use keyquorum_ot::LinearHash;
use keyquorum_ot::extension::sliced::Kind;

use super::correlate::{self, Correlated, Wanted, blame, missing, of_mut};
use super::verify::{exchange, finish_toss, start_toss};
use super::{AuthenticatedBits, PARTS, open};
use crate::BITS;
use crate::adversary::Site;
use crate::error::{EngineError, Result};
use crate::task::{SendFn, and_then, join, then};
use crate::value::Share;

/// Lanes of the smallest batch.
pub(super) const BLOCK: usize = 2;
/// Lanes of the block that masks the check.
const MASK: usize = 2;

/// Shares of x, y and z.
pub(super) type Triples = [Share<u64>; 3];

fn uneven() -> EngineError {
    EngineError::internal("leaky triples of which a part is missing")
}

/// A task that makes `lanes` (an even number of) lanes of leaky triples; they must not be used before the next check of all
/// that was opened. Six rounds.
pub(super) fn task(lanes: usize) -> SendFn<AuthenticatedBits, Triples> {
    let wanted = |kind, lanes| Wanted {
        owner: None,
        kind,
        lanes,
    };
    let made = correlate::task(vec![
        wanted(Kind::MacsAndPads, lanes),
        wanted(Kind::Macs, lanes + MASK),
    ]);
    let multiplied = and_then(made, move |p, mut all| {
        let (Some(y), Some(x)) = (all.pop(), all.pop()) else {
            return Err(uneven());
        };
        let key = &p.key;
        let (y, share) = (y.share(key)?, x.share(key)?);
        if y.len() != lanes + MASK || share.len() != lanes {
            return Err(uneven());
        }
        let mask = y.map(|part| part.iter().skip(lanes).copied().collect());
        let y = y.map(|part| part.iter().take(lanes).copied().collect());
        let (z, corrections) = products(p, &x, &y)?;
        let expected = vec![8 * PARTS * lanes; p.parties];
        Ok(join(
            exchange(corrections, expected),
            start_toss(),
            move |p, messages, toss| {
                let z = corrected(p, &x, z, &messages)?;
                Ok(([share, y, z], mask, toss))
            },
        ))
    });
    and_then(multiplied, |_, (triples, mask, toss)| {
        Ok(and_then(finish_toss(toss), move |_, seed| {
            let hash = LinearHash::new(&seed);
            let [_, _, z] = &triples;
            let mut hashed = mask;
            for (hashed, z) in hashed.with(z)? {
                let sum = hash.lanes(z);
                BITS.add_assign(hashed, &[sum as u64, (sum >> 64) as u64]);
            }
            Ok(then(open(hashed), move |_, _| Ok(triples)))
        }))
    })
}

/// Our part of the products without corrections that we receive, and the corrections that we send, by peer.
fn products(
    p: &mut AuthenticatedBits,
    x: &Correlated,
    y: &Share<u64>,
) -> Result<(Share<u64>, Vec<Vec<u8>>)> {
    let lanes = y.len();
    let mut z = Share::zeros(PARTS, lanes);
    let mut corrections = vec![Vec::new(); p.parties];
    z.combine(y, |z, y| BITS.mul_acc(z, &x.choices, y))?;
    for (peer, sliced) in &x.received {
        let hash = p.channel(*peer)?.receiver.hash();
        sliced
            .add_strings(hash, &mut z.parts)
            .map_err(blame(*peer))?;
    }
    for (peer, sliced) in &x.sent {
        let mut sums = y.duplicate();
        p.adversary
            .change_parts(Site::BitOperand, Some(*peer), &mut sums.parts);
        let sender = &p.channel(*peer)?.sender;
        sliced
            .add_strings(sender.hash(), &mut z.parts, &mut sums.parts)
            .map_err(blame(*peer))?;
        let message = of_mut(&mut corrections, *peer)?;
        message.reserve(8 * PARTS * lanes);
        for part in &sums.parts {
            BITS.encode(part, message);
        }
        p.adversary
            .change_message(Site::BitPayload, Some(*peer), message, 0);
    }
    Ok((z, corrections))
}

fn corrected(
    p: &AuthenticatedBits,
    x: &Correlated,
    mut z: Share<u64>,
    messages: &[Vec<u8>],
) -> Result<Share<u64>> {
    let lanes = z.len();
    for peer in p.peers() {
        let message = messages.get(peer).ok_or_else(|| missing(peer))?;
        if message.len() != 8 * PARTS * lanes || x.choices.len() != lanes {
            return Err(uneven());
        }
        for (z, bytes) in z
            .parts
            .iter_mut()
            .zip(message.chunks_exact(8 * lanes.max(1)))
        {
            let words = bytes.as_chunks::<8>().0;
            for ((z, word), x) in z.iter_mut().zip(words).zip(x.choices.iter()) {
                *z ^= u64::from_le_bytes(*word) & x;
            }
        }
    }
    Ok(z)
}
