//! What is kept of checks, over the ends of processes and of hosts.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // a failed test may panic

use std::fs;

use super::*;

fn record(number: u8) -> Record {
    Record {
        me: 0,
        parties: 2,
        sums: Sums::PowerOfTwo(112),
        index: u64::from(number),
        ours: [number; HASH],
        transcript: [9; HASH],
        opening: Zeroizing::new(vec![number; 100]),
        commitments: Vec::new(),
    }
}

fn opened(number: u8) -> Record {
    let mut record = record(number);
    record.commitments = vec![[number; HASH], [77; HASH]];
    record
}

fn folder() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mac.key.checks");
    (folder, path)
}

fn open(checks: &Checks) -> Vec<u64> {
    checks.open().map(|record| record.index).collect()
}

#[test]
fn a_check_is_open_from_its_commitments_to_its_end() {
    let (_folder, path) = folder();
    let mut checks = Checks::load(&path).unwrap();
    let reload = || Checks::load(&path).unwrap();
    checks.note(record(1)).unwrap();
    assert!(open(&reload()).is_empty());
    assert!(reload().find(&[1; HASH]).unwrap().commitments.is_empty());
    checks.note(opened(1)).unwrap();
    checks.note(record(2)).unwrap();
    assert_eq!(open(&reload()), [1]);
    let kept = reload();
    let found = kept.find(&[1; HASH]).unwrap();
    assert_eq!(found.commitments, [[1; HASH], [77; HASH]]);
    assert_eq!(
        (found.sums, found.transcript),
        (Sums::PowerOfTwo(112), [9; HASH])
    );
    assert_eq!(*found.opening, vec![1; 100]);
    checks.finish(&[1; HASH]).unwrap();
    assert!(open(&reload()).is_empty());
    // Others may ask for it still.
    assert!(reload().find(&[1; HASH]).is_some() && reload().find(&[2; HASH]).is_some());
    checks.forget(3).unwrap();
    assert!(reload().find(&[2; HASH]).is_some());
    checks.forget(2).unwrap();
    // Nobody has got the second one, and a host that lost its power may ask for the first one.
    assert!(reload().find(&[1; HASH]).is_some() && reload().find(&[2; HASH]).is_none());
}

/// A file of another length may have lost an open check, unless it was cut off as it was made.
#[test]
fn crash_guess_blocked_a_file_that_lost_its_end() {
    let (_folder, path) = folder();
    let mut checks = Checks::load(&path).unwrap();
    checks.note(opened(1)).unwrap();
    let whole = fs::read(&path).unwrap();
    for length in [1, SLOT / 2, SLOT, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        let error = Checks::load(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{length}");
        assert_eq!(fs::read(&path).unwrap().len(), length, "nothing is lost");
        fs::write(&path, vec![0; length]).unwrap();
        assert!(open(&Checks::load(&path).unwrap()).is_empty());
    }
}

/// A slot that was cut off as it was written, at any byte, leaves what was there before: nothing was sent that hangs on it.
#[test]
fn a_slot_that_is_cut_off_is_not_there() {
    let (_folder, path) = folder();
    let mut checks = Checks::load(&path).unwrap();
    checks.note(record(1)).unwrap();
    let before = fs::read(&path).unwrap();
    checks.note(opened(1)).unwrap();
    let after = fs::read(&path).unwrap();
    let length = (SLOT..2 * SLOT).rev().find(|at| after[*at] != 0).unwrap() + 1 - SLOT;
    for cut in 0..=length {
        let mut torn = before.clone();
        torn[SLOT..SLOT + cut].copy_from_slice(&after[SLOT..SLOT + cut]);
        fs::write(&path, &torn).unwrap();
        let checks = Checks::load(&path).unwrap();
        assert_eq!(open(&checks).len(), usize::from(cut == length), "{cut}");
        assert!(checks.find(&[1; HASH]).is_some());
    }
}

/// Old checks give way to new ones, but for open ones.
#[test]
fn an_open_check_is_never_overwritten() {
    let (_folder, path) = folder();
    let mut checks = Checks::load(&path).unwrap();
    for number in 0..200 {
        checks.note(record(number)).unwrap();
        checks.note(opened(number)).unwrap();
        checks.finish(&[number; HASH]).unwrap();
    }
    let mut checks = Checks::load(&path).unwrap();
    for number in 169..200 {
        assert!(checks.find(&[number; HASH]).is_some(), "{number}");
    }
    assert!(checks.find(&[100; HASH]).is_none());
    checks.note(opened(200)).unwrap();
    let full = (0..100).any(|number| checks.note(record(number)).is_err());
    assert!(full && open(&checks) == [200]);
    let mut large = opened(1);
    large.opening = Zeroizing::new(vec![0; SLOT]);
    assert!(checks.note(large).is_err());
}

#[test]
fn sums_that_vanish() {
    let words = |words: &[u128]| {
        words
            .iter()
            .flat_map(|w| w.to_le_bytes())
            .collect::<Vec<_>>()
    };
    let vanish = |sums: Sums, all: &[Vec<u8>]| {
        let all: Vec<_> = all.iter().map(Vec::as_slice).collect();
        sums.vanish(&all)
    };
    let ring = Sums::PowerOfTwo(112);
    assert!(vanish(
        ring,
        &[words(&[5, 7]), words(&[(1 << 112) - 5, (1 << 112) - 7])]
    ));
    assert!(vanish(
        ring,
        &[words(&[5]), words(&[3 << 112 | ((1 << 112) - 5)])]
    ));
    assert!(!vanish(
        ring,
        &[words(&[5, 7]), words(&[(1 << 112) - 5, (1 << 112) - 6])]
    ));
    assert!(!vanish(ring, &[words(&[1 << 111]), words(&[0])]));
    let field = Sums::Prime((1 << 61) - 1);
    assert!(vanish(
        field,
        &[words(&[4]), words(&[5]), words(&[(1 << 61) - 10])]
    ));
    assert!(
        vanish(field, &[words(&[u128::MAX]), words(&[0])]) == (u128::MAX % ((1 << 61) - 1) == 0)
    );
    assert!(!vanish(field, &[words(&[4]), words(&[5])]));
    assert!(vanish(Sums::Xor, &[vec![1, 2], vec![3, 2], vec![2, 0]]));
    assert!(!vanish(Sums::Xor, &[vec![1, 2], vec![1, 3]]));
    // Sums that one party does not give, or not whole.
    for sums in [ring, field, Sums::Xor] {
        assert!(!vanish(sums, &[words(&[0, 0]), words(&[0])]));
        assert!(!vanish(sums, &[]));
    }
    assert!(!vanish(ring, &[vec![0; 15], vec![0; 15]]));
}
