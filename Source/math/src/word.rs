//! Machine words that hold the elements of domains, and their bytes.

use std::fmt;

use zeroize::{DefaultIsZeroes, optimization_barrier};

/// A machine word that holds one element of a domain.
pub trait Element:
    Copy + Default + Send + Sync + Eq + Ord + fmt::Debug + DefaultIsZeroes + 'static
{
    /// Size of the word in memory, in bytes.
    const BYTES: usize;
    /// The word as an unsigned integer.
    fn to_u128(self) -> u128;
    /// The low bits of `v` that fit the word.
    fn from_u128_wrapping(v: u128) -> Self;
}

/// Overwrites secret elements with zeros, as one block. A loop over elements is many times slower where the compiler makes a call of each.
pub fn wipe<T: DefaultIsZeroes>(elements: &mut [T]) {
    elements.fill(T::default());
    optimization_barrier(elements);
}

impl Element for u64 {
    const BYTES: usize = 8;

    fn to_u128(self) -> u128 {
        u128::from(self)
    }

    fn from_u128_wrapping(v: u128) -> Self {
        v as u64
    }
}

impl Element for u128 {
    const BYTES: usize = 16;

    fn to_u128(self) -> u128 {
        self
    }

    fn from_u128_wrapping(v: u128) -> Self {
        v
    }
}

/// A word with a little-endian byte form, for the codec only.
pub(crate) trait Word: Element {
    /// Writes the low `out.len()` bytes. Panics if the word has fewer.
    fn write_le(self, out: &mut [u8]);
    /// Reads a word of `bytes.len()` bytes. Panics if the word has fewer.
    fn read_le(bytes: &[u8]) -> Self;
}

macro_rules! impl_word {
    ($($word:ty),*) => {$(
        impl Word for $word {
            #[inline(always)]
            fn write_le(self, out: &mut [u8]) {
                let full = self.to_le_bytes();
                out.copy_from_slice(full.split_at(out.len()).0);
            }

            #[inline(always)]
            fn read_le(bytes: &[u8]) -> Self {
                let mut full = [0u8; size_of::<$word>()];
                full.split_at_mut(bytes.len()).0.copy_from_slice(bytes);
                Self::from_le_bytes(full)
            }
        }
    )*};
}
impl_word!(u64, u128);
