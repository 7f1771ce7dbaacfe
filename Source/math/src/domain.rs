//! The [`Domain`] trait, the names of domains and the errors they share.

use std::fmt;
use std::str::FromStr;

use crate::prg::Prg;
use crate::word::Element;

/// The name of a domain, as parties compare it and as share files record it.
///
/// Its text form is `bits`, `Z2^64` or `F_1152921504606584833`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum DomainKind {
    /// Bits, 64 to a lane.
    Bits,
    /// Integers modulo 2^k.
    Z2k(u32),
    /// The prime field with that many elements, below 2^62.
    Fq(u64),
    /// The prime field with that many elements, above 2^64 and below 2^127.
    WideFq(u128),
}

impl fmt::Display for DomainKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bits => f.write_str("bits"),
            Self::Z2k(k) => write!(f, "Z2^{k}"),
            Self::Fq(q) => write!(f, "F_{q}"),
            Self::WideFq(q) => write!(f, "F_{q}"),
        }
    }
}

/// A text that names no domain.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "\"{0}\" is not a domain: write bits, Z2^k with k in 1..=128, or F_q with an odd prime q < 2^62 or 2^64 < q < 2^127"
)]
pub struct ParseDomainError(String);

impl FromStr for DomainKind {
    type Err = ParseDomainError;

    /// Reads the text form. The range of `k` and `q` is checked, primality only by
    /// [`Zq::new`](crate::Zq::new) and [`Zq128::new`](crate::Zq128::new). Numbers have one spelling: no sign, no leading zero.
    fn from_str(text: &str) -> Result<Self, ParseDomainError> {
        let number = |digits: &str| -> Option<u128> {
            let canonical = digits.bytes().all(|c| c.is_ascii_digit()) && !digits.starts_with('0');
            canonical.then(|| digits.parse().ok()).flatten()
        };
        let kind = if text == "bits" {
            Some(Self::Bits)
        } else if let Some(digits) = text.strip_prefix("Z2^") {
            number(digits)
                .filter(|k| (1..=128).contains(k))
                .map(|k| Self::Z2k(k as u32))
        } else if let Some(digits) = text.strip_prefix("F_") {
            number(digits).filter(|q| q % 2 == 1).and_then(|q| match q {
                3..=0x3FFF_FFFF_FFFF_FFFF => Some(Self::Fq(q as u64)),
                _ if q >> 64 != 0 && q >> 127 == 0 => Some(Self::WideFq(q)),
                _ => None,
            })
        } else {
            None
        };
        kind.ok_or_else(|| ParseDomainError(text.to_owned()))
    }
}

/// Parameters that make no domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DomainError {
    /// The modulus is even, composite or too large.
    #[error("{q} is no modulus of a prime field here: choose an odd prime below 2^62")]
    NotAnOddPrime {
        /// The refused modulus.
        q: u64,
    },
    /// The modulus is even, composite, too small or too large.
    #[error(
        "{q} is no modulus of a wide prime field here: choose a prime above 2^64 and below 2^127"
    )]
    NotAWidePrime {
        /// The refused modulus.
        q: u128,
    },
    /// The exponent of a power-of-two ring is out of range for the type that should hold it.
    #[error("Z2^{k} is out of range here: choose k in {low}..={high}")]
    Width {
        /// The refused exponent.
        k: u32,
        /// Smallest exponent of the type.
        low: u32,
        /// Largest exponent of the type.
        high: u32,
    },
}

/// Bytes that encode no vector of the expected length over the domain.
///
/// The value of a refused element is not reported: it may be a share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DecodeError {
    /// The number of bytes is wrong.
    #[error(
        "{elements} elements of {domain} take {expected} bytes, got {got}: sender and receiver must agree on the length"
    )]
    Length {
        /// Domain of the expected vector.
        domain: DomainKind,
        /// Expected number of elements.
        elements: usize,
        /// Bytes that many elements take.
        expected: usize,
        /// Bytes received.
        got: usize,
    },
    /// An element is not the canonical representative of its class.
    #[error(
        "element {index} is not a canonical element of {domain}: the sender must reduce before encoding"
    )]
    NotCanonical {
        /// Domain of the expected vector.
        domain: DomainKind,
        /// Position of the first such element.
        index: usize,
    },
}

/// A state that the code excludes: the output of the call must not be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("internal error: {found}: please report it")]
pub struct InternalError {
    /// What was found.
    pub found: &'static str,
}

