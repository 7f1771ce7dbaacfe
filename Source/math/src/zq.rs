//! Prime fields with a modulus of at most 62 bits.

mod roots;

use std::cell::Cell;
use std::sync::Arc;

use zeroize::Zeroize;

use crate::codec;
use crate::domain::{DecodeError, Domain, DomainError, DomainKind, same_length};
#[cfg(target_arch = "x86_64")]
use crate::doubles as in_doubles;
use crate::modular::{
    Barrett, MERSENNE_61, Mersenne61, Multiply, Shoup, add_if_negative, reduce_once,
};
use crate::prg::Prg;
use roots::TwoPart;

/// Independent chains of dependent multiplications that are run together.
const LANES: usize = 4;

/// Products of vectors in doubles, of which other processors do none.
#[cfg(not(target_arch = "x86_64"))]
mod in_doubles {
    pub(super) fn mul_assign(_: &mut [u64], _: &[u64], _: u64) -> usize {
        0
    }

    pub(super) fn mul_acc(_: &mut [u64], _: &[u64], _: &[u64], _: u64) -> usize {
        0
    }
}

/// Runs a block once with the multiplication that fits the modulus bound to `$m`.
macro_rules! with_multiply {
    ($field:expr, $m:ident => $body:expr) => {
        if $field.mersenne {
            let $m = Mersenne61;
            $body
        } else {
            let $m = $field.barrett;
            $body
        }
    };
}

/// The field of integers modulo an odd prime `q < 2^62`, canonical residues in `[0, q)`.
#[derive(Clone, Debug)]
pub struct Zq {
    barrett: Barrett,
    mersenne: bool,
    /// Tables for square roots, if `q` is 1 modulo 4.
    two_part: Option<Arc<TwoPart>>,
}

impl Zq {
    /// The field with `q` elements.
    ///
    /// # Errors
    ///
    /// [`DomainError::NotAnOddPrime`] if `q` is even, composite or not below 2^62.
    pub fn new(q: u64) -> Result<Self, DomainError> {
        if q.is_multiple_of(2) || q >= 1 << 62 || !is_prime(q) {
            return Err(DomainError::NotAnOddPrime { q });
        }
        let mut field = Self {
            barrett: Barrett::new(q),
            mersenne: q == MERSENNE_61,
            two_part: None,
        };
        if q % 4 == 1 {
            let tables = TwoPart::new(&field).ok_or(DomainError::NotAnOddPrime { q })?;
            field.two_part = Some(Arc::new(tables));
        }
        Ok(field)
    }

    /// The modulus.
    #[inline]
    pub fn modulus(&self) -> u64 {
        self.barrett.modulus()
    }

    /// A constant factor for many multiplications.
    pub(crate) fn shoup(&self, w: u64) -> Shoup {
        self.barrett.shoup(w)
    }

    /// A word modulo q.
    #[inline]
    pub(crate) fn reduce_word(&self, x: u64) -> u64 {
        self.barrett.reduce_word(x)
    }

    /// `a^e`. The exponent is public: it decides the sequence of operations.
    pub fn pow(&self, a: u64, e: u64) -> u64 {
        with_multiply!(self, m => roots::pow(m, [a], e)[0])
    }

    /// `a^e` for every element. The exponent is public.
    pub fn pow_assign(&self, a: &mut [u64], e: u64) {
        with_multiply!(self, m => {
            roots::for_lanes(a, |x| *x = roots::pow::<_, LANES>(m, *x, e));
        });
    }

    /// All inverses, `None` if one of the elements is zero. Three multiplications an element
    /// (Montgomery's trick) and one inversion.
    pub fn batch_invert(&self, a: &[u64]) -> Option<Vec<u64>> {
        with_multiply!(self, m => {
            // prefix[i] is the product of a[i], a[i - LANES], a[i - 2 LANES], ...
            let mut running = [1; LANES];
            let mut inverses = Vec::with_capacity(a.len());
            for row in a.chunks(LANES) {
                inverses.extend(running.iter().take(row.len()));
                for (r, &x) in running.iter_mut().zip(row) {
                    *r = m.mul(*r, x);
                }
            }
            let mut product = running.iter().fold(1, |p, &r| m.mul(p, r));
            let all = self.invert(product)?;
            // 1/running[l] is 1/(product of all lanes) times the product of the other lanes.
            let lanes = running;
            for (l, r) in running.iter_mut().enumerate() {
                let others = lanes.iter().enumerate().filter(|&(o, _)| o != l);
                *r = others.fold(all, |p, (_, &x)| m.mul(p, x));
            }
            for (row, out) in a.chunks(LANES).zip(inverses.chunks_mut(LANES)).rev() {
                for ((r, &x), o) in running.iter_mut().zip(row).zip(out) {
                    *o = m.mul(*o, *r);
                    *r = m.mul(*r, x);
                }
            }
            running.zeroize();
            product.zeroize();
            Some(inverses)
        })
    }

    /// The smaller square root, `None` for a non-square. Not for secrets.
    pub fn sqrt(&self, a: u64) -> Option<u64> {
        let inverse = self.inv_sqrt_batch(&[a]).into_iter().next()?;
        let root = self.mul(a, inverse);
        (self.mul(root, root) == a).then(|| root.min(self.neg(root)))
    }

