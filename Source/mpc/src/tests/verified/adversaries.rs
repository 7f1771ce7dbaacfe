//! Every deviation of a corrupted party is caught by the check that is there for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::{Base, Outcome, PRIME, Program, Setting};
use crate::adversary::{Adversary, Corruption, Site};
use crate::error::Check;
use crate::long_tests;

/// Changes the elements of a site once, the `skipped + 1`-th time it is asked.
pub(super) struct Once {
    pub site: Site,
    /// Whether it changes only what it sends, and keeps the right value.
    pub sent: bool,
    skipped: AtomicUsize,
    change: Change,
    before: Mutex<Vec<u128>>,
}

/// What it does to the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// One of them changes by a bit.
    Flip,
    /// All of them are others.
    Random,
    /// They are those of the time before, or zeros.
    Replay,
    /// The last one changes.
    Last,
}

impl Change {
    const ALL: [Self; 4] = [Self::Flip, Self::Last, Self::Random, Self::Replay];
}

impl Once {
    pub fn new(site: Site, sent: bool, skipped: usize, change: Change) -> Self {
        Self {
            site,
            sent,
            skipped: AtomicUsize::new(skipped),
            change,
            before: Mutex::default(),
        }
    }

    /// Whether it is time.
    fn now(&self) -> bool {
        let left = self.skipped.load(Ordering::Relaxed);
        self.skipped.store(left.wrapping_sub(1), Ordering::Relaxed);
        left == 0
    }
}

impl Adversary for Once {
    fn deviates(&self, site: Site) -> bool {
        site == self.site
    }

    fn words(&self, _: Site, to: Option<usize>, words: &mut [u128]) {
        // All other messages are changed in one place alone.
        let relevant = self.site != Site::Summand || to.is_some() == self.sent;
        if !relevant || words.is_empty() {
            return;
        }
        let before = std::mem::replace(&mut *self.before.lock().unwrap(), words.to_vec());
        if !self.now() {
            return;
        }
        let (true_words, last) = (words.to_vec(), words.len() - 1);
        match self.change {
            Change::Flip => {}
            Change::Last => words[last] ^= 1,
            Change::Random => {
                for (i, word) in words.iter_mut().enumerate() {
                    *word = (*word >> 1) ^ (i as u128 * 0x1234_5679 + 1);
                }
            }
            Change::Replay => {
                // Shorter than an element, as lanes of bits may be longer than one.
                let before = before.into_iter().map(|word| word & ((1 << 59) - 1));
                let before = before.chain(std::iter::repeat(0));
                words
                    .iter_mut()
                    .zip(before)
                    .for_each(|(word, before)| *word = before);
            }
        }
        // Something changes in any case.
        if words == true_words {
            words[0] ^= 1;
        }
    }

    fn bytes(&self, _: Site, _: Option<usize>, message: &mut Vec<u8>) {
        if message.is_empty() || !self.now() {
            return;
        }
        let true_message = message.clone();
        match self.change {
            Change::Flip => {}
            Change::Last => *message.last_mut().unwrap() ^= 1,
            Change::Random => message
                .iter_mut()
                .for_each(|byte| *byte = byte.wrapping_mul(5) ^ 7),
            Change::Replay => message.fill(0),
        }
        if *message == true_message {
            message[0] ^= 1;
        }
    }

    /// It goes on whatever it finds, so that the honest parties' reasons are their own.
    fn omits(&self, _: Check) -> bool {
        true
    }
}

/// How often an honest party comes by a site in a program.
fn times(base: Base, program: Program, party: usize, site: Site, sent: bool) -> usize {
    const MANY: usize = usize::MAX / 2;
    let adversary = Arc::new(Once::new(site, sent, MANY, Change::Flip));
    let mut setting = Setting::honest(PRIME).over(base);
    let corruption: Corruption = adversary.clone();
    setting.corrupt = Some((party, corruption));
    for result in setting.run(move |engine| program.run(engine)) {
        assert_eq!(result.unwrap(), program.wanted());
    }
    MANY - adversary.skipped.load(Ordering::Relaxed)
}

#[derive(Clone, Copy, Debug)]
struct Case {
    base: Base,
    program: Program,
    party: usize,
    site: Site,
    sent: bool,
    time: usize,
    change: Change,
    checks: &'static [Check],
}

