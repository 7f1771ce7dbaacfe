//! Attacks that run to their end, on toys.

use keyquorum_math::{Domain, Zq};

use super::super::matrix::{Rows, WEIGHT};
use super::super::shape::Shape;
use super::counts::least_weight;
use super::search::{Places, Random, Set};

fn field() -> Zq {
    Zq::new((1 << 61) - 1).unwrap()
}

/// Rows of a matrix with so many columns, each with its place in the secret.
type Matrix = Vec<Vec<u64>>;

/// `count` matrices of this shape: consecutive rows of A, all entries as they are, or as they would be with coefficients of one.
fn matrices(shape: Shape, count: usize, ones: bool) -> Vec<Matrix> {
    let field = field();
    let mut stream = Rows::new(&field, shape);
    let mut rows = Vec::new();
    while rows.len() < count * shape.outputs() {
        let take = |places: &[usize; WEIGHT], factors: &[u64]| {
            let mut row = vec![0; shape.secret()];
            for (place, factor) in places.iter().zip(factors) {
                row[*place] = field.add(row[*place], if ones { 1 } else { *factor });
            }
            rows.push(row);
            Ok(())
        };
        stream.next(64, take).unwrap();
    }
    let rows = rows.chunks_exact(shape.outputs()).take(count);
    rows.map(<[_]>::to_vec).collect()
}

/// Takes multiples of the rows of a basis, each with its first column, off this row.
fn reduced(field: &Zq, basis: &[(usize, Vec<u64>)], row: &[u64]) -> Vec<u64> {
    let mut row = row.to_vec();
    for (first, known) in basis {
        let factor = field.neg(row[*first]);
        if factor != 0 {
            let mut term = known.clone();
            field.mul_scalar_assign(&mut term, factor);
            field.add_assign(&mut row, &term);
        }
    }
    row
}

/// A row of a basis, divided by its first entry among the first `columns`, if there is one.
fn pivot(field: &Zq, columns: usize, mut row: Vec<u64>) -> Option<(usize, Vec<u64>)> {
    let first = row.iter().take(columns).position(|entry| *entry != 0)?;
    let inverse = field.invert(row[first]).unwrap();
    field.mul_scalar_assign(&mut row, inverse);
    Some((first, row))
}

/// The least number of rows that are dependent, by trying all sets of fewer than `most`.
fn least_dependent(matrix: &Matrix, most: usize) -> usize {
    fn dependent(
        matrix: &Matrix,
        basis: &mut Vec<(usize, Vec<u64>)>,
        from: usize,
        more: usize,
    ) -> bool {
        let field = field();
        (from..matrix.len()).any(|at| {
            let row = reduced(&field, basis, &matrix[at]);
            let Some(row) = pivot(&field, row.len(), row) else {
                return true;
            };
            if more == 1 {
                return false;
            }
            basis.push(row);
            let found = dependent(matrix, basis, at + 1, more - 1);
            basis.pop();
            found
        })
    }
    let weights = 1..most;
    let mut found = weights.filter(|w| dependent(matrix, &mut Vec::new(), 0, *w));
    found.next().unwrap_or(most)
}

/// 8 columns, 20 rows.
const SMALL: Shape = Shape::new(3, 5, 2);

/// All sets of rows are tried: no dual word is lighter than the bound says.
#[test]
fn dual_words_blocked_no_dual_word_is_lighter_than_the_bound() {
    let bound = least_weight(SMALL, 61.0);
    for matrix in matrices(SMALL, 3, false) {
        let found = least_dependent(&matrix, bound + 1);
        assert!(found >= bound, "{found} {bound}");
    }
}

/// With ones for coefficients rows cancel as integers, and the bound is wrong.
#[test]
fn dual_words_ablated_with_ones_dual_words_are_lighter_than_the_bound() {
    let bound = least_weight(SMALL, 61.0);
    for matrix in matrices(SMALL, 3, true) {
        let found = least_dependent(&matrix, bound + 1);
        assert!(found < bound, "{found} {bound}");
    }
}

/// An instance that the attacker sees, and its secret.
struct Instance {
    matrix: Matrix,
    outputs: Vec<u64>,
    secret: Vec<u64>,
}

