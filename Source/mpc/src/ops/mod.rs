//! The operations of a computation over the graph: what every protocol and domain shares.

mod arithmetic;
mod bit_products;
mod bitwise;
mod circuits;
mod conversions;
mod engine;
mod exchanges;
mod indexing;
mod lookup;
mod negacyclic;
mod stored;
mod transform;

use std::sync::Arc;

pub(crate) use self::stored::NAME_BYTES;

use keyquorum_math::Domain;
use zeroize::Zeroizing;

use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::graph::{Graph, Handle, Inputs, LocalFn, Op};
use crate::protocol::Protocol;
use crate::select::*;
use crate::session::Session;
use crate::value::{Kind, Value};

/// The implementation of [`Engine`] for one protocol and one domain.
pub(crate) struct Computation<P: Protocol<D>, D: Domain> {
    session: Session,
    protocol: P,
    /// The domain of the values.
    domain: D,
    /// The domain of the shares: another one where MACs need more bits.
    shares: D,
    graph: Graph<P, D::E>,
    /// The origin that this engine gives to stored shares.
    origin: Option<Zeroizing<Vec<u8>>>,
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

impl<P: Protocol<D>, D: Domain> Computation<P, D> {
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
            origin: None,
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
        f: impl FnOnce(&mut P, Inputs<D::E>) -> Result<crate::task::SendFn<P, Value<D::E>>>
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

    fn need_binary(&mut self) -> Result<()> {
        self.protocol.bits().map(drop)
    }

    fn ids(&self, handles: &[&Handle]) -> Result<Vec<u64>> {
        handles.iter().map(|h| self.graph.own(h)).collect()
    }

    /// The value, and everything verified that was opened before; `reads`: for a caller that reads an opened value.
    fn forced(&mut self, a: &Handle, reads: bool) -> Result<Arc<Value<D::E>>> {
        let id = self.graph.own(a)?;
        let before = self.graph.stats.rounds;
        let mut inner = self.session.lock()?;
        let result = self.graph.force(&mut self.protocol, inner.net.as_mut(), id);
        let result = result.and_then(|value| {
            self.graph
                .verify(&mut self.protocol, inner.net.as_mut(), reads)
                .map(|()| value)
        });
        drop(inner);
        self.session
            .count_rounds(self.graph.stats.rounds - before)?;
        result
    }

    /// Makes the correlated randomness that was asked for, ahead of the round that uses it.
    fn preprocess(&mut self) -> Result<()> {
        let before = self.graph.stats.rounds;
        let mut inner = self.session.lock()?;
        let result = self
            .graph
            .preprocess(&mut self.protocol, inner.net.as_mut());
        drop(inner);
        self.session
            .count_rounds(self.graph.stats.rounds - before)?;
        result
    }

    fn read_elements(&mut self, a: &Handle) -> Result<Vec<D::E>> {
        match &*self.forced(a, true)? {
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
