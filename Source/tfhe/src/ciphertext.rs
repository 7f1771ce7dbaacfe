//! TFHE-rs's ciphertexts: their types, their files, and the checks before a committee decrypts them.

use std::path::Path;

use tfhe::core_crypto::prelude::CiphertextModulus;
use tfhe::integer::RadixCiphertext;
use tfhe::integer::ciphertext::{DataKind, Expandable, IntegerRadixCiphertext};
use tfhe::prelude::{CiphertextList, Tagged};
use tfhe::shortint;
use tfhe::{
    CompactCiphertextList, CompactPublicKey, FheBool, FheUint8, FheUint8Id, FheUint16, FheUint16Id,
    FheUint32, FheUint32Id, FheUint64, FheUint64Id, ReRandomizationMetadata,
};

use crate::keys::tag;
use crate::parameters::{LWE_DIMENSION, pattern, set};
use crate::serialize::{MAX_CIPHERTEXT, one_line, parsed, read};
use crate::{BridgeError, serialized};

/// Type of a ciphertext.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `FheBool`.
    Bool,
    /// One `shortint` block.
    Block,
    /// `FheUint8`.
    Uint8,
    /// `FheUint16`.
    Uint16,
    /// `FheUint32`.
    Uint32,
    /// `FheUint64`.
    Uint64,
}

impl Type {
    /// All types.
    pub const ALL: [Self; 6] = [
        Self::Bool,
        Self::Block,
        Self::Uint8,
        Self::Uint16,
        Self::Uint32,
        Self::Uint64,
    ];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Block => "block",
            Self::Uint8 => "uint8",
            Self::Uint16 => "uint16",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
        }
    }

    /// Bits of a value.
    pub fn bits(self) -> usize {
        match self {
            Self::Bool => 1,
            Self::Block => 2,
            Self::Uint8 => 8,
            Self::Uint16 => 16,
            Self::Uint32 => 32,
            Self::Uint64 => 64,
        }
    }

    /// Number of LWE ciphertexts: two bits each.
    pub fn blocks(self) -> usize {
        self.bits().div_ceil(2)
    }

    /// A type by its name.
    pub fn parse(name: &str) -> Result<Self, BridgeError> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| {
                let names = Self::ALL.map(Self::name).join(", ");
                BridgeError::Usage(format!("unknown type {name}: choose one of {names}"))
            })
    }
}

/// A ciphertext of one of the supported types.
#[derive(Clone)]
pub enum Ciphertext {
    /// A bit.
    Bool(FheBool),
    /// One block.
    Block(shortint::Ciphertext),
    /// 8 bits.
    Uint8(FheUint8),
    /// 16 bits.
    Uint16(FheUint16),
    /// 32 bits.
    Uint32(FheUint32),
    /// 64 bits.
    Uint64(FheUint64),
}

impl Ciphertext {
    /// Type of the ciphertext.
    pub fn kind(&self) -> Type {
        match self {
            Self::Bool(_) => Type::Bool,
            Self::Block(_) => Type::Block,
            Self::Uint8(_) => Type::Uint8,
            Self::Uint16(_) => Type::Uint16,
            Self::Uint32(_) => Type::Uint32,
            Self::Uint64(_) => Type::Uint64,
        }
    }

    /// A ciphertext from its blocks, the lowest first, under the tag of the key. Their number has to be that of the type.
    pub fn from_blocks(
        kind: Type,
        blocks: Vec<shortint::Ciphertext>,
        key_id: &str,
    ) -> Result<Self, BridgeError> {
        macro_rules! integer {
            ($variant:ident, $integer:ident, $id:ident) => {
                Self::$variant($integer::from_raw_parts(
                    RadixCiphertext::from(blocks),
                    $id,
                    tag(key_id),
                    ReRandomizationMetadata::default(),
                ))
            };
        }
        let found = blocks.len();
        if found != kind.blocks() {
            let name = kind.name();
            return Err(BridgeError::Usage(format!(
                "{name} has {} blocks, not {found}",
                kind.blocks()
            )));
        }
        Ok(match kind {
            Type::Bool => {
                let mut bit =
                    FheBool::from_expanded_blocks(blocks, DataKind::Boolean).map_err(|e| {
                        BridgeError::Usage(format!("TFHE-rs refuses a bit of one block: {e}"))
                    })?;
                *bit.tag_mut() = tag(key_id);
                Self::Bool(bit)
            }
            Type::Block => match blocks.into_iter().next() {
                Some(block) => Self::Block(block),
                None => return Err(BridgeError::Usage("a block has one block, not 0".into())),
            },
            Type::Uint8 => integer!(Uint8, FheUint8, FheUint8Id),
            Type::Uint16 => integer!(Uint16, FheUint16, FheUint16Id),
            Type::Uint32 => integer!(Uint32, FheUint32, FheUint32Id),
            Type::Uint64 => integer!(Uint64, FheUint64, FheUint64Id),
        })
    }

