//! Identities of parties, and a look at a committee without a session.

use std::path::PathBuf;

use keyquorum_net::{Identity, TlsConfig, doctor};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors::network_error;
use crate::session::{hello, peer_list, positive};

/// Makes a private key and certificate for a party, stored at `path` (0600); returns its SHA-256 fingerprint.
#[pyfunction]
fn make_identity(path: PathBuf, name: &str) -> PyResult<String> {
    let identity = Identity::generate(name).map_err(network_error)?;
    identity.save(&path).map_err(network_error)?;
    Ok(identity.fingerprint())
}

/// The SHA-256 fingerprint of a stored identity.
#[pyfunction]
fn identity_fingerprint(path: PathBuf) -> PyResult<String> {
    Ok(Identity::load(&path).map_err(network_error)?.fingerprint())
}

/// The Ed25519 signature of a message under the key of a stored identity.
#[pyfunction]
fn sign_with_identity<'py>(
    py: Python<'py>,
    path: PathBuf,
    message: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let identity = Identity::load(&path).map_err(network_error)?;
    Ok(PyBytes::new(
        py,
        &identity.sign(message).map_err(network_error)?,
    ))
}

/// Whether a signature is that of a message under an Ed25519 key of 32 bytes.
#[pyfunction]
fn verify_ed25519(public_key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    keyquorum_net::verify_ed25519(public_key, message, signature)
}

/// Listens as one party, and tries all others, for at most `seconds`: (peer, what was found) of each. `context`:
/// entries that say what `committee` is a digest of.
#[pyfunction]
#[pyo3(signature = (party, identity_path, peers, committee, seconds, context="doctor"))]
fn probe_committee<'py>(
    py: Python<'py>,
    party: usize,
    identity_path: PathBuf,
    peers: Vec<(String, u16, String)>,
    committee: &[u8],
    seconds: f64,
    context: &str,
) -> PyResult<Vec<(usize, Bound<'py, PyDict>)>> {
    let parties = peers.len();
    let identity = Identity::load(&identity_path).map_err(network_error)?;
    let hello = hello(committee, context.to_owned(), party, parties)?;
    let mut config = TlsConfig::new(party, identity, peer_list(peers)?, hello);
    config.connect_timeout = positive(seconds, "time to look")?;
    let report = py.detach(|| doctor(config)).map_err(network_error)?;
    report
        .probes
        .into_iter()
        .map(|probe| {
            let dict = PyDict::new(py);
            dict.set_item("reachable", probe.reachable)?;
            dict.set_item("version", probe.version)?;
            let security = probe.security.map(|link| {
                format!(
                    "{} {} {}",
                    link.protocol, link.key_exchange, link.cipher_suite
                )
            });
            dict.set_item("security", security)?;
            dict.set_item("clock_offset", probe.clock_offset.unwrap_or(0.0))?;
            dict.set_item(
                "round_trip",
                probe.round_trip.map_or(0.0, |d| d.as_secs_f64()),
            )?;
            dict.set_item("reached_us", report.reached_by.contains(&probe.peer))?;
            dict.set_item("error", probe.problem.map(|e| e.to_string()))?;
            Ok((probe.peer, dict))
        })
        .collect()
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(make_identity, m)?)?;
    m.add_function(wrap_pyfunction!(sign_with_identity, m)?)?;
    m.add_function(wrap_pyfunction!(verify_ed25519, m)?)?;
    m.add_function(wrap_pyfunction!(identity_fingerprint, m)?)?;
    m.add_function(wrap_pyfunction!(probe_committee, m)?)
}
