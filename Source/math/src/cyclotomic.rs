//! The transform of `Z_q[X]/Phi_m(X)` for a cyclotomic polynomial of any order m: values at the primitive m-th roots of unity.
//!
//! Forward: Bluestein's algorithm ("A linear filtering approach to the computation of the discrete Fourier transform", 1970). With the
//! chirps `c(k) = w^(k(k-1)/2)`, `w^(jk) = c(j + k) / (c(j) c(k))`, so all values are one correlation with the chirps. It is computed as
//! a product modulo `X^n + 1` for the smallest power of two `n >= m + phi(m) - 1`: what wraps around falls on places that are not used.
//!
//! Inverse: let `Psi_m = (X^m - 1) / Phi_m`. The polynomial of degree below m with the values `a(w^j) Psi_m(w^j)` at all m powers of w is
//! `a Psi_m` itself, since `Psi_m` is zero at the other powers. One correlation gives its coefficients. From `Phi_m Psi_m = X^m - 1`,
//! `a = -(a Psi_m) Phi_m` modulo `X^phi(m)`, and `Phi_m` is a product of factors `(1 - X^d)^(+-1)`, one for each divisor d of m with a
//! squarefree cofactor: each takes as many additions as there are coefficients.

use zeroize::Zeroizing;

use crate::domain::Domain;
use crate::modular::{Shoup, add_if_negative, reduce_once};
use crate::ntt::{NttError, NttTables};
use crate::zq::Zq;

/// The largest order: convolutions have up to 2^17 values.
const LARGEST_ORDER: usize = 65535;

/// Orders, moduli or arrays that the cyclotomic transform cannot work with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CyclotomicError {
    /// The convolution has no transform.
    #[error(transparent)]
    Ntt(#[from] NttError),
    /// The order is out of range.
    #[error("order {m} is unusable: choose 3 to {LARGEST_ORDER}")]
    Order {
        /// The refused order.
        m: usize,
    },
    /// The field has no primitive m-th root of unity.
    #[error(
        "F_{q} has no primitive root of unity of order {m}: choose a prime that is 1 modulo {m}"
    )]
    NoRoot {
        /// The modulus.
        q: u64,
        /// The order.
        m: usize,
    },
    /// The array is no sequence of polynomials of the ring.
    #[error("{len} values are no whole number of polynomials of {degree} coefficients")]
    Length {
        /// Length of the refused array.
        len: usize,
        /// Coefficients of a polynomial, phi(m).
        degree: usize,
    },
    /// The exponent of an automorphism has a factor in common with the order.
    #[error("X -> X^{t} is no automorphism: the exponent must be coprime to {m}")]
    Exponent {
        /// The refused exponent.
        t: u64,
        /// The order.
        m: usize,
    },
}

/// Tables of one correlation with chirps: which values enter with which factors, and which results leave with which.
#[derive(Clone, Debug)]
struct Correlation {
    /// Place in the convolution, and factor, of each input.
    into: Vec<(u32, Shoup)>,
    /// The transform of the chirps.
    chirps: Vec<Shoup>,
    /// Place in the convolution, and factor, of each output.
    out: Vec<(u32, Shoup)>,
}

/// Tables of the transform of one order m and prime q.
///
/// With `w = x^((q-1)/m)` for the smallest `x >= 2` that gives an element of order m, place i of the transform holds `a(w^j)` for the i-th
/// smallest j in `1..m` that is coprime to m. Multiplying transforms place by place multiplies polynomials modulo `Phi_m`.
#[derive(Clone, Debug)]
pub struct CyclotomicTables {
    m: usize,
    field: Zq,
    root: u64,
    ntt: NttTables,
    /// The j coprime to m, ascending.
    places: Vec<u32>,
    forward: Correlation,
    inverse: Correlation,
    factors: Vec<Factor>,
}

/// `1 - X^distance`, or one divided by that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Factor {
    distance: usize,
    divides: bool,
}

