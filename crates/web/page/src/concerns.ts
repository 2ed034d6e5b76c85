// Which events of the log concern which screens. A hook that starts changes no list, and a run has many of them.

import type { EventType, LogEntry } from "./api_types";

/** Events that change neither a task nor a session in a way that a list shows. */
const UNLISTED_EVENTS: ReadonlySet<string> = new Set<EventType>([
  "hook_started",
  "hook_finished",
  "hook_retrying",
  "hook_evaluated",
  "hook_registered",
  "hooks_cleared",
  "agent_metrics",
  "config_recorded",
  "conversation_opened",
  "message_added",
  "checkpoint_created",
  "bridge_called",
  "bridge_answered",
  "fact_logged",
]);

export function concernsLists(entry: LogEntry): boolean {
  return !UNLISTED_EVENTS.has(entry.type);
}

export function concernsTask(id: string): (entry: LogEntry) => boolean {
  return (entry) => entry.task === id || entry.type.startsWith("dependency_");
}

export function concernsSession(name: string): (entry: LogEntry) => boolean {
  return (entry) => entry.session === name;
}

/** Tasks of a list change with any event about a task, except for its hooks. */
export function concernsTasks(entry: LogEntry): boolean {
  return entry.task !== null && concernsLists(entry);
}

export function concernsSessions(entry: LogEntry): boolean {
  return entry.session !== null && concernsLists(entry);
}
