//! What either end keeps of the set-up of a link.

use std::ops::Range;

use crate::aes::Key;
use crate::{LinkKey, Parameters};

/// What an OT receiver keeps of the set-up: all PRF keys.
pub struct ReceiverLink {
    pub(crate) parameters: Parameters,
    pub(crate) keys: Vec<Key>,
}

/// What an OT sender keeps of the set-up: its key, and all PRF keys but one a group.
pub struct SenderLink {
    pub(crate) parameters: Parameters,
    pub(crate) key: LinkKey,
    pub(crate) keys: Vec<Key>,
}

/// Either end of a link, as expansion sees it: PRF keys, 2^k a group.
pub trait Link {
    /// Slots at the start of a group whose PRF key this end does not have.
    const MISSING: usize;

    /// Parameters of the link.
    fn parameters(&self) -> Parameters;

    /// All PRF keys, group after group.
    fn keys(&self) -> &[Key];

    /// PRF keys of the groups for these bits of the sender's key; `None` if the link has no such groups.
    fn keys_of(&self, bits: Range<usize>) -> Option<&[Key]> {
        let k = self.parameters().k();
        self.keys().get((bits.start / k) << k..(bits.end / k) << k)
    }
}

impl Link for ReceiverLink {
    const MISSING: usize = 0;

    fn parameters(&self) -> Parameters {
        self.parameters
    }

    fn keys(&self) -> &[Key] {
        &self.keys
    }
}

impl Link for SenderLink {
    const MISSING: usize = 1;

    fn parameters(&self) -> Parameters {
        self.parameters
    }

    fn keys(&self) -> &[Key] {
        &self.keys
    }
}
