//! Every operation of every domain against arithmetic on big integers.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a failure here is a failed test

use keyquorum_math::{
    BitLanes, Domain, DomainError, DomainKind, Element, Z2k64, Z2k128, Zq, Zq128, is_prime,
};
use num_bigint::{BigInt, BigUint};
use proptest::prelude::*;

/// Moduli at the edges of the reduction: tiny, just above and below powers of two, special forms.
const PRIMES: [u64; 16] = [
    3,
    5,
    7,
    17,
    251,
    257,
    65_537,
    4_294_967_291,
    4_294_967_311,
    35_184_358_850_561,
    1_152_921_504_606_584_833,
    1_152_921_504_606_846_883,
    1_152_921_504_606_847_009,
    2_305_843_009_213_693_951,
    2_305_843_009_213_693_967,
    4_611_686_018_427_387_847,
];

/// Primes of more than 64 bits: the smallest and the largest one, and some between.
const WIDE_PRIMES: [u128; 5] = [
    18_446_744_073_709_551_629,
    (1 << 89) - 1,
    (1 << 100) - 15,
    (1 << 126) - 137,
    (1 << 127) - 1,
];

fn big(x: impl Element) -> BigUint {
    BigUint::from(x.to_u128())
}

fn small<E: Element>(x: &BigUint) -> E {
    let digits = x.iter_u64_digits().take(2).enumerate();
    E::from_u128_wrapping(digits.fold(0, |v, (i, d)| v | (u128::from(d) << (64 * i))))
}

/// Checks all operations on three vectors of integers, reduced into the domain first.
fn check<D: Domain>(domain: &D, modulus: &BigUint, input: &[[u128; 3]]) {
    let column = |i: usize| -> Vec<D::E> {
        let reduced = input.iter().map(|row| domain.from_u128(row[i]));
        reduced.collect()
    };
    for row in input {
        for &v in row {
            assert_eq!(big(domain.from_u128(v)), BigUint::from(v) % modulus);
            let signed = v as i64;
            let modulus = BigInt::from(modulus.clone());
            let expected = ((BigInt::from(signed) % &modulus) + &modulus) % &modulus;
            assert_eq!(BigInt::from(big(domain.from_i64(signed))), expected);
        }
    }
    let (a, b, c) = (column(0), column(1), column(2));
    let expect = |f: &dyn Fn(&BigUint, &BigUint, &BigUint) -> BigUint| -> Vec<D::E> {
        let rows = a.iter().zip(&b).zip(&c);
        rows.map(|((&x, &y), &z)| small(&(f(&big(x), &big(y), &big(z)) % modulus)))
            .collect()
    };
    let run = |f: &dyn Fn(&mut [D::E])| {
        let mut v = a.clone();
        f(&mut v);
        v
    };
    let scalar = |f: &dyn Fn(D::E, D::E) -> D::E| -> Vec<D::E> {
        a.iter().zip(&b).map(|(&x, &y)| f(x, y)).collect()
    };

    let sums = expect(&|x, y, _| x + y);
    assert_eq!(run(&|v| domain.add_assign(v, &b)), sums);
    assert_eq!(scalar(&|x, y| domain.add(x, y)), sums);
    let differences = expect(&|x, y, _| x + modulus - y);
    assert_eq!(run(&|v| domain.sub_assign(v, &b)), differences);
    assert_eq!(scalar(&|x, y| domain.sub(x, y)), differences);
    assert_eq!(
        run(&|v| domain.rsub_assign(v, &b)),
        expect(&|x, y, _| y + modulus - x)
    );
    let negatives = expect(&|x, _, _| modulus - x);
    assert_eq!(run(&|v| domain.neg_assign(v)), negatives);
    assert_eq!(scalar(&|x, _| domain.neg(x)), negatives);
    let products = expect(&|x, y, _| x * y);
    assert_eq!(run(&|v| domain.mul_assign(v, &b)), products);
    assert_eq!(scalar(&|x, y| domain.mul(x, y)), products);
    assert_eq!(
        run(&|v| domain.mul_acc(v, &b, &c)),
        expect(&|x, y, z| x + y * z)
    );
    for &s in b.iter().take(3) {
        assert_eq!(
            run(&|v| domain.add_scalar_assign(v, s)),
            expect(&|x, _, _| x + big(s))
        );
        assert_eq!(
            run(&|v| domain.mul_scalar_assign(v, s)),
            expect(&|x, _, _| x * big(s))
        );
    }

    let total: BigUint = a.iter().map(|&x| big(x)).sum();
    assert_eq!(big(domain.sum(&a)), total % modulus);
    let inner: BigUint = a.iter().zip(&b).map(|(&x, &y)| big(x) * big(y)).sum();
    assert_eq!(big(domain.dot(&a, &b)), inner % modulus);

    for &x in &a {
        match domain.invert(x) {
            Some(inverse) => {
                assert!(big(inverse) < *modulus);
                assert_eq!(domain.mul(x, inverse), domain.one());
            }
            None => assert_ne!(gcd(big(x), modulus.clone()), BigUint::from(1u8)),
        }
        assert_eq!(domain.add(x, domain.zero()), x);
        assert_eq!(domain.mul(x, domain.one()), x);
    }
    let mut wire = Vec::new();
    domain.encode(&a, &mut wire);
    assert_eq!(wire.len(), domain.wire_bytes(a.len()));
    let mut back = c.clone();
    domain.decode(&wire, &mut back).unwrap();
    assert_eq!(back, a);
}

