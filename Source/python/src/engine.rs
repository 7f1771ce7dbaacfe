//! Engines. Longer than 400 lines: PyO3 takes the methods of a class in one block.

use std::sync::{Arc, Mutex};

use keyquorum_math::DomainKind;
use keyquorum_mpc::recording::Step;
use keyquorum_mpc::{
    ClearOp, Engine as CoreEngine, EngineError, EngineStats, Handle, Operands, Operation,
    Preprocessed,
};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use zeroize::Zeroizing;

use crate::circuit::BitCircuit;
use crate::errors::{engine_error, usage};
use crate::operands::{Numbers, Raw, slice};
use crate::recorder::Recorder;
use crate::value::{Value, with_all};

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
    recorder: Mutex<Option<Py<Recorder>>>,
}

type Bytes8<'py> = PyReadonlyArray1<'py, u8>;

/// The operation on clear values that has this sign.
fn clear_op_named(sign: &str) -> Option<ClearOp> {
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
            recorder: Mutex::default(),
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

    fn recorder(&self, py: Python<'_>) -> PyResult<Option<Py<Recorder>>> {
        let recorder = self.recorder.lock();
        let recorder = recorder.map_err(|_| usage("the engine failed in another thread"))?;
        Ok(recorder.as_ref().map(|recorder| recorder.clone_ref(py)))
    }

    /// A call without a step: it ends a recording.
    fn unrecorded<T: Send>(
        &self,
        py: Python<'_>,
        what: &str,
        f: impl FnOnce(&mut dyn CoreEngine) -> Result<T, EngineError> + Send,
    ) -> PyResult<T> {
        if let Some(recorder) = self.recorder(py)? {
            let mut core = recorder.get().lock().map_err(engine_error)?;
            core.fail(format!("{what} cannot be recorded"));
        }
        self.run(py, f)
    }

    /// A clear vector that does not depend on the run.
    fn constant(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut dyn CoreEngine) -> Handle + Send,
    ) -> PyResult<Value> {
        let made = self.run(py, |e| Ok(f(e)))?;
        if let Some(recorder) = self.recorder(py)? {
            let mut core = recorder.get().lock().map_err(engine_error)?;
            core.note_constant(&made);
        }
        Ok(Value::wrap(made))
    }

    /// Does an operation, and records it if there is a recorder.
    fn apply(
        &self,
        py: Python<'_>,
        operation: &Operation,
        target: Option<&Value>,
        values: &[&Value],
        numbers: &[&Numbers<'_>],
    ) -> PyResult<Vec<Value>> {
        if target.is_some_and(|a| values.iter().any(|b| std::ptr::eq(a, *b))) {
            return Err(usage("a vector cannot be assigned to itself"));
        }
        let recorder = self.recorder(py)?;
        let words = numbers.iter().map(|numbers| numbers.words());
        let words = words.collect::<PyResult<Vec<_>>>()?;
        let slots = numbers.iter().map(|n| n.slot(recorder.as_ref()));
        let slots = slots.collect::<PyResult<Vec<_>>>()?;
        let made = with_all(values, |handles| {
            let target = target.map(Value::take).transpose()?;
            self.run(py, |e| {
                let operands = Operands {
                    target,
                    values: handles,
                    numbers: &words,
                };
                match &recorder {
                    None => e.apply(operation, operands),
                    Some(r) => r.get().lock()?.apply(e, operation, operands, &slots),
                }
            })
        })?;
        Ok(made.into_iter().map(Value::wrap).collect())
    }

    /// An operation with one result.
    fn value(
        &self,
        py: Python<'_>,
        operation: &Operation,
        values: &[&Value],
        numbers: &[&Numbers<'_>],
    ) -> PyResult<Value> {
        one(self.apply(py, operation, None, values, numbers)?)
    }

    /// Reads a vector. In a recorded run the result stands for the words that each run reads.
    fn words<'py, T: numpy::Element>(
        &self,
        py: Python<'py>,
        v: &Value,
        read: fn(&mut dyn CoreEngine, &Handle) -> Result<Vec<T>, EngineError>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let recorder = self.recorder(py)?;
        let (words, slot) = v.with(|v| {
            self.run(py, |e| match &recorder {
                None => Ok((read(e, v)?, None)),
                Some(r) => {
                    let (words, slot) = r.get().lock()?.read(e, v, read)?;
                    Ok((words, Some(slot)))
                }
            })
        })?;
        let words = PyArray1::from_vec(py, words);
        match (recorder, slot) {
            (Some(r), Some(slot)) => Recorder::stand_in(r.bind(py), slot.0, words.into_any()),
            _ => Ok(words.into_any()),
        }
    }
}

