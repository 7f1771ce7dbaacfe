#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use keyquorum_math::Zq;

use super::*;
use crate::handover::tests::{Q, spans};
use crate::protocol::subsets;

const FIELD: DomainKind = DomainKind::Fq(1_152_921_504_606_584_833);
pub(crate) const COUNT: usize = 4;
const NAME: &[u8] = b"name";

pub(crate) type Shape = (&'static str, usize, usize);

const SHAPES: [Shape; 7] = [
    ("rep-field", 3, 1),
    ("shamir", 3, 1),
    ("shamir", 5, 2),
    ("shamir", 5, 1),
    ("semi", 2, 1),
    ("semi", 3, 2),
    ("semi", 4, 3),
];

pub(crate) fn members((protocol, n, t): Shape) -> Members {
    Members::of(protocol, n, t).unwrap()
}

/// The elements on which the shares of all members depend, as rows: element k of a vector is the coefficient of unknown k of `size`. Then the row of the secret.
pub(crate) fn rows(of: &Members, size: usize) -> (Vec<Vec<u64>>, Vec<u64>) {
    let field = Zq::new(Q).unwrap();
    let unit = |at: usize| (0..size).map(move |k| u64::from(k == at));
    let sum = |n: usize| (0..size).map(|k| u64::from(k < n)).collect();
    let n = of.parties;
    match of.sharing {
        Sharing::Replicated => {
            let share = |i: usize| unit(i).chain(unit((i + n - 1) % n)).collect();
            ((0..n).map(share).collect(), sum(n))
        }
        Sharing::Shamir => {
            let power = |i: usize, e: usize| field.from_u128((i as u128 + 1).pow(e as u32));
            let share = |i: usize| {
                let row = (0..size).map(|e| if e <= of.threshold { power(i, e) } else { 0 });
                row.collect()
            };
            ((0..n).map(share).collect(), unit(0).collect())
        }
        _ => ((0..n).map(|i| unit(i).collect()).collect(), sum(n)),
    }
}

/// Unknowns of a sharing.
pub(crate) fn unknowns(of: &Members) -> usize {
    match of.sharing {
        Sharing::Shamir => of.threshold + 1,
        _ => of.parties,
    }
}

/// Rows of all pieces of all dealers, by dealer; the pieces from seeds are unknowns of their own, those of a dealer after those of the one before, from number `from`.
pub(crate) fn dealt(
    (old, new): (&Members, &Members),
    dealers: &[usize],
    shares: &[Vec<u64>],
    (from, seeded): (usize, usize),
) -> Vec<Vec<Vec<u64>>> {
    let field = Zq::new(Q).unwrap();
    let size = shares[0].len() / parts(old.sharing);
    let deal = |(at, dealer): (usize, &usize)| {
        let summand = old
            .summand(&field, dealers, *dealer, &shares[*dealer])
            .unwrap();
        let first = from + at * seeded;
        let unit = |at: usize| Zeroizing::new((0..size).map(|k| u64::from(k == at)).collect());
        let mut pieces: Vec<Vector<Zq>> = (first..first + seeded).map(unit).collect();
        pieces.extend(new.completed(&field, &summand, &pieces).unwrap());
        pieces.iter().map(|piece| piece.to_vec()).collect()
    };
    dealers.iter().enumerate().map(deal).collect()
}

/// Coalitions of t old and t' new members, and how many of them know the secret. `seeded`: pieces from seeds.
fn coalitions(old: &Members, new: &Members, dealers: &[usize], seeded: usize) -> (usize, usize) {
    let size = unknowns(old) + dealers.len() * seeded;
    let (shares, secret) = rows(old, size);
    let pieces = dealt((old, new), dealers, &shares, (unknowns(old), seeded));
    let (mut all, mut known) = (0, 0);
    for corrupt in subsets(old.parties, old.threshold) {
        for receivers in subsets(new.parties, new.threshold) {
            let mut view: Vec<Vec<u64>> = Vec::new();
            for i in &corrupt {
                view.extend(shares[*i].chunks_exact(size).map(<[u64]>::to_vec));
            }
            for (dealer, pieces) in dealers.iter().zip(&pieces) {
                if corrupt.contains(dealer) {
                    view.extend(pieces.iter().cloned());
                }
                for receiver in &receivers {
                    view.extend(new.held(*receiver).iter().map(|i| pieces[*i].clone()));
                }
            }
            all += 1;
            known += usize::from(spans(view, secret.clone()));
        }
    }
    (all, known)
}

#[test]
fn t_old_and_t_new_members_do_not_know_the_secret() {
    for old in SHAPES.map(members) {
        for new in SHAPES.map(members) {
            for dealers in subsets(old.parties, old.dealers()) {
                let (all, known) = coalitions(&old, &new, &dealers, new.seeded());
                assert!(
                    all > 0 && known == 0,
                    "{known} of {all}: {old:?} to {new:?}"
                );
            }
        }
    }
}

/// The attack on dealers whose polynomials have degree t' − 1: each t' new members interpolate.
#[test]
fn polynomials_of_a_lower_degree_give_the_secret_away() {
    let (old, new) = (members(SHAPES[0]), members(SHAPES[2]));
    assert_eq!(coalitions(&old, &new, &[0, 1], 2), (30, 0));
    assert_eq!(coalitions(&old, &new, &[0, 1], 1), (30, 30));
}

/// The new shares of all members, from old shares of unknowns, which are random numbers.
fn reshared(
    old: Shape,
    new: Shape,
    dealers: &[usize],
    domain: DomainKind,
) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let (before, after) = (members(old), members(new));
    let shares = shares_of(&before, domain);
    let dealing: Vec<Dealer> = dealers
        .iter()
        .map(|i| Dealer::new(before, after, dealers, *i, NAME).unwrap())
        .collect();
    let sent: Vec<Vec<Bytes>> = dealing
        .iter()
        .map(|dealer| {
            dealer
                .dealt(domain, b"vector", &shares[dealer.party])
                .unwrap()
        })
        .collect();
    let take = |receiver: usize| {
        let seeds: Vec<Vec<u8>> = dealing
            .iter()
            .map(|dealer| dealer.seeds(receiver).unwrap().to_vec())
            .collect();
        let messages: Vec<Vec<u8>> = sent.iter().map(|all| all[receiver].to_vec()).collect();
        let dealt = Dealt::new(after, receiver, &seeds, NAME).unwrap();
        dealt
            .taken(domain, b"vector", COUNT, &messages)
            .unwrap()
            .to_vec()
    };
    (shares, (0..after.parties).map(take).collect())
}

