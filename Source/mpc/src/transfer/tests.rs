#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::thread;
use std::time::Duration;

use keyquorum_math::Zq;

use super::*;
use crate::handover::tests::{Q, spans};
use crate::protocol::subsets;
use crate::resharing::tests::{COUNT, Shape, dealt, members, rows as rows_of, shares_of, unknowns};
use crate::resharing::{Dealer, Dealt};

const SMALL: DomainKind = DomainKind::Fq(11);
const OTHER: DomainKind = DomainKind::Fq(13);
const NAME: &[u8] = b"name";
/// Tosses of a test; fewer for each of all pairs.
const TRIES: u64 = 4000;
const FEW: u64 = 1000;

/// The shapes, and whether the committee verifies products.
const SHAPES: [(Shape, bool); 8] = [
    (("rep-field", 3, 1), false),
    (("shamir", 5, 2), false),
    (("semi", 3, 2), false),
    (("mal-rep-field", 3, 1), true),
    (("mal-rep-ring", 3, 1), true),
    (("mal-shamir", 3, 1), true),
    (("mal-shamir", 5, 2), true),
    (("mal-shamir", 5, 1), true),
];

/// Seeds of all sets, as the members of a committee have them after they compared.
fn mask_seeds(of: &Members, t: usize) -> Vec<MaskSeeds> {
    let seed = |at: usize| Seed::new([at as u8 + 1; 32]);
    let sets: Vec<_> = subsets(of.parties, of.parties - t);
    let sets = sets
        .into_iter()
        .enumerate()
        .map(|(at, set)| (set, seed(at)));
    let sets: Vec<_> = sets.collect();
    (0..of.parties)
        .map(|party| MaskSeeds {
            sharing: of.sharing,
            party,
            parties: of.parties,
            sets: sets
                .iter()
                .filter(|(set, _)| set.contains(&party))
                .cloned()
                .collect(),
        })
        .collect()
}

/// A resharing of one vector and of its masks, in one domain, with everything that its members have.
#[derive(Clone)]
struct Transfer {
    old: Members,
    new: Members,
    verified: bool,
    dealers: Vec<usize>,
    domain: DomainKind,
    /// Of each old member: its shares of the vector, and of the masks.
    before: Vec<[Vec<u8>; 2]>,
    /// Of each new member.
    after: Vec<[Vec<u8>; 2]>,
}

impl Transfer {
    /// `lie`: changes what a dealer uses as its shares when it deals, by number, but not what it states.
    fn of(
        (old, verified): (Shape, bool),
        new: Shape,
        domain: DomainKind,
        count: usize,
        lie: impl Fn(usize, &mut [Vec<u8>; 2]),
    ) -> Self {
        let (before, after) = (members(old), members(new));
        let dealers: Vec<usize> = (0..before.dealers()).collect();
        let vectors = shares_of(&before, domain);
        let masks: Vec<Bytes> = if verified {
            let seeds = mask_seeds(&before, old.2);
            let each = seeds.iter();
            each.map(|seeds| seeds.shares(domain, NAME, b"vector", count).unwrap())
                .collect()
        } else {
            let each = (0..before.parties).map(|_| before.own_masks(domain, count));
            each.map(Result::unwrap).collect()
        };
        let held: Vec<_> = vectors
            .into_iter()
            .zip(masks)
            .map(|(vector, masks)| [vector, masks.to_vec()])
            .collect();
        let dealing: Vec<Dealer> = dealers
            .iter()
            .map(|i| Dealer::new(before, after, &dealers, *i, NAME).unwrap())
            .collect();
        let labels: [&[u8]; 2] = [b"vector", b"masks"];
        let sent: Vec<Vec<Vec<Bytes>>> = dealers
            .iter()
            .zip(&dealing)
            .map(|(i, dealer)| {
                let mut used = held[*i].clone();
                lie(*i, &mut used);
                let deal = |(label, shares): (&[u8], &Vec<u8>)| {
                    dealer.dealt(domain, label, shares).unwrap()
                };
                labels.into_iter().zip(&used).map(deal).collect()
            })
            .collect();
        let take = |receiver: usize| {
            let seeds: Vec<Vec<u8>> = dealing
                .iter()
                .map(|dealer| dealer.seeds(receiver).unwrap().to_vec())
                .collect();
            let dealt = Dealt::new(after, receiver, &seeds, NAME).unwrap();
            [(0, COUNT), (1, count)].map(|(what, count)| {
                let messages: Vec<Vec<u8>> = sent
                    .iter()
                    .map(|dealer| dealer[what][receiver].to_vec())
                    .collect();
                let shares = dealt.taken(domain, labels[what], count, &messages).unwrap();
                shares.to_vec()
            })
        };
        Self {
            old: before,
            new: after,
            verified,
            dealers,
            domain,
            before: held,
            after: (0..after.parties).map(take).collect(),
        }
    }

