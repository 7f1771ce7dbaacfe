//! The public matrix A: which entries of the secret an output takes, and how often.

use keyquorum_math::{Domain, Prg};
use zeroize::Zeroizing;

use super::shape::Shape;
use crate::error::{EngineError, Result};
use crate::value::Share;

/// Entries of a row of A that are not zero, but for places that are drawn twice.
pub(super) const WEIGHT: usize = 10;
/// Words of 64 bits for the places of a row, 16 bits each.
const WORDS: usize = WEIGHT.div_ceil(4);
/// Rows that are made together.
const ROWS: usize = 64;
/// Digits of π: a nothing-up-my-sleeve number.
const SEED: [u8; 16] = *b"3141592653589793";
/// Coefficients come from another stream than places.
const COEFFICIENTS: u64 = 1 << 32;

/// Rows of A, one after another. Places are uniform, coefficients uniform among what is not zero: with coefficients of one, words of ±1 whose rows cancel as integers would be lighter dual words
/// than any that uniform coefficients have.
pub(super) struct Rows<'d, D: Domain> {
    domain: &'d D,
    mask: usize,
    places: Prg,
    coefficients: Prg,
    words: [u64; WORDS * ROWS],
    factors: Vec<D::E>,
}

impl<'d, D: Domain> Rows<'d, D> {
    pub(super) fn new(domain: &'d D, shape: Shape) -> Self {
        let stream = shape.secret_bits as u64;
        Self {
            domain,
            mask: shape.secret() - 1,
            places: Prg::new(SEED, stream),
            coefficients: Prg::new(SEED, COEFFICIENTS | stream),
            words: [0; WORDS * ROWS],
            factors: vec![domain.zero(); WEIGHT * ROWS],
        }
    }

    /// Gives the places and the coefficients of the next rows to `take`, one after another.
    pub(super) fn next(
        &mut self,
        rows: usize,
        mut take: impl FnMut(&[usize; WEIGHT], &[D::E]) -> Result<()>,
    ) -> Result<()> {
        self.places.fill_u64(&mut self.words);
        self.domain
            .random(&mut self.coefficients, &mut self.factors);
        for factor in &mut self.factors {
            while *factor == self.domain.zero() {
                let one = std::slice::from_mut(factor);
                self.domain.random(&mut self.coefficients, one);
            }
        }
        let words = self.words.chunks_exact(WORDS);
        let rows = words.zip(self.factors.chunks_exact(WEIGHT)).take(rows);
        for (words, factors) in rows {
            let mut places = [0; WEIGHT];
            let drawn = words
                .iter()
                .flat_map(|word| (0..4).map(move |i| word >> (16 * i)));
            for (place, word) in places.iter_mut().zip(drawn) {
                *place = word as usize & self.mask;
            }
            take(&places, factors)?;
        }
        Ok(())
    }
}

/// A·s + e, of the MACs, and of the elements where they are `known`: elsewhere they are zero.
pub(super) fn encoded<D: Domain>(
    domain: &D,
    shape: Shape,
    known: bool,
    base: &Share<D::E>,
    mut noise: Share<D::E>,
) -> Result<Share<D::E>> {
    base.check(super::super::PARTS, shape.base())?;
    noise.check(super::super::PARTS, shape.outputs())?;
    let mut rows = Rows::new(domain, shape);
    let [x, mac] = noise.parts.as_mut_slice() else {
        return Err(EngineError::uneven());
    };
    let (s, t) = base.pair()?;
    let mut entries = Zeroizing::new([domain.zero(); WEIGHT]);
    let mut product = |vector: &[D::E], places: &[usize; WEIGHT], factors: &[D::E]| {
        for (entry, place) in entries.iter_mut().zip(places) {
            *entry = *vector.get(*place).ok_or_else(EngineError::uneven)?;
        }
        Ok::<_, EngineError>(domain.dot(entries.as_slice(), factors))
    };
    for (x, mac) in x.chunks_mut(ROWS).zip(mac.chunks_mut(ROWS)) {
        let mut outputs = x.iter_mut().zip(mac);
        rows.next(outputs.len(), |places, factors| {
            let (x, mac) = outputs.next().ok_or_else(EngineError::uneven)?;
            *mac = domain.add(*mac, product(t, places, factors)?);
            if known {
                *x = domain.add(*x, product(s, places, factors)?);
            }
            Ok(())
        })?;
    }
    Ok(noise)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)] // a failed test may panic
