//! Recorded programs against the same calls made one by one, on clear text and among three parties.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::thread;
use std::time::Duration;

use keyquorum_math::DomainKind;
use keyquorum_net::local_mesh;
use proptest::prelude::*;

use super::step::Place;
use super::*;
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::session::{EngineOptions, Session};

const RING: DomainKind = DomainKind::Z2k(64);

fn parties<T: Send + 'static>(
    n: usize,
    protocol: &'static str,
    body: impl Fn(usize, &mut dyn Engine) -> T + Clone + Send + 'static,
) -> Vec<T> {
    let threads: Vec<_> = local_mesh(n, Duration::from_secs(20))
        .into_iter()
        .map(|transport| {
            let body = body.clone();
            thread::spawn(move || {
                let session = Session::new(Box::new(transport)).unwrap();
                let options = EngineOptions::default();
                let mut engine = session.engine(protocol, RING, &options).unwrap();
                body(session.party(), engine.as_mut())
            })
        })
        .collect();
    threads.into_iter().map(|t| t.join().unwrap()).collect()
}

fn emulated<T: Send + 'static>(body: impl Fn(&mut dyn Engine) -> T + Clone + Send + 'static) -> T {
    let mut all = parties(1, "emulate", move |_, engine| body(engine));
    all.pop().unwrap()
}

fn inputs<'a>(public: &'a [i64], private: &'a [i64]) -> Inputs<'a> {
    Inputs {
        sections: Vec::new(),
        width: 1,
        public: vec![public],
        private,
    }
}

fn silent(text: &str) -> Result<()> {
    panic!("nothing prints here, not even {text}");
}

/// Records steps that make a vector, numbers, or raw shares.
trait Record {
    fn vector(&mut self, step: impl FnOnce(ValueId) -> Step) -> ValueId;
    fn words(&mut self, step: impl FnOnce(NumbersId) -> Step) -> NumbersId;
    fn raw(&mut self, step: impl FnOnce(SharesId) -> Step) -> SharesId;
    fn unary(&mut self, op: Unary, a: ValueId) -> ValueId {
        self.vector(|out| Step::Unary { op, a, out })
    }
    fn binary(&mut self, op: Binary, a: ValueId, b: ValueId) -> ValueId {
        self.vector(|out| Step::Binary { op, a, b, out })
    }
    /// Opens a vector and writes it to the output.
    fn show(&mut self, a: ValueId);
}

impl Record for Recorder {
    fn vector(&mut self, step: impl FnOnce(ValueId) -> Step) -> ValueId {
        let out = self.value();
        self.push(step(out)).unwrap();
        out
    }

    fn words(&mut self, step: impl FnOnce(NumbersId) -> Step) -> NumbersId {
        let out = self.numbers();
        self.push(step(out)).unwrap();
        out
    }

    fn raw(&mut self, step: impl FnOnce(SharesId) -> Step) -> SharesId {
        let out = self.shares();
        self.push(step(out)).unwrap();
        out
    }

    fn show(&mut self, a: ValueId) {
        let a = self.unary(Unary::Open, a);
        let numbers = self.words(|out| Step::Read { a, out });
        let party = None;
        self.push(Step::Output { numbers, party }).unwrap();
    }
}

fn shown(played: &Played) -> Vec<Vec<i64>> {
    let words = |output: &Output| match output {
        Output::Public { words, .. } | Output::Personal(words) => words.to_vec(),
    };
    played.outputs.iter().map(words).collect()
}

/// Inputs of parties 0 and 1, public words; `3xy + public`, and y to party 2.
fn product_of_inputs(party: usize, engine: &mut dyn Engine) -> Recording {
    let mut r = Recorder::new();
    let public = r.words(|out| Step::TakePublic { count: 2, out });
    let [x, y] = [0, 1].map(|owner| {
        let count = 2;
        let numbers = (party == owner).then(|| r.words(|out| Step::TakePrivate { count, out }));
        r.vector(|out| Step::Input {
            owner,
            count,
            numbers,
            out,
        })
    });
    let three = engine.clear(&[3]);
    let three = r.constant_value(engine, &three).unwrap();
    let product = r.binary(Binary::Mul, x, y);
    let product = r.binary(Binary::Mul, three, product);
    let added = r.vector(|out| Step::Clear {
        numbers: public,
        out,
    });
    let sum = r.binary(Binary::Add, product, added);
    r.show(sum);
    let a = r.unary(Unary::OpenTo(2), y);
    r.push(Step::Flush).unwrap(); // all alike: only one reads
    if party == 2 {
        let numbers = r.words(|out| Step::Read { a, out });
        r.push(Step::OutputPersonal { numbers }).unwrap();
    }
    r.finish()
}

