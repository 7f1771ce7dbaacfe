//! Named adversaries: the last party changes its messages on their way, or deviates in the protocol. Honest parties abort, or open true values.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use keyquorum_math::Prg;
use keyquorum_net::{NetError, Transport, local_mesh};
use keyquorum_ot::{LinkKey, MacKey, Parameters, Security};

use super::tampering::{Change, To, tampering};
use crate::adversary::{Adversary, Site};
use crate::error::{EngineError, Result};
use crate::protocol::authenticated::binary::{AuthenticatedBits, PARTS};
use crate::protocol::testing::add_bits;
use crate::session::links::establish;
use crate::session::{EngineOptions, Session};
use crate::standalone::Standalone;

const X: [u64; 4] = [0x0123_4567_89ab_cdef, u64::MAX, 0, 77];
const Y: [u64; 4] = [0xfeed_face_dead_beef, 0x5555_5555_5555_5555, 9, 78];
const W: [u64; 4] = [5, 6, 7, 8];

/// Rounds before these where there are more than two parties: the check of the keys.
const KEYS: u64 = 11;

/// The round among three parties that is this one among two: a check compares commitments in a round more, before it opens its sums.
fn among_three(round: u64) -> u64 {
    let compared = [16, 24].iter().filter(|opening| round >= **opening);
    KEYS + round + compared.count() as u64
}

/// Rounds: 0–2 bits, 3–6 inputs and a random value, 7–18 triples, 19 AND, 20 opening, 21–24 check.
fn scenario(
    p: &mut Standalone,
    before_opening: fn(&mut AuthenticatedBits, &mut Vec<Vec<u64>>),
) -> Result<Vec<u64>> {
    let (me, n) = p.bits.party();
    let x = p.bits.input(0, 4, (me == 0).then(|| X.to_vec()))?;
    let y = p.bits.input(0, 4, (me == 0).then(|| Y.to_vec()))?;
    let w = p.bits.input(n - 1, 4, (me == n - 1).then(|| W.to_vec()))?;
    let r = p.bits.random(4);
    let (x, y, w, r) = (p.run(x)?, p.run(y)?, p.run(w)?, p.run(r)?);
    let and = p.bits.and(x, y)?;
    let mut z = p.run(and)?;
    for other in [w.duplicate(), w, r.duplicate(), r] {
        add_bits(&mut z, &other)?;
    }
    before_opening(&mut p.bits, &mut z.parts);
    let open = p.bits.open(z);
    let opened = p.run(open)?;
    let check = p.bits.check();
    p.run(check)?;
    Ok(opened)
}

fn want() -> Vec<u64> {
    X.iter().zip(Y).map(|(x, y)| x & y).collect()
}

/// Runs the scenario; `set_up` makes the last party. It neither closes nor aborts when it fails, so that the errors of the
/// others are their own. Results of the others.
fn attack(
    n: usize,
    wrap: impl Fn(Box<dyn Transport>) -> Box<dyn Transport>,
    set_up: fn(&Session) -> Result<Standalone>,
    before_opening: fn(&mut AuthenticatedBits, &mut Vec<Vec<u64>>),
) -> Vec<Result<Vec<u64>>> {
    let threads: Vec<_> = local_mesh(
        n,
        Duration::from_secs(if cfg!(debug_assertions) { 40 } else { 20 }),
    )
    .into_iter()
    .enumerate()
    .map(|(party, transport)| {
        let corrupt = party == n - 1;
        let transport: Box<dyn Transport> = Box::new(transport);
        let transport = if corrupt { wrap(transport) } else { transport };
        std::thread::spawn(move || {
            let session = Session::new(transport)?;
            let made = if corrupt {
                set_up(&session)
            } else {
                Standalone::new(&session)
            };
            let result = made.and_then(|mut p| {
                let result = scenario(&mut p, if corrupt { before_opening } else { |_, _| () });
                if corrupt {
                    std::mem::forget(p);
                }
                result
            });
            match &result {
                _ if corrupt => std::mem::forget(session),
                Err(error) => session.abort(&error.to_string()),
                Ok(_) => {}
            }
            result
        })
    })
    .collect();
    let mut results: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
    results.pop();
    results
}

