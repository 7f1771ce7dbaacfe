//! The field GF(2^64) = GF(2)[X] / (X^64 + X^4 + X^3 + X + 1), in which products of bits are verified.

use keyquorum_math::{BitLanes, DecodeError, Domain, DomainKind, Prg, masks_of};
use zeroize::Zeroize;

/// GF(2^64). An element is a lane; sums, encoding and randomness are those of [`BitLanes`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Gf64;

/// The low coefficients of the modulus, X^4 + X^3 + X + 1, times a polynomial of degree below 60.
fn fold(x: u64) -> u64 {
    x ^ (x << 1) ^ (x << 3) ^ (x << 4)
}

/// A polynomial of degree below 127, reduced.
fn reduce(product: u128) -> u64 {
    let (low, high) = (product as u64, (product >> 64) as u64);
    // What `fold` shifts out of the high half comes in again, below X^4.
    let high = high ^ (high >> 63) ^ (high >> 61) ^ (high >> 60);
    low ^ fold(high)
}

/// The product of polynomials over GF(2), bit by bit and without branches.
pub fn multiply(a: u64, b: u64) -> u128 {
    let masks = masks_of::<64>(b).into_iter().enumerate();
    masks.fold(0, |sum, (i, mask)| sum ^ u128::from(a & mask) << i)
}

/// What a loop over vectors does with products.
trait Kernel {
    type Result;
    fn run(self, multiply: impl Fn(u64, u64) -> u128) -> Self::Result;
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "pclmulqdq,sse2")]
#[inline]
fn multiply_carryless(a: u64, b: u64) -> u128 {
    use std::arch::x86_64::{
        _mm_clmulepi64_si128, _mm_cvtsi64_si128, _mm_cvtsi128_si64, _mm_unpackhi_epi64,
    };
    let product = _mm_clmulepi64_si128::<0>(
        _mm_cvtsi64_si128(a.cast_signed()),
        _mm_cvtsi64_si128(b.cast_signed()),
    );
    let low = _mm_cvtsi128_si64(product).cast_unsigned();
    let high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(product, product)).cast_unsigned();
    u128::from(low) | u128::from(high) << 64
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "pclmulqdq,sse2")]
fn run_carryless<K: Kernel>(kernel: K) -> K::Result {
    kernel.run(|a, b| multiply_carryless(a, b))
}

/// With the processor's products of polynomials, where it has them.
fn run<K: Kernel>(kernel: K) -> K::Result {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("pclmulqdq") {
        // SAFETY: the function needs nothing but pclmulqdq, which was just detected, and sse2, which every x86-64 has.
        return unsafe { run_carryless(kernel) };
    }
    kernel.run(multiply)
}

/// a · b.
struct Product(u64, u64);

impl Kernel for Product {
    type Result = u64;

    #[inline(always)]
    fn run(self, multiply: impl Fn(u64, u64) -> u128) -> u64 {
        reduce(multiply(self.0, self.1))
    }
}

/// a ·= b, element by element.
struct Products<'a>(&'a mut [u64], &'a [u64]);

impl Kernel for Products<'_> {
    type Result = ();

    #[inline(always)]
    fn run(self, multiply: impl Fn(u64, u64) -> u128) {
        for (x, y) in self.0.iter_mut().zip(self.1) {
            *x = reduce(multiply(*x, *y));
        }
    }
}

/// a ·= s.
struct Scaled<'a>(&'a mut [u64], u64);

impl Kernel for Scaled<'_> {
    type Result = ();

    #[inline(always)]
    fn run(self, multiply: impl Fn(u64, u64) -> u128) {
        for x in self.0 {
            *x = reduce(multiply(*x, self.1));
        }
    }
}

/// The inner product; reduced once, as reduction is linear.
struct Dot<'a>(&'a [u64], &'a [u64]);

impl Kernel for Dot<'_> {
    type Result = u64;

    #[inline(always)]
    fn run(self, multiply: impl Fn(u64, u64) -> u128) -> u64 {
        let products = self.0.iter().zip(self.1).map(|(x, y)| multiply(*x, *y));
        reduce(products.fold(0, |sum, product| sum ^ product))
    }
}

/// Most variables of [`products_of_lanes`].
pub(super) const MOST_VARIABLES: usize = 4;

/// 2^4 pieces and 3^4 points.
const PIECES: usize = 1 << MOST_VARIABLES;
const POINTS: usize = 81;

