//! What encapsulation keys of ML-KEM-768 are made of: a vector of 3 polynomials over Z_q, 256 coefficients each, and the seed ρ of the matrix
//! (FIPS 203, sections 4.2.1 and 5.1). Vectors of a module form a group; ρ is no part of it.
//!
//! Nothing branches on coefficients: which of the two vectors of an OT is hashed is secret. For the same reason hashes reduce long numbers
//! modulo q, in place of the rejection sampling of FIPS 203, whose time depends on the vector.

use sha3::Shake256;
use sha3::digest::{ExtendableOutput, Update, XofReader};
use zeroize::Zeroizing;

use crate::{OtError, uneven};

/// The modulus of ML-KEM.
const Q: u16 = 3329;
/// Coefficients of a vector.
const COEFFICIENTS: usize = 3 * 256;
/// Bytes of a vector, 12 bits a coefficient.
pub(super) const VECTOR_BYTES: usize = 1152;
/// Bytes of ρ.
pub(super) const RHO_BYTES: usize = 32;
/// Bytes that are reduced to one coefficient: its distance from uniform is below q 2^-96, that of a vector below 2^-74.
const WIDE: usize = 12;

/// A vector of the module, with coefficients below q.
pub(super) type Vector = Zeroizing<Vec<u16>>;

/// Reads a vector; `None` for bytes that do not have its length, or coefficients that are not reduced: a vector has one encoding.
pub(super) fn unpack(bytes: &[u8]) -> Option<Vector> {
    if bytes.len() != VECTOR_BYTES {
        return None;
    }
    let mut vector = Zeroizing::new(Vec::with_capacity(COEFFICIENTS));
    for [a, b, c] in bytes.as_chunks::<3>().0 {
        let [a, b, c] = [a, b, c].map(|byte| u16::from(*byte));
        vector.push(a | (b & 0xf) << 8);
        vector.push(b >> 4 | c << 4);
    }
    let reduced = vector.iter().fold(true, |all, c| all & (*c < Q));
    reduced.then_some(vector)
}

/// Inverse of [`unpack`].
pub(super) fn pack(vector: &Vector) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(VECTOR_BYTES));
    for [x, y] in vector.as_chunks::<2>().0 {
        bytes.push(*x as u8);
        bytes.push((x >> 8 | (y & 0xf) << 4) as u8);
        bytes.push((y >> 4) as u8);
    }
    bytes
}

/// x + y coefficient by coefficient; the transform of ML-KEM is linear, so it does not matter that keys are transformed.
pub(super) fn add(x: &Vector, y: &Vector) -> Vector {
    combine(x, y, |x, y| x + y)
}

/// x - y.
pub(super) fn subtract(x: &Vector, y: &Vector) -> Vector {
    combine(x, y, |x, y| x + (Q - y))
}

fn combine(x: &Vector, y: &Vector, one: impl Fn(u16, u16) -> u16) -> Vector {
    let both = x.iter().zip(y.iter());
    Zeroizing::new(both.map(|(x, y)| one(*x, *y) % Q).collect())
}

/// A uniform vector from all that `input` was fed: SHAKE-256 as a random oracle.
pub(super) fn vector_of(input: Shake256) -> Result<Vector, OtError> {
    let mut bytes = Zeroizing::new(vec![0u8; WIDE * COEFFICIENTS]);
    input.finalize_xof().read(&mut bytes);
    let (numbers, rest) = bytes.as_chunks::<WIDE>();
    if !rest.is_empty() {
        return Err(uneven());
    }
    // A number of 96 bits, its highest 32 bits first: every step fits in 64.
    let reduce = |number: &[u8; WIDE]| {
        let limbs = number.as_chunks::<4>().0.iter();
        limbs.fold(0, |rest: u64, limb| {
            (rest << 32 | u64::from(u32::from_be_bytes(*limb))) % u64::from(Q)
        }) as u16
    };
    Ok(Zeroizing::new(numbers.iter().map(reduce).collect()))
}

/// H(context, number, choice, ρ, other): the vector that is added to r_c, from the other key of the receiver's message.
pub(super) fn module_hash(
    context: &[u8],
    number: usize,
    choice: u8,
    rho: &[u8],
    other: &[u8],
) -> Result<Vector, OtError> {
    let mut hash = Shake256::default();
    hash.update(b"keyquorum-ot/module");
    hash.update(&(context.len() as u64).to_le_bytes());
    hash.update(context);
    hash.update(&(number as u64).to_le_bytes());
    hash.update(&[choice]);
    hash.update(rho);
    hash.update(other);
    vector_of(hash)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;

    #[test]
    fn vectors_have_one_encoding() {
        let bytes: Vec<u8> = (0..VECTOR_BYTES).map(|i| (i * 7 % 13) as u8).collect();
        let vector = unpack(&bytes).unwrap();
        assert_eq!(pack(&vector).as_slice(), bytes);
        for (place, changed) in [(0, [0x01, 0x0d]), (1, [0x10, 0xd0])] {
            // q in the first or the second coefficient, which is 0 otherwise.
            let mut bytes = vec![0; VECTOR_BYTES];
            bytes[place] = changed[0];
            bytes[place + 1] = changed[1];
            assert!(unpack(&bytes).is_none());
            bytes[place + 1] -= if place == 0 { 1 } else { 0x10 };
            assert!(unpack(&bytes).is_some());
        }
        assert!(unpack(&bytes[1..]).is_none());
    }

    #[test]
    fn addition_is_undone() {
        let [x, y] = [1, 2].map(|choice| module_hash(b"x", 3, choice, &[4; 32], b"y").unwrap());
        assert_eq!(subtract(&add(&x, &y), &y), x);
        assert!(add(&x, &y).iter().all(|c| *c < Q));
    }
}
