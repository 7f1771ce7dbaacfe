//! Share files: a versioned header, the raw shares, a checksum; written atomically with mode 0600.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::error::{EngineError, Result};

const MAGIC: &[u8; 8] = b"KQSHARE\0";
/// Shares as key generation left them.
const FIRST_VERSION: u32 = 1;
/// Shares of a later epoch of their committee.
const EPOCH_VERSION: u32 = 2;
/// A header is small text; more is refused before it is read.
const MAX_HEADER: usize = 1 << 16;

/// Whose shares a file holds, and of what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShareHeader {
    /// Protocol name.
    pub protocol: String,
    /// Domain, in text form.
    pub domain: String,
    /// Number of parties.
    pub parties: u32,
    /// Corruptions tolerated.
    pub threshold: u32,
    /// The party whose shares these are.
    pub party: u32,
    /// The key or object that the shares belong to, in hexadecimal.
    pub key_id: String,
    /// Number of shared elements.
    pub length: u64,
    /// Number of the epoch; 0: as key generation left them, in files of version 1.
    #[serde(default, skip_serializing_if = "is_first")]
    pub epoch: u64,
    /// Name of the sharing, in hexadecimal; empty in epoch 0.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sharing: String,
    /// Digest of the committee that holds the key, in hexadecimal; empty in epoch 0.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub members: String,
}

/// Whether a number of an epoch is 0.
#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes references
fn is_first(epoch: &u64) -> bool {
    *epoch == 0
}

/// Longest text of a file's header that an error quotes, in characters.
const SHOWN: usize = 100;

fn fail(path: &Path, what: impl std::fmt::Display) -> EngineError {
    EngineError::Store(format!("share file {}: {what}", path.display()))
}

/// A text of a file, on one line.
fn shown(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(SHOWN)
        .collect()
}

impl ShareHeader {
    /// The version of the format that has these fields.
    fn version(&self) -> u32 {
        if self.epoch == 0 && self.sharing.is_empty() && self.members.is_empty() {
            FIRST_VERSION
        } else {
            EPOCH_VERSION
        }
    }

    /// Compares with what is expected; names the first field that differs. `length` 0 in `expected` means any.
    pub fn check(&self, expected: &Self, path: &Path) -> Result<()> {
        let fields = [
            ("protocol", self.protocol.clone(), expected.protocol.clone()),
            ("domain", self.domain.clone(), expected.domain.clone()),
            (
                "number of parties",
                self.parties.to_string(),
                expected.parties.to_string(),
            ),
            (
                "threshold",
                self.threshold.to_string(),
                expected.threshold.to_string(),
            ),
            ("party", self.party.to_string(), expected.party.to_string()),
            ("key id", self.key_id.clone(), expected.key_id.clone()),
            ("epoch", self.epoch.to_string(), expected.epoch.to_string()),
            ("sharing", self.sharing.clone(), expected.sharing.clone()),
            ("committee", self.members.clone(), expected.members.clone()),
            (
                "length",
                self.length.to_string(),
                if expected.length == 0 {
                    self.length
                } else {
                    expected.length
                }
                .to_string(),
            ),
        ];
        for (name, got, wanted) in fields {
            if got != wanted {
                return Err(fail(
                    path,
                    format!(
                        "foreign file, its {name} is {}, not {wanted}: restore this party's own file",
                        shown(&got)
                    ),
                ));
            }
        }
        Ok(())
    }
}

/// Writes a share file: temporary file beside it, synced, renamed.
///
/// # Errors
/// [`EngineError::Store`] if the folder cannot be written.
pub fn write(path: &Path, header: &ShareHeader, data: &[u8]) -> Result<()> {
    let text = serde_json::to_vec(header).map_err(|e| fail(path, e))?;
    let size = u32::try_from(text.len())
        .ok()
        .filter(|_| text.len() <= MAX_HEADER)
        .ok_or_else(|| fail(path, "its header would be too long to be read"))?;
    let folder = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|e| fail(path, e))?;
    // What nobody has locked is swept when the party starts again (harness/keyquorum/parties/traces.py).
    drop(file.as_file().try_lock());
    let mut hash = Sha256::new();
    let mut put = |file: &mut tempfile::NamedTempFile, bytes: &[u8]| -> Result<()> {
        hash.update(bytes);
        file.write_all(bytes).map_err(|e| fail(path, e))
    };
    put(&mut file, MAGIC)?;
    put(&mut file, &header.version().to_le_bytes())?;
    put(&mut file, &size.to_le_bytes())?;
    put(&mut file, &text)?;
    put(&mut file, &(data.len() as u64).to_le_bytes())?;
    put(&mut file, data)?;
    let sum = hash.finalize();
    file.write_all(&sum).map_err(|e| fail(path, e))?;
    file.as_file().sync_all().map_err(|e| fail(path, e))?;
    file.persist(path).map_err(|e| fail(path, e.error))?;
    File::open(folder)
        .and_then(|f| f.sync_all())
        .map_err(|e| fail(path, e))
}

