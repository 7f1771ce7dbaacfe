//! Recovery of a lost share: members that have theirs help one that lost its own. The secret is nowhere, and nobody but the lost party gets anything.
//!
//! | sharing | who helps | what is sent to the lost party ℓ |
//! |---|---|---|
//! | replicated | both others | summand ℓ by the party after it, and summand ℓ − 1 by the one before: both are shares of ℓ |
//! | Shamir | H, at least t + 1 | f(j) + h(j), where h has degree t and h(ℓ) = 0 |
//!
//! h(x) = Σ r_A (x − ℓ) Π_{j ∈ H∖A} (x − j) over the sets A of |H| − t + 1 helpers, which have a seed in common. So ℓ sees a random polynomial of degree t with f(ℓ) at ℓ, also together with
//! t − 1 helpers: one set has none of these, and its polynomial is zero at ℓ and at their points alone. (Herzberg, Jarecki, Krawczyk, Yung, CRYPTO 1995, section on lost shares.)
//!
//! *Wrong helpers.* ℓ refuses points that are not of one polynomial of degree t. With |H| ≥ 2t + 1 there are t + 1 honest helpers, which determine f + h: up to t wrong ones change nothing.
//! With fewer, f + h + κ Π (x − j) over t honest helpers passes. A summand of replicated sharing has one other holder, whom nothing contradicts. So protocols for malicious parties ask for 2t + 1 helpers, or for a
//! caller that tests the shares of all parties together before ℓ stores anything. Additive shares are n of n: nobody knows anything of a lost one.

use keyquorum_math::{Domain, DomainKind, Element};
use zeroize::Zeroizing;

use crate::adversary::Corruption;
use crate::descriptor::Sharing;
use crate::error::{Check, EngineError, Result};
use crate::handover::{
    Bytes, InDomain, Seed, decoded, encoded, in_domain, parts, seed_of, stream_of,
};
use crate::ops::NAME_BYTES;
use crate::protocol::{Points, lagrange, uses_prss};
use crate::session::{EngineOptions, Session};
use crate::table::named;

/// One party's part in the recovery of another one's shares, in one session.
pub struct Recovery {
    sharing: Sharing,
    points: Points,
    party: usize,
    parties: usize,
    threshold: usize,
    lost: usize,
    /// In increasing order.
    helpers: Vec<usize>,
    /// The sets of helpers that we are in, with their seeds.
    sets: Vec<(Vec<usize>, Seed)>,
    name: Vec<u8>,
    adversary: Corruption,
}

impl Session {
    /// Begins the recovery of the shares of party `lost` from those of `helpers`. All parties of the session call this with the same arguments, in the same order as they open engines.
    /// `tested`: the caller tests the shares before they count, so that helpers are enough of whom wrong ones may go unnoticed here.
    /// Rounds: for Shamir's sharing 1 for seeds, 1 for their comparison (none for pairs), 3 for the toss of a name; else none.
    ///
    /// # Errors
    /// [`EngineError::Usage`] where the sharing, the protocol's adversary or the number of helpers does not allow it; [`EngineError::Check`] if helpers have different seeds of a set, or a
    /// party cheats in the toss.
    pub fn recovery(
        &self,
        protocol: &str,
        lost: usize,
        helpers: &[usize],
        tested: bool,
        options: &EngineOptions,
    ) -> Result<Recovery> {
        self.guard().refuse()?;
        let (party, parties) = (self.party(), self.parties());
        let descriptor = named(protocol)?;
        let threshold = self.threshold_of_whole(descriptor, options)?;
        let verifies = descriptor.verifies_products();
        let size = set_size(
            descriptor.sharing,
            parties,
            threshold,
            (lost, helpers),
            verifies && !tested,
        )?;
        if verifies {
            self.admit(descriptor)?;
        }
        let index = self.next_engine()?;
        let mut recovery = Recovery {
            sharing: descriptor.sharing,
            points: self.points()?,
            party,
            parties,
            threshold,
            lost,
            helpers: helpers.to_vec(),
            sets: Vec::new(),
            name: Vec::new(),
            adversary: self.adversary(),
        };
        if let Some(size) = size {
            let streams =
                self.judged(self.subset_streams(parties, parties - size, index, options))?;
            self.judged(self.compare_seeds(&streams))?;
            recovery.name = self.toss(NAME_BYTES)?;
            let among = |members: &[usize]| members.iter().all(|i| helpers.contains(i));
            recovery.sets = streams.into_iter().map(seed_of).collect();
            recovery.sets.retain(|(members, _)| among(members));
        }
        Ok(recovery)
    }
}

