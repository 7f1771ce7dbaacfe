//! Two ends of a link: correctness of all kinds of OTs, and what is refused.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

use std::sync::Arc;

use keyquorum_math::{Domain, Zq};
use keyquorum_ot::extension::Choices;
use keyquorum_ot::product::{self, Operand, Payload};
use keyquorum_ot::{
    BaseOt, Field, Inbound, LinkKey, MacKey, OtError, Outbound, Parameters, PowerOfTwo, Receiver,
    ReceiverLink, Security, Sender, SenderLink, bits,
};
use proptest::prelude::*;

fn link(k: usize) -> (Arc<ReceiverLink>, Arc<SenderLink>) {
    let parameters = Parameters::new(k).unwrap();
    let (inbound, point) = Inbound::start(parameters).unwrap();
    let (outbound, points) =
        Outbound::start(parameters, b"test", LinkKey::random(None).unwrap()).unwrap();
    assert_eq!(point.len(), parameters.inbound_bytes());
    assert_eq!(points.len(), parameters.outbound_bytes());
    let (receiver, prfs) = inbound.finish(b"test", &points).unwrap();
    assert_eq!(prfs.len(), parameters.answer_bytes());
    let sender = outbound.finish(b"test", &point, &prfs).unwrap();
    (Arc::new(receiver), Arc::new(sender))
}

/// Messages of a link with MACs that begins with base OT from ML-KEM have the stated sizes, and both ends agree.
#[test]
fn links_begin_with_either_base_ot() {
    for base in BaseOt::ALL {
        let parameters = Parameters::default().with_macs().with_base(base);
        let key = LinkKey::random(Some(MacKey::random().unwrap())).unwrap();
        let (inbound, first) = Inbound::start(parameters).unwrap();
        let (outbound, keys) = Outbound::start(parameters, b"test", key).unwrap();
        assert_eq!(first.len(), parameters.inbound_bytes());
        assert_eq!(keys.len(), parameters.outbound_bytes());
        let (_, answer) = inbound.finish(b"test", &keys).unwrap();
        assert_eq!(answer.len(), parameters.answer_bytes());
        let sent = first.len() + keys.len() + answer.len();
        let expected = match base {
            BaseOt::Curve25519 => 32 + 224 * 64 + 8_992,
            BaseOt::MlKem => 224 * (2_336 + 2_176) + 8_992,
        };
        assert_eq!(sent, expected);
        // The PRFs are consistent: their check passes at this end.
        outbound.finish(b"test", &first, &answer).unwrap();
    }
}

fn ends(k: usize, security: Security) -> (Receiver, Sender) {
    let (receiver, sender) = link(k);
    (
        Receiver::new(receiver, 1, security),
        Sender::new(sender, 1, security),
    )
}

#[test]
fn columns_are_correlated_by_delta() {
    for k in [1, 2, 4, 8] {
        let (mut receiver, mut sender) = ends(k, Security::SemiHonest);
        for (source, blocks) in [
            (Choices::Given, 8),
            (Choices::Random, 3),
            (Choices::Given, 1),
        ] {
            let mut choices: Vec<u128> =
                (0..blocks as u128).map(|i| i << 77 ^ 0x1234 << i).collect();
            let mut message = Vec::new();
            let (mut t, mut q) = (vec![0; 128 * blocks], vec![0; 128 * blocks]);
            let a = receiver
                .tile(&mut choices, source, &mut message, &mut t)
                .unwrap();
            assert_eq!(
                message.len(),
                blocks * source.block_bytes(receiver.parameters())
            );
            let b = sender.tile(blocks, source, &message, &mut q).unwrap();
            assert_eq!(a, b);
            for (c, (t, q)) in t.iter().zip(&q).enumerate() {
                let r = (choices[c / 128] >> (c % 128) & 1).wrapping_neg();
                assert_eq!(*t, q ^ (r & sender.delta()), "k = {k}, {source:?}, OT {c}");
            }
        }
    }
}