/// Reads the header only (not the checksum): for listing.
pub fn read_header(path: &Path) -> Result<ShareHeader> {
    let mut file = File::open(path).map_err(|e| fail(path, e))?;
    header_of(&mut file, path).map(|(header, _)| header)
}

fn header_of(file: &mut impl Read, path: &Path) -> Result<(ShareHeader, Vec<u8>)> {
    let mut start = [0u8; 16];
    file.read_exact(&mut start)
        .map_err(|_| fail(path, "truncated in its header: restore it from a backup"))?;
    let [magic @ .., a, b, c, d, e, f, g, h] = start;
    if magic != *MAGIC {
        return Err(fail(path, "not a share file of KeyQuorum"));
    }
    let version = u32::from_le_bytes([a, b, c, d]);
    if !(FIRST_VERSION..=EPOCH_VERSION).contains(&version) {
        return Err(fail(
            path,
            format!(
                "format version {version}, this release reads {FIRST_VERSION} and {EPOCH_VERSION}"
            ),
        ));
    }
    let size = usize::try_from(u32::from_le_bytes([e, f, g, h]))
        .ok()
        .filter(|size| *size <= MAX_HEADER)
        .ok_or_else(|| fail(path, "corrupted: its header is too long"))?;
    let mut text = vec![0u8; size];
    file.read_exact(&mut text)
        .map_err(|_| fail(path, "truncated in its header: restore it from a backup"))?;
    let header: ShareHeader = serde_json::from_slice(&text)
        .ok()
        .filter(|header: &ShareHeader| header.version() == version)
        .ok_or_else(|| fail(path, "corrupted: its header cannot be read"))?;
    let mut raw = start.to_vec();
    raw.extend_from_slice(&text);
    Ok((header, raw))
}

/// Reads a share file and checks everything: permissions, header, length, checksum.
///
/// # Errors
/// [`EngineError::Store`] with the reason: missing, readable by others, truncated, foreign, corrupted.
pub fn read(path: &Path, expected: &ShareHeader) -> Result<Zeroizing<Vec<u8>>> {
    let mut file = File::open(path).map_err(|e| fail(path, e))?;
    let meta = file.metadata().map_err(|e| fail(path, e))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if meta.permissions().mode() & 0o077 != 0 {
            return Err(fail(path, "readable by others: chmod 600 it"));
        }
    }
    read_from(&mut file, meta.len(), path, expected)
}

/// Reads a share file of `total` bytes from `file` and checks all but its permissions; `path` names it in errors.
///
/// # Errors
/// As [`read`].
pub fn read_from(
    file: &mut impl Read,
    total: u64,
    path: &Path,
    expected: &ShareHeader,
) -> Result<Zeroizing<Vec<u8>>> {
    let (header, raw) = header_of(file, path)?;
    header.check(expected, path)?;
    let mut size = [0u8; 8];
    file.read_exact(&mut size)
        .map_err(|_| fail(path, "truncated: restore it from a backup"))?;
    // The stated length is compared with that of the file before memory is reserved.
    let length = total.checked_sub(raw.len() as u64 + 8 + 32);
    let length = length
        .filter(|length| *length == u64::from_le_bytes(size))
        .and_then(|length| usize::try_from(length).ok())
        .ok_or_else(|| fail(path, "truncated or extended: restore it from a backup"))?;
    let mut data = Zeroizing::new(vec![0u8; length]);
    file.read_exact(&mut data).map_err(|e| fail(path, e))?;
    let mut sum = [0u8; 32];
    file.read_exact(&mut sum).map_err(|e| fail(path, e))?;
    let mut hash = Sha256::new();
    hash.update(&raw);
    hash.update(size);
    hash.update(data.as_slice());
    if hash.finalize().as_slice() != sum {
        return Err(fail(
            path,
            "corrupted: its checksum is wrong, restore it from a backup",
        ));
    }
    Ok(data)
}