/// The places of {0, 1}^v among the points of {0, 1, ∞}^v, in lexicographic order.
const PLACES: [usize; PIECES] = [0, 1, 3, 4, 9, 10, 12, 13, 27, 28, 30, 31, 36, 37, 39, 40];

/// See [`products_of_lanes`].
struct ProductsOfLanes<'a> {
    factors: &'a [u64],
    x: &'a [u64],
    y: &'a [u64],
    variables: usize,
}

impl Kernel for ProductsOfLanes<'_> {
    type Result = Vec<u64>;

    #[inline(always)]
    fn run(self, multiply: impl Fn(u64, u64) -> u128) -> Vec<u64> {
        let (pieces, points) = (1 << self.variables, 3usize.pow(self.variables as u32));
        let length = self.x.len() >> self.variables;
        let mut sums = [0u128; POINTS];
        let mut bits = [0u64; POINTS];
        let mut added = 0;
        for j in 0..length {
            for (place, piece) in PLACES.iter().zip(self.y.chunks_exact(length)) {
                if let (Some(to), Some(word)) = (bits.get_mut(*place), piece.get(j)) {
                    *to = *word;
                }
            }
            let mut behind = 1;
            for _ in 0..self.variables {
                // Words that are not complete yet are written again for a variable before this one.
                for three in bits.chunks_exact_mut(3 * behind) {
                    let (two, infinity) = three.split_at_mut(2 * behind);
                    let (low, high) = two.split_at(behind);
                    for (to, (low, high)) in infinity.iter_mut().zip(low.iter().zip(high)) {
                        *to = low ^ high;
                    }
                }
                behind *= 3;
            }
            let operands = self
                .factors
                .chunks_exact(length)
                .zip(self.x.chunks_exact(length));
            for (piece, (factors, x)) in operands.enumerate().take(pieces) {
                let (Some(factor), Some(x)) = (factors.get(j), x.get(j)) else {
                    continue;
                };
                // The points whose coordinates are those of the piece, or ∞.
                for infinite in 0..pieces {
                    let coordinates = PLACES.get(piece & !infinite).zip(PLACES.get(infinite));
                    let point = coordinates.map_or(0, |(finite, infinite)| finite + 2 * infinite);
                    if let (Some(sum), Some(bits)) = (sums.get_mut(point), bits.get(point)) {
                        *sum ^= multiply(*factor, x & bits);
                        added += 1;
                    }
                }
            }
        }
        assert!(
            added == length * pieces * pieces,
            "internal error: {added} products in {} variables",
            self.variables
        );
        let result = sums.iter().take(points).map(|sum| reduce(*sum)).collect();
        sums.zeroize();
        bits.zeroize();
        result
    }
}

/// The inner products of two polynomials at all points of {0, 1, ∞}^v, in lexicographic order (the value at ∞ is the coefficient of degree 1). They have degree 1 in each of v <= [`MOST_VARIABLES`]
/// variables. Words are cut into 2^v pieces of one length. At {0, 1}^v the second polynomial has the bits of the pieces of `y`, and the first one has those of `x`, that of lane i of a word times
/// X^i and the factor of the word.
pub(super) fn products_of_lanes(
    factors: &[u64],
    x: &[u64],
    y: &[u64],
    variables: usize,
) -> Vec<u64> {
    same_length(factors.len(), x.len());
    same_length(x.len(), y.len());
    assert!(
        variables <= MOST_VARIABLES && x.len().is_multiple_of(1 << variables),
        "internal error: {} words in {variables} variables",
        x.len()
    );
    run(ProductsOfLanes {
        factors,
        x,
        y,
        variables,
    })
}

/// As the operations of [`Domain`] do: an element that was left out would not be verified.
fn same_length(one: usize, other: usize) {
    assert!(
        one == other,
        "internal error: vectors of {one} and {other} elements"
    );
}

impl Domain for Gf64 {
    type E = u64;

    fn kind(&self) -> DomainKind {
        DomainKind::Bits
    }

    #[inline]
    fn zero(&self) -> u64 {
        0
    }

    #[inline]
    fn one(&self) -> u64 {
        1
    }

    #[inline]
    fn add(&self, a: u64, b: u64) -> u64 {
        a ^ b
    }

    #[inline]
    fn sub(&self, a: u64, b: u64) -> u64 {
        a ^ b
    }

    #[inline]
    fn neg(&self, a: u64) -> u64 {
        a
    }