/// Nothing wrong was opened; if `error` is given, somebody noticed by himself, in these words. Where the MAC check fails
/// or a commitment does not open among three parties, the comparison of what they got may fail first: the corrupted party compares what it should have sent.
fn judge(name: &str, results: &[Result<Vec<u64>>], error: Option<&str>) {
    for result in results {
        match result {
            Ok(opened) => assert_eq!(*opened, want(), "{name}: a wrong value was opened"),
            Err(e) => assert!(!e.to_string().contains('\n'), "{name}: {e}"),
        }
    }
    if let Some(text) = error {
        let noticed = results.iter().any(|r| match r {
            Err(EngineError::Network { source, .. }) => {
                !matches!(source, NetError::PeerAborted { .. }) && source.to_string().contains(text)
            }
            Err(e) => {
                let text_of = e.to_string();
                let either = [MAC, COMMITTED].contains(&text) && results.len() > 1;
                text_of.contains(text) || either && text_of.contains(ALIKE)
            }
            Ok(_) => false,
        });
        let errors: Vec<_> = results
            .iter()
            .map(|r| r.as_ref().map_err(ToString::to_string))
            .collect();
        assert!(noticed, "{name}: {errors:?}");
    }
}

const OT: &str = "the consistency check of the OT extension failed";
const COMMITTED: &str = "opened another value than it had committed to";
const MAC: &str = "the MAC check of opened bits failed";
const ALIKE: &str = "did not get the same messages";
const CASES: [(&str, u64, Change, &str); 27] = [
    ("corrections of random bits", 0, Change::Invert(0, 1728), OT),
    (
        "corrections of input bits",
        0,
        Change::Invert(1728, 3456),
        OT,
    ),
    (
        "commitment to the seed of the OT check",
        0,
        Change::Flip(8 * 3456 + 3),
        COMMITTED,
    ),
    ("opening of that seed, nonce", 1, Change::Flip(7), COMMITTED),
    (
        "opening of that seed, value",
        1,
        Change::Flip(8 * 40),
        COMMITTED,
    ),
    ("hash of choices in the OT proof", 2, Change::Flip(5), OT),
    (
        "hash of a row in the OT proof",
        2,
        Change::Flip(8 * 16 * 20),
        OT,
    ),
    ("proof of the input bits", 2, Change::Flip(8 * 700), OT),
    (
        "corrections of the first operand",
        7,
        Change::Invert(0, 9152),
        OT,
    ),
    (
        "corrections of the second operand",
        7,
        Change::Invert(9152, 11840),
        OT,
    ),
    (
        "commitment to the seed of the triples' OT check",
        7,
        Change::Flip(8 * 11840),
        COMMITTED,
    ),
    (
        "proof of the first operand",
        9,
        Change::Flip(8 * 16 * 128),
        OT,
    ),
    (
        "proof of the second operand",
        9,
        Change::Flip(8 * (16 * 177 + 300)),
        OT,
    ),
    (
        "corrections of products, bits",
        10,
        Change::Invert(0, 192),
        MAC,
    ),
    (
        "corrections of products, MACs",
        10,
        Change::Invert(2304, 2496),
        MAC,
    ),
    (
        "commitment to the seed of the triples' check",
        10,
        Change::Flip(8 * 9408 + 9),
        COMMITTED,
    ),
    ("opening of that seed", 11, Change::Flip(300), COMMITTED),
    ("hash of the triples", 12, Change::Flip(99), MAC),
    (
        "opening of the MAC check's seed",
        14,
        Change::Flip(8 * 63),
        COMMITTED,
    ),
    (
        "commitment to the MAC check",
        15,
        Change::Flip(0),
        COMMITTED,
    ),
    (
        "opening of the MAC check",
        16,
        Change::Flip(8 * 60),
        COMMITTED,
    ),
    (
        "opening of the buckets' seed",
        17,
        Change::Flip(8 * 50),
        COMMITTED,
    ),
    ("differences in the buckets", 18, Change::Flip(17), MAC),
    ("masked operand of an AND", 19, Change::Flip(64), MAC),
    (
        "masked other operand of an AND",
        19,
        Change::Flip(8 * 32 + 1),
        MAC,
    ),
    ("opened bit", 20, Change::Flip(200), MAC),
    ("last MAC check", 24, Change::Flip(8 * 799), COMMITTED),
];

