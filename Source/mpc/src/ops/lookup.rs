//! Values of a public table at secret positions, from one-hot vectors.
//!
//! With y = x ⊕ r in the clear, entry v ⊕ y of the one-hot vector of r is [x = v]. Bit j of the value is the sum of the entries at which the table has
//! it: a linear map with public coefficients. Modulo 2 the entries are packed, and a sum is the parity of some words.

use keyquorum_math::{Domain, DomainKind, Element, bits};
use zeroize::Zeroizing;

use super::{Computation, mismatch, wrong};
use crate::error::{EngineError, Result};
use crate::graph::Handle;
use crate::protocol::Protocol;
use crate::select::outside;
use crate::value::{Kind, Value};

/// Vectors that are packed together.
const GROUP: usize = 64;

/// A table and positions: see [`Operation::Lookup`](crate::engine::Operation::Lookup).
struct Lookup {
    table: Vec<u64>,
    /// For each bit of a value the positions at which the table has it, packed.
    masks: Vec<Vec<u64>>,
    at: Vec<usize>,
    /// The first vector.
    first: usize,
    /// From an entry of a vector to the next.
    step: usize,
}

impl<P: Protocol<D>, D: Domain> Computation<P, D> {
    /// [`Operation::Lookup`](crate::engine::Operation::Lookup).
    pub(super) fn looked_up(
        &mut self,
        hot: &Handle,
        at: &[i64],
        table: &[i64],
        bits: usize,
        first: usize,
    ) -> Result<Handle> {
        if hot.kind() != Kind::Secret {
            return Err(wrong("a table", hot));
        }
        let lookup = Lookup::new(hot.size(), at, table, bits, first)?;
        let (n, shares) = (at.len() * bits, self.shares.clone());
        self.local(&[hot], Kind::Secret, n, move |_, inputs| {
            let Some(Value::Secret(hot)) = inputs.first().map(|v| &**v) else {
                return mismatch();
            };
            let packs =
                shares.kind() == DomainKind::Z2k(1) && lookup.table.len().is_multiple_of(64);
            Ok(Value::Secret(hot.try_map(|part| match packs {
                true => lookup.parities(part),
                false => lookup.sums(&shares, part),
            })?))
        })
    }
}

impl Lookup {
    fn new(entries: usize, at: &[i64], table: &[i64], bits: usize, first: usize) -> Result<Self> {
        let n = table.len();
        if !n.is_power_of_two() || !(1..=64).contains(&bits) {
            return Err(EngineError::usage(
                "a table has a power of two of values, each of 1 to 64 bits",
            ));
        }
        let step = entries / n;
        let fits = first.checked_add(at.len()).is_some_and(|end| end <= step);
        if !fits || !entries.is_multiple_of(n) {
            return Err(EngineError::usage(format!(
                "{entries} entries are no one-hot vectors of {n} entries for the positions {first} to {}",
                first.saturating_add(at.len())
            )));
        }
        let table: Vec<u64> = table.iter().map(|value| *value as u64).collect();
        let has = |value: &u64, j: usize| (value >> j & 1) as u8;
        let row = |j| table.iter().map(|value| has(value, j)).collect::<Vec<u8>>();
        let masks = (0..bits).map(|j| bits::pack(&row(j))).collect();
        let at = at
            .iter()
            .map(|y| usize::try_from(*y).ok().filter(|y| *y < n));
        let at = at.collect::<Option<_>>();
        let at =
            at.ok_or_else(|| EngineError::usage(format!("a position is outside a table of {n}")))?;
        Ok(Self {
            table,
            masks,
            at,
            first,
            step,
        })
    }

    /// Stores the bits of the value of position i.
    fn put<E: Element>(
        &self,
        out: &mut [E],
        i: usize,
        value: impl Iterator<Item = E>,
    ) -> Result<()> {
        for (j, bit) in value.enumerate() {
            *out.get_mut(j * self.at.len() + i).ok_or_else(outside)? = bit;
        }
        Ok(())
    }

    /// In any domain: sums of elements.
    fn sums<D: Domain>(&self, domain: &D, hot: &[D::E]) -> Result<Vec<D::E>> {
        let bits = self.masks.len();
        let mut out = vec![domain.zero(); self.at.len() * bits];
        for (i, y) in self.at.iter().enumerate() {
            let mut sums = Zeroizing::new(vec![domain.zero(); bits]);
            for (v, value) in self.table.iter().enumerate() {
                let entry = hot.get((v ^ y) * self.step + self.first + i);
                let entry = entry.ok_or_else(outside)?;
                for (j, sum) in sums.iter_mut().enumerate() {
                    if value >> j & 1 == 1 {
                        *sum = domain.add(*sum, *entry);
                    }
                }
            }
            self.put(&mut out, i, sums.iter().copied())?;
        }
        Ok(out)
    }

