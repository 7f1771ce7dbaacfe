//! The operations of a computation over the graph: what every protocol and domain shares.

use std::sync::Arc;

use keyquorum_math::{Domain, DomainKind, Element};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::engine::{ClearOp, Engine, EngineStats, Material};
use crate::error::{EngineError, Result};
use crate::graph::{Graph, Handle, Inputs, LocalFn, Op, then};
use crate::protocol::{BITS, Protocol, lanes};
use crate::select::*;
use crate::session::Session;
use crate::value::{Kind, Share, Value};

/// The implementation of [`Engine`] for one protocol and one domain.
pub(crate) struct Computation<P: Protocol, D: Domain> {
    session: Session,
    protocol: P,
    /// Of the values.
    domain: D,
    /// Of the shares: another one where MACs need more bits.
    shares: D,
    graph: Graph<P, D::E>,
    threshold: usize,
    insecure: bool,
}

fn wrong(what: &str, a: &Handle) -> EngineError {
    EngineError::usage(format!(
        "{what} does not work on a value of kind {:?}",
        a.kind()
    ))
}

fn sizes(a: &Handle, b: &Handle) -> Result<usize> {
    match (a.size(), b.size()) {
        (x, y) if x == y => Ok(x),
        (1, y) => Ok(y),
        (x, 1) => Ok(x),
        (x, y) => Err(EngineError::usage(format!(
            "vectors of sizes {x} and {y} do not go together: sizes must be equal, or one of them 1"
        ))),
    }
}

