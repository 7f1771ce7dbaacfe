//! Connections in their handshake: a bound on their number, and which of them is cut off for a newer one.
//!
//! Anybody can connect to our port. A connection that has not shown a listed certificate yet is a stranger. A stranger uses a thread and two
//! descriptors for [`ONE_HANDSHAKE`] at most. When there are too many strangers, the oldest one of the address with most of them is cut
//! off. So many connections from one address cut off each other, and not a listed party, whose handshake takes milliseconds. Where
//! strangers and parties share an address (all parties on one host), the handshake of a party succeeds if it is over before
//! [`MOST_OF_SOURCE`] newer connections have come; else the party dials again.

use std::io;
use std::net::{IpAddr, Ipv6Addr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Longest wait for a whole TLS handshake of a stranger.
pub(crate) const ONE_HANDSHAKE: Duration = Duration::from_secs(3);

/// Strangers at once.
const MOST_STRANGERS: usize = 128;

/// Strangers of one address at once: enough for the other parties of a host with 64 of them.
const MOST_OF_SOURCE: usize = 64;

/// Connections of one listed party at once, between its handshake and our answer to its hello.
const MOST_OF_PARTY: usize = 4;

/// Why [`Handshakes`] cut a connection off.
pub(crate) const CUT_OFF: &str = "too many connections at once";

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// A stranger.
    Source(IpAddr),
    /// A listed party.
    Party(usize),
}

struct Pending {
    number: u64,
    origin: Origin,
    /// A second handle: another thread waits for this connection.
    socket: TcpStream,
}

#[derive(Default)]
struct State {
    /// In order of arrival.
    pending: Vec<Pending>,
    arrived: u64,
}

/// All connections of one listener that are in their handshake.
#[derive(Default)]
pub(crate) struct Handshakes {
    state: Mutex<State>,
}

/// The entry of one of them, which ends when this is dropped.
pub(crate) struct Slot {
    handshakes: Arc<Handshakes>,
    number: u64,
}

impl Handshakes {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a new stranger, for which an older one may be cut off.
    pub(crate) fn admit(self: &Arc<Self>, socket: &TcpStream) -> io::Result<Slot> {
        let origin = Origin::Source(source(socket.peer_addr()?.ip()));
        let socket = socket.try_clone()?;
        let mut state = self.lock();
        if state.count(origin) >= MOST_OF_SOURCE {
            state.cut_off_oldest(origin);
        } else if state.strangers().count() >= MOST_STRANGERS
            && let Some(most) = state.largest_source()
        {
            state.cut_off_oldest(most);
        }
        let number = state.arrived;
        state.arrived += 1;
        state.pending.push(Pending {
            number,
            origin,
            socket,
        });
        drop(state);
        Ok(Slot {
            handshakes: Arc::clone(self),
            number,
        })
    }
}

impl State {
    fn strangers(&self) -> impl Iterator<Item = Origin> {
        let origins = self.pending.iter().map(|pending| pending.origin);
        origins.filter(|origin| matches!(origin, Origin::Source(_)))
    }

    fn count(&self, origin: Origin) -> usize {
        self.pending
            .iter()
            .filter(|pending| pending.origin == origin)
            .count()
    }

    /// The address with most strangers; of several, the one whose oldest stranger came first.
    fn largest_source(&self) -> Option<Origin> {
        let mut largest = None;
        let mut most = 0;
        for origin in self.strangers() {
            let count = self.count(origin);
            if count > most {
                (largest, most) = (Some(origin), count);
            }
        }
        largest
    }

    fn cut_off_oldest(&mut self, origin: Origin) {
        if let Some(at) = self
            .pending
            .iter()
            .position(|pending| pending.origin == origin)
        {
            // Fails for a connection that has ended already.
            let _ = self.pending.remove(at).socket.shutdown(Shutdown::Both);
        }
    }
}

