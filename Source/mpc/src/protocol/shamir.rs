//! Shamir secret sharing over a prime field, t < n/2 corruptions, semi-honest (`shamir`).
//!
//! Party i holds f(i + 1) of a polynomial of degree t. Up to [`PRSS_SUBSETS`] subsets, randomness is pseudo-random secret
//! sharing (Cramer, Damgård, Ishai, TCC 2005, §3) without communication; beyond, parties deal and extract.
//! Multiplication: below [`KING_FROM`] parties every party reshares its product in one round, t of the new shares coming
//! from streams that pairs of parties have in common (n − 1 − t elements a dealer); beyond, a masked product goes to a
//! king who opens it (Damgård, Nielsen, CRYPTO 2007), the vector split among all kings: two rounds.

use keyquorum_math::{Domain, DomainKind, Element, Prg, Zq};

use super::{ClearTask, Protocol, Replicated, ShareTask, group_sums};
use crate::error::{EngineError, Result};
use crate::graph::{SendFn, Step, and_then, join, ready, then, then_maybe, within};
use crate::value::Share;

/// Pseudo-random secret sharing is used while there are at most this many subsets of parties.
pub const PRSS_SUBSETS: usize = 130;
/// From this many parties on, multiplication goes through kings.
pub const KING_FROM: usize = 10;

/// Label of the streams of the replicated shares inside.
const REPLICATED_STREAM: u64 = 1;

/// A stream in common with the parties of one subset of size n − t.
pub struct SubsetStream {
    /// The members, in increasing order.
    pub members: Vec<usize>,
    /// The stream.
    pub prg: Prg,
}

/// One party of the Shamir protocol.
pub struct Shamir {
    me: usize,
    parties: usize,
    threshold: usize,
    /// `pair[j]`: the stream of which we deal to party j, and the one of which j deals to us.
    pairs: Vec<Option<(Prg, Prg)>>,
    subsets: Vec<SubsetStream>,
    /// With three parties: replicated shares, which turn into ours locally, make random bits and shuffles cheaper.
    replicated: Option<Replicated>,
}

/// Shares of degree t and of degree 2t of the same random vector.
type Masks<E> = (Vec<E>, Vec<E>);

/// All subsets of `size` of `0..n`, in lexicographic order.
pub fn subsets(n: usize, size: usize) -> Vec<Vec<usize>> {
    fn grow(
        from: usize,
        n: usize,
        size: usize,
        prefix: &mut Vec<usize>,
        out: &mut Vec<Vec<usize>>,
    ) {
        if prefix.len() == size {
            out.push(prefix.clone());
            return;
        }
        for i in from..n {
            prefix.push(i);
            grow(i + 1, n, size, prefix, out);
            prefix.pop();
        }
    }
    let mut out = Vec::new();
    grow(0, n, size, &mut Vec::new(), &mut out);
    out
}

/// Whether n parties of which t may be corrupt use pseudo-random secret sharing.
pub fn uses_prss(n: usize, t: usize) -> bool {
    let mut count = 1usize;
    for i in 0..t {
        count = count * (n - i) / (i + 1);
        if count > PRSS_SUBSETS {
            return false;
        }
    }
    true
}

fn point<D: Domain>(domain: &D, party: usize) -> D::E {
    domain.from_u128(party as u128 + 1)
}

/// Lagrange coefficients: the value at `at` of a polynomial given at the points of `from`.
fn lagrange<D: Domain>(domain: &D, from: &[D::E], at: D::E) -> Result<Vec<D::E>> {
    from.iter()
        .enumerate()
        .map(|(i, xi)| {
            let (mut num, mut den) = (domain.one(), domain.one());
            for (j, xj) in from.iter().enumerate() {
                if i != j {
                    num = domain.mul(num, domain.sub(at, *xj));
                    den = domain.mul(den, domain.sub(*xi, *xj));
                }
            }
            let inverse = domain.invert(den).ok_or_else(|| {
                EngineError::usage(
                    "the prime is too small for this many parties: take a prime above n",
                )
            })?;
            Ok(domain.mul(num, inverse))
        })
        .collect()
}

