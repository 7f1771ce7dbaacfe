//! Recorded steps of a program that are done one after another without Python in between.

use std::collections::HashSet;

use keyquorum_mpc::{ClearOp, EngineError, Handle};
use numpy::ndarray::Array2;
use numpy::{PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use zeroize::Zeroizing;

use crate::engine::{Engine, Value};
use crate::errors::usage;
use crate::inputs::{Inputs, Section, malformed};

/// What a step does, with operands in slots and public numbers.
#[derive(Clone, Copy)]
enum Op {
    Add,
    Sub,
    Mul,
    Neg,
    Dot,
    MatrixProduct,
    Sum,
    Slice,
    Gather,
    Concat,
    Repeat,
    Assign,
    BitToArith,
    Random,
    RandomBit,
    RandomBits,
    /// Random numbers, and the rows of their bits.
    Edabit,
    /// Rows of bits of each summand.
    SummandBits,
    /// One of these rows.
    Take,
    Open,
    OpenLow,
    OpenTo,
    Xor,
    And,
    Not,
    Clear,
    ClearBits,
    ClearOp(ClearOp),
    Import,
    Read,
    ReadBits,
    Flush,
    /// Stored shares `[start, start + count)`, as they are imported.
    Load,
    /// Stored shares at `start +` the numbers of a slot.
    Pick,
    /// Shares to the end of the share file.
    Store,
    /// The next public words.
    Public,
    /// Our next private words.
    Private,
    /// Shares of private words of a party.
    Input,
    /// Public words to the output, of one player or of all.
    Output,
    /// Words revealed to us alone to the output.
    OutputPersonal,
    IntAdd,
    IntSub,
    IntMul,
    IntShl,
    IntShr,
    IntAnd,
    /// Of unsigned words.
    WordShr,
    /// The same numbers.
    IntCopy,
    /// Refuses numbers that are no index of a vector of this length.
    InRange,
}

impl Op {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "add" => Self::Add,
            "sub" => Self::Sub,
            "mul" => Self::Mul,
            "neg" => Self::Neg,
            "dot" => Self::Dot,
            "matrix_product" => Self::MatrixProduct,
            "sum" => Self::Sum,
            "slice" => Self::Slice,
            "gather" => Self::Gather,
            "concat" => Self::Concat,
            "repeat" => Self::Repeat,
            "assign" => Self::Assign,
            "bit_to_arith" => Self::BitToArith,
            "random" => Self::Random,
            "random_bit" => Self::RandomBit,
            "random_bits" => Self::RandomBits,
            "summand_bits" => Self::SummandBits,
            "edabit" => Self::Edabit,
            "take" => Self::Take,
            "open" => Self::Open,
            "open_low" => Self::OpenLow,
            "open_to" => Self::OpenTo,
            "xor" => Self::Xor,
            "and_" => Self::And,
            "not_" => Self::Not,
            "clear" => Self::Clear,
            "clear_bits" => Self::ClearBits,
            "import_" => Self::Import,
            "read" => Self::Read,
            "read_bits" => Self::ReadBits,
            "flush" => Self::Flush,
            "load" => Self::Load,
            "pick" => Self::Pick,
            "store" => Self::Store,
            "public" => Self::Public,
            "private" => Self::Private,
            "input" => Self::Input,
            "output" => Self::Output,
            "output_personal" => Self::OutputPersonal,
            "int +" => Self::IntAdd,
            "int -" => Self::IntSub,
            "int *" => Self::IntMul,
            "int <<" => Self::IntShl,
            "int >>" => Self::IntShr,
            "int &" => Self::IntAnd,
            "word >>" => Self::WordShr,
            "int copy" => Self::IntCopy,
            "in_range" => Self::InRange,
            _ => {
                return crate::engine::clear_op_named(name.strip_prefix("clear ")?)
                    .map(Self::ClearOp);
            }
        })
    }
}

struct Step {
    op: Op,
    out: Option<usize>,
    slots: Vec<usize>,
    numbers: Vec<i64>,
    /// Slots that no later step uses.
    frees: Vec<usize>,
}

#[derive(FromPyObject)]
enum Constant {
    Value(Py<Value>),
    Ints(Vec<i64>),
}

enum Slot {
    Empty,
    Value(Handle),
    Rows(Vec<Vec<Option<Handle>>>),
    Ints(Zeroizing<Vec<i64>>),
    Bytes(Zeroizing<Vec<u8>>),
}

/// Steps of a recorded run: what a tape does without Python.
#[pyclass(module = "keyquorum._engine", frozen)]
pub struct Script {
    constants: Vec<Constant>,
    steps: Vec<Step>,
    size: usize,
}

