//! Shares in files, and stored masks.

use keyquorum_math::Domain;

use super::Party;
use crate::error::{EngineError, Result};
use crate::task::SendFn;
use crate::value::Share;

/// What is stored with shares to show their origin: by it all parties see that their files are of the same run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nothing: parties follow the protocol.
    Unstated,
    /// The name of the run that stored the shares, which was tossed. All parties compare it before they use the shares.
    Name,
    /// The name, and shares of so many random elements. A later session tests with them whether its MAC keys are those of the shares.
    NameAndKeyTest(usize),
}

/// What a protocol does about shares in files, and with stored masks. Most do nothing: their implementation is empty.
pub trait StoredShares<D: Domain>: Party {
    /// What is stored with shares to show their origin. The descriptor decides it: a key test where there are MACs, a name where products are
    /// verified, nothing elsewhere.
    fn origin(&self) -> Origin {
        Origin::Unstated
    }

    /// Notes shares that come from a file.
    fn note_stored(&mut self, _domain: &D, _share: &Share<D::E>) -> Result<()> {
        Ok(())
    }

    /// Our share of the key of MACs, where there are MACs.
    fn mac_key(&self) -> Option<u128> {
        None
    }

    /// A task that opens the difference of the elements of [`Origin::NameAndKeyTest`] and fresh random ones, and verifies the MAC of each.
    fn test_stored_keys(&mut self, _stored: &Share<D::E>) -> Result<SendFn<Self, ()>> {
        Err(EngineError::internal("a test of MAC keys without MACs"))
    }

    /// Whether openings under masks wait for their check until something else is opened: `Engine::defer_checks`. Protocols without MACs
    /// open nothing that would wait.
    fn defer_checks(&mut self, _deferred: bool) {}

    /// Takes in stored random elements, which hide what is above opened values: `Engine::give_random`.
    fn give_random(&mut self, _stored: Share<D::E>) -> Result<()> {
        Err(no_stored_masks())
    }

    /// Takes in stored random elements that `owner` knows, under which values are opened to it: `Engine::give_mask`. `known`: the elements
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
