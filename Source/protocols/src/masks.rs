//! Functions that make masks of secret bits run the same instructions, whatever the bits are.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // a failed test may panic

use std::hint::black_box;

use keyquorum_math::{Z2k64, Zq};

use super::additive::add_chosen;
use super::authenticated::to_places;
use super::lane_bits;
use super::verified::multiply;

#[path = "../../math/tests/traced/mod.rs"]
mod traced;

/// All traces of `call` are one.
fn same<T>(test: &str, operands: &[T], call: impl FnMut(&T)) {
    let name = format!("masks::{test}");
    if let Some(found) = traced::traces(&name, operands, call) {
        assert!(found[0].0 > 100, "{found:?}");
        assert!(found.iter().all(|trace| *trace == found[0]), "{found:?}");
    }
}

#[test]
fn timing_blocked_chosen_vectors_are_added_by_the_same_instructions() {
    let ring = Z2k64::new(64).unwrap();
    let name = "timing_blocked_chosen_vectors_are_added_by_the_same_instructions";
    same(name, &[0u64, 1], |bit| {
        add_chosen(&ring, &mut black_box([1; 64]), &black_box([2; 64]), *bit);
    });
}

#[test]
fn timing_blocked_bits_become_elements_by_the_same_instructions() {
    let field = Zq::new((1 << 61) - 1).unwrap();
    let name = "timing_blocked_bits_become_elements_by_the_same_instructions";
    same(name, &[[0u64; 2], [!0; 2], [0x0F0F, 3]], |lanes| {
        black_box(lane_bits(&field, lanes, 100).unwrap());
    });
}

#[test]
fn timing_blocked_polynomials_are_multiplied_by_the_same_instructions() {
    let name = "timing_blocked_polynomials_are_multiplied_by_the_same_instructions";
    same(name, &[0u64, !0, 0x0123_4567_89AB_CDEF], |b| {
        black_box(multiply(black_box(0x1234_5678), *b));
    });
}

#[test]
fn timing_blocked_noise_moves_to_its_place_by_the_same_instructions() {
    let name = "timing_blocked_noise_moves_to_its_place_by_the_same_instructions";
    same(name, &[[0u64; 6], [1; 6], [0, 1, 1, 0, 1, 0]], |choices| {
        to_places(&mut black_box([9u64; 16]), 2, choices).unwrap();
    });
}
