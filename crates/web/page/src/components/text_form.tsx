// A form with one text. It keeps what the person typed until the server has it.

import { useEffect, useId, useRef, useState } from "preact/hooks";

import { type ApiError, toApiError } from "../api_client";
import { Button, type ButtonKind } from "./button";
import { ErrorNotice } from "./notice";

const DRAFT_PREFIX = "windlass.draft.";

function readDraft(key: string | undefined): string {
  return key === undefined ? "" : (sessionStorage.getItem(DRAFT_PREFIX + key) ?? "");
}

function keepDraft(key: string | undefined, text: string): void {
  if (key === undefined) return;
  if (text === "") sessionStorage.removeItem(DRAFT_PREFIX + key);
  else sessionStorage.setItem(DRAFT_PREFIX + key, text);
}

/** Lists the texts that were typed and not sent, by what follows a prefix in their names. */
export function listDrafts(prefix: string): { name: string; text: string }[] {
  const start = DRAFT_PREFIX + prefix;
  const keys = Object.keys(sessionStorage).filter((key) => key.startsWith(start));
  const drafts = keys.map((key) => ({ name: key.slice(start.length), text: sessionStorage.getItem(key) ?? "" }));
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
