//! The operations of programs on elements. Those on packed bits are in [`binary`](super::binary).

use keyquorum_math::Element;

use super::binary::AuthenticatedBits;
use super::{Authenticated, PARTS, keys, preprocessing, verify};
use crate::error::{EngineError, Result};
use crate::task::{SendFn, Step, at_start, ready};
use crate::value::Share;
use crate::{
    Arithmetic, ClearTask, EdaBits, Origin, Party, Preprocessed, Protocol, ShareTask, StoredShares,
    lanes,
};

fn two_parts<E: Element>(mut share: Share<E>) -> Result<[Vec<E>; PARTS]> {
    share.check(PARTS, share.len())?;
    let parts = std::mem::take(&mut share.parts).try_into();
    parts.map_err(|_| EngineError::internal("shares of another protocol"))
}

impl<A: Arithmetic> Authenticated<A> {
    /// A task that verifies everything that was opened, if there is something.
    fn pending_check(&self) -> Option<SendFn<Self, ()>> {
        let pending = self.verifier.pending() > 0 || self.bits.unchecked();
        pending.then(|| match self.deferred {
            true => verify::check_deferred(),
            false => verify::check(),
        })
    }
}

impl<A: Arithmetic> Party for Authenticated<A> {
    type Bits = AuthenticatedBits;

    fn party(&self) -> (usize, usize) {
        (self.me, self.parties)
    }

    fn parts(&self) -> usize {
        PARTS
    }

    fn bits(&mut self) -> Result<&mut AuthenticatedBits> {
        Ok(&mut self.bits)
    }

    fn prepare(&mut self) -> Result<Option<SendFn<Self, ()>>> {
        if let Some(task) = self.preprocess()? {
            return Ok(Some(task));
        }
        let full = self.verifier.pending() > verify::MOST_PENDING;
        if (std::mem::take(&mut self.bits.opens) || full)
            && let Some(task) = self.pending_check()
        {
            return Ok(Some(task));
        }
        Ok(None)
    }

    fn preprocess(&mut self) -> Result<Option<SendFn<Self, ()>>> {
        preprocessing::prepare(self)
    }

    fn check(&mut self) -> Option<SendFn<Self, ()>> {
        self.bits.exposed = false;
        self.pending_check()
    }

    fn check_before_reading(&mut self) -> Option<SendFn<Self, ()>> {
        if self.deferred && !self.bits.exposed {
            return None;
        }
        self.check()
    }

    fn preprocessed(&self) -> Vec<Preprocessed> {
        let mut all = self.preprocessing.preprocessed();
        all.extend(self.bits.preprocessed());
        all
    }
}

impl<A: Arithmetic> Protocol<A> for Authenticated<A> {
    /// Party 0 adds to its summand, everybody its key times the values to its share of the MAC.
    fn add_clear(&self, _: &A, share: &mut Share<A::E>, values: &[A::E]) -> Result<()> {
        self.add_public(share, values)
    }

    fn random(&mut self, _: &A, n: usize) -> Result<Step<Self, Share<A::E>>> {
        self.preprocessing.randoms.need(n);
        Ok(Step::Next(at_start(move |p: &mut Self| {
            let parts = p.preprocessing.randoms.take(n)?.into();
            Ok(ready(Share { parts }))
        })))
    }

    fn dot(
        &mut self,
        _: &A,
        a: &Share<A::E>,
        b: &Share<A::E>,
        length: usize,
    ) -> Result<ShareTask<Self, A::E>> {
        Ok(self.beaver(a.duplicate(), b.duplicate(), length))
    }

    fn open(&mut self, _: &A, a: &Share<A::E>) -> Result<ClearTask<Self, A::E>> {
        Ok(self.open_elements(a.duplicate()))
    }

    fn open_low(&mut self, low: &A, a: &Share<A::E>) -> Result<ClearTask<Self, A::E>> {
        Ok(self.open_low_elements(a.duplicate(), low.bits(), false))
    }

    fn open_masked(&mut self, low: &A, a: &Share<A::E>) -> Result<ClearTask<Self, A::E>> {
        Ok(self.open_low_elements(a.duplicate(), low.bits(), true))
    }

    fn open_to(
        &mut self,
        _: &A,
        a: &Share<A::E>,
        receiver: usize,
    ) -> Result<SendFn<Self, Option<Vec<A::E>>>> {
        self.open_elements_to(a.duplicate(), receiver)
    }

    fn input(
        &mut self,
        _: &A,
        owner: usize,
        n: usize,
        values: Option<Vec<A::E>>,
    ) -> Result<ShareTask<Self, A::E>> {
        self.input_elements(owner, n, values)
    }

    /// Taken from the bits that are shared in both domains: nothing is sent online.
    fn random_bit(&mut self, _: &A, n: usize) -> Result<ShareTask<Self, A::E>> {
        self.preprocessing.need_bits(lanes(n));
        Ok(at_start(move |p: &mut Self| {
            let (_, mut elements) = p.preprocessing.take_bits(lanes(n))?;
            elements.parts.iter_mut().for_each(|part| part.truncate(n));
            Ok(ready(elements))
        }))
    }

    fn bit_to_arith(
        &mut self,
        _: &A,
        bits: &Share<u64>,
        n: usize,
    ) -> Result<ShareTask<Self, A::E>> {
        Ok(self.convert(bits.duplicate(), n))
    }

    fn has_edabits(&self) -> bool {
        true
    }

    fn need_edabits(&mut self, _: &A, length: usize, n: usize) {
        if self.has_batches(length, n) {
            self.preprocessing.need_edabits(length, 64 * lanes(n));
        } else {
            self.preprocessing.need_bits(lanes(length * n));
        }
    }

    fn take_edabits(&mut self, _: &A, length: usize, n: usize) -> Result<EdaBits<A::E>> {
        let (mut elements, rows) = if self.has_batches(length, n) {
            self.preprocessing.take_edabits(length, 64 * lanes(n))?
        } else {
            self.edabits_of_bits(length, n)?
        };
        elements.parts.iter_mut().for_each(|part| part.truncate(n));
        Ok((elements, rows))
    }
}

impl<A: Arithmetic> StoredShares<A> for Authenticated<A> {
    fn mac_key(&self) -> Option<u128> {
        Some(self.key.to_u128())
    }

    fn origin(&self) -> Origin {
        Origin::NameAndKeyTest(keys::elements(self))
    }

    fn test_stored_keys(&mut self, stored: &Share<A::E>) -> Result<SendFn<Self, ()>> {
        Ok(keys::test_stored(self, stored.duplicate()))
    }

    fn defer_checks(&mut self, deferred: bool) {
        self.deferred = deferred;
    }

    fn give_random(&mut self, stored: Share<A::E>) -> Result<()> {
        let [x, m] = two_parts(stored)?;
        self.preprocessing.randoms.put([x, m]);
        Ok(())
    }

    fn give_mask(&mut self, owner: usize, stored: Share<A::E>, known: Vec<A::E>) -> Result<()> {
        let [x, m] = two_parts(stored)?;
        self.preprocessing.input(owner)?.put([x, m, known]);
        Ok(())
    }
}
