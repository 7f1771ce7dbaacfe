//! The table of protocols: one [`Descriptor`] a protocol, written beside its implementation and listed in [`PROTOCOLS`].
//!
//! Everything outside the protocol's own file asks the descriptor for a capability and never compares names. A new protocol is its own file,
//! a `mod` line and a line here: see docs/pages/adding-a-protocol.md.

use keyquorum_math::DomainKind;

use super::{additive, authenticated, emulate, replicated, shamir};
use crate::engine::Engine;
use crate::error::Result;
use crate::session::Opening;

/// All protocols, in the order in which lists and tables show them.
pub static PROTOCOLS: &[&Descriptor] = &[
    &replicated::RING,
    &replicated::REP_FIELD,
    &shamir::SHAMIR,
    &additive::SEMI2K,
    &additive::SEMI,
    &additive::SEMI_BIN,
    &authenticated::SPDZ2K,
    &authenticated::MASCOT,
    &emulate::EMULATE,
];

/// What a protocol is and can do.
#[derive(Debug)]
pub struct Descriptor {
    /// The name after `-E`, as in MP-SPDZ.
    pub name: &'static str,
    /// One line: sharing, bounds, adversary.
    pub summary: &'static str,
    /// How values are shared.
    pub sharing: Sharing,
    /// Domains in which an engine can be opened.
    pub domains: Domains,
    /// Whether programs compute on packed bits beside the arithmetic domain.
    pub binary: bool,
    /// Least number of parties.
    pub least_parties: usize,
    /// Largest number of parties, if it is bounded.
    pub most_parties: Option<usize>,
    /// The largest number t of corruptions among n parties; the default.
    pub most_corruptions: fn(parties: usize) -> usize,
    /// Whether a smaller t, from 1, can be chosen. Otherwise t is the largest.
    pub chooses_threshold: bool,
    /// The adversary against whom single programs are secure.
    pub adversary: Adversary,
    /// Whether shares carry MACs: each element of a share then comes with one element of MAC.
    pub macs: bool,
    /// Elements that a party holds of a shared element, MACs not counted, among n parties of which t are corrupt.
    pub values: fn(parties: usize, threshold: usize) -> usize,
    /// Summands whose sum is the shared element, of n parties; 0 if the sharing is no sum.
    pub summands: fn(parties: usize) -> usize,
    /// Whether programs may split a share modulo 2^k into its summands (`split_to_n_summands`).
    pub splits: bool,
    /// Whether random numbers come with their bits (edaBits), without conversions.
    pub edabits: bool,
    /// Whether products come from oblivious transfer between pairs of parties.
    pub oblivious_transfer: bool,
    /// Whether values can be opened through one party ([`super::Openings::Star`]).
    pub star_openings: bool,
    /// Whether a committee of this name can be made. The others are for single programs.
    pub committee: bool,
    /// The protocols that a committee of this protocol runs.
    pub partners: fn() -> Partners,
    /// The same protocol in MP-SPDZ.
    pub mp_spdz: Option<MpSpdz>,
    /// Makes the engine of one party.
    pub(crate) open: fn(&Opening<'_>) -> Result<Box<dyn Engine>>,
}

/// How values are shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Not at all: clear text.
    None,
    /// A sum, each summand known to several parties.
    Replicated,
    /// Points of a polynomial.
    Shamir,
    /// A sum, one summand a party.
    Additive,
}

impl Sharing {
    /// Its name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Replicated => "replicated",
            Self::Shamir => "Shamir",
            Self::Additive => "additive",
        }
    }
}

/// The adversary against whom a single program is secure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adversary {
    /// Nobody: clear text.
    None,
    /// Corrupted parties that follow the protocol.
    SemiHonest,
    /// Corrupted parties that do anything. A failed check aborts.
    Malicious,
}

impl Adversary {
    /// Its name, as in the table of threat models.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::SemiHonest => "semi-honest",
            Self::Malicious => "malicious",
        }
    }
}

/// Domains in which an engine can be opened.
#[derive(Clone, Copy, Debug)]
pub struct Domains {
    /// Packed bits alone.
    pub bits: bool,
    /// Largest k of Z_2^k; `None`: no rings.
    pub ring: Option<u32>,
    /// Primes q of F_q; `None`: no fields.
    pub field: Option<Primes>,
}

