//! Meeting: every party dials every other one for what it has to say, and accepts one connection from each for what it
//! has to hear, so that the parties may start in any order and nobody waits for a turn.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::NetError;
use crate::error::one_line;
use crate::frame::{Kind, MAX_REASON};
use crate::greetings::Greetings;
use crate::hello::{Greeting, Hello, Purpose};
use crate::inbox::Inbox;
use crate::members::{Members, Peer, Reached, Reason, Visitor, reach, receive};
use crate::reader::{Door, Reader};
use crate::session::SetupObserver;
use crate::stream::{Accepted, Dialled, Patience};

/// Pause between looks at the listener and at the state of set-up.
pub(crate) const POLL: Duration = Duration::from_millis(2);

/// Pause between two calls of the observer.
const OBSERVED: Duration = Duration::from_millis(100);

/// First and longest pause between attempts to dial.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(10);
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// How long we stay after a certificate was found wrong, so that the other side can find out as well.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// Connections that are taken off the listener before anything else is looked at again.
pub(crate) const ACCEPTS: usize = 64;

/// Dropped connections that are remembered for the error message.
const REMEMBERED: usize = 4;

/// How long a set-up that failed stays for parties that start later than we do: else they would take us for the culprit.
const LINGER: Duration = Duration::from_secs(3);

/// How long a set-up that failed waits for its reason to be delivered.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Whoever dials or is dialled is one of the members, and they have a place each.
pub(crate) const NOT_LISTED: &str = "a connection of a party that is not listed";

/// All connections of one party.
pub(crate) struct Links {
    /// By index of the peer; `None` at our own.
    pub(crate) outgoing: Vec<Option<Dialled>>,
    pub(crate) reader: Reader,
}

enum Incoming {
    Missing,
    /// Somebody is just answering its hello.
    Reserved,
    Ready,
}

struct State {
    outgoing: Vec<Option<Dialled>>,
    incoming: Vec<Incoming>,
    failure: Option<Failure>,
    /// Peers that have found out about the failure themselves.
    informed: Vec<bool>,
    /// Last failure to dial, per peer.
    dial_errors: Vec<Option<io::Error>>,
    /// Connections that came to nothing.
    dropped: VecDeque<String>,
    /// What to tell peers that we leave.
    last_words: Option<String>,
}

/// Why set-up fails.
struct Failure {
    error: NetError,
    /// When we may leave if everybody knows.
    due: Instant,
    /// When we leave in any case.
    latest: Instant,
}

struct Setup {
    members: Members,
    hello: Hello,
    inbox: Arc<Inbox>,
    door: Arc<Door>,
    max_message: usize,
    patience: Patience,
    state: Mutex<State>,
    greetings: Arc<Greetings>,
    diallers: AtomicUsize,
}

/// Connects to all peers.
pub(crate) fn connect_all(
    members: Members,
    hello: Hello,
    listener: Option<TcpListener>,
    inbox: Arc<Inbox>,
    max_message: usize,
    timeout: Duration,
    observer: Option<&SetupObserver>,
) -> Result<Links, NetError> {
    let start = Instant::now();
    let parties = members.parties();
    let reader = Reader::start(Arc::clone(&inbox))?;
    let setup = Arc::new(Setup {
        members,
        hello,
        inbox,
        door: reader.door(),
        max_message,
        patience: Patience {
            deadline: start + timeout,
            cancel: Arc::new(AtomicBool::new(false)),
        },
        state: Mutex::new(State {
            outgoing: (0..parties).map(|_| None).collect(),
            incoming: (0..parties).map(|_| Incoming::Missing).collect(),
            failure: None,
            informed: vec![false; parties],
            dial_errors: (0..parties).map(|_| None).collect(),
            dropped: VecDeque::new(),
            last_words: None,
        }),
        greetings: Arc::default(),
        diallers: AtomicUsize::new(0),
    });
    for peer in setup.members.peers().cloned().collect::<Vec<_>>() {
        let dialler = Arc::clone(&setup);
        if let Err(error) = spawn(format!("kq-dial-{}", peer.index), move || {
            dialler.dial(&peer)
        }) {
            setup.fail(error, Duration::ZERO);
        }
    }
    let result = setup.wait(listener.as_ref(), start, observer);
    let reason = match &result {
        Ok(()) => String::new(),
        Err(NetError::Interrupted { reason }) => one_line(reason, MAX_REASON),
        Err(error) => one_line(&format!("set-up failed: {error}"), MAX_REASON),
    };
    let mut state = setup.lock();
    // From here on nobody adds anything: see `store` and `welcome`.
    state.last_words = Some(reason.clone());
    setup.patience.cancel.store(true, Ordering::Relaxed);
    let links = Links {
        outgoing: std::mem::take(&mut state.outgoing),
        reader,
    };
    drop(state);
    match result {
        Ok(()) => Ok(links),
        Err(error) => {
            hang_up(links, &setup.inbox, Kind::Abort, &reason, LAST_WORDS);
            // Those who are still dialling tell their peers as well, unless they are stuck deep in the system.
            let deadline = Instant::now() + LAST_WORDS;
            while setup.diallers.load(Ordering::Relaxed) > 0 && Instant::now() < deadline {
                thread::sleep(POLL);
            }
            Err(error)
        }
    }
}

