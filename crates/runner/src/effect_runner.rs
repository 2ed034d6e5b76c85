//! Doing what is owed: the hooks of events, whoever appended them.
//!
//! ```text
//! command ─► commit ─► effects of ours ─► begin ─► run, again if it fails and may ─► finish ─► further effects of ours …
//! ```
//!
//! Invariants:
//! - Nothing is run before the log says that it is about to be, and no lock is held while it runs.
//! - Only what is ours is run. What the dead have left is ours once the log says so.

use std::cell::RefCell;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_bridge::AgentHookRequest;
use windlass_engine::validation::ConfiguredRules;
use windlass_engine::workflow::Workflow;
use windlass_engine::{
    Authority, Command, EffectId, EffectKind, Event, HookOutcome, Origin, OwnerName, PendingEffect, Record, Rules, Seq,
    Task, View,
};
use windlass_expr::Template;
use windlass_hooks::{Mask, RunnableHook, sifted};
use windlass_process::{Control, Environment, Finished, Launcher, NotStarted, Roster, Spec, Stream, Supervisor, run};
use windlass_store::{Sqlite, Store};
use windlass_tools::validation::Permission;
use windlass_vcs::git::{KnownFacts, puts_work_away};

use crate::caches::GateCheckout;
use crate::delivery::Delivery;
use crate::protected::Protected;
use crate::{RunError, RunnerEnv, RunnerEvent};

/// What git gets at least where the time of the session is up, to put work away and to look.
const MIN_TIME_FOR_WORK: Duration = Duration::from_secs(60);
const MIN_TIME_FOR_LOOKS: Duration = Duration::from_secs(5);

/// Finds a hook by its name. Of many only those are built that are asked for.
pub type HookFinder = Box<dyn Fn(&str) -> Option<RunnableHook>>;

/// Finds a workflow by its id: the workflow, or why it cannot be used; nothing where there is none of that id.
pub type WorkflowFinder = Box<dyn Fn(&str) -> Result<Option<Arc<Workflow>>, String>>;

/// What hooks are run with.
pub struct RunnerSettings {
    pub hooks: HookFinder,
    pub workflows: WorkflowFinder,
    /// What each event makes owed, with this process as the owner.
    pub rules: Rules,
    /// Whose hooks they are.
    pub project: PathBuf,
    /// Where hooks work.
    pub directory: PathBuf,
    /// Where payloads go, and output that is too long for memory.
    pub records: PathBuf,
    /// The environment that programs get; what is ours is added.
    pub environment: Environment,
    /// How the prompt to work is written, if not as usual.
    pub prompt: Option<Template>,
    /// What nobody may see.
    pub mask: Mask,
    /// What an agent may have run for its rules and stop hooks.
    pub permission: Permission,
    /// The validation rules that the gate of a session looks at.
    pub validation: ConfiguredRules,
    /// What may not change under a session.
    pub protected: Protected,
    /// Where work is done, and where it goes.
    pub delivery: Delivery,
    /// How the supervisor of programs is started; without one they are our own children.
    pub launcher: Option<Launcher>,
}

/// The files that work has changed, or why that cannot be known.
pub(crate) type ChangedFiles = Result<Vec<String>, String>;

/// Whoever does what is owed.
pub struct EffectRunner<'a> {
    pub(crate) store: &'a mut Sqlite,
    pub(crate) settings: RunnerSettings,
    pub(crate) owner: OwnerName,
    pub(crate) roster: &'a Roster,
    pub(crate) control: Control,
    pub(crate) outside: RunnerEnv<'a>,
    /// What an agent's own hook system says, while its hooks run.
    pub(crate) request: Option<Arc<AgentHookRequest>>,
    /// Held from the look at the newest base to the merge.
    pub(crate) merging: Option<File>,
    /// What hooks judge while work is on its way, once one of them has needed it.
    pub(crate) gate_checkout: Option<GateCheckout>,
    /// The files that work had changed when the hooks of an event first asked.
    pub(crate) changed: Option<(Seq, ChangedFiles)>,
    /// Started when it is first needed.
    pub(crate) supervisor: RefCell<Option<Supervisor>>,
    /// When the time of the session is up.
    pub(crate) deadline: Option<Instant>,
    /// What git has said about the repository.
    pub(crate) known: KnownFacts,
}

impl<'a> EffectRunner<'a> {
    pub fn new(
        store: &'a mut Sqlite,
        settings: RunnerSettings,
        roster: &'a Roster,
        control: Control,
        outside: RunnerEnv<'a>,
    ) -> Result<Self, RunError> {
        let owner = roster.name().parse().map_err(RunError::Owner)?;
        Ok(Self {
            store,
            settings,
            owner,
            roster,
            control,
            outside,
            request: None,
            merging: None,
            gate_checkout: None,
            changed: None,
            supervisor: RefCell::default(),
            deadline: None,
            known: KnownFacts::default(),
        })
    }

