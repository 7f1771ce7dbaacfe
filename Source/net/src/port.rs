//! Our port: opening it, and accepting connections.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use crate::NetError;
use crate::members::Peer;

/// Connections that are accepted in a row, before set-up looks at its state again.
const ACCEPTS: usize = 64;

/// Connections that wait at the listener, a bounded number of them.
pub(crate) fn accept_waiting(listener: &TcpListener) -> impl Iterator<Item = TcpStream> {
    // A connection that is gone again, or a passing lack of descriptors, is no reason to give up: the deadline is.
    (0..ACCEPTS).map_while(|_| listener.accept().ok().map(|(socket, _)| socket))
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
