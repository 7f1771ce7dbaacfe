//! Products in Z_2^64[X]/(X^n + 1), by transforms modulo three primes and the Chinese remainder theorem.
//!
//! The integer coefficients of a product of polynomials of words are below n * 2^128 in absolute value, and the product of the primes
//! is above 2^149. So the three residues of a coefficient determine it for every n up to 2^15. Its value modulo 2^64 is the result.
//!
//! A factor of double words, as shares with MACs are, is two polynomials of words. Then the result is wanted modulo 2^128: the product with the low words as the
//! integers that it consists of, and that with the high words modulo 2^64.

use zeroize::Zeroizing;

use crate::domain::Domain;
use crate::modular::{Shoup, reduce_once};
use crate::ntt::{NttError, NttTables};
use crate::zq::Zq;

/// The three largest primes below 2^50 that are 1 modulo 2^16: each has a transform of every length up to 2^15. Below 2^50 transforms are
/// fastest where the processor has products of 52 bits, and the product of three is still above 2 n 2^128. The order is decreasing, and
/// each is below twice the next one.
const PRIMES: [u64; 3] = [
    1_125_899_904_679_937,
    1_125_899_903_827_969,
    1_125_899_903_500_289,
];

/// Tables for products of polynomials of one ring degree, with coefficients modulo 2^64 or up to 2^128.
#[derive(Clone, Debug)]
pub struct Negacyclic {
    tables: [NttTables; 3],
    fields: [Zq; 3],
    /// 1 / p_0 modulo p_1, 1 / p_0 modulo p_2, and 1 / p_1 modulo p_2.
    inverses: [Shoup; 3],
}

/// A polynomial in the form in which [`Negacyclic::product`] takes it: its transform modulo each prime. Wiped on drop.
pub struct Transformed([Zeroizing<Vec<u64>>; 3]);

/// A polynomial of double words in the form in which [`Negacyclic::product_wide`] takes it. Wiped on drop.
pub struct TransformedWide {
    low: Transformed,
    high: Transformed,
}

impl Negacyclic {
    /// Tables for ring degree `n`, a power of two in `2..=32768`.
    ///
    /// # Errors
    ///
    /// [`NttError::Degree`] for another `n`.
    pub fn new(n: usize) -> Result<Self, NttError> {
        let [p0, p1, p2] = PRIMES;
        let fields = [Zq::new(p0)?, Zq::new(p1)?, Zq::new(p2)?];
        let [_, f1, f2] = &fields;
        let inverse = |field: &Zq, of: u64| {
            let q = field.modulus();
            field.shoup(field.pow(reduce_once(of, q), q - 2))
        };
        let inverses = [inverse(f1, p0), inverse(f2, p0), inverse(f2, p1)];
        let tables = [
            NttTables::new(p0, n)?,
            NttTables::new(p1, n)?,
            NttTables::new(p2, n)?,
        ];
        Ok(Self {
            tables,
            fields,
            inverses,
        })
    }

    /// The ring degree.
    pub fn degree(&self) -> usize {
        let [first, ..] = &self.tables;
        first.degree()
    }

    /// Transforms a polynomial once, for many products.
    ///
    /// # Errors
    ///
    /// [`NttError::Length`] if `a.len()` is not the ring degree.
    pub fn transform(&self, a: &[u64]) -> Result<Transformed, NttError> {
        let [t0, t1, t2] = &self.tables;
        let [f0, f1, f2] = &self.fields;
        let modulo = |tables: &NttTables, field: &Zq| {
            let residues: Vec<u64> = a.iter().map(|x| field.reduce_word(*x)).collect();
            let mut residues = Zeroizing::new(residues);
            tables.forward(&mut residues)?;
            Ok::<_, NttError>(residues)
        };
        Ok(Transformed([
            modulo(t0, f0)?,
            modulo(t1, f1)?,
            modulo(t2, f2)?,
        ]))
    }

    /// Transforms a polynomial of double words once, for many products.
    ///
    /// # Errors
    ///
    /// [`NttError::Length`] if `a.len()` is not the ring degree.
    pub fn transform_wide(&self, a: &[u128]) -> Result<TransformedWide, NttError> {
        let words = |shift: u32| {
            let words: Vec<u64> = a.iter().map(|x| (x >> shift) as u64).collect();
            self.transform(&Zeroizing::new(words))
        };
        Ok(TransformedWide {
            low: words(0)?,
            high: words(64)?,
        })
    }

    /// The product of two polynomials modulo X^n + 1 and 2^64.
    ///
    /// # Errors
    ///
    /// [`NttError::Length`] if one of them has another ring degree.
    pub fn product(&self, a: &Transformed, b: &Transformed) -> Result<Vec<u64>, NttError> {
        let [p0, p1, p2] = PRIMES;
        let modulus = p0.wrapping_mul(p1).wrapping_mul(p2);
        self.coefficients(a, b, |[r0, v1, v2], negative| {
            r0.wrapping_add(p0.wrapping_mul(v1.wrapping_add(p1.wrapping_mul(v2))))
                .wrapping_sub(modulus & negative.wrapping_neg())
        })
    }

