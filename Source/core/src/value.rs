//! The values of a computation: shares, clear vectors, packed bits, and values known to one party.

use std::iter::Zip;
use std::ops::Range;

use keyquorum_math::{Element, wipe};
use zeroize::Zeroizing;

use crate::error::{EngineError, Result};

/// One party's share of a secret vector: structure of arrays, `parts[j][i]` is component `j` of element `i`.
///
/// The number of parts is the protocol's (replicated 2, Shamir 1). Memory is zeroed on drop; there is no `Clone`, copies
/// are made explicitly with [`Share::duplicate`].
pub struct Share<E: Element> {
    /// Component vectors, all of one length.
    pub parts: Vec<Vec<E>>,
}

fn misshapen() -> EngineError {
    EngineError::internal("a share of another shape than its protocol has")
}

/// Pairs of the items of two vectors, which must be as long: the rest of the longer one would be left out.
///
/// # Errors
/// [`EngineError::Internal`] if they are not.
pub fn zip<X, Y>(x: X, y: Y) -> Result<Zip<X::IntoIter, Y::IntoIter>>
where
    X: IntoIterator<IntoIter: ExactSizeIterator>,
    Y: IntoIterator<IntoIter: ExactSizeIterator>,
{
    let (x, y) = (x.into_iter(), y.into_iter());
    same(x.len(), y.len())?;
    Ok(x.zip(y))
}

/// Fails unless both lengths are the same.
#[inline]
pub fn same(one: usize, other: usize) -> Result<()> {
    if one == other {
        return Ok(());
    }
    Err(EngineError::uneven())
}

/// The elements at these indices.
pub fn picked<E: Copy>(values: &[E], indices: &[u32]) -> Result<Vec<E>> {
    // Full capacity from the start: a vector that grows leaves a copy of its secrets behind.
    let mut out = Vec::with_capacity(indices.len());
    for index in indices {
        let value = values.get(*index as usize);
        out.push(*value.ok_or_else(EngineError::uneven)?);
    }
    Ok(out)
}

impl<E: Element> Share<E> {
    /// A share of `n` zeros with `parts` components.
    pub fn zeros(parts: usize, n: usize) -> Self {
        Self {
            parts: vec![vec![E::default(); n]; parts],
        }
    }

    /// Number of elements. Without components there are none.
    pub fn len(&self) -> usize {
        self.parts.first().map_or(0, Vec::len)
    }

    /// True if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An explicit copy.
    pub fn duplicate(&self) -> Self {
        Self {
            parts: self.parts.clone(),
        }
    }

    /// The share whose component vectors are those of this one, each changed.
    pub fn map(&self, mut f: impl FnMut(&[E]) -> Vec<E>) -> Self {
        Self {
            parts: self.parts.iter().map(|p| f(p)).collect(),
        }
    }

    /// [`Share::map`] with a function that may fail.
    pub fn try_map(&self, f: impl FnMut(&[E]) -> Result<Vec<E>>) -> Result<Self> {
        let mut f = f;
        Ok(Self {
            parts: self.parts.iter().map(|p| f(p)).collect::<Result<_>>()?,
        })
    }

    /// Fails unless there are `parts` components of `n` elements.
    pub fn check(&self, parts: usize, n: usize) -> Result<()> {
        if self.parts.len() == parts && self.parts.iter().all(|part| part.len() == n) {
            return Ok(());
        }
        Err(misshapen())
    }

    /// Component `i`.
    pub fn part(&self, i: usize) -> Result<&[E]> {
        self.parts.get(i).map(Vec::as_slice).ok_or_else(misshapen)
    }

    /// Component `i`, to be changed.
    pub fn part_mut(&mut self, i: usize) -> Result<&mut [E]> {
        self.parts
            .get_mut(i)
            .map(Vec::as_mut_slice)
            .ok_or_else(misshapen)
    }

    /// The elements of a range.
    pub fn range(&self, range: Range<usize>) -> Result<Self> {
        self.try_map(|part| {
            let part = part.get(range.clone());
            Ok(part.ok_or_else(misshapen)?.to_vec())
        })
    }

    /// The elements at these indices.
    pub fn picked(&self, indices: &[u32]) -> Result<Self> {
        self.try_map(|part| picked(part, indices))
    }

    /// Puts a share of the same shape, but for the number of elements, behind ours.
    pub fn append(&mut self, other: &Self) -> Result<()> {
        other.check(self.parts.len(), other.len())?;
        for (ours, theirs) in self.with(other)? {
            ours.extend_from_slice(theirs);
        }
        Ok(())
    }

    /// The component of a share that has just one.
    pub fn only(&self) -> Result<&[E]> {
        match self.parts.as_slice() {
            [only] => Ok(only),
            _ => Err(misshapen()),
        }
    }

    /// The components of a share that has two, of one length.
    pub fn pair(&self) -> Result<(&[E], &[E])> {
        match self.parts.as_slice() {
            [first, second] if first.len() == second.len() => Ok((first, second)),
            _ => Err(misshapen()),
        }
    }

