//! Additive secret sharing among n ≥ 2 parties, n − 1 corruptions, semi-honest (`semi2k`, `semi`, `semi-bin`).
//!
//! x = Σ x_i, part i at party i. Inputs and random elements cost no communication: summands come from streams that pairs
//! of parties have in common. Products use Beaver's triples: both operands are opened under masks, one round, two elements
//! a product and peer (one for a square); through a king, two rounds and fewer messages (`openings`). Triples (`triples`), squares
//! (`squares`), AND triples (`ands`) and bits shared in both domains (`dabits`) come from oblivious transfer between all
//! pairs; they are made when a round needs them, in rounds of their own, in batches that all parties compute alike (`preprocessing`).
//! Products of bits with a whole vector (`bit_products`) take oblivious transfer of their own in place of triples.

mod ands;
mod arithmetic;
mod bit_products;
mod dabits;
mod descriptors;
mod openings;
mod preprocessing;
mod squares;
mod triples;

use keyquorum_math::{Domain, DomainKind, Element, Prg, bits};
use keyquorum_ot::{Receiver, Sender};

use super::{
    BITS, ClearTask, Protocol, ShareTask, cast, cut_lanes, group_sums, lane_bits, lanes, no_input,
    sum_to,
};
use crate::error::{EngineError, Result};
use crate::protocol::Preprocessed;
use crate::task::{SendFn, at_start, join, ready, then};
use crate::value::Share;
pub use arithmetic::Arithmetic;
#[cfg(test)]
pub(super) use bit_products::add_chosen;
pub(crate) use descriptors::open_engine;
pub use descriptors::{SEMI, SEMI_BIN, SEMI2K};
pub use openings::Openings;
use preprocessing::Preprocessing;

/// Oblivious transfer with one peer, both ways.
pub struct Channel {
    /// OTs that we receive.
    pub receiver: Receiver,
    /// OTs that we send.
    pub sender: Sender,
}

/// One party of the additive protocol.
pub struct Additive<A: Arithmetic> {
    me: usize,
    parties: usize,
    domain: A,
    /// `pairs[j]`: the stream of which we deal to party j, and the one of which j deals to us.
    pairs: Vec<Option<(Prg, Prg)>>,
    channels: Vec<Option<Channel>>,
    /// Known to us alone.
    private: Prg,
    preprocessing: Preprocessing<A::E>,
    openings: Openings,
}

/// The error for an index outside a vector.
fn outside() -> EngineError {
    EngineError::internal("a part of a vector is out of its range")
}

fn no_streams(peer: usize) -> EngineError {
    EngineError::internal(format!("no streams in common with party {peer}"))
}

fn single<E: Element>(part: Vec<E>) -> Share<E> {
    Share { parts: vec![part] }
}

impl<A: Arithmetic> Additive<A> {
    /// Party `me`; `pairs` and `channels` have an entry a party, `None` for ourselves.
    pub fn new(
        me: usize,
        domain: A,
        pairs: Vec<Option<(Prg, Prg)>>,
        channels: Vec<Option<Channel>>,
        private: Prg,
        openings: Openings,
    ) -> Self {
        Self {
            me,
            parties: pairs.len(),
            domain,
            pairs,
            channels,
            private,
            preprocessing: Preprocessing::default(),
            openings,
        }
    }

    fn peers(&self) -> impl Iterator<Item = usize> + use<A> {
        let me = self.me;
        (0..self.parties).filter(move |peer| *peer != me)
    }

    fn channel(&mut self, peer: usize) -> Result<&mut Channel> {
        self.channels
            .get_mut(peer)
            .and_then(Option::as_mut)
            .ok_or_else(|| EngineError::usage(format!("no oblivious transfer with party {peer}")))
    }

    fn draw_private<D: Domain>(&mut self, domain: &D, n: usize) -> Vec<D::E> {
        let mut out = vec![domain.zero(); n];
        domain.random(&mut self.private, &mut out);
        out
    }

    /// Products from triples, summed over groups.
    fn beaver<D: Domain>(
        &mut self,
        domain: &D,
        x: Vec<D::E>,
        y: Vec<D::E>,
        length: usize,
    ) -> ShareTask<Self, D::E> {
        let n = x.len();
        self.preprocessing.need_triples(domain, n);
        let domain = domain.clone();
        at_start(move |p: &mut Self| {
            let [mut a, b, mut c] = p.preprocessing.take_triples(&domain, n)?;
            let mut masked = x;
            domain.sub_assign(&mut masked, &a);
            masked.extend_from_slice(&y);
            let second = masked.get_mut(n..).ok_or_else(outside)?;
            domain.sub_assign(second, &b);
            let task = p.sum_of_all(&domain, masked);
            Ok(then(task, move |_, opened| {
                // With e = x − a and f = y − b: x·y = e·y + f·a + c.
                let (e, f) = opened.split_at(n);
                domain.mul_acc(&mut c, e, &y);
                domain.mul_assign(&mut a, f);
                domain.add_assign(&mut c, &a);
                Ok(single(group_sums(&domain, c, length)?))
            }))
        })
    }