fn add_scaled<D: Domain>(domain: &D, acc: &mut [D::E], v: &[D::E], factor: D::E) {
    let mut scaled = v.to_vec();
    domain.mul_scalar_assign(&mut scaled, factor);
    domain.add_assign(acc, &scaled);
}

fn only<E: Element>(share: &Share<E>) -> &[E] {
    share.parts.first().map_or(&[], Vec::as_slice)
}

/// c ↦ 1/√c for squares of a prime field, 0 ↦ anything.
fn inverse_roots<D: Domain>(domain: &D, squares: &[D::E]) -> Result<Vec<D::E>> {
    let DomainKind::Fq(q) = domain.kind() else {
        return Err(EngineError::usage(
            "square roots exist over prime fields only",
        ));
    };
    let field = Zq::new(q).map_err(|e| EngineError::usage(e.to_string()))?;
    let words: Vec<u64> = squares.iter().map(|c| c.to_u128() as u64).collect();
    Ok(field
        .inv_sqrt_batch(&words)
        .into_iter()
        .map(|v| D::E::from_u128_wrapping(u128::from(v)))
        .collect())
}

fn field_only<D: Domain>(domain: &D) -> Result<()> {
    match domain.kind() {
        DomainKind::Fq(_) => Ok(()),
        other => Err(EngineError::usage(format!(
            "shamir works over prime fields, not over {other}: take ring, or a prime"
        ))),
    }
}

fn no_bits<T>() -> Result<T> {
    Err(EngineError::usage(
        "shamir has no binary domain in this engine: use arithmetic bits (get_random_bit), or ring or rep-field",
    ))
}

impl Shamir {
    /// Party `me` of `parties`, of which `threshold` may be corrupt.
    pub fn new(
        me: usize,
        parties: usize,
        threshold: usize,
        mut pairs: Vec<Option<(Prg, Prg)>>,
        subsets: Vec<SubsetStream>,
    ) -> Self {
        let mut stream = |peer: usize, dealing: bool| {
            let (to, from) = pairs.get_mut(peer)?.as_mut()?;
            Some(Prg::new(
                if dealing { to } else { from }.next_seed(),
                REPLICATED_STREAM,
            ))
        };
        let replicated = if parties == 3 && threshold == 1 {
            let streams = (stream((me + 1) % 3, true), stream((me + 2) % 3, false));
            match streams {
                (Some(next), Some(previous)) => Some(Replicated::new(me, next, previous)),
                _ => None,
            }
        } else {
            None
        };
        Self {
            me,
            parties,
            threshold,
            pairs,
            subsets,
            replicated,
        }
    }

    fn replicated(&mut self) -> Result<&mut Replicated> {
        self.replicated
            .as_mut()
            .ok_or_else(|| EngineError::usage("replicated shares are for three parties"))
    }

    /// Our Shamir share from replicated ones (Cramer, Damgård, Ishai, TCC 2005, §3): the summand s_j, known to parties j
    /// and j+1, times the polynomial that is 1 at 0 and 0 at the third party's point. Local.
    fn convert_replicated<D: Domain>(&self, domain: &D, mut x: Share<D::E>) -> Result<Share<D::E>> {
        for (part, lead) in x.parts.iter_mut().zip([self.me, (self.me + 2) % 3]) {
            let factor = self.subset_factor(domain, &[lead, (lead + 1) % 3])?;
            domain.mul_scalar_assign(part, factor);
        }
        let mut parts = std::mem::take(&mut x.parts);
        if let (Some(second), Some(first)) = (parts.pop(), parts.first_mut()) {
            domain.add_assign(first, &second);
        }
        Ok(Share { parts })
    }

    fn kings(&self) -> bool {
        self.parties >= KING_FROM
    }

    fn after(&self, party: usize, step: usize) -> usize {
        (party + step) % self.parties
    }

    /// Whether `receiver` derives its share of what `dealer` deals from their common stream.
    fn derived(&self, dealer: usize, receiver: usize) -> bool {
        let step = (receiver + self.parties - dealer) % self.parties;
        (1..=self.threshold).contains(&step)
    }

    fn draw_dealt<D: Domain>(&mut self, domain: &D, dealer: usize, n: usize) -> Result<Vec<D::E>> {
        let mut out = vec![domain.zero(); n];
        let (_, from) = self
            .pairs
            .get_mut(dealer)
            .and_then(Option::as_mut)
            .ok_or_else(|| EngineError::usage("no stream in common with that party"))?;
        domain.random(from, &mut out);
        Ok(out)
    }

