//! Many elements with MACs for few messages.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use keyquorum_math::{Domain, Prg, Zq};
use keyquorum_ot::trees;

use super::caught::{Outcome, Program, attack};
use super::{PRIME, input, made, run, run_as};
use crate::adversary::{Adversary, Corruption, Omitting, Site};
use crate::engine::Engine;
use crate::error::Check;
use crate::protocol::testing::public;
use crate::tests::authenticated::adversaries::{Deviation, Role};

/// Inputs of one party, and random elements, which have their MACs.
#[test]
fn many_inputs_and_random_elements_have_macs() {
    // Modulo 2^k all are made one by one.
    for (protocol, parties) in [("mascot", 2), ("spdz2k", 2), ("mascot", 3)] {
        let results = run(parties, protocol, None, move |engine| {
            let values: Vec<i64> = (0..9000).map(|i| 7 * i).collect();
            let x = input(engine, 1, &values)?;
            let opened = engine.open(&x)?;
            let found = engine.read(&opened)?;
            assert!(found.iter().zip(&values).all(|(x, y)| *x as i64 == *y));
            let random = engine.random(9000)?;
            let opened = engine.open(&random)?;
            let random = engine.read(&opened)?;
            let again = engine.random(9000)?;
            let opened = engine.open(&again)?;
            let again = engine.read(&opened)?;
            assert!(made(engine, "input elements") >= 9000);
            Ok([random, again].concat())
        });
        let all: Vec<_> = results.into_iter().map(Result::unwrap).collect();
        assert!(all.iter().all(|elements| *elements == all[0]));
        let mut elements = all[0].clone();
        elements.sort_unstable();
        elements.dedup();
        // Two of 18,000 elements are equal with probability 2^-31.
        assert_eq!(elements.len(), 18_000, "{protocol}");
        let half = 1u64 << (if protocol == "spdz2k" { 63 } else { 59 });
        // 9000 expected, a standard deviation of 67: six of them.
        let large = all[0].iter().filter(|x| **x >= half).count();
        assert!(large.abs_diff(9000) < 403, "{large}");
    }
}

/// Bytes of inputs, beside those of the same number of inputs that are multiplied by the keys one by one: 96 bytes, and 8 for what is under the mask.
#[test]
fn inputs_cost_a_few_bytes() {
    let sent = |n: i64| {
        let results = run(2, "mascot", None, move |engine| {
            let values: Vec<i64> = (0..n).collect();
            let x = input(engine, 0, &values)?;
            let total = engine.sum(&x, values.len())?;
            let opened = engine.open(&total)?;
            engine.read(&opened)?;
            Ok(engine.stats().bytes_sent)
        });
        let total: u64 = results.into_iter().map(Result::unwrap).sum();
        total as f64 / n as f64
    };
    let (few, many) = (sent(3900), sent(1 << 16));
    assert!((104.0..108.0).contains(&few), "{few}");
    assert!(many < 30.0, "{many}");
}

/// Blocks of a batch of the first shape, and log2 of their length.
const BLOCKS: usize = 1024;
const LEVELS: usize = 3;

/// The corrupted party changes a bit of one of its messages of trees.
struct Changed {
    /// The number of the message. The second batch begins with elements of the first.
    message: usize,
    byte: usize,
    sent: AtomicUsize,
}

impl Changed {
    /// The sum of the left children at this level of the first tree. If the path goes to the left there, the other party does not use it.
    fn sum(message: usize, level: usize) -> Arc<Self> {
        Self::byte(message, trees::message_bytes(BLOCKS, level))
    }

    /// What makes the MAC of the first noise value fit.
    fn last(message: usize) -> Arc<Self> {
        Self::byte(message, trees::message_bytes(BLOCKS, LEVELS))
    }

    fn byte(message: usize, byte: usize) -> Arc<Self> {
        Arc::new(Self {
            message,
            byte,
            sent: AtomicUsize::new(0),
        })
    }
}

impl Adversary for Changed {
    fn deviates(&self, site: Site) -> bool {
        site == Site::Trees
    }

    fn bytes(&self, _site: Site, _to: Option<usize>, message: &mut Vec<u8>) {
        if self.sent.fetch_add(1, Ordering::Relaxed) == self.message {
            message[self.byte] ^= 1;
        }
    }

    fn omits(&self, _check: Check) -> bool {
        true
    }
}

