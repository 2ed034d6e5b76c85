//! The delivery of work through the gates, in words.

use crate::changes::{describe_work_size, list_stacked_tasks};
use windlass_config::BuiltinHook;
use windlass_engine::{
    ChangeRef, DeliveryGate, Event, EventRecord, GateFinding, GateRemedy, HookClass, HookEffect, Task, TaskState,
    Workspace, payload,
};

use crate::tone::TextTone;

/// The notice while another task is merged first.
pub const QUEUEING_NOTICE: &str = "waiting for another task to be merged";

/// Summarizes an event of the delivery; returns `None` for any other.
pub fn summarize_pipeline_event(event: &Event) -> Option<String> {
    Some(match event {
        Event::WorkspaceOpened(opened) => {
            let again = if opened.reused { ", again" } else { "" };
            format!("{} {}{again}", opened.workspace.branch, format_origin(&opened.workspace))
        }
        Event::SubmissionStarted(started) => started.work.as_ref().map(describe_work_size).unwrap_or_default(),
        Event::PipelineFailed(failed) if failed.remedy == GateRemedy::Again => format_repeated_gate(failed),
        Event::PipelineFailed(failed) if failed.remedy == GateRemedy::Hear => format_feedback_first(failed),
        Event::PipelineFailed(failed) => {
            // No hook has this name: it stands for work without commits.
            let hook = if failed.hook == "no_changes" { "no changes" } else { failed.hook.as_str() };
            format!("{hook}: {}; {}", failed.reason, describe_remedy(failed))
        }
        Event::TaskRejected(rejected) => format!("by {}: {}", rejected.by, rejected.reason),
        Event::ChangeOpened(change) => format_change_location(change),
        Event::ChangeMerged(merged) => {
            let seen = merged.seen.as_ref().map(|seen| format!(": {seen}")).unwrap_or_default();
            format!("{}{seen}", merged.commit)
        }
        _ => return None,
    })
}

/// The label of a fact about a task's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PipelineFactLabel {
    Branch,
    StandsOn,
    Worktree,
    Former,
    Change,
    Next,
    Rejected,
    Resumes,
    Finding,
}

impl PipelineFactLabel {
    pub fn name(self) -> &'static str {
        match self {
            Self::Branch => "branch",
            Self::StandsOn => "stands on",
            Self::Worktree => "worktree",
            Self::Former => "former",
            Self::Change => "change",
            Self::Next => "next",
            Self::Rejected => "rejected",
            Self::Resumes => "resumes",
            Self::Finding => "finding",
        }
    }
}

/// Lists the branch of a task's work, its change and the findings of others in labelled lines, with the command that a person types
/// next.
pub fn list_pipeline_details(task: &Task, next: Option<String>) -> Vec<(&'static str, String)> {
    list_pipeline_facts(task, next).into_iter().map(|(label, text)| (label.name(), text)).collect()
}

/// Lists the lines of [`list_pipeline_details`] by their labels.
pub fn list_pipeline_facts(task: &Task, next: Option<String>) -> Vec<(PipelineFactLabel, String)> {
    let mut lines = Vec::new();
    let merged = task.change.as_ref().and_then(|change| change.merged.as_ref());
    if let Some(workspace) = &task.workspace {
        lines.push((PipelineFactLabel::Branch, format!("{} from {}", workspace.branch, workspace.base)));
        if let Some(below) = list_stacked_tasks(workspace) {
            lines.push((PipelineFactLabel::StandsOn, below));
        }
        let is_reported = task.report.is_some() && task.state == TaskState::Completed;
        if merged.is_none() && !is_reported {
            lines.push((PipelineFactLabel::Worktree, format!(".windlass/worktrees/{}", workspace.name)));
        }
    }
    // The last former branch comes first, because the present branch continues from it.
    for (place, former) in task.former_workspaces.iter().enumerate().rev() {
        let from = task.taken.as_ref().filter(|_| place + 1 == task.former_workspaces.len());
        let from = from.map(|taken| format!(", taken from session `{}` (epoch {})", taken.from, taken.epoch));
        lines.push((PipelineFactLabel::Former, format!("{}{}", former.branch, from.unwrap_or_default())));
    }
    if let Some(change) = &task.change {
        let stands = merged.map_or_else(|| "open".to_owned(), |commit| format!("merged as {commit}"));
        lines.push((PipelineFactLabel::Change, format!("{}, {stands}", format_change_location(&change.at))));
    }
    lines.extend(next.map(|next| (PipelineFactLabel::Next, next)));
    if task.rejections > 0 {
        lines.push((
            PipelineFactLabel::Rejected,
            if task.rejections == 1 { "once".to_owned() } else { format!("{} times", task.rejections) },
        ));
    }
    if let Some(stalled) = &task.stalled {
        let gate = stalled.gate.hook_point();
        lines.push((PipelineFactLabel::Resumes, format!("at {gate}; no agent works on it again")));
    }
    let describe = |finding: &GateFinding| format!("{}: {}", finding.source, finding.text);
    lines.extend(list_findings(task).map(|finding| (PipelineFactLabel::Finding, describe(finding))));
    lines
}

