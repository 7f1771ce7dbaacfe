//! The accepting end of a connection, which reads.

use std::io::{self, ErrorKind, Read};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{
    AppDataRecord, ConnectionState, EncodeError, EncryptError, InsufficientSizeError,
};

use super::{
    Patience, SLICE, StreamError, end_of_stream, linger, outside, prepare, read_patiently,
    write_patiently,
};
use crate::frame::{Event, FrameError, FrameParser, Kind, frame};

/// Bytes read from the socket at once.
const READ_BUFFER: usize = 256 * 1024;

/// Takes decrypted bytes, together with the parser and the count of wire bytes since the last event.
type Sink<'a> = dyn FnMut(&mut FrameParser, &mut &[u8], &mut usize) -> Result<(), FrameError> + 'a;

/// Takes events: see [`Accepted::read`].
pub(crate) type Events<'a> = dyn FnMut(Option<Event>, usize) -> bool + 'a;

/// How a read ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Nothing had come.
    Nothing,
    /// All that had come was read.
    All,
    /// There may be more.
    Part,
    /// The receiver of events stopped it.
    Stopped,
}

/// What the accepting end can do next.
enum Step {
    /// Application data were passed on, or a handshake message was answered: ask again.
    Again,
    /// More bytes of the other end are needed.
    NeedBytes,
    /// The other end has closed the TLS connection.
    End,
}

/// The accepting end, which reads.
pub(crate) struct Accepted {
    connection: UnbufferedServerConnection,
    socket: TcpStream,
    buffer: Box<[u8]>,
    /// The bytes `buffer[start..end]` are to be processed.
    start: usize,
    end: usize,
    /// Encrypted bytes to be written.
    outgoing: Vec<u8>,
    parser: FrameParser,
    /// The first event, if it came early.
    first: Option<Event>,
    /// Bytes taken off the wire since the last event.
    wire: usize,
}

impl Accepted {
    /// Does the TLS handshake. `max_message` bounds the messages that will be read later.
    pub(crate) fn handshake(
        socket: TcpStream,
        config: Arc<ServerConfig>,
        max_message: usize,
        patience: &Patience,
    ) -> Result<Self, StreamError> {
        prepare(&socket)?;
        let mut this = Self {
            connection: UnbufferedServerConnection::new(config)?,
            socket,
            buffer: vec![0; READ_BUFFER].into_boxed_slice(),
            start: 0,
            end: 0,
            outgoing: Vec::new(),
            parser: FrameParser::new(max_message),
            first: None,
            wire: 0,
        };
        // What follows the last handshake message may be read together with it.
        let mut first = None;
        while this.connection.is_handshaking() {
            match this.step(Some(patience), &mut |parser, bytes, _| {
                keep_first(&mut first, parser, bytes)
            }) {
                Ok(Step::Again) => {}
                Ok(Step::NeedBytes) => drop(this.fill(Some(patience))?),
                Ok(Step::End) => return Err(end_of_stream().into()),
                Err(error) => {
                    if matches!(error, StreamError::Tls(_)) {
                        this.send_alert(patience);
                    }
                    return Err(error);
                }
            }
        }
        this.first = first;
        Ok(this)
    }

    /// Sends the alert that says why the handshake failed: the failed step has queued it.
    fn send_alert(&mut self, patience: &Patience) {
        while matches!(
            self.step(Some(patience), &mut |_, _, _| Ok(())),
            Ok(Step::Again)
        ) {}
        let _ = write_patiently(&mut self.socket, &self.outgoing, patience);
        linger(&mut self.socket, 2 * SLICE);
    }

    /// DER of the certificate that the other end showed.
    pub(crate) fn peer_certificate(&self) -> Option<&[u8]> {
        self.connection
            .peer_certificates()
            .and_then(|chain| chain.first())
            .map(AsRef::as_ref)
    }

    /// A second handle of the socket.
    pub(crate) fn socket(&self) -> io::Result<TcpStream> {
        self.socket.try_clone()
    }

