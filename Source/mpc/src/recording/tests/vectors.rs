//! Every operation on vectors, against clear text or its inverse.

use super::*;

/// Every operation on vectors: three parties open what clear text gives.
#[test]
fn all_operations_on_vectors_agree_with_clear_text() {
    fn record(engine: &mut dyn Engine) -> Recording {
        let mut r = Recorder::new();
        let numbers = r.words(|out| Step::TakePublic { count: 4, out });
        let clear = r.of_numbers(Operation::Clear, numbers);
        let zero = r
            .constant_shares(vec![0; engine.share_parts() * 8])
            .unwrap();
        let zero = r.vector(|out| Step::Import {
            shares: zero,
            count: 1,
            out,
        });
        let secret = r.binary(Operation::Add, zero, clear);
        r.show(secret);
        for op in [
            Operation::Neg,
            Operation::Sum(2),
            Operation::Slice {
                start: 3,
                step: -2,
                count: 2,
            },
        ] {
            let made = r.unary(op, secret);
            r.show(made);
        }
        for op in [
            Operation::Sub,
            Operation::Mul,
            Operation::Dot(2),
            Operation::MatrixProduct {
                rows: 2,
                inner: 2,
                columns: 2,
            },
        ] {
            let made = r.binary(op, secret, clear);
            r.show(made);
        }
        let at = r.constant_numbers(vec![2, 0, 2]).unwrap();
        let a = secret;
        let picked = r.one(Operation::Gather, None, &[a], &[at]);
        let one = r.unary(
            Operation::Slice {
                start: 1,
                step: 1,
                count: 1,
            },
            picked,
        );
        let three = r.unary(Operation::Repeat(3), one);
        let all = r.one(Operation::Concat, None, &[picked, three, secret], &[]);
        let every_other = Operation::Assign { start: 1, step: 2 };
        let all = r.one(every_other, Some(all), &[picked], &[]);
        let all = r.one(Operation::Scatter, Some(all), &[three], &[at]);
        r.show(all);
        let low = r.unary(Operation::OpenLow(5), secret);
        let by = engine.clear(&[3]);
        let by = r.constant_value(engine, &by).unwrap();
        for op in [crate::ClearOp::Shr, crate::ClearOp::Mod] {
            let a = r.binary(Operation::ClearInteger(op), low, by);
            let numbers = r.words(|out| Step::Read { a, out });
            r.push(Step::Output {
                numbers,
                party: Some(1),
            })
            .unwrap();
        }
        let bits = r.of_numbers(Operation::ClearBits, numbers);
        let not = r.unary(Operation::Not, bits);
        let random = r.one(Operation::RandomBits(4), None, &[], &[]);
        let hidden = r.binary(Operation::Xor, random, not);
        let hidden = r.binary(Operation::And, hidden, random); // random & !(bits ^ random ^ random) …
        let number = r.unary(Operation::BitToArith, hidden);
        let times = r.unary(Operation::BitToArith, random);
        let a = bits;
        let numbers = r.words(|out| Step::ReadBits { a, out });
        let bit = r.of_numbers(Operation::Clear, numbers);
        // … is random · bits, so this is zero.
        let product = r.binary(Operation::Mul, times, bit);
        let zeros = r.binary(Operation::Sub, number, product);
        r.show(zeros);
        let party = None;
        r.push(Step::Output { numbers, party }).unwrap();
        r.push(Step::Flush).unwrap();
        r.finish().unwrap()
    }
    let data = [5i64, -3, 1 << 40, 30];
    let play = move |engine: &mut dyn Engine| {
        let recording = record(engine);
        let given = inputs(&data, &[]);
        [0, 1].map(|_| shown(&recording.play(engine, &given, &mut silent).unwrap()))
    };
    let [clear, again] = emulated(play);
    assert_eq!(clear, again);
    assert_eq!(clear[0], data);
    assert_eq!(clear[2], [2, (1 << 40) + 30]);
    assert_eq!(clear[3], [30, -3]);
    assert_eq!(clear.last().unwrap(), &[1, 1, 0, 0]);
    assert_eq!(clear[clear.len() - 2], [0; 4]);
    for of_party in parties(3, "ring", move |_, engine| play(engine)) {
        assert_eq!(of_party, [clear.clone(), clear.clone()]);
    }
}

