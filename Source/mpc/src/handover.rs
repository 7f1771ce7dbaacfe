//! Shares of zero among the members of a committee: what is added to stored shares, so that shares of before and after do not fit together.
//!
//! A family of sets of members has seeds in common, drawn in this session from the operating system. A stream of a set's seed gives numbers r_A that all members of A know.
//!
//! | sharing | family | what is added |
//! |---|---|---|
//! | replicated | the set of all | z_j to summand j, z_2 = −z_0 − z_1 |
//! | Shamir | all sets of n − t + 1 | Σ r_A g_A(i), where g_A(x) = x Π_{j ∉ A} (x − j) has degree t |
//! | additive | all pairs | r_ij at the lower member, −r_ij at the other |
//!
//! Members of Shamir's sharing may be absent: the family is of those present, sets of m − t + 1 of these m, and j ∉ A of those present as well. What is added at an absent member nobody knows alone,
//! so it has no share afterwards until it is recovered. Its old share counts as one of t.
//!
//! Herzberg, Jarecki, Krawczyk, Yung, CRYPTO 1995, deal polynomials with the value 0 at 0; here nothing is dealt, as in pseudo-random zero sharing (Cramer, Damgård, Ishai, TCC 2005).
//!
//! *Why sets of n − t + 1.* A member that is corrupt in the session counts in the epochs before and after it. With t ≥ 2 and one seed of all, one corrupt member would know the whole
//! polynomial, and move the shares of t − 1 others of the old epoch to the new one: 2t − 1 > t shares. With sets of n − t + 1 and a coalition C of up to t − 1 members, the g_A of the
//! sets without a member of C span all polynomials that vanish at 0 and on C, so what is added is as unknown to C as it can be. A coalition of t members is the same in both epochs.
//!
//! *Malicious members.* All honest members of a set have one seed, which they compare by hashes before the epoch has a name. Nothing else is sent. So the new honest shares are of the
//! old secret, in every domain. The streams are derived from seed, name and label, and the name is tossed after the comparison: a member that chooses a seed does not choose a number.

use keyquorum_math::{Domain, DomainKind, Element, Prg, Z2k64, Z2k128, Zq, Zq128};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::descriptor::{Descriptor, Sharing};
use crate::error::{EngineError, Result, invalid};
use crate::ops::NAME_BYTES;
use crate::protocol::{Points, SubsetStream, uses_prss, zero_factor};
use crate::session::{EngineOptions, Session};
use crate::table::named;

/// A seed of a set, in common with its other members.
pub(crate) type Seed = Zeroizing<[u8; 32]>;
/// Shares in the form of share files.
pub(crate) type Bytes = Zeroizing<Vec<u8>>;

/// The members of a set, and a seed from their stream.
pub(crate) fn seed_of(mut stream: SubsetStream) -> (Vec<usize>, Seed) {
    let halves = Zeroizing::new([stream.prg.next_seed(), stream.prg.next_seed()]);
    let mut seed = Seed::default();
    for (byte, from) in seed.iter_mut().zip(halves.as_flattened()) {
        *byte = *from;
    }
    (stream.members, seed)
}

/// The stream of a set for one vector. `purpose`: what its numbers are for; `name`: tossed after the members compared their seeds.
pub(crate) fn stream_of(purpose: &[u8], seed: &Seed, name: &[u8], label: &[u8]) -> Prg {
    let hash: Zeroizing<[u8; 32]> = Zeroizing::new(
        Sha256::new_with_prefix(purpose)
            .chain_update(seed.as_slice())
            .chain_update(name)
            .chain_update(label)
            .finalize()
            .into(),
    );
    let mut key = Zeroizing::new([0u8; 16]);
    for (byte, from) in key.iter_mut().zip(hash.iter()) {
        *byte = *from;
    }
    Prg::new(*key, 0)
}

/// Work on shares in the form of share files that is the same in every domain.
pub(crate) trait InDomain {
    fn compute<D: Domain>(&self, domain: &D) -> Result<Bytes>;
}

