//! The operations of a computation over the graph: what every protocol and domain shares.

mod arithmetic;
mod conversions;
mod exchanges;
mod places;
mod stored;

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
use crate::value::{Kind, Value};

/// The implementation of [`Engine`] for one protocol and one domain.
pub(crate) struct Computation<P: Protocol, D: Domain> {
    session: Session,
    protocol: P,
    /// Of the values.
    domain: D,
    /// Of the shares: another one where MACs need more bits.
    shares: D,
    graph: Graph<P, D::E>,
    /// What this engine gave for shares that are stored.
    key_test: Option<Zeroizing<Vec<u8>>>,
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
        let graph = Graph::new(Arc::clone(session.guard()));
        Self {
            session,
            protocol,
            domain,
            shares,
            graph,
            key_test: None,
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
            "this protocol has no binary domain in this engine: use arithmetic bits (get_random_bit), or another protocol",
        ))
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
            Value::Clear(v) if v.len() != a.size() => Err(outside()),
            Value::Personal(_, Some(v)) if v.len() != a.size() => Err(outside()),
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
        self.product(a, b)
    }

    fn neg(&mut self, a: &Handle) -> Result<Handle> {
        self.negative(a)
    }

    fn dot(&mut self, a: &Handle, b: &Handle, length: usize) -> Result<Handle> {
        self.inner_products(a, b, length)
    }

    fn matrix_product(
        &mut self,
        a: &Handle,
        b: &Handle,
        shape: (usize, usize, usize),
    ) -> Result<Handle> {
        self.matrices(a, b, shape)
    }

    fn sum(&mut self, a: &Handle, length: usize) -> Result<Handle> {
        self.sums(a, length)
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
            Picker::List(Arc::new(progression(start, step, count)?))
        };
        self.pick(a, list, count)
    }

    fn concat(&mut self, list: &[&Handle]) -> Result<Handle> {
        self.joined(list)
    }

    fn repeat(&mut self, a: &Handle, n: usize) -> Result<Handle> {
        self.filled(a, n)
    }

    fn assign(&mut self, a: Handle, start: i64, step: i64, b: &Handle) -> Result<Handle> {
        check_progression(start, step, b.size(), a.size())?;
        let places = if step >= 1 {
            Places::Forward(start as usize, step as usize, b.size())
        } else {
            Places::List(progression(start, step, b.size())?)
        };
        self.store(a, places, b)
    }

    fn scatter(&mut self, a: Handle, indices: &[i64], b: &Handle) -> Result<Handle> {
        let indices = checked_indices(indices, a.size())?;
        self.store(a, Places::List(indices), b)
    }

    fn open(&mut self, a: &Handle) -> Result<Handle> {
        self.opened(a)
    }

    fn open_low(&mut self, a: &Handle, bits: u32) -> Result<Handle> {
        self.opened_low(a, bits)
    }

    fn open_to(&mut self, a: &Handle, receiver: usize) -> Result<Handle> {
        self.opened_to(a, receiver)
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
            self.graph.refuse_after_failure()?;
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
        self.shuffled(a, unit)
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
            self.graph.refuse_after_failure()?;
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
        self.bits_as_elements(bits)
    }

    fn edabit(&mut self, length: usize, n: usize) -> Result<(Handle, Vec<Handle>)> {
        self.numbers(length, n)
    }

    fn summand_bits(&mut self, a: &Handle, m: usize) -> Result<Vec<Vec<Handle>>> {
        self.summands_in_bits(a, m)
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
        self.integers(op, a, b)
    }

    fn clear_inv(&mut self, a: &Handle) -> Result<Handle> {
        self.inverses(a)
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
            Value::ClearBits(v) => Ok(keyquorum_math::bits::unpack(v, a.size())?),
            _ => Err(EngineError::usage(
                "a secret value cannot be read: reveal it first",
            )),
        }
    }

    fn export(&mut self, a: &Handle) -> Result<Vec<u8>> {
        self.exported(a)
    }

    fn import(&mut self, data: &[u8], n: usize) -> Result<Handle> {
        self.imported(data, n)
    }

    fn key_test(&mut self) -> Result<Zeroizing<Vec<u8>>> {
        self.make_key_test()
    }

    fn test_stored_keys(&mut self, key_test: &[u8]) -> Result<()> {
        self.tested_keys(key_test)
    }

    fn about(&mut self, text: &[u8]) {
        let digest: [u8; 32] = Sha256::digest(text).into();
        let [a, b, c, d, e, f, g, h, ..] = digest;
        self.graph
            .bind(u64::from_le_bytes([a, b, c, d, e, f, g, h]));
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
