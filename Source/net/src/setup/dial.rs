//! Connections that we dial: one thread a peer.

use std::thread;
use std::time::{Duration, Instant};

use super::{ABORT_DELIVERY, FIRST_PAUSE, GRACE, LONGEST_PAUSE, NOT_LISTED, Setup};
use crate::NetError;
use crate::frame::Kind;
use crate::hello::{Greeting, Purpose};
use crate::members::Peer;
use crate::outgoing::{Reached, Reason, reach};
use crate::stream::Dialled;

impl Setup {
    /// Dials `peer` until it answers or set-up is over.
    pub(super) fn dial(&self, peer: &Peer) {
        let mut pause = FIRST_PAUSE;
        while !self.patience.is_over() {
            let reached = reach(
                &self.members.own,
                peer,
                &self.hello,
                Purpose::Session,
                &self.patience,
            );
            let unreached = match reached {
                Ok(reached) => return self.store(peer.index, reached),
                Err(unreached) => unreached,
            };
            match unreached.reason {
                Reason::Final(error) => {
                    let grace = match error {
                        NetError::WrongCertificate { .. }
                        | NetError::CertificateRefused { .. }
                        | NetError::KeyExchange { .. } => GRACE,
                        _ => Duration::ZERO,
                    };
                    return self.fail_with(peer.index, error, grace);
                }
                Reason::Retry(error) => {
                    let mut state = self.lock();
                    let Some(slot) = state.dial_errors.get_mut(peer.index) else {
                        drop(state);
                        return self.fail(NetError::internal(NOT_LISTED), Duration::ZERO);
                    };
                    *slot = Some(error);
                }
            }
            if let Some(stream) = unreached.stream {
                self.abort(*stream);
            }
            thread::sleep(pause.min(self.patience.left()));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Keeps the connection that we dialled, if the peer agrees with us.
    fn store(&self, peer: usize, reached: Reached) {
        if let Err(error) = self.agree(peer, &reached.greeting) {
            return self.fail_with(peer, error, Duration::ZERO);
        }
        let mut state = self.lock();
        if self.is_over() {
            drop(state);
            return self.abort(reached.stream);
        }
        match state.outgoing.get_mut(peer) {
            Some(slot) => *slot = Some(reached.stream),
            None => {
                drop(state);
                self.fail(NetError::internal(NOT_LISTED), Duration::ZERO);
            }
        }
    }

    /// Sends the reason of a set-up that is over, and ends the connection: else the peer would report that we are gone.
    fn abort(&self, mut stream: Dialled) {
        let ending = self.lock().ending.clone();
        if let Some(reason) = ending {
            stream.finish(Kind::Abort, reason.as_bytes(), ABORT_DELIVERY);
            stream.wait_until_read(Instant::now() + ABORT_DELIVERY);
        }
    }

    fn agree(&self, peer: usize, theirs: &Greeting) -> Result<(), NetError> {
        if theirs.purpose != Purpose::Session {
            return Err(NetError::HelloMismatch {
                peer,
                field: "purpose".into(),
                mine: Purpose::Session.to_string(),
                theirs: theirs.purpose.to_string(),
            });
        }
        self.hello.compare(peer, theirs)
    }
}
