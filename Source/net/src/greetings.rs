//! Connections in their handshake: how many there may be, and which of them makes room for the next one.
//!
//! Anybody can connect to our port, and who has not shown a listed certificate yet is a stranger. Strangers hold a thread and two
//! descriptors for [`ONE_HANDSHAKE`] at most, and when there are too many of them the oldest one of the address with most of them is cut
//! off. So a crowd from one address pushes out itself, and a listed party gets in whose handshake takes milliseconds. Where strangers and
//! parties share an address (all parties on one host), a party gets in if its handshake is over before [`MOST_OF_SOURCE`] newer
//! connections have come; else it dials again.

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

/// Why a connection ended that [`Greetings`] cut off.
pub(crate) const MADE_ROOM: &str = "too many connections at once";

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    /// A stranger.
    Source(IpAddr),
    /// A listed party.
    Party(usize),
}

struct Guest {
    number: u64,
    from: From,
    /// A second handle, to cut the connection off under the thread that waits for it.
    socket: TcpStream,
}

#[derive(Default)]
struct State {
    /// In order of arrival.
    guests: Vec<Guest>,
    arrived: u64,
}

/// All connections of one listener that are in their handshake.
#[derive(Default)]
pub(crate) struct Greetings {
    state: Mutex<State>,
}

/// One of them, until this is dropped.
pub(crate) struct Visit {
    greetings: Arc<Greetings>,
    number: u64,
}

impl Greetings {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a new stranger, for whom older ones make room.
    pub(crate) fn admit(self: &Arc<Self>, socket: &TcpStream) -> io::Result<Visit> {
        let from = From::Source(source(socket.peer_addr()?.ip()));
        let socket = socket.try_clone()?;
        let mut state = self.lock();
        if state.count(from) >= MOST_OF_SOURCE {
            state.cut_off_oldest(from);
        } else if state.strangers().count() >= MOST_STRANGERS
            && let Some(most) = state.largest_source()
        {
            state.cut_off_oldest(most);
        }
        let number = state.arrived;
        state.arrived += 1;
        state.guests.push(Guest {
            number,
            from,
            socket,
        });
        drop(state);
        Ok(Visit {
            greetings: Arc::clone(self),
            number,
        })
    }
}

impl State {
    fn strangers(&self) -> impl Iterator<Item = From> {
        let from = self.guests.iter().map(|guest| guest.from);
        from.filter(|from| matches!(from, From::Source(_)))
    }

    fn count(&self, from: From) -> usize {
        self.guests
            .iter()
            .filter(|guest| guest.from == from)
            .count()
    }

    /// The address with most strangers; of several, the one whose oldest came first.
    fn largest_source(&self) -> Option<From> {
        let mut largest = None;
        let mut most = 0;
        for from in self.strangers() {
            let count = self.count(from);
            if count > most {
                (largest, most) = (Some(from), count);
            }
        }
        largest
    }

    fn cut_off_oldest(&mut self, from: From) {
        if let Some(at) = self.guests.iter().position(|guest| guest.from == from) {
            // Whoever has gone already is cut off as well.
            let _ = self.guests.remove(at).socket.shutdown(Shutdown::Both);
        }
    }
}

impl Visit {
    /// The stranger has shown the certificate of `party`, and makes room for nobody any more. False if it has done so already, or if
    /// too many connections of this party wait.
    pub(crate) fn is_party(&self, party: usize) -> bool {
        let mut state = self.greetings.lock();
        if state.count(From::Party(party)) >= MOST_OF_PARTY {
            return false;
        }
        let mut guests = state.guests.iter_mut();
        guests
            .find(|guest| guest.number == self.number)
            .map(|guest| guest.from = From::Party(party))
            .is_some()
    }

    /// Whether it was cut off.
    pub(crate) fn made_room(&self) -> bool {
        let state = self.greetings.lock();
        state.guests.iter().all(|guest| guest.number != self.number)
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut state = self.greetings.lock();
        state.guests.retain(|guest| guest.number != self.number);
    }
}

/// What counts as one address: a whole network of 64 bits with version 6, since one host has all addresses of it.
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

    /// A guest from `ip`, with its far end.
    fn guest(greetings: &Arc<Greetings>, ip: &str) -> (Visit, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let visit = greetings.admit(&listener.accept().unwrap().0).unwrap();
        let mut state = greetings.lock();
        let guest = state
            .guests
            .iter_mut()
            .find(|guest| guest.number == visit.number);
        guest.unwrap().from = From::Source(source(ip.parse().unwrap()));
        drop(state);
        (visit, far)
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
    fn the_oldest_of_the_largest_source_makes_room() {
        let greetings = Arc::new(Greetings::default());
        let lone = guest(&greetings, "10.0.0.1");
        let mut crowd: Vec<_> = (0..MOST_STRANGERS - 1)
            .map(|i| guest(&greetings, if i % 2 == 0 { "10.0.0.2" } else { "10.0.0.3" }))
            .collect();
        assert!(crowd.iter().all(|(visit, _)| !visit.made_room()));
        let newcomer = guest(&greetings, "10.0.0.4");
        assert!(crowd[0].0.made_room());
        assert_eq!(
            crowd[0].1.read(&mut [0]).unwrap(),
            0,
            "its connection has ended"
        );
        assert!(!crowd[0].0.is_party(1));
        assert!(crowd.iter().skip(1).all(|(visit, _)| !visit.made_room()));
        assert!(!lone.0.made_room() && !newcomer.0.made_room());
        drop(crowd);
        assert_eq!(greetings.lock().guests.len(), 2);
    }

    #[test]
    fn within_one_address_parties_stay_and_the_oldest_stranger_goes() {
        let greetings = Arc::new(Greetings::default());
        let parties: Vec<_> = (0..MOST_OF_PARTY)
            .map(|_| guest(&greetings, "127.0.0.1"))
            .collect();
        assert!(parties.iter().all(|(visit, _)| visit.is_party(1)));
        let too_many = guest(&greetings, "127.0.0.1");
        assert!(!too_many.0.is_party(1) && too_many.0.is_party(2));
        let crowd: Vec<_> = (0..2 * MOST_OF_SOURCE)
            .map(|_| guest(&greetings, "127.0.0.1"))
            .collect();
        let gone = crowd
            .iter()
            .take_while(|(visit, _)| visit.made_room())
            .count();
        assert_eq!(gone, MOST_OF_SOURCE);
        assert!(crowd.iter().skip(gone).all(|(visit, _)| !visit.made_room()));
        assert!(parties.iter().all(|(visit, _)| !visit.made_room()));
    }
}
