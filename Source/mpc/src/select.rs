//! Shapes of vectors: broadcast, packed bits, selection and assignment by index.

use std::sync::Arc;

use keyquorum_math::Element;

use crate::error::{EngineError, Result};
use crate::protocol::lanes;
use crate::value::Share;

/// Copies a vector, or repeats its only element.
pub(crate) fn spread<E: Copy>(v: &[E], n: usize) -> Vec<E> {
    match v {
        [one] if n != 1 => vec![*one; n],
        _ => v.to_vec(),
    }
}

pub(crate) fn spread_share<E: Element>(share: &Share<E>, n: usize) -> Share<E> {
    share.map(|part| spread(part, n))
}

pub(crate) fn spread_lanes(v: &[u64], size: usize, n: usize) -> Vec<u64> {
    if size == 1 && n != 1 {
        let bit = v.first().map_or(0, |w| w & 1);
        vec![0u64.wrapping_sub(bit); lanes(n)]
    } else {
        v.to_vec()
    }
}

pub(crate) fn bit_at(v: &[u64], i: usize) -> u64 {
    v.get(i / 64).map_or(0, |w| (w >> (i % 64)) & 1)
}

/// Packed bits at the indices of an iterator.
pub(crate) fn pick_bits(v: &[u64], indices: impl Iterator<Item = usize>, n: usize) -> Vec<u64> {
    let mut out = vec![0u64; lanes(n)];
    for (to, from) in indices.take(n).enumerate() {
        if let Some(lane) = out.get_mut(to / 64) {
            *lane |= bit_at(v, from) << (to % 64);
        }
    }
    out
}

/// Packed bits `start..start + n`.
pub(crate) fn bit_range(v: &[u64], start: usize, n: usize) -> Vec<u64> {
    let shift = start % 64;
    let mut out: Vec<u64> = (0..lanes(n))
        .map(|i| {
            let at = start / 64 + i;
            let low = v.get(at).copied().unwrap_or(0) >> shift;
            let high = if shift == 0 {
                0
            } else {
                v.get(at + 1).copied().unwrap_or(0) << (64 - shift)
            };
            low | high
        })
        .collect();
    mask_tail(&mut out, n);
    out
}

/// Clears the bits past `n`.
pub(crate) fn mask_tail(v: &mut [u64], n: usize) {
    if !n.is_multiple_of(64)
        && let Some(last) = v.get_mut(n / 64)
    {
        *last &= (1u64 << (n % 64)) - 1;
    }
}

/// Appends `n` bits to a packed vector of `at` bits.
pub(crate) fn append_bits(out: &mut Vec<u64>, at: usize, v: &[u64], n: usize) {
    out.resize(lanes(at + n), 0);
    let shift = at % 64;
    let clean = bit_range(v, 0, n);
    for (i, word) in clean.into_iter().enumerate() {
        let to = at / 64 + i;
        if let Some(slot) = out.get_mut(to) {
            *slot |= word << shift;
        }
        if shift != 0
            && let Some(slot) = out.get_mut(to + 1)
        {
            *slot |= word >> (64 - shift);
        }
    }
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

pub(crate) fn progression(start: i64, step: i64, count: usize) -> Vec<usize> {
    (0..count)
        .map(|i| (start + step * i as i64) as usize)
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
/// Selection of elements.
#[derive(Clone)]
pub(crate) enum Picker {
    /// start, step ≥ 1, count.
    Forward(usize, usize, usize),
    List(Arc<Vec<usize>>),
}

impl Picker {
    pub fn elements<E: Copy>(&self, v: &[E]) -> Vec<E> {
        match self {
            Self::Forward(start, 1, n) => v
                .get(*start..start + n)
                .map_or_else(Vec::new, <[E]>::to_vec),
            Self::Forward(start, step, n) => v
                .get(*start..)
                .unwrap_or_default()
                .iter()
                .step_by(*step)
                .take(*n)
                .copied()
                .collect(),
            Self::List(list) => list.iter().filter_map(|i| v.get(*i).copied()).collect(),
        }
    }

    pub fn bits(&self, v: &[u64]) -> Vec<u64> {
        match self {
            Self::Forward(start, 1, n) => bit_range(v, *start, *n),
            Self::Forward(start, step, n) => pick_bits(v, (0..*n).map(|i| start + i * step), *n),
            Self::List(list) => pick_bits(v, list.iter().copied(), list.len()),
        }
    }
}

/// Where an assignment puts its values.
pub(crate) enum Places {
    /// start, step ≥ 1, count.
    Forward(usize, usize, usize),
    List(Vec<usize>),
}

impl Places {
    pub fn count(&self) -> usize {
        match self {
            Self::Forward(_, _, count) => *count,
            Self::List(list) => list.len(),
        }
    }

    /// Stores a vector, or its only element everywhere.
    pub fn put<E: Copy>(&self, to: &mut [E], from: &[E]) {
        match (self, from) {
            (Self::Forward(start, 1, count), _) if from.len() == *count => {
                if let Some(slots) = to.get_mut(*start..start + count) {
                    slots.copy_from_slice(from);
                }
            }
            (Self::Forward(start, step, count), from) => {
                let slots = to
                    .get_mut(*start..)
                    .unwrap_or_default()
                    .iter_mut()
                    .step_by(*step)
                    .take(*count);
                match from {
                    [one] => slots.for_each(|slot| *slot = *one),
                    _ => slots.zip(from).for_each(|(slot, v)| *slot = *v),
                }
            }
            (Self::List(list), from) => {
                for (k, i) in list.iter().enumerate() {
                    let v = if from.len() == 1 {
                        from.first()
                    } else {
                        from.get(k)
                    };
                    if let (Some(slot), Some(v)) = (to.get_mut(*i), v) {
                        *slot = *v;
                    }
                }
            }
        }
    }

    /// Stores packed bits, or one bit everywhere.
    pub fn put_bits(&self, to: &mut [u64], from: &[u64], single: bool) {
        let mut one = |k: usize, i: usize| {
            let bit = bit_at(from, if single { 0 } else { k });
            if let Some(lane) = to.get_mut(i / 64) {
                *lane = (*lane & !(1 << (i % 64))) | (bit << (i % 64));
            }
        };
        match self {
            Self::Forward(start, step, count) => (0..*count).for_each(|k| one(k, start + k * step)),
            Self::List(list) => list.iter().enumerate().for_each(|(k, i)| one(k, *i)),
        }
    }
}
