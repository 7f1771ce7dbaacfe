//! Random numbers of a given length as elements, and their bits packed (edaBits).
//!
//! Every party shares numbers that it knows in both domains. For each there are T others of full length, assigned by a tossed order, which
//! test it: the sum of number and test is added up bit by bit, opened, and must be what the elements say. It tells nothing, since the test
//! is uniform: modulo 2^k, and over fields with 40 more bits than the number, where a batch is given up, as after a failed check, if a sum is so small or so large
//! that not every number could be in it. [`OPENED`] further tests are opened alone. Numbers
//! that pass are added up, in both domains, and what exceeds the length is taken off by random bits of both.
//!
//! The order is a challenge: who sees it first and does not like it must not be able to break off and try again, so from then until the
//! MACs of all that was opened are verified whatever goes wrong counts as a failed check.
//!
//! Wrong numbers pass only under wrong tests, and wrong tests only on wrong numbers: of k wrong numbers all k·T tests must be wrong and no
//! other. Escudero, Ghosh, Keller, Rachuri, Scholl, "Improved primitives for MPC over mixed arithmetic-binary circuits" (CRYPTO
//! 2020), sections 3 and 4, with tests of full length in place of a conversion of the carry of every test.

use keyquorum_math::{DomainKind, Element};
use zeroize::Zeroizing;

use super::binary::{self, adder, sliced, words};
use super::private::{OPENED, Private, shared};
use super::verify::check;
use super::{Arithmetic, Authenticated, bits, open};
use crate::adversary::Site;
use crate::budget::{ATTEMPT_BITS, cut_and_choose};
use crate::error::{Check, EngineError, Result};
use crate::graph::{SendFn, and_then, ready, then, within};
use crate::protocol::{WithBits, lanes};
use crate::value::{Share, picked, same};

/// What 64 numbers need.
const MOST_TESTS: usize = 6;
/// Bits of a number, and numbers, from which on a batch costs less than single bits.
const SHORTEST: usize = 8;
const FEWEST: usize = 32;
/// Bits of a test beyond those of the number, over fields: a sum tells something of a number with probability 2^-40, and the batch is given
/// up then, and the MAC key burned.
const HIDING: usize = 40;

/// −log2 of the probability that `wrong` of `n` numbers pass `tests` tests each.
fn survival(n: usize, tests: usize, wrong: usize) -> f64 {
    cut_and_choose(n, tests, wrong, OPENED)
}

/// Tests a number: one wrong number, or all, are what passes most easily.
fn tests(n: usize) -> usize {
    let enough = |tests: &usize| survival(n, *tests, 1).min(survival(n, *tests, n)) >= ATTEMPT_BITS;
    (1..MOST_TESTS).find(enough).unwrap_or(MOST_TESTS) // enough for every batch
}

/// What is made at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    parties: usize,
    /// Bits of a number.
    length: usize,
    /// Numbers, a multiple of 64.
    n: usize,
    /// Bits of a test.
    full: usize,
    /// Bits of the sum of a number and a test.
    width: usize,
    /// Bits of the sum of all parties' numbers.
    total: usize,
    /// Tests a number.
    tests: usize,
}

impl Batch {
    /// Tests of a party that are used, and those that are opened.
    fn all_tests(&self) -> usize {
        self.n * self.tests + OPENED
    }

    fn lanes(&self) -> usize {
        self.n / 64
    }

    /// Lanes that a party knows: rows of numbers, then rows of tests.
    fn known_lanes(&self) -> usize {
        self.length * self.lanes() + self.full * self.all_tests() / 64
    }

    /// Whether every number could be in the sum of a number and a test, or sums wrap.
    fn hides(&self, sum: u128) -> bool {
        self.width == self.full || (sum >= (1 << self.length) - 1 && sum < 1 << self.full)
    }

    /// Bits that are too many.
    fn excess(&self) -> usize {
        self.total - self.length
    }

    /// Width of the sum of two sums of at most `x` bits.
    fn wider(&self, x: usize) -> usize {
        (x + 1).min(self.total)
    }
}

impl<A: Arithmetic> Authenticated<A> {
    /// Whether `n` numbers of this length are made in batches: fewer or shorter ones cost less bit by bit.
    pub(super) fn has_batches(&self, length: usize, n: usize) -> bool {
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
    pub(super) fn numbers_batch(&self, length: usize, n: usize) -> Batch {
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
            tests: tests(n),
        }
    }

