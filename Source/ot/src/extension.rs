//! SoftSpokenOT (Roy, CRYPTO 2022): 128/k VOLEs over F_{2^k}, from PRFs of which the OT sender lacks one leaf, make 128
//! rows of correlated bits; transposed, column c is t_c at the receiver and q_c = t_c ⊕ r_c·Δ at the sender.
//!
//! Work goes in tiles of at most [`MAX_BLOCKS`] blocks of 128 OTs, small enough for the first-level cache. Both ends must
//! make tiles of the same sizes in the same order: they count how far the PRFs are used. Different streams of one link are
//! independent.
//!
//! [`sliced`] keeps rows as they are, also only the first few, for MACs of bits; one check covers both.
//!
//! [`Receiver::batch`] and [`Sender::batch`] keep the rows of many tiles, for the consistency check of the malicious
//! protocol (figure 10: rows are hashed by a linear universal hash, here POLYVAL over 128-bit blocks, whose key the sender
//! draws after the receiver has sent; one block of random OTs masks what the hash tells).

pub mod sliced;

use std::ops::Range;
use std::sync::Arc;

use polyval::Polyval;
use polyval::universal_hash::UniversalHash;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

use crate::aes::Key;
use crate::transpose::transpose;
use crate::{
    BIT_MAC_BITS, Hash, KAPPA, LinkKey, OtError, Parameters, ReceiverLink, Security, SenderLink,
    check_length, check_same, uneven,
};

/// Blocks of 128 OTs of one tile, at most.
pub const MAX_BLOCKS: usize = 8;

/// Bits of one row of a tile.
pub(crate) type Row = [u128; MAX_BLOCKS];
/// Rows of pads, of which columns are made.
pub(crate) type Rows = [Row; KAPPA];
/// Which rows of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Those of which pads are made.
    Pads,
    /// Those that are MACs of the choice bits.
    Macs,
}

/// All rows of a tile.
struct TileRows {
    pads: Rows,
    macs: [Row; BIT_MAC_BITS],
}

impl TileRows {
    fn new() -> Box<Self> {
        Box::new(Self {
            pads: [Row::default(); KAPPA],
            macs: [Row::default(); BIT_MAC_BITS],
        })
    }

    fn part(&mut self, part: Part) -> &mut [Row] {
        match part {
            Part::Pads => &mut self.pads,
            Part::Macs => &mut self.macs,
        }
    }
}

impl Drop for TileRows {
    fn drop(&mut self) {
        self.pads.as_flattened_mut().zeroize();
        self.macs.as_flattened_mut().zeroize();
    }
}

impl Part {
    /// The bits of the link's key to which the rows belong.
    fn bits(self) -> Range<usize> {
        match self {
            Self::Pads => 0..KAPPA,
            Self::Macs => KAPPA..KAPPA + BIT_MAC_BITS,
        }
    }
}

fn no_rows() -> OtError {
    OtError::Usage("this link has no keys of MACs: set it up with them".to_owned())
}

/// Bytes of the receiver's answer to the consistency check.
pub const PROOF_BYTES: usize = 16 * (KAPPA + 1);

/// Where the choice bits of a tile come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choices {
    /// The caller's.
    Given,
    /// Drawn by the extension, which saves one row of corrections.
    Random,
}

impl Choices {
    /// Bytes that the receiver sends for a block of 128 OTs.
    pub fn block_bytes(self, parameters: Parameters) -> usize {
        let rows = parameters.groups() - usize::from(self == Self::Random);
        16 * rows
    }
}

fn xor(a: &mut Row, b: &Row) {
    for (a, b) in a.iter_mut().zip(b) {
        *a ^= b;
    }
}

/// Output of the VOLEs before correction: `rows[j]` of each group is the sum of the leaves whose number has bit j, and
/// `each(group, sum of all leaves, rows)` is told the sum. `first`: 1 if leaf 0 is missing.
struct Expander {
    leaves: Vec<Row>,
}

impl Expander {
    fn new(parameters: Parameters) -> Self {
        Self {
            leaves: vec![Row::default(); 1 << parameters.k()],
        }
    }

