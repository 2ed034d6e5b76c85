// The rows of the log, newest first, under the day on which they happened.

import { Fragment } from "preact";
import { useState } from "preact/hooks";

import type { LogEntry } from "../api_types";
import { useLiveView } from "../event_stream";
import { formatExactTime } from "../formats";
import { Link } from "../router";
import { BacktickText, OutputBlock, SessionLink, TaskLink, ToneShape, ViewContent } from "./index";
import { spellInvisible, VisibleText } from "./visible_text";

/** The characters of a summary that are shown at first. */
const SHORT_SUMMARY_LENGTH = 200;
/** The lines of an event's JSON that are shown at first. */
const SHORT_EVENT_LINES = 40;
const DAY_LENGTH = "2026-11-19".length;

interface LogRowsProps {
  /** Oldest first. */
  entries: LogEntry[];
  /** The position that the address names. */
  position: number | null;
  /** The filter as a part of an address. */
  search: string;
}

interface LogDay {
  day: string;
  entries: LogEntry[];
}

export function LogRows({ entries, position, search }: LogRowsProps) {
  return (
    <>
      {groupByDay(entries).map(({ day, entries: own }) => (
        <section key={`${day} ${own.at(-1)?.seq}`} class="log-day" aria-label={day}>
          <h2>{day}</h2>
          <ol class="log-list">
            {own.map((entry) => (
              <LogRow key={entry.seq} entry={entry} isLinked={entry.seq === position} search={search} />
            ))}
          </ol>
        </section>
      ))}
    </>
  );
}

/** Groups entries by their local day, newest first. */
function groupByDay(entries: LogEntry[]): LogDay[] {
  const days: LogDay[] = [];
  for (const entry of entries.toReversed()) {
    const day = formatExactTime(entry.at).slice(0, DAY_LENGTH);
    const last = days.at(-1);
    if (last?.day === day) last.entries.push(entry);
    else days.push({ day, entries: [entry] });
  }
  return days;
}

function LogRow({ entry, isLinked, search }: { entry: LogEntry; isLinked: boolean; search: string }) {
  const exact = formatExactTime(entry.at);
  return (
    <li class={`log-row${isLinked ? " is-linked" : ""}`} id={`log-${entry.seq}`} aria-current={isLinked || undefined}>
      <Link to={`/log/${entry.seq}${search}`} class="seq-link log-seq" label={`Position ${entry.seq} of the log`}>
        #{entry.seq}
      </Link>
      <time class="log-time" dateTime={new Date(entry.at).toISOString()} title={exact}>
        {exact.slice(DAY_LENGTH + 1)}
      </time>
      <span class={`log-type tone-${entry.tone}`}>
        <ToneShape tone={entry.tone} />
        <code>
          <TypeName name={entry.type} />
        </code>
      </span>
      <span class="log-subject">
        {entry.task !== null && <TaskLink id={entry.task} />}
        {entry.session !== null && <SessionLink name={entry.session} />}
        {entry.iteration !== null && <span class="muted">it. {entry.iteration}</span>}
        {entry.triggeredBy !== "" && (
          <span class="log-person muted" title={`The command of ${spellInvisible(entry.triggeredBy)} led to the event`}>
            by <VisibleText text={entry.triggeredBy} />
          </span>
        )}
      </span>
      <div class="log-summary">
        <span class="log-text">
          {entry.depth > 0 && (
            <span class="label" title="How many hooks and actions stand between the event and a command">
              depth {entry.depth}
            </span>
          )}{" "}
          <LogSummary text={entry.summary} />
        </span>
        <LogDetails seq={entry.seq} />
      </div>
    </li>
  );
}

/** The type of an event, which a narrow column breaks between its words. */
function TypeName({ name }: { name: string }) {
  return (
    <>
      {name.split(/(?<=_)/).map((word, index) => (
        <Fragment key={index}>
          <VisibleText text={word} />
          <wbr />
        </Fragment>
      ))}
    </>
  );
}

/** The whole event, which is loaded when the reader opens it. */
function LogDetails({ seq }: { seq: number }) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details class="log-details" onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary aria-label={`Details of event ${seq}`}>Details</summary>
      {isOpen && <EventJson seq={seq} />}
    </details>
  );
}

function EventJson({ seq }: { seq: number }) {
  // An event of the log never changes.
  const view = useLiveView<Record<string, unknown>>(`/api/log/${seq}`, () => false);
  return (
    <ViewContent view={view}>
      {(event) => <OutputBlock lines={JSON.stringify(event, null, 2).split("\n")} label={`Event ${seq} as JSON`} maxLines={SHORT_EVENT_LINES} />}
    </ViewContent>
  );
}

function LogSummary({ text }: { text: string }) {
  const [showsAll, setShowsAll] = useState(false);
  if (showsAll || text.length <= SHORT_SUMMARY_LENGTH) return <BacktickText text={text} />;
  return (
    <>
      <BacktickText text={text.slice(0, SHORT_SUMMARY_LENGTH)} />…{" "}
      <button type="button" class="text-button" onClick={() => setShowsAll(true)}>
        more
      </button>
    </>
  );
}