    /// The blocks, the lowest first.
    pub fn blocks(&self) -> Vec<shortint::Ciphertext> {
        match self {
            Self::Bool(bit) => vec![bit.clone().into_raw_parts()],
            Self::Block(block) => vec![block.clone()],
            Self::Uint8(value) => value.clone().into_raw_parts().0.into_blocks(),
            Self::Uint16(value) => value.clone().into_raw_parts().0.into_blocks(),
            Self::Uint32(value) => value.clone().into_raw_parts().0.into_blocks(),
            Self::Uint64(value) => value.clone().into_raw_parts().0.into_blocks(),
        }
    }

    /// The tag: the id of the key for ciphertexts that this crate's keys made, empty for a block.
    pub fn tag(&self) -> &[u8] {
        match self {
            Self::Bool(bit) => bit.tag().data(),
            Self::Block(_) => &[],
            Self::Uint8(value) => value.tag().data(),
            Self::Uint16(value) => value.tag().data(),
            Self::Uint32(value) => value.tag().data(),
            Self::Uint64(value) => value.tag().data(),
        }
    }

    /// Bytes in TFHE-rs's versioned form.
    pub fn to_bytes(&self) -> Result<Vec<u8>, BridgeError> {
        match self {
            Self::Bool(bit) => serialized(bit),
            Self::Block(block) => serialized(block),
            Self::Uint8(value) => serialized(value),
            Self::Uint16(value) => serialized(value),
            Self::Uint32(value) => serialized(value),
            Self::Uint64(value) => serialized(value),
        }
    }

    /// Reads and checks a file that `safe_serialize` wrote.
    pub fn read(file: &Path) -> Result<Self, BridgeError> {
        Self::from_bytes(&read(file, MAX_CIPHERTEXT, "a ciphertext")?, file)
    }

    /// Parses and checks a ciphertext; `file` names it in errors.
    pub fn from_bytes(data: &[u8], file: &Path) -> Result<Self, BridgeError> {
        let ciphertext = parse(data, file)?;
        for (index, block) in ciphertext.blocks().iter().enumerate() {
            check(block, ciphertext.kind(), index, file)?;
        }
        Ok(ciphertext)
    }

    /// Refuses a ciphertext whose tag names another key. A ciphertext without a tag is accepted.
    pub fn check_key(&self, key_id: &str, file: &Path, other: &Path) -> Result<(), BridgeError> {
        if self.tag().is_empty() || self.tag() == key_id.as_bytes() {
            return Ok(());
        }
        Err(BridgeError::KeyId {
            file: file.into(),
            found: one_line(&String::from_utf8_lossy(self.tag())),
            other: other.into(),
            expected: key_id.into(),
        })
    }
}

/// All `FheUint` have one name in TFHE-rs's files, and the number of blocks gives their width.
fn parse(data: &[u8], file: &Path) -> Result<Ciphertext, BridgeError> {
    let integer = match parsed::<FheUint64>(data, MAX_CIPHERTEXT) {
        Ok(integer) => integer,
        Err(reason) => {
            return parsed(data, MAX_CIPHERTEXT)
                .map(Ciphertext::Bool)
                .or_else(|_| parsed(data, MAX_CIPHERTEXT).map(Ciphertext::Block))
                .map_err(|_| BridgeError::NotTfhe {
                    file: file.into(),
                    expected: "an FheUint, FheBool or shortint ciphertext",
                    reason: one_line(&reason),
                });
        }
    };
    let (radix, _, tag, _) = integer.into_raw_parts();
    let blocks = radix.into_blocks();
    let found = blocks.len();
    let kind = [Type::Uint8, Type::Uint16, Type::Uint32, Type::Uint64]
        .into_iter()
        .find(|kind| kind.blocks() == found);
    let Some(kind) = kind else {
        let expected = "FheUint8, 16, 32 and 64 have 4, 8, 16 and 32".into();
        return Err(BridgeError::Blocks {
            file: file.into(),
            found,
            expected,
        });
    };
    let mut ciphertext = Ciphertext::from_blocks(kind, blocks, "")?;
    match &mut ciphertext {
        Ciphertext::Uint8(value) => *value.tag_mut() = tag,
        Ciphertext::Uint16(value) => *value.tag_mut() = tag,
        Ciphertext::Uint32(value) => *value.tag_mut() = tag,
        Ciphertext::Uint64(value) => *value.tag_mut() = tag,
        Ciphertext::Bool(_) | Ciphertext::Block(_) => {}
    }
    Ok(ciphertext)
}

