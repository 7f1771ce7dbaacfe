//! The operations that a computation offers, whatever its protocol and domain.

use std::sync::Arc;

use keyquorum_math::DomainKind;
use zeroize::Zeroizing;

use crate::circuit::BitCircuit;
use crate::error::{EngineError, Result};
use crate::graph::{EngineStats, Handle};
use crate::protocol::Preprocessed;

/// Operations on clear values, on canonical unsigned integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClearOp {
    /// Shift left, then reduce.
    Shl,
    /// Shift right.
    Shr,
    /// Remainder.
    Mod,
    /// Integer quotient.
    Div,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
}

/// An operation on vectors: which one, and its sizes. The comments name the operands ([`Operands`]) and the results. `a`, `b` and other letters are
/// vectors; sizes must be equal, or one of them 1 (broadcast). If the comment names no result, it is one vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A clear vector of numbers, reduced into the domain.
    Clear,
    /// Clear bits: the lowest bits of numbers.
    ClearBits,
    /// a + b.
    Add,
    /// a − b.
    Sub,
    /// a · b; one round if both are secret.
    Mul,
    /// −a.
    Neg,
    /// Sums of products of a and b over consecutive groups of this length; the traffic of one product a group.
    Dot(usize),
    /// Row-major product of a `rows` × `inner` and an `inner` × `columns` matrix, at least one of them clear. Local.
    MatrixProduct {
        /// Rows of the first matrix.
        rows: usize,
        /// Columns of the first matrix, and rows of the second one.
        inner: usize,
        /// Columns of the second matrix.
        columns: usize,
    },
    /// Products of the clear polynomials of `a`, one after another, with the polynomial `s` modulo X^n + 1, where n is a power of two in
    /// `2..=32768` and the size of `s`. Coefficients are modulo 2^k with k ≤ 64. Local.
    Negacyclic,
    /// The negacyclic transform of polynomials of so many coefficients, one after another, in SEAL's order. The number is a power of two in `2..=32768`.
    /// Modulo a prime that is 1 modulo twice the number. Local.
    Transform(usize),
    /// 2^shift times the products of every secret element of the first vector, which must be 0 or 1, with every secret element of the second one: all of the
    /// first bit, all of the second one, … Modulo 2^k; without MACs. One round, n + 1 of additive shares. k − shift bits a product on the wire.
    BitProducts(u32),
    /// Sums over consecutive groups of this length.
    Sum(usize),
    /// Elements (or bits) of `a` at indices, which are numbers.
    Gather,
    /// Elements (or bits) of `a` from `start` on.
    Slice {
        /// The first index.
        start: i64,
        /// The distance from one index to the next.
        step: i64,
        /// How many elements.
        count: usize,
    },
    /// One vector after another.
    Concat,
    /// A vector of size 1, so many times.
    Repeat(usize),
    /// The target with `b` stored at `start`, `start + step`, …
    Assign {
        /// The first index.
        start: i64,
        /// The distance from one index to the next.
        step: i64,
    },
    /// The target with `b` stored at indices, which are numbers.
    Scatter,
    /// Opens to everybody. One round.
    Open,
    /// Opens so many low bits of elements modulo 2^k and nothing above, so many bits an element on the wire (with MACs also the bits of
    /// their key). One round.
    OpenLow(u32),
    /// [`Operation::OpenLow`] of values whose low bits are under random masks that serve once: their check may be deferred ([`Engine::defer_checks`]).
    OpenMasked(u32),
    /// Opens to this party. One round.
    OpenTo(usize),
    /// Shares elements of `owner`, which gives them as numbers. One round.
    Input {
        /// The party that has the elements.
        owner: usize,
        /// How many elements.
        count: usize,
    },
    /// Shares bits of `owner`, which gives them as numbers. One round.
    InputBits {
        /// The party that has the bits.
        owner: usize,
        /// How many bits.
        count: usize,
    },
    /// So many uniform secret elements.
    Random(usize),
    /// So many uniform secret bits, as elements.
    RandomBit(usize),
    /// So many uniform secret bits, packed.
    RandomBits(usize),
    /// Packed secret bits as elements.
    BitToArith,
    /// Uniform secret numbers, and the rows of their bits, packed, the lowest first: `1 + length` vectors. Their preprocessing runs at
    /// once; where bits are converted one by one, in the next round.
    Edabit {
        /// Bits of a number.
        length: usize,
        /// How many numbers.
        count: usize,
    },
    /// Blocks of so many elements in a random order that nobody knows.
    Shuffle(usize),
    /// So many low bits of each summand of a sharing mod 2^k, all of the first summand, all of the second one, …; local.
    SummandBits(usize),
    /// Exclusive or of bits.
    Xor,
    /// And of bits; one round if both are secret.
    And,
    /// Negation of bits.
    Not,
    /// A Boolean circuit on rows of `size` bits, for `copies` of its inputs at a time: row k of copy c begins at bit (c · rows + k) · `size` of an input
    /// and of the result. An input may also be one bit a row, the same for all bits and copies. A round for each level of ANDs, in which all
    /// ANDs of the level are one product of packed bits; local without ANDs.
    Circuit {
        /// The gates.
        circuit: Arc<BitCircuit>,
        /// Bits of a row.
        size: usize,
        /// How many inputs stand side by side.
        copies: usize,
    },
    /// Values of a public table at secret positions x, from y = x ⊕ r in the clear and the one-hot vectors of r. The vector: entry 0 of all one-hot
    /// vectors, entry 1 of all of them, …, for each of the n values of the table, a power of two. The first numbers are y of the one-hot vectors from
    /// `first` on, the second ones are the table. Bit j of the value at position i is element j · (number of positions) + i of the result. Local.
    Lookup {
        /// Bits of a value.
        bits: usize,
        /// The first one-hot vector that is used.
        first: usize,
    },
    /// Integer operation on clear values.
    ClearInteger(ClearOp),
    /// Legendre symbols 1, 0 and -1 of clear elements of a prime field.
    ClearLegendre,
    /// Inverses of clear values.
    ClearInv,
}

