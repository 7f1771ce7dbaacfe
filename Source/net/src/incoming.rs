//! Identifying the other end of an accepted connection.

use std::net::TcpStream;
use std::sync::Arc;

use crate::NetError;
use crate::frame::Kind;
use crate::handshakes::{CUT_OFF, ONE_HANDSHAKE, Slot};
use crate::hello::{Greeting, Hello, Purpose, read_greeting};
use crate::identity::{fingerprint_hex, sha256};
use crate::members::{Members, ONE_GREETING, UNSEEN};
use crate::stream::{Accepted, Patience, StreamError};
use crate::tls::{is_not_listed, is_other_key_exchange, is_refusal};

/// An accepted connection, after its handshake.
pub(crate) enum Incoming {
    /// No listed party, or it closed the connection: what happened.
    Dropped(String),
    /// A listed party that sent no correct hello, or an abort.
    Failed(NetError),
    /// A listed party. Its hello is not compared yet, and it waits for ours.
    Member {
        peer: usize,
        greeting: Greeting,
        stream: Box<Accepted>,
    },
}

/// Identifies the other end of an accepted connection; `slot` is its entry among the connections in their handshake.
pub(crate) fn identify(
    members: &Members,
    socket: TcpStream,
    hello: &Hello,
    purpose: Purpose,
    max_message: usize,
    patience: &Patience,
    slot: &Slot,
) -> Incoming {
    let from = socket.peer_addr().map_or_else(
        |_| "an unknown address".to_owned(),
        |address| address.to_string(),
    );
    let stranger = patience.at_most(ONE_HANDSHAKE);
    let patience = patience.at_most(ONE_GREETING);
    let (config, seen) = match members.own.tls.server(Arc::clone(&members.fingerprints)) {
        Ok(config) => config,
        Err(error) => return Incoming::Dropped(format!("{from} ({error})")),
    };
    let mut stream = match Accepted::handshake(socket, config, max_message, &stranger) {
        Ok(stream) => stream,
        Err(_) if slot.was_cut_off() => return Incoming::Dropped(format!("{from} ({CUT_OFF})")),
        Err(StreamError::Tls(error)) if is_not_listed(&error) => {
            let Some(got) = seen.get() else {
                return Incoming::Failed(NetError::internal(UNSEEN));
            };
            let note = if got == members.own.identity.fingerprint_bytes() {
                "our own certificate: is this party running twice?".to_owned()
            } else {
                format!(
                    "the certificate {}, which is not listed",
                    fingerprint_hex(&got)
                )
            };
            return Incoming::Dropped(format!("{from} showed {note}"));
        }
        Err(StreamError::Tls(error)) if is_refusal(&error) => {
            return Incoming::Dropped(format!("{from} refused our certificate"));
        }
        Err(StreamError::Tls(error)) if is_other_key_exchange(&error) => {
            return Incoming::Dropped(format!(
                "{from} does not offer the key exchange X25519MLKEM768: run the same version of KeyQuorum there"
            ));
        }
        Err(StreamError::Internal(error)) => return Incoming::Failed(error),
        Err(error) => return Incoming::Dropped(format!("{from} ({})", error.into_io())),
    };
    let Some(peer) = stream
        .peer_certificate()
        .and_then(|certificate| members.index_of(&sha256(certificate)))
    else {
        return Incoming::Dropped(format!("{from} showed no listed certificate"));
    };
    if !slot.is_party(peer) {
        return Incoming::Dropped(format!("party {peer} at {from} ({CUT_OFF})"));
    }
    match stream.first_event(&patience) {
        Ok(event) => match read_greeting(peer, event) {
            Ok(greeting) => Incoming::Member {
                peer,
                greeting,
                stream: Box::new(stream),
            },
            Err(error) => {
                // So that a party of another version sees the reason as well; it may have closed the connection already.
                if let Ok(hello) = hello.encode(purpose, peer) {
                    let _ = stream.answer(Kind::Hello, &hello, &patience);
                }
                stream.close_gently();
                Incoming::Failed(error)
            }
        },
        Err(StreamError::Frame(error)) => Incoming::Failed(NetError::MalformedFrame {
            peer,
            detail: error.to_string(),
        }),
        Err(StreamError::Internal(error)) => Incoming::Failed(error),
        Err(error) => Incoming::Dropped(format!("party {peer} at {from} ({})", error.into_io())),
    }
}
