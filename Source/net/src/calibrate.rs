//! How simulated links over TLS are set up: each pair of parties measures what its path takes by itself, which then is a
//! part of the simulated round trip.

use std::time::{Duration, Instant};

use crate::shape::LinkShape;
use crate::{NetError, TlsTransport, Transport};

/// Small messages that each pair exchanges; the shortest round trip counts.
const ROUND_TRIPS: usize = 25;

/// Length of a message of this exchange.
const WORD: usize = 8;

/// Shapes the links to all peers. All pairs are handled in one order, the same at all parties, so nobody waits in a circle.
///
/// # Errors
/// Those of [`Transport::send`] and [`Transport::recv`].
pub(crate) fn calibrate(party: &mut TlsTransport, shape: LinkShape) -> Result<(), NetError> {
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

fn lead(party: &mut TlsTransport, peer: usize, shape: LinkShape) -> Result<(), NetError> {
    let mut path = Duration::MAX;
    for _ in 0..ROUND_TRIPS {
        let start = Instant::now();
        party.send(peer, &[0; WORD])?;
        party.recv(peer, WORD)?;
        path = path.min(start.elapsed());
    }
    // Before the peer hears of it, so that nothing of its later words slips through unshaped.
    party.shape(peer, shape, path);
    let nanoseconds = u64::try_from(path.as_nanos()).unwrap_or(u64::MAX);
    party.send(peer, &nanoseconds.to_le_bytes())?;
    party.recv(peer, WORD).map(drop)
}

fn follow(party: &mut TlsTransport, peer: usize, shape: LinkShape) -> Result<(), NetError> {
    for _ in 0..ROUND_TRIPS {
        let ping = party.recv(peer, WORD)?;
        party.send(peer, &ping)?;
    }
    let word = party.recv(peer, WORD)?;
    let nanoseconds = word.try_into().map_or(0, u64::from_le_bytes);
    party.shape(peer, shape, Duration::from_nanos(nanoseconds));
    party.send(peer, &[0; WORD])
}
