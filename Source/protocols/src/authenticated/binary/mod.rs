//! Authenticated bits among n ≥ 2 parties, n − 1 corruptions, malicious, security with abort.
//!
//! x = ⊕ x_i, party i has a key Δ_i of [`MAC_BITS`] bits, and the parties share x·Δ for Δ = ⊕ Δ_i: party i holds x_i and its
//! share m_i of the MAC, ⊕ m_i = x·Δ. A share is bit-sliced: part 0 is x_i, part 1 + j is bit j of m_i, 64 bits a lane.
//! XOR, AND with public bits, selection and concatenation work on every part alike.
//!
//! MACs of random bits are rows of correlated OTs with choices x_i (`correlate`), 12 bits a bit and ordered pair. ANDs take
//! triples (`leaky`, `buckets`, `triples`). What is opened is verified later (`verify`): no output may leave before
//! [`AuthenticatedBits::check`] has passed.
//!
//! A party may use different keys Δ_i towards different peers. MACs are then off by a function of the honest parties' shares,
//! so that later checks could reveal whether such a share was guessed. Where there is more than one peer the first thing that
//! is made is therefore a block of leaky AND triples, whose check then fails whatever the party does (`leaky`). That binds the keys of
//! bits alone: those of elements come from other base OTs, and have a check of their own (`super::keys`).

pub(super) mod adder;
pub(super) mod buckets;
pub(super) mod correlate;
mod leaky;
mod openings;
mod preprocessing;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod testing;
mod triples;
pub(crate) mod verify;

use std::sync::Arc;

use keyquorum_math::{Domain, Prg, mask_of};
use keyquorum_ot::MacKey;
use zeroize::Zeroizing;

use crate::adversary::{Corruption, Site};
use crate::error::{EngineError, Result};
use crate::guard::Guard;
use crate::task::{SendFn, Step, and_then, at_start, join, ready, then};
use crate::value::{Share, zip};
use crate::{BITS, BitProtocol, Channel, ClearTask, Preprocessed, ShareTask};
use openings::open;
use preprocessing::Preprocessing;
pub(super) use triples::{permutation, sliced, words};
use verify::Verifier;
pub use verify::commitment;
pub(super) use verify::{
    Committed, Toss, check, commit_and_compare, commit_comparing, commit_sums, exchange,
    finish_challenge, finish_toss, first_half, reveal_sums, reveal_sums_comparing, start_toss,
};

/// Bits of the MAC key: a wrong opening passes with probability 2^-48.
pub const MAC_BITS: usize = keyquorum_ot::BIT_MAC_BITS;
/// Component vectors of a share.
pub const PARTS: usize = 1 + MAC_BITS;

/// One party of the protocol. Methods that return a task communicate; the others are local. All parties call the same
/// methods in the same order with the same sizes, counted in lanes of 64 bits.
pub struct AuthenticatedBits {
    me: usize,
    parties: usize,
    channels: Vec<Option<Channel>>,
    /// `pairs[j]`: the stream of which we deal to party j, and the one of which j deals to us.
    pairs: Vec<Option<(Prg, Prg)>>,
    /// Whether the peers' keys were found to be the same towards all.
    keys_checked: bool,
    /// Our key, each bit spread over a lane.
    key: Zeroizing<[u64; MAC_BITS]>,
    /// Known to us alone.
    private: Prg,
    verifier: Verifier,
    /// Whether the program opens bits or elements in the next round.
    pub(super) opens: bool,
    /// Whether bits or elements were opened that must be verified before they are read.
    pub(super) exposed: bool,
    /// The session's guard. It is informed when our sums of a MAC check are open, and when they were right.
    pub guard: Arc<Guard>,
    preprocessing: Preprocessing,
    adversary: Corruption,
}