    fn honest(old: (Shape, bool), new: Shape, domain: DomainKind, count: usize) -> Self {
        Self::of(old, new, domain, count, |_, _| {})
    }

    /// Masks of the vector.
    fn count(&self) -> usize {
        self.after[0][1].len() * COUNT / self.after[0][0].len()
    }

    fn states(&self, of: &Members, held: &[[Vec<u8>; 2]], toss: &[u8; 32]) -> Vec<Vec<u8>> {
        // Each vector has its own coefficients, so each domain has.
        let label: &[u8] = if self.domain == OTHER {
            b"other"
        } else {
            b"vector"
        };
        let each = held.iter().map(|[vector, masks]| {
            let said = of.stated(self.domain, (toss, label), vector, masks);
            said.unwrap().to_vec()
        });
        each.collect()
    }

    /// Whether the check passes with statements that somebody changed: of old members, and of new ones.
    fn passes_with(
        &self,
        toss: &[u8; 32],
        change: impl Fn(&mut [Vec<u8>], &mut [Vec<u8>]),
    ) -> bool {
        let mut old = self.states(&self.old, &self.before, toss);
        let mut new = self.states(&self.new, &self.after, toss);
        change(&mut old, &mut new);
        let count = self.count();
        let before = if self.verified {
            self.old.opened(self.domain, count, &old)
        } else {
            let old: Vec<_> = self.dealers.iter().map(|i| old[*i].clone()).collect();
            self.old.summed(&self.dealers, self.domain, count, &old)
        };
        let after = self.new.opened(self.domain, count, &new);
        matches!((before, after), (Ok(y), Ok(other)) if y == other)
    }

    fn passes(&self, toss: &[u8; 32]) -> bool {
        self.passes_with(toss, |_, _| {})
    }
}

fn toss(number: u64) -> [u8; 32] {
    let mut toss = [0; 32];
    toss[..8].copy_from_slice(&number.to_le_bytes());
    toss
}

/// How often something passes in so many tosses.
fn passed(tries: u64, passes: impl Fn(&[u8; 32]) -> bool) -> u64 {
    (0..tries).filter(|number| passes(&toss(*number))).count() as u64
}

/// Whether a number of passes fits to a probability, within five standard deviations: false alarms 6 in 10^7.
fn fits(passes: u64, tries: u64, probability: f64) -> bool {
    let (n, found) = (tries as f64, passes as f64);
    (found - n * probability).abs() <= 5.0 * (n * probability * (1.0 - probability)).sqrt()
}

