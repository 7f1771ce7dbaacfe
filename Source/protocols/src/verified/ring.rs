//! The check of products modulo 2^k, over the Galois ring GR(2^k, 47).
//!
//! Why a Galois ring and not Z_2^(k + s): products of the program keep k bits on the wire, as no share has bits above 2^k, and a step loses no precision. Modulo 2^(k + s) a
//! polynomial of degree 2 with an error of valuation e has 2^-(j/2) of all points where the valuation is e + j, so that each step halves what s hides.
//! In a Galois ring an error 2^e·δ with δ ≠ 0 modulo 2 stays one: all bounds are those of the field GF(2^47) (Galois rings in such checks: Boyle, Gilboa, Ishai, Nof, CCS 2019; challenges whose
//! differences are units: Abspoel, Cramer, Damgård, Escudero, Yuan, TCC 2019).
//!
//! An element has 47 words, so vectors must be short before they are lifted. The first step is in the ring itself: it cuts groups and positions into 2^v pieces of words, whose values at the points of
//! {0, 1, ∞}^v are words as well. Only their factors are elements: that of group (u, g) is A(u)·β_g, with A(u) = Π τ_j^(u_j) for tossed τ and β. The values Q of
//! Σ β_g·x·y at the points are claimed but for that at 0, which follows from z = Σ A(u)·Q(u). At a tossed point of challenges the vectors become
//! elements, β becomes a factor of x, and the other steps follow.
//!
//! Error: the factors miss a wrong product with probability (v + 1)/2^47 (a polynomial of degree v in τ, linear in β), the step with 2v/2^47.

use std::collections::BTreeMap;

use keyquorum_math::{Domain, Element, Prg, ROW};
use zeroize::{Zeroize, Zeroizing};

use super::check::{Claim, Task, reduce, repetitions, steps, values};
use super::coins::toss;
use super::extension::{DEGREE, Extension, Galois};
use super::pending::Joined;
use super::{Product, Verifiable, Verified, inner};
use crate::error::{EngineError, Result};
use crate::task::{and_then, within};
use crate::value::{Share, same, zip};

/// The first step gets a further variable while more terms than this would be lifted, up to [`MOST_VARIABLES`]. A lifted term costs some hundred times what a further variable adds for it.
const LIFTED: usize = 1 << 10;

/// Most variables of the first step: 728 claims.
const MOST_VARIABLES: usize = 6;

/// Positions of the pieces that are taken together.
const BLOCK: usize = 32;

/// Groups whose results are taken together.
const BLOCK_OF_GROUPS: usize = 256;

/// Groups of at most this length are verified together; of longer ones, those of one length.
const SHORT: usize = 16;

/// Groups of one length, and how the first step cuts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Region {
    groups: usize,
    length: usize,
    /// Groups of a piece.
    count: usize,
    /// Positions of a group in a piece.
    width: usize,
}

impl Region {
    /// Terms of a piece.
    fn terms(self) -> usize {
        self.count * self.width
    }
}

/// How the first step cuts groups and their positions: into 2^groups and 2^positions pieces. Each piece has its share of every region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    groups: u32,
    positions: u32,
    regions: Vec<Region>,
}

impl Cut {
    /// For regions of so many groups of this length. If there are several, no group is longer than [`SHORT`].
    pub fn new(regions: &[(usize, usize)]) -> Self {
        let region = |&(groups, length): &(usize, usize)| Region {
            groups,
            length,
            count: groups,
            width: length,
        };
        let mut cut = Self {
            groups: 0,
            positions: 0,
            regions: regions.iter().map(region).collect(),
        };
        while cut.terms() > LIFTED && cut.variables() < MOST_VARIABLES {
            match cut.regions.as_mut_slice() {
                [only] if only.count <= 1 => {
                    cut.positions += 1;
                    only.width = only.width.div_ceil(2);
                }
                regions => {
                    cut.groups += 1;
                    for region in regions {
                        region.count = region.count.div_ceil(2);
                    }
                }
            }
        }
        cut
    }

    pub fn variables(&self) -> usize {
        (self.groups + self.positions) as usize
    }

