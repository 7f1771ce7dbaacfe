//! Shamir secret sharing over a prime field, t < n/2 corruptions, semi-honest (`shamir`).
//!
//! Party i holds f(i + 1) of a polynomial of degree t. Up to [`prss::PRSS_SUBSETS`] subsets, randomness is pseudo-random secret
//! sharing (Cramer, Damgård, Ishai, TCC 2005, §3) without communication; beyond, parties deal and extract.
//! Multiplication: below [`openings::KING_FROM`] parties every party reshares its product in one round, t of the new shares coming
//! from streams that pairs of parties have in common (n − 1 − t elements a dealer); beyond, a masked product goes to a
//! king who opens it (Damgård, Nielsen, CRYPTO 2007), the vector split among all kings: two rounds.

mod bits;
mod dealing;
mod descriptor;
mod openings;
mod polynomials;
mod prss;
#[cfg(test)]
mod tests;
mod verified;

use keyquorum_math::{Domain, DomainKind, Prg};

pub use self::descriptor::SHAMIR;
pub use self::descriptor::open_engine;
pub use self::polynomials::lagrange;
pub use self::prss::{fingerprint, subset_factor, zero_factor};
pub use self::prss::{subsets, uses_prss};
pub use self::verified::MAL_SHAMIR;
#[cfg(any(test, feature = "testing"))]
pub use self::verified::MOST_DRAWS;
pub use self::verified::open_verified;
use super::{ClearTask, Party, Protocol, Replicated, ShareTask, StoredShares, group_sums, sum_to};
use crate::adversary::{Corruption, Site, honest};
use crate::error::{EngineError, Result};
use crate::opening::SubsetStream;
use crate::points::Points;
use crate::task::{SendFn, Step, and_then, join, then, within};
use crate::value::Share;

/// Label of the streams of the replicated shares inside.
const REPLICATED_STREAM: u64 = 1;

/// One party of the Shamir protocol.
pub struct Shamir {
    me: usize,
    parties: usize,
    threshold: usize,
    points: Points,
    /// `pairs[j]`: the stream of which we deal to party j, and the one of which j deals to us.
    pairs: Vec<Option<(Prg, Prg)>>,
    subsets: Vec<SubsetStream>,
    /// With three parties: replicated shares, which turn into ours locally, make random bits and shuffles cheaper.
    replicated: Option<Replicated>,
    /// Where products are verified: after so many draws without a bit a random bit counts as a failed check.
    most_draws: usize,
    adversary: Corruption,
}

/// The error for an index outside a vector, or for another number of points than parties.
fn outside() -> EngineError {
    EngineError::internal("another number of parties or elements")
}

fn field_only<D: Domain>(domain: &D) -> Result<()> {
    match domain.kind() {
        DomainKind::Fq(_) => Ok(()),
        other => Err(EngineError::usage(format!(
            "shamir works over prime fields, not over {other}: take ring, or a prime"
        ))),
    }
}

fn no_bits<T>() -> Result<T> {
    Err(EngineError::usage(
        "shamir has no binary domain in this engine: use arithmetic bits (get_random_bit), or another protocol",
    ))
}

impl Shamir {
    /// Party `me` of `parties`, of which `threshold` may be corrupt. `pairs` has the streams in common with every other party, `None`
    /// for ourselves; `subsets` those of all subsets that we are in, or none at all.
    ///
    /// # Errors
    /// [`EngineError::Internal`] if a stream is missing: what comes from it would come from the others alone.
    pub fn new(
        me: usize,
        parties: usize,
        threshold: usize,
        mut pairs: Vec<Option<(Prg, Prg)>>,
        subsets: Vec<SubsetStream>,
    ) -> Result<Self> {
        let missing = || EngineError::internal("streams in common with other parties are missing");
        let has_all = |(peer, pair): (usize, &Option<_>)| pair.is_some() == (peer != me);
        if pairs.len() != parties || me >= parties || !pairs.iter().enumerate().all(has_all) {
            return Err(missing());
        }
        let mut ours = prss::subsets(parties, parties.saturating_sub(threshold));
        ours.retain(|members| members.contains(&me));
        let given = subsets.iter().map(|subset| &subset.members);
        if !subsets.is_empty() && !given.eq(&ours) {
            return Err(missing());
        }
        let mut stream = |peer: usize, dealing: bool| {
            let pair = pairs.get_mut(peer).and_then(Option::as_mut);
            let (to, from) = pair.ok_or_else(missing)?;
            let seed = if dealing { to } else { from }.next_seed();
            Ok::<_, EngineError>(Prg::new(seed, REPLICATED_STREAM))
        };
        let replicated = if parties == 3 && threshold == 1 {
            let next = stream((me + 1) % 3, true)?;
            let previous = stream((me + 2) % 3, false)?;
            Some(Replicated::new(me, next, previous))
        } else {
            None
        };
        Ok(Self {
            me,
            parties,
            threshold,
            points: Points::default(),
            pairs,
            subsets,
            replicated,
            most_draws: verified::MOST_DRAWS,
            adversary: honest(),
        })
    }

