//! Openings from shares of all parties, and through kings.

use std::ops::Range;

use keyquorum_math::Domain;

use super::polynomials::{add_scaled, lagrange};
use super::{Shamir, outside};
use crate::error::Result;
use crate::task::{Step, and_then, exchange, then};
use crate::value::{Share, zip};
use crate::{ClearTask, ShareTask};

/// From this many parties on, multiplication goes through kings.
pub const KING_FROM: usize = 10;

impl Shamir {
    pub(super) fn kings(&self) -> bool {
        self.parties >= KING_FROM
    }

    /// Sends the parties of `to` their pieces of our vector. The piece `own` of the senders' vectors is interpolated at 0. One round.
    fn interpolated<D: Domain>(
        &self,
        domain: &D,
        mine: Vec<D::E>,
        to: Vec<(usize, Range<usize>)>,
        senders: Vec<usize>,
        own: Range<usize>,
    ) -> Result<ClearTask<Self, D::E>> {
        let points: Vec<D::E> = senders.iter().map(|i| self.points.at(domain, *i)).collect();
        let factors = lagrange(domain, &points, domain.zero())?;
        let domain = domain.clone();
        Ok(Box::new(move |p, out| {
            for (to, piece) in to {
                out.send(&domain, to, mine.get(piece).ok_or_else(outside)?);
            }
            let n = own.len();
            for from in senders.iter().filter(|from| **from != p.me) {
                out.expect(&domain, *from, n);
            }
            Ok(Box::new(move |p, inbox| {
                let ours = mine.get(own).ok_or_else(outside)?;
                let mut sum = vec![domain.zero(); n];
                for (from, factor) in zip(senders, factors)? {
                    if from == p.me {
                        add_scaled(&domain, &mut sum, ours, factor);
                    } else {
                        let theirs = inbox.take(&domain, from, n)?;
                        add_scaled(&domain, &mut sum, &theirs, factor);
                    }
                }
                Ok(Step::Done(sum))
            }))
        }))
    }

    /// Each party gets the shares of the t parties after it. One round.
    pub(super) fn open_from_next<D: Domain>(
        &self,
        domain: &D,
        mine: Vec<D::E>,
    ) -> Result<ClearTask<Self, D::E>> {
        let all = 0..mine.len();
        let to = (1..=self.threshold).map(|step| self.after(self.me, self.parties - step));
        let to = to.map(|to| (to, all.clone())).collect();
        let senders = (0..=self.threshold).map(|step| self.after(self.me, step));
        self.interpolated(domain, mine, to, senders.collect(), all.clone())
    }

    /// The first `senders` parties send their values to everybody, who interpolates at 0. One round.
    pub(super) fn open_from_all<D: Domain>(
        &self,
        domain: &D,
        mine: Vec<D::E>,
        senders: usize,
    ) -> Result<ClearTask<Self, D::E>> {
        let all = 0..mine.len();
        let to = self.peers().filter(|_| self.me < senders);
        let to = to.map(|to| (to, all.clone())).collect();
        self.interpolated(domain, mine, to, (0..senders).collect(), all)
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
        &self,
        domain: &D,
        mine: Vec<D::E>,
        senders: usize,
    ) -> Result<ClearTask<Self, D::E>> {
        let (total, piece) = (mine.len(), mine.len().div_ceil(self.parties).max(1));
        let range = move |king: usize| (king * piece).min(total)..((king + 1) * piece).min(total);
        let to = self.peers().filter(|_| self.me < senders);
        let to = to.map(|king| (king, range(king))).collect();
        let senders = (0..senders).collect();
        let piece = self.interpolated(domain, mine, to, senders, range(self.me))?;
        let domain = domain.clone();
        Ok(and_then(piece, move |p, piece| {
            let to = p.peers().map(|to| (to, piece.clone())).collect();
            let from = p.peers().map(|king| (king, range(king).len())).collect();
            Ok(then(
                exchange(&domain, to, from),
                |p: &mut Self, mut pieces| {
                    pieces.insert(p.me, piece);
                    Ok(pieces.concat())
                },
            ))
        }))
    }
}
