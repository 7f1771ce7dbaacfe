//! Joint integers: numbers that several domains need, from one source.
//!
//! r = sum of r_A over sets A of parties, where r_A is an integer that the members of A draw from a stream that they have in common, and nobody else knows it.
//! Replicated sharing has the pairs A of its three parties, Shamir's sharing all sets of n − t parties (pseudo-random secret sharing:
//! Cramer, Damgård, Ishai, TCC 2005). Each set has an honest member, and whoever is corrupt is not in some set whose members are honest. So r is unknown to any t parties.
//!
//! Every party writes its shares of r in every domain from the integers r_A themselves. Nothing is sent, and there is nothing to prove: honest members of A hold the same r_A, and the honest parties'
//! shares determine r. In every domain they are shares of the same integer, whatever a corrupt party does. This needs seeds on which the honest members of a set agree.
//! A pair with two honest parties does. In larger sets the member that sends the seed may be corrupt, so with verified products the members compare hashes before anybody has a joint integer.
//!
//! # The name of a draw
//!
//! Protocols that verify products store shares with the name of their run (`ops/stored.rs`). Here it is a hash of a toss and of what was drawn: protocol, threshold, index of the
//! draw, number and distribution. Honest parties with shares of two draws, or of draws that differ in anything, have two names, which the comparison at the start of the next program finds.
//!
//! The name is tossed when every honest party has its seeds, and the streams of the draw are derived from seeds and name. So a corrupt member that chooses a seed does not choose the integers: another seed,
//! or another try, gives it others at random. It can only break off.
//!
//! # What members compute
//!
//! The members of A may also compute an integer x_A from what they drew ([`JointIntegers::numbers`]), and write shares of the sum of all x_A ([`JointIntegers::shares_of`]). All that is said above holds for x_A
//! as for r_A, if all members compute alike: flooding noise is made so.

use keyquorum_math::{Domain, DomainKind, Element, Prg, Z2k64, Z2k128, Zq};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::descriptor::Sharing;
use crate::error::{Check, EngineError, Result, invalid};
use crate::ops::NAME_BYTES;
use crate::protocol::{
    Points, SubsetStream, different_seeds, fingerprint, subset_factor, subsets, uses_prss,
};
use crate::session::{EngineOptions, Session};
use crate::table::named;
use crate::value::zip;

/// Most bits of a summand: sums of all summands stay below 2^127.
const MOST_BITS: u32 = 62;

/// The law of each r_A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JointDistribution {
    /// The sum of `terms` numbers, each uniform in [0, 2^bits).
    Uniform {
        /// Bits of a number.
        bits: u32,
        /// Numbers that are added up, from 1.
        terms: u32,
    },
    /// Uniform in {0, 1, 2}.
    Trit,
}

/// Our part of a vector of joint integers: secret, wiped when it is dropped. Use it for one purpose, as a mask once.
pub struct JointIntegers {
    sharing: Sharing,
    points: Points,
    party: usize,
    parties: usize,
    count: usize,
    sets: Vec<Vec<usize>>,
    /// In the order of `sets`; `None` for sets that we are not in.
    drawn: Vec<Option<Zeroizing<Vec<u64>>>>,
    name: Option<Vec<u8>>,
}

/// Sets of parties that have a stream in common; none where the sharing has no such streams.
fn sets_of(sharing: Sharing, n: usize, t: usize) -> Vec<Vec<usize>> {
    match sharing {
        Sharing::Replicated => (0..n).map(|lead| vec![lead, (lead + 1) % n]).collect(),
        Sharing::Shamir if uses_prss(n, t) => subsets(n, n - t),
        _ => Vec::new(),
    }
}

