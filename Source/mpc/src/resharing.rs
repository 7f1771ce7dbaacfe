//! Resharing: dealers of an old committee pass vectors on to a new one, which may have another sharing. The secret is nowhere.
//!
//! The *summands* a_d of the dealers have the secret as their sum. Each dealer deals its own as pieces of the new sharing, and a new share is the sum of the pieces of all dealers.
//!
//! | old sharing | dealers | a_d |
//! |---|---|---|
//! | replicated | i and i + 1 | s_i + s_(i−1); s_(i+1) |
//! | Shamir | S of t + 1 | λ_i f(i), λ_i = Π_{j ∈ S∖i} j / (j − i) |
//! | additive | all | x_i |
//!
//! | new sharing | pieces of a | from seeds |
//! |---|---|---|
//! | replicated | three summands, each for two members | the first two |
//! | Shamir | the points of g of degree t', g(0) = a | the first t' |
//! | additive | n' summands | the first n' − 1 |
//!
//! A seed is sent once for all vectors. The other pieces are sent for every vector: one message to each of their holders. (Desmedt, Jajodia 1997; for Shamir's sharing also Herzberg, Jarecki,
//! Krawczyk, Yung, CRYPTO 1995.)
//!
//! *Privacy.* Up to t old and t' new members together, which may be any: of a dealer that is not corrupt, t' new members see t' pieces, which are uniform whatever a is. So they learn nothing of
//! the a_d of honest dealers, and t old shares do not tell the secret. The tests compute the rank of all such views.
//!
//! *Correctness* is for parties that follow the protocol: a dealer that deals another summand makes another key. Where members may be malicious, `transfer` shows it.

use keyquorum_math::{Domain, DomainKind, Element, Prg, os_random};
use zeroize::Zeroizing;

use crate::descriptor::Sharing;
use crate::error::{EngineError, Result};
use crate::handover::{Bytes, InDomain, Seed, decoded, encoded, in_domain, parts, stream_of};
use crate::protocol::{lagrange, point};
use crate::table::named;

/// Elements of a vector.
pub(crate) type Vector<D> = Zeroizing<Vec<<D as Domain>::E>>;

/// How a committee shares.
#[derive(Clone, Copy, Debug)]
pub struct Members {
    pub(crate) sharing: Sharing,
    pub(crate) parties: usize,
    threshold: usize,
}

impl Members {
    /// The sharing of a protocol among so many parties; with MACs that of the values alone, which are additive: new members make MACs of their own.
    ///
    /// # Errors
    /// [`EngineError::Usage`] for protocols without shares, and for parties or thresholds that the protocol does not have.
    pub fn of(protocol: &str, parties: usize, threshold: usize) -> Result<Self> {
        let descriptor = named(protocol)?;
        let threshold = descriptor.threshold(parties, Some(threshold))?;
        if descriptor.sharing == Sharing::None {
            return Err(EngineError::usage(format!(
                "{protocol}: there are no shares to pass on"
            )));
        }
        let sharing = descriptor.sharing;
        Ok(Self {
            sharing,
            parties,
            threshold,
        })
    }

    /// Dealers that pass a secret on.
    pub fn dealers(&self) -> usize {
        match self.sharing {
            Sharing::Additive => self.parties,
            _ => self.threshold + 1,
        }
    }

    /// Pieces of a summand that come from seeds: the first ones.
    fn seeded(&self) -> usize {
        match self.sharing {
            Sharing::Shamir => self.threshold,
            _ => self.parties - 1,
        }
    }

    /// The pieces that a member holds, in the order of the parts of its share.
    pub(crate) fn held(&self, party: usize) -> Vec<usize> {
        match self.sharing {
            Sharing::Replicated => vec![party, (party + self.parties - 1) % self.parties],
            _ => vec![party],
        }
    }

    fn check_party(&self, party: usize) -> Result<()> {
        if party < self.parties {
            return Ok(());
        }
        let n = self.parties;
        Err(EngineError::usage(format!("party {party} is none of {n}")))
    }

