//! Totals, attacks on toy sizes, and the constants of the argument.

use keyquorum_math::Prg;

use super::*;

/// A life of an adversary that bets on `bets` of n·size leaky triples, batch after batch of these. `burned`: whether a bet that is noticed
/// ends it; at most `batches` otherwise. Whether it ever knows all of a bucket.
fn life(
    prg: &mut Prg,
    (n, size): (usize, usize),
    bets: usize,
    batches: usize,
    burned: bool,
) -> bool {
    for _ in 0..batches {
        if prg.next_u64() & ((1 << bets) - 1) != 0 {
            if burned {
                return false;
            }
            continue;
        }
        // The bets are at random positions once the buckets are tossed.
        let mut left: Vec<usize> = (0..n * size).collect();
        let mut hits = vec![0; n];
        for _ in 0..bets {
            let at = prg.next_u64() as usize % left.len();
            hits[left.swap_remove(at) / size] += 1;
        }
        if hits.contains(&size) {
            return true;
        }
    }
    false
}

const TOY: (usize, usize) = (8, 3);
const LIVES: u32 = 20_000;
const BATCHES: usize = 300;

/// Share of lives that the best of some numbers of bets wins.
fn won(burned: bool) -> f64 {
    let mut prg = Prg::new([8; 16], 0);
    let share = |bets| {
        let lives = (0..LIVES).filter(|_| life(&mut prg, TOY, bets, BATCHES, burned));
        lives.count() as f64 / f64::from(LIVES)
    };
    (3..=6).map(share).fold(0.0, f64::max)
}

/// What the formulas allow an adversary in a whole life.
fn allowed() -> f64 {
    Attempt {
        kind: "toy",
        wins: buckets(TOY.0, TOY.1),
        passes: FEWEST_BETS as f64,
    }
    .chance()
}

/// Hundreds of batches give no more than the formula: a bet that is noticed ends the life. False alarm: six deviations.
#[test]
fn repeated_bets_blocked_bets_in_batch_after_batch() {
    let (won, allowed) = (won(true), allowed());
    assert!(
        won < allowed + 6.0 * (allowed / f64::from(LIVES)).sqrt(),
        "{won} of {allowed}"
    );
    assert!(
        won > allowed / 8.0,
        "{won} of {allowed}: the bound is loose"
    );
}

/// Where a bet that is noticed ends a batch only, what a batch allows adds up.
#[test]
fn repeated_bets_ablated_bets_in_batch_after_batch() {
    let (won, allowed) = (won(false), allowed());
    assert!(won > 10.0 * allowed, "{won} of {allowed}");
}

/// With the sizes of 2^-40 a batch, and no end, 10^4 batches of a pool allow 2^-27.
#[test]
fn repeated_bets_ablated_ten_thousand_batches_of_a_pool() {
    let batch = (-buckets(1 << 18 | 1 << 15, 3)).exp2();
    assert!(1e4 * batch > 2f64.powi(-28));
}

const LARGEST_KEY: u64 = 3_571_712;
/// Elements that a party gives MACs to, for a coefficient: those of the daBits of six bits.
const ELEMENTS: u64 = 200;

/// What may go wrong in the life of a key of `values` lifted values among so many parties with MACs, and primes of `prime_bits` at least.
fn total(values: u64, parties: u32, prime_bits: u32) -> f64 {
    // Of `lift`: 2^6 + parties · 2^bits ≤ 2^60.
    let bits = 59 - (parties - 1).ilog2() - 1;
    // Of its tests: parties · width ≤ 2^61 − 2^23.
    let width = ((1 << 61) - (1 << 23)) / u64::from(parties);
    of_attempts(Some(prime_bits))
        + lift(values, bits).hypot(lift_tests(values, width))
        + residues(ELEMENTS * values, parties - 1, 61)
}

#[test]
fn repeated_bets_blocked_everything_of_a_life_together() {
    let most = (-TOTAL_BITS).exp2();
    for parties in 2..=4 {
        let sum = total(LARGEST_KEY, parties, 48);
        assert!(sum < most, "{parties} parties: 2^{:.2}", sum.log2());
    }
    // A pool of 10^7 items has attempts alone: masks and pads modulo 2^k are exactly uniform.
    assert!(of_attempts(None) < most);
    // The shortest primes are too short, as documented.
    assert!(of_attempts(Some(SHORTEST_PRIME)) < most);
    assert!(of_attempts(Some(SHORTEST_PRIME - 2)) > most);
}

/// A life in which every session refuses a challenge that it does not like: how many of these lives win. `grows`: whether what an attempt wins with shrinks after each.
fn lives_of_refusals(grows: bool) -> f64 {
    let mut prg = Prg::new([9; 16], 0);
    // 2^-7 in place of 2^-46.5.
    let toy = |cut_offs: u32| (cut_and_choose_bits(0) - 7.0 - cut_and_choose_bits(cut_offs)).exp2();
    let wins = |prg: &mut Prg| {
        (0..1000).any(|cut_offs| {
            let chance = toy(if grows { cut_offs } else { 0 });
            ((prg.next_u64() >> 11) as f64) < chance * 2f64.powi(53)
        })
    };
    let won = (0..LIVES).filter(|_| wins(&mut prg)).count();
    won as f64 / f64::from(LIVES)
}

