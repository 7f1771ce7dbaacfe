//! Recorded programs against the same calls made one by one, on clear text and among three parties.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod inputs;
mod numbers;
mod refusals;
mod vectors;

use std::thread;
use std::time::Duration;

use keyquorum_math::DomainKind;
use keyquorum_net::local_mesh;

use super::step::Slot;
use super::*;
use crate::engine::{Engine, Operands, Operation};
use crate::error::{EngineError, Result};
use crate::graph::Handle;
use crate::session::{EngineOptions, Session};

const RING: DomainKind = DomainKind::Z2k(64);

fn parties<T: Send + 'static>(
    n: usize,
    protocol: &'static str,
    body: impl Fn(usize, &mut dyn Engine) -> T + Clone + Send + 'static,
) -> Vec<T> {
    parties_over(RING, n, protocol, body)
}

fn parties_over<T: Send + 'static>(
    domain: DomainKind,
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
                let mut engine = session.engine(protocol, domain, &options).unwrap();
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
    /// An operation with one result.
    fn one(
        &mut self,
        operation: Operation,
        target: Option<ValueId>,
        values: &[ValueId],
        numbers: &[NumbersId],
    ) -> ValueId {
        self.vector(|out| Step::Apply {
            operation,
            target,
            values: values.to_vec(),
            numbers: numbers.to_vec(),
            out: vec![out],
        })
    }
    fn unary(&mut self, operation: Operation, a: ValueId) -> ValueId {
        self.one(operation, None, &[a], &[])
    }
    fn binary(&mut self, operation: Operation, a: ValueId, b: ValueId) -> ValueId {
        self.one(operation, None, &[a, b], &[])
    }
    fn of_numbers(&mut self, operation: Operation, numbers: NumbersId) -> ValueId {
        self.one(operation, None, &[], &[numbers])
    }
    /// Opens a vector and writes it to the output.
    fn show(&mut self, a: ValueId);
    /// The same with bits.
    fn show_bits(&mut self, a: ValueId);
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
        let a = self.unary(Operation::Open, a);
        let numbers = self.words(|out| Step::Read { a, out });
        let party = None;
        self.push(Step::Output { numbers, party }).unwrap();
    }

    fn show_bits(&mut self, a: ValueId) {
        let a = self.unary(Operation::Open, a);
        let numbers = self.words(|out| Step::ReadBits { a, out });
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
        let operation = Operation::Input { owner, count };
        r.one(operation, None, &[], numbers.as_slice())
    });
    let three = engine.clear(&[3]);
    let three = r.constant_value(engine, &three).unwrap();
    let product = r.binary(Operation::Mul, x, y);
    let product = r.binary(Operation::Mul, three, product);
    let added = r.of_numbers(Operation::Clear, public);
    let sum = r.binary(Operation::Add, product, added);
    r.show(sum);
    let a = r.unary(Operation::OpenTo(2), y);
    r.push(Step::Flush).unwrap(); // all alike: only one reads
    if party == 2 {
        let numbers = r.words(|out| Step::Read { a, out });
        r.push(Step::OutputPersonal { numbers }).unwrap();
    }
    r.finish().unwrap()
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

/// The recorder takes the calls as the engine does them; each run has other numbers, and the same table and constants.
#[test]
fn a_recorder_takes_what_the_engine_does() {
    let found = emulated(|engine| {
        let mut r = Recorder::new();
        let public = r.words(|out| Step::TakePublic { count: 3, out });
        let mut call = |engine: &mut dyn Engine,
                        operation,
                        values: &[&Handle],
                        numbers: &[(&[i64], Option<NumbersId>)]| {
            let (numbers, slots): (Vec<&[i64]>, Vec<_>) = numbers.iter().copied().unzip();
            let operands = Operands {
                values,
                numbers: &numbers,
                target: None,
            };
            r.apply(engine, &operation, operands, &slots)
                .unwrap()
                .remove(0)
        };
        let three = call(engine, Operation::Clear, &[], &[(&[3], None)]);
        let x = call(engine, Operation::Clear, &[], &[(&[5, 6, 7], Some(public))]);
        let product = call(engine, Operation::Mul, &[&x, &three], &[]);
        let picked = call(engine, Operation::Gather, &[&product], &[(&[2, 0], None)]);
        let (words, numbers) = r.read(engine, &picked, |e, a| e.read(a)).unwrap();
        r.note(Step::Output {
            numbers,
            party: None,
        });
        let recording = r.finish().unwrap();
        let play = recording.play(engine, &inputs(&[1, 2, -3], &[]), &mut silent);
        (signed(words), shown(&play.unwrap()))
    });
    assert_eq!(found, (vec![21, 15], vec![vec![-9, 3]]));
}

#[test]
fn what_cannot_be_repeated_ends_a_recording() {
    let reasons = emulated(|engine| {
        let secret = engine.random(2).unwrap();
        let mut recorded = |calls: &dyn Fn(&mut Recorder, &mut dyn Engine)| {
            let mut r = Recorder::new();
            calls(&mut r, engine);
            let why = r.failure().map(str::to_owned);
            assert_eq!(r.finish().is_some(), why.is_none());
            why
        };
        let values: &[&Handle] = &[&secret];
        let [elsewhere, private, refused, many] = [
            recorded(&|r, e| drop(r.apply(e, &Operation::Neg, Operands::values(values), &[]))),
            recorded(&|r, e| {
                let operation = Operation::Input { owner: 0, count: 1 };
                let operands = Operands {
                    numbers: &[&[1]],
                    ..Operands::default()
                };
                drop(r.apply(e, &operation, operands, &[None]));
            }),
            recorded(&|r, _| {
                r.note(Step::Output {
                    numbers: NumbersId(4),
                    party: None,
                })
            }),
            recorded(&|r, e| {
                for _ in 0..=MOST_STEPS {
                    drop(r.apply(e, &Operation::Random(1), Operands::default(), &[]));
                }
            }),
        ];
        [elsewhere, private, refused, many].map(Option::unwrap)
    });
    for (reason, part) in reasons.iter().zip([
        "Neg takes a vector that came from elsewhere",
        "takes private words that were no input",
        "a step was refused",
        "more than 8192 calls",
    ]) {
        assert!(reason.contains(part), "{reason}");
    }
}
