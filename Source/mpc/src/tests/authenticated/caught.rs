//! Every corrupted party is caught, by the check that is there for its deviation; and protocols have no code of tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use keyquorum_net::Transport;

use super::{input, run_as};
use crate::engine::Engine;
use crate::error::{Check, EngineError, Result};
use crate::intercept::intercept;
use crate::long_tests;
use crate::tests::authenticated::adversaries::{Deviation, Role};
use crate::tests::binary::tampering::{Change, To, tampering};

/// Inputs of a party.
const MANY: u64 = 9000;

/// A program, and what must come out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    /// A sum of inputs of the first party and the last.
    Sum,
    /// So many inputs of all that their masks are made without a message for each.
    Many,
    /// Their product.
    Product,
    /// A product of bits.
    Ands,
    /// Random bits in both domains, and where they differ.
    Bits,
    /// Random numbers without what their bits say.
    Numbers,
}

impl Program {
    pub fn run(self, engine: &mut dyn Engine) -> Result<Vec<u64>> {
        let (me, n) = engine.party();
        match self {
            Self::Sum => {
                let (x, y) = (input(engine, 0, &[3])?, input(engine, n - 1, &[4])?);
                let sum = engine.add(&x, &y)?;
                let opened = engine.open(&sum)?;
                engine.read(&opened)
            }
            Self::Many => {
                let values: Vec<i64> = (0..MANY as i64).collect();
                let (x, y) = (input(engine, 0, &values)?, input(engine, n - 1, &values)?);
                let mut sum = engine.add(&x, &y)?;
                // Whoever is the victim has trees.
                for middle in 1..n - 1 {
                    let zeros = input(engine, middle, &[0; MANY as usize])?;
                    sum = engine.add(&sum, &zeros)?;
                }
                let opened = engine.open(&sum)?;
                engine.read(&opened)
            }
            Self::Product => {
                let (x, y) = (input(engine, 0, &[3])?, input(engine, n - 1, &[4])?);
                let product = engine.mul(&x, &y)?;
                let opened = engine.open(&product)?;
                engine.read(&opened)
            }
            Self::Ands => {
                let given = |owner: usize, every: u8| -> Option<Vec<u8>> {
                    (me == owner).then(|| (0..64).map(|i| u8::from(i % every == 0)).collect())
                };
                let x = engine.input_bits(0, 64, given(0, 2).as_deref())?;
                let y = engine.input_bits(n - 1, 64, given(n - 1, 3).as_deref())?;
                let both = engine.and(&x, &y)?;
                let opened = engine.open(&both)?;
                let bits = engine.read_bits(&opened)?;
                Ok(bits.into_iter().map(u64::from).collect())
            }
            Self::Bits => {
                let random = engine.random_bits(64)?;
                let elements = engine.bit_to_arith(&random)?;
                let (bits, elements) = (engine.open(&random)?, engine.open(&elements)?);
                let (bits, elements) = (engine.read_bits(&bits)?, engine.read(&elements)?);
                let both = bits.into_iter().map(u64::from).zip(elements);
                Ok(both
                    .map(|(bit, element)| u64::from(bit != element))
                    .collect())
            }
            Self::Numbers => {
                let (numbers, rows) = engine.edabit(10, 64)?;
                let opened = engine.open(&numbers)?;
                let mut numbers = engine.read(&opened)?;
                for (j, row) in rows.iter().enumerate() {
                    let opened = engine.open(row)?;
                    for (number, bit) in numbers.iter_mut().zip(engine.read_bits(&opened)?) {
                        *number = number.wrapping_sub(u64::from(bit) << j);
                    }
                }
                Ok(numbers)
            }
        }
    }

    pub fn wanted(self) -> Vec<u64> {
        match self {
            Self::Sum => vec![7],
            Self::Many => (0..MANY).map(|i| 2 * i).collect(),
            Self::Product => vec![12],
            Self::Ands => (0..64).map(|i| u64::from(i % 6 == 0)).collect(),
            Self::Bits | Self::Numbers => vec![0; 64],
        }
    }
}

