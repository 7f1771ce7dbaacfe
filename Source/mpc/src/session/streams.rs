//! Seeds that parties have in common, the streams of engines that come from them, and links of oblivious transfer.

use keyquorum_math::Prg;
use keyquorum_ot::{LinkKey, MacKey, Parameters, Security};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::links::{Link, establish};
use super::{EngineOptions, Seed, Session, control, os_random};
use crate::error::{EngineError, Result};
use crate::protocol::{Channel, SubsetStream, subsets};
use crate::value::zip;

/// Links of protocols with MACs, and our keys of MACs, the same on all of them.
#[derive(Clone)]
pub(crate) struct MacLinks {
    pub(crate) links: Vec<Option<Link>>,
    pub(super) key: MacKey,
    /// Challenges that were cut off under them: the same number at all parties.
    pub(super) cut_offs: u32,
}

pub(super) fn derive(label: &str, secret: &[u8], index: u64, extra: &[u8]) -> Seed {
    let mut hash = Sha256::new();
    Digest::update(&mut hash, b"keyquorum-v1/");
    Digest::update(&mut hash, (label.len() as u64).to_le_bytes());
    Digest::update(&mut hash, label.as_bytes());
    Digest::update(&mut hash, index.to_le_bytes());
    Digest::update(&mut hash, (secret.len() as u64).to_le_bytes());
    Digest::update(&mut hash, secret);
    Digest::update(&mut hash, extra);
    Zeroizing::new(hash.finalize().into())
}

fn prg(seed: &Seed) -> Prg {
    let mut key = Zeroizing::new([0u8; 16]);
    for (k, s) in key.iter_mut().zip(seed.iter()) {
        *k = *s;
    }
    Prg::new(*key, 0)
}

/// The error for a subset without its seed, or with a member that does not exist.
fn no_member() -> EngineError {
    EngineError::internal("a seed of a subset of parties is missing")
}

/// Takes seeds from a message that holds them one after another: none stays zero, which everybody knows.
fn fill_seeds(seeds: Vec<&mut Seed>, message: &[u8]) -> Result<()> {
    let (all, rest) = message.as_chunks::<32>();
    if !rest.is_empty() {
        return Err(no_member());
    }
    for (seed, bytes) in zip(seeds, all)? {
        **seed = *bytes;
    }
    Ok(())
}

impl Session {
    pub(crate) fn next_engine(&self) -> Result<u64> {
        let mut inner = self.lock()?;
        inner.engines += 1;
        Ok(inner.engines)
    }

    pub(crate) fn all_pair_prgs(
        &self,
        index: u64,
        options: &EngineOptions,
    ) -> Result<Vec<Option<(Prg, Prg)>>> {
        (0..self.parties)
            .map(|peer| {
                if peer == self.party {
                    Ok(None)
                } else {
                    self.pair_prgs(peer, index, options).map(Some)
                }
            })
            .collect()
    }

    /// The context that both ends of a link hash into their base OTs, so that these belong to this session and this direction.
    pub(crate) fn link_context(
        &self,
        label: &str,
        sender: usize,
        receiver: usize,
    ) -> Result<[u8; 32]> {
        let peer = if sender == self.party {
            receiver
        } else {
            sender
        };
        let inner = self.lock()?;
        let secret = inner
            .pairs
            .get(peer)
            .and_then(Option::as_ref)
            .ok_or_else(|| EngineError::usage(format!("no seed in common with party {peer}")))?;
        let context = derive(label, secret.as_slice(), 0, &[sender as u8, receiver as u8]);
        Ok(*context)
    }

    fn link_parameters(&self) -> Result<Parameters> {
        Ok(Parameters::default().with_base(self.base_ot()?))
    }

    /// Oblivious transfer with all peers, in a stream of this engine.
    pub(crate) fn channels(&self, index: u64, security: Security) -> Result<Vec<Option<Channel>>> {
        let links = self.lock()?.links.clone();
        let links = match links {
            Some(links) => links,
            None => {
                let key = || LinkKey::random(None);
                let links = establish(self, "link", self.link_parameters()?, key)?;
                self.lock()?.links = Some(links.clone());
                links
            }
        };
        Ok(links
            .iter()
            .map(|link| link.as_ref().map(|l| l.channel(index, security)))
            .collect())
    }

    /// Links of protocols with MACs: on all of them our key of MACs is the same, and the pads of each have a secret of their own, drawn for
    /// this session. A check of MACs reveals its key when it fails; what went through oblivious transfer stays hidden then.
    pub(super) fn mac_links(&self) -> Result<MacLinks> {
        self.mac_links_with(LinkKey::random)
    }

    /// [`Session::mac_links`], with `link_key` to make the key of a link from the key of MACs.
    pub(crate) fn mac_links_with(
        &self,
        link_key: impl Fn(Option<MacKey>) -> std::result::Result<LinkKey, keyquorum_ot::OtError>,
    ) -> Result<MacLinks> {
        self.guard.begin()?;
        if let Some(links) = self.lock()?.mac_links.clone() {
            return Ok(links);
        }
        let cut_offs = self.finish_checks()?;
        let key = match &self.lock()?.mac_key {
            Some(key) => key.clone(),
            None => MacKey::random().map_err(|e| EngineError::usage(e.to_string()))?,
        };
        let parameters = self.link_parameters()?.with_macs();
        let links = establish(self, "bits", parameters, || link_key(Some(key.clone())))?;
        let links = MacLinks {
            links,
            key,
            cut_offs,
        };
        self.lock()?.mac_links = Some(links.clone());
        Ok(links)
    }

