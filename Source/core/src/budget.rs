//! The probability that anything goes wrong in the life of a key, all together: less than 2^-40.
//!
//! Everything statistical is here: how large buckets, tests and masks must be so that the chances of all batches, checks and values of a
//! key's life add up to less than 2^-[`TOTAL_BITS`]. Computational assumptions (128 bits) are not counted: one of them is that of the hash of OTs' strings
//! (AES with tweaks, which are known in advance), where who evaluates AES p times distinguishes strings of q OTs of a link from random with about
//! p·q/2^128, so 2^88 evaluations for 2^40 OTs. Another is that of the nodes of trees of noise, whose hash has no tweak: there q is the number of nodes of all trees of all links in the life of a key, two for an
//! element that they make: 2^88 evaluations for 2^40 nodes. There are two kinds of terms.
//!
//! # Attempts
//!
//! A deviation that can win (a bet on leaky triples, a wrong opening, wrong numbers under wrong tests) is an *attempt*. It wins with a
//! probability p, passes unnoticed without having won with a probability s, and otherwise fails a check, which burns the MAC key: no
//! attempt comes after it. Let c be the largest p/(1 − s) of all kinds: **the premise is p ≤ c·(1 − s), for every kind**. If V is the most that an adversary can win with, then V ≤ p + s·V for its first attempt, so V ≤ c,
//! **whatever the number of batches and of attempts of any kind**. Several attempts under one check must all pass it. Two of them win with p₁·s₂ + p₂·(s₁ + p₁) ≤ c·((1 − s₁)·s₂ + 1 − s₂) = c·(1 − s₁·s₂), and pass with s₁·s₂:
//! the premise holds for them together as well. s need not be small.
//! The premise, kind by kind ([`attempts`]):
//!
//! * *Leaky ANDs in buckets of B.* An adversary that bets on k leaky triples passes with 2^-k; to break a triple it needs all of a bucket: k ≥ B ≥
//!   [`FEWEST_BETS`], so s ≤ 1/8. N buckets are N chances, which [`buckets`] counts.
//! * *daBits.* The same with the bits of one honest party, of which the first party's have one at a fixed position ([`dabit_buckets`]).
//!   Wrong MACs that nobody guessed pass the 64 subset sums with 2^-60: who makes them sees the subsets before it commits to a repair.
//! * *Trees of noise* (`protocols::authenticated::silent`). A bet on a place may exclude only one of 8, 32 or 64: it passes with s = 7/8, 31/32 or 63/64. It wins if the place is excluded, which has 1 − s, and wrong MACs pass the
//!   subset sums all the same, with 2^-60. So p ≤ c·(1 − s) for c = 2^-60. Who passes learns log2(1/s) bits about places, which may be a fraction of a bit. They add up over all bets, blocks and batches of a life,
//!   as the s are multiplied: ℓ bits are learned with 2^-ℓ at most. They win
//!   nothing by themselves: they make the assumption of learning parity with noise weaker, whose parameters leave room for the 40 bits that somebody learns with 2^-40.
//! * *Two keys of elements* among three and more parties pass their check with 2^-48, and so does *another key* than that of stored shares
//!   (`protocols::authenticated::keys`).
//! * *MAC checks.* A wrong opening passes with the guess of a key or with a linear combination that vanishes; nothing passes without having won, s is
//!   as p. Wrong openings of one check are one attempt, since they are combined. Modulo 2^k the four combinations, which may be refused, cost 3.1 of 48
//!   bits; over F_q one vanishes with 1/q, and 2/q is counted, though four are verified now. **Primes below 2^42 do not reach [`ATTEMPT_BITS`]**: a key
//!   with such primes has 2/q in place of the first term of its total.
//!   MACs of bits have 48 bits, and a wrong bit passes with the guess of all of them: bits are combined in a field of 2^128 elements.
//! * *Cut and choose* (edaBits). Wrong numbers pass under wrong tests only, which must be on them ([`cut_and_choose`]); who passes has won.
//! * *Lifted values with MACs* ([`LIFT_TESTS`]). A value that is another one in another domain passes the sum of a random subset with 1/2, whatever else is wrong
//!   (`keyquorum.sharing.numbers.lift_tests` has the argument); who passes all tests has won.
//! * *The OT check.* Guesses of g groups of Δ pass with 2^-4g and reveal 4g bits of a key: a forgery after them wins with what is left, the
//!   product is that of a forgery without them.
//! * *Triples.* Words that fit only some choice bits pass with 2^-ℓ if ℓ bits are guessed, and leave the other factor uniform within
//!   2^-((E − ℓ)/2 + 1). Over F_q the highest bits are biased: s may exceed 1/2 there, and p is smaller then; all bets of a life gain below 2^-41.7
//!   (`keyquorum_ot::amplified`).
//!
//! Who gets the others' sums first sees that a check will fail, and may break off instead of giving its own. So the verdict of a check is fixed on the disk before: the next session
//! finds it out (`crate::mac_key`), and the attempt is one as if nobody had broken off.
//!
//! # Attempts that are cut off
//!
//! Who gets a toss first that decides whether a deviation of before is noticed (the order of tests, the subsets of subset sums, the factors of a MAC check) may break off if it does not
//! like it. Nothing hangs on a key until then, and the session is over. So it was an attempt that cost nothing, and it is counted: [`MOST_CUT_OFFS`] end the key. A session has one at most: what it
//! has won before is void, and several deviations under open tosses must all go unnoticed. So after c of them the chance of one more is that of the best kind, and all are added up
//! ([`of_cut_offs`], below 2^-45).
//! * *Cut and choose*: [`cut_and_choose_bits`], which grow with c so that the sum stays below 2^-45.7 however large c is: 2^-46.5·Σ 1/(1 + c)². The parties take the largest c of all.
//! * *Subset sums*: 2^-60.
//! * *MAC checks*: the adversary goes on if the combinations are divisible by 2^w more than what is wrong, which has 2^-4w for four of them, and then has to guess 48 − w bits. With 2^12 tosses to refuse that is
//!   2^-44.9, in the attempt that it does not break off (`macs_modulo_2_to_the_k`). Those of bits are combined in a field of 2^128 elements.
//! * Not counted is the toss of the factors of `values`, which tie the words for digits of a key together: the next MAC check may be far away. Two sums are opened there, so each session is one more
//!   chance of 2^-84 modulo 2^k, and 1/q² over a field.
//!
//! # Honest leaks
//!
//! What is not exactly uniform leaks in every honest run, and no check ends that: distances are added up over all values of a life. That the
//! distance of many values grows with their number is true of uniform masks, which reveal something at their ends. The square root of the number is
//! enough where every value's squared Hellinger distance H² is what adds up: the distance of all is at most sqrt(2·ΣH²).
//!
//! * *Masks of `lift`* ([`lift`]). An honest party's mask is the sum of four uniform numbers of b − 2 bits. Moving such a
//!   distribution by one changes it by H² = [`ROUGHNESS`]/2 · 2^-2(b − 2), by x by at most x² times that, and what is masked has variance
//!   [`VARIANCE`] at most, whatever the others' masks are.
//! * *Tests of lifted values* ([`lift_tests`]). Each opens the sum of a random half of the values under a mask of the same form. They add to the same ΣH², so the
//!   distance of both together is the root of the sum of their squares.
//! * *Residues* ([`residues`]). A string of B bits modulo q, a pad of a digit of a product with a key, has a χ² of at most (q/2^B)²/4. All elements are counted so; most are made of trees now,
//!   of which one pad of 128 bits a block remains.
//! * *edaBits over fields*: nothing. The sum of a number and its test shows the number only if it lies where not every number could be,
//!   and then the batch is given up, as after a failed check; modulo 2^k tests are uniform.
//! * *Random elements*: nothing, words that would be biased are drawn again. The orders of buckets are tossed by everybody, and none is likelier
//!   than 1 + 2^-23 times its share.
//!
//! Not in the total, with a statement of their own: MACs of short primes, `round_flood` (2^-40 a decryption: [`flood`]), comparisons of a program over
//! a field (`program.security` bits a comparison, as in MP-SPDZ), and the flooding of CKKS (its policy).

