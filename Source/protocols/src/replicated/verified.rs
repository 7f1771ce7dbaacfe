//! `mal-rep-field` and `mal-rep-ring`: replicated sharing with verified products ([`Verified`](crate::verified)).
//!
//! Openings send each missing summand twice, once by each of the two parties that hold it: by one whole, by the other as its hash if that is shorter.
//! Both parties send in the same round. As one of them is honest, the receiver goes on with the true summand or stops.

use keyquorum_math::{Domain, DomainKind, Element, Z2k64, Z2k128, Zq, Zq128};

use super::{REPLICATED, Replicated, party};
use crate::adversary::{Corruption, Site};
use crate::descriptor::{
    Adversary, Descriptor, Domains, MOST_RING_BITS, MpSpdz, Partners, Primes, PrivateNumbers,
};
use crate::error::{Check, EngineError, Result, invalid};
use crate::opening::Opening;
use crate::task::{SendFn, Step, and_then, join, then};
use crate::value::{Share, zip};
use crate::verified::{
    Converted, Product, Verifiable, VerifiableBits, Verified, witness, witness_bytes,
};
use crate::{BITS, ClearTask, Protocol, ShareTask, lane_bits, lanes};

/// The fields that both share.
const VERIFIED: Descriptor = Descriptor {
    adversary: Adversary::Malicious,
    private_numbers: PrivateNumbers::Pseudorandom,
    partners: || Partners {
        ring: Some(&MAL_REP_RING),
        field: &MAL_REP_FIELD,
        plain_field: &MAL_REP_FIELD,
        quorum: None,
    },
    ..REPLICATED
};

/// `mal-rep-ring`.
pub static MAL_REP_RING: Descriptor = Descriptor {
    name: "mal-rep-ring",
    summary: "replicated, 3 parties, 1 corruption, malicious with abort",
    domains: Domains {
        ring: Some(MOST_RING_BITS),
        ..Domains::NONE
    },
    splits: true,
    mp_spdz: Some(MpSpdz {
        binary: "malicious-rep-ring-party.x",
        field: false,
        encrypt: false,
        shares: "malicious replicated Z2^{k}",
        extra_bits: 0,
    }),
    ..VERIFIED
};

/// `mal-rep-field`.
pub static MAL_REP_FIELD: Descriptor = Descriptor {
    name: "mal-rep-field",
    summary: "replicated, 3 parties, 1 corruption, malicious with abort",
    domains: Domains {
        field: Some(Primes::LongerThan {
            bits: 12,
            reason: "its products could not be verified",
        }),
        wide_fields: true,
        ..Domains::NONE
    },
    mp_spdz: Some(MpSpdz {
        binary: "malicious-rep-field-party.x",
        field: true,
        encrypt: false,
        shares: "malicious replicated gfp",
        extra_bits: 0,
    }),
    ..VERIFIED
};

/// Opens the engine of one party.
pub fn open_verified<O: Opening>(opening: &O) -> Result<O::Engine> {
    match opening.domain() {
        DomainKind::Fq(q) => engine(opening, Zq::new(q).map_err(invalid)?),
        DomainKind::WideFq(q) => engine(opening, Zq128::new(q).map_err(invalid)?),
        DomainKind::Z2k(k) if k <= 64 => engine(opening, Z2k64::new(k).map_err(invalid)?),
        DomainKind::Z2k(k) => engine(opening, Z2k128::new(k).map_err(invalid)?),
        DomainKind::Bits => Err(EngineError::internal("verified bits without elements")),
    }
}

fn engine<O: Opening, D: Domain>(opening: &O, domain: D) -> Result<O::Engine> {
    let (private, unsettled) = (opening.private_prg()?, opening.unsettled());
    let verified = Verified::new(party(opening)?, domain.clone(), private, unsettled);
    opening.computation(verified, (domain.clone(), domain))
}

impl Replicated {
    /// Party `me`, which deviates as this adversary does.
    pub fn corrupted(mut self, adversary: Corruption) -> Self {
        self.adversary = adversary;
        self
    }