/// Random numbers and summands come with their bits: the sum over the bits is the number.
#[test]
fn rows_of_bits_are_those_of_their_numbers() {
    let differences = parties(3, "ring", |_, engine| {
        let mut r = Recorder::new();
        let (out, count) = (r.value(), 3);
        let rows: Vec<_> = (0..8).map(|_| r.value()).collect();
        r.push(Step::Apply {
            operation: Operation::Edabit { length: 8, count },
            target: None,
            values: vec![],
            numbers: vec![],
            out: [&[out], rows.as_slice()].concat(),
        })
        .unwrap();
        let mut rest = out;
        for (i, row) in rows.into_iter().enumerate() {
            let factor = engine.clear(&[1 << i]);
            let factor = r.constant_value(engine, &factor).unwrap();
            let bit = r.unary(Operation::BitToArith, row);
            let term = r.binary(Operation::Mul, bit, factor);
            rest = r.binary(Operation::Sub, rest, term);
        }
        r.show(rest);
        r.show(out);
        // The lowest bit of a sum is the sum of the lowest bits; the other rows are not needed.
        let summands = engine.summands();
        let rows: Vec<Vec<_>> = (0..summands)
            .map(|_| (0..2).map(|_| r.value()).collect())
            .collect();
        r.push(Step::Apply {
            operation: Operation::SummandBits(2),
            target: None,
            values: vec![out],
            numbers: vec![],
            out: rows.concat(),
        })
        .unwrap();
        let lowest = rows.iter().map(|row| row[0]);
        let bit = lowest
            .reduce(|a, b| r.binary(Operation::Xor, a, b))
            .unwrap();
        r.show_bits(bit);
        let recording = r.finish().unwrap();
        let given = inputs(&[], &[]);
        [0, 1].map(|_| shown(&recording.play(engine, &given, &mut silent).unwrap()))
    });
    for [first, second] in &differences {
        for run in [first, second] {
            assert_eq!(run[0], [0; 3]);
            assert!(run[1].iter().all(|n| (0..256).contains(n)));
            let lowest: Vec<i64> = run[1].iter().map(|n| n & 1).collect();
            assert_eq!(run[2], lowest);
        }
        assert_ne!(first[1], second[1], "fails once in 2^24 runs");
    }
}

#[test]
fn random_vectors_are_others_in_every_run() {
    let runs = emulated(|engine| {
        let mut r = Recorder::new();
        for operation in [Operation::Random(64), Operation::RandomBit(64)] {
            let made = r.one(operation, None, &[], &[]);
            r.show(made);
        }
        let recording = r.finish().unwrap();
        let given = inputs(&[], &[]);
        [0, 1].map(|_| shown(&recording.play(engine, &given, &mut silent).unwrap()))
    });
    assert_ne!(runs[0][0], runs[1][0]);
    assert_ne!(runs[0][1], runs[1][1], "fails once in 2^64 runs");
    assert!(
        runs.iter()
            .all(|run| run[1].iter().all(|bit| [0, 1].contains(bit)))
    );
}

#[test]
fn blocks_are_shuffled_in_another_order_in_every_run() {
    let data: Vec<i64> = (0..64).collect();
    let all = parties(3, "ring", move |_, engine| {
        let mut r = Recorder::new();
        let numbers = r.words(|out| Step::TakePublic { count: 64, out });
        let clear = r.of_numbers(Operation::Clear, numbers);
        let zeros = vec![0; engine.share_parts() * 8 * 64];
        let shares = r.constant_shares(zeros).unwrap();
        let count = 64;
        let zeros = r.vector(|out| Step::Import { shares, count, out });
        let secret = r.binary(Operation::Add, zeros, clear);
        let shuffled = r.unary(Operation::Shuffle(2), secret);
        r.show(shuffled);
        let recording = r.finish().unwrap();
        let given = inputs(&data, &[]);
        [0, 1].map(|_| shown(&recording.play(engine, &given, &mut silent).unwrap()).remove(0))
    });
    for [first, second] in all {
        for run in [&first, &second] {
            let (blocks, _) = run.as_chunks::<2>();
            assert!(blocks.iter().all(|[a, b]| a % 2 == 0 && *b == a + 1));
            let mut sorted = run.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..64));
        }
        assert_ne!(first, second, "fails once in 32! runs");
    }
}

#[test]
fn inverses_over_a_field_are_those_of_the_run_s_numbers() {
    const Q: u64 = 1_152_921_504_606_584_833;
    for products in parties_over(DomainKind::Fq(Q), 3, "rep-field", |_, engine| {
        let mut r = Recorder::new();
        let numbers = r.words(|out| Step::TakePublic { count: 3, out });
        let a = r.of_numbers(Operation::Clear, numbers);
        let inverse = r.unary(Operation::ClearInv, a);
        let a = r.binary(Operation::Mul, a, inverse);
        let numbers = r.words(|out| Step::Read { a, out });
        let party = None;
        r.push(Step::Output { numbers, party }).unwrap();
        let recording = r.finish().unwrap();
        [[1, 2, 3], [-5, 7, 1 << 50]].map(|data| {
            let played = recording.play(engine, &inputs(&data, &[]), &mut silent);
            shown(&played.unwrap())
        })
    }) {
        assert_eq!(products, [[[1, 1, 1]], [[1, 1, 1]]]);
    }
}
