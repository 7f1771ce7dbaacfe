//! Wire traces: a hash of the messages of every operation under every protocol, compared with the checked-in file `traces.txt`.
//! A change on the wire is a changed line there. After an intended one, write the file anew:
//!
//! ```sh
//! WIRE_TRACES=write cargo test --release --locked -p keyquorum-mpc --test wire_traces
//! ```
#![cfg(target_os = "linux")]
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

#[allow(dead_code)] // What the tests of the crate use besides.
#[path = "../../src/intercept.rs"]
mod intercept;
mod operations;
mod randomness;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use keyquorum_math::DomainKind;
use keyquorum_mpc::{Descriptor, Engine, EngineError, EngineOptions, Openings, Session, protocols};
use keyquorum_net::{Transport, local_mesh};
use sha2::{Digest, Sha256};

use self::intercept::intercept;
use self::operations::{EXCHANGES, OPERATIONS, Operands, Operation};

type Result<T> = std::result::Result<T, EngineError>;

/// A domain of each form that elements have: bits, one word, two words, a short and a long prime.
const DOMAINS: [DomainKind; 5] = [
    DomainKind::Bits,
    DomainKind::Z2k(64),
    DomainKind::Z2k(72),
    DomainKind::Fq(65_537),
    DomainKind::Fq(1_152_921_504_606_584_833),
];

/// The command that writes the file anew.
const WRITE: &str =
    "WIRE_TRACES=write cargo test --release --locked -p keyquorum-mpc --test wire_traces";

const HEAD: &str = "\
# Wire traces: see docs/pages/formats.md. After an intended change of messages, write this file anew:
#   WIRE_TRACES=write cargo test --release --locked -p keyquorum-mpc --test wire_traces
# protocol domain openings parties threshold operation: rounds, messages and bytes of all parties, the first half of SHA-256
";

/// Who computes, and how.
#[derive(Clone, Copy)]
struct Setting {
    protocol: &'static Descriptor,
    domain: DomainKind,
    openings: Openings,
    parties: usize,
    threshold: usize,
}

impl Setting {
    /// Every protocol in every domain that it has, with every kind of openings.
    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for protocol in protocols() {
            let fits = |domain: &DomainKind| protocol.check_domain(*domain, 3, protocols()).is_ok();
            for domain in DOMAINS.into_iter().filter(fits) {
                for (parties, threshold) in committees(protocol) {
                    let mut setting = Self {
                        protocol,
                        domain,
                        openings: Openings::Direct,
                        parties,
                        threshold,
                    };
                    all.push(setting);
                    if protocol.king_openings {
                        setting.openings = Openings::King;
                        all.push(setting);
                    }
                }
            }
        }
        all
    }

    fn open(&self, session: &Session) -> Result<Box<dyn Engine>> {
        session.set_openings(self.openings)?;
        let options = EngineOptions {
            threshold: Some(self.threshold),
            ..EngineOptions::default()
        };
        session.engine(self.protocol.name, self.domain, &options)
    }

    /// The traces of opening an engine, of every operation, and of the test of stored keys.
    fn lines(self) -> Vec<String> {
        let mut lines = run(self.parties, move |party| {
            party.trace("engine", |session| self.open(session).map(|_| 0))?;
            OPERATIONS
                .iter()
                .try_for_each(|(name, operation)| self.operation(party, name, *operation))
        });
        if self.protocol.macs {
            lines.extend(self.stored_keys());
        }
        let name = self.protocol.name;
        let (domain, openings) = (self.domain.to_string(), self.openings.name());
        let (n, t) = (self.parties, self.threshold);
        let prefix = format!("{name} {domain} {openings} n={n} t={t}");
        lines
            .iter()
            .map(|line| format!("{prefix} {line}"))
            .collect()
    }

    fn operation(&self, party: &mut Party, name: &str, operation: Operation) -> Result<()> {
        party.reseed();
        let mut engine = self.open(&party.session)?;
        if !operation.fits(&*engine) {
            return Ok(());
        }
        let operands = Operands::share(&mut *engine)?;
        let before = engine.stats().rounds;
        party.trace(name, |_| {
            operation.run(&mut *engine, &operands)?;
            Ok(engine.stats().rounds - before)
        })
    }

    /// The test of the MAC keys in a later session than that in which shares were stored.
    fn stored_keys(self) -> Vec<String> {
        let stored: Arc<Mutex<BTreeMap<usize, Vec<u8>>>> = Arc::default();
        let key = |session: &Session| session.set_mac_key([session.party() as u8 + 1; 16], None);
        let earlier = Arc::clone(&stored);
        run(self.parties, move |party| {
            key(&party.session)?;
            let origin = self.open(&party.session)?.origin()?;
            let mut earlier = earlier.lock().unwrap();
            earlier.insert(party.session.party(), origin.to_vec());
            Ok(())
        });
        run(self.parties, move |party| {
            key(&party.session)?;
            let mut engine = self.open(&party.session)?;
            let origin = stored.lock().unwrap()[&party.session.party()].clone();
            party.trace("test_stored_keys", |_| {
                engine.check_origin(&origin)?;
                Ok(engine.stats().rounds)
            })
        })
    }
}

