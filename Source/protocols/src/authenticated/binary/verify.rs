//! Commitments, coin tossing, and the check of what was opened.
//!
//! For every opened vector of bits x each party keeps s_i = m_i ⊕ x·Δ_i, whose sum over the parties is zero if x is true; a
//! wrong bit makes it the sum of the honest keys there. The check tosses a key of a linear hash after all was opened, and
//! the parties commit to the hashes of the rows of their s_i, then open them: the sums must vanish. Damgård, Keller,
//! Larraia, Pastro, Scholl, Smart, "Practical covertly secure MPC for dishonest majority" (ESORICS 2013), figure 10.

use std::mem::take;

use keyquorum_ot::LinearHash;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

use super::correlate::{missing, of_mut};
use super::{AuthenticatedBits, MAC_BITS, PARTS};
use crate::BITS;
use crate::adversary::Site;
use crate::error::{Check, EngineError, Result};
use crate::mac_key::checks::{Commitment, Record, Sums};
use crate::task::{SendFn, Step, and_then, at_start, join, then};
use crate::value::{Share, zip};
use keyquorum_math::Domain;

/// Lanes that may be opened before they are verified: 5 MB.
pub(super) const MOST_PENDING: usize = 1 << 14;

/// A public random string.
pub(in super::super) type Toss = [u8; 32];

/// The first half of a toss, as the seed of a generator.
pub(in super::super) fn first_half(toss: &Toss) -> [u8; 16] {
    let mut seed = [0; 16];
    seed.copy_from_slice(toss.split_at(16).0);
    seed
}

const NONCE: usize = 32;

/// Openings and messages to verify.
#[derive(Default)]
pub(super) struct Verifier {
    /// Bit j of our s_i, in lanes.
    rows: Vec<Vec<u64>>,
    /// Everything that all parties must have got alike.
    transcript: Sha256,
    commitments: u64,
}

impl Drop for Verifier {
    fn drop(&mut self) {
        for row in &mut self.rows {
            row.zeroize();
        }
    }
}

impl Verifier {
    /// Lanes that wait for their check. There are no rows before something was opened.
    pub fn pending(&self) -> usize {
        self.rows.first().map_or(0, Vec::len)
    }

    /// Notes bits that were opened as `values`.
    ///
    /// # Errors
    /// [`EngineError::Internal`] if the share has another shape, or other lanes than there are values: some would not be verified.
    pub fn opened(
        &mut self,
        share: &Share<u64>,
        values: &[u64],
        key: &[u64; MAC_BITS],
    ) -> Result<()> {
        share.check(PARTS, values.len())?;
        self.rows.resize_with(MAC_BITS, Vec::new);
        let macs = zip(share.parts.iter().skip(1), key)?;
        for (row, (mac, key)) in zip(&mut self.rows, macs)? {
            row.extend(mac.iter().zip(values).map(|(m, x)| m ^ (x & key)));
        }
        Ok(())
    }

    /// Notes bytes that all parties must have got.
    pub fn record(&mut self, bytes: &[u8]) {
        self.transcript.update(bytes);
    }

    /// Notes words that all parties must have got.
    pub fn record_words(&mut self, words: &[u64]) {
        let mut bytes = Vec::with_capacity(8 * words.len());
        BITS.encode(words, &mut bytes);
        self.record(&bytes);
    }

    fn digest(&self) -> Vec<u8> {
        self.transcript.clone().finalize().to_vec()
    }
}

/// Sends each peer its message (by party), and gets as many bytes from each as announced.
pub(in super::super) fn exchange(
    messages: Vec<Vec<u8>>,
    expected: Vec<usize>,
) -> SendFn<AuthenticatedBits, Vec<Vec<u8>>> {
    Box::new(move |p, out| {
        for peer in p.peers() {
            let message = messages.get(peer).ok_or_else(|| missing(peer))?;
            out.buffer(peer)?.extend_from_slice(message);
            out.expect_bytes(peer, *expected.get(peer).ok_or_else(|| missing(peer))?);
        }
        drop(messages);
        Ok(Box::new(move |p, inbox| {
            (0..p.parties)
                .map(|peer| match expected.get(peer) {
                    Some(n) if peer != p.me => Ok(inbox.take_bytes(peer, *n)?.to_vec()),
                    Some(_) => Ok(Vec::new()),
                    None => Err(missing(peer)),
                })
                .collect::<Result<_>>()
                .map(Step::Done)
        }))
    })
}

