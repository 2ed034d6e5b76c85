//! The effectful hooks that an event puts into the outbox.
//!
//! For each point: the hooks of the task's type, else those of the project; then those of the agent. All points of an event
//! together run in order of priority, equal ones in order of definition.
//!
//! Invariants:
//! - The consequences of a hook are bounded; hooks beyond the limit are not enqueued, and the log says so.
//! - A hook of an untrusted configuration is never enqueued: the command that would enqueue it is refused.

use std::collections::{BTreeMap, BTreeSet};

use windlass_expr::{Condition, EvaluationError, ToolMatcher};

use super::DecisionContext;
use crate::apply::apply;
use crate::bridge::BridgeCall;
use crate::command::limits::EngineLimits;
use crate::command::refusal::Refusal;
use crate::effects::event_context::EventContext;
use crate::effects::hook_batch::{HookBatch, HookEffect};
use crate::effects::hook_outcome::{HookClass, HookFailurePolicy};
use crate::effects::hook_point::HookPoint;
use crate::evaluation::{REGISTERED_HOOKS_NAME, VALIDATION_RULES_NAME};
use crate::log::config_text::ConfigText;
use crate::log::event::{Event, EventEnvelope, EventSubject, payload};
use crate::log::event_type::EventType;
use crate::log::id::{Digest, OwnerName, TypeName};
use crate::session::Session;
use crate::session::promise::Promise;
use crate::task::Task;
use crate::view::{RowChange, StateView};

/// The effectful hooks of each event.
#[derive(Debug, Clone)]
pub struct HookPlan {
    /// The source text of their configuration.
    pub config: ConfigText,
    /// The process that appends the event, and so owns its hooks.
    pub owner: OwnerName,
    /// The directory of the project, for conditions that use it.
    pub project: String,
    pub trust: ConfigTrust,
    pub hooks: BTreeMap<EventType, Vec<PlannedHook>>,
    /// The points at which a type of tasks has its own list, possibly an empty one, instead of the project's.
    pub overrides: BTreeSet<(TypeName, HookPoint)>,
    pub validation: ValidationScope,
}

/// The tasks for which the configuration has validation rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ValidationScope {
    pub project: bool,
    /// Types with a list of their own, possibly an empty one, instead of the project's.
    pub types: BTreeMap<TypeName, bool>,
}

impl ValidationScope {
    /// Returns whether tasks of a type have rules.
    pub fn includes_type(&self, kind: Option<&TypeName>) -> bool {
        kind.and_then(|kind| self.types.get(kind)).copied().unwrap_or(self.project)
    }
}

/// Whether the configuration may run anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigTrust {
    Yes,
    No,
}

/// The work that a hook is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookScope {
    Project,
    TaskType(TypeName),
    Agent(String),
    /// All work in a worktree of its own. No configuration can say this: it is the scope of the default step.
    Worktrees,
}

impl HookScope {
    /// Returns whether the scope includes such work: a type's own list replaces the project's, an agent's list adds to it.
    pub fn includes_work(&self, kind: Option<&str>, agent: Option<&str>, has_own_list: bool) -> bool {
        match self {
            Self::Project | Self::Worktrees => !has_own_list,
            Self::TaskType(wanted) => kind == Some(wanted.as_str()),
            Self::Agent(name) => agent == Some(name),
        }
    }
}

/// A configured hook at one of its points, with the conditions under which an event enqueues it.
#[derive(Debug, Clone)]
pub struct PlannedHook {
    pub hook: HookEffect,
    pub scope: HookScope,
    /// The tools, or the reasons of a call, that it is for.
    pub matcher: ToolMatcher,
    /// The condition under which it is enqueued.
    pub when: Option<Condition>,
}

/// Hooks that were not enqueued, or that were enqueued although a condition failed.
pub(super) struct HookProblem {
    hooks: String,
    why: String,
}

impl PlannedHook {
    /// Returns whether the hook is for the point and the subject of a call.
    pub fn matches_call(&self, call: &BridgeCall) -> bool {
        let here = self.hook.point == call.point || self.hook.point == HookPoint::Event(EventType::BridgeCalled);
        here && (call.matched.is_empty() || call.matched.iter().any(|name| self.matcher.matches_tool(name)))
    }

    /// Returns whether its condition holds in this context.
    fn condition_holds(&self, situation: EventContext<'_>) -> Result<bool, EvaluationError> {
        let Some(when) = &self.when else { return Ok(true) };
        let HookEffect { hook, point, .. } = &self.hook;
        when.is_satisfied(&EventContext { point: Some(point), hook, ..situation }.to_values())
    }
}

