//! Verified honest majority: a wrapper around a semi-honest protocol whose products it verifies (`mal-rep-field`, `mal-rep-ring`, `mal-shamir`).
//! Secure with abort against malicious parties, static corruption: single programs (docs/pages/security/verified-products.md). This page is about replicated sharing over fields; `shamir/verified.rs` and `ring` say what is different there.
//!
//! # Idea
//!
//! In a protocol with an honest majority the shares of the honest parties determine every value. What corrupt parties send in a product
//! adds an error to it that they know, and changes nothing else (secure up to an additive attack: Genkin, Ishai, Prabhakaran, Sahai, Tromer, STOC 2014; for these two sharings Lindell and Nof, CCS 2017).
//! So the wrapper runs the semi-honest protocol, and remembers operands and results of products and inner products. Before anything that may
//! depend on a wrong product is sent in the clear, it verifies all of them at once (`check`): before every round that opens a value, before a
//! value or a share is given to the caller, and whenever more than 2^20 terms wait, or 2^24 of packed bits. Openings are compared when they arrive ([`Verifiable::open_checked`]).
//!
//! # What is checked, message by message
//!
//! For `P` = [`Replicated`](super::Replicated), of three parties i, each pair of which has a stream in common. One party is corrupt, so the summand s_j
//! of a value, held by parties j and j + 1, is held by an honest party.
//!
//! | message | from, to | checked by |
//! | --- | --- | --- |
//! | product, inner product, AND: a masked summand | i to i + 1 | the check of products. The summand is also the receiver's share, so the honest shares are always consistent |
//! | input: a summand | owner to the party before it | nothing to check: each summand goes to one honest party at most that does not have it from a stream, so every message is the sharing of some input |
//! | `bit_to_arith`, `random_bit`: three such inputs | parties 1, 0, 2 | the first must be b₀·b₁, the sum of the others a product with b₂: an inner product of two terms, in the check of products. Only one of the two can be wrong, as one party is corrupt |
//! | opening, to all or one: the missing summand | i to i + 1 | a copy of it from the party i + 2 that also holds it (a hash, if that is shorter), in the same round |
//! | check of products: masked summands | i to i + 1 | the check itself: a wrong one is an error of the claim of its step |
//! | check of products: masked operands, the verdict | both holders to the third | a copy: these openings are as all others |
//! | ends of chains of coins; a hash of all ends | all to all | the hashes must be equal (`coins`) |
//! | challenges: a link of its chain from each party | all to all | the link before it, or the end of the chain, is its hash |
//! | the byte before an opening | all to all | the byte |
//! | shares in files | none | all parties compare the name of the run that stored them, which was tossed (`ops/stored.rs`) |
//! | random elements and bits, sums, summands in bits | none | no message |
//!
//! Not supported, and refused: the protocol's own shuffle (its messages add an error to single entries that no product shows).
//! Every message has the length and the canonical elements that the receiver expects, or it is refused ([`crate::round`]).
//!
//! # Security
//!
//! *Rounds.* A party goes on when it has the messages that it expects itself, so a corrupt party may withhold a message from one honest party, and see what the other one sends next. Two rules
//! make this harmless. An honest party sends nothing of a round before it has received, and accepted, all messages that it expects of earlier rounds, in all engines of the session
//! ([`crate::round`] takes every message before it returns). And nobody gets a challenge, or anything of an opening that may depend on an input, before every honest party has sent a message of that round or of a
//! later one than the last input: so all messages to honest parties of the rounds before are fixed (`coins` has the argument). What a corrupt party sends in an opening, or later in the check, is compared
//! with a copy; a party that sees opened values first can only end the session. A round that takes inputs opens nothing ([`Turn`]).
//!
//! *Privacy until the check.* Messages of products are masked by a stream that their receiver does not have. Inputs are masked likewise. The values that
//! are opened are those of the program's ideal run, because the products before them were verified, and the two copies of their summands agree.
//! An opening is never sent on the strength of an unchecked one: both honest parties have the same opened values, or one of them stops in that round.
//!
//! *Error of the check.* Let the products have errors δ_i, not all zero, in a field of q elements. The check tosses its factors after all products, so Σ c_i δ_i = 0 with
//! probability 1/q. (Of packed bits 64 have one tossed factor: `packed` says why that is as good.) A step with v variables sends claims of a polynomial of degree 2 in each of them; if the claim before was wrong, so is the polynomial,
//! and at a tossed point the next claim is right with probability at most 2v/q (Schwartz-Zippel; the sum check of Lund, Fortnow, Karloff, Nisan, 1992; for shared products
//! Boneh, Boyle, Corrigan-Gibbs, Gilboa, Ishai, CRYPTO 2019, Boyle, Gilboa, Ishai, Nof, CCS 2019, and Goyal and Song, ePrint 2020/134). The last step multiplies by a tossed factor and compares with masked operands: 1/q more.
//! A run of the check with V variables in all is wrong with probability at most (2V + 2)/q. Runs with tosses of their own are repeated side by side until the product is below 2^-40 ([`check::repetitions`]).
//! The adversary has one attempt: a failed check ends the session, and so does whatever else goes wrong ([`crate::guard`]), as who knows a challenge first can break off. So 2^-40 is the bound of a session, however many engines and checks it has.
//!
//! *Abort reveals nothing.* The verdict is a public combination of the errors that the adversary chose, which it can compute itself: whether the check fails does not depend on the
//! honest parties' secrets. The operands that the last step opens are masked by uniform elements.
//!
//! Tosses come from a stream of AES-128 whose seed is the hash of a committed number of every party (random oracle: `coins`). The errors are fixed before anybody but honest parties knows all numbers, so an
//! adversary that passes more often than with uniform factors distinguishes the stream.
//!
//! # Several engines, and plans
//!
//! Engines of a session that verify products run side by side, in several domains: what one opens waits for the inputs of all ([`Unsettled`]). A plan flushes the engines that have taken inputs before another one opens; otherwise the opening is refused.
//! Each engine has chains of coins of its own, and checks its own products. Nothing connects a value of one domain with that of another: plans need sources of numbers that are the same in all domains, from the streams that parties have in common (`joint.rs`).
//!
//! Groups of parties are refused. For them every group needs an [`Unsettled`] of its own, and all parties of the session have to be awaited before a group opens anything that depends on what others put in.
//!
//! # Costs
//!
//! Products and conversions send what the semi-honest protocol sends. A check of 2^20 terms sends some 500 elements a party in 13 rounds, 11 for packed bits (`packed`), one of up to 256 terms
//! as many elements as there are terms, and a few, in 4. Formulas: `check::elements` and `check::rounds`, asserted in `mpc/src/tests/verified/costs.rs`. Before the first check of an engine there are two rounds,
//! before an opening that follows inputs without a check one. An opening sends 32 bytes more a vector.

