//! Between bits and elements.

use keyquorum_math::Domain;

use super::{Computation, mismatch, wrong};
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::graph::Handle;
use crate::protocol::Protocol;
use crate::task::then;
use crate::value::{Kind, Value};

impl<P: Protocol<D>, D: Domain> Computation<P, D> {
    /// [`Engine::edabit`](crate::engine::Engine::edabit).
    pub(super) fn edabits(&mut self, length: usize, n: usize) -> Result<(Handle, Vec<Handle>)> {
        self.need_binary()?;
        let d = self.shares.clone();
        if self.protocol.has_edabits() {
            self.graph.bind((length as u64) << 48 ^ n as u64);
            self.protocol.need_edabits(&d, length, n);
            self.preprocess()?;
            let taken = self.protocol.take_edabits(&d, length, n);
            let (elements, rows) = self.graph.note_failure(taken)?;
            let number = self.graph.insert(Value::Secret(elements), Kind::Secret, n);
            let row = |bits| {
                self.graph
                    .insert(Value::SecretBits(bits), Kind::SecretBits, n)
            };
            return Ok((number, rows.into_iter().map(row).collect()));
        }
        let rows = (0..length)
            .map(|_| self.random_bits(n))
            .collect::<Result<Vec<_>>>()?;
        let two = self.clear(&[2]);
        let mut number = self.clear(&vec![0; n]);
        for row in rows.iter().rev() {
            let bit = self.bits_as_elements(row)?;
            number = self.product(&number, &two)?;
            number = self.add(&number, &bit)?;
        }
        Ok((number, rows))
    }

    /// [`Engine::summand_bits`](crate::engine::Engine::summand_bits).
    pub(super) fn summands_in_bits(&mut self, a: &Handle, m: usize) -> Result<Vec<Vec<Handle>>> {
        self.need_binary()?;
        if self.summands() == 0 {
            return Err(EngineError::usage(
                "split_to_n_summands works modulo 2^k on replicated or additive shares only",
            ));
        }
        let n = a.size();
        let value = self.forced(a, false)?;
        let Value::Secret(share) = &*value else {
            return Err(wrong("split_to_n_summands", a));
        };
        let rows = self.protocol.summand_bits(&self.shares, share, m)?;
        Ok(rows
            .into_iter()
            .map(|summand| {
                summand
                    .into_iter()
                    .map(|bits| {
                        self.graph
                            .insert(Value::SecretBits(bits), Kind::SecretBits, n)
                    })
                    .collect()
            })
            .collect())
    }

    /// [`Engine::bit_to_arith`](crate::engine::Engine::bit_to_arith).
    pub(super) fn bits_as_elements(&mut self, bits: &Handle) -> Result<Handle> {
        self.need_binary()?;
        if bits.kind() != Kind::SecretBits {
            return Err(wrong("bit_to_arith", bits));
        }
        let d = self.shares.clone();
        let n = bits.size();
        self.communicate(&[bits], Kind::Secret, n, move |p, inputs| {
            match inputs.first().map(|v| &**v) {
                Some(Value::SecretBits(x)) => Ok(then(p.bit_to_arith(&d, x, n)?, |_, share| {
                    Ok(Value::Secret(share))
                })),
                _ => mismatch(),
            }
        })
    }
}
