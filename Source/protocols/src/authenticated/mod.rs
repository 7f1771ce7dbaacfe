//! Additive sharing with MACs, n ≥ 2 parties, n − 1 corruptions, malicious, security with abort: `spdz2k` modulo 2^k, `mascot`
//! over prime fields; packed bits are [`binary`].
//!
//! x = Σ x_i; party i has a key α_i of 48 bits, and the parties share x·α for α = Σ α_i: part 0 of a share is x_i, part 1 the
//! share of the MAC. That everybody has one key towards all others is checked first (`keys`). Modulo 2^k both live modulo 2^(k + 48); a value is what they say modulo 2^k, and what a program opens
//! is masked by 2^k times a random element. MACs are sharings of x·α_j by pairs of parties (`values`; `silent`, where there are many over a field), triples come from
//! oblivious transfer with amplified privacy, checked by sums of random subsets (`triples`, `subset_sums`), bits that are shared in both domains from products of choice
//! bits with random elements, put in buckets (`mixed`, `dabits`), numbers with their bits from cut and choose (`edabits`). What is opened is verified (`verify`) before a value is given to the caller, before the program opens something else, and at
//! the end of every batch of correlated randomness.
//!
//! Sources: Keller, Orsini, Scholl, "MASCOT" (CCS 2016); Cramer, Damgård, Escudero, Scholl, Xing, "SPDZ2k" (CRYPTO 2018).

pub mod binary;
mod dabits;
mod descriptors;
mod edabits;
mod keys;
mod mixed;
mod openings;
mod operations;
mod preprocessing;
mod private;
#[cfg(test)]
mod shapes;
mod silent;
mod subset_sums;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod testing;
mod triples;
pub(crate) mod values;
pub(crate) mod verify;

use keyquorum_math::{Domain, DomainKind, Element, Prg, bits};
use keyquorum_ot::MacKey;
use keyquorum_ot::vole::{self, FixedKey, Multiplicand};
use zeroize::{Zeroize, Zeroizing};

use super::{Arithmetic, BITS, Channel};
use super::{ShareTask, cut_lanes, group_sums, lane_bits, lanes};
use crate::adversary::{Corruption, Site};
use crate::error::{EngineError, Result};
use crate::task::{SendFn, Step, at_start, then, within};
use crate::value::Share;
use binary::AuthenticatedBits;
pub use descriptors::{MASCOT, SPDZ2K};
pub use descriptors::{MacOpening, open_engine};
use openings::open;
use preprocessing::Preprocessing;
#[cfg(test)]
pub(super) use silent::to_places;
use verify::Verifier;

/// Component vectors of a share of elements.
const PARTS: usize = 2;

/// Bits of the MAC keys, and of the shares modulo 2^k on top of k.
pub const MAC_BITS: u32 = vole::KEY_BITS;

/// Oblivious transfer with one peer, and products with MAC keys.
pub struct Peer {
    /// Malicious-secure oblivious transfer.
    pub channel: Channel,
    /// Products of our vectors with the peer's key.
    pub give: Multiplicand,
    /// Products of the peer's vectors with our key.
    pub keep: FixedKey,
}

/// One party of the protocol.
pub struct Authenticated<A: Arithmetic> {
    me: usize,
    parties: usize,
    /// The domain of the shares.
    domain: A,
    /// The domain of the values.
    visible: A,
    /// α_i.
    key: A::E,
    peers: Vec<Option<Peer>>,
    /// `pairs[j]`: the stream of which we deal to party j, and the one of which j deals to us.
    pairs: Vec<Option<(Prg, Prg)>>,
    private: Prg,
    bits: AuthenticatedBits,
    /// Whether the peers' keys were found to be the same towards all.
    keys_checked: bool,
    verifier: Verifier<A::E>,
    preprocessing: Preprocessing<A::E>,
    /// Challenges that were cut off under the keys of this session.
    pub cut_offs: u32,
    /// Whether many elements may come from learning parity with noise (`silent`).
    lpn: bool,
    /// Whether openings under masks are verified together, before something else is opened.
    deferred: bool,
    adversary: Corruption,
}

impl<A: Arithmetic> Drop for Authenticated<A> {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

/// An opening of which the result must be verified before it is read.
fn exposing<A: Arithmetic, V: 'static>(
    task: SendFn<Authenticated<A>, V>,
) -> SendFn<Authenticated<A>, V> {
    at_start(move |p: &mut Authenticated<A>| {
        p.bits.exposed = true;
        Ok(task)
    })
}

/// The binary part, for [`within`].
fn bits<A: Arithmetic>(p: &mut Authenticated<A>) -> Result<&mut AuthenticatedBits> {
    Ok(&mut p.bits)
}

