//! Openings, to everybody or to one party, and shuffles.

use keyquorum_math::Domain;
use zeroize::Zeroizing;

use super::{Computation, mismatch, wrong};
use crate::error::{EngineError, Result};
use crate::graph::Handle;
use crate::protocol::Protocol;
use crate::task::then;
use crate::value::{Kind, Value};

impl<P: Protocol<D>, D: Domain> Computation<P, D> {
    /// [`Engine::open`](crate::engine::Engine::open).
    pub(super) fn opened(&mut self, a: &Handle) -> Result<Handle> {
        let d = self.shares.clone();
        let n = a.size();
        match a.kind() {
            Kind::Secret => self.communicate(&[a], Kind::Clear, n, move |p, inputs| {
                match inputs.first().map(|v| &**v) {
                    Some(Value::Secret(x)) => Ok(then(p.open(&d, x)?, |_, v| Ok(Value::Clear(v)))),
                    _ => mismatch(),
                }
            }),
            Kind::SecretBits => self.opened_bits(a),
            _ => Err(wrong("reveal", a)),
        }
    }

    /// [`Engine::open_low`](crate::engine::Engine::open_low).
    pub(super) fn opened_low(&mut self, a: &Handle, bits: u32, masked: bool) -> Result<Handle> {
        if a.kind() != Kind::Secret {
            return Err(wrong("opening low bits", a));
        }
        let (d, n) = (self.domain.clone(), a.size());
        let low = d.low_bits(bits).ok_or_else(|| {
            EngineError::usage(format!(
                "{bits} low bits of {} cannot be opened: choose 1 to k in a ring Z2^k",
                d.kind()
            ))
        })?;
        self.communicate(&[a], Kind::Clear, n, move |p, inputs| {
            match inputs.first().map(|v| &**v) {
                Some(Value::Secret(x)) => {
                    let opened = match masked {
                        true => p.open_masked(&low, x)?,
                        false => p.open_low(&low, x)?,
                    };
                    Ok(then(opened, |_, v| Ok(Value::Clear(v))))
                }
                _ => mismatch(),
            }
        })
    }

    /// [`Engine::open_to`](crate::engine::Engine::open_to).
    pub(super) fn opened_to(&mut self, a: &Handle, receiver: usize) -> Result<Handle> {
        let (_, parties) = self.protocol.party();
        if receiver >= parties {
            return Err(EngineError::usage(format!(
                "there is no party {receiver} among {parties}"
            )));
        }
        if a.kind() != Kind::Secret {
            return Err(wrong("reveal_to", a));
        }
        let d = self.shares.clone();
        self.communicate(
            &[a],
            Kind::Personal,
            a.size(),
            move |p, inputs| match inputs.first().map(|v| &**v) {
                Some(Value::Secret(x)) => Ok(then(p.open_to(&d, x, receiver)?, move |_, v| {
                    Ok(Value::Personal(receiver, v.map(Zeroizing::new)))
                })),
                _ => mismatch(),
            },
        )
    }

    /// [`Engine::shuffle`](crate::engine::Engine::shuffle).
    pub(super) fn shuffled(&mut self, a: &Handle, unit: usize) -> Result<Handle> {
        if a.kind() != Kind::Secret {
            return Err(wrong("shuffle", a));
        }
        if unit == 0 || !a.size().is_multiple_of(unit) {
            return Err(EngineError::usage(format!(
                "{} elements do not make blocks of {unit}",
                a.size()
            )));
        }
        let d = self.shares.clone();
        self.communicate(&[a], Kind::Secret, a.size(), move |p, inputs| match inputs
            .first()
            .map(|v| &**v)
        {
            Some(Value::Secret(x)) => Ok(then(p.shuffle(&d, x, unit)?, |_, share| {
                Ok(Value::Secret(share))
            })),
            _ => mismatch(),
        })
    }
}
