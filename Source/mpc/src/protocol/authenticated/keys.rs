//! The first thing that happens under the keys of elements, where there is more than one peer: whether everybody has one key towards all.
//!
//! A party enters its key into base OTs with each peer apart, and nothing there says that the keys are the same. If it has α + δ_a towards
//! the honest party a, then the MAC of every x that is made (`values`) is off by e = Σ_a δ_a·x_a, of the honest parties' summands x_a. A party
//! that knows e for what is opened repairs it, and passes every check; if it bets on an x that masks an input, whether it passes tells
//! whether its guess of the input was right; and if it repairs nothing, the sums of the check that fails tell it e.
//!
//! So some random elements are made that are used for nothing else. All pairs of parties rerandomise their summands with strings that they
//! have in common, after the MACs were made, then the elements are opened, and the MAC of each is verified for itself.
//!
//! Why nobody passes with two keys: the openings tell a corrupted party the sum of the honest parties' x_a and nothing else, as between any two
//! honest parties there is a string that it does not know; the corrections of `values` tell nothing of x_a, as they are under pads. Given
//! their sum, e is uniform among the multiples of the differences δ_a − δ_b. These are less than 2^48 in size. If one of them is not zero,
//! e is one of 2^(k + 48)/2^47 = 2^(k + 1) multiples modulo 2^(k + 48), or of all q elements of a field, and the party is committed to one
//! that it guesses before it sees more. Whatever else it does (other words for some digits, another opening) makes the MACs wrong by something
//! that does not hang on the strings of honest pairs, and hits e with that probability at best. So many elements are taken that all of them pass
//! with 2^-[`CHECK_BITS`]. In a field keys count modulo q, and differences that are multiples of q are none.
//!
//! Nothing of value can be lost when it fails: no element has masked anything. Keys are tested by every engine with MACs before its first round,
//! hence in every session, whether a key is new or was stored, and in every subgroup; engines over several fields see several residues of a key.
//! That a key is the same as in an earlier session is not tested here.
//!
//! A smallest batch of triples in front of everything would do as well: its c = a·b are off by δ·b·a_a, under pads between honest parties. It
//! costs more than 600 KB a peer and 15 rounds; this costs a few hundred bytes a peer and no round, since the check of the keys of bits, at the
//! same time, takes longer.

use keyquorum_math::DomainKind;

use super::binary::correlate::of_mut;
use super::openings::open_summands;
use super::values::{Given, authenticate};
use super::verify::check_each;
use super::{Arithmetic, Authenticated};
use crate::adversary::Site;
use crate::error::{Check, EngineError};
use crate::graph::{SendFn, and_then, then};

/// −log2 of the probability that two keys pass.
pub(crate) const CHECK_BITS: u32 = 48;

/// Elements of which all must be guessed.
fn elements<A: Arithmetic>(p: &Authenticated<A>) -> usize {
    let bits = match p.visible.kind() {
        DomainKind::Fq(_) => p.domain.bits() - 1,
        _ => p.visible.bits() + 1,
    };
    CHECK_BITS.div_ceil(bits) as usize
}

/// The check. Five rounds.
pub(super) fn check<A: Arithmetic>() -> SendFn<Authenticated<A>, ()> {
    Box::new(move |p, out| {
        let n = elements(p);
        let given = Given {
            owner: None,
            n,
            values: Some(p.draw(n)),
        };
        let opened = and_then(
            authenticate(vec![given]),
            |p: &mut Authenticated<A>, mut shares| {
                let share = shares.pop();
                let mut share =
                    share.ok_or_else(|| EngineError::internal("no elements to test keys with"))?;
                for owner in 0..p.parties {
                    p.add_sharing_of_zero(owner, of_mut(&mut share.parts, 0)?)?;
                }
                let summands = share.part(0)?.to_vec();
                let opened = open_summands(Site::KeyOpening, summands, 0);
                Ok(then(opened, |_, values| Ok((share, values))))
            },
        );
        and_then(opened, |_, (share, values)| {
            let which = (Check::ElementKeys, Site::KeySums);
            Ok(check_each(which, share, values))
        })(p, out)
    })
}
