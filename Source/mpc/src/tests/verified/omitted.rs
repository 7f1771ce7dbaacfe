//! Without a check, the attack that it is there for gives a wrong value.

use super::adversaries::{Change, Once};
use super::{Base, Outcome, Program, Setting};
use crate::adversary::Site;
use crate::error::Check;

/// What the honest parties get when they leave out a check.
fn outputs(
    base: Base,
    check: Check,
    party: usize,
    adversary: Once,
    program: Program,
) -> Vec<Vec<u64>> {
    let setting = Setting::corrupted(party, adversary)
        .over(base)
        .without(check);
    let results = setting.run(move |engine| program.run(engine));
    let outcome = Outcome::new(results, party);
    assert!(
        outcome.errors.is_empty(),
        "{program:?}: {:?}",
        outcome.errors
    );
    outcome.outputs
}

/// A wrong product is opened.
#[test]
fn deviations_ablated_without_the_check_of_products() {
    let products = [
        Program::Products,
        Program::ManyProducts,
        Program::InnerProducts,
        Program::Ands,
        Program::ManyAnds,
    ];
    for base in Base::ALL {
        for program in base.programs().filter(|program| products.contains(program)) {
            for party in 0..3 {
                let adversary = Once::new(Site::Summand, false, 0, Change::Flip);
                let outputs = outputs(base, Check::Products, party, adversary, program);
                let what = format!("{base:?} {program:?} {party}");
                assert!(outputs.iter().all(|output| *output == outputs[0]), "{what}");
                assert_ne!(outputs[0], program.wanted(), "{what}");
                assert_eq!(outputs[0][1..], program.wanted()[1..], "{what}");
            }
        }
    }
}

/// A wrong bit is opened, which is none.
#[test]
fn deviations_ablated_without_the_check_of_products_of_conversions() {
    for base in [Base::Replicated, Base::Ring] {
        for party in 0..3 {
            let adversary = Once::new(Site::Input, false, usize::from(party == 1), Change::Flip);
            let program = Program::Conversion;
            let outputs = outputs(base, Check::Products, party, adversary, program);
            assert_eq!(outputs[0], outputs[1]);
            assert_ne!(outputs[0], Program::Conversion.wanted());
        }
    }
}

/// One honest party gets another value than the other.
#[test]
fn deviations_ablated_without_the_comparison_of_openings() {
    // Where inputs are verified, openings of this check come first.
    let others = |base: &Base| *base != Base::Shamir(4, 1);
    for base in Base::ALL.into_iter().filter(others) {
        for party in 0..3 {
            let adversary = Once::new(Site::OpenedSummand, true, 0, Change::Flip);
            let outputs = outputs(base, Check::Openings, party, adversary, Program::Opening);
            let wrong = outputs.iter().filter(|o| **o != Program::Opening.wanted());
            assert_eq!(wrong.count(), 1, "{base:?} {party}");
        }
        // To party 0 alone, by a party whose share it needs: it is the first of the honest ones.
        let sender = match base {
            Base::Replicated | Base::Ring => 2,
            Base::Shamir(..) => 1,
        };
        let adversary = Once::new(Site::OpenedSummand, true, 0, Change::Flip);
        let program = Program::OpeningToOne;
        let outputs = outputs(base, Check::Openings, sender, adversary, program);
        assert_ne!(outputs[0], program.wanted(), "{base:?}");
    }
}

/// Shares of four parties that belong to no value: the three honest parties open different values. What is opened is compared, so this check is the one that is left out.
#[test]
fn deviations_ablated_inputs_that_are_no_sharing() {
    let base = Base::Shamir(4, 1);
    let adversary = Once::new(Site::Dealt, true, 0, Change::Flip);
    let outputs = outputs(base, Check::Openings, 1, adversary, Program::Opening);
    assert!(outputs.iter().any(|output| *output != outputs[0]));
}
