//! Tests with a corrupted party: it is listed and holds its key, but deviates from the protocol. The tests run party 1 by hand against
//! an honest party 0.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used
)] // a failed test may panic

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::frame::{Kind, MAX_FRAME, frame, header};
use crate::handshakes::Handshakes;
use crate::hello::{Hello, Purpose};
use crate::identity::Identity;
use crate::incoming::{Incoming, identify};
use crate::members::{Members, Peer};
use crate::outgoing::{Reason, reach};
use crate::session::{TlsConfig, TlsTransport};
use crate::stream::{Accepted, Dialled, Patience};
use crate::{NetError, Transport};

const MAX_MESSAGE: usize = 3 << 20;

fn hello(party: u32) -> Hello {
    Hello {
        version: "0".into(),
        committee: [1; 32],
        context: "test".into(),
        protocol: "ring".into(),
        domain: "Z2^64".into(),
        party,
        parties: 2,
    }
}

/// The corrupted party 1.
struct Adversary {
    members: Members,
    listener: TcpListener,
    honest: JoinHandle<Result<TlsTransport, NetError>>,
    patience: Patience,
}

impl Adversary {
    fn new() -> Self {
        let identities = [
            Identity::generate("0").unwrap(),
            Identity::generate("1").unwrap(),
        ];
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let peers: Vec<Peer> = (0..2)
            .map(|index| Peer {
                index,
                host: "127.0.0.1".into(),
                port: listeners[index].local_addr().unwrap().port(),
                fingerprint: identities[index].fingerprint_bytes(),
            })
            .collect();
        let [zero, one] = identities;
        let members = Members::new(1, one, &peers, &hello(1)).unwrap();
        let [own_port, listener] = listeners;
        let mut config = TlsConfig::new(0, zero, peers, hello(0));
        config.listener = Some(own_port);
        config.connect_timeout = Duration::from_secs(5);
        config.io_timeout = Duration::from_millis(600);
        config.max_message = MAX_MESSAGE;
        Self {
            members,
            listener,
            honest: thread::spawn(move || TlsTransport::connect(config)),
            patience: Patience {
                deadline: Instant::now() + Duration::from_secs(5),
                cancel: Arc::new(AtomicBool::new(false)),
            },
        }
    }

    /// Dials party 0 and exchanges hellos.
    fn dial(&self) -> Dialled {
        let zero = self.members.peers().next().unwrap();
        let reached = reach(
            &self.members.own,
            zero,
            &hello(1),
            Purpose::Session,
            &self.patience,
        );
        reached.map_err(|_| ()).expect("party 0 answers").stream
    }

    fn accept(&self) -> TcpStream {
        self.listener.accept().unwrap().0
    }

    /// Accepts the connection of the honest party.
    fn receive(&self, max_message: usize) -> Incoming {
        let socket = self.accept();
        let slot = Arc::new(Handshakes::default()).admit(&socket).unwrap();
        identify(
            &self.members,
            socket,
            &hello(1),
            Purpose::Session,
            max_message,
            &self.patience,
            &slot,
        )
    }

    /// Answers the hello of the honest party correctly.
    fn answer(&self) -> Accepted {
        match self.receive(1 << 20) {
            Incoming::Member { mut stream, .. } => {
                let own = hello(1).encode(Purpose::Session, 0).unwrap();
                stream.answer(Kind::Hello, &own, &self.patience).unwrap();
                *stream
            }
            _ => panic!("party 0 dials"),
        }
    }

    /// Goes through set-up as an honest party would.
    fn set_up(self) -> (TlsTransport, Dialled, Accepted) {
        let outgoing = self.dial();
        let incoming = self.answer();
        // Dropped last: an honest party waits a while until the others have read its close.
        (self.honest.join().unwrap().unwrap(), outgoing, incoming)
    }
}

