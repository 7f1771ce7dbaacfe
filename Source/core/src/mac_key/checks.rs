//! Checks of sums that are not finished, beside a MAC key: so that a party which died in the middle of one can finish it.
//!
//! A party writes its opening to the disk before it commits to it, and the commitments of all before it opens. So the verdict of a check is fixed on the
//! disk before anything is revealed, and whoever dies then only learns it later: see `session/unfinished.rs` of `mpc`.
//!
//! `mac.key.checks` has [`SLOTS`] slots, which are used in turn. A check takes two of them: for our opening, and for the same with all commitments. Its last byte
//! says that it is finished. Parties go from round to round together, so what is overwritten is long finished at all of them.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Result, Seek, SeekFrom, Write};
use std::path::Path;

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// Slots, two a check.
const SLOTS: usize = 64;
/// Bytes of a slot: a hash of its content, its length, the content, zeros, and whether it is finished.
const SLOT: usize = 1 << 13;
const HASH: usize = 32;
const HEAD: usize = HASH + 4;

/// A commitment to a party's sums.
pub type Commitment = [u8; HASH];

/// When the sums of all parties are right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sums {
    /// Bytes whose exclusive or is zero.
    Xor,
    /// Words of 128 bits whose sums are zero modulo 2^k.
    PowerOfTwo(u32),
    /// Words of 128 bits whose sums are zero modulo a prime below 2^127.
    Prime(u128),
}

impl Sums {
    const fn encoded(self) -> (u8, u128) {
        match self {
            Self::Xor => (0, 0),
            Self::PowerOfTwo(bits) => (1, bits as u128),
            Self::Prime(q) => (2, q),
        }
    }

    fn decoded(kind: u8, size: u128) -> Option<Self> {
        match kind {
            0 => Some(Self::Xor),
            1 => u32::try_from(size).ok().map(Self::PowerOfTwo),
            2 => (size > 1 && size < 1 << 127).then_some(Self::Prime(size)),
            _ => None,
        }
    }

    /// Whether these sums of all parties, of which each has as many bytes, are right.
    pub fn vanish(self, all: &[&[u8]]) -> bool {
        let Some(length) = all.first().map(|sums| sums.len()) else {
            return false;
        };
        if all.iter().any(|sums| sums.len() != length) {
            return false;
        }
        let column = |at: usize| {
            all.iter()
                .map(move |sums| sums.get(at).copied().unwrap_or(0))
        };
        if self == Self::Xor {
            return (0..length).all(|at| column(at).fold(0, |sum, byte| sum ^ byte) == 0);
        }
        if length % 16 != 0 {
            return false;
        }
        (0..length / 16).all(|word| {
            let word = |sums: &&[u8]| {
                let bytes = sums.get(16 * word..16 * word + 16);
                bytes
                    .and_then(|bytes| bytes.try_into().ok())
                    .map(u128::from_le_bytes)
            };
            let words = all.iter().map(word).collect::<Option<Vec<u128>>>();
            words.is_some_and(|words| self.sum_vanishes(&words))
        })
    }

    fn sum_vanishes(self, words: &[u128]) -> bool {
        match self {
            Self::Xor => false,
            Self::PowerOfTwo(bits) => {
                let sum = words
                    .iter()
                    .fold(0u128, |sum, word| sum.wrapping_add(*word));
                sum.checked_shl(128 - bits.min(128)).unwrap_or(0) == 0
            }
            // Below 2^127, so that nothing overflows.
            Self::Prime(q) => words.iter().fold(0, |sum, word| (sum + word % q) % q) == 0,
        }
    }
}

/// Our side of a check.
#[derive(Clone)]
pub struct Record {
    /// Our number.
    pub me: u16,
    /// Number of parties.
    pub parties: u16,
    /// Sums that vanish if the check is right.
    pub sums: Sums,
    /// The number of the commitment, the same at all parties.
    pub index: u64,
    /// Our commitment.
    pub ours: Commitment,
    /// What we had received when we committed: the same at all parties.
    pub transcript: [u8; HASH],
    /// Its opening: a nonce and our sums. It may have been sent if there are commitments.
    pub opening: Zeroizing<Vec<u8>>,
    /// Those of all parties; empty if we have not got them.
    pub commitments: Vec<Commitment>,
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Record").finish_non_exhaustive() // its opening may be secret
    }
}

