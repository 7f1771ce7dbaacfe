//! The check of products of packed bits: that of [`check`](super::check) over GF(2^64), whose first step works on words of 64 bits as they are.
//!
//! *Factors.* Word w gets a tossed factor f_w, and its lane i the factor f_w·X^i. A product of bits that is wrong is wrong by a bit, so the lanes of a word have an error Σ δ_i·X^i that is zero only if
//! all of them are right. Σ f_w·Σ δ_(w,i)·X^i is zero with probability 2^-64 if not all are, as with a factor for each lane. The sum of the results is one of products of factors with words of bits.
//!
//! *First step.* The values of y at all points of {0, 1, ∞}^v are bits, 64 in a word; x at the points is a sum over pieces. The lanes of a word have one sum: Σ f_w·X^i·x_i·y_i is the product of f_w and
//! the word x & y. At the tossed point the pieces get weights, and the claim that is left has 2^-v times as many terms, which are elements of GF(2^64) of the general check.
//!
//! Steps have other sizes than those of the general check: a first one with 4 variables costs little here.

use keyquorum_math::{Domain, selected_words};
use zeroize::Zeroize;

use super::check::{
    Claim, Task, evaluated, last_terms, ones, pad, reduce, repetitions, steps, verify,
};
use super::coins::toss;
use super::extension::{Extension, Itself};
use super::gf64::{MOST_VARIABLES, products_of_lanes};
use super::pending::Joined;
use super::{Gf64, Product, Verifiable, inner};
use crate::BITS;
use crate::error::{EngineError, Result};
use crate::task::{and_then, within};
use crate::value::{Share, same, zip};

/// The variables of each step for `words` words of 64 bits: none if they are compared under masks at once.
pub fn steps_of_bits(words: usize) -> Vec<usize> {
    let missing = (64 * words).div_ceil(last_terms(1)).next_power_of_two();
    match missing.trailing_zeros() as usize {
        0 => Vec::new(),
        missing => {
            let first = missing.min(MOST_VARIABLES);
            let mut all = vec![first];
            all.extend(steps(1, 64 * words.div_ceil(1 << first)));
            all
        }
    }
}

/// The check of products of packed bits; wrong ones pass with probability below 2^-security. Lanes past the end of a vector are products as well.
pub(super) fn verify_bits<P: Verifiable, A: Domain>(
    security: u32,
    products: Vec<Product<u64>>,
) -> Result<Task<P, A, ()>> {
    if products.iter().any(|product| product.length != 1) {
        return Err(EngineError::internal("inner products of packed bits"));
    }
    let words = products.iter().map(Product::terms).sum();
    let mut steps = steps_of_bits(words).into_iter();
    let Some(variables) = steps.next() else {
        let products = products.into_iter().map(Product::unpacked);
        return verify(Gf64, security, products.collect::<Result<_>>()?);
    };
    let field = Itself(Gf64);
    let all = variables + steps.as_slice().iter().sum::<usize>();
    let runs = repetitions(security, field.challenge_bits(), all)?;
    let Joined {
        mut x, mut y, z, ..
    } = Joined::new(products)?;
    P::to_operand(&BITS, &mut y)?;
    pad(&mut x, 1 << variables);
    pad(&mut y, 1 << variables);
    Ok(and_then(toss(), move |p, mut prg| {
        let (mut claims, mut summands) = (Vec::with_capacity(runs), Vec::new());
        for _ in 0..runs {
            let mut factors = vec![0; words];
            Gf64.random(&mut prg, &mut factors);
            let z = z.map(|part| vec![Gf64.dot(&factors, part)]);
            factors.resize(x.len(), 0);
            summands.extend(polynomial(&factors, &x, &y, variables)?);
            claims.push((factors, z));
        }
        let shared = within(p.inner.reshare(&Gf64, summands)?, inner);
        Ok(and_then(shared, move |_, values: Share<u64>| {
            Ok(and_then(toss(), move |_, mut prg| {
                let each = values.len() / runs.max(1);
                let mut left = Vec::with_capacity(runs);
                for (i, (factors, z)) in claims.into_iter().enumerate() {
                    let point: Vec<_> = (0..variables).map(|_| field.challenge(&mut prg)).collect();
                    let values = values.range(i * each..(i + 1) * each)?;
                    let z = evaluated(&field, &values, &z, &point)?;
                    let (x, y) = at(&point.concat(), factors, &x, &y)?;
                    left.push(Claim { x, y, z });
                }
                Ok(reduce(field, left, steps))
            }))
        }))
    }))
}

/// Our summands of H at the points of {0, 1, ∞}^v but (1, …, 1).
fn polynomial(
    factors: &[u64],
    x: &Share<u64>,
    y: &Share<u64>,
    variables: usize,
) -> Result<Vec<u64>> {
    let mut sums = vec![0; 3usize.pow(variables as u32)];
    for (x, y) in zip(&x.parts, &y.parts)? {
        let mut products = products_of_lanes(factors, x, y, variables);
        Gf64.add_assign(&mut sums, &products);
        products.zeroize();
    }
    sums.remove(ones(variables));
    Ok(sums)
}