#[test]
fn a_recording_does_with_other_data_what_the_calls_do() {
    for (party, (played, direct)) in parties(3, "ring", |party, engine| {
        let recording = product_of_inputs(party, engine);
        let mut played = Vec::new();
        for run in 0..3i64 {
            let before = engine.stats();
            let private = [run + 5 + party as i64, run - 7];
            let public = [100, run];
            let given = inputs(&public, &private);
            let made = recording.play(engine, &given, &mut silent).unwrap();
            let after = engine.stats();
            let cost = (
                after.rounds - before.rounds,
                after.bytes_sent - before.bytes_sent,
            );
            played.push((shown(&made), cost));
        }
        let mut direct = Vec::new();
        for run in 0..3i64 {
            let before = engine.stats();
            let private = [run + 5 + party as i64, run - 7];
            let words = |owner| (party == owner).then_some(&private[..]);
            let x = engine.input(0, 2, words(0)).unwrap();
            let y = engine.input(1, 2, words(1)).unwrap();
            let product = engine.mul(&x, &y).unwrap();
            let three = engine.clear(&[3]);
            let product = engine.mul(&three, &product).unwrap();
            let added = engine.clear(&[100, run]);
            let sum = engine.add(&product, &added).unwrap();
            let opened = engine.open(&sum).unwrap();
            let mut found = vec![signed(engine.read(&opened).unwrap())];
            let personal = engine.open_to(&y, 2).unwrap();
            engine.flush().unwrap();
            if party == 2 {
                found.push(signed(engine.read(&personal).unwrap()));
            }
            let after = engine.stats();
            let cost = (
                after.rounds - before.rounds,
                after.bytes_sent - before.bytes_sent,
            );
            direct.push((found, cost));
        }
        engine.flush().unwrap();
        (played, direct)
    })
    .into_iter()
    .enumerate()
    {
        assert_eq!(played, direct);
        for (run, (found, _)) in played.iter().enumerate() {
            let run = run as i64;
            let expected = [
                3 * (run + 5) * (run + 6) + 100,
                3 * (run - 7) * (run - 7) + run,
            ];
            assert_eq!(found[0], expected);
            assert_eq!(found.get(1).is_some(), party == 2);
        }
    }
}

fn signed(words: Vec<u64>) -> Vec<i64> {
    words.into_iter().map(|word| word as i64).collect()
}

