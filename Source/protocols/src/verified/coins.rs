//! Coin tosses, and the round in which all parties wait for all others.
//!
//! # A toss needs every party
//!
//! A party goes on when it has the messages that it expects itself. A corrupted party can withhold a message from one honest party while another goes on. So no honest party
//! may be able to reveal a challenge alone. Here a challenge is a hash of one number of every party, and an honest party reveals its number when it has received all messages of all earlier
//! rounds. Whoever knows a challenge has the numbers of all honest parties. So all messages of earlier rounds to all honest parties were sent before: what the challenge tests is fixed.
//!
//! A corrupted party must not choose its numbers when it knows those of others. They are the links of a hash chain, of which every party announces the end in advance:
//! x_(i−1) = SHA-256(party, i, x_i), and toss i reveals x_i. All parties compare what they received as ends of chains, so that all accept the same numbers.
//!
//! Assumptions: SHA-256 is collision resistant, so there is one chain that a party can reveal; and it is a random oracle, so that a link that was not revealed stays unknown though links before it are
//! public, and the hash of all numbers is uniform to whoever lacks one of them. A party that sees the other numbers first can withhold its own, and then the session ends: the
//! messages of the check were fixed before, so this happens independently of honest parties' secrets.
//!
//! A toss takes one round, 32 bytes to each peer. The set-up takes two, 32 bytes to each peer in each; the first also compares seeds of subsets
//! ([`Verifiable::fingerprint`]), 32 bytes more. It runs before the first check, and again when the links do not suffice for a check.
//!
//! # The round before an opening
//!
//! What is opened may depend on inputs. A corrupted party must not see it while it can still choose an input. So before an opening there is a round in which everybody sends a byte to everybody
//! ([`barrier`]), unless a toss has come after the last input. The same argument holds: an honest party opens when it has the bytes of all honest parties, so they have received all earlier messages.

use keyquorum_math::{Domain, Prg};
use sha2::{Digest, Sha256};
use zeroize::Zeroize;

use super::Verifiable;
use super::check::Task;
use crate::adversary::Site;
use crate::error::{Check, EngineError, Result};
use crate::task::{Step, and_then};

/// The error of two members of a subset whose seeds differ.
pub fn different_seeds(peer: usize, me: usize) -> String {
    format!(
        "party {peer} and party {me} have different seeds for the same subset of parties: the party that sent the seeds, or one of the two, cheats"
    )
}

/// Links of a chain, unless a check needs more: half a millisecond, 32 KB.
const LINKS: usize = 1024;

/// Bytes of a link, or of the end of a chain.
pub(super) const LINK: usize = 32;

type Link = [u8; LINK];

/// The chains of all parties.
pub(super) struct Coins {
    /// The source of our chains.
    prg: Prg,
    /// Our links that are left, the next one last.
    links: Vec<Link>,
    /// Links of this chain that were revealed.
    used: u64,
    /// What everybody revealed last, or announced.
    last: Vec<Link>,
}

impl Drop for Coins {
    fn drop(&mut self) {
        self.links.zeroize();
    }
}

impl Coins {
    /// None yet.
    pub fn new(prg: Prg) -> Self {
        Self {
            prg,
            links: Vec::new(),
            used: 0,
            last: Vec::new(),
        }
    }

    /// Whether there were chains.
    pub fn ready(&self) -> bool {
        !self.last.is_empty()
    }

    /// Tosses that are left.
    pub fn left(&self) -> usize {
        self.links.len()
    }

    /// A new chain of at least so many links; returns its end.
    fn renew(&mut self, party: usize, links: usize) -> Link {
        let count = links.max(LINKS) as u64;
        let mut link = [0; LINK];
        let (low, high) = link.split_at_mut(LINK / 2);
        low.copy_from_slice(&self.prg.next_seed());
        high.copy_from_slice(&self.prg.next_seed());
        self.links.zeroize();
        self.links = Vec::with_capacity(count as usize);
        for index in (0..count).rev() {
            self.links.push(link);
            link = before(party, index, &link);
        }
        self.used = 0;
        link
    }

    /// Our next link, and its number.
    fn next(&mut self) -> Result<(u64, Link)> {
        let link = self.links.pop();
        let link = link.ok_or_else(|| EngineError::internal("a check with too few coins"))?;
        self.used += 1;
        Ok((self.used - 1, link))
    }
}

/// The link before link `index` + 1 of a party's chain.
fn before(party: usize, index: u64, link: &Link) -> Link {
    Sha256::new_with_prefix(b"keyquorum-v1/link of a chain of coins")
        .chain_update((party as u64).to_le_bytes())
        .chain_update(index.to_le_bytes())
        .chain_update(link)
        .finalize()
        .into()
}

/// Sends a message to every peer, which the adversary may change.
fn send_all<P: Verifiable>(
    p: &P,
    out: &mut crate::round::Outbox,
    (site, bytes): (Site, usize),
    message: impl Fn(usize) -> Vec<u8>,
) -> Result<()> {
    let (me, parties) = p.party();
    for peer in (0..parties).filter(|peer| *peer != me) {
        let mut sent = message(peer);
        p.adversary().change_message(site, Some(peer), &mut sent, 0);
        out.buffer(peer)?.extend_from_slice(&sent);
        out.expect_bytes(peer, bytes);
    }
    Ok(())
}

fn taken(inbox: &mut crate::round::Inbox, from: usize) -> Result<Link> {
    let bytes = inbox.take_bytes(from, LINK)?;
    bytes.try_into().map_err(|_| EngineError::uneven())
}

