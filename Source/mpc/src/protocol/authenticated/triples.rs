//! Triples: party i has a_i with MACs; for every ordered pair, products of a_i with two random words b_j, b'_j of party j by
//! oblivious transfer with amplified privacy (`keyquorum_ot::amplified`); then MACs for b, b', c = a·b, c' = a·b', and the
//! sacrifice: t·b − b' is opened for a tossed t, and t·c − c' − a·(t·b − b') must be zero, which the check of MACs verifies
//! without opening it (MASCOT, CCS 2016, section 4.2; SPDZ2k, CRYPTO 2018, section 6).
//!
//! Choices of OTs are the same towards all peers: the hashes that the OT check tells of them, under one mask, are compared.
//! 13 rounds a batch.
//!
//! What a cheating party can do modulo 2^k: give b, or use an a, that is wrong by 2^(k + s − j). The sacrifice then passes if the
//! other operand is 0 modulo 2^j: it learns j low bits of a triple that nobody has used yet, and is caught otherwise, with
//! probability 1 − 2^-j. Over fields there is no such error.

use keyquorum_math::Domain;
use keyquorum_ot::amplified::{self, Operands, Partial, Shape};
use keyquorum_ot::extension::PROOF_BYTES;
use keyquorum_ot::{OtError, ReceiverBatch, SenderBatch};
use zeroize::{Zeroize, Zeroizing};

use super::binary::{Toss, exchange, finish_toss, start_toss};
use super::values::{Given, authenticate, check_sums};
use super::verify::{check, public};
use super::{Arithmetic, Authenticated, bits, open};
use crate::error::{EngineError, Result};
use crate::graph::{SendFn, Step, and_then, join, then, within};
use crate::value::Share;

fn blame(peer: usize) -> impl Fn(OtError) -> EngineError {
    move |e| EngineError::protocol(format!("oblivious transfer with party {peer}: {e}"))
}

/// A batch before its payloads.
struct Batch<A: Arithmetic> {
    shape: Shape<A>,
    operands: Operands<A::E>,
    received: Vec<(usize, ReceiverBatch)>,
    sent: Vec<(usize, SenderBatch)>,
    /// Our a_i.
    a: Zeroizing<Vec<A::E>>,
}

/// A task that puts `n` (a multiple of 128) triples in stock.
pub(super) fn task<A: Arithmetic>(n: usize) -> SendFn<Authenticated<A>, ()> {
    let tossed = and_then(start(n), |_, (batch, toss)| {
        let toss = within(finish_toss(toss), bits::<A>);
        Ok(then(toss, |_, seed| Ok((batch, seed))))
    });
    let proven = and_then(tossed, |_, (batch, seed)| Ok(prove(batch, &seed)));
    let multiplied = and_then(proven, |p, batch| payloads(p, batch));
    let combined = and_then(multiplied, |_, (batch, partial, toss)| {
        let toss = within(finish_toss(toss), bits::<A>);
        Ok(then(toss, |_, seed| Ok((batch, partial, seed))))
    });
    and_then(combined, |p, (batch, partial, seed)| {
        Ok(sacrifice(p.products(&batch, partial, &seed)))
    })
}

impl<A: Arithmetic> Authenticated<A> {
    /// Our shares of a, b, b', ab, ab'.
    fn products(&self, batch: &Batch<A>, partial: Partial<A::E>, seed: &Toss) -> [Vec<A::E>; 5] {
        let factors = &mut public(seed, 0);
        let ([b, b2], [c, c2]) = partial.finish(&batch.shape, &batch.operands, &batch.a, factors);
        #[cfg(test)]
        let c = self.lie_about_product(c);
        [batch.a.to_vec(), b, b2, c, c2]
    }
}

