//! How a corrupted party deviates from the protocol.
//!
//! Protocols of which programs are secure against malicious parties ask an [`Adversary`] wherever a party could deviate; it is given to them when they are made. Sessions give
//! [`Honest`]: an adversary is code of tests. So a protocol is the same code in tests and in a release. One exception: parties that are all in one process, which has all
//! secrets anyway, can leave out checks ([`Omitting`]), for tests of whole plans.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use keyquorum_math::{Domain, Element};

use crate::error::{Check, EngineError, Result};

/// Where a party could deviate, or learns something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Site {
    /// Our own share of the key of elements' MACs: seen.
    Key,
    /// Our own share of the key of bits' MACs, each bit spread over a lane: seen.
    BitKey,
    /// A tossed string: seen.
    Toss,
    /// The elements that get MACs, towards each peer.
    Vector,
    /// The message that multiplies them by the digits of the peer's key.
    Digit,
    /// The differences that make elements noise values, to each peer.
    Shift,
    /// The trees of a peer's noise, and what makes its MACs fit, to each peer.
    Trees,
    /// The choices of our OTs for the places of our noise, a word each: seen.
    Places,
    /// What our pseudorandom elements are made of, noise values last: seen.
    Base,
    /// Our pseudorandom elements, before they are checked: seen.
    Pseudorandom,
    /// The choices of the OTs of triples, in blocks of 128, towards each peer.
    Choices,
    /// The proof for the check of these OTs, to each peer.
    Proof,
    /// The operand of a triple that the choices of each peer multiply: our share of the key, one word.
    OperandKey,
    /// This operand: our shares of elements.
    Operand,
    /// This operand: our shares of the MACs of elements.
    OperandMac,
    /// The message with the products of a triple, to each peer.
    Payload,
    /// Our share of the other factors, before they are checked.
    Factor,
    /// Our share of the products, before they are checked.
    Product,
    /// Bits that we know, as elements.
    Bits,
    /// The factor of the bits of a peer: our share of the key.
    BitsTimesKey,
    /// This factor: our shares of elements.
    BitsTimesFactor,
    /// This factor: our shares of the MACs of elements.
    BitsTimesMac,
    /// Numbers that we know, as elements.
    Numbers,
    /// Numbers that test them, as elements.
    Tests,
    /// Our elements under a mask, to each peer and to ourselves.
    Input,
    /// Our shares of opened elements, to each peer and to ourselves; those of the others are seen.
    Opening,
    /// An element that is opened to us alone, before it is reduced: seen.
    Personal,
    /// Our part of the sum in the check of elements' MACs, a word; all parties' parts are seen.
    CheckSum,
    /// Our parts of the sums in the check of subset sums, words; all parties' parts are seen.
    SubsetSums,
    /// Our shares of the elements that test keys, to each peer and to ourselves; those of the others are seen.
    KeyOpening,
    /// Our parts of the sums in that test, words; all parties' parts are seen.
    KeySums,
    /// Our shares of the elements that test the keys of stored shares, to each peer and to ourselves; those of the others are seen.
    StoredKeyOpening,
    /// Our parts of the sums in that test, words; all parties' parts are seen.
    StoredKeySums,
    /// The choices of correlated OTs, in lanes, towards each peer.
    BitChoices,
    /// The message that sends them under masks, to each peer.
    BitCorrections,
    /// The proofs for the check of these OTs, to each peer.
    BitProof,
    /// The second operand of leaky triples and its MACs, in lanes, part after part, towards each peer.
    BitOperand,
    /// The message that corrects a peer's products, to each peer.
    BitPayload,
    /// Our bits under a mask, to each peer and to ourselves.
    BitInput,
    /// Our shares of opened bits, to each peer and to ourselves; those of the others are seen.
    BitOpening,
    /// Our part of the sums in the check of bits' MACs, 16 bytes a row; all parties' parts are seen.
    BitCheckSum,
    /// A commitment, to each peer and to ourselves.
    Commitment,
    /// The opening of a commitment, a nonce and the value, to each peer and to ourselves.
    Reveal,
    /// The digest of what we received, to each peer and to ourselves.
    Transcript,
    /// Without MACs: our summand of products, of inner products, and of those in their check (Shamir: our share of them, before it is dealt); replicated
    /// with a receiver, what is sent in its place.
    Summand,
    /// Shamir: what we deal, to each peer that does not derive it.
    Dealt,
    /// Without MACs: our summand or share of an opened vector, to each party that needs it.
    OpenedSummand,
    /// The copy of another summand or share, or its hash, to each party that compares it.
    Witness,
    /// The byte by which a party says that it has received everything so far, to each peer.
    Ready,
}

/// A corrupted party, or an honest one that leaves checks out. `to` is the receiver: `None` for all, and ourselves for the value with
/// which we go on.
pub trait Adversary: Send + Sync {
    /// Whether the party deviates or learns something here. Asked first, so that honest parties pay for nothing else.
    fn deviates(&self, _site: Site) -> bool {
        false
    }

    /// Changes elements, as integers.
    fn words(&self, _site: Site, _to: Option<usize>, _words: &mut [u128]) {}

    /// Changes bits.
    fn lanes(&self, _site: Site, _to: Option<usize>, _lanes: &mut [u64]) {}

