//! The table of legal transitions.
//!
//! Every state can be left, and only an event of the task's own changes its state. Each row also lists the fields that the
//! transition clears, and the states from which an audited override may make it.

use crate::log::event_type::EventType;
use crate::log::time::Timestamp;
use crate::task::{Task, TaskState};

/// The fields that belong to a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateField {
    StartedAt,
    CompletedAt,
    Result,
    Blocked,
    Reason,
    Claim,
    Lease,
    Answer,
    Series,
    StopHooks,
    Findings,
    Stalled,
    Unheard,
}

/// One row of the table: the event, its source states and its target state.
#[derive(Debug)]
pub struct TaskTransition {
    pub on: EventType,
    pub from: &'static [TaskState],
    pub to: TaskState,
    pub clears: &'static [StateField],
    /// Further source states for an audited override.
    pub forced_from: &'static [TaskState],
}

use EventType as On;
use StateField::{
    Answer, Blocked as BlockedField, Claim, CompletedAt, Findings, Lease, Reason, Result as ResultField, Series,
    Stalled, StartedAt, StopHooks, Unheard,
};
use TaskState::{Active, Blocked, Completed, Created, Deleted, Failed, NeedsContinuation, Ready, Submitted};

/// All legal transitions. `task_created` creates the row and is not in the table.
pub const TASK_TRANSITIONS: &[TaskTransition] = &[
    TaskTransition { on: On::TaskReady, from: &[Created], to: Ready, clears: &[], forced_from: &[] },
    TaskTransition {
        on: On::TaskWaiting,
        from: &[Ready, NeedsContinuation],
        to: Created,
        clears: &[Claim, Stalled],
        forced_from: &[],
    },
    TaskTransition {
        on: On::TaskStarted,
        from: &[Ready, NeedsContinuation],
        to: Active,
        clears: &[Reason, Claim, BlockedField],
        forced_from: &[Created, Blocked],
    },
    TaskTransition {
        on: On::LeaseExpired,
        from: &[Active, Submitted],
        to: Created,
        clears: &[Lease, Claim, Stalled],
        forced_from: &[],
    },
    TaskTransition {
        on: On::TaskReleased,
        from: &[Active, Submitted, NeedsContinuation],
        to: Created,
        clears: &[Lease, Claim],
        forced_from: &[],
    },
    TaskTransition { on: On::TaskSubmitted, from: &[Active], to: Submitted, clears: &[], forced_from: &[] },
    TaskTransition { on: On::MergeStarted, from: &[Active, Submitted], to: Submitted, clears: &[], forced_from: &[] },
    TaskTransition { on: On::PipelineFailed, from: &[Active, Submitted], to: Active, clears: &[], forced_from: &[] },
    TaskTransition {
        on: On::TaskRejected,
        from: &[Active],
        to: Created,
        clears: &[Lease, Claim, Stalled],
        forced_from: &[],
    },
    TaskTransition {
        on: On::TaskNeedsContinuation,
        from: &[Active, Submitted],
        to: NeedsContinuation,
        clears: &[Lease, Claim],
        forced_from: &[],
    },
    TaskTransition {
        on: On::TaskCompleted,
        from: &[Ready, Active, Submitted, NeedsContinuation],
        to: Completed,
        clears: &[Lease, Claim, BlockedField, Reason, Answer, Series, Findings, Stalled],
        forced_from: &[Created, Blocked, Failed],
    },
    TaskTransition {
        on: On::TaskBlocked,
        from: &[Created, Ready, Active, Submitted, NeedsContinuation],
        to: Blocked,
        clears: &[Lease, Claim, Stalled],
        forced_from: &[],
    },
    TaskTransition { on: On::TaskUnblocked, from: &[Blocked], to: Created, clears: &[BlockedField], forced_from: &[] },
    TaskTransition {
        on: On::TaskFailed,
        from: &[Ready, Active, Submitted, NeedsContinuation, Blocked],
        to: Failed,
        clears: &[Lease, Claim, BlockedField, Answer, Series, Stalled],
        forced_from: &[Created],
    },
    TaskTransition {
        on: On::TaskReopened,
        from: &[Failed],
        to: Created,
        clears: &[StartedAt, CompletedAt, ResultField, Reason, StopHooks],
        forced_from: &[Completed, Deleted],
    },
    TaskTransition {
        on: On::TaskDeleted,
        from: &[Created, Ready, Active, Submitted, Completed, Blocked, NeedsContinuation, Failed],
        to: Deleted,
        clears: &[Lease, Claim, BlockedField, Answer, Series, StopHooks, Stalled, Unheard],
        forced_from: &[],
    },
];

impl TaskTransition {
    /// Returns the row of an event, if that event changes a task's state.
    pub fn for_event_type(event: EventType) -> Option<&'static Self> {
        TASK_TRANSITIONS.iter().find(|row| row.on == event)
    }

    /// Returns whether the transition may start from a state.
    pub fn allows_from(&self, state: TaskState, forced: bool) -> bool {
        self.from.contains(&state) || (forced && self.forced_from.contains(&state))
    }

    /// Applies the transition to a task: the state, and the fields that belong to it.
    pub(crate) fn apply_to_task(&self, task: &mut Task, at: Timestamp) {
        task.state = self.to;
        for field in self.clears {
            match field {
                StartedAt => task.started_at = None,
                CompletedAt => task.completed_at = None,
                ResultField => (task.result, task.artifacts) = (None, Vec::new()),
                BlockedField => task.blocked = None,
                Reason => task.reason = None,
                Claim => task.claim = None,
                Answer => (task.answer, task.undelivered_messages) = (None, Vec::new()),
                Lease => task.lease = None,
                Series => task.evaluation.series = None,
                StopHooks => task.evaluation.hooks.clear(),
                Stalled => task.stalled = None,
                Unheard => task.undelivered_feedback.clear(),
                Findings => {
                    (task.findings, task.rejections, task.rejected, task.approved) = (Vec::new(), 0, None, None);
                }
            }
        }
        match self.to {
            Active => task.started_at = Some(task.started_at.unwrap_or(at)),
            Completed => task.completed_at = Some(at),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_reachable_and_can_be_left() {
        for state in TaskState::ALL {
            let out = |row: &&TaskTransition| row.from.contains(&state) || row.forced_from.contains(&state);
            assert!(TASK_TRANSITIONS.iter().find(out).is_some(), "no way out of {state}");
            assert!(state == Created || TASK_TRANSITIONS.iter().any(|row| row.to == state), "no way into {state}");
        }
    }

    #[test]
    fn each_event_has_one_transition() {
        for row in TASK_TRANSITIONS {
            assert_eq!(TASK_TRANSITIONS.iter().filter(|other| other.on == row.on).count(), 1, "{}", row.on);
            assert!(row.from.iter().all(|state| !row.forced_from.contains(state)), "{}", row.on);
        }
    }

    #[test]
    fn completed_is_left_only_by_deletion_or_override() {
        let ways: Vec<_> =
            TASK_TRANSITIONS.iter().filter(|row| row.allows_from(Completed, false)).map(|row| row.on).collect();
        assert_eq!(ways, [On::TaskDeleted]);
    }
}