    /// The product of a polynomial of words and one of double words modulo X^n + 1 and 2^128.
    ///
    /// # Errors
    ///
    /// [`NttError::Length`] if one of them has another ring degree.
    pub fn product_wide(
        &self,
        a: &Transformed,
        b: &TransformedWide,
    ) -> Result<Vec<u128>, NttError> {
        let [p0, p1, p2] = PRIMES.map(u128::from);
        let modulus = p0.wrapping_mul(p1).wrapping_mul(p2);
        let mut out = self.coefficients(a, &b.low, |[r0, v1, v2], negative| {
            // p1 v2 has 100 bits
            let rest = u128::from(v1) + p1 * u128::from(v2);
            u128::from(r0)
                .wrapping_add(p0.wrapping_mul(rest))
                .wrapping_sub(modulus & u128::from(negative).wrapping_neg())
        })?;
        let high = Zeroizing::new(self.product(a, &b.high)?);
        for (sum, high) in out.iter_mut().zip(high.iter()) {
            *sum = sum.wrapping_add(u128::from(*high) << 64);
        }
        Ok(out)
    }

    /// The integer coefficients of a product: `number` makes of one what is wanted of it. It takes the digits r0, v1, v2 of x = r0 + p0 (v1 + p1 v2), and 1 if the
    /// coefficient is x - p0 p1 p2, 0 if it is x.
    fn coefficients<T>(
        &self,
        a: &Transformed,
        b: &Transformed,
        number: impl Fn([u64; 3], u64) -> T,
    ) -> Result<Vec<T>, NttError> {
        let [r0, r1, r2] = &self.residues(a, b)?;
        let [_, f1, f2] = &self.fields;
        let [i01, i02, i12] = self.inverses;
        let (q1, q2) = (f1.modulus(), f2.modulus());
        let times = |factor: Shoup, x: u64, q: u64| reduce_once(factor.mul_lazy(x, q), q);
        let coefficient = |((r0, r1), r2): ((&u64, &u64), &u64)| {
            let v1 = times(i01, difference(*r1, reduce_once(*r0, q1), q1), q1);
            let partial = times(i02, difference(*r2, reduce_once(*r0, q2), q2), q2);
            let v2 = times(i12, difference(partial, reduce_once(v1, q2), q2), q2);
            // x is near 0 or near the product of the primes: a high digit above the middle means a negative coefficient
            let negative = (q2 / 2).wrapping_sub(v2) >> 63;
            number([*r0, v1, v2], negative)
        };
        Ok(r0
            .iter()
            .zip(r1.iter())
            .zip(r2.iter())
            .map(coefficient)
            .collect())
    }

    /// The coefficients of the integer product modulo each prime.
    fn residues(
        &self,
        a: &Transformed,
        b: &Transformed,
    ) -> Result<[Zeroizing<Vec<u64>>; 3], NttError> {
        let [t0, t1, t2] = &self.tables;
        let [f0, f1, f2] = &self.fields;
        let (Transformed([a0, a1, a2]), Transformed([b0, b1, b2])) = (a, b);
        let n = self.degree();
        let modulo = |tables: &NttTables, field: &Zq, a: &[u64], b: &[u64]| {
            if b.len() != n {
                return Err(NttError::Length { len: b.len(), n });
            }
            let mut x = Zeroizing::new(a.to_vec());
            if x.len() != n {
                return Err(NttError::Length { len: x.len(), n });
            }
            field.mul_assign(&mut x, b);
            tables.inverse(&mut x)?;
            Ok(x)
        };
        Ok([
            modulo(t0, f0, a0, b0)?,
            modulo(t1, f1, a1, b1)?,
            modulo(t2, f2, a2, b2)?,
        ])
    }
}

/// `a - b` modulo q, for residues.
fn difference(a: u64, b: u64, q: u64) -> u64 {
    reduce_once(a + (q - b), q)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)] // a failed test may panic
mod tests {
    use super::*;
    use crate::prg::Prg;

    fn schoolbook(a: &[u64], b: &[u64]) -> Vec<u64> {
        let b: Vec<u128> = b.iter().map(|y| u128::from(*y)).collect();
        let wide = schoolbook_wide(a, &b);
        wide.into_iter().map(|x| x as u64).collect()
    }

