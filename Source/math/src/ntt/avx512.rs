//! The same passes on eight values at a time, for processors with AVX-512 and its products of 52 bits (IFMA).
//!
//! The order of layers and of values is that of `butterflies`. Blocks are transformed depth first, so that they stay in the first-level
//! cache. The last three layers of the transform mix values within a vector: 64 values are transposed before and after them.
//!
//! Products are lazy. With `WIDE`, for a modulus below 2^60, a product is below `4q` and a word holds values up to `16q`. Without, for a
//! modulus below 2^50, a product is below `2q`, values are below `4q`, and three products of 52 bits take the place of five. Both need
//! the high part of a product of words with error, but not the word: see `arithmetic::product`.
//!
//! Values are canonical at the end, so that the results are those of `butterflies`, bit by bit.

mod arithmetic;

use self::arithmetic::{
    Modulus, Root, canonical, forward_4, forward_folded, forward_second, inverse_2, inverse_last,
    load, modulus, root, same, store, transposed,
};
use super::NttError;
use crate::modular::Shoup;

/// Values of a vector.
const LANES: usize = 8;
/// Values that are transposed together.
pub(super) const GROUP: usize = LANES * LANES;
/// Blocks of more values are transformed depth first: 16 KiB, half of the first-level cache.
const BLOCK: usize = 2048;

/// The largest modulus (exclusive) of these passes.
pub(super) const LARGEST: u64 = 1 << 60;
/// The largest modulus (exclusive) without `WIDE`.
const NARROW: u64 = 1 << 50;

/// Whether the processor has what these passes need.
pub(super) fn detected() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512ifma")
}

/// Roots of the layers of strides 4, 2 and 1 for eight blocks of eight values: one vector for stride 4, two for 2, four for 1. For each the
/// roots, then their quotients.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Last([[u64; LANES]; 14]);

/// The roots of the last three layers for each group of 64 values. `roots` is the table of the portable passes.
pub(super) fn last_layers(roots: &[Shoup]) -> Result<Vec<Last>, NttError> {
    let n = roots.len();
    let group = |group: usize| {
        let mut vectors = Last([[0; LANES]; 14]);
        let mut pairs = vectors.0.as_chunks_mut::<2>().0.iter_mut();
        for (stride, count) in [(4, 1), (2, 2), (1, 4)] {
            for (within, [w, quotient]) in pairs.by_ref().take(count).enumerate() {
                for (lane, (w, quotient)) in w.iter_mut().zip(quotient).enumerate() {
                    let node = n / (2 * stride) + count * (LANES * group + lane) + within;
                    let root = roots.get(node).ok_or_else(super::outside)?;
                    (*w, *quotient) = (root.w, root.quotient);
                }
            }
        }
        Ok(vectors)
    };
    (0..n / GROUP).map(group).collect()
}

/// Vectors of a part of a block, whose length is a multiple of eight.
fn vectors(part: &mut [u64]) -> &mut [[u64; LANES]] {
    part.as_chunks_mut().0
}

/// The roots of a group: one for stride 4, two for stride 2, four for stride 1.
#[inline]
#[target_feature(enable = "avx512f")]
fn last_roots(Last(vectors): &Last) -> [Root; 7] {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = vectors;
    [
        root(load(a), load(b)),
        root(load(c), load(d)),
        root(load(e), load(f)),
        root(load(g), load(h)),
        root(load(i), load(j)),
        root(load(k), load(l)),
        root(load(m), load(n)),
    ]
}

/// Applies `layers` to the 64 values of a group, transposed: one vector for each position in a block of eight.
macro_rules! on_group {
    ($group:expr, $values:ident => $layers:expr) => {
        let rows = $group.as_chunks_mut::<LANES>().0.first_chunk_mut::<LANES>();
        let [a, b, c, d, e, f, g, h] = rows.ok_or_else(super::outside)?;
        let $values = transposed([
            load(a),
            load(b),
            load(c),
            load(d),
            load(e),
            load(f),
            load(g),
            load(h),
        ]);
        let [i, j, k, l, m, n, o, p] = transposed($layers);
        store(a, i);
        store(b, j);
        store(c, k);
        store(d, l);
        store(e, m);
        store(f, n);
        store(g, o);
        store(h, p);
    };
}