use keyquorum_ot::vole::KEY_BITS as ELEMENT_MAC_BITS;
use keyquorum_ot::{BIT_MAC_BITS as MAC_BITS, amplified, vole};

use crate::mac_key::MOST_CUT_OFFS;

/// −log2 of what may go wrong in a key's life.
pub const TOTAL_BITS: f64 = 40.0;
/// −log2 of the chance of one attempt.
pub const ATTEMPT_BITS: f64 = 41.0;
/// Leaks without which nothing of a bucket is known: buckets are never smaller.
pub const FEWEST_BETS: usize = 3;
/// Twice the squared Hellinger distance by which the sum of four uniform numbers below w changes when it is moved by one, times w²:
/// 0.77894 for large w, and less than this from w = 64 on.
pub const ROUGHNESS: f64 = 0.78;
/// Variance of what `lift` masks, at most: that of 21 coins minus 21 coins.
pub const VARIANCE: f64 = 10.5;
/// Bits of the shortest prime that the second kind of MAC check reaches [`ATTEMPT_BITS`] with.
pub const SHORTEST_PRIME: u32 = 43;

/// Sums of random subsets that test whether lifted values are the same in all domains: a wrong one passes with 2^-41.
pub const LIFT_TESTS: u32 = 41;

/// −log2 of the probability that wrong keys of elements pass their check.
pub const KEY_CHECK_BITS: u32 = 48;
/// Subset sums that are verified, each under a random element of its own.
pub const SUBSET_SUMS: usize = 64;
/// Combinations of a MAC check that are verified at once. Who sees their factors first may break off until they suit it, which is counted and not
/// punished: modulo 2^k one combination that is divisible by 2^w, under which w bits fewer of a key are to be guessed, needs 2^w attempts,
/// and four need 2^4w.
pub const COMBINATIONS: usize = 4;

