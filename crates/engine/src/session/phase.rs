//! The next steps of work that is on its way through the gates.

use super::{Closing, Ending, Hold, Phase, Session, Step, Wanted, Work};
use crate::command::limits::Limits;
use crate::delivery::{Broken, Gate, Grounds, Pipeline, Remedy, Stage, Stalled, Why};
use crate::log::event::payload;
use crate::log::id::{Seq, TaskId};
use crate::session::{Leave, Next};

impl Session {
    /// Submits work that is done. For a report and for work in a worktree, the runner has to find the work first.
    pub(super) fn submit(&self, closing: &Closing) -> Step {
        match (self.grounds, &self.stopping) {
            (Grounds::InPlace, None) if self.report => Step::Wait(Wanted::Work),
            (Grounds::InPlace, Some(asked)) if self.report => self.close(asked),
            (Grounds::InPlace, _) => Step::Submit(closing.clone()),
            (Grounds::Worktrees, None) => Step::Wait(Wanted::Work),
            (Grounds::Worktrees, Some(asked)) => self.close(asked),
        }
    }

    pub(super) fn pass_on(&self, pipeline: &Pipeline) -> Step {
        if self.hold != Hold::Left && pipeline.merged {
            return Step::LeaveTask(Leave::Completed);
        }
        match (&self.stopping, self.hold) {
            (Some(asked), Hold::Left) if !self.finished => return self.close(asked),
            (asked, Hold::Left) => {
                let is_escalated = asked.as_ref().is_some_and(|asked| asked.ending == Ending::Escalated);
                let objection = pipeline.objection.as_ref().filter(|_| self.finished && !is_escalated);
                return match objection {
                    Some(objection) => self.close(&Closing::because(Ending::Escalated, objection.clone())),
                    None => self.close_decided(&pipeline.closing),
                };
            }
            _ => {}
        }
        match (&self.stopping, pipeline.stage, &pipeline.broken) {
            (Some(asked), ..) => self.close(asked),
            (None, _, Some(_)) => Step::FailGate,
            (None, _, None) if self.is_held_back() => Step::HearFirst,
            (None, Stage::Submitting, None) => Step::PassSubmission,
            (None, Stage::Submitted, None) => Step::StartMerge,
            (None, Stage::Merging, None) => Step::LeaveTask(Leave::Completed),
        }
    }

    /// Returns the event whose stop hooks judge the work again before it is submitted, while they do so.
    pub fn rejudged_at(&self) -> Option<Seq> {
        let Phase::Pipeline(pipeline) = &self.phase else { return None };
        pipeline.rejudged.then_some(pipeline.at)
    }

    /// Returns whether the session has had no iteration on a task whose work was judged done before.
    pub(crate) fn may_resume(&self) -> bool {
        let idle = matches!(self.phase, Phase::Started | Phase::Settled(Next::Continue) | Phase::Postponed(_));
        self.resumes && idle && self.epoch().is_some() && self.workspace.is_some()
    }

    /// Returns the stalled work to store with the task, if a gate could not be asked about it.
    pub(crate) fn stalled_by(&self, failed: &payload::PipelineFailed) -> Option<Stalled> {
        let could_not_be_asked = (failed.why, failed.remedy) == (Why::Failed, Remedy::GiveUp);
        self.stalled_at(failed.gate).filter(|_| could_not_be_asked)
    }

    /// Returns the stalled work to store with the task, if the session ends during delivery and no hook has blocked.
    pub(crate) fn stalled_on_its_way(&self) -> Option<Stalled> {
        let Phase::Pipeline(pipeline) = &self.phase else { return None };
        let gate = match (pipeline.broken.as_ref().map(|broken| broken.why), pipeline.stage) {
            (None | Some(Why::Failed), Stage::Submitted | Stage::Merging) => Gate::BeforeMerge,
            (None | Some(Why::Failed), Stage::Submitting) | (Some(Why::Moved), _) => Gate::BeforeSubmit,
            (Some(Why::Blocked | Why::Conflicts | Why::Escalated | Why::Said), _) => return None,
        };
        self.stalled_at(gate)
    }