    /// Deals a sharing of our `values`: t shares from common streams, the polynomial through them and the secret gives the
    /// others. Returns the shares of all parties, `None` for those that are derived.
    fn deal<D: Domain>(&mut self, domain: &D, values: &[D::E]) -> Result<Vec<Option<Vec<D::E>>>> {
        let n = values.len();
        let mut points = vec![domain.zero()];
        let mut known: Vec<Vec<D::E>> = vec![values.to_vec()];
        for step in 1..=self.threshold {
            let to = self.after(self.me, step);
            let mut share = vec![domain.zero(); n];
            if let Some(Some((dealt, _))) = self.pairs.get_mut(to) {
                domain.random(dealt, &mut share);
            }
            points.push(point(domain, to));
            known.push(share);
        }
        (0..self.parties)
            .map(|to| {
                if self.derived(self.me, to) {
                    return Ok(None);
                }
                let mut share = vec![domain.zero(); n];
                for (factor, v) in lagrange(domain, &points, point(domain, to))?
                    .into_iter()
                    .zip(&known)
                {
                    add_scaled(domain, &mut share, v, factor);
                }
                Ok(Some(share))
            })
            .collect()
    }

    /// Every dealer of `dealers` deals; the result is the sum of what each dealt times its factor.
    fn deal_and_combine<D: Domain>(
        &mut self,
        domain: &D,
        dealers: &[usize],
        factors: Vec<D::E>,
        values: Option<&[D::E]>,
        n: usize,
    ) -> Result<ShareTask<Self, D::E>> {
        let mut acc = vec![domain.zero(); n];
        let mut outgoing = Vec::new();
        let mut awaited = Vec::new();
        for (dealer, factor) in dealers.iter().copied().zip(factors) {
            if dealer == self.me {
                let values = values.ok_or_else(|| {
                    EngineError::usage(format!("party {dealer} has no input values to share"))
                })?;
                for (to, share) in self.deal(domain, values)?.into_iter().enumerate() {
                    match share {
                        Some(share) if to == self.me => {
                            add_scaled(domain, &mut acc, &share, factor)
                        }
                        Some(share) => outgoing.push((to, share)),
                        None => {}
                    }
                }
            } else if self.derived(dealer, self.me) {
                let share = self.draw_dealt(domain, dealer, n)?;
                add_scaled(domain, &mut acc, &share, factor);
            } else {
                awaited.push((dealer, factor));
            }
        }
        let domain = domain.clone();
        Ok(Box::new(move |_, out| {
            for (to, share) in &outgoing {
                out.send(&domain, *to, share);
            }
            for (from, _) in &awaited {
                out.expect(&domain, *from, n);
            }
            Ok(Box::new(move |_, inbox| {
                for (from, factor) in awaited {
                    let share = inbox.take(&domain, from, n)?;
                    add_scaled(&domain, &mut acc, &share, factor);
                }
                Ok(Step::Done(Share { parts: vec![acc] }))
            }))
        }))
    }

    /// Our value of the polynomial that is 1 at 0 and has its roots at the points of the parties outside `members`.
    fn subset_factor<D: Domain>(&self, domain: &D, members: &[usize]) -> Result<D::E> {
        let x = point(domain, self.me);
        let mut value = domain.one();
        for j in (0..self.parties).filter(|j| !members.contains(j)) {
            let root = point(domain, j);
            let inverse = domain.invert(domain.neg(root)).ok_or_else(|| {
                EngineError::usage(
                    "the prime is too small for this many parties: take a prime above n",
                )
            })?;
            value = domain.mul(value, domain.mul(domain.sub(x, root), inverse));
        }
        Ok(value)
    }

    /// Pseudo-random sharing of a random vector (degree t).
    fn prss<D: Domain>(&mut self, domain: &D, n: usize) -> Result<Vec<D::E>> {
        let mut acc = vec![domain.zero(); n];
        let mut draw = vec![domain.zero(); n];
        for i in 0..self.subsets.len() {
            let Some(members) = self.subsets.get(i).map(|s| s.members.clone()) else {
                continue;
            };
            let factor = self.subset_factor(domain, &members)?;
            if let Some(stream) = self.subsets.get_mut(i) {
                domain.random(&mut stream.prg, &mut draw);
            }
            domain.mul_scalar_assign(&mut draw, factor);
            domain.add_assign(&mut acc, &draw);
        }
        Ok(acc)
    }

