//! Arithmetic on vectors: what needs no messages, and products of secrets.

use keyquorum_math::{Domain, DomainKind, Element, wipe};

use super::{Computation, mismatch, sizes, wrong};
use crate::engine::ClearOp;
use crate::error::{EngineError, Result};
use crate::graph::Handle;
use crate::protocol::Protocol;
use crate::select::*;
use crate::task::then;
use crate::value::{Kind, Value, zip};

/// `base` to the power of `exponent`, which is public.
fn power<D: Domain>(domain: &D, base: D::E, exponent: u128) -> D::E {
    let bits = (0..u128::BITS - exponent.leading_zeros()).rev();
    bits.fold(domain.one(), |power, bit| {
        let square = domain.mul(power, power);
        if (exponent >> bit) & 1 == 1 {
            domain.mul(square, base)
        } else {
            square
        }
    })
}

/// 2^exponent in the domain.
pub(super) fn power_of_two<D: Domain>(domain: &D, mut exponent: u128) -> D::E {
    let mut square = domain.add(domain.one(), domain.one());
    let mut power = domain.one();
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = domain.mul(power, square);
        }
        square = domain.mul(square, square);
        exponent >>= 1;
    }
    power
}

/// Row-major product. With one column the rows are inner products; otherwise rows of the right matrix are added up, so that both
/// are read in order.
fn matrix_product<D: Domain>(
    domain: &D,
    left: &[D::E],
    right: &[D::E],
    inner: usize,
    columns: usize,
) -> Result<Vec<D::E>> {
    if inner == 0 || !left.len().is_multiple_of(inner) || right.len() != inner * columns {
        return Err(EngineError::internal("a matrix of another size"));
    }
    if columns == 1 {
        let rows = left.chunks_exact(inner);
        return Ok(rows.map(|row| domain.dot(row, right)).collect());
    }
    let mut out = Vec::with_capacity(left.len() / inner * columns);
    let (mut sum, mut term) = (Vec::new(), Vec::new());
    for row in left.chunks_exact(inner) {
        sum.clear();
        sum.resize(columns, domain.zero());
        if columns > 0 {
            for (factor, other) in row.iter().zip(right.chunks_exact(columns)) {
                term.clear();
                term.extend_from_slice(other);
                domain.mul_scalar_assign(&mut term, *factor);
                domain.add_assign(&mut sum, &term);
            }
        }
        out.extend_from_slice(&sum);
    }
    wipe(&mut term);
    wipe(&mut sum);
    Ok(out)
}

impl<P: Protocol<D>, D: Domain> Computation<P, D> {
    /// [`Engine::add`](crate::engine::Engine::add), or [`Engine::sub`](crate::engine::Engine::sub).
    pub(super) fn linear(&mut self, a: &Handle, b: &Handle, subtract: bool) -> Result<Handle> {
        let n = sizes(a, b)?;
        let kind = match (a.kind(), b.kind()) {
            (Kind::Clear, Kind::Clear) => Kind::Clear,
            (Kind::Secret | Kind::Clear, Kind::Secret | Kind::Clear) => Kind::Secret,
            _ => {
                return Err(wrong(
                    "arithmetic",
                    if a.kind() == Kind::Secret || a.kind() == Kind::Clear {
                        b
                    } else {
                        a
                    },
                ));
            }
        };
        let (d, shares) = (self.domain.clone(), self.shares.clone());
        self.local(&[a, b], kind, n, move |p, mut inputs| {
            let (Some(b), Some(a)) = (inputs.pop(), inputs.pop()) else {
                return mismatch();
            };
            let combine = |d: &D, x: &mut [D::E], y: &[D::E]| {
                if subtract {
                    d.sub_assign(x, y)
                } else {
                    d.add_assign(x, y)
                }
            };
            Ok(match (&*a, &*b) {
                (Value::Clear(x), Value::Clear(y)) => {
                    let mut x = spread(x, n)?;
                    combine(&d, &mut x, &spread(y, n)?);
                    Value::Clear(x)
                }
                (Value::Secret(x), Value::Secret(y)) => {
                    let mut x = spread_share(x, n)?;
                    if y.len() == n {
                        x.combine(y, |x, y| combine(&shares, x, y))?;
                    } else {
                        for (x, y) in x.with(y)? {
                            let [y] = **y else {
                                return Err(outside());
                            };
                            shares.add_scalar_assign(x, if subtract { shares.neg(y) } else { y });
                        }
                    }
                    Value::Secret(x)
                }
                (Value::Secret(x), Value::Clear(y)) => {
                    let mut x = spread_share(x, n)?;
                    let mut y = spread(y, n)?;
                    if subtract {
                        d.neg_assign(&mut y);
                    }
                    p.add_clear(&shares, &mut x, &y)?;
                    Value::Secret(x)
                }
                (Value::Clear(x), Value::Secret(y)) => {
                    let mut y = spread_share(y, n)?;
                    if subtract {
                        for part in &mut y.parts {
                            shares.neg_assign(part);
                        }
                    }
                    p.add_clear(&shares, &mut y, &spread(x, n)?)?;
                    Value::Secret(y)
                }
                _ => return mismatch(),
            })
        })
    }

