// Tasks as a list, as a board by state, and as a graph.

import { useEffect, useState } from "preact/hooks";

import type { TaskPage, TaskState } from "../api_types";
import { EmptyState, Icon, Panel, ScreenHeader, Tabs, ViewContent } from "../components";
import { NewTaskButton } from "../components/task_forms";
import { TaskRow } from "../components/task_row";
import { concernsTasks } from "../concerns";
import { useLiveView, useProcessWatch } from "../event_stream";
import { spellOut } from "../formats";
import { Link, navigate, route } from "../router";
import { isShownState, SHOWN_STATES } from "../task_states";
import { mayManage } from "../viewer";
import { TaskBoard } from "./task_board";
import { TaskGraph } from "./task_graph";

const ROWS_PER_PAGE = 100;
const BOARD_ROWS = 500;
const TYPING_PAUSE = 250;

type TasksView = "list" | "board" | "graph";

function readView(query: URLSearchParams): TasksView {
  const view = query.get("view");
  return view === "board" || view === "graph" ? view : "list";
}

/** Returns the address of this screen with some parameters changed. An empty one is left out. */
function tasksPath(changes: Record<string, string>): string {
  const query = new URLSearchParams(route.value.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString().replaceAll("%2C", ",");
  return text === "" ? "/tasks" : `/tasks?${text}`;
}

export function TasksScreen() {
  const { query } = route.value;
  const view = readView(query);
  return (
    <>
      <ScreenHeader title="Tasks">
        <Tabs<TasksView>
          label="Form"
          selected={view}
          onSelect={(chosen) => navigate(tasksPath({ view: chosen === "list" ? "" : chosen, after: "" }))}
          tabs={[
            { key: "list", label: "List" },
            { key: "board", label: "Board" },
            { key: "graph", label: "Graph" },
          ]}
        />
        {mayManage() && (
          <NewTaskButton>
            <Icon name="plus" size={18} /> Add a task
          </NewTaskButton>
        )}
      </ScreenHeader>
      {view === "graph" ? (
        <TaskGraph focus={query.get("focus")} focusPath={(id) => tasksPath({ focus: id })} />
      ) : (
        <FilteredTasks view={view} query={query} />
      )}
    </>
  );
}

function FilteredTasks({ view, query }: { view: "list" | "board"; query: URLSearchParams }) {
  const states = (query.get("state") ?? "").split(",").filter(isShownState);
  const after = view === "list" ? (query.get("after") ?? "") : "";
  const parameters = new URLSearchParams({ limit: String(view === "board" ? BOARD_ROWS : ROWS_PER_PAGE) });
  if (states.length > 0) parameters.set("state", states.join(","));
  if (query.get("text")) parameters.set("text", query.get("text") ?? "");
  if (after !== "") parameters.set("after", after);
  const page = useLiveView<TaskPage>(`/api/tasks?${parameters}`, concernsTasks);
  useProcessWatch(page.data?.tasks.some((task) => task.session !== null && !task.isDeserted) ?? false, page.reload);
  const isFiltered = states.length > 0 || query.get("text") !== null;
  return (
    <>
      <div class="filter-bar">
        <TextFilter text={query.get("text") ?? ""} />
        <StateFilter states={states} />
      </div>
      <ViewContent view={page}>
        {(data) =>
          data.tasks.length === 0 ? (
            <Panel>
              <NoTasks isFiltered={isFiltered} />
            </Panel>
          ) : view === "board" ? (
            <TaskBoard page={data} />
          ) : (
            <TaskList page={data} isFirst={after === ""} />
          )
        }
      </ViewContent>
    </>
  );
}

function TaskList({ page, isFirst }: { page: TaskPage; isFirst: boolean }) {
  const last = page.tasks.at(-1)?.id ?? "";
  return (
    <Panel>
      <ul class="list">
        {page.tasks.map((task) => (
          <li key={task.id}>
            <TaskRow task={task} />
          </li>
        ))}
      </ul>
      {(page.hasMore || !isFirst) && (
        <nav class="list-end row" aria-label="Pages">
          {!isFirst && (
            <Link to={tasksPath({ after: "" })} class="button">
              First page
            </Link>
          )}
          {page.hasMore && (
            <Link to={tasksPath({ after: last })} class="button">
              Next page
            </Link>
          )}
        </nav>
      )}
    </Panel>
  );
}

/** The text of the filter goes into the address when the person pauses. */
function TextFilter({ text }: { text: string }) {
  const [typed, setTyped] = useState(text);
  useEffect(() => setTyped(text), [text]);
  useEffect(() => {
    if (typed === text) return;
    const timer = window.setTimeout(() => navigate(tasksPath({ text: typed, after: "" }), { replace: true }), TYPING_PAUSE);
    return () => window.clearTimeout(timer);
  }, [typed]);
  return (
    <input
      type="search"
      data-filter=""
      aria-label="Filter the tasks by goal"
      placeholder="Filter by goal"
      value={typed}
      onInput={(event) => setTyped(event.currentTarget.value)}
    />
  );
}

function StateFilter({ states }: { states: TaskState[] }) {
  const choose = (state: TaskState) => {
    const next = states.includes(state) ? states.filter((other) => other !== state) : [...states, state];
    navigate(tasksPath({ state: next.join(","), after: "" }), { replace: true });
  };
  return (
    <div class="chips" role="group" aria-label="States">
      <button type="button" class="chip" aria-pressed={states.length === 0} onClick={() => navigate(tasksPath({ state: "", after: "" }), { replace: true })}>
        all open
      </button>
      {SHOWN_STATES.map((state) => (
        <button key={state} type="button" class="chip" aria-pressed={states.includes(state)} onClick={() => choose(state)}>
          {spellOut(state)}
        </button>
      ))}
    </div>
  );
}

function NoTasks({ isFiltered }: { isFiltered: boolean }) {
  if (!isFiltered) return <EmptyState title="There is no open task." command={'windlass task add "…"'} />;
  return (
    <EmptyState title="No task matches.">
      <Link to={tasksPath({ state: "", text: "", after: "" })}>Show all open tasks</Link>
    </EmptyState>
  );
}
