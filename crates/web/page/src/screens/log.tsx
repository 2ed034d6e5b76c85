// The log: events as they happen, filters, and a link to every position.

import { useEffect, useMemo, useState } from "preact/hooks";

import type { LogEntry } from "../api_types";
import { Badge, Button, EmptyState, ErrorNotice, ScreenHeader, Spinner } from "../components";
import { EVENT_GROUPS } from "../components/event_types";
import { LogFeed, type LogFilter, writeLogFilter } from "../components/log_feed";
import { LogRows } from "../components/log_rows";
import { connection } from "../event_stream";
import { formatCount, pluralize, spellOut } from "../formats";
import { navigate, route } from "../router";

export function LogScreen({ position: linked }: { position: number | null }) {
  const query = route.value.query;
  const after = Number.parseInt(query.get("after") ?? "", 10);
  const position = linked ?? (Number.isNaN(after) ? null : after);
  const filter = readLogFilter(query);
  const parameters = writeLogFilter(filter).toString();
  const feed = useMemo(() => new LogFeed(filter), [parameters]);
  useEffect(() => feed.follow(), [feed]);
  useEffect(() => {
    if (position !== null && feed.contains(position)) return;
    void (position === null ? feed.loadNewest() : feed.loadAround(position));
  }, [feed, position]);
  return (
    <>
      <ScreenHeader title="Log" documentTitle={position === null ? "Log" : `Log #${position}`}>
        <FollowSwitch feed={feed} />
      </ScreenHeader>
      <LogContents feed={feed} position={position} search={parameters === "" ? "" : `?${parameters}`} />
    </>
  );
}

function readLogFilter(query: URLSearchParams): LogFilter {
  const types = (query.get("type") ?? "").split(",").filter((type) => type !== "");
  return { types, task: query.get("task") ?? "", session: query.get("session") ?? "" };
}

/** Says whether the screen follows the log, and stops or continues that. */
function FollowSwitch({ feed }: { feed: LogFeed }) {
  if (!feed.isLive.value) {
    return (
      <>
        <span class="muted">an earlier part of the log</span>
        <Button onClick={() => openFilter(feed.filter)}>Go to the newest</Button>
      </>
    );
  }
  const isPaused = feed.isPaused.value;
  const isOpen = connection.value === "open";
  return (
    <>
      <Badge tone={isPaused ? "faint" : isOpen ? "name" : "warning"}>{isPaused ? "paused" : isOpen ? "live" : "not connected"}</Badge>
      <Button isPressed={isPaused} onClick={() => feed.setPaused(!isPaused)}>
        Pause
      </Button>
    </>
  );
}

function openFilter(filter: LogFilter): void {
  const parameters = writeLogFilter(filter).toString();
  navigate(parameters === "" ? "/log" : `/log?${parameters}`);
}

interface LogContentsProps {
  feed: LogFeed;
  position: number | null;
  search: string;
}

function LogContents({ feed, position, search }: LogContentsProps) {
  const [text, setText] = useState("");
  const entries = feed.entries.value;
  const shown = useMemo(() => filterByText(entries, text), [entries, text]);
  const hasPosition = position !== null && entries.some((entry) => entry.seq === position);
  useEffect(() => {
    if (hasPosition) document.getElementById(`log-${position}`)?.scrollIntoView({ block: "center" });
  }, [position, hasPosition]);
  const isLoading = feed.isLoading.value;
  const waiting = feed.waiting.value.length;
  return (
    <div class="log-screen">
      <FilterForm filter={feed.filter} text={text} onText={setText} />
      <ErrorNotice error={feed.error.value} onRetry={() => void (position === null ? feed.loadNewest() : feed.loadAround(position))} />
      {position !== null && !hasPosition && !isLoading && entries.length > 0 && (
        <p class="notice notice-warning">Position {position} is not in the log, or the filter leaves it out.</p>
      )}
      {!feed.isLive.value && (
        <Button kind="quiet" isBusy={isLoading} onClick={() => void feed.loadNewer()}>
          Load newer events
        </Button>
      )}
      {waiting > 0 && <Button onClick={() => feed.setPaused(false)}>Show {pluralize(waiting, "new event")}</Button>}
      <LogRows entries={shown} position={position} search={search} />
      {shown.length === 0 && (isLoading ? <Spinner /> : <EmptyLog isFiltered={search !== "" || text !== ""} hasError={feed.error.value !== null} />)}
      {feed.hasOlder.value && (
        <Button isBusy={isLoading} onClick={() => void feed.loadOlder()}>
          Load older events
        </Button>
      )}
      {!feed.hasOlder.value && entries.length > 0 && <p class="muted">This is the beginning{search === "" ? " of the log" : ": no older event matches"}.</p>}
    </div>
  );
}

