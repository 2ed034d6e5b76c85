//! A store, and the rules for its commands: everything that a program needs.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use windlass_engine::{Authority, Command, Origin, Record, Registry, Rules, Timestamp};
use windlass_store::{Lifetime, Sqlite, Store};
use windlass_tools::Mask;

pub type Outcome<T> = Result<T, Box<dyn Error>>;

pub struct Project {
    pub store: Sqlite,
    pub rules: Rules,
    pub directory: PathBuf,
    pub mask: Mask,
}

impl Project {
    /// Opens the store in a directory, or makes one there.
    pub fn open(directory: &Path, registry: Registry) -> Outcome<Self> {
        let store = Sqlite::create(&directory.join("windlass.db"), Lifetime::Service)?;
        // No effects: this program starts no other programs, whatever a configuration may say.
        let rules = Rules { registry, ..Rules::default() };
        Ok(Self { store, rules, directory: directory.to_owned(), mask: Mask::new([("", ""); 0]) })
    }

    /// Carries out a command, and answers its events and those of the hooks. They are durable by then.
    pub fn execute(&mut self, command: &Command) -> Outcome<Vec<Record>> {
        // The engine reads no clock and draws no numbers: who asks, when, and in which attempt is said here.
        let origin = Origin { by: "ada".to_owned(), at: now()?, authority: Authority::Person, run: None, via: None };
        Ok(self.store.execute(&self.rules, &origin, command, nonce()?)?)
    }
}

#[expect(clippy::disallowed_methods, reason = "time is an input, and a program is where it comes from")]
pub fn now() -> Outcome<Timestamp> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    Ok(Timestamp::from_millis(i64::try_from(since.as_millis())?))
}

/// Returns a random number that distinguishes this commit from every other one, also of other processes.
pub fn nonce() -> Outcome<u128> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(u128::from_le_bytes(bytes))
}
