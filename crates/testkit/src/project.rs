//! A project in memory: takes commands, returns events, and refusals as values.

use windlass_engine::{Command, Entry, Memory, Origin, Record, Refusal, Rules, Timestamp, decide};

use crate::history::Step;

/// The start of every test: 2026-01-17T10:00:00Z.
const MORNING: i64 = 1_768_644_000_000;

/// The log and the state that is folded from it.
#[derive(Debug, Clone)]
pub struct Project {
    rules: Rules,
    memory: Memory,
    log: Vec<Record>,
    now: Timestamp,
}

impl Project {
    pub fn new(rules: Rules) -> Self {
        Self { rules, memory: Memory::default(), log: Vec::new(), now: Timestamp::from_millis(MORNING) }
    }

    /// Decides a command and applies its events. A refused command changes nothing.
    pub fn give(&mut self, origin: &Origin, command: &Command) -> Result<Vec<Entry>, Refusal> {
        let (entries, _) = decide(&self.memory, &self.rules, origin, command)?.into_parts();
        for entry in &entries {
            self.memory.apply(&entry.record).map_err(Refusal::Apply)?;
        }
        self.log.extend(entries.iter().map(|entry| entry.record.clone()));
        Ok(entries)
    }

    /// Advances the time and resolves the next step of a history, without running it.
    pub fn next(&mut self, step: &Step) -> (Origin, Command) {
        self.now = self.now.plus_millis(step.after);
        step.resolve(&self.memory, self.now).expect("memory can always be read")
    }

    /// Runs the next step of a history.
    pub fn step(&mut self, step: &Step) -> Result<Vec<Entry>, Refusal> {
        let (origin, command) = self.next(step);
        self.give(&origin, &command)
    }

    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    pub fn log(&self) -> &[Record] {
        &self.log
    }

    pub fn now(&self) -> Timestamp {
        self.now
    }
}
