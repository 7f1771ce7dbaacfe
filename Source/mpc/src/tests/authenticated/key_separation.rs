//! What the transcript of a failed check reveals of other secrets: nothing of the pads of oblivious transfer.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use keyquorum_math::{Domain, Z2k128};
use keyquorum_net::{Transport, local_mesh};
use keyquorum_ot::extension::Choices;
use keyquorum_ot::{LinearHash, LinkKey, MacKey, OtError, Security};
use sha2::{Digest, Sha256};

use super::input;
use crate::Handle;
use crate::adversary::{Adversary, Corruption, Site};
use crate::budget::COMBINATIONS;
use crate::engine::Engine;
use crate::error::{Check, EngineError};
use crate::intercept::intercept;
use crate::ops::Computation;
use crate::protocol::Channel;
use crate::protocol::authenticated::{MAC_BITS, binary};
use crate::protocol::testing::public;
use crate::session::links::Link;
use crate::session::{EngineOptions, Session};
use crate::tests::authenticated::adversaries::Role;

/// One exchange of the adversary with its peer: what it sent, what it received, without the tag of the round.
#[derive(Default)]
struct Transcript {
    sent: Vec<Vec<u8>>,
    received: Vec<Vec<u8>>,
}

/// The last bit of the first byte of an opened element, and of the lane that comes after it.
const POSITIONS: [usize; 2] = [0, (64 + MAC_BITS as usize) / 8];

/// A transport of party 1 that keeps all messages, and inverts a bit of an element and a bit of packed bits in the one message that has
/// both.
fn recorder(inner: Box<dyn Transport>, transcript: &Arc<Mutex<Transcript>>) -> Box<dyn Transport> {
    let [ours, theirs] = [Arc::clone(transcript), Arc::clone(transcript)];
    let sends = move |_, payload: &[u8]| {
        let mut message = payload.to_vec();
        ours.lock().unwrap().sent.push(payload[8..].to_vec());
        if payload.len() == 8 + POSITIONS[1] + 8 {
            POSITIONS.iter().for_each(|at| message[8 + at] ^= 1);
        }
        Some(message)
    };
    intercept(inner, sends, move |_, message| {
        let body = message.get(8..).unwrap_or_default().to_vec();
        theirs.lock().unwrap().received.push(body);
    })
}

/// What is left of a run: the transcript of party 1, and both ends of the link on which party 0 sends OTs to party 1.
struct Run {
    transcript: Transcript,
    links: Vec<Link>,
}

/// The key of a link as it was once made: the pads hang on the keys of MACs.
fn joined_key(macs: Option<MacKey>) -> Result<LinkKey, OtError> {
    let mut rest = [0u8; 16];
    getrandom::fill(&mut rest).unwrap();
    let all = macs
        .as_ref()
        .map_or(0, |m| u128::from(m.bits()) | u128::from(m.element()) << 64);
    let (mask, rest) = (KNOWN, u128::from_le_bytes(rest));
    Ok(LinkKey::with_pads(all | rest & !mask, macs))
}

/// The bits of Δ that were keys of MACs.
const KNOWN: u128 = ((1 << 48) - 1) | ((1 << 48) - 1) << 64;

/// Both parties share an element and bits, and open them in one round, where party 1 deviates; `link_key` makes the keys of links.
fn opening(link_key: fn(Option<MacKey>) -> Result<LinkKey, OtError>) -> Run {
    let transcript = Arc::new(Mutex::new(Transcript::default()));
    let threads: Vec<_> = local_mesh(2, Duration::from_secs(20))
        .into_iter()
        .enumerate()
        .map(|(party, transport)| {
            let inner: Box<dyn Transport> = Box::new(transport);
            let transport = if party == 0 {
                inner
            } else {
                recorder(inner, &transcript)
            };
            thread::spawn(move || {
                let session = Session::new(transport).unwrap();
                session.mac_links_with(link_key).unwrap();
                let mut engine = super::open(&session, "spdz2k", Role::Honest).unwrap();
                // A failed check ends the session, which forgets them.
                let all = session.mac_links_with(LinkKey::random).unwrap();
                let link = all.links[1 - party].clone().unwrap();
                let mut body = || {
                    let x = input(&mut *engine, 0, &[3])?;
                    let given = (party == 0).then(|| vec![1u8; 64]);
                    let bits = engine.input_bits(0, 64, given.as_deref())?;
                    engine.flush()?;
                    let (x, bits) = (engine.open(&x)?, engine.open(&bits)?);
                    let value = engine.read(&x)?;
                    engine.read_bits(&bits)?;
                    Ok::<_, crate::EngineError>(value)
                };
                (body(), link)
            })
        })
        .collect();
    let results: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
    assert!(results.iter().all(|(result, _)| result.is_err()));
    let links = results.into_iter().map(|(_, link)| link).collect();
    let transcript = std::mem::take(&mut *transcript.lock().unwrap());
    Run { transcript, links }
}

