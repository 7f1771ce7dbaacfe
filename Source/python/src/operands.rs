//! Operands that a program gives: arrays, or what stands for the numbers and shares of a recorded run.

use keyquorum_mpc::recording::{NumbersId, SharesId};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use zeroize::Zeroizing;

use crate::errors::{engine_error, usage};
use crate::recorder::Recorder;

pub(crate) fn slice<'a, T: numpy::Element>(a: &'a PyReadonlyArray1<'_, T>) -> PyResult<&'a [T]> {
    a.as_slice()
        .map_err(|_| usage("vectors must be contiguous: use numpy.ascontiguousarray"))
}

/// The place of recorded numbers or shares: a recording, and a slot of it.
type Place = Option<(Py<Recorder>, usize)>;

/// The data behind a stand-in of a recorded run, and its place; other objects are data themselves.
fn behind<'py>(object: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Place)> {
    let py = object.py();
    let recorder = object.getattr(pyo3::intern!(py, "_recorder")).ok();
    match recorder.and_then(|recorder| recorder.cast_into::<Recorder>().ok()) {
        None => Ok((object.clone(), None)),
        Some(recorder) => {
            let slot = object.getattr(pyo3::intern!(py, "_position"))?.extract()?;
            let data = object.getattr(pyo3::intern!(py, "_data"))?;
            Ok((data, Some((recorder.unbind(), slot))))
        }
    }
}

/// The slot in this recording. Operands of another recording end this one.
fn slot(place: &Place, recorder: Option<&Py<Recorder>>) -> PyResult<Option<usize>> {
    match (place, recorder) {
        (Some((theirs, slot)), Some(ours)) if theirs.is(ours) => Ok(Some(*slot)),
        (Some(_), Some(ours)) => {
            let mut core = ours.get().lock().map_err(engine_error)?;
            core.fail("numbers of another run");
            Ok(None)
        }
        _ => Ok(None),
    }
}

enum Words<'py> {
    Array(PyReadonlyArray1<'py, i64>),
    Bytes(Zeroizing<Vec<i64>>),
}

/// Numbers: 64-bit words, or bytes.
pub(crate) struct Numbers<'py> {
    words: Words<'py>,
    place: Place,
}

impl<'a, 'py> FromPyObject<'a, 'py> for Numbers<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let (data, place) = match object.cast::<PyArray1<i64>>() {
            Ok(array) => (array.to_owned().into_any(), None),
            Err(_) => behind(&object)?,
        };
        let words = match data.cast::<PyArray1<u8>>() {
            Ok(bytes) => {
                let bytes = bytes.readonly();
                let words = slice(&bytes)?.iter().map(|byte| i64::from(*byte));
                Words::Bytes(Zeroizing::new(words.collect()))
            }
            Err(_) => Words::Array(data.extract()?),
        };
        Ok(Self { words, place })
    }
}

impl Numbers<'_> {
    pub(crate) fn words(&self) -> PyResult<&[i64]> {
        match &self.words {
            Words::Array(array) => slice(array),
            Words::Bytes(words) => Ok(words),
        }
    }

    pub(crate) fn slot(&self, recorder: Option<&Py<Recorder>>) -> PyResult<Option<NumbersId>> {
        Ok(slot(&self.place, recorder)?.map(NumbersId))
    }
}

/// Raw shares.
pub(crate) struct Raw<'py> {
    data: Bound<'py, pyo3::types::PyBytes>,
    place: Place,
}

impl<'a, 'py> FromPyObject<'a, 'py> for Raw<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let (data, place) = behind(&object)?;
        Ok(Self {
            data: data.extract()?,
            place,
        })
    }
}

impl Raw<'_> {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.data.as_bytes()
    }

    pub(crate) fn slot(&self, recorder: Option<&Py<Recorder>>) -> PyResult<Option<SharesId>> {
        Ok(slot(&self.place, recorder)?.map(SharesId))
    }
}
