//! One TLS connection, at the side that dialled it (and writes) and at the side that accepted it (and reads).
//!
//! Data flow one way on each connection. During set-up every wait is cut into slices of [`SLICE`], between which the
//! caller's [`Patience`] is checked. Afterwards the reading side never waits (its owner knows when there is something to
//! read), and the writing side calls its caller between slices.

mod accepted;
mod dialled;
#[cfg(test)]
mod tests;

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::NetError;
use crate::frame::FrameError;

pub(crate) use accepted::{Accepted, Reading};
pub(crate) use dialled::{Dialled, WriteError};

/// Longest wait in one system call; then the caller decides whether to go on.
pub(crate) const SLICE: Duration = Duration::from_millis(100);

/// How a connection fails.
#[derive(Debug)]
pub(crate) enum StreamError {
    Io(io::Error),
    Tls(rustls::Error),
    Frame(FrameError),
    /// A fault of this program.
    Internal(NetError),
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

/// The error for a span of bytes that lies outside its buffer.
pub(super) fn outside() -> NetError {
    NetError::internal("a span outside its buffer")
}

impl StreamError {
    /// The failure as an I/O error, for error messages.
    pub(crate) fn into_io(self) -> io::Error {
        match self {
            Self::Io(error) => error,
            Self::Tls(error) => io::Error::new(ErrorKind::InvalidData, error),
            Self::Frame(error) => io::Error::new(ErrorKind::InvalidData, error),
            Self::Internal(error) => io::Error::other(error),
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

    pub(super) fn check(&self) -> io::Result<()> {
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

pub(super) fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

pub(super) fn end_of_stream() -> io::Error {
    io::Error::new(
        ErrorKind::UnexpectedEof,
        "the other end closed the connection",
    )
}

/// Prepares a fresh socket for set-up. Buffer sizes are left to the system, whose automatic tuning reaches more than
/// a program may ask for.
pub(super) fn prepare(socket: &TcpStream) -> io::Result<()> {
    socket.set_nonblocking(false)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(SLICE))?;
    socket.set_write_timeout(Some(SLICE))
}

/// Reads once, with patience. `Ok(0)` is the end of the stream.
pub(super) fn read_patiently(
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
pub(super) fn write_patiently(
    socket: &mut TcpStream,
    mut bytes: &[u8],
    patience: &Patience,
) -> io::Result<()> {
    while !bytes.is_empty() {
        match socket.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = bytes
                    .get(written..)
                    .ok_or_else(|| io::Error::other(outside()))?;
            }
            Err(error) if is_wait(&error) => patience.check()?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Ends our direction and reads what is left of the other until its end, for at most `limit`: a socket closed with
/// unread bytes would be reset, and the other end might lose our last frame.
pub(super) fn linger(socket: &mut TcpStream, limit: Duration) {
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
