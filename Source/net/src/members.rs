//! The parties of a session, and which of them we are.

use std::sync::Arc;
use std::time::Duration;

use crate::NetError;
use crate::frame::widen;
use crate::hello::Hello;
use crate::identity::{Identity, fingerprint_hex};
use crate::tls::TlsParts;

/// Longest wait for the handshake and the hello on one connection with a listed party.
pub(crate) const ONE_GREETING: Duration = Duration::from_secs(10);

/// Excluded: the fingerprint of a certificate is noted before the certificate is refused.
pub(crate) const UNSEEN: &str = "a certificate was refused that was not seen";

/// A party as the parties file lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its index, in `0..parties`.
    pub index: usize,
    /// Host name or address where it listens.
    pub host: String,
    /// TCP port where it listens.
    pub port: u16,
    /// SHA-256 of its certificate's DER.
    pub fingerprint: [u8; 32],
}

impl Peer {
    pub(crate) fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// Our identity, and the TLS settings made of it.
pub(crate) struct Own {
    pub(crate) identity: Identity,
    pub(crate) tls: TlsParts,
}

impl Own {
    pub(crate) fn new(identity: Identity) -> Self {
        Self {
            tls: TlsParts::new(&identity),
            identity,
        }
    }
}

/// The parties of a session, checked.
pub(crate) struct Members {
    pub(crate) own: Own,
    /// One entry per party in order of index; `None` at our own.
    peers: Vec<Option<Peer>>,
    pub(crate) fingerprints: Arc<[[u8; 32]]>,
}

impl Members {
    /// Checks that `peers` lists every party but us exactly once (an entry of our own may be there and must be ours).
    pub(crate) fn new(
        me: usize,
        identity: Identity,
        listed: &[Peer],
        hello: &Hello,
    ) -> Result<Self, NetError> {
        let bad = |detail: String| Err(NetError::Config { detail });
        let parties = widen(hello.parties);
        if widen(hello.party) != me || me >= parties {
            return bad(format!(
                "our hello says party {} of {parties}, but we are party {me}",
                hello.party
            ));
        }
        if parties > listed.len() + 1 {
            return bad(format!(
                "{parties} parties, but only {} are listed",
                listed.len()
            ));
        }
        hello.check_size()?;
        let mut peers: Vec<Option<Peer>> = vec![None; parties];
        let mut fingerprints = Vec::with_capacity(parties);
        for peer in listed {
            let index = peer.index;
            if index == me {
                if peer.fingerprint != identity.fingerprint_bytes() {
                    return bad(format!(
                        "our key has the fingerprint {}, but the parties file lists {} for party {me}: load the key that it lists, or correct the file at all parties",
                        identity.fingerprint(),
                        fingerprint_hex(&peer.fingerprint)
                    ));
                }
                continue;
            }
            if peer.fingerprint == identity.fingerprint_bytes() {
                return bad(format!(
                    "the parties file lists our own certificate for party {index}: is this party {index}'s key or folder?"
                ));
            }
            if fingerprints.contains(&peer.fingerprint) {
                return bad(format!(
                    "party {index} has the same fingerprint as another party: every party needs a key of its own"
                ));
            }
            match peers.get_mut(index) {
                Some(slot @ None) => *slot = Some(peer.clone()),
                Some(Some(_)) => return bad(format!("party {index} is listed twice")),
                None => {
                    return bad(format!(
                        "party {index} is listed, but there are only {parties} parties"
                    ));
                }
            }
            fingerprints.push(peer.fingerprint);
        }
        if let Some(missing) =
            (0..parties).find(|&index| index != me && matches!(peers.get(index), Some(None)))
        {
            return bad(format!("party {missing} is not listed"));
        }
        Ok(Self {
            own: Own::new(identity),
            peers,
            fingerprints: fingerprints.into(),
        })
    }

    pub(crate) fn parties(&self) -> usize {
        self.peers.len()
    }

    /// The other parties.
    pub(crate) fn peers(&self) -> impl Iterator<Item = &Peer> {
        self.peers.iter().flatten()
    }

    /// The peer with this certificate.
    pub(crate) fn index_of(&self, fingerprint: &[u8; 32]) -> Option<usize> {
        self.peers()
            .find(|peer| peer.fingerprint == *fingerprint)
            .map(|peer| peer.index)
    }
}