/// Strides 4, 2 and 1.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
fn forward_last<const WIDE: bool>(
    a: &mut [u64],
    last: &[Last],
    modulus: &Modulus,
) -> Result<(), NttError> {
    for (group, last) in a.chunks_exact_mut(GROUP).zip(last) {
        let [w, v0, v1, u0, u1, u2, u3] = last_roots(last);
        on_group!(group, values => {
            let [a, b, c, d, e, f, g, h] = values;
            let [a, e] = forward_folded::<WIDE>(a, e, w, modulus);
            let [b, f] = forward_folded::<WIDE>(b, f, w, modulus);
            let [c, g] = forward_folded::<WIDE>(c, g, w, modulus);
            let [d, h] = forward_folded::<WIDE>(d, h, w, modulus);
            let [a, c] = forward_second::<WIDE>(a, c, v0, modulus);
            let [b, d] = forward_second::<WIDE>(b, d, v0, modulus);
            let [e, g] = forward_second::<WIDE>(e, g, v1, modulus);
            let [f, h] = forward_second::<WIDE>(f, h, v1, modulus);
            let [a, b] = forward_folded::<WIDE>(a, b, u0, modulus);
            let [c, d] = forward_folded::<WIDE>(c, d, u1, modulus);
            let [e, f] = forward_folded::<WIDE>(e, f, u2, modulus);
            let [g, h] = forward_folded::<WIDE>(g, h, u3, modulus);
            [
                canonical::<WIDE>(a, modulus),
                canonical::<WIDE>(b, modulus),
                canonical::<WIDE>(c, modulus),
                canonical::<WIDE>(d, modulus),
                canonical::<WIDE>(e, modulus),
                canonical::<WIDE>(f, modulus),
                canonical::<WIDE>(g, modulus),
                canonical::<WIDE>(h, modulus),
            ]
        });
    }
    Ok(())
}

/// Strides 1, 2 and 4.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
fn inverse_first<const WIDE: bool>(
    a: &mut [u64],
    last: &[Last],
    modulus: &Modulus,
) -> Result<(), NttError> {
    for (group, last) in a.chunks_exact_mut(GROUP).zip(last) {
        let [w, v0, v1, u0, u1, u2, u3] = last_roots(last);
        on_group!(group, values => {
            let [a, b, c, d, e, f, g, h] = values;
            let [a, b] = inverse_2::<WIDE>(a, b, u0, modulus);
            let [c, d] = inverse_2::<WIDE>(c, d, u1, modulus);
            let [e, f] = inverse_2::<WIDE>(e, f, u2, modulus);
            let [g, h] = inverse_2::<WIDE>(g, h, u3, modulus);
            let [a, c] = inverse_2::<WIDE>(a, c, v0, modulus);
            let [b, d] = inverse_2::<WIDE>(b, d, v0, modulus);
            let [e, g] = inverse_2::<WIDE>(e, g, v1, modulus);
            let [f, h] = inverse_2::<WIDE>(f, h, v1, modulus);
            let [a, e] = inverse_2::<WIDE>(a, e, w, modulus);
            let [b, f] = inverse_2::<WIDE>(b, f, w, modulus);
            let [c, g] = inverse_2::<WIDE>(c, g, w, modulus);
            let [d, h] = inverse_2::<WIDE>(d, h, w, modulus);
            [a, b, c, d, e, f, g, h]
        });
    }
    Ok(())
}

/// One layer on the block of a node.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
fn forward_layer<const WIDE: bool>(block: &mut [u64], factor: &Shoup, modulus: &Modulus) {
    let factor = same(factor);
    let (low, high) = block.split_at_mut(block.len() / 2);
    for (x, y) in vectors(low).iter_mut().zip(vectors(high)) {
        let [sum, difference] = forward_folded::<WIDE>(load(x), load(y), factor, modulus);
        store(x, sum);
        store(y, difference);
    }
}