/// Adds to an element modulo q.
fn add(shares: &mut [u8], at: usize, value: u64, q: u64) {
    let word = &mut shares[8 * at..8 * at + 8];
    let sum = (u64::from_le_bytes((&*word).try_into().unwrap()) + value) % q;
    word.copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn right_transfers_pass_for_all_pairs() {
    for old in SHAPES {
        for (new, _) in SHAPES {
            let transfer = Transfer::honest(old, new, SMALL, rows(SMALL));
            assert!(
                (0..20).all(|number| transfer.passes(&toss(number))),
                "{old:?} to {new:?}"
            );
        }
    }
    let (replicated, semi) = ((("mal-rep-ring", 3, 1), true), (("semi", 3, 2), false));
    for domain in [
        DomainKind::Z2k(64),
        DomainKind::Z2k(1),
        DomainKind::WideFq((1 << 127) - 1),
    ] {
        for (old, new) in [
            (replicated, semi.0),
            (semi, replicated.0),
            (replicated, replicated.0),
        ] {
            let transfer = Transfer::honest(old, new, domain, rows(domain));
            assert!(
                transfer.passes(&toss(1)),
                "{old:?} to {new:?} over {domain}"
            );
        }
    }
}

#[test]
fn masks_are_as_many_as_the_bound_needs() {
    let at = |domain| rows(domain);
    assert_eq!(at(DomainKind::Fq(1_152_921_504_606_584_833)), 1);
    assert_eq!(at(DomainKind::Fq((1 << 36) - 5)), 2);
    assert_eq!(at(SMALL), 16);
    assert_eq!(at(DomainKind::WideFq((1 << 127) - 1)), 1);
    assert_eq!([at(DomainKind::Z2k(64)), at(DomainKind::Z2k(1))], [48, 48]);
}

/// A dealer that passes another summand on: seen but for 1/q, with two masks 1/q².
#[test]
fn another_summand_passes_with_one_in_q() {
    let lie = |at: usize, used: &mut [Vec<u8>; 2]| {
        if at == 1 {
            add(&mut used[0], 2, 3, 11);
        }
    };
    for old in SHAPES {
        for (new, _) in SHAPES {
            let transfer = Transfer::of(old, new, SMALL, 1, lie);
            let found = passed(FEW, |toss| transfer.passes(toss));
            assert!(fits(found, FEW, 1.0 / 11.0), "{found}: {old:?} to {new:?}");
        }
    }
    let twice = Transfer::of(SHAPES[3], SHAPES[6].0, SMALL, 2, lie);
    let found = passed(TRIES, |toss| twice.passes(toss));
    assert!(fits(found, TRIES, 1.0 / 121.0), "{found}");
    let enough = Transfer::of(SHAPES[3], SHAPES[6].0, SMALL, rows(SMALL), lie);
    assert_eq!(passed(TRIES, |toss| enough.passes(toss)), 0);
}

/// All domains must pass: wrong in one of two 1/q, wrong in both 1/(q q'). So more wrong vectors pass less often.
#[test]
fn an_error_in_all_domains_passes_less_often_than_in_one() {
    let wrong = |domain, q, count| {
        let lie = move |at: usize, used: &mut [Vec<u8>; 2]| {
            if at == 0 {
                add(&mut used[0], 0, 1, q);
            }
        };
        Transfer::of(SHAPES[6], SHAPES[3].0, domain, count, lie)
    };
    let (first, second) = (wrong(SMALL, 11, 1), wrong(OTHER, 13, 1));
    let right = Transfer::honest(SHAPES[6], SHAPES[3].0, OTHER, 1);
    let in_one = passed(TRIES, |toss| first.passes(toss) && right.passes(toss));
    assert!(fits(in_one, TRIES, 1.0 / 11.0), "{in_one}");
    let in_all = passed(TRIES, |toss| first.passes(toss) && second.passes(toss));
    assert!(fits(in_all, TRIES, 1.0 / 143.0), "{in_all}");
}

/// What new members have is of no polynomial of degree t': κ (x − 1)(x − 2) is added, which t' + 1 of five do not see.
#[test]
fn a_polynomial_of_a_higher_degree_passes_with_one_in_q() {
    let mut transfer = Transfer::honest(SHAPES[3], SHAPES[7].0, SMALL, 1);
    for (i, shares) in transfer.after.iter_mut().enumerate().skip(2) {
        add(&mut shares[0], 1, (i * (i - 1)) as u64 % 11, 11);
    }
    let found = passed(TRIES, |toss| transfer.passes(toss));
    assert!(fits(found, TRIES, 1.0 / 11.0), "{found}");
}

/// The holders of a summand got different ones.
#[test]
fn copies_that_differ_pass_with_one_in_q() {
    for (part, at) in [(0, 0), (1, COUNT)] {
        let mut transfer = Transfer::honest(SHAPES[5], SHAPES[3].0, SMALL, 1);
        add(&mut transfer.after[2][0], at, 5, 11);
        let found = passed(TRIES, |toss| transfer.passes(toss));
        assert!(fits(found, TRIES, 1.0 / 11.0), "{found}: part {part}");
    }
}

/// Why the toss comes after the shares: an error of a mask that fits it passes always.
#[test]
fn a_mask_that_fits_a_known_toss_passes() {
    let known = toss(7);
    let field = Zq::new(11).unwrap();
    let mut factors = [0; COUNT];
    let mut stream = stream_of(
        b"keyquorum-v1/transfer check",
        &Seed::new(known),
        b"",
        b"vector",
    );
    coefficients(&field, &mut stream, &mut factors);
    let lie = |at: usize, used: &mut [Vec<u8>; 2]| {
        if at == 1 {
            add(&mut used[0], 2, 3, 11);
            add(&mut used[1], 0, field.neg(field.mul(factors[2], 3)), 11);
        }
    };
    for old in [SHAPES[2], SHAPES[3]] {
        let transfer = Transfer::of(old, SHAPES[5].0, SMALL, 1, lie);
        assert!(transfer.passes(&known));
        let found = passed(TRIES, |toss| transfer.passes(toss));
        assert!(fits(found, TRIES, 1.0 / 11.0), "{found}");
    }
}

/// Statements of one member that differ from what the others determine never pass; of all colluding ones they are no better.
#[test]
fn statements_that_do_not_fit_never_pass() {
    for old in SHAPES.iter().filter(|(_, verified)| *verified) {
        let transfer = Transfer::honest(*old, SHAPES[3].0, SMALL, 1);
        for liar in 0..old.0.1 {
            for value in 1..11 {
                let found = (0..5).any(|number| {
                    transfer.passes_with(&toss(number), |old, _| add(&mut old[liar], 0, value, 11))
                });
                assert!(!found, "{old:?}: party {liar} adds {value}");
            }
        }
    }
    for (new, _) in SHAPES.iter().filter(|(_, verified)| *verified) {
        let transfer = Transfer::honest(SHAPES[3], *new, SMALL, 1);
        for liar in 0..new.1 {
            let found = (0..5).any(|number| {
                transfer.passes_with(&toss(number), |_, new| add(&mut new[liar], 0, 4, 11))
            });
            assert!(!found, "{new:?}: party {liar}");
        }
    }
}

/// Two of five old members state what fits a wrong y: (x − 1)(x − 2)(x − 3) is zero at the honest ones, and has a higher degree.
#[test]
fn t_colluding_old_members_do_not_move_y() {
    let lie = |at: usize, used: &mut [Vec<u8>; 2]| {
        if at == 1 {
            add(&mut used[1], 0, 1, 11); // an error that only another y hides
        }
    };
    let transfer = Transfer::of(SHAPES[6], SHAPES[3].0, SMALL, 1, lie);
    for a in 0..11 {
        for b in 0..11 {
            let passes = transfer.passes_with(&toss(1), |old, _| {
                add(&mut old[0], 0, a, 11);
                add(&mut old[1], 0, b, 11);
            });
            assert!(!passes, "{a}, {b}");
        }
    }
}

/// Modulo 2^k a subset of a wrong vector has a wrong sum with ½ or more, also for an error of 2^(k−1): 6 masks let 2^−6 pass.
#[test]
fn subset_sums_modulo_powers_of_two() {
    for (domain, error) in [(DomainKind::Z2k(64), 1u64 << 63), (DomainKind::Z2k(1), 1)] {
        let lie = |at: usize, used: &mut [Vec<u8>; 2]| {
            if at == 0 {
                let byte = if error == 1 { 0 } else { 7 };
                used[0][byte] ^= if error == 1 { 1 } else { 0x80 };
            }
        };
        let transfer = Transfer::of(SHAPES[4], SHAPES[2].0, domain, 6, lie);
        let found = passed(TRIES, |toss| transfer.passes(toss));
        assert!(fits(found, TRIES, 1.0 / 64.0), "{found} over {domain}");
    }
}

#[test]
fn statements_that_are_not_elements_are_refused() {
    let old = members(SHAPES[3].0);
    let right = vec![0u8; 16];
    for wrong in [vec![0; 15], vec![0; 24], vec![], vec![255; 16]] {
        let said = [right.clone(), wrong, right.clone()];
        let end = old.opened(SMALL, 1, &said);
        assert!(
            matches!(&end, Err(EngineError::Protocol(text)) if text.contains("member 1 stated")),
            "{end:?}"
        );
    }
    assert!(
        old.opened(SMALL, 1, &[right.clone(), right.clone()])
            .is_err()
    );
    let mut other = right.clone();
    other[8] = 1;
    let end = old.opened(SMALL, 1, &[right.clone(), other, right]);
    assert!(
        matches!(&end, Err(EngineError::Check { text, .. }) if text == "members 0 and 1 state different values of one summand"),
        "{end:?}"
    );
    assert!(members(SHAPES[1].0).summed(&[0, 1], SMALL, 1, &[]).is_err());
}

// -- privacy ------------------------------------------------------------------------------------------------------------

/// What everybody sees when one element is passed on and y is its sum with one mask, as rows of unknowns. `masked`: whether it is.
struct View {
    old: Members,
    new: Members,
    verified: bool,
    dealers: Vec<usize>,
    size: usize,
    /// By old member: its shares of the element, and of the mask.
    shares: [Vec<Vec<u64>>; 2],
    /// By dealer: the pieces of both.
    pieces: [Vec<Vec<Vec<u64>>>; 2],
    secret: Vec<u64>,
    masked: bool,
}

impl View {
    fn of((old, verified): (Shape, bool), new: Shape, masked: bool) -> Self {
        let t = old.2;
        let (old, new) = (members(old), members(new));
        let dealers: Vec<usize> = (0..old.dealers()).collect();
        let (x, seeded) = (
            unknowns(&old),
            if new.sharing == Sharing::Shamir {
                new.dealers() - 1
            } else {
                new.parties - 1
            },
        );
        let sets = subsets(old.parties, old.parties - t);
        let parts = parts(old.sharing);
        let drawn = if verified {
            sets.len()
        } else {
            parts * dealers.len()
        };
        let from = x + drawn;
        let size = from + 2 * dealers.len() * seeded;
        let (shares, secret) = rows_of(&old, size);
        let masks: Vec<Vec<u64>> = (0..old.parties)
            .map(|i| {
                let mut row = vec![0; parts * size];
                for part in 0..parts {
                    let row = &mut row[part * size..(part + 1) * size];
                    if verified {
                        let seeds = MaskSeeds {
                            sharing: old.sharing,
                            party: i,
                            parties: old.parties,
                            sets: vec![],
                        };
                        let field = Zq::new(Q).unwrap();
                        for (at, set) in sets.iter().enumerate().filter(|(_, set)| set.contains(&i))
                        {
                            row[x + at] = seeds.factor(&field, part, set).unwrap();
                        }
                    } else if i < dealers.len() {
                        row[x + parts * i + part] = 1;
                    }
                }
                row
            })
            .collect();
        let deal =
            |shares: &[Vec<u64>], from| dealt((&old, &new), &dealers, shares, (from, seeded));
        let pieces = [
            deal(&shares, from),
            deal(&masks, from + dealers.len() * seeded),
        ];
        Self {
            old,
            new,
            verified,
            dealers,
            size,
            shares: [shares, masks],
            pieces,
            secret,
            masked,
        }
    }

    fn sum(&self, a: &[u64], mask: &[u64]) -> Vec<u64> {
        let pairs = a.iter().zip(mask);
        pairs
            .map(|(a, u)| (a + if self.masked { *u } else { 0 }) % Q)
            .collect()
    }

    /// All statements: of old members, and of new ones.
    fn public(&self) -> Vec<Vec<u64>> {
        let [x, u] = &self.shares;
        let stating = if self.verified {
            self.old.parties
        } else {
            self.dealers.len()
        };
        let mut view = Vec::new();
        for i in 0..stating {
            let both = self.sum(&x[i], &u[i]);
            view.extend(both.chunks_exact(self.size).map(<[u64]>::to_vec));
        }
        for piece in 0..self.new.parties {
            let total = |pieces: &[Vec<Vec<u64>>]| {
                pieces
                    .iter()
                    .fold(vec![0; self.size], |sum: Vec<u64>, dealer| {
                        sum.iter()
                            .zip(&dealer[piece])
                            .map(|(a, b)| (a + b) % Q)
                            .collect()
                    })
            };
            view.push(self.sum(&total(&self.pieces[0]), &total(&self.pieces[1])));
        }
        view
    }

    /// What t old and t' new members see besides.
    fn private(&self, corrupt: &[usize], receivers: &[usize]) -> Vec<Vec<u64>> {
        let mut view = Vec::new();
        for i in corrupt {
            for shares in &self.shares {
                view.extend(shares[*i].chunks_exact(self.size).map(<[u64]>::to_vec));
            }
        }
        for pieces in &self.pieces {
            for (dealer, pieces) in self.dealers.iter().zip(pieces) {
                if corrupt.contains(dealer) {
                    view.extend(pieces.iter().cloned());
                }
                for receiver in receivers {
                    view.extend(self.new.held(*receiver).iter().map(|i| pieces[*i].clone()));
                }
            }
        }
        view
    }

    /// Coalitions, and how many of them know the secret.
    fn known(&self, thresholds: (usize, usize)) -> (usize, usize) {
        let public = self.public();
        let (mut all, mut known) = (0, 0);
        for corrupt in subsets(self.old.parties, thresholds.0) {
            for receivers in subsets(self.new.parties, thresholds.1) {
                let mut view = public.clone();
                view.extend(self.private(&corrupt, &receivers));
                all += 1;
                known += usize::from(spans(view, self.secret.clone()));
            }
        }
        (all, known)
    }
}

/// With all masks, all statements and all pieces; without masks y is the secret.
#[test]
fn t_old_and_t_new_members_do_not_know_the_secret_after_the_check() {
    for old in SHAPES {
        for (new, _) in SHAPES {
            let thresholds = (old.0.2, new.2);
            let (all, known) = View::of(old, new, true).known(thresholds);
            assert!(
                all > 0 && known == 0,
                "{known} of {all}: {old:?} to {new:?}"
            );
            let (all, known) = View::of(old, new, false).known(thresholds);
            assert!(
                all > 0 && known == all,
                "{known} of {all}: {old:?} to {new:?}"
            );
        }
    }
}

// -- seeds --------------------------------------------------------------------------------------------------------------

/// The masks of a committee's members fit together, are fresh in each session, and other protocols have none.
#[test]
fn masks_of_members_are_shares_of_one_vector() {
    for ((protocol, n, t), _) in SHAPES.iter().filter(|(_, verified)| *verified) {
        let masks = |label: &'static [u8]| {
            let parties: Vec<_> = keyquorum_net::local_mesh(*n, Duration::from_secs(20))
                .into_iter()
                .map(|transport| {
                    let (protocol, t) = (*protocol, *t);
                    thread::spawn(move || {
                        let session = Session::new(Box::new(transport)).unwrap();
                        let options = EngineOptions {
                            threshold: Some(t),
                            ..EngineOptions::default()
                        };
                        assert!(session.mask_seeds("semi", &options).is_err());
                        let seeds = session.mask_seeds(protocol, &options).unwrap();
                        seeds.shares(SMALL, NAME, label, 3).unwrap().to_vec()
                    })
                })
                .collect();
            let held: Vec<Vec<u8>> = parties
                .into_iter()
                .map(|party| party.join().unwrap())
                .collect();
            members((*protocol, *n, *t))
                .opened(SMALL, 3, &held)
                .unwrap()
                .to_vec()
        };
        let found: Vec<_> = (0..4).map(|_| masks(b"a")).collect();
        assert!(
            found.iter().any(|other| *other != found[0]),
            "seeds come from the operating system"
        );
    }
}
