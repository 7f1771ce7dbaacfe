//! Sums over GF(2) of words that packed bits select. No branch and no address depends on a bit.

use crate::mask::masks_of;
use crate::wide::for_wide_registers;

/// Words that are taken together: 8 fill a register of 512 bits.
const LANES: usize = 8;

for_wide_registers! {
    /// Bit i of word j of `bits` selects word j of `words` for place 64 j + i; the sums of what was selected for the same places of pieces of the length of `sums` are added to `sums`.
    ///
    /// `words` and `bits` have one word for every 64 places of every piece.
    fn selected_words(sums: &mut [u64], words: &[u64], bits: &[u64]) {
        let piece = (sums.len() / 64).max(1);
        for (words, bits) in words.chunks_exact(piece).zip(bits.chunks_exact(piece)) {
            for ((sums, word), bits) in sums.as_chunks_mut::<64>().0.iter_mut().zip(words).zip(bits) {
                for (first, sums) in sums.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
                    let masks = masks_of::<LANES>(bits >> (LANES * first));
                    for (sum, mask) in sums.iter_mut().zip(masks) {
                        *sum ^= word & mask;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)] // a failed test may panic
mod tests {
    use super::*;
    use crate::Prg;

    #[test]
    fn words_are_selected() {
        let mut prg = Prg::new([9; 16], 0);
        let mut draw = |n: usize| {
            let mut words = vec![0; n];
            prg.fill_u64(&mut words);
            words
        };
        for (pieces, length) in [(1, 1), (2, 3), (16, 2)] {
            let (words, bits) = (draw(pieces * length), draw(pieces * length));
            let before = draw(64 * length);
            let mut sums = before.clone();
            selected_words(&mut sums, &words, &bits);
            for (j, sum) in sums.iter().enumerate() {
                let at = |p: usize| p * length + j / 64;
                let chosen = (0..pieces).filter(|p| bits[at(*p)] >> (j % 64) & 1 == 1);
                let wanted = chosen.fold(before[j], |sum, p| sum ^ words[at(p)]);
                assert_eq!(*sum, wanted, "{pieces} {length} {j}");
            }
        }
    }
}
