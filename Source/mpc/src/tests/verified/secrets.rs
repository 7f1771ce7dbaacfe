//! Whether a check fails does not depend on the honest parties' secrets, when products have errors.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Setting, input};
use crate::adversary::{Adversary, Corruption, Site, honest};
use crate::error::Check;

/// So small that the check passes often: with probability 1 − (4/5)² = 0.36 at one bit of security.
const PRIME: u64 = 5;

/// Checks a secret.
const CHECKS: usize = 1500;

/// Counts failed checks, and goes on.
struct Counts(AtomicUsize);

impl Adversary for Counts {
    fn omits(&self, check: Check) -> bool {
        if check == Check::Products {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        check == Check::Products
    }
}

/// Adds one to the first of two products, not to the messages of a check, which have one element.
struct AddsOne;

impl Adversary for AddsOne {
    fn deviates(&self, site: Site) -> bool {
        site == Site::Summand
    }

    fn words(&self, _: Site, to: Option<usize>, words: &mut [u128]) {
        if let ([first, _], None) = (words, to) {
            *first = (*first + 1) % u128::from(PRIME);
        }
    }

    fn omits(&self, check: Check) -> bool {
        check == Check::Products
    }
}

/// How many of [`CHECKS`] checks of products of the parties' secrets fail at the honest parties 1 and 2.
fn failures(secret: i64, corrupted: bool) -> usize {
    let counts = Arc::new(Counts(AtomicUsize::new(0)));
    let mut setting = Setting::honest(PRIME);
    setting.security = 1;
    setting.others = counts.clone();
    let adversary: Corruption = if corrupted {
        Arc::new(AddsOne)
    } else {
        honest()
    };
    setting.corrupt = Some((0, adversary));
    let results = setting.run(move |engine| {
        let x = input(engine, 1, 1, secret)?;
        let y = input(engine, 2, 1, secret + 2)?;
        let (x, y) = (engine.repeat(&x, 2)?, engine.repeat(&y, 2)?);
        for _ in 0..CHECKS {
            drop(engine.mul(&x, &y)?);
            engine.flush()?;
        }
        Ok(())
    });
    for result in results {
        result.unwrap();
    }
    let failures = counts.0.load(Ordering::Relaxed);
    assert_eq!(failures % 2, 0, "both see the same verdicts");
    failures / 2
}

/// How far two numbers of failures are apart, in standard deviations.
fn distance(one: usize, other: usize) -> f64 {
    let (one, other, n) = (one as f64, other as f64, CHECKS as f64);
    let rate = (one + other) / (2.0 * n);
    (one - other).abs() / (2.0 * n * rate * (1.0 - rate)).sqrt()
}

/// False alarm: three comparisons of 5 standard deviations, and one with the expected rate: below 3e-6.
#[test]
fn aborts_do_not_depend_on_secrets() {
    let counts: Vec<usize> = (0..4).map(|secret| failures(secret, true)).collect();
    for count in &counts {
        assert!(distance(*count, counts[0]) < 5.0, "{counts:?}");
    }
    let all: usize = counts.iter().sum();
    let expected = 0.64 * (4 * CHECKS) as f64;
    let deviation = (0.64f64 * 0.36 * (4 * CHECKS) as f64).sqrt();
    assert!(
        (all as f64 - expected).abs() < 5.0 * deviation,
        "{counts:?}"
    );
    println!("aborts by secret, of {CHECKS} checks each: {counts:?}");
}

/// An adversary that errs for one secret only is seen by the same statistic; without errors no check fails.
#[test]
fn aborts_that_depend_on_secrets_are_seen() {
    let honest = failures(0, false);
    assert_eq!(honest, 0);
    assert!(distance(failures(1, true), honest) > 20.0);
}
