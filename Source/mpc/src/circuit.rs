//! Boolean circuits on rows of bits, planned for evaluation: levels of ANDs, local gates between them, and places for the rows that live.

use crate::error::{EngineError, Result};

/// A gate. Wires have numbers: first the rows of the inputs, then the results of the gates in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Exclusive or.
    Xor(usize, usize),
    /// And.
    And(usize, usize),
    /// Negation.
    Not(usize),
}

impl Gate {
    fn operands(self) -> [Option<usize>; 2] {
        match self {
            Self::Xor(a, b) | Self::And(a, b) => [Some(a), Some(b)],
            Self::Not(a) => [Some(a), None],
        }
    }
}

/// A local gate on places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Local {
    Xor { a: usize, b: usize, out: usize },
    Not { a: usize, out: usize },
}

/// ANDs of one level, on places: operands, result.
pub(crate) type And = [usize; 3];

/// Local gates, and then the ANDs of one level.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Stage {
    pub(crate) local: Vec<Local>,
    pub(crate) ands: Vec<And>,
}

/// A circuit that was checked and planned. Gates that no output needs are left out.
#[derive(Debug, PartialEq, Eq)]
pub struct BitCircuit {
    rows: Vec<usize>,
    outputs: Vec<usize>,
    stages: Vec<Stage>,
    places: usize,
}

impl BitCircuit {
    /// `rows`: number of rows of each input; `outputs`: wires.
    ///
    /// # Errors
    /// [`EngineError::Usage`] if a gate or an output takes a wire that does not come before it, or if there is no output.
    pub fn new(rows: &[usize], gates: &[Gate], outputs: &[usize]) -> Result<Self> {
        let inputs = rows
            .iter()
            .try_fold(0usize, |sum, n| sum.checked_add(*n))
            .ok_or_else(unordered)?;
        for (i, gate) in gates.iter().enumerate() {
            if gate
                .operands()
                .into_iter()
                .flatten()
                .any(|w| w >= inputs + i)
            {
                return Err(unordered());
            }
        }
        if outputs.is_empty() || outputs.iter().any(|w| *w >= inputs + gates.len()) {
            return Err(unordered());
        }
        let schedule = Schedule::new(inputs, gates, outputs)?;
        let (stages, outputs, places) = schedule.placed(inputs, gates, outputs)?;
        Ok(Self {
            rows: rows.to_vec(),
            outputs,
            stages,
            places,
        })
    }

    /// Rows of each input.
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// Rows of the output.
    pub fn output_rows(&self) -> usize {
        self.outputs.len()
    }

    /// ANDs on a row, of all levels.
    pub fn ands(&self) -> usize {
        self.stages.iter().map(|stage| stage.ands.len()).sum()
    }

    /// Levels of ANDs.
    pub fn depth(&self) -> usize {
        self.stages.len() - 1
    }

    pub(crate) fn stage(&self, level: usize) -> Result<&Stage> {
        self.stages.get(level).ok_or_else(unplanned)
    }

    pub(crate) fn outputs(&self) -> &[usize] {
        &self.outputs
    }

    pub(crate) fn places(&self) -> usize {
        self.places
    }

    pub(crate) fn negates(&self) -> bool {
        let mut local = self.stages.iter().flat_map(|stage| &stage.local);
        local.any(|gate| matches!(gate, Local::Not { .. }))
    }
}

fn unordered() -> EngineError {
    EngineError::usage("a circuit takes a wire that does not come before it, or has no output")
}

fn unplanned() -> EngineError {
    EngineError::internal("a circuit that is not planned as its gates say")
}

/// The needed gates in the order of their evaluation: for each level the local gates, then the ANDs.
struct Schedule {
    levels: Vec<(Vec<usize>, Vec<usize>)>,
    /// For each wire the number of its last use: that of the level's ANDs, or of a local gate.
    last: Vec<usize>,
}