/// Does it in a domain.
///
/// # Errors
/// [`EngineError::Usage`] where a sharing has no shares over the domain.
pub(crate) fn in_domain(
    sharing: Sharing,
    domain: DomainKind,
    work: &impl InDomain,
) -> Result<Bytes> {
    match domain {
        DomainKind::Fq(q) => work.compute(&Zq::new(q).map_err(invalid)?),
        DomainKind::WideFq(q) => work.compute(&Zq128::new(q).map_err(invalid)?),
        DomainKind::Z2k(_) | DomainKind::Bits if sharing == Sharing::Shamir => Err(
            EngineError::usage(format!("Shamir sharing has no shares over {domain}")),
        ),
        DomainKind::Z2k(k) if k <= 64 => work.compute(&Z2k64::new(k).map_err(invalid)?),
        DomainKind::Z2k(k) => work.compute(&Z2k128::new(k).map_err(invalid)?),
        DomainKind::Bits => Err(EngineError::usage("packed bits are not in share files")),
    }
}

/// The elements of shares in the form of share files, of `parts` parts. `bytes` is of whole vectors.
///
/// # Errors
/// [`EngineError::Usage`] for bytes that are not.
pub(crate) fn decoded<D: Domain>(
    domain: &D,
    sharing: Sharing,
    parts: usize,
    bytes: &[u8],
) -> Result<Zeroizing<Vec<D::E>>> {
    if !bytes.len().is_multiple_of(parts * D::E::BYTES) {
        return Err(EngineError::usage(format!(
            "{} bytes are not whole shares of {} sharing",
            bytes.len(),
            sharing.name()
        )));
    }
    let mut elements = Zeroizing::new(Vec::with_capacity(bytes.len() / D::E::BYTES));
    for word in bytes.chunks_exact(D::E::BYTES) {
        let mut wide = Zeroizing::new([0u8; 16]);
        for (byte, from) in wide.iter_mut().zip(word) {
            *byte = *from;
        }
        elements.push(domain.from_u128(u128::from_le_bytes(*wide)));
    }
    Ok(elements)
}

/// Inverse of [`decoded`].
pub(crate) fn encoded<D: Domain>(elements: &[D::E]) -> Bytes {
    let mut out = Zeroizing::new(Vec::with_capacity(elements.len() * D::E::BYTES));
    for element in elements {
        let bytes = Zeroizing::new(element.to_u128().to_le_bytes());
        out.extend_from_slice(bytes.get(..D::E::BYTES).unwrap_or(bytes.as_slice()));
    }
    out
}

/// Parts of a share.
pub(crate) fn parts(sharing: Sharing) -> usize {
    if sharing == Sharing::Replicated { 2 } else { 1 }
}

/// Shares of zero of one session: secret, wiped when they are dropped.
pub struct ZeroShares {
    sharing: Sharing,
    points: Points,
    party: usize,
    parties: usize,
    /// The sets that we are in, with their seeds.
    sets: Vec<(Vec<usize>, Seed)>,
    name: Vec<u8>,
}

/// Members of each set of the family; `None` where there is none.
fn family(sharing: Sharing, n: usize, t: usize) -> Option<usize> {
    match sharing {
        Sharing::Replicated => Some(n),
        Sharing::Shamir if t > 0 && uses_prss(n, t - 1) => Some(n - t + 1),
        Sharing::Additive => Some(2),
        _ => None,
    }
}

impl Session {
    /// Refuses members of a committee, without the others, whose shares of zero would not be ones: of other sharings, of which all parties are needed, and too few.
    fn check_present(&self, descriptor: &Descriptor, t: usize) -> Result<()> {
        let (present, all) = (self.parties(), self.size_of_whole()?);
        let least = if descriptor.verifies_products() {
            2 * t + 1
        } else {
            t + 1
        };
        if present == all || (descriptor.sharing == Sharing::Shamir && present >= least) {
            return Ok(());
        }
        Err(EngineError::usage(format!(
            "{}: {present} of {all} parties of which {t} may be corrupt make no shares of zero without the others",
            descriptor.name
        )))
    }

