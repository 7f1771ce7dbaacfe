//! The transfer check of a resharing.

use keyquorum_mpc::EngineOptions;
use keyquorum_mpc::transfer::{MaskSeeds as CoreMaskSeeds, factors, rows};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use zeroize::Zeroize;

use crate::errors::engine_error;
use crate::resharing::{Shape, members};
use crate::session::{Session, domain_of};

/// Masks of a vector: as many as its check needs in this domain.
#[pyfunction]
fn transfer_rows(domain: &str) -> PyResult<usize> {
    Ok(rows(domain_of(domain)?))
}

/// The coefficients of `count` combinations of a vector of `length` elements. `coins`: as `transfer_stated` takes them.
#[pyfunction]
fn transfer_factors<'py>(
    py: Python<'py>,
    domain: &str,
    coins: (Vec<u8>, Vec<u8>),
    length: usize,
    count: usize,
) -> PyResult<Bound<'py, PyByteArray>> {
    let (kind, toss) = (domain_of(domain)?, coins.0.as_slice().try_into()?);
    let all = py.detach(|| factors(kind, (toss, &coins.1), length, count));
    Ok(PyByteArray::new(py, &all.map_err(engine_error)?))
}

/// Masks that a dealer of a semi-honest committee draws alone, in the form of its shares.
#[pyfunction]
fn transfer_own_masks<'py>(
    py: Python<'py>,
    shape: Shape,
    domain: &str,
    count: usize,
) -> PyResult<Bound<'py, PyByteArray>> {
    let masks = members(&shape)?.own_masks(domain_of(domain)?, count);
    Ok(PyByteArray::new(py, &masks.map_err(engine_error)?))
}

/// What a member states of the combinations of a vector, from its shares of it and of the masks (`held`). `coins`: the toss, 32 bytes, and the label of the vector.
#[pyfunction]
fn transfer_stated<'py>(
    py: Python<'py>,
    shape: Shape,
    domain: &str,
    coins: (Vec<u8>, Vec<u8>),
    mut held: (Vec<u8>, Vec<u8>),
) -> PyResult<Bound<'py, PyByteArray>> {
    let (of, kind) = (members(&shape)?, domain_of(domain)?);
    let toss: &[u8; 32] = coins.0.as_slice().try_into()?;
    let said = py.detach(|| of.stated(kind, (toss, &coins.1), &held.0, &held.1));
    held.0.zeroize();
    held.1.zeroize();
    Ok(PyByteArray::new(py, &said.map_err(engine_error)?))
}

/// The combinations from what members state: of all, checked to fit together; or of `dealers` of a semi-honest committee.
#[pyfunction]
#[pyo3(signature = (shape, domain, count, statements, dealers=None))]
fn transfer_opened(
    shape: Shape,
    domain: &str,
    count: usize,
    statements: Vec<Vec<u8>>,
    dealers: Option<Vec<usize>>,
) -> PyResult<Vec<u8>> {
    let (of, kind) = (members(&shape)?, domain_of(domain)?);
    let opened = match dealers {
        None => of.opened(kind, count, &statements),
        Some(dealers) => of.summed(&dealers, kind, count, &statements),
    };
    Ok(opened.map_err(engine_error)?.to_vec())
}

/// Seeds of masks that the members of sets of an old committee have in common.
#[pyclass(module = "keyquorum._engine", frozen)]
pub struct MaskSeeds {
    core: CoreMaskSeeds,
}

#[pymethods]
impl MaskSeeds {
    /// All members of the committee call this, and they alone, in a session of theirs.
    #[staticmethod]
    #[pyo3(signature = (session, protocol, threshold=None, seed=None))]
    fn begin(
        py: Python<'_>,
        session: &Session,
        protocol: &str,
        threshold: Option<usize>,
        seed: Option<Vec<u8>>,
    ) -> PyResult<Self> {
        let options = EngineOptions {
            program: String::new(),
            threshold,
            insecure_seed: seed,
        };
        let core = py
            .detach(|| session.core().mask_seeds(protocol, &options))
            .map_err(engine_error)?;
        Ok(Self { core })
    }

    /// Our shares of `count` masks, as share files have them. `name`: of the resharing; `label`: of the vector, never the same for two.
    fn shares<'py>(
        &self,
        py: Python<'py>,
        domain: &str,
        name: &[u8],
        label: &[u8],
        count: usize,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let shares = self.core.shares(domain_of(domain)?, name, label, count);
        Ok(PyByteArray::new(py, &shares.map_err(engine_error)?))
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<MaskSeeds>()?;
    m.add_function(wrap_pyfunction!(transfer_rows, m)?)?;
    m.add_function(wrap_pyfunction!(transfer_factors, m)?)?;
    m.add_function(wrap_pyfunction!(transfer_own_masks, m)?)?;
    m.add_function(wrap_pyfunction!(transfer_stated, m)?)?;
    m.add_function(wrap_pyfunction!(transfer_opened, m)?)
}