    fn stalled_at(&self, gate: Gate) -> Option<Stalled> {
        let Phase::Pipeline(pipeline) = &self.phase else { return None };
        Some(Stalled {
            gate,
            head: pipeline.work.as_ref()?.head.clone(),
            config: self.config,
            agent: self.agent.clone(),
            claim: None,
            unstarted: pipeline.broken.as_ref().is_some_and(|broken| broken.unstarted),
            checked: self.checked,
            rejudged: self.rejudged || pipeline.rejudged && pipeline.stage == Stage::Submitting,
            waived: pipeline.closing.reason.clone(),
        })
    }

    /// Returns whether the gate before submission has passed the work of this task.
    pub(crate) fn passes_submission(&self, id: TaskId) -> bool {
        let Phase::Pipeline(pipeline) = &self.phase else { return false };
        let passed = self.owed.is_empty() && pipeline.broken.is_none();
        self.task == Some(id) && self.epoch().is_some() && pipeline.stage == Stage::Submitting && passed
    }

    /// Leaves the task for a later run.
    pub(super) fn give_up(&self, reason: &str) -> Step {
        let closing = || Closing { ending: Ending::Limit, reason: Some(reason.to_owned()) };
        match (&self.stopping, self.work) {
            _ if self.epoch().is_some() => Step::LeaveTask(Leave::Unfinished(reason.to_owned())),
            (Some(asked), _) => self.close(asked),
            (None, Work::Graph) => Step::TakeTask,
            (None, Work::Given) if self.has_lost_its_task() => Step::EndWithout(closing()),
            (None, Work::Given) => self.close(&closing()),
        }
    }

    /// Returns whether a hook that has not started is skipped: its gate is decided, or the task is no longer held.
    pub(crate) fn needs_no(&self, hook: crate::log::id::EffectId) -> bool {
        let Phase::Pipeline(pipeline) = &self.phase else { return false };
        pipeline.is_decided(hook.seq) || (pipeline.at == hook.seq && self.hold == Hold::Left)
    }

    /// Returns whether a gate's hook must not start now, because a person's message comes first. A running hook still
    /// finishes.
    pub(crate) fn need_not_begin(&self, hook: crate::log::id::EffectId) -> bool {
        let Phase::Pipeline(pipeline) = &self.phase else { return false };
        pipeline.at == hook.seq && !pipeline.merged && self.is_held_back()
    }

    /// Returns the remedy for a gate that did not pass, with the number of the attempt and the limit.
    pub(crate) fn remedy(&self, gate: Gate, broken: &Broken, rejections: u32) -> (Remedy, u32, u32) {
        let mended = (self.remediations + 1, self.terms.max_remediations);
        let rejected = (rejections + 1, self.terms.max_rejections);
        let mend = match self.remediations < self.terms.max_remediations && self.exhausted().is_none() {
            true => Remedy::Remediate,
            false => Remedy::GiveUp,
        };
        let (remedy, (count, most)) = match (gate, broken.why) {
            (_, Why::Escalated) => (Remedy::Escalate, mended),
            (_, Why::Failed) => (Remedy::GiveUp, mended),
            (_, Why::Said) => (Remedy::Hear, (0, 0)),
            (_, Why::Moved) if self.rechecks < Limits::RECHECKS => {
                (Remedy::Again, (self.rechecks + 1, Limits::RECHECKS))
            }
            (_, Why::Moved) => (Remedy::GiveUp, (self.rechecks, Limits::RECHECKS)),
            (Gate::BeforeMerge, Why::Blocked) if rejected.0 <= rejected.1 => (Remedy::Reject, rejected),
            (Gate::BeforeMerge, Why::Blocked) => (Remedy::Escalate, rejected),
            (Gate::BeforeSubmit, Why::Blocked) | (_, Why::Conflicts) => (mend, mended),
        };
        (remedy, count, most)
    }
}