    /// Squares, summed over groups.
    fn square(&mut self, x: Vec<A::E>, length: usize) -> ShareTask<Self, A::E> {
        let n = x.len();
        self.preprocessing.squares.need(n);
        at_start(move |p: &mut Self| {
            let [a, mut c] = p.preprocessing.squares.take(n)?;
            let domain = p.domain.clone();
            let mut masked = x;
            domain.sub_assign(&mut masked, &a);
            let mine = masked.clone();
            let task = p.sum_of_all(&domain, masked);
            Ok(then(task, move |_, e| {
                // x² = e·(x + a) + c, and x + a = (x − a) + 2a.
                let mut sum = mine;
                domain.add_assign(&mut sum, &a);
                domain.add_assign(&mut sum, &a);
                domain.mul_acc(&mut c, &e, &sum);
                Ok(single(group_sums(&domain, c, length)?))
            }))
        })
    }
}

impl<A: Arithmetic> Protocol for Additive<A> {
    fn party(&self) -> (usize, usize) {
        (self.me, self.parties)
    }

    fn parts(&self) -> usize {
        1
    }

    fn has_binary(&self) -> bool {
        true
    }

    fn summands(&self) -> usize {
        self.parties
    }

    /// Public values are the summand of party 0.
    fn constant<D: Domain>(&self, domain: &D, values: &[D::E]) -> Result<Share<D::E>> {
        let mut share = Share::zeros(1, values.len());
        self.add_clear(domain, &mut share, values)?;
        Ok(share)
    }

    fn add_clear<D: Domain>(
        &self,
        domain: &D,
        share: &mut Share<D::E>,
        values: &[D::E],
    ) -> Result<()> {
        share.check(1, values.len())?;
        if self.me == 0 {
            domain.add_assign(share.part_mut(0)?, values);
        }
        Ok(())
    }

    fn random<D: Domain>(&mut self, domain: &D, n: usize) -> Result<ShareTask<Self, D::E>> {
        Ok(ready(self.random_local(domain, n)?))
    }

    fn random_is_local(&self) -> bool {
        true
    }

    fn random_local<D: Domain>(&mut self, domain: &D, n: usize) -> Result<Share<D::E>> {
        Ok(single(self.draw_private(domain, n)))
    }

    /// Two elements a product (one for squares: `a` and `b` are the same share) and peer, one round.
    fn dot<D: Domain>(
        &mut self,
        domain: &D,
        a: &Share<D::E>,
        b: &Share<D::E>,
        length: usize,
    ) -> Result<ShareTask<Self, D::E>> {
        if std::ptr::eq(a, b) && domain.kind() != DomainKind::Bits {
            let task = self.square(cast(a.only()?.to_vec())?, length);
            return Ok(then(task, |_, share| {
                let mut share = share;
                cast(std::mem::take(&mut share.parts)).map(|parts| Share { parts })
            }));
        }
        Ok(self.beaver(domain, a.only()?.to_vec(), b.only()?.to_vec(), length))
    }

    /// One oblivious transfer of a vector a bit and ordered pair of parties, n + 1 rounds.
    fn bit_products<D: Domain>(
        &mut self,
        ring: &D,
        bits: &Share<D::E>,
        v: &Share<D::E>,
    ) -> Result<ShareTask<Self, D::E>> {
        let (bits, v) = (bits.only()?.to_vec(), v.only()?.to_vec());
        Ok(bit_products::task(ring.clone(), bits, v))
    }

    fn open<D: Domain>(&mut self, domain: &D, a: &Share<D::E>) -> Result<ClearTask<Self, D::E>> {
        Ok(self.sum_of_all(domain, a.only()?.to_vec()))
    }

    /// Summands go out under a fresh sharing of zero, from the streams that pairs have in common.
    fn open_to<D: Domain>(
        &mut self,
        domain: &D,
        a: &Share<D::E>,
        receiver: usize,
    ) -> Result<SendFn<Self, Option<Vec<D::E>>>> {
        let mut mine = a.only()?.to_vec();
        let mut draw = vec![domain.zero(); mine.len()];
        for (peer, pair) in self.pairs.iter_mut().enumerate() {
            if self.me == peer {
                continue;
            }
            let (to, from) = pair.as_mut().ok_or_else(|| no_streams(peer))?;
            if self.me < peer {
                domain.random(to, &mut draw);
                domain.add_assign(&mut mine, &draw);
            } else {
                domain.random(from, &mut draw);
                domain.sub_assign(&mut mine, &draw);
            }
        }
        Ok(sum_to(domain, (0..self.parties).collect(), receiver, mine))
    }

