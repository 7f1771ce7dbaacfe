//! A party that sends different seeds of one subset to two honest members, who would draw other joint integers.

use std::sync::{Arc, Barrier};

use keyquorum_math::DomainKind;

use super::parties;
use crate::error::{Check, EngineError, Result};
use crate::joint::JointDistribution;
use crate::protocol::fingerprint;
use crate::session::{EngineOptions, Session};

/// Joint integers of a test. A difference of seeds that 5 divides in all of them has probability 5^-16.
const COUNT: usize = 16;
const DOMAINS: [DomainKind; 2] = [DomainKind::Fq(65537), DomainKind::Fq(1152921504606584833)];

/// What party 0 sends to party 1 as the seed of the subset {0, 1, 2} is not what it sends to party 2.
fn deal_two_seeds(session: &Session) -> Result<()> {
    let (n, t) = (session.parties(), 2);
    session.subset_streams(n, t, 0, &EngineOptions::default())?;
    if session.party() == 1 {
        let mut inner = session.lock()?;
        let (members, seed) = &mut inner.subsets.get_mut(&t).unwrap()[0];
        assert_eq!(*members, [0, 1, 2]);
        seed[0] ^= 1;
    }
    Ok(())
}

/// Our shares of the joint integers in two domains.
fn drawn(session: &Session, compares: bool) -> Result<Vec<Vec<u64>>> {
    deal_two_seeds(session)?;
    let options = EngineOptions::default();
    let law = JointDistribution::Uniform { bits: 12, terms: 1 };
    let joint = session.drawn_together("mal-shamir", COUNT, law, &options, compares)?;
    DOMAINS
        .iter()
        .map(|domain| {
            let shares = joint.shares(*domain, 0, COUNT)?;
            let (words, _) = shares.as_chunks::<8>();
            Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
        })
        .collect()
}

/// The value at 0 of the polynomial of degree 2 through the shares of parties 1, 2 and 3, at the points 2, 3 and 4: 6 a - 8 b + 3 c.
fn value(q: u64, shares: [u64; 3]) -> u128 {
    let q = u128::from(q);
    let [a, b, c] = shares.map(u128::from);
    (6 * a + (q - 8) * b + 3 * c) % q
}

/// The integers that the shares of three honest parties determine in both domains, or the errors.
fn attacked(compares: bool) -> Vec<Result<Vec<Vec<u64>>>> {
    // Parties 0 to 2 have other seeds: none ends its session before the others have found it.
    let ended = Arc::new(Barrier::new(3));
    let mut ends = parties(
        5,
        |_, transport| transport,
        move |session| {
            let end = drawn(&session, compares);
            if session.party() < 3 {
                ended.wait();
            }
            end
        },
    );
    ends.drain(1..4).collect()
}

/// The two honest members that got other seeds stop, and name a party whose seed is not theirs.
#[test]
fn two_seeds_of_a_subset_are_found() {
    let ends = attacked(true);
    for (end, peer) in ends.iter().zip(["party 0", "party 1"]) {
        let Err(EngineError::Check { check, text }) = end else {
            panic!("both stop, not {end:?}");
        };
        assert_eq!(*check, Check::SubsetSeeds);
        assert!(text.contains("different seeds for the same subset") && text.contains(peer));
    }
}

/// Party 0 sends the right hashes, and a byte more, or the last ones not in whole: nobody goes on.
#[test]
fn hashes_of_another_length_are_refused() {
    for (length, said) in [(161, "161 bytes"), (159, "159 bytes"), (32, "32 bytes")] {
        let ended = Arc::new(Barrier::new(5));
        let ends = parties(
            5,
            |_, transport| transport,
            move |session| {
                let end = if session.party() == 0 {
                    let streams = session.subset_streams(5, 2, 0, &EngineOptions::default())?;
                    let mut prints: Vec<u8> = (0..5)
                        .flat_map(|peer| fingerprint(&streams, peer))
                        .collect();
                    prints.resize(length, 0);
                    session.all_gather(&prints).map(|_| ())
                } else {
                    let law = JointDistribution::Uniform { bits: 12, terms: 1 };
                    let options = EngineOptions::default();
                    session
                        .drawn_together("mal-shamir", COUNT, law, &options, true)
                        .map(|_| ())
                };
                ended.wait();
                end
            },
        );
        for end in &ends[1..] {
            assert!(
                matches!(end, Err(EngineError::Protocol(text)) if text.contains(said)),
                "{length} bytes: {end:?}"
            );
        }
    }
}

/// Without the comparison the honest parties hold shares of other integers in every domain, of which none is short.
#[test]
fn without_the_comparison_domains_have_other_integers() {
    let ends = attacked(false);
    let shares: Vec<Vec<Vec<u64>>> = ends.into_iter().map(Result::unwrap).collect();
    let apart = (0..COUNT).any(|i| {
        let values = [0, 1].map(|at| {
            let DomainKind::Fq(q) = DOMAINS[at] else {
                unreachable!()
            };
            value(q, [shares[0][at][i], shares[1][at][i], shares[2][at][i]])
        });
        // Ten summands below 2^12. The difference d of two seeds counts as 9 d / 5, a fraction unless 5 divides d: of some 60 bits modulo the larger prime.
        values[0] != values[1] && values[1] > 10 << 12
    });
    assert!(apart);
}

/// The same seed of a subset, as a member that sends it may choose it, in two sessions: what the members drew, and their streams, which were all that they drew from before a draw had a name.
fn drawn_twice() -> Vec<Vec<(Vec<u64>, u64)>> {
    (0..2)
        .map(|_| {
            parties(
                5,
                |_, transport| transport,
                |session| {
                    let options = EngineOptions::default();
                    session.subset_streams(5, 2, 0, &options).unwrap();
                    for (_, seed) in session.lock().unwrap().subsets.get_mut(&2).unwrap() {
                        seed.fill(7);
                    }
                    let mut streams = session.subset_streams(5, 2, 1, &options).unwrap();
                    let law = JointDistribution::Uniform { bits: 40, terms: 1 };
                    let joint = session
                        .joint_integers("mal-shamir", COUNT, law, &options)
                        .unwrap();
                    let first = joint.known()[0];
                    let numbers = joint.numbers(first).unwrap().to_vec();
                    (numbers, streams[0].prg.next_u64())
                },
            )
        })
        .collect()
}

/// All members of a set have the same numbers, and whoever chose the seed has not chosen them.
#[test]
fn a_seed_does_not_choose_the_integers() {
    let [one, other] = &drawn_twice()[..] else {
        unreachable!()
    };
    for party in 0..3 {
        // Set 0 has parties 0 to 2.
        assert_eq!(one[party], one[0]);
        assert_eq!(one[party].1, other[party].1, "the same stream");
        assert!(
            one[party]
                .0
                .iter()
                .zip(&other[party].0)
                .all(|(x, y)| x != y)
        );
    }
}

/// Seven of nine parties of which two may be corrupt: by default three of seven would be.
#[test]
fn members_of_a_committee_name_the_threshold() {
    let ends = parties(
        7,
        |_, transport| transport,
        |session| {
            session.set_members(&[0, 1, 2, 3, 4, 5, 7], 9)?;
            let law = JointDistribution::Uniform { bits: 12, terms: 1 };
            session
                .joint_integers("mal-shamir", COUNT, law, &EngineOptions::default())
                .map(|_| ())
        },
    );
    for end in &ends {
        assert!(
            matches!(end, Err(EngineError::Usage(text)) if text.contains("name the threshold")),
            "{end:?}"
        );
    }
}
