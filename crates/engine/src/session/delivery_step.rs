//! The next steps of work that is on its way through the gates.

use super::{NextAction, Session, SessionEnd, SessionEndKind, SessionPhase, SessionStep, TaskHold, WorkSource};
use crate::command::limits::EngineLimits;
use crate::delivery::{
    DeliveryGate, DeliveryPipeline, DeliveryStage, GateFailure, GateFailureKind, GateRemedy, StalledWork, WorkspaceMode,
};
use crate::log::event::payload;
use crate::log::id::{Seq, TaskId};
use crate::session::{AfterIteration, TaskExit};

impl Session {
    /// Submits work that is done. For a report and for work in a worktree, the runner has to find the work first.
    pub(super) fn submit_work(&self, closing: &SessionEnd) -> SessionStep {
        match (self.workspace_mode, &self.stopping) {
            (WorkspaceMode::InPlace, None) if self.report => SessionStep::Wait(NextAction::Work),
            (WorkspaceMode::InPlace, Some(asked)) if self.report => self.end_or_leave_task(asked),
            (WorkspaceMode::InPlace, _) => SessionStep::Submit(closing.clone()),
            (WorkspaceMode::Worktrees, None) => SessionStep::Wait(NextAction::Work),
            (WorkspaceMode::Worktrees, Some(asked)) => self.end_or_leave_task(asked),
        }
    }

    pub(super) fn advance_pipeline(&self, pipeline: &DeliveryPipeline) -> SessionStep {
        if self.hold != TaskHold::Left && pipeline.merged {
            return SessionStep::LeaveTask(TaskExit::Completed);
        }
        match (&self.stopping, self.hold) {
            (Some(asked), TaskHold::Left) if !self.finished => return self.end_or_leave_task(asked),
            (asked, TaskHold::Left) => {
                let is_escalated = asked.as_ref().is_some_and(|asked| asked.ending == SessionEndKind::Escalated);
                let objection = pipeline.objection.as_ref().filter(|_| self.finished && !is_escalated);
                return match objection {
                    Some(objection) => {
                        self.end_or_leave_task(&SessionEnd::with_reason(SessionEndKind::Escalated, objection.clone()))
                    }
                    None => self.apply_decided_ending(&pipeline.closing),
                };
            }
            _ => {}
        }
        match (&self.stopping, pipeline.stage, &pipeline.broken) {
            (Some(asked), ..) => self.end_or_leave_task(asked),
            (None, _, Some(_)) => SessionStep::FailGate,
            (None, _, None) if self.is_held_by_person() => SessionStep::DeliverMessageFirst,
            (None, DeliveryStage::Submitting, None) => SessionStep::PassSubmission,
            (None, DeliveryStage::Submitted, None) => SessionStep::StartMerge,
            (None, DeliveryStage::Merging, None) => SessionStep::LeaveTask(TaskExit::Completed),
        }
    }

    /// Returns the event whose stop hooks judge the work again before it is submitted, while they do so.
    pub fn rejudging_event(&self) -> Option<Seq> {
        let SessionPhase::Pipeline(pipeline) = &self.phase else { return None };
        pipeline.rejudged.then_some(pipeline.at)
    }

    /// Returns whether the session has had no iteration on a task whose work was judged done before.
    pub(crate) fn may_resume_at_gate(&self) -> bool {
        let idle = matches!(
            self.phase,
            SessionPhase::Started | SessionPhase::Settled(AfterIteration::Continue) | SessionPhase::Postponed(_)
        );
        self.resumes_at_gate && idle && self.held_epoch().is_some() && self.workspace.is_some()
    }

    /// Returns the stalled work to store with the task, if a gate could not be asked about it.
    pub(crate) fn stalled_work_after(&self, failed: &payload::PipelineFailed) -> Option<StalledWork> {
        let could_not_be_asked = (failed.why, failed.remedy) == (GateFailureKind::Failed, GateRemedy::GiveUp);
        self.stalled_work_at(failed.gate).filter(|_| could_not_be_asked)
    }

    /// Returns the stalled work to store with the task, if the session ends during delivery and no hook has blocked.
    pub(crate) fn stalled_work_on_end(&self) -> Option<StalledWork> {
        let SessionPhase::Pipeline(pipeline) = &self.phase else { return None };
        let gate = match (pipeline.broken.as_ref().map(|broken| broken.why), pipeline.stage) {
            (None | Some(GateFailureKind::Failed), DeliveryStage::Submitted | DeliveryStage::Merging) => {
                DeliveryGate::BeforeMerge
            }
            (None | Some(GateFailureKind::Failed), DeliveryStage::Submitting) | (Some(GateFailureKind::Moved), _) => {
                DeliveryGate::BeforeSubmit
            }
            (
                Some(
                    GateFailureKind::Blocked
                    | GateFailureKind::Conflicts
                    | GateFailureKind::Escalated
                    | GateFailureKind::Said,
                ),
                _,
            ) => return None,
        };
        self.stalled_work_at(gate)
    }

