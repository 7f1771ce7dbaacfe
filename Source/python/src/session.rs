//! Sessions.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use keyquorum_math::DomainKind;
use keyquorum_mpc::mac_key::{MOST_CUT_OFFS, MacKeyFile};
use keyquorum_mpc::{
    BaseOt, Check, EngineError, EngineOptions, JointDistribution, JointIntegers as CoreIntegers,
    Openings, Session as CoreSession, ZeroShares as CoreZeroShares, joint_summands,
};
use keyquorum_net::{
    Hello, Identity, LinkShape, LocalTransport, Peer, SetupObserver, TlsConfig, TlsTransport,
    parse_fingerprint,
};
use numpy::PyReadonlyArray2;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict};
use zeroize::Zeroizing;

use crate::engine::Engine;
use crate::errors::{engine_error, network_error, usage};

/// One party's authenticated channels to all others.
#[pyclass(module = "keyquorum._engine", frozen)]
pub struct Session {
    core: CoreSession,
}

impl Session {
    pub fn wrap(core: CoreSession) -> Self {
        Self { core }
    }

    pub(crate) fn core(&self) -> &CoreSession {
        &self.core
    }
}

/// A simulated link: round trip in seconds, bits a second in each direction (None: no limit), whether a party's links share the bandwidth.
type Link = (f64, Option<u64>, bool);

fn link_shape((round_trip, bits_per_second, shared): Link) -> PyResult<LinkShape> {
    let round_trip = Duration::try_from_secs_f64(round_trip)
        .map_err(|_| usage("the round trip of a link must be 0 or a positive number of seconds"))?;
    let shape = LinkShape::new(round_trip, bits_per_second).map_err(network_error)?;
    Ok(if shared { shape.shared() } else { shape })
}

/// `n` sessions in this process, for tests and notebooks; drive each from a thread of its own. `link`: simulated between
/// all of them, (round trip in seconds, bits a second or None, whether a party's links share them).
#[pyfunction]
#[pyo3(signature = (n, timeout=60.0, link=None))]
fn local_sessions(
    py: Python<'_>,
    n: usize,
    timeout: f64,
    link: Option<Link>,
) -> PyResult<Vec<Session>> {
    if n == 0 || n > 64 {
        return Err(usage(format!("{n} parties in one process: take 1 to 64")));
    }
    let timeout = positive(timeout, "timeout")?;
    let shape = link.map(link_shape).transpose()?;
    py.detach(|| {
        let mesh: Vec<LocalTransport> = match shape {
            None => keyquorum_net::local_mesh(n, timeout),
            Some(shape) => {
                keyquorum_net::shaped_local_mesh(n, timeout, shape).map_err(network_error)?
            }
        };
        let handles: Vec<_> = mesh
            .into_iter()
            .map(|transport| std::thread::spawn(move || CoreSession::new(Box::new(transport))))
            .collect();
        joined(handles)
    })
}

/// The check of a name, as tests write it.
fn check_of(name: &str) -> PyResult<Check> {
    let checks = [
        Check::ElementMacs,
        Check::BitMacs,
        Check::SubsetSums,
        Check::ElementKeys,
        Check::StoredKeys,
        Check::OtExtension,
        Check::PuncturedPrfs,
        Check::Commitment,
        Check::Broadcast,
        Check::EdaBits,
        Check::Products,
        Check::Openings,
        Check::SubsetSeeds,
        Check::RecoveredShares,
    ];
    checks
        .into_iter()
        .find(|check| format!("{check:?}") == name)
        .ok_or_else(|| usage(format!("there is no check {name:?}")))
}

