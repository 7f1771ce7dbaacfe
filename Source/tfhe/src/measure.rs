//! How long TFHE-rs takes for keys of the same parameters, where one machine knows the secrets: what a committee's key generation
//! is compared with.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tfhe::{ClientKey, CompactPublicKey, ConfigBuilder, ServerKey};

use crate::parameters::set;

/// The fastest of `repeats` generations of a client key, its server key and its public key by TFHE-rs. The server key has what ours has: no
/// key of the oblivious pseudorandom function. The keys are dropped.
pub fn own_key_time(repeats: usize) -> Duration {
    let config = ConfigBuilder::with_custom_parameters(set())
        .use_dedicated_oprf_key(false)
        .build();
    let once = |_| {
        let begin = Instant::now();
        let client = ClientKey::generate(config);
        let server = ServerKey::new(&client);
        let public = CompactPublicKey::new(&client);
        let time = begin.elapsed();
        black_box((server, public));
        time
    };
    (0..repeats.max(1)).map(once).min().unwrap_or_default()
}
