//! `mal-shamir`: Shamir's sharing with verified products ([`Verified`](crate::verified)), t < n/2 corruptions, at most 9 parties.
//!
//! | message | checked by |
//! | --- | --- |
//! | product, inner product: shares of the dealers' shares of degree 2t | the check of products. With n = 2t + 1 the shares of the t + 1 honest parties always belong to one polynomial, so that a wrong one is an error of the value. With n > 2t + 1 a random combination of all results is opened first |
//! | input: shares | nothing to check with n = 2t + 1; otherwise the same combination |
//! | opening, to all or one: shares | all n shares belong to one polynomial of degree t: t parties send their shares, the others hashes of what the receiver must find for them |
//! | `random_bit` among three parties | as in `mal-rep-field`, on replicated shares that turn into ours locally |
//! | `random_bit` among more: products r², opened | the check of products. They are opened before it: r is random, used for nothing else, and the error of r² is known to the adversary |
//! | random elements | no message: there are streams in common for all subsets of n − t parties |
//! | seeds of these streams, from one member to the others | with three and more members: hashes, compared by each two members; with n > 2t + 1 before the first round of the engine |
//! | shares in files | the name of the run, as in `mal-rep-field`; with n > 2t + 1 also the random combination |
//! | challenges, the byte before an opening | as in `mal-rep-field` |
//!
//! Why r² may be opened before its check, while a corrupted dealer may still choose its error: all honest parties open the same value, or one of them stops, as t + 1 honest shares determine it.
//! Nothing else of r is opened, and the bits are used in no opening before the check, which fails for every error.
//!
//! An element whose square is zero determines no bit, and another one is drawn. A corrupted dealer that sees r² before one honest party has its message can make it zero, as often as it
//! likes: the error −r² is noticed in the check, which does not come as long as elements are drawn. So after [`MOST_DRAWS`] draws the protocol stops.
//!
//! Why combinations must be opened with n > 2t + 1: products of shares that belong to no value have errors that depend on honest shares. The combinations show the
//! adversary's own errors, under a mask, before anything that depends on a product is opened, and before operands are opened under masks.
//! Ten and more parties, whose products go through kings and whose randomness is dealt, are refused. So are shuffles and packed bits.

use keyquorum_math::{Domain, DomainKind, Zq};

use super::bits::Drawn;
use super::descriptor::{DESCRIPTOR, party};
use super::openings::KING_FROM;
use super::polynomials::{add_scaled, lagrange};
use super::prss::fingerprint;
use super::{Shamir, field_only, no_bits, outside};
use crate::adversary::{Corruption, Site};
use crate::descriptor::{Adversary, Descriptor, Domains, MpSpdz, Partners, Primes, PrivateNumbers};
use crate::error::{Check, EngineError, Result, invalid};
use crate::opening::Opening;
use crate::task::{SendFn, Step, and_then, then, then_maybe, within};
use crate::value::{Share, zip};
use crate::verified::{Converted, Product, Verifiable, Verified, witness, witness_bytes};
use crate::{ClearTask, Protocol, ShareTask};

/// Draws of a random bit. A field has more than 2^12 elements, and a batch less than 2^32: among honest parties none of these draws gives a bit
/// with probability below 2^32 · 2^-96 = 2^-64 a batch.
pub const MOST_DRAWS: usize = 8;

/// `mal-shamir`.
pub static MAL_SHAMIR: Descriptor = Descriptor {
    name: "mal-shamir",
    summary: "Shamir, 3 to 9 parties, t < n/2 corruptions, malicious with abort",
    domains: Domains {
        field: Some(Primes::LongerThan {
            bits: 12,
            reason: "its products could not be verified",
        }),
        ..Domains::NONE
    },
    most_parties: Some(KING_FROM - 1),
    adversary: Adversary::Malicious,
    private_numbers: PrivateNumbers::Pseudorandom,
    king_openings: false,
    partners: || Partners {
        ring: None,
        field: &MAL_SHAMIR,
        plain_field: &MAL_SHAMIR,
        quorum: None,
    },
    mp_spdz: Some(MpSpdz {
        binary: "malicious-shamir-party.x",
        field: true,
        encrypt: false,
        shares: "Shamir gfp",
        extra_bits: 0,
    }),
    ..DESCRIPTOR
};

