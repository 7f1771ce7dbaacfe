//! Probes before a session: is each party reachable, with the right certificate, version and clock?
//!
//! In doctor mode every party runs a [`Responder`] and probes all the others; [`doctor`] does both. A party that waits
//! in the set-up of a session answers probes as well.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::NetError;
use crate::error::one_line;
use crate::frame::Kind;
use crate::handshakes::{Handshakes, Slot};
use crate::hello::{Hello, Purpose, wall_clock};
use crate::identity::Identity;
use crate::incoming::{Incoming, identify};
use crate::members::{Members, ONE_GREETING, Own, Peer};
use crate::outgoing::{Reached, Reason, reach};
use crate::port::{accept_waiting, open_port};
use crate::session::TlsConfig;
use crate::setup::{FIRST_PAUSE, GRACE, LONGEST_PAUSE, NOT_LISTED};
use crate::stream::{Patience, StreamError};
use crate::threads::{POLL, spawn};
use crate::tls::LinkSecurity;

/// Dropped connections that a responder remembers.
const REMEMBERED: usize = 32;

/// What a probe of one party found.
#[derive(Clone, Debug)]
pub struct ProbeReport {
    /// The party probed.
    pub peer: usize,
    /// Its listed address.
    pub address: String,
    /// Whether something accepts connections there.
    pub reachable: bool,
    /// Fingerprint of the certificate shown there (SHA-256); not verified if there is a `problem`.
    pub fingerprint_seen: Option<[u8; 32]>,
    /// The version that it runs.
    pub version: Option<String>,
    /// What the TLS of the connection uses.
    pub security: Option<LinkSecurity>,
    /// Its hello.
    pub hello: Option<Hello>,
    /// Whether it waits for a session rather than in doctor mode.
    pub in_session: bool,
    /// Seconds by which its clock is ahead of ours (negative: behind), give or take half the round trip.
    pub clock_offset: Option<f64>,
    /// Time from our hello to its answer.
    pub round_trip: Option<Duration>,
    /// The first problem found; `None` if there is none. The clock offset is not counted as one.
    pub problem: Option<NetError>,
}

/// Probes one party, which has to be in set-up or in doctor mode; tries again until `timeout`.
///
/// `hello` is ours; compared are version, committee, number of parties and the peer's index, not what is about to run.
#[must_use]
pub fn probe(peer: &Peer, identity: &Identity, hello: &Hello, timeout: Duration) -> ProbeReport {
    let patience = Patience {
        deadline: Instant::now() + timeout,
        cancel: Arc::new(AtomicBool::new(false)),
    };
    probe_patiently(peer, &Own::new(identity.clone()), hello, &patience)
}

