//! TFHE-rs's versioned serialization, with limits, and files that appear whole or not at all.

use std::path::Path;

use serde::{Serialize, de::DeserializeOwned};
use tfhe::conformance::ListSizeConstraint;
use tfhe::named::Named;
use tfhe::prelude::ParameterSetConformant;
use tfhe::safe_serialization::{safe_deserialize, safe_deserialize_conformant, safe_serialize};
use tfhe::shortint::parameters::CompactPublicKeyEncryptionParameters;
use tfhe::{
    CompactCiphertextList, CompactCiphertextListConformanceParams, CompactPublicKey,
    CompressedServerKey, ConfigBuilder, ServerKey, Unversionize, Versionize,
};

use crate::BridgeError;
use crate::parameters::set;

/// Above the 121 MB of a server key of the supported set.
const MAX_KEY: u64 = 1 << 28;
/// Above the 17 MB of 1,024 blocks.
pub(crate) const MAX_CIPHERTEXT: u64 = 1 << 25;
/// Above the 23 MB of the ciphertexts of 1,408 bits.
pub(crate) const MAX_LIST: u64 = 1 << 26;
/// Most bits of a compact list.
pub(crate) const MAX_BITS: usize = 1 << 16;

/// Bytes of an object in TFHE-rs's versioned form.
pub fn serialized<T: Serialize + Versionize + Named>(object: &T) -> Result<Vec<u8>, BridgeError> {
    let mut data = Vec::new();
    safe_serialize(object, &mut data, MAX_KEY)
        .map_err(|e| BridgeError::Usage(format!("TFHE-rs cannot write a {}: {e}", T::NAME)))?;
    Ok(data)
}

/// An object of the type T, or TFHE-rs's reason.
pub(crate) fn parsed<T: DeserializeOwned + Unversionize + Named>(
    data: &[u8],
    limit: u64,
) -> Result<T, String> {
    safe_deserialize(data, limit)
}

pub(crate) fn read(
    file: &Path,
    limit: u64,
    expected: &'static str,
) -> Result<Vec<u8>, BridgeError> {
    let failed = |source| BridgeError::Read {
        file: file.into(),
        source,
    };
    let size = std::fs::metadata(file).map_err(failed)?.len();
    if size > limit {
        let reason = format!("{size} bytes are above the limit of {limit}");
        return Err(BridgeError::NotTfhe {
            file: file.into(),
            expected,
            reason,
        });
    }
    std::fs::read(file).map_err(failed)
}

/// An object of the type T with the dimensions of `parameters`, or TFHE-rs's reason.
fn conformant<T: DeserializeOwned + Unversionize + Named + ParameterSetConformant>(
    data: &[u8],
    parameters: &T::ParameterSet,
) -> Result<T, String> {
    safe_deserialize_conformant(data, MAX_KEY, parameters)
}

/// Reads a `ServerKey`, or a `CompressedServerKey`, which is decompressed. Refuses keys of other parameters than the supported set.
pub fn read_server_key(file: &Path) -> Result<ServerKey, BridgeError> {
    let expected = "a ServerKey or CompressedServerKey";
    let data = read(file, MAX_KEY, expected)?;
    let config = ConfigBuilder::with_custom_parameters(set())
        .use_dedicated_oprf_key(false)
        .build()
        .into();
    conformant::<CompressedServerKey>(&data, &config)
        .map(|key| key.decompress())
        .or_else(|_| conformant::<ServerKey>(&data, &config))
        .map_err(|reason| BridgeError::NotTfhe {
            file: file.into(),
            expected,
            reason: one_line(&reason),
        })
}

/// Reads a `CompactPublicKey`. Refuses keys of other parameters than the supported set.
pub fn read_compact_public_key(file: &Path) -> Result<CompactPublicKey, BridgeError> {
    let expected = "a CompactPublicKey";
    let data = read(file, MAX_KEY, expected)?;
    let refused = |reason: String| BridgeError::NotTfhe {
        file: file.into(),
        expected,
        reason: one_line(&reason),
    };
    let parameters = CompactPublicKeyEncryptionParameters::try_from(set())
        .map_err(|e| refused(e.to_string()))?;
    conformant(&data, &parameters).map_err(refused)
}

/// A compact list of bits, or TFHE-rs's reason. One block for each bit, which nothing reduces before it is used.
pub(crate) fn bit_list(data: &[u8]) -> Result<CompactCiphertextList, String> {
    let parameters =
        CompactPublicKeyEncryptionParameters::try_from(set()).map_err(|e| e.to_string())?;
    let size = ListSizeConstraint::try_size_in_range(1, MAX_BITS)?;
    let parameters = CompactCiphertextListConformanceParams::from_parameters_and_size_constraint(
        parameters, size,
    );
    safe_deserialize_conformant(data, MAX_LIST, &parameters.allow_unpacked())
}

pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Writes a file under a temporary name in the same folder, then renames it.
pub fn write_file(file: &Path, data: &[u8]) -> Result<(), BridgeError> {
    let failed = |source| BridgeError::Write {
        file: file.into(),
        source,
    };
    let mut name = std::ffi::OsString::from(".");
    name.push(file.file_name().unwrap_or_default());
    name.push(format!(".{:x}.tmp", std::process::id()));
    let part = file.with_file_name(name);
    let written = std::fs::write(&part, data).and_then(|()| std::fs::rename(&part, file));
    written
        .inspect_err(|_| drop(std::fs::remove_file(&part)))
        .map_err(failed)
}