#[test]
fn streams_of_a_link_differ() {
    let (receiver, _) = link(2);
    let tile = |stream| {
        let mut t = vec![0; 128];
        Receiver::new(Arc::clone(&receiver), stream, Security::SemiHonest)
            .tile(&mut [0], Choices::Given, &mut Vec::new(), &mut t)
            .unwrap();
        t
    };
    assert_eq!(tile(1), tile(1));
    assert_ne!(tile(1), tile(2));
}

fn batch(choices: &[u128], flip: Option<usize>) -> Result<(), OtError> {
    let (mut receiver, mut sender) = ends(2, Security::Malicious);
    let mut message = Vec::new();
    let ours = receiver.batch(choices, &mut message).unwrap();
    if let Some(bit) = flip {
        message[bit / 8] ^= 1 << (bit % 8);
    }
    let theirs = sender.batch(choices.len(), &message).unwrap();
    let seed = [7; 16];
    sender.verify(&theirs, &seed, &ours.prove(&seed)?)?;
    for (tile, choices) in choices.chunks(8).enumerate() {
        let n = 128 * choices.len();
        let (mut s, mut zeros, mut ones) = (vec![0; n], vec![0; n], vec![0; n]);
        receiver.batch_strings(&ours, tile, &mut s)?;
        sender.batch_strings(&theirs, tile, &mut zeros, &mut ones)?;
        for (i, s) in s.iter().enumerate() {
            let r = choices[i / 128] >> (i % 128) & 1 == 1;
            assert_eq!(*s, if r { ones[i] } else { zeros[i] });
            assert_ne!(*s, if r { zeros[i] } else { ones[i] });
        }
    }
    Ok(())
}

#[test]
fn honest_receivers_pass_the_check() {
    for blocks in [1, 7, 8, 9, 20] {
        let choices: Vec<u128> = (1..=blocks).map(|i| u128::MAX / i).collect();
        batch(&choices, None).unwrap();
    }
}

/// A receiver that uses another choice in one row is caught, unless it guesses the k = 2 bits of Δ that the correction
/// meets: where Δ is 0 there, the flip changes nothing. So each flip passes with probability 1/4; 60 flips in different rows
/// all pass with probability 2^-120, and 20 or fewer of 60 are caught with probability below 2^-40.
#[test]
fn a_receiver_with_two_choices_is_caught() {
    let choices = [3u128; 4];
    let mut caught = 0;
    for row in 0..60 {
        let bit = row * 4 * 128 + 5 + row;
        match batch(&choices, Some(bit)) {
            Err(OtError::Check("the OT extension")) => caught += 1,
            Err(other) => panic!("{other}"),
            Ok(()) => {}
        }
    }
    assert!(caught > 20, "{caught} of 60 were caught");
}

#[test]
fn a_forged_proof_is_refused() {
    let (mut receiver, mut sender) = ends(4, Security::Malicious);
    let mut message = Vec::new();
    let ours = receiver.batch(&[5; 3], &mut message).unwrap();
    let theirs = sender.batch(3, &message).unwrap();
    let mut proof = ours.prove(&[1; 16]).unwrap();
    assert!(sender.verify(&theirs, &[2; 16], &proof).is_err());
    assert!(sender.verify(&theirs, &[1; 16], &proof).is_ok());
    assert!(matches!(
        sender.verify(&theirs, &[1; 16], &proof[1..]),
        Err(OtError::Length { .. })
    ));
    proof[20] ^= 1;
    assert!(sender.verify(&theirs, &[1; 16], &proof).is_err());
}