    /// Changes a message.
    fn bytes(&self, _site: Site, _to: Option<usize>, _message: &mut Vec<u8>) {}

    /// Learns the message of a party, or a value of our own.
    fn sees(&self, _site: Site, _from: usize, _message: &[u8]) {}

    /// Whether this party ignores the verdict of this check, though it follows the protocol otherwise.
    fn omits(&self, _check: Check) -> bool {
        false
    }
}

/// A party that follows the protocol.
pub struct Honest;

impl Adversary for Honest {}

/// A party that follows the protocol, but ignores the verdicts of these checks.
pub struct Omitting(pub HashSet<Check>);

impl Adversary for Omitting {
    fn omits(&self, check: Check) -> bool {
        self.0.contains(&check)
    }
}

/// The adversary of a party, for all its protocols.
pub type Corruption = Arc<dyn Adversary>;

/// A party that follows the protocol, as sessions make it.
pub fn honest() -> Corruption {
    Arc::new(Honest)
}

impl dyn Adversary {
    /// The elements that are used in place of `values`.
    pub fn elements<'a, D: Domain>(
        &self,
        site: Site,
        to: Option<usize>,
        domain: &D,
        values: &'a [D::E],
    ) -> Cow<'a, [D::E]> {
        if !self.deviates(site) {
            return Cow::Borrowed(values);
        }
        let mut values = values.to_vec();
        self.change_elements(site, to, domain, &mut values);
        Cow::Owned(values)
    }

    /// Changes elements where they are.
    pub fn change_elements<D: Domain>(
        &self,
        site: Site,
        to: Option<usize>,
        domain: &D,
        values: &mut [D::E],
    ) {
        if !self.deviates(site) {
            return;
        }
        let mut words: Vec<u128> = values.iter().map(|value| value.to_u128()).collect();
        self.words(site, to, &mut words);
        for (value, word) in values.iter_mut().zip(words) {
            *value = domain.from_u128(word);
        }
    }

    /// Changes elements or lanes where they are, by their words: they must stay canonical.
    pub fn change_words<D: Domain>(
        &self,
        site: Site,
        to: Option<usize>,
        _: &D,
        values: &mut [D::E],
    ) {
        if !self.deviates(site) {
            return;
        }
        let mut words: Vec<u128> = values.iter().map(|value| value.to_u128()).collect();
        self.words(site, to, &mut words);
        for (value, word) in values.iter_mut().zip(words) {
            *value = D::E::from_u128_wrapping(word);
        }
    }

    /// The elements or lanes that are used in place of `values`: see [`Self::change_words`].
    pub fn changed_words<'a, D: Domain>(
        &self,
        site: Site,
        to: Option<usize>,
        domain: &D,
        values: &'a [D::E],
    ) -> Cow<'a, [D::E]> {
        if !self.deviates(site) {
            return Cow::Borrowed(values);
        }
        let mut values = values.to_vec();
        self.change_words(site, to, domain, &mut values);
        Cow::Owned(values)
    }

    /// The bits that are used in place of `bits`.
    pub fn bits<'a>(&self, site: Site, to: Option<usize>, bits: &'a [u64]) -> Cow<'a, [u64]> {
        if !self.deviates(site) {
            return Cow::Borrowed(bits);
        }
        let mut bits = bits.to_vec();
        self.lanes(site, to, &mut bits);
        Cow::Owned(bits)
    }

    /// The blocks of bits that are used in place of these.
    pub fn blocks<'a>(&self, site: Site, to: Option<usize>, blocks: &'a [u128]) -> Cow<'a, [u128]> {
        if !self.deviates(site) {
            return Cow::Borrowed(blocks);
        }
        let mut blocks = blocks.to_vec();
        self.words(site, to, &mut blocks);
        Cow::Owned(blocks)
    }

    /// Changes the component vectors of a share of bits, as one vector.
    pub fn change_parts(&self, site: Site, to: Option<usize>, parts: &mut [Vec<u64>]) {
        if !self.deviates(site) {
            return;
        }
        let mut all = parts.concat();
        self.lanes(site, to, &mut all);
        for (old, new) in parts.iter_mut().flatten().zip(all) {
            *old = new;
        }
    }

    /// Changes a message that begins at `start` of a buffer.
    pub fn change_message(
        &self,
        site: Site,
        to: Option<usize>,
        buffer: &mut Vec<u8>,
        start: usize,
    ) {
        if !self.deviates(site) {
            return;
        }
        let mut message = buffer.split_off(start.min(buffer.len()));
        self.bytes(site, to, &mut message);
        buffer.append(&mut message);
    }

    /// Learns the elements that another party sent.
    pub fn sees_elements<D: Domain>(&self, site: Site, from: usize, domain: &D, values: &[D::E]) {
        if self.deviates(site) {
            let mut bytes = Vec::with_capacity(domain.wire_bytes(values.len()));
            domain.encode(values, &mut bytes);
            self.sees(site, from, &bytes);
        }
    }

    /// The verdict of a check, unless the check is omitted; asked only when one has failed.
    pub fn judge<T>(&self, result: Result<T>) -> Result<Option<T>> {
        match result {
            Err(EngineError::Check { check, .. }) if self.omits(check) => Ok(None),
            other => other.map(Some),
        }
    }
}