/// Sends bytes that need not be frames.
fn write_raw(stream: &mut Dialled, bytes: &[u8]) -> std::io::Result<()> {
    stream.connection.writer().write_all(bytes)?;
    while stream.connection.wants_write() {
        stream.connection.write_tls(&mut stream.socket)?;
    }
    Ok(())
}

/// The error of party 0 when party 1 sends `bytes`.
fn error_after(bytes: &[u8]) -> NetError {
    error_after_due(bytes, 4)
}

/// The same where `due` bytes are asked for.
fn error_after_due(bytes: &[u8], due: usize) -> NetError {
    let (mut honest, mut outgoing, _incoming) = Adversary::new().set_up();
    write_raw(&mut outgoing, bytes).unwrap();
    let start = Instant::now();
    let error = honest.recv(1, due).unwrap_err();
    assert!(start.elapsed() < Duration::from_millis(400), "{error}");
    // It stays failed.
    assert!(honest.recv(1, due).is_err());
    assert!(honest.send(1, b"x").is_err());
    error
}

fn assert_malformed(error: &NetError, detail: &str) {
    match error {
        NetError::MalformedFrame {
            peer: 1,
            detail: got,
        } if got.contains(detail) => {}
        other => panic!("{other}"),
    }
}

#[test]
fn frames_that_no_party_sends_end_the_session_at_once() {
    assert_malformed(
        &error_after(&[0xff, 0xff, 0xff, 0xff, 0]),
        "4294967295 bytes",
    );
    assert_malformed(&error_after(&[4, 0, 0, 0, 77]), "kind 77");
    assert_malformed(&error_after(b"GET / HTTP/1.1\r\n\r\n"), "kind 47");
    assert_malformed(
        &error_after(&frame(Kind::Hello, b"again").unwrap()),
        "second hello",
    );
    assert_malformed(
        &error_after(&frame(Kind::DataLast, b"abc").unwrap()),
        "3 bytes where 4 are due",
    );
}

#[test]
fn a_message_beyond_the_limit_is_refused_before_it_is_read() {
    let part = frame(Kind::DataMore, &vec![0; MAX_FRAME / 2]).unwrap();
    assert_malformed(&error_after_due(&part.repeat(7), 1 << 30), "max_message");
}

#[test]
fn a_message_beyond_what_is_due_is_refused_before_its_end() {
    let part = frame(Kind::DataMore, &vec![0; MAX_FRAME / 2]).unwrap();
    assert_malformed(&error_after(&part), "more than the 4 bytes that are due");
}

#[test]
fn abort_in_the_middle_of_a_message_is_received() {
    let mut bytes = frame(Kind::DataMore, b"ab").unwrap();
    bytes.extend(frame(Kind::Abort, "mac check failed\u{7}".as_bytes()).unwrap());
    match error_after(&bytes) {
        NetError::PeerAborted { peer: 1, reason } => assert_eq!(reason, "mac check failed "),
        other => panic!("{other}"),
    }
}

#[test]
fn a_record_changed_on_the_way_is_noticed() {
    let (mut honest, mut outgoing, _incoming) = Adversary::new().set_up();
    // An application record that the keys of this connection did not make.
    let mut record = vec![0x17, 3, 3, 0, 40];
    record.extend([0x5a; 40]);
    outgoing.socket.write_all(&record).unwrap();
    assert_malformed(&honest.recv(1, 4).unwrap_err(), "TLS record");
}

#[test]
fn silence_in_the_middle_of_a_message_is_a_timeout() {
    let (mut honest, mut outgoing, _incoming) = Adversary::new().set_up();
    write_raw(&mut outgoing, &header(Kind::DataLast, 4).unwrap()).unwrap();
    let start = Instant::now();
    assert!(matches!(
        honest.recv(1, 4),
        Err(NetError::Timeout { peer: 1, .. })
    ));
    assert!(start.elapsed() < Duration::from_millis(1500));
}

