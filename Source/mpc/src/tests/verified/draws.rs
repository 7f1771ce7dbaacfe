//! `mal-shamir` among more than three parties: a corrupted dealer makes squares zero, so that random bits are drawn again and again.

use std::sync::atomic::{AtomicUsize, Ordering};

use keyquorum_math::{Domain, Zq};

use super::coins::CORRUPT;
use super::{Base, Outcome, PRIME, Setting, opened};
use crate::adversary::{Adversary, Site};
use crate::engine::Engine;
use crate::error::{Check, Result};
use crate::protocol::testing::MOST_DRAWS;

const BASE: Base = Base::Shamir(5, 2);

/// Whatever the protocol does, the adversary grows tired.
const PATIENCE: usize = 5 * MOST_DRAWS;

/// The elements that are drawn, one a draw: the streams of [`Setting`] are the same in every run. A corrupted party computes a square from the opened shares of two honest parties,
/// who do not wait for it, and its own, before it sends the last honest party what it dealt.
fn drawn() -> Vec<u64> {
    let results = Setting::honest(PRIME).over(BASE).run(|engine| {
        let mut all = Vec::new();
        for _ in 0..PATIENCE {
            let random = engine.random(1)?;
            all.extend(opened(engine, &random)?);
        }
        Ok(all)
    });
    results.into_iter().next().unwrap().unwrap()
}

/// Changes its summand of each square by minus the square, divided by the factor of the summand.
struct Zeros {
    squares: Vec<u64>,
    draw: AtomicUsize,
}

impl Adversary for Zeros {
    fn deviates(&self, site: Site) -> bool {
        site == Site::Summand
    }

    fn words(&self, _: Site, _: Option<usize>, words: &mut [u128]) {
        let field = Zq::new(PRIME).unwrap();
        let draw = self.draw.fetch_add(1, Ordering::Relaxed);
        if let (Some(square), [word]) = (self.squares.get(draw), words) {
            // The polynomial at 0 from its values at 1 to 5: the factor of the value at 1 is 5.
            let error = field.mul(*square, field.invert(5).unwrap());
            *word = u128::from(field.sub(*word as u64, error));
        }
    }

    fn omits(&self, _: Check) -> bool {
        true
    }
}

/// Attacks as many draws as it can; returns how the honest parties end, and the draws.
fn attacked(most: Option<usize>) -> (Outcome<Vec<u64>>, usize) {
    let field = Zq::new(PRIME).unwrap();
    let squares: Vec<u64> = drawn().into_iter().map(|r| field.mul(r, r)).collect();
    let adversary = std::sync::Arc::new(Zeros {
        squares,
        draw: AtomicUsize::new(0),
    });
    let mut setting = Setting::honest(PRIME).over(BASE);
    setting.corrupt = Some((CORRUPT, adversary.clone()));
    setting.most_draws = most;
    let results = setting.run(|engine: &mut dyn Engine| -> Result<Vec<u64>> {
        let bit = engine.random_bit(1)?;
        opened(engine, &bit)
    });
    let draws = adversary.draw.load(Ordering::Relaxed);
    (Outcome::new(results, CORRUPT), draws)
}

#[test]
fn squares_of_zero_blocked_after_some_draws() {
    let (outcome, draws) = attacked(None);
    assert!(outcome.outputs.is_empty());
    assert!(
        !outcome.checks.is_empty() && outcome.checks.iter().all(|check| *check == Check::Products),
        "{:?}",
        outcome.errors
    );
    // The corrupted party may have begun another one.
    assert!((MOST_DRAWS..=MOST_DRAWS + 1).contains(&draws), "{draws}");
    let said = |error: &String| error.contains("were zero in 8 draws, one after the other");
    assert!(outcome.errors.iter().any(said), "{:?}", outcome.errors);
}

/// The parties draw for as long as the adversary wants.
#[test]
fn squares_of_zero_ablated_without_a_bound() {
    let (outcome, draws) = attacked(Some(usize::MAX));
    // One more is drawn, and then come the messages of the check, which fails.
    assert!(draws > PATIENCE, "{draws}");
    assert!(outcome.outputs.is_empty() && outcome.checks.contains(&Check::Products));
}

/// Without an adversary the bound is not in the way, also in the smallest field: one draw of 4099 elements has one zero on average.
#[test]
fn random_bits_of_a_small_field_are_bits() {
    let results = Setting::honest(4099).over(BASE).run(|engine| {
        let bits = engine.random_bit(3 * 4099)?;
        opened(engine, &bits)
    });
    for result in results {
        let bits = result.unwrap();
        let ones: u64 = bits.iter().sum();
        // 6149 on average, with a deviation of 55.
        assert!(bits.iter().all(|bit| *bit < 2) && ones.abs_diff(6149) < 600);
    }
}
