//! The coefficients of the transfer check, for shares that an engine combines: those with MACs.

use keyquorum_math::{Domain, DomainKind};

use super::coefficients;
use crate::descriptor::Sharing;
use crate::error::Result;
use crate::handover::{Bytes, InDomain, Seed, encoded, in_domain, stream_of};

/// The coefficients of `count` combinations of a vector of `length` elements, one combination after another: those of [`crate::Members::stated`]. Local.
///
/// # Errors
/// [`crate::EngineError::Usage`] for domains without elements.
pub fn factors(
    domain: DomainKind,
    (toss, label): (&[u8; 32], &[u8]),
    length: usize,
    count: usize,
) -> Result<Bytes> {
    let drawing = Drawing {
        toss: Seed::new(*toss),
        label,
        length,
        count,
    };
    in_domain(Sharing::Additive, domain, &drawing)
}

struct Drawing<'a> {
    toss: Seed,
    label: &'a [u8],
    length: usize,
    count: usize,
}

impl InDomain for Drawing<'_> {
    fn compute<D: Domain>(&self, domain: &D) -> Result<Bytes> {
        let mut stream = stream_of(super::PURPOSE, &self.toss, b"", self.label);
        let mut all = vec![domain.zero(); self.length * self.count];
        for row in all.chunks_exact_mut(self.length.max(1)) {
            coefficients(domain, &mut stream, row);
        }
        Ok(encoded::<D>(&all))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::resharing::Members;

    #[test]
    fn they_are_those_that_members_state_with() {
        let (coins, length, count) = ((&[7; 32], b"label".as_slice()), 5, 3);
        let of = Members::of("semi", 2, 1).unwrap();
        for (domain, modulus) in [
            (
                DomainKind::Fq(1_152_921_504_606_584_833),
                1_152_921_504_606_584_833,
            ),
            (DomainKind::Z2k(64), 1 << 64),
        ] {
            let numbers = factors(domain, coins, length, count).unwrap();
            let words: Vec<u128> = numbers
                .chunks_exact(8)
                .map(|word| u128::from(u64::from_le_bytes(word.try_into().unwrap())))
                .collect();
            let x: Vec<u128> = (1..=length as u128).map(|i| i * i).collect();
            let shares: Vec<u8> = x.iter().flat_map(|v| (*v as u64).to_le_bytes()).collect();
            let stated = of
                .stated(domain, coins, &shares, &vec![0; 8 * count])
                .unwrap();
            let wanted: Vec<u8> = words
                .chunks_exact(length)
                .map(|row| row.iter().zip(&x).map(|(c, v)| c * v).sum::<u128>() % modulus)
                .flat_map(|y| (y as u64).to_le_bytes())
                .collect();
            assert_eq!(*stated, wanted, "{domain}");
        }
    }
}