    pub(crate) fn private_prg(&self, index: u64, options: &EngineOptions) -> Result<Prg> {
        match &options.insecure_seed {
            Some(seed) => Ok(prg(&derive("private", seed, index, &[self.party as u8]))),
            None => Prg::from_os().map_err(|e| EngineError::usage(e.to_string())),
        }
    }

    /// The stream of a protocol in clear text; `label`: its name.
    pub(crate) fn clear_prg(
        &self,
        label: &str,
        index: u64,
        options: &EngineOptions,
    ) -> Result<Prg> {
        Ok(match &options.insecure_seed {
            Some(seed) => prg(&derive(label, seed, index, &[])),
            None => Prg::from_os().map_err(|e| EngineError::usage(e.to_string()))?,
        })
    }

    /// Streams in common with a peer: the one that we deal from, and the one that the peer deals from.
    pub(crate) fn pair_prgs(
        &self,
        peer: usize,
        index: u64,
        options: &EngineOptions,
    ) -> Result<(Prg, Prg)> {
        let stream = |secret: &[u8], from: usize, to: usize| {
            prg(&derive("stream", secret, index, &[from as u8, to as u8]))
        };
        if let Some(seed) = &options.insecure_seed {
            return Ok((
                stream(seed, self.party, peer),
                stream(seed, peer, self.party),
            ));
        }
        let inner = self.lock()?;
        let secret = inner
            .pairs
            .get(peer)
            .and_then(Option::as_ref)
            .ok_or_else(|| EngineError::usage(format!("no seed in common with party {peer}")))?;
        Ok((
            stream(secret.as_slice(), self.party, peer),
            stream(secret.as_slice(), peer, self.party),
        ))
    }

    /// Streams in common with each subset of n − t parties that we are in; its first member chooses the seed.
    pub(crate) fn subset_streams(
        &self,
        n: usize,
        t: usize,
        index: u64,
        options: &EngineOptions,
    ) -> Result<Vec<SubsetStream>> {
        let ours: Vec<Vec<usize>> = subsets(n, n - t)
            .into_iter()
            .filter(|s| s.contains(&self.party))
            .collect();
        let stream = |secret: &[u8], members: &[usize]| {
            let names: Vec<u8> = members.iter().map(|m| *m as u8).collect();
            SubsetStream {
                members: members.to_vec(),
                prg: prg(&derive("subset", secret, index, &names)),
                fingerprint: *derive("subset fingerprint", secret, index, &names),
            }
        };
        if let Some(seed) = &options.insecure_seed {
            return Ok(ours.iter().map(|members| stream(seed, members)).collect());
        }
        if !self.lock()?.subsets.contains_key(&t) {
            let mut seeds = Vec::with_capacity(ours.len());
            let mut messages: Vec<Zeroizing<Vec<u8>>> =
                (0..n).map(|_| Zeroizing::new(Vec::new())).collect();
            for members in &ours {
                let mut seed = Zeroizing::new([0u8; 32]);
                if members.first() == Some(&self.party) {
                    os_random(seed.as_mut_slice())?;
                    for member in members.iter().filter(|m| **m != self.party) {
                        let message = messages.get_mut(*member).ok_or_else(no_member)?;
                        message.extend_from_slice(seed.as_slice());
                    }
                }
                seeds.push(seed);
            }
            for (peer, message) in messages.iter().enumerate().filter(|(_, m)| !m.is_empty()) {
                self.send(peer, message)?;
            }
            for leader in (0..n).filter(|leader| *leader != self.party) {
                let led = zip(&ours, &mut seeds)?
                    .filter(|(members, _)| members.first() == Some(&leader))
                    .map(|(_, seed)| seed)
                    .collect::<Vec<_>>();
                if led.is_empty() {
                    continue;
                }
                let data = self.lock()?.net.recv(leader, 32 * led.len());
                fill_seeds(led, &Zeroizing::new(data.map_err(control)?))?;
            }
            let subsets = zip(ours, seeds)?.collect();
            self.lock()?.subsets.insert(t, subsets);
        }
        let inner = self.lock()?;
        let list = inner.subsets.get(&t).ok_or_else(no_member)?;
        let streams = list.iter();
        Ok(streams
            .map(|(members, seed)| stream(seed.as_slice(), members))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A subset without its seed would have a stream that everybody knows.
    #[test]
    fn missing_parts_blocked_subsets_without_seeds() {
        for bytes in [0, 32, 63, 65, 96] {
            let mut seeds = [Seed::default(), Seed::default()];
            let filled = fill_seeds(seeds.iter_mut().collect(), &vec![7; bytes]);
            assert!(matches!(filled, Err(EngineError::Internal(_))), "{bytes}");
        }
        let mut seeds = [Seed::default(), Seed::default()];
        let message: Vec<u8> = (0..64).collect();
        assert!(fill_seeds(seeds.iter_mut().collect(), &message).is_ok());
        assert_eq!([seeds[0].as_slice(), seeds[1].as_slice()].concat(), message);
    }
}