    /// Pseudo-random sharing of zero of degree 2t: each subset polynomial times x, x², …, x^t.
    fn przs<D: Domain>(&mut self, domain: &D, n: usize) -> Result<Vec<D::E>> {
        let x = point(domain, self.me);
        let mut acc = vec![domain.zero(); n];
        let mut draw = vec![domain.zero(); n];
        for i in 0..self.subsets.len() {
            let Some(members) = self.subsets.get(i).map(|s| s.members.clone()) else {
                continue;
            };
            let mut factor = self.subset_factor(domain, &members)?;
            for _ in 0..self.threshold {
                factor = domain.mul(factor, x);
                if let Some(stream) = self.subsets.get_mut(i) {
                    domain.random(&mut stream.prg, &mut draw);
                }
                domain.mul_scalar_assign(&mut draw, factor);
                domain.add_assign(&mut acc, &draw);
            }
        }
        Ok(acc)
    }

    /// Our summand of an additive zero sharing among `members`, from the streams that pairs of them have in common.
    fn additive_zero<D: Domain>(&mut self, domain: &D, members: &[usize], n: usize) -> Vec<D::E> {
        let mut acc = vec![domain.zero(); n];
        let mut draw = vec![domain.zero(); n];
        for other in members.iter().copied().filter(|other| *other != self.me) {
            let Some(Some((to, from))) = self.pairs.get_mut(other) else {
                continue;
            };
            if self.me < other {
                domain.random(to, &mut draw);
                domain.add_assign(&mut acc, &draw);
            } else {
                domain.random(from, &mut draw);
                domain.sub_assign(&mut acc, &draw);
            }
        }
        acc
    }

    /// The first `senders` parties send their values to everybody, who reconstructs at 0. One round.
    fn open_from_all<D: Domain>(
        &mut self,
        domain: &D,
        mine: Vec<D::E>,
        senders: usize,
    ) -> Result<ClearTask<Self, D::E>> {
        let points: Vec<D::E> = (0..senders).map(|i| point(domain, i)).collect();
        let factors = lagrange(domain, &points, domain.zero())?;
        let domain = domain.clone();
        Ok(Box::new(move |p, out| {
            let n = mine.len();
            for to in (0..p.parties).filter(|to| *to != p.me && p.me < senders) {
                out.send(&domain, to, &mine);
            }
            for from in (0..senders).filter(|from| *from != p.me) {
                out.expect(&domain, from, n);
            }
            Ok(Box::new(move |p, inbox| {
                let mut acc = vec![domain.zero(); n];
                for (from, factor) in factors.into_iter().enumerate() {
                    if from == p.me {
                        add_scaled(&domain, &mut acc, &mine, factor);
                    } else {
                        let share = inbox.take(&domain, from, n)?;
                        add_scaled(&domain, &mut acc, &share, factor);
                    }
                }
                Ok(Step::Done(acc))
            }))
        }))
    }

