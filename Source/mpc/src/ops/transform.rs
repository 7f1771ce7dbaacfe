//! The negacyclic transform of values modulo a prime.

use keyquorum_math::{Domain, DomainKind, Element, NttTables};
use zeroize::Zeroizing;

use super::{Computation, mismatch};
use crate::error::{EngineError, Result};
use crate::graph::Handle;
use crate::protocol::Protocol;
use crate::value::{Kind, Value};

/// Transforms the polynomials of a vector.
fn transformed<E: Element>(tables: &NttTables, polynomials: &[E]) -> Result<Vec<E>> {
    let words = polynomials.iter().map(|x| x.to_u128() as u64);
    let mut words = Zeroizing::new(words.collect::<Vec<u64>>());
    tables
        .forward_all(&mut words)
        .map_err(|e| EngineError::usage(e.to_string()))?;
    let elements = words.iter().map(|x| E::from_u128_wrapping(u128::from(*x)));
    Ok(elements.collect())
}

impl<P: Protocol<D>, D: Domain> Computation<P, D> {
    /// [`Operation::Transform`](crate::engine::Operation::Transform).
    pub(super) fn transforms(&mut self, a: &Handle, n: usize) -> Result<Handle> {
        let (DomainKind::Fq(q), DomainKind::Fq(of_shares)) =
            (self.domain.kind(), self.shares.kind())
        else {
            return Err(EngineError::usage(
                "transforms need a prime field: modulo 2^k there are none",
            ));
        };
        if q != of_shares {
            return mismatch();
        }
        let kind = match a.kind() {
            kind @ (Kind::Clear | Kind::Secret) => kind,
            _ => return Err(super::wrong("a transform", a)),
        };
        let tables = NttTables::new(q, n).map_err(|e| EngineError::usage(e.to_string()))?;
        if !a.size().is_multiple_of(n) {
            return Err(EngineError::usage(format!(
                "{} coefficients are no whole number of polynomials of ring degree {n}",
                a.size()
            )));
        }
        self.local(&[a], kind, a.size(), move |_, inputs| {
            Ok(match inputs.first().map(|v| &**v) {
                Some(Value::Secret(x)) => {
                    Value::Secret(x.try_map(|part| transformed(&tables, part))?)
                }
                Some(Value::Clear(x)) => Value::Clear(transformed(&tables, x)?),
                _ => return mismatch(),
            })
        })
    }
}