fn probe_patiently(peer: &Peer, own: &Own, hello: &Hello, patience: &Patience) -> ProbeReport {
    let mut report = ProbeReport {
        peer: peer.index,
        address: peer.address(),
        reachable: false,
        fingerprint_seen: None,
        version: None,
        security: None,
        hello: None,
        in_session: false,
        clock_offset: None,
        round_trip: None,
        problem: None,
    };
    let mut pause = FIRST_PAUSE;
    let mut last: Option<std::io::Error> = None;
    loop {
        let unreached = match reach(own, peer, hello, Purpose::Probe, patience) {
            Ok(reached) => {
                report.fill_in(peer, hello, reached);
                return report;
            }
            Err(unreached) => unreached,
        };
        report.reachable = unreached.connected;
        report.fingerprint_seen = unreached.fingerprint;
        match unreached.reason {
            Reason::Final(error) => {
                report.problem = Some(error);
                return report;
            }
            Reason::Retry(error) if patience.is_over() => {
                report.problem = Some(NetError::Connect {
                    peer: peer.index,
                    addr: peer.address(),
                    source: Arc::new(more_informative(last, error)),
                });
                return report;
            }
            Reason::Retry(error) => last = Some(more_informative(last.take(), error)),
        }
        thread::sleep(pause.min(patience.left()));
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Of two failures to reach a peer the more informative one: the last attempt may have failed only because no time was left.
fn more_informative(before: Option<std::io::Error>, now: std::io::Error) -> std::io::Error {
    match before {
        Some(before) if now.kind() == std::io::ErrorKind::TimedOut => before,
        _ => now,
    }
}

impl ProbeReport {
    fn fill_in(&mut self, peer: &Peer, ours: &Hello, reached: Reached) {
        let now = wall_clock();
        let Reached {
            greeting,
            security,
            round_trip,
            ..
        } = reached;
        // The peer stamped its answer about half a round trip ago.
        let here = now.as_secs_f64() - round_trip.as_secs_f64() / 2.0;
        self.reachable = true;
        self.fingerprint_seen = Some(peer.fingerprint);
        self.version = Some(one_line(&greeting.hello.version, 100));
        self.security = Some(security);
        self.in_session = greeting.purpose == Purpose::Session;
        self.clock_offset = Some(greeting.clock.as_secs_f64() - here);
        self.round_trip = Some(round_trip);
        let same_run = Hello {
            context: greeting.hello.context.clone(),
            protocol: greeting.hello.protocol.clone(),
            domain: greeting.hello.domain.clone(),
            ..ours.clone()
        };
        // For other committees the contexts are compared: their entries show the difference.
        let compared = if ours.committee == greeting.hello.committee {
            &same_run
        } else {
            ours
        };
        self.problem = compared.compare(peer.index, &greeting).err();
        self.hello = Some(greeting.hello);
    }
}

#[derive(Default)]
struct Connections {
    /// Whether each party has reached us.
    seen: Vec<bool>,
    dropped: Vec<String>,
}

struct Host {
    members: Members,
    hello: Hello,
    connections: Mutex<Connections>,
    handshakes: Arc<Handshakes>,
    cancel: Arc<AtomicBool>,
}

/// Answers the probes of listed parties on our port until it is dropped. A party that dials for a session learns that we
/// are in doctor mode.
pub struct Responder {
    host: Arc<Host>,
    thread: Option<JoinHandle<()>>,
    address: Option<SocketAddr>,
}

impl Responder {
    /// Opens the port as [`TlsConfig`] says and starts to answer; the bounds of `config` are not used.
    ///
    /// # Errors
    /// [`NetError::Config`], [`NetError::Listen`].
    pub fn start(config: TlsConfig) -> Result<Self, NetError> {
        let own = config.own_entry();
        let members = Members::new(config.me, config.identity, &config.peers, &config.hello)?;
        let listener = open_port(config.listener, config.listen, own.as_ref())?;
        let address = listener.local_addr().ok();
        let host = Arc::new(Host {
            connections: Mutex::new(Connections {
                seen: vec![false; members.parties()],
                ..Connections::default()
            }),
            members,
            hello: config.hello,
            handshakes: Arc::default(),
            cancel: Arc::new(AtomicBool::new(false)),
        });
        let answering = Arc::clone(&host);
        let thread = spawn("kq-respond".to_owned(), move || answering.run(&listener))?;
        Ok(Self {
            host,
            thread: Some(thread),
            address,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// The parties that have reached us so far, with a listed certificate.
    #[must_use]
    pub fn reached_by(&self) -> Vec<usize> {
        let connections = self.host.lock();
        let seen = connections.seen.iter().enumerate();
        seen.filter(|(_, seen)| **seen)
            .map(|(index, _)| index)
            .collect()
    }

    /// Accepted connections that were dropped, one line each.
    #[must_use]
    pub fn dropped(&self) -> Vec<String> {
        self.host.lock().dropped.clone()
    }

    /// Waits until each of `parties` has reached us, or until `timeout`; returns whether all have.
    pub fn wait_for(&self, parties: &[usize], timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        loop {
            let reached = self.reached_by();
            if parties.iter().all(|party| reached.contains(party)) {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(POLL);
        }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.host.cancel.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked returns nothing.
            let _ = thread.join();
        }
    }
}

impl Host {
    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn run(self: Arc<Self>, listener: &TcpListener) {
        while !self.cancel.load(Ordering::Relaxed) {
            for socket in accept_waiting(listener) {
                self.accept(socket);
            }
            thread::sleep(POLL);
        }
    }

    fn accept(self: &Arc<Self>, socket: TcpStream) {
        let slot = match self.handshakes.admit(&socket) {
            Ok(slot) => slot,
            Err(error) => return note(&mut self.lock(), &format!("an unknown address ({error})")),
        };
        let host = Arc::clone(self);
        let started = spawn("kq-greet".to_owned(), move || host.answer(socket, &slot));
        if let Err(error) = started {
            note(&mut self.lock(), &error.to_string());
        }
    }

    fn answer(&self, socket: TcpStream, slot: &Slot) {
        let patience = Patience {
            deadline: Instant::now() + ONE_GREETING,
            cancel: Arc::clone(&self.cancel),
        };
        match identify(
            &self.members,
            socket,
            &self.hello,
            Purpose::Probe,
            0,
            &patience,
            slot,
        ) {
            Incoming::Dropped(text) => note(&mut self.lock(), &text),
            Incoming::Failed(error) => note(&mut self.lock(), &error.to_string()),
            Incoming::Member {
                peer, mut stream, ..
            } => {
                let answered = self
                    .hello
                    .encode(Purpose::Probe, peer)
                    .map_err(StreamError::Internal)
                    .and_then(|hello| stream.answer(Kind::Hello, &hello, &patience));
                match answered {
                    Ok(()) => {
                        let mut connections = self.lock();
                        match connections.seen.get_mut(peer) {
                            Some(seen) => *seen = true,
                            None => note(
                                &mut connections,
                                &NetError::internal(NOT_LISTED).to_string(),
                            ),
                        }
                    }
                    Err(error) => note(
                        &mut self.lock(),
                        &format!("party {peer} ({})", error.into_io()),
                    ),
                }
                stream.close_gently();
            }
        }
    }
}

fn note(connections: &mut Connections, text: &str) {
    if connections.dropped.len() < REMEMBERED {
        connections.dropped.push(one_line(text, 300));
    }
}

/// What [`doctor`] found.
#[derive(Clone, Debug)]
pub struct DoctorReport {
    /// One report per other party, in order of index.
    pub probes: Vec<ProbeReport>,
    /// The parties that reached us.
    pub reached_by: Vec<usize>,
    /// Connections to our port that were dropped, one line each.
    pub dropped: Vec<String>,
}

/// Answers the others' probes and probes all of them, until `connect_timeout` at the latest. All parties run it at about
/// the same time; it ends as soon as each party has reached all others.
///
/// # Errors
/// As [`Responder::start`], and [`NetError::Internal`]; problems of other parties are in the report.
pub fn doctor(config: TlsConfig) -> Result<DoctorReport, NetError> {
    let patience = Patience {
        deadline: Instant::now() + config.connect_timeout,
        cancel: Arc::new(AtomicBool::new(false)),
    };
    let responder = Responder::start(config)?;
    let host = &responder.host;
    let probes: Vec<ProbeReport> = thread::scope(|scope| {
        let probing: Vec<_> = host
            .members
            .peers()
            .map(|peer| {
                let patience = &patience;
                scope.spawn(move || probe_patiently(peer, &host.members.own, &host.hello, patience))
            })
            .collect();
        probing
            .into_iter()
            .map(|thread| thread.join())
            .collect::<Result<_, _>>()
    })
    .map_err(|_| NetError::internal("a probe panicked"))?;
    let (healthy, faulty): (Vec<&ProbeReport>, Vec<&ProbeReport>) =
        probes.iter().partition(|report| report.problem.is_none());
    let index = |reports: &[&ProbeReport]| -> Vec<usize> {
        reports.iter().map(|report| report.peer).collect()
    };
    responder.wait_for(&index(&healthy), patience.left());
    // A party with a problem may be unable to reach us: we wait for it briefly, not the whole time.
    responder.wait_for(&index(&faulty), patience.left().min(GRACE));
    Ok(DoctorReport {
        reached_by: responder.reached_by(),
        dropped: responder.dropped(),
        probes,
    })
}
