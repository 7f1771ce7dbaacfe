//! Triples modulo 2^k against parties that bet on bits of an honest factor.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use keyquorum_math::{Domain, Z2k128};
use keyquorum_net::local_mesh;
use keyquorum_ot::amplified::Shape;

use crate::adversary::{Adversary, Corruption, Site, honest};
use crate::error::{Check, Result};
use crate::protocol::authenticated::{Authenticated, MAC_BITS};
use crate::round::Outbox;
use crate::session::{EngineOptions, Session};
use crate::task::{SendFn, Step};

const K: u32 = 64;
const BITS: u32 = K + MAC_BITS;
const TOP: u128 = 1 << (BITS - 1);
/// Triples of the smallest batch; the last one is used first, and attacked.
const ITEMS: usize = 128;

/// How the highest bit of the ring is used in a bet on the lowest bit of a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bet {
    /// Party 1 shifts its own factor.
    Factor,
    /// It multiplies a shifted share of a.
    Operand,
    /// It multiplies a shifted share of the MAC of a.
    OperandMac,
    /// The same, in the transfer of the lowest bit of one word alone.
    LowestBit,
}

impl Adversary for Bet {
    fn deviates(&self, site: Site) -> bool {
        site == match self {
            Self::Factor => Site::Factor,
            Self::Operand => Site::Operand,
            Self::OperandMac => Site::OperandMac,
            Self::LowestBit => Site::Payload,
        }
    }

    fn words(&self, _site: Site, _to: Option<usize>, words: &mut [u128]) {
        words[ITEMS - 1] ^= TOP;
    }

    fn bytes(&self, _site: Site, _to: Option<usize>, message: &mut Vec<u8>) {
        let domain = Z2k128::new(BITS).unwrap();
        let last = Shape {
            domain,
            items: ITEMS,
        }
        .word_bytes()
            - 1;
        message[last] ^= 0x80;
    }

    fn omits(&self, _check: Check) -> bool {
        true
    }
}

/// An honest party that does not check what it was given when it makes triples.
struct Careless;

impl Adversary for Careless {
    fn omits(&self, check: Check) -> bool {
        matches!(check, Check::SubsetSums | Check::ElementMacs)
    }
}

/// What a party has: its key, and shares of a, b and c with their MACs.
type Triples = (u128, [Vec<u128>; 6]);

/// Makes one batch of triples with two parties; what the honest party 0 says, and both parties' shares if they have them.
fn batch(corruptions: [Corruption; 2]) -> (Result<()>, Option<[Triples; 2]>) {
    let threads: Vec<_> = local_mesh(2, Duration::from_secs(20))
        .into_iter()
        .zip(corruptions)
        .map(|(transport, corruption)| {
            thread::spawn(move || -> Result<Triples> {
                let session = Session::new(Box::new(transport))?;
                let result = make(&session, corruption);
                if let Err(error) = &result {
                    session.abort(&error.to_string());
                }
                result
            })
        })
        .collect();
    let results: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
    let [first, second] = results.try_into().ok().unwrap();
    match (first, second) {
        (Ok(first), Ok(second)) => (Ok(()), Some([first, second])),
        (first, _) => (first.map(drop), None),
    }
}

fn make(session: &Session, corruption: Corruption) -> Result<Triples> {
    let domains = (Z2k128::new(K).unwrap(), Z2k128::new(BITS).unwrap());
    let options = EngineOptions::default();
    let mut p = session.protocol_with_macs(domains, 7, &options, corruption)?;
    p.need_triples(ITEMS);
    let mut round = 0;
    while let Some(task) = p.next_missing()? {
        run(session, &mut p, task, &mut round)?;
    }
    Ok((p.key(), p.take_triples(ITEMS)?))
}

fn run(
    session: &Session,
    p: &mut Authenticated<Z2k128>,
    mut next: SendFn<Authenticated<Z2k128>, ()>,
    round: &mut u64,
) -> Result<()> {
    loop {
        let mut outbox = Outbox::new(session.parties());
        let receive = next(p, &mut outbox)?;
        let mut inner = session.lock()?;
        let (mut inbox, _, _) = outbox.exchange(inner.net.as_mut(), *round << 32)?;
        drop(inner);
        *round += 1;
        match receive(p, &mut inbox)? {
            Step::Done(()) => return Ok(()),
            Step::Next(task) => next = task,
        }
    }
}

