//! Evaluation of FHEW-like ciphertexts modulo a prime q that has a transform: key switching, blind rotation, extraction, and encryption under an LWE
//! public key.
//!
//! An LWE ciphertext (a, b) under s has the phase b - <a, s>, and a ring ciphertext (a, b) under z the phase b - a z in Z_q[X]/(X^N + 1). Ring
//! ciphertexts of keys are in NTT form. Everything but the random choices of an encryption is public: times depend on ciphertexts.
//!
//! Paper: Ducas, Micciancio: FHEW (Eurocrypt 2015); Chillotti, Gama, Georgieva, Izabachène: TFHE (J. Cryptology 33, 2020), section 4.

mod gadget;
mod rotation;

use zeroize::Zeroize;

use crate::domain::{Domain, DomainError};
use crate::mask::mask_of;
use crate::ntt::{NttError, NttTables};
use crate::prg::{Prg, expand_uniform};
use crate::zq::Zq;

pub use gadget::Gadget;

/// Rows of a key of which the masks exist at a time.
const ROWS: usize = 64;

/// Parameters or arrays that the evaluation cannot work with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FhewError {
    /// The modulus is no prime that the field arithmetic takes.
    #[error(transparent)]
    Modulus(#[from] DomainError),
    /// The ring has no transform.
    #[error(transparent)]
    Ntt(#[from] NttError),
    /// The gadget does not fit the modulus.
    #[error(
        "{levels} digits of {base_log} bits do not fit a modulus of {bits} bits: choose at least one digit of 1 to 16 bits, and a modulus of at most 60 bits that they fit"
    )]
    Gadget {
        /// Bits of a digit.
        base_log: u32,
        /// Number of digits.
        levels: u32,
        /// Bits of the modulus.
        bits: u32,
    },
    /// An array has another length than the parameters say.
    #[error("{what}: {found} words, not {expected}")]
    Length {
        /// The array.
        what: &'static str,
        /// Its words.
        found: usize,
        /// The words that it should have.
        expected: usize,
    },
    /// A residue is not below the modulus.
    #[error("{what} has a word that is not below the modulus")]
    Residue {
        /// The array.
        what: &'static str,
    },
}

/// A seeded key: the masks of its rows follow from a public seed ([`expand_uniform`]), one row after another; the bodies are stored.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// Seed of the masks.
    pub seed: [u8; 16],
    /// The bodies, residues modulo q.
    pub bodies: &'a [u64],
}

/// The evaluation for one modulus, ring degree, dimension and gadgets.
///
/// The bootstrapping key has, for each of the `dimension` bits of s, for each digit j, row 0 (an encryption of -g_j s_i z) and row 1 (of g_j s_i),
/// N words each. The key-switching key has, for each of the N coefficients of z, for each digit j, an LWE encryption of g_j z_i under s.
#[derive(Clone, Debug)]
pub struct Fhew {
    field: Zq,
    tables: NttTables,
    dimension: usize,
    rotating: Gadget,
    switching: Gadget,
}

impl Fhew {
    /// `degree`: N; `dimension`: of s; `rotating`, `switching`: bits of a digit and number of digits of the two keys.
    ///
    /// # Errors
    ///
    /// [`FhewError`] for a modulus without transforms of this degree, or digits that do not fit it.
    pub fn new(
        q: u64,
        degree: usize,
        dimension: usize,
        rotating: (u32, u32),
        switching: (u32, u32),
    ) -> Result<Self, FhewError> {
        let field = Zq::new(q)?;
        let (base_log, levels) = switching;
        let bits = field.bits();
        if base_log.saturating_add(bits) > 62 {
            return Err(FhewError::Gadget {
                base_log,
                levels,
                bits,
            });
        }
        Ok(Self {
            field,
            tables: NttTables::new(q, degree)?,
            dimension,
            rotating: Gadget::new(q, rotating.0, rotating.1)?,
            switching: Gadget::new(q, base_log, levels)?,
        })
    }

    fn q(&self) -> u64 {
        self.field.modulus()
    }

    fn degree(&self) -> usize {
        self.tables.degree()
    }

    /// Refuses an array of another length, or with words that are no residues.
    fn check(&self, what: &'static str, found: &[u64], expected: usize) -> Result<(), FhewError> {
        if found.len() != expected {
            return Err(FhewError::Length {
                what,
                found: found.len(),
                expected,
            });
        }
        if found.iter().any(|x| *x >= self.q()) {
            return Err(FhewError::Residue { what });
        }
        Ok(())
    }

