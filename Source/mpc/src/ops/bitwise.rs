//! Packed bits: XOR, which is local, and AND.

use keyquorum_math::Domain;

use super::{Computation, mismatch, sizes, wrong};
use crate::error::Result;
use crate::graph::Handle;
use crate::protocol::{BITS, Protocol};
use crate::select::*;
use crate::task::then;
use crate::value::{Kind, Value};

impl<P: Protocol, D: Domain> Computation<P, D> {
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
                    p.dot(&BITS, x, y, 1)?
                } else {
                    let x = x.try_map(|part| spread_lanes(part, x_size, n))?;
                    let y = y.try_map(|part| spread_lanes(part, y_size, n))?;
                    p.dot(&BITS, &x, &y, 1)?
                };
                Ok(then(task, |_, share| Ok(Value::SecretBits(share))))
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
                        p.add_clear(&BITS, &mut s, &c)?;
                    }
                    Value::SecretBits(s)
                }
                _ => return mismatch(),
            })
        })
    }
}
