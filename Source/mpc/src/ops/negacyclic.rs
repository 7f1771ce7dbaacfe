//! Products of clear polynomials with a secret one, modulo X^n + 1.

use keyquorum_math::{
    Domain, DomainKind, Element, Negacyclic, NttError, Transformed, TransformedWide,
};
use zeroize::Zeroizing;

use super::{Computation, mismatch, wrong};
use crate::error::{EngineError, Result};
use crate::graph::Handle;
use crate::protocol::Protocol;
use crate::value::{Kind, Share, Value};

fn refused(error: NttError) -> EngineError {
    EngineError::usage(error.to_string())
}

/// The coefficients as words; negative ones stay the complement modulo 2^k, since the result is reduced modulo 2^k.
fn transformed<E: Element>(ring: &Negacyclic, polynomial: &[E]) -> Result<Transformed> {
    let words = polynomial.iter().map(|x| x.to_u128() as u64);
    let words = Zeroizing::new(words.collect::<Vec<u64>>());
    ring.transform(&words).map_err(refused)
}

/// A secret polynomial, of words or of double words.
enum Factor {
    Narrow(Transformed),
    Wide(TransformedWide),
}

impl Factor {
    /// `s` has coefficients of `bits` bits.
    fn new<E: Element>(ring: &Negacyclic, s: &[E], bits: u32) -> Result<Self> {
        if bits <= u64::BITS {
            return Ok(Self::Narrow(transformed(ring, s)?));
        }
        let words = Zeroizing::new(s.iter().map(|x| x.to_u128()).collect::<Vec<u128>>());
        let factor = ring.transform_wide(&words).map_err(refused)?;
        Ok(Self::Wide(factor))
    }

    /// Appends its product with a public polynomial, modulo 2^bits.
    fn append_product<E: Element>(
        &self,
        ring: &Negacyclic,
        public: &Transformed,
        bits: u32,
        out: &mut Vec<E>,
    ) -> Result<()> {
        let mask = u128::MAX >> (u128::BITS - bits);
        let reduced = |x: u128| E::from_u128_wrapping(x & mask);
        match self {
            Self::Narrow(s) => {
                let product = Zeroizing::new(ring.product(public, s).map_err(refused)?);
                out.extend(product.iter().map(|x| reduced(u128::from(*x))));
            }
            Self::Wide(s) => {
                let product = Zeroizing::new(ring.product_wide(public, s).map_err(refused)?);
                out.extend(product.iter().map(|x| reduced(*x)));
            }
        }
        Ok(())
    }
}

/// The products of each polynomial of `a` with every part of a share modulo 2^bits.
fn products<E: Element>(ring: &Negacyclic, a: &[E], s: &[Vec<E>], bits: u32) -> Result<Share<E>> {
    let factors = s
        .iter()
        .map(|s| Factor::new(ring, s, bits))
        .collect::<Result<Vec<_>>>()?;
    // Vectors of the whole length: one that grows would leave a copy of its share behind.
    let mut out = Share {
        parts: s.iter().map(|_| Vec::with_capacity(a.len())).collect(),
    };
    for polynomial in a.chunks(ring.degree()) {
        let public = transformed(ring, polynomial)?;
        for (s, out) in factors.iter().zip(&mut out.parts) {
            s.append_product(ring, &public, bits, out)?;
        }
    }
    Ok(out)
}

impl<P: Protocol<D>, D: Domain> Computation<P, D> {
    /// [`Operation::Negacyclic`](crate::engine::Operation::Negacyclic).
    pub(super) fn negacyclic_products(&mut self, a: &Handle, s: &Handle) -> Result<Handle> {
        // Values and public factors have at most a word. Shares with MACs have more bits: 2^k times what these say is hidden when something is opened.
        let (bits, of_shares) = match (self.domain.kind(), self.shares.kind()) {
            (DomainKind::Z2k(k @ 1..=64), DomainKind::Z2k(of_shares @ 1..=128))
                if k <= of_shares =>
            {
                (k, of_shares)
            }
            _ => {
                return Err(EngineError::usage(
                    "products modulo X^n + 1 need a ring of at most 64 bits",
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
                    Value::Secret(products(&ring, a, &s.parts, of_shares)?)
                }
                (Value::Clear(a), Value::Clear(s)) => {
                    let out = products(&ring, a, std::slice::from_ref(s), bits)?;
                    Value::Clear(out.part(0)?.to_vec())
                }
                _ => return mismatch(),
            })
        })
    }
}
