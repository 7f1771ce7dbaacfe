//! TFHE-rs's keys from the files of a key folder. The tag of every key is the id of the key, in ASCII, so that
//! ciphertexts name the key that made them.

use tfhe::core_crypto::prelude::{
    SeededLweBootstrapKeyOwned, SeededLweCompactPublicKeyOwned, SeededLweKeyswitchKeyOwned,
};
use tfhe::shortint::atomic_pattern::compressed::{
    CompressedAtomicPatternServerKey, CompressedStandardAtomicPatternServerKey,
};
use tfhe::shortint::parameters::compact_public_key_only::CompactPublicKeyEncryptionParameters;
use tfhe::shortint::server_key::{
    CompressedModulusSwitchConfiguration, ShortintCompressedBootstrappingKey,
};
use tfhe::shortint::{self, PBSOrder};
use tfhe::{
    CompactPublicKey, CompressedCompactPublicKey, CompressedServerKey, ServerKey, Tag, integer,
};

use crate::parameters::{integer_degree, set};
use crate::{BridgeError, KeyFolder};

pub(crate) fn tag(key_id: &str) -> Tag {
    let mut tag = Tag::default();
    tag.set_data(key_id.as_bytes());
    tag
}

/// The server key as seeds and bodies. Masks are expanded when it is decompressed.
pub fn compressed_server_key(folder: &KeyFolder) -> CompressedServerKey {
    let set = set();
    let bsk = SeededLweBootstrapKeyOwned::from_container(
        folder.bootstrapping.bodies.clone(),
        set.glwe_dimension.to_glwe_size(),
        set.polynomial_size,
        set.pbs_base_log,
        set.pbs_level,
        folder.bootstrapping.compression_seed(),
        set.ciphertext_modulus,
    );
    let ksk = SeededLweKeyswitchKeyOwned::from_container(
        folder.key_switching.bodies.clone(),
        set.ks_base_log,
        set.ks_level,
        set.lwe_dimension.to_lwe_size(),
        folder.key_switching.compression_seed(),
        set.ciphertext_modulus,
    );
    let pattern = CompressedStandardAtomicPatternServerKey::from_raw_parts(
        ksk,
        ShortintCompressedBootstrappingKey::Classic {
            bsk,
            modulus_switch_noise_reduction_key:
                CompressedModulusSwitchConfiguration::CenteredMeanNoiseReduction,
        },
        PBSOrder::KeyswitchBootstrap,
    );
    let key = shortint::CompressedServerKey::from_raw_parts(
        CompressedAtomicPatternServerKey::Standard(pattern),
        set.message_modulus,
        set.carry_modulus,
        integer_degree(),
        set.max_noise_level,
    );
    let key = integer::CompressedServerKey::from_raw_parts(key);
    CompressedServerKey::from_raw_parts(
        key,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        tag(folder.key_id()),
    )
}

/// The server key with all masks expanded, and the bootstrapping key in TFHE-rs's Fourier form.
pub fn server_key(folder: &KeyFolder) -> ServerKey {
    compressed_server_key(folder).decompress()
}

/// The public key with which anybody encrypts under the long secret.
pub fn compact_public_key(folder: &KeyFolder) -> Result<CompactPublicKey, BridgeError> {
    let set = set();
    let encryption = CompactPublicKeyEncryptionParameters::try_from(set).map_err(|e| {
        BridgeError::Usage(format!(
            "TFHE-rs refuses its own parameters for a public key ({e}): report it"
        ))
    })?;
    let key = SeededLweCompactPublicKeyOwned::from_container(
        folder.compact.bodies.clone(),
        folder.compact.compression_seed(),
        set.ciphertext_modulus,
    );
    let key = shortint::CompressedCompactPublicKey::from_raw_parts(key, encryption);
    let key = integer::public_key::CompressedCompactPublicKey::from_raw_parts(key);
    Ok(CompressedCompactPublicKey::from_raw_parts(key, tag(folder.key_id())).decompress())
}
