//! Arithmetic on four residues: lazy products, the steps of both transforms, and the transposition of 16 values.
//!
//! With `DOUBLES` or `WIDE_DOUBLES` a lane has the bits of a double, see [`crate::doubles`]. Words are below 2^64.

use std::arch::x86_64::*;

use super::{DOUBLES, Factor, LANES, WORDS};
use crate::doubles::{self, D};

/// Four lanes.
pub(super) type V = __m256i;

/// A constant factor `w` and its quotient: doubles, or words with their upper halves.
#[derive(Clone, Copy)]
pub(super) struct Root {
    w: V,
    w_high: V,
    quotient: V,
    quotient_high: V,
}

/// The modulus as doubles and as words.
pub(super) struct Modulus {
    doubles: doubles::Modulus,
    q: V,
    /// The upper half of `q`.
    q_high: V,
    /// `2q`, `4q` and `8q`.
    double: V,
    fourfold: V,
    eightfold: V,
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn of_bits(values: V) -> D {
    _mm256_castsi256_pd(values)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn bits(values: D) -> V {
    _mm256_castpd_si256(values)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn modulus(q: u64) -> Modulus {
    let multiple = |factor: u64| _mm256_set1_epi64x((factor * q) as i64);
    Modulus {
        doubles: doubles::Modulus::new(q),
        q: multiple(1),
        q_high: _mm256_srli_epi64::<32>(multiple(1)),
        double: multiple(2),
        fourfold: multiple(4),
        eightfold: multiple(8),
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn root(w: V, quotient: V) -> Root {
    Root {
        w,
        w_high: _mm256_srli_epi64::<32>(w),
        quotient,
        quotient_high: _mm256_srli_epi64::<32>(quotient),
    }
}

/// One root for all lanes.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn same(&Factor([w, quotient]): &Factor) -> Root {
    root(
        _mm256_set1_epi64x(w as i64),
        _mm256_set1_epi64x(quotient as i64),
    )
}

/// Canonical values as the arithmetic takes them.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn entered<const KIND: u8>(x: V) -> V {
    if KIND == WORDS {
        return x;
    }
    bits(doubles::entered(x))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn add<const KIND: u8>(x: V, y: V) -> V {
    if KIND == WORDS {
        _mm256_add_epi64(x, y)
    } else {
        bits(_mm256_add_pd(of_bits(x), of_bits(y)))
    }
}

/// `x - y`. Words stay positive: `bound`, a multiple of the modulus that `y` is below, is added to them.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn sub<const KIND: u8>(x: V, y: V, bound: V) -> V {
    if KIND == WORDS {
        _mm256_add_epi64(x, _mm256_sub_epi64(bound, y))
    } else {
        bits(_mm256_sub_pd(of_bits(x), of_bits(y)))
    }
}

/// `wy` modulo `q`, up to a few `q`.
///
/// Doubles: at most `q (1/2 + |y| / 2^53)` in magnitude, for `|y| < 2^53`.
///
/// Words: the quotient Q is `floor(w 2^64 / q)`. For every word `y`, let `y = a 2^32 + b` and `Q = c 2^32 + d`. Then `Qy / 2^64 = ac + (bc + ad) / 2^32 + bd / 2^64`,
/// and the estimate e of `wy/q` is the sum of the first three with the second and third rounded down. Rounding Q, rounding twice and leaving the last
/// out make e less than 4 too small, so that the result is below `4q`.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn product<const KIND: u8>(root: Root, y: V, modulus: &Modulus) -> V {
    if KIND == WORDS {
        let y_high = _mm256_srli_epi64::<32>(y);
        let middle = _mm256_srli_epi64::<32>(_mm256_mul_epu32(root.quotient_high, y));
        let other = _mm256_srli_epi64::<32>(_mm256_mul_epu32(root.quotient, y_high));
        let estimate = _mm256_mul_epu32(root.quotient_high, y_high);
        let estimate = _mm256_add_epi64(estimate, _mm256_add_epi64(middle, other));
        let estimate_high = _mm256_srli_epi64::<32>(estimate);
        let upper = _mm256_sub_epi64(
            _mm256_add_epi64(
                _mm256_mul_epu32(root.w_high, y),
                _mm256_mul_epu32(root.w, y_high),
            ),
            _mm256_add_epi64(
                _mm256_mul_epu32(estimate_high, modulus.q),
                _mm256_mul_epu32(estimate, modulus.q_high),
            ),
        );
        let lower = _mm256_sub_epi64(
            _mm256_mul_epu32(root.w, y),
            _mm256_mul_epu32(estimate, modulus.q),
        );
        return _mm256_add_epi64(lower, _mm256_slli_epi64::<32>(upper));
    }
    let (w, quotient) = (of_bits(root.w), of_bits(root.quotient));
    bits(doubles::constant_product(
        w,
        quotient,
        of_bits(y),
        modulus.doubles,
    ))
}

/// Words: `x mod m` for `x < 2m`, where `m` is below 2^63.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn reduced(x: V, m: V) -> V {
    let difference = _mm256_sub_epi64(x, m);
    bits(_mm256_blendv_pd(
        of_bits(difference),
        of_bits(x),
        of_bits(difference),
    ))
}

/// The same residue, smaller: doubles are at most `q/2` in magnitude, up to a few units, and words below `8q`.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn fold<const KIND: u8>(x: V, modulus: &Modulus) -> V {
    if KIND == WORDS {
        return reduced(x, modulus.eightfold);
    }
    bits(doubles::folded(of_bits(x), modulus.doubles))
}

