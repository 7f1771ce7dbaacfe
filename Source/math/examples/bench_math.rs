//! Times the hot operations: `cargo run --release -p keyquorum-math --example bench_math`.
//!
//! Each line is the fastest of several runs on one thread. The vectors of the arithmetic lines fit
//! the first-level cache unless the line says otherwise.

use std::hint::black_box;
use std::time::Instant;

use keyquorum_math::{BitLanes, Domain, NttTables, Prg, Z2k64, Z2k128, Zq, bits};

type Failure = Box<dyn std::error::Error>;

/// A 60-bit prime that is 1 modulo 65536.
const PRIME_60: u64 = 1_152_921_504_606_584_833;
/// Of the multi-key sets, with 54 bits and with 49.
const PRIME_54: u64 = 18_014_336_227_311_617;
const PRIME_49: u64 = 562_913_445_511_169;
/// Of a CKKS set, 52 bits.
const PRIME_52: u64 = 4_503_599_626_682_369;
/// Of `bfv-4096`.
const PRIME_36: u64 = 68_719_403_009;
/// A 45-bit prime that is 1 modulo 32768.
const PRIME_45: u64 = 35_184_358_850_561;
const MERSENNE: u64 = (1 << 61) - 1;
/// A prime that is 3 modulo 4 and of no special form.
const PRIME_3_MOD_4: u64 = (1 << 60) - 93;

/// The fastest time of `f`, in nanoseconds.
fn fastest(mut f: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    let begin = Instant::now();
    while begin.elapsed().as_millis() < 200 {
        let start = Instant::now();
        f();
        best = best.min(start.elapsed().as_secs_f64() * 1e9);
    }
    best
}

/// Times `f`, which handles `items` items, and prints the time of one.
fn per_item(name: &str, items: usize, f: impl FnMut()) {
    println!("{name:<44} {:>10.3} ns", fastest(f) / items as f64);
}

/// Times `f`, which handles `bytes` bytes, and prints the throughput.
fn throughput(name: &str, bytes: usize, f: impl FnMut()) {
    println!("{name:<44} {:>10.2} GB/s", bytes as f64 / fastest(f));
}

fn domain_lines<D: Domain>(domain: &D, prg: &mut Prg) -> Result<(), Failure> {
    let name = domain.kind();
    let n = 1024;
    let mut a = vec![domain.zero(); n];
    let mut b = a.clone();
    let mut c = a.clone();
    domain.random(prg, &mut a);
    domain.random(prg, &mut b);
    domain.random(prg, &mut c);
    let line = |operation: &str| format!("{name} {operation}");
    per_item(&line("add_assign"), n, || {
        domain.add_assign(black_box(&mut a), &b)
    });
    per_item(&line("mul_assign"), n, || {
        domain.mul_assign(black_box(&mut a), &b)
    });
    let s = b.first().copied().unwrap_or_default();
    per_item(&line("mul_scalar_assign"), n, || {
        domain.mul_scalar_assign(black_box(&mut a), s)
    });
    per_item(&line("mul_acc"), n, || {
        domain.mul_acc(black_box(&mut c), &a, &b)
    });
    per_item(&line("sum"), n, || {
        black_box(domain.sum(black_box(&a)));
    });
    per_item(&line("dot"), n, || {
        black_box(domain.dot(black_box(&a), &b));
    });
    per_item(&line("random"), n, || domain.random(prg, black_box(&mut a)));
    let mut wire = Vec::with_capacity(domain.wire_bytes(n));
    per_item(&line("encode"), n, || {
        wire.clear();
        domain.encode(black_box(&a), &mut wire);
    });
    domain.decode(&wire, &mut c)?;
    per_item(&line("decode"), n, || {
        let _ = domain.decode(black_box(&wire), &mut c);
    });
    Ok(())
}