/// Parameters, degree and noise level of one block. A block of an integer or a bool has no carries, as TFHE-rs's operations leave it: with
/// carries the receiver would learn more than the value.
fn check(
    block: &shortint::Ciphertext,
    kind: Type,
    index: usize,
    file: &Path,
) -> Result<(), BridgeError> {
    let set = set();
    let degree = match kind {
        Type::Bool => 1,
        Type::Block => set.message_modulus.0 * set.carry_modulus.0 - 1,
        _ => set.message_modulus.0 - 1,
    };
    let differs = |field, found: String, expected: String| BridgeError::Block {
        file: file.into(),
        block: index,
        field,
        found,
        expected,
    };
    let dimension = block.ct.lwe_size().0.saturating_sub(1);
    if dimension != LWE_DIMENSION {
        return Err(differs(
            "dimension",
            dimension.to_string(),
            LWE_DIMENSION.to_string(),
        ));
    }
    if block.ct.ciphertext_modulus() != CiphertextModulus::new_native() {
        return Err(differs(
            "modulus",
            block.ct.ciphertext_modulus().to_string(),
            "2^64".into(),
        ));
    }
    let moduli = [
        (
            "message modulus",
            block.message_modulus.0,
            set.message_modulus.0,
        ),
        ("carry modulus", block.carry_modulus.0, set.carry_modulus.0),
    ];
    for (field, found, expected) in moduli {
        if found != expected {
            return Err(differs(field, found.to_string(), expected.to_string()));
        }
    }
    if block.atomic_pattern != pattern() {
        return Err(differs(
            "order",
            format!("{:?}", block.atomic_pattern),
            format!("{:?}", pattern()),
        ));
    }
    let limits = [
        ("degree", block.degree.get(), degree),
        (
            "noise level",
            block.noise_level().get(),
            set.max_noise_level.get(),
        ),
    ];
    for (field, found, most) in limits {
        if found > most {
            return Err(BridgeError::Exceeds {
                file: file.into(),
                block: index,
                field,
                found,
                most,
            });
        }
    }
    Ok(())
}

/// Encrypts a value of `kind` under a public key.
pub fn encrypt(key: &CompactPublicKey, kind: Type, value: u64) -> Result<Ciphertext, BridgeError> {
    let refused = |e: tfhe::Error| {
        BridgeError::Usage(format!("TFHE-rs cannot encrypt under this public key: {e}"))
    };
    let missing = || BridgeError::Usage("TFHE-rs expanded no ciphertext: report it".into());
    if kind.bits() < 64 && value >> kind.bits() != 0 {
        return Err(BridgeError::Usage(format!(
            "{value} does not fit {}: give at most {} bits",
            kind.name(),
            kind.bits()
        )));
    }
    let mut list = CompactCiphertextList::builder(key);
    if kind == Type::Bool {
        list.push(value == 1);
    } else {
        list.push_with_num_bits(value, kind.bits())
            .map_err(refused)?;
    }
    let list = list.build().expand().map_err(refused)?;
    Ok(match kind {
        Type::Bool => Ciphertext::Bool(list.get(0).map_err(refused)?.ok_or_else(missing)?),
        Type::Block => {
            let value: tfhe::FheUint2 = list.get(0).map_err(refused)?.ok_or_else(missing)?;
            Ciphertext::Block(
                value
                    .into_raw_parts()
                    .0
                    .into_blocks()
                    .pop()
                    .ok_or_else(missing)?,
            )
        }
        Type::Uint8 => Ciphertext::Uint8(list.get(0).map_err(refused)?.ok_or_else(missing)?),
        Type::Uint16 => Ciphertext::Uint16(list.get(0).map_err(refused)?.ok_or_else(missing)?),
        Type::Uint32 => Ciphertext::Uint32(list.get(0).map_err(refused)?.ok_or_else(missing)?),
        Type::Uint64 => Ciphertext::Uint64(list.get(0).map_err(refused)?.ok_or_else(missing)?),
    })
}
