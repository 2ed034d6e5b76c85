//! Turns a command into events.
//!
//! The command's own events come first, then the pure hooks of each event in turn, and the results of their actions, until no
//! event is left or a limit is reached. All of it is one commit: it happens whole or not at all.
//!
//! Invariants:
//! - A refused command is dropped whole, with all that it had decided until then.
//! - The action of a hook is checked before its first event, so a refused action leaves nothing behind in the commit.

mod bridge;
mod cascade;
mod cascade_budget;
mod edges;
mod effects;
mod evaluation;
mod hook_selection;
mod person_commands;
mod pipeline;
mod session_rights;
mod session_tasks;
mod sessions;
mod tasks;
mod turns;
mod workflow;

use std::collections::BTreeMap;

use crate::bridge::BridgeCall;
use crate::command::refusal::Refusal;
use crate::command::{Authority, Command, CommandOrigin};
use crate::effects::outbox::{EffectKind, PendingEffect};
use crate::effects::registry::HookRegistry;
use crate::log::event::{Event, EventCause, EventEnvelope, EventMetadata, EventRecord, EventSubject, payload};
use crate::log::event_type::EventType;
use crate::log::id::{Digest, EffectId, RunId, Seq, SessionName, TaskId};
use crate::session::promise::Promise;
use crate::task::transitions::TaskTransition;
use crate::task::types::TaskTypes;
use crate::task::{Lease, Task};
use crate::view::draft::Draft;
use crate::view::{DecisionScope, RowChange, StateView, ViewResult};
use bridge::CallAnswer;
use cascade_budget::{COMMAND_BUDGET, CascadeBudget};
pub use hook_selection::{
    ConfigTrust, HookPlan, HookScope, PlannedHook, ValidationScope, WORKFLOW_HOOK_PREFIX, hooks_for_call,
};

/// A project's configuration, as far as the engine needs it.
#[derive(Debug, Clone, Default)]
pub struct EngineRules {
    /// The hooks that run inside the commit.
    pub registry: HookRegistry,
    /// The hooks that run after the commit.
    pub effects: Option<HookPlan>,
    /// The types of tasks, and the agents that may work on them.
    pub types: TaskTypes,
}

/// Events that are decided but not yet in a log.
pub struct UncommittedEvents<'v> {
    draft: Draft<'v>,
    entries: Vec<CommitEntry>,
}

/// An event and the one before it in the history of the same task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitEntry {
    pub record: EventRecord,
    pub previous: Seq,
}

impl UncommittedEvents<'_> {
    pub fn entries(&self) -> &[CommitEntry] {
        &self.entries
    }

    /// Returns the scopes that the decision depends on.
    pub fn scopes_read(&self) -> ViewResult<BTreeMap<DecisionScope, u64>> {
        self.draft.read_versions()
    }

    pub fn into_parts(self) -> (Vec<CommitEntry>, Vec<RowChange>) {
        (self.entries, self.draft.into_changes())
    }
}

/// Decides a command against the present state.
pub fn decide<'v>(
    view: &'v dyn StateView,
    rules: &EngineRules,
    origin: &CommandOrigin,
    command: &Command,
) -> Result<UncommittedEvents<'v>, Refusal> {
    let via = origin.via.filter(|_| !command.is_runner_command());
    let mut deciding = DecisionContext::new(view, rules, origin, via)?;
    deciding.decide_command(command)?;
    deciding.charge_calling_hook()?;
    deciding.run_cascade()?;
    deciding.allocate_shares()?;
    Ok(UncommittedEvents { draft: deciding.draft, entries: deciding.entries })
}

/// The cause of an event: an entry of the same commit, or an event that is in the log already.
#[derive(Debug, Clone, Copy)]
enum CauseRef {
    Entry(usize),
    At(Seq),
}

