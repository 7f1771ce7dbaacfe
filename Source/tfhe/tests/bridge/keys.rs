//! TFHE-rs computes under the keys of the bridge.

use keyquorum_tfhe::{
    Ciphertext, LweFile, Operation, Type, compact_public_key, compressed_server_key, encrypt,
    evaluate, read_server_key, serialized, set, write_file,
};
use tfhe::core_crypto::prelude::{GlweSecretKey, LweSecretKey};
use tfhe::prelude::{FheDecrypt, ParameterSetConformant, Tagged};
use tfhe::safe_serialization::{safe_deserialize, safe_deserialize_conformant};
use tfhe::shortint::client_key::atomic_pattern::{
    AtomicPatternClientKey, StandardAtomicPatternClientKey,
};
use tfhe::{
    ClientKey, CompactPublicKey, CompressedServerKey, ConfigBuilder, ServerKey, integer, shortint,
};

use crate::dealer::{KEY_ID, scratch, world};

fn block(value: u64, seed: u8) -> shortint::Ciphertext {
    let file = world().dealer.encrypt(&[value], seed);
    file.to_ciphertext(Type::Block, "test".as_ref())
        .unwrap()
        .blocks()
        .remove(0)
}

fn fresh(kind: Type, value: u64, seed: u8) -> Ciphertext {
    let values: Vec<u64> = (0..kind.blocks()).map(|i| (value >> (2 * i)) & 3).collect();
    world()
        .dealer
        .encrypt(&values, seed)
        .to_ciphertext(kind, "test".as_ref())
        .unwrap()
}

fn value(ciphertext: &Ciphertext) -> u64 {
    world().dealer.integer(&LweFile::from_ciphertexts(
        std::slice::from_ref(ciphertext),
        KEY_ID,
    ))
}

fn look_ups(key: &shortint::ServerKey, count: u64) {
    let table = key.generate_lookup_table(|x| (x * x + 3) % 16);
    for i in 0..count {
        let mut input = block(i % 16, i as u8);
        input.degree = shortint::ciphertext::Degree::new(15);
        let output = Ciphertext::Block(key.apply_lookup_table(&input, &table));
        let blocks = world()
            .dealer
            .decrypt(&LweFile::from_ciphertexts(&[output], KEY_ID));
        assert_eq!(blocks[0].0, ((i % 16) * (i % 16) + 3) % 16);
        assert!(blocks[0].1.unsigned_abs() < 1 << 53);
    }
}

#[test]
fn all_of_64_look_ups_are_right() {
    look_ups(world().server.clone().into_raw_parts().0.as_ref(), 64);
}

#[test]
fn integers_add_multiply_compare_and_select() {
    let run = |operation, inputs: &[Ciphertext]| {
        evaluate(world().server.clone(), operation, inputs).unwrap()
    };
    let (a, b) = (fresh(Type::Uint8, 200, 1), fresh(Type::Uint8, 77, 2));
    let sum = run(Operation::Add, &[a.clone(), b.clone()]);
    assert_eq!(value(&sum), (200 + 77) % 256);
    assert_eq!(sum.tag(), KEY_ID.as_bytes());
    assert_eq!(
        value(&run(Operation::Mul, &[a.clone(), b.clone()])),
        (200 * 77) % 256
    );
    let greater = run(Operation::Gt, &[a.clone(), b.clone()]);
    assert_eq!((greater.kind(), value(&greater)), (Type::Bool, 1));
    assert_eq!(value(&run(Operation::Gt, &[b.clone(), a.clone()])), 0);
    assert_eq!(
        value(&run(Operation::Select, &[greater, a.clone(), b.clone()])),
        200
    );
    assert_eq!(
        value(&run(Operation::Select, &[fresh(Type::Bool, 0, 3), a, b])),
        77
    );
    let wide = [
        fresh(Type::Uint16, 65_000, 4),
        fresh(Type::Uint16, 1_000, 5),
    ];
    assert_eq!(value(&run(Operation::Add, &wide)), 66_000 % 65_536);
}