/// 2^exponent in the domain.
fn power_of_two<D: Domain>(domain: &D, mut exponent: u128) -> D::E {
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
) -> Vec<D::E> {
    if columns == 1 {
        return left
            .chunks_exact(inner)
            .map(|row| domain.dot(row, right))
            .collect();
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
    term.iter_mut().for_each(zeroize::Zeroize::zeroize);
    sum.iter_mut().for_each(zeroize::Zeroize::zeroize);
    out
}

fn mismatch<T>() -> Result<T> {
    Err(EngineError::usage(
        "operands of these kinds do not go together",
    ))
}

impl<P: Protocol, D: Domain> Computation<P, D> {
    pub fn new(
        session: Session,
        protocol: P,
        (domain, shares): (D, D),
        threshold: usize,
        insecure: bool,
    ) -> Self {
        Self {
            session,
            protocol,
            domain,
            shares,
            graph: Graph::new(),
            threshold,
            insecure,
        }
    }

    fn local(
        &mut self,
        inputs: &[&Handle],
        kind: Kind,
        size: usize,
        f: impl FnOnce(&mut P, Inputs<D::E>) -> Result<Value<D::E>> + Send + 'static,
    ) -> Result<Handle> {
        let ids = self.ids(inputs)?;
        let op: LocalFn<P, D::E> = Box::new(f);
        self.graph
            .add(&mut self.protocol, Op::Local(op), &ids, None, kind, size)
    }

    fn communicate(
        &mut self,
        inputs: &[&Handle],
        kind: Kind,
        size: usize,
        f: impl FnOnce(&mut P, Inputs<D::E>) -> Result<crate::graph::SendFn<P, Value<D::E>>>
        + Send
        + 'static,
    ) -> Result<Handle> {
        let ids = self.ids(inputs)?;
        let handle = self.graph.add(
            &mut self.protocol,
            Op::Comm(Box::new(f)),
            &ids,
            None,
            kind,
            size,
        )?;
        if self.graph.crowded() {
            self.flush()?;
        }
        Ok(handle)
    }

    fn need_binary(&self) -> Result<()> {
        if self.protocol.has_binary() {
            return Ok(());
        }
        Err(EngineError::usage(
            "this protocol has no binary domain in this engine: use arithmetic bits (get_random_bit), or ring or rep-field",
        ))
    }

    fn linear(&mut self, a: &Handle, b: &Handle, subtract: bool) -> Result<Handle> {
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
                    let mut x = spread(x, n);
                    combine(&d, &mut x, &spread(y, n));
                    Value::Clear(x)
                }
                (Value::Secret(x), Value::Secret(y)) => {
                    let mut x = spread_share(x, n);
                    if y.len() == n {
                        for (x, y) in x.parts.iter_mut().zip(&y.parts) {
                            combine(&shares, x, y);
                        }
                    } else {
                        for (x, y) in x.parts.iter_mut().zip(&y.parts) {
                            let y = y.first().copied().unwrap_or_default();
                            shares.add_scalar_assign(x, if subtract { shares.neg(y) } else { y });
                        }
                    }
                    Value::Secret(x)
                }
                (Value::Secret(x), Value::Clear(y)) => {
                    let mut x = spread_share(x, n);
                    let mut y = spread(y, n);
                    if subtract {
                        d.neg_assign(&mut y);
                    }
                    p.add_clear(&shares, &mut x, &y);
                    Value::Secret(x)
                }
                (Value::Clear(x), Value::Secret(y)) => {
                    let mut y = spread_share(y, n);
                    if subtract {
                        for part in &mut y.parts {
                            shares.neg_assign(part);
                        }
                    }
                    p.add_clear(&shares, &mut y, &spread(x, n));
                    Value::Secret(y)
                }
                _ => return mismatch(),
            })
        })
    }

    fn pick(&mut self, a: &Handle, picker: Picker, n: usize) -> Result<Handle> {
        if a.kind() == Kind::Personal {
            return Err(wrong("indexing", a));
        }
        self.local(&[a], a.kind(), n, move |_, inputs| {
            Ok(match inputs.first().map(|v| &**v) {
                Some(Value::Secret(x)) => Value::Secret(x.map(|part| picker.elements(part))),
                Some(Value::Clear(x)) => Value::Clear(picker.elements(x)),
                Some(Value::SecretBits(x)) => Value::SecretBits(x.map(|part| picker.bits(part))),
                Some(Value::ClearBits(x)) => Value::ClearBits(picker.bits(x)),
                _ => return mismatch(),
            })
        })
    }

    fn store(&mut self, a: Handle, places: Places, b: &Handle) -> Result<Handle> {
        let n = places.count();
        if b.size() != n && b.size() != 1 {
            return Err(EngineError::usage(format!(
                "{} values do not fit {n} places",
                b.size()
            )));
        }
        let kind = match (a.kind(), b.kind()) {
            (x, y) if x == y && x != Kind::Personal => x,
            (Kind::Secret, Kind::Clear) => Kind::Secret,
            (Kind::SecretBits, Kind::ClearBits) => Kind::SecretBits,
            _ => return Err(wrong("assignment", b)),
        };
        let size = a.size();
        let ids = self.ids(&[&a, b])?;
        let d = self.shares.clone();
        let single = b.size() == 1;
        let op: LocalFn<P, D::E> = Box::new(move |p, mut inputs| {
            let (Some(b), Some(a)) = (inputs.pop(), inputs.pop()) else {
                return mismatch();
            };
            let converted;
            let converted_bits;
            let b = match (&*a, &*b) {
                (Value::Secret(_), Value::Clear(y)) => {
                    converted = Value::Secret(p.constant(&d, y));
                    &converted
                }
                (Value::SecretBits(_), Value::ClearBits(y)) => {
                    converted_bits = Value::SecretBits(p.constant(&BITS, y));
                    &converted_bits
                }
                (_, other) => other,
            };
            let a = match Arc::try_unwrap(a) {
                Ok(owned) => owned,
                Err(shared) => match &*shared {
                    Value::Secret(x) => Value::Secret(x.duplicate()),
                    Value::Clear(x) => Value::Clear(x.clone()),
                    Value::SecretBits(x) => Value::SecretBits(x.duplicate()),
                    Value::ClearBits(x) => Value::ClearBits(x.clone()),
                    Value::Personal(..) => return mismatch(),
                },
            };
            Ok(match (a, b) {
                (Value::Secret(mut x), Value::Secret(y)) => {
                    for (x, y) in x.parts.iter_mut().zip(&y.parts) {
                        places.put(x, y);
                    }
                    Value::Secret(x)
                }
                (Value::Clear(mut x), Value::Clear(y)) => {
                    places.put(&mut x, y);
                    Value::Clear(x)
                }
                (Value::SecretBits(mut x), Value::SecretBits(y)) => {
                    for (x, y) in x.parts.iter_mut().zip(&y.parts) {
                        places.put_bits(x, y, single);
                    }
                    Value::SecretBits(x)
                }
                (Value::ClearBits(mut x), Value::ClearBits(y)) => {
                    places.put_bits(&mut x, y, single);
                    Value::ClearBits(x)
                }
                _ => return mismatch(),
            })
        });
        self.graph
            .add(&mut self.protocol, Op::Local(op), &ids, Some(a), kind, size)
    }

    fn bitwise(&mut self, a: &Handle, b: &Handle, and: bool) -> Result<Handle> {
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
                    let x = x.map(|part| spread_lanes(part, x_size, n));
                    let y = y.map(|part| spread_lanes(part, y_size, n));
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
                    let mut x = spread_lanes(x, x_size, n);
                    combine(&mut x, &spread_lanes(y, y_size, n));
                    Value::ClearBits(x)
                }
                (Value::SecretBits(x), Value::SecretBits(y)) => {
                    let mut x = x.map(|part| spread_lanes(part, x_size, n));
                    for (x, y) in x.parts.iter_mut().zip(&y.parts) {
                        combine(x, &spread_lanes(y, y_size, n));
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
                    let mut s = s.map(|part| spread_lanes(part, s_size, n));
                    let c = spread_lanes(c, c_size, n);
                    if and {
                        for part in &mut s.parts {
                            combine(part, &c);
                        }
                    } else {
                        p.add_clear(&BITS, &mut s, &c);
                    }
                    Value::SecretBits(s)
                }
                _ => return mismatch(),
            })
        })
    }

    fn ids(&self, handles: &[&Handle]) -> Result<Vec<u64>> {
        handles.iter().map(|h| self.graph.own(h)).collect()
    }

    fn forced(&mut self, a: &Handle) -> Result<Arc<Value<D::E>>> {
        let id = self.graph.own(a)?;
        let before = self.graph.stats.rounds;
        let mut inner = self.session.lock()?;
        let result = self.graph.force(&mut self.protocol, inner.net.as_mut(), id);
        let result = result.and_then(|value| {
            self.graph
                .verify(&mut self.protocol, inner.net.as_mut())
                .map(|()| value)
        });
        drop(inner);
        self.session
            .count_rounds(self.graph.stats.rounds - before)?;
        result
    }

    /// Makes the correlated randomness that was asked for.
    fn supplied(&mut self) -> Result<()> {
        let before = self.graph.stats.rounds;
        let mut inner = self.session.lock()?;
        let result = self.graph.supply(&mut self.protocol, inner.net.as_mut());
        drop(inner);
        self.session
            .count_rounds(self.graph.stats.rounds - before)?;
        result
    }

    fn read_elements(&mut self, a: &Handle) -> Result<Vec<D::E>> {
        match &*self.forced(a)? {
            Value::Clear(v) => Ok(v.clone()),
            Value::Personal(_, Some(v)) => Ok(v.to_vec()),
            Value::Personal(owner, None) => Err(EngineError::usage(format!(
                "this value was revealed to party {owner} only"
            ))),
            _ => Err(EngineError::usage(
                "a secret value cannot be read: reveal it first",
            )),
        }
    }

    fn open_masked(share: &Share<u64>, n: usize) -> Share<u64> {
        let mut share = share.duplicate();
        for part in &mut share.parts {
            mask_tail(part, n);
        }
        share
    }
}