/// The state of a decision in progress.
struct DecisionContext<'v, 'r> {
    draft: Draft<'v>,
    rules: &'r EngineRules,
    origin: &'r CommandOrigin,
    /// The hook that gives the command.
    via: Option<EffectId>,
    entries: Vec<CommitEntry>,
    /// How many of the entries have had their pure hooks run.
    dispatched_entries: usize,
    /// The session that continues when all of them have.
    waiting_session: Option<SessionName>,
    /// The cause of the next events.
    cause: Option<CauseRef>,
    depth: u8,
    /// The depth of the command itself: above 0 if a hook gives it.
    command_depth: u8,
    budgets: Vec<CascadeBudget>,
    /// The index of the budget that the next events use, and those of the entries.
    budget_index: usize,
    entry_budgets: Vec<usize>,
    /// The session of events that name none themselves.
    session_scope: Option<(SessionName, Option<u32>)>,
    /// The session that this commit is going to stop: hooks that would be skipped at once are not enqueued there.
    stopping_session: Option<SessionName>,
    /// The hook that has just ended and whose changes are being recorded.
    ended_hook: Option<EffectId>,
    /// The turn that the command comes from, if its session is known.
    turn: Option<RunId>,
    /// The call of an agent's hook system, while the event is emitted that enqueues its hooks.
    call: Option<&'r BridgeCall>,
    /// The agent's claim in the turn that is ending.
    claimed_promise: Option<Promise>,
    /// The configuration of the pending hooks, once it is known to be recorded.
    recorded_config: Option<Digest>,
}

impl<'v, 'r> DecisionContext<'v, 'r> {
    fn new(
        view: &'v dyn StateView,
        rules: &'r EngineRules,
        origin: &'r CommandOrigin,
        via: Option<EffectId>,
    ) -> Result<Self, Refusal> {
        let draft = Draft::new(view)?;
        let turn = match &origin.run {
            Some(run) => draft.find_session(&run.session)?.map(|_| run.clone()),
            None => None,
        };
        let mut place = turn.clone().map(|run| (run.session, Some(run.iteration)));
        let (mut line, mut cause, mut base) = (CascadeBudget::for_command(), None, 0);
        if let Some(id) = via {
            let runs = |effect: &PendingEffect| effect.attempts > 0 && matches!(effect.kind, EffectKind::Hook(_));
            let effect = draft.find_effect(id)?.filter(runs).ok_or(Refusal::UnknownEffect(id))?;
            (line, cause, base) =
                (CascadeBudget::for_command_of_hook(&effect)?, Some(CauseRef::At(id.seq)), effect.depth);
            place = effect.session.map(|session| (session, effect.iteration));
        }
        Ok(Self {
            draft,
            rules,
            origin,
            via,
            entries: Vec::new(),
            dispatched_entries: 0,
            waiting_session: None,
            cause,
            depth: base,
            command_depth: base,
            budgets: vec![line],
            budget_index: COMMAND_BUDGET,
            entry_budgets: Vec::new(),
            session_scope: place,
            stopping_session: None,
            ended_hook: None,
            turn,
            call: None,
            claimed_promise: None,
            recorded_config: None,
        })
    }

