//! The secrets of an OT sender: Δ for the pads of a link, and the keys of MACs.

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::{KAPPA, OtError, entropy};

/// Bits of the key of MACs of packed bits.
pub const BIT_MAC_BITS: usize = 48;
/// Bits of the key of MACs of elements.
pub const ELEMENT_MAC_BITS: usize = 48;
/// Bits of both.
pub(crate) const MAC_ROWS: usize = BIT_MAC_BITS + ELEMENT_MAC_BITS;

/// The MAC keys of one party: the same towards all peers, and kept as long as shares are.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct MacKey {
    bits: u64,
    element: u64,
}

impl MacKey {
    /// The keys in 16 bytes, as they are stored: the key of bits is bits 0 to 47, that of elements bits 64 to 111.
    pub fn from_bytes(bytes: &[u8; 16]) -> Self {
        let word = Zeroizing::new(u128::from_le_bytes(*bytes));
        Self {
            bits: *word as u64 & ((1 << BIT_MAC_BITS) - 1),
            element: (*word >> 64) as u64 & ((1 << ELEMENT_MAC_BITS) - 1),
        }
    }

    /// A random key.
    ///
    /// # Errors
    /// [`OtError::Entropy`].
    pub fn random() -> Result<Self, OtError> {
        let mut bytes = Zeroizing::new([0u8; 16]);
        entropy(bytes.as_mut_slice())?;
        Ok(Self::from_bytes(&bytes))
    }

    /// The key of MACs of bits, [`BIT_MAC_BITS`] bits.
    pub fn bits(&self) -> u64 {
        self.bits
    }

    /// The key of MACs of elements, [`ELEMENT_MAC_BITS`] bits.
    pub fn element(&self) -> u64 {
        self.element
    }
}

/// All secrets of the OT sender of one link: Δ, then the keys of MACs where the link has them. One bit a base OT.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct LinkKey {
    pads: u128,
    macs: Option<MacKey>,
}

impl LinkKey {
    /// A random Δ, beside these keys of MACs.
    ///
    /// # Errors
    /// [`OtError::Entropy`].
    pub fn random(macs: Option<MacKey>) -> Result<Self, OtError> {
        let mut bytes = Zeroizing::new([0u8; 16]);
        entropy(bytes.as_mut_slice())?;
        Ok(Self::with_pads(u128::from_le_bytes(*bytes), macs))
    }

    /// A given Δ. Δ must be uniform, known to no other party, and of this link alone: pads of OTs are only as secret as Δ. A Δ that is a
    /// function of the keys of MACs, or the same on two links, is not secret enough.
    pub fn with_pads(pads: u128, macs: Option<MacKey>) -> Self {
        Self { pads, macs }
    }

    /// Δ.
    pub(crate) fn pads(&self) -> u128 {
        self.pads
    }

    /// The keys of MACs.
    pub fn macs(&self) -> Option<&MacKey> {
        self.macs.as_ref()
    }

    /// Number of bits, hence of base OTs.
    pub(crate) fn len(&self) -> usize {
        KAPPA + self.macs.as_ref().map_or(0, |_| MAC_ROWS)
    }

    /// Bit `i`: of Δ, then of the key of bits, then of that of elements.
    #[inline]
    pub(crate) fn bit(&self, i: usize) -> Result<u8, OtError> {
        let mac = |shift: usize, word: u64| (word >> shift & 1) as u8;
        match (&self.macs, i.checked_sub(KAPPA)) {
            (_, None) => Ok((self.pads >> i & 1) as u8),
            (Some(macs), Some(j)) if j < BIT_MAC_BITS => Ok(mac(j, macs.bits)),
            (Some(macs), Some(j)) if j < MAC_ROWS => Ok(mac(j - BIT_MAC_BITS, macs.element)),
            _ => Err(OtError::Internal("a bit that a link's key does not have")),
        }
    }

    /// The `k` bits from bit `first` on.
    pub(crate) fn digit(&self, first: usize, k: usize) -> Result<usize, OtError> {
        (0..k).try_fold(0, |digit, j| {
            Ok(digit | usize::from(self.bit(first + j)?) << j)
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;

    #[test]
    fn stored_keys_keep_their_meaning() {
        let key = MacKey::from_bytes(&std::array::from_fn(|i| i as u8 + 0x80));
        assert_eq!(key.bits(), 0x8584_8382_8180);
        assert_eq!(key.element(), 0x8d8c_8b8a_8988);
        let link = LinkKey::with_pads(1 << 127 | 5, Some(key.clone()));
        assert_eq!(link.len(), 224);
        assert_eq!(link.digit(0, 4).unwrap(), 5);
        assert_eq!(link.digit(124, 4).unwrap(), 8);
        assert_eq!(link.digit(136, 8).unwrap(), 0x81);
        assert_eq!(link.digit(176, 8).unwrap(), 0x88);
        assert_eq!(
            (0..48).fold(0, |k, j| k | u64::from(link.bit(128 + j).unwrap()) << j),
            key.bits()
        );
        assert_eq!(
            (0..48).fold(0, |k, j| k | u64::from(link.bit(176 + j).unwrap()) << j),
            key.element()
        );
        for (link, beyond) in [(&link, 224), (&LinkKey::with_pads(!0, None), 128)] {
            assert!(matches!(link.bit(beyond), Err(OtError::Internal(_))));
        }
    }
}
