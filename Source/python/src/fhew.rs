//! Evaluation of FHEW-like ciphertexts, and deviates by a cumulative table.

use keyquorum_math::fhew::{Fhew as Evaluation, FhewError, Rows};
use keyquorum_math::{Prg, SymmetricTable};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::errors::usage;

type Words<'py> = PyReadonlyArray1<'py, u64>;
type Out<'py> = Bound<'py, PyArray1<u64>>;
/// Masks and bodies of ciphertexts.
type Ciphertexts<'py> = (Out<'py>, Out<'py>);

fn contiguous<'a>(a: &'a Words<'_>) -> PyResult<&'a [u64]> {
    a.as_slice()
        .map_err(|_| usage("vectors must be contiguous: use numpy.ascontiguousarray"))
}

fn seed_of(seed: &[u8]) -> PyResult<[u8; 16]> {
    <[u8; 16]>::try_from(seed)
        .map_err(|_| usage(format!("the seed has 16 bytes, not {}", seed.len())))
}

/// A generator with a seed of the operating system, or with that of a test.
fn generator(seed: Option<&[u8]>) -> PyResult<Prg> {
    match seed {
        None => Prg::from_os().map_err(|e| usage(e.to_string())),
        Some(seed) => Ok(Prg::new(seed_of(seed)?, 0)),
    }
}

fn ciphertexts<'py>(
    py: Python<'py>,
    found: Result<(Vec<u64>, Vec<u64>), FhewError>,
) -> PyResult<Ciphertexts<'py>> {
    let (a, b) = found.map_err(|e| usage(e.to_string()))?;
    Ok((PyArray1::from_vec(py, a), PyArray1::from_vec(py, b)))
}

/// The evaluation for one modulus, ring degree, dimension of the short secret and gadgets.
#[pyclass(module = "keyquorum._engine", frozen)]
pub struct Fhew {
    evaluation: Evaluation,
}

#[pymethods]
impl Fhew {
    /// `rotating`, `switching`: bits of a digit and number of digits of the bootstrapping key and of the key-switching key.
    #[new]
    fn new(
        q: u64,
        degree: usize,
        dimension: usize,
        rotating: (u32, u32),
        switching: (u32, u32),
    ) -> PyResult<Self> {
        let evaluation = Evaluation::new(q, degree, dimension, rotating, switching)
            .map_err(|e| usage(e.to_string()))?;
        Ok(Self { evaluation })
    }

    /// Ciphertexts under the ring secret to ciphertexts under the short one.
    fn switch<'py>(
        &self,
        py: Python<'py>,
        seed: &[u8],
        bodies: Words<'py>,
        a: Words<'py>,
        b: Words<'py>,
    ) -> PyResult<Ciphertexts<'py>> {
        let (seed, bodies) = (seed_of(seed)?, contiguous(&bodies)?);
        let (a, b) = (contiguous(&a)?, contiguous(&b)?);
        ciphertexts(
            py,
            py.detach(|| self.evaluation.switch(Rows { seed, bodies }, a, b)),
        )
    }

    /// Ciphertexts under the short secret to ciphertexts, under the ring secret, of the entries of a test vector.
    fn bootstrap<'py>(
        &self,
        py: Python<'py>,
        seed: &[u8],
        bodies: Words<'py>,
        a: Words<'py>,
        b: Words<'py>,
        test: Words<'py>,
    ) -> PyResult<Ciphertexts<'py>> {
        let (seed, bodies) = (seed_of(seed)?, contiguous(&bodies)?);
        let (a, b, test) = (contiguous(&a)?, contiguous(&b)?, contiguous(&test)?);
        let key = Rows { seed, bodies };
        ciphertexts(py, py.detach(|| self.evaluation.bootstrap(key, a, b, test)))
    }

    /// Encryptions of residues under an LWE public key with rows of dimension `width`. `choices`: INSECURE, tests: the seed of the random subsets.
    #[pyo3(signature = (seed, bodies, width, messages, choices=None))]
    fn encrypt<'py>(
        &self,
        py: Python<'py>,
        seed: &[u8],
        bodies: Words<'py>,
        width: usize,
        messages: Words<'py>,
        choices: Option<&[u8]>,
    ) -> PyResult<Ciphertexts<'py>> {
        let (seed, bodies) = (seed_of(seed)?, contiguous(&bodies)?);
        let (messages, mut prg) = (contiguous(&messages)?, generator(choices)?);
        let key = Rows { seed, bodies };
        ciphertexts(
            py,
            py.detach(|| self.evaluation.encrypt(key, width, messages, &mut prg)),
        )
    }
}

/// The residues `first` to `first + count - 1` of the public stream of a seed of 16 bytes, uniform modulo `q`.
#[pyfunction]
fn expand_uniform<'py>(
    py: Python<'py>,
    seed: &[u8],
    first: u64,
    count: usize,
    q: u64,
) -> PyResult<Out<'py>> {
    let seed = seed_of(seed)?;
    if q == 0 {
        return Err(usage("there are no residues modulo 0"));
    }
    let words = py.detach(|| keyquorum_math::expand_uniform(seed, first, count, q));
    Ok(PyArray1::from_vec(py, words))
}

/// The inner products modulo `q` of `rows` rows of that stream, from residue `first` on, with the vectors of `width` residues in `vectors`: those of the first vector, then of the next.
#[pyfunction]
fn expanded_products<'py>(
    py: Python<'py>,
    seed: &[u8],
    first: u64,
    rows: usize,
    vectors: Words<'py>,
    width: usize,
    q: u64,
) -> PyResult<Out<'py>> {
    let (seed, vectors) = (seed_of(seed)?, contiguous(&vectors)?);
    if q == 0 || width == 0 || vectors.len() % width != 0 || vectors.iter().any(|v| *v >= q) {
        return Err(usage(
            "vectors are residues modulo q, of the width of a row",
        ));
    }
    let products = py.detach(|| {
        let vectors: Vec<_> = vectors.chunks_exact(width).collect();
        keyquorum_math::expanded_products(seed, first, rows, &vectors, q).concat()
    });
    Ok(PyArray1::from_vec(py, products))
}

/// Deviates of a symmetric distribution in constant time, from thresholds of three words of 63 bits each. `seed`: INSECURE, tests.
#[pyfunction]
#[pyo3(signature = (thresholds, count, seed=None))]
fn sample_symmetric<'py>(
    py: Python<'py>,
    thresholds: Words<'py>,
    count: usize,
    seed: Option<&[u8]>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let table = SymmetricTable::new(contiguous(&thresholds)?).map_err(|e| usage(e.to_string()))?;
    let mut prg = generator(seed)?;
    let deviates = py.detach(|| {
        let mut out = vec![0i64; count];
        table.sample(&mut prg, &mut out);
        out
    });
    Ok(PyArray1::from_vec(py, deviates))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Fhew>()?;
    m.add_function(wrap_pyfunction!(expand_uniform, m)?)?;
    m.add_function(wrap_pyfunction!(expanded_products, m)?)?;
    m.add_function(wrap_pyfunction!(sample_symmetric, m)?)
}