fn one(made: Vec<Value>) -> PyResult<Value> {
    let made = made.into_iter().next();
    made.ok_or_else(|| usage("an operation made no vector"))
}

#[pymethods]
impl Engine {
    /// Our share of the key of MACs, little endian, as many bytes as an exported word; None for protocols without MACs.
    #[getter]
    fn mac_key<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        // A recording holds no secrets.
        self.unrecorded(py, "mac_key", |_| Ok(()))?;
        let bytes = self.mac_key.map(|key| Zeroizing::new(key.to_le_bytes()));
        Ok(
            bytes
                .map(|bytes| PyBytes::new(py, bytes.get(..self.element_bytes).unwrap_or_default())),
        )
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

    /// Lets a recorder take all calls from now on; `None` ends that. `kept`: clear vectors of the engine that outlive the run.
    #[pyo3(signature = (recorder, kept=vec![]))]
    fn record(&self, recorder: Option<Py<Recorder>>, kept: Vec<PyRef<'_, Value>>) -> PyResult<()> {
        if let Some(recorder) = &recorder {
            let mut core = recorder.get().lock().map_err(engine_error)?;
            for value in kept {
                value.with(|value| {
                    core.note_constant(value);
                    Ok(())
                })?;
            }
        }
        let place = self.recorder.lock();
        *place.map_err(|_| usage("the engine failed in another thread"))? = recorder;
        Ok(())
    }

    /// Records that the run has stored a vector at the end of the share file.
    fn record_store(&self, py: Python<'_>, v: &Value) -> PyResult<()> {
        let Some(recorder) = self.recorder(py)? else {
            return Ok(());
        };
        v.with(|v| {
            self.run(py, |e| {
                recorder.get().lock()?.store(e, v);
                Ok(())
            })
        })
    }

    fn clear(&self, py: Python<'_>, v: Numbers<'_>) -> PyResult<Value> {
        self.value(py, &Operation::Clear, &[], &[&v])
    }

    fn clear_words(&self, py: Python<'_>, v: PyReadonlyArray1<'_, u64>) -> PyResult<Value> {
        let v = slice(&v)?;
        self.constant(py, |e| e.clear_words(v))
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
        self.constant(py, |e| e.clear_wide(&words))
    }

    fn clear_bits(&self, py: Python<'_>, bits: Numbers<'_>) -> PyResult<Value> {
        self.value(py, &Operation::ClearBits, &[], &[&bits])
    }

    fn add(&self, py: Python<'_>, a: &Value, b: &Value) -> PyResult<Value> {
        self.value(py, &Operation::Add, &[a, b], &[])
    }

    fn sub(&self, py: Python<'_>, a: &Value, b: &Value) -> PyResult<Value> {
        self.value(py, &Operation::Sub, &[a, b], &[])
    }

    fn mul(&self, py: Python<'_>, a: &Value, b: &Value) -> PyResult<Value> {
        self.value(py, &Operation::Mul, &[a, b], &[])
    }

    fn neg(&self, py: Python<'_>, a: &Value) -> PyResult<Value> {
        self.value(py, &Operation::Neg, &[a], &[])
    }

    fn dot(&self, py: Python<'_>, a: &Value, b: &Value, length: usize) -> PyResult<Value> {
        self.value(py, &Operation::Dot(length), &[a, b], &[])
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
        let operation = Operation::MatrixProduct {
            rows,
            inner,
            columns,
        };
        self.value(py, &operation, &[a, b], &[])
    }

    fn negacyclic(&self, py: Python<'_>, a: &Value, s: &Value) -> PyResult<Value> {
        self.value(py, &Operation::Negacyclic, &[a, s], &[])
    }

    fn transform(&self, py: Python<'_>, a: &Value, n: usize) -> PyResult<Value> {
        self.value(py, &Operation::Transform(n), &[a], &[])
    }

    fn bit_products(&self, py: Python<'_>, bits: &Value, v: &Value, shift: u32) -> PyResult<Value> {
        self.value(py, &Operation::BitProducts(shift), &[bits, v], &[])
    }

    fn sum(&self, py: Python<'_>, a: &Value, length: usize) -> PyResult<Value> {
        self.value(py, &Operation::Sum(length), &[a], &[])
    }

    fn gather(&self, py: Python<'_>, a: &Value, idx: Numbers<'_>) -> PyResult<Value> {
        self.value(py, &Operation::Gather, &[a], &[&idx])
    }

    fn slice(
        &self,
        py: Python<'_>,
        a: &Value,
        start: i64,
        step: i64,
        count: usize,
    ) -> PyResult<Value> {
        self.value(py, &Operation::Slice { start, step, count }, &[a], &[])
    }

