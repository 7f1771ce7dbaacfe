//! Stocks of authenticated elements, triples and bits shared in both domains, and what to make next.

use keyquorum_math::Element;

use super::{Arithmetic, Authenticated, PARTS, bits, dabits, triples, values};
use crate::engine::Material;
use crate::error::{EngineError, Result};
use crate::graph::{SendFn, within};
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
/// Lanes of 64 bits: buckets of five are enough from here on.
const LEAST_LANES: usize = 4;

/// All stocks of a party.
pub(super) struct Supply<E: Element> {
    /// Elements that nobody knows: x, MAC.
    pub randoms: Stock<E, PARTS>,
    /// Elements that one party knows, by party: x, MAC, the element (zeros elsewhere).
    inputs: Vec<Stock<E, 3>>,
    /// a, b, ab, each with its MAC.
    pub triples: Stock<E, 6>,
    /// Random bits, packed.
    bits: Stock<u64, { binary::PARTS }>,
    /// The same bits as elements, 64 a lane.
    elements: Stock<E, PARTS>,
    /// Lanes of the batch of bits whose material is being made.
    pub batch: usize,
}

impl<E: Element> Supply<E> {
    pub fn new(parties: usize) -> Self {
        Self {
            randoms: Stock::default(),
            inputs: (0..parties).map(|_| Stock::default()).collect(),
            triples: Stock::default(),
            bits: Stock::default(),
            elements: Stock::default(),
            batch: 0,
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
        let bits = std::mem::take(&mut bits.parts).try_into();
        let elements = std::mem::take(&mut elements.parts).try_into();
        let (Ok(bits), Ok(elements)) = (bits, elements) else {
            return Err(EngineError::usage("shares of another protocol"));
        };
        self.bits.put(bits);
        self.elements.put(elements);
        Ok(())
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
        vec![
            self.triples.material("triples", 1),
            self.bits.material("bits", 64),
            self.randoms.material("random elements", 1),
            Material {
                name: "input elements",
                made,
                used,
            },
        ]
    }
}

/// The next task that makes what is missing. Bits come after what they are made of.
pub(super) fn prepare<A: Arithmetic>(
    p: &mut Authenticated<A>,
) -> Result<Option<SendFn<Authenticated<A>, ()>>> {
    let peers = p.parties - 1;
    if p.supply.batch == 0 {
        let most = (MOST_LANES / peers).max(LEAST_LANES);
        p.supply.batch = p.supply.bits.batch(LEAST_LANES, SURPLUS_LANES, most);
        if p.supply.batch > 0 {
            dabits::need(p)?;
        }
    }
    if let Some(task) = p.bits.prepare()? {
        return Ok(Some(within(task, bits::<A>)));
    }
    let elements = p.supply.elements_to_make(peers);
    if !elements.is_empty() {
        return Ok(Some(values::stock(elements)));
    }
    let n = p
        .supply
        .triples
        .batch(LEAST, SURPLUS, (MOST_TRIPLES / peers).max(LEAST));
    if n > 0 {
        return Ok(Some(triples::task(n)));
    }
    let lanes = std::mem::take(&mut p.supply.batch);
    Ok((lanes > 0).then(|| dabits::task(lanes)))
}
