//! The check of what others multiplied by bits of ours: sums of random subsets, masked, are opened, and the MAC of each is verified for
//! itself.
//!
//! What a peer made wrong is a vector of differences between MACs and what they should be, which may hang on bits that it does not know. If it
//! is not what the peer repairs, each sum shows it with probability 1/2 at least, whatever the group. The peer sees the subsets before it
//! commits to what it repairs, so it takes what is likeliest then: the heaviest value of a linear hash of [`CHECKS`] bits of what it does not
//! know, which for as many unknown bits as sums is 2 to 2.5 times, and with a look at many hashes some 2^4 times as likely as the average.
//! Wrong MACs that were not guessed pass with probability 2^-([`CHECKS`] − 4). One check of a combination of all is not enough: modulo 2^l an error of 2^(l-1) in every
//! place passes it with probability 1/2 and without a guess of every bit. What is wrong after this check was guessed, so later checks may
//! combine.

use zeroize::Zeroizing;

use super::binary::{Committed, Toss, finish_challenge, finish_toss, start_toss};
use super::verify::{self, check_each, public};
use super::{Arithmetic, Authenticated, bits, open};
use crate::adversary::Site;
pub(super) use crate::budget::SUBSET_SUMS as CHECKS;
use crate::error::{Check, EngineError, Result};
use crate::task::{SendFn, and_then, join, then, within};
use crate::value::{Share, same};

/// Checks these shares of what was made, under a toss that everybody is committed to since; returns it with a toss of which nobody knew
/// anything before the check was done. Seven rounds, eight among more than two parties.
pub(super) fn check<A: Arithmetic, T: Send + 'static>(
    made: T,
    shares: fn(&T) -> Vec<&Share<A::E>>,
    toss: Committed,
) -> SendFn<Authenticated<A>, (T, Toss)> {
    let tossed = within(finish_challenge(toss), bits::<A>);
    let summed = and_then(tossed, move |p: &mut Authenticated<A>, seed| {
        let sums = subset_sums(p, shares(&made), &seed)?;
        let opened = open(sums.duplicate());
        Ok(then(opened, |_, values| Ok((made, sums, values))))
    });
    let verified = and_then(summed, |_, (made, sums, values)| {
        let both = join(
            check_each((Check::SubsetSums, Site::SubsetSums), sums, values),
            verify::check(),
            |p: &mut Authenticated<A>, (), ()| p.bits.guard.answered(),
        );
        let toss = within(start_toss(), bits::<A>);
        Ok(join(both, toss, |_, (), toss| Ok((made, toss))))
    });
    and_then(verified, |_, (made, toss)| {
        let toss = within(finish_toss(toss), bits::<A>);
        Ok(then(toss, |_, seed| Ok((made, seed))))
    })
}

/// Masked sums of random subsets of all values.
fn subset_sums<A: Arithmetic>(
    p: &mut Authenticated<A>,
    shares: Vec<&Share<A::E>>,
    seed: &Toss,
) -> Result<Share<A::E>> {
    let mut sums = Share {
        parts: p.preprocessing.randoms.take(CHECKS)?.into(),
    };
    let mut stream = public(seed, 0);
    for share in shares {
        let mut subsets = vec![0; share.len()];
        stream.fill_u64(&mut subsets);
        for (sums, part) in sums.with(share)? {
            add_subsets(&p.domain, part, &subsets, sums)?;
        }
    }
    Ok(sums)
}

/// Adds every value to the sums that the bits of its subset word name; four values at a time, by a table of their sums.
fn add_subsets<A: Arithmetic>(
    domain: &A,
    values: &[A::E],
    subsets: &[u64],
    sums: &mut [A::E],
) -> Result<()> {
    same(values.len(), subsets.len())?;
    same(sums.len(), CHECKS)?;
    let mut table = Zeroizing::new([domain.zero(); 16]);
    for (values, subsets) in values.chunks(4).zip(subsets.chunks(4)) {
        for (i, value) in values.iter().enumerate() {
            let (known, new) = table.split_at_mut(1 << i);
            for (new, known) in new.iter_mut().zip(known.iter()) {
                *new = domain.add(*known, *value);
            }
        }
        for (j, sum) in sums.iter_mut().enumerate() {
            let named = subsets.iter().rev();
            let index = named.fold(0, |index, subset| index << 1 | (subset >> j & 1) as usize);
            let entry = table.get(index).ok_or_else(EngineError::uneven)?;
            *sum = domain.add(*sum, *entry);
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use keyquorum_math::{Domain, Prg, Z2k128};

    use super::*;

    #[test]
    fn subsets_are_summed() {
        let domain = Z2k128::new(112).unwrap();
        let mut prg = Prg::new([3; 16], 0);
        for n in [0, 1, 3, 4, 17] {
            let (mut values, mut subsets) = (vec![0; n], vec![0; n]);
            domain.random(&mut prg, &mut values);
            prg.fill_u64(&mut subsets);
            let mut sums = vec![5; CHECKS];
            add_subsets(&domain, &values, &subsets, &mut sums).unwrap();
            for (j, sum) in sums.iter().enumerate() {
                let named = values
                    .iter()
                    .zip(&subsets)
                    .filter(|(_, s)| **s >> j & 1 == 1);
                assert_eq!(*sum, named.fold(5, |sum, (v, _)| domain.add(sum, *v)));
            }
        }
    }

    /// A value that is in no sum, or a sum that is not there, would not be checked.
    #[test]
    fn missing_parts_blocked_values_that_are_in_no_sum() {
        let domain = Z2k128::new(112).unwrap();
        for (values, subsets, sums) in [(4, 3, CHECKS), (3, 4, CHECKS), (4, 4, CHECKS - 1)] {
            let (values, subsets) = (vec![1; values], vec![1; subsets]);
            let added = add_subsets(&domain, &values, &subsets, &mut vec![0; sums]);
            assert!(matches!(added, Err(EngineError::Internal(_))));
        }
    }
}