    /// The same, with a supervisor that somebody has left.
    pub fn under(self, supervisor: Option<Supervisor>) -> Self {
        Self { supervisor: RefCell::new(supervisor), ..self }
    }

    /// Carries out a command of our own, and tells what came of it.
    pub fn commit(&mut self, command: &Command) -> Result<Vec<Record>, RunError> {
        let (by, at) = (self.owner.to_string(), (self.outside.now)());
        let records =
            self.commit_as(&Origin { by, at, authority: Authority::Person, run: None, via: None }, command)?;
        self.tell(&records);
        Ok(records)
    }

    pub(crate) fn tell(&mut self, records: &[Record]) {
        for record in records {
            (self.outside.tell)(RunnerEvent::Event(record));
            if let Some(task) = self.taken_up(record) {
                (self.outside.tell)(RunnerEvent::TakesUp(&task));
            }
        }
    }

    /// The task that a session takes up with an event. Nobody but whoever watches needs it, so a store that cannot tell is
    /// no reason to stop.
    fn taken_up(&self, record: &Record) -> Option<Task> {
        match (&record.envelope.event, record.envelope.node.task()) {
            (Event::TaskClaimed(claimed), Some(id)) if claimed.session.is_some() => {
                self.store.snapshot().ok()?.task(id).ok()?
            }
            _ => None,
        }
    }

    /// Lets some time pass, and tells whoever watches. Answers whether it has passed.
    pub(crate) fn wait(&mut self, time: Duration) -> bool {
        if !time.is_zero() {
            (self.outside.tell)(RunnerEvent::Waiting(time));
        }
        self.control.wait(time)
    }

    /// Carries out somebody's command. Whoever gave it learns from the answer what came of it.
    pub fn commit_as(&mut self, origin: &Origin, command: &Command) -> Result<Vec<Record>, RunError> {
        let nonce = (self.outside.random)().map_err(RunError::Random)?;
        Ok(self.store.execute(&self.settings.rules, origin, &self.settings.mask.command(command), nonce)?)
    }

    /// Runs every hook that is ours, and what they lead to. Somebody who asks for the end gets it: what has not begun is
    /// left for whoever settles it later.
    pub fn run_pending(&mut self) -> Result<(), RunError> {
        while let Some(effect) = self.next(|dispatch, effect| effect.owner == dispatch.owner)? {
            if self.control.is_cancelled() {
                return Err(RunError::Killed);
            }
            self.settle_one(&effect)?;
        }
        Ok(())
    }

    /// Takes over hooks that dead owners have left. Answers how many there were.
    pub fn adopt_orphans(&mut self, left: impl Fn(&PendingEffect) -> bool) -> Result<usize, RunError> {
        let mut taken = 0;
        while let Some(effect) = self.next(|_, effect| left(effect))? {
            let (dead, owner) = (effect.owner.clone(), self.owner.clone());
            self.commit(&Command::RecoverEffect { effect: effect.id, dead, owner })?;
            taken += 1;
            let begun = self.store.snapshot()?.effect(effect.id)?;
            if let Some(effect) = begun {
                self.run_and_report(&effect)?;
            }
            self.run_pending()?;
        }
        Ok(taken)
    }

    /// The first hook that is owed and meant.
    pub(crate) fn next(
        &self,
        meant: impl Fn(&Self, &PendingEffect) -> bool,
    ) -> Result<Option<PendingEffect>, RunError> {
        let snapshot = self.store.snapshot()?;
        let mut after: Option<EffectId> = None;
        while let Some(effect) = snapshot.next_effect(after)? {
            after = Some(effect.id);
            if matches!(effect.kind, EffectKind::Hook(_)) && meant(self, &effect) {
                return Ok(Some(effect));
            }
        }
        Ok(None)
    }

    fn settle_one(&mut self, effect: &PendingEffect) -> Result<(), RunError> {
        if effect.attempts == 0 {
            self.commit(&Command::BeginEffect { effect: effect.id, owner: self.owner.clone() })?;
        }
        self.run_and_report(effect)
    }

    fn run_and_report(&mut self, effect: &PendingEffect) -> Result<(), RunError> {
        let report = self.run_hook(effect)?.report;
        let killed = report.outcome == HookOutcome::Cancelled;
        self.commit(&Command::FinishEffect { effect: effect.id, owner: self.owner.clone(), report: report.into() })?;
        if killed { Err(RunError::Killed) } else { Ok(()) }
    }

