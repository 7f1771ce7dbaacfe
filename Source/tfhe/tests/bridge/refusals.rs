//! Files that are damaged, of another key, or of other parameters: one line that names the file and the cure.

use std::path::Path;

use keyquorum_tfhe::{
    BridgeError, Ciphertext, KeyFile, KeyFolder, Kind, LweFile, Type, compact_public_key,
    read_compact_public_key, read_server_key, serialized, set, write_file,
};
use sha2::{Digest, Sha256};
use tfhe::core_crypto::prelude::{CiphertextModulus, LweCiphertext};
use tfhe::shortint::ciphertext::{Degree, NoiseLevel};
use tfhe::shortint::parameters::{AtomicPatternKind, CarryModulus, MessageModulus};
use tfhe::shortint::{self, PBSOrder};
use tfhe::{ClientKey, CompactPublicKey, ConfigBuilder};

use crate::dealer::{KEY_ID, scratch, world};
use crate::stream::Stream;

const FILE: &str = "folder/file.bin";

/// Asserts that the error is one line that begins with the file and has `text`.
fn refused<T>(result: Result<T, BridgeError>, text: &str) {
    let Err(error) = result else {
        panic!("accepted, instead of {text}")
    };
    let error = error.to_string();
    assert!(
        error.contains(text) && error.starts_with("folder/file.bin: ") && !error.contains('\n'),
        "{error}"
    );
}

fn compact() -> Vec<u8> {
    world().folder.compact.to_bytes().unwrap()
}

fn key_file(data: &[u8]) -> Result<KeyFile, BridgeError> {
    KeyFile::from_bytes(data, Path::new(FILE))
}

/// The file with another header and a right digest.
fn with_header(data: &[u8], old: &str, new: &str) -> Vec<u8> {
    let size = u32::from_le_bytes(data[8..12].try_into().unwrap()) as usize;
    let header = String::from_utf8(data[12..12 + size].to_vec()).unwrap();
    assert!(header.contains(old), "{header}");
    let header = header.replace(old, new);
    let mut changed = data[..8].to_vec();
    changed.extend((header.len() as u32).to_le_bytes());
    changed.extend(header.as_bytes());
    changed.extend(&data[12 + size..data.len() - 32]);
    changed.extend(Sha256::digest(&changed).to_vec());
    changed
}

