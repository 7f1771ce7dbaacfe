//! Elements of vectors by index: picked, replaced, joined, repeated.

use std::sync::Arc;

use keyquorum_math::Domain;

use super::{Computation, mismatch, wrong};
use crate::error::{EngineError, Result};
use crate::graph::{Handle, LocalFn, Op};
use crate::protocol::{BitProtocol, Protocol};
use crate::select::*;
use crate::value::{Kind, Share, Value};

impl<P: Protocol<D>, D: Domain> Computation<P, D> {
    /// The elements that a picker names, `n` of them.
    pub(super) fn pick(&mut self, a: &Handle, picker: Picker, n: usize) -> Result<Handle> {
        if a.kind() == Kind::Personal {
            return Err(wrong("indexing", a));
        }
        self.local(&[a], a.kind(), n, move |_, inputs| {
            Ok(match inputs.first().map(|v| &**v) {
                Some(Value::Secret(x)) => Value::Secret(x.try_map(|part| picker.elements(part))?),
                Some(Value::Clear(x)) => Value::Clear(picker.elements(x)?),
                Some(Value::SecretBits(x)) => {
                    Value::SecretBits(x.try_map(|part| picker.bits(part))?)
                }
                Some(Value::ClearBits(x)) => Value::ClearBits(picker.bits(x)?),
                _ => return mismatch(),
            })
        })
    }

    /// `a` with the elements of `b` at the targets; in place if nobody else has `a`.
    pub(super) fn store(&mut self, a: Handle, targets: Targets, b: &Handle) -> Result<Handle> {
        let n = targets.count();
        if b.size() != n && b.size() != 1 {
            return Err(EngineError::usage(format!(
                "{} values do not fit {n} indices",
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
                    converted = Value::Secret(p.constant(&d, y)?);
                    &converted
                }
                (Value::SecretBits(_), Value::ClearBits(y)) => {
                    converted_bits = Value::SecretBits(p.bits()?.constant_bits(y)?);
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
                    for (x, y) in x.with(y)? {
                        targets.put(x, y)?;
                    }
                    Value::Secret(x)
                }
                (Value::Clear(mut x), Value::Clear(y)) => {
                    targets.put(&mut x, y)?;
                    Value::Clear(x)
                }
                (Value::SecretBits(mut x), Value::SecretBits(y)) => {
                    for (x, y) in x.with(y)? {
                        targets.put_bits(x, y, single)?;
                    }
                    Value::SecretBits(x)
                }
                (Value::ClearBits(mut x), Value::ClearBits(y)) => {
                    targets.put_bits(&mut x, y, single)?;
                    Value::ClearBits(x)
                }
                _ => return mismatch(),
            })
        });
        self.graph
            .add(&mut self.protocol, Op::Local(op), &ids, Some(a), kind, size)
    }

    /// [`Engine::concat`](crate::engine::Engine::concat).
    pub(super) fn joined(&mut self, list: &[&Handle]) -> Result<Handle> {
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
            let bit_parts = match kind {
                Kind::SecretBits => p.bits()?.bit_parts()?,
                _ => 0,
            };
            let mut bits = Share {
                parts: vec![Vec::new(); bit_parts],
            };
            let (mut clear, mut clear_bits, mut at) = (Vec::new(), Vec::new(), 0);
            if inputs.len() != lengths.len() {
                return Err(outside());
            }
            for (value, n) in inputs.iter().zip(lengths) {
                match (&**value, kind) {
                    (Value::Secret(x), _) => {
                        for (out, part) in secret.with(x)? {
                            out.reserve(if out.is_empty() { total } else { 0 });
                            out.extend_from_slice(part);
                        }
                    }
                    (Value::Clear(x), Kind::Secret) => {
                        for (out, part) in secret.with(&p.constant(&d, x)?)? {
                            out.extend_from_slice(part);
                        }
                    }
                    (Value::Clear(x), _) => clear.extend_from_slice(x),
                    (Value::SecretBits(x), _) => {
                        for (out, part) in bits.with(x)? {
                            append_bits(out, at, part, n)?;
                        }
                    }
                    (Value::ClearBits(x), Kind::SecretBits) => {
                        for (out, part) in bits.with(&p.bits()?.constant_bits(x)?)? {
                            append_bits(out, at, part, n)?;
                        }
                    }
                    (Value::ClearBits(x), _) => append_bits(&mut clear_bits, at, x, n)?,
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

    /// [`Engine::repeat`](crate::engine::Engine::repeat).
    pub(super) fn filled(&mut self, a: &Handle, n: usize) -> Result<Handle> {
        if a.size() != 1 {
            return Err(EngineError::usage(format!(
                "only a vector of size 1 can be repeated, not one of size {}",
                a.size()
            )));
        }
        self.local(&[a], a.kind(), n, move |_, inputs| {
            Ok(match inputs.first().map(|v| &**v) {
                Some(Value::Secret(x)) => Value::Secret(spread_share(x, n)?),
                Some(Value::Clear(x)) => Value::Clear(spread(x, n)?),
                Some(Value::SecretBits(x)) => {
                    Value::SecretBits(x.try_map(|p| spread_lanes(p, 1, n))?)
                }
                Some(Value::ClearBits(x)) => Value::ClearBits(spread_lanes(x, 1, n)?),
                _ => return mismatch(),
            })
        })
    }
}
