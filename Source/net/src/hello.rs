//! The hello: what parties compare on every connection before any data flow.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::NetError;
use crate::error::one_line;
use crate::frame::{Event, MAX_HELLO, MAX_REASON, widen};
use crate::identity::fingerprint_hex;

const MAGIC: &[u8; 9] = b"keyquorum";

/// Version of the wire format: raised by every change that an older party would misread.
const WIRE_VERSION: u32 = 1;

/// Longest value, and longest name of an entry, shown in an error, in characters.
const SHOWN: usize = 200;
const SHOWN_NAME: usize = 60;

/// Prefix of the names of those entries of a context that describe the committee.
const COMMITTEE: &str = "committee.";

/// In an error: the value of an entry that one side does not have.
const LACKING: &str = "nothing";

/// Our identity, and the run that we start. Both ends of every connection compare all fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Version of the software.
    pub version: String,
    /// Digest of the committee (the parties file).
    pub committee: [u8; 32],
    /// Program and arguments, or the plan. If it consists of lines `name=value`, an error names the first entry that differs; entries whose
    /// names begin with `committee.` say what `committee` is a digest of.
    pub context: String,
    /// Protocol of the session; empty if it is chosen later.
    pub protocol: String,
    /// Arithmetic domain of the session; empty if it is chosen later.
    pub domain: String,
    /// Our own index.
    pub party: u32,
    /// Number of parties.
    pub parties: u32,
}

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Session,
    Probe,
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Session => "session",
            Self::Probe => "doctor",
        })
    }
}

/// A hello as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Greeting {
    pub(crate) hello: Hello,
    pub(crate) purpose: Purpose,
    /// The sender's wall clock at sending, since 1970.
    pub(crate) clock: Duration,
    /// The receiver's index, as the sender expects it.
    pub(crate) to: u32,
}

/// Why a hello could not be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HelloError {
    /// Another wire format: its version.
    WireVersion(u32),
    /// No hello at all.
    Malformed(&'static str),
}

impl HelloError {
    /// The error to show, given who sent the hello.
    pub(crate) fn of_peer(self, peer: usize) -> NetError {
        match self {
            Self::WireVersion(theirs) => NetError::HelloMismatch {
                peer,
                field: "wire version".into(),
                mine: WIRE_VERSION.to_string(),
                theirs: theirs.to_string(),
            },
            Self::Malformed(detail) => NetError::MalformedFrame {
                peer,
                detail: format!("hello: {detail}"),
            },
        }
    }
}

/// The wall clock, since 1970. A clock that is set to a time before counts as 1970: clocks are shown, nothing depends on them.
pub(crate) fn wall_clock() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
}

/// A number of the session in the wire format.
fn narrow(number: usize) -> Result<[u8; 4], NetError> {
    let number = u32::try_from(number);
    Ok(number
        .map_err(|_| NetError::internal("a number in our hello above 2^32"))?
        .to_le_bytes())
}