    /// Opens to all parties, or to one. Party i lacks the summand s_{i+1}: party i + 2 sends it, party i + 1 witnesses it.
    fn opened<D: Domain>(
        &self,
        domain: &D,
        a: &Share<D::E>,
        receiver: Option<usize>,
    ) -> Result<SendFn<Self, Option<Vec<D::E>>>> {
        let (first, second) = a.pair()?;
        let (first, second, domain) = (first.to_vec(), second.to_vec(), domain.clone());
        let receives = move |party| receiver.is_none_or(|receiver| receiver == party);
        Ok(Box::new(move |p, out| {
            let (n, next, previous) = (first.len(), p.next_party(), p.previous_party());
            let bytes = witness_bytes(&domain, n);
            if receives(next) {
                let site = Site::OpenedSummand;
                let sent = p
                    .adversary
                    .changed_words(site, Some(next), &domain, &second);
                out.send(&domain, next, &sent);
            }
            if receives(previous) {
                let mut message = witness(&domain, &first);
                let (site, to) = (Site::Witness, Some(previous));
                p.adversary.change_message(site, to, &mut message, 0);
                out.buffer(previous)?.extend_from_slice(&message);
            }
            if receives(p.me) {
                out.expect(&domain, previous, n);
                out.expect_bytes(next, bytes);
            }
            Ok(Box::new(move |p, inbox| {
                if !receives(p.me) {
                    return Ok(Step::Done(None));
                }
                let third = inbox.take(&domain, previous, n)?;
                if inbox.take_bytes(next, bytes)? != witness(&domain, &third) {
                    let failed = EngineError::check(
                        Check::Openings,
                        format!(
                            "party {previous} and party {next} hold the same summand of an opened value, and sent different ones: one of them cheats"
                        ),
                    );
                    p.adversary.judge::<()>(Err(failed))?;
                }
                let mut sum = first;
                domain.add_assign(&mut sum, &second);
                domain.add_assign(&mut sum, &third);
                Ok(Step::Done(Some(sum)))
            }))
        }))
    }
}

impl VerifiableBits for Replicated {
    fn open_bits_checked(&mut self, a: &Share<u64>) -> Result<ClearTask<Self, u64>> {
        self.open_checked(&BITS, a)
    }
}

impl Verifiable for Replicated {
    fn adversary(&self) -> &Corruption {
        &self.adversary
    }

    /// (b₀, b₁) becomes (b₀ + b₁, b₀): our summand is a₀·(b₀ + b₁) + a₁·b₀.
    fn to_operand<D: Domain>(domain: &D, share: &mut Share<D::E>) -> Result<()> {
        share.pair()?;
        if let [first, second] = share.parts.as_mut_slice() {
            domain.add_assign(second, first);
            std::mem::swap(first, second);
        }
        Ok(())
    }

    fn from_operand<D: Domain>(domain: &D, operand: &mut Share<D::E>) -> Result<()> {
        operand.pair()?;
        if let [first, second] = operand.parts.as_mut_slice() {
            std::mem::swap(first, second);
            domain.sub_assign(second, first);
        }
        Ok(())
    }

    fn reshare<D: Domain>(
        &mut self,
        domain: &D,
        summands: Vec<D::E>,
    ) -> Result<ShareTask<Self, D::E>> {
        Ok(self.reshared(domain, summands))
    }

    fn open_checked<D: Domain>(
        &mut self,
        domain: &D,
        a: &Share<D::E>,
    ) -> Result<ClearTask<Self, D::E>> {
        let opened = self.opened(domain, a, None)?;
        Ok(then(opened, |_, values| {
            values.ok_or_else(|| EngineError::internal("a value that was opened to others only"))
        }))
    }

    fn open_checked_to<D: Domain>(
        &mut self,
        domain: &D,
        a: &Share<D::E>,
        receiver: usize,
    ) -> Result<SendFn<Self, Option<Vec<D::E>>>> {
        self.opened(domain, a, Some(receiver))
    }

    fn random_elements<D: Domain>(
        &mut self,
        domain: &D,
        n: usize,
    ) -> Result<Step<Self, Share<D::E>>> {
        self.random(domain, n)
    }

