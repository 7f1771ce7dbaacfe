//! Boolean circuits as programmable bootstraps on blocks that hold a bit each. The harness writes them: `schemes/tfhe/boolean.py`.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use rayon::prelude::*;
use tfhe::prelude::{CiphertextList, Tagged};
use tfhe::shortint;
use tfhe::shortint::server_key::LookupTableOwned;
use tfhe::{CompactCiphertextList, CompactPublicKey, FheBool, ServerKey};

use crate::ciphertext::check_tag;
use crate::parameters::set;
use crate::serialize::{MAX_BITS, MAX_LIST, bit_list, one_line, read};
use crate::{BridgeError, Ciphertext, LweFile};

/// Above the 0.7 MB of AES-128.
const MAX_CIRCUIT: u64 = 1 << 24;
/// Most different tables of a circuit: each takes 32 kB.
const MOST_TABLES: usize = 256;

/// Values of a block: all bits but the padding.
const VALUES: u64 = 16;

/// A bootstrap: the lowest bit of `table >> (sum of weight * bit)`. Inputs are sorted by their numbers.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Bootstrap {
    table: u64,
    inputs: Vec<(u64, usize)>,
}

/// A circuit. Bootstraps of a level depend on inputs and on earlier levels; the inputs have the numbers from 0, bootstraps the following ones.
pub struct Circuit {
    inputs: usize,
    levels: Vec<Vec<Bootstrap>>,
    outputs: Vec<usize>,
}

impl Circuit {
    /// Reads and checks a file of at most 16 MB.
    pub fn read(file: &Path) -> Result<Self, BridgeError> {
        let data = read(file, MAX_CIRCUIT, "a circuit")?;
        Self::parse(&String::from_utf8_lossy(&data), file)
    }

    /// Parses and checks a circuit; `file` names it in errors.
    ///
    /// No bootstrap is there twice: equal ones have equal noise, and the bound on the weights counts the noise of different ciphertexts as independent.
    ///
    /// Lines: `inputs N`; for each level `level`, then `TABLE WEIGHT:NUMBER …` for each of its bootstraps, TABLE in hexadecimal; `outputs NUMBER …`.
    pub fn parse(text: &str, file: &Path) -> Result<Self, BridgeError> {
        let mut made = Self {
            inputs: 0,
            levels: vec![],
            outputs: vec![],
        };
        let (mut known, mut waiting) = (0, 0);
        let (mut all, mut tables) = (HashSet::new(), HashSet::new());
        for (index, line) in text.lines().enumerate() {
            let refused = |reason: &str| BridgeError::Circuit {
                file: file.into(),
                line: index + 1,
                reason: reason.into(),
            };
            let mut words = line.split_whitespace();
            match (index, words.next()) {
                (0, Some("inputs")) => {
                    made.inputs = words
                        .next()
                        .and_then(|count| count.parse().ok())
                        .filter(|count| (1..=MAX_BITS).contains(count))
                        .ok_or_else(|| refused("inputs needs a number from 1 to 2^16"))?;
                    known = made.inputs;
                }
                (1.., Some("level")) if made.outputs.is_empty() => {
                    known += waiting;
                    waiting = 0;
                    made.levels.push(vec![]);
                }
                (1.., Some("outputs")) if made.outputs.is_empty() => {
                    known += waiting;
                    made.outputs = words
                        .map(|number| number.parse().ok().filter(|number| *number < known))
                        .collect::<Option<_>>()
                        .filter(|outputs: &Vec<_>| !outputs.is_empty() && outputs.len() <= MAX_BITS)
                        .ok_or_else(|| {
                            refused("outputs are numbers of ciphertexts, at most 2^16")
                        })?;
                }
                (1.., Some(table)) if made.outputs.is_empty() => {
                    let level = made
                        .levels
                        .last_mut()
                        .ok_or_else(|| refused("a bootstrap needs a level before it"))?;
                    let bootstrap =
                        Bootstrap::parse(table, words, known).map_err(|reason| refused(&reason))?;
                    tables.insert(bootstrap.table);
                    if !all.insert(bootstrap.clone()) || tables.len() > MOST_TABLES {
                        return Err(refused(
                            "this bootstrap was there before, or there are more than 256 different tables",
                        ));
                    }
                    level.push(bootstrap);
                    waiting += 1;
                }
                _ => return Err(refused("no line is expected here, or another one")),
            }
        }
        if made.outputs.is_empty() {
            return Err(BridgeError::Circuit {
                file: file.into(),
                line: text.lines().count(),
                reason: "the outputs are missing".into(),
            });
        }
        Ok(made)
    }

    /// Number of inputs.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Number of bootstraps.
    pub fn bootstraps(&self) -> usize {
        self.levels.iter().map(Vec::len).sum()
    }

    /// Evaluates the circuit on bits, with all cores.
    pub fn evaluate(
        &self,
        key: ServerKey,
        inputs: Vec<shortint::Ciphertext>,
    ) -> Result<Vec<Ciphertext>, BridgeError> {
        let found = inputs.len();
        if found != self.inputs {
            return Err(BridgeError::Usage(format!(
                "the circuit has {} inputs, the files have {found} ciphertexts: name the files of all inputs in their order",
                self.inputs
            )));
        }
        let (key, ..) = key.into_raw_parts();
        let key: &shortint::ServerKey = key.as_ref();
        let mut tables: HashMap<u64, LookupTableOwned> = HashMap::new();
        for bootstrap in self.levels.iter().flatten() {
            let table = bootstrap.table;
            tables
                .entry(table)
                .or_insert_with(|| key.generate_lookup_table(|value| table >> value & 1));
        }
        let missing =
            || BridgeError::Usage("a ciphertext of the circuit is missing: report it".into());
        let mut values = inputs;
        for level in &self.levels {
            let made = level
                .par_iter()
                .map(|bootstrap| {
                    let sum = bootstrap.sum(key, &values)?;
                    let table = tables.get(&bootstrap.table)?;
                    Some(key.apply_lookup_table(&sum, table))
                })
                .collect::<Option<Vec<_>>>()
                .ok_or_else(missing)?;
            values.extend(made);
        }
        self.outputs
            .iter()
            .map(|number| values.get(*number).cloned().map(Ciphertext::from_block))
            .collect::<Option<_>>()
            .ok_or_else(missing)
    }
}

