//! What the known attacks on the assumption cost against the shapes of batches, and searches that would refute them. `docs/pages/budget.md` has the table.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // a failed test may panic

mod counts;
mod search;
mod toys;

use super::shape::{SHAPES, Shape};
use crate::long_tests;
use counts::{Instance, expected_words, least_weight, without_noise};
use search::{Places, Random, Set};

/// −log2 of what a test of one batch may have: 128 bits, 40 for bets on places that passed, and 20 for 2^20 batches of which one is enough.
const BOUND: f64 = 188.0;

/// log2 of the smallest field.
const FIELD: f64 = (super::SHORTEST - 1) as f64;

/// What was used before: blocks twice as long, half as many.
const BEFORE: [Shape; 3] = [
    Shape::new(11, 1 << 9, 4),
    Shape::new(13, 1 << 9, 6),
    Shape::new(14, 1 << 10, 7),
];

/// Exponents of sets that were found: by peeling, and by swaps with the long budget.
const FOUND: [[f64; 2]; 3] = [[335.1, 324.6], [315.7, 307.8], [267.2, 257.6]];

/// Costs of guessing entries without noise, of a test of the least weight that is expected to exist, and of the algebraic attack.
const TABLE: [[i64; 3]; 3] = [[424, 424, 394], [286, 286, 244], [364, 386, 300]];

/// Swaps that are tried for a set: 2^22, which takes half a second, or with `KEYQUORUM_LONG` 2^30, some minutes.
fn proposals() -> u64 {
    if long_tests() { 1 << 30 } else { 1 << 22 }
}

/// What peeling finds, and the least exponent after swaps.
fn searched(places: &Places, blocks: usize, proposals: u64) -> (f64, f64) {
    let mut set = Set::all(places);
    set.peel();
    let peeled = set.exponent(blocks);
    (peeled, set.anneal(blocks, proposals, 1))
}

/// The search runs on the actual matrices. The same sets cost half as much against blocks of twice the length.
#[test]
fn searched_sets_blocked_searched_sets_cost_more_than_the_bound() {
    for (shape, [peeled, least]) in SHAPES.into_iter().zip(FOUND) {
        let places = Places::of(shape);
        let found = searched(&places, shape.blocks, proposals());
        println!(
            "{shape:?}: peeled {:.1}, after swaps {:.1}",
            found.0, found.1
        );
        assert!((found.0 - peeled).abs() < 1.0, "{shape:?}: {}", found.0);
        assert!(found.1 > BOUND, "{shape:?}: {}", found.1);
        assert!(found.1 > least - 1.0, "{shape:?}: {}", found.1);
    }
}

#[test]
fn searched_sets_ablated_blocks_of_twice_the_length_are_refuted() {
    for shape in BEFORE {
        let (peeled, least) = searched(&Places::of(shape), shape.blocks, proposals());
        println!("{shape:?}: peeled {peeled:.1}, after swaps {least:.1}");
        assert!(least < BOUND - 20.0, "{shape:?}: {least}");
    }
}

/// A matrix that is as large, but has many rows in few columns.
#[test]
fn dual_words_blocked_a_planted_set_is_found() {
    let [shape, ..] = SHAPES;
    let mut random = Random(3);
    let mut row =
        |columns: usize| -> Vec<u16> { (0..10).map(|_| random.below(columns) as u16).collect() };
    let planted = |row: usize| row.is_multiple_of(4);
    let rows = (0..shape.outputs()).map(|at| row(if planted(at) { 400 } else { shape.secret() }));
    let places = Places::new(rows.collect(), shape.secret());
    let mut set = Set::all(&places);
    set.peel();
    assert!(set.columns <= 400, "{}", set.columns);
    assert!((set.rows) > set.columns);
    let exponent = set.exponent(shape.blocks);
    assert!(exponent < BOUND / 2.0, "{exponent}");
    let inside = (0..shape.outputs())
        .filter(|row| set.contains(*row))
        .count();
    assert_eq!(inside, set.rows);
}

/// Degrees and gains are kept up to date by swaps.
#[test]
fn sets_count_their_rows() {
    let [shape, ..] = SHAPES;
    let places = Places::of(shape);
    let mut set = Set::all(&places);
    set.peel();
    set.anneal(shape.blocks, 20_000, 2);
    let mut again = Set::all(&places);
    let members = set.members();
    for column in 0..shape.secret() {
        if members.binary_search(&column).is_err() {
            again.remove(column);
        }
    }
    assert_eq!((again.columns, again.rows), (set.columns, set.rows));
    assert_eq!(again.exponent(shape.blocks), set.exponent(shape.blocks));
    assert!(set.rows + 64 > set.columns);
}

/// The rows of the table in `docs/pages/budget.md`, rounded down.
#[test]
fn attacks_cost_what_the_table_says() {
    let row = |cost: &dyn Fn(Shape) -> f64| SHAPES.map(|shape| cost(shape).floor() as i64);
    let guesses = row(&|shape| without_noise(shape, shape.secret() as f64));
    let words = row(&|shape| without_noise(shape, least_weight(shape, FIELD) as f64));
    let algebraic = row(&|shape| {
        let (rows, secret) = (shape.outputs() as f64, shape.secret() as f64);
        Instance {
            rows,
            secret,
            shape,
        }
        .algebraic()
    });
    assert_eq!([guesses, words, algebraic], TABLE);
    assert!(TABLE.iter().flatten().all(|cost| *cost as f64 > BOUND));
}

/// On parts of an instance: all rows inside of sets that peeling passes.
#[test]
fn algebraic_attacks_on_parts_cost_more_than_the_bound() {
    for shape in SHAPES {
        let places = Places::of(shape);
        let mut set = Set::all(&places);
        set.peel();
        let mut least = f64::INFINITY;
        let smallest = set.columns;
        let mut set = Set::all(&places);
        // Fifteen sizes from the smallest to all columns.
        for part in (0..15).rev() {
            let columns = smallest + (shape.secret() - smallest) * part / 14;
            set.peel_to(columns);
            let (rows, secret) = (set.rows as f64, set.columns as f64);
            least = least.min(
                Instance {
                    rows,
                    secret,
                    shape,
                }
                .algebraic(),
            );
        }
        println!("{shape:?}: {least:.1}");
        assert!(least > BOUND, "{shape:?}: {least}");
    }
}

/// The bound on dual words that exist grows with what it should grow with.
#[test]
fn lighter_words_are_less_likely() {
    let [shape, ..] = SHAPES;
    let least = least_weight(shape, FIELD);
    assert!(expected_words(shape, least, FIELD) >= 0.0);
    assert!(expected_words(shape, least - 1, FIELD) < 0.0);
    assert!(expected_words(shape, least / 2, FIELD) < -1000.0);
    assert!(least_weight(shape, 2.0) < least);
    println!("{:?}", SHAPES.map(|shape| least_weight(shape, FIELD)));
}
