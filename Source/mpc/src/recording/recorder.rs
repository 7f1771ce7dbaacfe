//! How a recording is made.

use std::collections::HashSet;

use super::step::{NumbersId, SharesId, Slot, Step, ValueId};
use crate::engine::Engine;
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

/// Takes the steps of a run, one at each call.
#[derive(Default)]
pub struct Recorder {
    values: Table<Handle>,
    numbers: Table<Vec<i64>>,
    shares: Table<Vec<u8>>,
    steps: Vec<Step>,
}

impl Recorder {
    /// A recorder that has taken nothing.
    pub fn new() -> Self {
        Self::default()
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

    /// A vector that is the same in every run: a copy of a clear one of this engine, on which the recording is played.
    ///
    /// # Errors
    /// [`EngineError::Usage`] for a vector that is not clear: a recording holds no secrets.
    pub fn constant_value(&mut self, engine: &mut dyn Engine, value: &Handle) -> Result<ValueId> {
        if !matches!(value.kind(), Kind::Clear | Kind::ClearBits) {
            return Err(EngineError::usage("a recording holds clear vectors alone"));
        }
        let copy = engine.slice(value, 0, 1, value.size())?;
        Ok(ValueId(self.values.add(Some(copy))))
    }

    /// Numbers that are the same in every run.
    pub fn constant_numbers(&mut self, numbers: Vec<i64>) -> NumbersId {
        NumbersId(self.numbers.add(Some(numbers)))
    }

    /// Raw shares that are the same in every run.
    ///
    /// # Errors
    /// [`EngineError::Usage`] for shares of anything but zeros: a recording holds no secrets.
    pub fn constant_shares(&mut self, shares: Vec<u8>) -> Result<SharesId> {
        if shares.iter().any(|byte| *byte != 0) {
            return Err(EngineError::usage("a recording holds no shares of secrets"));
        }
        Ok(SharesId(self.shares.add(Some(shares))))
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

    /// The recording of all steps so far.
    pub fn finish(self) -> Recording {
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
        Recording {
            values: self.values.constants,
            numbers: self.numbers.constants,
            shares: self.shares.constants,
            steps,
        }
    }
}

/// A step, and the slots that no later one needs.
pub(super) struct Planned {
    pub(super) step: Step,
    pub(super) frees: Vec<Slot>,
}

/// A recorded program, with its constants in their slots. It is played on the engine on which it was recorded.
pub struct Recording {
    pub(super) values: Vec<Option<Handle>>,
    pub(super) numbers: Vec<Option<Vec<i64>>>,
    pub(super) shares: Vec<Option<Vec<u8>>>,
    pub(super) steps: Vec<Planned>,
}

impl Recording {
    /// The steps, in their order.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().map(|planned| &planned.step)
    }

    /// The constants: vectors as they are read from the engine, numbers, and raw shares. All that a recording holds besides its steps.
    ///
    /// # Errors
    /// Those of [`Engine::read_wide`].
    pub fn constants(&self, engine: &mut dyn Engine) -> Result<Vec<Vec<i128>>> {
        let values = self.values.iter().flatten().map(|handle| {
            Ok(match handle.kind() {
                Kind::ClearBits => engine
                    .read_bits(handle)?
                    .into_iter()
                    .map(i128::from)
                    .collect(),
                _ => engine
                    .read_wide(handle)?
                    .into_iter()
                    .map(|w| w as i128)
                    .collect(),
            })
        });
        let numbers = self.numbers.iter().flatten();
        let shares = self.shares.iter().flatten();
        values
            .chain(numbers.map(|list| Ok(list.iter().map(|n| i128::from(*n)).collect())))
            .chain(shares.map(|list| Ok(list.iter().map(|b| i128::from(*b)).collect())))
            .collect()
    }

    /// Whether a step has to do with the share file.
    pub fn uses_shares(&self) -> bool {
        let of_shares = |step: &Step| {
            matches!(
                step,
                Step::Load { .. } | Step::Pick { .. } | Step::Store { .. }
            )
        };
        self.steps().any(of_shares)
    }

    /// Whether a step prints.
    pub fn prints(&self) -> bool {
        self.steps().any(|step| matches!(step, Step::Print(_)))
    }
}
