//! Joint integers: shares of the same integer in every domain, without a message, and unknown to every set of corrupted parties.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

mod common;

use keyquorum_math::DomainKind;
use keyquorum_mpc::{EngineError, EngineOptions, JointDistribution, joint_summands};

use common::parties;

const Q: u64 = 1152921504606584833;
const SMALL: u64 = 65537;
const N: usize = 200;

fn options(threshold: Option<usize>, seed: Option<&[u8]>) -> EngineOptions {
    EngineOptions {
        program: "joint".to_owned(),
        threshold,
        insecure_seed: seed.map(<[u8]>::to_vec),
    }
}

/// Every party's joint integers, opened by engines of several domains.
fn opened(
    names: &'static [(&'static str, DomainKind)],
    n: usize,
    threshold: Option<usize>,
    law: JointDistribution,
    seed: Option<&'static [u8]>,
) -> Vec<(Vec<Vec<u64>>, u64)> {
    parties(n, move |session| {
        let before = session.stats().unwrap().bytes_sent;
        let options = options(threshold, seed);
        let joint = session
            .joint_integers(names[0].0, N, law, &options)
            .unwrap();
        let sent = session.stats().unwrap().bytes_sent - before;
        let values = names
            .iter()
            .map(|(protocol, domain)| {
                let mut engine = session.engine(protocol, *domain, &options).unwrap();
                // Names a run, where stored shares need one.
                engine.origin().unwrap();
                let shares = joint.shares(*domain, 0, N).unwrap();
                let stored = engine.import(&shares, N).unwrap();
                let clear = engine.open(&stored).unwrap();
                engine.read(&clear).unwrap()
            })
            .collect();
        (values, sent)
    })
}

const REPLICATED: &[(&str, DomainKind)] = &[
    ("rep-field", DomainKind::Fq(Q)),
    ("ring", DomainKind::Z2k(64)),
    ("ring", DomainKind::Z2k(16)),
    ("rep-field", DomainKind::Fq(SMALL)),
];
const VERIFIED: &[(&str, DomainKind)] = &[
    ("mal-rep-ring", DomainKind::Z2k(61)),
    ("mal-rep-field", DomainKind::Fq(Q)),
    ("mal-rep-field", DomainKind::Fq(SMALL)),
];
const VERIFIED_SHAMIR: &[(&str, DomainKind)] = &[
    ("mal-shamir", DomainKind::Fq(Q)),
    ("mal-shamir", DomainKind::Fq(SMALL)),
];
const SHAMIR: &[(&str, DomainKind)] = &[
    ("shamir", DomainKind::Fq(Q)),
    ("shamir", DomainKind::Fq(SMALL)),
];

#[test]
fn the_same_integers_in_every_domain_without_a_message() {
    let law = JointDistribution::Uniform { bits: 50, terms: 4 };
    for (names, n, t, summands) in [
        (REPLICATED, 3, None, 3u64),
        (VERIFIED, 3, None, 3),
        (VERIFIED_SHAMIR, 3, None, 3),
        (VERIFIED_SHAMIR, 5, Some(2), 10),
        (VERIFIED_SHAMIR, 5, Some(1), 5),
        (SHAMIR, 3, None, 3),
        (SHAMIR, 5, Some(2), 10),
        (SHAMIR, 5, Some(1), 5),
    ] {
        assert_eq!(joint_summands(names[0].0, n, t).unwrap() as u64, summands);
        let all = opened(names, n, t, law, None);
        let (first, _) = &all[0];
        for (values, sent) in &all {
            assert_eq!(values, first);
            // Seeds of subsets with three and more members are dealt once a session. Verified products: a name is tossed.
            assert!(*sent == 0 || names != REPLICATED, "{sent}");
            if names == VERIFIED {
                // A commitment, a comparison and an opening to each peer.
                assert_eq!(*sent, 2 * (32 + 32 + 64));
            }
        }
        for (&(name, domain), values) in names.iter().zip(first) {
            for (reduced, integer) in values
                .iter()
                .zip(&first[usize::from(names[0].1 == DomainKind::Z2k(16))])
            {
                let modulus = match domain {
                    DomainKind::Fq(q) => u128::from(q),
                    DomainKind::WideFq(q) => q,
                    DomainKind::Z2k(k) => 1 << k,
                    DomainKind::Bits => unreachable!(),
                };
                assert!(*integer < (summands * 4) << 50);
                assert_eq!(
                    u128::from(*reduced),
                    u128::from(*integer) % modulus,
                    "{name} {domain}"
                );
            }
        }
        let distinct: std::collections::HashSet<_> = first[0].iter().collect();
        assert_eq!(distinct.len(), N);
    }
}