/// Many inputs of party 0, where party 1 is corrupted so.
fn played(corruption: Corruption, others: &Role) -> Outcome {
    let role = |party| match party {
        1 => Role::Plays(Arc::clone(&corruption)),
        _ => others.clone(),
    };
    let body = |engine: &mut dyn Engine| {
        let values: Vec<i64> = (0..9000).collect();
        let x = input(engine, 0, &values)?;
        // The elements of the first block of the first batch stay in the pool.
        let total = engine.sum(&x, values.len())?;
        let opened = engine.open(&total)?;
        engine.read(&opened)
    };
    Outcome::new(run_as(2, "mascot", role, |_, t| t, body), 1)
}

const TOTAL: u64 = 9000 * 8999 / 2;

/// One bit of a place costs a bet, at the root, at the leaves, and in a batch that begins with elements of another: one of two is caught, and none of 24 or all with
/// probability 2^-23. If it is not caught, nothing is wrong.
#[test]
fn a_bet_on_a_bit_of_a_place_is_caught_half_of_the_time() {
    for (message, level) in [(0, 0), (0, LEVELS - 1), (1, 1)] {
        let caught = (0..24).filter(|_| {
            let outcome = played(Changed::sum(message, level), &Role::Honest);
            let lucky = outcome.errors.is_empty() && outcome.outputs == [[TOTAL]];
            assert!(lucky || outcome.is_caught(Some(Check::SubsetSums)));
            !lucky
        });
        let caught = caught.count();
        assert!((1..24).contains(&caught), "{message} {level}: {caught}");
    }
}

/// The MAC of one noise value, at a place that the party does not know: it cannot repair it, and is caught. Without checks it goes unnoticed, where the element is not used.
#[test]
fn without_checks_a_wrong_mac_of_a_noise_value_goes_unnoticed() {
    for message in [0, 1] {
        for _ in 0..4 {
            let outcome = played(Changed::last(message), &Role::Honest);
            assert!(outcome.is_caught(Some(Check::SubsetSums)));
        }
    }
    let careless = Omitting([Check::SubsetSums, Check::ElementMacs].into());
    let outcome = played(Changed::last(0), &Role::Plays(Arc::new(careless)));
    assert!(outcome.errors.is_empty(), "{:?}", outcome.errors);
}

/// What an honest party does: its batches, in their order.
#[derive(Default)]
struct Watched(Mutex<Vec<(Site, Vec<u64>)>>);

impl Watched {
    /// What was seen there, batch after batch.
    fn all(&self, site: Site) -> Vec<Vec<u64>> {
        let seen = self.0.lock().unwrap();
        let there = seen.iter().filter(|(s, _)| *s == site);
        there.map(|(_, words)| words.clone()).collect()
    }
}

impl Adversary for Watched {
    fn deviates(&self, site: Site) -> bool {
        matches!(
            site,
            Site::Shift | Site::Places | Site::Base | Site::Pseudorandom
        )
    }

    fn words(&self, site: Site, _to: Option<usize>, words: &mut [u128]) {
        let words = words.iter().map(|word| *word as u64).collect();
        self.0.lock().unwrap().push((site, words));
    }

    fn sees(&self, site: Site, _from: usize, message: &[u8]) {
        if self.deviates(site) {
            let (words, _) = message.as_chunks::<8>();
            let words = words.iter().map(|word| u64::from_le_bytes(*word));
            self.0.lock().unwrap().push((site, words.collect()));
        }
    }
}

/// log2 of the length of the secret, blocks, log2 of their length.
fn sizes(outputs: usize) -> (usize, usize, usize) {
    match outputs {
        0x2000 => (11, 1024, 3),
        0x8000 => (13, 1024, 5),
        _ => (14, 2048, 6),
    }
}

/// x − A·s, for A as the text has it: ten entries in a row, with coefficients that are words of another stream below the prime and not zero.
fn noise(base: &[u64], x: &[u64]) -> Vec<u64> {
    let field = Zq::new(PRIME).unwrap();
    let (bits, ..) = sizes(x.len());
    let [mut stream, mut factors] =
        [0, 1 << 32].map(|kind| Prg::new(*b"3141592653589793", kind | bits as u64));
    let mut factor = || {
        let mut word = [0];
        while !(1..PRIME).contains(&word[0]) {
            factors.fill_u64(&mut word);
            word[0] &= PRIME.next_power_of_two() - 1;
        }
        word[0]
    };
    let row = |x: &u64| {
        let mut bytes = [0; 24];
        stream.fill(&mut bytes);
        let places = bytes.as_chunks::<2>().0[..10].iter();
        let places = places.map(|place| usize::from(u16::from_le_bytes(*place)) % (1 << bits));
        places.fold(*x, |x, place| {
            field.sub(x, field.mul(factor(), base[place]))
        })
    };
    x.iter().map(row).collect()
}

