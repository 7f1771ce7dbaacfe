//! Parties in processes of their own, over TLS.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use crate::calibrate::{Shaped, calibrate};
use crate::error::one_line;
use crate::frame::{Kind, MAX_REASON};
use crate::hello::Hello;
use crate::identity::Identity;
use crate::inbox::{DEFAULT_QUEUE_LIMIT, Inbox};
use crate::members::{Members, Peer};
use crate::port::open_port;
use crate::receive::Receiver;
use crate::setup::{Links, SetupObserver, connect_all, end_all};
use crate::shape::{Bucket, LinkShape};
use crate::stream::WriteError;
use crate::{Counters, Length, NetError, Transport};

/// Longest wait, at the end of a session, until the peers have read our close or abort.
const CLOSE_DELIVERY: Duration = Duration::from_secs(2);

/// After a write failed: longest wait for the reason that the peer sends.
const EXPLANATION: Duration = Duration::from_secs(1);

/// Default bound on one message.
const DEFAULT_MAX_MESSAGE: usize = 1 << 30;

/// Default bound on set-up, and on every wait afterwards.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// The configuration of a party for a session.
#[derive(Debug)]
pub struct TlsConfig {
    /// Our own index.
    pub me: usize,
    /// Our key.
    pub identity: Identity,
    /// All other parties; an entry of our own may be there as well, and then must list our own fingerprint.
    pub peers: Vec<Peer>,
    /// Where to listen; if neither this nor `listener` is set, on the port of our own entry in `peers`.
    pub listen: Option<SocketAddr>,
    /// A port that is open already; goes before `listen`.
    pub listener: Option<TcpListener>,
    /// The hello, on which the parties must agree.
    pub hello: Hello,
    /// Bound on the whole set-up.
    pub connect_timeout: Duration,
    /// Bound on every wait of `send` and `recv` without any progress. A long message that keeps moving may take longer:
    /// one second more for each 64 KiB.
    pub io_timeout: Duration,
    /// Bound on one message, in bytes; the same at all parties.
    pub max_message: usize,
    /// Bound on the bytes that a peer makes us keep beyond those that we wait for or have announced ([`Transport::expect`]): more is not
    /// read, so that the peer's sends wait. All messages of the read that reaches the bound are still kept.
    pub queue_limit: usize,
    /// Simulates links of this shape to all peers; the same at all parties.
    pub shape: Option<LinkShape>,
    /// Called during set-up.
    pub observer: Option<SetupObserver>,
}

impl TlsConfig {
    /// A configuration with the default bounds: 60 s per wait, 1 GiB per message, 64 MiB per queue.
    #[must_use]
    pub fn new(me: usize, identity: Identity, peers: Vec<Peer>, hello: Hello) -> Self {
        Self {
            me,
            identity,
            peers,
            listen: None,
            listener: None,
            hello,
            connect_timeout: DEFAULT_TIMEOUT,
            io_timeout: DEFAULT_TIMEOUT,
            max_message: DEFAULT_MAX_MESSAGE,
            queue_limit: DEFAULT_QUEUE_LIMIT,
            shape: None,
            observer: None,
        }
    }
}

impl TlsConfig {
    /// Our own entry among the peers.
    pub(crate) fn own_entry(&self) -> Option<Peer> {
        let own = |peer: &&Peer| peer.index == self.me;
        self.peers.iter().find(own).cloned()
    }
}

/// One party of a session over TLS 1.3, both sides of every connection pinned by certificate fingerprint.
///
/// Per peer it has one connection for sending and one for receiving; one thread reads them all. Dropping it closes it;
/// dropping it in a panic aborts the session.
pub struct TlsTransport {
    me: usize,
    parties: usize,
    receiver: Receiver,
    links: Option<Links>,
    /// Of everything that it sends, on simulated links that share their bandwidth.
    egress: Option<Bucket>,
    max_message: usize,
}

