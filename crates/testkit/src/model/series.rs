//! The expected outcome of commands of self-driving agents.

use windlass_engine::{
    Authority, Command, EvaluationFindings, EvaluationPurpose, NewIterationSeries, Promise, RuleAction, TaskId,
};

use super::{CommandAttempt, EngineModel, TaskPhase};
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
    pub max_iterations: u32,
    pub promises: Vec<Promise>,
    pub strict: bool,
    /// Whether the series was started from inside a session.
    pub inside: bool,
    /// Whether the last evaluation judged this iteration complete.
    pub complete: bool,
    /// Whether the loop of a session has judged this iteration.
    pub judged: bool,
}

impl EngineModel {
    /// Ends the series of tasks that have ended.
    pub(super) fn end_finished_series(&mut self) {
        for node in self.tasks.values_mut() {
            if matches!(node.phase, TaskPhase::Completed | TaskPhase::Failed | TaskPhase::Deleted) {
                node.series_record.series = None;
            }
            if node.phase == TaskPhase::Deleted {
                node.series_record.hooks.clear();
            }
        }
    }
}

impl CommandAttempt<'_> {
    pub(super) fn run_series_command(&mut self, command: &Command) -> Option<()> {
        match command {
            Command::RegisterHook { task, .. } => {
                let inside = self.surrounding_session().is_some();
                let record = self.unended_series_record(*task)?;
                record.hooks.push(inside);
                (record.hooks.len() <= 20).then_some(())
            }
            Command::ClearHooks { task, .. } => {
                let is_agent = self.is_agent() || self.surrounding_session().is_some();
                self.series_record(*task)?.hooks.retain(|inside| is_agent && !inside);
                Some(())
            }
            Command::SwitchHook { task, .. } => {
                let is_agent = self.is_agent() || self.surrounding_session().is_some();
                let inside = *self.series_record(*task)?.hooks.first()?;
                (inside || !is_agent).then_some(())
            }
            Command::StartSeries { task, new } => self.start_series(*task, new),
            Command::JudgeSeries { task, judging, .. } => self.judge_series(*task, judging),
            Command::AdvanceSeries { task, .. } => {
                (self.state(*task)? != Blocked).then_some(())?;
                let is_driven = self.is_inside(*task);
                let series_state = self.unended_series_record(*task)?.series.as_mut()?;
                (series_state.inside || !is_driven).then_some(())?;
                series_state.iteration += 1;
                (series_state.complete, series_state.judged) = (false, false);
                (series_state.iteration <= series_state.max_iterations).then_some(())
            }
            Command::CompleteSeries { task, promise, .. } => self.complete_series(*task, *promise),
            Command::CreateCheckpoint { task, .. } => {
                (self.state(*task)? != Deleted).then_some(())?;
                self.series_record(*task)?.checkpoints += 1;
                Some(())
            }
            _ => None,
        }
    }

    fn start_series(&mut self, task: TaskId, new: &NewIterationSeries) -> Option<()> {
        (new.max_iterations > 0 && !new.promises.is_empty()).then_some(())?;
        let is_agent = self.is_agent();
        let record = self.unended_series_record(task)?;
        (!is_agent || record.series.as_ref().is_none_or(|series| series.inside)).then_some(())?;
        if self.state(task)? != Active {
            self.may_start(task).then_some(())?;
            self.leave_state(task, &[Ready, NeedsContinuation], &[Created, Blocked])?.phase = TaskPhase::Active;
        } else if !self.is_inside(task) {
            self.leave_state(task, &[Active], &[])?;
        }
        let (max_iterations, promises, strict) = (new.max_iterations, new.promises.clone(), new.strict);
        let inside = self.surrounding_session().is_some();
        self.series_record(task)?.series = Some(SeriesState {
            iteration: 1,
            max_iterations,
            promises,
            strict,
            inside,
            complete: false,
            judged: false,
        });
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

    fn judge_series(&mut self, task: TaskId, judging: &EvaluationFindings) -> Option<()> {
        let record = self.series_record(task)?;
        let series_state = record.series.as_mut()?;
        let action = judging.decision.as_ref().map(|decision| decision.ruling.action);
        if judging.asked == EvaluationPurpose::Validation {
            let claims_complete = match action {
                Some(action) => action == RuleAction::Complete,
                None => judging.promises.contains(&Promise::Complete),
            };
            series_state.complete = claims_complete && (judging.has_passed() || !series_state.strict);
        }
        let wants = judging.decision.as_ref().is_some_and(|decision| decision.ruling.checkpoint_data.is_some());
        if wants && action == Some(RuleAction::Continue) {
            record.checkpoints += 1;
        }
        Some(())
    }

    fn complete_series(&mut self, task: TaskId, promise: Promise) -> Option<()> {
        let is_agent = self.is_agent();
        let record = self.unended_series_record(task)?;
        let series_state = record.series.clone()?;
        // An agent cannot end a series that was started outside of sessions.
        record.series.take_if(|series_state| !is_agent || series_state.inside);
        let is_believed = !series_state.strict || series_state.complete || promise != Promise::Complete;
        (series_state.promises.contains(&promise) && is_believed).then_some(())?;
        match promise {
            Promise::Complete => self.complete_task(task),
            Promise::Blocked | Promise::Escalate => {
                let from = [Created, Ready, Active, Submitted, NeedsContinuation];
                self.release_task(task, &from, &[], TaskPhase::Blocked(None))
            }
        }
    }

    fn series_record(&mut self, task: TaskId) -> Option<&mut SeriesRecord> {
        Some(&mut self.node(task)?.series_record)
    }

    fn unended_series_record(&mut self, task: TaskId) -> Option<&mut SeriesRecord> {
        (!matches!(self.state(task)?, Completed | Failed | Deleted)).then_some(())?;
        self.series_record(task)
    }
}
