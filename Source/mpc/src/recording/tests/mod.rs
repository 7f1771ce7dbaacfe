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
use crate::engine::Engine;
use crate::error::{EngineError, Result};
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
    fn unary(&mut self, op: Unary, a: ValueId) -> ValueId {
        self.vector(|out| Step::Unary { op, a, out })
    }
    fn binary(&mut self, op: Binary, a: ValueId, b: ValueId) -> ValueId {
        self.vector(|out| Step::Binary { op, a, b, out })
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
        let a = self.unary(Unary::Open, a);
        let numbers = self.words(|out| Step::Read { a, out });
        let party = None;
        self.push(Step::Output { numbers, party }).unwrap();
    }

    fn show_bits(&mut self, a: ValueId) {
        let a = self.unary(Unary::Open, a);
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