#[cfg(any(test, feature = "testing"))]
pub mod ablated;
pub mod check;
mod coins;
mod extension;
mod gf64;
pub mod packed;
mod pending;
pub mod ring;

use std::sync::Arc;

use keyquorum_math::{Domain, DomainKind, Prg};
use sha2::{Digest, Sha256};

use self::check::{MOST_TOSSES, SECURITY, verify, verify_shares};
use self::coins::Coins;
pub use self::coins::different_seeds;
pub use self::gf64::Gf64;
#[cfg(test)]
pub(super) use self::gf64::multiply;
pub use self::pending::Product;
use self::pending::{MOST_BITS, MOST_PENDING, Pending};
use super::{BitProtocol, ClearTask, Origin, Party, Protocol, ShareTask, StoredShares, Turn};
use crate::adversary::Corruption;
use crate::error::{EngineError, Result};
use crate::task::{SendFn, Step, and_then, join, then, then_maybe, within};
use crate::unsettled::Unsettled;
use crate::value::Share;

/// A share of elements that were bits, and the products by which it was made.
pub type Converted<E> = (Share<E>, Vec<Product<E>>);

/// The part of a [`Verifiable`] protocol that computes on packed bits.
pub trait VerifiableBits: BitProtocol {
    /// [`Verifiable::open_checked`] of packed bits.
    ///
    /// # Errors
    /// As there.
    fn open_bits_checked(&mut self, a: &Share<u64>) -> Result<ClearTask<Self, u64>>;
}

