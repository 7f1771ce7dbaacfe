//! What the steps of a recorded program take: parts of a share file, public and private words.

use std::ops::Range;

use numpy::{
    PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use zeroize::Zeroizing;

use crate::errors::usage;

/// The refusal of a step that does not fit its operation.
pub(crate) fn malformed() -> PyErr {
    usage("a recorded step has other operands than its operation takes")
}

/// A part of a share file, `[components, words]`.
pub(crate) enum Section<'py> {
    Words(PyReadonlyArray2<'py, u64>),
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
            return Ok(Self::Words(array.readonly()));
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

impl Section<'_> {
    fn shape(&self) -> (usize, usize) {
        match self {
            Self::Words(a) => a.as_array().dim(),
            Self::Bytes4(a) => a.as_array().dim(),
            Self::Bytes2(a) => a.as_array().dim(),
            Self::Bytes1(a) => a.as_array().dim(),
        }
    }

    /// Appends words of a component, one after another.
    fn append(&self, part: usize, at: Range<usize>, data: &mut Vec<u8>) -> Option<()> {
        fn copy<W: numpy::Element + Copy + Into<u64>>(
            array: &PyReadonlyArray2<'_, W>,
            part: usize,
            at: Range<usize>,
            data: &mut Vec<u8>,
        ) -> Option<()> {
            let array = array.as_array();
            let row = (part < array.nrows()).then(|| array.row(part))?;
            let first = data.len();
            data.resize(first + 8 * at.len(), 0);
            let (places, _) = data.get_mut(first..)?.as_chunks_mut::<8>();
            if let Some(words) = row.as_slice() {
                for (place, word) in places.iter_mut().zip(words.get(at)?) {
                    *place = (*word).into().to_le_bytes();
                }
            } else {
                for (place, i) in places.iter_mut().zip(at) {
                    *place = (*row.get(i)?).into().to_le_bytes();
                }
            }
            Some(())
        }
        match self {
            Self::Words(a) => copy(a, part, at, data),
            Self::Bytes4(a) => copy(a, part, at, data),
            Self::Bytes2(a) => copy(a, part, at, data),
            Self::Bytes1(a) => copy(a, part, at, data),
        }
    }

    fn word(&self, part: usize, at: usize) -> Option<u64> {
        let place = [part, at];
        match self {
            Self::Words(a) => a.as_array().get(place).copied(),
            Self::Bytes4(a) => a.as_array().get(place).map(|w| u64::from(*w)),
            Self::Bytes2(a) => a.as_array().get(place).map(|w| u64::from(*w)),
            Self::Bytes1(a) => a.as_array().get(place).map(|w| u64::from(*w)),
        }
    }
}

/// The share file and the input of a run.
pub(crate) struct Inputs<'py> {
    sections: Vec<Section<'py>>,
    /// Words of a component of a share.
    width: usize,
    public: Vec<PyReadonlyArray1<'py, i64>>,
    /// The next public word: of which vector, and where in it.
    next: (usize, usize),
    private: PyReadonlyArray1<'py, i64>,
    private_next: usize,
}

impl<'py> Inputs<'py> {
    /// ``width``: words of a component of a share.
    pub(crate) fn new(
        sections: Vec<Section<'py>>,
        width: usize,
        public: Vec<PyReadonlyArray1<'py, i64>>,
        private: PyReadonlyArray1<'py, i64>,
    ) -> Self {
        Self {
            sections,
            width,
            public,
            next: (0, 0),
            private,
            private_next: 0,
        }
    }

    fn word(&self, part: usize, mut at: usize) -> PyResult<u64> {
        for section in &self.sections {
            let (_, words) = section.shape();
            if at < words {
                return section.word(part, at).ok_or_else(|| {
                    usage("the share file has fewer components than its first part")
                });
            }
            at -= words;
        }
        Err(usage(
            "the share file ends before the shares that a recorded program reads",
        ))
    }

    /// Shares one after another in the engine's form: component after component.
    pub(crate) fn range(&self, start: usize, count: usize) -> PyResult<Zeroizing<Vec<u8>>> {
        let (mut at, words) = (start * self.width, count * self.width);
        for section in &self.sections {
            let (parts, length) = section.shape();
            if at < length && at + words <= length {
                let mut data = Zeroizing::new(Vec::with_capacity(8 * parts * words));
                let copied =
                    (0..parts).try_for_each(|part| section.append(part, at..at + words, &mut data));
                return copied.map(|()| data).ok_or_else(malformed);
            }
            if at < length {
                break;
            }
            at -= length;
        }
        self.shares((start..start + count).map(Ok))
    }

    /// Shares in the engine's form: component after component.
    pub(crate) fn shares(
        &self,
        at: impl Iterator<Item = PyResult<usize>> + Clone,
    ) -> PyResult<Zeroizing<Vec<u8>>> {
        let parts = self.sections.first().map_or(0, |s| s.shape().0);
        let mut data = Zeroizing::new(Vec::with_capacity(
            8 * parts * self.width * at.size_hint().0,
        ));
        for part in 0..parts {
            for place in at.clone() {
                let first = place? * self.width;
                for word in first..first + self.width {
                    data.extend_from_slice(&self.word(part, word)?.to_le_bytes());
                }
            }
        }
        Ok(data)
    }

    pub(crate) fn take_private(&mut self, count: usize) -> PyResult<Zeroizing<Vec<i64>>> {
        let words = self.private.as_array();
        let words = words.iter().skip(self.private_next).take(count).copied();
        let words: Zeroizing<Vec<i64>> = Zeroizing::new(words.collect());
        if words.len() < count {
            return Err(usage(
                "the private input ends before the words that a recorded program takes",
            ));
        }
        self.private_next += count;
        Ok(words)
    }

    pub(crate) fn take_public(&mut self, count: usize) -> PyResult<Zeroizing<Vec<i64>>> {
        let mut words = Zeroizing::new(Vec::with_capacity(count));
        while words.len() < count {
            let (part, at) = self.next;
            let Some(vector) = self.public.get(part) else {
                return Err(usage(
                    "the public input ends before the words that a recorded program takes",
                ));
            };
            let vector = vector.as_array();
            let missing = count - words.len();
            words.extend(vector.iter().skip(at).take(missing));
            let end = at + missing.min(vector.len().saturating_sub(at));
            self.next = if end >= vector.len() {
                (part + 1, 0)
            } else {
                (part, end)
            };
        }
        Ok(words)
    }
}