    #[inline]
    fn group(
        &mut self,
        keys: &[Key],
        first: usize,
        stream: u64,
        position: u64,
        blocks: usize,
        rows: &mut [Row],
    ) -> Result<Row, OtError> {
        let mut count = self.leaves.len();
        check_same(keys.len(), count)?;
        check_same(1 << rows.len(), count)?;
        for (leaf, key) in self.leaves.iter_mut().zip(keys).skip(first) {
            key.stream(stream, position, leaf.get_mut(..blocks).ok_or_else(uneven)?);
        }
        for row in rows.iter_mut() {
            let mut odd = Row::default();
            count /= 2;
            for i in 0..count {
                let Some([even, leaf]) = self.leaves.get(2 * i..2 * i + 2) else {
                    return Err(uneven());
                };
                xor(&mut odd, leaf);
                let mut sum = *even;
                xor(&mut sum, leaf);
                *self.leaves.get_mut(i).ok_or_else(uneven)? = sum;
            }
            *row = odd;
        }
        let root = self.leaves.first_mut().ok_or_else(uneven)?;
        let sum = *root;
        root.zeroize();
        Ok(sum)
    }
}

impl Drop for Expander {
    fn drop(&mut self) {
        self.leaves.as_flattened_mut().zeroize();
    }
}

fn block_count(words: usize) -> Result<usize, OtError> {
    if (1..=MAX_BLOCKS).contains(&words) {
        return Ok(words);
    }
    Err(OtError::Usage(format!(
        "a tile has 1 to {MAX_BLOCKS} blocks of 128 OTs, not {words}"
    )))
}

/// The receiver's end of one stream of a link.
pub struct Receiver {
    link: Arc<ReceiverLink>,
    stream: u64,
    position: u64,
    hash: Hash,
    expander: Expander,
    rows: Box<TileRows>,
}

/// The sender's end of one stream of a link.
pub struct Sender {
    link: Arc<SenderLink>,
    stream: u64,
    position: u64,
    hash: Hash,
    expander: Expander,
    rows: Box<TileRows>,
}

fn tweak(stream: u64, position: u64) -> u128 {
    // Columns, not blocks: a stream has less than 2^57 blocks.
    u128::from(stream) << 64 | u128::from(position) << 7
}

/// Tweak of further words of the same OTs: streams stay below 2^56.
fn further(tweak: u128, word: usize) -> u128 {
    tweak ^ (word as u128) << 120
}

impl Receiver {
    /// The same stream, `blocks` blocks further on, for another thread.
    pub(crate) fn fork(&self, blocks: usize) -> Self {
        let mut fork = Self::new(Arc::clone(&self.link), self.stream, self.hash.security());
        fork.position = self.position + blocks as u64;
        fork
    }

    /// Counts blocks that forks have used.
    pub(crate) fn skip(&mut self, blocks: usize) {
        self.position += blocks as u64;
    }

    /// Opens stream `stream` of a link; no stream may be opened twice.
    pub fn new(link: Arc<ReceiverLink>, stream: u64, security: Security) -> Self {
        Self {
            expander: Expander::new(link.parameters),
            link,
            stream,
            position: 0,
            hash: Hash::new(security),
            rows: TileRows::new(),
        }
    }

    /// Parameters of the link.
    pub fn parameters(&self) -> Parameters {
        self.link.parameters
    }

    /// The hash for the columns.
    pub fn hash(&self) -> &Hash {
        &self.hash
    }

    /// One tile of rows of pads; appends the corrections to `message`. Returns the tweak of its first column.
    fn rows(
        &mut self,
        choices: &mut [u128],
        source: Choices,
        message: &mut Vec<u8>,
    ) -> Result<u128, OtError> {
        self.part(Part::Pads, choices, source, message)?;
        Ok(self.advance(choices.len()))
    }

    /// Goes on behind a tile of `blocks` blocks; the tweak of its first column.
    fn advance(&mut self, blocks: usize) -> u128 {
        let first = tweak(self.stream, self.position);
        self.position += blocks as u64;
        first
    }