impl Schedule {
    fn new(inputs: usize, gates: &[Gate], outputs: &[usize]) -> Result<Self> {
        let wires = inputs + gates.len();
        let mut needed = vec![false; wires];
        for wire in outputs {
            *needed.get_mut(*wire).ok_or_else(unplanned)? = true;
        }
        for (i, gate) in gates.iter().enumerate().rev() {
            if needed.get(inputs + i) == Some(&true) {
                for wire in gate.operands().into_iter().flatten() {
                    *needed.get_mut(wire).ok_or_else(unplanned)? = true;
                }
            }
        }
        let mut level = vec![0usize; inputs];
        let mut levels: Vec<(Vec<usize>, Vec<usize>)> = vec![(Vec::new(), Vec::new())];
        for (i, gate) in gates.iter().enumerate() {
            let mut at = 0;
            for wire in gate.operands().into_iter().flatten() {
                at = at.max(*level.get(wire).ok_or_else(unplanned)?);
            }
            let and = matches!(gate, Gate::And(..));
            level.push(at + usize::from(and));
            if needed.get(inputs + i) != Some(&true) {
                continue;
            }
            while levels.len() <= at + usize::from(and) {
                levels.push((Vec::new(), Vec::new()));
            }
            let (local, ands) = levels.get_mut(at).ok_or_else(unplanned)?;
            if and { ands.push(i) } else { local.push(i) }
        }
        let mut last = vec![0; wires];
        let mut time = 0;
        for (local, ands) in &levels {
            let steps = local
                .iter()
                .map(std::slice::from_ref)
                .chain([ands.as_slice()]);
            for step in steps {
                time += 1;
                for gate in step.iter().filter_map(|i| gates.get(*i)) {
                    for wire in gate.operands().into_iter().flatten() {
                        *last.get_mut(wire).ok_or_else(unplanned)? = time;
                    }
                }
            }
        }
        for wire in outputs {
            *last.get_mut(*wire).ok_or_else(unplanned)? = usize::MAX;
        }
        Ok(Self { levels, last })
    }

    /// Gives every row a place, which is free again after the last use of the row.
    fn placed(
        &self,
        inputs: usize,
        gates: &[Gate],
        outputs: &[usize],
    ) -> Result<(Vec<Stage>, Vec<usize>, usize)> {
        let mut places = Places {
            of: vec![None; inputs + gates.len()],
            free: Vec::new(),
            count: inputs,
            last: &self.last,
            time: 0,
        };
        for (wire, place) in places.of.iter_mut().take(inputs).enumerate() {
            *place = Some(wire);
        }
        let mut stages = Vec::with_capacity(self.levels.len());
        for (local, ands) in &self.levels {
            let mut stage = Stage::default();
            for i in local {
                places.time += 1;
                let gate = *gates.get(*i).ok_or_else(unplanned)?;
                match gate {
                    Gate::Xor(x, y) => {
                        let (a, b) = (places.at(x)?, places.at(y)?);
                        places.release(gate);
                        let out = places.take(inputs + i)?;
                        stage.local.push(Local::Xor { a, b, out });
                    }
                    Gate::Not(x) => {
                        let a = places.at(x)?;
                        places.release(gate);
                        let out = places.take(inputs + i)?;
                        stage.local.push(Local::Not { a, out });
                    }
                    Gate::And(..) => return Err(unplanned()),
                }
            }
            places.time += 1;
            let mut operands = Vec::with_capacity(ands.len());
            for i in ands {
                let Some(Gate::And(x, y)) = gates.get(*i).copied() else {
                    return Err(unplanned());
                };
                operands.push((places.at(x)?, places.at(y)?));
            }
            for i in ands {
                places.release(*gates.get(*i).ok_or_else(unplanned)?);
            }
            for (i, (a, b)) in ands.iter().zip(operands) {
                stage.ands.push([a, b, places.take(inputs + i)?]);
            }
            stages.push(stage);
        }
        let outputs = outputs.iter().map(|wire| places.at(*wire));
        let outputs = outputs.collect::<Result<_>>()?;
        Ok((stages, outputs, places.count))
    }
}

struct Places<'a> {
    of: Vec<Option<usize>>,
    free: Vec<usize>,
    count: usize,
    last: &'a [usize],
    time: usize,
}