    /// Terms of a piece.
    pub fn terms(&self) -> usize {
        self.regions.iter().map(|region| region.terms()).sum()
    }

    /// The group, among those of a piece, of each of its terms.
    fn owners(&self) -> Vec<usize> {
        let (mut owners, mut first) = (Vec::with_capacity(self.terms()), 0);
        for region in &self.regions {
            let groups = first..first + region.count;
            owners.extend(groups.flat_map(|group| std::iter::repeat_n(group, region.width)));
            first += region.count;
        }
        owners
    }

    /// The pieces one after another, of the groups of all regions; zeros where there are none.
    fn pieces<E: Element>(&self, vector: &[E]) -> Result<Vec<E>> {
        let terms = self
            .regions
            .iter()
            .map(|region| region.groups * region.length);
        same(vector.len(), terms.sum())?;
        let zeros = |n: usize| std::iter::repeat_n(E::default(), n);
        let mut all = Vec::with_capacity(self.terms() << self.variables());
        for set in 0..1 << self.groups {
            for part in 0..1 << self.positions {
                let mut rest = vector;
                for region in &self.regions {
                    let (vector, behind) = rest.split_at(region.groups * region.length);
                    rest = behind;
                    for group in set * region.count..(set + 1) * region.count {
                        let start = group * region.length;
                        let from = (start + part * region.width).min(vector.len());
                        let end = (start + region.length).min(vector.len());
                        let to = (from + region.width).min(end).max(from);
                        let elements = vector.get(from..to).unwrap_or_default();
                        all.extend_from_slice(elements);
                        all.extend(zeros(region.width - elements.len()));
                    }
                }
            }
        }
        Ok(all)
    }
}

/// Rounds of a check of groups of this length.
#[cfg(any(test, feature = "testing"))]
pub fn rounds(groups: usize, length: usize) -> u64 {
    let cut = Cut::new(&[(groups, length)]);
    let first = if cut.variables() > 0 { 2 } else { 0 };
    5 + first + 2 * steps(DEGREE, cut.terms()).len() as u64
}

/// The tossed factors of groups.
struct Factors<E> {
    cut: Cut,
    /// A(u) for the pieces u.
    pieces: Vec<Vec<E>>,
    /// β_g for the groups g of a piece, of all regions.
    groups: Vec<Vec<E>>,
    /// The group of each term of a piece.
    owners: Vec<usize>,
    /// −β_g, as rows.
    minus: Vec<E>,
}

impl<E: Element> Factors<E> {
    fn new<R: Domain<E = E>>(ring: &Galois<R>, cut: Cut, prg: &mut Prg) -> Result<Self> {
        let mut pieces = vec![ring.one()];
        for variable in 0..cut.variables() {
            // Positions of one group have the same factor.
            let by = match variable < cut.groups as usize {
                true => ring.challenge(prg),
                false => ring.one(),
            };
            let mut next = Vec::with_capacity(2 * pieces.len());
            for piece in pieces {
                let product = ring.dot(&piece, &by)?;
                next.extend([piece, product]);
            }
            pieces = next;
        }
        let count = cut.regions.iter().map(|region| region.count).sum();
        let groups: Vec<_> = (0..count).map(|_| ring.challenge(prg)).collect();
        let mut minus = ring.rows(&groups);
        ring.base().neg_assign(&mut minus);
        Ok(Self {
            owners: cut.owners(),
            cut,
            pieces,
            groups,
            minus,
        })
    }

    /// The sum of all results times the factors of their groups.
    fn weighed<R: Domain<E = E>>(&self, ring: &Galois<R>, z: &[E]) -> Result<Vec<E>> {
        let base = ring.base();
        let results = self.cut.regions.iter().map(|region| region.groups);
        same(z.len(), results.sum())?;
        let mut sets = vec![base.zero(); ROW << self.cut.groups];
        let (mut rest, mut first) = (z, 0);
        for region in &self.cut.regions {
            let (z, behind) = rest.split_at(region.groups);
            rest = behind;
            if region.count << self.cut.groups < region.groups {
                return Err(EngineError::uneven());
            }
            for from in (0..region.count).step_by(BLOCK_OF_GROUPS) {
                let chunks = z.chunks(region.count.max(1));
                for (set, results) in sets.chunks_exact_mut(ROW).zip(chunks) {
                    let to = results.len().min(from + BLOCK_OF_GROUPS);
                    if let Some(results) = results.get(from..to) {
                        ring.combine_challenges(set, results, &self.minus, first + from)?;
                    }
                }
            }
            first += region.count;
        }
        let mut sum = vec![base.zero(); DEGREE];
        for (set, results) in sets.chunks_exact(ROW).enumerate() {
            let factor = self.pieces.get(set << self.cut.positions);
            let both = factor.zip(results.get(..DEGREE));
            let (factor, results) = both.ok_or_else(EngineError::uneven)?;
            base.add_assign(&mut sum, &ring.dot(results, factor)?);
        }
        Ok(sum)
    }
}

