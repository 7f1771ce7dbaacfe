//! Dialling a listed peer.

use std::io::{self, ErrorKind};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use crate::NetError;
use crate::hello::{Greeting, Hello, Purpose, read_greeting};
use crate::identity::fingerprint_hex;
use crate::members::{ONE_GREETING, Own, Peer, UNSEEN};
use crate::stream::{Dialled, Patience, StreamError};
use crate::tls::{LinkSecurity, is_not_listed, is_other_key_exchange, is_refusal};

/// Longest wait for one TCP connection.
const ONE_CONNECT: Duration = Duration::from_secs(3);

/// A peer that answered our hello.
pub(crate) struct Reached {
    pub(crate) stream: Dialled,
    pub(crate) greeting: Greeting,
    /// What its TLS uses.
    pub(crate) security: LinkSecurity,
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
    /// The connection, if its other end is known to be the peer: an abort may be sent on it.
    pub(crate) stream: Option<Box<Dialled>>,
}

pub(crate) enum Reason {
    /// It may not be there yet.
    Retry(io::Error),
    /// It is there, and trying again is of no use.
    Final(NetError),
}

impl Unreached {
    /// Classifies a failure on a connection to `peer`.
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
            StreamError::Tls(error) if is_other_key_exchange(&error) => {
                Reason::Final(NetError::KeyExchange { peer: peer.index })
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
        security: LinkSecurity::of(&stream.connection),
        stream,
        greeting,
        round_trip,
    })
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
