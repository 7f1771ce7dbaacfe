//! The program, from key folder to LWE file.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use keyquorum_tfhe::LweFile;

use crate::dealer::{scratch, world};

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_keyquorum-tfhe"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap()
}

fn succeed(folder: &Path, arguments: &str) {
    let output = run(folder, &arguments.split(' ').collect::<Vec<_>>());
    assert!(
        output.status.success(),
        "{arguments}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn fail(folder: &Path, arguments: &str) -> String {
    let output = run(folder, &arguments.split(' ').collect::<Vec<_>>());
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn values_come_from_the_standard_input() {
    let folder = scratch("stdin");
    let key = world().path.to_str().unwrap();
    succeed(&folder, &format!("keys {key} out"));
    for (input, right) in [("200\n77 3\n", true), ("", false), ("1 x", false)] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_keyquorum-tfhe"))
            .current_dir(&folder)
            .args(["encrypt", "out/CompactPublicKey.bin", "uint8", "-", "x"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.success(), right, "{input}");
        assert_eq!(output.stderr.is_empty(), right);
    }
    succeed(&folder, &format!("to-lwe {key} x.0 x.1 x.2 values.lwe"));
    let data = std::fs::read(folder.join("values.lwe")).unwrap();
    let file = LweFile::from_bytes(&data, "values".as_ref()).unwrap();
    let blocks = world().dealer.decrypt(&file);
    let values: Vec<u64> = blocks
        .chunks(4)
        .map(|blocks| {
            blocks
                .iter()
                .rev()
                .fold(0, |sum, (block, _)| 4 * sum + block)
        })
        .collect();
    assert_eq!(values, [200, 77, 3]);
}

#[test]
fn a_demonstration() {
    let folder = scratch("demo");
    let key = world().path.to_str().unwrap();
    succeed(&folder, &format!("keys {key} out"));
    succeed(&folder, "encrypt out/CompactPublicKey.bin uint8 200 77 x");
    succeed(&folder, "eval out/ServerKey.bin mul x.0 x.1 product");
    succeed(
        &folder,
        "eval out/CompressedServerKey.bin gt x.1 x.0 greater",
    );
    succeed(
        &folder,
        "eval out/ServerKey.bin select greater product x.1 chosen",
    );
    succeed(
        &folder,
        &format!("to-lwe {key} product greater chosen results.lwe"),
    );
    let file = LweFile::from_bytes(
        &std::fs::read(folder.join("results.lwe")).unwrap(),
        "results".as_ref(),
    )
    .unwrap();
    let blocks: Vec<u64> = world()
        .dealer
        .decrypt(&file)
        .into_iter()
        .map(|(value, _)| value % 4)
        .collect();
    let number = |blocks: &[u64]| blocks.iter().rev().fold(0, |sum, m| 4 * sum + m);
    assert_eq!(
        [number(&blocks[..4]), blocks[4], number(&blocks[5..])],
        [(200 * 77) % 256, 0, 77]
    );

    let fresh = world()
        .dealer
        .encrypt(&[1, 0, 2, 3], 30)
        .to_bytes("fresh".as_ref())
        .unwrap();
    std::fs::write(folder.join("fresh.lwe"), fresh).unwrap();
    succeed(&folder, &format!("from-lwe {key} fresh.lwe uint8 y"));
    succeed(&folder, "eval out/ServerKey.bin add y x.1 sum");
    succeed(&folder, &format!("to-lwe {key} sum sum.lwe"));
    let file = LweFile::from_bytes(
        &std::fs::read(folder.join("sum.lwe")).unwrap(),
        "sum".as_ref(),
    )
    .unwrap();
    assert_eq!(world().dealer.integer(&file), (1 + 32 + 192 + 77) % 256);

    for (arguments, text) in [
        ("", "run keyquorum-tfhe --help"),
        (
            "keys nowhere out",
            "nowhere/bootstrapping.kqt: cannot be read",
        ),
        (
            "encrypt out/CompactPublicKey.bin uint9 1 x",
            "unknown type uint9: choose bool, block",
        ),
        (
            "encrypt out/CompactPublicKey.bin uint8 256 x",
            "256 does not fit uint8",
        ),
        (
            "encrypt out/CompactPublicKey.bin uint8 -1 x",
            "-1 is no value of uint8",
        ),
        (
            "encrypt out/CompactPublicKey.bin uint18 1 x",
            "unknown type uint18: choose bool, block, or uintN or intN of a width of TFHE-rs",
        ),
        (
            "encrypt out/ServerKey.bin uint8 1 x",
            "not a CompactPublicKey of TFHE-rs 1.8",
        ),
        (
            "eval out/ServerKey.bin sub x.0 x.1 x",
            "unknown operation sub: choose one of",
        ),
        (
            "eval out/ServerKey.bin add greater x.1 x",
            "the operation does not take (bool, uint8)",
        ),
        (
            "eval out/CompactPublicKey.bin add x.0 x.1 x",
            "not a ServerKey or CompressedServerKey",
        ),
        (
            "eval out/ServerKey.bin add fresh.lwe x.1 x",
            "fresh.lwe: not an FheUint, FheInt, FheBool or shortint ciphertext",
        ),
    ] {
        let error = fail(&folder, arguments);
        assert!(
            error.starts_with("error: ") && error.contains(text) && error.lines().count() == 1,
            "{error}"
        );
    }
    let error = fail(&folder, &format!("from-lwe {key} sum.lwe uint8 z"));
    assert!(error.contains("sum.lwe: states noise"), "{error}");
    let timed = run(&folder, &["time-keys"]);
    let seconds: f64 = String::from_utf8(timed.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(timed.status.success() && seconds > 0.01 && seconds < 1000.0);
    let help = run(&folder, &["--help"]);
    assert!(String::from_utf8_lossy(&help.stdout).contains("grants no patent rights"));
}
