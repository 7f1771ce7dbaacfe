//! Messages of strangers and peers, and identity files, under random mutations: see the crate `keyquorum-fuzz`.
#![allow(clippy::unwrap_used)] // a failed test may panic

use keyquorum_fuzz::{Measured, Outcome, Target, fuzz};

use crate::error::one_line;
use crate::frame::{Event, FrameError, FrameParser, Kind, MAX_FRAME, MAX_HELLO, frame};
use crate::hello::{Greeting, Purpose};
use crate::identity::Identity;
use crate::{Hello, parse_fingerprint};

#[global_allocator]
static ALLOCATOR: Measured = Measured;

const MAX_MESSAGE: usize = 100_000;

fn hello(context: &str) -> Hello {
    Hello {
        version: "0.1.0".into(),
        committee: [7; 32],
        context: context.into(),
        protocol: "rep-field".into(),
        domain: "F_17".into(),
        party: 1,
        parties: 3,
    }
}

/// All events of a stream that arrives in pieces of `step` bytes, or what was refused after them.
fn events(bytes: &[u8], step: usize) -> (Vec<Event>, Option<FrameError>) {
    let mut parser = FrameParser::new(MAX_MESSAGE);
    let mut events = Vec::new();
    for mut piece in bytes.chunks(step) {
        loop {
            match parser.feed(&mut piece) {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(error) => return (events, Some(error)),
            }
        }
    }
    (events, None)
}

/// Writes the true length into the header of the last frame.
#[allow(clippy::ptr_arg)] // the type that `Target` has
fn mend_last_frame(bytes: &mut Vec<u8>) {
    let mut at = 0;
    while let Some(rest) = bytes.get_mut(at..)
        && let Some((length, body)) = rest.split_first_chunk_mut::<4>()
    {
        let stated = u32::from_le_bytes(*length) as usize;
        let there = body.len().saturating_sub(1);
        if stated >= there {
            *length = (there as u32).to_le_bytes();
            return;
        }
        at += 5 + stated;
    }
}

#[test]
fn streams_of_frames() {
    let stream = |frames: &[(Kind, &[u8])]| -> Vec<u8> {
        let mut bytes = frame(
            Kind::Hello,
            &hello("keygen").encode(Purpose::Session, 0).unwrap(),
        )
        .unwrap();
        frames
            .iter()
            .for_each(|(kind, body)| bytes.extend(frame(*kind, body).unwrap()));
        bytes
    };
    let target = Target {
        name: "frames",
        // Two runs of the parser, each with memory for one frame, which is reserved when its header has come, and a message that grows by doubling.
        cap: 2 * (MAX_FRAME + 2 * MAX_MESSAGE),
        corpus: vec![
            stream(&[]),
            stream(&[(Kind::DataLast, b"a message"), (Kind::Close, b"")]),
            stream(&[
                (Kind::DataMore, &[1; 70]),
                (Kind::DataMore, &[2; 30]),
                (Kind::DataLast, b""),
                (Kind::DataLast, &[3; 40]),
            ]),
            stream(&[
                (Kind::DataMore, b"a part"),
                (Kind::Abort, "größer".as_bytes()),
            ]),
            frame(Kind::Abort, b"no").unwrap(),
        ],
        mend: Some(mend_last_frame),
        inputs: None,
    };
    fuzz(&target, |bytes| {
        let (whole, refused) = events(bytes, usize::MAX);
        let step = 1 + bytes.last().map_or(0, |byte| usize::from(*byte) % 50);
        assert_eq!(events(bytes, step), (whole.clone(), refused));
        for event in &whole {
            match event {
                Event::Message(message) => assert!(message.len() <= MAX_MESSAGE),
                Event::Hello(body) => assert!(body.len() <= MAX_HELLO),
                Event::Abort(reason) => assert!(!one_line(reason, 500).contains('\n')),
                Event::Close => {}
            }
        }
        Outcome::from(&refused.map_or(Ok(()), Err))
    });
}

#[test]
fn hellos() {
    let ours = hello("keygen 8192");
    let target = Target {
        name: "hello",
        cap: 4 * MAX_HELLO,
        corpus: vec![
            ours.encode(Purpose::Session, 0).unwrap(),
            ours.encode(Purpose::Probe, 1).unwrap(),
            hello("").encode(Purpose::Session, 7).unwrap(),
            hello(&"zwölf ".repeat(30))
                .encode(Purpose::Session, 2)
                .unwrap(),
        ],
        mend: None,
        inputs: None,
    };
    fuzz(&target, |bytes| {
        let read = Greeting::decode(bytes);
        let outcome = Outcome::from(&read);
        let error = match read {
            Ok(greeting) => ours.compare(1, &greeting).err(),
            Err(error) => Some(error.of_peer(1)),
        };
        if let Some(error) = error {
            let text = error.to_string();
            assert!(!text.contains('\n') && text.len() < 4000, "{text}");
        }
        outcome
    });
}

#[test]
fn identities() {
    let folder = std::env::temp_dir().join(format!("kq-fuzz-identity-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let corpus = [0, 1].map(|party| {
        let path = folder.join(format!("{party}.pem"));
        let identity = Identity::generate(&format!("party {party}")).unwrap();
        identity.save(&path).unwrap();
        std::fs::read(path).unwrap()
    });
    std::fs::remove_dir_all(&folder).unwrap();
    let target = Target {
        name: "identity",
        cap: 1 << 18,
        corpus: corpus.to_vec(),
        mend: None,
        inputs: Some(5_000),
    };
    fuzz(&target, |bytes| {
        let Ok(text) = std::str::from_utf8(bytes) else {
            return Outcome::Refused;
        };
        let read = Identity::parse(text);
        if let Err(error) = &read {
            assert!(!error.contains("BEGIN") && !error.contains('\n'), "{error}");
        }
        Outcome::from(&read)
    });
}

#[test]
fn fingerprints() {
    let digits = "0123456789abcdef".repeat(4);
    let colons: String = (0..32).map(|i| format!("{i:02X}:")).collect();
    let target = Target {
        name: "fingerprint",
        cap: 1 << 16,
        corpus: vec![digits.into_bytes(), colons.into_bytes()],
        mend: None,
        inputs: None,
    };
    fuzz(&target, |bytes| {
        Outcome::from(&parse_fingerprint(&String::from_utf8_lossy(bytes)))
    });
}