impl Case {
    fn all() -> Vec<Self> {
        use Check::{Broadcast, Commitment, Openings, Products, SubsetSeeds};
        let mut cases = Vec::new();
        for base in Base::ALL {
            let parties = [0, 1, base.parties() - 1];
            let runs = base
                .programs()
                .flat_map(|program| parties.map(|party| (program, party)));
            for (program, party) in runs {
                // A summand that is sent but not kept makes later openings differ, so that either check may find it.
                let sites: &[(Site, bool, &[Check])] = match base {
                    Base::Replicated | Base::Ring => &[
                        (Site::Summand, false, &[Products]),
                        (Site::Summand, true, &[Products, Openings]),
                    ],
                    // Of four parties three are honest, whose shares may belong to no value.
                    _ => &[
                        (Site::Summand, false, &[Products]),
                        (Site::Dealt, true, &[Products, Openings]),
                    ],
                };
                let openings: &[(Site, bool, &[Check])] = &[
                    (Site::OpenedSummand, true, &[Openings]),
                    (Site::Witness, true, &[Openings]),
                ];
                // The same in every program.
                let coins: &[(Site, bool, &[Check])] = &[
                    // Ends of chains of coins, with hashes of seeds of subsets; what came as ends; links.
                    (Site::Commitment, true, &[Broadcast, SubsetSeeds]),
                    (Site::Transcript, true, &[Broadcast]),
                    (Site::Reveal, true, &[Commitment]),
                ];
                let coins = if program == Program::Products {
                    coins
                } else {
                    &[]
                };
                for (site, sent, checks) in sites.iter().chain(openings).chain(coins) {
                    let times = times(base, program, party, *site, *sent);
                    // Whatever is dealt as an input is an input, if all honest shares are of one polynomial.
                    let inputs = match base {
                        Base::Shamir(n, t) if *site == Site::Dealt && n == 2 * t + 1 => {
                            usize::from(program.has_input_of(party)) * (n - 1 - t)
                        }
                        _ => 0,
                    };
                    for time in inputs..times {
                        let changes = Change::ALL.into_iter().enumerate();
                        let changes = changes.filter(|(i, _)| long_tests() || i % 2 == time % 2);
                        cases.extend(changes.map(|(_, change)| Self {
                            base,
                            program,
                            party,
                            site: *site,
                            sent: *sent,
                            time,
                            change,
                            checks,
                        }));
                    }
                }
            }
        }
        cases
    }

    /// What is wrong, if the deviation is not caught.
    fn failure(&self) -> Option<String> {
        let program = self.program;
        let adversary = Once::new(self.site, self.sent, self.time, self.change);
        let setting = Setting::corrupted(self.party, adversary).over(self.base);
        let results = setting.run(move |engine| program.run(engine));
        let outcome = Outcome::new(results, self.party);
        (!outcome.is_caught(self.checks, &program.wanted())).then(|| {
            format!(
                "{self:?}: {:?} {:?} {:?}",
                outcome.checks, outcome.errors, outcome.outputs
            )
        })
    }
}

/// Every message of every program, of every party, with every other change (with `KEYQUORUM_LONG` every change): nobody gets a wrong value, and the
/// reason is the one that is expected.
#[test]
fn deviations_blocked_by_their_checks() {
    let cases = Case::all();
    let count = cases.len();
    let (rest, failures) = (Mutex::new(cases), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(case) = rest.lock().unwrap().pop() else {
                        return;
                    };
                    if let Some(failure) = case.failure() {
                        failures.lock().unwrap().push(failure);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    let first = failures.iter().take(20).collect::<Vec<_>>();
    assert!(
        first.is_empty(),
        "{} of {count}: {first:#?}",
        failures.len()
    );
    assert!(count >= 1000, "{count}");
    println!("adversaries: cases={count} wrong_outputs=0");
}

/// What a corrupted party inputs in a conversion is a product, which is verified.
#[test]
fn wrong_inputs_of_conversions_are_caught() {
    // Random bits are verified together with products of other lengths.
    let programs = [Program::Conversion, Program::RandomBits];
    let cases = [Base::Replicated, Base::Ring].map(|base| programs.map(|program| (base, program)));
    for (base, program) in cases.concat() {
        for party in 0..3 {
            // Party 1 inputs its bits before it inputs the product.
            let skipped = usize::from(party == 1 && program == Program::Conversion);
            for change in Change::ALL {
                let adversary = Once::new(Site::Input, false, skipped, change);
                let setting = Setting::corrupted(party, adversary).over(base);
                let results = setting.run(move |engine| program.run(engine));
                let outcome = Outcome::new(results, party);
                assert!(
                    outcome.is_caught(&[Check::Products], &program.wanted()),
                    "{base:?} {program:?} {party} {change:?}: {:?} {:?}",
                    outcome.errors,
                    outcome.outputs
                );
            }
        }
    }
}

/// Whatever a corrupted party sends as its input is the sharing of some input: both honest parties go on with the same.
#[test]
fn every_message_of_an_input_is_an_input() {
    for change in Change::ALL {
        let setting = Setting::corrupted(1, Once::new(Site::Input, false, 0, change));
        let results = setting.run(|engine| Program::Opening.run(engine));
        let outcome = Outcome::new(results, 1);
        assert!(outcome.errors.is_empty(), "{:?}", outcome.errors);
        assert_eq!(outcome.outputs[0], outcome.outputs[1]);
        assert_ne!(outcome.outputs[0], Program::Opening.wanted());
    }
}
