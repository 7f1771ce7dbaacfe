//! Batches whose rows stay bit-sliced: row j holds bit j of all columns. The first rows alone, with Δ cut to as many bits,
//! are MACs of the choice bits (a subspace VOLE), at 1/k bits an OT and row; all rows make oblivious transfer as well.
//!
//! The check is that of figure 10 of the SoftSpokenOT paper: the receiver sends a linear universal hash of its choices and
//! of every row under a key that was fixed after the corrections; the last block of choices, random, masks what it tells. A
//! receiver that used other choices in some groups of rows passes only if it guesses the bits of Δ in these groups. If all
//! links of a receiver get one key and one masking block, equal hashes prove equal choices on all of them.

use polyval::Polyval;
use polyval::universal_hash::UniversalHash;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

use super::{Choices, MAX_BLOCKS, Receiver, Row, Rows, Sender, tweak};
use crate::transpose::{planes, transpose};
use crate::{Hash, KAPPA, OtError, check_length};

/// A universal hash that is linear over bits: POLYVAL of a vector of 128-bit blocks under a public key.
pub struct LinearHash(Polyval);

impl LinearHash {
    /// The hash with the key that belongs to this seed.
    pub fn new(seed: &[u8]) -> Self {
        let digest = Sha256::new()
            .chain_update(b"keyquorum-ot/linear")
            .chain_update(seed)
            .finalize();
        let mut key = [0u8; 16];
        for (k, d) in key.iter_mut().zip(digest) {
            *k = d;
        }
        Self(Polyval::new((&key).into()))
    }

    /// Hash of whole blocks.
    pub fn blocks(&self, words: &[u128]) -> u128 {
        let mut state = self.0.clone();
        let bytes: &[[u8; 16]] = bytemuck::cast_slice(words);
        state.update(aes::cipher::Array::cast_slice_from_core(bytes));
        u128::from_le_bytes(state.finalize().into())
    }

    /// Hash of an even number of lanes.
    pub fn lanes(&self, lanes: &[u64]) -> u128 {
        let mut state = self.0.clone();
        let bytes: &[u8] = bytemuck::cast_slice(lanes);
        state.update(aes::cipher::Array::cast_slice_from_core(
            bytes.as_chunks().0,
        ));
        u128::from_le_bytes(state.finalize().into())
    }
}

/// The rows of a batch: `count` rows of `blocks` blocks, then one more block of each that masks the check.
struct Sliced {
    rows: Zeroizing<Vec<u128>>,
    count: usize,
    blocks: usize,
    /// Tweak of the first column.
    tweak: u128,
}

impl Sliced {
    fn new(count: usize, blocks: usize, tweak: u128) -> Self {
        Self {
            rows: Zeroizing::new(vec![0; count * (blocks + 1)]),
            count,
            blocks,
            tweak,
        }
    }

    fn store(&mut self, tile: usize, size: usize, rows: &Rows) {
        let stride = self.blocks + 1;
        for (to, from) in self.rows.chunks_exact_mut(stride).zip(rows) {
            let first = tile * MAX_BLOCKS;
            if let (Some(to), Some(from)) = (to.get_mut(first..first + size), from.get(..size)) {
                to.copy_from_slice(from);
            }
        }
    }

    fn row(&self, j: usize) -> &[u64] {
        let first = j * (self.blocks + 1);
        let row = self.rows.get(first..first + self.blocks);
        bytemuck::cast_slice(row.unwrap_or_default())
    }

    fn hashes(&self, hash: &LinearHash) -> Vec<u128> {
        self.rows
            .chunks_exact(self.blocks + 1)
            .map(|row| masked_hash(hash, row))
            .collect()
    }

    fn strings(&self, hash: &Hash, offset: u128, words: usize) -> Zeroizing<Vec<u128>> {
        let n = 128 * self.blocks;
        let mut strings = Zeroizing::new(vec![0; words * n]);
        self.columns(|tweak, columns| {
            let first = (tweak - self.tweak) as usize;
            for (word, strings) in strings.chunks_exact_mut(n.max(1)).enumerate() {
                let strings = strings.get_mut(first..first + columns.len());
                hash.hash(
                    further(tweak, word),
                    offset,
                    columns,
                    strings.unwrap_or_default(),
                );
            }
        });
        strings
    }

