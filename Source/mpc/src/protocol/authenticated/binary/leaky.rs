//! Leaky AND triples: x, y random, z = x·y, all authenticated; an adversary may learn bits of x, at the price of being caught
//! with probability 1/2 for each.
//!
//! x_j are choices of full OTs between all pairs, y_i of correlated ones that only make MACs. With the share m_i of y's MAC,
//! party i multiplies the 41 bits (y_i, m_i) by every x_j: the strings of the OT are pads, one correction of 41 bits goes
//! from i to j. Summed up, the parties share x·y and x·y·Δ: z and its MAC at once. A wrong correction makes both wrong where
//! x_j = 1, and the MAC wrong by a factor that is not the honest keys, which nobody can repair; so a linear hash of all z,
//! masked by a block of authenticated random bits, is opened under the usual MAC check. This is the leaky AND of Wang,
//! Ranellucci, Katz (CCS 2017, figure 9), with the check's values used as the MAC (as in Katz, Ranellucci, Rosulek, Wang,
//! CRYPTO 2018), on MACs of 40 bits. 83 bits a triple and ordered pair.
//!
//! The check also fails if a party has used different keys towards different honest parties, by differences d_a, say: the
//! MACs of z then lack Σ_a d_a·(x·y_a ⊕ z_a), and of the honest parties' z_a nobody knows more than their sum. To pass, the
//! party must guess a hash of 128 bits of that.

use keyquorum_math::Domain;
use keyquorum_ot::{KAPPA, LinearHash};

use super::correlate::{self, Correlated, Wanted};
use super::verify::{exchange, finish_toss, start_toss};
use super::{AuthenticatedBits, MAC_BITS, PARTS, open};
use crate::error::Result;
use crate::graph::{SendFn, and_then, join, then};
use crate::protocol::BITS;
use crate::value::Share;

/// Lanes of the smallest batch.
pub(super) const BLOCK: usize = 2;
/// Lanes of the block that masks the check.
const MASK: usize = 2;

/// Shares of x, y and z.
pub(super) type Triples = [Share<u64>; 3];

/// A task that makes `lanes` (an even number of) lanes of leaky triples; they must not be used before the next check of all
/// that was opened. Six rounds.
pub(super) fn task(lanes: usize) -> SendFn<AuthenticatedBits, Triples> {
    let wanted = |rows, lanes| Wanted {
        owner: None,
        rows,
        lanes,
    };
    let made = correlate::task(vec![wanted(KAPPA, lanes), wanted(MAC_BITS, lanes + MASK)]);
    let multiplied = and_then(made, move |p, mut all| {
        let (y, x) = (all.pop(), all.pop());
        let key = &p.key;
        let y = y.map_or_else(|| Share::zeros(PARTS, 0), |y| y.share(key));
        let share = x
            .as_ref()
            .map_or_else(|| Share::zeros(PARTS, 0), |x| x.share(key));
        let mask = y.map(|part| part.get(lanes..).unwrap_or_default().to_vec());
        let y = y.map(|part| part.get(..lanes).unwrap_or_default().to_vec());
        let (z, corrections) = products(p, x.as_ref(), &y)?;
        let expected = vec![8 * PARTS * lanes; p.parties];
        Ok(join(
            exchange(corrections, expected),
            start_toss(),
            move |p, messages, toss| {
                let z = corrected(p, x.as_ref(), z, &messages)?;
                Ok(([share, y, z], mask, toss))
            },
        ))
    });
    and_then(multiplied, |_, (triples, mask, toss)| {
        Ok(and_then(finish_toss(toss), move |_, seed| {
            let hash = LinearHash::new(&seed);
            let [_, _, z] = &triples;
            let mut hashed = mask;
            for (hashed, z) in hashed.parts.iter_mut().zip(&z.parts) {
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
    x: Option<&Correlated>,
    y: &Share<u64>,
) -> Result<(Share<u64>, Vec<Vec<u8>>)> {
    let lanes = y.len();
    let mut z = Share::zeros(PARTS, lanes);
    let mut corrections = vec![Vec::new(); p.parties];
    let Some(x) = x else {
        return Ok((z, corrections));
    };
    for (z, y) in z.parts.iter_mut().zip(&y.parts) {
        BITS.mul_acc(z, &x.choices, y);
    }
    for (peer, sliced) in &x.received {
        let hash = p.channel(*peer)?.receiver.hash();
        sliced.add_strings(hash, &mut z.parts);
    }
    for (peer, sliced) in &x.sent {
        let mut sums = y.duplicate();
        #[cfg(test)]
        p.lie_about_operand(*peer, &mut sums);
        let sender = &p.channel(*peer)?.sender;
        sliced.add_strings(sender.hash(), sender.delta(), &mut z.parts, &mut sums.parts);
        if let Some(message) = corrections.get_mut(*peer) {
            message.reserve(8 * PARTS * lanes);
            for part in &sums.parts {
                BITS.encode(part, message);
            }
        }
    }
    Ok((z, corrections))
}

fn corrected(
    p: &AuthenticatedBits,
    x: Option<&Correlated>,
    mut z: Share<u64>,
    messages: &[Vec<u8>],
) -> Result<Share<u64>> {
    let lanes = z.len();
    let Some(x) = x else { return Ok(z) };
    for peer in p.peers() {
        let message = messages.get(peer).map_or(&[][..], Vec::as_slice);
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

#[cfg(test)]
impl AuthenticatedBits {
    fn lie_about_operand(&self, peer: usize, y: &mut Share<u64>) {
        if self.lie == Some(super::Lie::Operand) && peer == 0 {
            let mut parts = y.parts.iter_mut();
            let bits = parts.next().into_iter().flatten();
            bits.for_each(|word| *word = !*word);
            for (part, key) in parts.zip(self.key.iter()) {
                part.iter_mut().for_each(|word| *word ^= key);
            }
        }
    }
}
