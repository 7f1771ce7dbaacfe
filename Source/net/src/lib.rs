//! Party-to-party channels.
//!
//! A [`Transport`] carries whole messages between the parties of one session. Two of them exist:
//! [`LocalTransport`] joins parties that live in one process, and [`TlsTransport`] joins processes over
//! mutually authenticated TLS 1.3, with the key exchange X25519MLKEM768. Nothing here knows what a share is.
//!
//! Both can simulate slower links ([`LinkShape`]).
//!
//! Every wait has a timeout, every failure is a [`NetError`] that names the party at fault, and a party
//! that gives up sends the others its reason ([`Transport::abort`]).

mod calibrate;
mod counters;
#[cfg(test)]
mod downgrade;
mod error;
mod frame;
#[cfg(test)]
mod fuzz;
mod handshakes;
mod hello;
#[cfg(test)]
mod hostile;
mod identity;
mod inbox;
mod incoming;
mod local;
mod members;
mod outgoing;
mod port;
mod probe;
mod reader;
mod receive;
mod sealed;
mod session;
mod setup;
mod shape;
mod stream;
mod tampered;
mod threads;
mod tls;
mod transport;

pub use counters::{Counters, PeerCounters};
pub use error::NetError;
pub use hello::Hello;
pub use identity::{Identity, fingerprint_hex, parse_fingerprint, verify_ed25519};
pub use local::{LocalTransport, local_mesh, shaped_local_mesh};
pub use members::Peer;
pub use probe::{DoctorReport, ProbeReport, Responder, doctor, probe};
pub use sealed::{
    Offer, SEALED_ANSWER_BYTES, SEALED_OFFER_BYTES, SEALED_TAG_BYTES, Sealed, answer_offer,
};
pub use session::{TlsConfig, TlsTransport};
pub use setup::SetupObserver;
pub use shape::{BUCKET_BYTES, LinkShape};
pub use tampered::TamperedTransport;
pub use tls::LinkSecurity;
pub use transport::{Length, Transport};
