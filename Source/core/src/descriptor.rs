//! Properties and capabilities of protocols. Each protocol has one [`Descriptor`] beside its implementation; `table` lists them.

use keyquorum_math::DomainKind;

/// Properties and capabilities of a protocol.
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
    /// Numbers of the summands (Shamir: of the point) that a party holds of a shared element, among n parties of which t are corrupt, in the
    /// order of the parts of its share. A public value is added to summand 0.
    pub held: fn(party: usize, parties: usize, threshold: usize) -> Vec<usize>,
    /// Summands whose sum is the shared element, of n parties; 0 if the sharing is no sum.
    pub summands: fn(parties: usize) -> usize,
    /// Whether programs may split a share modulo 2^k into its summands (`split_to_n_summands`).
    pub splits: bool,
    /// Whether random numbers come with their bits (edaBits), without conversions.
    pub edabits: bool,
    /// Whether products come from oblivious transfer between pairs of parties.
    pub oblivious_transfer: bool,
    /// Whether values can be opened through one party (`Openings::King`).
    pub king_openings: bool,
    /// Whether a committee of this name can be made. The others are for single programs. Which plans it runs is for each plan to say.
    pub committee: bool,
    /// Where the private numbers of a committee's keys come from.
    pub private_numbers: PrivateNumbers,
    /// The protocols that a committee of this protocol runs.
    pub partners: fn() -> Partners,
    /// The same protocol in MP-SPDZ.
    pub mp_spdz: Option<MpSpdz>,
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
    /// Its name, as in lists.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Replicated => "replicated",
            Self::Shamir => "Shamir",
            Self::Additive => "additive",
        }
    }
}

/// The adversary against whom a single program is secure, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

/// Where private numbers come from that no t parties know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrivateNumbers {
    /// Each of t + 1 parties inputs some: for parties that follow the protocol.
    Contributed,
    /// All parties input some, and prove that they are right and the same in every domain: for shares with MACs.
    Proven,
    /// Streams that sets of parties have in common: no party inputs any. For verified products.
    Pseudorandom,
}

impl PrivateNumbers {
    /// Its name, as plans read it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Contributed => "contributed",
            Self::Proven => "proven",
            Self::Pseudorandom => "pseudorandom",
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
    /// Whether primes may have more than 64 bits, if there are fields.
    pub wide_fields: bool,
}

impl Domains {
    /// No domain at all, for `..Domains::NONE`.
    pub const NONE: Self = Self {
        bits: false,
        ring: None,
        field: None,
        wide_fields: false,
    };

    /// Whether an engine can be opened in a domain of this kind, whatever the prime.
    pub fn admit(&self, domain: DomainKind) -> bool {
        match domain {
            DomainKind::Bits => self.bits,
            DomainKind::Z2k(k) => self.ring.is_some_and(|most| k <= most),
            DomainKind::Fq(_) => self.field.is_some(),
            DomainKind::WideFq(_) => self.field.is_some() && self.wide_fields,
        }
    }

    /// The kinds, in words; for a refusal of a domain.
    pub fn words(&self, refused: DomainKind) -> String {
        let mut words = Vec::new();
        match self.ring {
            Some(k) if k < MOST_RING_BITS => words.push(format!("modulo 2^k for k up to {k}")),
            Some(_) => words.push("modulo 2^k".to_owned()),
            None => {}
        }
        if self.field.is_some() {
            let short = matches!(refused, DomainKind::WideFq(_)) && !self.wide_fields;
            let most = if short { " of at most 62 bits" } else { "" };
            words.push(format!("over prime fields{most}"));
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
        /// The reason for the bound.
        reason: &'static str,
    },
    /// Primes of more bits than this.
    LongerThan {
        /// Bits of the longest prime that is too short.
        bits: u32,
        /// The reason for the bound.
        reason: &'static str,
    },
}

impl Primes {
    /// The primes in words, and what goes wrong otherwise, if `prime` is not one of them.
    pub fn refusal(self, prime: u128, parties: usize) -> Option<(String, &'static str)> {
        match self {
            Self::AboveParties { reason } if prime <= parties as u128 => {
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

impl Descriptor {
    /// Elements that a party holds of a shared element, MACs included.
    pub fn parts(&self, parties: usize, threshold: usize) -> usize {
        (self.held)(0, parties, threshold).len() * (1 + usize::from(self.macs))
    }

    /// Whether products are verified together: against malicious parties, without MACs.
    pub fn verifies_products(&self) -> bool {
        self.adversary == Adversary::Malicious && !self.macs
    }

    /// Whether half of the parties or more may be corrupt.
    pub fn dishonest_majority(&self) -> bool {
        2 * (self.most_corruptions)(self.least_parties) >= self.least_parties
    }
}
