//! The messages of a party, and the MAC key that those of a failed check reveal.

use std::sync::{Arc, Mutex};

use keyquorum_math::{Domain, Element, Prg, Zq};
use keyquorum_net::Transport;
use sha2::{Digest, Sha256};

use super::{PRIME, SECRETS};
use crate::intercept::intercept_all;

/// Nonce of a commitment.
const NONCE: usize = 32;
/// Tag of a message.
const TAG: usize = 8;

/// Messages of a party: those that it sent, and those that it got.
#[derive(Clone, Default)]
pub(super) struct Transcript(pub(super) Arc<Mutex<[Vec<Vec<u8>>; 2]>>);

impl Transcript {
    /// A transport that keeps what goes over it, and sends all messages but one, if any: by its number.
    pub(super) fn tap(
        &self,
        inner: Box<dyn Transport>,
        withheld: Option<usize>,
    ) -> Box<dyn Transport> {
        let [ours, theirs] = [self.clone(), self.clone()];
        let sends = move |_, payload: &[u8]| {
            let sent = &mut ours.0.lock().unwrap()[0];
            sent.push(payload.to_vec());
            (Some(sent.len()) != withheld).then(|| payload.to_vec())
        };
        intercept_all(inner, sends, move |_, message| {
            theirs.0.lock().unwrap()[1].push(message.to_vec());
        })
    }

    /// A message of one of the last rounds, 1 for the last, without its tag: of party 0 and of party 1.
    pub(super) fn round(&self, from_the_end: usize) -> [Vec<u8>; 2] {
        let all = self.0.lock().unwrap();
        [1, 0].map(|side: usize| {
            let messages = &all[side];
            messages[messages.len() - from_the_end][TAG..].to_vec()
        })
    }

    /// The MAC key, from a check that failed because the first of all opened values was 1 too large: the sums that were revealed add up
    /// to −χα.
    pub(super) fn key(&self) -> u64 {
        let field = Zq::new(PRIME).unwrap();
        let opened = |messages: [Vec<u8>; 2], bytes: usize| {
            messages.map(|message| message[NONCE..NONCE + bytes].to_vec())
        };
        let mut hash = Sha256::new_with_prefix(b"keyquorum-v1/toss");
        for value in opened(self.round(3), 32) {
            hash.update(value);
        }
        let seed: [u8; 32] = hash.finalize().into();
        let mut factors = vec![field.zero(); SECRETS.len()];
        field.random(&mut Prg::new(*seed.first_chunk().unwrap(), 0), &mut factors);
        let sum = opened(self.round(1), 16)
            .iter()
            .fold(field.zero(), |sum, word| {
                field.add(
                    sum,
                    field.from_u128(u128::from_le_bytes(*word.first_chunk().unwrap())),
                )
            });
        let product = |a: u128, b: u128| a * b % u128::from(PRIME);
        let (mut inverse, mut power, mut exponent) = (1, factors[0].to_u128(), PRIME - 2);
        while exponent > 0 {
            if exponent & 1 == 1 {
                inverse = product(inverse, power);
            }
            power = product(power, power);
            exponent >>= 1;
        }
        PRIME - product(sum.to_u128(), inverse) as u64
    }
}
