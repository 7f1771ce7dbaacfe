//! Sessions of some members of a committee, on the points of Shamir's sharing that they have there.

use super::Session;
use crate::descriptor::Descriptor;
use crate::error::{EngineError, Result};
use crate::protocol::Points;
use crate::session::EngineOptions;

impl Session {
    /// Says that the parties of this session are members `numbers` of a committee of `size`, in increasing order: they hold Shamir's shares at the points of these. Before the first engine; all parties call it alike.
    ///
    /// # Errors
    /// [`EngineError::Usage`] for numbers that are not as many different members as there are parties, in a group, and after the first engine.
    pub fn set_members(&self, numbers: &[usize], size: usize) -> Result<()> {
        let proper = numbers.len() == self.parties
            && numbers.is_sorted_by(|a, b| a < b)
            && numbers.iter().all(|number| *number < size);
        let mut inner = self.lock()?;
        if !proper || inner.whole.is_some() || inner.engines > 0 || inner.members.is_some() {
            return Err(EngineError::usage(format!(
                "members {numbers:?} of {size} for a session of {} parties: say it once, before the first engine, of as many members, in increasing order",
                self.parties
            )));
        }
        inner.members = Some((Points::of(numbers), size));
        Ok(())
    }

    /// The points of the parties. Groups of members have none: what they share is additive.
    pub(crate) fn points(&self) -> Result<Points> {
        let inner = self.lock()?;
        if let Some(whole) = &inner.whole
            && whole.outermost()?.lock()?.members.is_some()
        {
            return Err(EngineError::usage(
                "a group of members of a committee has no points of Shamir's sharing",
            ));
        }
        Ok(inner
            .members
            .as_ref()
            .map_or_else(Points::default, |(points, _)| points.clone()))
    }

    /// Parties of the committee whose members these are.
    pub(crate) fn size_of_whole(&self) -> Result<usize> {
        Ok(self
            .lock()?
            .members
            .as_ref()
            .map_or(self.parties, |(_, size)| *size))
    }

    /// Refuses members of a committee that leave the threshold to the protocol: so few could have another one by default than the sharing has.
    pub(crate) fn check_threshold(
        &self,
        descriptor: &Descriptor,
        options: &EngineOptions,
    ) -> Result<()> {
        if descriptor.chooses_threshold
            && options.threshold.is_none()
            && self.size_of_whole()? != self.parties
        {
            return Err(EngineError::usage(format!(
                "{}: members of a committee name the threshold of its sharing",
                descriptor.name
            )));
        }
        Ok(())
    }

    /// The threshold of that committee. Shares of zero and recoveries do not need that so few of those present are corrupt.
    pub(crate) fn threshold_of_whole(
        &self,
        descriptor: &Descriptor,
        options: &EngineOptions,
    ) -> Result<usize> {
        Ok(descriptor.threshold(self.size_of_whole()?, options.threshold)?)
    }
}
