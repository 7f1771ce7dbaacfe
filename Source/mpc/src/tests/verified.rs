//! Parties of verified protocols in one process, honest or corrupted.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

pub(super) mod adversaries;
mod coins;
mod costs;
mod draws;
mod independence;
mod omitted;
mod results;
mod secrets;
mod sessions;
mod stored;
mod wire;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use keyquorum_math::{Domain, Prg, Z2k64, Zq};
use keyquorum_net::{Transport, local_mesh};

use crate::adversary::{Adversary, Corruption, honest};
use crate::engine::Engine;
use crate::error::{Check, EngineError, Result};
use crate::graph::Handle;
use crate::ops::Computation;
use crate::protocol::testing::SECURITY;
use crate::protocol::testing::{Ablated, Verifiable, Verified};
use crate::protocol::{Protocol, Replicated, Shamir, SubsetStream, subsets};
use crate::session::{EngineOptions, Session};

/// 60 bits.
pub(super) const PRIME: u64 = 1_152_921_504_606_584_833;

/// The semi-honest protocol that is wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Replicated,
    /// Modulo 2^64.
    Ring,
    /// Of so many parties, so many of which may be corrupt.
    Shamir(usize, usize),
}

impl Base {
    pub const ALL: [Self; 5] = [
        Self::Replicated,
        Self::Ring,
        Self::Shamir(3, 1),
        Self::Shamir(4, 1),
        Self::Shamir(5, 2),
    ];

    pub fn parties(self) -> usize {
        match self {
            Self::Replicated | Self::Ring => 3,
            Self::Shamir(n, _) => n,
        }
    }

    /// The programs that it can run.
    pub fn programs(self) -> impl Iterator<Item = Program> {
        let bits = matches!(self, Self::Replicated | Self::Ring);
        let fits = move |p: &Program| {
            bits || !matches!(p, Program::Ands | Program::ManyAnds | Program::Conversion)
        };
        Program::ALL.into_iter().filter(fits)
    }
}

/// The parties of a run: their protocol, the field, the bits of security, the corrupted party, and the others.
#[derive(Clone)]
pub(super) struct Setting {
    pub base: Base,
    pub prime: u64,
    pub security: u32,
    pub corrupt: Option<(usize, Corruption)>,
    pub others: Corruption,
    /// What all parties leave out.
    pub ablated: Ablated,
    /// Whether the corrupted party sends a seed of a subset to one party, and another to the others.
    pub two_seeds: bool,
    /// Whether an engine does not know what the others of its session wait for.
    pub alone: bool,
    /// Draws of a random bit, if they are not those of the protocol.
    pub most_draws: Option<usize>,
}

impl Setting {
    pub fn honest(prime: u64) -> Self {
        Self {
            base: Base::Replicated,
            prime,
            security: SECURITY,
            corrupt: None,
            others: honest(),
            ablated: Ablated::default(),
            two_seeds: false,
            alone: false,
            most_draws: None,
        }
    }

    pub fn corrupted(party: usize, adversary: impl Adversary + 'static) -> Self {
        let adversary: Corruption = Arc::new(adversary);
        Self {
            corrupt: Some((party, adversary)),
            ..Self::honest(PRIME)
        }
    }

    pub fn over(mut self, base: Base) -> Self {
        self.base = base;
        self
    }

    /// The honest parties leave this check out.
    pub fn without(mut self, check: Check) -> Self {
        self.others = Arc::new(Omits(check));
        self
    }

    pub fn engine(&self, session: &Session) -> Result<Box<dyn Engine>> {
        let (me, options) = (session.party(), EngineOptions::default());
        let mut pairs = session.all_pair_prgs(1000, &options)?;
        let adversary = match &self.corrupt {
            Some((party, adversary)) if *party == me => Arc::clone(adversary),
            _ => Arc::clone(&self.others),
        };
        match self.base {
            Base::Replicated | Base::Ring => {
                let (next, _) = pairs[(me + 1) % 3].take().unwrap();
                let (_, previous) = pairs[(me + 2) % 3].take().unwrap();
                let party = Replicated::new(me, next, previous);
                let party = party.corrupted(adversary);
                match self.base {
                    Base::Ring => {
                        let ring = Z2k64::new(64).unwrap();
                        Ok(self.computation(session, party, ring))
                    }
                    _ => Ok(self.computation(session, party, Zq::new(self.prime).unwrap())),
                }
            }
            Base::Shamir(n, t) => {
                let mut ours = subsets(n, n - t);
                ours.retain(|members| members.contains(&me));
                let streams = ours.into_iter().map(|members| {
                    let mut seed = [1; 16];
                    members.iter().for_each(|member| seed[*member] = 2);
                    // The corrupted party is the first of some subset, of which the last party gets another seed.
                    if self.two_seeds && members.last() == Some(&me) {
                        let leads = self.corrupt.as_ref().map(|(party, _)| *party);
                        seed[15] = u8::from(members.first().copied() == leads);
                    }
                    let (prg, mut fingerprint) = (Prg::new(seed, 0), [0; 32]);
                    fingerprint[..16].copy_from_slice(&seed);
                    SubsetStream {
                        members,
                        prg,
                        fingerprint,
                    }
                });
                let mut party = Shamir::new(me, n, t, pairs, streams.collect())?;
                // A corrupted party does not stop by itself: honest ones have to.
                let corrupted = self.corrupt.as_ref().is_some_and(|(who, _)| *who == me);
                if let Some(most) = if corrupted {
                    Some(usize::MAX)
                } else {
                    self.most_draws
                } {
                    party = party.drawing(most);
                }
                let field = Zq::new(self.prime).unwrap();
                Ok(self.computation(session, party.corrupted(adversary), field))
            }
        }
    }