impl Hello {
    /// Body of a hello frame for party `to`, stamped with the time of now.
    pub(crate) fn encode(&self, purpose: Purpose, to: usize) -> Result<Vec<u8>, NetError> {
        let mut out = Vec::new();
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&WIRE_VERSION.to_le_bytes());
        out.push(purpose as u8);
        let micros = u64::try_from(wall_clock().as_micros())
            .map_err(|_| NetError::internal("a wall clock beyond 64 bits"))?;
        out.extend_from_slice(&micros.to_le_bytes());
        out.extend_from_slice(&narrow(to)?);
        out.extend_from_slice(&self.party.to_le_bytes());
        out.extend_from_slice(&self.parties.to_le_bytes());
        out.extend_from_slice(&self.committee);
        for text in [&self.version, &self.context, &self.protocol, &self.domain] {
            out.extend_from_slice(&narrow(text.len())?);
            out.extend_from_slice(text.as_bytes());
        }
        Ok(out)
    }

    /// Fails if the hello does not fit in its frame.
    pub(crate) fn check_size(&self) -> Result<(), NetError> {
        let len = self.encode(Purpose::Session, 0)?.len();
        if len <= MAX_HELLO {
            return Ok(());
        }
        Err(NetError::Config {
            detail: format!(
                "the session's description takes {len} bytes, at most {MAX_HELLO} are allowed: put a digest in `context` instead"
            ),
        })
    }

    /// Compares with the hello of `peer`; every field must be equal, `party` must be `peer`, and `to` must be our index.
    pub(crate) fn compare(&self, peer: usize, greeting: &Greeting) -> Result<(), NetError> {
        let theirs = &greeting.hello;
        let committee = (
            fingerprint_hex(&self.committee),
            fingerprint_hex(&theirs.committee),
        );
        let parties = (self.parties.to_string(), theirs.parties.to_string());
        let party = (peer.to_string(), theirs.party.to_string());
        let ours = (self.party.to_string(), greeting.to.to_string());
        let fields: [(&'static str, &str, &str); 8] = [
            ("version", &self.version, &theirs.version),
            ("committee", &committee.0, &committee.1),
            ("parties", &parties.0, &parties.1),
            ("party", &party.0, &party.1),
            ("party (ours)", &ours.0, &ours.1),
            ("protocol", &self.protocol, &theirs.protocol),
            ("domain", &self.domain, &theirs.domain),
            ("context", &self.context, &theirs.context),
        ];
        for (field, mine, said) in fields {
            if mine != said {
                let entry = match field {
                    "committee" => differing_entry(&self.context, &theirs.context, COMMITTEE),
                    "context" => differing_entry(&self.context, &theirs.context, ""),
                    _ => None,
                };
                let (field, mine, said) = entry.unwrap_or((field, mine, said));
                return Err(NetError::HelloMismatch {
                    peer,
                    field: one_line(field, SHOWN_NAME).into(),
                    mine: one_line(mine, SHOWN),
                    theirs: one_line(said, SHOWN),
                });
            }
        }
        Ok(())
    }
}

/// Name and both values of the first entry of two contexts that differs, among those whose names begin with `prefix`; `None` if a context does
/// not consist of entries.
fn differing_entry<'a>(
    mine: &'a str,
    theirs: &'a str,
    prefix: &str,
) -> Option<(&'a str, &'a str, &'a str)> {
    let entries = |context: &'a str| -> Option<Vec<(&'a str, &'a str)>> {
        context.lines().map(|line| line.split_once('=')).collect()
    };
    let value = |entries: &[(&'a str, &'a str)], name: &str| {
        let found = entries.iter().find(|(other, _)| *other == name);
        found.map_or(LACKING, |(_, value)| *value)
    };
    let (mine, theirs) = (entries(mine)?, entries(theirs)?);
    let mut names = mine.iter().chain(&theirs).map(|(name, _)| *name);
    names.find_map(|name| {
        let (ours, others) = (value(&mine, name), value(&theirs, name));
        (name.starts_with(prefix) && ours != others).then_some((name, ours, others))
    })
}

impl Greeting {
    /// Reads the body of a hello frame.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, HelloError> {
        let mut rest = bytes;
        if take::<9>(&mut rest)? != *MAGIC {
            return Err(HelloError::Malformed("this is no KeyQuorum party"));
        }
        let version = u32::from_le_bytes(take(&mut rest)?);
        if version != WIRE_VERSION {
            return Err(HelloError::WireVersion(version));
        }
        let purpose = match take::<1>(&mut rest)? {
            [0] => Purpose::Session,
            [1] => Purpose::Probe,
            _ => return Err(HelloError::Malformed("its purpose is unknown")),
        };
        let clock = Duration::from_micros(u64::from_le_bytes(take(&mut rest)?));
        let to = u32::from_le_bytes(take(&mut rest)?);
        let party = u32::from_le_bytes(take(&mut rest)?);
        let parties = u32::from_le_bytes(take(&mut rest)?);
        let committee = take(&mut rest)?;
        let version = take_text(&mut rest)?;
        let context = take_text(&mut rest)?;
        let protocol = take_text(&mut rest)?;
        let domain = take_text(&mut rest)?;
        if !rest.is_empty() {
            return Err(HelloError::Malformed("it is too long"));
        }
        Ok(Self {
            hello: Hello {
                version,
                committee,
                context,
                protocol,
                domain,
                party,
                parties,
            },
            purpose,
            clock,
            to,
        })
    }
}