/// As `local_sessions`, for tests with adversaries. `tamper`: for each party a function of (receiver, message) that returns the messages that are sent instead, or None for a
/// party that sends what it should. `omitted`: names of checks of which the parties ignore the verdict: the corrupted ones as well, which would not end a run because of what they changed. Only for parties that are all in this process: it has all secrets anyway.
#[pyfunction]
#[pyo3(signature = (tamper, omitted, timeout=60.0))]
fn tampered_sessions(
    py: Python<'_>,
    tamper: Vec<Option<Py<PyAny>>>,
    omitted: Vec<String>,
    timeout: f64,
) -> PyResult<Vec<Session>> {
    let n = tamper.len();
    if n == 0 || n > 64 {
        return Err(usage(format!("{n} parties in one process: take 1 to 64")));
    }
    let timeout = positive(timeout, "timeout")?;
    let omitted = omitted
        .iter()
        .map(|name| check_of(name))
        .collect::<PyResult<Vec<_>>>()?;
    py.detach(|| {
        let handles: Vec<_> = keyquorum_net::local_mesh(n, timeout)
            .into_iter()
            .zip(tamper)
            .map(|(transport, tamper)| {
                let omitted = omitted.clone();
                std::thread::spawn(move || {
                    let transport = transport.tampered(move |to, message| match &tamper {
                        Some(tamper) => sent_instead(tamper, to, message),
                        None => vec![message.to_vec()],
                    });
                    CoreSession::without_checks(transport, omitted)
                })
            })
            .collect();
        joined(handles)
    })
}

/// What `tamper` returns; a function that fails sends nothing, and its error is printed.
fn sent_instead(tamper: &Py<PyAny>, to: usize, message: &[u8]) -> Vec<Vec<u8>> {
    Python::attach(|py| {
        let called = tamper.call1(py, (to, PyBytes::new(py, message)));
        called
            .and_then(|messages| messages.extract(py))
            .unwrap_or_else(|error| {
                error.print(py);
                Vec::new()
            })
    })
}

type Opened = std::thread::JoinHandle<Result<CoreSession, EngineError>>;

/// The sessions that threads have set up.
fn joined(handles: Vec<Opened>) -> PyResult<Vec<Session>> {
    handles
        .into_iter()
        .map(|h| match h.join() {
            Ok(result) => result.map(Session::wrap).map_err(engine_error),
            Err(_) => Err(usage("setting up a session failed")),
        })
        .collect()
}

/// Longest wait that a caller may choose: longer ones do not fit the clock of every system.
const LONGEST_WAIT: Duration = Duration::from_secs(1_000_000_000);

pub(crate) fn positive(seconds: f64, what: &str) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|d| !d.is_zero() && *d <= LONGEST_WAIT)
        .ok_or_else(|| {
            let most = LONGEST_WAIT.as_secs();
            usage(format!(
                "the {what} must be a positive number of seconds, at most {most}"
            ))
        })
}

pub(crate) fn peer_list(peers: Vec<(String, u16, String)>) -> PyResult<Vec<Peer>> {
    peers
        .into_iter()
        .enumerate()
        .map(|(index, (host, port, fingerprint))| {
            let fingerprint = parse_fingerprint(&fingerprint).map_err(network_error)?;
            Ok(Peer {
                index,
                host,
                port,
                fingerprint,
            })
        })
        .collect()
}

pub(crate) fn hello(
    committee: &[u8],
    context: String,
    party: usize,
    parties: usize,
) -> PyResult<Hello> {
    Ok(Hello {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        committee: committee
            .try_into()
            .map_err(|_| usage("a committee digest has 32 bytes"))?,
        context,
        protocol: String::new(),
        domain: String::new(),
        party: party as u32,
        parties: parties as u32,
    })
}

