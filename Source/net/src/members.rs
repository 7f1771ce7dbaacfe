//! Who belongs to the session, and how to meet: dialling a listed peer, and finding out who dialled us.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::NetError;
use crate::error::one_line;
use crate::frame::{Event, Kind, MAX_REASON, widen};
use crate::greetings::{MADE_ROOM, ONE_HANDSHAKE, Visit};
use crate::hello::{Greeting, Hello, Purpose};
use crate::identity::{Identity, fingerprint_hex, sha256};
use crate::stream::{Accepted, Dialled, Patience, StreamError};
use crate::tls::{TlsParts, is_not_listed, is_refusal};

/// Longest wait for one TCP connection.
const ONE_CONNECT: Duration = Duration::from_secs(3);

/// Longest wait for the handshake and the hello on one connection with a listed party.
pub(crate) const ONE_GREETING: Duration = Duration::from_secs(10);

/// A certificate is refused by its fingerprint, which is noted first.
const UNSEEN: &str = "a certificate was refused that was not seen";

/// A party as the parties file lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its index, in `0..parties`.
    pub index: usize,
    /// Host name or address where it listens.
    pub host: String,
    /// TCP port where it listens.
    pub port: u16,
    /// SHA-256 of its certificate's DER.
    pub fingerprint: [u8; 32],
}

impl Peer {
    pub(crate) fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// What we show to others.
pub(crate) struct Own {
    identity: Identity,
    tls: TlsParts,
}

impl Own {
    pub(crate) fn new(identity: Identity) -> Self {
        Self {
            tls: TlsParts::new(&identity),
            identity,
        }
    }
}

/// The parties of a session, checked, and our place among them.
pub(crate) struct Members {
    pub(crate) own: Own,
    /// One entry per party in order of index; `None` at our own.
    peers: Vec<Option<Peer>>,
    fingerprints: Arc<[[u8; 32]]>,
}

impl Members {
    /// Checks that `peers` lists every party but us exactly once (an entry of our own may be there and must be ours).
    pub(crate) fn new(
        me: usize,
        identity: Identity,
        listed: &[Peer],
        hello: &Hello,
    ) -> Result<Self, NetError> {
        let bad = |detail: String| Err(NetError::Config { detail });
        let parties = widen(hello.parties);
        if widen(hello.party) != me || me >= parties {
            return bad(format!(
                "our hello says party {} of {parties}, but we are party {me}",
                hello.party
            ));
        }
        if parties > listed.len() + 1 {
            return bad(format!(
                "{parties} parties, but only {} are listed",
                listed.len()
            ));
        }
        hello.check_size()?;
        let mut peers: Vec<Option<Peer>> = vec![None; parties];
        let mut fingerprints = Vec::with_capacity(parties);
        for peer in listed {
            let index = peer.index;
            if index == me {
                if peer.fingerprint != identity.fingerprint_bytes() {
                    return bad(format!(
                        "our key has the fingerprint {}, but the parties file lists {} for party {me}: load the key that it lists, or correct the file at all parties",
                        identity.fingerprint(),
                        fingerprint_hex(&peer.fingerprint)
                    ));
                }
                continue;
            }
            if peer.fingerprint == identity.fingerprint_bytes() {
                return bad(format!(
                    "the parties file lists our own certificate for party {index}: is this party {index}'s key or folder?"
                ));
            }
            if fingerprints.contains(&peer.fingerprint) {
                return bad(format!(
                    "party {index} has the same fingerprint as another party: every party needs a key of its own"
                ));
            }
            match peers.get_mut(index) {
                Some(slot @ None) => *slot = Some(peer.clone()),
                Some(Some(_)) => return bad(format!("party {index} is listed twice")),
                None => {
                    return bad(format!(
                        "party {index} is listed, but there are only {parties} parties"
                    ));
                }
            }
            fingerprints.push(peer.fingerprint);
        }
        if let Some(missing) =
            (0..parties).find(|&index| index != me && matches!(peers.get(index), Some(None)))
        {
            return bad(format!("party {missing} is not listed"));
        }
        Ok(Self {
            own: Own::new(identity),
            peers,
            fingerprints: fingerprints.into(),
        })
    }

    pub(crate) fn parties(&self) -> usize {
        self.peers.len()
    }

    /// The other parties.
    pub(crate) fn peers(&self) -> impl Iterator<Item = &Peer> {
        self.peers.iter().flatten()
    }

