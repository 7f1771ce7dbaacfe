//! Bytes that are wiped when they are dropped.

use std::ops::{Deref, DerefMut};

use zeroize::Zeroize;

/// A message. Wiped in words: byte by byte, as `Zeroizing` of bytes does, takes eight times as long.
#[derive(Default)]
pub(crate) struct SecretBytes(Vec<u8>);

impl SecretBytes {
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl Deref for SecretBytes {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl DerefMut for SecretBytes {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}

impl Drop for SecretBytes {
    fn drop(&mut self) {
        let (head, words, tail) = bytemuck::pod_align_to_mut::<u8, u64>(&mut self.0);
        head.zeroize();
        words.zeroize();
        tail.zeroize();
    }
}