    /// Waits for the first frame.
    pub(crate) fn first_event(&mut self, patience: &Patience) -> Result<Event, StreamError> {
        let mut first = self.first.take();
        loop {
            patience.check()?;
            if let Some(event) = first {
                // What was taken off the wire until now is not part of a message.
                self.wire = 0;
                return Ok(event);
            }
            match self.step(Some(patience), &mut |parser, bytes, _| {
                keep_first(&mut first, parser, bytes)
            })? {
                Step::Again => {}
                Step::NeedBytes => drop(self.fill(Some(patience))?),
                Step::End => return Err(end_of_stream().into()),
            }
        }
    }

    /// Sends one frame.
    pub(crate) fn answer(
        &mut self,
        kind: Kind,
        body: &[u8],
        patience: &Patience,
    ) -> Result<(), StreamError> {
        let plain = frame(kind, body).map_err(StreamError::Internal)?;
        let window = self.buffer.get_mut(self.start..self.end);
        let status = self
            .connection
            .process_tls_records(window.ok_or_else(|| StreamError::Internal(outside()))?);
        let discard = status.discard;
        if let ConnectionState::WriteTraffic(mut traffic) = status.state? {
            grow_until_it_fits(&mut self.outgoing, |space| {
                traffic.encrypt(&plain, space).map_err(|error| match error {
                    EncryptError::InsufficientSize(size) => Some(size),
                    EncryptError::EncryptExhausted => None,
                })
            })?;
        } else {
            return Err(FrameError::EarlyData.into());
        }
        self.start += discard;
        let sent = write_patiently(&mut self.socket, &self.outgoing, patience);
        self.outgoing.clear();
        Ok(sent?)
    }

    /// Closes after a refusal so that the other end can still read it.
    pub(crate) fn close_gently(mut self) {
        linger(&mut self.socket, 2 * SLICE);
    }

    /// From now on nothing here waits: the set-up of this connection is over.
    pub(crate) fn stop_waiting(&self) -> io::Result<()> {
        self.socket.set_nonblocking(true)
    }

    /// Reads once, and passes on what came. `events` gets each event with the bytes that it took on the wire, and `None`
    /// when a part of a message has come; it returns whether to go on. The end of the stream is an error.
    pub(crate) fn read(&mut self, events: &mut Events<'_>) -> Result<Reading, StreamError> {
        // Something may have come together with the handshake.
        if self.start < self.end && !self.pass_on(events)? {
            return Ok(Reading::Stopped);
        }
        let Some((read, space)) = self.fill(None)? else {
            return Ok(Reading::Nothing);
        };
        if !self.pass_on(events)? || (self.parser.is_midway() && !events(None, self.wire)) {
            return Ok(Reading::Stopped);
        }
        Ok(if read < space {
            Reading::All
        } else {
            Reading::Part
        })
    }

    /// Passes on what is in the buffer, up to the last whole record; returns whether to go on.
    fn pass_on(&mut self, events: &mut Events<'_>) -> Result<bool, StreamError> {
        let mut go_on = true;
        loop {
            let step = self.step(None, &mut |parser, bytes, wire| {
                while go_on {
                    match parser.feed(bytes)? {
                        Some(event) => go_on = events(Some(event), std::mem::take(wire)),
                        None => break,
                    }
                }
                Ok(())
            })?;
            match step {
                _ if !go_on => return Ok(false),
                Step::Again => {}
                Step::NeedBytes => return Ok(true),
                Step::End => return Err(end_of_stream().into()),
            }
        }
    }

