//! Correlated OT and Gilboa's product: the sender has x, the receiver y, they get shares of x·y.
//!
//! Bit j of y is the choice of one OT with strings h₀, h₁; the sender's correction d = h₀ − h₁ + 2^j·x lets the receiver
//! have h₀ + y_j·2^j·x (Gilboa, CRYPTO 1999). Modulo 2^l the whole is divisible by 2^j, so that only l − j bits are sent:
//! l(l + 1)/2 bits a product. With one choice bit an item it is a correlated OT.
//!
//! OTs lie bit by bit (all bits 0 of a chunk of items, then all bits 1, …): choices are planes of the receiver's words, and
//! every inner loop has one width.

use keyquorum_math::{Domain, Element, Zq, bits};
use std::ops::Range;

use zeroize::{Zeroize, Zeroizing};

use crate::extension::{Choices, MAX_BLOCKS, Receiver, Sender};
use crate::packed::{pack, packed_bytes, unpack};
use crate::{OtError, check_length, check_same, threads, uneven};

/// Items of one chunk: their OTs of one bit fill a tile.
pub(crate) const CHUNK: usize = 128 * MAX_BLOCKS;

/// The ring of the products.
pub trait Payload: Clone + Send + Sync + 'static {
    /// An element.
    type Word: Element;
    /// A sum of strings, not yet reduced.
    type Sum: Copy + Default + Zeroize + Send;

    /// Bits of an element: OTs of a full product.
    fn bits(&self) -> u32;
    /// Bits of a correction for bit `j` of the receiver's word.
    fn width(&self, j: u32) -> u32;
    /// `sum += 2^j` times the string `hash`, as far as the payload counts it.
    fn absorb(&self, sum: &mut Self::Sum, j: u32, hash: u128);
    /// The correction for strings h₀, h₁ and the word that [`Payload::advance`] made of x for bit `j`.
    fn correction(&self, j: u32, zero: u128, one: u128, x: Self::Word) -> Self::Word;
    /// x for the next bit.
    fn advance(&self, x: &mut Self::Word);
    /// Adds a correction if `mask` is all ones (and not if it is zero).
    fn choose(&self, sum: &mut Self::Sum, j: u32, correction: Self::Word, mask: u64);
    /// The element.
    fn finish(&self, sum: Self::Sum) -> Self::Word;
    /// Its negative.
    fn negate(&self, x: Self::Word) -> Self::Word;
    /// Whether this word is an element.
    fn contains(&self, x: Self::Word) -> bool;
}

/// Integers modulo 2^l in words of type `E`, 1 ≤ l ≤ 64 for `u64`, 128 for `u128`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerOfTwo<E> {
    l: u32,
    mask: E,
}

macro_rules! power_of_two {
    ($word:ty) => {
        impl PowerOfTwo<$word> {
            /// Integers modulo 2^l.
            ///
            /// # Errors
            /// [`OtError::Usage`] if the word is too small for l bits.
            pub fn new(l: u32) -> Result<Self, OtError> {
                if !(1..=<$word>::BITS).contains(&l) {
                    return Err(OtError::Usage(format!(
                        "payloads modulo 2^{l}: choose 1 to {} bits",
                        <$word>::BITS
                    )));
                }
                let mask = <$word>::MAX >> (<$word>::BITS - l);
                Ok(Self { l, mask })
            }
        }

        impl Payload for PowerOfTwo<$word> {
            type Word = $word;
            type Sum = $word;

            fn bits(&self) -> u32 {
                self.l
            }

            fn width(&self, j: u32) -> u32 {
                self.l - j
            }

            #[inline(always)]
            fn absorb(&self, sum: &mut $word, j: u32, hash: u128) {
                *sum = sum.wrapping_add((hash as $word) << j);
            }

            #[inline(always)]
            fn correction(&self, _: u32, zero: u128, one: u128, x: $word) -> $word {
                (zero as $word).wrapping_sub(one as $word).wrapping_add(x)
            }

            fn advance(&self, _: &mut $word) {}

            #[inline(always)]
            fn choose(&self, sum: &mut $word, j: u32, correction: $word, mask: u64) {
                // All ones or zero, sign-extended to the word.
                let mask = mask as i64 as $word;
                *sum = sum.wrapping_add((correction & mask) << j);
            }

            #[inline(always)]
            fn finish(&self, sum: $word) -> $word {
                sum & self.mask
            }

            #[inline(always)]
            fn negate(&self, x: $word) -> $word {
                x.wrapping_neg() & self.mask
            }

            fn contains(&self, x: $word) -> bool {
                x <= self.mask
            }
        }
    };
}