impl Operation {
    /// Whether the numbers of this operation are private numbers of a party. A recording keeps other numbers as constants, so the match has no
    /// wildcard: who adds an operation decides.
    #[must_use]
    pub fn takes_private(&self) -> bool {
        match self {
            Self::Input { .. } | Self::InputBits { .. } => true,
            Self::Clear
            | Self::ClearBits
            | Self::Add
            | Self::Sub
            | Self::Mul
            | Self::Neg
            | Self::Dot(_)
            | Self::MatrixProduct { .. }
            | Self::Negacyclic
            | Self::Transform(_)
            | Self::BitProducts(_)
            | Self::Sum(_)
            | Self::Gather
            | Self::Slice { .. }
            | Self::Concat
            | Self::Repeat(_)
            | Self::Assign { .. }
            | Self::Scatter
            | Self::Open
            | Self::OpenLow(_)
            | Self::OpenMasked(_)
            | Self::OpenTo(_)
            | Self::Random(_)
            | Self::RandomBit(_)
            | Self::RandomBits(_)
            | Self::BitToArith
            | Self::Edabit { .. }
            | Self::Shuffle(_)
            | Self::SummandBits(_)
            | Self::Xor
            | Self::And
            | Self::Not
            | Self::Circuit { .. }
            | Self::Lookup { .. }
            | Self::ClearInteger(_)
            | Self::ClearLegendre
            | Self::ClearInv => false,
        }
    }
}

/// What an operation takes.
#[derive(Default)]
pub struct Operands<'a> {
    /// A vector that is given up, so that it can be changed in place.
    pub target: Option<Handle>,
    /// Vectors.
    pub values: &'a [&'a Handle],
    /// Vectors of public numbers, or of private numbers of this party.
    pub numbers: &'a [&'a [i64]],
}

impl<'a> Operands<'a> {
    /// Vectors alone.
    pub fn values(values: &'a [&'a Handle]) -> Self {
        Self {
            values,
            ..Self::default()
        }
    }
}

fn no_result() -> EngineError {
    EngineError::internal("an operation with another number of results")
}

fn single(made: Result<Vec<Handle>>) -> Result<Handle> {
    made?.pop().ok_or_else(no_result)
}

/// Methods of one operation each: its vectors; its sizes.
macro_rules! named {
    ($($name:ident($($value:ident),*$(; $($size:ident: $of:ty),*)?) => $operation:ident $(($($tuple:tt)*))? $({$($field:tt)*})?;)*) => {$(
        #[doc = concat!("[`Operation::", stringify!($operation), "`].")]
        fn $name(&mut self, $($value: &Handle,)* $($($size: $of),*)?) -> Result<Handle> {
            let operation = Operation::$operation $(($($tuple)*))? $({$($field)*})?;
            single(self.apply(&operation, Operands::values(&[$($value),*])))
        }
    )*};
}

