//! The transfer check of a resharing: whether what the new committee got is what the old one has, where members of one of them may be malicious.
//!
//! Behind each vector x the old committee passes masks u on, as one vector (x, u). When all of both committees have their shares, and not before, they toss, and the toss gives coefficients c. Then
//!
//! y_k = Σ_l c_kl x_l + u_k
//!
//! is opened twice by every new member: from what the old members state of their shares, and from what the new members state of theirs.
//!
//! | old sharing | masks | y from |
//! |---|---|---|
//! | replicated, verified | summand j from the seed of its two holders | both copies of each summand, which must be equal |
//! | Shamir, verified | Σ r_A f_A(i) over the sets A of n − t members, which have a seed in common; f_A(0) = 1, f_A(j) = 0 outside A | the points of all members, which must be of one polynomial of degree t |
//! | semi-honest | each dealer draws shares of its own | the summands of the dealers |
//!
//! (Cramer, Damgård, Ishai, TCC 2005, for the masks.) New members open theirs as in the first two rows; additive shares have nothing to check.
//!
//! *Correctness.* The honest old members determine x, u and so y: other statements are not of one polynomial, or differ from the copy of an honest member. The honest new members determine x', u' and y' in
//! the same way. An error x' − x, or of shares that do not fit together, is fixed before the toss. Over F_q it is seen but for q^−ρ with ρ masks. Modulo 2^k the c are random subsets, since a uniform factor
//! misses 2^(k−1) half of the time: 2^−ρ. [`rows`] gives ρ, so that this is at most 2^−48. Wrong vectors in several domains must all pass, so more of them pass less often. A mask that fits a *known* toss
//! passes always: so nobody opens the toss before all have confirmed their shares.
//!
//! *Privacy.* One set of n − t members is honest, and its mask is uniform for t old and t' new members together; so y is, and both sharings of it. The tests compute the rank of all such views. Whether a check
//! fails depends on errors and coefficients alone, which the adversary knows.

use keyquorum_math::{Domain, DomainKind, Element, Prg, os_random};
use zeroize::Zeroizing;

use crate::descriptor::Sharing;
use crate::error::{Check, EngineError, Result};
use crate::handover::{
    Bytes, InDomain, Seed, decoded, encoded, in_domain, parts, seed_of, stream_of,
};
use crate::protocol::{Points, lagrange, point, subset_factor, uses_prss};
use crate::resharing::{Members, Vector};
use crate::session::{EngineOptions, Session};
use crate::table::named;

/// Bits of an error's chance to pass.
const SECURITY_BITS: u32 = 48;
/// Of the stream of coefficients.
const PURPOSE: &[u8] = b"keyquorum-v1/transfer check";

/// Masks of a vector: as many as its check needs in this domain.
pub fn rows(domain: DomainKind) -> usize {
    let bits = match domain {
        DomainKind::Fq(q) => q.checked_ilog2().unwrap_or(1), // q is at least 2^bits
        DomainKind::WideFq(q) => q.checked_ilog2().unwrap_or(1),
        DomainKind::Z2k(_) | DomainKind::Bits => 1,
    };
    SECURITY_BITS.div_ceil(bits.max(1)) as usize
}

/// Seeds of masks that the members of sets of an old committee have in common. Secret, wiped when they are dropped.
pub struct MaskSeeds {
    sharing: Sharing,
    party: usize,
    parties: usize,
    /// The sets that we are in.
    sets: Vec<(Vec<usize>, Seed)>,
}

