//! Work on its way through the gates: each event advances it, or does not fit.

use super::{ApplyError, EventFold, FoldResult, put_task};
use crate::delivery::{
    ChangeRef, DeliveryGate, DeliveryPipeline, DeliveryStage, GateFailure, GateFailureKind, GateFinding, GateHookEnd,
    GateRemedy, SubmittedWork, TaskChange,
};
use crate::effects::hook_outcome::HookOutcome;
use crate::effects::outbox::{EffectKind, PendingEffect};
use crate::log::event::payload;
use crate::log::id::RunId;
use crate::session::{AfterIteration, Session, SessionEnd, SessionEndKind, SessionPhase};
use crate::task::{Task, TaskState};
use crate::view::RowChange;

impl EventFold<'_> {
    pub(super) fn fold_workspace_opened(&self, opened: &payload::WorkspaceOpened) -> FoldResult {
        let id = self.event_task_id()?;
        let mut changes = self.change_session(|session| {
            let fits =
                session.task == Some(id) && session.held_epoch().is_some() && !session.workspace_mode.is_in_place();
            session.workspace = Some(opened.workspace.clone());
            if opened.workspace.protected.is_some() {
                session.protected = opened.workspace.protected;
            }
            fits.then_some(())
        })?;
        changes.extend(self.change_task(|task| task.workspace = Some(opened.workspace.clone()))?);
        Ok(changes)
    }

    /// Returns how a session that resumes finished work ends: with the reason that the session before it would have given.
    fn resumed_closing(&self) -> Result<SessionEnd, ApplyError> {
        let waived = self.require_task(self.event_task_id()?)?.stalled.and_then(|stalled| stalled.waived);
        Ok(SessionEnd { ending: SessionEndKind::Completed, reason: waived })
    }

    pub(super) fn fold_submission_started(&self, started: &payload::SubmissionStarted) -> FoldResult {
        let resumed = self.resumed_closing()?;
        let mut changes = self.change_session(|session| {
            let closing = match &session.phase {
                SessionPhase::Settled(AfterIteration::Close(closing))
                    if closing.ending == SessionEndKind::Completed =>
                {
                    closing.clone()
                }
                _ if session.may_resume_at_gate() => resumed,
                _ => return None,
            };
            let fits = session.held_epoch().is_some() && session.run_id_for(session.iteration) == started.run;
            session.phase =
                self.build_pipeline_phase(&started.run, closing, DeliveryStage::Submitting, started.work.clone());
            if let SessionPhase::Pipeline(pipeline) = &mut session.phase {
                pipeline.rejudged = std::mem::take(&mut session.rejudged) || started.rejudged;
            }
            session.resumes_at_gate = false;
            fits.then_some(())
        })?;
        // The work has to pass every gate again.
        changes.extend(self.change_task(|task| {
            if let Some(stalled) = &mut task.stalled {
                stalled.gate = DeliveryGate::BeforeSubmit;
                if let Some(work) = &started.work {
                    stalled.head.clone_from(&work.head);
                    stalled.rejudged |= started.rejudged;
                }
            }
        })?);
        Ok(changes)
    }

    pub(super) fn fold_task_submitted(&self) -> FoldResult {
        let task = self.require_task(self.event_task_id()?)?;
        let session = self.envelope.session.as_ref().map(|name| self.view.find_session(name)).transpose()?.flatten();
        let Some(session) = session.filter(|session| session.passes_submission(task.id)) else {
            return self.move_task(|_| {});
        };
        // A person may have submitted the task by hand before its gate passed it.
        let mut changes =
            if task.state == TaskState::Submitted { self.change_task(|_| {})? } else { self.move_task(|_| {})? };
        self.change_named_session(&session.name, &mut changes, |session| {
            if let SessionPhase::Pipeline(pipeline) = &mut session.phase {
                pipeline.stage = DeliveryStage::Submitted;
            }
        })?;
        Ok(changes)
    }

    pub(super) fn fold_merge_started(&self, started: &payload::MergeStarted) -> FoldResult {
        let resumed = self.resumed_closing()?;
        let mut changes = self.move_task(|_| {})?;
        changes.extend(self.change_session(|session| {
            let (closing, work) = match &session.phase {
                SessionPhase::Pipeline(pipeline)
                    if pipeline.stage == DeliveryStage::Submitted && pipeline.run == started.run =>
                {
                    (pipeline.closing.clone(), pipeline.work.clone())
                }
                _ if session.may_resume_at_gate() && started.work.is_some() => (resumed, started.work.clone()),
                _ => return None,
            };
            let fits = session.held_epoch().is_some() && session.run_id_for(session.iteration) == started.run;
            session.phase = self.build_pipeline_phase(&started.run, closing, DeliveryStage::Merging, work);
            session.resumes_at_gate = false;
            fits.then_some(())
        })?);
        Ok(changes)
    }

    fn build_pipeline_phase(
        &self,
        run: &RunId,
        closing: SessionEnd,
        stage: DeliveryStage,
        work: Option<SubmittedWork>,
    ) -> SessionPhase {
        let (run, at) = (run.clone(), self.seq);
        SessionPhase::Pipeline(Box::new(DeliveryPipeline {
            run,
            closing,
            stage,
            at,
            work,
            broken: None,
            merged: false,
            objection: None,
            rejudged: false,
        }))
    }

    pub(super) fn fold_pipeline_failed(&self, failed: &payload::PipelineFailed) -> FoldResult {
        let (mut finding, mut stalled, mut queued, mut unstarted) = (None, None, false, false);
        let mut changes = self.change_session(|session| {
            stalled = session.stalled_work_after(failed);
            // The session's feedback stays with the task if the agent does not receive it.
            queued = session.keeps_feedback && failed.remedy == GateRemedy::Remediate;
            let (closing, feedback) = match &session.phase {
                SessionPhase::Pipeline(pipeline) if pipeline.run == failed.run => {
                    unstarted = pipeline.broken.as_ref().is_some_and(|broken| broken.unstarted);
                    (pipeline.closing.clone(), pipeline.broken.as_ref().and_then(|broken| broken.feedback.clone()))
                }
                // The work was not fit to be submitted.
                SessionPhase::Settled(AfterIteration::Close(closing))
                    if is_unfit_submission(session, closing, failed) =>
                {
                    (closing.clone(), failed.feedback.clone())
                }
                _ => return None,
            };
            finding = Some(feedback.unwrap_or_else(|| failed.reason.clone()));
            let because = |ending| SessionEnd { ending, reason: Some(describe_gate_failure(failed)) };
            session.phase = SessionPhase::Settled(match failed.remedy {
                GateRemedy::Remediate | GateRemedy::Reject | GateRemedy::Hear => AfterIteration::Continue,
                GateRemedy::GiveUp => AfterIteration::GiveUp(describe_gate_failure(failed)),
                GateRemedy::Escalate => AfterIteration::Close(because(SessionEndKind::Escalated)),
                GateRemedy::Again => AfterIteration::Close(closing),
            });
            match failed.remedy {
                GateRemedy::Remediate => session.remediations += 1,
                GateRemedy::Again => (session.rechecks, session.rejudged) = (session.rechecks + 1, true),
                _ => {}
            }
            Some(())
        })?;
        // A finding stays until an agent has worked with it, because a turn that receives it may fail. A hook that could not
        // be started has no finding for an agent.
        let is_for_agent = !matches!(failed.remedy, GateRemedy::Again | GateRemedy::Hear) && !unstarted;
        let kept = is_for_agent && stalled.is_none() && !queued;
        let rejected = failed.gate == DeliveryGate::BeforeMerge && failed.why == GateFailureKind::Blocked;
        changes.extend(self.move_task(|task| {
            if let Some(text) = finding.filter(|_| kept) {
                let finding = GateFinding { source: failed.hook.clone(), text };
                if rejected {
                    task.rejected = Some(finding.clone());
                }
                task.findings.push(finding);
            }
            task.rejections += u32::from(rejected);
            if failed.remedy != GateRemedy::Again {
                // A recheck alone does not produce the work that the gate judges.
                task.stalled = stalled.map(|stalled| stalled.with_author_of(task));
            }
        })?);
        Ok(changes)
    }

    /// Folds that a task is to be taken up again. If its session ends while the work is on its way, the next session
    /// continues there.
    pub(super) fn fold_needs_continuation(&self, reason: &str) -> FoldResult {
        let task = self.require_event_task()?;
        let holder = task.lease.as_ref().and_then(|lease| lease.session.as_ref());
        let session = holder
            .filter(|name| self.is_decided_by_session(name))
            .map(|name| self.view.find_session(name))
            .transpose()?;
        let on_its_way = session.flatten().and_then(|session| session.stalled_work_on_end());
        let stalled = on_its_way.map(|stalled| stalled.with_author_of(&task));
        self.move_task(|task| {
            task.reason = Some(reason.to_owned());
            if stalled.is_some() {
                task.stalled = stalled;
            }
        })
    }

    /// Records the end of a hook at a gate.
    pub(super) fn record_gate_result(session: &mut Session, effect: &PendingEffect, finished: &payload::HookFinished) {
        let (SessionPhase::Pipeline(pipeline), EffectKind::Hook(hook)) = (&mut session.phase, &effect.kind) else {
            return;
        };
        if pipeline.at != effect.id.seq || DeliveryGate::of_hook_effect(hook).is_none() {
            return;
        }
        let (message, feedback) = (finished.message.as_deref(), finished.feedback.as_deref());
        let (outcome, unstarted) = (finished.outcome, finished.unstarted);
        let broken = GateFailure::from_hook_end(hook, &GateHookEnd { outcome, message, feedback, unstarted });
        if pipeline.merged {
            let is_cancelled = outcome == HookOutcome::Cancelled;
            let objection = broken.filter(|_| !is_cancelled).map(|broken| broken.describe_merge_objection());
            pipeline.objection = pipeline.objection.take().or(objection);
            return;
        }
        if pipeline.broken.is_some() {
            return;
        }
        pipeline.broken = broken;
        if let (Some(work), Some(head)) = (&mut pipeline.work, &finished.head) {
            work.head.clone_from(head);
            session.rejudged = true;
            // The hooks before this one judged another commit.
            if effect.id.index > 0 || pipeline.stage == DeliveryStage::Merging {
                let reason = finished.message.clone().unwrap_or_else(|| "the work is on another base now".to_owned());
                let (hook, why) = (finished.hook.clone(), GateFailureKind::Moved);
                pipeline.broken = pipeline.broken.take().or(Some(GateFailure {
                    hook,
                    why,
                    reason,
                    feedback: None,
                    unstarted: false,
                }));
            }
        }
    }

    /// Records on the task what a hook learned from gatekeepers.
    pub(super) fn record_gatekeeper_result(&self, finished: &payload::HookFinished) -> FoldResult {
        let nothing = finished.approved.is_none() && finished.used.is_nothing() && finished.head.is_none();
        let passed = finished.outcome == HookOutcome::Success;
        if (nothing && !passed) || self.envelope.node.task_id().is_none() {
            return Ok(Vec::new());
        }
        self.change_task(|task| {
            task.used = task.used.saturating_add(finished.used);
            if passed && task.rejected.as_ref().is_some_and(|rejected| rejected.source == finished.hook) {
                task.rejected = None;
            }
            if let Some(approved) = &finished.approved {
                task.approved = Some(approved.merge_earlier_approval(task.approved.as_ref()));
            }
            // On another base the work has to be submitted again.
            if let (Some(stalled), Some(head)) = (&mut task.stalled, &finished.head) {
                (stalled.head, stalled.gate, stalled.rejudged) = (head.clone(), DeliveryGate::BeforeSubmit, true);
            }
        })
    }

    pub(super) fn fold_change_opened(&self, change: &ChangeRef) -> FoldResult {
        self.change_task(|task| task.change = Some(TaskChange { at: change.clone(), opened: self.seq, merged: None }))
    }

    pub(super) fn fold_change_merged(&self, merged: &payload::ChangeMerged) -> FoldResult {
        let mut task: Task = self.require_event_task()?;
        let change = task.change.take().filter(|change| change.merged.is_none());
        let Some(change) = change else { return Err(self.no_open_change_error()) };
        task.change = Some(TaskChange { merged: Some(merged.commit.clone()), ..change });
        // A person may have merged the change while the session was at its gate.
        let holder = task.lease.as_ref().and_then(|lease| lease.session.clone());
        let mut changes: Vec<RowChange> = vec![put_task(task)];
        if let Some(name) = holder {
            self.change_named_session(&name, &mut changes, |session| {
                if let SessionPhase::Pipeline(pipeline) = &mut session.phase {
                    pipeline.merged = true;
                }
            })?;
        }
        Ok(changes)
    }

    fn no_open_change_error(&self) -> ApplyError {
        self.unfit_event_error("the task has no change that is open".to_owned())
    }
}

/// Returns whether the work was called done but there was nothing fit to be judged.
fn is_unfit_submission(session: &Session, closing: &SessionEnd, failed: &payload::PipelineFailed) -> bool {
    let is_submitted = !session.workspace_mode.is_in_place() || session.report;
    let done = closing.ending == SessionEndKind::Completed && is_submitted;
    done && failed.gate == DeliveryGate::BeforeSubmit && failed.remedy != GateRemedy::Again
}

/// Returns which hook blocked the work, and why.
fn describe_gate_failure(failed: &payload::PipelineFailed) -> String {
    match failed.hook.as_str() {
        "no_changes" => "no changes: nothing was committed beyond the base".to_owned(),
        hook => format!("{}: `{hook}`: {}", failed.gate.hook_point(), failed.reason),
    }
}
