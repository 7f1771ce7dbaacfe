//! Oblivious transfer between all pairs of a session: set up once, when the first engine asks, and used by all engines,
//! each with streams of its own. Malicious-secure protocols have links of their own: where nothing is checked, an adversary
//! could learn the keys of the links.

use std::sync::Arc;

use keyquorum_ot::vole::{FixedKey, Multiplicand};
use keyquorum_ot::{
    Inbound, LinkKey, OtError, Outbound, Parameters, Receiver, ReceiverLink, Security, Sender,
    SenderLink,
};

use super::Session;
use crate::error::{Check, EngineError, Result};
use crate::protocol::{Channel, Peer};
use crate::value::zip;

/// Both directions between us and one peer.
#[derive(Clone)]
pub(crate) struct Link {
    receiver: Arc<ReceiverLink>,
    sender: Arc<SenderLink>,
}

impl Link {
    /// Opens stream `stream` in both directions.
    pub fn channel(&self, stream: u64, security: Security) -> Channel {
        Channel {
            receiver: Receiver::new(Arc::clone(&self.receiver), stream, security),
            sender: Sender::new(Arc::clone(&self.sender), stream, security),
        }
    }
}

impl Link {
    /// Oblivious transfer and products with keys of MACs, in stream `stream`.
    pub fn peer(&self, stream: u64) -> Peer {
        Peer {
            channel: self.channel(stream, Security::Malicious),
            give: Multiplicand::new(Arc::clone(&self.receiver), stream),
            keep: FixedKey::new(Arc::clone(&self.sender), stream),
        }
    }
}

fn blame(peer: usize) -> impl Fn(OtError) -> EngineError {
    move |e| {
        let what = format!("set-up of oblivious transfer with party {peer}");
        EngineError::ot(Check::PuncturedPrfs, &what, &e)
    }
}

/// Sets up all links of this party: two exchanges, about 13 KB to each peer, or 23 KB where links have keys of MACs; with base OT from ML-KEM
/// 583 KB or 1,020 KB. `label` says what
/// the links are for, `parameters` what they have, and `key` makes the key of one link.
pub(crate) fn establish(
    session: &Session,
    label: &str,
    parameters: Parameters,
    key: impl Fn() -> std::result::Result<LinkKey, OtError>,
) -> Result<Vec<Option<Link>>> {
    let (me, parties) = (session.party(), session.parties());
    let peers: Vec<usize> = (0..parties).filter(|peer| *peer != me).collect();
    let mut started = Vec::with_capacity(peers.len());
    for &peer in &peers {
        let outgoing = session.link_context(label, me, peer)?;
        let (inbound, first) = Inbound::start(parameters).map_err(blame(peer))?;
        let (outbound, keys) = key()
            .and_then(|key| Outbound::start(parameters, &outgoing, key))
            .map_err(blame(peer))?;
        session.send(peer, &[first, keys].concat())?;
        started.push((inbound, outbound));
    }
    let mut finished = Vec::with_capacity(peers.len());
    for (&peer, (inbound, outbound)) in zip(&peers, started)? {
        let incoming = session.link_context(label, peer, me)?;
        let bytes = parameters.inbound_bytes() + parameters.outbound_bytes();
        let received = session.receive(peer, bytes)?;
        // The length of both is checked by those who read them.
        let (first, keys) = received.split_at(parameters.inbound_bytes().min(received.len()));
        let (receiver, answer) = inbound.finish(&incoming, keys).map_err(blame(peer))?;
        session.send(peer, &answer)?;
        finished.push((Arc::new(receiver), outbound, first.to_vec()));
    }
    let mut messages = Vec::with_capacity(peers.len());
    for (&peer, end) in zip(&peers, finished)? {
        let answer = session.receive(peer, parameters.answer_bytes())?;
        messages.push((peer, session.link_context(label, me, peer)?, answer, end));
    }
    let mut links: Vec<Option<Link>> = (0..parties).map(|_| None).collect();
    // Whether PRFs are consistent depends on our key.
    session.guard().verdict(|| {
        for (peer, outgoing, answer, (receiver, outbound, first)) in messages {
            let sender = outbound
                .finish(&outgoing, &first, &answer)
                .map_err(blame(peer))?;
            let slot = links.get_mut(peer);
            let slot =
                slot.ok_or_else(|| EngineError::internal("a link of a party that is not there"));
            *slot? = Some(Link {
                receiver,
                sender: Arc::new(sender),
            });
        }
        Ok(())
    })?;
    Ok(links)
}