/// A semi-honest protocol with an honest majority, whose products are right up to errors that the adversary knows.
pub trait Verifiable: Party<Bits: VerifiableBits> {
    /// The adversary of this party.
    fn adversary(&self) -> &Corruption;

    /// Changes the second operand of a product into vectors whose inner products with the parts of the first operand sum to our summand of
    /// the result. Linear and local.
    fn to_operand<D: Domain>(domain: &D, share: &mut Share<D::E>) -> Result<()>;

    /// The inverse of [`Verifiable::to_operand`].
    fn from_operand<D: Domain>(domain: &D, operand: &mut Share<D::E>) -> Result<()>;

    /// [`Protocol::random`] in any domain.
    fn random_elements<D: Domain>(
        &mut self,
        domain: &D,
        n: usize,
    ) -> Result<Step<Self, Share<D::E>>>;

    /// Shares of the sums of all parties' summands: the second half of a product. One round, one element each.
    fn reshare<D: Domain>(
        &mut self,
        domain: &D,
        summands: Vec<D::E>,
    ) -> Result<ShareTask<Self, D::E>>;

    /// Opens a share to everybody, and shows that all honest parties get the same. One round.
    ///
    /// # Errors
    /// [`EngineError::Check`] if somebody sends something else.
    fn open_checked<D: Domain>(
        &mut self,
        domain: &D,
        a: &Share<D::E>,
    ) -> Result<ClearTask<Self, D::E>>;

    /// [`Verifiable::open_checked`] to one party.
    fn open_checked_to<D: Domain>(
        &mut self,
        domain: &D,
        a: &Share<D::E>,
        receiver: usize,
    ) -> Result<SendFn<Self, Option<Vec<D::E>>>>;

    /// [`Protocol::bit_to_arith`] by products that can be verified.
    fn convert<D: Domain>(
        &mut self,
        domain: &D,
        bits: &Share<u64>,
        n: usize,
    ) -> Result<SendFn<Self, Converted<D::E>>>;

    /// [`Protocol::random_bit`] by products that can be verified.
    fn random_bits<D: Domain>(
        &mut self,
        domain: &D,
        n: usize,
    ) -> Result<SendFn<Self, Converted<D::E>>>;

    /// Whether a corrupt dealer can give the honest parties shares that belong to no value. Then inputs and results of products are verified as well.
    fn shares_may_disagree(&self) -> bool {
        false
    }

    /// A hash of the seeds of streams that this party, the peer and others have in common, if there are any: a corrupted party may have sent different ones.
    fn fingerprint(&self, _peer: usize) -> Option<[u8; 32]> {
        None
    }
}

/// Bytes of the hash of a vector.
const HASH: usize = 32;

/// What shows a receiver that it has the right vector: the vector again or, if it is longer, its hash.
pub fn witness<D: Domain>(domain: &D, vector: &[D::E]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(domain.wire_bytes(vector.len()));
    domain.encode(vector, &mut bytes);
    if bytes.len() <= HASH {
        return bytes;
    }
    Sha256::new_with_prefix(b"keyquorum-v1/opened vector")
        .chain_update(&bytes)
        .finalize()
        .to_vec()
}

/// Bytes of the [`witness`] of a vector of `n` elements.
pub fn witness_bytes<D: Domain>(domain: &D, n: usize) -> usize {
    domain.wire_bytes(n).min(HASH)
}