#[test]
fn changed_messages_are_noticed() {
    for n in [2, 3] {
        for (name, round, change, error) in CASES {
            let name = format!("{name}, {n} parties");
            let round = if n > 2 { among_three(round) } else { round };
            let results = attack(
                n,
                tampering(round, To::All, change),
                Standalone::new,
                |_, _| (),
            );
            judge(&name, &results, Some(error));
        }
    }
}

/// Messages that differ between two honest parties fail the same checks, or the comparison of received messages.
#[test]
fn equivocation_is_noticed() {
    let cases = [
        ("input", among_three(5), Change::Flip(3), ALIKE),
        (
            "corrections of products",
            among_three(10),
            Change::Invert(0, 192),
            MAC,
        ),
        ("hash of the triples", among_three(12), Change::Flip(99), ""),
        (
            "differences in the buckets",
            among_three(18),
            Change::Flip(17),
            "",
        ),
        (
            "masked operand of an AND",
            among_three(19),
            Change::Flip(64),
            "",
        ),
        ("opened bit", among_three(20), Change::Flip(200), ""),
        ("comparison", among_three(24) - 1, Change::Flip(3), ALIKE),
    ];
    for (name, round, change, error) in cases {
        let results = attack(
            3,
            tampering(round, To::First, change),
            Standalone::new,
            |_, _| (),
        );
        judge(name, &results, Some(error));
        assert!(results.iter().any(Result::is_err), "{name}");
    }
}

/// One flipped bit of a correction is noticed if the key or the other's bit meets it: never is anything wrong opened.
#[test]
fn single_flips_change_nothing_or_are_noticed() {
    let mut noticed = 0;
    for i in 0..24 {
        let (round, bit) = match i % 3 {
            0 => (0, 37 * i),
            1 => (7, 211 * i),
            _ => (10, 2111 * i),
        };
        let results = attack(
            2,
            tampering(round, To::All, Change::Flip(bit)),
            Standalone::new,
            |_, _| (),
        );
        judge(&format!("bit {bit} of round {round}"), &results, None);
        noticed += usize::from(results[0].is_err());
    }
    // 15/16 or 1/2 each: all or none pass with probability below 2^-60 and 2^-8; at least four are noticed.
    assert!(noticed >= 4, "{noticed}");
}

#[test]
fn wrong_lengths_replays_and_silence_are_errors() {
    for (round, change, error) in [
        (0, Change::Shorten, "bytes"),
        (7, Change::Lengthen, "bytes"),
        (10, Change::Shorten, "bytes"),
        (20, Change::Lengthen, "bytes"),
        (19, Change::Replay, "bytes"),
        (15, Change::Drop, ""),
    ] {
        let name = format!("{change:?} in round {round}");
        let results = attack(
            2,
            tampering(round, To::All, change),
            Standalone::new,
            |_, _| (),
        );
        judge(&name, &results, Some(error));
        assert!(results[0].is_err());
    }
}

#[test]
fn wrong_shares_are_noticed() {
    type Deviations = fn(&mut AuthenticatedBits, &mut Vec<Vec<u64>>);
    let deviations: [(&str, Deviations); 4] = [
        ("another share of the bits", |_, parts| {
            parts[0][0] ^= 1 << 9
        }),
        ("a share shifted under its own key", |bits, parts| {
            parts[0][1] ^= 1;
            let key = *bits.key();
            for (part, key) in parts.iter_mut().skip(1).zip(key) {
                part[1] ^= 1 & key;
            }
        }),
        ("another share of a MAC", |_, parts| parts[40][3] ^= 1 << 63),
        ("another key", |bits, _| bits.key()[3] ^= u64::MAX),
    ];
    for n in [2, 3] {
        for (name, deviation) in deviations {
            let results = attack(n, |t| t, Standalone::new, deviation);
            judge(name, &results, Some(MAC));
        }
    }
}

