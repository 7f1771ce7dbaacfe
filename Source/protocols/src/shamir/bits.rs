//! Random bits from random elements and their opened squares.

use keyquorum_math::{Domain, Element};

use super::polynomials::inverse_roots;
use super::{Shamir, outside};
use crate::error::{EngineError, Result};
use crate::task::{Step, and_then, then, then_maybe};
use crate::value::Share;
use crate::{Protocol, ShareTask};

impl Shamir {
    /// Random bits from random elements; elements that are zero determine no bit and are drawn again.
    pub(super) fn bits_from<D: Domain>(
        &mut self,
        domain: &D,
        r: Share<D::E>,
    ) -> Result<ShareTask<Self, D::E>> {
        let n = r.len();
        let square = if self.kings() || self.subsets.is_empty() {
            let product = self.dot(domain, &r, &r, 1)?;
            let domain = domain.clone();
            and_then(product, move |p, square: Share<D::E>| {
                p.open(&domain, &square)
            })
        } else {
            let mut product = r.only()?.to_vec();
            domain.mul_assign(&mut product, r.only()?);
            let zero = self.przs(domain, n)?;
            domain.add_assign(&mut product, &zero);
            self.open_from_all(domain, product, 2 * self.threshold + 1)?
        };
        let domain = domain.clone();
        Ok(then_maybe(square, move |p, square| {
            let mut drawn = Drawn::new(&domain, &r, &square)?;
            if drawn.zeros.is_empty() {
                return Ok(Step::Done(drawn.bits));
            }
            let again = p.random_bit(&domain, drawn.zeros.len())?;
            Ok(Step::Next(then(again, move |_, fresh| {
                drawn.replace(&fresh)?;
                Ok(drawn.bits)
            })))
        }))
    }
}

/// Bits of random elements r whose squares are known.
pub(super) struct Drawn<E: Element> {
    /// (r/√c + 1)/2 for each.
    pub bits: Share<E>,
    /// Where c = 0, which determines no bit.
    pub zeros: Vec<usize>,
}

impl<E: Element> Drawn<E> {
    /// From shares of r, and c = r².
    pub fn new<D: Domain<E = E>>(domain: &D, r: &Share<E>, square: &[E]) -> Result<Self> {
        let half = domain
            .invert(domain.add(domain.one(), domain.one()))
            .ok_or_else(|| EngineError::usage("random bits need an odd prime"))?;
        let mut bits = inverse_roots(domain, square)?;
        domain.mul_assign(&mut bits, r.only()?);
        domain.add_scalar_assign(&mut bits, domain.one());
        domain.mul_scalar_assign(&mut bits, half);
        let zeros = square
            .iter()
            .enumerate()
            .filter(|(_, c)| **c == domain.zero())
            .map(|(i, _)| i)
            .collect();
        let bits = Share { parts: vec![bits] };
        Ok(Self { bits, zeros })
    }

    /// Takes other bits where there were none.
    pub fn replace(&mut self, fresh: &Share<E>) -> Result<()> {
        if fresh.len() != self.zeros.len() {
            return Err(EngineError::internal("another number of random bits"));
        }
        let bits = self.bits.part_mut(0)?;
        for (i, bit) in self.zeros.iter().zip(fresh.only()?) {
            *bits.get_mut(*i).ok_or_else(outside)? = *bit;
        }
        Ok(())
    }
}
