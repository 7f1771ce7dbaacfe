//! Parties of a test as threads of this process.

use std::thread;
use std::time::Duration;

use keyquorum_mpc::Session;
use keyquorum_net::local_mesh;

/// What each party makes of its session.
pub fn parties<T: Send + 'static>(
    n: usize,
    body: impl Fn(Session) -> T + Clone + Send + 'static,
) -> Vec<T> {
    let threads: Vec<_> = local_mesh(n, Duration::from_secs(20))
        .into_iter()
        .map(|transport| {
            let body = body.clone();
            thread::spawn(move || body(Session::new(Box::new(transport)).unwrap()))
        })
        .collect();
    threads.into_iter().map(|t| t.join().unwrap()).collect()
}
