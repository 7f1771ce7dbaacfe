//! Products of vectors with a short fixed key: one party has α of [`KEY_BITS`] bits, the other has x, they get shares of
//! α·x in Z_2^l or F_q. MACs are made of them.
//!
//! The punctured PRFs of a link (leaf Δ_c of group c is unknown to the party with digit Δ_c of α) give, without messages, a vector oblivious
//! linear evaluation with every small digit Δ_c: with leaves r_y, u = Σ r_y and v = Σ y·r_y at one party, the other computes
//! w = Σ (Δ_c − y)·r_y = Δ_c·u − v, in which the missing leaf has the factor 0. Roy, "SoftSpokenOT" (CRYPTO 2022), section 3,
//! with integers in place of the small field. One correction x − u a digit makes all digits multiply the same x: twelve words
//! a product for 48 bits, where one bit at a time takes 48 (Keller, Orsini, Scholl, "MASCOT", CCS 2016, figure 3).
//!
//! A party that uses different x for different digits makes the result wrong by multiples of digits of α: callers must check
//! random linear combinations of what they authenticate, as MASCOT does.

use std::ops::Range;
use std::sync::Arc;

use keyquorum_math::{Domain, DomainKind};
use zeroize::{Zeroize, Zeroizing};

use crate::link::Link;
use crate::{
    BIT_MAC_BITS, ELEMENT_MAC_BITS, KAPPA, OtError, ReceiverLink, SenderLink, check_length, uneven,
};

/// Excluded: links of protocols with MACs have the keys.
const NO_MACS: OtError = OtError::Internal("products with MAC keys on a link without them");
/// Bits of α.
pub const KEY_BITS: u32 = ELEMENT_MAC_BITS as u32;
/// The bit of the link's key where α begins.
const FIRST_BIT: usize = KAPPA + BIT_MAC_BITS;
/// Words that are expanded in one go.
const CHUNK: usize = 1024;
/// Keeps these streams apart from those of the OT extension.
const STREAMS: u64 = 1 << 63;

/// Bytes of the message for `n` products over this domain on a link with these parameters.
pub fn message_bytes<D: Domain>(domain: &D, n: usize, parameters: crate::Parameters) -> usize {
    let digits = KEY_BITS as usize / parameters.k();
    (0..n.div_ceil(CHUNK))
        .map(|i| digits * domain.wire_bytes((n - i * CHUNK).min(CHUNK)))
        .sum()
}

/// Bits of a string that count for a field, with parameter k. A word of 128 bits holds the weighted sum of all strings, whose
/// weights add up to less than 2^(2k + 1). With more bits, residues are closer to uniform.
pub fn string_bits(k: usize) -> u32 {
    127 - 2 * k as u32
}

fn string_mask<D: Domain>(domain: &D, k: usize) -> u128 {
    match domain.kind() {
        DomainKind::Fq(_) => (1 << string_bits(k)) - 1,
        _ => u128::MAX,
    }
}

/// The bits of the link's key that are α.
const KEY: Range<usize> = FIRST_BIT..FIRST_BIT + KEY_BITS as usize;

/// One end of one stream of products: [`Multiplicand`] or [`FixedKey`].
pub struct Stream<L> {
    link: Arc<L>,
    stream: u64,
    /// Products that are made.
    position: u64,
}

/// The party that has the vectors.
pub type Multiplicand = Stream<ReceiverLink>;

/// The party that has the key.
pub type FixedKey = Stream<SenderLink>;

impl<L: Link> Stream<L> {
    /// Opens stream `stream` of a link; no stream may be opened twice.
    pub fn new(link: Arc<L>, stream: u64) -> Self {
        Self {
            link,
            stream: stream | STREAMS,
            position: 0,
        }
    }

    /// Bytes of the message for `n` products.
    pub fn message_bytes<D: Domain>(&self, domain: &D, n: usize) -> usize {
        message_bytes(domain, n, self.link.parameters())
    }
}

