//! Many random elements that one party knows, with MACs, for few messages: their products with the keys of the others are a pseudorandom correlation.
//!
//! A party needs few elements u with MACs to begin with: a secret s and noise values. Towards all peers it has a vector e that is zero but for one noise value in each block of
//! 2^`levels` entries. The place is secret. A block costs a tree (`keyquorum_ot::trees`): of its leaves v_y the peer, which has the key α, knows all, and the party all but the one at the
//! place a. The peer sends d = b' − Σ v_y, where b + b' = α·u are the shares of the MAC of the noise value u. With w_y = −v_y elsewhere and w_a = b + d + Σ v_y over y ≠ a
//! the sums w + v are α·e. All else is linear and local: x = A·s + e, for a public matrix A, with A·(MAC of s) + w and A·(MAC of s) + v. By the assumption of learning
//! parity with noise (LPN) over the field, with noise in blocks, x is as good as random. Elements that are left over begin the next batch.
//!
//! Schoppmann, Gascón, Reichert, Raykova, "Distributed vector-OLE" (CCS 2019); Weng, Yang, Katz, Wang, "Wolverine" (IEEE S&P 2021), section 5. Shares here are sums over all parties: s, places and noise are the same towards all peers, so that x is as well, without a correction.
//!
//! # Security
//!
//! *The party.* It may give other words for digits or towards peers when it begins (`values`), another shift of a noise value to each peer, and other choices. Places are choices of OTs whose check compares
//! them among the peers. Whatever it does makes MACs wrong by something that hangs on the keys, as in `values`.
//!
//! *A peer.* Of an honest party it sees corrections and shifts, which are under pads. By wrong sums or a wrong d it makes the MACs of a block wrong by a vector ε(a) that depends on the place a in that block alone. It passes the
//! check below if it repairs the MACs. It sees the subsets before it commits to a repair, and a sum shows of ε a linear combination alone: errors that differ may have the same sums, but for 2^-44 they have not (`subset_sums`),
//! which is counted. So but for 2^-44, it must know all ε. That holds for the places in some set S_1 × S_2 × …, which it has chosen before; otherwise
//! the check fails, and the key burns. A check that passes says that the places are in these sets, and no more: of ℓ bits that the adversary learns of all places of a life it is caught with 1 − 2^-ℓ. ℓ may be a fraction: a set may lack one of
//! 2^`levels` places. Bits of several blocks and batches add up (`crate::budget`). A check that fails says that a place is not in its set, and through the sums, what the errors were, so the places on which there was a bet: of this batch, whose x is never used.
//! This is the leakage of LPN with static leakage that Wolverine and Ferret (Yang, Weng, Lan, Zhang, Wang, CCS 2020) have as well; the parameters leave room for 40 bits.
//! What is wrong after the check is known to the adversary: later checks pass or fail whatever the secrets are.
//!
//! *The check* is that of sums of random subsets (`subset_sums`), of all elements, before any is used. One sum passes with 1/2, whatever the field.
//!
//! *The assumption.* It is used over prime fields of [`SHORTEST`] bits or more alone. Modulo 2^l it would be no harder than over F_2: 2^(l-1)·x is a sample of LPN there, and A has dual words of
//! even weight over F_2 that are much lighter than those over a large field. Over short primes a value is guessed with a noticeable chance. Noise values are not zero.
//! Rows of A have ten entries at random places, as in Wolverine and Ferret; their coefficients are uniform, and not zero (`matrix`). Sizes (`shape`) keep every known attack on a batch above 2^188: 128 bits,
//! 40 for bets on places that passed, and 20 for 2^20 batches. `attacks` computes the costs and searches the actual matrices for sets of columns that would cost less; `docs/pages/budget.md` has the
//! table, and what was not tried. Sessions may do without the assumption (`Session::set_lpn`): elements are multiplied by keys one by one then.

#[cfg(test)]
mod attacks;
mod matrix;
mod shape;