impl<P: Protocol, D: Domain> Computation<P, D> {
    fn check_input(&self, owner: usize, n: usize, given: Option<usize>) -> Result<()> {
        let (me, parties) = self.protocol.party();
        if owner >= parties {
            return Err(EngineError::usage(format!(
                "there is no party {owner} among {parties}"
            )));
        }
        match given {
            None if me == owner => Err(EngineError::usage(format!(
                "party {me} has no input values: it must share {n}"
            ))),
            Some(len) if me == owner && len != n => Err(EngineError::usage(format!(
                "party {me} has {len} input values, {n} are wanted"
            ))),
            _ => Ok(()),
        }
    }
}

impl<P: Protocol, D: Domain> Engine for Computation<P, D> {
    fn domain(&self) -> DomainKind {
        self.domain.kind()
    }

    fn party(&self) -> (usize, usize) {
        self.protocol.party()
    }

    fn threshold(&self) -> usize {
        self.threshold
    }

    fn has_binary(&self) -> bool {
        self.protocol.has_binary()
    }

    fn has_edabits(&self) -> bool {
        self.protocol.has_numbers()
    }

    fn summands(&self) -> usize {
        if matches!(self.domain.kind(), DomainKind::Z2k(_)) {
            self.protocol.summands()
        } else {
            0
        }
    }

    fn share_parts(&self) -> usize {
        self.protocol.parts()
    }

    fn element_bytes(&self) -> usize {
        D::E::BYTES
    }

    fn mac_key(&self) -> Option<u128> {
        self.protocol.mac_key()
    }

    fn insecure(&self) -> bool {
        self.insecure
    }

    fn clear(&mut self, values: &[i64]) -> Handle {
        let v: Vec<D::E> = values.iter().map(|v| self.domain.from_i64(*v)).collect();
        let n = v.len();
        self.graph.insert(Value::Clear(v), Kind::Clear, n)
    }