/// Checks of these products modulo 2^k, to be run side by side: one of all short groups, and one for each other length. Wrong products pass with probability below
/// 2^-security.
pub(super) fn checks<P: Verifiable, A: Domain, R: Domain>(
    ring: &R,
    security: u32,
    products: Vec<Product<R::E>>,
) -> Result<Vec<Task<P, A, ()>>> {
    let mut lengths = BTreeMap::<usize, Vec<Product<R::E>>>::new();
    for product in products {
        // All short groups count as groups of the longest short length.
        let kind = product.length.max(SHORT);
        lengths.entry(kind).or_default().push(product);
    }
    let check = |products| verify(ring.clone(), security, products);
    lengths.into_values().map(check).collect()
}

/// The check of products whose groups are short, or of one length.
fn verify<P: Verifiable, A: Domain, R: Domain>(
    ring: R,
    security: u32,
    mut products: Vec<Product<R::E>>,
) -> Result<Task<P, A, ()>> {
    products.sort_by_key(|product| product.length);
    let mut regions: Vec<(usize, usize)> = Vec::new();
    for product in &products {
        match regions.last_mut() {
            Some((groups, length)) if *length == product.length => *groups += product.z.len(),
            _ => regions.push((product.z.len(), product.length)),
        }
    }
    if regions.len() > 1 && regions.iter().any(|(_, length)| *length > SHORT) {
        return Err(EngineError::internal("long groups of several lengths"));
    }
    let joined = Joined::new(products)?;
    let cut = Cut::new(&regions);
    let steps = steps(DEGREE, cut.terms());
    let extension = Galois::new(ring);
    // Each variable of the first step counts once more for the factors.
    let variables = 2 * cut.variables() + steps.iter().sum::<usize>();
    if repetitions(security, extension.challenge_bits(), variables)? != 1 {
        return Err(EngineError::internal("a Galois ring that is too small"));
    }
    let x = joined.x.try_map(|part| cut.pieces(part))?;
    let mut y = joined.y.try_map(|part| cut.pieces(part))?;
    let z = joined.z.duplicate();
    drop(joined);
    P::to_operand(extension.base(), &mut y)?;
    let first = toss();
    Ok(and_then(first, move |p: &mut Verified<P, A>, mut prg| {
        let variables = cut.variables();
        let factors = Factors::new(&extension, cut, &mut prg)?;
        let z = z.try_map(|part| factors.weighed(&extension, part))?;
        if variables == 0 {
            let claim = lifted(&extension, &factors, &[], (&x, &y), z)?;
            return Ok(reduce(extension, vec![claim], steps.into_iter()));
        }
        let summands = polynomial(&extension, &factors, (&x, &y))?;
        let shared = within(p.inner.reshare(extension.base(), summands)?, inner);
        let next = move |_: &mut Verified<P, A>, claims: Share<R::E>| {
            let second = toss();
            Ok(and_then(second, move |_: &mut Verified<P, A>, mut prg| {
                let point: Vec<_> = (0..variables)
                    .map(|_| extension.challenge(&mut prg))
                    .collect();
                let z = evaluated(&extension, &factors, &point, (&claims, &z))?;
                let claim = lifted(&extension, &factors, &point, (&x, &y), z)?;
                Ok(reduce(extension, vec![claim], steps.into_iter()))
            }))
        };
        Ok(and_then(shared, next))
    }))
}

