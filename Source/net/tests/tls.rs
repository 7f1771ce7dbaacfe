//! Sessions over TLS on the loopback interface, as a user of the crate runs them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    clippy::indexing_slicing
)] // a failed test may panic

mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use common::{committee, hello};
use keyquorum_net::{
    Hello, Identity, NetError, Peer, Responder, SetupObserver, TlsConfig, TlsTransport, Transport,
    doctor, probe,
};

type Outcome = Result<TlsTransport, NetError>;

/// Connects all parties at once; results in order, each with the time taken.
fn connect(configs: Vec<TlsConfig>) -> Vec<(Outcome, Duration)> {
    let threads: Vec<_> = configs
        .into_iter()
        .map(|config| {
            thread::spawn(move || {
                let start = Instant::now();
                (TlsTransport::connect(config), start.elapsed())
            })
        })
        .collect();
    threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect()
}

fn mesh_of(configs: Vec<TlsConfig>) -> Vec<TlsTransport> {
    connect(configs)
        .into_iter()
        .map(|(outcome, _)| outcome.unwrap_or_else(|error| panic!("{error}")))
        .collect()
}

fn mesh(n: usize) -> Vec<TlsTransport> {
    mesh_of(committee(n))
}

/// Runs `body` for every party on a thread of its own.
fn in_parallel<T: Send + 'static>(
    mesh: Vec<TlsTransport>,
    body: impl Fn(TlsTransport) -> T + Send + Copy + 'static,
) -> Vec<T> {
    let threads: Vec<_> = mesh
        .into_iter()
        .map(|party| thread::spawn(move || body(party)))
        .collect();
    threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect()
}

/// The errors with which all parties fail. A party that found the failure waits at most three seconds for the others.
fn both_fail(configs: Vec<TlsConfig>) -> Vec<NetError> {
    connect(configs)
        .into_iter()
        .map(|(outcome, time)| {
            let error = outcome.err().expect("set-up should fail");
            assert!(time < Duration::from_millis(4500), "{time:?} until {error}");
            assert_eq!(error.to_string().lines().count(), 1);
            error
        })
        .collect()
}

#[test]
fn all_parties_exchange_messages() {
    for n in [1, 2, 3, 5] {
        in_parallel(mesh(n), |mut party| {
            let (me, n) = (party.party(), party.parties());
            for round in 0..20usize {
                for to in (0..n).filter(|&to| to != me) {
                    party
                        .send(to, &vec![(me * 16 + to) as u8; round * 1000])
                        .unwrap();
                    party.send(to, b"end").unwrap();
                }
                for from in (0..n).filter(|&from| from != me) {
                    let message = party.recv(from, round * 1000).unwrap();
                    assert!(message.iter().all(|&b| b == (from * 16 + me) as u8));
                    assert_eq!(party.recv_any_len(from, 10).unwrap(), b"end");
                }
            }
            let sent: u64 = (0..20).map(|round| round * 1000 + 3).sum();
            for peer in (0..n).filter(|&peer| peer != me) {
                let traffic = party.counters().peer(peer).unwrap();
                assert_eq!(traffic.payload_sent, sent);
                assert_eq!(traffic.payload_received, sent);
                assert_eq!(traffic.messages_sent, 40);
                assert_eq!(traffic.messages_received, 40);
                // A frame header and a TLS record or two each.
                assert!(traffic.wire_sent > sent && traffic.wire_sent < sent + 40 * 60);
                assert_eq!(traffic.wire_received, traffic.wire_sent);
            }
            party.close();
        });
    }
}

#[test]
fn big_messages_cross_without_deadlock() {
    const LEN: usize = 100_000_000;
    in_parallel(mesh(2), |mut party| {
        let peer = 1 - party.party();
        let mut message = vec![party.party() as u8; LEN];
        message[LEN - 1] = 0xee;
        party.expect(peer, LEN).unwrap();
        party.send(peer, &message).unwrap();
        let got = party.recv(peer, LEN).unwrap();
        assert_eq!(
            (got[0], got[LEN / 2], got[LEN - 1]),
            (peer as u8, peer as u8, 0xee)
        );
        let traffic = party.counters().total();
        assert_eq!(traffic.wire_received, traffic.wire_sent);
        let overhead = traffic.wire_sent as f64 / LEN as f64 - 1.0;
        assert!(overhead < 0.002, "{overhead}");
    });
}