/// Opens the engine of one party.
pub fn open_verified<O: Opening>(opening: &O) -> Result<O::Engine> {
    let DomainKind::Fq(q) = opening.domain() else {
        return Err(EngineError::internal("a field that is none"));
    };
    let domain = Zq::new(q).map_err(invalid)?;
    let (private, unsettled) = (opening.private_prg()?, opening.unsettled());
    let verified = Verified::new(party(opening)?, domain.clone(), private, unsettled);
    opening.computation(verified, (domain.clone(), domain))
}

impl Shamir {
    /// This party, which deviates as this adversary does.
    pub fn corrupted(mut self, adversary: Corruption) -> Self {
        let replicated = self.replicated.take();
        self.replicated = replicated.map(|inner| inner.corrupted(Corruption::clone(&adversary)));
        self.adversary = adversary;
        self
    }

    /// Opens to all parties, or to one. A receiver gets the shares of the t parties after it, and from the others what shows that theirs belong to the same
    /// polynomial. One round.
    fn opened<D: Domain>(
        &self,
        domain: &D,
        a: &Share<D::E>,
        receiver: Option<usize>,
    ) -> Result<SendFn<Self, Option<Vec<D::E>>>> {
        let (me, parties, threshold) = (self.me, self.parties, self.threshold);
        let mine = a.only()?.to_vec();
        let all: Vec<usize> = (0..parties).map(|step| self.after(me, step)).collect();
        let (sources, others) = all.split_at_checked(threshold + 1).ok_or_else(outside)?;
        let (sources, others) = (sources.to_vec(), others.to_vec());
        let points: Vec<D::E> = sources.iter().map(|i| self.points.at(domain, *i)).collect();
        let at_zero = lagrange(domain, &points, domain.zero())?;
        let at_others = others
            .iter()
            .map(|other| lagrange(domain, &points, self.points.at(domain, *other)));
        let at_others = at_others.collect::<Result<Vec<_>>>()?;
        let receives = move |party| receiver.is_none_or(|receiver| receiver == party);
        let domain = domain.clone();
        Ok(Box::new(move |p, out| {
            let (n, bytes) = (mine.len(), witness_bytes(&domain, mine.len()));
            for step in 1..parties {
                let to = p.after(me, parties - step);
                if receives(to) && step <= threshold {
                    let site = Site::OpenedSummand;
                    let sent = p.adversary.changed_words(site, Some(to), &domain, &mine);
                    out.send(&domain, to, &sent);
                } else if receives(to) {
                    let mut message = witness(&domain, &mine);
                    p.adversary
                        .change_message(Site::Witness, Some(to), &mut message, 0);
                    out.buffer(to)?.extend_from_slice(&message);
                }
            }
            if !receives(me) {
                return Ok(Box::new(|_, _| Ok(Step::Done(None))));
            }
            for from in sources.iter().filter(|from| **from != me) {
                out.expect(&domain, *from, n);
            }
            for from in &others {
                out.expect_bytes(*from, bytes);
            }
            Ok(Box::new(move |p, inbox| {
                let mut shares = Vec::with_capacity(sources.len());
                for from in &sources {
                    shares.push(match *from == me {
                        true => mine.clone(),
                        false => inbox.take(&domain, *from, n)?,
                    });
                }
                let at = |factors: Vec<D::E>| -> Result<Vec<D::E>> {
                    let mut acc = vec![domain.zero(); n];
                    for (share, factor) in zip(&shares, factors)? {
                        add_scaled(&domain, &mut acc, share, factor);
                    }
                    Ok(acc)
                };
                for (other, factors) in zip(others, at_others)? {
                    if inbox.take_bytes(other, bytes)? != witness(&domain, &at(factors)?) {
                        let failed = EngineError::check(
                            Check::Openings,
                            format!(
                                "the shares of an opened value that party {other} and others sent belong to no polynomial of degree {threshold}: one of the parties cheats"
                            ),
                        );
                        p.adversary.judge::<()>(Err(failed))?;
                    }
                }
                Ok(Step::Done(Some(at(at_zero)?)))
            }))
        }))
    }

