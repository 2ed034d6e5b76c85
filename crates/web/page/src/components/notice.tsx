// Errors, empty lists, waiting, and commands that can be typed.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import type { ApiError } from "../api_client";
import type { LiveView } from "../event_stream";
import { Icon } from "./icons";
import { ToneShape } from "./tone";
import { VisibleText } from "./visible_text";

const COPIED_SHOWN_FOR = 1500;

/** Shows an error with its causes and its hint. */
export function ErrorNotice({ error, onRetry }: { error: ApiError | null; onRetry?: () => void }) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // The person has just pressed a button near it. An error of a view comes at any time, and moves nothing.
    if (onRetry === undefined) element.current?.scrollIntoView({ block: "nearest" });
  }, [error]);
  if (error === null) return null;
  return (
    <div ref={element} class="notice notice-bad" role="alert">
      <ToneShape tone="bad" />
      <div class="notice-text">
        <p class="notice-title">
          <BacktickText text={error.message} />
        </p>
        {error.causes !== null && (
          <p class="wrap">
            <BacktickText text={error.causes} />
          </p>
        )}
        {error.hint !== null && (
          <p>
            <BacktickText text={error.hint} />
          </p>
        )}
      </div>
      {onRetry && (
        <button type="button" class="button button-plain" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Shows a warning that needs no answer. */
export function WarningNotice({ children }: { children: ComponentChildren }) {
  return (
    <div class="notice notice-warning">
      <ToneShape tone="warning" />
      <div class="notice-text">{children}</div>
    </div>
  );
}

/** A part of a line between two backticks that stand alone. */
const CODE_SPAN = /(?<!`)`([^`\n]+)`(?!`)/;

/** Shows the parts of a text between backticks as code. */
export function BacktickText({ text }: { text: string }) {
  // The parts at odd places are those of the group.
  const shown = text.split(CODE_SPAN).map((part, index) => {
    const visible = <VisibleText key={index} text={part} />;
    return index % 2 === 1 ? <code key={index}>{visible}</code> : visible;
  });
  return <>{shown}</>;
}

interface EmptyStateProps {
  title: string;
  /** The next command to type. */
  command?: string;
  children?: ComponentChildren;
}

export function EmptyState({ title, command, children }: EmptyStateProps) {
  return (
    <div class="empty-state">
      <p class="empty-title">{title}</p>
      {children}
      {command !== undefined && <CommandLine command={command} />}
    </div>
  );
}

/** A command with a button that copies it. */
export function CommandLine({ command }: { command: string }) {
  const [isCopied, setIsCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(command).catch(() => {});
    setIsCopied(true);
    window.setTimeout(() => setIsCopied(false), COPIED_SHOWN_FOR);
  };
  return (
    <div class="command-line">
      <code>{command}</code>
      {/* A browser offers its clipboard only to a page over TLS or on this machine. */}
      {navigator.clipboard !== undefined && (
        <button type="button" class="button button-quiet icon-button" onClick={copy} aria-label={isCopied ? "Copied" : "Copy the command"}>
          {isCopied ? <ToneShape tone="good" /> : <Icon name="copy" size={18} />}
        </button>
      )}
    </div>
  );
}

export function Spinner({ label = "Loading" }: { label?: string }) {
  return (
    <p class="spinner" role="status">
      <span class="spinner-ring" aria-hidden="true" />
      <span>{label}…</span>
    </p>
  );
}

interface ViewContentProps<T> {
  view: LiveView<T>;
  children: (data: T) => ComponentChildren;
}

/** Shows a view, or why there is none. An error of a later load stands above the last data. */
export function ViewContent<T>({ view, children }: ViewContentProps<T>) {
  return (
    <>
      <ErrorNotice error={view.error} onRetry={view.reload} />
      {view.data === null ? view.error === null && <Spinner /> : children(view.data)}
    </>
  );
}
