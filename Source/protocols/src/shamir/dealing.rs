//! Dealt sharings: t shares of each come from streams that pairs of parties have in common, or its polynomial is drawn whole.

use keyquorum_math::{Domain, Prg};

use super::polynomials::{add_scaled, lagrange};
use super::{Shamir, outside};
use crate::adversary::Site;
use crate::error::{EngineError, Result};
use crate::task::{SendFn, at_start, exchange, join, then};
use crate::value::{Share, zip};
use crate::{ShareTask, no_input};

/// Shares of degree t and of degree 2t of the same random vector.
pub(super) type Masks<E> = (Vec<E>, Vec<E>);

impl Shamir {
    pub(super) fn after(&self, party: usize, step: usize) -> usize {
        (party + step) % self.parties
    }

    /// The other parties.
    pub(super) fn peers(&self) -> impl Iterator<Item = usize> + use<> {
        let me = self.me;
        (0..self.parties).filter(move |peer| *peer != me)
    }

    /// Whether `receiver` derives its share of what `dealer` deals from their common stream.
    fn derived(&self, dealer: usize, receiver: usize) -> bool {
        let step = (receiver + self.parties - dealer) % self.parties;
        (1..=self.threshold).contains(&step)
    }

    fn draw_dealt<D: Domain>(&mut self, domain: &D, dealer: usize, n: usize) -> Result<Vec<D::E>> {
        let mut out = vec![domain.zero(); n];
        let (_, from) = self
            .pairs
            .get_mut(dealer)
            .and_then(Option::as_mut)
            .ok_or_else(outside)?;
        domain.random(from, &mut out);
        Ok(out)
    }

    /// Deals a sharing of our `values`: t shares from common streams, the polynomial through them and the secret gives the
    /// others. Returns the shares of all parties, `None` for those that are derived.
    fn deal<D: Domain>(&mut self, domain: &D, values: &[D::E]) -> Result<Vec<Option<Vec<D::E>>>> {
        let n = values.len();
        let mut points = vec![domain.zero()];
        let mut known: Vec<Vec<D::E>> = vec![values.to_vec()];
        for step in 1..=self.threshold {
            let to = self.after(self.me, step);
            let mut share = vec![domain.zero(); n];
            let (dealt, _) = self
                .pairs
                .get_mut(to)
                .and_then(Option::as_mut)
                .ok_or_else(outside)?;
            domain.random(dealt, &mut share);
            points.push(self.points.at(domain, to));
            known.push(share);
        }
        (0..self.parties)
            .map(|to| {
                if self.derived(self.me, to) {
                    return Ok(None);
                }
                let mut share = vec![domain.zero(); n];
                let factors = lagrange(domain, &points, self.points.at(domain, to))?;
                for (factor, v) in zip(factors, &known)? {
                    add_scaled(domain, &mut share, v, factor);
                }
                Ok(Some(share))
            })
            .collect()
    }

    /// Every dealer of `dealers` deals; the result is the sum of what each dealt times its factor.
    pub(super) fn deal_and_combine<D: Domain>(
        &mut self,
        domain: &D,
        dealers: &[usize],
        factors: Vec<D::E>,
        values: Option<&[D::E]>,
        n: usize,
    ) -> Result<ShareTask<Self, D::E>> {
        let mut acc = vec![domain.zero(); n];
        let mut outgoing = Vec::new();
        let mut awaited = Vec::new();
        for (dealer, factor) in zip(dealers.iter().copied(), factors)? {
            if dealer == self.me {
                let values = values.ok_or_else(|| no_input(dealer))?;
                for (to, share) in self.deal(domain, values)?.into_iter().enumerate() {
                    match share {
                        Some(share) if to == self.me => {
                            add_scaled(domain, &mut acc, &share, factor)
                        }
                        Some(share) => outgoing.push((to, share)),
                        None => {}
                    }
                }
            } else if self.derived(dealer, self.me) {
                let share = self.draw_dealt(domain, dealer, n)?;
                add_scaled(domain, &mut acc, &share, factor);
            } else {
                awaited.push((dealer, factor));
            }
        }
        let from = awaited.iter().map(|(from, _)| (*from, n)).collect();
        let (d, domain) = (domain.clone(), domain.clone());
        let shares = at_start(move |p: &mut Self| {
            for (to, share) in &mut outgoing {
                p.adversary.change_words(Site::Dealt, Some(*to), &d, share);
            }
            Ok(exchange(&d, outgoing, from))
        });
        Ok(then(shares, move |_, shares| {
            for ((_, factor), share) in zip(awaited, shares)? {
                add_scaled(&domain, &mut acc, &share, factor);
            }
            Ok(Share { parts: vec![acc] })
        }))
    }