/// Summands of joint integers among n parties of which t may be corrupt; 0 where there are none.
///
/// # Errors
/// [`EngineError::Refused`] for an unknown protocol, or a number of parties or corruptions that it does not have.
pub fn joint_summands(protocol: &str, n: usize, t: Option<usize>) -> Result<usize> {
    let descriptor = named(protocol)?;
    let t = descriptor.threshold(n, t)?;
    Ok(sets_of(descriptor.sharing, n, t).len())
}

impl Session {
    /// Draws `count` joint integers, of which every summand has this law. All parties call this, in the same order as they open engines. No message, but for the
    /// seeds of sets of more than two parties, once a session; with verified products also a comparison of these seeds, one exchange, and a toss.
    ///
    /// # Errors
    /// [`EngineError::Usage`] for a law beyond 62 bits, or a protocol without joint integers among so many parties; [`EngineError::Burned`] after a check failed in this session;
    /// [`EngineError::Check`] if members of a set have different seeds, or a party cheats in the toss.
    pub fn joint_integers(
        &self,
        protocol: &str,
        count: usize,
        law: JointDistribution,
        options: &EngineOptions,
    ) -> Result<JointIntegers> {
        self.drawn_together(protocol, count, law, options, true)
    }

    /// [`Session::joint_integers`], with the comparison of seeds or without.
    pub(crate) fn drawn_together(
        &self,
        protocol: &str,
        count: usize,
        law: JointDistribution,
        options: &EngineOptions,
        compares: bool,
    ) -> Result<JointIntegers> {
        self.guard().refuse()?;
        if let JointDistribution::Uniform { bits, terms } = law
            && (bits == 0
                || terms == 0
                || bits + u32::BITS - (terms - 1).leading_zeros() > MOST_BITS)
        {
            return Err(EngineError::usage(format!(
                "joint integers that are sums of {terms} numbers of {bits} bits: take sums of 1 to {MOST_BITS} bits"
            )));
        }
        let (party, parties) = (self.party(), self.parties());
        let descriptor = named(protocol)?;
        let t = descriptor.threshold(parties, options.threshold)?;
        self.check_threshold(descriptor, options)?;
        let sharing = descriptor.sharing;
        let sets = sets_of(sharing, parties, t);
        if sets.is_empty() {
            return Err(EngineError::usage(format!(
                "{protocol} has no joint integers among {parties} parties: its parties have no such streams in common"
            )));
        }
        let verifies = descriptor.verifies_products();
        if verifies {
            self.admit(descriptor)?;
        }
        let index = self.next_engine()?;
        let mut streams = Vec::with_capacity(sets.len());
        if sharing == Sharing::Replicated {
            for set in &sets {
                streams.push(match set.as_slice() {
                    [lead, other] if *lead == party => {
                        Some(self.pair_prgs(*other, index, options)?.0)
                    }
                    [lead, other] if *other == party => {
                        Some(self.pair_prgs(*lead, index, options)?.1)
                    }
                    _ => None,
                });
            }
        } else {
            let ours = self.judged(self.subset_streams(parties, t, index, options))?;
            if verifies && compares {
                self.judged(self.compare_seeds(&ours))?;
            }
            let mut ours = ours.into_iter();
            for set in &sets {
                streams.push(match set.contains(&party) {
                    true => Some(
                        ours.next()
                            .filter(|s| s.members == *set)
                            .ok_or_else(|| {
                                EngineError::internal("a stream of a subset of parties is missing")
                            })?
                            .prg,
                    ),
                    false => None,
                });
            }
        }
        // Every honest party has its seeds before it tosses.
        let drawn_by = format!("{protocol} {t} {index} {count} {law:?}");
        let name = verifies.then(|| self.draw_name(&drawn_by)).transpose()?;
        let mut drawn = Vec::with_capacity(sets.len());
        for stream in streams {
            let numbers = stream.map(|mut stream| {
                if let (Some(name), None) = (&name, &options.insecure_seed) {
                    stream = of_draw(&mut stream, name);
                }
                draw(&mut stream, count, law)
            });
            drawn.push(numbers.transpose()?);
        }
        Ok(JointIntegers {
            sharing,
            points: self.points()?,
            party,
            parties,
            count,
            sets,
            drawn,
            name,
        })
    }

