//! MAC checks that were cut off are finished by the next session, before anything is made under the keys.
//!
//! Whoever opens its sums of a check has the commitments of all on its disk, and everybody has its own opening there before it commits
//! (`crate::mac_key::checks`). So whether the check is right was decided before anything was revealed: a party that cut it off, or killed another one, has changed nothing.
//! The parties say which checks they have not finished, compare that, open what they committed to, and find the verdict as the check would have. If it was right the keys are
//! what they were. If it was not, they burn. A party that does not open keeps the others from using their keys: as a corrupted party could before, but now a crash, an outage, or who
//! is no party, cannot.
//!
//! Why nobody learns more than in a check that is not cut off: an honest party opens its sums here only with the commitments that it has noted; where it died before it had got those of
//! all, with the first that all parties agree on here, as if the messages had been late. It notes them before it opens, and from then on takes no others. Nobody has seen anything that
//! hangs on its sums before. What the parties received before they committed must be the same, as in the check (`commit_and_compare`).
//!
//! When no party has an unfinished check, openings that were sent to nobody are forgotten. Those that were sent stay until their place is used again, as a host that lost its power may not know
//! any more that a check is finished, and asks for it once more. Three messages to each peer, only the first of them if nothing is unfinished.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use super::Session;
use crate::error::{Check, EngineError, Result};
use crate::mac_key::MOST_CUT_OFFS;
use crate::mac_key::checks::{Commitment, Record};
use crate::protocol::authenticated::binary::commitment;
use crate::value::zip;

const HASH: usize = 32;
/// Unfinished checks of a party, at most: more than it can have at once.
const MOST: usize = 32;
/// Nonce of a commitment.
const NONCE: usize = 32;

/// A check, as all parties see it: what they received before, and their commitments.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Unfinished {
    transcript: [u8; HASH],
    commitments: Vec<Commitment>,
}

impl Unfinished {
    fn of(record: &Record) -> Self {
        Self {
            transcript: record.transcript,
            commitments: record.commitments.clone(),
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.transcript);
        out.extend_from_slice(self.commitments.as_flattened());
    }

    /// Those in a message, which has a transcript and a commitment of each party for each.
    fn decode(message: &[u8], parties: usize) -> Option<Vec<Self>> {
        let bytes = HASH * (1 + parties);
        let chunks = message.chunks_exact(bytes);
        if !chunks.remainder().is_empty() || chunks.len() > MOST {
            return None;
        }
        let one = |chunk: &[u8]| {
            let (hashes, _) = chunk.as_chunks::<HASH>();
            let (transcript, commitments) = hashes.split_first()?;
            Some(Self {
                transcript: *transcript,
                commitments: commitments.to_vec(),
            })
        };
        chunks.map(one).collect()
    }
}

/// What a party says of a check.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// It opens what it had committed to.
    Opens = 1,
    /// It knows nothing of it.
    Unknown = 2,
    /// It has got other messages or commitments.
    Differs = 3,
}

fn stays(what: &str) -> EngineError {
    EngineError::protocol(format!(
        "a MAC check was cut off, and {what}: nothing under this MAC key is used before it is finished; start all parties again, with the folders that they had, and if that does \
         not help make a new committee and new keys"
    ))
}

impl Session {
    /// Finishes the checks that earlier sessions did not. Returns the number of challenges that were cut off under the keys of this session, that of the party with most: what must
    /// resist them is made larger by all.
    ///
    /// # Errors
    /// [`EngineError::Check`] if one was wrong: the keys burn. [`EngineError::Protocol`] if a party does not open what it had committed to: they stay unfinished.
    pub(crate) fn finish_checks(&self) -> Result<u32> {
        let mut message = self.guard.cut_offs().to_le_bytes().to_vec();
        for record in self.guard.unfinished() {
            if usize::from(record.parties) != self.parties || usize::from(record.me) != self.party {
                return Err(stays(&format!(
                    "it was one of {} parties, of which this was party {}",
                    record.parties, record.me
                )));
            }
            Unfinished::of(&record).encode(&mut message);
        }
        let said = self.all_gather(&message)?;
        let (mut cut_offs, mut unfinished) = (0, BTreeSet::new());
        for (party, message) in said.iter().enumerate() {
            let (count, checks) = self.decoded(message).ok_or_else(|| {
                EngineError::protocol(format!(
                    "party {party} does not say what became of its MAC checks: start all parties with the same version"
                ))
            })?;
            cut_offs = cut_offs.max(count);
            unfinished.extend(checks);
        }
        if unfinished.is_empty() {
            // In a session among some of the parties another one may have an unfinished check.
            if self.lock()?.whole.is_none() {
                self.guard.forget_checks(self.parties)?;
            }
        } else {
            let unfinished: Vec<_> = unfinished.into_iter().collect();
            self.finish(&unfinished, &said)?;
        }
        Ok(cut_offs)
    }

