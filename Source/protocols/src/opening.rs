//! What a protocol is given when an engine is opened: the protocol that all parties agreed on, and streams and links of this engine alone.
//!
//! The session implements it (`opening.rs` of `mpc`), so that protocols know neither sessions nor engines.

use std::sync::Arc;

use keyquorum_math::{BitLanes, Domain, DomainKind, Prg, Z2k64, Z2k128, Zq, Zq128};
use keyquorum_ot::{Receiver, Security, Sender};

use super::Protocol;
use super::points::Points;
use crate::adversary::Corruption;
use crate::error::{Result, invalid};
use crate::unsettled::Unsettled;

/// Oblivious transfer with one peer, both ways.
pub struct Channel {
    /// OTs that we receive.
    pub receiver: Receiver,
    /// OTs that we send.
    pub sender: Sender,
}

/// How an opening among more than two parties sends its messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Openings {
    /// Every party sends to all others: one round.
    #[default]
    Direct,
    /// A king adds up and sends the sum: two rounds, fewer messages. Its name is `star`.
    King,
}

impl Openings {
    /// Its name, which parties compare.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::King => "star",
        }
    }
}

/// A stream in common with the parties of one subset of size n − t.
pub struct SubsetStream {
    /// The members, in increasing order.
    pub members: Vec<usize>,
    /// The stream.
    pub prg: Prg,
    /// A hash of its seed, which members compare: the member that chose the seed may have sent another one to others.
    pub fingerprint: [u8; 32],
}

/// See the module.
pub trait Opening {
    /// The engine that is opened.
    type Engine;

    /// Our number.
    fn party(&self) -> usize;

    /// Number of parties.
    fn parties(&self) -> usize;

    /// At which points the parties hold shares of Shamir's sharing.
    fn points(&self) -> Result<Points>;

    /// Corruptions tolerated.
    fn threshold(&self) -> usize;

    /// The arithmetic domain, one that the descriptor has.
    fn domain(&self) -> DomainKind;

    /// Streams in common with a peer: the one that we deal from, and the one that the peer deals from.
    fn pair_prgs(&self, peer: usize) -> Result<(Prg, Prg)>;

    /// [`Opening::pair_prgs`] of every peer, `None` for ourselves.
    fn all_pair_prgs(&self) -> Result<Vec<Option<(Prg, Prg)>>>;

    /// Streams in common with each subset of n − t parties that we are in.
    fn subset_streams(&self) -> Result<Vec<SubsetStream>>;

    /// A stream of our own.
    fn private_prg(&self) -> Result<Prg>;

    /// The adversary of this party: honest, but for tests.
    fn adversary(&self) -> Corruption;

    /// What all engines of the session have in common.
    fn unsettled(&self) -> Arc<Unsettled>;

    /// The stream of a protocol in clear text, labelled by its name.
    fn clear_prg(&self) -> Result<Prg>;

    /// Oblivious transfer with all peers, `None` for ourselves.
    fn channels(&self, security: Security) -> Result<Vec<Option<Channel>>>;

    /// How values are opened.
    fn openings(&self) -> Result<Openings>;

    /// The engine of a protocol: values in the first domain, shares in the second.
    ///
    /// # Errors
    /// [`EngineError::Internal`](crate::error::EngineError::Internal) if the protocol stores shares with another origin than its descriptor says.
    fn computation<P: Protocol<D>, D: Domain>(
        &self,
        protocol: P,
        domains: (D, D),
    ) -> Result<Self::Engine>;

    /// The engine of a protocol that is the same in every domain.
    fn in_any_domain<P>(&self, protocol: P) -> Result<Self::Engine>
    where
        P: Protocol<Zq> + Protocol<Zq128> + Protocol<Z2k64> + Protocol<Z2k128> + Protocol<BitLanes>,
    {
        match self.domain() {
            DomainKind::Fq(q) => alike(self, protocol, Zq::new(q).map_err(invalid)?),
            DomainKind::WideFq(q) => alike(self, protocol, Zq128::new(q).map_err(invalid)?),
            DomainKind::Z2k(k) if k <= 64 => alike(self, protocol, Z2k64::new(k).map_err(invalid)?),
            DomainKind::Z2k(k) => alike(self, protocol, Z2k128::new(k).map_err(invalid)?),
            DomainKind::Bits => alike(self, protocol, BitLanes),
        }
    }
}

fn alike<O: Opening + ?Sized, P: Protocol<D>, D: Domain>(
    opening: &O,
    protocol: P,
    domain: D,
) -> Result<O::Engine> {
    opening.computation(protocol, (domain.clone(), domain))
}
