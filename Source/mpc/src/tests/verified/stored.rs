//! Stored shares of two runs: honest parties that use them together are stopped; without the names of the runs they get different values.

use super::coins::CORRUPT;
use super::{Base, Outcome, PRIME, Setting, input, opened};
use crate::adversary::{Adversary, Site};
use crate::engine::Engine;
use crate::error::{Check, EngineError, Result};
use crate::intercept::intercept;

/// Bytes of the name of a run, and of an element.
const NAME: usize = 16;
const WORD: usize = 8;

/// What a party stored: its two summands of one value, and the name of the run.
type File = (Vec<u8>, Vec<u8>);

/// It goes on whatever it finds.
struct GoesOn;

impl Adversary for GoesOn {
    fn deviates(&self, _: Site) -> bool {
        false
    }

    fn omits(&self, _: Check) -> bool {
        true
    }
}

fn stored(value: i64) -> Vec<File> {
    let results = Setting::honest(PRIME).run(move |engine| {
        let x = input(engine, 1, 1, value)?;
        let share = engine.export(&x)?;
        Ok((share, engine.origin()?.to_vec()))
    });
    results.into_iter().map(Result::unwrap).collect()
}

/// Party 1 has the file of the second run, party 2 that of the first, and the corrupted party 0 has of each summand what the honest party holds with which it shares it.
fn of_two_runs() -> Vec<File> {
    let (first, mut second) = (stored(1000), stored(2000));
    let corrupt = [&second[CORRUPT].0[..WORD], &first[CORRUPT].0[WORD..]].concat();
    let name = first[CORRUPT].1.clone();
    vec![(corrupt, name), second.remove(1), first[2].clone()]
}

/// Opens what is stored.
fn open_stored(engine: &mut dyn Engine, file: &File, compares: bool) -> Result<Vec<u64>> {
    if compares {
        engine.check_origin(&file.1)?;
    } else {
        // A new name lets shares in.
        engine.origin()?;
    }
    let x = engine.import(&file.0, 1)?;
    opened(engine, &x)
}

fn attacked(compares: bool) -> Outcome<Vec<u64>> {
    let files = of_two_runs();
    let other = files[1].1.clone();
    // The corrupted party sends each of the others the name that this one has.
    let wrap = move |party: usize, inner| {
        let other = other.clone();
        let sends = move |to: usize, message: &[u8]| {
            let is_name = compares && party == CORRUPT && to == 1 && message.len() == NAME;
            Some(if is_name {
                other.clone()
            } else {
                message.to_vec()
            })
        };
        intercept(inner, sends, |_, _| ())
    };
    let setting = Setting::corrupted(CORRUPT, GoesOn);
    let results = setting.run_over(wrap, std::time::Duration::from_secs(10), move |engine| {
        let (me, _) = engine.party();
        open_stored(engine, &files[me], compares)
    });
    Outcome::new(results, CORRUPT)
}

#[test]
fn mixed_runs_blocked_by_names() {
    let outcome = attacked(true);
    assert!(outcome.outputs.is_empty());
    let said = |error: &String| error.contains("give every party its own files of the same time");
    assert!(outcome.errors.iter().any(said), "{:?}", outcome.errors);
}

#[test]
fn mixed_runs_ablated_without_names() {
    let outcome = attacked(false);
    assert!(outcome.errors.is_empty(), "{:?}", outcome.errors);
    assert_ne!(outcome.outputs[0], outcome.outputs[1]);
}

#[test]
fn files_of_one_run_are_used() {
    for base in Base::ALL {
        let results = Setting::honest(PRIME).over(base).run(|engine| {
            let x = input(engine, 1, 2, 41)?;
            let share = engine.export(&x)?;
            // Before names are compared or made nothing is taken in, but for zeros.
            let early = engine.import(&share, 2).map(drop);
            assert!(matches!(early, Err(EngineError::Store(_))));
            engine.import(&vec![0; share.len()], 2)?;
            let (name, again) = (engine.origin()?.to_vec(), engine.origin()?.to_vec());
            assert_eq!((name.len(), &name), (NAME, &again));
            engine.check_origin(&name)?;
            let x = engine.import(&share, 2)?;
            let squares = engine.mul(&x, &x)?;
            Ok((opened(engine, &squares)?, name))
        });
        let results: Vec<_> = results.into_iter().map(Result::unwrap).collect();
        for (squares, name) in &results {
            assert_eq!((squares, name), (&vec![41 * 41, 42 * 42], &results[0].1));
        }
    }
}

/// No file, a file without a name, and a file where another party has none.
#[test]
fn files_without_names_are_refused() {
    let names: [([usize; 3], bool); 3] =
        [([0; 3], true), ([7; 3], false), ([0, NAME, NAME], false)];
    for (lengths, fits) in names {
        let results = Setting::honest(PRIME).run(move |engine| {
            let (me, _) = engine.party();
            let tested = engine.check_origin(&vec![1; lengths[me]]);
            // Nobody leaves before the others have its name.
            Ok(tested.map_err(|error| error.to_string()))
        });
        for result in results {
            assert_eq!(result.unwrap().is_ok(), fits, "{lengths:?}");
        }
    }
}

/// With n > 2t + 1 shares of a file may belong to no value, which is noticed before anything that depends on them is opened.
#[test]
fn degrees_of_stored_shares_are_checked() {
    let results = Setting::honest(PRIME)
        .over(Base::Shamir(4, 1))
        .run(|engine| {
            let x = input(engine, 1, 1, 41)?;
            let mut share = engine.export(&x)?;
            engine.origin()?;
            if engine.party().0 == 2 {
                share[0] ^= 1;
            }
            let (x, rounds) = (engine.import(&share, 1)?, engine.stats().rounds);
            let sum = engine.add(&x, &x)?;
            let failed = opened(engine, &sum).map_err(|error| match error {
                EngineError::Check { check, .. } => Some(check),
                _ => None,
            });
            Ok((failed, engine.stats().rounds - rounds))
        });
    let results: Vec<_> = results.into_iter().map(Result::unwrap).collect();
    // The challenge, then the combination, which fails: the value itself would be opened in the round after.
    assert!(
        results
            .iter()
            .any(|(failed, _)| *failed == Err(Some(Check::Openings)))
    );
    assert!(
        results.iter().all(|(_, rounds)| *rounds <= 2),
        "{results:?}"
    );
}