impl Bootstrap {
    /// Weights add up to less than 16, the values of a block, and their squares to at most that of the noise level for which the set is made.
    fn parse<'a>(
        table: &str,
        inputs: impl Iterator<Item = &'a str>,
        known: usize,
    ) -> Result<Self, String> {
        let table = u64::from_str_radix(table, 16)
            .ok()
            .filter(|table| table >> VALUES == 0)
            .ok_or("a table is a hexadecimal number of 16 bits")?;
        let inputs = inputs
            .map(|word| {
                let (weight, number) = word.split_once(':')?;
                let number = number.parse().ok().filter(|number| *number < known)?;
                Some((weight.parse().ok().filter(|weight| *weight > 0)?, number))
            })
            .collect::<Option<Vec<(u64, usize)>>>()
            .filter(|inputs| !inputs.is_empty());
        let mut inputs =
            inputs.ok_or("an input is WEIGHT:NUMBER, of a ciphertext of an earlier level")?;
        inputs.sort_unstable_by_key(|(_, number)| *number);
        let different = inputs
            .windows(2)
            .all(|pair| matches!(pair, [a, b] if a.1 != b.1));
        let level = set().max_noise_level.get();
        let (sum, squares) = inputs
            .iter()
            .fold((0u64, 0u64), |(sum, squares), (weight, _)| {
                (
                    sum.saturating_add(*weight),
                    squares.saturating_add(weight.saturating_mul(*weight)),
                )
            });
        if !different || sum >= VALUES || squares > level * level {
            return Err(format!(
                "inputs are different ciphertexts, weights add up to {} at most and their squares to {}",
                VALUES - 1,
                level * level
            ));
        }
        Ok(Self { table, inputs })
    }

    fn sum(
        &self,
        key: &shortint::ServerKey,
        values: &[shortint::Ciphertext],
    ) -> Option<shortint::Ciphertext> {
        let mut sum: Option<shortint::Ciphertext> = None;
        for (weight, number) in &self.inputs {
            let value = values.get(*number)?;
            let weight = u8::try_from(*weight).ok()?;
            let term = match weight {
                1 => value.clone(),
                _ => key.unchecked_scalar_mul(value, weight),
            };
            sum = Some(match sum {
                None => term,
                Some(mut sum) => {
                    key.unchecked_add_assign(&mut sum, &term);
                    sum
                }
            });
        }
        sum
    }
}

/// Bits as one compact list under a public key: what a client sends.
pub fn encrypt_list(
    key: &CompactPublicKey,
    bits: &[bool],
) -> Result<CompactCiphertextList, BridgeError> {
    if bits.is_empty() || bits.len() > MAX_BITS {
        return Err(BridgeError::Usage(format!(
            "{} bits: a list has 1 to {MAX_BITS}",
            bits.len()
        )));
    }
    let mut list = CompactCiphertextList::builder(key);
    list.extend(bits.iter().copied());
    Ok(list.build())
}

/// The blocks of a file of inputs: a compact list of at most `most` bits, or as many LWE ciphertexts with fresh noise, of the key `key_id`.
pub fn read_bits(
    file: &Path,
    most: usize,
    key_id: &str,
    other: &Path,
) -> Result<Vec<shortint::Ciphertext>, BridgeError> {
    let data = read(file, MAX_LIST, "inputs of a circuit")?;
    if LweFile::is_one(&data) {
        let bits = LweFile::from_bytes(&data, file)?;
        if bits.key_id != key_id {
            return Err(BridgeError::KeyId {
                file: file.into(),
                found: bits.key_id,
                other: other.into(),
                expected: key_id.into(),
            });
        }
        check_count(file, bits.b.len(), most)?;
        return bits.to_bits(file);
    }
    let refused = |reason: String| BridgeError::NotTfhe {
        file: file.into(),
        expected: "a CompactCiphertextList of bits",
        reason: one_line(&reason),
    };
    let list = bit_list(&data).map_err(refused)?;
    check_count(file, list.len(), most)?;
    let list = list.expand().map_err(|e| refused(e.to_string()))?;
    (0..list.len())
        .map(|index| {
            let bit: Option<FheBool> = list.get(index).map_err(|e| refused(e.to_string()))?;
            let bit = bit.ok_or_else(|| refused("an entry is missing".into()))?;
            check_tag(bit.tag().data(), key_id, file, other)?;
            Ok(bit.into_raw_parts())
        })
        .collect()
}

/// Refuses more ciphertexts than the circuit still takes, before they are expanded to 16 kB each.
fn check_count(file: &Path, found: usize, most: usize) -> Result<(), BridgeError> {
    if found <= most {
        return Ok(());
    }
    Err(BridgeError::Blocks {
        file: file.into(),
        found,
        expected: format!("the circuit takes {most} more"),
    })
}
