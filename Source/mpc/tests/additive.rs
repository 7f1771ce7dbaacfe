//! The additive protocols: products, squares, bits and conversions for 2 to 5 parties, and what they cost.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

use std::thread;
use std::time::Duration;

use keyquorum_math::DomainKind;
use keyquorum_mpc::{Engine, EngineOptions, EngineStats, Handle, Openings, Session};
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
    run_with(n, Openings::Direct, protocol, domain, body)
}

fn run_with<T: Send + 'static>(
    n: usize,
    openings: Openings,
    protocol: &'static str,
    domain: DomainKind,
    body: impl Fn(&mut dyn Engine) -> T + Clone + Send + 'static,
) -> Vec<T> {
    sessions(n, move |session| {
        session.set_openings(openings).unwrap();
        let mut engine = session
            .engine(protocol, domain, &EngineOptions::default())
            .unwrap();
        body(engine.as_mut())
    })
}

fn sessions<T: Send + 'static>(
    n: usize,
    body: impl Fn(Session) -> T + Clone + Send + 'static,
) -> Vec<T> {
    let threads: Vec<_> = local_mesh(n, Duration::from_secs(60))
        .into_iter()
        .map(|transport| {
            let body = body.clone();
            thread::spawn(move || body(Session::new(Box::new(transport)).unwrap()))
        })
        .collect();
    threads.into_iter().map(|t| t.join().unwrap()).collect()
}

