//! The check of products: many inner products become one, whose length shrinks step by step; the last is compared under masks.
//!
//! 1. Factors c_i are tossed. The claims z_i = ⟨x_i, y_i⟩ become one: z = ⟨x, y⟩ for z = Σ c_i·z_i and the concatenations x of the c_i·x_i and y of the y_i.
//! 2. A step with v variables cuts x and y into 2^v pieces of one length, indexed by bits, and reads them as polynomials of degree 1 in each variable. H is the inner product
//!    of both polynomials, of degree 2 in each variable: the sum of H over {0, 1}^v is z. The parties compute H at 3^v − 1 points of {0, 1, ∞}^v (the value at ∞ is the coefficient
//!    of degree 2) as inner products of the semi-honest protocol, take the value at (1, …, 1) from z, toss a point r, and go on with z = H(r) and the values of x and y at r.
//!    No step divides, so small fields and rings need no care.
//! 3. Of the few terms that are left the parties compute c = ⟨a, y⟩ for random a, toss r, open ρ = r·x + a, and open r·z + c − ⟨ρ, y⟩, which is zero.
//!
//! All of this is over an [`Extension`] of the domain of the products: a field itself, or a Galois ring over Z_2^k.
//! See the module above for the probability that a wrong product passes, and for what the messages reveal.

use keyquorum_math::{Domain, Element, Prg, wipe};
use zeroize::Zeroize;

use super::coins::toss;
use super::extension::{Extension, Itself};
use super::pending::Joined;
use super::{Product, Verifiable, Verified, inner};
use crate::error::{Check, EngineError, Result};
use crate::task::{SendFn, Step, and_then, at_start, then, within};
use crate::value::{Share, zip};

/// Wrong products pass with probability below 2^-40.
pub const SECURITY: u32 = 40;

/// Longer vectors are shortened by a factor of 4 a step, which costs the least time; shorter ones by 16, which costs the fewest rounds.
const LONG: usize = 1 << 16;

/// Positions of the pieces that are taken together: their combinations stay in the cache.
const BLOCK: usize = 256;

/// The same for elements of a Galois ring.
const BLOCK_OF_ELEMENTS: usize = 32;

/// Terms that are compared under masks, without further steps, if an element has `degree` words.
pub fn last_terms(degree: usize) -> usize {
    if degree == 1 { 256 } else { 16 }
}

/// The variables of each step for `n` terms.
pub fn steps(degree: usize, mut n: usize) -> Vec<usize> {
    let (mut steps, last) = (Vec::new(), last_terms(degree));
    while n > last {
        let missing = n.div_ceil(last).next_power_of_two().trailing_zeros() as usize;
        let short = degree == 1 && n <= LONG;
        let variables = missing.min(if short { 4 } else { 2 });
        n = n.div_ceil(1 << variables);
        steps.push(variables);
    }
    steps
}

/// Runs of the check, side by side, with so many variables in all its steps and at least 2^bits challenges: each run lets wrong products pass with
/// probability at most (2V + 2)/2^bits.
///
/// # Errors
/// [`EngineError::Internal`] for fields that are too small; descriptors refuse them.
pub fn repetitions(security: u32, bits: u32, variables: usize) -> Result<usize> {
    let loss = (2 * variables + 2).next_power_of_two().trailing_zeros();
    match bits.saturating_sub(loss) {
        0 => Err(EngineError::internal(
            "a check over a field that is too small",
        )),
        gain => Ok(security.div_ceil(gain) as usize),
    }
}

/// Rounds of a check over a field with these steps: four of the last step; before, two of each step and a toss.
#[cfg(any(test, feature = "testing"))]
pub fn rounds(steps: &[usize]) -> u64 {
    match steps.len() as u64 {
        0 => 4,
        steps => 5 + 2 * steps,
    }
}

/// Most tosses of a check: the first, one of each step, the last one.
pub(super) const MOST_TOSSES: usize = 16;