#[pymethods]
impl Session {
    /// Connects to all other parties over mutual TLS 1.3 with pinned certificates. `peers`: (host, port, fingerprint) of
    /// every party, ours included; timeouts in seconds; `link`: simulated to all peers, the same at all parties, (round
    /// trip in seconds, bits a second or None, whether a party's links share them); `waiting`: called about ten times a second with the numbers of the parties that
    /// are missing. What it raises ends the set-up, as Ctrl-C does; the others receive its text.
    #[staticmethod]
    #[pyo3(signature = (party, identity_path, peers, committee, context, listen=None, connect_timeout=30.0, io_timeout=120.0, link=None, waiting=None))]
    #[allow(clippy::too_many_arguments)]
    fn tls(
        py: Python<'_>,
        party: usize,
        identity_path: PathBuf,
        peers: Vec<(String, u16, String)>,
        committee: &[u8],
        context: String,
        listen: Option<String>,
        connect_timeout: f64,
        io_timeout: f64,
        link: Option<Link>,
        waiting: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let parties = peers.len();
        let identity = Identity::load(&identity_path).map_err(network_error)?;
        let mut config = TlsConfig::new(
            party,
            identity,
            peer_list(peers)?,
            hello(committee, context, party, parties)?,
        );
        config.listen = listen
            .map(|text| {
                text.parse().map_err(|_| {
                    usage(format!(
                        "{text:?} is no address to listen on: write IP:PORT"
                    ))
                })
            })
            .transpose()?;
        config.connect_timeout = positive(connect_timeout, "connect timeout")?;
        config.io_timeout = positive(io_timeout, "i/o timeout")?;
        config.shape = link.map(link_shape).transpose()?;
        let raised: Arc<Mutex<Option<PyErr>>> = Arc::default();
        let noted = Arc::clone(&raised);
        config.observer = Some(SetupObserver::new(move |missing| {
            Python::attach(|py| {
                let called = match (py.check_signals(), &waiting) {
                    (Ok(()), Some(waiting)) => waiting.call1(py, (missing.to_vec(),)).map(drop),
                    (checked, _) => checked,
                };
                called.map_err(|error| {
                    let reason = if error.is_instance_of::<PyKeyboardInterrupt>(py) {
                        format!("party {party} was interrupted")
                    } else {
                        error.value(py).to_string()
                    };
                    *noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    reason
                })
            })
        }));
        py.detach(|| {
            let transport = TlsTransport::connect(config).map_err(|error| {
                let raised = raised.lock().unwrap_or_else(PoisonError::into_inner).take();
                raised.unwrap_or_else(|| network_error(error))
            })?;
            CoreSession::new(Box::new(transport))
                .map(Self::wrap)
                .map_err(engine_error)
        })
    }

    /// Our number.
    #[getter]
    fn party(&self) -> usize {
        self.core.party()
    }

    /// Number of parties.
    #[getter]
    fn parties(&self) -> usize {
        self.core.parties()
    }

    /// Opens an engine; all parties must ask for the same.
    #[pyo3(signature = (protocol, domain, program="", threshold=None, seed=None))]
    fn engine(
        &self,
        py: Python<'_>,
        protocol: &str,
        domain: &str,
        program: &str,
        threshold: Option<usize>,
        seed: Option<Vec<u8>>,
    ) -> PyResult<Engine> {
        let kind: DomainKind = domain
            .parse()
            .map_err(|e: keyquorum_math::ParseDomainError| usage(e.to_string()))?;
        let options = EngineOptions {
            program: program.to_owned(),
            threshold,
            insecure_seed: seed,
        };
        let engine = py
            .detach(|| self.core.engine(protocol, kind, &options))
            .map_err(engine_error)?;
        Ok(Engine::wrap(engine, protocol.to_owned(), kind))
    }

    /// Draws joint integers, numbers that several domains need: each is the sum of `joint_summands` numbers, of which each is the sum of `terms`
    /// uniform in [0, 2^bits), or with `bits` 0 uniform in {0, 1, 2}. All parties ask for the same, in the same order as they open engines.
    #[pyo3(signature = (protocol, count, bits, terms=1, threshold=None, seed=None))]
    #[allow(clippy::too_many_arguments)]
    fn joint_integers(
        &self,
        py: Python<'_>,
        protocol: &str,
        count: usize,
        bits: u32,
        terms: u32,
        threshold: Option<usize>,
        seed: Option<Vec<u8>>,
    ) -> PyResult<JointIntegers> {
        let law = match bits {
            0 => JointDistribution::Trit,
            bits => JointDistribution::Uniform { bits, terms },
        };
        let options = EngineOptions {
            program: String::new(),
            threshold,
            insecure_seed: seed,
        };
        let core = py
            .detach(|| self.core.joint_integers(protocol, count, law, &options))
            .map_err(engine_error)?;
        Ok(JointIntegers { core })
    }