/// Our summands of Q at the points of {0, 1, ∞}^v but at 0.
fn polynomial<R: Domain>(
    ring: &Galois<R>,
    factors: &Factors<R::E>,
    (x, y): (&Share<R::E>, &Share<R::E>),
) -> Result<Vec<R::E>> {
    let base = ring.base();
    let (n, variables) = (factors.cut.terms(), factors.cut.variables());
    let mut sums = vec![base.zero(); ROW * 3usize.pow(variables as u32)];
    let mut rows: Vec<_> = x.parts.iter().map(|_| (Vec::new(), Vec::new())).collect();
    for from in (0..n).step_by(BLOCK) {
        let positions = (from, n.min(from + BLOCK));
        let width = positions.1 - from;
        for ((x, y), (of_x, of_y)) in zip(zip(&x.parts, &y.parts)?, &mut rows)? {
            values(base, x, n, positions, variables, of_x)?;
            values(base, y, n, positions, variables, of_y)?;
        }
        // All terms of a group have the same factor: they are summed first.
        let owners = factors.owners.get(from..positions.1);
        let owners = owners.ok_or_else(EngineError::uneven)?;
        let ends = owners.first().zip(owners.last());
        let (first, last) = ends.ok_or_else(EngineError::uneven)?;
        let mut product = Zeroizing::new(vec![base.zero(); width]);
        let mut of_groups = Zeroizing::new(vec![base.zero(); last - first + 1]);
        // The first is not claimed.
        for (point, sum) in sums.chunks_exact_mut(ROW).enumerate().skip(1) {
            product.fill(base.zero());
            for (x, y) in &rows {
                let range = width * point..width * (point + 1);
                let both = x.get(range.clone()).zip(y.get(range));
                let (x, y) = both.ok_or_else(EngineError::uneven)?;
                base.mul_acc(&mut product, x, y);
            }
            of_groups.fill(base.zero());
            for (term, owner) in product.iter().zip(owners) {
                let group = of_groups.get_mut(owner - first);
                let group = group.ok_or_else(EngineError::uneven)?;
                *group = base.add(*group, *term);
            }
            ring.combine_challenges(sum, &of_groups, &factors.minus, *first)?;
        }
    }
    for (of_x, of_y) in &mut rows {
        of_x.zeroize();
        of_y.zeroize();
    }
    let claimed = sums.chunks_exact(ROW).skip(1);
    Ok(claimed
        .flat_map(|sum| sum.iter().take(DEGREE).copied())
        .collect())
}

/// The share of Q at a point, from those at all points of {0, 1, ∞}^v but 0, and of the sum of A(u)·Q(u) over {0, 1}^v.
fn evaluated<R: Domain>(
    ring: &Galois<R>,
    factors: &Factors<R::E>,
    point: &[Vec<R::E>],
    (claims, sum): (&Share<R::E>, &Share<R::E>),
) -> Result<Share<R::E>> {
    let base = ring.base();
    // Weights, and which piece has the point, if it is in {0, 1}^v.
    let mut weights = vec![(ring.one(), Some(0))];
    for r in point {
        let (mut zero, mut infinity) = (ring.one(), ring.dot(r, r)?);
        base.sub_assign(&mut zero, r);
        base.sub_assign(&mut infinity, r);
        let mut next = Vec::with_capacity(3 * weights.len());
        for (weight, piece) in &weights {
            let piece = piece.map(|piece: usize| 2 * piece);
            next.push((ring.dot(weight, &zero)?, piece));
            next.push((ring.dot(weight, r)?, piece.map(|piece| piece + 1)));
            next.push((ring.dot(weight, &infinity)?, None));
        }
        weights = next;
    }
    let (first, _) = weights.remove(0);
    let mut all = Vec::with_capacity(DEGREE * weights.len());
    for (mut weight, piece) in weights {
        if let Some(piece) = piece {
            let factor = factors.pieces.get(piece).ok_or_else(EngineError::uneven)?;
            base.sub_assign(&mut weight, &ring.dot(&first, factor)?);
        }
        all.extend(weight);
    }
    let mut result = claims.try_map(|part| ring.dot(&all, part))?;
    let rest = sum.try_map(|part| ring.dot(&first, part))?;
    result.combine(&rest, |result, rest| base.add_assign(result, rest))?;
    Ok(result)
}