use keyquorum_math::{Domain, DomainKind, Element, mask_of, wipe};
use keyquorum_ot::extension::sliced::Kind;
use keyquorum_ot::trees;
use zeroize::Zeroizing;

use self::matrix::encoded;
use self::shape::{SHAPES, Shape, shape};
use super::binary::{Committed, correlate, exchange, start_toss};
use super::subset_sums;
use super::values::{Given, authenticate};
use super::{Arithmetic, Authenticated, bits};
use crate::adversary::Site;
use crate::error::{EngineError, Result};
use crate::items::Items;
use crate::task::{SendFn, Step, and_then, at_start, join, then, within};
use crate::value::{Share, zip};
use crate::{BITS, lanes};

/// Bits of the shortest prime.
const SHORTEST: u32 = 40;
/// Fewer elements are multiplied by keys one by one: of 4,000 that costs as many bytes as to begin here, and ten rounds less.
pub(super) const LEAST: usize = 8192;
/// Kept for the next batch of the first shape.
const KEPT: usize = SHAPES[0].base();

/// What parties know, with MACs: for each its elements (zeros elsewhere), and our shares of their MACs.
pub(super) type Pool<E> = Items<E, 2>;

/// Elements that are asked for.
pub(super) type Asked = (Option<usize>, usize);

/// The batch of a party.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fill {
    owner: usize,
    shape: Shape,
}

/// Whether the assumption is made over this domain: prime fields of [`SHORTEST`] bits or more, which are short enough for residues of 128 bits to be uniform.
pub(super) fn fits(kind: DomainKind) -> bool {
    matches!(kind, DomainKind::Fq(q) if q >> (SHORTEST - 1) != 0)
}

/// Which of the elements that are asked for come from these pools, and the batches that must be made before.
pub(super) fn plan<E: Element>(pools: &[Pool<E>], asked: &[Asked]) -> (Vec<Asked>, Vec<Fill>) {
    let has = |owner: usize, n: usize| pools.get(owner).is_some_and(|p| p.len() >= n + KEPT);
    let all = 0..pools.len();
    let eligible = |(owner, n): &&Asked| {
        *n >= LEAST
            || match owner {
                Some(owner) => has(*owner, *n),
                None => all.clone().all(|owner| has(owner, *n)),
            }
    };
    let chosen: Vec<Asked> = asked.iter().filter(eligible).copied().collect();
    let fills = pools.iter().enumerate().filter_map(|(owner, pool)| {
        let ours = chosen.iter().filter(|(o, _)| o.is_none_or(|o| o == owner));
        let wanted: usize = ours.map(|(_, n)| n).sum();
        let fill = |shape| Fill { owner, shape };
        (wanted > 0).then(|| shape(pool.len(), wanted + KEPT).map(fill))?
    });
    let fills = fills.collect();
    (chosen, fills)
}

impl<A: Arithmetic> Authenticated<A> {
    /// Hands out elements of the pools. No message.
    pub(super) fn take_from_pools(&mut self, asked: &[Asked]) -> Result<()> {
        for (owner, n) in asked {
            match owner {
                None => {
                    let mut share = Share::zeros(super::PARTS, *n);
                    for owner in 0..self.parties {
                        let [mut known, mut mac] = self.preprocessing.pool(owner)?.take(*n)?;
                        self.domain.add_assign(share.part_mut(0)?, &known);
                        self.domain.add_assign(share.part_mut(1)?, &mac);
                        wipe(&mut known);
                        wipe(&mut mac);
                    }
                    let parts = std::mem::take(&mut share.parts).try_into();
                    let parts = parts.map_err(|_| EngineError::uneven())?;
                    self.preprocessing.randoms.put(parts);
                }
                Some(owner) => {
                    let [known, mac] = self.preprocessing.pool(*owner)?.take(*n)?;
                    let mut x = known.clone();
                    self.add_sharing_of_zero(*owner, &mut x)?;
                    self.preprocessing.input(*owner)?.put([x, mac, known]);
                }
            }
        }
        Ok(())
    }
}

