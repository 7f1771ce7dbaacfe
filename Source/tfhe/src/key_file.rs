//! One public file of a key folder: header, seed of the masks, bodies.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tfhe::core_crypto::commons::math::random::{CompressionSeed, Seed};

use crate::BridgeError;
use crate::container::{is_hex, pack, unpack};
use crate::parameters::{NAME, set, tuniform};
use crate::serialize::one_line;

const MAGIC: &[u8; 8] = b"KQTFHE01";

/// Kind of a key file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Encryptions of the bits of the short secret under the ring secret.
    Bootstrapping,
    /// Encryptions of the coefficients of the ring secret under the short secret.
    KeySwitching,
    /// One encryption of zero under the reversed ring secret.
    Compact,
}

impl Kind {
    /// All kinds, in the order of reading.
    pub const ALL: [Self; 3] = [Self::Bootstrapping, Self::KeySwitching, Self::Compact];

    /// Name in headers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bootstrapping => "bootstrapping",
            Self::KeySwitching => "key-switching",
            Self::Compact => "compact",
        }
    }

    /// Name of the file in a key folder.
    pub fn file_name(self) -> String {
        format!("{}.kqt", self.name())
    }

    /// Number of words of the bodies.
    pub fn body_words(self) -> usize {
        let set = set();
        let ring = set.glwe_dimension.0 * set.polynomial_size.0;
        match self {
            Self::Bootstrapping => {
                set.lwe_dimension.0
                    * set.pbs_level.0
                    * (set.glwe_dimension.0 + 1)
                    * set.polynomial_size.0
            }
            Self::KeySwitching => ring * set.ks_level.0,
            Self::Compact => ring,
        }
    }

    /// Number of words of the masks, which a seed gives.
    pub fn mask_words(self) -> usize {
        let set = set();
        match self {
            Self::Bootstrapping => self.body_words() * set.glwe_dimension.0,
            Self::KeySwitching => self.body_words() * set.lwe_dimension.0,
            Self::Compact => self.body_words(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    kind: Kind,
    parameters: String,
    lwe_dimension: u64,
    glwe_dimension: u64,
    polynomial_size: u64,
    pbs_base_log: u64,
    pbs_level: u64,
    ks_base_log: u64,
    ks_level: u64,
    message_bits: u64,
    carry_bits: u64,
    lwe_noise: u64,
    glwe_noise: u64,
    key_id: String,
    seed: String,
    words: u64,
}

impl Header {
    fn new(kind: Kind, key_id: &str, seed: [u8; 16]) -> Self {
        let set = set();
        Self {
            kind,
            parameters: NAME.into(),
            lwe_dimension: set.lwe_dimension.0 as u64,
            glwe_dimension: set.glwe_dimension.0 as u64,
            polynomial_size: set.polynomial_size.0 as u64,
            pbs_base_log: set.pbs_base_log.0 as u64,
            pbs_level: set.pbs_level.0 as u64,
            ks_base_log: set.ks_base_log.0 as u64,
            ks_level: set.ks_level.0 as u64,
            message_bits: set.message_modulus.0.ilog2().into(),
            carry_bits: set.carry_modulus.0.ilog2().into(),
            lwe_noise: tuniform(set.lwe_noise_distribution),
            glwe_noise: tuniform(set.glwe_noise_distribution),
            key_id: key_id.into(),
            seed: format!("{:032x}", u128::from_be_bytes(seed)),
            words: kind.body_words() as u64,
        }
    }

    fn numbers(&self) -> [(&'static str, u64); 12] {
        [
            ("lwe_dimension", self.lwe_dimension),
            ("glwe_dimension", self.glwe_dimension),
            ("polynomial_size", self.polynomial_size),
            ("pbs_base_log", self.pbs_base_log),
            ("pbs_level", self.pbs_level),
            ("ks_base_log", self.ks_base_log),
            ("ks_level", self.ks_level),
            ("message_bits", self.message_bits),
            ("carry_bits", self.carry_bits),
            ("lwe_noise", self.lwe_noise),
            ("glwe_noise", self.glwe_noise),
            ("words", self.words),
        ]
    }

    /// Refuses other parameters than those of the one supported set.
    fn check(&self, file: &Path) -> Result<(), BridgeError> {
        let differs = |field, found: String, expected: String| BridgeError::Parameters {
            file: file.into(),
            field,
            found,
            expected,
        };
        if self.parameters != NAME {
            return Err(differs(
                "parameters",
                one_line(&self.parameters),
                NAME.into(),
            ));
        }
        let expected = Self::new(self.kind, "", [0; 16]).numbers();
        for ((field, found), (_, expected)) in self.numbers().into_iter().zip(expected) {
            if found != expected {
                return Err(differs(field, found.to_string(), expected.to_string()));
            }
        }
        for (field, text) in [("key_id", &self.key_id), ("seed", &self.seed)] {
            if !is_hex(text) {
                return Err(BridgeError::Header {
                    file: file.into(),
                    reason: format!("{field} has to be 32 hexadecimal digits"),
                });
            }
        }
        Ok(())
    }
}

/// A key file: the bodies, in the order of TFHE-rs's seeded containers, and the seed of the masks.
#[derive(Clone, Debug)]
pub struct KeyFile {
    /// Where the file was read.
    pub path: PathBuf,
    /// Kind of the key.
    pub kind: Kind,
    /// Id of the key: 32 hexadecimal digits.
    pub key_id: String,
    /// Seed of the masks.
    pub seed: [u8; 16],
    /// The bodies.
    pub bodies: Vec<u64>,
}

impl KeyFile {
    /// Reads and checks the file of `kind` in `folder`.
    pub fn read(folder: &Path, kind: Kind) -> Result<Self, BridgeError> {
        let path = folder.join(kind.file_name());
        let data = std::fs::read(&path).map_err(|source| BridgeError::Read {
            file: path.clone(),
            source,
        })?;
        let file = Self::from_bytes(&data, &path)?;
        if file.kind == kind {
            Ok(file)
        } else {
            Err(BridgeError::Kind {
                file: path,
                found: file.kind.name(),
                expected: kind.name(),
            })
        }
    }

    /// Parses and checks a file; `path` names it in errors.
    pub fn from_bytes(data: &[u8], path: &Path) -> Result<Self, BridgeError> {
        let (header, bodies) = unpack(
            data,
            path,
            MAGIC,
            "a public key for TFHE-rs",
            |h: &Header| h.words,
        )?;
        header.check(path)?;
        let bad_seed = |e: std::num::ParseIntError| BridgeError::Header {
            file: path.into(),
            reason: e.to_string(),
        };
        let seed = u128::from_str_radix(&header.seed, 16)
            .map_err(bad_seed)?
            .to_be_bytes();
        Ok(Self {
            path: path.into(),
            kind: header.kind,
            key_id: header.key_id,
            seed,
            bodies,
        })
    }

    /// Bytes of the file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, BridgeError> {
        let header = Header::new(self.kind, &self.key_id, self.seed);
        pack(MAGIC, &header, &self.bodies).map_err(|e| BridgeError::Header {
            file: self.path.clone(),
            reason: e.to_string(),
        })
    }

    /// The seed as TFHE-rs takes it: its 16 bytes are the AES key, in their order.
    pub(crate) fn compression_seed(&self) -> CompressionSeed {
        CompressionSeed::from(Seed(u128::from_le_bytes(self.seed)))
    }
}
