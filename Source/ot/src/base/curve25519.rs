//! Base OT on the Ristretto group, secure under CDH: the Diffie-Hellman instance. The receiver of choice c knows the discrete logarithm of
//! r_c + H(r_{1-c}) only, the sender's one point serves all OTs. Both messages are independent of each other: one round. Choices are hidden
//! from everybody for ever: both points are uniform. Strings are hidden only from those who cannot solve CDH.

use curve25519_dalek::RistrettoPoint;
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoBasepointTable};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::IsIdentity;
use sha2::{Digest, Sha512};
use subtle::{Choice, ConditionallySelectable};
use zeroize::{Zeroize, Zeroizing};

use super::{choices, string_of, tagged_hash};
use crate::{LinkKey, OtError, Seed, entropy};

/// Bytes of the receiver's message for one OT.
pub const RECEIVER_BYTES: usize = 64;
/// Bytes of the sender's message.
pub const SENDER_BYTES: usize = 32;

fn random_scalar() -> Result<Scalar, OtError> {
    let mut wide = Zeroizing::new([0u8; 64]);
    entropy(wide.as_mut_slice())?;
    Ok(Scalar::from_bytes_mod_order_wide(&wide))
}

/// The point that is added to r_c: H(context, number, c, r_{1-c}).
fn point_hash(context: &[u8], number: usize, choice: u8, other: &[u8; 32]) -> RistrettoPoint {
    let mut hash: Sha512 = tagged_hash(b"keyquorum-ot/point", context, number, choice);
    hash.update(other);
    RistrettoPoint::from_uniform_bytes(&hash.finalize().into())
}

/// The string of choice `choice` in OT `number`: a hash of the common point and both messages.
fn string_hash(
    context: &[u8],
    number: usize,
    choice: u8,
    sender: &[u8; 32],
    pair: &[u8],
    common: &RistrettoPoint,
) -> Seed {
    let mut hash: Sha512 = tagged_hash(b"keyquorum-ot/string", context, number, choice);
    hash.update(sender);
    hash.update(pair);
    hash.update(common.compress().as_bytes());
    string_of(hash)
}

fn decompress(bytes: &[u8]) -> Option<([u8; 32], RistrettoPoint)> {
    let bytes: [u8; 32] = bytes.try_into().ok()?;
    Some((bytes, CompressedRistretto(bytes).decompress()?))
}

/// The sender's state between its message and the receiver's.
pub struct BaseSender {
    secret: Zeroizing<Scalar>,
    message: [u8; 32],
}

impl BaseSender {
    /// Draws the secret; the message goes to the receiver.
    ///
    /// # Errors
    /// [`OtError::Entropy`].
    pub fn start() -> Result<(Self, Vec<u8>), OtError> {
        let secret = Zeroizing::new(random_scalar()?);
        let message = RistrettoPoint::mul_base(&secret).compress().to_bytes();
        Ok((Self { secret, message }, message.to_vec()))
    }

    /// Both strings of `count` OTs.
    ///
    /// # Errors
    /// [`OtError::Message`] if the receiver's message is no list of group elements.
    pub fn finish(
        self,
        context: &[u8],
        count: usize,
        theirs: &[u8],
    ) -> Result<Vec<[Seed; 2]>, OtError> {
        crate::check_length("base OT points", theirs, count * RECEIVER_BYTES)?;
        let refuse = || OtError::Message("a base OT point is no element of the group");
        theirs
            .chunks_exact(RECEIVER_BYTES)
            .enumerate()
            .map(|(number, pair)| {
                let (first, second) = pair.split_at(32);
                let (r0, p0) = decompress(first).ok_or_else(refuse)?;
                let (r1, p1) = decompress(second).ok_or_else(refuse)?;
                let string = |choice: u8, point: RistrettoPoint, other: &[u8; 32]| {
                    let mut common =
                        (point + point_hash(context, number, choice, other)) * *self.secret;
                    let seed = string_hash(context, number, choice, &self.message, pair, &common);
                    common.zeroize();
                    seed
                };
                Ok([string(0, p0, &r1), string(1, p1, &r0)])
            })
            .collect()
    }
}

/// The receiver's state between its message and the sender's.
pub struct BaseReceiver {
    choices: Zeroizing<Vec<u8>>,
    logarithms: Zeroizing<Vec<Scalar>>,
    message: Vec<u8>,
}