    fn concat(&self, py: Python<'_>, list: Vec<PyRef<'_, Value>>) -> PyResult<Value> {
        let list: Vec<&Value> = list.iter().map(|v| &**v).collect();
        self.value(py, &Operation::Concat, &list, &[])
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
        let inputs: Vec<&Value> = inputs.iter().map(|v| &**v).collect();
        let operation = Operation::Circuit {
            circuit: Arc::clone(&circuit.core),
            size,
            copies,
        };
        self.value(py, &operation, &inputs, &[])
    }

    /// Values of a public table at secret positions.
    fn lookup(
        &self,
        py: Python<'_>,
        hot: &Value,
        at: Numbers<'_>,
        table: Numbers<'_>,
        bits: usize,
        first: usize,
    ) -> PyResult<Value> {
        let operation = Operation::Lookup { bits, first };
        self.value(py, &operation, &[hot], &[&at, &table])
    }

    fn repeat(&self, py: Python<'_>, a: &Value, n: usize) -> PyResult<Value> {
        self.value(py, &Operation::Repeat(n), &[a], &[])
    }

    fn assign(
        &self,
        py: Python<'_>,
        a: &Value,
        start: i64,
        step: i64,
        b: &Value,
    ) -> PyResult<Value> {
        let operation = Operation::Assign { start, step };
        one(self.apply(py, &operation, Some(a), &[b], &[])?)
    }

    fn scatter(&self, py: Python<'_>, a: &Value, idx: Numbers<'_>, b: &Value) -> PyResult<Value> {
        one(self.apply(py, &Operation::Scatter, Some(a), &[b], &[&idx])?)
    }

    fn open(&self, py: Python<'_>, a: &Value) -> PyResult<Value> {
        self.value(py, &Operation::Open, &[a], &[])
    }

    fn open_low(&self, py: Python<'_>, a: &Value, bits: u32) -> PyResult<Value> {
        self.value(py, &Operation::OpenLow(bits), &[a], &[])
    }

    fn open_masked(&self, py: Python<'_>, a: &Value, bits: u32) -> PyResult<Value> {
        self.value(py, &Operation::OpenMasked(bits), &[a], &[])
    }

    fn open_to(&self, py: Python<'_>, a: &Value, player: usize) -> PyResult<Value> {
        self.value(py, &Operation::OpenTo(player), &[a], &[])
    }

    #[pyo3(signature = (player, n, data=None))]
    fn input(
        &self,
        py: Python<'_>,
        player: usize,
        n: usize,
        data: Option<Numbers<'_>>,
    ) -> PyResult<Value> {
        let operation = Operation::Input {
            owner: player,
            count: n,
        };
        self.value(py, &operation, &[], data.as_ref().as_slice())
    }

    #[pyo3(signature = (player, n, data=None))]
    fn input_bits(
        &self,
        py: Python<'_>,
        player: usize,
        n: usize,
        data: Option<Numbers<'_>>,
    ) -> PyResult<Value> {
        let operation = Operation::InputBits {
            owner: player,
            count: n,
        };
        self.value(py, &operation, &[], data.as_ref().as_slice())
    }

    fn random(&self, py: Python<'_>, n: usize) -> PyResult<Value> {
        self.value(py, &Operation::Random(n), &[], &[])
    }

    fn random_bit(&self, py: Python<'_>, n: usize) -> PyResult<Value> {
        self.value(py, &Operation::RandomBit(n), &[], &[])
    }

    fn random_bits(&self, py: Python<'_>, n: usize) -> PyResult<Value> {
        self.value(py, &Operation::RandomBits(n), &[], &[])
    }

    fn shuffle(&self, py: Python<'_>, a: &Value, unit: usize) -> PyResult<Value> {
        self.value(py, &Operation::Shuffle(unit), &[a], &[])
    }

    /// Random m-bit integers and their bits: the sum over bits is right as an integer in the domain.
    fn edabit(&self, py: Python<'_>, m: usize, n: usize) -> PyResult<(Value, Vec<Value>)> {
        let operation = Operation::Edabit {
            length: m,
            count: n,
        };
        let mut made = self.apply(py, &operation, None, &[], &[])?;
        let bits = made.split_off(1.min(made.len()));
        Ok((one(made)?, bits))
    }

    fn bit_to_arith(&self, py: Python<'_>, sb: &Value) -> PyResult<Value> {
        self.value(py, &Operation::BitToArith, &[sb], &[])
    }

    fn summand_bits(&self, py: Python<'_>, s: &Value, m: usize) -> PyResult<Vec<Vec<Value>>> {
        let bits = self.apply(py, &Operation::SummandBits(m), None, &[s], &[])?;
        let mut bits = bits.into_iter();
        let summands = (0..self.summands).map(|_| bits.by_ref().take(m).collect());
        Ok(summands.collect())
    }