/// Returns the hooks that a call outside every session may enqueue, without the conditions that hold; none if none of them
/// would run. A condition about the conversation or the project directory stays, and so does one that cannot be evaluated: the
/// engine records that as the hook's problem.
pub fn hooks_for_call(call: &BridgeCall, planned: Vec<PlannedHook>) -> Vec<PlannedHook> {
    let envelope = EventEnvelope::with_default_metadata(call.build_called_event().into());
    let situation = EventContext { call: Some(call), ..EventContext::from_envelope(&envelope) };
    let agent = Some(call.caller.agent.as_str());
    let is_meant =
        |planned: &PlannedHook| planned.scope.includes_work(None, agent, false) && planned.matches_call(call);
    let asks = |when: &Condition| ["retries", "event", "project_dir"].iter().any(|name| when.uses_name(name));
    let mut runs = false;
    let answered = |planned: PlannedHook| {
        if planned.when.as_ref().is_none_or(asks) {
            runs = true;
            return Some(planned);
        }
        let (hooks, problems) = select_hooks(situation, std::iter::once(&planned));
        runs |= !hooks.is_empty();
        let when = planned.when.clone().filter(|_| !problems.is_empty());
        (!hooks.is_empty() || !problems.is_empty()).then_some(PlannedHook { when, ..planned })
    };
    let hooks = planned.into_iter().filter(is_meant).filter_map(answered).collect();
    if runs { hooks } else { Vec::new() }
}

impl From<HookEffect> for PlannedHook {
    fn from(hook: HookEffect) -> Self {
        Self { hook, scope: HookScope::Project, matcher: ToolMatcher::default(), when: None }
    }
}

impl HookPlan {
    /// Returns a plan with these hooks for every task and every agent.
    pub fn for_all_tasks(
        config: &str,
        owner: OwnerName,
        hooks: impl IntoIterator<Item = (EventType, Vec<HookEffect>)>,
    ) -> Self {
        let planned = |hooks: Vec<HookEffect>| hooks.into_iter().map(PlannedHook::from).collect();
        let hooks = hooks.into_iter().map(|(event, hooks)| (event, planned(hooks))).collect();
        let (project, trust, overrides) = (String::new(), ConfigTrust::Yes, BTreeSet::new());
        let validation = ValidationScope::default();
        Self { config: config.into(), owner, project, trust, hooks, overrides, validation }
    }

    /// Returns the gates that tasks of a type have of their own, in the order in which work passes them.
    pub fn gates_of_type(&self, kind: &TypeName) -> Vec<String> {
        let gates = [
            (EventType::TurnFinished, HookPoint::Stop),
            (EventType::SubmissionStarted, HookPoint::BeforeSubmit),
            (EventType::MergeStarted, HookPoint::BeforeMerge),
        ];
        let is_own = |planned: &PlannedHook, point: &HookPoint| {
            planned.hook.point == *point && matches!(&planned.scope, HookScope::TaskType(own) if own == kind)
        };
        let has_own = |event: &EventType, point: &HookPoint| {
            self.hooks.get(event).is_some_and(|hooks| hooks.iter().any(|planned| is_own(planned, point)))
        };
        let rules = self.validation.types.get(kind).copied().unwrap_or(false).then(|| "validation".to_owned());
        let points =
            gates.into_iter().filter(|(event, point)| has_own(event, point)).map(|(_, point)| point.to_string());
        rules.into_iter().chain(points).collect()
    }

    /// Returns the name of the hook that judges turns on such a task before the configured stop hooks do.
    pub fn first_judge_name(&self, task: Option<&Task>) -> Option<&'static str> {
        if task.is_some_and(|task| task.evaluation.has_turn_judge()) {
            return Some(REGISTERED_HOOKS_NAME);
        }
        self.validation.includes_type(task.and_then(|task| task.kind.as_ref())).then_some(VALIDATION_RULES_NAME)
    }

    /// Returns whether a hook is for such a task and such an agent.
    pub fn applies_to_task(&self, planned: &PlannedHook, task: Option<&Task>, agent: Option<&str>) -> bool {
        let kind = task.and_then(|task| task.kind.as_ref());
        let own = kind.is_some_and(|kind| self.overrides.contains(&(kind.clone(), planned.hook.point.clone())));
        let in_place = task.is_none_or(|task| task.workspace.is_none());
        let meant = !(in_place && planned.scope == HookScope::Worktrees);
        meant && planned.scope.includes_work(kind.map(TypeName::as_str), agent, own)
    }
}

