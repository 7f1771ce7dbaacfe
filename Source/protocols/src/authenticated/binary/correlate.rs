//! Correlated OTs between all pairs, checked, and the authenticated bits that they make.
//!
//! Party i is the OT receiver with choices x_i towards every peer j; rows under the MAC key Δ_j of the peer are t_ij = q_ij ⊕ x_i·Δ_j, so that
//! x_i·Δ_i ⊕ ⊕_j t_ij at i and the q_ij at the others share x_i·Δ. The OT extension's check gets one tossed seed on all
//! links, and the hash of the choices, which it sends under a mask, is compared among the peers: choices are the same
//! towards all. Three rounds.

use keyquorum_math::Domain;
use keyquorum_ot::extension::sliced::{Kind, correction_bytes, proof_bytes};
use keyquorum_ot::{OtError, SlicedReceiver, SlicedSender};
use zeroize::Zeroizing;

use super::verify::{exchange, finish_toss, start_toss};
use super::{AuthenticatedBits, MAC_BITS, PARTS};
use crate::BITS;
use crate::adversary::Site;
use crate::error::{Check, EngineError, Result};
use crate::task::{SendFn, Step, and_then, join, then};
use crate::value::Share;

/// Correlated OTs that are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Wanted {
    /// Who has choices: one party, or all.
    pub owner: Option<usize>,
    /// MACs of the choices, or OTs as well.
    pub kind: Kind,
    /// Lanes of 64, an even number.
    pub lanes: usize,
}

impl Wanted {
    fn has_choices(&self, party: usize) -> bool {
        self.owner.is_none_or(|owner| owner == party)
    }
}

/// Correlated OTs with all peers.
pub(in super::super) struct Correlated {
    wanted: Wanted,
    /// Our choices, zeros if we have none.
    pub choices: Zeroizing<Vec<u64>>,
    /// Those that we receive and send, by peer.
    pub received: Vec<(usize, SlicedReceiver)>,
    pub sent: Vec<(usize, SlicedSender)>,
}

pub(super) fn blame(peer: usize) -> impl Fn(OtError) -> EngineError {
    move |e| {
        let what = format!("oblivious transfer with party {peer}");
        EngineError::ot(Check::OtExtension, &what, &e)
    }
}

/// The corrections. One round.
fn corrections(wanted: Vec<Wanted>) -> SendFn<AuthenticatedBits, Vec<Correlated>> {
    Box::new(move |p, out| {
        let mut all = Vec::with_capacity(wanted.len());
        for wanted in wanted {
            let mut correlated = Correlated {
                wanted,
                choices: Zeroizing::new(vec![0; wanted.lanes]),
                received: Vec::new(),
                sent: Vec::new(),
            };
            let mut mask = Zeroizing::new([0u64; 2]);
            if wanted.has_choices(p.me) {
                p.private.fill_u64(&mut correlated.choices);
                p.private.fill_u64(mask.as_mut_slice());
            }
            let [low, high] = *mask;
            let mask = u128::from(low) | u128::from(high) << 64;
            for peer in p.peers() {
                let channel = p.channel(peer)?;
                let parameters = channel.sender.parameters();
                if wanted.has_choices(peer) {
                    out.expect_bytes(
                        peer,
                        correction_bytes(parameters, wanted.kind, wanted.lanes / 2),
                    );
                }
                if wanted.has_choices(p.me) {
                    let choices =
                        p.adversary
                            .bits(Site::BitChoices, Some(peer), &correlated.choices);
                    let buffer = out.buffer(peer)?;
                    let start = buffer.len();
                    let receiver = &mut p.channel(peer)?.receiver;
                    let sliced = receiver
                        .sliced(wanted.kind, &choices, mask, buffer)
                        .map_err(blame(peer))?;
                    p.adversary
                        .change_message(Site::BitCorrections, Some(peer), buffer, start);
                    correlated.received.push((peer, sliced));
                }
            }
            all.push(correlated);
        }
        Ok(Box::new(move |p, inbox| {
            for correlated in &mut all {
                let Wanted { kind, lanes, .. } = correlated.wanted;
                for peer in p.peers() {
                    if !correlated.wanted.has_choices(peer) {
                        continue;
                    }
                    let sender = &mut p.channel(peer)?.sender;
                    let bytes = correction_bytes(sender.parameters(), kind, lanes / 2);
                    let sliced = sender
                        .sliced(kind, lanes / 2, inbox.take_bytes(peer, bytes)?)
                        .map_err(blame(peer))?;
                    correlated.sent.push((peer, sliced));
                }
            }
            Ok(Step::Done(all))
        }))
    })
}

pub(in super::super) fn missing(party: usize) -> EngineError {
    EngineError::internal(format!("what belongs to party {party} is missing"))
}

/// The correlated OTs of one party.
pub(in super::super) fn of_mut<T>(all: &mut [T], party: usize) -> Result<&mut T> {
    all.get_mut(party).ok_or_else(|| missing(party))
}

