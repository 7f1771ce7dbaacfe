//! Products of clear polynomials with a secret one, modulo X^n + 1.

use keyquorum_math::{Domain, DomainKind, Element, Negacyclic, Transformed};
use zeroize::Zeroizing;

use super::{Computation, mismatch, wrong};
use crate::error::{EngineError, Result};
use crate::graph::Handle;
use crate::protocol::Protocol;
use crate::value::{Kind, Share, Value};

/// The coefficients as words; negative ones stay the complement modulo 2^k, since the result is reduced modulo 2^k.
fn transformed<E: Element>(ring: &Negacyclic, polynomial: &[E]) -> Result<Transformed> {
    let words = polynomial.iter().map(|x| x.to_u128() as u64);
    let words = Zeroizing::new(words.collect::<Vec<u64>>());
    ring.transform(&words)
        .map_err(|e| EngineError::usage(e.to_string()))
}

/// The products of each polynomial of `a` with every part of a share.
fn products<E: Element>(ring: &Negacyclic, a: &[E], s: &[Vec<E>], mask: u64) -> Result<Share<E>> {
    let factors = s
        .iter()
        .map(|s| transformed(ring, s))
        .collect::<Result<Vec<_>>>()?;
    // Vectors of the whole length: one that grows would leave a copy of its share behind.
    let mut out = Share {
        parts: s.iter().map(|_| Vec::with_capacity(a.len())).collect(),
    };
    for polynomial in a.chunks(ring.degree()) {
        let public = transformed(ring, polynomial)?;
        for (s, out) in factors.iter().zip(&mut out.parts) {
            let product = ring.product(&public, s);
            let product = Zeroizing::new(product.map_err(|e| EngineError::usage(e.to_string()))?);
            let reduced = product
                .iter()
                .map(|x| E::from_u128_wrapping(u128::from(x & mask)));
            out.extend(reduced);
        }
    }
    Ok(out)
}

impl<P: Protocol, D: Domain> Computation<P, D> {
    /// [`Engine::negacyclic`](crate::engine::Engine::negacyclic).
    pub(super) fn negacyclic_products(&mut self, a: &Handle, s: &Handle) -> Result<Handle> {
        let mask = match (self.domain.kind(), self.shares.kind()) {
            (DomainKind::Z2k(k @ 1..=64), DomainKind::Z2k(of_shares))
                if k == of_shares && self.protocol.mac_key().is_none() =>
            {
                u64::MAX >> (64 - k)
            }
            _ => {
                return Err(EngineError::usage(
                    "products modulo X^n + 1 need a ring of at most 64 bits, and shares without MACs",
                ));
            }
        };
        let (n, size) = (s.size(), a.size());
        let ring = Negacyclic::new(n).map_err(|e| EngineError::usage(e.to_string()))?;
        if !size.is_multiple_of(n) {
            return Err(EngineError::usage(format!(
                "{size} coefficients are no whole number of polynomials of ring degree {n}"
            )));
        }
        let kind = match (a.kind(), s.kind()) {
            (Kind::Clear, kind @ (Kind::Clear | Kind::Secret)) => kind,
            (Kind::Clear, _) => return Err(wrong("a product modulo X^n + 1", s)),
            _ => return Err(wrong("the public factor of products modulo X^n + 1", a)),
        };
        self.local(&[a, s], kind, size, move |_, inputs| {
            let [a, s] = inputs.as_slice() else {
                return mismatch();
            };
            Ok(match (&**a, &**s) {
                (Value::Clear(a), Value::Secret(s)) => {
                    Value::Secret(products(&ring, a, &s.parts, mask)?)
                }
                (Value::Clear(a), Value::Clear(s)) => {
                    let out = products(&ring, a, std::slice::from_ref(s), mask)?;
                    Value::Clear(out.part(0)?.to_vec())
                }
                _ => return mismatch(),
            })
        })
    }
}
