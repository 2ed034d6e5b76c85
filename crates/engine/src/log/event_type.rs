//! The single list of event types, with their names in the log and in the configuration.

use std::fmt::{self, Display};
use std::str::FromStr;

use crate::log::id::as_text;

/// Calls a macro with the list of all events: for each, the Rust name, which is also the name of its payload, and the
/// name in the log.
macro_rules! for_each_event {
    ($declare:ident) => {
        $declare! {
            TaskCreated = "task_created",
            TaskReady = "task_ready",
            TaskWaiting = "task_waiting",
            TaskClaimed = "task_claimed",
            LeaseExpired = "lease_expired",
            TaskStarted = "task_started",
            TaskUpdated = "task_updated",
            CompletionClaimed = "completion_claimed",
            WorkspaceOpened = "workspace_opened",
            SubmissionStarted = "submission_started",
            TaskSubmitted = "task_submitted",
            MergeStarted = "merge_started",
            PipelineFailed = "pipeline_failed",
            TaskRejected = "task_rejected",
            ChangeOpened = "change_opened",
            ChangeMerged = "change_merged",
            TaskCompleted = "task_completed",
            TaskBlocked = "task_blocked",
            TaskUnblocked = "task_unblocked",
            TaskAnswered = "task_answered",
            TaskNeedsContinuation = "task_needs_continuation",
            TaskReleased = "task_released",
            TaskFailed = "task_failed",
            TaskReopened = "task_reopened",
            TaskDeleted = "task_deleted",
            DependencyAdded = "dependency_added",
            DependencyRemoved = "dependency_removed",
            DependencySatisfied = "dependency_satisfied",
            AgentMetrics = "agent_metrics",
            AutoLabelSuggestion = "auto_label_suggestion",
            FactLogged = "fact_logged",
            NoteAdded = "note_added",
            ConfigRecorded = "config_recorded",
            SessionStarted = "session_started",
            SessionResumed = "session_resumed",
            SessionStopping = "session_stopping",
            SessionEnded = "session_ended",
            IterationStarted = "iteration_started",
            TurnStarted = "turn_started",
            ConversationOpened = "conversation_opened",
            TurnFinished = "turn_finished",
            PromiseDetected = "promise_detected",
            GateDecided = "gate_decided",
            GateAnswered = "gate_answered",
            IterationCompleted = "iteration_completed",
            IterationFailed = "iteration_failed",
            IterationInterrupted = "iteration_interrupted",
            IterationPostponed = "iteration_postponed",
            DeliveryFinished = "delivery_finished",
            DeliveryFailed = "delivery_failed",
            DeliveryInterrupted = "delivery_interrupted",
            MessageAdded = "message_added",
            FeedbackQueued = "feedback_queued",
            FeedbackDelivered = "feedback_delivered",
            HookRegistered = "hook_registered",
            HooksCleared = "hooks_cleared",
            HookSwitched = "hook_switched",
            HookEvaluated = "hook_evaluated",
            SeriesStarted = "series_started",
            ValidationFinished = "validation_finished",
            SeriesAdvanced = "series_advanced",
            SeriesEnded = "series_ended",
            CheckpointCreated = "checkpoint_created",
            BridgeCalled = "bridge_called",
            BridgeAnswered = "bridge_answered",
            WorkflowTriggered = "workflow_triggered",
            WorkflowStarted = "workflow_started",
            WorkflowStepStarted = "workflow_step_started",
            WorkflowStepFinished = "workflow_step_finished",
            WorkflowCompleted = "workflow_completed",
            WorkflowFailed = "workflow_failed",
            HookStarted = "hook_started",
            HookRetrying = "hook_retrying",
            HookFinished = "hook_finished",
            HookError = "hook_error",
            ActionError = "action_error",
        }
    };
}
pub(crate) use for_each_event;

macro_rules! event_types {
    ($($variant:ident = $name:literal,)+) => {
        /// The type of an event, as the log and the configuration name it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum EventType {
            $($variant,)+
        }

        impl EventType {
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

for_each_event!(event_types);

impl Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for EventType {
    type Err = UnknownEventType;

    fn from_str(text: &str) -> Result<Self, UnknownEventType> {
        Self::ALL.iter().copied().find(|kind| kind.name() == text).ok_or_else(|| UnknownEventType(text.to_owned()))
    }
}

/// An event type that this version does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown event type `{0}`")]
pub struct UnknownEventType(String);

as_text!(EventType);
