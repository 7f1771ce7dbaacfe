//! Correlated randomness of the protocols with MACs, two parties on this host without network:
//! `cargo run --release --example bench_macs`. Each row: protocol, what is made, items a second, payload bytes an item and party.
//! Bound by CPU.

use std::thread;
use std::time::{Duration, Instant};

use keyquorum_math::DomainKind;
use keyquorum_mpc::{Engine, EngineError, EngineOptions, Session};

const ELEMENTS: usize = 1_000_000;
const TRIPLES: usize = 40_000;
const BITS: usize = 40_000;
const NUMBERS: usize = 16_384;

/// What makes the items, and the name that the engine has for them.
type Item = (&'static str, fn(&mut dyn Engine) -> Result<(), EngineError>);

const ITEMS: [Item; 4] = [
    ("random elements", |engine| {
        engine.random(ELEMENTS).map(drop)
    }),
    ("triples", |engine| {
        let x = engine.random(TRIPLES)?;
        engine.mul(&x, &x).map(drop)
    }),
    ("bits", |engine| engine.random_bit(BITS).map(drop)),
    // The longest ones that both domains have.
    ("edabits", |engine| engine.edabit(18, NUMBERS).map(drop)),
];

fn run(
    protocol: &'static str,
    domain: DomainKind,
    (name, make): Item,
) -> Result<(f64, f64), EngineError> {
    let threads: Vec<_> = keyquorum_net::local_mesh(2, Duration::from_secs(100))
        .into_iter()
        .map(|transport| {
            thread::spawn(move || -> Result<(f64, f64), EngineError> {
                let session = Session::new(Box::new(transport))?;
                let mut engine = session.engine(protocol, domain, &EngineOptions::default())?;
                let x = engine.random(1)?;
                let opened = engine.open(&x)?;
                engine.read(&opened)?;
                let (start, before) = (Instant::now(), engine.stats().bytes_sent);
                make(&mut *engine)?;
                engine.flush()?;
                let made = engine
                    .preprocessed()
                    .iter()
                    .find(|items| items.name == name)
                    .map_or(1, |items| items.made) as f64;
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
        for item in ITEMS {
            let (rate, bytes) = run(protocol, domain, item)?;
            println!("{protocol:8} {rate:9.0} {}/s {bytes:6.0} B", item.0);
        }
    }
    let long: Item = ("edabits", |engine| engine.edabit(63, NUMBERS).map(drop));
    let (rate, bytes) = run("spdz2k", DomainKind::Z2k(64), long)?;
    println!("spdz2k   {rate:9.0} edabits of 63 bits/s {bytes:6.0} B");
    Ok(())
}
