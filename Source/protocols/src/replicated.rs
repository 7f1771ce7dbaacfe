//! Replicated secret sharing among three parties, one corruption, semi-honest (`ring`, `rep-field`).
//!
//! x = s₀ + s₁ + s₂; party i holds the parts (s_i, s_{i−1}). Each pair of parties has a common pseudo-random stream, so
//! randomness, and one of the two summands of an input, cost no communication. Multiplication: Araki et al., CCS 2016,
//! §2: one element a party, one round. Bits are the same protocol over packed lanes. With verified products: [`verified`].
//! Longer than 400 lines: one protocol, one trait.

mod verified;

use std::borrow::Cow;

use keyquorum_math::{Domain, DomainKind, Element, Prg, bits};
use zeroize::Zeroizing;

pub use self::verified::open_verified;
pub use self::verified::{MAL_REP_FIELD, MAL_REP_RING};
use super::opening::Opening;
use super::permutation::{permuted, random_permutation};
use super::{
    BITS, BitsAsElements, ClearTask, Party, Protocol, ShareTask, StoredShares, group_sums,
    lane_bits, lanes, no_input, sum_to,
};
use crate::adversary::{Corruption, Site, honest};
use crate::descriptor::{
    Adversary, Descriptor, Domains, MOST_RING_BITS, MpSpdz, Partners, Primes, PrivateNumbers,
    Sharing,
};
use crate::error::{EngineError, Result};
use crate::task::{
    SendFn, Step, and_then, ready, receive_from, rotate, rotate_with, send_to, then,
};
use crate::value::{Share, zip};

/// The fields that both domains share.
const REPLICATED: Descriptor = Descriptor {
    name: "",
    summary: "",
    sharing: Sharing::Replicated,
    domains: Domains::NONE,
    binary: true,
    least_parties: 3,
    most_parties: Some(3),
    most_corruptions: |_| 1,
    chooses_threshold: false,
    adversary: Adversary::SemiHonest,
    macs: false,
    held: |party, _, _| vec![party, (party + 2) % 3],
    summands: |_| 3,
    splits: false,
    edabits: false,
    oblivious_transfer: false,
    king_openings: false,
    committee: true,
    private_numbers: PrivateNumbers::Contributed,
    partners: || Partners {
        ring: Some(&RING),
        field: &REP_FIELD,
        plain_field: &REP_FIELD,
        quorum: None,
    },
    mp_spdz: None,
};

/// `ring`.
pub static RING: Descriptor = Descriptor {
    name: "ring",
    summary: "replicated, 3 parties, 1 corruption, semi-honest; the same committee as rep-field",
    domains: Domains {
        ring: Some(MOST_RING_BITS),
        ..Domains::NONE
    },
    splits: true,
    mp_spdz: Some(MpSpdz {
        binary: "replicated-ring-party.x",
        field: false,
        encrypt: false,
        shares: "replicated Z2^{k}",
        extra_bits: 0,
    }),
    ..REPLICATED
};

/// `rep-field`.
pub static REP_FIELD: Descriptor = Descriptor {
    name: "rep-field",
    summary: "replicated, 3 parties, 1 corruption, semi-honest",
    domains: Domains {
        field: Some(Primes::Any),
        wide_fields: true,
        ..Domains::NONE
    },
    mp_spdz: Some(MpSpdz {
        binary: "replicated-field-party.x",
        field: true,
        encrypt: false,
        shares: "replicated gfp",
        extra_bits: 0,
    }),
    ..REPLICATED
};

/// The share of these two summands.
fn pair<E: Element>(first: Vec<E>, second: Vec<E>) -> Share<E> {
    Share {
        parts: vec![first, second],
    }
}

/// Secret elements that are no share.
type Secrets<E> = Zeroizing<Vec<E>>;

/// Opens the engine of one party.
pub fn open_engine<O: Opening>(opening: &O) -> Result<O::Engine> {
    opening.in_any_domain(party(opening)?)
}

/// Our party, with the streams of this engine.
fn party(opening: &impl Opening) -> Result<Replicated> {
    let me = opening.party();
    let (next, _) = opening.pair_prgs((me + 1) % 3)?;
    let (_, previous) = opening.pair_prgs((me + 2) % 3)?;
    Ok(Replicated::new(me, next, previous).corrupted(opening.adversary()))
}

/// One party of the replicated protocol.
pub struct Replicated {
    me: usize,
    /// In common with party i+1: yields our first part.
    next: Prg,
    /// In common with party i−1: yields our second part.
    previous: Prg,
    adversary: Corruption,
}