/// Says the last word to all peers, waits (at most twice `limit`) until they have read it, and ends all connections.
pub(crate) fn hang_up(links: Links, inbox: &Inbox, kind: Kind, reason: &str, limit: Duration) {
    let (body, state) = match kind {
        Kind::Abort => (reason.as_bytes(), format!("aborted: {reason}")),
        _ => (&[][..], reason.to_owned()),
    };
    // From now on the reader throws away what it reads, so that no peer is held up by us.
    inbox.close_owner(&state);
    let mut outgoing = links.outgoing;
    let deadline = Instant::now() + limit;
    for stream in outgoing.iter_mut().flatten() {
        stream.finish(
            kind,
            body,
            deadline.saturating_duration_since(Instant::now()),
        );
    }
    let deadline = Instant::now() + limit;
    for stream in outgoing.iter_mut().flatten() {
        stream.wait_until_read(deadline);
    }
    links.reader.stop();
}

/// Starts a named thread.
pub(crate) fn spawn(
    name: String,
    body: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, NetError> {
    thread::Builder::new()
        .name(name)
        .spawn(body)
        .map_err(|error| NetError::Config {
            detail: format!(
                "cannot start a thread: {error}; raise the limit on processes (ulimit -u)"
            ),
        })
}

/// Takes a connection off the listener, if one waits.
pub(crate) fn accept(listener: &TcpListener) -> Option<TcpStream> {
    // A connection that is gone again, or a passing lack of descriptors, is no reason to give up: the deadline is.
    listener.accept().ok().map(|(socket, _)| socket)
}

impl Setup {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.patience.cancel.load(Ordering::Relaxed)
    }

    /// Accepts connections until all is there or set-up has failed.
    fn wait(
        self: &Arc<Self>,
        listener: Option<&TcpListener>,
        start: Instant,
        observer: Option<&SetupObserver>,
    ) -> Result<(), NetError> {
        let mut observed = start;
        loop {
            for socket in (0..ACCEPTS).map_while(|_| listener.and_then(accept)) {
                self.greet(socket);
            }
            let now = Instant::now();
            let state = self.lock();
            if let Some(failure) = &state.failure {
                let over = now >= self.patience.deadline || now >= failure.latest;
                if over || (now >= failure.due && self.all_know(&state)?) {
                    return Err(failure.error.clone());
                }
                drop(state);
                thread::sleep(POLL);
                continue;
            }
            if self.is_complete(&state) {
                return Ok(());
            }
            if now >= self.patience.deadline {
                return Err(self.missing(&state, now - start));
            }
            let missing: Vec<usize> = match observer {
                Some(_) if now >= observed => self.absent(&state),
                _ => Vec::new(),
            };
            drop(state);
            if let Some(observer) = observer.filter(|_| now >= observed) {
                observed = now + OBSERVED;
                if let Err(reason) = observer.call(&missing) {
                    return Err(NetError::Interrupted { reason });
                }
            }
            if let Some(error) = self.inbox.failure() {
                self.fail(error, Duration::ZERO);
            }
            thread::sleep(POLL);
        }
    }

    fn is_complete(&self, state: &State) -> bool {
        self.absent(state).is_empty()
    }

    /// The peers to which a connection lacks, in one direction or both.
    fn absent(&self, state: &State) -> Vec<usize> {
        let there = |peer: usize| {
            matches!(state.outgoing.get(peer), Some(Some(_)))
                && matches!(state.incoming.get(peer), Some(Incoming::Ready))
        };
        let peers = self.members.peers().map(|peer| peer.index);
        peers.filter(|peer| !there(*peer)).collect()
    }

    /// Whether every peer hears of a failure when we hang up, or has found out itself, or is gone.
    fn all_know(&self, state: &State) -> Result<bool, NetError> {
        for peer in self.members.peers() {
            let knows = matches!(state.outgoing.get(peer.index), Some(Some(_)))
                || state.informed.get(peer.index) == Some(&true)
                || self.inbox.has_ended(peer.index)?;
            if !knows {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The error when time has run out.
    fn missing(&self, state: &State, waited: Duration) -> NetError {
        let dropped = if state.dropped.is_empty() {
            String::new()
        } else {
            let list: Vec<&str> = state.dropped.iter().map(String::as_str).collect();
            format!("; dropped connections: {}", list.join(", "))
        };
        let waited = waited.as_secs_f64();
        for peer in self.members.peers() {
            let index = peer.index;
            if !matches!(state.outgoing.get(index), Some(Some(_))) {
                let (kind, last) = match state.dial_errors.get(index) {
                    Some(Some(error)) => (error.kind(), error.to_string()),
                    _ => (ErrorKind::TimedOut, "no answer".to_owned()),
                };
                return NetError::Connect {
                    peer: index,
                    addr: peer.address(),
                    source: Arc::new(io::Error::new(
                        kind,
                        format!("{last} (for {waited:.1} s){dropped}"),
                    )),
                };
            }
            if !matches!(state.incoming.get(index), Some(Incoming::Ready)) {
                return NetError::Timeout {
                    peer: index,
                    waiting_for: format!("its connection to our port ({waited:.1} s){dropped}"),
                };
            }
        }
        NetError::internal("a set-up that lacks nothing ran out of time")
    }

    fn fail(&self, error: NetError, grace: Duration) {
        let now = Instant::now();
        let due = now + grace;
        let mut state = self.lock();
        match &mut state.failure {
            Some(first) => first.due = due.min(first.due),
            none => {
                *none = Some(Failure {
                    error,
                    due,
                    latest: now + grace.max(LINGER),
                });
            }
        }
    }

    /// Notes that set-up fails for a reason that `peer` sees as well.
    fn fail_with(&self, peer: usize, error: NetError, grace: Duration) {
        let error = match self.lock().informed.get_mut(peer) {
            Some(informed) => {
                *informed = true;
                error
            }
            None => NetError::internal(NOT_LISTED),
        };
        self.fail(error, grace);
    }

    fn note_dropped(&self, note: &str) {
        let mut state = self.lock();
        if state.dropped.len() >= REMEMBERED {
            state.dropped.pop_front();
        }
        state.dropped.push_back(one_line(note, 200));
    }

    /// Dials `peer` until it answers or set-up is over.
    fn dial(&self, peer: &Peer) {
        let mut pause = FIRST_PAUSE;
        while !self.patience.is_over() {
            let reached = reach(
                &self.members.own,
                peer,
                &self.hello,
                Purpose::Session,
                &self.patience,
            );
            let unreached = match reached {
                Ok(reached) => return self.store(peer.index, reached),
                Err(unreached) => unreached,
            };
            match unreached.reason {
                Reason::Final(error) => {
                    let grace = match error {
                        NetError::WrongCertificate { .. } | NetError::CertificateRefused { .. } => {
                            GRACE
                        }
                        _ => Duration::ZERO,
                    };
                    return self.fail_with(peer.index, error, grace);
                }
                Reason::Retry(error) => {
                    let mut state = self.lock();
                    let Some(slot) = state.dial_errors.get_mut(peer.index) else {
                        drop(state);
                        return self.fail(NetError::internal(NOT_LISTED), Duration::ZERO);
                    };
                    *slot = Some(error);
                }
            }
            if let Some(stream) = unreached.stream {
                self.leave(*stream);
            }
            thread::sleep(pause.min(self.patience.left()));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Keeps the connection that we dialled, if the peer agrees with us.
    fn store(&self, peer: usize, reached: Reached) {
        if let Err(error) = self.agree(peer, &reached.greeting) {
            return self.fail_with(peer, error, Duration::ZERO);
        }
        let mut state = self.lock();
        if self.is_over() {
            drop(state);
            return self.leave(reached.stream);
        }
        match state.outgoing.get_mut(peer) {
            Some(slot) => *slot = Some(reached.stream),
            None => {
                drop(state);
                self.fail(NetError::internal(NOT_LISTED), Duration::ZERO);
            }
        }
    }

    /// Ends a connection of a set-up that is over with the reason, so that the peer does not take us for dead.
    fn leave(&self, mut stream: Dialled) {
        let last_words = self.lock().last_words.clone();
        if let Some(reason) = last_words {
            stream.finish(Kind::Abort, reason.as_bytes(), LAST_WORDS);
            stream.wait_until_read(Instant::now() + LAST_WORDS);
        }
    }

    fn agree(&self, peer: usize, theirs: &Greeting) -> Result<(), NetError> {
        if theirs.purpose != Purpose::Session {
            return Err(NetError::HelloMismatch {
                peer,
                field: "purpose".into(),
                mine: Purpose::Session.to_string(),
                theirs: theirs.purpose.to_string(),
            });
        }
        self.hello.compare(peer, theirs)
    }

    /// Deals with an accepted connection in a thread of its own, so that a silent one holds nobody up.
    fn greet(self: &Arc<Self>, socket: TcpStream) {
        // Who is gone again already needs no place.
        let visit = match self.greetings.admit(&socket) {
            Ok(visit) => visit,
            Err(error) => return self.note_dropped(&format!("somebody ({error})")),
        };
        let host = Arc::clone(self);
        let started = spawn("kq-greet".to_owned(), move || {
            match receive(
                &host.members,
                socket,
                &host.hello,
                Purpose::Session,
                host.max_message,
                &host.patience,
                &visit,
            ) {
                Visitor::Dropped(note) => host.note_dropped(&note),
                Visitor::Failed(error) => host.fail(error, Duration::ZERO),
                Visitor::Member {
                    peer,
                    greeting,
                    stream,
                } => host.welcome(peer, &greeting, *stream),
            }
        });
        if let Err(error) = started {
            self.note_dropped(&error.to_string());
        }
    }

    /// Answers the hello of a listed party, and keeps the connection if it agrees with us.
    fn welcome(&self, peer: usize, greeting: &Greeting, mut stream: Accepted) {
        let own_hello = match self.hello.encode(Purpose::Session, peer) {
            Ok(hello) => hello,
            Err(error) => return self.fail(error, Duration::ZERO),
        };
        if greeting.purpose == Purpose::Probe {
            // It is only looking; if it has left already, that is its affair.
            let _ = stream.answer(Kind::Hello, &own_hello, &self.patience);
            return stream.dismiss();
        }
        if let Err(error) = self.hello.compare(peer, greeting) {
            // It has to learn of the difference as well, but need not be there any more.
            let _ = stream.answer(Kind::Hello, &own_hello, &self.patience);
            self.fail_with(peer, error, Duration::ZERO);
            return stream.dismiss();
        }
        let free = self.lock().incoming.get_mut(peer).map(|slot| {
            let free = matches!(slot, Incoming::Missing);
            if free {
                *slot = Incoming::Reserved;
            }
            free
        });
        let Some(free) = free else {
            return self.fail(NetError::internal(NOT_LISTED), Duration::ZERO);
        };
        if !free {
            self.note_dropped(&format!("a second connection of party {peer}"));
            let reason = format!("party {peer} is connected already: is it running twice?");
            let _ = stream.answer(Kind::Abort, reason.as_bytes(), &self.patience);
            return stream.dismiss();
        }
        let answered = stream.answer(Kind::Hello, &own_hello, &self.patience);
        let mut state = self.lock();
        let incoming = match answered {
            Ok(()) if self.is_over() => return,
            Ok(()) => {
                self.door.add(peer, stream);
                Incoming::Ready
            }
            // It will dial again.
            Err(_) => Incoming::Missing,
        };
        match state.incoming.get_mut(peer) {
            Some(slot) => *slot = incoming,
            None => {
                drop(state);
                self.fail(NetError::internal(NOT_LISTED), Duration::ZERO);
            }
        }
    }
}
