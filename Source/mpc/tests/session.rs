//! The crate as a user of Rust sees it: sessions, engines, control messages, and what is refused.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

mod common;

use std::sync::{Arc, Barrier};

use keyquorum_math::DomainKind;
use keyquorum_mpc::{ClearOp, Engine, EngineError, EngineOptions};
use proptest::prelude::*;

use common::parties;

fn open(engine: &mut dyn Engine, value: &keyquorum_mpc::Handle) -> Vec<u64> {
    let opened = engine.open(value).unwrap();
    engine.read(&opened).unwrap()
}

const Q: u64 = 1152921504606584833;

#[test]
fn independent_products_share_a_round() {
    for got in parties(3, |session| {
        let mut e = session
            .engine("rep-field", DomainKind::Fq(Q), &EngineOptions::default())
            .unwrap();
        let x = e
            .input(0, 2, (session.party() == 0).then_some(&[3, 4][..]))
            .unwrap();
        let y = e
            .input(1, 2, (session.party() == 1).then_some(&[5, 6][..]))
            .unwrap();
        let products = [
            e.mul(&x, &y).unwrap(),
            e.mul(&x, &x).unwrap(),
            e.mul(&y, &y).unwrap(),
        ];
        let sum = products
            .iter()
            .skip(1)
            .fold(e.neg(&products[0]).unwrap(), |s, p| e.add(&s, p).unwrap());
        (open(e.as_mut(), &sum), e.stats().rounds)
    }) {
        // x² + y² − xy, with one round of inputs, one of products, one opening.
        assert_eq!(got, (vec![9 + 25 - 15, 16 + 36 - 24], 3));
    }
}

#[test]
fn parties_with_different_contexts_refuse_each_other() {
    let open_bound = |contexts: [&'static [u8]; 2]| {
        parties(2, move |session| {
            let mut e = session
                .engine("semi2k", DomainKind::Z2k(64), &EngineOptions::default())
                .unwrap();
            let x = e
                .input(0, 1, (session.party() == 0).then_some(&[7][..]))
                .unwrap();
            e.flush().unwrap();
            e.bind_context(contexts[session.party()]);
            let opened = e.open(&x).unwrap();
            e.read(&opened)
        })
    };
    for same in open_bound([b"items 3 to 4", b"items 3 to 4"]) {
        assert_eq!(same.unwrap(), vec![7]);
    }
    for other in open_bound([b"items 3 to 4", b"items 4 to 5"]) {
        let text = other.unwrap_err().to_string();
        assert!(text.contains("for the same purpose"), "{text}");
    }
}

#[test]
fn tosses_agree_and_differ() {
    let tossed = parties(4, |session| {
        (session.toss(64).unwrap(), session.toss(64).unwrap())
    });
    assert!(tossed.windows(2).all(|w| w[0] == w[1]));
    assert_ne!(tossed[0].0, tossed[0].1);
}

#[test]
fn comparison_names_who_differs() {
    let texts = parties(3, |session| {
        let digest = if session.party() == 2 {
            [1u8; 32]
        } else {
            [0u8; 32]
        };
        session
            .compare("transcript", &digest)
            .unwrap_err()
            .to_string()
    });
    assert!(
        texts[0].contains("party 2 computed another value"),
        "{}",
        texts[0]
    );
    assert!(texts[2].contains("party 0, party 1"), "{}", texts[2]);
}

#[test]
fn impossible_engines_are_refused() {
    let refused = parties(3, |session| {
        let options = EngineOptions::default();
        let mut texts = Vec::new();
        for (protocol, domain) in [
            ("ring", DomainKind::Fq(Q)),
            ("rep-field", DomainKind::Z2k(64)),
            ("shamir", DomainKind::Z2k(64)),
            ("emulate", DomainKind::Z2k(64)),
            ("mascot", DomainKind::Z2k(64)),
            ("spdz2k", DomainKind::Z2k(128)),
        ] {
            match session.engine(protocol, domain, &options) {
                Err(EngineError::Refused(refusal)) => texts.push(refusal.to_string()),
                _ => panic!("{protocol} over {domain} must be refused"),
            }
        }
        let options = EngineOptions {
            threshold: Some(2),
            ..options
        };
        assert!(
            session
                .engine("shamir", DomainKind::Fq(Q), &options)
                .is_err()
        );
        texts
    });
    assert!(
        refused[0]
            .iter()
            .all(|text| !text.contains('\n') && text.len() > 20)
    );
}

