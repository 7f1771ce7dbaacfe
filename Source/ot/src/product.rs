//! Correlated OT and Gilboa's product: the sender has x, the receiver y, they get shares of x·y.
//!
//! Bit j of y is the choice of one OT with strings h₀, h₁; the sender's correction d = h₀ − h₁ + 2^j·x lets the receiver
//! have h₀ + y_j·2^j·x (Gilboa, CRYPTO 1999). Modulo 2^l the whole is divisible by 2^j, so that only l − j bits are sent:
//! l(l + 1)/2 bits a product. With one choice bit an item it is a correlated OT.
//!
//! The order of OTs is bit by bit (all bits 0 of a chunk of items, then all bits 1, …): choices are planes of the receiver's words, and
//! every inner loop has one width.
//!
//! Modules: `payload` (the rings), `receiver` and `sender` (the two ends).

mod payload;
mod receiver;
mod sender;

use std::ops::Range;

use crate::extension::{Choices, End};
use crate::link::Link;
use crate::packed::wide_bytes;
use crate::tile::{MAX_BLOCKS, TILE};
use crate::{OtError, threads};

pub use payload::{Field, Payload, PowerOfTwo};
pub use receiver::{Operand, Pending, receive};
pub use sender::send;

/// Items of one chunk: their OTs of one bit fill a tile.
const CHUNK: usize = TILE;

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

fn check_count<P: Payload>(payload: &P, count: u32) -> Result<(), OtError> {
    if count <= payload.bits() {
        return Ok(());
    }
    Err(OtError::Usage(format!(
        "{count} choice bits for a payload of {} bits",
        payload.bits()
    )))
}

/// Cuts `n` products by words of `count` bits into pieces, one a thread: `task` gets the items of a piece and the end of the stream that makes
/// their OTs.
fn in_pieces<L: Link, T: Send, F>(
    ot: &mut End<L>,
    n: usize,
    count: u32,
    task: impl Fn(Range<usize>, End<L>) -> Result<F, OtError>,
) -> Result<Vec<T>, OtError>
where
    F: FnOnce() -> Result<T, OtError> + Send,
{
    let tasks: Vec<F> = threads::pieces(n.div_ceil(CHUNK), CHUNK * count as usize)
        .into_iter()
        .map(|chunks| {
            let items = chunks.start * CHUNK..(chunks.end * CHUNK).min(n);
            task(items, ot.fork(chunks.start * MAX_BLOCKS * count as usize))
        })
        .collect::<Result<_, OtError>>()?;
    let results = threads::run(tasks)?;
    ot.skip(n.div_ceil(128) * count as usize);
    Ok(results)
}