fn take<'a>(rest: &mut &'a [u8], bytes: usize) -> Option<&'a [u8]> {
    let (first, more) = rest.split_at_checked(bytes)?;
    *rest = more;
    Some(first)
}

fn hash_of(rest: &mut &[u8]) -> Option<[u8; HASH]> {
    take(rest, HASH)?.try_into().ok()
}

impl Record {
    fn encode(&self, number: u64) -> Zeroizing<Vec<u8>> {
        let mut out = Zeroizing::new(Vec::with_capacity(SLOT));
        let (kind, size) = self.sums.encoded();
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&self.me.to_le_bytes());
        out.extend_from_slice(&self.parties.to_le_bytes());
        out.push(kind);
        out.extend_from_slice(&size.to_le_bytes());
        out.extend_from_slice(&self.index.to_le_bytes());
        out.extend_from_slice(&self.ours);
        out.extend_from_slice(&self.transcript);
        out.extend_from_slice(&(self.opening.len() as u32).to_le_bytes());
        out.extend_from_slice(&self.opening);
        for commitment in &self.commitments {
            out.extend_from_slice(commitment);
        }
        out
    }

    fn decode(content: &[u8]) -> Option<(u64, Self)> {
        let mut rest = content;
        let number = u64::from_le_bytes(take(&mut rest, 8)?.try_into().ok()?);
        let me = u16::from_le_bytes(take(&mut rest, 2)?.try_into().ok()?);
        let parties = u16::from_le_bytes(take(&mut rest, 2)?.try_into().ok()?);
        let kind = *take(&mut rest, 1)?.first()?;
        let size = u128::from_le_bytes(take(&mut rest, 16)?.try_into().ok()?);
        let sums = Sums::decoded(kind, size)?;
        let index = u64::from_le_bytes(take(&mut rest, 8)?.try_into().ok()?);
        let (ours, transcript) = (hash_of(&mut rest)?, hash_of(&mut rest)?);
        let length = u32::from_le_bytes(take(&mut rest, 4)?.try_into().ok()?);
        let opening = Zeroizing::new(take(&mut rest, length as usize)?.to_vec());
        let mut commitments = Vec::new();
        while !rest.is_empty() {
            commitments.push(hash_of(&mut rest)?);
        }
        let record = Self {
            me,
            parties,
            sums,
            index,
            ours,
            transcript,
            opening,
            commitments,
        };
        Some((number, record))
    }
}

/// What is in a slot.
#[derive(Debug)]
struct Slot {
    number: u64,
    record: Record,
    finished: bool,
}

impl Slot {
    /// Whether we may have opened what we committed to, and do not know the verdict.
    fn open(&self) -> bool {
        !self.record.commitments.is_empty() && !self.finished
    }
}

/// The checks beside a key.
#[derive(Debug)]
pub struct Checks {
    file: File,
    slots: Vec<Option<Slot>>,
    written: u64,
}

fn full() -> std::io::Error {
    std::io::Error::new(
        ErrorKind::StorageFull,
        "more checks at once than there is room for",
    )
}

fn damaged(path: &Path) -> std::io::Error {
    let text = format!(
        "{} is damaged, and may have a check that is not finished: restore the file as the last session left it, or make a new committee",
        path.display()
    );
    std::io::Error::new(ErrorKind::InvalidData, text)
}

