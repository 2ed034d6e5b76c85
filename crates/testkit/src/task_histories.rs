//! The state that a task keeps from one attempt to the next, from the log alone: its workspace, its change, its rejections,
//! and the findings for the next session.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use windlass_engine::{
    ChangeRef, DeliveryGate, Event, EventRecord, EventType, GateFailureKind, GateFinding, GateRemedy, HookOutcome,
    MessageAuthor, Seq, SessionName, SessionTerms, StateField, Task, TaskId, TaskTransition, Workspace, payload,
};

/// The kept state of one task.
#[derive(Debug, Clone, Default)]
pub struct TaskHistory {
    workspace: Option<Workspace>,
    /// The change, its event, and the commit that merged it into the base.
    change: Option<(ChangeRef, Seq, Option<String>)>,
    /// Whether the work on its way is in a worktree.
    in_worktree: bool,
    rejections: u32,
    findings: Vec<GateFinding>,
    rejected: Option<GateFinding>,
    /// The session that holds the task.
    holder: Option<SessionName>,
    /// Findings that must be queued for the holder before any other event about it.
    untold: Option<VecDeque<GateFinding>>,
    told: Vec<GateFinding>,
    /// The last feedback of each hook that the holder has run.
    said: BTreeMap<String, Option<String>>,
    /// Hooks of the holder whose agent could not be started, so that they have no finding.
    unstarted: BTreeSet<String>,
    wrong: Vec<String>,
}

impl TaskHistory {
    pub fn has_an_open_change(&self) -> bool {
        matches!(self.change, Some((_, _, None)))
    }
}

/// Returns the kept state of every task, with the violations on the way.
pub fn read_task_histories(log: &[EventRecord]) -> BTreeMap<TaskId, TaskHistory> {
    let (mut tasks, mut hearing) = (BTreeMap::<TaskId, TaskHistory>::new(), SessionTermsOracle::default());
    for record in log {
        hearing.observe(record);
        if let Some(task) = record.envelope.node.task_id() {
            tasks.entry(task).or_default().observe(record, &hearing);
        }
        // The findings for a session must come before its other events.
        for kept in tasks.values_mut().filter(|kept| kept.holder == record.envelope.session) {
            kept.check_feedback(record);
        }
    }
    tasks
}

/// The terms of each session.
#[derive(Default)]
struct SessionTermsOracle {
    session_terms: BTreeMap<SessionName, SessionTerms>,
}

impl SessionTermsOracle {
    fn observe(&mut self, record: &EventRecord) {
        let session = record.envelope.session.clone();
        match (&record.envelope.event, session) {
            (Event::SessionStarted(started), Some(name)) => {
                self.session_terms.insert(name, started.terms.clone());
            }
            (Event::SessionResumed(resumed), Some(name)) => {
                self.session_terms.insert(name, resumed.terms.clone());
            }
            _ => {}
        }
    }
}

impl TaskHistory {
    fn observe(&mut self, record: &EventRecord, hearing: &SessionTermsOracle) {
        // A hook that rejected the work and passes it now withdraws its rejection.
        if let Event::HookFinished(finished) = &record.envelope.event
            && finished.outcome == HookOutcome::Success
        {
            self.rejected.take_if(|rejected| rejected.source == finished.hook);
        }
        let own = record.envelope.session.is_some() && record.envelope.session == self.holder;
        match &record.envelope.event {
            Event::TaskClaimed(claimed) => {
                self.holder.clone_from(&claimed.session);
                // The session gets the findings as feedback.
                self.untold = claimed.session.is_some().then(|| std::mem::take(&mut self.findings).into());
                self.told.clear();
            }
            Event::SubmissionStarted(started) => self.in_worktree = started.work.is_some(),
            Event::MergeStarted(started) => self.in_worktree |= started.work.is_some(),
            Event::WorkspaceOpened(opened) => self.workspace = Some(opened.workspace.clone()),
            Event::LeaseExpired(expired) if expired.silent => self.workspace = None,
            Event::ChangeOpened(change) => self.change = Some((change.clone(), record.seq, None)),
            Event::ChangeMerged(merged) => match &mut self.change {
                Some((_, _, commit @ None)) => *commit = Some(merged.commit.clone()),
                _ => self.wrong.push(format!("{}: it was merged twice, or never opened", record.seq)),
            },
            Event::PipelineFailed(failed) => self.observe_failure(record, failed),
            Event::TaskRejected(_) => {
                let most =
                    record.envelope.session.as_ref().map_or(0, |name| hearing.session_terms[name].max_rejections);
                if self.rejections > most {
                    self.wrong.push(format!("{}: rejected {} times, of {most}", record.seq, self.rejections));
                }
            }
            Event::HookFinished(finished) if own && finished.outcome != HookOutcome::Skip => {
                self.said.insert(finished.hook.clone(), finished.feedback.clone());
                self.unstarted.remove(&finished.hook);
                if finished.unstarted && finished.outcome != HookOutcome::Block {
                    self.unstarted.insert(finished.hook.clone());
                }
            }
            Event::TaskCompleted(_) => {
                (self.findings, self.rejections, self.rejected) = (Vec::new(), 0, None);
            }
            // A person who unblocks the task has seen the rejections.
            Event::TaskUnblocked(_) => self.rejections = 0,
            _ => {}
        }
        if TaskTransition::for_event_type(record.kind()).is_some_and(|row| row.clears.contains(&StateField::Lease)) {
            (self.holder, self.untold) = (None, None);
        }
    }