/// Returns the hooks whose conditions hold. A condition that cannot be evaluated is a problem: a gate runs all the same,
/// because it would stand open otherwise; other hooks do not run.
fn select_hooks<'p>(
    situation: EventContext<'_>,
    meant: impl Iterator<Item = &'p PlannedHook>,
) -> (Vec<HookEffect>, Vec<HookProblem>) {
    let (mut hooks, mut problems) = (Vec::new(), Vec::new());
    for planned in meant {
        let holds = planned.condition_holds(situation).unwrap_or_else(|fault| {
            // Tools have different inputs: a hook whose condition needs a missing field is for another tool.
            if situation.call.is_some() && fault.is_undefined() && !planned.hook.point.sends_back() {
                return false;
            }
            let why = format!("its condition cannot be answered: {fault}");
            problems.push(HookProblem { hooks: planned.hook.hook.clone(), why });
            planned.hook.class == HookClass::Gate || planned.hook.point.sends_back()
        });
        if holds {
            hooks.push(planned.hook.clone());
        }
    }
    (hooks, problems)
}

impl DecisionContext<'_, '_> {
    /// Puts the hooks of an event into the outbox. Returns the problems of their conditions.
    ///
    /// The configuration of the hooks is recorded before an event names it. Therefore that record itself enqueues no hooks.
    pub(super) fn enqueue_hooks(&mut self, envelope: &mut EventEnvelope) -> Result<Vec<HookProblem>, Refusal> {
        let event = envelope.event.kind();
        let rules = self.rules;
        let Some(effects) = &rules.effects else { return Ok(vec![]) };
        let planned = effects.hooks.get(&event);
        let by_itself =
            matches!(event, EventType::TurnFinished | EventType::SubmissionStarted | EventType::WorkflowTriggered);
        if (planned.is_none() && !by_itself) || event == EventType::ConfigRecorded {
            return Ok(vec![]);
        }
        let session = envelope.session.as_ref().map(|name| self.draft.find_session(name)).transpose()?.flatten();
        // Work on another base, or work that other hooks judged, has to pass the stop hooks first.
        let is_rejudged = matches!(&envelope.event, Event::SubmissionStarted(started)
            if started.rejudged || session.as_ref().is_some_and(|session| session.rejudged));
        let first = match event {
            EventType::TurnFinished => self.first_judge_hook(session.as_ref(), effects)?,
            _ if is_rejudged => self.first_judge_hook(session.as_ref(), effects)?,
            _ => None,
        };
        let workflow = workflow_effect(&envelope.event);
        let stop_hooks = effects.hooks.get(&EventType::TurnFinished).filter(|_| is_rejudged);
        if planned.is_none() && first.is_none() && workflow.is_none() && stop_hooks.is_none() {
            return Ok(vec![]);
        }
        let stops = self.stopping_session.is_some() && self.stopping_session == envelope.session;
        if would_be_skipped(event, session.as_ref(), &effects.owner, stops) {
            return Ok(vec![]);
        }
        let (task, session) = (self.task_after_event(envelope)?, session.as_ref());
        let nested = session.map_or(0, |session| session.nesting);
        let agent = match &envelope.event {
            // The session does not exist yet.
            Event::SessionStarted(started) => Some(started.agent.clone()),
            _ => session.map(|session| session.agent.clone()).or(self.call.map(|call| call.caller.agent.clone())),
        };
        let call = self.call.filter(|_| event == EventType::BridgeCalled);
        let is_meant = |planned: &&PlannedHook| {
            effects.applies_to_task(planned, task.as_ref(), agent.as_deref())
                && call.is_none_or(|call| planned.matches_call(call))
                && matcher_subject(event).is_none_or(|why| planned.matcher.matches_tool(why))
                && is_point_of_event(&planned.hook.point, &envelope.event)
        };
        let stop_hooks =
            stop_hooks.into_iter().flat_map(|planned| planned.iter()).filter(|it| it.hook.point == HookPoint::Stop);
        let meant = stop_hooks.chain(planned.into_iter().flat_map(|planned| planned.iter())).filter(is_meant);
        let task = self.event_or_session_task(task.clone(), session)?;
        // Work that is judged again was claimed to be done.
        let promise = self.claimed_promise.or(is_rejudged.then_some(Promise::Complete));
        let (task, project) = (task.as_ref(), &effects.project);
        let situation = EventContext { session, task, promise, call, project, ..EventContext::from_envelope(envelope) };
        let (mut hooks, mut problems) = select_hooks(situation, meant);
        if event == EventType::HookError {
            // A problem of a hook for errors would cause the next one.
            problems.clear();
        }
        hooks.extend(workflow);
        if effects.trust == ConfigTrust::No && !hooks.is_empty() {
            return Err(Refusal::Untrusted { hooks: hooks.into_iter().map(|hook| hook.hook).collect() });
        }
        hooks.splice(..0, first);
        if is_rejudged {
            let strict = session.is_some_and(|session| session.terms.strict);
            hooks
                .iter_mut()
                .filter(|hook| hook.point == HookPoint::Stop)
                .for_each(|hook| move_before_submission(hook, strict));
        }
        if hooks.is_empty() {
            return Ok(problems);
        }
        if let Some(why) = self.check_hook_budget(&hooks) {
            let names: Vec<&str> = hooks.iter().map(|hook| hook.hook.as_str()).collect();
            if !matches!(event, EventType::HookError | EventType::ActionError) {
                problems.push(HookProblem { hooks: names.join(", "), why: why.to_string() });
            }
            return Ok(problems);
        }
        if self.depth > 0 {
            self.current_budget().charge_events(hooks.len());
        }
        let config = self.record_hook_config(&effects.config)?;
        let (owner, nesting) = (effects.owner.clone(), self.current_budget().nesting().max(nested));
        envelope.metadata.owes = Some(HookBatch { config, owner, hooks, share: 0, nesting });
        Ok(problems)
    }

