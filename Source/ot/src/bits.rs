//! Random OT of single bits, packed: AND triples are made of it. With random choices only the extension's
//! corrections are sent.

use zeroize::Zeroize;

use crate::extension::{Choices, Receiver, Sender};
use crate::tile::MAX_BLOCKS;
use crate::{OtError, check_length, check_same, threads, uneven};

/// Lanes of 64 OTs of one tile.
const LANES: usize = 2 * MAX_BLOCKS;

/// Bit 0 of each word, packed.
fn lowest_bits(words: &[u128], out: &mut [u64]) -> Result<(), OtError> {
    check_same(words.len(), 64 * out.len())?;
    for (lane, words) in out.iter_mut().zip(words.chunks(64)) {
        *lane = words
            .iter()
            .enumerate()
            .fold(0, |lane, (i, word)| lane | (*word as u64 & 1) << i);
    }
    Ok(())
}

fn even(lanes: usize) -> Result<(), OtError> {
    if lanes.is_multiple_of(2) {
        return Ok(());
    }
    Err(OtError::Usage(format!(
        "OTs of bits come in blocks of 128, two lanes: {lanes} lanes were asked for"
    )))
}

/// The receiver's end: `strings` gets the chosen bits, 64 a lane, an even number of lanes. Random choices are written to
/// `choices`.
///
/// # Errors
/// [`OtError::Usage`] for an odd number of lanes.
pub fn receive(
    ot: &mut Receiver,
    choices: &mut [u64],
    source: Choices,
    message: &mut Vec<u8>,
    strings: &mut [u64],
) -> Result<(), OtError> {
    even(choices.len())?;
    check_same(choices.len(), strings.len())?;
    let mut tasks = Vec::new();
    let mut rest = (&mut *choices, &mut *strings);
    for tiles in threads::pieces(rest.0.len().div_ceil(LANES), 64 * LANES) {
        let lanes = (tiles.len() * LANES).min(rest.0.len());
        let (choices, later) = rest.0.split_at_mut(lanes);
        let (strings, others) = rest.1.split_at_mut(lanes);
        rest = (later, others);
        let mut fork = ot.fork(tiles.start * MAX_BLOCKS);
        tasks.push(move || {
            let mut message = Vec::new();
            receive_piece(&mut fork, choices, source, &mut message, strings)?;
            Ok(message)
        });
    }
    for part in threads::run(tasks)? {
        message.extend_from_slice(&part);
    }
    ot.skip(choices.len() / 2);
    Ok(())
}

/// [`receive`] in one thread.
fn receive_piece(
    ot: &mut Receiver,
    choices: &mut [u64],
    source: Choices,
    message: &mut Vec<u8>,
    strings: &mut [u64],
) -> Result<(), OtError> {
    message.reserve(choices.len() / 2 * source.block_bytes(ot.parameters()));
    let mut words = [0u128; 64 * LANES];
    for (choices, strings) in choices.chunks_mut(LANES).zip(strings.chunks_mut(LANES)) {
        let mut tile = [0u128; MAX_BLOCKS];
        let tile = tile.get_mut(..choices.len() / 2).ok_or_else(uneven)?;
        let (pairs, odd) = choices.as_chunks_mut::<2>();
        check_same(odd.len(), 0)?;
        for (word, [low, high]) in tile.iter_mut().zip(&*pairs) {
            *word = u128::from(*low) | u128::from(*high) << 64;
        }
        let words = words.get_mut(..128 * pairs.len()).ok_or_else(uneven)?;
        ot.random(tile, source, message, words)?;
        if source == Choices::Random {
            for (word, [low, high]) in tile.iter().zip(pairs) {
                (*low, *high) = (*word as u64, (*word >> 64) as u64);
            }
        }
        lowest_bits(words, strings)?;
    }
    words.zeroize();
    Ok(())
}

/// The sender's end: both bits of every OT, 64 a lane.
///
/// # Errors
/// [`OtError::Usage`] for an odd number of lanes, [`OtError::Length`].
pub fn send(
    ot: &mut Sender,
    source: Choices,
    message: &[u8],
    zeros: &mut [u64],
    ones: &mut [u64],
) -> Result<(), OtError> {
    even(zeros.len())?;
    check_same(zeros.len(), ones.len())?;
    let block = source.block_bytes(ot.parameters());
    check_length("corrections of OTs", message, zeros.len() / 2 * block)?;
    let blocks = zeros.len() / 2;
    let mut tasks = Vec::new();
    let mut rest = (message, zeros, ones);
    for tiles in threads::pieces(blocks.div_ceil(MAX_BLOCKS), 64 * LANES) {
        let lanes = (tiles.len() * LANES).min(rest.1.len());
        let (message, more) = rest.0.split_at(lanes / 2 * block);
        let (zeros, later) = rest.1.split_at_mut(lanes);
        let (ones, others) = rest.2.split_at_mut(lanes);
        rest = (more, later, others);
        let mut fork = ot.fork(tiles.start * MAX_BLOCKS);
        tasks.push(move || send_piece(&mut fork, source, message, zeros, ones));
    }
    threads::run(tasks)?;
    ot.skip(blocks);
    Ok(())
}

/// [`send`] in one thread.
fn send_piece(
    ot: &mut Sender,
    source: Choices,
    message: &[u8],
    zeros: &mut [u64],
    ones: &mut [u64],
) -> Result<(), OtError> {
    let block = source.block_bytes(ot.parameters());
    let (mut first, mut second) = ([0u128; 64 * LANES], [0u128; 64 * LANES]);
    for ((zeros, ones), message) in zeros
        .chunks_mut(LANES)
        .zip(ones.chunks_mut(LANES))
        .zip(message.chunks(MAX_BLOCKS * block))
    {
        let first = first.get_mut(..64 * zeros.len()).ok_or_else(uneven)?;
        let second = second.get_mut(..64 * zeros.len()).ok_or_else(uneven)?;
        ot.random(source, message, first, second)?;
        lowest_bits(first, zeros)?;
        lowest_bits(second, ones)?;
    }
    first.zeroize();
    second.zeroize();
    Ok(())
}
