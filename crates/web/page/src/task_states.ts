// The states of tasks, in the order in which the page shows them.

import { TASK_STATES, type TaskState } from "./api_types";

/** The order of a task's life. Work that is completed comes last, and deleted tasks are not listed. */
const SHOWN_LAST: readonly TaskState[] = ["needs_continuation", "blocked", "failed", "completed"];

export const SHOWN_STATES: readonly TaskState[] = [
  ...TASK_STATES.filter((state) => state !== "deleted" && !SHOWN_LAST.includes(state)),
  ...SHOWN_LAST,
];

export function isShownState(name: string): name is TaskState {
  return SHOWN_STATES.some((state) => state === name);
}
