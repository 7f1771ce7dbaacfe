//! Tasks: what a party sends in a round, and how it goes on when the answers are there; and their combinations.

use crate::error::Result;
use crate::round::{Inbox, Outbox};

/// First half of a round of a task: queue messages, and return the second half.
pub type SendFn<P, V> = Box<dyn FnOnce(&mut P, &mut Outbox) -> Result<RecvFn<P, V>> + Send>;
/// Second half of a round of a task.
pub type RecvFn<P, V> = Box<dyn FnOnce(&mut P, &mut Inbox) -> Result<Step<P, V>> + Send>;

/// The state of a task after a round.
pub enum Step<P, V> {
    /// The result.
    Done(V),
    /// Another round.
    Next(SendFn<P, V>),
}

/// Turns the result of a task into something else.
pub fn then<P: 'static, V: 'static, W: 'static>(
    task: SendFn<P, V>,
    f: impl FnOnce(&mut P, V) -> Result<W> + Send + 'static,
) -> SendFn<P, W> {
    Box::new(move |p, out| {
        let receive = task(p, out)?;
        Ok(Box::new(move |p, inbox| {
            Ok(match receive(p, inbox)? {
                Step::Done(v) => Step::Done(f(p, v)?),
                Step::Next(next) => Step::Next(then(next, f)),
            })
        }))
    })
}

/// Goes on with another task after the result of the first.
pub fn and_then<P: 'static, V: 'static, W: 'static>(
    task: SendFn<P, V>,
    f: impl FnOnce(&mut P, V) -> Result<SendFn<P, W>> + Send + 'static,
) -> SendFn<P, W> {
    Box::new(move |p, out| {
        let receive = task(p, out)?;
        Ok(Box::new(move |p, inbox| {
            Ok(Step::Next(match receive(p, inbox)? {
                Step::Done(v) => f(p, v)?,
                Step::Next(next) => and_then(next, f),
            }))
        }))
    })
}

/// Goes on with another step, or none, after the result of the first task.
pub fn then_maybe<P: 'static, V: 'static, W: 'static>(
    task: SendFn<P, V>,
    f: impl FnOnce(&mut P, V) -> Result<Step<P, W>> + Send + 'static,
) -> SendFn<P, W> {
    Box::new(move |p, out| {
        let receive = task(p, out)?;
        Ok(Box::new(move |p, inbox| match receive(p, inbox)? {
            Step::Done(v) => f(p, v),
            Step::Next(next) => Ok(Step::Next(then_maybe(next, f))),
        }))
    })
}

/// Runs two tasks side by side.
pub fn join<P: 'static, U: Send + 'static, V: Send + 'static, W: 'static>(
    a: SendFn<P, U>,
    b: SendFn<P, V>,
    f: impl FnOnce(&mut P, U, V) -> Result<W> + Send + 'static,
) -> SendFn<P, W> {
    Box::new(move |p, out| {
        let a = a(p, out)?;
        let b = b(p, out)?;
        Ok(Box::new(move |p, inbox| {
            match (a(p, inbox)?, b(p, inbox)?) {
                (Step::Done(x), Step::Done(y)) => Ok(Step::Done(f(p, x, y)?)),
                (Step::Next(x), Step::Next(y)) => Ok(Step::Next(join(x, y, f))),
                (Step::Next(x), Step::Done(y)) => Ok(Step::Next(then(x, move |p, x| f(p, x, y)))),
                (Step::Done(x), Step::Next(y)) => Ok(Step::Next(then(y, move |p, y| f(p, x, y)))),
            }
        }))
    })
}

/// Runs a task of a protocol that is part of another one.
pub fn within<P: 'static, Q: 'static, V: 'static>(
    task: SendFn<Q, V>,
    part: fn(&mut P) -> Result<&mut Q>,
) -> SendFn<P, V> {
    Box::new(move |p, out| {
        let receive = task(part(p)?, out)?;
        Ok(Box::new(move |p, inbox| {
            Ok(match receive(part(p)?, inbox)? {
                Step::Done(v) => Step::Done(v),
                Step::Next(next) => Step::Next(within(next, part)),
            })
        }))
    })
}

/// A task that needs no communication: done at the end of the round in which it would have run.
pub fn ready<P: 'static, V: Send + 'static>(value: V) -> SendFn<P, V> {
    Box::new(move |_, _| Ok(Box::new(move |_, _| Ok(Step::Done(value)))))
}
