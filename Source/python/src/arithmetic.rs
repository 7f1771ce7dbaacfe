//! Vector arithmetic modulo primes, and the NTT in SEAL's order.

use std::cell::RefCell;
use std::convert::Infallible;

use keyquorum_math::{CyclotomicTables, Domain, NttTables, Zq, ntt};
use numpy::{PyArray1, PyReadonlyArray1, ToPyArray};
use pyo3::prelude::*;
use zeroize::Zeroizing;

use crate::errors::usage;

type Words<'py> = PyReadonlyArray1<'py, u64>;
type Out<'py> = Bound<'py, PyArray1<u64>>;

/// The negacyclic number-theoretic transform of one prime and ring degree, in SEAL's order.
#[pyclass(module = "keyquorum._engine", frozen)]
pub struct Ntt {
    tables: NttTables,
}

fn contiguous<'a>(a: &'a Words<'_>) -> PyResult<&'a [u64]> {
    a.as_slice()
        .map_err(|_| usage("vectors must be contiguous: use numpy.ascontiguousarray"))
}

/// Fields that are kept: a test for primality takes as long as some thousand products.
const KEPT: usize = 64;

/// The field of a prime, from those of earlier calls of this thread if it is among them.
fn field(q: u64) -> PyResult<Zq> {
    thread_local! {
        static FIELDS: RefCell<Vec<Zq>> = const { RefCell::new(Vec::new()) };
    }
    FIELDS.with_borrow_mut(|fields| {
        if let Some(found) = fields.iter().find(|f| f.modulus() == q) {
            return Ok(found.clone());
        }
        let made = Zq::new(q).map_err(|e| usage(e.to_string()))?;
        if fields.len() == KEPT {
            fields.clear();
        }
        fields.push(made.clone());
        Ok(made)
    })
}

fn reduced(v: &[u64], q: u64) -> PyResult<()> {
    if v.iter().any(|x| *x >= q) {
        return Err(usage(format!(
            "a vector modulo {q} has an element that is not below the modulus"
        )));
    }
    Ok(())
}

/// A copy of `a`, whose words are below `q`, after `transform`, which runs without the interpreter's lock.
fn transformed<'py, E: std::fmt::Display + Send>(
    py: Python<'py>,
    a: &Words<'py>,
    q: u64,
    transform: impl FnOnce(&mut [u64]) -> Result<(), E> + Send,
) -> PyResult<Out<'py>> {
    let mut v = contiguous(a)?.to_vec();
    reduced(&v, q)?;
    py.detach(|| transform(&mut v))
        .map_err(|e| usage(e.to_string()))?;
    Ok(PyArray1::from_vec(py, v))
}

#[pymethods]
impl Ntt {
    /// Tables for prime `q` ≡ 1 mod 2n.
    #[new]
    fn new(py: Python<'_>, q: u64, n: usize) -> PyResult<Self> {
        let tables = py
            .detach(|| NttTables::new(q, n))
            .map_err(|e| usage(e.to_string()))?;
        Ok(Self { tables })
    }

    /// Coefficients to NTT form, for each block of n words.
    fn forward<'py>(&self, py: Python<'py>, a: Words<'py>) -> PyResult<Out<'py>> {
        transformed(py, &a, self.tables.modulus(), |v| {
            self.tables.forward_all(v)
        })
    }

    /// NTT form to coefficients, for each block of n words.
    fn inverse<'py>(&self, py: Python<'py>, a: Words<'py>) -> PyResult<Out<'py>> {
        transformed(py, &a, self.tables.modulus(), |v| {
            self.tables.inverse_all(v)
        })
    }

    /// For each of `rows`: sums over j of the transform of block j of n words of `a` times blocks jm + i of the row, for each i below m, the ratio of lengths.
    fn sums_of_products<'py>(
        &self,
        py: Python<'py>,
        a: Words<'py>,
        rows: Vec<Words<'py>>,
    ) -> PyResult<Vec<Out<'py>>> {
        let transform = |v: &mut [u64]| self.tables.forward(v);
        sums(
            py,
            &a,
            &rows,
            (self.tables.degree(), self.tables.modulus()),
            transform,
        )
    }
}

/// For each of `rows`: sums over j of block j of n words of `a` times blocks jm + i of the row, element-wise modulo q, for each i below m, the ratio of lengths.
#[pyfunction]
fn sums_of_products<'py>(
    py: Python<'py>,
    a: Words<'py>,
    rows: Vec<Words<'py>>,
    n: usize,
    q: u64,
) -> PyResult<Vec<Out<'py>>> {
    sums(py, &a, &rows, (n, q), |_| Ok::<(), Infallible>(()))
}

