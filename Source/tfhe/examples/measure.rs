//! Many evaluations with TFHE-rs under keys of a committee, for measurements: `bench.tfhe` calls this program.
//!
//! ```text
//! measure look-ups KEYS COUNT PER_FILE OUT    blocks after one bootstrap each
//! measure integers KEYS COUNT PER_FILE OUT    FheUint8 after +, *, and the larger of two (a comparison and a selection), in turn
//! measure own COUNT                           the variance of the noise under keys that TFHE-rs makes alone
//! ```
//!
//! Inputs are random and encrypted under the compact public key. `look-ups` and `integers` write OUT.0.lwe, OUT.1.lwe and so on, and print the right
//! value of each result on a line of its own. `own` prints the variance of the noise, modulo 2^64.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used
)] // A measurement stops at the first failure.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use keyquorum_tfhe::{
    Ciphertext, KeyFolder, LweFile, MESSAGE_SHIFT, Operation, Type, compact_public_key, encrypt,
    evaluate, server_key, set, write_file,
};
use tfhe::shortint::client_key::atomic_pattern::AtomicPatternClientKey;
use tfhe::{CompactPublicKey, ServerKey, shortint};

fn random(source: &mut File) -> u64 {
    let mut word = [0; 8];
    source.read_exact(&mut word).unwrap();
    u64::from_le_bytes(word)
}

fn table(x: u64) -> u64 {
    (5 * x + 3) % 16
}

fn write(out: &Path, number: usize, results: &[Ciphertext], key_id: &str) {
    let path = PathBuf::from(format!("{}.{number}.lwe", out.display()));
    let file = LweFile::from_ciphertexts(results, key_id);
    write_file(&path, &file.to_bytes(&path).unwrap()).unwrap();
}

fn keys(folder: &str) -> (KeyFolder, ServerKey, CompactPublicKey) {
    let folder = KeyFolder::read(Path::new(folder)).unwrap_or_else(|error| panic!("{error}"));
    let (server, public) = (server_key(&folder), compact_public_key(&folder).unwrap());
    (folder, server, public)
}

fn look_ups(folder: &str, count: usize, each: usize, out: &Path) {
    let (folder, server, public) = keys(folder);
    let mut source = File::open("/dev/urandom").unwrap();
    let server = server.into_raw_parts().0;
    let server: &shortint::ServerKey = server.as_ref();
    let look_up = server.generate_lookup_table(table);
    let mut encrypted = || {
        let value = random(&mut source) % 4;
        let block = encrypt(&public, Type::Block, &value.to_string()).unwrap();
        (value, block.blocks()[0].clone())
    };
    for (number, first) in (0..count).step_by(each).enumerate() {
        let mut results = vec![];
        for _ in first..count.min(first + each) {
            // a + 4 b takes every value of a block.
            let (a, b) = (encrypted(), encrypted());
            let sum = server.unchecked_add(&a.1, &server.unchecked_scalar_mul(&b.1, 4));
            results.push(Ciphertext::from_block(
                server.apply_lookup_table(&sum, &look_up),
            ));
            println!("{}", table(a.0 + 4 * b.0));
        }
        write(out, number, &results, folder.key_id());
    }
}

fn integers(folder: &str, count: usize, each: usize, out: &Path) {
    let (folder, server, public) = keys(folder);
    let mut source = File::open("/dev/urandom").unwrap();
    for (number, first) in (0..count).step_by(each).enumerate() {
        let mut results = vec![];
        for index in first..count.min(first + each) {
            let (x, y) = (random(&mut source) % 256, random(&mut source) % 256);
            let inputs =
                [x, y].map(|value| encrypt(&public, Type::Uint(8), &value.to_string()).unwrap());
            let run = |operation, inputs: &[Ciphertext]| {
                evaluate(server.clone(), operation, inputs).unwrap()
            };
            let (result, right) = match index % 3 {
                0 => (run(Operation::Add, &inputs), (x + y) % 256),
                1 => (run(Operation::Mul, &inputs), x * y % 256),
                _ => {
                    let greater = run(Operation::Gt, &inputs);
                    let [a, b] = inputs;
                    (run(Operation::Select, &[greater, a, b]), x.max(y))
                }
            };
            results.push(result);
            println!("{right}");
        }
        write(out, number, &results, folder.key_id());
    }
}

fn own(count: usize) {
    let client = shortint::ClientKey::new(set());
    let server = shortint::ServerKey::new(&client);
    let AtomicPatternClientKey::Standard(secrets) = &client.atomic_pattern else {
        panic!("another pattern")
    };
    let secret = secrets.large_lwe_secret_key();
    let look_up = server.generate_lookup_table(table);
    let mut sum = 0.0;
    for index in 0..count {
        let value = index as u64 % 16;
        let input = client.unchecked_encrypt(value);
        let output = server.apply_lookup_table(&input, &look_up);
        let (mask, body) = output.ct.get_mask_and_body();
        let product = mask.as_ref().iter().zip(secret.as_ref());
        let product = product.fold(0_u64, |sum, (a, s)| sum.wrapping_add(a.wrapping_mul(*s)));
        let noise = body
            .data
            .wrapping_sub(product)
            .wrapping_sub(table(value) << MESSAGE_SHIFT);
        sum += (noise.cast_signed() as f64).powi(2);
    }
    println!("{}", sum / count as f64);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["look-ups", keys, count, each, out] => look_ups(
            keys,
            count.parse().unwrap(),
            each.parse().unwrap(),
            out.as_ref(),
        ),
        ["integers", keys, count, each, out] => integers(
            keys,
            count.parse().unwrap(),
            each.parse().unwrap(),
            out.as_ref(),
        ),
        ["own", count] => own(count.parse().unwrap()),
        _ => panic!("usage: see the head of examples/measure.rs"),
    }
}
