//! Costs that are counted: log2 of operations, without polynomial factors.

use super::super::matrix::WEIGHT;
use super::super::shape::Shape;
use crate::budget::log2_choose;

/// −log2 of the probability that `known` entries, as many in each block, have no noise.
pub(super) fn without_noise(shape: Shape, known: f64) -> f64 {
    -(shape.blocks as f64) * (1.0 - known / shape.outputs() as f64).log2()
}

/// log2 of n!, by Stirling's series.
fn log2_factorial(n: usize) -> f64 {
    let n = n as f64 + 1.0;
    let ln = (n - 0.5) * n.ln() - n + 0.5 * std::f64::consts::TAU.ln() + 1.0 / (12.0 * n);
    ln / std::f64::consts::LN_2
}

/// log2 of the number of sets of `w` rows that are expected to bear a dual word with no zero on them, at most. `q`: log2 of the size of the field.
///
/// w rows that hit j columns, none of them once, bear such a word with probability q^(w-1-j) at most, and with 1. So with θ^(j-w+1), for any θ from 1/q to 1. The sum over all ways to hit
/// columns is a coefficient of (1 + θ(e^x − 1 − x))^k, which is at most its value over x^(10w), for any x.
pub(super) fn expected_words(shape: Shape, w: usize, q: f64) -> f64 {
    let (n, k, hits) = (shape.outputs(), shape.secret() as f64, (WEIGHT * w) as f64);
    let bound = |theta: f64, x: f64| {
        let column = (theta.exp2() * (x.exp_m1() - x)).ln_1p() / std::f64::consts::LN_2;
        k * column - hits * x.log2() - (w as f64 - 1.0) * theta
    };
    let thetas = (0..=20).map(|i| -q * f64::from(i) / 20.0);
    let bounds =
        thetas.flat_map(|theta| (-40..60).map(move |i| bound(theta, (f64::from(i) / 12.0).exp())));
    let least = bounds.fold(f64::INFINITY, f64::min);
    log2_choose(n, w) + log2_factorial(WEIGHT * w) - hits * k.log2() + least
}

/// The least weight of which dual words are expected.
pub(super) fn least_weight(shape: Shape, q: f64) -> usize {
    let (mut low, mut high) = (2, shape.secret() + 1);
    while low < high {
        let middle = usize::midpoint(low, high);
        match expected_words(shape, middle, q) >= 0.0 {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    low
}

/// An instance of LPN with `rows` equations for `secret` entries; rows are spread evenly over blocks, of which there may be rows outside.
#[derive(Clone, Copy)]
pub(super) struct Instance {
    pub(super) rows: f64,
    pub(super) secret: f64,
    pub(super) shape: Shape,
}

impl Instance {
    /// Whether the series (1 − z)^(rows − secret − h)·Π(1 + (β − 1)z) has a coefficient up to `degree` that is not positive, where `guessed` entries of each of `touched` blocks are out.
    fn solved(&self, touched: f64, guessed: f64, degree: usize) -> bool {
        let blocks = self.shape.blocks as f64;
        let each = self.rows / blocks;
        let exponent = self.rows - self.secret - blocks;
        let factors = [
            (each - guessed - 1.0, touched),
            (each - 1.0, blocks - touched),
        ];
        // Sums of powers give the logarithmic derivative. Degrees are scaled so that numbers stay small.
        let scale = factors
            .iter()
            .fold(exponent.abs().max(1.0), |s, (b, h)| s.max(b * h));
        let powers: Vec<f64> = (0..degree as i32)
            .map(|j| {
                let all = factors.iter().map(|(b, h)| h * b * (-b).powi(j));
                (all.sum::<f64>() - exponent) / scale.powi(j + 1)
            })
            .collect();
        let mut series = vec![1.0];
        for d in 1..=degree {
            let next = (0..d).map(|i| series[d - 1 - i] * powers[i]).sum::<f64>() / d as f64;
            if next <= 0.0 {
                return true;
            }
            series.push(next);
        }
        false
    }

    /// The least cost with guesses: 2·log2 C(k + d, d), and those of the guesses (Briaud, Øygarden, EUROCRYPT 2023). With d = 1 nothing but guesses.
    pub(super) fn algebraic(&self) -> f64 {
        let blocks = self.shape.blocks as f64;
        let length = (1 << self.shape.levels) as f64;
        let mut best = f64::INFINITY;
        for touched in [0.5, 0.75, 1.0].map(|part| part * blocks) {
            let most = (self.rows / blocks - 1e-9).min(self.secret / touched);
            for degree in 1..=12 {
                if !self.solved(touched, most, degree) {
                    continue;
                }
                let (mut low, mut high) = (0.0, most);
                for _ in 0..40 {
                    let middle = f64::midpoint(low, high);
                    match self.solved(touched, middle, degree) {
                        true => high = middle,
                        false => low = middle,
                    }
                }
                let guesses = -touched * (1.0 - high / length).log2();
                let left = (self.secret - touched * high).max(0.0);
                let monomials: f64 = (1..=degree)
                    .map(|i| ((left + i as f64) / i as f64).log2())
                    .sum();
                best = best.min(2.0 * monomials + guesses);
            }
        }
        best
    }
}