/// What the members of each set compute from its numbers, here (-1)^A (x >> 1), is shared as one integer in every domain.
#[test]
fn sums_of_what_members_compute_are_shared_alike() {
    const BITS: u32 = 40;
    for (names, n, t, summands) in [
        (REPLICATED, 3, None, 3),
        (VERIFIED, 3, None, 3),
        (VERIFIED_SHAMIR, 3, None, 3),
        (VERIFIED_SHAMIR, 4, Some(1), 4),
        (VERIFIED_SHAMIR, 5, Some(2), 10),
        (VERIFIED_SHAMIR, 9, Some(4), 126),
    ] {
        let all = parties(n, move |session| {
            let options = options(t, None);
            let law = JointDistribution::Uniform {
                bits: BITS,
                terms: 1,
            };
            let joint = session
                .joint_integers(names[0].0, N, law, &options)
                .unwrap();
            let signed = |set: usize| move |x: &u64| (*x as i64 >> 1) * [1, -1][set % 2];
            let known: Vec<(usize, Vec<i64>)> = joint
                .known()
                .into_iter()
                .map(|set| {
                    let numbers = joint.numbers(set).unwrap();
                    (set, numbers.iter().map(signed(set)).collect())
                })
                .collect();
            let rows: Vec<&[i64]> = known.iter().map(|(_, row)| row.as_slice()).collect();
            let opened: Vec<_> = names
                .iter()
                .map(|(protocol, domain)| {
                    let mut engine = session.engine(protocol, *domain, &options).unwrap();
                    engine.origin().unwrap();
                    let shares = joint.shares_of(*domain, &rows).unwrap();
                    let stored = engine.import(&shares, N).unwrap();
                    let clear = engine.open(&stored).unwrap();
                    engine.read(&clear).unwrap()
                })
                .collect();
            // Other numbers of summands or integers, and summands of others.
            let domain = names[0].1;
            for wrong in [&rows[1..], &[], &[rows[0], &rows[1][1..]]] {
                let error = joint.shares_of(domain, wrong).unwrap_err();
                assert!(
                    matches!(error, EngineError::Usage(text) if text.contains("of one length"))
                );
            }
            let other = (0..summands)
                .find(|set| !joint.known().contains(set))
                .unwrap();
            assert!(
                matches!(joint.numbers(other), Err(EngineError::Usage(text)) if text.contains("does not know"))
            );
            (known, opened)
        });
        let mut sums = vec![0i64; N];
        let mut seen = std::collections::HashMap::new();
        for (known, opened) in &all {
            assert_eq!(*opened, all[0].1);
            for (set, row) in known {
                assert_eq!(seen.entry(*set).or_insert(row.clone()), row);
            }
        }
        assert_eq!(seen.len(), summands);
        for row in seen.values() {
            for (sum, x) in sums.iter_mut().zip(row) {
                *sum += x;
            }
        }
        for ((name, domain), values) in names.iter().zip(&all[0].1) {
            let modulus = match domain {
                DomainKind::Fq(q) => i128::from(*q),
                DomainKind::Z2k(k) => 1 << k,
                other => panic!("{other}"),
            };
            for (value, sum) in values.iter().zip(&sums) {
                assert_eq!(
                    i128::from(*value),
                    i128::from(*sum).rem_euclid(modulus),
                    "{name} {domain}"
                );
            }
        }
    }
}