/// One party of the verified protocol over the domain `A`.
pub struct Verified<P, A: Domain> {
    inner: P,
    domain: A,
    elements: Pending<A::E>,
    /// Products of packed bits.
    bits: Pending<u64>,
    /// Inputs, and shares of files, that may be no sharing.
    dealt: Vec<Share<A::E>>,
    coins: Coins,
    /// What the tasks that were made since this was asked do next.
    turn: Turn,
    /// Whether something is opened in the next round.
    opens: bool,
    /// Whether a corrupted party may still choose an input, or a message of a product. Of all engines of the session.
    unsettled: Arc<Unsettled>,
    ablated: Ablated,
    /// Makes a toss: [`coins::tossed`], but in tests.
    tossed: fn() -> SendFn<Verified<P, A>, Prg>,
    /// Wrong products pass with probability below 2^-security.
    security: u32,
}

/// What an honest party leaves out, to show what it is there for: nothing, but in tests, which alone can set it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ablated {
    /// Challenges are opened random elements, which one honest party reveals alone.
    pub opens_coins: bool,
    /// There is no round in which all wait for all before an opening.
    pub opens_at_once: bool,
    /// Openings do not wait for inputs of the same round.
    pub opens_with_inputs: bool,
    /// Openings are not refused while inputs of other engines wait.
    pub opens_before_inputs: bool,
}

/// The semi-honest protocol, for [`within`].
fn inner<P, A: Domain>(p: &mut Verified<P, A>) -> Result<&mut P> {
    Ok(&mut p.inner)
}

/// Its bits.
fn inner_bits<P: Verifiable, A: Domain>(p: &mut Verified<P, A>) -> Result<&mut P::Bits> {
    p.inner.bits()
}

impl<P: Verifiable, A: Domain> Verified<P, A> {
    /// A party whose semi-honest protocol is `inner`. `private`: a stream that nobody else knows; `unsettled`: of the session.
    pub fn new(inner: P, domain: A, private: Prg, unsettled: Arc<Unsettled>) -> Self {
        Self {
            inner,
            domain,
            elements: Pending::new(1, MOST_PENDING),
            bits: Pending::new(64, MOST_BITS),
            dealt: Vec::new(),
            coins: Coins::new(private),
            turn: Turn::default(),
            opens: false,
            unsettled,
            ablated: Ablated::default(),
            tossed: coins::tossed,
            security: SECURITY,
        }
    }

    /// The same with a check that wrong products pass so often that a test sees it.
    #[cfg(any(test, feature = "testing"))]
    pub fn with_security(mut self, security: u32) -> Self {
        self.security = security;
        self
    }

    /// The same without some of its rounds.
    #[cfg(any(test, feature = "testing"))]
    pub fn without(mut self, ablated: Ablated) -> Self {
        self.ablated = ablated;
        if ablated.opens_coins {
            self.tossed = ablated::toss;
        }
        self
    }

    /// Notes products, to be verified later.
    fn record(&mut self, domain: &A, product: Product<A::E>) -> Result<()> {
        if domain.kind() != self.domain.kind() {
            return Err(EngineError::internal(format!(
                "products over {} that nobody verifies",
                domain.kind()
            )));
        }
        self.elements.push(product)
    }