/// What the last four exchanges of a failed check reveal of the keys of party 0: α and the key of bits. A check commits to a toss, opens
/// it, commits to sums and opens them; what is of elements comes before what is of bits.
fn keys_of_the_victim(transcript: &Transcript) -> (u64, u64) {
    let last = |list: &[Vec<u8>], back: usize| list[list.len() - back].clone();
    let tosses = [last(&transcript.received, 3), last(&transcript.sent, 3)];
    let seed = |at: usize| -> [u8; 32] {
        let mut hash = Sha256::new_with_prefix(b"keyquorum-v1/toss");
        tosses
            .iter()
            .for_each(|t| hash.update(&t[at + 32..at + 64]));
        hash.finalize().into()
    };
    let sums = [last(&transcript.received, 1), last(&transcript.sent, 1)];
    let domain = Z2k128::new(64 + MAC_BITS).unwrap();
    // The victim holds y + ε for ε = 1 or −1: the sums of both are χ·(∓α).
    let mut factor = [0u128];
    domain.random(&mut public(&seed(0), 0), &mut factor);
    let words = sums
        .each_ref()
        .map(|s| u128::from_le_bytes(s[32..48].try_into().unwrap()));
    let total = domain.add(words[0], words[1]);
    // Inverse of an odd number modulo a power of two; even ones come half of the time and are tried again.
    let inverse = (0..7).fold(1u128, |x, _| {
        x.wrapping_mul(2u128.wrapping_sub(factor[0].wrapping_mul(x)))
    });
    let plus = domain.from_u128(total.wrapping_mul(inverse));
    let alpha = if plus >> 64 == 0 {
        plus
    } else {
        domain.neg(plus)
    };
    let hash = LinearHash::new(&seed(64)).lanes(&[1, 0]);
    let mut key = 0;
    for j in 0..binary::MAC_BITS {
        let row = |s: &[u8]| {
            u128::from_le_bytes(
                s[32 + 16 * COMBINATIONS + 32 + 16 * j..][..16]
                    .try_into()
                    .unwrap(),
            )
        };
        let sum = row(&sums[0]) ^ row(&sums[1]);
        assert!(sum == 0 || sum == hash);
        key |= u64::from(sum == hash) << j;
    }
    assert!(factor[0] & 1 == 0 || alpha >> 48 == 0);
    (if factor[0] & 1 == 1 { alpha as u64 } else { 0 }, key)
}

/// The bits of Δ that a search goes through, and those that it is given.
const HIDDEN: usize = 20;

/// Whether the adversary finds the pads that it did not choose on the link from party 0: from the keys that the transcript of the check
/// told, from as many other bits of Δ as are not searched, and from a search.
fn pads_are_found(run: &Run) -> Option<bool> {
    let (alpha, key) = keys_of_the_victim(&run.transcript);
    if alpha == 0 {
        return None;
    }
    let [victim, adversary] = [0, 1].map(|i| run.links[i].channel(9999, Security::Malicious));
    let Channel { mut sender, .. } = victim;
    let Channel { mut receiver, .. } = adversary;
    let (mut t, mut message) = (vec![0u128; 128], Vec::new());
    let tweak = receiver
        .tile(&mut [0], Choices::Given, &mut message, &mut t)
        .unwrap();
    let (mut zeros, mut ones) = (vec![0; 128], vec![0; 128]);
    sender
        .random(Choices::Given, &message, &mut zeros, &mut ones)
        .unwrap();
    let known = u128::from(key) | u128::from(alpha) << 64;
    let unknown: Vec<usize> = (0..128).filter(|i| KNOWN >> i & 1 == 0).collect();
    let (hidden, given) = unknown.split_at(HIDDEN);
    let given = given.iter().fold(0, |mask, i| mask | 1u128 << i);
    let base = known | sender.delta() & given;
    Some((0..1u64 << HIDDEN).any(|guess| {
        let bits = hidden.iter().enumerate();
        let delta = bits.fold(base, |d, (j, i)| d | u128::from(guess >> j & 1) << i);
        let mut pad = [0];
        let hashed = receiver.hash().hash(tweak, delta, &t[..1], &mut pad);
        hashed.is_ok() && pad[0] == ones[0]
    }))
}

