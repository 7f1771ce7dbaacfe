//! The MAC key of a session: where it comes from, and what burns it.

use std::path::Path;

use keyquorum_ot::MacKey;
use zeroize::Zeroizing;

use super::Session;
use crate::error::{EngineError, Result};

impl Session {
    /// The key of our MACs in all engines of this session, instead of a random one: shares of an earlier session can be used
    /// only with the key that it had.
    ///
    /// `file`: where the key is kept. Beside it is kept whether a check failed under it ([`crate::mac_key`]); of a key without a file this
    /// process remembers it. One session at a time may use a key: this one has it until [`Session::close`] or [`Session::abort`], or until
    /// nothing of it is left.
    ///
    /// # Errors
    /// [`EngineError::Usage`] if an engine was opened before that has MACs, [`EngineError::Burned`] if the key must not be used again,
    /// [`EngineError::InUse`] while another session uses it.
    pub fn set_mac_key(&self, key: [u8; 16], file: Option<&Path>) -> Result<()> {
        let bytes = Zeroizing::new(key);
        let key = MacKey::from_bytes(&bytes);
        self.guard.refuse()?;
        let mut inner = self.lock()?;
        if inner.mac_links.is_some() {
            return Err(EngineError::usage(
                "the key of MACs is in use: set it before the first engine with MACs of a session",
            ));
        }
        self.guard.add_key(&bytes, file)?;
        inner.mac_key = Some(key);
        Ok(())
    }

    /// Before another program computes under our MAC keys. Nobody here sees its checks: a session that ends before
    /// [`Session::end_under_mac_key`] burns the keys.
    ///
    /// # Errors
    /// [`EngineError::Burned`], or [`EngineError::Store`] if it cannot be noted.
    pub fn begin_under_mac_key(&self) -> Result<()> {
        self.guard.begin()?;
        self.guard.elsewhere(true)
    }

    /// The other program ended well, or never met the programs of the others.
    ///
    /// # Errors
    /// As [`Session::begin_under_mac_key`].
    pub fn end_under_mac_key(&self) -> Result<()> {
        self.guard.elsewhere(false)
    }

    /// A check failed in another program that computed under our MAC keys: they are burned. Returns what was done.
    pub fn burn_mac_key(&self, cause: &str) -> String {
        self.guard.burn(cause)
    }
}
