//! How many numbers are made at once, with how many tests, and which bits these have.

use keyquorum_math::DomainKind;

use super::super::binary::{sliced, words};
use super::super::private::OPENED;
use super::super::{Arithmetic, Authenticated, PARTS};
use crate::budget::{cut_and_choose, cut_and_choose_bits};
use crate::error::{EngineError, Result};
use crate::value::Share;
use crate::{EdaBits, lanes};

/// The number of tests for each of 64 numbers.
const MOST_TESTS: usize = 11;
/// Bits of a number, and numbers, from which on a batch costs less than single bits.
const SHORTEST: usize = 8;
const FEWEST: usize = 32;
/// Bits of a test beyond those of the number, over fields: a sum reveals something of a number with probability 2^-40, and the batch and the session are given
/// up then.
const HIDING: usize = 40;

/// −log2 of the probability that `wrong` of `n` numbers pass `tests` tests each.
fn survival(n: usize, tests: usize, wrong: usize) -> f64 {
    cut_and_choose(n, tests, wrong, OPENED)
}

/// Tests a number, after so many orders that were seen and cut off: one wrong number, or all, are what passes most easily.
fn tests(n: usize, cut_offs: u32) -> usize {
    let bits = cut_and_choose_bits(cut_offs);
    let enough = |tests: &usize| survival(n, *tests, 1).min(survival(n, *tests, n)) >= bits;
    (1..MOST_TESTS).find(enough).unwrap_or(MOST_TESTS) // enough for every batch
}

/// The sizes of one batch.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Batch {
    pub(super) parties: usize,
    /// Bits of a number.
    pub(super) length: usize,
    /// Numbers, a multiple of 64.
    pub(super) n: usize,
    /// Bits of a test.
    pub(super) full: usize,
    /// Bits of the sum of a number and a test.
    pub(super) width: usize,
    /// Bits of the sum of all parties' numbers.
    pub(super) total: usize,
    /// Tests a number.
    pub(super) tests: usize,
}

impl Batch {
    /// Tests of a party that are used, and those that are opened.
    pub(super) fn all_tests(&self) -> usize {
        self.n * self.tests + OPENED
    }

    pub(super) fn lanes(&self) -> usize {
        self.n / 64
    }

    /// Lanes that a party knows: rows of numbers, then rows of tests.
    pub(super) fn known_lanes(&self) -> usize {
        self.length * self.lanes() + self.full * self.all_tests() / 64
    }

    /// Whether every number could be in the sum of a number and a test, or sums wrap.
    pub(super) fn hides(&self, sum: u128) -> bool {
        self.width == self.full || (sum >= (1 << self.length) - 1 && sum < 1 << self.full)
    }

    /// Bits that are too many.
    pub(super) fn excess(&self) -> usize {
        self.total - self.length
    }

    /// Width of the sum of two sums of at most `x` bits.
    pub(super) fn wider(&self, x: usize) -> usize {
        (x + 1).min(self.total)
    }
}

impl<A: Arithmetic> Authenticated<A> {
    /// Whether `n` numbers of this length are made in batches: fewer or shorter ones cost less bit by bit.
    pub(in super::super) fn has_batches(&self, length: usize, n: usize) -> bool {
        n >= FEWEST && length >= SHORTEST && self.fits(length)
    }

    /// Whether a test hides numbers of this length: no longer than the ring, or 42 bits shorter than the field.
    fn fits(&self, length: usize) -> bool {
        let bits = self.visible.bits() as usize;
        match self.visible.kind() {
            DomainKind::Z2k(_) => length <= bits,
            _ => length + HIDING + 2 <= bits,
        }
    }

    /// A batch of `n` (a multiple of 64) numbers.
    pub(in super::super) fn edabits_batch(&self, length: usize, n: usize) -> Batch {
        let bits = self.visible.bits() as usize;
        let ring = matches!(self.visible.kind(), DomainKind::Z2k(_));
        let total = length + self.parties.next_power_of_two().trailing_zeros() as usize;
        let full = if ring { bits } else { length + HIDING };
        Batch {
            parties: self.parties,
            length,
            n,
            full,
            width: if ring { bits } else { full + 1 },
            total: if ring { total.min(bits) } else { total },
            tests: tests(n, self.cut_offs),
        }
    }

    /// `n` numbers from `length`·`n` bits of both domains, which were asked for. Local.
    pub(in super::super) fn edabits_of_bits(
        &mut self,
        length: usize,
        n: usize,
    ) -> Result<EdaBits<A::E>> {
        let (packed, bits) = self.preprocessing.take_bits(lanes(length * n))?;
        let mut sum = Share::zeros(PARTS, n);
        let mut weight = self.domain.one();
        for i in 0..length {
            let mut row = bits.range(i * n..(i + 1) * n)?;
            for part in &mut row.parts {
                self.domain.mul_scalar_assign(part, weight);
            }
            self.add(&mut sum, &row)?;
            weight = self.domain.add(weight, weight);
        }
        let words = words(&packed)?;
        let row = |i: usize| {
            sliced(
                words
                    .get(i * n..(i + 1) * n)
                    .ok_or_else(EngineError::uneven)?,
            )
        };
        Ok((sum, (0..length).map(row).collect::<Result<_>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac_key::MOST_CUT_OFFS;

    #[test]
    fn tests_are_enough() {
        for n in [64, 128, 512, 4096, 8192] {
            for cut_offs in [0, 1, 100, MOST_CUT_OFFS] {
                let (tests, bits) = (tests(n, cut_offs), cut_and_choose_bits(cut_offs));
                for wrong in 1..=n {
                    let found = survival(n, tests, wrong);
                    assert!(found >= bits, "{wrong} of {n}: {found}");
                }
            }
        }
        let sizes = |cut_offs| [64, 1024, 8192].map(|n| tests(n, cut_offs));
        assert_eq!(sizes(0), [7, 5, 4]);
        assert_eq!(sizes(100), [9, 6, 5]);
    }

    /// Over a field every number is as likely after its sum as before, if the sum is kept; others are not; and few are not kept.
    #[test]
    fn sums_that_are_kept_reveal_nothing() {
        let batch = Batch {
            parties: 2,
            length: 3,
            n: 64,
            full: 7,
            width: 8,
            total: 4,
            tests: 1,
        };
        let numbers = |sum: u128| {
            (0..8)
                .filter(|x| (0..128).contains(&(sum as i64 - x)))
                .count()
        };
        let (kept, given_up): (Vec<u128>, Vec<u128>) = (0..=134).partition(|sum| batch.hides(*sum));
        assert!(kept.iter().all(|sum| numbers(*sum) == 8));
        assert!(given_up.iter().all(|sum| numbers(*sum) < 8));
        let lost: usize = given_up.iter().map(|sum| numbers(*sum)).sum();
        assert_eq!(
            lost, 56,
            "of 1024: 7/128, about as many as 2^(length - full)"
        );
        let ring = Batch { width: 7, ..batch };
        assert!((0..128).all(|sum| ring.hides(sum)));
    }

    /// One wrong number passes if the tests that the adversary has chosen are its own.
    #[test]
    fn the_bound_is_exact_for_one_number() {
        let (n, size) = (64usize, 3usize);
        let all = n * size + OPENED;
        let chance = (0..size).fold(1.0, |p, i| p * (size - i) as f64 / (all - i) as f64);
        assert!((-f64::log2(chance) - survival(n, size, 1)).abs() < 1e-9);
    }
}
