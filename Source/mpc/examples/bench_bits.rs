//! Rates of authenticated bits (malicious, n − 1 corruptions), all parties as threads of one process:
//! `cargo run --release -p keyquorum-mpc --example bench_bits [parties …]`.
//!
//! Each row: parties, what is made and how many, thousands a second, payload bytes an item that each party sends to each
//! peer, rounds. All rows are bound by the CPU (no network; all parties share this machine's cores): AES of the OT
//! extension and of the hash, POLYVAL of the checks, transpositions.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used)]

use std::thread;
use std::time::{Duration, Instant};

use keyquorum_mpc::{EngineError, Session, Share, Standalone};
use keyquorum_net::local_mesh;
use keyquorum_protocols::authenticated::binary::PARTS;

#[derive(Clone, Copy)]
enum What {
    Bits,
    Triples,
    Ands,
    Openings,
}

fn measure(p: &mut Standalone, what: What, lanes: usize) -> Result<(f64, u64, u64), EngineError> {
    let zeros = || Share::zeros(PARTS, lanes);
    if matches!(what, What::Ands) {
        // The triples are not counted.
        let first = p.bits.and(zeros(), zeros())?;
        p.prepare()?;
        let (rounds, sent) = p.traffic();
        let start = Instant::now();
        p.run(first)?;
        let (r, s) = p.traffic();
        return Ok((start.elapsed().as_secs_f64(), r - rounds, s - sent));
    }
    let (rounds, sent) = p.traffic();
    let start = Instant::now();
    match what {
        What::Bits => {
            let task = p.bits.random(lanes);
            drop(p.run(task)?);
        }
        What::Triples => {
            drop(p.bits.and(zeros(), zeros())?);
            p.prepare()?;
        }
        _ => {
            let task = p.bits.open(zeros());
            p.run(task)?;
            let check = p.bits.check();
            p.run(check)?;
        }
    }
    let (r, s) = p.traffic();
    Ok((start.elapsed().as_secs_f64(), r - rounds, s - sent))
}

fn row(parties: usize, name: &str, what: What, lanes: usize) {
    let threads: Vec<_> = local_mesh(parties, Duration::from_secs(120))
        .into_iter()
        .map(|transport| {
            thread::spawn(move || {
                let session = Session::new(Box::new(transport)).expect("session");
                let mut party = Standalone::new(&session).expect("set-up");
                measure(&mut party, what, lanes).expect("run")
            })
        })
        .collect();
    let results: Vec<_> = threads
        .into_iter()
        .map(|t| t.join().expect("party"))
        .collect();
    let seconds = results.iter().map(|r| r.0).fold(0.0, f64::max);
    let sent: u64 = results.iter().map(|r| r.2).sum();
    let n = 64 * lanes;
    println!(
        "n={parties:2} {name:18} {n:7} {:9.0} k/s {:7.2} B a peer, {:3} rounds",
        n as f64 / seconds / 1e3,
        sent as f64 / (parties * (parties - 1) * n) as f64,
        results.first().map_or(0, |r| r.1),
    );
}

fn main() {
    let asked: Vec<usize> = std::env::args()
        .skip(1)
        .filter_map(|a| a.parse().ok())
        .collect();
    let parties = if asked.is_empty() {
        vec![2, 3, 4]
    } else {
        asked
    };
    for parties in parties {
        row(parties, "random bits", What::Bits, 1 << 13);
        for lanes in [8, 48, 1 << 9, 4608] {
            row(parties, "AND triples", What::Triples, lanes);
        }
        row(parties, "ANDs online", What::Ands, 4608);
        row(parties, "openings, checked", What::Openings, 4608);
    }
}