/// All refusals of a life win with 1.65 times the chance of the first. False alarm: six deviations.
#[test]
fn crash_guess_blocked_orders_that_are_refused_until_they_suit() {
    let (won, allowed) = (lives_of_refusals(true), 1.65 / 128.0);
    assert!(
        won < allowed + 6.0 * (allowed / f64::from(LIVES)).sqrt(),
        "{won} of {allowed}"
    );
    assert!(of_cut_offs() < 1.65 * (-cut_and_choose_bits(0)).exp2() + 2f64.powi(-48));
    assert!(of_cut_offs() < 2f64.powi(-45));
}

/// With tests that stay as many, a thousand sessions win nearly always.
#[test]
fn crash_guess_ablated_orders_that_are_refused_until_they_suit() {
    assert!(lives_of_refusals(false) > 0.9);
}

/// p ≤ c·(1 − s), also for bets that exclude one place of a block of noise, and two at once are no better than one.
#[test]
fn the_premise_holds_for_every_kind() {
    let mut all = attempts(Some(48));
    let best = all.iter().map(Attempt::chance).fold(0.0, f64::max);
    all.extend([4.0f64, 6.0, 7.0].map(|levels| Attempt {
        kind: "trees of noise",
        wins: SUBSET_SUMS as f64 - GRINDING + levels,
        passes: -(1.0 - (-levels).exp2()).log2(),
    }));
    for one in &all {
        assert!(one.wins >= ATTEMPT_BITS && one.chance() <= best, "{one:?}");
        for other in &all {
            let (p, s) = ((-one.wins).exp2(), (-one.passes).exp2());
            let (p2, s2) = ((-other.wins).exp2(), (-other.passes).exp2());
            assert!(p * s2 + p2 * s + p * p2 + s * s2 * best <= best * 1.0001);
        }
    }
}

/// The sum of four uniform numbers below w: probabilities of 0..=4w - 4.
fn smooth(w: usize) -> Vec<f64> {
    let mut p = vec![1.0];
    for _ in 0..4 {
        let mut next = vec![0.0; p.len() + w - 1];
        for (i, x) in p.iter().enumerate() {
            for slot in &mut next[i..i + w] {
                *slot += x / w as f64;
            }
        }
        p = next;
    }
    p
}

fn moved(p: &[f64], by: usize) -> impl Iterator<Item = (f64, f64)> {
    let at = |i: usize| p.get(i).copied().unwrap_or(0.0);
    (0..p.len() + by).map(move |i| (at(i), i.checked_sub(by).map_or(0.0, at)))
}

/// The squared Hellinger distance of a smooth mask from a moved one is bounded by the formula, which is no looser than by a tenth.
#[test]
fn moving_a_smooth_mask_changes_it_by_little() {
    for w in [64usize, 256, 1024] {
        let p = smooth(w);
        for by in [1, 5, 23] {
            let sum: f64 = moved(&p, by)
                .map(|(a, b)| (a.sqrt() - b.sqrt()).powi(2))
                .sum();
            let bound = ROUGHNESS * (by * by) as f64 / (w * w) as f64;
            assert!(sum <= bound, "{w} by {by}: {sum} of {bound}");
            assert!(sum >= 0.9 * bound || by == 23, "{w} by {by}");
        }
    }
}

/// One value: the bound is above the exact distance, which for values that are all x has no other variance than x².
#[test]
fn lift_masks_blocked_smooth_masks_by_the_numbers() {
    let (w, x) = (256usize, 8usize);
    let p = smooth(w);
    let exact: f64 = moved(&p, x).map(|(a, b)| (a - b).abs()).sum::<f64>() / 2.0;
    let bound = lift(1, 10) * x as f64 / VARIANCE.sqrt();
    assert!(exact <= bound && bound < 2.0 * exact, "{exact} of {bound}");
    // All values of the largest key, under masks of two to eight parties.
    for bits in 56..=58 {
        assert!(lift(LARGEST_KEY, bits) < 2f64.powf(-41.5));
    }
}

/// Uniform masks of the same length: the distance of a value is its mean size over the length, and they add up.
#[test]
fn lift_masks_ablated_uniform_masks_by_the_numbers() {
    let mean = VARIANCE.sqrt() * 0.7;
    for bits in 56..=58 {
        assert!(LARGEST_KEY as f64 * mean * 2f64.powi(-bits) > 2f64.powi(-36));
    }
}

/// Pads modulo a small prime: half the root of the χ² of many bounds the exact distance of one.
#[test]
fn residues_are_within_their_bound() {
    let (q, strings) = (97u32, 4096u32);
    let exact: f64 = (0..q)
        .map(|r| {
            let share = f64::from(strings / q + u32::from(r < strings % q)) / f64::from(strings);
            (share - 1.0 / f64::from(q)).abs()
        })
        .sum::<f64>()
        / 2.0;
    assert!(exact <= f64::from(q) / f64::from(strings) / 4.0);
    assert!(residues(1, 1, 61) < 2f64.powi(-58));
}
