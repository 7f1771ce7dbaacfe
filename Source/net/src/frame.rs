//! Frames: the parts of the byte stream between two parties.
//!
//! A frame is a little-endian `u32` length of its body, a `u8` kind and the body. A message is any number of
//! `DataMore` frames and one `DataLast` frame. The parser takes the stream in pieces of any size, keeps no more
//! than one message, and refuses everything that a correct party does not send.

#[cfg(test)]
mod tests;

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
    /// The sender's identity and the run that it starts; the first frame of every connection, and only that.
    Hello = 2,
    /// The sender gives up; the body is the reason.
    Abort = 3,
    /// The sender has nothing more to send.
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

/// A message or a control frame of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Message(Vec<u8>),
    Hello(Vec<u8>),
    Abort(String),
    Close,
}

/// Bytes that no correct party sends.
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
    EarlyData,
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

    /// Completes the header and checks it.
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
        self.check(kind, len)?;
        let body = (kind, len);
        self.body = Some(body);
        Ok(Some(body))
    }

    fn check(&self, kind: Kind, len: usize) -> Result<(), FrameError> {
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
