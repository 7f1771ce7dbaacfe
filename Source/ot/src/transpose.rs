//! Transposition of 128 rows of packed bits to one word a column, and of up to 64 rows to and from words of 64 bits.

use zeroize::Zeroize;

use crate::tile::{Row, TILE};
use crate::{KAPPA, OtError, check_same, uneven};

/// Independent 64 x 64 matrices that one pass of the network transposes: two blocks of 128 columns.
const LANES: usize = 8;

/// Entry `[row][matrix]`.
type Matrices = [[u64; LANES]; 64];

/// Warren, "Hacker's Delight", section 7-3, on all matrices side by side: the compiler makes vectors of the inner loop.
#[inline(always)]
fn network(matrices: &mut Matrices) {
    let mut size = 32;
    let mut mask = u64::MAX >> 32;
    while size > 0 {
        for rows in matrices.chunks_exact_mut(2 * size) {
            let (top, bottom) = rows.split_at_mut(size);
            for (x, y) in top.iter_mut().zip(bottom) {
                for (x, y) in x.iter_mut().zip(y) {
                    let difference = ((*x >> size) ^ *y) & mask;
                    *x ^= difference << size;
                    *y ^= difference;
                }
            }
        }
        size /= 2;
        mask ^= mask << size;
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn network_avx2(matrices: &mut Matrices) {
    network(matrices);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn network_avx512(matrices: &mut Matrices) {
    network(matrices);
}

fn best(matrices: &mut Matrices) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the function needs nothing but avx512f, which was just detected.
            return unsafe { network_avx512(matrices) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the function needs nothing but avx2, which was just detected.
            return unsafe { network_avx2(matrices) };
        }
    }
    network(matrices);
}

/// Bit `i` of `columns[c]` becomes bit `c` of row `i`; `columns` has at most 128 words a block of the rows.
pub(crate) fn transpose(rows: &[Row; KAPPA], columns: &mut [u128]) -> Result<(), OtError> {
    if columns.len() > TILE {
        return Err(uneven());
    }
    let (upper, lower) = rows.split_at(KAPPA / 2);
    for (pair, columns) in columns.chunks_mut(256).enumerate() {
        let mut matrices: Matrices = [[0; LANES]; 64];
        // Lanes: block, half of the columns, half of the rows.
        for ((lanes, top), bottom) in matrices.iter_mut().zip(upper).zip(lower) {
            let [a, b, c, d, e, f, g, h] = lanes;
            let blocks = |row: &Row| row.as_chunks::<2>().0.get(pair).copied().ok_or_else(uneven);
            let halves = |word: u128| (word as u64, (word >> 64) as u64);
            let ([first, second], [third, fourth]) = (blocks(top)?, blocks(bottom)?);
            (*a, *c) = halves(first);
            (*b, *d) = halves(third);
            (*e, *g) = halves(second);
            (*f, *h) = halves(fourth);
        }
        best(&mut matrices);
        for (half, columns) in columns.chunks_mut(64).enumerate() {
            for (column, lanes) in columns.iter_mut().zip(&matrices) {
                let Some([low, high]) = lanes.get(2 * half..2 * half + 2) else {
                    return Err(uneven());
                };
                *column = u128::from(*low) | u128::from(*high) << 64;
            }
        }
        matrices.as_flattened_mut().zeroize();
    }
    Ok(())
}

/// Appends bit `j` of every word to `planes[j]`, 64 a lane; missing words of the last lane are zero.
///
/// # Errors
/// [`OtError::Internal`] for more than 64 planes.
pub fn planes(words: &[u64], planes: &mut [Vec<u64>]) -> Result<(), OtError> {
    if planes.len() > 64 {
        return Err(uneven());
    }
    for group in words.chunks(64 * LANES) {
        let mut matrices: Matrices = [[0; LANES]; 64];
        for (lane, part) in group.chunks(64).enumerate() {
            for (row, word) in matrices.iter_mut().zip(part) {
                *row.get_mut(lane).ok_or_else(uneven)? = *word;
            }
        }
        best(&mut matrices);
        let lanes = group.len().div_ceil(64);
        for (plane, row) in planes.iter_mut().zip(&matrices) {
            plane.extend(row.iter().take(lanes));
        }
        matrices.as_flattened_mut().zeroize();
    }
    Ok(())
}

/// Undoes [`planes`]: appends 64 words for each of the `lanes` lanes; bits beyond the last plane are zero.
///
/// # Errors
/// [`OtError::Internal`] for more than 64 planes, or a plane of another number of lanes.
pub fn words<P: AsRef<[u64]>>(
    planes: &[P],
    lanes: usize,
    words: &mut Vec<u64>,
) -> Result<(), OtError> {
    if planes.len() > 64 {
        return Err(uneven());
    }
    for plane in planes {
        check_same(plane.as_ref().len(), lanes)?;
    }
    words.reserve(64 * lanes);
    for first in (0..lanes).step_by(LANES) {
        let count = LANES.min(lanes - first);
        let mut matrices: Matrices = [[0; LANES]; 64];
        for (row, plane) in matrices.iter_mut().zip(planes) {
            for (slot, lane) in row
                .iter_mut()
                .zip(plane.as_ref().iter().skip(first))
                .take(count)
            {
                *slot = *lane;
            }
        }
        best(&mut matrices);
        for lane in 0..count {
            for row in &matrices {
                words.push(*row.get(lane).ok_or_else(uneven)?);
            }
        }
        matrices.as_flattened_mut().zeroize();
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;

    fn words(n: usize) -> Vec<u128> {
        let mut state = 1u128;
        (0..n)
            .map(|_| {
                state = state
                    .wrapping_mul(0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645)
                    .wrapping_add(3);
                state ^ (state >> 67)
            })
            .collect()
    }

    #[test]
    fn bit_c_of_row_i_is_bit_i_of_column_c() {
        let mut rows = [Row::default(); KAPPA];
        for (slot, word) in rows.iter_mut().flatten().zip(words(128 * 8)) {
            *slot = word;
        }
        for blocks in 1..=8 {
            let mut columns = vec![0; 128 * blocks];
            transpose(&rows, &mut columns).unwrap();
            for (i, row) in rows.iter().enumerate() {
                for (c, column) in columns.iter().enumerate() {
                    let bit = row[c / 128] >> (c % 128) & 1;
                    assert_eq!(
                        column >> i & 1,
                        bit,
                        "row {i}, column {c} of {blocks} blocks"
                    );
                }
            }
        }
    }

    #[test]
    fn planes_and_back() {
        for n in [64usize, 128, 512, 576, 1024 + 64] {
            let given = words_of(n);
            let mut rows = vec![Vec::new(); 64];
            planes(&given, &mut rows).unwrap();
            for (i, word) in given.iter().enumerate() {
                for (j, row) in rows.iter().enumerate() {
                    assert_eq!(row[i / 64] >> (i % 64) & 1, word >> j & 1);
                }
            }
            let mut back = Vec::new();
            super::words(&rows, n / 64, &mut back).unwrap();
            assert_eq!(back, given);
        }
    }

    /// Without the check, shares of bits that lack a part of their MACs would be used with zeros for it.
    #[test]
    fn missing_parts_blocked_planes_of_other_lengths() {
        let internal = |result| matches!(result, Err(OtError::Internal(_)));
        let mut out = Vec::new();
        let mut rows = vec![vec![1; 3]; 41];
        super::words(&rows, 3, &mut out).unwrap();
        assert_eq!(out.len(), 192);
        assert!(internal(super::words(&rows, 4, &mut out)));
        assert!(internal(super::words(&rows, 2, &mut out)));
        rows[40].pop();
        assert!(internal(super::words(&rows, 3, &mut out)));
        assert!(internal(super::words(&vec![[0u64; 1]; 65], 1, &mut out)));
        assert!(internal(planes(&[1], &mut vec![Vec::new(); 65])));
        assert_eq!(out.len(), 192);
        let columns = &mut [0; TILE + 128];
        assert!(internal(transpose(&[Row::default(); KAPPA], columns)));
    }

    fn words_of(n: usize) -> Vec<u64> {
        words(n).into_iter().map(|w| (w >> 32) as u64).collect()
    }

    #[test]
    fn the_networks_agree() {
        let mut plain: Matrices = [[0; LANES]; 64];
        for (lane, word) in plain.iter_mut().flatten().zip(words(64 * LANES)) {
            *lane = word as u64;
        }
        let mut fast = plain;
        network(&mut plain);
        best(&mut fast);
        assert_eq!(plain, fast);
    }
}
