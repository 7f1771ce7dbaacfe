//! Sizes of batches.

/// Sizes of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// log2 of the length of the secret.
    pub(super) secret_bits: usize,
    /// Blocks, of which each has a noise value.
    pub(super) blocks: usize,
    /// log2 of the length of a block.
    pub(super) levels: usize,
}

/// From the smallest to the largest; what one leaves over begins the next. `attacks` bounds what is known against each.
pub(super) const SHAPES: [Shape; 3] = [
    Shape::new(11, 1 << 10, 3),
    Shape::new(13, 1 << 10, 5),
    Shape::new(14, 1 << 11, 6),
];

impl Shape {
    pub(super) const fn new(secret_bits: usize, blocks: usize, levels: usize) -> Self {
        Self {
            secret_bits,
            blocks,
            levels,
        }
    }

    /// Elements that are made.
    pub(super) const fn outputs(self) -> usize {
        self.blocks << self.levels
    }

    pub(super) const fn secret(self) -> usize {
        1 << self.secret_bits
    }

    /// Elements that it takes.
    pub(super) const fn base(self) -> usize {
        self.secret() + self.blocks
    }
}

/// The batch for a party that has `there` elements and wants `wanted`, if it has too few: the largest that it can begin, and that is not far more than what is missing; else the smallest,
/// from nothing.
pub(super) fn shape(there: usize, wanted: usize) -> Option<Shape> {
    if there >= wanted {
        return None;
    }
    let [least, ..] = SHAPES;
    let mut shapes = SHAPES.iter().rev().copied();
    let fits = shapes.find(|s| there >= s.base() && wanted - there > s.outputs() / 8);
    Some(fits.unwrap_or(least))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;

    #[test]
    fn batches_grow() {
        let [small, middle, large] = SHAPES;
        assert_eq!(SHAPES.map(Shape::outputs), [1 << 13, 1 << 15, 1 << 17]);
        assert_eq!(shape(0, 5000), Some(small));
        assert_eq!(shape(5000, 5000), None);
        assert_eq!(shape(8192, 60_000), Some(small));
        assert_eq!(shape(13_824, 60_000), Some(middle));
        assert_eq!(shape(30_000, 60_000), Some(large));
        // Every batch brings more than it takes, so that pools fill.
        for (there, wanted) in [(0, 1), (3000, 9000), (8192, 8200), (40_000, 1 << 20)] {
            let next = shape(there, wanted).unwrap();
            assert!(next.outputs() > next.base().min(there));
        }
    }
}
