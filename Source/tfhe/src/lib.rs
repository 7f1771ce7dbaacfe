//! Bridge between `KeyQuorum` and TFHE-rs.
//!
//! A key folder of the set `tfhers-2-2` has three public files. This crate makes TFHE-rs's own keys from them
//! ([`KeyFolder`], [`server_key`]). It also turns TFHE-rs's ciphertexts into files of LWE ciphertexts, which a
//! committee decrypts, and back ([`Ciphertext`], [`LweFile`]).
//!
//! All formats are in `docs/pages/formats.md`. The crate holds no secret: every input and output is public. [`own_key_time`] makes keys to
//! measure the time alone, and drops them.
//!
//! TFHE-rs has the licence BSD-3-Clause-Clear, which grants no patent rights. See `README.md` of this crate.

mod ciphertext;
mod circuit;
mod container;
mod error;
mod evaluate;
mod key_file;
mod key_folder;
mod keys;
mod lwe_file;
mod measure;
mod parameters;
mod serialize;

pub use ciphertext::{Ciphertext, Type, encrypt};
pub use circuit::{Circuit, encrypt_list, read_bits};
pub use error::BridgeError;
pub use evaluate::{Operation, evaluate};
pub use key_file::{KeyFile, Kind};
pub use key_folder::KeyFolder;
pub use keys::{compact_public_key, compressed_server_key, server_key};
pub use lwe_file::LweFile;
pub use measure::own_key_time;
pub use parameters::{LWE_DIMENSION, MESSAGE_SHIFT, NAME, set};
pub use serialize::{read_compact_public_key, read_server_key, serialized, write_file};
