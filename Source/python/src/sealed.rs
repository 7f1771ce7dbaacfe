//! The layer of a receiver's channel inside TLS: see `keyquorum_net::Sealed`.

use keyquorum_net::{
    Offer, SEALED_ANSWER_BYTES, SEALED_OFFER_BYTES, SEALED_TAG_BYTES, Sealed, answer_offer,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{network_error, usage};

/// The dialling end of a sealed channel, between its message and the answer.
#[pyclass]
struct SealingOffer {
    offer: Option<Offer>,
    message: Vec<u8>,
}

#[pymethods]
impl SealingOffer {
    #[new]
    fn new() -> PyResult<Self> {
        let (offer, message) = Offer::new().map_err(network_error)?;
        Ok(Self {
            offer: Some(offer),
            message,
        })
    }

    /// What goes to the other end.
    #[getter]
    fn message<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.message)
    }

    /// The channel, from the other end's answer. Works once.
    fn finish(&mut self, answer: &[u8]) -> PyResult<SealedRecords> {
        let offer = self.offer.take();
        let offer = offer.ok_or_else(|| usage("an offer is answered once"))?;
        let sealed = offer.finish(answer).map_err(network_error)?;
        Ok(SealedRecords { sealed })
    }
}

/// One end of a sealed channel.
#[pyclass]
struct SealedRecords {
    sealed: Sealed,
}

#[pymethods]
impl SealedRecords {
    /// The next record to send.
    fn seal<'py>(&mut self, py: Python<'py>, content: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let record = self.sealed.seal(content).map_err(network_error)?;
        Ok(PyBytes::new(py, &record))
    }

    /// The content of the next record received.
    fn open<'py>(&mut self, py: Python<'py>, record: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let content = self.sealed.open(record).map_err(network_error)?;
        Ok(PyBytes::new(py, &content))
    }
}

/// Answers the message of a dialling end: the answer, and the channel.
#[pyfunction]
fn answer_sealing<'py>(
    py: Python<'py>,
    message: &[u8],
) -> PyResult<(Bound<'py, PyBytes>, SealedRecords)> {
    let (answer, sealed) = answer_offer(message).map_err(network_error)?;
    Ok((PyBytes::new(py, &answer), SealedRecords { sealed }))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("SEALING_OFFER_BYTES", SEALED_OFFER_BYTES)?;
    m.add("SEALING_ANSWER_BYTES", SEALED_ANSWER_BYTES)?;
    m.add("SEALED_TAG_BYTES", SEALED_TAG_BYTES)?;
    m.add_class::<SealingOffer>()?;
    m.add_class::<SealedRecords>()?;
    m.add_function(wrap_pyfunction!(answer_sealing, m)?)
}
