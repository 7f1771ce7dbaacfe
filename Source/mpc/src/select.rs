//! Shapes of vectors: broadcast, packed bits, selection and assignment by index.

use std::sync::Arc;

use keyquorum_math::{Element, mask_of};

use crate::error::{EngineError, Result};
use crate::protocol::lanes;
use crate::value::Share;

/// The error for an index outside a vector: the sizes of handles were compared before.
pub(crate) fn outside() -> EngineError {
    EngineError::internal("a vector of another size than its handle says")
}

/// Copies a vector of `n` elements, or repeats its only element.
pub(crate) fn spread<E: Copy>(v: &[E], n: usize) -> Result<Vec<E>> {
    match v {
        [one] if n != 1 => Ok(vec![*one; n]),
        _ if v.len() == n => Ok(v.to_vec()),
        _ => Err(outside()),
    }
}

pub(crate) fn spread_share<E: Element>(share: &Share<E>, n: usize) -> Result<Share<E>> {
    share.try_map(|part| spread(part, n))
}

pub(crate) fn spread_lanes(v: &[u64], size: usize, n: usize) -> Result<Vec<u64>> {
    if size == 1 && n != 1 {
        let bit = v.first().ok_or_else(outside)?;
        Ok(vec![mask_of(*bit); lanes(n)])
    } else if v.len() == lanes(n) {
        Ok(v.to_vec())
    } else {
        Err(outside())
    }
}

fn bit_at(v: &[u64], i: usize) -> Result<u64> {
    let lane = v.get(i / 64).ok_or_else(outside)?;
    Ok((lane >> (i % 64)) & 1)
}

/// Packed bits at the `n` indices of an iterator.
fn pick_bits(v: &[u64], mut indices: impl Iterator<Item = usize>, n: usize) -> Result<Vec<u64>> {
    let mut out = vec![0u64; lanes(n)];
    for (lane, first) in out.iter_mut().zip((0..n).step_by(64)) {
        for to in 0..(n - first).min(64) {
            *lane |= bit_at(v, indices.next().ok_or_else(outside)?)? << to;
        }
    }
    Ok(out)
}

/// Packed bits `start..start + n`.
fn bit_range(v: &[u64], start: usize, n: usize) -> Result<Vec<u64>> {
    let shift = start % 64;
    let used = v.get(start / 64..lanes(start + n)).ok_or_else(outside)?;
    // Beyond the lanes that hold our bits there are none.
    let next = used.iter().skip(1).chain([&0]);
    let mut out: Vec<u64> = used
        .iter()
        .zip(next)
        .take(lanes(n))
        .map(|(low, high)| match shift {
            0 => *low,
            _ => low >> shift | high << (64 - shift),
        })
        .collect();
    mask_tail(&mut out, n)?;
    Ok(out)
}

/// Clears the bits past `n`, in as many lanes as `n` bits have.
pub(crate) fn mask_tail(v: &mut [u64], n: usize) -> Result<()> {
    if v.len() != lanes(n) {
        return Err(outside());
    }
    if !n.is_multiple_of(64) {
        *v.last_mut().ok_or_else(outside)? &= (1u64 << (n % 64)) - 1;
    }
    Ok(())
}

/// Appends `n` bits to a packed vector of `at` bits.
pub(crate) fn append_bits(out: &mut Vec<u64>, at: usize, v: &[u64], n: usize) -> Result<()> {
    if out.len() != lanes(at) {
        return Err(outside());
    }
    out.resize(lanes(at + n), 0);
    let shift = at % 64;
    let mut carry = 0;
    let mut words = bit_range(v, 0, n)?.into_iter();
    // The last lane may have nothing but what the word before had too much.
    for slot in out.iter_mut().skip(at / 64) {
        let word = words.next().unwrap_or(0);
        *slot |= word << shift | carry;
        carry = if shift == 0 { 0 } else { word >> (64 - shift) };
    }
    Ok(())
}

/// Adds `n` bits of a packed vector, from bit `start` on, to those of another one from bit `at` on, which are zeros.
pub(crate) fn copy_bits(
    from: &[u64],
    start: usize,
    to: &mut [u64],
    at: usize,
    n: usize,
) -> Result<()> {
    let from = from.get(start / 64..lanes(start + n)).ok_or_else(outside)?;
    let to = to.get_mut(at / 64..lanes(at + n)).ok_or_else(outside)?;
    let (skip, shift) = (start % 64, at % 64);
    if skip == 0 && shift == 0 && n.is_multiple_of(64) {
        to.copy_from_slice(from);
        return Ok(());
    }
    let words = lanes(n);
    let mut high = 0;
    let mut slots = to.iter_mut();
    for i in 0..words {
        let mut word = from.get(i).ok_or_else(outside)? >> skip;
        if skip > 0 {
            word |= from.get(i + 1).unwrap_or(&0) << (64 - skip);
        }
        if i + 1 == words && !n.is_multiple_of(64) {
            word &= (1 << (n % 64)) - 1;
        }
        *slots.next().ok_or_else(outside)? |= word << shift | high;
        high = if shift == 0 { 0 } else { word >> (64 - shift) };
    }
    if let Some(slot) = slots.next() {
        *slot |= high;
    }
    Ok(())
}