    /// Every two members of a set of three and more compare hashes of its seed: the member that sent the seeds may have sent different ones. One exchange.
    pub(crate) fn compare_seeds(&self, streams: &[SubsetStream]) -> Result<()> {
        let (me, parties) = (self.party(), self.parties());
        if streams.iter().all(|stream| stream.members.len() < 3) {
            return Ok(());
        }
        let prints: Vec<_> = (0..parties)
            .map(|peer| fingerprint(streams, peer))
            .collect();
        let prints_of_all = prints.concat();
        let all = self.all_gather(&prints_of_all)?;
        for (peer, (theirs, ours)) in zip(&all, &prints)?.enumerate() {
            if theirs.len() != prints_of_all.len() {
                return Err(EngineError::protocol(format!(
                    "party {peer} sent {} bytes as hashes of seeds of subsets instead of {}",
                    theirs.len(),
                    prints_of_all.len()
                )));
            }
            if peer != me && theirs.chunks(ours.len()).nth(me) != Some(ours.as_slice()) {
                return Err(EngineError::check(
                    Check::SubsetSeeds,
                    different_seeds(peer, me),
                ));
            }
        }
        Ok(())
    }

    /// A name that no other draw has, the same at all parties that drew the same.
    fn draw_name(&self, drawn: &str) -> Result<Vec<u8>> {
        let tossed = self.toss(2 * NAME_BYTES)?;
        let hash = Sha256::new_with_prefix(b"keyquorum-v1/joint integers")
            .chain_update(tossed)
            .chain_update(drawn)
            .finalize();
        Ok(hash.into_iter().take(NAME_BYTES).collect())
    }
}

/// The stream of one set for the draw of this name: what it gives was open until the name was tossed.
fn of_draw(stream: &mut Prg, name: &[u8]) -> Prg {
    let seed = Zeroizing::new([stream.next_seed(), stream.next_seed()]);
    let hash: Zeroizing<[u8; 32]> = Zeroizing::new(
        Sha256::new_with_prefix(b"keyquorum-v1/stream of a draw")
            .chain_update(seed.as_flattened())
            .chain_update(name)
            .finalize()
            .into(),
    );
    let mut key = Zeroizing::new([0u8; 16]);
    for (byte, from) in key.iter_mut().zip(hash.iter()) {
        *byte = *from;
    }
    Prg::new(*key, 0)
}

/// Numbers of one stream.
fn draw(stream: &mut Prg, count: usize, law: JointDistribution) -> Result<Zeroizing<Vec<u64>>> {
    let mut numbers = Zeroizing::new(vec![0u64; count]);
    match law {
        JointDistribution::Uniform { bits, terms } => {
            let ring = Z2k64::new(bits).map_err(invalid)?;
            let mut more = Zeroizing::new(vec![0u64; count]);
            for _ in 0..terms {
                ring.random(stream, &mut more);
                for (sum, term) in numbers.iter_mut().zip(more.iter()) {
                    *sum += term;
                }
            }
        }
        JointDistribution::Trit => Zq::new(3).map_err(invalid)?.random(stream, &mut numbers),
    }
    Ok(numbers)
}

impl JointIntegers {
    /// Number of integers.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The public name under which shares of these integers are stored, where protocols verify products: 16 bytes.
    pub fn name(&self) -> Option<&[u8]> {
        self.name.as_deref()
    }

    /// Number of summands of each.
    pub fn summands(&self) -> usize {
        self.sets.len()
    }

    /// The summands that we know, by their numbers, in increasing order.
    pub fn known(&self) -> Vec<usize> {
        let known = self.drawn.iter().enumerate();
        known
            .filter_map(|(set, numbers)| numbers.as_ref().map(|_| set))
            .collect()
    }

