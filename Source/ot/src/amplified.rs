//! Gilboa's products by two random words b, b' of the receiver, private also against a sender that cheats.
//!
//! The sender multiplies the same a by every choice bit. One that gives other words to some positions makes the results wrong
//! by a function of the choice bits there; whether a later check fails then tells something about these. So b and b' also
//! contain E bits γ_e that all items of a batch have in common, with public factors g, g' of every item that are tossed after
//! the sender is bound: b = β + Σ g_e·γ_e, and b' with its own β' and g', where β is uniform and given by its bits. The map from
//! all β, β' and γ to all b, b' is universal (other γ collide for one choice of g in as many as there are words), so if what is known of
//! the choices has a probability of 2^-ℓ, the words of a batch together are uniform within 2^-((E − ℓ)/2 + 1) by the leftover hash
//! lemma, and exactly so if ℓ = 0. The idea is that of MASCOT's vector triples (Keller, Orsini, Scholl, CCS 2016, section 4.1) and of the
//! encoded multiplication of Doerner, Kondi, Lee, shelat (IEEE S&P 2018, section VI), with extra bits that a whole batch shares:
//! their OTs are as good as free, and their strings are stretched to a word an item.
//!
//! Modulo 2^l the payload of bit j counts modulo 2^(l − j) only.

use keyquorum_math::{Domain, DomainKind, Element, Prg};
use zeroize::{Zeroize, Zeroizing};

use crate::aes::Key;
use crate::extension::{MAX_BLOCKS, Receiver, ReceiverBatch, Row, Sender, SenderBatch};
use crate::product::{pack_words, unpack_words};
use crate::transpose::transpose;
use crate::{KAPPA, OtError, check_length};

/// Words of the receiver an item.
pub const WORDS: usize = 2;
/// OTs of a block.
const BLOCK: usize = 128;
/// Bits that the items of a batch have in common.
const EXTRA: usize = 80;

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

    fn blocks(&self) -> usize {
        self.items / BLOCK
    }

    /// Blocks of OTs of the words; the extra bits' block comes after them.
    fn word_blocks(&self) -> usize {
        WORDS * self.bits() * self.blocks()
    }

    /// Words of 128 choice bits of a batch.
    pub fn choice_words(&self) -> usize {
        self.word_blocks() + 1
    }

    /// Word, bit (highest first) and block of items to which a block of OTs belongs.
    fn place(&self, block: usize) -> (usize, usize, usize) {
        let position = block / self.blocks();
        let j = self.bits() - 1 - position % self.bits();
        (position / self.bits(), j, block % self.blocks())
    }

    fn width(&self, j: usize) -> u32 {
        match self.domain.kind() {
            DomainKind::Z2k(bits) => bits - j as u32,
            _ => self.domain.bits(),
        }
    }

    /// Bytes of the payload.
    pub fn payload_bytes(&self) -> usize {
        let widths: usize = (0..self.bits()).map(|j| self.width(j) as usize).sum();
        self.items / 8 * (WORDS * widths + EXTRA * self.bits())
    }
}

/// What the receiver chooses for a batch.
pub struct Operands<E: Element> {
    /// β and β'.
    words: [Vec<E>; WORDS],
    /// Bits of β and β', highest first, a word for 128 items; then γ.
    pub choices: Zeroizing<Vec<u128>>,
}

impl<E: Element> Drop for Operands<E> {
    fn drop(&mut self) {
        self.words.iter_mut().for_each(|w| w.iter_mut().zeroize());
    }
}

impl<E: Element> Operands<E> {
    /// Uniform ones.
    pub fn draw<D: Domain<E = E>>(shape: &Shape<D>, prg: &mut Prg) -> Self {
        let mut choices = Zeroizing::new(vec![0; shape.choice_words()]);
        let words = std::array::from_fn(|_| {
            let mut word = vec![shape.domain.zero(); shape.items];
            shape.domain.random(prg, &mut word);
            word
        });
        for (word, choices) in words
            .iter()
            .zip(choices.chunks_mut(shape.bits() * shape.blocks()))
        {
            digits(shape, word, choices);
        }
        if let Some(extra) = choices.last_mut() {
            prg.fill_u128(std::slice::from_mut(extra));
        }
        Self { words, choices }
    }
}

