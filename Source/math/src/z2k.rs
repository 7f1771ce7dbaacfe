//! Integers modulo a power of two.

use crate::codec;
use crate::domain::{DecodeError, Domain, DomainError, DomainKind, same_length};
use crate::prg::Prg;
use crate::wide;

macro_rules! power_of_two_ring {
    ($(#[$doc:meta])* $name:ident, $word:ty, $low:literal, $high:literal, $fill:expr, {$($faster:tt)*}) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct $name {
            k: u32,
            mask: $word,
            packed: bool,
        }

        impl $name {
            /// The ring of integers modulo 2^k.
            ///
            /// # Errors
            ///
            /// [`DomainError::Width`] if `k` is out of range.
            pub fn new(k: u32) -> Result<Self, DomainError> {
                if !($low..=$high).contains(&k) {
                    return Err(DomainError::Width { k, low: $low, high: $high });
                }
                let mask = <$word>::MAX >> (<$word>::BITS - k);
                Ok(Self { k, mask, packed: false })
            }

            /// The exponent `k`.
            pub fn k(&self) -> u32 {
                self.k
            }

            /// `2^k - 1`.
            pub fn mask(&self) -> $word {
                self.mask
            }
        }

        impl Domain for $name {
            type E = $word;

            fn kind(&self) -> DomainKind {
                DomainKind::Z2k(self.k)
            }

            fn zero(&self) -> $word {
                0
            }

            fn one(&self) -> $word {
                1
            }

            #[inline]
            fn add(&self, a: $word, b: $word) -> $word {
                a.wrapping_add(b) & self.mask
            }

            #[inline]
            fn sub(&self, a: $word, b: $word) -> $word {
                a.wrapping_sub(b) & self.mask
            }

            #[inline]
            fn neg(&self, a: $word) -> $word {
                a.wrapping_neg() & self.mask
            }

            #[inline]
            fn mul(&self, a: $word, b: $word) -> $word {
                a.wrapping_mul(b) & self.mask
            }

            fn sum(&self, a: &[$word]) -> $word {
                a.iter().fold(0, |s: $word, &x| s.wrapping_add(x)) & self.mask
            }

            $($faster)*

            fn from_i64(&self, v: i64) -> $word {
                (v as $word) & self.mask
            }

            fn from_u128(&self, v: u128) -> $word {
                (v as $word) & self.mask
            }

            /// Newton's iteration: each step doubles the number of correct low bits, and an odd
            /// number is its own inverse modulo 8.
            fn invert(&self, a: $word) -> Option<$word> {
                if a & 1 == 0 {
                    return None;
                }
                let mut x = a;
                let mut correct = 3;
                while correct < <$word>::BITS {
                    let two: $word = 2;
                    x = x.wrapping_mul(two.wrapping_sub(a.wrapping_mul(x)));
                    correct *= 2;
                }
                Some(x & self.mask)
            }

            fn random(&self, prg: &mut Prg, out: &mut [$word]) {
                let fill: fn(&mut Prg, &mut [$word]) = $fill;
                fill(prg, out);
                for x in out {
                    *x &= self.mask;
                }
            }

            fn bits(&self) -> u32 {
                self.k
            }

            fn low_bits(&self, bits: u32) -> Option<Self> {
                (1..=self.k).contains(&bits).then(|| Self {
                    k: bits,
                    mask: <$word>::MAX >> (<$word>::BITS - bits),
                    packed: true,
                })
            }

            fn wire_bytes(&self, n: usize) -> usize {
                if self.packed {
                    (n * self.k as usize).div_ceil(8)
                } else {
                    n * self.k.div_ceil(8) as usize
                }
            }

            fn encode(&self, v: &[$word], out: &mut Vec<u8>) {
                if self.packed {
                    codec::encode_bits(v, self.k, out);
                } else {
                    codec::encode(v, self.wire_bytes(1), out);
                }
            }

            fn decode(&self, bytes: &[u8], out: &mut [$word]) -> Result<(), DecodeError> {
                if self.packed {
                    codec::decode_bits(self.kind(), self.k, bytes, out)
                } else {
                    codec::decode(self.kind(), self.wire_bytes(1), self.mask, bytes, out)
                }
            }
        }
    };
}

