//! Triples: random elements a with MACs, and for every ordered pair of parties, products of what one has of a with a random word b_j of
//! the other, by oblivious transfer with amplified privacy (`keyquorum_ot::amplified`). The OTs bring three products: with the key, which
//! makes the MAC of b; with the share of a; and with the share of the MAC of a, which makes the MAC of c = a·b. So b cannot be authenticated
//! as another word than was multiplied, and nothing is sacrificed.
//!
//! Why this is secure with abort, also modulo 2^l for l = k + s, where an error of 2^(l - 1) times a secret vanishes with probability
//! 1/2:
//! 1. Choices are bits, the same in all rows and towards all peers (the check of the OT extension, whose hashes of the choices are
//!    compared). b and c are sums of choice bits times public numbers, and so are their MACs.
//! 2. Nobody learns anything of an honest party's share of a: it goes only into pads of OTs and the correlation of `values`.
//! 3. A party that multiplies something else, or shifts its own words, makes MACs wrong by a vector d that hangs on choice bits of
//!    honest parties, and on the key. The subset sums (`subset_sums`) pass only if d is what the party repairs, but for 2^-44.
//!    So of ℓ bits that d hangs on, all are guessed: it is caught with probability 1 − 2^-ℓ, before anything of the batch is used.
//!    An error of a value alone that its MAC does not show is a multiple of 2^(l - i) for i low bits of the key that are zero; values count modulo
//!    2^k, and an error that matters there needs i > s.
//! 4. The outcome of the check does not depend on the factors g of the γ, which are tossed after it, and the words b are uniform given ℓ
//!    guessed bits, within 2^-((E − ℓ)/2 + 1) (`keyquorum_ot::amplified`). So an adversary that bets on a bit of a or b is caught, or
//!    knows no more of it than before, within 2^-43; if it bets on ever more batches it is caught with probability 1/2 each time, and
//!    then there is no further one. Over F_q bets on the highest bits may be safer, and reveal less (`keyquorum_ot::amplified`).
//! 5. What is wrong after the check is known to the adversary, or agrees with its MAC: later checks pass or fail whatever the secrets are.
//!
//! 14 rounds a batch, 15 among more than two parties. Keller, Orsini, Scholl, "MASCOT" (CCS 2016), section 4; Cramer, Damgård, Escudero, Scholl, Xing, "SPDZ2k" (CRYPTO
//! 2018), section 6, which sacrifice instead; the products of authenticated elements with bits are those of `mixed`.

use std::sync::Arc;

use keyquorum_ot::amplified::{self, Factors, Operands, Partial, Products, Shape};
use keyquorum_ot::extension::PROOF_BYTES;
use keyquorum_ot::{OtError, ReceiverBatch, SenderBatch};
use zeroize::Zeroizing;

use super::binary::correlate::{missing, of_mut};
use super::binary::{Committed, Toss, exchange, finish_toss, first_half, start_toss};
use super::subset_sums::{self, CHECKS};
use super::verify::public;
use super::{Arithmetic, Authenticated, bits};
use crate::adversary::Site;
use crate::error::{Check, EngineError, Result};
use crate::task::{SendFn, Step, and_then, at_start, join, then, within};
use crate::value::Share;

fn blame(peer: usize) -> impl Fn(OtError) -> EngineError {
    move |e| {
        let what = format!("oblivious transfer with party {peer}");
        EngineError::ot(Check::OtExtension, &what, &e)
    }
}

/// A batch before its payloads.
struct Batch<A: Arithmetic> {
    shape: Shape<A>,
    operands: Operands<A::E>,
    received: Vec<(usize, ReceiverBatch)>,
    sent: Vec<(usize, SenderBatch)>,
    /// Our shares of a.
    a: Share<A::E>,
}

/// A batch after its payloads.
struct Made<A: Arithmetic> {
    shape: Shape<A>,
    a: Share<A::E>,
    /// β, γ, and their products with a.
    shares: [Share<A::E>; 4],
}

