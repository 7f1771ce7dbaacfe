//! Packing of bits.

#![allow(clippy::unwrap_used)] // a failure here is a failed test

use keyquorum_math::bits;
use proptest::prelude::*;

proptest! {
    #[test]
    fn packing_is_least_significant_first(input in prop::collection::vec(0u8..2, 0..500)) {
        let packed = bits::pack(&input);
        prop_assert_eq!(packed.len(), bits::words(input.len()));
        for i in 0..64 * packed.len() {
            let expected = input.get(i).copied().unwrap_or(0);
            prop_assert_eq!((packed[i / 64] >> (i % 64)) as u8 & 1, expected);
        }
        prop_assert_eq!(bits::unpack(&packed, input.len()).unwrap(), input);
    }

    #[test]
    fn unpacking_gives_bits(words: Vec<u64>, cut in 0usize..200) {
        let n = (64 * words.len()).saturating_sub(cut);
        let unpacked = bits::unpack(&words, n).unwrap();
        prop_assert_eq!(unpacked.len(), n);
        for (i, &bit) in unpacked.iter().enumerate() {
            prop_assert_eq!(u64::from(bit), (words[i / 64] >> (i % 64)) & 1);
        }
        let mut longer = unpacked.clone();
        longer.resize(64 * words.len(), 0);
        prop_assert_eq!(bits::unpack(&bits::pack(&unpacked), 64 * bits::words(n)).unwrap(), {
            longer.truncate(64 * bits::words(n));
            longer
        });
    }

    #[test]
    fn planes_hold_one_bit_of_every_word(input: Vec<u128>, m in 0usize..140) {
        let planes = bits::planes(&input, m);
        prop_assert_eq!(planes.len(), m);
        for (j, plane) in planes.iter().enumerate() {
            prop_assert_eq!(plane.len(), bits::words(input.len()));
            let expected: Vec<u8> =
                input.iter().map(|x| x.checked_shr(j as u32).unwrap_or(0) as u8 & 1).collect();
            prop_assert_eq!(plane, &bits::pack(&expected));
        }
        let mask = u128::MAX.checked_shr(128 - m.min(128) as u32).unwrap_or(0);
        let low: Vec<u128> = input.iter().map(|x| x & mask).collect();
        prop_assert_eq!(bits::from_planes::<u128, _>(&planes, input.len()).unwrap(), low);

        let words: Vec<u64> = input.iter().map(|&x| x as u64).collect();
        let planes = bits::planes(&words, m);
        prop_assert!(planes.iter().skip(64).flatten().all(|&x| x == 0));
        let low: Vec<u64> = words.iter().map(|x| x & mask as u64).collect();
        prop_assert_eq!(bits::from_planes::<u64, _>(&planes, input.len()).unwrap(), low);
    }

    #[test]
    fn transposition_swaps_rows_and_bits(rows in prop::array::uniform32(any::<[u64; 2]>())) {
        let mut matrix = [0; 64];
        matrix.copy_from_slice(rows.as_flattened());
        let before = matrix;
        bits::transpose(&mut matrix);
        for (i, row) in matrix.iter().enumerate() {
            for (j, column) in before.iter().enumerate() {
                prop_assert_eq!((row >> j) & 1, (column >> i) & 1);
            }
        }
    }

    #[test]
    fn only_the_lowest_bit_of_a_byte_counts(input: Vec<u8>) {
        let low: Vec<u8> = input.iter().map(|b| b & 1).collect();
        prop_assert_eq!(bits::pack(&input), bits::pack(&low));
    }
}

/// Bits that are not there are an error, not zeros.
#[test]
fn missing_parts_blocked_words_without_bits() {
    assert!(bits::unpack(&[], 3).is_err());
    assert!(bits::unpack(&[!0], 65).is_err());
    assert_eq!(bits::unpack(&[!0, 1], 3).unwrap(), [1, 1, 1]);
    assert_eq!(bits::unpack(&[], 0).unwrap(), []);
    for planes in [
        [vec![1, 1], vec![1]],
        [vec![], vec![1, 1]],
        [vec![1, 1, 1], vec![1, 1]],
    ] {
        let words = bits::from_planes::<u64, _>(&planes, 70);
        assert_eq!(
            words.unwrap_err().to_string(),
            "internal error: bits of words in vectors of another length: please report it"
        );
    }
}
