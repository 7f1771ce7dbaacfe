//! Stocks of authenticated elements, triples and bits shared in both domains, and what to make next.

use std::collections::BTreeMap;

use keyquorum_math::Element;

use super::edabits::{self, Batch};
use super::{Arithmetic, Authenticated, PARTS, bits, dabits, keys, triples, values};
use crate::engine::Material;
use crate::error::{EngineError, Result};
use crate::graph::{SendFn, join, within};
use crate::protocol::WithBits;
use crate::protocol::authenticated::binary;
use crate::protocol::stock::Stock;
use crate::value::Share;

/// Elements and triples are made in multiples of this: OTs come in blocks of 128.
const LEAST: usize = 128;
/// A batch grows with what was used so far, up to these surpluses.
const SURPLUS: usize = 1 << 12;
const SURPLUS_LANES: usize = 1 << 6;
/// What one batch makes at most, all peers together: bounds memory (about 15 KB a triple and peer, 60 MB).
const MOST_TRIPLES: usize = 1 << 9;
const MOST_ELEMENTS: usize = 1 << 16;
const MOST_LANES: usize = 1 << 8;
/// Lanes of 64 bits, an even number: OTs come in blocks of 128.
const LEAST_LANES: usize = 4;
const SURPLUS_NUMBERS: usize = 1 << 9;
/// Of 64 bits and two parties some 130 MB; two tests a number and party would be enough from 741,000 on.
const MOST_NUMBERS: usize = 1 << 13;

/// Random numbers of one length, in both domains.
#[derive(Default)]
struct Numbers<E: Element> {
    elements: Stock<E, PARTS>,
    /// Their bits: for every 64 numbers a lane a bit.
    bits: Stock<u64, { binary::PARTS }>,
}

/// All stocks of a party.
pub(super) struct Supply<E: Element> {
    /// Elements that nobody knows: x, MAC.
    pub randoms: Stock<E, PARTS>,
    /// Elements that one party knows, by party: x, MAC, the element (zeros elsewhere).
    inputs: Vec<Stock<E, 3>>,
    /// a, b, ab, each with its MAC.
    pub triples: Stock<E, 6>,
    /// Number of the triples whose material is being made.
    pub triples_batch: usize,
    /// Random bits, packed.
    bits: Stock<u64, { binary::PARTS }>,
    /// The same bits as elements, 64 a lane.
    elements: Stock<E, PARTS>,
    /// Lanes of the batch of bits whose material is being made.
    pub batch: usize,
    /// By length.
    numbers: BTreeMap<usize, Numbers<E>>,
    /// The batch of numbers whose material is being made.
    pub numbers_batch: Option<Batch>,
}

impl<E: Element> Supply<E> {
    pub fn new(parties: usize) -> Self {
        Self {
            randoms: Stock::default(),
            inputs: (0..parties).map(|_| Stock::default()).collect(),
            triples: Stock::default(),
            triples_batch: 0,
            bits: Stock::default(),
            elements: Stock::default(),
            batch: 0,
            numbers: BTreeMap::new(),
            numbers_batch: None,
        }
    }