    fn stalled_work_at(&self, gate: DeliveryGate) -> Option<StalledWork> {
        let SessionPhase::Pipeline(pipeline) = &self.phase else { return None };
        Some(StalledWork {
            gate,
            head: pipeline.work.as_ref()?.head.clone(),
            config: self.config,
            agent: self.agent.clone(),
            claim: None,
            unstarted: pipeline.broken.as_ref().is_some_and(|broken| broken.unstarted),
            checked: self.checked,
            rejudged: self.rejudged || pipeline.rejudged && pipeline.stage == DeliveryStage::Submitting,
            waived: pipeline.closing.reason.clone(),
        })
    }

    /// Returns whether the gate before submission has passed the work of this task.
    pub(crate) fn passes_submission(&self, id: TaskId) -> bool {
        let SessionPhase::Pipeline(pipeline) = &self.phase else { return false };
        let passed = self.pending_hooks.is_empty() && pipeline.broken.is_none();
        self.task == Some(id) && self.held_epoch().is_some() && pipeline.stage == DeliveryStage::Submitting && passed
    }

    /// Leaves the task for a later run.
    pub(super) fn give_up_task(&self, reason: &str) -> SessionStep {
        let closing = || SessionEnd { ending: SessionEndKind::Limit, reason: Some(reason.to_owned()) };
        match (&self.stopping, self.work) {
            _ if self.held_epoch().is_some() => SessionStep::LeaveTask(TaskExit::Unfinished(reason.to_owned())),
            (Some(asked), _) => self.end_or_leave_task(asked),
            (None, WorkSource::Graph) => SessionStep::TakeTask,
            (None, WorkSource::Given) if self.has_lost_task() => SessionStep::EndWithoutTask(closing()),
            (None, WorkSource::Given) => self.end_or_leave_task(&closing()),
        }
    }

    /// Returns whether a hook that has not started is skipped: its gate is decided, or the task is no longer held.
    pub(crate) fn may_skip_hook(&self, hook: crate::log::id::EffectId) -> bool {
        let SessionPhase::Pipeline(pipeline) = &self.phase else { return false };
        pipeline.is_gate_decided(hook.seq) || (pipeline.at == hook.seq && self.hold == TaskHold::Left)
    }

    /// Returns whether a gate's hook must not start now, because a person's message comes first. A running hook still
    /// finishes.
    pub(crate) fn may_skip_unstarted_hook(&self, hook: crate::log::id::EffectId) -> bool {
        let SessionPhase::Pipeline(pipeline) = &self.phase else { return false };
        pipeline.at == hook.seq && !pipeline.merged && self.is_held_by_person()
    }

    /// Returns the remedy for a gate that did not pass, with the number of the attempt and the limit.
    pub(crate) fn choose_remedy(
        &self,
        gate: DeliveryGate,
        broken: &GateFailure,
        rejections: u32,
    ) -> (GateRemedy, u32, u32) {
        let mended = (self.remediations + 1, self.terms.max_remediations);
        let rejected = (rejections + 1, self.terms.max_rejections);
        let mend = match self.remediations < self.terms.max_remediations && self.find_exhausted_limit().is_none() {
            true => GateRemedy::Remediate,
            false => GateRemedy::GiveUp,
        };
        let (remedy, (count, most)) = match (gate, broken.why) {
            (_, GateFailureKind::Escalated) => (GateRemedy::Escalate, mended),
            (_, GateFailureKind::Failed) => (GateRemedy::GiveUp, mended),
            (_, GateFailureKind::Said) => (GateRemedy::Hear, (0, 0)),
            (_, GateFailureKind::Moved) if self.rechecks < EngineLimits::RECHECKS => {
                (GateRemedy::Again, (self.rechecks + 1, EngineLimits::RECHECKS))
            }
            (_, GateFailureKind::Moved) => (GateRemedy::GiveUp, (self.rechecks, EngineLimits::RECHECKS)),
            (DeliveryGate::BeforeMerge, GateFailureKind::Blocked) if rejected.0 <= rejected.1 => {
                (GateRemedy::Reject, rejected)
            }
            (DeliveryGate::BeforeMerge, GateFailureKind::Blocked) => (GateRemedy::Escalate, rejected),
            (DeliveryGate::BeforeSubmit, GateFailureKind::Blocked) | (_, GateFailureKind::Conflicts) => (mend, mended),
        };
        (remedy, count, most)
    }
}