/// What a batch is made of: elements known to the owner, with MACs, of which the last ones are the noise values.
struct Begun<A: Arithmetic> {
    fill: Fill,
    base: Share<A::E>,
    /// What must be added to make them noise values. Empty where the owner is another.
    shifts: Zeroizing<Vec<A::E>>,
}

/// A task that makes batches, and puts them into the pools. It takes [`subset_sums::CHECKS`] random elements. 13 rounds, 14 among more than two parties.
pub(super) fn task<A: Arithmetic>(fills: Vec<Fill>) -> SendFn<Authenticated<A>, ()> {
    let correlated = and_then(begin(fills), |_, begun| {
        let wanted = begun.iter().map(|begun| correlate::Wanted {
            owner: Some(begun.fill.owner),
            kind: Kind::MacsAndPads,
            lanes: lanes(begun.fill.shape.blocks * begun.fill.shape.levels),
        });
        let paths = within(correlate::task(wanted.collect()), bits::<A>);
        Ok(join(shift(begun), paths, |_, begun, paths| {
            Ok((begun, paths))
        }))
    });
    let grown = and_then(correlated, |p, (begun, paths)| {
        Ok(join(
            grow(p, begun, paths)?,
            within(start_toss(), bits::<A>),
            |_, made, toss| Ok((made, toss)),
        ))
    });
    let checked = and_then(grown, |_, (made, toss): (Vec<Made<A>>, Committed)| {
        Ok(subset_sums::check(
            made,
            |made: &Vec<Made<A>>| shares::<A>(made),
            toss,
        ))
    });
    then(checked, |p: &mut Authenticated<A>, (made, _)| {
        for (owner, mut share) in made {
            let parts = std::mem::take(&mut share.parts).try_into();
            let parts = parts.map_err(|_| EngineError::uneven())?;
            p.preprocessing.pool(owner)?.put(parts);
        }
        Ok(())
    })
}

/// What batches begin with: from the pools, or made without check. One round.
fn begin<A: Arithmetic>(fills: Vec<Fill>) -> SendFn<Authenticated<A>, Vec<Begun<A>>> {
    at_start(move |p: &mut Authenticated<A>| {
        let (mut pooled, mut given) = (Vec::new(), Vec::new());
        for fill in &fills {
            let (owner, n) = (fill.owner, fill.shape.base());
            let pool = p.preprocessing.pool(owner)?;
            if pool.len() >= n {
                let parts = pool.take(n)?.into();
                pooled.push(Some(Share { parts }));
            } else {
                pooled.push(None);
                given.push(Given {
                    owner: Some(owner),
                    n,
                    values: (owner == p.me).then(|| p.draw(n)),
                });
            }
        }
        let known: Vec<_> = given
            .iter()
            .map(|given| match &given.values {
                Some(values) => Zeroizing::new(values.to_vec()),
                None => Zeroizing::new(vec![p.domain.zero(); given.n]),
            })
            .collect();
        let authenticated = authenticate(given);
        Ok(then(
            authenticated,
            move |p: &mut Authenticated<A>, mut shares| {
                // Shares of the MACs; the elements stay with their owner.
                for (share, known) in zip(&mut shares, known)? {
                    share.part_mut(0)?.copy_from_slice(&known);
                }
                let mut made = shares.into_iter();
                let mut begun = Vec::with_capacity(fills.len());
                for (fill, base) in zip(fills, pooled)? {
                    let base = base
                        .or_else(|| made.next())
                        .ok_or_else(EngineError::uneven)?;
                    let shifts = match fill.owner == p.me {
                        true => shifts(p, fill, &base)?,
                        false => Zeroizing::default(),
                    };
                    begun.push(Begun { fill, base, shifts });
                }
                Ok(begun)
            },
        ))
    })
}