impl AuthenticatedBits {
    /// Party `me`. `channels` and `pairs` have an entry a party, `None` for ourselves. The channels are streams of
    /// malicious-secure links, on all of which the sender's key of MACs is the same.
    ///
    /// # Errors
    /// [`EngineError::Usage`] if they are not.
    pub fn new(
        me: usize,
        channels: Vec<Option<Channel>>,
        pairs: Vec<Option<(Prg, Prg)>>,
        private: Prg,
        adversary: Corruption,
    ) -> Result<Self> {
        let mut keys = channels
            .iter()
            .flatten()
            .map(|channel| channel.sender.key().macs().map(MacKey::bits));
        let first = Zeroizing::new(keys.next().flatten());
        if keys.any(|key| key != *first) {
            return Err(EngineError::usage(
                "links with different keys do not make authenticated bits: take those of one set-up",
            ));
        }
        let Some(first) = *first else {
            return Err(EngineError::usage(
                "links without keys of MACs do not make authenticated bits: set them up with keys",
            ));
        };
        let key: Zeroizing<[u64; MAC_BITS]> =
            Zeroizing::new(std::array::from_fn(|j| mask_of(first >> j)));
        adversary.sees_elements(Site::BitKey, me, &BITS, key.as_slice());
        let parties = channels.len();
        Ok(Self {
            me,
            parties,
            channels,
            pairs,
            keys_checked: parties < 3,
            key,
            private,
            verifier: Verifier::default(),
            opens: false,
            exposed: false,
            guard: Arc::default(),
            preprocessing: Preprocessing::new(parties),
            adversary,
        })
    }

    /// Our number and the number of parties.
    pub fn party(&self) -> (usize, usize) {
        (self.me, self.parties)
    }

    fn peers(&self) -> impl Iterator<Item = usize> + use<> {
        let me = self.me;
        (0..self.parties).filter(move |peer| *peer != me)
    }

    fn channel(&mut self, peer: usize) -> Result<&mut Channel> {
        self.channels
            .get_mut(peer)
            .and_then(Option::as_mut)
            .ok_or_else(|| EngineError::usage(format!("no oblivious transfer with party {peer}")))
    }

    /// Adds a fresh sharing of zero, dealt by `owner`, which alone knows what it is added to: openings of sums must not reveal
    /// the summands.
    fn add_sharing_of_zero(&mut self, owner: usize, shares: &mut [u64]) -> Result<()> {
        let mut draw = Zeroizing::new(vec![0; shares.len()]);
        for (peer, pair) in self.pairs.iter_mut().enumerate() {
            if peer == self.me || (self.me != owner && peer != owner) {
                continue;
            }
            let (to, from) = pair.as_mut().ok_or_else(|| correlate::missing(peer))?;
            if self.me == owner {
                to.fill_u64(&mut draw);
            } else {
                from.fill_u64(&mut draw);
            }
            BITS.add_assign(shares, &draw);
        }
        Ok(())
    }

    /// Adds public bits: party 0 to its share of the bits, everybody values·Δ_i to its share of the MACs.
    ///
    /// # Errors
    /// [`EngineError::Internal`] if the share has another shape, or other lanes than there are values.
    pub fn add_clear(&self, share: &mut Share<u64>, values: &[u64]) -> Result<()> {
        share.check(PARTS, values.len())?;
        let parts = share.parts.split_first_mut();
        let (bits, macs) = parts.ok_or_else(EngineError::uneven)?;
        if self.me == 0 {
            BITS.add_assign(bits, values);
        }
        for (part, key) in zip(macs, self.key.iter())? {
            for (word, value) in part.iter_mut().zip(values) {
                *word ^= value & key;
            }
        }
        Ok(())
    }

    /// Uniform bits that nobody knows, made before.
    pub fn random(&mut self, lanes: usize) -> SendFn<Self, Share<u64>> {
        self.preprocessing.random.need(lanes);
        at_start(move |p: &mut Self| {
            let [share] = p.preprocessing.random.take(lanes)?;
            Ok(ready(share))
        })
    }

