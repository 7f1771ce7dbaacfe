//! Random bits shared in both domains.
//!
//! The bit is the sum modulo 2 of [`bucket`] bits of every party (`mixed`), taken at random after all were fixed: of the bits of
//! an honest party nobody knows all, though some may have leaked. Over the elements the sum w is made bit by bit: with a bit c and c·g for
//! a random g, the difference w − g is opened, and c ⊕ w = c + w − 2·(c·(w − g) + c·g). The first party's bits come first: while w is the
//! sum of these alone, which that party knows, it may know g too.

use zeroize::Zeroizing;

use super::binary::{self, sliced, words};
use super::mixed::{self, Mixed, Wanted};
use super::verify::check;
use super::{Arithmetic, Authenticated, open};
use crate::budget::{ATTEMPT_BITS, FEWEST_BETS, dabit_buckets};
use crate::error::{EngineError, Result};
use crate::task::{SendFn, and_then, at_start, ready, then};
use crate::value::{Share, picked, same, zip};

const LARGEST: usize = 8;

/// Bits of each party in a bit of a batch of `n`. Every leak is noticed with probability 1/2.
fn bucket(n: usize) -> usize {
    (FEWEST_BETS..LARGEST)
        .find(|size| dabit_buckets(n, *size) >= ATTEMPT_BITS)
        .unwrap_or(LARGEST) // enough for every batch
}

/// The ingredients of a batch of `lanes` lanes. The sum begins with a bit of the first party, so one bit fewer gets a factor there.
fn wanted(parties: usize, lanes: usize) -> Vec<Wanted> {
    let size = bucket(64 * lanes);
    let of = |owner| Wanted {
        owner,
        lanes: lanes * size,
        factors: 64 * lanes * (size - usize::from(owner == 0)),
        // The first party knows the sum of its own bits.
        known_to: (owner == 0).then_some(0),
    };
    (0..parties).map(of).collect()
}

/// Asks for the ingredients of the batch.
pub(super) fn need<A: Arithmetic>(p: &mut Authenticated<A>) -> Result<()> {
    mixed::need(p, &wanted(p.parties, p.preprocessing.batch))
}

/// A task that makes `lanes` (an even number) lanes of 64 daBits.
pub(super) fn task<A: Arithmetic>(lanes: usize) -> SendFn<Authenticated<A>, ()> {
    let made: SendFn<Authenticated<A>, _> =
        at_start(move |p: &mut Authenticated<A>| Ok(mixed::task(wanted(p.parties, lanes))));
    let summed = and_then(made, move |_, (all, seed): (Vec<Mixed<A>>, _)| {
        let n = 64 * lanes;
        let mut first = None;
        let mut terms = Vec::new();
        for mixed in &all {
            let packed = words(&mixed.bits.packed)?;
            let count = mixed.products.len();
            let order = binary::permutation(count, &seed);
            let (chunks, rest) = (order.chunks_exact(n), order.chunks_exact(n).remainder());
            same(rest.len(), 0)?;
            for indices in chunks {
                terms.push(Term::new(mixed, &packed, indices)?);
            }
            if count < packed.len() {
                let rest: Vec<u32> = (count as u32..packed.len() as u32).collect();
                same(rest.len(), n)?;
                first = Some(Bit::new(mixed, &packed, &rest)?);
            }
        }
        let first = first.ok_or_else(|| EngineError::internal("a sum of no bits"))?;
        // Terms are taken from the end, those of the first party before all others.
        terms.reverse();
        Ok(sum(first, terms))
    });
    and_then(summed, |_, bit: Bit<A>| {
        Ok(then(check(), move |p: &mut Authenticated<A>, ()| {
            p.preprocessing.put_bits(sliced(&bit.words)?, bit.elements)
        }))
    })
}

/// Bits in both domains; packed, a word a bit: the share, then those of its MAC.
struct Bit<A: Arithmetic> {
    words: Zeroizing<Vec<u64>>,
    elements: Share<A::E>,
}

/// A summand: bits, elements g, and their products.
struct Term<A: Arithmetic> {
    bit: Bit<A>,
    factor: Share<A::E>,
    product: Share<A::E>,
}

