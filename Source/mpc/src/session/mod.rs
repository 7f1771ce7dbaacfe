//! A session: one party's channels and the secrets that it has in common with others. Engines are opened in it.

mod keys;
pub(crate) mod links;
mod members;
mod protocols;
mod streams;
#[cfg(test)]
mod tests;
mod unfinished;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keyquorum_math::DomainKind;
use keyquorum_net::{Length, TamperedTransport, Transport};
use keyquorum_ot::{BaseOt, MacKey};
use sha3::digest::{ExtendableOutput, Update, XofReader};
use zeroize::Zeroizing;

use self::links::Link;
use self::streams::{MacLinks, derive};
use crate::adversary::{Corruption, Omitting, honest};
use crate::error::{Check, EngineError, Result};
use crate::guard::Guard;
use crate::protocol::{Openings, Points, Unsettled};
use crate::value::zip;

type Seed = Zeroizing<[u8; 32]>;

/// Longest control message of the session itself.
const MAX_CONTROL: usize = 1 << 20;

/// Seeds are derived from party numbers of one byte.
pub(crate) const MAX_PARTIES: usize = 256;

/// Options of an engine.
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

pub(crate) struct Inner {
    pub(crate) net: Box<dyn Transport>,
    pub(crate) rounds: u64,
    pairs: Vec<Option<Seed>>,
    subsets: HashMap<usize, Vec<(Vec<usize>, Seed)>>,
    engines: u64,
    links: Option<Vec<Option<Link>>>,
    mac_links: Option<MacLinks>,
    mac_key: Option<MacKey>,
    /// By domain: names of the runs of which shares may be used. The same at all parties: a name comes in when it was tossed, or compared, and with MACs
    /// when the MAC keys passed the test that is stored with it.
    pub(crate) origins: HashMap<DomainKind, HashSet<Vec<u8>>>,
    openings: Openings,
    base_ot: BaseOt,
    /// Whether engines with MACs may assume learning parity with noise.
    lpn: bool,
    /// Whether the engines of this session and of its groups verify products; `None` before the first one. Kept in the outermost session.
    verifies: Option<bool>,
    /// The session whose channels these are, if it is another one.
    whole: Option<Session>,
    /// Where the parties are some members of a committee: their points, and its size.
    members: Option<(Points, usize)>,
}

/// One party's end of a computation among all.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Mutex<Inner>>,
    /// The guard of this session, its subgroups, and the session that it is a subgroup of.
    guard: Arc<Guard>,
    /// Shared by all engines that verify products.
    unsettled: Arc<Unsettled>,
    /// Of this party, for all its engines.
    adversary: Corruption,
    party: usize,
    parties: usize,
}

impl Inner {
    /// After a failed check the keys of MACs are known to others.
    fn forget_mac_keys(&mut self) {
        self.mac_links = None;
        self.mac_key = None;
    }
}

fn os_random(out: &mut [u8]) -> Result<()> {
    getrandom::fill(out)
        .map_err(|e| EngineError::usage(format!("the operating system gives no randomness: {e}")))
}

fn control(e: keyquorum_net::NetError) -> EngineError {
    EngineError::network("session set-up", e)
}

impl Session {
    /// Opens a session over connected channels: pairs of parties agree on common seeds.
    pub fn new(net: Box<dyn Transport>) -> Result<Self> {
        Self::over(net, None, Arc::default())
    }

    /// [`Session::new`] of a party in one process with all others, which ignores the verdicts of these checks. For tests that show what a check is there for: the type of
    /// the transport rules out networks. Comparisons outside of protocols (of seeds, names, and numbers that parties toss) stay.
    ///
    /// # Errors
    /// As [`Session::new`].
    pub fn without_checks<F>(
        net: TamperedTransport<F>,
        omitted: impl IntoIterator<Item = Check>,
    ) -> Result<Self>
    where
        F: FnMut(usize, &[u8]) -> Vec<Vec<u8>> + Send + 'static,
    {
        let mut session = Self::new(Box::new(net))?;
        session.adversary = Arc::new(Omitting(omitted.into_iter().collect()));
        Ok(session)
    }

    /// A session over channels that are those of `whole`, if any, with this guard.
    pub(crate) fn over(
        mut net: Box<dyn Transport>,
        whole: Option<Session>,
        guard: Arc<Guard>,
    ) -> Result<Self> {
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
        let base_ot = whole
            .as_ref()
            .map_or(Ok(BaseOt::default()), Self::base_ot)?;
        let lpn = whole.as_ref().map_or(Ok(true), Self::lpn)?;
        let adversary = whole
            .as_ref()
            .map_or_else(honest, |whole| Corruption::clone(&whole.adversary));
        let inner = Inner {
            net,
            rounds: 0,
            pairs,
            subsets: HashMap::new(),
            engines: 0,
            links: None,
            mac_links: None,
            mac_key: None,
            origins: HashMap::new(),
            openings,
            base_ot,
            lpn,
            verifies: None,
            whole,
            members: None,
        };
        Ok(Self {
            inner: Arc::new(Mutex::new(inner)),
            guard,
            unsettled: Arc::default(),
            adversary,
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
        let mut inner = self
            .inner
            .lock()
            .map_err(|_| EngineError::usage("the session broke off in another thread"))?;
        if self.guard.poisoned() {
            inner.forget_mac_keys();
        }
        Ok(inner)
    }

    /// The same session with another guard.
    #[cfg(test)]
    pub(crate) fn guarded(&self, guard: Guard) -> Self {
        let mut session = self.clone();
        session.guard = Arc::new(guard);
        session
    }

    /// The guard, which decides whether this session may go on.
    pub(crate) fn guard(&self) -> &Arc<Guard> {
        &self.guard
    }

    /// The adversary of this party: honest, but for tests.
    pub(crate) fn adversary(&self) -> Corruption {
        Corruption::clone(&self.adversary)
    }

    /// Shared by all engines of this session that verify products.
    pub(crate) fn unsettled(&self) -> Arc<Unsettled> {
        Arc::clone(&self.unsettled)
    }

    /// The session of all parties that this is a group of, or itself.
    pub(crate) fn outermost(&self) -> Result<Session> {
        let mut session = self.clone();
        loop {
            let Some(whole) = session.lock()?.whole.clone() else {
                return Ok(session);
            };
            session = whole;
        }
    }

    /// Whether the engines of this session verify products.
    pub(crate) fn verifies(&self) -> Result<bool> {
        Ok(self.outermost()?.lock()?.verifies == Some(true))
    }

    /// A result of this session or its engines, as it is reported: after a failed check nothing works any more.
    pub(crate) fn judged<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| self.guard.judge(error))
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
        self.guard.refuse()?;
        let sent = self.lock()?.net.send(to, data);
        self.judged(sent.map_err(|e| EngineError::network(format!("message to party {to}"), e)))
    }