#[test]
fn trits_are_shared_summand_by_summand() {
    for party in parties(3, |session| {
        let options = options(None, None);
        let domain = DomainKind::Z2k(64);
        let joint = session
            .joint_integers("ring", N, JointDistribution::Trit, &options)
            .unwrap();
        let mut engine = session.engine("ring", domain, &options).unwrap();
        let mut read = |shares: &[u8]| {
            let stored = engine.import(shares, N).unwrap();
            let clear = engine.open(&stored).unwrap();
            engine.read(&clear).unwrap()
        };
        let sums = read(&joint.shares(domain, 0, N).unwrap());
        let mut again = vec![0; N];
        let mut seen = [0; 3];
        for summand in 0..3 {
            for value in 0..3 {
                for (sum, bit) in again
                    .iter_mut()
                    .zip(read(&joint.indicators(domain, summand, value).unwrap()))
                {
                    assert!(bit <= 1);
                    *sum += value * bit;
                    seen[value as usize] += bit;
                }
            }
        }
        assert!(joint.indicators(domain, 3, 0).is_err());
        (sums == again, seen)
    }) {
        assert!(party.0);
        // 600 trits: each value 200 times, with a deviation of 12.
        assert!(
            party.1.iter().all(|count| (120..280).contains(count)),
            "{:?}",
            party.1
        );
    }
}

/// The bits of the summands, as bits and modulo 2^64, make up the integers.
#[test]
fn integers_are_shared_bit_by_bit() {
    let law = JointDistribution::Uniform { bits: 5, terms: 1 };
    for party in parties(3, move |session| {
        let options = options(None, None);
        let (domain, low) = (DomainKind::Z2k(64), DomainKind::Z2k(1));
        let joint = session.joint_integers("ring", N, law, &options).unwrap();
        let mut wide = session.engine("ring", domain, &options).unwrap();
        let mut narrow = session.engine("ring", low, &options).unwrap();
        let read = |engine: &mut Box<dyn keyquorum_mpc::Engine>, shares: &[u8]| {
            let stored = engine.import(shares, N).unwrap();
            let clear = engine.open(&stored).unwrap();
            engine.read(&clear).unwrap()
        };
        let sums = read(&mut wide, &joint.shares(domain, 0, N).unwrap());
        let mut again = vec![0; N];
        for (summand, place) in (0..3).flat_map(|s| (0..5).map(move |p| (s, p))) {
            let bits = read(&mut wide, &joint.bits(domain, summand, place).unwrap());
            let same = read(&mut narrow, &joint.bits(low, summand, place).unwrap());
            assert_eq!(bits, same);
            for (sum, bit) in again.iter_mut().zip(bits) {
                assert!(bit <= 1);
                *sum += bit << place;
            }
        }
        assert!(joint.bits(domain, 3, 0).is_err() && joint.bits(domain, 0, 64).is_err());
        sums == again
    }) {
        assert!(party);
    }
}

/// A share of one party says nothing of a summand that it does not hold: the integer minus what it knows is uniform, and other draws and sessions have others.
#[test]
fn draws_are_of_their_own() {
    let law = JointDistribution::Uniform { bits: 40, terms: 1 };
    let draws = parties(3, move |session| {
        let options = options(None, None);
        let one = session
            .joint_integers("rep-field", N, law, &options)
            .unwrap();
        let two = session
            .joint_integers("rep-field", N, law, &options)
            .unwrap();
        let mut engine = session
            .engine("rep-field", DomainKind::Fq(Q), &options)
            .unwrap();
        let random = engine.random(N).unwrap();
        [
            one.shares(DomainKind::Fq(Q), 0, N).unwrap().to_vec(),
            two.shares(DomainKind::Fq(Q), 0, N).unwrap().to_vec(),
            engine.export(&random).unwrap(),
        ]
    });
    let mut words = std::collections::HashSet::new();
    for party in &draws {
        for share in party {
            words.extend(share.chunks(8).map(<[u8]>::to_vec));
        }
    }
    // Three draws of three summands, each held by two parties.
    assert_eq!(words.len(), 3 * 3 * N);
}

