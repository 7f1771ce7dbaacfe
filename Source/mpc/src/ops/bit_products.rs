//! Products of secret bits with a secret vector, times a power of two.

use keyquorum_math::{Domain, DomainKind, Element};

use super::{Computation, mismatch, wrong};
use crate::error::{EngineError, Result};
use crate::graph::Handle;
use crate::protocol::Protocol;
use crate::task::then;
use crate::value::{Kind, Share, Value};

impl<P: Protocol<D>, D: Domain> Computation<P, D> {
    /// [`Engine::bit_products`](crate::engine::Engine::bit_products). With w = 2^shift, w·x·y modulo 2^k needs x·y modulo 2^(k−shift) alone:
    /// shares, reduced, are shares there, and their products times w are shares modulo 2^k.
    pub(super) fn weighted_bit_products(
        &mut self,
        bits: &Handle,
        v: &Handle,
        shift: u32,
    ) -> Result<Handle> {
        let k = match (self.domain.kind(), self.shares.kind()) {
            (DomainKind::Z2k(k), DomainKind::Z2k(of_shares))
                if k == of_shares && self.protocol.mac_key().is_none() =>
            {
                k
            }
            _ => {
                return Err(EngineError::usage(
                    "products of bits with a vector need a ring modulo 2^k, and shares without MACs",
                ));
            }
        };
        let m = k.saturating_sub(shift);
        let m = if m > 0 && !self.protocol.multiplies_in_any_ring() {
            k
        } else {
            m
        };
        let low = self.domain.low_bits(m).ok_or_else(|| {
            EngineError::usage(format!(
                "products modulo 2^{k} times 2^{shift} are zero: choose a weight below 2^{k}"
            ))
        })?;
        for operand in [bits, v] {
            if operand.kind() != Kind::Secret || operand.size() == 0 {
                return Err(wrong(
                    "a product of secret bits with a secret vector",
                    operand,
                ));
            }
        }
        let size = bits.size().checked_mul(v.size()).ok_or_else(|| {
            EngineError::usage("products of bits with a vector are too many to count")
        })?;
        let ring = self.domain.clone();
        let weight = super::arithmetic::power_of_two(&ring, u128::from(shift));
        self.communicate(&[bits, v], Kind::Secret, size, move |p, inputs| {
            let [bits, v] = inputs.as_slice() else {
                return mismatch();
            };
            let (Value::Secret(bits), Value::Secret(v)) = (&**bits, &**v) else {
                return mismatch();
            };
            let (bits, v) = (reduced(bits, m), reduced(v, m));
            let task = p.bit_products(&low, &bits, &v)?;
            Ok(then(task, move |_, mut products: Share<D::E>| {
                for part in &mut products.parts {
                    ring.mul_scalar_assign(part, weight);
                }
                Ok(Value::Secret(products))
            }))
        })
    }
}

/// A share modulo 2^m.
fn reduced<E: Element>(share: &Share<E>, m: u32) -> Share<E> {
    let mask = u128::MAX >> (128 - m);
    let reduce = |e: &E| E::from_u128_wrapping(e.to_u128() & mask);
    share.map(|part| part.iter().map(reduce).collect())
}