    #[test]
    fn products_are_those_of_the_schoolbook() {
        let mut prg = Prg::new([7; 16], 0);
        for n in [2, 8, 64, 2048] {
            let ring = Negacyclic::new(n).unwrap();
            assert_eq!(ring.degree(), n);
            let mut random = || {
                let mut words = vec![0; n];
                prg.fill_u64(&mut words);
                words
            };
            let one = [vec![1], vec![0; n - 1]].concat();
            let alternating = (0..n).map(|i| (i as u64 % 2).wrapping_neg()).collect();
            let mut polynomials = vec![vec![0; n], vec![u64::MAX; n], one, alternating];
            polynomials.extend([vec![1 << 63; n], random(), random()]);
            for (i, a) in polynomials.iter().enumerate() {
                for b in polynomials.iter().skip(i) {
                    let (x, y) = (ring.transform(a).unwrap(), ring.transform(b).unwrap());
                    assert_eq!(ring.product(&x, &y).unwrap(), schoolbook(a, b), "{n}");
                    assert_eq!(ring.product(&y, &x).unwrap(), schoolbook(a, b), "{n}");
                }
            }
        }
    }

    fn schoolbook_wide(a: &[u64], b: &[u128]) -> Vec<u128> {
        let n = a.len();
        let mut out = vec![0u128; n];
        for (i, x) in a.iter().enumerate() {
            for (j, y) in b.iter().enumerate() {
                let product = u128::from(*x).wrapping_mul(*y);
                let at = &mut out[(i + j) % n];
                *at = if i + j < n {
                    at.wrapping_add(product)
                } else {
                    at.wrapping_sub(product)
                };
            }
        }
        out
    }

    #[test]
    fn wide_products_are_those_of_the_schoolbook() {
        let mut prg = Prg::new([8; 16], 0);
        for n in [2, 8, 64, 1024] {
            let ring = Negacyclic::new(n).unwrap();
            let (mut words, mut wide) = (vec![0u64; n], vec![0u128; n]);
            prg.fill_u64(&mut words);
            prg.fill_u128(&mut wide);
            let low = wide.iter().map(|x| x & u128::from(u64::MAX)).collect();
            let alternating = (0..n).map(|i| (i as u128 % 2).wrapping_neg()).collect();
            let factors = [
                wide,
                low,
                vec![u128::MAX; n],
                vec![1 << 127; n],
                alternating,
            ];
            for a in [words, vec![u64::MAX; n], vec![1; n], vec![0; n]] {
                let x = ring.transform(&a).unwrap();
                for b in &factors {
                    let y = ring.transform_wide(b).unwrap();
                    let wanted = schoolbook_wide(&a, b);
                    assert_eq!(ring.product_wide(&x, &y).unwrap(), wanted, "{n}");
                }
            }
        }
    }

    #[test]
    fn the_largest_degree_has_room() {
        let n = 1 << 15;
        let ring = Negacyclic::new(n).unwrap();
        let x = ring.transform(&vec![u64::MAX; n]).unwrap();
        // (-1)(-1) = 1 for each pair: coefficient k has k + 1 of them, less n - k - 1 that wrapped around
        let wanted: Vec<u64> = (1..=n as u64)
            .map(|k| (2 * k).wrapping_sub(n as u64))
            .collect();
        assert_eq!(ring.product(&x, &x).unwrap(), wanted);
        // (2^64 - 1)(2^128 - 1) = 1 - 2^64 modulo 2^128
        let y = ring.transform_wide(&vec![u128::MAX; n]).unwrap();
        let each = 1u128.wrapping_sub(1 << 64);
        let wanted: Vec<u128> = (1..=n as u128)
            .map(|k| (2 * k).wrapping_sub(n as u128).wrapping_mul(each))
            .collect();
        assert_eq!(ring.product_wide(&x, &y).unwrap(), wanted);
    }

    #[test]
    fn other_degrees_are_refused() {
        for n in [0, 1, 3, 12, 1 << 16] {
            assert!(matches!(Negacyclic::new(n), Err(NttError::Degree { .. })));
        }
        let (small, large) = (Negacyclic::new(8).unwrap(), Negacyclic::new(16).unwrap());
        assert!(small.transform(&[1; 16]).is_err());
        let (x, y) = (
            small.transform(&[1; 8]).unwrap(),
            large.transform(&[1; 16]).unwrap(),
        );
        assert!(small.product(&x, &y).is_err() && small.product(&y, &x).is_err());
        assert!(small.transform_wide(&[1; 16]).is_err());
        let wide = small.transform_wide(&[1; 8]).unwrap();
        assert!(small.product_wide(&y, &wide).is_err() && large.product_wide(&y, &wide).is_err());
    }

    #[test]
    #[ignore = "a measurement"]
    fn speed() {
        let ring = Negacyclic::new(2048).unwrap();
        let s = ring.transform(&[u64::MAX - 12345; 2048]).unwrap();
        let a = vec![0x0123_4567_89ab_cdef; 2048];
        let begin = std::time::Instant::now();
        for _ in 0..1000 {
            let x = ring.transform(&a).unwrap();
            std::hint::black_box(ring.product(&x, &s).unwrap());
        }
        println!("{:.1} microseconds", begin.elapsed().as_secs_f64() * 1e3);
    }
}
