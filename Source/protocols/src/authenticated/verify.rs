//! The check of what was opened: before a value is given to the caller, and at the end of a batch of correlated randomness.
//!
//! For every opened y each party keeps σ_i = m_i − y·α_i, whose sum over the parties is zero if y is true. The check tosses
//! factors after all was opened; the parties commit to their sums of σ_i times the factors, then open them: the total must
//! vanish. MASCOT (CCS 2016), figure 6; modulo 2^(k + s): SPDZ2k (CRYPTO 2018), section 4, where a wrong value modulo 2^k passes one combination with probability
//! 2^-(s − log(s + 1)). [`COMBINATIONS`] are verified at once ([`crate::budget`]). Bits are checked at the same time.

use std::mem::take;

use keyquorum_math::{Domain, DomainKind, Element, Prg, wipe};
use zeroize::Zeroizing;

use super::binary::{
    self, Toss, commit_and_compare, commit_comparing, commit_sums, finish_challenge, reveal_sums,
    reveal_sums_comparing, start_toss,
};
use super::{Arithmetic, Authenticated, bits};
use crate::adversary::Site;
use crate::budget::COMBINATIONS;
use crate::error::{Check, EngineError, Result};
use crate::mac_key::checks::Sums;
use crate::task::{SendFn, and_then, at_start, join, ready, then, within};
use crate::value::{Share, same, zip};

/// Elements that may be opened before they are verified: 4 MB.
pub(super) const MOST_PENDING: usize = 1 << 18;

/// Most values whose MACs are verified one by one where checks are deferred: 16 bytes each, instead of two rounds for a toss.
pub(super) const MOST_SINGLE: usize = 1 << 8;

/// The differences to verify: the σ_i.
#[derive(Default)]
pub(super) struct Verifier<E: Element> {
    differences: Vec<E>,
}

impl<E: Element> Drop for Verifier<E> {
    fn drop(&mut self) {
        wipe(&mut self.differences);
    }
}

impl<E: Element> Verifier<E> {
    pub fn pending(&self) -> usize {
        self.differences.len()
    }

    pub fn note(&mut self, differences: &[E]) {
        self.differences.extend_from_slice(differences);
    }
}

/// A stream of public numbers for this purpose.
pub fn public(seed: &Toss, purpose: u64) -> Prg {
    Prg::new(binary::first_half(seed), purpose)
}

/// A string that nobody knew or could choose before, and that decides whether something wrong is noticed. Two rounds.
fn challenge<A: Arithmetic>() -> SendFn<Authenticated<A>, Toss> {
    and_then(within(start_toss(), bits::<A>), |_, toss| {
        Ok(within(finish_challenge(toss), bits::<A>))
    })
}

/// Verifies everything that was opened before it starts. Four rounds, five among more than two parties.
pub(super) fn check<A: Arithmetic>() -> SendFn<Authenticated<A>, ()> {
    at_start(move |p: &mut Authenticated<A>| {
        let mut differences = take(&mut p.verifier.differences);
        let sums = and_then(challenge(), move |p: &mut Authenticated<A>, seed| {
            let mut sums = combinations(&p.domain, &differences, &seed);
            wipe(&mut differences);
            p.adversary
                .change_elements(Site::CheckSum, None, &p.domain, &mut sums);
            let bytes = sums.iter().flat_map(|sum| sum.to_u128().to_le_bytes());
            let kind = sums_of(&p.domain);
            let mut committed = within(commit_sums(kind, bytes.collect()), bits::<A>);
            if p.parties > 2 {
                // The check of bits compares all commitments in this round.
                committed = and_then(committed, |_, committed| Ok(ready(committed)));
            }
            Ok(and_then(committed, |_, committed| {
                let ours = committed.ours();
                Ok(then(
                    within(reveal_sums(committed), bits::<A>),
                    move |p: &mut Authenticated<A>, all| {
                        saw(p, Site::CheckSum, &all);
                        for sum in totals(&p.domain, &all, COMBINATIONS)? {
                            verify_sum(p, Check::ElementMacs, sum)?;
                        }
                        p.bits.guard.verified(&ours)?;
                        p.bits.guard.answered()
                    },
                ))
            }))
        });
        let bits = within(binary::check(), bits::<A>);
        Ok(join(sums, bits, |_, (), ()| Ok(())))
    })
}

