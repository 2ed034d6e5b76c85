//! The delivery of finished work up to its acceptance, computed from the log alone, with its rules.
//!
//! The engine stores a phase and the event whose hooks form the gate. This module counts the hooks: work passes a gate when
//! every hook of the gate has ended with a result that lets the work pass.

use std::collections::{BTreeMap, BTreeSet};

use windlass_engine::{
    DeliveryGate, EffectId, EngineLimits, Event, EventRecord, GateFailureKind, GateRemedy, HookClass, HookEffect,
    HookFailurePolicy, HookOutcome, HookPoint, OwnerName, SessionTerms, StalledWork, SubmittedWork, Workspace, payload,
};

use crate::effects::owed_hooks;

/// The delivery of a session's work since it claimed its task.
#[derive(Debug, Clone, Default)]
pub struct DeliveryProgress {
    /// Whether the work was declared done, without a later result.
    pub done: bool,
    pub workspace: Option<Workspace>,
    pub remediations: u32,
    pub rechecks: u32,
    /// Whether the work was judged done before the claim, so that it resumes at a gate.
    pub resumes: bool,
    /// Whether the task ends with a report instead of a change.
    pub report: bool,
    /// Whether the work has resumed at a gate.
    pub resumed: bool,
    /// The remedy after a failed gate.
    pub remedy: Option<GateRemedy>,
    gate: Option<OpenGate>,
}

/// A gate, and the state of the work until the next gate.
#[derive(Debug, Clone)]
struct OpenGate {
    gate: DeliveryGate,
    hooks: BTreeMap<EffectId, HookEffect>,
    begun: BTreeSet<EffectId>,
    /// The hook that held the work back, and the reason.
    failure: Option<(String, GateFailureKind)>,
    submitted: bool,
    merged: bool,
    /// Whether a hook objects to the merged work.
    objected: bool,
    /// The last commit of the work, if it is in a worktree.
    head: Option<String>,
    /// Whether the hook that held the work back could not start its agent.
    unstarted: bool,
}

/// The state of a session that the rules of its gates depend on.
pub struct GateContext<'a> {
    pub held: bool,
    pub stopping: bool,
    /// Whether the stop hooks have let the work pass.
    pub passed: bool,
    pub worktrees: bool,
    pub terms: &'a SessionTerms,
    /// Whether the event comes from the session itself, and not from another command.
    pub own: bool,
    /// The stalled work of the task, and whether it has passed all hooks before its gate.
    pub stalled: Option<(&'a StalledWork, bool)>,
    /// Whether a person has sent feedback since the work was declared done.
    pub held_back: bool,
}

impl DeliveryProgress {
    pub fn is_under_way(&self) -> bool {
        self.gate.is_some()
    }

    /// Returns whether a hook of the gate that has not begun must not begin: the gate is decided, a person's feedback comes first,
    /// or the session has lost the task.
    pub fn is_hook_needless(&self, effect: EffectId, held: bool, held_back: bool) -> bool {
        let needless = |open: &OpenGate| open.failure.is_some() || !held || (held_back && !open.merged);
        let owed = |open: &OpenGate| open.hooks.contains_key(&effect) && needless(open);
        self.gate.as_ref().is_some_and(owed)
    }

    /// Returns whether the work is free to be accepted.
    pub fn is_accepted(&self, worktrees: bool, held_back: bool) -> bool {
        match &self.gate {
            Some(open) if open.merged => true,
            _ if held_back => false,
            // Work in place may have no gate at all.
            None => !worktrees,
            Some(open) => (open.submitted || open.gate == DeliveryGate::BeforeMerge) && open.is_passed(),
        }
    }