/// Every operation on vectors: three parties open what clear text gives.
#[test]
fn all_operations_on_vectors_agree_with_clear_text() {
    fn record(engine: &mut dyn Engine) -> Recording {
        let mut r = Recorder::new();
        let numbers = r.words(|out| Step::TakePublic { count: 4, out });
        let clear = r.vector(|out| Step::Clear { numbers, out });
        let zero = r
            .constant_shares(vec![0; engine.share_parts() * 8])
            .unwrap();
        let zero = r.vector(|out| Step::Import {
            shares: zero,
            count: 1,
            out,
        });
        let secret = r.binary(Binary::Add, zero, clear);
        r.show(secret);
        for op in [
            Unary::Neg,
            Unary::Sum(2),
            Unary::Slice {
                start: 3,
                step: -2,
                count: 2,
            },
        ] {
            let made = r.unary(op, secret);
            r.show(made);
        }
        for op in [
            Binary::Sub,
            Binary::Mul,
            Binary::Dot(2),
            Binary::MatrixProduct(2, 2, 2),
        ] {
            let made = r.binary(op, secret, clear);
            r.show(made);
        }
        let at = r.constant_numbers(vec![2, 0, 2]);
        let a = secret;
        let picked = r.vector(|out| Step::Gather { a, at, out });
        let one = r.unary(
            Unary::Slice {
                start: 1,
                step: 1,
                count: 1,
            },
            picked,
        );
        let three = r.unary(Unary::Repeat(3), one);
        let parts = vec![picked, three, secret];
        let all = r.vector(|out| Step::Concat { parts, out });
        let all = r.vector(|out| Step::Assign {
            target: all,
            start: 1,
            step: 2,
            source: picked,
            out,
        });
        let all = r.vector(|out| Step::Scatter {
            target: all,
            at,
            source: three,
            out,
        });
        r.show(all);
        let low = r.unary(Unary::OpenLow(5), secret);
        let by = engine.clear(&[3]);
        let by = r.constant_value(engine, &by).unwrap();
        for op in [crate::ClearOp::Shr, crate::ClearOp::Mod] {
            let a = r.binary(Binary::Clear(op), low, by);
            let numbers = r.words(|out| Step::Read { a, out });
            r.push(Step::Output {
                numbers,
                party: Some(1),
            })
            .unwrap();
        }
        let bits = r.vector(|out| Step::ClearBits { numbers, out });
        let not = r.unary(Unary::Not, bits);
        let random = r.vector(|out| Step::Random {
            kind: Random::Bits,
            count: 4,
            out,
        });
        let hidden = r.binary(Binary::Xor, random, not);
        let hidden = r.binary(Binary::And, hidden, random); // random & !(bits ^ random ^ random) …
        let number = r.unary(Unary::BitToArith, hidden);
        let times = r.unary(Unary::BitToArith, random);
        let a = bits;
        let numbers = r.words(|out| Step::ReadBits { a, out });
        let bit = r.vector(|out| Step::Clear { numbers, out });
        // … is random · bits, so this is zero.
        let product = r.binary(Binary::Mul, times, bit);
        let zeros = r.binary(Binary::Sub, number, product);
        r.show(zeros);
        let party = None;
        r.push(Step::Output { numbers, party }).unwrap();
        r.push(Step::Flush).unwrap();
        r.finish()
    }
    let data = [5i64, -3, 1 << 40, 30];
    let play = move |engine: &mut dyn Engine| {
        let recording = record(engine);
        let given = inputs(&data, &[]);
        [0, 1].map(|_| shown(&recording.play(engine, &given, &mut silent).unwrap()))
    };
    let [clear, again] = emulated(play);
    assert_eq!(clear, again);
    assert_eq!(clear[0], data);
    assert_eq!(clear[2], [2, (1 << 40) + 30]);
    assert_eq!(clear[3], [30, -3]);
    assert_eq!(clear.last().unwrap(), &[1, 1, 0, 0]);
    assert_eq!(clear[clear.len() - 2], [0; 4]);
    for of_party in parties(3, "ring", move |_, engine| play(engine)) {
        assert_eq!(of_party, [clear.clone(), clear.clone()]);
    }
}

/// Random numbers and summands come with their bits: the sum over the bits is the number.
#[test]
fn rows_of_bits_are_those_of_their_numbers() {
    let differences = parties(3, "ring", |_, engine| {
        let mut r = Recorder::new();
        let (out, count) = (r.value(), 3);
        let rows: Vec<_> = (0..8).map(|_| r.value()).collect();
        r.push(Step::Edabit {
            bits: 8,
            count,
            out,
            rows: rows.clone(),
        })
        .unwrap();
        let mut rest = out;
        for (i, row) in rows.into_iter().enumerate() {
            let factor = engine.clear(&[1 << i]);
            let factor = r.constant_value(engine, &factor).unwrap();
            let bit = r.unary(Unary::BitToArith, row);
            let term = r.binary(Binary::Mul, bit, factor);
            rest = r.binary(Binary::Sub, rest, term);
        }
        r.show(rest);
        r.show(out);
        // The lowest bit of a sum is the sum of the lowest bits; the other rows are not needed.
        let summands = engine.summands();
        let rows: Vec<Vec<_>> = (0..summands)
            .map(|_| (0..2).map(|_| r.value()).collect())
            .collect();
        r.push(Step::SummandBits {
            a: out,
            bits: 2,
            rows: rows.clone(),
        })
        .unwrap();
        let lowest = rows.iter().map(|row| row[0]);
        let bit = lowest.reduce(|a, b| r.binary(Binary::Xor, a, b)).unwrap();
        r.show_bits(bit);
        let recording = r.finish();
        let given = inputs(&[], &[]);
        [0, 1].map(|_| shown(&recording.play(engine, &given, &mut silent).unwrap()))
    });
    for [first, second] in &differences {
        for run in [first, second] {
            assert_eq!(run[0], [0; 3]);
            assert!(run[1].iter().all(|n| (0..256).contains(n)));
            let lowest: Vec<i64> = run[1].iter().map(|n| n & 1).collect();
            assert_eq!(run[2], lowest);
        }
        assert_ne!(first[1], second[1], "fails once in 2^24 runs");
    }
}