#[test]
fn parties_start_in_any_order() {
    let mut configs = committee(3);
    // The last party's port is closed until it starts.
    let late = configs.pop().unwrap();
    let (addr, listener) = (
        late.listener.as_ref().unwrap().local_addr().unwrap(),
        late.listener,
    );
    drop(listener);
    let late = TlsConfig {
        listener: None,
        listen: Some(addr),
        ..late
    };
    let early = thread::spawn(move || connect(configs));
    thread::sleep(Duration::from_millis(300));
    let last = TlsTransport::connect(late).unwrap();
    for (outcome, _) in early.join().unwrap() {
        assert!(outcome.is_ok());
    }
    assert_eq!(last.parties(), 3);
}

#[test]
fn an_observer_sees_who_is_missing_and_may_end_the_set_up() {
    let mut configs = committee(3);
    // Party 2 never comes.
    configs.pop();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let start = Instant::now();
    configs[0].observer = Some(SetupObserver::new(move |missing| {
        noted.lock().unwrap().push(missing.to_vec());
        match start.elapsed() < Duration::from_millis(500) {
            true => Ok(()),
            false => Err("party 0 has no key".to_owned()),
        }
    }));
    let errors = both_fail(configs);
    assert!(
        matches!(&errors[0], NetError::Interrupted { reason } if reason == "party 0 has no key")
    );
    match &errors[1] {
        NetError::PeerAborted { peer: 0, reason } => assert_eq!(reason, "party 0 has no key"),
        other => panic!("{other}"),
    }
    assert!(start.elapsed() < Duration::from_millis(4200));
    assert!(seen.lock().unwrap().contains(&vec![2]));
}

#[test]
fn our_own_entry_says_where_to_listen() {
    let configs = committee(2)
        .into_iter()
        .map(|config| TlsConfig {
            listener: None,
            ..config
        })
        .collect();
    mesh_of(configs);
    let mut config = committee(2).pop().unwrap();
    let taken = config.listener.take();
    assert!(matches!(
        TlsTransport::connect(config),
        Err(NetError::Listen { .. })
    ));
    drop(taken);
}

#[test]
fn silence_and_absence_are_timeouts() {
    let mut configs = committee(2);
    configs[0].io_timeout = Duration::from_millis(200);
    let mut parties = mesh_of(configs);
    let start = Instant::now();
    assert!(matches!(
        parties[0].recv(1, 8),
        Err(NetError::Timeout { peer: 1, .. })
    ));
    assert!(start.elapsed() < Duration::from_secs(1));

    let mut configs = committee(2);
    let absent = configs.pop().unwrap();
    let mut config = configs.pop().unwrap();
    config.connect_timeout = Duration::from_millis(300);
    drop(absent.listener);
    let start = Instant::now();
    let error = TlsTransport::connect(config).err().unwrap();
    assert!(
        matches!(error, NetError::Connect { peer: 1, .. }),
        "{error}"
    );
    assert!(start.elapsed() < Duration::from_secs(1));
}

/// Party 1 sends a message of 100 MB to party 0, which keeps 1 MiB, and has announced to take `announced` bytes. Whether all of it could be
/// sent before party 0 asks for `asked` bytes, and what it gets then.
fn a_long_message(announced: usize, asked: usize) -> (bool, Result<usize, NetError>) {
    const LEN: usize = 100_000_000;
    let mut configs = committee(2);
    for config in &mut configs {
        config.queue_limit = 1 << 20;
    }
    let mut parties = mesh_of(configs);
    let mut one = parties.pop().unwrap();
    let mut zero = parties.pop().unwrap();
    if announced > 0 {
        zero.expect(1, announced).unwrap();
    }
    let (sent, is_sent) = mpsc::channel();
    let sending = thread::spawn(move || {
        sent.send(one.send(0, &vec![1; LEN]).is_ok()).unwrap();
        // It stays until party 0 has taken it.
        let _ = one.recv(0, 1);
    });
    let kept = is_sent.recv_timeout(Duration::from_secs(3)).is_ok();
    let got = zero.recv(1, asked).map(|message| message.len());
    let _ = zero.send(1, b"x");
    drop(zero);
    sending.join().unwrap();
    (kept, got)
}

