//! Random elements with MACs: of everybody, or known to one party.
//!
//! A party that has x_i multiplies it with the key of every peer (`keyquorum_ot::vole`); x_i·α_i and its shares of the products
//! are its share of the MAC, the shares of the products at the peers are theirs. A party that gives different words to
//! different digits or peers makes MACs that do not fit: [`MASKS`] random sums of all, each masked by one more, are opened and verified (MASCOT,
//! CCS 2016, figure 5, with one). Three rounds.

use keyquorum_math::{Element, wipe};
use zeroize::Zeroizing;

use super::binary::{Toss, finish_toss, start_toss};
use super::verify::public;
use super::{Arithmetic, Authenticated, bits, open};
use crate::adversary::Site;
use crate::error::{EngineError, Result};
use crate::task::{SendFn, Step, and_then, at_start, join, then, within};
use crate::value::{Share, same, zip};

/// Elements that get MACs.
pub(super) struct Given<E: Element> {
    /// Who has summands: one party, or all.
    pub owner: Option<usize>,
    pub n: usize,
    /// Our summands, where we have them.
    pub values: Option<Zeroizing<Vec<E>>>,
}

impl<E: Element> Given<E> {
    fn has_values(&self, party: usize) -> bool {
        self.owner.is_none_or(|owner| owner == party)
    }
}

pub(super) fn blame(peer: usize) -> impl Fn(keyquorum_ot::OtError) -> EngineError {
    move |e| {
        let text = format!("products with the key of party {peer}: {e}");
        match e {
            keyquorum_ot::OtError::Internal(_) => EngineError::internal(text),
            _ => EngineError::protocol(text),
        }
    }
}

/// Makes MACs, without check. One round.
pub(super) fn authenticate<A: Arithmetic>(
    list: Vec<Given<A::E>>,
) -> SendFn<Authenticated<A>, Vec<Share<A::E>>> {
    Box::new(move |p, out| {
        let domain = p.domain.clone();
        let mut shares = Vec::with_capacity(list.len());
        for given in &list {
            let mut share = Share::zeros(super::PARTS, given.n);
            for peer in p.others() {
                if given.has_values(peer) {
                    let bytes = p.peer(peer)?.keep.message_bytes(&domain, given.n);
                    out.expect_bytes(peer, bytes);
                }
            }
            if given.has_values(p.me) {
                let (Some(values), [x, mac]) = (&given.values, share.parts.as_mut_slice()) else {
                    return Err(no_values());
                };
                if values.len() != given.n {
                    return Err(no_values());
                }
                x.copy_from_slice(values);
                mac.copy_from_slice(values);
                domain.mul_scalar_assign(mac, p.key);
                for peer in p.others() {
                    let values =
                        p.adversary
                            .elements(Site::Vector, Some(peer), &domain, values.as_slice());
                    let buffer = out.buffer(peer)?;
                    let start = buffer.len();
                    let give = &mut p.peer(peer)?.give;
                    let ours = give.multiply(&domain, &values, buffer);
                    let mut ours = ours.map_err(blame(peer))?;
                    p.adversary
                        .change_message(Site::Digit, Some(peer), buffer, start);
                    domain.add_assign(mac, &ours);
                    wipe(&mut ours);
                }
            }
            shares.push(share);
        }
        Ok(Box::new(move |p, inbox| {
            for (given, share) in zip(&list, &mut shares)? {
                for peer in p.others().filter(|peer| given.has_values(*peer)) {
                    let keep = &mut p.peer(peer)?.keep;
                    let bytes = keep.message_bytes(&domain, given.n);
                    let message = inbox.take_bytes(peer, bytes)?;
                    let mut theirs = keep
                        .multiply(&domain, given.n, message)
                        .map_err(blame(peer))?;
                    let [_, mac] = share.parts.as_mut_slice() else {
                        return Err(no_mask());
                    };
                    domain.add_assign(mac, &theirs);
                    wipe(&mut theirs);
                }
                if let Some(owner) = given.owner {
                    p.add_sharing_of_zero(owner, share.part_mut(0)?)?;
                }
            }
            Ok(Step::Done(shares))
        }))
    })
}