    /// [`Engine::mul`](crate::engine::Engine::mul).
    pub(super) fn product(&mut self, a: &Handle, b: &Handle) -> Result<Handle> {
        let n = sizes(a, b)?;
        let (clear, d) = (self.domain.clone(), self.shares.clone());
        match (a.kind(), b.kind()) {
            (Kind::Secret, Kind::Secret) => {
                self.communicate(&[a, b], Kind::Secret, n, move |p, inputs| {
                    let [a, b] = inputs.as_slice() else {
                        return mismatch();
                    };
                    let (Value::Secret(x), Value::Secret(y)) = (&**a, &**b) else {
                        return mismatch();
                    };
                    let task = if x.len() == y.len() {
                        p.dot(&d, x, y, 1)?
                    } else {
                        p.dot(&d, &spread_share(x, n)?, &spread_share(y, n)?, 1)?
                    };
                    Ok(then(task, |_, share| Ok(Value::Secret(share))))
                })
            }
            (Kind::Secret | Kind::Clear, Kind::Secret | Kind::Clear) => {
                let kind = if a.kind() == Kind::Clear && b.kind() == Kind::Clear {
                    Kind::Clear
                } else {
                    Kind::Secret
                };
                self.local(&[a, b], kind, n, move |_, inputs| {
                    let [a, b] = inputs.as_slice() else {
                        return mismatch();
                    };
                    let times = |d: &D, x: &[D::E], y: &[D::E]| {
                        let mut x = spread(x, n)?;
                        match y {
                            [one] => d.mul_scalar_assign(&mut x, *one),
                            _ if y.len() == n => d.mul_assign(&mut x, y),
                            _ => return Err(outside()),
                        }
                        Ok(x)
                    };
                    Ok(match (&**a, &**b) {
                        (Value::Clear(x), Value::Clear(y)) => Value::Clear(times(&clear, x, y)?),
                        (Value::Secret(s), Value::Clear(c))
                        | (Value::Clear(c), Value::Secret(s)) => {
                            Value::Secret(s.try_map(|part| times(&d, part, c))?)
                        }
                        _ => return mismatch(),
                    })
                })
            }
            (Kind::Secret | Kind::Clear, _) => Err(wrong("arithmetic", b)),
            _ => Err(wrong("arithmetic", a)),
        }
    }

    /// [`Engine::neg`](crate::engine::Engine::neg).
    pub(super) fn negative(&mut self, a: &Handle) -> Result<Handle> {
        let (clear, d) = (self.domain.clone(), self.shares.clone());
        if !matches!(a.kind(), Kind::Secret | Kind::Clear) {
            return Err(wrong("negation", a));
        }
        self.local(&[a], a.kind(), a.size(), move |_, inputs| {
            let negated = |d: &D, v: &[D::E]| {
                let mut v = v.to_vec();
                d.neg_assign(&mut v);
                v
            };
            Ok(match inputs.first().map(|v| &**v) {
                Some(Value::Secret(x)) => Value::Secret(x.map(|part| negated(&d, part))),
                Some(Value::Clear(x)) => Value::Clear(negated(&clear, x)),
                _ => return mismatch(),
            })
        })
    }