/// What each party sends for `n` terms over a field: elements of products, the lengths of the vectors that are opened, and tosses.
#[cfg(any(test, feature = "testing"))]
pub fn elements(bits: u32, n: usize, steps: &[usize]) -> Result<(usize, Vec<usize>, usize)> {
    let runs = repetitions(SECURITY, bits - 1, steps.iter().sum())?;
    let tosses = 1 + steps.len() + usize::from(!steps.is_empty());
    let (mut products, mut left) = (0, n);
    for variables in steps {
        products += runs * (3usize.pow(*variables as u32) - 1);
        left = left.div_ceil(1 << variables);
    }
    Ok((products + runs, vec![runs * left, runs], tosses))
}

/// z = ⟨x, y⟩, with y as [`Verifiable::to_operand`] makes it. Elements are those of an extension, word after word.
pub(super) struct Claim<E: Element> {
    pub x: Share<E>,
    pub y: Share<E>,
    pub z: Share<E>,
}

/// A task of the wrapper.
pub(super) type Task<P, A, V> = SendFn<Verified<P, A>, V>;

/// Words of an extension.
type Word<X> = <<X as Extension>::Base as Domain>::E;

/// The check of these products, which are over the field `domain`; wrong ones pass with probability below 2^-security.
pub(super) fn verify<P: Verifiable, A: Domain, F: Domain>(
    domain: F,
    security: u32,
    products: Vec<Product<F::E>>,
) -> Result<Task<P, A, ()>> {
    let mut joined = Joined::new(products)?;
    let field = Itself(domain);
    let steps = steps(1, joined.x.len());
    let runs = repetitions(security, field.challenge_bits(), steps.iter().sum())?;
    P::to_operand(&field.0, &mut joined.y)?;
    if steps.is_empty() {
        let claims = claims(&mut joined, runs);
        return Ok(last(field, claims, Some(joined)));
    }
    Ok(and_then(toss(), move |_, mut prg| {
        let mut joined = joined;
        let mut claims = claims(&mut joined, runs);
        for claim in &mut claims {
            weigh(&field.0, &joined, claim, &mut prg)?;
        }
        drop(joined);
        Ok(reduce(field, claims, steps.into_iter()))
    }))
}

/// The check that shares belong to values: opens random combinations of them, each under a mask. Wrong ones pass with probability below 2^-security. Two
/// rounds.
pub(super) fn verify_shares<P: Verifiable, A: Domain, F: Domain>(
    domain: F,
    security: u32,
    shares: Vec<Share<F::E>>,
) -> Task<P, A, ()> {
    let runs = security.div_ceil(domain.bits().saturating_sub(1).max(1)) as usize;
    with_random(
        domain.clone(),
        runs,
        move |_: &mut Verified<P, A>, mut sums| {
            Ok(and_then(toss(), move |p: &mut Verified<P, A>, mut prg| {
                for run in 0..runs {
                    for share in &shares {
                        let mut factors = vec![domain.zero(); share.len()];
                        domain.random(&mut prg, &mut factors);
                        let sum = share.map(|part| vec![domain.dot(&factors, part)]);
                        sums.combine_range(run, &sum, |sums, sum| domain.add_assign(sums, sum))?;
                    }
                }
                let opened = within(p.inner.open_checked(&domain, &sums)?, inner);
                Ok(then(opened, |_, _| Ok(())))
            }))
        },
    )
}

/// The same claim for each run, of z nothing yet. The operands are taken out of `joined`.
fn claims<E: Element>(joined: &mut Joined<E>, runs: usize) -> Vec<Claim<E>> {
    let empty = || Share { parts: Vec::new() };
    let x = std::mem::replace(&mut joined.x, empty());
    let y = std::mem::replace(&mut joined.y, empty());
    let copy = |x: Share<E>, y: Share<E>| Claim { x, y, z: empty() };
    let mut claims: Vec<_> = (1..runs)
        .map(|_| copy(x.duplicate(), y.duplicate()))
        .collect();
    claims.push(copy(x, y));
    claims
}

/// Makes one claim of all products, by factors of the stream.
fn weigh<F: Domain>(
    domain: &F,
    joined: &Joined<F::E>,
    claim: &mut Claim<F::E>,
    prg: &mut Prg,
) -> Result<()> {
    let mut factors = vec![domain.zero(); joined.z.len()];
    domain.random(prg, &mut factors);
    claim.z = joined.z.map(|part| vec![domain.dot(&factors, part)]);
    let factors = joined.spread(factors, claim.x.len())?;
    for part in &mut claim.x.parts {
        domain.mul_assign(part, &factors);
    }
    Ok(())
}