/// The place in each block that the choices say: the path takes the other side in each level.
fn places(choices: &[u64], blocks: usize) -> Vec<usize> {
    let path = |block: usize| {
        let side = choices.iter().skip(block).step_by(blocks);
        side.fold(0, |place, choice| place << 1 | (*choice ^ 1) as usize)
    };
    (0..blocks).map(path).collect()
}

/// Whether all are different, and none is zero: 2^-34 for 10,000 elements that are uniform.
fn all_differ(values: &[u64]) -> bool {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.len() == values.len() && sorted[0] != 0
}

/// A batch is A·s and in each block one noise value, at the end of the path. Places are uniform and have nothing to do with those of other blocks and batches; elements that a batch takes from the
/// pool are moved to fresh noise values.
#[test]
fn there_is_noise_at_one_secret_place_of_each_block() {
    let watched = Arc::new(Watched::default());
    let role = |party| match party {
        0 => Role::Plays(Arc::clone(&watched) as Corruption),
        _ => Role::Honest,
    };
    let body = |engine: &mut dyn Engine| {
        let values = vec![1; 30_000];
        let x = input(engine, 0, &values)?;
        let total = engine.sum(&x, values.len())?;
        let opened = engine.open(&total)?;
        engine.read(&opened)
    };
    for result in run_as(2, "mascot", role, |_, t| t, body) {
        assert_eq!(result.unwrap(), [30_000]);
    }
    let (made, bases) = (watched.all(Site::Pseudorandom), watched.all(Site::Base));
    let (choices, shifts) = (watched.all(Site::Places), watched.all(Site::Shift));
    let outputs: Vec<_> = made.iter().map(Vec::len).collect();
    assert_eq!(outputs, [1 << 13, 1 << 13, 1 << 15]);
    assert_eq!(
        [bases.len(), choices.len(), shifts.len()],
        [3, 3, 3],
        "one of each for a batch"
    );
    let field = Zq::new(PRIME).unwrap();
    let (mut pool, mut values, mut coarse) = (Vec::new(), Vec::new(), Vec::new());
    for (((x, base), choices), shift) in made.iter().zip(&bases).zip(&choices).zip(&shifts) {
        let (bits, blocks, levels) = sizes(x.len());
        let places = places(choices, blocks);
        let (secret, fresh) = base.split_at(1 << bits);
        assert!(all_differ(secret) && all_differ(shift));
        let noise = noise(base, x);
        for ((block, place), value) in noise.chunks(1 << levels).zip(&places).zip(fresh) {
            let found: Vec<_> = (block.iter().enumerate())
                .filter(|(_, entry)| **entry != 0)
                .collect();
            assert_eq!(found, [(*place, value)]);
        }
        if !pool.is_empty() {
            let taken: Vec<u64> = pool.split_off(pool.len() - base.len());
            let (same, moved) = taken.split_at(1 << bits);
            assert_eq!(same, secret);
            let wanted = moved.iter().zip(shift).map(|(x, by)| field.add(*x, *by));
            assert!(wanted.eq(fresh.iter().copied()));
        }
        pool.extend(x);
        values.extend(fresh);
        // An eighth of the block.
        coarse.push(Vec::from_iter(places.iter().map(|p| p >> (levels - 3))));
    }
    assert!(all_differ(&values));
    // χ² of 7 degrees of freedom is above 73 with 2^-40.
    for places in &coarse {
        let mean = places.len() as f64 / 8.0;
        let count = |which| places.iter().filter(|place| **place == which).count() as f64;
        let chi: f64 = (0..8).map(|w| (count(w) - mean).powi(2) / mean).sum();
        assert!(chi < 73.0, "{chi}");
    }
    // Of 1024 pairs 128 are the same, with a deviation of 10.6: eight of them.
    let same = |one: &[usize], other: &[usize]| {
        let same = one.iter().zip(other).filter(|(a, b)| a == b).count();
        assert!(same < 213, "{same}");
    };
    for (i, one) in coarse.iter().enumerate() {
        same(one, &one[1..]);
        coarse[..i].iter().for_each(|other| same(one, other));
    }
}