fn no_values() -> EngineError {
    EngineError::internal("values to be authenticated are missing")
}

fn no_mask() -> EngineError {
    EngineError::internal("a random sum of shares without its mask")
}

/// Random sums that are opened of elements that get MACs, each under an element that masks it: who sees the factors first and does not like them may break off.
pub const MASKS: usize = 2;

/// Opens random sums of these shares; the last [`MASKS`] elements of each mask them and are taken off.
pub(super) fn check_sums<A: Arithmetic>(
    mut shares: Vec<Share<A::E>>,
    seed: &Toss,
) -> SendFn<Authenticated<A>, Vec<Share<A::E>>> {
    let seed = *seed;
    at_start(move |p: &mut Authenticated<A>| {
        let mut stream = public(&seed, 1);
        let mut sums = Share::zeros(super::PARTS, 0);
        for share in &mut shares {
            let n = share.len().checked_sub(MASKS).ok_or_else(no_mask)?;
            if share.parts.len() != sums.parts.len() {
                return Err(no_mask());
            }
            let mut factors = vec![p.domain.zero(); n];
            for left in (n..n + MASKS).rev() {
                p.domain.random(&mut stream, &mut factors);
                for (sum, part) in sums.parts.iter_mut().zip(&mut share.parts) {
                    same(part.len(), left + 1)?;
                    let mask = part.pop().ok_or_else(no_mask)?;
                    let values = part.get(..n).ok_or_else(no_mask)?;
                    sum.push(p.domain.add(mask, p.domain.dot(values, &factors)));
                }
            }
        }
        Ok(then(open(sums), move |_, _| Ok(shares)))
    })
}

/// [`authenticate`] with its check; every list is longer by [`MASKS`] than what comes back.
pub(super) fn checked<A: Arithmetic>(
    list: Vec<Given<A::E>>,
) -> SendFn<Authenticated<A>, Vec<Share<A::E>>> {
    let started = join(
        authenticate(list),
        within(start_toss(), bits::<A>),
        |_, shares, toss| Ok((shares, toss)),
    );
    and_then(started, |_, (shares, toss)| {
        let toss = within(finish_toss(toss), bits::<A>);
        Ok(and_then(toss, move |_, seed| Ok(check_sums(shares, &seed))))
    })
}

/// A task that makes random elements: known to nobody (`owner` is `None`), or to one party.
pub(super) fn random_elements<A: Arithmetic>(
    wanted: Vec<(Option<usize>, usize)>,
) -> SendFn<Authenticated<A>, ()> {
    at_start(move |p: &mut Authenticated<A>| {
        let mut list = Vec::with_capacity(wanted.len());
        let mut known = Vec::with_capacity(wanted.len());
        for (owner, n) in &wanted {
            let ours = owner.is_none_or(|owner| owner == p.me);
            let values = ours.then(|| p.draw(n + MASKS));
            known.push(match (&values, owner) {
                (Some(values), Some(_)) => values.iter().take(*n).copied().collect(),
                _ => vec![p.domain.zero(); *n],
            });
            list.push(Given {
                owner: *owner,
                n: n + MASKS,
                values,
            });
        }
        Ok(then(checked(list), move |p, shares| -> Result<()> {
            let made = zip(shares, known)?;
            for ((owner, _), (mut share, known)) in zip(wanted, made)? {
                let mut parts = std::mem::take(&mut share.parts).into_iter();
                let (Some(x), Some(mac)) = (parts.next(), parts.next()) else {
                    return Err(no_mask());
                };
                match owner {
                    None => p.preprocessing.randoms.put([x, mac]),
                    Some(owner) => p.preprocessing.input(owner)?.put([x, mac, known]),
                }
            }
            Ok(())
        }))
    })
}
