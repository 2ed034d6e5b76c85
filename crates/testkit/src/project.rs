//! A project in memory: commands go in, events come out, refusals are values.

use windlass_engine::{Command, Entry, Memory, Origin, Record, Refusal, Rules, Timestamp, decide};

use crate::history::Step;

/// When every test begins: 2026-01-17T10:00:00Z.
const MORNING: i64 = 1_768_644_000_000;

/// The log and the state that was folded from it.
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

    /// Decides one command and folds what came of it. A refused one changes nothing.
    pub fn give(&mut self, origin: &Origin, command: &Command) -> Result<Vec<Entry>, Refusal> {
        let (entries, _) = decide(&self.memory, &self.rules, origin, command)?.into_parts();
        for entry in &entries {
            self.memory.apply(&entry.record).map_err(Refusal::Apply)?;
        }
        self.log.extend(entries.iter().map(|entry| entry.record.clone()));
        Ok(entries)
    }

    /// Lets time pass and says what the next step of a history comes to, without taking it.
    pub fn next(&mut self, step: &Step) -> (Origin, Command) {
        self.now = self.now.plus_millis(step.after);
        step.resolve(&self.memory, self.now).expect("memory can always be read")
    }

    /// Takes the next step of a history.
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
