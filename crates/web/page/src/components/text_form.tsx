// A form with one text. It keeps what the person typed until the server has it.

import { useEffect, useId, useRef, useState } from "preact/hooks";

import { type ApiError, toApiError } from "../api_client";
import { lastKnownPosition } from "../event_stream";
import { viewer } from "../viewer";
import { Button, type ButtonKind } from "./button";
import { ErrorNotice } from "./notice";

/** A text that was typed and not sent. */
interface StoredText {
  text: string;
  /** The position of the log when the person began to type. */
  startedAfter: number;
}

/** Returns the key of a draft in the storage. Another project can have the same address later. */
function storageKey(key: string): string {
  return `windlass.draft:${viewer.peek()?.projectPath ?? ""}:${key}`;
}

function readStoredText(storedUnder: string): StoredText | null {
  return JSON.parse(sessionStorage.getItem(storedUnder) ?? "null") as StoredText | null;
}

function readDraft(key: string | undefined): string {
  return key === undefined ? "" : (readStoredText(storageKey(key))?.text ?? "");
}

function keepDraft(key: string | undefined, text: string): void {
  if (key === undefined) return;
  const stored = storageKey(key);
  const startedAfter = readStoredText(stored)?.startedAfter ?? lastKnownPosition();
  if (text === "") sessionStorage.removeItem(stored);
  else sessionStorage.setItem(stored, JSON.stringify({ text, startedAfter } satisfies StoredText));
}

/** A draft, with what follows a prefix in its name. */
export interface ListedDraft extends StoredText {
  name: string;
}

/** Lists the drafts of this project whose names have a prefix. */
export function listDrafts(prefix: string): ListedDraft[] {
  const start = storageKey(prefix);
  const keys = Object.keys(sessionStorage).filter((key) => key.startsWith(start));
  const drafts = keys.map((key) => ({ text: "", startedAfter: 0, ...readStoredText(key), name: key.slice(start.length) }));
  return drafts.filter(({ text }) => text.trim() !== "");
}

export function discardDraft(key: string): void {
  keepDraft(key, "");
}

interface TextFormProps {
  label: string;
  submitLabel: string;
  onSubmit: (text: string) => Promise<unknown>;
  /** Keeps the text in this tab under this name until it is sent. */
  draftKey?: string;
  isRequired?: boolean;
  placeholder?: string;
  initialText?: string;
  rows?: number;
  kind?: ButtonKind;
  hidesLabel?: boolean;
  takesFocus?: boolean;
  onCancel?: () => void;
}

export function TextForm(props: TextFormProps) {
  const { label, submitLabel, onSubmit, draftKey, isRequired = true, rows = 3, kind = "primary", onCancel } = props;
  const [text, setText] = useState(() => readDraft(draftKey) || (props.initialText ?? ""));
  const [error, setError] = useState<ApiError | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const id = useId();
  useEffect(() => {
    if (props.takesFocus) field.current?.focus();
  }, []);
  const change = (next: string) => {
    setText(next);
    keepDraft(draftKey, next);
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    if (isRequired && text.trim() === "") {
      field.current?.focus();
      return;
    }
    setIsBusy(true);
    setError(null);
    try {
      await onSubmit(text);
      change("");
    } catch (thrown) {
      setError(toApiError(thrown));
    }
    setIsBusy(false);
  };
  const submitWithKeys = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void submit(event);
  };
  return (
    <form class="text-form" onSubmit={submit}>
      <label for={id} class={props.hidesLabel ? "visually-hidden" : ""}>
        {label}
      </label>
      <textarea
        id={id}
        ref={field}
        rows={rows}
        value={text}
        required={isRequired}
        placeholder={props.placeholder}
        onInput={(event) => change(event.currentTarget.value)}
        onKeyDown={submitWithKeys}
      />
      <ErrorNotice error={error} />
      <div class="row">
        <Button kind={kind} type="submit" isBusy={isBusy} title="Ctrl+Enter">
          {submitLabel}
        </Button>
        {onCancel && (
          <Button kind="quiet" onClick={onCancel}>
            Cancel
          </Button>
        )}
      </div>
    </form>
  );
}