    /// The file that has all of what a run wrote, if memory could not hold it: relative to the records of all sessions.
    pub(crate) fn record(&self, finished: &Finished) -> Option<String> {
        let spilled = finished.stdout.spilled.as_ref().or(finished.stderr.spilled.as_ref())?;
        self.record_name(&spilled.path)
    }

    /// What a run has written, without secrets, and with what tells from its files. In these there is none either from now on.
    pub(crate) fn read(&self, ran: Finished) -> Finished {
        // Before anything is cut out of it: half a secret is one too.
        let ran = sifted(ran, &self.settings.mask);
        self.settings.mask.spilled(&ran);
        ran
    }

    /// How a record is called in the log.
    pub(crate) fn record_name(&self, path: &Path) -> Option<String> {
        let shown = path.strip_prefix(self.settings.records.parent()?).ok()?;
        Some(shown.to_string_lossy().into_owned())
    }

    pub(crate) fn event(&self, at: Seq) -> Result<Record, RunError> {
        self.store.event(at)?.ok_or(RunError::MissingEvent(at))
    }

    /// Runs a short program of our own, whose output is its answer. It gets what is left of the session's time.
    pub(crate) fn look_with(&self, spec: &Spec) -> Result<Finished, NotStarted> {
        let run = |spec: &Spec| self.run_supervised(spec);
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        match left.map(|left| left.max(min_time(spec))) {
            Some(left) if spec.timeout.is_none_or(|timeout| timeout > left) => {
                run(&Spec { timeout: Some(left), ..spec.clone() })
            }
            _ => run(spec),
        }
    }

    /// Runs a program under the supervisor where there is how to start one, so that nothing of it survives us.
    fn run_supervised(&self, spec: &Spec) -> Result<Finished, NotStarted> {
        let mut supervisor = match (self.supervisor.take(), &self.settings.launcher) {
            (None, Some(launcher)) => Supervisor::start(launcher).ok(),
            (supervisor, _) => supervisor,
        };
        let ran = run_under(&mut supervisor, spec, self.roster, &self.control, &mut |_, _: &[u8]| {});
        self.supervisor.replace(supervisor);
        ran
    }

    /// Runs a program to its end. Under the supervisor nothing of it survives us.
    pub(crate) fn start(&mut self, spec: &Spec) -> Result<Result<Finished, NotStarted>, RunError> {
        // Whoever watches sees no secret either, however the output is cut into pieces.
        let mask = self.settings.mask.clone();
        let (mut out, mut err) = (mask.shown(), mask.shown());
        let mut supervisor = self.take_supervisor()?;
        let mut observe = |stream, bytes: &[u8]| {
            if self.outside.shows_output {
                let masked = if stream == Stream::Stdout { &mut out } else { &mut err };
                (self.outside.tell)(RunnerEvent::Output(stream, &masked.push(bytes)));
            }
        };
        let ran = run_under(&mut supervisor, spec, self.roster, &self.control, &mut observe);
        self.supervisor.replace(supervisor);
        self.known.forget_changeable();
        for (stream, rest) in [(Stream::Stdout, out.finish()), (Stream::Stderr, err.finish())] {
            if !rest.is_empty() {
                (self.outside.tell)(RunnerEvent::Output(stream, &rest));
            }
        }
        Ok(ran)
    }

    /// Takes the supervisor for a program that may change what git says; it is to be put back. There is none where nothing
    /// says how to start one.
    pub(crate) fn take_supervisor(&mut self) -> Result<Option<Supervisor>, RunError> {
        self.known.forget_changeable();
        match (self.supervisor.take(), &self.settings.launcher) {
            (None, Some(launcher)) => Supervisor::start(launcher).map(Some).map_err(RunError::Supervisor),
            (supervisor, _) => Ok(supervisor),
        }
    }
}

/// Runs a program under a supervisor, or without one as our own child.
pub(crate) fn run_under(
    supervisor: &mut Option<Supervisor>,
    spec: &Spec,
    roster: &Roster,
    control: &Control,
    observe: &mut dyn FnMut(Stream, &[u8]),
) -> Result<Finished, NotStarted> {
    match supervisor {
        None => run(spec, roster, control, observe),
        Some(supervisor) => supervisor.run(spec, roster, control, observe),
    }
}

/// What a call of git gets at least.
fn min_time(spec: &Spec) -> Duration {
    if puts_work_away(spec) { MIN_TIME_FOR_WORK } else { MIN_TIME_FOR_LOOKS }
}
