//! The effect runner: runs the hooks of events, for every command.
//!
//! ```text
//! command ─► commit ─► effects of ours ─► begin ─► run, again if it fails and may ─► finish ─► further effects of ours …
//! ```
//!
//! Invariants:
//! - Nothing runs before the log says that it is about to, and no lock is held while it runs.
//! - Only effects of this process run. It takes over effects of dead owners in the log first.

use std::cell::RefCell;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_bridge::AgentHookRequest;
use windlass_engine::validation::ConfiguredRules;
use windlass_engine::workflow::Workflow;
use windlass_engine::{
    Authority, Command, CommandOrigin, EffectId, EffectKind, EngineRules, Event, EventRecord, HookOutcome, OwnerName,
    PendingEffect, Seq, StateView, Task,
};
use windlass_expr::TextTemplate;
use windlass_hooks::{RunnableHook, SecretMask, excerpt_run};
use windlass_process::{
    Environment, OutputStream, OwnerLock, ProgramOutcome, ProgramSpec, ProgramStartError, ProgramSupervisor,
    RunControl, SupervisorLauncher, run_program,
};
use windlass_store::{SqliteStore, Store};
use windlass_tools::validation::ProgramPermission;
use windlass_vcs::git::{KnownFacts, modifies_repository};

use crate::caches::GateCheckout;
use crate::delivery_settings::DeliverySettings;
use crate::protected::ProtectedFiles;
use crate::{RunError, RunnerEnv, RunnerEvent};

/// Minimum time of a git call when the time of the session is up, to put work away and to read.
const MIN_GIT_WRITE_TIME: Duration = Duration::from_secs(60);
const MIN_GIT_READ_TIME: Duration = Duration::from_secs(5);

/// Lookup of a hook by its name. It builds only the hooks that are looked up.
pub type HookFinder = Box<dyn Fn(&str) -> Option<RunnableHook>>;

/// Lookup of a workflow by its ID: the workflow, why it cannot be used, or nothing if no workflow has that ID.
pub type WorkflowFinder = Box<dyn Fn(&str) -> Result<Option<Arc<Workflow>>, String>>;

/// Maker of links with which a person answers the question about a task or a session, while the web page is served.
pub type AnswerLinkMaker = Box<dyn Fn(&str) -> Option<String>>;

/// Settings of an effect runner.
pub struct RunnerSettings {
    pub hooks: HookFinder,
    pub workflows: WorkflowFinder,
    /// Rules that decide the effects of each event, with this process as the owner.
    pub rules: EngineRules,
    pub answer_links: AnswerLinkMaker,
    /// Project that the hooks belong to.
    pub project: PathBuf,
    /// Directory that hooks run in.
    pub directory: PathBuf,
    /// Directory for payloads, and for output that is too long for memory.
    pub records: PathBuf,
    /// Environment of programs, before Windlass adds its variables.
    pub environment: Environment,
    /// Template of the work prompt, if not the usual one.
    pub prompt: Option<TextTemplate>,
    /// Mask of secrets.
    pub mask: SecretMask,
    /// Permission for the programs of an agent's rules and stop hooks.
    pub permission: ProgramPermission,
    /// Validation rules that the gate of a session checks.
    pub validation: ConfiguredRules,
    /// Files that may not change during a session.
    pub protected: ProtectedFiles,
    /// Place of work and its delivery.
    pub delivery: DeliverySettings,
    /// Launcher of the supervisor of programs. Without one, programs are our own children.
    pub launcher: Option<SupervisorLauncher>,
}

/// Files that the work has changed, or why they cannot be known.
pub(crate) type ChangedFiles = Result<Vec<String>, String>;

/// Runner of the effects that this process owns.
pub struct EffectRunner<'a> {
    pub(crate) store: &'a mut SqliteStore,
    pub(crate) settings: RunnerSettings,
    pub(crate) owner: OwnerName,
    pub(crate) owner_lock: &'a OwnerLock,
    pub(crate) control: RunControl,
    pub(crate) env: RunnerEnv<'a>,
    /// Request of an agent's own hook system, while its hooks run.
    pub(crate) request: Option<Arc<AgentHookRequest>>,
    /// Merge lock, held from the read of the newest base to the merge.
    pub(crate) merging: Option<File>,
    /// Checkout that hooks judge during a delivery, once a hook has needed it.
    pub(crate) gate_checkout: Option<GateCheckout>,
    /// Files that the work had changed when the hooks of an event first asked.
    pub(crate) changed: Option<(Seq, ChangedFiles)>,
    /// The supervisor, started on first use.
    pub(crate) supervisor: RefCell<Option<ProgramSupervisor>>,
    /// Deadline of the session.
    pub(crate) deadline: Option<Instant>,
    /// Facts about the repository that git has told.
    pub(crate) known: KnownFacts,
}

