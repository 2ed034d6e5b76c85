//! A change as the log records it, with its state in git and on the forge.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use windlass_engine::{
    Event, EventRecord, EventType, Seq, SubmittedWork, Task, TaskChange, TaskId, TaskState, Timestamp, Workspace,
};
use windlass_runner::external_merges::ExternalMerge;
use windlass_store::{EventFilter, Store};

use super::{describe_work_size, list_stacked_tasks};
use crate::context::OpenedProject;
use crate::resume_command::ResumeCommand;
use crate::{Failure, FailureCode, hints};

/// A change, with the work that was submitted last.
pub struct ChangeRecord {
    pub task: Task,
    pub change: TaskChange,
    pub opened_at: Timestamp,
    pub work: Option<SubmittedWork>,
    /// Its state on the forge, if the forge was asked.
    pub forge_state: Option<Result<ChangeState, String>>,
    /// The merge that git shows in its base, although the log knows of none.
    pub external_merge: Option<ExternalMerge>,
    /// How its merge was recognized in the base, if the log records a merge that Windlass did not make.
    pub recorded_merge_evidence: Option<String>,
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
    pub fn load_change_record(opened: &OpenedProject, id: TaskId) -> Result<Self, Failure> {
        let task = opened.require_task(id)?;
        let Some(change) = task.change.clone() else {
            let hint = match (&task.workspace, task.state) {
                (Some(workspace), _) => {
                    format!("its work is on the branch {}; `windlass why {id}` shows its progress", workspace.branch)
                }
                (None, TaskState::Ready) => ResumeCommand::for_task(opened, id)?.describe_in_sentence("works on it"),
                (None, _) => format!("`windlass why {id}` shows what was done about it"),
            };
            return Err(Failure::new(FailureCode::NotFound, format!("{id} has no change")).with_hint(hint));
        };
        let event = opened.store.read_event(change.opened).map_err(hints::store_failure)?;
        let opened_at = event.map_or(task.created_at, |record| record.envelope.timestamp);
        let work = match find_last_event(opened, id, EventType::SubmissionStarted)? {
            Some(Event::SubmissionStarted(started)) => started.work,
            _ => None,
        };
        let merge_event = match change.merged {
            Some(_) => find_last_event(opened, id, EventType::ChangeMerged)?,
            None => None,
        };
        let recorded_merge_evidence = match merge_event {
            Some(Event::ChangeMerged(merged)) => merged.seen,
            _ => None,
        };
        Ok(Self { work, task, change, opened_at, forge_state: None, external_merge: None, recorded_merge_evidence })
    }

    pub fn change_state(&self) -> ChangeState {
        match (&self.change.merged, &self.forge_state) {
            (Some(_), _) => ChangeState::Merged,
            (None, _) if self.external_merge.is_some() => ChangeState::Merged,
            (None, Some(Ok(state))) => *state,
            (None, _) if self.task.state == TaskState::Deleted => ChangeState::Dropped,
            (None, _) => ChangeState::Open,
        }
    }

    /// Returns the commit that merges the change into its base.
    pub fn merge_commit(&self) -> Option<&str> {
        let landed = self.external_merge.as_ref().map(|landed| landed.commit.as_str());
        self.change.merged.as_deref().or(landed)
    }

    /// Returns how the merge was recognized in the base, if Windlass did not make it.
    pub fn external_merge_evidence(&self) -> Option<&str> {
        self.recorded_merge_evidence
            .as_deref()
            .or_else(|| self.external_merge.as_ref().map(|landed| landed.how.as_str()))
    }

    pub fn branch_name(&self) -> &str {
        let workspace = self.task.workspace.as_ref().map(|workspace: &Workspace| workspace.branch.as_str());
        self.change.at.branch.as_deref().or(workspace).unwrap_or("?")
    }

    pub fn base_name(&self) -> &str {
        let workspace = self.task.workspace.as_ref().map(|workspace| workspace.base.as_str());
        self.change.at.base.as_deref().or(workspace).unwrap_or("?")
    }

    /// Returns the tasks whose work the branch is stacked on.
    pub fn describe_stack_base(&self) -> Option<String> {
        self.task.workspace.as_ref().and_then(list_stacked_tasks)
    }

    /// Returns the size of the change in words.
    pub fn describe_size(&self) -> Option<String> {
        self.work.as_ref().map(describe_work_size)
    }

    /// Returns where a person can look at the change: its URL, or a command.
    pub fn url_or_show_command(&self) -> String {
        self.change.at.url.clone().unwrap_or_else(|| format!("windlass change show {}", self.task.id))
    }

    pub fn to_json(&self) -> Value {
        json!({
            "id": self.task.id,
            "goal": self.task.goal,
            "taskState": self.task.state,
            "state": self.change_state().name(),
            "branch": self.branch_name(),
            "base": self.base_name(),
            "stackedOn": self.task.workspace.as_ref().map_or(&[][..], |workspace| &workspace.stacked_on),
            "commits": self.work.as_ref().map(|work| work.commits),
            "files": self.work.as_ref().map(|work| work.files),
            "url": self.change.at.url,
            "number": self.change.at.number,
            "openedAt": self.opened_at,
            "merged": self.merge_commit(),
            "seen": self.external_merge_evidence(),
            "forgeSays": self.forge_state.as_ref().and_then(|said| said.as_ref().err()),
        })
    }
}

/// Returns the last event of a type about a task.
fn find_last_event(opened: &OpenedProject, id: TaskId, kind: EventType) -> Result<Option<Event>, Failure> {
    let filter = EventFilter { types: vec![kind], task: Some(id), ..EventFilter::default() };
    let found = opened.store.read_events_back(&filter, None, 1).map_err(hints::store_failure)?;
    Ok(found.into_iter().next().map(|record| record.envelope.event))
}

/// Returns all changes, newest first.
pub fn list_changes(opened: &OpenedProject) -> Result<Vec<ChangeRecord>, Failure> {
    list_changed_tasks(opened)?.into_iter().map(|id| ChangeRecord::load_change_record(opened, id)).collect()
}

/// Returns the tasks with open changes, newest first.
pub fn list_open_changes(opened: &OpenedProject) -> Result<Vec<TaskId>, Failure> {
    let snapshot = opened.store.begin_snapshot().map_err(hints::store_failure)?;
    let tasks = snapshot.tasks_with_open_change().map_err(hints::store_failure)?;
    Ok(tasks.into_iter().filter(|task| task.state != TaskState::Deleted).map(|task| task.id).collect())
}

fn list_changed_tasks(opened: &OpenedProject) -> Result<Vec<TaskId>, Failure> {
    let filter = EventFilter { types: vec![EventType::ChangeOpened], ..EventFilter::default() };
    let records: Vec<EventRecord> =
        opened.store.read_events(&filter, Seq::START, usize::MAX).map_err(hints::store_failure)?;
    let mut seen = BTreeSet::new();
    let tasks = records.iter().rev().filter_map(|record| record.envelope.node.task_id());
    Ok(tasks.filter(|id| seen.insert(*id)).collect())
}