#[test]
fn after_a_failure_only_the_first_error_is_told() {
    let texts = parties(3, |session| {
        let mut e = session
            .engine("ring", DomainKind::Z2k(64), &EngineOptions::default())
            .unwrap();
        let zero = e.clear(&[0]);
        let first = e.clear_inv(&zero).err().unwrap().to_string();
        let later = e
            .random(3)
            .and_then(|r| e.open(&r))
            .err()
            .unwrap()
            .to_string();
        (first, later)
    });
    for (first, later) in texts {
        assert!(first.contains("no inverse"), "{first}");
        assert!(
            later.contains("failed before") && later.contains(&first),
            "{later}"
        );
    }
}

#[test]
fn a_party_that_stops_is_named() {
    let results = parties(3, |session| {
        // Everyone's session stands before party 1 stops.
        if let Err(e) = session.all_gather(b"here") {
            return e.to_string();
        }
        if session.party() == 1 {
            session.abort("out of coffee");
            return String::new();
        }
        let mut e = match session.engine("ring", DomainKind::Z2k(64), &EngineOptions::default()) {
            Ok(e) => e,
            Err(e) => return e.to_string(),
        };
        let a = e.random(10).unwrap();
        let opened = e.open(&a).unwrap();
        e.read(&opened).unwrap_err().to_string()
    });
    for party in [0, 2] {
        assert!(
            results[party].contains("party 1") && results[party].contains("out of coffee"),
            "{}",
            results[party]
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Random straight-line programs give what clear arithmetic gives, on every protocol.
    #[test]
    fn random_programs_agree(ops in prop::collection::vec((0u8..5, 0usize..64, 0usize..64), 1..30), seed in any::<[i64; 2]>()) {
        for (protocol, n) in [("emulate", 1), ("ring", 3), ("rep-field", 3), ("shamir", 3), ("shamir", 5)] {
            let domain = if protocol == "ring" { DomainKind::Z2k(61) } else { DomainKind::Fq(Q) };
            let program = ops.clone();
            let results = parties(n, move |session| {
                let mut e = session.engine(protocol, domain, &EngineOptions::default()).unwrap();
                let x = e.input(0, 2, (session.party() == 0).then_some(&seed[..])).unwrap();
                let y = e.random_bit(2).unwrap();
                let bit = open(e.as_mut(), &y);
                let mut values = vec![x, y];
                for (op, i, j) in &program {
                    let (a, b) = (&values[i % values.len()], &values[j % values.len()]);
                    let next = match op {
                        0 => e.add(a, b),
                        1 => e.sub(a, b),
                        2 => e.mul(a, b),
                        3 => e.neg(a),
                        _ => e.gather(a, &[1, 0]),
                    };
                    values.push(next.unwrap());
                }
                let last = values.last().map(|v| open(e.as_mut(), v)).unwrap();
                (bit, last)
            });
            let modulus = if protocol == "ring" { 1i128 << 61 } else { i128::from(Q) };
            let (bit, last) = &results[0];
            let clear = |i: usize| [i128::from(seed[i]).rem_euclid(modulus), i128::from(bit[i])];
            let mut values: Vec<[i128; 2]> = vec![[clear(0)[0], clear(1)[0]], [clear(0)[1], clear(1)[1]]];
            for (op, i, j) in &ops {
                let (a, b) = (values[i % values.len()], values[j % values.len()]);
                values.push(match op {
                    0 => [0, 1].map(|k| (a[k] + b[k]).rem_euclid(modulus)),
                    1 => [0, 1].map(|k| (a[k] - b[k]).rem_euclid(modulus)),
                    2 => [0, 1].map(|k| (a[k] * b[k]).rem_euclid(modulus)),
                    3 => [0, 1].map(|k| (-a[k]).rem_euclid(modulus)),
                    _ => [a[1], a[0]],
                });
            }
            let want = values[values.len() - 1].map(|v| v as u64);
            prop_assert_eq!(last.as_slice(), &want[..], "{}", protocol);
            prop_assert!(results.iter().all(|r| r == &results[0]));
        }
    }
}

#[test]
fn values_of_another_engine_are_refused() {
    for text in parties(3, |session| {
        let options = EngineOptions::default();
        let mut a = session
            .engine("rep-field", DomainKind::Fq(Q), &options)
            .unwrap();
        let mut b = session
            .engine("rep-field", DomainKind::Fq(Q), &options)
            .unwrap();
        let (x, y) = (a.clear(&[1]), b.clear(&[2]));
        assert!(a.read(&y).is_err());
        a.add(&x, &y).err().unwrap().to_string()
    }) {
        assert!(text.contains("another engine"), "{text}");
    }
}

#[test]
fn shamir_needs_a_prime_above_the_number_of_parties() {
    for refused in parties(3, |session| {
        let options = EngineOptions::default();
        let small = session.engine("shamir", DomainKind::Fq(3), &options);
        assert!(
            session
                .engine("shamir", DomainKind::Fq(5), &options)
                .is_ok()
        );
        small.err().map(|e| e.to_string())
    }) {
        assert!(refused.unwrap().contains("a prime above 3"));
    }
}

#[test]
fn clear_shifts_are_exact_and_lengths_are_checked() {
    for (domain, want) in [
        (DomainKind::Fq(1009), 977), // 3 * 2^200
        (DomainKind::Z2k(64), 0),
        (DomainKind::Z2k(128), 0),
    ] {
        let got = parties(1, move |session| {
            let mut e = session
                .engine("emulate", domain, &EngineOptions::default())
                .unwrap();
            let (x, shift) = (e.clear(&[3]), e.clear(&[200]));
            let y = e.clear_op(ClearOp::Shl, &x, &shift).unwrap();
            assert!(e.import(&[], usize::MAX / 8 + 1).is_err());
            e.read_wide(&y).unwrap()
        });
        assert_eq!(got, [[want]], "{domain}");
    }
}

/// Two of three parties compute in a group of their own; traffic and rounds count in the larger session as well.
#[test]
fn a_group_of_parties_computes_by_itself() {
    let outcomes = parties(3, |session| {
        let members = [2, 0];
        let mut got = Vec::new();
        match session.subgroup(&members) {
            Ok(group) => {
                assert_eq!(group.parties(), 2);
                assert_eq!(members[group.party()], session.party());
                let options = EngineOptions::default();
                let mut engine = group
                    .engine("semi2k", DomainKind::Z2k(64), &options)
                    .unwrap();
                let mine = |party| (group.party() == party).then_some(&[3i64, 5][..]);
                let x = engine.input(0, 2, mine(0)).unwrap();
                let y = engine.input(1, 2, mine(1)).unwrap();
                let product = engine.mul(&x, &y).unwrap();
                got = open(engine.as_mut(), &product);
                let stats = session.stats().unwrap();
                assert!(stats.rounds >= 2 && stats.bytes_sent > 1000);
            }
            Err(error) => assert!(session.party() == 1 && error.to_string().contains("not in")),
        }
        session.compare("after the group", b"same").unwrap();
        got
    });
    assert_eq!(outcomes, [vec![9, 25], vec![], vec![9, 25]]);
}

#[test]
fn a_group_names_each_party_once() {
    parties(3, |session| {
        for wrong in [&[0usize, 0, 1, 2][..], &[0, 1, 2, 3], &[]] {
            assert!(session.subgroup(wrong).is_err());
        }
    });
}

/// Lists of members that differ, in order or in who is a member: every member is refused with a reason that says so. Who finds out has a
/// typed error, and one that agrees with another may get the reason from it. Nobody waits for the time limit of the channels.
#[test]
fn members_of_a_group_have_the_same_list() {
    const CASES: [[&[usize]; 3]; 3] = [
        [&[0, 1], &[1, 0], &[2]],
        [&[0, 1], &[0, 1, 2], &[0, 1, 2]],
        [&[0, 1, 2], &[0, 1, 2], &[1, 2, 0]],
    ];
    for lists in CASES {
        let all_there = Arc::new(Barrier::new(3));
        let outcomes = parties(3, move |session| {
            all_there.wait();
            let error = session.subgroup(lists[session.party()]).map(drop).err()?;
            let text = error.to_string();
            session.abort(&text);
            Some((matches!(error, EngineError::Protocol(_)), text))
        });
        let alone = lists[2].len() == 1;
        assert_eq!(outcomes[2].is_none(), alone, "a group of one is no other's");
        assert!(outcomes[0].is_some() && outcomes[1].is_some());
        assert!(outcomes.iter().flatten().any(|(typed, _)| *typed));
        for (_, text) in outcomes.iter().flatten() {
            assert!(text.contains("forms the group"), "{text}");
            assert!(text.contains("the same list, in the same order"), "{text}");
        }
    }
}

#[test]
fn a_member_that_forms_no_group_is_named() {
    let outcomes = parties(2, |session| {
        if session.party() == 1 {
            session.send(0, b"another message").unwrap();
            drop(session.receive(0, 100)); // stays until the other has sent its list
            return String::new();
        }
        session.subgroup(&[0, 1]).map(drop).unwrap_err().to_string()
    });
    let refused = "party 1 does something else than to form a group";
    assert!(outcomes[0].starts_with(refused), "{}", outcomes[0]);
}
