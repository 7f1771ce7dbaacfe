//! Fuzzing of parsers on stable Rust: seeded mutations of valid inputs, a measure of what one input allocates, and reports.
//!
//! A target is an ordinary test that calls [`fuzz`]. As a test it takes a fixed number of inputs from a fixed seed. These
//! environment variables change that:
//!
//! - `KEYQUORUM_FUZZ_SECONDS`: the time to run;
//! - `KEYQUORUM_FUZZ_SEED`: another seed;
//! - `KEYQUORUM_FUZZ_INPUT`: a file, the only input;
//! - `KEYQUORUM_FUZZ_FOLDER`: where an input that fails is saved (default `build/fuzz`).
//!
//! An input fails if the parser panics, or if it holds more bytes at a time than the cap of its target. The test binary has
//! [`Measured`] as its global allocator, or nothing is measured and the run refuses to start.

mod measure;
mod mutate;
mod random;

pub use measure::Measured;
pub use mutate::mutate;
pub use random::Random;

use std::any::Any;
use std::env;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Inputs of an ordinary test run.
const INPUTS: u64 = 50_000;
/// Inputs between two checks of the clock.
const STRIDE: u64 = 64;

/// The result of a parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The input was accepted.
    Accepted,
    /// The parser returned one of its typed errors.
    Refused,
}

impl<T, E> From<&Result<T, E>> for Outcome {
    fn from(result: &Result<T, E>) -> Self {
        if result.is_ok() {
            Self::Accepted
        } else {
            Self::Refused
        }
    }
}

/// A parser under test, and where its inputs come from.
pub struct Target {
    /// Name in reports and of saved inputs.
    pub name: &'static str,
    /// Most bytes that may be allocated at a time for one input.
    pub cap: usize,
    /// Valid inputs, from which all others are made.
    pub corpus: Vec<Vec<u8>>,
    /// Repairs a length or a checksum that mutations break, so that the code behind its check is reached. Half of the inputs
    /// pass through it.
    pub mend: Option<fn(&mut Vec<u8>)>,
    /// Inputs of an ordinary test run, if a parser is too slow for the usual number.
    pub inputs: Option<u64>,
}

/// Length and seed of a run.
struct Plan {
    seconds: Option<Duration>,
    seed: u64,
    folder: PathBuf,
}

impl Plan {
    fn from_environment() -> Self {
        let number = |name: &str| env::var(name).ok().and_then(|text| text.parse().ok());
        let folder = env::var_os("KEYQUORUM_FUZZ_FOLDER").map_or_else(
            || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/fuzz"),
            PathBuf::from,
        );
        Self {
            seconds: number("KEYQUORUM_FUZZ_SECONDS").map(Duration::from_secs),
            seed: number("KEYQUORUM_FUZZ_SEED").unwrap_or(1),
            folder,
        }
    }
}

/// Why an input fails.
fn fault(
    target: &Target,
    input: &[u8],
    parse: &mut impl FnMut(&[u8]) -> Outcome,
) -> (Result<Outcome, String>, usize) {
    measure::begin(input, target.name);
    let result = catch_unwind(AssertUnwindSafe(|| parse(input)));
    let held = measure::end();
    let result = match result {
        Err(panic) => Err(format!("panic: {}", text_of(panic.as_ref()))),
        Ok(_) if held > target.cap => Err(format!(
            "holds {held} bytes, at most {} are allowed",
            target.cap
        )),
        Ok(outcome) => Ok(outcome),
    };
    (result, held)
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("no text").to_owned()
}

/// Saves an input that fails; returns its path.
pub(crate) fn save(folder: &Path, name: &str, input: &[u8]) -> PathBuf {
    let digest = input.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let path = folder.join(format!("{name}-{digest:016x}.bin"));
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, input));
    if let Err(error) = written {
        eprintln!("fuzz: {} cannot be written: {error}", path.display());
    }
    path
}

/// Calls `parse` with mutations of the corpus, and prints one line with the results.
///
/// # Panics
/// At the first input that fails, after it has been saved; at a corpus that `parse` refuses; without [`Measured`].
#[allow(clippy::panic)] // the way a test fails
pub fn fuzz(target: &Target, mut parse: impl FnMut(&[u8]) -> Outcome) {
    let plan = Plan::from_environment();
    let Some(path) = env::var_os("KEYQUORUM_FUZZ_INPUT") else {
        return run(target, &plan, parse);
    };
    let input = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (result, held) = fault(target, &input, &mut parse);
    println!(
        "\nfuzz: replay target={} held={held} result={result:?}",
        target.name
    );
    assert!(result.is_ok(), "{}: {result:?}", target.name);
}

