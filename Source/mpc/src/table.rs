//! The table of protocols. A new protocol is its own file with its [`Descriptor`], a `mod` line in `protocols/src/lib.rs`, and a line here: see
//! docs/pages/adding-a-protocol.md.
//!
//! Everything outside a protocol's own file asks the descriptor for a capability and compares no names.

use crate::descriptor::Descriptor;
use crate::engine::Engine;
use crate::error::Result;
use crate::opening::SessionOpening;
use crate::protocol::{additive, authenticated, emulate, replicated, shamir};
use crate::refusal::Refusal;

/// A protocol, and how the engine of one party is opened.
type Row = (
    &'static Descriptor,
    fn(&SessionOpening) -> Result<Box<dyn Engine>>,
);

/// All protocols, in the order in which lists and tables show them. Programs run under the first unless another is named, and committees under
/// its partner over prime fields.
static TABLE: &[Row] = &[
    (&replicated::RING, replicated::open_engine),
    (&replicated::REP_FIELD, replicated::open_engine),
    (&replicated::MAL_REP_RING, replicated::open_verified),
    (&replicated::MAL_REP_FIELD, replicated::open_verified),
    (&shamir::SHAMIR, shamir::open_engine),
    (&shamir::MAL_SHAMIR, shamir::open_verified),
    (&additive::SEMI2K, additive::open_engine),
    (&additive::SEMI, additive::open_engine),
    (&additive::SEMI_BIN, additive::open_engine),
    (&authenticated::SPDZ2K, authenticated::open_engine),
    (&authenticated::MASCOT, authenticated::open_engine),
    (&emulate::EMULATE, emulate::open_engine),
];

/// All protocols, in the order of the table.
pub fn protocols() -> impl Iterator<Item = &'static Descriptor> {
    TABLE.iter().map(|(descriptor, _)| *descriptor)
}

/// The row of the protocol of this name.
///
/// # Errors
/// [`Refusal::UnknownProtocol`], which lists all names.
pub(crate) fn row(name: &str) -> std::result::Result<Row, Refusal> {
    let known = || protocols().map(|p| p.name).collect::<Vec<_>>().join(", ");
    let row = TABLE.iter().copied().find(|(p, _)| p.name == name);
    row.ok_or_else(|| Refusal::UnknownProtocol {
        name: name.to_owned(),
        known: known(),
    })
}

/// The protocol of this name.
///
/// # Errors
/// [`Refusal::UnknownProtocol`], which lists all names.
pub fn named(name: &str) -> std::result::Result<&'static Descriptor, Refusal> {
    row(name).map(|(descriptor, _)| descriptor)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;
    use keyquorum_math::DomainKind;

    use crate::descriptor::{Adversary, Partners, PrivateNumbers, Sharing};

    #[test]
    fn names_are_unique_and_found() {
        for (i, p) in protocols().enumerate() {
            assert!(std::ptr::eq(named(p.name).unwrap(), p));
            assert!(protocols().skip(i + 1).all(|q| q.name != p.name));
        }
        let refused = named("bmr").unwrap_err();
        assert!(matches!(&refused, Refusal::UnknownProtocol { name, .. } if name == "bmr"));
        assert!(refused.to_string().ends_with("spdz2k, mascot, emulate"));
    }

    #[test]
    fn partners_are_in_the_table_and_serve_their_domain() {
        for p in protocols() {
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
        for p in protocols() {
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

    #[test]
    fn refusals_name_the_culprit_and_the_cure() {
        let text = |name, n, t, domain| {
            let p = named(name).unwrap();
            let refused = p
                .threshold(n, t)
                .and_then(|_| p.check_domain(domain, n, protocols()));
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
                "shamir with 5 parties tolerates 1 to 2 corruptions, not 3: set -T 2",
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
                "spdz2k works modulo 2^k for k up to 80, not over Z2^128: take a smaller -R",
            ),
            (
                "shamir",
                3,
                None,
                DomainKind::WideFq((1 << 127) - 1),
                "shamir works over prime fields of at most 62 bits, not over F_170141183460469231731687303715884105727: take rep-field, or -P prime",
            ),
            (
                "ring",
                3,
                None,
                DomainKind::WideFq((1 << 127) - 1),
                "ring works modulo 2^k, not over F_170141183460469231731687303715884105727: take rep-field, or -R k",
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
