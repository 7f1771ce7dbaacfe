//! The operations of [`Engine`], each by the function that does it.

use std::sync::Arc;

use keyquorum_math::{Domain, DomainKind, Element};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::Computation;
use crate::engine::{Engine, Operands, Operation};
use crate::error::{EngineError, Result};
use crate::graph::{EngineStats, Handle};
use crate::protocol::{BitProtocol, Preprocessed, Protocol, lanes};
use crate::select::*;
use crate::task::{Step, then, within};
use crate::value::{Kind, Value};

impl<P: Protocol<D>, D: Domain> Engine for Computation<P, D> {
    fn domain(&self) -> DomainKind {
        self.domain.kind()
    }

    fn party(&self) -> (usize, usize) {
        self.protocol.party()
    }

    fn threshold(&self) -> usize {
        self.threshold
    }

    fn has_binary(&self) -> bool {
        self.protocol.has_binary()
    }

    fn has_edabits(&self) -> bool {
        self.protocol.has_edabits()
    }

    fn summands(&self) -> usize {
        if matches!(self.domain.kind(), DomainKind::Z2k(_)) {
            self.protocol.summands()
        } else {
            0
        }
    }

    fn share_parts(&self) -> usize {
        self.protocol.parts()
    }

    fn element_bytes(&self) -> usize {
        D::E::BYTES
    }

    fn mac_key(&self) -> Option<u128> {
        self.protocol.mac_key()
    }

    fn insecure(&self) -> bool {
        self.insecure
    }

    fn clear(&mut self, values: &[i64]) -> Handle {
        let v: Vec<D::E> = values.iter().map(|v| self.domain.from_i64(*v)).collect();
        let n = v.len();
        self.graph.insert(Value::Clear(v), Kind::Clear, n)
    }

    fn clear_wide(&mut self, values: &[i128]) -> Handle {
        let d = &self.domain;
        let v: Vec<D::E> = values
            .iter()
            .map(|v| {
                if *v < 0 {
                    d.neg(d.from_u128(v.unsigned_abs()))
                } else {
                    d.from_u128(*v as u128)
                }
            })
            .collect();
        let n = v.len();
        self.graph.insert(Value::Clear(v), Kind::Clear, n)
    }

    fn clear_words(&mut self, values: &[u64]) -> Handle {
        let v: Vec<D::E> = values
            .iter()
            .map(|v| self.domain.from_u128(u128::from(*v)))
            .collect();
        let n = v.len();
        self.graph.insert(Value::Clear(v), Kind::Clear, n)
    }

    fn has_shuffle(&self) -> bool {
        self.protocol.has_shuffle()
    }