/// Helpers in each set that has a seed, `None` for sharings that need none. Refuses what cannot be recovered. `verifies`: wrong helpers must be noticed by what they send.
fn set_size(
    sharing: Sharing,
    n: usize,
    t: usize,
    (lost, helpers): (usize, &[usize]),
    verifies: bool,
) -> Result<Option<usize>> {
    let refused = |why: String| Err(EngineError::usage(why));
    let proper = helpers.iter().all(|i| *i < n && *i != lost) && helpers.is_sorted_by(|a, b| a < b);
    if lost >= n || !proper {
        return refused(format!(
            "party {lost} of {n} and helpers {helpers:?}: name other parties, in increasing order"
        ));
    }
    let m = helpers.len();
    match sharing {
        Sharing::Replicated if verifies => refused(
            "a lost summand is known to one other party alone, and nothing shows whether it sends the right one"
                .into(),
        ),
        Sharing::Replicated if m + 1 == n => Ok(None),
        Sharing::Shamir if t > 0 && m > if verifies { 2 * t } else { t } => {
            let size = m + 1 - t;
            if !uses_prss(n, size.min(n - size)) {
                return refused(format!("{n} parties have too many sets of {size}: take fewer helpers"));
            }
            Ok(Some(size))
        }
        Sharing::Replicated | Sharing::Shamir => refused(format!(
            "{m} helpers are too few for {} sharing of {n} parties of which {t} may be corrupt",
            sharing.name()
        )),
        Sharing::Additive | Sharing::None => refused(format!(
            "nobody knows anything of a lost share of {} sharing",
            sharing.name()
        )),
    }
}

impl Recovery {
    /// The helpers that send something, in the order in which [`Recovery::recovered`] takes it.
    pub fn senders(&self) -> Vec<usize> {
        match self.sharing {
            Sharing::Replicated => {
                vec![self.after(), (self.lost + self.parties - 1) % self.parties]
            }
            _ => self.helpers.clone(),
        }
    }

    /// The party after the lost one.
    fn after(&self) -> usize {
        (self.lost + 1) % self.parties
    }

    /// What we send to the lost party for a vector of which we have these shares, in the form of share files. `label`: of the vector, never the same for two vectors. Local.
    ///
    /// # Errors
    /// [`EngineError::Usage`] for one who is not a helper, and for shares that are not whole vectors of the sharing.
    pub fn sent(&self, domain: DomainKind, label: &[u8], shares: &[u8]) -> Result<Bytes> {
        if !self.senders().contains(&self.party) {
            return Err(EngineError::usage(format!(
                "party {} does not help party {}",
                self.party, self.lost
            )));
        }
        let blinded = Sent {
            recovery: self,
            label,
            shares,
        };
        in_domain(self.sharing, domain, &blinded)
    }

    /// The shares of a vector of `count` elements, from what the senders sent, in the form of share files. At the lost party. Local.
    ///
    /// # Errors
    /// [`EngineError::Check`] if a helper sent something wrong, of which others know; [`EngineError::Protocol`] for another number of bytes.
    pub fn recovered(&self, domain: DomainKind, count: usize, sent: &[Vec<u8>]) -> Result<Bytes> {
        let taken = Taken {
            recovery: self,
            count,
            sent,
        };
        in_domain(self.sharing, domain, &taken)
    }