    #[inline]
    fn mul(&self, a: u64, b: u64) -> u64 {
        run(Product(a, b))
    }

    fn add_assign(&self, a: &mut [u64], b: &[u64]) {
        BitLanes.add_assign(a, b);
    }

    fn sub_assign(&self, a: &mut [u64], b: &[u64]) {
        BitLanes.add_assign(a, b);
    }

    fn rsub_assign(&self, a: &mut [u64], b: &[u64]) {
        BitLanes.add_assign(a, b);
    }

    fn neg_assign(&self, _: &mut [u64]) {}

    fn mul_assign(&self, a: &mut [u64], b: &[u64]) {
        same_length(a.len(), b.len());
        run(Products(a, b));
    }

    fn add_scalar_assign(&self, a: &mut [u64], s: u64) {
        BitLanes.add_scalar_assign(a, s);
    }

    fn mul_scalar_assign(&self, a: &mut [u64], s: u64) {
        run(Scaled(a, s));
    }

    fn mul_acc(&self, acc: &mut [u64], a: &[u64], b: &[u64]) {
        let mut products = a.to_vec();
        self.mul_assign(&mut products, b);
        self.add_assign(acc, &products);
    }

    fn sum(&self, a: &[u64]) -> u64 {
        BitLanes.sum(a)
    }

    fn dot(&self, a: &[u64], b: &[u64]) -> u64 {
        same_length(a.len(), b.len());
        run(Dot(a, b))
    }

    fn from_i64(&self, v: i64) -> u64 {
        v.cast_unsigned() & 1
    }

    /// The polynomial with these coefficients, the low 64 of them.
    #[inline]
    fn from_u128(&self, v: u128) -> u64 {
        v as u64
    }

    /// a^(2^64 − 2).
    fn invert(&self, a: u64) -> Option<u64> {
        let (mut square, mut inverse) = (a, 1);
        for _ in 1..64 {
            square = self.mul(square, square);
            inverse = self.mul(inverse, square);
        }
        (a != 0).then_some(inverse)
    }

    fn random(&self, prg: &mut Prg, out: &mut [u64]) {
        BitLanes.random(prg, out);
    }

    fn bits(&self) -> u32 {
        64
    }

    fn encode(&self, v: &[u64], out: &mut Vec<u8>) {
        BitLanes.encode(v, out);
    }

    fn decode(&self, bytes: &[u8], out: &mut [u64]) -> Result<(), DecodeError> {
        BitLanes.decode(bytes, out)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Long division by the whole modulus.
    fn divided(mut product: u128) -> u64 {
        for i in (64..127).rev() {
            if product >> i & 1 == 1 {
                product ^= (1 << 64 | 0b11011) << (i - 64);
            }
        }
        product as u64
    }

    proptest! {
        #[test]
        fn products_are_those_of_polynomials(a: u64, b: u64, c: u64) {
            prop_assert_eq!(Gf64.mul(a, b), divided(multiply(a, b)));
            prop_assert_eq!(Gf64.mul(a, Gf64.mul(b, c)), Gf64.mul(Gf64.mul(a, b), c));
            prop_assert_eq!(Gf64.dot(&[a, b], &[b, c]), Gf64.mul(a, b) ^ Gf64.mul(b, c));
            let mut products = [a, b, c];
            Gf64.mul_assign(&mut products, &[b, c, a]);
            prop_assert_eq!(products, [Gf64.mul(a, b), Gf64.mul(b, c), Gf64.mul(c, a)]);
            let mut sums = [c, a];
            Gf64.mul_acc(&mut sums, &[a, b], &[b, c]);
            prop_assert_eq!(sums, [c ^ Gf64.mul(a, b), a ^ Gf64.mul(b, c)]);
            prop_assert_eq!(a == 0, Gf64.invert(a).is_none());
            prop_assert!(a == 0 || Gf64.mul(a, Gf64.invert(a).unwrap()) == 1);
        }
    }

    /// The modulus is irreducible: X generates no smaller field, and X^(2^64) = X.
    #[test]
    fn it_is_a_field() {
        let mut powers = vec![2u64];
        for i in 0..64 {
            powers.push(Gf64.mul(powers[i], powers[i]));
        }
        assert_eq!(powers[64], 2);
        // gcd(X^(2^32) − X, modulus) = 1, as 2 is the only prime that divides 64.
        assert!(Gf64.mul(powers[32] ^ 2, Gf64.invert(powers[32] ^ 2).unwrap()) == 1);
    }
}