    /// Returns whether the event may follow the events so far.
    pub fn allows_event(&self, record: &EventRecord, context: &GateContext<'_>) -> bool {
        let may_act = context.held && !context.stopping;
        // Feedback of a person stops the delivery.
        let may_proceed = may_act && !context.held_back;
        let open = |gate: DeliveryGate, submitted: bool| {
            self.gate.as_ref().is_some_and(|open| open.gate == gate && open.submitted == submitted && open.is_passed())
        };
        match &record.envelope.event {
            Event::WorkspaceOpened(_) => context.held && context.worktrees,
            Event::SubmissionStarted(started) => {
                let has_work = match &started.work {
                    Some(work) => context.worktrees && work.commits > 0 && self.workspace.is_some() && !self.report,
                    None => !context.worktrees || self.report,
                };
                let counted = started.remediations == self.remediations;
                let done = context.passed && self.done || self.can_resume(started.work.as_ref(), context);
                may_proceed && has_work && counted && done && self.gate.is_none()
            }
            Event::TaskSubmitted(_) if context.own => may_proceed && open(DeliveryGate::BeforeSubmit, false),
            Event::MergeStarted(started) if started.work.is_some() => {
                let submitted = context.stalled.is_some_and(|(_, submitted)| submitted);
                may_act && submitted && self.gate.is_none() && self.can_resume(started.work.as_ref(), context)
            }
            Event::MergeStarted(_) => may_proceed && open(DeliveryGate::BeforeSubmit, true),
            Event::PipelineFailed(failed) => may_act && self.allows_failure(failed, context),
            Event::TaskRejected(_) => context.held && self.remedy == Some(GateRemedy::Reject),
            Event::HookStarted(started) => {
                let first = self.gate.as_ref().is_none_or(|open| !open.begun.contains(&started.effect));
                !(first && self.is_hook_needless(started.effect, context.held, context.held_back))
            }
            Event::HookFinished(finished) => self.gate.as_ref().is_none_or(|open| {
                let unbegun = open.hooks.contains_key(&finished.effect) && !open.begun.contains(&finished.effect);
                let needless = open.failure.is_some() || !context.held || context.stopping || context.held_back;
                !unbegun
                    || finished.outcome == HookOutcome::Interrupted
                    || (finished.outcome == HookOutcome::Skip && needless)
            }),
            _ => true,
        }
    }

    /// Returns whether work may resume at a gate: it is the stalled work, and no person has sent feedback since.
    fn can_resume(&self, work: Option<&SubmittedWork>, context: &GateContext<'_>) -> bool {
        let same = work.zip(context.stalled).is_some_and(|(work, (stalled, _))| work.head == stalled.head);
        self.resumes && self.workspace.is_some() && same && !context.held_back
    }

    /// Returns the last commit of the work on its way.
    pub fn head(&self) -> Option<String> {
        self.gate.as_ref().and_then(|open| open.head.clone())
    }

    /// Returns the gate at which the work resumes if its session ends now. A hook that blocks sends feedback to the agent instead.
    pub fn resumption_gate(&self) -> Option<DeliveryGate> {
        let open = self.gate.as_ref()?;
        match &open.failure {
            None | Some((_, GateFailureKind::Failed)) if open.submitted => Some(DeliveryGate::BeforeMerge),
            None | Some((_, GateFailureKind::Failed)) => Some(open.gate),
            Some((_, GateFailureKind::Moved)) => Some(DeliveryGate::BeforeSubmit),
            Some(_) => None,
        }
    }

    pub fn is_unstarted(&self) -> bool {
        self.gate.as_ref().is_some_and(|open| open.unstarted)
    }

    /// Returns whether a gate may fail like this.
    fn allows_failure(&self, failed: &payload::PipelineFailed, context: &GateContext<'_>) -> bool {
        let terms = context.terms;
        let is_reported = match &self.gate {
            Some(open) if failed.why == GateFailureKind::Said => {
                open.is_passed() && open.gate == failed.gate && !open.merged && context.held_back
            }
            Some(open) => {
                let is_same_failure = Some((failed.hook.clone(), failed.why)) == open.failure;
                is_same_failure && open.gate == failed.gate && !open.merged && open.hooks.is_empty()
            }
            // There was no work to judge.
            None => {
                let why = match failed.hook.as_str() {
                    "no_changes" => GateFailureKind::Failed,
                    _ => GateFailureKind::Conflicts,
                };
                (context.worktrees || self.report)
                    && self.done
                    && failed.gate == DeliveryGate::BeforeSubmit
                    && failed.why == why
            }
        };
        let merging = failed.gate == DeliveryGate::BeforeMerge;
        let bounded = match failed.remedy {
            GateRemedy::Remediate => {
                self.remediations < terms.max_remediations && failed.count == self.remediations + 1
            }
            GateRemedy::Reject => {
                merging && failed.why == GateFailureKind::Blocked && failed.count <= terms.max_rejections
            }
            GateRemedy::Again => failed.why == GateFailureKind::Moved && self.rechecks < EngineLimits::RECHECKS,
            GateRemedy::Escalate => {
                let rejected = merging && failed.why == GateFailureKind::Blocked && failed.count > terms.max_rejections;
                failed.why == GateFailureKind::Escalated || rejected
            }
            GateRemedy::Hear => failed.why == GateFailureKind::Said,
            GateRemedy::GiveUp => {
                !(matches!(failed.why, GateFailureKind::Escalated | GateFailureKind::Said)
                    || merging && failed.why == GateFailureKind::Blocked)
            }
        };
        is_reported && bounded
    }