    /// Random bits from random elements; elements that are zero tell nothing of a bit and are drawn again.
    fn bits_from<D: Domain>(
        &mut self,
        domain: &D,
        r: Share<D::E>,
    ) -> Result<ShareTask<Self, D::E>> {
        let n = r.len();
        let square = if self.kings() || self.subsets.is_empty() {
            let product = self.dot(domain, &r, &r, 1)?;
            let domain = domain.clone();
            and_then(product, move |p, square: Share<D::E>| {
                p.open(&domain, &square)
            })
        } else {
            let mut product = only(&r).to_vec();
            domain.mul_assign(&mut product, only(&r));
            let zero = self.przs(domain, n)?;
            domain.add_assign(&mut product, &zero);
            self.open_from_all(domain, product, 2 * self.threshold + 1)?
        };
        let domain = domain.clone();
        let finish = move |domain: &D, square: &[D::E]| -> Result<(Vec<D::E>, Vec<usize>)> {
            let half = domain
                .invert(domain.add(domain.one(), domain.one()))
                .ok_or_else(|| EngineError::usage("random bits need an odd prime"))?;
            let mut bits = inverse_roots(domain, square)?;
            domain.mul_assign(&mut bits, only(&r));
            domain.add_scalar_assign(&mut bits, domain.one());
            domain.mul_scalar_assign(&mut bits, half);
            let zeros = square
                .iter()
                .enumerate()
                .filter(|(_, c)| **c == domain.zero())
                .map(|(i, _)| i)
                .collect();
            Ok((bits, zeros))
        };
        Ok(then_maybe(square, move |p, square| {
            let (mut bits, zeros) = finish(&domain, &square)?;
            if zeros.is_empty() {
                return Ok(Step::Done(Share { parts: vec![bits] }));
            }
            let again = p.random_bit(&domain, zeros.len())?;
            Ok(Step::Next(then(again, move |_, fresh| {
                for (i, bit) in zeros.into_iter().zip(only(&fresh)) {
                    if let Some(slot) = bits.get_mut(i) {
                        *slot = *bit;
                    }
                }
                Ok(Share { parts: vec![bits] })
            })))
        }))
    }

    /// Random sharings of degree t and of degree 2t of the same values (masks of the king's openings).
    fn double_sharing<D: Domain>(
        &mut self,
        domain: &D,
        n: usize,
    ) -> Result<SendFn<Self, Masks<D::E>>> {
        // Dealt: every party deals random values at both degrees; a Vandermonde matrix extracts n − t from n.
        let batch = self.parties - self.threshold;
        let blocks = n.div_ceil(batch);
        let mut values = vec![domain.zero(); blocks];
        domain.random(
            &mut Prg::from_os().map_err(|e| EngineError::usage(e.to_string()))?,
            &mut values,
        );
        let low = self.deal_all(domain, &values, self.threshold)?;
        let high = self.deal_all(domain, &values, 2 * self.threshold)?;
        let d = domain.clone();
        Ok(join(low, high, move |p, low, high| {
            Ok((
                p.extract(&d, &low, batch, n),
                p.extract(&d, &high, batch, n),
            ))
        }))
    }

    /// Opens product + mask (degree 2t) through kings and takes the mask (degree t) off.
    fn unmask<D: Domain>(
        &mut self,
        domain: &D,
        mut product: Vec<D::E>,
        low: Vec<D::E>,
        high: &[D::E],
    ) -> Result<ShareTask<Self, D::E>> {
        domain.add_assign(&mut product, high);
        let opened = self.open_through_kings(domain, product, 2 * self.threshold + 1)?;
        let domain = domain.clone();
        Ok(then(opened, move |_, mut opened| {
            domain.sub_assign(&mut opened, &low);
            Ok(Share {
                parts: vec![opened],
            })
        }))
    }

    /// Deals `values` with an explicit random polynomial of this degree; returns the shares of all dealers.
    fn deal_all<D: Domain>(
        &mut self,
        domain: &D,
        values: &[D::E],
        degree: usize,
    ) -> Result<SendFn<Self, Vec<Vec<D::E>>>> {
        let n = values.len();
        let mut prg = Prg::from_os().map_err(|e| EngineError::usage(e.to_string()))?;
        let mut coefficients = vec![values.to_vec()];
        for _ in 0..degree {
            let mut c = vec![domain.zero(); n];
            domain.random(&mut prg, &mut c);
            coefficients.push(c);
        }
        let shares: Vec<Vec<D::E>> = (0..self.parties)
            .map(|to| {
                let x = point(domain, to);
                let mut acc = vec![domain.zero(); n];
                for c in coefficients.iter().rev() {
                    domain.mul_scalar_assign(&mut acc, x);
                    domain.add_assign(&mut acc, c);
                }
                acc
            })
            .collect();
        let domain = domain.clone();
        Ok(Box::new(move |p, out| {
            for (to, share) in shares.iter().enumerate().filter(|(to, _)| *to != p.me) {
                out.send(&domain, to, share);
                out.expect(&domain, to, n);
            }
            Ok(Box::new(move |p, inbox| {
                let mut dealt = Vec::with_capacity(p.parties);
                for (from, own) in shares.into_iter().enumerate() {
                    dealt.push(if from == p.me {
                        own
                    } else {
                        inbox.take(&domain, from, n)?
                    });
                }
                Ok(Step::Done(dealt))
            }))
        }))
    }

