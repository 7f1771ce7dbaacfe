//! One TLS connection, from the side that dialled it (and writes) and from the side that accepted it (and reads).
//!
//! Data flow one way on each connection. During set-up every wait is cut into slices of [`SLICE`], between which the
//! caller's [`Patience`] is asked; afterwards the reading side waits without limit (its owner shuts the socket down to
//! end it), and the writing side asks its caller between slices.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{
    AppDataRecord, ConnectionState, EncodeError, EncryptError, InsufficientSizeError,
};
use rustls::{ClientConfig, ClientConnection, ServerConfig};

use crate::NetError;
use crate::frame::{Event, FrameError, FrameParser, HEADER, Kind, MAX_BODY, frame, header};
use crate::inbox::SLOWEST_LINK;
use crate::tls::server_name;

/// Longest wait in one system call before the caller is asked whether to go on.
pub(crate) const SLICE: Duration = Duration::from_millis(100);

/// Bytes of plain text that are encrypted before they are written: whole TLS records, small enough for the cache.
const PIECE: usize = 256 * 1024;

/// Bytes read from the socket at once.
const READ_BUFFER: usize = 256 * 1024;

/// How a connection fails.
#[derive(Debug)]
pub(crate) enum StreamError {
    Io(io::Error),
    Tls(rustls::Error),
    Frame(FrameError),
}

impl From<io::Error> for StreamError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<rustls::Error> for StreamError {
    fn from(error: rustls::Error) -> Self {
        Self::Tls(error)
    }
}

impl From<FrameError> for StreamError {
    fn from(error: FrameError) -> Self {
        Self::Frame(error)
    }
}

impl StreamError {
    /// The failure as an I/O error, to be shown.
    pub(crate) fn into_io(self) -> io::Error {
        match self {
            Self::Io(error) => error,
            Self::Tls(error) => io::Error::new(ErrorKind::InvalidData, error),
            Self::Frame(error) => io::Error::new(ErrorKind::InvalidData, error),
        }
    }
}

/// How long set-up may wait.
#[derive(Clone)]
pub(crate) struct Patience {
    pub(crate) deadline: Instant,
    pub(crate) cancel: Arc<AtomicBool>,
}

impl Patience {
    pub(crate) fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    pub(crate) fn is_over(&self) -> bool {
        self.cancel.load(Ordering::Relaxed) || self.left().is_zero()
    }

    fn check(&self) -> io::Result<()> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(io::Error::new(
                ErrorKind::Interrupted,
                "set-up was given up",
            ));
        }
        if self.left().is_zero() {
            return Err(io::Error::new(ErrorKind::TimedOut, "no answer in time"));
        }
        Ok(())
    }

    /// The same, but at most `limit` from now.
    pub(crate) fn at_most(&self, limit: Duration) -> Self {
        Self {
            deadline: self.deadline.min(Instant::now() + limit),
            cancel: Arc::clone(&self.cancel),
        }
    }
}

fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn end_of_stream() -> io::Error {
    io::Error::new(
        ErrorKind::UnexpectedEof,
        "the other end closed the connection",
    )
}

/// Prepares a fresh socket for set-up. Buffer sizes are left to the system, whose automatic tuning reaches more than
/// a program may ask for.
fn prepare(socket: &TcpStream) -> io::Result<()> {
    socket.set_nonblocking(false)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(SLICE))?;
    socket.set_write_timeout(Some(SLICE))
}

