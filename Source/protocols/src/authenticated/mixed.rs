//! Random bits c that one party knows, in both domains, and their products with random elements g.
//!
//! The bits are choices of OTs with all peers, whose rows are their MACs over bits. Further strings of the same OTs carry what each
//! peer multiplies by c: its key, which makes the MACs of the elements, and its shares of g and of the MAC of g, which make c·g and its
//! MAC. So bits agree in both domains whatever their owner does, and products with their MACs are as linear as shares.
//!
//! A peer that multiplies something else makes MACs wrong where c = 1, and can repair them if it guesses c: it learns that bit, and is
//! caught with probability 1/2. Random subset sums of everything, masked, are opened, and the MAC of each is verified for itself.
//! One check of a combination of all is not enough: modulo 2^l an error of 2^(l-1) in every place passes it with probability 1/2 and
//! without a guess of every bit. What is wrong after this check was guessed, so later checks may combine. Callers put the bits in
//! buckets, at random, and use the sum modulo 2 of a bucket: what leaks is not enough then. That is the idea of the leaky
//! AND triples of Wang, Ranellucci, Katz (CCS 2017), with elements for their second operands.

use keyquorum_math::wipe;
use keyquorum_ot::extension::sliced::Kind;
use zeroize::Zeroizing;

use super::binary::{Toss, correlate, exchange, start_toss};
use super::private::Private;
use super::subset_sums::{self, CHECKS};
use super::{Arithmetic, Authenticated, bits};
use crate::adversary::Site;
use crate::error::{EngineError, Result};
use crate::lane_bits;
use crate::task::{SendFn, and_then, join, then, within};
use crate::value::{Share, same, zip};

/// Words that a peer multiplies by a bit.
const WORDS: usize = 3;
const SITES: [Site; WORDS] = [
    Site::BitsTimesKey,
    Site::BitsTimesFactor,
    Site::BitsTimesMac,
];

/// The items wanted of one party.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Who knows the bits.
    pub owner: usize,
    /// Lanes of bits, an even number.
    pub lanes: usize,
    /// How many of the bits, the first ones, are multiplied by elements.
    pub factors: usize,
    /// Who knows these elements: nobody, or one party, which costs half as much where there are two.
    pub known_to: Option<usize>,
}

impl Wanted {
    fn bits(self) -> usize {
        64 * self.lanes
    }
}

/// The items that were made.
pub(super) struct Mixed<A: Arithmetic> {
    pub bits: Private<A>,
    /// g and c·g.
    pub factors: Share<A::E>,
    pub products: Share<A::E>,
}

/// Asks for the correlated randomness that [`task`] uses.
pub(super) fn need<A: Arithmetic>(p: &mut Authenticated<A>, list: &[Wanted]) -> Result<()> {
    p.preprocessing.randoms.need(CHECKS);
    for wanted in list {
        match wanted.known_to {
            None => p.preprocessing.randoms.need(wanted.factors),
            Some(party) => p.preprocessing.input(party)?.need(wanted.factors),
        }
    }
    Ok(())
}

/// Random elements with MACs.
fn factors<A: Arithmetic>(p: &mut Authenticated<A>, wanted: &Wanted) -> Result<Share<A::E>> {
    let parts = match wanted.known_to {
        None => p.preprocessing.randoms.take(wanted.factors)?.into(),
        Some(party) => {
            let [x, mac, mut known] = p.preprocessing.input(party)?.take(wanted.factors)?;
            wipe(&mut known);
            vec![x, mac]
        }
    };
    Ok(Share { parts })
}

/// A task that makes bits, leaky as they are, and a toss of which nobody knew anything before. Eleven rounds, twelve among more
/// than two parties.
pub(super) fn task<A: Arithmetic>(
    list: Vec<Wanted>,
) -> SendFn<Authenticated<A>, (Vec<Mixed<A>>, Toss)> {
    let correlated = list.iter().map(|wanted| correlate::Wanted {
        owner: Some(wanted.owner),
        kind: Kind::MacsAndPads,
        lanes: wanted.lanes,
    });
    let correlated = within(correlate::task(correlated.collect()), bits::<A>);
    let multiplied = and_then(correlated, move |p, all| {
        let list = zip(list, all)?.collect();
        let all = multiply(p, list)?;
        Ok(join(
            all,
            within(start_toss(), bits::<A>),
            |_, all, toss| Ok((all, toss)),
        ))
    });
    and_then(multiplied, |_, (all, toss)| {
        Ok(subset_sums::check(
            all,
            |all: &Vec<Mixed<A>>| shares(all),
            toss,
        ))
    })
}