/// Runs `f` with shares of `n` random elements; without a round of its own, if they are local.
pub(super) fn with_random<P: Verifiable, A: Domain, F: Domain, V: 'static>(
    domain: F,
    n: usize,
    f: impl FnOnce(&mut Verified<P, A>, Share<F::E>) -> Result<Task<P, A, V>> + Send + 'static,
) -> Task<P, A, V> {
    at_start(
        move |p: &mut Verified<P, A>| match p.inner.random_elements(&domain, n)? {
            Step::Done(share) => f(p, share),
            Step::Next(random) => Ok(and_then(within(random, inner), f)),
        },
    )
}

/// The steps that are left.
pub(super) fn reduce<P: Verifiable, A: Domain, X: Extension>(
    extension: X,
    mut claims: Vec<Claim<Word<X>>>,
    mut steps: std::vec::IntoIter<usize>,
) -> Task<P, A, ()> {
    let Some(variables) = steps.next() else {
        return last(extension, claims, None);
    };
    at_start(move |p: &mut Verified<P, A>| {
        let mut summands = Vec::new();
        for claim in &mut claims {
            let unit = extension.degree() << variables;
            pad(&mut claim.x, unit);
            pad(&mut claim.y, unit);
            summands.extend(polynomial(&extension, &claim.x, &claim.y, variables)?);
        }
        let base = extension.base();
        let shared = within(p.inner.reshare(base, summands)?, inner);
        let next = and_then(
            shared,
            move |_: &mut Verified<P, A>, values: Share<Word<X>>| {
                Ok(and_then(toss(), move |_: &mut Verified<P, A>, mut prg| {
                    let each = values.len() / claims.len().max(1);
                    for (i, claim) in claims.iter_mut().enumerate() {
                        let point: Vec<_> = (0..variables)
                            .map(|_| extension.challenge(&mut prg))
                            .collect();
                        let values = values.range(i * each..(i + 1) * each)?;
                        claim.z = evaluated(&extension, &values, &claim.z, &point)?;
                        for part in claim.x.parts.iter_mut().chain(&mut claim.y.parts) {
                            point.iter().for_each(|r| halve(&extension, part, r));
                        }
                    }
                    Ok(reduce(extension, claims, steps))
                }))
            },
        );
        Ok(next)
    })
}

/// Zeros at the end, up to a multiple of `unit` words.
pub(super) fn pad<E: Element>(share: &mut Share<E>, unit: usize) {
    for part in &mut share.parts {
        let n = part.len().next_multiple_of(unit);
        if part.capacity() < n {
            // A vector that grows leaves a copy of its secrets behind.
            let mut longer = Vec::with_capacity(n);
            longer.extend_from_slice(part);
            wipe(part);
            *part = longer;
        }
        part.resize(n, E::default());
    }
}

/// The index of (1, …, 1) among the points of {0, 1, ∞}^v, in lexicographic order.
pub(super) fn ones(variables: usize) -> usize {
    (3usize.pow(variables as u32) - 1) / 2
}

/// Our summands of H at the points of {0, 1, ∞}^v but (1, …, 1).
fn polynomial<X: Extension>(
    extension: &X,
    x: &Share<Word<X>>,
    y: &Share<Word<X>>,
    variables: usize,
) -> Result<Vec<Word<X>>> {
    let (base, degree) = (extension.base(), extension.degree());
    let (n, ones) = (x.len() >> variables, ones(variables));
    let mut sums = vec![vec![base.zero(); degree]; 3usize.pow(variables as u32)];
    let block = degree
        * if degree == 1 {
            BLOCK
        } else {
            BLOCK_OF_ELEMENTS
        };
    let (mut of_x, mut of_y) = (Vec::new(), Vec::new());
    for from in (0..n).step_by(block) {
        let positions = (from, n.min(from + block));
        let width = positions.1 - from;
        for (x, y) in zip(&x.parts, &y.parts)? {
            values(base, x, n, positions, variables, &mut of_x)?;
            values(base, y, n, positions, variables, &mut of_y)?;
            let pairs = zip(of_x.chunks_exact(width), of_y.chunks_exact(width))?.enumerate();
            for (sum, (i, (x, y))) in zip(&mut sums, pairs)? {
                if i != ones {
                    base.add_assign(sum, &extension.dot(x, y)?);
                }
            }
        }
    }
    of_x.zeroize();
    of_y.zeroize();
    sums.remove(ones);
    Ok(sums.concat())
}

