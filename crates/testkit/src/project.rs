//! A project in memory: takes commands, returns events, and refusals as values.

use windlass_engine::{
    Command, CommandOrigin, CommitEntry, EngineRules, EventRecord, MemoryView, Refusal, Timestamp, decide,
};

use crate::history::HistoryStep;

/// The start of every test: 2026-01-17T10:00:00Z.
const START_MILLIS: i64 = 1_768_644_000_000;

/// The log and the state that is folded from it.
#[derive(Debug, Clone)]
pub struct MemoryProject {
    rules: EngineRules,
    memory: MemoryView,
    log: Vec<EventRecord>,
    now: Timestamp,
}

impl MemoryProject {
    pub fn new(rules: EngineRules) -> Self {
        Self { rules, memory: MemoryView::default(), log: Vec::new(), now: Timestamp::from_millis(START_MILLIS) }
    }

    /// Decides a command and applies its events. A refused command changes nothing.
    pub fn run_command(&mut self, origin: &CommandOrigin, command: &Command) -> Result<Vec<CommitEntry>, Refusal> {
        let (entries, _) = decide(&self.memory, &self.rules, origin, command)?.into_parts();
        for entry in &entries {
            self.memory.apply_event(&entry.record).map_err(Refusal::Apply)?;
        }
        self.log.extend(entries.iter().map(|entry| entry.record.clone()));
        Ok(entries)
    }

    /// Advances the time and resolves the next step of a history, without running it.
    pub fn resolve_step(&mut self, step: &HistoryStep) -> (CommandOrigin, Command) {
        self.now = self.now.add_millis(step.after);
        step.resolve(&self.memory, self.now).expect("memory can always be read")
    }

    /// Runs the next step of a history.
    pub fn run_step(&mut self, step: &HistoryStep) -> Result<Vec<CommitEntry>, Refusal> {
        let (origin, command) = self.resolve_step(step);
        self.run_command(&origin, &command)
    }

    pub fn rules(&self) -> &EngineRules {
        &self.rules
    }

    pub fn memory(&self) -> &MemoryView {
        &self.memory
    }

    pub fn log(&self) -> &[EventRecord] {
        &self.log
    }

    pub fn now(&self) -> Timestamp {
        self.now
    }
}
