//! From done to accepted, worked out from the log alone, and what may never be wrong on that way.
//!
//! The engine keeps a phase with the event whose hooks are the gate. Here the hooks themselves are counted: a gate is passed
//! when each hook that was owed has ended in a way that lets the work pass.

use std::collections::{BTreeMap, BTreeSet};

use windlass_engine::{
    EffectId, Event, Gate, HookClass, HookEffect, HookOutcome, HookPoint, Limits, OnFailure, OwnerName, Record, Remedy,
    Stalled, Terms, Why, WorkDone, Workspace, payload,
};

use crate::effects::owed_by;

/// The way of a session's work, since it took up its task.
#[derive(Debug, Clone, Default)]
pub struct Passage {
    /// The work was called done, and nothing has become of that yet.
    pub done: bool,
    pub workspace: Option<Workspace>,
    pub remediations: u32,
    pub rechecks: u32,
    /// The work was judged done before it was taken up, and goes on at a gate.
    pub resumes: bool,
    /// The task ends with a report, and without a change.
    pub report: bool,
    /// It has gone on there.
    pub resumed: bool,
    /// What followed where a gate was not passed.
    pub remedy: Option<Remedy>,
    gate: Option<Open>,
}

/// A gate, and what stands behind it until the next one.
#[derive(Debug, Clone)]
struct Open {
    gate: Gate,
    hooks: BTreeMap<EffectId, HookEffect>,
    begun: BTreeSet<EffectId>,
    /// The hook that did not let the work pass, and why.
    broken: Option<(String, Why)>,
    submitted: bool,
    merged: bool,
    /// A hook has something against the work that is merged.
    objected: bool,
    /// The last commit of the work, where it lies in a worktree.
    head: Option<String>,
    /// Whoever the hook was to ask that did not let it pass could not be started.
    unstarted: bool,
}

/// What a session is at the moment.
pub struct Around<'a> {
    pub held: bool,
    pub stopping: bool,
    /// The stop hooks have let the work pass.
    pub passed: bool,
    pub worktrees: bool,
    pub terms: &'a Terms,
    /// The event is the session's own, and not somebody's command.
    pub own: bool,
    /// The work of its task as it was judged done before, and whether all the hooks before its gate have let it pass.
    pub stalled: Option<(&'a Stalled, bool)>,
    /// A person has said something since the work was called done.
    pub held_back: bool,
}

impl Passage {
    pub fn is_under_way(&self) -> bool {
        self.gate.is_some()
    }

    /// Whether a hook of the gate that has not begun never may: the gate is decided, a person is to be heard first, or the task
    /// is somebody else's.
    pub fn is_in_vain(&self, effect: EffectId, held: bool, held_back: bool) -> bool {
        let needless = |open: &Open| open.broken.is_some() || !held || (held_back && !open.merged);
        let owed = |open: &Open| open.hooks.contains_key(&effect) && needless(open);
        self.gate.as_ref().is_some_and(owed)
    }

    /// Whether nothing stands between the work and its being accepted.
    pub fn is_accepted(&self, worktrees: bool, held_back: bool) -> bool {
        match &self.gate {
            Some(open) if open.merged => true,
            _ if held_back => false,
            // In place there may be no gate at all.
            None => !worktrees,
            Some(open) => (open.submitted || open.gate == Gate::BeforeMerge) && open.is_passed(),
        }
    }