    pub(crate) fn check_dealers(&self, dealers: &[usize]) -> Result<()> {
        dealers.iter().try_for_each(|i| self.check_party(*i))?;
        if dealers.is_sorted_by(|a, b| a < b) && dealers.len() == self.dealers() {
            return Ok(());
        }
        Err(EngineError::usage(format!(
            "dealers {dealers:?}: name {} of {} parties, in increasing order",
            self.dealers(),
            self.parties
        )))
    }

    /// The summand of a dealer, from its shares, part after part.
    pub(crate) fn summand<D: Domain>(
        &self,
        domain: &D,
        dealers: &[usize],
        party: usize,
        shares: &[D::E],
    ) -> Result<Vector<D>> {
        match self.sharing {
            Sharing::Replicated => {
                let (own, before) = shares.split_at(shares.len() / 2);
                let mut sum = Zeroizing::new(own.to_vec());
                if dealers.contains(&((party + 1) % self.parties)) {
                    domain.add_assign(&mut sum, before);
                }
                Ok(sum)
            }
            Sharing::Shamir => {
                let at: Vec<_> = dealers.iter().map(|i| point(domain, *i)).collect();
                let factors = lagrange(domain, &at, domain.zero())?;
                let factor = dealers.iter().zip(factors).find(|(i, _)| **i == party);
                let mut scaled = Zeroizing::new(shares.to_vec());
                domain.mul_scalar_assign(&mut scaled, factor.map_or(domain.zero(), |(_, f)| f));
                Ok(scaled)
            }
            _ => Ok(Zeroizing::new(shares.to_vec())),
        }
    }

    /// The pieces of a summand that do not come from seeds. `drawn`: those that do.
    fn completed<D: Domain>(
        &self,
        domain: &D,
        summand: &[D::E],
        drawn: &[Vector<D>],
    ) -> Result<Vec<Vector<D>>> {
        if self.sharing != Sharing::Shamir {
            let mut last = Zeroizing::new(summand.to_vec());
            drawn
                .iter()
                .for_each(|piece| domain.sub_assign(&mut last, piece));
            return Ok(vec![last]);
        }
        if (0..self.parties).any(|j| point(domain, j) == domain.zero()) {
            return Err(EngineError::usage(
                "the prime is too small for this many parties: take a prime above n", // a share would be the secret
            ));
        }
        let mut at = vec![domain.zero()];
        at.extend((0..drawn.len()).map(|j| point(domain, j)));
        (drawn.len()..self.parties)
            .map(|j| {
                let factors = lagrange(domain, &at, point(domain, j))?;
                let vectors = [summand]
                    .into_iter()
                    .chain(drawn.iter().map(|v| v.as_slice()));
                let mut sum = Zeroizing::new(vec![domain.zero(); summand.len()]);
                for (factor, vector) in factors.iter().zip(vectors) {
                    let mut scaled = Zeroizing::new(vector.to_vec());
                    domain.mul_scalar_assign(&mut scaled, *factor);
                    domain.add_assign(&mut sum, &scaled);
                }
                Ok(sum)
            })
            .collect()
    }
}

/// The piece of a summand that comes from a seed.
fn drawn<D: Domain>(domain: &D, seed: &Seed, name: &[u8], label: &[u8], count: usize) -> Vector<D> {
    let mut stream: Prg = stream_of(b"keyquorum-v1/resharing", seed, name, label);
    let mut piece = Zeroizing::new(vec![domain.zero(); count]);
    domain.random(&mut stream, &mut piece);
    piece
}

/// An old member that passes its summands on. Its seeds are secret, and wiped when it is dropped.
pub struct Dealer {
    old: Members,
    new: Members,
    dealers: Vec<usize>,
    party: usize,
    /// Of the pieces that come from seeds.
    seeds: Vec<Seed>,
    name: Vec<u8>,
}