/// Applies `layers` to the values at each position of the four parts of a block. The loop takes parts off by patterns: adapters of iterators would
/// take longer to set up than short blocks take.
macro_rules! on_quarters {
    ($block:expr, $values:ident => $layers:expr) => {
        let half = $block.len() / 2;
        let (low, high) = $block.split_at_mut(half);
        let (a, b) = low.split_at_mut(half / 2);
        let (c, d) = high.split_at_mut(half / 2);
        let (mut a, mut b, mut c, mut d) = (vectors(a), vectors(b), vectors(c), vectors(d));
        while let ([e, f @ ..], [g, h @ ..], [i, j @ ..], [k, l @ ..]) = (a, b, c, d) {
            let $values = [load(e), load(g), load(i), load(k)];
            let [m, n, o, p] = $layers;
            store(e, m);
            store(g, n);
            store(i, o);
            store(k, p);
            (a, b, c, d) = (f, h, j, l);
        }
    };
}

/// Two layers on blocks of `size` values, the first of which is `node`.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
fn forward_pass<const WIDE: bool>(
    a: &mut [u64],
    size: usize,
    node: usize,
    roots: &[Shoup],
    modulus: &Modulus,
) {
    let firsts = roots.iter().skip(node);
    let seconds = roots.as_chunks::<2>().0.iter().skip(node);
    for ((block, w1), [w2, w3]) in a.chunks_exact_mut(size).zip(firsts).zip(seconds) {
        let roots = [same(w1), same(w2), same(w3)];
        on_quarters!(block, values => forward_4::<WIDE>(values, roots, modulus));
    }
}

/// Two layers on blocks of `size` values, not the last ones.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
fn inverse_pass<const WIDE: bool>(
    a: &mut [u64],
    size: usize,
    node: usize,
    roots: &[Shoup],
    modulus: &Modulus,
) {
    let firsts = roots.iter().skip(node);
    let seconds = roots.as_chunks::<2>().0.iter().skip(node);
    for ((block, w1), [w2, w3]) in a.chunks_exact_mut(size).zip(firsts).zip(seconds) {
        let [w1, w2, w3] = [same(w1), same(w2), same(w3)];
        on_quarters!(block, values => {
            let [a, b, c, d] = values;
            let [a, b] = inverse_2::<WIDE>(a, b, w2, modulus);
            let [c, d] = inverse_2::<WIDE>(c, d, w3, modulus);
            let [a, c] = inverse_2::<WIDE>(a, c, w1, modulus);
            let [b, d] = inverse_2::<WIDE>(b, d, w1, modulus);
            [a, b, c, d]
        });
    }
}

/// The transform of the block of a node, where the children of node r are 2r and 2r + 1, and the block of node 1 is the whole.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
fn forward_block<const WIDE: bool>(
    a: &mut [u64],
    node: usize,
    roots: &[Shoup],
    last: &[Last],
    modulus: &Modulus,
) -> Result<(), NttError> {
    let (mut size, mut node) = (a.len(), node);
    if size > BLOCK {
        forward_pass::<WIDE>(a, size, node, roots, modulus);
        let quarters = a
            .chunks_exact_mut(size / 4)
            .zip(last.chunks_exact(last.len() / 4));
        for (i, (quarter, last)) in quarters.enumerate() {
            forward_block::<WIDE>(quarter, 4 * node + i, roots, last, modulus)?;
        }
        return Ok(());
    }
    if (size / LANES).ilog2() % 2 == 1 {
        forward_layer::<WIDE>(a, roots.get(node).ok_or_else(super::outside)?, modulus);
        (size, node) = (size / 2, 2 * node);
    }
    while size > LANES {
        forward_pass::<WIDE>(a, size, node, roots, modulus);
        (size, node) = (size / 4, 4 * node);
    }
    forward_last::<WIDE>(a, last, modulus)
}