    /// Returns the hook that judges a turn before the configured hooks do, so that these see the validation results. It
    /// evaluates the rules of the configuration and of the task's series, and the stop hooks that are registered for the
    /// task.
    fn first_judge_hook(&self, session: Option<&Session>, effects: &HookPlan) -> Result<Option<HookEffect>, Refusal> {
        let Some(session) = session else { return Ok(None) };
        let task = session.task.map(|id| self.draft.find_task(id)).transpose()?.flatten();
        Ok(effects.first_judge_name(task.as_ref()).map(build_turn_judge))
    }

    /// Returns whether any hook judges the turns of a session.
    pub(super) fn has_stop_hooks(&self, session: &Session) -> Result<bool, Refusal> {
        let Some(effects) = &self.rules.effects else { return Ok(false) };
        let task = session.task.map(|id| self.draft.find_task(id)).transpose()?.flatten();
        let is_meant = |planned: &PlannedHook| {
            planned.hook.point == HookPoint::Stop
                && effects.applies_to_task(planned, task.as_ref(), Some(&session.agent))
        };
        let planned = effects.hooks.get(&EventType::TurnFinished).into_iter().flat_map(|planned| planned.iter());
        Ok(planned.into_iter().any(is_meant) || self.first_judge_hook(Some(session), effects)?.is_some())
    }

    /// Returns the task of an event, else that of its session.
    fn event_or_session_task(&self, task: Option<Task>, session: Option<&Session>) -> Result<Option<Task>, Refusal> {
        match (task, session.and_then(|session| session.task)) {
            (None, Some(id)) => Ok(self.draft.find_task(id)?),
            (task, _) => Ok(task),
        }
    }

    /// Returns why hooks may not be enqueued here. Only consequences of hooks are bounded.
    fn check_hook_budget(&mut self, hooks: &[HookEffect]) -> Option<Refusal> {
        let left = usize::try_from(self.current_budget().remaining_events()).unwrap_or(usize::MAX);
        let limit = match self.depth {
            0 => return None,
            depth if depth >= EngineLimits::CASCADE_DEPTH => format!("{} steps", EngineLimits::CASCADE_DEPTH),
            _ if left >= hooks.len() => return None,
            _ => format!("{} events", EngineLimits::CASCADE_EVENTS),
        };
        Some(Refusal::CascadeLimit { limit })
    }