/// Whether pads were found in up to three runs of which the transcript revealed the key of elements.
fn attack(link_key: fn(Option<MacKey>) -> Result<LinkKey, OtError>) -> Vec<bool> {
    // A factor that is odd comes half of the time.
    let runs = (0..40).filter_map(|_| pads_are_found(&opening(link_key)));
    let found: Vec<bool> = runs.take(3).collect();
    assert_eq!(found.len(), 3);
    found
}

#[test]
fn revealed_pads_blocked_a_failed_check_reveals_nothing_of_pads() {
    assert_eq!(attack(LinkKey::random), [false; 3]);
}

#[test]
fn revealed_pads_ablated_pads_under_keys_of_macs_are_found() {
    assert_eq!(attack(joined_key), [true; 3]);
}

/// Elements that are opened at once, and nothing else is.
const OPENED: usize = 5;

/// Party 2 of three opens an element to party 0 as another one, and keeps what it sees of the check.
struct Isolating(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    tosses: Vec<[u8; 32]>,
    sums: Vec<(usize, Vec<u8>)>,
}

impl Adversary for Isolating {
    fn deviates(&self, site: Site) -> bool {
        matches!(site, Site::Opening | Site::Toss | Site::CheckSum)
    }

    fn words(&self, site: Site, to: Option<usize>, words: &mut [u128]) {
        if site == Site::Opening && to == Some(0) && words.len() == OPENED {
            words[0] ^= 1;
        }
    }

    fn sees(&self, site: Site, from: usize, message: &[u8]) {
        let mut seen = self.0.lock().unwrap();
        match site {
            Site::Toss => seen.tosses.push(message.try_into().unwrap()),
            Site::CheckSum => seen.sums.push((from, message.to_vec())),
            _ => {}
        }
    }

    fn omits(&self, _check: Check) -> bool {
        true
    }
}

/// An honest party that shows its key to the test, and compares what was received or not.
struct Watched {
    key: Arc<Mutex<Vec<u8>>>,
    compares: bool,
}

impl Adversary for Watched {
    fn deviates(&self, site: Site) -> bool {
        site == Site::Key
    }

    fn sees(&self, site: Site, _from: usize, message: &[u8]) {
        if site == Site::Key {
            *self.key.lock().unwrap() = message.to_vec();
        }
    }

    fn omits(&self, check: Check) -> bool {
        check == Check::Broadcast && !self.compares
    }
}

/// What three parties of this corruption end with, each with its engine.
fn three_parties(
    corruption: impl Fn(usize) -> Corruption,
    body: fn(&mut dyn Engine) -> Result<(), EngineError>,
) -> Vec<Result<(), EngineError>> {
    let threads: Vec<_> = local_mesh(3, Duration::from_secs(20))
        .into_iter()
        .enumerate()
        .map(|(party, transport)| {
            let corruption = corruption(party);
            thread::spawn(move || {
                let session = Session::new(Box::new(transport)).unwrap();
                let domains = (
                    Z2k128::new(64).unwrap(),
                    Z2k128::new(64 + MAC_BITS).unwrap(),
                );
                let options = EngineOptions::default();
                let protocol = session
                    .protocol_with_macs(domains, 9, &options, corruption)
                    .unwrap();
                let mut engine = Computation::new(session.clone(), protocol, domains, 2, false);
                let result = body(&mut engine);
                if let Err(error) = &result {
                    session.abort(&error.to_string());
                }
                result
            })
        })
        .collect();
    threads.into_iter().map(|t| t.join().unwrap()).collect()
}

