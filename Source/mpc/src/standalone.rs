//! Authenticated bits on their own, over a session: for measurements and tests.

use crate::adversary::honest;
use crate::error::Result;
use crate::protocol::authenticated::binary::AuthenticatedBits;
use crate::round::Outbox;
use crate::session::{EngineOptions, Session};
use crate::task::{SendFn, Step};

/// One party of the protocol with its session.
pub struct Standalone {
    session: Session,
    /// The protocol.
    pub bits: AuthenticatedBits,
    rounds: u64,
    sent: u64,
}

impl Standalone {
    /// Sets up oblivious transfer between all parties.
    ///
    /// # Errors
    /// As [`Session`]'s.
    pub fn new(session: &Session) -> Result<Self> {
        session.guard().refuse()?;
        let bits =
            session.judged(session.authenticated_bits(&EngineOptions::default(), honest()))?;
        Ok(Self::with(session, bits))
    }

    pub(crate) fn with(session: &Session, bits: AuthenticatedBits) -> Self {
        Self {
            session: session.clone(),
            bits,
            rounds: 0,
            sent: 0,
        }
    }

    /// Rounds and payload bytes sent so far.
    pub fn traffic(&self) -> (u64, u64) {
        (self.rounds, self.sent)
    }

    fn rounds<T>(&mut self, task: SendFn<AuthenticatedBits, T>) -> Result<T> {
        self.session.guard().refuse()?;
        let result = self.run_rounds(task);
        self.session.judged(result)
    }

    fn run_rounds<T>(&mut self, task: SendFn<AuthenticatedBits, T>) -> Result<T> {
        let mut next = task;
        loop {
            let mut outbox = Outbox::new(self.session.parties());
            let receive = next(&mut self.bits, &mut outbox)?;
            let mut inner = self.session.lock()?;
            let (mut inbox, sent, _) = outbox.exchange(inner.net.as_mut(), self.rounds << 32)?;
            drop(inner);
            self.rounds += 1;
            self.sent += sent;
            match receive(&mut self.bits, &mut inbox)? {
                Step::Done(result) => return Ok(result),
                Step::Next(task) => next = task,
            }
        }
    }

    /// Makes the correlated randomness that is missing, then runs a task.
    ///
    /// # Errors
    /// Those of the protocol: a party that cheats, a lost connection.
    pub fn run<T>(&mut self, task: SendFn<AuthenticatedBits, T>) -> Result<T> {
        self.prepare()?;
        self.rounds(task)
    }

    /// Makes the correlated randomness that is missing for what was asked for.
    ///
    /// # Errors
    /// As [`Standalone::run`].
    pub fn prepare(&mut self) -> Result<()> {
        while let Some(task) = self.session.judged(self.bits.prepare())? {
            self.rounds(task)?;
        }
        Ok(())
    }
}
