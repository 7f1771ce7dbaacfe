//! Random numbers of a given length as elements, and their bits packed (edaBits).
//!
//! Every party shares numbers that it knows in both domains. For each there are T others of full length, assigned by a tossed order, which
//! test it: the sum of number and test is added up bit by bit, opened, and must be what the elements say. It reveals nothing, since the test
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

mod batch;
mod rows;

use zeroize::Zeroizing;

pub(super) use self::batch::Batch;
use self::rows::{joined, numbers, reordered, rows, side_by_side, with_capacity};
use super::binary::{self, adder};
use super::private::{OPENED, Private, shared};
use super::verify::check;
use super::{Arithmetic, Authenticated, bits, open};
use crate::adversary::Site;
use crate::error::{Check, EngineError, Result};
use crate::task::{SendFn, and_then, ready, then, within};
use crate::value::{Share, same};

/// Asks for the ingredients of the batch.
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
    p.preprocessing.need_bits(batch.excess() * batch.lanes());
    Ok(())
}

/// Numbers in both domains.
struct Numbers<A: Arithmetic> {
    rows: Vec<Share<u64>>,
    elements: Share<A::E>,
}

/// A task that makes a batch of edaBits.
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
            p.bits.guard.answered()?;
            p.preprocessing.put_edabits(numbers.elements, &numbers.rows)
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
    let mut shown = with_capacity(binary::PARTS, parties * batch.full * OPENED / 64);
    let mut sums = with_capacity(super::PARTS, parties * (64 * used + OPENED));
    let mut alone = with_capacity(super::PARTS, parties * OPENED);
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
        move |p: &mut Authenticated<A>, (opened, sum_lanes)| {
            let (in_sums, in_tests) = opened
                .split_at_checked(sum_lanes)
                .ok_or_else(EngineError::uneven)?;
            let shown = batch.full * OPENED / 64;
            same(in_tests.len(), kept.len() * shown)?;
            // Elements minus what the bits say: zero, modulo 2^k in a ring.
            let mut difference = sums;
            let mut at = 0;
            for numbers in &kept {
                for _ in 0..batch.tests {
                    for (sum, short) in difference.with(&numbers.elements)? {
                        let block = sum.get_mut(at..at + batch.n);
                        p.domain
                            .add_assign(block.ok_or_else(EngineError::uneven)?, short);
                    }
                    at += batch.n;
                }
            }
            let mut clear: Vec<A::E> = Vec::with_capacity(at + alone.len());
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
    use crate::authenticated::PARTS;

    fn internal<T>(result: Result<T>) -> bool {
        matches!(result, Err(EngineError::Internal(_)))
    }

    /// Parties that share fewer tests or elements than the batch has are not tested by those of others.
    #[test]
    fn missing_parts_blocked_tests_that_are_missing() {
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
}
