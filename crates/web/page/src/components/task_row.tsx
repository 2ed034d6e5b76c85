// A task in a list or on a card.

import type { TaskSummary } from "../api_types";
import { pluralize } from "../formats";
import { Link } from "../router";
import { SessionLink } from "./panel";
import { RelativeTime } from "./time";
import { Badge } from "./tone";
import { VisibleText } from "./visible_text";

const USUAL_PRIORITY = "2";

export function taskPath(id: string): string {
  return `/tasks/${encodeURIComponent(id)}`;
}

/** Shows a priority that is not the usual one. */
export function PriorityMark({ priority }: { priority: string }) {
  if (priority === USUAL_PRIORITY) return null;
  const isUrgent = priority < USUAL_PRIORITY;
  return (
    <span class={`label ${isUrgent ? "label-urgent" : ""}`} title={`Priority ${priority}: 0 is the most urgent, 4 the least`}>
      P{priority}
    </span>
  );
}

export function TaskMarks({ task }: { task: TaskSummary }) {
  return (
    <>
      <PriorityMark priority={task.priority} />
      {task.type !== null && <span class="label"><VisibleText text={task.type} /></span>}
      {task.labels.map((label) => (
        <span key={label} class="label">
          <VisibleText text={label} />
        </span>
      ))}
      {task.openDependencies > 0 && <span>waits for {pluralize(task.openDependencies, "task")}</span>}
      {task.isDeserted && <span class="tone-warning">no process runs its session</span>}
      {task.hasChange && <Link to={`/changes/${encodeURIComponent(task.id)}`}>open change</Link>}
    </>
  );
}

interface TaskRowProps {
  task: TaskSummary;
  /** A board shows the state as its column. */
  hidesState?: boolean;
}

export function TaskRow({ task, hidesState = false }: TaskRowProps) {
  return (
    <article class="list-row">
      <div class="list-row-top">
        <span class="task-id">{task.id}</span>
        {!hidesState && <Badge tone={task.tone}>{task.state}</Badge>}
        <span class="muted small push-end">
          <RelativeTime at={task.updatedAt} />
        </span>
      </div>
      <p class="list-row-title">
        <Link to={taskPath(task.id)}>
          <VisibleText text={task.goal} />
        </Link>
      </p>
      <div class="list-row-meta">
        <TaskMarks task={task} />
        {task.session !== null && (
          <span>
            held by <SessionLink name={task.session} />
          </span>
        )}
      </div>
    </article>
  );
}