    /// Columns of each tile, for `each(tweak, columns)`.
    fn columns(&self, mut each: impl FnMut(u128, &[u128])) {
        let mut rows: Box<Rows> = Box::new([Row::default(); KAPPA]);
        let mut columns = vec![0u128; 128 * MAX_BLOCKS];
        for first in (0..self.blocks).step_by(MAX_BLOCKS) {
            let size = MAX_BLOCKS.min(self.blocks - first);
            for (to, from) in rows.iter_mut().zip(self.rows.chunks_exact(self.blocks + 1)) {
                if let (Some(to), Some(from)) = (to.get_mut(..size), from.get(first..first + size))
                {
                    to.copy_from_slice(from);
                }
            }
            let columns = columns.get_mut(..128 * size).unwrap_or_default();
            transpose(&rows, columns);
            each(self.tweak + 128 * first as u128, columns);
        }
        rows.as_flattened_mut().zeroize();
        columns.zeroize();
    }
}

/// The hash of all words but the last, plus the last.
fn masked_hash(hash: &LinearHash, words: &[u128]) -> u128 {
    words
        .split_last()
        .map_or(0, |(mask, words)| hash.blocks(words) ^ mask)
}

fn check_rows(count: usize, k: usize) -> Result<(), OtError> {
    if (1..=KAPPA).contains(&count) && count.is_multiple_of(k) {
        return Ok(());
    }
    Err(OtError::Usage(format!(
        "{count} rows of the OT extension: choose a multiple of k = {k} up to {KAPPA}"
    )))
}

/// Bytes that the receiver of a batch of `blocks` blocks and `count` rows sends, mask included.
pub fn correction_bytes(parameters: crate::Parameters, count: usize, blocks: usize) -> usize {
    16 * (blocks + 1) * (count / parameters.k())
}

/// Bytes of the receiver's answer to the check of `count` rows.
pub fn proof_bytes(count: usize) -> usize {
    16 * (count + 1)
}

/// The receiver's end of a batch.
pub struct SlicedReceiver {
    sliced: Sliced,
    choices: Zeroizing<Vec<u128>>,
}

impl Receiver {
    /// The first `count` rows of OTs with these choices (lanes of 64, an even number) and this masking block, which must be
    /// uniform; appends the corrections to `message`.
    ///
    /// # Errors
    /// [`OtError::Usage`] for an odd number of lanes, or rows that are no multiple of k.
    pub fn sliced(
        &mut self,
        count: usize,
        choices: &[u64],
        mask: u128,
        message: &mut Vec<u8>,
    ) -> Result<SlicedReceiver, OtError> {
        check_rows(count, self.link.parameters.k())?;
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
        let mut sliced = Sliced::new(count, pairs.len(), tweak(self.stream, self.position));
        message.reserve(correction_bytes(self.parameters(), count, pairs.len()));
        for (tile, part) in words.chunks_mut(MAX_BLOCKS).enumerate() {
            self.first_rows(count, part, Choices::Given, message)?;
            sliced.store(tile, part.len(), &self.rows);
        }
        Ok(SlicedReceiver {
            sliced,
            choices: words,
        })
    }
}

impl SlicedReceiver {
    /// The answer to the seed of the check: hash of the choices, hashes of the rows.
    pub fn prove(&self, seed: &[u8]) -> Vec<u8> {
        let hash = LinearHash::new(seed);
        let mut proof = Vec::with_capacity(proof_bytes(self.sliced.count));
        proof.extend_from_slice(&masked_hash(&hash, &self.choices).to_le_bytes());
        for row in self.sliced.hashes(&hash) {
            proof.extend_from_slice(&row.to_le_bytes());
        }
        proof
    }

    /// Row `j`: bit j of t for every OT, in lanes.
    pub fn row(&self, j: usize) -> &[u64] {
        self.sliced.row(j)
    }

    /// Adds bit w of the chosen string of every OT to `out[w]`, for as many bits (at most 64) as `out` has rows. Only for
    /// batches of all rows, after their check.
    pub fn add_strings(&self, hash: &Hash, out: &mut [Vec<u64>]) {
        let mut strings = vec![0u128; 128 * MAX_BLOCKS];
        let mut adder = Adder::new(out.len());
        self.sliced.columns(|tweak, columns| {
            let strings = strings.get_mut(..columns.len()).unwrap_or_default();
            hash.hash(tweak, 0, columns, strings);
            adder.put(strings.iter().map(|s| *s as u64));
        });
        strings.zeroize();
        adder.add(out);
    }

    /// `words` words of the chosen string of every OT: all first ones, all second ones, … Only for batches of all rows, after their
    /// check, and in place of [`SlicedReceiver::add_strings`], whose strings are the first words.
    pub fn strings(&self, hash: &Hash, words: usize) -> Zeroizing<Vec<u128>> {
        self.sliced.strings(hash, 0, words)
    }
}

/// Tweak of further words of the same OTs: streams stay below 2^56.
fn further(tweak: u128, word: usize) -> u128 {
    tweak ^ (word as u128) << 120
}

