//! Polynomials over a prime field, and square roots.

use keyquorum_math::{Domain, DomainKind, Element, Zq};

use crate::error::{EngineError, Result};

/// Lagrange coefficients: the value at `at` of a polynomial given at the points of `from`.
pub fn lagrange<D: Domain>(domain: &D, from: &[D::E], at: D::E) -> Result<Vec<D::E>> {
    from.iter()
        .enumerate()
        .map(|(i, xi)| {
            let (mut num, mut den) = (domain.one(), domain.one());
            for (j, xj) in from.iter().enumerate() {
                if i != j {
                    num = domain.mul(num, domain.sub(at, *xj));
                    den = domain.mul(den, domain.sub(*xi, *xj));
                }
            }
            let inverse = domain.invert(den).ok_or_else(|| {
                EngineError::usage(
                    "the prime is too small for this many parties: take a prime above n",
                )
            })?;
            Ok(domain.mul(num, inverse))
        })
        .collect()
}

pub(super) fn add_scaled<D: Domain>(domain: &D, acc: &mut [D::E], v: &[D::E], factor: D::E) {
    let mut scaled = v.to_vec();
    domain.mul_scalar_assign(&mut scaled, factor);
    domain.add_assign(acc, &scaled);
}

/// c ↦ 1/√c for squares of a prime field, 0 ↦ anything.
pub(super) fn inverse_roots<D: Domain>(domain: &D, squares: &[D::E]) -> Result<Vec<D::E>> {
    let DomainKind::Fq(q) = domain.kind() else {
        return Err(EngineError::usage(
            "square roots exist over prime fields only",
        ));
    };
    let field = Zq::new(q).map_err(|e| EngineError::usage(e.to_string()))?;
    let words: Vec<u64> = squares.iter().map(|c| c.to_u128() as u64).collect();
    Ok(field
        .inv_sqrt_batch(&words)
        .into_iter()
        .map(|v| D::E::from_u128_wrapping(u128::from(v)))
        .collect())
}