impl Places<'_> {
    fn at(&self, wire: usize) -> Result<usize> {
        self.of.get(wire).copied().flatten().ok_or_else(unplanned)
    }

    fn take(&mut self, wire: usize) -> Result<usize> {
        let place = self.free.pop().unwrap_or(self.count);
        self.count = self.count.max(place + 1);
        *self.of.get_mut(wire).ok_or_else(unplanned)? = Some(place);
        Ok(place)
    }

    /// Frees the places of operands that have no later use.
    fn release(&mut self, gate: Gate) {
        for wire in gate.operands().into_iter().flatten() {
            if self.last.get(wire) == Some(&self.time)
                && let Some(place) = self.of.get_mut(wire).and_then(Option::take)
            {
                self.free.push(place);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The value of the plan on single bits.
    fn planned(circuit: &BitCircuit, inputs: &[bool]) -> Vec<bool> {
        let mut rows = vec![false; circuit.places()];
        rows[..inputs.len()].copy_from_slice(inputs);
        for stage in &circuit.stages {
            for gate in &stage.local {
                match *gate {
                    Local::Xor { a, b, out } => rows[out] = rows[a] ^ rows[b],
                    Local::Not { a, out } => rows[out] = !rows[a],
                }
            }
            let products: Vec<bool> = stage
                .ands
                .iter()
                .map(|[a, b, _]| rows[*a] & rows[*b])
                .collect();
            for ([_, _, out], product) in stage.ands.iter().zip(products) {
                rows[*out] = product;
            }
        }
        circuit.outputs().iter().map(|place| rows[*place]).collect()
    }

    proptest! {
        #[test]
        fn plans_agree_with_their_gates(
            inputs in prop::collection::vec(any::<bool>(), 1..5),
            choices in prop::collection::vec((0u8..3, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..60),
            wanted in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
        ) {
            let (mut values, mut level, mut gates) = (inputs.clone(), vec![0; inputs.len()], Vec::new());
            for (kind, a, b) in choices {
                let (a, b) = (a.index(values.len()), b.index(values.len()));
                let (gate, value, depth) = match kind {
                    0 => (Gate::Xor(a, b), values[a] ^ values[b], level[a].max(level[b])),
                    1 => (Gate::And(a, b), values[a] & values[b], level[a].max(level[b]) + 1),
                    _ => (Gate::Not(a), !values[a], level[a]),
                };
                gates.push(gate);
                values.push(value);
                level.push(depth);
            }
            let outputs: Vec<usize> = wanted.iter().map(|w| w.index(values.len())).collect();
            let circuit = BitCircuit::new(&[inputs.len()], &gates, &outputs).unwrap();
            let expected: Vec<bool> = outputs.iter().map(|w| values[*w]).collect();
            prop_assert_eq!(planned(&circuit, &inputs), expected);
            prop_assert_eq!(circuit.depth(), outputs.iter().map(|w| level[*w]).max().unwrap());
            prop_assert!(circuit.places() <= inputs.len() + gates.len());
        }
    }

    #[test]
    fn gates_that_nothing_needs_are_left_out() {
        let gates = [Gate::And(0, 1), Gate::And(2, 1), Gate::Xor(0, 1)];
        let circuit = BitCircuit::new(&[1, 1], &gates, &[4, 0]).unwrap();
        assert_eq!(
            (circuit.ands(), circuit.depth(), circuit.output_rows()),
            (0, 0, 2)
        );
        let circuit = BitCircuit::new(&[1, 1], &gates, &[3]).unwrap();
        assert_eq!(
            (circuit.ands(), circuit.depth(), circuit.negates()),
            (2, 2, false)
        );
    }

    #[test]
    fn wires_come_before_their_use() {
        let refused = |gates: &[Gate], outputs: &[usize]| {
            matches!(
                BitCircuit::new(&[2], gates, outputs),
                Err(EngineError::Usage(_))
            )
        };
        assert!(refused(&[Gate::Xor(0, 2)], &[2]));
        assert!(refused(&[Gate::Not(5)], &[2]));
        assert!(refused(&[Gate::And(0, 1)], &[3]));
        assert!(refused(&[Gate::And(0, 1)], &[]));
        assert!(matches!(
            BitCircuit::new(&[usize::MAX, 1], &[], &[0]),
            Err(EngineError::Usage(_))
        ));
    }
}
