//! The passes of the transform, two layers at a time, on values that are reduced late (Harvey,
//! "Faster arithmetic for number-theoretic transforms", 2014).
//!
//! With `SMALL_MODULUS`, the modulus is below 2^60 and a word holds values up to `16q`; without, below 2^62
//! and up to `4q`. A pass works on blocks of four strides; a `STRIDE` that is not zero fixes the
//! stride at compile time, so that short loops are unrolled.

use super::NttError;
use crate::modular::{Shoup, reduce_once};

/// The ring degree, a power of two from 2 on. There must be as many roots: the passes use them in order.
fn degree(a: &[u64], roots: &[Shoup]) -> Result<usize, NttError> {
    let n = a.len();
    if n < 2 || !n.is_power_of_two() || roots.len() != n {
        return Err(NttError::Internal {
            found: "a transform with the table of another ring degree",
        });
    }
    Ok(n)
}

/// Two layers: `butterfly` maps the values at one position of the four strides of a block, with the block's three roots. There are as many
/// roots as values, hence more than blocks.
#[inline(always)]
fn pass<const STRIDE: usize>(
    a: &mut [u64],
    roots: &[Shoup],
    stride: usize,
    butterfly: impl Fn([u64; 4], [Shoup; 3]) -> [u64; 4],
) {
    let stride = if STRIDE > 0 { STRIDE } else { stride };
    let blocks = a.len() / (4 * stride);
    let firsts = roots.iter().skip(blocks);
    let seconds = roots.as_chunks::<2>().0.iter().skip(blocks);
    for ((block, &w1), &[w2, w3]) in a.chunks_exact_mut(4 * stride).zip(firsts).zip(seconds) {
        let (low, high) = block.split_at_mut(2 * stride);
        let (a, b) = low.split_at_mut(stride);
        let (c, d) = high.split_at_mut(stride);
        for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
            [*a, *b, *c, *d] = butterfly([*a, *b, *c, *d], [w1, w2, w3]);
        }
    }
}

/// Coefficients in `[0, q)` to values in `[0, q)`. `roots[i]` is `psi^bitrev(i)`.
pub(super) fn forward<const SMALL_MODULUS: bool>(
    a: &mut [u64],
    roots: &[Shoup],
    q: u64,
) -> Result<(), NttError> {
    let n = degree(a, roots)?;
    let mut stride = n / 4;
    if n.ilog2() % 2 == 1 {
        let &[_, root, ..] = roots else {
            return Err(super::outside());
        };
        let (low, high) = a.split_at_mut(n / 2);
        for (x, y) in low.iter_mut().zip(high) {
            (*x, *y) = forward_2(*x, *y, root, q);
        }
        stride = n / 8;
    }
    while stride > 4 {
        forward_pass::<SMALL_MODULUS, 0>(a, roots, stride, q);
        stride /= 4;
    }
    if stride == 4 {
        forward_pass::<SMALL_MODULUS, 4>(a, roots, 4, q);
    }
    if n >= 4 {
        forward_pass::<SMALL_MODULUS, 1>(a, roots, 1, q);
    } else {
        for x in a {
            *x = reduce_once(reduce_once(*x, 2 * q), q);
        }
    }
    Ok(())
}

/// Two layers. The last pass, of stride 1, reduces the values completely.
#[inline(never)]
fn forward_pass<const SMALL_MODULUS: bool, const STRIDE: usize>(
    a: &mut [u64],
    roots: &[Shoup],
    stride: usize,
    q: u64,
) {
    pass::<STRIDE>(a, roots, stride, |values, roots| {
        let mut values = forward_4::<SMALL_MODULUS>(values, roots, q);
        if STRIDE == 1 {
            values = values.map(|x| {
                let x = if SMALL_MODULUS {
                    reduce_once(x, 4 * q)
                } else {
                    x
                };
                reduce_once(reduce_once(x, 2 * q), q)
            });
        }
        values
    });
}

/// `(x + wy, x - wy)`: the bound of `x` grows by `2q`, that of `y` does not matter.
#[inline(always)]
fn forward_2(x: u64, y: u64, root: Shoup, q: u64) -> (u64, u64) {
    let y = root.mul_lazy(y, q);
    (x + y, x + 2 * q - y)
}

/// Two layers on four values: below `8q` before and after with `SMALL_MODULUS`, below `4q` without.
#[inline(always)]
fn forward_4<const SMALL_MODULUS: bool>(
    [a, b, c, d]: [u64; 4],
    [w1, w2, w3]: [Shoup; 3],
    q: u64,
) -> [u64; 4] {
    if SMALL_MODULUS {
        let (a, c) = forward_2(reduce_once(a, 4 * q), c, w1, q); // below 6q
        let (b, d) = forward_2(b, d, w1, q); // below 10q
        let (a, b) = forward_2(a, b, w2, q);
        let (c, d) = forward_2(c, d, w3, q);
        [a, b, c, d]
    } else {
        let (a, c) = forward_2(reduce_once(a, 2 * q), c, w1, q);
        let (b, d) = forward_2(reduce_once(b, 2 * q), d, w1, q);
        let (a, b) = forward_2(reduce_once(a, 2 * q), b, w2, q);
        let (c, d) = forward_2(reduce_once(c, 2 * q), d, w3, q);
        [a, b, c, d]
    }
}

