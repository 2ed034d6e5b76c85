//! Submission of the work of an agent that has finished.
//!
//! Invariants:
//! - Commits that the base got from a worktree outside Windlass count neither as submitted work nor as merged. A person is told
//!   about them, once.
//! - After an agent was told of a conflict with the base, work that still conflicts is not submitted.

use std::collections::HashSet;

use windlass_engine::{
    AfterIteration, Command, Digest, EngineLimits, Event, EventRecord, EventType, GateVerdict, NextAction, Refusal,
    Session, SessionEndKind, SessionPhase, SubmissionCheck, SubmittedWork, Task, Workspace,
};
use windlass_hooks::excerpt_text;
use windlass_store::{EventFilter, ExecuteError};
use windlass_vcs::git::{BaseBranch, BranchName, BranchWork, Error, GitClient, GitCommitId, LoggedCommit, Worktree};

use crate::refresh::{BaseConflict, CONFLICT_FEEDBACK_SOURCE, RefreshOutcome};
use crate::stacked_branches;
use crate::wording::{MAX_NAMED_ITEMS, list_first_names};
use crate::workspace::commit_message;
use crate::workspace_problem::explain_git_error;
use crate::{RunError, Runner};

/// Content of a worktree whose agent has finished.
struct WorktreeContent {
    work: BranchWork,
    base: BaseBranch,
    /// Commits of the worktree that are in the base, newest first, or why they are unknown.
    unrecorded_merges: Result<Vec<LoggedCommit>, String>,
    /// Conflict that the agent was told to resolve, and has not.
    conflict: Option<BaseConflict>,
    /// Description of commits of the worktree that are not on its branch.
    stray_commits: Result<Vec<String>, String>,
    /// Description of files that are neither in the commit nor caches.
    beside_commit: Option<String>,
}

/// A notice for a person.
struct PersonNotice {
    reason: String,
    /// Recorded as data, because the texts of commits are not trusted.
    commits: Vec<String>,
}

