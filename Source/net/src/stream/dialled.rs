//! The dialling end of a connection, which writes.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustls::{ClientConfig, ClientConnection};

use super::{
    Patience, SLICE, StreamError, end_of_stream, is_wait, linger, outside, prepare, read_patiently,
};
use crate::NetError;
use crate::frame::{Event, FrameParser, HEADER, Kind, MAX_BODY, frame, header};
use crate::inbox::SLOWEST_LINK;
use crate::shape::{BUCKET_BYTES, Bucket};
use crate::tls::server_name;

/// Bytes of plain text that are encrypted before they are written: whole TLS records, small enough for the cache.
const PIECE: usize = 256 * 1024;

/// Bytes that encryption adds to a record.
const RECORD_OVERHEAD: usize = 22;

/// A wait for the bucket that is shorter than this is left to the next piece: the system's timer is not finer.
const SHORT_WAIT: Duration = Duration::from_micros(200);

/// Longest wait for the bucket between two looks at the session.
const LONG_WAIT: Duration = Duration::from_millis(50);

/// How a write to a peer fails.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// The session ended meanwhile, or the fault is ours.
    Ended(NetError),
    /// The peer accepted no bytes for too long.
    Stalled,
    Io(io::Error),
}

/// The dialling end, which writes.
pub(crate) struct Dialled {
    pub(crate) connection: ClientConnection,
    /// Below the encryption.
    pub(crate) socket: TcpStream,
    /// A write failed midway, so nothing more can be sent on this connection.
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
                    // The alert, for an other end that still reads.
                    let _ = write_tls_patiently(&mut connection, &mut socket, patience);
                    linger(&mut socket, SLICE);
                }
                return Err(error);
            }
        }
        // Our last flight. If the other end has gone already, its alert shows the reason when we read.
        let _ = write_tls_patiently(&mut connection, &mut socket, patience);
        Ok(Self {
            connection,
            socket,
            broken: false,
        })
    }

    /// Sends our hello and waits for the first frame of the other end.
    pub(crate) fn greet(
        &mut self,
        hello: &[u8],
        patience: &Patience,
    ) -> Result<Event, StreamError> {
        let hello = frame(Kind::Hello, hello).map_err(StreamError::Internal)?;
        self.connection.writer().write_all(&hello)?;
        // As above: a refusal shows when we read.
        let _ = write_tls_patiently(&mut self.connection, &mut self.socket, patience);
        let mut parser = FrameParser::new(0);
        let mut buffer = [0; 4096];
        loop {
            match self.connection.reader().read(&mut buffer) {
                Ok(0) => return Err(end_of_stream().into()),
                Ok(len) => {
                    let bytes = buffer.get(..len);
                    let mut bytes = bytes.ok_or_else(|| StreamError::Internal(outside()))?;
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

    /// Sends one message. Whenever the peer accepts no bytes for a while, `still_open` decides whether to go on, up to
    /// `timeout` without progress. `egress`: a bucket that passes on what is sent; the call waits for it. Returns the bytes put on the wire.
    pub(crate) fn write_message(
        &mut self,
        payload: &[u8],
        timeout: Duration,
        still_open: &dyn Fn() -> Result<(), NetError>,
        egress: Option<&mut Bucket>,
    ) -> Result<usize, WriteError> {
        let mut pace = Pace {
            egress,
            ..Pace::new(payload.len(), timeout, still_open)
        };
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
        let most = pace.piece();
        let (mut piece, mut rest) = body.split_at(body.len().min(most - HEADER));
        let header = header(kind, body.len()).map_err(WriteError::Ended)?;
        let mut head: &[u8] = &header;
        let mut wire = 0;
        loop {
            pace.admit(head.len() + piece.len() + RECORD_OVERHEAD)?;
            while !(head.is_empty() && piece.is_empty()) {
                // Accepts less than offered only when it changes keys.
                let taken = self
                    .connection
                    .writer()
                    .write_vectored(&[IoSlice::new(head), IoSlice::new(piece)])
                    .map_err(WriteError::Io)?;
                let of_head = taken.min(head.len());
                let left = (head.get(of_head..), piece.get(taken - of_head..));
                let (Some(head_left), Some(piece_left)) = left else {
                    return Err(WriteError::Ended(outside()));
                };
                (head, piece) = (head_left, piece_left);
                wire += self.flush(pace)?;
            }
            if rest.is_empty() {
                self.broken = false;
                return Ok(wire);
            }
            (piece, rest) = rest.split_at(rest.len().min(most));
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

    /// Sends a last frame, unless a message was cut off, and ends the stream. Waits at most `limit` for the peer to accept it.
    pub(crate) fn finish(&mut self, kind: Kind, body: &[u8], limit: Duration) {
        let always = || Ok(());
        // A peer that does not receive it sees the end of the stream.
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
    /// The peer has stalled then even with progress.
    last: Instant,
    still_open: &'a dyn Fn() -> Result<(), NetError>,
    /// Passes on what is sent, on simulated links that share their bandwidth.
    egress: Option<&'a mut Bucket>,
    /// When the message was handed over: all of its bytes were there then.
    start: Instant,
}

impl<'a> Pace<'a> {
    fn new(
        len: usize,
        timeout: Duration,
        still_open: &'a dyn Fn() -> Result<(), NetError>,
    ) -> Self {
        let start = Instant::now();
        let stalls_at = start + timeout;
        Self {
            timeout,
            stalls_at,
            last: stalls_at + Duration::from_secs(len as u64 / SLOWEST_LINK),
            still_open,
            egress: None,
            start,
        }
    }

    /// Bytes to write at once: through a bucket no more than it holds.
    fn piece(&self) -> usize {
        self.egress
            .as_ref()
            .map_or(PIECE, |_| BUCKET_BYTES as usize)
    }

    /// Waits until the bucket, if there is one, has passed on `bytes` more.
    fn admit(&mut self, bytes: usize) -> Result<(), WriteError> {
        let Some(bucket) = &mut self.egress else {
            return Ok(());
        };
        let due = bucket.pass(bytes, self.start);
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if left < SHORT_WAIT {
                self.moved();
                return Ok(());
            }
            (self.still_open)().map_err(WriteError::Ended)?;
            std::thread::sleep(left.min(LONG_WAIT));
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
        // A peer that sends all the time is not waited for longer than a silent one.
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
