//! Boolean circuits for Python.

use std::sync::Arc;

use keyquorum_mpc::{BitCircuit as Core, Gate};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::errors::{engine_error, usage};

/// A Boolean circuit on rows of bits, planned for evaluation.
#[pyclass(module = "keyquorum._engine", frozen)]
pub struct BitCircuit {
    pub(crate) core: Arc<Core>,
}

#[pymethods]
impl BitCircuit {
    /// ``rows``: rows of each input. ``gates``: three numbers each: 0 (XOR), 1 (AND) or 2 (NOT), and the wires of the operands, twice the same for
    /// NOT. Wires are the rows of all inputs, then the results of the gates. ``outputs``: wires.
    #[new]
    fn new(
        rows: Vec<usize>,
        gates: PyReadonlyArray1<'_, i64>,
        outputs: Vec<usize>,
    ) -> PyResult<Self> {
        let words = gates.as_slice();
        let words =
            words.map_err(|_| usage("gates must be contiguous: use numpy.ascontiguousarray"))?;
        let gates = words.chunks(3).map(|gate| {
            let wire = |w: i64| usize::try_from(w).ok();
            match gate {
                [0, a, b] => Some(Gate::Xor(wire(*a)?, wire(*b)?)),
                [1, a, b] => Some(Gate::And(wire(*a)?, wire(*b)?)),
                [2, a, b] if a == b => Some(Gate::Not(wire(*a)?)),
                _ => None,
            }
        });
        let gates: Option<Vec<Gate>> = gates.collect();
        let gates = gates.ok_or_else(|| usage("a gate is 0, 1 or 2 and two wires"))?;
        let core = Core::new(&rows, &gates, &outputs).map_err(engine_error)?;
        Ok(Self {
            core: Arc::new(core),
        })
    }

    /// ANDs on a row.
    #[getter]
    fn ands(&self) -> usize {
        self.core.ands()
    }

    /// Levels of ANDs.
    #[getter]
    fn depth(&self) -> usize {
        self.core.depth()
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<BitCircuit>()
}
