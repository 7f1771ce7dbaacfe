//! Gilboa's products by a random word b of the receiver, and the MAC of b. They are private also against a malicious sender.
//!
//! The sender multiplies three words by every choice bit: its share of the MAC key α, its share of an element a, and its share of the MAC
//! of a. So the same choices give the parties shares of b·α, which is the MAC of b, of b·a, and of the MAC of b·a. A receiver cannot
//! multiply by one word and authenticate another.
//!
//! A sender that uses other words at some positions makes the results wrong by a function of the choice bits there. Whether a later
//! check fails then reveals something about these bits. So b also contains E bits γ_e that all items of a batch have in common. Their public
//! factors g_e, new ones for every item, are tossed AFTER the sender's payload has passed its check: b = β + Σ g_e·γ_e, where β is uniform and given
//! by its bits. The map from all β and γ to all b is universal (other γ collide for one choice of g). So if the check reveals an event of
//! probability 2^-ℓ, the words of a batch together are uniform within 2^-((E − ℓ)/2 + 1) by the leftover hash lemma, and exactly
//! so if ℓ = 0.
//!
//! Modulo 2^l the bits of β are uniform: a check reveals ℓ = 0 or ℓ ≥ 1, and an adversary gains at most 2^-((E + ℓ)/2 + 1) for ℓ ≥ 1.
//! Over F_q the top bits of β are biased: for q just above a power of two the highest is 1 with a small probability ε, and a bet that it is 0
//! passes with 1 − ε. Such a bet reveals as little as it risks: the χ² distance that it leaves is below ε·2^-E a batch, and some 1/ε batches come
//! before it is noticed, together as one bet on a uniform bit within a small factor. The worst is a bit that is 1 with probability 1/3: all bets
//! of a life together gain below 2.5·2^-(E/2 + 1), that is 2^-41.7. The idea is that of MASCOT's vector triples (Keller, Orsini,
//! Scholl, CCS 2016, section 4.1) and of the encoded multiplication of Doerner, Kondi, Lee, shelat (IEEE S&P 2018, section VI), with
//! extra bits that a whole batch shares: their OTs cost almost nothing, and each of their strings is expanded to a word an item.
//!
//! Modulo 2^l the payload of bit j counts modulo 2^(l − j) only.

mod transfer;

#[cfg(test)]
mod tests;

use keyquorum_math::{Domain, DomainKind, Element, Prg, mask_of};
use zeroize::{Zeroize, Zeroizing};

use crate::packed::wide_bytes;
use crate::tile::{MAX_BLOCKS, Row};
use crate::transpose::transpose;
use crate::{KAPPA, OtError, check_same, uneven};

pub use transfer::{receive, send};

/// Words that are multiplied by a choice bit: a share of the key, of an element, and of its MAC.
const FACTORS: usize = 3;
/// Component vectors of a result: shares of a value and of its MAC.
const PARTS: usize = 2;
/// OTs of a block.
const BLOCK: usize = 128;
/// Bits that the items of a batch have in common.
pub const EXTRA: usize = 84;

/// Products of one batch.
#[derive(Clone, Debug)]
pub struct Shape<D: Domain> {
    /// The ring or field.
    pub domain: D,
    /// Items, a multiple of 128.
    pub items: usize,
}

impl<D: Domain> Shape<D> {
    fn bits(&self) -> usize {
        self.domain.bits() as usize
    }

    fn blocks(&self) -> usize {
        self.items / BLOCK
    }

    /// Blocks of OTs of the words; the extra bits' block comes after them.
    fn word_blocks(&self) -> usize {
        self.bits() * self.blocks()
    }

    /// Words of 128 choice bits of a batch.
    pub fn choice_words(&self) -> usize {
        self.word_blocks() + 1
    }

    /// Bit (highest first) and block of items to which a block of OTs belongs.
    fn position(&self, block: usize) -> (usize, usize) {
        (
            self.bits() - 1 - block / self.blocks(),
            block % self.blocks(),
        )
    }

    fn width(&self, j: usize) -> u32 {
        match self.domain.kind() {
            DomainKind::Z2k(bits) => bits - j as u32,
            _ => self.domain.bits(),
        }
    }

    /// Bytes of the payload of the words' bits, which come first.
    pub fn word_bytes(&self) -> usize {
        let widths: usize = (0..self.bits()).map(|j| self.width(j) as usize).sum();
        self.items / 8 * FACTORS * widths
    }

