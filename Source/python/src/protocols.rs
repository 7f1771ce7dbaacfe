//! The table of protocols.

use keyquorum_mpc::{Descriptor, Refusal, named, protocols};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::engine_error;

fn row<'py>(py: Python<'py>, protocol: &Descriptor) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let domains = &protocol.domains;
    let partners = (protocol.partners)();
    dict.set_item("name", protocol.name)?;
    dict.set_item("summary", protocol.summary)?;
    dict.set_item("sharing", protocol.sharing.name())?;
    dict.set_item("bits", domains.bits)?;
    dict.set_item("ring", domains.ring.is_some())?;
    dict.set_item("field", domains.field.is_some())?;
    dict.set_item("wide_fields", domains.wide_fields)?;
    dict.set_item("binary", protocol.binary)?;
    dict.set_item("least_parties", protocol.least_parties)?;
    dict.set_item("most_parties", protocol.most_parties)?;
    dict.set_item("chooses_threshold", protocol.chooses_threshold)?;
    dict.set_item("dishonest_majority", protocol.dishonest_majority())?;
    dict.set_item("adversary", protocol.adversary.name())?;
    dict.set_item("macs", protocol.macs)?;
    dict.set_item("splits", protocol.splits)?;
    dict.set_item("edabits", protocol.edabits)?;
    dict.set_item("oblivious_transfer", protocol.oblivious_transfer)?;
    dict.set_item("king_openings", protocol.king_openings)?;
    dict.set_item("committee", protocol.committee)?;
    dict.set_item("private_numbers", protocol.private_numbers.name())?;
    dict.set_item("ring_protocol", partners.ring.map(|p| p.name))?;
    dict.set_item("field_protocol", partners.field.name)?;
    dict.set_item("plain_field_protocol", partners.plain_field.name)?;
    let quorum = partners.quorum.map(|(ring, field)| (ring.name, field.name));
    dict.set_item("quorum", quorum)?;
    let mp_spdz = protocol.mp_spdz.map(|other| -> PyResult<_> {
        let dict = PyDict::new(py);
        dict.set_item("binary", other.binary)?;
        dict.set_item("field", other.field)?;
        dict.set_item("encrypt", other.encrypt)?;
        dict.set_item("shares", other.shares)?;
        dict.set_item("extra_bits", other.extra_bits)?;
        Ok(dict)
    });
    dict.set_item("mp_spdz", mp_spdz.transpose()?)?;
    Ok(dict)
}

fn find(name: &str) -> PyResult<&'static Descriptor> {
    named(name).map_err(refused)
}

fn refused(refusal: Refusal) -> PyErr {
    engine_error(refusal.into())
}

/// A row a protocol, in the order of the table: see keyquorum.model.protocols.
#[pyfunction]
fn protocol_table(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    protocols().map(|protocol| row(py, protocol)).collect()
}

/// The threshold of a protocol among so many parties: the one asked for, or the largest. Refuses what the protocol does not have.
#[pyfunction]
#[pyo3(signature = (name, parties, asked=None))]
fn protocol_threshold(name: &str, parties: usize, asked: Option<usize>) -> PyResult<usize> {
    find(name)?.threshold(parties, asked).map_err(refused)
}

/// Numbers of the summands that a party holds of a shared element, in the order of the parts of its share.
#[pyfunction]
fn protocol_held(
    name: &str,
    party: usize,
    parties: usize,
    threshold: usize,
) -> PyResult<Vec<usize>> {
    let protocol = find(name)?;
    let t = protocol.threshold(parties, Some(threshold));
    Ok((protocol.held)(party, parties, t.map_err(refused)?))
}

/// Summands whose sum is a shared element; 0 if the sharing is no sum.
#[pyfunction]
fn protocol_summands(name: &str, parties: usize) -> PyResult<usize> {
    let protocol = find(name)?;
    protocol.threshold(parties, None).map_err(refused)?;
    Ok((protocol.summands)(parties))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(protocol_table, m)?)?;
    m.add_function(wrap_pyfunction!(protocol_threshold, m)?)?;
    m.add_function(wrap_pyfunction!(protocol_held, m)?)?;
    m.add_function(wrap_pyfunction!(protocol_summands, m)?)
}