impl<'a> EffectRunner<'a> {
    pub fn new(
        store: &'a mut SqliteStore,
        settings: RunnerSettings,
        owner_lock: &'a OwnerLock,
        control: RunControl,
        outside: RunnerEnv<'a>,
    ) -> Result<Self, RunError> {
        let owner = owner_lock.name().parse().map_err(RunError::Owner)?;
        Ok(Self {
            store,
            settings,
            owner,
            owner_lock,
            control,
            env: outside,
            request: None,
            merging: None,
            gate_checkout: None,
            changed: None,
            supervisor: RefCell::default(),
            deadline: None,
            known: KnownFacts::default(),
        })
    }

    /// Returns the runner with a supervisor that was started before.
    pub fn with_supervisor(self, supervisor: Option<ProgramSupervisor>) -> Self {
        Self { supervisor: RefCell::new(supervisor), ..self }
    }

    /// Commits a command of our own, and reports its records to the observer.
    pub fn commit_command(&mut self, command: &Command) -> Result<Vec<EventRecord>, RunError> {
        let (by, at) = (self.owner.to_string(), (self.env.now)());
        let records = self.commit_command_as(
            &CommandOrigin { by, at, authority: Authority::Person, run: None, via: None },
            command,
        )?;
        self.report_records(&records);
        Ok(records)
    }

    pub(crate) fn report_records(&mut self, records: &[EventRecord]) {
        for record in records {
            (self.env.observe)(RunnerEvent::Event(record));
            if let Some(task) = self.claimed_task(record) {
                (self.env.observe)(RunnerEvent::TaskClaimed(&task));
            }
        }
    }

    /// Returns the task that a session claims with an event. Only the observer needs it, so an unreadable store is no reason to
    /// stop.
    fn claimed_task(&self, record: &EventRecord) -> Option<Task> {
        match (&record.envelope.event, record.envelope.node.task_id()) {
            (Event::TaskClaimed(claimed), Some(id)) if claimed.session.is_some() => {
                self.store.begin_snapshot().ok()?.find_task(id).ok()?
            }
            _ => None,
        }
    }

    /// Waits for some time, and reports that to the observer. Returns whether the time has passed without a cancellation.
    pub(crate) fn wait_cancellable(&mut self, time: Duration) -> bool {
        if !time.is_zero() {
            (self.env.observe)(RunnerEvent::Waiting(time));
        }
        self.control.wait_unless_cancelled(time)
    }

    /// Commits a command of another origin. Its author learns the result from the return value, not from the observer.
    pub fn commit_command_as(
        &mut self,
        origin: &CommandOrigin,
        command: &Command,
    ) -> Result<Vec<EventRecord>, RunError> {
        let nonce = (self.env.random)().map_err(RunError::Random)?;
        Ok(self.store.execute_command(
            &self.settings.rules,
            origin,
            &self.settings.mask.mask_command(command),
            nonce,
        )?)
    }

    /// Runs every hook that this process owns, and the hooks that follow. After a cancellation, effects that have not begun stay
    /// for a later recovery.
    pub fn run_pending_effects(&mut self) -> Result<(), RunError> {
        while let Some(effect) = self.next_pending_hook(|dispatch, effect| effect.owner == dispatch.owner)? {
            if self.control.is_cancelled() {
                return Err(RunError::Killed);
            }
            self.begin_and_run(&effect)?;
        }
        Ok(())
    }

    /// Takes over hooks that dead owners have left. Returns their number.
    pub fn adopt_orphaned_hooks(&mut self, left: impl Fn(&PendingEffect) -> bool) -> Result<usize, RunError> {
        let mut taken = 0;
        while let Some(effect) = self.next_pending_hook(|_, effect| left(effect))? {
            let (dead, owner) = (effect.owner.clone(), self.owner.clone());
            self.commit_command(&Command::RecoverEffect { effect: effect.id, dead, owner })?;
            taken += 1;
            let begun = self.store.begin_snapshot()?.find_effect(effect.id)?;
            if let Some(effect) = begun {
                self.run_and_report(&effect)?;
            }
            self.run_pending_effects()?;
        }
        Ok(taken)
    }

    /// Returns the first pending hook that a predicate accepts.
    pub(crate) fn next_pending_hook(
        &self,
        meant: impl Fn(&Self, &PendingEffect) -> bool,
    ) -> Result<Option<PendingEffect>, RunError> {
        let snapshot = self.store.begin_snapshot()?;
        let mut after: Option<EffectId> = None;
        while let Some(effect) = snapshot.next_pending_effect(after)? {
            after = Some(effect.id);
            if matches!(effect.kind, EffectKind::Hook(_)) && meant(self, &effect) {
                return Ok(Some(effect));
            }
        }
        Ok(None)
    }

    fn begin_and_run(&mut self, effect: &PendingEffect) -> Result<(), RunError> {
        if effect.attempts == 0 {
            self.commit_command(&Command::BeginEffect { effect: effect.id, owner: self.owner.clone() })?;
        }
        self.run_and_report(effect)
    }

    fn run_and_report(&mut self, effect: &PendingEffect) -> Result<(), RunError> {
        let report = self.run_hook(effect)?.report;
        let killed = report.outcome == HookOutcome::Cancelled;
        self.commit_command(&Command::FinishEffect {
            effect: effect.id,
            owner: self.owner.clone(),
            report: report.into(),
        })?;
        if killed { Err(RunError::Killed) } else { Ok(()) }
    }

