//! Engines: the parties compare what they ask for, and the protocol's descriptor opens the engine.

use std::sync::Arc;

use keyquorum_math::{BitLanes, Domain, DomainKind, Prg, Z2k64, Z2k128, Zq, Zq128};
use keyquorum_ot::{BaseOt, Security};

use super::streams::MacLinks;
use super::{EngineOptions, Session};
use crate::adversary::Corruption;
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::ops::Computation;
use crate::protocol::authenticated::binary::AuthenticatedBits;
use crate::protocol::descriptor::Descriptor;
use crate::protocol::refusal::Refusal;
use crate::protocol::table::named;
use crate::protocol::verified::Unsettled;
use crate::protocol::{Arithmetic, Authenticated, Channel, Openings, Protocol, SubsetStream};

impl Session {
    /// Opens an engine; all parties must ask for the same program, protocol, domain and threshold.
    ///
    /// # Errors
    /// [`EngineError::Refused`] if the protocol is unknown, or for other parties or domains; [`EngineError::Burned`] after a check failed in
    /// this session.
    pub fn engine(
        &self,
        protocol: &str,
        domain: DomainKind,
        options: &EngineOptions,
    ) -> Result<Box<dyn Engine>> {
        self.guard.refuse()?;
        self.judged(self.open_engine(protocol, domain, options))
    }

    fn open_engine(
        &self,
        protocol: &str,
        domain: DomainKind,
        options: &EngineOptions,
    ) -> Result<Box<dyn Engine>> {
        let n = self.parties;
        let descriptor = named(protocol)?;
        let t = descriptor.threshold(n, options.threshold)?;
        descriptor.check_domain(domain, n)?;
        self.admit(descriptor)?;
        let index = self.next_engine()?;
        if n > 1 {
            let mut fields = vec![
                ("engine version", env!("CARGO_PKG_VERSION").to_owned()),
                ("program", options.program.clone()),
                ("protocol", protocol.to_owned()),
                ("domain", domain.to_string()),
                ("threshold", t.to_string()),
                ("kind of openings, or of base OT", self.kinds()?),
                (
                    "seed",
                    if options.insecure_seed.is_some() {
                        "INSECURE test seed"
                    } else {
                        "secret"
                    }
                    .to_owned(),
                ),
                ("number of programs so far", index.to_string()),
            ];
            if descriptor.macs {
                let lpn = if self.lpn()? { "used" } else { "not used" };
                fields.push(("choice on learning parity with noise", lpn.to_owned()));
            }
            let mine = fields
                .iter()
                .map(|(_, v)| v.replace('\n', " "))
                .collect::<Vec<_>>()
                .join("\n");
            for (peer, theirs) in self.all_gather(mine.as_bytes())?.into_iter().enumerate() {
                let theirs = String::from_utf8_lossy(&theirs).into_owned();
                // A field that is not there counts as an empty one here; the whole is compared below.
                let lines = mine
                    .lines()
                    .zip(theirs.lines().chain(std::iter::repeat("")));
                for ((name, _), (a, b)) in fields.iter().zip(lines) {
                    if a != b {
                        return Err(EngineError::protocol(format!(
                            "party {peer} has another {name}: {b:?} there, {a:?} here: start all parties with the same"
                        )));
                    }
                }
                if theirs != mine {
                    return Err(EngineError::protocol(format!(
                        "party {peer} opens its engine with other fields than we do: start all parties with the same version"
                    )));
                }
            }
        }
        (descriptor.open)(&Opening {
            session: self,
            descriptor,
            domain,
            threshold: t,
            index,
            options,
        })
    }

    /// How values are opened, and how links of oblivious transfer begin where that is not the default.
    fn kinds(&self) -> Result<String> {
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

/// The argument of a descriptor's `open`: the protocol that all parties agreed on, and streams and links of this engine alone.
pub(crate) struct Opening<'a> {
    session: &'a Session,
    descriptor: &'static Descriptor,
    domain: DomainKind,
    threshold: usize,
    index: u64,
    options: &'a EngineOptions,
}

impl Opening<'_> {
    /// Our number.
    pub(crate) fn party(&self) -> usize {
        self.session.party
    }