/// Bits of words, highest first, each packed 128 a choice word.
fn digits<D: Domain>(shape: &Shape<D>, words: &[D::E], choices: &mut [u128]) {
    let blocks = shape.blocks();
    let mut rows = Box::new([Row::default(); KAPPA]);
    let mut columns = Zeroizing::new([0u128; BLOCK * MAX_BLOCKS]);
    for (group, words) in words.chunks(BLOCK * MAX_BLOCKS).enumerate() {
        for (block, words) in words.chunks(BLOCK).enumerate() {
            for (row, word) in rows.iter_mut().zip(words) {
                if let Some(slot) = row.get_mut(block) {
                    *slot = word.to_u128();
                }
            }
        }
        let columns = columns.get_mut(..words.len()).unwrap_or_default();
        transpose(&rows, columns);
        for (block, columns) in columns.chunks(BLOCK).enumerate() {
            let bits = columns.get(..shape.bits()).unwrap_or_default();
            for (position, bit) in bits.iter().rev().enumerate() {
                let index = position * blocks + group * MAX_BLOCKS + block;
                if let Some(slot) = choices.get_mut(index) {
                    *slot = *bit;
                }
            }
        }
    }
    rows.as_flattened_mut().zeroize();
}

/// Sums of a party's shares of the products so far: those of the two words, and of each extra bit.
pub struct Partial<E: Element> {
    words: [Vec<E>; WORDS],
    /// Bit after bit.
    extra: Vec<E>,
}

impl<E: Element> Drop for Partial<E> {
    fn drop(&mut self) {
        self.words.iter_mut().for_each(|w| w.iter_mut().zeroize());
        self.extra.iter_mut().zeroize();
    }
}

impl<E: Element> Partial<E> {
    /// Nothing yet.
    pub fn new<D: Domain<E = E>>(shape: &Shape<D>) -> Self {
        Self {
            words: std::array::from_fn(|_| vec![E::default(); shape.items]),
            extra: vec![E::default(); EXTRA * shape.items],
        }
    }

    /// Adds shares for a block of OTs: doubles the sum and adds, as bits come highest first.
    fn absorb<D: Domain<E = E>>(&mut self, shape: &Shape<D>, block: usize, shares: &[E]) {
        let (word, _, items) = shape.place(block);
        let first = items * BLOCK;
        let sums = self
            .words
            .get_mut(word)
            .and_then(|w| w.get_mut(first..first + BLOCK));
        let domain = &shape.domain;
        for (sum, share) in sums.unwrap_or_default().iter_mut().zip(shares) {
            *sum = domain.add(domain.add(*sum, *sum), *share);
        }
    }

    /// Adds another party's products.
    pub fn add<D: Domain<E = E>>(&mut self, domain: &D, other: &Self) {
        for (words, theirs) in self.words.iter_mut().zip(&other.words) {
            domain.add_assign(words, theirs);
        }
        domain.add_assign(&mut self.extra, &other.extra);
    }

    /// Our words b and b', and our shares of the products by all parties' words, of which these are the sums towards and from all
    /// others; `a`: our factors; `factors` makes g and g', the same at all parties.
    pub fn finish<D: Domain<E = E>>(
        mut self,
        shape: &Shape<D>,
        operands: &Operands<E>,
        a: &[E],
        factors: &mut Prg,
    ) -> ([Vec<E>; WORDS], [Vec<E>; WORDS]) {
        let domain = &shape.domain;
        let gamma = operands.choices.last().copied().unwrap_or(0);
        let one = domain.one().to_u128();
        let mut words = operands.words.clone();
        let mut products = std::mem::take(&mut self.words);
        let mut factor = vec![domain.zero(); shape.items];
        let mut term = vec![domain.zero(); shape.items];
        for (word, product) in words.iter_mut().zip(&mut products) {
            for (e, shares) in self.extra.chunks(shape.items.max(1)).enumerate() {
                domain.random(factors, &mut factor);
                term.copy_from_slice(shares);
                domain.mul_assign(&mut term, &factor);
                domain.add_assign(product, &term);
                let mask = (gamma >> e & 1).wrapping_neg() & one;
                domain.mul_scalar_assign(&mut factor, E::from_u128_wrapping(mask));
                domain.add_assign(word, &factor);
            }
            term.copy_from_slice(a);
            domain.mul_assign(&mut term, word);
            domain.add_assign(product, &term);
        }
        factor.iter_mut().zeroize();
        term.iter_mut().zeroize();
        (words, products)
    }
}

