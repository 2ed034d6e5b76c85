//! Turns a command into events.
//!
//! The command's own events come first, then the pure hooks of each event in turn, and the results of their actions, until no
//! event is left or a limit is reached. All of it is one commit: it happens whole or not at all.
//!
//! Invariants:
//! - A refused command is dropped whole, with all that it had decided until then.
//! - The action of a hook is checked before its first event, so a refused action leaves nothing behind in the commit.

mod agents;
mod bridge;
mod cascade;
mod edges;
mod effects;
mod evaluation;
mod lineage;
mod outbox;
mod people;
mod pipeline;
mod sessions;
mod tasks;
mod turns;
mod work;
mod workflow;

use std::collections::BTreeMap;

use crate::bridge::BridgeCall;
use crate::command::refusal::Refusal;
use crate::command::{Authority, Command, Origin};
use crate::effects::outbox::{EffectKind, PendingEffect};
use crate::effects::registry::Registry;
use crate::log::event::{Cause, Envelope, Event, Metadata, Node, Record, payload};
use crate::log::event_type::EventType;
use crate::log::id::{Digest, EffectId, RunId, Seq, SessionName, TaskId};
use crate::session::promise::Promise;
use crate::task::transitions::Move;
use crate::task::types::Types;
use crate::task::{Lease, Task};
use crate::view::draft::Draft;
use crate::view::{Change, Looked, Scope, View};
use bridge::Asked;
use lineage::{COMMAND, Line};
pub use outbox::{Effects, HookScope, PlannedHook, Trusted, ValidationScope, WORKFLOW, hooks_for_call};

/// A project's configuration, as far as the engine needs it.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// The hooks that run inside the commit.
    pub registry: Registry,
    /// The hooks that run after the commit.
    pub effects: Option<Effects>,
    /// The types of tasks, and the agents that may work on them.
    pub types: Types,
}

/// Events that are decided but not yet in a log.
pub struct Decided<'v> {
    draft: Draft<'v>,
    entries: Vec<Entry>,
}

/// An event and the one before it in the history of the same task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub record: Record,
    pub previous: Seq,
}

impl Decided<'_> {
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the scopes that the decision depends on.
    pub fn reads(&self) -> Looked<BTreeMap<Scope, u64>> {
        self.draft.reads()
    }

    pub fn into_parts(self) -> (Vec<Entry>, Vec<Change>) {
        (self.entries, self.draft.into_changes())
    }
}

/// Decides a command against the present state.
pub fn decide<'v>(
    view: &'v dyn View,
    rules: &Rules,
    origin: &Origin,
    command: &Command,
) -> Result<Decided<'v>, Refusal> {
    let via = origin.via.filter(|_| !command.is_of_a_runner());
    let mut deciding = Deciding::new(view, rules, origin, via)?;
    deciding.command(command)?;
    deciding.charge_the_hook()?;
    deciding.hear_and_go_on()?;
    deciding.share_out()?;
    Ok(Decided { draft: deciding.draft, entries: deciding.entries })
}

/// The cause of an event: an entry of the same commit, or an event that is in the log already.
#[derive(Debug, Clone, Copy)]
enum Causing {
    Entry(usize),
    At(Seq),
}

/// The state of a decision in progress.
struct Deciding<'v, 'r> {
    draft: Draft<'v>,
    rules: &'r Rules,
    origin: &'r Origin,
    /// The hook that gives the command.
    via: Option<EffectId>,
    entries: Vec<Entry>,
    /// How many of the entries have had their pure hooks run.
    heard: usize,
    /// The session that continues when all of them have.
    waiting: Option<SessionName>,
    /// The cause of the next events.
    cause: Option<Causing>,
    depth: u8,
    /// The depth of the command itself: above 0 if a hook gives it.
    base: u8,
    lines: Vec<Line>,
    /// The index of the budget that the next events use, and those of the entries.
    line: usize,
    descent: Vec<usize>,
    /// The session of events that name none themselves.
    place: Option<(SessionName, Option<u32>)>,
    /// The session that this commit is going to stop: hooks that would be skipped at once are not enqueued there.
    stops: Option<SessionName>,
    /// The hook that has just ended and whose changes are being recorded.
    ended: Option<EffectId>,
    /// The turn that the command comes from, if its session is known.
    turn: Option<RunId>,
    /// The call of an agent's hook system, while the event is emitted that enqueues its hooks.
    call: Option<&'r BridgeCall>,
    /// The agent's claim in the turn that is ending.
    claims: Option<Promise>,
    /// The configuration of the pending hooks, once it is known to be recorded.
    recorded: Option<Digest>,
}

