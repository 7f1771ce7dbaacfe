//! How a recording is made.

use std::collections::{HashMap, HashSet};

use super::play::{Planned, Recording};
use super::step::{NumbersId, SharesId, Slot, Step, ValueId};
use crate::engine::{Engine, Operands, Operation};
use crate::error::{EngineError, Result};
use crate::graph::Handle;
use crate::value::Kind;

/// A slot of a recording, while it is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Fresh,
    Constant,
    Made,
    GivenUp,
}

/// The slots of one kind, with the constants in them.
struct Table<T> {
    states: Vec<State>,
    constants: Vec<Option<T>>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            states: Vec::new(),
            constants: Vec::new(),
        }
    }
}

impl<T> Table<T> {
    fn add(&mut self, constant: Option<T>) -> usize {
        self.states.push(match constant {
            Some(_) => State::Constant,
            None => State::Fresh,
        });
        self.constants.push(constant);
        self.states.len() - 1
    }
}

/// Steps of the longest recording.
pub const MOST_STEPS: usize = 8192;
/// Most bytes of constants in a recording.
pub const MOST_CONSTANTS: usize = 1 << 20;
/// Most elements of all vectors that a recorded run makes: in larger runs the calls take a small part of the time.
pub const MOST_ELEMENTS: usize = 1 << 22;

/// Takes the steps of a run, one at each call. A call that has no step ends the recording ([`Recorder::fail`]), and the run continues.
#[derive(Default)]
pub struct Recorder {
    values: Table<Handle>,
    numbers: Table<Vec<i64>>,
    shares: Table<Vec<u8>>,
    steps: Vec<Step>,
    /// Slots of vectors of the engine, by the numbers of their handles.
    slots: HashMap<u64, ValueId>,
    /// Handles of clear vectors that are the same in every run. The recording has those that a step uses.
    constants: HashSet<u64>,
    constant_bytes: usize,
    elements: usize,
    failure: Option<String>,
}

impl Recorder {
    /// A recorder that has taken nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The first reason why the run is not recorded.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Ends the recording with a reason.
    pub fn fail(&mut self, why: impl Into<String>) {
        if self.failure.is_none() {
            *self = Self {
                failure: Some(why.into()),
                ..Self::default()
            };
        }
    }

    /// A slot for a vector that the next step makes.
    pub fn value(&mut self) -> ValueId {
        ValueId(self.values.add(None))
    }

    /// A slot for numbers that the next step makes.
    pub fn numbers(&mut self) -> NumbersId {
        NumbersId(self.numbers.add(None))
    }

    /// A slot for raw shares that the next step makes.
    pub fn shares(&mut self) -> SharesId {
        SharesId(self.shares.add(None))
    }

    /// Notes that a clear vector of the engine is the same in every run.
    pub fn note_constant(&mut self, value: &Handle) {
        self.constants.insert(value.id);
    }

    fn count_constant(&mut self, bytes: usize) -> Result<()> {
        self.constant_bytes += bytes;
        if self.constant_bytes <= MOST_CONSTANTS {
            return Ok(());
        }
        Err(EngineError::usage(format!(
            "more than {MOST_CONSTANTS} bytes of constants"
        )))
    }

    /// A vector that is the same in every run: a copy of a clear one of this engine, on which the recording is played.
    ///
    /// # Errors
    /// [`EngineError::Usage`] for a vector that is not clear: a recording holds no secrets. The same for more than [`MOST_CONSTANTS`] bytes.
    pub fn constant_value(&mut self, engine: &mut dyn Engine, value: &Handle) -> Result<ValueId> {
        if !matches!(value.kind(), Kind::Clear | Kind::ClearBits) {
            return Err(EngineError::usage("a recording holds clear vectors alone"));
        }
        self.count_constant(16 * value.size())?;
        let copy = engine.slice(value, 0, 1, value.size())?;
        Ok(ValueId(self.values.add(Some(copy))))
    }

    /// Numbers that are the same in every run.
    ///
    /// # Errors
    /// [`EngineError::Usage`] for more than [`MOST_CONSTANTS`] bytes.
    pub fn constant_numbers(&mut self, numbers: Vec<i64>) -> Result<NumbersId> {
        self.count_constant(8 * numbers.len())?;
        Ok(NumbersId(self.numbers.add(Some(numbers))))
    }

