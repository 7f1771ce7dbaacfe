//! Shares as the bytes of share files.

use keyquorum_math::{Domain, Element};

use super::{Computation, wrong};
use crate::error::{EngineError, Result};
use crate::graph::Handle;
use crate::protocol::Protocol;
use crate::value::{Kind, Share, Value};

impl<P: Protocol, D: Domain> Computation<P, D> {
    /// [`Engine::export`](crate::engine::Engine::export).
    pub(super) fn exported(&mut self, a: &Handle) -> Result<Vec<u8>> {
        match &*self.forced(a)? {
            Value::Secret(share) => {
                share.check(self.protocol.parts(), a.size())?;
                let mut out = Vec::with_capacity(self.protocol.parts() * share.len() * D::E::BYTES);
                for v in share.parts.iter().flatten() {
                    if D::E::BYTES == 8 {
                        out.extend_from_slice(&(v.to_u128() as u64).to_le_bytes());
                    } else {
                        out.extend_from_slice(&v.to_u128().to_le_bytes());
                    }
                }
                Ok(out)
            }
            _ => Err(wrong("storing", a)),
        }
    }

    /// [`Engine::import`](crate::engine::Engine::import).
    pub(super) fn imported(&mut self, data: &[u8], n: usize) -> Result<Handle> {
        self.graph.refuse_after_failure()?;
        let parts = self.protocol.parts();
        let word = parts * D::E::BYTES;
        if n.checked_mul(word) != Some(data.len()) {
            return Err(EngineError::Store(format!(
                "stored shares have {} bytes, {n} elements of {} need {word} each",
                data.len(),
                self.domain.kind()
            )));
        }
        let mut share = Share {
            parts: Vec::with_capacity(parts),
        };
        for bytes in data.chunks(n.max(1) * D::E::BYTES) {
            let mut part = Vec::with_capacity(n);
            for word in bytes.chunks_exact(D::E::BYTES) {
                let value = match word.first_chunk::<8>() {
                    Some(low) if D::E::BYTES == 8 => u128::from(u64::from_le_bytes(*low)),
                    _ => word
                        .iter()
                        .rev()
                        .fold(0u128, |v, b| (v << 8) | u128::from(*b)),
                };
                let element = self.shares.from_u128(value);
                if element.to_u128() != value {
                    return Err(EngineError::Store(format!(
                        "a stored share is out of range for {}",
                        self.domain.kind()
                    )));
                }
                part.push(element);
            }
            share.parts.push(part);
        }
        if n == 0 {
            share = Share::zeros(parts, 0);
        }
        Ok(self.graph.insert(Value::Secret(share), Kind::Secret, n))
    }
}