    fn index_of(&self, fingerprint: &[u8; 32]) -> Option<usize> {
        self.peers()
            .find(|peer| peer.fingerprint == *fingerprint)
            .map(|peer| peer.index)
    }
}

/// A peer that answered our hello.
pub(crate) struct Reached {
    pub(crate) stream: Dialled,
    pub(crate) greeting: Greeting,
    /// From our hello to its answer.
    pub(crate) round_trip: Duration,
}

/// Why a peer was not reached.
pub(crate) struct Unreached {
    pub(crate) reason: Reason,
    /// Whether something listens there.
    pub(crate) connected: bool,
    /// The fingerprint shown there.
    pub(crate) fingerprint: Option<[u8; 32]>,
    /// The connection, if its end is known to be the peer: it may be told why we leave.
    pub(crate) stream: Option<Box<Dialled>>,
}

pub(crate) enum Reason {
    /// It may not be there yet.
    Retry(io::Error),
    /// It is there, and trying again is of no use.
    Final(NetError),
}

impl Unreached {
    /// Judges a failure on a connection to `peer`.
    fn of(error: StreamError, own: &Own, peer: &Peer, fingerprint: Option<[u8; 32]>) -> Self {
        let reason = match error {
            StreamError::Tls(error) if is_not_listed(&error) => Reason::Final(match fingerprint {
                Some(got) => NetError::WrongCertificate {
                    peer: peer.index,
                    expected: fingerprint_hex(&peer.fingerprint),
                    got: fingerprint_hex(&got),
                },
                None => NetError::internal(UNSEEN),
            }),
            StreamError::Tls(error) if is_refusal(&error) => {
                Reason::Final(NetError::CertificateRefused {
                    peer: peer.index,
                    ours: own.identity.fingerprint(),
                })
            }
            StreamError::Frame(error) => Reason::Final(NetError::MalformedFrame {
                peer: peer.index,
                detail: error.to_string(),
            }),
            StreamError::Internal(error) => Reason::Final(error),
            // Another service on that port, a proxy without a party behind it, a party that just stops or starts.
            other => Reason::Retry(other.into_io()),
        };
        Self {
            reason,
            connected: true,
            fingerprint,
            stream: None,
        }
    }
}

/// Dials `peer` once and exchanges hellos. The peer's hello is not compared yet.
pub(crate) fn reach(
    own: &Own,
    peer: &Peer,
    hello: &Hello,
    purpose: Purpose,
    patience: &Patience,
) -> Result<Reached, Unreached> {
    let socket = connect(peer, patience).map_err(|error| Unreached {
        reason: Reason::Retry(error),
        connected: false,
        fingerprint: None,
        stream: None,
    })?;
    let patience = patience.at_most(ONE_GREETING);
    let (config, seen) = own
        .tls
        .client(peer.fingerprint)
        .map_err(|error| Unreached::of(error.into(), own, peer, None))?;
    let failed = |error| Unreached::of(error, own, peer, seen.get());
    let mut stream = Dialled::handshake(socket, config, &patience).map_err(failed)?;
    let start = Instant::now();
    let greeted = hello
        .encode(purpose, peer.index)
        .map_err(StreamError::Internal)
        .and_then(|hello| stream.greet(&hello, &patience));
    let round_trip = start.elapsed();
    let greeting = greeted.map_err(failed).and_then(|event| {
        read_greeting(peer.index, event).map_err(|error| Unreached {
            reason: Reason::Final(error),
            connected: true,
            fingerprint: seen.get(),
            stream: None,
        })
    });
    let greeting = match greeting {
        Ok(greeting) => greeting,
        Err(unreached) => {
            return Err(Unreached {
                stream: Some(Box::new(stream)),
                ..unreached
            });
        }
    };
    Ok(Reached {
        stream,
        greeting,
        round_trip,
    })
}

fn read_greeting(peer: usize, event: Event) -> Result<Greeting, NetError> {
    match event {
        Event::Hello(bytes) => Greeting::decode(&bytes).map_err(|error| error.of_peer(peer)),
        Event::Abort(reason) => Err(NetError::PeerAborted {
            peer,
            reason: one_line(&reason, MAX_REASON),
        }),
        Event::Message(_) | Event::Close => Err(NetError::MalformedFrame {
            peer,
            detail: "no hello".to_owned(),
        }),
    }
}

fn connect(peer: &Peer, patience: &Patience) -> io::Result<TcpStream> {
    let mut last = None;
    for address in (peer.host.as_str(), peer.port).to_socket_addrs()? {
        if last.is_some() && patience.is_over() {
            break;
        }
        let limit = patience.left().clamp(Duration::from_millis(1), ONE_CONNECT);
        match TcpStream::connect_timeout(&address, limit) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::Error::new(ErrorKind::NotFound, "the host name has no address")))
}

/// A connection that somebody else made, after its handshake.
pub(crate) enum Visitor {
    /// No listed party, or it went away: what happened.
    Dropped(String),
    /// A listed party that does not speak as it should, or gave up.
    Failed(NetError),
    /// A listed party. Its hello is not compared yet, and it waits for ours.
    Member {
        peer: usize,
        greeting: Greeting,
        stream: Box<Accepted>,
    },
}