    /// Shares bits of `owner` (`values` is `Some` there only): opened by it under bits that it knows alone. One round.
    ///
    /// # Errors
    /// [`EngineError::Usage`] if the owner has another number of lanes.
    pub fn input(
        &mut self,
        owner: usize,
        lanes: usize,
        values: Option<Vec<u64>>,
    ) -> Result<SendFn<Self, Share<u64>>> {
        let values = match values {
            Some(values) if values.len() == lanes => Some(Zeroizing::new(values)),
            None if self.me != owner => None,
            _ => {
                return Err(EngineError::usage(format!(
                    "party {owner} must share {lanes} lanes of bits"
                )));
            }
        };
        self.preprocessing.input(owner)?.need(lanes);
        Ok(Box::new(move |p, out| {
            let (mut share, known) = p.preprocessing.input(owner)?.take(lanes)?;
            let mut masked = vec![0; lanes];
            match &values {
                Some(values) if p.me == owner => {
                    masked.copy_from_slice(values);
                    BITS.add_assign(&mut masked, &known);
                    for peer in p.peers() {
                        let sent = p.adversary.bits(Site::BitInput, Some(peer), &masked);
                        out.send(&BITS, peer, &sent);
                    }
                    masked = p
                        .adversary
                        .bits(Site::BitInput, Some(p.me), &masked)
                        .into_owned();
                }
                _ => out.expect(&BITS, owner, lanes),
            }
            Ok(Box::new(move |p, inbox| {
                if p.me != owner {
                    masked = inbox.take(&BITS, owner, lanes)?;
                }
                p.verifier.record_words(&masked);
                p.add_clear(&mut share, &masked)?;
                Ok(Step::Done(share))
            }))
        }))
    }

    /// Notes a message that all parties must have got; the next check compares them.
    pub(super) fn record(&mut self, message: &[u8]) {
        self.verifier.record(message);
    }

    /// Asks for random bits that `owner` knows.
    pub(super) fn need_input(&mut self, owner: usize, lanes: usize) -> Result<()> {
        self.preprocessing.input(owner)?.need(lanes);
        Ok(())
    }

    /// Random bits that `owner` knows: shares, and the bits (zeros elsewhere).
    pub(super) fn take_input(
        &mut self,
        owner: usize,
        lanes: usize,
    ) -> Result<(Share<u64>, Zeroizing<Vec<u64>>)> {
        self.preprocessing.input(owner)?.take(lanes)
    }

    /// AND, from triples: both operands are opened under masks. One round, 2 bits an AND and peer.
    ///
    /// # Errors
    /// [`EngineError::Usage`] for operands of different sizes.
    pub fn and(&mut self, x: Share<u64>, y: Share<u64>) -> Result<SendFn<Self, Share<u64>>> {
        let lanes = x.len();
        if y.len() != lanes {
            return Err(EngineError::usage(format!(
                "an AND of {lanes} and {} lanes",
                y.len()
            )));
        }
        self.need_ands(lanes);
        Ok(Self::product(x, y))
    }

    /// Asks for triples.
    pub(super) fn need_ands(&mut self, lanes: usize) {
        self.preprocessing.ands.need(lanes);
    }