    /// Raw shares that are the same in every run.
    ///
    /// # Errors
    /// [`EngineError::Usage`] for shares of anything but zeros: a recording holds no secrets. The same for more than [`MOST_CONSTANTS`] bytes.
    pub fn constant_shares(&mut self, shares: Vec<u8>) -> Result<SharesId> {
        if shares.iter().any(|byte| *byte != 0) {
            return Err(EngineError::usage("a recording holds no shares of secrets"));
        }
        self.count_constant(shares.len())?;
        Ok(SharesId(self.shares.add(Some(shares))))
    }

    /// Does an operation, and takes it as a step. `recorded`: for each vector of numbers its slot, or `None` if it is the same in every run.
    ///
    /// # Errors
    /// Those of [`Engine::apply`].
    pub fn apply(
        &mut self,
        engine: &mut dyn Engine,
        operation: &Operation,
        operands: Operands<'_>,
        recorded: &[Option<NumbersId>],
    ) -> Result<Vec<Handle>> {
        if self.failure.is_some() {
            return engine.apply(operation, operands);
        }
        let of_constants = recorded.iter().all(Option::is_none);
        if of_constants && matches!(operation, Operation::Clear | Operation::ClearBits) {
            let made = engine.apply(operation, operands)?;
            made.iter().for_each(|value| self.note_constant(value));
            return Ok(made);
        }
        let mut handles = operands
            .target
            .iter()
            .chain(operands.values.iter().copied());
        let fails_always = of_constants && handles.all(|h| self.constants.contains(&h.id));
        let named = self.operands(engine, operation, &operands, recorded);
        let made = match engine.apply(operation, operands) {
            Ok(made) => made,
            Err(error) => {
                // What fails in every run needs no step.
                if !fails_always {
                    self.fail(format!("{operation:?} failed"));
                }
                return Err(error);
            }
        };
        match named {
            Ok((target, values, numbers)) => {
                let out = made.iter().map(|value| self.result(value)).collect();
                self.note(Step::Apply {
                    operation: operation.clone(),
                    target,
                    values,
                    numbers,
                    out,
                });
            }
            Err(problem) => self.fail(format!("{operation:?} takes {problem}")),
        }
        Ok(made)
    }

    /// The slots of operands.
    fn operands(
        &mut self,
        engine: &mut dyn Engine,
        operation: &Operation,
        operands: &Operands<'_>,
        recorded: &[Option<NumbersId>],
    ) -> Result<(Option<ValueId>, Vec<ValueId>, Vec<NumbersId>)> {
        if recorded.len() != operands.numbers.len() {
            return Err(EngineError::usage("a slot is missing for some numbers"));
        }
        let target = operands.target.as_ref();
        let target = target.map(|a| self.slot_of(engine, a)).transpose()?;
        let values = operands.values.iter().map(|a| self.slot_of(engine, a));
        let values = values.collect::<Result<_>>()?;
        let numbers = operands.numbers.iter().zip(recorded);
        let numbers = numbers.map(|(words, slot)| match slot {
            Some(id) => Ok(*id),
            None if operation.takes_private() => {
                Err(EngineError::usage("private words that were no input"))
            }
            None => self.constant_numbers(words.to_vec()),
        });
        Ok((target, values, numbers.collect::<Result<_>>()?))
    }

    /// The slot of a vector. A constant is copied into the recording when a step first uses it.
    fn slot_of(&mut self, engine: &mut dyn Engine, value: &Handle) -> Result<ValueId> {
        if let Some(id) = self.slots.get(&value.id) {
            return Ok(*id);
        }
        if !self.constants.contains(&value.id) {
            return Err(EngineError::usage("a vector that came from elsewhere"));
        }
        let id = self.constant_value(engine, value)?;
        self.slots.insert(value.id, id);
        Ok(id)
    }

    /// A slot for a vector that the run has made.
    fn result(&mut self, value: &Handle) -> ValueId {
        let id = self.value();
        self.elements += value.size();
        self.slots.insert(value.id, id);
        id
    }

    /// Imports shares: `recorded` has their slot, or `None` if they are the same in every run.
    ///
    /// # Errors
    /// Those of [`Engine::import`].
    pub fn import(
        &mut self,
        engine: &mut dyn Engine,
        data: &[u8],
        count: usize,
        recorded: Option<SharesId>,
    ) -> Result<Handle> {
        if self.failure.is_some() {
            return engine.import(data, count);
        }
        let shares = match recorded {
            Some(id) => Ok(id),
            None => self.constant_shares(data.to_vec()),
        };
        let made = engine.import(data, count);
        match (&made, shares) {
            (Ok(value), Ok(shares)) => {
                let out = self.result(value);
                self.note(Step::Import { shares, count, out });
            }
            (Ok(_), Err(problem)) => self.fail(format!("an import takes {problem}")),
            (Err(_), _) if recorded.is_some() => self.fail("an import failed"),
            (Err(_), _) => (),
        }
        made
    }

