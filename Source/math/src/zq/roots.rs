//! Powers and square roots of many field elements at once.
//!
//! One exponentiation is a chain of dependent multiplications. Several chains run side by side in
//! an array of lanes, which hides the latency of each.

use super::Zq;
use crate::domain::Domain;
use crate::modular::{Mersenne61, Multiply};

/// Bits of a discrete logarithm that are looked up at a time.
const WINDOW: u32 = 8;

/// Applies `f` to all elements, an array of lanes at a time; lanes without an element hold zero.
pub(super) fn for_lanes<const L: usize>(a: &mut [u64], mut f: impl FnMut(&mut [u64; L])) {
    for part in a.chunks_mut(L) {
        let mut lanes = [0; L];
        for (l, &x) in lanes.iter_mut().zip(part.iter()) {
            *l = x;
        }
        f(&mut lanes);
        for (x, l) in part.iter_mut().zip(lanes) {
            *x = l;
        }
    }
}

#[inline(always)]
fn mul<M: Multiply, const L: usize>(m: M, mut a: [u64; L], b: &[u64; L]) -> [u64; L] {
    for (x, &y) in a.iter_mut().zip(b) {
        *x = m.mul(*x, y);
    }
    a
}

/// `a^(2^n)` in every lane.
#[inline(always)]
fn square<M: Multiply, const L: usize>(m: M, mut a: [u64; L], n: u32) -> [u64; L] {
    for _ in 0..n {
        for x in &mut a {
            *x = m.mul(*x, *x);
        }
    }
    a
}

/// `a^e` in every lane, with a fixed window of four exponent bits.
#[inline(always)]
pub(super) fn pow<M: Multiply, const L: usize>(m: M, a: [u64; L], e: u64) -> [u64; L] {
    let mut powers = [[1; L]; 16];
    let mut power = [1; L];
    for p in powers.iter_mut().skip(1) {
        power = mul(m, power, &a);
        *p = power;
    }
    let digits = (u64::BITS - e.leading_zeros()).div_ceil(4);
    let mut out = [1; L];
    for i in (0..digits).rev() {
        out = square(m, out, 4);
        let digit = (e >> (4 * i)) & 15;
        // Four bits are below 16. A factor that was left out would be a wrong power.
        #[allow(clippy::indexing_slicing)]
        let factor = &powers[digit as usize];
        out = mul(m, out, factor);
    }
    out
}

/// `c^((q-3)/4)` for `q = 2^61 - 1`: the exponent is 2^59 - 1, reached by doubling the number of
/// ones (58 squarings, 9 products).
#[inline(always)]
pub(super) fn inv_sqrt_mersenne<const L: usize>(c: [u64; L]) -> [u64; L] {
    let m = Mersenne61;
    // ones_k is c^(2^k - 1).
    let ones_2 = mul(m, square(m, c, 1), &c);
    let ones_4 = mul(m, square(m, ones_2, 2), &ones_2);
    let ones_8 = mul(m, square(m, ones_4, 4), &ones_4);
    let ones_16 = mul(m, square(m, ones_8, 8), &ones_8);
    let ones_32 = mul(m, square(m, ones_16, 16), &ones_16);
    let ones_48 = mul(m, square(m, ones_32, 16), &ones_16);
    let ones_56 = mul(m, square(m, ones_48, 8), &ones_8);
    let ones_58 = mul(m, square(m, ones_56, 2), &ones_2);
    mul(m, square(m, ones_58, 1), &c)
}

/// The subgroup of order `2^s`, where `q - 1 = odd * 2^s`, with tables for its discrete logarithm.
///
/// Square roots follow Tonelli and Shanks; the logarithm takes [`WINDOW`] bits at a time (Sarkar,
/// "Computing square roots faster than the Tonelli-Shanks/Bernstein algorithm", 2020).
#[derive(Debug)]
pub(super) struct TwoPart {
    s: u32,
    odd: u64,
    window: u32,
    /// `(h^j, j)` for all `j < 2^window`, sorted, where `h` has order `2^window`.
    logarithms: Vec<(u64, u32)>,
    /// `g^(-d 2^(window i - 1))` at `[i][d]`, where `g` generates the subgroup. For `i = 0`, where
    /// `d` must be even, odd positions hold zero.
    halves: Vec<Vec<u64>>,
}

impl TwoPart {
    /// Tables for a field whose modulus is 1 modulo 4; `None` if no element generates the subgroup, which is so for no prime.
    pub(super) fn new(field: &Zq) -> Option<Self> {
        let q = field.modulus();
        let s = (q - 1).trailing_zeros();
        let odd = (q - 1) >> s;
        let window = s.min(WINDOW);
        // Every second element is a non-square: g = x^odd generates the subgroup exactly then.
        let is_generator = |&g: &u64| field.pow(g, 1 << (s - 1)) == q - 1;
        let g = (2..q).map(|x| field.pow(x, odd)).find(is_generator)?;
        let count = 1u32 << window;

        let h = field.pow(g, 1 << (s - window));
        let mut logarithms = Vec::new();
        let mut power = 1;
        for j in 0..count {
            logarithms.push((power, j));
            power = field.mul(power, h);
        }
        logarithms.sort_unstable();

        let g_inverse = field.pow(g, q - 2);
        let halves = (0..s.div_ceil(window))
            .map(|i| {
                // Even digits only for i = 0, so that 2^(window i - 1) is whole.
                let (every, log_step) = if i == 0 { (2, 0) } else { (1, window * i - 1) };
                let step = field.pow(g_inverse, 1 << log_step);
                let mut row = vec![0; count as usize];
                let mut power = 1;
                for entry in row.iter_mut().step_by(every) {
                    *entry = power;
                    power = field.mul(power, step);
                }
                row
            })
            .collect();
        Some(Self {
            s,
            odd,
            window,
            logarithms,
            halves,
        })
    }

    /// `1/sqrt(c)` in every lane; zero for non-squares and zero.
    ///
    /// With `v = c^((odd-1)/2)`, the element `c v^2 = c^odd` is `g^e` for an `e` that is even
    /// exactly for squares, and then `(v g^(-e/2))^2 c = 1`. The digits of `e` are found from the
    /// lowest on.
    #[inline(always)]
    pub(super) fn inv_sqrt<M: Multiply, const L: usize>(&self, m: M, c: [u64; L]) -> [u64; L] {
        let mut root = pow(m, c, (self.odd - 1) / 2);
        let mut rest = mul(m, square(m, root, 1), &c);
        let mut done = 0;
        for halves in &self.halves {
            let width = self.window.min(self.s - done);
            let mut factor = square(m, rest, self.s - done - width);
            for f in &mut factor {
                *f = self.half(halves, *f, self.window - width);
            }
            root = mul(m, root, &factor);
            rest = mul(m, rest, &square(m, factor, 1));
            done += width;
        }
        root
    }

    /// The entry of `halves` for the digit that is `2^-shift` times the logarithm of `x`. Zero, which alone is in no table, stays zero.
    fn half(&self, halves: &[u64], x: u64, shift: u32) -> u64 {
        let found = self
            .logarithms
            .binary_search_by_key(&x, |&(power, _)| power);
        let Ok(at) = found else { return 0 };
        // Logarithms are below 2^window, the length of both tables. A factor that was left out would be a wrong root.
        #[allow(clippy::indexing_slicing)]
        halves[(self.logarithms[at].1 >> shift) as usize]
    }
}