type Described = (String, i64, Vec<usize>, Vec<i64>, Vec<usize>);
/// Shares, `[components, words]`.
type Stored<'py> = Bound<'py, PyArray2<u64>>;
type Output<'py> = (Option<i64>, bool, Bound<'py, PyArray1<i64>>);

#[pymethods]
impl Script {
    /// ``constants``: values and lists of numbers in the first slots; ``steps``: (operation, slot of the result or -1, slots of the operands,
    /// numbers, slots that are not needed any more).
    #[new]
    fn new(constants: Vec<Constant>, steps: Vec<Described>) -> PyResult<Self> {
        let mut values = HashSet::new();
        for constant in &constants {
            if let Constant::Value(value) = constant
                && !values.insert(value.as_ptr())
            {
                return Err(usage("a value stands twice among the constants"));
            }
        }
        let mut size = constants.len();
        let steps = steps
            .into_iter()
            .map(|(name, out, slots, numbers, frees)| {
                let op = Op::named(&name)
                    .ok_or_else(|| usage(format!("{name:?} cannot be done without Python")))?;
                let out = usize::try_from(out).ok();
                size = slots
                    .iter()
                    .chain(&out)
                    .fold(size, |size, slot| size.max(slot + 1));
                Ok(Step {
                    op,
                    out,
                    slots,
                    numbers,
                    frees,
                })
            })
            .collect::<PyResult<_>>()?;
        Ok(Self {
            constants,
            steps,
            size,
        })
    }

    fn __len__(&self) -> usize {
        self.steps.len()
    }

