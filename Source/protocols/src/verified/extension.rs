//! The rings in which products are verified: a field itself, or a Galois ring over Z_2^k.

use keyquorum_math::{Domain, Prg, ROW};
use zeroize::Zeroize;

use crate::error::{EngineError, Result};
use crate::value::same;

/// A ring whose elements are vectors of words of a domain, with a set of challenges any two of which differ by a unit.
pub trait Extension: Clone + Send + 'static {
    /// The domain of the words.
    type Base: Domain;

    /// The domain of the words.
    fn base(&self) -> &Self::Base;

    /// Words of an element.
    fn degree(&self) -> usize;

    /// There are at least 2^this challenges.
    fn challenge_bits(&self) -> u32;

    /// The neutral element of multiplication.
    fn one(&self) -> Vec<<Self::Base as Domain>::E> {
        let mut one = vec![self.base().zero(); self.degree()];
        if let Some(word) = one.first_mut() {
            *word = self.base().one();
        }
        one
    }

    /// A uniform challenge of the stream.
    fn challenge(&self, prg: &mut Prg) -> Vec<<Self::Base as Domain>::E>;

    /// The inner product of vectors of elements, one element after another.
    ///
    /// # Errors
    /// [`EngineError::Internal`] for other lengths.
    fn dot(
        &self,
        a: &[<Self::Base as Domain>::E],
        b: &[<Self::Base as Domain>::E],
    ) -> Result<Vec<<Self::Base as Domain>::E>>;

    /// Multiplies every element of a vector by a challenge.
    fn scale(
        &self,
        vector: &mut [<Self::Base as Domain>::E],
        challenge: &[<Self::Base as Domain>::E],
    );
}

/// A field. Every element is a challenge.
#[derive(Clone)]
pub struct Itself<F>(pub F);

impl<F: Domain> Extension for Itself<F> {
    type Base = F;

    fn base(&self) -> &F {
        &self.0
    }

    fn degree(&self) -> usize {
        1
    }

    fn challenge_bits(&self) -> u32 {
        self.0.bits() - 1
    }

    fn challenge(&self, prg: &mut Prg) -> Vec<F::E> {
        let mut challenge = vec![self.0.zero()];
        self.0.random(prg, &mut challenge);
        challenge
    }

    fn dot(&self, a: &[F::E], b: &[F::E]) -> Result<Vec<F::E>> {
        same(a.len(), b.len())?;
        Ok(vec![self.0.dot(a, b)])
    }

    fn scale(&self, vector: &mut [F::E], challenge: &[F::E]) {
        if let [factor] = challenge {
            self.0.mul_scalar_assign(vector, *factor);
        }
    }
}

/// The Galois ring GR(2^k, 47) = Z_2^k[X] / (X^47 + X^5 + 1). Modulo 2 it is the field GF(2^47). Challenges have coefficients 0 and 1: the difference of two is not zero
/// modulo 2, so it is a unit.
#[derive(Clone)]
pub struct Galois<R> {
    ring: R,
}

/// The degree of the modulus of [`Galois`].
pub const DEGREE: usize = 47;

/// Its middle exponent.
const MIDDLE: usize = 5;

/// Coefficients of a product before it is reduced.
const PRODUCT: usize = 2 * DEGREE - 1;

impl<R: Domain> Galois<R> {
    /// Over this ring.
    pub fn new(ring: R) -> Self {
        Self { ring }
    }

    /// A product of two elements, reduced in its place: the first words are the element.
    fn reduce(&self, product: &mut [R::E; PRODUCT]) {
        let (low, high) = product.split_at_mut(DEGREE);
        // X^(47 + i) = −X^(5 + i) − X^i. Where 5 + i is 47 or more, this is done first.
        let (inner, top) = high.split_at_mut(DEGREE - MIDDLE);
        for (to, &word) in inner.iter_mut().zip(&*top) {
            *to = self.ring.sub(*to, word);
        }
        for (to, &word) in low.iter_mut().skip(MIDDLE).zip(&*inner) {
            *to = self.ring.sub(*to, word);
        }
        for (to, &word) in low.iter_mut().zip(&*high) {
            *to = self.ring.sub(*to, word);
        }
    }

    /// Elements one after another, as rows of [`ROW`] words: the words past those of the element are zeros.
    pub fn rows(&self, elements: &[Vec<R::E>]) -> Vec<R::E> {
        let mut rows = Vec::with_capacity(ROW * elements.len());
        for element in elements {
            rows.extend_from_slice(element);
            rows.resize(rows.len().next_multiple_of(ROW), self.ring.zero());
        }
        rows
    }

    /// Adds words times elements to an element; all elements are rows of [`ROW`] words, those of the sum from row `from` on.
    pub fn combine(
        &self,
        sum: &mut [R::E],
        words: &[R::E],
        rows: &[R::E],
        from: usize,
    ) -> Result<()> {
        let rows = rows.get(ROW * from..ROW * (from + words.len()));
        self.ring
            .rows_acc(sum, words, rows.ok_or_else(EngineError::uneven)?);
        Ok(())
    }

