//! Recorders of programs for Python: one method a step.

use std::sync::{Arc, Mutex, MutexGuard};

use keyquorum_mpc::ClearOp;
use keyquorum_mpc::recording::{
    self as core, Binary, NumberOp, NumbersId, Random, SharesId, Step, Unary, ValueId,
};
use pyo3::prelude::*;

use crate::circuit::BitCircuit;
use crate::engine::{Engine, clear_op_named};
use crate::errors::{engine_error, usage};
use crate::recording::Recording;
use crate::value::Value;

/// Takes the steps of a run, one at each call. Operands and results are slots of the recording: numbers that these methods return. Each kind
/// (vectors of the engine, public numbers, raw shares) counts its own.
#[pyclass(module = "keyquorum._engine", frozen)]
pub struct Recorder {
    core: Mutex<core::Recorder>,
}

impl Recorder {
    fn lock(&self) -> PyResult<MutexGuard<'_, core::Recorder>> {
        let core = self.core.lock();
        core.map_err(|_| usage("the recorder failed in another thread"))
    }

    fn push(&self, step: Step) -> PyResult<()> {
        self.lock()?.push(step).map_err(engine_error)
    }

    fn value(&self, step: impl FnOnce(ValueId) -> Step) -> PyResult<usize> {
        let mut core = self.lock()?;
        let out = core.value();
        core.push(step(out)).map_err(engine_error)?;
        Ok(out.0)
    }

    fn numbers(&self, step: impl FnOnce(NumbersId) -> Step) -> PyResult<usize> {
        let mut core = self.lock()?;
        let out = core.numbers();
        core.push(step(out)).map_err(engine_error)?;
        Ok(out.0)
    }

    fn shares(&self, step: impl FnOnce(SharesId) -> Step) -> PyResult<usize> {
        let mut core = self.lock()?;
        let out = core.shares();
        core.push(step(out)).map_err(engine_error)?;
        Ok(out.0)
    }

    fn unary(&self, op: Unary, a: usize) -> PyResult<usize> {
        let a = ValueId(a);
        self.value(|out| Step::Unary { op, a, out })
    }

    fn binary(&self, op: Binary, a: usize, b: usize) -> PyResult<usize> {
        let (a, b) = (ValueId(a), ValueId(b));
        self.value(|out| Step::Binary { op, a, b, out })
    }

    fn made(&self, kind: Random, count: usize) -> PyResult<usize> {
        self.value(|out| Step::Random { kind, count, out })
    }
}

/// The operation on numbers that has this name: that of numpy's function.
fn number_op_named(name: &str) -> Option<NumberOp> {
    Some(match name {
        "add" => NumberOp::Add,
        "subtract" => NumberOp::Sub,
        "multiply" => NumberOp::Mul,
        "floor_divide" => NumberOp::FloorDiv,
        "left_shift" => NumberOp::Shl,
        "right_shift" => NumberOp::Shr,
        "unsigned_right_shift" => NumberOp::ShrUnsigned,
        "bitwise_and" => NumberOp::And,
        "bitwise_or" => NumberOp::Or,
        "bitwise_xor" => NumberOp::Xor,
        "less" => NumberOp::Lt,
        "less_equal" => NumberOp::Le,
        "greater" => NumberOp::Gt,
        "greater_equal" => NumberOp::Ge,
        "equal" => NumberOp::Eq,
        "not_equal" => NumberOp::Ne,
        _ => return None,
    })
}

#[pymethods]
impl Recorder {
    #[new]
    fn new() -> Self {
        Self {
            core: Mutex::default(),
        }
    }

    fn constant_value(&self, engine: &Engine, value: &Value) -> PyResult<usize> {
        let mut core = self.lock()?;
        value.with(|v| engine.at_once(|e| core.constant_value(e, v)).map(|id| id.0))
    }

    fn constant_numbers(&self, numbers: Vec<i64>) -> PyResult<usize> {
        Ok(self.lock()?.constant_numbers(numbers).0)
    }

    fn constant_shares(&self, shares: Vec<u8>) -> PyResult<usize> {
        let id = self.lock()?.constant_shares(shares);
        id.map(|id| id.0).map_err(engine_error)
    }

    fn add(&self, a: usize, b: usize) -> PyResult<usize> {
        self.binary(Binary::Add, a, b)
    }

    fn sub(&self, a: usize, b: usize) -> PyResult<usize> {
        self.binary(Binary::Sub, a, b)
    }

    fn mul(&self, a: usize, b: usize) -> PyResult<usize> {
        self.binary(Binary::Mul, a, b)
    }

    fn dot(&self, a: usize, b: usize, length: usize) -> PyResult<usize> {
        self.binary(Binary::Dot(length), a, b)
    }

    fn matrix_product(
        &self,
        a: usize,
        b: usize,
        rows: usize,
        inner: usize,
        columns: usize,
    ) -> PyResult<usize> {
        self.binary(Binary::MatrixProduct(rows, inner, columns), a, b)
    }

