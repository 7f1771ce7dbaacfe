//! The lazy graph: local work runs as soon as its inputs are there, communication waits, and a flush sends everything of
//! one depth in one round (`rounds`).

mod rounds;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use keyquorum_math::Element;

use crate::error::{EngineError, Result};
use crate::guard::Guard;
use crate::protocol::{Party, Turn};
use crate::task::SendFn;
use crate::value::{Kind, Value};

pub(crate) type Inputs<E> = Vec<Arc<Value<E>>>;
pub(crate) type LocalFn<P, E> = Box<dyn FnOnce(&mut P, Inputs<E>) -> Result<Value<E>> + Send>;
pub(crate) type CommFn<P, E> =
    Box<dyn FnOnce(&mut P, Inputs<E>) -> Result<SendFn<P, Value<E>>> + Send>;

pub(crate) enum Op<P, E: Element> {
    Local(LocalFn<P, E>),
    Comm(CommFn<P, E>),
}

struct Waiting<P, E: Element> {
    op: Op<P, E>,
    inputs: Vec<u64>,
    missing: usize,
    /// For an operation that communicates: how many such operations were added before it. Local ones do not count: parties may differ in them.
    number: u64,
}

/// An operation that communicates in the next round.
struct Task<P, E: Element> {
    id: u64,
    number: u64,
    turn: Turn,
    send: SendFn<P, Value<E>>,
}

struct Node<P, E: Element> {
    value: Option<Arc<Value<E>>>,
    waiting: Option<Waiting<P, E>>,
    consumers: Vec<u64>,
    uses: usize,
    held: bool,
}

impl<P, E: Element> Node<P, E> {
    fn is_garbage(&self) -> bool {
        !self.held && self.uses == 0 && self.value.is_some()
    }
}

type Dropped = Arc<Mutex<Vec<u64>>>;

/// Rounds and payload bytes of one engine, of this party. The offline part is included in the first three.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Communication rounds.
    pub rounds: u64,
    /// Payload bytes sent.
    pub bytes_sent: u64,
    /// Payload bytes received.
    pub bytes_received: u64,
    /// Rounds that made correlated randomness or verified what was opened.
    pub offline_rounds: u64,
    /// Payload bytes sent in them.
    pub offline_bytes_sent: u64,
    /// Payload bytes received in them.
    pub offline_bytes_received: u64,
    /// Time that they took.
    pub offline_nanoseconds: u64,
}

/// A handle on a value of a computation. The value's memory is freed when the handle and all pending uses are gone.
pub struct Handle {
    pub(crate) id: u64,
    kind: Kind,
    size: usize,
    dropped: Dropped,
}

impl Handle {
    /// Kind of the value.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Number of elements or bits.
    pub fn size(&self) -> usize {
        self.size
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Ok(mut dropped) = self.dropped.lock() {
            dropped.push(self.id);
        }
    }
}

/// Elements that may wait for a round before one is run anyway: bounds memory.
const PENDING_LIMIT: usize = 1 << 22;

pub(crate) struct Graph<P, E: Element> {
    nodes: HashMap<u64, Node<P, E>>,
    next_id: u64,
    queue: Vec<Task<P, E>>,
    communications: u64,
    pending_elements: usize,
    dropped: Dropped,
    schedule: u64,
    failed: Option<String>,
    guard: Arc<Guard>,
    pub stats: EngineStats,
}

fn mix(state: u64, word: u64) -> u64 {
    (state ^ word)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .rotate_left(29)
}

fn out_of_step() -> EngineError {
    EngineError::internal("an operation and its operands out of step")
}

fn one_less(count: usize) -> Result<usize> {
    count.checked_sub(1).ok_or_else(out_of_step)
}

impl<P: Party, E: Element> Graph<P, E> {
    /// The computation of a session with this guard.
    pub fn new(guard: Arc<Guard>) -> Self {
        Self {
            nodes: HashMap::new(),
            next_id: 0,
            queue: Vec::new(),
            communications: 0,
            pending_elements: 0,
            dropped: Dropped::default(),
            schedule: 0,
            failed: None,
            guard,
            stats: EngineStats::default(),
        }
    }

    fn collect_dropped(&mut self) {
        let ids = match self.dropped.lock() {
            Ok(mut list) if !list.is_empty() => std::mem::take(&mut *list),
            _ => return,
        };
        for id in ids {
            self.release(id);
        }
    }

    fn release(&mut self, id: u64) {
        // A node that was removed has nothing more to free.
        if let Some(node) = self.nodes.get_mut(&id) {
            node.held = false;
        }
        self.remove_garbage(id);
    }

    fn remove_garbage(&mut self, id: u64) {
        if self.nodes.get(&id).is_some_and(Node::is_garbage) {
            self.nodes.remove(&id);
        }
    }