impl Slot {
    /// The stranger has shown the certificate of `party`, and is not cut off any more. False if it was cut off before, or if too many
    /// connections of this party wait.
    pub(crate) fn is_party(&self, party: usize) -> bool {
        let mut state = self.handshakes.lock();
        if state.count(Origin::Party(party)) >= MOST_OF_PARTY {
            return false;
        }
        let mut pending = state.pending.iter_mut();
        pending
            .find(|pending| pending.number == self.number)
            .map(|pending| pending.origin = Origin::Party(party))
            .is_some()
    }

    /// Whether it was cut off.
    pub(crate) fn was_cut_off(&self) -> bool {
        let state = self.handshakes.lock();
        state
            .pending
            .iter()
            .all(|pending| pending.number != self.number)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.handshakes.lock();
        state
            .pending
            .retain(|pending| pending.number != self.number);
    }
}

/// The address that counts: of version 6 the network of 64 bits, since one host has all addresses of it.
fn source(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64)),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;

    /// A connection from `ip`, with its far end.
    fn pending(handshakes: &Arc<Handshakes>, ip: &str) -> (Slot, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let slot = handshakes.admit(&listener.accept().unwrap().0).unwrap();
        let mut state = handshakes.lock();
        let pending = state
            .pending
            .iter_mut()
            .find(|pending| pending.number == slot.number);
        pending.unwrap().origin = Origin::Source(source(ip.parse().unwrap()));
        drop(state);
        (slot, far)
    }

    #[test]
    fn addresses_of_one_host_count_together() {
        for (one, other, same) in [
            ("10.0.0.1", "::ffff:10.0.0.1", true),
            ("10.0.0.1", "10.0.0.2", false),
            ("2001:db8::1", "2001:db8::ffff:1", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
        ] {
            let sources = [one, other].map(|ip| source(ip.parse().unwrap()));
            assert_eq!(sources[0] == sources[1], same, "{one} {other}");
        }
    }

    #[test]
    fn the_oldest_of_the_largest_source_is_cut_off() {
        let handshakes = Arc::new(Handshakes::default());
        let lone = pending(&handshakes, "10.0.0.1");
        let mut crowd: Vec<_> = (0..MOST_STRANGERS - 1)
            .map(|i| {
                pending(
                    &handshakes,
                    if i % 2 == 0 { "10.0.0.2" } else { "10.0.0.3" },
                )
            })
            .collect();
        assert!(crowd.iter().all(|(slot, _)| !slot.was_cut_off()));
        let newcomer = pending(&handshakes, "10.0.0.4");
        assert!(crowd[0].0.was_cut_off());
        assert_eq!(
            crowd[0].1.read(&mut [0]).unwrap(),
            0,
            "its connection has ended"
        );
        assert!(!crowd[0].0.is_party(1));
        assert!(crowd.iter().skip(1).all(|(slot, _)| !slot.was_cut_off()));
        assert!(!lone.0.was_cut_off() && !newcomer.0.was_cut_off());
        drop(crowd);
        assert_eq!(handshakes.lock().pending.len(), 2);
    }

    #[test]
    fn within_one_address_parties_stay_and_the_oldest_stranger_goes() {
        let handshakes = Arc::new(Handshakes::default());
        let parties: Vec<_> = (0..MOST_OF_PARTY)
            .map(|_| pending(&handshakes, "127.0.0.1"))
            .collect();
        assert!(parties.iter().all(|(slot, _)| slot.is_party(1)));
        let too_many = pending(&handshakes, "127.0.0.1");
        assert!(!too_many.0.is_party(1) && too_many.0.is_party(2));
        let crowd: Vec<_> = (0..2 * MOST_OF_SOURCE)
            .map(|_| pending(&handshakes, "127.0.0.1"))
            .collect();
        let gone = crowd
            .iter()
            .take_while(|(slot, _)| slot.was_cut_off())
            .count();
        assert_eq!(gone, MOST_OF_SOURCE);
        assert!(crowd.iter().skip(gone).all(|(slot, _)| !slot.was_cut_off()));
        assert!(parties.iter().all(|(slot, _)| !slot.was_cut_off()));
    }
}
