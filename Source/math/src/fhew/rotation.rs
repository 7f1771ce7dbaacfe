//! Blind rotation and extraction.

use super::{Fhew, FhewError, Rows};
use crate::domain::Domain;
use crate::ntt::NttError;
use crate::prg::expand_uniform;

impl Fhew {
    /// Bootstraps LWE ciphertexts under s, a `[count, dimension]` and b `[count]`, to LWE ciphertexts under the coefficients of z.
    ///
    /// Both are rounded to Z_2N. A ciphertext of the phase p in `0..N` there becomes one of `test[p]`, and one of the phase N + p of `-test[p]`.
    /// Returns a `[count, N]` and b.
    ///
    /// # Errors
    ///
    /// [`FhewError`] for arrays of other lengths, or with words that are no residues.
    pub fn bootstrap(
        &self,
        key: Rows<'_>,
        a: &[u64],
        b: &[u64],
        test: &[u64],
    ) -> Result<(Vec<u64>, Vec<u64>), FhewError> {
        let (n, big, q) = (self.dimension, self.degree(), self.q());
        let rows = 2 * self.rotating.levels();
        self.check("bootstrapping key", key.bodies, n * rows * big)?;
        self.check("masks of ciphertexts", a, b.len() * n)?;
        self.check("bodies of ciphertexts", b, b.len())?;
        self.check("test vector", test, big)?;
        let mut accumulators = vec![0u64; b.len() * 2 * big];
        for (accumulator, body) in accumulators.chunks_exact_mut(2 * big).zip(b) {
            let (_, second) = accumulator.split_at_mut(big);
            self.monomial(test, 2 * big - self.rounded(*body), second);
        }
        let mut step = Step::new(self);
        for (i, bodies) in key.bodies.chunks_exact(rows * big).enumerate() {
            let first = (i * rows * big) as u64;
            let masks = expand_uniform(key.seed, first, rows * big, q);
            for (accumulator, a) in accumulators
                .chunks_exact_mut(2 * big)
                .zip(a.chunks_exact(n))
            {
                let exponent = a.get(i).map_or(0, |x| self.rounded(*x));
                if exponent % (2 * big) != 0 {
                    step.run(accumulator, exponent, &masks, bodies)?;
                }
            }
        }
        Ok(self.extract(&accumulators))
    }

    /// round(2N x / q), in `0..=2N`.
    fn rounded(&self, x: u64) -> usize {
        let (x, q) = (u128::from(x), u128::from(self.q()));
        ((x * 2 * self.degree() as u128 + q / 2) / q) as usize
    }

    /// X^exponent times a polynomial.
    fn monomial(&self, source: &[u64], exponent: usize, out: &mut [u64]) {
        let n = source.len();
        let (negative, shift) = (exponent % (2 * n) >= n, exponent % n);
        let (head, tail) = source.split_at(n - shift);
        let (first, last) = out.split_at_mut(shift);
        let signed = |x: u64, negate: bool| if negate { self.field.neg(x) } else { x };
        for (o, x) in first.iter_mut().zip(tail) {
            *o = signed(*x, !negative);
        }
        for (o, x) in last.iter_mut().zip(head) {
            *o = signed(*x, negative);
        }
    }

    /// LWE ciphertexts of the coefficients of X^0 of ring ciphertexts, `[count, 2, N]`.
    fn extract(&self, accumulators: &[u64]) -> (Vec<u64>, Vec<u64>) {
        let big = self.degree();
        let mut out = (Vec::with_capacity(accumulators.len() / 2), Vec::new());
        for accumulator in accumulators.chunks_exact(2 * big) {
            let (a, b) = accumulator.split_at(big);
            // (a z)_0 = a_0 z_0 - a_(N-1) z_1 - .. - a_1 z_(N-1)
            out.0.extend(a.first());
            out.0
                .extend(a.iter().skip(1).rev().map(|x| self.field.neg(*x)));
            out.1.extend(b.first());
        }
        out
    }
}

/// One step of the rotation, with its working memory.
struct Step<'a> {
    fhew: &'a Fhew,
    /// (X^exponent - 1) times a polynomial of the accumulator.
    difference: Vec<u64>,
    /// Digits of a coefficient.
    digits: Vec<i64>,
    /// Polynomials of digits, one a level.
    polynomials: Vec<u64>,
    /// The two polynomials of the product in NTT form, not reduced.
    sums: Vec<u128>,
    product: Vec<u64>,
}

impl<'a> Step<'a> {
    fn new(fhew: &'a Fhew) -> Self {
        let (big, levels) = (fhew.degree(), fhew.rotating.levels());
        Self {
            fhew,
            difference: vec![0; big],
            digits: vec![0; levels],
            polynomials: vec![0; levels * big],
            sums: vec![0; 2 * big],
            product: vec![0; big],
        }
    }

    /// accumulator += ((X^exponent - 1) accumulator) times the encryption of a bit: rows `masks` and `bodies`, for every digit first that of -s z.
    fn run(
        &mut self,
        accumulator: &mut [u64],
        exponent: usize,
        masks: &[u64],
        bodies: &[u64],
    ) -> Result<(), NttError> {
        let (fhew, big) = (self.fhew, self.fhew.degree());
        let (field, q) = (&fhew.field, fhew.q() as i64);
        // 2 levels products: below 2^(2 bits of q + 7), as there are at most 62 digits; Gadget has q below 2^60
        self.sums.fill(0);
        for (component, polynomial) in accumulator.chunks_exact(big).enumerate() {
            fhew.monomial(polynomial, exponent, &mut self.difference);
            field.sub_assign(&mut self.difference, polynomial);
            for (at, x) in self.difference.iter().enumerate() {
                fhew.rotating.digits(*x, &mut self.digits);
                let places = self.polynomials.iter_mut().skip(at).step_by(big);
                for (o, digit) in places.zip(&self.digits) {
                    *o = (digit + (q & (digit >> 63))) as u64;
                }
            }
            fhew.tables.forward_all(&mut self.polynomials)?;
            let (first, second) = self.sums.split_at_mut(big);
            let rows = masks
                .chunks_exact(big)
                .zip(bodies.chunks_exact(big))
                .skip(component)
                .step_by(2);
            for (digit, (mask, body)) in self.polynomials.chunks_exact(big).zip(rows) {
                multiply_add(first, digit, mask);
                multiply_add(second, digit, body);
            }
        }
        let sums = self.sums.chunks_exact(big);
        for (sum, polynomial) in sums.zip(accumulator.chunks_exact_mut(big)) {
            for (o, x) in self.product.iter_mut().zip(sum) {
                *o = field.from_u128(*x);
            }
            fhew.tables.inverse(&mut self.product)?;
            field.add_assign(polynomial, &self.product);
        }
        Ok(())
    }
}

/// sums += a b, without reduction.
fn multiply_add(sums: &mut [u128], a: &[u64], b: &[u64]) {
    for ((sum, x), y) in sums.iter_mut().zip(a).zip(b) {
        *sum += u128::from(*x) * u128::from(*y);
    }
}
