//! Openings of authenticated bits, to everybody and to one party. What is opened is noted for the check.

use keyquorum_math::Domain;
use zeroize::Zeroizing;

use super::{AuthenticatedBits, add};
use crate::BITS;
use crate::adversary::Site;
use crate::error::Result;
use crate::task::{SendFn, Step, at_start, then};
use crate::value::Share;

impl AuthenticatedBits {
    /// Opens bits to everybody; what they are is verified by the next [`AuthenticatedBits::check`]. One round.
    pub fn open(&mut self, share: Share<u64>) -> SendFn<Self, Vec<u64>> {
        open(share)
    }

    /// Opens bits to one party, under bits that it knows alone. One round, verified as [`AuthenticatedBits::open`].
    ///
    /// # Errors
    /// [`EngineError::Usage`] if there is no such party.
    pub fn open_to(
        &mut self,
        share: Share<u64>,
        receiver: usize,
    ) -> Result<SendFn<Self, Option<Zeroizing<Vec<u64>>>>> {
        let lanes = share.len();
        self.preprocessing.input(receiver)?.need(lanes);
        Ok(at_start(move |p: &mut Self| {
            let (mask, known) = p.preprocessing.input(receiver)?.take(lanes)?;
            let mut share = share;
            add(&mut share, &mask)?;
            Ok(then(open(share), move |p, mut opened| {
                BITS.add_assign(&mut opened, &known);
                Ok((p.me == receiver).then(|| Zeroizing::new(opened)))
            }))
        }))
    }
}

/// Opens bits.
pub(super) fn open(share: Share<u64>) -> SendFn<AuthenticatedBits, Vec<u64>> {
    Box::new(move |p, out| {
        let lanes = share.len();
        for peer in p.peers() {
            let sent = p
                .adversary
                .bits(Site::BitOpening, Some(peer), share.part(0)?);
            out.send(&BITS, peer, &sent);
            out.expect(&BITS, peer, lanes);
        }
        Ok(Box::new(move |p, inbox| {
            let ours = p
                .adversary
                .bits(Site::BitOpening, Some(p.me), share.part(0)?);
            let mut sum = ours.into_owned();
            for peer in p.peers() {
                let theirs = inbox.take(&BITS, peer, lanes)?;
                p.adversary
                    .sees_elements(Site::BitOpening, peer, &BITS, &theirs);
                BITS.add_assign(&mut sum, &theirs);
            }
            p.verifier.record_words(&sum);
            p.verifier.opened(&share, &sum, &p.key)?;
            Ok(Step::Done(sum))
        }))
    })
}