/// Sends the same to everybody and gets as much from each; returns all by party.
fn to_all(site: Site, message: Vec<u8>) -> SendFn<AuthenticatedBits, Vec<Vec<u8>>> {
    at_start(move |p: &mut AuthenticatedBits| {
        let expected = vec![message.len(); p.parties];
        let mut messages = vec![message; p.parties];
        for (party, message) in messages.iter_mut().enumerate() {
            p.adversary.change_message(site, Some(party), message, 0);
        }
        let ours = messages.get(p.me).cloned();
        let ours = ours.ok_or_else(|| missing(p.me))?;
        Ok(then(exchange(messages, expected), move |p, mut all| {
            *of_mut(&mut all, p.me)? = ours;
            Ok(all)
        }))
    })
}

/// As [`to_all`]; the next check compares what the parties got.
pub(super) fn broadcast(site: Site, message: Vec<u8>) -> SendFn<AuthenticatedBits, Vec<Vec<u8>>> {
    then(to_all(site, message), |p, all| {
        for message in &all {
            p.verifier.record(message);
        }
        Ok(all)
    })
}

/// Values to which all parties are committed.
pub(in super::super) struct Committed {
    /// Nonce and value.
    mine: Zeroizing<Vec<u8>>,
    number: u64,
    all: Vec<Vec<u8>>,
}

/// Sums of a check to which all parties are committed.
pub(in super::super) struct CommittedSums {
    committed: Committed,
    /// Our side of it, which is on the disk.
    record: Record,
}

impl CommittedSums {
    /// Our commitment, by which the check is known.
    pub fn ours(&self) -> Commitment {
        self.record.ours
    }
}

/// The commitment to an opening, a nonce and a value.
pub fn commitment(party: usize, number: u64, opening: &[u8]) -> Commitment {
    Sha256::new()
        .chain_update(b"keyquorum-v1/commitment")
        .chain_update((party as u64).to_le_bytes())
        .chain_update(number.to_le_bytes())
        .chain_update(opening)
        .finalize()
        .into()
}

/// Commits to a value, which is as long at all parties. One round.
fn commit(value: Vec<u8>) -> SendFn<AuthenticatedBits, Committed> {
    at_start(move |p: &mut AuthenticatedBits| {
        let (mine, number) = p.opening(&value);
        let hash = commitment(p.me, number, &mine).to_vec();
        Ok(then(broadcast(Site::Commitment, hash), move |_, all| {
            Ok(Committed { mine, number, all })
        }))
    })
}

impl AuthenticatedBits {
    /// A nonce and the value, and the number of the commitment.
    fn opening(&mut self, value: &[u8]) -> (Zeroizing<Vec<u8>>, u64) {
        let mut mine = Zeroizing::new(vec![0; NONCE]);
        self.private.fill(&mut mine);
        mine.extend_from_slice(value);
        let number = self.verifier.commitments;
        self.verifier.commitments += 1;
        (mine, number)
    }
}

/// [`commit`] to our sums of a check. They are on the disk before anybody has the commitment, so that a party that dies can open it later.
pub(in super::super) fn commit_sums(
    sums: Sums,
    value: Vec<u8>,
) -> SendFn<AuthenticatedBits, CommittedSums> {
    at_start(move |p: &mut AuthenticatedBits| {
        let (mine, index) = p.opening(&value);
        let record = Record {
            me: p.me as u16,
            parties: p.parties as u16,
            sums,
            index,
            ours: commitment(p.me, index, &mine),
            transcript: p.verifier.transcript.clone().finalize().into(),
            opening: mine.clone(),
            commitments: Vec::new(),
        };
        p.guard.notes_check(&record)?;
        let hash = record.ours.to_vec();
        Ok(then(broadcast(Site::Commitment, hash), move |_, all| {
            let committed = Committed {
                mine,
                number: index,
                all,
            };
            Ok(CommittedSums { committed, record })
        }))
    })
}

/// Opens what was committed to: the values by party. One round.
fn reveal(committed: Committed) -> SendFn<AuthenticatedBits, Vec<Vec<u8>>> {
    let Committed { mine, number, all } = committed;
    then(
        to_all(Site::Reveal, mine.to_vec()),
        move |p, mut openings| {
            for (party, (opening, expected)) in zip(&mut openings, &all)?.enumerate() {
                if commitment(party, number, opening).as_slice() != expected.as_slice() {
                    let failed = EngineError::check(
                        Check::Commitment,
                        format!("party {party} opened another value than it had committed to"),
                    );
                    p.adversary.judge::<()>(Err(failed))?;
                }
                let (_, value) = opening
                    .split_at_checked(NONCE)
                    .ok_or_else(|| missing(party))?;
                *opening = value.to_vec();
            }
            Ok(openings)
        },
    )
}

