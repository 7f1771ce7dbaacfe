//! Connections that we accept: one thread for each, until it is identified.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use super::{IncomingState, NOT_LISTED, Setup};
use crate::NetError;
use crate::frame::Kind;
use crate::hello::{Greeting, Purpose};
use crate::incoming::{Incoming, identify};
use crate::stream::Accepted;
use crate::threads::spawn;

impl Setup {
    /// Handles an accepted connection in a thread of its own, so that a silent one delays no other.
    pub(super) fn accept(self: &Arc<Self>, socket: TcpStream) {
        // A connection that has ended already gets no slot.
        let slot = match self.handshakes.admit(&socket) {
            Ok(slot) => slot,
            Err(error) => return self.note_dropped(&format!("an unknown address ({error})")),
        };
        let setup = Arc::clone(self);
        let started = spawn("kq-greet".to_owned(), move || {
            match identify(
                &setup.members,
                socket,
                &setup.hello,
                Purpose::Session,
                setup.max_message,
                &setup.patience,
                &slot,
            ) {
                Incoming::Dropped(note) => setup.note_dropped(&note),
                Incoming::Failed(error) => setup.fail(error, Duration::ZERO),
                Incoming::Member {
                    peer,
                    greeting,
                    stream,
                } => setup.keep(peer, &greeting, *stream),
            }
        });
        if let Err(error) = started {
            self.note_dropped(&error.to_string());
        }
    }

    /// Answers the hello of a listed party, and keeps the connection if it agrees with us.
    fn keep(&self, peer: usize, greeting: &Greeting, mut stream: Accepted) {
        let own_hello = match self.hello.encode(Purpose::Session, peer) {
            Ok(hello) => hello,
            Err(error) => return self.fail(error, Duration::ZERO),
        };
        if greeting.purpose == Purpose::Probe {
            // A probe; it may have closed the connection already.
            let _ = stream.answer(Kind::Hello, &own_hello, &self.patience);
            return stream.close_gently();
        }
        if let Err(error) = self.hello.compare(peer, greeting) {
            // So that the peer sees the difference as well; it may have closed the connection already.
            let _ = stream.answer(Kind::Hello, &own_hello, &self.patience);
            self.fail_with(peer, error, Duration::ZERO);
            return stream.close_gently();
        }
        let free = self.lock().incoming.get_mut(peer).map(|slot| {
            let free = matches!(slot, IncomingState::Missing);
            if free {
                *slot = IncomingState::Reserved;
            }
            free
        });
        let Some(free) = free else {
            return self.fail(NetError::internal(NOT_LISTED), Duration::ZERO);
        };
        if !free {
            self.note_dropped(&format!("a second connection of party {peer}"));
            let reason = format!("party {peer} is connected already: is it running twice?");
            let _ = stream.answer(Kind::Abort, reason.as_bytes(), &self.patience);
            return stream.close_gently();
        }
        let answered = stream.answer(Kind::Hello, &own_hello, &self.patience);
        let mut state = self.lock();
        let incoming = match answered {
            Ok(()) if self.is_over() => return,
            Ok(()) => {
                self.registrations.add(peer, stream);
                IncomingState::Ready
            }
            // The peer will dial again.
            Err(_) => IncomingState::Missing,
        };
        match state.incoming.get_mut(peer) {
            Some(slot) => *slot = incoming,
            None => {
                drop(state);
                self.fail(NetError::internal(NOT_LISTED), Duration::ZERO);
            }
        }
    }
}
