//! Random bits shared in both domains.
//!
//! Every party shares bits that it knows, as elements and packed, then a tossed order opens [`OPENED`] of them and puts the others in
//! buckets. Of a bucket all but the first are sacrificed: their differences in the packed domain are opened, and the same must hold
//! for the elements, which is linear once the difference is public and verified without opening it. A pair that is wrong survives only
//! in a bucket of pairs that are all wrong, and only if none of those that are opened is. The bit is the sum modulo 2 of the
//! parties' first ones; over the elements it takes n − 1 products.
//! Cut and choose as for edaBits: Escudero, Ghosh, Keller, Rachuri, Scholl (CRYPTO 2020), section 4.

use zeroize::{Zeroize, Zeroizing};

use super::binary::{self, log2_choose, sliced, words};
use super::private::{OPENED, Private, shared};
use super::verify::check;
use super::{Arithmetic, Authenticated, bits};
use crate::error::Result;
use crate::graph::{SendFn, and_then, ready, then, within};
use crate::protocol::lane_bits;
use crate::value::Share;

/// log2 of the probability that is allowed.
const SECURITY: f64 = 40.0;
const LARGEST: usize = 8;

/// −log2 of the probability that wrong pairs fill `wrong` of `n` buckets, and none is opened.
fn survival(n: usize, size: usize, wrong: usize) -> f64 {
    log2_choose(n * size + OPENED, wrong * size) - log2_choose(n, wrong)
}

/// The same for the best number of wrong pairs: those of one bucket, or all.
fn security(n: usize, size: usize) -> f64 {
    survival(n, size, 1).min(survival(n, size, n))
}

/// Size of the buckets of a batch of `n` bits.
fn bucket(n: usize) -> usize {
    (2..LARGEST)
        .find(|size| security(n, *size) >= SECURITY)
        .unwrap_or(LARGEST)
}

/// Asks for what the batch is made of.
pub(super) fn need<A: Arithmetic>(p: &mut Authenticated<A>) -> Result<()> {
    let n = 64 * p.supply.batch;
    let lanes = p.supply.batch * bucket(n) + OPENED / 64;
    for owner in 0..p.parties {
        p.bits.need_input(owner, lanes)?;
    }
    p.supply.triples.need((p.parties - 1) * n);
    Ok(())
}

/// A task that puts `lanes` lanes of 64 bits in stock.
pub(super) fn task<A: Arithmetic>(lanes: usize) -> SendFn<Authenticated<A>, ()> {
    let n = 64 * lanes;
    let size = bucket(n);
    let pairs = n * size + OPENED;
    let shared = shared(pairs / 64, pairs, move |p: &mut Authenticated<A>, known| {
        #[cfg(test)]
        let known = &p.lie_about_bits(known);
        Zeroizing::new(lane_bits(&p.domain, known, pairs))
    });
    and_then(shared, move |_, (private, seed)| {
        let order = binary::permutation(pairs, &seed);
        Ok(and_then(sieve(private, order, size), |_, firsts| {
            Ok(and_then(sum(firsts), |_, bit: Private<A>| {
                Ok(then(check(), move |p: &mut Authenticated<A>, ()| {
                    p.supply.put_bits(bit.packed, bit.elements)
                }))
            }))
        }))
    })
}

/// Compares the bits of every bucket, of all parties, and looks at the last [`OPENED`] of the order; the first ones remain.
fn sieve<A: Arithmetic>(
    private: Vec<Private<A>>,
    mut order: Vec<u32>,
    size: usize,
) -> SendFn<Authenticated<A>, Vec<Private<A>>> {
    let looked_at = order.split_off(order.len().saturating_sub(OPENED));
    let n = order.len() / size;
    let mut firsts = Vec::with_capacity(private.len());
    // Party after party: differences of the first bit to the second of each bucket, to the third, …; then bits that are opened.
    let per_party = n * (size - 1) + OPENED;
    let mut differences = Zeroizing::new(Vec::with_capacity(private.len() * per_party));
    for bits in &private {
        let words = words(&bits.packed);
        let pick = |i: u32| words.get(i as usize).copied().unwrap_or(0);
        let mut first = Zeroizing::new(Vec::with_capacity(n));
        for l in 0..size {
            for (i, bucket) in order.chunks_exact(size).enumerate() {
                let word = bucket.get(l).map_or(0, |member| pick(*member));
                match l {
                    0 => first.push(word),
                    _ => differences.push(word ^ first.get(i).copied().unwrap_or(0)),
                }
            }
        }
        differences.extend(looked_at.iter().map(|i| pick(*i)));
        firsts.push(sliced(&first));
    }
    let opening: SendFn<Authenticated<A>, _> = Box::new(move |p, out| {
        let task = within(p.bits.open(sliced(&differences)), bits::<A>);
        task(p, out)
    });
    then(opening, move |p, opened| {
        let clear: Vec<A::E> = lane_bits(&p.domain, &opened, private.len() * per_party);
        let mut out = Vec::with_capacity(private.len());
        for ((bits, packed), clear) in private
            .iter()
            .zip(firsts)
            .zip(clear.chunks_exact(per_party))
        {
            let pick = |part: &[A::E], i: Option<&u32>| {
                let element = i.and_then(|i| part.get(*i as usize));
                element.copied().unwrap_or_default()
            };
            let column = |l: usize| {
                bits.elements.map(|part| {
                    let buckets = order.chunks_exact(size);
                    buckets.map(|bucket| pick(part, bucket.get(l))).collect()
                })
            };
            let (clear, seen) = clear.split_at(per_party - OPENED);
            let mut shown = bits
                .elements
                .map(|part| looked_at.iter().map(|i| pick(part, Some(i))).collect());
            p.sub_public(&mut shown, seen);
            p.note_zero(&shown);
            let elements = column(0);
            for (l, clear) in (1..size).zip(clear.chunks_exact(n)) {
                let mut other = column(l);
                p.flip(&mut other, clear);
                p.sub(&mut other, &elements);
                p.note_zero(&other);
            }
            out.push(Private { packed, elements });
        }
        Ok(out)
    })
}