#[test]
fn a_message_that_is_not_expected_is_not_kept() {
    for announced in [0, 1000] {
        let (kept, got) = a_long_message(announced, 100_000_000);
        assert!(!kept);
        assert_eq!(got.unwrap(), 100_000_000);
    }
    let (kept, got) = a_long_message(100_000_000, 100_000_000);
    assert!(kept, "an announced message is kept");
    assert_eq!(got.unwrap(), 100_000_000);
    let (_, got) = a_long_message(0, 1000);
    let error = got.unwrap_err().to_string();
    assert!(
        error.contains("party 1")
            && error.contains("a message of more than the 1000 bytes that are due"),
        "{error}"
    );
}

#[test]
fn full_queues_push_back() {
    let mut configs = committee(2);
    for config in &mut configs {
        config.queue_limit = 1 << 20;
        config.io_timeout = Duration::from_millis(400);
    }
    let mut parties = mesh_of(configs);
    let message = vec![1; 1 << 20];
    // Party 1 takes nothing: its queue and the system's buffers fill up.
    let taken = (0..100)
        .take_while(|_| parties[0].send(1, &message).is_ok())
        .count();
    assert!((1..50).contains(&taken), "{taken}");
    for _ in 0..taken {
        parties[1].recv(0, 1 << 20).unwrap();
    }
}

#[test]
fn a_full_queue_delays_no_other_peer() {
    const LONG: usize = 1 << 18;
    let mut configs = committee(3);
    for config in &mut configs {
        config.queue_limit = LONG;
    }
    let mut parties = mesh_of(configs);
    let mut two = parties.pop().unwrap();
    let mut one = parties.pop().unwrap();
    let mut zero = parties.pop().unwrap();
    let sending = thread::spawn(move || {
        for i in 0..60u8 {
            one.send(0, &vec![i; LONG]).unwrap();
        }
        one.recv(0, 1).unwrap();
    });
    // The messages of party 1 fill its queue long before those of party 2 come.
    thread::sleep(Duration::from_millis(200));
    let answering = thread::spawn(move || {
        for i in 0..100u8 {
            two.send(0, &[i]).unwrap();
            two.recv(0, 1).unwrap();
        }
    });
    for i in 0..100u8 {
        assert_eq!(zero.recv(2, 1).unwrap(), [i]);
        zero.send(2, b"x").unwrap();
    }
    for i in 0..60u8 {
        let message = zero.recv(1, LONG).unwrap();
        assert!(message.iter().all(|&byte| byte == i));
    }
    zero.send(1, b"x").unwrap();
    sending.join().unwrap();
    answering.join().unwrap();
}

#[test]
fn a_full_queue_is_read_again_when_the_session_is_over() {
    let mut configs = committee(3);
    for config in &mut configs {
        config.queue_limit = 1 << 20;
        config.io_timeout = Duration::from_secs(5);
    }
    let mut parties = mesh_of(configs);
    let mut two = parties.pop().unwrap();
    let mut one = parties.pop().unwrap();
    // Party 0 takes nothing, so that party 1 waits; then party 2 gives up, and party 0 does not notice for a long time.
    let message = vec![1; 1 << 20];
    let sending = thread::spawn(move || {
        let sent = (0..60).try_for_each(|_| one.send(0, &message));
        let start = Instant::now();
        one.close();
        (sent, start.elapsed())
    });
    thread::sleep(Duration::from_millis(300));
    assert!(
        !sending.is_finished(),
        "the buffers of the system hold it all"
    );
    two.abort("enough");
    let (sent, closing) = sending.join().unwrap();
    assert!(
        matches!(sent, Err(NetError::PeerAborted { peer: 2, .. })),
        "{sent:?}"
    );
    // Party 1 waits until all its messages are read.
    assert!(closing < Duration::from_secs(1), "{closing:?}");
}