/// Shares of some vector.
pub(crate) fn shares_of(of: &Members, domain: DomainKind) -> Vec<Vec<u8>> {
    struct Of<'a>(&'a Members);
    impl InDomain for Of<'_> {
        fn compute<D: Domain>(&self, domain: &D) -> Result<Bytes> {
            let mut prg = Prg::new([3; 16], 0);
            let unknowns = unknowns(self.0);
            let mut values = vec![domain.zero(); unknowns * COUNT];
            domain.random(&mut prg, &mut values);
            let mut all = Zeroizing::new(Vec::new());
            for i in 0..self.0.parties {
                match self.0.sharing {
                    Sharing::Shamir => {
                        let x = point(domain, i);
                        let at = |k: usize| {
                            let row = (0..unknowns).rev().map(|e| values[e * COUNT + k]);
                            row.fold(domain.zero(), |sum, c| domain.add(domain.mul(sum, x), c))
                        };
                        let share: Vec<_> = (0..COUNT).map(at).collect();
                        all.extend_from_slice(&encoded::<D>(&share));
                    }
                    _ => {
                        for piece in self.0.held(i) {
                            let share = &values[piece * COUNT..(piece + 1) * COUNT];
                            all.extend_from_slice(&encoded::<D>(share));
                        }
                    }
                }
            }
            Ok(all)
        }
    }
    let all = in_domain(of.sharing, domain, &Of(of)).unwrap();
    all.chunks_exact(all.len() / of.parties)
        .map(<[u8]>::to_vec)
        .collect()
}

/// The vector of shares: of all members, or (Shamir) the last t + 1.
pub(crate) fn opened(of: &Members, domain: DomainKind, shares: &[Vec<u8>]) -> Vec<u8> {
    struct Of<'a>(&'a Members, &'a [Vec<u8>]);
    impl InDomain for Of<'_> {
        fn compute<D: Domain>(&self, domain: &D) -> Result<Bytes> {
            let n = self.0.parties;
            let dealers: Vec<usize> = match self.0.sharing {
                Sharing::Shamir => (n - self.0.dealers()..n).collect(),
                _ => (0..self.0.dealers()).collect(),
            };
            let mut sum = vec![domain.zero(); COUNT];
            for i in &dealers {
                let share = decoded(domain, self.0.sharing, 1, &self.1[*i])?;
                let summand = self.0.summand(domain, &dealers, *i, &share)?;
                domain.add_assign(&mut sum, &summand);
            }
            Ok(encoded::<D>(&sum))
        }
    }
    in_domain(of.sharing, domain, &Of(of, shares))
        .unwrap()
        .to_vec()
}

#[test]
fn all_pairs_of_sharings_keep_the_secret() {
    for (old, new) in SHAPES.iter().flat_map(|old| SHAPES.map(|new| (*old, new))) {
        let (before, after) = (members(old), members(new));
        for dealers in subsets(before.parties, before.dealers()) {
            let (shares, reshared) = reshared(old, new, &dealers, FIELD);
            let (secret, found) = (
                opened(&before, FIELD, &shares),
                opened(&after, FIELD, &reshared),
            );
            assert_eq!(secret, found, "{old:?} to {new:?} by {dealers:?}");
            assert_ne!(secret, [0; 8 * COUNT]);
        }
    }
}