impl Checks {
    /// Those at `path`, which is made if it is not there, and is on the disk when this returns.
    pub fn load(path: &Path) -> Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        let mut content = Zeroizing::new(Vec::with_capacity(SLOTS * SLOT));
        file.read_to_end(&mut content)?;
        if content.len() != SLOTS * SLOT {
            // One that was cut off as it was made has zeros alone. In any other there may be an open check.
            if content.iter().any(|byte| *byte != 0) {
                return Err(damaged(path));
            }
            // A file without holes: what is written later changes no sizes and needs no further blocks.
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&vec![0; SLOTS * SLOT])?;
            file.sync_all()?;
            super::sync(super::folder_of(path))?;
        }
        let mut slots: Vec<_> = content.chunks_exact(SLOT).map(slot).collect();
        slots.resize_with(SLOTS, || None);
        let written = slots.iter().flatten().map(|slot| slot.number).max();
        Ok(Self {
            file,
            slots,
            written: written.map_or(0, |number| number + 1),
        })
    }

    /// The number of open ones at `path`, which another session may have.
    pub fn unfinished(path: &Path) -> Result<usize> {
        let content = match std::fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
            content => Zeroizing::new(content?),
        };
        if content.len() != SLOTS * SLOT && content.iter().any(|byte| *byte != 0) {
            return Err(damaged(path));
        }
        let slots = content.chunks_exact(SLOT).filter_map(slot);
        Ok(slots.filter(Slot::open).count())
    }

    /// Notes a check, or our progress in it. On the disk when this returns.
    pub fn note(&mut self, record: Record) -> Result<()> {
        let at = (self.written % SLOTS as u64) as usize;
        let slot = self.slots.get_mut(at).ok_or_else(full)?;
        if slot.as_ref().is_some_and(Slot::open) {
            return Err(full());
        }
        let content = record.encode(self.written);
        if HEAD + content.len() >= SLOT {
            return Err(full());
        }
        let mut bytes = Zeroizing::new(Vec::with_capacity(SLOT));
        bytes.extend_from_slice(&Sha256::digest(&content));
        bytes.extend_from_slice(&(content.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&content);
        bytes.resize(SLOT, 0);
        self.file.seek(SeekFrom::Start((at * SLOT) as u64))?;
        self.file.write_all(&bytes)?;
        self.file.sync_data()?;
        *slot = Some(Slot {
            number: self.written,
            record,
            finished: false,
        });
        self.written += 1;
        Ok(())
    }

    /// The last that was noted of a check, by our commitment.
    pub fn find(&self, ours: &Commitment) -> Option<&Record> {
        let of = |slot: &&Slot| slot.record.ours == *ours;
        let all = self.slots.iter().flatten().filter(of);
        all.max_by_key(|slot| slot.number).map(|slot| &slot.record)
    }

    /// All that are noted, the last one last.
    #[cfg(any(test, feature = "testing"))]
    pub fn all(&self) -> Vec<&Record> {
        let mut all: Vec<_> = self.slots.iter().flatten().collect();
        all.sort_by_key(|slot| slot.number);
        all.into_iter().map(|slot| &slot.record).collect()
    }

    /// A check was right. Not synced: where a host loses its power it is finished once more.
    pub fn finish(&mut self, ours: &Commitment) -> Result<()> {
        for (at, slot) in self.slots.iter_mut().enumerate() {
            if let Some(slot) = slot
                && slot.record.ours == *ours
                && slot.open()
            {
                let end = (at + 1) * SLOT - 1;
                self.file.seek(SeekFrom::Start(end as u64))?;
                self.file.write_all(&[1])?;
                slot.finished = true;
            }
        }
        Ok(())
    }

    /// Those of which we may have opened our sums, and do not know the verdict.
    pub fn open(&self) -> impl Iterator<Item = &Record> {
        let all = self.slots.iter().flatten();
        all.filter(|slot| slot.open()).map(|slot| &slot.record)
    }

    /// Removes those among so many parties that we have opened to nobody, as nobody has an open one. The others stay until their slots are used again: that
    /// a check was right is not synced, so a host that loses its power may ask for it once more. What it notes later syncs that as well.
    pub fn forget(&mut self, parties: usize) -> Result<()> {
        for (at, slot) in self.slots.iter_mut().enumerate() {
            let closed = |slot: &mut Slot| {
                usize::from(slot.record.parties) == parties && slot.record.commitments.is_empty()
            };
            if slot.take_if(closed).is_some() {
                self.file.seek(SeekFrom::Start((at * SLOT) as u64))?;
                self.file.write_all(&[0; SLOT])?;
            }
        }
        Ok(())
    }
}

/// What a slot has; nothing if it was cut off as it was written, before anything was sent that hangs on it.
fn slot(bytes: &[u8]) -> Option<Slot> {
    let (hash, rest) = bytes.split_at_checked(HASH)?;
    let (length, rest) = rest.split_at_checked(4)?;
    let length = u32::from_le_bytes(length.try_into().ok()?);
    let content = rest.get(..length as usize)?;
    if Sha256::digest(content).as_slice() != hash {
        return None;
    }
    let (number, record) = Record::decode(content)?;
    Some(Slot {
        number,
        record,
        finished: bytes.last() == Some(&1),
    })
}

#[cfg(test)]
mod tests;
