//! TFHE-rs's ciphertexts: their types, their files, and the checks before a committee decrypts them.

use std::path::Path;

use tfhe::core_crypto::prelude::CiphertextModulus;
use tfhe::integer::IntegerRadixCiphertext;
use tfhe::integer::ciphertext::{DataKind, Expandable};
use tfhe::prelude::{CiphertextList, Tagged};
use tfhe::shortint;
use tfhe::{
    CompactCiphertextList, CompactPublicKey, FheBool, FheInt64, FheInt64Id, FheUint2, FheUint64,
    FheUint64Id, ReRandomizationMetadata, Tag,
};

use crate::keys::tag;
use crate::parameters::{LWE_DIMENSION, pattern, set};
use crate::serialize::{MAX_CIPHERTEXT, one_line, parsed, read};
use crate::{BridgeError, serialized};

/// Bits of one block.
const BLOCK_BITS: usize = 2;

/// Type of a ciphertext.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `FheBool`.
    Bool,
    /// One `shortint` block.
    Block,
    /// `FheUint` of so many bits.
    Uint(usize),
    /// `FheInt` of so many bits, in two's complement.
    Int(usize),
}

impl Type {
    /// All types: of integers those that TFHE-rs has, with its feature `extended-types` too.
    pub fn all() -> Vec<Self> {
        let widths: Vec<usize> = (2..16)
            .step_by(2)
            .chain((16..=256).step_by(8))
            .chain([512, 1024, 2048])
            .collect();
        let unsigned = widths.iter().copied().map(Self::Uint);
        let signed = widths.iter().copied().map(Self::Int);
        [Self::Bool, Self::Block]
            .into_iter()
            .chain(unsigned)
            .chain(signed)
            .collect()
    }

    /// Name on the command line and in files of LWE ciphertexts.
    pub fn name(self) -> String {
        match self {
            Self::Bool => "bool".into(),
            Self::Block => "block".into(),
            Self::Uint(bits) => format!("uint{bits}"),
            Self::Int(bits) => format!("int{bits}"),
        }
    }

    /// Bits of a value.
    pub fn bits(self) -> usize {
        match self {
            Self::Bool => 1,
            Self::Block => BLOCK_BITS,
            Self::Uint(bits) | Self::Int(bits) => bits,
        }
    }

    /// Number of LWE ciphertexts: two bits each.
    pub fn blocks(self) -> usize {
        self.bits().div_ceil(BLOCK_BITS)
    }

    /// Whether values are integers of several blocks.
    pub(crate) fn is_integer(self) -> bool {
        matches!(self, Self::Uint(_) | Self::Int(_))
    }

    /// A type by its name.
    pub fn parse(name: &str) -> Result<Self, BridgeError> {
        Self::all()
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| {
                BridgeError::Usage(format!(
                    "unknown type {name}: choose bool, block, or uintN or intN of a width of TFHE-rs, as uint8 or int64"
                ))
            })
    }

    /// The blocks of a decimal number, the lowest first; a minus sign stands before negative ones.
    fn split(self, number: &str) -> Result<Vec<u64>, BridgeError> {
        let refused = |reason: String| BridgeError::Usage(format!("{number} {reason}"));
        let misfit = || {
            refused(format!(
                "does not fit {}: give at most {} bits",
                self.name(),
                self.bits()
            ))
        };
        let (negative, digits) = match (self, number.strip_prefix('-')) {
            (Self::Int(_), Some(digits)) => (true, digits),
            _ => (false, number),
        };
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            let from = if matches!(self, Self::Int(_)) {
                "give an integer"
            } else {
                "give a number from 0"
            };
            return Err(refused(format!("is no value of {}: {from}", self.name())));
        }
        let mut blocks = vec![0; self.blocks()];
        for digit in digits.bytes() {
            let mut carry = u64::from(digit - b'0');
            for block in &mut blocks {
                carry += 10 * *block;
                *block = carry & 3;
                carry >>= BLOCK_BITS;
            }
            if carry != 0 {
                return Err(misfit());
            }
        }
        let zero = blocks.iter().all(|block| *block == 0);
        if negative && !zero {
            let mut carry = 1;
            for block in &mut blocks {
                carry += 3 - *block;
                *block = carry & 3;
                carry >>= BLOCK_BITS;
            }
        }
        let highest = blocks.last().copied().unwrap_or_default();
        let fits = match self {
            Self::Bool => highest < 2,
            Self::Int(_) => zero || (highest > 1) == negative,
            Self::Block | Self::Uint(_) => true,
        };
        if fits { Ok(blocks) } else { Err(misfit()) }
    }
}

