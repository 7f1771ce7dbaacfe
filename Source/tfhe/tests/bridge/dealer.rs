//! A dealer in clear text: secrets, the three key files, encryption and phases. It follows `docs/pages/formats.md`.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use keyquorum_tfhe::{KeyFile, KeyFolder, Kind, LWE_DIMENSION, LweFile, MESSAGE_SHIFT, server_key};
use tfhe::ServerKey;

use crate::stream::Stream;

pub const KEY_ID: &str = "00112233445566778899aabbccddeeff";
const SHORT: usize = 918;
const RING: usize = LWE_DIMENSION;

pub struct Dealer {
    /// Short secret: 918 bits.
    pub short: Vec<u64>,
    /// Coefficients of the ring secret: 2048 bits.
    pub ring: Vec<u64>,
}

/// out += a s modulo X^N + 1, s binary.
fn add_product(out: &mut [u64], a: &[u64], s: &[u64]) {
    for (j, _) in s.iter().enumerate().filter(|(_, bit)| **bit == 1) {
        let (low, high) = a.split_at(RING - j);
        for (o, x) in out[j..].iter_mut().zip(low) {
            *o = o.wrapping_add(*x);
        }
        for (o, x) in out[..j].iter_mut().zip(high) {
            *o = o.wrapping_sub(*x);
        }
    }
}

fn inner(a: &[u64], s: &[u64]) -> u64 {
    a.iter()
        .zip(s)
        .fold(0, |sum, (a, s)| sum.wrapping_add(a.wrapping_mul(*s)))
}

impl Dealer {
    pub fn new(seed: u8) -> Self {
        let mut stream = Stream::new([seed; 16]);
        let mut bits = |count| {
            stream
                .words(count)
                .into_iter()
                .map(|word| word >> 63)
                .collect()
        };
        Self {
            short: bits(SHORT),
            ring: bits(RING),
        }
    }

    fn bootstrapping(&self, seed: [u8; 16], noise: &mut Stream) -> Vec<u64> {
        let mut masks = Stream::new(seed);
        let mut bodies = Vec::new();
        let weight = 1_u64 << (64 - 23);
        for s in &self.short {
            for row in 0..2 {
                let mask = masks.words(RING);
                let mut body: Vec<u64> = (0..RING).map(|_| noise.tuniform(17)).collect();
                add_product(&mut body, &mask, &self.ring);
                if row == 0 {
                    for (b, z) in body.iter_mut().zip(&self.ring) {
                        *b = b.wrapping_sub(weight * s * z);
                    }
                } else {
                    body[0] = body[0].wrapping_add(weight * s);
                }
                bodies.append(&mut body);
            }
        }
        bodies
    }

    fn key_switching(&self, seed: [u8; 16], noise: &mut Stream) -> Vec<u64> {
        let mut masks = Stream::new(seed);
        let mut bodies = Vec::new();
        for z in &self.ring {
            for level in (1..=4).rev() {
                let plain = z << (64 - 4 * level);
                let sum = inner(&masks.words(SHORT), &self.short);
                bodies.push(sum.wrapping_add(plain).wrapping_add(noise.tuniform(45)));
            }
        }
        bodies
    }

    fn compact(&self, seed: [u8; 16], noise: &mut Stream) -> Vec<u64> {
        let mut body: Vec<u64> = (0..RING).map(|_| noise.tuniform(17)).collect();
        let reversed: Vec<u64> = self.ring.iter().rev().copied().collect();
        add_product(&mut body, &Stream::new(seed).words(RING), &reversed);
        body
    }

    pub fn key_file(&self, kind: Kind) -> KeyFile {
        let seed = [kind as u8 + 1; 16];
        let noise = &mut Stream::new([kind as u8 + 101; 16]);
        let bodies = match kind {
            Kind::Bootstrapping => self.bootstrapping(seed, noise),
            Kind::KeySwitching => self.key_switching(seed, noise),
            Kind::Compact => self.compact(seed, noise),
        };
        KeyFile {
            path: PathBuf::from(kind.file_name()),
            kind,
            key_id: KEY_ID.into(),
            seed,
            bodies,
        }
    }

    pub fn write(&self, folder: &Path) {
        std::fs::create_dir_all(folder).unwrap();
        for kind in Kind::ALL {
            std::fs::write(
                folder.join(kind.file_name()),
                self.key_file(kind).to_bytes().unwrap(),
            )
            .unwrap();
        }
    }

    /// Fresh LWE ciphertexts of the values.
    pub fn encrypt(&self, values: &[u64], seed: u8) -> LweFile {
        let mut stream = Stream::new([seed; 16]);
        let mut file = LweFile {
            key_id: KEY_ID.into(),
            noise_bits: None,
            types: vec![],
            a: vec![],
            b: vec![],
        };
        for value in values {
            let mask = stream.words(RING);
            let noise = stream.tuniform(17);
            file.b.push(
                inner(&mask, &self.ring)
                    .wrapping_add(value << MESSAGE_SHIFT)
                    .wrapping_add(noise),
            );
            file.a.extend(mask);
        }
        file
    }

    /// Value with carry and padding, and noise, of each ciphertext.
    pub fn decrypt(&self, file: &LweFile) -> Vec<(u64, i64)> {
        let phase = |(mask, body): (&[u64], &u64)| {
            let phase = body.wrapping_sub(inner(mask, &self.ring));
            let value = phase.wrapping_add(1 << (MESSAGE_SHIFT - 1)) >> MESSAGE_SHIFT;
            (value, phase.wrapping_sub(value << MESSAGE_SHIFT) as i64)
        };
        file.a.chunks(RING).zip(&file.b).map(phase).collect()
    }

    /// The integer whose blocks are `file`, modulo 2 to its width, after checks of padding and noise.
    pub fn integer(&self, file: &LweFile) -> u64 {
        let blocks = self.decrypt(file);
        // 2^53 is 13 deviations of a bootstrapped block.
        assert!(
            blocks
                .iter()
                .all(|(value, noise)| *value < 16 && noise.unsigned_abs() < 1 << 53)
        );
        let sum = blocks
            .iter()
            .enumerate()
            .fold(0_u64, |sum, (i, (m, _))| sum.wrapping_add(m << (2 * i)));
        if blocks.len() == 32 {
            sum
        } else {
            sum % (1 << (2 * blocks.len()))
        }
    }
}

/// The key of most tests: made once, since the dealer takes seconds.
pub struct World {
    pub dealer: Dealer,
    pub path: PathBuf,
    pub folder: KeyFolder,
    pub server: ServerKey,
}

pub fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let dealer = Dealer::new(7);
        let path = scratch("key");
        dealer.write(&path);
        let folder = KeyFolder::read(&path).unwrap();
        let server = server_key(&folder);
        World {
            dealer,
            path,
            folder,
            server,
        }
    })
}

/// An empty folder for one test.
pub fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if path.exists() {
        std::fs::remove_dir_all(&path).unwrap();
    }
    std::fs::create_dir_all(&path).unwrap();
    path
}
