//! The sender's end of products.

use zeroize::{Zeroize, Zeroizing};

use super::{CHUNK, Payload, check_count, correction_bytes, in_pieces, payload_bytes};
use crate::extension::{Choices, Sender};
use crate::packed::pack_words;
use crate::{OtError, check_length, uneven};

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
    let pieces = in_pieces(ot, x.len(), count, |items, mut fork| {
        let first = correction_bytes(source, parameters, items.start, count);
        let bytes = correction_bytes(source, parameters, items.len(), count);
        let message = message.get(first..first + bytes).ok_or_else(uneven)?;
        let x = x.get(items).ok_or_else(uneven)?;
        Ok(move || send_piece(&mut fork, payload, x, count, source, message))
    })?;
    let mut shares = Vec::with_capacity(x.len());
    for (mut part, answer) in pieces {
        out.extend_from_slice(&answer);
        shares.append(&mut part);
    }
    Ok(shares)
}

/// [`send`] in one thread: shares and payload.
fn send_piece<P: Payload>(
    ot: &mut Sender,
    payload: &P,
    x: &[P::Word],
    count: u32,
    source: Choices,
    message: &[u8],
) -> Result<(Vec<P::Word>, Vec<u8>), OtError> {
    let parameters = ot.parameters();
    let mut out = Vec::with_capacity(payload_bytes(payload, x.len(), count));
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
            pack_words(words, payload.width(j), &mut out);
        }
        shares.extend(sums.iter().map(|sum| payload.negate(payload.finish(*sum))));
    }
    zeros.zeroize();
    ones.zeroize();
    words.iter_mut().zeroize();
    sums.iter_mut().zeroize();
    Ok((shares, out))
}