fn gcd(a: BigUint, b: BigUint) -> BigUint {
    if b == BigUint::ZERO {
        a
    } else {
        gcd(b.clone(), a % b)
    }
}

/// Integers with the extremes drawn often.
fn integer() -> impl Strategy<Value = u128> {
    prop_oneof![
        4 => any::<u128>(),
        1 => any::<u64>().prop_map(u128::from),
        1 => (0u128..4, 0u32..128).prop_map(|(d, k)| (1u128 << k).wrapping_sub(d)),
        1 => (0u128..4).prop_map(|d| u128::MAX - d),
    ]
}

fn rows() -> impl Strategy<Value = Vec<[u128; 3]>> {
    prop::collection::vec([integer(), integer(), integer()], 0..40)
}

/// Some prime of a random size.
fn prime() -> impl Strategy<Value = u64> {
    let near = (2u32..=62, any::<u64>()).prop_map(|(bits, x)| {
        let low = 1u64 << (bits - 1);
        let begin = low + x % low;
        let up = (begin..2 * low).find(|&p| p % 2 == 1 && is_prime(p));
        up.or_else(|| (low..begin).rev().find(|&p| p % 2 == 1 && is_prime(p)))
            .unwrap_or(3)
    });
    prop_oneof![near, prop::sample::select(PRIMES.to_vec())]
}

