#![allow(clippy::unwrap_used)] // a failed test may panic

use super::*;
use crate::MacKey;
use sha2::Sha256;

const CONTEXT: &[u8] = b"test";

fn key() -> LinkKey {
    LinkKey::with_pads(0x0123_4567_89ab_cdef_fedc_ba98_7654_3210, None)
}

/// As the tests of one OT need it: a key of 128 bits would take long.
fn shortened(
    mut receiver: BaseReceiver,
    mut message: Vec<u8>,
    count: usize,
) -> (BaseReceiver, Vec<u8>) {
    message.truncate(count * RECEIVER_BYTES);
    receiver.keys.truncate(count);
    receiver.choices.truncate(count);
    receiver.message.truncate(count * RECEIVER_BYTES);
    (receiver, message)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_receiver_gets_what_it_chose() {
    let macs = MacKey::from_bytes(&[0x5a; 16]);
    let key = LinkKey::with_pads(0x0123_4567_89ab_cdef_fedc_ba98_7654_3210, Some(macs));
    let (receiver, keys) = BaseReceiver::start(CONTEXT, &key).unwrap();
    let (both, ciphertexts) = send(CONTEXT, key.len(), &keys).unwrap();
    assert_eq!((keys.len(), ciphertexts.len()), (224 * 2336, 224 * 2176));
    let chosen = receiver.finish(CONTEXT, &ciphertexts).unwrap();
    assert_eq!((both.len(), chosen.len()), (224, 224));
    for (i, (pair, seed)) in both.iter().zip(&chosen).enumerate() {
        let bit = usize::from(key.bit(i).unwrap());
        assert_eq!(pair[1 - bit], *seed);
        assert_ne!(pair[bit], *seed);
    }
}

#[test]
fn another_context_gives_other_strings() {
    let (receiver, keys) = BaseReceiver::start(CONTEXT, &key()).unwrap();
    let (receiver, keys) = shortened(receiver, keys, 8);
    let (both, ciphertexts) = send(b"other", 8, &keys).unwrap();
    let chosen = receiver.finish(CONTEXT, &ciphertexts).unwrap();
    assert!(both.iter().zip(&chosen).all(|(pair, s)| !pair.contains(s)));
}

/// Made with Python's hashlib from the formulas in the documentation of formats.
#[test]
fn hashes_are_those_of_the_format() {
    let rho: Vec<u8> = (0..32).collect();
    let vector = module_hash(b"context", 5, 1, &rho, &[7; VECTOR_BYTES]).unwrap();
    let packed = pack(&vector);
    assert_eq!(hex(&packed[..16]), "c8fa9698e14634163583ecc31f577621");
    assert_eq!(
        hex(&Sha256::digest(packed.as_slice())),
        "c9bc0ca06f418596d16c3bcbe8e891511f9f41f70975486ec22635dd51de6459"
    );
    let bytes = |count: usize, modulus: usize| -> Vec<u8> {
        (0..count).map(|i| (i % modulus) as u8).collect()
    };
    let (keys, ciphertexts) = (bytes(RECEIVER_BYTES, 251), bytes(SENDER_BYTES, 241));
    let string = string_hash(b"context", 5, 1, &keys, &ciphertexts, &rho);
    assert_eq!(hex(string.as_slice()), "8462ad0d5d0bdad73821aeb9add2f8b6");
}

#[test]
fn messages_that_no_honest_party_sends_are_refused() {
    let (receiver, keys) = BaseReceiver::start(CONTEXT, &key()).unwrap();
    let (receiver, keys) = shortened(receiver, keys, 2);
    for place in [0, VECTOR_BYTES - 3, RECEIVER_BYTES + VECTOR_BYTES] {
        let mut keys = keys.clone();
        keys[place..place + 3].fill(0xff);
        assert!(matches!(
            send(CONTEXT, 2, &keys),
            Err(OtError::Message("a base OT key is no key of ML-KEM-768"))
        ));
    }
    assert!(matches!(
        send(CONTEXT, 2, &keys[1..]),
        Err(OtError::Length { .. })
    ));
    let (_, ciphertexts) = send(CONTEXT, 2, &keys).unwrap();
    assert!(matches!(
        receiver.finish(CONTEXT, &ciphertexts[1..]),
        Err(OtError::Length { .. })
    ));
}

/// No error that would depend on the choice, whichever ciphertext is malformed.
#[test]
fn malformed_ciphertexts_give_strings_that_the_sender_does_not_know() {
    for place in [0, CIPHERTEXT_BYTES] {
        let (receiver, keys) = BaseReceiver::start(CONTEXT, &key()).unwrap();
        let (receiver, keys) = shortened(receiver, keys, 4);
        let (both, mut ciphertexts) = send(CONTEXT, 4, &keys).unwrap();
        for ciphertext in ciphertexts.chunks_exact_mut(SENDER_BYTES) {
            ciphertext[place] ^= 1;
        }
        let chosen = receiver.finish(CONTEXT, &ciphertexts).unwrap();
        assert!(both.iter().zip(&chosen).all(|(pair, s)| !pair.contains(s)));
    }
}

/// A receiver that wants both strings of one OT. It knows the secret of one key pair, and looks for a message that makes both keys of the
/// sender equal to that one. Returns how many strings it has.
fn strings_known(hash: &Hash) -> usize {
    let pair = DecapsulationKey::generate(&ML_KEM_768).unwrap();
    let public = pair.encapsulation_key().unwrap().key_bytes().unwrap();
    let (t, rho) = public.as_ref().split_at(VECTOR_BYTES);
    let t = unpack(t).unwrap();
    let answer = |choice: u8, other: &[u8]| {
        pack(&subtract(
            &t,
            &hash(CONTEXT, 0, choice, rho, other).unwrap(),
        ))
    };
    // Each vector is right for the other one, which then changes: a fixed point would be a receiver with both strings.
    let mut vectors = [random_vector(), random_vector()].map(|vector| pack(&vector.unwrap()));
    for step in 0..100 {
        vectors[step % 2] = answer((step % 2) as u8, &vectors[1 - step % 2]);
    }
    let message = [vectors[0].as_slice(), vectors[1].as_slice(), rho].concat();
    let (both, ciphertexts) = send_with(CONTEXT, 1, &message, hash).unwrap();
    let known = |choice: u8| {
        let (first, second) = ciphertexts.split_at(CIPHERTEXT_BYTES);
        let chosen = if choice == 0 { first } else { second };
        let secret = pair.decapsulate(Ciphertext::from(chosen)).unwrap();
        let string = string_hash(CONTEXT, 0, choice, &message, &ciphertexts, secret.as_ref());
        string == both[0][usize::from(choice)]
    };
    [0, 1].into_iter().filter(|choice| known(*choice)).count()
}

#[test]
fn kem_base_ot_blocked_a_receiver_with_both_keys() {
    assert_eq!(strings_known(&module_hash), 1);
}

#[test]
fn kem_base_ot_ablated_without_the_hash() {
    assert_eq!(
        strings_known(&|_, _, _, _, _| Ok(unpack(&[0; VECTOR_BYTES]).unwrap())),
        2
    );
}

#[test]
fn kem_base_ot_ablated_by_a_hash_of_the_number_alone() {
    let hash = |context: &[u8], number: usize, choice: u8, rho: &[u8], _: &[u8]| {
        module_hash(context, number, choice, rho, b"")
    };
    assert_eq!(strings_known(&hash), 2);
}
