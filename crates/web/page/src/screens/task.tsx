// One task: its state, what a person can answer, its relations, sessions and notes.

import { useId, useState } from "preact/hooks";

import { type ApiError, pathSegment, postEach, postJson, toApiError } from "../api_client";
import type { AnswerChoice, LabelledText, OpenQuestion, TaskDetails, TaskGraphView, TaskNote } from "../api_types";
import {
  AnswerForm,
  Badge,
  Button,
  CommandLine,
  EmptyState,
  ErrorNotice,
  FactList,
  LongText,
  Panel,
  ReasonButton,
  RelativeTime,
  ScreenHeader,
  TaskLink,
  ViewContent,
} from "../components";
import { AgentMessage } from "../components/agent_message";
import { AnswerNotices, sendAnswer } from "../components/answer_notices";
import { SessionRow } from "../components/session_row";
import { EditTaskButton, splitList } from "../components/task_forms";
import { TaskMarks } from "../components/task_row";
import { VisibleText } from "../components/visible_text";
import { concernsTask } from "../concerns";
import { type LiveView, useLiveView, useProcessWatch } from "../event_stream";
import { Link } from "../router";
import { mayAnswer, mayManage } from "../viewer";
import { describeEdge } from "./task_graph";

export function TaskScreen({ id }: { id: string }) {
  const path = `/api/tasks/${pathSegment(id)}`;
  const view = useLiveView<TaskDetails>(path, concernsTask(id));
  const graph = useLiveView<TaskGraphView>(`${path}/graph`, concernsTask(id));
  useProcessWatch(view.data?.sessions.some((session) => session.isRunning) ?? false, view.reload);
  const reload = () => {
    view.reload();
    graph.reload();
  };
  if (view.data === null) {
    return (
      <>
        <ScreenHeader title={id} />
        <ViewContent view={view}>{() => null}</ViewContent>
      </>
    );
  }
  return (
    <ViewContent view={view}>{(details) => <TaskContent details={details} graph={graph} reload={reload} />}</ViewContent>
  );
}

interface TaskContentProps {
  details: TaskDetails;
  graph: LiveView<TaskGraphView>;
  reload: () => void;
}

function TaskContent({ details, graph, reload }: TaskContentProps) {
  const { task } = details;
  const answer = async (chosen: AnswerChoice, text: string) => {
    await sendAnswer(task.id, chosen, text);
    reload();
  };
  return (
    <>
      <ScreenHeader
        title={details.goal}
        documentTitle={`${task.id} ${task.goal.slice(0, 60)}`}
        note={
          <>
            <span class="task-id">{task.id}</span>
            <Badge tone={task.tone}>{task.state}</Badge>
            <TaskMarks task={task} />
            <span>
              changed <RelativeTime at={task.updatedAt} />
            </span>
          </>
        }
      >
        <TaskActions details={details} reload={reload} />
      </ScreenHeader>
      <div class="columns">
        <div class="stack">
          <AnswerNotices waiting={details.answers.length > 0 ? [task.id] : []} subject={task.id} />
          {details.answers.length > 0 && (
            <Panel title={mayAnswer() ? "Your decision" : "Waits for a decision"} tone="warning">
              {details.question !== null && <QuestionText question={details.question} />}
              {mayAnswer() ? (
                <AnswerForm subject={task.id} answers={details.answers} onAnswer={answer} />
              ) : (
                <p class="muted">Your role may look, not answer.</p>
              )}
            </Panel>
          )}
          <Panel title="Description">
            {details.description ? <LongText text={details.description} maxLines={24} /> : <p class="muted">None.</p>}
          </Panel>
          <Panel title="Sessions" count={details.sessions.length}>
            {details.sessions.length === 0 ? (
              <EmptyState title="No session has worked on it yet." command={details.nextCommand ?? "windlass run"} />
            ) : (
              <ul class="list">
                {details.sessions.map((session) => (
                  <li key={session.name}>
                    <SessionRow session={session} />
                  </li>
                ))}
              </ul>
            )}
          </Panel>
        </div>
        <div class="stack">
          <FactsPanel facts={details.facts} />
          {details.nextCommand !== null && (
            <Panel title="Next step">
              <CommandLine command={details.nextCommand} />
            </Panel>
          )}
          <RelationsPanel id={task.id} graph={graph} reload={reload} />
          <NotesPanel notes={details.notes} id={task.id} />
        </div>
      </div>
    </>
  );
}

function FactsPanel({ facts }: { facts: LabelledText[] }) {
  if (facts.length === 0) return null;
  return (
    <Panel title="Facts">
      <FactList facts={facts} />
    </Panel>
  );
}

/** The reason and the message stand beside the decision, also where the facts are far below on a phone. */
function QuestionText({ question }: { question: OpenQuestion }) {
  return (
    <>
      {question.reason !== "" && (
        <div class="block-reason">
          <LongText text={question.reason} />
        </div>
      )}
      <AgentMessage message={question.message} />
    </>
  );
}

