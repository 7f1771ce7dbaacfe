//! A party that commits to one value towards party 0 and to another towards party 1.

use super::parties;
use crate::error::{Check, EngineError, Result};
use crate::session::{Session, derive};

/// What a party has at the end: an honest one its seed, the adversary the lengths of the messages that it got after the commitments.
type End = Result<Vec<u8>>;

/// The adversary, party 2: its commitments differ, and whatever else it says fits them.
fn equivocate(session: &Session) -> End {
    let values = [[1u8; 64], [2u8; 64]];
    for (peer, value) in values.iter().enumerate() {
        session.send(peer, derive("toss", value, 2, &[]).as_slice())?;
    }
    let theirs: Vec<Vec<u8>> = (0..2)
        .map(|peer| session.receive(peer, 32))
        .collect::<Result<_>>()?;
    let mut lengths = Vec::new();
    for (peer, value) in values.iter().enumerate() {
        let mut message = session.receive(peer, 64)?;
        lengths.push(message.len() as u8);
        if message.len() != 64 {
            // What this party would say of its commitments if all had got these.
            let all = [
                theirs[0].clone(),
                theirs[1].clone(),
                derive("toss", value, 2, &[]).to_vec(),
            ]
            .concat();
            session.send(peer, derive("toss commitments", &all, 0, &[]).as_slice())?;
            match session.receive(peer, 64) {
                Ok(next) => message = next,
                Err(_) => continue,
            }
            lengths.push(message.len() as u8);
        }
        session.send(peer, value)?;
    }
    Ok(lengths)
}

/// With the comparison of the commitments, or without.
fn toss_with_an_equivocator(compares: bool) -> Vec<End> {
    parties(
        3,
        |_, transport| transport,
        move |session| {
            if session.party() == 2 {
                return equivocate(&session);
            }
            match compares {
                true => session.toss(32),
                false => session.tossed(32, false),
            }
        },
    )
}

/// Both honest parties stop and name each other, and neither has opened its value.
#[test]
fn toss_blocked_other_commitments_for_other_parties() {
    let mut ends = toss_with_an_equivocator(true);
    let lengths = ends.pop().unwrap();
    for (party, end) in ends.iter().enumerate() {
        let Err(EngineError::Check { check, text }) = end else {
            panic!("both stop, not {end:?}");
        };
        assert_eq!(*check, Check::Broadcast);
        assert!(text.contains(&format!("party {}", 1 - party)), "{text}");
    }
    assert!(
        lengths.is_ok_and(|lengths| !lengths.contains(&64)),
        "an honest party opened its value"
    );
}

/// Without the comparison both go on, each with a seed of its own.
#[test]
fn toss_ablated_other_commitments_for_other_parties() {
    let mut ends = toss_with_an_equivocator(false);
    assert_eq!(ends.pop().unwrap().unwrap(), [64, 64]);
    let seeds: Vec<_> = ends.into_iter().map(Result::unwrap).collect();
    assert_eq!(seeds.len(), 2);
    assert_ne!(seeds[0], seeds[1]);
}

/// Two parties need no comparison: both have the same two commitments.
#[test]
fn tosses_take_an_exchange_more_among_three() {
    for (n, messages) in [(2, 2), (3, 2 * 3), (4, 3 * 3)] {
        for (sent, seed) in parties(
            n,
            |_, transport| transport,
            |session| {
                let before = session.stats().unwrap().messages;
                let seed = session.toss(16).unwrap();
                (session.stats().unwrap().messages - before, seed)
            },
        ) {
            assert_eq!((sent, seed.len()), (messages, 16));
        }
    }
}