    /// [`AuthenticatedBits::and`] with triples that were asked for, of operands of one size.
    fn product(x: Share<u64>, y: Share<u64>) -> SendFn<Self, Share<u64>> {
        let lanes = x.len();
        at_start(move |p: &mut Self| {
            let [a, b, mut c] = p.preprocessing.ands.take(lanes)?;
            for share in [&x, &y, &a, &b, &c] {
                share.check(PARTS, lanes)?;
            }
            let mut masked = Share {
                parts: Vec::with_capacity(PARTS),
            };
            for ((x, y), (a, b)) in (x.parts.iter().zip(&y.parts)).zip(a.parts.iter().zip(&b.parts))
            {
                let sums = x.iter().chain(y).zip(a.iter().chain(b));
                masked.parts.push(sums.map(|(v, mask)| v ^ mask).collect());
            }
            drop(b);
            Ok(then(open(masked), move |_, opened| {
                // With e = x ⊕ a and f = y ⊕ b: x·y = c ⊕ e·y ⊕ f·a.
                let (e, f) = opened.split_at(lanes);
                for ((c, y), a) in c.parts.iter_mut().zip(&y.parts).zip(&a.parts) {
                    for ((((c, y), a), e), f) in c.iter_mut().zip(y).zip(a).zip(e).zip(f) {
                        *c ^= e & y ^ f & a;
                    }
                }
                Ok(c)
            }))
        })
    }

    /// Verifies everything that was opened so far, and that all parties got the same. Four rounds, five
    /// among more than two parties.
    pub fn check(&mut self) -> SendFn<Self, ()> {
        verify::check()
    }

    /// Whether something was opened that is not verified yet.
    pub fn unchecked(&self) -> bool {
        self.verifier.pending() > 0
    }

    /// The check that must pass before anything is made under the keys of bits; `None` if it was returned before, or if there is one peer.
    pub(super) fn key_check(&mut self) -> Option<SendFn<Self, ()>> {
        let checked = std::mem::replace(&mut self.keys_checked, true);
        (!checked).then(|| and_then(leaky::task(leaky::BLOCK), |_, _| Ok(verify::check())))
    }

    /// As [`crate::Party::prepare`]; also verifies when much was opened, which bounds memory.
    ///
    /// # Errors
    /// None at present.
    pub fn prepare(&mut self) -> Result<Option<SendFn<Self, ()>>> {
        if let Some(task) = self.key_check() {
            return Ok(Some(task));
        }
        let mut tasks = Vec::new();
        let bits = self.preprocessing.bits_to_make(self.parties);
        if !bits.is_empty() {
            tasks.push(correlate::random_bits(bits));
        }
        let triples = self.preprocessing.ands_to_make();
        if triples > 0 {
            tasks.push(triples::task(triples));
        } else if self.verifier.pending() > verify::MOST_PENDING {
            tasks.push(verify::check());
        }
        Ok(tasks
            .into_iter()
            .reduce(|a, b| join(a, b, |_, (), ()| Ok(()))))
    }

    /// Correlated randomness made and used so far.
    pub fn preprocessed(&self) -> Vec<Preprocessed> {
        self.preprocessing.preprocessed()
    }
}

impl BitProtocol for AuthenticatedBits {
    fn bit_parts(&mut self) -> Result<usize> {
        Ok(PARTS)
    }

    fn add_clear_bits(&mut self, share: &mut Share<u64>, values: &[u64]) -> Result<()> {
        self.add_clear(share, values)
    }

    fn random_bits(&mut self, lanes: usize) -> Result<Step<Self, Share<u64>>> {
        Ok(Step::Next(self.random(lanes)))
    }

    fn and(&mut self, a: &Share<u64>, b: &Share<u64>) -> Result<ShareTask<Self, u64>> {
        self.and(a.duplicate(), b.duplicate())
    }

    /// Bits that the program opens are verified before they are read.
    fn open_bits(&mut self, a: &Share<u64>) -> Result<ClearTask<Self, u64>> {
        self.opens = true;
        let task = open(a.duplicate());
        Ok(at_start(|p: &mut Self| {
            p.exposed = true;
            Ok(task)
        }))
    }

    fn input_bits(
        &mut self,
        owner: usize,
        lanes: usize,
        values: Option<Vec<u64>>,
    ) -> Result<ShareTask<Self, u64>> {
        self.input(owner, lanes, values)
    }
}

fn add(share: &mut Share<u64>, other: &Share<u64>) -> Result<()> {
    share.combine(other, |x, y| BITS.add_assign(x, y))
}