/// `(x + wy, x - wy)`: the bound of `x` grows by that of products.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn forward_2<const KIND: u8>(x: V, y: V, root: Root, modulus: &Modulus) -> [V; 2] {
    let y = product::<KIND>(root, y, modulus);
    [add::<KIND>(x, y), sub::<KIND>(x, y, modulus.fourfold)]
}

/// [`forward_2`] for every `x` in bounds.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn forward_folded<const KIND: u8>(x: V, y: V, root: Root, modulus: &Modulus) -> [V; 2] {
    forward_2::<KIND>(fold::<KIND>(x, modulus), y, root, modulus)
}

/// Two layers on four vectors, or on the values of four blocks. Magnitudes, in moduli, of a and of all values after the first and second layer:
///
/// * `DOUBLES`, `|y| / 2^53 < |y| / 8q`: values of up to 2.25 give 0.5, 3.1 and 2.25;
/// * `WIDE_DOUBLES`, `|y| / 2^53 < |y| / 2q`: values of up to 1.75 give 0.5, 1.9 and 1.3, as all are folded before the second layer;
/// * `WORDS`: values below 16 give 8, 12 and 16.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn forward_4<const KIND: u8>(
    values: [V; 4],
    roots: [Root; 3],
    modulus: &Modulus,
) -> [V; 4] {
    let ([a, b, c, d], [w1, w2, w3]) = (values, roots);
    let [a, c] = forward_folded::<KIND>(a, c, w1, modulus);
    let b = if KIND == DOUBLES {
        b
    } else {
        fold::<KIND>(b, modulus)
    };
    let [b, d] = forward_2::<KIND>(b, d, w1, modulus);
    let [a, b, c, d] = if KIND == DOUBLES || KIND == WORDS {
        [a, b, c, d]
    } else {
        [
            fold::<KIND>(a, modulus),
            fold::<KIND>(b, modulus),
            fold::<KIND>(c, modulus),
            fold::<KIND>(d, modulus),
        ]
    };
    let [a, b] = forward_2::<KIND>(a, b, w2, modulus);
    let [c, d] = forward_2::<KIND>(c, d, w3, modulus);
    [a, b, c, d]
}

