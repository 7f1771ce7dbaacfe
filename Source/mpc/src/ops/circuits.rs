//! Boolean circuits on rows of bits. All ANDs of a level are one product of packed vectors, without gaps between the rows.

use std::sync::Arc;

use keyquorum_math::{Domain, mask_of};
use zeroize::Zeroize;

use super::{Computation, mismatch, wrong};
use crate::circuit::{BitCircuit, Local};
use crate::error::{EngineError, Result};
use crate::graph::Handle;
use crate::protocol::{BitProtocol, Protocol, lanes};
use crate::select::*;
use crate::task::{Step, ready, then, then_maybe, within};
use crate::value::{Kind, Share, Value};

/// How the rows lie in a vector: row k of copy c begins at bit (c · rows + k) · size.
#[derive(Clone, Copy)]
struct Layout {
    size: usize,
    copies: usize,
}

impl Layout {
    /// Bits of one row of all copies, side by side: what an evaluation computes with.
    fn width(self) -> usize {
        self.size * self.copies
    }
}

impl<P: Protocol<D>, D: Domain> Computation<P, D> {
    /// [`Operation::Circuit`](crate::engine::Operation::Circuit).
    pub(super) fn evaluated(
        &mut self,
        circuit: &Arc<BitCircuit>,
        inputs: &[&Handle],
        size: usize,
        copies: usize,
    ) -> Result<Handle> {
        self.need_binary()?;
        let layout = Layout { size, copies };
        let mut count = [size, circuit.output_rows()].into_iter();
        let total = count.try_fold(copies, |n: usize, x| n.checked_mul(x));
        let Some(total) = total.filter(|n| *n > 0) else {
            return Err(EngineError::usage(
                "a circuit works on rows of one bit and more",
            ));
        };
        if inputs.len() != circuit.rows().len() {
            return Err(EngineError::usage(format!(
                "a circuit of {} inputs was given {}",
                circuit.rows().len(),
                inputs.len()
            )));
        }
        for (input, rows) in inputs.iter().zip(circuit.rows()) {
            if !matches!(input.kind(), Kind::SecretBits | Kind::ClearBits) {
                return Err(wrong("a circuit", input));
            }
            if input.size() != rows * layout.width() && input.size() != *rows {
                return Err(EngineError::usage(format!(
                    "an input of a circuit has {rows} rows of {size} bits in {copies} copies, or {rows} single bits, not {} bits",
                    input.size()
                )));
            }
        }
        let circuit = Arc::clone(circuit);
        let given: Vec<usize> = inputs.iter().map(|input| input.size()).collect();
        let kind = Kind::SecretBits;
        if circuit.depth() == 0 {
            return self.local(inputs, kind, total, move |p, values| {
                let bits = p.bits()?;
                let evaluation = Evaluation::new(bits, circuit, layout, &values, &given)?;
                match evaluation.advanced(bits, 0)? {
                    Step::Done(share) => Ok(Value::SecretBits(share)),
                    Step::Next(_) => mismatch(),
                }
            });
        }
        self.communicate(inputs, kind, total, move |p, values| {
            let bits = p.bits()?;
            let evaluation = Evaluation::new(bits, circuit, layout, &values, &given)?;
            let task = match evaluation.advanced(bits, 0)? {
                Step::Done(share) => ready(share),
                Step::Next(task) => task,
            };
            Ok(then(within(task, P::bits), |_, share| {
                Ok(Value::SecretBits(share))
            }))
        })
    }
}

/// The rows of an evaluation: `rows[part][place]`.
struct Evaluation {
    circuit: Arc<BitCircuit>,
    layout: Layout,
    rows: Vec<Vec<Vec<u64>>>,
    /// A share of ones, if the circuit negates.
    ones: Option<Share<u64>>,
}

impl Drop for Evaluation {
    fn drop(&mut self) {
        for row in self.rows.iter_mut().flatten() {
            row.zeroize();
        }
    }
}

impl Evaluation {
    fn new<B: BitProtocol, E: keyquorum_math::Element>(
        bits: &mut B,
        circuit: Arc<BitCircuit>,
        layout: Layout,
        inputs: &[Arc<Value<E>>],
        sizes: &[usize],
    ) -> Result<Self> {
        let width = lanes(layout.width());
        let ones = match circuit.negates() {
            true => Some(bits.constant_bits(&vec![!0; width])?),
            false => None,
        };
        let mut made = Self {
            rows: vec![vec![vec![0; width]; circuit.places()]; bits.bit_parts()?],
            layout,
            ones,
            circuit,
        };
        let mut first = 0;
        let counts = made.circuit.rows().to_vec();
        for ((value, rows), given) in inputs.iter().zip(counts).zip(sizes) {
            let constant;
            let share = match &**value {
                Value::SecretBits(share) => share,
                Value::ClearBits(clear) => {
                    constant = bits.constant_bits(clear)?;
                    &constant
                }
                _ => return mismatch(),
            };
            made.load(share, first, rows, *given == rows)?;
            first += rows;
        }
        Ok(made)
    }