/// Products modulo 2^k, and whether all MACs fit; the difference of the MAC of the last product otherwise.
fn judge(both: &[Triples; 2]) -> (bool, u128) {
    let domain = Z2k128::new(BITS).unwrap();
    let sum = |part: usize, i: usize| domain.add(both[0].1[part][i], both[1].1[part][i]);
    let key = domain.add(both[0].0, both[1].0);
    let products = (0..ITEMS).all(|i| {
        let product = domain.mul(sum(0, i), sum(2, i));
        (product ^ sum(4, i)) as u64 == 0
    });
    let difference =
        |part: usize, i: usize| domain.sub(sum(part + 1, i), domain.mul(key, sum(part, i)));
    let last = difference(4, ITEMS - 1);
    let fit = (0..ITEMS).all(|i| {
        difference(0, i) == 0 && difference(2, i) == 0 && (i == ITEMS - 1 || difference(4, i) == 0)
    });
    assert!(fit, "MACs of other words are wrong");
    (products, last)
}

fn bet(bet: Bet) -> Corruption {
    Arc::new(bet)
}

/// Whoever bets on a bit of a factor is caught, or learns nothing: a shift of a value by the highest bit passes if and only if the key is
/// even, and triples are right then; of a MAC, it never passes (81 bits would have to be guessed).
#[test]
fn factor_bets_blocked_a_bet_on_a_bit_of_a_factor_is_caught() {
    for _ in 0..12 {
        let (result, _) = batch([honest(), bet(Bet::OperandMac)]);
        let caught = matches!(
            result,
            Err(crate::EngineError::Check {
                check: Check::SubsetSums,
                ..
            })
        );
        assert!(caught, "{result:?}");
    }
    for way in [Bet::Factor, Bet::Operand] {
        let mut passed = 0;
        for _ in 0..12 {
            match batch([honest(), bet(way)]) {
                (Ok(()), Some(both)) => {
                    assert_eq!((both[0].0 ^ both[1].0) & 1, 0, "{way:?}: the key is odd");
                    assert_eq!(judge(&both), (true, 0), "{way:?}");
                    passed += 1;
                }
                (Err(crate::EngineError::Check { check, .. }), None) => {
                    assert_eq!(check, Check::SubsetSums)
                }
                (result, _) => panic!("{way:?}: {result:?}"),
            }
        }
        assert!((1..12).contains(&passed), "{way:?}: {passed} of 12");
    }
}

/// One choice bit can be bet on, at the price of being caught in half of the runs; the factor is uniform given that bit.
#[test]
fn factor_bets_blocked_a_bit_that_leaks_reveals_nothing_of_the_factor() {
    let (mut passed, mut ones) = (0, 0);
    for _ in 0..48 {
        if let (Ok(()), Some(both)) = batch([honest(), bet(Bet::LowestBit)]) {
            assert_eq!(judge(&both), (true, 0));
            passed += 1;
            ones += both[0].1[2][ITEMS - 1] & 1;
        }
    }
    // Wrong alarms: 2^-20 and less.
    assert!((7..=41).contains(&passed), "{passed}");
    assert!(0 < ones && ones < passed, "{ones} of {passed}");
}

/// Without the subset sums the same bet passes always, and whether a later check passes reveals the bit of the honest factor.
#[test]
fn factor_bets_ablated_without_subset_sums_an_abort_reveals_a_bit_of_the_factor() {
    let mut seen = [0, 0];
    for _ in 0..16 {
        let (result, both) = batch([Arc::new(Careless), bet(Bet::OperandMac)]);
        result.unwrap();
        let both = both.unwrap();
        let bit = both[0].1[2][ITEMS - 1] & 1;
        let (products, difference) = judge(&both);
        assert!(products);
        assert_eq!(difference == TOP, bit == 1);
        seen[bit as usize] += 1;
    }
    assert!(seen.iter().all(|n| *n > 0), "{seen:?}");
}
