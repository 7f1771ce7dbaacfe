//! Packed bits: XOR, which is local, and AND.

use keyquorum_math::Domain;

use super::{Computation, mismatch, sizes, wrong};
use crate::error::Result;
use crate::graph::Handle;
use crate::protocol::{BITS, BitProtocol, Protocol};
use crate::select::*;
use crate::task::{then, within};
use crate::value::{Kind, Value};

impl<P: Protocol<D>, D: Domain> Computation<P, D> {
    /// [`Engine::open`](crate::engine::Engine::open) of packed bits.
    pub(super) fn opened_bits(&mut self, a: &Handle) -> Result<Handle> {
        let n = a.size();
        self.communicate(&[a], Kind::ClearBits, n, move |p, inputs| {
            let Some(Value::SecretBits(x)) = inputs.first().map(|v| &**v) else {
                return mismatch();
            };
            // Bits beyond those that count are zero.
            let mut x = x.duplicate();
            for part in &mut x.parts {
                mask_tail(part, n)?;
            }
            let task = within(p.bits()?.open_bits(&x)?, P::bits);
            Ok(then(task, |_, v| Ok(Value::ClearBits(v))))
        })
    }

    /// [`Engine::and`](crate::engine::Engine::and), or [`Engine::xor`](crate::engine::Engine::xor).
    pub(super) fn bitwise(&mut self, a: &Handle, b: &Handle, and: bool) -> Result<Handle> {
        let n = sizes(a, b)?;
        let (x_size, y_size) = (a.size(), b.size());
        let kind = match (a.kind(), b.kind()) {
            (Kind::ClearBits, Kind::ClearBits) => Kind::ClearBits,
            (Kind::SecretBits | Kind::ClearBits, Kind::SecretBits | Kind::ClearBits) => {
                Kind::SecretBits
            }
            _ => {
                return Err(wrong(
                    "a bit operation",
                    if matches!(a.kind(), Kind::SecretBits | Kind::ClearBits) {
                        b
                    } else {
                        a
                    },
                ));
            }
        };
        if and && a.kind() == Kind::SecretBits && b.kind() == Kind::SecretBits {
            return self.communicate(&[a, b], kind, n, move |p, inputs| {
                let [a, b] = inputs.as_slice() else {
                    return mismatch();
                };
                let (Value::SecretBits(x), Value::SecretBits(y)) = (&**a, &**b) else {
                    return mismatch();
                };
                let task = if x_size == n && y_size == n {
                    p.bits()?.and(x, y)?
                } else {
                    let x = x.try_map(|part| spread_lanes(part, x_size, n))?;
                    let y = y.try_map(|part| spread_lanes(part, y_size, n))?;
                    p.bits()?.and(&x, &y)?
                };
                Ok(then(within(task, P::bits), |_, share| {
                    Ok(Value::SecretBits(share))
                }))
            });
        }
        self.local(&[a, b], kind, n, move |p, inputs| {
            let [a, b] = inputs.as_slice() else {
                return mismatch();
            };
            let combine = |x: &mut [u64], y: &[u64]| {
                if and {
                    BITS.mul_assign(x, y)
                } else {
                    BITS.add_assign(x, y)
                }
            };
            Ok(match (&**a, &**b) {
                (Value::ClearBits(x), Value::ClearBits(y)) => {
                    let mut x = spread_lanes(x, x_size, n)?;
                    combine(&mut x, &spread_lanes(y, y_size, n)?);
                    Value::ClearBits(x)
                }
                (Value::SecretBits(x), Value::SecretBits(y)) => {
                    let mut x = x.try_map(|part| spread_lanes(part, x_size, n))?;
                    for (x, y) in x.with(y)? {
                        combine(x, &spread_lanes(y, y_size, n)?);
                    }
                    Value::SecretBits(x)
                }
                (Value::SecretBits(s), Value::ClearBits(c))
                | (Value::ClearBits(c), Value::SecretBits(s)) => {
                    let (s_size, c_size) = if matches!(**a, Value::SecretBits(_)) {
                        (x_size, y_size)
                    } else {
                        (y_size, x_size)
                    };
                    let mut s = s.try_map(|part| spread_lanes(part, s_size, n))?;
                    let c = spread_lanes(c, c_size, n)?;
                    if and {
                        for part in &mut s.parts {
                            combine(part, &c);
                        }
                    } else {
                        p.bits()?.add_clear_bits(&mut s, &c)?;
                    }
                    Value::SecretBits(s)
                }
                _ => return mismatch(),
            })
        })
    }
}
