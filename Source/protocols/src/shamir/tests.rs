//! Streams and public vectors that do not fit.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // a failed test may panic

use keyquorum_math::Zq;

use super::*;

fn pairs(parties: usize, me: usize) -> Vec<Option<(Prg, Prg)>> {
    let pair = || (Prg::new([1; 16], 0), Prg::new([2; 16], 0));
    (0..parties).map(|j| (j != me).then(pair)).collect()
}

fn streams(parties: usize, threshold: usize, me: usize) -> Vec<SubsetStream> {
    let ours = subsets(parties, parties - threshold);
    let ours = ours.into_iter().filter(|members| members.contains(&me));
    let prg = || Prg::new([3; 16], 0);
    ours.map(|members| SubsetStream {
        members,
        prg: prg(),
        fingerprint: [0; 32],
    })
    .collect()
}

#[test]
fn missing_parts_blocked_streams_that_are_missing() {
    for (n, t, me) in [(3, 1, 0), (3, 1, 2), (5, 2, 4), (4, 1, 1)] {
        let internal = |pairs, subsets| {
            let made = Shamir::new(me, n, t, pairs, subsets);
            matches!(made, Err(EngineError::Internal(_)))
        };
        assert!(!internal(pairs(n, me), streams(n, t, me)));
        assert!(!internal(pairs(n, me), Vec::new()), "randomness is dealt");
        // Of a peer, of all after one, of ourselves instead of a peer.
        let mut without = pairs(n, me);
        without[(me + 1) % n] = None;
        assert!(internal(without, streams(n, t, me)));
        let mut short = pairs(n, me);
        short.pop();
        assert!(internal(short, streams(n, t, me)));
        assert!(internal(pairs(n, (me + 1) % n), streams(n, t, me)));
        // Of a subset, and of a subset that we are not in.
        let mut fewer = streams(n, t, me);
        fewer.pop();
        assert!(internal(pairs(n, me), fewer));
        assert!(internal(pairs(n, me), streams(n, t, (me + 1) % n)));
    }
}

#[test]
fn missing_parts_blocked_public_vectors_of_another_length() {
    let field = Zq::new(65537).unwrap();
    let p = Shamir::new(0, 3, 1, pairs(3, 0), streams(3, 1, 0)).unwrap();
    for (parts, n) in [(1, 2), (1, 4), (0, 3), (2, 3)] {
        let mut share = Share::zeros(parts, n);
        let added = p.add_clear(&field, &mut share, &[1, 2, 3]);
        assert!(matches!(added, Err(EngineError::Internal(_))));
    }
    let mut share = Share::zeros(1, 3);
    p.add_clear(&field, &mut share, &[1, 2, 3]).unwrap();
    assert_eq!(share.parts, [[1, 2, 3]]);
}