trait ShowBits {
    fn show_bits(&mut self, a: ValueId);
}

impl ShowBits for Recorder {
    fn show_bits(&mut self, a: ValueId) {
        let a = self.unary(Unary::Open, a);
        let numbers = self.words(|out| Step::ReadBits { a, out });
        let party = None;
        self.push(Step::Output { numbers, party }).unwrap();
    }
}

#[test]
fn random_vectors_are_others_in_every_run() {
    let runs = emulated(|engine| {
        let mut r = Recorder::new();
        for kind in [Random::Elements, Random::BitElements] {
            let made = r.vector(|out| Step::Random {
                kind,
                count: 64,
                out,
            });
            r.show(made);
        }
        let recording = r.finish();
        let given = inputs(&[], &[]);
        [0, 1].map(|_| shown(&recording.play(engine, &given, &mut silent).unwrap()))
    });
    assert_ne!(runs[0][0], runs[1][0]);
    assert_ne!(runs[0][1], runs[1][1], "fails once in 2^64 runs");
    assert!(
        runs.iter()
            .all(|run| run[1].iter().all(|bit| [0, 1].contains(bit)))
    );
}

#[test]
fn arithmetic_on_numbers_is_that_of_64_bit_words() {
    const CASES: [(NumberOp, i64, i64, i64); 22] = [
        (NumberOp::Add, i64::MAX, 1, i64::MIN),
        (NumberOp::Sub, i64::MIN, 1, i64::MAX),
        (NumberOp::Mul, 1 << 40, 1 << 30, 0),
        (NumberOp::FloorDiv, 7, 2, 3),
        (NumberOp::FloorDiv, -7, 2, -4),
        (NumberOp::FloorDiv, 7, -2, -4),
        (NumberOp::FloorDiv, -8, 2, -4),
        (NumberOp::FloorDiv, i64::MIN, -1, i64::MIN),
        (NumberOp::Shl, 3, 63, i64::MIN),
        (NumberOp::Shr, -8, 1, -4),
        (NumberOp::ShrUnsigned, -1, 60, 15),
        (NumberOp::And, 12, 10, 8),
        (NumberOp::Or, 12, 10, 14),
        (NumberOp::Xor, 12, 10, 6),
        (NumberOp::Lt, -1, 0, 1),
        (NumberOp::Lt, 1, 1, 0),
        (NumberOp::Le, 1, 1, 1),
        (NumberOp::Gt, 0, -1, 1),
        (NumberOp::Ge, -1, 0, 0),
        (NumberOp::Eq, 4, 4, 1),
        (NumberOp::Ne, 4, 4, 0),
        (NumberOp::Ne, 4, -4, 1),
    ];
    for (op, a, b, expected) in CASES {
        let found = op.apply(&[a], &[b]).unwrap();
        assert_eq!(found.to_vec(), [expected], "{a} {op:?} {b}");
    }
    let spread = NumberOp::Sub.apply(&[10], &[1, 2]).unwrap();
    assert_eq!(spread.to_vec(), [9, 8]);
    for (op, b) in [
        (NumberOp::FloorDiv, 0),
        (NumberOp::Shl, 64),
        (NumberOp::Shr, -1),
        (NumberOp::ShrUnsigned, 64),
    ] {
        assert!(matches!(
            op.apply(&[1, 2], &[1, b]),
            Err(EngineError::Usage(_))
        ));
    }
    assert!(NumberOp::Add.apply(&[1, 2], &[1, 2, 3]).is_err());
}

proptest! {
    #[test]
    fn quotients_are_rounded_down(a in any::<i64>(), b in any::<i64>().prop_filter("a divisor", |b| *b != 0)) {
        prop_assume!((a, b) != (i64::MIN, -1));
        let quotient = NumberOp::FloorDiv.apply(&[a], &[b]).unwrap()[0];
        let rest = i128::from(a) - i128::from(quotient) * i128::from(b);
        prop_assert!(rest == 0 || ((rest < 0) == (b < 0) && rest.abs() < i128::from(b).abs()));
    }
}