/// Refuses vectors of different lengths, once before the loop over them.
#[inline(always)]
#[track_caller]
pub(crate) fn same_length(one: usize, other: usize) {
    #[cfg(test)]
    if tests::WITHOUT_CHECK.get() {
        return;
    }
    assert!(
        one == other,
        "internal error: vectors of {one} and {other} elements"
    );
}

/// A ring whose elements are machine words, with vectors in flat slices.
///
/// Elements that go in must be canonical (in `[0, q)`, in `[0, 2^k)`, or any 64 bits for
/// [`BitLanes`](crate::BitLanes)); elements that come out are. Vector operations take slices of
/// one length, and panic otherwise: if they worked on the common prefix only, a secret could stay unmasked.
/// The defaults go element by element; a domain overrides those that it does faster.
#[allow(clippy::wrong_self_convention)] // the domain is the modulus, not the value converted
pub trait Domain: Clone + Send + Sync + 'static {
    /// The word that holds one element.
    type E: Element;

    /// Name of the domain.
    fn kind(&self) -> DomainKind;

    /// The neutral element of addition.
    fn zero(&self) -> Self::E;

    /// The neutral element of multiplication.
    fn one(&self) -> Self::E;

    /// `a + b`.
    fn add(&self, a: Self::E, b: Self::E) -> Self::E;

    /// `a - b`.
    fn sub(&self, a: Self::E, b: Self::E) -> Self::E;

    /// `-a`.
    fn neg(&self, a: Self::E) -> Self::E;

    /// `a * b`.
    fn mul(&self, a: Self::E, b: Self::E) -> Self::E;

    /// `a += b`, element by element.
    fn add_assign(&self, a: &mut [Self::E], b: &[Self::E]) {
        same_length(a.len(), b.len());
        for (x, &y) in a.iter_mut().zip(b) {
            *x = self.add(*x, y);
        }
    }

    /// `a -= b`, element by element.
    fn sub_assign(&self, a: &mut [Self::E], b: &[Self::E]) {
        same_length(a.len(), b.len());
        for (x, &y) in a.iter_mut().zip(b) {
            *x = self.sub(*x, y);
        }
    }

    /// `a = b - a`, element by element.
    fn rsub_assign(&self, a: &mut [Self::E], b: &[Self::E]) {
        same_length(a.len(), b.len());
        for (x, &y) in a.iter_mut().zip(b) {
            *x = self.sub(y, *x);
        }
    }

    /// `a = -a`, element by element.
    fn neg_assign(&self, a: &mut [Self::E]) {
        for x in a {
            *x = self.neg(*x);
        }
    }

    /// `a *= b`, element by element.
    fn mul_assign(&self, a: &mut [Self::E], b: &[Self::E]) {
        same_length(a.len(), b.len());
        for (x, &y) in a.iter_mut().zip(b) {
            *x = self.mul(*x, y);
        }
    }

    /// `a += s` for every element.
    fn add_scalar_assign(&self, a: &mut [Self::E], s: Self::E) {
        for x in a {
            *x = self.add(*x, s);
        }
    }

    /// `a *= s` for every element.
    fn mul_scalar_assign(&self, a: &mut [Self::E], s: Self::E) {
        for x in a {
            *x = self.mul(*x, s);
        }
    }

    /// `acc += a * b`, element by element.
    fn mul_acc(&self, acc: &mut [Self::E], a: &[Self::E], b: &[Self::E]) {
        same_length(a.len(), b.len());
        same_length(acc.len(), a.len());
        for ((z, &x), &y) in acc.iter_mut().zip(a).zip(b) {
            *z = self.add(*z, self.mul(x, y));
        }
    }

    /// Sum of all elements.
    fn sum(&self, a: &[Self::E]) -> Self::E {
        a.iter().fold(self.zero(), |s, &x| self.add(s, x))
    }

    /// Inner product.
    fn dot(&self, a: &[Self::E], b: &[Self::E]) -> Self::E {
        same_length(a.len(), b.len());
        let products = a.iter().zip(b).map(|(&x, &y)| self.mul(x, y));
        products.fold(self.zero(), |s, p| self.add(s, p))
    }

    /// Adds to `acc` rows of its length, one after another, each times its factor. Fastest for rows of [`ROW`](crate::ROW) elements.
    fn rows_acc(&self, acc: &mut [Self::E], factors: &[Self::E], rows: &[Self::E]) {
        same_length(factors.len() * acc.len(), rows.len());
        for (&factor, row) in factors.iter().zip(rows.chunks_exact(acc.len().max(1))) {
            for (sum, &x) in acc.iter_mut().zip(row) {
                *sum = self.add(*sum, self.mul(factor, x));
            }
        }
    }

    /// Adds to `acc` rows of zeros and ones, each times its factor. `minus` has the negated rows, of zeros and −1: modulo 2^k these select the bits of a word.
    fn select_acc(&self, acc: &mut [Self::E], factors: &[Self::E], minus: &[Self::E]) {
        same_length(factors.len() * acc.len(), minus.len());
        for (&factor, row) in factors.iter().zip(minus.chunks_exact(acc.len().max(1))) {
            for (sum, &x) in acc.iter_mut().zip(row) {
                *sum = self.sub(*sum, self.mul(factor, x));
            }
        }
    }

    /// Adds to `acc` the product of two polynomials, coefficient 0 first. `acc` has as many coefficients as the product.
    fn polynomial_acc(&self, acc: &mut [Self::E], a: &[Self::E], b: &[Self::E]) {
        same_length(acc.len() + 1, a.len() + b.len());
        for (i, &x) in a.iter().enumerate() {
            for (sum, &y) in acc.iter_mut().skip(i).zip(b) {
                *sum = self.add(*sum, self.mul(x, y));
            }
        }
    }

    /// Adds to `acc` the product of `a` and a polynomial of zeros and ones. `minus` is the negated polynomial, of zeros and −1.
    fn select_polynomial_acc(&self, acc: &mut [Self::E], a: &[Self::E], minus: &[Self::E]) {
        same_length(acc.len() + 1, a.len() + minus.len());
        for (i, &x) in a.iter().enumerate() {
            for (sum, &y) in acc.iter_mut().skip(i).zip(minus) {
                *sum = self.sub(*sum, self.mul(x, y));
            }
        }
    }

    /// The image of an integer.
    fn from_i64(&self, v: i64) -> Self::E;

    /// The image of an unsigned integer.
    fn from_u128(&self, v: u128) -> Self::E;

    /// The multiplicative inverse, `None` if there is none.
    fn invert(&self, a: Self::E) -> Option<Self::E>;

    /// Fills `out` with independent, exactly uniform elements.
    ///
    /// The result depends on the stream alone, not on how calls cut it: two vectors drawn one
    /// after the other equal one vector of their joint length.
    fn random(&self, prg: &mut Prg, out: &mut [Self::E]);

    /// Bits of an element: 64 for lanes of bits, `k`, or the bit length of `q`.
    fn bits(&self) -> u32;

    /// The ring of the low `bits` bits of our elements, encoded without gaps (`bits` bits an element); `None` where reducing
    /// to low bits is no ring homomorphism.
    fn low_bits(&self, _bits: u32) -> Option<Self> {
        None
    }

    /// Bytes of an encoded vector of `n` elements: `n * ceil(bits / 8)`, or fewer for [`Domain::low_bits`].
    fn wire_bytes(&self, n: usize) -> usize {
        n * self.bits().div_ceil(8) as usize
    }

    /// Appends the encoding of `v` to `out`: `ceil(bits / 8)` bytes an element, little endian.
    fn encode(&self, v: &[Self::E], out: &mut Vec<u8>);

    /// Reads a vector of `out.len()` elements.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the number of bytes is wrong or an element is not canonical; `out`
    /// then holds zeros.
    fn decode(&self, bytes: &[u8], out: &mut [Self::E]) -> Result<(), DecodeError>;
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::cell::Cell;

    use super::Domain;
    use crate::Z2k64;

    thread_local! {
        /// Disables the check of lengths, for the test that shows why it is needed.
        pub(super) static WITHOUT_CHECK: Cell<bool> = const { Cell::new(false) };
    }

    /// Elements beyond the end of a mask that is too short stay in clear.
    #[test]
    fn missing_parts_ablated_a_mask_that_is_too_short() {
        let domain = Z2k64::new(64).unwrap();
        let mut secret = [1, 2, 3];
        WITHOUT_CHECK.set(true);
        domain.sub_assign(&mut secret, &[5]);
        WITHOUT_CHECK.set(false);
        assert_eq!(secret, [4u64.wrapping_neg(), 2, 3]);
    }
}
