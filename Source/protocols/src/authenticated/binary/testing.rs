//! What tests of sessions see of a party, and change in it.

use keyquorum_math::Prg;
use zeroize::Zeroizing;

use super::preprocessing::Preprocessing;
use super::verify::Verifier;
use super::{AuthenticatedBits, MAC_BITS};
use crate::Channel;
use crate::adversary::honest;
use crate::error::Result;
use crate::value::Share;

/// Adds a share of bits to another one.
///
/// # Errors
/// [`EngineError::Internal`](crate::error::EngineError::Internal) for shares of different shapes.
pub fn add_bits(share: &mut Share<u64>, other: &Share<u64>) -> Result<()> {
    super::add(share, other)
}

impl AuthenticatedBits {
    /// Our share of the key, each bit spread over a lane.
    pub fn key(&mut self) -> &mut [u64; MAC_BITS] {
        &mut self.key
    }

    /// Goes on as if the peers' keys were found to be the same towards all.
    pub fn leave_out_key_check(&mut self) {
        self.keys_checked = true;
    }

    /// Asks for so many lanes of triples.
    pub fn need_triples(&mut self, lanes: usize) {
        self.preprocessing.ands.need(lanes);
    }

    /// Triples that were made.
    ///
    /// # Errors
    /// [`EngineError::Usage`](crate::error::EngineError::Usage) if there are fewer.
    pub fn take_triples(&mut self, lanes: usize) -> Result<[Share<u64>; 3]> {
        self.preprocessing.ands.take(lanes)
    }

    /// Party `me`, whose links may have different keys.
    pub fn with_key(
        me: usize,
        channels: Vec<Option<Channel>>,
        pairs: Vec<Option<(Prg, Prg)>>,
        private: Prg,
        key: [u64; MAC_BITS],
    ) -> Self {
        let parties = channels.len();
        Self {
            me,
            parties,
            channels,
            pairs,
            keys_checked: false,
            key: Zeroizing::new(key),
            private,
            verifier: Verifier::default(),
            opens: false,
            exposed: false,
            guard: std::sync::Arc::default(),
            preprocessing: Preprocessing::new(parties),
            adversary: honest(),
        }
    }
}
