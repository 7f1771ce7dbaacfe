//! Many small GGM trees of which one party lacks a leaf each, for noise at secret places.
//!
//! One party draws the roots and has all leaves. For every level of a tree it sends the sums (over F_2) of the left and of the right children, under the strings of a
//! random OT; the other party takes the sum of the side that its path does not take. So it has all leaves but the one at the end of its path. Gilboa, Ishai, "Distributed point
//! functions" (EUROCRYPT 2014); Schoppmann, Gascón, Reichert, Raykova, "Distributed vector-OLE" (CCS 2019), section 4; Weng, Yang, Katz, Wang, "Wolverine" (IEEE S&P 2021), figure 6.
//! Nothing here is checked: what sums are wrong makes leaves wrong, which callers must find by what they make of them.
//!
//! Children of a node x are π(x ⊕ 1) ⊕ x ⊕ 1 and π(x ⊕ 2) ⊕ x ⊕ 2 for the public permutation π of [`Hash`]: pseudorandom in the ideal permutation model, where
//! p evaluations of AES tell q nodes from random ones with about p·q/2^128. There is no tweak: q counts the nodes of all trees.

use keyquorum_math::mask_of;
use zeroize::{Zeroize, Zeroizing};

use crate::{Hash, OtError, Security, check_length, check_same};

/// Nodes that a secret is made of.
pub type Nodes = Zeroizing<Vec<u128>>;

/// Bytes of the message for `trees` trees of `levels` levels.
pub fn message_bytes(trees: usize, levels: usize) -> usize {
    32 * trees * levels
}

/// Both children of all nodes, one after the other.
fn children(hash: &Hash, nodes: &[u128]) -> Result<Nodes, OtError> {
    let mut left = Zeroizing::new(vec![0; nodes.len()]);
    let mut right = Zeroizing::new(vec![0; nodes.len()]);
    hash.hash(0, 1, nodes, &mut left)?;
    hash.hash(0, 2, nodes, &mut right)?;
    let mut both = Zeroizing::new(Vec::with_capacity(2 * nodes.len()));
    both.extend(left.iter().zip(right.iter()).flat_map(|(l, r)| [*l, *r]));
    Ok(both)
}

/// Sums of the left and of the right children of each tree.
fn sums(both: &[u128], trees: usize) -> impl Iterator<Item = [u128; 2]> {
    let width = (both.len() / trees.max(1)).max(1);
    both.chunks_exact(width).map(|tree| {
        let (pairs, _) = tree.as_chunks::<2>();
        pairs.iter().fold([0; 2], |[l, r], [a, b]| [l ^ a, r ^ b])
    })
}

/// All leaves of the trees with these roots, tree after tree, and the message. `strings`: of the random OTs, those of 0 and those of 1, level after level, in
/// a level a string a tree.
///
/// # Errors
/// [`OtError::Internal`] for strings that are not as many as levels of all trees.
pub fn full(
    roots: &[u128],
    levels: usize,
    [zeros, ones]: [&[u128]; 2],
    out: &mut Vec<u8>,
) -> Result<Nodes, OtError> {
    let trees = roots.len();
    check_same(zeros.len(), trees * levels)?;
    check_same(ones.len(), trees * levels)?;
    let hash = Hash::new(Security::SemiHonest);
    let mut nodes = Zeroizing::new(roots.to_vec());
    let levels = zeros
        .chunks_exact(trees.max(1))
        .zip(ones.chunks_exact(trees.max(1)));
    for (zeros, ones) in levels {
        nodes = children(&hash, &nodes)?;
        for ([left, right], (zero, one)) in sums(&nodes, trees).zip(zeros.iter().zip(ones)) {
            out.extend_from_slice(&(left ^ zero).to_le_bytes());
            out.extend_from_slice(&(right ^ one).to_le_bytes());
        }
    }
    Ok(nodes)
}

