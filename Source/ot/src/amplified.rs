//! Gilboa's products by two random words b, b' of the receiver, private also against a sender that cheats.
//!
//! The sender multiplies the same a by every choice bit. One that gives other words to some positions makes the results wrong
//! by a function of the choice bits there; whether a later check fails then tells something about these. So b and b' also
//! contain the choice bits of common extra positions, with public factors g, g' that are tossed after the sender is bound:
//! b = Σ 2^j·β_j + Σ g_e·γ_e, and b' with its own β' and g'. If ℓ bits of the choices are known, which costs a probability of
//! 2^-ℓ, the pair is uniform within 2^-((E − ℓ)/2 + 1) by the leftover hash lemma, and exactly so (modulo 2^l) if ℓ = 0. The
//! idea is that of MASCOT's vector triples (Keller, Orsini, Scholl, CCS 2016, section 4.1) and of the encoded multiplication of
//! Doerner, Kondi, Lee, shelat (IEEE S&P 2018, section VI), with fewer positions because most have the factor 2^j.
//!
//! Modulo 2^l the payload of position j counts modulo 2^(l − j) only.

use keyquorum_math::{Domain, DomainKind, Element};
use zeroize::{Zeroize, Zeroizing};

use crate::extension::{MAX_BLOCKS, Receiver, ReceiverBatch, Sender, SenderBatch};
use crate::product::{pack_words, unpack_words};
use crate::{OtError, check_length};

/// Words of the receiver an item.
pub const WORDS: usize = 2;
/// OTs of a block.
const BLOCK: usize = 128;

/// Products of one batch.
#[derive(Clone, Debug)]
pub struct Shape<D: Domain> {
    /// The ring or field.
    pub domain: D,
    /// Items, a multiple of 128.
    pub items: usize,
}

impl<D: Domain> Shape<D> {
    fn bits(&self) -> usize {
        self.domain.bits() as usize
    }

    /// Extra positions. A prime field has more, because its words are only nearly uniform even if nothing is known.
    pub fn extra(&self) -> usize {
        match self.domain.kind() {
            DomainKind::Fq(_) => 104,
            _ => 80,
        }
    }

    fn positions(&self) -> usize {
        WORDS * self.bits() + self.extra()
    }

    /// Words of 128 choice bits of a batch.
    pub fn choice_words(&self) -> usize {
        self.positions() * self.items / BLOCK
    }

    /// Factors to toss: g, then g'.
    pub fn factors(&self) -> usize {
        WORDS * self.extra()
    }

    /// Word to which a position belongs, with its j; `None` for an extra one.
    fn place(&self, position: usize) -> Option<(usize, usize)> {
        let word = position / self.bits();
        (word < WORDS).then(|| (word, position % self.bits()))
    }

    fn width(&self, position: usize) -> u32 {
        match (self.domain.kind(), self.place(position)) {
            (DomainKind::Z2k(bits), Some((_, j))) => bits - j as u32,
            _ => self.domain.bits(),
        }
    }

    /// Bytes of the payload.
    pub fn payload_bytes(&self) -> usize {
        let widths: usize = (0..self.positions())
            .map(|position| self.width(position) as usize)
            .sum();
        self.items / 8 * widths
    }
}

/// Sums of a party's shares of the products so far: those of the two words, and of each extra position.
pub struct Partial<E: Element> {
    words: [Vec<E>; WORDS],
    /// Position after position.
    extra: Vec<E>,
}

impl<E: Element> Drop for Partial<E> {
    fn drop(&mut self) {
        self.words.iter_mut().for_each(|w| w.iter_mut().zeroize());
        self.extra.iter_mut().zeroize();
    }
}

impl<E: Element> Partial<E> {
    fn new<D: Domain<E = E>>(shape: &Shape<D>) -> Self {
        Self {
            words: std::array::from_fn(|_| vec![E::default(); shape.items]),
            extra: Vec::with_capacity(shape.extra() * shape.items),
        }
    }

    /// Adds shares of a block of a position; those of an extra position come in order.
    fn absorb<D: Domain<E = E>>(
        &mut self,
        shape: &Shape<D>,
        position: usize,
        first: usize,
        shares: &mut [E],
        powers: &[E],
    ) {
        let Some((word, j)) = shape.place(position) else {
            self.extra.extend_from_slice(shares);
            return;
        };
        let power = powers.get(j).copied().unwrap_or_default();
        shape.domain.mul_scalar_assign(shares, power);
        if let Some(sums) = self
            .words
            .get_mut(word)
            .and_then(|words| words.get_mut(first..first + shares.len()))
        {
            shape.domain.add_assign(sums, shares);
        }
    }

    /// Adds another party's products with the same words.
    pub fn add<D: Domain<E = E>>(&mut self, domain: &D, other: &Self) {
        for (words, theirs) in self.words.iter_mut().zip(&other.words) {
            domain.add_assign(words, theirs);
        }
        domain.add_assign(&mut self.extra, &other.extra);
    }

