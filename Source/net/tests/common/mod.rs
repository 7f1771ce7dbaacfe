//! Committees on the loopback interface.

use std::net::TcpListener;
use std::time::Duration;

use keyquorum_net::{Hello, Identity, Peer, TlsConfig};

pub fn hello(party: usize, parties: usize) -> Hello {
    Hello {
        version: "0.1.0".into(),
        committee: [7; 32],
        context: "keygen 8192".into(),
        protocol: "rep-field".into(),
        domain: "F_17".into(),
        party: party as u32,
        parties: parties as u32,
    }
}

/// Configurations of `n` parties that fit together, with open ports.
pub fn committee(n: usize) -> Vec<TlsConfig> {
    let identities: Vec<Identity> = (0..n)
        .map(|i| Identity::generate(&format!("party {i}")).unwrap())
        .collect();
    let listeners: Vec<TcpListener> = (0..n)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    let peers: Vec<Peer> = (0..n)
        .map(|index| Peer {
            index,
            host: "127.0.0.1".into(),
            port: listeners[index].local_addr().unwrap().port(),
            fingerprint: identities[index].fingerprint_bytes(),
        })
        .collect();
    identities
        .into_iter()
        .zip(listeners)
        .enumerate()
        .map(|(me, (identity, listener))| {
            let mut config = TlsConfig::new(me, identity, peers.clone(), hello(me, n));
            config.listener = Some(listener);
            config.connect_timeout = Duration::from_secs(10);
            config.io_timeout = Duration::from_secs(10);
            config
        })
        .collect()
}
