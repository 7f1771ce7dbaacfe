//! Set-up of simulated links over TLS: each pair of parties measures the round trip of its path, which then is a
//! part of the simulated round trip.

use std::time::{Duration, Instant};

use crate::shape::LinkShape;
use crate::{NetError, Transport};

/// Round trips of small messages that a measurement makes at least; the shortest one counts.
const LEAST_ROUND_TRIPS: usize = 20;

/// It goes on until so many in a row were no shorter than the shortest before: the first are slow, and other work on the
/// machine disturbs some.
const NO_SHORTER: usize = 100;

/// But after the first ones no longer than this, for all peers together and for one of them.
const LONGEST: (Duration, Duration) = (Duration::from_millis(400), Duration::from_millis(80));

/// Round trips up to this one are measured on the shaped link as well.
const SHORT: Duration = Duration::from_millis(5);

/// Length of a message of this exchange.
const WORD: usize = 8;

/// Asks for another round trip; any other word is the path's own round trip in nanoseconds.
const AGAIN: u64 = u64::MAX;

/// A party of which links can be shaped.
pub(crate) trait Shaped: Transport {
    /// From now on messages of `peer` arrive as over a link of this shape. `path` is the round trip without it.
    fn shape(&self, peer: usize, shape: LinkShape, path: Duration) -> Result<(), NetError>;
}

/// Shapes the links to all peers. All parties handle the pairs in the same order, so that no parties wait for each other in a cycle.
///
/// # Errors
/// Those of [`Transport::send`] and [`Transport::recv`].
pub(crate) fn calibrate(party: &mut impl Shaped, shape: LinkShape) -> Result<(), NetError> {
    let (me, parties) = (party.party(), party.parties());
    for low in 0..parties {
        for high in low + 1..parties {
            if me == low {
                lead(party, high, shape)?;
            } else if me == high {
                follow(party, low, shape)?;
            }
        }
    }
    Ok(())
}

fn lead(party: &mut impl Shaped, peer: usize, shape: LinkShape) -> Result<(), NetError> {
    let mut path = shortest(party, peer)?;
    announce(party, peer, shape, path)?;
    if shape.round_trip() <= SHORT {
        // With a delay a path takes less than without: a receiver that waits for the moment of delivery need not be
        // woken up by the message.
        let delay = shape.round_trip().saturating_sub(path);
        path = path.min(shortest(party, peer)?.saturating_sub(delay));
        announce(party, peer, shape, path)?;
    }
    Ok(())
}

fn follow(party: &mut impl Shaped, peer: usize, shape: LinkShape) -> Result<(), NetError> {
    for _ in 0..if shape.round_trip() <= SHORT { 2 } else { 1 } {
        let path = answer(party, peer)?;
        party.shape(peer, shape, path)?;
        party.send(peer, &[0; WORD])?;
    }
    Ok(())
}

/// The shortest of many round trips.
fn shortest(party: &mut impl Shaped, peer: usize) -> Result<Duration, NetError> {
    let (all, one) = LONGEST;
    let longest = one.min(all / party.parties() as u32);
    let mut path = Duration::MAX;
    let (begin, mut done, mut no_shorter) = (Instant::now(), 0, 0);
    while done < LEAST_ROUND_TRIPS || (no_shorter < NO_SHORTER && begin.elapsed() < longest) {
        let start = Instant::now();
        party.send(peer, &AGAIN.to_le_bytes())?;
        party.recv(peer, WORD)?;
        let took = start.elapsed();
        no_shorter = if took < path { 0 } else { no_shorter + 1 };
        path = path.min(took);
        done += 1;
    }
    Ok(path)
}

/// Answers the messages of [`shortest`], and takes the path's round trip.
fn answer(party: &mut impl Shaped, peer: usize) -> Result<Duration, NetError> {
    loop {
        let word = party.recv(peer, WORD)?;
        let word: [u8; WORD] = word
            .try_into()
            .map_err(|_| NetError::internal("a message of another length than was asked for"))?;
        match u64::from_le_bytes(word) {
            AGAIN => party.send(peer, &[0; WORD])?,
            nanoseconds => return Ok(Duration::from_nanos(nanoseconds)),
        }
    }
}

/// Shapes the link at both ends.
fn announce(
    party: &mut impl Shaped,
    peer: usize,
    shape: LinkShape,
    path: Duration,
) -> Result<(), NetError> {
    // Before the message to the peer, so that all of its later messages are shaped.
    party.shape(peer, shape, path)?;
    let nanoseconds = u64::try_from(path.as_nanos())
        .ok()
        .filter(|nanoseconds| *nanoseconds != AGAIN)
        .ok_or(NetError::internal("a round trip beyond 64 bits"))?;
    party.send(peer, &nanoseconds.to_le_bytes())?;
    party.recv(peer, WORD).map(drop)
}