/// Refuses an arithmetic progression of indices that leaves the vector.
pub(crate) fn check_progression(start: i64, step: i64, count: usize, size: usize) -> Result<()> {
    let last = start as i128 + step as i128 * (count.max(1) as i128 - 1);
    let bad = |i: i128| i < 0 || i >= size as i128;
    if count > 0 && (bad(start as i128) || bad(last)) {
        return Err(EngineError::usage(format!(
            "index range {start}..={last} by {step} leaves the vector of size {size}"
        )));
    }
    Ok(())
}

/// The indices of a progression that [`check_progression`] accepts.
pub(crate) fn progression(start: i64, step: i64, count: usize) -> Result<Vec<usize>> {
    (0..count)
        .map(|i| {
            let index = start as i128 + step as i128 * i as i128;
            usize::try_from(index).map_err(|_| outside())
        })
        .collect()
}

pub(crate) fn checked_indices(indices: &[i64], size: usize) -> Result<Vec<usize>> {
    indices
        .iter()
        .map(|i| {
            usize::try_from(*i)
                .ok()
                .filter(|i| *i < size)
                .ok_or_else(|| {
                    EngineError::usage(format!("index {i} leaves the vector of size {size}"))
                })
        })
        .collect()
}

/// From the first to the last index of a progression.
fn span(start: usize, step: usize, count: usize) -> std::ops::Range<usize> {
    match count.checked_sub(1) {
        Some(steps) => start..start + steps * step + 1,
        None => start..start,
    }
}

/// Selection of elements.
#[derive(Clone)]
pub(crate) enum Picker {
    /// start, step ≥ 1, count.
    Forward(usize, usize, usize),
    List(Arc<Vec<usize>>),
}

impl Picker {
    pub fn elements<E: Copy>(&self, v: &[E]) -> Result<Vec<E>> {
        match self {
            Self::Forward(start, step, n) => {
                let span = v.get(span(*start, *step, *n)).ok_or_else(outside)?;
                Ok(match step {
                    1 => span.to_vec(),
                    _ => span.iter().step_by(*step).copied().collect(),
                })
            }
            Self::List(list) => list
                .iter()
                .map(|i| v.get(*i).copied().ok_or_else(outside))
                .collect(),
        }
    }

    pub fn bits(&self, v: &[u64]) -> Result<Vec<u64>> {
        match self {
            Self::Forward(start, 1, n) => bit_range(v, *start, *n),
            Self::Forward(start, step, n) => pick_bits(v, (0..*n).map(|i| start + i * step), *n),
            Self::List(list) => pick_bits(v, list.iter().copied(), list.len()),
        }
    }
}

/// Where an assignment puts its values.
pub(crate) enum Targets {
    /// start, step ≥ 1, count.
    Forward(usize, usize, usize),
    List(Vec<usize>),
}

impl Targets {
    pub fn count(&self) -> usize {
        match self {
            Self::Forward(_, _, count) => *count,
            Self::List(list) => list.len(),
        }
    }

    /// Stores a vector, or its only element everywhere.
    pub fn put<E: Copy>(&self, to: &mut [E], from: &[E]) -> Result<()> {
        if from.len() != 1 && from.len() != self.count() {
            return Err(outside());
        }
        match (self, from) {
            (Self::Forward(start, step, count), from) => {
                let span = to.get_mut(span(*start, *step, *count));
                let span = span.ok_or_else(outside)?;
                match (step, from) {
                    (1, from) if from.len() == span.len() => span.copy_from_slice(from),
                    (step, [one]) => span.iter_mut().step_by(*step).for_each(|v| *v = *one),
                    (step, from) => {
                        let slots = span.iter_mut().step_by(*step);
                        slots.zip(from).for_each(|(slot, v)| *slot = *v);
                    }
                }
            }
            (Self::List(list), [one]) => {
                for i in list {
                    *to.get_mut(*i).ok_or_else(outside)? = *one;
                }
            }
            (Self::List(list), from) => {
                for (i, v) in list.iter().zip(from) {
                    *to.get_mut(*i).ok_or_else(outside)? = *v;
                }
            }
        }
        Ok(())
    }