/// [`reveal`] of our sums of a MAC check. They reveal as much as the MAC key, if something was opened wrongly, and who has got them need not give its own: so the
/// commitments of all are on the disk before, by which the verdict is fixed.
pub(in super::super) fn reveal_sums(
    sums: CommittedSums,
) -> SendFn<AuthenticatedBits, Vec<Vec<u8>>> {
    at_start(move |p: &mut AuthenticatedBits| {
        let CommittedSums {
            committed,
            mut record,
        } = sums;
        let all = committed.all.iter().map(|one| one.as_slice().try_into());
        record.commitments = all
            .collect::<std::result::Result<_, _>>()
            .map_err(|_| EngineError::uneven())?;
        p.guard.notes_check(&record)?;
        Ok(reveal(committed))
    })
}

/// First half of a coin toss: everybody commits to random bytes.
pub(in super::super) fn start_toss() -> SendFn<AuthenticatedBits, Committed> {
    at_start(move |p: &mut AuthenticatedBits| {
        let mut random = vec![0; 32];
        p.private.fill(&mut random);
        Ok(commit(random))
    })
}

/// Second half: a string that nobody knew or could choose before.
pub(in super::super) fn finish_toss(committed: Committed) -> SendFn<AuthenticatedBits, Toss> {
    then(reveal(committed), |p, all| {
        let mut hash = Sha256::new_with_prefix(b"keyquorum-v1/toss");
        for value in &all {
            hash.update(value);
        }
        let toss: Toss = hash.finalize().into();
        p.adversary.sees(Site::Toss, p.me, &toss);
        Ok(toss)
    })
}

/// [`finish_toss`] of what decides whether a deviation of before is noticed: who gets it first sees that, and may break off instead of
/// giving its own. Until [`Guard::answered`](crate::guard::Guard::answered) whatever goes wrong is an attempt, which is counted.
pub(in super::super) fn finish_challenge(committed: Committed) -> SendFn<AuthenticatedBits, Toss> {
    at_start(move |p: &mut AuthenticatedBits| {
        p.guard.challenged()?;
        Ok(finish_toss(committed))
    })
}

/// [`commit_sums`], and among more than two parties a comparison of what they got so far, which blames a peer that got something else:
/// sums of a check must not be revealed while honest parties hold different values, as their difference would single out the key of one
/// of them, nor while they hold different commitments, which would be a guess of its own for each of them (deferred checks compare those with the reveal, and
/// leave one guess: [`reveal_sums_comparing`]). One round, or two.
pub(in super::super) fn commit_and_compare(
    sums: Sums,
    value: Vec<u8>,
) -> SendFn<AuthenticatedBits, CommittedSums> {
    at_start(move |p: &mut AuthenticatedBits| {
        if p.parties == 2 {
            return Ok(commit_sums(sums, value));
        }
        Ok(and_then(commit_sums(sums, value), |_, committed| {
            Ok(then(compare(), |_, ()| Ok(committed)))
        }))
    })
}

/// [`commit_sums`], and in the same round, among more than two parties, a comparison of what they got before. The commitments are not compared yet.
pub(in super::super) fn commit_comparing(
    sums: Sums,
    value: Vec<u8>,
) -> SendFn<AuthenticatedBits, CommittedSums> {
    comparing(commit_sums(sums, value))
}

/// [`reveal_sums`], and in the same round, among more than two parties, a comparison of what they got before, the commitments included. A party that gave the
/// others different commitments learns the sums, as if it had given wrong ones, but nobody accepts.
pub(in super::super) fn reveal_sums_comparing(
    sums: CommittedSums,
) -> SendFn<AuthenticatedBits, Vec<Vec<u8>>> {
    comparing(reveal_sums(sums))
}

fn comparing<V: Send + 'static>(
    task: SendFn<AuthenticatedBits, V>,
) -> SendFn<AuthenticatedBits, V> {
    Box::new(move |p, out| match p.parties {
        2 => task(p, out),
        _ => join(task, compare(), |_, value, ()| Ok(value))(p, out),
    })
}