    /// Seeds of shares of zero for a protocol's sharing, compared among the members of each set, and a name that all parties toss. All parties call this, in the same order as they open
    /// engines, in a session that began after the start of the refresh. Rounds: 1 for seeds, 1 for the comparison (none for pairs), 3 for the toss (2 among two parties).
    ///
    /// # Errors
    /// [`EngineError::Usage`] for protocols with MACs, and for more sets than are used; [`EngineError::Check`] if members of a set have different seeds, or a party cheats in the toss.
    pub fn zero_shares(&self, protocol: &str, options: &EngineOptions) -> Result<ZeroShares> {
        self.guard().refuse()?;
        let (party, parties) = (self.party(), self.parties());
        let descriptor = named(protocol)?;
        let t = self.threshold_of_whole(descriptor, options)?;
        if descriptor.macs {
            return Err(EngineError::usage(format!(
                "{protocol}: the MAC key is one for all keys, so shares are not refreshed in place"
            )));
        }
        self.check_present(descriptor, t)?;
        let Some(size) = family(descriptor.sharing, parties, t) else {
            return Err(EngineError::usage(format!(
                "{protocol}: {parties} parties of which {t} may be corrupt have too many sets for shares of zero"
            )));
        };
        if descriptor.verifies_products() {
            self.admit(descriptor)?;
        }
        let index = self.next_engine()?;
        let streams = self.judged(self.subset_streams(parties, parties - size, index, options))?;
        self.judged(self.compare_seeds(&streams))?;
        let name = self.toss(NAME_BYTES)?;
        Ok(ZeroShares {
            sharing: descriptor.sharing,
            points: self.points()?,
            party,
            parties,
            sets: streams.into_iter().map(seed_of).collect(),
            name,
        })
    }
}

impl ZeroShares {
    /// The name that the parties tossed, 16 bytes.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Our shares of a vector, in the form of share files, with shares of zero added. `label`: of the vector, never the same for two vectors. Local.
    ///
    /// # Errors
    /// [`EngineError::Usage`] for shares that are not whole vectors of the sharing, and for a prime that is not above the number of parties.
    pub fn refreshed(&self, domain: DomainKind, label: &[u8], shares: &[u8]) -> Result<Bytes> {
        let added = Added {
            zeros: self,
            label,
            shares,
        };
        in_domain(self.sharing, domain, &added)
    }

    /// The stream of a set for one vector.
    fn stream(&self, seed: &Seed, label: &[u8]) -> Prg {
        stream_of(b"keyquorum-v1/shares of zero", seed, &self.name, label)
    }

    /// Our shares of zero, part after part.
    fn zeros<D: Domain>(
        &self,
        domain: &D,
        label: &[u8],
        count: usize,
    ) -> Result<Zeroizing<Vec<D::E>>> {
        if self.sharing == Sharing::Replicated {
            return self.summands(domain, label, count);
        }
        let mut sums = Zeroizing::new(vec![domain.zero(); count]);
        let mut drawn = Zeroizing::new(vec![domain.zero(); count]);
        for (members, seed) in &self.sets {
            domain.random(&mut self.stream(seed, label), &mut drawn);
            let factor = match self.sharing {
                Sharing::Shamir => {
                    zero_factor(domain, &self.points, self.party, self.parties, members)?
                }
                _ if members.first() == Some(&self.party) => domain.one(),
                _ => domain.neg(domain.one()),
            };
            domain.mul_scalar_assign(&mut drawn, factor);
            domain.add_assign(&mut sums, &drawn);
        }
        Ok(sums)
    }

    /// The summands of zero that we hold: our own, then that of the party before us.
    fn summands<D: Domain>(
        &self,
        domain: &D,
        label: &[u8],
        count: usize,
    ) -> Result<Zeroizing<Vec<D::E>>> {
        let missing = || EngineError::internal("a seed of all parties is missing");
        let (_, seed) = self.sets.first().ok_or_else(missing)?;
        let mut stream = self.stream(seed, label);
        let mut all = Zeroizing::new(vec![domain.zero(); self.parties * count]);
        let (drawn, last) = all.split_at_mut((self.parties - 1) * count);
        domain.random(&mut stream, drawn);
        for summand in drawn.chunks_exact(count.max(1)) {
            domain.sub_assign(last, summand);
        }
        let mut held = Zeroizing::new(Vec::with_capacity(2 * count));
        for at in [self.party, (self.party + self.parties - 1) % self.parties] {
            held.extend_from_slice(all.get(at * count..(at + 1) * count).ok_or_else(missing)?);
        }
        Ok(held)
    }
}

