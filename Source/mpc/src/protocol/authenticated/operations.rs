//! The operations of programs: elements and packed bits behind one interface.

use std::any::Any;

use keyquorum_math::{Domain, Element};

use super::{
    Authenticated, PARTS, binary, bits, exposing, is_bits, keys, known, preprocessing, verify,
};
use crate::error::{EngineError, Result};
use crate::protocol::Preprocessed;
use crate::protocol::{Arithmetic, ClearTask, EdaBits, Protocol, ShareTask, cast, lanes};
use crate::task::{SendFn, at_start, ready, then, within};
use crate::value::Share;

fn no_bits<T>() -> Result<T> {
    Err(EngineError::usage(
        "this protocol computes on elements and on packed bits: this is neither",
    ))
}

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

impl<A: Arithmetic> Protocol for Authenticated<A> {
    fn party(&self) -> (usize, usize) {
        (self.me, self.parties)
    }

    fn parts(&self) -> usize {
        PARTS
    }

    fn bit_parts(&self) -> usize {
        binary::PARTS
    }

    fn has_binary(&self) -> bool {
        true
    }

    fn summands(&self) -> usize {
        0
    }

    fn constant<D: Domain>(&self, domain: &D, values: &[D::E]) -> Result<Share<D::E>> {
        let parts = if is_bits(domain) {
            binary::PARTS
        } else {
            PARTS
        };
        let mut share = Share::zeros(parts, values.len());
        self.add_clear(domain, &mut share, values)?;
        Ok(share)
    }

    /// Party 0 adds to its summand, everybody its key times the values to its share of the MAC.
    fn add_clear<D: Domain>(
        &self,
        domain: &D,
        share: &mut Share<D::E>,
        values: &[D::E],
    ) -> Result<()> {
        let share: &mut dyn Any = share;
        let other = || EngineError::internal("a share of another domain");
        if is_bits(domain) {
            let share = share.downcast_mut().ok_or_else(other)?;
            self.bits
                .add_clear(share, &cast::<_, Vec<u64>>(values.to_vec())?)
        } else {
            let share = share.downcast_mut().ok_or_else(other)?;
            self.add_public(share, &cast::<_, Vec<A::E>>(values.to_vec())?)
        }
    }

    fn random<D: Domain>(&mut self, domain: &D, n: usize) -> Result<ShareTask<Self, D::E>> {
        if is_bits(domain) {
            let task = within(self.bits.random(n), bits::<A>);
            return Ok(then(task, |_, share| known(share)));
        }
        self.preprocessing.randoms.need(n);
        Ok(at_start(move |p: &mut Self| {
            let parts = p.preprocessing.randoms.take(n)?.into();
            Ok(ready(known(Share { parts })?))
        }))
    }

    fn random_is_local(&self) -> bool {
        false
    }

    fn random_local<D: Domain>(&mut self, _: &D, _: usize) -> Result<Share<D::E>> {
        no_bits()
    }

    fn dot<D: Domain>(
        &mut self,
        domain: &D,
        a: &Share<D::E>,
        b: &Share<D::E>,
        length: usize,
    ) -> Result<ShareTask<Self, D::E>> {
        if is_bits(domain) {
            let (x, y) = (known(a.duplicate())?, known(b.duplicate())?);
            let task = within(self.bits.and(x, y)?, bits::<A>);
            return Ok(then(task, |_, share| known(share)));
        }
        let (x, y) = (known(a.duplicate())?, known(b.duplicate())?);
        Ok(then(self.beaver(x, y, length), |_, share| known(share)))
    }

    fn open<D: Domain>(&mut self, domain: &D, a: &Share<D::E>) -> Result<ClearTask<Self, D::E>> {
        if is_bits(domain) {
            self.opens = true;
            let task = within(self.bits.open(known(a.duplicate())?), bits::<A>);
            return Ok(then(exposing(task), |_, values| cast(values)));
        }
        let task = self.open_masked(known(a.duplicate())?);
        Ok(then(task, |_, values| cast(values)))
    }

    fn open_low<D: Domain>(&mut self, low: &D, a: &Share<D::E>) -> Result<ClearTask<Self, D::E>> {
        let task = self.open_low_masked(known(a.duplicate())?, low.bits(), false);
        Ok(then(task, |_, values| cast(values)))
    }

    fn open_masked<D: Domain>(
        &mut self,
        low: &D,
        a: &Share<D::E>,
    ) -> Result<ClearTask<Self, D::E>> {
        let task = self.open_low_masked(known(a.duplicate())?, low.bits(), true);
        Ok(then(task, |_, values| cast(values)))
    }

    fn open_to<D: Domain>(
        &mut self,
        domain: &D,
        a: &Share<D::E>,
        receiver: usize,
    ) -> Result<SendFn<Self, Option<Vec<D::E>>>> {
        if is_bits(domain) {
            self.opens = true;
            let share = known(a.duplicate())?;
            let task = within(self.bits.open_to(share, receiver)?, bits::<A>);
            return Ok(then(exposing(task), |_, values| {
                values.map(|v| cast(v.to_vec())).transpose()
            }));
        }
        let task = self.open_elements_to(known(a.duplicate())?, receiver)?;
        Ok(then(task, |_, values| values.map(cast).transpose()))
    }

