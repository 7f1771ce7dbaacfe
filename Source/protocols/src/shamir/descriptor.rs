//! `shamir` in the table of protocols, and how its engines are opened.

use super::{Shamir, uses_prss};
use crate::additive::{SEMI, SEMI2K};
use crate::descriptor::{
    Adversary, Descriptor, Domains, MpSpdz, Partners, Primes, PrivateNumbers, Sharing,
};
use crate::error::Result;
use crate::opening::Opening;

/// The fields that both protocols share.
pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "",
    summary: "",
    sharing: Sharing::Shamir,
    domains: Domains {
        // Party i holds f(i + 1): a point that is 0 modulo q would be the secret itself.
        field: Some(Primes::AboveParties {
            reason: "a party's point would be the secret",
        }),
        ..Domains::NONE
    },
    binary: false,
    least_parties: 3,
    most_parties: None,
    most_corruptions: |parties| (parties - 1) / 2,
    chooses_threshold: true,
    adversary: Adversary::SemiHonest,
    macs: false,
    held: |party, _, _| vec![party],
    summands: |_| 0,
    splits: false,
    edabits: false,
    oblivious_transfer: false,
    king_openings: true,
    committee: true,
    private_numbers: PrivateNumbers::Contributed,
    partners: || Partners {
        ring: None,
        field: &SHAMIR,
        plain_field: &SHAMIR,
        quorum: Some((&SEMI2K, &SEMI)),
    },
    mp_spdz: None,
};

/// `shamir`.
pub static SHAMIR: Descriptor = Descriptor {
    name: "shamir",
    summary: "Shamir, n >= 3 parties, t < n/2 corruptions, semi-honest",
    mp_spdz: Some(MpSpdz {
        binary: "shamir-party.x",
        field: true,
        encrypt: false,
        shares: "Shamir gfp",
        extra_bits: 0,
    }),
    ..DESCRIPTOR
};

/// Opens the engine of one party.
pub fn open_engine<O: Opening>(opening: &O) -> Result<O::Engine> {
    opening.in_any_domain(party(opening)?)
}

/// Our party, with the streams of this engine.
pub(super) fn party(opening: &impl Opening) -> Result<Shamir> {
    let (n, t) = (opening.parties(), opening.threshold());
    let streams = if uses_prss(n, t) {
        opening.subset_streams()?
    } else {
        Vec::new()
    };
    let pairs = opening.all_pair_prgs()?;
    let shamir = Shamir::new(opening.party(), n, t, pairs, streams)?;
    Ok(shamir.at(opening.points()?).corrupted(opening.adversary()))
}