/// The differences of fresh noise values, which are not zero, and the last elements of a base.
fn shifts<A: Arithmetic>(
    p: &mut Authenticated<A>,
    fill: Fill,
    base: &Share<A::E>,
) -> Result<Zeroizing<Vec<A::E>>> {
    let mut values = p.draw(fill.shape.blocks);
    // Whether an element is drawn again shows that it was zero, and is another one now.
    for value in values.iter_mut() {
        while *value == p.domain.zero() {
            let mut again = Zeroizing::new([p.domain.zero()]);
            p.domain.random(&mut p.private, again.as_mut_slice());
            [*value] = *again;
        }
    }
    let places = base.part(0)?.get(fill.shape.secret()..);
    p.domain
        .sub_assign(&mut values, places.ok_or_else(EngineError::uneven)?);
    Ok(values)
}

/// Makes the last elements noise values: their owners broadcast the differences. One round.
fn shift<A: Arithmetic>(begun: Vec<Begun<A>>) -> SendFn<Authenticated<A>, Vec<Begun<A>>> {
    Box::new(move |p, out| {
        let domain = p.domain.clone();
        let mut begun = begun;
        for batch in &begun {
            let (owner, blocks) = (batch.fill.owner, batch.fill.shape.blocks);
            if owner != p.me {
                out.expect(&domain, owner, blocks);
                continue;
            }
            for peer in p.others() {
                let sent = (p.adversary).elements(Site::Shift, Some(peer), &domain, &batch.shifts);
                out.send(&domain, peer, &sent);
            }
        }
        Ok(Box::new(move |p, inbox| {
            for batch in &mut begun {
                let (owner, shape) = (batch.fill.owner, batch.fill.shape);
                let mut shifts = match owner == p.me {
                    true => batch.shifts.clone(),
                    false => Zeroizing::new(inbox.take(&domain, owner, shape.blocks)?),
                };
                let noise = |part: &mut [A::E], shifts: &[A::E]| {
                    let noise = part.get_mut(shape.secret()..);
                    let noise = noise.ok_or_else(EngineError::uneven)?;
                    domain.add_assign(noise, shifts);
                    Ok::<_, EngineError>(())
                };
                if owner == p.me {
                    noise(batch.base.part_mut(0)?, &shifts)?;
                }
                domain.mul_scalar_assign(&mut shifts, p.key);
                noise(batch.base.part_mut(1)?, &shifts)?;
            }
            Ok(Step::Done(begun))
        }))
    })
}

/// What a batch made, and its owner.
type Made<A> = (usize, Share<<A as Domain>::E>);

fn shares<A: Arithmetic>(made: &[Made<A>]) -> Vec<&Share<A::E>> {
    made.iter().map(|(_, share)| share).collect()
}

