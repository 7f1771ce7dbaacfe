//! Large batches are cut into pieces, one a thread. Every piece uses the part of the streams that it would use in one
//! thread, so that the result does not depend on the number of processors.

use std::ops::Range;
use std::sync::OnceLock;
use std::thread;

use crate::OtError;

/// Fewest OTs for a thread: about half a millisecond of work.
pub(crate) const LEAST: usize = 1 << 15;
/// Most threads: the batches of a protocol have work for no more.
const MOST: usize = 8;

fn processors() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| thread::available_parallelism().map_or(1, |n| n.get().min(MOST)))
}

/// Cuts `units` of `size` OTs each.
pub(crate) fn pieces(units: usize, size: usize) -> Vec<Range<usize>> {
    cut(units, size, processors())
}

fn cut(units: usize, size: usize, processors: usize) -> Vec<Range<usize>> {
    let count = (units * size / LEAST)
        .clamp(1, processors)
        .min(units.max(1));
    (0..count)
        .map(|i| i * units / count..(i + 1) * units / count)
        .collect()
}

/// Runs all tasks, the last one in this thread; results in their order.
pub(crate) fn run<T: Send>(
    mut tasks: Vec<impl FnOnce() -> Result<T, OtError> + Send>,
) -> Result<Vec<T>, OtError> {
    let Some(last) = tasks.pop() else {
        return Ok(Vec::new());
    };
    thread::scope(|scope| {
        let others: Vec<_> = tasks.into_iter().map(|task| scope.spawn(task)).collect();
        let last = last();
        let mut results = Vec::with_capacity(others.len() + 1);
        for other in others {
            results.push(
                other
                    .join()
                    .map_err(|_| OtError::Internal("a thread of the OT extension panicked"))??,
            );
        }
        results.push(last?);
        Ok(results)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_all_units() {
        for (units, size, processors, count) in [
            (0, 64, 4, 1),
            (1, LEAST, 4, 1),
            (7, LEAST, 4, 4),
            (3, LEAST, 4, 3),
            (100, LEAST / 50 + 1, 4, 2),
        ] {
            let pieces = cut(units, size, processors);
            assert_eq!(pieces.len(), count);
            let all: Vec<usize> = pieces.into_iter().flatten().collect();
            assert_eq!(all, (0..units).collect::<Vec<_>>());
        }
    }

    #[test]
    fn results_keep_their_order_and_errors_are_returned() {
        let tasks: Vec<_> = (0..5).map(|i| move || Ok(i)).collect();
        assert_eq!(run(tasks).unwrap(), [0, 1, 2, 3, 4]);
        let fail = |i| {
            move || {
                if i == 1 {
                    Err(OtError::Check("x"))
                } else {
                    Ok(i)
                }
            }
        };
        assert_eq!(run((0..3).map(fail).collect()), Err(OtError::Check("x")));
    }
}
