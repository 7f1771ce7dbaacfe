//! `semi2k`, `semi` and `semi-bin` in the table of protocols, and how their engines are opened.

use keyquorum_math::{BitLanes, DomainKind, Z2k64, Z2k128, Zq};
use keyquorum_ot::Security;

use super::{Additive, Arithmetic};
use crate::descriptor::{
    Adversary, Descriptor, Domains, MOST_RING_BITS, MpSpdz, Partners, Primes, PrivateNumbers,
    Sharing,
};
use crate::error::{EngineError, Result, invalid};
use crate::opening::Opening;

/// The fields that all domains share.
const ADDITIVE: Descriptor = Descriptor {
    name: "",
    summary: "",
    sharing: Sharing::Additive,
    domains: Domains::NONE,
    binary: true,
    least_parties: 2,
    most_parties: None,
    most_corruptions: |parties| parties - 1,
    chooses_threshold: false,
    adversary: Adversary::SemiHonest,
    macs: false,
    held: |party, _, _| vec![party],
    summands: |parties| parties,
    splits: false,
    edabits: false,
    oblivious_transfer: true,
    king_openings: true,
    committee: true,
    private_numbers: PrivateNumbers::Contributed,
    partners: || Partners {
        ring: Some(&SEMI2K),
        field: &SEMI,
        plain_field: &SEMI,
        quorum: None,
    },
    mp_spdz: None,
};

/// `semi2k`.
pub static SEMI2K: Descriptor = Descriptor {
    name: "semi2k",
    summary: "additive, n >= 2 parties, n - 1 corruptions, semi-honest; the same committee as semi",
    domains: Domains {
        ring: Some(MOST_RING_BITS),
        ..Domains::NONE
    },
    splits: true,
    mp_spdz: Some(MpSpdz {
        binary: "semi2k-party.x",
        field: false,
        encrypt: true,
        shares: "Z2^{k}",
        extra_bits: 0,
    }),
    ..ADDITIVE
};

/// `semi`.
pub static SEMI: Descriptor = Descriptor {
    name: "semi",
    summary: "additive, n >= 2 parties, n - 1 corruptions, semi-honest",
    domains: Domains {
        field: Some(Primes::Any),
        ..Domains::NONE
    },
    mp_spdz: Some(MpSpdz {
        binary: "semi-party.x",
        field: true,
        encrypt: true,
        shares: "gfp",
        extra_bits: 0,
    }),
    ..ADDITIVE
};

/// `semi-bin`.
pub static SEMI_BIN: Descriptor = Descriptor {
    name: "semi-bin",
    summary: "additive, n >= 2 parties, n - 1 corruptions, semi-honest; bits alone",
    domains: Domains {
        bits: true,
        ..Domains::NONE
    },
    committee: false,
    ..ADDITIVE
};

/// Opens the engine of one party.
pub fn open_engine<O: Opening>(opening: &O) -> Result<O::Engine> {
    match opening.domain() {
        DomainKind::Fq(q) => open_in(opening, Zq::new(q).map_err(invalid)?),
        DomainKind::Z2k(k) if k <= 64 => open_in(opening, Z2k64::new(k).map_err(invalid)?),
        DomainKind::Z2k(k) => open_in(opening, Z2k128::new(k).map_err(invalid)?),
        DomainKind::Bits => open_in(opening, BitLanes),
        DomainKind::WideFq(_) => Err(EngineError::internal("additive shares over a wide field")),
    }
}

fn open_in<O: Opening, A: Arithmetic>(opening: &O, domain: A) -> Result<O::Engine> {
    let private = opening.private_prg()?;
    let protocol = Additive::new(
        opening.party(),
        domain.clone(),
        opening.all_pair_prgs()?,
        opening.channels(Security::SemiHonest)?,
        private,
        opening.openings()?,
    );
    opening.computation(protocol, (domain.clone(), domain))
}