/// A ciphertext of one of the supported types.
#[derive(Clone)]
pub struct Ciphertext {
    kind: Type,
    blocks: Vec<shortint::Ciphertext>,
    tag: Tag,
}

impl Ciphertext {
    /// A ciphertext from its blocks, the lowest first, under the tag of the key. Their number has to be that of the type.
    pub fn from_blocks(
        kind: Type,
        blocks: Vec<shortint::Ciphertext>,
        key_id: &str,
    ) -> Result<Self, BridgeError> {
        let found = blocks.len();
        if found != kind.blocks() {
            return Err(BridgeError::Usage(format!(
                "{} has {} blocks, not {found}",
                kind.name(),
                kind.blocks()
            )));
        }
        let tag = match kind {
            Type::Block => Tag::default(),
            _ => tag(key_id),
        };
        Ok(Self { kind, blocks, tag })
    }

    /// A block, which has no tag.
    pub fn from_block(block: shortint::Ciphertext) -> Self {
        Self {
            kind: Type::Block,
            blocks: vec![block],
            tag: Tag::default(),
        }
    }

    /// Type of the ciphertext.
    pub fn kind(&self) -> Type {
        self.kind
    }

    /// The blocks, the lowest first.
    pub fn blocks(&self) -> &[shortint::Ciphertext] {
        &self.blocks
    }

    /// The integer of TFHE-rs with these blocks.
    pub(crate) fn radix<T: IntegerRadixCiphertext>(&self) -> T {
        T::from(self.blocks.clone())
    }

    /// The tag: the id of the key for ciphertexts that this crate's keys made, empty for a block.
    pub fn tag(&self) -> &[u8] {
        self.tag.data()
    }