/// Draws a and the choices, and sends the corrections of the OTs. One round.
fn start<A: Arithmetic>(
    n: usize,
) -> SendFn<Authenticated<A>, (Batch<A>, super::binary::Committed)> {
    let corrections: SendFn<Authenticated<A>, Batch<A>> = Box::new(move |p, out| {
        let shape = Shape {
            domain: p.domain.clone(),
            items: n,
        };
        let mut batch = Batch {
            operands: Operands::draw(&shape, &mut p.private),
            shape,
            received: Vec::new(),
            sent: Vec::new(),
            a: p.draw(n),
        };
        let mut mask = Zeroizing::new([0u128]);
        p.private.fill_u128(mask.as_mut_slice());
        let words = batch.operands.choices.len();
        for peer in p.others() {
            let channel = &mut p.peer(peer)?.channel;
            let bytes = channel.sender.batch_bytes(words);
            #[cfg(test)]
            let batch_choices = p.lie_about_choices(peer, &batch.operands.choices);
            #[cfg(not(test))]
            let batch_choices = &batch.operands.choices;
            let receiver = &mut p.peer(peer)?.channel.receiver;
            let ours = receiver
                .batch_masked(&batch_choices[..], mask[0], out.buffer(peer)?)
                .map_err(blame(peer))?;
            out.expect_bytes(peer, bytes);
            batch.received.push((peer, ours));
        }
        Ok(Box::new(move |p, inbox| {
            for peer in p.others() {
                let sender = &mut p.peer(peer)?.channel.sender;
                let message = inbox.take_bytes(peer, sender.batch_bytes(words))?;
                let theirs = sender.batch(words, message).map_err(blame(peer))?;
                batch.sent.push((peer, theirs));
            }
            Ok(Step::Done(batch))
        }))
    });
    join(
        corrections,
        within(start_toss(), bits::<A>),
        |_, batch, toss| Ok((batch, toss)),
    )
}

/// The consistency check of the OTs. One round.
fn prove<A: Arithmetic>(batch: Batch<A>, seed: &Toss) -> SendFn<Authenticated<A>, Batch<A>> {
    let seed: [u8; 16] = std::array::from_fn(|i| seed.get(i).copied().unwrap_or(0));
    Box::new(move |p, out| {
        let mut proofs = vec![Vec::new(); p.parties];
        let mut told = Vec::new();
        for (i, (peer, ours)) in batch.received.iter().enumerate() {
            let proof = ours.prove(&seed);
            if i == 0 {
                told.push((p.me, proof.iter().take(16).copied().collect::<Vec<_>>()));
            }
            if let Some(slot) = proofs.get_mut(*peer) {
                *slot = proof;
            }
        }
        #[cfg(test)]
        p.lie_in_proofs(&mut proofs);
        let expected = vec![PROOF_BYTES; p.parties];
        let exchanged = within(exchange(proofs, expected), bits::<A>);
        then(exchanged, move |p, messages| {
            for (peer, theirs) in &batch.sent {
                let proof = messages.get(*peer).map_or(&[][..], Vec::as_slice);
                let sender = &p.peer(*peer)?.channel.sender;
                sender.verify(theirs, &seed, proof).map_err(blame(*peer))?;
                told.push((*peer, proof.iter().take(16).copied().collect()));
            }
            if p.parties > 2 {
                told.sort_by_key(|(party, _)| *party);
                for (_, hash) in &told {
                    p.bits.record(hash);
                }
            }
            Ok(batch)
        })(p, out)
    })
}

type Multiplied<A> = (
    Batch<A>,
    Partial<<A as Domain>::E>,
    super::binary::Committed,
);

