//! The size of tiles: [`extension`](crate::extension) makes OTs a tile at a time.

use crate::KAPPA;

/// Blocks of 128 OTs of one tile, at most.
pub const MAX_BLOCKS: usize = 8;

/// OTs of one tile, at most.
pub(crate) const TILE: usize = 128 * MAX_BLOCKS;

/// Bits of one row of a tile.
pub(crate) type Row = [u128; MAX_BLOCKS];
/// Rows of pads, of which columns are made.
pub(crate) type Rows = [Row; KAPPA];
