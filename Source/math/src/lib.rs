//! The arithmetic of KeyQuorum: domains, the negacyclic NTT, transforms modulo cyclotomic polynomials, products modulo X^n + 1, bit
//! packing and the pseudorandom generator. No I/O, no protocols.
//!
//! A *domain* is the ring that shares live in: [`BitLanes`] (64 bits a lane), [`Z2k64`] and
//! [`Z2k128`] (integers modulo a power of two), [`Zq`] and [`Zq128`] (prime fields). All of them implement
//! [`Domain`], whose operations work on whole vectors of canonical elements.
//!
//! No operation on elements branches on their values or uses them as an index, except where its
//! documentation says so.

pub mod bits;
mod codec;
mod cyclotomic;
mod domain;
#[cfg(target_arch = "x86_64")]
mod doubles;
pub mod fhew;
mod lanes;
mod mask;
mod modular;
mod negacyclic;
pub mod ntt;
mod prg;
mod selected;
mod table;
mod wide;
mod word;
mod z2k;
mod zq;
mod zq128;

pub use cyclotomic::{CyclotomicError, CyclotomicTables};
pub use domain::{DecodeError, Domain, DomainError, DomainKind, InternalError, ParseDomainError};
pub use lanes::BitLanes;
pub use mask::{mask_of, masks_of};
pub use negacyclic::{Negacyclic, Transformed, TransformedWide};
pub use ntt::{NttError, NttTables, automorphism, automorphism_ntt};
pub use prg::{EntropyError, Prg, expand_aes_ctr, expand_uniform, expanded_products, os_random};
pub use selected::selected_words;
pub use table::{SymmetricTable, TableError};
pub use wide::ROW;
pub use word::{Element, wipe};
pub use z2k::{Z2k64, Z2k128};
pub use zq::{Zq, is_prime};
pub use zq128::Zq128;
