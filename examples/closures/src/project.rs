//! A store, and the rules for its commands: everything that a program needs.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use windlass_engine::{Authority, Command, CommandOrigin, EngineRules, EventRecord, HookRegistry, Timestamp};
use windlass_store::{Lifetime, SqliteStore, Store};
use windlass_tools::SecretMask;

pub type Outcome<T> = Result<T, Box<dyn Error>>;

pub struct Project {
    pub store: SqliteStore,
    pub rules: EngineRules,
    pub directory: PathBuf,
    pub mask: SecretMask,
}

impl Project {
    /// Opens the store in a directory, or makes one there.
    pub fn open(directory: &Path, registry: HookRegistry) -> Outcome<Self> {
        let store = SqliteStore::create(&directory.join("windlass.db"), Lifetime::Service)?;
        // No effects: this program starts no other programs, whatever a configuration may say.
        let rules = EngineRules { registry, ..EngineRules::default() };
        Ok(Self { store, rules, directory: directory.to_owned(), mask: SecretMask::new([("", ""); 0]) })
    }

    /// Carries out a command, and answers its events and those of the hooks. They are durable by then.
    pub fn execute(&mut self, command: &Command) -> Outcome<Vec<EventRecord>> {
        // The engine reads no clock and draws no numbers: who asks, when, and in which attempt is said here.
        let origin =
            CommandOrigin { by: "ada".to_owned(), at: now()?, authority: Authority::Person, run: None, via: None };
        Ok(self.store.execute_command(&self.rules, &origin, command, nonce()?)?)
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
