//! TFHE-rs computes under the keys of the bridge.

use keyquorum_tfhe::{
    Ciphertext, LweFile, Operation, Type, compact_public_key, compressed_server_key, encrypt,
    evaluate, read_server_key, serialized, set, write_file,
};
use tfhe::core_crypto::prelude::{GlweSecretKey, LweSecretKey};
use tfhe::prelude::{FheDecrypt, FheEncrypt, ParameterSetConformant, Tagged};
use tfhe::safe_serialization::{safe_deserialize, safe_deserialize_conformant};
use tfhe::shortint::client_key::atomic_pattern::{
    AtomicPatternClientKey, StandardAtomicPatternClientKey,
};
use tfhe::{
    ClientKey, CompactPublicKey, CompressedServerKey, ConfigBuilder, FheUint8, ServerKey, integer,
    shortint,
};

use crate::dealer::{KEY_ID, scratch, world};

fn block(value: u64, seed: u8) -> shortint::Ciphertext {
    let file = world().dealer.encrypt(&[value], seed);
    file.to_ciphertext(Type::Block, "test".as_ref())
        .unwrap()
        .blocks()[0]
        .clone()
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
        let output = Ciphertext::from_block(key.apply_lookup_table(&input, &table));
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
    let (a, b) = (fresh(Type::Uint(8), 200, 1), fresh(Type::Uint(8), 77, 2));
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
        fresh(Type::Uint(16), 65_000, 4),
        fresh(Type::Uint(16), 1_000, 5),
    ];
    assert_eq!(value(&run(Operation::Add, &wide)), 66_000 % 65_536);
    let two = [fresh(Type::Uint(2), 3, 6), fresh(Type::Uint(2), 2, 7)];
    assert_eq!(value(&run(Operation::Mul, &two)), 6 % 4);
    assert!(evaluate(world().server.clone(), Operation::Add, &[a_bit(), a_bit()]).is_err());
}

fn a_bit() -> Ciphertext {
    fresh(Type::Bool, 1, 3)
}

/// -3 and 5 as 12 bits: signed operations differ from unsigned ones in comparisons.
#[test]
fn signed_integers_add_multiply_compare_and_select() {
    let run = |operation, inputs: &[Ciphertext]| {
        let result = evaluate(world().server.clone(), operation, inputs).unwrap();
        let kept = Ciphertext::from_bytes(&result.to_bytes().unwrap(), "test".as_ref()).unwrap();
        assert_eq!(kept.kind(), result.kind());
        kept
    };
    let kind = Type::Int(12);
    let (a, b) = (fresh(kind, (1 << 12) - 3, 1), fresh(kind, 5, 2));
    let both = [a.clone(), b.clone()];
    assert_eq!(value(&run(Operation::Add, &both)), 2);
    let product = run(Operation::Mul, &both);
    assert_eq!((product.kind(), value(&product)), (kind, (1 << 12) - 15));
    let greater = run(Operation::Gt, &both);
    assert_eq!((greater.kind(), value(&greater)), (Type::Bool, 0));
    assert_eq!(
        value(&run(Operation::Select, &[greater, a.clone(), b.clone()])),
        5
    );
    let mixed = [a, fresh(Type::Uint(12), 5, 2)];
    let said = evaluate(world().server.clone(), Operation::Add, &mixed);
    let said = said.err().unwrap().to_string();
    assert!(said.contains("does not take (int12, uint12)"), "{said}");
}