/// The sender's end, after the check of the batch: appends the payload for its words `a`, and adds our shares to `partial`.
///
/// # Errors
/// [`OtError::Usage`] if there are not as many words as items.
pub fn send<D: Domain>(
    ot: &Sender,
    batch: &SenderBatch,
    shape: &Shape<D>,
    a: &[D::E],
    out: &mut Vec<u8>,
    partial: &mut Partial<D::E>,
) -> Result<(), OtError> {
    if a.len() != shape.items {
        return Err(OtError::Usage(format!(
            "{} words for {} products",
            a.len(),
            shape.items
        )));
    }
    let domain = &shape.domain;
    let count = shape.choice_words();
    let mut sums = Partial::new(shape);
    let mut zeros = Zeroizing::new([0u128; BLOCK * MAX_BLOCKS]);
    let mut ones = Zeroizing::new([0u128; BLOCK * MAX_BLOCKS]);
    let mut shares = vec![domain.zero(); BLOCK.max(shape.items)];
    let mut words = vec![domain.zero(); BLOCK.max(shape.items)];
    // What is sent and kept for one word and its two strings.
    let encode = |zero: u128, one: u128, a: D::E| {
        let zero = domain.from_u128(zero);
        let difference = domain.sub(zero, domain.from_u128(one));
        (domain.add(difference, a), domain.neg(zero))
    };
    out.reserve(shape.payload_bytes());
    for tile in 0..count.div_ceil(MAX_BLOCKS) {
        let first = tile * MAX_BLOCKS;
        let used = BLOCK * (count - first).min(MAX_BLOCKS);
        let zeros = zeros.get_mut(..used).unwrap_or_default();
        let ones = ones.get_mut(..used).unwrap_or_default();
        ot.batch_strings(batch, tile, zeros, ones);
        for (block, (zeros, ones)) in (first..).zip(zeros.chunks(BLOCK).zip(ones.chunks(BLOCK))) {
            if block == shape.word_blocks() {
                let strings = zeros.iter().zip(ones).take(EXTRA);
                for ((zero, one), sums) in strings.zip(sums.extra.chunks_mut(shape.items)) {
                    let mut streams = stretch(*zero, shape.items);
                    let mut others = stretch(*one, shape.items);
                    let each = words.iter_mut().zip(sums).zip(a);
                    for (((word, sum), a), (zero, one)) in
                        each.zip(streams.iter().zip(others.iter()))
                    {
                        (*word, *sum) = encode(*zero, *one, *a);
                    }
                    streams.zeroize();
                    others.zeroize();
                    for words in words.get(..shape.items).unwrap_or_default().chunks(BLOCK) {
                        pack_words(words, domain.bits(), out);
                    }
                }
                continue;
            }
            let (_, j, items) = shape.place(block);
            let width = shape.width(j);
            let low = u128::MAX >> (128 - width);
            let a = a
                .get(items * BLOCK..(items + 1) * BLOCK)
                .unwrap_or_default();
            let each = words.iter_mut().zip(&mut shares).zip(a);
            for (((word, share), a), (zero, one)) in each.zip(zeros.iter().zip(ones)) {
                let sent;
                (sent, *share) = encode(*zero, *one, *a);
                *word = D::E::from_u128_wrapping(sent.to_u128() & low);
            }
            pack_words(words.get(..BLOCK).unwrap_or_default(), width, out);
            sums.absorb(shape, block, shares.get(..BLOCK).unwrap_or_default());
        }
    }
    shares.iter_mut().zeroize();
    partial.add(domain, &sums);
    Ok(())
}

/// A word of a string for every item.
fn stretch(string: u128, items: usize) -> Zeroizing<Vec<u128>> {
    let mut words = Zeroizing::new(vec![0; items]);
    Key::new(&string.to_le_bytes()).stream(0, 0, &mut words);
    words
}

