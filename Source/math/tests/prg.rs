//! The generator: its definition, its streams and how calls may cut them.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a failure here is a failed test

use aes::Aes128;
use cipher::{BlockEncrypt, KeyInit};
use keyquorum_math::{Prg, os_random};
use proptest::prelude::*;

/// The stream by definition: AES-128 of `stream || counter`.
fn reference(seed: [u8; 16], stream: u64, blocks: u64) -> Vec<u8> {
    let cipher = Aes128::new(&seed.into());
    let block = |counter: u64| {
        let input = (u128::from(stream) << 64) | u128::from(counter);
        let mut block = input.to_be_bytes().into();
        cipher.encrypt_block(&mut block);
        block
    };
    (0..blocks).flat_map(block).collect()
}

proptest! {
    #[test]
    fn stream_is_aes_in_counter_mode(seed: [u8; 16], stream: u64) {
        let mut out = vec![0xff; 16 * 300];
        Prg::new(seed, stream).fill(&mut out);
        prop_assert_eq!(out, reference(seed, stream, 300));
    }

    #[test]
    fn cuts_do_not_matter(seed: [u8; 16], cuts in prop::collection::vec(0usize..700, 1..12)) {
        let mut whole = vec![0; cuts.iter().sum()];
        Prg::new(seed, 1).fill(&mut whole);
        let mut prg = Prg::new(seed, 1);
        let mut parts = Vec::new();
        for cut in cuts {
            let mut part = vec![1; cut];
            prg.fill(&mut part);
            parts.extend(part);
        }
        prop_assert_eq!(parts, whole);
    }

    #[test]
    fn words_are_little_endian_bytes(seed: [u8; 16], n in 0usize..600) {
        let mut bytes = vec![0; 16 * n];
        Prg::new(seed, 2).fill(&mut bytes);
        let mut words = vec![1; 2 * n];
        Prg::new(seed, 2).fill_u64(&mut words);
        let mut wide = vec![1; n];
        Prg::new(seed, 2).fill_u128(&mut wide);
        let from_words: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let from_wide: Vec<u8> = wide.iter().flat_map(|w| w.to_le_bytes()).collect();
        prop_assert_eq!(&from_words, &bytes);
        prop_assert_eq!(&from_wide, &bytes);
        let mut prg = Prg::new(seed, 2);
        for word in words {
            prop_assert_eq!(prg.next_u64(), word);
        }
    }
}

#[test]
fn operating_system_seeds_differ() {
    let mut first = Prg::from_os().unwrap();
    let mut second = Prg::from_os().unwrap();
    assert_ne!(first.next_seed(), second.next_seed());
    let mut bytes = [0; 32];
    os_random(&mut bytes).unwrap();
    assert_ne!(bytes, [0; 32]);
}

#[test]
fn debug_output_hides_the_state() {
    assert_eq!(format!("{:?}", Prg::new([9; 16], 3)), "Prg(secret)");
}