impl BaseReceiver {
    /// Chooses the string that is NOT bit i of `key` in OT i; the message goes to the sender.
    ///
    /// # Errors
    /// [`OtError::Entropy`].
    pub fn start(context: &[u8], key: &LinkKey) -> Result<(Self, Vec<u8>), OtError> {
        let choices = choices(key)?;
        let mut logarithms = Zeroizing::new(Vec::with_capacity(choices.len()));
        let mut message = Vec::with_capacity(choices.len() * RECEIVER_BYTES);
        for (number, bit) in choices.iter().copied().enumerate() {
            let mut uniform = [0u8; 64];
            entropy(&mut uniform)?;
            let other = RistrettoPoint::from_uniform_bytes(&uniform);
            let y = random_scalar()?;
            let own = RistrettoPoint::mul_base(&y)
                - point_hash(context, number, bit, other.compress().as_bytes());
            let swap = Choice::from(bit);
            let first = RistrettoPoint::conditional_select(&own, &other, swap);
            let second = RistrettoPoint::conditional_select(&other, &own, swap);
            message.extend_from_slice(first.compress().as_bytes());
            message.extend_from_slice(second.compress().as_bytes());
            logarithms.push(y);
        }
        let state = Self {
            choices,
            logarithms,
            message: message.clone(),
        };
        Ok((state, message))
    }

    /// The chosen string of every OT.
    ///
    /// # Errors
    /// [`OtError::Message`] if the sender's message is no group element, or the neutral one.
    pub fn finish(self, context: &[u8], theirs: &[u8]) -> Result<Vec<Seed>, OtError> {
        crate::check_length("base OT sender's point", theirs, SENDER_BYTES)?;
        let (bytes, point) = decompress(theirs)
            .filter(|(_, point)| !point.is_identity())
            .ok_or(OtError::Message(
                "the base OT sender's point is no element of the group",
            ))?;
        crate::check_same(self.logarithms.len(), self.choices.len())?;
        crate::check_same(self.message.len(), self.choices.len() * RECEIVER_BYTES)?;
        let table = RistrettoBasepointTable::create(&point);
        Ok(self
            .logarithms
            .iter()
            .zip(self.message.chunks_exact(RECEIVER_BYTES))
            .zip(self.choices.iter().copied())
            .enumerate()
            .map(|(number, ((y, pair), bit))| {
                let mut common = &table * y;
                let seed = string_hash(context, number, bit, &bytes, pair, &common);
                common.zeroize();
                seed
            })
            .collect())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::MacKey;

    #[test]
    fn the_receiver_gets_what_it_chose() {
        let macs = MacKey::from_bytes(&[0x5a; 16]);
        let key = LinkKey::with_pads(0x0123_4567_89ab_cdef_fedc_ba98_7654_3210, Some(macs));
        let (sender, point) = BaseSender::start().unwrap();
        let (receiver, points) = BaseReceiver::start(b"x", &key).unwrap();
        let both = sender.finish(b"x", key.len(), &points).unwrap();
        let chosen = receiver.finish(b"x", &point).unwrap();
        assert_eq!((both.len(), chosen.len()), (224, 224));
        for (i, (pair, seed)) in both.iter().zip(&chosen).enumerate() {
            let bit = usize::from(key.bit(i).unwrap());
            assert_eq!(pair[1 - bit], *seed);
            assert_ne!(pair[bit], *seed);
        }
    }

    #[test]
    fn another_context_gives_other_strings() {
        let key = LinkKey::with_pads(u128::MAX, None);
        let (sender, point) = BaseSender::start().unwrap();
        let (receiver, points) = BaseReceiver::start(b"x", &key).unwrap();
        let both = sender.finish(b"y", 128, &points).unwrap();
        let chosen = receiver.finish(b"x", &point).unwrap();
        assert!(both.iter().zip(&chosen).all(|(pair, s)| pair[0] != *s));
    }

    #[test]
    fn bytes_that_are_no_point_are_refused() {
        let key = LinkKey::with_pads(0, None);
        let (sender, _) = BaseSender::start().unwrap();
        let (receiver, mut points) = BaseReceiver::start(b"x", &key).unwrap();
        points[64..96].fill(0xff);
        assert!(matches!(
            sender.finish(b"x", 128, &points),
            Err(OtError::Message(_))
        ));
        assert!(matches!(
            receiver.finish(b"x", &[0; 32]),
            Err(OtError::Message(_))
        ));
        let (sender, _) = BaseSender::start().unwrap();
        assert!(matches!(
            sender.finish(b"x", 128, &points[1..]),
            Err(OtError::Length { .. })
        ));
    }
}
