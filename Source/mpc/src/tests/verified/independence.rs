//! A corrupted party that withholds its input until it has seen the input of another party, which is opened: it gets stuck. Without the round before the opening it copies it.

use std::time::Duration;

use keyquorum_math::{Domain, Zq};
use keyquorum_net::{Counters, Length, NetError, Transport};

use super::coins::{CORRUPT, add_to, element, round};
use super::{Outcome, PRIME, Setting, input, opened};
use crate::adversary::{Adversary, Site};
use crate::engine::Engine;
use crate::error::{Check, Result};
use crate::protocol::testing::Ablated;

/// Whose input is copied: it does not wait for the input of the corrupted party, and sends what opens its own.
const VICTIM: usize = 1;
/// Who waits for the input of the corrupted party.
const WAITS: usize = 2;

const SECRET: u64 = 1234;
const OWN: u64 = 7;

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

/// When the messages of the corrupted party are sent.
#[derive(Clone, Copy)]
struct Schedule {
    /// The round of its input.
    input: u64,
    /// The round in which the victim's input is opened.
    opening: u64,
    /// The round in which its own input is opened, and which element of its message to the victim is the summand that both others hold.
    own: (u64, usize),
}

/// The channels of the corrupted party.
struct Copies {
    inner: Box<dyn Transport>,
    schedule: Schedule,
    sends: usize,
    /// Messages that wait, with their receivers.
    held: Vec<(usize, Vec<u8>)>,
    waiting: bool,
    expected: [usize; 3],
    /// The victim's message of the opening, taken first.
    early: Option<Vec<u8>>,
    /// The summand of the victim's input that it sent.
    summand: u64,
    change: u64,
}

impl Copies {
    fn new(inner: Box<dyn Transport>, schedule: Schedule) -> Self {
        Self {
            inner,
            schedule,
            sends: 0,
            held: Vec::new(),
            waiting: true,
            expected: [0; 3],
            early: None,
            summand: 0,
            change: 0,
        }
    }

    fn changed(&self, to: usize, mut message: Vec<u8>) -> Vec<u8> {
        let field = Zq::new(PRIME).unwrap();
        let (at, Schedule { input, own, .. }) = (round(&message), self.schedule);
        if to == WAITS && at == input {
            add_to(&field, &mut message, 0, self.change);
        }
        if to == VICTIM && at == own.0 {
            add_to(&field, &mut message, own.1, self.change);
        }
        message
    }
}

impl Transport for Copies {
    fn party(&self) -> usize {
        self.inner.party()
    }

    fn parties(&self) -> usize {
        self.inner.parties()
    }

    fn send(&mut self, to: usize, payload: &[u8]) -> std::result::Result<(), NetError> {
        self.sends += 1;
        // Seeds in common with the two others come first.
        if self.sends <= 2 {
            return self.inner.send(to, payload);
        }
        // Everything from the input on waits, but for what the victim needs before it opens.
        let at = round(payload);
        let waits = at >= self.schedule.input && (to == WAITS || at >= self.schedule.opening);
        if self.waiting && waits {
            self.held.push((to, payload.to_vec()));
            return Ok(());
        }
        let message = self.changed(to, payload.to_vec());
        self.inner.send(to, &message)
    }

    fn expect(&mut self, from: usize, bytes: usize) -> std::result::Result<(), NetError> {
        self.expected[from] = bytes;
        self.inner.expect(from, bytes)
    }

    fn take(&mut self, from: usize, len: Length) -> std::result::Result<Vec<u8>, NetError> {
        let latest = self.held.last().map(|(_, message)| round(message));
        if self.waiting && from == WAITS && latest == Some(self.schedule.opening) {
            let due = Length::Exactly(self.expected[VICTIM]);
            let opened = self.inner.take(VICTIM, due)?;
            let field = Zq::new(PRIME).unwrap();
            let secret = field.add(self.summand, element(&opened, 0));
            self.change = field.sub(secret, OWN);
            self.early = Some(opened);
            self.waiting = false;
            for (to, message) in std::mem::take(&mut self.held) {
                let message = self.changed(to, message);
                self.inner.send(to, &message)?;
            }
        }
        if from == VICTIM
            && let Some(message) = self.early.take()
        {
            return Ok(message);
        }
        let message = self.inner.take(from, len)?;
        // The seed in common has 32 bytes, and no tag.
        if from == VICTIM && message.len() == 16 && round(&message) == 0 {
            self.summand = element(&message, 0);
        }
        Ok(message)
    }

