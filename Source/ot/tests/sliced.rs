//! Bit-sliced batches: MACs of bits, oblivious transfer, and their check.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

use std::sync::Arc;

use keyquorum_ot::extension::sliced::{Kind, correction_bytes, proof_bytes};
use keyquorum_ot::{
    Inbound, LinearHash, LinkKey, MacKey, OtError, Outbound, Parameters, Receiver, Security, Sender,
};

fn ends(k: usize, security: Security) -> (Receiver, Sender) {
    let parameters = Parameters::new(k).unwrap().with_macs();
    let key = LinkKey::random(Some(MacKey::random().unwrap())).unwrap();
    let (inbound, point) = Inbound::start(parameters).unwrap();
    let (outbound, points) = Outbound::start(parameters, b"test", key).unwrap();
    let (receiver, prfs) = inbound.finish(b"test", &points).unwrap();
    let sender = outbound.finish(b"test", &point, &prfs).unwrap();
    (
        Receiver::new(Arc::new(receiver), 1, security),
        Sender::new(Arc::new(sender), 1, security),
    )
}

/// Rows of packed bits.
type Rows = Vec<Vec<u64>>;

/// Both ends of a sliced batch: t, q, and the key of MACs.
fn sliced(
    k: usize,
    kind: Kind,
    choices: &[u64],
    flip: Option<usize>,
) -> Result<(Rows, Rows, u64), OtError> {
    let (mut receiver, mut sender) = ends(k, Security::Malicious);
    let blocks = choices.len() / 2;
    let mut message = Vec::new();
    let ours = receiver.sliced(kind, choices, 77, &mut message)?;
    let parameters = receiver.parameters();
    assert_eq!(message.len(), correction_bytes(parameters, kind, blocks));
    if let Some(bit) = flip {
        message[bit / 8] ^= 1 << (bit % 8);
    }
    let theirs = sender.sliced(kind, blocks, &message)?;
    let proof = ours.prove(b"seed").unwrap();
    assert_eq!(proof.len(), proof_bytes(kind));
    let hash = theirs.verify(b"seed", &proof)?;
    let words: Vec<u128> = choices
        .chunks(2)
        .map(|c| u128::from(c[0]) | u128::from(c[1]) << 64)
        .collect();
    assert_eq!(hash, LinearHash::new(b"seed").blocks(&words) ^ 77);
    assert_eq!(hash, LinearHash::new(b"seed").lanes(choices) ^ 77);
    assert!(theirs.verify(b"other", &proof).is_err());
    if kind == Kind::MacsAndPads {
        let zeros = || vec![vec![0; choices.len()]; 49];
        let (mut chosen, mut first, mut sums) = (zeros(), zeros(), zeros());
        ours.add_strings(receiver.hash(), &mut chosen).unwrap();
        theirs
            .add_strings(sender.hash(), &mut first, &mut sums)
            .unwrap();
        for w in 0..49 {
            for (lane, r) in choices.iter().enumerate() {
                assert_eq!(chosen[w][lane], first[w][lane] ^ sums[w][lane] & r);
            }
            assert!(sums[w].iter().any(|s| *s != 0));
        }
        // The same strings as words, and further words of the same OTs.
        let n = 64 * choices.len();
        let chosen_words = ours.strings(receiver.hash(), 3).unwrap();
        let [zeros, ones] = theirs.strings(sender.hash(), 3).unwrap();
        assert_eq!(
            (chosen_words.len(), zeros.len(), ones.len()),
            (3 * n, 3 * n, 3 * n)
        );
        for (i, (chosen_word, (zero, one))) in (chosen_words.iter())
            .zip(zeros.iter().zip(ones.iter()))
            .enumerate()
        {
            let (lane, bit) = (i % n / 64, i % 64);
            let pick = if choices[lane] >> bit & 1 == 1 {
                one
            } else {
                zero
            };
            assert_eq!(chosen_word, pick);
            if i < n {
                assert!(
                    (0..41).all(|w| chosen[w][lane] >> bit & 1 == (chosen_word >> w & 1) as u64)
                );
            }
        }
        let all: std::collections::HashSet<u128> =
            zeros.iter().chain(ones.iter()).copied().collect();
        assert_eq!(all.len(), 6 * n);
    }
    let all = |row: &dyn Fn(usize) -> Vec<u64>| (0..40).map(row).collect();
    Ok((
        all(&|j| ours.row(j).unwrap().to_vec()),
        all(&|j| theirs.row(j).unwrap().to_vec()),
        sender.key().macs().unwrap().bits(),
    ))
}

#[test]
fn rows_are_macs() {
    use Kind::{Macs, MacsAndPads};
    for (k, kind) in [
        (4, Macs),
        (8, Macs),
        (2, MacsAndPads),
        (4, MacsAndPads),
        (1, MacsAndPads),
    ] {
        for lanes in [2, 16, 18, 50] {
            let choices: Vec<u64> = (0..lanes)
                .map(|i| 0x9E37_79B9_7F4A_7C15u64.wrapping_mul(i + 1))
                .collect();
            let (t, q, delta) = sliced(k, kind, &choices, None).unwrap();
            for (j, (t, q)) in t.iter().zip(&q).enumerate() {
                let mask = (delta >> j & 1).wrapping_neg();
                let want: Vec<u64> = q
                    .iter()
                    .zip(&choices)
                    .map(|(q, r)| q ^ (r & mask))
                    .collect();
                assert_eq!(*t, want, "k = {k}, row {j}, {kind:?}");
            }
        }
    }
    assert!(matches!(
        sliced(4, Kind::Macs, &[0; 3], None),
        Err(OtError::Usage(_))
    ));
}

/// As `a_receiver_with_two_choices_is_caught`: with k = 4 a flip passes with probability 1/16.
#[test]
fn other_choices_in_some_rows_are_caught() {
    let mut caught = 0;
    for row in 0..40 {
        // 3 blocks and the mask, 10 groups of 64 bytes.
        let bit = row % 10 * 4 * 128 + 9 * row;
        match sliced(4, Kind::Macs, &[5; 6], Some(bit)) {
            Err(OtError::Check("the OT extension")) => caught += 1,
            Err(other) => panic!("{other}"),
            Ok(_) => {}
        }
    }
    assert!(caught > 20, "{caught} of 40 were caught");
}