#[test]
fn numbers_are_chosen_cut_joined_and_compared_with_lengths() {
    let found = emulated(|engine| {
        let mut r = Recorder::new();
        let a = r.words(|out| Step::TakePublic { count: 4, out });
        let zero = r.constant_numbers(vec![0]);
        let op = NumberOp::Lt;
        let condition = r.words(|out| Step::Numbers {
            op,
            a,
            b: zero,
            out,
        });
        let chosen = r.words(|out| Step::Choose {
            condition,
            a: zero,
            b: a,
            out,
        });
        let part = r.words(|out| Step::Part {
            a: chosen,
            start: 1,
            step: 2,
            count: 2,
            out,
        });
        let parts = vec![part, chosen];
        let numbers = r.words(|out| Step::Join { parts, out });
        r.push(Step::InRange {
            a: numbers,
            length: 10,
        })
        .unwrap();
        let party = None;
        r.push(Step::Output { numbers, party }).unwrap();
        let recording = r.finish();
        [[1, -2, 3, 9], [1, 2, 3, 10]].map(|data| {
            let played = recording.play(engine, &inputs(&data, &[]), &mut silent);
            played.map(|p| shown(&p)).map_err(|e| e.to_string())
        })
    });
    assert_eq!(found[0], Ok(vec![vec![0, 9, 1, 0, 3, 9]]));
    assert_eq!(found[1], Err("overflow: index 10, length 10".into()));
}

#[test]
fn shares_are_read_across_the_parts_of_a_file_and_stored_at_its_end() {
    let found = emulated(|engine| {
        let mut r = Recorder::new();
        let loaded = r.raw(|out| Step::Load {
            start: 1,
            count: 4,
            out,
        });
        let at = r.words(|out| Step::TakePublic { count: 2, out });
        let picked = r.raw(|out| Step::Pick { start: 1, at, out });
        for (shares, count) in [(loaded, 4), (picked, 2)] {
            let a = r.vector(|out| Step::Import { shares, count, out });
            r.show(a);
            r.push(Step::Store { a }).unwrap();
        }
        let recording = r.finish();
        assert!(recording.uses_shares() && !recording.prints());
        let play = |engine: &mut dyn Engine, at: [i64; 2], second: &[u16]| {
            let sections = [
                vec![Row::Bytes8(&[10, 11])],
                vec![Row::Bytes2(second)],
                vec![Row::Copied(vec![14, 15].into())],
            ];
            let given = Inputs {
                sections: sections.map(|rows| Section::new(rows).unwrap()).into(),
                width: 1,
                public: vec![&at],
                private: &[],
            };
            let played = recording.play(engine, &given, &mut silent);
            played.map_err(|error| error.to_string())
        };
        let played = play(engine, [4, 0], &[12, 13]).unwrap();
        let stored: Vec<Vec<u8>> = played.stored.iter().map(|s| s.to_vec()).collect();
        let short = play(engine, [3, 0], &[]).unwrap_err();
        let outside = play(engine, [-1, 0], &[12, 13]).unwrap_err();
        (shown(&played), stored, short, outside)
    });
    let (outputs, stored, short, outside) = found;
    assert_eq!(outputs, [vec![11, 12, 13, 14], vec![15, 11]]);
    let words = |list: &[u64]| {
        list.iter()
            .flat_map(|w| w.to_le_bytes())
            .collect::<Vec<_>>()
    };
    assert_eq!(stored, [words(&[11, 12, 13, 14]), words(&[15, 11])]);
    assert!(short.starts_with("the share file ends before"), "{short}");
    assert!(
        outside.contains("picks a share before the first"),
        "{outside}"
    );
    assert!(Section::new(vec![Row::Bytes1(&[1]), Row::Bytes4(&[1, 2])]).is_err());
}

#[test]
fn inputs_that_end_too_early_are_refused() {
    let errors = emulated(|engine| {
        [true, false].map(|public| {
            let mut r = Recorder::new();
            r.words(|out| match public {
                true => Step::TakePublic { count: 3, out },
                false => Step::TakePrivate { count: 3, out },
            });
            let played = r
                .finish()
                .play(engine, &inputs(&[1, 2], &[1, 2]), &mut silent);
            played.unwrap_err().to_string()
        })
    });
    assert!(
        errors[0].starts_with("the public input ends"),
        "{}",
        errors[0]
    );
    assert!(
        errors[1].starts_with("the private input ends"),
        "{}",
        errors[1]
    );
}