fn compare() -> SendFn<AuthenticatedBits, ()> {
    at_start(move |p: &mut AuthenticatedBits| {
        let mine = p.verifier.digest();
        let said = to_all(Site::Transcript, mine.clone());
        Ok(then(said, move |p, all| {
            let Some(peer) = all.iter().position(|theirs| *theirs != mine) else {
                return Ok(());
            };
            let failed = EngineError::check(
                Check::Broadcast,
                format!(
                    "parties {} and {peer} did not get the same messages: one of the parties cheats",
                    p.me
                ),
            );
            p.adversary.judge::<()>(Err(failed)).map(drop)
        }))
    })
}

/// Verifies everything that was opened before it starts. Four rounds, five among more than two parties.
pub(in super::super) fn check() -> SendFn<AuthenticatedBits, ()> {
    at_start(move |p: &mut AuthenticatedBits| {
        let mut rows = take(&mut p.verifier.rows);
        let task = and_then(start_toss(), |_, toss| Ok(finish_challenge(toss)));
        Ok(and_then(task, move |p: &mut AuthenticatedBits, seed| {
            let hash = LinearHash::new(&seed);
            let mut sums = Vec::with_capacity(16 * MAC_BITS);
            rows.resize_with(MAC_BITS, Vec::new);
            for row in &mut rows {
                row.resize(row.len().next_multiple_of(2), 0);
                sums.extend_from_slice(&hash.lanes(row).to_le_bytes());
                row.zeroize();
            }
            p.adversary
                .change_message(Site::BitCheckSum, None, &mut sums, 0);
            let committed = commit_and_compare(Sums::Xor, sums);
            Ok(and_then(committed, |_, committed| {
                let ours = committed.ours();
                Ok(then(reveal_sums(committed), move |p, all| {
                    verify_sums(p, &all)?;
                    p.guard.verified(&ours)?;
                    p.guard.answered()
                }))
            }))
        }))
    })
}

/// The sum of the hashes of all rows of all parties.
fn sum_of_sums(all: &[Vec<u8>]) -> Result<Vec<u8>> {
    let mut sum = vec![0u8; 16 * MAC_BITS];
    for theirs in all {
        for (s, t) in zip(&mut sum, theirs)? {
            *s ^= t;
        }
    }
    Ok(sum)
}

fn verify_sums(p: &AuthenticatedBits, all: &[Vec<u8>]) -> Result<()> {
    for (party, theirs) in all.iter().enumerate() {
        p.adversary.sees(Site::BitCheckSum, party, theirs);
    }
    let sum = sum_of_sums(all)?;
    if bool::from(sum.ct_eq(&vec![0; sum.len()])) {
        return Ok(());
    }
    let failed = EngineError::check(
        Check::BitMacs,
        "the MAC check of opened bits failed: one of the parties cheats, its results must not be used",
    );
    p.adversary.judge::<()>(Err(failed)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn internal<T>(result: Result<T>) -> bool {
        matches!(result, Err(EngineError::Internal(_)))
    }

    /// A bit whose MAC is in no row would be opened without a check.
    #[test]
    fn missing_parts_blocked_openings_of_which_a_part_is_not_verified() {
        let (key, mut verifier) = ([!0; MAC_BITS], Verifier::default());
        for (parts, lanes) in [
            (PARTS - 1, 2),
            (PARTS + 1, 2),
            (1, 2),
            (PARTS, 1),
            (PARTS, 3),
        ] {
            let share = Share::zeros(parts, lanes);
            assert!(internal(verifier.opened(&share, &[1, 2], &key)));
            assert_eq!(verifier.pending(), 0);
        }
        let opened = verifier.opened(&Share::zeros(PARTS, 2), &[1, 2], &key);
        assert!(opened.is_ok() && verifier.rows == vec![vec![1, 2]; MAC_BITS]);
    }

    /// Sums of fewer rows than there are would be taken for sums of all.
    #[test]
    fn missing_parts_blocked_sums_of_fewer_rows() {
        let full = vec![3; 16 * MAC_BITS];
        assert!(
            sum_of_sums(&[full.clone(), full.clone()]).is_ok_and(|sum| sum == [0; 16 * MAC_BITS])
        );
        for bytes in [0, 16 * MAC_BITS - 1, 16 * MAC_BITS + 1] {
            assert!(internal(sum_of_sums(&[full.clone(), vec![3; bytes]])));
        }
    }
}
