//! The two ends of the OTs of a batch: the sender's payload, and each end's shares of the products.

use std::ops::Range;

use keyquorum_math::{Domain, Element, mask_of};
use zeroize::Zeroizing;

use super::{BLOCK, EXTRA, FACTORS, Factors, Partial, Shape};
use crate::aes::Key;
use crate::extension::{Receiver, ReceiverBatch, Sender, SenderBatch};
use crate::packed::{pack_words, unpack_words, wide_bytes};
use crate::tile::MAX_BLOCKS;
use crate::{OtError, check_length, check_same, uneven};

/// Sums of shares for every factor and item, bit after bit.
type Sums<E> = [Zeroizing<Vec<E>>; FACTORS];

fn zero_sums<D: Domain>(shape: &Shape<D>) -> Sums<D::E> {
    std::array::from_fn(|_| Zeroizing::new(vec![shape.domain.zero(); shape.items]))
}

/// The tiles of a batch of `count` blocks, with their blocks.
fn tiles(count: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
    (0..count.div_ceil(MAX_BLOCKS)).map(move |tile| {
        let first = tile * MAX_BLOCKS;
        (tile, first..count.min(first + MAX_BLOCKS))
    })
}

/// The strings of a factor, from the words of all strings of a tile; `index` is that of the block in its tile.
fn strings_of(all: &[u128], factor: usize, index: usize) -> Result<&[u128], OtError> {
    let first = factor * (all.len() / FACTORS) + index * BLOCK;
    all.get(first..first + BLOCK).ok_or_else(uneven)
}

/// Doubles the sums and adds, as bits come highest first.
fn absorb<D: Domain>(domain: &D, sums: &mut [D::E], shares: &[D::E]) -> Result<(), OtError> {
    check_same(sums.len(), shares.len())?;
    for (sum, share) in sums.iter_mut().zip(shares) {
        *sum = domain.add(domain.add(*sum, *sum), *share);
    }
    Ok(())
}

/// The range of a block of items.
fn range_of(items: usize) -> Range<usize> {
    items * BLOCK..(items + 1) * BLOCK
}

/// A word of a string for every item.
fn stretch(string: u128, items: usize) -> Zeroizing<Vec<u128>> {
    let mut words = Zeroizing::new(vec![0; items]);
    Key::new(&string.to_le_bytes()).stream(0, 0, &mut words);
    words
}

/// The word that is sent for a factor and its two strings, and the sender's share.
#[inline(always)]
fn encode<D: Domain>(domain: &D, zero: u128, one: u128, factor: D::E) -> (D::E, D::E) {
    let zero = domain.from_u128(zero);
    let difference = domain.sub(zero, domain.from_u128(one));
    (domain.add(difference, factor), domain.neg(zero))
}

/// The sender's end, block after block.
struct Encoder<'a, D: Domain> {
    shape: &'a Shape<D>,
    /// The MAC key, once for every OT of a block.
    keys: Zeroizing<[D::E; BLOCK]>,
    factors: &'a Factors<'a, D::E>,
    words: Vec<D::E>,
    shares: Zeroizing<Vec<D::E>>,
    out: &'a mut Vec<u8>,
}