    /// Our components, each with the same one of a share of the same shape.
    pub fn with<'a>(
        &'a mut self,
        other: &'a Self,
    ) -> Result<impl Iterator<Item = (&'a mut Vec<E>, &'a Vec<E>)>> {
        if self.parts.len() != other.parts.len() {
            return Err(misshapen());
        }
        Ok(self.parts.iter_mut().zip(&other.parts))
    }

    /// Applies `f` to our components, each with the same one of a share with as many elements.
    pub fn combine(&mut self, other: &Self, mut f: impl FnMut(&mut [E], &[E])) -> Result<()> {
        for (ours, theirs) in self.with(other)? {
            if ours.len() != theirs.len() {
                return Err(misshapen());
            }
            f(ours, theirs);
        }
        Ok(())
    }

    /// Applies `f` to as many of our elements, from `start` on, as a share has, each component with the same one of that share.
    pub fn combine_range(
        &mut self,
        start: usize,
        other: &Self,
        mut f: impl FnMut(&mut [E], &[E]),
    ) -> Result<()> {
        for (ours, theirs) in self.with(other)? {
            let ours = ours.get_mut(start..start + theirs.len());
            f(ours.ok_or_else(misshapen)?, theirs);
        }
        Ok(())
    }
}

impl<E: Element> Drop for Share<E> {
    fn drop(&mut self) {
        for part in &mut self.parts {
            wipe(part);
        }
    }
}

/// The kind of a value, as the front ends name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Secret elements of the arithmetic domain.
    Secret,
    /// Clear elements of the arithmetic domain.
    Clear,
    /// Secret bits, packed.
    SecretBits,
    /// Clear bits, packed.
    ClearBits,
    /// Elements known to one party.
    Personal,
}

impl Kind {
    /// Short name: `s`, `c`, `sb`, `cb`, `p`.
    pub fn code(self) -> &'static str {
        match self {
            Self::Secret => "s",
            Self::Clear => "c",
            Self::SecretBits => "sb",
            Self::ClearBits => "cb",
            Self::Personal => "p",
        }
    }
}

/// A value of a computation. Bit vectors are packed 64 a lane, least significant first; lanes past `len` bits hold
/// arbitrary data, which no operation may let out.
pub enum Value<E: Element> {
    /// Secret elements.
    Secret(Share<E>),
    /// Clear elements, canonical.
    Clear(Vec<E>),
    /// Secret bits.
    SecretBits(Share<u64>),
    /// Clear bits.
    ClearBits(Vec<u64>),
    /// Elements known to one party: `Some` there, `None` elsewhere.
    Personal(usize, Option<Zeroizing<Vec<E>>>),
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;

    fn internal<T>(result: Result<T>) -> bool {
        matches!(result, Err(EngineError::Internal(_)))
    }

    #[test]
    fn missing_parts_blocked_vectors_of_different_lengths() {
        let pairs: Vec<_> = zip([1, 2], ["a", "b"]).unwrap().collect();
        assert_eq!(pairs, [(1, "a"), (2, "b")]);
        assert!(internal(zip([1, 2], [1])));
        assert!(internal(zip(&[1][..], vec![1, 2])));
        assert!(same(3, 3).is_ok() && internal(same(3, 4)));
        assert_eq!(picked(&[5u64, 6, 7], &[2, 0, 2]).unwrap(), [7, 5, 7]);
        assert!(internal(picked(&[5u64, 6, 7], &[0, 3])));
    }

    #[test]
    fn missing_parts_blocked_shares_of_another_shape() {
        let share = |parts: &[&[u64]]| Share {
            parts: parts.iter().map(|part| part.to_vec()).collect(),
        };
        let mut even = share(&[&[1, 2, 3], &[4, 5, 6]]);
        let uneven = share(&[&[1, 2, 3], &[4, 5]]);
        let single = share(&[&[1, 2, 3]]);
        assert!(even.check(2, 3).is_ok());
        for (parts, n) in [(1, 3), (3, 3), (2, 2), (2, 4)] {
            assert!(internal(even.check(parts, n)), "{parts} {n}");
        }
        assert!(internal(uneven.check(2, 3)));
        assert_eq!(even.part(1).unwrap(), [4, 5, 6]);
        assert!(internal(even.part(2)) && internal(even.part_mut(2)));
        assert_eq!(even.range(1..3).unwrap().parts, [[2, 3], [5, 6]]);
        assert!(internal(even.range(1..4)) && internal(uneven.range(0..3)));
        assert_eq!(even.picked(&[2, 0]).unwrap().parts, [[3, 1], [6, 4]]);
        assert!(internal(even.picked(&[3])) && internal(uneven.picked(&[2])));
        for other in [&uneven, &single] {
            assert!(internal(even.append(other)));
            assert!(internal(even.combine(other, |_, _| ())));
        }
        assert!(even.check(2, 3).is_ok(), "nothing was appended");
        let more = share(&[&[7], &[8]]);
        even.append(&more).unwrap();
        assert_eq!(even.parts, [[1, 2, 3, 7], [4, 5, 6, 8]]);
    }
}