    /// Says that the parties are members `numbers` of a committee of `size`: they hold Shamir's shares at the points of these. Before the first engine.
    fn set_members(&self, numbers: Vec<usize>, size: usize) -> PyResult<()> {
        self.core.set_members(&numbers, size).map_err(engine_error)
    }

    /// Seeds of shares of zero for a protocol's sharing, and the tossed name of a new epoch. All parties call this, in the same order as they open engines.
    #[pyo3(signature = (protocol, threshold=None, seed=None))]
    fn zero_shares(
        &self,
        py: Python<'_>,
        protocol: &str,
        threshold: Option<usize>,
        seed: Option<Vec<u8>>,
    ) -> PyResult<ZeroShares> {
        let options = EngineOptions {
            program: String::new(),
            threshold,
            insecure_seed: seed,
        };
        let core = py
            .detach(|| self.core.zero_shares(protocol, &options))
            .map_err(engine_error)?;
        Ok(ZeroShares { core })
    }

    /// Sets the key of our MACs (16 secret bytes), before the first engine that has MACs; `file`: where it is kept, beside which is
    /// kept whether it is burned. This session alone has it until `close` or `abort`.
    #[pyo3(signature = (key, file=None))]
    fn set_mac_key(&self, key: &[u8], file: Option<PathBuf>) -> PyResult<()> {
        let key = <[u8; 16]>::try_from(key)
            .map_err(|_| usage(format!("a key of MACs has 16 bytes, not {}", key.len())))?;
        self.core
            .set_mac_key(key, file.as_deref())
            .map_err(engine_error)
    }

    /// Before another program computes under our MAC keys: a session that ends before `end_under_mac_key` burns them.
    fn begin_under_mac_key(&self) -> PyResult<()> {
        self.core.begin_under_mac_key().map_err(engine_error)
    }

    /// The other program ended well, or never met those of the others.
    fn end_under_mac_key(&self) -> PyResult<()> {
        self.core.end_under_mac_key().map_err(engine_error)
    }

    /// Burns our MAC keys: a check failed in another program that computed under them. Returns what was done.
    fn burn_mac_key(&self, cause: &str) -> String {
        self.core.burn_mac_key(cause)
    }

    /// How engines with additive shares open values from now on: `direct` or `star`; the same at all parties.
    fn set_openings(&self, openings: &str) -> PyResult<()> {
        let openings = [Openings::Direct, Openings::King]
            .into_iter()
            .find(|known| known.name() == openings)
            .ok_or_else(|| usage(format!("openings are direct or star, not {openings:?}")))?;
        self.core.set_openings(openings).map_err(engine_error)
    }

    /// How links of oblivious transfer that are set up from now on begin: `curve25519` or `ml-kem`; the same at all parties.
    fn set_base_ot(&self, base_ot: &str) -> PyResult<()> {
        let base_ot = BaseOt::ALL
            .into_iter()
            .find(|known| known.name() == base_ot)
            .ok_or_else(|| usage(format!("base OT is curve25519 or ml-kem, not {base_ot:?}")))?;
        self.core.set_base_ot(base_ot).map_err(engine_error)
    }

    /// Whether engines with MACs assume learning parity with noise from now on; the same at all parties.
    fn set_lpn(&self, lpn: bool) -> PyResult<()> {
        self.core.set_lpn(lpn).map_err(engine_error)
    }

    /// Compares a digest with all parties.
    fn compare(&self, py: Python<'_>, label: &str, digest: &[u8]) -> PyResult<()> {
        py.detach(|| self.core.compare(label, digest))
            .map_err(engine_error)
    }