/// Removes a share file if it is there.
pub fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(fail(path, e)),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn header() -> ShareHeader {
        ShareHeader {
            protocol: "shamir".into(),
            domain: "F_97".into(),
            parties: 3,
            threshold: 1,
            party: 2,
            key_id: "ab".into(),
            length: 5,
            ..ShareHeader::default()
        }
    }

    fn of_epoch(epoch: u64) -> ShareHeader {
        ShareHeader {
            epoch,
            sharing: format!("{epoch:032x}"),
            members: "cd".repeat(32),
            ..header()
        }
    }

    #[test]
    fn epochs_have_a_version_and_do_not_mix() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.share");
        for (header, version) in [(header(), 1), (of_epoch(7), 2)] {
            write(&path, &header, &[7]).unwrap();
            assert_eq!(fs::read(&path).unwrap()[8], version);
            assert_eq!(read(&path, &header).unwrap().as_slice(), &[7]);
            assert_eq!(read_header(&path).unwrap(), header);
            for other in [of_epoch(6), of_epoch(0)] {
                assert!(read(&path, &other).is_err());
            }
        }
        let text = read(&path, &of_epoch(6)).unwrap_err().to_string();
        assert!(text.contains("its epoch is 7, not 6"), "{text}");
        // Fields of an epoch in a file of version 1: nobody wrote it.
        let mut bytes = fs::read(&path).unwrap();
        bytes[8] = 1;
        fs::write(&path, bytes).unwrap();
        assert!(read(&path, &of_epoch(7)).is_err());
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.share");
        write(&path, &header(), &[1, 2, 3, 4, 5]).unwrap();
        assert_eq!(read(&path, &header()).unwrap().as_slice(), &[1, 2, 3, 4, 5]);
        let good = fs::read(&path).unwrap();
        for i in 0..good.len() {
            let mut bad = good.clone();
            bad[i] ^= 1 << (i % 8);
            fs::write(&path, &bad).unwrap();
            assert!(read(&path, &header()).is_err(), "byte {i}");
        }
        for cut in 0..good.len() {
            fs::write(&path, &good[..cut]).unwrap();
            assert!(read(&path, &header()).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn what_a_foreign_file_says_stays_on_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.share");
        let mut other = header();
        other.protocol = "\n\u{1b}[2J".repeat(1000);
        write(&path, &other, &[0; 40]).unwrap();
        let text = read(&path, &header()).unwrap_err().to_string();
        assert!(!text.contains(char::is_control), "{text:?}");
        assert!(text.contains("not shamir") && text.len() < 1000, "{text}");
    }

    #[test]
    fn a_foreign_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.share");
        write(&path, &header(), &[0; 40]).unwrap();
        let mut other = header();
        other.party = 1;
        let text = read(&path, &other).unwrap_err().to_string();
        assert!(text.contains("its party is 2, not 1"), "{text}");
    }

    #[cfg(unix)]
    #[test]
    fn permissions_are_checked() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.share");
        write(&path, &header(), &[0; 40]).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(
            read(&path, &header())
                .unwrap_err()
                .to_string()
                .contains("chmod 600")
        );
    }

    /// 2^64 - 1 bytes and what the file has beside them would wrap around to its length.
    #[test]
    fn missing_parts_blocked_a_length_that_wraps_around_reserves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.share");
        write(&path, &header(), &[]).unwrap();
        let good = fs::read(&path).unwrap();
        let at = good.len() - 32 - 8;
        for missing in 1..=32 {
            let mut bad = good[..good.len() - missing].to_vec();
            let length = 0u64.wrapping_sub(missing as u64);
            bad[at..at + 8].copy_from_slice(&length.to_le_bytes());
            fs::write(&path, &bad).unwrap();
            let text = read(&path, &header()).unwrap_err().to_string();
            assert!(text.contains("truncated or extended"), "{text}");
        }
    }
}