    /// Bytes of the payload.
    pub fn payload_bytes(&self) -> usize {
        let keys = wide_bytes(EXTRA, self.domain.bits());
        let extra = EXTRA * (FACTORS - 1) * self.items / 8 * self.bits();
        self.word_bytes() + keys + extra
    }
}

/// The receiver's random words for a batch.
pub struct Operands<E: Element> {
    /// β.
    word: Zeroizing<Vec<E>>,
    /// Bits of β, highest first, a word for 128 items; then γ.
    pub choices: Zeroizing<Vec<u128>>,
}

impl<E: Element> Operands<E> {
    /// Uniform ones.
    ///
    /// # Errors
    /// [`OtError::Internal`] if the items are no multiple of 128.
    pub fn draw<D: Domain<E = E>>(shape: &Shape<D>, prg: &mut Prg) -> Result<Self, OtError> {
        check_same(shape.items, BLOCK * shape.blocks())?;
        let mut choices = Zeroizing::new(vec![0; shape.choice_words()]);
        let mut word = Zeroizing::new(vec![shape.domain.zero(); shape.items]);
        shape.domain.random(prg, &mut word);
        let (extra, bits) = choices.split_last_mut().ok_or_else(uneven)?;
        digits(shape, &word, bits)?;
        prg.fill_u128(std::slice::from_mut(extra));
        Ok(Self { word, choices })
    }

    /// γ, packed.
    fn extra(&self) -> Result<u128, OtError> {
        self.choices.last().copied().ok_or_else(uneven)
    }
}

/// Bits of words, highest first, each packed 128 a choice word.
fn digits<D: Domain>(
    shape: &Shape<D>,
    words: &[D::E],
    choices: &mut [u128],
) -> Result<(), OtError> {
    let blocks = shape.blocks();
    let mut rows = Box::new([Row::default(); KAPPA]);
    let mut columns = Zeroizing::new([0u128; BLOCK * MAX_BLOCKS]);
    for (group, words) in words.chunks(BLOCK * MAX_BLOCKS).enumerate() {
        for (block, words) in words.chunks(BLOCK).enumerate() {
            for (row, word) in rows.iter_mut().zip(words) {
                *row.get_mut(block).ok_or_else(uneven)? = word.to_u128();
            }
        }
        let columns = columns.get_mut(..words.len()).ok_or_else(uneven)?;
        transpose(&rows, columns)?;
        for (block, columns) in columns.chunks(BLOCK).enumerate() {
            let bits = columns.get(..shape.bits()).ok_or_else(uneven)?;
            for (position, bit) in bits.iter().rev().enumerate() {
                let index = position * blocks + group * MAX_BLOCKS + block;
                *choices.get_mut(index).ok_or_else(uneven)? = *bit;
            }
        }
    }
    rows.as_flattened_mut().zeroize();
    Ok(())
}

/// The words that a party multiplies by choice bits, its own and those of its peers.
pub struct Factors<'a, E> {
    /// Its share of the key of MACs.
    pub key: E,
    /// Its shares of a.
    pub a: &'a [E],
    /// Its shares of the MACs of a.
    pub mac: &'a [E],
}

/// Sums of a party's shares of products, over all parties' choices.
pub struct Partial<E: Element> {
    /// β times key, a and MAC.
    words: [Zeroizing<Vec<E>>; FACTORS],
    /// γ times the key.
    keys: Zeroizing<Vec<E>>,
    /// γ times a and MAC, bit after bit.
    extra: [Zeroizing<Vec<E>>; FACTORS - 1],
}

/// A party's shares of β, of the bits γ, and of their products with a; each with its share of the MACs. They must be checked before
/// [`Products::combine`].
pub struct Products<E: Element> {
    /// β.
    pub word: [Vec<E>; PARTS],
    /// β·a.
    pub product: [Vec<E>; PARTS],
    /// γ.
    pub extra: [Vec<E>; PARTS],
    /// γ·a, bit after bit.
    pub extra_product: [Vec<E>; PARTS],
}

impl<E: Element> Drop for Products<E> {
    fn drop(&mut self) {
        let all = [
            &mut self.word,
            &mut self.product,
            &mut self.extra,
            &mut self.extra_product,
        ];
        all.into_iter()
            .flatten()
            .for_each(|part| part.iter_mut().zeroize());
    }
}

