//! Results are those of the semi-honest protocol, for every operation that it has; what cannot be checked is refused.

use std::thread;
use std::time::Duration;

use keyquorum_math::DomainKind;
use keyquorum_net::local_mesh;

use super::{PRIME, Setting, input, input_bits, opened};
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::session::{EngineOptions, Session};

/// Parties of an engine from the table, with a test seed: the same randomness under every protocol.
fn run<T: Send + 'static>(
    protocol: &'static str,
    domain: DomainKind,
    body: impl Fn(&mut dyn Engine) -> Result<T> + Clone + Send + 'static,
) -> Vec<Result<T>> {
    let threads: Vec<_> = local_mesh(3, Duration::from_secs(60))
        .into_iter()
        .map(|transport| {
            let body = body.clone();
            thread::spawn(move || {
                let session = Session::new(Box::new(transport))?;
                let options = EngineOptions {
                    insecure_seed: Some(b"results".to_vec()),
                    ..EngineOptions::default()
                };
                let mut engine = session.engine(protocol, domain, &options)?;
                let result = body(&mut *engine);
                if let Err(error) = &result {
                    session.abort(&error.to_string());
                }
                result
            })
        })
        .collect();
    threads.into_iter().map(|t| t.join().unwrap()).collect()
}

fn opened_bits(engine: &mut dyn Engine, bits: &crate::Handle) -> Result<Vec<u128>> {
    let opened = engine.open(bits)?;
    Ok(engine
        .read_bits(&opened)?
        .into_iter()
        .map(u128::from)
        .collect())
}

/// Every operation that gives the same under any randomness.
fn everything(engine: &mut dyn Engine) -> Result<Vec<Vec<u128>>> {
    let n = 130;
    let (x, y) = (input(engine, 0, n, -3)?, input(engine, 2, n, 1000)?);
    let clear: Vec<i64> = (0..n as i64).collect();
    let (clear, five) = (engine.clear(&clear), engine.clear(&[5]));
    let one = engine.slice(&x, 7, 1, 1)?;
    let mut values = vec![
        engine.add(&x, &y)?,
        engine.sub(&x, &clear)?,
        engine.mul(&x, &y)?,
        engine.mul(&x, &clear)?,
        engine.mul(&one, &y)?,
        engine.mul(&x, &five)?,
        engine.neg(&x)?,
        engine.dot(&x, &y, 13)?,
        engine.sum(&x, 65)?,
        engine.gather(&y, &[129, 0, 64])?,
        engine.concat(&[&x, &one, &clear])?,
    ];
    let cube = engine.mul(&x, &x)?;
    values.push(engine.mul(&cube, &x)?);
    let (a, b) = (input_bits(engine, 0, n, 3)?, input_bits(engine, 1, n, 2)?);
    let both = engine.and(&a, &b)?;
    values.push(engine.bit_to_arith(&both)?);
    values.push(engine.bit_to_arith(&a)?);
    let bits = engine.random_bit(200)?;
    let square = engine.mul(&bits, &bits)?;
    values.push(engine.sub(&square, &bits)?);
    let (number, rows) = engine.edabit(9, 40)?;
    let mut sum = number;
    for (j, row) in rows.iter().enumerate() {
        let bit = engine.bit_to_arith(row)?;
        let factor = engine.clear(&[1 << j]);
        let part = engine.mul(&bit, &factor)?;
        sum = engine.sub(&sum, &part)?;
    }
    values.push(sum);
    // A file, and back.
    let stored = engine.export(&cube)?;
    engine.origin()?;
    values.push(engine.import(&stored, n)?);
    let mut all = Vec::new();
    for value in &values {
        let opened = engine.open(value)?;
        all.push(engine.read_wide(&opened)?);
    }
    let xor = engine.xor(&a, &b)?;
    let not = engine.not(&both)?;
    for bits in [&both, &xor, &not] {
        all.push(opened_bits(engine, bits)?);
    }
    let personal = engine.open_to(&values[2], 1)?;
    engine.flush()?;
    if engine.party().0 == 1 {
        all.push(engine.read_wide(&personal)?);
    }
    Ok(all)
}

#[test]
fn every_operation_gives_what_the_semi_honest_protocol_gives() {
    let fields = [PRIME, (1 << 61) - 1, 65_537, 4099].map(DomainKind::Fq);
    let rings = [64, 41, 72].map(DomainKind::Z2k);
    let wide = DomainKind::WideFq((1 << 127) - 1);
    for domain in fields.into_iter().chain([wide]).chain(rings) {
        let (semi_honest, malicious) = match domain {
            DomainKind::Fq(_) | DomainKind::WideFq(_) => ("rep-field", "mal-rep-field"),
            _ => ("ring", "mal-rep-ring"),
        };
        let wanted = run(semi_honest, domain, everything);
        let got = run(malicious, domain, everything);
        for (party, (wanted, got)) in wanted.into_iter().zip(got).enumerate() {
            let (wanted, got) = (wanted.unwrap(), got.unwrap());
            assert_eq!(wanted, got, "{domain} {party}");
            assert!(wanted.len() >= 20);
        }
    }
}

/// What cannot be checked yet is refused, with what to do instead.
#[test]
fn what_cannot_be_checked_is_refused() {
    let results = Setting::honest(PRIME).run(|engine| {
        assert!(!engine.has_shuffle());
        let x = input(engine, 0, 4, 1)?;
        engine.flush()?;
        Ok(engine.shuffle(&x, 1).map(drop))
    });
    for result in results {
        let error = result.unwrap().unwrap_err();
        assert!(
            matches!(&error, EngineError::Usage(text) if text.contains("switching network")),
            "{error}"
        );
    }
    for (domain, wanted) in [
        (DomainKind::Z2k(64), "over prime fields"),
        (DomainKind::Fq(257), "needs a prime of more than 12 bits"),
    ] {
        for result in run("mal-rep-field", domain, |_| Ok(())) {
            let error = result.unwrap_err();
            assert!(matches!(error, EngineError::Refused(_)));
            assert!(error.to_string().contains(wanted), "{error}");
        }
    }
}

/// The session ends with a failed check: nothing works in it any more, and nothing on the disk is burned.
#[test]
fn a_failed_check_ends_the_session() {
    use super::adversaries::{Change, Once};
    use crate::adversary::Site;
    let adversary = Once::new(Site::Summand, false, 0, Change::Flip);
    let setting = Setting::corrupted(0, adversary);
    let results = setting.run(|engine| {
        let (x, y) = (input(engine, 1, 3, 1)?, input(engine, 2, 3, 1)?);
        let product = engine.mul(&x, &y)?;
        let first = opened(engine, &product);
        let again = opened(engine, &x);
        Ok((
            first.map_err(|e| e.to_string()),
            again.map_err(|e| e.to_string()),
        ))
    });
    let mut seen = 0;
    for result in results.into_iter().skip(1) {
        let (first, again) = result.unwrap();
        // The other honest party may see first that this one is gone.
        if first.unwrap_err().contains("check of products failed") {
            seen += 1;
            let again = again.unwrap_err();
            let cure = "open a new session, without the party that cheats";
            assert!(
                again.contains(cure) && !again.contains("MAC key"),
                "{again}"
            );
        }
    }
    assert!(seen > 0);
}
