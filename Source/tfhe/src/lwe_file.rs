//! Files of LWE ciphertexts, as `harness/keyquorum/fhe/lwe.py` defines them.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tfhe::core_crypto::prelude::LweCiphertext;
use tfhe::shortint;
use tfhe::shortint::ciphertext::{Degree, NoiseLevel};

use crate::container::{is_hex, pack, unpack};
use crate::parameters::{LWE_DIMENSION, MESSAGE_SHIFT, NAME, pattern, set};
use crate::serialize::one_line;
use crate::{BridgeError, Ciphertext, Type};

const MAGIC: &[u8; 8] = b"KQLWE002";
/// A block is right as long as its noise is below half the distance of two values. TFHE-rs states no smaller bound.
const EVALUATED_NOISE: u32 = MESSAGE_SHIFT - 1;
/// log2 of the noise up to which blocks count as fresh: below the deviation 2^49 of a bootstrapped block.
const FRESH_NOISE: u32 = 49;

#[derive(Serialize, Deserialize)]
struct Header {
    parameters: String,
    key_id: String,
    count: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    noise_bits: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    types: Vec<String>,
}

/// LWE ciphertexts of one key.
#[derive(Clone, Debug, PartialEq)]
pub struct LweFile {
    /// Id of the key.
    pub key_id: String,
    /// log2 of a bound on the noise, if one is stated.
    pub noise_bits: Option<f64>,
    /// Names of the types of the values whose blocks these are, in their order; empty: messages of their own.
    pub types: Vec<String>,
    /// Masks: `LWE_DIMENSION` words for each ciphertext.
    pub a: Vec<u64>,
    /// Bodies.
    pub b: Vec<u64>,
}

impl LweFile {
    /// The blocks of `ciphertexts`, one LWE ciphertext each, in their order: the lowest block of an integer first.
    ///
    /// The stated noise is that of evaluated ciphertexts, since nothing in a ciphertext proves that it is fresh. Blocks alone have no types.
    pub fn from_ciphertexts(ciphertexts: &[Ciphertext], key_id: &str) -> Self {
        let kinds = || ciphertexts.iter().map(Ciphertext::kind);
        let mut file = Self {
            key_id: key_id.into(),
            noise_bits: Some(EVALUATED_NOISE.into()),
            types: match kinds().all(|kind| kind == Type::Block) {
                true => vec![],
                false => kinds().map(Type::name).collect(),
            },
            a: vec![],
            b: vec![],
        };
        for block in ciphertexts.iter().flat_map(Ciphertext::blocks) {
            let (mask, body) = block.ct.get_mask_and_body();
            file.a.extend_from_slice(mask.as_ref());
            file.b.push(*body.data);
        }
        file
    }

    /// A TFHE-rs ciphertext from fresh blocks. Each has to hold a value below 4 (`bool`: below 2), the lowest block of an
    /// integer first. `file` names the source in errors.
    pub fn to_ciphertext(&self, kind: Type, file: &Path) -> Result<Ciphertext, BridgeError> {
        if self.b.len() != kind.blocks() {
            let expected = format!("{} has {}", kind.name(), kind.blocks());
            return Err(BridgeError::Blocks {
                file: file.into(),
                found: self.b.len(),
                expected,
            });
        }
        self.check_fresh(file)?;
        let degree = Degree::new(if kind == Type::Bool {
            1
        } else {
            set().message_modulus.0 - 1
        });
        Ciphertext::from_blocks(kind, self.fresh_blocks(degree), &self.key_id)
    }

    /// Fresh blocks of bits. `file` names the source in errors.
    pub(crate) fn to_bits(&self, file: &Path) -> Result<Vec<shortint::Ciphertext>, BridgeError> {
        if self.noise_bits.is_none() {
            return Err(BridgeError::Header {
                file: file.into(),
                reason: "inputs of a circuit have to state noise_bits".into(),
            });
        }
        self.check_fresh(file)?;
        Ok(self.fresh_blocks(Degree::new(1)))
    }

    /// Whether data begins as such a file.
    pub(crate) fn is_one(data: &[u8]) -> bool {
        data.starts_with(MAGIC)
    }

    fn check_fresh(&self, file: &Path) -> Result<(), BridgeError> {
        let above = self
            .noise_bits
            .filter(|bits| *bits > f64::from(FRESH_NOISE));
        above.map_or(Ok(()), |found| {
            Err(BridgeError::Noise {
                file: file.into(),
                found,
                most: FRESH_NOISE,
            })
        })
    }

    fn fresh_blocks(&self, degree: Degree) -> Vec<shortint::Ciphertext> {
        let set = set();
        let (masks, _) = self.a.as_chunks::<LWE_DIMENSION>();
        let blocks = masks.iter().zip(&self.b).map(|(mask, body)| {
            let words = mask.iter().chain([body]).copied().collect();
            let block = LweCiphertext::from_container(words, set.ciphertext_modulus);
            shortint::Ciphertext::new(
                block,
                degree,
                NoiseLevel::NOMINAL,
                set.message_modulus,
                set.carry_modulus,
                pattern(),
            )
        });
        blocks.collect()
    }

    /// Parses a file; `file` names it in errors.
    pub fn from_bytes(data: &[u8], file: &Path) -> Result<Self, BridgeError> {
        let words = |h: &Header| h.count.saturating_mul(LWE_DIMENSION as u64 + 1);
        let parsed = unpack::<Header>(data, file, MAGIC, "LWE ciphertexts", words);
        let (header, mut a) = match parsed {
            // A file of another set has another length: name the set instead.
            Err(BridgeError::Length { .. }) if other_set(data).is_some() => {
                return Err(other_parameters(file, other_set(data).unwrap_or_default()));
            }
            other => other?,
        };
        if header.parameters != NAME {
            return Err(other_parameters(file, header.parameters));
        }
        let stated = header
            .noise_bits
            .is_none_or(|bits| (0.0..64.0).contains(&bits));
        if header.count == 0 || !stated || !is_hex(&header.key_id) {
            let reason = "count has to be positive, noise_bits between 0 and 64, key_id 32 hexadecimal digits".into();
            return Err(BridgeError::Header {
                file: file.into(),
                reason,
            });
        }
        let b = a.split_off(header.count as usize * LWE_DIMENSION);
        Ok(Self {
            key_id: header.key_id,
            noise_bits: header.noise_bits,
            types: header.types,
            a,
            b,
        })
    }

    /// Bytes of the file.
    pub fn to_bytes(&self, file: &Path) -> Result<Vec<u8>, BridgeError> {
        let header = Header {
            parameters: NAME.into(),
            key_id: self.key_id.clone(),
            count: self.b.len() as u64,
            noise_bits: self.noise_bits,
            types: self.types.clone(),
        };
        let words: Vec<u64> = self.a.iter().chain(&self.b).copied().collect();
        pack(MAGIC, &header, &words).map_err(|e| BridgeError::Header {
            file: file.into(),
            reason: e.to_string(),
        })
    }
}

fn other_set(data: &[u8]) -> Option<String> {
    let (size, rest) = data.strip_prefix(MAGIC)?.split_first_chunk::<4>()?;
    let header: Header =
        serde_json::from_slice(rest.get(..u32::from_le_bytes(*size) as usize)?).ok()?;
    Some(header.parameters).filter(|name| name != NAME)
}

fn other_parameters(file: &Path, found: String) -> BridgeError {
    BridgeError::Parameters {
        file: file.into(),
        field: "parameters",
        found: one_line(&found),
        expected: NAME.into(),
    }
}