/// Deviations in the protocol, towards party 0 only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deviation {
    /// The OT receiver inverts its first choice.
    Choices,
    /// The second operands of leaky triples are inverted, with their MACs under our own key.
    Operand,
}

struct Deviating {
    deviation: Deviation,
    /// Our own key, each bit spread over a lane.
    key: Mutex<Vec<u64>>,
}

impl Adversary for Deviating {
    fn deviates(&self, site: Site) -> bool {
        match self.deviation {
            Deviation::Choices => site == Site::BitChoices,
            Deviation::Operand => matches!(site, Site::BitOperand | Site::BitKey),
        }
    }

    fn sees(&self, site: Site, _from: usize, message: &[u8]) {
        if site == Site::BitKey {
            let lanes = message.as_chunks().0.iter().copied();
            *self.key.lock().unwrap() = lanes.map(u64::from_le_bytes).collect();
        }
    }

    fn lanes(&self, _site: Site, to: Option<usize>, lanes: &mut [u64]) {
        match self.deviation {
            _ if to != Some(0) => {}
            Deviation::Choices => lanes[0] ^= 1,
            Deviation::Operand => {
                let (bits, macs) = lanes.split_at_mut(lanes.len() / PARTS);
                for (mac, key) in macs.chunks_mut(bits.len()).zip(&*self.key.lock().unwrap()) {
                    mac.iter_mut().for_each(|word| *word ^= key);
                }
                bits.iter_mut().for_each(|word| *word = !*word);
            }
        }
    }
}

fn deviating(session: &Session, deviation: Deviation) -> Result<Standalone> {
    let adversary = Arc::new(Deviating {
        deviation,
        key: Mutex::default(),
    });
    let bits = session.authenticated_bits(&EngineOptions::default(), adversary)?;
    Ok(Standalone::with(session, bits))
}

#[test]
fn other_choices_towards_another_peer_are_noticed() {
    let set_up = |session: &Session| deviating(session, Deviation::Choices);
    let results = attack(3, |t| t, set_up, |_, _| ());
    // The checks of products and of the received messages follow each other.
    judge("choices", &results, Some(""));
    assert!(results.iter().all(Result::is_err));
}

#[test]
fn other_operands_towards_another_peer_are_noticed() {
    let set_up = |session: &Session| deviating(session, Deviation::Operand);
    judge("operand", &attack(3, |t| t, set_up, |_, _| ()), Some(MAC));
}

#[test]
fn other_keys_towards_another_peer_are_noticed() {
    let set_up = |session: &Session| {
        // The peers set up as always; we draw a key for each.
        session.finish_checks()?;
        let parameters = Parameters::default().with_macs();
        let key = || LinkKey::random(Some(MacKey::random()?));
        let links = establish(session, "bits", parameters, key)?;
        let channels: Vec<_> = links
            .iter()
            .map(|link| link.as_ref().map(|l| l.channel(1, Security::Malicious)))
            .collect();
        let first = channels[0].as_ref().unwrap().sender.key();
        let first = first.macs().unwrap().bits();
        let key = std::array::from_fn(|j| (first >> j & 1).wrapping_neg());
        let pairs = session.all_pair_prgs(1, &EngineOptions::default())?;
        let private = Prg::from_os().unwrap();
        let bits = AuthenticatedBits::with_key(session.party(), channels, pairs, private, key);
        Ok(Standalone::with(session, bits))
    };
    judge("key", &attack(3, |t| t, set_up, |_, _| ()), Some(MAC));
}

/// Without the check the wrong value would be used: the check is what stops it.
#[test]
fn the_check_is_needed() {
    let results = super::run_with(
        2,
        |_, transport| transport,
        |p| {
            let deviation = p.bits.party().0 == 1;
            let task = p.bits.input(0, 4, (!deviation).then(|| X.to_vec()))?;
            let mut x = p.run(task)?;
            if deviation {
                x.parts[0][0] ^= 1;
            }
            let open = p.bits.open(x);
            let opened = p.run(open)?;
            let check = p.bits.check();
            Ok((opened, p.run(check).is_err()))
        },
    );
    let (opened, failed) = results.into_iter().next().unwrap().unwrap();
    assert_eq!(opened[0], X[0] ^ 1);
    assert!(failed);
}
