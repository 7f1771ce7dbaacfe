//! Share files, encoded elements and names of domains under random mutations: see the crate `keyquorum-fuzz`.

#![allow(clippy::unwrap_used)] // a failed test may panic

use std::fs;
use std::path::Path;

use keyquorum_fuzz::{Measured, Outcome, Target, fuzz};
use keyquorum_math::{Domain, DomainKind, Zq};
use keyquorum_mpc::store::{self, ShareHeader};
use sha2::{Digest, Sha256};

#[global_allocator]
static ALLOCATOR: Measured = Measured;

const START: usize = 16;
const SUM: usize = 32;

fn header(length: u64) -> ShareHeader {
    ShareHeader {
        protocol: "shamir".into(),
        domain: "F_97".into(),
        parties: 3,
        threshold: 1,
        party: 2,
        key_id: "ab".into(),
        length,
        ..ShareHeader::default()
    }
}

/// States the length that the data have, and the checksum, so that a mutation behind them counts.
fn mend(bytes: &mut Vec<u8>) {
    let Some(text) = bytes.get(12..16).and_then(|b| b.first_chunk::<4>()) else {
        return;
    };
    let at = START + u32::from_le_bytes(*text) as usize;
    let length = (bytes.len() as u64).wrapping_sub((at + 8 + SUM) as u64);
    let Some(field) = bytes.get_mut(at..).and_then(|b| b.first_chunk_mut::<8>()) else {
        return;
    };
    *field = length.to_le_bytes();
    let Some(end) = bytes.len().checked_sub(SUM).filter(|end| *end >= at + 8) else {
        return;
    };
    let sum = Sha256::digest(bytes.get(..end).unwrap());
    bytes.truncate(end);
    bytes.extend_from_slice(&sum);
}

#[test]
fn share_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.share");
    let corpus = [0, 5, 40].map(|length| {
        store::write(&path, &header(length), &vec![7; length as usize]).unwrap();
        fs::read(&path).unwrap()
    });
    let target = Target {
        name: "share-file",
        // The header is at most 2^16 bytes, of which JSON, its fields and its raw bytes are copies.
        cap: 1 << 19,
        corpus: corpus.to_vec(),
        mend: Some(mend),
        inputs: None,
    };
    fuzz(&target, |bytes| {
        let path = Path::new("s.share");
        let read = store::read_from(&mut &*bytes, bytes.len() as u64, path, &header(0));
        if let Err(error) = &read {
            let text = error.to_string();
            assert!(text.starts_with("share file s.share: "), "{text}");
            assert!(!text.contains(char::is_control) && text.len() < 1000);
        }
        Outcome::from(&read)
    });
}

#[test]
fn encoded_elements() {
    const COUNT: usize = 21;
    let fields = [Zq::new(97).unwrap(), Zq::new((1 << 61) - 1).unwrap()];
    let encode = |field: &Zq, word: u64| {
        let mut bytes = Vec::new();
        field.encode(&[word; COUNT], &mut bytes);
        bytes
    };
    let target = Target {
        name: "elements",
        cap: 1 << 12,
        corpus: vec![
            encode(&fields[0], 5),
            encode(&fields[0], 96),
            encode(&fields[1], 5),
            encode(&fields[1], (1 << 61) - 2),
        ],
        mend: Some(|bytes| bytes.resize(if bytes.len() < 90 { COUNT } else { 8 * COUNT }, 0)),
        inputs: None,
    };
    fuzz(&target, |bytes| {
        let mut taken = Err(());
        for field in &fields {
            let mut words = [1; COUNT];
            if field.decode(bytes, &mut words).is_ok() {
                assert_eq!(encode_all(field, &words), bytes);
                taken = Ok(());
            } else {
                assert_eq!(words, [0; COUNT]);
            }
        }
        Outcome::from(&taken)
    });
}

fn encode_all(field: &Zq, words: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    field.encode(words, &mut bytes);
    bytes
}

#[test]
fn names_of_domains() {
    let names = ["bits", "Z2^1", "Z2^128", "F_97", "F_2305843009213693951"];
    let target = Target {
        name: "domain",
        cap: 1 << 14,
        corpus: names.map(|name| name.as_bytes().to_vec()).to_vec(),
        mend: None,
        inputs: None,
    };
    fuzz(&target, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let read = text.parse::<DomainKind>();
        if let Ok(kind) = read {
            assert_eq!(kind.to_string(), text);
        }
        Outcome::from(&read)
    });
}