/// A peer that adds one to the MAC of the first noise value, and takes it off where it guesses the place. The test tells it the place, as if it had guessed it.
struct Repairing {
    honest: Arc<Watched>,
    /// What its guess is away from the place.
    off: usize,
    sent: AtomicUsize,
    checked: AtomicUsize,
    /// Elements that were opened since the last check of all MACs: the subset sums come last.
    opened: AtomicUsize,
    toss: Mutex<[u8; 32]>,
    /// The errors of the subset sums, which the check of all MACs combines.
    errors: Mutex<Vec<u64>>,
}

impl Adversary for Repairing {
    fn deviates(&self, site: Site) -> bool {
        matches!(
            site,
            Site::Trees | Site::Toss | Site::Opening | Site::SubsetSums | Site::CheckSum
        )
    }

    fn bytes(&self, _site: Site, _to: Option<usize>, message: &mut Vec<u8>) {
        if self.sent.fetch_add(1, Ordering::Relaxed) == 0 {
            let start = trees::message_bytes(BLOCKS, LEVELS);
            let word = &mut message[start..start + 8];
            let last = u64::from_le_bytes(*word.first_chunk().unwrap());
            word.copy_from_slice(&((last + 1) % PRIME).to_le_bytes());
        }
    }

    fn words(&self, site: Site, to: Option<usize>, words: &mut [u128]) {
        let field = Zq::new(PRIME).unwrap();
        let toss = *self.toss.lock().unwrap();
        let take_off = |word: &mut u128, error: u64| {
            *word = u128::from(field.sub(field.from_u128(*word), error));
        };
        if site == Site::Opening && to == Some(0) {
            self.opened.fetch_add(words.len(), Ordering::Relaxed);
        }
        if site == Site::CheckSum {
            let mut factors = vec![0; self.opened.swap(0, Ordering::Relaxed)];
            let mut stream = public(&toss, 0);
            let errors = std::mem::take(&mut *self.errors.lock().unwrap());
            let first = factors.len() - errors.len();
            for word in words.iter_mut() {
                field.random(&mut stream, &mut factors);
                take_off(word, field.dot(&factors[first..], &errors));
            }
        }
        if site == Site::SubsetSums && self.checked.fetch_add(1, Ordering::Relaxed) == 0 {
            let choices = &self.honest.all(Site::Places)[0];
            let guess = places(choices, BLOCKS)[0] ^ self.off;
            let mut subsets = vec![0u64; BLOCKS << LEVELS];
            public(&toss, 0).fill_u64(&mut subsets);
            let errors: Vec<u64> = (0..words.len()).map(|j| subsets[guess] >> j & 1).collect();
            for (word, error) in words.iter_mut().zip(&errors) {
                take_off(word, *error);
            }
            *self.errors.lock().unwrap() = errors;
        }
    }

    fn sees(&self, site: Site, _from: usize, message: &[u8]) {
        if site == Site::Toss {
            *self.toss.lock().unwrap() = message.try_into().unwrap();
        }
    }

    fn omits(&self, _check: Check) -> bool {
        true
    }
}

/// Who repairs what it made wrong passes if it has guessed the place, and by no other guess; what comes out is right.
#[test]
fn a_bet_passes_with_the_right_repair_alone() {
    let repaired = |off| {
        let honest = Arc::new(Watched::default());
        let peer = Repairing {
            honest: Arc::clone(&honest),
            off,
            sent: AtomicUsize::new(0),
            checked: AtomicUsize::new(0),
            opened: AtomicUsize::new(0),
            toss: Mutex::default(),
            errors: Mutex::default(),
        };
        played(Arc::new(peer), &Role::Plays(honest))
    };
    let outcome = repaired(0);
    assert!(outcome.errors.is_empty(), "{:?}", outcome.errors);
    assert_eq!(outcome.outputs, [[TOTAL]]);
    for off in 1..1 << LEVELS {
        assert!(repaired(off).is_caught(Some(Check::SubsetSums)), "{off}");
    }
}

/// Without checks wrong MACs come into the pools.
#[test]
fn without_checks_wrong_trees_go_unnoticed() {
    let careless = || Omitting([Check::SubsetSums, Check::ElementMacs].into());
    for deviation in [Deviation::Trees, Deviation::Shift] {
        let attacked = |others| attack(2, "mascot", (deviation, Program::Many), 1, &others);
        assert!(attacked(Role::Honest).is_caught(Some(Check::SubsetSums)));
        let outcome = attacked(Role::Plays(Arc::new(careless())));
        assert!(outcome.errors.is_empty(), "{:?}", outcome.errors);
    }
}