/// Where products are verified every draw has a name of its own, the same at all parties; it can be compared as the names of runs are.
#[test]
fn draws_have_names() {
    for (protocol, n, named) in [
        ("mal-rep-field", 3, true),
        ("mal-shamir", 5, true),
        ("rep-field", 3, false),
        ("shamir", 3, false),
    ] {
        let all = parties(n, move |session| {
            let o = options(None, None);
            let draw = |count, bits| {
                let law = JointDistribution::Uniform { bits, terms: 1 };
                let joint = session.joint_integers(protocol, count, law, &o).unwrap();
                joint.name().map(<[u8]>::to_vec)
            };
            let names = [draw(4, 40), draw(4, 40), draw(5, 40)];
            let mut engine = session.engine(protocol, DomainKind::Fq(Q), &o).unwrap();
            engine
                .check_origin(names[0].as_deref().unwrap_or_default())
                .unwrap();
            names
        });
        assert!(all.iter().all(|names| *names == all[0]));
        assert!(all[0].iter().all(|name| name.is_some() == named));
        let lengths: std::collections::HashSet<_> = all[0].iter().flatten().map(Vec::len).collect();
        let distinct: std::collections::HashSet<_> = all[0].iter().flatten().collect();
        assert_eq!(
            (lengths.len(), distinct.len()),
            if named { (1, 3) } else { (0, 0) }
        );
    }
}

/// Honest parties that ask for other numbers have other names, and the next program stops.
#[test]
fn draws_that_differ_have_different_names() {
    let stopped = parties(3, |session| {
        let o = options(None, None);
        let count = if session.party() == 2 { 5 } else { 4 };
        let law = JointDistribution::Uniform { bits: 40, terms: 1 };
        let joint = session
            .joint_integers("mal-rep-field", count, law, &o)
            .unwrap();
        let mut engine = session
            .engine("mal-rep-field", DomainKind::Fq(Q), &o)
            .unwrap();
        match engine.check_origin(joint.name().unwrap()) {
            Err(EngineError::Store(text)) => text.contains("not made together"),
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(stopped, [true; 3]);
}

#[test]
fn what_is_refused() {
    let refused = parties(3, |session| {
        let o = options(None, None);
        let law = JointDistribution::Uniform { bits: 40, terms: 1 };
        let text = |r: Result<_, EngineError>| match r {
            Err(EngineError::Usage(text)) => text,
            Err(other) => panic!("{other:?}"),
            Ok(()) => panic!("accepted"),
        };
        assert!(
            text(session.joint_integers("semi", 1, law, &o).map(drop))
                .contains("semi has no joint integers among 3 parties")
        );
        for (bits, terms) in [(0, 1), (63, 1), (62, 2), (40, 0)] {
            let law = JointDistribution::Uniform { bits, terms };
            assert!(
                text(session.joint_integers("ring", 1, law, &o).map(drop))
                    .contains("take sums of 1 to 62 bits")
            );
        }
        let joint = session.joint_integers("ring", 4, law, &o).unwrap();
        for (start, count) in [(0, 5), (4, 1), (usize::MAX, 2)] {
            assert!(
                text(joint.shares(DomainKind::Z2k(64), start, count).map(drop))
                    .contains("joint integers")
            );
        }
        let points = session.joint_integers("shamir", 4, law, &o).unwrap();
        assert!(
            text(points.shares(DomainKind::Z2k(64), 0, 4).map(drop))
                .contains("have no shares over")
        );
        true
    });
    assert_eq!(refused, [true; 3]);
}
