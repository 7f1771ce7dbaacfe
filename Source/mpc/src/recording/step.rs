//! The steps of a recorded program.

use std::sync::Arc;

use super::numbers::NumberOp;
use crate::circuit::BitCircuit;
use crate::engine::ClearOp;

/// A vector of the engine: clear, secret, or known to one party.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ValueId(pub usize);

/// Public numbers, or private ones of this party: words of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NumbersId(pub usize);

/// Shares as they are exported and imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SharesId(pub usize);

/// Operations on one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// Negation of elements.
    Neg,
    /// Negation of bits.
    Not,
    /// Legendre symbols of clear elements.
    ClearLegendre,
    /// Inverses of clear elements.
    ClearInv,
    /// Sums over consecutive groups of this length.
    Sum(usize),
    /// `count` elements from `start` on, `step` apart.
    Slice {
        /// The first one.
        start: i64,
        /// From one to the next.
        step: i64,
        /// How many.
        count: usize,
    },
    /// A single element, so many times.
    Repeat(usize),
    /// Packed bits as elements.
    BitToArith,
    /// Blocks of so many elements in a random order.
    Shuffle(usize),
    /// Opening to everybody.
    Open,
    /// Opening of so many low bits.
    OpenLow(u32),
    /// Opening of so many low bits, under masks.
    OpenMasked(u32),
    /// Opening to one party.
    OpenTo(usize),
}

/// Operations on two vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// Sums.
    Add,
    /// Differences.
    Sub,
    /// Products.
    Mul,
    /// Sums of products over consecutive groups of this length.
    Dot(usize),
    /// Product of matrices: rows, inner length, columns.
    MatrixProduct(usize, usize, usize),
    /// Exclusive or of bits.
    Xor,
    /// And of bits.
    And,
    /// Integer operation on clear elements.
    Clear(ClearOp),
}

/// Kinds of random vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Random {
    /// Uniform elements.
    Elements,
    /// Uniform bits, as elements.
    BitElements,
    /// Uniform bits, packed.
    Bits,
}

/// One call of a recorded run. `out`, `rows`: what it makes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields are those of the engine's operations
pub enum Step {
    /// An operation on one vector.
    Unary { op: Unary, a: ValueId, out: ValueId },
    /// An operation on two vectors.
    Binary {
        op: Binary,
        a: ValueId,
        b: ValueId,
        out: ValueId,
    },
    /// A random vector.
    Random {
        kind: Random,
        count: usize,
        out: ValueId,
    },
    /// One vector after another.
    Concat { parts: Vec<ValueId>, out: ValueId },
    /// Elements at these indices.
    Gather {
        a: ValueId,
        at: NumbersId,
        out: ValueId,
    },
    /// `target`, which is given up, with `source` at `start`, `start + step`, …
    Assign {
        target: ValueId,
        start: i64,
        step: i64,
        source: ValueId,
        out: ValueId,
    },
    /// `target`, which is given up, with `source` at these indices.
    Scatter {
        target: ValueId,
        at: NumbersId,
        source: ValueId,
        out: ValueId,
    },
    /// Random numbers of so many bits, and the rows of their bits.
    Edabit {
        bits: usize,
        count: usize,
        out: ValueId,
        rows: Vec<ValueId>,
    },
    /// Low bits of each summand: `[summand][bit]`.
    SummandBits {
        a: ValueId,
        bits: usize,
        rows: Vec<Vec<ValueId>>,
    },
    /// A Boolean circuit on rows of so many bits, for so many copies of its inputs.
    Circuit {
        circuit: Arc<BitCircuit>,
        inputs: Vec<ValueId>,
        size: usize,
        copies: usize,
        out: ValueId,
    },
    /// Values of a table at secret positions.
    Lookup {
        hot: ValueId,
        at: NumbersId,
        table: NumbersId,
        bits: usize,
        first: usize,
        out: ValueId,
    },
    /// A clear vector of public numbers.
    Clear { numbers: NumbersId, out: ValueId },
    /// Clear bits: the lowest bits of public numbers.
    ClearBits { numbers: NumbersId, out: ValueId },
    /// Shares of private numbers of a party, which has them.
    Input {
        owner: usize,
        count: usize,
        numbers: Option<NumbersId>,
        out: ValueId,
    },
    /// Shares from their raw words.
    Import {
        shares: SharesId,
        count: usize,
        out: ValueId,
    },
    /// Canonical elements of a clear or personal vector. All that is queued and needed communicates.
    Read { a: ValueId, out: NumbersId },
    /// Clear bits as numbers 0 and 1.
    ReadBits { a: ValueId, out: NumbersId },
    /// All that is queued communicates.
    Flush,
    /// Stored shares `start..start + count`.
    Load {
        start: usize,
        count: usize,
        out: SharesId,
    },
    /// Stored shares at `start +` these indices.
    Pick {
        start: usize,
        at: NumbersId,
        out: SharesId,
    },
    /// Shares to the end of the share file.
    Store { a: ValueId },
    /// The next public words.
    TakePublic { count: usize, out: NumbersId },
    /// Our next private words.
    TakePrivate { count: usize, out: NumbersId },
    /// Public numbers to the output, of everybody or of one party.
    Output {
        numbers: NumbersId,
        party: Option<usize>,
    },
    /// Numbers that were revealed to us alone, to the output.
    OutputPersonal { numbers: NumbersId },
    /// A text that is printed.
    Print(String),
    /// An operation on numbers, element by element; one of them may be a single number.
    Numbers {
        op: NumberOp,
        a: NumbersId,
        b: NumbersId,
        out: NumbersId,
    },
    /// `a` where the condition is not 0, else `b`; any of them may be a single number.
    Choose {
        condition: NumbersId,
        a: NumbersId,
        b: NumbersId,
        out: NumbersId,
    },
    /// `count` numbers from `start` on, `step` apart.
    Part {
        a: NumbersId,
        start: usize,
        step: usize,
        count: usize,
        out: NumbersId,
    },
    /// Some numbers after others.
    Join {
        parts: Vec<NumbersId>,
        out: NumbersId,
    },
    /// Refuses numbers that are no indices of a vector of this length.
    InRange { a: NumbersId, length: usize },
}