    /// [`Engine::dot`](crate::engine::Engine::dot).
    pub(super) fn inner_products(
        &mut self,
        a: &Handle,
        b: &Handle,
        length: usize,
    ) -> Result<Handle> {
        if a.size() != b.size() || length == 0 || !a.size().is_multiple_of(length) {
            return Err(EngineError::usage(format!(
                "inner products of length {length} need vectors of one size, a multiple of it: got {} and {}",
                a.size(),
                b.size()
            )));
        }
        if a.kind() != Kind::Secret || b.kind() != Kind::Secret {
            let product = self.product(a, b)?;
            return self.sums(&product, length);
        }
        let d = self.shares.clone();
        self.communicate(
            &[a, b],
            Kind::Secret,
            a.size() / length,
            move |p, inputs| {
                let [a, b] = inputs.as_slice() else {
                    return mismatch();
                };
                let (Value::Secret(x), Value::Secret(y)) = (&**a, &**b) else {
                    return mismatch();
                };
                Ok(then(p.dot(&d, x, y, length)?, |_, share| {
                    Ok(Value::Secret(share))
                }))
            },
        )
    }

    /// [`Operation::MatrixProduct`](crate::engine::Operation::MatrixProduct).
    pub(super) fn matrices(
        &mut self,
        a: &Handle,
        b: &Handle,
        (rows, inner, columns): (usize, usize, usize),
    ) -> Result<Handle> {
        let fits = |h: &Handle, r: usize, c: usize| r.checked_mul(c) == Some(h.size());
        if inner == 0 || !fits(a, rows, inner) || !fits(b, inner, columns) {
            return Err(EngineError::usage(format!(
                "{} and {} elements are no matrices of {rows}x{inner} and {inner}x{columns}",
                a.size(),
                b.size()
            )));
        }
        let kind = match (a.kind(), b.kind()) {
            (Kind::Clear, Kind::Clear) => Kind::Clear,
            (Kind::Clear, Kind::Secret) | (Kind::Secret, Kind::Clear) => Kind::Secret,
            _ => return Err(wrong("a local matrix product", a)),
        };
        let (clear, d) = (self.domain.clone(), self.shares.clone());
        self.local(&[a, b], kind, rows * columns, move |_, inputs| {
            let [a, b] = inputs.as_slice() else {
                return mismatch();
            };
            let times = |d: &D, x: &[D::E], y: &[D::E]| matrix_product(d, x, y, inner, columns);
            Ok(match (&**a, &**b) {
                (Value::Clear(x), Value::Clear(y)) => Value::Clear(times(&clear, x, y)?),
                (Value::Clear(x), Value::Secret(y)) => {
                    Value::Secret(y.try_map(|part| times(&d, x, part))?)
                }
                (Value::Secret(x), Value::Clear(y)) => {
                    Value::Secret(x.try_map(|part| times(&d, part, y))?)
                }
                _ => return mismatch(),
            })
        })
    }

    /// [`Engine::sum`](crate::engine::Engine::sum).
    pub(super) fn sums(&mut self, a: &Handle, length: usize) -> Result<Handle> {
        if length == 0 || !a.size().is_multiple_of(length) {
            return Err(EngineError::usage(format!(
                "sums of length {length} need a vector whose size is a multiple of it, not {}",
                a.size()
            )));
        }
        if !matches!(a.kind(), Kind::Secret | Kind::Clear) {
            return Err(wrong("a sum", a));
        }
        let (clear, d) = (self.domain.clone(), self.shares.clone());
        self.local(&[a], a.kind(), a.size() / length, move |_, inputs| {
            let sums = |d: &D, v: &[D::E]| -> Result<Vec<D::E>> {
                if !v.len().is_multiple_of(length) {
                    return Err(outside());
                }
                Ok(v.chunks_exact(length).map(|c| d.sum(c)).collect())
            };
            Ok(match inputs.first().map(|v| &**v) {
                Some(Value::Secret(x)) => Value::Secret(x.try_map(|part| sums(&d, part))?),
                Some(Value::Clear(x)) => Value::Clear(sums(&clear, x)?),
                _ => return mismatch(),
            })
        })
    }

