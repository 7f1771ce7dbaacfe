//! Shares of zero: of every sharing and domain they are of zero, uniform, and of one session and vector alone.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

mod common;

use keyquorum_math::DomainKind;
use keyquorum_mpc::{EngineError, EngineOptions};

use common::parties;

const N: usize = 300;
const WIDE: u128 = (1 << 127) - 1;

/// The shares of zero of every party for vectors of these labels, `[party][label]`, and the names.
fn zeros(
    n: usize,
    protocol: &'static str,
    domain: DomainKind,
    bytes: usize,
    labels: &'static [&'static str],
) -> Vec<(Vec<Vec<u8>>, Vec<u8>)> {
    parties(n, move |session| {
        let drawn = session
            .zero_shares(protocol, &EngineOptions::default())
            .unwrap();
        let shares = labels.iter().map(|label| {
            let new = drawn.refreshed(domain, label.as_bytes(), &vec![0; bytes]);
            new.unwrap().to_vec()
        });
        (shares.collect(), drawn.name().to_vec())
    })
}

/// The engine opens old shares and shares of zero added to them as the same values, under every sharing.
#[test]
fn refreshed_shares_are_of_the_same_values() {
    let cases = [
        ("rep-field", DomainKind::Fq(65537), 3),
        ("rep-field", DomainKind::WideFq(WIDE), 3),
        ("ring", DomainKind::Z2k(64), 3),
        ("ring", DomainKind::Z2k(1), 3),
        ("mal-rep-ring", DomainKind::Z2k(64), 3),
        ("shamir", DomainKind::Fq(1152921504606584833), 3),
        ("shamir", DomainKind::Fq(65537), 7),
        ("mal-shamir", DomainKind::Fq(65537), 5),
        ("semi", DomainKind::Fq(65537), 4),
        ("semi2k", DomainKind::Z2k(32), 2),
        ("semi2k", DomainKind::Z2k(1), 3),
    ];
    for (protocol, domain, n) in cases {
        let opened = parties(n, move |session| {
            let options = EngineOptions::default();
            let mut engine = session.engine(protocol, domain, &options).unwrap();
            engine.origin().unwrap();
            let mine = vec![1i64; N];
            let shared = engine
                .input(0, N, (session.party() == 0).then_some(&mine[..]))
                .unwrap();
            let old = engine.export(&shared).unwrap();
            let drawn = session.zero_shares(protocol, &options).unwrap();
            let new = drawn.refreshed(domain, b"vector", &old).unwrap();
            assert_ne!(*old, *new, "{protocol}");
            let stored = engine.import(&new, N).unwrap();
            let clear = engine.open(&stored).unwrap();
            if matches!(domain, DomainKind::WideFq(_)) {
                let wide = engine.read_wide(&clear).unwrap();
                return wide
                    .into_iter()
                    .map(|v| u64::try_from(v).unwrap())
                    .collect();
            }
            engine.read(&clear).unwrap()
        });
        for values in opened {
            assert_eq!(values, vec![1; values.len()], "{protocol} {domain}");
        }
    }
}

/// One name for all, streams of one vector alone, and another session has others.
#[test]
fn streams_are_of_one_session_and_vector() {
    let drawn = zeros(3, "rep-field", DomainKind::Fq(65537), 160, &["a", "b", "a"]);
    let again = zeros(3, "rep-field", DomainKind::Fq(65537), 160, &["a"]);
    for (party, (shares, name)) in drawn.iter().enumerate() {
        assert_eq!(name, &drawn[0].1);
        assert_ne!(name, &again[0].1);
        assert_eq!(shares[0], shares[2]);
        assert_ne!(shares[0], shares[1]);
        assert_ne!(shares[0], again[party].0[0]);
    }
}

/// chi² with 16 degrees of freedom over F_17: above 58.5 by chance once in 10^6 a party. Shares that stay as they are would give 16 times as many words.
#[test]
fn what_is_added_is_uniform() {
    const WORDS: usize = 17_000;
    for (protocol, n) in [("shamir", 5), ("semi", 3)] {
        for (shares, _) in zeros(n, protocol, DomainKind::Fq(17), 8 * WORDS, &["a"]) {
            let mut counts = [0f64; 17];
            for word in shares[0].chunks_exact(8) {
                counts[word[0] as usize] += 1.0;
            }
            let mean = WORDS as f64 / 17.0;
            let chi2: f64 = counts.iter().map(|c| (c - mean).powi(2) / mean).sum();
            assert!(chi2 < 58.5, "{protocol}: {chi2}");
        }
    }
}

#[test]
fn committees_without_shares_of_zero_are_refused() {
    for (protocol, n, said) in [("mascot", 2, "MAC key"), ("shamir", 13, "too many sets")] {
        for refusal in parties(n, move |session| {
            let drawn = session.zero_shares(protocol, &EngineOptions::default());
            drawn.map(|_| ()).unwrap_err()
        }) {
            let named = matches!(&refusal, EngineError::Usage(text) if text.contains(said));
            assert!(named, "{refusal}");
        }
    }
}