    /// Receives a control message of at most `max` bytes.
    pub fn receive(&self, from: usize, max: usize) -> Result<Vec<u8>> {
        self.guard.refuse()?;
        let got = self.lock()?.net.recv_any_len(from, max);
        self.judged(got.map_err(|e| EngineError::network(format!("message from party {from}"), e)))
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
        self.judged(self.all_gathered(data))
    }

    fn all_gathered(&self, data: &[u8]) -> Result<Vec<Vec<u8>>> {
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

    /// Compares a digest with all parties; the error names those that differ.
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
        self.judged(Err(EngineError::protocol(format!(
            "{label}: {} computed another value than party {}: do not use this result, compare parameters and inputs of the parties",
            different.join(", "),
            self.party
        ))))
    }

    /// A joint coin toss: everyone commits to random bytes, then opens. Two exchanges; three among more than two parties, who compare
    /// the commitments before they open, so that nobody can commit to other values towards others.
    ///
    /// # Errors
    /// [`EngineError::Check`] if one of the parties cheats.
    pub fn toss(&self, bytes: usize) -> Result<Vec<u8>> {
        self.judged(self.tossed(bytes, self.parties > 2))
    }

    /// [`Session::toss`], with the comparison of the commitments or without.
    fn tossed(&self, bytes: usize, compares: bool) -> Result<Vec<u8>> {
        let mut mine = [0u8; 64];
        os_random(&mut mine)?;
        let commitment = |party: usize, value: &[u8]| derive("toss", value, party as u64, &[]);
        let commitments = self.all_gather(commitment(self.party, &mine).as_slice())?;
        if compares {
            let digest = derive("toss commitments", &commitments.concat(), 0, &[]);
            let digests = self.all_gather(digest.as_slice())?;
            if let Some(peer) = digests.iter().position(|d| d != digest.as_slice()) {
                return Err(EngineError::check(
                    Check::Broadcast,
                    format!(
                        "party {peer} did not get the same commitments as party {} in a coin toss: one of the parties cheats",
                        self.party
                    ),
                ));
            }
        }
        let opened = self.all_gather(&mine)?;
        let mut shake = sha3::Shake256::default();
        shake.update(b"keyquorum-v1/toss");
        for (party, (value, committed)) in zip(&opened, &commitments)?.enumerate() {
            if value.len() != 64 || commitment(party, value).as_slice() != committed.as_slice() {
                return Err(EngineError::check(
                    Check::Commitment,
                    format!(
                        "party {party} opened another value than it had committed to in a coin toss"
                    ),
                ));
            }
            shake.update(value);
        }
        let mut out = vec![0u8; bytes];
        shake.finalize_xof().read(&mut out);
        Ok(out)
    }

    /// Who sends to whom in openings and products of additive shares: of engines that are opened from now on, and
    /// of subgroups that are made from now on. The same at all parties, who compare it when they open an engine.
    pub fn set_openings(&self, openings: Openings) -> Result<()> {
        self.lock()?.openings = openings;
        Ok(())
    }

    pub(crate) fn openings(&self) -> Result<Openings> {
        Ok(self.lock()?.openings)
    }

    /// How links of oblivious transfer that are set up from now on begin, and those of subgroups that are made from now on. The same at all
    /// parties, who compare it when they open an engine.
    pub fn set_base_ot(&self, base_ot: BaseOt) -> Result<()> {
        self.lock()?.base_ot = base_ot;
        Ok(())
    }

    fn base_ot(&self) -> Result<BaseOt> {
        Ok(self.lock()?.base_ot)
    }

    /// Whether engines with MACs that are opened from now on, and those of subgroups that are made from now on, may assume learning parity with noise. The same at all parties, who compare it when
    /// they open an engine.
    pub fn set_lpn(&self, lpn: bool) -> Result<()> {
        self.lock()?.lpn = lpn;
        Ok(())
    }

    pub(crate) fn lpn(&self) -> Result<bool> {
        Ok(self.lock()?.lpn)
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

    /// Sends all others the reason why we stop.
    pub fn abort(&self, reason: &str) {
        self.guard.end();
        // After a panic that held the session nothing else works, but the others get the reason.
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.net.abort(reason);
    }

    /// Orderly end. There is none after a panic that held the session: the transport ends when the session is dropped.
    pub fn close(&self) {
        if let Ok(mut inner) = self.inner.lock() {
            // A subgroup apart has a guard of its own; that of the others lasts as long as the whole session.
            let shared = inner.whole.as_ref().map(|whole| &whole.guard);
            if shared.is_none_or(|guard| !Arc::ptr_eq(guard, &self.guard)) {
                self.guard.end();
            }
            inner.net.close();
        }
    }
}