    fn apply(&mut self, operation: &Operation, operands: Operands<'_>) -> Result<Vec<Handle>> {
        use Operation as Op;
        let Operands {
            target,
            values,
            numbers,
        } = operands;
        let made = match (operation, target, values, numbers) {
            (Op::Clear, None, [], [numbers]) => self.clear(numbers),
            (Op::ClearBits, None, [], [numbers]) => self.clear_bits(&bytes(numbers)),
            (Op::Add, None, [a, b], []) => self.linear(a, b, false)?,
            (Op::Sub, None, [a, b], []) => self.linear(a, b, true)?,
            (Op::Mul, None, [a, b], []) => self.product(a, b)?,
            (Op::Neg, None, [a], []) => self.negative(a)?,
            (Op::Dot(length), None, [a, b], []) => self.inner_products(a, b, *length)?,
            (
                Op::MatrixProduct {
                    rows,
                    inner,
                    columns,
                },
                None,
                [a, b],
                [],
            ) => self.matrices(a, b, (*rows, *inner, *columns))?,
            (Op::Negacyclic, None, [a, s], []) => self.negacyclic_products(a, s)?,
            (Op::Transform(n), None, [a], []) => self.transforms(a, *n)?,
            (Op::BitProducts(shift), None, [bits, v], []) => {
                self.weighted_bit_products(bits, v, *shift)?
            }
            (Op::Sum(length), None, [a], []) => self.sums(a, *length)?,
            (Op::Gather, None, [a], [indices]) => {
                let list = checked_indices(indices, a.size())?;
                let n = list.len();
                self.pick(a, Picker::List(Arc::new(list)), n)?
            }
            (Op::Slice { start, step, count }, None, [a], []) => {
                self.progression_of(a, *start, *step, *count)?
            }
            (Op::Concat, None, list, []) => self.joined(list)?,
            (Op::Repeat(n), None, [a], []) => self.filled(a, *n)?,
            (Op::Assign { start, step }, Some(a), [b], []) => {
                check_progression(*start, *step, b.size(), a.size())?;
                let targets = if *step >= 1 {
                    Targets::Forward(*start as usize, *step as usize, b.size())
                } else {
                    Targets::List(progression(*start, *step, b.size())?)
                };
                self.store(a, targets, b)?
            }
            (Op::Scatter, Some(a), [b], [indices]) => {
                let indices = checked_indices(indices, a.size())?;
                self.store(a, Targets::List(indices), b)?
            }
            (Op::Open, None, [a], []) => self.opened(a)?,
            (Op::OpenLow(bits), None, [a], []) => self.opened_low(a, *bits, false)?,
            (Op::OpenMasked(bits), None, [a], []) => self.opened_low(a, *bits, true)?,
            (Op::OpenTo(receiver), None, [a], []) => self.opened_to(a, *receiver)?,
            (Op::Input { owner, count }, None, [], given @ ([] | [_])) => {
                self.elements_of(*owner, *count, given.first().copied())?
            }
            (Op::InputBits { owner, count }, None, [], given @ ([] | [_])) => {
                self.bits_of(*owner, *count, given.first().copied())?
            }
            (Op::Random(n), None, [], []) => self.random_elements(*n)?,
            (Op::RandomBit(n), None, [], []) => self.random_bit_elements(*n)?,
            (Op::RandomBits(n), None, [], []) => self.random_packed_bits(*n)?,
            (Op::BitToArith, None, [bits], []) => self.bits_as_elements(bits)?,
            (Op::Edabit { length, count }, None, [], []) => {
                let (number, bits) = self.edabits(*length, *count)?;
                return Ok([number].into_iter().chain(bits).collect());
            }
            (Op::Shuffle(unit), None, [a], []) => self.shuffled(a, *unit)?,
            (Op::SummandBits(m), None, [a], []) => {
                let summands = self.summands_in_bits(a, *m)?;
                return Ok(summands.into_iter().flatten().collect());
            }
            (Op::Xor, None, [a, b], []) => self.bitwise(a, b, false)?,
            (Op::And, None, [a, b], []) => self.bitwise(a, b, true)?,
            (Op::Not, None, [a], []) => {
                let ones = self.clear_bits(&[1]);
                self.bitwise(a, &ones, false)?
            }
            (
                Op::Circuit {
                    circuit,
                    size,
                    copies,
                },
                None,
                inputs,
                [],
            ) => self.evaluated(circuit, inputs, *size, *copies)?,
            (Op::Lookup { bits, first }, None, [hot], [at, table]) => {
                self.looked_up(hot, at, table, *bits, *first)?
            }
            (Op::ClearInteger(op), None, [a, b], []) => self.integers(*op, a, b)?,
            (Op::ClearLegendre, None, [a], []) => self.legendre_symbols(a)?,
            (Op::ClearInv, None, [a], []) => self.inverses(a)?,
            _ => return Err(EngineError::usage("an operation has other operands")),
        };
        Ok(vec![made])
    }

    fn clear_bits(&mut self, bits: &[u8]) -> Handle {
        self.graph.insert(
            Value::ClearBits(keyquorum_math::bits::pack(bits)),
            Kind::ClearBits,
            bits.len(),
        )
    }

    fn read(&mut self, a: &Handle) -> Result<Vec<u64>> {
        if self.domain.bits() > 64 {
            return Err(EngineError::usage(
                "words of more than 64 bits: use read_wide",
            ));
        }
        Ok(self
            .read_elements(a)?
            .into_iter()
            .map(|v| v.to_u128() as u64)
            .collect())
    }

    fn read_wide(&mut self, a: &Handle) -> Result<Vec<u128>> {
        Ok(self
            .read_elements(a)?
            .into_iter()
            .map(Element::to_u128)
            .collect())
    }

    fn read_bits(&mut self, a: &Handle) -> Result<Vec<u8>> {
        match &*self.forced(a, true)? {
            Value::ClearBits(v) => Ok(keyquorum_math::bits::unpack(v, a.size())?),
            _ => Err(EngineError::usage(
                "a secret value cannot be read: reveal it first",
            )),
        }
    }

    fn export(&mut self, a: &Handle) -> Result<Vec<u8>> {
        self.exported(a)
    }

    fn import(&mut self, data: &[u8], n: usize) -> Result<Handle> {
        self.imported(data, n)
    }

    fn origin(&mut self) -> Result<Zeroizing<Vec<u8>>> {
        self.made_origin()
    }

    fn renew_origin(&mut self) -> Result<Zeroizing<Vec<u8>>> {
        self.renewed_origin()
    }

    fn check_origin(&mut self, origin: &[u8]) -> Result<()> {
        self.checked_origin(origin)
    }

    fn bind_context(&mut self, text: &[u8]) {
        let digest: [u8; 32] = Sha256::digest(text).into();
        let [a, b, c, d, e, f, g, h, ..] = digest;
        self.graph
            .bind(u64::from_le_bytes([a, b, c, d, e, f, g, h]));
    }

    fn defer_checks(&mut self, deferred: bool) -> Result<()> {
        self.flush()?;
        self.protocol.defer_checks(deferred);
        Ok(())
    }

    fn give_random(&mut self, data: &[u8], n: usize) -> Result<()> {
        let share = self.given(data, n)?;
        self.protocol.give_random(share)
    }

