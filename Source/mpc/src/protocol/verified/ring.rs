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

/// How the first step cuts groups and their positions: into 2^groups and 2^positions pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    groups: u32,
    positions: u32,
    /// Groups of a piece.
    count: usize,
    /// Positions of a group in a piece.
    length: usize,
}

impl Cut {
    /// For so many groups of this length.
    pub fn new(groups: usize, length: usize) -> Self {
        let mut cut = Self {
            groups: 0,
            positions: 0,
            count: groups,
            length,
        };
        while cut.terms() > LIFTED && cut.variables() < MOST_VARIABLES {
            if cut.count > 1 {
                cut.groups += 1;
                cut.count = cut.count.div_ceil(2);
            } else {
                cut.positions += 1;
                cut.length = cut.length.div_ceil(2);
            }
        }
        cut
    }

    pub fn variables(self) -> usize {
        (self.groups + self.positions) as usize
    }

    /// Terms of a piece.
    pub fn terms(self) -> usize {
        self.count * self.length
    }

    /// The pieces one after another, of groups of `length` elements; zeros where there are none.
    fn pieces<E: Element>(self, vector: &[E], length: usize) -> Vec<E> {
        let zeros = |n: usize| std::iter::repeat_n(E::default(), n);
        let mut all = Vec::with_capacity(self.terms() << self.variables());
        for set in 0..1 << self.groups {
            for part in 0..1 << self.positions {
                for group in set * self.count..(set + 1) * self.count {
                    let from = (group * length + part * self.length).min(vector.len());
                    let end = ((group + 1) * length).min(vector.len());
                    let to = (from + self.length).min(end).max(from);
                    let elements = vector.get(from..to).unwrap_or_default();
                    all.extend_from_slice(elements);
                    all.extend(zeros(self.length - elements.len()));
                }
            }
        }
        all
    }
}

/// Rounds of a check of groups of this length.
#[cfg(test)]
pub(crate) fn rounds(groups: usize, length: usize) -> u64 {
    let cut = Cut::new(groups, length);
    let first = if cut.variables() > 0 { 2 } else { 0 };
    5 + first + 2 * steps(DEGREE, cut.terms()).len() as u64
}