    fn decoded(&self, message: &[u8]) -> Option<(u32, Vec<Unfinished>)> {
        let (count, checks) = message.split_at_checked(4)?;
        let count = u32::from_le_bytes(count.try_into().ok()?);
        let checks = Unfinished::decode(checks, self.parties)?;
        (count < MOST_CUT_OFFS).then_some((count, checks))
    }

    /// Our side of a check, and what we say of it.
    fn ours(&self, check: &Unfinished) -> (Answer, Option<Record>) {
        let ours = check.commitments.get(self.party);
        let Some(record) = ours.and_then(|ours| self.guard.find_check(ours)) else {
            return (Answer::Unknown, None);
        };
        let known = record.commitments.is_empty() || record.commitments == check.commitments;
        let same = record.transcript == check.transcript || !self.guard.compares_checks();
        let here = usize::from(record.parties) == self.parties
            && usize::from(record.me) == self.party
            && same;
        match known && here {
            true => (Answer::Opens, Some(record)),
            false => (Answer::Differs, None),
        }
    }

    fn finish(&self, unfinished: &[Unfinished], said: &[Vec<u8>]) -> Result<()> {
        let (answers, records): (Vec<_>, Vec<_>) =
            unfinished.iter().map(|check| self.ours(check)).unzip();
        self.agree(&answers, said)?;
        let mut records = records.into_iter().collect::<Option<Vec<_>>>();
        let records = records.as_mut().ok_or_else(EngineError::uneven)?;
        let mut message = Vec::new();
        for (check, record) in zip(unfinished, records.iter_mut())? {
            if record.commitments.is_empty() {
                record.commitments = check.commitments.clone();
                self.guard.notes_check(record)?;
            }
            message.extend_from_slice(&(record.opening.len() as u32).to_le_bytes());
            message.extend_from_slice(&record.opening);
        }
        let mut openings = Vec::with_capacity(self.parties);
        for (party, message) in self.all_gather(&message)?.iter().enumerate() {
            let opened = opened(message, records, party);
            openings.push(opened.ok_or_else(|| {
                stays(&format!(
                    "party {party} does not open what it had committed to"
                ))
            })?);
        }
        for (i, record) in records.iter().enumerate() {
            let sums = openings.iter().map(|of| of.get(i).map(Vec::as_slice));
            let sums = sums.collect::<Option<Vec<_>>>();
            if !sums.is_some_and(|sums| record.sums.vanish(&sums)) {
                return Err(EngineError::check(
                    Check::Interrupted,
                    "a MAC check that was cut off failed: one of the parties cheated, its results must not be used",
                ));
            }
        }
        records
            .iter()
            .try_for_each(|record| self.guard.verified(&record.ours))
    }

    /// Compares what all were told, and refuses where a party cannot open.
    fn agree(&self, answers: &[Answer], said: &[Vec<u8>]) -> Result<()> {
        let mut hash = Sha256::new_with_prefix(b"keyquorum-v1/unfinished checks");
        for message in said {
            hash.update((message.len() as u64).to_le_bytes());
            hash.update(message);
        }
        let mut message = hash.finalize().to_vec();
        message.extend(answers.iter().map(|answer| *answer as u8));
        let told = self.all_gather(&message)?;
        if !self.guard.compares_checks() {
            return Ok(());
        }
        for (party, theirs) in told.iter().enumerate() {
            let (digest, answers) = theirs.split_at_checked(HASH).unwrap_or_default();
            if Some(digest) != message.get(..HASH) || theirs.len() != message.len() {
                return Err(stays(&format!(
                    "party {party} was told of others than party {}",
                    self.party
                )));
            }
            if answers.contains(&(Answer::Unknown as u8)) {
                return Err(stays(&format!("party {party} knows nothing of it")));
            }
            if answers.iter().any(|answer| *answer != Answer::Opens as u8) {
                return Err(stays(&format!(
                    "party {party} has got other messages in it: one of the parties cheats"
                )));
            }
        }
        Ok(())
    }
}

/// The sums in a message of openings, if they are what the party had committed to.
fn opened(message: &[u8], records: &[Record], party: usize) -> Option<Vec<Vec<u8>>> {
    let mut rest = message;
    let mut all = Vec::with_capacity(records.len());
    for record in records {
        let (length, after) = rest.split_at_checked(4)?;
        let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
        let (opening, after) = after.split_at_checked(length)?;
        rest = after;
        let expected = record.commitments.get(party)?;
        if length != record.opening.len() || commitment(party, record.index, opening) != *expected {
            return None;
        }
        all.push(opening.get(NONCE..)?.to_vec());
    }
    rest.is_empty().then_some(all)
}