    /// The others' summands come from the streams that the owner has in common with them: nothing is sent.
    fn input<D: Domain>(
        &mut self,
        domain: &D,
        owner: usize,
        n: usize,
        values: Option<Vec<D::E>>,
    ) -> Result<ShareTask<Self, D::E>> {
        let mut draw = vec![domain.zero(); n];
        if self.me != owner {
            let (_, from) = self
                .pairs
                .get_mut(owner)
                .and_then(Option::as_mut)
                .ok_or_else(|| no_streams(owner))?;
            domain.random(from, &mut draw);
            return Ok(ready(single(draw)));
        }
        let mut rest = values.ok_or_else(|| no_input(owner))?;
        for (peer, pair) in self.pairs.iter_mut().enumerate() {
            if peer == owner {
                continue;
            }
            let (to, _) = pair.as_mut().ok_or_else(|| no_streams(peer))?;
            domain.random(to, &mut draw);
            domain.sub_assign(&mut rest, &draw);
        }
        Ok(ready(single(rest)))
    }

    /// Taken from the bits that are shared in both domains: nothing is sent online.
    fn random_bit<D: Domain>(&mut self, domain: &D, n: usize) -> Result<ShareTask<Self, D::E>> {
        if domain.kind() == DomainKind::Bits {
            let random = self.draw_private(&BITS, lanes(n));
            return Ok(ready(single(lane_bits(domain, &random, n)?)));
        }
        self.preprocessing.need_bits(lanes(n));
        Ok(at_start(move |p: &mut Self| {
            let (_, mut elements) = p.preprocessing.take_bits(lanes(n))?;
            elements.truncate(n);
            Ok(ready(single(cast(elements)?)))
        }))
    }

    /// b ⊕ r is opened for a random bit r shared in both domains: one bit a bit and peer, one round.
    fn bit_to_arith<D: Domain>(
        &mut self,
        domain: &D,
        bits: &Share<u64>,
        n: usize,
    ) -> Result<ShareTask<Self, D::E>> {
        // Shares of bits are summands modulo 2 already.
        if matches!(domain.kind(), DomainKind::Bits | DomainKind::Z2k(1)) {
            return Ok(ready(single(lane_bits(domain, bits.only()?, n)?)));
        }
        let mut masked = bits.only()?.to_vec();
        let count = lanes(n);
        cut_lanes(&mut masked, n)?;
        self.preprocessing.need_bits(count);
        let domain = domain.clone();
        Ok(at_start(move |p: &mut Self| {
            let (random, mut elements) = p.preprocessing.take_bits(count)?;
            BITS.add_assign(&mut masked, &random);
            elements.truncate(n);
            let mut part: Vec<D::E> = cast(elements)?;
            let task = p.sum_of_all(&BITS, masked);
            Ok(then(task, move |p, opened| {
                // b = r + c − 2cr for public c = b ⊕ r.
                let clear = lane_bits(&domain, &opened, n)?;
                let two = domain.add(domain.one(), domain.one());
                let mut factor = clear.clone();
                domain.mul_scalar_assign(&mut factor, domain.neg(two));
                domain.add_scalar_assign(&mut factor, domain.one());
                domain.mul_assign(&mut part, &factor);
                let mut share = single(part);
                p.add_clear(&domain, &mut share, &clear)?;
                Ok(share)
            }))
        }))
    }

    fn prepare(&mut self) -> Result<Option<SendFn<Self, ()>>> {
        let work = self.preprocessing.next_work(self.parties);
        let mut tasks = Vec::new();
        if work.ands > 0 {
            tasks.push(ands::task(work.ands));
        }
        if work.triples > 0 {
            tasks.push(triples::task(work.triples));
        }
        if work.squares > 0 {
            tasks.push(squares::task(work.squares));
        }
        if work.bits > 0 {
            tasks.push(dabits::task(work.bits));
        }
        Ok(tasks
            .into_iter()
            .reduce(|a, b| join(a, b, |_, (), ()| Ok(()))))
    }

    fn preprocessed(&self) -> Vec<Preprocessed> {
        self.preprocessing.preprocessed()
    }

    /// Summand i is known to party i.
    fn summand_bits<D: Domain>(
        &self,
        domain: &D,
        a: &Share<D::E>,
        m: usize,
    ) -> Result<Vec<Vec<Share<u64>>>> {
        if !matches!(domain.kind(), DomainKind::Z2k(_)) {
            return Err(EngineError::usage(
                "split_to_n_summands works modulo 2^k only: use edaBits over a prime field",
            ));
        }
        let n = lanes(a.len());
        let mut own = bits::planes(a.only()?, m);
        Ok((0..self.parties)
            .map(|party| match party == self.me {
                true => std::mem::take(&mut own).into_iter().map(single).collect(),
                false => (0..m).map(|_| Share::zeros(1, n)).collect(),
            })
            .collect())
    }
}