fn order(domain: DomainKind) -> u128 {
    match domain {
        DomainKind::Z2k(k) => 1 << k,
        DomainKind::Fq(q) => u128::from(q),
        DomainKind::WideFq(q) => q,
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
        for items in e.preprocessed() {
            let want = if matches!(items.name, "triples" | "squares") {
                128
            } else {
                0
            };
            assert_eq!((items.made, items.used), (want, want), "{}", items.name);
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
        ("semi-bin", DomainKind::Z2k(64), "take semi2k"),
        ("semi-bin", DomainKind::Fq(Q), "take semi"),
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

/// What an engine makes of `size` given elements and as many given bits: the elements, products, squares and an inner product.
fn king_elements(e: &mut dyn Engine, size: usize) -> Vec<Vec<u128>> {
    let me = e.party().0;
    let count = i64::try_from(size).unwrap();
    let given = |owner, factor: i64| {
        (me == owner).then(|| (0..count).map(|i| i * factor - 77).collect::<Vec<_>>())
    };
    let (first, second) = (given(0, 1_234_567_891), given(1, -987_654_321));
    let a = e.input(0, size, first.as_deref()).unwrap();
    let b = e.input(1, size, second.as_deref()).unwrap();
    let made = [
        e.mul(&a, &b).unwrap(),
        e.mul(&a, &a).unwrap(),
        e.dot(&a, &b, size).unwrap(),
        a,
        b,
    ];
    made.iter().map(|v| open(e, v)).collect()
}

/// The same of bits: their ands, and where there is arithmetic their conversion.
fn king_bits(e: &mut dyn Engine, size: usize) -> (Vec<Vec<u8>>, Vec<u128>) {
    let me = e.party().0;
    let given = |owner, period: usize| {
        (me == owner).then(|| {
            (0..size)
                .map(|i| u8::from(i % period < 2))
                .collect::<Vec<_>>()
        })
    };
    let (first, second) = (given(0, 3), given(1, 5));
    let a = e.input_bits(0, size, first.as_deref()).unwrap();
    let b = e.input_bits(1, size, second.as_deref()).unwrap();
    let both = e.and(&a, &b).unwrap();
    let converted = if e.domain() == DomainKind::Bits {
        vec![]
    } else {
        let elements = e.bit_to_arith(&both).unwrap();
        open(e, &elements)
    };
    let opened = [a, b, both].map(|v| {
        let opened = e.open(&v).unwrap();
        e.read_bits(&opened).unwrap()
    });
    (opened.to_vec(), converted)
}

/// 300 elements have one king, 3100 products two or three: a part has at least 16 KiB.
#[test]
fn king_openings_give_the_same_elements() {
    for (protocol, domain) in [
        ("semi2k", DomainKind::Z2k(64)),
        ("semi2k", DomainKind::Z2k(41)),
        ("semi", DomainKind::Fq(Q)),
    ] {
        let m = order(domain);
        for (n, size) in [(2, 300), (3, 300), (5, 300), (5, 3100)] {
            let [direct, star] = [Openings::Direct, Openings::King].map(|openings| {
                run_with(n, openings, protocol, domain, move |e| {
                    king_elements(e, size)
                })
            });
            assert_eq!(direct, star, "{protocol} {domain} {n} {size}");
            for values in star {
                let [products, squares, inner, a, b] = values.try_into().unwrap();
                let sum = products.iter().fold(0, |s, p| (s + p) % m);
                assert_eq!(inner, [sum]);
                for i in 0..size {
                    assert_eq!(products[i], mul(a[i], b[i], m));
                    assert_eq!(squares[i], mul(a[i], a[i], m));
                }
            }
        }
    }
}

#[test]
fn king_openings_give_the_same_bits() {
    for (protocol, domain) in [
        ("semi-bin", DomainKind::Bits),
        ("semi2k", DomainKind::Z2k(64)),
        ("semi2k", DomainKind::Z2k(41)),
        ("semi", DomainKind::Fq(Q)),
    ] {
        for n in [2, 3, 5] {
            let size = 777;
            let [direct, star] = [Openings::Direct, Openings::King].map(|openings| {
                run_with(n, openings, protocol, domain, move |e| king_bits(e, size))
            });
            assert_eq!(direct, star, "{protocol} {domain} {n}");
            for (bits, converted) in star {
                let [a, b, both] = bits.try_into().unwrap();
                for i in 0..size {
                    assert_eq!((a[i], b[i]), (u8::from(i % 3 < 2), u8::from(i % 5 < 2)));
                    assert_eq!(both[i], a[i] & b[i]);
                }
                let want: Vec<u128> = both.iter().map(|b| u128::from(*b)).collect();
                assert!(domain == DomainKind::Bits || converted == want);
            }
        }
    }
}

/// Parts of bits end between words of 64.
#[test]
fn king_openings_of_long_vectors_of_bits() {
    for (n, size) in [(3, 300_001), (5, 700_003)] {
        let outcomes = run_with(n, Openings::King, "semi-bin", DomainKind::Bits, move |e| {
            let bits = (e.party().0 == 1)
                .then(|| (0..size).map(|i| u8::from(i % 7 < 3)).collect::<Vec<_>>());
            let shared = e.input_bits(1, size, bits.as_deref()).unwrap();
            let opened = e.open(&shared).unwrap();
            e.read_bits(&opened).unwrap()
        });
        for opened in outcomes {
            assert!((0..size).all(|i| opened[i] == u8::from(i % 7 < 3)));
            assert_eq!(opened.len(), size);
        }
    }
}

/// Rounds and bytes that a party sends online.
type Cost = (u64, u64);

/// The costs of opening `size` random elements, of as many products and of squares, which send two and one element each, at
/// every party.
fn king_costs(n: usize, openings: Openings, size: usize) -> Vec<[Cost; 3]> {
    run_with(n, openings, "semi2k", DomainKind::Z2k(64), move |e| {
        let online = |s: EngineStats| {
            (
                s.rounds - s.offline_rounds,
                s.bytes_sent - s.offline_bytes_sent,
            )
        };
        let (a, b) = (e.random(size).unwrap(), e.random(size).unwrap());
        let mut before = online(e.stats());
        [0, 1, 2].map(|which| {
            match which {
                0 => e.open(&a).unwrap(),
                1 => e.mul(&a, &b).unwrap(),
                _ => e.mul(&a, &a).unwrap(),
            };
            e.flush().unwrap();
            let now = online(e.stats());
            let cost = (now.0 - before.0, now.1 - before.1);
            before = now;
            cost
        })
    })
}

#[test]
fn king_openings_of_short_vectors_cost_one_message_a_round() {
    let size = 100;
    let (one, two) = (8 * 100, 16 * 100);
    for n in [3, 5] {
        let peers = n as u64 - 1;
        for cost in king_costs(n, Openings::Direct, size) {
            assert_eq!(cost, [(1, peers * one), (1, peers * two), (1, peers * one)]);
        }
        for (party, cost) in king_costs(n, Openings::King, size).into_iter().enumerate() {
            let each = if party == 0 { peers } else { 1 };
            assert_eq!(cost, [(2, each * one), (2, each * two), (2, each * one)]);
        }
    }
}

#[test]
fn king_openings_between_two_are_direct() {
    let costs = king_costs(2, Openings::King, 100);
    assert_eq!(costs, king_costs(2, Openings::Direct, 100));
    assert_eq!(costs[0], [(1, 800), (1, 1600), (1, 800)]);
}

/// A king receives its part from all others and sends them the sum: of c kings each sends the others' parts and n − 1 times
/// its own, everybody else the whole vector once.
#[test]
fn king_openings_of_long_vectors_have_a_king_for_each_part() {
    let bytes = |elements: u64| 8 * elements;
    // 4096 elements are 32 KiB, so two parts.
    for (n, size, kings) in [
        (3, 4095, 1),
        (3, 4096, 2),
        (5, 4100, 2),
        (3, 12000, 3),
        (5, 12000, 5),
    ] {
        let (whole, part) = (size as u64, size as u64 / kings);
        let costs = run_with(n, Openings::King, "semi2k", DomainKind::Z2k(64), move |e| {
            let a = e.random(size).unwrap();
            let opened = open(e, &a);
            let stats = e.stats();
            (opened, stats.rounds, stats.bytes_sent)
        });
        for (party, (opened, rounds, sent)) in costs.iter().enumerate() {
            assert_eq!((opened, *rounds), (&costs[0].0, 2));
            let own = if (party as u64) < kings { part } else { 0 };
            let want = bytes(whole - own) + (n as u64 - 1) * bytes(own);
            assert_eq!(*sent, want, "{n} {size} {party}");
        }
    }
}

#[test]
fn king_openings_at_some_parties_are_refused() {
    for error in sessions(3, |session| {
        if session.party() == 1 {
            session.set_openings(Openings::King).unwrap();
        }
        let engine = session.engine("semi2k", DomainKind::Z2k(64), &EngineOptions::default());
        engine.map(|_| ()).unwrap_err().to_string()
    }) {
        assert!(error.contains("another kind of openings"), "{error}");
        assert!(
            error.contains("\"star\"") && error.contains("\"direct\""),
            "{error}"
        );
    }
}

/// Party 3 of the session is party 0 of the group, and so its king.
#[test]
fn king_openings_are_inherited_by_a_group() {
    let members = [3, 0, 1];
    let outcomes = sessions(4, move |session| {
        session.set_openings(Openings::King).unwrap();
        if !members.contains(&session.party()) {
            return None;
        }
        let group = session.subgroup(&members).unwrap();
        let mut engine = group
            .engine("semi2k", DomainKind::Z2k(64), &EngineOptions::default())
            .unwrap();
        let a = engine.random(50).unwrap();
        let opened = open(engine.as_mut(), &a);
        let stats = engine.stats();
        Some((opened, stats.rounds, stats.bytes_sent))
    });
    let [Some(a), Some(b), None, Some(king)] = <[_; 4]>::try_from(outcomes).unwrap() else {
        panic!("who is a member?")
    };
    assert_eq!((&a.0, &b.0), (&king.0, &king.0));
    assert_eq!([(a.1, a.2), (b.1, b.2)], [(2, 400); 2]);
    assert_eq!((king.1, king.2), (2, 800));
}

/// Rounds and bytes of this party since `before`, which must be those of the round itself: no triples.
fn online(e: &mut dyn Engine, before: EngineStats) -> (u64, u64) {
    let now = e.stats();
    assert_eq!(now.offline_rounds, before.offline_rounds);
    (
        now.rounds - before.rounds,
        now.bytes_sent - before.bytes_sent,
    )
}

#[test]
fn products_of_bits_with_a_vector() {
    // Fewer bits than parties, a block of OTs and more, more than a tile of them.
    const SIZES: [(usize, usize); 4] = [(1, 1), (2, 7), (130, 3), (1100, 2)];
    for (k, shift) in [(64, 41), (64, 0), (41, 40), (72, 3), (1, 0)] {
        let (domain, m) = (DomainKind::Z2k(k), k - shift);
        for n in [2, 3, 5] {
            let runs = run(n, "semi2k", domain, move |e| {
                SIZES.map(|(count, length)| {
                    let (bits, v) = (e.random_bit(count).unwrap(), e.random(length).unwrap());
                    e.flush().unwrap();
                    let before = e.stats();
                    let products = e.bit_products(&bits, &v, shift).unwrap();
                    e.flush().unwrap();
                    let costs = online(e, before);
                    (open(e, &bits), open(e, &v), open(e, &products), costs)
                })
            });
            for (i, (count, length)) in SIZES.into_iter().enumerate() {
                let segments = (0..n).map(|s| (s + 1) * count / n - s * count / n);
                let vectors: usize = segments
                    .map(|s| (s * length * m as usize).div_ceil(8))
                    .sum();
                let bytes = (n - 1) * (512 * count.div_ceil(128) + vectors);
                for party in &runs {
                    let (bits, v, products, costs) = &party[i];
                    assert_eq!(*costs, (n as u64 + 1, bytes as u64), "{k} {shift} {n}");
                    assert_eq!(products.len(), count * length);
                    for (bit, row) in bits.iter().zip(products.chunks(length)) {
                        assert!(*bit < 2);
                        for (product, v) in row.iter().zip(v) {
                            let wanted = mul(bit << shift, *v, 1 << k);
                            assert_eq!(*product, wanted, "{k} {shift} {n} {count}");
                        }
                    }
                }
            }
        }
    }
}

/// Without the masks of honest pairs, summands of products of zeros would be zero: what any n - 1 parties know of them would not look uniform.
/// 46,080 words of 23 bits: a share of ones off by 0.005 is more than ten deviations.
#[test]
fn summands_of_products_of_bits_are_uniform() {
    for n in [2, 3] {
        let shares = run(n, "semi2k", DomainKind::Z2k(64), |e| {
            let zeros = vec![0; 1024];
            let owns = e.party().0 == 0;
            let bits = e.input(0, 45, owns.then_some(&zeros[..45])).unwrap();
            let v = e.input(0, 1024, owns.then_some(&zeros[..])).unwrap();
            let products = e.bit_products(&bits, &v, 41).unwrap();
            e.flush().unwrap();
            let words = e.export(&products).unwrap();
            let words = words.chunks_exact(8);
            words
                .map(|w| u64::from_le_bytes(w.try_into().unwrap()))
                .collect::<Vec<u64>>()
        });
        assert!((0..45 * 1024).all(|i| shares.iter().fold(0u64, |s, x| s.wrapping_add(x[i])) == 0));
        // Each summand, and with three parties each sum of two of them.
        for words in &shares {
            assert!(words.iter().all(|w| w.trailing_zeros() >= 41));
            let ones: u32 = words.iter().map(|w| w.count_ones()).sum();
            let rate = f64::from(ones) / (23.0 * words.len() as f64);
            assert!((rate - 0.5).abs() < 0.005, "{rate}");
            // Rows are masked by streams of their own.
            assert_ne!(words[..1024], words[1024..2048]);
        }
    }
}

#[test]
fn wrong_operands_of_products_of_bits_are_refused() {
    run(2, "semi2k", DomainKind::Z2k(64), |e| {
        let (bits, clear) = (e.random_bit(3).unwrap(), e.clear(&[1, 2]));
        let packed = e.random_bits(64).unwrap();
        assert!(e.bit_products(&bits, &clear, 0).is_err());
        assert!(e.bit_products(&clear, &bits, 0).is_err());
        assert!(e.bit_products(&packed, &bits, 0).is_err());
        let error = e.bit_products(&bits, &bits, 64).map(drop).unwrap_err();
        assert!(error.to_string().contains("weight below 2^64"), "{error}");
    });
    run(2, "semi", DomainKind::Fq(Q), |e| {
        let bits = e.random_bit(3).unwrap();
        let error = e.bit_products(&bits, &bits, 0).map(drop).unwrap_err();
        assert!(error.to_string().contains("modulo 2^k"), "{error}");
    });
}
