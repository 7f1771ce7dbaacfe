//! Random OT of strings: both ends agree, and the receiver lacks the other string.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

use std::sync::Arc;

use keyquorum_ot::strings::{correction_bytes, receive, send};
use keyquorum_ot::{Inbound, LinkKey, OtError, Outbound, Parameters, Receiver, Security, Sender};

fn ends(k: usize) -> (Receiver, Sender) {
    let parameters = Parameters::new(k).unwrap();
    let (inbound, point) = Inbound::start(parameters).unwrap();
    let key = LinkKey::random(None).unwrap();
    let (outbound, points) = Outbound::start(parameters, b"test", key).unwrap();
    let (receiver, prfs) = inbound.finish(b"test", &points).unwrap();
    let sender = outbound.finish(b"test", &point, &prfs).unwrap();
    (
        Receiver::new(Arc::new(receiver), 1, Security::SemiHonest),
        Sender::new(Arc::new(sender), 1, Security::SemiHonest),
    )
}

/// Choices with runs of both bits.
fn choices(n: usize) -> Vec<u64> {
    let bit = |i: usize| u64::from(i * i % 7 < 3);
    (0..n.div_ceil(64))
        .map(|lane| (0..64).fold(0, |word, i| word | bit(64 * lane + i) << i))
        .collect()
}

#[test]
fn the_chosen_string_is_the_senders_and_the_other_is_not() {
    for k in [1, 2, 4, 8] {
        let (mut receiver, mut sender) = ends(k);
        // One after another on the same stream: below a block, blocks, and more than a tile.
        for n in [1, 63, 64, 65, 128, 129, 1024, 1500, 2200] {
            let (bits, mut message) = (choices(n), vec![7]);
            let chosen = receive(&mut receiver, &bits, n, &mut message).unwrap();
            let bytes = correction_bytes(receiver.parameters(), n);
            assert_eq!(message.len(), 1 + bytes);
            assert_eq!(bytes, n.div_ceil(128) * 16 * 128 / k);
            let strings = send(&mut sender, n, &message[1..]).unwrap();
            assert!(chosen.len() == n && strings.iter().all(|s| s.len() == n));
            for i in 0..n {
                let bit = (bits[i / 64] >> (i % 64) & 1) as usize;
                assert_eq!(chosen[i], strings[bit][i], "k = {k}, OT {i} of {n}");
                assert_ne!(chosen[i], strings[1 - bit][i], "k = {k}, OT {i} of {n}");
            }
        }
    }
}

#[test]
fn messages_of_another_length_are_refused() {
    let (mut receiver, mut sender) = ends(4);
    let mut message = Vec::new();
    receive(&mut receiver, &choices(200), 200, &mut message).unwrap();
    for length in [0, message.len() - 1, message.len() / 2] {
        let refused = send(&mut sender, 200, &message[..length]);
        assert!(matches!(refused, Err(OtError::Length { .. })), "{length}");
    }
    assert!(send(&mut sender, 300, &message).is_err());
    assert!(receive(&mut receiver, &[0; 3], 200, &mut message).is_err());
}
