//! `emulate`: clear text, one party, no security. The reference that every protocol must agree with.

use keyquorum_math::{Domain, Prg, bits};

use super::opening::Opening;
use super::{
    BITS, BitsAsElements, ClearTask, Party, Protocol, ShareTask, StoredShares, group_sums,
    lane_bits, lanes, no_input,
};
use crate::descriptor::{
    Adversary, Descriptor, Domains, MOST_RING_BITS, MpSpdz, Partners, Primes, PrivateNumbers,
    Sharing,
};
use crate::error::Result;
use crate::task::{SendFn, Step, ready};
use crate::value::Share;

/// `emulate`.
pub static EMULATE: Descriptor = Descriptor {
    name: "emulate",
    summary: "clear text in one process, no security",
    sharing: Sharing::None,
    domains: Domains {
        bits: true,
        ring: Some(MOST_RING_BITS),
        field: Some(Primes::Any),
        wide_fields: true,
    },
    binary: true,
    least_parties: 1,
    most_parties: Some(1),
    most_corruptions: |_| 0,
    chooses_threshold: false,
    adversary: Adversary::None,
    macs: false,
    held: |_, _, _| vec![0],
    summands: |_| 1,
    splits: true,
    edabits: false,
    oblivious_transfer: false,
    king_openings: false,
    committee: false,
    private_numbers: PrivateNumbers::Contributed,
    partners: || Partners {
        ring: Some(&EMULATE),
        field: &EMULATE,
        plain_field: &EMULATE,
        quorum: None,
    },
    mp_spdz: Some(MpSpdz {
        binary: "emulate.x",
        field: false,
        encrypt: false,
        shares: "Z2^{k}",
        extra_bits: 0,
    }),
};

/// Opens the engine of one party.
pub fn open_engine<O: Opening>(opening: &O) -> Result<O::Engine> {
    opening.in_any_domain(Emulate::new(opening.clear_prg()?))
}

/// Clear-text evaluation; tests only.
pub struct Emulate {
    prg: Prg,
}

impl Emulate {
    /// An emulator with this source of randomness.
    pub fn new(prg: Prg) -> Self {
        Self { prg }
    }

    fn draw<D: Domain>(&mut self, domain: &D, n: usize) -> Vec<D::E> {
        let mut out = vec![domain.zero(); n];
        domain.random(&mut self.prg, &mut out);
        out
    }
}

fn clear<E: keyquorum_math::Element>(values: Vec<E>) -> Share<E> {
    Share {
        parts: vec![values],
    }
}

impl Party for Emulate {
    type Bits = Self;

    fn party(&self) -> (usize, usize) {
        (0, 1)
    }

    fn parts(&self) -> usize {
        1
    }

    fn bits(&mut self) -> Result<&mut Self> {
        Ok(self)
    }
}

impl BitsAsElements for Emulate {}

impl<D: Domain> StoredShares<D> for Emulate {}

impl<D: Domain> Protocol<D> for Emulate {
    fn add_clear(&self, domain: &D, share: &mut Share<D::E>, values: &[D::E]) -> Result<()> {
        share.check(1, values.len())?;
        domain.add_assign(share.part_mut(0)?, values);
        Ok(())
    }

    fn random(&mut self, domain: &D, n: usize) -> Result<Step<Self, Share<D::E>>> {
        Ok(Step::Done(clear(self.draw(domain, n))))
    }

    fn dot(
        &mut self,
        domain: &D,
        a: &Share<D::E>,
        b: &Share<D::E>,
        length: usize,
    ) -> Result<ShareTask<Self, D::E>> {
        let mut product = a.only()?.to_vec();
        domain.mul_assign(&mut product, b.only()?);
        Ok(ready(clear(group_sums(domain, product, length)?)))
    }

    fn open(&mut self, _: &D, a: &Share<D::E>) -> Result<ClearTask<Self, D::E>> {
        Ok(ready(a.only()?.to_vec()))
    }

    fn open_to(
        &mut self,
        _: &D,
        a: &Share<D::E>,
        _receiver: usize,
    ) -> Result<SendFn<Self, Option<Vec<D::E>>>> {
        Ok(ready(Some(a.only()?.to_vec())))
    }

    fn input(
        &mut self,
        _: &D,
        owner: usize,
        _: usize,
        values: Option<Vec<D::E>>,
    ) -> Result<ShareTask<Self, D::E>> {
        let values = values.ok_or_else(|| no_input(owner))?;
        Ok(ready(clear(values)))
    }

    fn random_bit(&mut self, domain: &D, n: usize) -> Result<ShareTask<Self, D::E>> {
        let bits = self.draw(&BITS, lanes(n));
        Ok(ready(clear(lane_bits(domain, &bits, n)?)))
    }

    fn bit_to_arith(
        &mut self,
        domain: &D,
        bits: &Share<u64>,
        n: usize,
    ) -> Result<ShareTask<Self, D::E>> {
        Ok(ready(clear(lane_bits(domain, bits.only()?, n)?)))
    }

    fn summands(&self) -> usize {
        1
    }

    fn summand_bits(&self, _: &D, a: &Share<D::E>, m: usize) -> Result<Vec<Vec<Share<u64>>>> {
        Ok(vec![
            bits::planes(a.only()?, m).into_iter().map(clear).collect(),
        ])
    }
}
