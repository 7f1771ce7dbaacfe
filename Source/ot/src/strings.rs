//! Random OT of strings of 128 bits. As keys of pseudorandom generators they make correlated OT of vectors of any length, where the vector
//! alone is sent and an OT costs the same whatever the length.

use zeroize::{Zeroize, Zeroizing};

use crate::extension::{Choices, Receiver, Sender};
use crate::tile::{MAX_BLOCKS, TILE};
use crate::{OtError, Parameters, check_length, check_same, uneven};

/// Bytes of the corrections of `n` OTs, from receiver to sender: they come in blocks of 128.
pub fn correction_bytes(parameters: Parameters, n: usize) -> usize {
    n.div_ceil(128) * Choices::Given.block_bytes(parameters)
}

/// The receiver's end of `n` OTs: the chosen strings. `choices` are packed, 64 a lane; appends the corrections to `message`.
///
/// # Errors
/// [`OtError::Internal`] for another number of lanes.
pub fn receive(
    ot: &mut Receiver,
    choices: &[u64],
    n: usize,
    message: &mut Vec<u8>,
) -> Result<Zeroizing<Vec<u128>>, OtError> {
    check_same(choices.len(), n.div_ceil(64))?;
    let mut chosen = Zeroizing::new(Vec::with_capacity(n));
    let mut words = [0u128; TILE];
    let mut tile = [0u128; MAX_BLOCKS];
    for lanes in choices.chunks(2 * MAX_BLOCKS) {
        let tile = tile.get_mut(..lanes.len().div_ceil(2)).ok_or_else(uneven)?;
        for (word, pair) in tile.iter_mut().zip(lanes.chunks(2)) {
            let lanes = pair.iter().rev();
            *word = lanes.fold(0, |word, lane| word << 64 | u128::from(*lane));
        }
        let words = words.get_mut(..128 * tile.len()).ok_or_else(uneven)?;
        ot.random(tile, Choices::Given, message, words)?;
        let wanted = words.len().min(n - chosen.len());
        chosen.extend_from_slice(words.get(..wanted).ok_or_else(uneven)?);
    }
    words.zeroize();
    tile.zeroize();
    Ok(chosen)
}

/// The sender's end: both strings of each of the `n` OTs.
///
/// # Errors
/// [`OtError::Length`].
pub fn send(
    ot: &mut Sender,
    n: usize,
    message: &[u8],
) -> Result<[Zeroizing<Vec<u128>>; 2], OtError> {
    let parameters = ot.parameters();
    check_length(
        "corrections of OTs",
        message,
        correction_bytes(parameters, n),
    )?;
    let block = Choices::Given.block_bytes(parameters);
    let mut strings = [0; 2].map(|_: usize| Zeroizing::new(Vec::with_capacity(n)));
    let mut words = [[0u128; TILE]; 2];
    for message in message.chunks(MAX_BLOCKS * block) {
        let [zeros, ones] = &mut words;
        let count = 128 * (message.len() / block);
        let (Some(zeros), Some(ones)) = (zeros.get_mut(..count), ones.get_mut(..count)) else {
            return Err(uneven());
        };
        ot.random(Choices::Given, message, zeros, ones)?;
        for (strings, words) in strings.iter_mut().zip([zeros, ones]) {
            let wanted = words.len().min(n - strings.len());
            strings.extend_from_slice(words.get(..wanted).ok_or_else(uneven)?);
        }
    }
    words.as_flattened_mut().zeroize();
    Ok(strings)
}
