// The home screen: what needs a person on top, then who works on what, then what is next.

import type { NowView, StateCount, UsageTotals, WaitingItem } from "../api_types";
import { BacktickText, EmptyState, Panel, RelativeTime, ScreenHeader, ToneShape, ViewContent, WarningNotice } from "../components";
import { AnswerNotices } from "../components/answer_notices";
import { SessionControls } from "../components/session_controls";
import { SessionRow } from "../components/session_row";
import { TaskRow } from "../components/task_row";
import { WaitingCard, waitingSubject } from "../components/waiting_card";
import type { LiveView } from "../event_stream";
import { formatCount, formatMoney, formatTokens, spellOut } from "../formats";
import { Link } from "../router";

export function NowScreen({ view }: { view: LiveView<NowView> }) {
  return (
    <>
      <ScreenHeader title="Now" />
      <ViewContent view={view}>{(now) => <NowContent now={now} reload={view.reload} />}</ViewContent>
    </>
  );
}

/** Returns whether the server has left out some of what waits. */
function hasMoreWaiting(now: NowView): boolean {
  return now.hasMore;
}

function NowContent({ now, reload }: { now: NowView; reload: () => void }) {
  return (
    <>
      {now.warnings.map((warning) => (
        <WarningNotice key={warning}>
          <p class="wrap">
            <BacktickText text={warning} />
          </p>
        </WarningNotice>
      ))}
      <div class="columns">
        <div class="stack">
          <AnswerNotices waiting={now.waiting.map(waitingSubject)} hasMore={hasMoreWaiting(now)} />
          <WaitingPanel items={now.waiting} hasMore={hasMoreWaiting(now)} reload={reload} />
          <Panel title="At work" count={now.working.length}>
            {now.working.length === 0 ? (
              <EmptyState title="No agent works now." command="windlass run" />
            ) : (
              <ul class="list">
                {now.working.map((session) => (
                  <li key={session.name}>
                    <SessionRow session={session}>
                      <SessionControls session={session} reload={reload} />
                    </SessionRow>
                  </li>
                ))}
              </ul>
            )}
          </Panel>
        </div>
        <div class="stack">
          <TodayPanel today={now.today} />
          <CountsPanel counts={now.counts} />
          <NextPanel now={now} />
        </div>
      </div>
    </>
  );
}

function WaitingPanel({ items, hasMore, reload }: { items: WaitingItem[]; hasMore: boolean; reload: () => void }) {
  if (items.length === 0) {
    return (
      <Panel class="all-clear">
        <h2>
          <ToneShape tone="good" /> Nothing needs you
        </h2>
        <p class="muted">Questions, blocked work and changes to review appear here.</p>
      </Panel>
    );
  }
  const oldest = Math.min(...items.map((item) => item.since).filter((since) => since > 0));
  return (
    <Panel
      title="Needs you"
      count={items.length}
      tone="warning"
      actions={
        Number.isFinite(oldest) && (
          <span class="muted small">
            oldest <RelativeTime at={oldest} />
          </span>
        )
      }
    >
      <ul class="list">
        {items.map((item) => (
          <li key={`${item.kind} ${item.task ?? ""} ${item.session ?? ""}`}>
            <WaitingCard item={item} reload={reload} />
          </li>
        ))}
      </ul>
      {hasMore && (
        <p class="list-end muted">
          and more: <Link to="/tasks">all tasks</Link>
        </p>
      )}
    </Panel>
  );
}

function TodayPanel({ today }: { today: UsageTotals }) {
  const figures = [
    { label: today.turns === 1 ? "turn" : "turns", value: formatCount(today.turns) },
    { label: "tokens in", value: formatTokens(today.inputTokens) },
    { label: "tokens out", value: formatTokens(today.outputTokens) },
  ];
  if (today.costUsd !== null) figures.unshift({ label: "spent", value: formatMoney(today.costUsd) });
  return (
    <Panel title="Today" actions={<Link to="/cost">Cost</Link>}>
      <dl class="figures">
        {figures.map(({ label, value }) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </Panel>
  );
}

function CountsPanel({ counts }: { counts: StateCount[] }) {
  const shown = counts.filter(({ count }) => count > 0);
  return (
    <Panel title="Tasks" actions={<Link to="/tasks">All tasks</Link>}>
      {shown.length === 0 ? (
        <EmptyState title="There are no tasks yet." command={'windlass task add "…"'} />
      ) : (
        <ul class="state-counts">
          {shown.map(({ state, tone, count }) => (
            <li key={state}>
              <Link to={`/tasks?state=${encodeURIComponent(state)}`}>
                <ToneShape tone={tone} />
                <span>{spellOut(state)}</span>
                <strong>{formatCount(count)}</strong>
              </Link>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

function NextPanel({ now }: { now: NowView }) {
  return (
    <Panel title="Next" count={now.next.length}>
      {now.next.length === 0 ? (
        <EmptyState title="No task is ready." command={'windlass task add "…"'} />
      ) : (
        <ul class="list">
          {now.next.map((task) => (
            <li key={task.id}>
              <TaskRow task={task} hidesState />
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}
