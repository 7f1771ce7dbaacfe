//! `keyquorum-tfhe`: keys and ciphertexts between KeyQuorum and TFHE-rs, see `README.md`.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use keyquorum_tfhe::{
    BridgeError, Ciphertext, Circuit, KeyFile, KeyFolder, Kind, LweFile, Operation, Type,
    compact_public_key, compressed_server_key, encrypt, encrypt_list, evaluate, own_key_time,
    read_bits, read_compact_public_key, read_server_key, serialized, write_file,
};
use tfhe::prelude::Tagged;

const USAGE: &str = "usage: keyquorum-tfhe COMMAND
  keys KEYS OUT                      CompressedServerKey.bin, ServerKey.bin, CompactPublicKey.bin in the folder OUT
  to-lwe KEYS CIPHERTEXT... OUT.lwe  TFHE-rs's ciphertexts as LWE ciphertexts that the committee decrypts
  from-lwe KEYS IN.lwe TYPE OUT      fresh LWE ciphertexts as one ciphertext of TFHE-rs
  encrypt PUBLIC TYPE VALUE... OUT   ciphertexts under a CompactPublicKey; of several values OUT.0, OUT.1 and so on;
                                     VALUE - reads values from the standard input, where other users cannot see them
  eval SERVER OP INPUT... OUT        add, mul, gt of two integers of one type; select of a bool before them
  encrypt-bits PUBLIC BIT... OUT     bits as one compact list, for circuit; BIT - reads them from the standard input
  circuit SERVER CIRCUIT INPUT... OUT.lwe
                                     evaluates a Boolean circuit; INPUT: compact lists and LWE ciphertexts of bits, in the order of its inputs
  time-keys                          seconds of the fastest of 3 key generations by TFHE-rs itself; the keys are dropped
