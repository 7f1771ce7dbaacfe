//! Products of bits with one vector. The parties hold each bit x as a sum modulo 2^m, and the vector v as a sum. For every bit and ordered pair
//! of parties, one correlated OT of a vector takes the place of a triple for every element.
//!
//! The lowest bits b_p of the summands of x are its summands modulo 2: no carry reaches them. So 1 − 2x is the product of the 1 − 2b_p.
//! With V_0 = v and V_{p+1} = (1 − 2b_p)·V_p this makes V_n = (1 − 2x)·v, and the differences V_p − V_{p+1} = 2·b_p·V_p add up to 2·x·v.
//! These are identities of integers, hence x·v = Σ_p b_p·V_p modulo 2^m as well.
//!
//! b_p·V_p: party p multiplies its own summand of V_p itself. For the summand V of each other party there is an OT with the choice b_p and
//! strings k_0, k_1 (SoftSpokenOT, one string of 128 bits each). With G, AES in counter mode, the other party sends
//! d = G(k_0) − G(k_1) + V, and keeps −G(k_0). Party p takes G(k_0) + b_p·V, which is G(k_0) or G(k_1) + d.
//!
//! Security, semi-honest. The corrections of the OTs are masked by PRFs of which the sender lacks one key in each group (Roy, CRYPTO 2022). The string
//! that was not chosen is a hash of a value shifted by Δ, pseudorandom as the hash is correlation robust (Guo, Katz, Wang, Yu, S&P 2020);
//! each string is the key of G once. So all that a party receives is pseudorandom to it and can be simulated. Two honest parties mask
//! their summands from everybody else by the G(k_0) of their own OTs, so that the summands of the result are uniform but for
//! their sum: what is opened of them later reveals nothing else.
//!
//! All choices go out in the first round, the vectors of step p in round p + 2: n + 1 rounds. The bits are cut into n segments whose
//! parties p start at different parties, so that all work all the time.
//!
//! Bytes for each ordered pair and `rows` bits: the OTs' corrections, 32 bits each in blocks of 128, and `rows` vectors of m bits an element.

use std::ops::Range;

use keyquorum_math::{Domain, Element, Prg, bits, mask_of};
use keyquorum_ot::strings;
use zeroize::Zeroizing;

use super::triples::blame;
use super::{Additive, Arithmetic, outside, single};
use crate::error::Result;
use crate::task::Step;
use crate::{ShareTask, lanes};

/// The OTs with one peer, one for each bit.
struct Strings {
    peer: usize,
    /// As receiver: the chosen string.
    chosen: Zeroizing<Vec<u128>>,
    /// As sender: both strings.
    sent: [Zeroizing<Vec<u128>>; 2],
}

/// The products of one party.
struct Products<D: Domain> {
    /// Integers modulo 2^m.
    ring: D,
    /// Our summands of the bits; the lowest bit counts.
    bits: Zeroizing<Vec<D::E>>,
    /// Elements of v.
    length: usize,
    /// Our summands of V_p, a row for each bit.
    rows: Zeroizing<Vec<D::E>>,
    /// Our summands of the results.
    sums: Zeroizing<Vec<D::E>>,
}

/// The stream of a string.
fn expand<D: Domain>(ring: &D, string: u128, out: &mut [D::E]) {
    ring.random(&mut Prg::new(string.to_le_bytes(), 0), out);
}

impl<D: Domain> Products<D> {
    /// The bits of segment `s`.
    fn segment(&self, parties: usize, s: usize) -> Range<usize> {
        s * self.bits.len() / parties..(s + 1) * self.bits.len() / parties
    }

    /// The elements of these rows.
    fn elements(&self, rows: &Range<usize>) -> Range<usize> {
        rows.start * self.length..rows.end * self.length
    }

    /// Goes on from V_p to V_{p+1} = V_p − 2·b_p·V_p in some rows, where `shares` are our summands of b_p·V_p.
    fn settle(&mut self, elements: Range<usize>, shares: &[D::E]) -> Result<()> {
        let sums = self.sums.get_mut(elements.clone()).ok_or_else(outside)?;
        self.ring.add_assign(sums, shares);
        let rows = self.rows.get_mut(elements).ok_or_else(outside)?;
        self.ring.sub_assign(rows, shares);
        self.ring.sub_assign(rows, shares);
        Ok(())
    }

    /// The vectors d of some rows, for the party whose bits multiply them.
    fn send(&mut self, rows: Range<usize>, strings: &Strings) -> Result<Zeroizing<Vec<D::E>>> {
        let elements = self.elements(&rows);
        let ours = self.rows.get(elements.clone()).ok_or_else(outside)?;
        let mut vectors = Zeroizing::new(ours.to_vec());
        let mut kept = Zeroizing::new(vec![self.ring.zero(); vectors.len()]);
        let mut one = Zeroizing::new(vec![self.ring.zero(); self.length]);
        let [zeros, ones] = &strings.sent;
        let pairs = (zeros.get(rows.clone()).zip(ones.get(rows))).ok_or_else(outside)?;
        let vector = vectors.chunks_exact_mut(self.length);
        let parts = vector.zip(kept.chunks_exact_mut(self.length));
        for ((vector, kept), (k0, k1)) in parts.zip(pairs.0.iter().zip(pairs.1)) {
            expand(&self.ring, *k0, kept);
            expand(&self.ring, *k1, &mut one);
            self.ring.add_assign(vector, kept);
            self.ring.sub_assign(vector, &one);
            self.ring.neg_assign(kept);
        }
        self.settle(elements, &kept)?;
        Ok(vectors)
    }

