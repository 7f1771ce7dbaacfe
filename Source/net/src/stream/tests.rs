#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic)] // a failed test may panic

use super::*;
use crate::frame::{Event, Kind};
use crate::identity::Identity;
use crate::tls::TlsParts;
use rustls::crypto::CipherSuiteCommon;
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::crypto::aws_lc_rs::kx_group::X25519MLKEM768;
use rustls::{SupportedCipherSuite, Tls13CipherSuite};
use std::net::TcpListener;
use std::thread;

/// AES-128-GCM whose keys are changed after 50 records in place of 2^24.
fn short_lived_keys() -> SupportedCipherSuite {
    let suite = TLS13_AES_128_GCM_SHA256.tls13().unwrap();
    SupportedCipherSuite::Tls13(Box::leak(Box::new(Tls13CipherSuite {
        common: CipherSuiteCommon {
            confidentiality_limit: 50,
            ..suite.common
        },
        hkdf_provider: suite.hkdf_provider,
        aead_alg: suite.aead_alg,
        quic: None,
    })))
}

#[test]
fn keys_are_changed_in_the_middle_of_a_stream() {
    let patience = Patience {
        deadline: Instant::now() + Duration::from_secs(10),
        cancel: Arc::new(AtomicBool::new(false)),
    };
    let [one, two] = ["one", "two"].map(|name| Identity::generate(name).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let lengths: Vec<usize> = (0..300).map(|i| i * i * 37 % 400_000).collect();
    let expected = lengths.clone();

    let (writer, reader) = (patience.clone(), patience);
    let pinned = two.fingerprint_bytes();
    let listed = Arc::new([one.fingerprint_bytes()]);
    let writing = thread::spawn(move || {
        let parts = TlsParts::with_settings(&one, vec![short_lived_keys()], vec![X25519MLKEM768]);
        let (config, _) = parts.client(pinned).unwrap();
        let socket = TcpStream::connect(address).unwrap();
        let mut stream = Dialled::handshake(socket, config, &writer).unwrap();
        assert_eq!(
            stream.greet(b"hello", &writer).unwrap(),
            Event::Hello(b"hello".to_vec())
        );
        let mut wire = 0;
        for len in lengths {
            wire += stream
                .write_message(
                    &vec![len as u8; len],
                    Duration::from_secs(5),
                    &|| Ok(()),
                    None,
                )
                .unwrap();
        }
        stream.finish(Kind::Close, b"", Duration::from_secs(1));
        stream.wait_until_read(writer.deadline);
        wire
    });

    let parts = TlsParts::with_settings(&two, vec![short_lived_keys()], vec![X25519MLKEM768]);
    let (config, _) = parts.server(listed).unwrap();
    let socket = listener.accept().unwrap().0;
    let mut stream = Accepted::handshake(socket, config, 1 << 20, &reader).unwrap();
    assert_eq!(
        stream.first_event(&reader).unwrap(),
        Event::Hello(b"hello".to_vec())
    );
    stream.answer(Kind::Hello, b"hello", &reader).unwrap();
    stream.stop_waiting().unwrap();
    let mut messages = Vec::new();
    let mut taken = 0;
    let mut reading = Reading::Part;
    while reading != Reading::Stopped {
        if reading == Reading::Nothing {
            thread::sleep(Duration::from_millis(1));
        }
        reading = stream
            .read(&mut |event, wire| match event {
                Some(Event::Message(message)) => {
                    taken += wire;
                    messages.push(message);
                    true
                }
                Some(_) => false,
                None => true,
            })
            .unwrap();
    }
    stream.shut_down();
    assert_eq!(writing.join().unwrap(), taken);
    assert_eq!(messages.len(), expected.len());
    for (message, len) in messages.iter().zip(expected) {
        assert!(message.len() == len && message.iter().all(|&byte| byte == len as u8));
    }
}