    /// The same for elements that are challenges. `minus` has them negated, as [`Domain::select_acc`] takes them.
    pub fn combine_challenges(
        &self,
        sum: &mut [R::E],
        words: &[R::E],
        minus: &[R::E],
        from: usize,
    ) -> Result<()> {
        let minus = minus.get(ROW * from..ROW * (from + words.len()));
        self.ring
            .select_acc(sum, words, minus.ok_or_else(EngineError::uneven)?);
        Ok(())
    }
}

impl<R: Domain> Extension for Galois<R> {
    type Base = R;

    fn base(&self) -> &R {
        &self.ring
    }

    fn degree(&self) -> usize {
        DEGREE
    }

    fn challenge_bits(&self) -> u32 {
        DEGREE as u32
    }

    fn challenge(&self, prg: &mut Prg) -> Vec<R::E> {
        let bits = prg.next_u64();
        let bit = |i| match (bits >> i) & 1 {
            0 => self.ring.zero(),
            _ => self.ring.one(),
        };
        (0..DEGREE).map(bit).collect()
    }

    fn dot(&self, a: &[R::E], b: &[R::E]) -> Result<Vec<R::E>> {
        same(a.len(), b.len())?;
        if !a.len().is_multiple_of(DEGREE) {
            return Err(EngineError::uneven());
        }
        let mut sum = [self.ring.zero(); PRODUCT];
        for (a, b) in a.chunks_exact(DEGREE).zip(b.chunks_exact(DEGREE)) {
            self.ring.polynomial_acc(&mut sum, a, b);
        }
        self.reduce(&mut sum);
        let element = sum.iter().take(DEGREE).copied().collect();
        sum.zeroize();
        Ok(element)
    }

    fn scale(&self, vector: &mut [R::E], challenge: &[R::E]) {
        let mut minus = challenge.to_vec();
        self.ring.neg_assign(&mut minus);
        let mut product = [self.ring.zero(); PRODUCT];
        for element in vector.chunks_exact_mut(DEGREE) {
            product.fill(self.ring.zero());
            self.ring
                .select_polynomial_acc(&mut product, element, &minus);
            self.reduce(&mut product);
            for (to, &word) in element.iter_mut().zip(&product) {
                *to = word;
            }
        }
        product.zeroize();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use keyquorum_math::{Z2k64, Z2k128};

    use super::*;

    fn power(i: usize) -> Vec<u64> {
        (0..DEGREE).map(|j| u64::from(i == j)).collect()
    }

    /// Modulo 2 the modulus is irreducible: its degree is a prime, X^(2^47) = X, and X² ≠ X.
    #[test]
    fn modulo_two_it_is_a_field() {
        let ring = Galois::new(Z2k64::new(1).unwrap());
        let mut x = power(1);
        for _ in 0..DEGREE {
            x = ring.dot(&x, &x).unwrap();
        }
        assert_eq!(x, power(1));
        assert_ne!(ring.dot(&x, &x).unwrap(), power(1));
    }

    #[test]
    fn products_are_those_of_polynomials() {
        let ring = Galois::new(Z2k64::new(64).unwrap());
        // X^46 · X^46 = X^92 = −X^50 − X^45 = X^8 + X^3 − X^45.
        let mut wanted = vec![0; DEGREE];
        (wanted[3], wanted[8], wanted[45]) = (1, 1, u64::MAX);
        assert_eq!(ring.dot(&power(46), &power(46)).unwrap(), wanted);
        let mut prg = Prg::new([9; 16], 0);
        let mut draw = |n: usize| {
            let mut values = vec![0; n * DEGREE];
            ring.ring.random(&mut prg, &mut values);
            values
        };
        let (a, b, c) = (draw(1), draw(1), draw(1));
        let product = |x: &[u64], y: &[u64]| ring.dot(x, y).unwrap();
        assert_eq!(product(&a, &b), product(&b, &a));
        assert_eq!(product(&a, &product(&b, &c)), product(&product(&a, &b), &c));
        assert_eq!(product(&ring.one(), &c), c);
        let mut sums = product(&a, &b);
        ring.ring.add_assign(&mut sums, &product(&c, &a));
        assert_eq!(
            product(&[a.clone(), c.clone()].concat(), &[b, a.clone()].concat()),
            sums
        );
        let mut vector = [a.clone(), c.clone()].concat();
        let challenge = ring.challenge(&mut Prg::new([9; 16], 1));
        ring.scale(&mut vector, &challenge);
        assert_eq!(
            vector,
            [product(&a, &challenge), product(&c, &challenge)].concat()
        );
        assert!(ring.dot(&a, &vector).is_err() && ring.dot(&a[1..], &a[1..]).is_err());
    }

    #[test]
    fn challenges_are_bits() {
        let ring = Galois::new(Z2k128::new(72).unwrap());
        let mut prg = Prg::new([9; 16], 0);
        let all: Vec<_> = (0..200).flat_map(|_| ring.challenge(&mut prg)).collect();
        let ones = all.iter().filter(|bit| **bit == 1).count();
        assert!(all.iter().all(|bit| *bit < 2));
        // 4700 expected, standard deviation 48.
        assert!(ones.abs_diff(4700) < 300, "{ones}");
    }
}