    /// Elements that `owner` knows.
    pub fn input(&mut self, owner: usize) -> Result<&mut Stock<E, 3>> {
        let parties = self.inputs.len();
        self.inputs
            .get_mut(owner)
            .ok_or_else(|| EngineError::usage(format!("there is no party {owner} among {parties}")))
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

    /// Asks for `n` (a multiple of 64) random numbers of `length` bits.
    pub fn need_numbers(&mut self, length: usize, n: usize) {
        self.numbers.entry(length).or_default().elements.need(n);
    }

    /// Random numbers: as elements, and the rows of their bits.
    pub fn take_numbers(&mut self, length: usize, n: usize) -> Result<WithBits<E>> {
        let stock = self.numbers.entry(length).or_default();
        let elements = stock.elements.take(n)?;
        let packed = Share {
            parts: stock.bits.take(length * n / 64)?.into(),
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

    pub fn put_numbers(&mut self, mut elements: Share<E>, rows: &[Share<u64>]) -> Result<()> {
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
        let stock = self.numbers.entry(rows.len()).or_default();
        stock.elements.put(elements);
        stock.bits.put(packed);
        Ok(())
    }

    /// Length and number of the numbers to make next.
    fn numbers_to_make(&self, most: usize) -> Option<(usize, usize)> {
        let mut wanted = self
            .numbers
            .iter()
            .map(|(length, stock)| (*length, stock.elements.batch(64, SURPLUS_NUMBERS, most)));
        wanted.find(|(_, n)| *n > 0)
    }

    /// Owners and numbers of the elements to make next.
    fn elements_to_make(&self, peers: usize) -> Vec<(Option<usize>, usize)> {
        let most = MOST_ELEMENTS / peers;
        let owned = self.inputs.iter().enumerate();
        let owned = owned.map(|(i, stock)| (Some(i), stock.batch(LEAST, SURPLUS, most)));
        std::iter::once((None, self.randoms.batch(LEAST, SURPLUS, most)))
            .chain(owned)
            .filter(|(_, n)| *n > 0)
            .collect()
    }

    pub fn material(&self) -> Vec<Material> {
        let inputs = self.inputs.iter().map(|stock| stock.material("", 1));
        let (made, used) = inputs.fold((0, 0), |(m, u), i| (m + i.made, u + i.used));
        let numbers = self.numbers.values().map(|n| n.elements.material("", 1));
        let numbers = numbers.fold((0, 0), |(m, u), i| (m + i.made, u + i.used));
        vec![
            self.triples.material("triples", 1),
            self.bits.material("bits", 64),
            self.randoms.material("random elements", 1),
            Material {
                name: "input elements",
                made,
                used,
            },
            Material {
                name: "edabits",
                made: numbers.0,
                used: numbers.1,
            },
        ]
    }
}

/// The next task that makes what is missing. Keys are checked before anything is made under them. Bits come after what they are made of, and numbers after bits.
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
    if p.supply.numbers_batch.is_none()
        && let Some((length, n)) = p.supply.numbers_to_make(MOST_NUMBERS / peers / 64 * 64)
    {
        let batch = p.numbers_batch(length, n);
        edabits::need(p, &batch)?;
        p.supply.numbers_batch = Some(batch);
    }
    if p.supply.batch == 0 {
        let most = (MOST_LANES / peers).max(LEAST_LANES);
        p.supply.batch = p.supply.bits.batch(LEAST_LANES, SURPLUS_LANES, most);
        if p.supply.batch > 0 {
            dabits::need(p)?;
        }
    }
    if p.supply.triples_batch == 0 {
        let most = (MOST_TRIPLES / peers).max(LEAST);
        p.supply.triples_batch = p.supply.triples.batch(LEAST, SURPLUS, most);
        if p.supply.triples_batch > 0 {
            triples::need(p, p.supply.triples_batch);
        }
    }
    if let Some(task) = p.bits.prepare()? {
        return Ok(Some(within(task, bits::<A>)));
    }
    let elements = p.supply.elements_to_make(peers);
    if !elements.is_empty() {
        return Ok(Some(values::stock(elements)));
    }
    let n = std::mem::take(&mut p.supply.triples_batch);
    if n > 0 {
        return Ok(Some(triples::task(n)));
    }
    let lanes = std::mem::take(&mut p.supply.batch);
    if lanes > 0 {
        return Ok(Some(dabits::task(lanes)));
    }
    Ok(p.supply.numbers_batch.take().map(edabits::task))
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
    fn finding_11_blocked_numbers_of_which_bits_are_missing() {
        let mut supply = Supply::<u64>::new(2);
        let rows = |lanes: &[usize]| -> Vec<Share<u64>> {
            let row = |n: &usize| Share::zeros(binary::PARTS, *n);
            lanes.iter().map(row).collect()
        };
        let numbers = |n: usize| Share::zeros(PARTS, n);
        assert!(internal(
            supply.put_numbers(numbers(128), &rows(&[2, 1, 2]))
        ));
        assert!(internal(
            supply.put_numbers(numbers(128), &rows(&[1, 1, 1]))
        ));
        assert!(internal(
            supply.put_numbers(numbers(100), &rows(&[1, 1, 1]))
        ));
        assert!(internal(
            supply.put_numbers(Share::zeros(1, 128), &rows(&[2]))
        ));
        let mut short = rows(&[2, 2]);
        short[1].parts.pop();
        assert!(internal(supply.put_numbers(numbers(128), &short)));
        let mut given = rows(&[2, 2, 2]);
        for (i, row) in given.iter_mut().enumerate() {
            row.parts[0] = vec![i as u64, 10 + i as u64];
        }
        supply.put_numbers(numbers(128), &given).unwrap();
        let (elements, rows) = supply.take_numbers(3, 64).unwrap();
        elements.check(PARTS, 64).unwrap();
        let first: Vec<_> = rows.iter().map(|row| row.parts[0].clone()).collect();
        assert_eq!(first, [[10], [11], [12]], "the last are taken first");
    }

    #[test]
    fn finding_11_blocked_bits_without_their_elements() {
        let mut supply = Supply::<u64>::new(2);
        let bits = |parts, lanes| Share::zeros(parts, lanes);
        for (parts, lanes, elements, n) in [
            (binary::PARTS - 1, 2, PARTS, 128),
            (binary::PARTS, 2, 1, 128),
            (binary::PARTS, 2, PARTS, 64),
            (binary::PARTS, 1, PARTS, 128),
        ] {
            let put = supply.put_bits(bits(parts, lanes), Share::zeros(elements, n));
            assert!(internal(put));
        }
        let mut uneven = bits(binary::PARTS, 2);
        uneven.parts[3].pop();
        assert!(internal(supply.put_bits(uneven, Share::zeros(PARTS, 128))));
        supply
            .put_bits(bits(binary::PARTS, 2), Share::zeros(PARTS, 128))
            .unwrap();
        assert!(supply.take_bits(2).is_ok());
    }
}
