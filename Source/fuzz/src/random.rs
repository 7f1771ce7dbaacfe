//! Random numbers that a seed determines. Not for secrets.

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
pub struct Random {
    state: u64,
}

impl Random {
    /// The numbers of this seed for this target.
    #[must_use]
    pub fn new(seed: u64, target: &str) -> Self {
        let state = target.bytes().fold(seed, |state, byte| {
            (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self { state }
    }

    /// 64 bits.
    pub fn word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `limit`; 0 if that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        if limit == 0 {
            return 0;
        }
        ((u128::from(self.word()) * limit as u128) >> 64) as usize
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        self.word() as u8
    }
}
