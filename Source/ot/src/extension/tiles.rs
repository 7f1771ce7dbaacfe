//! One tile at a time, without check: the receiver's corrections, and what the sender makes of them.

use keyquorum_math::mask_of;

use super::{Choices, Part, Receiver, Sender, block_count, hash_columns};
use crate::tile::Row;
use crate::transpose::transpose;
use crate::{LinkKey, OtError, check_length, check_same, uneven};

impl Receiver {
    /// A part of the rows of a tile; appends the corrections to `message`.
    pub(super) fn part(
        &mut self,
        part: Part,
        choices: &mut [u128],
        source: Choices,
        message: &mut Vec<u8>,
    ) -> Result<(), OtError> {
        self.expand(part, choices.len(), |_, group, sum, _| {
            if group == 0 && source == Choices::Random {
                choices.iter_mut().zip(sum).for_each(|(r, u)| *r = *u);
                return Ok(());
            }
            for (u, r) in sum.iter().zip(choices.iter()) {
                message.extend_from_slice(&(u ^ r).to_le_bytes());
            }
            Ok(())
        })
    }

    /// The rows of pads of one tile; appends the corrections to `message`. Returns the tweak of its first column.
    pub(super) fn pads(
        &mut self,
        choices: &mut [u128],
        source: Choices,
        message: &mut Vec<u8>,
    ) -> Result<u128, OtError> {
        self.part(Part::Pads, choices, source, message)?;
        Ok(self.advance(choices.len()))
    }

    /// One tile of `choices.len()` blocks, without check: appends the corrections to `message`, and writes t, one word an
    /// OT. Returns the tweak of the first OT.
    ///
    /// # Errors
    /// [`OtError::Usage`] if the tile is empty or too large.
    pub fn tile(
        &mut self,
        choices: &mut [u128],
        source: Choices,
        message: &mut Vec<u8>,
        columns: &mut [u128],
    ) -> Result<u128, OtError> {
        check_same(columns.len(), 128 * choices.len())?;
        let first = self.pads(choices, source, message)?;
        transpose(&self.rows.pads, columns)?;
        Ok(first)
    }

    /// As [`Receiver::tile`], with the columns hashed: the chosen strings of random OTs.
    ///
    /// # Errors
    /// As [`Receiver::tile`].
    pub fn random(
        &mut self,
        choices: &mut [u128],
        source: Choices,
        message: &mut Vec<u8>,
        strings: &mut [u128],
    ) -> Result<(), OtError> {
        check_same(strings.len(), 128 * choices.len())?;
        let first = self.pads(choices, source, message)?;
        hash_columns(&self.hash, &self.rows.pads, first, 1, [(0, strings)])
    }
}

impl Sender {
    /// Δ, the secret of the pads of the link.
    pub fn delta(&self) -> u128 {
        self.link.key.pads()
    }

    /// All secrets of the link.
    pub fn key(&self) -> &LinkKey {
        &self.link.key
    }

    /// A part of the rows of a tile, from the receiver's corrections.
    pub(super) fn part(
        &mut self,
        part: Part,
        blocks: usize,
        source: Choices,
        message: &[u8],
    ) -> Result<(), OtError> {
        let blocks = block_count(blocks)?;
        let k = self.parameters().k();
        let bits = part.bits();
        let sent = bits.len() / k - usize::from(source == Choices::Random);
        check_length("corrections of OTs", message, 16 * blocks * sent)?;
        let mut corrections = message.as_chunks::<16>().0.chunks_exact(blocks);
        self.expand(part, blocks, |link, group, _, rows| {
            if group == 0 && source == Choices::Random {
                return Ok(());
            }
            let mut correction = Row::default();
            let theirs = corrections.next().ok_or_else(uneven)?;
            for (c, bytes) in correction.iter_mut().zip(theirs) {
                *c = u128::from_le_bytes(*bytes);
            }
            for (j, row) in rows.iter_mut().enumerate() {
                let bit = link.key.bit(bits.start + group * k + j)?;
                let mask = mask_of(u128::from(bit));
                for (w, c) in row.iter_mut().zip(&correction) {
                    *w ^= c & mask;
                }
            }
            Ok(())
        })
    }

    /// The rows of pads of one tile, from the receiver's corrections. Returns the tweak of its first column.
    pub(super) fn pads(
        &mut self,
        blocks: usize,
        source: Choices,
        message: &[u8],
    ) -> Result<u128, OtError> {
        self.part(Part::Pads, blocks, source, message)?;
        Ok(self.advance(blocks))
    }

    /// One tile of `blocks` blocks, without check: writes q, one word an OT. Returns the tweak of the first OT.
    ///
    /// # Errors
    /// [`OtError::Usage`] for a tile of another size than 1 to [`MAX_BLOCKS`](crate::MAX_BLOCKS), [`OtError::Length`].
    pub fn tile(
        &mut self,
        blocks: usize,
        source: Choices,
        message: &[u8],
        columns: &mut [u128],
    ) -> Result<u128, OtError> {
        check_same(columns.len(), 128 * blocks)?;
        let first = self.pads(blocks, source, message)?;
        transpose(&self.rows.pads, columns)?;
        Ok(first)
    }

    /// As [`Sender::tile`], with the columns hashed: both strings of random OTs.
    ///
    /// # Errors
    /// As [`Sender::tile`].
    pub fn random(
        &mut self,
        source: Choices,
        message: &[u8],
        zeros: &mut [u128],
        ones: &mut [u128],
    ) -> Result<(), OtError> {
        let blocks = zeros.len() / 128;
        check_same(zeros.len(), 128 * blocks)?;
        check_same(zeros.len(), ones.len())?;
        let first = self.pads(blocks, source, message)?;
        let outputs = [(0, zeros), (self.delta(), ones)];
        hash_columns(&self.hash, &self.rows.pads, first, 1, outputs)
    }
}
