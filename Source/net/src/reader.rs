//! The thread that reads what all peers send.
//!
//! One for all of them: with a thread for each, every exchange of a party of n wakes n - 1 threads for a few bytes each.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token, Waker};

use crate::NetError;
use crate::error::one_line;
use crate::frame::{Event, MAX_REASON};
use crate::inbox::{Inbox, Message, PushError};
use crate::stream::{Accepted, Reading, StreamError};
use crate::threads::{POLL, spawn};

/// The token of the waker; those of peers are their numbers.
const WAKER: Token = Token(usize::MAX);

/// Connections on their way to a reader.
pub(crate) struct RegistrationQueue {
    waker: Waker,
    waiting: Mutex<Vec<(usize, Accepted)>>,
    over: AtomicBool,
}

impl RegistrationQueue {
    /// From now on what `peer` sends is read.
    pub(crate) fn add(&self, peer: usize, stream: Accepted) {
        self.waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((peer, stream));
        self.wake();
    }

    fn take(&self) -> Vec<(usize, Accepted)> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn wake(&self) {
        // Fails only if the kernel is out of memory; every wait for the reader has a timeout.
        let _ = self.waker.wake();
    }
}

/// A reader that runs.
pub(crate) struct Reader {
    registrations: Arc<RegistrationQueue>,
    thread: JoinHandle<()>,
}

impl Reader {
    /// Starts a reader for this inbox.
    pub(crate) fn start(inbox: Arc<Inbox>) -> Result<Self, NetError> {
        let poll = Poll::new().map_err(|e| no_poll(&e))?;
        let registrations = Arc::new(RegistrationQueue {
            waker: Waker::new(poll.registry(), WAKER).map_err(|e| no_poll(&e))?,
            waiting: Mutex::new(Vec::new()),
            over: AtomicBool::new(false),
        });
        let caller = Arc::clone(&registrations);
        inbox.on_space(Box::new(move || caller.wake()))?;
        let event_loop = EventLoop {
            poll,
            registrations: Arc::clone(&registrations),
            inbox,
            connections: HashMap::new(),
        };
        let thread = spawn("kq-read".to_owned(), move || event_loop.run())?;
        Ok(Self {
            registrations,
            thread,
        })
    }

    /// The queue of connections on their way to it.
    pub(crate) fn registrations(&self) -> Arc<RegistrationQueue> {
        Arc::clone(&self.registrations)
    }

    /// Ends the connections and the thread.
    pub(crate) fn stop(self) {
        self.registrations.over.store(true, Ordering::Release);
        self.registrations.wake();
        // A reader that panicked returns nothing.
        let _ = self.thread.join();
    }
}

fn no_poll(error: &io::Error) -> NetError {
    NetError::Config {
        detail: format!(
            "cannot watch connections: {error}; raise the limit on open files (ulimit -n)"
        ),
    }
}

/// The connection on which one peer sends.
struct Connection {
    stream: Accepted,
    /// The same socket, for the poll.
    source: TcpStream,
    /// There may be something to read.
    ready: bool,
    /// The other end has closed its side.
    ended: bool,
    /// The session is over: messages are read and discarded, so that the peer does not wait.
    discard: bool,
}

/// The state of the thread.
struct EventLoop {
    poll: Poll,
    registrations: Arc<RegistrationQueue>,
    inbox: Arc<Inbox>,
    connections: HashMap<usize, Connection>,
}

impl EventLoop {
    fn run(mut self) {
        let mut events = Events::with_capacity(64);
        let mut busy = false;
        while !self.registrations.over.load(Ordering::Acquire) {
            match self.poll.poll(&mut events, busy.then_some(Duration::ZERO)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return self.give_up(&error),
                Ok(()) => {}
            }
            self.register_new();
            for event in &events {
                // No connection: the waker, or a peer whose connection has just ended.
                if let Some(connection) = self.connections.get_mut(&event.token().0) {
                    connection.ready = true;
                    connection.ended |= event.is_read_closed() || event.is_error();
                }
            }
            busy = false;
            let inbox = &self.inbox;
            self.connections.retain(|&peer, connection| {
                if !connection.ready || !inbox.may_read(peer) {
                    return true;
                }
                let goes_on = connection.read(peer, inbox);
                if !goes_on {
                    connection.end(&self.poll);
                }
                busy |= goes_on && connection.ready && inbox.may_read(peer);
                goes_on
            });
        }
        for connection in self.connections.values_mut() {
            connection.end(&self.poll);
        }
        for (_, stream) in self.registrations.take() {
            stream.shut_down();
        }
    }

