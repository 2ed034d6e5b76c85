//! The pure hooks of a commit's events, and the actions that they ask for.
//!
//! Invariant: it terminates. Depth and the number of events are bounded; the rest is refused and recorded.

use serde_json::Value;

use super::{CauseRef, DecisionContext};
use crate::command::TaskPatch;
use crate::command::limits::EngineLimits;
use crate::command::refusal::Refusal;
use crate::effects::action::{ActionRequest, HookAction, TaskAction, is_stateless_event};
use crate::effects::registry::PureHookError;
use crate::log::event::{EventSubject, payload};
use crate::log::event_type::EventType;
use crate::log::id::TaskId;
use crate::view::StateView;

impl DecisionContext<'_, '_> {
    /// Runs the pure hooks of every event, and then the session that waits for them.
    pub(super) fn run_cascade(&mut self) -> Result<(), Refusal> {
        self.run_pure_hooks()?;
        while let Some(name) = self.waiting_session.take() {
            self.decide_next_steps(&name)?;
            self.run_pure_hooks()?;
        }
        Ok(())
    }

    fn run_pure_hooks(&mut self) -> Result<(), Refusal> {
        while self.dispatched_entries < self.entries.len() {
            let next = self.dispatched_entries;
            if self.reaches_pure_hooks(next) {
                for action in self.collect_hook_actions(next)? {
                    self.perform_hook_action(next, &action)?;
                }
            }
            self.dispatched_entries += 1;
        }
        Ok(())
    }

    /// Returns whether the hooks of an event run. Errors beyond the limits are only recorded: hooks for errors that cause
    /// errors would never end.
    fn reaches_pure_hooks(&self, index: usize) -> bool {
        let record = &self.entries[index].record;
        let is_error = matches!(record.kind(), EventType::HookError | EventType::ActionError);
        !is_error
            || (record.envelope.metadata.depth <= EngineLimits::CASCADE_DEPTH
                && self.budgets[self.entry_budgets[index]].remaining_events() > 0)
    }

    /// Returns the actions that the hooks of an event ask for, in their order. A failing hook is recorded, and the others
    /// still run.
    fn collect_hook_actions(&mut self, index: usize) -> Result<Vec<HookAction>, Refusal> {
        let rules = self.rules;
        let mut actions = Vec::new();
        for hook in rules.registry.hooks_for_event(self.entries[index].record.kind()) {
            let record = &self.entries[index].record;
            match hook.run_handler(record, &self.draft) {
                Ok(answer) => actions.extend(answer),
                Err(PureHookError::View(error)) => return Err(error.into()),
                Err(PureHookError::Failed(mut error)) => {
                    error.truncate(error.floor_char_boundary(EngineLimits::REASON_BYTES));
                    let (node, original_event) = (record.envelope.node, record.original_event());
                    let failed =
                        payload::HookError { hook_name: hook.name.clone(), error, original_event, effect: None };
                    self.descend_from_entry(index);
                    self.emit_event(node, failed)?;
                    self.current_budget().charge_events(1);
                }
            }
        }
        Ok(actions)
    }

    /// Performs one action of a pure hook.
    fn perform_hook_action(&mut self, index: usize, action: &HookAction) -> Result<(), Refusal> {
        self.descend_from_entry(index);
        self.attempt_action(Ok(action.clone()), || (action.name().to_owned(), action.error_payload()))
    }

    /// Performs an action of an effectful hook, at the depth of the hook itself.
    pub(super) fn perform_hook_request(&mut self, index: usize, request: &ActionRequest) -> Result<(), Refusal> {
        let depth = self.entries[index].record.envelope.metadata.depth;
        self.descend_from_entry(index);
        self.depth = depth;
        let action = request.parse_action().and_then(|action| self.check_action_leases(&action).map(|()| action));
        self.attempt_action(action, || (request.kind.clone(), request.payload.clone()))
    }

    /// Refuses to move a task that is held. The registry's hooks are part of the rules and may do so; a configuration's
    /// hooks may not.
    pub(super) fn check_action_leases(&self, action: &HookAction) -> Result<(), Refusal> {
        let HookAction::UpdateTask { task, action } = action else { return Ok(()) };
        let relabels =
            matches!(action, TaskAction::SetLabels(_) | TaskAction::AddLabels(_) | TaskAction::RemoveLabels(_));
        match self.draft.find_task(*task)?.and_then(|task| task.lease).filter(|_| !relabels) {
            None => Ok(()),
            Some(lease) => Err(Refusal::Held { id: *task, lease: Box::new(lease) }),
        }
    }