impl<A: Arithmetic> Bit<A> {
    /// The bits at these indices.
    fn new(mixed: &Mixed<A>, packed: &[u64], indices: &[u32]) -> Result<Self> {
        Ok(Self {
            words: picked(packed, indices)?.into(),
            elements: mixed.bits.elements.picked(indices)?,
        })
    }
}

impl<A: Arithmetic> Term<A> {
    /// Bits, elements and products at these indices.
    fn new(mixed: &Mixed<A>, packed: &[u64], indices: &[u32]) -> Result<Self> {
        Ok(Self {
            bit: Bit::new(mixed, packed, indices)?,
            factor: mixed.factors.picked(indices)?,
            product: mixed.products.picked(indices)?,
        })
    }
}

/// The sum modulo 2 of bits and all terms. One round a term.
fn sum<A: Arithmetic>(
    mut bit: Bit<A>,
    mut terms: Vec<Term<A>>,
) -> SendFn<Authenticated<A>, Bit<A>> {
    let Some(mut term) = terms.pop() else {
        return ready(bit);
    };
    at_start(move |p: &mut Authenticated<A>| {
        let mut masked = bit.elements.duplicate();
        p.sub(&mut masked, &term.factor)?;
        let opened = open(masked);
        Ok(and_then(opened, move |p: &mut Authenticated<A>, opened| {
            let minus_two = p.domain.neg(p.domain.add(p.domain.one(), p.domain.one()));
            term.product.combine(&term.bit.elements, |product, c| {
                p.domain.mul_acc(product, &opened, c);
                p.domain.mul_scalar_assign(product, minus_two);
            })?;
            p.add(&mut bit.elements, &term.product)?;
            p.add(&mut bit.elements, &term.bit.elements)?;
            for (word, other) in zip(bit.words.iter_mut(), term.bit.words.iter())? {
                *word ^= other;
            }
            Ok(sum(bit, terms))
        }))
    })
}

#[cfg(test)]
mod tests {
    use keyquorum_math::Z2k128;

    use super::*;
    use crate::authenticated::PARTS;
    use crate::authenticated::private::Private;

    #[test]
    fn buckets_are_large_enough() {
        for lanes in [2, 4, 8, 16, 64, 256, 4096] {
            let n = 64 * lanes;
            assert!(dabit_buckets(n, bucket(n)) >= ATTEMPT_BITS, "{n}");
        }
        assert_eq!((bucket(256), bucket(1024), bucket(16384)), (6, 5, 4));
    }

    /// The bound is no better than the chance of the smallest attack: all bits of one bucket, guessed.
    #[test]
    fn the_bound_covers_the_smallest_attack() {
        let (n, size) = (1024usize, 5usize);
        // A bit at a fixed position, and the others in its bucket.
        let rest = size - 1;
        let fixed: f64 = (0..rest)
            .map(|i| ((rest - i) as f64 / (n * rest - i) as f64).log2())
            .sum();
        let anywhere: f64 = (1..size)
            .map(|i| ((size - i) as f64 / (n * size - i) as f64).log2())
            .sum();
        for chance in [fixed, anywhere] {
            assert!(size as f64 - chance >= dabit_buckets(n, size));
        }
    }

    /// A bit that is missing would be zero, which everybody knows.
    #[test]
    fn missing_parts_blocked_places_that_are_not_there() {
        let mut mixed = Mixed::<Z2k128> {
            bits: Private {
                packed: Share::zeros(binary::PARTS, 2),
                elements: Share::zeros(PARTS, 128),
            },
            factors: Share::zeros(PARTS, 64),
            products: Share::zeros(PARTS, 64),
        };
        let internal = |mixed: &Mixed<Z2k128>, packed: &[u64], indices: &[u32]| {
            let term = Term::new(mixed, packed, indices).map(drop);
            matches!(term, Err(EngineError::Internal(_)))
        };
        assert!(!internal(&mixed, &[0; 128], &[0, 63]));
        assert!(internal(&mixed, &[0; 128], &[0, 64]));
        assert!(internal(&mixed, &[0; 63], &[0, 63]));
        assert!(Bit::new(&mixed, &[0; 128], &[127]).is_ok());
        assert!(Bit::new(&mixed, &[0; 128], &[128]).is_err());
        mixed.products.parts[1].pop();
        assert!(internal(&mixed, &[0; 128], &[0, 63]));
    }
}