    /// Puts the rows of an input into the places from `first` on. `single`: a row is one bit, the same everywhere.
    fn load(&mut self, share: &Share<u64>, first: usize, rows: usize, single: bool) -> Result<()> {
        let Layout { size, copies } = self.layout;
        if share.parts.len() != self.rows.len() {
            return mismatch();
        }
        for (places, part) in self.rows.iter_mut().zip(&share.parts) {
            for k in 0..rows {
                let place = places.get_mut(first + k).ok_or_else(outside)?;
                if single {
                    let lane = part.get(k / 64).ok_or_else(outside)?;
                    place.fill(mask_of(lane >> (k % 64)));
                    continue;
                }
                for c in 0..copies {
                    copy_bits(part, (c * rows + k) * size, place, c * size, size)?;
                }
            }
        }
        Ok(())
    }

    /// The outputs as one vector.
    fn stored(&self) -> Result<Share<u64>> {
        let Layout { size, copies } = self.layout;
        let outputs = self.circuit.outputs();
        let mut share = Share::zeros(self.rows.len(), lanes(outputs.len() * copies * size));
        for (places, part) in self.rows.iter().zip(&mut share.parts) {
            for (k, place) in outputs.iter().enumerate() {
                let row = places.get(*place).ok_or_else(outside)?;
                for c in 0..copies {
                    let at = (c * outputs.len() + k) * size;
                    copy_bits(row, c * size, part, at, size)?;
                }
            }
        }
        Ok(share)
    }

    fn run_local(&mut self, level: usize) -> Result<()> {
        let ones = self.ones.as_ref();
        for (j, places) in self.rows.iter_mut().enumerate() {
            for gate in &self.circuit.stage(level)?.local {
                match *gate {
                    Local::Xor { a, b, out } => {
                        let mut row = std::mem::take(places.get_mut(out).ok_or_else(outside)?);
                        if out == a && out == b {
                            row.fill(0);
                        } else if out == a || out == b {
                            let other = if out == a { b } else { a };
                            add(&mut row, places.get(other).ok_or_else(outside)?);
                        } else {
                            row.copy_from_slice(places.get(a).ok_or_else(outside)?);
                            add(&mut row, places.get(b).ok_or_else(outside)?);
                        }
                        *places.get_mut(out).ok_or_else(outside)? = row;
                    }
                    Local::Not { a, out } => {
                        let mut row = std::mem::take(places.get_mut(out).ok_or_else(outside)?);
                        if out != a {
                            row.copy_from_slice(places.get(a).ok_or_else(outside)?);
                        }
                        let ones = ones.ok_or_else(outside)?;
                        add(&mut row, ones.part(j)?);
                        *places.get_mut(out).ok_or_else(outside)? = row;
                    }
                }
            }
        }
        Ok(())
    }

    /// The operands of the ANDs of a level, one after another without gaps.
    fn operands(&self, level: usize) -> Result<[Share<u64>; 2]> {
        let (ands, width) = (&self.circuit.stage(level)?.ands, self.layout.width());
        let packed = || Share::zeros(self.rows.len(), lanes(ands.len() * width));
        let mut operands = [packed(), packed()];
        for (which, share) in operands.iter_mut().enumerate() {
            for (places, part) in self.rows.iter().zip(&mut share.parts) {
                for (i, [a, b, _]) in ands.iter().enumerate() {
                    let place = if which == 0 { a } else { b };
                    let row = places.get(*place).ok_or_else(outside)?;
                    copy_bits(row, 0, part, i * width, width)?;
                }
            }
        }
        Ok(operands)
    }

    fn put_products(&mut self, level: usize, products: &Share<u64>) -> Result<()> {
        let width = self.layout.width();
        if products.parts.len() != self.rows.len() {
            return mismatch();
        }
        for (places, part) in self.rows.iter_mut().zip(&products.parts) {
            for (i, [_, _, out]) in self.circuit.stage(level)?.ands.iter().enumerate() {
                let row = places.get_mut(*out).ok_or_else(outside)?;
                row.fill(0);
                copy_bits(part, i * width, row, 0, width)?;
            }
        }
        Ok(())
    }

    /// Goes on from a level: a round for its ANDs, or the result.
    fn advanced<B: BitProtocol>(
        mut self,
        bits: &mut B,
        level: usize,
    ) -> Result<Step<B, Share<u64>>> {
        self.run_local(level)?;
        if level == self.circuit.depth() {
            return Ok(Step::Done(self.stored()?));
        }
        let [a, b] = self.operands(level)?;
        let task = bits.and(&a, &b)?;
        Ok(Step::Next(then_maybe(task, move |bits, products| {
            self.put_products(level, &products)?;
            self.advanced(bits, level + 1)
        })))
    }
}

fn add(row: &mut [u64], other: &[u64]) {
    for (x, y) in row.iter_mut().zip(other) {
        *x ^= y;
    }
}
