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
use crate::setup::{POLL, spawn};
use crate::stream::{Accepted, Reading, StreamError};

/// The token of the waker; those of peers are their numbers.
const WAKER: Token = Token(usize::MAX);

/// Where connections are handed to a reader.
pub(crate) struct Door {
    waker: Waker,
    arriving: Mutex<Vec<(usize, Accepted)>>,
    over: AtomicBool,
}

impl Door {
    /// From now on what `peer` sends is read.
    pub(crate) fn add(&self, peer: usize, stream: Accepted) {
        self.arriving
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((peer, stream));
        self.wake();
    }

    fn take(&self) -> Vec<(usize, Accepted)> {
        std::mem::take(&mut *self.arriving.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn wake(&self) {
        // Fails only if the kernel is out of memory; whoever waits for the reader has a timeout.
        let _ = self.waker.wake();
    }
}

/// A reader that runs.
pub(crate) struct Reader {
    door: Arc<Door>,
    thread: JoinHandle<()>,
}

impl Reader {
    /// Starts a reader for this inbox.
    pub(crate) fn start(inbox: Arc<Inbox>) -> Result<Self, NetError> {
        let poll = Poll::new().map_err(|e| no_poll(&e))?;
        let door = Arc::new(Door {
            waker: Waker::new(poll.registry(), WAKER).map_err(|e| no_poll(&e))?,
            arriving: Mutex::new(Vec::new()),
            over: AtomicBool::new(false),
        });
        let caller = Arc::clone(&door);
        inbox.call_for_more(Box::new(move || caller.wake()))?;
        let watch = Watch {
            poll,
            door: Arc::clone(&door),
            inbox,
            lines: HashMap::new(),
        };
        let thread = spawn("kq-read".to_owned(), move || watch.run())?;
        Ok(Self { door, thread })
    }

    /// Where connections are handed to it.
    pub(crate) fn door(&self) -> Arc<Door> {
        Arc::clone(&self.door)
    }

    /// Ends the connections and the thread.
    pub(crate) fn stop(self) {
        self.door.over.store(true, Ordering::Release);
        self.door.wake();
        // A reader that panicked has nothing more to give back.
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

/// What one peer sends.
struct Line {
    stream: Accepted,
    /// The same socket, as it is watched.
    source: TcpStream,
    /// There may be something to read.
    ready: bool,
    /// The other end has closed its side.
    ended: bool,
    /// The session is over: we only keep the peer from being held up.
    throw_away: bool,
}

/// The state of the thread.
struct Watch {
    poll: Poll,
    door: Arc<Door>,
    inbox: Arc<Inbox>,
    lines: HashMap<usize, Line>,
}

impl Watch {
    fn run(mut self) {
        let mut events = Events::with_capacity(64);
        let mut busy = false;
        while !self.door.over.load(Ordering::Acquire) {
            match self.poll.poll(&mut events, busy.then_some(Duration::ZERO)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return self.give_up(&error),
                Ok(()) => {}
            }
            self.let_in();
            for event in &events {
                // The waker has no connection, nor has a peer whose connection has just ended.
                if let Some(line) = self.lines.get_mut(&event.token().0) {
                    line.ready = true;
                    line.ended |= event.is_read_closed() || event.is_error();
                }
            }
            busy = false;
            let inbox = &self.inbox;
            self.lines.retain(|&peer, line| {
                if !line.ready || !inbox.has_room(peer) {
                    return true;
                }
                let goes_on = line.read(peer, inbox);
                if !goes_on {
                    line.end(&self.poll);
                }
                busy |= goes_on && line.ready && inbox.has_room(peer);
                goes_on
            });
        }
        for line in self.lines.values_mut() {
            line.end(&self.poll);
        }
        for (_, stream) in self.door.take() {
            stream.shut_down();
        }
    }

    /// Takes the connections that wait at the door.
    fn let_in(&mut self) {
        for (peer, stream) in self.door.take() {
            match self.watch(peer, &stream) {
                Ok(source) => {
                    let line = Line {
                        stream,
                        source,
                        ready: true,
                        ended: false,
                        throw_away: false,
                    };
                    if let Some(mut first) = self.lines.insert(peer, line) {
                        first.end(&self.poll);
                        let twice = NetError::internal("two connections of one party");
                        self.inbox.peer_failed(peer, twice);
                    }
                }
                Err(error) => self.inbox.peer_lost(peer, lost(peer, error)),
            }
        }
    }

    fn watch(&self, peer: usize, stream: &Accepted) -> io::Result<TcpStream> {
        stream.stop_waiting()?;
        let mut source = TcpStream::from_std(stream.socket()?);
        self.poll
            .registry()
            .register(&mut source, Token(peer), Interest::READABLE)?;
        Ok(source)
    }

    /// The system does not tell any more what can be read.
    fn give_up(&mut self, error: &io::Error) {
        let again = || io::Error::new(error.kind(), error.to_string());
        for (&peer, line) in &mut self.lines {
            self.inbox.peer_lost(peer, lost(peer, again()));
            line.end(&self.poll);
        }
        while !self.door.over.load(Ordering::Acquire) {
            for (peer, stream) in self.door.take() {
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

impl Line {
    /// Puts what has come into the inbox; tells whether the connection goes on.
    fn read(&mut self, peer: usize, inbox: &Inbox) -> bool {
        let throw_away = &mut self.throw_away;
        let result = self.stream.read(&mut |event, wire| {
            match event {
                None => {
                    if let Err(error) = inbox.note_progress(peer, wire) {
                        inbox.peer_failed(peer, error);
                        return false;
                    }
                }
                // What comes after the end of the session is of no use.
                Some(Event::Message(_)) if *throw_away => {}
                // A queue that is full takes the rest of what was read, and no more is read.
                Some(Event::Message(payload)) => {
                    match inbox.deliver(peer, Message { payload, wire }) {
                        Ok(()) => {}
                        Err(PushError::Ended(error @ NetError::Internal { .. })) => {
                            inbox.peer_failed(peer, error);
                            return false;
                        }
                        Err(_) => *throw_away = true,
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