/// Correlated OTs that have passed their check.
pub(in super::super) fn task(wanted: Vec<Wanted>) -> SendFn<AuthenticatedBits, Vec<Correlated>> {
    let started = join(corrections(wanted), start_toss(), |_, all, toss| {
        Ok((all, toss))
    });
    let tossed = and_then(started, |_, (all, toss)| {
        Ok(then(finish_toss(toss), |_, seed| Ok((all, seed))))
    });
    and_then(tossed, |p, (all, seed)| {
        let mut proofs = vec![Vec::new(); p.parties];
        let mut expected = vec![0; p.parties];
        // The hash of our choices, the same to all.
        let mut hashes = Vec::new();
        for correlated in &all {
            for (i, (peer, sliced)) in correlated.received.iter().enumerate() {
                let mut proof = sliced.prove(&seed).map_err(blame(*peer))?;
                if i == 0 {
                    hashes.push((p.me, proof.iter().take(16).copied().collect::<Vec<_>>()));
                }
                p.adversary
                    .change_message(Site::BitProof, Some(*peer), &mut proof, 0);
                of_mut(&mut proofs, *peer)?.extend_from_slice(&proof);
            }
            for (peer, _) in &correlated.sent {
                *of_mut(&mut expected, *peer)? += proof_bytes(correlated.wanted.kind);
            }
        }
        Ok(then(exchange(proofs, expected), move |p, messages| {
            let mut rest: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
            // Whether a proof fits depends on our keys.
            p.guard.verdict(|| {
                for correlated in &all {
                    for (peer, sliced) in &correlated.sent {
                        let bytes = proof_bytes(correlated.wanted.kind);
                        let proof = of_mut(&mut rest, *peer)?.split_off(..bytes);
                        let proof = proof.ok_or_else(|| missing(*peer))?;
                        let verified = sliced.verify(&seed, proof).map(drop);
                        p.adversary.judge(verified.map_err(blame(*peer)))?;
                        hashes.push((*peer, proof.iter().take(16).copied().collect()));
                    }
                }
                Ok(())
            })?;
            hashes.sort_by_key(|(party, _)| *party);
            for (_, hash) in &hashes {
                p.verifier.record(hash);
            }
            Ok(all)
        }))
    })
}

impl Correlated {
    /// Our share of the choices as authenticated bits.
    pub fn share(&self, key: &[u64; MAC_BITS]) -> Result<Share<u64>> {
        let mut parts = Vec::with_capacity(PARTS);
        parts.push(self.choices.to_vec());
        for (j, key) in key.iter().enumerate() {
            let mut mac: Vec<u64> = self.choices.iter().map(|x| x & key).collect();
            for (peer, sliced) in &self.received {
                BITS.add_assign(&mut mac, sliced.row(j).map_err(blame(*peer))?);
            }
            for (peer, sliced) in &self.sent {
                BITS.add_assign(&mut mac, sliced.row(j).map_err(blame(*peer))?);
            }
            parts.push(mac);
        }
        Ok(Share { parts })
    }
}

type Strings = Zeroizing<Vec<u128>>;

impl Correlated {
    /// Our share of bits that one party knows, masked so that opened sums reveal nothing.
    pub fn private_share(&self, p: &mut AuthenticatedBits) -> Result<Share<u64>> {
        let mut share = self.share(&p.key)?;
        if let Some(owner) = self.wanted.owner {
            p.add_sharing_of_zero(owner, of_mut(&mut share.parts, 0)?)?;
        }
        Ok(share)
    }

    /// By peer, `words` words of the strings that we chose; for OTs.
    pub fn received_strings(
        &self,
        p: &mut AuthenticatedBits,
        words: usize,
    ) -> Result<Vec<(usize, Strings)>> {
        let strings = self.received.iter().map(|(peer, sliced)| {
            let hash = p.channel(*peer)?.receiver.hash();
            Ok((*peer, sliced.strings(hash, words).map_err(blame(*peer))?))
        });
        strings.collect()
    }

    /// By peer, `words` words of both strings; for OTs.
    pub fn sent_strings(
        &self,
        p: &mut AuthenticatedBits,
        words: usize,
    ) -> Result<Vec<(usize, [Strings; 2])>> {
        let strings = self.sent.iter().map(|(peer, sliced)| {
            let sender = &p.channel(*peer)?.sender;
            let strings = sliced.strings(sender.hash(), words);
            Ok((*peer, strings.map_err(blame(*peer))?))
        });
        strings.collect()
    }
}

/// A task that makes random bits: known to nobody (`owner` is `None`), or to one party.
pub(super) fn random_bits(batches: Vec<(Option<usize>, usize)>) -> SendFn<AuthenticatedBits, ()> {
    let wanted = batches
        .into_iter()
        .map(|(owner, lanes)| Wanted {
            owner,
            kind: Kind::Macs,
            lanes,
        })
        .collect();
    then(task(wanted), |p, all| -> Result<()> {
        for correlated in all {
            let share = correlated.private_share(p)?;
            match correlated.wanted.owner {
                None => p.preprocessing.random.put([share])?,
                Some(owner) => p
                    .preprocessing
                    .input(owner)?
                    .put(share, &correlated.choices)?,
            }
        }
        Ok(())
    })
}
