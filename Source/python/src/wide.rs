//! Elements of prime fields of 65 to 127 bits, 16 bytes each, for receivers outside a computation.

use keyquorum_math::{Domain, Zq128};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zeroize::Zeroizing;

use crate::errors::usage;

/// The field, and the elements of a vector of little-endian words of 16 bytes.
fn read(q: u128, bytes: &[u8]) -> PyResult<(Zq128, Zeroizing<Vec<u128>>)> {
    let field = Zq128::new(q).map_err(|e| usage(e.to_string()))?;
    let (chunks, rest) = bytes.as_chunks::<16>();
    let words: Zeroizing<Vec<u128>> =
        Zeroizing::new(chunks.iter().map(|c| u128::from_le_bytes(*c)).collect());
    if !rest.is_empty() {
        return Err(usage("elements of a wide field have 16 bytes each"));
    }
    if words.iter().any(|x| *x >= q) {
        return Err(usage(format!(
            "a vector modulo {q} has an element that is not below the modulus"
        )));
    }
    Ok((field, words))
}

/// a + b modulo a prime of 65 to 127 bits, element-wise.
#[pyfunction]
fn wide_sum<'py>(py: Python<'py>, q: u128, a: &[u8], b: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let ((field, mut x), (_, y)) = (read(q, a)?, read(q, b)?);
    if x.len() != y.len() {
        return Err(usage(format!(
            "vectors of sizes {} and {} do not go together",
            x.len(),
            y.len()
        )));
    }
    field.add_assign(&mut x, &y);
    PyBytes::new_with(py, a.len(), |out| {
        let (chunks, _) = out.as_chunks_mut::<16>();
        for (place, word) in chunks.iter_mut().zip(x.iter()) {
            *place = word.to_le_bytes();
        }
        Ok(())
    })
}

/// Legendre symbols 1, 0 and -1 of elements modulo a prime of 65 to 127 bits, by Euler's criterion.
#[pyfunction]
fn legendre_symbols<'py>(py: Python<'py>, q: u128, a: &[u8]) -> PyResult<Bound<'py, PyArray1<i8>>> {
    let (field, x) = read(q, a)?;
    let symbols = py.detach(|| {
        x.iter()
            .map(|v| match field.pow(*v, q / 2) {
                0 => 0,
                1 => 1,
                _ => -1,
            })
            .collect()
    });
    Ok(PyArray1::from_vec(py, symbols))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(wide_sum, m)?)?;
    m.add_function(wrap_pyfunction!(legendre_symbols, m)?)
}