impl<'v, 'r> Deciding<'v, 'r> {
    fn new(view: &'v dyn View, rules: &'r Rules, origin: &'r Origin, via: Option<EffectId>) -> Result<Self, Refusal> {
        let draft = Draft::new(view)?;
        let turn = match &origin.run {
            Some(run) => draft.session(&run.session)?.map(|_| run.clone()),
            None => None,
        };
        let mut place = turn.clone().map(|run| (run.session, Some(run.iteration)));
        let (mut line, mut cause, mut base) = (Line::begun(), None, 0);
        if let Some(id) = via {
            let runs = |effect: &PendingEffect| effect.attempts > 0 && matches!(effect.kind, EffectKind::Hook(_));
            let effect = draft.effect(id)?.filter(runs).ok_or(Refusal::UnknownEffect(id))?;
            (line, cause, base) = (Line::inside(&effect)?, Some(Causing::At(id.seq)), effect.depth);
            place = effect.session.map(|session| (session, effect.iteration));
        }
        Ok(Self {
            draft,
            rules,
            origin,
            via,
            entries: Vec::new(),
            heard: 0,
            waiting: None,
            cause,
            depth: base,
            base,
            lines: vec![line],
            line: COMMAND,
            descent: Vec::new(),
            place,
            stops: None,
            ended: None,
            turn,
            call: None,
            claims: None,
            recorded: None,
        })
    }

    fn command(&mut self, command: &'r Command) -> Result<(), Refusal> {
        use Command as C;
        self.keep_session_to_its_rights(command)?;
        match command {
            C::CreateTask(new) => self.create(new).map(drop),
            C::UpdateTask { id, patch } => self.update(*id, patch),
            C::ClaimTask { id, owner, until, agent } => self.claim(*id, owner, *until, agent.as_deref()),
            C::StartTask { id, context } => self.start(*id, context),
            C::SubmitTask { id } => self.simple_move(*id, payload::TaskSubmitted {}),
            C::CompleteTask { id, result, artifacts } => self.complete(*id, result.as_deref(), artifacts),
            C::BlockTask { id, reason, required_knowledge } => self.block(*id, reason, required_knowledge),
            C::UnblockTask { id } => self.unblock(*id),
            C::AnswerTask { id, answer, text, ignores, work } => {
                self.show_work(*id, *answer, work.as_ref())?;
                self.answer(*id, *answer, text.as_deref(), ignores)
            }
            C::NeedContinuation { id, reason } => self.need_continuation(*id, reason),
            C::ReleaseTask { id, reason } => self.release(*id, reason),
            C::FailTask { id, reason } => self.fail(*id, reason),
            C::ReopenTask { id, reason } => self.reopen_because(*id, reason),
            C::DeleteTask { id, deletion } => self.delete(*id, *deletion),
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
            C::SubmitWork { name, readied } => self.submit_work(name, readied),
            C::RecordMerge { id, commit, seen } => self.record_merge(*id, commit, seen.as_deref()),
            C::ExpireLease { id, epoch } => self.expire_lease(*id, *epoch),
            C::Say { session, text } => self.say(session, text),
            C::OpenConversation { run, conversation, anew } => {
                self.open_conversation(run, conversation, anew.as_deref())
            }
            C::AnswerGate { session, answer, text } => self.answer_gate(session, *answer, text.as_deref()),
            C::FinishTurn { run, answer } => self.finish_turn(run, answer),
            C::FailTurn { run, failing } => self.fail_turn(run, failing),
            C::PostponeTurn { run, failing, until } => self.postpone_turn(run, failing, *until),
            C::InterruptTurn { run, record, usage } => self.interrupt_turn(run, record.clone(), *usage),
            C::Call(call) => self.call(call),
            C::AnswerCall { at, caller, point, verdict } => self.answer_call(*at, &Asked { caller, point, verdict }),
            C::BeginEffect { effect, owner } => self.begin_effect(*effect, owner),
            C::RestEffect { effect, owner, error } => self.rest_effect(*effect, owner, error),
            C::RetryEffect { effect, owner, after } => self.retry_effect(*effect, owner, after),
            C::FinishEffect { effect, owner, report } => self.finish_effect(*effect, owner, report),
            C::TriggerWorkflow { id, context, task } => self.trigger_workflow(id, context, *task),
            C::StartWorkflow { effect, owner, workflow, digest, step, steps } => {
                self.start_workflow(*effect, owner, (workflow, *digest), (step, *steps))
            }
            C::BeginStep { effect, owner, step } => self.begin_step(*effect, owner, step),
            C::EndStep { effect, owner, end } => self.end_step(*effect, owner, end),
            C::AbandonWorkflow { effect, owner, error } => self.abandon_workflow(*effect, owner, error),
            C::RecoverEffect { effect, dead, owner } => self.recover_effect(*effect, dead, owner),
        }
    }