#[allow(clippy::panic)] // the way a test fails
fn run(target: &Target, plan: &Plan, mut parse: impl FnMut(&[u8]) -> Outcome) {
    let name = target.name;
    assert!(
        measure::works(),
        "{name}: the test binary has another global allocator than Measured"
    );
    measure::set_folder(&plan.folder);
    for (index, input) in target.corpus.iter().enumerate() {
        let (result, _) = fault(target, input, &mut parse);
        assert_eq!(
            result,
            Ok(Outcome::Accepted),
            "{name}: valid input {index} is not accepted"
        );
    }
    let mut random = Random::new(plan.seed, name);
    let start = Instant::now();
    let (mut inputs, mut accepted, mut most) = (0u64, 0u64, 0usize);
    let goes_on = |inputs: u64| match plan.seconds {
        None => inputs < target.inputs.unwrap_or(INPUTS),
        Some(limit) => !inputs.is_multiple_of(STRIDE) || start.elapsed() < limit,
    };
    let mut input = Vec::new();
    while goes_on(inputs) {
        mutate(&target.corpus, &mut random, &mut input);
        if let Some(mend) = target.mend
            && random.below(2) == 0
        {
            mend(&mut input);
        }
        let (result, held) = fault(target, &input, &mut parse);
        inputs += 1;
        most = most.max(held);
        match result {
            Ok(Outcome::Accepted) => accepted += 1,
            Ok(Outcome::Refused) => {}
            Err(why) => {
                let path = save(&plan.folder, name, &input);
                println!(
                    "\nfuzz: target={name} seed={} inputs={inputs} crashes=1",
                    plan.seed
                );
                panic!("{name}, input {inputs} ({}): {why}", path.display());
            }
        }
    }
    let rate = inputs as f64 / start.elapsed().as_secs_f64();
    println!(
        "\nfuzz: target={name} seed={} inputs={inputs} accepted={accepted} refused={} rate={rate:.0}/s most_bytes={most} cap={} crashes=0",
        plan.seed,
        inputs - accepted,
        target.cap
    );
}

#[cfg(test)]
#[allow(clippy::expect_used)] // a failed test may panic
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: Measured = Measured;

    fn target(cap: usize) -> Target {
        Target {
            name: "self-test",
            cap,
            corpus: vec![b"\x04\0\0\0four".to_vec()],
            mend: None,
            inputs: Some(20_000),
        }
    }

    /// The text of the panic of a run that fails.
    fn failure(cap: usize, parse: impl Fn(&[u8]) -> Outcome) -> String {
        let plan = Plan {
            seconds: None,
            seed: 1,
            folder: env::temp_dir().join(format!("kq-fuzz-{}", std::process::id())),
        };
        let run = AssertUnwindSafe(|| run(&target(cap), &plan, &parse));
        let text = text_of(catch_unwind(run).expect_err("fails").as_ref());
        let saved = fs::read_dir(&plan.folder).expect("a folder").count();
        assert!(saved >= 1, "{text}");
        text
    }

    #[test]
    fn a_panic_is_found() {
        let text = failure(1 << 20, |input| {
            assert!(!input.ends_with(&[0xff]), "ends with 255");
            Outcome::Accepted
        });
        assert!(text.contains("panic: ends with 255"), "{text}");
    }

    #[test]
    fn an_allocation_of_a_stated_length_is_found() {
        let text = failure(1 << 16, |input| {
            let stated = input
                .first_chunk::<4>()
                .map_or(0, |b| u32::from_le_bytes(*b) as usize);
            let reserved: Vec<u8> = Vec::with_capacity(stated.min(1 << 24));
            assert!(std::hint::black_box(&reserved).is_empty());
            Outcome::Accepted
        });
        assert!(text.contains("at most 65536 are allowed"), "{text}");
    }

    #[test]
    fn runs_of_one_seed_are_alike() {
        let corpus = target(0).corpus;
        let inputs = |seed: u64| {
            let mut random = Random::new(seed, "x");
            let mut input = Vec::new();
            (0..100)
                .map(|_| {
                    mutate(&corpus, &mut random, &mut input);
                    input.clone()
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
    }
}
