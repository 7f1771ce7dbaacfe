//! Messages of the set-up of oblivious transfer under random mutations: see the crate `keyquorum-fuzz`.
#![allow(clippy::unwrap_used)] // a failed test may panic

use keyquorum_fuzz::{Measured, Outcome, Target, fuzz};
use keyquorum_ot::base::curve25519::{BaseReceiver, BaseSender, SENDER_BYTES};
use keyquorum_ot::base::ml_kem;
use keyquorum_ot::{KAPPA, LinkKey, Seed, punctured};

#[global_allocator]
static ALLOCATOR: Measured = Measured;

const CONTEXT: &[u8] = b"fuzz";
const DELTA: u128 = 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210;

#[test]
fn points_of_base_ot() {
    let (_, point) = BaseSender::start().unwrap();
    let (_, points) = BaseReceiver::start(CONTEXT, &LinkKey::with_pads(DELTA, None)).unwrap();
    let target = Target {
        name: "ot-base",
        cap: 1 << 16,
        corpus: vec![point, points],
        mend: None,
        // Some milliseconds each: multiplications on the curve.
        inputs: Some(100),
    };
    fuzz(&target, |bytes| {
        if bytes.len() == SENDER_BYTES {
            let (receiver, _) =
                BaseReceiver::start(CONTEXT, &LinkKey::with_pads(DELTA, None)).unwrap();
            return Outcome::from(&receiver.finish(CONTEXT, bytes));
        }
        let (sender, _) = BaseSender::start().unwrap();
        Outcome::from(&sender.finish(CONTEXT, KAPPA, bytes))
    });
}

#[test]
fn messages_of_base_ot_from_ml_kem() {
    let key = LinkKey::with_pads(DELTA, None);
    let (_, keys) = ml_kem::BaseReceiver::start(CONTEXT, &key).unwrap();
    let (_, ciphertexts) = ml_kem::send(CONTEXT, KAPPA, &keys).unwrap();
    let (keys_len, ciphertexts_len) = (keys.len(), ciphertexts.len());
    let target = Target {
        name: "ot-base-ml-kem",
        cap: 1 << 20,
        corpus: vec![keys, ciphertexts],
        mend: None,
        // Some 20 milliseconds each.
        inputs: Some(40),
    };
    fuzz(&target, |bytes| {
        if bytes.len() == ciphertexts_len {
            let key = LinkKey::with_pads(DELTA, None);
            let (receiver, _) = ml_kem::BaseReceiver::start(CONTEXT, &key).unwrap();
            return Outcome::from(&receiver.finish(CONTEXT, bytes));
        }
        let count = if bytes.len() == keys_len { KAPPA } else { 1 };
        Outcome::from(&ml_kem::send(CONTEXT, count, bytes))
    });
}

#[test]
fn punctured_prfs() {
    const K: usize = 4;
    let seed = |byte: usize| Seed::new([byte as u8; 16]);
    let strings: Vec<[Seed; 2]> = (0..KAPPA).map(|i| [seed(i), seed(KAPPA + i)]).collect();
    let chosen: Vec<Seed> = (0..KAPPA)
        .map(|i| seed(i + KAPPA * usize::from(!DELTA >> i & 1 == 1)))
        .collect();
    let key = LinkKey::with_pads(DELTA, None);
    let corpus = [0, 1].map(|_| punctured::full(K, &strings).unwrap().1);
    let target = Target {
        name: "ot-prfs",
        cap: 1 << 16,
        corpus: corpus.to_vec(),
        mend: Some(|bytes| bytes.resize(punctured::message_bytes(K, KAPPA), 0)),
        inputs: Some(2_000),
    };
    fuzz(&target, |bytes| {
        Outcome::from(&punctured::punctured(K, &key, &chosen, bytes))
    });
}
