//! Deviates of a symmetric distribution on the integers, by its cumulative table, in constant time.

use zeroize::Zeroize;

use crate::prg::Prg;

/// Words of a threshold, of 63 bits each: the borrow of a difference is then its highest bit.
const LIMBS: usize = 3;
/// Deviates that are drawn together, so that the scan runs over vectors.
const BATCH: usize = 64;

/// A table that no sampler can use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "no cumulative table: give thresholds of three words below 2^63, least significant first, which do not decrease"
)]
pub struct TableError;

/// The cumulative table of the magnitude of a symmetric distribution.
///
/// Threshold k is `2^189 P(|X| <= k)`, in three words of 63 bits, least significant first; k runs from 0 to one less than the largest magnitude. A
/// magnitude is the number of thresholds that a uniform number of 189 bits reaches, and the sign is a further bit.
pub struct SymmetricTable {
    thresholds: Vec<[u64; LIMBS]>,
}

impl SymmetricTable {
    /// A table from the words of its thresholds, one threshold after another.
    ///
    /// # Errors
    ///
    /// [`TableError`] if there is no whole number of thresholds, a word has more than 63 bits, or a threshold is below the one before.
    pub fn new(words: &[u64]) -> Result<Self, TableError> {
        let thresholds: Vec<[u64; LIMBS]> = words
            .chunks(LIMBS)
            .map(<[u64; LIMBS]>::try_from)
            .collect::<Result<_, _>>()
            .map_err(|_| TableError)?;
        let ordered = |a: &[u64; LIMBS], b: &[u64; LIMBS]| a.iter().rev().le(b.iter().rev());
        let fits = words.iter().all(|word| word >> 63 == 0);
        if !fits || !thresholds.is_sorted_by(ordered) {
            return Err(TableError);
        }
        Ok(Self { thresholds })
    }

    /// Fills `out` with independent deviates. All thresholds are compared with each of them: neither the operations nor the addresses depend on the
    /// deviates, or on the randomness.
    pub fn sample(&self, prg: &mut Prg, out: &mut [i64]) {
        let mut words = [[0u64; BATCH]; LIMBS];
        let mut signs = [0u64; BATCH];
        let mut magnitudes = [0u64; BATCH];
        for part in out.chunks_mut(BATCH) {
            for limb in &mut words {
                prg.fill_u64(limb);
            }
            let [low, middle, high] = &mut words;
            for (sign, word) in signs.iter_mut().zip(low.iter()) {
                *sign = word & 1;
            }
            for word in low.iter_mut().chain(&mut *middle).chain(&mut *high) {
                *word >>= 1;
            }
            magnitudes.fill(0);
            for [least, next, most] in &self.thresholds {
                let numbers = low.iter().zip(&*middle).zip(&*high);
                for (magnitude, ((x, y), z)) in magnitudes.iter_mut().zip(numbers) {
                    let borrow = x.wrapping_sub(*least) >> 63;
                    let borrow = y.wrapping_sub(*next).wrapping_sub(borrow) >> 63;
                    let borrow = z.wrapping_sub(*most).wrapping_sub(borrow) >> 63;
                    *magnitude += borrow ^ 1;
                }
            }
            for ((o, magnitude), sign) in part.iter_mut().zip(&magnitudes).zip(&signs) {
                *o = (magnitude ^ sign.wrapping_neg()).wrapping_add(*sign) as i64;
            }
        }
        words.zeroize();
        signs.zeroize();
        magnitudes.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `2^189 p` for p = numerator / 2^63, as a threshold.
    fn share(numerator: u64) -> [u64; 3] {
        [0, 0, numerator]
    }

    #[test]
    fn magnitudes_have_the_probabilities_of_the_table() -> Result<(), TableError> {
        let half = 1u64 << 62;
        let words: Vec<u64> =
            [share(half), share(half + half / 2), share(half + half / 2)].concat();
        let table = SymmetricTable::new(&words)?;
        let mut out = vec![0i64; 100_003];
        table.sample(&mut Prg::new([7; 16], 0), &mut out);
        let count = |value: i64| out.iter().filter(|x| **x == value).count() as f64;
        // 1/2 is 0, 1/4 is 1 or -1, nothing is 2, 1/4 is 3 or -3; 5 deviations of a binomial count are below 800
        for (value, expected) in [
            (0, 50_000.0),
            (1, 12_500.0),
            (-1, 12_500.0),
            (3, 12_500.0),
            (-3, 12_500.0),
        ] {
            assert!(
                (count(value) - expected).abs() < 800.0,
                "{value}: {}",
                count(value)
            );
        }
        assert_eq!(count(2) + count(-2), 0.0);
        Ok(())
    }

    /// The comparison is that of 189-bit numbers: thresholds that differ in the lowest word only, at the numbers that are drawn.
    #[test]
    fn comparisons_take_all_words() -> Result<(), TableError> {
        let mut drawn = [[0u64; BATCH]; LIMBS];
        let mut prg = Prg::new([9; 16], 0);
        for limb in &mut drawn {
            prg.fill_u64(limb);
        }
        let [low, middle, high] = &drawn;
        for (at, ((x, y), z)) in low.iter().zip(middle).zip(high).enumerate().take(8) {
            let number = [x >> 1, y >> 1, z >> 1];
            for (threshold, reached) in [(number, 1), (next(number), 0)] {
                let mut out = [0i64; BATCH];
                SymmetricTable::new(&threshold)?.sample(&mut Prg::new([9; 16], 0), &mut out);
                let sign = if x & 1 == 1 { -1 } else { 1 };
                assert_eq!(out.get(at), Some(&(sign * reached)));
            }
        }
        Ok(())
    }

    /// A number plus one.
    fn next([low, middle, high]: [u64; 3]) -> [u64; 3] {
        let all = 1 << 63;
        let carry = u64::from(low + 1 == all);
        let further = u64::from(middle + carry == all);
        [(low + 1) % all, (middle + carry) % all, high + further]
    }

    #[test]
    fn tables_without_sense_are_refused() {
        let last = [0, 0, 1 << 63];
        for words in [&[1, 2][..], &last, &[0, 0, 5, 0, 0, 4], &[1, 1, 1, 2, 0, 1]] {
            assert!(matches!(SymmetricTable::new(words), Err(TableError)));
        }
        assert!(SymmetricTable::new(&[5, 0, 1, 4, 1, 1]).is_ok());
    }
}