    /// Summand number `summand` of all integers, which every member of its set has.
    ///
    /// # Errors
    /// [`EngineError::Usage`] for a summand that we do not know.
    pub fn numbers(&self, summand: usize) -> Result<&[u64]> {
        let numbers = self.drawn.get(summand).and_then(Option::as_ref);
        numbers.map(|numbers| numbers.as_slice()).ok_or_else(|| {
            EngineError::usage(format!(
                "this party does not know summand {summand} of the joint integers"
            ))
        })
    }

    /// Our shares of the integers `start .. start + count` in a domain, in the form of share files: part after part, little-endian words.
    ///
    /// # Errors
    /// [`EngineError::Usage`] for integers that are not there, or a domain that the sharing does not have.
    pub fn shares(
        &self,
        domain: DomainKind,
        start: usize,
        count: usize,
    ) -> Result<Zeroizing<Vec<u8>>> {
        let term = |_, number| Some(number);
        self.written(domain, count, &Terms::Drawn { start, term: &term })
    }

    /// Our shares of sums of integers x_A that the members of each set A computed from its numbers, in the form of [`JointIntegers::shares`]. `computed`: those of every summand that we know, in
    /// the order of [`JointIntegers::known`], each as long as the others.
    ///
    /// # Errors
    /// [`EngineError::Usage`] for other numbers of summands or integers, or a domain that the sharing does not have.
    pub fn shares_of(&self, domain: DomainKind, computed: &[&[i64]]) -> Result<Zeroizing<Vec<u8>>> {
        let known = self.known();
        let count = computed.first().map_or(0, |row| row.len());
        if computed.len() != known.len() || computed.iter().any(|row| row.len() != count) {
            return Err(EngineError::usage(format!(
                "{} vectors of integers: take {} of one length, of every summand that this party knows",
                computed.len(),
                known.len()
            )));
        }
        let rows = known.into_iter().zip(computed.iter().copied()).collect();
        self.written(domain, count, &Terms::Computed(rows))
    }

    /// Our shares of the bits [r_A = value] of all integers, where A is set number `summand`.
    ///
    /// # Errors
    /// As [`JointIntegers::shares`].
    pub fn indicators(
        &self,
        domain: DomainKind,
        summand: usize,
        value: u64,
    ) -> Result<Zeroizing<Vec<u8>>> {
        if summand >= self.sets.len() {
            return Err(EngineError::usage(format!(
                "joint integers have {} summands, there is no summand {summand}",
                self.sets.len()
            )));
        }
        let term = |set, number| (set == summand).then(|| u64::from(number == value));
        let terms = Terms::Drawn {
            start: 0,
            term: &term,
        };
        self.written(domain, self.count, &terms)
    }

    /// Our shares of bit `place` of every summand number `summand`.
    ///
    /// # Errors
    /// As [`JointIntegers::shares`].
    pub fn bits(
        &self,
        domain: DomainKind,
        summand: usize,
        place: u32,
    ) -> Result<Zeroizing<Vec<u8>>> {
        if summand >= self.sets.len() || place >= u64::BITS {
            return Err(EngineError::usage(format!(
                "joint integers have {} summands of 64 bits, there is no bit {place} of summand {summand}",
                self.sets.len()
            )));
        }
        let term = |set, number| (set == summand).then_some(number >> place & 1);
        let terms = Terms::Drawn {
            start: 0,
            term: &term,
        };
        self.written(domain, self.count, &terms)
    }

