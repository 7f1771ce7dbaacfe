//! TFHE-rs expands the masks of all three files as `stream.rs` does.

use keyquorum_tfhe::{Kind, set};
use tfhe::core_crypto::commons::math::random::{CompressionSeed, Seed};
use tfhe::core_crypto::prelude::{
    SeededLweBootstrapKeyOwned, SeededLweCompactPublicKeyOwned, SeededLweKeyswitchKeyOwned,
};

use crate::stream::Stream;

const SEED: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

fn seed() -> CompressionSeed {
    CompressionSeed::from(Seed(u128::from_le_bytes(SEED)))
}

/// Asserts that every row is `mask` words of the stream and then `body` zeros.
fn check(words: &[u64], mask: usize, body: usize, kind: Kind) {
    let mut stream = Stream::new(SEED);
    let mut total = 0;
    for row in words.chunks(mask + body) {
        assert!(row[..mask] == stream.words(mask));
        assert!(row[mask..].iter().all(|word| *word == 0));
        total += mask;
    }
    assert_eq!(total, kind.mask_words());
}

#[test]
fn the_stream_begins_with_aes_of_zero() {
    // AES-128 under 000102..0f of 16 zeros is c6a13b37878f5b82 6f4f8162a1c8d879.
    assert_eq!(
        Stream::new(SEED).words(2),
        [0x825b_8f87_373b_a1c6, 0x79d8_c8a1_6281_4f6f]
    );
}

#[test]
fn bootstrapping_masks() {
    let set = set();
    let key = SeededLweBootstrapKeyOwned::from_container(
        vec![0; Kind::Bootstrapping.body_words()],
        set.glwe_dimension.to_glwe_size(),
        set.polynomial_size,
        set.pbs_base_log,
        set.pbs_level,
        seed(),
        set.ciphertext_modulus,
    );
    check(
        &key.par_decompress_into_lwe_bootstrap_key().into_container(),
        2048,
        2048,
        Kind::Bootstrapping,
    );
}

#[test]
fn key_switching_masks() {
    let set = set();
    let key = SeededLweKeyswitchKeyOwned::from_container(
        vec![0; Kind::KeySwitching.body_words()],
        set.ks_base_log,
        set.ks_level,
        set.lwe_dimension.to_lwe_size(),
        seed(),
        set.ciphertext_modulus,
    );
    check(
        &key.par_decompress_into_lwe_keyswitch_key().into_container(),
        918,
        1,
        Kind::KeySwitching,
    );
}

#[test]
fn compact_masks() {
    let bodies = vec![0; Kind::Compact.body_words()];
    let key =
        SeededLweCompactPublicKeyOwned::from_container(bodies, seed(), set().ciphertext_modulus);
    check(
        &key.decompress_into_lwe_compact_public_key()
            .into_container(),
        2048,
        2048,
        Kind::Compact,
    );
}
