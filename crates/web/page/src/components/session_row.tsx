// A session in a list.

import type { ComponentChildren } from "preact";

import type { SessionSummary } from "../api_types";
import { formatMoney, formatTokens } from "../formats";
import { Link } from "../router";
import { BacktickText, CommandLine, WarningNotice } from "./notice";
import { SessionLink, TaskLink } from "./panel";
import { Duration, RelativeTime } from "./time";
import { Badge } from "./tone";
import { VisibleText } from "./visible_text";

export function sessionPath(name: string): string {
  return `/sessions/${encodeURIComponent(name)}`;
}

/** Tokens and money of a session, in a few words. */
export function describeUsage({ usage }: SessionSummary): string {
  const tokens = usage.inputTokens + usage.outputTokens;
  if (tokens === 0 && usage.costUsd === null) return "no usage reported";
  const money = usage.costUsd === null ? "" : `, ${formatMoney(usage.costUsd)}`;
  return `${formatTokens(tokens)} tokens${money}`;
}

interface SessionRowProps {
  session: SessionSummary;
  /** Buttons under the row. */
  children?: ComponentChildren;
}

export function SessionRow({ session, children }: SessionRowProps) {
  return (
    <article class="list-row">
      <div class="list-row-top">
        <Badge tone={session.tone}>{session.state}</Badge>
        {session.task !== null && <TaskLink id={session.task} />}
        <span class="muted small">{session.agent}</span>
        <span class="muted small push-end">
          {session.endedAt === null ? (
            <>
              for <Duration from={session.startedAt} to={null} />
            </>
          ) : (
            <RelativeTime at={session.endedAt} />
          )}
        </span>
      </div>
      <p class="list-row-title">
        <Link to={sessionPath(session.name)}>
          <VisibleText text={session.goal || session.name} />
        </Link>
      </p>
      {session.waitsFor !== null && <p class="small">Waits for <BacktickText text={session.waitsFor} /></p>}
      <DesertedNotice session={session} />
      <div class="list-row-meta">
        <IterationMeter session={session} />
        {session.sentBack > 0 && (
          <span>
            sent back {session.sentBack} of {session.maxSendBacks}
          </span>
        )}
        <span>{describeUsage(session)}</span>
        <SessionLink name={session.name} />
      </div>
      {children}
    </article>
  );
}

/** Says that no process runs a session, with the command that goes on. */
export function DesertedNotice({ session }: { session: SessionSummary }) {
  if (session.resumeCommand === null) return null;
  return (
    <WarningNotice>
      <p>{session.resumeNote}:</p>
      <CommandLine command={session.resumeCommand} />
    </WarningNotice>
  );
}

/** The iteration of a session, and how many are left. */
export function IterationMeter({ session }: { session: SessionSummary }) {
  const { iteration, maxIterations } = session;
  const share = maxIterations > 0 ? Math.min(1, iteration / maxIterations) : 0;
  return (
    <span class="meter">
      <span class="meter-track" aria-hidden="true">
        <span class="meter-fill" style={{ width: `${share * 100}%` }} />
      </span>
      iteration {iteration}
      {maxIterations > 0 && ` of ${maxIterations}`}
    </span>
  );
}
