//! Residues modulo a prime below 2^52 as doubles, four at a time, for processors with AVX2 and FMA.
//!
//! A double holds an integer of either sign below 2^53 exactly, and a fused multiplication gives the lower part of a product without error. None of these
//! operations takes longer for some values: no value is subnormal.

use std::arch::x86_64::*;

/// Residues of a vector.
pub(crate) const LANES: usize = 4;

/// The largest modulus (exclusive).
pub(crate) const LARGEST: u64 = 1 << 52;

/// The bits of 2^52 as a double: with an integer below 2^52 in its lower bits, a double holds the sum.
const TWO_52: i64 = 0x4330_0000_0000_0000;

/// Four doubles.
pub(crate) type D = __m256d;

/// Whether the processor has what these functions need.
pub(crate) fn detected() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

/// Reads four values.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn load(words: &[u64; LANES]) -> __m256i {
    // SAFETY: the reference is valid for 32 bytes, and this load needs no alignment.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

/// Writes four values.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn store(words: &mut [u64; LANES], values: __m256i) {
    // SAFETY: the reference is valid for 32 bytes and unique, and this store needs no alignment.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), values) }
}

/// The modulus, and its rounded inverse.
#[derive(Clone, Copy)]
pub(crate) struct Modulus {
    q: D,
    inverse: D,
}

impl Modulus {
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(crate) fn new(q: u64) -> Self {
        Self {
            q: _mm256_set1_pd(q as f64),
            inverse: _mm256_set1_pd(1.0 / q as f64),
        }
    }
}

/// Words below 2^52.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn entered(x: __m256i) -> D {
    let two_52 = _mm256_set1_epi64x(TWO_52);
    _mm256_sub_pd(
        _mm256_castsi256_pd(_mm256_or_si256(x, two_52)),
        _mm256_castsi256_pd(two_52),
    )
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn rounded(x: D) -> D {
    _mm256_round_pd::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x)
}

/// `h - cq + l` for the rounded product h of `x` and `y`, l = `xy - h`, and a whole number c.
///
/// The result is without error if it is at most `5q/3` in magnitude, and `x` and `y` below 2^53 and at most `q/2`: l is at most 2^50, so that `h - cq`, an integer, is
/// below 2^53.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn without(x: D, y: D, high: D, count: D, modulus: Modulus) -> D {
    let low = _mm256_fmsub_pd(x, y, high);
    _mm256_add_pd(_mm256_fnmadd_pd(count, modulus.q, high), low)
}

/// `wy` modulo `q` for a constant `w` of at most `q/2` in magnitude and the rounded quotient `w/q`; `|y| < 2^53`.
///
/// The rounded product of `y` and the quotient is within `|y| / 2^53` of `wy/q`. So the result is at most `q (1/2 + |y| / 2^53)` in magnitude.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn constant_product(w: D, quotient: D, y: D, modulus: Modulus) -> D {
    let count = rounded(_mm256_mul_pd(quotient, y));
    without(w, y, _mm256_mul_pd(w, y), count, modulus)
}

/// `xy` modulo `q` for `0 <= x < q` and `|y| <= q/2`: at most `5q/4` in magnitude, as three roundings of `xy/q`, which is below 2^51, are within 3/4.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn product(x: D, y: D, modulus: Modulus) -> D {
    let high = _mm256_mul_pd(x, y);
    let count = rounded(_mm256_mul_pd(high, modulus.inverse));
    without(x, y, high, count, modulus)
}

/// The same residue, at most `q/2` in magnitude, up to a few units.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn folded(x: D, modulus: Modulus) -> D {
    let count = rounded(_mm256_mul_pd(x, modulus.inverse));
    _mm256_fnmadd_pd(count, modulus.q, x)
}

/// The canonical form, as words.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn canonical(x: D, modulus: Modulus) -> __m256i {
    // Zero has the sign +, as it is a rounded difference, so that no q is added to it.
    let x = folded(x, modulus);
    let x = _mm256_blendv_pd(x, _mm256_add_pd(x, modulus.q), x);
    let two_52 = _mm256_set1_epi64x(TWO_52);
    let sum = _mm256_add_pd(x, _mm256_castsi256_pd(two_52));
    _mm256_xor_si256(_mm256_castpd_si256(sum), two_52)
}

