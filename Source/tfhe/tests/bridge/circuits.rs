//! Boolean circuits: results with TFHE-rs, and what is refused.

use std::path::Path;

use keyquorum_tfhe::{
    Circuit, LweFile, compact_public_key, encrypt_list, read_bits, serialized, write_file,
};

use crate::dealer::{KEY_ID, scratch, world};

/// The AND of x0 and of x1 xor x2, which is 1 for the value 5 of x1 + x2 + 4 x0 alone; a sum of six bits; and the first of them plus x3.
const CIRCUIT: &str = "inputs 6\nlevel\n20 1:1 1:2 4:0\naaaa 1:0 1:1 1:2 1:3 1:4 1:5\nlevel\naaaa 1:3 1:6\noutputs 6 7 8\n";

#[test]
fn bits_of_a_client_and_of_the_committee() {
    let folder = scratch("circuit");
    let (keys, public) = (
        &world().server,
        compact_public_key(&world().folder).unwrap(),
    );
    let key_id = KEY_ID;
    let circuit = Circuit::parse(CIRCUIT, "c".as_ref()).unwrap();
    assert_eq!(circuit.bootstraps(), 3);
    for bits in [
        [true; 6],
        [true, false, true, true, false, false],
        [false; 6],
    ] {
        let list = folder.join("list");
        let (sent, own) = bits.split_at(4);
        write_file(
            &list,
            &serialized(&encrypt_list(&public, sent).unwrap()).unwrap(),
        )
        .unwrap();
        let file = folder.join("own.lwe");
        let own: Vec<u64> = own.iter().map(|bit| u64::from(*bit)).collect();
        let shared = LweFile {
            noise_bits: Some(17.0),
            ..world().dealer.encrypt(&own, 9)
        };
        write_file(&file, &shared.to_bytes(&file).unwrap()).unwrap();
        let mut inputs = read_bits(&list, 6, key_id, Path::new("server")).unwrap();
        inputs.extend(read_bits(&file, 2, key_id, Path::new("server")).unwrap());
        let results = circuit.evaluate(keys.clone(), inputs).unwrap();
        let found = world()
            .dealer
            .decrypt(&LweFile::from_ciphertexts(&results, key_id));
        let and = bits[0] && (bits[1] != bits[2]);
        let sum = bits.iter().fold(false, |sum, bit| sum != *bit);
        let right = [and, sum, and != bits[3]].map(u64::from);
        assert_eq!(found.iter().map(|(m, _)| *m).collect::<Vec<_>>(), right);
    }
    let short = circuit.evaluate(keys.clone(), vec![]).err().unwrap();
    assert!(short.to_string().contains("6 inputs"), "{short}");
}

#[test]
fn other_texts_and_files_are_refused() {
    let refused = |text: &str| {
        Circuit::parse(text, "c".as_ref())
            .err()
            .unwrap()
            .to_string()
    };
    for (text, said) in [
        ("", "outputs are missing"),
        ("level\noutputs 0\n", "line 1"),
        ("inputs 0\noutputs 0\n", "1 to 2^16"),
        ("inputs 2\n1 1:0\noutputs 0\n", "a level before it"),
        ("inputs 2\nlevel\n1 1:2\noutputs 0\n", "of an earlier level"),
        (
            "inputs 2\nlevel\n1 1:0\n1 1:2\noutputs 0\n",
            "of an earlier level",
        ),
        ("inputs 2\nlevel\n1 0:1\noutputs 0\n", "WEIGHT:NUMBER"),
        (
            "inputs 2\nlevel\n1 1:0 1:0\noutputs 0\n",
            "different ciphertexts",
        ),
        ("inputs 2\nlevel\n1 5:0 1:1\noutputs 0\n", "squares to 25"),
        ("inputs 2\nlevel\n1 16:0\noutputs 0\n", "at most"),
        ("inputs 2\nlevel\n10000 1:0\noutputs 0\n", "16 bits"),
        (
            "inputs 2\nlevel\n1 1:0 1:1\n1 1:1 1:0\noutputs 0\n",
            "was there before",
        ),
        ("inputs 2\noutputs 2\n", "numbers of ciphertexts"),
        ("inputs 2\noutputs 0\noutputs 0\n", "line 3"),
    ] {
        let found = refused(text);
        assert!(found.contains(said), "{text:?}: {found}");
    }
    let folder = scratch("circuit-files");
    let public = compact_public_key(&world().folder).unwrap();
    let list = folder.join("list");
    let data = serialized(&encrypt_list(&public, &[true, false]).unwrap()).unwrap();
    write_file(&list, &data).unwrap();
    let other = read_bits(&list, 2, &"ab".repeat(16), Path::new("server"))
        .err()
        .unwrap();
    assert!(other.to_string().contains("belongs to key"), "{other}");
    let many = read_bits(&list, 1, KEY_ID, Path::new("server"))
        .err()
        .unwrap();
    assert!(
        many.to_string()
            .contains("has 2 blocks, the circuit takes 1 more"),
        "{many}"
    );
    let file = folder.join("no-noise.lwe");
    let silent = world().dealer.encrypt(&[1], 9);
    write_file(&file, &silent.to_bytes(&file).unwrap()).unwrap();
    let silent = read_bits(&file, 1, KEY_ID, Path::new("server"))
        .err()
        .unwrap();
    assert!(silent.to_string().contains("noise_bits"), "{silent}");
    write_file(&list, &data[..data.len() - 1]).unwrap();
    let cut = read_bits(&list, 2, KEY_ID, Path::new("server"))
        .err()
        .unwrap();
    assert!(cut.to_string().contains("CompactCiphertextList"), "{cut}");
}