/// Reads once, with patience. `Ok(0)` is the end of the stream.
fn read_patiently(
    socket: &mut TcpStream,
    buffer: &mut [u8],
    patience: &Patience,
) -> io::Result<usize> {
    loop {
        match socket.read(buffer) {
            Err(error) if is_wait(&error) => patience.check()?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Writes all, with patience.
fn write_patiently(
    socket: &mut TcpStream,
    mut bytes: &[u8],
    patience: &Patience,
) -> io::Result<()> {
    while !bytes.is_empty() {
        match socket.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if is_wait(&error) => patience.check()?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Ends our direction and reads what is left of the other until its end, for at most `limit`: a socket closed with
/// unread bytes would be reset, and the other end might lose what we said last.
fn linger(socket: &mut TcpStream, limit: Duration) {
    let patience = Patience {
        deadline: Instant::now() + limit,
        cancel: Arc::new(AtomicBool::new(false)),
    };
    if socket.shutdown(Shutdown::Write).is_err() {
        return;
    }
    let mut sink = [0; 4096];
    while matches!(read_patiently(socket, &mut sink, &patience), Ok(1..)) && !patience.is_over() {}
}

/// How a write to a peer fails.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// The session ended meanwhile.
    Ended(NetError),
    /// The peer took nothing for too long.
    Stalled,
    Io(io::Error),
}

/// The dialling end: it writes.
pub(crate) struct Dialled {
    connection: ClientConnection,
    socket: TcpStream,
    /// A write failed midway, so nothing more can be said on this connection.
    broken: bool,
}

impl Dialled {
    /// Does the TLS handshake.
    pub(crate) fn handshake(
        mut socket: TcpStream,
        config: Arc<ClientConfig>,
        patience: &Patience,
    ) -> Result<Self, StreamError> {
        prepare(&socket)?;
        let mut connection = ClientConnection::new(config, server_name()?)?;
        // Everything is flushed at once.
        connection.set_buffer_limit(None);
        while connection.is_handshaking() {
            if connection.wants_write() {
                write_tls_patiently(&mut connection, &mut socket, patience)?;
                continue;
            }
            if let Err(error) = read_tls_patiently(&mut connection, &mut socket, patience) {
                if matches!(error, StreamError::Tls(_)) {
                    // Tells the other end why, as far as it still listens.
                    let _ = write_tls_patiently(&mut connection, &mut socket, patience);
                    linger(&mut socket, SLICE);
                }
                return Err(error);
            }
        }
        // Our last flight. If the other end has gone already, its alert tells why when we read.
        let _ = write_tls_patiently(&mut connection, &mut socket, patience);
        Ok(Self {
            connection,
            socket,
            broken: false,
        })
    }

    /// Says hello and waits for the first frame of the other end.
    pub(crate) fn greet(
        &mut self,
        hello: &[u8],
        patience: &Patience,
    ) -> Result<Event, StreamError> {
        self.connection
            .writer()
            .write_all(&frame(Kind::Hello, hello))?;
        // As above: a refusal shows when we read.
        let _ = write_tls_patiently(&mut self.connection, &mut self.socket, patience);
        let mut parser = FrameParser::new(0);
        let mut buffer = [0; 4096];
        loop {
            match self.connection.reader().read(&mut buffer) {
                Ok(0) => return Err(end_of_stream().into()),
                Ok(len) => {
                    let mut bytes = buffer.get(..len).unwrap_or_default();
                    if let Some(event) = parser.feed(&mut bytes)? {
                        return Ok(event);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    read_tls_patiently(&mut self.connection, &mut self.socket, patience)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sends one message. Whenever the peer takes nothing for a while, `still_open` is asked whether to go on, up to
    /// `timeout` without progress. Returns the bytes put on the wire.
    pub(crate) fn write_message(
        &mut self,
        payload: &[u8],
        timeout: Duration,
        still_open: &dyn Fn() -> Result<(), NetError>,
    ) -> Result<usize, WriteError> {
        let mut pace = Pace::new(payload.len(), timeout, still_open);
        let mut wire = 0;
        let mut rest = payload;
        loop {
            let (body, later) = rest.split_at(rest.len().min(MAX_BODY));
            let kind = if later.is_empty() {
                Kind::DataLast
            } else {
                Kind::DataMore
            };
            wire += self.write_frame(kind, body, &mut pace)?;
            rest = later;
            if rest.is_empty() {
                return Ok(wire);
            }
        }
    }

    /// Sends one frame, with a body of at most [`MAX_BODY`] bytes.
    fn write_frame(
        &mut self,
        kind: Kind,
        body: &[u8],
        pace: &mut Pace<'_>,
    ) -> Result<usize, WriteError> {
        if self.broken {
            return Err(WriteError::Io(ErrorKind::BrokenPipe.into()));
        }
        self.broken = true;
        let (mut piece, mut rest) = body.split_at(body.len().min(PIECE - HEADER));
        let header = header(kind, body.len());
        let mut head: &[u8] = &header;
        let mut wire = 0;
        loop {
            while !(head.is_empty() && piece.is_empty()) {
                // Takes less than offered only when it changes keys.
                let taken = self
                    .connection
                    .writer()
                    .write_vectored(&[IoSlice::new(head), IoSlice::new(piece)])
                    .map_err(WriteError::Io)?;
                let of_head = taken.min(head.len());
                head = head.get(of_head..).unwrap_or_default();
                piece = piece.get(taken - of_head..).unwrap_or_default();
                wire += self.flush(pace)?;
            }
            if rest.is_empty() {
                self.broken = false;
                return Ok(wire);
            }
            (piece, rest) = rest.split_at(rest.len().min(PIECE));
        }
    }

    fn flush(&mut self, pace: &mut Pace<'_>) -> Result<usize, WriteError> {
        let mut wire = 0;
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut self.socket) {
                Ok(0) => return Err(WriteError::Io(ErrorKind::WriteZero.into())),
                Ok(written) => {
                    wire += written;
                    pace.moved();
                }
                Err(error) if is_wait(&error) => pace.check()?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(WriteError::Io(error)),
            }
        }
        Ok(wire)
    }

    /// Says the last word, unless a message was cut off, and ends the stream. Waits at most `limit` for room.
    pub(crate) fn finish(&mut self, kind: Kind, body: &[u8], limit: Duration) {
        let always = || Ok(());
        // Whoever cannot hear it sees the end of the stream.
        let _ = self.write_frame(kind, body, &mut Pace::new(0, limit, &always));
        let _ = self.socket.shutdown(Shutdown::Write);
        self.broken = true;
    }

    /// After [`Dialled::finish`]: waits until the peer has read everything and closed its end, or until `deadline`.
    pub(crate) fn wait_until_read(&mut self, deadline: Instant) {
        let patience = Patience {
            deadline,
            cancel: Arc::new(AtomicBool::new(false)),
        };
        let mut sink = [0; 4096];
        while matches!(
            read_patiently(&mut self.socket, &mut sink, &patience),
            Ok(1..)
        ) && !patience.is_over()
        {}
    }
}

/// How long a write may take.
struct Pace<'a> {
    timeout: Duration,
    /// Without progress until then, the peer has stalled.
    stalls_at: Instant,
    /// With however much progress, it has stalled then.
    last: Instant,
    still_open: &'a dyn Fn() -> Result<(), NetError>,
}

impl<'a> Pace<'a> {
    fn new(
        len: usize,
        timeout: Duration,
        still_open: &'a dyn Fn() -> Result<(), NetError>,
    ) -> Self {
        let stalls_at = Instant::now() + timeout;
        Self {
            timeout,
            stalls_at,
            last: stalls_at + Duration::from_secs(len as u64 / SLOWEST_LINK),
            still_open,
        }
    }

    fn moved(&mut self) {
        self.stalls_at = Instant::now() + self.timeout;
    }

    fn check(&self) -> Result<(), WriteError> {
        (self.still_open)().map_err(WriteError::Ended)?;
        if Instant::now() >= self.stalls_at.min(self.last) {
            return Err(WriteError::Stalled);
        }
        Ok(())
    }
}

fn write_tls_patiently(
    connection: &mut ClientConnection,
    socket: &mut TcpStream,
    patience: &Patience,
) -> io::Result<()> {
    while connection.wants_write() {
        match connection.write_tls(socket) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(_) => {}
            Err(error) if is_wait(&error) => patience.check()?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads something and processes it.
fn read_tls_patiently(
    connection: &mut ClientConnection,
    socket: &mut TcpStream,
    patience: &Patience,
) -> Result<(), StreamError> {
    loop {
        // A peer that talks all the time is not waited for longer than a silent one.
        patience.check()?;
        match connection.read_tls(socket) {
            Ok(0) => return Err(end_of_stream().into()),
            Ok(_) => {
                connection.process_new_packets()?;
                return Ok(());
            }
            Err(error) if is_wait(&error) || error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Takes decrypted bytes, together with the parser and the count of wire bytes since the last event.
type Sink<'a> = dyn FnMut(&mut FrameParser, &mut &[u8], &mut usize) -> Result<(), FrameError> + 'a;

/// What the accepting end can do next.
enum Step {
    /// Application data were handed out, or a handshake message was answered: ask again.
    Again,
    /// More bytes of the other end are needed.
    NeedBytes,
    /// The other end has closed the TLS connection.
    End,
}

/// The accepting end: it reads.
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
                Ok(Step::NeedBytes) => this.fill(Some(patience))?,
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

    /// Tells the other end why the handshake failed: the failed step has queued the alert.
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

    /// A second handle of the socket, to shut it down from another thread.
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
                Step::NeedBytes => self.fill(Some(patience))?,
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
        let plain = frame(kind, body);
        let window = self.buffer.get_mut(self.start..self.end);
        let status = self
            .connection
            .process_tls_records(window.unwrap_or_default());
        let discard = status.discard;
        if let ConnectionState::WriteTraffic(mut traffic) = status.state? {
            grow_until_it_fits(&mut self.outgoing, |space| {
                traffic.encrypt(&plain, space).map_err(|error| match error {
                    EncryptError::InsufficientSize(size) => Some(size),
                    EncryptError::EncryptExhausted => None,
                })
            })?;
        } else {
            return Err(FrameError::Hasty.into());
        }
        self.start += discard;
        let sent = write_patiently(&mut self.socket, &self.outgoing, patience);
        self.outgoing.clear();
        Ok(sent?)
    }

    /// Closes after a refusal so that the other end can still read it.
    pub(crate) fn dismiss(mut self) {
        linger(&mut self.socket, 2 * SLICE);
    }

    /// Reads until the end of the stream or of `events`, which gets each event with the bytes that it took on the wire, and
    /// is told (`None`) when a part of a message has come. It returns whether to go on.
    /// `Ok(())` is an end that `events` asked for; the end of the stream is an error.
    pub(crate) fn read_all(
        &mut self,
        events: &mut dyn FnMut(Option<Event>, usize) -> bool,
    ) -> Result<(), StreamError> {
        self.socket.set_read_timeout(None)?;
        loop {
            let mut go_on = true;
            let step = self.step(None, &mut |parser, bytes, wire| {
                while go_on {
                    match parser.feed(bytes)? {
                        Some(event) => go_on = events(Some(event), std::mem::take(wire)),
                        None => break,
                    }
                }
                Ok(())
            })?;
            if !go_on {
                return Ok(());
            }
            match step {
                Step::Again => {}
                Step::NeedBytes => {
                    if self.parser.is_midway() && !events(None, self.wire) {
                        return Ok(());
                    }
                    self.fill(None)?;
                }
                Step::End => return Err(end_of_stream().into()),
            }
        }
    }

    /// Ends the connection in both directions.
    pub(crate) fn shut_down(&self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Processes what lies in the buffer, up to the next record with data, which goes to `sink`.
    fn step(
        &mut self,
        patience: Option<&Patience>,
        sink: &mut Sink<'_>,
    ) -> Result<Step, StreamError> {
        let window = self.buffer.get_mut(self.start..self.end);
        let status = self
            .connection
            .process_tls_records(window.unwrap_or_default());
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
                let unlimited = Patience {
                    deadline: Instant::now() + SLICE,
                    cancel: Arc::new(AtomicBool::new(false)),
                };
                write_patiently(
                    &mut self.socket,
                    &self.outgoing,
                    patience.unwrap_or(&unlimited),
                )?;
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

    /// Reads more bytes, at least one; waits without limit if there is no `patience`.
    fn fill(&mut self, patience: Option<&Patience>) -> Result<(), StreamError> {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        } else if self.start > 0 {
            // Part of one record at most.
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let space = self.buffer.get_mut(self.end..).unwrap_or_default();
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
                    other => break other?,
                }
            },
        };
        if read == 0 {
            return Err(end_of_stream().into());
        }
        self.end += read;
        Ok(())
    }
}

/// Keeps the first event; the other end has to wait for our answer before it says more.
fn keep_first(
    first: &mut Option<Event>,
    parser: &mut FrameParser,
    bytes: &mut &[u8],
) -> Result<(), FrameError> {
    while let Some(event) = parser.feed(bytes)? {
        if first.replace(event).is_some() {
            return Err(FrameError::Hasty);
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
        match encode(out.get_mut(used..).unwrap_or_default()) {
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
