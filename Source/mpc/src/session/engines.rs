//! Engines: which protocol works over which domain, and what it is opened with.

use std::sync::Arc;

use keyquorum_math::{BitLanes, Domain, DomainKind, Z2k64, Z2k128, Zq};
use keyquorum_ot::Security;

use super::streams::MacLinks;
use super::{EngineOptions, Session};
use crate::adversary::{Corruption, honest};
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::ops::Computation;
use crate::protocol::authenticated::MAC_BITS;
use crate::protocol::authenticated::binary::AuthenticatedBits;
use crate::protocol::{
    Additive, Arithmetic, Authenticated, Emulate, Protocol, Replicated, Shamir, uses_prss,
};

impl Session {
    /// Opens an engine; all parties must ask for the same program, protocol, domain and threshold.
    ///
    /// # Errors
    /// [`EngineError::Burned`] after a check failed in this session.
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
        let (n, t) = self.check_protocol(protocol, domain, options)?;
        let index = self.next_engine()?;
        if n > 1 {
            let fields = [
                ("engine version", env!("CARGO_PKG_VERSION").to_owned()),
                ("program", options.program.clone()),
                ("protocol", protocol.to_owned()),
                ("domain", domain.to_string()),
                ("threshold", t.to_string()),
                ("kind of openings", self.openings()?.name().to_owned()),
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
        match protocol {
            "emulate" => self.open(
                Emulate::new(self.emulator_prg(options, index)?),
                domain,
                t,
                options,
            ),
            "ring" | "rep-field" => {
                let next = self.pair_prgs((self.party + 1) % 3, index, options)?;
                let previous = self.pair_prgs((self.party + 2) % 3, index, options)?;
                self.open(
                    Replicated::new(self.party, next.0, previous.1),
                    domain,
                    t,
                    options,
                )
            }
            "semi2k" | "semi" | "semi-bin" => self.additive(domain, t, index, options),
            "spdz2k" | "mascot" => self.authenticated(domain, t, index, options),
            _ => {
                let pairs = self.all_pair_prgs(index, options)?;
                let streams = if uses_prss(n, t) {
                    self.subset_streams(n, t, index, options)?
                } else {
                    Vec::new()
                };
                self.open(
                    Shamir::new(self.party, n, t, pairs, streams)?,
                    domain,
                    t,
                    options,
                )
            }
        }
    }

    fn check_protocol(
        &self,
        protocol: &str,
        domain: DomainKind,
        options: &EngineOptions,
    ) -> Result<(usize, usize)> {
        let n = self.parties;
        let refuse = |text: String| Err(EngineError::usage(text));
        let field = matches!(domain, DomainKind::Fq(_));
        let ring = matches!(domain, DomainKind::Z2k(_));
        let t = match protocol {
            "emulate" if n == 1 => 0,
            "emulate" => {
                return refuse(format!(
                    "emulate runs in one process, not among {n} parties: leave out -N or take another protocol"
                ));
            }
            "ring" | "rep-field" if n != 3 => {
                return refuse(format!("{protocol} is for 3 parties, not {n}: set -N 3"));
            }
            "ring" if !ring => {
                return refuse(format!(
                    "ring works modulo 2^k, not over {domain}: take rep-field, or -R k"
                ));
            }
            "rep-field" if !field => {
                return refuse(format!(
                    "rep-field works over prime fields, not over {domain}: take ring, or -P prime"
                ));
            }
            "ring" | "rep-field" => 1,
            "shamir" if n < 3 => {
                return refuse(format!(
                    "shamir needs at least 3 parties, not {n}: set -N 3"
                ));
            }
            "shamir" if !field => {
                return refuse(format!(
                    "shamir works over prime fields, not over {domain}: take ring, or -P prime"
                ));
            }
            "shamir" => options.threshold.unwrap_or((n - 1) / 2),
            "semi2k" | "semi" | "semi-bin" | "spdz2k" | "mascot" if n < 2 => {
                return refuse(format!(
                    "{protocol} needs at least 2 parties, not {n}: set -N 2"
                ));
            }
            "semi2k" if !ring => {
                return refuse(format!(
                    "semi2k works modulo 2^k, not over {domain}: take semi, or -R k"
                ));
            }
            "semi" if !field => {
                return refuse(format!(
                    "semi works over prime fields, not over {domain}: take semi2k, or -P prime"
                ));
            }
            "spdz2k" if !matches!(domain, DomainKind::Z2k(k) if k + MAC_BITS <= 128) => {
                return refuse(format!(
                    "spdz2k works modulo 2^k for k up to {}, not over {domain}: take mascot, or a smaller -R",
                    128 - MAC_BITS
                ));
            }
            "mascot" if !matches!(domain, DomainKind::Fq(q) if q >> 32 > 0) => {
                return refuse(format!(
                    "mascot works over prime fields of more than 32 bits, not over {domain}: MACs of fewer bits can be guessed, take a larger -P"
                ));
            }
            "semi-bin" if ring || field => {
                return refuse(format!(
                    "semi-bin works on bits, not over {domain}: take semi2k or semi"
                ));
            }
            "semi2k" | "semi" | "semi-bin" | "spdz2k" | "mascot" => n - 1,
            other => {
                return refuse(format!(
                    "unknown protocol {other:?}: choose one of ring, rep-field, shamir, semi2k, semi, semi-bin, spdz2k, mascot, emulate"
                ));
            }
        };
        if let ("shamir", DomainKind::Fq(q)) = (protocol, domain)
            && q <= n as u64
        {
            // Party i holds f(i + 1): a point that is 0 modulo q would be the secret itself.
            return refuse(format!(
                "shamir with {n} parties needs a prime above {n}, not {q}: take a larger -P"
            ));
        }
        if protocol == "shamir" && (t == 0 || 2 * t >= n) {
            return refuse(format!(
                "shamir with {n} parties tolerates 1 to {} corruptions, not {t}",
                (n - 1) / 2
            ));
        }
        if protocol != "shamir" && options.threshold.is_some_and(|asked| asked != t) {
            return refuse(format!(
                "{protocol} tolerates exactly {t} corruption(s): leave the threshold out"
            ));
        }
        Ok((n, t))
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

    fn authenticated(
        &self,
        domain: DomainKind,
        threshold: usize,
        index: u64,
        options: &EngineOptions,
    ) -> Result<Box<dyn Engine>> {
        let insecure = options.insecure_seed.is_some();
        let invalid = |e: keyquorum_math::DomainError| EngineError::usage(e.to_string());
        Ok(match domain {
            DomainKind::Fq(q) => {
                let field = Zq::new(q).map_err(invalid)?;
                let domains = (field.clone(), field.clone());
                let protocol = self.protocol_with_macs(domains, index, options, honest())?;
                Box::new(self.computation(protocol, field, threshold, insecure))
            }
            DomainKind::Z2k(k) => {
                let visible = Z2k128::new(k).map_err(invalid)?;
                let shares = Z2k128::new(k + MAC_BITS).map_err(invalid)?;
                let domains = (visible, shares);
                let protocol = self.protocol_with_macs(domains, index, options, honest())?;
                let session = self.clone();
                Box::new(Computation::new(
                    session, protocol, domains, threshold, insecure,
                ))
            }
            DomainKind::Bits => {
                return Err(EngineError::usage(
                    "packed bits alone have no protocol with MACs: open spdz2k or mascot",
                ));
            }
        })
    }

    /// A party of `spdz2k` or `mascot`.
    pub(crate) fn protocol_with_macs<A: Arithmetic>(
        &self,
        domains: (A, A),
        index: u64,
        options: &EngineOptions,
        adversary: Corruption,
    ) -> Result<Authenticated<A>> {
        let bits = self.authenticated_bits(options, Corruption::clone(&adversary))?;
        let MacLinks { links, key } = self.mac_links()?;
        let peers = links
            .iter()
            .map(|link| link.as_ref().map(|link| link.peer(index)));
        Ok(Authenticated::new(
            (self.party, &key),
            domains,
            peers.collect(),
            self.all_pair_prgs(index, options)?,
            self.private_prg(index, options)?,
            bits,
            adversary,
        ))
    }

    fn additive(
        &self,
        domain: DomainKind,
        threshold: usize,
        index: u64,
        options: &EngineOptions,
    ) -> Result<Box<dyn Engine>> {
        let invalid = |e: keyquorum_math::DomainError| EngineError::usage(e.to_string());
        Ok(match domain {
            DomainKind::Fq(q) => {
                self.open_additive(Zq::new(q).map_err(invalid)?, threshold, index, options)?
            }
            DomainKind::Z2k(k) if k <= 64 => {
                self.open_additive(Z2k64::new(k).map_err(invalid)?, threshold, index, options)?
            }
            DomainKind::Z2k(k) => {
                self.open_additive(Z2k128::new(k).map_err(invalid)?, threshold, index, options)?
            }
            DomainKind::Bits => self.open_additive(BitLanes, threshold, index, options)?,
        })
    }

    fn open_additive<A: Arithmetic>(
        &self,
        domain: A,
        threshold: usize,
        index: u64,
        options: &EngineOptions,
    ) -> Result<Box<dyn Engine>> {
        let private = self.private_prg(index, options)?;
        let protocol = Additive::new(
            self.party,
            domain.clone(),
            self.all_pair_prgs(index, options)?,
            self.channels(index, Security::SemiHonest)?,
            private,
            self.openings()?,
        );
        let insecure = options.insecure_seed.is_some();
        Ok(Box::new(
            self.computation(protocol, domain, threshold, insecure),
        ))
    }

    fn open<P: Protocol>(
        &self,
        protocol: P,
        domain: DomainKind,
        threshold: usize,
        options: &EngineOptions,
    ) -> Result<Box<dyn Engine>> {
        let invalid = |e: keyquorum_math::DomainError| EngineError::usage(e.to_string());
        let insecure = options.insecure_seed.is_some();
        Ok(match domain {
            DomainKind::Fq(q) => Box::new(self.computation(
                protocol,
                Zq::new(q).map_err(invalid)?,
                threshold,
                insecure,
            )),
            DomainKind::Z2k(k) if k <= 64 => Box::new(self.computation(
                protocol,
                Z2k64::new(k).map_err(invalid)?,
                threshold,
                insecure,
            )),
            DomainKind::Z2k(k) => Box::new(self.computation(
                protocol,
                Z2k128::new(k).map_err(invalid)?,
                threshold,
                insecure,
            )),
            DomainKind::Bits => Box::new(self.computation(protocol, BitLanes, threshold, insecure)),
        })
    }

    fn computation<P: Protocol, D: Domain>(
        &self,
        protocol: P,
        domain: D,
        threshold: usize,
        insecure: bool,
    ) -> Computation<P, D> {
        Computation::new(
            self.clone(),
            protocol,
            (domain.clone(), domain),
            threshold,
            insecure,
        )
    }
}
