//! What is traced: operations of an engine, and what sessions send themselves.

use keyquorum_math::DomainKind;
use keyquorum_mpc::{Engine, EngineError, Handle, Session};

type Result<T> = std::result::Result<T, EngineError>;

/// Elements and bits of an operand: more than a lane, and not whole ones.
const SIZE: usize = 70;

/// Operands, shared before the trace begins. Bits are `None` in domains without a binary part, elements where bits are all there is.
pub struct Operands {
    elements: Option<(Handle, Handle)>,
    bits: Option<(Handle, Handle)>,
}

impl Operands {
    /// Inputs of the first and of the last party.
    pub fn share(engine: &mut dyn Engine) -> Result<Self> {
        let last = engine.party().1 - 1;
        let mut elements = None;
        if engine.domain() != DomainKind::Bits {
            elements = Some((
                input(engine, 0, SIZE, 1)?,
                input(engine, last, SIZE, -1000)?,
            ));
        }
        let mut bits = None;
        if engine.has_binary() {
            bits = Some((input_bits(engine, 0, 3)?, input_bits(engine, last, 5)?));
        }
        engine.flush()?;
        Ok(Self { elements, bits })
    }
}

fn input(engine: &mut dyn Engine, owner: usize, n: usize, first: i64) -> Result<Handle> {
    let values: Vec<i64> = (first..).take(n).collect();
    let mine = engine.party().0 == owner;
    engine.input(owner, n, mine.then_some(values.as_slice()))
}

fn input_bits(engine: &mut dyn Engine, owner: usize, period: usize) -> Result<Handle> {
    let bits: Vec<u8> = (0..SIZE).map(|i| u8::from(i % period == 0)).collect();
    let mine = engine.party().0 == owner;
    engine.input_bits(owner, SIZE, mine.then_some(bits.as_slice()))
}

/// An operation, and the operands that it takes.
#[derive(Clone, Copy)]
pub enum Operation {
    /// On elements.
    Elements(fn(&mut dyn Engine, &Handle, &Handle) -> Result<()>),
    /// On elements modulo 2^k.
    Ring(fn(&mut dyn Engine, &Handle, &Handle) -> Result<()>),
    /// On elements modulo 2^k without MACs.
    PlainRing(fn(&mut dyn Engine, &Handle, &Handle) -> Result<()>),
    /// On bits.
    Bits(fn(&mut dyn Engine, &Handle, &Handle) -> Result<()>),
    /// Between bits and elements.
    Both(fn(&mut dyn Engine, &Handle, &Handle) -> Result<()>),
    /// On blocks of elements, where the protocol has shuffles.
    Shuffle,
    /// On MAC keys, where shares have MACs.
    KeyTest,
}

impl Operation {
    /// Whether a protocol in a domain has the operation.
    pub fn fits(self, engine: &dyn Engine) -> bool {
        let elements = engine.domain() != DomainKind::Bits;
        match self {
            Self::Elements(_) => elements,
            Self::Ring(_) => matches!(engine.domain(), DomainKind::Z2k(_)),
            Self::PlainRing(_) => {
                matches!(engine.domain(), DomainKind::Z2k(_)) && engine.mac_key().is_none()
            }
            Self::Bits(_) => engine.has_binary(),
            Self::Both(_) => elements && engine.has_binary(),
            Self::Shuffle => elements && engine.has_shuffle(),
            Self::KeyTest => engine.mac_key().is_some(),
        }
    }

    /// Runs it, with all its messages.
    pub fn run(self, engine: &mut dyn Engine, operands: &Operands) -> Result<()> {
        match (self, &operands.elements, &operands.bits) {
            (Self::Elements(run) | Self::Ring(run) | Self::PlainRing(run), Some((x, y)), _)
            | (Self::Bits(run) | Self::Both(run), _, Some((x, y))) => run(engine, x, y)?,
            (Self::Shuffle, Some((x, _)), _) => drop(engine.shuffle(x, 2)?),
            (Self::KeyTest, ..) => drop(engine.origin()?),
            _ => unreachable!("an operation without its operands"),
        }
        engine.flush()
    }
}

/// Each runs in an engine of its own, whose streams depend on its position in this list alone: append new ones at the end.
pub const OPERATIONS: &[(&str, Operation)] = &[
    (
        "input",
        Operation::Elements(|engine, _, _| {
            let last = engine.party().1 - 1;
            input(engine, last, 5, 7).map(drop)
        }),
    ),
    ("open", Operation::Elements(|e, x, _| e.open(x).map(drop))),
    (
        "open_to",
        Operation::Elements(|e, x, _| {
            let last = e.party().1 - 1;
            e.open_to(x, 0)?;
            e.open_to(x, last).map(drop)
        }),
    ),
    ("mul", Operation::Elements(|e, x, y| e.mul(x, y).map(drop))),
    (
        "square",
        Operation::Elements(|e, x, _| e.mul(x, x).map(drop)),
    ),
    (
        "dot",
        Operation::Elements(|e, x, y| e.dot(x, y, SIZE / 2).map(drop)),
    ),
    (
        "random",
        Operation::Elements(|e, _, _| e.random(SIZE).map(drop)),
    ),
    (
        "random_bit",
        Operation::Elements(|e, _, _| e.random_bit(SIZE).map(drop)),
    ),
    (
        "open_low",
        Operation::Ring(|e, x, _| e.open_low(x, 1).map(drop)),
    ),
    (
        "split_and",
        Operation::Ring(|e, x, _| {
            // The bits of the summands, and the first products of an adder of them.
            if e.summands() < 2 {
                return Ok(());
            }
            let rows = e.summand_bits(x, 1)?;
            match rows.as_slice() {
                [a, b, ..] => e.and(&a[0], &b[0]).map(drop),
                _ => Ok(()),
            }
        }),
    ),
    ("shuffle", Operation::Shuffle),
    (
        "input_bits",
        Operation::Bits(|e, _, _| input_bits(e, 0, 7).map(drop)),
    ),
    ("open_bits", Operation::Bits(|e, x, _| e.open(x).map(drop))),
    ("and", Operation::Bits(|e, x, y| e.and(x, y).map(drop))),
    (
        "random_bits",
        Operation::Bits(|e, _, _| e.random_bits(SIZE).map(drop)),
    ),
    (
        "bit_to_arith",
        Operation::Both(|e, x, _| e.bit_to_arith(x).map(drop)),
    ),
    (
        "edabit",
        Operation::Both(|e, _, _| e.edabit(8, 32).map(drop)),
    ),
    ("key_test", Operation::KeyTest),
    (
        // The lowest bits of the operand count among additive parties, the whole elsewhere.
        "bit_products",
        Operation::PlainRing(|e, x, y| {
            let bits = e.slice(x, 0, 1, 5)?;
            e.bit_products(&bits, y, 41).map(drop)
        }),
    ),
];

type Exchange = fn(&Session) -> Result<()>;

/// What a session sends without an engine, each from the same seed.
pub const EXCHANGES: &[(&str, Exchange)] = &[
    ("toss", |session| session.toss(16).map(drop)),
    ("compare", |session| session.compare("digest", &[7; 32])),
    ("all_gather", |session| {
        session.all_gather(&[session.party() as u8]).map(drop)
    }),
];
