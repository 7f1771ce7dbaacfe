//! The negacyclic number-theoretic transform, in the order of Microsoft SEAL.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod butterflies;
mod passes;
#[cfg(test)]
mod tests;

use self::passes::Passes;
use crate::domain::{Domain, DomainError};
use crate::modular::Shoup;
use crate::zq::Zq;

/// Parameters or arrays that the transform cannot work with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NttError {
    /// The modulus is not a prime that the field arithmetic takes.
    #[error(transparent)]
    Modulus(#[from] DomainError),
    /// The ring degree is not a power of two in range.
    #[error("ring degree {n} is unusable: choose a power of two in 2..=32768")]
    Degree {
        /// The refused degree.
        n: usize,
    },
    /// The field has no primitive 2n-th root of unity.
    #[error(
        "F_{q} has no transform of ring degree {n}: choose a prime that is 1 modulo {}", 2 * n
    )]
    NoRoot {
        /// The modulus.
        q: u64,
        /// The ring degree.
        n: usize,
    },
    /// The array is no sequence of polynomials of the ring degree.
    #[error("{len} coefficients are no whole number of polynomials of ring degree {n}")]
    Length {
        /// Length of the refused array.
        len: usize,
        /// The ring degree.
        n: usize,
    },
    /// A state that the code excludes.
    #[error("internal error: {found}: please report it")]
    Internal {
        /// What was found.
        found: &'static str,
    },
    /// The exponent of an automorphism is even.
    #[error("X -> X^{g} is no automorphism: the Galois element must be odd")]
    Galois {
        /// The refused exponent.
        g: u64,
    },
}

/// The error for an index beyond a polynomial or a table.
fn outside() -> NttError {
    NttError::Internal {
        found: "an index that a polynomial of this ring degree does not have",
    }
}

/// Reverses the low `log_n` bits of `i`.
fn bit_reverse(i: usize, log_n: u32) -> usize {
    if log_n == 0 {
        0
    } else {
        i.reverse_bits() >> (usize::BITS - log_n)
    }
}

/// Tables of the negacyclic transform modulo a prime `q` that is 1 modulo 2n.
///
/// With `psi` the numerically smallest primitive 2n-th root of unity, position `k` of the
/// transform holds `a(psi^(2 bitrev(k) + 1))`. Multiplying transforms position by position
/// multiplies polynomials modulo `X^n + 1`.
#[derive(Clone, Debug)]
pub struct NttTables {
    q: u64,
    n: usize,
    psi: u64,
    /// `psi^bitrev(i)` at `i`; position 0 is not used.
    forward: Vec<Shoup>,
    /// `psi^-bitrev(i)` at `i`; position 0 is not used.
    inverse: Vec<Shoup>,
    /// `1/n`.
    scale: Shoup,
    /// `inverse[1] / n`.
    last: Shoup,
    passes: Passes,
}

impl NttTables {
    /// Tables for ring degree `n`, a power of two in `2..=32768`.
    ///
    /// # Errors
    ///
    /// [`NttError`] if `q` is no odd prime below 2^62 or not 1 modulo 2n, or `n` is out of range.
    pub fn new(q: u64, n: usize) -> Result<Self, NttError> {
        Zq::new(q)?;
        if !n.is_power_of_two() || !(2..=32768).contains(&n) {
            return Err(NttError::Degree { n });
        }
        Self::of_degree(q, n)
    }

    /// The same for any power of two from 2 on: convolutions of this crate are longer than the polynomials of ring elements.
    pub(crate) fn of_degree(q: u64, n: usize) -> Result<Self, NttError> {
        let field = Zq::new(q)?;
        let psi = smallest_root(&field, n).ok_or(NttError::NoRoot { q, n })?;
        let psi_inverse = field.pow(psi, q - 2);
        let n_inverse = field.pow(field.from_u128(n as u128), q - 2);
        let forward = powers_bit_reversed(&field, psi, n)?;
        let inverse = powers_bit_reversed(&field, psi_inverse, n)?;
        Ok(Self {
            q,
            n,
            psi,
            passes: Passes::best(q, &forward, &inverse)?,
            forward,
            inverse,
            scale: field.shoup(n_inverse),
            // psi^-bitrev(1) = psi^-(n/2)
            last: field.shoup(field.mul(n_inverse, field.pow(psi_inverse, n as u64 / 2))),
        })
    }

    /// The modulus.
    pub fn modulus(&self) -> u64 {
        self.q
    }

    /// The ring degree.
    pub fn degree(&self) -> usize {
        self.n
    }

    /// The smallest primitive 2n-th root of unity.
    pub fn root(&self) -> u64 {
        self.psi
    }

