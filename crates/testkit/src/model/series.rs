//! The expected outcome of commands of self-driving agents.

use windlass_engine::{
    Authority, Command, EvaluationFindings, EvaluationPurpose, NewIterationSeries, Promise, RuleAction, TaskId,
};

use super::{Attempt, Model, Phase};
use windlass_engine::TaskState::{
    Active, Blocked, Completed, Created, Deleted, Failed, NeedsContinuation, Ready, Submitted,
};

/// The hooks, the series and the checkpoints of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeriesRecord {
    /// Whether each hook was registered from inside a session.
    pub hooks: Vec<bool>,
    pub series: Option<SeriesState>,
    /// The number of checkpoints so far.
    pub checkpoints: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesState {
    pub iteration: u32,
    pub most: u32,
    pub promises: Vec<Promise>,
    pub strict: bool,
    /// Whether the series was started from inside a session.
    pub inside: bool,
    /// Whether the last evaluation judged this iteration complete.
    pub complete: bool,
    /// Whether the loop of a session has judged this iteration.
    pub judged: bool,
}

impl Model {
    /// Ends the series of tasks that have ended.
    pub(super) fn stop_driving(&mut self) {
        for node in self.tasks.values_mut() {
            if matches!(node.phase, Phase::Completed | Phase::Failed | Phase::Deleted) {
                node.driven.series = None;
            }
            if node.phase == Phase::Deleted {
                node.driven.hooks.clear();
            }
        }
    }
}

impl Attempt<'_> {
    pub(super) fn drive(&mut self, command: &Command) -> Option<()> {
        match command {
            Command::RegisterHook { task, .. } => {
                let inside = self.session_around().is_some();
                let driven = self.unended(*task)?;
                driven.hooks.push(inside);
                (driven.hooks.len() <= 20).then_some(())
            }
            Command::ClearHooks { task, .. } => {
                let is_agent = self.is_agent() || self.session_around().is_some();
                self.driven(*task)?.hooks.retain(|inside| is_agent && !inside);
                Some(())
            }
            Command::SwitchHook { task, .. } => {
                let is_agent = self.is_agent() || self.session_around().is_some();
                let inside = *self.driven(*task)?.hooks.first()?;
                (inside || !is_agent).then_some(())
            }
            Command::StartSeries { task, new } => self.start_series(*task, new),
            Command::JudgeSeries { task, judging, .. } => self.judge(*task, judging),
            Command::AdvanceSeries { task, .. } => {
                (self.state(*task)? != Blocked).then_some(())?;
                let is_driven = self.is_inside(*task);
                let turns = self.unended(*task)?.series.as_mut()?;
                (turns.inside || !is_driven).then_some(())?;
                turns.iteration += 1;
                (turns.complete, turns.judged) = (false, false);
                (turns.iteration <= turns.most).then_some(())
            }
            Command::CompleteSeries { task, promise, .. } => self.complete_series(*task, *promise),
            Command::CreateCheckpoint { task, .. } => {
                (self.state(*task)? != Deleted).then_some(())?;
                self.driven(*task)?.checkpoints += 1;
                Some(())
            }
            _ => None,
        }
    }

    fn start_series(&mut self, task: TaskId, new: &NewIterationSeries) -> Option<()> {
        (new.max_iterations > 0 && !new.promises.is_empty()).then_some(())?;
        let is_agent = self.is_agent();
        let driven = self.unended(task)?;
        (!is_agent || driven.series.as_ref().is_none_or(|series| series.inside)).then_some(())?;
        if self.state(task)? != Active {
            self.may_start(task).then_some(())?;
            self.leave_state(task, &[Ready, NeedsContinuation], &[Created, Blocked])?.phase = Phase::Active;
        } else if !self.is_inside(task) {
            self.leave_state(task, &[Active], &[])?;
        }
        let (most, promises, strict) = (new.max_iterations, new.promises.clone(), new.strict);
        let inside = self.session_around().is_some();
        self.driven(task)?.series =
            Some(SeriesState { iteration: 1, most, promises, strict, inside, complete: false, judged: false });
        Some(())
    }

    /// Returns whether the command comes from inside a session's turn.
    pub(super) fn is_agent(&self) -> bool {
        self.origin.run.as_ref().is_some_and(|run| self.session(&run.session).is_some())
    }

    /// Returns whether the command comes from inside a turn of the session that holds the task.
    fn is_inside(&self, task: TaskId) -> bool {
        let session = self.origin.run.as_ref().and_then(|run| self.session(&run.session));
        session.is_some_and(|session| session.task == Some(task) && session.holds())
            && self.origin.authority != Authority::Forced
    }

    fn judge(&mut self, task: TaskId, judging: &EvaluationFindings) -> Option<()> {
        let driven = self.driven(task)?;
        let turns = driven.series.as_mut()?;
        let action = judging.decision.as_ref().map(|decision| decision.ruling.action);
        if judging.asked == EvaluationPurpose::Validation {
            let said = match action {
                Some(action) => action == RuleAction::Complete,
                None => judging.promises.contains(&Promise::Complete),
            };
            turns.complete = said && (judging.has_passed() || !turns.strict);
        }
        let wants = judging.decision.as_ref().is_some_and(|decision| decision.ruling.checkpoint_data.is_some());
        if wants && action == Some(RuleAction::Continue) {
            driven.checkpoints += 1;
        }
        Some(())
    }

    fn complete_series(&mut self, task: TaskId, promise: Promise) -> Option<()> {
        let is_agent = self.is_agent();
        let driven = self.unended(task)?;
        let turns = driven.series.clone()?;
        // An agent cannot end a series that was started outside of sessions.
        driven.series.take_if(|turns| !is_agent || turns.inside);
        let believed = !turns.strict || turns.complete || promise != Promise::Complete;
        (turns.promises.contains(&promise) && believed).then_some(())?;
        match promise {
            Promise::Complete => self.complete(task),
            Promise::Blocked | Promise::Escalate => {
                let from = [Created, Ready, Active, Submitted, NeedsContinuation];
                self.release_task(task, &from, &[], Phase::Blocked(None))
            }
        }
    }

    fn driven(&mut self, task: TaskId) -> Option<&mut SeriesRecord> {
        Some(&mut self.node(task)?.driven)
    }

    fn unended(&mut self, task: TaskId) -> Option<&mut SeriesRecord> {
        (!matches!(self.state(task)?, Completed | Failed | Deleted)).then_some(())?;
        self.driven(task)
    }
}
