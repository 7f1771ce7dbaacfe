//! Ciphertexts of TFHE-rs as LWE files, and back.

use keyquorum_tfhe::{Ciphertext, LweFile, Operation, Type, evaluate};

use crate::dealer::{KEY_ID, world};

#[test]
fn an_evaluated_integer_decrypts_from_its_lwe_file() {
    let dealer = &world().dealer;
    let inputs = [[3, 1, 2, 0], [2, 3, 0, 1]].map(|blocks| {
        dealer
            .encrypt(&blocks, 20)
            .to_ciphertext(Type::Uint(8), "test".as_ref())
            .unwrap()
    });
    let sum = evaluate(world().server.clone(), Operation::Add, &inputs).unwrap();
    let file = LweFile::from_ciphertexts(&[sum.clone(), sum], KEY_ID);
    let data = file.to_bytes("test".as_ref()).unwrap();
    assert_eq!(&data[..8], b"KQLWE002");
    let again = LweFile::from_bytes(&data, "test".as_ref()).unwrap();
    assert_eq!(again, file);
    assert_eq!((again.b.len(), again.noise_bits), (8, Some(58.0)));
    assert_eq!(again.types, ["uint8", "uint8"]);
    let expected = (3 + 4 + 32) + (2 + 12 + 64);
    let (first, second) = (part(&again, 0..4), part(&again, 4..8));
    assert_eq!(
        (dealer.integer(&first), dealer.integer(&second)),
        (expected, expected)
    );
}

fn part(file: &LweFile, range: std::ops::Range<usize>) -> LweFile {
    let words = 2048 * range.start..2048 * range.end;
    LweFile {
        a: file.a[words].to_vec(),
        b: file.b[range].to_vec(),
        ..file.clone()
    }
}

#[test]
fn fresh_blocks_become_every_type() {
    for kind in Type::all() {
        let values: Vec<u64> = (0..kind.blocks() as u64)
            .map(|i| if kind == Type::Bool { 1 } else { (i + 3) % 4 })
            .collect();
        let file = world().dealer.encrypt(&values, 21);
        let data = file.to_bytes("test".as_ref()).unwrap();
        let file = LweFile::from_bytes(&data, "test".as_ref()).unwrap();
        let ciphertext = file.to_ciphertext(kind, "test".as_ref()).unwrap();
        let read =
            Ciphertext::from_bytes(&ciphertext.to_bytes().unwrap(), "test".as_ref()).unwrap();
        assert_eq!(read.kind(), kind);
        let back = LweFile::from_ciphertexts(&[read], KEY_ID);
        assert_eq!((&back.a, &back.b), (&file.a, &file.b));
        let found: Vec<u64> = world()
            .dealer
            .decrypt(&back)
            .into_iter()
            .map(|(value, _)| value)
            .collect();
        assert_eq!(found, values);
    }
}
