//! Whether the keys of elements are what they must be: the same towards all parties, and the same as when stored shares were made.
//!
//! # One key towards all
//!
//! This is the first thing that happens under the keys, where there is more than one peer. A party enters its key into base OTs with each peer
//! apart, and nothing there says that the keys are the same. If it has α + δ_a towards
//! the honest party a, then the MAC of every x that is made (`values`) is off by e = Σ_a δ_a·x_a, of the honest parties' summands x_a. A party
//! that knows e for what is opened repairs it, and passes every check; if it bets on an x that masks an input, whether it passes reveals
//! whether its guess of the input was right; and if it repairs nothing, the sums of the check that fails reveal e.
//!
//! So some random elements are made that are used for nothing else. All pairs of parties rerandomise their summands with strings that they
//! have in common, after the MACs were made, then the elements are opened, and the MAC of each is verified for itself.
//!
//! Why nobody passes with two keys: the openings give a corrupted party the sum of the honest parties' x_a and nothing else, as between any two
//! honest parties there is a string that it does not know; the corrections of `values` reveal nothing of x_a, as they are under pads. Given
//! their sum, e is uniform among the multiples of the differences δ_a − δ_b, each summed over the corrupted parties, and the adversary is committed
//! to one that it guesses before it sees more. Whatever else it does (other words for some digits, another opening) makes the MACs wrong by
//! something that does not hang on the strings of honest pairs, and hits e with that probability at best. So many elements are taken that all of
//! them pass with 2^-[`CHECK_BITS`] ([`elements`]). In a field keys count modulo q, and differences that are multiples of q are none.
//!
//! Nothing of value can be lost when it fails: no element has masked anything. Keys are tested by every engine with MACs before its first round,
//! hence in every session, whether a key is new or was stored, and in every subgroup; engines over several fields see several residues of a key.
//!
//! A smallest batch of triples in front of everything would do as well: its c = a·b are off by δ·b·a_a, under pads between honest parties. It
//! costs more than 600 KB a peer and 15 rounds; this costs a few hundred bytes a peer and no round, since the check of the keys of bits, at the
//! same time, takes longer.
//!
//! # The key of stored shares
//!
//! A session takes the MAC key from a file, but a corrupted party may take another one, α + δ, towards everybody. What is made in that session is
//! in order. A share x that was stored is under α: whatever is computed from it is off by δ·x, and the party that repairs it for a guess of x
//! passes if the guess was right.
//!
//! So random elements r with MACs, which are used for nothing else, are stored beside shares, in the same domain. A later session makes fresh
//! random elements s before it uses the shares, opens r − s, and verifies the MAC of each for itself ([`test_stored`]). r − s reveals nothing
//! of r, as s is uniform, so that r may be used again. The sum of the MACs is off by δ·r, of which nobody knows the honest parties' summands:
//! the adversary must guess it. Whatever else it does, other words in stored shares or another opening, adds something that does not hang on r.
//! So the same number of elements passes with 2^-[`CHECK_BITS`], and a failure burns the key like that of every check of MACs. As
//! r is made after the check of one key towards all, and s as well, δ is the same for all summands. The test itself is the MAC check of SPDZ
//! (Damgård, Pastro, Smart, Zakarias, CRYPTO 2012), whose keys are fixed once in the set-up: it makes that true of sessions that read keys from files.
//!
//! Keys of bits need no such test, as no bits with MACs are stored. Engines refuse shares of another session before this test
//! (`ops` of `mpc`).

use keyquorum_math::DomainKind;

use super::binary::correlate::of_mut;
use super::openings::open_summands;
use super::values::{Given, authenticate};
use super::verify::check_each;
use super::{Arithmetic, Authenticated};
use crate::adversary::Site;
use crate::budget::KEY_CHECK_BITS as CHECK_BITS;
use crate::error::{Check, EngineError};
use crate::task::{SendFn, and_then, at_start};
use crate::value::Share;

/// Elements of which all must be guessed.
///
/// The difference of keys is below 2^48 in size for one corrupted party, and below c·2^48 for c of them together. If it is not zero modulo
/// 2^(k + 48), its multiples are at least 2^(k + 1)/c numbers, and at least two; in a field they are all q elements.
pub(super) fn elements<A: Arithmetic>(p: &Authenticated<A>) -> usize {
    let bits = match p.visible.kind() {
        DomainKind::Fq(_) => p.domain.bits() - 1,
        _ => {
            let corrupted = p.parties.saturating_sub(1).max(1);
            (p.visible.bits() + 1)
                .saturating_sub(corrupted.next_power_of_two().ilog2())
                .max(1)
        }
    };
    CHECK_BITS.div_ceil(bits) as usize
}

/// The test that keys are those under which `stored` was stored, elements that are used for nothing else. Three rounds, four among more than two
/// parties.
pub(super) fn test_stored<A: Arithmetic>(
    p: &mut Authenticated<A>,
    stored: Share<A::E>,
) -> SendFn<Authenticated<A>, ()> {
    p.preprocessing.randoms.need(stored.len());
    at_start(move |p: &mut Authenticated<A>| {
        let fresh = Share {
            parts: p.preprocessing.randoms.take(stored.len())?.into(),
        };
        let mut difference = stored;
        p.sub(&mut difference, &fresh)?;
        let sites = (
            Check::StoredKeys,
            Site::StoredKeyOpening,
            Site::StoredKeySums,
        );
        Ok(open_and_verify(sites, difference))
    })
}

/// Opens these elements, then verifies the MAC of each.
fn open_and_verify<A: Arithmetic>(
    (which, opening, sums): (Check, Site, Site),
    share: Share<A::E>,
) -> SendFn<Authenticated<A>, ()> {
    at_start(move |_: &mut Authenticated<A>| {
        let opened = open_summands(opening, share.part(0)?.to_vec(), 0);
        Ok(and_then(opened, move |_, values| {
            Ok(check_each((which, sums), share, values))
        }))
    })
}

/// The check that everybody has one key towards all. Five rounds.
pub(super) fn check<A: Arithmetic>() -> SendFn<Authenticated<A>, ()> {
    at_start(move |p: &mut Authenticated<A>| {
        let n = elements(p);
        let given = Given {
            owner: None,
            n,
            values: Some(p.draw(n)),
        };
        Ok(and_then(
            authenticate(vec![given]),
            |p: &mut Authenticated<A>, mut shares| {
                let share = shares.pop();
                let mut share =
                    share.ok_or_else(|| EngineError::internal("no elements to test keys with"))?;
                for owner in 0..p.parties {
                    p.add_sharing_of_zero(owner, of_mut(&mut share.parts, 0)?)?;
                }
                let site = (Check::ElementKeys, Site::KeyOpening, Site::KeySums);
                Ok(open_and_verify(site, share))
            },
        ))
    })
}