#[test]
fn texts_are_printed_when_their_steps_come() {
    let printed = emulated(|engine| {
        let mut r = Recorder::new();
        r.push(Step::Print("before".into())).unwrap();
        r.words(|out| Step::TakePublic { count: 1, out });
        r.push(Step::Print("after".into())).unwrap();
        let recording = r.finish();
        assert!(recording.prints());
        let mut printed = Vec::new();
        let mut print = |text: &str| {
            printed.push(text.to_owned());
            Ok(())
        };
        assert!(
            recording
                .play(engine, &inputs(&[], &[]), &mut print)
                .is_err()
        );
        let mut refuse = |_: &str| Err(EngineError::usage("no paper"));
        let error = recording.play(engine, &inputs(&[1], &[]), &mut refuse);
        assert_eq!(error.unwrap_err().to_string(), "no paper");
        printed
    });
    assert_eq!(printed, ["before"]);
}

#[test]
fn steps_without_operands_of_the_recording_are_refused() {
    emulated(|engine| {
        let mut r = Recorder::new();
        let op = Unary::Neg;
        let (fresh, out) = (r.value(), r.value());
        let unknown = ValueId(9);
        for a in [fresh, out, unknown] {
            assert!(r.push(Step::Unary { op, a, out }).is_err());
        }
        let constant = engine.clear(&[1, 2]);
        let constant = r.constant_value(engine, &constant).unwrap();
        let made = r.unary(op, constant);
        assert!(
            r.push(Step::Unary {
                op,
                a: made,
                out: made
            })
            .is_err()
        );
        let assign = |target, source, out| Step::Assign {
            target,
            start: 0,
            step: 1,
            source,
            out,
        };
        let out = r.value();
        assert!(r.push(assign(constant, made, out)).is_err());
        assert!(r.push(assign(made, made, out)).is_err());
        r.push(assign(made, constant, out)).unwrap();
        let again = r.value();
        assert!(r.push(assign(made, constant, again)).is_err());
        let numbers = NumbersId(0);
        let party = None;
        assert!(r.push(Step::Output { numbers, party }).is_err());
    });
}

#[test]
fn recordings_hold_no_secrets() {
    emulated(|engine| {
        let mut r = Recorder::new();
        let random = engine.random(1).unwrap();
        assert!(r.constant_value(engine, &random).is_err());
        assert!(r.constant_shares(vec![0, 1]).is_err());
        let clear = engine.clear(&[-1]);
        r.constant_value(engine, &clear).unwrap();
        let bits = engine.clear_bits(&[1, 0]);
        r.constant_value(engine, &bits).unwrap();
        r.constant_numbers(vec![-4]);
        r.constant_shares(vec![0; 2]).unwrap();
        let constants = r.finish().constants(engine).unwrap();
        let all = i128::from(u64::MAX);
        assert_eq!(constants, [vec![all], vec![1, 0], vec![-4], vec![0, 0]]);
    });
}

/// A constant is a copy: who gives up the original does not change the recording.
#[test]
fn constants_outlive_what_they_were_copied_from() {
    let found = emulated(|engine| {
        let mut r = Recorder::new();
        let original = engine.clear(&[1, 2]);
        let constant = r.constant_value(engine, &original).unwrap();
        let zero = engine.clear(&[0]);
        drop(engine.assign(original, 0, 1, &zero).unwrap());
        let a = constant;
        let numbers = r.words(|out| Step::Read { a, out });
        let party = None;
        r.push(Step::Output { numbers, party }).unwrap();
        let recording = r.finish();
        [0, 1].map(|_| {
            let played = recording.play(engine, &inputs(&[], &[]), &mut silent);
            shown(&played.unwrap())
        })
    });
    assert_eq!(found, [[[1, 2]], [[1, 2]]]);
}

/// Each place is freed once, by the step that uses it last or that makes it in vain.
#[test]
fn places_are_freed_where_they_are_used_last() {
    let recording = emulated(|engine| product_of_inputs(2, engine));
    let steps = &recording.steps;
    let mut freed = std::collections::HashMap::new();
    for (i, planned) in steps.iter().enumerate() {
        for place in &planned.frees {
            assert_eq!(freed.insert(*place, i), None);
        }
    }
    for (i, planned) in steps.iter().enumerate() {
        let step = &planned.step;
        let named = step.operands().into_iter().chain(step.results());
        for place in named.collect::<Vec<Place>>() {
            assert!(freed[&place] >= i);
        }
    }
}