proptest! {
    #[test]
    fn prime_fields(q in prime(), mut input in rows()) {
        // The largest residues are the hardest for the reduction.
        input.push([u128::from(q) - 1; 3]);
        input.extend(vec![[u128::from(q) - 1; 3]; 20]);
        check(&Zq::new(q).unwrap(), &BigUint::from(q), &input);
    }

    #[test]
    fn wide_prime_fields(at in 0..WIDE_PRIMES.len(), mut input in rows(), e: u128) {
        let q = WIDE_PRIMES[at];
        input.extend(vec![[q - 1; 3]; 20]);
        let field = Zq128::new(q).unwrap();
        check(&field, &BigUint::from(q), &input);
        let base = field.from_u128(input[0][0]);
        let power = BigUint::from(base).modpow(&BigUint::from(e), &BigUint::from(q));
        prop_assert_eq!(big(field.pow(base, e)), power);
    }

    #[test]
    fn words_modulo_powers_of_two(k in 1u32..=64, input in rows()) {
        check(&Z2k64::new(k).unwrap(), &(BigUint::from(1u8) << k), &input);
    }

    #[test]
    fn double_words_modulo_powers_of_two(k in 65u32..=128, input in rows()) {
        check(&Z2k128::new(k).unwrap(), &(BigUint::from(1u8) << k), &input);
    }

    /// Every lane holds 64 elements of F_2.
    #[test]
    fn lanes_are_bits(a: Vec<u64>, s: u64, i in 0u32..64) {
        let bit = |x: u64| (x >> i) & 1;
        let n = a.len();
        let b: Vec<u64> = a.iter().rev().copied().collect();
        let run = |f: &dyn Fn(&mut [u64])| {
            let mut v = a.clone();
            f(&mut v);
            v
        };
        let added = run(&|v| BitLanes.add_assign(v, &b));
        prop_assert_eq!(&run(&|v| BitLanes.sub_assign(v, &b)), &added);
        prop_assert_eq!(&run(&|v| BitLanes.rsub_assign(v, &b)), &added);
        prop_assert_eq!(&run(&|v| BitLanes.neg_assign(v)), &a);
        let multiplied = run(&|v| BitLanes.mul_assign(v, &b));
        let accumulated = run(&|v| BitLanes.mul_acc(v, &a, &b));
        let shifted = run(&|v| BitLanes.add_scalar_assign(v, s));
        let masked = run(&|v| BitLanes.mul_scalar_assign(v, s));
        for j in 0..n {
            prop_assert_eq!(bit(added[j]), (bit(a[j]) + bit(b[j])) % 2);
            prop_assert_eq!(bit(multiplied[j]), bit(a[j]) * bit(b[j]));
            prop_assert_eq!(bit(accumulated[j]), (bit(a[j]) + bit(a[j]) * bit(b[j])) % 2);
            prop_assert_eq!(bit(shifted[j]), (bit(a[j]) + bit(s)) % 2);
            prop_assert_eq!(bit(masked[j]), bit(a[j]) * bit(s));
            prop_assert_eq!(BitLanes.add(a[j], b[j]), added[j]);
            prop_assert_eq!(BitLanes.sub(a[j], b[j]), added[j]);
            prop_assert_eq!(BitLanes.mul(a[j], b[j]), multiplied[j]);
            prop_assert_eq!(BitLanes.neg(a[j]), a[j]);
        }
        let sum: u64 = a.iter().map(|&x| bit(x)).sum();
        prop_assert_eq!(bit(BitLanes.sum(&a)), sum % 2);
        let dot: u64 = (0..n).map(|j| bit(a[j]) * bit(b[j])).sum();
        prop_assert_eq!(bit(BitLanes.dot(&a, &b)), dot % 2);
        prop_assert_eq!(BitLanes.from_i64(s as i64), if s % 2 == 1 { !0 } else { 0 });
        prop_assert_eq!(BitLanes.from_u128(s.into()), if s % 2 == 1 { !0 } else { 0 });
        prop_assert_eq!(BitLanes.invert(s | 1 << i).is_some(), s | 1 << i == !0);
        prop_assert_eq!(BitLanes.invert(BitLanes.one()), Some(!0));
        prop_assert_eq!(BitLanes.zero(), 0);
    }

    #[test]
    fn names_are_read_back(k in 1u32..=128, q in 1u64..1 << 61, wide in 1u128 << 63..1 << 126) {
        for kind in [
            DomainKind::Bits,
            DomainKind::Z2k(k),
            DomainKind::Fq(2 * q + 1),
            DomainKind::WideFq(2 * wide + 1),
        ] {
            prop_assert_eq!(kind.to_string().parse(), Ok(kind));
        }
    }

    #[test]
    fn names_have_one_spelling(text in "(bits|Z2\\^|F_)?[ +0-9a-z-]{0,20}") {
        if let Ok(kind) = text.parse::<DomainKind>() {
            prop_assert_eq!(kind.to_string(), text);
        }
    }
}

/// Every pair of residues of the smallest fields.
#[test]
fn small_fields_completely() {
    for q in [3u64, 5, 7, 11, 13, 17, 19, 23] {
        let field = Zq::new(q).unwrap();
        for a in 0..q {
            for b in 0..q {
                assert_eq!(field.mul(a, b), a * b % q);
                assert_eq!(field.add(a, b), (a + b) % q);
                assert_eq!(field.sub(a, b), (a + q - b) % q);
                let mut v = [a];
                field.mul_scalar_assign(&mut v, b);
                assert_eq!(v, [a * b % q]);
            }
        }
    }
}

#[test]
fn primality_agrees_with_a_sieve() {
    const LIMIT: usize = 200_000;
    let mut composite = vec![false; LIMIT];
    for p in 2..LIMIT {
        if !composite[p] {
            (2 * p..LIMIT).step_by(p).for_each(|m| composite[m] = true);
        }
    }
    for (n, composite) in composite.iter().enumerate() {
        assert_eq!(is_prime(n as u64), n >= 2 && !composite, "{n}");
    }
}