/// The sums, of what `transform` makes of blocks of `a`. Words must be below the modulus.
fn sums<'py, E: std::fmt::Display>(
    py: Python<'py>,
    a: &Words<'py>,
    rows: &[Words<'py>],
    (n, q): (usize, u64),
    transform: impl Fn(&mut [u64]) -> Result<(), E> + Sync,
) -> PyResult<Vec<Out<'py>>> {
    let (a, field) = (contiguous(a)?, field(q)?);
    let rows = rows.iter().map(contiguous).collect::<PyResult<Vec<_>>>()?;
    let whole = n > 0 && !a.is_empty() && a.len().is_multiple_of(n);
    if !whole || rows.iter().any(|row| !row.len().is_multiple_of(a.len())) {
        return Err(usage(format!(
            "{} words are no polynomials of {n} coefficients that rows have a multiple of",
            a.len()
        )));
    }
    let found = py.detach(|| {
        let width = |row: &[u64]| row.len() / (a.len() / n);
        let mut sums: Vec<_> = rows.iter().map(|row| vec![0; width(row)]).collect();
        let mut factor = Zeroizing::new(vec![0; n]);
        for (j, x) in a.chunks_exact(n).enumerate() {
            reduced(x, q)?;
            factor.copy_from_slice(x);
            transform(&mut factor).map_err(|e| usage(e.to_string()))?;
            for (sums, row) in sums.iter_mut().zip(&rows) {
                let blocks = row.chunks_exact(n).skip(j * (width(row) / n));
                for (sum, y) in sums.chunks_exact_mut(n).zip(blocks) {
                    reduced(y, q)?;
                    field.mul_acc(sum, &factor, y);
                }
            }
        }
        Ok::<_, PyErr>(sums)
    })?;
    Ok(found
        .into_iter()
        .map(|sum| PyArray1::from_vec(py, sum))
        .collect())
}

/// The transform of polynomials modulo the cyclotomic polynomial of order m, over one prime.
#[pyclass(module = "keyquorum._engine", frozen)]
pub struct Cyclotomic {
    tables: CyclotomicTables,
}

#[pymethods]
impl Cyclotomic {
    /// Tables for prime `q` ≡ 1 modulo m, and modulo the length of the convolution twice.
    #[new]
    fn new(py: Python<'_>, q: u64, m: usize) -> PyResult<Self> {
        let tables = py
            .detach(|| CyclotomicTables::new(q, m))
            .map_err(|e| usage(e.to_string()))?;
        Ok(Self { tables })
    }

    /// Coefficients of a polynomial, phi(m).
    #[getter]
    fn degree(&self) -> usize {
        self.tables.degree()
    }

    /// The primitive m-th root of unity.
    #[getter]
    fn root(&self) -> u64 {
        self.tables.root()
    }

    /// Coefficients to values at the primitive m-th roots of unity, for each block of phi(m) words.
    fn forward<'py>(&self, py: Python<'py>, a: Words<'py>) -> PyResult<Out<'py>> {
        transformed(py, &a, self.tables.modulus(), |v| {
            self.tables.forward_all(v)
        })
    }

    /// Values to coefficients, for each block of phi(m) words.
    fn inverse<'py>(&self, py: Python<'py>, a: Words<'py>) -> PyResult<Out<'py>> {
        transformed(py, &a, self.tables.modulus(), |v| {
            self.tables.inverse_all(v)
        })
    }

    /// The values of a(X^t) from those of a(X), for each block of phi(m) words.
    fn automorphism<'py>(&self, py: Python<'py>, a: Words<'py>, t: u64) -> PyResult<Out<'py>> {
        let out = self
            .tables
            .automorphism(contiguous(&a)?, t)
            .map_err(|e| usage(e.to_string()))?;
        Ok(PyArray1::from_vec(py, out))
    }
}

fn binary<'py>(
    py: Python<'py>,
    a: &Words<'py>,
    b: &Words<'py>,
    q: u64,
    f: impl FnOnce(&Zq, &mut [u64], &[u64]) + Send,
) -> PyResult<Out<'py>> {
    let field = field(q)?;
    let mut x = contiguous(a)?.to_vec();
    let y = contiguous(b)?;
    if x.len() != y.len() {
        return Err(usage(format!(
            "vectors of sizes {} and {} do not go together",
            x.len(),
            y.len()
        )));
    }
    reduced(&x, q)?;
    reduced(y, q)?;
    py.detach(|| f(&field, &mut x, y));
    Ok(PyArray1::from_vec(py, x))
}