    /// Performs an action. A refused action is recorded, and the command still succeeds.
    fn attempt_action(
        &mut self,
        action: Result<HookAction, Refusal>,
        said: impl FnOnce() -> (String, Value),
    ) -> Result<(), Refusal> {
        let before = self.entries.len();
        match action.and_then(|action| self.perform_within_bounds(&action)) {
            Ok(()) => Ok(()),
            Err(refusal) if refusal.is_fatal() => Err(refusal),
            Err(refusal) => {
                debug_assert_eq!(self.entries.len(), before, "a refused action leaves nothing behind");
                let (action_type, payload) = said();
                self.current_budget().charge_events(1);
                self.emit_event(
                    EventSubject::System,
                    payload::ActionError { action_type, error: refusal.to_string(), payload },
                )
                .map(drop)
            }
        }
    }

    /// Performs an action if the budget allows it. The charge comes before that of the hooks which the action enqueues.
    pub(super) fn perform_within_bounds(&mut self, action: &HookAction) -> Result<(), Refusal> {
        if self.depth > EngineLimits::CASCADE_DEPTH {
            return Err(Refusal::CascadeLimit { limit: format!("{} steps", EngineLimits::CASCADE_DEPTH) });
        }
        if !action.counts_towards_limit() {
            return self.perform_action(action);
        }
        let needed = action.events_needed();
        if usize::try_from(self.current_budget().remaining_events()).is_ok_and(|left| left < needed) {
            return Err(Refusal::CascadeLimit { limit: format!("{} events", EngineLimits::CASCADE_EVENTS) });
        }
        let before = self.entries.len();
        self.current_budget().charge_events(needed);
        let performed = self.perform_action(action);
        let made = self.entries.len() - before;
        self.current_budget().correct_charge(needed, made);
        performed
    }

    fn perform_action(&mut self, action: &HookAction) -> Result<(), Refusal> {
        match action {
            HookAction::CreateTask(new) => self.create_task(new).map(drop),
            HookAction::UpdateTask { task, action } => self.perform_task_action(*task, action),
            HookAction::ExecuteWorkflow { id, context, task } => {
                let about = || match self.cause {
                    Some(CauseRef::Entry(index)) => self.entries[index].record.envelope.node.task_id(),
                    _ => None,
                };
                self.trigger_workflow(id, context, task.or_else(about))
            }
            HookAction::Log { node, event } if is_stateless_event(event.kind()) => {
                if let Some(id) = node.task_id() {
                    self.require_task(id)?;
                }
                self.emit_event(*node, event.clone()).map(drop)
            }
            HookAction::Log { event, .. } => Err(Refusal::invalid_input(
                "a log action",
                format!("cannot make a `{}`: that event changes state", event.kind()),
            )),
        }
    }
}

impl DecisionContext<'_, '_> {
    fn perform_task_action(&mut self, id: TaskId, action: &TaskAction) -> Result<(), Refusal> {
        match action {
            TaskAction::Ready { after } => self.make_task_ready(id, *after),
            TaskAction::Start { context } => self.start_task(id, context),
            TaskAction::Complete { result, artifacts } => self.complete_task(id, result.as_deref(), artifacts),
            TaskAction::Block { reason, required_knowledge } => self.block_task(id, reason, required_knowledge),
            TaskAction::Unblock => self.unblock_task(id),
            TaskAction::Fail { reason } => self.fail_task(id, reason),
            TaskAction::SetLabels(labels) => {
                self.update_task(id, &TaskPatch { labels: Some(labels.clone()), ..TaskPatch::default() })
            }
            TaskAction::AddLabels(labels) => {
                self.update_task(id, &TaskPatch { add_labels: labels.clone(), ..TaskPatch::default() })
            }
            TaskAction::RemoveLabels(labels) => {
                self.update_task(id, &TaskPatch { remove_labels: labels.clone(), ..TaskPatch::default() })
            }
        }
    }
}
