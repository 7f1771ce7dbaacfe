//! Arithmetic on eight residues: lazy products, the steps of both transforms, and the transposition of 64 values.

use std::arch::x86_64::*;

use super::LANES;
use crate::modular::Shoup;

/// Eight words.
pub(super) type V = __m512i;

/// A constant factor: `w`, the high 52 bits of its quotient, and the low 12 bits of its quotient as the high ones of 52.
#[derive(Clone, Copy)]
pub(super) struct Root {
    w: V,
    high: V,
    low: V,
}

/// Multiples of the modulus.
pub(super) struct Modulus {
    q: V,
    /// `2q` and `4q`.
    double: V,
    fourfold: V,
    /// `2^52 - q`.
    negative: V,
    /// What products are below: `4q`, or `2q` without `WIDE`.
    product: V,
    /// What [`fold`] brings values below: `8q`, or `2q` without `WIDE`.
    folded: V,
}

/// Reads eight values.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load(words: &[u64; LANES]) -> V {
    // SAFETY: the reference is valid for 64 bytes, and this load needs no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

/// Writes eight values.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store(words: &mut [u64; LANES], values: V) {
    // SAFETY: the reference is valid for 64 bytes and unique, and this store needs no alignment.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), values) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn multiple(q: u64, factor: u64) -> V {
    _mm512_set1_epi64((factor * q) as i64)
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn modulus<const WIDE: bool>(q: u64) -> Modulus {
    Modulus {
        q: multiple(q, 1),
        double: multiple(q, 2),
        fourfold: multiple(q, 4),
        negative: _mm512_set1_epi64((1i64 << 52).wrapping_sub(q as i64)),
        product: multiple(q, if WIDE { 4 } else { 2 }),
        folded: multiple(q, if WIDE { 8 } else { 2 }),
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn root(w: V, quotient: V) -> Root {
    Root {
        w,
        high: _mm512_srli_epi64::<12>(quotient),
        low: _mm512_slli_epi64::<40>(quotient),
    }
}

/// One root for all lanes.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn same(factor: &Shoup) -> Root {
    root(
        _mm512_set1_epi64(factor.w as i64),
        _mm512_set1_epi64(factor.quotient as i64),
    )
}

/// `wy` modulo `q`, up to a few `q`, which are subtracted by the estimate e of `wy/q`. Let Q be the quotient `floor(w 2^64 / q)`.
///
/// With `WIDE`, for every word `y`: let `y = a 2^52 + b` and `Q = c 2^12 + d`. Then `Qy / 2^64 = ac + bc/2^52 + ad/2^12 + bd/2^64`, and e
/// is the sum of the first three with the second and third rounded down. Rounding Q, rounding twice and leaving the last out make e
/// less than 4 too small, so that the result is below `4q`.
///
/// Without, for `y` below 2^52: `e = floor(y floor(Q / 2^12) / 2^52)`, where two roundings make e less than 2 too small. The result is below
/// `2q`, which 52 bits hold.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(super) fn product<const WIDE: bool>(root: Root, y: V, modulus: &Modulus) -> V {
    if WIDE {
        let top = _mm512_srli_epi64::<52>(y);
        let estimate = _mm512_mullo_epi64(root.high, top);
        let estimate = _mm512_madd52hi_epu64(estimate, root.high, y);
        let estimate = _mm512_madd52hi_epu64(estimate, root.low, top);
        _mm512_sub_epi64(
            _mm512_mullo_epi64(root.w, y),
            _mm512_mullo_epi64(estimate, modulus.q),
        )
    } else {
        let zero = _mm512_setzero_si512();
        let estimate = _mm512_madd52hi_epu64(zero, root.high, y);
        let exact = _mm512_madd52lo_epu64(zero, root.w, y);
        let lazy = _mm512_madd52lo_epu64(exact, estimate, modulus.negative);
        _mm512_and_si512(lazy, _mm512_set1_epi64((1 << 52) - 1))
    }
}

/// `x mod m` for `x < 2m`: if `x` is smaller than `m`, the difference wraps around to a larger word.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn fold(x: V, m: V) -> V {
    _mm512_min_epu64(x, _mm512_sub_epi64(x, m))
}

/// `(x + wy, x - wy)`: the bound of `x` grows by that of products.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
fn forward_2<const WIDE: bool>(x: V, y: V, root: Root, modulus: &Modulus) -> [V; 2] {
    let y = product::<WIDE>(root, y, modulus);
    [
        _mm512_add_epi64(x, y),
        _mm512_add_epi64(x, _mm512_sub_epi64(modulus.product, y)),
    ]
}

