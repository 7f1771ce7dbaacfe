//! Digits of residues.

use super::FhewError;

/// The decomposition of residues modulo q into `levels` digits of `base_log` bits, with the weights `2^(drop + base_log j)`.
///
/// `drop` is what the digits leave of the bits of q: the lowest bits, which are rounded away. A residue is taken as the integer nearest to zero.
/// Digits of 2 bits or more lie in `-2^(base_log-1)..2^(base_log-1)`, the last one may reach the upper end. Digits of 1 bit are -1, 0 or 1: the bits of
/// the magnitude with the sign. Digits times weights differ from the integer by at most `2^(drop-1)`.
#[derive(Clone, Copy, Debug)]
pub struct Gadget {
    q: u64,
    base_log: u32,
    levels: u32,
    drop: u32,
    /// Half a digit at every place.
    offset: i64,
}

impl Gadget {
    /// # Errors
    ///
    /// [`FhewError::Gadget`] if there are no digits, or more than fit the modulus, or digits of 0 or more than 16 bits, or the modulus has more than 60 bits.
    pub fn new(q: u64, base_log: u32, levels: u32) -> Result<Self, FhewError> {
        let bits = u64::BITS - q.leading_zeros();
        let digits = base_log
            .checked_mul(levels)
            .filter(|d| *d <= bits && bits <= 60);
        let (Some(digits), 1..=16, 1..) = (digits, base_log, levels) else {
            return Err(FhewError::Gadget {
                base_log,
                levels,
                bits,
            });
        };
        let half = if base_log == 1 {
            0
        } else {
            1i64 << (base_log - 1)
        };
        Ok(Self {
            q,
            base_log,
            levels,
            drop: bits - digits,
            offset: (0..levels).map(|j| half << (base_log * j)).sum(),
        })
    }

    /// Bits of a digit.
    pub fn base_log(&self) -> u32 {
        self.base_log
    }

    /// Number of digits.
    pub fn levels(&self) -> usize {
        self.levels as usize
    }

    /// The weight of digit `j`.
    pub fn weight(&self, j: u32) -> u64 {
        1 << (self.drop + self.base_log * j)
    }

    /// The digits of a residue, that of the smallest weight first; public residues only.
    pub fn digits(&self, x: u64, out: &mut [i64]) {
        let centred = if x > self.q / 2 {
            x as i64 - self.q as i64
        } else {
            x as i64
        };
        let half = if self.drop == 0 {
            0
        } else {
            1i64 << (self.drop - 1)
        };
        let rounded = (centred + half) >> self.drop;
        let mask = (1i64 << self.base_log) - 1;
        if self.base_log == 1 {
            let (sign, magnitude) = (rounded.signum(), rounded.abs());
            for (j, digit) in out.iter_mut().enumerate() {
                *digit = sign * ((magnitude >> j) & 1);
            }
            return;
        }
        let mut rest = rounded + self.offset;
        let half = 1i64 << (self.base_log - 1);
        let last = self.levels() - 1;
        for (j, digit) in out.iter_mut().enumerate() {
            *digit = if j == last { rest } else { rest & mask } - half;
            rest >>= self.base_log;
        }
    }
}