impl CyclotomicTables {
    /// Tables for order `m`, 3 to 65535, and a prime `q` that is 1 modulo m and modulo 2n, where n is the smallest power of two from
    /// m + phi(m) - 1 on.
    ///
    /// # Errors
    ///
    /// [`CyclotomicError`] for another order or modulus.
    pub fn new(q: u64, m: usize) -> Result<Self, CyclotomicError> {
        if !(3..=LARGEST_ORDER).contains(&m) {
            return Err(CyclotomicError::Order { m });
        }
        let places = coprime_to(m);
        let n = (m + places.len() - 1).next_power_of_two();
        let field = Zq::new(q).map_err(NttError::from)?;
        let root = root_of_order(&field, m).ok_or(CyclotomicError::NoRoot { q, m })?;
        let ntt = NttTables::of_degree(q, n)?;
        let mut tables = Self {
            m,
            forward: Correlation::empty(),
            inverse: Correlation::empty(),
            factors: factors(m),
            field,
            root,
            ntt,
            places,
        };
        tables.make_correlations()?;
        Ok(tables)
    }

    /// The modulus.
    pub fn modulus(&self) -> u64 {
        self.field.modulus()
    }

    /// The order m.
    pub fn order(&self) -> usize {
        self.m
    }

    /// Coefficients of a polynomial, phi(m).
    pub fn degree(&self) -> usize {
        self.places.len()
    }

    /// The primitive m-th root of unity.
    pub fn root(&self) -> u64 {
        self.root
    }

    /// Transforms polynomials that lie one after another, in place: canonical coefficients in, canonical values out.
    ///
    /// # Errors
    ///
    /// [`CyclotomicError::Length`] if `a.len()` is no multiple of phi(m).
    pub fn forward_all(&self, a: &mut [u64]) -> Result<(), CyclotomicError> {
        self.check(a.len())?;
        let mut buffer = self.buffer();
        for polynomial in a.chunks_exact_mut(self.degree()) {
            self.correlate(&self.forward, polynomial, &mut buffer)?;
        }
        Ok(())
    }

    /// Undoes [`forward_all`](Self::forward_all).
    ///
    /// # Errors
    ///
    /// [`CyclotomicError::Length`] if `a.len()` is no multiple of phi(m).
    pub fn inverse_all(&self, a: &mut [u64]) -> Result<(), CyclotomicError> {
        self.check(a.len())?;
        let mut buffer = self.buffer();
        for values in a.chunks_exact_mut(self.degree()) {
            self.correlate(&self.inverse, values, &mut buffer)?;
            for factor in &self.factors {
                factor.apply(values, self.modulus());
            }
        }
        Ok(())
    }

    /// The transform of `a(X^t)` from the transform of `a`, for each of the polynomials that lie one after another: a permutation of their
    /// places.
    ///
    /// # Errors
    ///
    /// [`CyclotomicError::Length`] if `a.len()` is no multiple of phi(m), [`CyclotomicError::Exponent`] if `t` is not coprime to m.
    pub fn automorphism(&self, a: &[u64], t: u64) -> Result<Vec<u64>, CyclotomicError> {
        self.check(a.len())?;
        let step = (t % self.m as u64) as usize;
        if gcd(step, self.m) != 1 {
            return Err(CyclotomicError::Exponent { t, m: self.m });
        }
        let mut place_of = vec![0; self.m];
        for (place, &j) in self.places.iter().enumerate() {
            *at_mut(&mut place_of, j as usize)? = place;
        }
        let sources = self
            .places
            .iter()
            .map(|&j| at(&place_of, j as usize * step % self.m))
            .collect::<Result<Vec<usize>, _>>()?;
        let mut out = Vec::with_capacity(a.len());
        for values in a.chunks_exact(self.degree()) {
            for &source in &sources {
                out.push(at(values, source)?);
            }
        }
        Ok(out)
    }

    fn check(&self, len: usize) -> Result<(), CyclotomicError> {
        let degree = self.degree();
        if len.is_multiple_of(degree) {
            Ok(())
        } else {
            Err(CyclotomicError::Length { len, degree })
        }
    }

    /// Room for a convolution. It holds what may be secret, so it is wiped on drop.
    fn buffer(&self) -> Zeroizing<Vec<u64>> {
        Zeroizing::new(vec![0; self.ntt.degree()])
    }

