//! At which points parties hold values of polynomials.

use std::sync::Arc;

use keyquorum_math::Domain;

/// The point of a party: one more than its number.
pub fn point<D: Domain>(domain: &D, party: usize) -> D::E {
    domain.from_u128(party as u128 + 1)
}

/// The points at which the parties of a session hold values: party i at i + 1, or, where the parties are some members of a committee, at the number of the member + 1.
#[derive(Clone, Debug, Default)]
pub struct Points(Option<Arc<[usize]>>);

impl Points {
    /// Those of members with these numbers.
    #[must_use]
    pub fn of(numbers: &[usize]) -> Self {
        Self(Some(numbers.into()))
    }

    /// The point of a party of the session.
    pub fn at<D: Domain>(&self, domain: &D, party: usize) -> D::E {
        let number = match &self.0 {
            Some(numbers) => numbers.get(party).copied().unwrap_or(usize::MAX),
            None => party,
        };
        point(domain, number)
    }
}
