//! The state that a task keeps between attempts, computed from the log alone: its workspace, its change, its rejections, and
//! the findings for the next session.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use windlass_engine::{
    ChangeRef, DeliveryGate, Event, EventRecord, EventType, GateFailureKind, GateFinding, GateRemedy, HookOutcome,
    MessageAuthor, Seq, SessionName, SessionTerms, StateField, Task, TaskId, TaskTransition, Workspace, payload,
};

/// The state that one task keeps between attempts.
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
    pending_findings: Option<VecDeque<GateFinding>>,
    delivered_findings: Vec<GateFinding>,
    /// The last feedback of each hook that the holder has run.
    hook_feedback: BTreeMap<String, Option<String>>,
    /// Hooks of the holder whose agent could not be started, so that they have no finding.
    unstarted: BTreeSet<String>,
    violations: Vec<String>,
}

impl TaskHistory {
    pub fn has_open_change(&self) -> bool {
        matches!(self.change, Some((_, _, None)))
    }
}

/// Returns the history of every task, with the violations in it.
pub fn read_task_histories(log: &[EventRecord]) -> BTreeMap<TaskId, TaskHistory> {
    let (mut tasks, mut terms_oracle) = (BTreeMap::<TaskId, TaskHistory>::new(), SessionTermsOracle::default());
    for record in log {
        terms_oracle.observe(record);
        if let Some(task) = record.envelope.node.task_id() {
            tasks.entry(task).or_default().observe(record, &terms_oracle);
        }
        // The findings for a session must come before its other events.
        for history in tasks.values_mut().filter(|history| history.holder == record.envelope.session) {
            history.check_feedback(record);
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
    fn observe(&mut self, record: &EventRecord, terms_oracle: &SessionTermsOracle) {
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
                self.pending_findings = claimed.session.is_some().then(|| std::mem::take(&mut self.findings).into());
                self.delivered_findings.clear();
            }
            Event::SubmissionStarted(started) => self.in_worktree = started.work.is_some(),
            Event::MergeStarted(started) => self.in_worktree |= started.work.is_some(),
            Event::WorkspaceOpened(opened) => self.workspace = Some(opened.workspace.clone()),
            Event::LeaseExpired(expired) if expired.silent => self.workspace = None,
            Event::ChangeOpened(change) => self.change = Some((change.clone(), record.seq, None)),
            Event::ChangeMerged(merged) => match &mut self.change {
                Some((_, _, commit @ None)) => *commit = Some(merged.commit.clone()),
                _ => self.violations.push(format!("{}: it was merged twice, or never opened", record.seq)),
            },
            Event::PipelineFailed(failed) => self.observe_failure(record, failed),
            Event::TaskRejected(_) => {
                let limit =
                    record.envelope.session.as_ref().map_or(0, |name| terms_oracle.session_terms[name].max_rejections);
                if self.rejections > limit {
                    self.violations.push(format!("{}: rejected {} times, of {limit}", record.seq, self.rejections));
                }
            }
            Event::HookFinished(finished) if own && finished.outcome != HookOutcome::Skip => {
                self.hook_feedback.insert(finished.hook.clone(), finished.feedback.clone());
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
            (self.holder, self.pending_findings) = (None, None);
        }
    }

    fn observe_failure(&mut self, record: &EventRecord, failed: &payload::PipelineFailed) {
        if failed.gate == DeliveryGate::BeforeMerge && failed.why == GateFailureKind::Blocked {
            self.rejected = Some(self.finding(failed));
            self.rejections += 1;
            if failed.count != self.rejections {
                self.violations
                    .push(format!("{}: rejected {} times, not {}", record.seq, self.rejections, failed.count));
            }
        }
        // A gate whose hook failed to run has no finding, except for missing changes.
        let is_unjudged = (failed.why, failed.remedy) == (GateFailureKind::Failed, GateRemedy::GiveUp);
        if is_unjudged && self.in_worktree && failed.hook != "no_changes" {
            self.pending_findings = None;
            return;
        }
        if failed.remedy == GateRemedy::Hear {
            self.pending_findings = None;
        }
        if !matches!(failed.remedy, GateRemedy::Again | GateRemedy::Hear) {
            let finding = self.finding(failed);
            match failed.remedy {
                GateRemedy::Remediate => self.pending_findings = Some(VecDeque::from([finding])),
                _ => {
                    self.pending_findings = None;
                    let is_unstarted = self.unstarted.contains(&failed.hook);
                    self.findings.extend(Some(finding).filter(|_| !is_unstarted));
                }
            }
            self.delivered_findings.clear();
        }
    }

    /// Returns the finding of a failure: the feedback of the hook, else the reason.
    fn finding(&self, failed: &payload::PipelineFailed) -> GateFinding {
        let of_hook = self.hook_feedback.get(&failed.hook).cloned().flatten();
        let text = failed.feedback.clone().or(of_hook).unwrap_or_else(|| failed.reason.clone());
        GateFinding { source: failed.hook.clone(), text }
    }

    /// Checks that findings are queued at once, in order, and once.
    fn check_feedback(&mut self, record: &EventRecord) {
        let Some(pending_findings) = &mut self.pending_findings else { return };
        match &record.envelope.event {
            Event::FeedbackQueued(queued) if queued.voice == MessageAuthor::Hook => {
                let finding = GateFinding { source: queued.source.clone(), text: queued.text.clone() };
                match pending_findings.pop_front() {
                    Some(next) if next == finding => self.delivered_findings.push(finding),
                    Some(next) => {
                        self.violations.push(format!("{}: {finding:?} is delivered, not {next:?}", record.seq))
                    }
                    None if self.delivered_findings.contains(&finding) => {
                        self.violations.push(format!("{}: {finding:?} is delivered twice", record.seq))
                    }
                    // Feedback from another source.
                    None => self.pending_findings = None,
                }
            }
            _ if is_neutral(record.kind()) => {}
            _ => {
                if !pending_findings.is_empty() {
                    self.violations.push(format!("{}: {pending_findings:?} was not delivered", record.seq));
                }
                self.pending_findings = None;
            }
        }
    }

    /// Returns the violations, and the differences from the row.
    pub fn differences(&self, task: &Task) -> Vec<String> {
        let change = task.change.as_ref().map(|change| (change.at.clone(), change.opened, change.merged.clone()));
        let row = (&task.workspace, &change, task.rejections, &task.findings, &task.rejected);
        let expected = (&self.workspace, &self.change, self.rejections, &self.findings, &self.rejected);
        let violations = (row != expected).then(|| format!("{}: the row keeps {row:?}, the log {expected:?}", task.id));
        self.violations.iter().cloned().chain(violations).collect()
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
