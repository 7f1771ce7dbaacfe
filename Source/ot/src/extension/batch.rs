//! Many tiles of pads with one check: both ends keep the rows, and hash columns of a tile only after the check.

use zeroize::Zeroizing;

use super::check::{self, LinearHash, proof, proof_bytes};
use super::{Choices, Part, Receiver, Sender, hash_columns};
use crate::tile::{MAX_BLOCKS, Row, Rows};
use crate::{KAPPA, OtError, check_length, check_same, uneven};

/// Bytes of the receiver's answer to the consistency check.
pub const PROOF_BYTES: usize = proof_bytes(KAPPA);

/// Rows of the tiles of a batch. A tile of one block comes last, whose choices mask the check.
struct Tiles {
    rows: Zeroizing<Vec<Row>>,
    tweaks: Vec<u128>,
    /// Blocks of OTs without that of the mask.
    blocks: usize,
}

impl Tiles {
    fn new(blocks: usize) -> Self {
        let tiles = 1 + blocks.div_ceil(MAX_BLOCKS);
        Self {
            rows: Zeroizing::new(Vec::with_capacity(KAPPA * tiles)),
            tweaks: Vec::new(),
            blocks,
        }
    }

    fn push(&mut self, tweak: u128, rows: &Rows) {
        self.tweaks.push(tweak);
        self.rows.extend_from_slice(rows);
    }

    /// Rows and tweak of a tile, if it has as many columns. The tile of the mask has no strings.
    fn get(&self, tile: usize, columns: usize) -> Result<(&Rows, u128), OtError> {
        let left = tile
            .checked_mul(MAX_BLOCKS)
            .and_then(|before| self.blocks.checked_sub(before));
        let rows = (self.rows)
            .get(tile.wrapping_mul(KAPPA)..)
            .and_then(|rows| rows.first_chunk());
        match (rows, self.tweaks.get(tile), left) {
            (Some(rows), Some(tweak), Some(left)) if left > 0 => {
                check_same(columns, 128 * left.min(MAX_BLOCKS))?;
                Ok((rows, *tweak))
            }
            _ => Err(OtError::Internal(
                "a tile of oblivious transfers that its batch does not have",
            )),
        }
    }

    /// The masked hash of each of the 128 rows. A few rows at a time: each word of a row waits for the word before.
    fn hashes(&self, hash: &LinearHash) -> Result<Vec<u128>, OtError> {
        const TOGETHER: usize = 4;
        let tiles = self.blocks.div_ceil(MAX_BLOCKS);
        check_same(self.rows.len(), (tiles + 1) * KAPPA)?;
        let mut hashes = Vec::with_capacity(KAPPA);
        for first in (0..KAPPA).step_by(TOGETHER) {
            let mut states: [_; TOGETHER] = std::array::from_fn(|_| hash.start());
            for tile in 0..tiles {
                let row = tile * KAPPA + first;
                let rows = self.rows.get(row..row + TOGETHER).ok_or_else(uneven)?;
                for block in 0..(self.blocks - tile * MAX_BLOCKS).min(MAX_BLOCKS) {
                    for (state, row) in states.iter_mut().zip(rows) {
                        state.update(*row.get(block).ok_or_else(uneven)?);
                    }
                }
            }
            for (i, state) in states.into_iter().enumerate() {
                let row = self.rows.get(tiles * KAPPA + first + i);
                let [mask, ..] = row.ok_or_else(uneven)?;
                hashes.push(state.finish() ^ mask);
            }
        }
        Ok(hashes)
    }
}

fn row_hash(seed: &[u8; 16]) -> LinearHash {
    LinearHash::with_tag(b"keyquorum-ot/check", seed)
}

/// Rows of many tiles at the receiver, kept until their check is done.
pub struct ReceiverBatch {
    tiles: Tiles,
    /// The last word is the mask.
    choices: Zeroizing<Vec<u128>>,
}

/// Rows of many tiles at the sender, kept until their check is done.
pub struct SenderBatch {
    tiles: Tiles,
}

impl ReceiverBatch {
    /// The answer to the sender's `seed`, which must come after the corrections were sent.
    ///
    /// # Errors
    /// [`OtError::Internal`]: a proof without its mask would reveal the choices.
    pub fn prove(&self, seed: &[u8; 16]) -> Result<Vec<u8>, OtError> {
        let hash = row_hash(seed);
        Ok(proof(
            hash.masked(&self.choices)?,
            &self.tiles.hashes(&hash)?,
        ))
    }
}

impl Receiver {
    /// Tiles for all `choices` (words of 128), with a mask for the check; the corrections of all are appended to `message`.
    ///
    /// # Errors
    /// [`OtError::Entropy`].
    pub fn batch(
        &mut self,
        choices: &[u128],
        message: &mut Vec<u8>,
    ) -> Result<ReceiverBatch, OtError> {
        let mut mask = Zeroizing::new([0u8; 16]);
        crate::entropy(mask.as_mut_slice())?;
        self.batch_masked(choices, u128::from_le_bytes(*mask), message)
    }