    /// Takes the connections of the registration queue.
    fn register_new(&mut self) {
        for (peer, stream) in self.registrations.take() {
            match self.register(peer, &stream) {
                Ok(source) => {
                    let connection = Connection {
                        stream,
                        source,
                        ready: true,
                        ended: false,
                        discard: false,
                    };
                    if let Some(mut first) = self.connections.insert(peer, connection) {
                        first.end(&self.poll);
                        let twice = NetError::internal("two connections of one party");
                        self.inbox.peer_failed(peer, twice);
                    }
                }
                Err(error) => self.inbox.peer_lost(peer, lost(peer, error)),
            }
        }
    }

    fn register(&self, peer: usize, stream: &Accepted) -> io::Result<TcpStream> {
        stream.stop_waiting()?;
        let mut source = TcpStream::from_std(stream.socket()?);
        self.poll
            .registry()
            .register(&mut source, Token(peer), Interest::READABLE)?;
        Ok(source)
    }

    /// The system can no longer report which sockets are readable.
    fn give_up(&mut self, error: &io::Error) {
        let again = || io::Error::new(error.kind(), error.to_string());
        for (&peer, connection) in &mut self.connections {
            self.inbox.peer_lost(peer, lost(peer, again()));
            connection.end(&self.poll);
        }
        while !self.registrations.over.load(Ordering::Acquire) {
            for (peer, stream) in self.registrations.take() {
                self.inbox.peer_lost(peer, lost(peer, again()));
                stream.shut_down();
            }
            std::thread::sleep(POLL);
        }
    }
}

fn lost(peer: usize, error: io::Error) -> NetError {
    NetError::Io {
        peer,
        source: Arc::new(error),
    }
}

impl Connection {
    /// Puts what has come into the inbox; returns whether the connection goes on.
    fn read(&mut self, peer: usize, inbox: &Inbox) -> bool {
        let discard = &mut self.discard;
        let result = self.stream.read(&mut |event, wire| {
            match event {
                None => {
                    if let Err(error) = inbox.note_progress(peer, wire) {
                        inbox.peer_failed(peer, error);
                        return false;
                    }
                }
                // The session is over.
                Some(Event::Message(_)) if *discard => {}
                // A full queue still takes all messages of this read; then no more is read.
                Some(Event::Message(payload)) => {
                    let message = Message {
                        payload,
                        wire,
                        leaves: None,
                    };
                    match inbox.deliver(peer, message) {
                        Ok(()) => {}
                        Err(PushError::Ended(error @ NetError::Internal { .. })) => {
                            inbox.peer_failed(peer, error);
                            return false;
                        }
                        Err(_) => *discard = true,
                    }
                }
                Some(Event::Abort(reason)) => {
                    let reason = one_line(&reason, MAX_REASON);
                    inbox.peer_failed(peer, NetError::PeerAborted { peer, reason });
                    return false;
                }
                Some(Event::Close) => {
                    inbox.peer_closed(peer);
                    return false;
                }
                Some(Event::Hello(_)) => {
                    let second = NetError::internal("the parser let a second hello through");
                    inbox.peer_failed(peer, second);
                    return false;
                }
            }
            true
        });
        let malformed = |detail: String| NetError::MalformedFrame { peer, detail };
        match result {
            Ok(Reading::Stopped) => return false,
            Ok(reading) => {
                self.ended &= reading != Reading::Nothing;
                self.ready = reading == Reading::Part || self.ended;
                return true;
            }
            Err(StreamError::Io(_)) => inbox.peer_lost(peer, NetError::PeerClosed { peer }),
            Err(StreamError::Internal(error)) => inbox.peer_failed(peer, error),
            Err(StreamError::Tls(error)) => {
                inbox.peer_failed(peer, malformed(format!("broken TLS record ({error})")));
            }
            Err(StreamError::Frame(error)) => {
                inbox.peer_failed(peer, malformed(error.to_string()));
            }
        }
        false
    }

    /// Ends the connection in both directions.
    fn end(&mut self, poll: &Poll) {
        // It is closed in any case.
        let _ = poll.registry().deregister(&mut self.source);
        self.stream.shut_down();
    }
}
