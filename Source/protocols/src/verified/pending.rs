//! Products that wait for their check.

use std::collections::VecDeque;
use std::mem::take;

use keyquorum_math::Element;

use super::Gf64;
use crate::error::{EngineError, Result};
use crate::lane_bits;
use crate::value::{Share, same};

/// Terms that may wait before they are verified, and terms of one check: 2^20, some 50 MB. A round may add 2^22 elements; they are verified piece by piece then.
pub(super) const MOST_PENDING: usize = 1 << 20;

/// The same of packed bits: 2^24, some 50 MB, too.
pub(super) const MOST_BITS: usize = 1 << 24;

/// Inner products of consecutive groups of `length` elements, and what they should be.
pub struct Product<E: Element> {
    /// The first operands.
    pub x: Share<E>,
    /// The second operands.
    pub y: Share<E>,
    /// The results, one a group.
    pub z: Share<E>,
    /// Elements of a group.
    pub length: usize,
}

impl<E: Element> Product<E> {
    /// Elements of each operand.
    pub fn terms(&self) -> usize {
        self.x.len()
    }

    /// Fails unless the lengths belong together: what is left out would not be verified.
    fn checked(self) -> Result<Self> {
        let (n, parts) = (self.x.len(), self.x.parts.len());
        self.x.check(parts, n)?;
        self.y.check(parts, n)?;
        self.z.check(parts, self.z.len())?;
        if self.z.len().checked_mul(self.length) != Some(n) {
            return Err(EngineError::uneven());
        }
        Ok(self)
    }

    /// Groups `from..to`.
    fn groups(&self, from: usize, to: usize) -> Result<Self> {
        let terms = from * self.length..to * self.length;
        Ok(Self {
            x: self.x.range(terms.clone())?,
            y: self.y.range(terms)?,
            z: self.z.range(from..to)?,
            length: self.length,
        })
    }
}

impl Product<u64> {
    /// Products of packed bits, as products of elements 0 and 1 of GF(2^64). Lanes past the end of a vector are products as well.
    pub fn unpacked(self) -> Result<Self> {
        if self.length != 1 {
            return Err(EngineError::internal("inner products of packed bits"));
        }
        let bits =
            |share: &Share<u64>| share.try_map(|part| lane_bits(&Gf64, part, 64 * part.len()));
        Ok(Self {
            x: bits(&self.x)?,
            y: bits(&self.y)?,
            z: bits(&self.z)?,
            length: 1,
        })
    }
}

/// The products of a kind that wait, in the order in which they were computed.
pub(super) struct Pending<E: Element> {
    products: VecDeque<Product<E>>,
    /// Terms of an element.
    unit: usize,
    /// Terms that may wait, and terms of one check.
    most: usize,
    elements: usize,
}

impl<E: Element> Pending<E> {
    /// None yet; each element stands for `unit` terms. `most`: terms that may wait.
    pub fn new(unit: usize, most: usize) -> Self {
        Self {
            products: VecDeque::new(),
            unit,
            most,
            elements: 0,
        }
    }

    /// Terms that wait.
    pub fn terms(&self) -> usize {
        self.elements * self.unit
    }

    /// Whether more wait than may.
    pub fn overflows(&self) -> bool {
        self.terms() > self.most
    }

    /// Adds products, cut into pieces of at most so many terms as may wait, or one group.
    pub fn push(&mut self, product: Product<E>) -> Result<()> {
        let product = product.checked()?;
        self.elements += product.terms();
        let (groups, most) = (product.z.len(), self.most / self.unit);
        if product.terms() <= most {
            self.products.extend((groups > 0).then_some(product));
            return Ok(());
        }
        let step = (most / product.length).max(1);
        for from in (0..groups).step_by(step) {
            let piece = product.groups(from, (from + step).min(groups))?;
            self.products.push_back(piece);
        }
        Ok(())
    }

    /// Takes the oldest products, of at most so many terms together as may wait, or one piece.
    pub fn take(&mut self) -> Vec<Product<E>> {
        let (mut taken, mut terms) = (Vec::new(), 0);
        while let Some(product) = self.products.pop_front() {
            let more = self.unit * product.terms();
            if terms > 0 && terms + more > self.most {
                self.products.push_front(product);
                break;
            }
            terms += more;
            self.elements -= product.terms();
            taken.push(product);
        }
        taken
    }
}

/// Products one after another: all operands, all results, and the lengths of the groups.
pub(super) struct Joined<E: Element> {
    pub x: Share<E>,
    pub y: Share<E>,
    pub z: Share<E>,
    /// Numbers of groups, and their length.
    groups: Vec<(usize, usize)>,
}

impl<E: Element> Joined<E> {
    /// All of these products, of which there is at least one.
    pub fn new(products: Vec<Product<E>>) -> Result<Self> {
        let none = || EngineError::internal("a check of no products");
        let parts = products.first().ok_or_else(none)?.x.parts.len();
        let terms: usize = products.iter().map(Product::terms).sum();
        let results = products.iter().map(|product| product.z.len()).sum();
        let groups = products.iter().map(|p| (p.z.len(), p.length)).collect();
        if let [_] = products.as_slice() {
            let mut only = products;
            let Product { x, y, z, .. } = only.pop().ok_or_else(none)?;
            return Ok(Self { x, y, z, groups });
        }
        // Full capacity from the start: a vector that grows leaves a copy of its secrets behind.
        let empty = |n| Share {
            parts: (0..parts).map(|_| Vec::with_capacity(n)).collect(),
        };
        let (mut x, mut y, mut z) = (empty(terms), empty(terms), empty(results));
        for product in products {
            x.append(&product.x)?;
            y.append(&product.y)?;
            z.append(&product.z)?;
        }
        Ok(Self { x, y, z, groups })
    }

    /// Factors of the `terms` terms, from those of the groups.
    pub fn spread(&self, factors: Vec<E>, terms: usize) -> Result<Vec<E>> {
        if self.groups.iter().all(|(_, length)| *length == 1) {
            return Ok(factors);
        }
        let mut all = factors;
        let mut rest = take(&mut all).into_iter();
        for (count, length) in &self.groups {
            for factor in rest.by_ref().take(*count) {
                all.extend(std::iter::repeat_n(factor, *length));
            }
        }
        same(all.len(), terms)?;
        Ok(all)
    }
}
