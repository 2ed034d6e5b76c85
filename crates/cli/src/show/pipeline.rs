//! Work on its way through the gates, in a few words.

use windlass_engine::{ChangeRef, Event, Gate, Remedy, payload};

/// What such an event says.
pub fn summary(event: &Event) -> Option<String> {
    Some(match event {
        Event::WorkspaceOpened(opened) => {
            let again = if opened.reused { ", again" } else { "" };
            format!("{} from {}{again}", opened.workspace.branch, opened.workspace.base)
        }
        Event::SubmissionStarted(started) => started.work.as_ref().map_or_else(String::new, |work| {
            let commits = if work.commits == 1 { "one commit".to_owned() } else { format!("{} commits", work.commits) };
            let files = if work.files == 1 { "one file".to_owned() } else { format!("{} files", work.files) };
            format!("{commits}, {files}")
        }),
        Event::PipelineFailed(failed) => format!("{}: {}; {}", failed.hook, failed.reason, follows(failed)),
        Event::TaskRejected(rejected) => format!("by {}: {}", rejected.by, rejected.reason),
        Event::ChangeOpened(change) => place(change),
        Event::ChangeMerged(merged) => merged.commit.clone(),
        _ => return None,
    })
}

/// What follows where a gate is not passed.
pub fn follows(failed: &payload::PipelineFailed) -> String {
    let (count, most) = (failed.count, failed.most);
    match (failed.remedy, failed.gate) {
        (Remedy::Remediate, _) => format!("the agent is to mend it ({count} of {most})"),
        (Remedy::GiveUp, _) => "left for the next run".to_owned(),
        (Remedy::Reject, _) => format!("it is to be worked on again ({count} of {most})"),
        (Remedy::Escalate, Gate::BeforeMerge) if count >= most => format!("a person is asked after {count}"),
        (Remedy::Escalate, _) => "a person is asked".to_owned(),
        (Remedy::Again, _) => "it is judged again, on top of the newest base".to_owned(),
    }
}

/// Where a change can be looked at.
pub fn place(change: &ChangeRef) -> String {
    let local = || change.branch.as_ref().map(|branch| format!("branch {branch}"));
    change.url.clone().or_else(local).unwrap_or_else(|| "somewhere".to_owned())
}