impl Domains {
    /// No domain at all, for `..Domains::NONE`.
    pub const NONE: Self = Self {
        bits: false,
        ring: None,
        field: None,
    };

    /// Whether there is a domain of this kind, whatever its size.
    pub fn has(&self, domain: DomainKind) -> bool {
        match domain {
            DomainKind::Bits => self.bits,
            DomainKind::Z2k(_) => self.ring.is_some(),
            DomainKind::Fq(_) => self.field.is_some(),
        }
    }

    /// The kinds, in words.
    fn words(&self) -> String {
        let mut words = Vec::new();
        match self.ring {
            Some(k) if k < MOST_RING_BITS => words.push(format!("modulo 2^k for k up to {k}")),
            Some(_) => words.push("modulo 2^k".to_owned()),
            None => {}
        }
        if self.field.is_some() {
            words.push("over prime fields".to_owned());
        }
        if self.bits {
            words.push("on bits".to_owned());
        }
        words.join(", ")
    }
}

/// Largest k of the rings Z_2^k.
pub const MOST_RING_BITS: u32 = 128;

/// Primes that a protocol works over.
#[derive(Clone, Copy, Debug)]
pub enum Primes {
    /// Every prime.
    Any,
    /// Primes above the number of parties.
    AboveParties {
        /// What goes wrong otherwise.
        reason: &'static str,
    },
    /// Primes of more bits than this.
    LongerThan {
        /// Bits of the longest prime that is too short.
        bits: u32,
        /// What goes wrong otherwise.
        reason: &'static str,
    },
}

impl Primes {
    /// The primes in words, and what goes wrong otherwise, if `prime` is not one of them.
    fn refusal(self, prime: u64, parties: usize) -> Option<(String, &'static str)> {
        match self {
            Self::AboveParties { reason } if prime <= parties as u64 => {
                Some((format!("above {parties}"), reason))
            }
            Self::LongerThan { bits, reason } if prime >> bits == 0 => {
                Some((format!("of more than {bits} bits"), reason))
            }
            _ => None,
        }
    }
}

/// The protocols that a committee runs, each by its own descriptor.
#[derive(Clone, Copy, Debug)]
pub struct Partners {
    /// For programs modulo 2^k.
    pub ring: Option<&'static Descriptor>,
    /// For programs over prime fields.
    pub field: &'static Descriptor,
    /// The same without MACs: for small primes, and for shares that were scaled locally.
    pub plain_field: &'static Descriptor,
    /// Modulo 2^k and over prime fields, where t + 1 parties take additive shares of a value and go on alone. `None`: all parties go on.
    pub quorum: Option<(&'static Descriptor, &'static Descriptor)>,
}

/// The same protocol in MP-SPDZ.
#[derive(Clone, Copy, Debug)]
pub struct MpSpdz {
    /// The executable.
    pub binary: &'static str,
    /// Whether its arithmetic is over prime fields, otherwise modulo 2^k.
    pub field: bool,
    /// Whether links are in the clear unless `-e` is given.
    pub encrypt: bool,
    /// The sharing's name in the header of a share file; `{k}` stands for the bits of a ring.
    pub shares: &'static str,
    /// Bits of an element of a share beyond those of the domain.
    pub extra_bits: u32,
}

/// An engine that was asked for and does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No protocol has this name.
    #[error("unknown protocol {name:?}: choose one of {}", names())]
    UnknownProtocol {
        /// What was asked for.
        name: String,
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
    /// A threshold that the protocol does not have.
    #[error("{protocol} {wanted}")]
    Threshold {
        /// The protocol.
        protocol: &'static str,
        /// What it tolerates, and the cure.
        wanted: String,
    },
    /// A domain of another kind, or a ring that is too large.
    #[error("{protocol} works {serves}, not over {domain}: take {cure}")]
    Domain {
        /// The protocol.
        protocol: &'static str,
        /// The domains that it has.
        serves: String,
        /// What was asked for.
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
        /// What was asked for.
        prime: u64,
        /// Why.
        reason: &'static str,
    },
}

fn names() -> String {
    let names: Vec<_> = PROTOCOLS.iter().map(|p| p.name).collect();
    names.join(", ")
}