impl<D: Domain> Encoder<'_, D> {
    /// A block of bits of the words.
    fn word_block(
        &mut self,
        block: usize,
        index: usize,
        [zeros, ones]: [&[u128]; 2],
        sums: &mut Sums<D::E>,
    ) -> Result<(), OtError> {
        let domain = &self.shape.domain;
        let (j, items) = self.shape.position(block);
        let width = self.shape.width(j);
        let low = u128::MAX >> (128 - width);
        let items = range_of(items);
        let values = [
            self.keys.as_slice(),
            self.factors.a.get(items.clone()).ok_or_else(uneven)?,
            self.factors.mac.get(items.clone()).ok_or_else(uneven)?,
        ];
        let words = self.words.get_mut(..BLOCK).ok_or_else(uneven)?;
        for (factor, (values, sums)) in values.into_iter().zip(sums).enumerate() {
            let zeros = strings_of(zeros, factor, index)?;
            let ones = strings_of(ones, factor, index)?;
            let each = words.iter_mut().zip(self.shares.iter_mut()).zip(values);
            for (((word, share), value), (zero, one)) in each.zip(zeros.iter().zip(ones)) {
                let sent;
                (sent, *share) = encode(domain, *zero, *one, *value);
                *word = D::E::from_u128_wrapping(sent.to_u128() & low);
            }
            pack_words(words, width, self.out);
            let sums = sums.get_mut(items.clone()).ok_or_else(uneven)?;
            absorb(domain, sums, &self.shares)?;
        }
        Ok(())
    }

    /// The block of the extra bits.
    fn extra_block(
        &mut self,
        index: usize,
        [zeros, ones]: [&[u128]; 2],
        partial: &mut Partial<D::E>,
    ) -> Result<(), OtError> {
        let domain = &self.shape.domain;
        let items = self.shape.items;
        let strings = |factor: usize| {
            let zeros = strings_of(zeros, factor, index)?;
            Ok::<_, OtError>(zeros.iter().zip(strings_of(ones, factor, index)?))
        };
        let mut sent = Vec::with_capacity(EXTRA);
        for (sum, (zero, one)) in partial.keys.iter_mut().zip(strings(0)?) {
            let (word, share) = encode(domain, *zero, *one, self.factors.key);
            sent.push(word);
            *sum = domain.add(*sum, share);
        }
        pack_words(&sent, domain.bits(), self.out);
        let words = self.words.get_mut(..items).ok_or_else(uneven)?;
        let values = [self.factors.a, self.factors.mac];
        for (factor, (values, sums)) in values.into_iter().zip(&mut partial.extra).enumerate() {
            for ((zero, one), sums) in strings(1 + factor)?.zip(sums.chunks_mut(items.max(1))) {
                let (zeros, ones) = (stretch(*zero, items), stretch(*one, items));
                let each = words.iter_mut().zip(sums).zip(values);
                for (((word, sum), value), (zero, one)) in each.zip(zeros.iter().zip(ones.iter())) {
                    let share;
                    (*word, share) = encode(domain, *zero, *one, *value);
                    *sum = domain.add(*sum, share);
                }
                for words in words.chunks(BLOCK) {
                    pack_words(words, domain.bits(), self.out);
                }
            }
        }
        Ok(())
    }
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
    if factors.a.len() != shape.items || factors.mac.len() != shape.items {
        return Err(OtError::Usage(format!(
            "{} words for {} products",
            factors.a.len(),
            shape.items
        )));
    }
    partial.check(shape)?;
    out.reserve(shape.payload_bytes());
    let domain = &shape.domain;
    let mut sums = zero_sums(shape);
    let mut zeros = Zeroizing::new(vec![0u128; FACTORS * BLOCK * MAX_BLOCKS]);
    let mut ones = Zeroizing::new(vec![0u128; FACTORS * BLOCK * MAX_BLOCKS]);
    let mut encoder = Encoder {
        shape,
        keys: Zeroizing::new([factors.key; BLOCK]),
        factors,
        words: vec![domain.zero(); BLOCK.max(shape.items)],
        shares: Zeroizing::new(vec![domain.zero(); BLOCK]),
        out,
    };
    for (tile, blocks) in tiles(shape.choice_words()) {
        let len = FACTORS * BLOCK * blocks.len();
        let zeros = zeros.get_mut(..len).ok_or_else(uneven)?;
        let ones = ones.get_mut(..len).ok_or_else(uneven)?;
        ot.batch_words(batch, tile, FACTORS, zeros, ones)?;
        for (index, block) in blocks.enumerate() {
            if block == shape.word_blocks() {
                encoder.extra_block(index, [zeros, ones], partial)?;
            } else {
                encoder.word_block(block, index, [zeros, ones], &mut sums)?;
            }
        }
    }
    for (words, sums) in partial.words.iter_mut().zip(&sums) {
        domain.add_assign(words, sums);
    }
    Ok(())
}

/// The receiver's end, block after block.
struct Decoder<'a, D: Domain> {
    shape: &'a Shape<D>,
    /// The payload that is not read yet.
    rest: &'a [u8],
    words: Vec<D::E>,
    shares: Zeroizing<Vec<D::E>>,
    /// Whether all words were elements.
    valid: bool,
}

/// Reads elements of `width` bits off the front of `rest`.
fn take<E: Element>(rest: &mut &[u8], width: u32, words: &mut [E]) -> Result<(), OtError> {
    let now = rest.split_at_checked(wide_bytes(words.len(), width));
    let (now, later) = now.ok_or_else(uneven)?;
    *rest = later;
    unpack_words(now, width, words)
}