    /// Modulo 2.
    fn parities<E: Element>(&self, hot: &[E]) -> Result<Vec<E>> {
        let mut out = vec![E::default(); self.at.len() * self.masks.len()];
        for (done, at) in (0..).step_by(GROUP).zip(self.at.chunks(GROUP)) {
            let mut packed = self.packed(hot, self.first + done, at.len())?;
            let vectors = packed.chunks_exact_mut(self.table.len() / 64);
            for (i, (vector, y)) in vectors.zip(at).enumerate() {
                exchange(vector, *y)?;
                let value = self.masks.iter().map(|mask| {
                    let words = vector.iter().zip(mask);
                    let folded = words.fold(0, |sum, (word, mask)| sum ^ (word & mask));
                    E::from_u128_wrapping(u128::from(folded.count_ones() & 1))
                });
                self.put(&mut out, done + i, value)?;
            }
        }
        Ok(out)
    }

    /// The entries of `count` vectors of a group, packed, one vector after another.
    fn packed<E: Element>(
        &self,
        hot: &[E],
        first: usize,
        count: usize,
    ) -> Result<Zeroizing<Vec<u64>>> {
        let words = self.table.len() / 64;
        let mut out = Zeroizing::new(vec![0; count * words]);
        for q in 0..words {
            let mut matrix = Zeroizing::new([0u64; 64]);
            for (v, row) in matrix.iter_mut().enumerate() {
                let start = (64 * q + v) * self.step + first;
                let part = hot.get(start..start + count).ok_or_else(outside)?;
                for (i, entry) in part.iter().enumerate() {
                    *row |= (entry.to_u128() as u64 & 1) << i;
                }
            }
            bits::transpose(&mut matrix);
            for (vector, row) in out.chunks_exact_mut(words).zip(matrix.iter()) {
                *vector.get_mut(q).ok_or_else(outside)? = *row;
            }
        }
        Ok(out)
    }
}

/// Moves bit v to v ⊕ y, for all v.
fn exchange(vector: &mut [u64], y: usize) -> Result<()> {
    let low = y % 64;
    for word in vector.iter_mut() {
        for (b, mask) in HALVES.iter().enumerate() {
            if low >> b & 1 == 1 {
                let shift = 1 << b;
                *word = (*word >> shift & mask) | (*word & mask) << shift;
            }
        }
    }
    let high = y / 64;
    for i in 0..vector.len() {
        if i < i ^ high {
            if i ^ high >= vector.len() {
                return Err(outside());
            }
            vector.swap(i, i ^ high);
        }
    }
    Ok(())
}

/// The bits whose position has a 0 at place b.
const HALVES: [u64; 6] = [
    0x5555_5555_5555_5555,
    0x3333_3333_3333_3333,
    0x0f0f_0f0f_0f0f_0f0f,
    0x00ff_00ff_00ff_00ff,
    0x0000_ffff_0000_ffff,
    0x0000_0000_ffff_ffff,
];

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use keyquorum_math::Z2k64;

    use super::*;

    fn looked_up(n: usize, bits: usize, first: usize, count: usize, rest: usize) {
        let table: Vec<i64> = (0..n)
            .map(|v| (v * v * 7 + v / 3) as i64 & ((1 << bits) - 1))
            .collect();
        let step = first + count + rest;
        let r: Vec<usize> = (0..count).map(|i| (i * 37 + 5) % n).collect();
        let x: Vec<usize> = (0..count).map(|i| (i * 101 + i / 7) % n).collect();
        let at: Vec<i64> = r.iter().zip(&x).map(|(r, x)| (r ^ x) as i64).collect();
        let mut hot = vec![1u64; step * n];
        let mut wanted = vec![0u64; count * bits];
        for i in 0..count {
            for v in 0..n {
                hot[v * step + first + i] = u64::from(v == r[i]);
            }
            for j in 0..bits {
                wanted[j * count + i] = table[x[i]] as u64 >> j & 1;
            }
        }
        let lookup = Lookup::new(hot.len(), &at, &table, bits, first).unwrap();
        let ring = Z2k64::new(1).unwrap();
        assert_eq!(lookup.sums(&ring, &hot).unwrap(), wanted);
        if n.is_multiple_of(64) {
            assert_eq!(lookup.parities(&hot).unwrap(), wanted);
        }
    }

    #[test]
    fn values_are_those_of_the_table() {
        for (n, bits) in [(256, 8), (64, 3), (16, 4), (128, 12), (2, 1)] {
            for (first, count, rest) in [(0, 300, 0), (3, 1, 5), (17, 64, 0), (0, 65, 1)] {
                looked_up(n, bits, first, count, rest);
            }
        }
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        let refused = |entries, at: &[i64], table: &[i64], bits, first| {
            let made = Lookup::new(entries, at, table, bits, first);
            matches!(made, Err(EngineError::Usage(_)))
        };
        assert!(!refused(4, &[0], &[1, 2], 2, 1));
        assert!(refused(3, &[0], &[1, 2, 3], 2, 0));
        assert!(refused(4, &[0], &[1, 2], 2, 2) && refused(5, &[0], &[1, 2], 2, 0));
        assert!(refused(4, &[0], &[1, 2], 2, usize::MAX));
        assert!(refused(4, &[2], &[1, 2], 2, 0) && refused(4, &[-1], &[1, 2], 2, 0));
        assert!(refused(4, &[0], &[1, 2], 0, 0) && refused(4, &[0], &[1, 2], 65, 0));
        assert!(refused(0, &[], &[], 1, 0));
    }
}
