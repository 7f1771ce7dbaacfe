//! A peer, or somebody on the way, that wants a key exchange without ML-KEM: then who records the connection reads it with a quantum computer.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic)] // a failed test may panic

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::crypto::aws_lc_rs::kx_group::{SECP256R1, X25519, X25519MLKEM768};

use crate::frame::Kind;
use crate::hello::{Hello, Purpose};
use crate::identity::Identity;
use crate::members::{Own, Peer};
use crate::outgoing::{Reason, reach};
use crate::probe::Responder;
use crate::session::TlsConfig;
use crate::stream::{Accepted, Dialled, Patience, StreamError};
use crate::tls::{LinkSecurity, TlsParts, is_other_key_exchange};
use crate::{NetError, TlsTransport};

type Groups = Vec<&'static dyn SupportedKxGroup>;

fn classical() -> Groups {
    vec![X25519, SECP256R1]
}

fn patience() -> Patience {
    Patience {
        deadline: Instant::now() + Duration::from_secs(20),
        cancel: Arc::new(AtomicBool::new(false)),
    }
}

fn hello(party: u32) -> Hello {
    Hello {
        version: "0".into(),
        committee: [1; 32],
        context: "test".into(),
        protocol: String::new(),
        domain: String::new(),
        party,
        parties: 2,
    }
}

/// The settings of this crate, with other groups where some are given.
fn parts(identity: &Identity, groups: Option<Groups>) -> TlsParts {
    match groups {
        Some(groups) => TlsParts::with_settings(identity, vec![TLS13_AES_128_GCM_SHA256], groups),
        None => TlsParts::new(identity),
    }
}

