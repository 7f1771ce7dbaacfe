//! Attacks on sessions, by parties that keep a transcript, forge shares, or say different things to different parties.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod burned;
mod joint;
mod toss;

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use keyquorum_math::DomainKind;
use keyquorum_net::{Transport, local_mesh};
use keyquorum_ot::BaseOt;

use super::{EngineOptions, Session};

/// Runs one thread a party; `wrap` changes the transport of a party. All have their sessions when the first goes on: who breaks off at once does not disturb
/// the set-up of others.
fn parties<T: Send + 'static>(
    n: usize,
    wrap: impl Fn(usize, Box<dyn Transport>) -> Box<dyn Transport>,
    body: impl Fn(Session) -> T + Clone + Send + 'static,
) -> Vec<T> {
    let open = Arc::new(Barrier::new(n));
    let threads: Vec<_> = local_mesh(n, Duration::from_secs(20))
        .into_iter()
        .enumerate()
        .map(|(party, transport)| {
            let (transport, body) = (wrap(party, Box::new(transport)), body.clone());
            let open = Arc::clone(&open);
            thread::spawn(move || {
                let session = Session::new(transport);
                open.wait();
                body(session.unwrap())
            })
        })
        .collect();
    threads.into_iter().map(|t| t.join().unwrap()).collect()
}

/// A panic that held the session does not keep the others from learning why it ends.
#[test]
fn missing_parts_blocked_an_abort_that_nobody_hears() {
    let errors = parties(
        2,
        |_, transport| transport,
        |session| {
            if session.party() == 1 {
                return session.receive(0, 10).unwrap_err().to_string();
            }
            let held = session.clone();
            let broken = thread::spawn(move || {
                let _held = held.lock();
                panic!("as the test wants it");
            });
            assert!(broken.join().is_err() && session.lock().is_err());
            session.abort("a thread broke off");
            String::new()
        },
    );
    assert!(
        errors[1].ends_with("party 0 aborted: a thread broke off"),
        "{}",
        errors[1]
    );
}

/// Products over links that begin with base OT from ML-KEM; and parties of which one asks for it, and one does not, learn it before anything is sent.
#[test]
fn parties_agree_on_base_ot() {
    let open = |session: &Session| {
        session
            .engine("semi2k", DomainKind::Z2k(64), &EngineOptions::default())
            .map(drop)
    };
    let both = parties(
        2,
        |_, transport| transport,
        move |session| {
            session.set_base_ot(BaseOt::MlKem).unwrap();
            open(&session).map(|()| session.stats().unwrap().bytes_sent)
        },
    );
    for sent in both {
        let sent = sent.unwrap();
        let links = 128 * (2 * 1152 + 32 + 2 * 1088) + 128 * 32 + 32 * 32 + 32;
        assert!((links..links + 1000).contains(&sent), "{sent}");
    }
    let errors = parties(
        2,
        |_, transport| transport,
        move |session| {
            if session.party() == 0 {
                session.set_base_ot(BaseOt::MlKem).unwrap();
            }
            let error = open(&session).unwrap_err().to_string();
            assert!(session.stats().unwrap().bytes_sent < 1000);
            error
        },
    );
    for (error, theirs) in errors
        .iter()
        .zip(["\"direct\" there", "\"direct, ml-kem\" there"])
    {
        assert!(
            error.contains("base OT")
                && error.contains(theirs)
                && error.contains("start all parties"),
            "{error}"
        );
    }
}

/// A party that says more than we compare is not taken for one that says the same.
#[test]
fn missing_parts_blocked_fields_that_nobody_compares() {
    let refused = parties(
        2,
        |_, transport| transport,
        |session| {
            let domain = DomainKind::Z2k(64);
            let fields = [
                env!("CARGO_PKG_VERSION"),
                "",
                "semi2k",
                "Z2^64",
                "1",
                "direct",
                "secret",
                "1",
            ];
            if session.party() == 1 {
                let more = format!("{}\nand more", fields.join("\n"));
                session.all_gather(more.as_bytes()).unwrap();
                return String::new();
            }
            let engine = session.engine("semi2k", domain, &EngineOptions::default());
            engine.map(drop).unwrap_err().to_string()
        },
    );
    assert!(
        refused[0].contains("party 1 opens its engine with other fields"),
        "{}",
        refused[0]
    );
}