impl Dealer {
    /// Party `party` of the old committee among its `dealers`, which are in increasing order. `name`: of this resharing, never the same twice. Draws seeds from the operating system.
    ///
    /// # Errors
    /// [`EngineError::Usage`] for dealers that do not have the secret together, and for one who is none of them.
    pub fn new(
        old: Members,
        new: Members,
        dealers: &[usize],
        party: usize,
        name: &[u8],
    ) -> Result<Self> {
        old.check_dealers(dealers)?;
        if !dealers.contains(&party) {
            return Err(EngineError::usage(format!(
                "party {party} is not a dealer: {dealers:?} are"
            )));
        }
        let mut seeds = vec![Seed::default(); new.seeded()];
        for seed in &mut seeds {
            os_random(seed.as_mut_slice()).map_err(|e| {
                EngineError::usage(format!("the operating system gives no randomness: {e}"))
            })?;
        }
        Ok(Self {
            old,
            new,
            dealers: dealers.to_vec(),
            party,
            seeds,
            name: name.to_vec(),
        })
    }

    /// The seeds for a new member, 32 bytes each, in the order of the parts of its share. Sent to it alone, once.
    ///
    /// # Errors
    /// [`EngineError::Usage`] for a party that is not a new member.
    pub fn seeds(&self, receiver: usize) -> Result<Bytes> {
        self.new.check_party(receiver)?;
        let held = self.new.held(receiver);
        let seeds = held.iter().filter_map(|piece| self.seeds.get(*piece));
        let mut out = Zeroizing::new(Vec::with_capacity(2 * size_of::<Seed>()));
        seeds.for_each(|seed| out.extend_from_slice(seed.as_slice()));
        Ok(out)
    }

    /// What each new member gets for a vector of which we have these shares, in the form of share files; empty for one that has seeds of all its pieces.
    /// `label`: of the vector, never the same for two vectors. Local.
    ///
    /// # Errors
    /// [`EngineError::Usage`] for shares that are not whole vectors of the old sharing, and for domains that the new one does not have.
    pub fn dealt(&self, domain: DomainKind, label: &[u8], shares: &[u8]) -> Result<Vec<Bytes>> {
        let dealing = Dealing {
            dealer: self,
            label,
            shares,
        };
        let all = in_domain(self.both(), domain, &dealing)?;
        let sent = self.new.parties - self.new.seeded();
        let each = all.len() / sent;
        let message = |receiver: usize| {
            let held = self.new.held(receiver);
            let places = held.iter().filter_map(|i| i.checked_sub(self.new.seeded()));
            let mut out = Zeroizing::new(Vec::with_capacity(each));
            for at in places {
                out.extend_from_slice(all.get(at * each..(at + 1) * each).unwrap_or_default());
            }
            out
        };
        Ok((0..self.new.parties).map(message).collect())
    }

    /// The sharing that decides in which domains there are shares.
    fn both(&self) -> Sharing {
        if self.old.sharing == Sharing::Shamir {
            Sharing::Shamir
        } else {
            self.new.sharing
        }
    }
}

/// What a dealer computes for a vector: all pieces that are sent.
struct Dealing<'a> {
    dealer: &'a Dealer,
    label: &'a [u8],
    shares: &'a [u8],
}

impl InDomain for Dealing<'_> {
    fn compute<D: Domain>(&self, domain: &D) -> Result<Bytes> {
        let Dealer {
            old,
            new,
            dealers,
            party,
            seeds,
            name,
        } = self.dealer;
        let shares = decoded(domain, old.sharing, parts(old.sharing), self.shares)?;
        let summand = old.summand(domain, dealers, *party, &shares)?;
        let drawn: Vec<_> = seeds
            .iter()
            .map(|seed| drawn(domain, seed, name, self.label, summand.len()))
            .collect();
        let completed = new.completed(domain, &summand, &drawn)?;
        let mut all = Zeroizing::new(Vec::with_capacity(
            completed.len() * summand.len() * D::E::BYTES,
        ));
        completed
            .iter()
            .for_each(|piece| all.extend_from_slice(&encoded::<D>(piece)));
        Ok(all)
    }
}