/// Finds out who is at the other end of an accepted connection; `visit` is its place among those in their handshake.
pub(crate) fn receive(
    members: &Members,
    socket: TcpStream,
    hello: &Hello,
    purpose: Purpose,
    max_message: usize,
    patience: &Patience,
    visit: &Visit,
) -> Visitor {
    let from = socket
        .peer_addr()
        .map_or_else(|_| "somebody".to_owned(), |address| address.to_string());
    let stranger = patience.at_most(ONE_HANDSHAKE);
    let patience = patience.at_most(ONE_GREETING);
    let (config, seen) = match members.own.tls.server(Arc::clone(&members.fingerprints)) {
        Ok(config) => config,
        Err(error) => return Visitor::Dropped(format!("{from} ({error})")),
    };
    let mut stream = match Accepted::handshake(socket, config, max_message, &stranger) {
        Ok(stream) => stream,
        Err(_) if visit.made_room() => return Visitor::Dropped(format!("{from} ({MADE_ROOM})")),
        Err(StreamError::Tls(error)) if is_not_listed(&error) => {
            let Some(got) = seen.get() else {
                return Visitor::Failed(NetError::internal(UNSEEN));
            };
            let note = if got == members.own.identity.fingerprint_bytes() {
                "our own certificate: is this party running twice?".to_owned()
            } else {
                format!(
                    "the certificate {}, which is not listed",
                    fingerprint_hex(&got)
                )
            };
            return Visitor::Dropped(format!("{from} showed {note}"));
        }
        Err(StreamError::Tls(error)) if is_refusal(&error) => {
            return Visitor::Dropped(format!("{from} refused our certificate"));
        }
        Err(StreamError::Internal(error)) => return Visitor::Failed(error),
        Err(error) => return Visitor::Dropped(format!("{from} ({})", error.into_io())),
    };
    let Some(peer) = stream
        .peer_certificate()
        .and_then(|certificate| members.index_of(&sha256(certificate)))
    else {
        return Visitor::Dropped(format!("{from} showed no listed certificate"));
    };
    if !visit.is_party(peer) {
        return Visitor::Dropped(format!("party {peer} at {from} ({MADE_ROOM})"));
    }
    match stream.first_event(&patience) {
        Ok(event) => match read_greeting(peer, event) {
            Ok(greeting) => Visitor::Member {
                peer,
                greeting,
                stream: Box::new(stream),
            },
            Err(error) => {
                // So that a party of another version learns why as well; it may have left already.
                if let Ok(hello) = hello.encode(purpose, peer) {
                    let _ = stream.answer(Kind::Hello, &hello, &patience);
                }
                stream.dismiss();
                Visitor::Failed(error)
            }
        },
        Err(StreamError::Frame(error)) => Visitor::Failed(NetError::MalformedFrame {
            peer,
            detail: error.to_string(),
        }),
        Err(StreamError::Internal(error)) => Visitor::Failed(error),
        Err(error) => Visitor::Dropped(format!("party {peer} at {from} ({})", error.into_io())),
    }
}

/// Opens our port: the listener given, or the address given, or the port of our own entry among the peers.
pub(crate) fn open_port(
    listener: Option<TcpListener>,
    listen: Option<SocketAddr>,
    own: Option<&Peer>,
) -> Result<TcpListener, NetError> {
    let open = |listener: io::Result<TcpListener>, addr: String| {
        listener
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .map_err(|error| NetError::Listen {
                addr,
                source: Arc::new(error),
            })
    };
    if let Some(listener) = listener {
        return open(Ok(listener), "the port given".to_owned());
    }
    if let Some(address) = listen {
        return open(TcpListener::bind(address), address.to_string());
    }
    let Some(own) = own else {
        return Err(NetError::Config {
            detail: "no port to listen on: set `listen`, or list ourselves among the peers"
                .to_owned(),
        });
    };
    // A loopback address is kept to; any other host is where the peers see us, which need not be an address of
    // this machine (containers, address translation).
    let loopback = match own.host.as_str() {
        "localhost" => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        host => host.parse().ok().filter(IpAddr::is_loopback),
    };
    if let Some(ip) = loopback {
        return open(
            TcpListener::bind((ip, own.port)),
            SocketAddr::new(ip, own.port).to_string(),
        );
    }
    let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, own.port)).or_else(|error| {
        if error.kind() == ErrorKind::AddrInUse {
            return Err(error);
        }
        TcpListener::bind((Ipv4Addr::UNSPECIFIED, own.port))
    });
    open(listener, format!("port {}", own.port))
}
