//! AND triples from random OT of bits: with strings m₀, m₁ at i and choice b_j at j, m₀ and m_b share (m₀ ⊕ m₁)·b_j.
//!
//! Two parties: a_i = m₀ ⊕ m₁ and b_j the random choice, so that nothing but the extension's corrections is sent, in one
//! round. More parties: a_i and b_j must be the same towards all; one bit m₀ ⊕ m₁ ⊕ a_i an AND and ordered pair corrects,
//! in a second round.

use keyquorum_math::Domain;
use keyquorum_ot::bits;
use keyquorum_ot::extension::Choices;

use super::triples::blame;
use super::{Additive, Arithmetic, BITS};
use crate::task::{SendFn, Step, exchange, then};
use crate::value::zip;

/// A task that makes `lanes` (an even number of) lanes of AND triples.
pub(super) fn task<A: Arithmetic>(lanes: usize) -> SendFn<Additive<A>, ()> {
    Box::new(move |p, out| {
        let two = p.parties == 2;
        let source = if two { Choices::Random } else { Choices::Given };
        let mut b = if two {
            vec![0; lanes]
        } else {
            p.draw_private(&BITS, lanes)
        };
        let mut chosen = Vec::with_capacity(p.parties);
        for peer in p.peers() {
            let mut strings = vec![0; lanes];
            let receiver = &mut p.channel(peer)?.receiver;
            let bytes = lanes / 2 * source.block_bytes(receiver.parameters());
            bits::receive(receiver, &mut b, source, out.buffer(peer)?, &mut strings)
                .map_err(blame(peer))?;
            out.expect_bytes(peer, bytes);
            chosen.push((peer, strings));
        }
        Ok(Box::new(move |p, inbox| {
            let mut a = if two {
                vec![0; lanes]
            } else {
                p.draw_private(&BITS, lanes)
            };
            let mut c = vec![0; lanes];
            let mut answers = Vec::with_capacity(p.parties);
            for peer in p.peers() {
                let sender = &mut p.channel(peer)?.sender;
                let bytes = lanes / 2 * source.block_bytes(sender.parameters());
                let message = inbox.take_bytes(peer, bytes)?;
                let (mut zeros, mut ones) = (vec![0; lanes], vec![0; lanes]);
                bits::send(sender, source, message, &mut zeros, &mut ones).map_err(blame(peer))?;
                BITS.add_assign(&mut ones, &zeros);
                BITS.add_assign(&mut c, &zeros);
                if two {
                    a = ones;
                } else {
                    BITS.add_assign(&mut ones, &a);
                    answers.push((peer, ones));
                }
            }
            BITS.mul_acc(&mut c, &a, &b);
            if two {
                for (_, strings) in &chosen {
                    BITS.add_assign(&mut c, strings);
                }
                p.preprocessing.ands.put([a, b, c]);
                return Ok(Step::Done(()));
            }
            let from = p.peers().map(|peer| (peer, lanes)).collect();
            let corrections = exchange(&BITS, answers, from);
            Ok(Step::Next(then(
                corrections,
                move |p: &mut Additive<A>, corrections| {
                    for ((_, strings), correction) in zip(&chosen, corrections)? {
                        BITS.add_assign(&mut c, strings);
                        BITS.mul_acc(&mut c, &correction, &b);
                    }
                    p.preprocessing.ands.put([a, b, c]);
                    Ok(())
                },
            )))
        }))
    })
}
