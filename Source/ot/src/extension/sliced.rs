//! Batches whose rows stay bit-sliced: row j holds bit j of all columns. Rows under the key of MACs of bits are MACs of the choice bits
//! (a subspace VOLE), at 1/k bits an OT and row; with the rows of pads beside them the same choices make oblivious transfer as well.
//!
//! The check is that of `batch`, over these rows. If all links of a receiver get one key of the hash and one masking block,
//! equal hashes prove equal choices on all of them.

use std::sync::Arc;

use zeroize::{Zeroize, Zeroizing};

use super::check::{self, LinearHash, proof};
use super::{Choices, Part, Receiver, Sender, TileRows, further};
use crate::tile::{MAX_BLOCKS, Row, Rows, TILE};
use crate::transpose::{planes, transpose};
use crate::{BIT_MAC_BITS, Hash, KAPPA, OtError, SenderLink, check_length, check_same, uneven};

/// Outputs of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// MACs of the choices.
    Macs,
    /// MACs and oblivious transfer.
    MacsAndPads,
}

impl Kind {
    /// Number of rows: those of MACs come first.
    pub fn rows(self) -> usize {
        match self {
            Self::Macs => BIT_MAC_BITS,
            Self::MacsAndPads => BIT_MAC_BITS + KAPPA,
        }
    }

    fn parts(self) -> &'static [Part] {
        match self {
            Self::Macs => &[Part::Macs],
            Self::MacsAndPads => &[Part::Macs, Part::Pads],
        }
    }
}

/// The rows of a batch: `blocks` blocks each, then one more block that masks the check.
struct Sliced {
    rows: Zeroizing<Vec<u128>>,
    kind: Kind,
    blocks: usize,
    /// Tweak of the first column.
    tweak: u128,
}

impl Sliced {
    fn new(kind: Kind, blocks: usize, tweak: u128) -> Self {
        Self {
            rows: Zeroizing::new(vec![0; kind.rows() * (blocks + 1)]),
            kind,
            blocks,
            tweak,
        }
    }

    fn store(&mut self, tile: usize, size: usize, rows: &TileRows) -> Result<(), OtError> {
        let stride = self.blocks + 1;
        let rows = rows.macs.iter().chain(&rows.pads);
        for (to, from) in self.rows.chunks_exact_mut(stride).zip(rows) {
            let first = tile * MAX_BLOCKS;
            let to = to.get_mut(first..first + size).ok_or_else(uneven)?;
            to.copy_from_slice(from.get(..size).ok_or_else(uneven)?);
        }
        Ok(())
    }

    fn row(&self, j: usize) -> Result<&[u64], OtError> {
        let first = j * (self.blocks + 1);
        let row = self.rows.get(first..first + self.blocks);
        match row {
            Some(row) if j < BIT_MAC_BITS => Ok(bytemuck::cast_slice(row)),
            _ => Err(OtError::Internal("a row of MACs beyond those of their key")),
        }
    }

    fn hashes(&self, hash: &LinearHash) -> Result<Vec<u128>, OtError> {
        self.rows
            .chunks_exact(self.blocks + 1)
            .map(|row| hash.masked(row))
            .collect()
    }

    fn strings(
        &self,
        hash: &Hash,
        offset: u128,
        words: usize,
    ) -> Result<Zeroizing<Vec<u128>>, OtError> {
        let n = 128 * self.blocks;
        let mut strings = Zeroizing::new(vec![0; words * n]);
        self.columns(|tweak, columns| {
            let first = (tweak - self.tweak) as usize;
            for (word, strings) in strings.chunks_exact_mut(n.max(1)).enumerate() {
                let strings = strings.get_mut(first..first + columns.len());
                let strings = strings.ok_or_else(uneven)?;
                hash.hash(further(tweak, word), offset, columns, strings)?;
            }
            Ok(())
        })?;
        Ok(strings)
    }

    /// Columns of each tile, for `each(tweak, columns)`.
    fn columns(
        &self,
        mut each: impl FnMut(u128, &[u128]) -> Result<(), OtError>,
    ) -> Result<(), OtError> {
        if self.kind != Kind::MacsAndPads {
            return Err(OtError::Internal("pads of a batch that makes MACs alone"));
        }
        let mut rows: Box<Rows> = Box::new([Row::default(); KAPPA]);
        let mut columns = vec![0u128; TILE];
        for first in (0..self.blocks).step_by(MAX_BLOCKS) {
            let size = MAX_BLOCKS.min(self.blocks - first);
            let pads = self.rows.chunks_exact(self.blocks + 1).skip(BIT_MAC_BITS);
            for (to, from) in rows.iter_mut().zip(pads) {
                let to = to.get_mut(..size).ok_or_else(uneven)?;
                to.copy_from_slice(from.get(first..first + size).ok_or_else(uneven)?);
            }
            let columns = columns.get_mut(..128 * size).ok_or_else(uneven)?;
            transpose(&rows, columns)?;
            each(self.tweak + 128 * first as u128, columns)?;
        }
        rows.as_flattened_mut().zeroize();
        columns.zeroize();
        Ok(())
    }
}

