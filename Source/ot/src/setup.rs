//! Set-up of a link: base OTs and punctured PRFs, as two messages each way.
//!
//! Both ends start at once: [`Inbound::start`] at the OT receiver (sender of the base OTs), [`Outbound::start`] at the OT
//! sender (receiver of the base OTs). They exchange their messages; the OT receiver finishes and sends its answer in the base OTs, if their
//! kind has one, and the PRFs; the OT sender finishes with them.

use crate::aes::Key;
use crate::base::{BaseReceiver, BaseSender};
use crate::punctured::{full, punctured};
use crate::{LinkKey, OtError, Parameters, ReceiverLink, SenderLink};

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
        let (base, message) = BaseSender::start(parameters.base)?;
        Ok((Self { parameters, base }, message))
    }

    /// Takes the message of [`Outbound::start`]; the result goes to the OT sender.
    ///
    /// # Errors
    /// [`OtError`] if the message is malformed.
    pub fn finish(self, context: &[u8], theirs: &[u8]) -> Result<(ReceiverLink, Vec<u8>), OtError> {
        let count = self.parameters.base_ots();
        let (strings, mut message) = self.base.finish(context, count, theirs)?;
        let (seeds, prfs) = full(self.parameters.k(), &strings)?;
        message.extend_from_slice(&prfs);
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
    key: LinkKey,
    base: BaseReceiver,
}

impl Outbound {
    /// Starts with this key; the message goes to the OT receiver.
    ///
    /// # Errors
    /// [`OtError::Entropy`]; [`OtError::Usage`] for a key with MACs on a link without them, and the other way round.
    pub fn start(
        parameters: Parameters,
        context: &[u8],
        key: LinkKey,
    ) -> Result<(Self, Vec<u8>), OtError> {
        if key.len() != parameters.base_ots() {
            return Err(OtError::Usage(format!(
                "a key of {} bits for a link of {}: links with MACs need keys of MACs, others have none",
                key.len(),
                parameters.base_ots()
            )));
        }
        let (base, message) = BaseReceiver::start(parameters.base, context, &key)?;
        let state = Self {
            parameters,
            key,
            base,
        };
        Ok((state, message))
    }

    /// Takes the messages of [`Inbound::start`] and [`Inbound::finish`].
    ///
    /// # Errors
    /// [`OtError`] if a message is malformed, or the PRFs are not consistent.
    pub fn finish(
        self,
        context: &[u8],
        first: &[u8],
        answer: &[u8],
    ) -> Result<SenderLink, OtError> {
        // The length of both is checked by those who read them.
        let (base, prfs) = answer.split_at(self.parameters.base_answer_bytes().min(answer.len()));
        let strings = self.base.finish(context, first, base)?;
        let seeds = punctured(self.parameters.k(), &self.key, &strings, prfs)?;
        Ok(SenderLink {
            parameters: self.parameters,
            key: self.key,
            keys: seeds.iter().map(|seed| Key::new(seed)).collect(),
        })
    }
}