    fn caused_by(&mut self, index: usize) {
        self.cause = Some(Causing::Entry(index));
        self.depth = self.entries[index].record.envelope.metadata.depth.saturating_add(1);
        self.line = self.descent[index];
    }

    /// Emits an event, and returns its position.
    fn emit(&mut self, node: Node, event: impl Into<Event>) -> Result<Seq, Refusal> {
        let (session, iteration) = self.place.clone().unzip();
        self.emit_in(node, session, iteration.flatten(), event.into())
    }

    /// Emits an event of a session.
    fn emit_in(
        &mut self,
        node: Node,
        session: Option<SessionName>,
        iteration: Option<u32>,
        event: Event,
    ) -> Result<Seq, Refusal> {
        let metadata = Metadata {
            triggered_by: self.origin.by.clone(),
            cause: None,
            depth: self.depth,
            via: self.ended.or(self.via.filter(|_| self.line == COMMAND)),
            // A message overrides nothing.
            forced: self.forced() && event.kind() != EventType::FeedbackQueued,
            owes: None,
        };
        let mut envelope = Envelope { timestamp: self.origin.at, node, session, iteration, event, metadata };
        let problems = self.enqueue_hooks(&mut envelope)?;
        // `enqueue_hooks` may have recorded the configuration at the position before.
        let seq = self.draft.head()?.next();
        envelope.metadata.cause = self.cause.map(|cause| match cause {
            Causing::Entry(index) => Cause::Back(u32::try_from(self.entries.len() - index).expect("a commit is small")),
            Causing::At(seq) => Cause::At(seq),
        });
        let record = Record { seq, envelope };
        let previous = self.draft.apply(record.seq, &record.envelope)?;
        self.entries.push(Entry { record, previous });
        self.descent.push(self.line);
        if !problems.is_empty() {
            self.report_problems(problems)?;
        }
        Ok(seq)
    }

    fn task(&self, id: TaskId) -> Result<Task, Refusal> {
        self.draft.task(id)?.ok_or(Refusal::UnknownTask(id))
    }

    /// Returns whether the command is an override. Consequences of hooks are never forced.
    fn forced(&self) -> bool {
        self.depth <= self.base && self.origin.authority == Authority::Forced
    }

    /// Returns the task if it may make this move and the caller may move it.
    fn movable(&self, id: TaskId, event: EventType) -> Result<Task, Refusal> {
        let task = self.task(id)?;
        let row = Move::on(event).expect("only moves are asked for");
        if !row.allows(task.state, self.forced()) {
            return Err(Refusal::IllegalMove {
                id,
                state: task.state,
                event,
                from: row.from.to_vec(),
                forceable: row.forced_from.contains(&task.state),
            });
        }
        self.may_touch(&task)?;
        Ok(task)
    }

    /// Refuses to move a task that another caller holds. The epoch proves the identity of a caller who works by hand. It
    /// proves nothing for a session: its agent, and every reader of the task, knows the epoch.
    fn may_touch(&self, task: &Task) -> Result<(), Refusal> {
        let held = |lease: &Lease| Err(Refusal::Held { id: task.id, lease: Box::new(lease.clone()) });
        match (&task.lease, self.origin.authority) {
            _ if self.depth > self.base => Ok(()),
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
