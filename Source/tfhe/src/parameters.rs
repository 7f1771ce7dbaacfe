//! The set `tfhers-2-2`: TFHE-rs's default parameters of version 1.4 to 1.8, message 2 bits, carry 2 bits.

use tfhe::core_crypto::commons::math::random::DynamicDistribution;
use tfhe::shortint::ClassicPBSParameters;
use tfhe::shortint::PBSOrder;
use tfhe::shortint::ciphertext::MaxDegree;
use tfhe::shortint::parameters::{AtomicPatternKind, PARAM_MESSAGE_2_CARRY_2_KS_PBS};

/// Name of the set in headers.
pub const NAME: &str = "tfhers-2-2";

/// Dimension of the ciphertexts that a committee decrypts: the coefficients of the ring secret.
pub const LWE_DIMENSION: usize = 2048;

/// A block of the value m has the phase m 2^59 + e: one padding bit, two bits of carry, two of message.
pub const MESSAGE_SHIFT: u32 = 59;

/// The parameters as TFHE-rs defines them.
pub fn set() -> ClassicPBSParameters {
    PARAM_MESSAGE_2_CARRY_2_KS_PBS
}

/// Key switching first, then bootstrapping: ciphertexts are under the long secret.
pub(crate) fn pattern() -> AtomicPatternKind {
    AtomicPatternKind::Standard(PBSOrder::KeyswitchBootstrap)
}

/// Largest value of a block of an integer, so that a carry can still be added to it. TFHE-rs uses the same bound.
pub(crate) fn integer_degree() -> MaxDegree {
    let set = set();
    MaxDegree::new(set.message_modulus.0 * set.carry_modulus.0 - set.carry_modulus.0)
}

/// b of the distribution TUniform(b), or 0 for any other distribution, which no header states.
pub(crate) fn tuniform(noise: DynamicDistribution<u64>) -> u64 {
    match noise {
        DynamicDistribution::TUniform(noise) => noise.bound_log2().into(),
        DynamicDistribution::Gaussian(_) => 0,
    }
}
