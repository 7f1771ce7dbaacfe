//! Loops over vectors of words modulo 2^64, compiled a second and third time for wider registers, which are taken where the processor has them.

/// Words of a tile: 8 fill a register of 512 bits.
const LANES: usize = 8;

/// Tiles of a row that are summed in registers.
const TILES: usize = 6;

/// Words of a row that is summed in registers: [`rows_acc`] and [`polynomial_acc`] are fastest at this width.
pub const ROW: usize = LANES * TILES;

/// Compiles a function for registers of 128, 256 and 512 bits.
macro_rules! for_wide_registers {
    ($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) $(-> $out:ty)? $body:block) => {
        $(#[$doc])*
        pub fn $name($($arg: $type),*) $(-> $out)? {
            #[inline(always)]
            fn plain($($arg: $type),*) $(-> $out)? $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            fn with_256($($arg: $type),*) $(-> $out)? {
                plain($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
            fn with_512($($arg: $type),*) $(-> $out)? {
                plain($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            {
                if is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                {
                    // SAFETY: the processor has what the function is compiled for, as was just detected.
                    return unsafe { with_512($($arg),*) };
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: as above.
                    return unsafe { with_256($($arg),*) };
                }
            }
            plain($($arg),*)
        }
    };
}

pub(crate) use for_wide_registers;

for_wide_registers! {
    /// The inner product of vectors of one length.
    fn dot(a: &[u64], b: &[u64]) -> u64 {
        let products = a.iter().zip(b).map(|(&x, &y)| x.wrapping_mul(y));
        products.fold(0, |s: u64, p| s.wrapping_add(p))
    }
}

for_wide_registers! {
    /// `acc = (acc + a * b) & mask`, element by element.
    fn mul_acc(acc: &mut [u64], a: &[u64], b: &[u64], mask: u64) {
        for ((z, &x), &y) in acc.iter_mut().zip(a).zip(b) {
            *z = z.wrapping_add(x.wrapping_mul(y)) & mask;
        }
    }
}

for_wide_registers! {
    /// `a = (a * b) & mask`, element by element.
    fn mul_assign(a: &mut [u64], b: &[u64], mask: u64) {
        for (x, &y) in a.iter_mut().zip(b) {
            *x = x.wrapping_mul(y) & mask;
        }
    }
}

for_wide_registers! {
    /// `a = (a * s) & mask` for every element.
    fn mul_scalar_assign(a: &mut [u64], s: u64, mask: u64) {
        for x in a {
            *x = x.wrapping_mul(s) & mask;
        }
    }
}

/// Adds to `acc` the rows of its length, one after another, each times its factor.
#[inline(always)]
fn rows_with(
    acc: &mut [u64],
    factors: &[u64],
    rows: &[u64],
    times: impl Fn(u64, u64) -> u64 + Copy,
) {
    let width = acc.len();
    if let Ok(acc) = <&mut [u64; ROW]>::try_from(&mut *acc) {
        let mut sums = *acc;
        for (&factor, row) in factors.iter().zip(rows.chunks_exact(ROW)) {
            for (sum, &word) in sums.iter_mut().zip(row) {
                *sum = sum.wrapping_add(times(factor, word));
            }
        }
        *acc = sums;
        return;
    }
    for (&factor, row) in factors.iter().zip(rows.chunks_exact(width.max(1))) {
        for (sum, &word) in acc.iter_mut().zip(row) {
            *sum = sum.wrapping_add(times(factor, word));
        }
    }
}

/// Adds to `acc` the product of two polynomials of up to [`ROW`] coefficients.
#[inline(always)]
fn polynomial_with(acc: &mut [u64], a: &[u64], b: &[u64], times: impl Fn(u64, u64) -> u64 + Copy) {
    // Eight coefficients of a at a time concern one more tile than b has; b is between zeros.
    let mut padded = [0u64; ROW + 2 * LANES];
    for (place, &word) in padded.iter_mut().skip(LANES).zip(b) {
        *place = word;
    }
    let mut sums = [0u64; 2 * ROW + LANES];
    for (o, factors) in a.chunks(LANES).enumerate() {
        let concerned = sums
            .get_mut(LANES * o..)
            .and_then(|rest| rest.first_chunk_mut());
        let Some(concerned) = concerned else { continue };
        let mut tiles: [u64; ROW + LANES] = *concerned;
        for (l, &factor) in factors.iter().enumerate() {
            let shifted = padded.get(LANES - l..).and_then(|rest| rest.first_chunk());
            let Some(shifted) = shifted else { continue };
            let shifted: &[u64; ROW + LANES] = shifted;
            for (sum, &word) in tiles.iter_mut().zip(shifted) {
                *sum = sum.wrapping_add(times(factor, word));
            }
        }
        *concerned = tiles;
    }
    for (sum, word) in acc.iter_mut().zip(sums) {
        *sum = sum.wrapping_add(word);
    }
}

for_wide_registers! {
    /// Adds to `acc` the rows of its length, one after another, each times its factor.
    fn rows_acc(acc: &mut [u64], factors: &[u64], rows: &[u64]) {
        rows_with(acc, factors, rows, u64::wrapping_mul);
    }
}

for_wide_registers! {
    /// The same for rows of words that have all bits or none: a factor is added where a row has all.
    fn select_acc(acc: &mut [u64], factors: &[u64], rows: &[u64]) {
        rows_with(acc, factors, rows, |factor, word| factor & word);
    }
}

for_wide_registers! {
    /// Adds to `acc` the product of two polynomials of up to [`ROW`] coefficients.
    fn polynomial_acc(acc: &mut [u64], a: &[u64], b: &[u64]) {
        polynomial_with(acc, a, b, u64::wrapping_mul);
    }
}

for_wide_registers! {
    /// The same for a polynomial b whose coefficients have all bits, which stands for 1, or none.
    fn select_polynomial_acc(acc: &mut [u64], a: &[u64], b: &[u64]) {
        polynomial_with(acc, a, b, |factor, word| factor & word);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)] // a failed test may panic
mod tests {
    use super::*;
    use crate::Prg;

    fn draw(prg: &mut Prg, n: usize) -> Vec<u64> {
        let mut words = vec![0; n];
        prg.fill_u64(&mut words);
        words
    }

    #[test]
    fn rows_are_summed() {
        let mut prg = Prg::new([5; 16], 0);
        for (width, count) in [(ROW, 0), (ROW, 1), (ROW, 37), (47, 9), (1, 5), (100, 3)] {
            let (factors, rows) = (draw(&mut prg, count), draw(&mut prg, count * width));
            let mut acc = draw(&mut prg, width);
            let mut wanted = acc.clone();
            for (i, factor) in factors.iter().enumerate() {
                for (j, sum) in wanted.iter_mut().enumerate() {
                    *sum = sum.wrapping_add(factor.wrapping_mul(rows[i * width + j]));
                }
            }
            let before = acc.clone();
            rows_acc(&mut acc, &factors, &rows);
            assert_eq!(acc, wanted, "{width} {count}");
            let bits: Vec<_> = rows.iter().map(|word| word & 1).collect();
            let (mut wanted, mut acc) = (before.clone(), before);
            rows_acc(&mut wanted, &factors, &bits);
            let all: Vec<_> = bits.iter().map(|bit| bit.wrapping_neg()).collect();
            select_acc(&mut acc, &factors, &all);
            assert_eq!(acc, wanted, "{width} {count}");
        }
    }

    #[test]
    fn polynomials_are_multiplied() {
        let mut prg = Prg::new([6; 16], 0);
        for (n, m) in [(ROW, ROW), (47, 47), (1, 1), (1, ROW), (ROW, 1), (9, 30)] {
            let (a, b) = (draw(&mut prg, n), draw(&mut prg, m));
            let mut acc = draw(&mut prg, n + m - 1);
            let mut wanted = acc.clone();
            for (i, x) in a.iter().enumerate() {
                for (j, y) in b.iter().enumerate() {
                    wanted[i + j] = wanted[i + j].wrapping_add(x.wrapping_mul(*y));
                }
            }
            let before = acc.clone();
            polynomial_acc(&mut acc, &a, &b);
            assert_eq!(acc, wanted, "{n} {m}");
            let bits: Vec<_> = b.iter().map(|word| word & 1).collect();
            let (mut wanted, mut acc) = (before.clone(), before);
            polynomial_acc(&mut wanted, &a, &bits);
            let all: Vec<_> = bits.iter().map(|bit| bit.wrapping_neg()).collect();
            select_polynomial_acc(&mut acc, &a, &all);
            assert_eq!(acc, wanted, "{n} {m}");
        }
    }

    #[test]
    fn elements_are_multiplied() {
        let mut prg = Prg::new([7; 16], 0);
        for n in [0, 1, 7, 8, 100] {
            let (a, b, mask) = (draw(&mut prg, n), draw(&mut prg, n), u64::MAX >> 3);
            let products: Vec<_> = a.iter().zip(&b).map(|(x, y)| x.wrapping_mul(*y)).collect();
            assert_eq!(
                dot(&a, &b),
                products.iter().fold(0, |s: u64, p| s.wrapping_add(*p))
            );
            let mut found = a.clone();
            mul_assign(&mut found, &b, mask);
            assert!(found.iter().zip(&products).all(|(x, p)| *x == p & mask));
            let mut found = b.clone();
            mul_acc(&mut found, &a, &b, mask);
            assert!((0..n).all(|i| found[i] == b[i].wrapping_add(products[i]) & mask));
            let mut found = a.clone();
            mul_scalar_assign(&mut found, 12345, mask);
            assert!((0..n).all(|i| found[i] == a[i].wrapping_mul(12345) & mask));
        }
    }
}