impl<E: Element> Partial<E> {
    /// Sums of zero.
    pub fn new<D: Domain<E = E>>(shape: &Shape<D>) -> Self {
        let zeros = |n: usize| Zeroizing::new(vec![E::default(); n]);
        Self {
            words: std::array::from_fn(|_| zeros(shape.items)),
            keys: zeros(EXTRA),
            extra: std::array::from_fn(|_| zeros(EXTRA * shape.items)),
        }
    }

    /// Fails unless these are sums for a batch of this shape.
    fn check<D: Domain<E = E>>(&self, shape: &Shape<D>) -> Result<(), OtError> {
        for words in &self.words {
            check_same(words.len(), shape.items)?;
        }
        check_same(self.keys.len(), EXTRA)?;
        for extra in &self.extra {
            check_same(extra.len(), EXTRA * shape.items)?;
        }
        Ok(())
    }

    /// The results, with the products of our own choices added.
    ///
    /// # Errors
    /// [`OtError::Internal`] for factors of other sizes.
    pub fn finish<D: Domain<E = E>>(
        self,
        shape: &Shape<D>,
        operands: &Operands<E>,
        factors: &Factors<'_, E>,
    ) -> Result<Products<E>, OtError> {
        self.check(shape)?;
        check_same(factors.a.len(), shape.items)?;
        check_same(factors.mac.len(), shape.items)?;
        check_same(operands.word.len(), shape.items)?;
        let domain = &shape.domain;
        let Self {
            words: [mut key, mut value, mut mac],
            mut keys,
            extra: [mut values, mut macs],
        } = self;
        let mut term = Zeroizing::new(operands.word.to_vec());
        domain.mul_scalar_assign(&mut term, factors.key);
        domain.add_assign(&mut key, &term);
        for (sum, factor) in [(&mut value, factors.a), (&mut mac, factors.mac)] {
            term.copy_from_slice(&operands.word);
            domain.mul_assign(&mut term, factor);
            domain.add_assign(sum, &term);
        }
        let gamma = operands.extra()?;
        let one = domain.one().to_u128();
        let bit = |e: usize| mask_of(gamma >> e) & one;
        let bits: Vec<E> = (0..EXTRA).map(|e| E::from_u128_wrapping(bit(e))).collect();
        term.clear();
        term.extend_from_slice(&bits);
        domain.mul_scalar_assign(&mut term, factors.key);
        domain.add_assign(&mut keys, &term);
        for (sums, factor) in [(&mut values, factors.a), (&mut macs, factors.mac)] {
            for (sums, bit) in sums.chunks_mut(shape.items.max(1)).zip(&bits) {
                term.clear();
                term.extend_from_slice(factor);
                domain.mul_scalar_assign(&mut term, *bit);
                domain.add_assign(sums, &term);
            }
        }
        let take = |vector: &mut Zeroizing<Vec<E>>| std::mem::take(&mut **vector);
        Ok(Products {
            word: [operands.word.to_vec(), take(&mut key)],
            product: [take(&mut value), take(&mut mac)],
            extra: [bits, take(&mut keys)],
            extra_product: [take(&mut values), take(&mut macs)],
        })
    }
}

impl<E: Element> Products<E> {
    /// Shares of b = β + Σ g_e·γ_e and of b·a, with their MACs; `factors` makes the g_e, the same at all parties.
    ///
    /// # Errors
    /// [`OtError::Internal`] for vectors of other sizes.
    pub fn combine<D: Domain<E = E>>(
        mut self,
        shape: &Shape<D>,
        factors: &mut Prg,
    ) -> Result<[[Vec<E>; PARTS]; 2], OtError> {
        for part in self.word.iter().chain(&self.product) {
            check_same(part.len(), shape.items)?;
        }
        let domain = &shape.domain;
        let mut b = std::mem::take(&mut self.word);
        let mut c = std::mem::take(&mut self.product);
        let mut factor = vec![domain.zero(); shape.items];
        let mut term = Zeroizing::new(vec![domain.zero(); shape.items]);
        for e in 0..EXTRA {
            domain.random(factors, &mut factor);
            for (b, bits) in b.iter_mut().zip(&self.extra) {
                term.copy_from_slice(&factor);
                domain.mul_scalar_assign(&mut term, *bits.get(e).ok_or_else(uneven)?);
                domain.add_assign(b, &term);
            }
            for (c, products) in c.iter_mut().zip(&self.extra_product) {
                let products = products.get(e * shape.items..(e + 1) * shape.items);
                domain.mul_acc(c, products.ok_or_else(uneven)?, &factor);
            }
        }
        Ok([b, c])
    }
}