/// A handshake and hellos of two parties with these groups: what the dialling end uses, or the errors of both ends.
fn handshake(
    dialling: Option<Groups>,
    accepting: Option<Groups>,
) -> Result<LinkSecurity, Vec<rustls::Error>> {
    let [one, two] = ["one", "two"].map(|name| Identity::generate(name).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (config, _seen) = parts(&one, dialling)
        .client(two.fingerprint_bytes())
        .unwrap();
    let dialler = thread::spawn(move || {
        let socket = TcpStream::connect(address).unwrap();
        let mut end = Dialled::handshake(socket, config, &patience())?;
        end.greet(b"hello", &patience())?;
        Ok(LinkSecurity::of(&end.connection))
    });
    let listed = Arc::new([one.fingerprint_bytes()]);
    let (config, _seen) = parts(&two, accepting).server(listed).unwrap();
    let socket = listener.accept().unwrap().0;
    let accepted = Accepted::handshake(socket, config, 1, &patience()).map(|mut end| {
        end.first_event(&patience()).unwrap();
        end.answer(Kind::Hello, b"hello", &patience()).unwrap();
        end
    });
    match (dialler.join().unwrap(), accepted) {
        (Ok(security), Ok(_)) => Ok(security),
        (Err(StreamError::Tls(ours)), Err(StreamError::Tls(theirs))) => Err(vec![ours, theirs]),
        (ours, theirs) => panic!("{ours:?}, {:?}", theirs.err()),
    }
}

#[test]
fn parties_use_the_hybrid_key_exchange() {
    let security = handshake(None, None).unwrap();
    assert_eq!(security.protocol, "TLSv1_3");
    assert_eq!(security.key_exchange, "X25519MLKEM768");
    assert_eq!(security.cipher_suite, "TLS13_AES_128_GCM_SHA256");
}

#[test]
fn link_downgrade_blocked_at_either_end() {
    for (dialling, accepting) in [(None, Some(classical())), (Some(classical()), None)] {
        let errors = handshake(dialling, accepting).unwrap_err();
        assert!(errors.iter().all(is_other_key_exchange), "{errors:?}");
    }
}

#[test]
fn link_downgrade_ablated_by_a_second_group() {
    for both in [(0, 1), (1, 0)] {
        let mut groups = [vec![X25519MLKEM768, X25519], classical()];
        let [first, second] = [both.0, both.1].map(|i| Some(std::mem::take(&mut groups[i])));
        assert_eq!(handshake(first, second).unwrap().key_exchange, "X25519");
    }
}

/// A committee of two parties with open ports, and our party 0 as it is configured.
fn committee() -> ([Identity; 2], [TcpListener; 2], TlsConfig) {
    let identities = ["0", "1"].map(|name| Identity::generate(name).unwrap());
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let peers = (0..2).map(|index| Peer {
        index,
        host: "127.0.0.1".into(),
        port: listeners[index].local_addr().unwrap().port(),
        fingerprint: identities[index].fingerprint_bytes(),
    });
    let mut config = TlsConfig::new(0, identities[0].clone(), peers.collect(), hello(0));
    config.connect_timeout = Duration::from_secs(20);
    (identities, listeners, config)
}

#[test]
fn link_downgrade_blocked_with_a_line_that_says_what_to_do() {
    // Party 1 dials: our party refuses it, and notes why.
    let (identities, [port, _], mut config) = committee();
    let zero = config.peers[0].clone();
    config.listener = Some(port);
    let responder = Responder::start(config).unwrap();
    let old = Own {
        tls: parts(&identities[1], Some(classical())),
        identity: identities[1].clone(),
    };
    let reached = reach(&old, &zero, &hello(1), Purpose::Session, &patience());
    match reached.err().unwrap().reason {
        Reason::Final(NetError::KeyExchange { peer: 0 }) => {}
        Reason::Final(error) => panic!("{error}"),
        Reason::Retry(error) => panic!("{error}"),
    }
    assert!(responder.reached_by().is_empty());
    let dropped = loop {
        if let Some(dropped) = responder.dropped().pop() {
            break dropped;
        }
        thread::sleep(Duration::from_millis(10));
    };
    assert!(
        dropped.contains("does not offer the key exchange X25519MLKEM768"),
        "{dropped}"
    );

    // Our party dials party 1: set-up ends, long before its timeout.
    let ([_, one], [port, listener], mut config) = committee();
    let listed = Arc::new([config.identity.fingerprint_bytes()]);
    config.listener = Some(port);
    let waiting = thread::spawn(move || TlsTransport::connect(config));
    let (server, _seen) = parts(&one, Some(classical())).server(listed).unwrap();
    let accepted = Accepted::handshake(listener.accept().unwrap().0, server, 1, &patience());
    assert!(matches!(accepted, Err(StreamError::Tls(_))));
    let error = waiting.join().unwrap().err().unwrap();
    assert!(matches!(error, NetError::KeyExchange { peer: 1 }));
    let line = error.to_string();
    assert!(
        line.contains("party 1") && line.contains("run the same version"),
        "{line}"
    );
    assert_eq!(line.lines().count(), 1);
}

/// The groups that the first message of a party offers, and those for which it sends a share, with their lengths: read from the bytes, not
/// asked of the TLS library.
#[test]
fn the_first_message_offers_the_hybrid_group_alone() {
    let (_, [port, listener], mut config) = committee();
    config.listener = Some(port);
    config.connect_timeout = Duration::from_secs(1);
    let waiting = thread::spawn(move || TlsTransport::connect(config));
    let mut socket = listener.accept().unwrap().0;
    let mut record = [0; 5];
    socket.read_exact(&mut record).unwrap();
    let mut message = vec![0; usize::from(u16::from_be_bytes([record[3], record[4]]))];
    socket.read_exact(&mut message).unwrap();
    let _ = socket.write_all(&[0; 5]);
    assert!(waiting.join().unwrap().is_err());

    let number = |at: usize| usize::from(u16::from_be_bytes([message[at], message[at + 1]]));
    // Type and length, version, random; then session id, suites, compression methods.
    let mut at = 4 + 2 + 32;
    at += 1 + usize::from(message[at]);
    at += 2 + number(at);
    at += 1 + usize::from(message[at]);
    let end = at + 2 + number(at);
    at += 2;
    let mut found = 0;
    while at < end {
        let (kind, body) = (number(at), at + 4);
        if kind == 10 {
            assert_eq!((number(body), number(body + 2)), (2, 0x11ec));
            found += 1;
        }
        if kind == 51 {
            // An encapsulation key of ML-KEM-768, and a point of X25519.
            assert_eq!(number(body + 2), 0x11ec);
            assert_eq!(number(body + 4), 1184 + 32);
            assert_eq!(number(body), 4 + 1184 + 32);
            found += 1;
        }
        at = body + number(at + 2);
    }
    assert_eq!(found, 2);
}