    fn clear_wide(&mut self, values: &[i128]) -> Handle {
        let d = &self.domain;
        let v: Vec<D::E> = values
            .iter()
            .map(|v| {
                if *v < 0 {
                    d.neg(d.from_u128(v.unsigned_abs()))
                } else {
                    d.from_u128(*v as u128)
                }
            })
            .collect();
        let n = v.len();
        self.graph.insert(Value::Clear(v), Kind::Clear, n)
    }

    fn clear_words(&mut self, values: &[u64]) -> Handle {
        let v: Vec<D::E> = values
            .iter()
            .map(|v| self.domain.from_u128(u128::from(*v)))
            .collect();
        let n = v.len();
        self.graph.insert(Value::Clear(v), Kind::Clear, n)
    }

    fn add(&mut self, a: &Handle, b: &Handle) -> Result<Handle> {
        self.linear(a, b, false)
    }

    fn sub(&mut self, a: &Handle, b: &Handle) -> Result<Handle> {
        self.linear(a, b, true)
    }

    fn mul(&mut self, a: &Handle, b: &Handle) -> Result<Handle> {
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
                        p.dot(&d, &spread_share(x, n), &spread_share(y, n), 1)?
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
                        let mut x = spread(x, n);
                        match y {
                            [one] => d.mul_scalar_assign(&mut x, *one),
                            _ => d.mul_assign(&mut x, y),
                        }
                        x
                    };
                    Ok(match (&**a, &**b) {
                        (Value::Clear(x), Value::Clear(y)) => Value::Clear(times(&clear, x, y)),
                        (Value::Secret(s), Value::Clear(c))
                        | (Value::Clear(c), Value::Secret(s)) => {
                            Value::Secret(s.map(|part| times(&d, part, c)))
                        }
                        _ => return mismatch(),
                    })
                })
            }
            (Kind::Secret | Kind::Clear, _) => Err(wrong("arithmetic", b)),
            _ => Err(wrong("arithmetic", a)),
        }
    }

    fn neg(&mut self, a: &Handle) -> Result<Handle> {
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

    fn dot(&mut self, a: &Handle, b: &Handle, length: usize) -> Result<Handle> {
        if a.size() != b.size() || length == 0 || !a.size().is_multiple_of(length) {
            return Err(EngineError::usage(format!(
                "inner products of length {length} need vectors of one size, a multiple of it: got {} and {}",
                a.size(),
                b.size()
            )));
        }
        if a.kind() != Kind::Secret || b.kind() != Kind::Secret {
            let product = self.mul(a, b)?;
            return self.sum(&product, length);
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

    fn matrix_product(
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
                (Value::Clear(x), Value::Clear(y)) => Value::Clear(times(&clear, x, y)),
                (Value::Clear(x), Value::Secret(y)) => {
                    Value::Secret(y.map(|part| times(&d, x, part)))
                }
                (Value::Secret(x), Value::Clear(y)) => {
                    Value::Secret(x.map(|part| times(&d, part, y)))
                }
                _ => return mismatch(),
            })
        })
    }

    fn sum(&mut self, a: &Handle, length: usize) -> Result<Handle> {
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
            let sums = |d: &D, v: &[D::E]| -> Vec<D::E> {
                v.chunks_exact(length).map(|c| d.sum(c)).collect()
            };
            Ok(match inputs.first().map(|v| &**v) {
                Some(Value::Secret(x)) => Value::Secret(x.map(|part| sums(&d, part))),
                Some(Value::Clear(x)) => Value::Clear(sums(&clear, x)),
                _ => return mismatch(),
            })
        })
    }

    fn gather(&mut self, a: &Handle, indices: &[i64]) -> Result<Handle> {
        let list = checked_indices(indices, a.size())?;
        let n = list.len();
        self.pick(a, Picker::List(Arc::new(list)), n)
    }

    fn slice(&mut self, a: &Handle, start: i64, step: i64, count: usize) -> Result<Handle> {
        check_progression(start, step, count, a.size())?;
        let list = if step >= 1 || count == 0 {
            Picker::Forward(start.max(0) as usize, step.max(1) as usize, count)
        } else {
            Picker::List(Arc::new(progression(start, step, count)))
        };
        self.pick(a, list, count)
    }

    fn concat(&mut self, list: &[&Handle]) -> Result<Handle> {
        let has = |kind: Kind| list.iter().any(|h| h.kind() == kind);
        let kind = match (
            has(Kind::Secret),
            has(Kind::Clear),
            has(Kind::SecretBits),
            has(Kind::ClearBits),
            has(Kind::Personal),
        ) {
            (true, _, false, false, false) => Kind::Secret,
            (false, true, false, false, false) => Kind::Clear,
            (false, false, true, _, false) => Kind::SecretBits,
            (false, false, false, true, false) => Kind::ClearBits,
            _ => return mismatch(),
        };
        let lengths: Vec<usize> = list.iter().map(|h| h.size()).collect();
        let total = lengths.iter().sum();
        let d = self.shares.clone();
        self.local(list, kind, total, move |p, inputs| {
            let mut secret = Share {
                parts: vec![Vec::new(); p.parts()],
            };
            let mut bits = Share {
                parts: vec![Vec::new(); p.bit_parts()],
            };
            let (mut clear, mut clear_bits, mut at) = (Vec::new(), Vec::new(), 0);
            for (value, n) in inputs.iter().zip(lengths) {
                match (&**value, kind) {
                    (Value::Secret(x), _) => {
                        for (out, part) in secret.parts.iter_mut().zip(&x.parts) {
                            out.reserve(if out.is_empty() { total } else { 0 });
                            out.extend_from_slice(part);
                        }
                    }
                    (Value::Clear(x), Kind::Secret) => {
                        for (out, part) in secret.parts.iter_mut().zip(&p.constant(&d, x).parts) {
                            out.extend_from_slice(part);
                        }
                    }
                    (Value::Clear(x), _) => clear.extend_from_slice(x),
                    (Value::SecretBits(x), _) => {
                        for (out, part) in bits.parts.iter_mut().zip(&x.parts) {
                            append_bits(out, at, part, n);
                        }
                    }
                    (Value::ClearBits(x), Kind::SecretBits) => {
                        for (out, part) in bits.parts.iter_mut().zip(&p.constant(&BITS, x).parts) {
                            append_bits(out, at, part, n);
                        }
                    }
                    (Value::ClearBits(x), _) => append_bits(&mut clear_bits, at, x, n),
                    (Value::Personal(..), _) => return mismatch(),
                }
                at += n;
            }
            Ok(match kind {
                Kind::Secret => Value::Secret(secret),
                Kind::Clear => Value::Clear(clear),
                Kind::SecretBits => Value::SecretBits(bits),
                _ => Value::ClearBits(clear_bits),
            })
        })
    }

    fn repeat(&mut self, a: &Handle, n: usize) -> Result<Handle> {
        if a.size() != 1 {
            return Err(EngineError::usage(format!(
                "only a vector of size 1 can be repeated, not one of size {}",
                a.size()
            )));
        }
        self.local(&[a], a.kind(), n, move |_, inputs| {
            Ok(match inputs.first().map(|v| &**v) {
                Some(Value::Secret(x)) => {
                    Value::Secret(x.map(|p| vec![p.first().copied().unwrap_or_default(); n]))
                }
                Some(Value::Clear(x)) => {
                    Value::Clear(vec![x.first().copied().unwrap_or_default(); n])
                }
                Some(Value::SecretBits(x)) => Value::SecretBits(x.map(|p| spread_lanes(p, 1, n))),
                Some(Value::ClearBits(x)) => Value::ClearBits(spread_lanes(x, 1, n)),
                _ => return mismatch(),
            })
        })
    }

    fn assign(&mut self, a: Handle, start: i64, step: i64, b: &Handle) -> Result<Handle> {
        check_progression(start, step, b.size(), a.size())?;
        let places = if step >= 1 {
            Places::Forward(start as usize, step as usize, b.size())
        } else {
            Places::List(progression(start, step, b.size()))
        };
        self.store(a, places, b)
    }

    fn scatter(&mut self, a: Handle, indices: &[i64], b: &Handle) -> Result<Handle> {
        let indices = checked_indices(indices, a.size())?;
        self.store(a, Places::List(indices), b)
    }

    fn open(&mut self, a: &Handle) -> Result<Handle> {
        let d = self.shares.clone();
        let n = a.size();
        match a.kind() {
            Kind::Secret => self.communicate(&[a], Kind::Clear, n, move |p, inputs| {
                match inputs.first().map(|v| &**v) {
                    Some(Value::Secret(x)) => Ok(then(p.open(&d, x)?, |_, v| Ok(Value::Clear(v)))),
                    _ => mismatch(),
                }
            }),
            Kind::SecretBits => self.communicate(&[a], Kind::ClearBits, n, move |p, inputs| {
                match inputs.first().map(|v| &**v) {
                    Some(Value::SecretBits(x)) => {
                        Ok(then(p.open(&BITS, &Self::open_masked(x, n))?, |_, v| {
                            Ok(Value::ClearBits(v))
                        }))
                    }
                    _ => mismatch(),
                }
            }),
            _ => Err(wrong("reveal", a)),
        }
    }

    fn open_low(&mut self, a: &Handle, bits: u32) -> Result<Handle> {
        if a.kind() != Kind::Secret {
            return Err(wrong("opening low bits", a));
        }
        let (d, n) = (self.domain.clone(), a.size());
        let low = d.low_bits(bits).ok_or_else(|| {
            EngineError::usage(format!(
                "{bits} low bits of {} cannot be opened: choose 1 to k in a ring Z2^k",
                d.kind()
            ))
        })?;
        if self.protocol.opens_low_bits() {
            let mask = u128::MAX >> (128 - bits);
            return self.communicate(&[a], Kind::Clear, n, move |p, inputs| {
                match inputs.first().map(|v| &**v) {
                    Some(Value::Secret(x)) => {
                        let reduced = x.map(|part| {
                            let low = |e: &D::E| D::E::from_u128_wrapping(e.to_u128() & mask);
                            part.iter().map(low).collect()
                        });
                        let task = p.open(&low, &reduced)?;
                        Ok(then(task, |_, v| Ok(Value::Clear(v))))
                    }
                    _ => mismatch(),
                }
            });
        }
        let above = d.bits() - bits;
        let factor = self.graph.insert(
            Value::Clear(vec![power_of_two(&d, u128::from(above))]),
            Kind::Clear,
            1,
        );
        let shifted = self.mul(a, &factor)?;
        let opened = self.open(&shifted)?;
        self.local(&[&opened], Kind::Clear, n, move |_, inputs| {
            match inputs.first().map(|v| &**v) {
                Some(Value::Clear(x)) => Ok(Value::Clear(
                    x.iter()
                        .map(|e| D::E::from_u128_wrapping(e.to_u128() >> above))
                        .collect(),
                )),
                _ => mismatch(),
            }
        })
    }

    fn open_to(&mut self, a: &Handle, receiver: usize) -> Result<Handle> {
        let (_, parties) = self.protocol.party();
        if receiver >= parties {
            return Err(EngineError::usage(format!(
                "there is no party {receiver} among {parties}"
            )));
        }
        if a.kind() != Kind::Secret {
            return Err(wrong("reveal_to", a));
        }
        let d = self.shares.clone();
        self.communicate(
            &[a],
            Kind::Personal,
            a.size(),
            move |p, inputs| match inputs.first().map(|v| &**v) {
                Some(Value::Secret(x)) => Ok(then(p.open_to(&d, x, receiver)?, move |_, v| {
                    Ok(Value::Personal(receiver, v.map(Zeroizing::new)))
                })),
                _ => mismatch(),
            },
        )
    }

    fn input(&mut self, owner: usize, n: usize, values: Option<&[i64]>) -> Result<Handle> {
        self.check_input(owner, n, values.map(<[i64]>::len))?;
        let (d, shares) = (self.domain.clone(), self.shares.clone());
        let values = values.map(|v| v.iter().map(|x| d.from_i64(*x)).collect::<Vec<_>>());
        self.communicate(&[], Kind::Secret, n, move |p, _| {
            Ok(then(p.input(&shares, owner, n, values)?, |_, share| {
                Ok(Value::Secret(share))
            }))
        })
    }

    fn input_bits(&mut self, owner: usize, n: usize, values: Option<&[u8]>) -> Result<Handle> {
        self.need_binary()?;
        self.check_input(owner, n, values.map(<[u8]>::len))?;
        let values = values.map(keyquorum_math::bits::pack);
        self.communicate(&[], Kind::SecretBits, n, move |p, _| {
            Ok(then(
                p.input(&BITS, owner, lanes(n), values)?,
                |_, share| Ok(Value::SecretBits(share)),
            ))
        })
    }

    fn random(&mut self, n: usize) -> Result<Handle> {
        let d = self.shares.clone();
        if self.protocol.random_is_local() {
            let share = self.protocol.random_local(&d, n)?;
            return Ok(self.graph.insert(Value::Secret(share), Kind::Secret, n));
        }
        self.communicate(&[], Kind::Secret, n, move |p, _| {
            Ok(then(p.random(&d, n)?, |_, share| Ok(Value::Secret(share))))
        })
    }

    fn has_shuffle(&self) -> bool {
        self.protocol.has_shuffle()
    }

    fn shuffle(&mut self, a: &Handle, unit: usize) -> Result<Handle> {
        if a.kind() != Kind::Secret {
            return Err(wrong("shuffle", a));
        }
        if unit == 0 || !a.size().is_multiple_of(unit) {
            return Err(EngineError::usage(format!(
                "{} elements do not make blocks of {unit}",
                a.size()
            )));
        }
        let d = self.shares.clone();
        self.communicate(&[a], Kind::Secret, a.size(), move |p, inputs| match inputs
            .first()
            .map(|v| &**v)
        {
            Some(Value::Secret(x)) => Ok(then(p.shuffle(&d, x, unit)?, |_, share| {
                Ok(Value::Secret(share))
            })),
            _ => mismatch(),
        })
    }

    fn random_bit(&mut self, n: usize) -> Result<Handle> {
        let d = self.shares.clone();
        self.communicate(&[], Kind::Secret, n, move |p, _| {
            Ok(then(p.random_bit(&d, n)?, |_, share| {
                Ok(Value::Secret(share))
            }))
        })
    }

    fn random_bits(&mut self, n: usize) -> Result<Handle> {
        self.need_binary()?;
        if self.protocol.random_is_local() {
            let share = self.protocol.random_local(&BITS, lanes(n))?;
            return Ok(self
                .graph
                .insert(Value::SecretBits(share), Kind::SecretBits, n));
        }
        self.communicate(&[], Kind::SecretBits, n, move |p, _| {
            Ok(then(p.random(&BITS, lanes(n))?, |_, share| {
                Ok(Value::SecretBits(share))
            }))
        })
    }

    fn bit_to_arith(&mut self, bits: &Handle) -> Result<Handle> {
        self.need_binary()?;
        if bits.kind() != Kind::SecretBits {
            return Err(wrong("bit_to_arith", bits));
        }
        let d = self.shares.clone();
        let n = bits.size();
        self.communicate(&[bits], Kind::Secret, n, move |p, inputs| {
            match inputs.first().map(|v| &**v) {
                Some(Value::SecretBits(x)) => Ok(then(p.bit_to_arith(&d, x, n)?, |_, share| {
                    Ok(Value::Secret(share))
                })),
                _ => mismatch(),
            }
        })
    }

    fn edabit(&mut self, length: usize, n: usize) -> Result<(Handle, Vec<Handle>)> {
        self.need_binary()?;
        let d = self.shares.clone();
        if self.protocol.has_numbers() {
            self.graph.bind((length as u64) << 48 ^ n as u64);
            self.protocol.need_numbers(&d, length, n);
            self.supplied()?;
            let (elements, rows) = self.protocol.take_numbers(&d, length, n)?;
            let number = self.graph.insert(Value::Secret(elements), Kind::Secret, n);
            let row = |bits| {
                self.graph
                    .insert(Value::SecretBits(bits), Kind::SecretBits, n)
            };
            return Ok((number, rows.into_iter().map(row).collect()));
        }
        let rows = (0..length)
            .map(|_| self.random_bits(n))
            .collect::<Result<Vec<_>>>()?;
        let two = self.clear(&[2]);
        let mut number = self.clear(&vec![0; n]);
        for row in rows.iter().rev() {
            let bit = self.bit_to_arith(row)?;
            number = self.mul(&number, &two)?;
            number = self.add(&number, &bit)?;
        }
        Ok((number, rows))
    }

    fn summand_bits(&mut self, a: &Handle, m: usize) -> Result<Vec<Vec<Handle>>> {
        self.need_binary()?;
        if self.summands() == 0 {
            return Err(EngineError::usage(
                "split_to_n_summands works modulo 2^k on replicated or additive shares only",
            ));
        }
        let n = a.size();
        let value = self.forced(a)?;
        let Value::Secret(share) = &*value else {
            return Err(wrong("split_to_n_summands", a));
        };
        let rows = self.protocol.summand_bits(&self.shares, share, m)?;
        Ok(rows
            .into_iter()
            .map(|summand| {
                summand
                    .into_iter()
                    .map(|bits| {
                        self.graph
                            .insert(Value::SecretBits(bits), Kind::SecretBits, n)
                    })
                    .collect()
            })
            .collect())
    }

    fn clear_bits(&mut self, bits: &[u8]) -> Handle {
        self.graph.insert(
            Value::ClearBits(keyquorum_math::bits::pack(bits)),
            Kind::ClearBits,
            bits.len(),
        )
    }

    fn xor(&mut self, a: &Handle, b: &Handle) -> Result<Handle> {
        self.bitwise(a, b, false)
    }

    fn and(&mut self, a: &Handle, b: &Handle) -> Result<Handle> {
        self.bitwise(a, b, true)
    }

    fn not(&mut self, a: &Handle) -> Result<Handle> {
        let ones = self.clear_bits(&[1]);
        self.bitwise(a, &ones, false)
    }

    fn clear_op(&mut self, op: ClearOp, a: &Handle, b: &Handle) -> Result<Handle> {
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
            let (x, y) = (spread(x, n), spread(y, n));
            let out: Option<Vec<D::E>> = x
                .iter()
                .zip(&y)
                .map(|(x, y)| {
                    let (x, y) = (x.to_u128(), y.to_u128());
                    let shift = u32::try_from(y).ok();
                    Some(d.from_u128(match op {
                        // Stays exact: a shift is a product with a power of two in the domain.
                        ClearOp::Shl => return Some(d.mul(d.from_u128(x), power_of_two(&d, y))),
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

    fn clear_inv(&mut self, a: &Handle) -> Result<Handle> {
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

    fn read(&mut self, a: &Handle) -> Result<Vec<u64>> {
        if self.domain.bits() > 64 {
            return Err(EngineError::usage(
                "words of more than 64 bits: use read_wide",
            ));
        }
        Ok(self
            .read_elements(a)?
            .into_iter()
            .map(|v| v.to_u128() as u64)
            .collect())
    }

    fn read_wide(&mut self, a: &Handle) -> Result<Vec<u128>> {
        Ok(self
            .read_elements(a)?
            .into_iter()
            .map(Element::to_u128)
            .collect())
    }

    fn read_bits(&mut self, a: &Handle) -> Result<Vec<u8>> {
        match &*self.forced(a)? {
            Value::ClearBits(v) => Ok(keyquorum_math::bits::unpack(v, a.size())),
            _ => Err(EngineError::usage(
                "a secret value cannot be read: reveal it first",
            )),
        }
    }

    fn export(&mut self, a: &Handle) -> Result<Vec<u8>> {
        match &*self.forced(a)? {
            Value::Secret(share) => {
                let mut out = Vec::with_capacity(self.protocol.parts() * share.len() * D::E::BYTES);
                for v in share.parts.iter().flatten() {
                    if D::E::BYTES == 8 {
                        out.extend_from_slice(&(v.to_u128() as u64).to_le_bytes());
                    } else {
                        out.extend_from_slice(&v.to_u128().to_le_bytes());
                    }
                }
                Ok(out)
            }
            _ => Err(wrong("storing", a)),
        }
    }

    fn import(&mut self, data: &[u8], n: usize) -> Result<Handle> {
        let parts = self.protocol.parts();
        let word = parts * D::E::BYTES;
        if n.checked_mul(word) != Some(data.len()) {
            return Err(EngineError::Store(format!(
                "stored shares have {} bytes, {n} elements of {} need {word} each",
                data.len(),
                self.domain.kind()
            )));
        }
        let mut share = Share {
            parts: Vec::with_capacity(parts),
        };
        for bytes in data.chunks(n.max(1) * D::E::BYTES) {
            let mut part = Vec::with_capacity(n);
            for word in bytes.chunks_exact(D::E::BYTES) {
                let value = match word.first_chunk::<8>() {
                    Some(low) if D::E::BYTES == 8 => u128::from(u64::from_le_bytes(*low)),
                    _ => word
                        .iter()
                        .rev()
                        .fold(0u128, |v, b| (v << 8) | u128::from(*b)),
                };
                let element = self.shares.from_u128(value);
                if element.to_u128() != value {
                    return Err(EngineError::Store(format!(
                        "a stored share is out of range for {}",
                        self.domain.kind()
                    )));
                }
                part.push(element);
            }
            share.parts.push(part);
        }
        if n == 0 {
            share = Share::zeros(parts, 0);
        }
        Ok(self.graph.insert(Value::Secret(share), Kind::Secret, n))
    }

    fn about(&mut self, text: &[u8]) {
        let digest: [u8; 32] = Sha256::digest(text).into();
        self.graph
            .bind(digest.first_chunk().map_or(0, |d| u64::from_le_bytes(*d)));
    }

    fn flush(&mut self) -> Result<()> {
        let before = self.graph.stats.rounds;
        let mut inner = self.session.lock()?;
        let result = self.graph.flush(&mut self.protocol, inner.net.as_mut());
        let result =
            result.and_then(|()| self.graph.verify(&mut self.protocol, inner.net.as_mut()));
        drop(inner);
        self.session
            .count_rounds(self.graph.stats.rounds - before)?;
        result
    }

    fn material(&self) -> Vec<Material> {
        self.protocol.material()
    }

    fn stats(&self) -> EngineStats {
        self.graph.stats
    }
}
