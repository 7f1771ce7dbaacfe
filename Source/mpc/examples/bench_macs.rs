//! Triples of the protocols with MACs, two parties on this host without network: `cargo run --release --example bench_macs`.
//! Each row: protocol, triples per second, payload bytes a triple and party. Bound by CPU.

use std::thread;
use std::time::{Duration, Instant};

use keyquorum_math::DomainKind;
use keyquorum_mpc::{EngineError, EngineOptions, Session};

const TRIPLES: usize = 40_000;

fn run(protocol: &'static str, domain: DomainKind) -> Result<(f64, f64), EngineError> {
    let threads: Vec<_> = keyquorum_net::local_mesh(2, Duration::from_secs(100))
        .into_iter()
        .map(|transport| {
            thread::spawn(move || -> Result<(f64, f64), EngineError> {
                let session = Session::new(Box::new(transport))?;
                let mut engine = session.engine(protocol, domain, &EngineOptions::default())?;
                let x = engine.random(TRIPLES)?;
                engine.flush()?;
                let (start, before) = (Instant::now(), engine.stats().bytes_sent);
                let _product = engine.mul(&x, &x)?;
                engine.flush()?;
                let made = engine
                    .material()
                    .iter()
                    .find(|material| material.name == "triples")
                    .map_or(1, |material| material.made) as f64;
                let bytes = (engine.stats().bytes_sent - before) as f64;
                Ok((made / start.elapsed().as_secs_f64(), bytes / made))
            })
        })
        .collect();
    let mut last = Ok((0.0, 0.0));
    for party in threads {
        last = party
            .join()
            .map_err(|_| EngineError::usage("a party panicked"))?;
    }
    last
}

fn main() -> Result<(), EngineError> {
    for (protocol, domain) in [
        ("spdz2k", DomainKind::Z2k(64)),
        ("mascot", DomainKind::Fq(1_152_921_504_606_584_833)),
    ] {
        let (rate, bytes) = run(protocol, domain)?;
        println!("{protocol:8} {rate:8.0} triples/s {bytes:6.0} B");
    }
    Ok(())
}
