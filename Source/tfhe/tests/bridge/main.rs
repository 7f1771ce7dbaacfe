//! The bridge against unmodified TFHE-rs, with a dealer that makes keys in clear text.

mod command;
mod dealer;
mod keys;
mod lwe;
mod masks;
mod refusals;
mod stream;
