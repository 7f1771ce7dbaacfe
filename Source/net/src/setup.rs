//! Set-up of a session: every party dials every other one to send on this connection, and accepts one connection from each to receive on
//! it. So the parties may start in any order.
//!
//! Modules: `dial` (connections that we dial), `accept` (connections that we accept).

mod accept;
mod dial;

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::NetError;
use crate::error::one_line;
use crate::frame::{Kind, MAX_REASON};
use crate::handshakes::Handshakes;
use crate::hello::Hello;
use crate::inbox::Inbox;
use crate::members::Members;
use crate::port::accept_waiting;
use crate::reader::{Reader, RegistrationQueue};
use crate::stream::{Dialled, Patience};
use crate::threads::{POLL, spawn};

/// Pause between two calls of the observer.
const OBSERVED: Duration = Duration::from_millis(100);

/// First and longest pause between attempts to dial.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(10);
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// How long set-up goes on after a certificate was found wrong, so that the other side can find the same.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// Dropped connections that are remembered for the error message.
const REMEMBERED: usize = 4;

/// How long a set-up that failed goes on for parties that start later than we do: else they would report us as the party at fault.
const LINGER: Duration = Duration::from_secs(3);

/// How long a set-up that failed waits until its reason is delivered.
const ABORT_DELIVERY: Duration = Duration::from_millis(500);

/// Excluded: only members are dialled or accepted, and each of them has an entry.
pub(crate) const NOT_LISTED: &str = "a connection of a party that is not listed";

/// A function of the caller that is called during set-up, about ten times a second, with the peers that are missing. Set-up ends with
/// [`NetError::Interrupted`] if it returns a reason, which the connected peers receive as well.
pub struct SetupObserver(Box<Observe>);

type Observe = dyn Fn(&[usize]) -> Result<(), String> + Send + Sync;

impl SetupObserver {
    /// An observer that calls `observe`.
    pub fn new(observe: impl Fn(&[usize]) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Box::new(observe))
    }

    pub(crate) fn call(&self, missing: &[usize]) -> Result<(), String> {
        (self.0)(missing)
    }
}

impl fmt::Debug for SetupObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SetupObserver")
    }
}

/// All connections of one party.
pub(crate) struct Links {
    /// By index of the peer; `None` at our own.
    pub(crate) outgoing: Vec<Option<Dialled>>,
    pub(crate) reader: Reader,
}

enum IncomingState {
    Missing,
    /// Another thread answers its hello.
    Reserved,
    Ready,
}

struct State {
    outgoing: Vec<Option<Dialled>>,
    incoming: Vec<IncomingState>,
    failure: Option<Failure>,
    /// Peers that have found the failure themselves.
    informed: Vec<bool>,
    /// Last failure to dial, per peer.
    dial_errors: Vec<Option<io::Error>>,
    /// Accepted connections that were dropped, for the error message.
    dropped: VecDeque<String>,
    /// The reason to send to peers that are reached after the end of set-up; empty if it succeeded.
    ending: Option<String>,
}

/// Why set-up fails.
struct Failure {
    error: NetError,
    /// When set-up may end if all peers know of the failure.
    due: Instant,
    /// When set-up ends in any case.
    latest: Instant,
}

struct Setup {
    members: Members,
    hello: Hello,
    inbox: Arc<Inbox>,
    registrations: Arc<RegistrationQueue>,
    max_message: usize,
    patience: Patience,
    state: Mutex<State>,
    handshakes: Arc<Handshakes>,
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
        registrations: reader.registrations(),
        max_message,
        patience: Patience {
            deadline: start + timeout,
            cancel: Arc::new(AtomicBool::new(false)),
        },
        state: Mutex::new(State {
            outgoing: (0..parties).map(|_| None).collect(),
            incoming: (0..parties).map(|_| IncomingState::Missing).collect(),
            failure: None,
            informed: vec![false; parties],
            dial_errors: (0..parties).map(|_| None).collect(),
            dropped: VecDeque::new(),
            ending: None,
        }),
        handshakes: Arc::default(),
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
    // From here on no connection is added: see `store` and `keep`.
    state.ending = Some(reason.clone());
    setup.patience.cancel.store(true, Ordering::Relaxed);
    let links = Links {
        outgoing: std::mem::take(&mut state.outgoing),
        reader,
    };
    drop(state);
    match result {
        Ok(()) => Ok(links),
        Err(error) => {
            end_all(links, &setup.inbox, Kind::Abort, &reason, ABORT_DELIVERY);
            Err(error)
        }
    }
}

/// Sends a close or an abort to all peers, waits (at most twice `limit`) until they have read it, and ends all connections.
pub(crate) fn end_all(links: Links, inbox: &Inbox, kind: Kind, reason: &str, limit: Duration) {
    let (body, state) = match kind {
        Kind::Abort => (reason.as_bytes(), format!("aborted: {reason}")),
        _ => (&[][..], reason.to_owned()),
    };
    // From now on the reader discards what it reads, so that no peer waits for us.
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

impl Setup {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.patience.cancel.load(Ordering::Relaxed)
    }

    /// Accepts connections until all connections are made or set-up has failed.
    fn wait(
        self: &Arc<Self>,
        listener: Option<&TcpListener>,
        start: Instant,
        observer: Option<&SetupObserver>,
    ) -> Result<(), NetError> {
        let mut observed = start;
        loop {
            for socket in listener.into_iter().flat_map(accept_waiting) {
                self.accept(socket);
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

    /// The peers without a connection in one direction or both.
    fn absent(&self, state: &State) -> Vec<usize> {
        let there = |peer: usize| {
            matches!(state.outgoing.get(peer), Some(Some(_)))
                && matches!(state.incoming.get(peer), Some(IncomingState::Ready))
        };
        let peers = self.members.peers().map(|peer| peer.index);
        peers.filter(|peer| !there(*peer)).collect()
    }

    /// Whether every peer receives the reason of the failure when we end, or has found it itself, or is gone.
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
            if !matches!(state.incoming.get(index), Some(IncomingState::Ready)) {
                return NetError::Timeout {
                    peer: index,
                    waiting_for: format!("its connection to our port ({waited:.1} s){dropped}"),
                };
            }
        }
        NetError::internal("a complete set-up ran out of time")
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
}