#[test]
fn wrong_lengths_are_refused() {
    let (mut receiver, mut sender) = ends(2, Security::SemiHonest);
    let mut message = Vec::new();
    let payload = PowerOfTwo::<u64>::new(64).unwrap();
    let pending = product::receive(
        &mut receiver,
        &payload,
        Operand::Words(&[1, 2]),
        2,
        64,
        &mut message,
    )
    .unwrap();
    let length =
        |result: Result<Vec<u64>, OtError>| assert!(matches!(result, Err(OtError::Length { .. })));
    length(product::send(
        &mut sender,
        &payload,
        &[3, 4],
        64,
        Choices::Given,
        &message[1..],
        &mut Vec::new(),
    ));
    length(pending.finish(&[0; 3]));
    assert!(Parameters::new(3).is_err());
    assert!(PowerOfTwo::<u64>::new(65).is_err());
    assert!(bits::send(&mut sender, Choices::Given, &[], &mut [0], &mut [0]).is_err());
}

/// The receiver's words, its shares and the sender's.
type Shares<E> = (Vec<E>, Vec<E>, Vec<E>);

fn products<P: Payload>(
    payload: &P,
    x: &[P::Word],
    operand: Operand<'_, P::Word>,
    count: u32,
    source: Choices,
) -> Shares<P::Word> {
    let (mut receiver, mut sender) = ends(2, Security::SemiHonest);
    let (mut message, mut answer) = (Vec::new(), Vec::new());
    let pending = product::receive(
        &mut receiver,
        payload,
        operand,
        x.len(),
        count,
        &mut message,
    )
    .unwrap();
    let y = pending.words().unwrap();
    let theirs = product::send(
        &mut sender,
        payload,
        x,
        count,
        source,
        &message,
        &mut answer,
    )
    .unwrap();
    (y, pending.finish(&answer).unwrap(), theirs)
}