    /// For every element `c`, which should be a non-zero square, one fixed `r` with `r^2 c = 1`.
    ///
    /// If `q` is 3 modulo 4, `r = c^((q-3)/4)`, itself a square, and the sequence of operations
    /// does not depend on `c`. If `q` is 1 modulo 4, tables are indexed by values that depend on
    /// `c`, so `c` should be public. For non-squares and zero the result is some field element.
    pub fn inv_sqrt_batch(&self, c: &[u64]) -> Vec<u64> {
        let mut out = c.to_vec();
        match &self.two_part {
            Some(tables) => with_multiply!(self, m => {
                roots::for_lanes(&mut out, |x| *x = tables.inv_sqrt::<_, LANES>(m, *x));
            }),
            None if self.mersenne => {
                roots::for_lanes(&mut out, |x| {
                    *x = roots::inv_sqrt_mersenne::<LANES>(*x);
                });
            }
            None => self.pow_assign(&mut out, (self.modulus() - 3) / 4),
        }
        out
    }
}

/// Whether `n` is prime: Miller-Rabin with the first twelve primes, which is exact below 2^64
/// (Sorenson and Webster, "Strong pseudoprimes to twelve prime bases", 2017).
pub fn is_prime(n: u64) -> bool {
    const BASES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
    if n < 2 {
        return false;
    }
    if let Some(p) = BASES.iter().find(|&&p| n.is_multiple_of(p)) {
        return n == *p;
    }
    let mul = |a: u64, b: u64| (u128::from(a) * u128::from(b) % u128::from(n)) as u64;
    let twos = (n - 1).trailing_zeros();
    let odd = (n - 1) >> twos;
    BASES.iter().all(|&base| {
        let bits = (0..u64::BITS - odd.leading_zeros()).rev();
        let mut x = bits.fold(1, |power, bit| {
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
        add_if_negative(a.wrapping_sub(b), self.modulus())
    }

    #[inline]
    fn neg(&self, a: u64) -> u64 {
        self.sub(0, a)
    }

    #[inline]
    fn mul(&self, a: u64, b: u64) -> u64 {
        self.barrett.mul(a, b)
    }

    fn mul_assign(&self, a: &mut [u64], b: &[u64]) {
        same_length(a.len(), b.len());
        let done = in_doubles::mul_assign(a, b, self.modulus());
        with_multiply!(self, m => {
            for (x, &y) in a.iter_mut().zip(b).skip(done) {
                *x = m.mul(*x, y);
            }
        });
    }

    fn mul_scalar_assign(&self, a: &mut [u64], s: u64) {
        let q = self.modulus();
        let mut factor = self.shoup(s);
        for x in a {
            *x = reduce_once(factor.mul_lazy(*x, q), q);
        }
        factor.zeroize();
    }

    fn mul_acc(&self, acc: &mut [u64], a: &[u64], b: &[u64]) {
        same_length(a.len(), b.len());
        same_length(acc.len(), a.len());
        let done = in_doubles::mul_acc(acc, a, b, self.modulus());
        with_multiply!(self, m => {
            for ((z, &x), &y) in acc.iter_mut().zip(a).zip(b).skip(done) {
                *z = m.mul_add(x, y, *z);
            }
        });
    }

    fn sum(&self, a: &[u64]) -> u64 {
        let total = a.iter().fold(0u128, |s, &x| s + u128::from(x));
        self.barrett.reduce_wide(total)
    }

    fn dot(&self, a: &[u64], b: &[u64]) -> u64 {
        same_length(a.len(), b.len());
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
        let negative = u64::from(v < 0).wrapping_neg();
        size ^ ((size ^ self.neg(size)) & negative)
    }

    fn from_u128(&self, v: u128) -> u64 {
        self.barrett.reduce_wide(v)
    }

    /// Fermat's power, so that the time does not depend on `a` (but for zero).
    fn invert(&self, a: u64) -> Option<u64> {
        (a != 0).then(|| self.pow(a, self.modulus() - 2))
    }

    /// Draws words of `bits()` bits and drops those not below `q`.
    fn random(&self, prg: &mut Prg, out: &mut [u64]) {
        let q = self.modulus();
        let mask = u64::MAX >> q.leading_zeros();
        let mut missing = out;
        while !missing.is_empty() {
            prg.fill_u64(missing);
            let words = Cell::from_mut(&mut *missing).as_slice_of_cells();
            let mut kept = 0;
            for word in words {
                let x = word.get() & mask;
                // The index exists, as no more were kept than drawn; if an element were lost here, the split below would panic.
                if let Some(place) = words.get(kept) {
                    place.set(x);
                }
                kept += usize::from(x < q);
            }
            missing = missing.split_at_mut(kept).1;
        }
    }

    fn bits(&self) -> u32 {
        u64::BITS - self.modulus().leading_zeros()
    }

    fn encode(&self, v: &[u64], out: &mut Vec<u8>) {
        codec::encode(v, self.wire_bytes(1), out);
    }

    fn decode(&self, bytes: &[u8], out: &mut [u64]) -> Result<(), DecodeError> {
        let largest = self.modulus() - 1;
        codec::decode(self.kind(), self.wire_bytes(1), largest, bytes, out)
    }
}
