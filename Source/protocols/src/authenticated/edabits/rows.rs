//! Rows of packed bits, row j of them bit j of all numbers; and the numbers of opened rows.

use keyquorum_math::Element;
use zeroize::Zeroizing;

use super::super::binary::{self, sliced, words};
use crate::error::{EngineError, Result};
use crate::value::{Share, picked};

/// Rows `from..from + count` of `lanes` lanes each, one after another in a share.
pub(super) fn rows(
    share: &Share<u64>,
    from: usize,
    count: usize,
    lanes: usize,
) -> Result<Vec<Share<u64>>> {
    let row = |i: usize| share.range(from + i * lanes..from + (i + 1) * lanes);
    (0..count).map(row).collect()
}

/// An empty share with capacity for `n` lanes or elements: a vector that grows leaves a copy of its secrets behind.
pub(super) fn with_capacity<E: Element>(parts: usize, n: usize) -> Share<E> {
    Share {
        parts: (0..parts).map(|_| Vec::with_capacity(n)).collect(),
    }
}

/// One row after another.
pub(super) fn joined(rows: &[Share<u64>]) -> Result<Share<u64>> {
    let mut all = with_capacity(binary::PARTS, rows.iter().map(Share::len).sum());
    rows.iter().try_for_each(|row| all.append(row))?;
    Ok(all)
}

/// Rows of `lanes` lanes side by side: row i of the result has the lanes of all rows i. Numbers may have fewer rows than others: their
/// bits above are zero.
pub(super) fn side_by_side(list: &[Vec<Share<u64>>], lanes: usize) -> Result<Vec<Share<u64>>> {
    let count = list.iter().map(Vec::len).max();
    let count = count.ok_or_else(EngineError::uneven)?;
    let row = |i: usize| {
        let mut row = with_capacity(binary::PARTS, lanes * list.len());
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
pub(super) fn numbers(rows: &[u64], lanes: usize) -> Result<Zeroizing<Vec<u128>>> {
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

/// The bits of a row in another order.
pub(super) fn reordered(row: &Share<u64>, order: &[u32]) -> Result<Share<u64>> {
    sliced(&Zeroizing::new(picked(&words(row)?, order)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn internal<T>(result: Result<T>) -> bool {
        matches!(result, Err(EngineError::Internal(_)))
    }

    /// Missing rows would count as zeros, in the number or in its test.
    #[test]
    fn missing_parts_blocked_rows_that_are_missing() {
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
}
