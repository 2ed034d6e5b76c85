// The sessions that were started last, newest first.

import { useState } from "preact/hooks";

import type { SessionPage, SessionSummary } from "../api_types";
import { Button, EmptyState, Panel, ScreenHeader, Tabs, ViewContent } from "../components";
import { SessionRow } from "../components/session_row";
import { concernsSessions } from "../concerns";
import { useLiveView, useProcessWatch } from "../event_stream";

const FIRST_ROWS = 50;
const MAX_ROWS = 500;

type SessionChoice = "all" | "open" | "over";

function matchesText(session: SessionSummary, text: string): boolean {
  const fields = [session.name, session.goal, session.agent, session.task ?? "", session.state];
  return fields.some((field) => field.toLowerCase().includes(text));
}

export function SessionsScreen() {
  const [limit, setLimit] = useState(FIRST_ROWS);
  const [choice, setChoice] = useState<SessionChoice>("all");
  const [text, setText] = useState("");
  const view = useLiveView<SessionPage>(`/api/sessions?limit=${limit}`, concernsSessions);
  const sessions = view.data?.sessions ?? [];
  const open = sessions.filter((session) => session.endedAt === null);
  useProcessWatch(open.some((session) => session.isRunning), view.reload);
  return (
    <>
      <ScreenHeader title="Sessions" />
      <div class="filter-bar">
        <input
          type="search"
          data-filter=""
          aria-label="Filter the sessions"
          placeholder="Filter by goal, agent, task"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <Tabs
          label="Which sessions"
          selected={choice}
          onSelect={setChoice}
          tabs={[
            { key: "all", label: "All" },
            { key: "open", label: "Open", count: open.length },
            { key: "over", label: "Ended" },
          ]}
        />
      </div>
      <ViewContent view={view}>
        {(page) => {
          const chosen = page.sessions.filter((session) => choice === "all" || (session.endedAt === null) === (choice === "open"));
          const shown = chosen.filter((session) => matchesText(session, text.trim().toLowerCase()));
          return (
            <Panel>
              {shown.length === 0 ? (
                <NoSessions isFiltered={page.sessions.length > 0} />
              ) : (
                <ul class="list">
                  {shown.map((session) => (
                    <li key={session.name}>
                      <SessionRow session={session} />
                    </li>
                  ))}
                </ul>
              )}
              {page.hasMore && (
                <p class="list-end">
                  {limit < MAX_ROWS ? (
                    <Button isBusy={view.isLoading} onClick={() => setLimit(MAX_ROWS)}>
                      Show older sessions
                    </Button>
                  ) : (
                    <span class="muted">Older sessions: windlass session list</span>
                  )}
                </p>
              )}
            </Panel>
          );
        }}
      </ViewContent>
    </>
  );
}

function NoSessions({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) return <EmptyState title="No session matches." />;
  return <EmptyState title="No session was started yet." command="windlass run" />;
}
