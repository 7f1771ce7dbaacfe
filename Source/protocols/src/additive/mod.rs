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

use super::items::Items;
use super::{
    BITS, BitProtocol, ClearTask, Party, Protocol, ShareTask, StoredShares, cut_lanes, group_sums,
    lane_bits, lanes, no_input, sum_to,
};
use crate::Preprocessed;
use crate::error::{EngineError, Result};
use crate::opening::{Channel, Openings};
use crate::task::{SendFn, Step, at_start, join, ready, then};
use crate::value::Share;
pub use arithmetic::Arithmetic;
#[cfg(test)]
pub(super) use bit_products::add_chosen;
pub use descriptors::open_engine;
pub use descriptors::{SEMI, SEMI_BIN, SEMI2K};
use preprocessing::Preprocessing;

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

/// Where triples of a domain wait.
type Triples<A, E> = fn(&mut Additive<A>) -> &mut Items<E, 3>;

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

    fn triples(&mut self) -> &mut Items<A::E, 3> {
        A::triples(
            &mut self.preprocessing.triples,
            &mut self.preprocessing.ands,
        )
    }

    fn ands(&mut self) -> &mut Items<u64, 3> {
        &mut self.preprocessing.ands
    }

    /// Public values are the summand of party 0.
    fn add_public<D: Domain>(
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

    /// The others' summands come from the streams that the owner has in common with them: nothing is sent.
    fn dealt<D: Domain>(
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

    /// Products from triples, summed over groups. Two elements a product and peer, one round.
    fn beaver<D: Domain>(
        &mut self,
        domain: &D,
        triples: Triples<A, D::E>,
        [x, y]: [&Share<D::E>; 2],
        length: usize,
    ) -> Result<ShareTask<Self, D::E>> {
        let (x, y) = (x.only()?.to_vec(), y.only()?.to_vec());
        let n = x.len();
        triples(self).need(n);
        let domain = domain.clone();
        Ok(at_start(move |p: &mut Self| {
            let [mut a, b, mut c] = triples(p).take(n)?;
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
        }))
    }

    /// Squares, summed over groups. One element a square and peer, one round.
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

impl<A: Arithmetic> Party for Additive<A> {
    type Bits = Self;

    fn party(&self) -> (usize, usize) {
        (self.me, self.parties)
    }

    fn parts(&self) -> usize {
        1
    }

    fn bits(&mut self) -> Result<&mut Self> {
        Ok(self)
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
}

impl<A: Arithmetic> StoredShares<A> for Additive<A> {}

impl<A: Arithmetic> Protocol<A> for Additive<A> {
    fn add_clear(&self, domain: &A, share: &mut Share<A::E>, values: &[A::E]) -> Result<()> {
        self.add_public(domain, share, values)
    }

    fn random(&mut self, domain: &A, n: usize) -> Result<Step<Self, Share<A::E>>> {
        Ok(Step::Done(single(self.draw_private(domain, n))))
    }

    /// The product of a share with itself (`a` and `b` are the same object) is a square, at half the cost.
    fn dot(
        &mut self,
        domain: &A,
        a: &Share<A::E>,
        b: &Share<A::E>,
        length: usize,
    ) -> Result<ShareTask<Self, A::E>> {
        if std::ptr::eq(a, b) && domain.kind() != DomainKind::Bits {
            return Ok(self.square(a.only()?.to_vec(), length));
        }
        self.beaver(domain, Self::triples, [a, b], length)
    }

    /// One oblivious transfer of a vector a bit and ordered pair of parties, n + 1 rounds.
    fn bit_products(
        &mut self,
        ring: &A,
        bits: &Share<A::E>,
        v: &Share<A::E>,
    ) -> Result<ShareTask<Self, A::E>> {
        let (bits, v) = (bits.only()?.to_vec(), v.only()?.to_vec());
        Ok(bit_products::task(ring.clone(), bits, v))
    }

    fn open(&mut self, domain: &A, a: &Share<A::E>) -> Result<ClearTask<Self, A::E>> {
        Ok(self.sum_of_all(domain, a.only()?.to_vec()))
    }

    /// Summands go out under a fresh sharing of zero, from the streams that pairs have in common.
    fn open_to(
        &mut self,
        domain: &A,
        a: &Share<A::E>,
        receiver: usize,
    ) -> Result<SendFn<Self, Option<Vec<A::E>>>> {
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

    fn input(
        &mut self,
        domain: &A,
        owner: usize,
        n: usize,
        values: Option<Vec<A::E>>,
    ) -> Result<ShareTask<Self, A::E>> {
        self.dealt(domain, owner, n, values)
    }

    /// Taken from the bits that are shared in both domains: nothing is sent online.
    fn random_bit(&mut self, domain: &A, n: usize) -> Result<ShareTask<Self, A::E>> {
        if domain.kind() == DomainKind::Bits {
            let random = self.draw_private(&BITS, lanes(n));
            return Ok(ready(single(lane_bits(domain, &random, n)?)));
        }
        self.preprocessing.need_bits(lanes(n));
        Ok(at_start(move |p: &mut Self| {
            let (_, mut elements) = p.preprocessing.take_bits(lanes(n))?;
            elements.truncate(n);
            Ok(ready(single(elements)))
        }))
    }

    /// b ⊕ r is opened for a random bit r shared in both domains: one bit a bit and peer, one round.
    fn bit_to_arith(
        &mut self,
        domain: &A,
        bits: &Share<u64>,
        n: usize,
    ) -> Result<ShareTask<Self, A::E>> {
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
            let (random, mut part) = p.preprocessing.take_bits(count)?;
            BITS.add_assign(&mut masked, &random);
            part.truncate(n);
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
                p.add_public(&domain, &mut share, &clear)?;
                Ok(share)
            }))
        }))
    }

    fn summands(&self) -> usize {
        self.parties
    }

    /// Summand i is known to party i.
    fn summand_bits(&self, domain: &A, a: &Share<A::E>, m: usize) -> Result<Vec<Vec<Share<u64>>>> {
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

impl<A: Arithmetic> BitProtocol for Additive<A> {
    fn bit_parts(&mut self) -> Result<usize> {
        Ok(1)
    }

    fn add_clear_bits(&mut self, share: &mut Share<u64>, values: &[u64]) -> Result<()> {
        self.add_public(&BITS, share, values)
    }

    fn random_bits(&mut self, lanes: usize) -> Result<Step<Self, Share<u64>>> {
        Ok(Step::Done(single(self.draw_private(&BITS, lanes))))
    }

    fn and(&mut self, a: &Share<u64>, b: &Share<u64>) -> Result<ShareTask<Self, u64>> {
        self.beaver(&BITS, Self::ands, [a, b], 1)
    }

    fn open_bits(&mut self, a: &Share<u64>) -> Result<ClearTask<Self, u64>> {
        Ok(self.sum_of_all(&BITS, a.only()?.to_vec()))
    }

    fn input_bits(
        &mut self,
        owner: usize,
        lanes: usize,
        values: Option<Vec<u64>>,
    ) -> Result<ShareTask<Self, u64>> {
        self.dealt(&BITS, owner, lanes, values)
    }
}
