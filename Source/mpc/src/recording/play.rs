//! Recorded programs, and their interpreter.

use zeroize::Zeroizing;

use super::inputs::{Inputs, Stream};
use super::numbers::{self, Numbers};
use super::step::{NumbersId, SharesId, Slot, Step, ValueId};
use crate::engine::{Engine, Operands};
use crate::error::{EngineError, Result};
use crate::graph::Handle;
use crate::value::Kind;

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

/// One entry of the output of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Public numbers, of everybody or of one party.
    Public {
        /// Whose output; none: everybody's.
        party: Option<usize>,
        /// The numbers.
        words: Numbers,
    },
    /// Numbers that were revealed to us alone.
    Personal(Numbers),
}

/// The results of a run.
#[derive(Debug, Default)]
pub struct Played {
    /// Exported shares that go to the end of the share file, one after another.
    pub stored: Vec<Zeroizing<Vec<u8>>>,
    /// The output, in its order.
    pub outputs: Vec<Output>,
}

/// A step that its recorder should have refused.
fn malformed() -> EngineError {
    EngineError::internal("a recorded step takes a value that no step has made")
}

/// The results of the steps so far.
struct Made<'r> {
    recording: &'r Recording,
    values: Vec<Option<Handle>>,
    numbers: Vec<Option<Numbers>>,
    shares: Vec<Option<Zeroizing<Vec<u8>>>>,
}

fn none<T>(size: usize) -> Vec<Option<T>> {
    (0..size).map(|_| None).collect()
}

/// The constant of a slot that no step has filled.
fn constant<T>(constants: &[Option<T>], id: usize) -> Result<&T> {
    let found = constants.get(id).and_then(Option::as_ref);
    found.ok_or_else(malformed)
}

fn put<T>(made: &mut [Option<T>], id: usize, value: T) -> Result<()> {
    *made.get_mut(id).ok_or_else(malformed)? = Some(value);
    Ok(())
}

impl<'r> Made<'r> {
    fn new(recording: &'r Recording) -> Self {
        Self {
            recording,
            values: none(recording.values.len()),
            numbers: none(recording.numbers.len()),
            shares: none(recording.shares.len()),
        }
    }

    fn value(&self, id: ValueId) -> Result<&Handle> {
        match self.values.get(id.0) {
            Some(Some(value)) => Ok(value),
            _ => constant(&self.recording.values, id.0),
        }
    }

    fn values<'a>(&'a self, ids: &[ValueId]) -> Result<Vec<&'a Handle>> {
        ids.iter().map(|id| self.value(*id)).collect()
    }

    fn take(&mut self, id: ValueId) -> Result<Handle> {
        let slot = self.values.get_mut(id.0);
        slot.and_then(Option::take).ok_or_else(malformed)
    }

    fn numbers(&self, id: NumbersId) -> Result<&[i64]> {
        match self.numbers.get(id.0) {
            Some(Some(numbers)) => Ok(numbers),
            _ => constant(&self.recording.numbers, id.0).map(Vec::as_slice),
        }
    }

    fn shares(&self, id: SharesId) -> Result<&[u8]> {
        match self.shares.get(id.0) {
            Some(Some(shares)) => Ok(shares),
            _ => constant(&self.recording.shares, id.0).map(Vec::as_slice),
        }
    }

    fn free(&mut self, slot: Slot) {
        match slot {
            Slot::Value(id) => drop(self.values.get_mut(id.0).map(Option::take)),
            Slot::Numbers(id) => drop(self.numbers.get_mut(id.0).map(Option::take)),
            Slot::Shares(id) => drop(self.shares.get_mut(id.0).map(Option::take)),
        }
    }
}

fn fill(made: &mut Made<'_>, ids: &[ValueId], handles: Vec<Handle>) -> Result<()> {
    if ids.len() != handles.len() {
        return Err(malformed());
    }
    ids.iter()
        .zip(handles)
        .try_for_each(|(id, handle)| put(&mut made.values, id.0, handle))
}