/// The trees, without check: all outputs, by owner. One round.
fn grow<A: Arithmetic>(
    p: &mut Authenticated<A>,
    begun: Vec<Begun<A>>,
    paths: Vec<correlate::Correlated>,
) -> Result<SendFn<Authenticated<A>, Vec<Made<A>>>> {
    let domain = p.domain.clone();
    let mut messages = vec![Vec::new(); p.parties];
    let mut expected = vec![0; p.parties];
    let mut batches = Vec::with_capacity(begun.len());
    for (batch, paths) in zip(begun, paths)? {
        let shape = batch.fill.shape;
        let mut noise = Share::zeros(super::PARTS, shape.outputs());
        if batch.fill.owner == p.me {
            let bytes = trees::message_bytes(shape.blocks, shape.levels);
            for peer in p.others() {
                *correlate::of_mut(&mut expected, peer)? += bytes + domain.wire_bytes(shape.blocks);
            }
        }
        for (owner, [zeros, ones]) in paths.sent_strings(&mut p.bits, 1)? {
            let strings = [&zeros, &ones].map(|s| s.get(..shape.blocks * shape.levels));
            let [Some(zeros), Some(ones)] = strings else {
                return Err(correlate::missing(owner));
            };
            let message = correlate::of_mut(&mut messages, owner)?;
            let start = message.len();
            let mut roots = Zeroizing::new(vec![0; shape.blocks]);
            p.private.fill_u128(&mut roots);
            let grown = trees::full(&roots, shape.levels, [zeros, ones], message);
            let leaves = grown.map_err(super::values::blame(owner))?;
            let words = noise.part_mut(1)?;
            for (word, leaf) in zip(words.iter_mut(), leaves.iter())? {
                *word = domain.from_u128(*leaf);
            }
            // b' − Σ v.
            let macs = batch.base.part(1)?.get(shape.secret()..);
            let macs = macs.ok_or_else(EngineError::uneven)?;
            let mut last = Vec::with_capacity(shape.blocks);
            for (mac, block) in zip(macs, words.chunks_exact(1 << shape.levels))? {
                last.push(domain.sub(*mac, domain.sum(block)));
            }
            domain.encode(&last, message);
            p.adversary
                .change_message(Site::Trees, Some(owner), message, start);
        }
        batches.push((batch, paths, noise));
    }
    let exchanged = within(exchange(messages, expected), bits::<A>);
    Ok(then(
        exchanged,
        move |p: &mut Authenticated<A>, messages| {
            let mut rest: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
            let mut made = Vec::with_capacity(batches.len());
            for (batch, paths, mut noise) in batches {
                if batch.fill.owner == p.me {
                    noise = punctured(p, &batch, &paths, &mut rest)?;
                }
                let owner = batch.fill.owner;
                let known = owner == p.me;
                let share = encoded(&p.domain, batch.fill.shape, known, &batch.base, noise)?;
                if owner == p.me {
                    for (site, seen) in [(Site::Base, &batch.base), (Site::Pseudorandom, &share)] {
                        (p.adversary).sees_elements(site, owner, &p.domain, seen.part(0)?);
                    }
                }
                made.push((owner, share));
            }
            Ok(made)
        },
    ))
}

/// Our noise, and the shares of its MACs.
fn punctured<A: Arithmetic>(
    p: &mut Authenticated<A>,
    batch: &Begun<A>,
    paths: &correlate::Correlated,
    rest: &mut [&[u8]],
) -> Result<Share<A::E>> {
    let (shape, domain) = (batch.fill.shape, p.domain.clone());
    let count = shape.blocks * shape.levels;
    let choices = bit_words(&paths.choices, count);
    (p.adversary).sees_elements(Site::Places, p.me, &BITS, &choices);
    let mut noise = Share::zeros(super::PARTS, shape.outputs());
    let of_noise = |part: usize| {
        let noise = batch.base.part(part)?.get(shape.secret()..);
        noise.ok_or_else(EngineError::uneven)
    };
    // Of each block the place is the first entry, for now.
    for (part, values) in [(0, of_noise(0)?), (1, of_noise(1)?)] {
        let blocks = noise.part_mut(part)?.chunks_exact_mut(1 << shape.levels);
        for (block, value) in zip(blocks, values)? {
            if let Some(first) = block.first_mut() {
                *first = *value;
            }
        }
    }
    for (peer, strings) in paths.received_strings(&mut p.bits, 1)? {
        let strings = strings
            .get(..count)
            .ok_or_else(|| correlate::missing(peer))?;
        let mut take = |bytes| {
            let message = correlate::of_mut(rest, peer)?.split_off(..bytes);
            message.ok_or_else(|| correlate::missing(peer))
        };
        let trees = take(trees::message_bytes(shape.blocks, shape.levels))?;
        let blame = super::values::blame(peer);
        let leaves = trees::punctured(shape.blocks, shape.levels, &choices, strings, trees);
        let leaves = leaves.map_err(blame)?;
        let mut last = Zeroizing::new(vec![domain.zero(); shape.blocks]);
        domain
            .decode(take(domain.wire_bytes(shape.blocks))?, &mut last)
            .map_err(|e| EngineError::protocol(format!("trees from party {peer}: {e}")))?;
        let blocks = noise.part_mut(1)?.chunks_exact_mut(1 << shape.levels);
        let leaves = leaves.chunks_exact(1 << shape.levels);
        for (block, (leaves, last)) in zip(blocks, zip(leaves, last.iter())?)? {
            let mut total = *last;
            for (word, leaf) in zip(block.iter_mut(), leaves)?.skip(1) {
                let leaf = domain.from_u128(*leaf);
                total = domain.add(total, leaf);
                *word = domain.sub(*word, leaf);
            }
            if let Some(first) = block.first_mut() {
                *first = domain.add(*first, total);
            }
        }
    }
    for part in &mut noise.parts {
        to_places(part, shape.blocks, &choices)?;
    }
    Ok(noise)
}

