//! Rounds of the graph: exchanges of queued tasks, preprocessing before them, and checks.

use std::sync::Arc;
use std::time::Instant;

use keyquorum_math::Element;
use keyquorum_net::Transport;

use super::{Graph, Task, mix};
use crate::error::{EngineError, Result};
use crate::protocol::Party;
use crate::round::{Inbox, Outbox};
use crate::task::{SendFn, Step};
use crate::value::Value;

impl<P: Party, E: Element> Graph<P, E> {
    /// One exchange with everybody.
    fn exchange(&mut self, outbox: Outbox, net: &mut dyn Transport) -> Result<Inbox> {
        let tag = ((self.stats.rounds & 0xFFFF_FFFF) << 32) | (self.schedule & 0xFFFF_FFFF);
        // Also if it fails: some messages may have been sent.
        if net.parties() > 1 {
            self.stats.rounds += 1;
        }
        let (inbox, sent, received) = outbox.exchange(net, tag)?;
        self.stats.bytes_sent += sent;
        self.stats.bytes_received += received;
        Ok(inbox)
    }

    /// Runs a task in rounds of its own, counted apart from those of the computation.
    fn run_apart(
        &mut self,
        protocol: &mut P,
        net: &mut dyn Transport,
        task: SendFn<P, ()>,
    ) -> Result<()> {
        let (start, before) = (Instant::now(), self.stats);
        let mut next = Some(task);
        while let Some(task) = next {
            let mut outbox = Outbox::new(net.parties());
            let receive = task(protocol, &mut outbox)?;
            let mut inbox = self.exchange(outbox, net)?;
            next = match receive(protocol, &mut inbox)? {
                Step::Done(()) => None,
                Step::Next(task) => Some(task),
            };
        }
        let now = &mut self.stats;
        now.offline_rounds += now.rounds - before.rounds;
        now.offline_bytes_sent += now.bytes_sent - before.bytes_sent;
        now.offline_bytes_received += now.bytes_received - before.bytes_received;
        now.offline_nanoseconds += start.elapsed().as_nanos() as u64;
        Ok(())
    }

    /// Makes the correlated randomness that the tasks of this round have asked for. Rounds of its own, so that those of the
    /// computation do not depend on how much was made before.
    fn prepare(&mut self, protocol: &mut P, net: &mut dyn Transport) -> Result<()> {
        while let Some(task) = protocol.prepare()? {
            self.run_apart(protocol, net, task)?;
        }
        Ok(())
    }

    /// Makes the correlated randomness that was asked for, ahead of the round that needs it.
    pub fn preprocess(&mut self, protocol: &mut P, net: &mut dyn Transport) -> Result<()> {
        self.refuse_after_failure()?;
        let mut made = Ok(());
        while made.is_ok() {
            made = match protocol.preprocess() {
                Ok(Some(task)) => self.run_apart(protocol, net, task),
                Ok(None) => break,
                Err(error) => Err(error),
            };
        }
        self.note_failure(made)
    }

    /// Verifies everything that was opened so far, before a value is given to the caller; `reads`: the caller reads an opened value, for which
    /// [`Party::check_before_reading`] decides.
    pub fn verify(&mut self, protocol: &mut P, net: &mut dyn Transport, reads: bool) -> Result<()> {
        self.refuse_after_failure()?;
        let task = match reads {
            true => protocol.check_before_reading(),
            false => protocol.check(),
        };
        let Some(task) = task else {
            return Ok(());
        };
        let checked = self.run_apart(protocol, net, task);
        self.note_failure(checked)
    }

    /// The tasks of the next round. Openings wait if it takes inputs: a corrupted party could see what is opened before it sends its own input.
    fn next_tasks(&mut self) -> Result<Vec<Task<P, E>>> {
        let tasks = std::mem::take(&mut self.queue);
        if !tasks.iter().any(|task| task.turn.inputs) {
            return Ok(tasks);
        }
        if tasks.iter().any(|task| task.turn.inputs && task.turn.opens) {
            return Err(EngineError::internal(
                "an operation that takes inputs and opens values in one round",
            ));
        }
        let (later, now) = tasks.into_iter().partition(|task| task.turn.opens);
        self.queue = later;
        Ok(now)
    }

    fn run_round(&mut self, protocol: &mut P, net: &mut dyn Transport) -> Result<()> {
        let tasks = self.next_tasks()?;
        protocol.announce(tasks.iter().any(|task| task.turn.opens));
        self.prepare(protocol, net)?;
        self.pending_elements = 0;
        let mut outbox = Outbox::new(net.parties());
        let mut receivers = Vec::with_capacity(tasks.len());
        for Task {
            id, number, send, ..
        } in tasks
        {
            self.schedule = mix(self.schedule, number);
            receivers.push((id, number, send(protocol, &mut outbox)?));
        }
        let mut inbox = self.exchange(outbox, net)?;
        let mut finished = Vec::new();
        for (id, number, receive) in receivers {
            match receive(protocol, &mut inbox)? {
                Step::Done(value) => finished.push((id, value)),
                Step::Next(send) => self.queue.push(Task {
                    id,
                    number,
                    turn: protocol.take_turn(),
                    send,
                }),
            }
        }
        for (id, value) in finished {
            for (consumer, operands) in self.complete(id, value)?.into_iter().rev() {
                self.start(protocol, consumer, operands)?;
            }
        }
        Ok(())
    }

    /// Runs rounds until this value is there.
    pub fn force(
        &mut self,
        protocol: &mut P,
        net: &mut dyn Transport,
        id: u64,
    ) -> Result<Arc<Value<E>>> {
        self.collect_dropped();
        loop {
            let node = self
                .nodes
                .get(&id)
                .ok_or_else(|| EngineError::usage("a value that was given up was read"))?;
            if let Some(value) = &node.value {
                return Ok(Arc::clone(value));
            }
            self.refuse_after_failure()?;
            if self.queue.is_empty() {
                return Err(EngineError::usage(
                    "a value depends on an operation that failed before",
                ));
            }
            let round = self.run_round(protocol, net);
            self.note_failure(round)?;
        }
    }

    /// Runs rounds until nothing is queued.
    pub fn flush(&mut self, protocol: &mut P, net: &mut dyn Transport) -> Result<()> {
        self.collect_dropped();
        self.refuse_after_failure()?;
        while !self.queue.is_empty() {
            let round = self.run_round(protocol, net);
            self.note_failure(round)?;
        }
        Ok(())
    }
}
