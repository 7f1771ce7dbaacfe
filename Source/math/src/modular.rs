//! Reductions modulo a prime below 2^62, all without branches on the values.

use zeroize::Zeroize;

/// The Mersenne prime 2^61 - 1, which has a faster reduction.
pub(crate) const MERSENNE_61: u64 = (1 << 61) - 1;

/// `x mod m` for `x < 2m`, `m < 2^63`.
#[inline(always)]
pub(crate) fn reduce_once(x: u64, m: u64) -> u64 {
    add_if_negative(x.wrapping_sub(m), m)
}

/// `x + m` if `x` is negative as a signed word, else `x`.
#[inline(always)]
pub(crate) fn add_if_negative(x: u64, m: u64) -> u64 {
    x.wrapping_add(m & (x >> 63).wrapping_neg())
}

/// The high word of a product.
#[inline(always)]
fn mul_high(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

/// Multiplication of residues, so that a hot loop is compiled once for each kind of modulus.
pub(crate) trait Multiply: Copy {
    /// `a * b` for residues.
    fn mul(self, a: u64, b: u64) -> u64;

    /// `a * b + c` for residues.
    fn mul_add(self, a: u64, b: u64, c: u64) -> u64;
}

/// Barrett reduction with one quotient word and at most one correction.
///
/// Let `L` be the bit length of `q`. For `z < 2^(2L)`, the estimate
/// `floor(floor(z / 2^(L-2)) * floor(2^(L+63) / q) / 2^65)` of `z / q` is at most 1 too small: the
/// two inner roundings cost less than `1/2` each, the outer one less than 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Barrett {
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
    /// `-1/q` modulo 2^64.
    minus_inverse: u64,
}

impl Barrett {
    /// `q` must be odd, at least 3 and below 2^62.
    pub(crate) fn new(q: u64) -> Self {
        let length = u64::BITS - q.leading_zeros();
        let wide = u128::from(q);
        // Newton's iteration for 1/q: correct to 3, 6, 12, 24, 48, 96 bits.
        let inverse = (0..5).fold(q, |x: u64, _| {
            x.wrapping_mul(2u64.wrapping_sub(q.wrapping_mul(x)))
        });
        Self {
            q,
            mu: ((1u128 << (length + 63)) / wide) as u64,
            right: length - 2,
            left: (66 - length).min(63),
            mu_word: ((1u128 << 64) / wide) as u64,
            word: ((1u128 << 64) % wide) as u64,
            minus_inverse: inverse.wrapping_neg(),
        }
    }

    /// The modulus.
    #[inline(always)]
    pub(crate) fn modulus(&self) -> u64 {
        self.q
    }

    /// `z mod q` for `z < 2^(2L)`.
    #[inline(always)]
    fn reduce(&self, z: u128) -> u64 {
        let (low, high) = (z as u64, (z >> 64) as u64);
        let top = (high << self.left) | (low >> self.right);
        let estimate = mul_high(top, self.mu) >> 1;
        reduce_once(low.wrapping_sub(estimate.wrapping_mul(self.q)), self.q)
    }

    /// `x mod q` for every word.
    #[inline(always)]
    pub(crate) fn reduce_word(&self, x: u64) -> u64 {
        let estimate = mul_high(x, self.mu_word);
        reduce_once(x.wrapping_sub(estimate.wrapping_mul(self.q)), self.q)
    }

    /// `z mod q` for every double word.
    #[inline(always)]
    pub(crate) fn reduce_wide(&self, z: u128) -> u64 {
        let high = self.reduce_word((z >> 64) as u64);
        let low = self.reduce_word(z as u64);
        self.mul_add(high, self.word, low)
    }

    /// The constant factor `w`, a residue.
    ///
    /// With `r = w * 2^64 mod q`, the quotient `(w * 2^64 - r) / q` is `-r/q` modulo 2^64, so that
    /// no division is needed (its time would depend on `w`).
    #[inline(always)]
    pub(crate) fn shoup(&self, w: u64) -> Shoup {
        let quotient = self.mul(w, self.word).wrapping_mul(self.minus_inverse);
        Shoup { w, quotient }
    }
}

impl Multiply for Barrett {
    #[inline(always)]
    fn mul(self, a: u64, b: u64) -> u64 {
        self.reduce(u128::from(a) * u128::from(b))
    }

    #[inline(always)]
    fn mul_add(self, a: u64, b: u64, c: u64) -> u64 {
        // (q-1)^2 + (q-1) < 2^(2L)
        self.reduce(u128::from(a) * u128::from(b) + u128::from(c))
    }
}

/// Reduction modulo 2^61 - 1: the parts above and below bit 61 are added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mersenne61;

impl Multiply for Mersenne61 {
    #[inline(always)]
    fn mul(self, a: u64, b: u64) -> u64 {
        // Eight times the product has its bits from 61 on in the high word.
        let z = u128::from(a << 3) * u128::from(b);
        reduce_once(((z >> 64) as u64) + ((z as u64) >> 3), MERSENNE_61)
    }

    #[inline(always)]
    fn mul_add(self, a: u64, b: u64, c: u64) -> u64 {
        let z = u128::from(a << 3) * u128::from(b) + u128::from(c << 3);
        reduce_once(((z >> 64) as u64) + ((z as u64) >> 3), MERSENNE_61)
    }
}

/// A constant factor `w` with its quotient `floor(w * 2^64 / q)` (Shoup's method).
#[derive(Clone, Copy, Debug, Default, Zeroize)]
pub(crate) struct Shoup {
    pub(crate) w: u64,
    pub(crate) quotient: u64,
}

impl Shoup {
    /// `w * x mod q`, up to one `q` too much: in `[0, 2q)` for every word `x`.
    #[inline(always)]
    pub(crate) fn mul_lazy(self, x: u64, q: u64) -> u64 {
        let estimate = mul_high(self.quotient, x);
        self.w
            .wrapping_mul(x)
            .wrapping_sub(estimate.wrapping_mul(q))
    }
}
