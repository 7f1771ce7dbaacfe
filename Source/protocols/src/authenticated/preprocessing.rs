//! Correlated randomness of a party: authenticated elements, triples, daBits and edaBits; and what to make next.

use std::collections::BTreeMap;

use keyquorum_math::Element;

use super::edabits::{self, Batch};
use super::silent::{self, Pool};
use super::{Arithmetic, Authenticated, PARTS, bits, dabits, keys, triples, values};
use crate::EdaBits;
use crate::Preprocessed;
use crate::authenticated::binary;
use crate::budget::SUBSET_SUMS;
use crate::error::{EngineError, Result};
use crate::items::Items;
use crate::task::{SendFn, join, within};
use crate::value::Share;

/// Elements and triples are made in multiples of this: OTs come in blocks of 128.
const LEAST: usize = 128;
/// A batch grows with what was used so far, up to these surpluses.
const SURPLUS: usize = 1 << 12;
const SURPLUS_LANES: usize = 1 << 6;
/// Most items of one batch, all peers together: bounds memory (about 15 KB a triple and peer, 60 MB).
const MOST_TRIPLES: usize = 1 << 9;
const MOST_ELEMENTS: usize = 1 << 16;
const MOST_LANES: usize = 1 << 8;
/// Lanes of 64 bits, an even number: OTs come in blocks of 128.
const LEAST_LANES: usize = 4;
const SURPLUS_EDABITS: usize = 1 << 9;
/// EdaBits of one batch: of 64 bits and two parties some 130 MB. Two tests a number and party would be enough from 741,000 on.
const MOST_EDABITS: usize = 1 << 13;

/// EdaBits of one length.
#[derive(Default)]
struct EdaBitItems<E: Element> {
    elements: Items<E, PARTS>,
    /// Their bits: for every 64 numbers a lane a bit.
    bits: Items<u64, { binary::PARTS }>,
}

/// The correlated randomness of a party.
pub(super) struct Preprocessing<E: Element> {
    /// Elements that nobody knows: x, MAC.
    pub randoms: Items<E, PARTS>,
    /// Elements that one party knows, by party: x, MAC, the element (zeros elsewhere).
    inputs: Vec<Items<E, 3>>,
    /// Elements of which these are made, by party.
    pools: Vec<Pool<E>>,
    /// a, b, ab, each with its MAC.
    pub triples: Items<E, 6>,
    /// Number of the triples whose ingredients are being made.
    pub triples_batch: usize,
    /// Random bits, packed.
    bits: Items<u64, { binary::PARTS }>,
    /// The same bits as elements, 64 a lane.
    elements: Items<E, PARTS>,
    /// Lanes of the batch of daBits whose ingredients are being made.
    pub batch: usize,
    /// By length.
    edabits: BTreeMap<usize, EdaBitItems<E>>,
    /// The batch of edaBits whose ingredients are being made.
    pub edabits_batch: Option<Batch>,
}

impl<E: Element> Preprocessing<E> {
    pub fn new(parties: usize) -> Self {
        Self {
            randoms: Items::default(),
            inputs: (0..parties).map(|_| Items::default()).collect(),
            pools: (0..parties).map(|_| Items::default()).collect(),
            triples: Items::default(),
            triples_batch: 0,
            bits: Items::default(),
            elements: Items::default(),
            batch: 0,
            edabits: BTreeMap::new(),
            edabits_batch: None,
        }
    }

    /// Elements that `owner` knows.
    pub fn input(&mut self, owner: usize) -> Result<&mut Items<E, 3>> {
        let parties = self.inputs.len();
        self.inputs
            .get_mut(owner)
            .ok_or_else(|| EngineError::usage(format!("there is no party {owner} among {parties}")))
    }

    /// Elements that `owner` knows, of which its share is the element itself.
    pub fn pool(&mut self, owner: usize) -> Result<&mut Pool<E>> {
        let pool = self.pools.get_mut(owner);
        pool.ok_or_else(|| EngineError::internal("elements of a party that there is not"))
    }

    /// Asks for random bits, in lanes of 64.
    pub fn need_bits(&mut self, lanes: usize) {
        self.bits.need(lanes);
    }

    /// Random bits, packed and as elements.
    pub fn take_bits(&mut self, lanes: usize) -> Result<(Share<u64>, Share<E>)> {
        let bits = self.bits.take(lanes)?;
        let elements = self.elements.take(64 * lanes)?;
        Ok((
            Share { parts: bits.into() },
            Share {
                parts: elements.into(),
            },
        ))
    }

    pub fn put_bits(&mut self, mut bits: Share<u64>, mut elements: Share<E>) -> Result<()> {
        let lanes = bits.len();
        bits.check(binary::PARTS, lanes)?;
        elements.check(PARTS, 64 * lanes)?;
        let bits = std::mem::take(&mut bits.parts).try_into();
        let elements = std::mem::take(&mut elements.parts).try_into();
        let (Ok(bits), Ok(elements)) = (bits, elements) else {
            return Err(EngineError::internal("shares of another protocol"));
        };
        self.bits.put(bits);
        self.elements.put(elements);
        Ok(())
    }

