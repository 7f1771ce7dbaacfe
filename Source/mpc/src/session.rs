//! A session: one party's channels and the secrets that it has in common with others. Engines are opened in it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use keyquorum_math::{BitLanes, Domain, DomainKind, Prg, Z2k64, Z2k128, Zq};
use keyquorum_net::{Length, Transport};
use keyquorum_ot::Security;
use sha2::{Digest, Sha256};
use sha3::digest::{ExtendableOutput, Update, XofReader};
use zeroize::Zeroizing;

use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::links::{Link, establish};
use crate::ops::Computation;
use crate::protocol::authenticated::MAC_BITS;
use crate::protocol::authenticated::binary::AuthenticatedBits;
use crate::protocol::{
    Additive, Arithmetic, Authenticated, Channel, Emulate, Openings, Protocol, Replicated, Shamir,
    SubsetStream, subsets, uses_prss,
};

type Seed = Zeroizing<[u8; 32]>;

/// Longest control message of the session itself.
const MAX_CONTROL: usize = 1 << 20;

/// Seeds are derived from party numbers of one byte.
const MAX_PARTIES: usize = 256;

/// What an engine is opened with.
#[derive(Clone, Debug, Default)]
pub struct EngineOptions {
    /// Name and arguments of the program: compared among the parties.
    pub program: String,
    /// Corruptions tolerated; `None`: the largest the protocol allows.
    pub threshold: Option<usize>,
    /// Replaces the secret seeds. INSECURE: for tests only.
    pub insecure_seed: Option<Vec<u8>>,
}

/// Traffic of a session: payload of all its engines and control messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct SessionStats {
    /// Communication rounds of the engines.
    pub rounds: u64,
    /// Payload bytes sent, control messages included.
    pub bytes_sent: u64,
    /// Payload bytes received.
    pub bytes_received: u64,
    /// Messages sent.
    pub messages: u64,
}

/// Links of protocols with MACs, and their Δ.
#[derive(Clone)]
struct MacLinks {
    links: Vec<Option<Link>>,
    key: Zeroizing<u128>,
}

pub(crate) struct Inner {
    pub(crate) net: Box<dyn Transport>,
    pub(crate) rounds: u64,
    pairs: Vec<Option<Seed>>,
    subsets: HashMap<usize, Vec<(Vec<usize>, Seed)>>,
    engines: u64,
    links: Option<Vec<Option<Link>>>,
    mac_links: Option<MacLinks>,
    mac_key: Option<Zeroizing<[u8; 16]>>,
    openings: Openings,
    /// The session whose channels these are, if it is another one.
    whole: Option<Session>,
}

/// One party's end of a computation among all.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Mutex<Inner>>,
    party: usize,
    parties: usize,
}

fn os_random(out: &mut [u8]) -> Result<()> {
    getrandom::fill(out)
        .map_err(|e| EngineError::usage(format!("the operating system gives no randomness: {e}")))
}

