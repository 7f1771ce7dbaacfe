//! Engines. Longer than 400 lines: PyO3 takes the methods of a class in one block.

use std::sync::Mutex;

use keyquorum_math::DomainKind;
use keyquorum_mpc::{
    ClearOp, Engine as CoreEngine, EngineError, EngineStats, Handle, Preprocessed,
};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use zeroize::Zeroizing;

use crate::circuit::BitCircuit;
use crate::errors::{engine_error, usage};
use crate::value::Value;

/// A computation in one arithmetic domain under one protocol.
#[pyclass(module = "keyquorum._engine", frozen)]
pub struct Engine {
    core: Mutex<Box<dyn CoreEngine>>,
    #[pyo3(get)]
    protocol: String,
    kind: DomainKind,
    #[pyo3(get)]
    party: usize,
    #[pyo3(get)]
    parties: usize,
    #[pyo3(get)]
    threshold: usize,
    #[pyo3(get)]
    has_binary: bool,
    #[pyo3(get)]
    has_edabits: bool,
    #[pyo3(get)]
    has_shuffle: bool,
    #[pyo3(get)]
    summands: usize,
    #[pyo3(get)]
    pub(crate) share_parts: usize,
    #[pyo3(get)]
    element_bytes: usize,
    #[pyo3(get)]
    insecure: bool,
    mac_key: Zeroizing<Option<u128>>,
    /// The counters at the last call of [`Engine::spent`].
    seen: Mutex<(EngineStats, Vec<Preprocessed>)>,
}

type Ints<'py> = PyReadonlyArray1<'py, i64>;
type Bytes8<'py> = PyReadonlyArray1<'py, u8>;

fn slice<'a, T: numpy::Element>(a: &'a PyReadonlyArray1<'_, T>) -> PyResult<&'a [T]> {
    a.as_slice()
        .map_err(|_| usage("vectors must be contiguous: use numpy.ascontiguousarray"))
}

/// The operation on clear values that has this sign.
pub(crate) fn clear_op_named(sign: &str) -> Option<ClearOp> {
    Some(match sign {
        "<<" => ClearOp::Shl,
        ">>" => ClearOp::Shr,
        "%" => ClearOp::Mod,
        "//" => ClearOp::Div,
        "&" => ClearOp::And,
        "|" => ClearOp::Or,
        "^" => ClearOp::Xor,
        _ => return None,
    })
}

impl Engine {
    pub fn wrap(core: Box<dyn CoreEngine>, protocol: String, kind: DomainKind) -> Self {
        let (party, parties) = core.party();
        Self {
            protocol,
            kind,
            party,
            parties,
            threshold: core.threshold(),
            has_binary: core.has_binary(),
            has_edabits: core.has_edabits(),
            has_shuffle: core.has_shuffle(),
            summands: core.summands(),
            share_parts: core.share_parts(),
            element_bytes: core.element_bytes(),
            insecure: core.insecure(),
            mac_key: Zeroizing::new(core.mac_key()),
            seen: Mutex::new((core.stats(), core.preprocessed())),
            core: Mutex::new(core),
        }
    }

    /// Does what takes no time and does not communicate, without letting other threads of Python go on.
    pub(crate) fn at_once<T>(
        &self,
        f: impl FnOnce(&mut dyn CoreEngine) -> Result<T, EngineError>,
    ) -> PyResult<T> {
        let mut core = self
            .core
            .lock()
            .map_err(|_| usage("the engine failed in another thread"))?;
        f(core.as_mut()).map_err(engine_error)
    }

