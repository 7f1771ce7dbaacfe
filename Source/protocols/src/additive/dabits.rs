//! Random bits shared in both domains: b = ⊕ b_i, party i knows b_i, and the parties hold b as a sum. One correlated OT a
//! pair and bit.
//!
//! In a chain: when the parties before i share x = ⊕_{j<i} b_j as Σ x_j, then x ⊕ b_i = x + b_i − 2·Σ_j b_i·x_j, and
//! b_i·x_j is one OT with choice b_i at i and correlation x_j at j. Modulo 2^k the product counts modulo 2^(k−1). The bits
//! are cut into n segments whose chains start at different parties, so that all work all the time. n rounds: in round p
//! party s + p of segment s sends its choices to all before it, which answer in the next round.

use std::ops::Range;

use keyquorum_ot::extension::Choices;
use keyquorum_ot::product::{self, Operand, Pending, correction_bytes, payload_bytes};

use super::triples::blame;
use super::{Additive, Arithmetic, BITS, lane_bits, outside};
use crate::error::Result;
use crate::task::{SendFn, Step, at_start};

/// The state of one batch.
struct Chain<A: Arithmetic> {
    lanes: usize,
    bits: Vec<u64>,
    /// Our summand of the chain so far; our own bit where the chain has not reached us.
    sums: Vec<A::E>,
    payload: A::Payload,
    domain: A,
}

impl<A: Arithmetic> Chain<A> {
    /// Lanes of segment `s`.
    fn segment(&self, parties: usize, s: usize) -> Range<usize> {
        s * self.lanes / parties..(s + 1) * self.lanes / parties
    }

    /// Elements of segment `s`.
    fn elements(&self, parties: usize, s: usize) -> Range<usize> {
        let lanes = self.segment(parties, s);
        64 * lanes.start..64 * lanes.end
    }

    /// Subtracts twice these shares of products in segment `s`.
    fn settle(&mut self, range: Range<usize>, shares: &[A::E]) -> Result<()> {
        let sums = self.sums.get_mut(range).ok_or_else(outside)?;
        self.domain.sub_assign(sums, shares);
        self.domain.sub_assign(sums, shares);
        Ok(())
    }
}

/// The receiver's open products with all peers of a step.
type Open<A> = Vec<(usize, Pending<<A as Arithmetic>::Payload>)>;
/// Payloads for the receivers of a step, with the number of their products.
type Answers = Vec<(usize, Vec<u8>)>;

/// A task that makes `lanes` lanes of 64 bits.
pub(super) fn task<A: Arithmetic>(lanes: usize) -> SendFn<Additive<A>, ()> {
    at_start(move |p: &mut Additive<A>| {
        let domain = p.domain.clone();
        let bits = p.draw_private(&BITS, lanes);
        let chain = Chain {
            lanes,
            sums: lane_bits(&domain, &bits, 64 * lanes)?,
            bits,
            payload: domain.half_payload()?,
            domain,
        };
        Ok(step(1, chain, Vec::new(), Vec::new()))
    })
}

/// Step `at` of n: sends the choices of step `at` and the payloads of the step before.
fn step<A: Arithmetic>(
    at: usize,
    mut chain: Chain<A>,
    open: Open<A>,
    answers: Answers,
) -> SendFn<Additive<A>, ()> {
    Box::new(move |p, out| {
        let (me, n) = (p.me, p.parties);
        for (peer, answer) in answers {
            out.buffer(peer)?.extend_from_slice(&answer);
        }
        for (peer, pending) in &open {
            out.expect_bytes(*peer, payload_bytes(&chain.payload, pending.len(), 1));
        }
        let mut opened = Vec::new();
        if at < n {
            // We are at position `at` of this segment; the parties before us follow from its start.
            let segment = (me + n - at) % n;
            for position in 0..at {
                let peer = (segment + position) % n;
                let lanes = chain.segment(n, segment);
                let choices = chain.bits.get(lanes).ok_or_else(outside)?;
                let receiver = &mut p.channel(peer)?.receiver;
                let operand = Operand::Bits(choices);
                let (payload, buffer) = (&chain.payload, out.buffer(peer)?);
                let pending =
                    product::receive(receiver, payload, operand, 64 * choices.len(), 1, buffer)
                        .map_err(blame(peer))?;
                opened.push((peer, pending));
            }
            for (peer, segment) in receivers(me, n, at) {
                let parameters = p.channel(peer)?.sender.parameters();
                let count = chain.elements(n, segment).len();
                out.expect_bytes(peer, correction_bytes(Choices::Given, parameters, count, 1));
            }
        }
        Ok(Box::new(move |p, inbox| {
            // The payloads come before the choices in every message.
            let mut payloads: Vec<Vec<A::E>> = Vec::new();
            for (peer, pending) in open {
                let bytes = payload_bytes(&chain.payload, pending.len(), 1);
                let shares = pending
                    .finish(inbox.take_bytes(peer, bytes)?)
                    .map_err(blame(peer))?;
                payloads.push(shares);
            }
            let previous = (me + n - at + 1) % n;
            for shares in payloads {
                chain.settle(chain.elements(n, previous), &shares)?;
            }
            if at == n {
                p.preprocessing.put_bits(chain.bits, chain.sums)?;
                return Ok(Step::Done(()));
            }
            let mut answers = Vec::new();
            for (peer, segment) in receivers(me, n, at) {
                let range = chain.elements(n, segment);
                let sender = &mut p.channel(peer)?.sender;
                let bytes = correction_bytes(Choices::Given, sender.parameters(), range.len(), 1);
                let message = inbox.take_bytes(peer, bytes)?;
                let words = chain.sums.get(range.clone()).ok_or_else(outside)?;
                let (source, mut answer) = (Choices::Given, Vec::new());
                let shares = product::send(
                    sender,
                    &chain.payload,
                    words,
                    1,
                    source,
                    message,
                    &mut answer,
                )
                .map_err(blame(peer))?;
                chain.settle(range, &shares)?;
                answers.push((peer, answer));
            }
            Ok(Step::Next(step(at + 1, chain, opened, answers)))
        }))
    })
}

/// Whom we answer at step `at`, and in which segment: the parties at position `at` of the segments in which we come before.
fn receivers(me: usize, n: usize, at: usize) -> Vec<(usize, usize)> {
    (0..at)
        .map(|position| {
            let segment = (me + n - position) % n;
            ((segment + at) % n, segment)
        })
        .collect()
}