/// Everything that must have its MAC.
fn shares<A: Arithmetic>(all: &[Mixed<A>]) -> Vec<&Share<A::E>> {
    all.iter()
        .flat_map(|m| [&m.bits.elements, &m.products])
        .collect()
}

/// Multiplies, without check. One round.
fn multiply<A: Arithmetic>(
    p: &mut Authenticated<A>,
    list: Vec<(Wanted, correlate::Correlated)>,
) -> Result<SendFn<Authenticated<A>, Vec<Mixed<A>>>> {
    let domain = p.domain.clone();
    let mut messages = vec![Vec::new(); p.parties];
    let mut expected = vec![0; p.parties];
    let mut all = Vec::with_capacity(list.len());
    for (wanted, correlated) in &list {
        let (n, factors) = (wanted.bits(), wanted.factors);
        let mut mixed = Mixed {
            bits: Private {
                packed: correlated.private_share(&mut p.bits)?,
                elements: Share::zeros(super::PARTS, n),
            },
            factors: self::factors(p, wanted)?,
            products: Share::zeros(super::PARTS, factors),
        };
        if wanted.owner == p.me {
            let bytes = domain.wire_bytes(n) + (WORDS - 1) * domain.wire_bytes(factors);
            for peer in p.others() {
                *correlate::of_mut(&mut expected, peer)? += bytes;
            }
            mixed.multiply_ours(p, &correlated.choices)?;
        }
        // Factors are fewer than bits: strings beyond them are not used.
        mixed.factors.check(super::PARTS, factors)?;
        for (owner, [zeros, ones]) in correlated.sent_strings(&mut p.bits, WORDS)? {
            same(zeros.len(), WORDS * n)?;
            same(ones.len(), WORDS * n)?;
            let factor = |i| Ok::<_, EngineError>(Zeroizing::new(mixed.factors.part(i)?.to_vec()));
            let mut words = [Zeroizing::new(vec![p.key; n]), factor(0)?, factor(1)?];
            for (site, words) in SITES.into_iter().zip(&mut words) {
                p.adversary
                    .change_elements(site, Some(owner), &domain, words);
            }
            let strings = zeros
                .chunks_exact(n.max(1))
                .zip(ones.chunks_exact(n.max(1)));
            let mut ours = Vec::with_capacity(WORDS);
            for (mut sent, (zeros, ones)) in words.into_iter().zip(strings) {
                let mut kept = Zeroizing::new(Vec::with_capacity(sent.len()));
                for (word, (zero, one)) in sent.iter_mut().zip(zeros.iter().zip(ones)) {
                    let zero = domain.from_u128(*zero);
                    let difference = domain.sub(zero, domain.from_u128(*one));
                    *word = domain.add(*word, difference);
                    kept.push(domain.neg(zero));
                }
                domain.encode(&sent, correlate::of_mut(&mut messages, owner)?);
                ours.push(kept);
            }
            mixed.add(&domain, &ours)?;
        }
        all.push(mixed);
    }
    let exchanged = within(exchange(messages, expected), bits::<A>);
    Ok(then(
        exchanged,
        move |p: &mut Authenticated<A>, messages| {
            let mut rest: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
            for ((wanted, correlated), mixed) in zip(&list, &mut all)? {
                let (n, factors) = (wanted.bits(), wanted.factors);
                for (peer, strings) in correlated.received_strings(&mut p.bits, WORDS)? {
                    same(strings.len(), WORDS * n)?;
                    let choices = lane_bits(&p.domain, &correlated.choices, n)?;
                    let choices = Zeroizing::new(choices);
                    let mut ours = Vec::with_capacity(WORDS);
                    for (strings, count) in
                        strings.chunks_exact(n.max(1)).zip([n, factors, factors])
                    {
                        let message = correlate::of_mut(&mut rest, peer)?
                            .split_off(..p.domain.wire_bytes(count))
                            .ok_or_else(|| correlate::missing(peer))?;
                        let mut words = Zeroizing::new(vec![p.domain.zero(); count]);
                        p.domain.decode(message, &mut words).map_err(|e| {
                            EngineError::protocol(format!(
                                "products with bits from party {peer}: {e}"
                            ))
                        })?;
                        let choices = choices.get(..count);
                        let choices = choices.ok_or_else(|| correlate::missing(peer))?;
                        p.domain.mul_assign(&mut words, choices);
                        for (word, string) in words.iter_mut().zip(strings) {
                            *word = p.domain.add(*word, p.domain.from_u128(*string));
                        }
                        ours.push(words);
                    }
                    mixed.add(&p.domain, &ours)?;
                }
                let x = correlate::of_mut(&mut mixed.bits.elements.parts, 0)?;
                p.add_sharing_of_zero(wanted.owner, x)?;
            }
            Ok(all)
        },
    ))
}

