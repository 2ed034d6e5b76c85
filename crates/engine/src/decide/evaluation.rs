//! Commands of an agent that runs its own iterations: registered stop hooks, a series of iterations, checkpoints.

use serde_json::Value;

use super::DecisionContext;
use crate::command::limits::EngineLimits;
use crate::command::refusal::Refusal;
use crate::evaluation::decision_rule::RuleAction;
use crate::evaluation::validation::RuleResult;
use crate::evaluation::{
    EvaluationFindings, EvaluationPurpose, HookDecision, IterationSeries, NewCheckpoint, NewIterationSeries,
    NewStopHook, SeriesSignal, StopHookRef,
};
use crate::log::event::{EventSubject, payload};
use crate::log::event_type::EventType;
use crate::log::id::{CheckpointId, HookId, Seq, SeriesId, SessionName, TaskId};
use crate::session::promise::Promise;
use crate::session::{AfterIteration, GateDecision, Session, SessionEnd, SessionEndKind};
use crate::task::transitions::TaskTransition;
use crate::task::{Task, TaskState};
use crate::view::StateView;

/// The reasons that a person finds on a blocked task.
const BLOCKED_REASON: &str = "the agent says that it is blocked";
const ESCALATED_REASON: &str = "the agent asks for a person";

impl DecisionContext<'_, '_> {
    pub(super) fn register_hook(&mut self, id: TaskId, new: &NewStopHook) -> Result<(), Refusal> {
        new.check_limits()?;
        let task = self.require_unended_task(id)?;
        if task.evaluation.hooks.len() >= EngineLimits::STOP_HOOKS_PER_TASK {
            return Err(Refusal::TooManyHooks { task: id, most: EngineLimits::STOP_HOOKS_PER_TASK });
        }
        let NewStopHook { hook, enabled, metadata } = new.clone();
        self.emit_event(EventSubject::Task(id), payload::HookRegistered { hook, enabled, metadata }).map(drop)
    }

    /// Clears stop hooks; without any, does nothing. From inside a session only hooks that agents registered are cleared.
    pub(super) fn clear_hooks(&mut self, id: TaskId, only: Option<HookId>) -> Result<(), Refusal> {
        if let Some(only) = only {
            self.require_own_hook(id, only)?;
        }
        let is_meant = |hook: &StopHookRef| only.is_none_or(|only| hook.id == only);
        let may = |hook: &&StopHookRef| is_meant(hook) && (hook.inside || !self.is_inside_session());
        let hooks: Vec<HookId> =
            self.require_task(id)?.evaluation.hooks.iter().filter(may).map(|hook| hook.id).collect();
        match hooks.is_empty() {
            true => Ok(()),
            false => self.emit_event(EventSubject::Task(id), payload::HooksCleared { hooks }).map(drop),
        }
    }

    /// Enables or disables a stop hook; without a difference, does nothing.
    pub(super) fn switch_hook(&mut self, id: TaskId, hook: HookId, enabled: bool) -> Result<(), Refusal> {
        match self.require_own_hook(id, hook)?.enabled == enabled {
            true => Ok(()),
            false => self.emit_event(EventSubject::Task(id), payload::HookSwitched { hook, enabled }).map(drop),
        }
    }

    /// Returns a stop hook of a task that this command may clear or switch: from inside a session only one that was registered
    /// there.
    fn require_own_hook(&self, id: TaskId, hook: HookId) -> Result<StopHookRef, Refusal> {
        let task = self.require_task(id)?;
        let found = task.evaluation.hooks.iter().copied().find(|known| known.id == hook);
        let found = found
            .ok_or_else(|| Refusal::invalid_input("the stop hook", format!("{hook} is not registered for {id}")))?;
        match found.inside || !self.is_inside_session() {
            true => Ok(found),
            false => Err(Refusal::NoPerson { what: "remove, enable or disable stop hooks of others" }),
        }
    }