    /// Replaces the values by their correlation.
    fn correlate(
        &self,
        tables: &Correlation,
        values: &mut [u64],
        buffer: &mut [u64],
    ) -> Result<(), CyclotomicError> {
        let q = self.modulus();
        buffer.fill(0);
        for (x, (place, factor)) in values.iter().zip(&tables.into) {
            *at_mut(buffer, *place as usize)? = reduce_once(factor.mul_lazy(*x, q), q);
        }
        self.ntt.forward(buffer)?;
        for (x, chirp) in buffer.iter_mut().zip(&tables.chirps) {
            *x = reduce_once(chirp.mul_lazy(*x, q), q);
        }
        self.ntt.inverse(buffer)?;
        for (x, (place, factor)) in values.iter_mut().zip(&tables.out) {
            *x = reduce_once(factor.mul_lazy(at(buffer, *place as usize)?, q), q);
        }
        Ok(())
    }

    /// The tables of both directions.
    fn make_correlations(&mut self) -> Result<(), CyclotomicError> {
        let (m, degree) = (self.m, self.places.len());
        let powers = powers(&self.field, self.root, m);
        let chirp = |k: usize, negative: bool| {
            let exponent = ((k as u64 * (k as u64).saturating_sub(1) / 2) % m as u64) as usize;
            at(
                &powers,
                if negative {
                    (m - exponent) % m
                } else {
                    exponent
                },
            )
        };
        let shoup = |x| self.field.shoup(x);
        let forward = Correlation {
            into: (0..degree)
                .map(|k| Ok(((degree - 1 - k) as u32, shoup(chirp(k, true)?))))
                .collect::<Result<_, CyclotomicError>>()?,
            chirps: self.transformed((0..m + degree - 1).map(|k| chirp(k, false)))?,
            out: (self.places.iter())
                .map(|&j| Ok((degree as u32 - 1 + j, shoup(chirp(j as usize, true)?))))
                .collect::<Result<_, CyclotomicError>>()?,
        };
        // Psi_m(w^j) / m is the factor of an input of the inverse, besides its chirp; that of an output is negated, as -Phi_m reduces it.
        let scaled = self.scaled_cofactors(&powers)?;
        let inverse = Correlation {
            into: (self.places.iter().zip(scaled))
                .map(|(&j, factor)| {
                    let factor = self.field.mul(factor, chirp(j as usize, false)?);
                    Ok((m as u32 - 1 - j, shoup(factor)))
                })
                .collect::<Result<_, CyclotomicError>>()?,
            chirps: self.transformed((0..m + degree - 1).map(|k| chirp(k, true)))?,
            out: (0..degree)
                .map(|k| Ok(((m - 1 + k) as u32, shoup(self.field.neg(chirp(k, false)?)))))
                .collect::<Result<_, CyclotomicError>>()?,
        };
        (self.forward, self.inverse) = (forward, inverse);
        Ok(())
    }

    /// The transform of chirps, as factors.
    fn transformed(
        &self,
        chirps: impl Iterator<Item = Result<u64, CyclotomicError>>,
    ) -> Result<Vec<Shoup>, CyclotomicError> {
        let mut padded = vec![0; self.ntt.degree()];
        for (place, chirp) in padded.iter_mut().zip(chirps) {
            *place = chirp?;
        }
        self.ntt.forward(&mut padded)?;
        Ok(padded.into_iter().map(|x| self.field.shoup(x)).collect())
    }

    /// `Psi_m(w^j) / m` for all j coprime to m. `Psi_m` is `-1` times the factors `1 - X^d` of `Phi_m` other than that of d = m, each with
    /// the opposite exponent.
    fn scaled_cofactors(&self, powers: &[u64]) -> Result<Vec<u64>, CyclotomicError> {
        let field = &self.field;
        let inverse_of_m = field
            .invert(self.m as u64 % field.modulus())
            .ok_or_else(outside)?;
        let (mut above, mut below) = (Vec::new(), Vec::new());
        for &j in &self.places {
            let (mut numerator, mut denominator) = (field.neg(inverse_of_m), 1);
            for factor in self.factors.iter().filter(|f| f.distance < self.m) {
                let power = at(powers, j as usize * factor.distance % self.m)?;
                let side = if factor.divides {
                    &mut numerator
                } else {
                    &mut denominator
                };
                *side = field.mul(*side, field.sub(1, power));
            }
            above.push(numerator);
            below.push(denominator);
        }
        let inverses = field.batch_invert(&below).ok_or_else(outside)?;
        field.mul_assign(&mut above, &inverses);
        Ok(above)
    }
}

