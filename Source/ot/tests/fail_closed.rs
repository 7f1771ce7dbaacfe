//! Excluded states are errors: a pad that was not made is never used.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic)] // a failed test may panic

use std::sync::Arc;

use keyquorum_ot::extension::Choices;
use keyquorum_ot::product::{self, Operand};
use keyquorum_ot::{
    Inbound, LinkKey, OtError, Outbound, Parameters, PowerOfTwo, Receiver, ReceiverBatch, Security,
    Sender, SenderBatch,
};

const BLOCKS: usize = 3;
const SECRET: u128 = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff;

/// Both ends of a checked batch of three blocks: tile 0; tile 1 is that of the mask, and there is no tile 2.
fn batch() -> (Receiver, ReceiverBatch, Sender, SenderBatch) {
    let parameters = Parameters::default();
    let (inbound, point) = Inbound::start(parameters).unwrap();
    let (outbound, points) =
        Outbound::start(parameters, b"test", LinkKey::random(None).unwrap()).unwrap();
    let (receiver, prfs) = inbound.finish(b"test", &points).unwrap();
    let sender = outbound.finish(b"test", &point, &prfs).unwrap();
    let mut receiver = Receiver::new(Arc::new(receiver), 1, Security::Malicious);
    let mut sender = Sender::new(Arc::new(sender), 1, Security::Malicious);
    let mut message = Vec::new();
    let ours = receiver.batch(&[5; BLOCKS], &mut message).unwrap();
    let theirs = sender.batch(BLOCKS, &message).unwrap();
    (receiver, ours, sender, theirs)
}

/// The messages for both of a sender's words, masked with these pads.
fn payload(zeros: &[u128], ones: &[u128]) -> [u128; 2] {
    [SECRET ^ zeros[0], !SECRET ^ ones[0]]
}

/// The messages of a batch's sender: an error where there are no pads.
fn send(sender: &Sender, batch: &SenderBatch, tile: usize, n: usize) -> Result<[u128; 2], OtError> {
    let (mut zeros, mut ones) = (vec![0; n], vec![0; n]);
    sender.batch_strings(batch, tile, &mut zeros, &mut ones)?;
    Ok(payload(&zeros, &ones))
}

#[test]
fn missing_parts_blocked_a_tile_that_does_not_exist() {
    let (receiver, ours, sender, theirs) = batch();
    let n = 128 * BLOCKS;
    assert_ne!(send(&sender, &theirs, 0, n).unwrap(), [SECRET, !SECRET]);
    // Tile 1 is the mask's, whose strings must not be used. A tile has as many strings as columns.
    for (tile, n) in [
        (1, n),
        (1, 128),
        (2, n),
        (usize::MAX, n),
        (0, n - 128),
        (0, 8 * 128),
        (0, 9 * 128),
        (0, 0),
    ] {
        let sent = send(&sender, &theirs, tile, n);
        assert!(matches!(sent, Err(OtError::Internal(_))), "{tile} {n}");
        let mut strings = vec![7; n];
        let got = receiver.batch_strings(&ours, tile, &mut strings);
        assert!(matches!(got, Err(OtError::Internal(_))), "{tile} {n}");
        assert!(strings.iter().all(|s| *s == 7));
    }
    let text = send(&sender, &theirs, 2, n).unwrap_err().to_string();
    assert_eq!(
        text,
        "internal error: a tile of oblivious transfers that its batch does not have: please report it"
    );
}

/// [`Sender::batch_strings`] as it was before the finding: where no pads can be made, the output stays unchanged without an error.
fn ignoring(
    sender: &Sender,
    batch: &SenderBatch,
    tile: usize,
    zeros: &mut [u128],
    ones: &mut [u128],
) {
    let _ = sender.batch_strings(batch, tile, zeros, ones);
}

#[test]
fn missing_parts_ablated_a_tile_that_does_not_exist() {
    let (_, _, sender, batch) = batch();
    let read = |tile: usize| {
        let (mut zeros, mut ones) = ([0; 128 * BLOCKS], [0; 128 * BLOCKS]);
        ignoring(&sender, &batch, tile, &mut zeros, &mut ones);
        // The eavesdropper knows no pad.
        payload(&zeros, &ones)
    };
    assert_ne!(read(0), [SECRET, !SECRET]);
    assert_eq!(read(2), [SECRET, !SECRET], "both words went out in clear");
}

#[test]
fn missing_parts_blocked_a_tile_of_another_size_makes_no_strings() {
    let (mut receiver, _, mut sender, _) = batch();
    let (mut message, mut strings) = (Vec::new(), vec![0; 128 * 9]);
    for n in [0, 128, 128 * 9] {
        let made = receiver.random(&mut [1, 2], Choices::Given, &mut message, &mut strings[..n]);
        assert!(matches!(made, Err(OtError::Internal(_))), "{n}");
    }
    assert!(message.is_empty());
    receiver
        .random(
            &mut [1, 2],
            Choices::Given,
            &mut message,
            &mut strings[..256],
        )
        .unwrap();
    let (mut zeros, mut ones) = ([0; 256], [0; 128]);
    let made = sender.random(Choices::Given, &message, &mut zeros, &mut ones);
    assert!(matches!(made, Err(OtError::Internal(_))));
    let made = sender.random(Choices::Given, &message, &mut zeros[..200], &mut [0; 200]);
    assert!(matches!(made, Err(OtError::Internal(_))));
}

#[test]
fn missing_parts_ablated_a_tile_of_another_size_makes_no_strings() {
    let (mut receiver, _, mut sender, _) = batch();
    let mut message = Vec::new();
    receiver
        .random(&mut [1, 2], Choices::Given, &mut message, &mut [0; 256])
        .unwrap();
    // Second strings for half of the OTs: the error is ignored.
    let (mut zeros, mut ones) = ([0; 256], [0; 128]);
    let _ = sender.random(Choices::Given, &message, &mut zeros, &mut ones);
    assert_eq!(payload(&zeros, &ones), [SECRET, !SECRET]);
}

#[test]
fn missing_parts_blocked_operands_of_another_length() {
    let (mut receiver, ..) = batch();
    let payload = PowerOfTwo::<u64>::new(8).unwrap();
    let mut message = Vec::new();
    for (operand, count) in [
        (Operand::Words(&[1u64; 127][..]), 8),
        (Operand::Bits(&[1; 1][..]), 1),
        (Operand::Bits(&[1; 2][..]), 2),
        (Operand::Random(64), 8),
    ] {
        let made = product::receive(&mut receiver, &payload, operand, 128, count, &mut message);
        assert!(matches!(made, Err(OtError::Internal(_))));
    }
    // A choice that is missing would count as zero.
    assert!(message.is_empty());
}