/// The vectors at a point, as elements, with β a factor of x.
fn lifted<R: Domain>(
    ring: &Galois<R>,
    factors: &Factors<R::E>,
    point: &[Vec<R::E>],
    (x, y): (&Share<R::E>, &Share<R::E>),
    z: Share<R::E>,
) -> Result<Claim<R::E>> {
    let base = ring.base();
    // The weights of the pieces: 1 − r or r for each variable.
    let mut weights = vec![ring.one()];
    for r in point {
        let mut zero = ring.one();
        base.sub_assign(&mut zero, r);
        let mut next = Vec::with_capacity(2 * weights.len());
        for weight in &weights {
            next.extend([ring.dot(weight, &zero)?, ring.dot(weight, r)?]);
        }
        weights = next;
    }
    let mut x = x.try_map(|part| at(ring, part, &weights))?;
    let y = y.try_map(|part| at(ring, part, &weights))?;
    same(x.len(), DEGREE * factors.owners.len())?;
    for part in &mut x.parts {
        let mut rest = part.as_mut_slice();
        for terms in factors.owners.chunk_by(|one, other| one == other) {
            let (group, behind) = rest.split_at_mut(DEGREE * terms.len());
            rest = behind;
            let factor = terms.first().and_then(|group| factors.groups.get(*group));
            ring.scale(group, factor.ok_or_else(EngineError::uneven)?);
        }
    }
    Ok(Claim { x, y, z })
}

