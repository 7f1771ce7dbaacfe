//! What a recorder refuses, what a recording holds, and for how long.

use super::*;

/// A recording with constants belongs to the engine that has them.
#[test]
fn another_engine_refuses_to_play_constants() {
    let session = local_mesh(1, Duration::from_secs(20)).pop().unwrap();
    let session = Session::new(Box::new(session)).unwrap();
    let options = EngineOptions::default();
    let mut engines = [0, 1].map(|_| session.engine("emulate", RING, &options).unwrap());
    let mut r = Recorder::new();
    let clear = engines[0].clear(&[5]);
    let a = r.constant_value(engines[0].as_mut(), &clear).unwrap();
    let numbers = r.words(|out| Step::Read { a, out });
    let party = None;
    r.push(Step::Output { numbers, party }).unwrap();
    let recording = r.finish().unwrap();
    let [ours, other] = engines
        .each_mut()
        .map(|e| recording.play(e.as_mut(), &inputs(&[], &[]), &mut silent));
    assert_eq!(shown(&ours.unwrap()), [[5]]);
    assert!(matches!(other, Err(EngineError::Usage(_))));
}

#[test]
fn steps_without_operands_of_the_recording_are_refused() {
    emulated(|engine| {
        let mut r = Recorder::new();
        let neg = |a, out| Step::Apply {
            operation: Operation::Neg,
            target: None,
            values: vec![a],
            numbers: vec![],
            out: vec![out],
        };
        let (fresh, out) = (r.value(), r.value());
        let unknown = ValueId(9);
        for a in [fresh, out, unknown] {
            assert!(r.push(neg(a, out)).is_err());
        }
        let constant = engine.clear(&[1, 2]);
        let constant = r.constant_value(engine, &constant).unwrap();
        let made = r.unary(Operation::Neg, constant);
        assert!(r.push(neg(made, made)).is_err());
        let assign = |target, source, out| Step::Apply {
            operation: Operation::Assign { start: 0, step: 1 },
            target: Some(target),
            values: vec![source],
            numbers: vec![],
            out: vec![out],
        };
        let out = r.value();
        assert!(r.push(assign(constant, made, out)).is_err());
        assert!(r.push(assign(made, made, out)).is_err());
        r.push(assign(made, constant, out)).unwrap();
        let again = r.value();
        assert!(r.push(assign(made, constant, again)).is_err());
        let numbers = NumbersId(0);
        let party = None;
        assert!(r.push(Step::Output { numbers, party }).is_err());
    });
}

#[test]
fn recordings_hold_no_secrets() {
    emulated(|engine| {
        let mut r = Recorder::new();
        let random = engine.random(1).unwrap();
        assert!(r.constant_value(engine, &random).is_err());
        assert!(r.constant_shares(vec![0, 1]).is_err());
        let clear = engine.clear(&[-1]);
        r.constant_value(engine, &clear).unwrap();
        let bits = engine.clear_bits(&[1, 0]);
        r.constant_value(engine, &bits).unwrap();
        r.constant_numbers(vec![-4]).unwrap();
        r.constant_shares(vec![0; 2]).unwrap();
        let constants = r.finish().unwrap().constants(engine).unwrap();
        let all = i128::from(u64::MAX);
        assert_eq!(constants, [vec![all], vec![1, 0], vec![-4], vec![0, 0]]);
    });
}

/// A constant is a copy: who gives up the original does not change the recording.
#[test]
fn constants_outlive_what_they_were_copied_from() {
    let found = emulated(|engine| {
        let mut r = Recorder::new();
        let original = engine.clear(&[1, 2]);
        let constant = r.constant_value(engine, &original).unwrap();
        let zero = engine.clear(&[0]);
        drop(engine.assign(original, 0, 1, &zero).unwrap());
        let a = constant;
        let numbers = r.words(|out| Step::Read { a, out });
        let party = None;
        r.push(Step::Output { numbers, party }).unwrap();
        let recording = r.finish().unwrap();
        [0, 1].map(|_| {
            let played = recording.play(engine, &inputs(&[], &[]), &mut silent);
            shown(&played.unwrap())
        })
    });
    assert_eq!(found, [[[1, 2]], [[1, 2]]]);
}

/// Each slot is freed once, by the step that uses it last or that makes it in vain.
#[test]
fn slots_are_freed_where_they_are_used_last() {
    let recording = emulated(|engine| product_of_inputs(2, engine));
    let steps = &recording.steps;
    let mut freed = std::collections::HashMap::new();
    for (i, planned) in steps.iter().enumerate() {
        for slot in &planned.frees {
            assert_eq!(freed.insert(*slot, i), None);
        }
    }
    for (i, planned) in steps.iter().enumerate() {
        let step = &planned.step;
        let named = step.operands().into_iter().chain(step.results());
        for slot in named.collect::<Vec<Slot>>() {
            assert!(freed[&slot] >= i);
        }
    }
}