    fn decide_command(&mut self, command: &'r Command) -> Result<(), Refusal> {
        use Command as C;
        self.check_session_rights(command)?;
        match command {
            C::CreateTask(new) => self.create_task(new).map(drop),
            C::UpdateTask { id, patch } => self.update_task(*id, patch),
            C::ClaimTask { id, owner, until, agent } => self.claim_task(*id, owner, *until, agent.as_deref()),
            C::StartTask { id, context } => self.start_task(*id, context),
            C::SubmitTask { id } => self.emit_simple_move(*id, payload::TaskSubmitted {}),
            C::CompleteTask { id, result, artifacts } => self.complete_task(*id, result.as_deref(), artifacts),
            C::BlockTask { id, reason, required_knowledge } => self.block_task(*id, reason, required_knowledge),
            C::UnblockTask { id } => self.unblock_task(*id),
            C::AnswerTask { id, answer, text, ignores, work } => {
                self.record_approved_work(*id, *answer, work.as_ref())?;
                self.answer_task(*id, *answer, text.as_deref(), ignores)
            }
            C::NeedContinuation { id, reason } => self.need_continuation(*id, reason),
            C::ReleaseTask { id, reason } => self.release_task(*id, reason),
            C::FailTask { id, reason } => self.fail_task(*id, reason),
            C::ReopenTask { id, reason } => self.reopen_with_reason(*id, reason),
            C::DeleteTask { id, deletion } => self.delete_task(*id, *deletion),
            C::AddEdge { from, kind, to } => self.add_edge(*from, *kind, *to),
            C::RemoveEdge { from, kind, to } => self.remove_edge(*from, *kind, *to),
            C::AddNote { task, kind, text } => self.add_note(*task, *kind, text),
            C::RegisterHook { task, new } => self.register_hook(*task, new),
            C::ClearHooks { task, hook } => self.clear_hooks(*task, *hook),
            C::SwitchHook { task, hook, enabled } => self.switch_hook(*task, *hook, *enabled),
            C::StartSeries { task, new } => self.start_series(*task, new),
            C::JudgeSeries { task, series, judging } => self.judge_series(*task, *series, judging),
            C::RecordRuling { task, judging } => self.record_ruling(*task, judging),
            C::AdvanceSeries { task, series } => self.advance_series(*task, *series),
            C::CompleteSeries { task, series, promise } => self.complete_series(*task, *series, *promise),
            C::CreateCheckpoint { task, new } => self.create_checkpoint(*task, new).map(drop),
            C::StartSession(new) => self.start_session(new),
            C::ResumeSession { name, dead, owner, max_iterations } => {
                self.resume_session(name, dead, owner, *max_iterations)
            }
            C::StopSession { name, ending, reason } => self.stop_session(name, *ending, reason.as_deref()),
            C::CancelSession { name, reason } => self.cancel_session(name, reason.as_deref()),
            C::AdvanceSession { name } => self.advance_session(name),
            C::OpenWorkspace { name, workspace, reused, protected, feedback } => {
                self.open_workspace(name, (workspace, *reused), protected.as_deref(), feedback.as_ref())
            }
            C::LeaveToPerson { name, reason, commits } => self.leave_to_person(name, reason, commits),
            C::SubmitWork { name, check } => self.submit_work(name, check),
            C::RecordMerge { id, commit, seen } => self.record_merge(*id, commit, seen.as_deref()),
            C::ExpireLease { id, epoch } => self.expire_lease(*id, *epoch),
            C::Say { session, text } => self.send_message(session, text),
            C::OpenConversation { run, conversation, anew } => {
                self.open_conversation(run, conversation, anew.as_deref())
            }
            C::AnswerGate { session, answer, text } => self.answer_gate(session, *answer, text.as_deref()),
            C::FinishTurn { run, answer } => self.finish_turn(run, answer),
            C::FailTurn { run, failing } => self.fail_turn(run, failing),
            C::PostponeTurn { run, failing, until } => self.postpone_turn(run, failing, *until),
            C::InterruptTurn { run, record, usage } => self.interrupt_turn(run, record.clone(), *usage),
            C::Call(call) => self.record_bridge_call(call),
            C::AnswerCall { at, caller, point, verdict } => {
                self.record_call_answer(*at, &CallAnswer { caller, point, verdict })
            }
            C::BeginEffect { effect, owner } => self.begin_effect(*effect, owner),
            C::RestEffect { effect, owner, error } => self.rest_effect(*effect, owner, error),
            C::RetryEffect { effect, owner, after } => self.retry_effect(*effect, owner, after),
            C::FinishEffect { effect, owner, report } => self.finish_effect(*effect, owner, report),
            C::TriggerWorkflow { id, context, task } => self.trigger_workflow(id, context, *task),
            C::StartWorkflow { effect, owner, workflow, digest, step, steps } => {
                self.start_workflow(*effect, owner, (workflow, *digest), (step, *steps))
            }
            C::BeginStep { effect, owner, step } => self.begin_workflow_step(*effect, owner, step),
            C::EndStep { effect, owner, end } => self.end_workflow_step(*effect, owner, end),
            C::AbandonWorkflow { effect, owner, error } => self.abandon_workflow(*effect, owner, error),
            C::RecoverEffect { effect, dead, owner } => self.recover_effect(*effect, dead, owner),
        }
    }