impl Replicated {
    /// Party `me` of three, with the streams in common with the next and the previous party.
    pub fn new(me: usize, next: Prg, previous: Prg) -> Self {
        Self {
            me,
            next,
            previous,
            adversary: honest(),
        }
    }

    fn next_party(&self) -> usize {
        (self.me + 1) % 3
    }

    fn previous_party(&self) -> usize {
        (self.me + 2) % 3
    }

    fn draw<D: Domain>(prg: &mut Prg, domain: &D, n: usize) -> Vec<D::E> {
        let mut out = vec![domain.zero(); n];
        domain.random(prg, &mut out);
        out
    }

    /// Uniform elements.
    fn drawn<D: Domain>(&mut self, domain: &D, n: usize) -> Share<D::E> {
        let first = Self::draw(&mut self.next, domain, n);
        let second = Self::draw(&mut self.previous, domain, n);
        pair(first, second)
    }

    /// One pass of a shuffle: parties i = `first` and i+1 apply a permutation of their common stream to x = a + b, where
    /// a = s_i + s_{i−1} is known to party i and b = s_{i+1} to party i+1. The new summands s_{i−1} and s_{i+1} come from
    /// the streams in common with the third party, which learns nothing; s_i is what remains, after one element each way.
    fn shuffle_pass<D: Domain>(
        &mut self,
        domain: &D,
        x: Share<D::E>,
        unit: usize,
        first: usize,
    ) -> Result<ShareTask<Self, D::E>> {
        let n = x.len();
        let (own, other) = x.pair()?;
        let leads = self.me == first;
        if !leads && self.previous_party() != first {
            // The third party, i−1: its summands are s_{i−1}, in common with party i, and s_{i+1}.
            let mine = Self::draw(&mut self.next, domain, n);
            let theirs = Self::draw(&mut self.previous, domain, n);
            return Ok(ready(pair(mine, theirs)));
        }
        let (mut half, order, fresh, peer) = if leads {
            let mut half = own.to_vec();
            domain.add_assign(&mut half, other);
            let order = random_permutation(&mut self.next, n / unit);
            let fresh = Self::draw(&mut self.previous, domain, n);
            (half, order, fresh, self.next_party())
        } else {
            let order = random_permutation(&mut self.previous, n / unit);
            let fresh = Self::draw(&mut self.next, domain, n);
            (own.to_vec(), order, fresh, self.previous_party())
        };
        half = permuted(&half, &order, unit)?;
        domain.sub_assign(&mut half, &fresh);
        let d = domain.clone();
        let halves = rotate(domain, peer, half, peer);
        Ok(then(halves, move |_, (mut half, theirs)| {
            d.add_assign(&mut half, &theirs);
            Ok(match leads {
                true => pair(half, fresh),
                false => pair(fresh, half),
            })
        }))
    }

    /// The second round of [`Protocol::bit_to_arith`]: parties 0 and 2 turn their summand of v into their half of the result, and input it.
    fn inject<D: Domain>(
        &mut self,
        domain: D,
        known: &[D::E],
        mut half: Secrets<D::E>,
    ) -> ShareTask<Self, D::E> {
        let (me, n) = (self.me, half.len());
        if me != 1 {
            for (summand, bit) in half.iter_mut().zip(known) {
                let product = domain.mul(*bit, domain.add(*summand, *summand));
                *summand = domain.sub(*summand, product);
                if me == 0 {
                    *summand = domain.add(*summand, *bit);
                }
            }
        }
        // s₀ is drawn by parties 0 and 1, s₂ by parties 2 and 0, and s₁ is what remains of the second half. What remains of the first belongs to s₂.
        let (next, previous) = (self.next_party(), self.previous_party());
        match me {
            0 => {
                let zero = Self::draw(&mut self.next, &domain, n);
                let mut two = Self::draw(&mut self.previous, &domain, n);
                domain.sub_assign(&mut half, &zero);
                domain.add_assign(&mut two, &half);
                then(send_to(&domain, previous, half), |_, _| Ok(pair(zero, two)))
            }
            1 => {
                let zero = Self::draw(&mut self.previous, &domain, n);
                then(receive_from(&domain, next, n), |_, one| Ok(pair(one, zero)))
            }
            _ => {
                let mut two = Self::draw(&mut self.next, &domain, n);
                domain.sub_assign(&mut half, &two);
                let round = rotate(&domain, previous, half, next);
                then(round, move |_, (mut half, theirs)| {
                    domain.add_assign(&mut two, &theirs);
                    Ok(pair(two, std::mem::take(&mut *half)))
                })
            }
        }
    }

