//! Corrupted parties, which deviate towards one victim or all. Every one must be caught before a value is given to the caller.
#![allow(clippy::indexing_slicing)]

use std::sync::Arc;

use keyquorum_math::{DomainKind, Element};

use crate::adversary::{Adversary, Corruption, Site, honest};
use crate::error::Check;
use crate::protocol::Arithmetic;

/// Where a corrupted party deviates, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deviation {
    /// Its vectors under the key of the victim are others than under those of the rest.
    Vector,
    /// Every digit of the key of the victim multiplies another vector.
    Digit,
    /// It makes another noise value of an element towards the victim.
    Shift,
    /// The sums of its first trees are others.
    Trees,
    /// Its choices in the OTs with the victim are not those of the other OTs, or of its words.
    Choices,
    /// Its proof for the OT extension is another.
    Proof,
    /// It multiplies another key by the choices of the victim.
    OperandKey,
    /// Another share of a.
    Operand,
    /// Another share of the MAC of a.
    OperandMac,
    /// Its share of the other factor.
    OtherFactor,
    /// One word of a payload.
    Payload,
    /// Its share of a product.
    Product,
    /// One of its bits is another as an element than packed.
    Bits,
    /// All of its bits are, alike.
    AllBits,
    /// It multiplies the bits of others by another value than its key.
    Key,
    /// This value differs by the largest power of two that a ring has.
    Top,
    /// It multiplies them by another value than its share of an element.
    Factor,
    /// It multiplies them by another value than its share of the MAC of an element.
    FactorMac,
    /// One of its numbers is another as an element.
    Number,
    /// All of its numbers are, and all tests.
    AllNumbers,
    /// One of its tests is.
    Test,
    /// All of its numbers are others above 2^k, where nothing counts (it changes no result).
    Above,
    /// Its part of the sum of the MAC check.
    Check,
    /// Its part of subset sums.
    SubsetSums,
    /// One of its inputs, to the victim: the others got another value.
    Input,
    /// Its share of an opened element.
    Opening,
    /// The same, to the victim only.
    OpeningToOne,
    /// Its choices in the OTs of bits with the victim.
    BitChoices,
    /// The corrections for them have different choices in different rows.
    BitCorrections,
    /// Its proof for these OTs is another.
    BitProof,
    /// The corrections of a product of bits.
    BitPayload,
    /// One of its input bits, to the victim.
    BitInput,
    /// Its share of an opened bit.
    BitOpening,
    /// The same, to the victim only.
    BitOpeningToOne,
    /// Its part of the sums of the MAC check of bits.
    BitCheck,
    /// It opens something else than it has committed to.
    Reveal,
    /// It has committed to something else than it opens.
    Commitment,
    /// Its digest of what it received, to the victim.
    Transcript,
}

impl Deviation {
    /// The sites where the party deviates.
    fn sites(self) -> &'static [Site] {
        match self {
            Self::Vector => &[Site::Vector],
            Self::Digit => &[Site::Digit],
            Self::Shift => &[Site::Shift],
            Self::Trees => &[Site::Trees],
            Self::Choices => &[Site::Choices],
            Self::Proof => &[Site::Proof],
            Self::OperandKey => &[Site::OperandKey],
            Self::Operand => &[Site::Operand],
            Self::OperandMac => &[Site::OperandMac],
            Self::OtherFactor => &[Site::Factor],
            Self::Payload => &[Site::Payload],
            Self::Product => &[Site::Product],
            Self::Bits | Self::AllBits => &[Site::Bits],
            Self::Key | Self::Top => &[Site::BitsTimesKey],
            Self::Factor => &[Site::BitsTimesFactor],
            Self::FactorMac => &[Site::BitsTimesMac],
            Self::Number | Self::Above => &[Site::Numbers],
            Self::AllNumbers => &[Site::Numbers, Site::Tests],
            Self::Test => &[Site::Tests],
            Self::Check => &[Site::CheckSum],
            Self::SubsetSums => &[Site::SubsetSums],
            Self::Input => &[Site::Input],
            Self::Opening | Self::OpeningToOne => &[Site::Opening],
            Self::BitChoices => &[Site::BitChoices],
            Self::BitCorrections => &[Site::BitCorrections],
            Self::BitProof => &[Site::BitProof],
            Self::BitPayload => &[Site::BitPayload],
            Self::BitInput => &[Site::BitInput],
            Self::BitOpening | Self::BitOpeningToOne => &[Site::BitOpening],
            Self::BitCheck => &[Site::BitCheckSum],
            Self::Reveal => &[Site::Reveal],
            Self::Commitment => &[Site::Commitment],
            Self::Transcript => &[Site::Transcript],
        }
    }

    /// Whether it concerns the victim only.
    fn is_for_one(self) -> bool {
        matches!(
            self,
            Self::Vector
                | Self::Digit
                | Self::Shift
                | Self::Choices
                | Self::OperandKey
                | Self::Operand
                | Self::OperandMac
                | Self::Input
                | Self::OpeningToOne
                | Self::BitChoices
                | Self::BitInput
                | Self::BitOpeningToOne
                | Self::Transcript
        )
    }
}