/// Asks for the correlated randomness that [`task`] uses.
pub(super) fn need<A: Arithmetic>(p: &mut Authenticated<A>, n: usize) {
    p.preprocessing.randoms.need(n + CHECKS);
}

/// A task that makes `n` (a multiple of 128) triples.
pub(super) fn task<A: Arithmetic>(n: usize) -> SendFn<Authenticated<A>, ()> {
    let tossed = and_then(start(n), |_, (batch, toss)| {
        let toss = within(finish_toss(toss), bits::<A>);
        Ok(then(toss, |_, seed| Ok((batch, seed))))
    });
    let proven = and_then(tossed, |_, (batch, seed)| Ok(prove(batch, &seed)));
    let multiplied = and_then(proven, |p, batch| payloads(p, batch));
    let checked = and_then(multiplied, |_, (made, toss)| {
        Ok(subset_sums::check(
            made,
            |made: &Made<A>| made.shares.iter().collect(),
            toss,
        ))
    });
    then(checked, |p: &mut Authenticated<A>, (made, seed)| {
        let [a, am] = two(made.a)?;
        let [word, extra, product, extra_product] = made.shares;
        let products = Products {
            word: two(word)?,
            extra: two(extra)?,
            product: two(product)?,
            extra_product: two(extra_product)?,
        };
        let combined = products.combine(&made.shape, &mut public(&seed, 0));
        let [[b, bm], [c, cm]] = combined.map_err(blame(p.me))?;
        p.preprocessing.triples.put([a, am, b, bm, c, cm]);
        Ok(())
    })
}

/// Both component vectors of a share.
fn two<E: keyquorum_math::Element>(mut share: Share<E>) -> Result<[Vec<E>; 2]> {
    std::mem::take(&mut share.parts)
        .try_into()
        .map_err(|_| EngineError::internal("a share with a MAC has two parts"))
}