    fn observe_failure(&mut self, record: &EventRecord, failed: &payload::PipelineFailed) {
        if failed.gate == DeliveryGate::BeforeMerge && failed.why == GateFailureKind::Blocked {
            self.rejected = Some(self.finding(failed));
            self.rejections += 1;
            if failed.count != self.rejections {
                self.wrong.push(format!("{}: rejected {} times, not {}", record.seq, self.rejections, failed.count));
            }
        }
        // A gate whose hook failed to run has no finding, except for missing changes.
        let unasked = (failed.why, failed.remedy) == (GateFailureKind::Failed, GateRemedy::GiveUp);
        if unasked && self.in_worktree && failed.hook != "no_changes" {
            self.untold = None;
            return;
        }
        if failed.remedy == GateRemedy::Hear {
            self.untold = None;
        }
        if !matches!(failed.remedy, GateRemedy::Again | GateRemedy::Hear) {
            let finding = self.finding(failed);
            match failed.remedy {
                GateRemedy::Remediate => self.untold = Some(VecDeque::from([finding])),
                _ => {
                    self.untold = None;
                    let is_unstarted = self.unstarted.contains(&failed.hook);
                    self.findings.extend(Some(finding).filter(|_| !is_unstarted));
                }
            }
            self.told.clear();
        }
    }

    /// Returns the finding of a failure: the feedback of the hook, else the reason.
    fn finding(&self, failed: &payload::PipelineFailed) -> GateFinding {
        let of_hook = self.said.get(&failed.hook).cloned().flatten();
        let text = failed.feedback.clone().or(of_hook).unwrap_or_else(|| failed.reason.clone());
        GateFinding { source: failed.hook.clone(), text }
    }

    /// Checks that findings are queued at once, in order, and once.
    fn check_feedback(&mut self, record: &EventRecord) {
        let Some(untold) = &mut self.untold else { return };
        match &record.envelope.event {
            Event::FeedbackQueued(queued) if queued.voice == MessageAuthor::Hook => {
                let told = GateFinding { source: queued.source.clone(), text: queued.text.clone() };
                match untold.pop_front() {
                    Some(next) if next == told => self.told.push(told),
                    Some(next) => self.wrong.push(format!("{}: {told:?} is delivered, not {next:?}", record.seq)),
                    None if self.told.contains(&told) => {
                        self.wrong.push(format!("{}: {told:?} is delivered twice", record.seq))
                    }
                    // Feedback from another source.
                    None => self.untold = None,
                }
            }
            _ if is_neutral(record.kind()) => {}
            _ => {
                if !untold.is_empty() {
                    self.wrong.push(format!("{}: {untold:?} was not delivered", record.seq));
                }
                self.untold = None;
            }
        }
    }

    /// Returns the violations, and the differences from the row.
    pub fn differences(&self, task: &Task) -> Vec<String> {
        let change = task.change.as_ref().map(|change| (change.at.clone(), change.opened, change.merged.clone()));
        let row = (&task.workspace, &change, task.rejections, &task.findings, &task.rejected);
        let said = (&self.workspace, &self.change, self.rejections, &self.findings, &self.rejected);
        let wrong = (row != said).then(|| format!("{}: the row keeps {row:?}, the log {said:?}", task.id));
        self.wrong.iter().cloned().chain(wrong).collect()
    }
}

/// Returns whether an event may come between a failure or a claim and the feedback that follows.
fn is_neutral(kind: EventType) -> bool {
    use EventType as E;
    matches!(
        kind,
        E::TaskClaimed | E::TaskStarted | E::PipelineFailed | E::FeedbackQueued | E::HookError | E::ConfigRecorded
    )
}