/// Brings index x ⊕ a of each block to index x, for its place a: the side of a level that the path takes is the other one than the choice.
pub(crate) fn to_places<E: Element>(part: &mut [E], blocks: usize, choices: &[u64]) -> Result<()> {
    let length = part.len() / blocks.max(1);
    for (level, choices) in choices.chunks_exact(blocks.max(1)).enumerate() {
        let half = length >> (level + 1);
        for (block, choice) in zip(part.chunks_exact_mut(length.max(1)), choices)? {
            let mask = mask_of(u128::from(choice ^ 1));
            for pair in block.chunks_exact_mut(2 * half.max(1)) {
                let (low, high) = pair.split_at_mut(half);
                for (a, b) in zip(low, high)? {
                    let swapped = mask & (a.to_u128() ^ b.to_u128());
                    *a = E::from_u128_wrapping(a.to_u128() ^ swapped);
                    *b = E::from_u128_wrapping(b.to_u128() ^ swapped);
                }
            }
        }
    }
    Ok(())
}

/// The first `count` bits of these lanes, a word each.
fn bit_words(lanes: &[u64], count: usize) -> Zeroizing<Vec<u64>> {
    let bits = lanes
        .iter()
        .flat_map(|lane| (0..64).map(move |i| lane >> i & 1));
    Zeroizing::new(bits.take(count).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    /// Rings have samples over F_2, and over short primes values are guessed.
    #[test]
    fn the_assumption_is_made_over_long_primes_alone() {
        for kind in [
            DomainKind::Bits,
            DomainKind::Z2k(64),
            DomainKind::Z2k(112),
            DomainKind::Fq((1 << 36) - 5),
            DomainKind::Fq((1 << 39) - 7),
            DomainKind::WideFq((1 << 126) + 1),
        ] {
            assert!(!fits(kind), "{kind}");
        }
        for q in [(1 << 40) - 87, (1 << 48) - 59, (1 << 61) - 1] {
            assert!(fits(DomainKind::Fq(q)), "{q}");
        }
    }

    /// Few elements do not come from pools, unless the pools have them anyway.
    #[test]
    fn few_elements_are_not_planned() {
        let mut pools: Vec<Pool<u64>> = vec![Items::default(), Items::default()];
        let (chosen, fills) = plan(&pools, &[(None, LEAST - 1), (Some(1), LEAST)]);
        assert_eq!(chosen, [(Some(1), LEAST)]);
        assert_eq!(fills.iter().map(|f| f.owner).collect::<Vec<_>>(), [1]);
        pools[1].put([vec![0; 20_000], vec![0; 20_000]]);
        let (chosen, fills) = plan(&pools, &[(None, 128), (Some(1), 128), (Some(0), 128)]);
        assert_eq!(chosen, [(Some(1), 128)]);
        assert!(fills.is_empty());
        let (chosen, fills) = plan(&pools, &[(None, LEAST)]);
        assert_eq!(chosen, [(None, LEAST)]);
        assert_eq!(fills.iter().map(|f| f.owner).collect::<Vec<_>>(), [0]);
    }
}
