//! The probability that anything goes wrong in the life of a key.

use keyquorum_mpc::budget;
use pyo3::prelude::*;

/// The most that attempts win in a life; `prime_bits`: bits of the shortest prime that values have MACs over.
#[pyfunction]
#[pyo3(signature = (prime_bits=None))]
fn budget_attempts(prime_bits: Option<u32>) -> f64 {
    budget::of_attempts(prime_bits)
}

/// Name, −log2 of the chance to win and −log2 of the chance to pass unnoticed, of every kind of attempt.
#[pyfunction]
#[pyo3(signature = (prime_bits=None))]
fn budget_kinds(prime_bits: Option<u32>) -> Vec<(&'static str, f64, f64)> {
    let all = budget::attempts(prime_bits).into_iter();
    all.map(|a| (a.kind, a.wins, a.passes)).collect()
}

/// Distance from independence of `values` values that `lift` opens under smooth masks of `bits` bits.
#[pyfunction]
fn budget_lift(values: u64, bits: u32) -> f64 {
    budget::lift(values, bits)
}

/// Distance from independence of the sums that test `values` lifted values, under smooth masks below `width`.
#[pyfunction]
fn budget_lift_tests(values: u64, width: u64) -> f64 {
    budget::lift_tests(values, width)
}

/// Distance from independence of the pads of `elements` elements with MACs modulo a prime.
#[pyfunction]
fn budget_residues(elements: u64, peers: u32, prime_bits: u32) -> f64 {
    budget::residues(elements, peers, prime_bits)
}

/// Distance of `decryptions` decryptions of `round_flood`.
#[pyfunction]
fn budget_flood(decryptions: u64) -> f64 {
    budget::flood(decryptions)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("BUDGET_BITS", budget::TOTAL_BITS)?;
    m.add("LIFT_TESTS", budget::LIFT_TESTS)?;
    m.add_function(wrap_pyfunction!(budget_attempts, m)?)?;
    m.add_function(wrap_pyfunction!(budget_kinds, m)?)?;
    m.add_function(wrap_pyfunction!(budget_lift, m)?)?;
    m.add_function(wrap_pyfunction!(budget_lift_tests, m)?)?;
    m.add_function(wrap_pyfunction!(budget_residues, m)?)?;
    m.add_function(wrap_pyfunction!(budget_flood, m)?)
}
