//! The three public files of a key folder.

use std::path::Path;

use crate::{BridgeError, KeyFile, Kind};

/// The public files of one key.
#[derive(Clone, Debug)]
pub struct KeyFolder {
    /// Bootstrapping key.
    pub bootstrapping: KeyFile,
    /// Key-switching key.
    pub key_switching: KeyFile,
    /// Compact public key.
    pub compact: KeyFile,
}

impl KeyFolder {
    /// Reads and checks the three files. All belong to one key, and no two have the same seed.
    pub fn read(folder: &Path) -> Result<Self, BridgeError> {
        let [bootstrapping, key_switching, compact] =
            Kind::ALL.map(|kind| KeyFile::read(folder, kind));
        let folder = Self {
            bootstrapping: bootstrapping?,
            key_switching: key_switching?,
            compact: compact?,
        };
        folder.check()?;
        Ok(folder)
    }

    /// Id of the key: 32 hexadecimal digits.
    pub fn key_id(&self) -> &str {
        &self.bootstrapping.key_id
    }

    fn check(&self) -> Result<(), BridgeError> {
        let pairs = [
            (&self.key_switching, &self.bootstrapping),
            (&self.compact, &self.bootstrapping),
            (&self.compact, &self.key_switching),
        ];
        for (file, other) in pairs {
            if file.key_id != other.key_id {
                return Err(BridgeError::KeyId {
                    file: file.path.clone(),
                    found: file.key_id.clone(),
                    other: other.path.clone(),
                    expected: other.key_id.clone(),
                });
            }
            if file.seed == other.seed {
                return Err(BridgeError::Seed {
                    file: file.path.clone(),
                    other: other.path.clone(),
                });
            }
        }
        Ok(())
    }
}
