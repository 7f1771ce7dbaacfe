//! Shares in files, and stored masks.

use keyquorum_math::Domain;

use super::Party;
use crate::error::{EngineError, Result};
use crate::task::SendFn;
use crate::value::Share;

/// What a protocol does about shares in files, and with stored masks. Most do nothing: their implementation is empty.
pub trait StoredShares<D: Domain>: Party {
    /// Whether shares are stored with the name of the run that made them, which all parties compare before they use them.
    fn names_runs(&self) -> bool {
        false
    }

    /// Notes shares that come from a file.
    fn note_stored(&mut self, _domain: &D, _share: &Share<D::E>) -> Result<()> {
        Ok(())
    }

    /// Our share of the key of MACs, where there are MACs.
    fn mac_key(&self) -> Option<u128> {
        None
    }

    /// Number of random elements that are stored with shares. A later session tests with them whether its MAC keys are those of the shares.
    /// 0 without MACs.
    fn key_test_elements(&self) -> usize {
        0
    }

    /// A task that opens the difference of such elements and fresh random ones, and verifies the MAC of each.
    fn test_stored_keys(&mut self, _stored: &Share<D::E>) -> Result<SendFn<Self, ()>> {
        Err(EngineError::internal("a test of MAC keys without MACs"))
    }

    /// Whether openings under masks wait for their check until something else is opened: [`crate::Engine::defer_checks`]. Protocols without MACs
    /// open nothing that would wait.
    fn defer_checks(&mut self, _deferred: bool) {}

    /// Takes in stored random elements, which hide what is above opened values: [`crate::Engine::give_random`].
    fn give_random(&mut self, _stored: Share<D::E>) -> Result<()> {
        Err(no_stored_masks())
    }

    /// Takes in stored random elements that `owner` knows, under which values are opened to it: [`crate::Engine::give_mask`]. `known`: the elements
    /// at their owner, zeros elsewhere.
    fn give_mask(&mut self, _owner: usize, _stored: Share<D::E>, _known: Vec<D::E>) -> Result<()> {
        Err(no_stored_masks())
    }
}

fn no_stored_masks() -> EngineError {
    EngineError::usage(
        "this protocol masks no openings with stored elements: give them to a protocol with MACs",
    )
}