/// Sends the payloads; our shares of the products so far. One round.
fn payloads<A: Arithmetic>(
    p: &mut Authenticated<A>,
    batch: Batch<A>,
) -> Result<SendFn<Authenticated<A>, Multiplied<A>>> {
    let (shape, me) = (&batch.shape, p.me);
    let mut messages = vec![Vec::new(); p.parties];
    let mut total = Partial::new(shape);
    for (peer, theirs) in &batch.sent {
        let Some(message) = messages.get_mut(*peer) else {
            continue;
        };
        #[cfg(test)]
        let a = &p.lie_about_operand(*peer, &batch.a);
        #[cfg(not(test))]
        let a = &batch.a;
        let sender = &p.peer(*peer)?.channel.sender;
        amplified::send(sender, theirs, shape, a, message, &mut total).map_err(blame(*peer))?;
        #[cfg(test)]
        p.lie_in_payload(message);
    }
    let expected = (0..p.parties)
        .map(|peer| if peer == me { 0 } else { shape.payload_bytes() })
        .collect();
    let exchanged = within(exchange(messages, expected), bits::<A>);
    let received = then(exchanged, move |p, messages| {
        for (peer, ours) in &batch.received {
            let message = messages.get(*peer).map_or(&[][..], Vec::as_slice);
            let receiver = &p.peer(*peer)?.channel.receiver;
            let choices = &batch.operands.choices;
            amplified::receive(receiver, ours, &batch.shape, choices, message, &mut total)
                .map_err(blame(*peer))?;
        }
        Ok((batch, total))
    });
    Ok(join(
        received,
        within(start_toss(), bits::<A>),
        |_, (batch, total), toss| Ok((batch, total, toss)),
    ))
}

/// Authenticates a, b, b', c, c', and sacrifices b' and c'.
fn sacrifice<A: Arithmetic>(vectors: [Vec<A::E>; 5]) -> SendFn<Authenticated<A>, ()> {
    let authenticated: SendFn<Authenticated<A>, _> = Box::new(move |p, out| {
        let mut list = Vec::with_capacity(vectors.len());
        for mut vector in vectors {
            let mut values = Zeroizing::new(Vec::with_capacity(vector.len() + 1));
            values.extend_from_slice(&vector);
            values.extend_from_slice(&p.draw(1));
            vector.iter_mut().zeroize();
            list.push(Given {
                owner: None,
                n: values.len(),
                values: Some(values),
            });
        }
        join(
            authenticate(list),
            within(start_toss(), bits::<A>),
            |_, shares, toss| Ok((shares, toss)),
        )(p, out)
    });
    let tossed = and_then(authenticated, |_, (shares, toss)| {
        let toss = within(finish_toss(toss), bits::<A>);
        Ok(then(toss, |_, seed| Ok((shares, seed))))
    });
    and_then(tossed, |_, (shares, seed)| {
        let checked = check_sums(shares, &seed);
        Ok(and_then(
            checked,
            move |p: &mut Authenticated<A>, shares| {
                let domain = p.domain.clone();
                let mut t = [domain.zero()];
                domain.random(&mut public(&seed, 2), &mut t);
                let [t] = t;
                let [a, b, b2, c, c2]: [Share<A::E>; 5] = shares
                    .try_into()
                    .map_err(|_| EngineError::usage("five vectors make a triple"))?;
                let difference = |x: &Share<A::E>, y: &Share<A::E>| {
                    let mut z = x.duplicate();
                    for (z, y) in z.parts.iter_mut().zip(&y.parts) {
                        domain.mul_scalar_assign(z, t);
                        domain.sub_assign(z, y);
                    }
                    z
                };
                let rho = difference(&b, &b2);
                let mut sigma = difference(&c, &c2);
                let opened = then(open(rho), move |p: &mut Authenticated<A>, rho| {
                    for (sigma, a) in sigma.parts.iter_mut().zip(&a.parts) {
                        let mut product = a.to_vec();
                        p.domain.mul_assign(&mut product, &rho);
                        p.domain.sub_assign(sigma, &product);
                        product.iter_mut().zeroize();
                    }
                    p.note_zero(&sigma);
                    Ok([a, b, c])
                });
                Ok(and_then(opened, |_, triples| {
                    Ok(then(check(), move |p: &mut Authenticated<A>, ()| {
                        let mut parts = triples
                            .into_iter()
                            .flat_map(|mut share| std::mem::take(&mut share.parts));
                        p.supply
                            .triples
                            .put(std::array::from_fn(|_| parts.next().unwrap_or_default()));
                        Ok(())
                    }))
                }))
            },
        ))
    })
}
