//! Sets T of columns that contain all ones of more than |T| rows: s_T follows from these rows by elimination, if they have no noise, and a dual word lies on them.
//!
//! Columns of least degree are peeled off, then columns are swapped (simulated annealing). Columns in T have a degree: the rows inside T that they are in. Columns outside have a gain: the
//! rows that they alone keep outside.

use super::super::matrix::{Rows, WEIGHT};
use super::super::shape::Shape;

/// Where A is not zero, by rows and by columns.
pub(super) struct Places {
    rows: Vec<Vec<u16>>,
    columns: Vec<Vec<u32>>,
}

impl Places {
    /// Those of the matrix of a batch.
    pub(super) fn of(shape: Shape) -> Self {
        let field = keyquorum_math::Zq::new((1 << 61) - 1).unwrap();
        let mut matrix = Rows::new(&field, shape);
        let mut rows = Vec::new();
        while rows.len() < shape.outputs() {
            let take = |places: &[usize; WEIGHT], _: &[u64]| {
                rows.push(places.iter().map(|place| *place as u16).collect());
                Ok(())
            };
            matrix.next(64, take).unwrap();
        }
        Self::new(rows, shape.secret())
    }

    pub(super) fn new(mut rows: Vec<Vec<u16>>, secret: usize) -> Self {
        let mut columns = vec![Vec::new(); secret];
        for (at, row) in rows.iter_mut().enumerate() {
            row.sort_unstable();
            row.dedup();
            row.iter()
                .for_each(|column| columns[usize::from(*column)].push(at as u32));
        }
        Self { rows, columns }
    }
}

/// A set of columns.
pub(super) struct Set<'p> {
    places: &'p Places,
    /// Whether a column is in it.
    inside: Vec<bool>,
    /// Of each row, the number and the sum of the columns that are not.
    missing: Vec<(u16, u32)>,
    /// Degrees and gains.
    value: Vec<u16>,
    /// Its columns.
    pub(super) columns: usize,
    /// The rows inside.
    pub(super) rows: usize,
}

impl<'p> Set<'p> {
    /// All columns.
    pub(super) fn all(places: &'p Places) -> Self {
        Self {
            places,
            inside: vec![true; places.columns.len()],
            missing: vec![(0, 0); places.rows.len()],
            value: places.columns.iter().map(|c| c.len() as u16).collect(),
            columns: places.columns.len(),
            rows: places.rows.len(),
        }
    }

    pub(super) fn remove(&mut self, column: usize) {
        self.inside[column] = false;
        self.columns -= 1;
        self.value[column] = 0;
        for at in &self.places.columns[column] {
            let (missing, sum) = &mut self.missing[*at as usize];
            match *missing {
                0 => {
                    self.rows -= 1;
                    for other in &self.places.rows[*at as usize] {
                        self.value[usize::from(*other)] =
                            self.value[usize::from(*other)].wrapping_sub(1);
                    }
                    // It lost one with the others, and gains one.
                    self.value[column] = self.value[column].wrapping_add(2);
                }
                1 => self.value[*sum as usize] -= 1,
                _ => {}
            }
            *missing += 1;
            *sum += column as u32;
        }
    }

    pub(super) fn add(&mut self, column: usize) {
        self.inside[column] = true;
        self.columns += 1;
        self.value[column] = 0;
        for at in &self.places.columns[column] {
            let (missing, sum) = &mut self.missing[*at as usize];
            *missing -= 1;
            *sum -= column as u32;
            match *missing {
                0 => {
                    self.rows += 1;
                    for other in &self.places.rows[*at as usize] {
                        self.value[usize::from(*other)] += 1;
                    }
                }
                1 => self.value[*sum as usize] += 1,
                _ => {}
            }
        }
    }

    /// The column of least degree in the set.
    fn least(&self) -> Option<(usize, u16)> {
        let inside = self.inside.iter().zip(&self.value).enumerate();
        let inside = inside.filter(|(_, (inside, _))| **inside);
        inside
            .map(|(column, (_, degree))| (column, *degree))
            .min_by_key(|(_, degree)| *degree)
    }

    /// Takes off the column of least degree, if more rows than columns are left.
    fn shrink(&mut self) -> Option<usize> {
        let (column, degree) = self.least()?;
        let left = self.rows - usize::from(degree) > self.columns - 1;
        left.then(|| {
            self.remove(column);
            column
        })
    }

    /// Takes off columns of least degree, while there are more rows than columns.
    pub(super) fn peel(&mut self) {
        while self.shrink().is_some() {}
    }

    /// Takes off columns of least degree until so many are left.
    pub(super) fn peel_to(&mut self, columns: usize) {
        while self.columns > columns
            && let Some((column, _)) = self.least()
        {
            self.remove(column);
        }
    }

    /// Whether a row lies inside.
    pub(super) fn contains(&self, row: usize) -> bool {
        self.missing[row].0 == 0
    }

    /// The columns, in order.
    pub(super) fn members(&self) -> Vec<usize> {
        let all = 0..self.inside.len();
        all.filter(|column| self.inside[*column]).collect()
    }

    /// −log2 of the probability that no row inside has noise.
    pub(super) fn exponent(&self, blocks: usize) -> f64 {
        let length = self.missing.len() / blocks;
        let of_block = |block: &[(u16, u32)]| {
            let inside = block.iter().filter(|(missing, _)| *missing == 0).count();
            -(1.0 - inside as f64 / length as f64).log2()
        };
        self.missing.chunks(length).map(of_block).sum()
    }

    /// Swaps columns `proposals` times, by simulated annealing from a temperature of 0.7 to 0.3, and shrinks. Returns the least exponent on the way.
    pub(super) fn anneal(&mut self, blocks: usize, proposals: u64, seed: u64) -> f64 {
        let (mut random, mut best) = (Random(seed), self.exponent(blocks));
        let (mut members, mut others): (Vec<_>, Vec<_>) =
            (0..self.inside.len()).partition(|column| self.inside[*column]);
        let mut chances = Vec::new();
        for proposal in 0..proposals {
            if proposal % 4096 == 0 {
                let temperature = 0.7 * (0.3f64 / 0.7).powf(proposal as f64 / proposals as f64);
                chances = (0..64)
                    .map(|loss| (-f64::from(loss) / temperature).exp())
                    .collect();
            }
            let (i, j) = (random.below(members.len()), random.below(others.len()));
            let (out, into) = (members[i], others[j]);
            let loss = i32::from(self.value[out]) - i32::from(self.value[into]);
            let chance = chances.get(loss.max(0) as usize).copied().unwrap_or(0.0);
            if loss > 0 && random.unit() >= chance {
                continue;
            }
            self.add(into);
            self.remove(out);
            (members[i], others[j]) = (into, out);
            // A column that is taken off costs rows, mostly more than one.
            if self.rows > self.columns + 1
                && let Some(column) = self.shrink()
            {
                let at = members.iter().position(|member| *member == column).unwrap();
                others.push(members.swap_remove(at));
                best = best.min(self.exponent(blocks));
            }
        }
        best
    }
}

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): fast, and the same everywhere.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.word()) * n as u128) >> 64) as usize
    }

    fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }
}