    /// n − t random values of n dealt ones, by a Vandermonde matrix: uniform while t dealers at most are corrupt.
    fn extract<D: Domain>(
        &self,
        domain: &D,
        dealt: &[Vec<D::E>],
        batch: usize,
        n: usize,
    ) -> Vec<D::E> {
        let mut out = Vec::with_capacity(n + batch);
        for row in 0..batch {
            let blocks = dealt.first().map_or(0, Vec::len);
            let mut acc = vec![domain.zero(); blocks];
            for (dealer, values) in dealt.iter().enumerate() {
                let mut power = domain.one();
                for _ in 0..row {
                    power = domain.mul(power, point(domain, dealer));
                }
                add_scaled(domain, &mut acc, values, power);
            }
            out.extend(acc);
        }
        out.truncate(n);
        out
    }

    /// Opens a vector through kings: king j opens the j-th piece for everybody. Two rounds.
    fn open_through_kings<D: Domain>(
        &mut self,
        domain: &D,
        mine: Vec<D::E>,
        senders: usize,
    ) -> Result<ClearTask<Self, D::E>> {
        let points: Vec<D::E> = (0..senders).map(|i| point(domain, i)).collect();
        let factors = lagrange(domain, &points, domain.zero())?;
        let piece = mine.len().div_ceil(self.parties).max(1);
        let total = mine.len();
        let range = move |king: usize| (king * piece).min(total)..((king + 1) * piece).min(total);
        let domain = domain.clone();
        Ok(Box::new(move |p, out| {
            let parties = p.parties;
            for king in (0..parties).filter(|k| *k != p.me && p.me < senders) {
                if let Some(part) = mine.get(range(king)) {
                    out.send(&domain, king, part);
                }
            }
            let own = range(p.me).len();
            for from in (0..senders).filter(|from| *from != p.me) {
                out.expect(&domain, from, own);
            }
            Ok(Box::new(move |p, inbox| {
                let mut acc = vec![domain.zero(); own];
                for (from, factor) in factors.into_iter().enumerate() {
                    if from == p.me {
                        if let Some(part) = mine.get(range(p.me)) {
                            add_scaled(&domain, &mut acc, part, factor);
                        }
                    } else {
                        let part = inbox.take(&domain, from, own)?;
                        add_scaled(&domain, &mut acc, &part, factor);
                    }
                }
                Ok(Step::Next(Box::new(move |p, out| {
                    for to in (0..parties).filter(|to| *to != p.me) {
                        out.send(&domain, to, &acc);
                        out.expect(&domain, to, range(to).len());
                    }
                    Ok(Box::new(move |p, inbox| {
                        let mut opened = Vec::with_capacity(total);
                        for king in 0..parties {
                            if king == p.me {
                                opened.extend_from_slice(&acc);
                            } else {
                                opened.extend(inbox.take(&domain, king, range(king).len())?);
                            }
                        }
                        Ok(Step::Done(opened))
                    }))
                })))
            }))
        }))
    }
}

impl Protocol for Shamir {
    fn party(&self) -> (usize, usize) {
        (self.me, self.parties)
    }

    fn parts(&self) -> usize {
        1
    }

    fn has_binary(&self) -> bool {
        false
    }

    fn summands(&self) -> usize {
        0
    }

    fn constant<D: Domain>(&self, _: &D, values: &[D::E]) -> Share<D::E> {
        Share {
            parts: vec![values.to_vec()],
        }
    }

    fn add_clear<D: Domain>(&self, domain: &D, share: &mut Share<D::E>, values: &[D::E]) {
        for part in &mut share.parts {
            domain.add_assign(part, values);
        }
    }

    fn random<D: Domain>(&mut self, domain: &D, n: usize) -> Result<ShareTask<Self, D::E>> {
        field_only(domain)?;
        if self.random_is_local() {
            return Ok(ready(self.random_local(domain, n)?));
        }
        let batch = self.parties - self.threshold;
        let mut values = vec![domain.zero(); n.div_ceil(batch)];
        domain.random(
            &mut Prg::from_os().map_err(|e| EngineError::usage(e.to_string()))?,
            &mut values,
        );
        let dealt = self.deal_all(domain, &values, self.threshold)?;
        let domain = domain.clone();
        Ok(then(dealt, move |p, dealt| {
            Ok(Share {
                parts: vec![p.extract(&domain, &dealt, batch, n)],
            })
        }))
    }