/// The values of the pieces' polynomial at the points of {0, 1, ∞}^v, one row for each, at some positions of the pieces of `n` words.
pub(super) fn values<F: Domain>(
    domain: &F,
    vector: &[F::E],
    n: usize,
    (from, to): (usize, usize),
    variables: usize,
    rows: &mut Vec<F::E>,
) -> Result<()> {
    let (width, powers) = (to - from, |t: usize| 3usize.pow(t as u32));
    rows.resize(width * powers(variables), domain.zero());
    // The row of a point of {0, 1}^t, whose first coordinate is the highest bit.
    let row = |bits: usize, t: usize| {
        let digit = |i: usize| (bits >> i & 1) * powers(i);
        (0..t).map(digit).sum::<usize>()
    };
    for piece in 0..1 << variables {
        let words = vector.get(piece * n + from..piece * n + to);
        let at = width * row(piece, variables);
        let place = rows.get_mut(at..at + width);
        let (place, words) = place.zip(words).ok_or_else(EngineError::uneven)?;
        place.copy_from_slice(words);
    }
    for variable in 0..variables {
        // Coordinates before this one are complete, those behind it are 0 or 1.
        let behind = variables - variable - 1;
        let stride = width * powers(behind);
        for before in 0..powers(variable) {
            for bits in 0..1 << behind {
                let at = 3 * stride * before + width * row(bits, behind);
                let three = rows.get_mut(at..at + 2 * stride + width);
                let (two, difference) = three
                    .ok_or_else(EngineError::uneven)?
                    .split_at_mut(2 * stride);
                let (low, high) = two.split_at(stride);
                for (difference, (low, high)) in difference.iter_mut().zip(low.iter().zip(high)) {
                    *difference = domain.sub(*high, *low);
                }
            }
        }
    }
    Ok(())
}

/// The share of H at a point, from those at all points of {0, 1, ∞}^v but (1, …, 1), and of the sum over {0, 1}^v.
pub(super) fn evaluated<X: Extension>(
    extension: &X,
    values: &Share<Word<X>>,
    sum: &Share<Word<X>>,
    point: &[Vec<Word<X>>],
) -> Result<Share<Word<X>>> {
    let base = extension.base();
    let (mut weights, last) = weights(extension, point)?;
    // The value at (1, …, 1) is the sum without the values at the other points of {0, 1}^v.
    for (weight, is_bits) in &mut weights {
        if *is_bits {
            base.sub_assign(weight, &last);
        }
    }
    let weights: Vec<Vec<_>> = weights.into_iter().map(|(weight, _)| weight).collect();
    let weights = weights.concat();
    let mut result = values.try_map(|part| extension.dot(&weights, part))?;
    let last = sum.try_map(|part| extension.dot(&last, part))?;
    result.combine(&last, |result, last| base.add_assign(result, last))?;
    Ok(result)
}

/// Weights of values, with whether their point is in {0, 1}^v, and the weight of the value at (1, …, 1).
type Weights<E> = (Vec<(Vec<E>, bool)>, Vec<E>);

/// The weights in the value at `point` of the values at all points of {0, 1, ∞}^v but (1, …, 1), and that of the value there.
fn weights<X: Extension>(extension: &X, point: &[Vec<Word<X>>]) -> Result<Weights<Word<X>>> {
    let base = extension.base();
    let mut weights = vec![(extension.one(), true)];
    for r in point {
        // Lagrange's polynomials for the values at 0, 1 and ∞: 1 − r, r, r² − r.
        let (mut zero, mut infinity) = (extension.one(), extension.dot(r, r)?);
        base.sub_assign(&mut zero, r);
        base.sub_assign(&mut infinity, r);
        let mut next = Vec::with_capacity(3 * weights.len());
        for (weight, is_bits) in &weights {
            next.push((extension.dot(weight, &zero)?, *is_bits));
            next.push((extension.dot(weight, r)?, *is_bits));
            next.push((extension.dot(weight, &infinity)?, false));
        }
        weights = next;
    }
    let ones = ones(point.len());
    if ones >= weights.len() {
        return Err(EngineError::uneven());
    }
    let (last, _) = weights.remove(ones);
    Ok((weights, last))
}

