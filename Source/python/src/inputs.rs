//! Share files of recorded programs, from and to arrays.

use keyquorum_mpc::recording::{Row, Section as Rows};
use numpy::ndarray::{Array2, ArrayView1, ArrayView2};
use numpy::{PyArray2, PyArrayMethods, PyReadonlyArray2, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use zeroize::Zeroizing;

use crate::errors::{engine_error, usage};

/// A part of a share file, `[components, words]`.
pub(crate) enum Section<'py> {
    Bytes8(PyReadonlyArray2<'py, u64>),
    Bytes4(PyReadonlyArray2<'py, u32>),
    Bytes2(PyReadonlyArray2<'py, u16>),
    Bytes1(PyReadonlyArray2<'py, u8>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Section<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(array) = object.cast::<PyUntypedArray>()
            && !array.is_aligned()
        {
            return Err(usage(
                "a part of a share file is not aligned in memory: copy it",
            ));
        }
        if let Ok(array) = object.cast::<PyArray2<u64>>() {
            return Ok(Self::Bytes8(array.readonly()));
        }
        if let Ok(array) = object.cast::<PyArray2<u16>>() {
            return Ok(Self::Bytes2(array.readonly()));
        }
        if let Ok(array) = object.cast::<PyArray2<u8>>() {
            return Ok(Self::Bytes1(array.readonly()));
        }
        if let Ok(array) = object.cast::<PyArray2<u32>>() {
            return Ok(Self::Bytes4(array.readonly()));
        }
        Err(usage("a share file has words of 1, 2, 4 or 8 bytes"))
    }
}

/// The rows of an array. Words that are not one after another in memory are copied.
fn rows<'a, W: Copy + Into<u64>>(
    array: ArrayView2<'a, W>,
    row: fn(&'a [W]) -> Row<'a>,
) -> Vec<Row<'a>> {
    let copied = |words: ArrayView1<'a, W>| {
        let words: Vec<u64> = words.iter().map(|word| (*word).into()).collect();
        Row::Copied(Zeroizing::new(words))
    };
    let rows = array.into_outer_iter();
    rows.map(|words| words.to_slice().map_or_else(|| copied(words), row))
        .collect()
}

impl Section<'_> {
    /// The words, for the engine.
    pub(crate) fn words(&self) -> PyResult<Rows<'_>> {
        let rows = match self {
            Self::Bytes8(array) => rows(array.as_array(), Row::Bytes8),
            Self::Bytes4(array) => rows(array.as_array(), Row::Bytes4),
            Self::Bytes2(array) => rows(array.as_array(), Row::Bytes2),
            Self::Bytes1(array) => rows(array.as_array(), Row::Bytes1),
        };
        Rows::new(rows).map_err(engine_error)
    }
}

/// Exported shares, component after component, as an array `[components, words]`.
pub(crate) fn stored<'py>(py: Python<'py>, data: &[u8], parts: usize) -> Bound<'py, PyArray2<u64>> {
    let (words, _) = data.as_chunks::<8>();
    let row = words.len() / parts.max(1);
    let word = |(part, i)| {
        words
            .get(part * row + i)
            .map_or(0, |word| u64::from_le_bytes(*word))
    };
    PyArray2::from_owned_array(py, Array2::from_shape_fn((parts, row), word))
}
