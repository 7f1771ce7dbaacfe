//! Parties that deviate from within, towards party 0 or all: every one must be caught before a value leaves.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use zeroize::Zeroizing;

use super::{Arithmetic, Authenticated};

/// What a party lies about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lie {
    /// Its vectors under the key of party 0 are others than under those of the rest.
    Vector,
    /// Every digit of the key of party 0 multiplies another vector.
    Digit,
    /// Its choices in the OTs with party 0 are not those of the other OTs, or of its words.
    Choices,
    /// Its proof for the OT extension is another.
    Proof,
    /// It multiplies another a.
    Operand,
    /// One word of a payload.
    Payload,
    /// Its share of a product.
    Product,
    /// One of its bits is another as an element than packed.
    Bits,
    /// All of its bits are, alike.
    AllBits,
    /// What it multiplies by the bits of others is not its key.
    Key,
    /// The same, by the largest power of two that a ring has.
    Top,
    /// What it multiplies by them is not its share of an element.
    Factor,
    /// Nor of the MAC of an element.
    FactorMac,
    /// One of its numbers is another as an element.
    Number,
    /// All of its numbers are, and all tests.
    AllNumbers,
    /// One of its tests is.
    Test,
    /// All of its numbers are others above 2^k, where nothing counts (no lie that matters).
    Above,
    /// Its part of the sum of the MAC check.
    Check,
    /// It does not look at MACs (no lie: for the test that the check matters).
    NoCheck,
}

impl<A: Arithmetic> Authenticated<A> {
    fn lies(&self, lie: Lie) -> bool {
        self.lie == Some(lie)
    }

    pub(super) fn lie_to(
        &self,
        peer: usize,
        values: &Zeroizing<Vec<A::E>>,
    ) -> Zeroizing<Vec<A::E>> {
        let mut values = values.clone();
        if self.lies(Lie::Vector) && peer == 0 {
            values[0] = self.domain.add(values[0], self.domain.one());
        }
        values
    }

    pub(super) fn lie_about_digit(&self, peer: usize, message: &mut [u8]) {
        if self.lies(Lie::Digit) && peer == 0 {
            let digits = message.len() / 12;
            for (i, digit) in message.chunks_mut(digits).enumerate() {
                digit[0] ^= 1 << (i % 8);
            }
        }
    }

    /// Of the words that are multiplied by bits: our key, and our shares of elements and of their MACs.
    pub(super) fn lie_about_words(
        &self,
        mut words: [Zeroizing<Vec<A::E>>; 3],
    ) -> [Zeroizing<Vec<A::E>>; 3] {
        let one = self.domain.one();
        let (place, by) = match self.lie {
            Some(Lie::Key) => (0, one),
            Some(Lie::Top) => (0, self.domain.from_u128(1 << (self.domain.bits() - 1))),
            Some(Lie::Factor) => (1, one),
            Some(Lie::FactorMac) => (2, one),
            _ => return words,
        };
        self.domain.add_scalar_assign(&mut words[place], by);
        words
    }

    pub(super) fn lie_about_choices(&self, peer: usize, choices: &[u128]) -> Zeroizing<Vec<u128>> {
        let mut choices = Zeroizing::new(choices.to_vec());
        if self.lies(Lie::Choices) && peer == 0 {
            // The lowest bit of a word; highest bits come first.
            let lowest = (choices.len() - 1) / 2 - 1;
            choices[lowest] ^= 1;
        }
        choices
    }

    pub(super) fn lie_in_proofs(&self, proofs: &mut [Vec<u8>]) {
        if self.lies(Lie::Proof) {
            proofs[0][20] ^= 1;
        }
    }

    pub(super) fn lie_about_operand(
        &self,
        peer: usize,
        a: &Zeroizing<Vec<A::E>>,
    ) -> Zeroizing<Vec<A::E>> {
        let mut a = a.clone();
        if self.lies(Lie::Operand) && peer == 0 {
            a[0] = self.domain.add(a[0], self.domain.one());
        }
        a
    }

    pub(super) fn lie_in_payload(&self, message: &mut [u8]) {
        if self.lies(Lie::Payload) {
            // Many words: whatever the receiver's choices are, it takes some.
            message
                .iter_mut()
                .step_by(64)
                .take(256)
                .for_each(|b| *b ^= 1);
        }
    }

    pub(super) fn lie_about_product(&self, mut c: Vec<A::E>) -> Vec<A::E> {
        if self.lies(Lie::Product) {
            c[0] = self.domain.add(c[0], self.domain.one());
        }
        c
    }

    pub(super) fn lie_about_bits(&self, known: &[u64]) -> Zeroizing<Vec<u64>> {
        let mut known = Zeroizing::new(known.to_vec());
        if self.lies(Lie::Bits) {
            known[0] ^= 1;
        }
        if self.lies(Lie::AllBits) {
            known.iter_mut().for_each(|word| *word = !*word);
        }
        known
    }

    /// Of values the first `n` are numbers, then there are tests; sums of one and another stay right.
    pub(super) fn lie_about_numbers(&self, values: &mut [A::E], n: usize) {
        let one = self.domain.one();
        let (numbers, tests, by) = match self.lie {
            Some(Lie::Number) => (1, 0, one),
            Some(Lie::AllNumbers) => (n, values.len(), one),
            Some(Lie::Test) => (0, 1, one),
            Some(Lie::Above) => (n, 0, self.overflow().unwrap_or_default()),
            _ => return,
        };
        let (first, second) = values.split_at_mut(n);
        for value in first.iter_mut().take(numbers) {
            *value = self.domain.add(*value, by);
        }
        for value in second.iter_mut().take(tests) {
            *value = self.domain.sub(*value, by);
        }
    }
}