    /// Asks for `n` (a multiple of 64) edaBits of `length` bits.
    pub fn need_edabits(&mut self, length: usize, n: usize) {
        self.edabits.entry(length).or_default().elements.need(n);
    }

    /// EdaBits: random numbers as elements, and the rows of their bits.
    pub fn take_edabits(&mut self, length: usize, n: usize) -> Result<EdaBits<E>> {
        let items = self.edabits.entry(length).or_default();
        let elements = items.elements.take(n)?;
        let packed = Share {
            parts: items.bits.take(length * n / 64)?.into(),
        };
        let rows = (0..length)
            .map(|i| packed.map(|part| part.iter().skip(i).step_by(length).copied().collect()));
        Ok((
            Share {
                parts: elements.into(),
            },
            rows.collect(),
        ))
    }

    pub fn put_edabits(&mut self, mut elements: Share<E>, rows: &[Share<u64>]) -> Result<()> {
        let lanes = elements.len() / 64;
        elements.check(PARTS, 64 * lanes)?;
        for row in rows {
            row.check(binary::PARTS, lanes)?;
        }
        let elements = std::mem::take(&mut elements.parts);
        let elements = elements
            .try_into()
            .map_err(|_| EngineError::internal("shares of another protocol"))?;
        let mut packed = std::array::from_fn(|_| Vec::with_capacity(lanes * rows.len()));
        for (part, all) in packed.iter_mut().enumerate() {
            for i in 0..lanes {
                for row in rows {
                    let lane = row.part(part)?.get(i);
                    all.push(*lane.ok_or_else(EngineError::uneven)?);
                }
            }
        }
        let items = self.edabits.entry(rows.len()).or_default();
        items.elements.put(elements);
        items.bits.put(packed);
        Ok(())
    }

    /// Length and number of the edaBits to make next.
    fn edabits_to_make(&self, most: usize) -> Option<(usize, usize)> {
        let mut wanted = self
            .edabits
            .iter()
            .map(|(length, items)| (*length, items.elements.batch(64, SURPLUS_EDABITS, most)));
        wanted.find(|(_, n)| *n > 0)
    }

    /// Owners and numbers of the elements to make next.
    fn elements_to_make(&self, peers: usize) -> Vec<(Option<usize>, usize)> {
        let most = MOST_ELEMENTS / peers;
        let owned = self.inputs.iter().enumerate();
        let owned = owned.map(|(i, items)| (Some(i), items.batch(LEAST, SURPLUS, most)));
        std::iter::once((None, self.randoms.batch(LEAST, SURPLUS, most)))
            .chain(owned)
            .filter(|(_, n)| *n > 0)
            .collect()
    }

    pub fn preprocessed(&self) -> Vec<Preprocessed> {
        let inputs = self.inputs.iter().map(|items| items.preprocessed("", 1));
        let (made, used) = inputs.fold((0, 0), |(m, u), i| (m + i.made, u + i.used));
        let edabits = self
            .edabits
            .values()
            .map(|n| n.elements.preprocessed("", 1));
        let edabits = edabits.fold((0, 0), |(m, u), i| (m + i.made, u + i.used));
        vec![
            self.triples.preprocessed("triples", 1),
            self.bits.preprocessed("bits", 64),
            self.randoms.preprocessed("random elements", 1),
            Preprocessed {
                name: "input elements",
                made,
                used,
            },
            Preprocessed {
                name: "edabits",
                made: edabits.0,
                used: edabits.1,
            },
        ]
    }
}

/// The next task that makes what is missing. Keys are checked before anything is made under them. Bits come after what they are made of, and edaBits after bits.
pub(super) fn prepare<A: Arithmetic>(
    p: &mut Authenticated<A>,
) -> Result<Option<SendFn<Authenticated<A>, ()>>> {
    if !std::mem::replace(&mut p.keys_checked, true) {
        let elements = keys::check();
        return Ok(Some(match p.bits.key_check() {
            None => elements,
            Some(task) => join(elements, within(task, bits::<A>), |_, (), ()| Ok(())),
        }));
    }
    let peers = p.parties - 1;
    if p.preprocessing.edabits_batch.is_none()
        && let Some((length, n)) = p
            .preprocessing
            .edabits_to_make(MOST_EDABITS / peers / 64 * 64)
    {
        let batch = p.edabits_batch(length, n);
        edabits::need(p, &batch)?;
        p.preprocessing.edabits_batch = Some(batch);
    }
    if p.preprocessing.batch == 0 {
        let most = (MOST_LANES / peers).max(LEAST_LANES);
        p.preprocessing.batch = p.preprocessing.bits.batch(LEAST_LANES, SURPLUS_LANES, most);
        if p.preprocessing.batch > 0 {
            dabits::need(p)?;
        }
    }
    if p.preprocessing.triples_batch == 0 {
        let most = (MOST_TRIPLES / peers).max(LEAST);
        p.preprocessing.triples_batch = p.preprocessing.triples.batch(LEAST, SURPLUS, most);
        if p.preprocessing.triples_batch > 0 {
            triples::need(p, p.preprocessing.triples_batch);
        }
    }
    if let Some(task) = p.bits.prepare()? {
        return Ok(Some(within(task, bits::<A>)));
    }
    if let Some(task) = elements_task(p)? {
        return Ok(Some(task));
    }
    let n = std::mem::take(&mut p.preprocessing.triples_batch);
    if n > 0 {
        return Ok(Some(triples::task(n)));
    }
    let lanes = std::mem::take(&mut p.preprocessing.batch);
    if lanes > 0 {
        return Ok(Some(dabits::task(lanes)));
    }
    Ok(p.preprocessing.edabits_batch.take().map(edabits::task))
}