fn derive(label: &str, secret: &[u8], index: u64, extra: &[u8]) -> Seed {
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

fn control(e: keyquorum_net::NetError) -> EngineError {
    EngineError::network("session set-up", e)
}

impl Session {
    /// Opens a session over connected channels: pairs of parties agree on common seeds.
    pub fn new(net: Box<dyn Transport>) -> Result<Self> {
        Self::over(net, None)
    }

    /// A session over channels that are those of `whole`, if any.
    pub(crate) fn over(mut net: Box<dyn Transport>, whole: Option<Session>) -> Result<Self> {
        let (party, parties) = (net.party(), net.parties());
        if parties > MAX_PARTIES {
            return Err(EngineError::usage(format!(
                "a session has at most {MAX_PARTIES} parties, not {parties}"
            )));
        }
        let mut mine = Vec::with_capacity(parties);
        for _ in 0..parties {
            let mut seed = Zeroizing::new([0u8; 32]);
            os_random(seed.as_mut_slice())?;
            mine.push(seed);
        }
        for (peer, seed) in mine.iter().enumerate().filter(|(peer, _)| *peer != party) {
            net.send(peer, seed.as_slice()).map_err(control)?;
        }
        let mut pairs = Vec::with_capacity(parties);
        for (peer, seed) in mine.iter().enumerate() {
            if peer == party {
                pairs.push(None);
                continue;
            }
            let theirs = Zeroizing::new(net.recv(peer, 32).map_err(control)?);
            let (low, high) = if party < peer {
                (seed.as_slice(), theirs.as_slice())
            } else {
                (theirs.as_slice(), seed.as_slice())
            };
            let joined = Zeroizing::new([low, high].concat());
            pairs.push(Some(derive(
                "pair",
                &joined,
                0,
                &[party.min(peer) as u8, party.max(peer) as u8],
            )));
        }
        let openings = whole
            .as_ref()
            .map_or(Ok(Openings::default()), Self::openings)?;
        let inner = Inner {
            net,
            rounds: 0,
            pairs,
            subsets: HashMap::new(),
            engines: 0,
            links: None,
            mac_links: None,
            mac_key: None,
            openings,
            whole,
        };
        Ok(Self {
            inner: Arc::new(Mutex::new(inner)),
            party,
            parties,
        })
    }

    /// Our number.
    pub fn party(&self) -> usize {
        self.party
    }

    /// Number of parties.
    pub fn parties(&self) -> usize {
        self.parties
    }

    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, Inner>> {
        self.inner
            .lock()
            .map_err(|_| EngineError::usage("the session broke off in another thread"))
    }

    /// Counts communication rounds of an engine.
    pub(crate) fn count_rounds(&self, rounds: u64) -> Result<()> {
        let whole = {
            let mut inner = self.lock()?;
            inner.rounds += rounds;
            inner.whole.clone()
        };
        whole.map_or(Ok(()), |whole| whole.count_rounds(rounds))
    }

    /// Sends a control message.
    pub fn send(&self, to: usize, data: &[u8]) -> Result<()> {
        self.lock()?
            .net
            .send(to, data)
            .map_err(|e| EngineError::network(format!("message to party {to}"), e))
    }

    /// Receives a control message of at most `max` bytes.
    pub fn receive(&self, from: usize, max: usize) -> Result<Vec<u8>> {
        self.lock()?
            .net
            .recv_any_len(from, max)
            .map_err(|e| EngineError::network(format!("message from party {from}"), e))
    }

    /// Everybody sends its bytes to everybody; returns all, in party order.
    pub fn all_gather(&self, data: &[u8]) -> Result<Vec<Vec<u8>>> {
        if data.len() > MAX_CONTROL {
            return Err(EngineError::usage(format!(
                "a control message has {} bytes, at most {MAX_CONTROL} are allowed",
                data.len()
            )));
        }
        for peer in (0..self.parties).filter(|peer| *peer != self.party) {
            self.send(peer, data)?;
        }
        let mut inner = self.lock()?;
        let net = &mut inner.net;
        let mut all = Vec::with_capacity(self.parties);
        for peer in 0..self.parties {
            all.push(if peer == self.party {
                data.to_vec()
            } else {
                net.take(peer, Length::AtMost(MAX_CONTROL))
                    .map_err(|e| EngineError::network(format!("message from party {peer}"), e))?
            });
        }
        net.settle()
            .map_err(|e| EngineError::network("control messages", e))?;
        Ok(all)
    }

    /// Compares a digest with all parties; tells who differs.
    pub fn compare(&self, label: &str, digest: &[u8]) -> Result<()> {
        let all = self.all_gather(digest)?;
        let different: Vec<String> = all
            .iter()
            .enumerate()
            .filter(|(_, theirs)| theirs.as_slice() != digest)
            .map(|(peer, _)| format!("party {peer}"))
            .collect();
        if different.is_empty() {
            return Ok(());
        }
        Err(EngineError::protocol(format!(
            "{label}: {} computed another value than party {}: do not use this result, compare parameters and inputs of the parties",
            different.join(", "),
            self.party
        )))
    }

    /// A joint coin toss: everyone commits to random bytes, then opens. Two exchanges.
    pub fn toss(&self, bytes: usize) -> Result<Vec<u8>> {
        let mut mine = [0u8; 64];
        os_random(&mut mine)?;
        let commitment = |party: usize, value: &[u8]| derive("toss", value, party as u64, &[]);
        let commitments = self.all_gather(commitment(self.party, &mine).as_slice())?;
        let opened = self.all_gather(&mine)?;
        let mut shake = sha3::Shake256::default();
        shake.update(b"keyquorum-v1/toss");
        for (party, (value, committed)) in opened.iter().zip(&commitments).enumerate() {
            if value.len() != 64 || commitment(party, value).as_slice() != committed.as_slice() {
                return Err(EngineError::protocol(format!(
                    "party {party} opened another value than it had committed to in a coin toss"
                )));
            }
            shake.update(value);
        }
        let mut out = vec![0u8; bytes];
        shake.finalize_xof().read(&mut out);
        Ok(out)
    }

    /// Opens an engine; all parties must ask for the same program, protocol, domain and threshold.
    pub fn engine(
        &self,
        protocol: &str,
        domain: DomainKind,
        options: &EngineOptions,
    ) -> Result<Box<dyn Engine>> {
        let (n, t) = self.check_protocol(protocol, domain, options)?;
        let index = self.next_engine()?;
        if n > 1 {
            let fields = [
                ("engine version", env!("CARGO_PKG_VERSION").to_owned()),
                ("program", options.program.clone()),
                ("protocol", protocol.to_owned()),
                ("domain", domain.to_string()),
                ("threshold", t.to_string()),
                ("kind of openings", self.openings()?.name().to_owned()),
                (
                    "seed",
                    if options.insecure_seed.is_some() {
                        "INSECURE test seed"
                    } else {
                        "secret"
                    }
                    .to_owned(),
                ),
                ("number of programs so far", index.to_string()),
            ];
            let mine = fields
                .iter()
                .map(|(_, v)| v.replace('\n', " "))
                .collect::<Vec<_>>()
                .join("\n");
            for (peer, theirs) in self.all_gather(mine.as_bytes())?.into_iter().enumerate() {
                let theirs = String::from_utf8_lossy(&theirs).into_owned();
                for ((name, _), (a, b)) in fields.iter().zip(
                    mine.lines()
                        .zip(theirs.lines().chain(std::iter::repeat(""))),
                ) {
                    if a != b {
                        return Err(EngineError::protocol(format!(
                            "party {peer} has another {name}: {b:?} there, {a:?} here: start all parties with the same"
                        )));
                    }
                }
            }
        }
        match protocol {
            "emulate" => self.open(
                Emulate::new(self.emulator_prg(options, index)?),
                domain,
                t,
                options,
            ),
            "ring" | "rep-field" => {
                let next = self.pair_prgs((self.party + 1) % 3, index, options)?;
                let previous = self.pair_prgs((self.party + 2) % 3, index, options)?;
                self.open(
                    Replicated::new(self.party, next.0, previous.1),
                    domain,
                    t,
                    options,
                )
            }
            "semi2k" | "semi" | "semi-bin" => self.additive(domain, t, index, options),
            "spdz2k" | "mascot" => self.authenticated(domain, t, index, options),
            _ => {
                let pairs = self.all_pair_prgs(index, options)?;
                let streams = if uses_prss(n, t) {
                    self.subset_streams(n, t, index, options)?
                } else {
                    Vec::new()
                };
                self.open(
                    Shamir::new(self.party, n, t, pairs, streams),
                    domain,
                    t,
                    options,
                )
            }
        }
    }

    fn check_protocol(
        &self,
        protocol: &str,
        domain: DomainKind,
        options: &EngineOptions,
    ) -> Result<(usize, usize)> {
        let n = self.parties;
        let refuse = |text: String| Err(EngineError::usage(text));
        let field = matches!(domain, DomainKind::Fq(_));
        let ring = matches!(domain, DomainKind::Z2k(_));
        let t = match protocol {
            "emulate" if n == 1 => 0,
            "emulate" => {
                return refuse(format!(
                    "emulate runs in one process, not among {n} parties: leave out -N or take another protocol"
                ));
            }
            "ring" | "rep-field" if n != 3 => {
                return refuse(format!("{protocol} is for 3 parties, not {n}: set -N 3"));
            }
            "ring" if !ring => {
                return refuse(format!(
                    "ring works modulo 2^k, not over {domain}: take rep-field, or -R k"
                ));
            }
            "rep-field" if !field => {
                return refuse(format!(
                    "rep-field works over prime fields, not over {domain}: take ring, or -P prime"
                ));
            }
            "ring" | "rep-field" => 1,
            "shamir" if n < 3 => {
                return refuse(format!(
                    "shamir needs at least 3 parties, not {n}: set -N 3"
                ));
            }
            "shamir" if !field => {
                return refuse(format!(
                    "shamir works over prime fields, not over {domain}: take ring, or -P prime"
                ));
            }
            "shamir" => options.threshold.unwrap_or((n - 1) / 2),
            "semi2k" | "semi" | "semi-bin" | "spdz2k" | "mascot" if n < 2 => {
                return refuse(format!(
                    "{protocol} needs at least 2 parties, not {n}: set -N 2"
                ));
            }
            "semi2k" if !ring => {
                return refuse(format!(
                    "semi2k works modulo 2^k, not over {domain}: take semi, or -R k"
                ));
            }
            "semi" if !field => {
                return refuse(format!(
                    "semi works over prime fields, not over {domain}: take semi2k, or -P prime"
                ));
            }
            "spdz2k" if !matches!(domain, DomainKind::Z2k(k) if k + MAC_BITS <= 128) => {
                return refuse(format!(
                    "spdz2k works modulo 2^k for k up to {}, not over {domain}: take mascot, or a smaller -R",
                    128 - MAC_BITS
                ));
            }
            "mascot" if !matches!(domain, DomainKind::Fq(q) if q >> 32 > 0) => {
                return refuse(format!(
                    "mascot works over prime fields of more than 32 bits, not over {domain}: MACs of fewer bits can be guessed, take a larger -P"
                ));
            }
            "semi-bin" if ring || field => {
                return refuse(format!(
                    "semi-bin works on bits, not over {domain}: take semi2k or semi"
                ));
            }
            "semi2k" | "semi" | "semi-bin" | "spdz2k" | "mascot" => n - 1,
            other => {
                return refuse(format!(
                    "unknown protocol {other:?}: choose one of ring, rep-field, shamir, semi2k, semi, semi-bin, spdz2k, mascot, emulate"
                ));
            }
        };
        if let ("shamir", DomainKind::Fq(q)) = (protocol, domain)
            && q <= n as u64
        {
            // Party i holds f(i + 1): a point that is 0 modulo q would be the secret itself.
            return refuse(format!(
                "shamir with {n} parties needs a prime above {n}, not {q}: take a larger -P"
            ));
        }
        if protocol == "shamir" && (t == 0 || 2 * t >= n) {
            return refuse(format!(
                "shamir with {n} parties tolerates 1 to {} corruptions, not {t}",
                (n - 1) / 2
            ));
        }
        if protocol != "shamir" && options.threshold.is_some_and(|asked| asked != t) {
            return refuse(format!(
                "{protocol} tolerates exactly {t} corruption(s): leave the threshold out"
            ));
        }
        Ok((n, t))
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

    /// What both ends of a link hash into their base OTs, so that these belong to this session and this direction.
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

    /// Oblivious transfer with all peers, in a stream of this engine.
    fn channels(&self, index: u64, security: Security) -> Result<Vec<Option<Channel>>> {
        let links = self.lock()?.links.clone();
        let links = match links {
            Some(links) => links,
            None => {
                let links = establish(self, "link", None)?;
                self.lock()?.links = Some(links.clone());
                links
            }
        };
        Ok(links
            .iter()
            .map(|link| link.as_ref().map(|l| l.channel(index, security)))
            .collect())
    }

    /// Links of protocols with MACs, on all of which our Δ is our key.
    fn mac_links(&self) -> Result<MacLinks> {
        if let Some(links) = self.lock()?.mac_links.clone() {
            return Ok(links);
        }
        let key = match self.lock()?.mac_key.clone() {
            Some(key) => key,
            None => {
                let mut key = Zeroizing::new([0u8; 16]);
                os_random(key.as_mut_slice())?;
                key
            }
        };
        let key = Zeroizing::new(u128::from_le_bytes(*key));
        let links = establish(self, "bits", Some(&key))?;
        let links = MacLinks { links, key };
        self.lock()?.mac_links = Some(links.clone());
        Ok(links)
    }

    /// The key of our MACs in all engines of this session, instead of a random one: shares of an earlier session can be used
    /// only with the key that it had.
    ///
    /// # Errors
    /// [`EngineError::Usage`] if an engine was opened before that has MACs.
    pub fn set_mac_key(&self, key: [u8; 16]) -> Result<()> {
        let key = Zeroizing::new(key);
        let mut inner = self.lock()?;
        if inner.mac_links.is_some() {
            return Err(EngineError::usage(
                "the key of MACs is in use: set it before the first spdz2k or mascot engine of a session",
            ));
        }
        inner.mac_key = Some(key);
        Ok(())
    }

    /// Who tells whom in openings and products of `semi2k`, `semi` and `semi-bin`: of engines that are opened from now on, and
    /// of subgroups that are made from now on. The same at all parties, who compare it when they open an engine.
    pub fn set_openings(&self, openings: Openings) -> Result<()> {
        self.lock()?.openings = openings;
        Ok(())
    }

    fn openings(&self) -> Result<Openings> {
        Ok(self.lock()?.openings)
    }

    fn next_engine(&self) -> Result<u64> {
        let mut inner = self.lock()?;
        inner.engines += 1;
        Ok(inner.engines)
    }

    fn private_prg(&self, index: u64, options: &EngineOptions) -> Result<Prg> {
        match &options.insecure_seed {
            Some(seed) => Ok(prg(&derive("private", seed, index, &[self.party as u8]))),
            None => Prg::from_os().map_err(|e| EngineError::usage(e.to_string())),
        }
    }

    /// Authenticated bits among all parties of the session, in streams of their own.
    pub(crate) fn authenticated_bits(&self, options: &EngineOptions) -> Result<AuthenticatedBits> {
        let index = self.next_engine()?;
        let MacLinks { links, .. } = self.mac_links()?;
        let channels = links.iter().map(|link| {
            link.as_ref()
                .map(|link| link.channel(index, Security::Malicious))
        });
        AuthenticatedBits::new(
            self.party,
            channels.collect(),
            self.all_pair_prgs(index, options)?,
            self.private_prg(index, options)?,
        )
    }

    fn authenticated(
        &self,
        domain: DomainKind,
        threshold: usize,
        index: u64,
        options: &EngineOptions,
    ) -> Result<Box<dyn Engine>> {
        let insecure = options.insecure_seed.is_some();
        let invalid = |e: keyquorum_math::DomainError| EngineError::usage(e.to_string());
        Ok(match domain {
            DomainKind::Fq(q) => {
                let field = Zq::new(q).map_err(invalid)?;
                let protocol =
                    self.protocol_with_macs((field.clone(), field.clone()), index, options)?;
                Box::new(self.computation(protocol, field, threshold, insecure))
            }
            DomainKind::Z2k(k) => {
                let visible = Z2k128::new(k).map_err(invalid)?;
                let shares = Z2k128::new(k + MAC_BITS).map_err(invalid)?;
                let domains = (visible, shares);
                let protocol = self.protocol_with_macs(domains, index, options)?;
                let session = self.clone();
                Box::new(Computation::new(
                    session, protocol, domains, threshold, insecure,
                ))
            }
            DomainKind::Bits => {
                return Err(EngineError::usage(
                    "packed bits alone have no protocol with MACs: open spdz2k or mascot",
                ));
            }
        })
    }

    /// A party of `spdz2k` or `mascot`.
    pub(crate) fn protocol_with_macs<A: Arithmetic>(
        &self,
        domains: (A, A),
        index: u64,
        options: &EngineOptions,
    ) -> Result<Authenticated<A>> {
        let bits = self.authenticated_bits(options)?;
        let MacLinks { links, key } = self.mac_links()?;
        let peers = links
            .iter()
            .map(|link| link.as_ref().map(|link| link.peer(index)));
        Ok(Authenticated::new(
            (self.party, &key),
            domains,
            peers.collect(),
            self.all_pair_prgs(index, options)?,
            self.private_prg(index, options)?,
            bits,
        ))
    }

    fn additive(
        &self,
        domain: DomainKind,
        threshold: usize,
        index: u64,
        options: &EngineOptions,
    ) -> Result<Box<dyn Engine>> {
        let invalid = |e: keyquorum_math::DomainError| EngineError::usage(e.to_string());
        Ok(match domain {
            DomainKind::Fq(q) => {
                self.open_additive(Zq::new(q).map_err(invalid)?, threshold, index, options)?
            }
            DomainKind::Z2k(k) if k <= 64 => {
                self.open_additive(Z2k64::new(k).map_err(invalid)?, threshold, index, options)?
            }
            DomainKind::Z2k(k) => {
                self.open_additive(Z2k128::new(k).map_err(invalid)?, threshold, index, options)?
            }
            DomainKind::Bits => self.open_additive(BitLanes, threshold, index, options)?,
        })
    }

    fn open_additive<A: Arithmetic>(
        &self,
        domain: A,
        threshold: usize,
        index: u64,
        options: &EngineOptions,
    ) -> Result<Box<dyn Engine>> {
        let private = self.private_prg(index, options)?;
        let protocol = Additive::new(
            self.party,
            domain.clone(),
            self.all_pair_prgs(index, options)?,
            self.channels(index, Security::SemiHonest)?,
            private,
            self.openings()?,
        );
        let insecure = options.insecure_seed.is_some();
        Ok(Box::new(
            self.computation(protocol, domain, threshold, insecure),
        ))
    }

    fn open<P: Protocol>(
        &self,
        protocol: P,
        domain: DomainKind,
        threshold: usize,
        options: &EngineOptions,
    ) -> Result<Box<dyn Engine>> {
        let invalid = |e: keyquorum_math::DomainError| EngineError::usage(e.to_string());
        let insecure = options.insecure_seed.is_some();
        Ok(match domain {
            DomainKind::Fq(q) => Box::new(self.computation(
                protocol,
                Zq::new(q).map_err(invalid)?,
                threshold,
                insecure,
            )),
            DomainKind::Z2k(k) if k <= 64 => Box::new(self.computation(
                protocol,
                Z2k64::new(k).map_err(invalid)?,
                threshold,
                insecure,
            )),
            DomainKind::Z2k(k) => Box::new(self.computation(
                protocol,
                Z2k128::new(k).map_err(invalid)?,
                threshold,
                insecure,
            )),
            DomainKind::Bits => Box::new(self.computation(protocol, BitLanes, threshold, insecure)),
        })
    }

    fn computation<P: Protocol, D: Domain>(
        &self,
        protocol: P,
        domain: D,
        threshold: usize,
        insecure: bool,
    ) -> Computation<P, D> {
        Computation::new(
            self.clone(),
            protocol,
            (domain.clone(), domain),
            threshold,
            insecure,
        )
    }

    fn emulator_prg(&self, options: &EngineOptions, index: u64) -> Result<Prg> {
        Ok(match &options.insecure_seed {
            Some(seed) => prg(&derive("emulate", seed, index, &[])),
            None => Prg::from_os().map_err(|e| EngineError::usage(e.to_string()))?,
        })
    }

    /// Streams in common with a peer: the one that we deal from, and the one that the peer deals from.
    fn pair_prgs(&self, peer: usize, index: u64, options: &EngineOptions) -> Result<(Prg, Prg)> {
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
    fn subset_streams(
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
                        if let Some(message) = messages.get_mut(*member) {
                            message.extend_from_slice(seed.as_slice());
                        }
                    }
                }
                seeds.push(seed);
            }
            for (peer, message) in messages.iter().enumerate().filter(|(_, m)| !m.is_empty()) {
                self.send(peer, message)?;
            }
            for leader in (0..n).filter(|leader| *leader != self.party) {
                let led: Vec<usize> = (0..ours.len())
                    .filter(|i| ours.get(*i).and_then(|m| m.first()) == Some(&leader))
                    .collect();
                if led.is_empty() {
                    continue;
                }
                let data = Zeroizing::new(
                    self.lock()?
                        .net
                        .recv(leader, 32 * led.len())
                        .map_err(control)?,
                );
                for (i, chunk) in led.into_iter().zip(data.chunks_exact(32)) {
                    if let Some(seed) = seeds.get_mut(i) {
                        seed.copy_from_slice(chunk);
                    }
                }
            }
            self.lock()?
                .subsets
                .insert(t, ours.iter().cloned().zip(seeds).collect());
        }
        let inner = self.lock()?;
        Ok(inner.subsets.get(&t).map_or_else(Vec::new, |list| {
            list.iter()
                .map(|(members, seed)| stream(seed.as_slice(), members))
                .collect()
        }))
    }

    /// Traffic so far.
    pub fn stats(&self) -> Result<SessionStats> {
        let inner = self.lock()?;
        let counters = inner.net.counters();
        Ok(SessionStats {
            rounds: inner.rounds,
            bytes_sent: counters.total().payload_sent,
            bytes_received: counters.total().payload_received,
            messages: counters.total().messages_sent,
        })
    }

    /// Tells all others why we stop.
    pub fn abort(&self, reason: &str) {
        if let Ok(mut inner) = self.inner.lock() {
            inner.net.abort(reason);
        }
    }

    /// Orderly end.
    pub fn close(&self) {
        if let Ok(mut inner) = self.inner.lock() {
            inner.net.close();
        }
    }
}
