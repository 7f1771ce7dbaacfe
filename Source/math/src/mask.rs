//! Masks of secret bits.
//!
//! A compiler that knows that a mask has all bits or none may turn it into a jump, and the time then depends on the bit: compilers do. So masks pass a barrier, behind which nothing is known
//! of them. [`std::hint::black_box`] promises nothing, so tests look for jumps in the code that was emitted.

use std::hint::black_box;

use crate::word::Element;

/// All ones if the lowest bit of `bit` is one, else zero.
#[inline(always)]
pub fn mask_of<E: Element>(bit: E) -> E {
    let mask = black_box((bit.to_u128() as u64 & 1).wrapping_neg());
    E::from_u128_wrapping(u128::from(mask) | u128::from(mask) << 64)
}

/// The masks of the lowest `N` bits, at most 64, the lowest first: one barrier for all.
#[inline(always)]
pub fn masks_of<const N: usize>(bits: u64) -> [u64; N] {
    let mut masks = [bits; N];
    for (i, mask) in masks.iter_mut().enumerate() {
        *mask = ((*mask >> i) & 1).wrapping_neg();
    }
    black_box(&mut masks);
    masks
}

#[cfg(test)]
#[path = "../tests/traced/mod.rs"]
mod traced;

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)] // a failed test may panic
mod tests {
    use super::traced::traces;
    use super::*;
    use crate::fhew::{Fhew, Rows};
    use crate::{Prg, selected_words};

    #[test]
    fn masks_have_all_bits_or_none() {
        assert_eq!([0u64, 1, 2, 3].map(mask_of), [0, u64::MAX, 0, u64::MAX]);
        assert_eq!([0u128, 1, 2].map(mask_of), [0, u128::MAX, 0]);
        assert_eq!(masks_of::<4>(0b1010), [0, u64::MAX, 0, u64::MAX]);
        let all = masks_of::<64>(0x0123_4567_89AB_CDEF);
        let bits = all.iter().enumerate().map(|(i, mask)| mask & 1 << i);
        assert_eq!(bits.sum::<u64>(), 0x0123_4567_89AB_CDEF);
    }

    /// Adds the rows that bits select, as a public-key encryption does.
    #[inline(never)]
    fn summed(sums: &mut [u64], rows: &[u64], choices: &mut [u64], mask: impl Fn(u64) -> u64) {
        let width = sums.len() / choices.len();
        for row in rows.chunks_exact(width) {
            for (sum, choice) in sums.chunks_exact_mut(width).zip(&mut *choices) {
                let chosen = mask(*choice);
                *choice >>= 1;
                for (sum, x) in sum.iter_mut().zip(row) {
                    *sum += x & chosen;
                }
            }
        }
    }

    fn rows() -> [u64; 64 * 20] {
        black_box([3; 64 * 20])
    }

    #[test]
    fn timing_blocked_sums_behind_masks_run_the_same_instructions() {
        let name = "mask::tests::timing_blocked_sums_behind_masks_run_the_same_instructions";
        let found = traces(name, &[[0, 0], [!0, 0], [0x5555, 0x0FF0]], |choices| {
            let mut choices = *choices;
            summed(&mut black_box([0; 40]), &rows(), &mut choices, mask_of);
        });
        same(found);
    }

    /// The same with a jump in place of the mask, as compilers make it of a mask without a barrier.
    #[test]
    fn timing_ablated_jumps_run_other_instructions() {
        let name = "mask::tests::timing_ablated_jumps_run_other_instructions";
        let found = traces(name, &[[0, 0], [!0, 0]], |choices| {
            let jump = |choice: u64| {
                if black_box(choice & 1) == 1 {
                    black_box(!0)
                } else {
                    0
                }
            };
            let mut choices = *choices;
            summed(&mut black_box([0; 40]), &rows(), &mut choices, jump);
        });
        if let Some(found) = found {
            assert_ne!(found[0], found[1]);
        }
    }

    /// All traces are one.
    fn same(traces: Option<Vec<super::traced::Trace>>) {
        if let Some(traces) = traces {
            assert!(traces[0].0 > 100, "{traces:?}");
            assert!(traces.iter().all(|trace| *trace == traces[0]), "{traces:?}");
        }
    }

    #[test]
    fn timing_blocked_selected_words_run_the_same_instructions() {
        let name = "mask::tests::timing_blocked_selected_words_run_the_same_instructions";
        let found = traces(name, &[[0u64; 4], [!0; 4], [1, 2, 3, !0]], |bits| {
            selected_words(&mut black_box([0; 128]), &black_box([7; 4]), bits);
        });
        same(found);
    }

    /// Choices come from the generator, so from its seed.
    #[test]
    fn timing_blocked_encryptions_run_the_same_instructions() {
        let name = "mask::tests::timing_blocked_encryptions_run_the_same_instructions";
        let fhew = Fhew::new(12289, 16, 4, (7, 2), (7, 2)).unwrap();
        let bodies: Vec<u64> = (1..4).collect();
        let found = traces(name, &[1u8, 2, 3], |seed| {
            let mut prg = Prg::new([*seed; 16], 0);
            let key = Rows {
                seed: [9; 16],
                bodies: &bodies,
            };
            black_box(fhew.encrypt(key, 8, &[5], &mut prg).unwrap());
        });
        same(found);
    }
}