impl Multiplicand {
    /// Multiplies α with `x`: appends the message, returns our shares.
    ///
    /// # Errors
    /// [`OtError::Internal`] on a link without keys of MACs.
    pub fn multiply<D: Domain>(
        &mut self,
        domain: &D,
        x: &[D::E],
        out: &mut Vec<u8>,
    ) -> Result<Vec<D::E>, OtError> {
        let k = self.link.parameters.k();
        let mask = string_mask(domain, k);
        let mut shares = Vec::with_capacity(x.len());
        let mut string = Zeroizing::new([0u128; CHUNK]);
        let mut total = Zeroizing::new([0u128; CHUNK]);
        let mut weighted = Zeroizing::new([0u128; CHUNK]);
        for x in x.chunks(CHUNK) {
            let n = x.len();
            let mut sum = vec![domain.zero(); n];
            let mut weight = domain.one();
            let base = domain.from_u128(1 << k);
            let keys = self.link.keys_of(KEY).ok_or(NO_MACS)?;
            for keys in keys.chunks_exact(1 << k) {
                total.fill(0);
                weighted.fill(0);
                // From the last leaf down: after leaf y the running total has been added y times for every leaf above.
                for (y, key) in keys.iter().enumerate().rev() {
                    let string = string.get_mut(..n).ok_or_else(uneven)?;
                    key.stream(self.stream, self.position, string);
                    for ((t, w), r) in total.iter_mut().zip(weighted.iter_mut()).zip(string.iter())
                    {
                        *t = t.wrapping_add(r & mask);
                        if y > 0 {
                            *w = w.wrapping_add(*t);
                        }
                    }
                }
                let mut correction = x.to_vec();
                let mut words: Vec<D::E> =
                    total.iter().take(n).map(|t| domain.from_u128(*t)).collect();
                domain.sub_assign(&mut correction, &words);
                domain.encode(&correction, out);
                correction.zeroize();
                for (word, w) in words.iter_mut().zip(weighted.iter()) {
                    *word = domain.from_u128(*w);
                }
                domain.mul_scalar_assign(&mut words, weight);
                domain.add_assign(&mut sum, &words);
                words.zeroize();
                weight = domain.mul(weight, base);
            }
            self.position += n as u64;
            shares.append(&mut sum);
        }
        Ok(shares)
    }
}

