//! Bits and numbers in both domains, packed and as elements; what parties know shared so before anybody has seen that both agree,
//! for cut and choose.

use zeroize::Zeroizing;

use super::binary::{Toss, finish_challenge, start_toss};
use super::values::{Given, MASKS, authenticate, check_sums};
use super::{Arithmetic, Authenticated, bits};
use crate::error::Result;
use crate::task::{SendFn, and_then, at_start, join, then, within};
use crate::value::{Share, same, zip};

/// Items that are opened, so that not all can be wrong: one lane.
pub(super) const OPENED: usize = 64;

/// Bits or numbers of one party, in both domains.
pub(super) struct Private<A: Arithmetic> {
    pub packed: Share<u64>,
    pub elements: Share<A::E>,
}

/// `lanes` lanes of random bits of every party, in the order of the parties, and the `n` elements that `elements` makes of our own;
/// and a toss of which nobody knew anything before: a challenge, which the caller closes (`Guard::answered`) when all that it decides is
/// verified. Every party's elements have MACs, whatever they are. Four rounds.
pub(super) fn shared<A: Arithmetic>(
    lanes: usize,
    n: usize,
    elements: impl Fn(&mut Authenticated<A>, &[u64]) -> Result<Zeroizing<Vec<A::E>>> + Send + 'static,
) -> SendFn<Authenticated<A>, (Vec<Private<A>>, Toss)> {
    let given: SendFn<Authenticated<A>, _> = at_start(move |p: &mut Authenticated<A>| {
        let mut packed = Vec::with_capacity(p.parties);
        let mut list = Vec::with_capacity(p.parties);
        for owner in 0..p.parties {
            let (share, known) = p.bits.take_input(owner, lanes)?;
            packed.push(share);
            let values = if owner == p.me {
                let ours = elements(p, &known)?;
                same(ours.len(), n)?;
                // More of them mask the check, and are taken off.
                let mut values = Zeroizing::new(Vec::with_capacity(n + MASKS));
                values.extend_from_slice(&ours);
                values.extend_from_slice(&p.draw(MASKS));
                Some(values)
            } else {
                None
            };
            list.push(Given {
                owner: Some(owner),
                n: n + MASKS,
                values,
            });
        }
        Ok(join(
            authenticate(list),
            within(start_toss(), bits::<A>),
            |_, elements, toss| Ok((packed, elements, toss)),
        ))
    });
    let tossed = and_then(given, |_, (packed, elements, toss)| {
        let toss = within(finish_challenge(toss), bits::<A>);
        Ok(then(toss, |_, seed| Ok((packed, elements, seed))))
    });
    and_then(tossed, |_, (packed, elements, seed)| {
        Ok(then(check_sums(elements, &seed), move |_, elements| {
            let both = zip(packed, elements)?;
            let private = both.map(|(packed, elements)| Private { packed, elements });
            Ok((private.collect(), seed))
        }))
    })
}