/// The receiver's share, for the word received, its string, and a mask for its choice.
#[inline(always)]
fn decode<D: Domain>(domain: &D, valid: &mut bool, word: D::E, string: u128, mask: u128) -> D::E {
    let word = word.to_u128();
    *valid &= domain.from_u128(word).to_u128() == word;
    let chosen = D::E::from_u128_wrapping(word & mask);
    domain.add(domain.from_u128(string), chosen)
}

impl<D: Domain> Decoder<'_, D> {
    /// A block of bits of the words.
    fn word_block(
        &mut self,
        block: usize,
        index: usize,
        choices: u128,
        strings: &[u128],
        sums: &mut Sums<D::E>,
    ) -> Result<(), OtError> {
        let domain = &self.shape.domain;
        let (j, items) = self.shape.position(block);
        let words = self.words.get_mut(..BLOCK).ok_or_else(uneven)?;
        for (factor, sums) in sums.iter_mut().enumerate() {
            take(&mut self.rest, self.shape.width(j), words)?;
            let strings = strings_of(strings, factor, index)?;
            let each = self.shares.iter_mut().zip(words.iter()).zip(strings);
            for (i, ((share, word), string)) in each.enumerate() {
                let mask = mask_of(choices >> i);
                *share = decode(domain, &mut self.valid, *word, *string, mask);
            }
            let sums = sums.get_mut(range_of(items)).ok_or_else(uneven)?;
            absorb(domain, sums, &self.shares)?;
        }
        Ok(())
    }

    /// The block of the extra bits.
    fn extra_block(
        &mut self,
        index: usize,
        choices: u128,
        strings: &[u128],
        partial: &mut Partial<D::E>,
    ) -> Result<(), OtError> {
        let domain = &self.shape.domain;
        let items = self.shape.items;
        let words = self.words.get_mut(..EXTRA).ok_or_else(uneven)?;
        take(&mut self.rest, domain.bits(), words)?;
        let each = partial.keys.iter_mut().zip(words.iter());
        for (e, ((sum, word), string)) in each.zip(strings_of(strings, 0, index)?).enumerate() {
            let mask = mask_of(choices >> e);
            let share = decode(domain, &mut self.valid, *word, *string, mask);
            *sum = domain.add(*sum, share);
        }
        let words = self.words.get_mut(..items).ok_or_else(uneven)?;
        for (factor, sums) in partial.extra.iter_mut().enumerate() {
            let strings = strings_of(strings, 1 + factor, index)?;
            for (e, (sums, string)) in sums.chunks_mut(items.max(1)).zip(strings).enumerate() {
                for words in words.chunks_mut(BLOCK) {
                    take(&mut self.rest, domain.bits(), words)?;
                }
                let stream = stretch(*string, items);
                let mask = mask_of(choices >> e);
                for ((sum, word), string) in sums.iter_mut().zip(words.iter()).zip(stream.iter()) {
                    let share = decode(domain, &mut self.valid, *word, *string, mask);
                    *sum = domain.add(*sum, share);
                }
            }
        }
        Ok(())
    }
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
    check_same(choices.len(), shape.choice_words())?;
    let domain = &shape.domain;
    let mut sums = zero_sums(shape);
    let mut strings = Zeroizing::new(vec![0u128; FACTORS * BLOCK * MAX_BLOCKS]);
    let mut decoder = Decoder {
        shape,
        rest: message,
        words: vec![domain.zero(); BLOCK.max(shape.items)],
        shares: Zeroizing::new(vec![domain.zero(); BLOCK]),
        valid: true,
    };
    for (tile, blocks) in tiles(shape.choice_words()) {
        let len = FACTORS * BLOCK * blocks.len();
        let strings = strings.get_mut(..len).ok_or_else(uneven)?;
        ot.batch_words(batch, tile, FACTORS, strings)?;
        for (index, block) in blocks.enumerate() {
            let choices = *choices.get(block).ok_or_else(uneven)?;
            if block == shape.word_blocks() {
                decoder.extra_block(index, choices, strings, partial)?;
            } else {
                decoder.word_block(block, index, choices, strings, &mut sums)?;
            }
        }
    }
    for (words, sums) in partial.words.iter_mut().zip(&sums) {
        domain.add_assign(words, sums);
    }
    if decoder.valid {
        Ok(())
    } else {
        Err(OtError::Message(
            "a payload of products is no element of the field",
        ))
    }
}
