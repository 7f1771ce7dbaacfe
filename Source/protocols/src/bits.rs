//! What computes on packed bits.

use keyquorum_math::BitLanes;

use super::{BITS, ClearTask, Protocol, ShareTask};
use crate::error::Result;
use crate::task::Step;
use crate::value::Share;

/// A protocol, or the part of one, that computes on packed bits: vectors of lanes of 64 bits.
pub trait BitProtocol: Sized + Send + 'static {
    /// Component vectors of a share.
    ///
    /// # Errors
    /// As [`super::Party::bits`].
    fn bit_parts(&mut self) -> Result<usize>;

    /// The share of public bits.
    fn constant_bits(&mut self, values: &[u64]) -> Result<Share<u64>> {
        let mut share = Share::zeros(self.bit_parts()?, values.len());
        self.add_clear_bits(&mut share, values)?;
        Ok(share)
    }

    /// Adds public bits to a share.
    ///
    /// # Errors
    /// As [`Protocol::add_clear`].
    fn add_clear_bits(&mut self, share: &mut Share<u64>, values: &[u64]) -> Result<()>;

    /// Lanes of uniform secret bits: done, if that needs no message.
    fn random_bits(&mut self, lanes: usize) -> Result<Step<Self, Share<u64>>>;

    /// ANDs of operands of equal sizes.
    fn and(&mut self, a: &Share<u64>, b: &Share<u64>) -> Result<ShareTask<Self, u64>>;

    /// Opens bits to everybody.
    fn open_bits(&mut self, a: &Share<u64>) -> Result<ClearTask<Self, u64>>;

    /// Shares lanes of bits of `owner`; `values` is `Some` at the owner only.
    fn input_bits(
        &mut self,
        owner: usize,
        lanes: usize,
        values: Option<Vec<u64>>,
    ) -> Result<ShareTask<Self, u64>>;
}

/// Parties that work on packed bits as on elements: lanes are a domain as any other.
pub trait BitsAsElements: Protocol<BitLanes> {}

impl<P: BitsAsElements> BitProtocol for P {
    fn bit_parts(&mut self) -> Result<usize> {
        Ok(self.parts())
    }

    fn add_clear_bits(&mut self, share: &mut Share<u64>, values: &[u64]) -> Result<()> {
        self.add_clear(&BITS, share, values)
    }

    fn random_bits(&mut self, lanes: usize) -> Result<Step<Self, Share<u64>>> {
        self.random(&BITS, lanes)
    }

    fn and(&mut self, a: &Share<u64>, b: &Share<u64>) -> Result<ShareTask<Self, u64>> {
        self.dot(&BITS, a, b, 1)
    }

    fn open_bits(&mut self, a: &Share<u64>) -> Result<ClearTask<Self, u64>> {
        self.open(&BITS, a)
    }

    fn input_bits(
        &mut self,
        owner: usize,
        lanes: usize,
        values: Option<Vec<u64>>,
    ) -> Result<ShareTask<Self, u64>> {
        self.input(&BITS, owner, lanes, values)
    }
}