/// One computation in one arithmetic domain under one protocol. Every operation returns at once; [`Engine::read`] and
/// [`Engine::flush`] communicate. Rounds are those of direct openings: a
/// round that opens values through a king ([`crate::Openings::King`]) is two.
pub trait Engine: Send {
    /// The domain.
    fn domain(&self) -> DomainKind;
    /// Our number and the number of parties.
    fn party(&self) -> (usize, usize);
    /// Corruptions tolerated.
    fn threshold(&self) -> usize;
    /// Whether there are packed secret bits.
    fn has_binary(&self) -> bool;
    /// Whether [`Operation::Edabit`] takes no conversions.
    fn has_edabits(&self) -> bool;
    /// Summands of [`Operation::SummandBits`]; 0 where they do not exist.
    fn summands(&self) -> usize;
    /// Whether there is [`Operation::Shuffle`].
    fn has_shuffle(&self) -> bool;
    /// Component vectors of an exported share.
    fn share_parts(&self) -> usize;
    /// Bytes of one exported word.
    fn element_bytes(&self) -> usize;
    /// Our share of the key of MACs, in the domain of the shares; `None` for protocols without.
    fn mac_key(&self) -> Option<u128>;
    /// True if a test seed replaced the secret ones.
    fn insecure(&self) -> bool;

