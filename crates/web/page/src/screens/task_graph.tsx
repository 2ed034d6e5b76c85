// The graph of open work. With a focus, it shows one task and what is near it.

import { useEffect, useMemo, useRef } from "preact/hooks";

import { pathSegment } from "../api_client";
import type { TaskGraphEdge, TaskGraphView, TaskSummary } from "../api_types";
import { EmptyState, Panel, TaskLink, ToneShape, ViewContent } from "../components";
import { TaskRow, taskPath } from "../components/task_row";
import { spellInvisible, VisibleText } from "../components/visible_text";
import { concernsTasks } from "../concerns";
import { useLiveView } from "../event_stream";
import { formatCount, spellOut } from "../formats";
import { edgePath, layOutGraph, NODE_HEIGHT, NODE_WIDTH } from "../graph_layout";
import { Link } from "../router";

const MAX_LOOSE_TASKS = 30;

interface TaskGraphProps {
  focus: string | null;
  /** The address of this screen with another task in the middle. Empty: all open work. */
  focusPath: (id: string) => string;
}

export function TaskGraph({ focus, focusPath }: TaskGraphProps) {
  const path = focus === null ? "/api/graph" : `/api/tasks/${pathSegment(focus)}/graph`;
  const view = useLiveView<TaskGraphView>(path, concernsTasks);
  return (
    <ViewContent view={view}>
      {(graph) => (
        <div class="stack">
          <GraphPanel graph={graph} focusPath={focusPath} />
          {graph.focus !== null && <NeighbourPanel graph={graph} focus={graph.focus} />}
          {graph.focus === null && <LooseTasks graph={graph} />}
        </div>
      )}
    </ViewContent>
  );
}

function listConnected(graph: TaskGraphView): TaskSummary[] {
  const connected = new Set(graph.edges.flatMap(({ from, to }) => [from, to]));
  return graph.tasks.filter(({ id }) => connected.has(id) || id === graph.focus);
}

function GraphPanel({ graph, focusPath }: { graph: TaskGraphView; focusPath: (id: string) => string }) {
  const tasks = listConnected(graph);
  const title = graph.focus === null ? "Open work" : `Around ${graph.focus}`;
  return (
    <Panel
      title={title}
      actions={
        graph.focus !== null && (
          <Link to={focusPath("")} class="button">
            Show all open work
          </Link>
        )
      }
    >
      {graph.tasks.length === 0 ? (
        <EmptyState title="There is no open task." command={'windlass task add "…"'} />
      ) : tasks.length === 0 ? (
        <EmptyState title="No open task waits for another one." command="windlass task depend T2 T1" />
      ) : (
        <GraphDrawing graph={graph} tasks={tasks} focusPath={focusPath} />
      )}
      {graph.hasMore && <p class="muted small">The graph is larger: it shows {formatCount(graph.tasks.length)} tasks.</p>}
    </Panel>
  );
}

interface GraphDrawingProps {
  graph: TaskGraphView;
  tasks: TaskSummary[];
  focusPath: (id: string) => string;
}