impl<A: Arithmetic> Authenticated<A> {
    /// Party `me`, with values in `visible` and shares in `domain`; `key` is that of all its links, `peers` and `pairs` have
    /// an entry a party, `None` for ourselves.
    pub fn new(
        (me, key): (usize, &MacKey),
        (visible, domain): (A, A),
        peers: Vec<Option<Peer>>,
        pairs: Vec<Option<(Prg, Prg)>>,
        private: Prg,
        bits: AuthenticatedBits,
        adversary: Corruption,
    ) -> Self {
        let parties = peers.len();
        let key = domain.from_u128(u128::from(key.element()));
        adversary.sees_elements(Site::Key, me, &domain, &[key]);
        Self {
            me,
            parties,
            key,
            visible,
            domain,
            peers,
            pairs,
            private,
            bits,
            keys_checked: parties < 3,
            verifier: Verifier::default(),
            preprocessing: Preprocessing::new(parties),
            cut_offs: 0,
            lpn: true,
            deferred: false,
            adversary,
        }
    }

    /// Without the assumption of learning parity with noise, elements are multiplied by keys one by one. The same at all parties.
    pub fn with_lpn(mut self, lpn: bool) -> Self {
        self.lpn = lpn;
        self
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<A> {
        let me = self.me;
        (0..self.parties).filter(move |peer| *peer != me)
    }

    fn peer(&mut self, peer: usize) -> Result<&mut Peer> {
        self.peers
            .get_mut(peer)
            .and_then(Option::as_mut)
            .ok_or_else(|| EngineError::usage(format!("no oblivious transfer with party {peer}")))
    }

    fn draw(&mut self, n: usize) -> Zeroizing<Vec<A::E>> {
        let mut out = Zeroizing::new(vec![self.domain.zero(); n]);
        self.domain.random(&mut self.private, &mut out);
        out
    }

    /// The factor of the part of a share above its value: 2^k; `None` in a field.
    fn overflow(&self) -> Option<A::E> {
        match (self.visible.kind(), self.domain.kind()) {
            (DomainKind::Z2k(k), DomainKind::Z2k(l)) if k < l => {
                Some(self.domain.from_u128(1 << k))
            }
            _ => None,
        }
    }

    fn add_public(&self, share: &mut Share<A::E>, values: &[A::E]) -> Result<()> {
        share.check(PARTS, values.len())?;
        if self.me == 0 {
            self.domain.add_assign(share.part_mut(0)?, values);
        }
        let mut product = Zeroizing::new(values.to_vec());
        self.domain.mul_scalar_assign(&mut product, self.key);
        self.domain.add_assign(share.part_mut(1)?, &product);
        Ok(())
    }

    fn sub_public(&self, share: &mut Share<A::E>, values: &[A::E]) -> Result<()> {
        let mut negative = values.to_vec();
        self.domain.neg_assign(&mut negative);
        self.add_public(share, &negative)
    }

    fn add(&self, x: &mut Share<A::E>, y: &Share<A::E>) -> Result<()> {
        x.combine(y, |x, y| self.domain.add_assign(x, y))
    }

    fn sub(&self, x: &mut Share<A::E>, y: &Share<A::E>) -> Result<()> {
        x.combine(y, |x, y| self.domain.sub_assign(x, y))
    }

    /// Adds a fresh sharing of zero, dealt by `owner`, which alone knows what it is added to: openings of sums must not reveal
    /// the summands.
    fn add_sharing_of_zero(&mut self, owner: usize, shares: &mut [A::E]) -> Result<()> {
        let mut draw = Zeroizing::new(vec![self.domain.zero(); shares.len()]);
        for (peer, pair) in self.pairs.iter_mut().enumerate() {
            if peer == self.me || (self.me != owner && peer != owner) {
                continue;
            }
            let (to, from) = pair
                .as_mut()
                .ok_or_else(|| binary::correlate::missing(peer))?;
            if self.me == owner {
                self.domain.random(to, &mut draw);
                self.domain.sub_assign(shares, &draw);
            } else {
                self.domain.random(from, &mut draw);
                self.domain.add_assign(shares, &draw);
            }
        }
        Ok(())
    }

    /// Values as they are seen.
    fn reduced(&self, mut values: Vec<A::E>) -> Vec<A::E> {
        for v in &mut values {
            *v = self.visible.from_u128(v.to_u128());
        }
        values
    }

    /// Products from triples, summed over groups. Masked operands are opened in one round, two elements a product and peer.
    fn beaver(&mut self, x: Share<A::E>, y: Share<A::E>, length: usize) -> ShareTask<Self, A::E> {
        self.preprocessing.triples.need(x.len());
        Self::multiply(x, y, length)
    }

    /// [`Authenticated::beaver`] with triples that were asked for.
    fn multiply(x: Share<A::E>, y: Share<A::E>, length: usize) -> ShareTask<Self, A::E> {
        let n = x.len();
        at_start(move |p: &mut Self| {
            let [a, am, b, bm, c, cm] = p.preprocessing.triples.take(n)?;
            let (a, b) = (Share { parts: vec![a, am] }, Share { parts: vec![b, bm] });
            let mut c = Share { parts: vec![c, cm] };
            let (mut masked, y) = (x, y);
            p.sub(&mut masked, &a)?;
            let mut second = y.duplicate();
            p.sub(&mut second, &b)?;
            masked.append(&second)?;
            Ok(then(open(masked), move |p: &mut Self, opened| {
                // With e = x − a and f = y − b: x·y = e·y + f·a + c.
                let (e, f) = opened.split_at(n);
                c.combine(&y, |c, y| p.domain.mul_acc(c, e, y))?;
                c.combine(&a, |c, a| p.domain.mul_acc(c, f, a))?;
                let parts = std::mem::take(&mut c.parts)
                    .into_iter()
                    .map(|part| group_sums(&p.domain, part, length));
                Ok(Share {
                    parts: parts.collect::<Result<_>>()?,
                })
            }))
        })
    }

    /// b ⊕ r is opened for a random bit r shared in both domains: one bit a bit and peer, one round.
    fn convert(&mut self, bits: Share<u64>, n: usize) -> ShareTask<Self, A::E> {
        self.preprocessing.need_bits(lanes(n));
        Self::converted(bits, n)
    }

    /// [`Authenticated::convert`] with random bits that were asked for.
    fn converted(mut masked: Share<u64>, n: usize) -> ShareTask<Self, A::E> {
        let count = lanes(n);
        at_start(move |p: &mut Self| {
            for part in &mut masked.parts {
                cut_lanes(part, n)?;
            }
            let (random, mut elements) = p.preprocessing.take_bits(count)?;
            masked.combine(&random, |bits, random| BITS.add_assign(bits, random))?;
            elements.parts.iter_mut().for_each(|part| part.truncate(n));
            let opened = within(p.bits.open(masked), bits::<A>);
            Ok(then(opened, move |p, opened| {
                let clear = lane_bits(&p.domain, &opened, n)?;
                p.flip(&mut elements, &clear)?;
                Ok(elements)
            }))
        })
    }

    /// Shared bits ⊕ public ones: b + c − 2bc.
    fn flip(&self, share: &mut Share<A::E>, clear: &[A::E]) -> Result<()> {
        share.check(PARTS, clear.len())?;
        let two = self.domain.add(self.domain.one(), self.domain.one());
        let mut factor = clear.to_vec();
        self.domain
            .mul_scalar_assign(&mut factor, self.domain.neg(two));
        self.domain
            .add_scalar_assign(&mut factor, self.domain.one());
        for part in &mut share.parts {
            self.domain.mul_assign(part, &factor);
        }
        self.add_public(share, clear)
    }

    fn input_elements(
        &mut self,
        owner: usize,
        n: usize,
        values: Option<Vec<A::E>>,
    ) -> Result<ShareTask<Self, A::E>> {
        let values = match values {
            Some(values) if values.len() == n => Some(Zeroizing::new(values)),
            None if self.me != owner => None,
            _ => {
                return Err(EngineError::usage(format!(
                    "party {owner} must share {n} values"
                )));
            }
        };
        self.preprocessing.input(owner)?.need(n);
        Ok(Box::new(move |p, out| {
            let [x, m, known] = p.preprocessing.input(owner)?.take(n)?;
            let (mut share, known) = (Share { parts: vec![x, m] }, Zeroizing::new(known));
            let domain = p.domain.clone();
            let mut masked = vec![domain.zero(); n];
            match &values {
                Some(values) if p.me == owner => {
                    masked.copy_from_slice(values);
                    domain.sub_assign(&mut masked, &known);
                    for peer in p.others() {
                        let sent = p
                            .adversary
                            .elements(Site::Input, Some(peer), &domain, &masked);
                        out.send(&domain, peer, &sent);
                    }
                    p.adversary
                        .change_elements(Site::Input, Some(p.me), &domain, &mut masked);
                }
                _ => out.expect(&domain, owner, n),
            }
            Ok(Box::new(move |p, inbox| {
                if p.me != owner {
                    masked = inbox.take(&domain, owner, n)?;
                }
                p.record(&masked);
                p.add_public(&mut share, &masked)?;
                Ok(Step::Done(share))
            }))
        }))
    }

    /// Notes a message that all parties must have got.
    fn record(&mut self, values: &[A::E]) {
        if self.parties > 2 {
            let mut bytes = Vec::with_capacity(self.domain.wire_bytes(values.len()));
            self.domain.encode(values, &mut bytes);
            self.bits.record(&bytes);
        }
    }

    /// Notes what a share was opened as.
    fn note(&mut self, share: &Share<A::E>, values: &[A::E]) -> Result<()> {
        let differences = self.differences(share, values)?;
        self.verifier.note(&differences);
        Ok(())
    }

    /// Our shares of the MACs without those of the values: their sums over the parties must be zero.
    fn differences(&self, share: &Share<A::E>, values: &[A::E]) -> Result<Zeroizing<Vec<A::E>>> {
        share.check(PARTS, values.len())?;
        let mut differences = Zeroizing::new(share.part(1)?.to_vec());
        let mut product = Zeroizing::new(values.to_vec());
        self.domain.mul_scalar_assign(&mut product, self.key);
        self.domain.sub_assign(&mut differences, &product);
        Ok(differences)
    }
}
