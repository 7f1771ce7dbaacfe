//! Tasks: what a party sends in a round, and how it goes on when the answers are there; their combinations; and rounds that send vectors and take vectors.

use std::borrow::Cow;

use keyquorum_math::Domain;

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

impl<P: 'static, V: 'static> Step<P, V> {
    /// [`within`], of a step.
    pub fn within<Q: 'static>(self, part: fn(&mut Q) -> Result<&mut P>) -> Step<Q, V> {
        match self {
            Self::Done(v) => Step::Done(v),
            Self::Next(next) => Step::Next(within(next, part)),
        }
    }
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
            Ok(receive(part(p)?, inbox)?.within(part))
        }))
    })
}

/// A task that needs no communication: done at the end of the round in which it would have run.
pub fn ready<P: 'static, V: Send + 'static>(value: V) -> SendFn<P, V> {
    Box::new(move |_, _| Ok(Box::new(move |_, _| Ok(Step::Done(value)))))
}

/// A task that is made when its round begins, by the party as it is then.
pub fn at_start<P: 'static, V: 'static>(
    make: impl FnOnce(&mut P) -> Result<SendFn<P, V>> + Send + 'static,
) -> SendFn<P, V> {
    Box::new(move |p, out| make(p)?(p, out))
}

/// Sends a vector to one party, and gets one of the same length from another or the same: both. One round.
pub fn rotate<P: 'static, D: Domain, M: AsRef<[D::E]> + Send + 'static>(
    domain: &D,
    to: usize,
    mine: M,
    from: usize,
) -> SendFn<P, (M, Vec<D::E>)> {
    rotate_with(domain, to, mine, from, |_, _, mine| Cow::Borrowed(mine))
}

/// [`rotate`] of a party that may deviate: `sent` is what goes out in place of its vector.
pub fn rotate_with<P: 'static, D: Domain, M: AsRef<[D::E]> + Send + 'static>(
    domain: &D,
    to: usize,
    mine: M,
    from: usize,
    sent: impl for<'a> FnOnce(&P, &D, &'a [D::E]) -> Cow<'a, [D::E]> + Send + 'static,
) -> SendFn<P, (M, Vec<D::E>)> {
    let domain = domain.clone();
    Box::new(move |p, out| {
        let n = mine.as_ref().len();
        out.send(&domain, to, &sent(p, &domain, mine.as_ref()));
        out.expect(&domain, from, n);
        Ok(Box::new(move |_, inbox| {
            let theirs = inbox.take(&domain, from, n)?;
            Ok(Step::Done((mine, theirs)))
        }))
    })
}

/// Sends a vector to one party, and goes on with it. One round.
pub fn send_to<P: 'static, D: Domain, M: AsRef<[D::E]> + Send + 'static>(
    domain: &D,
    to: usize,
    mine: M,
) -> SendFn<P, M> {
    let domain = domain.clone();
    Box::new(move |_, out| {
        out.send(&domain, to, mine.as_ref());
        Ok(Box::new(move |_, _| Ok(Step::Done(mine))))
    })
}

/// Gets `n` elements from one party. One round.
pub fn receive_from<P: 'static, D: Domain>(
    domain: &D,
    from: usize,
    n: usize,
) -> SendFn<P, Vec<D::E>> {
    let domain = domain.clone();
    Box::new(move |_, out| {
        out.expect(&domain, from, n);
        Ok(Box::new(move |_, inbox| {
            inbox.take(&domain, from, n).map(Step::Done)
        }))
    })
}

/// Sends every party of `messages` its vector, and gets so many elements from each party of `from`, in this order. One round.
pub fn exchange<P: 'static, D: Domain>(
    domain: &D,
    messages: Vec<(usize, Vec<D::E>)>,
    from: Vec<(usize, usize)>,
) -> SendFn<P, Vec<Vec<D::E>>> {
    let domain = domain.clone();
    Box::new(move |_, out| {
        for (to, message) in messages {
            out.send(&domain, to, &message);
        }
        for (from, n) in &from {
            out.expect(&domain, *from, *n);
        }
        Ok(Box::new(move |_, inbox| {
            let vectors = from.into_iter();
            let vectors = vectors.map(|(from, n)| inbox.take(&domain, from, n));
            vectors.collect::<Result<_>>().map(Step::Done)
        }))
    })
}