/// The layers of the inverse transform within the block of a node: all of them for a block of at most [`BLOCK`] values but for a last one
/// without a second, and none on blocks of more than `most` values.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
fn inverse_block<const WIDE: bool>(
    a: &mut [u64],
    node: usize,
    roots: &[Shoup],
    last: &[Last],
    modulus: &Modulus,
    most: usize,
) -> Result<(), NttError> {
    let size = a.len();
    let mut next = 4 * LANES;
    if size > BLOCK {
        let quarters = a
            .chunks_exact_mut(size / 4)
            .zip(last.chunks_exact(last.len() / 4));
        for (i, (quarter, last)) in quarters.enumerate() {
            inverse_block::<WIDE>(quarter, 4 * node + i, roots, last, modulus, most)?;
        }
        while next <= size / 4 {
            next *= 4;
        }
    } else {
        inverse_first::<WIDE>(a, last, modulus)?;
    }
    while next <= size.min(most) {
        inverse_pass::<WIDE>(a, next, node * (size / next), roots, modulus);
        next *= 4;
    }
    Ok(())
}

/// The last layer of the inverse transform, or its last two.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
fn inverse_end<const WIDE: bool>(
    a: &mut [u64],
    roots: &[Shoup],
    factors: [Shoup; 2],
    modulus: &Modulus,
) -> Result<(), NttError> {
    let [scale, last] = factors;
    let factors = [same(&scale), same(&last)];
    if a.len().ilog2().is_multiple_of(2) {
        let (low, high) = a.split_at_mut(a.len() / 2);
        for (x, y) in vectors(low).iter_mut().zip(vectors(high)) {
            let [sum, difference] = inverse_last::<WIDE>(load(x), load(y), factors, modulus);
            store(x, sum);
            store(y, difference);
        }
        return Ok(());
    }
    let [_, _, w2, w3, ..] = roots else {
        return Err(super::outside());
    };
    let (w2, w3) = (same(w2), same(w3));
    on_quarters!(a, values => {
        let [a, b, c, d] = values;
        let [a, b] = inverse_2::<WIDE>(a, b, w2, modulus);
        let [c, d] = inverse_2::<WIDE>(c, d, w3, modulus);
        let [a, c] = inverse_last::<WIDE>(a, c, factors, modulus);
        let [b, d] = inverse_last::<WIDE>(b, d, factors, modulus);
        [a, b, c, d]
    });
    Ok(())
}

/// Fails unless these passes can work on `n` values with these tables.
fn check(n: usize, roots: &[Shoup], last: &[Last], q: u64) -> Result<(), NttError> {
    let found = if !detected() {
        "passes that this processor does not have"
    } else if n < GROUP || !n.is_power_of_two() || q >= LARGEST {
        "a transform of another size"
    } else if roots.len() != n || last.len() != n / GROUP {
        "a transform with the table of another ring degree"
    } else {
        return Ok(());
    };
    Err(NttError::Internal { found })
}

/// As `butterflies::forward`, for at least [`GROUP`] values and a modulus below [`LARGEST`].
pub(super) fn forward(
    a: &mut [u64],
    roots: &[Shoup],
    last: &[Last],
    q: u64,
) -> Result<(), NttError> {
    check(a.len(), roots, last, q)?;
    // SAFETY: the check has found the features that the functions need.
    unsafe {
        if q < NARROW {
            forward_block::<false>(a, 1, roots, last, &modulus::<false>(q))
        } else {
            forward_block::<true>(a, 1, roots, last, &modulus::<true>(q))
        }
    }
}

/// As `butterflies::inverse`, for at least [`GROUP`] values and a modulus below [`LARGEST`]. `factors` are `1/n` and `roots[1] / n`.
pub(super) fn inverse(
    a: &mut [u64],
    roots: &[Shoup],
    last: &[Last],
    factors: [Shoup; 2],
    q: u64,
) -> Result<(), NttError> {
    check(a.len(), roots, last, q)?;
    let most = a.len() / 2;
    // SAFETY: the check has found the features that the functions need.
    unsafe {
        if q < NARROW {
            let modulus = modulus::<false>(q);
            inverse_block::<false>(a, 1, roots, last, &modulus, most)?;
            inverse_end::<false>(a, roots, factors, &modulus)
        } else {
            let modulus = modulus::<true>(q);
            inverse_block::<true>(a, 1, roots, last, &modulus, most)?;
            inverse_end::<true>(a, roots, factors, &modulus)
        }
    }
}
