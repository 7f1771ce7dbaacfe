//! Punctured PRFs: one party knows the 2^k leaves of a GGM tree, the other all but leaf α, from k random OTs.
//!
//! Roy, "SoftSpokenOT" (CRYPTO 2022), figures 13 and 14: the OTs bring, level by level, the sum of the children on the side
//! that the path to α does not take. The check makes the leaves consistent: each leaf also yields 32 bytes, their sum and a
//! hash of all are sent. Numbers: 2k nodes of 16 bytes and 32 bytes of check a tree, 32 bytes of hash in all.

use sha2::{Digest, Sha256, Sha512};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use zeroize::{Zeroize, Zeroizing};

use crate::{LinkKey, OtError, Seed, check_length, check_same, entropy, uneven};

type Node = u128;
type Check = [u8; 32];

/// Both children of a node.
fn children(node: Node) -> [Node; 2] {
    let mut hash = Sha256::new();
    hash.update(b"keyquorum-ot/node");
    hash.update(node.to_le_bytes());
    let mut digest: [u8; 32] = hash.finalize().into();
    let (low, high) = digest.split_at(16);
    let word = |half: &[u8]| half.iter().rev().fold(0, |w, b| w << 8 | Node::from(*b));
    let both = [word(low), word(high)];
    digest.zeroize();
    both
}

/// A leaf's seed and its check string.
fn leaf(node: Node) -> (Seed, Check) {
    let mut hash = Sha512::new();
    hash.update(b"keyquorum-ot/leaf");
    hash.update(node.to_le_bytes());
    let mut digest: [u8; 64] = hash.finalize().into();
    let (mut seed, mut check) = (Zeroizing::new([0u8; 16]), [0u8; 32]);
    for (s, d) in seed.iter_mut().zip(&digest) {
        *s = *d;
    }
    for (c, d) in check.iter_mut().zip(digest.iter().skip(32)) {
        *c = *d;
    }
    digest.zeroize();
    (seed, check)
}

fn add(sum: &mut Check, check: &Check) {
    for (s, c) in sum.iter_mut().zip(check) {
        *s ^= c;
    }
}

/// Bytes of the message of all trees for `count` base OTs.
pub fn message_bytes(k: usize, count: usize) -> usize {
    32 * count + 32 * (count / k) + 32
}

/// Fails if base OTs are left over.
fn whole_trees(k: usize, count: usize) -> Result<(), OtError> {
    check_same(count, (count / k) * k)
}

/// Makes the trees for base OT strings `strings` (k a tree, lowest bit of α first): all leaves, tree after
/// tree, and the message.
///
/// # Errors
/// [`OtError::Entropy`]; [`OtError::Internal`] if there are strings that belong to no tree.
pub fn full(k: usize, strings: &[[Seed; 2]]) -> Result<(Vec<Seed>, Vec<u8>), OtError> {
    whole_trees(k, strings.len())?;
    let mut seeds = Vec::with_capacity((strings.len() / k) << k);
    let mut message = Vec::with_capacity(message_bytes(k, strings.len()));
    let mut hash = Sha256::new();
    for strings in strings.chunks_exact(k) {
        let mut root = [0u8; 16];
        entropy(&mut root)?;
        let mut level = Zeroizing::new(vec![Node::from_le_bytes(root)]);
        root.zeroize();
        // The highest bit of a leaf's number is decided at the root.
        for pair in strings.iter().rev() {
            let mut next = Zeroizing::new(Vec::with_capacity(2 * level.len()));
            let mut sums = [0; 2];
            for node in level.iter() {
                for (sum, child) in sums.iter_mut().zip(children(*node)) {
                    *sum ^= child;
                    next.push(child);
                }
            }
            for (sum, string) in sums.iter().zip(pair) {
                message.extend_from_slice(&(sum ^ Node::from_le_bytes(**string)).to_le_bytes());
            }
            level = next;
        }
        let mut total = [0u8; 32];
        for node in level.iter() {
            let (seed, check) = leaf(*node);
            add(&mut total, &check);
            hash.update(check);
            seeds.push(seed);
        }
        message.extend_from_slice(&total);
    }
    message.extend_from_slice(&hash.finalize());
    Ok((seeds, message))
}

