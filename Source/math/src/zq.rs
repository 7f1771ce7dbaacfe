//! Prime fields with a modulus of at most 62 bits.

use zeroize::Zeroize;

use crate::codec;
use crate::domain::{DecodeError, Domain, DomainError, DomainKind};
use crate::ntt::Shoup;
use crate::prg::Prg;

/// The field of integers modulo an odd prime `q < 2^62`, canonical residues in `[0, q)`.
#[derive(Clone, Debug)]
pub struct Zq {
    barrett: Barrett,
}

/// Barrett reduction with one quotient word and at most one correction.
///
/// Let `L` be the bit length of `q`. For `z < 2^(2L)`, the estimate
/// `floor(floor(z / 2^(L-2)) * floor(2^(L+63) / q) / 2^65)` of `z / q` is at most 1 too small: the
/// two inner roundings cost less than `1/2` each, the outer one less than 1.
#[derive(Clone, Copy, Debug)]
struct Barrett {
    q: u64,
    /// `floor(2^(L+63) / q)`.
    mu: u64,
    /// `L - 2`.
    right: u32,
    /// `64 - (L - 2)`; 63 for `q = 3`, where the high word is zero anyway.
    left: u32,
    /// `floor(2^64 / q)`.
    mu_word: u64,
    /// `2^64 mod q`.
    word: u64,
}

impl Barrett {
    fn new(q: u64) -> Self {
        let length = u64::BITS - q.leading_zeros();
        let word = ((1u128 << 64) % u128::from(q)) as u64;
        Self {
            q,
            mu: ((1u128 << (length + 63)) / u128::from(q)) as u64,
            right: length - 2,
            left: (66 - length).min(63),
            mu_word: ((1u128 << 64) / u128::from(q)) as u64,
            word,
        }
    }

    /// `z mod q` for `z < 2^(2L)`.
    #[inline(always)]
    fn reduce(&self, z: u128) -> u64 {
        let (low, high) = (z as u64, (z >> 64) as u64);
        let top = (high << self.left) | (low >> self.right);
        let estimate = ((u128::from(top) * u128::from(self.mu)) >> 65) as u64;
        reduce_once(low.wrapping_sub(estimate.wrapping_mul(self.q)), self.q)
    }

    /// `x mod q` for every word.
    #[inline(always)]
    fn reduce_word(&self, x: u64) -> u64 {
        let estimate = ((u128::from(x) * u128::from(self.mu_word)) >> 64) as u64;
        reduce_once(x.wrapping_sub(estimate.wrapping_mul(self.q)), self.q)
    }

    /// `z mod q` for every double word.
    #[inline(always)]
    fn reduce_wide(&self, z: u128) -> u64 {
        let high = self.reduce_word((z >> 64) as u64);
        let low = self.reduce_word(z as u64);
        self.reduce(u128::from(high) * u128::from(self.word) + u128::from(low))
    }
}

/// `x mod m` for `x < 2m`, `m < 2^63`, without a branch.
#[inline(always)]
fn reduce_once(x: u64, m: u64) -> u64 {
    let y = x.wrapping_sub(m);
    y.wrapping_add(m & (y >> 63).wrapping_neg())
}

impl Zq {
    /// The field with `q` elements.
    ///
    /// # Errors
    ///
    /// [`DomainError::NotAnOddPrime`] if `q` is even, composite or not below 2^62.
    pub fn new(q: u64) -> Result<Self, DomainError> {
        if q % 2 == 0 || q >= 1 << 62 || !is_prime(q) {
            return Err(DomainError::NotAnOddPrime { q });
        }
        Ok(Self {
            barrett: Barrett::new(q),
        })
    }

    /// The modulus.
    #[inline]
    pub fn modulus(&self) -> u64 {
        self.barrett.q
    }

    /// `a^e`. The exponent is public: it decides the sequence of operations.
    pub fn pow(&self, a: u64, e: u64) -> u64 {
        (0..u64::BITS - e.leading_zeros())
            .rev()
            .fold(1, |power, bit| {
                let square = self.mul(power, power);
                if (e >> bit) & 1 == 1 {
                    self.mul(square, a)
                } else {
                    square
                }
            })
    }

    /// All inverses, `None` if one of the elements is zero.
    pub fn batch_invert(&self, a: &[u64]) -> Option<Vec<u64>> {
        a.iter().map(|&x| self.invert(x)).collect()
    }

    /// The smaller square root, `None` for non-squares. Not for secrets.
    pub fn sqrt(&self, a: u64) -> Option<u64> {
        if a == 0 {
            return Some(0);
        }
        let inverse = self.inv_sqrt_batch(&[a]).into_iter().next()?;
        let root = self.mul(a, inverse);
        (self.mul(root, root) == a).then(|| root.min(self.modulus() - root))
    }

    /// `1/sqrt(c)` for every element, one of the two roots, always the same one.
    pub fn inv_sqrt_batch(&self, c: &[u64]) -> Vec<u64> {
        let q = self.modulus();
        c.iter().map(|&x| self.pow(x, (q - 3) / 4)).collect()
    }
}

/// Whether `n` is prime: Miller-Rabin with the first twelve primes, which is exact below 2^64
/// (Sorenson and Webster, 2015).
pub fn is_prime(n: u64) -> bool {
    const BASES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
    if n < 2 {
        return false;
    }
    if let Some(p) = BASES.iter().find(|&&p| n % p == 0) {
        return n == *p;
    }
    let mul = |a: u64, b: u64| (u128::from(a) * u128::from(b) % u128::from(n)) as u64;
    let twos = (n - 1).trailing_zeros();
    let odd = (n - 1) >> twos;
    BASES.iter().all(|&base| {
        let mut x = (0..u64::BITS - odd.leading_zeros())
            .rev()
            .fold(1, |power, bit| {
                let square = mul(power, power);
                if (odd >> bit) & 1 == 1 {
                    mul(square, base)
                } else {
                    square
                }
            });
        if x == 1 || x == n - 1 {
            return true;
        }
        (1..twos).any(|_| {
            x = mul(x, x);
            x == n - 1
        })
    })
}

