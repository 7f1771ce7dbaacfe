//! Randomness that subsets of parties have in common, as shares without communication: pseudo-random secret sharing.

use keyquorum_math::Domain;
use sha2::{Digest, Sha256};

use super::{Shamir, outside};
use crate::error::{EngineError, Result};
use crate::opening::SubsetStream;
use crate::points::Points;
use crate::value::{Share, zip};

/// Pseudo-random secret sharing is used while there are at most this many subsets of parties.
pub const PRSS_SUBSETS: usize = 130;

/// A hash of the seeds of all subsets that have this peer.
pub fn fingerprint(streams: &[SubsetStream], peer: usize) -> [u8; 32] {
    let mut hash = Sha256::new_with_prefix(b"keyquorum-v1/seeds of subsets");
    for stream in streams.iter().filter(|s| s.members.contains(&peer)) {
        hash.update(stream.fingerprint);
    }
    hash.finalize().into()
}

/// All subsets of `size` of `0..n`, in lexicographic order.
pub fn subsets(n: usize, size: usize) -> Vec<Vec<usize>> {
    fn grow(
        from: usize,
        n: usize,
        size: usize,
        prefix: &mut Vec<usize>,
        out: &mut Vec<Vec<usize>>,
    ) {
        if prefix.len() == size {
            out.push(prefix.clone());
            return;
        }
        for i in from..n {
            prefix.push(i);
            grow(i + 1, n, size, prefix, out);
            prefix.pop();
        }
    }
    let mut out = Vec::new();
    grow(0, n, size, &mut Vec::new(), &mut out);
    out
}

/// Whether n parties of which t may be corrupt use pseudo-random secret sharing.
pub fn uses_prss(n: usize, t: usize) -> bool {
    let mut count = 1usize;
    for i in 0..t {
        count = count * (n - i) / (i + 1);
        if count > PRSS_SUBSETS {
            return false;
        }
    }
    true
}

/// The value at the point of `party`, of `parties` that have these points, of the polynomial that is 1 at 0 and has its roots at the points of the parties outside `members`.
///
/// # Errors
/// [`EngineError::Usage`] if the prime is not above the number of parties.
pub fn subset_factor<D: Domain>(
    domain: &D,
    points: &Points,
    party: usize,
    parties: usize,
    members: &[usize],
) -> Result<D::E> {
    let x = points.at(domain, party);
    let mut value = domain.one();
    for j in (0..parties).filter(|j| !members.contains(j)) {
        let root = points.at(domain, j);
        let inverse = domain.invert(domain.neg(root)).ok_or_else(|| {
            EngineError::usage("the prime is too small for this many parties: take a prime above n")
        })?;
        value = domain.mul(value, domain.mul(domain.sub(x, root), inverse));
    }
    Ok(value)
}

/// The value at the point of `party`, of `parties` that have these points, of the polynomial of shares of zero that `members` have in common: x times (x − root) for the points of
/// the parties outside. Zero at 0 and at these points alone.
///
/// # Errors
/// [`EngineError::Usage`] if the prime is not above the number of parties.
pub fn zero_factor<D: Domain>(
    domain: &D,
    points: &Points,
    party: usize,
    parties: usize,
    members: &[usize],
) -> Result<D::E> {
    let x = points.at(domain, party);
    let mut value = x;
    for j in (0..parties).filter(|j| !members.contains(j)) {
        value = domain.mul(value, domain.sub(x, points.at(domain, j)));
    }
    if members.contains(&party) && value == domain.zero() {
        return Err(EngineError::usage(
            "the prime is too small for this many parties: take a prime above n",
        ));
    }
    Ok(value)
}

impl Shamir {
    /// [`subset_factor`] of our point.
    fn subset_factor<D: Domain>(&self, domain: &D, members: &[usize]) -> Result<D::E> {
        subset_factor(domain, &self.points, self.me, self.parties, members)
    }

    /// [`Shamir::subset_factor`] of every subset.
    fn subset_factors<D: Domain>(&self, domain: &D) -> Result<Vec<D::E>> {
        let members = self.subsets.iter().map(|subset| &subset.members);
        members
            .map(|members| self.subset_factor(domain, members))
            .collect()
    }

    /// Our Shamir share from replicated ones (Cramer, Damgård, Ishai, TCC 2005, §3): the summand s_j, known to parties j
    /// and j+1, times the polynomial that is 1 at 0 and 0 at the third party's point. Local.
    pub(super) fn convert_replicated<D: Domain>(
        &self,
        domain: &D,
        mut x: Share<D::E>,
    ) -> Result<Share<D::E>> {
        x.pair()?;
        for (part, lead) in x.parts.iter_mut().zip([self.me, (self.me + 2) % 3]) {
            let factor = self.subset_factor(domain, &[lead, (lead + 1) % 3])?;
            domain.mul_scalar_assign(part, factor);
        }
        let mut parts = std::mem::take(&mut x.parts);
        let second = parts.pop().ok_or_else(outside)?;
        domain.add_assign(parts.first_mut().ok_or_else(outside)?, &second);
        Ok(Share { parts })
    }

    /// Pseudo-random sharing of a random vector (degree t).
    pub(super) fn prss<D: Domain>(&mut self, domain: &D, n: usize) -> Result<Vec<D::E>> {
        let mut acc = vec![domain.zero(); n];
        let mut draw = vec![domain.zero(); n];
        let factors = self.subset_factors(domain)?;
        for (stream, factor) in zip(&mut self.subsets, factors)? {
            domain.random(&mut stream.prg, &mut draw);
            domain.mul_scalar_assign(&mut draw, factor);
            domain.add_assign(&mut acc, &draw);
        }
        Ok(acc)
    }

    /// Pseudo-random sharing of zero of degree 2t: each subset polynomial times x, x², …, x^t.
    pub(super) fn przs<D: Domain>(&mut self, domain: &D, n: usize) -> Result<Vec<D::E>> {
        let x = self.points.at(domain, self.me);
        let mut acc = vec![domain.zero(); n];
        let mut draw = vec![domain.zero(); n];
        let factors = self.subset_factors(domain)?;
        for (stream, mut factor) in zip(&mut self.subsets, factors)? {
            for _ in 0..self.threshold {
                factor = domain.mul(factor, x);
                domain.random(&mut stream.prg, &mut draw);
                domain.mul_scalar_assign(&mut draw, factor);
                domain.add_assign(&mut acc, &draw);
            }
        }
        Ok(acc)
    }

    /// Our summand of an additive zero sharing among `members`, from the streams that pairs of them have in common.
    pub(super) fn additive_zero<D: Domain>(
        &mut self,
        domain: &D,
        members: &[usize],
        n: usize,
    ) -> Result<Vec<D::E>> {
        let mut acc = vec![domain.zero(); n];
        let mut draw = vec![domain.zero(); n];
        for other in members.iter().copied().filter(|other| *other != self.me) {
            let pair = self.pairs.get_mut(other).and_then(Option::as_mut);
            let (to, from) = pair.ok_or_else(outside)?;
            if self.me < other {
                domain.random(to, &mut draw);
                domain.add_assign(&mut acc, &draw);
            } else {
                domain.random(from, &mut draw);
                domain.sub_assign(&mut acc, &draw);
            }
        }
        Ok(acc)
    }
}
