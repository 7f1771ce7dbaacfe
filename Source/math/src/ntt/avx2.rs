//! The same passes on four values at a time, for processors with AVX2 and FMA.
//!
//! The order of layers and of values is that of `butterflies`. Blocks are transformed depth first, so that they stay in the first-level
//! cache. The last two layers of the transform mix values within a vector: 16 values are transposed before and after them.
//!
//! There are three kinds of arithmetic, see `arithmetic::product`. Below 2^50 and below 2^52, values are doubles that hold integers of both signs: a fused
//! multiplication gives the lower part of a product without error. Below 2^60, values are words, and products of 32 bits make those of 64.
//!
//! Values are canonical words at the end, so that the results are those of `butterflies`, bit by bit.

mod arithmetic;

use self::arithmetic::{
    Modulus, Root, canonical, entered, forward_4, forward_folded, inverse_4, inverse_first,
    inverse_last, modulus, root, same, transposed,
};
use super::NttError;
use crate::doubles::{self, LANES, load, store};
use crate::modular::Shoup;

/// Values that are transposed together.
pub(super) const GROUP: usize = LANES * LANES;
/// Blocks of more values are transformed depth first: 16 KiB, half of the first-level cache.
const BLOCK: usize = 2048;

/// Doubles, for a modulus below 2^50.
const DOUBLES: u8 = 0;
/// Doubles that are reduced more often, for a modulus below 2^52.
const WIDE_DOUBLES: u8 = 1;
/// Words, for a modulus below 2^60.
const WORDS: u8 = 2;

/// The arithmetic of a transform.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// [`DOUBLES`].
    Doubles,
    /// [`WIDE_DOUBLES`].
    WideDoubles,
    /// [`WORDS`].
    Words,
}

impl Kind {
    /// From the fastest to the slowest.
    pub(super) const ALL: [Self; 3] = [Self::Doubles, Self::WideDoubles, Self::Words];

    /// The largest modulus (exclusive).
    pub(super) fn limit(self) -> u64 {
        match self {
            Self::Doubles => 1 << 50,
            Self::WideDoubles => doubles::LARGEST,
            Self::Words => 1 << 60,
        }
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Doubles | Self::WideDoubles => "avx2fma",
            Self::Words => "avx2",
        }
    }

    /// A factor as the arithmetic takes it. Factors are public.
    fn factor(self, factor: &Shoup, q: u64) -> Factor {
        if self == Self::Words {
            return Factor([factor.w, factor.quotient]);
        }
        // At most q/2 in magnitude. Both are below 2^52, thus exact as doubles, and the quotient is rounded once.
        let negative = if factor.w > q / 2 { q } else { 0 };
        let w = (factor.w as i64 - negative as i64) as f64;
        Factor([w.to_bits(), (w / q as f64).to_bits()])
    }
}

/// A factor w and its quotient: words, or the bits of the doubles w and w/q.
#[derive(Clone, Copy, Debug)]
struct Factor([u64; 2]);

/// Roots of the layers of strides 2 and 1 for four blocks of four values: one vector for stride 2, two for 1. For each the roots, then their quotients.
#[derive(Clone, Debug)]
#[repr(align(32))]
struct Last([[u64; LANES]; 6]);

/// Roots of one direction of the transform.
#[derive(Clone, Debug)]
pub(super) struct Roots {
    kind: Kind,
    q: u64,
    /// Those of the layers before the last two, in the order of the portable table.
    upper: Vec<Factor>,
    /// Those of the last two layers, for each group of 16 values.
    last: Vec<Last>,
}

/// Whether the processor has what these passes need.
pub(super) fn detected() -> bool {
    doubles::detected()
}

impl Roots {
    /// From the table of the portable passes.
    pub(super) fn new(kind: Kind, roots: &[Shoup], q: u64) -> Result<Self, NttError> {
        let n = roots.len();
        let group = |group: usize| {
            let mut vectors = Last([[0; LANES]; 6]);
            let mut pairs = vectors.0.as_chunks_mut::<2>().0.iter_mut();
            for (stride, count) in [(2, 1), (1, 2)] {
                for (within, [w, quotient]) in pairs.by_ref().take(count).enumerate() {
                    for (lane, (w, quotient)) in w.iter_mut().zip(quotient).enumerate() {
                        let node = n / (2 * stride) + count * (LANES * group + lane) + within;
                        let root = roots.get(node).ok_or_else(super::outside)?;
                        Factor([*w, *quotient]) = kind.factor(root, q);
                    }
                }
            }
            Ok(vectors)
        };
        let upper = roots.iter().take(n / LANES);
        Ok(Self {
            kind,
            q,
            upper: upper.map(|root| kind.factor(root, q)).collect(),
            last: (0..n / GROUP).map(group).collect::<Result<_, NttError>>()?,
        })
    }