/// Bytes that the receiver of a batch of `blocks` blocks sends, mask included.
pub fn correction_bytes(parameters: crate::Parameters, kind: Kind, blocks: usize) -> usize {
    16 * (blocks + 1) * (kind.rows() / parameters.k())
}

/// Bytes of the receiver's answer to the check.
pub fn proof_bytes(kind: Kind) -> usize {
    check::proof_bytes(kind.rows())
}

/// The receiver's end of a batch.
pub struct SlicedReceiver {
    sliced: Sliced,
    choices: Zeroizing<Vec<u128>>,
}

impl Receiver {
    /// OTs with these choices (lanes of 64, an even number) and this masking block, which must be uniform; appends the corrections to
    /// `message`.
    ///
    /// # Errors
    /// [`OtError::Usage`] for an odd number of lanes, or a link without keys of MACs.
    pub fn sliced(
        &mut self,
        kind: Kind,
        choices: &[u64],
        mask: u128,
        message: &mut Vec<u8>,
    ) -> Result<SlicedReceiver, OtError> {
        let (pairs, rest) = choices.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(OtError::Usage(format!(
                "OTs come in blocks of 128, two lanes: {} lanes were given",
                choices.len()
            )));
        }
        let mut words = Zeroizing::new(Vec::with_capacity(pairs.len() + 1));
        words.extend(
            pairs
                .iter()
                .map(|[low, high]| u128::from(*low) | u128::from(*high) << 64),
        );
        words.push(mask);
        let mut sliced = Sliced::new(kind, pairs.len(), self.advance(0));
        message.reserve(correction_bytes(self.parameters(), kind, pairs.len()));
        for (tile, choices) in words.chunks_mut(MAX_BLOCKS).enumerate() {
            for part in kind.parts() {
                self.part(*part, choices, Choices::Given, message)?;
            }
            self.advance(choices.len());
            sliced.store(tile, choices.len(), &self.rows)?;
        }
        Ok(SlicedReceiver {
            sliced,
            choices: words,
        })
    }
}

impl SlicedReceiver {
    /// The answer to the seed of the check: hash of the choices, hashes of the rows.
    ///
    /// # Errors
    /// [`OtError::Internal`]: a proof without its mask would reveal the choices.
    pub fn prove(&self, seed: &[u8]) -> Result<Vec<u8>, OtError> {
        let hash = LinearHash::new(seed);
        Ok(proof(
            hash.masked(&self.choices)?,
            &self.sliced.hashes(&hash)?,
        ))
    }

    /// Row `j` of the MACs: bit j of t for every OT, in lanes.
    ///
    /// # Errors
    /// [`OtError::Internal`] if there is no such row.
    pub fn row(&self, j: usize) -> Result<&[u64], OtError> {
        self.sliced.row(j)
    }

    /// Adds bit w of the chosen string of every OT to `out[w]`, for as many bits (at most 64) as `out` has rows. Only for
    /// batches with pads, after their check.
    ///
    /// # Errors
    /// [`OtError::Internal`] for a batch without pads, or rows of another length.
    pub fn add_strings(&self, hash: &Hash, out: &mut [Vec<u64>]) -> Result<(), OtError> {
        let mut strings = vec![0u128; TILE];
        let mut adder = Adder::new(out.len());
        self.sliced.columns(|tweak, columns| {
            let strings = strings.get_mut(..columns.len()).ok_or_else(uneven)?;
            hash.hash(tweak, 0, columns, strings)?;
            adder.put(strings.iter().map(|s| *s as u64))
        })?;
        strings.zeroize();
        adder.add(out)
    }

    /// `words` words of the chosen string of every OT: all first ones, all second ones, … Only for batches with pads, after their
    /// check, and in place of [`SlicedReceiver::add_strings`], whose strings are the first words.
    ///
    /// # Errors
    /// [`OtError::Internal`] for a batch without pads.
    pub fn strings(&self, hash: &Hash, words: usize) -> Result<Zeroizing<Vec<u128>>, OtError> {
        self.sliced.strings(hash, 0, words)
    }
}

/// Collects words and adds their planes.
struct Adder {
    words: Zeroizing<Vec<u64>>,
    planes: Vec<Vec<u64>>,
}

impl Adder {
    fn new(width: usize) -> Self {
        Self {
            words: Zeroizing::new(Vec::with_capacity(TILE)),
            planes: vec![Vec::new(); width],
        }
    }