#[test]
fn a_wrong_certificate_is_named_on_both_sides() {
    let mut configs = committee(2);
    let listed = configs[1].identity.fingerprint();
    // Party 1 has lost its key and made a new one; only its own parties file knows.
    let new = Identity::generate("party 1").unwrap();
    configs[1].peers[1].fingerprint = new.fingerprint_bytes();
    configs[1].identity = new.clone();
    let errors = both_fail(configs);
    match &errors[0] {
        NetError::WrongCertificate {
            peer: 1,
            expected,
            got,
        } => {
            assert_eq!(*expected, listed);
            assert_eq!(*got, new.fingerprint());
        }
        other => panic!("{other}"),
    }
    match &errors[1] {
        NetError::CertificateRefused { peer: 0, ours } => assert_eq!(*ours, new.fingerprint()),
        other => panic!("{other}"),
    }
}

#[test]
fn every_field_of_the_hello_is_compared_on_both_sides() {
    type Change = fn(&mut Hello);
    let changes: [(&str, Change); 5] = [
        ("version", |hello| hello.version = "0.2.0".into()),
        ("committee", |hello| hello.committee = [8; 32]),
        ("context", |hello| hello.context = "decrypt".into()),
        ("protocol", |hello| hello.protocol = "shamir".into()),
        ("domain", |hello| hello.domain = "F_19".into()),
    ];
    for (name, change) in changes {
        let mut configs = committee(2);
        change(&mut configs[1].hello);
        for (me, error) in both_fail(configs).into_iter().enumerate() {
            match error {
                NetError::HelloMismatch { peer, field, .. } if field.as_ref() == name => {
                    assert_eq!(peer, 1 - me)
                }
                other => panic!("{name}: {other}"),
            }
        }
    }
    // Another number of parties.
    let mut configs = committee(2);
    let third = Peer {
        index: 2,
        host: "127.0.0.1".into(),
        port: 1,
        fingerprint: [9; 32],
    };
    configs[1].peers.push(third);
    configs[1].hello.parties = 3;
    for error in both_fail(configs) {
        assert!(
            matches!(&error, NetError::HelloMismatch { field, .. } if field.as_ref() == "parties"),
            "{error}"
        );
    }
    // Another number of its own: party 1 believes to be party 2.
    let mut configs = committee(3);
    let mut three = configs.pop().unwrap();
    let mut confused = configs.pop().unwrap();
    three.listener = None;
    confused.me = 2;
    // The address of the real party 2, where nothing listens.
    confused.peers[1].port = confused.peers[2].port;
    confused.hello.party = 2;
    confused.peers[1].fingerprint = three.identity.fingerprint_bytes();
    confused.peers[2].fingerprint = confused.identity.fingerprint_bytes();
    configs.push(confused);
    let errors = both_fail(configs);
    assert!(
        matches!(
            &errors[0],
            NetError::HelloMismatch {
                peer: 1,
                field,
                ..
            } if field.as_ref() == "party"
        ),
        "{}",
        errors[0]
    );
    assert!(
        matches!(
            &errors[1],
            NetError::HelloMismatch {
                peer: 0,
                field,
                ..
            } if field.as_ref() == "party (ours)"
        ),
        "{}",
        errors[1]
    );
}

#[test]
fn strangers_neither_block_nor_break_the_set_up() {
    let configs = committee(2);
    let addr = configs[0].listener.as_ref().unwrap().local_addr().unwrap();
    // One sends nothing, one sends another protocol, and one has a key that is not listed.
    let silent = TcpStream::connect(addr).unwrap();
    let mut talking = TcpStream::connect(addr).unwrap();
    talking.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let stranger = Identity::generate("stranger").unwrap();
    let zero = configs[0].peers[0].clone();
    let probing =
        thread::spawn(move || probe(&zero, &stranger, &hello(1, 2), Duration::from_secs(5)));
    let parties = connect(configs);
    for (outcome, time) in &parties {
        assert!(outcome.is_ok());
        assert!(*time < Duration::from_secs(2), "{time:?}");
    }
    drop(parties);
    let report = probing.join().unwrap();
    // The set-up may have been over before the stranger's turn.
    assert!(matches!(
        report.problem,
        Some(NetError::CertificateRefused { .. } | NetError::Connect { .. })
    ));
    drop((silent, talking));
}