    fn settle(&mut self) -> std::result::Result<(), NetError> {
        self.inner.settle()
    }

    fn counters(&self) -> &Counters {
        self.inner.counters()
    }

    fn close(&mut self) {
        self.inner.close();
    }

    fn abort(&mut self, reason: &str) {
        self.inner.abort(reason);
    }
}

/// Both inputs in one round, then both are opened.
fn inputs_before_openings(engine: &mut dyn Engine) -> Result<Vec<u64>> {
    let x = input(engine, VICTIM, 1, SECRET as i64)?;
    let y = input(engine, CORRUPT, 1, OWN as i64)?;
    engine.flush()?;
    let (x, y) = (engine.open(&x)?, engine.open(&y)?);
    Ok([engine.read(&x)?, engine.read(&y)?].concat())
}

/// The victim's input is there when the corrupted party gives its own; then it is opened.
fn input_and_opening_at_once(engine: &mut dyn Engine) -> Result<Vec<u64>> {
    let x = input(engine, VICTIM, 1, SECRET as i64)?;
    engine.flush()?;
    let y = input(engine, CORRUPT, 1, OWN as i64)?;
    let x = engine.open(&x)?;
    engine.flush()?;
    let y = opened(engine, &y)?;
    Ok([engine.read(&x)?, y].concat())
}

type Program = fn(&mut dyn Engine) -> Result<Vec<u64>>;

fn attacked(ablated: Ablated, schedule: Schedule, program: Program) -> Outcome<Vec<u64>> {
    let mut setting = Setting::corrupted(CORRUPT, GoesOn);
    setting.ablated = ablated;
    let wrap = move |party: usize, inner: Box<dyn Transport>| -> Box<dyn Transport> {
        match party {
            CORRUPT => Box::new(Copies::new(inner, schedule)),
            _ => inner,
        }
    };
    let results = setting.run_over(wrap, Duration::from_millis(500), program);
    Outcome::new(results, CORRUPT)
}

fn assert_stuck(outcome: &Outcome<Vec<u64>>) {
    assert!(outcome.outputs.is_empty() && outcome.checks.is_empty());
    assert_eq!(outcome.errors.len(), 2, "{:?}", outcome.errors);
}

fn assert_copied(outcome: &Outcome<Vec<u64>>) {
    assert!(outcome.errors.is_empty(), "{:?}", outcome.errors);
    let copied = vec![SECRET, SECRET];
    assert_eq!(outcome.outputs, [copied.clone(), copied]);
}

/// Inputs in round 0, the round in which all wait in 1, openings in 2.
#[test]
fn late_inputs_blocked_before_an_opening() {
    let schedule = Schedule {
        input: 0,
        opening: 2,
        own: (2, 1),
    };
    assert_stuck(&attacked(
        Ablated::default(),
        schedule,
        inputs_before_openings,
    ));
}

#[test]
fn late_inputs_ablated_openings_right_after_inputs() {
    let ablated = Ablated {
        opens_at_once: true,
        ..Ablated::default()
    };
    let schedule = Schedule {
        input: 0,
        opening: 1,
        own: (1, 1),
    };
    assert_copied(&attacked(ablated, schedule, inputs_before_openings));
}

/// The first input in round 0, the second in 1, all wait in 2, the opening in 3.
#[test]
fn late_inputs_blocked_in_the_round_of_an_opening() {
    let schedule = Schedule {
        input: 1,
        opening: 3,
        own: (4, 0),
    };
    assert_stuck(&attacked(
        Ablated::default(),
        schedule,
        input_and_opening_at_once,
    ));
}

/// All wait in round 1, the opening comes with the second input in 2.
#[test]
fn late_inputs_ablated_openings_with_inputs() {
    let ablated = Ablated {
        opens_with_inputs: true,
        ..Ablated::default()
    };
    let schedule = Schedule {
        input: 2,
        opening: 2,
        own: (4, 0),
    };
    assert_copied(&attacked(ablated, schedule, input_and_opening_at_once));
}

/// The same programs without an adversary, with the rounds that the schedules above say.
#[test]
fn the_round_before_an_opening_is_counted() {
    let programs: [(Program, u64); 2] =
        [(inputs_before_openings, 3), (input_and_opening_at_once, 5)];
    for (program, rounds) in programs {
        let results = Setting::honest(PRIME).run(move |engine| {
            let values = program(engine)?;
            Ok((values, engine.stats().rounds))
        });
        for result in results {
            assert_eq!(result.unwrap(), (vec![SECRET, OWN], rounds));
        }
    }
}