function TaskActions({ details, reload }: { details: TaskDetails; reload: () => void }) {
  const { task } = details;
  const path = `/api/tasks/${pathSegment(task.id)}`;
  const post = (action: string) => async (reason: string) => {
    await postJson(`${path}/${action}`, { reason });
    reload();
  };
  return (
    <>
      <Link to={`/why/${pathSegment(task.id)}`} class="button">
        Why
      </Link>
      <Link to={`/tasks?view=graph&focus=${pathSegment(task.id)}`} class="button">
        Graph
      </Link>
      {task.hasChange && (
        <Link to={`/changes/${pathSegment(task.id)}`} class="button">
          Change
        </Link>
      )}
      {mayManage() && details.canEdit && <EditTaskButton details={details} onDone={reload} />}
      {mayManage() && details.canBlock && (
        <ReasonButton
          title={`Block ${task.id}`}
          submitLabel="Block the task"
          effect="No agent takes the task until a person answers."
          isRequired
          onSubmit={post("block")}
        >
          Block
        </ReasonButton>
      )}
      {mayManage() && details.canReopen && (
        <ReasonButton
          title={`Reopen ${task.id}`}
          submitLabel="Reopen the task"
          effect="The task is open again, and the next run works on it. The agent reads your reason."
          isRequired
          onSubmit={post("reopen")}
        >
          Reopen
        </ReasonButton>
      )}
    </>
  );
}

function RelationsPanel({ id, graph, reload }: { id: string; graph: LiveView<TaskGraphView>; reload: () => void }) {
  const [error, setError] = useState<ApiError | null>(null);
  const path = `/api/tasks/${pathSegment(id)}/depend`;
  const remove = async (on: string) => {
    setError(null);
    try {
      await postJson(path, { on, remove: true });
      reload();
    } catch (thrown) {
      setError(toApiError(thrown));
    }
  };
  const tasks = new Map(graph.data?.tasks.map((task) => [task.id, task]));
  const near = (graph.data?.edges ?? []).filter(({ from, to }) => from === id || to === id);
  return (
    <Panel title="Relations" count={near.length}>
      <ErrorNotice error={graph.error} onRetry={graph.reload} />
      {graph.data !== null && near.length === 0 && <p class="muted">It waits for no task, and no task waits for it.</p>}
      <ul class="edge-list">
        {near.map((edge) => {
          const other = edge.from === id ? edge.to : edge.from;
          const task = tasks.get(other);
          return (
            <li key={`${edge.from} ${edge.kind} ${edge.to}`}>
              <div class="edge-text">
                <span class="muted">{describeEdge(edge, id)}</span> <TaskLink id={other} />{" "}
                {task && <Badge tone={task.tone}>{task.state}</Badge>} <span class="edge-goal"><VisibleText text={task?.goal ?? ""} /></span>
              </div>
              {mayManage() && edge.kind === "depends_on" && edge.from === id && (
                <Button kind="quiet" class="small-button" label={`Remove the dependency on ${other}`} onClick={() => void remove(other)}>
                  Remove
                </Button>
              )}
            </li>
          );
        })}
      </ul>
      <ErrorNotice error={error} />
      {mayManage() && <DependencyForm path={path} reload={reload} />}
    </Panel>
  );
}

function DependencyForm({ path, reload }: { path: string; reload: () => void }) {
  const [text, setText] = useState("");
  const [error, setError] = useState<ApiError | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const id = useId();
  const add = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    setIsBusy(true);
    setError(null);
    const left = splitList(text);
    try {
      await postEach(path, left.map((on) => ({ on })), () => left.shift());
    } catch (thrown) {
      setError(toApiError(thrown));
    }
    // What was added is not sent again.
    setText(left.join(", "));
    setIsBusy(false);
    reload();
  };
  return (
    <form class="dependency-form" onSubmit={add}>
      <label for={id} class="field-label">
        Wait for other tasks
      </label>
      <div class="row">
        <input
          id={id}
          type="text"
          placeholder="T3, T7"
          value={text}
          readOnly={isBusy}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <Button type="submit" isBusy={isBusy}>
          Add
        </Button>
      </div>
      <ErrorNotice error={error} />
    </form>
  );
}

function NotesPanel({ notes, id }: { notes: TaskNote[]; id: string }) {
  return (
    <Panel title="Notes" count={notes.length}>
      {notes.length === 0 ? (
        <EmptyState title="No notes." command={`windlass note add --task ${id} "…"`} />
      ) : (
        <ul class="note-list">
          {notes.map((note, index) => (
            <li key={index}>
              <p class="list-row-meta">
                <span class="label">{note.kind}</span>
                <span>
                  <VisibleText text={note.author} />
                </span>
                <RelativeTime at={note.at} />
              </p>
              <LongText text={note.text} maxLines={8} />
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}