/// The tossed factors of groups.
struct Factors<E> {
    cut: Cut,
    /// A(u) for the pieces u.
    pieces: Vec<Vec<E>>,
    /// β_g for the groups g of a piece.
    groups: Vec<Vec<E>>,
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
        let groups: Vec<_> = (0..cut.count).map(|_| ring.challenge(prg)).collect();
        let mut minus = ring.rows(&groups);
        ring.base().neg_assign(&mut minus);
        Ok(Self {
            cut,
            pieces,
            groups,
            minus,
        })
    }

    /// The negated factors of the terms of a piece from `from` to `to`, as rows.
    fn of_terms(&self, from: usize, to: usize) -> Result<Vec<E>> {
        let mut rows = Vec::with_capacity(ROW * (to - from));
        for term in from..to {
            let group = term / self.cut.length.max(1);
            let row = self.minus.get(ROW * group..ROW * (group + 1));
            rows.extend_from_slice(row.ok_or_else(EngineError::uneven)?);
        }
        Ok(rows)
    }

    /// The sum of all results times the factors of their groups.
    fn weighed<R: Domain<E = E>>(&self, ring: &Galois<R>, z: &[E]) -> Result<Vec<E>> {
        let (base, count) = (ring.base(), self.cut.count.max(1));
        let mut sets = vec![base.zero(); ROW * z.len().div_ceil(count)];
        for from in (0..count).step_by(BLOCK_OF_GROUPS) {
            for (set, results) in zip(sets.chunks_exact_mut(ROW), z.chunks(count))? {
                let to = results.len().min(from + BLOCK_OF_GROUPS);
                if let Some(results) = results.get(from..to) {
                    ring.combine_challenges(set, results, &self.minus, from)?;
                }
            }
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

/// The check of these products modulo 2^k, which are in groups of one length; wrong ones pass with probability below 2^-security.
pub(super) fn verify<P: Verifiable, A: Domain, R: Domain>(
    ring: R,
    security: u32,
    products: Vec<Product<R::E>>,
) -> Result<Task<P, A, ()>> {
    let length = products.first().map_or(1, |product| product.length);
    if products.iter().any(|product| product.length != length) {
        return Err(EngineError::internal("groups of several lengths"));
    }
    let joined = Joined::new(products)?;
    let cut = Cut::new(joined.z.len(), length);
    let steps = steps(DEGREE, cut.terms());
    let extension = Galois::new(ring);
    // Each variable of the first step counts once more for the factors.
    let variables = 2 * cut.variables() + steps.iter().sum::<usize>();
    if repetitions(security, extension.challenge_bits(), variables)? != 1 {
        return Err(EngineError::internal("a Galois ring that is too small"));
    }
    let x = joined.x.map(|part| cut.pieces(part, length));
    let mut y = joined.y.map(|part| cut.pieces(part, length));
    let z = joined.z.duplicate();
    drop(joined);
    P::to_operand(extension.base(), &mut y)?;
    let first = toss();
    Ok(and_then(first, move |p: &mut Verified<P, A>, mut prg| {
        let factors = Factors::new(&extension, cut, &mut prg)?;
        let z = z.try_map(|part| factors.weighed(&extension, part))?;
        if cut.variables() == 0 {
            let claim = lifted(&extension, &factors, &[], (&x, &y), z)?;
            return Ok(reduce(extension, vec![claim], steps.into_iter()));
        }
        let summands = polynomial(&extension, &factors, (&x, &y))?;
        let shared = within(p.inner.reshare(extension.base(), summands)?, inner);
        let next = move |_: &mut Verified<P, A>, claims: Share<R::E>| {
            let second = toss();
            Ok(and_then(second, move |_: &mut Verified<P, A>, mut prg| {
                let point: Vec<_> = (0..cut.variables())
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
    let (base, cut) = (ring.base(), factors.cut);
    let (n, variables) = (cut.terms(), cut.variables());
    let mut sums = vec![base.zero(); ROW * 3usize.pow(variables as u32)];
    let mut rows: Vec<_> = x.parts.iter().map(|_| (Vec::new(), Vec::new())).collect();
    for from in (0..n).step_by(BLOCK) {
        let positions = (from, n.min(from + BLOCK));
        let width = positions.1 - from;
        for ((x, y), (of_x, of_y)) in zip(zip(&x.parts, &y.parts)?, &mut rows)? {
            values(base, x, n, positions, variables, of_x)?;
            values(base, y, n, positions, variables, of_y)?;
        }
        let minus = factors.of_terms(from, positions.1)?;
        let mut product = Zeroizing::new(vec![base.zero(); width]);
        // The first is not claimed.
        for (point, sum) in sums.chunks_exact_mut(ROW).enumerate().skip(1) {
            product.fill(base.zero());
            for (x, y) in &rows {
                let range = width * point..width * (point + 1);
                let both = x.get(range.clone()).zip(y.get(range));
                let (x, y) = both.ok_or_else(EngineError::uneven)?;
                base.mul_acc(&mut product, x, y);
            }
            ring.combine_challenges(sum, &product, &minus, 0)?;
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
    let (base, cut) = (ring.base(), factors.cut);
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
    same(x.len(), DEGREE * cut.terms())?;
    for part in &mut x.parts {
        let elements = part.chunks_mut(DEGREE * cut.length.max(1));
        for (group, factor) in zip(elements, &factors.groups)? {
            ring.scale(group, factor);
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
    fn first_step<R: Domain>(base: R, groups: usize, length: usize, cut: Cut) {
        let ring = Galois::new(base.clone());
        let mut prg = Prg::new([groups as u8; 16], length as u64);
        let mut draw = |n: usize| {
            let mut values = vec![base.zero(); n];
            base.random(&mut prg, &mut values);
            values
        };
        let (x, y) = (draw(groups * length), draw(groups * length));
        let pairs = x.chunks(length).zip(y.chunks(length));
        let z: Vec<_> = pairs.map(|(x, y)| base.dot(x, y)).collect();
        let mut prg = Prg::new([1; 16], 1);
        let factors = Factors::new(&ring, cut, &mut prg).unwrap();
        let pieces = |vector: &[R::E]| share(cut.pieces(vector, length));
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
        assert!(holds(&claims, &z), "{groups} {length} {cut:?}");
        for i in [0, z.len() / 2, z.len() - 1] {
            // In any bit, the highest one as well.
            let top = base.from_u128(1 << (base.bits() - 1));
            for error in [base.one(), top] {
                let mut wrong = z.clone();
                wrong[i] = base.add(wrong[i], error);
                assert!(!holds(&claims, &wrong), "{groups} {length} {cut:?} {i}");
            }
        }
        for i in (0..claims.len()).step_by(97) {
            let mut wrong = claims.duplicate();
            wrong.parts[0][i] = base.add(wrong.parts[0][i], base.one());
            assert!(!holds(&wrong, &z), "{groups} {length} {cut:?} {i}");
        }
    }

    #[test]
    fn the_first_step_keeps_claims() {
        let cut = |groups: u32, positions: u32, count: usize, length: usize| Cut {
            groups,
            positions,
            count,
            length,
        };
        let ring = Z2k64::new(64).unwrap();
        first_step(ring, 5, 1, Cut::new(5, 1));
        first_step(ring, 5, 3, Cut::new(5, 3));
        first_step(ring, 1000, 1, cut(2, 0, 250, 1));
        first_step(ring, 601, 1, cut(3, 0, 76, 1));
        first_step(ring, 30, 7, cut(1, 0, 15, 7));
        first_step(ring, 3, 301, cut(1, 2, 2, 76));
        first_step(ring, 1, 700, cut(0, 3, 1, 88));
        first_step(Z2k64::new(41).unwrap(), 601, 1, cut(2, 0, 151, 1));
        first_step(Z2k128::new(72).unwrap(), 70, 2, cut(2, 1, 18, 1));
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
            let cut = Cut::new(groups, length);
            assert!(cut.terms() << cut.variables() >= groups * length);
            assert!(cut.count << cut.groups >= groups && cut.length << cut.positions >= length);
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
