//! Messages of a corrupted party that are changed on the wire: nobody gets a wrong value, and every change is noticed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use keyquorum_net::Transport;

use super::{Base, Outcome, PRIME, Program, Setting};
use crate::error::Result;
use crate::intercept::intercept;

/// Bytes of the tag of a message.
const TAG: usize = 8;

/// What happens to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// It is not sent.
    Drop,
    /// A bit of its first element changes.
    Flip,
    /// All of it changes.
    Random,
    /// The payload of the message before to this peer takes its place, cut or extended to its length.
    Replay,
    /// The whole message before is sent again.
    ReplayWhole,
    /// A byte is missing.
    Shorten,
    /// A byte more.
    Lengthen,
    /// The payload of a message to the other peer takes its place.
    Equivocate,
}

const CHANGES: [Change; 8] = [
    Change::Drop,
    Change::Flip,
    Change::Random,
    Change::Replay,
    Change::ReplayWhole,
    Change::Shorten,
    Change::Lengthen,
    Change::Equivocate,
];

/// The payload of another message under the tag and at the length of this one.
fn replaced(message: &mut [u8], by: &[u8]) {
    let payload = by.get(TAG..).unwrap_or_default();
    let bytes = payload.iter().chain(std::iter::repeat(&0));
    for (byte, new) in message[TAG..].iter_mut().zip(bytes) {
        *byte = *new;
    }
}

/// A transport that changes one message, the `index`-th after the set-up; `seen` counts them, and notes whether it differs at all.
fn changing(
    inner: Box<dyn Transport>,
    index: usize,
    change: Change,
    (seen, changed): (Arc<AtomicUsize>, Arc<AtomicUsize>),
) -> Box<dyn Transport> {
    let mut last: Vec<Vec<u8>> = vec![Vec::new(); inner.parties()];
    // Messages of the set-up of a session: a seed to each peer.
    let set_up = inner.parties() - 1;
    let mut before = 0;
    let sends = move |to: usize, payload: &[u8]| {
        let previous = std::mem::replace(&mut last[to], payload.to_vec());
        before += 1;
        if before <= set_up {
            return Some(payload.to_vec());
        }
        let mut message = payload.to_vec();
        if seen.fetch_add(1, Ordering::Relaxed) == index {
            match change {
                Change::Drop => {
                    changed.store(1, Ordering::Relaxed);
                    return None;
                }
                Change::Flip => message[TAG] ^= 1,
                Change::Random => {
                    for (i, byte) in message[TAG..].iter_mut().enumerate() {
                        // The high byte of an element stays, so that elements are canonical.
                        *byte ^= if i % 8 == 7 { 0 } else { 0x55 };
                    }
                }
                Change::Replay => replaced(&mut message, &previous),
                Change::ReplayWhole => message = previous,
                Change::Shorten => drop(message.pop()),
                Change::Lengthen => message.push(0),
                Change::Equivocate => {
                    let other = last
                        .iter()
                        .enumerate()
                        .find(|(i, m)| *i != to && !m.is_empty());
                    let other = other.map(|(_, message)| message.clone());
                    replaced(&mut message, &other.unwrap_or_default());
                }
            }
            changed.store(usize::from(message != payload), Ordering::Relaxed);
        }
        Some(message)
    };
    intercept(inner, sends, |_, _| ())
}

/// A program of parties of which one changes a message.
#[derive(Clone, Copy, Debug)]
struct Case {
    base: Base,
    program: Program,
    party: usize,
    index: usize,
    change: Change,
}

impl Case {
    /// What the parties get, the messages that the corrupted one sent after the set-up, and whether one of them was changed.
    fn run(self) -> (Vec<Result<Vec<u64>>>, usize, bool) {
        let Self {
            base,
            program,
            party,
            index,
            change,
        } = self;
        let (seen, changed) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let counters = (Arc::clone(&seen), Arc::clone(&changed));
        let wrap = move |me: usize, inner: Box<dyn Transport>| match me == party {
            true => changing(inner, index, change, counters.clone()),
            false => inner,
        };
        let patience = match change {
            Change::Drop if index < usize::MAX => Duration::from_millis(400),
            _ => Duration::from_secs(20),
        };
        let setting = Setting::honest(PRIME).over(base);
        let results = setting.run_over(wrap, patience, move |engine| program.run(engine));
        let changed = changed.load(Ordering::Relaxed) > 0;
        (results, seen.load(Ordering::Relaxed), changed)
    }

    /// Every message of every party in these programs, but for those with which a party gives its input: there, whatever is sent is an input.
    fn all() -> Vec<Self> {
        let programs = [
            Program::OpeningToOne,
            Program::Products,
            Program::Ands,
            Program::Conversion,
            Program::RandomBits,
        ];
        let mut cases = Vec::new();
        for base in [
            Base::Replicated,
            Base::Ring,
            Base::Shamir(3, 1),
            Base::Shamir(4, 1),
        ] {
            for program in base.programs().filter(|program| programs.contains(program)) {
                for party in 0..base.parties() {
                    let honest = Self {
                        base,
                        program,
                        party,
                        index: usize::MAX,
                        change: Change::Drop,
                    };
                    let (results, messages, _) = honest.run();
                    for result in results {
                        assert_eq!(result.unwrap(), program.wanted());
                    }
                    let inputs = match base {
                        Base::Shamir(n, t) if n == 2 * t + 1 => n - 1 - t,
                        Base::Shamir(..) => 0,
                        _ => 1,
                    };
                    let first = if program.has_input_of(party) {
                        inputs
                    } else {
                        0
                    };
                    for index in first..messages {
                        let case = |change| Self {
                            index,
                            change,
                            ..honest
                        };
                        cases.extend(CHANGES.map(case));
                    }
                }
            }
        }
        cases
    }
}

#[test]
fn every_changed_message_is_noticed() {
    let cases = Case::all();
    let all = cases.len();
    let (rest, failures) = (Mutex::new(cases), Mutex::new(Vec::new()));
    let unchanged = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some(case) = rest.lock().unwrap().pop() else {
                        return;
                    };
                    let (results, _, changed) = case.run();
                    if !changed {
                        unchanged.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    let outcome = Outcome::new(results, case.party);
                    let wanted = case.program.wanted();
                    let wrong = outcome.outputs.iter().any(|out| *out != wanted);
                    if wrong || outcome.errors.is_empty() {
                        failures.lock().unwrap().push(format!(
                            "{case:?}: wrong output: {wrong}, {:?}",
                            outcome.errors
                        ));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    let first = failures.iter().take(20).collect::<Vec<_>>();
    assert!(first.is_empty(), "{} of {all}: {first:#?}", failures.len());
    let unchanged = unchanged.into_inner();
    assert!(all - unchanged >= 600, "{all} {unchanged}");
    println!("messages: cases={all} unchanged={unchanged} wrong_outputs=0");
}