#[test]
fn rings_and_wide_fields_keep_the_secret() {
    let domains = [
        DomainKind::Z2k(64),
        DomainKind::Z2k(32),
        DomainKind::Z2k(1),
        DomainKind::WideFq((1 << 127) - 1),
    ];
    for domain in domains {
        for (old, new) in [
            (("rep-field", 3, 1), ("semi", 3, 2)),
            (("semi", 2, 1), ("rep-field", 3, 1)),
        ] {
            let dealers: Vec<usize> = (0..members(old).dealers()).collect();
            let (shares, reshared) = reshared(old, new, &dealers, domain);
            let found = opened(&members(new), domain, &reshared);
            assert_eq!(opened(&members(old), domain, &shares), found);
        }
    }
}

/// Both holders of a summand have the same one.
#[test]
fn copies_of_replicated_summands_agree() {
    let (_, new) = reshared(("shamir", 5, 2), ("rep-field", 3, 1), &[0, 2, 4], FIELD);
    let half = new[0].len() / 2;
    for i in 0..3 {
        assert_eq!(new[i][half..], new[(i + 2) % 3][..half]);
    }
}

#[test]
fn pieces_of_two_vectors_and_two_runs_differ() {
    let (old, new) = (members(SHAPES[0]), members(SHAPES[2]));
    let shares = shares_of(&old, FIELD);
    let deal = |label: &[u8], dealer: &Dealer| dealer.dealt(FIELD, label, &shares[0]).unwrap();
    let first = Dealer::new(old, new, &[0, 1], 0, NAME).unwrap();
    let second = Dealer::new(old, new, &[0, 1], 0, NAME).unwrap();
    assert_eq!(deal(b"a", &first), deal(b"a", &first));
    assert_ne!(deal(b"a", &first), deal(b"b", &first));
    assert_ne!(
        deal(b"a", &first),
        deal(b"a", &second),
        "seeds come from the operating system"
    );
    let lengths: Vec<usize> = deal(b"a", &first).iter().map(|sent| sent.len()).collect();
    assert_eq!(
        lengths,
        [0, 0, 8 * COUNT, 8 * COUNT, 8 * COUNT],
        "t' members have seeds"
    );
}

#[test]
fn what_is_not_elements_is_refused() {
    let new = members(SHAPES[2]);
    let dealt = Dealt::new(new, 4, &[vec![], vec![]], NAME).unwrap();
    for wrong in [
        vec![0; 8 * COUNT - 1],
        vec![0; 8 * COUNT + 8],
        vec![255; 8 * COUNT],
        vec![],
    ] {
        let sent = [vec![0; 8 * COUNT], wrong];
        let end = dealt.taken(FIELD, b"vector", COUNT, &sent);
        assert!(
            matches!(&end, Err(EngineError::Protocol(text)) if text.contains("dealer 1 sent")),
            "{end:?}"
        );
    }
    assert!(
        dealt
            .taken(FIELD, b"vector", COUNT, &[vec![0; 8 * COUNT]])
            .is_err()
    );
    for seeds in [vec![0; 31], vec![0; 64]] {
        assert!(matches!(
            Dealt::new(new, 0, &[seeds], NAME),
            Err(EngineError::Protocol(_))
        ));
    }
}

#[test]
fn committees_dealers_and_domains_are_refused() {
    assert!(Members::of("emulate", 1, 0).is_err());
    for protocol in ["mascot", "spdz2k"] {
        let values = Members::of(protocol, 3, 2).unwrap();
        assert_eq!((values.sharing, values.dealers()), (Sharing::Additive, 3));
    }
    let (three, five) = (members(SHAPES[1]), members(SHAPES[2]));
    for dealers in [&[0][..], &[0, 1, 2], &[1, 0], &[1, 1], &[0, 3]] {
        assert!(
            Dealer::new(three, five, dealers, 0, NAME).is_err(),
            "{dealers:?}"
        );
    }
    assert!(Dealer::new(three, five, &[0, 1], 2, NAME).is_err());
    let dealer = Dealer::new(three, five, &[0, 1], 0, NAME).unwrap();
    assert!(
        dealer
            .dealt(DomainKind::Z2k(64), b"vector", &[0; 8])
            .is_err()
    );
    assert!(dealer.dealt(FIELD, b"vector", &[0; 7]).is_err());
    assert!(dealer.seeds(5).is_err());
    let small = dealer.dealt(DomainKind::Fq(5), b"vector", &[1, 0, 0, 0, 0, 0, 0, 0]);
    assert!(matches!(small, Err(EngineError::Usage(text)) if text.contains("prime is too small")));
}