    /// Adds an operation; `consumed` inputs are given up by the caller before a local operation runs.
    pub fn add(
        &mut self,
        protocol: &mut P,
        op: Op<P, E>,
        inputs: &[u64],
        consumed: Option<Handle>,
        kind: Kind,
        size: usize,
    ) -> Result<Handle> {
        self.refuse_after_failure()?;
        self.collect_dropped();
        let id = self.next_id;
        self.next_id += 1;
        let number = self.communications;
        if matches!(op, Op::Comm(_)) {
            self.communications += 1;
            self.schedule = mix(self.schedule, ((size as u64) << 3) | kind as u64);
            self.pending_elements += if matches!(kind, Kind::SecretBits | Kind::ClearBits) {
                size / 64
            } else {
                size
            };
        }
        let mut missing = 0;
        for input in inputs {
            let node = self
                .nodes
                .get_mut(input)
                .ok_or_else(|| EngineError::usage("a value that was given up was used"))?;
            if node.value.is_none() {
                node.consumers.push(id);
                missing += 1;
            }
        }
        if missing > 0 {
            for input in inputs {
                self.node(*input)?.uses += 1;
            }
        }
        let handle = Handle {
            id,
            kind,
            size,
            dropped: Arc::clone(&self.dropped),
        };
        self.nodes.insert(
            id,
            Node {
                uses: 0,
                value: None,
                waiting: Some(Waiting {
                    op,
                    inputs: inputs.to_vec(),
                    missing,
                    number,
                }),
                consumers: Vec::new(),
                held: true,
            },
        );
        if missing == 0 {
            let operands = self.operands(inputs)?;
            if consumed.is_some() {
                drop(consumed);
                self.collect_dropped();
            }
            let started = self.start(protocol, id, operands);
            self.note_failure(started)?;
        } else {
            drop(consumed);
        }
        Ok(handle)
    }

    /// The number of a handle of this graph; refuses handles of other engines, whose numbers mean nothing here.
    pub fn own(&self, handle: &Handle) -> Result<u64> {
        if Arc::ptr_eq(&handle.dropped, &self.dropped) {
            return Ok(handle.id);
        }
        Err(EngineError::usage(
            "a value of another engine was used: store it, or open it and put it in as a clear value",
        ))
    }

    /// Puts in a value that is there already.
    pub fn insert(&mut self, value: Value<E>, kind: Kind, size: usize) -> Handle {
        self.collect_dropped();
        let id = self.next_id;
        self.next_id += 1;
        self.nodes.insert(
            id,
            Node {
                value: Some(Arc::new(value)),
                waiting: None,
                consumers: Vec::new(),
                uses: 0,
                held: true,
            },
        );
        Handle {
            id,
            kind,
            size,
            dropped: Arc::clone(&self.dropped),
        }
    }

    /// After an error what was queued is lost, and streams in common with other parties may be out of step: only the first
    /// error is reported from then on. After a failed check in any engine of the session nothing works any more.
    pub fn refuse_after_failure(&self) -> Result<()> {
        self.guard.refuse()?;
        match &self.failed {
            None => Ok(()),
            Some(first) => Err(EngineError::usage(format!(
                "this computation failed before: {first}"
            ))),
        }
    }

    /// Every error of a round, a batch of correlated randomness or a check comes by here.
    pub fn note_failure<T>(&mut self, result: Result<T>) -> Result<T> {
        let result = result.map_err(|error| self.guard.judge(error));
        if let Err(error) = &result {
            self.guard.broke_off(error);
            self.failed.get_or_insert_with(|| error.to_string());
        }
        result
    }

    /// A node that waits for others, or others for it, is there.
    fn node(&mut self, id: u64) -> Result<&mut Node<P, E>> {
        self.nodes.get_mut(&id).ok_or_else(out_of_step)
    }

    fn operands(&self, inputs: &[u64]) -> Result<Inputs<E>> {
        inputs
            .iter()
            .map(|i| self.nodes.get(i).and_then(|n| n.value.clone()))
            .collect::<Option<_>>()
            .ok_or_else(out_of_step)
    }

    fn start(&mut self, protocol: &mut P, id: u64, operands: Inputs<E>) -> Result<()> {
        let mut work = vec![(id, operands)];
        while let Some((id, operands)) = work.pop() {
            let waiting = self.node(id)?.waiting.take().ok_or_else(out_of_step)?;
            match waiting.op {
                Op::Local(f) => {
                    let value = f(protocol, operands)?;
                    work.extend(self.complete(id, value)?);
                }
                Op::Comm(f) => {
                    let send = f(protocol, operands)?;
                    self.queue.push(Task {
                        id,
                        number: waiting.number,
                        turn: protocol.take_turn(),
                        send,
                    });
                }
            }
        }
        Ok(())
    }

    /// Stores a result; returns what can start now, in reverse order of creation.
    fn complete(&mut self, id: u64, value: Value<E>) -> Result<Vec<(u64, Inputs<E>)>> {
        let node = self.node(id)?;
        node.value = Some(Arc::new(value));
        let consumers = std::mem::take(&mut node.consumers);
        let mut started = Vec::new();
        for consumer in consumers {
            let node = self.node(consumer)?;
            let waiting = node.waiting.as_mut().ok_or_else(out_of_step)?;
            waiting.missing = one_less(waiting.missing)?;
            if waiting.missing == 0 {
                let inputs = waiting.inputs.clone();
                started.push((consumer, self.operands(&inputs)?));
                for input in inputs {
                    let node = self.node(input)?;
                    node.uses = one_less(node.uses)?;
                    if input != id {
                        self.remove_garbage(input);
                    }
                }
            }
        }
        self.remove_garbage(id);
        started.reverse();
        Ok(started)
    }

    /// From now on messages are only for parties that called this with the same digest.
    pub fn bind(&mut self, digest: u64) {
        self.schedule = mix(self.schedule, digest);
    }

    /// True when so much waits that a round should run now.
    pub fn crowded(&self) -> bool {
        self.pending_elements > PENDING_LIMIT
    }
}
