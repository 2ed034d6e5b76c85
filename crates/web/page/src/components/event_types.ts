// The types of events by subject, for the filter of the log.

import { EVENT_TYPES, type EventType } from "../api_types";

const GROUPS: { subject: string; types: EventType[] }[] = [
  {
    subject: "Tasks",
    types: [
      "task_created",
      "task_ready",
      "task_waiting",
      "task_claimed",
      "lease_expired",
      "task_started",
      "task_updated",
      "completion_claimed",
      "task_completed",
      "task_blocked",
      "task_unblocked",
      "task_answered",
      "task_needs_continuation",
      "task_released",
      "task_failed",
      "task_reopened",
      "task_deleted",
      "dependency_added",
      "dependency_removed",
      "dependency_satisfied",
      "note_added",
    ],
  },
  {
    subject: "Changes",
    types: [
      "workspace_opened",
      "submission_started",
      "task_submitted",
      "merge_started",
      "pipeline_failed",
      "task_rejected",
      "change_opened",
      "change_merged",
    ],
  },
  {
    subject: "Sessions",
    types: [
      "session_started",
      "session_resumed",
      "session_stopping",
      "session_ended",
      "conversation_opened",
      "checkpoint_created",
      "config_recorded",
      "message_added",
      "feedback_queued",
      "feedback_delivered",
      "agent_metrics",
      "fact_logged",
      "auto_label_suggestion",
    ],
  },
  {
    subject: "Iterations and turns",
    types: [
      "iteration_started",
      "turn_started",
      "turn_finished",
      "promise_detected",
      "iteration_completed",
      "iteration_failed",
      "iteration_interrupted",
      "iteration_postponed",
      "delivery_finished",
      "delivery_failed",
      "delivery_interrupted",
      "series_started",
      "series_advanced",
      "series_ended",
    ],
  },
  {
    subject: "Hooks and gates",
    types: [
      "gate_decided",
      "gate_answered",
      "hook_started",
      "hook_retrying",
      "hook_finished",
      "hook_error",
      "action_error",
      "hook_registered",
      "hooks_cleared",
      "hook_switched",
      "hook_evaluated",
      "validation_finished",
    ],
  },
  {
    subject: "Calls and workflows",
    types: [
      "bridge_called",
      "bridge_answered",
      "workflow_triggered",
      "workflow_started",
      "workflow_step_started",
      "workflow_step_finished",
      "workflow_completed",
      "workflow_failed",
    ],
  },
];

const grouped = new Set(GROUPS.flatMap(({ types }) => types));
const others = EVENT_TYPES.filter((type) => !grouped.has(type));

/** Every type of the log, by subject. */
export const EVENT_GROUPS: readonly { subject: string; types: readonly string[] }[] =
  others.length === 0 ? GROUPS : [...GROUPS, { subject: "Others", types: others }];
