//! Openings from shares of all parties, and through kings.

use keyquorum_math::Domain;

use super::polynomials::{add_scaled, lagrange, point};
use super::{Shamir, outside};
use crate::error::Result;
use crate::protocol::{ClearTask, ShareTask};
use crate::task::{Step, then};
use crate::value::Share;

/// From this many parties on, multiplication goes through kings.
pub const KING_FROM: usize = 10;

impl Shamir {
    pub(super) fn kings(&self) -> bool {
        self.parties >= KING_FROM
    }

    /// The first `senders` parties send their values to everybody, who reconstructs at 0. One round.
    pub(super) fn open_from_all<D: Domain>(
        &mut self,
        domain: &D,
        mine: Vec<D::E>,
        senders: usize,
    ) -> Result<ClearTask<Self, D::E>> {
        let points: Vec<D::E> = (0..senders).map(|i| point(domain, i)).collect();
        let factors = lagrange(domain, &points, domain.zero())?;
        let domain = domain.clone();
        Ok(Box::new(move |p, out| {
            let n = mine.len();
            for to in (0..p.parties).filter(|to| *to != p.me && p.me < senders) {
                out.send(&domain, to, &mine);
            }
            for from in (0..senders).filter(|from| *from != p.me) {
                out.expect(&domain, from, n);
            }
            Ok(Box::new(move |p, inbox| {
                let mut acc = vec![domain.zero(); n];
                for (from, factor) in factors.into_iter().enumerate() {
                    if from == p.me {
                        add_scaled(&domain, &mut acc, &mine, factor);
                    } else {
                        let share = inbox.take(&domain, from, n)?;
                        add_scaled(&domain, &mut acc, &share, factor);
                    }
                }
                Ok(Step::Done(acc))
            }))
        }))
    }

    /// Opens product + mask (degree 2t) through kings and takes the mask (degree t) off.
    pub(super) fn unmask<D: Domain>(
        &mut self,
        domain: &D,
        mut product: Vec<D::E>,
        low: Vec<D::E>,
        high: &[D::E],
    ) -> Result<ShareTask<Self, D::E>> {
        domain.add_assign(&mut product, high);
        let opened = self.open_through_kings(domain, product, 2 * self.threshold + 1)?;
        let domain = domain.clone();
        Ok(then(opened, move |_, mut opened| {
            domain.sub_assign(&mut opened, &low);
            Ok(Share {
                parts: vec![opened],
            })
        }))
    }

    /// Opens a vector through kings: king j opens the j-th piece for everybody. Two rounds.
    pub(super) fn open_through_kings<D: Domain>(
        &mut self,
        domain: &D,
        mine: Vec<D::E>,
        senders: usize,
    ) -> Result<ClearTask<Self, D::E>> {
        let points: Vec<D::E> = (0..senders).map(|i| point(domain, i)).collect();
        let factors = lagrange(domain, &points, domain.zero())?;
        let piece = mine.len().div_ceil(self.parties).max(1);
        let total = mine.len();
        let range = move |king: usize| (king * piece).min(total)..((king + 1) * piece).min(total);
        let domain = domain.clone();
        Ok(Box::new(move |p, out| {
            let parties = p.parties;
            for king in (0..parties).filter(|k| *k != p.me && p.me < senders) {
                let part = mine.get(range(king)).ok_or_else(outside)?;
                out.send(&domain, king, part);
            }
            let own = range(p.me).len();
            for from in (0..senders).filter(|from| *from != p.me) {
                out.expect(&domain, from, own);
            }
            Ok(Box::new(move |p, inbox| {
                let mut acc = vec![domain.zero(); own];
                for (from, factor) in factors.into_iter().enumerate() {
                    if from == p.me {
                        let part = mine.get(range(p.me)).ok_or_else(outside)?;
                        add_scaled(&domain, &mut acc, part, factor);
                    } else {
                        let part = inbox.take(&domain, from, own)?;
                        add_scaled(&domain, &mut acc, &part, factor);
                    }
                }
                Ok(Step::Next(Box::new(move |p, out| {
                    for to in (0..parties).filter(|to| *to != p.me) {
                        out.send(&domain, to, &acc);
                        out.expect(&domain, to, range(to).len());
                    }
                    Ok(Box::new(move |p, inbox| {
                        let mut opened = Vec::with_capacity(total);
                        for king in 0..parties {
                            if king == p.me {
                                opened.extend_from_slice(&acc);
                            } else {
                                opened.extend(inbox.take(&domain, king, range(king).len())?);
                            }
                        }
                        Ok(Step::Done(opened))
                    }))
                })))
            }))
        }))
    }
}