    /// Does an operation: its results, in the order that [`Operation`] gives.
    ///
    /// # Errors
    /// [`EngineError::Usage`](crate::error::EngineError::Usage) for operands that do not fit the operation, the protocol or the domain.
    fn apply(&mut self, operation: &Operation, operands: Operands<'_>) -> Result<Vec<Handle>>;
    /// A clear vector, reduced into the domain.
    fn clear(&mut self, values: &[i64]) -> Handle;
    /// A clear vector of integers given mod 2^128 (negative ones as two's complement).
    fn clear_wide(&mut self, values: &[i128]) -> Handle;
    /// A clear vector of canonical unsigned words.
    fn clear_words(&mut self, values: &[u64]) -> Handle;
    /// Clear bits.
    fn clear_bits(&mut self, bits: &[u8]) -> Handle;
    named! {
        add(a, b) => Add;
        sub(a, b) => Sub;
        mul(a, b) => Mul;
        neg(a) => Neg;
        dot(a, b; length: usize) => Dot(length);
        sum(a; length: usize) => Sum(length);
        bit_products(bits, v; shift: u32) => BitProducts(shift);
        slice(a; start: i64, step: i64, count: usize) => Slice { start, step, count };
        repeat(a; n: usize) => Repeat(n);
        open(a) => Open;
        open_low(a; bits: u32) => OpenLow(bits);
        open_masked(a; bits: u32) => OpenMasked(bits);
        open_to(a; receiver: usize) => OpenTo(receiver);
        random(; n: usize) => Random(n);
        random_bit(; n: usize) => RandomBit(n);
        random_bits(; n: usize) => RandomBits(n);
        bit_to_arith(bits) => BitToArith;
        shuffle(a; unit: usize) => Shuffle(unit);
        xor(a, b) => Xor;
        and(a, b) => And;
        not(a) => Not;
        clear_inv(a) => ClearInv;
    }
    /// [`Operation::ClearInteger`].
    fn clear_op(&mut self, op: ClearOp, a: &Handle, b: &Handle) -> Result<Handle> {
        single(self.apply(&Operation::ClearInteger(op), Operands::values(&[a, b])))
    }
    /// [`Operation::Gather`].
    fn gather(&mut self, a: &Handle, indices: &[i64]) -> Result<Handle> {
        let operands = Operands {
            values: &[a],
            numbers: &[indices],
            target: None,
        };
        single(self.apply(&Operation::Gather, operands))
    }
    /// [`Operation::Assign`].
    fn assign(&mut self, a: Handle, start: i64, step: i64, b: &Handle) -> Result<Handle> {
        let operands = Operands {
            target: Some(a),
            values: &[b],
            numbers: &[],
        };
        single(self.apply(&Operation::Assign { start, step }, operands))
    }
    /// [`Operation::Concat`].
    fn concat(&mut self, list: &[&Handle]) -> Result<Handle> {
        single(self.apply(&Operation::Concat, Operands::values(list)))
    }
    /// [`Operation::Input`].
    fn input(&mut self, owner: usize, count: usize, values: Option<&[i64]>) -> Result<Handle> {
        let operands = Operands {
            numbers: values.as_slice(),
            ..Operands::default()
        };
        single(self.apply(&Operation::Input { owner, count }, operands))
    }
    /// [`Operation::InputBits`].
    fn input_bits(&mut self, owner: usize, count: usize, bits: Option<&[u8]>) -> Result<Handle> {
        let numbers = bits.map(|bits| bits.iter().map(|bit| (*bit).into()).collect());
        let numbers: Option<Zeroizing<Vec<i64>>> = numbers.map(Zeroizing::new);
        let numbers = numbers.as_deref().map(Vec::as_slice);
        let operands = Operands {
            numbers: numbers.as_slice(),
            ..Operands::default()
        };
        single(self.apply(&Operation::InputBits { owner, count }, operands))
    }
    /// [`Operation::Edabit`].
    fn edabit(&mut self, length: usize, count: usize) -> Result<(Handle, Vec<Handle>)> {
        let operation = Operation::Edabit { length, count };
        let mut made = self.apply(&operation, Operands::default())?.into_iter();
        let number = made.next().ok_or_else(no_result)?;
        Ok((number, made.collect()))
    }
    /// [`Operation::SummandBits`], `[summand][bit]`.
    fn summand_bits(&mut self, a: &Handle, m: usize) -> Result<Vec<Vec<Handle>>> {
        let made = self.apply(&Operation::SummandBits(m), Operands::values(&[a]))?;
        let mut bits = made.into_iter();
        let rows = (0..self.summands()).map(|_| bits.by_ref().take(m).collect());
        Ok(rows.collect())
    }
    /// Reads a clear or personal vector (words of at most 64 bits).
    ///
    /// Before only one party reads a personal vector, all call [`Engine::flush`]: reading may run rounds, and all must run them.
    fn read(&mut self, a: &Handle) -> Result<Vec<u64>>;
    /// Reads a clear or personal vector.
    fn read_wide(&mut self, a: &Handle) -> Result<Vec<u128>>;
    /// Reads clear bits.
    fn read_bits(&mut self, a: &Handle) -> Result<Vec<u8>>;
    /// Raw words of a share: part after part, little endian.
    fn export(&mut self, a: &Handle) -> Result<Vec<u8>>;
    /// A share from raw words; refuses another length or words out of range. With MACs also shares (other than zeros) of a domain for which the
    /// session has neither called [`Engine::origin`] nor [`Engine::check_origin`]. The same where products are verified.
    fn import(&mut self, data: &[u8], n: usize) -> Result<Handle>;
    /// The origin of what this engine stores, which must be stored with the shares. With MACs: the public name of this run, 16 bytes, and our shares of a few random
    /// elements as raw words, the test of the MAC keys. Where products are verified: the name alone. Elsewhere it is empty. The same for all shares that an engine
    /// stores. At all parties, as the first call runs rounds and a toss.
    fn origin(&mut self) -> Result<Zeroizing<Vec<u8>>>;
    /// [`Engine::origin`] with a new name, where products are verified: for every set of share files that is written. Elsewhere the same as before. At all parties.
    fn renew_origin(&mut self) -> Result<Zeroizing<Vec<u8>>>;
    /// Makes sure that all parties have shares of this [`Engine::origin`], and that the MAC keys of this session are those under which they were stored; at all parties,
    /// before the shares are imported. With MACs an exchange of names and rounds, once a session: of what the session has made or tested it knows already.
    /// Where products are verified: compares the names of the runs, in every call; no bytes if there are no shares.
    ///
    /// # Errors
    /// [`EngineError::Check`](crate::error::EngineError::Check) if a party has another key, which burns the keys;
    /// [`EngineError::Store`](crate::error::EngineError::Store) for another number of bytes, words out of range, or a party that has
    /// another name, which burns nothing.
    fn check_origin(&mut self, origin: &[u8]) -> Result<()>;
    /// Binds all that follows to a context, at all parties: they refuse the messages of a party that has bound another one. Local.
    fn bind_context(&mut self, text: &[u8]);
    /// From now on, the MACs of values that are opened by [`Operation::OpenMasked`] are verified together, before anything else is opened, stored or
    /// handed on: at the latest when the deferral ends (`false`), which verifies all. Values that were opened so may be read before. For programs in which every
    /// such value is masked by random elements that serve once; at all parties. The same as before without MACs. Runs all that is queued.
    fn defer_checks(&mut self, deferred: bool) -> Result<()>;
    /// Takes in `n` stored random elements as raw words, which nobody knows and which serve once: they hide what is above the openings that follow, in their order.
    /// Under the rule of [`Engine::import`]; at all parties. Local. Refused without MACs.
    fn give_random(&mut self, data: &[u8], n: usize) -> Result<()>;
    /// Takes in stored random elements as raw words that `owner` knows, and that serve once: values are opened to it under them. `known`: the elements modulo the
    /// domain of the values at their owner, zeros elsewhere. Otherwise as [`Engine::give_random`].
    fn give_mask(&mut self, owner: usize, data: &[u8], known: &[u64]) -> Result<()>;
    /// Runs all that is queued.
    fn flush(&mut self) -> Result<()>;
    /// Correlated randomness made and used so far, by kind.
    fn preprocessed(&self) -> Vec<Preprocessed>;
    /// Traffic so far.
    fn stats(&self) -> EngineStats;
}