    /// What the transform is made with.
    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// Fails unless these passes can work on `n` values with these roots.
    fn check(&self, n: usize, q: u64) -> Result<(), NttError> {
        let found = if !detected() {
            "passes that this processor does not have"
        } else if n < GROUP || !n.is_power_of_two() || q >= self.kind.limit() {
            "a transform of another size"
        } else if self.q != q || self.upper.len() != n / LANES || self.last.len() != n / GROUP {
            "a transform with the table of another ring degree"
        } else {
            return Ok(());
        };
        Err(NttError::Internal { found })
    }
}

/// Vectors of a part of a block, whose length is a multiple of four.
fn vectors(part: &mut [u64]) -> &mut [[u64; LANES]] {
    part.as_chunks_mut().0
}

/// The roots of a group: one for stride 2, two for stride 1.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn last_roots(Last(vectors): &Last) -> [Root; 3] {
    let [a, b, c, d, e, f] = vectors;
    [
        root(load(a), load(b)),
        root(load(c), load(d)),
        root(load(e), load(f)),
    ]
}

/// Applies `layers` to the 16 values of a group, transposed: one vector for each position in a block of four.
macro_rules! on_group {
    ($group:expr, $values:ident => $layers:expr) => {
        let rows = $group.as_chunks_mut::<LANES>().0.first_chunk_mut::<LANES>();
        let [a, b, c, d] = rows.ok_or_else(super::outside)?;
        let $values = transposed([load(a), load(b), load(c), load(d)]);
        let [e, f, g, h] = transposed($layers);
        store(a, e);
        store(b, f);
        store(c, g);
        store(d, h);
    };
}

/// Strides 2 and 1.
#[target_feature(enable = "avx2,fma")]
fn forward_last<const KIND: u8>(
    a: &mut [u64],
    last: &[Last],
    modulus: &Modulus,
) -> Result<(), NttError> {
    for (group, last) in a.chunks_exact_mut(GROUP).zip(last) {
        let roots = last_roots(last);
        on_group!(group, values => {
            let [a, b, c, d] = forward_4::<KIND>(values, roots, modulus);
            [
                canonical::<KIND>(a, modulus),
                canonical::<KIND>(b, modulus),
                canonical::<KIND>(c, modulus),
                canonical::<KIND>(d, modulus),
            ]
        });
    }
    Ok(())
}

/// Strides 1 and 2.
#[target_feature(enable = "avx2,fma")]
fn inverse_last_two<const KIND: u8>(
    a: &mut [u64],
    last: &[Last],
    modulus: &Modulus,
) -> Result<(), NttError> {
    for (group, last) in a.chunks_exact_mut(GROUP).zip(last) {
        let roots = last_roots(last);
        on_group!(group, values => {
            let [a, b, c, d] = values;
            let values = [
                entered::<KIND>(a),
                entered::<KIND>(b),
                entered::<KIND>(c),
                entered::<KIND>(d),
            ];
            inverse_4::<KIND>(values, roots, modulus)
        });
    }
    Ok(())
}

/// One layer on the block of a node.
#[target_feature(enable = "avx2,fma")]
fn forward_layer<const KIND: u8>(block: &mut [u64], factor: &Factor, modulus: &Modulus) {
    let factor = same(factor);
    let (low, high) = block.split_at_mut(block.len() / 2);
    for (x, y) in vectors(low).iter_mut().zip(vectors(high)) {
        let [sum, difference] = forward_folded::<KIND>(load(x), load(y), factor, modulus);
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
#[target_feature(enable = "avx2,fma")]
fn forward_pass<const KIND: u8>(
    a: &mut [u64],
    size: usize,
    node: usize,
    roots: &[Factor],
    modulus: &Modulus,
) {
    let firsts = roots.iter().skip(node);
    let seconds = roots.as_chunks::<2>().0.iter().skip(node);
    for ((block, w1), [w2, w3]) in a.chunks_exact_mut(size).zip(firsts).zip(seconds) {
        let roots = [same(w1), same(w2), same(w3)];
        on_quarters!(block, values => forward_4::<KIND>(values, roots, modulus));
    }
}

/// Two layers on blocks of `size` values, not the last ones.
#[target_feature(enable = "avx2,fma")]
fn inverse_pass<const KIND: u8>(
    a: &mut [u64],
    size: usize,
    node: usize,
    roots: &[Factor],
    modulus: &Modulus,
) {
    let firsts = roots.iter().skip(node);
    let seconds = roots.as_chunks::<2>().0.iter().skip(node);
    for ((block, w1), [w2, w3]) in a.chunks_exact_mut(size).zip(firsts).zip(seconds) {
        let roots = [same(w1), same(w2), same(w3)];
        on_quarters!(block, values => inverse_4::<KIND>(values, roots, modulus));
    }
}

/// The transform of the block of a node, where the children of node r are 2r and 2r + 1, and the block of node 1 is the whole.
#[target_feature(enable = "avx2,fma")]
fn forward_block<const KIND: u8>(
    a: &mut [u64],
    node: usize,
    roots: &[Factor],
    last: &[Last],
    modulus: &Modulus,
) -> Result<(), NttError> {
    let (mut size, mut node) = (a.len(), node);
    if size > BLOCK {
        forward_pass::<KIND>(a, size, node, roots, modulus);
        let quarters = a
            .chunks_exact_mut(size / 4)
            .zip(last.chunks_exact(last.len() / 4));
        for (i, (quarter, last)) in quarters.enumerate() {
            forward_block::<KIND>(quarter, 4 * node + i, roots, last, modulus)?;
        }
        return Ok(());
    }
    if (size / LANES).ilog2() % 2 == 1 {
        forward_layer::<KIND>(a, roots.get(node).ok_or_else(super::outside)?, modulus);
        (size, node) = (size / 2, 2 * node);
    }
    while size > LANES {
        forward_pass::<KIND>(a, size, node, roots, modulus);
        (size, node) = (size / 4, 4 * node);
    }
    forward_last::<KIND>(a, last, modulus)
}

/// The layers of the inverse transform within the block of a node: all of them for a block of at most [`BLOCK`] values but for a last one
/// without a second, and none on blocks of more than `most` values.
#[target_feature(enable = "avx2,fma")]
fn inverse_block<const KIND: u8>(
    a: &mut [u64],
    node: usize,
    roots: &[Factor],
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
            inverse_block::<KIND>(quarter, 4 * node + i, roots, last, modulus, most)?;
        }
        while next <= size / 4 {
            next *= 4;
        }
    } else {
        inverse_last_two::<KIND>(a, last, modulus)?;
    }
    while next <= size.min(most) {
        inverse_pass::<KIND>(a, next, node * (size / next), roots, modulus);
        next *= 4;
    }
    Ok(())
}