    /// Does the steps. ``sections``: parts of the share file, [components, words]; ``width``: words of a component of a share; ``public``,
    /// ``private``: the input. Returns the shares that go to the end of the share file, and the output: (player or None, whether it was
    /// revealed to us alone, words).
    fn play<'py>(
        &self,
        py: Python<'py>,
        engine: &Engine,
        sections: Vec<Section<'py>>,
        width: usize,
        public: Vec<PyReadonlyArray1<'py, i64>>,
        private: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<(Vec<Stored<'py>>, Vec<Output<'py>>)> {
        let mut inputs = Inputs::new(sections, width, public, private);
        let guards = self
            .constants
            .iter()
            .map(|constant| match constant {
                Constant::Value(value) => value.get().guard().map(Some),
                Constant::Ints(_) => Ok(None),
            })
            .collect::<PyResult<Vec<_>>>()?;
        let mut slots: Vec<Slot> = (0..self.size).map(|_| Slot::Empty).collect();
        let (mut stored, mut output) = (Vec::new(), Vec::new());
        for step in &self.steps {
            let value = |i: usize| -> PyResult<&Handle> {
                let slot = *step.slots.get(i).ok_or_else(malformed)?;
                match (slots.get(slot), guards.get(slot)) {
                    (Some(Slot::Value(handle)), _) => Ok(handle),
                    (_, Some(Some(guard))) => guard.as_ref().ok_or_else(malformed),
                    _ => Err(malformed()),
                }
            };
            let ints = |i: usize| -> PyResult<&[i64]> {
                let slot = *step.slots.get(i).ok_or_else(malformed)?;
                match (slots.get(slot), self.constants.get(slot)) {
                    (Some(Slot::Ints(numbers)), _) => Ok(numbers),
                    (_, Some(Constant::Ints(numbers))) => Ok(numbers),
                    _ => Err(malformed()),
                }
            };
            let number = |i: usize| step.numbers.get(i).copied().ok_or_else(malformed);
            let count =
                |i: usize| number(i).and_then(|n| usize::try_from(n).map_err(|_| malformed()));
            let elementwise = |f: fn(i64, i64) -> i64| -> PyResult<Slot> {
                let (a, b) = (ints(0)?, ints(1)?);
                Ok(numbers(match (a, b) {
                    (a, [b]) => a.iter().map(|a| f(*a, *b)).collect(),
                    ([a], b) => b.iter().map(|b| f(*a, *b)).collect(),
                    (a, b) if a.len() == b.len() => {
                        a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect()
                    }
                    _ => return Err(malformed()),
                }))
            };
            let made = match step.op {
                Op::Add => two(engine, value(0)?, value(1)?, |e, a, b| e.add(a, b))?,
                Op::Sub => two(engine, value(0)?, value(1)?, |e, a, b| e.sub(a, b))?,
                Op::Mul => two(engine, value(0)?, value(1)?, |e, a, b| e.mul(a, b))?,
                Op::Xor => two(engine, value(0)?, value(1)?, |e, a, b| e.xor(a, b))?,
                Op::And => two(engine, value(0)?, value(1)?, |e, a, b| e.and(a, b))?,
                Op::ClearOp(op) => {
                    two(engine, value(0)?, value(1)?, |e, a, b| e.clear_op(op, a, b))?
                }
                Op::Dot => {
                    let length = count(0)?;
                    two(engine, value(0)?, value(1)?, |e, a, b| e.dot(a, b, length))?
                }
                Op::MatrixProduct => {
                    let shape = (count(0)?, count(1)?, count(2)?);
                    two(engine, value(0)?, value(1)?, |e, a, b| {
                        e.matrix_product(a, b, shape)
                    })?
                }
                Op::Neg => one(engine, value(0)?, |e, a| e.neg(a))?,
                Op::Not => one(engine, value(0)?, |e, a| e.not(a))?,
                Op::Sum => {
                    let length = count(0)?;
                    one(engine, value(0)?, |e, a| e.sum(a, length))?
                }
                Op::Slice => {
                    let (start, by, n) = (number(0)?, number(1)?, count(2)?);
                    one(engine, value(0)?, |e, a| e.slice(a, start, by, n))?
                }
                Op::Gather => {
                    let at = ints(1)?;
                    one(engine, value(0)?, |e, a| e.gather(a, at))?
                }
                Op::Repeat => {
                    let n = count(0)?;
                    one(engine, value(0)?, |e, a| e.repeat(a, n))?
                }
                Op::Concat => {
                    let list = (0..step.slots.len())
                        .map(value)
                        .collect::<PyResult<Vec<_>>>()?;
                    Slot::Value(engine.at_once(|e| e.concat(&list))?)
                }
                Op::Assign => {
                    let (start, by) = (number(0)?, number(1)?);
                    let first = *step.slots.first().ok_or_else(malformed)?;
                    let Some(Slot::Value(target)) = slots
                        .get_mut(first)
                        .map(|slot| std::mem::replace(slot, Slot::Empty))
                    else {
                        return Err(malformed());
                    };
                    let source = match step
                        .slots
                        .get(1)
                        .and_then(|s| slots.get(*s).map(|v| (s, v)))
                    {
                        Some((_, Slot::Value(handle))) => handle,
                        Some((s, _)) => match guards.get(*s) {
                            Some(Some(guard)) => guard.as_ref().ok_or_else(malformed)?,
                            _ => return Err(malformed()),
                        },
                        None => return Err(malformed()),
                    };
                    Slot::Value(engine.at_once(|e| e.assign(target, start, by, source))?)
                }
                Op::BitToArith => one(engine, value(0)?, |e, a| e.bit_to_arith(a))?,
                Op::Random | Op::RandomBit | Op::RandomBits => {
                    let n = count(0)?;
                    Slot::Value(engine.at_once(|e| match step.op {
                        Op::Random => e.random(n),
                        Op::RandomBit => e.random_bit(n),
                        _ => e.random_bits(n),
                    })?)
                }
                Op::SummandBits => {
                    let (handle, bits) = (value(0)?, count(0)?);
                    let rows = engine.run(py, |e| e.summand_bits(handle, bits))?;
                    let kept = |row: Vec<Handle>| row.into_iter().map(Some).collect();
                    Slot::Rows(rows.into_iter().map(kept).collect())
                }
                Op::Edabit => {
                    let (bits, n) = (count(0)?, count(1)?);
                    let (number, rows) = engine.run(py, |e| e.edabit(bits, n))?;
                    let rows = rows.into_iter().map(Some).collect();
                    Slot::Rows(vec![vec![Some(number)], rows])
                }
                Op::Take => {
                    let (summand, bit) = (count(0)?, count(1)?);
                    let first = *step.slots.first().ok_or_else(malformed)?;
                    let Some(Slot::Rows(rows)) = slots.get_mut(first) else {
                        return Err(malformed());
                    };
                    let row = rows.get_mut(summand).and_then(|row| row.get_mut(bit));
                    Slot::Value(row.and_then(Option::take).ok_or_else(malformed)?)
                }
                Op::Open => one(engine, value(0)?, |e, a| e.open(a))?,
                Op::OpenLow => {
                    let bits = number(0).and_then(|b| u32::try_from(b).map_err(|_| malformed()))?;
                    one(engine, value(0)?, |e, a| e.open_low(a, bits))?
                }
                Op::OpenTo => {
                    let receiver = count(0)?;
                    one(engine, value(0)?, |e, a| e.open_to(a, receiver))?
                }
                Op::Clear => {
                    let words = ints(0)?;
                    Slot::Value(engine.at_once(|e| Ok(e.clear(words)))?)
                }
                Op::ClearBits => {
                    let bits: Vec<u8> = ints(0)?.iter().map(|bit| *bit as u8).collect();
                    Slot::Value(engine.at_once(|e| Ok(e.clear_bits(&bits)))?)
                }
                Op::Import => {
                    let (slot, n) = (*step.slots.first().ok_or_else(malformed)?, count(0)?);
                    let Some(Slot::Bytes(data)) = slots.get(slot) else {
                        return Err(malformed());
                    };
                    Slot::Value(engine.at_once(|e| e.import(data, n))?)
                }
                Op::Read => {
                    let handle = value(0)?;
                    let words = engine.run(py, |e| e.read(handle))?;
                    numbers(words.into_iter().map(|w| w as i64).collect())
                }
                Op::ReadBits => {
                    let handle = value(0)?;
                    let bits = engine.run(py, |e| e.read_bits(handle))?;
                    numbers(bits.into_iter().map(i64::from).collect())
                }
                Op::Flush => {
                    engine.run(py, |e| e.flush())?;
                    Slot::Empty
                }
                Op::Load => {
                    let (start, n) = (count(0)?, count(1)?);
                    Slot::Bytes(inputs.range(start, n)?)
                }
                Op::Pick => {
                    let start = number(0)?;
                    let at = ints(0)?
                        .iter()
                        .map(|i| usize::try_from(start.wrapping_add(*i)).map_err(|_| malformed()));
                    Slot::Bytes(inputs.shares(at)?)
                }
                Op::Store => {
                    let handle = value(0)?;
                    let data = Zeroizing::new(engine.run(py, |e| e.export(handle))?);
                    stored.push(data);
                    Slot::Empty
                }
                Op::Public => Slot::Ints(inputs.take_public(count(0)?)?),
                Op::Private => Slot::Ints(inputs.take_private(count(0)?)?),
                Op::Input => {
                    let (owner, n) = (count(0)?, count(1)?);
                    let words = (!step.slots.is_empty()).then(|| ints(0)).transpose()?;
                    Slot::Value(engine.at_once(|e| e.input(owner, n, words))?)
                }
                Op::Output | Op::OutputPersonal => {
                    let words = PyArray1::from_slice(py, ints(0)?);
                    let personal = matches!(step.op, Op::OutputPersonal);
                    output.push((step.numbers.first().copied(), personal, words));
                    Slot::Empty
                }
                Op::IntAdd => elementwise(i64::wrapping_add)?,
                Op::IntSub => elementwise(i64::wrapping_sub)?,
                Op::IntMul => elementwise(i64::wrapping_mul)?,
                Op::IntShl => elementwise(|a, b| a.wrapping_shl(b as u32))?,
                Op::IntShr => elementwise(|a, b| a.wrapping_shr(b as u32))?,
                Op::IntAnd => elementwise(|a, b| a & b)?,
                Op::WordShr => elementwise(|a, b| (a as u64).wrapping_shr(b as u32) as i64)?,
                Op::IntCopy => numbers(ints(0)?.to_vec()),
                Op::InRange => {
                    let (indices, length) = (ints(0)?, number(0)?);
                    if let Some(bad) = indices.iter().find(|i| !(0..length).contains(*i)) {
                        return Err(PyIndexError::new_err(format!(
                            "overflow: index {bad}, length {length}"
                        )));
                    }
                    numbers(indices.to_vec())
                }
            };
            for slot in &step.frees {
                if let Some(place) = slots.get_mut(*slot) {
                    *place = Slot::Empty;
                }
            }
            if let Some(place) = step.out.and_then(|out| slots.get_mut(out)) {
                *place = made;
            }
        }
        // Arrays are the caller's to wipe, so there are none before all went well.
        let stored = stored
            .iter()
            .map(|data| shares(py, data, engine.share_parts))
            .collect();
        Ok((stored, output))
    }
}

/// Exported shares, component after component.
fn shares<'py>(py: Python<'py>, data: &[u8], parts: usize) -> Stored<'py> {
    let (words, _) = data.as_chunks::<8>();
    let row = words.len() / parts.max(1);
    let word = |(part, i)| {
        words
            .get(part * row + i)
            .map_or(0, |w| u64::from_le_bytes(*w))
    };
    PyArray2::from_owned_array(py, Array2::from_shape_fn((parts, row), word))
}

fn numbers(words: Vec<i64>) -> Slot {
    Slot::Ints(Zeroizing::new(words))
}

fn one(
    engine: &Engine,
    a: &Handle,
    f: impl FnOnce(&mut dyn keyquorum_mpc::Engine, &Handle) -> Result<Handle, EngineError>,
) -> PyResult<Slot> {
    engine.at_once(|e| f(e, a)).map(Slot::Value)
}

fn two(
    engine: &Engine,
    a: &Handle,
    b: &Handle,
    f: impl FnOnce(&mut dyn keyquorum_mpc::Engine, &Handle, &Handle) -> Result<Handle, EngineError>,
) -> PyResult<Slot> {
    engine.at_once(|e| f(e, a, b)).map(Slot::Value)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Script>()
}