    /// The lost share from points of f + h, which must be of one polynomial.
    fn interpolated<D: Domain>(
        &self,
        domain: &D,
        points: &[Zeroizing<Vec<D::E>>],
    ) -> Result<Zeroizing<Vec<D::E>>> {
        let at: Vec<_> = self
            .helpers
            .iter()
            .map(|j| self.points.at(domain, *j))
            .collect();
        let (first, others) = (
            at.iter().take(self.threshold + 1),
            self.helpers.iter().zip(&at),
        );
        let first: Vec<_> = first.copied().collect();
        for ((helper, x), found) in others.zip(points).skip(first.len()) {
            let expected = combined(domain, &lagrange(domain, &first, *x)?, points)?;
            if *expected != **found && !self.adversary.omits(Check::RecoveredShares) {
                return Err(EngineError::check(
                    Check::RecoveredShares,
                    format!(
                        "what parties {:?} sent for the share of party {} is not of one polynomial (found at that of party {helper}): one of them sent a wrong one, so nothing was stored: see which, and leave it out",
                        self.helpers, self.lost
                    ),
                ));
            }
        }
        combined(
            domain,
            &lagrange(domain, &first, self.points.at(domain, self.lost))?,
            points,
        )
    }
}

/// The value at the point of `party` of the polynomial that a set of helpers has in common, up to its random factor.
fn factor<D: Domain>(
    domain: &D,
    points: &Points,
    party: usize,
    (lost, helpers): (usize, &[usize]),
    members: &[usize],
) -> Result<D::E> {
    let outside = helpers.iter().filter(|j| !members.contains(j));
    let value = outside.chain([&lost]).fold(domain.one(), |value, j| {
        domain.mul(
            value,
            domain.sub(points.at(domain, party), points.at(domain, *j)),
        )
    });
    if members.contains(&party) && value == domain.zero() {
        return Err(EngineError::usage(
            "the prime is too small for this many parties: take a prime above n",
        ));
    }
    Ok(value)
}

/// The sum of vectors times factors; of as many vectors as there are factors.
fn combined<D: Domain>(
    domain: &D,
    factors: &[D::E],
    vectors: &[Zeroizing<Vec<D::E>>],
) -> Result<Zeroizing<Vec<D::E>>> {
    let count = vectors.first().map_or(0, |vector| vector.len());
    let mut sum = Zeroizing::new(vec![domain.zero(); count]);
    for (factor, vector) in factors.iter().zip(vectors) {
        let mut scaled = Zeroizing::new(vector.to_vec());
        domain.mul_scalar_assign(&mut scaled, *factor);
        domain.add_assign(&mut sum, &scaled);
    }
    Ok(sum)
}

/// What a helper sends.
struct Sent<'a> {
    recovery: &'a Recovery,
    label: &'a [u8],
    shares: &'a [u8],
}

impl InDomain for Sent<'_> {
    fn compute<D: Domain>(&self, domain: &D) -> Result<Bytes> {
        let recovery = self.recovery;
        let sharing = recovery.sharing;
        let mut shares = decoded(domain, sharing, parts(sharing), self.shares)?;
        if sharing == Sharing::Replicated {
            // Our own summand, then that of the party before us.
            let (own, before) = shares.split_at(shares.len() / 2);
            let theirs = if recovery.party == recovery.after() {
                before
            } else {
                own
            };
            return Ok(encoded::<D>(theirs));
        }
        let mut drawn = Zeroizing::new(vec![domain.zero(); shares.len()]);
        for (members, seed) in &recovery.sets {
            let purpose = b"keyquorum-v1/recovery of a share";
            let mut stream = stream_of(purpose, seed, &recovery.name, self.label);
            domain.random(&mut stream, &mut drawn);
            let whom = (recovery.lost, recovery.helpers.as_slice());
            domain.mul_scalar_assign(
                &mut drawn,
                factor(domain, &recovery.points, recovery.party, whom, members)?,
            );
            domain.add_assign(&mut shares, &drawn);
        }
        Ok(encoded::<D>(&shares))
    }
}