impl FixedKey {
    /// Our shares of α times the peer's `n` words.
    ///
    /// # Errors
    /// [`OtError::Length`]; [`OtError::Message`] for a word that is no element.
    pub fn multiply<D: Domain>(
        &mut self,
        domain: &D,
        n: usize,
        message: &[u8],
    ) -> Result<Vec<D::E>, OtError> {
        check_length(
            "products with a fixed key",
            message,
            self.message_bytes(domain, n),
        )?;
        let k = self.link.parameters.k();
        let mask = string_mask(domain, k);
        let field = matches!(domain.kind(), DomainKind::Fq(_));
        // Makes the factors of a field's strings non-negative; taken off again.
        let offset: u128 = if field { 1 << k } else { 0 };
        let mut shares = Vec::with_capacity(n);
        let mut string = Zeroizing::new([0u128; CHUNK]);
        let mut total = Zeroizing::new([0u128; CHUNK]);
        let mut weighted = Zeroizing::new([0u128; CHUNK]);
        let mut rest = message;
        while shares.len() < n {
            let count = (n - shares.len()).min(CHUNK);
            let mut sum = vec![domain.zero(); count];
            let mut weight = domain.one();
            let base = domain.from_u128(1 << k);
            let keys = self.link.keys_of(KEY).ok_or(NO_MACS)?;
            for (first, keys) in KEY.step_by(k).zip(keys.chunks_exact(1 << k)) {
                let digit = self.link.key.digit(first, k)? as u128;
                total.fill(0);
                weighted.fill(0);
                // Slot i has leaf i ⊕ Δ_c; slot 0 is the missing one.
                for (i, key) in keys.iter().enumerate().skip(1) {
                    let string = string.get_mut(..count).ok_or_else(uneven)?;
                    key.stream(self.stream, self.position, string);
                    let factor = digit.wrapping_sub(i as u128 ^ digit).wrapping_add(offset);
                    for ((t, w), r) in total.iter_mut().zip(weighted.iter_mut()).zip(string.iter())
                    {
                        let r = r & mask;
                        *t = t.wrapping_add(r);
                        *w = w.wrapping_add(r.wrapping_mul(factor));
                    }
                }
                let (now, later) = rest.split_at(domain.wire_bytes(count));
                rest = later;
                let mut words = vec![domain.zero(); count];
                domain
                    .decode(now, &mut words)
                    .map_err(|_| OtError::Message("a word of a product is no element"))?;
                domain.mul_scalar_assign(&mut words, domain.from_u128(digit));
                let mut ours: Vec<D::E> = weighted
                    .iter()
                    .take(count)
                    .map(|w| domain.from_u128(*w))
                    .collect();
                domain.add_assign(&mut words, &ours);
                for (word, t) in ours.iter_mut().zip(total.iter()) {
                    *word = domain.from_u128(t.wrapping_mul(offset));
                }
                domain.sub_assign(&mut words, &ours);
                ours.zeroize();
                domain.mul_scalar_assign(&mut words, weight);
                domain.add_assign(&mut sum, &words);
                words.zeroize();
                weight = domain.mul(weight, base);
            }
            self.position += count as u64;
            shares.append(&mut sum);
        }
        Ok(shares)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use keyquorum_math::{Element, Prg, Z2k64, Z2k128, Zq};

    use super::*;
    use crate::{Inbound, LinkKey, MacKey, Outbound, Parameters};

    fn links(k: usize) -> (Arc<ReceiverLink>, Arc<SenderLink>) {
        let parameters = Parameters::new(k).unwrap();
        let parameters = parameters.with_macs();
        let key = LinkKey::random(Some(MacKey::random().unwrap())).unwrap();
        let (inbound, point) = Inbound::start(parameters).unwrap();
        let (outbound, points) = Outbound::start(parameters, b"test", key).unwrap();
        let (receiver, prfs) = inbound.finish(b"test", &points).unwrap();
        let sender = outbound.finish(b"test", &point, &prfs).unwrap();
        (Arc::new(receiver), Arc::new(sender))
    }

    fn products<D: Domain>(domain: &D, k: usize) {
        let (receiver, sender) = links(k);
        let alpha = domain.from_u128(u128::from(sender.key.macs().unwrap().element()));
        let mut multiplicand = Multiplicand::new(receiver, 3);
        let mut fixed_key = FixedKey::new(sender, 3);
        let mut prg = Prg::new([7; 16], 0);
        for n in [1, 100, 2500] {
            let mut x = vec![domain.zero(); n];
            domain.random(&mut prg, &mut x);
            let mut message = Vec::new();
            let ours = multiplicand.multiply(domain, &x, &mut message).unwrap();
            assert_eq!(message.len(), multiplicand.message_bytes(domain, n));
            let theirs = fixed_key.multiply(domain, n, &message).unwrap();
            for ((a, b), x) in ours.iter().zip(&theirs).zip(&x) {
                assert_eq!(
                    domain.add(*a, *b).to_u128(),
                    domain.mul(alpha, *x).to_u128()
                );
            }
            assert!(fixed_key.multiply(domain, n + 1, &message).is_err());
        }
    }

    #[test]
    fn shares_add_up_to_the_product() {
        for k in [1, 2, 4, 8] {
            products(&Z2k128::new(112).unwrap(), k);
            products(&Zq::new((1 << 60) - 93).unwrap(), k);
        }
        products(&Z2k64::new(50).unwrap(), 4);
        products(&Zq::new((1 << 41) - 21).unwrap(), 4);
    }
}