    /// Stores packed bits, or one bit everywhere.
    pub fn put_bits(&self, to: &mut [u64], from: &[u64], single: bool) -> Result<()> {
        let mut one = |k: usize, i: usize| {
            let bit = bit_at(from, if single { 0 } else { k })?;
            let lane = to.get_mut(i / 64).ok_or_else(outside)?;
            *lane = (*lane & !(1 << (i % 64))) | (bit << (i % 64));
            Ok(())
        };
        match self {
            Self::Forward(start, step, count) => {
                (0..*count).try_for_each(|k| one(k, start + k * step))
            }
            Self::List(list) => list.iter().enumerate().try_for_each(|(k, i)| one(k, *i)),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_internal<T>(result: &Result<T>) -> bool {
        matches!(result, Err(EngineError::Internal(_)))
    }

    #[test]
    fn missing_parts_blocked_a_vector_shorter_than_its_handle_gives_no_zeros() {
        let list = |list: &[usize]| Picker::List(Arc::new(list.to_vec()));
        for picker in [
            Picker::Forward(0, 1, 65),
            Picker::Forward(1, 32, 3),
            Picker::Forward(65, 1, 0),
            list(&[64]),
        ] {
            assert!(is_internal(&picker.elements(&[1u64; 64])));
            assert!(is_internal(&picker.bits(&[1])) || matches!(picker, Picker::Forward(_, _, 0)));
        }
        assert!(is_internal(&spread(&[1u64, 2], 3)));
        assert!(is_internal(&spread_lanes(&[], 1, 64)));
        assert!(is_internal(&spread_lanes(&[1], 65, 65)));
        let (mut to, mut bits) = ([0u64; 4], [0u64; 1]);
        for targets in [Targets::Forward(2, 1, 3), Targets::List(vec![0, 1, 4])] {
            assert!(is_internal(&targets.put(&mut to, &[1, 2, 3])));
            assert!(is_internal(&targets.put(&mut to, &[1, 2])));
        }
        assert!(is_internal(&Targets::List(vec![64]).put_bits(
            &mut bits,
            &[1],
            true
        )));
        assert!(is_internal(&Targets::Forward(0, 1, 2).put_bits(
            &mut bits,
            &[],
            false
        )));
        assert!(is_internal(&append_bits(&mut vec![], 0, &[], 1)));
        assert!(is_internal(&mask_tail(&mut [1], 65)));
        assert!(is_internal(&mask_tail(&mut [1, 1], 64)));
        assert!(is_internal(&mask_tail(&mut [], 1)));
        let mut lanes = [!0, !0];
        mask_tail(&mut lanes, 66).unwrap();
        assert_eq!(lanes, [!0, 3]);
        assert!(is_internal(&append_bits(&mut vec![], 1, &[1], 1)));
    }

    proptest! {
        /// What is picked, stored and appended is what a list of bits says.
        #[test]
        fn packed_bits_agree_with_lists(
            v in prop::collection::vec(0u8..2, 1..300),
            w in prop::collection::vec(0u8..2, 0..300),
            a in 0usize..300, b in 0usize..300, step in 1usize..70,
        ) {
            use keyquorum_math::bits::{pack, unpack};
            let start = a % v.len();
            let count = b % ((v.len() - start).div_ceil(step) + 1);
            let wanted: Vec<u8> = v.iter().skip(start).step_by(step).take(count).copied().collect();
            let picker = Picker::Forward(start, step, count);
            prop_assert_eq!(&unpack(&picker.bits(&pack(&v)).unwrap(), count).unwrap(), &wanted);
            prop_assert_eq!(&picker.elements(&v).unwrap(), &wanted);
            let mut both = pack(&v);
            append_bits(&mut both, v.len(), &pack(&w), w.len()).unwrap();
            prop_assert_eq!(both.len(), lanes(v.len() + w.len()));
            prop_assert_eq!(unpack(&both, v.len() + w.len()).unwrap(), [v.clone(), w.clone()].concat());
            let mut copied = pack(&vec![0; w.len() + v.len()]);
            copy_bits(&pack(&v), start, &mut copied, w.len(), v.len() - start).unwrap();
            let mut expected = vec![0; w.len() + v.len()];
            expected[w.len()..w.len() + v.len() - start].copy_from_slice(&v[start..]);
            prop_assert_eq!(unpack(&copied, w.len() + v.len()).unwrap(), expected);
            let mut to = vec![2; v.len()];
            Targets::Forward(start, step, count).put(&mut to, &wanted).unwrap();
            let back: Vec<u8> = to.iter().skip(start).step_by(step).take(count).copied().collect();
            prop_assert_eq!(back, wanted);
            prop_assert_eq!(to.iter().filter(|v| **v != 2).count(), count);
        }
    }
}