/// Connects to `address` again and again, without sending, until `stop`. It keeps at most 300 connections, the first 150 of them to the end.
fn silent_connections(address: SocketAddr, stop: Arc<AtomicBool>) -> thread::JoinHandle<usize> {
    thread::spawn(move || {
        let (mut held, mut count) = (Vec::new(), 0);
        while !stop.load(Ordering::Relaxed) {
            if let Ok(stranger) = TcpStream::connect(address) {
                held.push(stranger);
                count += 1;
            }
            if held.len() > 300 {
                held.remove(150);
            }
            thread::sleep(Duration::from_millis(1));
        }
        count
    })
}

#[test]
fn many_silent_connections_keep_no_party_out() {
    let mut configs = committee(2);
    for config in &mut configs {
        config.connect_timeout = Duration::from_secs(5);
    }
    let address = configs[0].listener.as_ref().unwrap().local_addr().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let silent = silent_connections(address, Arc::clone(&stop));
    let late = configs.pop().unwrap();
    let zero = configs.pop().unwrap();
    let waiting = thread::spawn(move || TlsTransport::connect(zero));
    // By now the silent connections are as many as they can be.
    thread::sleep(Duration::from_millis(1500));
    let mut one = TlsTransport::connect(late).unwrap();
    let mut zero = waiting.join().unwrap().unwrap();
    stop.store(true, Ordering::Relaxed);
    let count = silent.join().unwrap();
    assert!(count > 200, "only {count} silent connections");
    one.send(0, b"ok").unwrap();
    assert_eq!(zero.recv(1, 2).unwrap(), b"ok");
}

#[test]
fn many_silent_connections_do_not_stop_the_timeout() {
    let mut config = committee(2).swap_remove(0);
    config.connect_timeout = Duration::from_secs(1);
    let address = config.listener.as_ref().unwrap().local_addr().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let silent = silent_connections(address, Arc::clone(&stop));
    let start = Instant::now();
    let error = TlsTransport::connect(config).err().unwrap().to_string();
    assert!(start.elapsed() < Duration::from_secs(6), "{error}");
    stop.store(true, Ordering::Relaxed);
    silent.join().unwrap();
    assert!(error.contains("too many connections at once"), "{error}");
}

#[test]
fn dropped_connections_are_mentioned_if_a_peer_stays_away() {
    let mut configs = committee(2);
    let absent = configs.pop().unwrap();
    let mut config = configs.pop().unwrap();
    config.connect_timeout = Duration::from_millis(500);
    let stranger = Identity::generate("stranger").unwrap();
    let fingerprint = stranger.fingerprint();
    let zero = config.peers[0].clone();
    let mut talking = TcpStream::connect(("127.0.0.1", zero.port)).unwrap();
    talking.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let probing =
        thread::spawn(move || probe(&zero, &stranger, &hello(1, 2), Duration::from_secs(5)));
    let error = TlsTransport::connect(config).err().unwrap().to_string();
    assert!(error.contains("dropped connections"), "{error}");
    assert!(error.contains(&fingerprint), "{error}");
    assert!(matches!(
        probing.join().unwrap().problem,
        Some(NetError::CertificateRefused { peer: 0, .. })
    ));
    drop(absent);
}

