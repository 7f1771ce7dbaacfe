//! Share files.

use std::path::PathBuf;

use keyquorum_mpc::store::{self, ShareHeader};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors::{engine_error, usage};

/// Share files: header, shares, checksum; mode 0600, written atomically.
#[pyclass(module = "keyquorum._engine")]
pub struct ShareFile;

fn header(dict: &Bound<'_, PyDict>) -> PyResult<ShareHeader> {
    fn get<'py, T: for<'a> FromPyObject<'a, 'py>>(
        dict: &Bound<'py, PyDict>,
        name: &str,
    ) -> PyResult<T> {
        let item = dict
            .get_item(name)?
            .ok_or_else(|| usage(format!("a share file header needs the field {name}")))?;
        item.extract::<T>().map_err(|_| {
            usage(format!(
                "the field {name} of a share file header has the wrong type"
            ))
        })
    }
    /// A field that only headers of later epochs have.
    fn get_or<'py, T: for<'a> FromPyObject<'a, 'py> + Default>(
        dict: &Bound<'py, PyDict>,
        name: &str,
    ) -> PyResult<T> {
        if dict.contains(name)? {
            get(dict, name)
        } else {
            Ok(T::default())
        }
    }
    Ok(ShareHeader {
        protocol: get(dict, "protocol")?,
        domain: get(dict, "domain")?,
        parties: get(dict, "parties")?,
        threshold: get(dict, "threshold")?,
        party: get(dict, "party")?,
        key_id: get(dict, "key_id")?,
        length: get(dict, "length")?,
        epoch: get_or(dict, "epoch")?,
        sharing: get_or(dict, "sharing")?,
        members: get_or(dict, "members")?,
    })
}

#[pymethods]
impl ShareFile {
    /// Writes shares.
    #[staticmethod]
    fn write(
        py: Python<'_>,
        path: PathBuf,
        header_fields: &Bound<'_, PyDict>,
        data: &[u8],
    ) -> PyResult<()> {
        let header = header(header_fields)?;
        py.detach(|| store::write(&path, &header, data))
            .map_err(engine_error)
    }

    /// Reads shares; `expect` holds the header fields that must match (length 0: any).
    #[staticmethod]
    fn read<'py>(
        py: Python<'py>,
        path: PathBuf,
        expect: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let header = header(expect)?;
        let data = py
            .detach(|| store::read(&path, &header))
            .map_err(engine_error)?;
        Ok(PyBytes::new(py, &data))
    }

    /// The header of a share file, for listing.
    #[staticmethod]
    fn header<'py>(py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyDict>> {
        let h = store::read_header(&path).map_err(engine_error)?;
        let dict = PyDict::new(py);
        dict.set_item("protocol", h.protocol)?;
        dict.set_item("domain", h.domain)?;
        dict.set_item("parties", h.parties)?;
        dict.set_item("threshold", h.threshold)?;
        dict.set_item("party", h.party)?;
        dict.set_item("key_id", h.key_id)?;
        dict.set_item("length", h.length)?;
        if h.epoch != 0 {
            dict.set_item("epoch", h.epoch)?;
            dict.set_item("sharing", h.sharing)?;
            dict.set_item("members", h.members)?;
        }
        Ok(dict)
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<ShareFile>()
}