/// The sum of the pieces of a vector, each times an element.
fn at<R: Domain>(ring: &Galois<R>, vector: &[R::E], weights: &[Vec<R::E>]) -> Result<Vec<R::E>> {
    let (base, count) = (ring.base(), weights.len().max(1));
    let n = vector.len() / count;
    let weights = ring.rows(weights);
    let mut all = Vec::with_capacity(n * DEGREE);
    let mut words = vec![base.zero(); count * BLOCK];
    for from in (0..n).step_by(BLOCK) {
        let to = n.min(from + BLOCK);
        for (piece, place) in vector.chunks_exact(n).zip(0..count) {
            let piece = piece.get(from..to).ok_or_else(EngineError::uneven)?;
            let places = words.iter_mut().skip(place).step_by(count);
            places.zip(piece).for_each(|(to, word)| *to = *word);
        }
        for words in words.chunks_exact(count).take(to - from) {
            let mut row = [base.zero(); ROW];
            ring.combine(&mut row, words, &weights, 0)?;
            all.extend(row.iter().take(DEGREE));
        }
    }
    words.zeroize();
    Ok(all)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use keyquorum_math::{Z2k64, Z2k128};

    use super::*;

    fn share<E: Element>(values: Vec<E>) -> Share<E> {
        Share {
            parts: vec![values],
        }
    }

    /// The first step, in the clear: z is the claim, lifted vectors keep it, and a wrong result or claim does not.
    fn first_step<R: Domain>(base: R, cut: Cut) {
        let ring = Galois::new(base.clone());
        let (groups, length) = (cut.regions[0].groups, cut.regions[0].length);
        let mut prg = Prg::new([groups as u8; 16], length as u64);
        let mut draw = |n: usize| {
            let mut values = vec![base.zero(); n];
            base.random(&mut prg, &mut values);
            values
        };
        let (mut x, mut y, mut z) = (Vec::new(), Vec::new(), Vec::new());
        for region in &cut.regions {
            let n = region.groups * region.length;
            let (of_x, of_y) = (draw(n), draw(n));
            let pairs = of_x.chunks(region.length).zip(of_y.chunks(region.length));
            z.extend(pairs.map(|(x, y)| base.dot(x, y)));
            x.extend(of_x);
            y.extend(of_y);
        }
        let mut prg = Prg::new([1; 16], 1);
        let factors = Factors::new(&ring, cut.clone(), &mut prg).unwrap();
        let pieces = |vector: &[R::E]| share(cut.pieces(vector).unwrap());
        let (x, y) = (pieces(&x), pieces(&y));
        let point: Vec<_> = (0..cut.variables())
            .map(|_| ring.challenge(&mut prg))
            .collect();
        let claims = share(match cut.variables() {
            0 => Vec::new(),
            _ => polynomial(&ring, &factors, (&x, &y)).unwrap(),
        });
        assert_eq!(
            claims.len(),
            DEGREE * (3usize.pow(cut.variables() as u32) - 1)
        );
        let holds = |claims: &Share<R::E>, z: &[R::E]| {
            let z = share(factors.weighed(&ring, z).unwrap());
            let next = match cut.variables() {
                0 => z,
                _ => evaluated(&ring, &factors, &point, (claims, &z)).unwrap(),
            };
            let claim = lifted(&ring, &factors, &point, (&x, &y), next).unwrap();
            ring.dot(&claim.x.parts[0], &claim.y.parts[0]).unwrap() == claim.z.parts[0]
        };
        assert!(holds(&claims, &z), "{cut:?}");
        assert!(factors.weighed(&ring, &z[1..]).is_err() && cut.pieces(&z[1..]).is_err());
        for i in [0, z.len() / 2, z.len() - 1] {
            // In any bit, the highest one as well.
            let top = base.from_u128(1 << (base.bits() - 1));
            for error in [base.one(), top] {
                let mut wrong = z.clone();
                wrong[i] = base.add(wrong[i], error);
                assert!(!holds(&claims, &wrong), "{cut:?} {i}");
            }
        }
        for i in (0..claims.len()).step_by(97) {
            let mut wrong = claims.duplicate();
            wrong.parts[0][i] = base.add(wrong.parts[0][i], base.one());
            assert!(!holds(&wrong, &z), "{cut:?} {i}");
        }
    }

    #[test]
    fn the_first_step_keeps_claims() {
        // Cut into more pieces than so few terms need.
        let cut = |regions: &[(usize, usize)], groups: u32, positions: u32| {
            let mut cut = Cut::new(regions);
            assert_eq!(cut.variables(), 0);
            (cut.groups, cut.positions) = (groups, positions);
            for region in &mut cut.regions {
                region.count = region.groups.div_ceil(1 << groups);
                region.width = region.length.div_ceil(1 << positions);
            }
            cut
        };
        let ring = Z2k64::new(64).unwrap();
        first_step(ring, Cut::new(&[(5, 1)]));
        first_step(ring, Cut::new(&[(5, 3)]));
        first_step(ring, Cut::new(&[(5, 1), (4, 2), (1, 16)]));
        first_step(ring, cut(&[(1000, 1)], 2, 0));
        first_step(ring, cut(&[(601, 1)], 3, 0));
        first_step(ring, cut(&[(30, 7)], 1, 0));
        first_step(ring, cut(&[(3, 301)], 1, 2));
        first_step(ring, cut(&[(1, 700)], 0, 3));
        first_step(ring, cut(&[(35, 1), (70, 2), (1, 3)], 2, 0));
        first_step(ring, Cut::new(&[(700, 1), (301, 2)]));
        first_step(Z2k64::new(41).unwrap(), cut(&[(601, 1)], 2, 0));
        first_step(Z2k128::new(72).unwrap(), cut(&[(70, 2)], 2, 1));
        first_step(Z2k128::new(72).unwrap(), cut(&[(7, 1), (70, 2)], 1, 0));
    }

    #[test]
    fn pieces_are_short_enough() {
        for (groups, length) in [
            (1, 1),
            (1 << 20, 1),
            (1 << 20 | 1, 1),
            (3, 100_000),
            (1, 1 << 19),
            (5000, 200),
        ] {
            let cut = Cut::new(&[(groups, length)]);
            let region = cut.regions[0];
            assert!(cut.terms() << cut.variables() >= groups * length);
            assert!(region.count << cut.groups >= groups);
            assert!(region.width << cut.positions >= length);
            assert!(
                cut.terms() <= 2 * LIFTED || cut.variables() == MOST_VARIABLES,
                "{cut:?}"
            );
            assert!(
                cut.terms() <= 2 * LIFTED + 1 || groups * length > LIFTED << MOST_VARIABLES,
                "{cut:?}"
            );
        }
    }
}