/// The leaves but those at the ends of the paths. `choices`: words 0 or 1, of the OTs with the chosen `strings`, in the order of [`full`]; the path of a tree takes the other side in each
/// level. Leaf x has index x ⊕ α in its tree, α the end of the path, whose highest bit is decided at the root: so index 0, which holds zeros, is the one that is missing.
///
/// # Errors
/// [`OtError::Length`]; [`OtError::Internal`] as for [`full`].
pub fn punctured(
    trees: usize,
    levels: usize,
    choices: &[u64],
    strings: &[u128],
    message: &[u8],
) -> Result<Nodes, OtError> {
    check_length("trees of noise", message, message_bytes(trees, levels))?;
    check_same(strings.len(), trees * levels)?;
    check_same(choices.len(), trees * levels)?;
    let hash = Hash::new(Security::SemiHonest);
    let mut nodes = Zeroizing::new(vec![0u128; trees]);
    let (words, _) = message.as_chunks::<16>();
    let (pairs, _) = words.as_chunks::<2>();
    let trees = trees.max(1);
    let levels = choices
        .chunks_exact(trees)
        .zip(strings.chunks_exact(trees))
        .zip(pairs.chunks_exact(trees));
    for ((choices, strings), pairs) in levels {
        let mut next = children(&hash, &nodes)?;
        let width = next.len() / trees;
        let each = choices.iter().zip(strings).zip(pairs);
        for (tree, ((choice, string), [left, right])) in next.chunks_exact_mut(width).zip(each) {
            // All ones if the path goes to the right.
            let to_the_right = mask_of(u128::from(choice ^ 1));
            let (pairs, _) = tree.as_chunks_mut::<2>();
            let [left, right] = [u128::from_le_bytes(*left), u128::from_le_bytes(*right)];
            let mut missing = string ^ right ^ (to_the_right & (left ^ right));
            for [on, off] in pairs.iter_mut() {
                let swapped = to_the_right & (*on ^ *off);
                *on ^= swapped;
                *off ^= swapped;
            }
            for [_, off] in pairs.iter().skip(1) {
                missing ^= off;
            }
            if let Some([on, off]) = pairs.first_mut() {
                (*on, *off) = (0, missing);
            }
            missing.zeroize();
        }
        nodes = next;
    }
    Ok(nodes)
}

#[cfg(test)]
#[path = "../../math/tests/traced/mod.rs"]
mod traced;

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    fn word(i: usize) -> u128 {
        (i as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
    }

    #[test]
    fn all_leaves_but_one_of_each_tree_are_known() {
        for (trees, levels) in [(1, 1), (5, 3), (64, 6)] {
            let roots: Vec<u128> = (0..trees).map(word).collect();
            let strings: [Vec<u128>; 2] = [0, 1].map(|s| {
                (0..trees * levels)
                    .map(|i| word(1000 * s + i + 77))
                    .collect()
            });
            let choices: Vec<u64> = (0..trees * levels)
                .map(|i| (word(i) >> 99 & 1) as u64)
                .collect();
            let chosen: Vec<u128> = (choices.iter().enumerate())
                .map(|(i, c)| strings[*c as usize][i])
                .collect();
            let mut message = Vec::new();
            let all = full(&roots, levels, [&strings[0], &strings[1]], &mut message).unwrap();
            assert_eq!(message.len(), message_bytes(trees, levels));
            let known = punctured(trees, levels, &choices, &chosen, &message).unwrap();
            for tree in 0..trees {
                let alpha = (0..levels).fold(0, |a, level| {
                    a << 1 | (choices[level * trees + tree] ^ 1) as usize
                });
                for x in 0..1usize << levels {
                    let ours = known[(tree << levels) + (x ^ alpha)];
                    let theirs = all[(tree << levels) + x];
                    assert_eq!(x != alpha, ours == theirs);
                    assert!(x != alpha || ours == 0);
                }
            }
            let short = punctured(trees, levels, &choices, &chosen, &message[1..]);
            assert!(matches!(short, Err(OtError::Length { .. })));
        }
    }

    /// A string that is missing would leave a sum in clear.
    #[test]
    fn strings_of_another_number_are_refused() {
        for [zeros, ones] in [[5, 6], [6, 5], [7, 7]] {
            let (zeros, ones) = (vec![1; zeros], vec![1; ones]);
            let refused = full(&[1, 2], 3, [&zeros, &ones], &mut Vec::new()).map(drop);
            assert!(matches!(refused, Err(OtError::Internal(_))));
        }
        for (choices, strings) in [(5, 6), (6, 5)] {
            let message = vec![0; message_bytes(2, 3)];
            let refused = punctured(2, 3, &vec![0; choices], &vec![0; strings], &message).map(drop);
            assert!(matches!(refused, Err(OtError::Internal(_))));
        }
    }

    /// Choices are secret.
    #[test]
    fn timing_blocked_punctured_trees_run_the_same_instructions() {
        let name = "trees::tests::timing_blocked_punctured_trees_run_the_same_instructions";
        let (trees, levels) = (2, 3);
        let message = vec![7; message_bytes(trees, levels)];
        let choices = [[0u64; 6], [1; 6], [0, 1, 1, 0, 1, 0]];
        let found = traced::traces(name, &choices, |choices| {
            std::hint::black_box(punctured(trees, levels, choices, &[5; 6], &message).unwrap());
        });
        if let Some(found) = found {
            assert!(found[0].0 > 100, "{found:?}");
            assert!(found.iter().all(|trace| *trace == found[0]), "{found:?}");
        }
    }
}
