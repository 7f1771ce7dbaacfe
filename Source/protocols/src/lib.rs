//! Protocols behind one interface. A protocol is one file here, or one folder, with its descriptor; `table` of `mpc` lists them; everything else is shared.
//!
//! Protocols know neither sessions nor engines: [`Opening`] is what they are given. Tests that need a session are in `mpc/src/tests`.

pub mod additive;
pub mod authenticated;
mod bits;
pub mod emulate;
mod items;
#[cfg(test)]
mod masks;
mod opening;
mod permutation;
mod points;
pub mod replicated;
pub mod shamir;
mod stored;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod unsettled;
mod verified;

use std::sync::Arc;

use keyquorum_math::{BitLanes, Domain, Element, masks_of};

// The floor below, under the names of its modules.
#[cfg(test)]
use keyquorum_core::long_tests;
use keyquorum_core::{adversary, budget, descriptor, error, guard, mac_key, round, task, value};

use crate::error::{EngineError, Result};
use crate::task::{SendFn, Step};
use crate::value::Share;

pub use additive::{Additive, Arithmetic};
pub use authenticated::{Authenticated, MacOpening, Peer};
pub use bits::{BitProtocol, BitsAsElements};
pub use emulate::Emulate;
pub use items::Preprocessed;
pub use opening::{Channel, Opening, Openings, SubsetStream};
pub use points::{Points, point};
pub use replicated::Replicated;
pub use shamir::{Shamir, subsets, uses_prss};
pub use shamir::{fingerprint, lagrange, subset_factor, zero_factor};
pub use stored::{Origin, StoredShares};
pub use unsettled::Unsettled;
pub use verified::different_seeds;

/// A task whose result is a share.
pub type ShareTask<P, E> = SendFn<P, Share<E>>;
/// A task whose result is clear.
pub type ClearTask<P, E> = SendFn<P, Vec<E>>;

/// Shares of random numbers, and rows of their bits, the lowest first.
pub type EdaBits<E> = (Share<E>, Vec<Share<u64>>);

/// A secret vector shared among several holders of this process.
pub type Secret<E> = Arc<Share<E>>;

/// What tasks do in their next round, where a protocol wants that to be known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// They take inputs, on which what is opened in the same round must not depend.
    pub inputs: bool,
    /// They open values.
    pub opens: bool,
}

/// One party of a protocol, whatever it computes on: its part in a round, and its packed bits.
///
/// What every protocol must write has a letter, (a) to (l), here and in [`Protocol`]. Everything else has a default: the methods around rounds are for
/// protocols with correlated randomness or checks, those of [`StoredShares`] for protocols with MACs or verified products.
///
/// Methods that return a task communicate; the others are local. All parties call the same methods in the same order with the same sizes: the
/// pseudo-random streams that pairs of parties have in common rely on it.
pub trait Party: Sized + Send + 'static {
    /// (a) The part that computes on packed bits: the party itself, if it works on bits as on elements ([`BitsAsElements`]). Any type where
    /// [`Party::has_binary`] says that there is no such part.
    type Bits: BitProtocol;

    /// (b) Our number and the number of parties.
    fn party(&self) -> (usize, usize);

    /// (c) Component vectors of a share of elements.
    fn parts(&self) -> usize;

    /// (d) The part that computes on packed bits.
    ///
    /// # Errors
    /// [`EngineError::Usage`] if there is none.
    fn bits(&mut self) -> Result<&mut Self::Bits>;

    /// Whether the protocol computes on packed bits.
    fn has_binary(&self) -> bool {
        true
    }

    /// What the tasks that were made since the last call do in their next round. A round that takes inputs opens nothing: openings wait for the next
    /// one.
    fn take_turn(&mut self) -> Turn {
        Turn::default()
    }

    /// Announces whether the next round opens values. Called before [`Party::prepare`].
    fn announce(&mut self, _opens: bool) {}

    /// A task that makes the correlated randomness that was asked for and is missing. It is called before every round until it returns
    /// `None`.
    fn prepare(&mut self) -> Result<Option<SendFn<Self, ()>>> {
        Ok(None)
    }

    /// As [`Party::prepare`], but ahead of rounds: it makes correlated randomness alone, and runs no check that a round needs.
    fn preprocess(&mut self) -> Result<Option<SendFn<Self, ()>>> {
        self.prepare()
    }

    /// A task that verifies everything that was opened so far, if there is something. It runs before a value is given to the caller.
    fn check(&mut self) -> Option<SendFn<Self, ()>> {
        None
    }

    /// As [`Party::check`], before an opened value is read. Where checks are deferred, values that were opened under masks need none yet.
    fn check_before_reading(&mut self) -> Option<SendFn<Self, ()>> {
        self.check()
    }

    /// Correlated randomness made and used so far, by kind.
    fn preprocessed(&self) -> Vec<Preprocessed> {
        Vec::new()
    }
}

