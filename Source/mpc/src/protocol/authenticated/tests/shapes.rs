//! Shares and vectors of other shapes than the protocol has: states that the code excludes, each an internal error.

use std::thread;
use std::time::Duration;

use keyquorum_math::Z2k128;
use keyquorum_net::local_mesh;

use super::super::mixed::Mixed;
use super::super::private::Private;
use super::super::{Authenticated, MAC_BITS, PARTS, binary};
use crate::adversary::honest;
use crate::error::{EngineError, Result};
use crate::protocol::{BitProtocol, Protocol};
use crate::round::Outbox;
use crate::session::{EngineOptions, Session};
use crate::task::SendFn;
use crate::value::Share;

type Party = Authenticated<Z2k128>;

/// A party of two, after the set-up that it needs.
fn with_party(body: fn(&mut Party)) {
    let threads: Vec<_> = local_mesh(2, Duration::from_secs(60))
        .into_iter()
        .map(|transport| {
            thread::spawn(move || {
                let session = Session::new(Box::new(transport)).unwrap();
                let domains = (
                    Z2k128::new(64).unwrap(),
                    Z2k128::new(64 + MAC_BITS).unwrap(),
                );
                let options = EngineOptions::default();
                let party = session.protocol_with_macs(domains, 7, &options, honest());
                body(&mut party.unwrap());
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
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
