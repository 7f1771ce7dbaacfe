//! The VOLE of a group: sums of the leaves of its PRFs.

use zeroize::Zeroize;

use crate::aes::Key;
use crate::tile::Row;
use crate::{OtError, Parameters, check_same, uneven};

#[inline]
fn xor(a: &mut Row, b: &Row) {
    for (a, b) in a.iter_mut().zip(b) {
        *a ^= b;
    }
}

/// Memory for the leaves of one group.
pub(super) struct Expander {
    leaves: Vec<Row>,
}

impl Expander {
    pub(super) fn new(parameters: Parameters) -> Self {
        Self {
            leaves: vec![Row::default(); 1 << parameters.k()],
        }
    }

    /// `rows[j]` becomes the sum of the leaves whose number has bit j; the sum of all leaves is returned. The first `missing` leaves are not
    /// known, and count as zero.
    #[inline]
    pub(super) fn group(
        &mut self,
        keys: &[Key],
        missing: usize,
        stream: u64,
        position: u64,
        blocks: usize,
        rows: &mut [Row],
    ) -> Result<Row, OtError> {
        let mut count = self.leaves.len();
        check_same(keys.len(), count)?;
        check_same(1 << rows.len(), count)?;
        for (leaf, key) in self.leaves.iter_mut().zip(keys).skip(missing) {
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
        // The next group of a sender has its missing leaf here.
        root.zeroize();
        Ok(sum)
    }
}

impl Drop for Expander {
    fn drop(&mut self) {
        self.leaves.as_flattened_mut().zeroize();
    }
}
