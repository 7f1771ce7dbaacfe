//! Measures the channels of this crate on one machine: `cargo run --release -p keyquorum-net --example bench_net`.
//!
//! Both parties run in this process, each on a thread of its own. Reported are the payload throughput of one direction, of
//! both directions at once (each), and the round trip of small messages: medians of several runs.

use std::error::Error;
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use keyquorum_net::{Hello, Identity, Peer, TlsConfig, TlsTransport, Transport, local_mesh};

const MESSAGE: usize = 16 << 20;
const MESSAGES: usize = 32;
const REPEATS: usize = 7;
const SMALL: usize = 64;
const ROUND_TRIPS: usize = 5000;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn hello(party: u32) -> Hello {
    Hello {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        committee: [0; 32],
        context: "bench".to_owned(),
        protocol: String::new(),
        domain: String::new(),
        party,
        parties: 2,
    }
}

fn tls_pair() -> Result<Vec<TlsTransport>> {
    let identities = [
        Identity::generate("party 0")?,
        Identity::generate("party 1")?,
    ];
    let listeners = [
        TcpListener::bind("127.0.0.1:0")?,
        TcpListener::bind("127.0.0.1:0")?,
    ];
    let mut peers = Vec::new();
    for (index, (identity, listener)) in identities.iter().zip(&listeners).enumerate() {
        peers.push(Peer {
            index,
            host: "127.0.0.1".to_owned(),
            port: listener.local_addr()?.port(),
            fingerprint: identity.fingerprint_bytes(),
        });
    }
    let mut threads = Vec::new();
    for ((party, identity), listener) in (0u32..).zip(identities).zip(listeners) {
        let peers = peers.clone();
        threads.push(thread::spawn(move || {
            let mut config = TlsConfig::new(party as usize, identity, peers, hello(party));
            config.listener = Some(listener);
            TlsTransport::connect(config)
        }));
    }
    let mut pair = Vec::new();
    for thread in threads {
        pair.push(thread.join().map_err(|_| "set-up panicked")??);
    }
    Ok(pair)
}

fn throughput<T: Transport>(zero: &mut T, one: &mut T, both: bool) -> Result<f64> {
    let run = |me: &mut T, sends: bool, receives: bool| -> Result<()> {
        let peer = 1 - me.party();
        let message = vec![0x5a; MESSAGE];
        for _ in 0..MESSAGES {
            if sends {
                me.send(peer, &message)?;
            }
            if receives {
                me.recv(peer, MESSAGE)?;
            }
        }
        Ok(())
    };
    let start = Instant::now();
    thread::scope(|scope| {
        let other = scope.spawn(|| run(one, both, true));
        run(zero, true, both)?;
        other.join().map_err(|_| "receiver panicked")?
    })?;
    Ok((MESSAGE * MESSAGES) as f64 / start.elapsed().as_secs_f64() / 1e9)
}

fn round_trip<T: Transport>(zero: &mut T, one: &mut T) -> Result<Duration> {
    thread::scope(|scope| {
        let echo = scope.spawn(|| -> Result<()> {
            for _ in 0..ROUND_TRIPS {
                let message = one.recv(0, SMALL)?;
                one.send(0, &message)?;
            }
            Ok(())
        });
        let mut times = Vec::with_capacity(ROUND_TRIPS);
        for _ in 0..ROUND_TRIPS {
            let start = Instant::now();
            zero.send(1, &[7; SMALL])?;
            zero.recv(1, SMALL)?;
            times.push(start.elapsed());
        }
        echo.join().map_err(|_| "echo panicked")??;
        times.sort_unstable();
        Ok(times.get(ROUND_TRIPS / 2).copied().unwrap_or_default())
    })
}

fn report<T: Transport>(name: &str, mut pair: Vec<T>) -> Result<()> {
    let (Some(mut one), Some(mut zero)) = (pair.pop(), pair.pop()) else {
        return Err("a pair is needed".into());
    };
    throughput(&mut zero, &mut one, false)?;
    let mut median = |both: bool| -> Result<f64> {
        let mut rates = Vec::with_capacity(REPEATS);
        for _ in 0..REPEATS {
            rates.push(throughput(&mut zero, &mut one, both)?);
        }
        rates.sort_unstable_by(f64::total_cmp);
        Ok(rates.get(REPEATS / 2).copied().unwrap_or_default())
    };
    let single = median(false)?;
    let both = median(true)?;
    let latency = round_trip(&mut zero, &mut one)?;
    println!(
        "net: transport={name} one_way_gb_s={single:.2} both_ways_gb_s={both:.2}+{both:.2} round_trip_us={:.1}",
        latency.as_secs_f64() * 1e6
    );
    Ok(())
}

fn main() -> Result<()> {
    let start = Instant::now();
    let pair = tls_pair()?;
    println!("net: setup_ms={:.1}", start.elapsed().as_secs_f64() * 1e3);
    report("tls", pair)?;
    report("local", local_mesh(2, Duration::from_secs(60)))?;
    Ok(())
}