    /// Bytes in TFHE-rs's versioned form. Integers of all widths have one form: the width is the number of blocks.
    pub fn to_bytes(&self) -> Result<Vec<u8>, BridgeError> {
        let (tag, none) = (self.tag.clone(), ReRandomizationMetadata::default());
        match self.kind {
            Type::Bool => {
                let mut bit = FheBool::from_expanded_blocks(self.blocks.clone(), DataKind::Boolean)
                    .map_err(|e| {
                        BridgeError::Usage(format!("TFHE-rs refuses a bit of one block: {e}"))
                    })?;
                *bit.tag_mut() = tag;
                serialized(&bit)
            }
            Type::Block => match self.blocks.as_slice() {
                [block] => serialized(block),
                _ => Err(BridgeError::Usage("a block has one block".into())),
            },
            Type::Uint(_) => serialized(&FheUint64::from_raw_parts(
                self.radix(),
                FheUint64Id,
                tag,
                none,
            )),
            Type::Int(_) => serialized(&FheInt64::from_raw_parts(
                self.radix(),
                FheInt64Id,
                tag,
                none,
            )),
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
        check_tag(self.tag(), key_id, file, other)
    }
}

/// See [`Ciphertext::check_key`].
pub(crate) fn check_tag(
    tag: &[u8],
    key_id: &str,
    file: &Path,
    other: &Path,
) -> Result<(), BridgeError> {
    if tag.is_empty() || tag == key_id.as_bytes() {
        return Ok(());
    }
    Err(BridgeError::KeyId {
        file: file.into(),
        found: one_line(&String::from_utf8_lossy(tag)),
        other: other.into(),
        expected: key_id.into(),
    })
}

/// All `FheUint` have one name in TFHE-rs's files, and all `FheInt` another one; the number of blocks gives their width.
fn parse(data: &[u8], file: &Path) -> Result<Ciphertext, BridgeError> {
    let unsigned = |value: FheUint64| {
        let (radix, _, tag, _) = value.into_raw_parts();
        let blocks = radix.into_blocks();
        let kind = Type::Uint(BLOCK_BITS * blocks.len());
        Ciphertext { kind, blocks, tag }
    };
    let signed = |value: FheInt64| {
        let (radix, _, tag, _) = value.into_raw_parts();
        let blocks = radix.into_blocks();
        let kind = Type::Int(BLOCK_BITS * blocks.len());
        Ciphertext { kind, blocks, tag }
    };
    let bit = |bit: FheBool| Ciphertext {
        kind: Type::Bool,
        tag: bit.tag().clone(),
        blocks: vec![bit.into_raw_parts()],
    };
    let mut reasons = vec![];
    let mut failed = |reason: String| reasons.push(reason);
    let found = parsed(data, MAX_CIPHERTEXT)
        .map(unsigned)
        .map_err(&mut failed)
        .or_else(|()| {
            parsed(data, MAX_CIPHERTEXT)
                .map(signed)
                .map_err(&mut failed)
        })
        .or_else(|()| parsed(data, MAX_CIPHERTEXT).map(bit).map_err(&mut failed))
        .or_else(|()| {
            parsed(data, MAX_CIPHERTEXT)
                .map(Ciphertext::from_block)
                .map_err(&mut failed)
        });
    let Ok(ciphertext) = found else {
        // The attempt for the type that the file names has a reason of its own.
        let reason = reasons
            .iter()
            .find(|reason| !reason.contains("expected type"))
            .or(reasons.first());
        return Err(BridgeError::NotTfhe {
            file: file.into(),
            expected: "an FheUint, FheInt, FheBool or shortint ciphertext",
            reason: reason.map(|reason| one_line(reason)).unwrap_or_default(),
        });
    };
    let found = ciphertext.blocks.len();
    if !Type::all().contains(&ciphertext.kind) {
        return Err(BridgeError::Blocks {
            file: file.into(),
            found,
            expected: format!("and TFHE-rs has no integer of {} bits", BLOCK_BITS * found),
        });
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

/// Encrypts a value of `kind` under a public key: a decimal number, with a minus sign before negative ones.
pub fn encrypt(key: &CompactPublicKey, kind: Type, value: &str) -> Result<Ciphertext, BridgeError> {
    let refused = |e: tfhe::Error| {
        BridgeError::Usage(format!("TFHE-rs cannot encrypt under this public key: {e}"))
    };
    let missing = || BridgeError::Usage("TFHE-rs expanded no ciphertext: report it".into());
    let values = kind.split(value)?;
    let mut list = CompactCiphertextList::builder(key);
    for value in &values {
        if kind == Type::Bool {
            list.push(*value == 1);
        } else {
            list.push_with_num_bits(*value, BLOCK_BITS)
                .map_err(refused)?;
        }
    }
    let list = list.build().expand().map_err(refused)?;
    let blocks = (0..values.len())
        .map(|index| {
            if kind == Type::Bool {
                let bit: FheBool = list.get(index).map_err(refused)?.ok_or_else(missing)?;
                return Ok(bit.into_raw_parts());
            }
            let block: FheUint2 = list.get(index).map_err(refused)?.ok_or_else(missing)?;
            let mut blocks = block.into_raw_parts().0.into_blocks();
            blocks.pop().ok_or_else(missing)
        })
        .collect::<Result<Vec<_>, BridgeError>>()?;
    let tag = match kind {
        Type::Block => Tag::default(),
        _ => key.tag().clone(),
    };
    Ok(Ciphertext { kind, blocks, tag })
}