    fn xor(&self, a: usize, b: usize) -> PyResult<usize> {
        self.binary(Binary::Xor, a, b)
    }

    fn and_(&self, a: usize, b: usize) -> PyResult<usize> {
        self.binary(Binary::And, a, b)
    }

    fn clear_op(&self, op: &str, a: usize, b: usize) -> PyResult<usize> {
        let op: ClearOp = clear_op_named(op)
            .ok_or_else(|| usage(format!("unknown operation {op:?} on clear values")))?;
        self.binary(Binary::Clear(op), a, b)
    }

    fn neg(&self, a: usize) -> PyResult<usize> {
        self.unary(Unary::Neg, a)
    }

    fn not_(&self, a: usize) -> PyResult<usize> {
        self.unary(Unary::Not, a)
    }

    fn clear_legendre(&self, a: usize) -> PyResult<usize> {
        self.unary(Unary::ClearLegendre, a)
    }

    fn clear_inv(&self, a: usize) -> PyResult<usize> {
        self.unary(Unary::ClearInv, a)
    }

    fn sum(&self, a: usize, length: usize) -> PyResult<usize> {
        self.unary(Unary::Sum(length), a)
    }

    fn slice(&self, a: usize, start: i64, step: i64, count: usize) -> PyResult<usize> {
        self.unary(Unary::Slice { start, step, count }, a)
    }

    fn repeat(&self, a: usize, n: usize) -> PyResult<usize> {
        self.unary(Unary::Repeat(n), a)
    }

    fn bit_to_arith(&self, sb: usize) -> PyResult<usize> {
        self.unary(Unary::BitToArith, sb)
    }

    fn shuffle(&self, a: usize, unit: usize) -> PyResult<usize> {
        self.unary(Unary::Shuffle(unit), a)
    }

    fn open(&self, a: usize) -> PyResult<usize> {
        self.unary(Unary::Open, a)
    }

    fn open_low(&self, a: usize, bits: u32) -> PyResult<usize> {
        self.unary(Unary::OpenLow(bits), a)
    }

    fn open_masked(&self, a: usize, bits: u32) -> PyResult<usize> {
        self.unary(Unary::OpenMasked(bits), a)
    }

    fn open_to(&self, a: usize, player: usize) -> PyResult<usize> {
        self.unary(Unary::OpenTo(player), a)
    }

    fn random(&self, n: usize) -> PyResult<usize> {
        self.made(Random::Elements, n)
    }

    fn random_bit(&self, n: usize) -> PyResult<usize> {
        self.made(Random::BitElements, n)
    }

    fn random_bits(&self, n: usize) -> PyResult<usize> {
        self.made(Random::Bits, n)
    }

    fn concat(&self, list: Vec<usize>) -> PyResult<usize> {
        let parts = list.into_iter().map(ValueId).collect();
        self.value(|out| Step::Concat { parts, out })
    }

    fn circuit(
        &self,
        circuit: &BitCircuit,
        inputs: Vec<usize>,
        size: usize,
        copies: usize,
    ) -> PyResult<usize> {
        let circuit = Arc::clone(&circuit.core);
        let inputs = inputs.into_iter().map(ValueId).collect();
        self.value(|out| Step::Circuit {
            circuit,
            inputs,
            size,
            copies,
            out,
        })
    }

    fn lookup(
        &self,
        hot: usize,
        at: usize,
        table: usize,
        bits: usize,
        first: usize,
    ) -> PyResult<usize> {
        let (hot, at, table) = (ValueId(hot), NumbersId(at), NumbersId(table));
        self.value(|out| Step::Lookup {
            hot,
            at,
            table,
            bits,
            first,
            out,
        })
    }

    fn gather(&self, a: usize, at: usize) -> PyResult<usize> {
        let (a, at) = (ValueId(a), NumbersId(at));
        self.value(|out| Step::Gather { a, at, out })
    }

    fn assign(&self, target: usize, start: i64, step: i64, source: usize) -> PyResult<usize> {
        let (target, source) = (ValueId(target), ValueId(source));
        self.value(|out| Step::Assign {
            target,
            start,
            step,
            source,
            out,
        })
    }

    fn scatter(&self, target: usize, at: usize, source: usize) -> PyResult<usize> {
        let (target, at, source) = (ValueId(target), NumbersId(at), ValueId(source));
        self.value(|out| Step::Scatter {
            target,
            at,
            source,
            out,
        })
    }

    fn edabit(&self, bits: usize, count: usize) -> PyResult<(usize, Vec<usize>)> {
        let mut core = self.lock()?;
        let out = core.value();
        let rows: Vec<_> = (0..bits).map(|_| core.value()).collect();
        let slots = rows.iter().map(|id| id.0).collect();
        let step = Step::Edabit {
            bits,
            count,
            out,
            rows,
        };
        core.push(step).map_err(engine_error)?;
        Ok((out.0, slots))
    }