/// The hello in the first frame of `peer`.
pub(crate) fn read_greeting(peer: usize, event: Event) -> Result<Greeting, NetError> {
    match event {
        Event::Hello(bytes) => Greeting::decode(&bytes).map_err(|error| error.of_peer(peer)),
        Event::Abort(reason) => Err(NetError::PeerAborted {
            peer,
            reason: one_line(&reason, MAX_REASON),
        }),
        Event::Message(_) | Event::Close => Err(NetError::MalformedFrame {
            peer,
            detail: "no hello".to_owned(),
        }),
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], HelloError> {
    let (head, tail) = rest
        .split_first_chunk::<N>()
        .ok_or(HelloError::Malformed("it is cut short"))?;
    *rest = tail;
    Ok(*head)
}

fn take_text(rest: &mut &[u8]) -> Result<String, HelloError> {
    let len = widen(u32::from_le_bytes(take(rest)?));
    let (head, tail) = rest
        .split_at_checked(len)
        .ok_or(HelloError::Malformed("it is cut short"))?;
    *rest = tail;
    String::from_utf8(head.to_vec()).map_err(|_| HelloError::Malformed("a text is not UTF-8"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hello() -> Hello {
        Hello {
            version: "0.1.0".into(),
            committee: [7; 32],
            context: "keygen 8192".into(),
            protocol: "rep-field".into(),
            domain: "F_17".into(),
            party: 1,
            parties: 3,
        }
    }

    #[test]
    fn a_hello_survives_the_wire() {
        let greeting = Greeting::decode(&hello().encode(Purpose::Probe, 0).unwrap()).unwrap();
        assert_eq!(greeting.hello, hello());
        assert_eq!(greeting.purpose, Purpose::Probe);
        assert!(wall_clock().abs_diff(greeting.clock) < Duration::from_secs(5));
    }

    #[test]
    fn another_wire_version_is_distinguished_from_garbage() {
        let mut bytes = hello().encode(Purpose::Session, 0).unwrap();
        bytes[9] = 2;
        assert_eq!(Greeting::decode(&bytes), Err(HelloError::WireVersion(2)));
        bytes[0] = b'K';
        assert!(matches!(
            Greeting::decode(&bytes),
            Err(HelloError::Malformed(_))
        ));
    }

    fn mismatch(mine: &Hello, theirs: &Hello) -> String {
        let bytes = theirs.encode(Purpose::Session, 0).unwrap();
        let greeting = Greeting::decode(&bytes).unwrap();
        mine.compare(1, &greeting).unwrap_err().to_string()
    }

    #[test]
    fn the_entry_that_differs_is_named() {
        let mine = Hello {
            context: "kind=keygen\nkey=a\nrelin=true\ncommittee.name=c".into(),
            party: 0,
            ..hello()
        };
        let said = |context: &str| {
            let theirs = Hello {
                context: context.into(),
                ..hello()
            };
            mismatch(&mine, &theirs)
        };
        let relin = said("kind=keygen\nkey=a\nrelin=false\ncommittee.name=c");
        assert!(
            relin.starts_with(r#"party 1 has relin "false" where we have "true""#),
            "{relin}"
        );
        let lacking = said("kind=keygen\nkey=a\nrelin=true\ncommittee.name=c\nlink=wan");
        assert!(
            lacking.starts_with(r#"party 1 has link "wan" where we have "nothing""#),
            "{lacking}"
        );
        let whole = said("decrypt");
        assert!(whole.starts_with("party 1 has context"), "{whole}");
        let theirs = Hello {
            committee: [8; 32],
            context: "kind=decrypt\ncommittee.name=d".into(),
            ..hello()
        };
        let committee = mismatch(&mine, &theirs);
        assert!(
            committee.starts_with(r#"party 1 has committee.name "d" where we have "c""#),
            "{committee}"
        );
    }

    #[test]
    fn every_cut_is_refused() {
        let bytes = hello().encode(Purpose::Session, 0).unwrap();
        for len in 0..bytes.len() {
            assert!(Greeting::decode(bytes.get(..len).unwrap()).is_err());
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), prefix in 0usize..120) {
            let mut mixed = hello().encode(Purpose::Session, 0).unwrap();
            mixed.truncate(prefix);
            mixed.extend(bytes);
            let _ = Greeting::decode(&mixed);
        }
    }
}