/// Opens elements, which are verified before they are read.
fn at_once(engine: &mut dyn Engine) -> Result<(), EngineError> {
    let x = input(engine, 0, &[3; OPENED])?;
    let x = engine.open(&x)?;
    engine.read(&x).map(drop)
}

/// Such elements at the begin of a deferral, when all that an engine opens at its start is verified.
fn elements_to_defer(engine: &mut dyn Engine) -> Result<Handle, EngineError> {
    let first = input(engine, 0, &[1])?;
    let first = engine.open(&first)?;
    engine.read(&first)?;
    let x = input(engine, 0, &[3; OPENED])?;
    engine.defer_checks(true)?;
    Ok(x)
}

/// The same elements in an opening whose check is deferred.
fn deferred(engine: &mut dyn Engine) -> Result<(), EngineError> {
    let x = elements_to_defer(engine)?;
    let x = engine.open_masked(&x, 64)?;
    engine.read(&x)?;
    engine.defer_checks(false)
}

/// The sum of the first elements of the messages with sums that came last, one of each party.
fn last_total(sums: &[(usize, Vec<u8>)]) -> u128 {
    let domain = Z2k128::new(64 + MAC_BITS).unwrap();
    let words = sums.iter().rev().take(3);
    words.fold(0, |total, (_, sum)| {
        domain.add(total, u128::from_le_bytes(sum[..16].try_into().unwrap()))
    })
}

/// Whether the adversary knows the key of party 0 in the end, the errors of the honest parties, and how many messages with sums of single elements it saw.
fn key_of_the_first_is_found(
    compares: bool,
    body: fn(&mut dyn Engine) -> Result<(), EngineError>,
) -> (bool, Vec<EngineError>, usize) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let key = Arc::new(Mutex::new(Vec::new()));
    let corruption = |party| -> Corruption {
        match party {
            0 => Arc::new(Watched {
                key: Arc::clone(&key),
                compares,
            }),
            1 => Arc::new(Watched {
                key: Arc::default(),
                compares,
            }),
            _ => Arc::new(Isolating(Arc::clone(&seen))),
        }
    };
    let results = three_parties(corruption, body);
    let errors: Vec<_> = results
        .into_iter()
        .take(2)
        .map(|r| r.unwrap_err())
        .collect();
    let domain = Z2k128::new(64 + MAC_BITS).unwrap();
    let mut truth = [0u128];
    domain.decode(&key.lock().unwrap(), &mut truth).unwrap();
    let seen = seen.lock().unwrap();
    let total = last_total(&seen.sums);
    // The sums of all are χ·(∓α) for the one value that was opened differently: which toss χ came from is tried. Without a toss χ is 1.
    let is = |factor: u128| {
        let product = domain.mul(factor, truth[0]);
        total == product || domain.neg(total) == product
    };
    let found = !seen.sums.is_empty()
        && (is(1)
            || seen.tosses.iter().any(|seed| {
                let mut factors = [0u128; 64];
                domain.random(&mut public(seed, 0), &mut factors);
                factors.iter().any(|f| is(*f))
            }));
    let single = seen
        .sums
        .iter()
        .filter(|(_, sums)| sums.len() == 16 * OPENED);
    (found, errors, single.count())
}

fn broadcast(e: &EngineError) -> bool {
    matches!(
        e,
        EngineError::Check {
            check: Check::Broadcast,
            ..
        }
    )
}

#[test]
fn revealed_pads_blocked_a_value_opened_to_one_party_does_not_single_out_its_key() {
    for _ in 0..3 {
        let (found, errors, _) = key_of_the_first_is_found(true, at_once);
        assert!(!found);
        assert!(errors.iter().any(broadcast), "{errors:?}");
    }
}

#[test]
fn revealed_pads_ablated_without_the_comparison_the_key_of_one_party_is_found() {
    // A party that stops early may cut off the sums of another one: then the adversary tries again.
    assert!((0..8).any(|_| key_of_the_first_is_found(false, at_once).0));
}

/// Where checks are deferred, the comparison is in the round of the commitments: nobody sees a sum.
#[test]
fn revealed_pads_blocked_nor_in_a_deferred_check() {
    for _ in 0..3 {
        let (found, errors, sums) = key_of_the_first_is_found(true, deferred);
        assert!(!found && sums == 0);
        assert!(errors.iter().any(broadcast), "{errors:?}");
    }
}