power_of_two!(u64);
power_of_two!(u128);

/// A prime field.
#[derive(Clone, Debug)]
pub struct Field {
    field: Zq,
    /// A multiple of q, at least 2^[`STRING_BITS`].
    offset: u128,
}

/// Bits of a string that count for a field: so many that its residue is uniform within 2^-60, and so few that 62 strings
/// add up in a word.
const STRING_BITS: u32 = 122;
const STRING: u128 = (1 << STRING_BITS) - 1;

impl Field {
    /// Products over this field.
    pub fn new(field: Zq) -> Self {
        let q = u128::from(field.modulus());
        let offset = ((1 << STRING_BITS) / q + 1) * q;
        Self { field, offset }
    }
}

impl Payload for Field {
    type Word = u64;
    type Sum = u128;

    fn bits(&self) -> u32 {
        self.field.bits()
    }

    fn width(&self, _: u32) -> u32 {
        self.field.bits()
    }

    #[inline(always)]
    fn absorb(&self, sum: &mut u128, _: u32, hash: u128) {
        *sum += hash & STRING;
    }

    #[inline(always)]
    fn correction(&self, _: u32, zero: u128, one: u128, x: u64) -> u64 {
        self.field
            .from_u128((zero & STRING) + (self.offset - (one & STRING)) + u128::from(x))
    }

    fn advance(&self, x: &mut u64) {
        *x = self.field.add(*x, *x);
    }

    #[inline(always)]
    fn choose(&self, sum: &mut u128, _: u32, correction: u64, mask: u64) {
        *sum += u128::from(correction & mask);
    }

    #[inline(always)]
    fn finish(&self, sum: u128) -> u64 {
        self.field.from_u128(sum)
    }

    #[inline(always)]
    fn negate(&self, x: u64) -> u64 {
        self.field.neg(x)
    }

    fn contains(&self, x: u64) -> bool {
        x < self.field.modulus()
    }
}

/// Bytes of the corrections of OTs for `n` products by words of `count` bits, from receiver to sender.
pub fn correction_bytes(
    source: Choices,
    parameters: crate::Parameters,
    n: usize,
    count: u32,
) -> usize {
    n.div_ceil(128) * count as usize * source.block_bytes(parameters)
}

/// Bytes of the payload of `n` products by words of `count` bits, from sender to receiver.
pub fn payload_bytes<P: Payload>(payload: &P, n: usize, count: u32) -> usize {
    chunks(n)
        .map(|n| {
            (0..count)
                .map(|j| wide_bytes(n, payload.width(j)))
                .sum::<usize>()
        })
        .sum()
}

fn chunks(n: usize) -> impl Iterator<Item = usize> {
    (0..n.div_ceil(CHUNK)).map(move |i| (n - i * CHUNK).min(CHUNK))
}

pub(crate) fn wide_bytes(n: usize, width: u32) -> usize {
    packed_bytes(n, width.min(64)) + packed_bytes(n, width.saturating_sub(64))
}

/// The receiver's words: planes of their bits, or to be drawn.
pub enum Operand<'a, E> {
    /// Bits of these words.
    Words(&'a [E]),
    /// One packed vector of bits, one choice an item.
    Bits(&'a [u64]),
    /// Drawn by the extension; ask [`Pending::words`].
    Random(usize),
}

impl<E> Operand<'_, E> {
    /// The part for these items, which start at a whole chunk.
    fn piece(&self, items: Range<usize>) -> Result<Self, OtError> {
        Ok(match self {
            Self::Words(words) => Self::Words(words.get(items).ok_or_else(uneven)?),
            Self::Bits(lanes) => {
                let lanes = lanes.get(items.start / 64..items.end.div_ceil(64));
                Self::Bits(lanes.ok_or_else(uneven)?)
            }
            Self::Random(_) => Self::Random(items.len()),
        })
    }

    /// Fails unless these are `n` words of `count` bits.
    fn check(&self, n: usize, count: u32) -> Result<(), OtError> {
        match self {
            Self::Words(words) => check_same(words.len(), n),
            Self::Bits(lanes) => {
                check_same(count as usize, 1)?;
                check_same(lanes.len(), n.div_ceil(64))
            }
            Self::Random(words) => check_same(*words, n),
        }
    }
}