/// A deviation, the program in which it happens, and the check that catches it among two parties and among three; none where it changes
/// nothing.
type Case = (Deviation, Program, Option<Check>, Option<Check>);

const fn always(deviation: Deviation, program: Program, check: Check) -> Case {
    (deviation, program, Some(check), Some(check))
}

/// Deviations towards one of several.
const fn among_three(deviation: Deviation, program: Program, check: Check) -> Case {
    (deviation, program, None, Some(check))
}

const CASES: [Case; 38] = {
    use Check::{
        BitMacs, Broadcast, Commitment, EdaBits, ElementKeys, ElementMacs, OtExtension, SubsetSums,
    };
    use Program::{Ands, Bits, Many, Numbers, Product, Sum};
    [
        (Deviation::Vector, Sum, Some(ElementMacs), Some(ElementKeys)),
        (Deviation::Digit, Sum, Some(ElementMacs), Some(ElementKeys)),
        always(Deviation::Shift, Many, SubsetSums),
        always(Deviation::Trees, Many, SubsetSums),
        (
            Deviation::Choices,
            Product,
            Some(SubsetSums),
            Some(Broadcast),
        ),
        always(Deviation::Proof, Product, OtExtension),
        always(Deviation::OperandKey, Product, SubsetSums),
        always(Deviation::Operand, Product, SubsetSums),
        always(Deviation::OperandMac, Product, SubsetSums),
        always(Deviation::Payload, Product, SubsetSums),
        always(Deviation::OtherFactor, Product, SubsetSums),
        always(Deviation::Product, Product, SubsetSums),
        always(Deviation::Check, Sum, ElementMacs),
        always(Deviation::Opening, Sum, ElementMacs),
        always(Deviation::Opening, Product, SubsetSums),
        among_three(Deviation::OpeningToOne, Sum, Broadcast),
        among_three(Deviation::Input, Sum, Broadcast),
        always(Deviation::Reveal, Sum, Commitment),
        always(Deviation::Commitment, Sum, Commitment),
        among_three(Deviation::Transcript, Sum, Broadcast),
        (Deviation::BitChoices, Ands, Some(BitMacs), Some(Broadcast)),
        always(Deviation::BitCorrections, Ands, OtExtension),
        always(Deviation::BitProof, Ands, OtExtension),
        always(Deviation::BitPayload, Ands, BitMacs),
        always(Deviation::BitOpening, Ands, BitMacs),
        among_three(Deviation::BitOpeningToOne, Ands, Broadcast),
        among_three(Deviation::BitInput, Ands, Broadcast),
        always(Deviation::BitCheck, Ands, BitMacs),
        always(Deviation::Bits, Bits, SubsetSums),
        always(Deviation::AllBits, Bits, SubsetSums),
        always(Deviation::Key, Bits, SubsetSums),
        always(Deviation::Top, Bits, SubsetSums),
        always(Deviation::Factor, Bits, SubsetSums),
        always(Deviation::FactorMac, Bits, SubsetSums),
        always(Deviation::SubsetSums, Bits, SubsetSums),
        always(Deviation::Number, Numbers, EdaBits),
        always(Deviation::AllNumbers, Numbers, EdaBits),
        always(Deviation::Test, Numbers, EdaBits),
    ]
};

/// What came of a run, at the honest parties.
pub(super) struct Outcome {
    /// Checks that failed there.
    pub checks: BTreeSet<String>,
    pub errors: Vec<String>,
    /// What parties got that noticed nothing.
    pub outputs: Vec<Vec<u64>>,
}

