//! The input of a run: parts of a share file, public and private words.

use std::ops::Range;

use zeroize::Zeroizing;

use super::numbers::Numbers;
use crate::error::{EngineError, Result};

/// Words of one component of a part of a share file.
pub enum Row<'a> {
    /// Words of 8 bytes.
    Bytes8(&'a [u64]),
    /// Words of 4 bytes.
    Bytes4(&'a [u32]),
    /// Words of 2 bytes.
    Bytes2(&'a [u16]),
    /// Words of one byte.
    Bytes1(&'a [u8]),
    /// Words that are not one after another in memory: a copy of them.
    Copied(Zeroizing<Vec<u64>>),
}

fn extend<W: Copy + Into<u64>>(row: &[W], at: Range<usize>, data: &mut Vec<u8>) -> Option<()> {
    let words = row.get(at)?;
    let first = data.len();
    data.resize(first + 8 * words.len(), 0);
    let (slots, _) = data.get_mut(first..)?.as_chunks_mut::<8>();
    for (slot, word) in slots.iter_mut().zip(words) {
        *slot = (*word).into().to_le_bytes();
    }
    Some(())
}

impl Row<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Bytes8(row) => row.len(),
            Self::Bytes4(row) => row.len(),
            Self::Bytes2(row) => row.len(),
            Self::Bytes1(row) => row.len(),
            Self::Copied(row) => row.len(),
        }
    }

    fn append(&self, at: Range<usize>, data: &mut Vec<u8>) -> Option<()> {
        match self {
            Self::Bytes8(row) => extend(row, at, data),
            Self::Bytes4(row) => extend(row, at, data),
            Self::Bytes2(row) => extend(row, at, data),
            Self::Bytes1(row) => extend(row, at, data),
            Self::Copied(row) => extend(row, at, data),
        }
    }
}

/// A part of a share file: rows of equal length, one a component.
pub struct Section<'a> {
    rows: Vec<Row<'a>>,
    words: usize,
}

impl<'a> Section<'a> {
    /// A part with these components.
    ///
    /// # Errors
    /// [`EngineError::Usage`] if they are of different lengths.
    pub fn new(rows: Vec<Row<'a>>) -> Result<Self> {
        let words = rows.first().map_or(0, Row::len);
        if rows.iter().any(|row| row.len() != words) {
            return Err(EngineError::usage(
                "the components of a part of a share file are of different lengths",
            ));
        }
        Ok(Self { rows, words })
    }
}

fn ends(what: &str) -> EngineError {
    EngineError::usage(format!(
        "the {what} ends before what a recorded program takes of it"
    ))
}

/// The share file and the input of a run.
pub struct Inputs<'a> {
    /// Parts of the share file, one after another.
    pub sections: Vec<Section<'a>>,
    /// Words of a component of a share.
    pub width: usize,
    /// Public words, the same at all parties, one vector after another.
    pub public: Vec<&'a [i64]>,
    /// Our private words.
    pub private: &'a [i64],
}

impl Inputs<'_> {
    fn append(&self, part: usize, mut at: usize, words: usize, data: &mut Vec<u8>) -> Result<()> {
        for section in &self.sections {
            if at + words <= section.words {
                let row = section.rows.get(part).ok_or_else(|| {
                    EngineError::usage("the share file has fewer components than its first part")
                })?;
                let copied = row.append(at..at + words, data);
                return copied.ok_or_else(|| ends("share file"));
            }
            if at < section.words {
                // From one part into the next.
                return (0..words).try_for_each(|i| self.append(part, at + i, 1, data));
            }
            at -= section.words;
        }
        Err(ends("share file"))
    }

    /// Shares in the engine's form, component after component: `count` shares from each of these offsets on.
    pub(super) fn shares(&self, offsets: &[usize], count: usize) -> Result<Zeroizing<Vec<u8>>> {
        let parts = self.sections.first().map_or(0, |s| s.rows.len());
        let words = count * self.width;
        let size = 8 * parts * words * offsets.len();
        let mut data = Zeroizing::new(Vec::with_capacity(size));
        for part in 0..parts {
            for offset in offsets {
                self.append(part, offset * self.width, words, &mut data)?;
            }
        }
        Ok(data)
    }
}

/// The words of a run's input that are not taken yet.
pub(super) struct Stream<'a> {
    public: std::slice::Iter<'a, &'a [i64]>,
    /// The rest of the vector of public words that is being taken.
    current: &'a [i64],
    private: &'a [i64],
}

impl<'a> Stream<'a> {
    pub(super) fn new(inputs: &'a Inputs<'a>) -> Self {
        Self {
            public: inputs.public.iter(),
            current: &[],
            private: inputs.private,
        }
    }

    pub(super) fn take_private(&mut self, count: usize) -> Result<Numbers> {
        let (taken, rest) = self
            .private
            .split_at_checked(count)
            .ok_or_else(|| ends("private input"))?;
        self.private = rest;
        Ok(Zeroizing::new(taken.to_vec()))
    }

    pub(super) fn take_public(&mut self, count: usize) -> Result<Numbers> {
        let mut words = Zeroizing::new(Vec::with_capacity(count));
        while words.len() < count {
            if self.current.is_empty() {
                self.current = self.public.next().ok_or_else(|| ends("public input"))?;
            }
            let missing = (count - words.len()).min(self.current.len());
            let (taken, rest) = self.current.split_at(missing);
            words.extend_from_slice(taken);
            self.current = rest;
        }
        Ok(words)
    }
}