/// What the lost party makes of it.
struct Taken<'a> {
    recovery: &'a Recovery,
    count: usize,
    sent: &'a [Vec<u8>],
}

impl InDomain for Taken<'_> {
    fn compute<D: Domain>(&self, domain: &D) -> Result<Bytes> {
        let recovery = self.recovery;
        let senders = recovery.senders();
        if recovery.party != recovery.lost || senders.len() != self.sent.len() {
            return Err(EngineError::usage(format!(
                "party {} has {} messages for the shares of party {}",
                recovery.party,
                self.sent.len(),
                recovery.lost
            )));
        }
        let mut vectors = Vec::with_capacity(senders.len());
        for (sender, bytes) in senders.iter().zip(self.sent) {
            let wrong = || {
                EngineError::protocol(format!(
                    "party {sender} sent {} bytes that are not {} elements: see what became of it",
                    bytes.len(),
                    self.count
                ))
            };
            if bytes.len() != self.count * D::E::BYTES {
                return Err(wrong());
            }
            let elements = decoded(domain, recovery.sharing, 1, bytes)?;
            if *encoded::<D>(&elements) != *bytes {
                return Err(wrong()); // not reduced
            }
            vectors.push(elements);
        }
        if recovery.sharing == Sharing::Replicated {
            let parts = vectors.iter().map(|vector| encoded::<D>(vector));
            let mut both = Zeroizing::new(Vec::with_capacity(2 * self.count * D::E::BYTES));
            parts.for_each(|part| both.extend_from_slice(&part));
            return Ok(both);
        }
        Ok(encoded::<D>(&recovery.interpolated(domain, &vectors)?))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use keyquorum_math::{Prg, Zq};

    use super::*;
    use crate::handover::tests::{Q, spans};
    use crate::protocol::{point, subsets};

    const Q_OF_FIELD: u64 = 1_152_921_504_606_584_833;
    const FIELD: DomainKind = DomainKind::Fq(Q_OF_FIELD);
    const COUNT: usize = 8;

    /// What each party has after the set-up; `omitted`: checks of which nobody heeds the verdict.
    fn begun(
        protocol: &'static str,
        (n, t): (usize, usize),
        (lost, helpers): (usize, &[usize]),
        omitted: &'static [Check],
    ) -> Vec<Result<Recovery>> {
        begun_if(false, protocol, (n, t), (lost, helpers), omitted)
    }

    fn begun_if(
        tested: bool,
        protocol: &'static str,
        (n, t): (usize, usize),
        (lost, helpers): (usize, &[usize]),
        omitted: &'static [Check],
    ) -> Vec<Result<Recovery>> {
        let threads: Vec<_> = keyquorum_net::local_mesh(n, Duration::from_secs(20))
            .into_iter()
            .map(|transport| {
                let helpers = helpers.to_vec();
                thread::spawn(move || {
                    let transport = transport.tampered(|_, message| vec![message.to_vec()]);
                    let session = Session::without_checks(transport, omitted.iter().copied())?;
                    let options = EngineOptions {
                        threshold: Some(t),
                        ..EngineOptions::default()
                    };
                    session.recovery(protocol, lost, &helpers, tested, &options)
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    }

    /// Random shares of all parties, in the form of share files, of polynomials of degree `t`.
    fn shamir_shares(n: usize, t: usize) -> Vec<Vec<u8>> {
        let (field, mut prg) = (Zq::new(Q_OF_FIELD).unwrap(), Prg::new([7; 16], 0));
        let mut coefficients = vec![vec![0; COUNT]; t + 1];
        for row in &mut coefficients {
            field.random(&mut prg, row);
        }
        let share = |i: usize| {
            let at = |k: usize| {
                coefficients.iter().rev().fold(0, |value, row| {
                    field.add(field.mul(value, point(&field, i)), row[k])
                })
            };
            encoded::<Zq>(&(0..COUNT).map(at).collect::<Vec<_>>()).to_vec()
        };
        (0..n).map(share).collect()
    }

    /// What the lost party gets; `change`: what is done to the messages of the helpers.
    fn recovered(
        parties: &[Recovery],
        shares: &[Vec<u8>],
        domain: DomainKind,
        change: impl Fn(&mut Vec<Vec<u8>>),
    ) -> Result<Vec<u8>> {
        let lost = parties[0].lost;
        let senders = parties[lost].senders();
        let sent = senders.iter().map(|j| {
            let sent = parties[*j].sent(domain, b"vector", &shares[*j]);
            sent.map(|bytes| bytes.to_vec())
        });
        let mut sent = sent.collect::<Result<Vec<_>>>()?;
        change(&mut sent);
        let found = parties[lost].recovered(domain, COUNT, &sent)?;
        Ok(found.to_vec())
    }

    fn all(parties: Vec<Result<Recovery>>) -> Vec<Recovery> {
        parties.into_iter().map(Result::unwrap).collect()
    }

    #[test]
    fn a_share_of_shamir_comes_back() {
        type Case = (&'static str, (usize, usize), (usize, &'static [usize]));
        let cases: [Case; 6] = [
            ("shamir", (3, 1), (0, &[1, 2])),
            ("shamir", (5, 2), (3, &[0, 1, 2, 4])),
            ("shamir", (5, 2), (3, &[0, 2, 4])),
            ("shamir", (7, 3), (6, &[0, 1, 2, 3, 4, 5])),
            ("mal-shamir", (4, 1), (1, &[0, 2, 3])),
            ("mal-shamir", (6, 2), (5, &[0, 1, 2, 3, 4])),
        ];
        for (protocol, (n, t), whom) in cases {
            let parties = all(begun(protocol, (n, t), whom, &[]));
            let shares = shamir_shares(n, t);
            let mut seen = Vec::new();
            let found = recovered(&parties, &shares, FIELD, |sent| assert!(sent.len() > t));
            assert_eq!(found.unwrap(), shares[whom.0], "{protocol} ({n}, {t})");
            for j in whom.1 {
                let sent = parties[*j].sent(FIELD, b"vector", &shares[*j]).unwrap();
                assert_ne!(*sent, shares[*j], "a share itself is never sent");
                seen.push(sent);
            }
            let other = parties[whom.1[0]].sent(FIELD, b"other", &shares[whom.1[0]]);
            assert_ne!(other.unwrap(), seen[0], "two vectors have two masks");
        }
    }

    #[test]
    fn summands_come_back() {
        for domain in [FIELD, DomainKind::Z2k(64), DomainKind::Z2k(32)] {
            let word = |summand: usize, k: usize| (100 * summand + k) as u64;
            let part = |summand: usize| (0..COUNT).map(move |k| word(summand, k).to_le_bytes());
            let share = |i: usize| {
                part(i)
                    .chain(part((i + 2) % 3))
                    .flatten()
                    .collect::<Vec<u8>>()
            };
            let shares: Vec<Vec<u8>> = (0..3).map(share).collect();
            for lost in 0..3 {
                let helpers: Vec<usize> = (0..3).filter(|i| *i != lost).collect();
                let parties = all(begun("rep-field", (3, 1), (lost, &helpers), &[]));
                let found = recovered(&parties, &shares, domain, |_| ());
                assert_eq!(found.unwrap(), shares[lost]);
            }
        }
    }

    /// Every single wrong helper of 2t + 1, in one element, and two of five.
    #[test]
    fn wrong_helpers_are_caught() {
        let (whom, shares) = ((5, [0, 1, 2, 3, 4]), shamir_shares(6, 2));
        let parties = all(begun("mal-shamir", (6, 2), (whom.0, &whom.1), &[]));
        for wrong in [
            vec![0],
            vec![1],
            vec![2],
            vec![3],
            vec![4],
            vec![0, 4],
            vec![1, 2],
        ] {
            let ends = recovered(&parties, &shares, FIELD, |sent| {
                wrong.iter().for_each(|i| sent[*i][8] ^= 1);
            });
            let caught = matches!(&ends, Err(EngineError::Check { check: Check::RecoveredShares, text }) if text.contains("is not of one polynomial"));
            assert!(caught, "{wrong:?}: {ends:?}");
        }
    }

    /// The same without the check: the party goes on with another share.
    #[test]
    fn recovery_ablated_without_the_check_of_the_degree() {
        let (whom, shares) = ((3, [0, 1, 2]), shamir_shares(4, 1));
        for (omitted, passes) in [(&[][..], false), (&[Check::RecoveredShares][..], true)] {
            let parties = all(begun("mal-shamir", (4, 1), (whom.0, &whom.1), omitted));
            let found = recovered(&parties, &shares, FIELD, |sent| sent[1][8] ^= 1);
            assert_eq!(found.is_ok_and(|found| found != shares[3]), passes);
        }
    }

    /// Of so few helpers each may send a wrong share unnoticed: what comes back must be tested.
    #[test]
    fn shares_that_are_tested_come_back_from_fewer_helpers() {
        let (whom, shares) = ((2, [0, 1, 3, 4]), shamir_shares(5, 2));
        let parties = all(begun_if(true, "mal-shamir", (5, 2), (whom.0, &whom.1), &[]));
        let found = recovered(&parties, &shares, FIELD, |_| ());
        assert_eq!(found.unwrap(), shares[2]);
        // κ (x − 1)(x − 2) on top of a polynomial of degree 2: helpers 0 and 1 have nothing of it.
        let field = Zq::new(Q_OF_FIELD).unwrap();
        let found = recovered(&parties, &shares, FIELD, |sent| {
            for j in [2, 3] {
                let x = point(&field, whom.1[j]);
                let at = field.mul(field.sub(x, 1), field.sub(x, 2));
                let word = u64::from_le_bytes(sent[j][..8].try_into().unwrap());
                sent[j][..8].copy_from_slice(&field.add(word, at).to_le_bytes());
            }
        });
        assert_ne!(found.unwrap(), shares[2], "two wrong helpers of four pass");
        let parties = all(begun_if(true, "mal-rep-field", (3, 1), (0, &[1, 2]), &[]));
        assert_eq!(parties[0].senders(), [1, 2]);
        let few = begun_if(true, "mal-shamir", (5, 2), (0, &[1, 2]), &[]);
        assert!(few.iter().all(Result::is_err), "t helpers know nothing");
    }

    /// Messages of another length, or elements that are not reduced.
    #[test]
    fn messages_that_are_no_elements_are_refused() {
        let (whom, shares) = ((3, [0, 1, 2]), shamir_shares(4, 1));
        let parties = all(begun("mal-shamir", (4, 1), (whom.0, &whom.1), &[]));
        let changes: [fn(&mut Vec<u8>); 4] = [
            |sent| sent.truncate(8 * COUNT - 1),
            |sent| sent.truncate(8 * (COUNT - 1)),
            |sent| sent.extend([0; 8]),
            |sent| sent[..8].fill(255),
        ];
        for change in changes {
            let ends = recovered(&parties, &shares, FIELD, |sent| change(&mut sent[2]));
            assert!(matches!(ends, Err(EngineError::Protocol(text)) if text.contains("party 2")));
        }
        let asked = parties[3].sent(FIELD, b"vector", &shares[3]);
        assert!(matches!(asked, Err(EngineError::Usage(_))), "no helper");
        let taken = parties[0].recovered(FIELD, COUNT, &[]);
        assert!(matches!(taken, Err(EngineError::Usage(_))), "not lost");
    }

    #[test]
    fn what_cannot_be_recovered_is_refused() {
        type Case = (
            &'static str,
            (usize, usize),
            (usize, &'static [usize]),
            &'static str,
        );
        let cases: [Case; 9] = [
            (
                "semi",
                (3, 2),
                (0, &[1, 2]),
                "nobody knows anything of a lost share",
            ),
            (
                "mal-rep-field",
                (3, 1),
                (0, &[1, 2]),
                "one other party alone",
            ),
            (
                "mal-shamir",
                (5, 2),
                (0, &[1, 2, 3, 4]),
                "4 helpers are too few",
            ),
            ("shamir", (5, 2), (0, &[1, 2]), "2 helpers are too few"),
            ("rep-field", (3, 1), (0, &[1]), "1 helpers are too few"),
            ("shamir", (3, 1), (0, &[0, 1]), "name other parties"),
            ("shamir", (3, 1), (3, &[0, 1]), "name other parties"),
            ("shamir", (3, 1), (0, &[2, 1]), "in increasing order"),
            (
                "shamir",
                (11, 5),
                (0, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
                "fewer helpers",
            ),
        ];
        for (protocol, shape, whom, said) in cases {
            for end in begun(protocol, shape, whom, &[]) {
                let text = end.err().unwrap().to_string();
                assert!(text.contains(said), "{protocol} {shape:?}: {text}");
            }
        }
    }

    /// Whether the lost party with `others`, helpers, knows the value at 0. Unknown: the coefficients of f, then the number of each set without any of these.
    fn secret_is_known(
        t: usize,
        whom: (usize, &[usize]),
        others: &[usize],
        family: &[(Vec<usize>, Vec<u64>)],
    ) -> bool {
        let field = Zq::new(Q).unwrap();
        let hidden: Vec<_> = family
            .iter()
            .filter(|(members, _)| others.iter().all(|i| !members.contains(i)))
            .collect();
        let row = |i: usize, blinded: bool| -> Vec<u64> {
            let f = (0..=t as u32).map(|e| field.from_u128((i as u128 + 1).pow(e)));
            let added = hidden.iter().map(|(_, at)| if blinded { at[i] } else { 0 });
            f.chain(added).collect()
        };
        let mut rows: Vec<_> = whom.1.iter().map(|j| row(*j, true)).collect();
        rows.extend(others.iter().map(|i| row(*i, false)));
        rows.push(row(whom.0, false));
        let mut secret = vec![0; t + 1 + hidden.len()];
        secret[0] = 1;
        spans(rows, secret)
    }

    /// The lost party with any t − 1 helpers, for all helpers and all numbers of them.
    fn coalitions_that_know(
        (n, t): (usize, usize),
        family: impl Fn(usize, &[usize]) -> Vec<(Vec<usize>, Vec<u64>)>,
    ) -> (usize, usize) {
        let (mut all, mut known) = (0, 0);
        for m in t + 1..n {
            for helpers in subsets(n, m) {
                for lost in (0..n).filter(|i| !helpers.contains(i)) {
                    let family = family(lost, &helpers);
                    for others in subsets(n, t - 1) {
                        if others.iter().all(|i| helpers.contains(i)) {
                            all += 1;
                            let whom = (lost, helpers.as_slice());
                            known += usize::from(secret_is_known(t, whom, &others, &family));
                        }
                    }
                }
            }
        }
        (all, known)
    }

    #[test]
    fn the_lost_party_with_t_1_helpers_does_not_learn_the_secret() {
        let field = Zq::new(Q).unwrap();
        for (n, t) in [(3, 1), (4, 1), (5, 2), (6, 2), (7, 3)] {
            let of_sets = |lost: usize, helpers: &[usize]| {
                let mut sets = subsets(n, helpers.len() + 1 - t);
                sets.retain(|set| set.iter().all(|i| helpers.contains(i)));
                let column = |members: Vec<usize>| {
                    let at = (0..n).map(|i| {
                        factor(&field, &Points::default(), i, (lost, helpers), &members).unwrap()
                    });
                    (members.clone(), at.collect())
                };
                sets.into_iter().map(column).collect()
            };
            let (all, known) = coalitions_that_know((n, t), of_sets);
            assert!(all > 0 && known == 0, "{known} of {all} at ({n}, {t})");
        }
    }

    /// Two parties are lost, recovered from the same helpers in one session, and corrupt, with t − 2 helpers: each has masks of its own. With the same masks for both, five parties' secret is known.
    #[test]
    fn two_lost_parties_together_do_not_learn_the_secret() {
        let field = Zq::new(Q).unwrap();
        for (n, t) in [(5, 2), (6, 2), (7, 3)] {
            let (mut known, mut known_ablated) = (0, 0);
            for pair in subsets(n, 2) {
                let helpers: Vec<usize> = (0..n).filter(|i| !pair.contains(i)).collect();
                let mut sets = subsets(n, helpers.len() + 1 - t);
                sets.retain(|set| set.iter().all(|i| helpers.contains(i)));
                for others in subsets(n, t - 2) {
                    if others.iter().any(|i| pair.contains(i)) {
                        continue;
                    }
                    let hidden: Vec<_> = sets
                        .iter()
                        .filter(|set| others.iter().all(|i| !set.contains(i)))
                        .collect();
                    let rows_if = |apart: bool| {
                        let width = t + 1 + 2 * hidden.len();
                        let mut rows = Vec::new();
                        let share = |i: usize, lost: Option<usize>| {
                            let mut row = vec![0; width];
                            for (e, entry) in row.iter_mut().take(t + 1).enumerate() {
                                *entry = field.from_u128((i as u128 + 1).pow(e as u32));
                            }
                            for (at, set) in hidden.iter().enumerate() {
                                let Some(which) = lost else { break };
                                let whom = (pair[which], helpers.as_slice());
                                let points = Points::default();
                                let offset = if apart { which * hidden.len() } else { 0 };
                                let factor = factor(&field, &points, i, whom, set).unwrap();
                                row[t + 1 + offset + at] = factor;
                            }
                            row
                        };
                        for which in [0, 1] {
                            rows.extend(helpers.iter().map(|i| share(*i, Some(which))));
                        }
                        rows.extend(others.iter().map(|i| share(*i, None)));
                        rows
                    };
                    let mut secret = vec![0; t + 1 + 2 * hidden.len()];
                    secret[0] = 1;
                    known += usize::from(spans(rows_if(true), secret.clone()));
                    known_ablated += usize::from(spans(rows_if(false), secret));
                }
            }
            assert_eq!(known, 0, "({n}, {t})");
            assert!(known_ablated > 0, "({n}, {t})");
        }
    }

    /// Without masks the lost party knows all; with one seed of all helpers it does with any one of them.
    #[test]
    fn without_masks_or_with_one_seed_of_all_the_secret_is_known() {
        let (all, known) = coalitions_that_know((5, 2), |_, _| Vec::new());
        assert!(all > 0 && known == all);
        let field = Zq::new(Q).unwrap();
        let of_all = |lost: usize, helpers: &[usize]| {
            let power = |e: u32| -> Vec<u64> {
                let at = |i: usize| {
                    let x = point(&field, i);
                    let slope = field.sub(x, point(&field, lost));
                    field.mul(slope, field.from_u128(u128::from(x).pow(e)))
                };
                (0..5).map(at).collect()
            };
            (0..2).map(|e| (helpers.to_vec(), power(e))).collect()
        };
        let (all, known) = coalitions_that_know((5, 2), of_all);
        assert!(all > 0 && known == all, "{known} of {all}");
    }
}