impl Correlation {
    fn empty() -> Self {
        Self {
            into: Vec::new(),
            chirps: Vec::new(),
            out: Vec::new(),
        }
    }
}

impl Factor {
    /// Multiplies a power series by the factor, modulo `X^len`.
    fn apply(self, a: &mut [u64], q: u64) {
        let len = a.len();
        if self.distance >= len {
            return;
        }
        if self.divides {
            // b_i = a_i + b_(i - distance)
            let (first, rest) = a.split_at_mut(self.distance);
            let mut before: &mut [u64] = first;
            for block in rest.chunks_mut(self.distance) {
                for (x, y) in block.iter_mut().zip(before.iter()) {
                    *x = reduce_once(*x + *y, q);
                }
                before = block;
            }
        } else {
            // b_i = a_i - a_(i - distance), from the last one on
            let mut end = len;
            while end > self.distance {
                let start = end.saturating_sub(self.distance).max(self.distance);
                let (low, high) = a.split_at_mut(start);
                let before = low.iter().skip(start - self.distance);
                for (x, y) in high.iter_mut().take(end - start).zip(before) {
                    *x = add_if_negative(x.wrapping_sub(*y), q);
                }
                end = start;
            }
        }
    }
}

/// The factors of `Phi_m`: `Phi_m` is the product of `(1 - X^d)^mu(m/d)` over the divisors d of m (the signs cancel for m > 1).
fn factors(m: usize) -> Vec<Factor> {
    let of = |distance: usize| {
        let sign = moebius(m / distance);
        (sign != 0).then_some(Factor {
            distance,
            divides: sign < 0,
        })
    };
    (1..=m)
        .filter(|d| m.is_multiple_of(*d))
        .filter_map(of)
        .collect()
}

/// The Moebius function.
fn moebius(n: usize) -> i8 {
    let primes = prime_factors(n);
    let product: usize = primes.iter().product();
    match (product == n, primes.len() % 2) {
        (false, _) => 0,
        (true, 0) => 1,
        (true, _) => -1,
    }
}

/// The different prime factors, ascending.
fn prime_factors(n: usize) -> Vec<usize> {
    let (mut rest, mut found) = (n, Vec::new());
    for p in 2..=n {
        if p * p > rest {
            break;
        }
        if rest.is_multiple_of(p) {
            found.push(p);
            while rest.is_multiple_of(p) {
                rest /= p;
            }
        }
    }
    if rest > 1 {
        found.push(rest);
    }
    found
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The numbers in `1..m` that are coprime to m, ascending.
fn coprime_to(m: usize) -> Vec<u32> {
    (1..m)
        .filter(|j| gcd(*j, m) == 1)
        .map(|j| j as u32)
        .collect()
}

/// `x^((q-1)/m)` for the smallest `x >= 2` for which it has order m; `None` if q is not 1 modulo m.
fn root_of_order(field: &Zq, m: usize) -> Option<u64> {
    let q = field.modulus();
    if !(q - 1).is_multiple_of(m as u64) {
        return None;
    }
    let primes = prime_factors(m);
    (2..q)
        .map(|x| field.pow(x, (q - 1) / m as u64))
        .find(|&w| primes.iter().all(|p| field.pow(w, (m / p) as u64) != 1))
}

/// `w^i` for i below m.
fn powers(field: &Zq, w: u64, m: usize) -> Vec<u64> {
    let next = |power: &u64| Some(field.mul(*power, w));
    std::iter::successors(Some(1), next).take(m).collect()
}

/// The error for an index beyond a table.
fn outside() -> CyclotomicError {
    CyclotomicError::Ntt(NttError::Internal {
        found: "an index that a table of this order does not have",
    })
}

fn at<T: Copy>(a: &[T], i: usize) -> Result<T, CyclotomicError> {
    a.get(i).copied().ok_or_else(outside)
}

fn at_mut<T>(a: &mut [T], i: usize) -> Result<&mut T, CyclotomicError> {
    a.get_mut(i).ok_or_else(outside)
}