/// The receiver between its corrections and the sender's payload.
pub struct Pending<P: Payload> {
    payload: P,
    n: usize,
    count: u32,
    /// Chunk after chunk, bit after bit: choices, 128 a word.
    planes: Zeroizing<Vec<u128>>,
    sums: Vec<P::Sum>,
}

impl<P: Payload> Drop for Pending<P> {
    fn drop(&mut self) {
        self.sums.iter_mut().zeroize();
    }
}

/// Joins pairs of lanes; the last one may have no second.
fn join(lanes: &[u64], out: &mut [u128]) -> Result<(), OtError> {
    check_same(lanes.len().div_ceil(2), out.len())?;
    for (word, pair) in out.iter_mut().zip(lanes.chunks(2)) {
        *word = match pair {
            [low, high] => u128::from(*low) | u128::from(*high) << 64,
            [low] => u128::from(*low),
            _ => return Err(uneven()),
        };
    }
    Ok(())
}

/// Starts `n` products by the receiver's operand, whose words have `count` bits; appends the corrections of its OTs.
///
/// # Errors
/// [`OtError::Usage`] for more bits than the payload has.
pub fn receive<P: Payload>(
    ot: &mut Receiver,
    payload: &P,
    operand: Operand<'_, P::Word>,
    n: usize,
    count: u32,
    message: &mut Vec<u8>,
) -> Result<Pending<P>, OtError> {
    check_count(payload, count)?;
    operand.check(n, count)?;
    let tasks: Vec<_> = threads::pieces(n.div_ceil(CHUNK), CHUNK * count as usize)
        .into_iter()
        .map(|chunks| {
            let items = chunks.start * CHUNK..(chunks.end * CHUNK).min(n);
            let operand = operand.piece(items.clone())?;
            let mut fork = ot.fork(chunks.start * MAX_BLOCKS * count as usize);
            Ok(move || {
                let mut message = Vec::new();
                let pending = receive_piece(
                    &mut fork,
                    payload,
                    &operand,
                    items.len(),
                    count,
                    &mut message,
                )?;
                Ok((pending, message))
            })
        })
        .collect::<Result<_, OtError>>()?;
    let mut whole: Option<Pending<P>> = None;
    for (mut pending, part) in threads::run(tasks)? {
        message.extend_from_slice(&part);
        match &mut whole {
            None => whole = Some(pending),
            Some(whole) => {
                whole.n += pending.n;
                whole.planes.extend_from_slice(&pending.planes);
                whole.sums.append(&mut pending.sums);
            }
        }
    }
    ot.skip(n.div_ceil(128) * count as usize);
    whole.ok_or_else(|| OtError::Usage("no products".to_owned()))
}

/// [`receive`] in one thread.
fn receive_piece<P: Payload>(
    ot: &mut Receiver,
    payload: &P,
    operand: &Operand<'_, P::Word>,
    n: usize,
    count: u32,
    message: &mut Vec<u8>,
) -> Result<Pending<P>, OtError> {
    let source = match operand {
        Operand::Random(_) => Choices::Random,
        _ => Choices::Given,
    };
    message.reserve(correction_bytes(source, ot.parameters(), n, count));
    let mut pending = Pending {
        payload: payload.clone(),
        n,
        count,
        planes: Zeroizing::new(Vec::with_capacity(n.div_ceil(128) * count as usize)),
        sums: vec![P::Sum::default(); n],
    };
    let mut strings = [0u128; CHUNK];
    for (i, sums) in pending.sums.chunks_mut(CHUNK).enumerate() {
        let blocks = sums.len().div_ceil(128);
        let mut planes: Vec<Vec<u64>> = match operand {
            Operand::Words(words) => {
                let end = i * CHUNK + sums.len();
                let words = words.get(i * CHUNK..end).ok_or_else(uneven)?;
                bits::planes(words, count as usize)
            }
            Operand::Bits(lanes) => {
                let first = i * (CHUNK / 64);
                let lanes = lanes.get(first..first + sums.len().div_ceil(64));
                vec![lanes.ok_or_else(uneven)?.to_vec()]
            }
            Operand::Random(_) => Vec::new(),
        };
        for j in 0..count {
            let mut choices = [0u128; MAX_BLOCKS];
            let choices = choices.get_mut(..blocks).ok_or_else(uneven)?;
            if source == Choices::Given {
                join(planes.get(j as usize).ok_or_else(uneven)?, choices)?;
            }
            let strings = strings.get_mut(..128 * blocks).ok_or_else(uneven)?;
            ot.random(choices, source, message, strings)?;
            for (sum, string) in sums.iter_mut().zip(strings.iter()) {
                payload.absorb(sum, j, *string);
            }
            pending.planes.extend_from_slice(choices);
        }
        planes.iter_mut().zeroize();
    }
    strings.zeroize();
    Ok(pending)
}