    /// Everyone sends its bytes to everyone.
    fn all_gather<'py>(&self, py: Python<'py>, data: &[u8]) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let all = py
            .detach(|| self.core.all_gather(data))
            .map_err(engine_error)?;
        Ok(all.iter().map(|d| PyBytes::new(py, d)).collect())
    }

    /// A joint coin toss: commit, then open.
    fn toss<'py>(&self, py: Python<'py>, nbytes: usize) -> PyResult<Bound<'py, PyBytes>> {
        let out = py.detach(|| self.core.toss(nbytes)).map_err(engine_error)?;
        Ok(PyBytes::new(py, &out))
    }

    /// A session among some of our parties, numbered in the order of `members`; only they call this. `apart`: failed checks of this session do not burn its MAC keys.
    #[pyo3(signature = (members, apart = false))]
    fn subgroup(&self, py: Python<'_>, members: Vec<usize>, apart: bool) -> PyResult<Self> {
        let core = py
            .detach(|| match apart {
                true => self.core.subgroup_apart(&members),
                false => self.core.subgroup(&members),
            })
            .map_err(engine_error)?;
        Ok(Self::wrap(core))
    }

    /// Sends bytes to one party.
    fn send(&self, py: Python<'_>, to: usize, data: &[u8]) -> PyResult<()> {
        py.detach(|| self.core.send(to, data)).map_err(engine_error)
    }

    /// Receives bytes of one party.
    fn recv<'py>(
        &self,
        py: Python<'py>,
        frm: usize,
        max_len: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let data = py
            .detach(|| self.core.receive(frm, max_len))
            .map_err(engine_error)?;
        Ok(PyBytes::new(py, &data))
    }

    /// Traffic so far.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.core.stats().map_err(engine_error)?;
        let dict = PyDict::new(py);
        dict.set_item("rounds", stats.rounds)?;
        dict.set_item("bytes_sent", stats.bytes_sent)?;
        dict.set_item("bytes_received", stats.bytes_received)?;
        dict.set_item("messages", stats.messages)?;
        Ok(dict)
    }

    /// Sends all others the reason why we stop.
    fn abort(&self, py: Python<'_>, reason: &str) {
        py.detach(|| self.core.abort(reason));
    }

    /// Orderly end.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.core.close());
    }
}

/// Refuses the MAC key at `path` (which need not be there) if it is burned.
#[pyfunction]
fn check_mac_key(path: PathBuf) -> PyResult<()> {
    MacKeyFile::new(&path).check().map_err(engine_error)
}

/// Of the MAC key at `path` (which need not be there): challenges that were cut off, and checks that the next session finishes.
#[pyfunction]
fn mac_key_wear(path: PathBuf) -> PyResult<(u32, usize)> {
    let wear = MacKeyFile::new(&path).wear().map_err(engine_error)?;
    Ok((wear.cut_offs, wear.unfinished))
}

/// Burns the MAC key at `path`: a check failed under it. Returns what was done.
#[pyfunction]
fn burn_mac_key(path: PathBuf, cause: &str) -> String {
    MacKeyFile::new(&path).burn(cause)
}

/// One party's part of a vector of joint integers.
#[pyclass(module = "keyquorum._engine", frozen)]
pub struct JointIntegers {
    core: CoreIntegers,
}

pub(crate) fn domain_of(domain: &str) -> PyResult<DomainKind> {
    domain
        .parse()
        .map_err(|e: keyquorum_math::ParseDomainError| usage(e.to_string()))
}

#[pymethods]
impl JointIntegers {
    fn __len__(&self) -> usize {
        self.core.len()
    }

