//! Threads: how they start, and how they wait.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::NetError;

/// Pause between two looks at what does not wake a thread: a listener, the state of set-up.
pub(crate) const POLL: Duration = Duration::from_millis(2);

/// Starts a named thread.
pub(crate) fn spawn(
    name: String,
    body: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, NetError> {
    thread::Builder::new()
        .name(name)
        .spawn(body)
        .map_err(|error| NetError::Config {
            detail: format!(
                "cannot start a thread: {error}; raise the limit on processes (ulimit -u)"
            ),
        })
}