/// Values in `[0, q)` to coefficients in `[0, q)`. `roots[i]` is `psi^-bitrev(i)`; `scale` is `1/n`
/// and `last` is `roots[1] / n`.
pub(super) fn inverse<const SMALL_MODULUS: bool>(
    a: &mut [u64],
    roots: &[Shoup],
    scale: Shoup,
    last: Shoup,
    q: u64,
) -> Result<(), NttError> {
    let n = degree(a, roots)?;
    if n >= 8 {
        inverse_pass::<SMALL_MODULUS, 1>(a, roots, 1, q);
    }
    if n >= 32 {
        inverse_pass::<SMALL_MODULUS, 4>(a, roots, 4, q);
    }
    let mut stride = 16;
    while 8 * stride <= n {
        inverse_pass::<SMALL_MODULUS, 0>(a, roots, stride, q);
        stride *= 4;
    }
    // One or two layers are left.
    let bound = if SMALL_MODULUS { 4 } else { 2 };
    if n.ilog2() % 2 == 1 {
        let (low, high) = a.split_at_mut(n / 2);
        for (x, y) in low.iter_mut().zip(high) {
            [*x, *y] = inverse_last(*x, *y, bound, [scale, last], q);
        }
    } else {
        let &[_, _, w2, w3, ..] = roots else {
            return Err(super::outside());
        };
        let (low, high) = a.split_at_mut(n / 2);
        let (a, b) = low.split_at_mut(n / 4);
        let (c, d) = high.split_at_mut(n / 4);
        for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
            let (mut a1, b1) = inverse_2(*a, *b, bound, w2, q);
            let (mut c1, d1) = inverse_2(*c, *d, bound, w3, q);
            if !SMALL_MODULUS {
                (a1, c1) = (reduce_once(a1, 2 * q), reduce_once(c1, 2 * q));
            }
            let sums = if SMALL_MODULUS { 8 } else { 2 };
            [*a, *c] = inverse_last(a1, c1, sums, [scale, last], q);
            [*b, *d] = inverse_last(b1, d1, 2, [scale, last], q);
        }
    }
    Ok(())
}

/// Two layers, not the last ones.
#[inline(never)]
fn inverse_pass<const SMALL_MODULUS: bool, const STRIDE: usize>(
    a: &mut [u64],
    roots: &[Shoup],
    stride: usize,
    q: u64,
) {
    pass::<STRIDE>(a, roots, stride, |values, roots| {
        inverse_4::<SMALL_MODULUS>(values, roots, q)
    });
}

/// `(x + y, w(x - y))` for values below `bound * q`: below `2 * bound * q` and below `2q`.
#[inline(always)]
fn inverse_2(x: u64, y: u64, bound: u64, root: Shoup, q: u64) -> (u64, u64) {
    (x + y, root.mul_lazy(x + bound * q - y, q))
}

/// The last layer: [`inverse_2`] divided by `n` and reduced.
#[inline(always)]
fn inverse_last(x: u64, y: u64, bound: u64, factors: [Shoup; 2], q: u64) -> [u64; 2] {
    let [scale, last] = factors;
    let sum = scale.mul_lazy(x + y, q);
    let difference = last.mul_lazy(x + bound * q - y, q);
    [reduce_once(sum, q), reduce_once(difference, q)]
}

/// Two layers on four values: below `4q` before and after with `SMALL_MODULUS`, below `2q` without.
#[inline(always)]
fn inverse_4<const SMALL_MODULUS: bool>(
    [a, b, c, d]: [u64; 4],
    [w1, w2, w3]: [Shoup; 3],
    q: u64,
) -> [u64; 4] {
    if SMALL_MODULUS {
        let (a, b) = inverse_2(a, b, 4, w2, q); // below 8q and 2q
        let (c, d) = inverse_2(c, d, 4, w3, q);
        let (a, c) = inverse_2(a, c, 8, w1, q); // below 16q and 2q
        let (b, d) = inverse_2(b, d, 2, w1, q); // below 4q and 2q
        [reduce_once(reduce_once(a, 8 * q), 4 * q), b, c, d]
    } else {
        let (a, b) = inverse_2(a, b, 2, w2, q);
        let (c, d) = inverse_2(c, d, 2, w3, q);
        let (a, c) = (reduce_once(a, 2 * q), reduce_once(c, 2 * q));
        let (a, c) = inverse_2(a, c, 2, w1, q);
        let (b, d) = inverse_2(b, d, 2, w1, q);
        [reduce_once(a, 2 * q), reduce_once(b, 2 * q), c, d]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without the check a block without a root would stay unchanged, and the result would look like a transform.
    #[test]
    fn missing_parts_blocked_transform_with_the_table_of_another_ring_degree() {
        let roots = [Shoup::default(); 8];
        for (n, table) in [(8, 7), (8, 4), (4, 8), (2, 1), (3, 3), (1, 1), (0, 0)] {
            let (mut a, before) = (vec![1; n], vec![1; n]);
            let (roots, _) = roots.split_at(table);
            let refused = forward::<true>(&mut a, roots, 17);
            assert!(matches!(refused, Err(NttError::Internal { .. })), "{n}");
            let (scale, last) = (Shoup::default(), Shoup::default());
            let refused = inverse::<true>(&mut a, roots, scale, last, 17);
            assert!(matches!(refused, Err(NttError::Internal { .. })), "{n}");
            assert_eq!(a, before);
        }
    }
}