    fn random_is_local(&self) -> bool {
        !self.subsets.is_empty()
    }

    fn random_local<D: Domain>(&mut self, domain: &D, n: usize) -> Result<Share<D::E>> {
        field_only(domain)?;
        if !self.random_is_local() {
            return Err(EngineError::usage(
                "so many parties have no common streams: random values need a round",
            ));
        }
        Ok(Share {
            parts: vec![self.prss(domain, n)?],
        })
    }

    fn dot<D: Domain>(
        &mut self,
        domain: &D,
        a: &Share<D::E>,
        b: &Share<D::E>,
        length: usize,
    ) -> Result<ShareTask<Self, D::E>> {
        field_only(domain)?;
        let mut product = only(a).to_vec();
        domain.mul_assign(&mut product, only(b));
        let product = group_sums(domain, product, length);
        let n = product.len();
        let dealers: Vec<usize> = (0..=2 * self.threshold).collect();
        if !self.kings() {
            let points: Vec<D::E> = dealers.iter().map(|i| point(domain, *i)).collect();
            let factors = lagrange(domain, &points, domain.zero())?;
            return self.deal_and_combine(domain, &dealers, factors, Some(&product), n);
        }
        if self.random_is_local() {
            let low = self.prss(domain, n)?;
            let mut high = self.przs(domain, n)?;
            domain.add_assign(&mut high, &low);
            return self.unmask(domain, product, low, &high);
        }
        let masks = self.double_sharing(domain, n)?;
        let domain = domain.clone();
        Ok(and_then(masks, move |p, (low, high)| {
            p.unmask(&domain, product, low, &high)
        }))
    }

    /// Each party gets the shares of the t parties after it.
    fn open<D: Domain>(&mut self, domain: &D, a: &Share<D::E>) -> Result<ClearTask<Self, D::E>> {
        let mine = only(a).to_vec();
        if self.kings() {
            return self.open_through_kings(domain, mine, self.threshold + 1);
        }
        let sources: Vec<usize> = (0..=self.threshold)
            .map(|step| self.after(self.me, step))
            .collect();
        let points: Vec<D::E> = sources.iter().map(|i| point(domain, *i)).collect();
        let factors = lagrange(domain, &points, domain.zero())?;
        let domain = domain.clone();
        Ok(Box::new(move |p, out| {
            let n = mine.len();
            for step in 1..=p.threshold {
                out.send(&domain, p.after(p.me, p.parties - step), &mine);
                out.expect(&domain, p.after(p.me, step), n);
            }
            Ok(Box::new(move |p, inbox| {
                let mut acc = vec![domain.zero(); n];
                for (from, factor) in sources.into_iter().zip(factors) {
                    if from == p.me {
                        add_scaled(&domain, &mut acc, &mine, factor);
                    } else {
                        let share = inbox.take(&domain, from, n)?;
                        add_scaled(&domain, &mut acc, &share, factor);
                    }
                }
                Ok(Step::Done(acc))
            }))
        }))
    }

    /// t + 1 parties send their share times its Lagrange coefficient, masked by a fresh additive zero sharing: the
    /// receiver learns the sum, and nothing of the single shares.
    fn open_to<D: Domain>(
        &mut self,
        domain: &D,
        a: &Share<D::E>,
        receiver: usize,
    ) -> Result<SendFn<Self, Option<Vec<D::E>>>> {
        let sources: Vec<usize> = (0..=self.threshold)
            .map(|step| self.after(receiver, step))
            .collect();
        let points: Vec<D::E> = sources.iter().map(|i| point(domain, *i)).collect();
        let factors = lagrange(domain, &points, domain.zero())?;
        let mut mine = only(a).to_vec();
        let n = mine.len();
        if let Some(index) = sources.iter().position(|source| *source == self.me) {
            domain.mul_scalar_assign(&mut mine, factors.get(index).copied().unwrap_or_default());
            let zero = self.additive_zero(domain, &sources, n);
            domain.add_assign(&mut mine, &zero);
        }
        let domain = domain.clone();
        Ok(Box::new(move |p, out| {
            if p.me != receiver && sources.contains(&p.me) {
                out.send(&domain, receiver, &mine);
            }
            let others: Vec<usize> = sources
                .into_iter()
                .filter(|source| *source != receiver)
                .collect();
            if p.me == receiver {
                for from in &others {
                    out.expect(&domain, *from, n);
                }
            }
            Ok(Box::new(move |p, inbox| {
                if p.me != receiver {
                    return Ok(Step::Done(None));
                }
                for from in others {
                    let part = inbox.take(&domain, from, n)?;
                    domain.add_assign(&mut mine, &part);
                }
                Ok(Step::Done(Some(mine)))
            }))
        }))
    }