/// A protocol that computes on elements of the domain `D`, seen from one party.
pub trait Protocol<D: Domain>: Party + StoredShares<D> {
    /// The share of a public vector.
    fn constant(&self, domain: &D, values: &[D::E]) -> Result<Share<D::E>> {
        let mut share = Share::zeros(self.parts(), values.len());
        self.add_clear(domain, &mut share, values)?;
        Ok(share)
    }

    /// (e) Adds a public vector to a share.
    ///
    /// # Errors
    /// [`EngineError::Internal`] if it has another length, or the share another shape than those of this protocol.
    fn add_clear(&self, domain: &D, share: &mut Share<D::E>, values: &[D::E]) -> Result<()>;

    /// (f) `n` uniform secret elements: done, if that needs no message.
    fn random(&mut self, domain: &D, n: usize) -> Result<Step<Self, Share<D::E>>>;

    /// (g) Sums of element-wise products over consecutive groups of `length` (1: the products themselves). Operands have
    /// equal sizes.
    fn dot(
        &mut self,
        domain: &D,
        a: &Share<D::E>,
        b: &Share<D::E>,
        length: usize,
    ) -> Result<ShareTask<Self, D::E>>;

    /// (h) Opens a share to everybody.
    fn open(&mut self, domain: &D, a: &Share<D::E>) -> Result<ClearTask<Self, D::E>>;

    /// (i) Opens a share to one party, under a fresh zero sharing where the shares could reveal more than the value.
    fn open_to(
        &mut self,
        domain: &D,
        a: &Share<D::E>,
        receiver: usize,
    ) -> Result<SendFn<Self, Option<Vec<D::E>>>>;

    /// (j) Shares `n` elements of `owner`; `values` is `Some` at the owner only.
    fn input(
        &mut self,
        domain: &D,
        owner: usize,
        n: usize,
        values: Option<Vec<D::E>>,
    ) -> Result<ShareTask<Self, D::E>>;

    /// (k) `n` uniform secret bits in the arithmetic domain.
    fn random_bit(&mut self, domain: &D, n: usize) -> Result<ShareTask<Self, D::E>>;

    /// (l) The first `n` bits of a packed share, as elements of the arithmetic domain.
    fn bit_to_arith(
        &mut self,
        domain: &D,
        bits: &Share<u64>,
        n: usize,
    ) -> Result<ShareTask<Self, D::E>>;

    /// Opens a share modulo 2^k modulo 2^m, as an element of the ring `low` of m bits: reduced, it is a share there. Protocols of
    /// which that is not true (those with MACs) have their own.
    fn open_low(&mut self, low: &D, a: &Share<D::E>) -> Result<ClearTask<Self, D::E>> {
        let mask = u128::MAX >> (128 - low.bits());
        let reduce = |e: &D::E| D::E::from_u128_wrapping(e.to_u128() & mask);
        let reduced = a.map(|part| part.iter().map(reduce).collect());
        self.open(low, &reduced)
    }

