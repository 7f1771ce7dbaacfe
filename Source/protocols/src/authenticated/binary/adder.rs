//! Sums of numbers whose bits are shared: a ripple of carries, one AND and one round a bit. Batches are large, so the number of ANDs
//! counts, not that of rounds.

use super::{AuthenticatedBits, add};
use crate::error::Result;
use crate::task::{SendFn, Step, ready, then_maybe};
use crate::value::Share;

/// AND triples that [`sum`] uses, as a multiple of the lanes of a row.
pub(in super::super) fn ands(x: usize, y: usize, width: usize) -> usize {
    let mut carry = 0;
    let mut count = 0;
    for i in 0..width {
        let terms = usize::from(i < x) + usize::from(i < y) + carry;
        carry = usize::from(terms > 1);
        count += usize::from(carry == 1 && i + 1 < width);
    }
    count
}

/// The low `width` rows of x + y, for rows of equal lengths, the lowest bits first; rows that are missing are zero, and of the sum
/// none is given that must be. The ANDs were asked for: [`ands`].
///
/// # Errors
/// [`EngineError::Internal`](crate::EngineError::Internal) for rows of different lengths.
pub(in super::super) fn sum(
    x: Vec<Share<u64>>,
    y: Vec<Share<u64>>,
    width: usize,
) -> Result<SendFn<AuthenticatedBits, Vec<Share<u64>>>> {
    let ripple = Ripple {
        x: x.into_iter(),
        y: y.into_iter(),
        carry: None,
        rows: Vec::with_capacity(width),
        width,
    };
    Ok(match ripple.step()? {
        Step::Done(rows) => ready(rows),
        Step::Next(task) => task,
    })
}

struct Ripple {
    x: std::vec::IntoIter<Share<u64>>,
    y: std::vec::IntoIter<Share<u64>>,
    carry: Option<Share<u64>>,
    rows: Vec<Share<u64>>,
    width: usize,
}

impl Ripple {
    /// Rows up to the next AND.
    fn step(mut self) -> Result<Step<AuthenticatedBits, Vec<Share<u64>>>> {
        while self.rows.len() < self.width {
            let mut terms: Vec<_> = [self.x.next(), self.y.next(), self.carry.take()]
                .into_iter()
                .flatten()
                .collect();
            let last = self.rows.len() + 1 == self.width;
            // The carry of a, b, c is c ⊕ (a ⊕ c)(b ⊕ c); the missing c is zero.
            let third = if terms.len() > 2 { terms.pop() } else { None };
            // Nothing is left, not even a carry: the rows above are zero.
            let Some(mut first) = terms.pop() else { break };
            let Some(mut second) = terms.pop() else {
                self.rows.push(first);
                continue;
            };
            let mut row = first.duplicate();
            add(&mut row, &second)?;
            if let Some(third) = &third {
                add(&mut row, third)?;
                add(&mut first, third)?;
                add(&mut second, third)?;
            }
            self.rows.push(row);
            if last {
                break;
            }
            let task = AuthenticatedBits::product(first, second);
            return Ok(Step::Next(then_maybe(task, move |_, mut carry| {
                if let Some(third) = &third {
                    add(&mut carry, third)?;
                }
                self.carry = Some(carry);
                self.step()
            })));
        }
        Ok(Step::Done(self.rows))
    }
}

#[cfg(test)]
mod tests {
    use super::{ands, sum};
    use crate::authenticated::binary::PARTS;
    use crate::error::EngineError;
    use crate::value::Share;

    /// Lanes that only one of the numbers has would not be added.
    #[test]
    fn missing_parts_blocked_rows_of_different_lengths() {
        for (parts, lanes) in [(PARTS, 1), (PARTS, 3), (PARTS - 1, 2)] {
            let (x, y) = (Share::zeros(PARTS, 2), Share::zeros(parts, lanes));
            let added = sum(vec![x], vec![y], 2).map(drop);
            assert!(matches!(added, Err(EngineError::Internal(_))));
        }
        assert!(
            sum(
                vec![Share::zeros(PARTS, 2)],
                vec![Share::zeros(PARTS, 2)],
                2
            )
            .is_ok()
        );
    }

    #[test]
    fn an_and_for_every_carry_that_is_used() {
        // Modulo 2^64; with the last carry; of a short number and a long one.
        assert_eq!(ands(64, 64, 64), 63);
        assert_eq!(ands(63, 63, 64), 63);
        assert_eq!(ands(18, 58, 59), 58);
        assert_eq!((ands(1, 0, 1), ands(1, 1, 1), ands(1, 1, 2)), (0, 0, 1));
    }
}
