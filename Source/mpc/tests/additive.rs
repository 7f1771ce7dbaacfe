//! The additive protocols: products, squares, bits and conversions for 2 to 5 parties, and what they cost.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::thread;
use std::time::Duration;

use keyquorum_math::DomainKind;
use keyquorum_mpc::{Engine, EngineOptions, EngineStats, Handle, Session};
use keyquorum_net::local_mesh;

const Q: u64 = 1152921504606584833;
const CASES: [(&str, DomainKind); 6] = [
    ("semi2k", DomainKind::Z2k(64)),
    ("semi2k", DomainKind::Z2k(1)),
    ("semi2k", DomainKind::Z2k(41)),
    ("semi2k", DomainKind::Z2k(72)),
    ("semi", DomainKind::Fq(Q)),
    ("semi", DomainKind::Fq(65537)),
];

fn run<T: Send + 'static>(
    n: usize,
    protocol: &'static str,
    domain: DomainKind,
    body: impl Fn(&mut dyn Engine) -> T + Clone + Send + 'static,
) -> Vec<T> {
    let threads: Vec<_> = local_mesh(n, Duration::from_secs(60))
        .into_iter()
        .map(|transport| {
            let body = body.clone();
            thread::spawn(move || {
                let session = Session::new(Box::new(transport)).unwrap();
                let mut engine = session
                    .engine(protocol, domain, &EngineOptions::default())
                    .unwrap();
                body(engine.as_mut())
            })
        })
        .collect();
    threads.into_iter().map(|t| t.join().unwrap()).collect()
}

fn order(domain: DomainKind) -> u128 {
    match domain {
        DomainKind::Z2k(k) => 1 << k,
        DomainKind::Fq(q) => u128::from(q),
        DomainKind::Bits => 2,
    }
}

fn open(e: &mut dyn Engine, v: &Handle) -> Vec<u128> {
    let opened = e.open(v).unwrap();
    e.read_wide(&opened).unwrap()
}

/// a·b mod m without overflow, m ≤ 2^72.
fn mul(a: u128, b: u128, m: u128) -> u128 {
    (0..72).rev().fold(0, |acc, bit| {
        let doubled = (acc << 1) % m;
        if b >> bit & 1 == 1 {
            (doubled + a) % m
        } else {
            doubled
        }
    })
}

#[test]
fn products_squares_and_inner_products() {
    for (protocol, domain) in CASES {
        for n in [2, 3, 5] {
            let m = order(domain);
            for (a, b, products, squares, inner) in run(n, protocol, domain, |e| {
                let (a, b) = (e.random(300).unwrap(), e.random(300).unwrap());
                let product = e.mul(&a, &b).unwrap();
                let square = e.mul(&a, &a).unwrap();
                let inner = e.dot(&a, &b, 100).unwrap();
                (
                    open(e, &a),
                    open(e, &b),
                    open(e, &product),
                    open(e, &square),
                    open(e, &inner),
                )
            }) {
                for i in 0..300 {
                    assert_eq!(products[i], mul(a[i], b[i], m), "{protocol} {domain} {n}");
                    assert_eq!(squares[i], mul(a[i], a[i], m), "{protocol} {domain} {n}");
                }
                for (group, sum) in products.chunks(100).zip(inner) {
                    assert_eq!(group.iter().fold(0, |s, p| (s + p) % m), sum);
                }
            }
        }
    }
}

#[test]
fn bits_in_both_domains() {
    for (protocol, domain) in CASES {
        for n in [2, 3, 4] {
            for (bits, elements, random) in run(n, protocol, domain, |e| {
                let bits = e.random_bits(700).unwrap();
                let elements = e.bit_to_arith(&bits).unwrap();
                let random = e.random_bit(700).unwrap();
                let clear = e.open(&bits).unwrap();
                let clear = e.read_bits(&clear).unwrap();
                (clear, open(e, &elements), open(e, &random))
            }) {
                let want: Vec<u128> = bits.iter().map(|b| u128::from(*b)).collect();
                assert_eq!(elements, want, "{protocol} {domain} {n}");
                let ones: u128 = random.iter().sum();
                assert!(random.iter().all(|b| *b < 2) && (200..500).contains(&ones));
            }
        }
    }
}

