#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // a failed test may panic

use std::sync::Arc;

use keyquorum_math::{Z2k128, Zq};

use super::*;
use crate::{Inbound, LinkKey, Outbound, Parameters, Receiver, Security, Sender};

fn products<D: Domain>(domain: D, items: usize) {
    let parameters = Parameters::default();
    let (inbound, point) = Inbound::start(parameters).unwrap();
    let (outbound, points) =
        Outbound::start(parameters, b"test", LinkKey::random(None).unwrap()).unwrap();
    let (receiver, prfs) = inbound.finish(b"test", &points).unwrap();
    let sender = outbound.finish(b"test", &point, &prfs).unwrap();
    let mut receiver = Receiver::new(Arc::new(receiver), 1, Security::Malicious);
    let mut sender = Sender::new(Arc::new(sender), 1, Security::Malicious);
    let shape = Shape { domain, items };
    let domain = &shape.domain;
    let mut prg = Prg::new([9; 16], 0);
    let operands = Operands::draw(&shape, &mut prg).unwrap();
    let mut message = Vec::new();
    let ours = receiver
        .batch_masked(&operands.choices, 77, &mut message)
        .unwrap();
    let theirs = sender.batch(shape.choice_words(), &message).unwrap();
    sender
        .verify(&theirs, &[1; 16], &ours.prove(&[1; 16]).unwrap())
        .unwrap();
    let mut draw = || {
        let mut all = vec![domain.zero(); items];
        domain.random(&mut prg, &mut all);
        all
    };
    let (a, mac) = (draw(), draw());
    let key = domain.from_u128(0x1234_5678_9abc);
    let factors = Factors {
        key,
        a: &a,
        mac: &mac,
    };
    let (mut payload, mut sent) = (Vec::new(), Partial::new(&shape));
    send(&sender, &theirs, &shape, &factors, &mut payload, &mut sent).unwrap();
    assert_eq!(payload.len(), shape.payload_bytes());
    let (choices, mut received) = (&operands.choices, Partial::new(&shape));
    receive(&receiver, &ours, &shape, choices, &payload, &mut received).unwrap();
    // The sender has no words, the receiver no factors of its own.
    let zeros = vec![domain.zero(); items];
    let nothing = Operands {
        word: Zeroizing::new(zeros.clone()),
        choices: Zeroizing::new(vec![0; shape.choice_words()]),
    };
    let none = Factors {
        key: domain.zero(),
        a: &zeros,
        mac: &zeros,
    };
    let stream = || Prg::new([5; 16], 1);
    let sent = sent.finish(&shape, &nothing, &factors).unwrap();
    let received = received.finish(&shape, &operands, &none).unwrap();
    let [empty, [cs, ms]] = sent.combine(&shape, &mut stream()).unwrap();
    let [[b, kr], [cr, mr]] = received.combine(&shape, &mut stream()).unwrap();
    assert_eq!(empty[0], zeros);
    assert_ne!(b, *operands.word, "extra bits count");
    for i in 0..items {
        let is = |x: D::E, y: D::E, product: D::E| {
            assert_eq!(domain.add(x, y).to_u128(), product.to_u128());
        };
        is(empty[1][i], kr[i], domain.mul(b[i], key));
        is(cs[i], cr[i], domain.mul(b[i], a[i]));
        is(ms[i], mr[i], domain.mul(b[i], mac[i]));
    }
    let mut again = Partial::new(&shape);
    assert!(receive(&receiver, &ours, &shape, choices, &payload[1..], &mut again).is_err());
    let short = Factors {
        key,
        a: &a[1..],
        mac: &mac,
    };
    assert!(send(&sender, &theirs, &shape, &short, &mut payload, &mut again).is_err());
    // Sums of a batch of another size would get only a part of the shares, in other places.
    let other = Shape {
        domain: shape.domain.clone(),
        items: items + BLOCK,
    };
    let mut again = Partial::new(&other);
    let sent = send(&sender, &theirs, &shape, &factors, &mut payload, &mut again);
    assert!(matches!(sent, Err(OtError::Internal(_))));
    let read = &message_of(&payload, shape.payload_bytes());
    let received = receive(&receiver, &ours, &shape, choices, read, &mut again);
    assert!(matches!(received, Err(OtError::Internal(_))));
    let finished = again.finish(&shape, &operands, &factors).map(drop);
    assert!(matches!(finished, Err(OtError::Internal(_))));
    let products = Partial::new(&other);
    let empty = Operands {
        word: Zeroizing::new(vec![other.domain.zero(); other.items]),
        choices: Zeroizing::new(vec![0; other.choice_words()]),
    };
    let zeros = vec![other.domain.zero(); other.items];
    let none = Factors {
        key,
        a: &zeros,
        mac: &zeros,
    };
    let products = products.finish(&other, &empty, &none).unwrap();
    let combined = products.combine(&shape, &mut stream()).map(drop);
    assert!(matches!(combined, Err(OtError::Internal(_))));
}

/// The first bytes, which are one payload.
fn message_of(all: &[u8], bytes: usize) -> Vec<u8> {
    all.iter().copied().take(bytes).collect()
}

#[test]
fn shares_add_up_to_words_with_macs_and_products() {
    products(Z2k128::new(112).unwrap(), 128);
    products(Z2k128::new(112).unwrap(), 1152);
    products(Zq::new((1 << 60) - 93).unwrap(), 1024);
    products(Zq::new((1 << 41) - 21).unwrap(), 128);
}