/// Verifies all openings of a program whose checks are deferred. Few values are verified one by one, which needs no toss and is the check of a single value of SPDZ2k:
/// in one round the parties commit to their σ_i, and in the next they open them. Among more than two parties, the first of these messages also
/// compares what all received before, and the second one the commitments: no honest party opens its σ_i while honest parties have different values, and none accepts
/// while they have different commitments. Two rounds; many values, or bits: those of [`check`].
pub(super) fn check_deferred<A: Arithmetic>() -> SendFn<Authenticated<A>, ()> {
    at_start(move |p: &mut Authenticated<A>| {
        if p.bits.unchecked() || p.verifier.pending() > MOST_SINGLE {
            return Ok(check());
        }
        let mut differences = Zeroizing::new(take(&mut p.verifier.differences));
        if p.parties > 2 {
            // An element may be in two such checks, with public factors: only sums may show, not the σ_i of a party, or a failed check would tell its key alone.
            for owner in 0..p.parties {
                p.add_sharing_of_zero(owner, &mut differences)?;
            }
        }
        p.adversary
            .change_elements(Site::CheckSum, None, &p.domain, &mut differences);
        let count = differences.len();
        let bytes = differences.iter().flat_map(|d| d.to_u128().to_le_bytes());
        let committed = within(
            commit_comparing(sums_of(&p.domain), bytes.collect()),
            bits::<A>,
        );
        Ok(and_then(committed, move |_, committed| {
            let ours = committed.ours();
            Ok(then(
                within(reveal_sums_comparing(committed), bits::<A>),
                move |p: &mut Authenticated<A>, all| {
                    saw(p, Site::CheckSum, &all);
                    for sum in totals(&p.domain, &all, count)? {
                        verify_sum(p, Check::ElementMacs, sum)?;
                    }
                    p.bits.guard.verified(&ours)
                },
            ))
        }))
    })
}

/// Verifies what a share was opened as, every value for itself: its MAC must fit, not only a combination of all MACs. Two rounds,
/// three among more than two parties.
pub(super) fn check_each<A: Arithmetic>(
    (which, site): (Check, Site),
    share: Share<A::E>,
    values: Vec<A::E>,
) -> SendFn<Authenticated<A>, ()> {
    at_start(move |p: &mut Authenticated<A>| {
        let mut differences = p.differences(&share, &values)?;
        p.adversary
            .change_elements(site, None, &p.domain, &mut differences);
        let count = differences.len();
        let bytes = differences.iter().flat_map(|d| d.to_u128().to_le_bytes());
        let committed = within(
            commit_and_compare(sums_of(&p.domain), bytes.collect()),
            bits::<A>,
        );
        Ok(and_then(committed, move |_, committed| {
            let ours = committed.ours();
            Ok(then(
                within(reveal_sums(committed), bits::<A>),
                move |p: &mut Authenticated<A>, all| {
                    saw(p, site, &all);
                    for sum in totals(&p.domain, &all, count)? {
                        verify_sum(p, which, sum)?;
                    }
                    p.bits.guard.verified(&ours)
                },
            ))
        }))
    })
}

/// When sums of elements are right.
fn sums_of<D: Domain>(domain: &D) -> Sums {
    match domain.kind() {
        DomainKind::Bits => Sums::PowerOfTwo(1),
        DomainKind::Z2k(bits) => Sums::PowerOfTwo(bits),
        DomainKind::Fq(q) => Sums::Prime(u128::from(q)),
        DomainKind::WideFq(q) => Sums::Prime(q),
    }
}