    /// A part of the rows of a tile.
    fn part(
        &mut self,
        part: Part,
        choices: &mut [u128],
        source: Choices,
        message: &mut Vec<u8>,
    ) -> Result<(), OtError> {
        let blocks = block_count(choices.len())?;
        let k = self.link.parameters.k();
        let Range { start, end } = part.bits();
        let keys = self.link.keys.get((start / k) << k..(end / k) << k);
        let rows = self.rows.part(part);
        let keys = keys.ok_or_else(no_rows)?;
        // A group for every k rows: none keeps what it had before.
        check_same(rows.len(), (keys.len() >> k) * k)?;
        for (group, (keys, rows)) in keys
            .chunks_exact(1 << k)
            .zip(rows.chunks_exact_mut(k))
            .enumerate()
        {
            let sum = self
                .expander
                .group(keys, 0, self.stream, self.position, blocks, rows)?;
            if group == 0 && source == Choices::Random {
                for (r, u) in choices.iter_mut().zip(&sum) {
                    *r = *u;
                }
                continue;
            }
            for (u, r) in sum.iter().zip(choices.iter()) {
                message.extend_from_slice(&(u ^ r).to_le_bytes());
            }
        }
        Ok(())
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
        let first = self.rows(choices, source, message)?;
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
        let first = self.rows(choices, source, message)?;
        let mut columns = [0u128; 128 * MAX_BLOCKS];
        let columns = columns.get_mut(..strings.len()).ok_or_else(uneven)?;
        transpose(&self.rows.pads, columns)?;
        self.hash.hash(first, 0, columns, strings)?;
        columns.zeroize();
        Ok(())
    }

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
        let mut batch = ReceiverBatch {
            rows: Zeroizing::new(Vec::with_capacity(
                KAPPA * (1 + choices.len().div_ceil(MAX_BLOCKS)),
            )),
            choices: Zeroizing::new(Vec::with_capacity(choices.len() + 1)),
            tweaks: Vec::new(),
        };
        batch.choices.extend_from_slice(choices);
        batch.choices.push(mask);
        let mut all = std::mem::take(&mut *batch.choices);
        let (given, mask) = all.split_at_mut(choices.len());
        for part in given.chunks_mut(MAX_BLOCKS).chain([mask]) {
            batch.tweaks.push(self.rows(part, Choices::Given, message)?);
            batch.rows.extend_from_slice(&self.rows.pads);
        }
        *batch.choices = all;
        Ok(batch)
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
        let blocks = batch.choices.len().saturating_sub(1);
        let count = strings.len() / words.max(1);
        check_same(strings.len(), words * count)?;
        let (rows, tweak) = tile_rows(&batch.rows, &batch.tweaks, tile, blocks, count)?;
        let mut columns = Zeroizing::new([0u128; 128 * MAX_BLOCKS]);
        let columns = columns.get_mut(..count).ok_or_else(uneven)?;
        transpose(rows, columns)?;
        for (word, strings) in strings.chunks_exact_mut(count).enumerate() {
            self.hash.hash(further(tweak, word), 0, columns, strings)?;
        }
        Ok(())
    }
}

impl Sender {
    /// The same stream, `blocks` blocks further on, for another thread.
    pub(crate) fn fork(&self, blocks: usize) -> Self {
        let mut fork = Self::new(Arc::clone(&self.link), self.stream, self.hash.security());
        fork.position = self.position + blocks as u64;
        fork
    }

    /// Counts blocks that forks have used.
    pub(crate) fn skip(&mut self, blocks: usize) {
        self.position += blocks as u64;
    }

    /// Opens stream `stream` of a link; no stream may be opened twice.
    pub fn new(link: Arc<SenderLink>, stream: u64, security: Security) -> Self {
        Self {
            expander: Expander::new(link.parameters),
            link,
            stream,
            position: 0,
            hash: Hash::new(security),
            rows: TileRows::new(),
        }
    }

    /// Parameters of the link.
    pub fn parameters(&self) -> Parameters {
        self.link.parameters
    }

    /// The hash for the columns.
    pub fn hash(&self) -> &Hash {
        &self.hash
    }

    /// Δ, the secret of the pads of the link.
    pub fn delta(&self) -> u128 {
        self.link.key.pads()
    }

    /// All secrets of the link.
    pub fn key(&self) -> &LinkKey {
        &self.link.key
    }

    /// One tile of rows of pads, from the receiver's corrections.
    fn rows(&mut self, blocks: usize, source: Choices, message: &[u8]) -> Result<u128, OtError> {
        self.part(Part::Pads, blocks, source, message)?;
        Ok(self.advance(blocks))
    }

    /// Goes on behind a tile of `blocks` blocks; the tweak of its first column.
    fn advance(&mut self, blocks: usize) -> u128 {
        let first = tweak(self.stream, self.position);
        self.position += blocks as u64;
        first
    }

