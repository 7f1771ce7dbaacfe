//! Rates of the OT extension on one core, both ends in one thread after each other: `cargo run --release -p keyquorum-ot --example bench_ot`.
//!
//! Each row: parameter k, what is made, nanoseconds of CPU an item at either end, bytes from receiver to sender and back. All rows
//! are bound by the CPU: AES (2^k/k blocks an OT and end, and the hash: 2 blocks at the sender, 1 at the receiver), then
//! the transposition.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use keyquorum_math::Zq;
use keyquorum_ot::extension::Choices;
use keyquorum_ot::product::{self, Operand, Payload};
use keyquorum_ot::{
    BaseOt, Field, Inbound, LinkKey, MacKey, Outbound, Parameters, PowerOfTwo, Receiver,
    ReceiverLink, Security, Sender, SenderLink, bits,
};

/// Time that this thread had the CPU (Linux: other work on the machine does not count), or wall clock time elsewhere.
struct Timer {
    cpu: Option<f64>,
    wall: std::time::Instant,
}

impl Timer {
    fn cpu() -> Option<f64> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        Some(text.split(' ').next()?.parse::<f64>().ok()? / 1e9)
    }

    fn now() -> Self {
        Self {
            cpu: Self::cpu(),
            wall: std::time::Instant::now(),
        }
    }

    fn seconds(&self) -> f64 {
        match (self.cpu, Self::cpu()) {
            (Some(from), Some(to)) => to - from,
            _ => self.wall.elapsed().as_secs_f64(),
        }
    }
}

fn link(k: usize) -> (Arc<ReceiverLink>, Arc<SenderLink>) {
    link_of(Parameters::new(k).unwrap())
}

fn link_of(parameters: Parameters) -> (Arc<ReceiverLink>, Arc<SenderLink>) {
    let (inbound, point) = Inbound::start(parameters).unwrap();
    let (outbound, points) =
        Outbound::start(parameters, b"bench", LinkKey::random(None).unwrap()).unwrap();
    let (receiver, prfs) = inbound.finish(b"bench", &points).unwrap();
    let sender = outbound.finish(b"bench", &point, &prfs).unwrap();
    (Arc::new(receiver), Arc::new(sender))
}

fn row(k: usize, what: &str, n: usize, receiver: f64, sender: f64, forth: usize, back: usize) {
    println!(
        "k={k} {what:24} receiver {:8.2} ns, sender {:8.2} ns, {:7.2} B forth, {:7.2} B back",
        receiver / n as f64 * 1e9,
        sender / n as f64 * 1e9,
        forth as f64 / n as f64,
        back as f64 / n as f64
    );
}

fn products<P: Payload>(
    k: usize,
    what: &str,
    payload: &P,
    n: usize,
    count: u32,
    links: &(Arc<ReceiverLink>, Arc<SenderLink>),
) {
    let mut receiver = Receiver::new(Arc::clone(&links.0), 2, Security::SemiHonest);
    let mut sender = Sender::new(Arc::clone(&links.1), 2, Security::SemiHonest);
    let x: Vec<P::Word> = vec![P::Word::default(); n];
    let (mut message, mut answer) = (Vec::new(), Vec::new());
    let start = Timer::now();
    let pending = product::receive(
        &mut receiver,
        payload,
        Operand::Words(&x),
        n,
        count,
        &mut message,
    )
    .unwrap();
    let first = start.seconds();
    let start = Timer::now();
    product::send(
        &mut sender,
        payload,
        &x,
        count,
        Choices::Given,
        &message,
        &mut answer,
    )
    .unwrap();
    let sent = start.seconds();
    let start = Timer::now();
    pending.finish(&answer).unwrap();
    let received = first + start.seconds();
    row(k, what, n, received, sent, message.len(), answer.len());
}

