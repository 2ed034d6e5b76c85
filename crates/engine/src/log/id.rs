//! Ids. Each is its own type, so that a position is never taken for a task.

use std::fmt::{self, Display};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Text that is not an id of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {expected}")]
pub struct ParseIdError {
    text: String,
    expected: &'static str,
}

impl ParseIdError {
    fn new(text: &str, expected: &'static str) -> Self {
        let short = text.char_indices().nth(80).map_or(text, |(end, _)| &text[..end]);
        Self { text: short.to_owned(), expected }
    }
}

/// Implements serde for a type as the text that it displays and parses.
macro_rules! as_text {
    ($($name:ty),+) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct Text;

                impl serde::de::Visitor<'_> for Text {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("the text of a ", stringify!($name)))
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }

                from.deserialize_str(Text)
            }
        }
    )+};
}
pub(crate) use as_text;

/// An id of letters and a number that the log assigns: `T12`, `HOOK-12`.
macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident, $letter:literal, $expected:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($letter, "{}"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            /// Accepts the letters in upper or lower case. The number has no sign and no leading zero, is positive, and
            /// fits into the log.
            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                let digits = text.strip_prefix($letter).or_else(|| text.strip_prefix(&$letter.to_ascii_lowercase()));
                digits
                    .filter(|d| d.bytes().all(|b| b.is_ascii_digit()) && !d.starts_with('0'))
                    .and_then(|d| d.parse().ok())
                    .filter(|number| i64::try_from(*number).is_ok())
                    .map(Self)
                    .ok_or_else(|| ParseIdError::new(text, $expected))
            }
        }

        as_text!($name);
    };
}

numbered!(
    /// The id of a task: `T1`, `T2`, … in the order of creation, never reused.
    TaskId, "T", "a task id such as T12"
);
numbered!(
    /// The id of an edge. Its number is the position of the event that added the edge.
    EdgeId, "E", "an edge id such as E12"
);
numbered!(
    /// The id of a stop hook that is registered for a task. Its number is the position of the registering event.
    HookId, "HOOK-", "a hook id such as HOOK-12"
);
numbered!(
    /// The id of a series of iterations. Its number is the position of the event that started it.
    SeriesId, "IT-", "an iteration id such as IT-12"
);
numbered!(
    /// The id of a checkpoint. Its number is the position of the event that created it.
    CheckpointId, "CP-", "a checkpoint id such as CP-12"
);

/// A position in the log. The first event has a position above zero; zero means "before the first event".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    pub const START: Self = Self(0);

    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of claims of a task so far. The holder of an older epoch has lost the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The id of one attempt to append. It names the position after which the commit was made, so that a store finds the
/// commit in the tail of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CommitId {
    pub after: Seq,
    pub nonce: u128,
}

/// The id of a pending effect: the event that enqueued it, and its index among that event's effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectId {
    pub seq: Seq,
    pub index: u32,
}

impl Display for EffectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.seq, self.index)
    }
}

impl FromStr for EffectId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        text.split_once('.')
            .and_then(|(seq, index)| Some(Self { seq: Seq(seq.parse().ok()?), index: index.parse().ok()? }))
            .ok_or_else(|| ParseIdError::new(text, "a debt id such as 12.0"))
    }
}

fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// A name of letters, digits, `_` and `-`, at most 64 of them: safe in a path, a shell word and a subject.
macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $expected:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                if is_name(text) { Ok(Self(text.to_owned())) } else { Err(ParseIdError::new(text, $expected)) }
            }
        }

        as_text!($name);
    };
}

name!(
    /// The name of a session.
    SessionName, "a session name (letters, digits, _ and -, at most 64)"
);
name!(
    /// The name of a process that holds a lease or runs an effect.
    OwnerName, "an owner's name (letters, digits, _ and -, at most 64)"
);

/// An event type of the project's own: `review.passed`. The dot separates it from Windlass's own types.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FactType(String);

impl FactType {
    /// The pattern of such a type, for a schema.
    pub const PATTERN: &str = r"^[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)+$";
    const MAX_LENGTH: usize = 64;

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Display for FactType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for FactType {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let is_part = |part: &str| {
            part.starts_with(|first: char| first.is_ascii_lowercase())
                && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
        };
        let fits = text.len() <= Self::MAX_LENGTH && text.contains('.') && text.split('.').all(is_part);
        let expected = "an event type with a namespace such as review.passed (lower case, at most 64 letters)";
        if fits { Ok(Self(text.to_owned())) } else { Err(ParseIdError::new(text, expected)) }
    }
}

as_text!(FactType);

name!(
    /// The type of a task. It determines which hooks run for the task and which agents may work on it.
    TypeName, "a task type's name (letters, digits, _ and -, at most 64)"
);

/// One agent turn: `session.iteration.nonce`. The programs that the agent starts get it in `WINDLASS_RUN`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId {
    pub session: SessionName,
    pub iteration: u32,
    pub nonce: u64,
}

impl Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{:016x}", self.session, self.iteration, self.nonce)
    }
}

impl FromStr for RunId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let parse = || {
            let (session, rest) = text.split_once('.')?;
            let (iteration, nonce) = rest.split_once('.')?;
            Some(Self {
                session: session.parse().ok()?,
                iteration: iteration.parse().ok()?,
                nonce: u64::from_str_radix(nonce, 16).ok()?,
            })
        };
        parse().ok_or_else(|| ParseIdError::new(text, "a run id such as main.3.00000000000000ff"))
    }
}

/// A SHA-256 digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest before the first event.
    pub const ZERO: Self = Self([0; 32]);

    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Returns the next link of a digest chain.
    pub fn chain_with(self, next: Self) -> Self {
        Self(Sha256::new().chain_update(self.0).chain_update(next.0).finalize().into())
    }
}

impl Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Digest {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let mut bytes = [0; 32];
        let parsed = text.len() == 64
            && text.is_ascii()
            && bytes
                .iter_mut()
                .enumerate()
                .all(|(i, byte)| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).map(|parsed| *byte = parsed).is_ok());
        if parsed { Ok(Self(bytes)) } else { Err(ParseIdError::new(text, "a digest of 64 hexadecimal digits")) }
    }
}

/// The digest of a configuration, as sessions, effects and trust decisions name it.
pub type ConfigDigest = Digest;

as_text!(EffectId, RunId, Digest);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip_through_text() {
        assert_eq!("T12".parse(), Ok(TaskId(12)));
        assert_eq!("t12".parse(), Ok(TaskId(12)));
        assert_eq!("main.3.00000000000000ff".parse::<RunId>().unwrap().to_string(), "main.3.00000000000000ff");
        assert_eq!(Digest::of(b"x").to_string().parse(), Ok(Digest::of(b"x")));
        assert_eq!("7.2".parse(), Ok(EffectId { seq: Seq(7), index: 2 }));
        assert_eq!(("HOOK-7".parse(), "it-7".parse()), (Ok(HookId(7)), Ok(SeriesId(7))));
        assert_eq!(CheckpointId(7).to_string(), "CP-7");
    }

    #[test]
    fn malformed_ids_are_refused() {
        for text in
            ["", "T", "T0", "T01", "T-1", "T+1", "T1 ", "12", "X1", "T99999999999999999999", "T9223372036854775808"]
        {
            assert!(text.parse::<TaskId>().is_err(), "{text}");
        }
        for text in ["", "a b", "--flag;", "ä", "a.b", "a/b", &"x".repeat(65)] {
            assert!(text.parse::<SessionName>().is_err(), "{text}");
        }
    }
}