/// a · b mod q, element-wise.
#[pyfunction]
fn mulmod<'py>(py: Python<'py>, a: Words<'py>, b: Words<'py>, q: u64) -> PyResult<Out<'py>> {
    binary(py, &a, &b, q, |f, x, y| f.mul_assign(x, y))
}

/// a + b mod q, element-wise.
#[pyfunction]
fn addmod<'py>(py: Python<'py>, a: Words<'py>, b: Words<'py>, q: u64) -> PyResult<Out<'py>> {
    binary(py, &a, &b, q, |f, x, y| f.add_assign(x, y))
}

/// a − b mod q, element-wise.
#[pyfunction]
fn submod<'py>(py: Python<'py>, a: Words<'py>, b: Words<'py>, q: u64) -> PyResult<Out<'py>> {
    binary(py, &a, &b, q, |f, x, y| f.sub_assign(x, y))
}

/// a · s mod q.
#[pyfunction]
fn mulmod_scalar<'py>(py: Python<'py>, a: Words<'py>, s: u64, q: u64) -> PyResult<Out<'py>> {
    let field = field(q)?;
    let mut x = contiguous(&a)?.to_vec();
    reduced(&x, q)?;
    py.detach(|| field.mul_scalar_assign(&mut x, s % q));
    Ok(PyArray1::from_vec(py, x))
}

/// Scales each summand u of a sharing mod q to ⌊t·2^l·u/q⌉ as an integer; returns it mod 2^64 and mod t.
///
/// Sums of the results over the summands equal t·2^l·(Σu mod q)/q mod t·2^l up to half a unit a summand.
#[pyfunction]
fn scale_round<'py>(
    py: Python<'py>,
    u: Words<'py>,
    t: u64,
    l: u32,
    q: u64,
) -> PyResult<(Out<'py>, Out<'py>)> {
    let v = contiguous(&u)?;
    reduced(v, q)?;
    let bits = |x: u64| 64 - x.leading_zeros();
    if t < 2 || bits(t) + l + bits(q) > 127 {
        return Err(usage(format!(
            "scaling by {t}·2^{l}/{q} does not fit 127 bits: take a smaller l"
        )));
    }
    let (low, rest) = py.detach(|| {
        let factor = u128::from(t) << l;
        let (q, half, t) = (u128::from(q), u128::from(q / 2), u128::from(t));
        v.iter()
            .map(|x| {
                let z = (u128::from(*x) * factor + half) / q;
                (z as u64, (z % t) as u64)
            })
            .unzip::<u64, u64, Vec<u64>, Vec<u64>>()
    });
    Ok((PyArray1::from_vec(py, low), PyArray1::from_vec(py, rest)))
}

/// a(X) ↦ a(X^g) modulo X^n + 1, on coefficients modulo q.
#[pyfunction]
fn automorphism<'py>(py: Python<'py>, a: Words<'py>, g: u64, q: u64) -> PyResult<Out<'py>> {
    let v = contiguous(&a)?;
    reduced(v, q)?;
    let out = ntt::automorphism(v, g, q).map_err(|e| usage(e.to_string()))?;
    Ok(out.to_pyarray(py))
}

/// The words `first` to `first + count - 1` of the public stream of a seed of 16 bytes: masks of keys for TFHE-rs.
#[pyfunction]
fn expand_aes_ctr<'py>(
    py: Python<'py>,
    seed: &[u8],
    first: u64,
    count: usize,
) -> PyResult<Out<'py>> {
    let seed = <[u8; 16]>::try_from(seed)
        .map_err(|_| usage(format!("the seed has 16 bytes, not {}", seed.len())))?;
    let words = py.detach(|| keyquorum_math::expand_aes_ctr(seed, first, count));
    Ok(PyArray1::from_vec(py, words))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Ntt>()?;
    m.add_class::<Cyclotomic>()?;
    m.add_function(wrap_pyfunction!(mulmod, m)?)?;
    m.add_function(wrap_pyfunction!(addmod, m)?)?;
    m.add_function(wrap_pyfunction!(submod, m)?)?;
    m.add_function(wrap_pyfunction!(mulmod_scalar, m)?)?;
    m.add_function(wrap_pyfunction!(sums_of_products, m)?)?;
    m.add_function(wrap_pyfunction!(scale_round, m)?)?;
    m.add_function(wrap_pyfunction!(automorphism, m)?)?;
    m.add_function(wrap_pyfunction!(expand_aes_ctr, m)?)
}