    /// A part of the rows of a tile.
    fn part(
        &mut self,
        part: Part,
        blocks: usize,
        source: Choices,
        message: &[u8],
    ) -> Result<(), OtError> {
        let blocks = block_count(blocks)?;
        let k = self.link.parameters.k();
        let Range { start, end } = part.bits();
        let sent = (end - start) / k - usize::from(source == Choices::Random);
        check_length("corrections of OTs", message, 16 * blocks * sent)?;
        let mut corrections = message.as_chunks::<16>().0.chunks_exact(blocks);
        let keys = self.link.keys.get((start / k) << k..(end / k) << k);
        let rows = self.rows.part(part);
        let keys = keys.ok_or_else(no_rows)?;
        // A group for every k rows: none keeps what it had before.
        check_same(rows.len(), (keys.len() >> k) * k)?;
        for (group, (keys, rows)) in keys
            .chunks_exact(1 << k)
            .zip(rows.chunks_exact_mut(k))
            .enumerate()
        {
            let mut sum = self
                .expander
                .group(keys, 1, self.stream, self.position, blocks, rows)?;
            sum.zeroize();
            if group == 0 && source == Choices::Random {
                continue;
            }
            let mut correction = Row::default();
            let theirs = corrections.next().ok_or_else(uneven)?;
            for (c, bytes) in correction.iter_mut().zip(theirs) {
                *c = u128::from_le_bytes(*bytes);
            }
            for (j, row) in rows.iter_mut().enumerate() {
                let bit = self.link.key.bit(start + group * k + j)?;
                let mask = u128::from(bit).wrapping_neg();
                for (w, c) in row.iter_mut().zip(&correction) {
                    *w ^= c & mask;
                }
            }
        }
        Ok(())
    }

    /// One tile of `blocks` blocks, without check: writes q, one word an OT. Returns the tweak of the first OT.
    ///
    /// # Errors
    /// [`OtError::Usage`] for a tile of another size than 1 to [`MAX_BLOCKS`], [`OtError::Length`].
    pub fn tile(
        &mut self,
        blocks: usize,
        source: Choices,
        message: &[u8],
        columns: &mut [u128],
    ) -> Result<u128, OtError> {
        check_same(columns.len(), 128 * blocks)?;
        let first = self.rows(blocks, source, message)?;
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
        let first = self.rows(blocks, source, message)?;
        let mut columns = [0u128; 128 * MAX_BLOCKS];
        let columns = columns.get_mut(..zeros.len()).ok_or_else(uneven)?;
        transpose(&self.rows.pads, columns)?;
        self.hash.hash(first, 0, columns, zeros)?;
        self.hash.hash(first, self.delta(), columns, ones)?;
        columns.zeroize();
        Ok(())
    }

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
        let tiles = 1 + blocks.div_ceil(MAX_BLOCKS);
        let mut batch = SenderBatch {
            rows: Zeroizing::new(Vec::with_capacity(KAPPA * tiles)),
            blocks,
            tweaks: Vec::new(),
        };
        let block = Choices::Given.block_bytes(self.link.parameters);
        let (given, mask) = message.split_at(blocks * block);
        for part in given.chunks(MAX_BLOCKS * block).chain([mask]) {
            batch
                .tweaks
                .push(self.rows(part.len() / block, Choices::Given, part)?);
            batch.rows.extend_from_slice(&self.rows.pads);
        }
        Ok(batch)
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
        check_length("the proof of the OT extension", proof, PROOF_BYTES)?;
        let hashed = row_hashes(seed, &batch.rows, batch.blocks)?;
        let words = proof.as_chunks::<16>().0;
        let (choices, theirs) = words.split_first().ok_or_else(uneven)?;
        check_same(hashed.len(), KAPPA)?;
        check_same(hashed.len(), theirs.len())?;
        let choices = u128::from_le_bytes(*choices);
        let mut wrong = 0u128;
        for (i, (ours, theirs)) in hashed.iter().zip(theirs).enumerate() {
            let mask = u128::from(self.link.key.bit(i)?).wrapping_neg();
            wrong |= ours ^ u128::from_le_bytes(*theirs) ^ (choices & mask);
        }
        if bool::from(wrong.ct_eq(&0)) {
            Ok(())
        } else {
            Err(OtError::Check("the OT extension"))
        }
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
        let count = zeros.len() / words.max(1);
        check_same(zeros.len(), words * count)?;
        let (rows, tweak) = tile_rows(&batch.rows, &batch.tweaks, tile, batch.blocks, count)?;
        let mut columns = Zeroizing::new([0u128; 128 * MAX_BLOCKS]);
        let columns = columns.get_mut(..count).ok_or_else(uneven)?;
        transpose(rows, columns)?;
        let each = zeros
            .chunks_exact_mut(count)
            .zip(ones.chunks_exact_mut(count));
        for (word, (zeros, ones)) in each.enumerate() {
            let tweak = further(tweak, word);
            self.hash.hash(tweak, 0, columns, zeros)?;
            self.hash.hash(tweak, self.delta(), columns, ones)?;
        }
        Ok(())
    }
}