#[test]
fn a_message_that_keeps_moving_is_waited_for() {
    let (mut honest, mut outgoing, _incoming) = Adversary::new().set_up();
    let len = 512 * 1024;
    let sending = thread::spawn(move || {
        write_raw(&mut outgoing, &header(Kind::DataLast, len).unwrap()).unwrap();
        for _ in 0..4 {
            thread::sleep(Duration::from_millis(300));
            write_raw(&mut outgoing, &vec![7; len / 4]).unwrap();
        }
        outgoing
    });
    assert_eq!(honest.recv(1, len).unwrap(), vec![7; len]);
    drop(sending.join().unwrap());
}

#[test]
fn a_connection_cut_in_the_middle_of_a_message_is_a_lost_peer() {
    let (mut honest, mut outgoing, incoming) = Adversary::new().set_up();
    write_raw(&mut outgoing, &frame(Kind::DataLast, b"whole").unwrap()).unwrap();
    write_raw(&mut outgoing, &header(Kind::DataLast, 100).unwrap()).unwrap();
    write_raw(&mut outgoing, &[0; 50]).unwrap();
    drop(outgoing);
    drop(incoming);
    // Complete messages are still delivered.
    assert_eq!(honest.recv(1, 5).unwrap(), b"whole");
    assert!(matches!(
        honest.recv(1, 100),
        Err(NetError::PeerClosed { peer: 1 })
    ));
    assert!(matches!(
        honest.send(1, b"x"),
        Err(NetError::PeerClosed { peer: 1 })
    ));
}

#[test]
fn a_listed_party_that_sends_no_hello_is_named() {
    let adversary = Adversary::new();
    // Answers the dial of party 0 with data in place of a hello.
    match adversary.receive(0) {
        Incoming::Member { mut stream, .. } => {
            stream
                .answer(Kind::DataLast, b"x", &adversary.patience)
                .unwrap();
        }
        _ => panic!("party 0 dials"),
    }
    assert_malformed(
        &adversary.honest.join().unwrap().err().unwrap(),
        "before the hello",
    );

    let adversary = Adversary::new();
    // Answers with a hello of another format.
    match adversary.receive(0) {
        Incoming::Member { mut stream, .. } => {
            stream
                .answer(Kind::Hello, b"keyquorum\x63\0\0\0", &adversary.patience)
                .unwrap();
        }
        _ => panic!("party 0 dials"),
    }
    match adversary.honest.join().unwrap().err().unwrap() {
        NetError::HelloMismatch {
            peer: 1,
            field,
            theirs,
            ..
        } if field.as_ref() == "wire version" => assert_eq!(theirs, "99"),
        other => panic!("{other}"),
    }
}

#[test]
fn a_second_connection_of_a_party_is_refused_and_harmless() {
    let adversary = Adversary::new();
    let outgoing = adversary.dial();
    let zero = adversary.members.peers().next().unwrap();
    match reach(
        &adversary.members.own,
        zero,
        &hello(1),
        Purpose::Session,
        &adversary.patience,
    ) {
        Err(unreached) => match unreached.reason {
            Reason::Final(NetError::PeerAborted { peer: 0, reason }) => {
                assert!(reason.contains("connected already"));
            }
            _ => panic!("refused otherwise"),
        },
        Ok(_) => panic!("not refused"),
    }
    let incoming = adversary.answer();
    let mut honest = adversary.honest.join().unwrap().unwrap();
    honest.close();
    drop((outgoing, incoming));
}

#[test]
fn a_peer_that_takes_nothing_is_a_timeout() {
    let (mut honest, _outgoing, _incoming) = Adversary::new().set_up();
    let message = vec![0; MAX_MESSAGE];
    let start = Instant::now();
    let error = (0..50)
        .find_map(|_| honest.send(1, &message).err())
        .unwrap();
    assert!(
        matches!(error, NetError::Timeout { peer: 1, .. }),
        "{error}"
    );
    assert!(start.elapsed() < Duration::from_secs(3));
    // The end does not hang either.
    let start = Instant::now();
    drop(honest);
    assert!(start.elapsed() < Duration::from_secs(5));
}
