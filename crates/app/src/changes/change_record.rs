//! A change as the log records it, with its state in git and on the forge.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use windlass_engine::{
    Event, EventType, Record, Seq, State, Task, TaskChange, TaskId, Timestamp, View, WorkDone, Workspace,
};
use windlass_runner::external_merges::ExternalMerge;
use windlass_store::{Filter, Store};

use super::{below, has_open_change, size};
use crate::context::Opened;
use crate::resume_command::ResumeCommand;
use crate::{Code, Failure, hints};

/// A change, with the work that was submitted last.
pub struct ChangeRecord {
    pub task: Task,
    pub change: TaskChange,
    pub opened_at: Timestamp,
    pub work: Option<WorkDone>,
    /// Its state on the forge, if the forge was asked.
    pub on_forge: Option<Result<ChangeState, String>>,
    /// The merge that git shows in its base, although the log knows of none.
    pub landed: Option<ExternalMerge>,
    /// How its merge was recognized in the base, if the log records a merge that Windlass did not make.
    pub noted: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeState {
    Open,
    Merged,
    Closed,
    /// The change is abandoned: its task was deleted.
    Dropped,
}

impl ChangeState {
    /// Returns the state in one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Merged => "merged",
            Self::Closed => "closed",
            Self::Dropped => "dropped",
        }
    }
}

impl ChangeRecord {
    /// Loads the change of a task.
    pub fn of(opened: &Opened, id: TaskId) -> Result<Self, Failure> {
        let task = opened.task(id)?;
        let Some(change) = task.change.clone() else {
            let hint = match (&task.workspace, task.state) {
                (Some(workspace), _) => {
                    format!(
                        "its work is on the branch {}; `windlass why {id}` says how far it has come",
                        workspace.branch
                    )
                }
                (None, State::Ready) => ResumeCommand::for_task(opened, id)?.in_sentence("works on it"),
                (None, _) => format!("`windlass why {id}` shows what was done about it"),
            };
            return Err(Failure::new(Code::NotFound, format!("{id} has no change")).hint(hint));
        };
        let event = opened.store.event(change.opened).map_err(hints::store)?;
        let opened_at = event.map_or(task.created_at, |record| record.envelope.timestamp);
        let work = match find_last(opened, id, EventType::SubmissionStarted)? {
            Some(Event::SubmissionStarted(started)) => started.work,
            _ => None,
        };
        let noted = match find_last(opened, id, EventType::ChangeMerged)? {
            Some(Event::ChangeMerged(merged)) if change.merged.is_some() => merged.seen,
            _ => None,
        };
        Ok(Self { work, task, change, opened_at, on_forge: None, landed: None, noted })
    }

    pub fn state(&self) -> ChangeState {
        match (&self.change.merged, &self.on_forge) {
            (Some(_), _) => ChangeState::Merged,
            (None, _) if self.landed.is_some() => ChangeState::Merged,
            (None, Some(Ok(standing))) => *standing,
            (None, _) if self.task.state == State::Deleted => ChangeState::Dropped,
            (None, _) => ChangeState::Open,
        }
    }

    /// Returns the commit that merges the change into its base.
    pub fn merged(&self) -> Option<&str> {
        let landed = self.landed.as_ref().map(|landed| landed.commit.as_str());
        self.change.merged.as_deref().or(landed)
    }

    /// Returns how the merge was recognized in the base, if Windlass did not make it.
    pub fn seen(&self) -> Option<&str> {
        self.noted.as_deref().or_else(|| self.landed.as_ref().map(|landed| landed.how.as_str()))
    }

    pub fn branch(&self) -> &str {
        let workspace = self.task.workspace.as_ref().map(|workspace: &Workspace| workspace.branch.as_str());
        self.change.at.branch.as_deref().or(workspace).unwrap_or("?")
    }

    pub fn base(&self) -> &str {
        let workspace = self.task.workspace.as_ref().map(|workspace| workspace.base.as_str());
        self.change.at.base.as_deref().or(workspace).unwrap_or("?")
    }

    /// Returns the tasks whose work the branch is stacked on.
    pub fn below(&self) -> Option<String> {
        self.task.workspace.as_ref().and_then(below)
    }

    /// Returns the size of the change in words.
    pub fn size(&self) -> Option<String> {
        self.work.as_ref().map(size)
    }

    /// Returns where a person can look at the change: its URL, or a command.
    pub fn place(&self) -> String {
        self.change.at.url.clone().unwrap_or_else(|| format!("windlass change show {}", self.task.id))
    }

    pub fn to_json(&self) -> Value {
        json!({
            "id": self.task.id,
            "goal": self.task.goal,
            "taskState": self.task.state,
            "state": self.state().name(),
            "branch": self.branch(),
            "base": self.base(),
            "stackedOn": self.task.workspace.as_ref().map_or(&[][..], |workspace| &workspace.stacked_on),
            "commits": self.work.as_ref().map(|work| work.commits),
            "files": self.work.as_ref().map(|work| work.files),
            "url": self.change.at.url,
            "number": self.change.at.number,
            "openedAt": self.opened_at,
            "merged": self.merged(),
            "seen": self.seen(),
            "forgeSays": self.on_forge.as_ref().and_then(|said| said.as_ref().err()),
        })
    }
}

/// Returns the last event of a type about a task.
fn find_last(opened: &Opened, id: TaskId, kind: EventType) -> Result<Option<Event>, Failure> {
    let filter = Filter { types: vec![kind], task: Some(id), ..Filter::default() };
    let found = opened.store.read_back(&filter, None, 1).map_err(hints::store)?;
    Ok(found.into_iter().next().map(|record| record.envelope.event))
}

/// Returns all changes, newest first.
pub fn list_changes(opened: &Opened) -> Result<Vec<ChangeRecord>, Failure> {
    ids(opened)?.into_iter().map(|id| ChangeRecord::of(opened, id)).collect()
}

/// Returns the tasks with open changes, newest first.
pub fn list_open_changes(opened: &Opened) -> Result<Vec<TaskId>, Failure> {
    let snapshot = opened.store.snapshot().map_err(hints::store)?;
    let mut open = Vec::new();
    for id in ids(opened)? {
        let task = snapshot.task(id).map_err(hints::view)?.filter(|task| task.state != State::Deleted);
        open.extend(task.filter(has_open_change).map(|_| id));
    }
    Ok(open)
}

fn ids(opened: &Opened) -> Result<Vec<TaskId>, Failure> {
    let filter = Filter { types: vec![EventType::ChangeOpened], ..Filter::default() };
    let records: Vec<Record> = opened.store.read(&filter, Seq::START, usize::MAX).map_err(hints::store)?;
    let mut seen = BTreeSet::new();
    let tasks = records.iter().rev().filter_map(|record| record.envelope.node.task());
    Ok(tasks.filter(|id| seen.insert(*id)).collect())
}