    /// Switches LWE ciphertexts under the coefficients of z to LWE ciphertexts under s: a `[count, N]`, b `[count]` to a `[count, dimension]`, b.
    ///
    /// # Errors
    ///
    /// [`FhewError`] for arrays of other lengths, or with words that are no residues.
    pub fn switch(
        &self,
        key: Rows<'_>,
        a: &[u64],
        b: &[u64],
    ) -> Result<(Vec<u64>, Vec<u64>), FhewError> {
        let (n, levels, q) = (self.dimension, self.switching.levels(), self.q());
        self.check("key-switching key", key.bodies, self.degree() * levels)?;
        self.check("masks of ciphertexts", a, b.len() * self.degree())?;
        self.check("bodies of ciphertexts", b, b.len())?;
        // digits of all ciphertexts, row after row of the key
        let mut digits = vec![0i64; b.len() * self.degree() * levels];
        for (x, row) in a.iter().zip(digits.chunks_exact_mut(levels)) {
            self.switching.digits(*x, row);
        }
        let per_ciphertext = self.degree() * levels;
        let mut sums = vec![0i64; b.len() * (n + 1)];
        // a digit times a residue, this many times, is below 2^63
        let room = 1usize << (62 - self.field.bits() - self.switching.base_log()).min(20);
        let mut since = 0;
        let mut first = 0u64;
        for (block, bodies) in key.bodies.chunks(ROWS).enumerate() {
            let masks = expand_uniform(key.seed, first, bodies.len() * n, q);
            first += (bodies.len() * n) as u64;
            for (row, (mask, body)) in masks.chunks_exact(n).zip(bodies).enumerate() {
                let all = digits.chunks_exact(per_ciphertext);
                for (sum, digits) in sums.chunks_exact_mut(n + 1).zip(all) {
                    let Some(digit) = digits.get(block * ROWS + row) else {
                        continue;
                    };
                    if *digit != 0 {
                        for (total, x) in sum.iter_mut().zip(mask.iter().chain([body])) {
                            *total -= digit * *x as i64;
                        }
                    }
                }
                since += 1;
                if since == room {
                    since = 0;
                    for total in &mut sums {
                        *total = total.rem_euclid(q as i64);
                    }
                }
            }
        }
        let residue = |total: &i64| total.rem_euclid(q as i64) as u64;
        let mut switched = (Vec::with_capacity(b.len() * n), Vec::with_capacity(b.len()));
        for (sum, body) in sums.chunks_exact(n + 1).zip(b) {
            switched.0.extend(sum.iter().take(n).map(residue));
            let last = sum.last().map_or(0, residue);
            switched.1.push(self.field.add(*body, last));
        }
        Ok(switched)
    }

    /// Encrypts residues under an LWE public key, whose rows are encryptions of zero of dimension `width`: each is added to the sum of a random subset
    /// of the rows. Returns a `[messages, width]` and b. Time and addresses do not depend on the subset.
    ///
    /// # Errors
    ///
    /// [`FhewError`] for words that are no residues.
    pub fn encrypt(
        &self,
        key: Rows<'_>,
        width: usize,
        messages: &[u64],
        prg: &mut Prg,
    ) -> Result<(Vec<u64>, Vec<u64>), FhewError> {
        let q = self.q();
        self.check("public key", key.bodies, key.bodies.len())?;
        self.check("messages", messages, messages.len())?;
        let mut sums = vec![0u64; messages.len() * (width + 1)];
        let mut choices = vec![0u64; messages.len()];
        let room = 1usize << (63 - self.field.bits()).min(20);
        let mut since = 0;
        let mut first = 0u64;
        for bodies in key.bodies.chunks(ROWS) {
            let masks = expand_uniform(key.seed, first, bodies.len() * width, q);
            first += (bodies.len() * width) as u64;
            prg.fill_u64(&mut choices);
            for (mask, body) in masks.chunks_exact(width).zip(bodies) {
                for (sum, choice) in sums.chunks_exact_mut(width + 1).zip(&mut choices) {
                    let chosen = mask_of(*choice);
                    *choice >>= 1;
                    for (total, x) in sum.iter_mut().zip(mask.iter().chain([body])) {
                        *total += x & chosen;
                    }
                }
                since += 1;
                if since == room {
                    since = 0;
                    for total in &mut sums {
                        *total = self.field.reduce_word(*total);
                    }
                }
            }
        }
        choices.zeroize();
        let mut made = (
            Vec::with_capacity(messages.len() * width),
            Vec::with_capacity(messages.len()),
        );
        for (sum, message) in sums.chunks_exact(width + 1).zip(messages) {
            made.0
                .extend(sum.iter().take(width).map(|x| self.field.reduce_word(*x)));
            let body = self.field.reduce_word(sum.last().copied().unwrap_or(0));
            made.1.push(self.field.add(body, *message));
        }
        Ok(made)
    }
}