    pub(super) fn start_series(&mut self, id: TaskId, new: &NewIterationSeries) -> Result<(), Refusal> {
        new.check_limits()?;
        let task = self.require_unended_task(id)?;
        // The holder of a task works on it already.
        let inside = self.is_inside_turn_on_task(&task);
        if task.state != TaskState::Active {
            self.start_task(id, &Value::Null)?;
        } else if !inside {
            self.check_lease_holder(&task)?;
        }
        if let Some(live) = task.evaluation.series.filter(|live| self.turn.is_some() && !live.inside) {
            let why =
                format!("was started for {id} by another caller, whose limits and rules apply: continue this series");
            return Err(Refusal::IllegalSeries { id: live.id, why });
        }
        let new = new.clone();
        self.emit_event(
            EventSubject::Task(id),
            payload::SeriesStarted {
                max_iterations: new.max_iterations,
                completion_promises: new.promises,
                validation_rules: new.rules,
                circuit_breaker_threshold: new.breaker,
                strict: new.strict,
            },
        )
        .map(drop)
    }

    pub(super) fn judge_series(
        &mut self,
        id: TaskId,
        series: SeriesId,
        judging: &EvaluationFindings,
    ) -> Result<(), Refusal> {
        judging.check_limits()?;
        let task = self.require_task(id)?;
        let live = require_live_series(&task, series)?;
        if live.iteration != judging.iteration {
            let why = format!(
                "has come to iteration {} while iteration {} was judged; ask again",
                live.iteration, judging.iteration
            );
            return Err(Refusal::IllegalSeries { id: series, why });
        }
        if !task.evaluation.hooks.iter().map(|hook| hook.id).eq(judging.hooks.iter().copied()) {
            let why = "has other stop hooks than those that were asked; ask again".to_owned();
            return Err(Refusal::IllegalSeries { id: series, why });
        }
        if let Some(decision) = &judging.decision {
            let results: &[_] = if judging.asked == EvaluationPurpose::Hooks { &judging.results } else { &[] };
            self.record_hook_evaluation(id, (Some(series), live.iteration), decision, results)?;
        }
        if judging.asked == EvaluationPurpose::Validation {
            self.record_validation(id, &live, judging)?;
        }
        Ok(())
    }

    /// Records the findings at the gate of the session that works on a task. They also judge the series in progress, unless
    /// it has advanced meanwhile.
    pub(super) fn record_ruling(&mut self, id: TaskId, judging: &EvaluationFindings) -> Result<(), Refusal> {
        judging.check_limits()?;
        let task = self.require_task(id)?;
        let held = task.lease.and_then(|lease| lease.session);
        let session = held.map(|name| self.require_session(&name)).transpose()?;
        self.session_scope = session.as_ref().map(|session| (session.name.clone(), Some(session.iteration)));
        let iteration = session.map_or(0, |session| session.iteration);
        let series = task.evaluation.series.filter(|series| series.iteration == judging.iteration);
        if let Some(decision) = &judging.decision {
            self.record_hook_evaluation(id, (None, iteration), decision, &judging.results)?;
        }
        match series {
            Some(series) => self.record_validation(id, &series, judging),
            None => Ok(()),
        }
    }

    /// Returns the decision of a gate where a series is in progress. If the series' guards forbid another iteration, a
    /// person decides. The agent first receives a person's pending messages.
    pub(super) fn guard_series(&self, session: &Session, decision: GateDecision) -> Result<GateDecision, Refusal> {
        if decision != GateDecision::Next(AfterIteration::Continue) || session.has_unheard_person() {
            return Ok(decision);
        }
        let series = self.find_session_series(session)?;
        let tripped = series.and_then(|series| Some((series.current_tripped_guard()?, series)));
        Ok(tripped.map_or(decision, |(guard, series)| {
            let reason = Some(format!("{} ends here, {}", series.id, series.explain_guard(guard)));
            GateDecision::Next(AfterIteration::Close(SessionEnd { ending: SessionEndKind::Escalated, reason }))
        }))
    }