    fn input<D: Domain>(
        &mut self,
        domain: &D,
        owner: usize,
        n: usize,
        values: Option<Vec<D::E>>,
    ) -> Result<ShareTask<Self, D::E>> {
        field_only(domain)?;
        self.deal_and_combine(domain, &[owner], vec![domain.one()], values.as_deref(), n)
    }

    /// Three parties: random bits of replicated shares. Otherwise: r random, c = r² opened, bit = (r/√c + 1)/2 (Damgård
    /// et al., TCC 2006, §3).
    fn random_bit<D: Domain>(&mut self, domain: &D, n: usize) -> Result<ShareTask<Self, D::E>> {
        field_only(domain)?;
        if let Some(replicated) = &mut self.replicated {
            let bits = within(replicated.random_bit(domain, n)?, Self::replicated);
            let domain = domain.clone();
            return Ok(then(bits, move |p, bits| {
                p.convert_replicated(&domain, bits)
            }));
        }
        if self.random_is_local() {
            let r = self.random_local(domain, n)?;
            return self.bits_from(domain, r);
        }
        let r = self.random(domain, n)?;
        let domain = domain.clone();
        Ok(and_then(r, move |p, r| p.bits_from(&domain, r)))
    }

    fn bit_to_arith<D: Domain>(
        &mut self,
        _: &D,
        _: &Share<u64>,
        _: usize,
    ) -> Result<ShareTask<Self, D::E>> {
        no_bits()
    }

    fn has_shuffle(&self) -> bool {
        self.replicated.is_some()
    }

    /// Three parties: parties 0 and 1, whose shares determine x, input their summands of it as replicated shares, which
    /// are shuffled and turned back. Four rounds, 8 elements an entry.
    fn shuffle<D: Domain>(
        &mut self,
        domain: &D,
        a: &Share<D::E>,
        unit: usize,
    ) -> Result<ShareTask<Self, D::E>> {
        field_only(domain)?;
        let n = a.len();
        let (me, points) = (self.me, [point(domain, 0), point(domain, 1)]);
        let mut mine = only(a).to_vec();
        let factors = lagrange(domain, &points, domain.zero())?;
        if let Some(factor) = factors.get(me) {
            domain.mul_scalar_assign(&mut mine, *factor);
        }
        let replicated = self.replicated()?;
        let x = replicated.input(domain, 0, n, (me == 0).then(|| mine.clone()))?;
        let y = replicated.input(domain, 1, n, (me == 1).then_some(mine))?;
        let (d, e, f) = (domain.clone(), domain.clone(), domain.clone());
        let sum = join(x, y, move |_, mut x: Share<D::E>, y: Share<D::E>| {
            for (x, y) in x.parts.iter_mut().zip(&y.parts) {
                d.add_assign(x, y);
            }
            Ok(x)
        });
        let shuffled = and_then(sum, move |p: &mut Replicated, x| p.shuffle(&e, &x, unit));
        Ok(then(within(shuffled, Self::replicated), move |p, x| {
            p.convert_replicated(&f, x)
        }))
    }

    fn summand_bits<D: Domain>(
        &self,
        _: &D,
        _: &Share<D::E>,
        _: usize,
    ) -> Result<Vec<Vec<Share<u64>>>> {
        Err(EngineError::usage(
            "shamir shares have no summands that parties know: use bit_decompose",
        ))
    }
}
