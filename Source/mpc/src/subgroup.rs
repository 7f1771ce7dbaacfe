//! A session among some of the parties of a session, over the same channels.

use std::sync::Arc;

use keyquorum_net::{Counters, Length, NetError, Transport};

use crate::error::EngineError;
use crate::guard::Guard;
use crate::refusal::Refusal;
use crate::session::{MAX_PARTIES, Session};

/// Channels of a larger session, with the members numbered from 0.
struct Members {
    whole: Session,
    /// Numbers in the larger session, in our order.
    numbers: Vec<usize>,
    us: usize,
    counters: Counters,
}

fn config(detail: String) -> NetError {
    NetError::Config { detail }
}

impl Members {
    fn number(&self, member: usize) -> Result<usize, NetError> {
        self.numbers
            .get(member)
            .copied()
            .ok_or_else(|| config(format!("there is no member {member} in this group")))
    }

    fn with<T>(
        &self,
        f: impl FnOnce(&mut dyn Transport) -> Result<T, NetError>,
    ) -> Result<T, NetError> {
        let mut inner = self.whole.lock().map_err(|e| config(e.to_string()))?;
        f(inner.net.as_mut())
    }
}

impl Transport for Members {
    fn party(&self) -> usize {
        self.us
    }

    fn parties(&self) -> usize {
        self.numbers.len()
    }

    fn send(&mut self, to: usize, payload: &[u8]) -> Result<(), NetError> {
        let number = self.number(to)?;
        self.with(|net| net.send(number, payload))?;
        self.counters.count_sent(to, payload.len(), payload.len())?;
        Ok(())
    }

    fn expect(&mut self, from: usize, bytes: usize) -> Result<(), NetError> {
        let number = self.number(from)?;
        self.with(|net| net.expect(number, bytes))
    }

    fn take(&mut self, from: usize, len: Length) -> Result<Vec<u8>, NetError> {
        let number = self.number(from)?;
        let data = self.with(|net| net.take(number, len))?;
        self.counters.count_received(from, data.len(), data.len())?;
        Ok(data)
    }

    fn settle(&mut self) -> Result<(), NetError> {
        self.with(|net| net.settle())
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The channels belong to the larger session.
    fn close(&mut self) {}

    fn abort(&mut self, reason: &str) {
        self.whole.abort(reason);
    }
}

/// The prefix of the list of members, in the message that compares it.
const LABEL: &[u8] = b"keyquorum-v1/subgroup";

impl Session {
    /// Compares the list of members with each other member, before anything secret is sent to it.
    fn compare_members(&self, members: &[usize]) -> Result<(), EngineError> {
        // a session has at most 256 parties
        let list: Vec<u8> = members.iter().map(|m| *m as u8).collect();
        let message = [LABEL, &list].concat();
        let others = || members.iter().copied().filter(|m| *m != self.party());
        for peer in others() {
            self.send(peer, &message)?;
        }
        for peer in others() {
            let got = self.receive(peer, LABEL.len() + MAX_PARTIES)?;
            if got == message {
                continue;
            }
            let theirs = got.strip_prefix(LABEL).map_or_else(
                || "does something else than to form a group".into(),
                |list| format!("forms the group {list:?}"),
            );
            return self.judged(Err(EngineError::protocol(format!(
                "party {peer} {theirs}, party {} forms the group {members:?}: give all members the same list, in the same order",
                self.party()
            ))));
        }
        Ok(())
    }

    /// A session among `members` (numbers of this session, each once, ourselves among them), who all call this with the same
    /// list and are numbered in its order there. Its secrets are new; its traffic and rounds count here, too. The others do
    /// not take part, and nobody uses this session while the members compute. One exchange to compare the lists, and one of seeds.
    ///
    /// # Errors
    /// [`EngineError::Refused`] if engines of this session verify products, [`EngineError::Usage`] if the list is not as said, [`EngineError::Protocol`] if another member has another list,
    /// [`EngineError::Network`] if one does not answer.
    pub fn subgroup(&self, members: &[usize]) -> Result<Session, EngineError> {
        self.group(members, Arc::clone(self.guard()))
    }

    /// The same with a guard of its own. Its MAC keys burn when a check of the group fails, and not when one of this session does: parties outside the group can cause that.
    ///
    /// # Errors
    /// Those of [`Session::subgroup`].
    pub fn subgroup_apart(&self, members: &[usize]) -> Result<Session, EngineError> {
        self.group(members, Arc::default())
    }

    fn group(&self, members: &[usize], guard: Arc<Guard>) -> Result<Session, EngineError> {
        self.guard().refuse()?;
        if self.verifies()? {
            return Err(Refusal::Group.into());
        }
        let refuse = |text: String| Err(EngineError::usage(text));
        if let Some(unknown) = members.iter().find(|m| **m >= self.parties()) {
            return refuse(format!(
                "there is no party {unknown} among {}",
                self.parties()
            ));
        }
        if (1..members.len()).any(|i| members.iter().take(i).any(|m| Some(m) == members.get(i))) {
            return refuse(format!("a party is named twice in the group {members:?}"));
        }
        let Some(us) = members.iter().position(|m| *m == self.party()) else {
            return refuse(format!(
                "party {} is not in the group {members:?}",
                self.party()
            ));
        };
        self.compare_members(members)?;
        let net = Members {
            whole: self.clone(),
            numbers: members.to_vec(),
            us,
            counters: Counters::new(members.len()),
        };
        Session::over(Box::new(net), Some(self.clone()), guard)
    }
}