mod tests {
    use keyquorum_math::Zq;
    use sha2::{Digest, Sha256};

    use super::super::shape::SHAPES;
    use super::*;

    fn field() -> Zq {
        Zq::new((1 << 61) - 1).unwrap()
    }

    /// The product of A and this vector.
    fn product(shape: Shape, s: impl Fn(u64) -> u64) -> Vec<u64> {
        let mut base = Share::zeros(super::super::super::PARTS, shape.base());
        for part in &mut base.parts {
            let secret = part.iter_mut().take(shape.secret());
            secret.zip(0..).for_each(|(entry, i)| *entry = s(i));
        }
        let noise = || Share::zeros(super::super::super::PARTS, shape.outputs());
        let product = encoded(&field(), shape, true, &base, noise()).unwrap();
        let unknown = encoded(&field(), shape, false, &base, noise()).unwrap();
        assert_eq!(product.part(0).unwrap(), product.part(1).unwrap());
        assert_eq!(product.part(0).unwrap(), unknown.part(1).unwrap());
        assert!(unknown.part(0).unwrap().iter().all(|x| *x == 0));
        product.part(0).unwrap().to_vec()
    }

    /// Known answers, and places that all occur alike: bytes 24·j to 24·j + 20 of AES-128 in counter mode are the ten places of row j, of 16 bits each.
    #[test]
    fn searched_sets_blocked_rows_have_uniform_places_and_coefficients() {
        let known = [
            "ac1fb8d1f227177e2ae5c6d240349812b428f81884acc90470e00f20d66faeab",
            "85dfcd0d2ace5f8b16f94519527ef9100de3fa1abcc9c097a8fef54f6f95c183",
            "f456f9b74c942c5786f5aeeacc90943d600c25942f20d5dad9385afe0f8ad587",
        ];
        for (shape, known) in SHAPES.into_iter().zip(known) {
            let (mut places, mut factors) = (vec![0u32; 16], Vec::new());
            let field = field();
            let mut rows = Rows::new(&field, shape);
            for _ in 0..shape.outputs() / ROWS {
                let count = |drawn: &[usize; WEIGHT], of: &[u64]| {
                    for place in drawn {
                        places[16 * place / shape.secret()] += 1;
                    }
                    factors.extend(of);
                    Ok(())
                };
                rows.next(ROWS, count).unwrap();
            }
            // Of each sixteenth: mean n/16, a standard deviation of sqrt(15·n)/16. Six of them.
            let n = (WEIGHT * shape.outputs()) as f64;
            let alike = |count: f64| (count - n / 16.0).abs() < 6.0 * (15.0 * n).sqrt() / 16.0;
            assert!(places.iter().all(|count| alike(f64::from(*count))));
            assert_eq!(factors.len(), n as usize);
            assert!(!factors.contains(&0));
            for part in 0..16 {
                let count = factors.iter().filter(|x| **x >> 57 == part).count();
                assert!(alike(count as f64), "{part}: {count}");
            }
            let mut hash = Sha256::new();
            for word in product(shape, |i| i * i) {
                hash.update(word.to_le_bytes());
            }
            let hash: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
            assert_eq!(hash, known, "{shape:?}");
        }
    }

    /// Zeros are drawn again: over three elements every third word would be one.
    #[test]
    fn coefficients_are_not_zero() {
        let three = Zq::new(3).unwrap();
        let [shape, ..] = SHAPES;
        let mut twos = 0;
        let count = |_: &[usize; WEIGHT], factors: &[u64]| {
            assert!(!factors.contains(&0));
            twos += factors.iter().filter(|x| **x == 2).count();
            Ok(())
        };
        Rows::new(&three, shape).next(ROWS, count).unwrap();
        // 320 of 640, a standard deviation of 12.6: six of them.
        assert!(twos.abs_diff(320) < 76, "{twos}");
    }
}
