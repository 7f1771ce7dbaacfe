//! The receiver's end of products.

use std::ops::Range;

use keyquorum_math::{Element, bits, masks_of};
use zeroize::{Zeroize, Zeroizing};

use super::{CHUNK, Payload, check_count, chunks, correction_bytes, in_pieces, payload_bytes};
use crate::extension::{Choices, Receiver};
use crate::packed::{unpack_words, wide_bytes};
use crate::tile::MAX_BLOCKS;
use crate::{OtError, check_length, check_same, uneven};

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

    /// Planes of the choices, none if they are to be drawn.
    fn planes(&self, count: u32) -> Vec<Vec<u64>>
    where
        E: Element,
    {
        match self {
            Self::Words(words) => bits::planes(words, count as usize),
            Self::Bits(lanes) => vec![lanes.to_vec()],
            Self::Random(_) => Vec::new(),
        }
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
    let pieces = in_pieces(ot, n, count, |items, mut fork| {
        let operand = operand.piece(items.clone())?;
        Ok(move || receive_piece(&mut fork, payload, &operand, items.len(), count))
    })?;
    let mut whole: Option<Pending<P>> = None;
    for (mut pending, part) in pieces {
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
    whole.ok_or_else(|| OtError::Usage("no products".to_owned()))
}

/// [`receive`] in one thread: the state and the corrections.
fn receive_piece<P: Payload>(
    ot: &mut Receiver,
    payload: &P,
    operand: &Operand<'_, P::Word>,
    n: usize,
    count: u32,
) -> Result<(Pending<P>, Vec<u8>), OtError> {
    let source = match operand {
        Operand::Random(_) => Choices::Random,
        _ => Choices::Given,
    };
    let bytes = correction_bytes(source, ot.parameters(), n, count);
    let mut message = Vec::with_capacity(bytes);
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
        let items = i * CHUNK..i * CHUNK + sums.len();
        let mut planes = operand.piece(items)?.planes(count);
        for j in 0..count {
            let mut choices = [0u128; MAX_BLOCKS];
            let choices = choices.get_mut(..blocks).ok_or_else(uneven)?;
            if source == Choices::Given {
                join(planes.get(j as usize).ok_or_else(uneven)?, choices)?;
            }
            let strings = strings.get_mut(..128 * blocks).ok_or_else(uneven)?;
            ot.random(choices, source, &mut message, strings)?;
            for (sum, string) in sums.iter_mut().zip(strings.iter()) {
                payload.absorb(sum, j, *string);
            }
            pending.planes.extend_from_slice(choices);
        }
        planes.iter_mut().zeroize();
    }
    strings.zeroize();
    Ok((pending, message))
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
                        .take(bits::words(n)) // bits beyond those of the items
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
                        let masks = masks_of::<64>(choices);
                        for ((sum, word), mask) in sums.iter_mut().zip(words).zip(masks) {
                            valid &= self.payload.contains(*word);
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
