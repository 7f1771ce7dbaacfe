//! Correlated randomness of one kind: how many items were asked for, how many are there, how many to make next.

use keyquorum_math::{Element, wipe};

use crate::error::{EngineError, Result};

/// Correlated randomness of one kind: how much was made and used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preprocessed {
    /// Plural name.
    pub name: &'static str,
    /// Items made so far.
    pub made: u64,
    /// Items used; the others are lost with the engine.
    pub used: u64,
}

/// Items of `N` elements each, as `N` vectors, taken from the end.
pub struct Items<E: Element, const N: usize> {
    vectors: [Vec<E>; N],
    needed: usize,
    made: u64,
    used: u64,
}

impl<E: Element, const N: usize> Default for Items<E, N> {
    fn default() -> Self {
        Self {
            vectors: std::array::from_fn(|_| Vec::new()),
            needed: 0,
            made: 0,
            used: 0,
        }
    }
}

impl<E: Element, const N: usize> Drop for Items<E, N> {
    fn drop(&mut self) {
        for vector in &mut self.vectors {
            wipe(vector);
        }
    }
}

impl<E: Element, const N: usize> Items<E, N> {
    /// Items of the first vector; [`Items::take`] compares the others.
    pub fn len(&self) -> usize {
        self.vectors.first().map_or(0, Vec::len)
    }

    /// Asks for `n` items, which will be taken in the next round.
    pub fn need(&mut self, n: usize) {
        self.needed += n;
    }

    pub fn put(&mut self, new: [Vec<E>; N]) {
        self.made += new.first().map_or(0, Vec::len) as u64; // for statistics
        for (vector, mut new) in self.vectors.iter_mut().zip(new) {
            vector.extend_from_slice(&new);
            wipe(&mut new);
        }
    }

    pub fn take(&mut self, n: usize) -> Result<[Vec<E>; N]> {
        let rest = self.len().checked_sub(n).ok_or_else(|| {
            EngineError::usage("correlated randomness was used that was not asked for")
        })?;
        let uneven = || EngineError::internal("correlated randomness of which a part is missing");
        if self.vectors.iter().any(|vector| vector.len() != rest + n) {
            return Err(uneven());
        }
        self.needed = self.needed.saturating_sub(n);
        self.used += n as u64;
        let mut taken = std::array::from_fn(|_| Vec::new());
        for (taken, vector) in taken.iter_mut().zip(&mut self.vectors) {
            let tail = vector.get_mut(rest..).ok_or_else(uneven)?;
            *taken = tail.to_vec();
            wipe(tail);
            vector.truncate(rest);
        }
        Ok(taken)
    }

    /// How many items to make next: the missing ones, and half as many on top as were used so far.
    pub fn batch(&self, least: usize, surplus: usize, most: usize) -> usize {
        let missing = self.needed.saturating_sub(self.len());
        if missing == 0 {
            return 0;
        }
        let wanted = missing + (self.used as usize / 2).min(surplus);
        wanted.min(most.max(least)).next_multiple_of(least)
    }

    pub fn preprocessed(&self, name: &'static str, unit: u64) -> Preprocessed {
        Preprocessed {
            name,
            made: unit * self.made,
            used: unit * self.used,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;

    /// A mask that is shorter than the vector it masks would leave the rest in clear.
    #[test]
    fn missing_parts_blocked_masks_of_which_a_part_is_missing() {
        let mut items = Items::<u64, 3>::default();
        items.need(4);
        items.put([vec![1; 4], vec![2; 4], vec![3; 3]]);
        let taken = items.take(4);
        assert!(matches!(taken, Err(EngineError::Internal(_))));
    }

    #[test]
    fn items_are_taken_once() {
        let mut items = Items::<u64, 2>::default();
        items.need(3);
        items.put([vec![1, 2, 3], vec![4, 5, 6]]);
        assert_eq!(items.take(2).unwrap(), [vec![2, 3], vec![5, 6]]);
        assert_eq!(items.take(1).unwrap(), [vec![1], vec![4]]);
        assert!(matches!(items.take(1), Err(EngineError::Usage(_))));
    }
}