/// The sum modulo 2, in a tree.
fn sum<A: Arithmetic>(mut bits: Vec<Private<A>>) -> SendFn<Authenticated<A>, Private<A>> {
    if bits.len() == 1
        && let Some(last) = bits.pop()
    {
        return ready(last);
    }
    Box::new(move |p, out| {
        let rest = if bits.len() % 2 == 1 {
            bits.pop()
        } else {
            None
        };
        let half = bits.len() / 2;
        let second = bits.split_off(half);
        let all = |list: &[Private<A>]| {
            let mut whole = Share::zeros(super::PARTS, 0);
            for bits in list {
                for (whole, part) in whole.parts.iter_mut().zip(&bits.elements.parts) {
                    whole.extend_from_slice(part);
                }
            }
            whole
        };
        let (x, y) = (all(&bits), all(&second));
        let task = Authenticated::multiply(x.duplicate(), y.duplicate(), 1);
        and_then(task, move |p: &mut Authenticated<A>, mut product| {
            // x ⊕ y = x + y − 2xy.
            let two = p.domain.add(p.domain.one(), p.domain.one());
            for part in &mut product.parts {
                p.domain.mul_scalar_assign(part, p.domain.neg(two));
            }
            p.add(&mut product, &x);
            p.add(&mut product, &y);
            let n = product.len() / half.max(1);
            let mut sums = Vec::with_capacity(half + 1);
            for (i, (one, other)) in bits.iter_mut().zip(&second).enumerate() {
                let mut packed = one.packed.duplicate();
                for (p, q) in packed.parts.iter_mut().zip(&other.packed.parts) {
                    for (p, q) in p.iter_mut().zip(q) {
                        *p ^= q;
                    }
                }
                let elements =
                    product.map(|part| part.get(i * n..(i + 1) * n).unwrap_or_default().to_vec());
                sums.push(Private { packed, elements });
            }
            product
                .parts
                .iter_mut()
                .for_each(|p| p.iter_mut().zeroize());
            sums.extend(rest);
            Ok(sum(sums))
        })(p, out)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What decides is one bucket, or all: in between there are more ways to put the wrong pairs.
    #[test]
    fn the_best_attack_is_on_one_bucket_or_on_all() {
        for (n, size) in [(64, 6), (256, 6), (320, 5), (1024, 4)] {
            for wrong in 1..=n {
                let found = survival(n, size, wrong);
                assert!(found >= security(n, size), "{wrong} of {n}: {found}");
            }
        }
    }

    #[test]
    fn buckets_are_large_enough() {
        for lanes in [4, 8, 16, 64, 256, 4096] {
            let n = 64 * lanes;
            assert!(security(n, bucket(n)) >= SECURITY, "{n}");
        }
        assert_eq!((bucket(256), bucket(1024), bucket(16384)), (6, 5, 4));
    }

    /// The bound is the chance that a random order puts all wrong pairs in one bucket.
    #[test]
    fn the_bound_is_exact_for_one_bucket() {
        // The first wrong pair is in a bucket, and the others are in the same one.
        let (n, size) = (64usize, 4usize);
        let pairs = n * size + OPENED;
        let first = (n * size) as f64 / pairs as f64;
        let together = (1..size).fold(first, |p, i| p * (size - i) as f64 / (pairs - i) as f64);
        assert!((-f64::log2(together) - security(n, size)).abs() < 1e-9);
    }
}
