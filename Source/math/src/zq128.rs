//! Prime fields with a modulus of 65 to 127 bits.

use std::cell::Cell;

use crate::codec;
use crate::domain::{DecodeError, Domain, DomainError, DomainKind};
use crate::prg::Prg;

/// The Mersenne prime 2^127 - 1, which has a faster reduction.
const MERSENNE_127: u128 = (1 << 127) - 1;

/// The field of integers modulo a prime `q` with `2^64 < q < 2^127`, canonical residues in `[0, q)`.
///
/// One bit of the word is free, so that sums of two residues fit. [`Zq`](crate::Zq) is for shorter primes.
#[derive(Clone, Debug)]
pub struct Zq128 {
    q: u128,
    /// `-1/q` modulo 2^128.
    minus_inverse: u128,
    /// `2^256 mod q`.
    square: u128,
}

/// `x mod m` for `x < 2m`, `m < 2^127`.
#[inline(always)]
fn reduce_once(x: u128, m: u128) -> u128 {
    let reduced = x.wrapping_sub(m);
    reduced.wrapping_add(m & (reduced >> 127).wrapping_neg())
}

/// The low and the high word of a product.
#[inline(always)]
fn product(a: u128, b: u128) -> (u128, u128) {
    let word = u128::from(u64::MAX);
    let (a0, a1, b0, b1) = (a & word, a >> 64, b & word, b >> 64);
    let (low, high) = (a0 * b0, a1 * b1);
    // Below 2^128: (2^64 - 1)^2 and two words.
    let middle = a0 * b1 + (low >> 64);
    let other = a1 * b0 + (middle & word);
    (
        (other << 64) | (low & word),
        high + (middle >> 64) + (other >> 64),
    )
}

impl Zq128 {
    /// The field with `q` elements.
    ///
    /// Primality is tested by Miller and Rabin's test with the first 40 primes. No composite of that size is known to pass; a modulus is
    /// public, and parties agree on it.
    ///
    /// # Errors
    ///
    /// [`DomainError::NotAWidePrime`] if `q` is no such prime.
    pub fn new(q: u128) -> Result<Self, DomainError> {
        let refused = Err(DomainError::NotAWidePrime { q });
        if q.is_multiple_of(2) || q >> 64 == 0 || q >> 127 != 0 {
            return refused;
        }
        // Newton's iteration for 1/q: correct to 3, 6, 12, 24, 48, 96, 192 bits.
        let inverse = (0..6).fold(q, |x: u128, _| {
            x.wrapping_mul(2u128.wrapping_sub(q.wrapping_mul(x)))
        });
        let field = Self {
            q,
            minus_inverse: inverse.wrapping_neg(),
            square: (0..256).fold(1, |x, _| reduce_once(x << 1, q)),
        };
        if field.is_prime() { Ok(field) } else { refused }
    }

    /// The modulus.
    pub fn modulus(&self) -> u128 {
        self.q
    }

    /// `x / 2^128 mod q` for `x < q 2^128`, given as its low and its high word (Montgomery, 1985).
    #[inline(always)]
    fn reduced(&self, (low, high): (u128, u128)) -> u128 {
        let (_, upper) = product(low.wrapping_mul(self.minus_inverse), self.q);
        // The low words add up to 0 or to 2^128.
        reduce_once(high + upper + u128::from(low != 0), self.q)
    }

    /// `a b mod q` for `a b < q 2^128`.
    #[inline(always)]
    fn multiply(&self, a: u128, b: u128) -> u128 {
        let (low, high) = product(a, b);
        if self.q == MERSENNE_127 {
            let folded = (low & MERSENNE_127) + ((high << 1) | (low >> 127));
            return reduce_once(folded, MERSENNE_127);
        }
        self.reduced(product(self.reduced((low, high)), self.square))
    }

    /// `a^e`. The exponent is public: it decides the sequence of operations.
    pub fn pow(&self, a: u128, e: u128) -> u128 {
        let bits = (0..u128::BITS - e.leading_zeros()).rev();
        bits.fold(1, |power, bit| {
            let square = self.multiply(power, power);
            if (e >> bit) & 1 == 1 {
                self.multiply(square, a)
            } else {
                square
            }
        })
    }

    /// Miller and Rabin's test of the modulus. Everything it needs is defined for odd moduli.
    fn is_prime(&self) -> bool {
        const BASES: [u128; 40] = [
            2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83,
            89, 97, 101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167, 173,
        ];
        let minus_one = self.q - 1;
        let twos = minus_one.trailing_zeros();
        BASES.iter().all(|&base| {
            let mut x = self.pow(base, minus_one >> twos);
            x == 1
                || x == minus_one
                || (1..twos).any(|_| {
                    x = self.multiply(x, x);
                    x == minus_one
                })
        })
    }
}

impl Domain for Zq128 {
    type E = u128;

    fn kind(&self) -> DomainKind {
        DomainKind::WideFq(self.q)
    }

    fn zero(&self) -> u128 {
        0
    }

    fn one(&self) -> u128 {
        1
    }

    #[inline]
    fn add(&self, a: u128, b: u128) -> u128 {
        reduce_once(a + b, self.q)
    }

    #[inline]
    fn sub(&self, a: u128, b: u128) -> u128 {
        let difference = a.wrapping_sub(b);
        difference.wrapping_add(self.q & (difference >> 127).wrapping_neg())
    }

    #[inline]
    fn neg(&self, a: u128) -> u128 {
        self.sub(0, a)
    }

    #[inline]
    fn mul(&self, a: u128, b: u128) -> u128 {
        self.multiply(a, b)
    }

    fn from_i64(&self, v: i64) -> u128 {
        let size = u128::from(v.unsigned_abs());
        let negative = u128::from(v < 0).wrapping_neg();
        size ^ ((size ^ self.neg(size)) & negative)
    }

    fn from_u128(&self, v: u128) -> u128 {
        self.multiply(v, 1)
    }

    /// Fermat's power, so that the time does not depend on `a` (but for zero).
    fn invert(&self, a: u128) -> Option<u128> {
        (a != 0).then(|| self.pow(a, self.q - 2))
    }

    /// Draws words of `bits()` bits and drops those not below `q`.
    fn random(&self, prg: &mut Prg, out: &mut [u128]) {
        let mask = u128::MAX >> self.q.leading_zeros();
        let mut missing = out;
        while !missing.is_empty() {
            prg.fill_u128(missing);
            let words = Cell::from_mut(&mut *missing).as_slice_of_cells();
            let mut kept = 0;
            for word in words {
                let x = word.get() & mask;
                // The index exists, as no more were kept than drawn; if an element were lost here, the split below would panic.
                if let Some(place) = words.get(kept) {
                    place.set(x);
                }
                kept += usize::from(x < self.q);
            }
            missing = missing.split_at_mut(kept).1;
        }
    }

    fn bits(&self) -> u32 {
        u128::BITS - self.q.leading_zeros()
    }

    fn encode(&self, v: &[u128], out: &mut Vec<u8>) {
        codec::encode(v, self.wire_bytes(1), out);
    }

    fn decode(&self, bytes: &[u8], out: &mut [u128]) -> Result<(), DecodeError> {
        codec::decode(self.kind(), self.wire_bytes(1), self.q - 1, bytes, out)
    }
}
