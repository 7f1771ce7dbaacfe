//! Rates of the primitives, all parties as threads of one process: `cargo run --release -p keyquorum-mpc --example bench_primitives`.
//!
//! Each row: protocol, parties, operation, million elements per second, payload bytes an element a party. With verified products the check is part of
//! the operation; of ANDs there are fewer. All rows are bound by CPU
//! (no network, every party on this machine).
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used)]

use std::thread;
use std::time::{Duration, Instant};

use keyquorum_math::DomainKind;
use keyquorum_mpc::{EngineOptions, Session};
use keyquorum_net::local_mesh;

/// As in the Python extension: vectors come and go at every operation, and the system's allocator returns their pages each time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const N: usize = 1 << 20;

/// How many of an operation: fewer ANDs where each is verified.
fn items(protocol: &str, operation: &str) -> usize {
    if protocol.starts_with("mal") && operation.starts_with("AND") {
        N / 64
    } else {
        N
    }
}

fn run(
    protocol: &'static str,
    parties: usize,
    domain: DomainKind,
    operation: &'static str,
) -> (f64, f64) {
    let threads: Vec<_> = local_mesh(parties, Duration::from_secs(60))
        .into_iter()
        .map(|transport| {
            thread::spawn(move || {
                let session = Session::new(Box::new(transport)).expect("session");
                let mut e = session
                    .engine(protocol, domain, &EngineOptions::default())
                    .expect("engine");
                let a = e.random(N).expect("random");
                e.flush().expect("flush");
                let start = Instant::now();
                let result = match operation {
                    "product" => e.mul(&a, &a),
                    "opening" => e.open(&a),
                    "random bit" => e.random_bit(N),
                    "random element" => e.random(N),
                    _ => {
                        let bits = e
                            .random_bits(64 * items(protocol, operation))
                            .expect("bits");
                        e.and(&bits, &bits)
                    }
                };
                e.flush().expect("flush");
                drop(result);
                (
                    start.elapsed().as_secs_f64(),
                    e.stats().bytes_sent as f64 / items(protocol, operation) as f64,
                )
            })
        })
        .collect();
    threads
        .into_iter()
        .map(|t| t.join().expect("party"))
        .fold((0.0, 0.0), |(s, b), (t, c)| {
            (f64::max(s, t), b + c / parties as f64)
        })
}

fn main() {
    let q = DomainKind::Fq(1_152_921_504_606_584_833);
    let mersenne = DomainKind::Fq((1 << 61) - 1);
    for (protocol, parties, domain) in [
        ("ring", 3, DomainKind::Z2k(64)),
        ("rep-field", 3, q),
        ("mal-rep-ring", 3, DomainKind::Z2k(64)),
        ("mal-rep-field", 3, q),
        ("mal-shamir", 3, mersenne),
        ("shamir", 3, mersenne),
        ("shamir", 5, mersenne),
    ] {
        for operation in [
            "random element",
            "product",
            "opening",
            "random bit",
            "AND of 64 bits",
        ] {
            if protocol.ends_with("shamir") && operation.starts_with("AND") {
                continue;
            }
            let (seconds, bytes) = run(protocol, parties, domain, operation);
            println!(
                "{protocol:13} n={parties} {operation:16} {:8.2} M/s {bytes:6.1} B",
                items(protocol, operation) as f64 / seconds / 1e6
            );
        }
    }
}