/// log2 of what the adversary gains in subset sums as it sees the subsets before it commits.
const GRINDING: f64 = 4.0;

/// log2 of the number of ways to take `k` of `n`.
pub fn log2_choose(n: usize, k: usize) -> f64 {
    (0..k.min(n - k))
        .map(|i| ((n - i) as f64 / (i + 1) as f64).log2())
        .sum()
}

/// log2 of the most bets that fill `size` slots, times what is left of them: max over k of C(k, size)·2^-k.
fn bets(size: usize, most: usize) -> f64 {
    (size..=most)
        .map(|k| log2_choose(k, size) - k as f64)
        .fold(f64::NEG_INFINITY, f64::max)
}

/// −log2 of the probability that some triple of a batch of `n` with buckets of `size` is broken: N·C(k, B)/C(N·B, B)·2^-k for the best k.
pub fn buckets(n: usize, size: usize) -> f64 {
    log2_choose(n * size, size) - (n as f64).log2() - bets(size, 4 * size)
}

/// The same for bits in both domains: the buckets of the first party have one bit at a fixed position.
pub fn dabit_buckets(n: usize, size: usize) -> f64 {
    let rest = size - 1;
    // Of k leaks at fixed positions each has its bucket: k·2^-k is at most 1/2.
    let first = 1.0 + log2_choose(n * rest, rest) - bets(rest, 4 * size);
    first.min(buckets(n, size))
}

/// −log2 of the probability that `wrong` of `n` numbers pass `tests` tests each, and `opened` further tests are right.
pub fn cut_and_choose(n: usize, tests: usize, wrong: usize, opened: usize) -> f64 {
    log2_choose(n * tests + opened, wrong * tests)
}

/// −log2 of the chance that a batch of edaBits must leave to wrong numbers, after so many challenges that were cut off.
pub fn cut_and_choose_bits(cut_offs: u32) -> f64 {
    ATTEMPT_BITS + 5.5 + 2.0 * (1.0 + f64::from(cut_offs)).log2()
}

/// The chance of all attempts of a life that ended with a challenge that was cut off.
pub fn of_cut_offs() -> f64 {
    let chance = |cut_offs| {
        let sums = (GRINDING - SUBSET_SUMS as f64).exp2();
        (-cut_and_choose_bits(cut_offs)).exp2().max(sums)
    };
    (0..MOST_CUT_OFFS).map(chance).sum()
}

/// −log2 of the chance that wrong values modulo 2^k pass a MAC check whose factors could be seen and refused [`MOST_CUT_OFFS`] times. Combinations are divisible by
/// 2^w more than the values with 2^-w each, and then w bits fewer are to be guessed.
fn macs_modulo_2_to_the_k() -> f64 {
    let reached = |w: i32| {
        let all = f64::from(w) * COMBINATIONS as f64;
        (f64::from(MOST_CUT_OFFS) * (-all).exp2()).min(1.0)
    };
    let gained: f64 = (1..=ELEMENT_MAC_BITS as i32)
        .map(|w| f64::from(w - 1).exp2() * reached(w))
        .sum();
    f64::from(ELEMENT_MAC_BITS) - (1.0 + gained).log2()
}