power_of_two_ring!(
    /// Integers modulo 2^k with 1 <= k <= 64, one to a `u64`.
    Z2k64, u64, 1, 64, |prg, out| prg.fill_u64(out), {
        fn mul_assign(&self, a: &mut [u64], b: &[u64]) {
            same_length(a.len(), b.len());
            wide::mul_assign(a, b, self.mask);
        }

        fn mul_scalar_assign(&self, a: &mut [u64], s: u64) {
            wide::mul_scalar_assign(a, s, self.mask);
        }

        fn mul_acc(&self, acc: &mut [u64], a: &[u64], b: &[u64]) {
            same_length(a.len(), b.len());
            same_length(acc.len(), a.len());
            wide::mul_acc(acc, a, b, self.mask);
        }

        fn dot(&self, a: &[u64], b: &[u64]) -> u64 {
            same_length(a.len(), b.len());
            wide::dot(a, b) & self.mask
        }

        fn rows_acc(&self, acc: &mut [u64], factors: &[u64], rows: &[u64]) {
            same_length(factors.len() * acc.len(), rows.len());
            wide::rows_acc(acc, factors, rows);
            for sum in acc {
                *sum &= self.mask;
            }
        }

        // Words are below 2^k, so all k bits of −1 leave them as they are.
        fn select_acc(&self, acc: &mut [u64], factors: &[u64], minus: &[u64]) {
            same_length(factors.len() * acc.len(), minus.len());
            wide::select_acc(acc, factors, minus);
            for sum in acc {
                *sum &= self.mask;
            }
        }

        fn select_polynomial_acc(&self, acc: &mut [u64], a: &[u64], minus: &[u64]) {
            same_length(acc.len() + 1, a.len() + minus.len());
            if a.len().max(minus.len()) > wide::ROW {
                for (i, &x) in a.iter().enumerate() {
                    for (sum, &y) in acc.iter_mut().skip(i).zip(minus) {
                        *sum = sum.wrapping_add(x & y);
                    }
                }
            } else {
                wide::select_polynomial_acc(acc, a, minus);
            }
            for sum in acc {
                *sum &= self.mask;
            }
        }

        fn polynomial_acc(&self, acc: &mut [u64], a: &[u64], b: &[u64]) {
            same_length(acc.len() + 1, a.len() + b.len());
            if a.len().max(b.len()) > wide::ROW {
                for (i, &x) in a.iter().enumerate() {
                    for (sum, &y) in acc.iter_mut().skip(i).zip(b) {
                        *sum = sum.wrapping_add(x.wrapping_mul(y));
                    }
                }
            } else {
                wide::polynomial_acc(acc, a, b);
            }
            for sum in acc {
                *sum &= self.mask;
            }
        }
    }
);

power_of_two_ring!(
    /// Integers modulo 2^k with 1 <= k <= 128, one to a `u128`: for k <= 64 [`Z2k64`] is faster.
    Z2k128, u128, 1, 128, |prg, out| prg.fill_u128(out), {
        fn mul_acc(&self, acc: &mut [u128], a: &[u128], b: &[u128]) {
            same_length(a.len(), b.len());
            same_length(acc.len(), a.len());
            for ((z, &x), &y) in acc.iter_mut().zip(a).zip(b) {
                *z = z.wrapping_add(x.wrapping_mul(y)) & self.mask;
            }
        }

        fn dot(&self, a: &[u128], b: &[u128]) -> u128 {
            same_length(a.len(), b.len());
            let products = a.iter().zip(b).map(|(&x, &y)| x.wrapping_mul(y));
            products.fold(0, |s: u128, p| s.wrapping_add(p)) & self.mask
        }
    }
);