    /// This party among members of a committee that hold values at these points.
    pub(crate) fn at(mut self, points: Points) -> Self {
        self.points = points;
        self
    }

    /// Whether subsets of parties have streams in common: then random elements need no message.
    fn has_subsets(&self) -> bool {
        !self.subsets.is_empty()
    }

    /// Uniform elements from these streams.
    fn pseudorandom<D: Domain>(&mut self, domain: &D, n: usize) -> Result<Share<D::E>> {
        if !self.has_subsets() {
            return Err(EngineError::usage(
                "so many parties have no common streams: random values need a round",
            ));
        }
        Ok(Share {
            parts: vec![self.prss(domain, n)?],
        })
    }

    /// Every dealer reshares its share of degree 2t; the combination at 0 has degree t.
    fn reshared<D: Domain>(
        &mut self,
        domain: &D,
        mut product: Vec<D::E>,
    ) -> Result<ShareTask<Self, D::E>> {
        let dealers: Vec<usize> = (0..=2 * self.threshold).collect();
        let points: Vec<D::E> = dealers.iter().map(|i| self.points.at(domain, *i)).collect();
        let factors = lagrange(domain, &points, domain.zero())?;
        if dealers.contains(&self.me) {
            self.adversary
                .change_words(Site::Summand, None, domain, &mut product);
        }
        let n = product.len();
        self.deal_and_combine(domain, &dealers, factors, Some(&product), n)
    }

    fn replicated(&mut self) -> Result<&mut Replicated> {
        self.replicated
            .as_mut()
            .ok_or_else(|| EngineError::usage("replicated shares are for three parties"))
    }
}

impl Party for Shamir {
    /// There are none.
    type Bits = Replicated;

    fn party(&self) -> (usize, usize) {
        (self.me, self.parties)
    }

    fn parts(&self) -> usize {
        1
    }

    fn bits(&mut self) -> Result<&mut Replicated> {
        no_bits()
    }

    fn has_binary(&self) -> bool {
        false
    }
}

impl<D: Domain> StoredShares<D> for Shamir {}

impl<D: Domain> Protocol<D> for Shamir {
    fn add_clear(&self, domain: &D, share: &mut Share<D::E>, values: &[D::E]) -> Result<()> {
        share.check(1, values.len())?;
        domain.add_assign(share.part_mut(0)?, values);
        Ok(())
    }

    fn random(&mut self, domain: &D, n: usize) -> Result<Step<Self, Share<D::E>>> {
        field_only(domain)?;
        if self.has_subsets() {
            return Ok(Step::Done(self.pseudorandom(domain, n)?));
        }
        let batch = self.parties - self.threshold;
        let mut values = vec![domain.zero(); n.div_ceil(batch)];
        domain.random(
            &mut Prg::from_os().map_err(|e| EngineError::usage(e.to_string()))?,
            &mut values,
        );
        let dealt = self.deal_all(domain, &values, self.threshold)?;
        let domain = domain.clone();
        Ok(Step::Next(then(dealt, move |p, dealt| {
            Ok(Share {
                parts: vec![p.extract(&domain, &dealt, batch, n)?],
            })
        })))
    }

    fn dot(
        &mut self,
        domain: &D,
        a: &Share<D::E>,
        b: &Share<D::E>,
        length: usize,
    ) -> Result<ShareTask<Self, D::E>> {
        field_only(domain)?;
        let mut product = a.only()?.to_vec();
        domain.mul_assign(&mut product, b.only()?);
        let product = group_sums(domain, product, length)?;
        if !self.kings() {
            return self.reshared(domain, product);
        }
        let n = product.len();
        if self.has_subsets() {
            let low = self.prss(domain, n)?;
            let mut high = self.przs(domain, n)?;
            domain.add_assign(&mut high, &low);
            return self.unmask(domain, product, low, &high);
        }
        let masks = self.double_sharing(domain, n)?;
        let domain = domain.clone();
        Ok(and_then(masks, move |p, (low, high)| {
            p.unmask(&domain, product, low, &high)
        }))
    }

