//! Honest runs: values, MACs, rounds and bytes.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic)]

mod adversaries;
pub(crate) mod tampering;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use keyquorum_net::{Transport, local_mesh};

use crate::adversary::{Adversary, Corruption, Site, honest};
use crate::error::Result;
use crate::protocol::authenticated::binary::{MAC_BITS, PARTS};
use crate::protocol::testing::add_bits;
use crate::session::{EngineOptions, Session};
use crate::standalone::Standalone;
use crate::value::Share;

/// Runs all parties; `wrap` may replace the transport of one.
pub(super) fn run_with<T: Send + 'static>(
    n: usize,
    wrap: impl Fn(usize, Box<dyn Transport>) -> Box<dyn Transport>,
    body: impl Fn(&mut Standalone) -> Result<T> + Clone + Send + 'static,
) -> Vec<Result<T>> {
    let threads: Vec<_> = local_mesh(n, Duration::from_secs(60))
        .into_iter()
        .enumerate()
        .map(|(party, transport)| {
            let body = body.clone();
            let transport = wrap(party, Box::new(transport));
            thread::spawn(move || {
                let session = Session::new(transport)?;
                let mut party = Standalone::new(&session)?;
                let result = body(&mut party);
                if let Err(error) = &result {
                    session.abort(&error.to_string());
                }
                result
            })
        })
        .collect();
    threads.into_iter().map(|t| t.join().unwrap()).collect()
}

fn run<T: Send + 'static>(
    n: usize,
    body: impl Fn(&mut Standalone) -> Result<T> + Clone + Send + 'static,
) -> Vec<T> {
    let results = run_with(n, |_, transport| transport, body);
    results.into_iter().map(Result::unwrap).collect()
}

/// Whether the MACs of all parties belong to the bits.
fn consistent(shares: &[(Share<u64>, [u64; MAC_BITS])]) -> bool {
    let lanes = shares[0].0.len();
    let sum = |part: usize, lane: usize| {
        shares
            .iter()
            .fold(0, |sum, (share, _)| sum ^ share.parts[part][lane])
    };
    (0..lanes).all(|lane| {
        let x = sum(0, lane);
        (0..MAC_BITS).all(|j| {
            let key = shares.iter().fold(0, |sum, (_, key)| sum ^ key[j]);
            sum(1 + j, lane) == x & key
        })
    })
}

#[test]
fn random_bits_have_macs() {
    for n in [2, 3, 5] {
        let shares = run(n, |p| {
            let task = p.bits.random(100);
            Ok((p.run(task)?, *p.bits.key()))
        });
        assert!(shares.iter().all(|(s, _)| s.parts.len() == PARTS));
        assert!(consistent(&shares));
        let ones: u32 = (0..100)
            .map(|i| {
                shares
                    .iter()
                    .fold(0, |x, (s, _)| x ^ s.parts[0][i])
                    .count_ones()
            })
            .sum();
        // 6400 bits, standard deviation 40.
        assert!((2880..3520).contains(&ones), "{ones}");
    }
}

#[test]
fn inputs_ands_and_openings() {
    let a: Vec<u64> = (1..40u64)
        .map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15))
        .collect();
    let b: Vec<u64> = (1..40u64)
        .map(|i| i.wrapping_mul(0xD1B5_4A32_D192_ED03))
        .collect();
    let want: Vec<u64> = a.iter().zip(&b).map(|(a, b)| (a & b) ^ b ^ 5).collect();
    for n in [2, 3, 4] {
        let (a, b) = (a.clone(), b.clone());
        for (party, (opened, personal)) in run(n, move |p| {
            let (me, n) = p.bits.party();
            let mine = |owner: usize, v: &Vec<u64>| (me == owner).then(|| v.clone());
            let x = p.bits.input(0, a.len(), mine(0, &a))?;
            let x = p.run(x)?;
            let y = p.bits.input(n - 1, b.len(), mine(n - 1, &b))?;
            let y = p.run(y)?;
            let and = p.bits.and(x, y.duplicate())?;
            let mut z = p.run(and)?;
            add_bits(&mut z, &y)?;
            p.bits.add_clear(&mut z, &[5; 39])?;
            let personal = p.bits.open_to(z.duplicate(), 1)?;
            let personal = p.run(personal)?;
            let opened = p.bits.open(z);
            let opened = p.run(opened)?;
            assert!(p.bits.unchecked());
            let check = p.bits.check();
            p.run(check)?;
            assert!(!p.bits.unchecked());
            Ok((opened, personal))
        })
        .into_iter()
        .enumerate()
        {
            assert_eq!(opened, want, "{n} parties");
            assert_eq!(personal.is_some(), party == 1);
            assert!(personal.is_none_or(|v| *v == want));
        }
    }
}