    /// The check of the products that wait, at most so many terms of either kind as may wait, and then of the rest.
    fn next_check(&mut self) -> Result<Option<SendFn<Self, ()>>> {
        let elements = self.elements.take();
        let bits = self.bits.take();
        let mut dealt = std::mem::take(&mut self.dealt);
        if self.inner.shares_may_disagree() {
            dealt.extend(elements.iter().map(|product| product.z.duplicate()));
        }
        let mut products = self.checks(elements)?;
        if !bits.is_empty() {
            products.push(packed::verify_bits(self.security, bits)?);
        }
        let both = |one, other| join(one, other, |_, (), ()| Ok(()));
        let tosses = MOST_TOSSES * (1 + products.len());
        let products = products.into_iter().reduce(both);
        let shares =
            (!dealt.is_empty()).then(|| verify_shares(self.domain.clone(), self.security, dealt));
        let mut task = match (shares, products) {
            (None, None) => return Ok(None),
            (Some(task), None) | (None, Some(task)) => task,
            (Some(shares), Some(products)) => and_then(shares, |_, ()| Ok(products)),
        };
        if self.needs_coins(tosses) {
            task = and_then(coins::set_up(tosses), |_, ()| Ok(task));
        }
        Ok(Some(then_maybe(task, |p: &mut Self, ()| {
            Ok(match p.next_check()? {
                Some(next) => Step::Next(next),
                None => Step::Done(()),
            })
        })))
    }

    /// Checks of products of elements, to be run side by side.
    fn checks(&self, products: Vec<Product<A::E>>) -> Result<Vec<SendFn<Self, ()>>> {
        let (domain, security) = (self.domain.clone(), self.security);
        if products.is_empty() {
            return Ok(Vec::new());
        }
        if !matches!(domain.kind(), DomainKind::Z2k(_)) {
            return Ok(vec![verify(domain, security, products)?]);
        }
        ring::checks(&domain, security, products)
    }

    /// Whether there are too few coins for a check.
    fn needs_coins(&self, tosses: usize) -> bool {
        if self.ablated.opens_coins {
            return false;
        }
        self.coins.left() < tosses
    }

    /// Every party has received all messages of all earlier rounds.
    fn settle(&self) {
        self.unsettled.settle();
    }

    fn is_unsettled(&self) -> bool {
        !self.ablated.opens_at_once && self.unsettled.messages()
    }

    /// Refuses to open anything while an input waits. Inputs of this engine do not: their round opens nothing ([`Turn`]).
    fn refuse_before_inputs(&self) -> Result<()> {
        let Ablated {
            opens_before_inputs,
            opens_with_inputs,
            ..
        } = self.ablated;
        if opens_before_inputs || opens_with_inputs || !self.unsettled.inputs() {
            return Ok(());
        }
        Err(EngineError::usage(
            "an input of another program of this session was not sent yet, and could depend on what this one opens: run that program up to its inputs first",
        ))
    }

    /// An opening, which never goes out before everything that it may depend on was verified, and every party has received it.
    fn guarded<V: 'static>(&mut self, opened: SendFn<Self, V>) -> SendFn<Self, V> {
        self.turn.opens = true;
        Box::new(move |p: &mut Self, out| {
            if !p.opens || p.pending() > 0 || p.is_unsettled() {
                return Err(EngineError::internal(
                    "an opening before the check of what it may depend on",
                ));
            }
            opened(p, out)
        })
    }

    /// A task with messages of which a corrupted party may withhold one.
    fn unsettling<V: 'static>(task: SendFn<Self, V>) -> SendFn<Self, V> {
        then(task, |p: &mut Self, value| {
            p.unsettled.unsettle();
            Ok(value)
        })
    }

    /// An input, for which openings wait.
    fn awaited<V: 'static>(&mut self, input: SendFn<Self, V>) -> SendFn<Self, V> {
        self.turn.inputs = true;
        let (input, waiting) = (Self::unsettling(input), Unsettled::input(&self.unsettled));
        Box::new(move |p, out| {
            drop(waiting);
            input(p, out)
        })
    }

    /// Terms that wait.
    fn pending(&self) -> usize {
        let dealt: usize = self.dealt.iter().map(Share::len).sum();
        self.elements.terms() + self.bits.terms() + dealt
    }

    /// Whether more waits than may.
    fn overflows(&self) -> bool {
        let dealt: usize = self.dealt.iter().map(Share::len).sum();
        self.elements.overflows() || self.bits.overflows() || dealt > MOST_PENDING
    }

    /// Records the products of a conversion.
    fn recorded(domain: &A, converted: SendFn<P, Converted<A::E>>) -> ShareTask<Self, A::E> {
        let domain = domain.clone();
        let converted = Self::unsettling(within(converted, inner));
        then(converted, move |p: &mut Self, (share, products)| {
            for product in products {
                p.record(&domain, product)?;
            }
            Ok(share)
        })
    }
}