impl Outcome {
    pub fn new(results: Vec<Result<Vec<u64>>>, corrupt: usize) -> Self {
        let mut outcome = Self {
            checks: BTreeSet::new(),
            errors: Vec::new(),
            outputs: Vec::new(),
        };
        let honest = results
            .into_iter()
            .enumerate()
            .filter(|(i, _)| *i != corrupt);
        for (_, result) in honest {
            match result {
                Ok(output) => outcome.outputs.push(output),
                Err(error) => {
                    match error {
                        // Another honest party has broken off.
                        EngineError::Check {
                            check: Check::Interrupted,
                            ..
                        } => {}
                        EngineError::Check { check, .. } => {
                            outcome.checks.insert(format!("{check:?}"));
                        }
                        _ => {}
                    }
                    outcome.errors.push(error.to_string());
                }
            }
        }
        outcome
    }

    /// Whether nobody got anything, and this check alone said why; without a check, whatever said why.
    pub fn is_caught(&self, by: Option<Check>) -> bool {
        let reason = by.is_none_or(|check| self.checks == BTreeSet::from([format!("{check:?}")]));
        self.outputs.is_empty() && !self.errors.is_empty() && reason
    }
}

/// A run in which one party deviates and the others have this role.
pub(super) fn attack(
    n: usize,
    protocol: &'static str,
    (deviation, program): (Deviation, Program),
    corrupt: usize,
    others: &Role,
) -> Outcome {
    let role = |party| match party {
        party if party == corrupt => Role::Deviates(deviation),
        _ => others.clone(),
    };
    let body = move |engine: &mut dyn Engine| program.run(engine);
    Outcome::new(run_as(n, protocol, role, |_, t| t, body), corrupt)
}