/// The protocol of this name.
///
/// # Errors
/// [`Refusal::UnknownProtocol`], which lists all names.
pub fn named(name: &str) -> std::result::Result<&'static Descriptor, Refusal> {
    PROTOCOLS
        .iter()
        .copied()
        .find(|p| p.name == name)
        .ok_or_else(|| Refusal::UnknownProtocol {
            name: name.to_owned(),
        })
}

impl Descriptor {
    /// Elements that a party holds of a shared element, MACs included.
    pub fn parts(&self, parties: usize, threshold: usize) -> usize {
        (self.values)(parties, threshold) * (1 + usize::from(self.macs))
    }

    /// Whether half of the parties or more may be corrupt.
    pub fn dishonest_majority(&self) -> bool {
        2 * (self.most_corruptions)(self.least_parties) >= self.least_parties
    }

    /// The threshold among so many parties: `asked`, or the default.
    ///
    /// # Errors
    /// A number of parties, or a threshold, that the protocol does not have.
    pub fn threshold(
        &self,
        parties: usize,
        asked: Option<usize>,
    ) -> std::result::Result<usize, Refusal> {
        self.check_parties(parties)?;
        let most = (self.most_corruptions)(parties);
        let t = asked.unwrap_or(most);
        let wanted = if self.chooses_threshold {
            if (1..=most).contains(&t) {
                return Ok(t);
            }
            format!("with {parties} parties tolerates 1 to {most} corruptions, not {t}")
        } else if t == most {
            return Ok(t);
        } else {
            format!("tolerates exactly {most} corruption(s): leave the threshold out")
        };
        Err(Refusal::Threshold {
            protocol: self.name,
            wanted,
        })
    }

