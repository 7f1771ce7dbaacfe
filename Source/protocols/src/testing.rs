//! For tests of sessions: sizes, and parties that leave something out on purpose. No release has this.

pub use crate::authenticated::binary::testing::add_bits;
pub use crate::authenticated::values::MASKS;
pub use crate::authenticated::verify::public;
pub use crate::shamir::MOST_DRAWS;
pub use crate::verified::ablated::{seeded, toss_elements};
pub use crate::verified::check::{SECURITY, elements, last_terms, repetitions, rounds, steps};
pub use crate::verified::packed::steps_of_bits;
pub use crate::verified::ring::rounds as rounds_in_ring;
pub use crate::verified::{Ablated, Gf64, Verifiable, Verified};