/// Batches that are cut into pieces for several threads, and what comes after them in the stream.
#[test]
fn large_batches() {
    let (mut receiver, mut sender) = ends(4, Security::SemiHonest);
    let payload = PowerOfTwo::<u64>::new(64).unwrap();
    for n in [3333, 5] {
        let x: Vec<u64> = (1..=n).map(|i| i * 0x9E37_79B9_7F4A_7C15).collect();
        let (mut message, mut answer) = (Vec::new(), Vec::new());
        let operand = Operand::Random(x.len());
        let pending =
            product::receive(&mut receiver, &payload, operand, x.len(), 64, &mut message).unwrap();
        let y = pending.words().unwrap();
        let (source, out) = (Choices::Random, &mut answer);
        let b = product::send(&mut sender, &payload, &x, 64, source, &message, out).unwrap();
        let a = pending.finish(&answer).unwrap();
        for ((a, b), (x, y)) in a.iter().zip(&b).zip(x.iter().zip(&y)) {
            assert_eq!(a.wrapping_add(*b), x.wrapping_mul(*y));
        }
    }
    for lanes in [5000, 4] {
        let (mut choices, mut strings) = (vec![0; lanes], vec![0; lanes]);
        let (mut zeros, mut ones) = (vec![0; lanes], vec![0; lanes]);
        let (source, mut message) = (Choices::Random, Vec::new());
        bits::receive(
            &mut receiver,
            &mut choices,
            source,
            &mut message,
            &mut strings,
        )
        .unwrap();
        bits::send(&mut sender, source, &message, &mut zeros, &mut ones).unwrap();
        for i in 0..lanes {
            assert_eq!(
                strings[i],
                (zeros[i] & !choices[i]) | (ones[i] & choices[i])
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn products_modulo_powers_of_two(l in 1u32..=64, n in 1usize..1100, seed in any::<u64>()) {
        let payload = PowerOfTwo::<u64>::new(l).unwrap();
        let mask = u64::MAX >> (64 - l);
        let word = |i: usize, salt: u64| (seed ^ salt).wrapping_mul(2 * i as u64 + 1).rotate_left(17) & mask;
        let x: Vec<u64> = (0..n).map(|i| word(i, 0)).collect();
        let y: Vec<u64> = (0..n).map(|i| word(i, 99)).collect();
        for random in [false, true] {
            let (operand, source) = if random { (Operand::Random(n), Choices::Random) } else { (Operand::Words(&y), Choices::Given) };
            let (used, a, b) = products(&payload, &x, operand, l, source);
            prop_assert!(random || used == y);
            for i in 0..n {
                prop_assert_eq!(a[i].wrapping_add(b[i]) & mask, x[i].wrapping_mul(used[i]) & mask);
                prop_assert!(a[i] <= mask && b[i] <= mask);
            }
        }
    }

    #[test]
    fn products_of_wide_words(l in 65u32..=128, n in 1usize..200, seed in any::<u128>()) {
        let payload = PowerOfTwo::<u128>::new(l).unwrap();
        let mask = u128::MAX >> (128 - l);
        let x: Vec<u128> = (0..n).map(|i| seed.wrapping_mul(2 * i as u128 + 1) & mask).collect();
        let y: Vec<u128> = (0..n).map(|i| seed.rotate_left(i as u32) & mask).collect();
        let (used, a, b) = products(&payload, &x, Operand::Words(&y), l, Choices::Given);
        prop_assert_eq!(&used, &y);
        for i in 0..n {
            prop_assert_eq!(a[i].wrapping_add(b[i]) & mask, x[i].wrapping_mul(y[i]) & mask);
        }
    }

    #[test]
    fn products_over_fields(q in prop::sample::select(vec![3u64, 65537, 1152921504606584833, (1 << 61) - 1]), n in 1usize..1100, seed in any::<u64>()) {
        let field = Zq::new(q).unwrap();
        let payload = Field::new(field.clone());
        let x: Vec<u64> = (0..n).map(|i| seed.wrapping_mul(2 * i as u64 + 1) % q).collect();
        let y: Vec<u64> = (0..n).map(|i| seed.rotate_left(i as u32 % 64) % q).collect();
        let (used, a, b) = products(&payload, &x, Operand::Words(&y), field.bits(), Choices::Given);
        prop_assert_eq!(&used, &y);
        for i in 0..n {
            prop_assert_eq!(field.add(a[i], b[i]), field.mul(x[i], y[i]));
        }
    }

    #[test]
    fn correlated_bits(n in 1usize..1500, seed in any::<u64>()) {
        let payload = PowerOfTwo::<u64>::new(63).unwrap();
        let x: Vec<u64> = (0..n).map(|i| seed.wrapping_mul(i as u64 + 1) >> 1).collect();
        let choices: Vec<u64> = (0..n.div_ceil(64)).map(|i| seed.rotate_right(i as u32)).collect();
        let (_, a, b) = products(&payload, &x, Operand::Bits(&choices), 1, Choices::Given);
        for i in 0..n {
            let bit = choices[i / 64] >> (i % 64) & 1;
            prop_assert_eq!(a[i].wrapping_add(b[i]) << 1, (x[i] * bit) << 1);
        }
    }

    #[test]
    fn bits_are_transferred(lanes in 1usize..40, seed in any::<u64>(), random in any::<bool>()) {
        let lanes = 2 * lanes;
        let (mut receiver, mut sender) = ends(4, Security::SemiHonest);
        let source = if random { Choices::Random } else { Choices::Given };
        let mut choices: Vec<u64> = (0..lanes).map(|i| seed.rotate_right(i as u32)).collect();
        let given = choices.clone();
        let (mut message, mut strings) = (Vec::new(), vec![0; lanes]);
        bits::receive(&mut receiver, &mut choices, source, &mut message, &mut strings).unwrap();
        prop_assert_eq!(random, given != choices);
        let (mut zeros, mut ones) = (vec![0; lanes], vec![0; lanes]);
        bits::send(&mut sender, source, &message, &mut zeros, &mut ones).unwrap();
        for i in 0..lanes {
            prop_assert_eq!(strings[i], (zeros[i] & !choices[i]) | (ones[i] & choices[i]));
        }
        prop_assert_ne!(zeros, ones);
    }
}