impl Recording {
    /// Does the steps on the engine on which they were recorded, with the input of a run. `print` takes the texts when their steps come.
    ///
    /// # Errors
    /// Those of the engine and of `print`; [`EngineError::Usage`] if the share file or the input is shorter than that of the recorded run,
    /// or if public numbers are no indices of the vector that they address.
    pub fn play(
        &self,
        engine: &mut dyn Engine,
        inputs: &Inputs<'_>,
        print: &mut dyn FnMut(&str) -> Result<()>,
    ) -> Result<Played> {
        let (mut made, mut played) = (Made::new(self), Played::default());
        let mut stream = Stream::new(inputs);
        for planned in &self.steps {
            match &planned.step {
                Step::Flush => engine.flush()?,
                Step::Store { a } => {
                    let shares = engine.export(made.value(*a)?)?;
                    played.stored.push(Zeroizing::new(shares));
                }
                Step::Output { numbers, party } => played.outputs.push(Output::Public {
                    party: *party,
                    words: Zeroizing::new(made.numbers(*numbers)?.to_vec()),
                }),
                Step::OutputPersonal { numbers } => {
                    let words = Zeroizing::new(made.numbers(*numbers)?.to_vec());
                    played.outputs.push(Output::Personal(words));
                }
                Step::Print(text) => print(text)?,
                Step::InRange { a, length } => numbers::in_range(made.numbers(*a)?, *length)?,
                Step::Apply {
                    operation,
                    target,
                    values,
                    numbers,
                    out,
                } => {
                    let target = target.map(|id| made.take(id)).transpose()?;
                    let numbers = numbers.iter().map(|id| made.numbers(*id));
                    let operands = Operands {
                        target,
                        values: &made.values(values)?,
                        numbers: &numbers.collect::<Result<Vec<_>>>()?,
                    };
                    let found = engine.apply(operation, operands)?;
                    fill(&mut made, out, found)?;
                }
                Step::Import { shares, count, out } => {
                    let handle = engine.import(made.shares(*shares)?, *count)?;
                    put(&mut made.values, out.0, handle)?;
                }
                Step::Load { .. } | Step::Pick { .. } => shares(inputs, &mut made, &planned.step)?,
                step => {
                    let (out, numbers) = number(engine, &made, &mut stream, step)?;
                    put(&mut made.numbers, out.0, numbers)?;
                }
            }
            for slot in &planned.frees {
                made.free(*slot);
            }
        }
        Ok(played)
    }
}

/// A step that takes shares from the share file.
fn shares(inputs: &Inputs<'_>, made: &mut Made<'_>, step: &Step) -> Result<()> {
    let (out, taken) = match step {
        Step::Load { start, count, out } => (out, inputs.shares(&[*start], *count)?),
        Step::Pick { start, at, out } => {
            let outside =
                || EngineError::usage("a recorded program picks a share before the first");
            let offsets = made.numbers(*at)?.iter().map(|i| {
                let index = usize::try_from(*i).ok();
                index.and_then(|i| start.checked_add(i)).ok_or_else(outside)
            });
            let offsets: Vec<usize> = offsets.collect::<Result<_>>()?;
            (out, inputs.shares(&offsets, 1)?)
        }
        _ => return Err(malformed()),
    };
    put(&mut made.shares, out.0, taken)
}

/// A step that makes numbers.
fn number(
    engine: &mut dyn Engine,
    made: &Made<'_>,
    stream: &mut Stream<'_>,
    step: &Step,
) -> Result<(NumbersId, Numbers)> {
    Ok(match step {
        Step::Numbers { op, a, b, out } => (*out, op.apply(made.numbers(*a)?, made.numbers(*b)?)?),
        Step::Read { a, out } => {
            let words = engine.read(made.value(*a)?)?;
            let words = words.into_iter().map(|word| word as i64).collect();
            (*out, Zeroizing::new(words))
        }
        Step::ReadBits { a, out } => {
            let bits = engine.read_bits(made.value(*a)?)?;
            let bits = bits.into_iter().map(i64::from).collect();
            (*out, Zeroizing::new(bits))
        }
        Step::TakePublic { count, out } => (*out, stream.take_public(*count)?),
        Step::TakePrivate { count, out } => (*out, stream.take_private(*count)?),
        Step::Choose {
            condition,
            a,
            b,
            out,
        } => {
            let condition = made.numbers(*condition)?;
            let chosen = numbers::choose(condition, made.numbers(*a)?, made.numbers(*b)?)?;
            (*out, chosen)
        }
        Step::Part {
            a,
            start,
            step,
            count,
            out,
        } => (
            *out,
            numbers::part(made.numbers(*a)?, *start, *step, *count)?,
        ),
        Step::Join { parts, out } => {
            let mut joined = Zeroizing::new(Vec::new());
            for part in parts {
                joined.extend_from_slice(made.numbers(*part)?);
            }
            (*out, joined)
        }
        _ => return Err(malformed()),
    })
}