    /// Advances the series of a session's task together with the loop: a judged iteration is over, an interrupted one is taken
    /// up.
    pub(super) fn advance_series_with_loop(&mut self, session: &Session) -> Result<(), Refusal> {
        let is_over = |series: &IterationSeries| {
            series.judged_by_loop && series.remaining_iterations() > 0 && !session.continues_interrupted_iteration()
        };
        let Some(series) = self.find_session_series(session)?.filter(is_over) else { return Ok(()) };
        let (series, iteration) = (series.id, series.iteration + 1);
        self.emit_session_event(session, payload::SeriesAdvanced { series, iteration })
    }

    /// Returns the series in progress on the task that a session holds.
    fn find_session_series(&self, session: &Session) -> Result<Option<IterationSeries>, Refusal> {
        let Some(id) = session.task.filter(|_| session.held_epoch().is_some()) else { return Ok(None) };
        Ok(self.draft.find_task(id)?.and_then(|task| task.evaluation.series))
    }

    fn record_hook_evaluation(
        &mut self,
        id: TaskId,
        (series, iteration): (Option<SeriesId>, u32),
        decision: &HookDecision,
        results: &[RuleResult],
    ) -> Result<(), Refusal> {
        let HookDecision { hook, ruling } = decision.clone();
        let evaluated = payload::HookEvaluated {
            series,
            iteration,
            hook,
            action: ruling.action,
            reason: ruling.reason,
            next_prompt: ruling.next_prompt,
            metadata: ruling.metadata,
            results: results.to_vec(),
        };
        self.emit_event(EventSubject::Task(id), evaluated)?;
        match ruling.checkpoint_data.filter(|_| ruling.action == RuleAction::Continue) {
            Some(data) => {
                let mut new = NewCheckpoint::from_hook_data(&data);
                new.execution_step = new.execution_step.or(Some(u64::from(iteration)));
                self.create_checkpoint(id, &new).map(drop)
            }
            None => Ok(()),
        }
    }

    fn record_validation(
        &mut self,
        id: TaskId,
        series: &IterationSeries,
        judging: &EvaluationFindings,
    ) -> Result<(), Refusal> {
        let verdict = series.judge_iteration(judging);
        let kept = |output: &String| {
            let from = output.len().saturating_sub(EngineLimits::STORED_OUTPUT_BYTES);
            output[output.ceil_char_boundary(from)..].to_owned()
        };
        let finished = payload::ValidationFinished {
            series: series.id,
            iteration: series.iteration,
            passed: verdict.judged.passed,
            signal: verdict.signal,
            results: judging.results.clone(),
            promises: judging.promises.clone(),
            hook: judging.decision.as_ref().and_then(|decision| decision.hook),
            guard: verdict.guard,
            feedback: verdict.feedback,
            // At a gate the event of the turn's end has the output.
            output: (judging.asked != EvaluationPurpose::Gate)
                .then_some(judging.agent_output.as_ref())
                .flatten()
                .map(kept)
                .filter(|output| !output.is_empty()),
            files_modified: judging.files_modified.clone(),
            alike: verdict.judged.alike,
        };
        self.emit_event(EventSubject::Task(id), finished).map(drop)
    }

    pub(super) fn advance_series(&mut self, id: TaskId, series: SeriesId) -> Result<(), Refusal> {
        let task = self.require_unended_task(id)?;
        let live = require_live_series(&task, series)?;
        let refuse = |why: String| Err(Refusal::IllegalSeries { id: series, why });
        if task.state == TaskState::Blocked {
            return refuse(format!("waits for a person: {id} is blocked"));
        }
        if !live.inside && self.is_inside_turn_on_task(&task) {
            return refuse(format!("advances with the loop that works on {id}: end your turn, and it is judged"));
        }
        if live.remaining_iterations() == 0 {
            let most = live.max_iterations;
            return refuse(format!(
                "is at its maximum of {most} iterations: {id} needs a person now, unless it is done"
            ));
        }
        self.emit_event(EventSubject::Task(id), payload::SeriesAdvanced { series, iteration: live.iteration + 1 })
            .map(drop)
    }