    /// Our shares of the products by both words, for these factors.
    pub fn finish<D: Domain<E = E>>(mut self, shape: &Shape<D>, factors: &[E]) -> [Vec<E>; WORDS] {
        let mut words = std::mem::take(&mut self.words);
        for (word, factors) in words.iter_mut().zip(factors.chunks(shape.extra())) {
            fold(shape, word, &self.extra, factors);
        }
        words
    }
}

/// Adds the extra positions times their factors.
fn fold<D: Domain>(shape: &Shape<D>, word: &mut [D::E], extra: &[D::E], factors: &[D::E]) {
    let mut term = Vec::with_capacity(shape.items);
    for (row, factor) in extra.chunks(shape.items.max(1)).zip(factors) {
        term.clear();
        term.extend_from_slice(row);
        shape.domain.mul_scalar_assign(&mut term, *factor);
        shape.domain.add_assign(word, &term);
    }
    term.iter_mut().zeroize();
}

fn powers<D: Domain>(shape: &Shape<D>) -> Vec<D::E> {
    let domain = &shape.domain;
    let mut power = domain.one();
    (0..shape.bits())
        .map(|_| {
            let now = power;
            power = domain.add(power, power);
            now
        })
        .collect()
}

/// The receiver's words for these choices and factors.
pub fn words<D: Domain>(
    shape: &Shape<D>,
    choices: &[u128],
    factors: &[D::E],
) -> [Vec<D::E>; WORDS] {
    let mut partial = Partial::new(shape);
    let powers = powers(shape);
    let one = shape.domain.one().to_u128();
    let blocks = shape.items / BLOCK;
    let mut bits = vec![D::E::default(); BLOCK];
    for (block, choices) in choices.iter().enumerate() {
        for (i, bit) in bits.iter_mut().enumerate() {
            let mask = 0u128.wrapping_sub(choices >> i & 1);
            *bit = D::E::from_u128_wrapping(one & mask);
        }
        partial.absorb(
            shape,
            block / blocks,
            block % blocks * BLOCK,
            &mut bits,
            &powers,
        );
    }
    bits.iter_mut().zeroize();
    partial.finish(shape, factors)
}

/// A party's own products, with its words and its choices.
pub fn local<D: Domain>(shape: &Shape<D>, a: &[D::E], choices: &[u128]) -> Partial<D::E> {
    let mut partial = Partial::new(shape);
    let powers = powers(shape);
    let blocks = shape.items / BLOCK;
    let mut shares = vec![D::E::default(); BLOCK];
    for (block, choices) in choices.iter().enumerate() {
        let item = block % blocks * BLOCK;
        let a = a.get(item..item + BLOCK).unwrap_or_default();
        for (i, (share, a)) in shares.iter_mut().zip(a).enumerate() {
            let mask = 0u128.wrapping_sub(choices >> i & 1);
            *share = D::E::from_u128_wrapping(a.to_u128() & mask);
        }
        partial.absorb(shape, block / blocks, item, &mut shares, &powers);
    }
    shares.iter_mut().zeroize();
    partial
}

/// The sender's end, after the check of the batch: appends the payload for its words `a`.
///
/// # Errors
/// [`OtError::Usage`] if there are not as many words as items.
pub fn send<D: Domain>(
    ot: &Sender,
    batch: &SenderBatch,
    shape: &Shape<D>,
    a: &[D::E],
    out: &mut Vec<u8>,
) -> Result<Partial<D::E>, OtError> {
    if a.len() != shape.items {
        return Err(OtError::Usage(format!(
            "{} words for {} products",
            a.len(),
            shape.items
        )));
    }
    let domain = &shape.domain;
    let mut partial = Partial::new(shape);
    let powers = powers(shape);
    let blocks = shape.items / BLOCK;
    let count = shape.choice_words();
    let mut zeros = Zeroizing::new([0u128; BLOCK * MAX_BLOCKS]);
    let mut ones = Zeroizing::new([0u128; BLOCK * MAX_BLOCKS]);
    let mut shares = vec![D::E::default(); BLOCK];
    let mut words = vec![D::E::default(); BLOCK];
    out.reserve(shape.payload_bytes());
    for tile in 0..count.div_ceil(MAX_BLOCKS) {
        let first = tile * MAX_BLOCKS;
        let used = BLOCK * (count - first).min(MAX_BLOCKS);
        ot.batch_strings(
            batch,
            tile,
            zeros.get_mut(..used).unwrap_or_default(),
            ones.get_mut(..used).unwrap_or_default(),
        );
        let strings = zeros.chunks(BLOCK).zip(ones.chunks(BLOCK));
        for (block, (zeros, ones)) in (first..count).zip(strings) {
            let (position, item) = (block / blocks, block % blocks * BLOCK);
            let width = shape.width(position);
            let low = u128::MAX >> (128 - width);
            let a = a.get(item..item + BLOCK).unwrap_or_default();
            for ((((share, word), zero), one), a) in shares
                .iter_mut()
                .zip(words.iter_mut())
                .zip(zeros)
                .zip(ones)
                .zip(a)
            {
                let zero = domain.from_u128(*zero);
                let difference = domain.sub(zero, domain.from_u128(*one));
                *word = D::E::from_u128_wrapping(domain.add(difference, *a).to_u128() & low);
                *share = domain.neg(zero);
            }
            pack_words(&words, width, out);
            partial.absorb(shape, position, item, &mut shares, &powers);
        }
    }
    shares.iter_mut().zeroize();
    Ok(partial)
}