/// A way to deviate: −log2 of its chance to win, and to pass unnoticed without having won.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attempt {
    /// The attempt.
    pub kind: &'static str,
    /// −log2 of p.
    pub wins: f64,
    /// −log2 of s.
    pub passes: f64,
}

impl Attempt {
    /// Its probability in a life: p/(1 − s).
    pub fn chance(&self) -> f64 {
        (-self.wins).exp2() / (1.0 - (-self.passes).exp2())
    }
}

/// All that end a key's life when they fail, with the size that the code gives them. `prime_bits`: bits of the shortest prime that values have
/// MACs over, if any.
pub fn attempts(prime_bits: Option<u32>) -> Vec<Attempt> {
    let attempt = |kind, wins, passes| Attempt { kind, wins, passes };
    let passing = FEWEST_BETS as f64;
    let mac = f64::from(ELEMENT_MAC_BITS);
    // One guess of a choice bit; each further one costs more than it gives.
    let amplified = 1.0 + (amplified::EXTRA - 1) as f64 / 2.0 + 1.0;
    let sums = SUBSET_SUMS as f64 - GRINDING;
    let mut all = vec![
        attempt("leaky ANDs in buckets", ATTEMPT_BITS, passing),
        attempt("bits of both domains in buckets", ATTEMPT_BITS, passing),
        attempt("subset sums", sums, sums),
        attempt(
            "two keys of elements",
            f64::from(KEY_CHECK_BITS),
            f64::from(KEY_CHECK_BITS),
        ),
        attempt(
            "another key than that of stored shares",
            f64::from(KEY_CHECK_BITS),
            f64::from(KEY_CHECK_BITS),
        ),
        attempt("MACs of bits", MAC_BITS as f64, MAC_BITS as f64),
        attempt(
            "wrong numbers in cut and choose",
            cut_and_choose_bits(0),
            cut_and_choose_bits(0),
        ),
        attempt(
            "lifted values that differ between domains",
            f64::from(LIFT_TESTS),
            f64::from(LIFT_TESTS),
        ),
        attempt(
            "MACs modulo 2^k",
            macs_modulo_2_to_the_k(),
            macs_modulo_2_to_the_k(),
        ),
    ];
    all.push(attempt("words that fit some choice bits", amplified, 1.0));
    if let Some(bits) = prime_bits {
        let q = f64::from(bits - 1);
        let wins = -((-mac).exp2() + 2.0 * (-q).exp2()).log2();
        all.push(attempt("MACs over a field", wins, wins));
    }
    all
}

/// The most that attempts win in a life: the best kind of all, after those that were cut off.
pub fn of_attempts(prime_bits: Option<u32>) -> f64 {
    let all = attempts(prime_bits);
    all.iter().map(Attempt::chance).fold(0.0, f64::max) + of_cut_offs()
}

/// Distance from independence of `values` values that `lift` opens under masks of `bits` bits of an honest party.
pub fn lift(values: u64, bits: u32) -> f64 {
    (values as f64 * VARIANCE * ROUGHNESS).sqrt() * (2.0 - f64::from(bits)).exp2()
}

/// Distance from independence of the sums that test `values` lifted values, each of a random half of them, under sums of four uniform numbers below `width` / 4
/// of an honest party.
pub fn lift_tests(values: u64, width: u64) -> f64 {
    let opened = values as f64 * f64::from(LIFT_TESTS) / 2.0;
    (opened * VARIANCE * ROUGHNESS).sqrt() * 4.0 / width as f64
}

/// Distance from independence of pads modulo a prime of `prime_bits` bits: of `elements` elements that one party gives MACs to, with `peers` peers.
pub fn residues(elements: u64, peers: u32, prime_bits: u32) -> f64 {
    let k = keyquorum_ot::Parameters::default().k();
    let digits = vole::KEY_BITS as usize / k;
    let pads = elements as f64 * f64::from(peers) * digits as f64;
    // Half the root of the sum of all χ², each at most (q / 2^B)² / 4.
    (pads / 4.0).sqrt() / 2.0 * (f64::from(prime_bits) - f64::from(vole::string_bits(k))).exp2()
}

/// Distance of `decryptions` decryptions of `round_flood`, which the total does not contain.
pub fn flood(decryptions: u64) -> f64 {
    decryptions as f64 * (-40f64).exp2()
}

#[cfg(test)]
mod tests;