/// A slot of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Slot {
    Value(ValueId),
    Numbers(NumbersId),
    Shares(SharesId),
}

impl From<ValueId> for Slot {
    fn from(id: ValueId) -> Self {
        Self::Value(id)
    }
}

impl From<NumbersId> for Slot {
    fn from(id: NumbersId) -> Self {
        Self::Numbers(id)
    }
}

impl From<SharesId> for Slot {
    fn from(id: SharesId) -> Self {
        Self::Shares(id)
    }
}

fn slots<T: Copy + Into<Slot>>(ids: impl IntoIterator<Item = T>) -> Vec<Slot> {
    ids.into_iter().map(Into::into).collect()
}

impl Step {
    /// The operands of the step.
    pub(super) fn operands(&self) -> Vec<Slot> {
        match self {
            Self::Unary { a, .. }
            | Self::SummandBits { a, .. }
            | Self::Read { a, .. }
            | Self::ReadBits { a, .. }
            | Self::Store { a } => slots([*a]),
            Self::Binary { a, b, .. } => slots([*a, *b]),
            Self::Concat { parts, .. } => slots(parts.iter().copied()),
            Self::Gather { a, at, .. } => vec![(*a).into(), (*at).into()],
            Self::Assign { target, source, .. } => slots([*target, *source]),
            Self::Scatter {
                target, at, source, ..
            } => vec![(*target).into(), (*at).into(), (*source).into()],
            Self::Circuit { inputs, .. } => slots(inputs.iter().copied()),
            Self::Lookup { hot, at, table, .. } => {
                vec![(*hot).into(), (*at).into(), (*table).into()]
            }
            Self::Clear { numbers, .. }
            | Self::ClearBits { numbers, .. }
            | Self::Output { numbers, .. }
            | Self::OutputPersonal { numbers } => slots([*numbers]),
            Self::Input { numbers, .. } => slots(*numbers),
            Self::Import { shares, .. } => slots([*shares]),
            Self::Pick { at, .. } => slots([*at]),
            Self::Numbers { a, b, .. } => slots([*a, *b]),
            Self::Choose {
                condition, a, b, ..
            } => slots([*condition, *a, *b]),
            Self::Part { a, .. } | Self::InRange { a, .. } => slots([*a]),
            Self::Join { parts, .. } => slots(parts.iter().copied()),
            Self::Random { .. }
            | Self::Edabit { .. }
            | Self::Flush
            | Self::Load { .. }
            | Self::TakePublic { .. }
            | Self::TakePrivate { .. }
            | Self::Print(_) => Vec::new(),
        }
    }

    /// The results of the step.
    pub(super) fn results(&self) -> Vec<Slot> {
        match self {
            Self::Unary { out, .. }
            | Self::Binary { out, .. }
            | Self::Random { out, .. }
            | Self::Concat { out, .. }
            | Self::Gather { out, .. }
            | Self::Assign { out, .. }
            | Self::Scatter { out, .. }
            | Self::Circuit { out, .. }
            | Self::Lookup { out, .. }
            | Self::Clear { out, .. }
            | Self::ClearBits { out, .. }
            | Self::Input { out, .. }
            | Self::Import { out, .. } => slots([*out]),
            Self::Edabit { out, rows, .. } => slots([*out].into_iter().chain(rows.clone())),
            Self::SummandBits { rows, .. } => slots(rows.iter().flatten().copied()),
            Self::Read { out, .. }
            | Self::ReadBits { out, .. }
            | Self::TakePublic { out, .. }
            | Self::TakePrivate { out, .. }
            | Self::Numbers { out, .. }
            | Self::Choose { out, .. }
            | Self::Part { out, .. }
            | Self::Join { out, .. } => slots([*out]),
            Self::Load { out, .. } | Self::Pick { out, .. } => slots([*out]),
            Self::Flush
            | Self::Store { .. }
            | Self::Output { .. }
            | Self::OutputPersonal { .. }
            | Self::Print(_)
            | Self::InRange { .. } => Vec::new(),
        }
    }

    /// The vector that the step gives up.
    pub(super) fn consumed(&self) -> Option<ValueId> {
        match self {
            Self::Assign { target, .. } | Self::Scatter { target, .. } => Some(*target),
            _ => None,
        }
    }
}
