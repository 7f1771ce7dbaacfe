//! Frames: what the byte stream between two parties is cut into.
//!
//! A frame is a little-endian `u32` length of its body, a `u8` kind and the body. A message is any number of
//! `DataMore` frames and one `DataLast` frame. The parser takes the stream in pieces of any size, keeps no more
//! than one message, and refuses everything that a correct party does not send.

use crate::NetError;

/// Bytes before the body of a frame.
pub(crate) const HEADER: usize = 5;

/// Most bytes of a whole frame, header included.
pub(crate) const MAX_FRAME: usize = 1 << 20;

/// Most bytes of the body of a frame.
pub(crate) const MAX_BODY: usize = MAX_FRAME - HEADER;

/// Most bytes of a hello.
pub(crate) const MAX_HELLO: usize = 64 * 1024;

/// Most bytes of an abort reason: [`MAX_REASON`] characters of UTF-8.
pub(crate) const MAX_ABORT: usize = 4 * MAX_REASON;

/// Longest abort reason that is carried to the peers, in characters.
pub(crate) const MAX_REASON: usize = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The last or only part of a message.
    DataLast = 0,
    /// A part of a message that goes on.
    DataMore = 1,
    /// Who the sender is and what it is about to run; first on every connection, and only there.
    Hello = 2,
    /// The sender gives up; the body is the reason.
    Abort = 3,
    /// The sender has nothing more to say.
    Close = 4,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        [
            Self::DataLast,
            Self::DataMore,
            Self::Hello,
            Self::Abort,
            Self::Close,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == byte)
    }
}

/// The header of a frame with a body of `len` bytes, `len <= MAX_BODY`.
pub(crate) fn header(kind: Kind, len: usize) -> Result<[u8; HEADER], NetError> {
    let len = u32::try_from(len)
        .ok()
        .filter(|len| widen(*len) <= MAX_BODY)
        .ok_or(NetError::internal("a frame longer than a frame may be"))?;
    let [a, b, c, d] = len.to_le_bytes();
    Ok([a, b, c, d, kind as u8])
}

/// A length of the wire format as one of this machine.
pub(crate) const fn widen(len: u32) -> usize {
    const { assert!(usize::BITS >= u32::BITS) };
    len as usize
}

/// A whole frame.
pub(crate) fn frame(kind: Kind, body: &[u8]) -> Result<Vec<u8>, NetError> {
    let header = header(kind, body.len())?;
    let mut bytes = Vec::with_capacity(HEADER + body.len());
    bytes.extend_from_slice(&header);
    bytes.extend_from_slice(body);
    Ok(bytes)
}

/// What a peer said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Message(Vec<u8>),
    Hello(Vec<u8>),
    Abort(String),
    Close,
}

/// What a correct party never sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("kind {0} is unknown")]
    UnknownKind(u8),
    #[error("{kind:?} frame of {len} bytes, at most {max} are allowed")]
    TooLong { kind: Kind, len: usize, max: usize },
    #[error("message of more than {max} bytes (max_message)")]
    MessageTooLong { max: usize },
    #[error("message part without content")]
    EmptyPart,
    #[error("{0:?} frame before the hello")]
    NoHello(Kind),
    #[error("second hello")]
    SecondHello,
    #[error("close in the middle of a message")]
    CloseInMessage,
    #[error("data before our hello")]
    Hasty,
    #[error("data after the end")]
    AfterEnd,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Hello,
    Open,
    Ended,
}

/// Turns the bytes of one connection into events.
pub(crate) struct FrameParser {
    phase: Phase,
    header: [u8; HEADER],
    header_len: usize,
    /// Kind and bytes still to come of the frame whose header is complete.
    body: Option<(Kind, usize)>,
    /// The message under way, from the first `DataMore` on.
    message: Vec<u8>,
    in_message: bool,
    /// The body of a control frame under way.
    control: Vec<u8>,
    max_message: usize,
}

impl FrameParser {
    /// A parser at the start of a connection: it expects a hello first.
    pub(crate) fn new(max_message: usize) -> Self {
        Self {
            phase: Phase::Hello,
            header: [0; HEADER],
            header_len: 0,
            body: None,
            message: Vec::new(),
            in_message: false,
            control: Vec::new(),
            max_message,
        }
    }

    /// Whether a frame or a message is incomplete.
    pub(crate) fn is_midway(&self) -> bool {
        self.header_len > 0 || self.body.is_some() || self.in_message
    }