    /// [`Engine::clear_op`](crate::engine::Engine::clear_op).
    pub(super) fn integers(&mut self, op: ClearOp, a: &Handle, b: &Handle) -> Result<Handle> {
        if a.kind() != Kind::Clear || b.kind() != Kind::Clear {
            return Err(wrong(
                "an integer operation",
                if a.kind() == Kind::Clear { b } else { a },
            ));
        }
        let n = sizes(a, b)?;
        let d = self.domain.clone();
        self.local(&[a, b], Kind::Clear, n, move |_, inputs| {
            let [a, b] = inputs.as_slice() else {
                return mismatch();
            };
            let (Value::Clear(x), Value::Clear(y)) = (&**a, &**b) else {
                return mismatch();
            };
            let (x, y) = (spread(x, n)?, spread(y, n)?);
            let out: Option<Vec<D::E>> = zip(&x, &y)?
                .map(|(x, y)| {
                    let (x, y) = (x.to_u128(), y.to_u128());
                    let shift = u32::try_from(y).ok();
                    Some(d.from_u128(match op {
                        // Stays exact: a shift is a product with a power of two in the domain.
                        ClearOp::Shl => return Some(d.mul(d.from_u128(x), power_of_two(&d, y))),
                        // A shift by the whole word, or further, leaves nothing.
                        ClearOp::Shr => shift.and_then(|s| x.checked_shr(s)).unwrap_or(0),
                        ClearOp::Mod => x.checked_rem(y)?,
                        ClearOp::Div => x.checked_div(y)?,
                        ClearOp::And => x & y,
                        ClearOp::Or => x | y,
                        ClearOp::Xor => x ^ y,
                    }))
                })
                .collect();
            out.map(Value::Clear)
                .ok_or_else(|| EngineError::usage("division of a clear value by zero"))
        })
    }

    /// [`Operation::ClearLegendre`](crate::engine::Operation::ClearLegendre).
    pub(super) fn legendre_symbols(&mut self, a: &Handle) -> Result<Handle> {
        if a.kind() != Kind::Clear {
            return Err(wrong("a Legendre symbol", a));
        }
        let q = match self.domain.kind() {
            DomainKind::Fq(q) => u128::from(q),
            DomainKind::WideFq(q) => q,
            other => {
                return Err(EngineError::usage(format!(
                    "Legendre symbols are of elements of a prime field, not of {other}: take a prime"
                )));
            }
        };
        let d = self.domain.clone();
        self.local(&[a], Kind::Clear, a.size(), move |_, inputs| {
            let Some(Value::Clear(x)) = inputs.first().map(|v| &**v) else {
                return mismatch();
            };
            // Euler's criterion.
            let symbols = x.iter().map(|v| power(&d, *v, q / 2)).collect();
            Ok(Value::Clear(symbols))
        })
    }

    /// [`Engine::clear_inv`](crate::engine::Engine::clear_inv).
    pub(super) fn inverses(&mut self, a: &Handle) -> Result<Handle> {
        if a.kind() != Kind::Clear {
            return Err(wrong("inversion", a));
        }
        let d = self.domain.clone();
        self.local(&[a], Kind::Clear, a.size(), move |_, inputs| {
            let Some(Value::Clear(x)) = inputs.first().map(|v| &**v) else {
                return mismatch();
            };
            let out: Option<Vec<D::E>> = x.iter().map(|v| d.invert(*v)).collect();
            out.map(Value::Clear).ok_or_else(|| {
                EngineError::usage(
                    "inversion of a value that has no inverse: zero, or even modulo 2^k",
                )
            })
        })
    }
}