#[target_feature(enable = "avx2,fma")]
fn multiply(a: &mut [[u64; LANES]], b: &[[u64; LANES]], q: u64) {
    let modulus = Modulus::new(q);
    for (x, y) in a.iter_mut().zip(b) {
        let y = folded(entered(load(y)), modulus);
        let xy = product(entered(load(x)), y, modulus);
        store(x, canonical(xy, modulus));
    }
}

#[target_feature(enable = "avx2,fma")]
fn multiply_add(acc: &mut [[u64; LANES]], a: &[[u64; LANES]], b: &[[u64; LANES]], q: u64) {
    let modulus = Modulus::new(q);
    for ((z, x), y) in acc.iter_mut().zip(a).zip(b) {
        let y = folded(entered(load(y)), modulus);
        let xy = product(entered(load(x)), y, modulus);
        let sum = _mm256_add_pd(folded(xy, modulus), entered(load(z)));
        store(z, canonical(sum, modulus));
    }
}

/// Whether the functions below can work modulo `q`.
fn usable(q: u64) -> bool {
    q < LARGEST && detected()
}

/// `a = ab` for canonical residues of vectors of one length. How many of them are done: whole vectors from the first on, or none if the processor or the
/// modulus is not fit.
pub(crate) fn mul_assign(a: &mut [u64], b: &[u64], q: u64) -> usize {
    let (whole, rest) = a.as_chunks_mut();
    if !usable(q) {
        return 0;
    }
    // SAFETY: the processor has what the function needs, as was just detected.
    unsafe { multiply(whole, b.as_chunks().0, q) }
    b.len() - rest.len()
}

/// `acc = acc + ab`; see [`mul_assign`].
pub(crate) fn mul_acc(acc: &mut [u64], a: &[u64], b: &[u64], q: u64) -> usize {
    let (whole, rest) = acc.as_chunks_mut();
    if !usable(q) {
        return 0;
    }
    // SAFETY: as above.
    unsafe { multiply_add(whole, a.as_chunks().0, b.as_chunks().0, q) }
    b.len() - rest.len()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use crate::{Domain, Prg, Zq};

    /// The smallest primes, and those next to where doubles end.
    const PRIMES: [u64; 9] = [
        3,
        5,
        65_537,
        (1 << 31) - 1,
        (1 << 50) - 27,
        (1 << 51) - 129,
        4_503_431_814_316_033,
        (1 << 52) - 47,
        (1 << 52) + 21,
    ];

    #[test]
    fn products_of_vectors_are_those_of_elements() {
        for q in PRIMES {
            let field = Zq::new(q).unwrap();
            let mut prg = Prg::new([4; 16], q);
            for n in [0, 1, 3, 4, 7, 1001] {
                let mut draw = |most: &[u64]| {
                    let mut out = vec![0; n];
                    field.random(&mut prg, &mut out);
                    for (x, &extreme) in out.iter_mut().zip(most) {
                        *x = extreme;
                    }
                    out
                };
                // All pairs of extreme values come first.
                let extreme = [0, 1, q - 1, q / 2, q / 2 + 1];
                let a = draw(&extreme.map(|x| [x; 5]).concat());
                let b = draw(&extreme.repeat(5));
                let c = draw(&[q - 1; 25]);
                let (mut product, mut sum) = (a.clone(), c.clone());
                field.mul_assign(&mut product, &b);
                field.mul_acc(&mut sum, &a, &b);
                let wanted: Vec<u64> = a.iter().zip(&b).map(|(x, y)| field.mul(*x, *y)).collect();
                assert_eq!(product, wanted, "{q}");
                let wanted: Vec<u64> = wanted
                    .iter()
                    .zip(&c)
                    .map(|(x, y)| field.add(*x, *y))
                    .collect();
                assert_eq!(sum, wanted, "{q}");
            }
        }
    }
}