/// Shares of a vector, to which shares of zero are added.
struct Added<'a> {
    zeros: &'a ZeroShares,
    label: &'a [u8],
    shares: &'a [u8],
}

impl InDomain for Added<'_> {
    fn compute<D: Domain>(&self, domain: &D) -> Result<Bytes> {
        let sharing = self.zeros.sharing;
        let mut sums = decoded(domain, sharing, parts(sharing), self.shares)?;
        let count = sums.len() / parts(sharing);
        let zeros = self.zeros.zeros(domain, self.label, count)?;
        domain.add_assign(&mut sums, &zeros);
        Ok(encoded::<D>(&sums))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
pub(crate) mod tests {
    use super::*;
    use crate::protocol::subsets;

    pub(crate) const Q: u64 = 101;

    /// Whether `target` is a combination of `rows` over F_Q.
    pub(crate) fn spans(mut rows: Vec<Vec<u64>>, mut target: Vec<u64>) -> bool {
        let field = Zq::new(Q).unwrap();
        let take = |row: &mut Vec<u64>, pivot: &[u64], at: usize| {
            let factor = row[at];
            for (entry, other) in row.iter_mut().zip(pivot) {
                *entry = field.sub(*entry, field.mul(factor, *other));
            }
        };
        for at in 0..target.len() {
            let Some(found) = rows.iter().position(|row| row[at] != 0) else {
                continue;
            };
            let mut pivot = rows.swap_remove(found);
            let inverse = field.invert(pivot[at]).unwrap();
            pivot.iter_mut().for_each(|x| *x = field.mul(*x, inverse));
            rows.iter_mut().for_each(|row| take(row, &pivot, at));
            take(&mut target, &pivot, at);
        }
        target.iter().all(|x| *x == 0)
    }

    /// The sets of which members hold a common polynomial that vanishes at 0, and its factors at each party's point: one column each.
    type Columns = Vec<(Vec<usize>, Vec<u64>)>;

    fn of_sets(n: usize, t: usize) -> Columns {
        of_present(n, t, &[])
    }

    /// The same if these members are absent. Their columns have what is added at their points.
    fn of_present(n: usize, t: usize, absent: &[usize]) -> Columns {
        let field = Zq::new(Q).unwrap();
        let mut numbers: Vec<usize> = (0..n).filter(|i| !absent.contains(i)).collect();
        let m = numbers.len();
        numbers.extend(absent); // parties m.. of these points are outside of the family
        let points = Points::of(&numbers);
        let column = |members: Vec<usize>| {
            let at = |i: usize| numbers.iter().position(|number| *number == i).unwrap();
            let factors = (0..n).map(|i| zero_factor(&field, &points, at(i), m, &members).unwrap());
            let known = members.iter().map(|i| numbers[*i]).collect();
            (known, factors.collect())
        };
        subsets(m, m - t + 1).into_iter().map(column).collect()
    }

    /// One seed of all: x, x², … x^t.
    fn of_all(n: usize, t: usize) -> Columns {
        let field = Zq::new(Q).unwrap();
        let power = |e: u32| -> Vec<_> {
            (0..n)
                .map(|i| field.from_u128((i as u128 + 1).pow(e)))
                .collect()
        };
        let all = || (0..n).collect();
        (1..=t as u32).map(|e| (all(), power(e))).collect()
    }

    /// Patterns of corruption of (during, before, after), and those in which the secret is known.
    fn patterns(n: usize, t: usize, columns: &Columns) -> (usize, usize) {
        patterns_with(n, t, columns, &[], &[])
    }

    /// The same with absent members, of which these `counted` ones are among the t of before.
    fn patterns_with(
        n: usize,
        t: usize,
        columns: &Columns,
        absent: &[usize],
        counted: &[usize],
    ) -> (usize, usize) {
        let (mut all, mut known) = (0, 0);
        for during in (0..=t).flat_map(|size| subsets(n, size)) {
            if during.iter().any(|i| absent.contains(i)) {
                continue;
            }
            let within = |also: &[usize]| {
                let mut larger = subsets(n, t);
                larger.retain(|set| during.iter().chain(also).all(|i| set.contains(i)));
                larger
            };
            for mut before in within(counted) {
                before.extend(absent.iter().filter(|i| !counted.contains(i)));
                for after in within(&[]) {
                    all += 1;
                    known += usize::from(secret_is_known(t, columns, (&during, &before, &after)));
                }
            }
        }
        (all, known)
    }

    /// Unknown: the coefficients of f, then the number of each column whose set has no corrupt member in the session.
    fn secret_is_known(
        t: usize,
        columns: &Columns,
        (during, before, after): (&[usize], &[usize], &[usize]),
    ) -> bool {
        let field = Zq::new(Q).unwrap();
        let hidden = columns
            .iter()
            .filter(|(members, _)| during.iter().all(|i| !members.contains(i)));
        let hidden: Vec<_> = hidden.collect();
        let share = |i: usize, refreshed: bool| -> Vec<u64> {
            let f = (0..=t as u32).map(|e| field.from_u128((i as u128 + 1).pow(e)));
            let added = hidden
                .iter()
                .map(|(_, at)| if refreshed { at[i] } else { 0 });
            f.chain(added).collect()
        };
        let mut rows: Vec<_> = before.iter().map(|i| share(*i, false)).collect();
        rows.extend(after.iter().map(|i| share(*i, true)));
        let mut secret = vec![0; t + 1 + hidden.len()];
        secret[0] = 1;
        spans(rows, secret)
    }

    #[test]
    fn t_shares_of_each_epoch_hide_the_secret() {
        for (n, t) in [(3, 1), (4, 1), (5, 1), (5, 2), (6, 2), (7, 2), (7, 3)] {
            let (all, known) = patterns(n, t, &of_sets(n, t));
            assert!(all > 0 && known == 0, "{known} of {all} at ({n}, {t})");
        }
    }

    /// All sets of absent members of all sizes that are allowed; what absent members get later is among the shares of after.
    #[test]
    fn t_shares_of_each_epoch_hide_the_secret_with_absent_members() {
        for (n, t) in [(3, 1), (4, 1), (5, 2), (6, 2), (7, 2), (7, 3)] {
            for absent in (1..=t.min(n - t - 1)).flat_map(|size| subsets(n, size)) {
                let columns = of_present(n, t, &absent);
                let (all, known) = patterns_with(n, t, &columns, &absent, &absent);
                assert!(
                    all > 0 && known == 0,
                    "{known} of {all} at ({n}, {t}) without {absent:?}"
                );
            }
        }
    }

    /// An absent member that is not counted as corrupt is one old share too many, and one seed of all present is not enough with t ≥ 2.
    #[test]
    fn absent_members_count_as_corrupt() {
        let columns = of_present(7, 2, &[6]);
        let (all, known) = patterns_with(7, 2, &columns, &[6], &[]);
        assert!(known > all / 2, "{known} of {all}");
        let mut one = of_all(7, 2);
        one.iter_mut()
            .for_each(|(members, _)| members.retain(|i| *i != 6));
        assert!(patterns_with(7, 2, &one, &[6], &[]).1 > 0);
        let mut one = of_all(7, 3);
        one.iter_mut()
            .for_each(|(members, _)| members.retain(|i| *i != 6));
        assert!(patterns_with(7, 3, &one, &[6], &[6]).1 > 0);
    }

    /// The attack: a member that is corrupt in the session moves an old share of another to the new epoch.
    #[test]
    fn one_seed_of_all_gives_the_secret_away() {
        assert_eq!(patterns(5, 2, &of_all(5, 2)), (190, 60));
        assert_eq!(patterns(5, 1, &of_all(5, 1)).1, 0, "t = 1 needs no more");
    }
}
