//! The steps of a recorded program.

use super::numbers::NumberOp;
use crate::engine::Operation;

/// A vector of the engine: clear, secret, or known to one party.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ValueId(pub usize);

/// Public numbers, or private ones of this party: words of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NumbersId(pub usize);

/// Shares as they are exported and imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SharesId(pub usize);

/// One call of a recorded run. `out`: what it makes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields are the operands
pub enum Step {
    /// An operation of the engine on the operands of [`Operands`](crate::engine::Operands). `target` is given up.
    Apply {
        operation: Operation,
        target: Option<ValueId>,
        values: Vec<ValueId>,
        numbers: Vec<NumbersId>,
        out: Vec<ValueId>,
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
            Self::Apply {
                target,
                values,
                numbers,
                ..
            } => {
                let values = target.iter().chain(values).copied();
                [slots(values), slots(numbers.iter().copied())].concat()
            }
            Self::Read { a, .. } | Self::ReadBits { a, .. } | Self::Store { a } => slots([*a]),
            Self::Output { numbers, .. } | Self::OutputPersonal { numbers } => slots([*numbers]),
            Self::Import { shares, .. } => slots([*shares]),
            Self::Pick { at, .. } => slots([*at]),
            Self::Numbers { a, b, .. } => slots([*a, *b]),
            Self::Choose {
                condition, a, b, ..
            } => slots([*condition, *a, *b]),
            Self::Part { a, .. } | Self::InRange { a, .. } => slots([*a]),
            Self::Join { parts, .. } => slots(parts.iter().copied()),
            Self::Flush
            | Self::Load { .. }
            | Self::TakePublic { .. }
            | Self::TakePrivate { .. }
            | Self::Print(_) => Vec::new(),
        }
    }

    /// The results of the step.
    pub(super) fn results(&self) -> Vec<Slot> {
        match self {
            Self::Apply { out, .. } => slots(out.iter().copied()),
            Self::Import { out, .. } => slots([*out]),
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
            Self::Apply { target, .. } => *target,
            _ => None,
        }
    }
}
