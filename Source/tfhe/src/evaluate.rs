//! A few operations of TFHE-rs on ciphertexts, for demonstrations.

use tfhe::integer::prelude::ServerKeyDefaultCMux;
use tfhe::integer::{
    self, BooleanBlock, IntegerRadixCiphertext, RadixCiphertext, SignedRadixCiphertext,
};
use tfhe::prelude::Tagged;
use tfhe::{ServerKey, shortint};

use crate::{BridgeError, Ciphertext, Type};

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// a + b, modulo 2 to the width; signed integers wrap around as well.
    Add,
    /// a b, modulo 2 to the width; signed integers wrap around as well.
    Mul,
    /// The bit a > b.
    Gt,
    /// a if the bit is 1, b otherwise.
    Select,
}

impl Operation {
    /// An operation by its name.
    pub fn parse(name: &str) -> Result<Self, BridgeError> {
        match name {
            "add" => Ok(Self::Add),
            "mul" => Ok(Self::Mul),
            "gt" => Ok(Self::Gt),
            "select" => Ok(Self::Select),
            _ => Err(BridgeError::Usage(format!(
                "unknown operation {name}: choose one of add, mul, gt, select"
            ))),
        }
    }
}

/// Evaluates an operation. `add`, `mul` and `gt` take two integers of one type, `select` takes a bit before them.
pub fn evaluate(
    key: ServerKey,
    operation: Operation,
    inputs: &[Ciphertext],
) -> Result<Ciphertext, BridgeError> {
    let tag = String::from_utf8_lossy(key.tag().data()).into_owned();
    let (key, ..) = key.into_raw_parts();
    let (bit, a, b) = match (operation, inputs) {
        (Operation::Select, [bit, a, b]) if bit.kind() == Type::Bool => (Some(bit), a, b),
        (Operation::Add | Operation::Mul | Operation::Gt, [a, b]) => (None, a, b),
        _ => return Err(misfit(inputs)),
    };
    if a.kind() != b.kind() || !a.kind().is_integer() {
        return Err(misfit(inputs));
    }
    let signed = matches!(a.kind(), Type::Int(_));
    let blocks = if signed {
        apply::<SignedRadixCiphertext>(&key, operation, bit, a, b)
    } else {
        apply::<RadixCiphertext>(&key, operation, bit, a, b)
    };
    let kind = match operation {
        Operation::Gt => Type::Bool,
        _ => a.kind(),
    };
    Ciphertext::from_blocks(kind, blocks, &tag)
}

/// The blocks of the result. `bit` is that of a selection.
fn apply<T: IntegerRadixCiphertext>(
    key: &integer::ServerKey,
    operation: Operation,
    bit: Option<&Ciphertext>,
    a: &Ciphertext,
    b: &Ciphertext,
) -> Vec<shortint::Ciphertext> {
    let (a, b): (T, T) = (a.radix(), b.radix());
    let bits = bit.into_iter().flat_map(Ciphertext::blocks).cloned();
    match operation {
        Operation::Add => key.add_parallelized(&a, &b).into_blocks(),
        Operation::Mul => key.mul_parallelized(&a, &b).into_blocks(),
        Operation::Gt => vec![key.gt_parallelized(&a, &b).into_raw_parts()],
        Operation::Select => bits
            .map(BooleanBlock::new_unchecked)
            .flat_map(|bit| key.if_then_else_parallelized(&bit, &a, &b).into_blocks())
            .collect(),
    }
}

fn misfit(inputs: &[Ciphertext]) -> BridgeError {
    let types = inputs
        .iter()
        .map(|input| input.kind().name())
        .collect::<Vec<_>>()
        .join(", ");
    BridgeError::Usage(format!(
        "the operation does not take ({types}): add, mul and gt take two integers of one type, select takes a bool before them"
    ))
}