    fn input<D: Domain>(
        &mut self,
        domain: &D,
        owner: usize,
        n: usize,
        values: Option<Vec<D::E>>,
    ) -> Result<ShareTask<Self, D::E>> {
        if is_bits(domain) {
            let values = values.map(cast).transpose()?;
            let task = within(self.bits.input(owner, n, values)?, bits::<A>);
            return Ok(then(task, |_, share| known(share)));
        }
        let values = values.map(cast).transpose()?;
        let task = self.input_elements(owner, n, values)?;
        Ok(then(task, |_, share| known(share)))
    }

    /// Taken from the bits that are shared in both domains: nothing is sent online.
    fn random_bit<D: Domain>(&mut self, domain: &D, n: usize) -> Result<ShareTask<Self, D::E>> {
        if is_bits(domain) {
            return no_bits();
        }
        self.preprocessing.need_bits(lanes(n));
        Ok(at_start(move |p: &mut Self| {
            let (_, mut elements) = p.preprocessing.take_bits(lanes(n))?;
            elements.parts.iter_mut().for_each(|part| part.truncate(n));
            Ok(ready(known(elements)?))
        }))
    }

    fn bit_to_arith<D: Domain>(
        &mut self,
        domain: &D,
        bits: &Share<u64>,
        n: usize,
    ) -> Result<ShareTask<Self, D::E>> {
        if is_bits(domain) {
            return no_bits();
        }
        let task = self.convert(bits.duplicate(), n);
        Ok(then(task, |_, share| known(share)))
    }

    fn has_edabits(&self) -> bool {
        true
    }

    fn need_edabits<D: Domain>(&mut self, _: &D, length: usize, n: usize) {
        if self.has_batches(length, n) {
            self.preprocessing.need_edabits(length, 64 * lanes(n));
        } else {
            self.preprocessing.need_bits(lanes(length * n));
        }
    }

    fn take_edabits<D: Domain>(&mut self, _: &D, length: usize, n: usize) -> Result<EdaBits<D::E>> {
        let (mut elements, rows) = if self.has_batches(length, n) {
            self.preprocessing.take_edabits(length, 64 * lanes(n))?
        } else {
            self.edabits_of_bits(length, n)?
        };
        elements.parts.iter_mut().for_each(|part| part.truncate(n));
        Ok((known(elements)?, rows))
    }

    fn preprocess(&mut self) -> Result<Option<SendFn<Self, ()>>> {
        preprocessing::prepare(self)
    }

    fn prepare(&mut self) -> Result<Option<SendFn<Self, ()>>> {
        if let Some(task) = self.preprocess()? {
            return Ok(Some(task));
        }
        let full = self.verifier.pending() > verify::MOST_PENDING;
        if (std::mem::take(&mut self.opens) || full)
            && let Some(task) = self.pending_check()
        {
            return Ok(Some(task));
        }
        Ok(None)
    }

    fn check(&mut self) -> Option<SendFn<Self, ()>> {
        self.exposed = false;
        self.pending_check()
    }

    fn check_before_reading(&mut self) -> Option<SendFn<Self, ()>> {
        if self.deferred && !self.exposed {
            return None;
        }
        self.check()
    }

    fn defer_checks(&mut self, deferred: bool) {
        self.deferred = deferred;
    }

    fn give_random<D: Domain>(&mut self, stored: Share<D::E>) -> Result<()> {
        let [x, m] = two_parts(known(stored)?)?;
        self.preprocessing.randoms.put([x, m]);
        Ok(())
    }

    fn give_mask<D: Domain>(
        &mut self,
        owner: usize,
        stored: Share<D::E>,
        known_there: Vec<D::E>,
    ) -> Result<()> {
        let [x, m] = two_parts(known(stored)?)?;
        let elements = self.preprocessing.input(owner)?;
        elements.put([x, m, cast(known_there)?]);
        Ok(())
    }

    fn mac_key(&self) -> Option<u128> {
        Some(self.key.to_u128())
    }

    fn key_test_elements(&self) -> usize {
        keys::elements(self)
    }

    fn test_stored_keys<D: Domain>(&mut self, stored: &Share<D::E>) -> Result<SendFn<Self, ()>> {
        Ok(keys::test_stored(self, known(stored.duplicate())?))
    }

    fn preprocessed(&self) -> Vec<Preprocessed> {
        let mut all = self.preprocessing.preprocessed();
        all.extend(self.bits.preprocessed());
        all
    }

    fn summand_bits<D: Domain>(
        &self,
        _: &D,
        _: &Share<D::E>,
        _: usize,
    ) -> Result<Vec<Vec<Share<u64>>>> {
        Err(EngineError::usage(
            "summands of authenticated shares have no MACs of their own: convert by edaBits",
        ))
    }
}