    /// The same with so many draws.
    #[cfg(any(test, feature = "testing"))]
    pub fn drawing(mut self, most: usize) -> Self {
        self.most_draws = most;
        self
    }

    /// Random bits from opened squares, by so many draws at most.
    fn bits_of_squares<D: Domain>(
        &mut self,
        domain: &D,
        n: usize,
        draws: usize,
    ) -> Result<SendFn<Self, Converted<D::E>>> {
        let Some(left) = draws.checked_sub(1) else {
            return Err(EngineError::check(
                Check::Products,
                format!(
                    "squares of random elements were zero in {} draws, one after the other: one of the parties cheats",
                    self.most_draws
                ),
            ));
        };
        let r = self.pseudorandom(domain, n)?;
        let square = self.dot(domain, &r, &r, 1)?;
        let domain = domain.clone();
        Ok(and_then(square, move |p: &mut Self, square| {
            let opened = p.open_checked(&domain, &square)?;
            Ok(then_maybe(opened, move |p: &mut Self, values| {
                let mut drawn = Drawn::new(&domain, &r, &values)?;
                let (x, y, z) = (r.duplicate(), r, square);
                let mut products = vec![Product { x, y, z, length: 1 }];
                if drawn.zeros.is_empty() {
                    return Ok(Step::Done((drawn.bits, products)));
                }
                let again = p.bits_of_squares(&domain, drawn.zeros.len(), left)?;
                Ok(Step::Next(then(again, move |_, (fresh, more)| {
                    drawn.replace(&fresh)?;
                    products.extend(more);
                    Ok((drawn.bits, products))
                })))
            }))
        }))
    }

    /// The same product of replicated shares, as one of ours.
    fn converted<D: Domain>(&self, domain: &D, of: Product<D::E>) -> Result<Product<D::E>> {
        let Product { x, y, z, length } = of;
        Ok(Product {
            x: self.convert_replicated(domain, x)?,
            y: self.convert_replicated(domain, y)?,
            z: self.convert_replicated(domain, z)?,
            length,
        })
    }
}

impl Verifiable for Shamir {
    fn adversary(&self) -> &Corruption {
        &self.adversary
    }

    /// Our summand of a product is the product of our shares.
    fn to_operand<D: Domain>(_: &D, _: &mut Share<D::E>) -> Result<()> {
        Ok(())
    }

    fn from_operand<D: Domain>(_: &D, _: &mut Share<D::E>) -> Result<()> {
        Ok(())
    }

    fn reshare<D: Domain>(
        &mut self,
        domain: &D,
        summands: Vec<D::E>,
    ) -> Result<ShareTask<Self, D::E>> {
        self.reshared(domain, summands)
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

    fn convert<D: Domain>(
        &mut self,
        _: &D,
        _: &Share<u64>,
        _: usize,
    ) -> Result<SendFn<Self, Converted<D::E>>> {
        no_bits()
    }

    fn random_bits<D: Domain>(
        &mut self,
        domain: &D,
        n: usize,
    ) -> Result<SendFn<Self, Converted<D::E>>> {
        field_only(domain)?;
        let domain = domain.clone();
        if let Some(replicated) = &mut self.replicated {
            let bits = within(replicated.random_bits(&domain, n)?, Self::replicated);
            return Ok(then(bits, move |p: &mut Self, (bits, products)| {
                let products = products.into_iter().map(|of| p.converted(&domain, of));
                let products = products.collect::<Result<Vec<_>>>()?;
                Ok((p.convert_replicated(&domain, bits)?, products))
            }));
        }
        self.bits_of_squares(&domain, n, self.most_draws)
    }

    fn shares_may_disagree(&self) -> bool {
        self.parties > 2 * self.threshold + 1
    }

    /// Of the seeds of all subsets of three and more members that have both parties.
    fn fingerprint(&self, peer: usize) -> Option<[u8; 32]> {
        if peer == self.me || self.parties - self.threshold < 3 {
            return None;
        }
        Some(fingerprint(&self.subsets, peer))
    }
}