impl Session {
    /// Seeds of masks for a resharing from a committee that verifies products, compared among the members of each set. All members of the committee call this, and they alone, in a session that began
    /// after the resharing was asked for. Rounds: 1 for seeds, 1 for the comparison (none for pairs).
    ///
    /// # Errors
    /// [`EngineError::Usage`] for other protocols, and for more sets than are used; [`EngineError::Check`] if members of a set have different seeds.
    pub fn mask_seeds(&self, protocol: &str, options: &EngineOptions) -> Result<MaskSeeds> {
        self.guard().refuse()?;
        let (party, parties) = (self.party(), self.parties());
        let descriptor = named(protocol)?;
        let t = descriptor.threshold(parties, options.threshold)?;
        if !descriptor.verifies_products() {
            return Err(EngineError::usage(format!(
                "{protocol}: dealers that follow the protocol draw masks of their own"
            )));
        }
        if !uses_prss(parties, t) {
            return Err(EngineError::usage(format!(
                "{protocol}: {parties} parties of which {t} may be corrupt have too many sets for masks"
            )));
        }
        let index = self.next_engine()?;
        let streams = self.judged(self.subset_streams(parties, t, index, options))?;
        self.judged(self.compare_seeds(&streams))?;
        Ok(MaskSeeds {
            sharing: descriptor.sharing,
            party,
            parties,
            sets: streams.into_iter().map(seed_of).collect(),
        })
    }
}

impl MaskSeeds {
    /// Our shares of `count` masks, in the form of share files. `name`: of the resharing; `label`: of the vector, never the same for two. Local.
    ///
    /// # Errors
    /// [`EngineError::Usage`] for domains of which the sharing has no shares.
    pub fn shares(
        &self,
        domain: DomainKind,
        name: &[u8],
        label: &[u8],
        count: usize,
    ) -> Result<Bytes> {
        let drawing = Drawing {
            seeds: self,
            name,
            label,
            count,
        };
        in_domain(self.sharing, domain, &drawing)
    }

    /// What our part number `part` has of the numbers of a set.
    fn factor<D: Domain>(&self, domain: &D, part: usize, members: &[usize]) -> Result<D::E> {
        if self.sharing == Sharing::Shamir {
            return subset_factor(
                domain,
                &Points::default(),
                self.party,
                self.parties,
                members,
            );
        }
        // Our own summand, then that of the party before us: each has its own set of two.
        let lead = (self.party + self.parties - part) % self.parties;
        let both = [lead, (lead + 1) % self.parties];
        Ok(if both.iter().all(|i| members.contains(i)) {
            domain.one()
        } else {
            domain.zero()
        })
    }
}

struct Drawing<'a> {
    seeds: &'a MaskSeeds,
    name: &'a [u8],
    label: &'a [u8],
    count: usize,
}

impl InDomain for Drawing<'_> {
    fn compute<D: Domain>(&self, domain: &D) -> Result<Bytes> {
        let parts = parts(self.seeds.sharing);
        let mut sums = Zeroizing::new(vec![domain.zero(); parts * self.count]);
        for (members, seed) in &self.seeds.sets {
            let mut stream = stream_of(b"keyquorum-v1/masks", seed, self.name, self.label);
            let mut drawn = Zeroizing::new(vec![domain.zero(); self.count]);
            domain.random(&mut stream, &mut drawn);
            for (part, sum) in sums.chunks_exact_mut(self.count.max(1)).enumerate() {
                let mut scaled = Zeroizing::new(drawn.to_vec());
                domain.mul_scalar_assign(&mut scaled, self.seeds.factor(domain, part, members)?);
                domain.add_assign(sum, &scaled);
            }
        }
        Ok(encoded::<D>(&sums))
    }
}

impl Members {
    /// Masks that a dealer of a semi-honest committee draws alone, from the operating system, in the form of its shares.
    ///
    /// # Errors
    /// [`EngineError::Usage`] for domains of which the sharing has no shares.
    pub fn own_masks(&self, domain: DomainKind, count: usize) -> Result<Bytes> {
        let mut seed = Seed::default();
        os_random(seed.as_mut_slice()).map_err(|e| {
            EngineError::usage(format!("the operating system gives no randomness: {e}"))
        })?;
        let count = parts(self.sharing) * count;
        in_domain(self.sharing, domain, &Alone { seed, count })
    }

    /// What a member states of y, in the form of its shares: from those of a vector and of its masks. `toss`: 32 bytes; `label`: of the vector. Local, once for one toss.
    ///
    /// # Errors
    /// [`EngineError::Usage`] for shares that are not whole vectors of the sharing.
    pub fn stated(
        &self,
        domain: DomainKind,
        (toss, label): (&[u8; 32], &[u8]),
        shares: &[u8],
        masks: &[u8],
    ) -> Result<Bytes> {
        let combining = Combining {
            of: self,
            toss: Seed::new(*toss),
            label,
            shares,
            masks,
        };
        in_domain(self.sharing, domain, &combining)
    }