/// The next step towards the elements that are missing. Many come from pools, which may have to be filled first.
fn elements_task<A: Arithmetic>(
    p: &mut Authenticated<A>,
) -> Result<Option<SendFn<Authenticated<A>, ()>>> {
    let peers = p.parties - 1;
    loop {
        let elements = p.preprocessing.elements_to_make(peers);
        if elements.is_empty() {
            return Ok(None);
        }
        let (pooled, fills) = match p.lpn && silent::fits(p.domain.kind()) {
            true => silent::plan(&p.preprocessing.pools, &elements),
            false => Default::default(),
        };
        if pooled.is_empty() {
            return Ok(Some(values::random_elements(elements)));
        }
        if !fills.is_empty() {
            // The check of the pools takes masks.
            if p.preprocessing.randoms.len() < SUBSET_SUMS {
                return Ok(Some(values::random_elements(vec![(None, LEAST)])));
            }
            p.preprocessing.randoms.need(SUBSET_SUMS);
            return Ok(Some(silent::task(fills)));
        }
        p.take_from_pools(&pooled)?;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;

    fn internal<T>(result: Result<T>) -> bool {
        matches!(result, Err(EngineError::Internal(_)))
    }

    /// Bits that are missing would be zeros in one domain, and something else in the other.
    #[test]
    fn missing_parts_blocked_numbers_of_which_bits_are_missing() {
        let mut items = Preprocessing::<u64>::new(2);
        let rows = |lanes: &[usize]| -> Vec<Share<u64>> {
            let row = |n: &usize| Share::zeros(binary::PARTS, *n);
            lanes.iter().map(row).collect()
        };
        let numbers = |n: usize| Share::zeros(PARTS, n);
        assert!(internal(items.put_edabits(numbers(128), &rows(&[2, 1, 2]))));
        assert!(internal(items.put_edabits(numbers(128), &rows(&[1, 1, 1]))));
        assert!(internal(items.put_edabits(numbers(100), &rows(&[1, 1, 1]))));
        assert!(internal(
            items.put_edabits(Share::zeros(1, 128), &rows(&[2]))
        ));
        let mut short = rows(&[2, 2]);
        short[1].parts.pop();
        assert!(internal(items.put_edabits(numbers(128), &short)));
        let mut given = rows(&[2, 2, 2]);
        for (i, row) in given.iter_mut().enumerate() {
            row.parts[0] = vec![i as u64, 10 + i as u64];
        }
        items.put_edabits(numbers(128), &given).unwrap();
        let (elements, rows) = items.take_edabits(3, 64).unwrap();
        elements.check(PARTS, 64).unwrap();
        let first: Vec<_> = rows.iter().map(|row| row.parts[0].clone()).collect();
        assert_eq!(first, [[10], [11], [12]], "the last are taken first");
    }

    #[test]
    fn missing_parts_blocked_bits_without_their_elements() {
        let mut items = Preprocessing::<u64>::new(2);
        let bits = |parts, lanes| Share::zeros(parts, lanes);
        for (parts, lanes, elements, n) in [
            (binary::PARTS - 1, 2, PARTS, 128),
            (binary::PARTS, 2, 1, 128),
            (binary::PARTS, 2, PARTS, 64),
            (binary::PARTS, 1, PARTS, 128),
        ] {
            let put = items.put_bits(bits(parts, lanes), Share::zeros(elements, n));
            assert!(internal(put));
        }
        let mut uneven = bits(binary::PARTS, 2);
        uneven.parts[3].pop();
        assert!(internal(items.put_bits(uneven, Share::zeros(PARTS, 128))));
        items
            .put_bits(bits(binary::PARTS, 2), Share::zeros(PARTS, 128))
            .unwrap();
        assert!(items.take_bits(2).is_ok());
    }
}