    /// [`Receiver::batch`] with a given mask, uniform and used for these choices only: with the same choices and mask on
    /// several links the first 16 bytes of all proofs are the same.
    ///
    /// # Errors
    /// None at present.
    pub fn batch_masked(
        &mut self,
        choices: &[u128],
        mask: u128,
        message: &mut Vec<u8>,
    ) -> Result<ReceiverBatch, OtError> {
        let mut tiles = Tiles::new(choices.len());
        let mut all = Zeroizing::new(Vec::with_capacity(choices.len() + 1));
        all.extend_from_slice(choices);
        all.push(mask);
        let (given, mask) = all.split_at_mut(choices.len());
        for tile in given.chunks_mut(MAX_BLOCKS).chain([mask]) {
            let tweak = self.pads(tile, Choices::Given, message)?;
            tiles.push(tweak, &self.rows.pads);
        }
        Ok(ReceiverBatch {
            tiles,
            choices: all,
        })
    }

    /// The chosen strings of tile `tile` of a batch, after its check.
    ///
    /// # Errors
    /// [`OtError::Internal`] if the batch has no such tile, or the tile another number of strings; `strings` must not be used then.
    pub fn batch_strings(
        &self,
        batch: &ReceiverBatch,
        tile: usize,
        strings: &mut [u128],
    ) -> Result<(), OtError> {
        self.batch_words(batch, tile, 1, strings)
    }

    /// The same, with `words` words of every string: all first words, all second ones, …
    pub(crate) fn batch_words(
        &self,
        batch: &ReceiverBatch,
        tile: usize,
        words: usize,
        strings: &mut [u128],
    ) -> Result<(), OtError> {
        let (rows, tweak) = batch.tiles.get(tile, strings.len() / words.max(1))?;
        hash_columns(&self.hash, rows, tweak, words, [(0, strings)])
    }
}

impl Sender {
    /// Bytes of the corrections of a batch of `blocks` blocks, its mask included.
    pub fn batch_bytes(&self, blocks: usize) -> usize {
        (blocks + 1) * Choices::Given.block_bytes(self.link.parameters)
    }

    /// The sender's end of [`Receiver::batch`], for `blocks` blocks.
    ///
    /// # Errors
    /// [`OtError::Length`].
    pub fn batch(&mut self, blocks: usize, message: &[u8]) -> Result<SenderBatch, OtError> {
        check_length("corrections of a batch", message, self.batch_bytes(blocks))?;
        let mut tiles = Tiles::new(blocks);
        let block = Choices::Given.block_bytes(self.link.parameters);
        let (given, mask) = message.split_at(blocks * block);
        for corrections in given.chunks(MAX_BLOCKS * block).chain([mask]) {
            let tweak = self.pads(corrections.len() / block, Choices::Given, corrections)?;
            tiles.push(tweak, &self.rows.pads);
        }
        Ok(SenderBatch { tiles })
    }

    /// Verifies the receiver's proof for a batch.
    ///
    /// # Errors
    /// [`OtError::Length`]; [`OtError::Check`] if the receiver's choices are not the same in all rows.
    pub fn verify(
        &self,
        batch: &SenderBatch,
        seed: &[u8; 16],
        proof: &[u8],
    ) -> Result<(), OtError> {
        let rows = batch.tiles.hashes(&row_hash(seed))?;
        check::verify(&self.link.key, Part::Pads.bits(), &rows, proof).map(drop)
    }

    /// Both strings of the OTs of tile `tile` of a batch, after its check.
    ///
    /// # Errors
    /// [`OtError::Internal`] if the batch has no such tile, or the tile another number of strings; the strings must not be used then.
    pub fn batch_strings(
        &self,
        batch: &SenderBatch,
        tile: usize,
        zeros: &mut [u128],
        ones: &mut [u128],
    ) -> Result<(), OtError> {
        self.batch_words(batch, tile, 1, zeros, ones)
    }

    /// The same, with `words` words of every string, in the order of [`Receiver::batch_words`].
    pub(crate) fn batch_words(
        &self,
        batch: &SenderBatch,
        tile: usize,
        words: usize,
        zeros: &mut [u128],
        ones: &mut [u128],
    ) -> Result<(), OtError> {
        check_same(zeros.len(), ones.len())?;
        let (rows, tweak) = batch.tiles.get(tile, zeros.len() / words.max(1))?;
        let outputs = [(0, zeros), (self.delta(), ones)];
        hash_columns(&self.hash, rows, tweak, words, outputs)
    }
}
