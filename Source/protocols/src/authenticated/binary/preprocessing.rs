//! Authenticated bits and AND triples: how many were asked for, how many are there, how many to make next. All in lanes of 64.

use zeroize::{Zeroize, Zeroizing};

use super::{PARTS, buckets};
use crate::Preprocessed;
use crate::error::{EngineError, Result};
use crate::value::{Share, same, zip};

/// Bits are made in multiples of this: small computations do not pay for large batches.
const LEAST: usize = 16;
/// A batch grows with what was used so far, up to this surplus.
const SURPLUS: usize = 1 << 11;
/// Most lanes of one batch of bits, all peers together: bounds the memory of rows and messages (about 20 MB).
const MOST_BITS: usize = 1 << 14;

/// Items of `N` shares each, used up from the end.
pub(super) struct Items<const N: usize> {
    /// Share after share.
    parts: Vec<Vec<u64>>,
    needed: usize,
    made: u64,
    used: u64,
}

impl<const N: usize> Drop for Items<N> {
    fn drop(&mut self) {
        for part in &mut self.parts {
            part.zeroize();
        }
    }
}

impl<const N: usize> Default for Items<N> {
    fn default() -> Self {
        Self {
            parts: vec![Vec::new(); N * PARTS],
            needed: 0,
            made: 0,
            used: 0,
        }
    }
}

impl<const N: usize> Items<N> {
    /// Lanes of the first vector; [`Items::take`] compares the others.
    fn len(&self) -> usize {
        self.parts.first().map_or(0, Vec::len)
    }

    /// Asks for lanes that will be taken in the next round.
    pub fn need(&mut self, lanes: usize) {
        self.needed += lanes;
    }

    /// Adds shares of as many lanes each.
    pub fn put(&mut self, new: [Share<u64>; N]) -> Result<()> {
        let lanes = new.first().map_or(0, Share::len); // N is not zero
        for share in &new {
            share.check(PARTS, lanes)?;
        }
        self.made += lanes as u64;
        let new: Vec<_> = new.iter().flat_map(|share| &share.parts).collect();
        for (part, new) in zip(&mut self.parts, new)? {
            part.extend_from_slice(new);
        }
        Ok(())
    }

    pub fn take(&mut self, lanes: usize) -> Result<[Share<u64>; N]> {
        let rest = self.len().checked_sub(lanes).ok_or_else(|| {
            EngineError::usage("correlated randomness was used that was not asked for")
        })?;
        let even = |part: &Vec<u64>| part.len() == rest + lanes;
        if self.parts.len() != N * PARTS || !self.parts.iter().all(even) {
            return Err(uneven());
        }
        self.needed = self.needed.saturating_sub(lanes);
        self.used += lanes as u64;
        let mut parts = self.parts.iter_mut().map(|part| {
            let taken = part.iter().skip(rest).copied().collect();
            part.iter_mut().skip(rest).for_each(Zeroize::zeroize);
            part.truncate(rest);
            taken
        });
        Ok(std::array::from_fn(|_| Share {
            parts: parts.by_ref().take(PARTS).collect(),
        }))
    }

    fn missing(&self) -> usize {
        self.needed.saturating_sub(self.len())
    }

    /// The missing lanes, and half as many on top as were used so far.
    fn wanted(&self) -> usize {
        match self.missing() {
            0 => 0,
            missing => missing + (self.used as usize / 2).min(SURPLUS),
        }
    }

    fn preprocessed(&self, name: &'static str) -> Preprocessed {
        Preprocessed {
            name,
            made: 64 * self.made,
            used: 64 * self.used,
        }
    }
}

fn uneven() -> EngineError {
    EngineError::internal("authenticated bits of which a part is missing")
}

/// Bits that one party knows.
#[derive(Default)]
pub(super) struct Owned {
    items: Items<1>,
    /// The bits at their owner, zeros elsewhere.
    known: Zeroizing<Vec<u64>>,
}

impl Owned {
    /// As [`Items::need`].
    pub fn need(&mut self, lanes: usize) {
        self.items.need(lanes);
    }

    pub fn put(&mut self, share: Share<u64>, known: &[u64]) -> Result<()> {
        same(share.len(), known.len())?;
        self.items.put([share])?;
        self.known.extend_from_slice(known);
        Ok(())
    }