#[test]
fn the_public_key_encrypts_every_type() {
    let key = compact_public_key(&world().folder).unwrap();
    let key: CompactPublicKey =
        safe_deserialize(serialized(&key).unwrap().as_slice(), 1 << 20).unwrap();
    let parameters =
        shortint::parameters::CompactPublicKeyEncryptionParameters::try_from(set()).unwrap();
    assert!(key.is_conformant(&parameters));
    for (kind, expected) in [
        (Type::Bool, 1),
        (Type::Block, 3),
        (Type::Uint(2), 2),
        (Type::Uint(8), 0xa5),
        (Type::Uint(10), 0x3ff),
        (Type::Uint(24), 0xab_cdef),
        (Type::Int(32), 0x7eed_beef),
        (Type::Uint(64), 0x0123_4567_89ab_cdef),
    ] {
        let ciphertext = encrypt(&key, kind, &expected.to_string()).unwrap();
        assert_eq!(value(&ciphertext), expected);
        let again =
            Ciphertext::from_bytes(&ciphertext.to_bytes().unwrap(), "test".as_ref()).unwrap();
        assert_eq!((again.kind(), value(&again)), (kind, expected));
        if kind != Type::Block {
            assert_eq!(again.tag(), KEY_ID.as_bytes());
        }
    }
    let inputs = ["41", "7"].map(|v| encrypt(&key, Type::Uint(8), v).unwrap());
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

/// A client key of TFHE-rs with the secrets of the dealer.
fn client() -> (shortint::ClientKey, ClientKey) {
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
    let whole = ClientKey::from_raw_parts(
        integer::ClientKey::from_raw_parts(client.clone()),
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        tfhe::Tag::default(),
    );
    (client, whole)
}

#[test]
fn a_client_key_of_tfhe_under_the_same_secrets_decrypts() {
    let (client, whole) = client();
    let key = world().server.clone().into_raw_parts().0;
    let sum = key.as_ref().add(&client.encrypt(2), &client.encrypt(3));
    assert_eq!(client.decrypt(&sum), 1);
    let inputs = [fresh(Type::Uint(8), 250, 8), fresh(Type::Uint(8), 9, 9)];
    let sum = evaluate(world().server.clone(), Operation::Add, &inputs).unwrap();
    let sum: FheUint8 = stock(&sum);
    let sum: u8 = sum.decrypt(&whole);
    assert_eq!(sum, 3);
}

/// A ciphertext as TFHE-rs reads it, with its checks.
fn stock<T>(ciphertext: &Ciphertext) -> T
where
    T: serde::de::DeserializeOwned
        + tfhe::Unversionize
        + tfhe::named::Named
        + ParameterSetConformant,
    for<'a> T::ParameterSet: From<&'a ServerKey>,
{
    let parameters = T::ParameterSet::from(&world().server);
    let data = ciphertext.to_bytes().unwrap();
    safe_deserialize_conformant(data.as_slice(), 1 << 25, &parameters).unwrap()
}

/// Every integer that TFHE-rs has without further features: the bridge reads its files, and TFHE-rs reads those of the bridge.
#[test]
fn integers_of_all_widths_are_those_of_tfhe() {
    let (_, client) = client();
    let public = compact_public_key(&world().folder).unwrap();
    macro_rules! check {
        ($kind:ident, $number:ty, $values:expr, $($integer:ident $bits:literal),*) => {$(
            for value in $values {
                let kind = Type::$kind($bits);
                let made = <tfhe::$integer>::encrypt(value, &client);
                let data = serialized(&made).unwrap();
                let read = Ciphertext::from_bytes(&data, "test".as_ref()).unwrap();
                assert_eq!(read.kind(), kind);
                let blocks = world().dealer.decrypt(&LweFile::from_ciphertexts(&[read], KEY_ID));
                // Two's complement, or zeros: the bits of an i128 and its sign.
                let wide = i128::from(value);
                let expected = |i: usize| (wide >> (2 * i).min(126) & 3) as u64;
                for (i, (block, _)) in blocks.iter().enumerate() {
                    assert_eq!(*block, expected(i), "{kind:?} {value}");
                }
                let back: tfhe::$integer =
                    stock(&encrypt(&public, kind, &value.to_string()).unwrap());
                let back: $number = back.decrypt(&client);
                assert_eq!(back, value);
            }
        )*};
    }
    check!(
        Uint, u64, [0_u64, 1, 3], FheUint2 2, FheUint4 4, FheUint6 6, FheUint8 8, FheUint10 10,
        FheUint12 12, FheUint14 14, FheUint16 16, FheUint32 32, FheUint64 64, FheUint128 128,
        FheUint160 160, FheUint256 256, FheUint512 512, FheUint1024 1024, FheUint2048 2048
    );
    check!(
        Int, i64, [-2_i64, -1, 1], FheInt2 2, FheInt4 4, FheInt6 6, FheInt8 8, FheInt10 10,
        FheInt12 12, FheInt14 14, FheInt16 16, FheInt32 32, FheInt64 64, FheInt128 128,
        FheInt160 160, FheInt256 256, FheInt512 512, FheInt1024 1024, FheInt2048 2048
    );
}

#[test]
fn values_are_decimal_numbers_of_their_type() {
    let public = compact_public_key(&world().folder).unwrap();
    for (kind, number) in [
        (Type::Uint(128), u128::MAX.to_string()),
        (Type::Int(128), i128::MIN.to_string()),
        (Type::Int(8), "-128".into()),
        (Type::Int(8), "127".into()),
        (Type::Int(8), "-0".into()),
        (Type::Bool, "001".into()),
    ] {
        let blocks = world().dealer.decrypt(&LweFile::from_ciphertexts(
            &[encrypt(&public, kind, &number).unwrap()],
            KEY_ID,
        ));
        let found = blocks
            .iter()
            .enumerate()
            .fold(0_u128, |sum, (i, (block, _))| {
                sum | u128::from(*block) << (2 * i)
            });
        let right = number
            .parse::<i128>()
            .map(|value| value as u128)
            .unwrap_or(u128::MAX);
        let mask = u128::MAX >> (128 - kind.bits());
        assert_eq!(found, right & mask, "{kind:?} {number}");
    }
    for (kind, number, said) in [
        (Type::Uint(8), "256", "256 does not fit uint8"),
        (Type::Uint(8), "-1", "-1 is no value of uint8"),
        (Type::Uint(8), "", "is no value of uint8"),
        (Type::Uint(8), "0x7", "0x7 is no value of uint8"),
        (Type::Int(8), "128", "128 does not fit int8"),
        (Type::Int(8), "-129", "-129 does not fit int8"),
        (Type::Int(8), "-256", "-256 does not fit int8"),
        (
            Type::Int(8),
            "--1",
            "--1 is no value of int8: give an integer",
        ),
        (Type::Int(2), "2", "2 does not fit int2"),
        (Type::Block, "4", "4 does not fit block"),
        (Type::Bool, "2", "2 does not fit bool"),
        (Type::Bool, "true", "true is no value of bool"),
    ] {
        let error = encrypt(&public, kind, number).err().unwrap().to_string();
        assert!(error.contains(said), "{error}");
    }
}