impl Domain for Zq {
    type E = u64;

    fn kind(&self) -> DomainKind {
        DomainKind::Fq(self.modulus())
    }

    fn zero(&self) -> u64 {
        0
    }

    fn one(&self) -> u64 {
        1
    }

    #[inline]
    fn add(&self, a: u64, b: u64) -> u64 {
        reduce_once(a + b, self.modulus())
    }

    #[inline]
    fn sub(&self, a: u64, b: u64) -> u64 {
        let y = a.wrapping_sub(b);
        y.wrapping_add(self.modulus() & (y >> 63).wrapping_neg())
    }

    #[inline]
    fn neg(&self, a: u64) -> u64 {
        self.sub(0, a)
    }

    #[inline]
    fn mul(&self, a: u64, b: u64) -> u64 {
        self.barrett.reduce(u128::from(a) * u128::from(b))
    }

    fn add_assign(&self, a: &mut [u64], b: &[u64]) {
        debug_assert_eq!(a.len(), b.len());
        for (x, &y) in a.iter_mut().zip(b) {
            *x = self.add(*x, y);
        }
    }

    fn sub_assign(&self, a: &mut [u64], b: &[u64]) {
        debug_assert_eq!(a.len(), b.len());
        for (x, &y) in a.iter_mut().zip(b) {
            *x = self.sub(*x, y);
        }
    }

    fn rsub_assign(&self, a: &mut [u64], b: &[u64]) {
        debug_assert_eq!(a.len(), b.len());
        for (x, &y) in a.iter_mut().zip(b) {
            *x = self.sub(y, *x);
        }
    }

    fn neg_assign(&self, a: &mut [u64]) {
        for x in a {
            *x = self.neg(*x);
        }
    }

    fn mul_assign(&self, a: &mut [u64], b: &[u64]) {
        debug_assert_eq!(a.len(), b.len());
        for (x, &y) in a.iter_mut().zip(b) {
            *x = self.mul(*x, y);
        }
    }

    fn add_scalar_assign(&self, a: &mut [u64], s: u64) {
        for x in a {
            *x = self.add(*x, s);
        }
    }

    fn mul_scalar_assign(&self, a: &mut [u64], s: u64) {
        let q = self.modulus();
        let mut factor = Shoup::new(s, q);
        for x in a {
            *x = reduce_once(factor.mul_lazy(*x, q), q);
        }
        factor.zeroize();
    }

    fn mul_acc(&self, acc: &mut [u64], a: &[u64], b: &[u64]) {
        debug_assert!(acc.len() == a.len() && a.len() == b.len());
        for ((z, &x), &y) in acc.iter_mut().zip(a).zip(b) {
            *z = self
                .barrett
                .reduce(u128::from(x) * u128::from(y) + u128::from(*z));
        }
    }

    fn sum(&self, a: &[u64]) -> u64 {
        let total = a.iter().fold(0u128, |s, &x| s + u128::from(x));
        self.barrett.reduce_wide(total)
    }

    fn dot(&self, a: &[u64], b: &[u64]) -> u64 {
        debug_assert_eq!(a.len(), b.len());
        // Eight products and a residue stay below 8 * 2^124 + 2^62 < 2^128.
        a.chunks(8).zip(b.chunks(8)).fold(0, |sum, (x, y)| {
            let products = x
                .iter()
                .zip(y)
                .map(|(&x, &y)| u128::from(x) * u128::from(y));
            self.barrett
                .reduce_wide(u128::from(sum) + products.sum::<u128>())
        })
    }

    fn from_i64(&self, v: i64) -> u64 {
        let size = self.barrett.reduce_word(v.unsigned_abs());
        let negative = ((v < 0) as u64).wrapping_neg();
        size ^ ((size ^ self.neg(size)) & negative)
    }

    fn from_u128(&self, v: u128) -> u64 {
        self.barrett.reduce_wide(v)
    }

    fn invert(&self, a: u64) -> Option<u64> {
        (a != 0).then(|| self.pow(a, self.modulus() - 2))
    }

    /// Draws words of `bits()` bits and drops those not below `q`.
    fn random(&self, prg: &mut Prg, out: &mut [u64]) {
        let q = self.modulus();
        let mask = u64::MAX >> q.leading_zeros();
        let mut accepted = 0;
        while accepted < out.len() {
            let missing = out.get_mut(accepted..).unwrap_or_default();
            prg.fill_u64(missing);
            let mut kept = 0;
            for i in 0..missing.len() {
                let x = missing.get(i).map_or(0, |x| x & mask);
                if let Some(o) = missing.get_mut(kept) {
                    *o = x;
                }
                kept += usize::from(x < q);
            }
            accepted += kept;
        }
    }

    fn bits(&self) -> u32 {
        u64::BITS - self.modulus().leading_zeros()
    }

    fn encode(&self, v: &[u64], out: &mut Vec<u8>) {
        codec::encode(v, self.wire_bytes(1), out);
    }

    fn decode(&self, bytes: &[u8], out: &mut [u64]) -> Result<(), DecodeError> {
        codec::decode(
            self.kind(),
            self.wire_bytes(1),
            self.modulus() - 1,
            bytes,
            out,
        )
    }
}