/// The first half of a vector plus r times the difference of the second and the first.
pub(super) fn halve<X: Extension>(extension: &X, vector: &mut Vec<Word<X>>, r: &[Word<X>]) {
    let (base, half) = (extension.base(), vector.len() / 2);
    let (low, high) = vector.split_at_mut(half);
    base.sub_assign(high, low);
    extension.scale(high, r);
    base.add_assign(low, high);
    wipe(high);
    vector.truncate(half);
}

/// Compares the claims under masks. `joined`: claims of products that no factors were tossed for yet.
fn last<P: Verifiable, A: Domain, X: Extension>(
    extension: X,
    mut claims: Vec<Claim<Word<X>>>,
    joined: Option<Joined<Word<X>>>,
) -> Task<P, A, ()> {
    let n = claims.first().map_or(0, |claim| claim.x.len());
    let (all, base) = (n * claims.len(), extension.base().clone());
    with_random(base, all, move |p: &mut Verified<P, A>, masks| {
        let (base, mut summands) = (extension.base(), Vec::new());
        for (i, claim) in claims.iter().enumerate() {
            let mask = masks.range(i * n..(i + 1) * n)?;
            let mut sum = vec![base.zero(); extension.degree()];
            for (a, y) in zip(&mask.parts, &claim.y.parts)? {
                base.add_assign(&mut sum, &extension.dot(a, y)?);
            }
            summands.extend(sum);
        }
        let crossed = within(p.inner.reshare(base, summands)?, inner);
        Ok(and_then(
            crossed,
            move |_: &mut Verified<P, A>, crossed: Share<Word<X>>| {
                Ok(and_then(toss(), move |p: &mut Verified<P, A>, mut prg| {
                    if let Some(joined) = joined {
                        for claim in &mut claims {
                            weigh(extension.base(), &joined, claim, &mut prg)?;
                        }
                    }
                    compare(p, extension, (claims, prg), masks, crossed)
                }))
            },
        ))
    })
}