    /// Returns the file with all output of a run, if memory could not hold it. Its path is relative to the records of all sessions.
    pub(crate) fn spilled_record(&self, finished: &ProgramOutcome) -> Option<String> {
        let spilled = finished.stdout.spilled.as_ref().or(finished.stderr.spilled.as_ref())?;
        self.record_name(&spilled.path)
    }

    /// Masks the output of a run, also in its spill files, and adds excerpts of these.
    pub(crate) fn mask_output(&self, ran: ProgramOutcome) -> ProgramOutcome {
        // Mask before the output is cut: half a secret is a secret, too.
        let ran = excerpt_run(ran, &self.settings.mask);
        self.settings.mask.mask_spill_files(&ran);
        ran
    }

    /// Returns the name of a record in the log.
    pub(crate) fn record_name(&self, path: &Path) -> Option<String> {
        let shown = path.strip_prefix(self.settings.records.parent()?).ok()?;
        Some(shown.to_string_lossy().into_owned())
    }

    pub(crate) fn load_event(&self, at: Seq) -> Result<EventRecord, RunError> {
        self.store.read_event(at)?.ok_or(RunError::MissingEvent(at))
    }

    /// Runs a short program of our own for its output. Its timeout is the rest of the session's time.
    pub(crate) fn run_query(&self, spec: &ProgramSpec) -> Result<ProgramOutcome, ProgramStartError> {
        let run = |spec: &ProgramSpec| self.run_supervised(spec);
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        match left.map(|left| left.max(min_git_time(spec))) {
            Some(left) if spec.timeout.is_none_or(|timeout| timeout > left) => {
                run(&ProgramSpec { timeout: Some(left), ..spec.clone() })
            }
            _ => run(spec),
        }
    }

    /// Runs a program under the supervisor if there is a launcher, so that nothing of it survives us.
    fn run_supervised(&self, spec: &ProgramSpec) -> Result<ProgramOutcome, ProgramStartError> {
        let mut supervisor = match (self.supervisor.take(), &self.settings.launcher) {
            (None, Some(launcher)) => ProgramSupervisor::start(launcher).ok(),
            (supervisor, _) => supervisor,
        };
        let ran = run_under(&mut supervisor, spec, self.owner_lock, &self.control, &mut |_, _: &[u8]| {});
        self.supervisor.replace(supervisor);
        ran
    }

    /// Runs a program to its end, and streams its output to the observer. Under the supervisor nothing of it survives us.
    pub(crate) fn run_program(
        &mut self,
        spec: &ProgramSpec,
    ) -> Result<Result<ProgramOutcome, ProgramStartError>, RunError> {
        // The observer sees no secret either, however the output is cut into pieces.
        let mask = self.settings.mask.clone();
        let (mut out, mut err) = (mask.open_display_stream(), mask.open_display_stream());
        let mut supervisor = self.take_supervisor()?;
        let mut observe = |stream, bytes: &[u8]| {
            if self.env.shows_output {
                let masked = if stream == OutputStream::Stdout { &mut out } else { &mut err };
                (self.env.observe)(RunnerEvent::Output(stream, &masked.push(bytes)));
            }
        };
        let ran = run_under(&mut supervisor, spec, self.owner_lock, &self.control, &mut observe);
        self.supervisor.replace(supervisor);
        self.known.forget_changeable_facts();
        for (stream, rest) in [(OutputStream::Stdout, out.finish()), (OutputStream::Stderr, err.finish())] {
            if !rest.is_empty() {
                (self.env.observe)(RunnerEvent::Output(stream, &rest));
            }
        }
        Ok(ran)
    }

    /// Takes the supervisor for a program that may change the facts of git. The caller puts it back. Without a launcher there is
    /// none.
    pub(crate) fn take_supervisor(&mut self) -> Result<Option<ProgramSupervisor>, RunError> {
        self.known.forget_changeable_facts();
        match (self.supervisor.take(), &self.settings.launcher) {
            (None, Some(launcher)) => ProgramSupervisor::start(launcher).map(Some).map_err(RunError::Supervisor),
            (supervisor, _) => Ok(supervisor),
        }
    }
}

/// Runs a program under a supervisor, or without one as our own child.
pub(crate) fn run_under(
    supervisor: &mut Option<ProgramSupervisor>,
    spec: &ProgramSpec,
    owner_lock: &OwnerLock,
    control: &RunControl,
    observe: &mut dyn FnMut(OutputStream, &[u8]),
) -> Result<ProgramOutcome, ProgramStartError> {
    match supervisor {
        None => run_program(spec, owner_lock, control, observe),
        Some(supervisor) => supervisor.run_program(spec, owner_lock, control, observe),
    }
}

/// Returns the minimum time of a git call.
fn min_git_time(spec: &ProgramSpec) -> Duration {
    if modifies_repository(spec) { MIN_GIT_WRITE_TIME } else { MIN_GIT_READ_TIME }
}