    /// [`Protocol::open_low`] of values under masks that serve once, of which the check may be deferred.
    fn open_masked(&mut self, low: &D, a: &Share<D::E>) -> Result<ClearTask<Self, D::E>> {
        self.open_low(low, a)
    }

    /// Whether products may be taken in another ring than that of the engine.
    fn multiplies_in_any_ring(&self) -> bool {
        true
    }

    /// Products of every element of `bits`, each of which is 0 or 1, with every element of `v`: a row for each bit. Both are shares in `ring`, integers
    /// modulo 2^m.
    fn bit_products(
        &mut self,
        ring: &D,
        bits: &Share<D::E>,
        v: &Share<D::E>,
    ) -> Result<ShareTask<Self, D::E>> {
        let (count, length) = (bits.len(), v.len());
        let factors = bits.map(|part| {
            // Full capacity from the start: a vector that grows leaves a copy of its secrets behind.
            let mut factors = Vec::with_capacity(count * length);
            for bit in part {
                factors.extend(std::iter::repeat_n(*bit, length));
            }
            factors
        });
        self.dot(ring, &factors, &v.map(|part| part.repeat(count)), 1)
    }

    /// Whether edaBits are made without conversions of single bits.
    fn has_edabits(&self) -> bool {
        false
    }

    /// Asks for `n` edaBits of `length` bits, to be taken when nothing is missing: [`Party::preprocess`].
    fn need_edabits(&mut self, _domain: &D, _length: usize, _n: usize) {}

    /// The edaBits that [`Protocol::need_edabits`] asked for.
    fn take_edabits(&mut self, _domain: &D, _length: usize, _n: usize) -> Result<EdaBits<D::E>> {
        Err(EngineError::usage("this protocol converts bits one by one"))
    }

    /// Whether there is [`Protocol::shuffle`].
    fn has_shuffle(&self) -> bool {
        false
    }

    /// The blocks of `unit` elements in an order that is uniform and unknown to the corrupt parties.
    fn shuffle(
        &mut self,
        _domain: &D,
        _a: &Share<D::E>,
        _unit: usize,
    ) -> Result<ShareTask<Self, D::E>> {
        Err(EngineError::usage(
            "this protocol has no shuffle of its own: use a switching network",
        ))
    }

    /// Number of summands of [`Protocol::summand_bits`]; 0 where it does not exist.
    fn summands(&self) -> usize {
        0
    }

    /// The low `m` bits of each of the summands of `a`, as packed shares `[summand][bit]`; local. Only mod 2^k.
    fn summand_bits(
        &self,
        _domain: &D,
        _a: &Share<D::E>,
        _m: usize,
    ) -> Result<Vec<Vec<Share<u64>>>> {
        Err(EngineError::usage(
            "shares of this protocol have no summands that parties know",
        ))
    }
}

/// The domain of packed bits.
pub const BITS: BitLanes = BitLanes;

/// Number of 64-bit lanes of `n` bits.
#[inline]
pub fn lanes(n: usize) -> usize {
    n.div_ceil(64)
}

/// The error for an owner without values to share.
pub(crate) fn no_input(owner: usize) -> EngineError {
    EngineError::usage(format!("party {owner} has no input values to share"))
}

/// The sum of the vectors of the senders, to the receiver, which also adds its own vector `mine`. One round; `None` at the others.
pub(crate) fn sum_to<P: Party, D: Domain>(
    domain: &D,
    mut senders: Vec<usize>,
    receiver: usize,
    mut mine: Vec<D::E>,
) -> SendFn<P, Option<Vec<D::E>>> {
    let domain = domain.clone();
    senders.retain(|sender| *sender != receiver);
    Box::new(move |p, out| {
        let (me, _) = p.party();
        if me != receiver {
            if senders.contains(&me) {
                out.send(&domain, receiver, &mine);
            }
            return Ok(Box::new(|_, _| Ok(Step::Done(None))));
        }
        let n = mine.len();
        for from in &senders {
            out.expect(&domain, *from, n);
        }
        Ok(Box::new(move |_, inbox| {
            for from in senders {
                domain.add_assign(&mut mine, &inbox.take(&domain, from, n)?);
            }
            Ok(Step::Done(Some(mine)))
        }))
    })
}

