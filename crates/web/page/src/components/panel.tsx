// The frame of a screen and of its parts.

import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";

import type { LabelledText, TextTone } from "../api_types";
import { formatCount } from "../formats";
import { Link, useScreenTitle } from "../router";
import { Button } from "./button";
import { LongText } from "./text";
import { spellInvisible, VisibleText } from "./visible_text";

/** A longer heading is cut to a few lines. */
const MAX_HEADING_LENGTH = 160;

interface ScreenHeaderProps {
  title: string;
  /** The title of the document, if it is not the heading. */
  documentTitle?: string;
  /** A line above the heading, such as the name of a task. */
  note?: ComponentChildren;
  /** Buttons and switches. */
  children?: ComponentChildren;
}

export function ScreenHeader({ title, documentTitle, note, children }: ScreenHeaderProps) {
  const [isOpen, setIsOpen] = useState(false);
  const isLong = title.length > MAX_HEADING_LENGTH;
  useScreenTitle(spellInvisible(documentTitle ?? title));
  return (
    <header class="screen-header">
      <div class="screen-heading">
        {note && <div class="screen-note">{note}</div>}
        <h1 data-cut={isLong && !isOpen}>
          <VisibleText text={title} />
        </h1>
        {isLong && (
          <Button kind="quiet" class="small-button" isExpanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
            {isOpen ? "Show less" : "Show the whole title"}
          </Button>
        )}
      </div>
      {children && <div class="row screen-actions">{children}</div>}
    </header>
  );
}

interface PanelProps {
  title?: ComponentChildren;
  count?: number;
  actions?: ComponentChildren;
  tone?: TextTone;
  class?: string;
  children: ComponentChildren;
}

export function Panel({ title, count, actions, tone, children, ...rest }: PanelProps) {
  const id = useId();
  return (
    <section class={`panel ${tone ? `panel-${tone}` : ""} ${rest.class ?? ""}`} aria-labelledby={title ? id : undefined}>
      {(title || actions) && (
        <header class="panel-header">
          {title && (
            <h2 id={id}>
              {title}
              {count !== undefined && <span class="count">{formatCount(count)}</span>}
            </h2>
          )}
          {actions && <div class="row panel-actions">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  );
}

/** Labels with texts, as a list of definitions. */
export function FactList({ facts }: { facts: LabelledText[] }) {
  if (facts.length === 0) return null;
  return (
    <dl class="fact-list">
      {facts.map((fact, index) => (
        <div key={index}>
          <dt>{fact.label}</dt>
          <dd>
            <LongText text={fact.text} maxLines={8} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

export function TaskLink({ id }: { id: string }) {
  return (
    <Link to={`/tasks/${encodeURIComponent(id)}`} class="name-link">
      {id}
    </Link>
  );
}

export function SessionLink({ name }: { name: string }) {
  return (
    <Link to={`/sessions/${encodeURIComponent(name)}`} class="name-link">
      {name}
    </Link>
  );
}

/** A link to a position of the log. */
export function SeqLink({ seq }: { seq: number }) {
  return (
    <Link to={`/log/${seq}`} class="seq-link" label={`Position ${seq} of the log`}>
      #{seq}
    </Link>
  );
}