/// Random combinations of what is verified, with factors of their own each.
fn combinations<D: Domain>(domain: &D, differences: &[D::E], seed: &Toss) -> Vec<D::E> {
    let mut stream = public(seed, 0);
    let mut factors = vec![domain.zero(); differences.len()];
    let combination = |_| {
        domain.random(&mut stream, &mut factors);
        domain.dot(&factors, differences)
    };
    (0..COMBINATIONS).map(combination).collect()
}

fn saw<A: Arithmetic>(p: &Authenticated<A>, site: Site, all: &[Vec<u8>]) {
    for (party, sums) in all.iter().enumerate() {
        p.adversary.sees(site, party, sums);
    }
}

/// The sums over all parties of the `count` words of each.
fn totals<D: Domain>(domain: &D, all: &[Vec<u8>], count: usize) -> Result<Vec<D::E>> {
    let mut totals = vec![domain.zero(); count];
    for bytes in all {
        let (words, rest) = bytes.as_chunks::<16>();
        same(rest.len(), 0)?;
        for (total, word) in zip(&mut totals, words)? {
            *total = domain.add(*total, domain.from_u128(u128::from_le_bytes(*word)));
        }
    }
    Ok(totals)
}

fn verify_sum<A: Arithmetic>(p: &Authenticated<A>, which: Check, total: A::E) -> Result<()> {
    if total.to_u128() == 0 {
        return Ok(());
    }
    let failed = EngineError::check(
        which,
        match which {
            Check::StoredKeys => {
                "the MAC check of stored shares failed: one of the parties has another MAC key, or other shares, than when they were stored"
            }
            _ => {
                "the MAC check of opened values failed: one of the parties cheats, its results must not be used"
            }
        },
    );
    p.adversary.judge::<()>(Err(failed)).map(drop)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use keyquorum_math::Z2k128;

    use super::*;

    /// How much more the combinations of a value that is wrong by 2^63 are divisible by 2 than the value, for the best of 4,096 tosses: so many bits fewer of
    /// a key are to be guessed by who refuses all other tosses.
    fn gained(combinations_that_count: usize) -> u32 {
        let ring = Z2k128::new(112).unwrap();
        let gained = |session: u64| {
            let mut seed = [0; 32];
            seed[..8].copy_from_slice(&session.to_le_bytes());
            let all = combinations(&ring, &[0, 1 << 63, 0], &seed);
            assert_eq!(all.len(), COMBINATIONS);
            let bits = all.iter().take(combinations_that_count);
            bits.map(|sum| sum.trailing_zeros().min(112) - 63)
                .min()
                .unwrap()
        };
        (0..4096).map(gained).max().unwrap()
    }

    #[test]
    fn crash_guess_blocked_factors_that_are_refused_until_they_suit() {
        assert!(gained(COMBINATIONS) <= 4);
    }

    /// One combination, as in the paper: every further bit takes twice as many sessions.
    #[test]
    fn crash_guess_ablated_factors_that_are_refused_until_they_suit() {
        assert!(gained(1) >= 10);
    }

    /// Sums that one party does not give would be taken for zeros.
    #[test]
    fn missing_parts_blocked_sums_that_are_missing() {
        let ring = Z2k128::new(64).unwrap();
        let said =
            |words: &[u128]| -> Vec<u8> { words.iter().flat_map(|w| w.to_le_bytes()).collect() };
        let all = [said(&[5, 7]), said(&[(1 << 64) - 5, 1])];
        assert_eq!(totals(&ring, &all, 2).unwrap(), [0, 8]);
        assert!(totals(&ring, &[], 0).unwrap().is_empty());
        for bytes in [0, 16, 31, 33, 48] {
            let short = [said(&[5, 7]), vec![0; bytes]];
            let totals = totals(&ring, &short, 2);
            assert!(matches!(totals, Err(EngineError::Internal(_))), "{bytes}");
        }
    }
}
