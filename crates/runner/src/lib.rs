//! The loop: does the work that a session wants, and reports what came of it as the next command.
//!
//! ```text
//!            ┌──────────── engine: decides what is wanted next ◄───────────┐
//!            ▼                                                             │ command
//!   Wanted::Hook ─► hooks + process ─► FinishEffect                        │
//!   Wanted::Turn ─► prompt ─► agents + process ─► FinishTurn, FailTurn ────┘
//! ```
//!
//! Invariants:
//! - The loop remembers nothing between two pieces of work: what comes next is read from the store. So a crash at any
//!   moment is a loop that is started again.
//! - Nothing is run before the log says that it is about to be, and no lock is held while it runs.
//!
//! Not here: any decision (`engine::Session::step`), printing, the environment.

mod error;
mod hook;
mod outside;
mod turn;

use std::collections::BTreeMap;
use std::path::PathBuf;

use windlass_agents::CommandAgent;
use windlass_engine::{
    Authority, Command, DebtId, Ending, Origin, OwnerName, Record, Rules, Seq, Session, SessionName, View, Wanted,
};
use windlass_hooks::Hook;
use windlass_process::{Control, Environment, Finished, Launcher, NotStarted, Roster, Spec, Supervisor};
use windlass_store::{Filter, Sqlite, Store};

pub use error::RunError;
pub use outside::{Outside, Told};

/// What a loop works with.
pub struct Settings {
    pub agent: CommandAgent,
    /// The command hooks, by name.
    pub hooks: BTreeMap<String, Hook>,
    /// What each event makes owed, with this runner as the owner.
    pub rules: Rules,
    /// Where agents and hooks work.
    pub directory: PathBuf,
    /// Where output goes that is too long for memory.
    pub records: PathBuf,
    /// The environment that agents and hooks get; what is ours is added.
    pub environment: Environment,
    /// How the supervisor of agents and hooks is started.
    pub launcher: Launcher,
}

/// The loop of one session.
pub struct Runner<'a> {
    store: Sqlite,
    settings: Settings,
    owner: OwnerName,
    roster: &'a Roster,
    control: Control,
    outside: Outside<'a>,
    /// Started when it is first needed.
    supervisor: Option<Supervisor>,
}

/// Whether a program is started and left to itself after somebody asked for the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resolve {
    Cancellable,
    /// Only a second word ends it.
    Resolute,
}

impl<'a> Runner<'a> {
    pub fn new(
        store: Sqlite,
        settings: Settings,
        roster: &'a Roster,
        control: Control,
        outside: Outside<'a>,
    ) -> Result<Self, RunError> {
        let owner = roster.name().parse().map_err(RunError::Owner)?;
        Ok(Self { store, settings, owner, roster, control, outside, supervisor: None })
    }

    /// Carries a command out, and tells what came of it.
    pub fn give(&mut self, command: &Command) -> Result<Vec<Record>, RunError> {
        let origin = Origin {
            by: self.owner.to_string(),
            at: (self.outside.now)(),
            authority: Authority::Person,
            run: None,
            via: None,
        };
        let nonce = (self.outside.random)().map_err(RunError::Random)?;
        let records = self.store.execute(&self.settings.rules, &origin, command, nonce)?;
        records.iter().for_each(|record| (self.outside.tell)(Told::Event(record)));
        Ok(records)
    }

    /// Turns until the session is over.
    pub fn run(&mut self, name: &SessionName) -> Result<Ending, RunError> {
        loop {
            let session = self.stop_if_cancelled(self.session(name)?)?;
            match session.wanted() {
                Wanted::Hook(debt) => self.hook(&session, debt)?,
                Wanted::Turn(debt) => self.turn(&session, debt)?,
                Wanted::Nothing => return session.ended().ok_or(RunError::Stuck(name.clone())),
            }
        }
    }

    /// Tells the session that somebody has asked for the end, once.
    fn stop_if_cancelled(&mut self, session: Session) -> Result<Session, RunError> {
        // How it ends is decided before the last delivery.
        let decided = session.stopping.is_some()
            || session.ended().is_some()
            || session.turn().is_some_and(|turn| turn.purpose.is_delivery());
        if decided || !self.control.is_cancelled() {
            return Ok(session);
        }
        let name = session.name.clone();
        self.give(&Command::StopSession { name: name.clone(), ending: Ending::Cancelled, reason: None })?;
        self.session(&name)
    }

    fn session(&self, name: &SessionName) -> Result<Session, RunError> {
        let session = self.store.snapshot()?.session(name)?;
        session.ok_or_else(|| RunError::Stuck(name.clone()))
    }

    /// Takes over what a dead owner left. Answers whether it was ours already.
    fn is_ours(&mut self, session: &Session, debt: DebtId) -> Result<bool, RunError> {
        let owed = self.store.snapshot()?.debt(debt)?.ok_or_else(|| RunError::Stuck(session.name.clone()))?;
        if owed.owner == self.owner {
            return Ok(true);
        }
        self.give(&Command::RecoverEffect { debt, dead: owed.owner, owner: self.owner.clone() })?;
        Ok(false)
    }

    /// The file that has all of what a run wrote, if memory could not hold it: relative to the records of all sessions.
    fn record(&self, finished: &Finished) -> Option<String> {
        let spilled = finished.stdout.spilled.as_ref().or(finished.stderr.spilled.as_ref())?;
        let shown = spilled.path.strip_prefix(self.settings.records.parent()?).ok()?;
        Some(shown.to_string_lossy().into_owned())
    }

    fn event(&self, at: Seq) -> Result<Record, RunError> {
        let found = self.store.read(&Filter::default(), Seq(at.0.saturating_sub(1)), 1)?;
        found.into_iter().find(|record| record.seq == at).ok_or(RunError::MissingEvent(at))
    }

    /// Runs a program to its end, under the supervisor: nothing of it survives us.
    fn start(&mut self, spec: &Spec, resolve: Resolve) -> Result<Result<Finished, NotStarted>, RunError> {
        let control = match resolve {
            Resolve::Cancellable => self.control.clone(),
            Resolve::Resolute => self.control.resolute(),
        };
        let tell = &mut self.outside.tell;
        let mut observe = |stream, bytes: &[u8]| tell(Told::Output(stream, bytes));
        let supervisor = match &mut self.supervisor {
            Some(supervisor) => supervisor,
            none => none.insert(Supervisor::start(&self.settings.launcher).map_err(RunError::Supervisor)?),
        };
        Ok(supervisor.run(spec, self.roster, &control, &mut observe))
    }
}