/// A·s + e with one noise value in each block.
fn instance(shape: Shape, random: &mut Random) -> Instance {
    let field = field();
    let matrix = matrices(shape, 1, false).remove(0);
    let mut element = || field.from_u128(u128::from(random.word()));
    let secret: Vec<u64> = (0..shape.secret()).map(|_| element()).collect();
    let mut outputs: Vec<u64> = matrix.iter().map(|row| field.dot(row, &secret)).collect();
    for block in outputs.chunks_mut(1 << shape.levels) {
        let place = random.below(block.len());
        block[place] = field.add(block[place], 1 + random.word() % ((1 << 61) - 2));
    }
    Instance {
        matrix,
        outputs,
        secret,
    }
}

/// The entries at `columns`, if these rows have no noise: by elimination, where a row that is left over must be consistent.
fn solved(instance: &Instance, columns: &[usize], rows: &[usize]) -> Option<Vec<u64>> {
    let field = field();
    let mut basis: Vec<(usize, Vec<u64>)> = Vec::new();
    let mut checked = false;
    for at in rows {
        let entries = columns.iter().map(|column| instance.matrix[*at][*column]);
        let row: Vec<u64> = entries.chain([instance.outputs[*at]]).collect();
        let row = reduced(&field, &basis, &row);
        if let Some((first, row)) = pivot(&field, columns.len(), row.clone()) {
            for (_, known) in &mut basis {
                let factor = field.neg(known[first]);
                let mut term = row.clone();
                field.mul_scalar_assign(&mut term, factor);
                field.add_assign(known, &term);
            }
            basis.push((first, row));
        } else if row[columns.len()] == 0 {
            checked = true;
        } else {
            return None;
        }
    }
    basis.sort_unstable();
    let entries = basis.iter().map(|(_, row)| row[columns.len()]);
    (checked && basis.len() == columns.len()).then(|| entries.collect())
}

/// The rest of a secret: an entry is right if two rows say the same of it.
fn extended(instance: &Instance, columns: &[usize], entries: &[u64]) -> Option<Vec<u64>> {
    let field = field();
    let mut known = vec![None; instance.secret.len()];
    for (column, entry) in columns.iter().zip(entries) {
        known[*column] = Some(*entry);
    }
    loop {
        let mut said = vec![Vec::new(); known.len()];
        for (row, output) in instance.matrix.iter().zip(&instance.outputs) {
            let unknown = (0..known.len()).filter(|c| row[*c] != 0 && known[*c].is_none());
            let unknown: Vec<usize> = unknown.collect();
            if let [column] = unknown[..] {
                let entries: Vec<u64> = known.iter().map(|entry| entry.unwrap_or(0)).collect();
                let left = field.sub(*output, field.dot(row, &entries));
                said[column].push(field.mul(left, field.invert(row[column])?));
            }
        }
        let before = known.iter().flatten().count();
        for (entry, said) in known.iter_mut().zip(&mut said) {
            said.sort_unstable();
            if let Some([twice, _]) = said.windows(2).find(|pair| pair[0] == pair[1]) {
                *entry = Some(*twice);
            }
        }
        if known.iter().flatten().count() == before {
            return known.into_iter().collect();
        }
    }
}

/// Sets that peeling finds after some columns were taken off at random, until the rows of one have no noise: all of s follows. As for blocks of before, the least set is expected to have
/// no noise in some hundred tries.
#[test]
fn searched_sets_ablated_a_toy_is_solved_by_searched_sets() {
    let shape = Shape::new(6, 64, 3);
    let mut random = Random(5);
    let instance = instance(shape, &mut random);
    let rows = instance.matrix.iter().map(|row| {
        let used = (0..row.len()).filter(|column| row[*column] != 0);
        used.map(|column| column as u16).collect()
    });
    let places = Places::new(rows.collect(), shape.secret());
    let found = (0..1 << 14).find_map(|_| {
        let mut set = Set::all(&places);
        let mut members = set.members();
        for _ in 0..6 {
            set.remove(members.swap_remove(random.below(members.len())));
        }
        set.peel();
        let columns = set.members();
        let inside = (0..shape.outputs()).filter(|row| set.contains(*row));
        let entries = solved(&instance, &columns, &inside.collect::<Vec<_>>())?;
        extended(&instance, &columns, &entries)
    });
    assert_eq!(found, Some(instance.secret));
}