    /// Turns an additive sharing, one summand a party, into a replicated one: one element a party, under a fresh sharing of zero.
    fn reshared<D: Domain>(&mut self, domain: &D, mut mine: Vec<D::E>) -> ShareTask<Self, D::E> {
        let n = mine.len();
        domain.add_assign(&mut mine, &Self::draw(&mut self.next, domain, n));
        domain.sub_assign(&mut mine, &Self::draw(&mut self.previous, domain, n));
        self.adversary
            .change_words(Site::Summand, None, domain, &mut mine);
        let (next, previous) = (self.next_party(), self.previous_party());
        let round = rotate_with(domain, next, mine, previous, Self::sent_summand);
        then(round, |_, (mine, theirs)| Ok(pair(mine, theirs)))
    }

    /// What goes to the next party in place of our summand.
    fn sent_summand<'a, D: Domain>(&self, domain: &D, mine: &'a [D::E]) -> Cow<'a, [D::E]> {
        let to = Some(self.next_party());
        self.adversary
            .changed_words(Site::Summand, to, domain, mine)
    }
}

impl Party for Replicated {
    type Bits = Self;

    fn party(&self) -> (usize, usize) {
        (self.me, 3)
    }

    fn parts(&self) -> usize {
        2
    }

    fn bits(&mut self) -> Result<&mut Self> {
        Ok(self)
    }
}

impl BitsAsElements for Replicated {}

impl<D: Domain> StoredShares<D> for Replicated {}

impl<D: Domain> Protocol<D> for Replicated {
    /// Public values go to the summand s₀.
    fn add_clear(&self, domain: &D, share: &mut Share<D::E>, values: &[D::E]) -> Result<()> {
        share.check(2, values.len())?;
        // Party 2 has no part of s₀.
        if self.me < 2 {
            domain.add_assign(share.part_mut(self.me)?, values);
        }
        Ok(())
    }

    fn random(&mut self, domain: &D, n: usize) -> Result<Step<Self, Share<D::E>>> {
        Ok(Step::Done(self.drawn(domain, n)))
    }

    fn dot(
        &mut self,
        domain: &D,
        a: &Share<D::E>,
        b: &Share<D::E>,
        length: usize,
    ) -> Result<ShareTask<Self, D::E>> {
        let (a0, a1) = a.pair()?;
        let (b0, b1) = b.pair()?;
        // a0·(b0 + b1) + a1·b0
        let mut z = b0.to_vec();
        domain.add_assign(&mut z, b1);
        domain.mul_assign(&mut z, a0);
        domain.mul_acc(&mut z, a1, b0);
        let z = group_sums(domain, z, length)?;
        Ok(self.reshared(domain, z))
    }

    fn open(&mut self, domain: &D, a: &Share<D::E>) -> Result<ClearTask<Self, D::E>> {
        let (first, second) = a.pair()?;
        let (mut sum, second, d) = (first.to_vec(), second.to_vec(), domain.clone());
        let round = rotate(domain, self.next_party(), second, self.previous_party());
        Ok(then(round, move |_, (second, third)| {
            d.add_assign(&mut sum, &second);
            d.add_assign(&mut sum, &third);
            Ok(sum)
        }))
    }

    /// The receiver gets the one summand it lacks; that summand is determined by the value and its own two, so no zero
    /// sharing is needed.
    fn open_to(
        &mut self,
        domain: &D,
        a: &Share<D::E>,
        receiver: usize,
    ) -> Result<SendFn<Self, Option<Vec<D::E>>>> {
        let (first, second) = a.pair()?;
        let mut mine = second.to_vec();
        if self.me == receiver {
            domain.add_assign(&mut mine, first);
        }
        Ok(sum_to(domain, vec![(receiver + 2) % 3], receiver, mine))
    }

    /// x = s_o + s_{o−1}, with s_o from the stream that the owner has in common with the next party: one element in all.
    fn input(
        &mut self,
        domain: &D,
        owner: usize,
        n: usize,
        values: Option<Vec<D::E>>,
    ) -> Result<ShareTask<Self, D::E>> {
        let zeros = vec![domain.zero(); n];
        if self.me == owner {
            let mut rest = values.ok_or_else(|| no_input(owner))?;
            let first = Self::draw(&mut self.next, domain, n);
            domain.sub_assign(&mut rest, &first);
            self.adversary
                .change_words(Site::Input, None, domain, &mut rest);
            let sent = send_to(domain, self.previous_party(), rest);
            Ok(then(sent, |_, rest| Ok(pair(first, rest))))
        } else if self.previous_party() == owner {
            let second = Self::draw(&mut self.previous, domain, n);
            Ok(ready(pair(zeros, second)))
        } else {
            Ok(then(receive_from(domain, owner, n), |_, first| {
                Ok(pair(first, zeros))
            }))
        }
    }