    fn summand_bits(&self, a: usize, summands: usize, bits: usize) -> PyResult<Vec<Vec<usize>>> {
        let (mut core, a) = (self.lock()?, ValueId(a));
        let row = |core: &mut core::Recorder| (0..bits).map(|_| core.value()).collect();
        let rows: Vec<Vec<ValueId>> = (0..summands).map(|_| row(&mut core)).collect();
        let slots = rows
            .iter()
            .map(|row| row.iter().map(|id| id.0).collect())
            .collect();
        let step = Step::SummandBits { a, bits, rows };
        core.push(step).map_err(engine_error)?;
        Ok(slots)
    }

    fn clear(&self, numbers: usize) -> PyResult<usize> {
        let numbers = NumbersId(numbers);
        self.value(|out| Step::Clear { numbers, out })
    }

    fn clear_bits(&self, numbers: usize) -> PyResult<usize> {
        let numbers = NumbersId(numbers);
        self.value(|out| Step::ClearBits { numbers, out })
    }

    #[pyo3(signature = (owner, count, numbers=None))]
    fn input(&self, owner: usize, count: usize, numbers: Option<usize>) -> PyResult<usize> {
        let numbers = numbers.map(NumbersId);
        self.value(|out| Step::Input {
            owner,
            count,
            numbers,
            out,
        })
    }

    fn import_(&self, shares: usize, count: usize) -> PyResult<usize> {
        let shares = SharesId(shares);
        self.value(|out| Step::Import { shares, count, out })
    }

    fn read(&self, a: usize) -> PyResult<usize> {
        let a = ValueId(a);
        self.numbers(|out| Step::Read { a, out })
    }

    fn read_bits(&self, a: usize) -> PyResult<usize> {
        let a = ValueId(a);
        self.numbers(|out| Step::ReadBits { a, out })
    }

    fn flush(&self) -> PyResult<()> {
        self.push(Step::Flush)
    }

    fn load(&self, start: usize, count: usize) -> PyResult<usize> {
        self.shares(|out| Step::Load { start, count, out })
    }

    fn pick(&self, start: usize, at: usize) -> PyResult<usize> {
        let at = NumbersId(at);
        self.shares(|out| Step::Pick { start, at, out })
    }

    fn store(&self, a: usize) -> PyResult<()> {
        self.push(Step::Store { a: ValueId(a) })
    }

    fn take_public(&self, count: usize) -> PyResult<usize> {
        self.numbers(|out| Step::TakePublic { count, out })
    }

    fn take_private(&self, count: usize) -> PyResult<usize> {
        self.numbers(|out| Step::TakePrivate { count, out })
    }

    #[pyo3(signature = (numbers, party=None))]
    fn output(&self, numbers: usize, party: Option<usize>) -> PyResult<()> {
        let numbers = NumbersId(numbers);
        self.push(Step::Output { numbers, party })
    }

    fn output_personal(&self, numbers: usize) -> PyResult<()> {
        let numbers = NumbersId(numbers);
        self.push(Step::OutputPersonal { numbers })
    }

    fn print(&self, text: String) -> PyResult<()> {
        self.push(Step::Print(text))
    }

    /// An operation on numbers, element by element. ``op``: the name of numpy's function, or ``unsigned_right_shift``.
    fn number_op(&self, op: &str, a: usize, b: usize) -> PyResult<usize> {
        let op = number_op_named(op)
            .ok_or_else(|| usage(format!("unknown operation {op:?} on numbers")))?;
        let (a, b) = (NumbersId(a), NumbersId(b));
        self.numbers(|out| Step::Numbers { op, a, b, out })
    }

    fn choose(&self, condition: usize, a: usize, b: usize) -> PyResult<usize> {
        let condition = NumbersId(condition);
        let (a, b) = (NumbersId(a), NumbersId(b));
        self.numbers(|out| Step::Choose {
            condition,
            a,
            b,
            out,
        })
    }

    fn part(&self, a: usize, start: usize, step: usize, count: usize) -> PyResult<usize> {
        let a = NumbersId(a);
        self.numbers(|out| Step::Part {
            a,
            start,
            step,
            count,
            out,
        })
    }

    fn join(&self, parts: Vec<usize>) -> PyResult<usize> {
        let parts = parts.into_iter().map(NumbersId).collect();
        self.numbers(|out| Step::Join { parts, out })
    }

    fn in_range(&self, a: usize, length: usize) -> PyResult<()> {
        let a = NumbersId(a);
        self.push(Step::InRange { a, length })
    }

    /// The recording of all steps; the recorder is empty afterwards.
    fn finish(&self) -> PyResult<Recording> {
        let core = std::mem::take(&mut *self.lock()?).finish();
        Ok(Recording { core })
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Recorder>()
}
