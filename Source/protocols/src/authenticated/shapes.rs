//! Shares and vectors of other shapes than the protocol has: states that the code excludes, each an internal error.
#![allow(clippy::unwrap_used)] // a failed test may panic

use std::sync::Arc;

use keyquorum_math::{Prg, Z2k128};
use keyquorum_ot::vole::{FixedKey, Multiplicand};
use keyquorum_ot::{
    Inbound, LinkKey, MacKey, Outbound, Parameters, Receiver, ReceiverLink, Security, Sender,
    SenderLink,
};

use super::mixed::Mixed;
use super::private::Private;
use super::{Authenticated, MAC_BITS, PARTS, Peer, binary};
use crate::adversary::honest;
use crate::error::{EngineError, Result};
use crate::round::Outbox;
use crate::task::SendFn;
use crate::value::Share;
use crate::{BitProtocol, Channel, Protocol};

type Party = Authenticated<Z2k128>;

/// A link of a party with itself, as nothing is sent.
fn link(key: MacKey) -> (Arc<ReceiverLink>, Arc<SenderLink>) {
    let (parameters, context) = (Parameters::default().with_macs(), b"shapes");
    let key = LinkKey::random(Some(key)).unwrap();
    let (inbound, first) = Inbound::start(parameters).unwrap();
    let (outbound, keys) = Outbound::start(parameters, context, key).unwrap();
    let (receiver, answer) = inbound.finish(context, &keys).unwrap();
    let sender = outbound.finish(context, &first, &answer).unwrap();
    (Arc::new(receiver), Arc::new(sender))
}

/// Party 0 of two, after the set-up that it needs.
fn with_party(body: fn(&mut Party)) {
    let domains = (
        Z2k128::new(64).unwrap(),
        Z2k128::new(64 + MAC_BITS).unwrap(),
    );
    let key = MacKey::random().unwrap();
    let (receiver, sender) = link(key.clone());
    let channel = |stream| Channel {
        receiver: Receiver::new(Arc::clone(&receiver), stream, Security::Malicious),
        sender: Sender::new(Arc::clone(&sender), stream, Security::Malicious),
    };
    let stream = || Prg::from_os().unwrap();
    let pairs = || vec![None, Some((stream(), stream()))];
    let bits = vec![None, Some(channel(1))];
    let bits = binary::AuthenticatedBits::new(0, bits, pairs(), stream(), honest()).unwrap();
    let peer = Peer {
        channel: channel(2),
        give: Multiplicand::new(Arc::clone(&receiver), 2),
        keep: FixedKey::new(Arc::clone(&sender), 2),
    };
    let peers = vec![None, Some(peer)];
    let mut party = Party::new((0, &key), domains, peers, pairs(), stream(), bits, honest());
    body(&mut party);
}

fn internal<T>(result: Result<T>) -> bool {
    matches!(result, Err(EngineError::Internal(_)))
}

/// Whether nothing leaves in the first round of a task, as it ends with such an error.
fn refused<T>(p: &mut Party, task: SendFn<Party, T>) -> bool {
    internal(task(p, &mut Outbox::new(2)).map(drop))
}

#[test]
fn missing_parts_blocked_public_values_for_shares_of_another_shape() {
    with_party(|p| {
        let domain = p.domain;
        for (parts, n) in [(PARTS, 2), (PARTS, 4), (1, 3), (3, 3)] {
            let mut share = Share::zeros(parts, n);
            assert!(internal(p.add_clear(&domain, &mut share, &[1, 2, 3])));
            assert!(internal(p.flip(&mut share, &[1, 0, 1])));
            assert!(internal(p.sub_public(&mut share, &[1, 2, 3])));
            assert!(internal(p.note(&share, &[1, 2, 3])));
            let zero = share.parts.iter().flatten().all(|v| *v == 0);
            assert!(zero, "nothing was added to a part");
        }
        assert_eq!(p.verifier.pending(), 0);
        for (parts, n) in [(binary::PARTS, 2), (binary::PARTS - 1, 3), (PARTS, 3)] {
            let mut share = Share::zeros(parts, n);
            assert!(internal(p.bits.add_clear_bits(&mut share, &[1, 2, 3])));
        }
        let constant = p.constant(&domain, &[1, 2, 3]).unwrap();
        constant.check(PARTS, 3).unwrap();
        let bits = p.bits.constant_bits(&[1, 2, 3]).unwrap();
        bits.check(binary::PARTS, 3).unwrap();
    });
}

#[test]
fn missing_parts_blocked_operands_of_another_shape() {
    with_party(|p| {
        let triples = |p: &mut Party, n: usize| {
            let vector = || vec![0; n];
            let all = [(); 6].map(|()| vector());
            p.preprocessing.triples.put(all);
        };
        for (parts, n) in [(1, 2), (3, 2), (PARTS, 1), (PARTS, 3)] {
            triples(p, 2);
            let product = Party::multiply(Share::zeros(PARTS, 2), Share::zeros(parts, n), 1);
            assert!(refused(p, product), "{parts} {n}");
        }
        // Bits that are not there would be converted as zeros.
        assert!(refused(
            p,
            Party::converted(Share::zeros(binary::PARTS, 1), 65)
        ));
        let lanes = |lanes| Share::zeros(binary::PARTS, lanes);
        p.preprocessing
            .put_bits(lanes(2), Share::zeros(PARTS, 128))
            .unwrap();
        assert!(refused(p, Party::converted(Share::zeros(PARTS, 2), 65)));
        p.preprocessing
            .put_bits(lanes(2), Share::zeros(PARTS, 128))
            .unwrap();
        assert!(
            !refused(p, Party::converted(lanes(3), 65)),
            "a lane too many is cut off"
        );
    });
}

#[test]
fn missing_parts_blocked_products_of_bits_that_are_missing() {
    with_party(|p| {
        let mixed = |parts, bits, factors: usize, products: usize| Mixed::<Z2k128> {
            bits: Private {
                packed: Share::zeros(binary::PARTS, 1),
                elements: Share::zeros(parts, bits),
            },
            factors: Share::zeros(PARTS, factors),
            products: Share::zeros(PARTS, products),
        };
        assert!(mixed(PARTS, 64, 8, 8).multiply_ours(p, &[!0]).is_ok());
        for (parts, bits, factors, products) in [
            (PARTS, 65, 8, 8),
            (1, 64, 8, 8),
            (PARTS, 64, 8, 7),
            (PARTS, 64, 65, 65),
        ] {
            let made = mixed(parts, bits, factors, products).multiply_ours(p, &[!0]);
            assert!(internal(made), "{parts} {bits} {factors} {products}");
        }
    });
}
