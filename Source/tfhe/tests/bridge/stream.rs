//! The expansion of a seed, written from `docs/pages/formats.md` without TFHE-rs.

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};

/// AES-128 with the seed as its key, on the block numbers 0, 1, 2 and so on as 16 little-endian bytes.
pub struct Stream {
    cipher: Aes128,
    counter: u128,
    left: Vec<u64>,
}

impl Stream {
    pub fn new(seed: [u8; 16]) -> Self {
        Self {
            cipher: Aes128::new(&seed.into()),
            counter: 0,
            left: vec![],
        }
    }

    pub fn word(&mut self) -> u64 {
        if self.left.is_empty() {
            let mut block = self.counter.to_le_bytes().into();
            self.cipher.encrypt_block(&mut block);
            let both = u128::from_le_bytes(block.into());
            self.left = vec![(both >> 64) as u64, both as u64];
            self.counter += 1;
        }
        self.left.pop().unwrap()
    }

    pub fn words(&mut self, count: usize) -> Vec<u64> {
        (0..count).map(|_| self.word()).collect()
    }

    /// TUniform(b): uniform in [-2^b, 2^b], both ends with half the weight.
    pub fn tuniform(&mut self, b: u32) -> u64 {
        let v = self.word() >> (62 - b);
        ((v >> 1) + (v & 1)).wrapping_sub(1 << b)
    }
}
