//! Random bits from random elements and their opened squares.

use keyquorum_math::Domain;

use super::polynomials::inverse_roots;
use super::{Shamir, outside};
use crate::error::{EngineError, Result};
use crate::protocol::{Protocol, ShareTask};
use crate::task::{Step, and_then, then, then_maybe};
use crate::value::Share;

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
        let finish = move |domain: &D, square: &[D::E]| -> Result<(Vec<D::E>, Vec<usize>)> {
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
            Ok((bits, zeros))
        };
        Ok(then_maybe(square, move |p, square| {
            let (mut bits, zeros) = finish(&domain, &square)?;
            if zeros.is_empty() {
                return Ok(Step::Done(Share { parts: vec![bits] }));
            }
            let again = p.random_bit(&domain, zeros.len())?;
            Ok(Step::Next(then(again, move |_, fresh| {
                if fresh.len() != zeros.len() {
                    return Err(EngineError::internal("another number of random bits"));
                }
                for (i, bit) in zeros.into_iter().zip(fresh.only()?) {
                    *bits.get_mut(i).ok_or_else(outside)? = *bit;
                }
                Ok(Share { parts: vec![bits] })
            })))
        }))
    }
}