    pub(crate) fn run<T: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut dyn CoreEngine) -> Result<T, EngineError> + Send,
    ) -> PyResult<T> {
        py.detach(|| {
            let mut core = self
                .core
                .lock()
                .map_err(|_| EngineError::Usage("the engine failed in another thread".into()))?;
            f(core.as_mut())
        })
        .map_err(engine_error)
    }

    fn value(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut dyn CoreEngine) -> Result<Handle, EngineError> + Send,
    ) -> PyResult<Value> {
        self.run(py, f).map(Value::wrap)
    }

    fn unary(
        &self,
        py: Python<'_>,
        a: &Value,
        f: impl FnOnce(&mut dyn CoreEngine, &Handle) -> Result<Handle, EngineError> + Send,
    ) -> PyResult<Value> {
        a.with(|a| self.value(py, |e| f(e, a)))
    }

    fn binary(
        &self,
        py: Python<'_>,
        a: &Value,
        b: &Value,
        f: impl FnOnce(&mut dyn CoreEngine, &Handle, &Handle) -> Result<Handle, EngineError> + Send,
    ) -> PyResult<Value> {
        if std::ptr::eq(a, b) {
            return a.with(|a| self.value(py, |e| f(e, a, a)));
        }
        a.with(|a| b.with(|b| self.value(py, |e| f(e, a, b))))
    }

    /// An operation on a list of values, of which one may stand in the list several times.
    fn of_list(
        &self,
        py: Python<'_>,
        list: &[PyRef<'_, Value>],
        f: impl FnOnce(&mut dyn CoreEngine, &[&Handle]) -> Result<Handle, EngineError> + Send,
    ) -> PyResult<Value> {
        // Each lock is taken once.
        let mut unique: Vec<&Value> = Vec::new();
        let mut positions = Vec::with_capacity(list.len());
        for v in list {
            let v: &Value = v;
            let at = unique
                .iter()
                .position(|u| std::ptr::eq(*u, v))
                .unwrap_or_else(|| {
                    unique.push(v);
                    unique.len() - 1
                });
            positions.push(at);
        }
        let guards = unique
            .iter()
            .map(|v| {
                v.handle
                    .lock()
                    .map_err(|_| usage("a value is in use in another thread"))
            })
            .collect::<PyResult<Vec<_>>>()?;
        let handles = positions
            .iter()
            .map(|at| {
                guards
                    .get(*at)
                    .and_then(|g| g.as_ref())
                    .ok_or_else(|| usage("this value was given up by an assignment"))
            })
            .collect::<PyResult<Vec<&Handle>>>()?;
        self.value(py, |e| f(e, &handles))
    }
}

