//! Recorders of programs for Python.

use std::sync::{Mutex, MutexGuard};

use keyquorum_mpc::EngineError;
use keyquorum_mpc::recording::{self as core, NumberOp, NumbersId, SharesId, Step};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::{engine_error, usage};

/// Takes the steps of a run: calls of the engine that records (`Engine.record`), and one step at each call of the methods here. Numbers and raw
/// shares have slots, which these methods take and return. A step that is refused ends the recording; its slot means nothing.
#[pyclass(module = "keyquorum._engine", frozen, subclass)]
pub struct Recorder {
    core: Mutex<core::Recorder>,
}

impl Recorder {
    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, core::Recorder>, EngineError> {
        let core = self.core.lock();
        core.map_err(|_| EngineError::usage("the recorder failed in another thread"))
    }

    pub(crate) fn with<T>(&self, f: impl FnOnce(&mut core::Recorder) -> T) -> PyResult<T> {
        let mut core = self.lock().map_err(engine_error)?;
        Ok(f(&mut core))
    }

    fn step(&self, step: Step) -> PyResult<()> {
        self.with(|core| core.note(step))
    }

    fn numbers(&self, step: impl FnOnce(NumbersId) -> Step) -> PyResult<usize> {
        self.with(|core| {
            let out = core.numbers();
            core.note(step(out));
            out.0
        })
    }

    fn shares(&self, step: impl FnOnce(SharesId) -> Step) -> PyResult<usize> {
        self.with(|core| {
            let out = core.shares();
            core.note(step(out));
            out.0
        })
    }

    /// What stands for numbers of the run, in the program: the subclass makes it.
    pub(crate) fn stand_in<'py>(
        recorder: &Bound<'py, Self>,
        slot: usize,
        words: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        recorder.call_method1(pyo3::intern!(recorder.py(), "stand_in"), (slot, words))
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
    #[pyo3(signature = (*_of_subclass))]
    fn new(_of_subclass: &Bound<'_, PyTuple>) -> Self {
        Self {
            core: Mutex::default(),
        }
    }

    /// The first reason why the run is not recorded, or None.
    #[getter]
    fn failure(&self) -> PyResult<Option<String>> {
        self.with(|core| core.failure().map(str::to_owned))
    }

    /// Ends the recording with a reason; the run continues.
    fn fail(&self, why: String) -> PyResult<()> {
        self.with(|core| core.fail(why))
    }

    fn constant_numbers(&self, numbers: Vec<i64>) -> PyResult<usize> {
        let id = self.with(|core| core.constant_numbers(numbers))?;
        id.map(|id| id.0).map_err(engine_error)
    }

    fn load(&self, start: usize, count: usize) -> PyResult<usize> {
        self.shares(|out| Step::Load { start, count, out })
    }

    fn pick(&self, start: usize, at: usize) -> PyResult<usize> {
        let at = NumbersId(at);
        self.shares(|out| Step::Pick { start, at, out })
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
        self.step(Step::Output { numbers, party })
    }

    fn output_personal(&self, numbers: usize) -> PyResult<()> {
        let numbers = NumbersId(numbers);
        self.step(Step::OutputPersonal { numbers })
    }

    fn print(&self, text: String) -> PyResult<()> {
        self.step(Step::Print(text))
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
        self.step(Step::InRange { a, length })
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("MOST_STEPS", core::MOST_STEPS)?;
    m.add("MOST_CONSTANTS", core::MOST_CONSTANTS)?;
    m.add("MOST_ELEMENTS", core::MOST_ELEMENTS)?;
    m.add_class::<Recorder>()
}
