//! Domains with products from oblivious transfer, and the payloads of their correlated OTs.

use keyquorum_math::{BitLanes, Domain, Z2k64, Z2k128, Zq};
use keyquorum_ot::{Field, OtError, Payload, PowerOfTwo};

use crate::error::{EngineError, Result};
use crate::items::Items;

/// A domain in which oblivious transfer makes products.
pub trait Arithmetic: Domain {
    /// The ring of correlated OTs.
    type Payload: Payload<Word = Self::E>;

    /// Payload for products.
    fn payload(&self) -> Result<Self::Payload>;

    /// Payload for products that will be doubled: modulo 2^k one bit less is enough.
    fn half_payload(&self) -> Result<Self::Payload>;

    /// The triples for products in this domain, of triples of elements and of AND triples.
    fn triples<'a>(
        elements: &'a mut Items<Self::E, 3>,
        _ands: &'a mut Items<u64, 3>,
    ) -> &'a mut Items<Self::E, 3> {
        elements
    }
}

fn usage(e: OtError) -> EngineError {
    EngineError::usage(e.to_string())
}

impl Arithmetic for Z2k64 {
    type Payload = PowerOfTwo<u64>;

    fn payload(&self) -> Result<Self::Payload> {
        PowerOfTwo::<u64>::new(self.k()).map_err(usage)
    }

    fn half_payload(&self) -> Result<Self::Payload> {
        PowerOfTwo::<u64>::new((self.k() - 1).max(1)).map_err(usage)
    }
}

impl Arithmetic for Z2k128 {
    type Payload = PowerOfTwo<u128>;

    fn payload(&self) -> Result<Self::Payload> {
        PowerOfTwo::<u128>::new(self.k()).map_err(usage)
    }

    fn half_payload(&self) -> Result<Self::Payload> {
        PowerOfTwo::<u128>::new(self.k() - 1).map_err(usage)
    }
}

impl Arithmetic for Zq {
    type Payload = Field;

    fn payload(&self) -> Result<Self::Payload> {
        Ok(Field::new(self.clone()))
    }

    fn half_payload(&self) -> Result<Self::Payload> {
        self.payload()
    }
}

/// Lanes of bits have AND triples; these payloads are never asked for.
impl Arithmetic for BitLanes {
    type Payload = PowerOfTwo<u64>;

    fn payload(&self) -> Result<Self::Payload> {
        Err(EngineError::usage(
            "packed bits are multiplied by AND triples",
        ))
    }

    fn half_payload(&self) -> Result<Self::Payload> {
        self.payload()
    }

    fn triples<'a>(
        _elements: &'a mut Items<u64, 3>,
        ands: &'a mut Items<u64, 3>,
    ) -> &'a mut Items<u64, 3> {
        ands
    }
}
