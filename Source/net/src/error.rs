//! The one error type of this crate.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// What can go wrong between parties. Every message is one line and names the party at fault and the remedy.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NetError {
    /// A wait reached its timeout.
    #[error(
        "party {peer} kept us waiting too long for {waiting_for}: check that it still runs and see its log, or raise the timeout"
    )]
    Timeout {
        /// The party that we waited for.
        peer: usize,
        /// What did not come, with the time waited.
        waiting_for: String,
    },
    /// The peer ended its side: it finished, stopped or was killed.
    #[error("party {peer} closed the connection (it finished, stopped or was killed): see its log")]
    PeerClosed {
        /// The party that is gone.
        peer: usize,
    },
    /// The peer gave up and sent its reason.
    #[error("party {peer} aborted: {reason}")]
    PeerAborted {
        /// The party that gave up.
        peer: usize,
        /// Its reason, as it sent it (control characters removed).
        reason: String,
    },
    /// The peer sent bytes that no correct party sends.
    #[error(
        "party {peer} sent a malformed frame: {detail}; check that all parties run the same version, program and arguments"
    )]
    MalformedFrame {
        /// The sender.
        peer: usize,
        /// What is wrong with the frame.
        detail: String,
    },
    /// The peer's certificate is not the one that the parties file lists.
    #[error(
        "party {peer} showed the certificate {got}, but the parties file lists {expected}: check the address, or exchange fingerprints again"
    )]
    WrongCertificate {
        /// The party that we meant to reach.
        peer: usize,
        /// The listed SHA-256 fingerprint, hex.
        expected: String,
        /// The fingerprint seen, hex.
        got: String,
    },
    /// The peer does not know our certificate.
    #[error(
        "party {peer} refused our certificate {ours}: its parties file lists another fingerprint for us; give it this one, or load the key that it lists"
    )]
    CertificateRefused {
        /// The party that refused us.
        peer: usize,
        /// Our own SHA-256 fingerprint, hex.
        ours: String,
    },
    /// The peer and we have no key exchange in common: X25519MLKEM768 is the only one that we offer and take.
    #[error(
        "party {peer} does not offer the key exchange X25519MLKEM768, which protects against quantum computers: run the same version of KeyQuorum at all parties; if they do, somebody changes what you send"
    )]
    KeyExchange {
        /// The party that we dialled, or somebody between us: nothing was authenticated yet.
        peer: usize,
    },
    /// The peers disagree on the run that they start.
    #[error(
        "party {peer} has {field} {theirs:?} where we have {mine:?}: all parties must agree on it"
    )]
    HelloMismatch {
        /// The party that differs from us.
        peer: usize,
        /// The field that differs: `version`, `committee`, `context`, `protocol`, `domain`, `parties`,
        /// `party` (its own number), `party (ours)`, `purpose` (session or doctor), `wire version`; or the name of the entry
        /// of `context` in which both differ.
        field: Box<str>,
        /// Our value.
        mine: String,
        /// The peer's value.
        theirs: String,
    },
    /// No connection to the peer could be made in time.
    #[error(
        "cannot connect to party {peer} at {addr}: {source}; check that it is started and that the address in the parties file is right"
    )]
    Connect {
        /// The party that we tried to reach.
        peer: usize,
        /// Its listed address.
        addr: String,
        /// The last failure.
        source: Arc<io::Error>,
    },
    /// The caller ended the set-up: see [`crate::SetupObserver`].
    #[error("{reason}")]
    Interrupted {
        /// The caller's reason.
        reason: String,
    },
    /// Our own port cannot be opened.
    #[error(
        "cannot listen on {addr}: {source}; choose a free port of this machine in the parties file"
    )]
    Listen {
        /// The address to listen on.
        addr: String,
        /// The failure.
        source: Arc<io::Error>,
    },
    /// The connection to the peer failed in another way.
    #[error("connection to party {peer} failed: {source}; check the network between us")]
    Io {
        /// The party at the other end.
        peer: usize,
        /// The failure.
        source: Arc<io::Error>,
    },
    /// A message is longer than the limit that all parties share.
    #[error(
        "message of {len} bytes to party {peer} exceeds the limit of {max}: send it in parts, or raise max_message at all parties"
    )]
    MessageTooLong {
        /// The receiver.
        peer: usize,
        /// Bytes to send.
        len: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// The caller named a party that cannot be a peer.
    #[error(
        "party {index} is no peer of party {me} among {parties} parties: use another index in 0..{parties}"
    )]
    NoSuchPeer {
        /// The index given.
        index: usize,
        /// Our own index.
        me: usize,
        /// Number of parties.
        parties: usize,
    },
    /// This end was closed or aborted by its owner.
    #[error("party {me} has already closed its side ({reason}): open a new session")]
    Closed {
        /// Our own index.
        me: usize,
        /// `closed`, or the reason of our abort.
        reason: String,
    },
    /// A key file that others than its owner can read.
    #[error("key file {} has mode {mode:04o}, so others can read it: run `chmod 600 {}`", path.display(), path.display())]
    KeyFileMode {
        /// The key file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A key file that cannot be read, written or understood.
    #[error("key file {}: {detail}", path.display())]
    KeyFile {
        /// The key file.
        path: PathBuf,
        /// What is wrong, and what to do.
        detail: String,
    },
    /// What came on a sealed channel is not what its other end sends.
    #[error(
        "sealed channel: {detail}: run the same version of KeyQuorum at both ends; if they do, somebody changed what was sent"
    )]
    Sealed {
        /// What came.
        detail: &'static str,
    },
    /// A state that the code excludes.
    #[error("internal error: {detail}: please report it, and run all parties again")]
    Internal {
        /// What was found.
        detail: &'static str,
    },
    /// A configuration that cannot work.
    #[error("network configuration: {detail}")]
    Config {
        /// What is wrong and how to correct it.
        detail: String,
    },
}

impl NetError {
    /// The error for a state that the code excludes.
    pub(crate) fn internal(detail: &'static str) -> Self {
        Self::Internal { detail }
    }

    /// Whether the fault lies in the call, so that the session itself can go on.
    pub(crate) fn is_misuse(&self) -> bool {
        matches!(
            self,
            Self::NoSuchPeer { .. } | Self::MessageTooLong { .. } | Self::Closed { .. }
        )
    }
}

/// Removes control characters and shortens, so that a peer's text stays on one line of our messages.
pub(crate) fn one_line(text: &str, max_chars: usize) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(max_chars)
        .collect()
}
