//! The sum of one vector of every party, known to all: the messages of openings and products.
//!
//! Directly, every party sends its vector to all others: one round, n − 1 messages a party. Through a king, one party adds up and sends
//! the sum: two rounds, one message a party and round, and n − 1 from the king. Long vectors have several kings, each for its part.

use std::ops::Range;

use keyquorum_math::Domain;

use super::{Additive, Arithmetic, outside};
use crate::ClearTask;
use crate::error::Result;
use crate::opening::Openings;
use crate::task::Step;

/// Bytes of a part that are worth messages of their own: below, a message costs more than its bytes.
const PART: usize = 1 << 14;

/// The parts of a vector of `n` elements: that of party i is the i-th.
fn parts<D: Domain>(domain: &D, n: usize, parties: usize) -> Vec<Range<usize>> {
    let count = (domain.wire_bytes(n) / PART).clamp(1, parties);
    (0..count)
        .map(|i| n * i / count..n * (i + 1) / count)
        .collect()
}

fn part<E>(vector: &[E], range: Range<usize>) -> Result<&[E]> {
    vector.get(range).ok_or_else(outside)
}

impl<A: Arithmetic> Additive<A> {
    /// The sum of a vector of every party. One round, two through a king.
    pub(super) fn sum_of_all<D: Domain>(
        &self,
        domain: &D,
        mine: Vec<D::E>,
    ) -> ClearTask<Self, D::E> {
        match self.openings {
            Openings::King if self.parties > 2 => through_king(domain.clone(), mine),
            _ => direct(domain.clone(), mine),
        }
    }
}

fn direct<A: Arithmetic, D: Domain>(domain: D, mine: Vec<D::E>) -> ClearTask<Additive<A>, D::E> {
    Box::new(move |p, out| {
        let n = mine.len();
        for peer in p.peers() {
            out.send(&domain, peer, &mine);
            out.expect(&domain, peer, n);
        }
        Ok(Box::new(move |p, inbox| {
            let mut sum = mine;
            for peer in p.peers() {
                domain.add_assign(&mut sum, &inbox.take(&domain, peer, n)?);
            }
            Ok(Step::Done(sum))
        }))
    })
}

fn through_king<A: Arithmetic, D: Domain>(
    domain: D,
    mut mine: Vec<D::E>,
) -> ClearTask<Additive<A>, D::E> {
    Box::new(move |p, out| {
        let parts = parts(&domain, mine.len(), p.parties);
        let own = parts.get(p.me).cloned();
        for (king, range) in parts.iter().enumerate().filter(|(i, _)| *i != p.me) {
            out.send(&domain, king, part(&mine, range.clone())?);
        }
        if let Some(own) = &own {
            for peer in p.peers() {
                out.expect(&domain, peer, own.len());
            }
        }
        Ok(Box::new(move |p, inbox| {
            if let Some(own) = &own {
                let sum = mine.get_mut(own.clone()).ok_or_else(outside)?;
                for peer in p.peers() {
                    domain.add_assign(sum, &inbox.take(&domain, peer, own.len())?);
                }
            }
            Ok(Step::Next(Box::new(move |p, out| {
                if let Some(own) = own {
                    let sum = part(&mine, own)?;
                    for peer in p.peers() {
                        out.send(&domain, peer, sum);
                    }
                }
                let others = parts.into_iter().enumerate().filter(|(i, _)| *i != p.me);
                let others: Vec<_> = others.collect();
                for (king, range) in &others {
                    out.expect(&domain, *king, range.len());
                }
                Ok(Box::new(move |_, inbox| {
                    for (king, range) in others {
                        let sum = inbox.take(&domain, king, range.len())?;
                        let slot = mine.get_mut(range).ok_or_else(outside)?;
                        slot.copy_from_slice(&sum);
                    }
                    Ok(Step::Done(mine))
                }))
            })))
        }))
    })
}