/// Collects words and adds their planes.
struct Adder {
    words: Zeroizing<Vec<u64>>,
    planes: Vec<Vec<u64>>,
}

impl Adder {
    fn new(width: usize) -> Self {
        Self {
            words: Zeroizing::new(Vec::with_capacity(128 * MAX_BLOCKS)),
            planes: vec![Vec::new(); width],
        }
    }

    fn put(&mut self, words: impl Iterator<Item = u64>) {
        self.words.clear();
        self.words.extend(words);
        planes(&self.words, &mut self.planes);
    }

    fn add(mut self, out: &mut [Vec<u64>]) {
        for (out, plane) in out.iter_mut().zip(&mut self.planes) {
            for (o, p) in out.iter_mut().zip(plane.iter()) {
                *o ^= p;
            }
            plane.zeroize();
        }
    }
}

/// The sender's end of a batch.
pub struct SlicedSender {
    sliced: Sliced,
}

impl Sender {
    /// The sender's end of [`Receiver::sliced`], for `blocks` blocks.
    ///
    /// # Errors
    /// [`OtError::Length`]; [`OtError::Usage`] for rows that are no multiple of k.
    pub fn sliced(
        &mut self,
        count: usize,
        blocks: usize,
        message: &[u8],
    ) -> Result<SlicedSender, OtError> {
        check_rows(count, self.link.parameters.k())?;
        let expected = correction_bytes(self.parameters(), count, blocks);
        check_length("corrections of OTs", message, expected)?;
        let mut sliced = Sliced::new(count, blocks, tweak(self.stream, self.position));
        let block = correction_bytes(self.parameters(), count, 0);
        for (tile, part) in message.chunks(MAX_BLOCKS * block).enumerate() {
            let size = part.len() / block;
            self.first_rows(count, size, Choices::Given, part)?;
            sliced.store(tile, size, &self.rows);
        }
        Ok(SlicedSender { sliced })
    }
}

impl SlicedSender {
    /// Verifies the receiver's proof; returns the hash of its choices, to be compared among all senders.
    ///
    /// # Errors
    /// [`OtError::Length`]; [`OtError::Check`] if the receiver's choices are not the same in all rows.
    pub fn verify(&self, delta: u128, seed: &[u8], proof: &[u8]) -> Result<u128, OtError> {
        let expected = proof_bytes(self.sliced.count);
        check_length("the proof of the OT extension", proof, expected)?;
        let mut words = proof
            .as_chunks::<16>()
            .0
            .iter()
            .copied()
            .map(u128::from_le_bytes);
        let choices = words.next().unwrap_or(0);
        let hashes = self.sliced.hashes(&LinearHash::new(seed));
        let mut wrong = 0u128;
        for (j, (ours, theirs)) in hashes.iter().zip(words).enumerate() {
            let mask = (delta >> j & 1).wrapping_neg();
            wrong |= ours ^ theirs ^ (choices & mask);
        }
        if bool::from(wrong.ct_eq(&0)) {
            Ok(choices)
        } else {
            Err(OtError::Check("the OT extension"))
        }
    }

    /// Row `j`: bit j of q for every OT, in lanes.
    pub fn row(&self, j: usize) -> &[u64] {
        self.sliced.row(j)
    }

    /// `words` words of both strings of every OT, in the order of [`SlicedReceiver::strings`].
    pub fn strings(&self, hash: &Hash, delta: u128, words: usize) -> [Zeroizing<Vec<u128>>; 2] {
        [0, delta].map(|offset| self.sliced.strings(hash, offset, words))
    }

    /// Adds bit w of string 0 of every OT to `zeros[w]`, and bit w of the sum of both strings to `sums[w]`. Only for batches
    /// of all rows, after their check.
    pub fn add_strings(
        &self,
        hash: &Hash,
        delta: u128,
        zeros: &mut [Vec<u64>],
        sums: &mut [Vec<u64>],
    ) {
        let mut first = vec![0u128; 128 * MAX_BLOCKS];
        let mut second = vec![0u128; 128 * MAX_BLOCKS];
        let (mut low, mut both) = (Adder::new(zeros.len()), Adder::new(sums.len()));
        self.sliced.columns(|tweak, columns| {
            let first = first.get_mut(..columns.len()).unwrap_or_default();
            let second = second.get_mut(..columns.len()).unwrap_or_default();
            hash.hash(tweak, 0, columns, first);
            hash.hash(tweak, delta, columns, second);
            low.put(first.iter().map(|s| *s as u64));
            both.put(first.iter().zip(second.iter()).map(|(a, b)| (a ^ b) as u64));
        });
        first.zeroize();
        second.zeroize();
        low.add(zeros);
        both.add(sums);
    }
}
