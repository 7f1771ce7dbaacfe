//! Recorded programs for Python, played by the interpreter of the engine.

use keyquorum_mpc::EngineError;
use keyquorum_mpc::recording::{self as core, Inputs, Output};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::engine::Engine;
use crate::errors::usage;
use crate::inputs::{Section, stored};
use crate::recorder::Recorder;

/// A recorded program. It is played on the engine on which it was recorded.
#[pyclass(module = "keyquorum._engine", frozen)]
pub struct Recording {
    core: core::Recording,
}

type Shares<'py> = Bound<'py, numpy::PyArray2<u64>>;
type Written<'py> = (Option<usize>, bool, Bound<'py, PyArray1<i64>>);

#[pymethods]
impl Recording {
    /// The recording of all steps of a recorder, which has none afterwards; None if the recording has ended before.
    #[staticmethod]
    fn of(recorder: &Recorder) -> PyResult<Option<Self>> {
        let core = recorder.with(|core| match core.failure() {
            None => std::mem::take(core).finish(),
            Some(_) => None,
        })?;
        Ok(core.map(|core| Self { core }))
    }

    fn __len__(&self) -> usize {
        self.core.steps().count()
    }

    /// The steps as text, for messages and tests.
    fn __repr__(&self) -> String {
        let steps = self.core.steps().map(|step| format!("{step:?}\n"));
        steps.collect()
    }

    /// Whether a step has to do with the share file.
    #[getter]
    fn uses_shares(&self) -> bool {
        self.core.uses_shares()
    }

    /// Whether a step prints.
    #[getter]
    fn prints(&self) -> bool {
        self.core.prints()
    }

    /// All constants: of vectors, of numbers, and bytes of shares.
    fn constants(&self, engine: &Engine) -> PyResult<Vec<Vec<i128>>> {
        engine.at_once(|e| self.core.constants(e))
    }

    /// Does the steps. ``sections``: parts of the share file, [components, words]; ``width``: words of a component of a share; ``public``,
    /// ``private``: the input; ``print``: takes texts when their steps come. Returns the shares that go to the end of the share file, and the
    /// output: (party or None, whether it was revealed to us alone, words).
    #[allow(clippy::too_many_arguments)] // the parts of an input
    fn play<'py>(
        &self,
        py: Python<'py>,
        engine: &Engine,
        sections: Vec<Section<'py>>,
        width: usize,
        public: Vec<PyReadonlyArray1<'py, i64>>,
        private: PyReadonlyArray1<'py, i64>,
        print: Py<PyAny>,
    ) -> PyResult<(Vec<Shares<'py>>, Vec<Written<'py>>)> {
        let contiguous = |_| usage("vectors must be contiguous: use numpy.ascontiguousarray");
        let public = public.iter().map(|words| words.as_slice());
        let inputs = Inputs {
            sections: sections
                .iter()
                .map(Section::words)
                .collect::<PyResult<_>>()?,
            width,
            public: public.collect::<Result<_, _>>().map_err(contiguous)?,
            private: private.as_slice().map_err(contiguous)?,
        };
        let mut refused = None;
        let mut show = |text: &str| {
            Python::attach(|py| print.call1(py, (text,)))
                .map(|_| ())
                .map_err(|error| {
                    refused = Some(error);
                    EngineError::usage("a text was not printed")
                })
        };
        let played = engine.run(py, |e| self.core.play(e, &inputs, &mut show));
        if let Some(error) = refused {
            return Err(error);
        }
        let played = played?;
        let outputs = played.outputs.iter().map(|output| match output {
            Output::Public { party, words } => (*party, false, PyArray1::from_slice(py, words)),
            Output::Personal(words) => (None, true, PyArray1::from_slice(py, words)),
        });
        let outputs = outputs.collect();
        // Arrays are the caller's to wipe, so there are none before all went well.
        let parts = engine.share_parts;
        let shares = played.stored.iter().map(|data| stored(py, data, parts));
        Ok((shares.collect(), outputs))
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Recording>()
}
