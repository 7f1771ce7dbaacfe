//! What tests of sessions see of a party, and ask it for.

use super::{Arithmetic, Authenticated, preprocessing};
use crate::error::Result;
use crate::task::SendFn;

impl<A: Arithmetic> Authenticated<A> {
    /// Our share of the key.
    pub fn key(&self) -> A::E {
        self.key
    }

    /// Asks for so many triples.
    pub fn need_triples(&mut self, n: usize) {
        self.preprocessing.triples.need(n);
    }

    /// The next task that makes what is missing.
    ///
    /// # Errors
    /// As [`Party::prepare`](crate::Party::prepare).
    pub fn next_missing(&mut self) -> Result<Option<SendFn<Self, ()>>> {
        preprocessing::prepare(self)
    }

    /// Triples that were made: shares of a, b and c, and of their MACs.
    ///
    /// # Errors
    /// [`EngineError::Usage`](crate::error::EngineError::Usage) if there are fewer.
    pub fn take_triples(&mut self, n: usize) -> Result<[Vec<A::E>; 6]> {
        self.preprocessing.triples.take(n)
    }
}