impl TlsTransport {
    /// Connects to all peers, which may start in any order.
    ///
    /// Strangers that connect to our port are dropped, and mentioned in the error if a peer stays away.
    ///
    /// # Errors
    /// [`NetError::Config`] or [`NetError::Listen`] at once; [`NetError::WrongCertificate`],
    /// [`NetError::CertificateRefused`], [`NetError::HelloMismatch`], [`NetError::MalformedFrame`],
    /// [`NetError::PeerAborted`] or [`NetError::PeerClosed`] as soon as a peer is found at fault;
    /// [`NetError::Connect`] or [`NetError::Timeout`] when `connect_timeout` is over;
    /// [`NetError::Interrupted`] if the observer returns a reason.
    pub fn connect(config: TlsConfig) -> Result<Self, NetError> {
        let own = config.own_entry();
        let members = Members::new(config.me, config.identity, &config.peers, &config.hello)?;
        let parties = members.parties();
        let listener = match parties {
            1 => None,
            _ => Some(open_port(config.listener, config.listen, own.as_ref())?),
        };
        let inbox = Arc::new(Inbox::new(config.me, parties, config.queue_limit));
        let links = connect_all(
            members,
            config.hello,
            listener,
            Arc::clone(&inbox),
            config.max_message,
            config.connect_timeout,
            config.observer.as_ref(),
        )?;
        let mut this = Self {
            me: config.me,
            parties,
            receiver: Receiver::new(inbox, parties, config.io_timeout),
            links: Some(links),
            egress: None,
            max_message: config.max_message,
        };
        if let Some(shape) = config.shape {
            calibrate(&mut this, shape)?;
            this.egress = shape.is_shared().then(|| Bucket::new(shape));
            this.receiver.counters = Counters::new(parties);
        }
        Ok(this)
    }

    fn put(&mut self, to: usize, payload: &[u8]) -> Result<(), NetError> {
        self.receiver.inbox.check_open(to)?;
        if payload.len() > self.max_message {
            return Err(NetError::MessageTooLong {
                peer: to,
                len: payload.len(),
                max: self.max_message,
            });
        }
        let Some(stream) = self
            .links
            .as_mut()
            .and_then(|links| links.outgoing.get_mut(to))
            .and_then(Option::as_mut)
        else {
            return Err(NetError::internal("no connection to a peer that is open"));
        };
        let inbox = &self.receiver.inbox;
        let still_open = || inbox.check_open(to);
        let timeout = self.receiver.timeout;
        match stream.write_message(payload, timeout, &still_open, self.egress.as_mut()) {
            Ok(wire) => {
                let counters = &mut self.receiver.counters;
                counters.count_sent(to, payload.len(), wire)
            }
            Err(WriteError::Ended(error)) => Err(error),
            Err(WriteError::Stalled) => Err(NetError::Timeout {
                peer: to,
                waiting_for: format!(
                    "it to take a message of {} bytes ({:.1} s)",
                    payload.len(),
                    self.receiver.timeout.as_secs_f64()
                ),
            }),
            // The peer has gone; its close or abort comes on the other connection.
            Err(WriteError::Io(error)) => {
                Err(inbox
                    .wait_for_end(to, EXPLANATION)
                    .unwrap_or_else(|| NetError::Io {
                        peer: to,
                        source: Arc::new(error),
                    }))
            }
        }
    }

    fn end(&mut self, kind: Kind, reason: &str) {
        if let Some(links) = self.links.take() {
            end_all(links, &self.receiver.inbox, kind, reason, CLOSE_DELIVERY);
        }
    }
}

impl Transport for TlsTransport {
    fn party(&self) -> usize {
        self.me
    }

    fn parties(&self) -> usize {
        self.parties
    }

    fn send(&mut self, to: usize, payload: &[u8]) -> Result<(), NetError> {
        let result = self.put(to, payload);
        self.receiver.note(result)
    }

    fn expect(&mut self, from: usize, bytes: usize) -> Result<(), NetError> {
        self.receiver.inbox.expect(from, bytes)
    }

    fn take(&mut self, from: usize, len: Length) -> Result<Vec<u8>, NetError> {
        self.receiver.take(from, len)
    }

    fn settle(&mut self) -> Result<(), NetError> {
        self.receiver.settle()
    }

    fn counters(&self) -> &Counters {
        &self.receiver.counters
    }

    fn close(&mut self) {
        match self.receiver.failure() {
            Some(reason) => self.abort(&reason),
            None => self.end(Kind::Close, "closed"),
        }
    }

    fn abort(&mut self, reason: &str) {
        self.end(Kind::Abort, &one_line(reason, MAX_REASON));
    }
}

impl Shaped for TlsTransport {
    fn shape(&self, peer: usize, shape: LinkShape, path: Duration) -> Result<(), NetError> {
        self.receiver.inbox.shape(peer, shape, path)
    }
}

impl Drop for TlsTransport {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.abort("its thread panicked");
        }
        self.close();
    }
}