fn check_count<P: Payload>(payload: &P, count: u32) -> Result<(), OtError> {
    if count <= payload.bits() {
        return Ok(());
    }
    Err(OtError::Usage(format!(
        "{count} choice bits for a payload of {} bits",
        payload.bits()
    )))
}

impl<P: Payload> Pending<P> {
    /// Number of items.
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The receiver's words, low `count` bits.
    ///
    /// # Errors
    /// [`OtError::Internal`].
    pub fn words(&self) -> Result<Vec<P::Word>, OtError> {
        let mut out = Vec::with_capacity(self.n);
        let mut planes = self.planes.as_slice();
        for n in chunks(self.n) {
            let blocks = n.div_ceil(128);
            let now = planes.split_at_checked(blocks * self.count as usize);
            let (now, rest) = now.ok_or_else(uneven)?;
            planes = rest;
            let mut lanes: Vec<Vec<u64>> = now
                .chunks_exact(blocks)
                .map(|plane| {
                    plane
                        .iter()
                        .flat_map(|word| [*word as u64, (*word >> 64) as u64])
                        .take(bits::words(n)) // the rest of the last block belongs to no item
                        .collect()
                })
                .collect();
            out.extend(bits::from_planes::<P::Word, _>(&lanes, n)?);
            lanes.iter_mut().zeroize();
        }
        Ok(out)
    }

    /// The receiver's shares, from the sender's payload.
    ///
    /// # Errors
    /// [`OtError::Length`]; [`OtError::Message`] for a word that is no element.
    pub fn finish(mut self, message: &[u8]) -> Result<Vec<P::Word>, OtError> {
        check_length(
            "payloads of products",
            message,
            payload_bytes(&self.payload, self.n, self.count),
        )?;
        let mut rest = message;
        let mut planes = self.planes.as_slice();
        let mut words = [P::Word::default(); CHUNK];
        let mut valid = true;
        for sums in self.sums.chunks_mut(CHUNK) {
            let blocks = sums.len().div_ceil(128);
            for j in 0..self.count {
                let width = self.payload.width(j);
                let (now, later) = rest.split_at(wide_bytes(sums.len(), width));
                rest = later;
                let words = words.get_mut(..sums.len()).ok_or_else(uneven)?;
                unpack_words(now, width, words)?;
                let (plane, later) = planes.split_at_checked(blocks).ok_or_else(uneven)?;
                planes = later;
                for ((sums, words), choices) in
                    sums.chunks_mut(128).zip(words.chunks(128)).zip(plane)
                {
                    for (half, (sums, words)) in
                        sums.chunks_mut(64).zip(words.chunks(64)).enumerate()
                    {
                        let choices = (*choices >> (64 * half)) as u64;
                        for (i, (sum, word)) in sums.iter_mut().zip(words).enumerate() {
                            valid &= self.payload.contains(*word);
                            let mask = (choices >> i & 1).wrapping_neg();
                            self.payload.choose(sum, j, *word, mask);
                        }
                    }
                }
            }
        }
        if !valid {
            return Err(OtError::Message(
                "a payload of products is no element of the field",
            ));
        }
        Ok(self.sums.iter().map(|s| self.payload.finish(*s)).collect())
    }
}

/// Reads at most [`CHUNK`] words that [`pack_words`] wrote in one go.
pub(crate) fn unpack_words<E: Element>(
    bytes: &[u8],
    width: u32,
    out: &mut [E],
) -> Result<(), OtError> {
    let mut words = [0u64; CHUNK];
    let low = width.min(64);
    let parts = bytes.split_at_checked(packed_bytes(out.len(), low));
    let (first, second) = parts.ok_or_else(uneven)?;
    let words = words.get_mut(..out.len()).ok_or_else(uneven)?;
    unpack(first, low, words)?;
    for (o, w) in out.iter_mut().zip(words.iter()) {
        *o = E::from_u128_wrapping(u128::from(*w));
    }
    if width > 64 {
        unpack(second, width - 64, words)?;
        for (o, w) in out.iter_mut().zip(words.iter()) {
            *o = E::from_u128_wrapping(o.to_u128() | u128::from(*w) << 64);
        }
    } else {
        check_same(second.len(), 0)?;
    }
    Ok(())
}