impl<P: Verifiable, A: Domain> Party for Verified<P, A> {
    type Bits = Self;

    fn party(&self) -> (usize, usize) {
        self.inner.party()
    }

    fn parts(&self) -> usize {
        self.inner.parts()
    }

    fn bits(&mut self) -> Result<&mut Self> {
        self.inner.bits()?;
        Ok(self)
    }

    fn has_binary(&self) -> bool {
        self.inner.has_binary()
    }

    fn take_turn(&mut self) -> Turn {
        let turn = std::mem::take(&mut self.turn);
        if self.ablated.opens_with_inputs {
            return Turn {
                inputs: false,
                ..turn
            };
        }
        turn
    }

    fn announce(&mut self, opens: bool) {
        self.opens = opens;
    }

    /// The check, if a value is opened next or too much waits; without a check, the round in which all wait for all.
    fn prepare(&mut self) -> Result<Option<SendFn<Self, ()>>> {
        if self.opens {
            self.refuse_before_inputs()?;
        }
        if self.inner.shares_may_disagree() && !self.coins.ready() {
            return Ok(Some(coins::set_up(0)));
        }
        if (self.opens && self.pending() > 0) || self.overflows() {
            return self.next_check();
        }
        if self.opens && self.is_unsettled() {
            return Ok(Some(coins::barrier()));
        }
        Ok(None)
    }

    fn preprocess(&mut self) -> Result<Option<SendFn<Self, ()>>> {
        Ok(None)
    }

    fn check(&mut self) -> Option<SendFn<Self, ()>> {
        if self.pending() == 0 {
            return None;
        }
        Some(Box::new(|p, out| {
            let check = p.next_check()?;
            let check = check.ok_or_else(|| EngineError::internal("no products to verify"))?;
            check(p, out)
        }))
    }
}

impl<P: Verifiable + Protocol<A>, A: Domain> StoredShares<A> for Verified<P, A> {
    fn origin(&self) -> Origin {
        Origin::Name
    }

    fn note_stored(&mut self, _: &A, share: &Share<A::E>) -> Result<()> {
        if self.inner.shares_may_disagree() && !share.is_empty() {
            self.dealt.push(share.duplicate());
        }
        Ok(())
    }
}

impl<P: Verifiable + Protocol<A>, A: Domain> Protocol<A> for Verified<P, A> {
    fn add_clear(&self, domain: &A, share: &mut Share<A::E>, values: &[A::E]) -> Result<()> {
        self.inner.add_clear(domain, share, values)
    }

    fn random(&mut self, domain: &A, n: usize) -> Result<Step<Self, Share<A::E>>> {
        match self.inner.random(domain, n)? {
            Step::Done(share) => Ok(Step::Done(share)),
            Step::Next(_) => Err(EngineError::internal(
                "random elements that parties deal, which nothing verifies",
            )),
        }
    }

    fn dot(
        &mut self,
        domain: &A,
        a: &Share<A::E>,
        b: &Share<A::E>,
        length: usize,
    ) -> Result<ShareTask<Self, A::E>> {
        let task = Self::unsettling(within(self.inner.dot(domain, a, b, length)?, inner));
        let (x, y, domain) = (a.duplicate(), b.duplicate(), domain.clone());
        Ok(then(task, move |p: &mut Self, result: Share<A::E>| {
            let z = result.duplicate();
            p.record(&domain, Product { x, y, z, length })?;
            Ok(result)
        }))
    }

    /// The check is over the engine's own ring.
    fn multiplies_in_any_ring(&self) -> bool {
        false
    }

