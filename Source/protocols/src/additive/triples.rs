//! Multiplication triples: party i draws a_i, b_i; for every ordered pair, Gilboa's product a_i·b_j by oblivious transfer.
//!
//! Two rounds. Bytes a triple and ordered pair: the OTs' corrections from j to i, k(k + 1)/2 bits (mod 2^k) or
//! ⌈log q⌉² bits (fields) of payload back.

use keyquorum_math::DomainKind;
use keyquorum_ot::Payload;
use keyquorum_ot::extension::Choices;
use keyquorum_ot::product::{self, Operand, correction_bytes, payload_bytes};

use super::{Additive, Arithmetic};
use crate::error::{EngineError, Result};
use crate::task::{SendFn, Step};

/// Names the peer in an error of oblivious transfer.
pub(super) fn blame(peer: usize) -> impl Fn(keyquorum_ot::OtError) -> EngineError {
    move |e| {
        let text = format!("oblivious transfer with party {peer}: {e}");
        match e {
            keyquorum_ot::OtError::Internal(_) => EngineError::internal(text),
            _ => EngineError::protocol(text),
        }
    }
}

/// A task that makes `n` triples.
pub(super) fn task<A: Arithmetic>(n: usize) -> SendFn<Additive<A>, ()> {
    Box::new(move |p, out| {
        let domain = p.domain.clone();
        let payload = domain.payload()?;
        let count = payload.bits();
        // Two parties modulo 2^k take the bits of b from the extension, which saves a row of corrections.
        let drawn = p.parties == 2 && matches!(domain.kind(), DomainKind::Z2k(_));
        let source = if drawn {
            Choices::Random
        } else {
            Choices::Given
        };
        let a = p.draw_private(&domain, n);
        let mut b = if drawn {
            Vec::new()
        } else {
            p.draw_private(&domain, n)
        };
        let mut pending = Vec::with_capacity(p.parties);
        for peer in p.peers() {
            let operand = if drawn {
                Operand::Random(n)
            } else {
                Operand::Words(&b)
            };
            let receiver = &mut p.channel(peer)?.receiver;
            let parameters = receiver.parameters();
            let ours = product::receive(receiver, &payload, operand, n, count, out.buffer(peer)?)
                .map_err(blame(peer))?;
            out.expect_bytes(peer, correction_bytes(source, parameters, n, count));
            pending.push((peer, ours));
        }
        if drawn {
            // Two parties: there is one peer.
            let [(peer, ours)] = pending.as_slice() else {
                return Err(EngineError::internal("words drawn with several peers"));
            };
            b = ours.words().map_err(blame(*peer))?;
        }
        let mut c = a.clone();
        domain.mul_assign(&mut c, &b);
        Ok(Box::new(move |p, inbox| {
            let mut answers = Vec::with_capacity(p.parties);
            for peer in p.peers() {
                let sender = &mut p.channel(peer)?.sender;
                let bytes = correction_bytes(source, sender.parameters(), n, count);
                let message = inbox.take_bytes(peer, bytes)?;
                let mut answer = Vec::new();
                let shares =
                    product::send(sender, &payload, &a, count, source, message, &mut answer)
                        .map_err(blame(peer))?;
                domain.add_assign(&mut c, &shares);
                answers.push((peer, answer));
            }
            let next: SendFn<Additive<A>, ()> = Box::new(move |_, out| {
                for (peer, answer) in answers {
                    out.buffer(peer)?.extend_from_slice(&answer);
                    out.expect_bytes(peer, payload_bytes(&payload, n, count));
                }
                Ok(Box::new(move |p, inbox| {
                    for (peer, ours) in pending {
                        let message = inbox.take_bytes(peer, payload_bytes(&payload, n, count))?;
                        let shares: Result<_> = ours.finish(message).map_err(blame(peer));
                        domain.add_assign(&mut c, &shares?);
                    }
                    p.preprocessing.triples.put([a, b, c]);
                    Ok(Step::Done(()))
                }))
            });
            Ok(Step::Next(next))
        }))
    })
}