/// Announces the ends of chains for at least so many tosses, and compares them. Two rounds.
pub(super) fn set_up<P: Verifiable, A: Domain>(tosses: usize) -> Task<P, A, ()> {
    let announced: Task<P, A, Vec<Link>> = Box::new(move |p, out| {
        let (me, parties) = p.inner.party();
        let end = p.coins.renew(me, tosses);
        let prints = (0..parties).map(|peer| p.inner.fingerprint(peer));
        let prints: Vec<_> = prints.collect();
        let print = |peer: usize| prints.get(peer).copied().flatten();
        let bytes = LINK * (1 + usize::from(prints.iter().any(Option::is_some)));
        send_all(&p.inner, out, (Site::Commitment, bytes), |peer| {
            let print = print(peer);
            end.iter().chain(print.iter().flatten()).copied().collect()
        })?;
        Ok(Box::new(move |p, inbox| {
            let mut ends = Vec::with_capacity(parties);
            for peer in 0..parties {
                if peer == me {
                    ends.push(end);
                    continue;
                }
                ends.push(taken(inbox, peer)?);
                if let Some(print) = prints.get(peer).copied().flatten()
                    && taken(inbox, peer)? != print
                {
                    let failed = EngineError::check(Check::SubsetSeeds, different_seeds(peer, me));
                    p.inner.adversary().judge::<()>(Err(failed))?;
                }
            }
            Ok(Step::Done(ends))
        }))
    });
    and_then(announced, |_, ends| Ok(compared(ends)))
}

/// Compares what everybody received as ends of chains. One round.
fn compared<P: Verifiable, A: Domain>(ends: Vec<Link>) -> Task<P, A, ()> {
    Box::new(move |p, out| {
        let digest = Sha256::new_with_prefix(b"keyquorum-v1/ends of chains of coins")
            .chain_update(ends.concat())
            .finalize()
            .to_vec();
        send_all(&p.inner, out, (Site::Transcript, LINK), |_| digest.clone())?;
        Ok(Box::new(move |p, inbox| {
            let (me, parties) = p.inner.party();
            for peer in (0..parties).filter(|peer| *peer != me) {
                if inbox.take_bytes(peer, LINK)? != digest {
                    let failed = EngineError::check(
                        Check::Broadcast,
                        format!(
                            "party {peer} did not get the same commitments as party {me} for coin tosses: one of the parties cheats"
                        ),
                    );
                    p.inner.adversary().judge::<()>(Err(failed))?;
                }
            }
            p.coins.last = ends;
            Ok(Step::Done(()))
        }))
    })
}

/// A stream that nobody knew before every honest party had received all messages of earlier rounds. One round.
pub(super) fn toss<P: Verifiable, A: Domain>() -> Task<P, A, Prg> {
    Box::new(|p, out| (p.tossed)()(p, out))
}

/// A toss by the next links of all chains.
pub(super) fn tossed<P: Verifiable, A: Domain>() -> Task<P, A, Prg> {
    Box::new(|p, out| {
        let (index, link) = p.coins.next()?;
        send_all(&p.inner, out, (Site::Reveal, LINK), |_| link.to_vec())?;
        Ok(Box::new(move |p, inbox| {
            let (me, parties) = p.inner.party();
            let mut hash = Sha256::new_with_prefix(b"keyquorum-v1/check of products");
            for peer in 0..parties {
                let theirs = match peer == me {
                    true => link,
                    false => taken(inbox, peer)?,
                };
                let last = p.coins.last.get_mut(peer);
                let last = last.ok_or_else(EngineError::uneven)?;
                if before(peer, index, &theirs) != *last {
                    let failed = EngineError::check(
                        Check::Commitment,
                        format!(
                            "party {peer} opened another value than it had committed to in a coin toss"
                        ),
                    );
                    p.inner.adversary().judge::<()>(Err(failed))?;
                }
                *last = theirs;
                hash.update(theirs);
            }
            let mut seed = [0; 16];
            seed.copy_from_slice(hash.finalize().split_at(16).0);
            p.settle();
            Ok(Step::Done(Prg::new(seed, 0)))
        }))
    })
}

/// What a party sends in a [`barrier`].
const READY: u8 = 1;

/// Everybody waits until everybody has received all messages of all earlier rounds. One round, a byte to each peer.
pub(super) fn barrier<P: Verifiable, A: Domain>() -> Task<P, A, ()> {
    Box::new(|p, out| {
        send_all(&p.inner, out, (Site::Ready, 1), |_| vec![READY])?;
        Ok(Box::new(|p, inbox| {
            let (me, parties) = p.inner.party();
            for peer in (0..parties).filter(|peer| *peer != me) {
                if inbox.take_bytes(peer, 1)? != [READY] {
                    return Err(EngineError::protocol(format!(
                        "party {peer} sent something else than that it is ready for an opening"
                    )));
                }
            }
            p.settle();
            Ok(Step::Done(()))
        }))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_the_announced_end() {
        let mut coins = Coins::new(Prg::new([7; 16], 0));
        assert!(!coins.ready() && coins.next().is_err());
        for links in [3, LINKS + 5] {
            let mut last = coins.renew(1, links);
            let count = links.max(LINKS);
            assert_eq!(coins.left(), count);
            for wanted in 0..count as u64 {
                let (index, link) = coins.next().unwrap();
                assert_eq!((index, before(1, index, &link)), (wanted, last));
                assert_ne!(before(2, index, &link), last);
                assert_ne!(before(1, index + 1, &link), last);
                last = link;
            }
            assert!(coins.next().is_err());
        }
    }
}