    /// b = b₀ ⊕ b₁ ⊕ b₂. Every b_j, which two parties know, is shared as an element without communication. Party 1 inputs w = b₀·b₁. For u = b₀ + b₁ − 2w, of
    /// which party 0 knows one summand and party 2 the other, these two input t = u·b₂, and b = u + b₂ − 2t. Two rounds, one element a party and bit.
    /// What is to be verified is w + t = b₀·b₁ + u·b₂: if w is wrong, party 1 is corrupt, then the honest parties 0 and 2 make t right, for this w; if t is wrong, w is right.
    /// So the error of the sum is that of w or of t, which the corrupt party knows, and they cannot cancel.
    fn convert<D: Domain>(
        &mut self,
        domain: &D,
        bits: &Share<u64>,
        n: usize,
    ) -> Result<SendFn<Self, Converted<D::E>>> {
        let (first, second) = bits.pair()?;
        let (first, second) = (lane_bits(domain, first, n)?, lane_bits(domain, second, n)?);
        let me = self.me;
        let first_product = (me == 1).then(|| {
            let mut product = first.clone();
            domain.mul_assign(&mut product, &second);
            product
        });
        let product = self.input(domain, 1, n, first_product)?;
        let known = Share {
            parts: vec![first, second],
        };
        let domain = domain.clone();
        Ok(and_then(product, move |p, product| {
            p.convert_with(domain, known, product)
        }))
    }

    fn random_bits<D: Domain>(
        &mut self,
        domain: &D,
        n: usize,
    ) -> Result<SendFn<Self, Converted<D::E>>> {
        let bits = self.drawn(&BITS, lanes(n));
        self.convert(domain, &bits, n)
    }
}

impl Replicated {
    /// The second round of [`Verifiable::convert`]: `known` are the two bits that we know of each, as elements, `first` is w.
    fn convert_with<D: Domain>(
        &mut self,
        domain: D,
        known: Share<D::E>,
        first: Share<D::E>,
    ) -> Result<SendFn<Self, Converted<D::E>>> {
        let (me, n) = (self.me, known.len());
        let held = [me, self.previous_party()];
        // The share of b_j: its summand s_j is b_j, the others are zero.
        let bit = |wanted: usize| -> Result<Share<D::E>> {
            let part = |(held, part): (usize, &Vec<D::E>)| match held == wanted {
                true => part.clone(),
                false => vec![domain.zero(); n],
            };
            known.check(held.len(), n)?;
            let parts = held.into_iter().zip(&known.parts).map(part).collect();
            Ok(Share { parts })
        };
        let (zeroth, one, two) = (bit(0)?, bit(1)?, bit(2)?);
        let minus_two = domain.neg(domain.add(domain.one(), domain.one()));
        let mut exclusive = scaled(&domain, &first, minus_two);
        exclusive.combine(&zeroth, |u, b| domain.add_assign(u, b))?;
        exclusive.combine(&one, |u, b| domain.add_assign(u, b))?;
        // u has the summands s₀, which is our first part if we are party 0, and s₁, the second part of party 2.
        let (ours, theirs) = exclusive.pair()?;
        let (known_first, known_second) = known.pair()?;
        let times = |summand: &[D::E], bits: &[D::E]| {
            let mut product = summand.to_vec();
            domain.mul_assign(&mut product, bits);
            product
        };
        let of_zero = (me == 0).then(|| times(ours, known_second));
        let of_two = (me == 2).then(|| times(theirs, known_first));
        let a = self.input(&domain, 0, n, of_zero)?;
        let b = self.input(&domain, 2, n, of_two)?;
        Ok(join(a, b, move |_, mut second: Share<D::E>, b| {
            second.combine(&b, |t, b| domain.add_assign(t, b))?;
            let mut result = scaled(&domain, &second, minus_two);
            result.combine(&exclusive, |sum, u| domain.add_assign(sum, u))?;
            result.combine(&two, |sum, b| domain.add_assign(sum, b))?;
            let mut sum = first;
            sum.combine(&second, |sum, t| domain.add_assign(sum, t))?;
            let product = Product {
                x: alternating(&zeroth, &exclusive)?,
                y: alternating(&one, &two)?,
                z: sum,
                length: 2,
            };
            Ok((result, vec![product]))
        }))
    }
}

/// The elements of two shares by turns.
fn alternating<E: Element>(one: &Share<E>, other: &Share<E>) -> Result<Share<E>> {
    let parts = zip(&one.parts, &other.parts)?.map(|(one, other)| {
        let mut all = Vec::with_capacity(2 * one.len());
        all.extend(zip(one, other)?.flat_map(|(a, b)| [*a, *b]));
        Ok(all)
    });
    let parts = parts.collect::<Result<_>>()?;
    Ok(Share { parts })
}

fn scaled<D: Domain>(domain: &D, share: &Share<D::E>, factor: D::E) -> Share<D::E> {
    share.map(|part| {
        let mut part = part.to_vec();
        domain.mul_scalar_assign(&mut part, factor);
        part
    })
}
