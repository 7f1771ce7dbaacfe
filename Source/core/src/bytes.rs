//! Bytes that are wiped when they are dropped.

use std::ops::{Deref, DerefMut};

use keyquorum_math::wipe;

/// A message.
#[derive(Default)]
pub struct SecretBytes(Vec<u8>);

impl SecretBytes {
    /// Takes them over.
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
        self.0.resize(self.0.capacity(), 0); // what was cut off before, too
        wipe(&mut self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::wipe;

    #[test]
    fn every_byte_is_wiped() {
        for length in 0..40 {
            let mut bytes = [0xa5u8; 48];
            wipe(&mut bytes[3..3 + length]);
            let wiped = bytes.iter().filter(|byte| **byte == 0).count();
            assert_eq!(wiped, length);
            assert!(bytes[3..3 + length].iter().all(|byte| *byte == 0));
        }
    }
}
