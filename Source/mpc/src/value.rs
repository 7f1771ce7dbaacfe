//! What flows through a computation: shares, clear vectors, packed bits, and values known to one party.

use keyquorum_math::Element;
use zeroize::{Zeroize, Zeroizing};

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

impl<E: Element> Share<E> {
    /// A share of `n` zeros with `parts` components.
    pub fn zeros(parts: usize, n: usize) -> Self {
        Self {
            parts: vec![vec![E::default(); n]; parts],
        }
    }

    /// Number of elements.
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

    pub(crate) fn map(&self, mut f: impl FnMut(&[E]) -> Vec<E>) -> Self {
        Self {
            parts: self.parts.iter().map(|p| f(p)).collect(),
        }
    }

    pub(crate) fn try_map(&self, f: impl FnMut(&[E]) -> Result<Vec<E>>) -> Result<Self> {
        let mut f = f;
        Ok(Self {
            parts: self.parts.iter().map(|p| f(p)).collect::<Result<_>>()?,
        })
    }

    /// The component of a share that has just one.
    pub(crate) fn only(&self) -> Result<&[E]> {
        match self.parts.as_slice() {
            [only] => Ok(only),
            _ => Err(misshapen()),
        }
    }

    /// The components of a share that has two, of one length.
    pub(crate) fn pair(&self) -> Result<(&[E], &[E])> {
        match self.parts.as_slice() {
            [first, second] if first.len() == second.len() => Ok((first, second)),
            _ => Err(misshapen()),
        }
    }

    /// Our components, each with the same one of a share of the same shape.
    pub(crate) fn with<'a>(
        &'a mut self,
        other: &'a Self,
    ) -> Result<impl Iterator<Item = (&'a mut Vec<E>, &'a Vec<E>)>> {
        if self.parts.len() != other.parts.len() {
            return Err(misshapen());
        }
        Ok(self.parts.iter_mut().zip(&other.parts))
    }

    /// Applies `f` to our components, each with the same one of a share with as many elements.
    pub(crate) fn combine(
        &mut self,
        other: &Self,
        mut f: impl FnMut(&mut [E], &[E]),
    ) -> Result<()> {
        for (ours, theirs) in self.with(other)? {
            if ours.len() != theirs.len() {
                return Err(misshapen());
            }
            f(ours, theirs);
        }
        Ok(())
    }
}

impl<E: Element> Drop for Share<E> {
    fn drop(&mut self) {
        for part in &mut self.parts {
            part.iter_mut().zeroize();
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
