//! Engines: the parties compare what they ask for, and the protocol opens the engine.

use keyquorum_math::DomainKind;

use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::opening::SessionOpening;
use crate::session::{EngineOptions, Session};
use crate::table;

impl Session {
    /// Opens an engine; all parties must ask for the same program, protocol, domain and threshold.
    ///
    /// # Errors
    /// [`EngineError::Refused`] if the protocol is unknown, or for other parties or domains; [`EngineError::Burned`] after a check failed in
    /// this session.
    pub fn engine(
        &self,
        protocol: &str,
        domain: DomainKind,
        options: &EngineOptions,
    ) -> Result<Box<dyn Engine>> {
        self.guard().refuse()?;
        self.judged(self.open_engine(protocol, domain, options))
    }

    fn open_engine(
        &self,
        protocol: &str,
        domain: DomainKind,
        options: &EngineOptions,
    ) -> Result<Box<dyn Engine>> {
        let n = self.parties();
        let (descriptor, open) = table::row(protocol)?;
        let t = descriptor.threshold(n, options.threshold)?;
        self.check_threshold(descriptor, options)?;
        descriptor.check_domain(domain, self.size_of_whole()?, table::protocols())?;
        self.admit(descriptor)?;
        let index = self.next_engine()?;
        if n > 1 {
            let mut fields = vec![
                ("engine version", env!("CARGO_PKG_VERSION").to_owned()),
                ("program", options.program.clone()),
                ("protocol", protocol.to_owned()),
                ("domain", domain.to_string()),
                ("threshold", t.to_string()),
                ("kind of openings, or of base OT", self.kinds()?),
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
            if descriptor.macs {
                let lpn = if self.lpn()? { "used" } else { "not used" };
                fields.push(("choice on learning parity with noise", lpn.to_owned()));
            }
            let mine = fields
                .iter()
                .map(|(_, v)| v.replace('\n', " "))
                .collect::<Vec<_>>()
                .join("\n");
            for (peer, theirs) in self.all_gather(mine.as_bytes())?.into_iter().enumerate() {
                let theirs = String::from_utf8_lossy(&theirs).into_owned();
                // A field that is not there counts as an empty one here; the whole is compared below.
                let lines = mine
                    .lines()
                    .zip(theirs.lines().chain(std::iter::repeat("")));
                for ((name, _), (a, b)) in fields.iter().zip(lines) {
                    if a != b {
                        return Err(EngineError::protocol(format!(
                            "party {peer} has another {name}: {b:?} there, {a:?} here: start all parties with the same"
                        )));
                    }
                }
                if theirs != mine {
                    return Err(EngineError::protocol(format!(
                        "party {peer} opens its engine with other fields than we do: start all parties with the same version"
                    )));
                }
            }
        }
        open(&SessionOpening {
            session: self.clone(),
            descriptor,
            domain,
            threshold: t,
            index,
            options: options.clone(),
        })
    }
}
