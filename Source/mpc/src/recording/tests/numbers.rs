//! Arithmetic on public numbers.

use proptest::prelude::*;

use super::*;

#[test]
fn arithmetic_on_numbers_is_that_of_64_bit_words() {
    const CASES: [(NumberOp, i64, i64, i64); 22] = [
        (NumberOp::Add, i64::MAX, 1, i64::MIN),
        (NumberOp::Sub, i64::MIN, 1, i64::MAX),
        (NumberOp::Mul, 1 << 40, 1 << 30, 0),
        (NumberOp::FloorDiv, 7, 2, 3),
        (NumberOp::FloorDiv, -7, 2, -4),
        (NumberOp::FloorDiv, 7, -2, -4),
        (NumberOp::FloorDiv, -8, 2, -4),
        (NumberOp::FloorDiv, i64::MIN, -1, i64::MIN),
        (NumberOp::Shl, 3, 63, i64::MIN),
        (NumberOp::Shr, -8, 1, -4),
        (NumberOp::ShrUnsigned, -1, 60, 15),
        (NumberOp::And, 12, 10, 8),
        (NumberOp::Or, 12, 10, 14),
        (NumberOp::Xor, 12, 10, 6),
        (NumberOp::Lt, -1, 0, 1),
        (NumberOp::Lt, 1, 1, 0),
        (NumberOp::Le, 1, 1, 1),
        (NumberOp::Gt, 0, -1, 1),
        (NumberOp::Ge, -1, 0, 0),
        (NumberOp::Eq, 4, 4, 1),
        (NumberOp::Ne, 4, 4, 0),
        (NumberOp::Ne, 4, -4, 1),
    ];
    for (op, a, b, expected) in CASES {
        let found = op.apply(&[a], &[b]).unwrap();
        assert_eq!(found.to_vec(), [expected], "{a} {op:?} {b}");
    }
    let spread = NumberOp::Sub.apply(&[10], &[1, 2]).unwrap();
    assert_eq!(spread.to_vec(), [9, 8]);
    for (op, b) in [
        (NumberOp::FloorDiv, 0),
        (NumberOp::Shl, 64),
        (NumberOp::Shr, -1),
        (NumberOp::ShrUnsigned, 64),
    ] {
        assert!(matches!(
            op.apply(&[1, 2], &[1, b]),
            Err(EngineError::Usage(_))
        ));
    }
    assert!(NumberOp::Add.apply(&[1, 2], &[1, 2, 3]).is_err());
}

proptest! {
    #[test]
    fn quotients_are_rounded_down(a in any::<i64>(), b in any::<i64>().prop_filter("a divisor", |b| *b != 0)) {
        prop_assume!((a, b) != (i64::MIN, -1));
        let quotient = NumberOp::FloorDiv.apply(&[a], &[b]).unwrap()[0];
        let rest = i128::from(a) - i128::from(quotient) * i128::from(b);
        prop_assert!(rest == 0 || ((rest < 0) == (b < 0) && rest.abs() < i128::from(b).abs()));
    }
}

#[test]
fn numbers_are_chosen_cut_joined_and_compared_with_lengths() {
    let found = emulated(|engine| {
        let mut r = Recorder::new();
        let a = r.words(|out| Step::TakePublic { count: 4, out });
        let zero = r.constant_numbers(vec![0]).unwrap();
        let op = NumberOp::Lt;
        let condition = r.words(|out| Step::Numbers {
            op,
            a,
            b: zero,
            out,
        });
        let chosen = r.words(|out| Step::Choose {
            condition,
            a: zero,
            b: a,
            out,
        });
        let part = r.words(|out| Step::Part {
            a: chosen,
            start: 1,
            step: 2,
            count: 2,
            out,
        });
        let parts = vec![part, chosen];
        let numbers = r.words(|out| Step::Join { parts, out });
        r.push(Step::InRange {
            a: numbers,
            length: 10,
        })
        .unwrap();
        let party = None;
        r.push(Step::Output { numbers, party }).unwrap();
        let recording = r.finish().unwrap();
        [[1, -2, 3, 9], [1, 2, 3, 10]].map(|data| {
            let played = recording.play(engine, &inputs(&data, &[]), &mut silent);
            played.map(|p| shown(&p)).map_err(|e| e.to_string())
        })
    });
    assert_eq!(found[0], Ok(vec![vec![0, 9, 1, 0, 3, 9]]));
    assert_eq!(found[1], Err("overflow: index 10, length 10".into()));
}