    /// The public name under which shares of these integers are stored, where protocols verify products: 16 bytes, the same at all parties.
    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.core.name().map(|name| PyBytes::new(py, name))
    }

    /// Our shares of the integers `start` .. `start + count - 1` (default: to the end) in a domain, as share files have them.
    #[pyo3(signature = (domain, start=0, count=None))]
    fn shares<'py>(
        &self,
        py: Python<'py>,
        domain: &str,
        start: usize,
        count: Option<usize>,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let count = count.unwrap_or_else(|| self.core.len().saturating_sub(start));
        let shares = py.detach(|| {
            self.core
                .shares(domain_of(domain)?, start, count)
                .map_err(engine_error)
        })?;
        Ok(PyByteArray::new(py, &shares))
    }

    /// The summands that this party knows, by their numbers: those of the sets of parties that it is in.
    #[getter]
    fn known(&self) -> Vec<usize> {
        self.core.known()
    }

    /// Summand number `summand` of each integer, little-endian words of 64 bits: all members of its set have the same.
    fn numbers<'py>(&self, py: Python<'py>, summand: usize) -> PyResult<Bound<'py, PyByteArray>> {
        let numbers = self.core.numbers(summand).map_err(engine_error)?;
        let words = Zeroizing::new(numbers.iter().map(|x| x.to_le_bytes()).collect::<Vec<_>>());
        Ok(PyByteArray::new(py, words.as_flattened()))
    }

    /// Our shares of sums of integers that the members of each set computed from its numbers, as share files have them. `computed`: those of every summand in `known`, [summands, integers].
    fn shares_of<'py>(
        &self,
        py: Python<'py>,
        domain: &str,
        computed: PyReadonlyArray2<'py, i64>,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        // Row after row: `PyReadonlyArray::as_slice` takes columns for rows where an array has Fortran's order.
        let (kind, view) = (domain_of(domain)?, computed.as_array());
        let (count, rows) = (view.ncols(), view.as_slice());
        let all = rows.ok_or_else(|| {
            usage("arrays must be contiguous, row after row: use numpy.ascontiguousarray")
        })?;
        let shares = py.detach(|| {
            let rows: Vec<&[i64]> = all.chunks_exact(count.max(1)).collect();
            self.core.shares_of(kind, &rows).map_err(engine_error)
        })?;
        Ok(PyByteArray::new(py, &shares))
    }

    /// Our shares of bit `place` of summand number `summand` of each integer, as share files have them.
    fn bits<'py>(
        &self,
        py: Python<'py>,
        domain: &str,
        summand: usize,
        place: u32,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let shares = py.detach(|| {
            self.core
                .bits(domain_of(domain)?, summand, place)
                .map_err(engine_error)
        })?;
        Ok(PyByteArray::new(py, &shares))
    }

    /// Our shares of the bits [r = value], where r is summand number `summand` of each integer.
    fn indicators<'py>(
        &self,
        py: Python<'py>,
        domain: &str,
        summand: usize,
        value: u64,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let kind = domain_of(domain)?;
        let shares = self
            .core
            .indicators(kind, summand, value)
            .map_err(engine_error)?;
        Ok(PyByteArray::new(py, &shares))
    }
}

/// Shares of zero of one session, which are added to shares of keys.
#[pyclass(module = "keyquorum._engine", frozen)]
pub struct ZeroShares {
    core: CoreZeroShares,
}

#[pymethods]
impl ZeroShares {
    /// The name that the parties tossed, 16 bytes.
    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.core.name())
    }

    /// Our shares of a vector, as share files have them, with shares of zero added. `label`: of the vector, never the same for two vectors.
    fn refreshed<'py>(
        &self,
        py: Python<'py>,
        domain: &str,
        label: &[u8],
        shares: &[u8],
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let kind = domain_of(domain)?;
        let new = py
            .detach(|| self.core.refreshed(kind, label, shares))
            .map_err(engine_error)?;
        Ok(PyByteArray::new(py, &new))
    }
}

/// Summands of joint integers of a protocol among so many parties; 0 where it has none.
#[pyfunction]
#[pyo3(name = "joint_summands", signature = (protocol, parties, threshold=None))]
fn summands_of_joint(protocol: &str, parties: usize, threshold: Option<usize>) -> PyResult<usize> {
    joint_summands(protocol, parties, threshold).map_err(engine_error)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Session>()?;
    m.add_class::<JointIntegers>()?;
    m.add_class::<ZeroShares>()?;
    m.add_function(wrap_pyfunction!(summands_of_joint, m)?)?;
    m.add("MOST_CUT_OFFS", MOST_CUT_OFFS)?;
    m.add_function(wrap_pyfunction!(mac_key_wear, m)?)?;
    m.add_function(wrap_pyfunction!(check_mac_key, m)?)?;
    m.add_function(wrap_pyfunction!(burn_mac_key, m)?)?;
    m.add_function(wrap_pyfunction!(tampered_sessions, m)?)?;
    m.add_function(wrap_pyfunction!(local_sessions, m)?)
}