#[test]
fn triples_are_products_with_macs() {
    for (n, lanes) in [(2, 1), (2, 300), (3, 70), (4, 5)] {
        let triples = run(n, move |p| {
            p.bits.need_triples(lanes);
            p.prepare()?;
            Ok((p.bits.take_triples(lanes)?, *p.bits.key()))
        });
        let value =
            |i: usize, lane: usize| triples.iter().fold(0, |v, (t, _)| v ^ t[i].parts[0][lane]);
        for i in 0..3 {
            let shares: Vec<_> = triples
                .iter()
                .map(|(t, key)| (t[i].duplicate(), *key))
                .collect();
            assert!(consistent(&shares), "{n} parties, share {i}");
        }
        let (mut x, mut y) = (0, 0);
        for lane in 0..lanes {
            assert_eq!(
                value(2, lane),
                value(0, lane) & value(1, lane),
                "{n} parties"
            );
            x += value(0, lane).count_ones() as usize;
            y += value(1, lane).count_ones() as usize;
        }
        // Within eight standard deviations.
        let spread = 8.0 * (16.0 * lanes as f64).sqrt();
        for ones in [x, y] {
            assert!((ones as f64 - 32.0 * lanes as f64).abs() < spread);
        }
    }
}

#[test]
fn rounds_and_bytes() {
    for (n, others) in [(2u64, 1), (3, 2)] {
        for costs in run(n as usize, |p| {
            let mut costs = Vec::new();
            let mut step = |p: &mut Standalone, before: (u64, u64)| {
                let (rounds, sent) = p.traffic();
                costs.push((rounds - before.0, sent - before.1));
            };
            let zeros = || Share::zeros(PARTS, 64);
            p.bits.leave_out_key_check();
            let and = p.bits.and(zeros(), zeros())?;
            let before = p.traffic();
            p.prepare()?;
            step(p, before);
            let before = p.traffic();
            p.run(and)?;
            step(p, before);
            let before = p.traffic();
            let check = p.bits.check();
            p.run(check)?;
            step(p, before);
            Ok(costs)
        }) {
            let [triples, and, check] = costs[..] else {
                panic!("three costs")
            };
            // 64 lanes are made as 4096 triples in buckets of 4: 105 bits a leaky triple, 3 openings, checks.
            let raw = 4 * 4096;
            let more = u64::from(n > 2);
            assert_eq!(triples.0, 12 + more);
            let least = others * (raw * 105 / 8 + 3 * 512);
            assert!(
                (least..least + others * 6000).contains(&triples.1),
                "{triples:?} {least}"
            );
            assert_eq!(and, (1, others * 2 * 64 * 8));
            // Two commitments, their openings, and, in a round of their own, digests if n > 2.
            let digest = if n > 2 { 32 } else { 0 };
            assert_eq!(
                check,
                (4 + more, others * (32 + 64 + 32 + 32 + 768 + digest))
            );
        }
    }
}

/// Openings of sums of inputs must not reveal the summands: the shares of an input are random, also at its owner.
#[test]
fn shares_of_inputs_are_random() {
    for n in [2, 3] {
        let shares = run(n, |p| {
            let values = (p.bits.party().0 == 0).then(|| vec![0; 64]);
            let task = p.bits.input(0, 64, values)?;
            Ok((p.run(task)?, *p.bits.key()))
        });
        assert!(consistent(&shares));
        for (share, _) in &shares {
            // 4096 bits, standard deviation 32.
            let ones: u32 = share.parts[0].iter().map(|lane| lane.count_ones()).sum();
            assert!((1792..2304).contains(&ones), "{ones}");
        }
    }
}

/// An OT receiver whose choices are not the same in all rows.
struct SeveralChoices;

impl Adversary for SeveralChoices {
    fn deviates(&self, site: Site) -> bool {
        site == Site::BitCorrections
    }

    fn bytes(&self, _site: Site, _to: Option<usize>, message: &mut Vec<u8>) {
        let half = message.len() / 2;
        message
            .iter_mut()
            .take(half)
            .for_each(|byte| *byte = !*byte);
    }
}

/// Random bits of two parties, the last of which has several choices; `first` may say what the first party is. Whether MACs belong to the
/// bits that the first party takes, or why it takes none.
pub(crate) fn bits_of_several_choices(first: impl Fn() -> Option<Corruption>) -> Result<bool> {
    let threads: Vec<_> = local_mesh(2, Duration::from_secs(20))
        .into_iter()
        .enumerate()
        .map(|(party, transport)| {
            let corruption = match party {
                0 => first().unwrap_or_else(honest),
                _ => Arc::new(SeveralChoices),
            };
            thread::spawn(move || {
                let session = Session::new(Box::new(transport))?;
                let bits = session.authenticated_bits(&EngineOptions::default(), corruption)?;
                let mut party = Standalone::with(&session, bits);
                let task = party.bits.random(2);
                let share = party.run(task);
                if let Err(error) = &share {
                    session.abort(&error.to_string());
                }
                Ok((share?, *party.bits.key()))
            })
        })
        .collect();
    let shares: Result<Vec<_>> = threads.into_iter().map(|t| t.join().unwrap()).collect();
    Ok(consistent(&shares?))
}