    /// What the transforms are made with: `avx512ifma`, `avx2fma` (doubles), `avx2` (words), or `portable`. The results are the same.
    pub fn implementation(&self) -> &'static str {
        self.passes.name()
    }

    /// Transforms one polynomial in place: canonical coefficients in, canonical values out.
    ///
    /// # Errors
    ///
    /// [`NttError::Length`] if `a.len()` is not the ring degree.
    pub fn forward(&self, a: &mut [u64]) -> Result<(), NttError> {
        self.check_one(a)?;
        self.forward_unchecked(a)
    }

    /// Undoes [`forward`](Self::forward).
    ///
    /// # Errors
    ///
    /// [`NttError::Length`] if `a.len()` is not the ring degree.
    pub fn inverse(&self, a: &mut [u64]) -> Result<(), NttError> {
        self.check_one(a)?;
        self.inverse_unchecked(a)
    }

    /// Transforms polynomials that lie one after another.
    ///
    /// # Errors
    ///
    /// [`NttError::Length`] if `a.len()` is no multiple of the ring degree.
    pub fn forward_all(&self, a: &mut [u64]) -> Result<(), NttError> {
        self.check_many(a)?;
        a.chunks_exact_mut(self.n)
            .try_for_each(|polynomial| self.forward_unchecked(polynomial))
    }

    /// Undoes [`forward_all`](Self::forward_all).
    ///
    /// # Errors
    ///
    /// [`NttError::Length`] if `a.len()` is no multiple of the ring degree.
    pub fn inverse_all(&self, a: &mut [u64]) -> Result<(), NttError> {
        self.check_many(a)?;
        a.chunks_exact_mut(self.n)
            .try_for_each(|polynomial| self.inverse_unchecked(polynomial))
    }

    fn check_one(&self, a: &[u64]) -> Result<(), NttError> {
        if a.len() == self.n {
            Ok(())
        } else {
            Err(NttError::Length {
                len: a.len(),
                n: self.n,
            })
        }
    }

    fn check_many(&self, a: &[u64]) -> Result<(), NttError> {
        if a.len().is_multiple_of(self.n) {
            Ok(())
        } else {
            Err(NttError::Length {
                len: a.len(),
                n: self.n,
            })
        }
    }

    fn forward_unchecked(&self, a: &mut [u64]) -> Result<(), NttError> {
        self.passes.forward(a, &self.forward, self.q)
    }

    fn inverse_unchecked(&self, a: &mut [u64]) -> Result<(), NttError> {
        let factors = [self.scale, self.last];
        self.passes.inverse(a, &self.inverse, factors, self.q)
    }
}

/// The smallest primitive 2n-th root of unity, `None` if `q` is not 1 modulo 2n.
fn smallest_root(field: &Zq, n: usize) -> Option<u64> {
    let q = field.modulus();
    let order = 2 * n as u64;
    if !(q - 1).is_multiple_of(order) {
        return None;
    }
    // x^((q-1)/2n) is primitive exactly if its n-th power is -1, that is for half of all x.
    let mut root = (2..q)
        .map(|x| field.pow(x, (q - 1) / order))
        .find(|&r| field.pow(r, n as u64) == q - 1)?;
    let square = field.mul(root, root);
    let mut smallest = root;
    for _ in 1..n {
        root = field.mul(root, square);
        smallest = smallest.min(root);
    }
    Some(smallest)
}

fn powers_bit_reversed(field: &Zq, root: u64, n: usize) -> Result<Vec<Shoup>, NttError> {
    let mut powers = Vec::with_capacity(n);
    let mut power = 1;
    for _ in 0..n {
        powers.push(power);
        power = field.mul(power, root);
    }
    (0..n)
        .map(|i| powers.get(bit_reverse(i, n.ilog2())).ok_or_else(outside))
        .map(|w| Ok(field.shoup(*w?)))
        .collect()
}

/// `a(X^g)` modulo `X^n + 1`, for canonical coefficients modulo `q`.
///
/// # Errors
///
/// [`NttError::Degree`] if `a.len()` is no power of two, [`NttError::Galois`] if `g` is even.
pub fn automorphism(a: &[u64], g: u64, q: u64) -> Result<Vec<u64>, NttError> {
    let (n, step) = check_automorphism(a, g)?;
    let mut out = vec![0; n];
    let mut exponent = 0;
    for &x in a {
        let negated = q.wrapping_sub(x) & u64::from(x != 0).wrapping_neg();
        let o = out.get_mut(exponent % n).ok_or_else(outside)?;
        *o = if exponent < n { x } else { negated };
        exponent = (exponent + step) % (2 * n);
    }
    Ok(out)
}

/// The transform of `a(X^g)` from the transform of `a`: a permutation of its positions.
///
/// # Errors
///
/// [`NttError::Degree`] if `a.len()` is no power of two, [`NttError::Galois`] if `g` is even.
pub fn automorphism_ntt(a: &[u64], g: u64) -> Result<Vec<u64>, NttError> {
    let (n, step) = check_automorphism(a, g)?;
    let log_n = n.ilog2();
    let source = |k| {
        let exponent = (2 * bit_reverse(k, log_n) + 1) * step % (2 * n);
        let value = a.get(bit_reverse(exponent / 2, log_n));
        value.copied().ok_or_else(outside)
    };
    (0..n).map(source).collect()
}

/// The ring degree, and `g` modulo twice that degree.
fn check_automorphism(a: &[u64], g: u64) -> Result<(usize, usize), NttError> {
    let n = a.len();
    if !n.is_power_of_two() || n > 32768 {
        return Err(NttError::Degree { n });
    }
    if g.is_multiple_of(2) {
        return Err(NttError::Galois { g });
    }
    Ok((n, (g % (2 * n as u64)) as usize))
}