/// The trees without leaf α: tree `i` has α = bits `i * k..(i + 1) * k` of `key`, and `strings` are the base OT strings of
/// the choices that are not these bits. Leaf x has index x ⊕ α, so that index 0, which holds zeros, is the missing one.
///
/// # Errors
/// [`OtError::Length`]; [`OtError::Check`] if the message is not that of any trees.
pub fn punctured(
    k: usize,
    key: &LinkKey,
    strings: &[Seed],
    message: &[u8],
) -> Result<Vec<Seed>, OtError> {
    match trees(k, key, strings, message)? {
        (seeds, true) => Ok(seeds),
        _ => Err(OtError::Check("the punctured PRFs")),
    }
}

/// The leaves that [`punctured`] computes from a message, and whether the message is consistent.
fn trees(
    k: usize,
    key: &LinkKey,
    strings: &[Seed],
    message: &[u8],
) -> Result<(Vec<Seed>, bool), OtError> {
    check_same(strings.len(), key.len())?;
    whole_trees(k, strings.len())?;
    check_length("punctured PRFs", message, message_bytes(k, strings.len()))?;
    let mut seeds = Vec::with_capacity((strings.len() / k) << k);
    let mut hash = Sha256::new();
    let (trees, expected) = message.split_at(message.len() - 32);
    for (tree, (strings, message)) in strings
        .chunks_exact(k)
        .zip(trees.chunks_exact(32 * k + 32))
        .enumerate()
    {
        let bit = |j: usize| key.bit(tree * k + j).map(Choice::from);
        let mut level: Zeroizing<Vec<Node>> = Zeroizing::new(vec![0]);
        for ((j, string), sums) in strings
            .iter()
            .enumerate()
            .rev()
            .zip(message.chunks_exact(32))
        {
            let taken = bit(j)?;
            let (left, right) = sums.split_at(16);
            let word = |half: &[u8]| half.iter().rev().fold(0, |w, b| w << 8 | Node::from(*b));
            // The sum of the side that the path does not take.
            let mut missing = Node::conditional_select(&word(right), &word(left), taken)
                ^ Node::from_le_bytes(**string);
            let mut next = Zeroizing::new(Vec::with_capacity(2 * level.len()));
            for node in level.iter() {
                let [left, right] = children(*node);
                next.push(Node::conditional_select(&left, &right, taken));
                next.push(Node::conditional_select(&right, &left, taken));
            }
            for [_, node] in next.as_chunks::<2>().0.iter().skip(1) {
                missing ^= node;
            }
            for (index, node) in next.iter_mut().take(2).enumerate() {
                *node = if index == 0 { 0 } else { missing };
            }
            level = next;
        }
        let mut checks = Vec::with_capacity(level.len());
        let mut last = [0u8; 32];
        for (total, byte) in last.iter_mut().zip(message.iter().skip(32 * k)) {
            *total = *byte;
        }
        for (index, node) in level.iter().enumerate() {
            let (mut seed, check) = leaf(*node);
            if index == 0 {
                seed.zeroize();
            } else {
                add(&mut last, &check);
            }
            checks.push(check);
            seeds.push(seed);
        }
        *checks.first_mut().ok_or_else(uneven)? = last;
        // Back to the order of the leaves.
        for j in 0..k {
            let swap = bit(j)?;
            for block in checks.chunks_exact_mut(2 << j) {
                let (low, high) = block.split_at_mut(1 << j);
                for (a, b) in low.iter_mut().flatten().zip(high.iter_mut().flatten()) {
                    u8::conditional_swap(a, b, swap);
                }
            }
        }
        for check in &checks {
            hash.update(check);
        }
    }
    Ok((seeds, hash.finalize().as_slice().ct_eq(expected).into()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::MacKey;

    fn strings(count: usize) -> Vec<[Seed; 2]> {
        (0..count as u8)
            .map(|i| [Zeroizing::new([i; 16]), Zeroizing::new([!i; 16])])
            .collect()
    }

    /// Changes a sum that the receiver uses, or one that it does not use. Wrong leaves are refused; without the check they would be accepted
    /// as those of the peer.
    #[test]
    fn every_check_ablated_without_the_check_of_prfs_wrong_leaves_come_out() {
        let (k, mut wrong) = (4, 0);
        let key = LinkKey::with_pads(0xdead_beef_0123_4567_89ab_cdef_5566_7788, None);
        let pairs = strings(key.len());
        let chosen: Vec<Seed> = (pairs.iter().enumerate())
            .map(|(i, pair)| pair[usize::from(1 - key.bit(i).unwrap())].clone())
            .collect();
        let (_, message) = full(k, &pairs).unwrap();
        let (right, _) = trees(k, &key, &chosen, &message).unwrap();
        for side in [0, 1] {
            let mut changed = message.clone();
            changed[32 * (k - 1) + 16 * side + 3] ^= 1;
            let (leaves, fits) = trees(k, &key, &chosen, &changed).unwrap();
            assert_eq!(leaves == right, fits);
            let refused = Err(OtError::Check("the punctured PRFs"));
            let checked = punctured(k, &key, &chosen, &changed);
            assert_eq!(checked.map(drop) == refused, leaves != right);
            wrong += usize::from(leaves != right);
        }
        assert_eq!(wrong, 1);
    }

    /// Without the check the last strings would not be used, nor the bits of the key that belong to them.
    #[test]
    fn missing_parts_blocked_strings_of_no_tree() {
        let refused = full(4, &strings(130)).map(drop);
        assert!(matches!(refused, Err(OtError::Internal(_))));
        let key = LinkKey::with_pads(1, None);
        let chosen = vec![Seed::default(); key.len()];
        let refused = punctured(3, &key, &chosen, &vec![0; message_bytes(3, 128)]).map(drop);
        assert!(matches!(refused, Err(OtError::Internal(_))));
    }

    #[test]
    fn all_leaves_but_one_are_known() {
        let macs = MacKey::from_bytes(&std::array::from_fn(|i| 7 * i as u8 + 1));
        let pads = 0xdead_beef_0123_4567_89ab_cdef_5566_7788u128;
        for (k, macs) in [1, 2, 4, 8]
            .into_iter()
            .flat_map(|k| [(k, None), (k, Some(macs.clone()))])
        {
            let key = LinkKey::with_pads(pads, macs);
            let pairs = strings(key.len());
            let chosen: Vec<Seed> = pairs
                .iter()
                .enumerate()
                .map(|(i, pair)| pair[usize::from(1 - key.bit(i).unwrap())].clone())
                .collect();
            let (all, mut message) = full(k, &pairs).unwrap();
            let known = punctured(k, &key, &chosen, &message).unwrap();
            for tree in 0..key.len() / k {
                let alpha = key.digit(tree * k, k).unwrap();
                for x in 0..1 << k {
                    let (theirs, ours) = (&all[(tree << k) + x], &known[(tree << k) + (x ^ alpha)]);
                    assert_eq!(x == alpha, theirs != ours);
                }
            }
            // A wrong sum is refused where it is used.
            let unused = usize::from(key.bit(0).unwrap());
            message[32 * (k - 1) + 16 * unused + 3] ^= 1;
            let got = punctured(k, &key, &chosen, &message);
            message[32 * (k - 1) + 16 * unused + 3] ^= 1;
            message[32 * (k - 1) + 16 * (1 - unused) + 3] ^= 1;
            let other = punctured(k, &key, &chosen, &message);
            assert_eq!(u8::from(got.is_err()) + u8::from(other.is_err()), 1);
        }
    }
}
