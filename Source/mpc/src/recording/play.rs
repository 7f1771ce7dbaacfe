//! The interpreter of recorded programs.

use zeroize::Zeroizing;

use super::inputs::{Inputs, Stream};
use super::numbers::{self, Numbers};
use super::recorder::Recording;
use super::step::{Binary, NumbersId, Random, SharesId, Slot, Step, Unary, ValueId};
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::graph::Handle;

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

fn unary(engine: &mut dyn Engine, op: Unary, a: &Handle) -> Result<Handle> {
    match op {
        Unary::Neg => engine.neg(a),
        Unary::Not => engine.not(a),
        Unary::ClearLegendre => engine.clear_legendre(a),
        Unary::ClearInv => engine.clear_inv(a),
        Unary::Sum(length) => engine.sum(a, length),
        Unary::Slice { start, step, count } => engine.slice(a, start, step, count),
        Unary::Repeat(n) => engine.repeat(a, n),
        Unary::BitToArith => engine.bit_to_arith(a),
        Unary::Shuffle(unit) => engine.shuffle(a, unit),
        Unary::Open => engine.open(a),
        Unary::OpenLow(bits) => engine.open_low(a, bits),
        Unary::OpenMasked(bits) => engine.open_masked(a, bits),
        Unary::OpenTo(party) => engine.open_to(a, party),
    }
}

fn binary(engine: &mut dyn Engine, op: Binary, a: &Handle, b: &Handle) -> Result<Handle> {
    match op {
        Binary::Add => engine.add(a, b),
        Binary::Sub => engine.sub(a, b),
        Binary::Mul => engine.mul(a, b),
        Binary::Dot(length) => engine.dot(a, b, length),
        Binary::MatrixProduct(rows, inner, columns) => {
            engine.matrix_product(a, b, (rows, inner, columns))
        }
        Binary::Xor => engine.xor(a, b),
        Binary::And => engine.and(a, b),
        Binary::Clear(op) => engine.clear_op(op, a, b),
    }
}

fn random(engine: &mut dyn Engine, kind: Random, count: usize) -> Result<Handle> {
    match kind {
        Random::Elements => engine.random(count),
        Random::BitElements => engine.random_bit(count),
        Random::Bits => engine.random_bits(count),
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
                Step::Edabit { .. } | Step::SummandBits { .. } => {
                    rows(engine, &mut made, &planned.step)?;
                }
                Step::Load { .. } | Step::Pick { .. } => shares(inputs, &mut made, &planned.step)?,
                step => match number(engine, &mut made, &mut stream, step)? {
                    Some((out, numbers)) => put(&mut made.numbers, out.0, numbers)?,
                    None => {
                        let (out, handle) = vector(engine, &mut made, step)?;
                        put(&mut made.values, out.0, handle)?;
                    }
                },
            }
            for slot in &planned.frees {
                made.free(*slot);
            }
        }
        Ok(played)
    }
}

/// A step that makes several vectors.
fn rows(engine: &mut dyn Engine, made: &mut Made<'_>, step: &Step) -> Result<()> {
    match step {
        Step::Edabit {
            bits,
            count,
            out,
            rows,
        } => {
            let (number, found) = engine.edabit(*bits, *count)?;
            put(&mut made.values, out.0, number)?;
            fill(made, rows, found)
        }
        Step::SummandBits { a, bits, rows } => {
            let found = engine.summand_bits(made.value(*a)?, *bits)?;
            if found.len() != rows.len() {
                return Err(malformed());
            }
            rows.iter()
                .zip(found)
                .try_for_each(|(ids, handles)| fill(made, ids, handles))
        }
        _ => Err(malformed()),
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

/// A step that makes numbers; none for all others.
fn number(
    engine: &mut dyn Engine,
    made: &mut Made<'_>,
    stream: &mut Stream<'_>,
    step: &Step,
) -> Result<Option<(NumbersId, Numbers)>> {
    Ok(Some(match step {
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
        _ => return Ok(None),
    }))
}

/// A step that makes one vector.
fn vector(engine: &mut dyn Engine, made: &mut Made<'_>, step: &Step) -> Result<(ValueId, Handle)> {
    Ok(match step {
        Step::Unary { op, a, out } => (*out, unary(engine, *op, made.value(*a)?)?),
        Step::Binary { op, a, b, out } => {
            (*out, binary(engine, *op, made.value(*a)?, made.value(*b)?)?)
        }
        Step::Random { kind, count, out } => (*out, random(engine, *kind, *count)?),
        Step::Concat { parts, out } => (*out, engine.concat(&made.values(parts)?)?),
        Step::Gather { a, at, out } => (*out, engine.gather(made.value(*a)?, made.numbers(*at)?)?),
        Step::Assign {
            target,
            start,
            step,
            source,
            out,
        } => {
            let target = made.take(*target)?;
            let source = made.value(*source)?;
            (*out, engine.assign(target, *start, *step, source)?)
        }
        Step::Scatter {
            target,
            at,
            source,
            out,
        } => {
            let target = made.take(*target)?;
            let (at, source) = (made.numbers(*at)?, made.value(*source)?);
            (*out, engine.scatter(target, at, source)?)
        }
        Step::Circuit {
            circuit,
            inputs,
            size,
            copies,
            out,
        } => {
            let inputs = made.values(inputs)?;
            (*out, engine.circuit(circuit, &inputs, *size, *copies)?)
        }
        Step::Lookup {
            hot,
            at,
            table,
            bits,
            first,
            out,
        } => {
            let (at, table) = (made.numbers(*at)?, made.numbers(*table)?);
            let hot = made.value(*hot)?;
            (*out, engine.lookup(hot, at, table, *bits, *first)?)
        }
        Step::Clear { numbers, out } => (*out, engine.clear(made.numbers(*numbers)?)),
        Step::ClearBits { numbers, out } => {
            let bits = made.numbers(*numbers)?.iter().map(|n| *n as u8);
            (*out, engine.clear_bits(&bits.collect::<Vec<_>>()))
        }
        Step::Input {
            owner,
            count,
            numbers,
            out,
        } => {
            let words = numbers.map(|id| made.numbers(id)).transpose()?;
            (*out, engine.input(*owner, *count, words)?)
        }
        Step::Import { shares, count, out } => {
            (*out, engine.import(made.shares(*shares)?, *count)?)
        }
        _ => return Err(malformed()),
    })
}
