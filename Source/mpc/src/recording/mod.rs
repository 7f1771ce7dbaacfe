//! Recorded programs: what one run asked for, as typed steps that are done again with the data of another run.
//!
//! A [`Recorder`] takes a [`Step`] at each call of a run: any [`Operation`](crate::Operation) of the engine as the engine does it
//! ([`Recorder::apply`]), calls of the share file and of the input and output, and arithmetic on public numbers. Steps name their operands and results: vectors of the engine ([`ValueId`]), public numbers
//! ([`NumbersId`]) and raw shares ([`SharesId`]) have slots of their own, so no step can take an operand of another kind. A step whose
//! operands were not made before it, or were given up, is refused while it is recorded. Vectors and numbers of the run are never part of a
//! recording, constants are.
//!
//! [`Recording::play`] does the steps on an engine with the [`Inputs`] of a run. What goes to the share file is in the result, which is
//! there only if all steps succeeded. The calls to the engine, and so rounds and bytes, are those of the recorded run.
//!
//! Layout: `step` (what a step can be), `recorder` (how a recording is made), `play` (a recording, and its interpreter), `numbers` (arithmetic on public
//! numbers), `inputs` (what a run is given).

mod inputs;
mod numbers;
mod play;
mod recorder;
mod step;
#[cfg(test)]
mod tests;

pub use inputs::{Inputs, Row, Section};
pub use numbers::NumberOp;
pub use play::{Output, Played, Recording};
pub use recorder::{MOST_CONSTANTS, MOST_ELEMENTS, MOST_STEPS, Recorder};
pub use step::{NumbersId, SharesId, Step, ValueId};
