//! A second layer of encryption inside a TLS channel whose own key exchange may be classical: keys from ML-KEM-768, fresh for every channel.
//!
//! The end that dialled sends an encapsulation key, the other one a ciphertext. Records are AES-256-GCM under a key for each direction, from HKDF of
//! the encapsulated secret and both messages; nonces count records. The exchange itself is not authenticated: TLS below does that, at the time of
//! the channel. Who records the channel and breaks the exchange of TLS later sees an exchange of ML-KEM, and records under its secret. Who
//! breaks ML-KEM alone sees TLS.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, Prk, Salt};
use aws_lc_rs::kem::{Ciphertext, DecapsulationKey, EncapsulationKey, ML_KEM_768};

use crate::NetError;

/// Bytes of the dialling end's message: an encapsulation key.
pub const SEALED_OFFER_BYTES: usize = 1184;
/// Bytes of the other end's answer: a ciphertext.
pub const SEALED_ANSWER_BYTES: usize = 1088;
/// Bytes by which a record is longer than its content.
pub const SEALED_TAG_BYTES: usize = 16;

const SALT: &[u8] = b"keyquorum-v1 sealed channel";

fn failed<E>(_: E) -> NetError {
    NetError::internal("ML-KEM or AES-GCM failed")
}

fn malformed(detail: &'static str) -> NetError {
    NetError::Sealed { detail }
}

/// The dialling end, between its offer and the answer.
pub struct Offer {
    key: DecapsulationKey,
    sent: Vec<u8>,
}

impl Offer {
    /// Makes a key; the message goes to the other end.
    ///
    /// # Errors
    /// [`NetError::Internal`] if there is no randomness.
    pub fn new() -> Result<(Self, Vec<u8>), NetError> {
        let key = DecapsulationKey::generate(&ML_KEM_768).map_err(failed)?;
        let public = key.encapsulation_key().map_err(failed)?;
        let sent = public.key_bytes().map_err(failed)?.as_ref().to_vec();
        let message = sent.clone();
        Ok((Self { key, sent }, message))
    }

    /// Takes the other end's answer. A wrong ciphertext gives keys that the other end does not have.
    ///
    /// # Errors
    /// [`NetError::Sealed`] for an answer of another length.
    pub fn finish(self, answer: &[u8]) -> Result<Sealed, NetError> {
        let secret = self.key.decapsulate(Ciphertext::from(answer));
        let secret = secret.map_err(|_| malformed("an answer that is no ciphertext"))?;
        let keys = Keys::of(secret.as_ref(), &self.sent, answer);
        Ok(Sealed {
            sealing: keys.direction(DIALLED)?,
            opening: keys.direction(ACCEPTED)?,
        })
    }
}

/// Answers an offer: the message for the dialling end, and the channel.
///
/// # Errors
/// [`NetError::Sealed`] for an offer that is no key.
pub fn answer_offer(offer: &[u8]) -> Result<(Vec<u8>, Sealed), NetError> {
    let refuse = || malformed("an offer that is no key");
    let key = EncapsulationKey::new(&ML_KEM_768, offer).map_err(|_| refuse())?;
    let (ciphertext, secret) = key.encapsulate().map_err(|_| refuse())?;
    let keys = Keys::of(secret.as_ref(), offer, ciphertext.as_ref());
    let sealed = Sealed {
        sealing: keys.direction(ACCEPTED)?,
        opening: keys.direction(DIALLED)?,
    };
    Ok((ciphertext.as_ref().to_vec(), sealed))
}

/// Labels of directions: what the end that dialled sends, and what the other one sends.
const DIALLED: &[u8] = b"from the dialling end";
const ACCEPTED: &[u8] = b"from the accepting end";

struct Keys<'a> {
    secret: Prk,
    messages: [&'a [u8]; 2],
}

impl<'a> Keys<'a> {
    fn of(secret: &[u8], offer: &'a [u8], answer: &'a [u8]) -> Self {
        Self {
            secret: Salt::new(HKDF_SHA256, SALT).extract(secret),
            messages: [offer, answer],
        }
    }

    fn direction(&self, label: &[u8]) -> Result<Direction, NetError> {
        let [offer, answer] = self.messages;
        let info = [label, offer, answer];
        let key = self.secret.expand(&info, &AES_256_GCM).map_err(failed)?;
        Ok(Direction {
            key: LessSafeKey::new(UnboundKey::from(key)),
            records: 0,
        })
    }
}