    /// The `count` elements of y from what all members state, which must fit together.
    ///
    /// # Errors
    /// [`EngineError::Check`] if it does not, [`EngineError::Protocol`] for another number of bytes, or elements that are not reduced.
    pub fn opened(
        &self,
        domain: DomainKind,
        count: usize,
        statements: &[Vec<u8>],
    ) -> Result<Bytes> {
        let all: Vec<usize> = (0..self.parties).collect();
        let opening = Opening {
            of: self,
            members: &all,
            count,
            statements,
            checked: true,
        };
        in_domain(self.sharing, domain, &opening)
    }

    /// The `count` elements of y from what the `dealers` of a semi-honest committee state, each of masks of its own.
    ///
    /// # Errors
    /// [`EngineError::Protocol`] for another number of bytes, or elements that are not reduced; [`EngineError::Usage`] for dealers that do not have the secret together.
    pub fn summed(
        &self,
        dealers: &[usize],
        domain: DomainKind,
        count: usize,
        statements: &[Vec<u8>],
    ) -> Result<Bytes> {
        self.check_dealers(dealers)?;
        let opening = Opening {
            of: self,
            members: dealers,
            count,
            statements,
            checked: false,
        };
        in_domain(self.sharing, domain, &opening)
    }
}

/// Numbers of one seed.
struct Alone {
    seed: Seed,
    count: usize,
}

impl InDomain for Alone {
    fn compute<D: Domain>(&self, domain: &D) -> Result<Bytes> {
        let mut stream = stream_of(b"keyquorum-v1/own masks", &self.seed, b"", b"");
        let mut drawn = Zeroizing::new(vec![domain.zero(); self.count]);
        domain.random(&mut stream, &mut drawn);
        Ok(encoded::<D>(&drawn))
    }
}

struct Combining<'a> {
    of: &'a Members,
    toss: Seed,
    label: &'a [u8],
    shares: &'a [u8],
    masks: &'a [u8],
}

impl InDomain for Combining<'_> {
    fn compute<D: Domain>(&self, domain: &D) -> Result<Bytes> {
        let sharing = self.of.sharing;
        let parts = parts(sharing);
        let shares = decoded(domain, sharing, parts, self.shares)?;
        let mut sums = decoded(domain, sharing, parts, self.masks)?;
        let (length, count) = (shares.len() / parts, sums.len() / parts);
        let mut stream = stream_of(PURPOSE, &self.toss, b"", self.label);
        let mut factors = vec![domain.zero(); length];
        for row in 0..count {
            coefficients(domain, &mut stream, &mut factors);
            for part in 0..parts {
                let vector = shares.get(part * length..(part + 1) * length);
                let sum = sums.get_mut(part * count + row);
                if let (Some(vector), Some(sum)) = (vector, sum) {
                    *sum = domain.add(*sum, domain.dot(&factors, vector));
                }
            }
        }
        Ok(encoded::<D>(&sums))
    }
}

/// Fills a row of coefficients: uniform ones of a field, random subsets of a ring.
fn coefficients<D: Domain>(domain: &D, stream: &mut Prg, factors: &mut [D::E]) {
    if matches!(domain.kind(), DomainKind::Fq(_) | DomainKind::WideFq(_)) {
        domain.random(stream, factors);
        return;
    }
    let mut bits = vec![0u64; factors.len().div_ceil(64)];
    stream.fill_u64(&mut bits);
    for (chunk, word) in factors.chunks_mut(64).zip(bits) {
        for (at, factor) in chunk.iter_mut().enumerate() {
            *factor = if (word >> at) & 1 == 1 {
                domain.one()
            } else {
                domain.zero()
            };
        }
    }
}