/// Lists the findings about a task's work: the one of its last rejection first.
pub fn list_findings(task: &Task) -> impl Iterator<Item = &GateFinding> {
    let rejected = task.rejected.iter().filter(move |rejected| !task.findings.contains(rejected));
    rejected.chain(&task.findings)
}

/// Describes the progress of the delivery during a session.
pub fn describe_progress(record: &EventRecord) -> Option<(TextTone, String)> {
    Some(match &record.envelope.event {
        Event::WorkspaceOpened(opened) if opened.reused => {
            (TextTone::Faint, format!("in its worktree again, on {}", opened.workspace.branch))
        }
        Event::WorkspaceOpened(opened) => (
            TextTone::Faint,
            format!("in a worktree, on {} {}", opened.workspace.branch, format_origin(&opened.workspace)),
        ),
        Event::SubmissionStarted(started) => {
            let size = started.work.as_ref().map(|work| format!(": {}", describe_work_size(work))).unwrap_or_default();
            (TextTone::Plain, format!("submitting{size}"))
        }
        Event::MergeStarted(_) if has_merge_hook(record) => (TextTone::Plain, "merging".to_owned()),
        Event::MergeStarted(_) => (TextTone::Plain, "judging".to_owned()),
        Event::PipelineFailed(failed) if failed.remedy == GateRemedy::Again => {
            (TextTone::Plain, format_repeated_gate(failed))
        }
        Event::PipelineFailed(failed) if failed.remedy == GateRemedy::Hear => {
            (TextTone::Plain, format_feedback_first(failed))
        }
        Event::PipelineFailed(failed) => {
            let (count, most) = (failed.count, failed.most);
            let text = match (failed.remedy, failed.gate) {
                // Without feedback, no hook has shown the reason.
                (GateRemedy::Remediate, _) if failed.feedback.is_some() => {
                    format!("{}: sent back to fix it ({count} of {most})", failed.reason)
                }
                (GateRemedy::Remediate, _) => format!("sent back to fix it ({count} of {most})"),
                (GateRemedy::Reject, _) => format!("rejected ({count} of {most}): the agent works on it again"),
                (GateRemedy::Again | GateRemedy::GiveUp | GateRemedy::Escalate | GateRemedy::Hear, _) => return None,
            };
            (TextTone::Warning, text)
        }
        Event::ChangeOpened(change) => (TextTone::Name, format!("its change: {}", format_change_location(change))),
        // The merge is not of this session, and was shown when it was seen.
        Event::ChangeMerged(merged) if merged.seen.is_some() => return None,
        Event::ChangeMerged(merged) => {
            let commit = merged.commit.get(..10).unwrap_or(&merged.commit);
            (TextTone::Good, format!("merged as {commit}"))
        }
        _ => return None,
    })
}

/// Formats the base that a branch began on.
fn format_origin(workspace: &Workspace) -> String {
    list_stacked_tasks(workspace)
        .map_or_else(|| format!("from {}", workspace.base), |below| format!("on top of {below}"))
}

/// Formats a repeated gate: a base that has moved is not a failure.
pub fn format_repeated_gate(failed: &payload::PipelineFailed) -> String {
    format!("{}: judged again", failed.reason)
}

/// Formats feedback that comes before acceptance: a message of a person is not a failure.
pub fn format_feedback_first(failed: &payload::PipelineFailed) -> String {
    format!("{}: the agent gets it before the work is accepted", failed.reason)
}

/// Returns whether one of the hooks merges the change, rather than only judging it.
fn has_merge_hook(record: &EventRecord) -> bool {
    let prepares = [BuiltinHook::CreatePr, BuiltinHook::RebaseOnMain];
    let merges = |owed: &HookEffect| {
        owed.class == HookClass::Vcs && !prepares.iter().any(|builtin| owed.hook.ends_with(builtin.name()))
    };
    record.envelope.metadata.owes.as_ref().is_some_and(|owed| owed.hooks.iter().any(merges))
}

/// Describes what follows after a failed gate.
pub fn describe_remedy(failed: &payload::PipelineFailed) -> String {
    let (count, most) = (failed.count, failed.most);
    match (failed.remedy, failed.gate) {
        (GateRemedy::Remediate, _) => format!("the agent must fix it ({count} of {most})"),
        (GateRemedy::GiveUp, _) => "left for the next run".to_owned(),
        (GateRemedy::Reject, _) => format!("the agent works on it again ({count} of {most})"),
        (GateRemedy::Escalate, DeliveryGate::BeforeMerge) if count >= most => {
            format!("a person is asked after {count}")
        }
        (GateRemedy::Escalate, _) => "a person is asked".to_owned(),
        (GateRemedy::Again, _) => "it is judged again, on top of the newest base".to_owned(),
        (GateRemedy::Hear, _) => "the agent gets it first".to_owned(),
    }
}

/// Formats the place where a change can be looked at.
pub fn format_change_location(change: &ChangeRef) -> String {
    let local = || change.branch.as_ref().map(|branch| format!("branch {branch}"));
    change.url.clone().or_else(local).unwrap_or_else(|| "an unknown place".to_owned())
}