    /// Whether what is told now could have come after what was told before.
    pub fn fits(&self, record: &Record, around: &Around<'_>) -> bool {
        let may = around.held && !around.stopping;
        // Nothing goes on over the head of a person.
        let on = may && !around.held_back;
        let open = |gate: Gate, submitted: bool| {
            self.gate.as_ref().is_some_and(|open| open.gate == gate && open.submitted == submitted && open.is_passed())
        };
        match &record.envelope.event {
            Event::WorkspaceOpened(_) => around.held && around.worktrees,
            Event::SubmissionStarted(started) => {
                let there = match &started.work {
                    Some(work) => around.worktrees && work.commits > 0 && self.workspace.is_some() && !self.report,
                    None => !around.worktrees || self.report,
                };
                let counted = started.remediations == self.remediations;
                let done = around.passed && self.done || self.goes_on(started.work.as_ref(), around);
                on && there && counted && done && self.gate.is_none()
            }
            Event::TaskSubmitted(_) if around.own => on && open(Gate::BeforeSubmit, false),
            Event::MergeStarted(started) if started.work.is_some() => {
                let submitted = around.stalled.is_some_and(|(_, submitted)| submitted);
                may && submitted && self.gate.is_none() && self.goes_on(started.work.as_ref(), around)
            }
            Event::MergeStarted(_) => on && open(Gate::BeforeSubmit, true),
            Event::PipelineFailed(failed) => may && self.fails(failed, around),
            Event::TaskRejected(_) => around.held && self.remedy == Some(Remedy::Reject),
            Event::HookStarted(started) => {
                let first = self.gate.as_ref().is_none_or(|open| !open.begun.contains(&started.effect));
                !(first && self.is_in_vain(started.effect, around.held, around.held_back))
            }
            Event::HookFinished(finished) => self.gate.as_ref().is_none_or(|open| {
                let unbegun = open.hooks.contains_key(&finished.effect) && !open.begun.contains(&finished.effect);
                let needless = open.broken.is_some() || !around.held || around.stopping || around.held_back;
                !unbegun
                    || finished.outcome == HookOutcome::Interrupted
                    || (finished.outcome == HookOutcome::Skip && needless)
            }),
            _ => true,
        }
    }

    /// Whether work can go on at a gate without having been worked on: it is what was judged done, and nobody has said more.
    fn goes_on(&self, work: Option<&WorkDone>, around: &Around<'_>) -> bool {
        let same = work.zip(around.stalled).is_some_and(|(work, (stalled, _))| work.head == stalled.head);
        self.resumes && self.workspace.is_some() && same && !around.held_back
    }

    /// The last commit of what is on its way.
    pub fn head(&self) -> Option<String> {
        self.gate.as_ref().and_then(|open| open.head.clone())
    }

    /// Where the work goes on if its session is ended now. A hook that says no speaks to the agent.
    pub fn stops_at(&self) -> Option<Gate> {
        let open = self.gate.as_ref()?;
        match &open.broken {
            None | Some((_, Why::Failed)) if open.submitted => Some(Gate::BeforeMerge),
            None | Some((_, Why::Failed)) => Some(open.gate),
            Some((_, Why::Moved)) => Some(Gate::BeforeSubmit),
            Some(_) => None,
        }
    }

    pub fn is_unstarted(&self) -> bool {
        self.gate.as_ref().is_some_and(|open| open.unstarted)
    }

    /// Whether a gate can have failed like this.
    fn fails(&self, failed: &payload::PipelineFailed, around: &Around<'_>) -> bool {
        let terms = around.terms;
        let told = match &self.gate {
            Some(open) if failed.why == Why::Said => {
                open.is_passed() && open.gate == failed.gate && !open.merged && around.held_back
            }
            Some(open) => {
                let broken = Some((failed.hook.clone(), failed.why)) == open.broken;
                broken && open.gate == failed.gate && !open.merged && open.hooks.is_empty()
            }
            // There was nothing to be judged.
            None => {
                let why = match failed.hook.as_str() {
                    "no_changes" => Why::Failed,
                    _ => Why::Conflicts,
                };
                (around.worktrees || self.report) && self.done && failed.gate == Gate::BeforeSubmit && failed.why == why
            }
        };
        let merging = failed.gate == Gate::BeforeMerge;
        let bounded = match failed.remedy {
            Remedy::Remediate => self.remediations < terms.max_remediations && failed.count == self.remediations + 1,
            Remedy::Reject => merging && failed.why == Why::Blocked && failed.count <= terms.max_rejections,
            Remedy::Again => failed.why == Why::Moved && self.rechecks < Limits::RECHECKS,
            Remedy::Escalate => {
                let rejected = merging && failed.why == Why::Blocked && failed.count > terms.max_rejections;
                failed.why == Why::Escalated || rejected
            }
            Remedy::Hear => failed.why == Why::Said,
            Remedy::GiveUp => {
                !(matches!(failed.why, Why::Escalated | Why::Said) || merging && failed.why == Why::Blocked)
            }
        };
        told && bounded
    }