    fn put(&mut self, words: impl Iterator<Item = u64>) -> Result<(), OtError> {
        self.words.clear();
        self.words.extend(words);
        planes(&self.words, &mut self.planes)
    }

    fn add(mut self, out: &mut [Vec<u64>]) -> Result<(), OtError> {
        check_same(out.len(), self.planes.len())?;
        for (out, plane) in out.iter_mut().zip(&mut self.planes) {
            check_same(out.len(), plane.len())?;
            for (o, p) in out.iter_mut().zip(plane.iter()) {
                *o ^= p;
            }
            plane.zeroize();
        }
        Ok(())
    }
}

/// The sender's end of a batch.
pub struct SlicedSender {
    sliced: Sliced,
    link: Arc<SenderLink>,
}

impl Sender {
    /// The sender's end of [`Receiver::sliced`], for `blocks` blocks.
    ///
    /// # Errors
    /// [`OtError::Length`]; [`OtError::Usage`] for a link without keys of MACs.
    pub fn sliced(
        &mut self,
        kind: Kind,
        blocks: usize,
        message: &[u8],
    ) -> Result<SlicedSender, OtError> {
        let expected = correction_bytes(self.parameters(), kind, blocks);
        check_length("corrections of OTs", message, expected)?;
        let mut sliced = Sliced::new(kind, blocks, self.advance(0));
        let k = self.parameters().k();
        let block = correction_bytes(self.parameters(), kind, 0);
        for (tile, message) in message.chunks(MAX_BLOCKS * block).enumerate() {
            let size = message.len() / block;
            let mut rest = message;
            for part in kind.parts() {
                let bytes = 16 * size * (part.bits().len() / k);
                let (now, later) = rest.split_at_checked(bytes).ok_or_else(uneven)?;
                rest = later;
                self.part(*part, size, Choices::Given, now)?;
            }
            self.advance(size);
            sliced.store(tile, size, &self.rows)?;
        }
        Ok(SlicedSender {
            sliced,
            link: Arc::clone(&self.link),
        })
    }
}

impl SlicedSender {
    /// Verifies the receiver's proof; returns the hash of its choices, to be compared among all senders.
    ///
    /// # Errors
    /// [`OtError::Length`]; [`OtError::Check`] if the receiver's choices are not the same in all rows.
    pub fn verify(&self, seed: &[u8], proof: &[u8]) -> Result<u128, OtError> {
        let rows = self.sliced.hashes(&LinearHash::new(seed))?;
        let parts = self.sliced.kind.parts().iter();
        let bits = parts.flat_map(|part| part.bits());
        check::verify(&self.link.key, bits, &rows, proof)
    }

    /// Row `j` of the MACs: bit j of q for every OT, in lanes.
    ///
    /// # Errors
    /// [`OtError::Internal`] if there is no such row.
    pub fn row(&self, j: usize) -> Result<&[u64], OtError> {
        self.sliced.row(j)
    }

    /// `words` words of both strings of every OT, in the order of [`SlicedReceiver::strings`].
    ///
    /// # Errors
    /// [`OtError::Internal`] for a batch without pads.
    pub fn strings(&self, hash: &Hash, words: usize) -> Result<[Zeroizing<Vec<u128>>; 2], OtError> {
        let string = |offset| self.sliced.strings(hash, offset, words);
        Ok([string(0)?, string(self.link.key.pads())?])
    }

    /// Adds bit w of string 0 of every OT to `zeros[w]`, and bit w of the sum of both strings to `sums[w]`. Only for batches
    /// with pads, after their check.
    ///
    /// # Errors
    /// [`OtError::Internal`] for a batch without pads, or rows of another length.
    pub fn add_strings(
        &self,
        hash: &Hash,
        zeros: &mut [Vec<u64>],
        sums: &mut [Vec<u64>],
    ) -> Result<(), OtError> {
        let delta = self.link.key.pads();
        let mut first = vec![0u128; TILE];
        let mut second = vec![0u128; TILE];
        let (mut low, mut both) = (Adder::new(zeros.len()), Adder::new(sums.len()));
        self.sliced.columns(|tweak, columns| {
            let first = first.get_mut(..columns.len()).ok_or_else(uneven)?;
            let second = second.get_mut(..columns.len()).ok_or_else(uneven)?;
            hash.hash(tweak, 0, columns, first)?;
            hash.hash(tweak, delta, columns, second)?;
            low.put(first.iter().map(|s| *s as u64))?;
            both.put(first.iter().zip(second.iter()).map(|(a, b)| (a ^ b) as u64))
        })?;
        first.zeroize();
        second.zeroize();
        low.add(zeros)?;
        both.add(sums)
    }
}
