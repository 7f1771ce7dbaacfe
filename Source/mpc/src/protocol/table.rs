//! The table of protocols. A new protocol is its own file with its [`Descriptor`], a `mod` line in `protocol/mod.rs`, and a line here: see
//! docs/pages/adding-a-protocol.md.
//!
//! Everything outside a protocol's own file asks the descriptor for a capability and compares no names.

use super::descriptor::Descriptor;
use super::refusal::Refusal;
use super::{additive, authenticated, emulate, replicated, shamir};

/// All protocols, in the order in which lists and tables show them. Programs run under the first unless another is named, and committees under
/// its partner over prime fields.
pub static PROTOCOLS: &[&Descriptor] = &[
    &replicated::RING,
    &replicated::REP_FIELD,
    &replicated::MAL_REP_RING,
    &replicated::MAL_REP_FIELD,
    &shamir::SHAMIR,
    &shamir::MAL_SHAMIR,
    &additive::SEMI2K,
    &additive::SEMI,
    &additive::SEMI_BIN,
    &authenticated::SPDZ2K,
    &authenticated::MASCOT,
    &emulate::EMULATE,
];

/// All names, for errors.
pub(super) fn names() -> String {
    let names: Vec<_> = PROTOCOLS.iter().map(|p| p.name).collect();
    names.join(", ")
}

/// The protocol of this name.
///
/// # Errors
/// [`Refusal::UnknownProtocol`], which lists all names.
pub fn named(name: &str) -> Result<&'static Descriptor, Refusal> {
    PROTOCOLS
        .iter()
        .copied()
        .find(|p| p.name == name)
        .ok_or_else(|| Refusal::UnknownProtocol {
            name: name.to_owned(),
        })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;
    use crate::protocol::descriptor::{Adversary, Partners, PrivateNumbers, Sharing};

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
            // A committee rounds modulo 2^k: among all, or among t + 1. Committees that verify products may make keys alone.
            let rounds = ring.is_some() != quorum.is_some();
            assert!(!p.committee || rounds || p.verifies_products());
        }
    }

    #[test]
    fn capabilities_belong_together() {
        for p in PROTOCOLS {
            let clear = p.sharing == Sharing::None;
            assert_eq!(clear, p.adversary == Adversary::None, "{}", p.name);
            assert!(!p.macs || p.adversary == Adversary::Malicious);
            // What parties merely contribute is for parties that follow the protocol.
            let fits = match p.private_numbers {
                PrivateNumbers::Contributed => p.adversary != Adversary::Malicious,
                PrivateNumbers::Proven => p.macs,
                PrivateNumbers::Pseudorandom => p.verifies_products(),
            };
            assert!(fits, "{}", p.name);
            assert!(!p.splits || p.domains.ring.is_some());
            // One party more than may be corrupt deals masks; programs are for two or more.
            assert!(!p.committee || (p.most_corruptions)(p.least_parties) >= 1);
            assert!(p.least_parties >= 1 && p.most_parties.is_none_or(|m| m >= p.least_parties));
            for n in [p.least_parties, p.most_parties.unwrap_or(16)] {
                assert!((p.most_corruptions)(n) < n);
                assert_eq!(p.threshold(n, None), Ok((p.most_corruptions)(n)));
            }
        }
    }
}