    /// Hears an event of its session.
    pub fn hear(&mut self, record: &Record, owner: &OwnerName, own: bool) {
        match &record.envelope.event {
            Event::WorkspaceOpened(opened) => self.workspace = Some(opened.workspace.clone()),
            Event::SubmissionStarted(started) => {
                let head = started.work.as_ref().map(|work| work.head.clone());
                (self.done, self.gate) = (false, Some(Open { head, ..Open::at(Gate::BeforeSubmit, record, owner) }));
                self.resumed |= std::mem::take(&mut self.resumes);
            }
            Event::MergeStarted(started) => {
                let head = started.work.as_ref().map(|work| work.head.clone()).or(self.head());
                self.gate = Some(Open { head, ..Open::at(Gate::BeforeMerge, record, owner) });
                self.resumed |= std::mem::take(&mut self.resumes);
            }
            Event::TaskSubmitted(_) if own => self.gate.iter_mut().for_each(|open| open.submitted = true),
            Event::HookStarted(started) => self.gate.iter_mut().for_each(|open| open.begun.extend([started.effect])),
            Event::HookFinished(finished) => self.gate.iter_mut().for_each(|open| open.hear(finished)),
            Event::PipelineFailed(failed) => {
                self.gate = None;
                self.remedy = Some(failed.remedy);
                match failed.remedy {
                    Remedy::Remediate => self.remediations += 1,
                    Remedy::Again => self.rechecks += 1,
                    _ => {}
                }
                self.done = failed.remedy == Remedy::Again;
            }
            Event::IterationStarted(_) => (self.done, self.resumes, self.resumed) = (false, false, false),
            _ => {}
        }
    }

    pub fn is_merged(&self) -> bool {
        self.gate.as_ref().is_some_and(|open| open.merged)
    }

    /// Whether a hook has something against the work that is merged.
    pub fn is_objected(&self) -> bool {
        self.gate.as_ref().is_some_and(|open| open.objected)
    }

    /// The work is in the base.
    pub fn merge(&mut self) {
        self.gate.iter_mut().for_each(|open| open.merged = true);
    }
}

impl Open {
    fn at(gate: Gate, record: &Record, owner: &OwnerName) -> Self {
        let owes = record.envelope.metadata.owes.as_ref().filter(|owes| owes.owner == *owner);
        let hooks = owes.map_or(&[][..], |owes| &owes.hooks);
        let hooks = owed_by(record).zip(hooks.iter().cloned()).collect();
        Self {
            gate,
            hooks,
            begun: BTreeSet::new(),
            broken: None,
            submitted: false,
            merged: false,
            objected: false,
            head: None,
            unstarted: false,
        }
    }

    fn is_passed(&self) -> bool {
        self.hooks.is_empty() && self.broken.is_none()
    }

    fn hear(&mut self, finished: &payload::HookFinished) {
        let Some(hook) = self.hooks.remove(&finished.effect) else { return };
        if self.merged {
            self.objected |= against(&hook, finished).is_some();
        } else if self.broken.is_none() {
            let mut why = against(&hook, finished);
            self.unstarted = finished.unstarted && why.is_some();
            if let (Some(head), Some(moved)) = (&mut self.head, &finished.head) {
                head.clone_from(moved);
                let is_judged_before = finished.effect.index > 0 || self.gate == Gate::BeforeMerge;
                why = why.or(is_judged_before.then_some(Why::Moved));
            }
            self.broken = why.map(|why| (hook.hook, why));
        }
    }
}

/// What the end of a hook has against the work. Only success and skipping pass, and what is to be ignored.
fn against(hook: &HookEffect, finished: &payload::HookFinished) -> Option<Why> {
    use HookOutcome as O;
    let vcs = hook.class == HookClass::Vcs;
    match (finished.outcome, hook.on_failure) {
        (O::Success | O::Skip, _) => None,
        (O::Continue, _) if hook.point == HookPoint::BeforeSubmit => Some(Why::Blocked),
        (O::Continue | O::Again, _) => Some(Why::Moved),
        (O::Escalate, _) => Some(Why::Escalated),
        (O::Block, _) => Some(if vcs { Why::Conflicts } else { Why::Blocked }),
        (_, OnFailure::Ignore) => None,
        (O::Cancelled, _) => Some(Why::Failed),
        (_, OnFailure::Escalate) => Some(Why::Escalated),
        (O::TimedOut, OnFailure::Block) if hook.point == HookPoint::BeforeMerge => Some(Why::Failed),
        (_, OnFailure::Block) if finished.unstarted => Some(Why::Failed),
        (_, OnFailure::Block) => Some(if finished.feedback.is_some() { Why::Blocked } else { Why::Failed }),
    }
}