/// Programs of both protocols, of two parties and of three, the first or the last of which deviates in one of these ways: the first in one case and the last in the next one,
/// and with `KEYQUORUM_LONG` both in each.
#[test]
fn every_check_blocked_every_deviation_is_caught_by_its_check() {
    let mut all = Vec::new();
    for protocol in ["spdz2k", "mascot"] {
        for (number, (deviation, program, two, three)) in CASES.into_iter().enumerate() {
            // Modulo 2^k elements are multiplied by keys one by one, however many.
            if (protocol, program) == ("spdz2k", Program::Many) {
                continue;
            }
            for (n, check) in [(2, two), (3, three)] {
                let Some(check) = check else { continue };
                let corrupted = match long_tests() {
                    true => vec![0, n - 1],
                    false => vec![((number + n) % 2) * (n - 1)],
                };
                all.extend(
                    corrupted
                        .into_iter()
                        .map(|corrupt| (protocol, deviation, program, n, corrupt, check)),
                );
            }
        }
    }
    let cases = all.len();
    let failures = Mutex::new(Vec::new());
    let rest = Mutex::new(all);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = rest.lock().unwrap().pop();
                    let Some((protocol, deviation, program, n, corrupt, check)) = next else {
                        return;
                    };
                    let outcome = attack(n, protocol, (deviation, program), corrupt, &Role::Honest);
                    let wrong = outcome.outputs.iter().any(|out| *out != program.wanted());
                    if wrong || !outcome.is_caught(Some(check)) {
                        failures.lock().unwrap().push(format!(
                            "{protocol}, {n} parties, {deviation:?} of party {corrupt}: wrong output: {wrong}, {check:?} expected: {:?} {:?}",
                            outcome.checks, outcome.errors
                        ));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(cases >= 120, "{cases}");
    println!("adversaries: cases={cases} wrong_outputs=0 by_the_expected_check={cases}");
}

/// Programs compute what the cases compare with.
#[test]
fn programs_of_the_cases_are_right() {
    for program in [
        Program::Sum,
        Program::Many,
        Program::Product,
        Program::Ands,
        Program::Bits,
        Program::Numbers,
    ] {
        let body = move |engine: &mut dyn Engine| program.run(engine);
        for result in run_as(2, "mascot", |_| Role::Honest, |_, t| t, body) {
            assert_eq!(result.unwrap(), program.wanted());
        }
    }
}

/// Of the messages of a set-up, a seed, points and punctured PRFs, the number of the last.
const PRFS: usize = 3;

/// Without the check of punctured PRFs: `keyquorum_ot::punctured`.
#[test]
fn every_check_blocked_other_punctured_prfs_are_caught_by_their_check() {
    for n in [2, 3] {
        for corrupt in [0, n - 1] {
            let wrap = |party, inner: Box<dyn Transport>| -> Box<dyn Transport> {
                if party != corrupt {
                    return inner;
                }
                let mut sent = vec![0; n];
                let sends = move |to: usize, payload: &[u8]| {
                    sent[to] += 1;
                    let mut message = payload.to_vec();
                    if sent[to] == PRFS {
                        *message.last_mut().unwrap() ^= 1;
                    }
                    Some(message)
                };
                intercept(inner, sends, |_, _| ())
            };
            let program = |engine: &mut dyn Engine| Program::Product.run(engine);
            let results = run_as(n, "spdz2k", |_| Role::Honest, wrap, program);
            let outcome = Outcome::new(results, corrupt);
            assert!(
                outcome.is_caught(Some(Check::PuncturedPrfs)),
                "{n} {corrupt}: {:?}",
                outcome.errors
            );
        }
    }
}

/// If any error counts, a deviation that never happened passes for one that was caught: a message that was cut off ended the run before.
#[test]
fn every_check_ablated_any_error_passes_for_a_deviation_that_was_caught() {
    let cut = tampering(0, To::All, Change::Shorten);
    let role = |party| match party {
        1 => Role::Deviates(Deviation::Number),
        _ => Role::Honest,
    };
    let wrap = |party, transport| match party {
        1 => cut(transport),
        _ => transport,
    };
    let program = |engine: &mut dyn Engine| Program::Numbers.run(engine);
    let outcome = Outcome::new(run_as(2, "spdz2k", role, wrap, program), 1);
    assert!(outcome.is_caught(None));
    assert!(!outcome.is_caught(Some(Check::EdaBits)));
    assert!(outcome.checks.is_empty(), "{:?}", outcome.checks);
}

/// Lines that make a release compile something else than tests, within what both compile: in bodies of functions, on fields and variants,
/// and instead of other code. What does not count: modules of tests, and whole items and methods that tests alone have, those of other crates too.
fn code_of_tests(source: &str) -> Vec<String> {
    let lines: Vec<&str> = source.lines().collect();
    let mut found = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let depth = line.len() - code.len();
        let names: Vec<&str> = code
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .collect();
        let says = |word: &str| names.contains(&word);
        if code.starts_with("//")
            || !(says("cfg") || says("cfg_attr"))
            || !(says("test") || says("testing"))
        {
            continue;
        }
        let mut next = lines.iter().skip(i + 1).map(|line| line.trim_start());
        let item = next.find(|line| !line.starts_with("#[") && !line.starts_with("//"));
        let item: Vec<&str> = item.map_or(Vec::new(), |item| item.split_whitespace().collect());
        let kind = item.iter().find(|word| !word.starts_with("pub")).copied();
        let whole = match (depth, kind) {
            (0, Some("mod")) if item.last() == Some(&"{") => break,
            (0, Some("mod" | "use" | "fn" | "impl" | "const" | "enum" | "struct")) => true,
            (4, Some("fn")) => item.first().is_some_and(|word| word.starts_with("pub")),
            _ => false,
        };
        let apart = ["#[cfg(test)]", "#[cfg(any(test, feature = \"testing\"))]"];
        if !apart.contains(&code) || !whole {
            found.push(format!("{}: {line}", i + 1));
        }
    }
    found
}

/// All files of Rust below this folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let nested = paths.flat_map(|path| match path.is_dir() {
        true => sources(&path),
        false => vec![path],
    });
    nested
        .filter(|path| path.extension().is_some_and(|end| end == "rs"))
        .collect()
}

