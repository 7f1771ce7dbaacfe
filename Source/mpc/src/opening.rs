//! The engine of a session that a protocol opens: streams and links of this engine alone.

use std::sync::Arc;

use keyquorum_math::{Domain, DomainKind, Prg};
use keyquorum_ot::Security;

use crate::adversary::Corruption;
use crate::descriptor::Descriptor;
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::ops::Computation;
use crate::protocol::{
    Arithmetic, Authenticated, Channel, MacOpening, Opening, Openings, Origin, Points, Protocol,
    SubsetStream, Unsettled,
};
use crate::session::{EngineOptions, Session};

/// See the module.
pub(crate) struct SessionOpening {
    pub session: Session,
    pub descriptor: &'static Descriptor,
    pub domain: DomainKind,
    pub threshold: usize,
    pub index: u64,
    pub options: EngineOptions,
}

impl Opening for SessionOpening {
    type Engine = Box<dyn Engine>;

    fn party(&self) -> usize {
        self.session.party()
    }

    fn parties(&self) -> usize {
        self.session.parties()
    }

    fn points(&self) -> Result<Points> {
        self.session.points()
    }

    fn threshold(&self) -> usize {
        self.threshold
    }

    fn domain(&self) -> DomainKind {
        self.domain
    }

    fn pair_prgs(&self, peer: usize) -> Result<(Prg, Prg)> {
        self.session.pair_prgs(peer, self.index, &self.options)
    }

    fn all_pair_prgs(&self) -> Result<Vec<Option<(Prg, Prg)>>> {
        self.session.all_pair_prgs(self.index, &self.options)
    }

    fn subset_streams(&self) -> Result<Vec<SubsetStream>> {
        let (n, t) = (self.parties(), self.threshold);
        self.session.subset_streams(n, t, self.index, &self.options)
    }

    fn private_prg(&self) -> Result<Prg> {
        self.session.private_prg(self.index, &self.options)
    }

    fn adversary(&self) -> Corruption {
        self.session.adversary()
    }

    fn unsettled(&self) -> Arc<Unsettled> {
        self.session.unsettled()
    }

    fn clear_prg(&self) -> Result<Prg> {
        let label = self.descriptor.name;
        self.session.clear_prg(label, self.index, &self.options)
    }

    fn channels(&self, security: Security) -> Result<Vec<Option<Channel>>> {
        self.session.channels(self.index, security)
    }

    fn openings(&self) -> Result<Openings> {
        self.session.openings()
    }

    fn computation<P: Protocol<D>, D: Domain>(
        &self,
        protocol: P,
        domains: (D, D),
    ) -> Result<Box<dyn Engine>> {
        let can = self.descriptor;
        let agrees = match protocol.origin() {
            Origin::Unstated => !can.macs && !can.verifies_products(),
            Origin::Name => can.verifies_products(),
            Origin::NameAndKeyTest(_) => can.macs,
        };
        if !agrees || protocol.mac_key().is_some() != can.macs {
            return Err(EngineError::internal(format!(
                "shares of {} are stored with another origin than its descriptor says: correct `macs`, `adversary`, or `StoredShares::origin`",
                can.name
            )));
        }
        Ok(Box::new(Computation::new(
            self.session.clone(),
            protocol,
            domains,
            self.threshold,
            self.options.insecure_seed.is_some(),
        )))
    }
}

impl MacOpening for SessionOpening {
    fn with_macs<A: Arithmetic>(
        &self,
        domains: (A, A),
        adversary: Corruption,
    ) -> Result<Authenticated<A>> {
        self.session
            .protocol_with_macs(domains, self.index, &self.options, adversary)
    }
}