    /// Number of parties.
    pub(crate) fn parties(&self) -> usize {
        self.session.parties
    }

    /// Corruptions tolerated.
    pub(crate) fn threshold(&self) -> usize {
        self.threshold
    }

    /// The arithmetic domain, one that the descriptor has.
    pub(crate) fn domain(&self) -> DomainKind {
        self.domain
    }

    /// Streams in common with a peer: the one that we deal from, and the one that the peer deals from.
    pub(crate) fn pair_prgs(&self, peer: usize) -> Result<(Prg, Prg)> {
        self.session.pair_prgs(peer, self.index, self.options)
    }

    /// [`Opening::pair_prgs`] of every peer, `None` for ourselves.
    pub(crate) fn all_pair_prgs(&self) -> Result<Vec<Option<(Prg, Prg)>>> {
        self.session.all_pair_prgs(self.index, self.options)
    }

    /// Streams in common with each subset of n − t parties that we are in.
    pub(crate) fn subset_streams(&self) -> Result<Vec<SubsetStream>> {
        let (n, t) = (self.parties(), self.threshold);
        self.session.subset_streams(n, t, self.index, self.options)
    }

    /// A stream of our own.
    pub(crate) fn private_prg(&self) -> Result<Prg> {
        self.session.private_prg(self.index, self.options)
    }

    /// The adversary of this party: honest, but for tests.
    pub(crate) fn adversary(&self) -> Corruption {
        Corruption::clone(&self.session.adversary)
    }

    /// [`Session::unsettled`].
    pub(crate) fn unsettled(&self) -> Arc<Unsettled> {
        self.session.unsettled()
    }

    /// The stream of a protocol in clear text, labelled by its name.
    pub(crate) fn clear_prg(&self) -> Result<Prg> {
        let label = self.descriptor.name;
        self.session.clear_prg(label, self.index, self.options)
    }

    /// Oblivious transfer with all peers, `None` for ourselves.
    pub(crate) fn channels(&self, security: Security) -> Result<Vec<Option<Channel>>> {
        self.session.channels(self.index, security)
    }

    /// How values are opened.
    pub(crate) fn openings(&self) -> Result<Openings> {
        self.session.openings()
    }

    /// A party of a protocol with MACs: values in the first domain, shares in the second.
    pub(crate) fn with_macs<A: Arithmetic>(
        &self,
        domains: (A, A),
        adversary: Corruption,
    ) -> Result<Authenticated<A>> {
        self.session
            .protocol_with_macs(domains, self.index, self.options, adversary)
    }

    /// The engine of a protocol that is the same in every domain.
    pub(crate) fn in_any_domain<P: Protocol>(&self, protocol: P) -> Result<Box<dyn Engine>> {
        Ok(match self.domain {
            DomainKind::Fq(q) => self.alike(protocol, Zq::new(q).map_err(invalid)?),
            DomainKind::WideFq(q) => self.alike(protocol, Zq128::new(q).map_err(invalid)?),
            DomainKind::Z2k(k) if k <= 64 => self.alike(protocol, Z2k64::new(k).map_err(invalid)?),
            DomainKind::Z2k(k) => self.alike(protocol, Z2k128::new(k).map_err(invalid)?),
            DomainKind::Bits => self.alike(protocol, BitLanes),
        })
    }

    fn alike<P: Protocol, D: Domain>(&self, protocol: P, domain: D) -> Box<dyn Engine> {
        self.computation(protocol, (domain.clone(), domain))
    }

    /// The engine of a protocol: values in the first domain, shares in the second.
    pub(crate) fn computation<P: Protocol, D: Domain>(
        &self,
        protocol: P,
        domains: (D, D),
    ) -> Box<dyn Engine> {
        Box::new(Computation::new(
            self.session.clone(),
            protocol,
            domains,
            self.threshold,
            self.options.insecure_seed.is_some(),
        ))
    }
}

/// The error for a domain that cannot be made.
pub(crate) fn invalid(error: keyquorum_math::DomainError) -> EngineError {
    EngineError::usage(error.to_string())
}