#[test]
fn pseudoprimes_are_composite() {
    // Carmichael numbers, and the smallest strong pseudoprimes to the first 4, 8 and 11 bases.
    let pseudoprimes = [
        561,
        1_105,
        825_265,
        3_215_031_751,
        341_550_071_728_321,
        3_825_123_056_546_413_051,
    ];
    assert!(pseudoprimes.into_iter().all(|n| !is_prime(n)));
    assert!(PRIMES.into_iter().all(is_prime));
    assert!(is_prime(18_446_744_073_709_551_557));
    assert!(!is_prime(u64::MAX));
}

#[test]
fn unusable_parameters_are_refused() {
    for q in [
        0,
        1,
        2,
        4,
        9,
        561,
        (1 << 62) - 1,
        4_611_686_018_427_388_039,
        u64::MAX,
    ] {
        let error = Zq::new(q).err().unwrap();
        assert_eq!(error, DomainError::NotAnOddPrime { q });
        assert_eq!(
            error.to_string(),
            format!("{q} is no modulus of a prime field here: choose an odd prime below 2^62")
        );
    }
    for k in [0, 65, u32::MAX] {
        let error = Z2k64::new(k).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("Z2^{k} is out of range here: choose k in 1..=64")
        );
    }
    for k in [0, 129, u32::MAX] {
        let error = Z2k128::new(k).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("Z2^{k} is out of range here: choose k in 1..=128")
        );
    }
}

#[test]
fn texts_that_name_no_domain_are_refused() {
    for text in [
        "",
        "Bits",
        "bits ",
        "Z2^",
        "Z2^0",
        "Z2^129",
        "Z2^064",
        "Z2^+64",
        "Z2^-1",
        "F_",
        "F_1",
        "F_2",
        "F_4",
        "F_4611686018427387905",
        "F_9223372036854775783",
        "F_99999999999999999999998",
        "F_170141183460469231731687303715884105729",
        "F_340282366920938463463374607431768211297",
        "F_999999999999999999999999999999999999999999",
        "F_0x11",
        "Z2^6 4",
    ] {
        let error = text.parse::<DomainKind>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("\"{text}\" is not a domain: write bits, ")));
    }
    assert_eq!(
        "F_4611686018427387847".parse(),
        Ok(DomainKind::Fq(4_611_686_018_427_387_847))
    );
}

#[test]
fn moduli_that_make_no_wide_field_are_refused() {
    let pseudoprime = 3_317_044_064_679_887_385_961_981; // strong to the bases 2 to 41
    for q in [
        0,
        (1 << 61) - 1,
        (1 << 64) + 1,
        (1 << 64) + 14,
        pseudoprime,
        ((1u128 << 61) - 1) * ((1 << 62) - 57),
        (1 << 127) - 3,
        u128::MAX - 158,
    ] {
        let refused = Err(DomainError::NotAWidePrime { q });
        assert_eq!(Zq128::new(q).map(|field| field.kind()), refused);
    }
    for q in WIDE_PRIMES {
        assert_eq!(Zq128::new(q).unwrap().kind(), DomainKind::WideFq(q));
    }
}

/// What a vector operation in `Z2^64` does with a mask that is shorter than what it masks: `None` if it refuses.
fn masked(mask: &[u64]) -> Option<Vec<u64>> {
    let domain = Z2k64::new(64).unwrap();
    std::panic::catch_unwind(|| {
        let mut secret = vec![1, 2, 3];
        domain.sub_assign(&mut secret, mask);
        secret
    })
    .ok()
}

#[test]
fn missing_parts_blocked_a_mask_that_is_too_short() {
    assert_eq!(
        masked(&[5, 5, 5]).unwrap(),
        [4, 3, 2].map(|x: u64| x.wrapping_neg())
    );
    assert_eq!(masked(&[5, 5]), None);
    assert_eq!(masked(&[]), None);
    let short = |f: fn()| std::panic::catch_unwind(f).is_err();
    assert!(short(|| BitLanes.add_assign(&mut [1, 2], &[1])));
    assert!(short(|| BitLanes.mul_acc(&mut [1, 2], &[1, 2], &[1])));
    assert!(short(|| assert_ne!(
        Zq::new(17).unwrap().dot(&[1, 2], &[1]),
        0
    )));
    assert!(short(|| Z2k128::new(100)
        .unwrap()
        .mul_assign(&mut [1], &[1, 2])));
}