#[test]
fn revealed_pads_ablated_a_deferred_check_without_the_comparison() {
    assert!((0..8).any(|_| key_of_the_first_is_found(false, deferred).0));
}

/// An element in two openings of one deferred check, of which party 2 changes the first.
fn opened_twice(engine: &mut dyn Engine) -> Result<(), EngineError> {
    let x = elements_to_defer(engine)?;
    let x = [engine.open_masked(&x, 64)?, engine.open_masked(&x, 64)?];
    for one in &x {
        engine.read(one)?;
    }
    engine.defer_checks(false)
}

/// Party 2 changes its share of the first element in its first opening, alike towards all, and keeps what it sees of the check.
struct Shifting {
    changed: Mutex<Vec<Option<usize>>>,
    seen: Arc<Mutex<Seen>>,
    key: Arc<Mutex<Vec<u8>>>,
}

impl Adversary for Shifting {
    fn deviates(&self, site: Site) -> bool {
        matches!(site, Site::Opening | Site::CheckSum | Site::Key)
    }

    fn words(&self, site: Site, to: Option<usize>, words: &mut [u128]) {
        let mut changed = self.changed.lock().unwrap();
        if site == Site::Opening && words.len() == OPENED && !changed.contains(&to) {
            changed.push(to);
            words[0] ^= 1;
        }
    }

    fn sees(&self, site: Site, from: usize, message: &[u8]) {
        match site {
            Site::CheckSum => self
                .seen
                .lock()
                .unwrap()
                .sums
                .push((from, message.to_vec())),
            Site::Key => *self.key.lock().unwrap() = message.to_vec(),
            _ => {}
        }
    }

    fn omits(&self, _check: Check) -> bool {
        true
    }
}

/// What a check of `opened_twice` shows: of every party, the difference of its two values of the changed element, and its key.
fn differences_and_keys() -> Option<([u64; 3], [u64; 3])> {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let keys: [Arc<Mutex<Vec<u8>>>; 3] = std::array::from_fn(|_| Arc::default());
    let corruption = |party: usize| -> Corruption {
        let key = Arc::clone(&keys[party]);
        match party {
            2 => Arc::new(Shifting {
                changed: Mutex::default(),
                seen: Arc::clone(&seen),
                key,
            }),
            _ => Arc::new(Watched {
                key,
                compares: true,
            }),
        }
    };
    let results = three_parties(corruption, opened_twice);
    assert!(results.iter().take(2).all(Result::is_err));
    let domain = Z2k128::new(64 + MAC_BITS).unwrap();
    let alphas = keys.each_ref().map(|key| {
        let mut alpha = [0u128];
        domain.decode(&key.lock().unwrap(), &mut alpha).unwrap();
        alpha[0] as u64
    });
    let seen = seen.lock().unwrap();
    let single = seen
        .sums
        .iter()
        .filter(|(_, sums)| sums.len() == 32 * OPENED);
    let single: Vec<_> = single.collect();
    let mut differences = [0u64; 3];
    for (from, sums) in &single {
        let word = |at: usize| u64::from_le_bytes(sums[16 * at..][..8].try_into().unwrap());
        differences[*from] = word(0).wrapping_sub(word(OPENED));
    }
    (single.len() == 3).then_some((differences, alphas))
}

/// Without sharings of zero the difference of a party's two values would be its key, up to the sign. With them only the difference of the sums of all is known: the sum of all keys.
#[test]
fn a_deferred_check_shows_sums_and_no_key_of_one_party() {
    // An honest party that stops early may cut off the sums of the other one: then the adversary tries again.
    let (differences, alphas) = (0..64).find_map(|_| differences_and_keys()).unwrap();
    let is = |found: u64, key: u64| found == key || found.wrapping_neg() == key;
    let sum = |all: [u64; 3]| all.into_iter().fold(0, u64::wrapping_add);
    assert!(
        is(sum(differences), sum(alphas)),
        "the attack fits what is opened"
    );
    assert!(alphas.iter().all(|key| *key != 0));
    assert!(!(0..2).any(|party| is(differences[party], alphas[party])));
}
