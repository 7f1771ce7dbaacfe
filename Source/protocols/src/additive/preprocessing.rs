//! The correlated randomness of additive sharing, and how much to make next.

use keyquorum_math::Element;

use crate::Preprocessed;
use crate::error::Result;
use crate::items::Items;
use crate::value::same;

/// Items (triples, squares: elements; bits and ANDs: lanes of 64) that one batch makes at least, so that small computations
/// do not pay for large batches, and rounds up to: OTs come in blocks of 128.
const LEAST_ELEMENTS: usize = 128;
const LEAST_LANES: usize = 8;
/// A batch grows with what was used so far, up to these surpluses.
const SURPLUS_ELEMENTS: usize = 1 << 13;
const SURPLUS_LANES: usize = 1 << 11;
/// Most items of one batch, all peers together: bounds the memory of the messages (about 16 MB).
const MOST_ELEMENTS: usize = 1 << 15;
const MOST_LANES: usize = 1 << 16;
const MOST_BIT_LANES: usize = 1 << 14;

/// The correlated randomness of one engine.
pub(super) struct Preprocessing<E: Element> {
    /// a, b, ab; lanes of bits.
    pub ands: Items<u64, 3>,
    /// a, b, ab.
    pub triples: Items<E, 3>,
    /// a, a².
    pub squares: Items<E, 2>,
    /// Random bits, packed.
    bits: Items<u64, 1>,
    /// The same bits as elements, 64 a lane.
    elements: Items<E, 1>,
}

impl<E: Element> Default for Preprocessing<E> {
    fn default() -> Self {
        Self {
            ands: Items::default(),
            triples: Items::default(),
            squares: Items::default(),
            bits: Items::default(),
            elements: Items::default(),
        }
    }
}

/// The sizes of the next batch.
pub(super) struct Work {
    /// Lanes of 64.
    pub ands: usize,
    pub triples: usize,
    pub squares: usize,
    /// Lanes of 64.
    pub bits: usize,
}

impl<E: Element> Preprocessing<E> {
    /// Asks for random bits, in lanes of 64.
    pub fn need_bits(&mut self, lanes: usize) {
        self.bits.need(lanes);
    }

    /// Random bits, packed and as elements.
    pub fn take_bits(&mut self, lanes: usize) -> Result<(Vec<u64>, Vec<E>)> {
        let [bits] = self.bits.take(lanes)?;
        let [elements] = self.elements.take(64 * lanes)?;
        Ok((bits, elements))
    }

    /// Adds lanes of bits, and the same as elements.
    pub fn put_bits(&mut self, bits: Vec<u64>, elements: Vec<E>) -> Result<()> {
        same(64 * bits.len(), elements.len())?;
        self.bits.put([bits]);
        self.elements.put([elements]);
        Ok(())
    }

    /// The next batch, of every kind that is missing.
    pub fn next_work(&self, parties: usize) -> Work {
        let peers = (parties - 1).max(1);
        Work {
            ands: self
                .ands
                .batch(LEAST_LANES, SURPLUS_LANES, MOST_LANES / peers),
            triples: self
                .triples
                .batch(LEAST_ELEMENTS, SURPLUS_ELEMENTS, MOST_ELEMENTS / peers),
            squares: self
                .squares
                .batch(LEAST_ELEMENTS, SURPLUS_ELEMENTS, MOST_ELEMENTS / peers),
            bits: self
                .bits
                .batch(LEAST_LANES, SURPLUS_LANES, MOST_BIT_LANES / peers),
        }
    }

    pub fn preprocessed(&self) -> Vec<Preprocessed> {
        vec![
            self.ands.preprocessed("ands", 64),
            self.triples.preprocessed("triples", 1),
            self.squares.preprocessed("squares", 1),
            self.bits.preprocessed("bits", 64),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::EngineError;

    /// Bits of one domain would go with those of others in the other.
    #[test]
    fn missing_parts_blocked_bits_without_their_elements() {
        let mut items = Preprocessing::<u64>::default();
        for n in [0, 64, 127, 129] {
            let put = items.put_bits(vec![0; 2], vec![0; n]);
            assert!(matches!(put, Err(EngineError::Internal(_))), "{n}");
        }
        assert!(items.put_bits(vec![0; 2], vec![0; 128]).is_ok());
        assert!(items.take_bits(2).is_ok());
    }
}