    fn xor(&self, py: Python<'_>, a: &Value, b: &Value) -> PyResult<Value> {
        self.value(py, &Operation::Xor, &[a, b], &[])
    }

    fn and_(&self, py: Python<'_>, a: &Value, b: &Value) -> PyResult<Value> {
        self.value(py, &Operation::And, &[a, b], &[])
    }

    fn not_(&self, py: Python<'_>, a: &Value) -> PyResult<Value> {
        self.value(py, &Operation::Not, &[a], &[])
    }

    fn clear_op(&self, py: Python<'_>, op: &str, a: &Value, b: &Value) -> PyResult<Value> {
        let op = clear_op_named(op)
            .ok_or_else(|| usage(format!("unknown operation {op:?} on clear values")))?;
        self.value(py, &Operation::ClearInteger(op), &[a, b], &[])
    }

    fn clear_legendre(&self, py: Python<'_>, a: &Value) -> PyResult<Value> {
        self.value(py, &Operation::ClearLegendre, &[a], &[])
    }

    fn clear_inv(&self, py: Python<'_>, a: &Value) -> PyResult<Value> {
        self.value(py, &Operation::ClearInv, &[a], &[])
    }

    fn read<'py>(&self, py: Python<'py>, v: &Value) -> PyResult<Bound<'py, PyAny>> {
        self.words(py, v, |e, v| e.read(v))
    }

    fn read_bits<'py>(&self, py: Python<'py>, v: &Value) -> PyResult<Bound<'py, PyAny>> {
        self.words(py, v, |e, v| e.read_bits(v))
    }

    fn read_wide<'py>(&self, py: Python<'py>, v: &Value) -> PyResult<Bound<'py, PyBytes>> {
        let words = v.with(|v| self.unrecorded(py, "read_wide", |e| e.read_wide(v)))?;
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        Ok(PyBytes::new(py, &bytes))
    }

    fn export<'py>(&self, py: Python<'py>, v: &Value) -> PyResult<Bound<'py, PyBytes>> {
        let data = v.with(|v| self.unrecorded(py, "export", |e| e.export(v)))?;
        Ok(PyBytes::new(py, &data))
    }

    fn import_(&self, py: Python<'_>, data: Raw<'_>, n: usize) -> PyResult<Value> {
        let recorder = self.recorder(py)?;
        let slot = data.slot(recorder.as_ref())?;
        let data = data.bytes();
        let made = self.run(py, |e| match &recorder {
            None => e.import(data, n),
            Some(r) => r.get().lock()?.import(e, data, n, slot),
        })?;
        Ok(Value::wrap(made))
    }

    /// The origin of what this engine stores, which must be stored with the shares; empty for semi-honest protocols. At all parties.
    fn origin<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let data = self.unrecorded(py, "origin", |e| e.origin())?;
        Ok(PyArray1::from_slice(py, &data))
    }

    /// `origin` with a new name, where products are verified: for every set of share files that is written; at all parties.
    fn renew_origin<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let data = self.unrecorded(py, "renew_origin", |e| e.renew_origin())?;
        Ok(PyArray1::from_slice(py, &data))
    }

    /// Makes sure that all parties have shares of this origin, and that the MAC keys are those under which they were stored; at all parties.
    fn check_origin(&self, py: Python<'_>, origin: Bytes8<'_>) -> PyResult<()> {
        let data = slice(&origin)?;
        self.unrecorded(py, "check_origin", |e| e.check_origin(data))
    }

    /// Binds all that follows to this context, at all parties.
    fn bind_context(&self, py: Python<'_>, text: &[u8]) -> PyResult<()> {
        self.unrecorded(py, "bind_context", |e| {
            e.bind_context(text);
            Ok(())
        })
    }

    /// Whether the MACs of openings under masks are verified together, before something else is opened; at all parties. The end of the deferral verifies all.
    fn defer_checks(&self, py: Python<'_>, deferred: bool) -> PyResult<()> {
        self.unrecorded(py, "defer_checks", |e| e.defer_checks(deferred))
    }

    /// Takes in `n` stored random elements, which hide what is above openings.
    fn give_random(&self, py: Python<'_>, data: Bytes8<'_>, n: usize) -> PyResult<()> {
        let data = slice(&data)?;
        self.unrecorded(py, "give_random", |e| e.give_random(data, n))
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
        self.unrecorded(py, "give_mask", |e| e.give_mask(owner, data, known))
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, |e| e.flush())?;
        if let Some(recorder) = self.recorder(py)? {
            let mut core = recorder.get().lock().map_err(engine_error)?;
            core.note(Step::Flush);
        }
        Ok(())
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