/// This file has examples of what is sought.
#[test]
fn every_check_blocked_protocols_have_no_code_of_tests() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut read = 0;
    for package in ["mpc", "protocols", "core", "ot", "net"] {
        for path in sources(&home.with_file_name(package).join("src")) {
            if path.ends_with("tests/authenticated/caught.rs") {
                continue;
            }
            let found = code_of_tests(&fs::read_to_string(&path).unwrap());
            assert!(found.is_empty(), "{}: {found:#?}", path.display());
            read += 1;
        }
    }
    assert!(read > 80, "{read}");
}

/// Code of tests as it once lay within protocols compiles, so only a search finds it: each is found.
#[test]
fn every_check_ablated_code_of_tests_in_a_protocol_is_found() {
    for woven in [
        "fn f() {\n    #[cfg(test)]\n    let values = &p.change_for(peer, values);\n}",
        "struct S {\n    #[cfg(test)]\n    deviation: Option<Deviation>,\n}",
        "impl S {\n    #[cfg(not(test))]\n    fn deviation(&self) {}\n}",
        "fn f() {\n    #[cfg(test)]\n    fn g() {}\n}",
        "fn f() {\n    if cfg!(test) {\n        deviation();\n    }\n}",
        "#[cfg_attr(test, allow(dead_code))]\nfn f() {}",
        "#[cfg(not(test))]\nfn f() {}",
        "#[cfg(any(test, feature = \"adversaries\"))]\nmod adversaries;",
        "#[cfg(feature = \"testing\")]\nmod adversaries;",
        "fn f() {\n    if cfg!(feature = \"testing\") {\n        deviation();\n    }\n}",
        "struct S {\n    #[cfg(any(test, feature = \"testing\"))]\n    deviation: Option<Deviation>,\n}",
    ] {
        assert_eq!(code_of_tests(woven).len(), 1, "{woven}");
    }
    for apart in [
        "#[cfg(test)]\nmod tests {\n    #[cfg(not(test))]\n    fn f() {}\n}",
        "#[cfg(test)]\n#[path = \"x.rs\"]\nmod tests;",
        "impl S {\n    /// For tests.\n    #[cfg(test)]\n    pub fn ablated() -> Self {}\n}",
        "impl S {\n    #[cfg(any(test, feature = \"testing\"))]\n    pub fn ablated() -> Self {}\n}",
    ] {
        assert!(code_of_tests(apart).is_empty(), "{apart}");
    }
}

/// Lines by which a package asks for the parts of others that are for tests, in a release too.
fn releases_code_of_tests(manifest: &str) -> Vec<String> {
    let (mut section, mut found) = ("", Vec::new());
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        }
        let apart = ["[dev-dependencies]", "[features]"].contains(&section);
        if line.contains("testing") && (!apart || line.contains("default")) {
            found.push(line.to_owned());
        }
    }
    found
}

#[test]
fn every_check_blocked_dev_dependencies_alone_have_code_of_tests() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    for package in ["python", "mpc", "protocols", "core", "ot", "net", "math"] {
        let path = home.with_file_name(package).join("Cargo.toml");
        let found = releases_code_of_tests(&fs::read_to_string(&path).unwrap());
        assert!(found.is_empty(), "{}: {found:#?}", path.display());
    }
    let whole = fs::read_to_string(home.with_file_name("Cargo.toml")).unwrap();
    assert!(releases_code_of_tests(&whole).is_empty());
}

#[test]
fn every_check_ablated_code_of_tests_in_a_release_is_found() {
    let needs = "keyquorum-core = { workspace = true, features = [\"testing\"] }";
    for released in [
        format!("[dependencies]\n{needs}"),
        format!("[target.'cfg(unix)'.dependencies]\n{needs}"),
        "[features]\ndefault = [\"testing\"]".to_owned(),
    ] {
        assert_eq!(releases_code_of_tests(&released).len(), 1, "{released}");
    }
    let apart = format!("[features]\ntesting = []\n[dev-dependencies]\n{needs}");
    assert!(releases_code_of_tests(&apart).is_empty());
}