KEYS is a key folder with bootstrapping.kqt, key-switching.kqt and compact.kqt.
TYPE is bool, block, or uintN or intN of a width N that TFHE-rs has: even numbers of 2 to 16, multiples of 8 to 256, 512, 1024, 2048.
This program contains TFHE-rs (BSD-3-Clause-Clear): its licence grants no patent rights.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if matches!(arguments.as_slice(), ["--help" | "-h" | "help"]) {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> Result<(), BridgeError> {
    match arguments {
        ["keys", keys, out] => keys_command(Path::new(keys), Path::new(out)),
        ["to-lwe", keys, inputs @ .., out] if !inputs.is_empty() => {
            to_lwe(Path::new(keys), inputs, Path::new(out))
        }
        ["from-lwe", keys, input, kind, out] => from_lwe(
            Path::new(keys),
            Path::new(input),
            Type::parse(kind)?,
            Path::new(out),
        ),
        ["encrypt", key, kind, values @ .., out] if !values.is_empty() => {
            encrypt_command(Path::new(key), Type::parse(kind)?, values, Path::new(out))
        }
        ["eval", key, operation, inputs @ .., out] if !inputs.is_empty() => eval(
            Path::new(key),
            Operation::parse(operation)?,
            inputs,
            Path::new(out),
        ),
        ["encrypt-bits", key, bits @ .., out] if !bits.is_empty() => {
            encrypt_bits(Path::new(key), bits, Path::new(out))
        }
        ["circuit", key, circuit, inputs @ .., out] if !inputs.is_empty() => {
            circuit_command(Path::new(key), Path::new(circuit), inputs, Path::new(out))
        }
        ["time-keys"] => {
            println!("{:.3}", own_key_time(3).as_secs_f64());
            Ok(())
        }
        _ => Err(BridgeError::Usage(
            "no such command, or other arguments: run keyquorum-tfhe --help".into(),
        )),
    }
}

fn keys_command(keys: &Path, out: &Path) -> Result<(), BridgeError> {
    let folder = KeyFolder::read(keys)?;
    std::fs::create_dir_all(out).map_err(|source| BridgeError::Write {
        file: out.into(),
        source,
    })?;
    let compressed = compressed_server_key(&folder);
    write_file(
        &out.join("CompressedServerKey.bin"),
        &serialized(&compressed)?,
    )?;
    write_file(
        &out.join("ServerKey.bin"),
        &serialized(&compressed.decompress())?,
    )?;
    write_file(
        &out.join("CompactPublicKey.bin"),
        &serialized(&compact_public_key(&folder)?)?,
    )
}

fn to_lwe(keys: &Path, inputs: &[&str], out: &Path) -> Result<(), BridgeError> {
    let key_id = KeyFile::read(keys, Kind::Compact)?.key_id;
    let read = |input: &&str| -> Result<Ciphertext, BridgeError> {
        let ciphertext = Ciphertext::read(Path::new(input))?;
        ciphertext.check_key(&key_id, Path::new(input), keys)?;
        Ok(ciphertext)
    };
    let ciphertexts = inputs.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    write_file(
        out,
        &LweFile::from_ciphertexts(&ciphertexts, &key_id).to_bytes(out)?,
    )
}

fn from_lwe(keys: &Path, input: &Path, kind: Type, out: &Path) -> Result<(), BridgeError> {
    let expected = KeyFile::read(keys, Kind::Compact)?.key_id;
    let data = std::fs::read(input).map_err(|source| BridgeError::Read {
        file: input.into(),
        source,
    })?;
    let file = LweFile::from_bytes(&data, input)?;
    if file.key_id != expected {
        return Err(BridgeError::KeyId {
            file: input.into(),
            found: file.key_id,
            other: keys.into(),
            expected,
        });
    }
    write_file(out, &file.to_ciphertext(kind, input)?.to_bytes()?)
}

fn encrypt_command(key: &Path, kind: Type, values: &[&str], out: &Path) -> Result<(), BridgeError> {
    let values = given(values)?;
    let key = read_compact_public_key(key)?;
    let ciphertexts = values
        .iter()
        .map(|value| encrypt(&key, kind, value)?.to_bytes())
        .collect::<Result<Vec<_>, _>>()?;
    for (index, ciphertext) in ciphertexts.iter().enumerate() {
        let file = if ciphertexts.len() == 1 {
            out.into()
        } else {
            PathBuf::from(format!("{}.{index}", out.display()))
        };
        write_file(&file, ciphertext)?;
    }
    Ok(())
}

/// The values of arguments, or of the standard input for `-`.
fn given(values: &[&str]) -> Result<Vec<String>, BridgeError> {
    let mut input = String::new();
    let values: Vec<&str> = if values == ["-"] {
        std::io::stdin()
            .read_to_string(&mut input)
            .map_err(|source| BridgeError::Read {
                file: "standard input".into(),
                source,
            })?;
        input.split_whitespace().collect()
    } else {
        values.to_vec()
    };
    if values.is_empty() {
        return Err(BridgeError::Usage(
            "the standard input has no values: give numbers with spaces or line breaks between them".into(),
        ));
    }
    Ok(values.into_iter().map(String::from).collect())
}

fn encrypt_bits(key: &Path, bits: &[&str], out: &Path) -> Result<(), BridgeError> {
    let bits = given(bits)?
        .iter()
        .map(|bit| match bit.as_str() {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err(BridgeError::Usage(format!("{bit} is no bit: give 0 or 1"))),
        })
        .collect::<Result<Vec<_>, _>>()?;
    let list = encrypt_list(&read_compact_public_key(key)?, &bits)?;
    write_file(out, &serialized(&list)?)
}

fn circuit_command(
    key: &Path,
    circuit: &Path,
    inputs: &[&str],
    out: &Path,
) -> Result<(), BridgeError> {
    let circuit = Circuit::read(circuit)?;
    let server = read_server_key(key)?;
    let key_id = String::from_utf8_lossy(server.tag().data()).into_owned();
    let mut bits = vec![];
    for input in inputs {
        let most = circuit.inputs() - bits.len();
        bits.extend(read_bits(Path::new(input), most, &key_id, key)?);
    }
    let results = circuit.evaluate(server, bits)?;
    write_file(
        out,
        &LweFile::from_ciphertexts(&results, &key_id).to_bytes(out)?,
    )
}

fn eval(key: &Path, operation: Operation, inputs: &[&str], out: &Path) -> Result<(), BridgeError> {
    let server = read_server_key(key)?;
    let key_id = String::from_utf8_lossy(server.tag().data()).into_owned();
    let read = |input: &&str| -> Result<Ciphertext, BridgeError> {
        let ciphertext = Ciphertext::read(Path::new(input))?;
        ciphertext.check_key(&key_id, Path::new(input), key)?;
        Ok(ciphertext)
    };
    let ciphertexts = inputs.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    write_file(out, &evaluate(server, operation, &ciphertexts)?.to_bytes()?)
}