#[test]
fn ands() {
    for n in [2, 3, 4] {
        for (protocol, domain) in [
            ("semi-bin", DomainKind::Bits),
            ("semi2k", DomainKind::Z2k(64)),
        ] {
            for (a, b, c) in run(n, protocol, domain, |e| {
                let (a, b) = (e.random_bits(1000).unwrap(), e.random_bits(1000).unwrap());
                let c = e.and(&a, &b).unwrap();
                let read = |e: &mut dyn Engine, v| {
                    let opened = e.open(v).unwrap();
                    e.read_bits(&opened).unwrap()
                };
                (read(e, &a), read(e, &b), read(e, &c))
            }) {
                let want: Vec<u8> = a.iter().zip(&b).map(|(a, b)| a & b).collect();
                assert_eq!(c, want);
            }
        }
    }
}

/// Online: two elements a product and peer, one a square; offline: a triple of two parties modulo 2^64 costs the bits of
/// 64 random OTs (31 rows of 32 each) and 64 + 63 + … + 1 bits of payload, each way.
#[test]
fn costs() {
    let stats: Vec<EngineStats> = run(2, "semi2k", DomainKind::Z2k(64), |e| {
        let (a, b) = (e.random(128).unwrap(), e.random(128).unwrap());
        e.mul(&a, &b).unwrap();
        e.flush().unwrap();
        let first = e.stats();
        assert_eq!(first.rounds - first.offline_rounds, 1);
        assert_eq!(first.bytes_sent - first.offline_bytes_sent, 128 * 16);
        e.mul(&a, &a).unwrap();
        e.flush().unwrap();
        let second = e.stats();
        let online = |s: EngineStats| s.bytes_sent - s.offline_bytes_sent;
        assert_eq!(online(second) - online(first), 128 * 8);
        for material in e.material() {
            let want = if matches!(material.name, "triples" | "squares") {
                128
            } else {
                0
            };
            assert_eq!(
                (material.made, material.used),
                (want, want),
                "{}",
                material.name
            );
        }
        first
    });
    for s in stats {
        assert_eq!(s.offline_rounds, 2);
        assert_eq!(s.offline_bytes_sent, 128 * (64 * 31 / 8 + 260));
        assert_eq!(s.offline_bytes_received, s.offline_bytes_sent);
    }
}

#[test]
fn engines_of_a_session_share_the_set_up() {
    let threads: Vec<_> = local_mesh(3, Duration::from_secs(60))
        .into_iter()
        .map(|transport| {
            thread::spawn(move || {
                let session = Session::new(Box::new(transport)).unwrap();
                let mut sent = Vec::new();
                let mut opened = Vec::new();
                for domain in [DomainKind::Z2k(64), DomainKind::Z2k(64)] {
                    let before = session.stats().unwrap().bytes_sent;
                    let mut e = session
                        .engine("semi2k", domain, &EngineOptions::default())
                        .unwrap();
                    sent.push(session.stats().unwrap().bytes_sent - before);
                    let bits = e.random_bit(64).unwrap();
                    opened.push(open(e.as_mut(), &bits));
                }
                assert_ne!(opened[0], opened[1]);
                sent
            })
        })
        .collect();
    for thread in threads {
        let sent = thread.join().unwrap();
        assert!(sent[0] > 20_000 && sent[1] < 1000, "{sent:?}");
    }
}

#[test]
fn wrong_domains_are_refused() {
    for (protocol, domain, cure) in [
        ("semi2k", DomainKind::Fq(Q), "take semi,"),
        ("semi", DomainKind::Z2k(64), "take semi2k,"),
        ("semi-bin", DomainKind::Z2k(64), "take semi2k or semi"),
    ] {
        let threads: Vec<_> = local_mesh(2, Duration::from_secs(20))
            .into_iter()
            .map(|transport| {
                thread::spawn(move || {
                    let session = Session::new(Box::new(transport)).unwrap();
                    let error = session
                        .engine(protocol, domain, &EngineOptions::default())
                        .map(|_| ())
                        .unwrap_err();
                    assert!(error.to_string().contains(cure), "{error}");
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    }
}