    fn written(
        &self,
        domain: DomainKind,
        count: usize,
        terms: &Terms<'_>,
    ) -> Result<Zeroizing<Vec<u8>>> {
        if let Terms::Drawn { start, .. } = terms
            && start.checked_add(count).is_none_or(|end| end > self.count)
        {
            return Err(EngineError::usage(format!(
                "joint integers {start} to {start} + {count} of {}",
                self.count
            )));
        }
        match domain {
            DomainKind::Fq(q) => self.encoded(&Zq::new(q).map_err(invalid)?, count, terms),
            DomainKind::Z2k(k) if self.sharing == Sharing::Replicated && k <= 64 => {
                self.encoded(&Z2k64::new(k).map_err(invalid)?, count, terms)
            }
            DomainKind::Z2k(k) if self.sharing == Sharing::Replicated => {
                self.encoded(&Z2k128::new(k).map_err(invalid)?, count, terms)
            }
            other => Err(EngineError::usage(format!(
                "joint integers of {} sharing have no shares over {other}",
                self.sharing.name()
            ))),
        }
    }

    fn encoded<D: Domain>(
        &self,
        domain: &D,
        count: usize,
        terms: &Terms<'_>,
    ) -> Result<Zeroizing<Vec<u8>>> {
        // Full capacity from the start: a vector that grows leaves a copy of its secrets behind.
        let parts = if self.sharing == Sharing::Replicated {
            2
        } else {
            1
        };
        let mut out = Zeroizing::new(Vec::with_capacity(parts * count * D::E::BYTES));
        let mut elements = Zeroizing::new(vec![domain.zero(); count]);
        if self.sharing == Sharing::Replicated {
            // Our own summand, then the one of the party before us: the order of the parts of a share.
            for set in [self.party, (self.party + self.parties - 1) % self.parties] {
                self.fill(domain, set, terms, &mut elements)?;
                for element in elements.iter() {
                    push(&mut out, *element);
                }
            }
            return Ok(out);
        }
        let mut sums = Zeroizing::new(vec![domain.zero(); count]);
        for set in self.known() {
            let members = self.sets.get(set).ok_or_else(not_drawn)?;
            let factor = subset_factor(domain, &self.points, self.party, self.parties, members)?;
            self.fill(domain, set, terms, &mut elements)?;
            for (sum, element) in sums.iter_mut().zip(elements.iter()) {
                *sum = domain.add(*sum, domain.mul(factor, *element));
            }
        }
        for sum in sums.iter() {
            push(&mut out, *sum);
        }
        Ok(out)
    }

    /// The terms of one set, as elements of a domain.
    fn fill<D: Domain>(
        &self,
        domain: &D,
        set: usize,
        terms: &Terms<'_>,
        out: &mut [D::E],
    ) -> Result<()> {
        match terms {
            Terms::Drawn { start, term } => {
                let drawn = self.drawn.get(set).and_then(Option::as_ref);
                let numbers = drawn.and_then(|numbers| numbers.get(*start..*start + out.len()));
                for (element, number) in zip(out.iter_mut(), numbers.ok_or_else(not_drawn)?)? {
                    *element = match term(set, *number) {
                        Some(integer) => domain.from_u128(u128::from(integer)),
                        None => domain.zero(),
                    };
                }
            }
            Terms::Computed(rows) => {
                let row = rows.iter().find(|(of, _)| *of == set);
                let (_, integers) = row.ok_or_else(not_drawn)?;
                for (element, integer) in zip(out.iter_mut(), *integers)? {
                    *element = domain.from_i64(*integer);
                }
            }
        }
        Ok(())
    }
}

/// What shares are of, summand by summand.
enum Terms<'a> {
    /// A function of the set and of each number that its members drew, from number `start` on; nothing: zero.
    Drawn {
        start: usize,
        term: &'a dyn Fn(usize, u64) -> Option<u64>,
    },
    /// Integers of each set that we are in.
    Computed(Vec<(usize, &'a [i64])>),
}

fn not_drawn() -> EngineError {
    EngineError::internal("joint integers that were not drawn")
}

/// Appends an element as share files have it.
fn push<E: Element>(out: &mut Vec<u8>, element: E) {
    let word = element.to_u128().to_le_bytes();
    out.extend_from_slice(word.get(..E::BYTES).unwrap_or(&word));
}
