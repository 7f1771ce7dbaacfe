//! Bits, 64 to a lane.

use crate::codec;
use crate::domain::{DecodeError, Domain, DomainKind};
use crate::prg::Prg;

/// Vectors of bits, 64 to a lane: the ring F_2^64, added with XOR and multiplied with AND.
///
/// Bit `i` of a packed vector is bit `i % 64` of lane `i / 64` (see [`crate::bits`]). The image
/// of an integer is its parity in all 64 positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BitLanes;

impl Domain for BitLanes {
    type E = u64;

    fn kind(&self) -> DomainKind {
        DomainKind::Bits
    }

    fn zero(&self) -> u64 {
        0
    }

    fn one(&self) -> u64 {
        !0
    }

    #[inline]
    fn add(&self, a: u64, b: u64) -> u64 {
        a ^ b
    }

    #[inline]
    fn sub(&self, a: u64, b: u64) -> u64 {
        a ^ b
    }

    #[inline]
    fn neg(&self, a: u64) -> u64 {
        a
    }

    #[inline]
    fn mul(&self, a: u64, b: u64) -> u64 {
        a & b
    }

    fn from_i64(&self, v: i64) -> u64 {
        (v as u64 & 1).wrapping_neg()
    }

    fn from_u128(&self, v: u128) -> u64 {
        (v as u64 & 1).wrapping_neg()
    }

    fn invert(&self, a: u64) -> Option<u64> {
        (a == !0).then_some(a)
    }

    fn random(&self, prg: &mut Prg, out: &mut [u64]) {
        prg.fill_u64(out);
    }

    fn bits(&self) -> u32 {
        64
    }

    fn encode(&self, v: &[u64], out: &mut Vec<u8>) {
        codec::encode(v, 8, out);
    }

    fn decode(&self, bytes: &[u8], out: &mut [u64]) -> Result<(), DecodeError> {
        codec::decode(self.kind(), 8, u64::MAX, bytes, out)
    }
}
