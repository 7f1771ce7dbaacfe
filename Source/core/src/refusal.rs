//! Engines that are asked for and do not exist: bounds on parties and thresholds, and domains, as the descriptors state them.

use keyquorum_math::DomainKind;

use crate::descriptor::{Descriptor, Domains};

/// Why there is no such engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No protocol has this name.
    #[error("unknown protocol {name:?}: choose one of {known}")]
    UnknownProtocol {
        /// The requested name.
        name: String,
        /// All names, in the order of the table.
        known: String,
    },
    /// Clear text among several parties.
    #[error(
        "{protocol} runs in one process, not among {parties} parties: leave out -N or take another protocol"
    )]
    OneProcess {
        /// The protocol.
        protocol: &'static str,
        /// Number of parties of the session.
        parties: usize,
    },
    /// A protocol for another number of parties.
    #[error("{protocol} {wanted}, not {parties}: set -N {nearest}")]
    Parties {
        /// The protocol.
        protocol: &'static str,
        /// Numbers that it is for.
        wanted: String,
        /// Number of parties of the session.
        parties: usize,
        /// The nearest number that is possible.
        nearest: usize,
    },
    /// A threshold that is too small or too large.
    #[error(
        "{protocol} with {parties} parties tolerates 1 to {most} corruptions, not {asked}: set -T {most}"
    )]
    Threshold {
        /// The protocol.
        protocol: &'static str,
        /// Number of parties of the session.
        parties: usize,
        /// The largest threshold.
        most: usize,
        /// The requested threshold.
        asked: usize,
    },
    /// Another threshold than the only one.
    #[error("{protocol} tolerates exactly {only} corruption(s): leave the threshold out")]
    FixedThreshold {
        /// The protocol.
        protocol: &'static str,
        /// The threshold among so many parties.
        only: usize,
    },
    /// A domain of another kind, or a ring that is too large.
    #[error("{protocol} works {serves}, not over {domain}: take {cure}")]
    Domain {
        /// The protocol.
        protocol: &'static str,
        /// The domains that it has.
        serves: String,
        /// The requested domain.
        domain: DomainKind,
        /// Another protocol, or a domain.
        cure: String,
    },
    /// A prime that is too small.
    #[error(
        "{protocol} among {parties} parties needs a prime {wanted}, not {prime}: {reason}, take a larger -P"
    )]
    Prime {
        /// The protocol.
        protocol: &'static str,
        /// Number of parties of the session.
        parties: usize,
        /// Primes that it works over.
        wanted: String,
        /// The requested prime.
        prime: u128,
        /// Why.
        reason: &'static str,
    },
    /// A protocol that verifies products, among some parties of a session.
    #[error(
        "{protocol} is for all parties of a session, as nothing is opened before all have what was sent before: open the engine among all parties"
    )]
    Subgroup {
        /// The protocol.
        protocol: &'static str,
    },
    /// A group of parties of a session whose products are verified.
    #[error(
        "the programs of this session are for all its parties, as they verify products: use a session of its own for a group of parties"
    )]
    Group,
    /// Engines that verify products, and others, in one session.
    #[error(
        "{protocol} {}, and earlier programs of this session {}: open a session of its own for it",
        does(*verifies),
        does(!*verifies)
    )]
    Mixed {
        /// The protocol.
        protocol: &'static str,
        /// Whether it verifies products.
        verifies: bool,
    },
}

fn does(verifies: bool) -> &'static str {
    match verifies {
        true => "verifies products",
        false => "verifies no products",
    }
}

impl Descriptor {
    /// The threshold among so many parties: `asked`, or the default.
    ///
    /// # Errors
    /// A number of parties, or a threshold, that the protocol does not have.
    pub fn threshold(&self, parties: usize, asked: Option<usize>) -> Result<usize, Refusal> {
        self.check_parties(parties)?;
        let most = (self.most_corruptions)(parties);
        let t = asked.unwrap_or(most);
        let protocol = self.name;
        match (self.chooses_threshold, t) {
            (true, 1..) if t <= most => Ok(t),
            (true, asked) => Err(Refusal::Threshold {
                protocol,
                parties,
                most,
                asked,
            }),
            (false, _) if t == most => Ok(t),
            (false, _) => Err(Refusal::FixedThreshold {
                protocol,
                only: most,
            }),
        }
    }

    fn check_parties(&self, parties: usize) -> Result<(), Refusal> {
        let least = self.least_parties;
        let most = self.most_parties.unwrap_or(usize::MAX);
        if (least..=most).contains(&parties) {
            return Ok(());
        }
        let protocol = self.name;
        if most == 1 {
            return Err(Refusal::OneProcess { protocol, parties });
        }
        let wanted = match self.most_parties {
            Some(most) if most == least => format!("is for {least} parties"),
            Some(most) => format!("is for {least} to {most} parties"),
            None => format!("needs at least {least} parties"),
        };
        Err(Refusal::Parties {
            protocol,
            wanted,
            parties,
            nearest: parties.clamp(least, most),
        })
    }

    /// Refuses a domain in which the protocol does not work among so many parties, and names one of the `others` that does.
    ///
    /// # Errors
    /// [`Refusal::Domain`] or [`Refusal::Prime`].
    pub fn check_domain(
        &self,
        domain: DomainKind,
        parties: usize,
        others: impl Iterator<Item = &'static Self>,
    ) -> Result<(), Refusal> {
        if !self.domains.admit(domain) {
            return Err(Refusal::Domain {
                protocol: self.name,
                serves: self.domains.words(domain),
                domain,
                cure: self.cure(domain, parties, others),
            });
        }
        let prime = match domain {
            DomainKind::Fq(prime) => prime.into(),
            DomainKind::WideFq(prime) => prime,
            DomainKind::Bits | DomainKind::Z2k(_) => return Ok(()),
        };
        let refusal = self.domains.field.and_then(|p| p.refusal(prime, parties));
        match refusal {
            None => Ok(()),
            Some((wanted, reason)) => Err(Refusal::Prime {
                protocol: self.name,
                parties,
                wanted,
                prime,
                reason,
            }),
        }
    }

    /// Another protocol that works there and is no weaker, or options that give a domain of this protocol.
    fn cure(
        &self,
        domain: DomainKind,
        parties: usize,
        mut others: impl Iterator<Item = &'static Self>,
    ) -> String {
        let partners = (self.partners)();
        let partner = match domain {
            DomainKind::Z2k(_) => partners.ring,
            DomainKind::Fq(_) | DomainKind::WideFq(_) => Some(partners.field),
            DomainKind::Bits => None,
        };
        let fits = |p: &&Descriptor| {
            p.name != self.name
                && p.domains.admit(domain)
                && p.adversary >= self.adversary
                && p.check_parties(parties).is_ok()
        };
        let other = partner
            .filter(fits)
            .or_else(|| others.find(fits))
            .map(|p| p.name);
        let option = match (&self.domains, domain) {
            (Domains { ring: Some(_), .. }, DomainKind::Z2k(_)) => Some("a smaller -R"),
            (Domains { ring: Some(_), .. }, _) => Some("-R k"),
            (Domains { field: Some(_), .. }, _) => Some("-P prime"),
            _ => None,
        };
        let words: Vec<_> = other.into_iter().chain(option).collect();
        if words.is_empty() {
            return "another domain".to_owned();
        }
        words.join(", or ")
    }
}