/// The operands at a point: of x times the factors, and of y.
fn at(
    point: &[u64],
    mut factors: Vec<u64>,
    x: &Share<u64>,
    y: &Share<u64>,
) -> Result<(Share<u64>, Share<u64>)> {
    same(factors.len(), x.len())?;
    // Of each piece, whose number has the first coordinate as its highest bit.
    let weights = point.iter().fold(vec![1], |weights, r| {
        let both = |weight: u64| {
            let one = Gf64.mul(weight, *r);
            [weight ^ one, one]
        };
        weights.into_iter().flat_map(both).collect()
    });
    let length = factors.len() / weights.len();
    let repeated: Vec<_> = weights.iter().flat_map(|w| vec![*w; length]).collect();
    Gf64.mul_assign(&mut factors, &repeated);
    let powers: Vec<u64> = (0..length).flat_map(|_| (0..64).map(|i| 1 << i)).collect();
    let selected = |factors: &[u64], part: &[u64]| {
        let mut sums = vec![0; 64 * length];
        selected_words(&mut sums, factors, part);
        sums
    };
    let of_x = x.map(|part| {
        let mut sums = selected(&factors, part);
        Gf64.mul_assign(&mut sums, &powers);
        sums
    });
    Ok((of_x, y.map(|part| selected(&repeated, part))))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use keyquorum_math::Prg;

    use super::super::check::halve;
    use super::*;
    use crate::lane_bits;

    /// The claim stays true, at 2^-v times the length; and whatever is claimed wrongly makes the next claim wrong.
    #[test]
    fn the_first_step_keeps_the_claim() {
        let field = Itself(Gf64);
        for (words, variables) in [(2, 1), (5, 2), (6, 3), (16, 4), (37, 4)] {
            let mut prg = Prg::new([words as u8; 16], variables as u64);
            let mut draw = |n: usize| {
                let mut values = vec![0; n];
                prg.fill_u64(&mut values);
                values
            };
            let share = |part| Share { parts: vec![part] };
            let (mut x, mut y) = (share(draw(words)), share(draw(words)));
            let z: Vec<u64> = x.parts[0]
                .iter()
                .zip(&y.parts[0])
                .map(|(x, y)| x & y)
                .collect();
            pad(&mut x, 1 << variables);
            pad(&mut y, 1 << variables);
            let mut factors = draw(words);
            let sum = Gf64.dot(&factors, &z);
            factors.resize(x.len(), 0);
            let point: Vec<Vec<u64>> = (0..variables).map(|_| draw(1)).collect();
            let claims = share(polynomial(&factors, &x, &y, variables).unwrap());
            let next = evaluated(&field, &claims, &share(vec![sum]), &point).unwrap();
            let (of_x, of_y) = at(&point.concat(), factors, &x, &y).unwrap();
            assert_eq!(of_x.len(), 64 * words.div_ceil(1 << variables));
            let product = vec![Gf64.dot(&of_x.parts[0], &of_y.parts[0])];
            assert_eq!(next.parts[0], product);
            let wrong = evaluated(&field, &claims, &share(vec![sum ^ 1]), &point).unwrap();
            assert_ne!(wrong.parts[0], product);
            for i in 0..claims.len() {
                let mut changed = claims.duplicate();
                changed.parts[0][i] ^= 1;
                let wrong = evaluated(&field, &changed, &share(vec![sum]), &point).unwrap();
                assert_ne!(wrong.parts[0], product, "{i}");
            }
        }
    }

    /// A wrong bit in any lane, or in all, makes the claim wrong.
    #[test]
    fn no_lane_is_without_a_factor() {
        let mut draw = Prg::new([4; 16], 0);
        let (factors, z) = (
            [draw.next_u64(), draw.next_u64()],
            [draw.next_u64(), draw.next_u64()],
        );
        let right = Gf64.dot(&factors, &z);
        let errors = (0..64).map(|lane| 1 << lane).chain([u64::MAX]);
        for error in errors {
            assert_ne!(
                Gf64.dot(&factors, &[z[0] ^ error, z[1]]),
                right,
                "{error:x}"
            );
            assert_ne!(
                Gf64.dot(&factors, &[z[0], z[1] ^ error]),
                right,
                "{error:x}"
            );
        }
    }

    /// Operands at a point are those of the general step.
    #[test]
    fn operands_are_those_of_elements() {
        let mut prg = Prg::new([3; 16], 0);
        let mut draw = |n: usize| {
            let mut values = vec![0; n];
            prg.fill_u64(&mut values);
            values
        };
        let (bits, factors, point) = (draw(32), draw(32), draw(4));
        let elements = lane_bits(&Gf64, &bits, 32 * 64).unwrap();
        let (mut of_x, mut of_y) = (elements.clone(), elements);
        let lanes = factors
            .iter()
            .flat_map(|f| (0..64).map(|i| Gf64.mul(*f, 1 << i)));
        Gf64.mul_assign(&mut of_x, &lanes.collect::<Vec<_>>());
        for r in &point {
            halve(&Itself(Gf64), &mut of_x, &[*r]);
            halve(&Itself(Gf64), &mut of_y, &[*r]);
        }
        let share = || Share {
            parts: vec![bits.clone()],
        };
        let (x, y) = at(&point, factors, &share(), &share()).unwrap();
        assert_eq!((&x.parts[0], &y.parts[0]), (&of_x, &of_y));
    }

    #[test]
    fn steps_end_at_the_size_that_is_compared() {
        for words in [1, 4, 5, 8, 9, 17, 1000, 16_384, 16_385, 1 << 16] {
            let steps = steps_of_bits(words);
            assert_eq!(steps.is_empty(), words <= 4);
            let (first, rest) = steps.split_first().unwrap_or((&0, &[]));
            let terms = 64 * words.div_ceil(1 << first);
            let left = rest.iter().fold(terms, |n, v| n.div_ceil(1 << v));
            assert!(left <= last_terms(1), "{words}");
        }
    }
}
