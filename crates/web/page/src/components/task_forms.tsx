// Adding and editing a task.

import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";

import { type ApiError, pathSegment, postJson, toApiError } from "../api_client";
import type { TaskDetails, TaskSummary } from "../api_types";
import { navigate } from "../router";
import { Button } from "./button";
import { Dialog } from "./dialog";
import { ErrorNotice } from "./notice";
import { taskPath } from "./task_row";

const PRIORITIES = ["0", "1", "2", "3", "4"];
const PRIORITY_TEXTS: Record<string, string> = { "0": "0, most urgent", "2": "2, usual", "4": "4, least urgent" };

interface TaskFields {
  goal: string;
  description: string;
  type: string;
  priority: string;
  labels: string;
  dependsOn: string;
}

const EMPTY_FIELDS: TaskFields = { goal: "", description: "", type: "", priority: "2", labels: "", dependsOn: "" };

/** Splits a list that a person has separated by commas or blanks. */
export function splitList(text: string): string[] {
  return text.split(/[\s,]+/).filter((word) => word !== "");
}

interface TaskFormProps {
  initial: TaskFields;
  submitLabel: string;
  /** Whether the task is new: only then are its type and dependencies set here. */
  isNew: boolean;
  onSubmit: (fields: TaskFields) => Promise<unknown>;
}

function TaskForm({ initial, submitLabel, isNew, onSubmit }: TaskFormProps) {
  const [fields, setFields] = useState(initial);
  const [error, setError] = useState<ApiError | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const change = (part: Partial<TaskFields>) => setFields((before) => ({ ...before, ...part }));
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    setIsBusy(true);
    setError(null);
    try {
      await onSubmit(fields);
    } catch (thrown) {
      setError(toApiError(thrown));
    }
    setIsBusy(false);
  };
  return (
    <form class="task-form" onSubmit={submit}>
      <TextField label="Goal" value={fields.goal} rows={2} isRequired onChange={(goal) => change({ goal })} />
      <TextField label="Description" value={fields.description} rows={5} onChange={(description) => change({ description })} />
      <div class="field-pair">
        <PriorityField value={fields.priority} onChange={(priority) => change({ priority })} />
        {isNew && <TextField label="Type" hint="as in the configuration" value={fields.type} onChange={(type) => change({ type })} />}
        <TextField label="Labels" hint="separated by spaces" value={fields.labels} onChange={(labels) => change({ labels })} />
        {isNew && (
          <TextField label="Waits for" hint="such as T3, T7" value={fields.dependsOn} onChange={(dependsOn) => change({ dependsOn })} />
        )}
      </div>
      <ErrorNotice error={error} />
      <div class="row">
        <Button type="submit" kind="primary" isBusy={isBusy}>
          {submitLabel}
        </Button>
      </div>
    </form>
  );
}

interface TextFieldProps {
  label: string;
  value: string;
  hint?: string;
  rows?: number;
  isRequired?: boolean;
  onChange: (value: string) => void;
}

function TextField({ label, value, hint, rows, isRequired, onChange }: TextFieldProps) {
  const id = useId();
  const shared = { id, value, required: isRequired, "aria-describedby": hint === undefined ? undefined : `${id}-hint` };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {rows === undefined ? (
        <input type="text" {...shared} onInput={(event) => onChange(event.currentTarget.value)} />
      ) : (
        <textarea rows={rows} {...shared} onInput={(event) => onChange(event.currentTarget.value)} />
      )}
      {hint !== undefined && (
        <span id={`${id}-hint`} class="field-hint">
          {hint}
        </span>
      )}
    </div>
  );
}

function PriorityField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>Priority</label>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {PRIORITIES.map((priority) => (
          <option key={priority} value={priority}>
            {PRIORITY_TEXTS[priority] ?? priority}
          </option>
        ))}
      </select>
    </div>
  );
}

export function NewTaskButton({ children }: { children: ComponentChildren }) {
  const [isOpen, setIsOpen] = useState(false);
  const add = async (fields: TaskFields) => {
    const task = await postJson<TaskSummary>("/api/tasks", {
      goal: fields.goal.trim(),
      description: fields.description,
      type: fields.type.trim(),
      priority: fields.priority,
      labels: splitList(fields.labels),
      dependsOn: splitList(fields.dependsOn),
    });
    setIsOpen(false);
    navigate(taskPath(task.id));
  };
  return (
    <>
      <Button kind="primary" onClick={() => setIsOpen(true)}>
        {children}
      </Button>
      <Dialog title="Add a task" isOpen={isOpen} onClose={() => setIsOpen(false)}>
        <TaskForm initial={EMPTY_FIELDS} submitLabel="Add the task" isNew onSubmit={add} />
      </Dialog>
    </>
  );
}

interface EditTaskButtonProps {
  details: TaskDetails;
  onDone: () => void;
}

export function EditTaskButton({ details, onDone }: EditTaskButtonProps) {
  const { task } = details;
  // The fields as the person first saw them: the page may have loaded changes of others since.
  const [initial, setInitial] = useState<TaskFields | null>(null);
  const open = () =>
    setInitial({
      ...EMPTY_FIELDS,
      goal: details.goal,
      description: details.description ?? "",
      priority: task.priority,
      labels: task.labels.join(" "),
    });
  const save = async (fields: TaskFields) => {
    if (initial === null) return;
    const [before, labels] = [splitList(initial.labels), splitList(fields.labels)];
    // Only what the person changed is sent, so that changes of others stay.
    await postJson(`/api/tasks/${pathSegment(task.id)}/edit`, {
      goal: fields.goal === initial.goal ? undefined : fields.goal.trim(),
      description: fields.description === initial.description ? undefined : fields.description,
      priority: fields.priority === initial.priority ? undefined : fields.priority,
      addLabels: labels.filter((label) => !before.includes(label)),
      removeLabels: before.filter((label) => !labels.includes(label)),
    });
    setInitial(null);
    onDone();
  };
  return (
    <>
      <Button onClick={open}>Edit</Button>
      <Dialog title={`Edit ${task.id}`} isOpen={initial !== null} onClose={() => setInitial(null)}>
        {initial !== null && <TaskForm initial={initial} submitLabel="Save" isNew={false} onSubmit={save} />}
      </Dialog>
    </>
  );
}