function GraphDrawing({ graph, tasks, focusPath }: GraphDrawingProps) {
  const frame = useRef<HTMLDivElement>(null);
  const layout = useMemo(() => {
    // Other kinds of edges also bring tasks together, so that they do not cross the whole drawing.
    const edges = graph.edges.map(({ from, to }) => ({ first: to, then: from }));
    return layOutGraph(
      tasks.map(({ id }) => id),
      edges,
    );
  }, [graph]);
  const places = new Map(layout.nodes.map((node) => [node.id, node]));
  const dependencies = new Set(graph.edges.filter((edge) => edge.isDependency).map(({ from, to }) => `${to} ${from}`));
  const isNear = (first: string, then: string) => graph.focus === first || graph.focus === then;
  useEffect(() => {
    const place = graph.focus === null ? undefined : places.get(graph.focus);
    const element = frame.current;
    if (element === null || place === undefined) return;
    element.scrollLeft = place.x + NODE_WIDTH / 2 - element.clientWidth / 2;
    element.scrollTop = place.y + NODE_HEIGHT / 2 - element.clientHeight / 2;
  }, [graph.focus, layout.width, layout.height]);
  return (
    <>
      <div ref={frame} class="graph" tabIndex={0} role="region" aria-label="Graph of tasks">
        <div class="graph-area" style={{ width: `${layout.width}px`, height: `${layout.height}px` }}>
          <svg width={layout.width} height={layout.height} aria-hidden="true" focusable="false">
            <defs>
              <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto">
                <path d="M0 0 8 4 0 8Z" fill="context-stroke" />
              </marker>
            </defs>
            {layout.edges.map(({ first, then, points }) => (
              <path
                key={`${first} ${then}`}
                class={`graph-edge ${isNear(first, then) ? "graph-edge-near" : ""}`}
                data-dashed={!dependencies.has(`${first} ${then}`)}
                d={edgePath(points)}
                marker-end="url(#arrow)"
              />
            ))}
          </svg>
          {tasks.map((task) => {
            const place = places.get(task.id);
            return (
              place && (
                <div
                  key={task.id}
                  class={`graph-node ${task.id === graph.focus ? "graph-node-focus" : ""}`}
                  style={{ left: `${place.x}px`, top: `${place.y}px`, width: `${NODE_WIDTH}px`, height: `${NODE_HEIGHT}px` }}
                >
                  <GraphNode task={task} isFocus={task.id === graph.focus} focusPath={focusPath} />
                </div>
              )
            );
          })}
        </div>
      </div>
      <p class="muted small graph-legend">An arrow leads from a task to one that waits for it. A dashed arrow is another relation.</p>
    </>
  );
}

interface GraphNodeProps {
  task: TaskSummary;
  isFocus: boolean;
  focusPath: (id: string) => string;
}

function GraphNode({ task, isFocus, focusPath }: GraphNodeProps) {
  const state = spellOut(task.state);
  return (
    <Link
      to={isFocus ? taskPath(task.id) : focusPath(task.id)}
      class="graph-link"
      title={spellInvisible(task.goal)}
    >
      <span class="graph-node-top">
        <strong>{task.id}</strong>
        <ToneShape tone={task.tone} />
        <span class={`tone-${task.tone}`}>{state}</span>
      </span>
      <span class="graph-node-goal">
        <VisibleText text={task.goal} />
      </span>
      <span class="visually-hidden">{isFocus ? "Open the task" : "Move to the middle"}</span>
    </Link>
  );
}

/** The edges of the task in the middle, in words. */
function NeighbourPanel({ graph, focus }: { graph: TaskGraphView; focus: string }) {
  const task = graph.tasks.find(({ id }) => id === focus);
  const goals = new Map(graph.tasks.map(({ id, goal }) => [id, goal]));
  const near = graph.edges.filter(({ from, to }) => from === focus || to === focus);
  return (
    <Panel title="In the middle">
      {task && <TaskRow task={task} />}
      {near.length === 0 ? (
        <p class="muted">It waits for no task, and no task waits for it.</p>
      ) : (
        <ul class="edge-list edge-list-apart">
          {near.map((edge) => {
            const other = edge.from === focus ? edge.to : edge.from;
            return (
              <li key={`${edge.from} ${edge.kind} ${edge.to}`}>
                <div class="edge-text">
                  <span class="muted">{describeEdge(edge, focus)}</span> <TaskLink id={other} /> {goals.get(other)}
                </div>
              </li>
            );
          })}
        </ul>
      )}
    </Panel>
  );
}

/** Says what an edge means for one of its ends, before the name of the other end. */
export function describeEdge(edge: TaskGraphEdge, end: string): string {
  const isFrom = edge.from === end;
  if (edge.isDependency) return isFrom ? "waits for" : "is needed by";
  return isFrom ? spellOut(edge.kind) : `${spellOut(edge.kind)} (from)`;
}

function LooseTasks({ graph }: { graph: TaskGraphView }) {
  const connected = new Set(listConnected(graph).map(({ id }) => id));
  const loose = graph.tasks.filter(({ id }) => !connected.has(id));
  if (loose.length === 0) return null;
  return (
    <Panel title="Without relations" count={loose.length}>
      <ul class="list">
        {loose.slice(0, MAX_LOOSE_TASKS).map((task) => (
          <li key={task.id}>
            <TaskRow task={task} />
          </li>
        ))}
      </ul>
      {loose.length > MAX_LOOSE_TASKS && <Link to="/tasks">Show all tasks</Link>}
    </Panel>
  );
}