/// The receiver's end: adds our shares to `partial`.
///
/// # Errors
/// [`OtError::Length`]; [`OtError::Message`] for a word that is no element.
pub fn receive<D: Domain>(
    ot: &Receiver,
    batch: &ReceiverBatch,
    shape: &Shape<D>,
    choices: &[u128],
    message: &[u8],
    partial: &mut Partial<D::E>,
) -> Result<(), OtError> {
    check_length("payloads of products", message, shape.payload_bytes())?;
    let domain = &shape.domain;
    let count = shape.choice_words();
    let mut sums = Partial::new(shape);
    let mut strings = Zeroizing::new([0u128; BLOCK * MAX_BLOCKS]);
    let mut shares = vec![domain.zero(); BLOCK];
    let mut words = vec![domain.zero(); BLOCK.max(shape.items)];
    let mut rest = message;
    let mut take = |width: u32, words: &mut [D::E]| {
        let (now, later) = rest.split_at((width as usize * words.len() / 8).min(rest.len()));
        rest = later;
        unpack_words(now, width, words);
    };
    let mut valid = true;
    // Our share, for the word received, the string that we have, and a mask for our choice.
    let mut decode = |word: D::E, string: u128, mask: u128| {
        let word = word.to_u128();
        valid &= domain.from_u128(word).to_u128() == word;
        let chosen = D::E::from_u128_wrapping(word & mask);
        domain.add(domain.from_u128(string), chosen)
    };
    for tile in 0..count.div_ceil(MAX_BLOCKS) {
        let first = tile * MAX_BLOCKS;
        let used = BLOCK * (count - first).min(MAX_BLOCKS);
        let strings = strings.get_mut(..used).unwrap_or_default();
        ot.batch_strings(batch, tile, strings);
        for (block, strings) in (first..).zip(strings.chunks(BLOCK)) {
            let choice = choices.get(block).copied().unwrap_or(0);
            if block == shape.word_blocks() {
                let extra = sums.extra.chunks_mut(shape.items).enumerate();
                for ((e, sums), string) in extra.zip(strings) {
                    let words = words.get_mut(..shape.items).unwrap_or_default();
                    words
                        .chunks_mut(BLOCK)
                        .for_each(|words| take(domain.bits(), words));
                    let mask = (choice >> e & 1).wrapping_neg();
                    let stream = stretch(*string, shape.items);
                    for ((sum, word), string) in sums.iter_mut().zip(words).zip(stream.iter()) {
                        *sum = decode(*word, *string, mask);
                    }
                }
                continue;
            }
            let words = words.get_mut(..BLOCK).unwrap_or_default();
            take(shape.width(shape.place(block).1), words);
            let each = shares.iter_mut().zip(words).zip(strings);
            for (i, ((share, word), string)) in each.enumerate() {
                *share = decode(*word, *string, (choice >> i & 1).wrapping_neg());
            }
            sums.absorb(shape, block, &shares);
        }
    }
    shares.iter_mut().zeroize();
    partial.add(domain, &sums);
    if valid {
        Ok(())
    } else {
        Err(OtError::Message(
            "a payload of products is no element of the field",
        ))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use keyquorum_math::{Z2k128, Zq};

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
        let operands = Operands::draw(&shape, &mut prg);
        let mut message = Vec::new();
        let ours = receiver
            .batch_masked(&operands.choices, 77, &mut message)
            .unwrap();
        let theirs = sender.batch(shape.choice_words(), &message).unwrap();
        sender
            .verify(&theirs, &[1; 16], &ours.prove(&[1; 16]))
            .unwrap();
        let mut a = vec![domain.zero(); items];
        domain.random(&mut prg, &mut a);
        let (mut payload, mut sent) = (Vec::new(), Partial::new(&shape));
        send(&sender, &theirs, &shape, &a, &mut payload, &mut sent).unwrap();
        assert_eq!(payload.len(), shape.payload_bytes());
        let (choices, mut received) = (&operands.choices, Partial::new(&shape));
        receive(&receiver, &ours, &shape, choices, &payload, &mut received).unwrap();
        // The sender has no words, the receiver no factors of its own.
        let nothing = Operands {
            words: std::array::from_fn(|_| vec![domain.zero(); items]),
            choices: Zeroizing::new(vec![0; shape.choice_words()]),
        };
        let zeros = vec![domain.zero(); items];
        let factors = || Prg::new([5; 16], 1);
        let (none, sent) = sent.finish(&shape, &nothing, &a, &mut factors());
        let (words, received) = received.finish(&shape, &operands, &zeros, &mut factors());
        assert_eq!(none[0], zeros);
        for ((word, sent), received) in words.iter().zip(&sent).zip(&received) {
            for (((a, b), x), y) in a.iter().zip(word).zip(sent).zip(received) {
                assert_eq!(domain.add(*x, *y).to_u128(), domain.mul(*a, *b).to_u128());
            }
        }
        assert_ne!(words, operands.words, "extra bits count");
        assert_ne!(words[0], words[1]);
        let mut again = Partial::new(&shape);
        assert!(receive(&receiver, &ours, &shape, choices, &payload[1..], &mut again).is_err());
        assert!(send(&sender, &theirs, &shape, &a[1..], &mut payload, &mut again).is_err());
    }

    #[test]
    fn shares_add_up_to_both_products() {
        products(Z2k128::new(112).unwrap(), 128);
        products(Z2k128::new(112).unwrap(), 1152);
        products(Zq::new((1 << 60) - 93).unwrap(), 1024);
        products(Zq::new((1 << 41) - 21).unwrap(), 128);
    }
}