    fn give_mask(&mut self, owner: usize, data: &[u8], known: &[u64]) -> Result<()> {
        let share = self.given(data, known.len())?;
        let known = known.iter().map(|v| self.shares.from_u128((*v).into()));
        let known = known.collect();
        self.protocol.give_mask(owner, share, known)
    }

    fn flush(&mut self) -> Result<()> {
        let before = self.graph.stats.rounds;
        let mut inner = self.session.lock()?;
        let result = self.graph.flush(&mut self.protocol, inner.net.as_mut());
        let result = result.and_then(|()| {
            self.graph
                .verify(&mut self.protocol, inner.net.as_mut(), false)
        });
        drop(inner);
        self.session
            .count_rounds(self.graph.stats.rounds - before)?;
        result
    }

    fn preprocessed(&self) -> Vec<Preprocessed> {
        self.protocol.preprocessed()
    }

    fn stats(&self) -> EngineStats {
        self.graph.stats
    }
}

/// Lowest bytes of numbers.
fn bytes(numbers: &[i64]) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(numbers.iter().map(|n| *n as u8).collect())
}

impl<P: Protocol<D>, D: Domain> Computation<P, D> {
    fn progression_of(
        &mut self,
        a: &Handle,
        start: i64,
        step: i64,
        count: usize,
    ) -> Result<Handle> {
        check_progression(start, step, count, a.size())?;
        let list = if step >= 1 || count == 0 {
            Picker::Forward(start.max(0) as usize, step.max(1) as usize, count)
        } else {
            Picker::List(Arc::new(progression(start, step, count)?))
        };
        self.pick(a, list, count)
    }

    fn elements_of(&mut self, owner: usize, n: usize, given: Option<&[i64]>) -> Result<Handle> {
        self.check_input(owner, n, given.map(<[i64]>::len))?;
        let (d, shares) = (self.domain.clone(), self.shares.clone());
        let values = given.map(|v| v.iter().map(|x| d.from_i64(*x)).collect::<Vec<_>>());
        self.communicate(&[], Kind::Secret, n, move |p, _| {
            Ok(then(p.input(&shares, owner, n, values)?, |_, share| {
                Ok(Value::Secret(share))
            }))
        })
    }

    fn bits_of(&mut self, owner: usize, n: usize, given: Option<&[i64]>) -> Result<Handle> {
        self.need_binary()?;
        self.check_input(owner, n, given.map(<[i64]>::len))?;
        let values = given.map(|bits| keyquorum_math::bits::pack(&bytes(bits)));
        self.communicate(&[], Kind::SecretBits, n, move |p, _| {
            let task = p.bits()?.input_bits(owner, lanes(n), values)?;
            Ok(then(within(task, P::bits), |_, share| {
                Ok(Value::SecretBits(share))
            }))
        })
    }

    fn random_elements(&mut self, n: usize) -> Result<Handle> {
        self.graph.refuse_after_failure()?;
        let drawn = self.protocol.random(&self.shares, n);
        match self.graph.note_failure(drawn)? {
            Step::Done(share) => Ok(self.graph.insert(Value::Secret(share), Kind::Secret, n)),
            Step::Next(task) => self.communicate(&[], Kind::Secret, n, |_, _| {
                Ok(then(task, |_, share| Ok(Value::Secret(share))))
            }),
        }
    }

    fn random_bit_elements(&mut self, n: usize) -> Result<Handle> {
        let d = self.shares.clone();
        self.communicate(&[], Kind::Secret, n, move |p, _| {
            Ok(then(p.random_bit(&d, n)?, |_, share| {
                Ok(Value::Secret(share))
            }))
        })
    }

    fn random_packed_bits(&mut self, n: usize) -> Result<Handle> {
        self.graph.refuse_after_failure()?;
        let drawn = self.protocol.bits()?.random_bits(lanes(n));
        match self.graph.note_failure(drawn)? {
            Step::Done(share) => {
                let value = Value::SecretBits(share);
                Ok(self.graph.insert(value, Kind::SecretBits, n))
            }
            Step::Next(task) => self.communicate(&[], Kind::SecretBits, n, |_, _| {
                Ok(then(within(task, P::bits), |_, share| {
                    Ok(Value::SecretBits(share))
                }))
            }),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use std::time::Duration;

    use keyquorum_math::Z2k64;
    use keyquorum_net::local_mesh;

    use super::*;
    use crate::protocol::Shamir;
    use crate::session::Session;

    /// Streams in common with other parties may be out of step afterwards.
    #[test]
    fn nothing_follows_a_draw_that_failed() {
        let net = local_mesh(1, Duration::from_secs(20)).pop().unwrap();
        let session = Session::new(Box::new(net)).unwrap();
        let party = Shamir::new(0, 1, 0, vec![None], Vec::new()).unwrap();
        let ring = Z2k64::new(8).unwrap();
        let mut engine = Computation::new(session, party, (ring, ring), 0, true);
        let first = engine.random_elements(1).err().unwrap().to_string();
        let clear = engine.clear(&[1]);
        let later = engine.negative(&clear).err().unwrap().to_string();
        assert!(later.contains("failed before") && later.contains(&first));
    }
}
