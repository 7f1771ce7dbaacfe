//! Arithmetic on public numbers: words of 64 bits that wrap around.

use zeroize::Zeroizing;

use crate::error::{EngineError, Result};

/// Numbers of a run; they may be private input, so they are wiped.
pub(super) type Numbers = Zeroizing<Vec<i64>>;

/// Operations on numbers. Comparisons give 0 or 1. Numbers are signed, except where unsigned ones are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberOp {
    /// Sums.
    Add,
    /// Differences.
    Sub,
    /// Products.
    Mul,
    /// Quotients, rounded down; a division by 0 is refused.
    FloorDiv,
    /// Shift left, by 0 to 63.
    Shl,
    /// Shift right, by 0 to 63.
    Shr,
    /// Shift right of unsigned numbers, by 0 to 63.
    ShrUnsigned,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
}

/// The error for numbers of sizes that do not go together.
fn sizes(a: usize, b: usize) -> EngineError {
    EngineError::usage(format!(
        "recorded numbers of sizes {a} and {b} do not go together"
    ))
}

fn zip(a: &[i64], b: &[i64], f: impl Fn(i64, i64) -> i64) -> Result<Numbers> {
    let made: Vec<i64> = match (a, b) {
        (a, [b]) => a.iter().map(|a| f(*a, *b)).collect(),
        ([a], b) => b.iter().map(|b| f(*a, *b)).collect(),
        (a, b) if a.len() == b.len() => a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect(),
        (a, b) => return Err(sizes(a.len(), b.len())),
    };
    Ok(Zeroizing::new(made))
}

/// Shift lengths below the word's.
fn lengths(b: &[i64]) -> Result<()> {
    match b.iter().find(|length| !(0..64).contains(*length)) {
        None => Ok(()),
        Some(length) => Err(EngineError::usage(format!(
            "recorded numbers are shifted by 0 to 63, not by {length}"
        ))),
    }
}

fn floor_div(a: i64, b: i64) -> i64 {
    let quotient = a.wrapping_div(b);
    // Rust rounds towards zero.
    let below = a.wrapping_rem(b) != 0 && (a < 0) != (b < 0);
    quotient - i64::from(below)
}

impl NumberOp {
    /// The operation, element by element; one operand may be a single number.
    pub(super) fn apply(self, a: &[i64], b: &[i64]) -> Result<Numbers> {
        match self {
            Self::Add => zip(a, b, i64::wrapping_add),
            Self::Sub => zip(a, b, i64::wrapping_sub),
            Self::Mul => zip(a, b, i64::wrapping_mul),
            Self::FloorDiv if b.contains(&0) => {
                Err(EngineError::usage("recorded numbers are divided by zero"))
            }
            Self::FloorDiv => zip(a, b, floor_div),
            Self::Shl => lengths(b).and_then(|()| zip(a, b, |a, b| a.wrapping_shl(b as u32))),
            Self::Shr => lengths(b).and_then(|()| zip(a, b, |a, b| a.wrapping_shr(b as u32))),
            Self::ShrUnsigned => {
                lengths(b).and_then(|()| zip(a, b, |a, b| (a as u64).wrapping_shr(b as u32) as i64))
            }
            Self::And => zip(a, b, |a, b| a & b),
            Self::Or => zip(a, b, |a, b| a | b),
            Self::Xor => zip(a, b, |a, b| a ^ b),
            Self::Lt => zip(a, b, |a, b| i64::from(a < b)),
            Self::Le => zip(a, b, |a, b| i64::from(a <= b)),
            Self::Gt => zip(a, b, |a, b| i64::from(a > b)),
            Self::Ge => zip(a, b, |a, b| i64::from(a >= b)),
            Self::Eq => zip(a, b, |a, b| i64::from(a == b)),
            Self::Ne => zip(a, b, |a, b| i64::from(a != b)),
        }
    }
}

/// `a` where the condition is not 0, else `b`; any of them may be a single number.
pub(super) fn choose(condition: &[i64], a: &[i64], b: &[i64]) -> Result<Numbers> {
    let lengths = [condition.len(), a.len(), b.len()];
    let n = lengths.into_iter().find(|n| *n != 1).unwrap_or(1);
    if let Some(other) = lengths.into_iter().find(|m| *m != 1 && *m != n) {
        return Err(sizes(n, other));
    }
    let spread = |v: &[i64]| -> Vec<i64> {
        match v {
            [one] => vec![*one; n],
            _ => v.to_vec(),
        }
    };
    let made = condition
        .iter()
        .copied()
        .cycle()
        .zip(spread(a).into_iter().zip(spread(b)))
        .map(|(c, (a, b))| if c != 0 { a } else { b })
        .collect();
    Ok(Zeroizing::new(made))
}

/// `count` numbers from `start` on, `step` apart.
pub(super) fn part(a: &[i64], start: usize, step: usize, count: usize) -> Result<Numbers> {
    let from = a.get(start..).unwrap_or_default();
    let made: Vec<i64> = from
        .iter()
        .step_by(step.max(1))
        .take(count)
        .copied()
        .collect();
    if made.len() == count {
        Ok(Zeroizing::new(made))
    } else {
        Err(EngineError::usage(format!(
            "{count} numbers from {start} on leave recorded numbers of size {}",
            a.len()
        )))
    }
}

/// Refuses numbers that are no indices of a vector of this length.
pub(super) fn in_range(a: &[i64], length: usize) -> Result<()> {
    let inside = |i: &i64| usize::try_from(*i).is_ok_and(|i| i < length);
    match a.iter().find(|i| !inside(i)) {
        None => Ok(()),
        Some(bad) => Err(EngineError::usage(format!(
            "overflow: index {bad}, length {length}"
        ))),
    }
}
