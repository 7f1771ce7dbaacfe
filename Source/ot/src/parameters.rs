//! Parameters of a link.

use crate::base::BaseOt;
use crate::key::MAC_ROWS;
use crate::punctured::message_bytes;
use crate::{KAPPA, OtError};

/// The trade-off between traffic and work: 128/k bits and 2^k/k blocks of AES an OT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    k: usize,
    macs: bool,
    pub(crate) base: BaseOt,
}

impl Parameters {
    /// Parameter k of SoftSpokenOT: 1, 2, 4 or 8; for OTs alone.
    ///
    /// # Errors
    /// [`OtError::Usage`] for another k.
    pub fn new(k: usize) -> Result<Self, OtError> {
        if matches!(k, 1 | 2 | 4 | 8) {
            return Ok(Self {
                k,
                ..Self::default()
            });
        }
        Err(OtError::Usage(format!(
            "SoftSpokenOT with k = {k}: choose 1, 2, 4 or 8"
        )))
    }

    /// The same, for links that have keys of MACs.
    pub fn with_macs(self) -> Self {
        Self { macs: true, ..self }
    }

    /// The same, with base OTs of this kind.
    pub fn with_base(self, base: BaseOt) -> Self {
        Self { base, ..self }
    }

    /// Base OTs of a link.
    pub(crate) fn base_ots(self) -> usize {
        KAPPA + if self.macs { MAC_ROWS } else { 0 }
    }

    /// The parameter k.
    pub fn k(self) -> usize {
        self.k
    }

    /// Number of small-field VOLEs that make pads: 128/k.
    pub fn groups(self) -> usize {
        KAPPA / self.k
    }

    /// Bytes of [`Inbound::start`](crate::Inbound::start).
    pub fn inbound_bytes(self) -> usize {
        self.base.first_bytes()
    }

    /// Bytes of [`Outbound::start`](crate::Outbound::start).
    pub fn outbound_bytes(self) -> usize {
        self.base_ots() * self.base.receiver_bytes()
    }

    /// Bytes of [`Inbound::finish`](crate::Inbound::finish).
    pub fn answer_bytes(self) -> usize {
        self.base_answer_bytes() + message_bytes(self.k, self.base_ots())
    }

    /// How many of them belong to the base OTs.
    pub(crate) fn base_answer_bytes(self) -> usize {
        self.base_ots() * self.base.answer_bytes()
    }
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            k: 4,
            macs: false,
            base: BaseOt::default(),
        }
    }
}