#[test]
fn the_public_key_encrypts_every_type() {
    let key = compact_public_key(&world().folder).unwrap();
    let key: CompactPublicKey =
        safe_deserialize(serialized(&key).unwrap().as_slice(), 1 << 20).unwrap();
    let parameters =
        shortint::parameters::CompactPublicKeyEncryptionParameters::try_from(set()).unwrap();
    assert!(key.is_conformant(&parameters));
    let values = [1, 3, 0xa5, 0xbeef, 0xdead_beef, 0x0123_4567_89ab_cdef];
    for (kind, expected) in Type::ALL.into_iter().zip(values) {
        let ciphertext = encrypt(&key, kind, expected).unwrap();
        assert_eq!(value(&ciphertext), expected);
        let again =
            Ciphertext::from_bytes(&ciphertext.to_bytes().unwrap(), "test".as_ref()).unwrap();
        assert_eq!((again.kind(), value(&again)), (kind, expected));
        if kind != Type::Block {
            assert_eq!(again.tag(), KEY_ID.as_bytes());
        }
    }
    assert!(encrypt(&key, Type::Uint8, 256).is_err());
    let inputs = [41, 7].map(|v| encrypt(&key, Type::Uint8, v).unwrap());
    let product = evaluate(world().server.clone(), Operation::Mul, &inputs).unwrap();
    assert_eq!(value(&product), (41 * 7) % 256);
}

#[test]
fn keys_pass_serialization_and_the_checks_of_tfhe() {
    let config = ConfigBuilder::with_custom_parameters(set())
        .use_dedicated_oprf_key(false)
        .build();
    let data = serialized(&compressed_server_key(&world().folder)).unwrap();
    // Bodies and a header: no masks.
    assert!(data.len() < 8 * (3_760_128 + 8_192) + 4_096);
    let compressed: CompressedServerKey =
        safe_deserialize_conformant(data.as_slice(), 1 << 28, &config.into()).unwrap();
    assert_eq!(compressed.tag().data(), KEY_ID.as_bytes());
    look_ups(compressed.decompress().into_raw_parts().0.as_ref(), 16);

    let file = scratch("server").join("ServerKey.bin");
    let data = serialized(&world().server).unwrap();
    write_file(&file, &data).unwrap();
    let _: ServerKey =
        safe_deserialize_conformant(data.as_slice(), 1 << 28, &config.into()).unwrap();
    let key = read_server_key(&file).unwrap();
    assert_eq!(key.tag().data(), KEY_ID.as_bytes());
    look_ups(key.into_raw_parts().0.as_ref(), 16);
}

#[test]
fn a_client_key_of_tfhe_under_the_same_secrets_decrypts() {
    let (short, ring) = (world().dealer.short.clone(), world().dealer.ring.clone());
    let client = shortint::ClientKey {
        atomic_pattern: AtomicPatternClientKey::Standard(
            StandardAtomicPatternClientKey::from_raw_parts(
                GlweSecretKey::from_container(ring, set().polynomial_size),
                LweSecretKey::from_container(short),
                set().into(),
                None,
            ),
        ),
    };
    let key = world().server.clone().into_raw_parts().0;
    let sum = key.as_ref().add(&client.encrypt(2), &client.encrypt(3));
    assert_eq!(client.decrypt(&sum), 1);
    let client = integer::ClientKey::from_raw_parts(client);
    let client = ClientKey::from_raw_parts(
        client,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        tfhe::Tag::default(),
    );
    let inputs = [fresh(Type::Uint8, 250, 8), fresh(Type::Uint8, 9, 9)];
    let Ciphertext::Uint8(sum) = evaluate(world().server.clone(), Operation::Add, &inputs).unwrap()
    else {
        panic!("another type")
    };
    let sum: u8 = sum.decrypt(&client);
    assert_eq!(sum, 3);
}
