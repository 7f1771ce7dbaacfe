//! The form that key files and LWE files share: 8 bytes of magic, `u32` length of the header, the header as JSON, the
//! body as little-endian `u64`, and SHA-256 of all bytes before.

use std::path::Path;

use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};

use crate::BridgeError;
use crate::serialize::one_line;

const DIGEST: usize = 32;
const MAX_HEADER: usize = 1 << 16;

/// Whether a text is 16 bytes in lower-case hexadecimal digits, as ids and seeds are.
pub(crate) fn is_hex(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Bytes of a file. The header must be serializable, which all headers of this crate are.
pub(crate) fn pack(
    magic: &[u8; 8],
    header: &impl Serialize,
    words: &[u64],
) -> Result<Vec<u8>, serde_json::Error> {
    let text = serde_json::to_vec(header)?;
    let mut data = Vec::with_capacity(12 + text.len() + 8 * words.len() + DIGEST);
    data.extend_from_slice(magic);
    data.extend_from_slice(&(text.len() as u32).to_le_bytes());
    data.extend_from_slice(&text);
    for word in words {
        data.extend_from_slice(&word.to_le_bytes());
    }
    let digest = Sha256::digest(&data);
    data.extend_from_slice(&digest);
    Ok(data)
}

/// Reads a file of [`pack`]. `holds` names its content in errors; `words` gives the number of words that a header states.
pub(crate) fn unpack<H: DeserializeOwned>(
    data: &[u8],
    file: &Path,
    magic: &[u8; 8],
    holds: &'static str,
    words: impl Fn(&H) -> u64,
) -> Result<(H, Vec<u64>), BridgeError> {
    let bad_header = |reason: String| BridgeError::Header {
        file: file.into(),
        reason,
    };
    let length = |stated: usize| BridgeError::Length {
        file: file.into(),
        found: data.len(),
        stated,
    };
    let Some(rest) = data.strip_prefix(magic) else {
        return Err(BridgeError::Magic {
            file: file.into(),
            expected: holds,
        });
    };
    let (size, rest) = rest
        .split_first_chunk::<4>()
        .ok_or_else(|| length(12 + DIGEST))?;
    let size = u32::from_le_bytes(*size) as usize;
    if size > MAX_HEADER {
        return Err(bad_header(format!(
            "its length {size} exceeds {MAX_HEADER}"
        )));
    }
    let (text, rest) = rest
        .split_at_checked(size)
        .ok_or_else(|| length(12 + size + DIGEST))?;
    let header: H =
        serde_json::from_slice(text).map_err(|e| bad_header(one_line(&e.to_string())))?;
    let body = usize::try_from(words(&header))
        .ok()
        .and_then(|n| n.checked_mul(8));
    let stated = body
        .and_then(|n| n.checked_add(12 + size + DIGEST))
        .ok_or_else(|| bad_header("too many words".into()))?;
    if stated != data.len() {
        return Err(length(stated));
    }
    let (content, digest) = data
        .split_at_checked(stated - DIGEST)
        .ok_or_else(|| length(stated))?;
    if Sha256::digest(content).as_slice() != digest {
        return Err(BridgeError::Digest { file: file.into() });
    }
    let (body, _) = rest
        .split_at_checked(rest.len() - DIGEST)
        .ok_or_else(|| length(stated))?;
    let (chunks, _) = body.as_chunks::<8>();
    Ok((
        header,
        chunks
            .iter()
            .map(|chunk| u64::from_le_bytes(*chunk))
            .collect(),
    ))
}
