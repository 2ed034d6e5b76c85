//! Work on its way through the gates: each event advances it, or does not fit.

use super::{ApplyError, Changes, Fold, put};
use crate::delivery::{Broken, ChangeRef, Finding, Gate, HookEnd, Pipeline, Remedy, Stage, TaskChange, Why, WorkDone};
use crate::effects::hook_outcome::HookOutcome;
use crate::effects::outbox::{EffectKind, PendingEffect};
use crate::log::event::payload;
use crate::log::id::RunId;
use crate::session::{Closing, Ending, Next, Phase, Session};
use crate::task::{State, Task};
use crate::view::Change;

impl Fold<'_> {
    pub(super) fn workspace_opened(&self, opened: &payload::WorkspaceOpened) -> Changes {
        let id = self.node()?;
        let mut changes = self.session(|session| {
            let fits = session.task == Some(id) && session.epoch().is_some() && !session.grounds.is_in_place();
            session.workspace = Some(opened.workspace.clone());
            if opened.workspace.protected.is_some() {
                session.protected = opened.workspace.protected;
            }
            fits.then_some(())
        })?;
        changes.extend(self.touched(|task| task.workspace = Some(opened.workspace.clone()))?);
        Ok(changes)
    }

    /// Returns how a session that resumes finished work ends: with the reason that the session before it would have given.
    fn resumed_closing(&self) -> Result<Closing, ApplyError> {
        let waived = self.task(self.node()?)?.stalled.and_then(|stalled| stalled.waived);
        Ok(Closing { ending: Ending::Completed, reason: waived })
    }

    pub(super) fn submission_started(&self, started: &payload::SubmissionStarted) -> Changes {
        let resumed = self.resumed_closing()?;
        let mut changes = self.session(|session| {
            let closing = match &session.phase {
                Phase::Settled(Next::Close(closing)) if closing.ending == Ending::Completed => closing.clone(),
                _ if session.may_resume() => resumed,
                _ => return None,
            };
            let fits = session.epoch().is_some() && session.run(session.iteration) == started.run;
            session.phase = self.pipeline(&started.run, closing, Stage::Submitting, started.work.clone());
            if let Phase::Pipeline(pipeline) = &mut session.phase {
                pipeline.rejudged = std::mem::take(&mut session.rejudged) || started.rejudged;
            }
            session.resumes = false;
            fits.then_some(())
        })?;
        // The work has to pass every gate again.
        changes.extend(self.touched(|task| {
            if let Some(stalled) = &mut task.stalled {
                stalled.gate = Gate::BeforeSubmit;
                if let Some(work) = &started.work {
                    stalled.head.clone_from(&work.head);
                    stalled.rejudged |= started.rejudged;
                }
            }
        })?);
        Ok(changes)
    }

    pub(super) fn submitted(&self) -> Changes {
        let task = self.task(self.node()?)?;
        let session = self.envelope.session.as_ref().map(|name| self.view.session(name)).transpose()?.flatten();
        let Some(session) = session.filter(|session| session.passes_submission(task.id)) else {
            return self.moved(|_| {});
        };
        // A person may have submitted the task by hand before its gate passed it.
        let mut changes = if task.state == State::Submitted { self.touched(|_| {})? } else { self.moved(|_| {})? };
        self.with_session(&session.name, &mut changes, |session| {
            if let Phase::Pipeline(pipeline) = &mut session.phase {
                pipeline.stage = Stage::Submitted;
            }
        })?;
        Ok(changes)
    }

    pub(super) fn merge_started(&self, started: &payload::MergeStarted) -> Changes {
        let resumed = self.resumed_closing()?;
        let mut changes = self.moved(|_| {})?;
        changes.extend(self.session(|session| {
            let (closing, work) = match &session.phase {
                Phase::Pipeline(pipeline) if pipeline.stage == Stage::Submitted && pipeline.run == started.run => {
                    (pipeline.closing.clone(), pipeline.work.clone())
                }
                _ if session.may_resume() && started.work.is_some() => (resumed, started.work.clone()),
                _ => return None,
            };
            let fits = session.epoch().is_some() && session.run(session.iteration) == started.run;
            session.phase = self.pipeline(&started.run, closing, Stage::Merging, work);
            session.resumes = false;
            fits.then_some(())
        })?);
        Ok(changes)
    }

    fn pipeline(&self, run: &RunId, closing: Closing, stage: Stage, work: Option<WorkDone>) -> Phase {
        let (run, at) = (run.clone(), self.seq);
        Phase::Pipeline(Box::new(Pipeline {
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

    pub(super) fn pipeline_failed(&self, failed: &payload::PipelineFailed) -> Changes {
        let (mut finding, mut stalled, mut queued, mut unstarted) = (None, None, false, false);
        let mut changes = self.session(|session| {
            stalled = session.stalled_by(failed);
            // The session's feedback stays with the task if the agent does not receive it.
            queued = session.keeps_feedback && failed.remedy == Remedy::Remediate;
            let (closing, feedback) = match &session.phase {
                Phase::Pipeline(pipeline) if pipeline.run == failed.run => {
                    unstarted = pipeline.broken.as_ref().is_some_and(|broken| broken.unstarted);
                    (pipeline.closing.clone(), pipeline.broken.as_ref().and_then(|broken| broken.feedback.clone()))
                }
                // The work was not fit to be submitted.
                Phase::Settled(Next::Close(closing)) if is_unfit(session, closing, failed) => {
                    (closing.clone(), failed.feedback.clone())
                }
                _ => return None,
            };
            finding = Some(feedback.unwrap_or_else(|| failed.reason.clone()));
            let because = |ending| Closing { ending, reason: Some(in_words(failed)) };
            session.phase = Phase::Settled(match failed.remedy {
                Remedy::Remediate | Remedy::Reject | Remedy::Hear => Next::Continue,
                Remedy::GiveUp => Next::GiveUp(in_words(failed)),
                Remedy::Escalate => Next::Close(because(Ending::Escalated)),
                Remedy::Again => Next::Close(closing),
            });
            match failed.remedy {
                Remedy::Remediate => session.remediations += 1,
                Remedy::Again => (session.rechecks, session.rejudged) = (session.rechecks + 1, true),
                _ => {}
            }
            Some(())
        })?;
        // A finding stays until an agent has worked with it, because a turn that receives it may fail. A hook that could not
        // be started has no finding for an agent.
        let is_for_agent = !matches!(failed.remedy, Remedy::Again | Remedy::Hear) && !unstarted;
        let kept = is_for_agent && stalled.is_none() && !queued;
        let rejected = failed.gate == Gate::BeforeMerge && failed.why == Why::Blocked;
        changes.extend(self.moved(|task| {
            if let Some(text) = finding.filter(|_| kept) {
                let finding = Finding { source: failed.hook.clone(), text };
                if rejected {
                    task.rejected = Some(finding.clone());
                }
                task.findings.push(finding);
            }
            task.rejections += u32::from(rejected);
            if failed.remedy != Remedy::Again {
                // A recheck alone does not produce the work that the gate judges.
                task.stalled = stalled.map(|stalled| stalled.after(task));
            }
        })?);
        Ok(changes)
    }

    /// Folds that a task is to be taken up again. If its session ends while the work is on its way, the next session
    /// continues there.
    pub(super) fn needs_continuation(&self, reason: &str) -> Changes {
        let task = self.own_task()?;
        let holder = task.lease.as_ref().and_then(|lease| lease.session.as_ref());
        let session = holder.filter(|name| self.is_of_session(name)).map(|name| self.view.session(name)).transpose()?;
        let on_its_way = session.flatten().and_then(|session| session.stalled_on_its_way());
        let stalled = on_its_way.map(|stalled| stalled.after(&task));
        self.moved(|task| {
            task.reason = Some(reason.to_owned());
            if stalled.is_some() {
                task.stalled = stalled;
            }
        })
    }

    /// Records the end of a hook at a gate.
    pub(super) fn passed_gate(session: &mut Session, effect: &PendingEffect, finished: &payload::HookFinished) {
        let (Phase::Pipeline(pipeline), EffectKind::Hook(hook)) = (&mut session.phase, &effect.kind) else { return };
        if pipeline.at != effect.id.seq || Gate::of(hook).is_none() {
            return;
        }
        let (message, feedback) = (finished.message.as_deref(), finished.feedback.as_deref());
        let (outcome, unstarted) = (finished.outcome, finished.unstarted);
        let broken = Broken::by(hook, &HookEnd { outcome, message, feedback, unstarted });
        if pipeline.merged {
            let is_cancelled = outcome == HookOutcome::Cancelled;
            let objection = broken.filter(|_| !is_cancelled).map(|broken| broken.objection_after_merge());
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
            if effect.id.index > 0 || pipeline.stage == Stage::Merging {
                let reason = finished.message.clone().unwrap_or_else(|| "the work is on another base now".to_owned());
                let (hook, why) = (finished.hook.clone(), Why::Moved);
                pipeline.broken =
                    pipeline.broken.take().or(Some(Broken { hook, why, reason, feedback: None, unstarted: false }));
            }
        }
    }

    /// Records on the task what a hook learned from gatekeepers.
    pub(super) fn judged(&self, finished: &payload::HookFinished) -> Changes {
        let nothing = finished.approved.is_none() && finished.used.is_nothing() && finished.head.is_none();
        let passed = finished.outcome == HookOutcome::Success;
        if (nothing && !passed) || self.envelope.node.task().is_none() {
            return Ok(Vec::new());
        }
        self.touched(|task| {
            task.used = task.used.plus(finished.used);
            if passed && task.rejected.as_ref().is_some_and(|rejected| rejected.source == finished.hook) {
                task.rejected = None;
            }
            if let Some(approved) = &finished.approved {
                task.approved = Some(approved.after(task.approved.as_ref()));
            }
            // On another base the work has to be submitted again.
            if let (Some(stalled), Some(head)) = (&mut task.stalled, &finished.head) {
                (stalled.head, stalled.gate, stalled.rejudged) = (head.clone(), Gate::BeforeSubmit, true);
            }
        })
    }

    pub(super) fn change_opened(&self, change: &ChangeRef) -> Changes {
        self.touched(|task| task.change = Some(TaskChange { at: change.clone(), opened: self.seq, merged: None }))
    }

    pub(super) fn change_merged(&self, merged: &payload::ChangeMerged) -> Changes {
        let mut task: Task = self.own_task()?;
        let change = task.change.take().filter(|change| change.merged.is_none());
        let Some(change) = change else { return Err(self.nothing_to_merge()) };
        task.change = Some(TaskChange { merged: Some(merged.commit.clone()), ..change });
        // A person may have merged the change while the session was at its gate.
        let holder = task.lease.as_ref().and_then(|lease| lease.session.clone());
        let mut changes: Vec<Change> = vec![put(task)];
        if let Some(name) = holder {
            self.with_session(&name, &mut changes, |session| {
                if let Phase::Pipeline(pipeline) = &mut session.phase {
                    pipeline.merged = true;
                }
            })?;
        }
        Ok(changes)
    }

    fn nothing_to_merge(&self) -> ApplyError {
        self.unfit("the task has no change that is open".to_owned())
    }
}

/// Returns whether the work was called done but there was nothing fit to be judged.
fn is_unfit(session: &Session, closing: &Closing, failed: &payload::PipelineFailed) -> bool {
    let is_readied = !session.grounds.is_in_place() || session.report;
    let done = closing.ending == Ending::Completed && is_readied;
    done && failed.gate == Gate::BeforeSubmit && failed.remedy != Remedy::Again
}

/// Returns which hook blocked the work, and why.
fn in_words(failed: &payload::PipelineFailed) -> String {
    match failed.hook.as_str() {
        "no_changes" => "no_changes: nothing was committed beyond the base".to_owned(),
        hook => format!("{}: `{hook}`: {}", failed.gate.point(), failed.reason),
    }
}