    fn computation<P: Verifiable + Protocol<D>, D: Domain>(
        &self,
        session: &Session,
        party: P,
        domain: D,
    ) -> Box<dyn Engine> {
        let unsettled = match self.alone {
            true => Arc::default(),
            false => session.unsettled(),
        };
        let private = Prg::from_os().unwrap();
        let verified = Verified::new(party, domain.clone(), private, unsettled)
            .with_security(self.security)
            .without(self.ablated);
        let domains = (domain.clone(), domain);
        let engine = Computation::new(session.clone(), verified, domains, 1, false);
        Box::new(engine)
    }

    /// Runs all parties.
    pub fn run<T: Send + 'static>(
        &self,
        body: impl Fn(&mut dyn Engine) -> Result<T> + Clone + Send + 'static,
    ) -> Vec<Result<T>> {
        self.run_over(|_, transport| transport, Duration::from_secs(60), body)
    }

    /// Runs all parties, over changed transports.
    pub fn run_over<T: Send + 'static>(
        &self,
        wrap: impl Fn(usize, Box<dyn Transport>) -> Box<dyn Transport>,
        patience: Duration,
        body: impl Fn(&mut dyn Engine) -> Result<T> + Clone + Send + 'static,
    ) -> Vec<Result<T>> {
        let setting = self.clone();
        self.run_sessions(wrap, patience, move |session| {
            setting
                .engine(session)
                .and_then(|mut engine| body(&mut *engine))
        })
    }

    /// The same with a program that opens engines itself.
    pub fn run_sessions<T: Send + 'static>(
        &self,
        wrap: impl Fn(usize, Box<dyn Transport>) -> Box<dyn Transport>,
        patience: Duration,
        body: impl Fn(&Session) -> Result<T> + Clone + Send + 'static,
    ) -> Vec<Result<T>> {
        let threads: Vec<_> = local_mesh(self.base.parties(), patience)
            .into_iter()
            .enumerate()
            .map(|(party, transport)| {
                let body = body.clone();
                let transport = wrap(party, Box::new(transport));
                thread::spawn(move || {
                    let session = Session::new(transport)?;
                    let result = body(&session);
                    if let Err(error) = &result {
                        session.abort(&error.to_string());
                    }
                    result
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    }
}

/// An honest party without one of its checks.
pub(super) struct Omits(pub Check);

impl Adversary for Omits {
    fn omits(&self, check: Check) -> bool {
        check == self.0
    }
}

/// What the honest parties got, and the checks that failed there.
pub(super) struct Outcome<T> {
    pub outputs: Vec<T>,
    pub checks: Vec<Check>,
    pub errors: Vec<String>,
}

impl<T: PartialEq> Outcome<T> {
    pub fn new(results: Vec<Result<T>>, corrupt: usize) -> Self {
        let (mut outputs, mut checks, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        for (party, result) in results.into_iter().enumerate() {
            if party == corrupt {
                continue;
            }
            match result {
                Ok(output) => outputs.push(output),
                Err(error) => {
                    if let EngineError::Check { check, .. } = &error {
                        checks.push(*check);
                    }
                    errors.push(error.to_string());
                }
            }
        }
        Self {
            outputs,
            checks,
            errors,
        }
    }

    /// Whether nobody got anything but what is wanted, somebody stopped, and only these checks said why.
    pub fn is_caught(&self, by: &[Check], wanted: &T) -> bool {
        let reason = !self.checks.is_empty() && self.checks.iter().all(|check| by.contains(check));
        self.outputs.iter().all(|output| output == wanted) && reason
    }
}

/// `n` inputs of a party: `first`, `first + 1`, and so on.
pub(super) fn input(engine: &mut dyn Engine, owner: usize, n: usize, first: i64) -> Result<Handle> {
    let values: Vec<i64> = (first..).take(n).collect();
    let mine = (engine.party().0 == owner).then_some(values.as_slice());
    engine.input(owner, n, mine)
}

/// Bits of a party, of which every `period`-th is set.
pub(super) fn input_bits(
    engine: &mut dyn Engine,
    owner: usize,
    n: usize,
    period: usize,
) -> Result<Handle> {
    let bits: Vec<u8> = (0..n).map(|i| u8::from(i % period == 0)).collect();
    let mine = (engine.party().0 == owner).then_some(bits.as_slice());
    engine.input_bits(owner, n, mine)
}

/// Opens and reads elements.
pub(super) fn opened(engine: &mut dyn Engine, value: &Handle) -> Result<Vec<u64>> {
    let opened = engine.open(value)?;
    engine.read(&opened)
}

/// A program that is attacked, and its result. Parties 1 and 2 give inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// A value of party 1, opened.
    Opening,
    /// The same, opened to party 0.
    OpeningToOne,
    /// Products.
    Products,
    /// So many products that the check takes steps.
    ManyProducts,
    /// Inner products.
    InnerProducts,
    /// Products of bits.
    Ands,
    /// So many that the check takes steps.
    ManyAnds,
    /// Bits as elements.
    Conversion,
    /// Random bits, and whether they are bits.
    RandomBits,
}

impl Program {
    pub const ALL: [Self; 9] = [
        Self::Opening,
        Self::OpeningToOne,
        Self::Products,
        Self::ManyProducts,
        Self::InnerProducts,
        Self::Ands,
        Self::ManyAnds,
        Self::Conversion,
        Self::RandomBits,
    ];

    /// Elements of an operand.
    pub fn size(self) -> usize {
        match self {
            Self::ManyProducts | Self::ManyAnds => 5000,
            Self::InnerProducts => 60,
            Self::Ands | Self::Conversion | Self::RandomBits => 70,
            _ => 4,
        }
    }

    pub fn run(self, engine: &mut dyn Engine) -> Result<Vec<u64>> {
        let n = self.size();
        match self {
            Self::Opening => {
                let x = input(engine, 1, n, 3)?;
                opened(engine, &x)
            }
            Self::OpeningToOne => {
                let x = input(engine, 1, n, 3)?;
                let personal = engine.open_to(&x, 0)?;
                engine.flush()?;
                match engine.party().0 {
                    0 => engine.read(&personal),
                    _ => Ok(self.wanted()),
                }
            }
            Self::Products | Self::ManyProducts => {
                let (x, y) = (input(engine, 1, n, 3)?, input(engine, 2, n, 10)?);
                let product = engine.mul(&x, &y)?;
                opened(engine, &product)
            }
            Self::InnerProducts => {
                let (x, y) = (input(engine, 1, n, 3)?, input(engine, 2, n, 10)?);
                let product = engine.dot(&x, &y, n / 3)?;
                opened(engine, &product)
            }
            Self::Ands | Self::ManyAnds => {
                let (x, y) = (input_bits(engine, 1, n, 2)?, input_bits(engine, 2, n, 3)?);
                let both = engine.and(&x, &y)?;
                let both = engine.open(&both)?;
                Ok(engine
                    .read_bits(&both)?
                    .into_iter()
                    .map(u64::from)
                    .collect())
            }
            Self::Conversion => {
                let bits = input_bits(engine, 1, n, 3)?;
                // Random bits, so that all parties have summands of them.
                let random = engine.random_bits(n)?;
                let masked = engine.xor(&bits, &random)?;
                let masked = engine.xor(&masked, &random)?;
                let elements = engine.bit_to_arith(&masked)?;
                opened(engine, &elements)
            }
            Self::RandomBits => {
                let bits = engine.random_bit(n)?;
                let squares = engine.mul(&bits, &bits)?;
                let zeros = engine.sub(&squares, &bits)?;
                opened(engine, &zeros)
            }
        }
    }

    /// Whether a party gives an input.
    pub fn has_input_of(self, party: usize) -> bool {
        match self {
            Self::Opening | Self::OpeningToOne | Self::Conversion => party == 1,
            Self::RandomBits => false,
            _ => party == 1 || party == 2,
        }
    }

    pub fn wanted(self) -> Vec<u64> {
        let n = self.size() as u64;
        match self {
            Self::Opening | Self::OpeningToOne => (3..3 + n).collect(),
            Self::Products | Self::ManyProducts => (0..n).map(|i| (3 + i) * (10 + i)).collect(),
            Self::InnerProducts => (0..3)
                .map(|k| {
                    let group = k * n / 3..(k + 1) * n / 3;
                    group.map(|i| (3 + i) * (10 + i)).sum()
                })
                .collect(),
            Self::Ands | Self::ManyAnds => (0..n).map(|i| u64::from(i % 6 == 0)).collect(),
            Self::Conversion => (0..n).map(|i| u64::from(i % 3 == 0)).collect(),
            Self::RandomBits => vec![0; self.size()],
        }
    }
}

#[test]
fn programs_of_the_cases_are_right() {
    for base in Base::ALL {
        for program in base.programs() {
            let setting = Setting::honest(PRIME).over(base);
            for result in setting.run(move |engine| program.run(engine)) {
                assert_eq!(result.unwrap(), program.wanted(), "{base:?} {program:?}");
            }
        }
    }
}

/// A field, for formulas of costs.
pub(super) fn field(prime: u64) -> impl Domain<E = u64> {
    Zq::new(prime).unwrap()
}
