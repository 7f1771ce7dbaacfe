#![allow(clippy::unwrap_used)] // a failed test may panic

use super::*;
use proptest::prelude::*;

/// All events of `bytes`, fed in pieces of the given sizes (cycled), or the first error after them.
fn parse(bytes: &[u8], pieces: &[usize], max_message: usize) -> (Vec<Event>, Option<FrameError>) {
    let mut parser = FrameParser::new(max_message);
    let mut events = Vec::new();
    let mut rest = bytes;
    let mut sizes = pieces.iter().cycle();
    while !rest.is_empty() {
        let size = sizes
            .next()
            .map_or(rest.len(), |&size| size.clamp(1, rest.len()));
        let (mut piece, later) = rest.split_at(size);
        rest = later;
        loop {
            match parser.feed(&mut piece) {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(error) => return (events, Some(error)),
            }
        }
        assert!(piece.is_empty());
    }
    (events, None)
}

fn after_hello(rest: &[u8]) -> Vec<u8> {
    let mut bytes = frame(Kind::Hello, b"hi").unwrap();
    bytes.extend_from_slice(rest);
    bytes
}

fn error_after_hello(rest: &[u8]) -> Option<FrameError> {
    parse(&after_hello(rest), &[], 1000).1
}

#[test]
fn messages_hello_and_close_are_understood() {
    let mut bytes = after_hello(&frame(Kind::DataMore, b"ab").unwrap());
    bytes.extend(frame(Kind::DataLast, b"c").unwrap());
    bytes.extend(frame(Kind::DataLast, b"").unwrap());
    bytes.extend(frame(Kind::Close, b"").unwrap());
    let events = vec![
        Event::Hello(b"hi".to_vec()),
        Event::Message(b"abc".to_vec()),
        Event::Message(Vec::new()),
        Event::Close,
    ];
    assert_eq!(parse(&bytes, &[], 1000), (events, None));
}

#[test]
fn abort_may_interrupt_a_message() {
    let mut bytes = after_hello(&frame(Kind::DataMore, b"ab").unwrap());
    bytes.extend(frame(Kind::Abort, b"no").unwrap());
    let events = vec![Event::Hello(b"hi".to_vec()), Event::Abort("no".into())];
    assert_eq!(parse(&bytes, &[], 1000), (events, None));
}

#[test]
fn bytes_that_no_party_sends_are_refused() {
    assert_eq!(
        error_after_hello(&[0, 0, 0, 0, 9]),
        Some(FrameError::UnknownKind(9))
    );
    assert_eq!(
        error_after_hello(&header(Kind::DataMore, 0).unwrap()),
        Some(FrameError::EmptyPart)
    );
    assert_eq!(
        error_after_hello(&header(Kind::DataLast, 1001).unwrap()),
        Some(FrameError::MessageTooLong { max: 1000 })
    );
    assert_eq!(
        error_after_hello(&frame(Kind::Hello, b"hi").unwrap()),
        Some(FrameError::SecondHello)
    );
    assert_eq!(
        error_after_hello(&header(Kind::Close, 1).unwrap()),
        Some(FrameError::TooLong {
            kind: Kind::Close,
            len: 1,
            max: 0
        })
    );
    assert_eq!(
        error_after_hello(&[0xff, 0xff, 0xff, 0xff, 0]),
        Some(FrameError::TooLong {
            kind: Kind::DataLast,
            len: u32::MAX as usize,
            max: MAX_BODY
        })
    );
    let mut cut = frame(Kind::DataMore, b"ab").unwrap();
    cut.extend(frame(Kind::Close, b"").unwrap());
    assert_eq!(error_after_hello(&cut), Some(FrameError::CloseInMessage));
    let mut late = frame(Kind::Close, b"").unwrap();
    late.push(0);
    assert_eq!(error_after_hello(&late), Some(FrameError::AfterEnd));
    assert_eq!(
        parse(&frame(Kind::DataLast, b"x").unwrap(), &[], 1000).1,
        Some(FrameError::NoHello(Kind::DataLast))
    );
    let mut parts = frame(Kind::DataMore, &[0; 600]).unwrap();
    parts.extend(frame(Kind::DataLast, &[0; 600]).unwrap());
    assert_eq!(
        error_after_hello(&parts),
        Some(FrameError::MessageTooLong { max: 1000 })
    );
}

proptest! {
    #[test]
    fn any_cut_of_a_correct_stream_gives_its_messages(
        messages in prop::collection::vec(prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..4), 0..6),
        pieces in prop::collection::vec(1usize..50, 1..8),
    ) {
        let mut bytes = frame(Kind::Hello, b"hi").unwrap();
        let mut expected = vec![Event::Hello(b"hi".to_vec())];
        for parts in &messages {
            let (last, first) = match parts.split_last() {
                Some((last, first)) => (last.as_slice(), first),
                None => (&[][..], &[][..]),
            };
            for part in first {
                bytes.extend(frame(Kind::DataMore, part).unwrap());
            }
            bytes.extend(frame(Kind::DataLast, last).unwrap());
            expected.push(Event::Message(parts.concat()));
        }
        prop_assert_eq!(parse(&bytes, &pieces, 1000), (expected, None));
    }

    #[test]
    fn garbage_never_panics_and_reads_alike_however_cut(
        bytes in prop::collection::vec(prop_oneof![0u8..6, any::<u8>()], 0..300),
        pieces in prop::collection::vec(1usize..20, 1..8),
        max_message in 0usize..100,
    ) {
        let whole = parse(&bytes, &[], max_message);
        prop_assert_eq!(parse(&bytes, &pieces, max_message), whole.clone());
        let hello = after_hello(&bytes);
        let (events, _) = parse(&hello, &pieces, max_message);
        prop_assert_eq!(parse(&hello, &[], max_message).0, events.clone());
        for event in events {
            if let Event::Message(message) = event {
                prop_assert!(message.len() <= max_message);
            }
        }
    }
}

#[test]
fn missing_parts_blocked_a_body_that_fits_no_frame_has_no_header() {
    assert!(header(Kind::DataLast, MAX_BODY).is_ok());
    for len in [MAX_BODY + 1, 1 << 32, usize::MAX] {
        assert!(matches!(
            header(Kind::DataLast, len),
            Err(NetError::Internal { .. })
        ));
    }
}
