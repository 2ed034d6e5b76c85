//! The pure hooks of a commit's events, and the actions that they ask for.
//!
//! Invariant: it terminates. Depth and the number of events are bounded; the rest is refused and recorded.

use serde_json::Value;

use super::{Causing, Deciding};
use crate::command::TaskPatch;
use crate::command::limits::Limits;
use crate::command::refusal::Refusal;
use crate::effects::action::{Action, ActionRequest, TaskAction, is_stateless};
use crate::effects::registry::HookFault;
use crate::log::event::{Node, payload};
use crate::log::event_type::EventType;
use crate::log::id::TaskId;
use crate::view::View;

impl Deciding<'_, '_> {
    /// Runs the pure hooks of every event, and then the session that waits for them.
    pub(super) fn hear_and_go_on(&mut self) -> Result<(), Refusal> {
        self.run_hooks()?;
        while let Some(name) = self.waiting.take() {
            self.advance(&name)?;
            self.run_hooks()?;
        }
        Ok(())
    }

    fn run_hooks(&mut self) -> Result<(), Refusal> {
        while self.heard < self.entries.len() {
            let next = self.heard;
            if self.is_heard(next) {
                for action in self.answers(next)? {
                    self.act(next, &action)?;
                }
            }
            self.heard += 1;
        }
        Ok(())
    }

    /// Returns whether the hooks of an event run. Errors beyond the limits are only recorded: hooks for errors that cause
    /// errors would never end.
    fn is_heard(&self, index: usize) -> bool {
        let record = &self.entries[index].record;
        let is_error = matches!(record.kind(), EventType::HookError | EventType::ActionError);
        !is_error || (record.envelope.metadata.depth <= Limits::DEPTH && self.lines[self.descent[index]].left() > 0)
    }

    /// Returns the actions that the hooks of an event ask for, in their order. A failing hook is recorded, and the others
    /// still run.
    fn answers(&mut self, index: usize) -> Result<Vec<Action>, Refusal> {
        let rules = self.rules;
        let mut actions = Vec::new();
        for hook in rules.registry.for_event(self.entries[index].record.kind()) {
            let record = &self.entries[index].record;
            match hook.ask(record, &self.draft) {
                Ok(answer) => actions.extend(answer),
                Err(HookFault::View(error)) => return Err(error.into()),
                Err(HookFault::Failed(mut error)) => {
                    error.truncate(error.floor_char_boundary(Limits::REASON));
                    let (node, original_event) = (record.envelope.node, record.original());
                    let failed =
                        payload::HookError { hook_name: hook.name.clone(), error, original_event, effect: None };
                    self.caused_by(index);
                    self.emit(node, failed)?;
                    self.line().add(1);
                }
            }
        }
        Ok(actions)
    }

    /// Performs one action of a pure hook.
    fn act(&mut self, index: usize, action: &Action) -> Result<(), Refusal> {
        self.caused_by(index);
        self.attempt(Ok(action.clone()), || (action.name().to_owned(), action.payload()))
    }

    /// Performs an action of an effectful hook, at the depth of the hook itself.
    pub(super) fn act_on(&mut self, index: usize, request: &ActionRequest) -> Result<(), Refusal> {
        let depth = self.entries[index].record.envelope.metadata.depth;
        self.caused_by(index);
        self.depth = depth;
        let action = request.parse().and_then(|action| self.respects_leases(&action).map(|()| action));
        self.attempt(action, || (request.kind.clone(), request.payload.clone()))
    }

    /// Refuses to move a task that is held. The registry's hooks are part of the rules and may do so; a configuration's
    /// hooks may not.
    pub(super) fn respects_leases(&self, action: &Action) -> Result<(), Refusal> {
        let Action::UpdateTask { task, action } = action else { return Ok(()) };
        let relabels =
            matches!(action, TaskAction::SetLabels(_) | TaskAction::AddLabels(_) | TaskAction::RemoveLabels(_));
        match self.draft.task(*task)?.and_then(|task| task.lease).filter(|_| !relabels) {
            None => Ok(()),
            Some(lease) => Err(Refusal::Held { id: *task, lease: Box::new(lease) }),
        }
    }

    /// Performs an action. A refused action is recorded, and the command still succeeds.
    fn attempt(
        &mut self,
        action: Result<Action, Refusal>,
        said: impl FnOnce() -> (String, Value),
    ) -> Result<(), Refusal> {
        let before = self.entries.len();
        match action.and_then(|action| self.within_bounds(&action)) {
            Ok(()) => Ok(()),
            Err(refusal) if refusal.is_fatal() => Err(refusal),
            Err(refusal) => {
                debug_assert_eq!(self.entries.len(), before, "a refused action leaves nothing behind");
                let (action_type, payload) = said();
                self.line().add(1);
                self.emit(Node::System, payload::ActionError { action_type, error: refusal.to_string(), payload })
                    .map(drop)
            }
        }
    }

    /// Performs an action if the budget allows it. The charge comes before that of the hooks which the action enqueues.
    pub(super) fn within_bounds(&mut self, action: &Action) -> Result<(), Refusal> {
        if self.depth > Limits::DEPTH {
            return Err(Refusal::CascadeLimit { limit: format!("{} steps", Limits::DEPTH) });
        }
        if !action.counts() {
            return self.perform(action);
        }
        let needed = action.events();
        if usize::try_from(self.line().left()).is_ok_and(|left| left < needed) {
            return Err(Refusal::CascadeLimit { limit: format!("{} events", Limits::EVENTS) });
        }
        let before = self.entries.len();
        self.line().add(needed);
        let performed = self.perform(action);
        let made = self.entries.len() - before;
        self.line().correct(needed, made);
        performed
    }

    fn perform(&mut self, action: &Action) -> Result<(), Refusal> {
        match action {
            Action::CreateTask(new) => self.create(new).map(drop),
            Action::UpdateTask { task, action } => self.change_task(*task, action),
            Action::ExecuteWorkflow { id, context, task } => {
                let about = || match self.cause {
                    Some(Causing::Entry(index)) => self.entries[index].record.envelope.node.task(),
                    _ => None,
                };
                self.trigger_workflow(id, context, task.or_else(about))
            }
            Action::Log { node, event } if is_stateless(event.kind()) => {
                if let Some(id) = node.task() {
                    self.task(id)?;
                }
                self.emit(*node, event.clone()).map(drop)
            }
            Action::Log { event, .. } => {
                Err(Refusal::invalid("a log action", format!("cannot make a `{}`: that bears state", event.kind())))
            }
        }
    }
}

impl Deciding<'_, '_> {
    fn change_task(&mut self, id: TaskId, action: &TaskAction) -> Result<(), Refusal> {
        match action {
            TaskAction::Ready { after } => self.make_ready(id, *after),
            TaskAction::Start { context } => self.start(id, context),
            TaskAction::Complete { result, artifacts } => self.complete(id, result.as_deref(), artifacts),
            TaskAction::Block { reason, required_knowledge } => self.block(id, reason, required_knowledge),
            TaskAction::Unblock => self.unblock(id),
            TaskAction::Fail { reason } => self.fail(id, reason),
            TaskAction::SetLabels(labels) => {
                self.update(id, &TaskPatch { labels: Some(labels.clone()), ..TaskPatch::default() })
            }
            TaskAction::AddLabels(labels) => {
                self.update(id, &TaskPatch { add_labels: labels.clone(), ..TaskPatch::default() })
            }
            TaskAction::RemoveLabels(labels) => {
                self.update(id, &TaskPatch { remove_labels: labels.clone(), ..TaskPatch::default() })
            }
        }
    }
}
