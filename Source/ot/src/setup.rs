//! Set-up of a link: base OTs and punctured PRFs, as two messages each way.
//!
//! Both ends start at once: [`Inbound::start`] at the OT receiver (sender of the base OTs), [`Outbound::start`] at the OT
//! sender (receiver of the base OTs). They exchange their messages; the OT receiver finishes and sends the PRFs; the OT
//! sender finishes with them.

use zeroize::Zeroizing;

use crate::aes::Key;
use crate::base::{BaseReceiver, BaseSender, RECEIVER_BYTES, SENDER_BYTES};
use crate::punctured::{full, message_bytes, punctured};
use crate::{KAPPA, OtError, entropy};

/// The trade of traffic against work: 128/k bits and 2^k/k blocks of AES an OT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    k: usize,
}

impl Parameters {
    /// Parameter k of SoftSpokenOT: 1, 2, 4 or 8.
    ///
    /// # Errors
    /// [`OtError::Usage`] for another k.
    pub fn new(k: usize) -> Result<Self, OtError> {
        if matches!(k, 1 | 2 | 4 | 8) {
            return Ok(Self { k });
        }
        Err(OtError::Usage(format!(
            "SoftSpokenOT with k = {k}: choose 1, 2, 4 or 8"
        )))
    }

    /// The parameter k.
    pub fn k(self) -> usize {
        self.k
    }

    /// Number of small-field VOLEs: 128/k.
    pub fn groups(self) -> usize {
        KAPPA / self.k
    }

    /// Bytes of [`Inbound::start`].
    pub fn inbound_bytes(self) -> usize {
        SENDER_BYTES
    }

    /// Bytes of [`Outbound::start`].
    pub fn outbound_bytes(self) -> usize {
        RECEIVER_BYTES
    }

    /// Bytes of [`Inbound::finish`].
    pub fn prf_bytes(self) -> usize {
        message_bytes(self.k)
    }
}

impl Default for Parameters {
    fn default() -> Self {
        Self { k: 4 }
    }
}

/// What an OT receiver keeps of the set-up: all PRF keys.
pub struct ReceiverLink {
    pub(crate) parameters: Parameters,
    pub(crate) keys: Vec<Key>,
}

/// What an OT sender keeps of the set-up: Δ, and all PRF keys but one a group.
pub struct SenderLink {
    pub(crate) parameters: Parameters,
    pub(crate) delta: Zeroizing<u128>,
    pub(crate) keys: Vec<Key>,
}

/// The OT receiver's end during set-up.
pub struct Inbound {
    parameters: Parameters,
    base: BaseSender,
}

impl Inbound {
    /// Starts; the message goes to the OT sender.
    ///
    /// # Errors
    /// [`OtError::Entropy`].
    pub fn start(parameters: Parameters) -> Result<(Self, Vec<u8>), OtError> {
        let (base, message) = BaseSender::start()?;
        Ok((Self { parameters, base }, message))
    }

    /// Takes the message of [`Outbound::start`]; the result goes to the OT sender.
    ///
    /// # Errors
    /// [`OtError`] if the message is malformed.
    pub fn finish(self, context: &[u8], theirs: &[u8]) -> Result<(ReceiverLink, Vec<u8>), OtError> {
        let strings = self.base.finish(context, theirs)?;
        let (seeds, message) = full(self.parameters.k, &strings)?;
        let link = ReceiverLink {
            parameters: self.parameters,
            keys: seeds.iter().map(|seed| Key::new(seed)).collect(),
        };
        Ok((link, message))
    }
}

/// The OT sender's end during set-up.
pub struct Outbound {
    parameters: Parameters,
    delta: Zeroizing<u128>,
    base: BaseReceiver,
}

impl Outbound {
    /// Draws Δ and starts; the message goes to the OT receiver.
    ///
    /// # Errors
    /// [`OtError::Entropy`].
    pub fn start(parameters: Parameters, context: &[u8]) -> Result<(Self, Vec<u8>), OtError> {
        let mut bytes = Zeroizing::new([0u8; 16]);
        entropy(bytes.as_mut_slice())?;
        Self::start_with(
            parameters,
            context,
            Zeroizing::new(u128::from_le_bytes(*bytes)),
        )
    }

    /// As [`Outbound::start`], with the caller's Δ: for a key that is the same towards all peers.
    ///
    /// # Errors
    /// [`OtError::Entropy`].
    pub fn start_with(
        parameters: Parameters,
        context: &[u8],
        delta: Zeroizing<u128>,
    ) -> Result<(Self, Vec<u8>), OtError> {
        let (base, message) = BaseReceiver::start(context, !*delta)?;
        let state = Self {
            parameters,
            delta,
            base,
        };
        Ok((state, message))
    }

    /// Takes the messages of [`Inbound::start`] and [`Inbound::finish`].
    ///
    /// # Errors
    /// [`OtError`] if a message is malformed, or the PRFs are not consistent.
    pub fn finish(self, context: &[u8], point: &[u8], prfs: &[u8]) -> Result<SenderLink, OtError> {
        let strings = self.base.finish(context, point)?;
        let seeds = punctured(self.parameters.k, *self.delta, &strings, prfs)?;
        Ok(SenderLink {
            parameters: self.parameters,
            delta: self.delta,
            keys: seeds.iter().map(|seed| Key::new(seed)).collect(),
        })
    }
}