    /// Records the problems of the last event's hooks.
    pub(super) fn report_hook_problems(&mut self, problems: Vec<HookProblem>) -> Result<(), Refusal> {
        let last = self.entries.len() - 1;
        let before = (self.cause, self.depth, self.budget_index);
        let node = self.entries[last].record.envelope.node;
        for HookProblem { hooks, why } in problems {
            let original_event = self.entries[last].record.original_event();
            self.descend_from_entry(last);
            self.emit_event(node, payload::HookError { hook_name: hooks, error: why, original_event, effect: None })?;
        }
        (self.cause, self.depth, self.budget_index) = before;
        Ok(())
    }

    /// Returns the task of an event as it will be after the event.
    fn task_after_event(&self, envelope: &EventEnvelope) -> Result<Option<Task>, Refusal> {
        let Some(id) = envelope.node.task_id() else { return Ok(None) };
        let changes = apply(&self.draft, self.draft.head_position()?.next(), envelope)?;
        let changed = changes.into_iter().find_map(|change| match change {
            RowChange::PutTask(task) if task.id == id => Some(*task),
            _ => None,
        });
        Ok(changed)
    }

    /// Records the configuration of the pending hooks.
    fn record_hook_config(&mut self, config: &ConfigText) -> Result<Digest, Refusal> {
        let config = match self.recorded_config {
            Some(config) => config,
            None => self.record_config_once(config.digest(), config)?,
        };
        self.recorded_config = Some(config);
        Ok(config)
    }

    pub(super) fn record_config_text(&mut self, text: &str) -> Result<Digest, Refusal> {
        self.record_config_once(Digest::of_bytes(text.as_bytes()), text)
    }

    fn record_config_once(&mut self, digest: Digest, text: &str) -> Result<Digest, Refusal> {
        if !self.draft.has_config(digest)? {
            self.emit_event_in(
                EventSubject::System,
                None,
                None,
                payload::ConfigRecorded { digest, text: text.to_owned() }.into(),
            )?;
        }
        Ok(digest)
    }
}

/// Returns the hook for validation rules and registered stop hooks, which the configuration does not list. The runner
/// decides which programs they may run.
fn build_turn_judge(name: &str) -> HookEffect {
    HookEffect {
        hook: name.to_owned(),
        point: HookPoint::Stop,
        class: HookClass::Gate,
        on_failure: HookFailurePolicy::Escalate,
        send_backs: None,
    }
}

/// Moves a stop hook to the gate before the submission. As at `stop`, an unknown result is no pass, unless the session is
/// lenient.
fn move_before_submission(hook: &mut HookEffect, strict: bool) {
    hook.point = HookPoint::BeforeSubmit;
    if hook.on_failure == HookFailurePolicy::Ignore && strict {
        hook.on_failure = HookFailurePolicy::Block;
    }
}

/// Returns whether a point belongs to an event. A project's facts share one event, and each of their types has a point.
fn is_point_of_event(point: &HookPoint, event: &Event) -> bool {
    match (event, point) {
        (Event::FactLogged(fact), HookPoint::Fact(kind)) => fact.kind == *kind,
        (Event::FactLogged(_), point) => *point == HookPoint::Event(EventType::FactLogged),
        _ => true,
    }
}

/// Returns the subject that matchers see when one of our sessions reaches a point that agents call too. The words are those
/// of Claude Code.
fn matcher_subject(event: EventType) -> Option<&'static str> {
    match event {
        EventType::SessionStarted => Some("startup"),
        EventType::SessionEnded => Some("other"),
        _ => None,
    }
}

/// Returns whether the loop would skip the hooks of this event in this same commit, before they have a position. A session
/// that is about to end waits only for the hooks of its end.
fn would_be_skipped(event: EventType, session: Option<&Session>, owner: &OwnerName, stops: bool) -> bool {
    let Some(session) = session else { return false };
    let stopping = stops || session.stopping.is_some() || event == EventType::SessionStopping;
    let ended = session.ending_kind().is_some() || event == EventType::SessionEnded;
    stopping && !ended && session.owner == *owner
}

/// The start of the name of a hook that runs a triggered workflow.
pub const WORKFLOW_HOOK_PREFIX: &str = "workflow: ";

/// Returns the workflow that an event asks for.
fn workflow_effect(event: &Event) -> Option<HookEffect> {
    let Event::WorkflowTriggered(triggered) = event else { return None };
    Some(HookEffect {
        hook: format!("{WORKFLOW_HOOK_PREFIX}{}", triggered.workflow_id),
        point: HookPoint::Event(EventType::WorkflowTriggered),
        class: HookClass::Workflow,
        on_failure: HookFailurePolicy::Ignore,
        send_backs: None,
    })
}
