//! The share file, the input and the output of a run.

use super::*;

#[test]
fn shares_are_read_across_the_parts_of_a_file_and_stored_at_its_end() {
    let found = emulated(|engine| {
        let mut r = Recorder::new();
        let loaded = r.raw(|out| Step::Load {
            start: 1,
            count: 4,
            out,
        });
        let at = r.words(|out| Step::TakePublic { count: 2, out });
        let picked = r.raw(|out| Step::Pick { start: 1, at, out });
        for (shares, count) in [(loaded, 4), (picked, 2)] {
            let a = r.vector(|out| Step::Import { shares, count, out });
            r.show(a);
            r.push(Step::Store { a }).unwrap();
        }
        let recording = r.finish().unwrap();
        assert!(recording.uses_shares() && !recording.prints());
        let play = |engine: &mut dyn Engine, at: [i64; 2], second: &[u16]| {
            let sections = [
                vec![Row::Bytes8(&[10, 11])],
                vec![Row::Bytes2(second)],
                vec![Row::Copied(vec![14, 15].into())],
            ];
            let given = Inputs {
                sections: sections.map(|rows| Section::new(rows).unwrap()).into(),
                width: 1,
                public: vec![&at],
                private: &[],
            };
            let played = recording.play(engine, &given, &mut silent);
            played.map_err(|error| error.to_string())
        };
        let played = play(engine, [4, 0], &[12, 13]).unwrap();
        let stored: Vec<Vec<u8>> = played.stored.iter().map(|s| s.to_vec()).collect();
        let short = play(engine, [3, 0], &[]).unwrap_err();
        let outside = play(engine, [-1, 0], &[12, 13]).unwrap_err();
        (shown(&played), stored, short, outside)
    });
    let (outputs, stored, short, outside) = found;
    assert_eq!(outputs, [vec![11, 12, 13, 14], vec![15, 11]]);
    let words = |list: &[u64]| {
        list.iter()
            .flat_map(|w| w.to_le_bytes())
            .collect::<Vec<_>>()
    };
    assert_eq!(stored, [words(&[11, 12, 13, 14]), words(&[15, 11])]);
    assert!(short.starts_with("the share file ends before"), "{short}");
    assert!(
        outside.contains("picks a share before the first"),
        "{outside}"
    );
    assert!(Section::new(vec![Row::Bytes1(&[1]), Row::Bytes4(&[1, 2])]).is_err());
}

#[test]
fn inputs_that_end_too_early_are_refused() {
    let errors = emulated(|engine| {
        [true, false].map(|public| {
            let mut r = Recorder::new();
            r.words(|out| match public {
                true => Step::TakePublic { count: 3, out },
                false => Step::TakePrivate { count: 3, out },
            });
            let played = r
                .finish()
                .unwrap()
                .play(engine, &inputs(&[1, 2], &[1, 2]), &mut silent);
            played.unwrap_err().to_string()
        })
    });
    assert!(
        errors[0].starts_with("the public input ends"),
        "{}",
        errors[0]
    );
    assert!(
        errors[1].starts_with("the private input ends"),
        "{}",
        errors[1]
    );
}

#[test]
fn texts_are_printed_when_their_steps_come() {
    let printed = emulated(|engine| {
        let mut r = Recorder::new();
        r.push(Step::Print("before".into())).unwrap();
        r.words(|out| Step::TakePublic { count: 1, out });
        r.push(Step::Print("after".into())).unwrap();
        let recording = r.finish().unwrap();
        assert!(recording.prints());
        let mut printed = Vec::new();
        let mut print = |text: &str| {
            printed.push(text.to_owned());
            Ok(())
        };
        assert!(
            recording
                .play(engine, &inputs(&[], &[]), &mut print)
                .is_err()
        );
        let mut refuse = |_: &str| Err(EngineError::usage("no paper"));
        let error = recording.play(engine, &inputs(&[1], &[]), &mut refuse);
        assert_eq!(error.unwrap_err().to_string(), "no paper");
        printed
    });
    assert_eq!(printed, ["before"]);
}