    /// Reads a vector: what `read` gives, and the slot of the numbers.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn read<T>(
        &mut self,
        engine: &mut dyn Engine,
        a: &Handle,
        read: impl FnOnce(&mut dyn Engine, &Handle) -> Result<T>,
    ) -> Result<(T, NumbersId)> {
        let out = self.numbers();
        match read(engine, a) {
            Ok(words) => {
                let bits = a.kind() == Kind::ClearBits;
                self.note_value(engine, a, |a| match bits {
                    true => Step::ReadBits { a, out },
                    false => Step::Read { a, out },
                });
                Ok((words, out))
            }
            Err(error) => {
                if !self.constants.contains(&a.id) {
                    self.fail("a reading failed");
                }
                Err(error)
            }
        }
    }

    /// Takes a step that stores shares, which the run has done.
    pub fn store(&mut self, engine: &mut dyn Engine, a: &Handle) {
        self.note_value(engine, a, |a| Step::Store { a });
    }

    fn note_value(
        &mut self,
        engine: &mut dyn Engine,
        a: &Handle,
        step: impl FnOnce(ValueId) -> Step,
    ) {
        match self.slot_of(engine, a) {
            Ok(a) => self.note(step(a)),
            Err(problem) => self.fail(format!("a step takes {problem}")),
        }
    }

    /// Takes a step; a step that is refused ends the recording.
    pub fn note(&mut self, step: Step) {
        if self.failure.is_some() {
            return;
        }
        if self.steps.len() == MOST_STEPS {
            self.fail(format!("more than {MOST_STEPS} calls"));
        } else if self.elements > MOST_ELEMENTS {
            self.fail(format!("more than {MOST_ELEMENTS} elements in all"));
        } else if let Err(problem) = self.push(step) {
            self.fail(format!("a step was refused: {problem}"));
        }
    }

    fn state(&mut self, slot: Slot) -> Result<&mut State> {
        let state = match slot {
            Slot::Value(id) => self.values.states.get_mut(id.0),
            Slot::Numbers(id) => self.numbers.states.get_mut(id.0),
            Slot::Shares(id) => self.shares.states.get_mut(id.0),
        };
        state
            .ok_or_else(|| EngineError::usage("a recorded step names what is not of its recording"))
    }

    /// Takes a step.
    ///
    /// # Errors
    /// [`EngineError::Usage`] if an operand was not made by an earlier step or was given up, if a constant would be given up, or if a result
    /// is there already.
    pub fn push(&mut self, step: Step) -> Result<()> {
        let operands = step.operands();
        for slot in &operands {
            if !matches!(self.state(*slot)?, State::Constant | State::Made) {
                return Err(EngineError::usage(
                    "a recorded step takes what no earlier step has made, or what was given up",
                ));
            }
        }
        if let Some(target) = step.consumed() {
            let again = operands.iter().filter(|p| **p == target.into());
            if again.count() > 1 || *self.state(target.into())? == State::Constant {
                return Err(EngineError::usage(
                    "a recorded assignment changes a constant, or a vector to which it assigns itself",
                ));
            }
        }
        for slot in step.results() {
            let state = self.state(slot)?;
            if *state != State::Fresh {
                return Err(EngineError::usage(
                    "a recorded step makes what is there already",
                ));
            }
            *state = State::Made;
        }
        if let Some(target) = step.consumed() {
            *self.state(target.into())? = State::GivenUp;
        }
        self.steps.push(step);
        Ok(())
    }

    /// The recording of all steps so far; `None` after [`Recorder::fail`].
    pub fn finish(self) -> Option<Recording> {
        if self.failure.is_some() {
            return None;
        }
        let mut needed = HashSet::new();
        let mut steps = Vec::with_capacity(self.steps.len());
        for step in self.steps.into_iter().rev() {
            let mut frees = Vec::new();
            for slot in step.results().into_iter().chain(step.operands()) {
                if needed.insert(slot) {
                    frees.push(slot);
                }
            }
            steps.push(Planned { step, frees });
        }
        steps.reverse();
        Some(Recording {
            values: self.values.constants,
            numbers: self.numbers.constants,
            shares: self.shares.constants,
            steps,
        })
    }
}
