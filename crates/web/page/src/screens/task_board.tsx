// Tasks in columns by state.

import type { TaskPage, TaskSummary } from "../api_types";
import { ToneShape } from "../components";
import { TaskRow } from "../components/task_row";
import { formatCount, spellOut } from "../formats";
import { isShownState, SHOWN_STATES } from "../task_states";

const MAX_CARDS = 60;

export function TaskBoard({ page }: { page: TaskPage }) {
  const byState = Map.groupBy(page.tasks, (task) => task.state);
  const columns = [...SHOWN_STATES, ...[...byState.keys()].filter((state) => !isShownState(state))];
  return (
    <>
      <div class="board" tabIndex={0} role="region" aria-label="Tasks by state">
        {columns.map((state) => {
          const tasks = byState.get(state);
          return tasks === undefined ? null : <BoardColumn key={state} state={state} tasks={tasks} />;
        })}
      </div>
      {page.hasMore && <p class="muted small">The board shows the oldest {formatCount(page.tasks.length)} tasks. Filter to see others.</p>}
    </>
  );
}

function BoardColumn({ state, tasks }: { state: string; tasks: TaskSummary[] }) {
  const shown = tasks.slice(0, MAX_CARDS);
  return (
    <section class="board-column" aria-label={spellOut(state)}>
      <h2>
        <ToneShape tone={tasks[0]?.tone ?? "plain"} />
        {spellOut(state)}
        <span class="count">{formatCount(tasks.length)}</span>
      </h2>
      <ul>
        {shown.map((task) => (
          <li key={task.id} class="board-card">
            <TaskRow task={task} hidesState />
          </li>
        ))}
      </ul>
      {tasks.length > shown.length && <p class="muted small">{formatCount(tasks.length - shown.length)} more</p>}
    </section>
  );
}