    fn random_bit(&mut self, domain: &D, n: usize) -> Result<ShareTask<Self, D::E>> {
        let bits = self.drawn(&BITS, lanes(n));
        self.bit_to_arith(domain, &bits, n)
    }

    /// Bit injection: b = b₀ ⊕ b₁ ⊕ b₂. Party 1 knows v = b₀ ⊕ b₁ and inputs it as v = v₀ + v₁ (v₀ with parties 0 and 1,
    /// v₁ with parties 1 and 2). Then b = (1 − 2b₂)·v₀ + b₂ + (1 − 2b₂)·v₁, whose first half party 0 knows and whose
    /// second half party 2 knows; each inputs its half. One element a party, two rounds.
    fn bit_to_arith(
        &mut self,
        domain: &D,
        bits: &Share<u64>,
        n: usize,
    ) -> Result<ShareTask<Self, D::E>> {
        let (own, other) = bits.pair()?;
        // Shares of bits are summands modulo 2 already.
        if domain.kind() == DomainKind::Z2k(1) {
            let (own, other) = (lane_bits(domain, own, n)?, lane_bits(domain, other, n)?);
            return Ok(ready(pair(own, other)));
        }
        let known = match self.me {
            0 => other.to_vec(),                                      // b₂
            1 => own.iter().zip(other).map(|(x, y)| x ^ y).collect(), // b₁ ⊕ b₀
            _ => own.to_vec(),                                        // b₂
        };
        let mut known = Zeroizing::new(lane_bits(domain, &known, n)?);
        let summand: SendFn<Self, Secrets<D::E>> = match self.me {
            0 => then(receive_from(domain, self.next_party(), n), |_, v| {
                Ok(Zeroizing::new(v))
            }),
            1 => {
                let v = Zeroizing::new(Self::draw(&mut self.next, domain, n));
                domain.sub_assign(&mut known, &v);
                let rest = std::mem::take(&mut known);
                then(send_to(domain, self.previous_party(), rest), |_, _| Ok(v))
            }
            _ => ready(Zeroizing::new(Self::draw(&mut self.previous, domain, n))),
        };
        let domain = domain.clone();
        Ok(and_then(summand, move |p, v| {
            Ok(p.inject(domain, &known, v))
        }))
    }

    fn has_shuffle(&self) -> bool {
        true
    }

    /// Every pair of parties permutes once, so that each party misses one permutation (Laur, Willemson, Zhang, ISC 2011,
    /// §4.3, resharing with common streams). Three rounds, 2 elements an entry in each.
    fn shuffle(
        &mut self,
        domain: &D,
        a: &Share<D::E>,
        unit: usize,
    ) -> Result<ShareTask<Self, D::E>> {
        let first = self.shuffle_pass(domain, a.duplicate(), unit, 0)?;
        let (d, e) = (domain.clone(), domain.clone());
        let second = and_then(first, move |p, x| p.shuffle_pass(&d, x, unit, 1));
        Ok(and_then(second, move |p, x| p.shuffle_pass(&e, x, unit, 2)))
    }

    fn summands(&self) -> usize {
        3
    }

    fn summand_bits(&self, domain: &D, a: &Share<D::E>, m: usize) -> Result<Vec<Vec<Share<u64>>>> {
        if !matches!(domain.kind(), DomainKind::Z2k(_)) {
            return Err(EngineError::usage(
                "split_to_n_summands works modulo 2^k only: use edaBits over a prime field",
            ));
        }
        let n = lanes(a.len());
        let (first, second) = a.pair()?;
        let (mut first, mut second) = (bits::planes(first, m), bits::planes(second, m));
        let rows = |known: bool, of: &mut Vec<Vec<u64>>| match known {
            true => std::mem::take(of),
            false => vec![vec![0; n]; m],
        };
        let summand = |index: usize| -> Result<Vec<Share<u64>>> {
            let own = rows(index == self.me, &mut first);
            let other = rows(index == self.previous_party(), &mut second);
            Ok(zip(own, other)?
                .map(|(own, other)| pair(own, other))
                .collect())
        };
        (0..3).map(summand).collect()
    }
}
