//! `spdz2k` and `mascot` in the table of protocols, and how their engines are opened.

use keyquorum_math::{DomainKind, Z2k128, Zq};

use super::{Arithmetic, Authenticated, MAC_BITS};
use crate::additive::SEMI;
use crate::adversary::Corruption;
use crate::descriptor::{
    Adversary, Descriptor, Domains, MOST_RING_BITS, MpSpdz, Partners, Primes, PrivateNumbers,
    Sharing,
};
use crate::error::{EngineError, Result, invalid};
use crate::opening::Opening;

/// The fields that both domains share.
const AUTHENTICATED: Descriptor = Descriptor {
    name: "",
    summary: "",
    sharing: Sharing::Additive,
    domains: Domains::NONE,
    binary: true,
    least_parties: 2,
    most_parties: None,
    most_corruptions: |parties| parties - 1,
    chooses_threshold: false,
    adversary: Adversary::Malicious,
    macs: true,
    held: |party, _, _| vec![party],
    summands: |parties| parties,
    splits: false,
    edabits: true,
    oblivious_transfer: true,
    king_openings: false,
    committee: true,
    private_numbers: PrivateNumbers::Proven,
    partners: || Partners {
        ring: Some(&SPDZ2K),
        field: &MASCOT,
        plain_field: &SEMI,
        quorum: None,
    },
    mp_spdz: None,
};

/// `spdz2k`.
pub static SPDZ2K: Descriptor = Descriptor {
    name: "spdz2k",
    summary: "additive with MACs, n >= 2 parties, n - 1 corruptions, malicious programs; the same committee as mascot",
    domains: Domains {
        ring: Some(MOST_RING_BITS - MAC_BITS),
        ..Domains::NONE
    },
    mp_spdz: Some(MpSpdz {
        binary: "spdz2k-party.x",
        field: false,
        encrypt: true,
        shares: "SPDZ2^({k}+64)",
        extra_bits: 64,
    }),
    ..AUTHENTICATED
};

/// `mascot`.
pub static MASCOT: Descriptor = Descriptor {
    name: "mascot",
    summary: "additive with MACs, n >= 2 parties, n - 1 corruptions, malicious programs",
    domains: Domains {
        field: Some(Primes::LongerThan {
            bits: 32,
            reason: "MACs of fewer bits can be guessed",
        }),
        ..Domains::NONE
    },
    mp_spdz: Some(MpSpdz {
        binary: "mascot-party.x",
        field: true,
        encrypt: true,
        shares: "SPDZ gfp",
        extra_bits: 0,
    }),
    ..AUTHENTICATED
};

/// What a protocol with MACs is given besides.
pub trait MacOpening: Opening {
    /// A party of a protocol with MACs: values in the first domain, shares in the second.
    fn with_macs<A: Arithmetic>(
        &self,
        domains: (A, A),
        adversary: Corruption,
    ) -> Result<Authenticated<A>>;
}

/// Opens the engine of one party.
pub fn open_engine<O: MacOpening>(opening: &O) -> Result<O::Engine> {
    match opening.domain() {
        DomainKind::Fq(q) => {
            let field = Zq::new(q).map_err(invalid)?;
            let domains = (field.clone(), field);
            let protocol = opening.with_macs(domains.clone(), opening.adversary())?;
            opening.computation(protocol, domains)
        }
        DomainKind::Z2k(k) => {
            let visible = Z2k128::new(k).map_err(invalid)?;
            let shares = Z2k128::new(k + MAC_BITS).map_err(invalid)?;
            let domains = (visible, shares);
            let protocol = opening.with_macs(domains, opening.adversary())?;
            opening.computation(protocol, domains)
        }
        other => Err(EngineError::internal(format!("MACs over {other}"))),
    }
}