function filterByText(entries: LogEntry[], text: string): LogEntry[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return entries;
  const searched = (entry: LogEntry) => [entry.type, entry.task ?? "", entry.session ?? "", entry.triggeredBy, entry.summary].join(" ");
  return entries.filter((entry) => searched(entry).toLowerCase().includes(wanted));
}

function EmptyLog({ isFiltered, hasError }: { isFiltered: boolean; hasError: boolean }) {
  if (hasError) return null;
  if (isFiltered) return <EmptyState title="No event matches this filter" />;
  return <EmptyState title="The log is empty" command={'windlass task add "…"'} />;
}

interface FilterFormProps {
  filter: LogFilter;
  text: string;
  onText: (text: string) => void;
}

function FilterForm({ filter, text, onText }: FilterFormProps) {
  const isFiltered = filter.types.length > 0 || filter.task !== "" || filter.session !== "";
  // A phone shows the first field alone until the reader asks for the others.
  const [isOpen, setIsOpen] = useState(isFiltered);
  const setField = (field: "task" | "session") => (event: Event) => {
    const value = (event.currentTarget as HTMLInputElement).value.trim();
    if (value !== filter[field]) openFilter({ ...filter, [field]: value });
  };
  return (
    <form class={`log-filter${isOpen ? " is-open" : ""}`} role="search" onSubmit={(event) => event.preventDefault()}>
      <label class="field log-filter-text">
        <span class="field-label">Text in the loaded events</span>
        <input type="search" data-filter="" value={text} onInput={(event) => onText(event.currentTarget.value)} />
      </label>
      <Button class="log-filter-switch" isExpanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
        Filters
      </Button>
      <TypeFilter filter={filter} />
      <label class="field">
        <span class="field-label">Task</span>
        <input type="text" placeholder="T12" value={filter.task} onChange={setField("task")} />
      </label>
      <label class="field">
        <span class="field-label">Session</span>
        <input type="text" value={filter.session} onChange={setField("session")} />
      </label>
      {isFiltered && (
        <Button kind="quiet" class="log-filter-reset" onClick={() => openFilter({ types: [], task: "", session: "" })}>
          Show all events
        </Button>
      )}
    </form>
  );
}

function TypeFilter({ filter }: { filter: LogFilter }) {
  const selected = filter.types.join(",");
  const groups = EVENT_GROUPS.map(({ subject, types }) => ({ subject, types, all: types.join(",") }));
  const isListed = selected === "" || groups.some(({ types, all }) => all === selected || types.includes(selected));
  return (
    <label class="field log-filter-type">
      <span class="field-label">Type</span>
      <select
        value={selected}
        onChange={(event) => openFilter({ ...filter, types: event.currentTarget.value.split(",").filter((type) => type !== "") })}
      >
        <option value="">All types</option>
        {!isListed && <option value={selected}>{formatCount(filter.types.length)} chosen types</option>}
        {groups.map(({ subject, types, all }) => (
          <optgroup key={subject} label={subject}>
            <option value={all}>{subject}: all types</option>
            {types.map((type) => (
              <option key={type} value={type}>
                {spellOut(type)}
              </option>
            ))}
          </optgroup>
        ))}
      </select>
    </label>
  );
}