    /// Observes an event of the session.
    pub fn observe(&mut self, record: &EventRecord, owner: &OwnerName, own: bool) {
        match &record.envelope.event {
            Event::WorkspaceOpened(opened) => self.workspace = Some(opened.workspace.clone()),
            Event::SubmissionStarted(started) => {
                let head = started.work.as_ref().map(|work| work.head.clone());
                (self.done, self.gate) =
                    (false, Some(OpenGate { head, ..OpenGate::new(DeliveryGate::BeforeSubmit, record, owner) }));
                self.resumed |= std::mem::take(&mut self.resumes);
            }
            Event::MergeStarted(started) => {
                let head = started.work.as_ref().map(|work| work.head.clone()).or(self.head());
                self.gate = Some(OpenGate { head, ..OpenGate::new(DeliveryGate::BeforeMerge, record, owner) });
                self.resumed |= std::mem::take(&mut self.resumes);
            }
            Event::TaskSubmitted(_) if own => self.gate.iter_mut().for_each(|open| open.submitted = true),
            Event::HookStarted(started) => self.gate.iter_mut().for_each(|open| open.begun.extend([started.effect])),
            Event::HookFinished(finished) => self.gate.iter_mut().for_each(|open| open.observe(finished)),
            Event::PipelineFailed(failed) => {
                self.gate = None;
                self.remedy = Some(failed.remedy);
                match failed.remedy {
                    GateRemedy::Remediate => self.remediations += 1,
                    GateRemedy::Again => self.rechecks += 1,
                    _ => {}
                }
                self.done = failed.remedy == GateRemedy::Again;
            }
            Event::IterationStarted(_) => (self.done, self.resumes, self.resumed) = (false, false, false),
            _ => {}
        }
    }

    pub fn is_merged(&self) -> bool {
        self.gate.as_ref().is_some_and(|open| open.merged)
    }

    /// Returns whether a hook objects to the merged work.
    pub fn is_objected(&self) -> bool {
        self.gate.as_ref().is_some_and(|open| open.objected)
    }

    /// Records that the base contains the work.
    pub fn record_merge(&mut self) {
        self.gate.iter_mut().for_each(|open| open.merged = true);
    }
}

impl OpenGate {
    fn new(gate: DeliveryGate, record: &EventRecord, owner: &OwnerName) -> Self {
        let owes = record.envelope.metadata.owes.as_ref().filter(|owes| owes.owner == *owner);
        let hooks = owes.map_or(&[][..], |owes| &owes.hooks);
        let hooks = owed_hooks(record).zip(hooks.iter().cloned()).collect();
        Self {
            gate,
            hooks,
            begun: BTreeSet::new(),
            failure: None,
            submitted: false,
            merged: false,
            objected: false,
            head: None,
            unstarted: false,
        }
    }

    fn is_passed(&self) -> bool {
        self.hooks.is_empty() && self.failure.is_none()
    }

    fn observe(&mut self, finished: &payload::HookFinished) {
        let Some(hook) = self.hooks.remove(&finished.effect) else { return };
        if self.merged {
            self.objected |= find_objection(&hook, finished).is_some();
        } else if self.failure.is_none() {
            let mut why = find_objection(&hook, finished);
            self.unstarted = finished.unstarted && finished.outcome != HookOutcome::Block && why.is_some();
            if let (Some(head), Some(moved)) = (&mut self.head, &finished.head) {
                head.clone_from(moved);
                let is_judged_before = finished.effect.index > 0 || self.gate == DeliveryGate::BeforeMerge;
                why = why.or(is_judged_before.then_some(GateFailureKind::Moved));
            }
            self.failure = why.map(|why| (hook.hook, why));
        }
    }
}

/// Returns why the end of a hook holds the work back. Success, skipping and ignored failures do not.
fn find_objection(hook: &HookEffect, finished: &payload::HookFinished) -> Option<GateFailureKind> {
    use HookOutcome as O;
    let vcs = hook.class == HookClass::Vcs;
    match (finished.outcome, hook.on_failure) {
        (O::Success | O::Skip, _) => None,
        (O::Continue, _) if hook.point == HookPoint::BeforeSubmit => Some(GateFailureKind::Blocked),
        (O::Continue | O::Again, _) => Some(GateFailureKind::Moved),
        (O::Escalate, _) => Some(GateFailureKind::Escalated),
        (O::Block, _) => Some(if vcs { GateFailureKind::Conflicts } else { GateFailureKind::Blocked }),
        (_, HookFailurePolicy::Ignore) => None,
        (O::Cancelled, _) => Some(GateFailureKind::Failed),
        (_, HookFailurePolicy::Escalate) => Some(GateFailureKind::Escalated),
        (O::TimedOut, HookFailurePolicy::Block) if hook.point == HookPoint::BeforeMerge => {
            Some(GateFailureKind::Failed)
        }
        (_, HookFailurePolicy::Block) if finished.unstarted => Some(GateFailureKind::Failed),
        (_, HookFailurePolicy::Block) => {
            Some(if finished.feedback.is_some() { GateFailureKind::Blocked } else { GateFailureKind::Failed })
        }
    }
}