impl<A: Arithmetic> Mixed<A> {
    /// The products of our own bits: c, c·α_i, and c times our shares of g and of its MAC.
    pub(super) fn multiply_ours(&mut self, p: &Authenticated<A>, choices: &[u64]) -> Result<()> {
        let choices = p.adversary.bits(Site::Bits, None, choices);
        let n = self.bits.elements.len();
        let bits = Zeroizing::new(lane_bits(&p.domain, &choices, n)?);
        self.bits.elements.check(super::PARTS, bits.len())?;
        self.bits.elements.part_mut(0)?.copy_from_slice(&bits);
        let mac = self.bits.elements.part_mut(1)?;
        mac.copy_from_slice(&bits);
        p.domain.mul_scalar_assign(mac, p.key);
        let bits = bits
            .get(..self.factors.len())
            .ok_or_else(EngineError::uneven)?;
        self.products.combine(&self.factors, |product, factor| {
            p.domain.mul_acc(product, bits, factor);
        })
    }

    /// Adds shares of c times a key, of c·g, and of its MAC.
    fn add(&mut self, domain: &A, shares: &[Zeroizing<Vec<A::E>>]) -> Result<()> {
        let [key, factor, mac] = shares else {
            return Err(EngineError::uneven());
        };
        same(self.bits.elements.len(), key.len())?;
        domain.add_assign(self.bits.elements.part_mut(1)?, key);
        for (part, shares) in [factor, mac].into_iter().enumerate() {
            let to = self.products.part_mut(part)?;
            same(to.len(), shares.len())?;
            domain.add_assign(to, shares);
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use keyquorum_math::Z2k128;

    use super::*;
    use crate::authenticated::{PARTS, binary};

    /// Products that are left out would be zeros: the sharing of another value.
    #[test]
    fn missing_parts_blocked_products_that_are_missing() {
        let ring = Z2k128::new(112).unwrap();
        let mut mixed = Mixed::<Z2k128> {
            bits: Private {
                packed: Share::zeros(binary::PARTS, 1),
                elements: Share::zeros(PARTS, 64),
            },
            factors: Share::zeros(PARTS, 8),
            products: Share::zeros(PARTS, 8),
        };
        let vector = |n: usize| Zeroizing::new(vec![1u128; n]);
        for lengths in [
            &[64, 8][..],
            &[64, 8, 8, 8],
            &[63, 8, 8],
            &[64, 7, 8],
            &[64, 8, 9],
        ] {
            let shares: Vec<_> = lengths.iter().map(|n| vector(*n)).collect();
            let added = mixed.add(&ring, &shares);
            assert!(
                matches!(added, Err(EngineError::Internal(_))),
                "{lengths:?}"
            );
        }
        mixed.products = Share::zeros(PARTS, 8);
        mixed
            .add(&ring, &[vector(64), vector(8), vector(8)])
            .unwrap();
        assert_eq!(mixed.products.parts, [[1; 8]; 2]);
    }
}