fn field_lines(q: u64, prg: &mut Prg) -> Result<(), Failure> {
    let field = Zq::new(q)?;
    let mut squares = vec![0; 4096];
    field.random(prg, &mut squares);
    let copy = squares.clone();
    field.mul_assign(&mut squares, &copy);
    per_item(&format!("F_{q} inv_sqrt_batch"), squares.len(), || {
        black_box(field.inv_sqrt_batch(black_box(&squares)));
    });
    per_item(&format!("F_{q} batch_invert"), squares.len(), || {
        black_box(field.batch_invert(black_box(&squares)));
    });
    per_item(&format!("F_{q} invert"), 1, || {
        black_box(field.invert(black_box(12345)));
    });
    per_item(&format!("F_{q} new"), 1, || {
        black_box(Zq::new(black_box(q)).is_ok());
    });
    Ok(())
}

fn ntt_lines(q: u64, n: usize, prg: &mut Prg) -> Result<(), Failure> {
    let tables = NttTables::new(q, n)?;
    // At the start of a line of the cache, as the allocator of the engine places long vectors.
    let mut memory = vec![0; n + 8];
    let first = memory.as_ptr().align_offset(64);
    let a = memory
        .get_mut(first..first + n)
        .ok_or("too little memory")?;
    Zq::new(q)?.random(prg, a);
    let line = |what: &str| format!("{what} {} q={q} n={n}", tables.implementation());
    println!(
        "{:<60} {:>10.1} us",
        line("ntt forward"),
        fastest(|| {
            let _ = tables.forward(black_box(&mut *a));
        }) / 1e3
    );
    println!(
        "{:<60} {:>10.1} us",
        line("ntt inverse"),
        fastest(|| {
            let _ = tables.inverse(black_box(&mut *a));
        }) / 1e3
    );
    Ok(())
}

fn main() -> Result<(), Failure> {
    let mut prg = Prg::new([7; 16], 0);
    domain_lines(&Zq::new(PRIME_60)?, &mut prg)?;
    domain_lines(&Zq::new(PRIME_45)?, &mut prg)?;
    domain_lines(&Zq::new(MERSENNE)?, &mut prg)?;
    domain_lines(&Z2k64::new(64)?, &mut prg)?;
    domain_lines(&Z2k64::new(60)?, &mut prg)?;
    domain_lines(&Z2k128::new(104)?, &mut prg)?;
    domain_lines(&BitLanes, &mut prg)?;
    field_lines(MERSENNE, &mut prg)?;
    field_lines(PRIME_3_MOD_4, &mut prg)?;
    field_lines(PRIME_60, &mut prg)?;
    ntt_lines(PRIME_60, 16384, &mut prg)?;
    ntt_lines(PRIME_60, 8192, &mut prg)?;
    ntt_lines(PRIME_54, 16384, &mut prg)?;
    ntt_lines(PRIME_52, 16384, &mut prg)?;
    ntt_lines(PRIME_49, 16384, &mut prg)?;
    ntt_lines(PRIME_45, 16384, &mut prg)?;
    ntt_lines(PRIME_45, 2048, &mut prg)?;
    ntt_lines(PRIME_36, 4096, &mut prg)?;

    let mut bytes = vec![0u8; 1 << 16];
    throughput("prg fill, 64 KiB", bytes.len(), || {
        prg.fill(black_box(&mut bytes))
    });
    let mut words = vec![0u64; 1 << 13];
    throughput("prg fill_u64, 64 KiB", 8 * words.len(), || {
        prg.fill_u64(black_box(&mut words))
    });
    per_item("prg new and 16 bytes", 1, || {
        black_box(Prg::new(black_box([3; 16]), 1).next_seed());
    });
    let packed = bits::pack(&bytes);
    per_item("bits pack", bytes.len(), || {
        black_box(bits::pack(black_box(&bytes)));
    });
    let planes = bits::planes(&words, 64);
    per_item("bits planes, 64 bits of a word", words.len(), || {
        black_box(bits::planes(black_box(&words), 64));
    });
    per_item("bits planes, lowest bit of a word", words.len(), || {
        black_box(bits::planes(black_box(&words), 1));
    });
    per_item("bits from_planes, 64 bits of a word", words.len(), || {
        let _ = black_box(bits::from_planes::<u64, _>(black_box(&planes), words.len()));
    });
    per_item("bits unpack", bytes.len(), || {
        let _ = black_box(bits::unpack(black_box(&packed), bytes.len()));
    });
    Ok(())
}
