//! A client of a committee: encrypts two numbers under its keys, computes with TFHE-rs, and writes the results for the committee.
//!
//! ```text
//! client FOLDER A B OUT
//!
//! FOLDER/CompactPublicKey.bin ──► encrypt A, B ──┐
//! FOLDER/ServerKey.bin        ──► A + B, A * B, max(A, B) ──► OUT.sum, OUT.product, OUT.max
//! ```
//!
//! `keyquorum tfhe keys` made both files from the public part of a joint key. They are TFHE-rs's own, and so are the results: nothing in this
//! program knows that nobody holds the secret key.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use tfhe::prelude::*;
use tfhe::safe_serialization::{safe_deserialize, safe_serialize};
use tfhe::{CompactCiphertextList, CompactPublicKey, FheUint16, ServerKey, set_server_key};

/// Above the 121 MB of a server key.
const LARGEST_KEY: u64 = 1 << 28;
/// Above the 131 kB of an `FheUint16`.
const LARGEST_RESULT: u64 = 1 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = env::args().skip(1).collect();
    let [folder, a, b, out] = given.as_slice() else {
        return Err("write: client FOLDER A B OUT".into());
    };
    let (a, b): (u16, u16) = (a.parse()?, b.parse()?);
    let folder = Path::new(folder);

    // Anyone encrypts: a compact list has 8 blocks of 2 bits for each number.
    let public = fs::read(folder.join("CompactPublicKey.bin"))?;
    let public: CompactPublicKey = safe_deserialize(&public[..], LARGEST_KEY)?;
    let list = CompactCiphertextList::builder(&public)
        .push(a)
        .push(b)
        .build_packed();

    // Anyone evaluates.
    let server = fs::read(folder.join("ServerKey.bin"))?;
    let server: ServerKey = safe_deserialize(&server[..], LARGEST_KEY)?;
    set_server_key(server);
    let list = list.expand()?;
    let [a, b] = [0, 1].map(|place| list.get::<FheUint16>(place));
    let (Some(a), Some(b)) = (a?, b?) else {
        return Err("the list does not hold two numbers".into());
    };
    for (name, result) in [("sum", &a + &b), ("product", &a * &b), ("max", a.max(&b))] {
        let mut bytes = Vec::new();
        safe_serialize(&result, &mut bytes, LARGEST_RESULT)?;
        fs::write(format!("{out}.{name}"), bytes)?;
    }
    Ok(())
}