impl Runner<'_> {
    /// Commits the changes that the agent has left, and submits the work.
    pub(crate) fn submit_work(&mut self, session: &Session) -> Result<(), RunError> {
        if session.report {
            return self.submit_report(session);
        }
        let Some(workspace) = &session.workspace else { return Err(RunError::Stuck(session.name.clone())) };
        let task = self.load_session_task(session)?;
        let moved = match session.resumes_at_gate {
            true => self.effects.move_judged_work(&task, workspace)?,
            false => RefreshOutcome::Unchanged,
        };
        let is_moved = matches!(moved, RefreshOutcome::Moved(_));
        // A hook whose block was overruled would only block the work again.
        let is_let_pass =
            matches!(&session.phase, SessionPhase::Settled(AfterIteration::Close(closing)) if closing.reason.is_some());
        let is_compared = !session.resumes_at_gate && !is_let_pass && self.has_judges_of_turns(Some(&task));
        // Before the commit, since the digest of the files changes with it.
        let is_changed = is_compared && self.has_changed_since_turn(session)?;
        moved.into_messages().0.iter().for_each(|words| (self.effects.env.observe)(crate::RunnerEvent::Note(words)));
        // Work that only waits for a gate stays as it was judged.
        let must_fit = !session.resumes_at_gate && self.was_told_of_conflict(&task)?;
        let compared = is_compared && !is_changed;
        let check = match self.load_worktree_content(workspace, &task, (must_fit, compared))? {
            Ok(found) => {
                let name = session.name.clone();
                if let Some(note) = describe_stray_commits(&task, &found.stray_commits) {
                    (self.effects.env.observe)(crate::RunnerEvent::Note(&note));
                }
                if let Some(PersonNotice { reason, commits }) = self.notice_of_unjudged_merges(&task, &found)? {
                    return self.commit_command(&Command::LeaveToPerson { name, reason, commits }).map(drop);
                }
                let is_lost = self.removed_branch.take() == Some(task.id) && found.work.commit_count() == 0;
                match found.conflict {
                    None if is_lost => removed_branch_feedback(workspace),
                    Some(BaseConflict { why, feedback }) => {
                        let reason = format!("the work still conflicts with {}: {why}", found.base.display_name());
                        SubmissionCheck::NotSubmittable { hook: CONFLICT_FEEDBACK_SOURCE.to_owned(), reason, feedback }
                    }
                    None => {
                        let BranchWork { head, files, .. } = &found.work;
                        let files = u32::try_from(files.len()).unwrap_or(u32::MAX);
                        let work = SubmittedWork { head: head.to_string(), commits: found.work.commit_count(), files };
                        let changed = is_changed.then(|| "files have changed while the stop hooks judged".to_owned());
                        if let Some(beside) = &found.beside_commit.clone().or(changed) {
                            let note = format!(
                                "{}: stop hooks judge {} in a fresh checkout: {beside}",
                                task.id,
                                head.short_id()
                            );
                            (self.effects.env.observe)(crate::RunnerEvent::Note(&note));
                        }
                        let is_judged = !is_moved && !is_changed && found.beside_commit.is_none();
                        if is_judged { SubmissionCheck::Work(work) } else { SubmissionCheck::Unjudged(work) }
                    }
                }
            }
            Err(_) if self.effects.control.is_cancelled() => return Ok(()),
            Err(
                error @ (Error::Markers { .. }
                | Error::Unfinished { .. }
                | Error::Embedded { .. }
                | Error::Unkept { .. }
                | Error::Uncommittable { .. }
                | Error::Obstacle { .. }
                | Error::Strayed { .. }),
            ) => {
                let said = explain_git_error(&error);
                SubmissionCheck::NotSubmittable { hook: "commit".to_owned(), reason: error.to_string(), feedback: said }
            }
            Err(error) => {
                return self.stop_session(&session.name, SessionEndKind::Error, Some(explain_git_error(&error)));
            }
        };
        self.commit_submission(session, check)
    }

    /// Submits the agent's last output as a report, and tells people about its other changes.
    fn submit_report(&mut self, session: &Session) -> Result<(), RunError> {
        let said = self.effects.last_turn_output(session)?.unwrap_or_default();
        if let Some(workspace) = &session.workspace {
            let id = session.task.map(|id| id.to_string()).unwrap_or_default();
            let note = match self.describe_report_changes(workspace) {
                Ok(left) if left.is_empty() => None,
                Ok(left) => {
                    let left = left.join("; ");
                    Some(format!("{id} ends with a report, so what the agent changed is not merged: {left}"))
                }
                Err(_) if self.effects.control.is_cancelled() => None,
                Err(error) => {
                    let why = explain_git_error(&error);
                    Some(format!("cannot tell what the agent changed beside the report of {id}: {why}"))
                }
            };
            note.iter().for_each(|note| (self.effects.env.observe)(crate::RunnerEvent::Note(note)));
        }
        self.commit_submission(
            session,
            SubmissionCheck::Report(excerpt_text(strip_completion_tag(&said), EngineLimits::RESULT_BYTES)),
        )
    }

    /// Describes the changes that an agent has made in the checkout of its report.
    fn describe_report_changes(&self, workspace: &Workspace) -> Result<Vec<String>, Error> {
        self.effects.with_git(|git| {
            let worktree = self.effects.task_worktree(workspace)?;
            let start = GitCommitId::new(&workspace.start)?;
            let mut left = Vec::new();
            let files = git.uncommitted_files(&worktree)?;
            if !files.is_empty() {
                let files =
                    list_first_names(&files, files.len(), |file| file.to_string_lossy().escape_debug().to_string());
                left.push(format!("uncommitted in .windlass/worktrees/{}: {files}", workspace.name));
            }
            let work = git.read_branch_work(&worktree.branch, &start)?;
            let count = usize::try_from(work.commits).unwrap_or(usize::MAX);
            if count > 0 {
                let commits = git.read_log(&start, &work.head, MAX_NAMED_ITEMS)?;
                left.push(format!(
                    "committed on {}: {}",
                    worktree.branch,
                    list_first_names(&commits, count, describe_commit)
                ));
            }
            left.extend(
                list_stray_commits(git, &worktree, &start, &work.head)
                    .unwrap_or_else(|why| vec![format!("what it committed on other branches is unknown: {why}")]),
            );
            Ok(left)
        })
    }

    fn commit_submission(&mut self, session: &Session, check: SubmissionCheck) -> Result<(), RunError> {
        match self.commit_command(&Command::SubmitWork { name: session.name.clone(), check }) {
            // The session was cancelled, or the task was taken away, at this very moment.
            Err(RunError::Execute(ExecuteError::Refused(Refusal::IllegalSession { .. })))
                if self.load_session(&session.name)?.next_action() != NextAction::Work =>
            {
                Ok(())
            }
            given => given.map(drop),
        }
    }

    /// Returns whether an agent was told that the work on a task conflicts with its base.
    fn was_told_of_conflict(&self, task: &Task) -> Result<bool, RunError> {
        let filter =
            EventFilter { types: vec![EventType::FeedbackQueued], task: Some(task.id), ..EventFilter::default() };
        let queued = self.effects.store.read_events_back(&filter, None, usize::MAX)?;
        let is_conflict =
            |event: &Event| matches!(event, Event::FeedbackQueued(queued) if queued.source == CONFLICT_FEEDBACK_SOURCE);
        Ok(queued.iter().any(|record| is_conflict(&record.envelope.event)))
    }

    fn load_worktree_content(
        &self,
        workspace: &Workspace,
        task: &Task,
        (must_fit, is_compared): (bool, bool),
    ) -> Result<Result<WorktreeContent, Error>, RunError> {
        let below = self.effects.load_lower_tasks(workspace)?;
        Ok(self.effects.with_git(|git| {
            let worktree = self.effects.task_worktree(workspace)?;
            git.commit_all(&worktree, &commit_message(task))?;
            let base = self.effects.load_base(git)?;
            let own = stacked_branches::own_work_base(git, workspace, &below, &base.commit)?;
            let work = git.read_branch_work(&worktree.branch, &own)?;
            let work = match work.commit_count() {
                0 => merged_work_of_former_attempt(git, task, &base)?
                    .map_or_else(|| work.clone(), |merged| BranchWork { head: work.head.clone(), ..merged }),
                _ => work,
            };
            let past_us = match git.commits_made_in(&worktree, &GitCommitId::new(&workspace.start)?, &base.commit) {
                Err(error @ Error::Unnoted { .. }) => Err(explain_git_error(&error)),
                made => Ok(made?),
            };
            let conflict = match must_fit {
                true => self.effects.find_conflict(git, workspace, &base, &below)?,
                false => None,
            };
            let beside = list_stray_commits(git, &worktree, &GitCommitId::new(&workspace.start)?, &work.head);
            let beside_commit =
                match is_compared.then(|| self.effects.describe_uncommitted_files(workspace, &work.head)) {
                    Some(Err(_)) if self.effects.control.is_cancelled() => None,
                    Some(Err(error)) => {
                        Some(format!("the worktree cannot be compared with it: {}", explain_git_error(&error)))
                    }
                    Some(Ok(beside)) => beside,
                    None => None,
                };
            Ok(WorktreeContent {
                work,
                base,
                unrecorded_merges: past_us,
                conflict,
                stray_commits: beside,
                beside_commit,
            })
        }))
    }

    /// Returns whether the files of the work have changed since the end of the last turn, after which stop hooks judged them.
    fn has_changed_since_turn(&mut self, session: &Session) -> Result<bool, RunError> {
        let judged = self.last_turn_digest(session)?;
        Ok(judged.is_none() || self.digest_work_files(session) != judged)
    }

    /// Warns if work in place has changed while the stop hooks judged it and let it pass.
    pub(crate) fn warn_of_change_during_gate(&mut self, records: &[EventRecord]) -> Result<(), RunError> {
        let passes = |record: &&EventRecord| matches!(&record.envelope.event, Event::GateDecided(decided) if decided.verdict == GateVerdict::Pass);
        let Some(name) = records.iter().find(passes).and_then(|record| record.envelope.session.clone()) else {
            return Ok(());
        };
        let session = self.load_session(&name)?;
        let task = session.task.map(|id| self.effects.load_task(id)).transpose()?.flatten();
        if session.workspace.is_none()
            && self.has_judges_of_turns(task.as_ref())
            && let Some(judged) = self.last_turn_digest(&session)?
            && self.digest_work_files(&session).is_some_and(|now| now != judged)
        {
            let words = "files have changed while the stop hooks judged the work: what is there now was not judged";
            (self.effects.env.observe)(crate::RunnerEvent::Note(words));
        }
        Ok(())
    }

    /// Returns the digest of the work's files at the end of the last turn, as far as git knew of them.
    fn last_turn_digest(&self, session: &Session) -> Result<Option<Digest>, RunError> {
        let turn =
            session.last_turn.map(|at| self.effects.load_event(at)).transpose()?.map(|record| record.envelope.event);
        Ok(if let Some(Event::TurnFinished(finished)) = turn { finished.tree } else { None })
    }

    /// Returns a notice if the base has unjudged work of this task, or may have.
    fn notice_of_unjudged_merges(
        &self,
        task: &Task,
        found: &WorktreeContent,
    ) -> Result<Option<PersonNotice>, RunError> {
        if found.unrecorded_merges.as_ref().is_ok_and(Vec::is_empty) {
            return Ok(None);
        }
        let noticed = self.commits_of_earlier_notices(task)?;
        let (base, id, at) = (found.base.display_name(), task.id, &found.base.commit);
        let past_us = match &found.unrecorded_merges {
            Ok(past_us) => past_us,
            Err(_) if noticed.contains(at.as_str()) => return Ok(None),
            Err(why) => {
                let reason = format!(
                    "cannot tell whether {base} has unjudged work of this task: {why}. Look at the commits of \
                     {base} up to {}; `windlass answer {id} continue` continues with them",
                    at.short_id()
                );
                return Ok(Some(PersonNotice { reason, commits: vec![at.to_string()] }));
            }
        };
        let news = past_us.iter().take_while(|logged| !noticed.contains(logged.commit.as_str())).count();
        // Without other work, a person has to decide about the task.
        if news == 0 && found.work.commit_count() > 0 {
            return Ok(None);
        }
        let named = |logged: &LoggedCommit| {
            let (subject, author) = (logged.subject.escape_debug(), logged.author.escape_debug());
            format!("{} ({subject}, by {author})", logged.commit.short_id())
        };
        let mut commits: Vec<String> = past_us.iter().take(MAX_NAMED_ITEMS).map(named).collect();
        if past_us.len() > MAX_NAMED_ITEMS {
            commits.push(format!("{} more", past_us.len() - MAX_NAMED_ITEMS));
        }
        let reason = format!(
            "{base} has unjudged work of this task, and windlass has not merged it: {}. `windlass answer {id} \
             approve` completes the task with it; to undo it, revert it on {base} and `windlass answer {id} continue`",
            commits.join(", "),
        );
        let commits =
            past_us.iter().take(EngineLimits::REPORTED_COMMITS).map(|logged| logged.commit.to_string()).collect();
        Ok(Some(PersonNotice { reason, commits }))
    }

    /// Returns the commits that earlier notices for a person have named.
    fn commits_of_earlier_notices(&self, task: &Task) -> Result<HashSet<String>, RunError> {
        let blocked =
            EventFilter { types: vec![EventType::TaskBlocked], task: Some(task.id), ..EventFilter::default() };
        // The end of a session with a given task has the notice instead.
        let stopping = EventFilter { types: vec![EventType::SessionStopping], ..EventFilter::default() };
        let mut noticed = HashSet::new();
        for filter in [blocked, stopping] {
            for record in self.effects.store.read_events_back(&filter, None, usize::MAX)? {
                match record.envelope.event {
                    Event::TaskBlocked(blocked) => noticed.extend(blocked.commits),
                    Event::SessionStopping(stopping) => noticed.extend(stopping.commits),
                    _ => {}
                }
            }
        }
        Ok(noticed)
    }
}

