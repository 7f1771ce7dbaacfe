//! The operations that a computation offers, whatever its protocol and domain.

use std::sync::Arc;

use keyquorum_math::DomainKind;
use zeroize::Zeroizing;

use crate::circuit::BitCircuit;
use crate::error::Result;
use crate::graph::Handle;

/// Rounds and payload bytes of one engine, of this party. The offline part is included in the first three.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Communication rounds.
    pub rounds: u64,
    /// Payload bytes sent.
    pub bytes_sent: u64,
    /// Payload bytes received.
    pub bytes_received: u64,
    /// Rounds that made correlated randomness or verified what was opened.
    pub offline_rounds: u64,
    /// Payload bytes sent in them.
    pub offline_bytes_sent: u64,
    /// Payload bytes received in them.
    pub offline_bytes_received: u64,
    /// Time that they took.
    pub offline_nanoseconds: u64,
}

/// Correlated randomness of one kind: how much was made and used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preprocessed {
    /// Plural name.
    pub name: &'static str,
    /// Items made so far.
    pub made: u64,
    /// Items used; the others are lost with the engine.
    pub used: u64,
}

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

/// One computation in one arithmetic domain under one protocol. Every operation returns at once; [`Engine::read`] and
/// [`Engine::flush`] communicate. Sizes must be equal, or one of them 1 (broadcast). Rounds are those of direct openings: a
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
    /// Whether [`Engine::edabit`] takes no conversions.
    fn has_edabits(&self) -> bool;
    /// Summands of [`Engine::summand_bits`]; 0 where they do not exist.
    fn summands(&self) -> usize;
    /// Whether there is [`Engine::shuffle`].
    fn has_shuffle(&self) -> bool;
    /// Component vectors of an exported share.
    fn share_parts(&self) -> usize;
    /// Bytes of one exported word.
    fn element_bytes(&self) -> usize;
    /// Our share of the key of MACs, in the domain of the shares; `None` for protocols without.
    fn mac_key(&self) -> Option<u128>;
    /// True if a test seed replaced the secret ones.
    fn insecure(&self) -> bool;

    /// A clear vector, reduced into the domain.
    fn clear(&mut self, values: &[i64]) -> Handle;
    /// A clear vector of integers given mod 2^128 (negative ones as two's complement).
    fn clear_wide(&mut self, values: &[i128]) -> Handle;
    /// A clear vector of canonical unsigned words.
    fn clear_words(&mut self, values: &[u64]) -> Handle;
    /// a + b.
    fn add(&mut self, a: &Handle, b: &Handle) -> Result<Handle>;
    /// a − b.
    fn sub(&mut self, a: &Handle, b: &Handle) -> Result<Handle>;
    /// a · b; one round if both are secret.
    fn mul(&mut self, a: &Handle, b: &Handle) -> Result<Handle>;
    /// −a.
    fn neg(&mut self, a: &Handle) -> Result<Handle>;
    /// Sums of products over consecutive groups of `length`; the traffic of one product a group.
    fn dot(&mut self, a: &Handle, b: &Handle, length: usize) -> Result<Handle>;
    /// Row-major product of a `rows` × `inner` and an `inner` × `columns` matrix, at least one of them clear. Local.
    fn matrix_product(
        &mut self,
        a: &Handle,
        b: &Handle,
        shape: (usize, usize, usize),
    ) -> Result<Handle>;
    /// Products of the clear polynomials of `a`, one after another, with the polynomial `s` modulo X^n + 1, where n is a power of two in
    /// `2..=32768` and the size of `s`. Coefficients are modulo 2^k with k ≤ 64. Local.
    fn negacyclic(&mut self, a: &Handle, s: &Handle) -> Result<Handle>;
    /// The negacyclic transform of polynomials of n coefficients, one after another, in SEAL's order, where n is a power of two in `2..=32768`. Modulo
    /// a prime that is 1 modulo 2n. Local.
    fn transform(&mut self, a: &Handle, n: usize) -> Result<Handle>;
    /// 2^shift times the products of every secret element of `bits`, which must be 0 or 1, with every secret element of `v`: all of the first bit, all of
    /// the second one, … Modulo 2^k; without MACs. One round, n + 1 of additive shares. k − shift bits a product on the wire.
    fn bit_products(&mut self, bits: &Handle, v: &Handle, shift: u32) -> Result<Handle>;
    /// Sums over consecutive groups of `length`.
    fn sum(&mut self, a: &Handle, length: usize) -> Result<Handle>;
    /// Elements (or bits) at these indices.
    fn gather(&mut self, a: &Handle, indices: &[i64]) -> Result<Handle>;
    /// `count` elements (or bits) from `start` on, `step` apart.
    fn slice(&mut self, a: &Handle, start: i64, step: i64, count: usize) -> Result<Handle>;
    /// One vector after another.
    fn concat(&mut self, list: &[&Handle]) -> Result<Handle>;
    /// A vector of size 1, `n` times.
    fn repeat(&mut self, a: &Handle, n: usize) -> Result<Handle>;
    /// `a` with `b` stored at `start`, `start + step`, …; gives `a` up, so that it can be changed in place.
    fn assign(&mut self, a: Handle, start: i64, step: i64, b: &Handle) -> Result<Handle>;
    /// `a` with `b` stored at these indices; gives `a` up.
    fn scatter(&mut self, a: Handle, indices: &[i64], b: &Handle) -> Result<Handle>;
    /// Opens to everybody. One round.
    fn open(&mut self, a: &Handle) -> Result<Handle>;
    /// Opens the low `bits` bits of elements modulo 2^k and nothing above, `bits` bits an element on the wire (with MACs and those of
    /// their key). One round.
    fn open_low(&mut self, a: &Handle, bits: u32) -> Result<Handle>;
    /// [`Engine::open_low`] of values of which the low bits are under random masks that serve once: their check may be deferred ([`Engine::defer_checks`]).
    fn open_masked(&mut self, a: &Handle, bits: u32) -> Result<Handle>;
    /// Opens to one party. One round.
    fn open_to(&mut self, a: &Handle, receiver: usize) -> Result<Handle>;
    /// Shares `n` elements of `owner`. One round.
    fn input(&mut self, owner: usize, n: usize, values: Option<&[i64]>) -> Result<Handle>;
    /// Shares `n` bits of `owner`. One round.
    fn input_bits(&mut self, owner: usize, n: usize, values: Option<&[u8]>) -> Result<Handle>;
    /// `n` uniform secret elements.
    fn random(&mut self, n: usize) -> Result<Handle>;
    /// `n` uniform secret bits, as elements.
    fn random_bit(&mut self, n: usize) -> Result<Handle>;
    /// `n` uniform secret bits, packed.
    fn random_bits(&mut self, n: usize) -> Result<Handle>;
    /// Packed secret bits as elements.
    fn bit_to_arith(&mut self, bits: &Handle) -> Result<Handle>;
    /// `n` uniform secret numbers of `length` bits, and the rows of their bits, packed, the lowest first. Their preprocessing runs at
    /// once; where bits are converted one by one, in the next round.
    fn edabit(&mut self, length: usize, n: usize) -> Result<(Handle, Vec<Handle>)>;
    /// Blocks of `unit` elements in a random order that nobody knows.
    fn shuffle(&mut self, a: &Handle, unit: usize) -> Result<Handle>;
    /// Low `m` bits of each summand of a sharing mod 2^k, `[summand][bit]`; local.
    fn summand_bits(&mut self, a: &Handle, m: usize) -> Result<Vec<Vec<Handle>>>;
    /// Clear bits.
    fn clear_bits(&mut self, bits: &[u8]) -> Handle;
    /// Exclusive or of bits.
    fn xor(&mut self, a: &Handle, b: &Handle) -> Result<Handle>;
    /// And of bits; one round if both are secret.
    fn and(&mut self, a: &Handle, b: &Handle) -> Result<Handle>;
    /// Negation of bits.
    fn not(&mut self, a: &Handle) -> Result<Handle>;
    /// A Boolean circuit on rows of `size` bits, for `copies` of its inputs at a time: row k of copy c begins at bit (c · rows + k) · `size` of an input
    /// and of the result. An input may also be one bit a row, the same for all bits and copies. A round for each level of ANDs, in which all
    /// ANDs of the level are one product of packed bits; local without ANDs.
    fn circuit(
        &mut self,
        circuit: &Arc<BitCircuit>,
        inputs: &[&Handle],
        size: usize,
        copies: usize,
    ) -> Result<Handle>;
    /// Values of a public table at secret positions x, from y = x ⊕ r in the clear and the one-hot vectors of r. `hot`: entry 0 of all vectors, entry 1
    /// of all vectors, …, for each of the n values of the table, a power of two; `at`: y of the vectors from `first` on. Bit j of the value at position i
    /// is element j · (number of positions) + i of the result. Local.
    fn lookup(
        &mut self,
        hot: &Handle,
        at: &[i64],
        table: &[i64],
        bits: usize,
        first: usize,
    ) -> Result<Handle>;
    /// Integer operation on clear values.
    fn clear_op(&mut self, op: ClearOp, a: &Handle, b: &Handle) -> Result<Handle>;
    /// Legendre symbols 1, 0 and -1 of clear elements of a prime field.
    ///
    /// # Errors
    /// [`EngineError::Usage`](crate::error::EngineError::Usage) in a ring, and for other values than clear ones.
    fn clear_legendre(&mut self, a: &Handle) -> Result<Handle>;
    /// Inverses of clear values.
    fn clear_inv(&mut self, a: &Handle) -> Result<Handle>;
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
    /// session has neither called [`Engine::key_test`] nor [`Engine::test_stored_keys`]. The same where products are verified.
    fn import(&mut self, data: &[u8], n: usize) -> Result<Handle>;
    /// The test of MAC keys, which must be stored with shares: a public name of 16 bytes, and a few random elements as raw words. Where products are verified
    /// it is the name alone, that of the run; elsewhere it is empty. The same for all shares that an engine stores. At all parties, as the first call runs rounds and a toss.
    fn key_test(&mut self) -> Result<Zeroizing<Vec<u8>>>;
    /// [`Engine::key_test`] with a new name, where products are verified: for every set of share files that is written. Elsewhere the same as before. At all parties.
    fn renew_key_test(&mut self) -> Result<Zeroizing<Vec<u8>>>;
    /// Makes sure that the MAC keys of this session are those under which shares were stored with this [`Engine::key_test`]; at all parties,
    /// before the shares are imported. An exchange of names and rounds, once a session: of what the session has made or tested it knows already.
    /// Where products are verified: compares the names of the runs, in every call; no bytes if there are no shares.
    ///
    /// # Errors
    /// [`EngineError::Check`](crate::error::EngineError::Check) if a party has another key, which burns the keys;
    /// [`EngineError::Store`](crate::error::EngineError::Store) for another number of bytes, words out of range, or a party that has a test of
    /// another name, which burns nothing.
    fn test_stored_keys(&mut self, key_test: &[u8]) -> Result<()>;
    /// Binds all that follows to a context, at all parties: they refuse the messages of a party that has bound another one. Local.
    fn bind_context(&mut self, text: &[u8]);
    /// From now on, the MACs of values that are opened by [`Engine::open_masked`] are verified together, before anything else is opened, stored or
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
