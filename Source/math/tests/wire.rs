//! The encoding of vectors: its bytes, and what it refuses.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a failure here is a failed test

use keyquorum_math::{BitLanes, DecodeError, Domain, DomainKind, Z2k64, Z2k128, Zq};
use proptest::prelude::*;

const PRIME_45: u64 = 35_184_358_850_561;

#[test]
fn elements_are_little_endian_and_as_short_as_can_be() {
    let mut out = vec![0xaa];
    Zq::new(257).unwrap().encode(&[1, 256], &mut out);
    Zq::new(251).unwrap().encode(&[250], &mut out);
    Zq::new(PRIME_45)
        .unwrap()
        .encode(&[0x0102_0304_0506], &mut out);
    Z2k64::new(17).unwrap().encode(&[0x0001_0203], &mut out);
    Z2k128::new(65).unwrap().encode(&[1 << 64 | 2], &mut out);
    BitLanes.encode(&[3], &mut out);
    let expected: [&[u8]; 7] = [
        &[0xaa],
        &[1, 0, 0, 1],
        &[250],
        &[6, 5, 4, 3, 2, 1],
        &[3, 2, 1],
        &[2, 0, 0, 0, 0, 0, 0, 0, 1],
        &[3, 0, 0, 0, 0, 0, 0, 0],
    ];
    assert_eq!(out, expected.concat());
}

#[test]
fn sizes_follow_the_bit_length() {
    for (q, bits) in [
        (3, 2),
        (251, 8),
        (257, 9),
        (PRIME_45, 45),
        ((1 << 61) - 1, 61),
    ] {
        let field = Zq::new(q).unwrap();
        assert_eq!(field.bits(), bits);
        assert_eq!(field.wire_bytes(7), 7 * (bits as usize).div_ceil(8));
        assert_eq!(field.kind(), DomainKind::Fq(q));
    }
    for k in 1..=64 {
        assert_eq!(
            Z2k64::new(k).unwrap().wire_bytes(3),
            3 * (k as usize).div_ceil(8)
        );
    }
    for k in 65..=128 {
        assert_eq!(
            Z2k128::new(k).unwrap().wire_bytes(3),
            3 * (k as usize).div_ceil(8)
        );
    }
    assert_eq!(BitLanes.wire_bytes(3), 24);
}

/// Decoding `bytes` must fail with the returned error and leave zeros.
fn refusal<D: Domain>(domain: &D, bytes: &[u8], n: usize) -> DecodeError {
    let mut out = vec![domain.one(); n];
    let error = domain.decode(bytes, &mut out).unwrap_err();
    assert!(out.iter().all(|&x| x == domain.zero()));
    error
}

#[test]
fn wrong_lengths_are_refused() {
    let field = Zq::new(PRIME_45).unwrap();
    for got in [0, 1, 11, 13, 18] {
        let error = refusal(&field, &vec![0; got], 2);
        let domain = field.kind();
        assert_eq!(
            error,
            DecodeError::Length {
                domain,
                elements: 2,
                expected: 12,
                got
            }
        );
        assert_eq!(
            error.to_string(),
            format!(
                "2 elements of F_35184358850561 take 12 bytes, got {got}: sender and receiver must \
                 agree on the length"
            )
        );
    }
    refusal(&BitLanes, &[0; 15], 2);
    refusal(&Z2k64::new(64).unwrap(), &[0; 17], 2);
    refusal(&Z2k128::new(128).unwrap(), &[0; 8], 2);
    assert!(field.decode(&[1], &mut []).is_err());
    assert!(field.decode(&[], &mut []).is_ok());
}

#[test]
fn values_out_of_range_are_refused_without_being_told() {
    let q: u64 = 1_152_921_504_606_584_833;
    let field = Zq::new(q).unwrap();
    let bytes =
        |values: &[u64]| -> Vec<u8> { values.iter().flat_map(|v| v.to_le_bytes()).collect() };
    for value in [q, q + 1, 1 << 60, u64::MAX] {
        let error = refusal(&field, &bytes(&[0, q - 1, value, u64::MAX]), 4);
        assert_eq!(
            error,
            DecodeError::NotCanonical {
                domain: field.kind(),
                index: 2
            }
        );
        assert_eq!(
            error.to_string(),
            "element 2 is not a canonical element of F_1152921504606584833: the sender must reduce \
             before encoding"
        );
    }
    for k in [1, 7, 9, 60, 63] {
        let ring = Z2k64::new(k).unwrap();
        let width = ring.wire_bytes(1);
        let error = refusal(&ring, &(1u64 << k).to_le_bytes()[..width], 1);
        assert_eq!(
            error,
            DecodeError::NotCanonical {
                domain: ring.kind(),
                index: 0
            }
        );
    }
    for k in [65, 104 + 1, 127] {
        let ring = Z2k128::new(k).unwrap();
        let width = ring.wire_bytes(1);
        let error = refusal(&ring, &(1u128 << k).to_le_bytes()[..width], 1);
        assert_eq!(
            error,
            DecodeError::NotCanonical {
                domain: ring.kind(),
                index: 0
            }
        );
    }
}

proptest! {
    /// Whatever is accepted has this one encoding.
    #[test]
    fn accepted_bytes_are_reproduced(k in 1u32..=128, bytes: Vec<u8>) {
        fn check<D: Domain>(domain: &D, bytes: &[u8]) {
            let n = bytes.len() / domain.wire_bytes(1);
            let bytes = &bytes[..domain.wire_bytes(n)];
            let mut out = vec![domain.zero(); n];
            if domain.decode(bytes, &mut out).is_ok() {
                let mut again = Vec::new();
                domain.encode(&out, &mut again);
                assert_eq!(again, bytes);
            }
        }
        check(&BitLanes, &bytes);
        check(&Zq::new(257).unwrap(), &bytes);
        check(&Zq::new((1 << 61) - 1).unwrap(), &bytes);
        match Z2k64::new(k) {
            Ok(ring) => check(&ring, &bytes),
            Err(_) => check(&Z2k128::new(k).unwrap(), &bytes),
        }
    }
}
