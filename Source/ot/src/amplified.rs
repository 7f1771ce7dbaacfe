//! Gilboa's products by a random word b of the receiver, private also against a sender that cheats, and b with its MAC.
//!
//! The sender multiplies three words by every choice bit: its share of the MAC key α, its share of an element a, and its share of the MAC
//! of a. So the same choices give the parties shares of b·α, which is the MAC of b, of b·a, and of the MAC of b·a: a receiver cannot
//! multiply by one word and authenticate another.
//!
//! A sender that gives other words to some positions makes the results wrong by a function of the choice bits there; whether a later
//! check fails then tells something about these. So b also contains E bits γ_e that all items of a batch have in common, with public factors
//! g_e of every item that are tossed AFTER what the sender gave has passed its check: b = β + Σ g_e·γ_e, where β is uniform and given
//! by its bits. The map from all β and γ to all b is universal (other γ collide for one choice of g), so if the check tells what has a
//! probability of 2^-ℓ, the words of a batch together are uniform within 2^-((E − ℓ)/2 + 1) by the leftover hash lemma, and exactly
//! so if ℓ = 0. Modulo 2^l bits of β are uniform, a check tells ℓ = 0 or ℓ ≥ 1, and an adversary gains at most 2^-((E + ℓ)/2 + 1) for ℓ ≥ 1.
//! Over F_q the top bits of β are biased: for q just above a power of two the highest is 1 with a small probability ε, and a bet that it is 0
//! passes with 1 − ε. Such a bet tells as little as it risks: the χ² distance that it leaves is below ε·2^-E a batch, and some 1/ε batches come
//! before it is noticed, together as one bet on a uniform bit within a small factor. The worst is a bit that is 1 with probability 1/3: all bets
//! of a life together gain below 2.5·2^-(E/2 + 1), that is 2^-41.7. The idea is that of MASCOT's vector triples (Keller, Orsini,
//! Scholl, CCS 2016, section 4.1) and of the encoded multiplication of Doerner, Kondi, Lee, shelat (IEEE S&P 2018, section VI), with
//! extra bits that a whole batch shares: their OTs are as good as free, and their strings are stretched to a word an item.
//!
//! Modulo 2^l the payload of bit j counts modulo 2^(l − j) only.

use keyquorum_math::{Domain, DomainKind, Element, Prg};
use zeroize::{Zeroize, Zeroizing};

use crate::aes::Key;
use crate::extension::{MAX_BLOCKS, Receiver, ReceiverBatch, Row, Sender, SenderBatch};
use crate::product::{pack_words, unpack_words, wide_bytes};
use crate::transpose::transpose;
use crate::{KAPPA, OtError, check_length, check_same, uneven};