struct Opening<'a> {
    of: &'a Members,
    /// Who stated something, in increasing order.
    members: &'a [usize],
    count: usize,
    statements: &'a [Vec<u8>],
    checked: bool,
}

impl Opening<'_> {
    fn read<D: Domain>(&self, domain: &D) -> Result<Vec<Vector<D>>> {
        if self.members.len() != self.statements.len() {
            return Err(EngineError::usage(format!(
                "{} statements of {} members",
                self.statements.len(),
                self.members.len()
            )));
        }
        let parts = parts(self.of.sharing);
        let size = parts * self.count * D::E::BYTES;
        let each = self.members.iter().zip(self.statements);
        each.map(|(member, said)| {
            let wrong = || {
                EngineError::protocol(format!(
                    "member {member} stated {} bytes that are not {} elements of the transfer check: see what became of it",
                    said.len(),
                    parts * self.count
                ))
            };
            let elements =
                decoded(domain, self.of.sharing, parts, said).map_err(|_| wrong())?;
            if said.len() != size || *encoded::<D>(&elements) != **said {
                return Err(wrong()); // of another length, or not reduced
            }
            Ok(elements)
        })
        .collect()
    }

    /// Refuses what does not fit together.
    fn check<D: Domain>(&self, domain: &D, said: &[Vector<D>]) -> Result<()> {
        match self.of.sharing {
            Sharing::Replicated => self.check_copies(said),
            Sharing::Shamir => self.check_degree(domain, said),
            _ => Ok(()),
        }
    }

    fn check_copies<E: PartialEq + zeroize::Zeroize>(
        &self,
        said: &[Zeroizing<Vec<E>>],
    ) -> Result<()> {
        let n = said.len();
        for (i, statement) in said.iter().enumerate() {
            let before = (i + n - 1) % n;
            let theirs = said.get(before).and_then(|other| other.get(..self.count));
            if theirs != statement.get(self.count..) {
                return Err(EngineError::check(
                    Check::Openings,
                    format!("members {before} and {i} state different values of one summand"),
                ));
            }
        }
        Ok(())
    }

    fn check_degree<D: Domain>(&self, domain: &D, said: &[Vector<D>]) -> Result<()> {
        let at: Vec<_> = self.members.iter().map(|i| point(domain, *i)).collect();
        let first = self.of.dealers();
        let known = at.get(..first).unwrap_or(&at);
        for ((member, x), statement) in self.members.iter().zip(&at).zip(said).skip(first) {
            let factors = lagrange(domain, known, *x)?;
            if *combined(domain, &factors, said, self.count) != **statement {
                return Err(EngineError::check(
                    Check::Openings,
                    format!(
                        "what the members state is not of one polynomial of degree {} (found at that of member {member})",
                        first - 1
                    ),
                ));
            }
        }
        Ok(())
    }
}

impl InDomain for Opening<'_> {
    fn compute<D: Domain>(&self, domain: &D) -> Result<Bytes> {
        let said = self.read(domain)?;
        if self.checked {
            self.check(domain, &said)?;
        }
        let dealers = self.members.get(..self.of.dealers());
        let dealers = dealers.unwrap_or(self.members);
        let mut sum = Zeroizing::new(vec![domain.zero(); self.count]);
        for (dealer, statement) in dealers.iter().zip(&said) {
            let summand = self.of.summand(domain, dealers, *dealer, statement)?;
            domain.add_assign(&mut sum, &summand);
        }
        Ok(encoded::<D>(&sum))
    }
}

/// The sum of vectors of `count` elements times factors; of as many vectors as there are factors.
fn combined<D: Domain>(
    domain: &D,
    factors: &[D::E],
    vectors: &[Vector<D>],
    count: usize,
) -> Vector<D> {
    let mut sum = Zeroizing::new(vec![domain.zero(); count]);
    for (factor, vector) in factors.iter().zip(vectors) {
        let mut scaled = Zeroizing::new(vector.to_vec());
        domain.mul_scalar_assign(&mut scaled, *factor);
        domain.add_assign(&mut sum, &scaled);
    }
    sum
}

pub use factors::factors;

mod factors;
#[cfg(test)]
mod tests;