/// Returns the work of the attempt before this one, if the base has it: its machine may have merged it, and was lost before it
/// recorded that. Then the gates judge the base, and find the merge.
fn merged_work_of_former_attempt(
    git: &GitClient<'_>,
    task: &Task,
    base: &BaseBranch,
) -> Result<Option<BranchWork>, Error> {
    let Some(former) = task.former_workspaces.last() else { return Ok(None) };
    let (branch, start) = (BranchName::new(&former.branch)?, GitCommitId::new(&former.start)?);
    match git.branch_tip(&branch)? {
        Some(tip) if tip != start && git.has_all_changes(&base.commit, &tip)? => {
            git.read_branch_work(&branch, &start).map(Some)
        }
        _ => Ok(None),
    }
}

/// Returns the feedback for an agent whose branch was removed with its commits.
fn removed_branch_feedback(workspace: &Workspace) -> SubmissionCheck {
    let branch = &workspace.branch;
    let reason = format!("the branch {branch} was removed with its worktree, and has no commit since");
    let feedback = format!(
        "The branch {branch} and its worktree were removed, and made again where the work started. The commits on \
         the old branch are not part of the work. If you know the last commit, `git merge COMMIT` brings it back; otherwise \
         do the work again. Leave the branch and its worktree in place."
    );
    SubmissionCheck::NotSubmittable { hook: "commit".to_owned(), reason, feedback }
}