/// Sums over consecutive groups.
///
/// # Errors
/// [`EngineError::Internal`] if some elements are in no group.
pub(crate) fn group_sums<D: Domain>(
    domain: &D,
    values: Vec<D::E>,
    length: usize,
) -> Result<Vec<D::E>> {
    if length == 1 {
        return Ok(values);
    }
    if length == 0 || !values.len().is_multiple_of(length) {
        return Err(EngineError::uneven());
    }
    Ok(values.chunks_exact(length).map(|c| domain.sum(c)).collect())
}

/// Takes off lanes beyond those of `n` bits, which hold arbitrary data.
///
/// # Errors
/// [`EngineError::Internal`] if there are not as many bits.
pub(crate) fn cut_lanes(bits: &mut Vec<u64>, n: usize) -> Result<()> {
    if bits.len() < lanes(n) {
        return Err(EngineError::uneven());
    }
    bits.truncate(lanes(n));
    Ok(())
}

/// The first `n` bits `0/1` of a packed vector as elements. Branch-free: the bits are secret.
///
/// # Errors
/// [`EngineError::Internal`] if there are not as many bits.
pub(crate) fn lane_bits<D: Domain>(domain: &D, bits: &[u64], n: usize) -> Result<Vec<D::E>> {
    let bits = bits.get(..lanes(n)).ok_or_else(EngineError::uneven)?;
    // In every domain zero is the word 0, so that selection is a mask.
    let one = domain.one().to_u128();
    let mut out = Vec::with_capacity(n);
    for lane in bits {
        let take = (n - out.len()).min(64);
        let masks = masks_of::<64>(*lane).into_iter().take(take);
        out.extend(masks.map(|mask| D::E::from_u128_wrapping(one & u128::from(mask))));
    }
    Ok(out)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use keyquorum_math::Z2k64;

    use super::*;

    fn internal<T>(result: Result<T>) -> bool {
        matches!(result, Err(EngineError::Internal(_)))
    }

    #[test]
    fn missing_parts_blocked_sums_that_leave_elements_out() {
        let ring = Z2k64::new(8).unwrap();
        let sums = |values: &[u64], length| group_sums(&ring, values.to_vec(), length);
        assert_eq!(sums(&[1, 2, 3, 255], 2).unwrap(), [3, 2]);
        assert_eq!(sums(&[1, 2, 3], 1).unwrap(), [1, 2, 3]);
        assert!(internal(sums(&[1, 2, 3], 2)));
        assert!(internal(sums(&[1, 2, 3], 4)));
        assert!(internal(sums(&[1, 2, 3], 0)));
    }

    #[test]
    fn missing_parts_blocked_bits_that_are_not_there() {
        let ring = Z2k64::new(8).unwrap();
        assert_eq!(lane_bits(&ring, &[0b101], 4).unwrap(), [1, 0, 1, 0]);
        let two = lane_bits(&ring, &[!0, 1, 7], 66).unwrap();
        assert_eq!((two.len(), two[63], two[64], two[65]), (66, 1, 1, 0));
        assert!(internal(lane_bits(&ring, &[!0], 65)));
        assert!(internal(lane_bits(&ring, &[], 1)));
        let mut bits = vec![1, 2];
        assert!(internal(cut_lanes(&mut bits, 129)));
        cut_lanes(&mut bits, 64).unwrap();
        assert_eq!(bits, [1]);
    }
}
