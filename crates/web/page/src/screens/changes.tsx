// The changes that are not merged.

import { useState } from "preact/hooks";

import { pathSegment } from "../api_client";
import type { ChangeSummary, EventType, LogEntry } from "../api_types";
import { Badge, EmptyState, RelativeTime, ScreenHeader, ViewContent } from "../components";
import { BranchNames } from "../components/branch_names";
import { VisibleText } from "../components/visible_text";
import { useLiveView } from "../event_stream";
import { pluralize } from "../formats";
import { Link, safeExternalUrl } from "../router";

/** The number of changes from which a filter helps. */
const FILTERED_COUNT = 6;
const CHANGE_EVENTS: readonly string[] = ["submission_started", "pipeline_failed", "merge_started"] satisfies EventType[];

export function ChangesScreen() {
  const view = useLiveView<ChangeSummary[]>("/api/changes", concernsChanges);
  return (
    <>
      <ScreenHeader title="Changes" />
      <ViewContent view={view}>{(changes) => <ChangeList changes={changes} />}</ViewContent>
    </>
  );
}

function concernsChanges(entry: LogEntry): boolean {
  return /^(change|task)_/.test(entry.type) || CHANGE_EVENTS.includes(entry.type);
}

function ChangeList({ changes }: { changes: ChangeSummary[] }) {
  const [filter, setFilter] = useState("");
  if (changes.length === 0) {
    return (
      <EmptyState title="No open changes" command="windlass run">
        <p>An agent opens a change when its work has passed the checks of its gates.</p>
      </EmptyState>
    );
  }
  const wanted = filter.trim().toLowerCase();
  const shown = changes.filter((change) => `${change.task} ${change.goal} ${change.branch}`.toLowerCase().includes(wanted));
  return (
    <div class="stack">
      {changes.length >= FILTERED_COUNT && (
        <input
          type="search"
          class="filter-field"
          data-filter=""
          aria-label="Filter changes"
          placeholder="Filter by task, goal or branch"
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
      )}
      <ul class="change-list">
        {shown.map((change) => (
          <li key={change.task}>
            <ChangeCard change={change} />
          </li>
        ))}
      </ul>
      {shown.length === 0 && <p class="muted">No change matches this filter.</p>}
    </div>
  );
}

function ChangeCard({ change }: { change: ChangeSummary }) {
  const url = safeExternalUrl(change.url);
  return (
    <article class="change-card">
      <div class="change-card-top">
        <span class="mono muted">{change.task}</span>
        <Badge tone={change.tone}>{change.state}</Badge>
        <span class="change-card-time muted">
          <RelativeTime at={change.openedAt} />
        </span>
      </div>
      <h2>
        <Link to={`/changes/${pathSegment(change.task)}`} class="card-link">
          <VisibleText text={change.goal} />
        </Link>
      </h2>
      <div class="change-card-facts">
        <BranchNames change={change} />
        <span>
          {pluralize(change.commits, "commit")}, {pluralize(change.files, "file")}
        </span>
        {url !== null && (
          <a href={url} target="_blank" rel="noreferrer noopener" class="outer-link">
            {new URL(url).host}
          </a>
        )}
      </div>
    </article>
  );
}