/// Parties and corruptions. Where the threshold can be chosen: also one below the largest, and too many subsets of parties for common seeds.
fn committees(protocol: &Descriptor) -> Vec<(usize, usize)> {
    let most = protocol.most_parties.unwrap_or(usize::MAX);
    let parties = 3.clamp(protocol.least_parties, most);
    let mut all = vec![(parties, (protocol.most_corruptions)(parties))];
    if protocol.chooses_threshold {
        all.extend([(5, 1), (10, 4)].into_iter().filter(|(n, _)| *n <= most));
    }
    all
}

/// Messages, each with its receiver, in the order in which they were sent.
type Messages = Vec<(usize, Vec<u8>)>;

/// What one party sent in one operation.
struct Part {
    name: String,
    rounds: u64,
    sent: Messages,
}

/// One party, on a thread of its own.
struct Party {
    session: Session,
    log: Arc<Mutex<Messages>>,
    parts: Vec<Part>,
}

impl Party {
    /// Draws the same randomness as at the start: so no operation depends on how much the ones before it took.
    fn reseed(&self) {
        randomness::seed([self.session.party() as u8 + 1; 16]);
    }

    /// Keeps the messages of one operation, which returns its rounds.
    fn trace(&mut self, name: &str, f: impl FnOnce(&Session) -> Result<u64>) -> Result<()> {
        self.log.lock().unwrap().clear();
        let rounds = f(&self.session)?;
        let sent = std::mem::take(&mut *self.log.lock().unwrap());
        let name = name.to_owned();
        self.parts.push(Part { name, rounds, sent });
        Ok(())
    }
}

/// Runs all parties in process; a line for every operation that they traced.
fn run(n: usize, body: impl Fn(&mut Party) -> Result<()> + Clone + Send + 'static) -> Vec<String> {
    let threads: Vec<_> = local_mesh(n, Duration::from_secs(60))
        .into_iter()
        .map(|transport| {
            let body = body.clone();
            thread::spawn(move || {
                randomness::seed([transport.party() as u8 + 1; 16]);
                let log = Arc::<Mutex<Messages>>::default();
                let sent = Arc::clone(&log);
                let keep = move |to: usize, message: &[u8]| {
                    sent.lock().unwrap().push((to, message.to_vec()));
                    Some(message.to_vec())
                };
                let session =
                    Session::new(intercept(Box::new(transport), keep, |_, _| ())).unwrap();
                let parts = Vec::new();
                let mut party = Party {
                    session,
                    log,
                    parts,
                };
                body(&mut party).unwrap();
                party.session.close();
                party.parts
            })
        })
        .collect();
    let mut parties: Vec<_> = threads
        .into_iter()
        .map(|party| party.join().unwrap().into_iter())
        .collect();
    std::iter::from_fn(|| parties.iter_mut().map(Iterator::next).collect())
        .map(|parts: Vec<Part>| line(&parts))
        .collect()
}

/// The line of one operation, from the messages of all parties, party after party.
fn line(parties: &[Part]) -> String {
    let (mut messages, mut bytes, mut hash) = (0, 0, Sha256::new());
    for (from, part) in parties.iter().enumerate() {
        for (to, message) in &part.sent {
            (messages, bytes) = (messages + 1, bytes + message.len());
            hash.update([from as u8, *to as u8]);
            hash.update((message.len() as u64).to_le_bytes());
            hash.update(message);
        }
    }
    let mut hex = String::new();
    for byte in hash.finalize().iter().take(16) {
        write!(hex, "{byte:02x}").unwrap();
    }
    let Part { name, rounds, .. } = &parties[0];
    assert!(
        parties
            .iter()
            .all(|part| (&part.name, part.rounds) == (name, *rounds))
    );
    format!("{name}: rounds={rounds} messages={messages} bytes={bytes} {hex}")
}

fn session_lines(n: usize) -> Vec<String> {
    let lines = run(n, |party| {
        let set_up = std::mem::take(&mut *party.log.lock().unwrap());
        party.parts.push(Part {
            name: "set-up".to_owned(),
            rounds: 0,
            sent: set_up,
        });
        EXCHANGES.iter().try_for_each(|(name, exchange)| {
            party.reseed();
            party.trace(name, |session| exchange(session).map(|()| 0))
        })
    });
    let named = lines
        .into_iter()
        .map(|line| format!("session n={n} {line}"));
    named.collect()
}

fn all_lines() -> Vec<String> {
    let sessions = [2, 3].into_iter().flat_map(session_lines);
    let engines = Setting::all().into_iter().flat_map(Setting::lines);
    sessions.chain(engines).collect()
}

#[test]
fn messages_are_those_of_the_checked_in_traces() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire_traces/traces.txt");
    let text = HEAD.to_owned() + &all_lines().join("\n") + "\n";
    if std::env::var("WIRE_TRACES").as_deref() == Ok("write") {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let checked_in = std::fs::read_to_string(&path).unwrap();
    let (old, new): (BTreeSet<_>, BTreeSet<_>) =
        (checked_in.lines().collect(), text.lines().collect());
    let gone = old.difference(&new).map(|line| format!("- {line}\n"));
    let come = new.difference(&old).map(|line| format!("+ {line}\n"));
    let changes: String = gone.chain(come).collect();
    assert!(
        changes.is_empty(),
        "messages differ from {}:\n{changes}If that is intended, write the file anew: {WRITE}",
        path.display()
    );
}