    fn check_parties(&self, parties: usize) -> std::result::Result<(), Refusal> {
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

    /// Refuses a domain in which the protocol does not work among so many parties.
    ///
    /// # Errors
    /// [`Refusal::Domain`] or [`Refusal::Prime`].
    pub fn check_domain(
        &self,
        domain: DomainKind,
        parties: usize,
    ) -> std::result::Result<(), Refusal> {
        match (domain, &self.domains) {
            (DomainKind::Bits, Domains { bits: true, .. }) => Ok(()),
            (
                DomainKind::Z2k(k),
                Domains {
                    ring: Some(most), ..
                },
            ) if k <= *most => Ok(()),
            (
                DomainKind::Fq(prime),
                Domains {
                    field: Some(primes),
                    ..
                },
            ) => match primes.refusal(prime, parties) {
                None => Ok(()),
                Some((wanted, reason)) => Err(Refusal::Prime {
                    protocol: self.name,
                    parties,
                    wanted,
                    prime,
                    reason,
                }),
            },
            _ => Err(Refusal::Domain {
                protocol: self.name,
                serves: self.domains.words(),
                domain,
                cure: self.cure(domain),
            }),
        }
    }

    /// Another protocol that has such a domain, or options that give a domain of this protocol.
    fn cure(&self, domain: DomainKind) -> String {
        let partner = match domain {
            DomainKind::Z2k(_) => (self.partners)().ring,
            DomainKind::Fq(_) => Some((self.partners)().field),
            DomainKind::Bits => None,
        };
        let fits = |p: &&Descriptor| p.name != self.name && p.domains.has(domain);
        let other = partner
            .filter(fits)
            .or_else(|| PROTOCOLS.iter().copied().find(fits))
            .map(|p| p.name);
        let option = match (&self.domains, domain) {
            (Domains { ring: Some(_), .. }, DomainKind::Z2k(_)) => Some("a smaller -R"),
            (Domains { ring: Some(_), .. }, _) => Some("-R k"),
            (Domains { field: Some(_), .. }, _) => Some("-P prime"),
            _ => None,
        };
        let words: Vec<_> = other.into_iter().chain(option).collect();
        words.join(", or ")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for (i, p) in PROTOCOLS.iter().enumerate() {
            assert!(std::ptr::eq(named(p.name).unwrap(), *p));
            assert!(PROTOCOLS.iter().skip(i + 1).all(|q| q.name != p.name));
        }
        let refused = named("bmr").unwrap_err();
        assert!(matches!(&refused, Refusal::UnknownProtocol { name } if name == "bmr"));
        assert!(refused.to_string().ends_with(&names()));
    }

    #[test]
    fn partners_are_in_the_table_and_serve_their_domain() {
        for p in PROTOCOLS {
            let Partners {
                ring,
                field,
                plain_field,
                quorum,
            } = (p.partners)();
            let fields = [Some(field), Some(plain_field), quorum.map(|(_, f)| f)];
            let rings = [ring, quorum.map(|(r, _)| r)];
            for partner in fields.iter().chain(&rings).flatten() {
                assert!(std::ptr::eq(named(partner.name).unwrap(), *partner));
            }
            assert!(fields.iter().flatten().all(|f| f.domains.field.is_some()));
            assert!(rings.iter().flatten().all(|r| r.domains.ring.is_some()));
            assert!(!plain_field.macs, "{}", p.name);
            for partner in ring.iter().chain([&field]) {
                assert_eq!(partner.sharing, p.sharing, "{}", p.name);
                assert_eq!(partner.macs, p.macs, "{}", p.name);
                assert_eq!(partner.least_parties, p.least_parties, "{}", p.name);
            }
            // A committee rounds modulo 2^k: among all, or among t + 1.
            assert!(!p.committee || ring.is_some() != quorum.is_some());
        }
    }

    #[test]
    fn capabilities_belong_together() {
        for p in PROTOCOLS {
            let clear = p.sharing == Sharing::None;
            assert_eq!(clear, p.adversary == Adversary::None, "{}", p.name);
            assert!(!p.macs || p.adversary == Adversary::Malicious);
            assert!(!p.splits || p.domains.ring.is_some());
            assert!(p.least_parties >= 1 && p.most_parties.is_none_or(|m| m >= p.least_parties));
            for n in [p.least_parties, p.most_parties.unwrap_or(16)] {
                assert!((p.most_corruptions)(n) < n);
                assert_eq!(p.threshold(n, None), Ok((p.most_corruptions)(n)));
            }
        }
    }

    #[test]
    fn refusals_name_the_culprit_and_the_cure() {
        let text = |name, n, t, domain| {
            let p = named(name).unwrap();
            let refused = p.threshold(n, t).and_then(|_| p.check_domain(domain, n));
            refused.unwrap_err().to_string()
        };
        let (ring, field) = (DomainKind::Z2k(64), DomainKind::Fq(65537));
        for (name, n, t, domain, want) in [
            (
                "ring",
                4,
                None,
                ring,
                "ring is for 3 parties, not 4: set -N 3",
            ),
            (
                "semi",
                1,
                None,
                field,
                "semi needs at least 2 parties, not 1: set -N 2",
            ),
            (
                "emulate",
                3,
                None,
                ring,
                "emulate runs in one process, not among 3 parties: leave out -N or take another protocol",
            ),
            (
                "shamir",
                5,
                Some(3),
                field,
                "shamir with 5 parties tolerates 1 to 2 corruptions, not 3",
            ),
            (
                "semi",
                3,
                Some(1),
                field,
                "semi tolerates exactly 2 corruption(s): leave the threshold out",
            ),
            (
                "ring",
                3,
                None,
                field,
                "ring works modulo 2^k, not over F_65537: take rep-field, or -R k",
            ),
            (
                "shamir",
                3,
                None,
                ring,
                "shamir works over prime fields, not over Z2^64: take ring, or -P prime",
            ),
            (
                "spdz2k",
                2,
                None,
                DomainKind::Z2k(128),
                "spdz2k works modulo 2^k for k up to 80, not over Z2^128: take ring, or a smaller -R",
            ),
            (
                "semi-bin",
                2,
                None,
                ring,
                "semi-bin works on bits, not over Z2^64: take semi2k",
            ),
            (
                "shamir",
                5,
                None,
                DomainKind::Fq(5),
                "shamir among 5 parties needs a prime above 5, not 5: a party's point would be the secret, take a larger -P",
            ),
            (
                "mascot",
                2,
                None,
                field,
                "mascot among 2 parties needs a prime of more than 32 bits, not 65537: MACs of fewer bits can be guessed, take a larger -P",
            ),
        ] {
            assert_eq!(text(name, n, t, domain), want);
        }
    }
}
