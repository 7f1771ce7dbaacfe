//! Openings: to everybody, to everybody but for low bits that are zero, and to one party. What is opened is noted for the check.

use keyquorum_math::Element;
use zeroize::Zeroizing;

use super::{Arithmetic, Authenticated, exposing};
use crate::ClearTask;
use crate::adversary::Site;
use crate::error::{EngineError, Result};
use crate::task::{SendFn, Step, at_start, then};
use crate::value::Share;

impl<A: Arithmetic> Authenticated<A> {
    /// Opens a share of the program, under a mask where the share could reveal more than the value.
    pub(super) fn open_elements(&mut self, share: Share<A::E>) -> ClearTask<Self, A::E> {
        self.bits.opens = true;
        exposing(self.open_shifted_masked(share, 0))
    }

    /// Opens the low `bits` bits of a share of the program, in a ring: they are shifted to the top, where nothing is above them but
    /// what the mask hides, and the zeros below them are not sent. `deferrable`: nothing is verified
    /// before it where checks are deferred.
    pub(super) fn open_low_elements(
        &mut self,
        mut share: Share<A::E>,
        bits: u32,
        deferrable: bool,
    ) -> ClearTask<Self, A::E> {
        let zeros = self.visible.bits() - bits;
        let factor = self.domain.from_u128(1 << zeros);
        for part in &mut share.parts {
            self.domain.mul_scalar_assign(part, factor);
        }
        let mut opened = self.open_shifted_masked(share, zeros);
        if !(deferrable && self.deferred) {
            self.bits.opens = true;
            opened = exposing(opened);
        }
        then(opened, move |_, values| Ok(shifted_down(&values, zeros)))
    }

    /// Opens a share of the program whose low `zeros` bits are zero.
    fn open_shifted_masked(&mut self, share: Share<A::E>, zeros: u32) -> ClearTask<Self, A::E> {
        if self.overflow().is_some() {
            self.preprocessing.randoms.need(share.len());
        }
        at_start(move |p: &mut Self| {
            let mut share = share;
            p.mask_overflow(&mut share)?;
            Ok(then(open_shifted(share, zeros), |p, values| {
                Ok(p.reduced(values))
            }))
        })
    }

    /// Adds 2^k times random elements that were asked for, in a ring: what is above 2^k hangs on what a share was computed from.
    fn mask_overflow(&mut self, share: &mut Share<A::E>) -> Result<()> {
        let Some(factor) = self.overflow() else {
            return Ok(());
        };
        let mut mask = Share {
            parts: self.preprocessing.randoms.take(share.len())?.into(),
        };
        for part in &mut mask.parts {
            self.domain.mul_scalar_assign(part, factor);
        }
        self.add(share, &mask)
    }

    /// Opens to one party, under elements that it knows alone, and under a mask of what is above 2^k, which nobody knows.
    pub(super) fn open_elements_to(
        &mut self,
        share: Share<A::E>,
        receiver: usize,
    ) -> Result<SendFn<Self, Option<Vec<A::E>>>> {
        let n = share.len();
        self.preprocessing.input(receiver)?.need(n);
        if self.overflow().is_some() {
            self.preprocessing.randoms.need(n);
        }
        self.bits.opens = true;
        Ok(exposing(Box::new(move |p: &mut Self, out| {
            let [x, m, known] = p.preprocessing.input(receiver)?.take(n)?;
            let (mask, known) = (Share { parts: vec![x, m] }, Zeroizing::new(known));
            let mut share = share;
            p.add(&mut share, &mask)?;
            p.mask_overflow(&mut share)?;
            then(open(share), move |p: &mut Self, mut opened| {
                p.domain.sub_assign(&mut opened, &known);
                p.adversary
                    .sees_elements(Site::Personal, p.me, &p.domain, &opened);
                let values = p.reduced(opened);
                Ok((p.me == receiver).then_some(values))
            })(p, out)
        })))
    }
}

/// Opens all bits of a share to everybody.
pub(super) fn open<A: Arithmetic>(share: Share<A::E>) -> ClearTask<Authenticated<A>, A::E> {
    open_shifted(share, 0)
}

/// [`open`] of a share whose low `zeros` bits are zero at every party: they are not sent.
fn open_shifted<A: Arithmetic>(
    share: Share<A::E>,
    zeros: u32,
) -> ClearTask<Authenticated<A>, A::E> {
    at_start(move |_: &mut Authenticated<A>| {
        let summands = share.part(0)?.to_vec();
        let opened = open_summands(Site::Opening, summands, zeros);
        Ok(then(opened, move |p: &mut Authenticated<A>, sum| {
            p.note(&share, &sum)?;
            Ok(sum)
        }))
    })
}

/// Opens elements from our summands. The caller verifies their MACs.
pub(super) fn open_summands<A: Arithmetic>(
    site: Site,
    summands: Vec<A::E>,
    zeros: u32,
) -> ClearTask<Authenticated<A>, A::E> {
    Box::new(move |p, out| {
        let (domain, n) = (p.domain.clone(), summands.len());
        let sent = match zeros {
            0 => domain.clone(),
            _ => domain.low_bits(domain.bits() - zeros).ok_or_else(|| {
                EngineError::usage(format!("{} has no low bits to leave out", domain.kind()))
            })?,
        };
        let mut sum = shifted_down(&summands, zeros);
        for peer in p.others() {
            let ours = p.adversary.elements(site, Some(peer), &sent, &sum);
            out.send(&sent, peer, &ours);
            out.expect(&sent, peer, n);
        }
        p.adversary
            .change_elements(site, Some(p.me), &sent, &mut sum);
        Ok(Box::new(move |p, inbox| {
            for peer in p.others() {
                let theirs = inbox.take(&sent, peer, n)?;
                p.adversary.sees_elements(site, peer, &sent, &theirs);
                sent.add_assign(&mut sum, &theirs);
            }
            if zeros > 0 {
                domain.mul_scalar_assign(&mut sum, domain.from_u128(1 << zeros));
            }
            p.record(&sum);
            Ok(Step::Done(sum))
        }))
    })
}

fn shifted_down<E: Element>(values: &[E], bits: u32) -> Vec<E> {
    if bits == 0 {
        return values.to_vec();
    }
    let shifted = |e: &E| E::from_u128_wrapping(e.to_u128() >> bits);
    values.iter().map(shifted).collect()
}