/// Set-up of one direction with keys of MACs: 224 base OTs.
fn set_up(base: BaseOt) {
    let parameters = Parameters::default().with_macs().with_base(base);
    let key = || LinkKey::random(Some(MacKey::random().unwrap())).unwrap();
    let mut times = [0.0; 2];
    let runs = 9;
    for _ in 0..runs {
        let start = Timer::now();
        let (inbound, first) = Inbound::start(parameters).unwrap();
        let here = start.seconds();
        let start = Timer::now();
        let (outbound, keys) = Outbound::start(parameters, b"bench", key()).unwrap();
        times[1] += start.seconds();
        let start = Timer::now();
        let (_, answer) = inbound.finish(b"bench", &keys).unwrap();
        times[0] += here + start.seconds();
        let start = Timer::now();
        outbound.finish(b"bench", &first, &answer).unwrap();
        times[1] += start.seconds();
    }
    println!(
        "base OT {}: {:.1} ms at the OT receiver, {:.1} ms at the OT sender; {} B to the OT receiver, {} B back",
        base.name(),
        times[0] * 1e3 / f64::from(runs),
        times[1] * 1e3 / f64::from(runs),
        parameters.outbound_bytes(),
        parameters.inbound_bytes() + parameters.answer_bytes(),
    );
}

fn main() {
    BaseOt::ALL.into_iter().for_each(set_up);
    for k in [2, 4, 8] {
        let start = Timer::now();
        let links = link(k);
        println!(
            "k={k} set-up of one direction, both ends: {:.1} ms",
            start.seconds() * 1e3
        );
        for security in [Security::SemiHonest, Security::Malicious] {
            let mut receiver = Receiver::new(Arc::clone(&links.0), 1, security);
            let mut sender = Sender::new(Arc::clone(&links.1), 1, security);
            let tiles = 1 << 9;
            let mut message = Vec::with_capacity(tiles * 8192);
            let (mut t, mut q) = (vec![0; 1024], vec![0; 1024]);
            let start = Timer::now();
            for _ in 0..tiles {
                receiver
                    .random(&mut [0; 8], Choices::Random, &mut message, &mut t)
                    .unwrap();
            }
            let received = start.seconds();
            let start = Timer::now();
            let bytes = 8 * Choices::Random.block_bytes(sender.parameters());
            let mut other = vec![0; 1024];
            for part in message.chunks(bytes) {
                sender
                    .random(Choices::Random, part, &mut q, &mut other)
                    .unwrap();
            }
            let sent = start.seconds();
            row(
                k,
                &format!("random OT, {security:?}"),
                1024 * tiles,
                received,
                sent,
                message.len(),
                0,
            );
        }
        let mut receiver = Receiver::new(Arc::clone(&links.0), 3, Security::Malicious);
        let mut sender = Sender::new(Arc::clone(&links.1), 3, Security::Malicious);
        let choices = vec![1u128; 1 << 12];
        let mut message = Vec::new();
        let start = Timer::now();
        let ours = receiver.batch(&choices, &mut message).unwrap();
        let proof = ours.prove(&[1; 16]).unwrap();
        let received = start.seconds();
        let start = Timer::now();
        let theirs = sender.batch(choices.len(), &message).unwrap();
        sender.verify(&theirs, &[1; 16], &proof).unwrap();
        let sent = start.seconds();
        row(
            k,
            "checked rows, no hash",
            128 << 12,
            received,
            sent,
            message.len(),
            proof.len(),
        );

        let mut receiver = Receiver::new(Arc::clone(&links.0), 4, Security::SemiHonest);
        let mut sender = Sender::new(Arc::clone(&links.1), 4, Security::SemiHonest);
        let lanes = 1 << 13;
        let (mut message, mut a, mut b, mut c) =
            (Vec::new(), vec![0; lanes], vec![0; lanes], vec![0; lanes]);
        let start = Timer::now();
        bits::receive(&mut receiver, &mut a, Choices::Random, &mut message, &mut b).unwrap();
        let received = start.seconds();
        let start = Timer::now();
        bits::send(&mut sender, Choices::Random, &message, &mut a, &mut c).unwrap();
        let sent = start.seconds();
        row(
            k,
            "random OT of bits",
            64 * lanes,
            received,
            sent,
            message.len(),
            0,
        );
        products(
            k,
            "product mod 2^64",
            &PowerOfTwo::<u64>::new(64).unwrap(),
            1 << 13,
            64,
            &links,
        );
        products(
            k,
            "COT mod 2^63",
            &PowerOfTwo::<u64>::new(63).unwrap(),
            1 << 19,
            1,
            &links,
        );
        let field = Zq::new(1_152_921_504_606_584_833).unwrap();
        products(
            k,
            "product, 60-bit field",
            &Field::new(field),
            1 << 13,
            60,
            &links,
        );
    }
}
