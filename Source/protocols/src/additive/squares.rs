//! Squares: a² = Σ a_i² + 2·Σ_{i<j} a_i·a_j, one product an unordered pair, modulo 2^(k−1) in rings: half the price of a
//! triple. Of the items of a pair one half goes in each direction. Two rounds.

use keyquorum_ot::Payload;
use keyquorum_ot::extension::Choices;
use keyquorum_ot::product::{self, Operand, correction_bytes, payload_bytes};

use super::triples::blame;
use super::{Additive, Arithmetic, outside};
use crate::task::{SendFn, Step};

/// A task that makes `n` squares.
pub(super) fn task<A: Arithmetic>(n: usize) -> SendFn<Additive<A>, ()> {
    Box::new(move |p, out| {
        let me = p.me;
        // Where we receive and where we send, with this peer.
        let received = move |peer: usize| if me < peer { 0..n / 2 } else { n / 2..n };
        let sent = move |peer: usize| if me < peer { n / 2..n } else { 0..n / 2 };
        let domain = p.domain.clone();
        let payload = domain.half_payload()?;
        let count = payload.bits();
        let a = p.draw_private(&domain, n);
        let mut pending = Vec::with_capacity(p.parties);
        for peer in p.peers() {
            let words = a.get(received(peer)).ok_or_else(outside)?;
            let receiver = &mut p.channel(peer)?.receiver;
            let parameters = receiver.parameters();
            let operand = Operand::Words(words);
            let buffer = out.buffer(peer)?;
            let ours = product::receive(receiver, &payload, operand, words.len(), count, buffer)
                .map_err(blame(peer))?;
            let theirs = sent(peer).len();
            out.expect_bytes(
                peer,
                correction_bytes(Choices::Given, parameters, theirs, count),
            );
            pending.push((peer, ours));
        }
        // Sum of our shares of the cross products.
        let mut cross = vec![domain.zero(); n];
        Ok(Box::new(move |p, inbox| {
            let mut answers = Vec::with_capacity(p.parties);
            for peer in p.peers() {
                let words = a.get(sent(peer)).ok_or_else(outside)?;
                let sender = &mut p.channel(peer)?.sender;
                let bytes =
                    correction_bytes(Choices::Given, sender.parameters(), words.len(), count);
                let message = inbox.take_bytes(peer, bytes)?;
                let mut answer = Vec::new();
                let source = Choices::Given;
                // The payload counts the low bits only.
                let shares =
                    product::send(sender, &payload, words, count, source, message, &mut answer)
                        .map_err(blame(peer))?;
                let slot = cross.get_mut(sent(peer)).ok_or_else(outside)?;
                domain.add_assign(slot, &shares);
                answers.push((peer, answer));
            }
            let next: SendFn<Additive<A>, ()> = Box::new(move |_, out| {
                for (peer, answer) in answers {
                    out.buffer(peer)?.extend_from_slice(&answer);
                    out.expect_bytes(peer, payload_bytes(&payload, received(peer).len(), count));
                }
                Ok(Box::new(move |p, inbox| {
                    for (peer, ours) in pending {
                        let bytes = payload_bytes(&payload, ours.len(), count);
                        let shares = ours
                            .finish(inbox.take_bytes(peer, bytes)?)
                            .map_err(blame(peer))?;
                        let slot = cross.get_mut(received(peer)).ok_or_else(outside)?;
                        domain.add_assign(slot, &shares);
                    }
                    let mut c = a.clone();
                    domain.mul_assign(&mut c, &a);
                    domain.add_assign(&mut c, &cross);
                    domain.add_assign(&mut c, &cross);
                    p.preprocessing.squares.put([a, c]);
                    Ok(Step::Done(()))
                }))
            });
            Ok(Step::Next(next))
        }))
    })
}