    /// Adds to `shares` our summands of the products of our bits with the summands of one peer, from its vectors d.
    fn receive(
        &self,
        rows: Range<usize>,
        strings: &Strings,
        vectors: &[D::E],
        shares: &mut [D::E],
    ) -> Result<()> {
        let bits = self.bits.get(rows.clone()).ok_or_else(outside)?;
        let chosen = strings.chosen.get(rows).ok_or_else(outside)?;
        let mut string = Zeroizing::new(vec![self.ring.zero(); self.length]);
        let parts = vectors.chunks_exact(self.length);
        let parts = parts.zip(shares.chunks_exact_mut(self.length));
        for ((vector, shares), (bit, key)) in parts.zip(bits.iter().zip(chosen)) {
            expand(&self.ring, *key, &mut string);
            self.ring.add_assign(shares, &string);
            add_chosen(&self.ring, shares, vector, *bit);
        }
        Ok(())
    }
}

/// Adds `vector` times the lowest bit of `bit`.
pub(crate) fn add_chosen<D: Domain>(ring: &D, sum: &mut [D::E], vector: &[D::E], bit: D::E) {
    let mask = mask_of(bit.to_u128());
    for (sum, element) in sum.iter_mut().zip(vector) {
        let chosen = D::E::from_u128_wrapping(element.to_u128() & mask);
        *sum = ring.add(*sum, chosen);
    }
}

/// Products of every one of `bits` with every element of `v`, row after row, in the ring of both.
pub(super) fn task<A: Arithmetic, D: Domain>(
    ring: D,
    bits: Vec<D::E>,
    v: Vec<D::E>,
) -> ShareTask<Additive<A>, D::E> {
    let count = bits.len();
    let products = Products {
        rows: Zeroizing::new(v.repeat(count)),
        sums: Zeroizing::new(vec![ring.zero(); count * v.len()]),
        bits: Zeroizing::new(bits),
        length: v.len(),
        ring,
    };
    drop(Zeroizing::new(v));
    Box::new(move |p, out| {
        let mut planes = bits::planes(&products.bits, 1);
        let plane = Zeroizing::new(planes.pop().ok_or_else(outside)?);
        let choices = plane.get(..lanes(count)).ok_or_else(outside)?;
        let mut received = Vec::with_capacity(p.parties);
        for peer in p.peers() {
            let channel = p.channel(peer)?;
            let parameters = channel.sender.parameters();
            let receiver = &mut channel.receiver;
            let chosen = strings::receive(receiver, choices, count, out.buffer(peer)?);
            received.push((peer, chosen.map_err(blame(peer))?));
            out.expect_bytes(peer, strings::correction_bytes(parameters, count));
        }
        Ok(Box::new(move |p, inbox| {
            let mut all = Vec::with_capacity(p.parties);
            for (peer, chosen) in received {
                let sender = &mut p.channel(peer)?.sender;
                let bytes = strings::correction_bytes(sender.parameters(), count);
                let message = inbox.take_bytes(peer, bytes)?;
                let sent = strings::send(sender, count, message).map_err(blame(peer))?;
                all.push(Strings { peer, chosen, sent });
            }
            Ok(Step::Next(step(0, products, all)))
        }))
    })
}

/// Step p of n: b_p·V_p in every segment.
fn step<A: Arithmetic, D: Domain>(
    at: usize,
    mut products: Products<D>,
    strings: Vec<Strings>,
) -> ShareTask<Additive<A>, D::E> {
    Box::new(move |p, out| {
        let (me, n) = (p.me, p.parties);
        // The segment in which a party is party p.
        let segment = move |party: usize| (party + n - at) % n;
        let ours = products.segment(n, segment(me));
        let count = products.elements(&ours).len();
        for strings in &strings {
            let rows = products.segment(n, segment(strings.peer));
            let vectors = products.send(rows, strings)?;
            out.send(&products.ring, strings.peer, &vectors);
            out.expect(&products.ring, strings.peer, count);
        }
        Ok(Box::new(move |_, inbox| {
            let mut shares = Zeroizing::new(vec![products.ring.zero(); count]);
            let own = products.rows.get(products.elements(&ours));
            let own = own.ok_or_else(outside)?.chunks_exact(products.length);
            let bits = products.bits.get(ours.clone()).ok_or_else(outside)?;
            let parts = shares.chunks_exact_mut(products.length);
            for ((shares, row), bit) in parts.zip(own).zip(bits) {
                add_chosen(&products.ring, shares, row, *bit);
            }
            for strings in &strings {
                let vectors = inbox.take(&products.ring, strings.peer, count)?;
                products.receive(ours.clone(), strings, &vectors, &mut shares)?;
            }
            products.settle(products.elements(&ours), &shares)?;
            if at + 1 < n {
                return Ok(Step::Next(step(at + 1, products, strings)));
            }
            Ok(Step::Done(single(std::mem::take(&mut *products.sums))))
        }))
    })
}