/// A new member with the seeds of all dealers, which are wiped when it is dropped.
pub struct Dealt {
    new: Members,
    party: usize,
    /// Of each dealer, those of our pieces.
    seeds: Vec<Vec<Seed>>,
    name: Vec<u8>,
}

impl Dealt {
    /// Party `party` of the new committee. `seeds`: what each dealer sent of its seeds ([`Dealer::seeds`]); `name`: as the dealers have it.
    ///
    /// # Errors
    /// [`EngineError::Usage`] for a party that is not a new member; [`EngineError::Protocol`] for another number of seeds.
    pub fn new(new: Members, party: usize, seeds: &[Vec<u8>], name: &[u8]) -> Result<Self> {
        new.check_party(party)?;
        let ours = new
            .held(party)
            .iter()
            .filter(|i| **i < new.seeded())
            .count();
        let parse = |sent: &Vec<u8>| {
            let (chunks, rest) = sent.as_chunks::<32>();
            if chunks.len() != ours || !rest.is_empty() {
                return Err(EngineError::protocol(format!(
                    "a dealer sent {} bytes that are not {ours} seeds: run the same version everywhere",
                    sent.len()
                )));
            }
            Ok(chunks.iter().map(|seed| Seed::new(*seed)).collect())
        };
        Ok(Self {
            new,
            party,
            seeds: seeds.iter().map(parse).collect::<Result<_>>()?,
            name: name.to_vec(),
        })
    }

    /// Our shares of a vector of `count` elements, in the form of share files, from what each dealer sent ([`Dealer::dealt`]). `label`: as the dealers have it. Local.
    ///
    /// # Errors
    /// [`EngineError::Protocol`] for another number of bytes, or elements that are not reduced; [`EngineError::Usage`] for another number of messages than there are dealers.
    pub fn taken(
        &self,
        domain: DomainKind,
        label: &[u8],
        count: usize,
        sent: &[Vec<u8>],
    ) -> Result<Bytes> {
        let taking = Taking {
            dealt: self,
            label,
            count,
            sent,
        };
        in_domain(self.new.sharing, domain, &taking)
    }
}

/// What a new member makes of it.
struct Taking<'a> {
    dealt: &'a Dealt,
    label: &'a [u8],
    count: usize,
    sent: &'a [Vec<u8>],
}

impl InDomain for Taking<'_> {
    fn compute<D: Domain>(&self, domain: &D) -> Result<Bytes> {
        let Dealt {
            new,
            party,
            seeds,
            name,
        } = self.dealt;
        if self.sent.len() != seeds.len() {
            return Err(EngineError::usage(format!(
                "{} messages of {} dealers",
                self.sent.len(),
                seeds.len()
            )));
        }
        let held = new.held(*party);
        let mut sums = Zeroizing::new(vec![domain.zero(); held.len() * self.count]);
        for (dealer, (seeds, sent)) in seeds.iter().zip(self.sent).enumerate() {
            let wrong = || {
                EngineError::protocol(format!(
                    "dealer {dealer} sent {} bytes that are not the elements of its pieces: see what became of it",
                    sent.len()
                ))
            };
            let elements = decoded(domain, Sharing::Additive, 1, sent).map_err(|_| wrong())?;
            let expected = (held.len() - seeds.len()) * self.count;
            if elements.len() != expected || *encoded::<D>(&elements) != **sent {
                return Err(wrong()); // of another length, or not reduced
            }
            let (mut seeds, mut sent) = (seeds.iter(), elements.chunks_exact(self.count.max(1)));
            for (piece, sum) in held.iter().zip(sums.chunks_exact_mut(self.count.max(1))) {
                if *piece < new.seeded() {
                    let seed = seeds.next().ok_or_else(wrong)?;
                    domain.add_assign(sum, &drawn(domain, seed, name, self.label, self.count));
                } else {
                    domain.add_assign(sum, sent.next().ok_or_else(wrong)?);
                }
            }
        }
        Ok(encoded::<D>(&sums))
    }
}

#[cfg(test)]
pub(crate) mod tests;