    fn open(&mut self, domain: &D, a: &Share<D::E>) -> Result<ClearTask<Self, D::E>> {
        let mine = a.only()?.to_vec();
        match self.kings() {
            true => self.open_through_kings(domain, mine, self.threshold + 1),
            false => self.open_from_next(domain, mine),
        }
    }

    /// t + 1 parties send their share times its Lagrange coefficient, masked by a fresh additive zero sharing: the
    /// receiver learns the sum, and nothing of the single shares.
    fn open_to(
        &mut self,
        domain: &D,
        a: &Share<D::E>,
        receiver: usize,
    ) -> Result<SendFn<Self, Option<Vec<D::E>>>> {
        let sources: Vec<usize> = (0..=self.threshold)
            .map(|step| self.after(receiver, step))
            .collect();
        let points: Vec<D::E> = sources.iter().map(|i| self.points.at(domain, *i)).collect();
        let factors = lagrange(domain, &points, domain.zero())?;
        let mut mine = a.only()?.to_vec();
        if let Some(index) = sources.iter().position(|source| *source == self.me) {
            let factor = factors.get(index).ok_or_else(outside)?;
            domain.mul_scalar_assign(&mut mine, *factor);
            let zero = self.additive_zero(domain, &sources, mine.len())?;
            domain.add_assign(&mut mine, &zero);
        }
        Ok(sum_to(domain, sources, receiver, mine))
    }

    fn input(
        &mut self,
        domain: &D,
        owner: usize,
        n: usize,
        values: Option<Vec<D::E>>,
    ) -> Result<ShareTask<Self, D::E>> {
        field_only(domain)?;
        self.deal_and_combine(domain, &[owner], vec![domain.one()], values.as_deref(), n)
    }

    /// Three parties: random bits of replicated shares. Otherwise: r random, c = r² opened, bit = (r/√c + 1)/2 (Damgård
    /// et al., TCC 2006, §3).
    fn random_bit(&mut self, domain: &D, n: usize) -> Result<ShareTask<Self, D::E>> {
        field_only(domain)?;
        if let Some(replicated) = &mut self.replicated {
            let bits = within(replicated.random_bit(domain, n)?, Self::replicated);
            let domain = domain.clone();
            return Ok(then(bits, move |p, bits| {
                p.convert_replicated(&domain, bits)
            }));
        }
        match self.random(domain, n)? {
            Step::Done(r) => self.bits_from(domain, r),
            Step::Next(r) => {
                let domain = domain.clone();
                Ok(and_then(r, move |p, r| p.bits_from(&domain, r)))
            }
        }
    }

    fn bit_to_arith(&mut self, _: &D, _: &Share<u64>, _: usize) -> Result<ShareTask<Self, D::E>> {
        no_bits()
    }

    fn has_shuffle(&self) -> bool {
        self.replicated.is_some()
    }

    /// Three parties: parties 0 and 1, whose shares determine x, input their summands of it as replicated shares, which
    /// are shuffled and turned back. Four rounds, 8 elements an entry.
    fn shuffle(
        &mut self,
        domain: &D,
        a: &Share<D::E>,
        unit: usize,
    ) -> Result<ShareTask<Self, D::E>> {
        field_only(domain)?;
        let n = a.len();
        let (me, at) = (self.me, |i| self.points.at(domain, i));
        let points = [at(0), at(1)];
        let mut mine = a.only()?.to_vec();
        let factors = lagrange(domain, &points, domain.zero())?;
        if me < points.len() {
            let factor = factors.get(me).ok_or_else(outside)?;
            domain.mul_scalar_assign(&mut mine, *factor);
        }
        let replicated = self.replicated()?;
        let x = replicated.input(domain, 0, n, (me == 0).then(|| mine.clone()))?;
        let y = replicated.input(domain, 1, n, (me == 1).then_some(mine))?;
        let (d, e, f) = (domain.clone(), domain.clone(), domain.clone());
        let sum = join(x, y, move |_, mut x: Share<D::E>, y: Share<D::E>| {
            x.combine(&y, |x, y| d.add_assign(x, y))?;
            Ok(x)
        });
        let shuffled = and_then(sum, move |p: &mut Replicated, x| p.shuffle(&e, &x, unit));
        Ok(then(within(shuffled, Self::replicated), move |p, x| {
            p.convert_replicated(&f, x)
        }))
    }
}
