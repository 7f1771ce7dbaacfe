//! What [`Ablated`](super::Ablated) takes the place of: the toss of the first version, whose challenge one honest party reveals alone.

use keyquorum_math::{Domain, Prg};
use sha2::{Digest, Sha256};

use crate::task::{then, within};
use crate::verified::check::{Task, with_random};
use crate::verified::{Verifiable, Verified, inner};

/// Bits of the seed.
const SEED_BITS: usize = 128;

/// Random elements that are opened.
pub fn toss_elements(bits: u32) -> usize {
    SEED_BITS.div_ceil(bits as usize - 1)
}

/// A stream whose seed is the hash of opened random elements: every honest party sends all that a corrupted one lacks, whatever others wait for.
pub(in crate::verified) fn toss<P: Verifiable, A: Domain>() -> Task<P, A, Prg> {
    Box::new(|p, out| {
        let domain = p.domain.clone();
        let n = toss_elements(domain.bits());
        let opened = with_random(domain.clone(), n, move |p: &mut Verified<P, A>, share| {
            let opened = within(p.inner.open_checked(&domain, &share)?, inner);
            Ok(then(opened, move |p: &mut Verified<P, A>, elements| {
                p.settle();
                Ok(seeded(&domain, &elements))
            }))
        });
        opened(p, out)
    })
}

/// The stream of opened elements.
pub fn seeded<D: Domain>(domain: &D, elements: &[D::E]) -> Prg {
    let mut bytes = b"keyquorum-v1/check of products".to_vec();
    domain.encode(elements, &mut bytes);
    let mut seed = [0; 16];
    seed.copy_from_slice(Sha256::digest(&bytes).split_at(16).0);
    Prg::new(seed, 0)
}