#[test]
fn a_third_party_learns_why_the_set_up_failed() {
    let mut configs = committee(3);
    configs[2].hello.context = "other".into();
    for error in both_fail(configs) {
        match error {
            NetError::HelloMismatch { field, .. } if field.as_ref() == "context" => {}
            NetError::PeerAborted { reason, .. } => assert!(reason.contains("context"), "{reason}"),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_late_party_learns_why_the_set_up_failed() {
    let mut configs = committee(3);
    configs[1].hello.context = "other".into();
    // The last party's port is closed until it starts, long after the others have disagreed.
    let mut late = configs.pop().unwrap();
    let listener = late.listener.take();
    late.listen = Some(listener.as_ref().unwrap().local_addr().unwrap());
    drop(listener);
    let early = thread::spawn(move || both_fail(configs));
    thread::sleep(Duration::from_millis(800));
    match TlsTransport::connect(late).err().unwrap() {
        NetError::HelloMismatch { peer: 1, field, .. } if field.as_ref() == "context" => {}
        NetError::PeerAborted { reason, .. } => assert!(reason.contains("context"), "{reason}"),
        other => panic!("{other}"),
    }
    for (me, error) in early.join().unwrap().into_iter().enumerate() {
        assert!(
            matches!(&error, NetError::HelloMismatch { peer, field, .. } if *peer == 1 - me && field.as_ref() == "context"),
            "{error}"
        );
    }
}

#[test]
fn abort_stops_everybody_with_the_reason() {
    let mut parties = mesh(3);
    let mut two = parties.pop().unwrap();
    let waiting: Vec<_> = parties
        .into_iter()
        .map(|mut party| {
            thread::spawn(move || {
                // Neither waits for the party that aborts.
                let peer = 1 - party.party();
                let error = party.recv(peer, 1).unwrap_err();
                (error, Instant::now(), party.send(peer, b"x").unwrap_err())
            })
        })
        .collect();
    thread::sleep(Duration::from_millis(50));
    let start = Instant::now();
    two.abort("shares do not\nmatch");
    assert!(start.elapsed() < Duration::from_secs(1));
    for thread in waiting {
        let (first, at, second) = thread.join().unwrap();
        assert!(at - start < Duration::from_millis(500));
        for error in [first, second] {
            match error {
                // From the party that aborted, or from the other one, which passes its reason on.
                NetError::PeerAborted { reason, .. } => {
                    assert!(reason.ends_with("shares do not match"), "{reason}");
                }
                other => panic!("{other}"),
            }
        }
    }
    assert!(matches!(
        two.recv(0, 1),
        Err(NetError::Closed { me: 2, .. })
    ));
}

#[test]
fn a_panic_aborts_the_session() {
    let mut parties = mesh(2);
    let mut one = parties.pop().unwrap();
    let zero = parties.pop().unwrap();
    let panicking = thread::Builder::new()
        .name("panics on purpose".into())
        .spawn(move || {
            let _zero = zero;
            std::panic::resume_unwind(Box::new(()));
        })
        .unwrap();
    assert!(matches!(
        one.recv(0, 1),
        Err(NetError::PeerAborted { peer: 0, .. })
    ));
    assert!(panicking.join().is_err());
}

#[test]
fn close_delivers_sent_messages_and_concerns_that_peer_alone() {
    let mut parties = mesh(3);
    let mut two = parties.pop().unwrap();
    let mut one = parties.pop().unwrap();
    let mut zero = parties.pop().unwrap();
    let last = vec![3; 5_000_000];
    two.send(0, &last).unwrap();
    let start = Instant::now();
    two.close();
    two.close();
    assert!(start.elapsed() < Duration::from_secs(1));
    assert_eq!(zero.recv(2, last.len()).unwrap(), last);
    assert!(matches!(
        zero.recv(2, 1),
        Err(NetError::PeerClosed { peer: 2 })
    ));
    assert!(matches!(
        zero.send(2, b"x"),
        Err(NetError::PeerClosed { peer: 2 })
    ));
    zero.send(1, b"still here").unwrap();
    assert_eq!(one.recv(0, 10).unwrap(), b"still here");
}

#[test]
fn a_message_too_long_is_refused_by_its_sender() {
    let mut configs = committee(2);
    for config in &mut configs {
        config.max_message = 1000;
    }
    let mut parties = mesh_of(configs);
    assert!(matches!(
        parties[0].send(1, &[0; 1001]),
        Err(NetError::MessageTooLong {
            peer: 1,
            len: 1001,
            max: 1000
        })
    ));
    parties[0].send(1, &[0; 1000]).unwrap();
    assert_eq!(parties[1].recv(0, 1000).unwrap().len(), 1000);
}

#[test]
fn configurations_that_cannot_work_are_refused_at_once() {
    let refused = |change: &dyn Fn(&mut TlsConfig), words: &str| {
        let mut config = committee(3).swap_remove(0);
        change(&mut config);
        match TlsTransport::connect(config).err().unwrap() {
            NetError::Config { detail } => assert!(detail.contains(words), "{detail}"),
            other => panic!("{other}"),
        }
    };
    refused(&|config| config.hello.party = 1, "we are party 0");
    refused(&|config| config.peers.truncate(2), "party 2 is not listed");
    refused(&|config| config.peers[2].index = 1, "listed twice");
    refused(&|config| config.peers[2].index = 3, "only 3 parties");
    refused(
        &|config| config.peers[0].fingerprint = [0; 32],
        "our key has the fingerprint",
    );
    refused(
        &|config| config.peers[1].fingerprint = config.peers[2].fingerprint,
        "a key of its own",
    );
    refused(
        &|config| config.peers[1].fingerprint = config.peers[0].fingerprint,
        "our own certificate",
    );
    refused(
        &|config| config.hello.context = "x".repeat(70_000),
        "put a digest",
    );
    refused(&|config| config.hello.parties = u32::MAX, "are listed");
    refused(
        &|config| {
            config.listener = None;
            config.peers.remove(0);
        },
        "no port to listen on",
    );
}

/// The process that is killed below: party 1 of the session described in its environment.
#[test]
#[ignore = "run by killed_process_is_noticed_at_once"]
fn doomed_process() {
    let Ok(description) = std::env::var("KQ_DOOMED") else {
        return;
    };
    let parts: Vec<&str> = description.split('|').collect();
    let peer = |index: usize| Peer {
        index,
        host: "127.0.0.1".into(),
        port: parts[1 + 2 * index].parse().unwrap(),
        fingerprint: keyquorum_net::parse_fingerprint(parts[2 + 2 * index]).unwrap(),
    };
    let identity = Identity::load(parts[0].as_ref()).unwrap();
    let config = TlsConfig::new(1, identity, vec![peer(0), peer(1)], hello(1, 2));
    let mut party = TlsTransport::connect(config).unwrap();
    // A long message that the other side will not see the end of.
    while party.send(0, &vec![0; 50_000_000]).is_ok() {}
}

#[test]
fn killed_process_is_noticed_at_once() {
    let mut configs = committee(2);
    let doomed = configs.pop().unwrap();
    let mut config = configs.pop().unwrap();
    config.queue_limit = 1 << 20;
    let key = std::env::temp_dir().join(format!("kq-doomed-{}.pem", std::process::id()));
    doomed.identity.save(&key).unwrap();
    let mut description = key.display().to_string();
    for peer in &config.peers {
        let fingerprint = keyquorum_net::fingerprint_hex(&peer.fingerprint);
        description += &format!("|{}|{fingerprint}", peer.port);
    }
    drop(doomed.listener);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "doomed_process", "--ignored"])
        .env("KQ_DOOMED", description)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let party = TlsTransport::connect(config);
    std::fs::remove_file(&key).unwrap();
    let mut party = party.unwrap();
    party.recv(1, 50_000_000).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let start = Instant::now();
    // Whole messages may still be in the queue.
    let error = (0..100)
        .find_map(|_| party.recv(1, 50_000_000).err())
        .unwrap();
    assert!(matches!(error, NetError::PeerClosed { peer: 1 }), "{error}");
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[test]
fn doctor_finds_no_problem() {
    let threads: Vec<_> = committee(3)
        .into_iter()
        .map(|config| thread::spawn(move || (config.me, doctor(config).unwrap())))
        .collect();
    for thread in threads {
        let (me, report) = thread.join().unwrap();
        let others: Vec<usize> = (0..3).filter(|&index| index != me).collect();
        assert_eq!(report.reached_by, others);
        assert!(report.dropped.is_empty(), "{:?}", report.dropped);
        assert_eq!(
            report
                .probes
                .iter()
                .map(|probe| probe.peer)
                .collect::<Vec<_>>(),
            others
        );
        for probe in report.probes {
            assert!(probe.problem.is_none() && probe.reachable && !probe.in_session);
            assert_eq!(probe.version.as_deref(), Some("0.1.0"));
            assert!(probe.clock_offset.unwrap().abs() < 0.5);
            assert!(probe.fingerprint_seen.is_some() && probe.round_trip.is_some());
            let security = probe.security.unwrap();
            assert_eq!(security.key_exchange, "X25519MLKEM768");
        }
    }
}

#[test]
fn probes_report_the_problem() {
    let mut configs = committee(2);
    let one = configs.pop().unwrap();
    let zero = configs.pop().unwrap();
    let (identity, peer) = (one.identity.clone(), zero.peers[0].clone());
    let quick = Duration::from_millis(300);

    // The port is bound, but no party answers.
    let report = probe(&peer, &identity, &hello(1, 2), quick);
    assert!(report.reachable && report.fingerprint_seen.is_none());
    assert!(matches!(
        report.problem,
        Some(NetError::Connect { peer: 0, .. })
    ));

    let responder = Responder::start(zero).unwrap();
    assert_eq!(responder.address().unwrap().port(), peer.port);
    let mut newer = hello(1, 2);
    newer.version = "0.2.0".into();
    let report = probe(&peer, &identity, &newer, quick);
    assert!(matches!(
        report.problem,
        Some(NetError::HelloMismatch { field, .. }) if field.as_ref() == "version"
    ));
    assert_eq!(report.version.as_deref(), Some("0.1.0"));

    // A probe does not compare contexts.
    let mut other = hello(1, 2);
    other.context = "decrypt".into();
    assert!(probe(&peer, &identity, &other, quick).problem.is_none());
    assert!(responder.wait_for(&[1], quick));

    let mut wrong = peer.clone();
    wrong.fingerprint = [1; 32];
    let report = probe(&wrong, &identity, &hello(1, 2), quick);
    assert!(matches!(
        report.problem,
        Some(NetError::WrongCertificate { peer: 0, .. })
    ));
    assert_eq!(report.fingerprint_seen, Some(peer.fingerprint));

    let stranger = Identity::generate("stranger").unwrap();
    let report = probe(&peer, &stranger, &hello(1, 2), quick);
    assert!(matches!(
        report.problem,
        Some(NetError::CertificateRefused { peer: 0, .. })
    ));

    // A party that dials for a session learns that we are in doctor mode.
    let error = TlsTransport::connect(one).err().unwrap();
    match error {
        NetError::HelloMismatch {
            peer: 0,
            field,
            theirs,
            ..
        } if field.as_ref() == "purpose" => assert_eq!(theirs, "doctor"),
        other => panic!("{other}"),
    }

    drop(responder);
    let report = probe(&peer, &identity, &hello(1, 2), quick);
    assert!(!report.reachable);
    match report.problem {
        // The reason that no party answers, not the timeout.
        Some(NetError::Connect {
            peer: 0, source, ..
        }) => assert_eq!(source.kind(), ErrorKind::ConnectionRefused, "{source}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_party_in_set_up_answers_probes() {
    let mut configs = committee(2);
    let one = configs.pop().unwrap();
    let zero = configs.pop().unwrap();
    let peer = zero.peers[0].clone();
    let identity = one.identity.clone();
    let waiting = thread::spawn(move || TlsTransport::connect(zero));
    let report = probe(&peer, &identity, &hello(1, 2), Duration::from_secs(5));
    assert!(report.problem.is_none() && report.in_session);
    let mut one = TlsTransport::connect(one).unwrap();
    let mut zero = waiting.join().unwrap().unwrap();
    zero.send(1, b"ok").unwrap();
    assert_eq!(one.recv(0, 2).unwrap(), b"ok");
}

#[test]
fn plain_text_gets_nothing_out_of_a_port() {
    let mut config = committee(2).swap_remove(0);
    config.connect_timeout = Duration::from_millis(600);
    let addr = config.listener.as_ref().unwrap().local_addr().unwrap();
    let waiting = thread::spawn(move || TlsTransport::connect(config).err().unwrap());
    let mut socket = TcpStream::connect(addr).unwrap();
    socket.write_all(&[0; 2000]).unwrap();
    let mut answer = Vec::new();
    // An alert at most; a reset is as good.
    let _ = socket.read_to_end(&mut answer);
    assert!(answer.len() < 20, "{answer:?}");
    waiting.join().unwrap();
}