/// What is multiplied by a choice bit: a share of the key, of an element, and of its MAC.
const FACTORS: usize = 3;
/// Component vectors of what comes out: shares of a value and of its MAC.
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
    fn place(&self, block: usize) -> (usize, usize) {
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

/// What the receiver chooses for a batch.
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

/// What a party multiplies by choice bits, its own and those of its peers.
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
    /// Nothing yet.
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

    /// What comes out, with the products of our own choices.
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
        let bit = |e: usize| (gamma >> e & 1).wrapping_neg() & one;
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

/// Doubles the sums and adds, as bits come highest first.
fn absorb<D: Domain>(domain: &D, sums: &mut [D::E], shares: &[D::E]) -> Result<(), OtError> {
    check_same(sums.len(), shares.len())?;
    for (sum, share) in sums.iter_mut().zip(shares) {
        *sum = domain.add(domain.add(*sum, *sum), *share);
    }
    Ok(())
}

/// The items of a block.
fn block_of<E>(values: &[E], items: usize) -> Result<&[E], OtError> {
    values
        .get(items * BLOCK..(items + 1) * BLOCK)
        .ok_or_else(uneven)
}

/// The same, to be changed.
fn block_of_mut<E>(values: &mut [E], items: usize) -> Result<&mut [E], OtError> {
    values
        .get_mut(items * BLOCK..(items + 1) * BLOCK)
        .ok_or_else(uneven)
}

/// The sender's end, after the check of the batch: appends the payload for its factors, and adds our shares to `partial`.
///
/// # Errors
/// [`OtError::Usage`] if there are not as many factors as items.
pub fn send<D: Domain>(
    ot: &Sender,
    batch: &SenderBatch,
    shape: &Shape<D>,
    factors: &Factors<'_, D::E>,
    out: &mut Vec<u8>,
    partial: &mut Partial<D::E>,
) -> Result<(), OtError> {
    let Factors { key, a, mac } = *factors;
    if a.len() != shape.items || mac.len() != shape.items {
        return Err(OtError::Usage(format!(
            "{} words for {} products",
            a.len(),
            shape.items
        )));
    }
    partial.check(shape)?;
    let domain = &shape.domain;
    let count = shape.choice_words();
    let mut sums: [_; FACTORS] =
        std::array::from_fn(|_| Zeroizing::new(vec![domain.zero(); shape.items]));
    let mut zeros = Zeroizing::new(vec![0u128; FACTORS * BLOCK * MAX_BLOCKS]);
    let mut ones = Zeroizing::new(vec![0u128; FACTORS * BLOCK * MAX_BLOCKS]);
    let mut shares = Zeroizing::new(vec![domain.zero(); BLOCK]);
    let mut words = vec![domain.zero(); BLOCK.max(shape.items)];
    let keys = Zeroizing::new([key; BLOCK]);
    // What is sent and kept for one word and its two strings.
    let encode = |zero: u128, one: u128, a: D::E| {
        let zero = domain.from_u128(zero);
        let difference = domain.sub(zero, domain.from_u128(one));
        (domain.add(difference, a), domain.neg(zero))
    };
    out.reserve(shape.payload_bytes());
    for tile in 0..count.div_ceil(MAX_BLOCKS) {
        let first = tile * MAX_BLOCKS;
        let columns = BLOCK * (count - first).min(MAX_BLOCKS);
        let zeros = zeros.get_mut(..FACTORS * columns).ok_or_else(uneven)?;
        let ones = ones.get_mut(..FACTORS * columns).ok_or_else(uneven)?;
        ot.batch_words(batch, tile, FACTORS, zeros, ones)?;
        for (place, block) in (first..first + columns / BLOCK).enumerate() {
            let strings = |factor: usize| {
                let begin = factor * columns + place * BLOCK;
                let zeros = zeros.get(begin..begin + BLOCK).ok_or_else(uneven)?;
                let ones = ones.get(begin..begin + BLOCK).ok_or_else(uneven)?;
                Ok::<_, OtError>((zeros, ones))
            };
            if block == shape.word_blocks() {
                let (zeros, ones) = strings(0)?;
                let each = partial.keys.iter_mut().zip(zeros.iter().zip(ones));
                let mut sent = Vec::with_capacity(EXTRA);
                for (sum, (zero, one)) in each {
                    let (word, share) = encode(*zero, *one, key);
                    sent.push(word);
                    *sum = domain.add(*sum, share);
                }
                pack_words(&sent, domain.bits(), out);
                for (factor, (values, sums)) in
                    [a, mac].into_iter().zip(&mut partial.extra).enumerate()
                {
                    let (zeros, ones) = strings(1 + factor)?;
                    let strings = zeros.iter().zip(ones);
                    for ((zero, one), sums) in strings.zip(sums.chunks_mut(shape.items)) {
                        let streams = stretch(*zero, shape.items);
                        let others = stretch(*one, shape.items);
                        let each = words.iter_mut().zip(sums).zip(values);
                        for (((word, sum), value), (zero, one)) in
                            each.zip(streams.iter().zip(others.iter()))
                        {
                            let share;
                            (*word, share) = encode(*zero, *one, *value);
                            *sum = domain.add(*sum, share);
                        }
                        let words = words.get(..shape.items).ok_or_else(uneven)?;
                        words
                            .chunks(BLOCK)
                            .for_each(|words| pack_words(words, domain.bits(), out));
                    }
                }
                continue;
            }
            let (j, items) = shape.place(block);
            let width = shape.width(j);
            let low = u128::MAX >> (128 - width);
            let values = [keys.as_slice(), block_of(a, items)?, block_of(mac, items)?];
            for (factor, (values, sums)) in values.into_iter().zip(&mut sums).enumerate() {
                let (zeros, ones) = strings(factor)?;
                let each = words.iter_mut().zip(shares.iter_mut()).zip(values);
                for (((word, share), value), (zero, one)) in each.zip(zeros.iter().zip(ones)) {
                    let sent;
                    (sent, *share) = encode(*zero, *one, *value);
                    *word = D::E::from_u128_wrapping(sent.to_u128() & low);
                }
                pack_words(words.get(..BLOCK).ok_or_else(uneven)?, width, out);
                absorb(domain, block_of_mut(sums, items)?, &shares)?;
            }
        }
    }
    for (words, sums) in partial.words.iter_mut().zip(&sums) {
        domain.add_assign(words, sums);
    }
    Ok(())
}

/// A word of a string for every item.
fn stretch(string: u128, items: usize) -> Zeroizing<Vec<u128>> {
    let mut words = Zeroizing::new(vec![0; items]);
    Key::new(&string.to_le_bytes()).stream(0, 0, &mut words);
    words
}

/// The receiver's end: adds our shares to `partial`.
///
/// # Errors
/// [`OtError::Length`]; [`OtError::Message`] for a word that is no element.
pub fn receive<D: Domain>(
    ot: &Receiver,
    batch: &ReceiverBatch,
    shape: &Shape<D>,
    choices: &[u128],
    message: &[u8],
    partial: &mut Partial<D::E>,
) -> Result<(), OtError> {
    check_length("payloads of products", message, shape.payload_bytes())?;
    partial.check(shape)?;
    let domain = &shape.domain;
    let count = shape.choice_words();
    check_same(choices.len(), count)?;
    let mut sums: [_; FACTORS] =
        std::array::from_fn(|_| Zeroizing::new(vec![domain.zero(); shape.items]));
    let mut strings = Zeroizing::new(vec![0u128; FACTORS * BLOCK * MAX_BLOCKS]);
    let mut shares = Zeroizing::new(vec![domain.zero(); BLOCK]);
    let mut words = vec![domain.zero(); BLOCK.max(shape.items)];
    let mut rest = message;
    let mut take = |width: u32, words: &mut [D::E]| {
        let now = rest.split_at_checked(wide_bytes(words.len(), width));
        let (now, later) = now.ok_or_else(uneven)?;
        rest = later;
        unpack_words(now, width, words)
    };
    let mut valid = true;
    // Our share, for the word received, the string that we have, and a mask for our choice.
    let mut decode = |word: D::E, string: u128, mask: u128| {
        let word = word.to_u128();
        valid &= domain.from_u128(word).to_u128() == word;
        let chosen = D::E::from_u128_wrapping(word & mask);
        domain.add(domain.from_u128(string), chosen)
    };
    for tile in 0..count.div_ceil(MAX_BLOCKS) {
        let first = tile * MAX_BLOCKS;
        let columns = BLOCK * (count - first).min(MAX_BLOCKS);
        let all = strings.get_mut(..FACTORS * columns).ok_or_else(uneven)?;
        ot.batch_words(batch, tile, FACTORS, all)?;
        for (place, block) in (first..first + columns / BLOCK).enumerate() {
            let strings = |factor: usize| {
                let begin = factor * columns + place * BLOCK;
                all.get(begin..begin + BLOCK).ok_or_else(uneven)
            };
            let choice = *choices.get(block).ok_or_else(uneven)?;
            let mask = |i: usize| (choice >> i & 1).wrapping_neg();
            if block == shape.word_blocks() {
                let words_of_keys = words.get_mut(..EXTRA).ok_or_else(uneven)?;
                take(domain.bits(), words_of_keys)?;
                let each = partial.keys.iter_mut().zip(words_of_keys).zip(strings(0)?);
                for (e, ((sum, word), string)) in each.enumerate() {
                    *sum = domain.add(*sum, decode(*word, *string, mask(e)));
                }
                for (factor, sums) in partial.extra.iter_mut().enumerate() {
                    let each = sums.chunks_mut(shape.items).zip(strings(1 + factor)?);
                    for (e, (sums, string)) in each.enumerate() {
                        let words = words.get_mut(..shape.items).ok_or_else(uneven)?;
                        for words in words.chunks_mut(BLOCK) {
                            take(domain.bits(), words)?;
                        }
                        let stream = stretch(*string, shape.items);
                        for ((sum, word), string) in sums.iter_mut().zip(words).zip(stream.iter()) {
                            *sum = domain.add(*sum, decode(*word, *string, mask(e)));
                        }
                    }
                }
                continue;
            }
            let (j, items) = shape.place(block);
            for (factor, sums) in sums.iter_mut().enumerate() {
                let words = words.get_mut(..BLOCK).ok_or_else(uneven)?;
                take(shape.width(j), words)?;
                let each = shares.iter_mut().zip(words).zip(strings(factor)?);
                for (i, ((share, word), string)) in each.enumerate() {
                    *share = decode(*word, *string, mask(i));
                }
                absorb(domain, block_of_mut(sums, items)?, &shares)?;
            }
        }
    }
    for (words, sums) in partial.words.iter_mut().zip(&sums) {
        domain.add_assign(words, sums);
    }
    if valid {
        Ok(())
    } else {
        Err(OtError::Message(
            "a payload of products is no element of the field",
        ))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use keyquorum_math::{Z2k128, Zq};

    use super::*;
    use crate::{Inbound, LinkKey, Outbound, Parameters, Security};
    use std::sync::Arc;

    fn products<D: Domain>(domain: D, items: usize) {
        let parameters = Parameters::default();
        let (inbound, point) = Inbound::start(parameters).unwrap();
        let (outbound, points) =
            Outbound::start(parameters, b"test", LinkKey::random(None).unwrap()).unwrap();
        let (receiver, prfs) = inbound.finish(b"test", &points).unwrap();
        let sender = outbound.finish(b"test", &point, &prfs).unwrap();
        let mut receiver = Receiver::new(Arc::new(receiver), 1, Security::Malicious);
        let mut sender = Sender::new(Arc::new(sender), 1, Security::Malicious);
        let shape = Shape { domain, items };
        let domain = &shape.domain;
        let mut prg = Prg::new([9; 16], 0);
        let operands = Operands::draw(&shape, &mut prg).unwrap();
        let mut message = Vec::new();
        let ours = receiver
            .batch_masked(&operands.choices, 77, &mut message)
            .unwrap();
        let theirs = sender.batch(shape.choice_words(), &message).unwrap();
        sender
            .verify(&theirs, &[1; 16], &ours.prove(&[1; 16]).unwrap())
            .unwrap();
        let mut draw = || {
            let mut all = vec![domain.zero(); items];
            domain.random(&mut prg, &mut all);
            all
        };
        let (a, mac) = (draw(), draw());
        let key = domain.from_u128(0x1234_5678_9abc);
        let factors = Factors {
            key,
            a: &a,
            mac: &mac,
        };
        let (mut payload, mut sent) = (Vec::new(), Partial::new(&shape));
        send(&sender, &theirs, &shape, &factors, &mut payload, &mut sent).unwrap();
        assert_eq!(payload.len(), shape.payload_bytes());
        let (choices, mut received) = (&operands.choices, Partial::new(&shape));
        receive(&receiver, &ours, &shape, choices, &payload, &mut received).unwrap();
        // The sender has no words, the receiver no factors of its own.
        let zeros = vec![domain.zero(); items];
        let nothing = Operands {
            word: Zeroizing::new(zeros.clone()),
            choices: Zeroizing::new(vec![0; shape.choice_words()]),
        };
        let none = Factors {
            key: domain.zero(),
            a: &zeros,
            mac: &zeros,
        };
        let stream = || Prg::new([5; 16], 1);
        let sent = sent.finish(&shape, &nothing, &factors).unwrap();
        let received = received.finish(&shape, &operands, &none).unwrap();
        let [empty, [cs, ms]] = sent.combine(&shape, &mut stream()).unwrap();
        let [[b, kr], [cr, mr]] = received.combine(&shape, &mut stream()).unwrap();
        assert_eq!(empty[0], zeros);
        assert_ne!(b, *operands.word, "extra bits count");
        for i in 0..items {
            let is = |x: D::E, y: D::E, product: D::E| {
                assert_eq!(domain.add(x, y).to_u128(), product.to_u128());
            };
            is(empty[1][i], kr[i], domain.mul(b[i], key));
            is(cs[i], cr[i], domain.mul(b[i], a[i]));
            is(ms[i], mr[i], domain.mul(b[i], mac[i]));
        }
        let mut again = Partial::new(&shape);
        assert!(receive(&receiver, &ours, &shape, choices, &payload[1..], &mut again).is_err());
        let short = Factors {
            key,
            a: &a[1..],
            mac: &mac,
        };
        assert!(send(&sender, &theirs, &shape, &short, &mut payload, &mut again).is_err());
        // Sums of a batch of another size would get only a part of the shares, in other places.
        let other = Shape {
            domain: shape.domain.clone(),
            items: items + BLOCK,
        };
        let mut again = Partial::new(&other);
        let sent = send(&sender, &theirs, &shape, &factors, &mut payload, &mut again);
        assert!(matches!(sent, Err(OtError::Internal(_))));
        let read = &message_of(&payload, shape.payload_bytes());
        let received = receive(&receiver, &ours, &shape, choices, read, &mut again);
        assert!(matches!(received, Err(OtError::Internal(_))));
        let finished = again.finish(&shape, &operands, &factors).map(drop);
        assert!(matches!(finished, Err(OtError::Internal(_))));
        let products = Partial::new(&other);
        let empty = Operands {
            word: Zeroizing::new(vec![other.domain.zero(); other.items]),
            choices: Zeroizing::new(vec![0; other.choice_words()]),
        };
        let zeros = vec![other.domain.zero(); other.items];
        let none = Factors {
            key,
            a: &zeros,
            mac: &zeros,
        };
        let products = products.finish(&other, &empty, &none).unwrap();
        let combined = products.combine(&shape, &mut stream()).map(drop);
        assert!(matches!(combined, Err(OtError::Internal(_))));
    }

    /// The first bytes, which are one payload.
    fn message_of(all: &[u8], bytes: usize) -> Vec<u8> {
        all.iter().copied().take(bytes).collect()
    }

    #[test]
    fn shares_add_up_to_words_with_macs_and_products() {
        products(Z2k128::new(112).unwrap(), 128);
        products(Z2k128::new(112).unwrap(), 1152);
        products(Zq::new((1 << 60) - 93).unwrap(), 1024);
        products(Zq::new((1 << 41) - 21).unwrap(), 128);
    }
}