/// The receiver's end.
///
/// # Errors
/// [`OtError::Length`]; [`OtError::Message`] for a word that is no element.
pub fn receive<D: Domain>(
    ot: &Receiver,
    batch: &ReceiverBatch,
    shape: &Shape<D>,
    choices: &[u128],
    message: &[u8],
) -> Result<Partial<D::E>, OtError> {
    check_length("payloads of products", message, shape.payload_bytes())?;
    let domain = &shape.domain;
    let mut partial = Partial::new(shape);
    let powers = powers(shape);
    let blocks = shape.items / BLOCK;
    let count = shape.choice_words();
    let mut strings = Zeroizing::new([0u128; BLOCK * MAX_BLOCKS]);
    let mut shares = vec![D::E::default(); BLOCK];
    let mut words = vec![D::E::default(); BLOCK];
    let mut rest = message;
    let mut valid = true;
    for tile in 0..count.div_ceil(MAX_BLOCKS) {
        let first = tile * MAX_BLOCKS;
        let used = BLOCK * (count - first).min(MAX_BLOCKS);
        ot.batch_strings(batch, tile, strings.get_mut(..used).unwrap_or_default());
        for (block, strings) in (first..count).zip(strings.chunks(BLOCK)) {
            let (position, item) = (block / blocks, block % blocks * BLOCK);
            let width = shape.width(position);
            let (now, later) = rest.split_at((width as usize * BLOCK / 8).min(rest.len()));
            rest = later;
            unpack_words(now, width, &mut words);
            let choice = choices.get(block).copied().unwrap_or(0);
            for (i, ((share, word), string)) in
                shares.iter_mut().zip(&words).zip(strings).enumerate()
            {
                let word = word.to_u128();
                valid &= domain.from_u128(word).to_u128() == word;
                let mask = 0u128.wrapping_sub(choice >> i & 1);
                let chosen = D::E::from_u128_wrapping(word & mask);
                *share = domain.add(domain.from_u128(*string), chosen);
            }
            partial.absorb(shape, position, item, &mut shares, &powers);
        }
    }
    shares.iter_mut().zeroize();
    if valid {
        Ok(partial)
    } else {
        Err(OtError::Message(
            "a payload of products is no element of the field",
        ))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use keyquorum_math::{Prg, Z2k128, Zq};

    use super::*;
    use crate::{Inbound, Outbound, Parameters, Security};
    use std::sync::Arc;

    fn products<D: Domain>(domain: D, items: usize) {
        let parameters = Parameters::default();
        let (inbound, point) = Inbound::start(parameters).unwrap();
        let (outbound, points) = Outbound::start(parameters, b"test").unwrap();
        let (receiver, prfs) = inbound.finish(b"test", &points).unwrap();
        let sender = outbound.finish(b"test", &point, &prfs).unwrap();
        let mut receiver = Receiver::new(Arc::new(receiver), 1, Security::Malicious);
        let mut sender = Sender::new(Arc::new(sender), 1, Security::Malicious);
        let shape = Shape { domain, items };
        let domain = &shape.domain;
        let mut prg = Prg::new([9; 16], 0);
        let mut choices = vec![0u128; shape.choice_words()];
        prg.fill_u128(&mut choices);
        let mut message = Vec::new();
        let ours = receiver.batch_masked(&choices, 77, &mut message).unwrap();
        let theirs = sender.batch(choices.len(), &message).unwrap();
        sender
            .verify(&theirs, &[1; 16], &ours.prove(&[1; 16]))
            .unwrap();
        let mut a = vec![domain.zero(); items];
        domain.random(&mut prg, &mut a);
        let mut payload = Vec::new();
        let sent = send(&sender, &theirs, &shape, &a, &mut payload).unwrap();
        assert_eq!(payload.len(), shape.payload_bytes());
        let received = receive(&receiver, &ours, &shape, &choices, &payload).unwrap();
        let mut factors = vec![domain.zero(); shape.factors()];
        domain.random(&mut prg, &mut factors);
        let words = words(&shape, &choices, &factors);
        let sent = sent.finish(&shape, &factors);
        let received = received.finish(&shape, &factors);
        for ((word, sent), received) in words.iter().zip(&sent).zip(&received) {
            for (((a, b), x), y) in a.iter().zip(word).zip(sent).zip(received) {
                assert_eq!(domain.add(*x, *y).to_u128(), domain.mul(*a, *b).to_u128());
            }
        }
        assert!(receive(&receiver, &ours, &shape, &choices, &payload[1..]).is_err());
        assert!(send(&sender, &theirs, &shape, &a[1..], &mut payload).is_err());
    }

    #[test]
    fn shares_add_up_to_both_products() {
        products(Z2k128::new(112).unwrap(), 128);
        products(Z2k128::new(112).unwrap(), 384);
        products(Zq::new((1 << 60) - 93).unwrap(), 1024);
        products(Zq::new((1 << 41) - 21).unwrap(), 128);
    }
}