/// The last layer of the inverse transform, or its last two.
#[target_feature(enable = "avx2,fma")]
fn inverse_end<const KIND: u8>(
    a: &mut [u64],
    roots: &[Factor],
    factors: [Factor; 2],
    modulus: &Modulus,
) -> Result<(), NttError> {
    let [scale, last] = factors;
    let factors = [same(&scale), same(&last)];
    if a.len().ilog2() % 2 == 1 {
        let (low, high) = a.split_at_mut(a.len() / 2);
        for (x, y) in vectors(low).iter_mut().zip(vectors(high)) {
            let [sum, difference] = inverse_last::<KIND>(load(x), load(y), factors, modulus);
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
        let [a, b] = inverse_first::<KIND>(a, b, w2, modulus);
        let [c, d] = inverse_first::<KIND>(c, d, w3, modulus);
        let [a, c] = inverse_last::<KIND>(a, c, factors, modulus);
        let [b, d] = inverse_last::<KIND>(b, d, factors, modulus);
        [a, b, c, d]
    });
    Ok(())
}

/// [`forward`] with one kind of arithmetic.
#[target_feature(enable = "avx2,fma")]
fn forward_with<const KIND: u8>(a: &mut [u64], roots: &Roots, q: u64) -> Result<(), NttError> {
    if KIND != WORDS {
        for values in vectors(a) {
            let doubles = entered::<KIND>(load(values));
            store(values, doubles);
        }
    }
    forward_block::<KIND>(a, 1, &roots.upper, &roots.last, &modulus(q))
}

/// [`inverse`] with one kind of arithmetic.
#[target_feature(enable = "avx2,fma")]
fn inverse_with<const KIND: u8>(
    a: &mut [u64],
    roots: &Roots,
    factors: [Factor; 2],
    q: u64,
) -> Result<(), NttError> {
    let (most, modulus) = (a.len() / 2, modulus(q));
    inverse_block::<KIND>(a, 1, &roots.upper, &roots.last, &modulus, most)?;
    inverse_end::<KIND>(a, &roots.upper, factors, &modulus)
}

/// As `butterflies::forward`, for at least [`GROUP`] values and a modulus below the limit of the arithmetic.
pub(super) fn forward(a: &mut [u64], roots: &Roots, q: u64) -> Result<(), NttError> {
    roots.check(a.len(), q)?;
    // SAFETY: the check has found the features that the functions need.
    unsafe {
        match roots.kind {
            Kind::Doubles => forward_with::<DOUBLES>(a, roots, q),
            Kind::WideDoubles => forward_with::<WIDE_DOUBLES>(a, roots, q),
            Kind::Words => forward_with::<WORDS>(a, roots, q),
        }
    }
}

/// As `butterflies::inverse`, for at least [`GROUP`] values and a modulus below the limit of the arithmetic. `factors` are `1/n` and `roots[1] / n`.
pub(super) fn inverse(
    a: &mut [u64],
    roots: &Roots,
    factors: [Shoup; 2],
    q: u64,
) -> Result<(), NttError> {
    roots.check(a.len(), q)?;
    let factors = factors.map(|factor| roots.kind.factor(&factor, q));
    // SAFETY: the check has found the features that the functions need.
    unsafe {
        match roots.kind {
            Kind::Doubles => inverse_with::<DOUBLES>(a, roots, factors, q),
            Kind::WideDoubles => inverse_with::<WIDE_DOUBLES>(a, roots, factors, q),
            Kind::Words => inverse_with::<WORDS>(a, roots, factors, q),
        }
    }
}
