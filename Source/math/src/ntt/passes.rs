//! Which passes a transform runs. They are chosen when its tables are made, by the processor, the modulus and the ring degree, which are public.

use super::{NttError, butterflies};
#[cfg(target_arch = "x86_64")]
use super::{
    avx2::{self, Kind, Roots},
    avx512::{self, Last},
};
use crate::modular::Shoup;

/// The passes of a transform, with the tables that only they need.
#[derive(Clone, Debug)]
pub(super) enum Passes {
    /// Scalar, for every processor, modulus and ring degree.
    Portable,
    /// With AVX-512 and its products of 52 bits.
    #[cfg(target_arch = "x86_64")]
    Avx512 {
        /// Roots of the last layers of the transform.
        forward: Vec<Last>,
        /// Roots of the first layers of its inverse.
        inverse: Vec<Last>,
    },
    /// With AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    Avx2 {
        /// Roots of the transform.
        forward: Roots,
        /// Roots of its inverse.
        inverse: Roots,
    },
}

impl Passes {
    /// The fastest passes here. Both tables have a root for each coefficient.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn best(q: u64, forward: &[Shoup], inverse: &[Shoup]) -> Result<Self, NttError> {
        if q < avx512::LARGEST && forward.len() >= avx512::GROUP && avx512::detected() {
            return Ok(Self::Avx512 {
                forward: avx512::last_layers(forward)?,
                inverse: avx512::last_layers(inverse)?,
            });
        }
        let kind = Kind::ALL.into_iter().find(|kind| q < kind.limit());
        match kind {
            Some(kind) if forward.len() >= avx2::GROUP && avx2::detected() => {
                Self::avx2(kind, q, forward, inverse)
            }
            _ => Ok(Self::Portable),
        }
    }

    /// The passes for AVX2 with one kind of arithmetic.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn avx2(
        kind: Kind,
        q: u64,
        forward: &[Shoup],
        inverse: &[Shoup],
    ) -> Result<Self, NttError> {
        Ok(Self::Avx2 {
            forward: Roots::new(kind, forward, q)?,
            inverse: Roots::new(kind, inverse, q)?,
        })
    }

    /// The fastest passes here.
    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn best(_: u64, _: &[Shoup], _: &[Shoup]) -> Result<Self, NttError> {
        Ok(Self::Portable)
    }

    /// Its name.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 { .. } => "avx512ifma",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 { forward, .. } => forward.kind().name(),
        }
    }

    /// Coefficients to values, both canonical.
    pub(super) fn forward(&self, a: &mut [u64], roots: &[Shoup], q: u64) -> Result<(), NttError> {
        match self {
            Self::Portable if q < 1 << 60 => butterflies::forward::<true>(a, roots, q),
            Self::Portable => butterflies::forward::<false>(a, roots, q),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 { forward, .. } => avx512::forward(a, roots, forward, q),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 { forward, .. } => avx2::forward(a, forward, q),
        }
    }

    /// Undoes [`Self::forward`]. `factors` are `1/n` and `roots[1] / n`.
    pub(super) fn inverse(
        &self,
        a: &mut [u64],
        roots: &[Shoup],
        factors: [Shoup; 2],
        q: u64,
    ) -> Result<(), NttError> {
        let [scale, last] = factors;
        match self {
            Self::Portable if q < 1 << 60 => butterflies::inverse::<true>(a, roots, scale, last, q),
            Self::Portable => butterflies::inverse::<false>(a, roots, scale, last, q),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 { inverse, .. } => avx512::inverse(a, roots, inverse, factors, q),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 { inverse, .. } => avx2::inverse(a, inverse, factors, q),
        }
    }
}
