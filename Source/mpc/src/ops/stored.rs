//! Shares as the bytes of share files, and their origin ([`Origin`]), which shows in a later session that all parties have files of the same run: a tossed
//! name, and with MACs a test of the MAC keys.
//!
//! Without MACs nothing in the shares shows whether they are of one run. Honest parties with shares of two runs would compute with a value that belongs to neither, and could open the difference of
//! an old and a new value. So protocols that verify products store the name with the shares. A session takes shares in only after all parties have compared the names of their files: two honest
//! parties compare directly, so a corrupted one cannot hide a difference. A new name is tossed whenever share files are written: a party that is stopped in the middle of a second save has
//! other names than those that were not.

use keyquorum_math::{Domain, Element};
use zeroize::Zeroizing;

use super::{Computation, wrong};
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::graph::Handle;
use crate::protocol::{Origin, Protocol};
use crate::task::then;
use crate::value::{Kind, Share, Value};

/// Bytes of the public name of a run, which was tossed: the same at all parties.
pub(crate) const NAME_BYTES: usize = 16;

impl<P: Protocol<D>, D: Domain> Computation<P, D> {
    /// [`Engine::export`](crate::engine::Engine::export).
    pub(super) fn exported(&mut self, a: &Handle) -> Result<Vec<u8>> {
        match &*self.forced(a, false)? {
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
        self.refuse_unchecked(data)?;
        let share = self.taken_in(data, n)?;
        Ok(self.graph.insert(Value::Secret(share), Kind::Secret, n))
    }

    /// A stored share that the protocol takes in: [`Engine::give_random`](crate::engine::Engine::give_random).
    pub(super) fn given(&mut self, data: &[u8], n: usize) -> Result<Share<D::E>> {
        self.refuse_unchecked(data)?;
        self.taken_in(data, n)
    }

    fn refuse_unchecked(&mut self, data: &[u8]) -> Result<()> {
        self.graph.refuse_after_failure()?;
        let unknown = match self.protocol.origin() {
            Origin::Unstated => return Ok(()),
            Origin::Name => {
                "all parties have those of the same run: compare the names of the runs first"
            }
            Origin::NameAndKeyTest(_) => {
                "the MAC keys are those that they were stored under: store them with their key test, and test the keys first"
            }
        };
        let domain = self.domain.kind();
        // Zeros are shares of zeros in every run, with zeros as MACs under every key.
        if data.iter().all(|byte| *byte == 0) || self.session.lock()?.origins.contains_key(&domain)
        {
            return Ok(());
        }
        Err(EngineError::Store(format!(
            "stored shares over {domain} are used before it is known that {unknown}"
        )))
    }

    /// A share from raw words, whichever MAC key it is under.
    fn taken_in(&mut self, data: &[u8], n: usize) -> Result<Share<D::E>> {
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
        self.protocol.note_stored(&self.shares, &share)?;
        Ok(share)
    }

    /// [`Engine::origin`].
    pub(super) fn made_origin(&mut self) -> Result<Zeroizing<Vec<u8>>> {
        if let Some(made) = &self.origin {
            return Ok(made.clone());
        }
        let mut elements = Zeroizing::default();
        let made = match self.protocol.origin() {
            Origin::Unstated => elements,
            form => {
                if let Origin::NameAndKeyTest(n) = form {
                    let random = self.random(n)?;
                    elements = Zeroizing::new(self.exported(&random)?);
                }
                let name = self.session.toss(NAME_BYTES)?;
                self.note_origin(&name)?;
                Zeroizing::new([name.as_slice(), elements.as_slice()].concat())
            }
        };
        self.origin = Some(made.clone());
        Ok(made)
    }

    /// [`Engine::renew_origin`].
    pub(super) fn renewed_origin(&mut self) -> Result<Zeroizing<Vec<u8>>> {
        if self.protocol.origin() == Origin::Name {
            self.origin = None;
        }
        self.made_origin()
    }

    /// [`Engine::check_origin`].
    pub(super) fn checked_origin(&mut self, origin: &[u8]) -> Result<()> {
        match self.protocol.origin() {
            Origin::Name => self.compared_names(origin),
            Origin::Unstated if origin.is_empty() => Ok(()),
            Origin::Unstated => Err(self.another_length(origin, 0)),
            Origin::NameAndKeyTest(n) => self.tested_keys(origin, n),
        }
    }

    /// Tests whether the MAC keys are those of the `n` elements that are stored with a name.
    fn tested_keys(&mut self, origin: &[u8], n: usize) -> Result<()> {
        self.graph.refuse_after_failure()?;
        let word = self.protocol.parts() * D::E::BYTES;
        let (name, elements) = match origin.split_at_checked(NAME_BYTES) {
            Some((name, elements)) if elements.len() == n * word => (name, elements),
            _ => return Err(self.another_length(origin, NAME_BYTES + n * word)),
        };
        if self.knows_origin(name)? {
            return Ok(());
        }
        // Other elements at another party would look like another key, and burn the keys.
        self.compare_names(name)?;
        let stored = self.taken_in(elements, n)?;
        let stored = self.graph.insert(Value::Secret(stored), Kind::Secret, n);
        let done = self.communicate(&[&stored], Kind::Clear, 0, |p, inputs| {
            let Some(Value::Secret(stored)) = inputs.first().map(|value| &**value) else {
                return Err(EngineError::internal(
                    "no elements to test stored keys with",
                ));
            };
            Ok(then(p.test_stored_keys(stored)?, |_, ()| {
                Ok(Value::Clear(Vec::new()))
            }))
        })?;
        self.forced(&done, false)?;
        self.note_origin(name)
    }

    fn another_length(&self, origin: &[u8], needed: usize) -> EngineError {
        EngineError::Store(format!(
            "the origin that is stored with shares over {} has {} bytes, it needs {needed}: restore the file from a backup",
            self.domain.kind(),
            origin.len(),
        ))
    }

    /// Compares the names of the runs that stored shares; every time, as a name that is known may be that of another file.
    fn compared_names(&mut self, name: &[u8]) -> Result<()> {
        self.graph.refuse_after_failure()?;
        if ![0, NAME_BYTES].contains(&name.len()) {
            return Err(EngineError::Store(format!(
                "the name of the run that stored shares over {} has {} bytes, it needs {NAME_BYTES}",
                self.domain.kind(),
                name.len()
            )));
        }
        self.compare_names(name)?;
        match name {
            [] => Ok(()),
            name => self.note_origin(name),
        }
    }

    fn compare_names(&self, name: &[u8]) -> Result<()> {
        let names = self.session.all_gather(name)?;
        let Some(peer) = names.iter().position(|theirs| theirs.as_slice() != name) else {
            return Ok(());
        };
        Err(EngineError::Store(format!(
            "party {peer} has stored shares that were not made together with those of party {}, or one of the two has none: give every party its own files of the same time",
            self.session.party()
        )))
    }

    fn knows_origin(&self, name: &[u8]) -> Result<bool> {
        let inner = self.session.lock()?;
        let known = inner.origins.get(&self.domain.kind());
        Ok(known.is_some_and(|known| known.contains(name)))
    }

    fn note_origin(&self, name: &[u8]) -> Result<()> {
        let mut inner = self.session.lock()?;
        let known = inner.origins.entry(self.domain.kind()).or_default();
        known.insert(name.to_vec());
        Ok(())
    }
}
