//! Random permutations, and their application to vectors of blocks.
//!
//! Whoever permutes knows the permutation: memory is accessed in its order, so that a process of the same host that watches
//! the cache may learn something of it.

use keyquorum_math::{Element, Prg};

use crate::error::{EngineError, Result};

/// A uniformly random permutation of `0..n` (Fisher-Yates; numbers that would be biased are drawn again).
pub(crate) fn random_permutation(prg: &mut Prg, n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        order.swap(i, below(prg, i as u64 + 1) as usize);
    }
    order
}

/// A uniform number below `bound`: the high word of a product, without the short first interval (Lemire 2019).
fn below(prg: &mut Prg, bound: u64) -> u64 {
    let short = bound.wrapping_neg() % bound;
    loop {
        let product = u128::from(prg.next_u64()) * u128::from(bound);
        if product as u64 >= short {
            return (product >> 64) as u64;
        }
    }
}

/// The blocks of `unit` elements, block i from position `order[i]`.
pub(crate) fn permuted<E: Element>(values: &[E], order: &[usize], unit: usize) -> Result<Vec<E>> {
    let other = || EngineError::internal("a permutation of another number of blocks");
    if order.len() * unit != values.len() {
        return Err(other());
    }
    let mut out = Vec::with_capacity(values.len());
    for &from in order {
        let block = values.get(from * unit..(from + 1) * unit);
        out.extend_from_slice(block.ok_or_else(other)?);
    }
    Ok(out)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;

    #[test]
    fn every_permutation_comes_equally_often() {
        let mut prg = Prg::new([7; 16], 0);
        let mut counts = std::collections::HashMap::new();
        let runs = 24_000;
        for _ in 0..runs {
            *counts
                .entry(random_permutation(&mut prg, 4))
                .or_insert(0usize) += 1;
        }
        assert_eq!(counts.len(), 24);
        let expected = runs as f64 / 24.0;
        let chi: f64 = counts
            .values()
            .map(|c| (*c as f64 - expected).powi(2) / expected)
            .sum();
        assert!(
            chi < 41.64,
            "chi-square {chi} of 23 degrees of freedom is above the 99 % quantile"
        );
    }

    #[test]
    fn blocks_stay_together() {
        assert_eq!(
            permuted(&[1u64, 2, 3, 4, 5, 6], &[2, 0, 1], 2).unwrap(),
            [5, 6, 1, 2, 3, 4]
        );
    }
}
