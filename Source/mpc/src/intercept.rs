//! A transport whose messages a test reads, changes or keeps back.

use keyquorum_net::{Counters, Length, NetError, Transport};

/// What a party says of earlier sessions if no challenge and no check of them was cut off. [`intercept`] leaves it alone, [`intercept_all`] does not.
const NOTHING_CUT_OFF: [u8; 4] = [0; 4];

struct Intercepted<S, T> {
    inner: Box<dyn Transport>,
    sends: S,
    takes: T,
    all: bool,
}

/// The messages of a session. `sends`: what goes to a party in place of a message, nothing if `None`; `takes`: sees what came from a party.
pub(crate) fn intercept(
    inner: Box<dyn Transport>,
    sends: impl FnMut(usize, &[u8]) -> Option<Vec<u8>> + Send + 'static,
    takes: impl FnMut(usize, &[u8]) + Send + 'static,
) -> Box<dyn Transport> {
    Box::new(Intercepted {
        inner,
        sends,
        takes,
        all: false,
    })
}

/// [`intercept`], with what is said of earlier sessions too.
pub(crate) fn intercept_all(
    inner: Box<dyn Transport>,
    sends: impl FnMut(usize, &[u8]) -> Option<Vec<u8>> + Send + 'static,
    takes: impl FnMut(usize, &[u8]) + Send + 'static,
) -> Box<dyn Transport> {
    Box::new(Intercepted {
        inner,
        sends,
        takes,
        all: true,
    })
}

impl<S, T> Intercepted<S, T> {
    fn leaves_alone(&self, payload: &[u8]) -> bool {
        !self.all && payload == NOTHING_CUT_OFF
    }
}

impl<S, T> Transport for Intercepted<S, T>
where
    S: FnMut(usize, &[u8]) -> Option<Vec<u8>> + Send,
    T: FnMut(usize, &[u8]) + Send,
{
    fn party(&self) -> usize {
        self.inner.party()
    }

    fn parties(&self) -> usize {
        self.inner.parties()
    }

    fn send(&mut self, to: usize, payload: &[u8]) -> Result<(), NetError> {
        if self.leaves_alone(payload) {
            return self.inner.send(to, payload);
        }
        match (self.sends)(to, payload) {
            Some(message) => self.inner.send(to, &message),
            None => Ok(()),
        }
    }

    fn expect(&mut self, from: usize, bytes: usize) -> Result<(), NetError> {
        self.inner.expect(from, bytes)
    }

    fn take(&mut self, from: usize, len: Length) -> Result<Vec<u8>, NetError> {
        let message = self.inner.take(from, len)?;
        if !self.leaves_alone(&message) {
            (self.takes)(from, &message);
        }
        Ok(message)
    }

    fn settle(&mut self) -> Result<(), NetError> {
        self.inner.settle()
    }

    fn counters(&self) -> &Counters {
        self.inner.counters()
    }

    fn close(&mut self) {
        self.inner.close();
    }

    fn abort(&mut self, reason: &str) {
        self.inner.abort(reason);
    }
}
