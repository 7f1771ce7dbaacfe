//! What the receiver of `open_to` sees above 2^k.

use std::sync::{Arc, Mutex};

use keyquorum_math::{Domain, Z2k128};

use super::{input, run_as};
use crate::adversary::{Adversary, Site};
use crate::engine::Engine;
use crate::error::Result;
use crate::protocol::authenticated::MAC_BITS;
use crate::tests::authenticated::adversaries::Role;

/// Products that are opened.
const N: usize = 512;

/// A receiver that keeps what comes to it before it is reduced.
#[derive(Default)]
struct Curious(Mutex<Vec<u8>>);

impl Adversary for Curious {
    fn deviates(&self, site: Site) -> bool {
        site == Site::Personal
    }

    fn sees(&self, site: Site, _from: usize, message: &[u8]) {
        if site != Site::Personal {
            return;
        }
        *self.0.lock().unwrap() = message.to_vec();
    }
}

fn products(engine: &mut dyn Engine, [x, y]: [i64; 2]) -> Result<crate::Handle> {
    let (x, y) = (input(engine, 0, &[x; N])?, input(engine, 0, &[y; N])?);
    engine.mul(&x, &y)
}

/// What party 1 sees above 2^64 of products of party 0's inputs, which are opened to it.
fn seen(factors: [i64; 2]) -> Vec<u64> {
    let curious = Arc::new(Curious::default());
    let role = |party| match party {
        1 => Role::Plays(Arc::clone(&curious) as _),
        _ => Role::Honest,
    };
    let results = run_as(
        2,
        "spdz2k",
        role,
        |_, t| t,
        move |engine| {
            let products = products(engine, factors)?;
            let opened = engine.open_to(&products, 1)?;
            engine.flush()?;
            Ok(match engine.party().0 {
                1 => engine.read(&opened)?,
                _ => Vec::new(),
            })
        },
    );
    let [_, opened] = results.try_into().unwrap();
    let product = factors[0].wrapping_mul(factors[1]).cast_unsigned();
    assert_eq!(opened.unwrap(), [product; N]);
    let domain = Z2k128::new(64 + MAC_BITS).unwrap();
    let mut words = vec![0u128; N];
    domain
        .decode(&curious.0.lock().unwrap(), &mut words)
        .unwrap();
    words.iter().map(|word| (word >> 64) as u64).collect()
}

/// The factors have one product modulo 2^64, and others above it.
const FACTORS: [[i64; 2]; 3] = [[1 << 40, 1 << 40], [1 << 50, 1 << 50], [0, 5]];

/// Every bit is as often one as zero, whatever was multiplied: 256 expected, standard deviation 11, seven of them.
#[test]
fn personal_openings_blocked_nothing_is_revealed_above_2_to_the_k() {
    for factors in FACTORS {
        let seen = seen(factors);
        for bit in 0..MAC_BITS {
            let ones = seen.iter().filter(|word| **word >> bit & 1 == 1).count();
            assert!(ones.abs_diff(N / 2) < 80, "{factors:?} {bit}: {ones}");
        }
    }
}

/// The share itself, without the mask above 2^k, comes to the product of the integers.
#[test]
fn personal_openings_ablated_the_integer_product_is_revealed() {
    let domain = Z2k128::new(64 + MAC_BITS).unwrap();
    for factors in FACTORS {
        let results = run_as(
            2,
            "spdz2k",
            |_| Role::Honest,
            |_, t| t,
            move |engine| {
                let products = products(engine, factors)?;
                engine.export(&products)
            },
        );
        let mut sum = 0;
        for share in results {
            let word = u128::from_le_bytes(*share.unwrap().first_chunk().unwrap());
            sum = domain.add(sum, word);
        }
        let product = (i128::from(factors[0]) * i128::from(factors[1])).cast_unsigned();
        assert_eq!(sum, domain.from_u128(product), "{factors:?}");
    }
}
