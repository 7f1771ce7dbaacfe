//! Temperatures under a committee's key, with TFHE-rs alone: docs/pages/rust.md.
//!
//! ```text
//! keyquorum-tfhe-example encrypt CompactPublicKey.bin LIST VALUE...   a client: its values, as one list
//! keyquorum-tfhe-example evaluate ServerKey.bin LIST OUT              OUT.total, OUT.highest and OUT.frost
//! ```
//!
//! `keyquorum tfhe keys` writes both keys. `keyquorum decrypt` takes the three results: an `FheInt32`, an `FheInt16` and an `FheBool`.

use std::fs::File;
use std::io::BufReader;
use std::process::ExitCode;

use tfhe::conformance::ListSizeConstraint;
use tfhe::named::Named;
use tfhe::prelude::*;
use tfhe::safe_serialization::{safe_deserialize, safe_deserialize_conformant, safe_serialize};
use tfhe::shortint::parameters::{
    CompactPublicKeyEncryptionParameters, PARAM_MESSAGE_2_CARRY_2_KS_PBS,
};
use tfhe::{
    CompactCiphertextList, CompactCiphertextListConformanceParams, CompactPublicKey, FheBool,
    FheInt16, FheInt32, ServerKey, Versionize, set_server_key,
};

/// Bytes above the 121 MB of a server key.
const LIMIT: u64 = 1 << 28;
/// Most values of a list.
const MOST: usize = 1000;

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("give encrypt CompactPublicKey.bin LIST VALUE..., or evaluate ServerKey.bin LIST OUT")]
    Usage,
    #[error("{0} is not a number from -32768 to 32767: give another value")]
    Value(String),
    #[error("{0}: {1}")]
    File(String, String),
    #[error("TFHE-rs: {0}")]
    Tfhe(#[from] tfhe::Error),
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["encrypt", key, list, values @ ..] if !values.is_empty() => encrypt(key, list, values),
        ["evaluate", key, list, out] => evaluate(key, list, out),
        _ => Err(Failure::Usage),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("example: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The client has the public key alone.
fn encrypt(key: &str, list: &str, values: &[&str]) -> Result<(), Failure> {
    let public: CompactPublicKey =
        safe_deserialize(open(key)?, LIMIT).map_err(|reason| Failure::File(key.into(), reason))?;
    let mut builder = CompactCiphertextList::builder(&public);
    for text in values {
        let value: i16 = text.parse().map_err(|_| Failure::Value((*text).into()))?;
        builder.push(value);
    }
    save(&builder.build_packed(), list)
}

/// The evaluator has the server key alone, and sees no value.
fn evaluate(key: &str, list: &str, out: &str) -> Result<(), Failure> {
    let server: ServerKey =
        safe_deserialize(open(key)?, LIMIT).map_err(|reason| Failure::File(key.into(), reason))?;
    set_server_key(server);
    let values = temperatures(list)?;
    let empty = || Failure::File(list.into(), "has no values".into());

    // A sum of values of 16 bits may need more: the total has 32.
    let wide = values.iter().cloned().map(FheInt32::cast_from);
    let total = wide.reduce(|sum, value| sum + value).ok_or_else(empty)?;
    let each = values.iter().cloned();
    let highest = each.reduce(|a, b| a.max(&b)).ok_or_else(empty)?;
    let cold = values.iter().map(|value| value.lt(0));
    let frost: FheBool = cold.reduce(|a, b| a | b).ok_or_else(empty)?;

    save(&total, &format!("{out}.total"))?;
    save(&highest, &format!("{out}.highest"))?;
    save(&frost, &format!("{out}.frost"))
}

/// A list comes from somebody else: TFHE-rs checks that it has the form of a list under these parameters.
fn temperatures(list: &str) -> Result<Vec<FheInt16>, Failure> {
    let refused = |reason: String| Failure::File(list.into(), reason);
    let form = CompactCiphertextListConformanceParams::from_parameters_and_size_constraint(
        CompactPublicKeyEncryptionParameters::try_from(PARAM_MESSAGE_2_CARRY_2_KS_PBS)?,
        ListSizeConstraint::try_size_in_range(1, MOST).map_err(refused)?,
    );
    let found: CompactCiphertextList =
        safe_deserialize_conformant(open(list)?, LIMIT, &form).map_err(refused)?;
    let values = found.expand()?;
    (0..values.len())
        .map(|index| {
            let value = values.get(index)?;
            value.ok_or_else(|| refused("a value is missing".into()))
        })
        .collect()
}

fn open(path: &str) -> Result<BufReader<File>, Failure> {
    let file = File::open(path).map_err(|reason| Failure::File(path.into(), reason.to_string()))?;
    Ok(BufReader::new(file))
}

/// What `keyquorum decrypt` reads: TFHE-rs's versioned form, with the name of the type.
fn save<T: serde::Serialize + Versionize + Named>(object: &T, path: &str) -> Result<(), Failure> {
    let mut data = Vec::new();
    safe_serialize(object, &mut data, LIMIT)
        .map_err(|reason| Failure::File(path.into(), reason.to_string()))?;
    std::fs::write(path, data).map_err(|reason| Failure::File(path.into(), reason.to_string()))
}