    fn open(&mut self, domain: &A, a: &Share<A::E>) -> Result<ClearTask<Self, A::E>> {
        let opened = self.inner.open_checked(domain, a)?;
        Ok(self.guarded(within(opened, inner)))
    }

    fn open_to(
        &mut self,
        domain: &A,
        a: &Share<A::E>,
        receiver: usize,
    ) -> Result<SendFn<Self, Option<Vec<A::E>>>> {
        let opened = self.inner.open_checked_to(domain, a, receiver)?;
        Ok(self.guarded(within(opened, inner)))
    }

    fn input(
        &mut self,
        domain: &A,
        owner: usize,
        n: usize,
        values: Option<Vec<A::E>>,
    ) -> Result<ShareTask<Self, A::E>> {
        let input = within(self.inner.input(domain, owner, n, values)?, inner);
        let input = self.awaited(input);
        if !self.inner.shares_may_disagree() {
            return Ok(input);
        }
        Ok(then(input, |p: &mut Self, share: Share<A::E>| {
            p.dealt.push(share.duplicate());
            Ok(share)
        }))
    }

    fn random_bit(&mut self, domain: &A, n: usize) -> Result<ShareTask<Self, A::E>> {
        Ok(Self::recorded(domain, self.inner.random_bits(domain, n)?))
    }

    fn bit_to_arith(
        &mut self,
        domain: &A,
        bits: &Share<u64>,
        n: usize,
    ) -> Result<ShareTask<Self, A::E>> {
        Ok(Self::recorded(domain, self.inner.convert(domain, bits, n)?))
    }

    fn summands(&self) -> usize {
        self.inner.summands()
    }

    fn summand_bits(&self, domain: &A, a: &Share<A::E>, m: usize) -> Result<Vec<Vec<Share<u64>>>> {
        self.inner.summand_bits(domain, a, m)
    }
}

impl<P: Verifiable, A: Domain> Verified<P, A> {
    /// Shares of bits are not verified as dealt elements are.
    fn require_bits_that_agree(&self) -> Result<()> {
        if self.inner.shares_may_disagree() {
            return Err(EngineError::internal(
                "bits whose shares may belong to no value",
            ));
        }
        Ok(())
    }
}

/// Bits of the semi-honest protocol, whose ANDs are recorded.
impl<P: Verifiable, A: Domain> BitProtocol for Verified<P, A> {
    fn bit_parts(&mut self) -> Result<usize> {
        self.inner.bits()?.bit_parts()
    }

    fn add_clear_bits(&mut self, share: &mut Share<u64>, values: &[u64]) -> Result<()> {
        self.inner.bits()?.add_clear_bits(share, values)
    }

    fn random_bits(&mut self, lanes: usize) -> Result<Step<Self, Share<u64>>> {
        Ok(self.inner.bits()?.random_bits(lanes)?.within(inner_bits))
    }

    fn and(&mut self, a: &Share<u64>, b: &Share<u64>) -> Result<ShareTask<Self, u64>> {
        self.require_bits_that_agree()?;
        let task = within(self.inner.bits()?.and(a, b)?, inner_bits);
        let (x, y) = (a.duplicate(), b.duplicate());
        Ok(then(Self::unsettling(task), |p: &mut Self, z| {
            let result = z.duplicate();
            p.bits.push(Product { x, y, z, length: 1 })?;
            Ok(result)
        }))
    }

    fn open_bits(&mut self, a: &Share<u64>) -> Result<ClearTask<Self, u64>> {
        let opened = self.inner.bits()?.open_bits_checked(a)?;
        Ok(self.guarded(within(opened, inner_bits)))
    }

    fn input_bits(
        &mut self,
        owner: usize,
        lanes: usize,
        values: Option<Vec<u64>>,
    ) -> Result<ShareTask<Self, u64>> {
        self.require_bits_that_agree()?;
        let input = self.inner.bits()?.input_bits(owner, lanes, values)?;
        Ok(self.awaited(within(input, inner_bits)))
    }
}