    /// Share and bits.
    pub fn take(&mut self, lanes: usize) -> Result<(Share<u64>, Zeroizing<Vec<u64>>)> {
        let [share] = self.items.take(lanes)?;
        let rest = self.items.len();
        if self.known.len() != rest + lanes {
            return Err(uneven());
        }
        let known = Zeroizing::new(self.known.iter().skip(rest).copied().collect());
        self.known.iter_mut().skip(rest).for_each(Zeroize::zeroize);
        self.known.truncate(rest);
        Ok((share, known))
    }
}

/// The correlated randomness of a party.
pub(super) struct Preprocessing {
    /// Bits that nobody knows.
    pub random: Items<1>,
    /// Bits that one party knows, by party.
    inputs: Vec<Owned>,
    /// a, b, ab.
    pub ands: Items<3>,
}

impl Preprocessing {
    pub fn new(parties: usize) -> Self {
        Self {
            random: Items::default(),
            inputs: (0..parties).map(|_| Owned::default()).collect(),
            ands: Items::default(),
        }
    }

    /// Bits that `owner` knows.
    pub fn input(&mut self, owner: usize) -> Result<&mut Owned> {
        let parties = self.inputs.len();
        self.inputs
            .get_mut(owner)
            .ok_or_else(|| EngineError::usage(format!("there is no party {owner} among {parties}")))
    }

    /// Owners and lanes of the bits to make next.
    pub fn bits_to_make(&self, parties: usize) -> Vec<(Option<usize>, usize)> {
        let most = (MOST_BITS / (parties - 1).max(1)).next_multiple_of(LEAST);
        let owned = self.inputs.iter().enumerate();
        let owned = owned.map(|(i, owned)| (Some(i), &owned.items));
        std::iter::once((None, &self.random))
            .chain(owned)
            .map(|(owner, items)| (owner, items.wanted().next_multiple_of(LEAST).min(most)))
            .filter(|(_, lanes)| *lanes > 0)
            .collect()
    }

    /// Lanes of AND triples to make next.
    pub fn ands_to_make(&self) -> usize {
        match self.ands.missing() {
            0 => 0,
            missing => buckets::batch_lanes(missing, self.ands.wanted()),
        }
    }

    pub fn preprocessed(&self) -> Vec<Preprocessed> {
        let owned = self.inputs.iter().map(|o| (o.items.made, o.items.used));
        let (made, used) = owned.fold((0, 0), |(m, u), (made, used)| (m + made, u + used));
        vec![
            self.ands.preprocessed("authenticated ands"),
            self.random.preprocessed("authenticated bits"),
            Preprocessed {
                name: "authenticated input bits",
                made: 64 * made,
                used: 64 * used,
            },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits that are short of their MACs, or masks of inputs that are short, are neither kept nor handed out.
    #[test]
    fn missing_parts_blocked_authenticated_bits_of_which_a_part_is_missing() {
        let internal = |result: Result<()>| matches!(result, Err(EngineError::Internal(_)));
        let mut items = Items::<1>::default();
        let mut share = Share::zeros(PARTS, 4);
        share.parts.iter_mut().skip(1).for_each(|part| {
            part.pop();
        });
        items.need(4);
        assert!(internal(items.put([share])));
        for parts in [PARTS - 1, PARTS + 1] {
            assert!(internal(items.put([Share::zeros(parts, 4)])));
        }
        assert_eq!(items.len(), 0);
        items.parts.iter_mut().for_each(|part| part.resize(4, 0));
        assert!(items.take(1).is_ok());
        items
            .parts
            .iter_mut()
            .skip(1)
            .for_each(|part| part.truncate(2));
        assert!(internal(items.take(3).map(drop)));

        let mut both = Items::<2>::default();
        let shares = [Share::zeros(PARTS + 1, 4), Share::zeros(PARTS - 1, 4)];
        assert!(internal(both.put(shares)));
        assert!(internal(
            both.put([Share::zeros(PARTS, 4), Share::zeros(PARTS, 3)])
        ));
        assert!(both.parts.iter().all(Vec::is_empty));

        let mut owned = Owned::default();
        owned.need(4);
        assert!(internal(owned.put(Share::zeros(PARTS, 4), &[1, 2, 3])));
        assert!(owned.put(Share::zeros(PARTS, 4), &[1, 2, 3, 4]).is_ok());
        owned.known.pop();
        assert!(internal(owned.take(4).map(drop)));
        let mut owned = Owned::default();
        assert!(owned.put(Share::zeros(PARTS, 4), &[1, 2, 3, 4]).is_ok());
        let known = owned.take(3).map(|(_, known)| known.to_vec());
        assert!(known.is_ok_and(|known| known == [2, 3, 4]));
    }
}