    /// Ends a series without an evaluation: a listed promise is accepted as it is, unless the series is strict.
    pub(super) fn complete_series(&mut self, id: TaskId, series: SeriesId, promise: Promise) -> Result<(), Refusal> {
        let live = require_live_series(&self.require_unended_task(id)?, series)?;
        let refuse = |why: String| Err(Refusal::IllegalSeries { id: series, why });
        if !live.completion_promises.contains(&promise) {
            let listed: Vec<&str> = live.completion_promises.iter().map(|promise| promise.name()).collect();
            return refuse(format!("was not started with {}, but with {}", promise.name(), listed.join(", ")));
        }
        let judged_complete = live.judged.is_some_and(|judged| judged.signal == SeriesSignal::Complete);
        if live.strict && promise == Promise::Complete && !judged_complete {
            return refuse("is strict: it is completed after iteration_validate has answered COMPLETE".to_owned());
        }
        // A series that was started from outside the turn keeps its rules until the work is accepted.
        if live.inside || self.turn.is_none() {
            self.emit_event(
                EventSubject::Task(id),
                payload::SeriesEnded { series, iteration: live.iteration, promise },
            )?;
        }
        match promise {
            Promise::Complete => self.complete_task(id, None, &[]),
            Promise::Blocked => self.block_task(id, BLOCKED_REASON, &[]),
            Promise::Escalate => self.block_task(id, ESCALATED_REASON, &[]),
        }
    }

    pub(super) fn create_checkpoint(&mut self, id: TaskId, new: &NewCheckpoint) -> Result<CheckpointId, Refusal> {
        new.check_limits()?;
        let task = self.require_task(id)?;
        if task.state == TaskState::Deleted {
            return Err(Refusal::invalid_input("a checkpoint", format!("cannot be made of {id}: it is deleted")));
        }
        let (draft_content, draft_bytes) = new.stored_draft();
        let at = self.emit_event(
            EventSubject::Task(id),
            payload::CheckpointCreated {
                sequence: task.evaluation.checkpoints_made + 1,
                trigger: new.trigger,
                execution_phase: new.execution_phase.clone(),
                execution_step: new.execution_step,
                agent_context: new.agent_context.clone(),
                draft_content,
                draft_type: new.draft_type.clone(),
                draft_bytes,
                expires_at: new.expires_at(self.origin.at),
                series: task.evaluation.series.map(|series| series.id),
            },
        )?;
        let Seq(at) = at;
        Ok(CheckpointId(at))
    }

    /// Returns a task that has not ended.
    fn require_unended_task(&self, id: TaskId) -> Result<Task, Refusal> {
        let task = self.require_task(id)?;
        let row = TaskTransition::for_event_type(EventType::TaskBlocked).expect("blocking is a move");
        match task.state {
            TaskState::Completed | TaskState::Failed | TaskState::Deleted => {
                let mut from = row.from.to_vec();
                from.push(TaskState::Blocked);
                let event = EventType::TaskStarted;
                Err(Refusal::IllegalMove { id, state: task.state, event, from, forceable: false })
            }
            _ => Ok(task),
        }
    }

    /// Returns whether the command comes from inside a turn of the session that holds the task.
    fn is_inside_turn_on_task(&self, task: &Task) -> bool {
        let own = self.session_of_turn();
        own.is_some() && task.lease.as_ref().is_some_and(|lease| lease.session == own)
    }

    fn session_of_turn(&self) -> Option<SessionName> {
        self.turn.as_ref().map(|run| run.session.clone())
    }
}

/// Returns the series of this id if it is in progress.
fn require_live_series(task: &Task, id: SeriesId) -> Result<IterationSeries, Refusal> {
    task.evaluation.find_series(id).cloned().ok_or_else(|| {
        let why = match &task.evaluation.series {
            Some(other) => format!("is over: {} continues in {}", task.id, other.id),
            None => format!("is over: {} is {}", task.id, task.state),
        };
        Refusal::IllegalSeries { id, why }
    })
}