    /// Ends the connection in both directions.
    pub(crate) fn shut_down(&self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Processes the buffer up to the next record with data, which goes to `sink`.
    fn step(
        &mut self,
        patience: Option<&Patience>,
        sink: &mut Sink<'_>,
    ) -> Result<Step, StreamError> {
        let window = self.buffer.get_mut(self.start..self.end);
        let status = self
            .connection
            .process_tls_records(window.ok_or_else(|| StreamError::Internal(outside()))?);
        let mut discard = status.discard;
        let mut step = Step::Again;
        let mut result = Ok(());
        match status.state {
            Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                self.wire += discard;
                while let (Ok(()), Some(record)) = (&result, traffic.next_record()) {
                    let AppDataRecord {
                        discard: more,
                        mut payload,
                    } = record?;
                    discard += more;
                    self.wire += more;
                    result =
                        sink(&mut self.parser, &mut payload, &mut self.wire).map_err(Into::into);
                }
                self.start += discard;
                return result.map(|()| step);
            }
            Ok(ConnectionState::EncodeTlsData(mut data)) => {
                grow_until_it_fits(&mut self.outgoing, |space| {
                    data.encode(space).map_err(|error| match error {
                        EncodeError::InsufficientSize(size) => Some(size),
                        EncodeError::AlreadyEncoded => None,
                    })
                })?;
            }
            Ok(ConnectionState::TransmitTlsData(data)) => {
                // After set-up the TLS library sends nothing by itself: its answers wait for data of ours, which never come.
                let Some(patience) = patience else {
                    return Err(
                        rustls::Error::General("TLS answers after set-up".to_owned()).into(),
                    );
                };
                write_patiently(&mut self.socket, &self.outgoing, patience)?;
                self.outgoing.clear();
                data.done();
            }
            Ok(ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_)) => {
                step = Step::NeedBytes;
            }
            Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => step = Step::End,
            // Early data are off, and no other state exists today.
            Ok(_) => {
                return Err(rustls::Error::General("unexpected TLS state".to_owned()).into());
            }
            Err(error) => result = Err(error.into()),
        }
        self.start += discard;
        self.wire += discard;
        result.map(|()| step)
    }

    /// Reads more bytes: at least one with `patience`; without, the bytes that are there (`None` if there are none). Returns how many it
    /// read, and the size of the buffer for them.
    fn fill(&mut self, patience: Option<&Patience>) -> Result<Option<(usize, usize)>, StreamError> {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        } else if self.start > 0 {
            // At most a part of one record is left.
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let space = self
            .buffer
            .get_mut(self.end..)
            .ok_or_else(|| StreamError::Internal(outside()))?;
        if space.is_empty() {
            return Err(rustls::Error::General("TLS record too long".to_owned()).into());
        }
        let read = match patience {
            Some(patience) => {
                patience.check()?;
                read_patiently(&mut self.socket, space, patience)?
            }
            None => loop {
                match self.socket.read(space) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                    other => break other?,
                }
            },
        };
        if read == 0 {
            return Err(end_of_stream().into());
        }
        self.end += read;
        Ok(Some((read, space.len())))
    }
}

/// Keeps the first event; the other end must not send more before our answer.
fn keep_first(
    first: &mut Option<Event>,
    parser: &mut FrameParser,
    bytes: &mut &[u8],
) -> Result<(), FrameError> {
    while let Some(event) = parser.feed(bytes)? {
        if first.replace(event).is_some() {
            return Err(FrameError::EarlyData);
        }
    }
    Ok(())
}

/// Appends to `out` what `encode` writes; it gets more space for as long as it asks for it (`Err(None)` is a failure).
fn grow_until_it_fits(
    out: &mut Vec<u8>,
    mut encode: impl FnMut(&mut [u8]) -> Result<usize, Option<InsufficientSizeError>>,
) -> Result<(), StreamError> {
    let used = out.len();
    loop {
        let space = out.get_mut(used..);
        match encode(space.ok_or_else(|| StreamError::Internal(outside()))?) {
            Ok(written) => {
                out.truncate(used + written);
                return Ok(());
            }
            Err(Some(InsufficientSizeError { required_size }))
                if out.len() < used + required_size =>
            {
                out.resize(used + required_size, 0);
            }
            Err(_) => {
                let error = rustls::Error::General("TLS encoding failed".to_owned());
                return Err(error.into());
            }
        }
    }
}
