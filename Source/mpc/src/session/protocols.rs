//! What protocols ask of their session: whether they are admitted, and parties of protocols with MACs.

use std::sync::Arc;

use keyquorum_ot::{BaseOt, Security};

use super::streams::MacLinks;
use super::{EngineOptions, Session};
use crate::adversary::Corruption;
use crate::descriptor::Descriptor;
use crate::error::Result;
use crate::protocol::authenticated::binary::AuthenticatedBits;
use crate::protocol::{Arithmetic, Authenticated};
use crate::refusal::Refusal;

impl Session {
    /// How values are opened, and how links of oblivious transfer begin where that is not the default.
    pub(crate) fn kinds(&self) -> Result<String> {
        let openings = self.openings()?.name();
        Ok(match self.base_ot()? {
            BaseOt::Curve25519 => openings.to_owned(),
            other => format!("{openings}, {}", other.name()),
        })
    }

    /// Refuses an engine that would take from the others of this session what they promise. Engines that verify products are not among some of the parties: a
    /// party outside cannot be waited for before an opening. Nor do they share a session with others, which open at once.
    pub(crate) fn admit(&self, descriptor: &'static Descriptor) -> Result<()> {
        let (protocol, verifies) = (descriptor.name, descriptor.verifies_products());
        if verifies && self.lock()?.whole.is_some() {
            return Err(Refusal::Subgroup { protocol }.into());
        }
        // A session and its groups are of one kind, whatever was made first.
        let kind = *self.outermost()?.lock()?.verifies.get_or_insert(verifies);
        if kind != verifies {
            return Err(Refusal::Mixed { protocol, verifies }.into());
        }
        match verifies {
            true => self.guard.begin_verified(),
            false => Ok(()),
        }
    }

    /// Authenticated bits among all parties of the session, in streams of their own.
    pub(crate) fn authenticated_bits(
        &self,
        options: &EngineOptions,
        adversary: Corruption,
    ) -> Result<AuthenticatedBits> {
        let index = self.next_engine()?;
        let MacLinks { links, .. } = self.mac_links()?;
        let channels = links.iter().map(|link| {
            link.as_ref()
                .map(|link| link.channel(index, Security::Malicious))
        });
        let mut bits = AuthenticatedBits::new(
            self.party,
            channels.collect(),
            self.all_pair_prgs(index, options)?,
            self.private_prg(index, options)?,
            adversary,
        )?;
        bits.guard = Arc::clone(&self.guard);
        Ok(bits)
    }

    /// A party of a protocol with MACs.
    pub(crate) fn protocol_with_macs<A: Arithmetic>(
        &self,
        domains: (A, A),
        index: u64,
        options: &EngineOptions,
        adversary: Corruption,
    ) -> Result<Authenticated<A>> {
        let bits = self.authenticated_bits(options, Corruption::clone(&adversary))?;
        let MacLinks {
            links,
            key,
            cut_offs,
        } = self.mac_links()?;
        let peers = links
            .iter()
            .map(|link| link.as_ref().map(|link| link.peer(index)));
        let mut protocol = Authenticated::new(
            (self.party, &key),
            domains,
            peers.collect(),
            self.all_pair_prgs(index, options)?,
            self.private_prg(index, options)?,
            bits,
            adversary,
        );
        protocol.cut_offs = cut_offs;
        Ok(protocol.with_lpn(self.lpn()?))
    }
}
