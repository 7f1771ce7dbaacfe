//! SoftSpokenOT (Roy, CRYPTO 2022): the PRFs of a link make rows of correlated bits, and the rows make OTs.
//!
//! Shape: a tile has 1 to [`MAX_BLOCKS`] blocks of 128 OTs, small enough for the first-level cache. Each of its rows belongs to one bit of the
//! sender's key: 128 rows of pads to the bits of Δ, further rows to the key of MACs of bits. k rows are a group, which is one VOLE over F_{2^k}.
//!
//! Pipeline, for each group of a tile:
//!
//! 1. `expand`: both ends add up the leaves of the group's PRFs. The sender lacks one leaf.
//! 2. The receiver sends the sum of all leaves plus its choice bits r, 128/k bits an OT in all.
//! 3. The sender adds this correction to the rows whose bit of its key is one: the row is t at the receiver, t ⊕ r·(bit of the key) at the sender.
//!
//! Transposed, column c is t_c at the receiver and q_c = t_c ⊕ r_c·Δ at the sender. The strings of OT c are H(q_c) and H(q_c ⊕ Δ), the
//! chosen one is H(t_c).
//!
//! Both ends must make tiles of the same sizes in the same order: they count how far the PRFs are used. Different streams of one link are
//! independent.
//!
//! Modules: `expand` (step 1), `tiles` (steps 2 and 3, one tile at a time, without check), `batch` (many tiles and their check),
//! `sliced` (rows that are not transposed, for MACs of bits, and their check), `check` (the check of both).

mod batch;
mod check;
mod expand;
pub mod sliced;
mod tiles;

use std::ops::Range;
use std::sync::Arc;

use zeroize::{Zeroize, Zeroizing};

use self::expand::Expander;
use crate::link::Link;
use crate::tile::{MAX_BLOCKS, Row, Rows, TILE};
use crate::transpose::transpose;
use crate::{
    BIT_MAC_BITS, Hash, KAPPA, OtError, Parameters, ReceiverLink, Security, SenderLink, check_same,
    uneven,
};

pub use batch::{PROOF_BYTES, ReceiverBatch, SenderBatch};
pub use check::LinearHash;

/// Which rows of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Those of which pads are made.
    Pads,
    /// Those that are MACs of the choice bits.
    Macs,
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

/// One end of one stream of a link: [`Receiver`] or [`Sender`].
pub struct End<L> {
    link: Arc<L>,
    stream: u64,
    /// Blocks that are used.
    position: u64,
    hash: Hash,
    expander: Expander,
    rows: Box<TileRows>,
}

/// The receiver's end of one stream of a link.
pub type Receiver = End<ReceiverLink>;

/// The sender's end of one stream of a link.
pub type Sender = End<SenderLink>;

impl<L: Link> End<L> {
    /// Opens stream `stream` of a link; no stream may be opened twice.
    pub fn new(link: Arc<L>, stream: u64, security: Security) -> Self {
        Self {
            expander: Expander::new(link.parameters()),
            link,
            stream,
            position: 0,
            hash: Hash::new(security),
            rows: TileRows::new(),
        }
    }

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

    /// Parameters of the link.
    pub fn parameters(&self) -> Parameters {
        self.link.parameters()
    }

    /// The hash for the columns.
    pub fn hash(&self) -> &Hash {
        &self.hash
    }

    /// Moves behind a tile of `blocks` blocks; the tweak of its first column.
    fn advance(&mut self, blocks: usize) -> u128 {
        let first = tweak(self.stream, self.position);
        self.position += blocks as u64;
        first
    }

    /// Expands a part of the rows of a tile, before correction. `correct` gets the link, the number of each group, the sum of the leaves that
    /// this end has, and the rows of the group.
    fn expand(
        &mut self,
        part: Part,
        blocks: usize,
        mut correct: impl FnMut(&L, usize, &Row, &mut [Row]) -> Result<(), OtError>,
    ) -> Result<(), OtError> {
        let blocks = block_count(blocks)?;
        let k = self.link.parameters().k();
        let keys = self.link.keys_of(part.bits()).ok_or_else(no_rows)?;
        let rows = self.rows.part(part);
        // A group for every k rows: no row keeps its bits of the tile before.
        check_same(rows.len(), (keys.len() >> k) * k)?;
        let groups = keys.chunks_exact(1 << k).zip(rows.chunks_exact_mut(k));
        for (group, (keys, rows)) in groups.enumerate() {
            let (stream, position) = (self.stream, self.position);
            let mut sum =
                (self.expander).group(keys, L::MISSING, stream, position, blocks, rows)?;
            let corrected = correct(&self.link, group, &sum, rows);
            sum.zeroize();
            corrected?;
        }
        Ok(())
    }
}

/// Hashes the columns of a tile: `words` words of every string, all first words, then all second ones, … Each output has its own offset, which is
/// added to the columns before they are hashed.
fn hash_columns<const N: usize>(
    hash: &Hash,
    rows: &Rows,
    tweak: u128,
    words: usize,
    outputs: [(u128, &mut [u128]); N],
) -> Result<(), OtError> {
    let count = outputs.first().map_or(0, |(_, strings)| strings.len()) / words.max(1);
    let mut columns = Zeroizing::new([0u128; TILE]);
    let columns = columns.get_mut(..count).ok_or_else(uneven)?;
    transpose(rows, columns)?;
    for (offset, strings) in outputs {
        check_same(strings.len(), words * count)?;
        for (word, strings) in strings.chunks_exact_mut(count.max(1)).enumerate() {
            hash.hash(further(tweak, word), offset, columns, strings)?;
        }
    }
    Ok(())
}

fn tweak(stream: u64, position: u64) -> u128 {
    // Columns, not blocks: a stream has less than 2^57 blocks.
    u128::from(stream) << 64 | u128::from(position) << 7
}

/// Tweak of further words of the same OTs: streams stay below 2^56.
fn further(tweak: u128, word: usize) -> u128 {
    tweak ^ (word as u128) << 120
}

fn block_count(blocks: usize) -> Result<usize, OtError> {
    if (1..=MAX_BLOCKS).contains(&blocks) {
        return Ok(blocks);
    }
    Err(OtError::Usage(format!(
        "a tile has 1 to {MAX_BLOCKS} blocks of 128 OTs, not {blocks}"
    )))
}

fn no_rows() -> OtError {
    OtError::Usage("this link has no keys of MACs: set it up with them".to_owned())
}