#[test]
fn damaged_key_files() {
    let data = compact();
    assert!(key_file(&data).is_ok());
    refused(
        key_file(b"KQTFHE02"),
        "not a file of a public key for TFHE-rs",
    );
    refused(key_file(b""), "not a file of a public key");
    refused(key_file(&data[..10]), "copy the file again");
    refused(key_file(&data[..100]), "copy the file again");
    refused(key_file(&data[..data.len() - 1]), "its header states");
    refused(
        key_file(&[data.as_slice(), &[0]].concat()),
        "its header states",
    );
    for at in [600, data.len() - 40, data.len() - 1] {
        let mut changed = data.clone();
        changed[at] ^= 1;
        refused(key_file(&changed), "SHA-256 at its end differs");
    }
    let mut long = data.clone();
    long[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    refused(key_file(&long), "exceeds 65536");
}

#[test]
fn key_files_with_other_headers() {
    let data = compact();
    let changed = |old, new| key_file(&with_header(&data, old, new));
    refused(
        changed("tfhers-2-2", "tfhers-3-3"),
        "parameters is tfhers-3-3, the bridge supports tfhers-2-2",
    );
    refused(
        changed("\"lwe_dimension\":918", "\"lwe_dimension\":919"),
        "lwe_dimension is 919",
    );
    refused(
        changed("\"glwe_noise\":17", "\"glwe_noise\":16"),
        "glwe_noise is 16",
    );
    refused(
        changed("\"kind\":\"compact\"", "\"kind\":\"key-switching\""),
        "words is 2048, the bridge supports 8192",
    );
    refused(
        changed("\"kind\":\"compact\"", "\"kind\":\"other\""),
        "its header is not valid",
    );
    refused(
        changed("{\"kind\"", "{\"more\":1,\"kind\""),
        "its header is not valid",
    );
    refused(
        changed("\"words\":2048", "\"words\":18446744073709551615"),
        "too many words",
    );
    refused(
        changed("\"seed\":\"03", "\"seed\":\"0G"),
        "seed has to be 32 hexadecimal digits",
    );
    refused(
        changed("\"key_id\":\"00", "\"key_id\":\"0"),
        "key_id has to be 32 hexadecimal digits",
    );
}

#[test]
fn key_folders_that_do_not_fit_together() {
    let folder = scratch("misfit");
    let one_line = |text: &str| {
        let error = KeyFolder::read(&folder).unwrap_err().to_string();
        assert!(
            error.contains(text)
                && error.starts_with(folder.to_str().unwrap())
                && !error.contains('\n'),
            "{error}"
        );
    };
    one_line("bootstrapping.kqt: cannot be read");
    for kind in Kind::ALL {
        std::fs::copy(
            world().path.join(kind.file_name()),
            folder.join(kind.file_name()),
        )
        .unwrap();
    }
    assert!(KeyFolder::read(&folder).is_ok());
    let write = |name: &str, file: &KeyFile| {
        std::fs::write(folder.join(name), file.to_bytes().unwrap()).unwrap()
    };
    let original = &world().folder.compact;
    write(
        "compact.kqt",
        &KeyFile {
            key_id: "f".repeat(32),
            ..original.clone()
        },
    );
    one_line("compact.kqt: belongs to key ffffffffffffffffffffffffffffffff");
    write(
        "compact.kqt",
        &KeyFile {
            seed: world().folder.key_switching.seed,
            ..original.clone()
        },
    );
    one_line("compact.kqt: its masks have the same seed as");
    write("compact.kqt", &world().folder.key_switching);
    one_line("compact.kqt: holds a key of the kind key-switching, not compact");
}

fn block(degree: u64, noise: NoiseLevel) -> shortint::Ciphertext {
    let words = Stream::new([9; 16]).words(2049);
    let set = set();
    shortint::Ciphertext::new(
        LweCiphertext::from_container(words, CiphertextModulus::new_native()),
        Degree::new(degree),
        noise,
        set.message_modulus,
        set.carry_modulus,
        AtomicPatternKind::Standard(PBSOrder::KeyswitchBootstrap),
    )
}

fn parse(block: shortint::Ciphertext) -> Result<Ciphertext, BridgeError> {
    Ciphertext::from_bytes(
        &Ciphertext::from_block(block).to_bytes().unwrap(),
        Path::new(FILE),
    )
}

#[test]
fn ciphertexts_of_other_parameters() {
    let nominal = NoiseLevel::NOMINAL;
    assert!(parse(block(15, nominal * 5)).is_ok());
    refused(parse(block(16, nominal)), "block 0 has degree 16, above 15");
    refused(
        parse(block(3, nominal * 6)),
        "block 0 has noise level 6, above 5",
    );
    refused(
        parse(block(3, NoiseLevel::UNKNOWN)),
        "block 0 has noise level",
    );
    let mut other = block(3, nominal);
    other.message_modulus = MessageModulus(8);
    refused(parse(other), "message modulus 8, the key requires 4");
    let mut other = block(3, nominal);
    other.carry_modulus = CarryModulus(2);
    refused(parse(other), "carry modulus 2, the key requires 4");
    let mut other = block(3, nominal);
    other.atomic_pattern = AtomicPatternKind::Standard(PBSOrder::BootstrapKeyswitch);
    refused(parse(other), "block 0 has order");
    let mut other = block(3, nominal);
    other.ct = LweCiphertext::from_container(vec![0; 919], CiphertextModulus::new_native());
    refused(parse(other), "dimension 918, the key requires 2048");
    let mut other = block(3, nominal);
    other.ct = LweCiphertext::from_container(
        vec![0; 2049],
        CiphertextModulus::try_new_power_of_2(32).unwrap(),
    );
    refused(parse(other), "block 0 has modulus");
}

/// The receiver of an integer with carries would learn sums of its blocks. TFHE-rs sets the degree of a bool itself.
#[test]
fn integers_with_carries() {
    let file = Path::new(FILE);
    for kind in Type::all().into_iter().filter(|kind| *kind != Type::Bool) {
        let most = if kind == Type::Block { 15 } else { 3 };
        let parse = |degree: u64| {
            let blocks = vec![block(degree, NoiseLevel::NOMINAL); kind.blocks()];
            let made = Ciphertext::from_blocks(kind, blocks, KEY_ID).unwrap();
            Ciphertext::from_bytes(&made.to_bytes().unwrap(), file)
        };
        assert!(parse(most).is_ok());
        let said = format!("block 0 has degree {}, above {most}", most + 1);
        refused(parse(most + 1), &said);
    }
}

#[test]
fn keys_of_other_parameters() {
    let folder = scratch("other");
    let config = ConfigBuilder::with_custom_parameters(
        tfhe::shortint::parameters::v1_8::V1_8_PARAM_MESSAGE_1_CARRY_1_KS_PBS_TUNIFORM_2M128,
    )
    .build();
    let client = ClientKey::generate(config);
    let (plain, compressed) = (
        serialized(&client.generate_server_key()).unwrap(),
        serialized(&client.generate_compressed_server_key()).unwrap(),
    );
    for data in [plain, compressed] {
        let file = folder.join("ServerKey.bin");
        write_file(&file, &data).unwrap();
        let said = read_server_key(&file).err().unwrap().to_string();
        assert!(
            said.contains("ServerKey.bin") && !said.contains('\n'),
            "{said}"
        );
    }
    let file = folder.join("CompactPublicKey.bin");
    let key = CompactPublicKey::try_new(&client).unwrap();
    write_file(&file, &serialized(&key).unwrap()).unwrap();
    let said = read_compact_public_key(&file).err().unwrap().to_string();
    assert!(
        said.contains("CompactPublicKey.bin") && !said.contains('\n'),
        "{said}"
    );
}

#[test]
fn files_that_tfhe_cannot_read() {
    let file = Path::new(FILE);
    refused(
        Ciphertext::from_bytes(b"", file),
        "not an FheUint, FheInt, FheBool or shortint ciphertext of TFHE-rs 1.8",
    );
    refused(Ciphertext::from_bytes(&compact(), file), "not an FheUint");
    refused(read_server_key(file), "cannot be read");
    let ciphertext = world()
        .dealer
        .encrypt(&[1, 2, 3, 0], 5)
        .to_ciphertext(Type::Uint(8), file)
        .unwrap();
    refused(
        ciphertext.check_key("another", file, Path::new("key")),
        "belongs to key 0011",
    );
    for kind in [Type::Uint(8), Type::Int(8), Type::Bool, Type::Block] {
        let blocks = vec![block(1, NoiseLevel::NOMINAL); kind.blocks()];
        let made = Ciphertext::from_blocks(kind, blocks, KEY_ID).unwrap();
        let data = made.to_bytes().unwrap();
        let cut = Ciphertext::from_bytes(&data[..data.len() / 2], file);
        let said = cut.err().unwrap().to_string();
        // The reason is that of the file's own type.
        assert!(
            !said.contains("expected type") && said.contains("write it by safe_serialize"),
            "{said}"
        );
    }
    let list = serialized(&compact_public_key(&world().folder).unwrap()).unwrap();
    refused(Ciphertext::from_bytes(&list, file), "CompactPublicKey");
    let parts = world().dealer.encrypt(&[1; 9], 5);
    let blocks: Vec<_> = parts
        .a
        .chunks(2048)
        .zip(&parts.b)
        .map(|(a, b)| {
            let one = LweFile {
                a: a.to_vec(),
                b: vec![*b],
                ..parts.clone()
            };
            one.to_ciphertext(Type::Block, file).unwrap().blocks()[0].clone()
        })
        .collect();
    let nine = tfhe::FheUint64::from_raw_parts(
        blocks.into(),
        tfhe::FheUint64Id,
        Default::default(),
        Default::default(),
    );
    refused(
        Ciphertext::from_bytes(&keyquorum_tfhe::serialized(&nine).unwrap(), file),
        "has 9 blocks, and TFHE-rs has no integer of 18 bits",
    );
}

#[test]
fn no_changed_byte_of_a_ciphertext_panics() {
    let file = Path::new(FILE);
    let data = world()
        .dealer
        .encrypt(&[1, 2, 3, 0], 6)
        .to_ciphertext(Type::Uint(8), file)
        .unwrap()
        .to_bytes()
        .unwrap();
    let mut stream = Stream::new([1; 16]);
    for round in 0..4_000 {
        let mut changed = data.clone();
        let span = if round % 2 == 0 {
            256
        } else {
            data.len() as u64
        };
        let at = (stream.word() % span) as usize;
        changed[at] = stream.word() as u8;
        let end = data.len() - 200 * usize::from(round % 16 == 15);
        if let Err(error) = Ciphertext::from_bytes(&changed[..end], file) {
            assert!(!error.to_string().contains('\n'), "{error}");
        }
    }
}

#[test]
fn lwe_files() {
    let file = Path::new(FILE);
    let lwe = world().dealer.encrypt(&[1, 2, 3, 0], 7);
    let data = lwe.to_bytes(file).unwrap();
    let read = |data: &[u8]| LweFile::from_bytes(data, file);
    refused(read(b"KQLWE003"), "not a file of LWE ciphertexts");
    refused(read(&data[..data.len() - 8]), "copy the file again");
    refused(
        read(&with_header(&data, "tfhers-2-2", "lwe64-p2")),
        "parameters is lwe64-p2",
    );
    refused(
        read(&with_header(&data, "\"count\":4", "\"count\":3")),
        "its header states",
    );
    refused(
        read(&with_header(
            &data,
            "\"key_id\":\"0011",
            "\"key_id\":\"0\\n11",
        )),
        "key_id 32 hexadecimal digits",
    );
    let other = with_header(&data, "tfhers-2-2", "tfhers\\n2");
    refused(read(&other), "parameters is tfhers 2");
    let mut changed = data.clone();
    changed[500] ^= 1;
    refused(read(&changed), "SHA-256");
    refused(
        lwe.to_ciphertext(Type::Uint(16), file),
        "has 4 blocks, uint16 has 8",
    );
    let loud = LweFile {
        noise_bits: Some(58.0),
        ..lwe
    };
    refused(
        loud.to_ciphertext(Type::Uint(8), file),
        "states noise of up to 2^58, fresh blocks have below 2^49",
    );
    assert_eq!(loud.key_id, KEY_ID);
}