#[pymethods]
impl Engine {
    /// Our share of the key of MACs, little endian, as many bytes as an exported word; None for protocols without MACs.
    #[getter]
    fn mac_key<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let bytes = self.mac_key.map(|key| Zeroizing::new(key.to_le_bytes()));
        bytes.map(|bytes| PyBytes::new(py, bytes.get(..self.element_bytes).unwrap_or_default()))
    }

    /// `Z2^k` or `F_q`.
    #[getter]
    fn domain(&self) -> String {
        self.kind.to_string()
    }

    /// k, or the bit length of q.
    #[getter]
    fn bits(&self) -> u32 {
        match self.kind {
            DomainKind::Bits => 1,
            DomainKind::Z2k(k) => k,
            DomainKind::Fq(q) => 64 - q.leading_zeros(),
            DomainKind::WideFq(q) => 128 - q.leading_zeros(),
        }
    }

    /// The prime, or None.
    #[getter]
    fn modulus(&self) -> Option<u128> {
        match self.kind {
            DomainKind::Fq(q) => Some(q.into()),
            DomainKind::WideFq(q) => Some(q),
            _ => None,
        }
    }

    fn clear(&self, py: Python<'_>, v: Ints<'_>) -> PyResult<Value> {
        let v = slice(&v)?;
        self.value(py, |e| Ok(e.clear(v)))
    }

    fn clear_words(&self, py: Python<'_>, v: PyReadonlyArray1<'_, u64>) -> PyResult<Value> {
        let v = slice(&v)?;
        self.value(py, |e| Ok(e.clear_words(v)))
    }

    fn clear_wide(&self, py: Python<'_>, v: &[u8]) -> PyResult<Value> {
        if !v.len().is_multiple_of(16) {
            return Err(usage("clear_wide takes 16 bytes an element"));
        }
        let words: Vec<i128> = v
            .chunks_exact(16)
            .filter_map(|c| c.first_chunk::<16>())
            .map(|c| i128::from_le_bytes(*c))
            .collect();
        self.value(py, |e| Ok(e.clear_wide(&words)))
    }

    /// base + step·i for i < n; each value `repeat` times, starting again after `wrap` values (0: never).
    #[pyo3(signature = (n, base, step, repeat=1, wrap=0))]
    fn inc(
        &self,
        py: Python<'_>,
        n: usize,
        base: i64,
        step: i64,
        repeat: usize,
        wrap: usize,
    ) -> PyResult<Value> {
        if repeat == 0 {
            return Err(usage("inc needs repeat of at least 1"));
        }
        let v: Vec<i64> = (0..n)
            .map(|i| {
                let j = i / repeat;
                base.wrapping_add(step.wrapping_mul(if wrap == 0 { j } else { j % wrap } as i64))
            })
            .collect();
        self.value(py, |e| Ok(e.clear(&v)))
    }

    fn add(&self, py: Python<'_>, a: &Value, b: &Value) -> PyResult<Value> {
        self.binary(py, a, b, |e, a, b| e.add(a, b))
    }

    fn sub(&self, py: Python<'_>, a: &Value, b: &Value) -> PyResult<Value> {
        self.binary(py, a, b, |e, a, b| e.sub(a, b))
    }

    fn mul(&self, py: Python<'_>, a: &Value, b: &Value) -> PyResult<Value> {
        self.binary(py, a, b, |e, a, b| e.mul(a, b))
    }

    fn neg(&self, py: Python<'_>, a: &Value) -> PyResult<Value> {
        self.unary(py, a, |e, a| e.neg(a))
    }

    fn dot(&self, py: Python<'_>, a: &Value, b: &Value, length: usize) -> PyResult<Value> {
        self.binary(py, a, b, |e, a, b| e.dot(a, b, length))
    }

    fn matrix_product(
        &self,
        py: Python<'_>,
        a: &Value,
        b: &Value,
        rows: usize,
        inner: usize,
        columns: usize,
    ) -> PyResult<Value> {
        self.binary(py, a, b, |e, a, b| {
            e.matrix_product(a, b, (rows, inner, columns))
        })
    }

    fn negacyclic(&self, py: Python<'_>, a: &Value, s: &Value) -> PyResult<Value> {
        self.binary(py, a, s, |e, a, s| e.negacyclic(a, s))
    }

    fn transform(&self, py: Python<'_>, a: &Value, n: usize) -> PyResult<Value> {
        self.unary(py, a, |e, a| e.transform(a, n))
    }

    fn bit_products(&self, py: Python<'_>, bits: &Value, v: &Value, shift: u32) -> PyResult<Value> {
        self.binary(py, bits, v, |e, bits, v| e.bit_products(bits, v, shift))
    }

    fn sum(&self, py: Python<'_>, a: &Value, length: usize) -> PyResult<Value> {
        self.unary(py, a, |e, a| e.sum(a, length))
    }

    fn gather(&self, py: Python<'_>, a: &Value, idx: Ints<'_>) -> PyResult<Value> {
        let idx = slice(&idx)?;
        self.unary(py, a, |e, a| e.gather(a, idx))
    }

    fn bits_gather(&self, py: Python<'_>, a: &Value, idx: Ints<'_>) -> PyResult<Value> {
        self.gather(py, a, idx)
    }

    fn slice(
        &self,
        py: Python<'_>,
        a: &Value,
        start: i64,
        step: i64,
        count: usize,
    ) -> PyResult<Value> {
        self.unary(py, a, |e, a| e.slice(a, start, step, count))
    }

    fn concat(&self, py: Python<'_>, list: Vec<PyRef<'_, Value>>) -> PyResult<Value> {
        self.of_list(py, &list, |e, handles| e.concat(handles))
    }

    /// A Boolean circuit on rows of `size` bits, for `copies` of its inputs.
    fn circuit(
        &self,
        py: Python<'_>,
        circuit: &BitCircuit,
        inputs: Vec<PyRef<'_, Value>>,
        size: usize,
        copies: usize,
    ) -> PyResult<Value> {
        let circuit = &circuit.core;
        self.of_list(py, &inputs, |e, handles| {
            e.circuit(circuit, handles, size, copies)
        })
    }

    /// Values of a public table at secret positions.
    fn lookup(
        &self,
        py: Python<'_>,
        hot: &Value,
        at: Ints<'_>,
        table: Ints<'_>,
        bits: usize,
        first: usize,
    ) -> PyResult<Value> {
        let (at, table) = (slice(&at)?, slice(&table)?);
        self.unary(py, hot, |e, hot| e.lookup(hot, at, table, bits, first))
    }

    fn repeat(&self, py: Python<'_>, a: &Value, n: usize) -> PyResult<Value> {
        self.unary(py, a, |e, a| e.repeat(a, n))
    }

    fn assign(
        &self,
        py: Python<'_>,
        a: &Value,
        start: i64,
        step: i64,
        b: &Value,
    ) -> PyResult<Value> {
        if std::ptr::eq(a, b) {
            return Err(usage("a vector cannot be assigned to itself"));
        }
        b.with(|b| {
            let a = a.take()?;
            self.value(py, |e| e.assign(a, start, step, b))
        })
    }

    fn scatter(&self, py: Python<'_>, a: &Value, idx: Ints<'_>, b: &Value) -> PyResult<Value> {
        if std::ptr::eq(a, b) {
            return Err(usage("a vector cannot be assigned to itself"));
        }
        let idx = slice(&idx)?;
        b.with(|b| {
            let a = a.take()?;
            self.value(py, |e| e.scatter(a, idx, b))
        })
    }

    fn open(&self, py: Python<'_>, a: &Value) -> PyResult<Value> {
        self.unary(py, a, |e, a| e.open(a))
    }

    fn open_low(&self, py: Python<'_>, a: &Value, bits: u32) -> PyResult<Value> {
        self.unary(py, a, |e, a| e.open_low(a, bits))
    }

    fn open_masked(&self, py: Python<'_>, a: &Value, bits: u32) -> PyResult<Value> {
        self.unary(py, a, |e, a| e.open_masked(a, bits))
    }

    fn open_to(&self, py: Python<'_>, a: &Value, player: usize) -> PyResult<Value> {
        self.unary(py, a, |e, a| e.open_to(a, player))
    }

    #[pyo3(signature = (player, n, data=None))]
    fn input(
        &self,
        py: Python<'_>,
        player: usize,
        n: usize,
        data: Option<Ints<'_>>,
    ) -> PyResult<Value> {
        let data = data.as_ref().map(slice).transpose()?;
        self.value(py, |e| e.input(player, n, data))
    }

    #[pyo3(signature = (player, n, data=None))]
    fn input_bits(
        &self,
        py: Python<'_>,
        player: usize,
        n: usize,
        data: Option<Bytes8<'_>>,
    ) -> PyResult<Value> {
        let data = data.as_ref().map(slice).transpose()?;
        self.value(py, |e| e.input_bits(player, n, data))
    }

    fn random(&self, py: Python<'_>, n: usize) -> PyResult<Value> {
        self.value(py, |e| e.random(n))
    }

    fn random_bit(&self, py: Python<'_>, n: usize) -> PyResult<Value> {
        self.value(py, |e| e.random_bit(n))
    }

    fn shuffle(&self, py: Python<'_>, a: &Value, unit: usize) -> PyResult<Value> {
        self.unary(py, a, |e, a| e.shuffle(a, unit))
    }

    fn random_bits(&self, py: Python<'_>, n: usize) -> PyResult<Value> {
        self.value(py, |e| e.random_bits(n))
    }

    /// Random m-bit integers and their bits: the sum over bits is right as an integer in the domain.
    fn edabit(&self, py: Python<'_>, m: usize, n: usize) -> PyResult<(Value, Vec<Value>)> {
        let (sum, bits) = self.run(py, |e| e.edabit(m, n))?;
        Ok((
            Value::wrap(sum),
            bits.into_iter().map(Value::wrap).collect(),
        ))
    }

    /// Random bits in both domains.
    fn dabit(&self, py: Python<'_>, n: usize) -> PyResult<(Value, Value)> {
        let (a, b) = self.run(py, |e| {
            let bits = e.random_bits(n)?;
            Ok((e.bit_to_arith(&bits)?, bits))
        })?;
        Ok((Value::wrap(a), Value::wrap(b)))
    }

    fn bit_to_arith(&self, py: Python<'_>, sb: &Value) -> PyResult<Value> {
        self.unary(py, sb, |e, a| e.bit_to_arith(a))
    }

    fn summand_bits(&self, py: Python<'_>, s: &Value, m: usize) -> PyResult<Vec<Vec<Value>>> {
        let rows = s.with(|s| self.run(py, |e| e.summand_bits(s, m)))?;
        Ok(rows
            .into_iter()
            .map(|summand| summand.into_iter().map(Value::wrap).collect())
            .collect())
    }

    fn clear_bits(&self, py: Python<'_>, bits: Bytes8<'_>) -> PyResult<Value> {
        let bits = slice(&bits)?;
        self.value(py, |e| Ok(e.clear_bits(bits)))
    }

    fn xor(&self, py: Python<'_>, a: &Value, b: &Value) -> PyResult<Value> {
        self.binary(py, a, b, |e, a, b| e.xor(a, b))
    }

    fn and_(&self, py: Python<'_>, a: &Value, b: &Value) -> PyResult<Value> {
        self.binary(py, a, b, |e, a, b| e.and(a, b))
    }

    fn not_(&self, py: Python<'_>, a: &Value) -> PyResult<Value> {
        self.unary(py, a, |e, a| e.not(a))
    }

    fn clear_op(&self, py: Python<'_>, op: &str, a: &Value, b: &Value) -> PyResult<Value> {
        let op = clear_op_named(op)
            .ok_or_else(|| usage(format!("unknown operation {op:?} on clear values")))?;
        self.binary(py, a, b, |e, a, b| e.clear_op(op, a, b))
    }

    fn clear_legendre(&self, py: Python<'_>, a: &Value) -> PyResult<Value> {
        self.unary(py, a, |e, a| e.clear_legendre(a))
    }

    fn clear_inv(&self, py: Python<'_>, a: &Value) -> PyResult<Value> {
        self.unary(py, a, |e, a| e.clear_inv(a))
    }

    fn read<'py>(&self, py: Python<'py>, v: &Value) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let words = v.with(|v| self.run(py, |e| e.read(v)))?;
        Ok(PyArray1::from_vec(py, words))
    }

    fn read_wide<'py>(&self, py: Python<'py>, v: &Value) -> PyResult<Bound<'py, PyBytes>> {
        let words = v.with(|v| self.run(py, |e| e.read_wide(v)))?;
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        Ok(PyBytes::new(py, &bytes))
    }

    fn read_bits<'py>(&self, py: Python<'py>, v: &Value) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let bits = v.with(|v| self.run(py, |e| e.read_bits(v)))?;
        Ok(PyArray1::from_vec(py, bits))
    }

    fn export<'py>(&self, py: Python<'py>, v: &Value) -> PyResult<Bound<'py, PyBytes>> {
        let data = v.with(|v| self.run(py, |e| e.export(v)))?;
        Ok(PyBytes::new(py, &data))
    }

    fn import_(&self, py: Python<'_>, data: &[u8], n: usize) -> PyResult<Value> {
        self.value(py, |e| e.import(data, n))
    }

    /// The test of MAC keys, which must be stored with shares; empty without MACs.
    fn key_test<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let data = self.run(py, |e| e.key_test())?;
        Ok(PyArray1::from_slice(py, &data))
    }

    /// `key_test` with a new name, where products are verified: for every set of share files that is written; at all parties.
    fn renew_key_test<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let data = self.run(py, |e| e.renew_key_test())?;
        Ok(PyArray1::from_slice(py, &data))
    }

    /// Makes sure that the MAC keys are those under which shares were stored with this; at all parties.
    fn test_stored_keys(&self, py: Python<'_>, key_test: Bytes8<'_>) -> PyResult<()> {
        let data = slice(&key_test)?;
        self.run(py, |e| e.test_stored_keys(data))
    }

    /// Binds all that follows to this context, at all parties.
    fn bind_context(&self, py: Python<'_>, text: &[u8]) -> PyResult<()> {
        self.run(py, |e| {
            e.bind_context(text);
            Ok(())
        })
    }

    /// Whether the MACs of openings under masks are verified together, before something else is opened; at all parties. The end of the deferral verifies all.
    fn defer_checks(&self, py: Python<'_>, deferred: bool) -> PyResult<()> {
        self.run(py, |e| e.defer_checks(deferred))
    }

    /// Takes in `n` stored random elements, which hide what is above openings.
    fn give_random(&self, py: Python<'_>, data: Bytes8<'_>, n: usize) -> PyResult<()> {
        let data = slice(&data)?;
        self.run(py, |e| e.give_random(data, n))
    }

    /// Takes in stored random elements that `owner` knows, under which values are opened to it. `known`: those elements at the owner, zeros elsewhere.
    fn give_mask(
        &self,
        py: Python<'_>,
        owner: usize,
        data: Bytes8<'_>,
        known: PyReadonlyArray1<'_, u64>,
    ) -> PyResult<()> {
        let (data, known) = (slice(&data)?, slice(&known)?);
        self.run(py, |e| e.give_mask(owner, data, known))
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, |e| e.flush())
    }

    /// Rounds and payload bytes of this engine so far.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.run(py, |e| Ok(e.stats()))?;
        counters(py, &stats, &EngineStats::default())
    }

    /// Correlated randomness: {name: (made, used)}.
    fn preprocessed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let items = self.run(py, |e| Ok(e.preprocessed()))?;
        let dict = PyDict::new(py);
        for m in items {
            dict.set_item(m.name, (m.made, m.used))?;
        }
        Ok(dict)
    }

    /// The cost since the last call, or since the engine was opened: the counters of [`Engine::stats`], and by how much the unused
    /// correlated randomness has changed, where it has.
    fn spent<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
        let mut seen = self
            .seen
            .lock()
            .map_err(|_| usage("the engine failed in another thread"))?;
        let (stats, items) = self.at_once(|e| Ok((e.stats(), e.preprocessed())))?;
        let (before, left) = &*seen;
        let changed = PyDict::new(py);
        for now in &items {
            let unused = |m: &Preprocessed| m.made as i64 - m.used as i64;
            let before = left.iter().find(|m| m.name == now.name).map_or(0, unused);
            if unused(now) != before {
                changed.set_item(now.name, unused(now) - before)?;
            }
        }
        let counted = counters(py, &stats, before)?;
        *seen = (stats, items);
        Ok((counted, changed))
    }
}

/// Counters by name, from one look to the next.
fn counters<'py>(
    py: Python<'py>,
    now: &EngineStats,
    before: &EngineStats,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("rounds", now.rounds - before.rounds)?;
    dict.set_item("bytes_sent", now.bytes_sent - before.bytes_sent)?;
    dict.set_item("bytes_received", now.bytes_received - before.bytes_received)?;
    dict.set_item("offline_rounds", now.offline_rounds - before.offline_rounds)?;
    dict.set_item(
        "offline_bytes_sent",
        now.offline_bytes_sent - before.offline_bytes_sent,
    )?;
    dict.set_item(
        "offline_bytes_received",
        now.offline_bytes_received - before.offline_bytes_received,
    )?;
    let microseconds = now.offline_nanoseconds / 1000 - before.offline_nanoseconds / 1000;
    dict.set_item("offline_microseconds", microseconds)?;
    Ok(dict)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Engine>()
}
