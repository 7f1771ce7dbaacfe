//! Rings of products: the value of an OT's string in them, and the sender's corrections.

use keyquorum_math::{Domain, Element, Zq};
use zeroize::Zeroize;

use crate::OtError;

/// The ring of the products.
pub trait Payload: Clone + Send + Sync + 'static {
    /// An element.
    type Word: Element;
    /// A sum of strings, not yet reduced.
    type Sum: Copy + Default + Zeroize + Send;

    /// Bits of an element: OTs of a full product.
    fn bits(&self) -> u32;
    /// Bits of a correction for bit `j` of the receiver's word.
    fn width(&self, j: u32) -> u32;
    /// Adds 2^j times the string `hash`, reduced to the bits that count, to `sum`.
    fn absorb(&self, sum: &mut Self::Sum, j: u32, hash: u128);
    /// The correction for strings h₀, h₁ and the word that [`Payload::advance`] made of x for bit `j`.
    fn correction(&self, j: u32, zero: u128, one: u128, x: Self::Word) -> Self::Word;
    /// x for the next bit.
    fn advance(&self, x: &mut Self::Word);
    /// Adds a correction if `mask` is all ones (and not if it is zero).
    fn choose(&self, sum: &mut Self::Sum, j: u32, correction: Self::Word, mask: u64);
    /// The element.
    fn finish(&self, sum: Self::Sum) -> Self::Word;
    /// Its negative.
    fn negate(&self, x: Self::Word) -> Self::Word;
    /// Whether this word is an element.
    fn contains(&self, x: Self::Word) -> bool;
}

/// Integers modulo 2^l in words of type `E`, 1 ≤ l ≤ 64 for `u64`, 128 for `u128`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerOfTwo<E> {
    l: u32,
    mask: E,
}

macro_rules! power_of_two {
    ($word:ty) => {
        impl PowerOfTwo<$word> {
            /// Integers modulo 2^l.
            ///
            /// # Errors
            /// [`OtError::Usage`] if the word is too small for l bits.
            pub fn new(l: u32) -> Result<Self, OtError> {
                if !(1..=<$word>::BITS).contains(&l) {
                    return Err(OtError::Usage(format!(
                        "payloads modulo 2^{l}: choose 1 to {} bits",
                        <$word>::BITS
                    )));
                }
                let mask = <$word>::MAX >> (<$word>::BITS - l);
                Ok(Self { l, mask })
            }
        }

        impl Payload for PowerOfTwo<$word> {
            type Word = $word;
            type Sum = $word;

            fn bits(&self) -> u32 {
                self.l
            }

            fn width(&self, j: u32) -> u32 {
                self.l - j
            }

            #[inline(always)]
            fn absorb(&self, sum: &mut $word, j: u32, hash: u128) {
                *sum = sum.wrapping_add((hash as $word) << j);
            }

            #[inline(always)]
            fn correction(&self, _: u32, zero: u128, one: u128, x: $word) -> $word {
                (zero as $word).wrapping_sub(one as $word).wrapping_add(x)
            }

            fn advance(&self, _: &mut $word) {}

            #[inline(always)]
            fn choose(&self, sum: &mut $word, j: u32, correction: $word, mask: u64) {
                // All ones or zero, sign-extended to the word.
                let mask = mask as i64 as $word;
                *sum = sum.wrapping_add((correction & mask) << j);
            }

            #[inline(always)]
            fn finish(&self, sum: $word) -> $word {
                sum & self.mask
            }

            #[inline(always)]
            fn negate(&self, x: $word) -> $word {
                x.wrapping_neg() & self.mask
            }

            fn contains(&self, x: $word) -> bool {
                x <= self.mask
            }
        }
    };
}

power_of_two!(u64);
power_of_two!(u128);

/// A prime field.
#[derive(Clone, Debug)]
pub struct Field {
    field: Zq,
    /// A multiple of q, at least 2^[`STRING_BITS`].
    offset: u128,
}

/// Bits of a string that count for a field: enough for a residue that is uniform within 2^-60, and few enough for the sum of 62
/// strings in a word.
const STRING_BITS: u32 = 122;
const STRING: u128 = (1 << STRING_BITS) - 1;

impl Field {
    /// Products over this field.
    pub fn new(field: Zq) -> Self {
        let q = u128::from(field.modulus());
        let offset = ((1 << STRING_BITS) / q + 1) * q;
        Self { field, offset }
    }
}

impl Payload for Field {
    type Word = u64;
    type Sum = u128;

    fn bits(&self) -> u32 {
        self.field.bits()
    }

    fn width(&self, _: u32) -> u32 {
        self.field.bits()
    }

    #[inline(always)]
    fn absorb(&self, sum: &mut u128, _: u32, hash: u128) {
        *sum += hash & STRING;
    }

    #[inline(always)]
    fn correction(&self, _: u32, zero: u128, one: u128, x: u64) -> u64 {
        self.field
            .from_u128((zero & STRING) + (self.offset - (one & STRING)) + u128::from(x))
    }

    fn advance(&self, x: &mut u64) {
        *x = self.field.add(*x, *x);
    }

    #[inline(always)]
    fn choose(&self, sum: &mut u128, _: u32, correction: u64, mask: u64) {
        *sum += u128::from(correction & mask);
    }

    #[inline(always)]
    fn finish(&self, sum: u128) -> u64 {
        self.field.from_u128(sum)
    }

    #[inline(always)]
    fn negate(&self, x: u64) -> u64 {
        self.field.neg(x)
    }

    fn contains(&self, x: u64) -> bool {
        x < self.field.modulus()
    }
}