/// [`forward_2`] for every `x` in bounds.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(super) fn forward_folded<const WIDE: bool>(
    x: V,
    y: V,
    root: Root,
    modulus: &Modulus,
) -> [V; 2] {
    forward_2::<WIDE>(fold(x, modulus.folded), y, root, modulus)
}

/// [`forward_2`] one layer after [`forward_folded`]: values are below `12q` with `WIDE`, below `4q` without.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(super) fn forward_second<const WIDE: bool>(
    x: V,
    y: V,
    root: Root,
    modulus: &Modulus,
) -> [V; 2] {
    if WIDE {
        forward_2::<WIDE>(x, y, root, modulus)
    } else {
        forward_folded::<WIDE>(x, y, root, modulus)
    }
}

/// Two layers on four vectors, or on the values of four blocks.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(super) fn forward_4<const WIDE: bool>(
    values: [V; 4],
    roots: [Root; 3],
    modulus: &Modulus,
) -> [V; 4] {
    let ([a, b, c, d], [w1, w2, w3]) = (values, roots);
    let [a, c] = forward_folded::<WIDE>(a, c, w1, modulus);
    let [b, d] = forward_folded::<WIDE>(b, d, w1, modulus);
    let [a, b] = forward_second::<WIDE>(a, b, w2, modulus);
    let [c, d] = forward_second::<WIDE>(c, d, w3, modulus);
    [a, b, c, d]
}

/// `(x + y, w(x - y))`, folded, for folded values.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(super) fn inverse_2<const WIDE: bool>(x: V, y: V, root: Root, modulus: &Modulus) -> [V; 2] {
    let difference = _mm512_add_epi64(x, _mm512_sub_epi64(modulus.folded, y));
    [
        fold(_mm512_add_epi64(x, y), modulus.folded),
        product::<WIDE>(root, difference, modulus),
    ]
}

/// The last layer: [`inverse_2`] divided by `n` and reduced.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(super) fn inverse_last<const WIDE: bool>(
    x: V,
    y: V,
    factors: [Root; 2],
    modulus: &Modulus,
) -> [V; 2] {
    let [scale, last] = factors;
    let difference = _mm512_add_epi64(x, _mm512_sub_epi64(modulus.folded, y));
    let sum = product::<WIDE>(scale, _mm512_add_epi64(x, y), modulus);
    let difference = product::<WIDE>(last, difference, modulus);
    if WIDE {
        let (sum, difference) = (fold(sum, modulus.double), fold(difference, modulus.double));
        [fold(sum, modulus.q), fold(difference, modulus.q)]
    } else {
        [fold(sum, modulus.q), fold(difference, modulus.q)]
    }
}

/// The canonical form of a value after the last layer: below `12q` with `WIDE`, below `4q` without.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn canonical<const WIDE: bool>(x: V, modulus: &Modulus) -> V {
    let x = if WIDE {
        fold(fold(x, modulus.folded), modulus.fourfold)
    } else {
        x
    };
    fold(fold(x, modulus.double), modulus.q)
}

/// Transposes eight vectors of eight values.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn transposed(rows: [V; LANES]) -> [V; LANES] {
    let [a, b, c, d, e, f, g, h] = rows;
    let [even0, even1, even2, even3] = lanes_transposed([
        _mm512_unpacklo_epi64(a, b),
        _mm512_unpacklo_epi64(c, d),
        _mm512_unpacklo_epi64(e, f),
        _mm512_unpacklo_epi64(g, h),
    ]);
    let [odd0, odd1, odd2, odd3] = lanes_transposed([
        _mm512_unpackhi_epi64(a, b),
        _mm512_unpackhi_epi64(c, d),
        _mm512_unpackhi_epi64(e, f),
        _mm512_unpackhi_epi64(g, h),
    ]);
    [even0, odd0, even1, odd1, even2, odd2, even3, odd3]
}

/// Transposes four vectors of four pairs.
#[inline]
#[target_feature(enable = "avx512f")]
fn lanes_transposed([a, b, c, d]: [V; 4]) -> [V; 4] {
    const EVEN: i32 = 0b10_00_10_00;
    const ODD: i32 = 0b11_01_11_01;
    let upper = [
        _mm512_shuffle_i64x2::<EVEN>(a, b),
        _mm512_shuffle_i64x2::<ODD>(a, b),
    ];
    let lower = [
        _mm512_shuffle_i64x2::<EVEN>(c, d),
        _mm512_shuffle_i64x2::<ODD>(c, d),
    ];
    let ([e, o], [p, r]) = (upper, lower);
    [
        _mm512_shuffle_i64x2::<EVEN>(e, p),
        _mm512_shuffle_i64x2::<EVEN>(o, r),
        _mm512_shuffle_i64x2::<ODD>(e, p),
        _mm512_shuffle_i64x2::<ODD>(o, r),
    ]
}