/// Rows and tweak of a tile of a batch of `blocks` blocks, if it has as many columns. The tile of the mask, which comes last, has no
/// strings.
fn tile_rows<'a>(
    rows: &'a [Row],
    tweaks: &[u128],
    tile: usize,
    blocks: usize,
    columns: usize,
) -> Result<(&'a Rows, u128), OtError> {
    let absent = OtError::Internal("a tile of oblivious transfers that its batch does not have");
    let left = tile
        .checked_mul(MAX_BLOCKS)
        .and_then(|before| blocks.checked_sub(before));
    let rows = rows
        .get(tile.wrapping_mul(KAPPA)..)
        .and_then(|rows| rows.first_chunk());
    match (rows, tweaks.get(tile), left) {
        (Some(rows), Some(tweak), Some(left)) if left > 0 => {
            check_same(columns, 128 * left.min(MAX_BLOCKS))?;
            Ok((rows, *tweak))
        }
        _ => Err(absent),
    }
}

/// Rows of many tiles at the receiver, kept until their check is done.
pub struct ReceiverBatch {
    rows: Zeroizing<Vec<Row>>,
    choices: Zeroizing<Vec<u128>>,
    tweaks: Vec<u128>,
}

impl ReceiverBatch {
    /// The answer to the sender's `seed`, which must come after the corrections were sent.
    ///
    /// # Errors
    /// [`OtError::Internal`]: a proof without its mask would tell the choices.
    pub fn prove(&self, seed: &[u8; 16]) -> Result<Vec<u8>, OtError> {
        let (mask, given) = self.choices.split_last().ok_or_else(uneven)?;
        let mut hash = RowHash::new(seed);
        given.iter().for_each(|word| hash.update(*word));
        let mut proof = Vec::with_capacity(PROOF_BYTES);
        proof.extend_from_slice(&(hash.finish() ^ mask).to_le_bytes());
        for row in row_hashes(seed, &self.rows, given.len())? {
            proof.extend_from_slice(&row.to_le_bytes());
        }
        Ok(proof)
    }
}

/// Rows of many tiles at the sender, kept until their check is done.
pub struct SenderBatch {
    rows: Zeroizing<Vec<Row>>,
    blocks: usize,
    tweaks: Vec<u128>,
}

/// A key of POLYVAL: the first half of a digest.
fn hash_key(digest: [u8; 32]) -> [u8; 16] {
    let mut key = [0; 16];
    key.copy_from_slice(digest.split_at(16).0);
    key
}

/// A linear universal hash of a row: POLYVAL under a public key.
struct RowHash(Polyval);

impl RowHash {
    fn new(seed: &[u8; 16]) -> Self {
        let digest = Sha256::new()
            .chain_update(b"keyquorum-ot/check")
            .chain_update(seed)
            .finalize();
        let digest: [u8; 32] = digest.into();
        let key = hash_key(digest);
        Self(Polyval::new((&key).into()))
    }

    fn update(&mut self, word: u128) {
        self.0.update(&[word.to_le_bytes().into()]);
    }

    fn finish(self) -> u128 {
        u128::from_le_bytes(self.0.finalize().into())
    }
}

/// The hash of each of the 128 rows over `blocks` blocks, plus the row's block of the mask tile, which comes last. A few rows
/// at a time: each word of a row waits for the word before.
fn row_hashes(seed: &[u8; 16], rows: &[Row], blocks: usize) -> Result<Vec<u128>, OtError> {
    const TOGETHER: usize = 4;
    let tiles = blocks.div_ceil(MAX_BLOCKS);
    check_same(rows.len(), (tiles + 1) * KAPPA)?;
    let hash = RowHash::new(seed);
    let mut hashes = Vec::with_capacity(KAPPA);
    for first in (0..KAPPA).step_by(TOGETHER) {
        let mut states: [_; TOGETHER] = std::array::from_fn(|_| RowHash(hash.0.clone()));
        for tile in 0..tiles {
            let row = tile * KAPPA + first;
            let rows = rows.get(row..row + TOGETHER).ok_or_else(uneven)?;
            for block in 0..(blocks - tile * MAX_BLOCKS).min(MAX_BLOCKS) {
                for (state, row) in states.iter_mut().zip(rows) {
                    state.update(*row.get(block).ok_or_else(uneven)?);
                }
            }
        }
        for (i, state) in states.into_iter().enumerate() {
            let row = rows.get(tiles * KAPPA + first + i);
            let [mask, ..] = row.ok_or_else(uneven)?;
            hashes.push(state.finish() ^ mask);
        }
    }
    Ok(hashes)
}
