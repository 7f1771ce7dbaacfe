//! A few operations of TFHE-rs on ciphertexts, for demonstrations.

use tfhe::prelude::{FheOrd, IfThenElse};
use tfhe::{ServerKey, with_server_key_as_context};

use crate::{BridgeError, Ciphertext};

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// a + b, modulo 2 to the width.
    Add,
    /// a b, modulo 2 to the width.
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

/// Evaluates an operation. `add`, `mul` and `gt` take two integers of one width, `select` takes a bit before them.
pub fn evaluate(
    key: ServerKey,
    operation: Operation,
    inputs: &[Ciphertext],
) -> Result<Ciphertext, BridgeError> {
    with_server_key_as_context(key, || apply(operation, inputs))
}

fn apply(operation: Operation, inputs: &[Ciphertext]) -> Result<Ciphertext, BridgeError> {
    macro_rules! binary {
        ($variant:ident, $a:expr, $b:expr) => {
            match operation {
                Operation::Add => Ok(Ciphertext::$variant($a + $b)),
                Operation::Mul => Ok(Ciphertext::$variant($a * $b)),
                Operation::Gt => Ok(Ciphertext::Bool($a.gt($b))),
                Operation::Select => Err(misfit(inputs)),
            }
        };
    }
    macro_rules! select {
        ($variant:ident, $bit:expr, $a:expr, $b:expr) => {
            match operation {
                Operation::Select => Ok(Ciphertext::$variant($bit.if_then_else($a, $b))),
                _ => Err(misfit(inputs)),
            }
        };
    }
    use Ciphertext::{Bool, Uint8, Uint16, Uint32, Uint64};
    match inputs {
        [Uint8(a), Uint8(b)] => binary!(Uint8, a, b),
        [Uint16(a), Uint16(b)] => binary!(Uint16, a, b),
        [Uint32(a), Uint32(b)] => binary!(Uint32, a, b),
        [Uint64(a), Uint64(b)] => binary!(Uint64, a, b),
        [Bool(bit), Uint8(a), Uint8(b)] => select!(Uint8, bit, a, b),
        [Bool(bit), Uint16(a), Uint16(b)] => select!(Uint16, bit, a, b),
        [Bool(bit), Uint32(a), Uint32(b)] => select!(Uint32, bit, a, b),
        [Bool(bit), Uint64(a), Uint64(b)] => select!(Uint64, bit, a, b),
        _ => Err(misfit(inputs)),
    }
}

fn misfit(inputs: &[Ciphertext]) -> BridgeError {
    let types = inputs
        .iter()
        .map(|input| input.kind().name())
        .collect::<Vec<_>>()
        .join(", ");
    BridgeError::Usage(format!(
        "the operation does not take ({types}): add, mul and gt take two integers of one width, select takes a bool before them"
    ))
}