    /// Takes bytes off the front of `input` up to the end of the next event; `None` when all of `input` is used up.
    pub(crate) fn feed(&mut self, input: &mut &[u8]) -> Result<Option<Event>, FrameError> {
        loop {
            let (kind, missing) = match self.body {
                Some(body) => body,
                None => match self.take_header(input)? {
                    Some(body) => body,
                    None => return Ok(None),
                },
            };
            let (now, rest) = input.split_at(missing.min(input.len()));
            *input = rest;
            let sink = match kind {
                Kind::DataLast | Kind::DataMore => &mut self.message,
                Kind::Hello | Kind::Abort | Kind::Close => &mut self.control,
            };
            if now.len() < missing {
                // Grows by doubling, so a header alone never makes us reserve more than one frame.
                sink.reserve(missing);
            }
            sink.extend_from_slice(now);
            let missing = missing - now.len();
            if missing > 0 {
                self.body = Some((kind, missing));
                return Ok(None);
            }
            self.body = None;
            if let Some(event) = self.finish(kind) {
                return Ok(Some(event));
            }
        }
    }

    /// Completes the header and judges it.
    fn take_header(&mut self, input: &mut &[u8]) -> Result<Option<(Kind, usize)>, FrameError> {
        if self.phase == Phase::Ended && !input.is_empty() {
            return Err(FrameError::AfterEnd);
        }
        for slot in self.header.iter_mut().skip(self.header_len) {
            let Some((&byte, rest)) = input.split_first() else {
                return Ok(None);
            };
            *slot = byte;
            *input = rest;
            self.header_len += 1;
        }
        self.header_len = 0;
        let [a, b, c, d, kind] = self.header;
        let len = widen(u32::from_le_bytes([a, b, c, d]));
        let kind = Kind::from_byte(kind).ok_or(FrameError::UnknownKind(kind))?;
        self.judge(kind, len)?;
        let body = (kind, len);
        self.body = Some(body);
        Ok(Some(body))
    }

    fn judge(&self, kind: Kind, len: usize) -> Result<(), FrameError> {
        let max = match kind {
            Kind::DataLast | Kind::DataMore => MAX_BODY,
            Kind::Hello => MAX_HELLO,
            Kind::Abort => MAX_ABORT,
            Kind::Close => 0,
        };
        if len > max {
            return Err(FrameError::TooLong { kind, len, max });
        }
        match (self.phase, kind) {
            // A party may refuse us before it introduces itself.
            (Phase::Hello, Kind::Hello | Kind::Abort) => Ok(()),
            (Phase::Hello, _) => Err(FrameError::NoHello(kind)),
            (Phase::Open, Kind::Hello) => Err(FrameError::SecondHello),
            (Phase::Open, Kind::Close) if self.in_message => Err(FrameError::CloseInMessage),
            (Phase::Open, Kind::DataMore) if len == 0 => Err(FrameError::EmptyPart),
            (Phase::Open, Kind::DataLast | Kind::DataMore)
                if self.message.len() + len > self.max_message =>
            {
                Err(FrameError::MessageTooLong {
                    max: self.max_message,
                })
            }
            (Phase::Open, _) => Ok(()),
            (Phase::Ended, _) => Err(FrameError::AfterEnd),
        }
    }

    fn finish(&mut self, kind: Kind) -> Option<Event> {
        match kind {
            Kind::DataMore => {
                self.in_message = true;
                None
            }
            Kind::DataLast => {
                self.in_message = false;
                Some(Event::Message(std::mem::take(&mut self.message)))
            }
            Kind::Hello => {
                self.phase = Phase::Open;
                Some(Event::Hello(std::mem::take(&mut self.control)))
            }
            Kind::Abort => {
                self.phase = Phase::Ended;
                let reason = String::from_utf8_lossy(&self.control).into_owned();
                self.control = Vec::new();
                Some(Event::Abort(reason))
            }
            Kind::Close => {
                self.phase = Phase::Ended;
                Some(Event::Close)
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All events of `bytes`, fed in pieces of the given sizes (cycled), or the first error after them.
    fn parse(
        bytes: &[u8],
        pieces: &[usize],
        max_message: usize,
    ) -> (Vec<Event>, Option<FrameError>) {
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
    fn what_no_party_sends_is_refused() {
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
    fn finding_11_blocked_a_body_that_fits_no_frame_has_no_header() {
        assert!(header(Kind::DataLast, MAX_BODY).is_ok());
        for len in [MAX_BODY + 1, 1 << 32, usize::MAX] {
            assert!(matches!(
                header(Kind::DataLast, len),
                Err(NetError::Internal { .. })
            ));
        }
    }
}