/// `(x + y, w(x - y))`, folded, for values of an earlier layer or for canonical ones.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn inverse_2<const KIND: u8>(x: V, y: V, root: Root, modulus: &Modulus) -> [V; 2] {
    let difference = sub::<KIND>(x, y, modulus.eightfold);
    let difference = if KIND == DOUBLES || KIND == WORDS {
        difference
    } else {
        fold::<KIND>(difference, modulus)
    };
    [
        fold::<KIND>(add::<KIND>(x, y), modulus),
        product::<KIND>(root, difference, modulus),
    ]
}

/// [`inverse_2`], but with `DOUBLES` the sum is not folded: another layer follows.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn inverse_first<const KIND: u8>(x: V, y: V, root: Root, modulus: &Modulus) -> [V; 2] {
    if KIND == DOUBLES {
        let difference = sub::<KIND>(x, y, modulus.eightfold);
        [
            add::<KIND>(x, y),
            product::<KIND>(root, difference, modulus),
        ]
    } else {
        inverse_2::<KIND>(x, y, root, modulus)
    }
}

/// Two layers, not the last ones. Magnitudes, in moduli:
///
/// * `DOUBLES`: values of up to 1.01 give 2.02 and then, where products of up to 4.04 are taken, 1.01 again;
/// * `WIDE_DOUBLES`: values of up to 1 are folded wherever they are not products of folded values: 0.8;
/// * `WORDS`: values below 8 stay so.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn inverse_4<const KIND: u8>(
    values: [V; 4],
    roots: [Root; 3],
    modulus: &Modulus,
) -> [V; 4] {
    let ([a, b, c, d], [w1, w2, w3]) = (values, roots);
    let [a, b] = inverse_first::<KIND>(a, b, w2, modulus);
    let [c, d] = inverse_first::<KIND>(c, d, w3, modulus);
    let [a, c] = inverse_2::<KIND>(a, c, w1, modulus);
    let [b, d] = inverse_2::<KIND>(b, d, w1, modulus);
    [a, b, c, d]
}

/// The last layer of the inverse: `(x + y, x - y)` times `factors`, canonical.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn inverse_last<const KIND: u8>(
    x: V,
    y: V,
    factors: [Root; 2],
    modulus: &Modulus,
) -> [V; 2] {
    let [scale, last] = factors;
    let difference = sub::<KIND>(x, y, modulus.eightfold);
    let sum = product::<KIND>(scale, add::<KIND>(x, y), modulus);
    let difference = product::<KIND>(last, difference, modulus);
    if KIND == WORDS {
        [
            reduced(reduced(sum, modulus.double), modulus.q),
            reduced(reduced(difference, modulus.double), modulus.q),
        ]
    } else {
        [
            canonical::<KIND>(sum, modulus),
            canonical::<KIND>(difference, modulus),
        ]
    }
}

/// The canonical form of a value, as a word.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn canonical<const KIND: u8>(x: V, modulus: &Modulus) -> V {
    if KIND == WORDS {
        let x = reduced(fold::<KIND>(x, modulus), modulus.fourfold);
        return reduced(reduced(x, modulus.double), modulus.q);
    }
    doubles::canonical(of_bits(x), modulus.doubles)
}

/// Transposes four vectors of four values.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn transposed([a, b, c, d]: [V; LANES]) -> [V; LANES] {
    const LOWER: i32 = 0x20;
    const UPPER: i32 = 0x31;
    let (even, odd) = (_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
    let (even2, odd2) = (_mm256_unpacklo_epi64(c, d), _mm256_unpackhi_epi64(c, d));
    [
        _mm256_permute2x128_si256::<LOWER>(even, even2),
        _mm256_permute2x128_si256::<LOWER>(odd, odd2),
        _mm256_permute2x128_si256::<UPPER>(even, even2),
        _mm256_permute2x128_si256::<UPPER>(odd, odd2),
    ]
}
