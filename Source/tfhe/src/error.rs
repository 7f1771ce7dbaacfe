//! Errors: one line each, with the file and the cure.

use std::path::PathBuf;

/// Why a file was refused.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// The operating system could not read the file.
    #[error("{file}: cannot be read ({source}): check the path and the rights of the file")]
    Read {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The operating system could not write the file.
    #[error(
        "{file}: cannot be written ({source}): name a folder that exists and that you may write"
    )]
    Write {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file begins with other bytes.
    #[error("{file}: not a file of {expected}: name another file")]
    Magic {
        /// The file.
        file: PathBuf,
        /// What the file should hold.
        expected: &'static str,
    },
    /// The file ends too early, or has bytes after its end.
    #[error("{file}: has {found} bytes, its header states {stated}: copy the file again")]
    Length {
        /// The file.
        file: PathBuf,
        /// Bytes of the file.
        found: usize,
        /// Bytes by the header.
        stated: usize,
    },
    /// SHA-256 at the end differs from the content.
    #[error("{file}: SHA-256 at its end differs from its content: copy the file again")]
    Digest {
        /// The file.
        file: PathBuf,
    },
    /// The header is not the JSON object that the format requires.
    #[error(
        "{file}: its header is not valid ({reason}): make the file again by the same version of KeyQuorum"
    )]
    Header {
        /// The file.
        file: PathBuf,
        /// The first violation.
        reason: String,
    },
    /// A key of another kind.
    #[error(
        "{file}: holds a key of the kind {found}, not {expected}: put each key under its own name"
    )]
    Kind {
        /// The file.
        file: PathBuf,
        /// Kind in the header.
        found: &'static str,
        /// Kind that the name of the file requires.
        expected: &'static str,
    },
    /// Parameters that this crate does not support.
    #[error(
        "{file}: {field} is {found}, the bridge supports {expected}: make keys of the set tfhers-2-2"
    )]
    Parameters {
        /// The file.
        file: PathBuf,
        /// Field of the header.
        field: &'static str,
        /// Value in the header.
        found: String,
        /// Value of the supported set.
        expected: String,
    },
    /// Two files of different keys.
    #[error(
        "{file}: belongs to key {found}, {other} to key {expected}: take both from the same key"
    )]
    KeyId {
        /// The file.
        file: PathBuf,
        /// Key of the file.
        found: String,
        /// The file or folder that it was compared with.
        other: PathBuf,
        /// Key of `other`.
        expected: String,
    },
    /// Two files whose masks have the same seed.
    #[error(
        "{file}: its masks have the same seed as {other}: make the key again, and use neither file"
    )]
    Seed {
        /// The file.
        file: PathBuf,
        /// The other file.
        other: PathBuf,
    },
    /// TFHE-rs cannot read the file.
    #[error("{file}: not {expected} of TFHE-rs 1.8 ({reason}): write it by safe_serialize")]
    NotTfhe {
        /// The file.
        file: PathBuf,
        /// What the file should hold.
        expected: &'static str,
        /// The cause that TFHE-rs names.
        reason: String,
    },
    /// A ciphertext under other parameters than those of the key.
    #[error(
        "{file}: block {block} has {field} {found}, the key requires {expected}: encrypt under PARAM_MESSAGE_2_CARRY_2_KS_PBS"
    )]
    Block {
        /// The file.
        file: PathBuf,
        /// Index of the block.
        block: usize,
        /// Property of the block.
        field: &'static str,
        /// Value of the block.
        found: String,
        /// Value for the supported set.
        expected: String,
    },
    /// A block whose value or noise may exceed its space.
    #[error(
        "{file}: block {block} has {field} {found}, above {most}: propagate its carries before you write it"
    )]
    Exceeds {
        /// The file.
        file: PathBuf,
        /// Index of the block.
        block: usize,
        /// `degree` or `noise level`.
        field: &'static str,
        /// Value of the block.
        found: u64,
        /// Largest value that is accepted.
        most: u64,
    },
    /// A number of blocks that no supported type has.
    #[error("{file}: has {found} blocks, {expected}: name another type or file")]
    Blocks {
        /// The file.
        file: PathBuf,
        /// Number of blocks.
        found: usize,
        /// What is supported.
        expected: String,
    },
    /// LWE ciphertexts whose stated noise exceeds that of fresh ones.
    #[error(
        "{file}: states noise of up to 2^{found}, fresh blocks have below 2^{most}: keep TFHE-rs's file of evaluated ciphertexts"
    )]
    Noise {
        /// The file.
        file: PathBuf,
        /// log2 of the stated bound.
        found: f64,
        /// log2 of the largest bound that is accepted.
        most: u32,
    },
    /// A circuit that does not have the form that the bridge reads.
    #[error("{file}: line {line}: {reason}: make the circuit by the same version of KeyQuorum")]
    Circuit {
        /// The file.
        file: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// The violation.
        reason: String,
    },
    /// A value, type or operation that does not exist, or does not fit.
    #[error("{0}")]
    Usage(String),
}