/// Returns a note for people about commits that are not on the branch of a change.
fn describe_stray_commits(task: &Task, beside: &Result<Vec<String>, String>) -> Option<String> {
    const STRAY_COMMITS: &str = "commits that are not part of its change";
    let id = task.id;
    match beside {
        Ok(beside) if beside.is_empty() => None,
        Ok(beside) => Some(format!("{id}: the agent left {STRAY_COMMITS}: {}", beside.join("; "))),
        Err(why) => Some(format!("{id}: cannot tell whether the agent left {STRAY_COMMITS}: {why}")),
    }
}

/// Describes commits of a worktree that are not on its branch. An error is no reason to hold up the work.
fn list_stray_commits(
    git: &GitClient<'_>,
    worktree: &Worktree,
    start: &GitCommitId,
    tip: &GitCommitId,
) -> Result<Vec<String>, String> {
    let beside = git.commits_made_beside(worktree, start, tip).map_err(|error| explain_git_error(&error))?;
    let name = |(place, commits): (String, Vec<LoggedCommit>)| {
        let commits = list_first_names(&commits, commits.len(), describe_commit);
        format!("committed on {}: {commits}", place.escape_debug())
    };
    Ok(beside.into_iter().map(name).collect())
}

fn describe_commit(logged: &LoggedCommit) -> String {
    format!("{} ({})", logged.commit.short_id(), logged.subject.escape_debug())
}

/// Returns a final message without the completion tag at its end.
fn strip_completion_tag(said: &str) -> &str {
    const COMPLETION_TAG: &str = "<promise>complete</promise>";
    let said = said.trim_end();
    let line = said.rfind('\n').map_or(0, |end| end + 1);
    match said[line..].to_ascii_lowercase().find(COMPLETION_TAG) {
        Some(at) => said[..line + at].trim_end_matches(|letter: char| letter.is_whitespace() || "*_`".contains(letter)),
        None => said,
    }
}

#[cfg(test)]
mod tests {
    use super::strip_completion_tag;

    #[test]
    fn strip_completion_tag_drops_only_the_final_tag() {
        assert_eq!(strip_completion_tag("All is well.\n\n**<promise>COMPLETE</promise>**\n"), "All is well.");
        assert_eq!(strip_completion_tag("All is well. <promise>Complete</promise>."), "All is well.");
        assert_eq!(strip_completion_tag("<promise>COMPLETE</promise>"), "");
        assert_eq!(
            strip_completion_tag("Say <promise>COMPLETE</promise>\nwhen done."),
            "Say <promise>COMPLETE</promise>\nwhen done."
        );
    }
}