/// Takes a, draws the choices, and sends the corrections of the OTs. One round.
fn start<A: Arithmetic>(n: usize) -> SendFn<Authenticated<A>, (Batch<A>, Committed)> {
    let corrections: SendFn<Authenticated<A>, Batch<A>> = Box::new(move |p, out| {
        let shape = Shape {
            domain: p.domain.clone(),
            items: n,
        };
        let mut batch = Batch {
            operands: Operands::draw(&shape, &mut p.private).map_err(blame(p.me))?,
            shape,
            received: Vec::new(),
            sent: Vec::new(),
            a: Share {
                parts: p.preprocessing.randoms.take(n)?.into(),
            },
        };
        let mut mask = Zeroizing::new([0u128]);
        p.private.fill_u128(mask.as_mut_slice());
        let [mask] = *mask;
        let words = batch.operands.choices.len();
        for peer in p.others() {
            let channel = &mut p.peer(peer)?.channel;
            let bytes = channel.sender.batch_bytes(words);
            let choices = p
                .adversary
                .blocks(Site::Choices, Some(peer), &batch.operands.choices);
            let receiver = &mut p.peer(peer)?.channel.receiver;
            let ours = receiver
                .batch_masked(&choices, mask, out.buffer(peer)?)
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
    let seed = first_half(seed);
    at_start(move |p: &mut Authenticated<A>| {
        let mut proofs = vec![Vec::new(); p.parties];
        let mut hashes = Vec::new();
        for (i, (peer, ours)) in batch.received.iter().enumerate() {
            let mut proof = ours.prove(&seed).map_err(blame(*peer))?;
            if i == 0 {
                hashes.push((p.me, proof.iter().take(16).copied().collect::<Vec<_>>()));
            }
            p.adversary
                .change_message(Site::Proof, Some(*peer), &mut proof, 0);
            *of_mut(&mut proofs, *peer)? = proof;
        }
        let expected = vec![PROOF_BYTES; p.parties];
        let exchanged = within(exchange(proofs, expected), bits::<A>);
        Ok(then(exchanged, move |p, messages| {
            // Whether a proof fits depends on our secrets.
            let guard = Arc::clone(&p.bits.guard);
            guard.verdict(|| {
                for (peer, theirs) in &batch.sent {
                    let proof = messages.get(*peer).ok_or_else(|| missing(*peer))?;
                    let sender = &p.peer(*peer)?.channel.sender;
                    let verified = sender.verify(theirs, &seed, proof);
                    p.adversary.judge(verified.map_err(blame(*peer)))?;
                    hashes.push((*peer, proof.iter().take(16).copied().collect()));
                }
                Ok(())
            })?;
            if p.parties > 2 {
                hashes.sort_by_key(|(party, _)| *party);
                for (_, hash) in &hashes {
                    p.bits.record(hash);
                }
            }
            Ok(batch)
        }))
    })
}

type Multiplied<A> = (Made<A>, Committed);

/// Sends the payloads; our shares of the products. One round.
fn payloads<A: Arithmetic>(
    p: &mut Authenticated<A>,
    batch: Batch<A>,
) -> Result<SendFn<Authenticated<A>, Multiplied<A>>> {
    let (shape, me) = (&batch.shape, p.me);
    let mut messages = vec![Vec::new(); p.parties];
    let mut total = Partial::new(shape);
    for (peer, theirs) in &batch.sent {
        let message = of_mut(&mut messages, *peer)?;
        let (to, domain) = (Some(*peer), &shape.domain);
        let mut key = [p.key];
        p.adversary
            .change_elements(Site::OperandKey, to, domain, &mut key);
        let a = p
            .adversary
            .elements(Site::Operand, to, domain, batch.a.part(0)?);
        let mac = p
            .adversary
            .elements(Site::OperandMac, to, domain, batch.a.part(1)?);
        let [key] = key;
        let factors = Factors {
            key,
            a: &a,
            mac: &mac,
        };
        let sender = &p.peer(*peer)?.channel.sender;
        amplified::send(sender, theirs, shape, &factors, message, &mut total)
            .map_err(blame(*peer))?;
        p.adversary
            .change_message(Site::Payload, Some(*peer), message, 0);
    }
    let expected = (0..p.parties)
        .map(|peer| if peer == me { 0 } else { shape.payload_bytes() })
        .collect();
    let exchanged = within(exchange(messages, expected), bits::<A>);
    let received = then(exchanged, move |p: &mut Authenticated<A>, messages| {
        for (peer, ours) in &batch.received {
            let message = messages.get(*peer).ok_or_else(|| missing(*peer))?;
            let receiver = &p.peer(*peer)?.channel.receiver;
            let choices = &batch.operands.choices;
            amplified::receive(receiver, ours, &batch.shape, choices, message, &mut total)
                .map_err(blame(*peer))?;
        }
        let Batch {
            shape, operands, a, ..
        } = batch;
        let factors = Factors {
            key: p.key,
            a: a.part(0)?,
            mac: a.part(1)?,
        };
        let mut products = total
            .finish(&shape, &operands, &factors)
            .map_err(blame(p.me))?;
        let share = |parts: &mut [Vec<A::E>; 2]| Share {
            parts: parts.iter_mut().map(std::mem::take).collect(),
        };
        let mut shares = [
            share(&mut products.word),
            share(&mut products.extra),
            share(&mut products.product),
            share(&mut products.extra_product),
        ];
        for (site, share) in [(Site::Factor, 0), (Site::Product, 2)] {
            let share = shares.get_mut(share).ok_or_else(EngineError::uneven)?;
            let values = share.part_mut(0)?;
            p.adversary.change_elements(site, None, &p.domain, values);
        }
        Ok(Made { shape, a, shares })
    });
    Ok(join(
        received,
        within(start_toss(), bits::<A>),
        |_, made, toss| Ok((made, toss)),
    ))
}