    fn descend_from_entry(&mut self, index: usize) {
        self.cause = Some(CauseRef::Entry(index));
        self.depth = self.entries[index].record.envelope.metadata.depth.saturating_add(1);
        self.budget_index = self.entry_budgets[index];
    }

    /// Emits an event, and returns its position.
    fn emit_event(&mut self, node: EventSubject, event: impl Into<Event>) -> Result<Seq, Refusal> {
        let (session, iteration) = self.session_scope.clone().unzip();
        self.emit_event_in(node, session, iteration.flatten(), event.into())
    }

    /// Emits an event of a session.
    fn emit_event_in(
        &mut self,
        node: EventSubject,
        session: Option<SessionName>,
        iteration: Option<u32>,
        event: Event,
    ) -> Result<Seq, Refusal> {
        let metadata = EventMetadata {
            triggered_by: self.origin.by.clone(),
            cause: None,
            depth: self.depth,
            via: self.ended_hook.or(self.via.filter(|_| self.budget_index == COMMAND_BUDGET)),
            // A message overrides nothing.
            forced: self.is_forced() && event.kind() != EventType::FeedbackQueued,
            owes: None,
        };
        let mut envelope = EventEnvelope { timestamp: self.origin.at, node, session, iteration, event, metadata };
        let problems = self.enqueue_hooks(&mut envelope)?;
        // `enqueue_hooks` may have recorded the configuration at the position before.
        let seq = self.draft.head_position()?.next();
        envelope.metadata.cause = self.cause.map(|cause| match cause {
            CauseRef::Entry(index) => {
                EventCause::Back(u32::try_from(self.entries.len() - index).expect("a commit is small"))
            }
            CauseRef::At(seq) => EventCause::At(seq),
        });
        let record = EventRecord { seq, envelope };
        let previous = self.draft.apply_event(record.seq, &record.envelope)?;
        self.entries.push(CommitEntry { record, previous });
        self.entry_budgets.push(self.budget_index);
        if !problems.is_empty() {
            self.report_hook_problems(problems)?;
        }
        Ok(seq)
    }

    fn require_task(&self, id: TaskId) -> Result<Task, Refusal> {
        self.draft.find_task(id)?.ok_or(Refusal::UnknownTask(id))
    }

    /// Returns whether the command is an override. Consequences of hooks are never forced.
    fn is_forced(&self) -> bool {
        self.depth <= self.command_depth && self.origin.authority == Authority::Forced
    }

    /// Returns the task if it may make this move and the caller may move it.
    fn require_movable_task(&self, id: TaskId, event: EventType) -> Result<Task, Refusal> {
        let task = self.require_task(id)?;
        let row = TaskTransition::for_event_type(event).expect("callers pass only state transitions");
        if !row.allows_from(task.state, self.is_forced()) {
            return Err(Refusal::IllegalMove {
                id,
                state: task.state,
                event,
                from: row.from.to_vec(),
                forceable: row.forced_from.contains(&task.state),
            });
        }
        self.check_lease_holder(&task)?;
        Ok(task)
    }

    /// Refuses to move a task that another caller holds. The epoch proves the identity of a caller who works by hand. It
    /// proves nothing for a session: its agent, and every reader of the task, knows the epoch.
    fn check_lease_holder(&self, task: &Task) -> Result<(), Refusal> {
        let held = |lease: &Lease| Err(Refusal::Held { id: task.id, lease: Box::new(lease.clone()) });
        match (&task.lease, self.origin.authority) {
            _ if self.depth > self.command_depth => Ok(()),
            (_, Authority::Forced) | (None, Authority::Person) => Ok(()),
            (Some(lease), Authority::Holder(epoch)) if lease.epoch == epoch && lease.session.is_some() => held(lease),
            (Some(lease), Authority::Holder(epoch)) if lease.epoch == epoch => Ok(()),
            (lease, Authority::Holder(epoch)) => {
                let current = lease.as_ref().map(|lease| lease.epoch);
                Err(Refusal::LeaseLost { id: task.id, epoch, current })
            }
            (Some(lease), Authority::Person) => held(lease),
        }
    }
}

#[cfg(test)]
mod tests;