pub(crate) fn pack_words<E: Element>(words: &[E], width: u32, out: &mut Vec<u8>) {
    pack(words.iter().map(|w| w.to_u128() as u64), width.min(64), out);
    if width > 64 {
        pack(
            words.iter().map(|w| (w.to_u128() >> 64) as u64),
            width - 64,
            out,
        );
    }
}

/// The sender's end: products of its words `x` by the receiver's words of `count` bits. Appends the payload; returns the
/// sender's shares.
///
/// # Errors
/// [`OtError::Length`]; [`OtError::Usage`] for more bits than the payload has.
pub fn send<P: Payload>(
    ot: &mut Sender,
    payload: &P,
    x: &[P::Word],
    count: u32,
    source: Choices,
    message: &[u8],
    out: &mut Vec<u8>,
) -> Result<Vec<P::Word>, OtError> {
    check_count(payload, count)?;
    let parameters = ot.parameters();
    check_length(
        "corrections of OTs",
        message,
        correction_bytes(source, parameters, x.len(), count),
    )?;
    let tasks: Vec<_> = threads::pieces(x.len().div_ceil(CHUNK), CHUNK * count as usize)
        .into_iter()
        .map(|chunks| {
            let items = chunks.start * CHUNK..(chunks.end * CHUNK).min(x.len());
            let first = correction_bytes(source, parameters, items.start, count);
            let bytes = correction_bytes(source, parameters, items.len(), count);
            let message = message.get(first..first + bytes).ok_or_else(uneven)?;
            let x = x.get(items).ok_or_else(uneven)?;
            let mut fork = ot.fork(chunks.start * MAX_BLOCKS * count as usize);
            Ok(move || {
                let mut answer = Vec::new();
                let shares =
                    send_piece(&mut fork, payload, x, count, source, message, &mut answer)?;
                Ok((shares, answer))
            })
        })
        .collect::<Result<_, OtError>>()?;
    let mut shares = Vec::with_capacity(x.len());
    for (mut part, answer) in threads::run(tasks)? {
        out.extend_from_slice(&answer);
        shares.append(&mut part);
    }
    ot.skip(x.len().div_ceil(128) * count as usize);
    Ok(shares)
}

/// [`send`] in one thread.
fn send_piece<P: Payload>(
    ot: &mut Sender,
    payload: &P,
    x: &[P::Word],
    count: u32,
    source: Choices,
    message: &[u8],
    out: &mut Vec<u8>,
) -> Result<Vec<P::Word>, OtError> {
    let parameters = ot.parameters();
    out.reserve(payload_bytes(payload, x.len(), count));
    let mut shares = Vec::with_capacity(x.len());
    let mut rest = message;
    let (mut zeros, mut ones) = ([0u128; CHUNK], [0u128; CHUNK]);
    let mut words = [P::Word::default(); CHUNK];
    let mut sums = [P::Sum::default(); CHUNK];
    for x in x.chunks(CHUNK) {
        let n = x.len();
        let blocks = n.div_ceil(128);
        let (Some(zeros), Some(ones), Some(words), Some(sums)) = (
            zeros.get_mut(..128 * blocks),
            ones.get_mut(..128 * blocks),
            words.get_mut(..n),
            sums.get_mut(..n),
        ) else {
            return Err(uneven());
        };
        let mut x = Zeroizing::new(x.to_vec());
        sums.fill(P::Sum::default());
        for j in 0..count {
            let now = rest.split_at_checked(blocks * source.block_bytes(parameters));
            let (now, later) = now.ok_or_else(uneven)?;
            rest = later;
            ot.random(source, now, zeros, ones)?;
            for ((((word, sum), zero), one), x) in words
                .iter_mut()
                .zip(sums.iter_mut())
                .zip(zeros.iter())
                .zip(ones.iter())
                .zip(x.iter_mut())
            {
                payload.absorb(sum, j, *zero);
                *word = payload.correction(j, *zero, *one, *x);
                payload.advance(x);
            }
            pack_words(words, payload.width(j), out);
        }
        shares.extend(sums.iter().map(|sum| payload.negate(payload.finish(*sum))));
    }
    zeros.zeroize();
    ones.zeroize();
    words.iter_mut().zeroize();
    sums.iter_mut().zeroize();
    Ok(shares)
}