    /// `n` numbers from `length`·`n` bits of both domains, which were asked for. Local.
    pub(super) fn numbers_of_bits(&mut self, length: usize, n: usize) -> Result<WithBits<A::E>> {
        let (packed, bits) = self.supply.take_bits(lanes(length * n))?;
        let mut sum = Share::zeros(super::PARTS, n);
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

/// Asks for what the batch is made of.
pub(super) fn need<A: Arithmetic>(p: &mut Authenticated<A>, batch: &Batch) -> Result<()> {
    for owner in 0..p.parties {
        p.bits.need_input(owner, batch.known_lanes())?;
    }
    let rows = batch.parties * batch.tests * batch.lanes();
    let mut ands = rows * adder::ands(batch.length, batch.full, batch.width);
    let (mut left, mut width) = (batch.parties, batch.length);
    while left > 1 {
        ands += left / 2 * batch.lanes() * adder::ands(width, width, batch.wider(width));
        (left, width) = (left.div_ceil(2), batch.wider(width));
    }
    p.bits.need_ands(ands);
    p.supply.need_bits(batch.excess() * batch.lanes());
    Ok(())
}

/// Rows `from..from + count` of `lanes` lanes each, one after another in a share.
fn rows(share: &Share<u64>, from: usize, count: usize, lanes: usize) -> Result<Vec<Share<u64>>> {
    let row = |i: usize| share.range(from + i * lanes..from + (i + 1) * lanes);
    (0..count).map(row).collect()
}

/// An empty share for `n` lanes or elements, which need no other place later.
fn room<E: Element>(parts: usize, n: usize) -> Share<E> {
    Share {
        parts: (0..parts).map(|_| Vec::with_capacity(n)).collect(),
    }
}

/// One row after another.
fn joined(rows: &[Share<u64>]) -> Result<Share<u64>> {
    let mut all = room(binary::PARTS, rows.iter().map(Share::len).sum());
    rows.iter().try_for_each(|row| all.append(row))?;
    Ok(all)
}

/// Rows of `lanes` lanes side by side: row i of the result has the lanes of all rows i. Numbers may have fewer rows than others: their
/// bits above are zero.
fn side_by_side(list: &[Vec<Share<u64>>], lanes: usize) -> Result<Vec<Share<u64>>> {
    let count = list.iter().map(Vec::len).max();
    let count = count.ok_or_else(EngineError::uneven)?;
    let row = |i: usize| {
        let mut row = room(binary::PARTS, lanes * list.len());
        for rows in list {
            match rows.get(i) {
                Some(other) => {
                    other.check(binary::PARTS, lanes)?;
                    row.append(other)?;
                }
                None => row.append(&Share::zeros(binary::PARTS, lanes))?,
            }
        }
        Ok(row)
    };
    (0..count).map(row).collect()
}

/// The numbers of at most 128 bits whose bits are in rows of `lanes` lanes, one row after another.
fn numbers(rows: &[u64], lanes: usize) -> Result<Zeroizing<Vec<u128>>> {
    if lanes == 0 || !rows.len().is_multiple_of(lanes) || rows.len() / lanes > 128 {
        return Err(EngineError::uneven());
    }
    let mut numbers = Zeroizing::new(vec![0u128; 64 * lanes]);
    for (j, row) in rows.chunks_exact(lanes).enumerate() {
        for (numbers, lane) in numbers.chunks_exact_mut(64).zip(row) {
            for (i, number) in numbers.iter_mut().enumerate() {
                *number |= u128::from(lane >> i & 1) << j;
            }
        }
    }
    Ok(numbers)
}

/// Numbers in both domains.
struct Numbers<A: Arithmetic> {
    rows: Vec<Share<u64>>,
    elements: Share<A::E>,
}

/// A task that puts numbers in stock.
pub(super) fn task<A: Arithmetic>(batch: Batch) -> SendFn<Authenticated<A>, ()> {
    let shared = shared(
        batch.known_lanes(),
        batch.n + batch.all_tests(),
        move |p: &mut Authenticated<A>, known| p.elements_of(&batch, known),
    );
    let tested = and_then(shared, move |_, (private, seed)| {
        let order = binary::permutation(batch.all_tests(), &seed);
        test(batch, private, &order)
    });
    let summed = and_then(tested, move |p: &mut Authenticated<A>, numbers| {
        let mut elements = Share::zeros(super::PARTS, batch.n);
        let mut list = Vec::with_capacity(numbers.len());
        for numbers in numbers {
            p.add(&mut elements, &numbers.elements)?;
            list.push(numbers.rows);
        }
        let rows = within(sum(batch, list)?, bits::<A>);
        Ok(then(rows, |_, rows| Ok(Numbers { rows, elements })))
    });
    let cut = and_then(summed, move |_, numbers| cut_off(batch, numbers));
    and_then(cut, |_, numbers: Numbers<A>| {
        Ok(then(check(), move |p: &mut Authenticated<A>, ()| {
            p.bits.guard.verified()?;
            p.supply.put_numbers(numbers.elements, &numbers.rows)
        }))
    })
}

impl<A: Arithmetic> Authenticated<A> {
    /// The elements of our numbers and tests. What a ring has above 2^k is uniform in tests.
    fn elements_of(&mut self, batch: &Batch, known: &[u64]) -> Result<Zeroizing<Vec<A::E>>> {
        same(known.len(), batch.known_lanes())?;
        let (short, full) = known.split_at(batch.length * batch.lanes());
        let mut values = Zeroizing::new(Vec::with_capacity(batch.n + batch.all_tests()));
        let element = |v: &u128| self.domain.from_u128(*v);
        values.extend(numbers(short, batch.lanes())?.iter().map(element));
        values.extend(numbers(full, batch.all_tests() / 64)?.iter().map(element));
        same(values.len(), batch.n + batch.all_tests())?;
        let (short, tests) = values.split_at_mut(batch.n);
        if let Some(factor) = self.overflow() {
            let mut above = self.draw(tests.len());
            self.domain.mul_scalar_assign(&mut above, factor);
            self.domain.add_assign(tests, &above);
        }
        for (site, values) in [(Site::Numbers, short), (Site::Tests, tests)] {
            self.adversary
                .change_elements(site, None, &self.domain, values);
        }
        Ok(values)
    }
}

/// Tests all numbers of all parties; `order` is that of the tests, of which the last [`OPENED`] are opened.
fn test<A: Arithmetic>(
    batch: Batch,
    private: Vec<Private<A>>,
    order: &[u32],
) -> Result<SendFn<Authenticated<A>, Vec<Numbers<A>>>> {
    let (lanes, all) = (batch.lanes(), batch.all_tests());
    same(order.len(), all)?;
    let used = batch.n * batch.tests / 64;
    let mut kept = Vec::with_capacity(private.len());
    let (mut left, mut right) = (Vec::new(), Vec::new());
    let parties = private.len();
    let mut shown = room(binary::PARTS, parties * batch.full * OPENED / 64);
    let mut sums = room(super::PARTS, parties * (64 * used + OPENED));
    let mut alone = room(super::PARTS, parties * OPENED);
    for Private { packed, elements } in private {
        packed.check(binary::PARTS, batch.known_lanes())?;
        elements.check(super::PARTS, batch.n + all)?;
        let short = rows(&packed, 0, batch.length, lanes)?;
        let tests = rows(&packed, batch.length * lanes, batch.full, all / 64)?;
        let tests = tests.iter().map(|row| reordered(row, order));
        let tests = tests.collect::<Result<Vec<_>>>()?;
        let part = |from: usize, to: usize| {
            let rows = tests.iter().map(|row| row.range(from..to));
            rows.collect::<Result<Vec<_>>>()
        };
        for i in 0..batch.tests {
            left.push(short.iter().map(Share::duplicate).collect());
            right.push(part(i * lanes, (i + 1) * lanes)?);
        }
        for row in part(used, used + OPENED / 64)? {
            shown.append(&row)?;
        }
        // The same of the elements: number + test, and tests alone.
        let tests = elements.range(batch.n..batch.n + all)?;
        let (inside, opened) = order.split_at(64 * used);
        sums.append(&tests.picked(inside)?)?;
        alone.append(&tests.picked(opened)?)?;
        kept.push(Numbers {
            rows: short,
            elements: elements.range(0..batch.n)?,
        });
    }
    let added = within(
        adder::sum(
            side_by_side(&left, lanes)?,
            side_by_side(&right, lanes)?,
            batch.width,
        )?,
        bits::<A>,
    );
    let opened = and_then(added, move |p: &mut Authenticated<A>, rows| {
        let sums = joined(&rows)?;
        let sum_lanes = sums.len();
        let opened = within(p.bits.open(joined(&[sums, shown])?), bits::<A>);
        Ok(then(opened, move |_, opened| Ok((opened, sum_lanes))))
    });
    Ok(and_then(
        opened,
        move |p: &mut Authenticated<A>, (opened, at)| {
            let (in_sums, in_tests) = opened
                .split_at_checked(at)
                .ok_or_else(EngineError::uneven)?;
            let shown = batch.full * OPENED / 64;
            same(in_tests.len(), kept.len() * shown)?;
            // Elements minus what the bits say: zero, modulo 2^k in a ring.
            let mut difference = sums;
            let mut place = 0;
            for numbers in &kept {
                for _ in 0..batch.tests {
                    for (sum, short) in difference.with(&numbers.elements)? {
                        let block = sum.get_mut(place..place + batch.n);
                        p.domain
                            .add_assign(block.ok_or_else(EngineError::uneven)?, short);
                    }
                    place += batch.n;
                }
            }
            let mut clear: Vec<A::E> = Vec::with_capacity(place + alone.len());
            let said = numbers(in_sums, kept.len() * used)?;
            if said.iter().any(|sum| !batch.hides(*sum)) {
                // As a failed check: a party can make its own numbers so that a bad order ends here.
                return Err(EngineError::protocol(
                    "a random number came out that its test does not hide, which happens once in a long while, or if one of the parties cheats",
                ));
            }
            clear.extend(said.iter().map(|v| p.domain.from_u128(*v)));
            for rows in in_tests.chunks_exact(shown) {
                let said = numbers(rows, OPENED / 64)?;
                clear.extend(said.iter().map(|v| p.domain.from_u128(*v)));
            }
            difference.append(&alone)?;
            p.sub_public(&mut difference, &clear)?;
            Ok(then(open(difference), move |p, opened| {
                if p.reduced(opened).iter().any(|v| v != &p.visible.zero()) {
                    let failed = EngineError::check(
                        Check::EdaBits,
                        "random numbers are not what their bits say: one of the parties cheats, its results must not be used",
                    );
                    p.adversary.judge::<()>(Err(failed))?;
                }
                Ok(kept)
            }))
        },
    ))
}

/// The bits of a row in another order.
fn reordered(row: &Share<u64>, order: &[u32]) -> Result<Share<u64>> {
    sliced(&Zeroizing::new(picked(&words(row)?, order)?))
}

/// The bits of the sum of all parties' numbers, in a tree.
fn sum(
    batch: Batch,
    mut list: Vec<Vec<Share<u64>>>,
) -> Result<SendFn<binary::AuthenticatedBits, Vec<Share<u64>>>> {
    if let [last] = list.as_mut_slice() {
        return Ok(ready(std::mem::take(last)));
    }
    let lanes = batch.lanes();
    let rest = if list.len() % 2 == 1 {
        list.pop()
    } else {
        None
    };
    let longest = list.first().ok_or_else(EngineError::uneven)?;
    let width = batch.wider(longest.len());
    let second = list.split_off(list.len() / 2);
    let half = second.len();
    let added = adder::sum(
        side_by_side(&list, lanes)?,
        side_by_side(&second, lanes)?,
        width,
    )?;
    Ok(and_then(added, move |_, sums| {
        let sum = |i: usize| {
            let cut = |row: &Share<u64>| row.range(i * lanes..(i + 1) * lanes);
            sums.iter().map(cut).collect::<Result<_>>()
        };
        let mut list = (0..half).map(sum).collect::<Result<Vec<_>>>()?;
        list.extend(rest);
        self::sum(batch, list)
    }))
}

/// Takes off the bits from 2^length on.
fn cut_off<A: Arithmetic>(
    batch: Batch,
    mut numbers: Numbers<A>,
) -> Result<SendFn<Authenticated<A>, Numbers<A>>> {
    if !(batch.length..=batch.total).contains(&numbers.rows.len()) {
        return Err(EngineError::uneven());
    }
    let above = numbers.rows.split_off(batch.length);
    if above.is_empty() {
        return Ok(ready(numbers));
    }
    let converted = Authenticated::converted(joined(&above)?, above.len() * batch.n);
    Ok(then(converted, move |p: &mut Authenticated<A>, bits| {
        for i in 0..above.len() {
            let weight = p.domain.from_u128(1 << (batch.length + i));
            let mut row = bits.range(i * batch.n..(i + 1) * batch.n)?;
            for part in &mut row.parts {
                p.domain.mul_scalar_assign(part, weight);
            }
            p.sub(&mut numbers.elements, &row)?;
        }
        Ok(numbers)
    }))
}

#[cfg(test)]
mod tests {
    use keyquorum_math::Z2k128;

    use super::*;
    use crate::protocol::authenticated::PARTS;

    #[test]
    fn tests_are_enough() {
        for n in [64, 128, 512, 4096, 8192] {
            for wrong in 1..=n {
                let found = survival(n, tests(n), wrong);
                assert!(found >= ATTEMPT_BITS, "{wrong} of {n}: {found}");
            }
        }
        assert_eq!((tests(64), tests(1024), tests(8192)), (6, 4, 3));
    }

    fn internal<T>(result: Result<T>) -> bool {
        matches!(result, Err(EngineError::Internal(_)))
    }

    /// What is missing would count as zeros, in the number or in its test.
    #[test]
    fn finding_11_blocked_rows_that_are_missing() {
        let share = |parts, lanes| Share::zeros(parts, lanes);
        let packed = share(binary::PARTS, 6);
        assert!(rows(&packed, 0, 3, 2).is_ok_and(|rows| rows.len() == 3));
        assert!(internal(rows(&packed, 0, 4, 2)));
        assert!(internal(rows(&packed, 1, 3, 2)));
        assert!(internal(joined(&[share(binary::PARTS, 2), share(1, 2)])));
        let number = |lanes: &[usize]| -> Vec<Share<u64>> {
            lanes.iter().map(|n| share(binary::PARTS, *n)).collect()
        };
        let beside = side_by_side(&[number(&[2, 2, 2]), number(&[2, 2])], 2);
        assert!(beside.is_ok_and(|rows| rows.iter().map(Share::len).eq([4, 4, 4])));
        assert!(internal(side_by_side(&[number(&[2, 1])], 2)));
        assert!(internal(side_by_side(
            &[number(&[2]), vec![share(1, 2)]],
            2
        )));
        assert!(internal(side_by_side(&[], 2)));
        assert!(numbers(&[1, 2, 3, 4], 2).is_ok_and(|all| all.len() == 128));
        assert!(internal(numbers(&[1, 2, 3], 2)));
        assert!(internal(numbers(&[], 0)));
        assert!(internal(numbers(&[0; 129], 1)));
        let order: Vec<u32> = (0..128).rev().collect();
        assert!(reordered(&share(binary::PARTS, 2), &order).is_ok());
        assert!(internal(reordered(&share(binary::PARTS, 1), &order)));
        assert!(internal(reordered(&share(binary::PARTS - 1, 2), &order)));
    }

    /// Parties that share fewer tests or elements than the batch has are not tested by those of others.
    #[test]
    fn finding_11_blocked_tests_that_are_missing() {
        let batch = Batch {
            parties: 2,
            length: 3,
            n: 64,
            full: 7,
            width: 7,
            total: 4,
            tests: 1,
        };
        let order: Vec<u32> = (0..128).collect();
        let party = |lanes, n| Private::<Z2k128> {
            packed: Share::zeros(binary::PARTS, lanes),
            elements: Share::zeros(PARTS, n),
        };
        let tested = |lanes, n, order: &[u32]| test(batch, vec![party(lanes, n)], order).map(drop);
        assert!(tested(17, 192, &order).is_ok());
        for (lanes, n, count) in [
            (16, 192, 128),
            (18, 192, 128),
            (17, 191, 128),
            (17, 192, 127),
        ] {
            assert!(
                internal(tested(lanes, n, &order[..count])),
                "{lanes} {n} {count}"
            );
        }
        assert!(internal(sum(batch, Vec::new()).map(drop)));
        for rows in [2, 5] {
            let row = |_| Share::zeros(binary::PARTS, 1);
            let numbers = Numbers::<Z2k128> {
                rows: (0..rows).map(row).collect(),
                elements: Share::zeros(PARTS, 64),
            };
            assert!(internal(cut_off(batch, numbers).map(drop)), "{rows}");
        }
    }

    /// Over a field every number is as likely after its sum as before, if the sum is kept; others are not; and few are not kept.
    #[test]
    fn sums_that_are_kept_tell_nothing() {
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