    /// Deals `values` with an explicit random polynomial of this degree; returns the shares of all dealers.
    pub(super) fn deal_all<D: Domain>(
        &mut self,
        domain: &D,
        values: &[D::E],
        degree: usize,
    ) -> Result<SendFn<Self, Vec<Vec<D::E>>>> {
        let n = values.len();
        let mut prg = Prg::from_os().map_err(|e| EngineError::usage(e.to_string()))?;
        let mut coefficients = vec![values.to_vec()];
        for _ in 0..degree {
            let mut c = vec![domain.zero(); n];
            domain.random(&mut prg, &mut c);
            coefficients.push(c);
        }
        let share = |to: usize| {
            let x = self.points.at(domain, to);
            let mut acc = vec![domain.zero(); n];
            for c in coefficients.iter().rev() {
                domain.mul_scalar_assign(&mut acc, x);
                domain.add_assign(&mut acc, c);
            }
            acc
        };
        let own = share(self.me);
        let to = self.peers().map(|to| (to, share(to))).collect();
        let from = self.peers().map(|from| (from, n)).collect();
        Ok(then(
            exchange(domain, to, from),
            |p: &mut Self, mut dealt| {
                dealt.insert(p.me, own);
                Ok(dealt)
            },
        ))
    }

    /// n − t random values of n dealt ones, by a Vandermonde matrix: uniform while t dealers at most are corrupt.
    pub(super) fn extract<D: Domain>(
        &self,
        domain: &D,
        dealt: &[Vec<D::E>],
        batch: usize,
        n: usize,
    ) -> Result<Vec<D::E>> {
        let blocks = n.div_ceil(batch);
        if dealt.len() != self.parties || dealt.iter().any(|values| values.len() != blocks) {
            return Err(outside());
        }
        let mut out = Vec::with_capacity(n + batch);
        for row in 0..batch {
            let mut acc = vec![domain.zero(); blocks];
            for (dealer, values) in dealt.iter().enumerate() {
                let mut power = domain.one();
                for _ in 0..row {
                    power = domain.mul(power, self.points.at(domain, dealer));
                }
                add_scaled(domain, &mut acc, values, power);
            }
            out.extend(acc);
        }
        out.truncate(n);
        Ok(out)
    }

    /// Random sharings of degree t and of degree 2t of the same values (masks of the king's openings).
    pub(super) fn double_sharing<D: Domain>(
        &mut self,
        domain: &D,
        n: usize,
    ) -> Result<SendFn<Self, Masks<D::E>>> {
        // Dealt: every party deals random values at both degrees; a Vandermonde matrix extracts n − t from n.
        let batch = self.parties - self.threshold;
        let blocks = n.div_ceil(batch);
        let mut values = vec![domain.zero(); blocks];
        domain.random(
            &mut Prg::from_os().map_err(|e| EngineError::usage(e.to_string()))?,
            &mut values,
        );
        let low = self.deal_all(domain, &values, self.threshold)?;
        let high = self.deal_all(domain, &values, 2 * self.threshold)?;
        let d = domain.clone();
        Ok(join(low, high, move |p, low, high| {
            Ok((
                p.extract(&d, &low, batch, n)?,
                p.extract(&d, &high, batch, n)?,
            ))
        }))
    }
}