/// A corrupted party.
struct Corrupted<A> {
    deviation: Deviation,
    /// The party towards which it deviates, if not towards all.
    victim: usize,
    /// The domain of the values.
    visible: A,
    /// The domain of the shares.
    domain: A,
}

/// The behaviour of a party in a test.
#[derive(Clone)]
pub(super) enum Role {
    Honest,
    /// It follows the protocol, but for this check.
    Omits(Check),
    Deviates(Deviation),
    Plays(Corruption),
}

impl Role {
    /// The adversary of this party, in a protocol over these domains.
    pub fn corruption<A: Arithmetic>(self, me: usize, (visible, domain): (A, A)) -> Corruption {
        match self {
            Self::Honest => honest(),
            Self::Omits(check) => Arc::new(Omits(check)),
            Self::Deviates(deviation) => Arc::new(Corrupted {
                deviation,
                victim: usize::from(me == 0),
                visible,
                domain,
            }),
            Self::Plays(corruption) => corruption,
        }
    }
}

/// An honest party without one of its checks.
pub(super) struct Omits(pub Check);

impl Adversary for Omits {
    fn omits(&self, check: Check) -> bool {
        check == self.0
    }
}

impl<A: Arithmetic> Corrupted<A> {
    fn concerns(&self, to: Option<usize>) -> bool {
        !self.deviation.is_for_one() || to == Some(self.victim)
    }

    fn add(&self, words: &mut [u128], by: A::E) {
        for word in words {
            *word = self.domain.add(self.domain.from_u128(*word), by).to_u128();
        }
    }

    /// 2^k in a ring, zero in a field.
    fn overflow(&self) -> A::E {
        match self.visible.kind() {
            DomainKind::Z2k(k) => self.domain.from_u128(1 << k),
            _ => self.domain.zero(),
        }
    }
}

impl<A: Arithmetic> Adversary for Corrupted<A> {
    fn deviates(&self, site: Site) -> bool {
        self.deviation.sites().contains(&site)
    }

    fn words(&self, site: Site, to: Option<usize>, words: &mut [u128]) {
        if !self.concerns(to) {
            return;
        }
        let first = words.len().min(1);
        let one = self.domain.one();
        let top = self.domain.from_u128(1 << (self.domain.bits() - 1));
        match self.deviation {
            Deviation::Choices => {
                // The lowest bit of a word; highest bits come first.
                let lowest = words.len() - 2;
                words[lowest] ^= 1;
            }
            Deviation::Vector
            | Deviation::Shift
            | Deviation::OperandKey
            | Deviation::Operand
            | Deviation::OperandMac
            | Deviation::OtherFactor
            | Deviation::Product
            | Deviation::Check
            | Deviation::SubsetSums
            | Deviation::Number
            | Deviation::Input
            | Deviation::Opening
            | Deviation::OpeningToOne => self.add(&mut words[..first], one),
            Deviation::Key | Deviation::Factor | Deviation::FactorMac => self.add(words, one),
            Deviation::Top => self.add(words, top),
            Deviation::Above => self.add(words, self.overflow()),
            Deviation::Test => self.add(&mut words[..first], self.domain.neg(one)),
            // Sums of a number and a test stay right.
            Deviation::AllNumbers if site == Site::Numbers => self.add(words, one),
            Deviation::AllNumbers => self.add(words, self.domain.neg(one)),
            _ => {}
        }
    }

    fn lanes(&self, _site: Site, to: Option<usize>, lanes: &mut [u64]) {
        match self.deviation {
            _ if !self.concerns(to) => {}
            Deviation::Bits
            | Deviation::BitInput
            | Deviation::BitOpening
            | Deviation::BitOpeningToOne => lanes[0] ^= 1,
            _ => lanes.iter_mut().for_each(|lane| *lane = !*lane),
        }
    }

    fn bytes(&self, _site: Site, to: Option<usize>, message: &mut Vec<u8>) {
        match self.deviation {
            _ if !self.concerns(to) => {}
            Deviation::Digit => {
                let digits = message.len() / 12;
                for (i, digit) in message.chunks_mut(digits).enumerate() {
                    digit[0] ^= 1 << (i % 8);
                }
            }
            Deviation::Proof
            | Deviation::BitProof
            | Deviation::BitCheck
            | Deviation::Commitment
            | Deviation::Transcript => {
                message[20] ^= 1;
            }
            // Beyond the nonce.
            Deviation::Reveal => message[32] ^= 1,
            // Half of the rows.
            Deviation::BitCorrections => {
                let half = message.len() / 2;
                message[..half].iter_mut().for_each(|b| *b = !*b);
            }
            Deviation::BitPayload => message.iter_mut().for_each(|b| *b = !*b),
            Deviation::Trees => message.iter_mut().take(64).for_each(|b| *b = !*b),
            // Many words: whatever the receiver's choices are, it takes some.
            Deviation::Payload => message
                .iter_mut()
                .step_by(64)
                .take(256)
                .for_each(|b| *b ^= 1),
            _ => {}
        }
    }

    /// A check that fails informs the others: the corrupted party goes on.
    fn omits(&self, _check: Check) -> bool {
        true
    }
}