/// Opens ρ = r·x + a and r·z + c − ⟨ρ, y⟩, for r of the stream.
fn compare<P: Verifiable, A: Domain, X: Extension>(
    p: &mut Verified<P, A>,
    extension: X,
    (claims, mut prg): (Vec<Claim<Word<X>>>, Prg),
    mut masked: Share<Word<X>>,
    mut verdict: Share<Word<X>>,
) -> Result<Task<P, A, ()>> {
    let (base, degree) = (extension.base(), extension.degree());
    let n = masked.len() / claims.len().max(1);
    for (i, claim) in claims.iter().enumerate() {
        let factor = extension.challenge(&mut prg);
        let scaled = |sum: &mut [Word<X>], of: &[Word<X>]| {
            let mut of = of.to_vec();
            extension.scale(&mut of, &factor);
            base.add_assign(sum, &of);
            wipe(&mut of);
        };
        masked.combine_range(i * n, &claim.x, scaled)?;
        verdict.combine_range(i * degree, &claim.z, scaled)?;
    }
    let opened = within(p.inner.open_checked(base, &masked)?, inner);
    Ok(and_then(
        opened,
        move |p: &mut Verified<P, A>, masked: Vec<Word<X>>| {
            let (base, mut verdict) = (extension.base(), verdict);
            for (i, claim) in claims.iter().enumerate() {
                let masked = masked.get(i * n..(i + 1) * n);
                let masked = masked.ok_or_else(EngineError::uneven)?;
                let mut product = claim.y.try_map(|part| extension.dot(masked, part))?;
                P::from_operand(base, &mut product)?;
                verdict.combine_range(i * degree, &product, |verdict, product| {
                    base.sub_assign(verdict, product);
                })?;
            }
            let opened = within(p.inner.open_checked(base, &verdict)?, inner);
            Ok(then(
                opened,
                move |p: &mut Verified<P, A>, verdict: Vec<Word<X>>| {
                    let zero = extension.base().zero();
                    if verdict.iter().all(|v| *v == zero) {
                        return Ok(());
                    }
                    let failed = EngineError::check(
                        Check::Products,
                        "the check of products failed: one of the parties cheats, its results must not be used",
                    );
                    p.inner.adversary().judge::<()>(Err(failed)).map(drop)
                },
            ))
        },
    ))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use keyquorum_math::{Z2k64, Z2k128, Zq};

    use super::super::Gf64;
    use super::super::extension::Galois;
    use super::*;

    fn share<E: Element>(values: Vec<E>) -> Share<E> {
        Share {
            parts: vec![values],
        }
    }

    /// A step, in the clear: the claim stays true, at half the length for each variable.
    fn step<X: Extension>(extension: &X, n: usize, variables: usize) {
        let (base, degree) = (extension.base(), extension.degree());
        let mut prg = Prg::new([n as u8; 16], variables as u64);
        let mut draw = |n: usize| {
            let mut values = vec![base.zero(); n * degree];
            base.random(&mut prg, &mut values);
            values
        };
        let (mut x, mut y) = (share(draw(n)), share(draw(n)));
        let mut tossed = Prg::new([n as u8; 16], 1 << 32);
        let point: Vec<_> = (0..variables)
            .map(|_| extension.challenge(&mut tossed))
            .collect();
        let sum = share(extension.dot(&x.parts[0], &y.parts[0]).unwrap());
        pad(&mut x, degree << variables);
        pad(&mut y, degree << variables);
        let claims = share(polynomial(extension, &x, &y, variables).unwrap());
        assert_eq!(claims.len(), degree * (3usize.pow(variables as u32) - 1));
        let next = evaluated(extension, &claims, &sum, &point).unwrap();
        let mut halved = [x, y].map(|mut share| std::mem::take(&mut share.parts[0]));
        for vector in &mut halved {
            point.iter().for_each(|r| halve(extension, vector, r));
            assert_eq!(vector.len(), degree * n.div_ceil(1 << variables));
        }
        let product = extension.dot(&halved[0], &halved[1]).unwrap();
        assert_eq!(next.parts[0], product);
        // Whatever is claimed wrongly makes the next claim wrong, at this point of a large field or ring.
        if extension.challenge_bits() > 40 {
            let zero = share(vec![base.zero(); degree]);
            let wrong = evaluated(extension, &claims, &zero, &point).unwrap();
            assert_ne!(wrong.parts[0], next.parts[0]);
            for i in 0..claims.len() {
                let mut changed = claims.duplicate();
                let claim = &mut changed.parts[0][i];
                *claim = base.add(*claim, base.one());
                let wrong = evaluated(extension, &changed, &sum, &point).unwrap();
                assert_ne!(wrong.parts[0], next.parts[0], "{i}");
            }
        }
    }

    #[test]
    fn steps_keep_claims() {
        for (n, variables) in [(4, 1), (5, 2), (64, 2), (1000, 3), (5003, 4)] {
            let long = Zq::new(1_152_921_504_606_584_833).unwrap();
            step(&Itself(long), n, variables);
            step(&Itself(Zq::new(65_537).unwrap()), n, variables);
            step(&Itself(Gf64), n, variables);
        }
        for (n, variables) in [(4, 1), (5, 2), (70, 2)] {
            step(&Galois::new(Z2k64::new(64).unwrap()), n, variables);
            step(&Galois::new(Z2k64::new(40).unwrap()), n, variables);
            step(&Galois::new(Z2k128::new(72).unwrap()), n, variables);
        }
    }

    #[test]
    fn factors_are_those_of_the_groups() {
        let product = |groups: usize, length: usize| Product {
            x: share(vec![1u64; groups * length]),
            y: share(vec![2; groups * length]),
            z: share(vec![3; groups]),
            length,
        };
        let joined = Joined::new(vec![product(2, 3), product(3, 1)]).unwrap();
        assert_eq!((joined.x.len(), joined.z.len()), (9, 5));
        let factors = joined.spread(vec![5, 6, 7, 8, 9], 9).unwrap();
        assert_eq!(factors, [5, 5, 5, 6, 6, 6, 7, 8, 9]);
        assert!(joined.spread(vec![5, 6, 7, 8], 9).is_err());
    }
}