struct Direction {
    key: LessSafeKey,
    /// Records so far, the nonce of the next one.
    records: u64,
}

impl Direction {
    fn nonce(&mut self) -> Result<Nonce, NetError> {
        let mut nonce = [0; NONCE_LEN];
        for (byte, counted) in nonce.iter_mut().zip(self.records.to_le_bytes()) {
            *byte = counted;
        }
        let next = self.records.checked_add(1);
        self.records = next.ok_or_else(|| malformed("too many records"))?;
        Ok(Nonce::assume_unique_for_key(nonce))
    }
}

/// One end of a channel with keys.
pub struct Sealed {
    sealing: Direction,
    opening: Direction,
}

impl Sealed {
    /// The next record that we send.
    ///
    /// # Errors
    /// [`NetError::Internal`].
    pub fn seal(&mut self, content: &[u8]) -> Result<Vec<u8>, NetError> {
        let nonce = self.sealing.nonce()?;
        let mut record = Vec::with_capacity(content.len() + SEALED_TAG_BYTES);
        record.extend_from_slice(content);
        self.sealing
            .key
            .seal_in_place_append_tag(nonce, Aad::empty(), &mut record)
            .map_err(failed)?;
        Ok(record)
    }

    /// The content of the next record that the other end sent.
    ///
    /// # Errors
    /// [`NetError::Sealed`] for a record that was changed, left out or repeated.
    pub fn open(&mut self, record: &[u8]) -> Result<Vec<u8>, NetError> {
        let nonce = self.opening.nonce()?;
        let mut content = record.to_vec();
        let opened = self
            .opening
            .key
            .open_in_place(nonce, Aad::empty(), &mut content);
        let len = opened
            .map_err(|_| malformed("a record that the other end did not seal"))?
            .len();
        content.truncate(len);
        Ok(content)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;

    fn channel() -> (Sealed, Sealed) {
        let (offer, key) = Offer::new().unwrap();
        let (answer, there) = answer_offer(&key).unwrap();
        assert_eq!(
            (key.len(), answer.len()),
            (SEALED_OFFER_BYTES, SEALED_ANSWER_BYTES)
        );
        (offer.finish(&answer).unwrap(), there)
    }

    #[test]
    fn records_cross_in_both_directions() {
        let (mut here, mut there) = channel();
        for size in [0, 1, 1 << 16] {
            let content = vec![7; size];
            let record = here.seal(&content).unwrap();
            assert_eq!(record.len(), size + SEALED_TAG_BYTES);
            assert_eq!(there.open(&record).unwrap(), content);
            assert_eq!(here.open(&there.seal(&content).unwrap()).unwrap(), content);
        }
        // The same content never gives the same record.
        assert_ne!(here.seal(b"x").unwrap(), here.seal(b"x").unwrap());
    }

    #[test]
    fn changed_repeated_and_returned_records_are_refused() {
        let (mut here, mut there) = channel();
        let mut record = here.seal(b"content").unwrap();
        let kept = record.clone();
        record[3] ^= 1;
        assert!(matches!(there.open(&record), Err(NetError::Sealed { .. })));
        let (mut here, mut there) = channel();
        assert!(there.open(&kept).is_err());
        let record = here.seal(b"content").unwrap();
        assert!(here.open(&record).is_err());
        let (mut here, mut there) = channel();
        let record = here.seal(b"content").unwrap();
        there.open(&record).unwrap();
        assert!(there.open(&record).is_err());
        assert!(there.open(b"short").is_err());
    }

    #[test]
    fn messages_that_are_no_key_or_ciphertext_are_refused() {
        let (offer, mut key) = Offer::new().unwrap();
        assert!(matches!(
            answer_offer(&key[1..]),
            Err(NetError::Sealed { .. })
        ));
        let (mut answer, mut there) = answer_offer(&key).unwrap();
        // A coefficient that is not reduced.
        key[..3].fill(0xff);
        assert!(matches!(answer_offer(&key), Err(NetError::Sealed { .. })));
        answer[0] ^= 1;
        let mut here = offer.finish(&answer).unwrap();
        assert!(there.open(&here.seal(b"content").unwrap()).is_err());
        let (offer, _) = Offer::new().unwrap();
        assert!(offer.finish(&answer[1..]).is_err());
    }
}
