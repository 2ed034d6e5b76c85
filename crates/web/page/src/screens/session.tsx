// One session: what the agent does now, what it asks, and its history.

import { pathSegment } from "../api_client";
import type { AnswerChoice, SessionSummary, SessionTimeline, TimelineItem } from "../api_types";
import {
  AnswerForm,
  BacktickText,
  Badge,
  Duration,
  EmptyState,
  LongText,
  OutputBlock,
  Panel,
  RelativeTime,
  ScreenHeader,
  TaskLink,
  ViewContent,
} from "../components";
import { AgentMessage } from "../components/agent_message";
import { AnswerNotices, sendAnswer } from "../components/answer_notices";
import { CancelSessionButton, SaySection } from "../components/session_controls";
import { DesertedNotice, describeUsage, IterationMeter } from "../components/session_row";
import { VisibleText } from "../components/visible_text";
import { concernsSession } from "../concerns";
import { useLiveView, useProcessWatch } from "../event_stream";
import { Link } from "../router";
import { mayAnswer } from "../viewer";
import { LiveOutput } from "./live_output";
import { Timeline } from "./timeline";

export function SessionScreen({ name }: { name: string }) {
  const view = useLiveView<SessionTimeline>(`/api/sessions/${pathSegment(name)}`, concernsSession(name));
  useProcessWatch(view.data?.session.isRunning ?? false, view.reload);
  if (view.data === null) {
    return (
      <>
        <ScreenHeader title={name} />
        <ViewContent view={view}>{() => null}</ViewContent>
      </>
    );
  }
  return <ViewContent view={view}>{(timeline) => <SessionContent timeline={timeline} reload={view.reload} />}</ViewContent>;
}

function SessionContent({ timeline, reload }: { timeline: SessionTimeline; reload: () => void }) {
  const { session, groups } = timeline;
  const isOver = session.endedAt !== null;
  const isTurnOpen = groups.some((group) => group.items.some((item) => item.kind === "turn" && item.isPending));
  const answer = async (chosen: AnswerChoice, text: string) => {
    await sendAnswer(session.name, chosen, text);
    reload();
  };
  return (
    <>
      <ScreenHeader title={session.goal || session.name} documentTitle={session.name} note={<SessionNote session={session} />}>
        <SessionActions session={session} reload={reload} />
      </ScreenHeader>
      <SessionFigures session={session} />
      <DesertedNotice session={session} />
      <AnswerNotices waiting={timeline.answers.length > 0 ? [session.name] : []} subject={session.name} />
      <div class="columns session-columns">
        {timeline.answers.length > 0 && (
          <Panel title="The session asks" tone="warning" class="session-question">
            <GateEvidence timeline={timeline} />
            <AgentMessage message={timeline.question?.message ?? null} />
            {mayAnswer() ? (
              <AnswerForm subject={session.name} answers={timeline.answers} onAnswer={answer} />
            ) : (
              <p class="muted">Your role may look, not answer.</p>
            )}
          </Panel>
        )}
        {(!isOver || timeline.pendingFeedback.length > 0) && (
          <div class="stack side-column">
            {session.isRunning && <LiveOutput name={session.name} isTurnOpen={isTurnOpen} />}
            {!isOver && mayAnswer() && (
              <Panel title="Say something">
                <SaySection session={session} reload={reload} />
              </Panel>
            )}
            <PendingFeedback texts={timeline.pendingFeedback} />
          </div>
        )}
        <Panel title="Timeline" class="session-timeline">
          {groups.length === 0 ? (
            <EmptyState title="Nothing has happened yet." />
          ) : (
            <Timeline groups={groups} isCut={timeline.isCut} session={session.name} isOpen={session.isRunning} />
          )}
        </Panel>
      </div>
    </>
  );
}

function PendingFeedback({ texts }: { texts: string[] }) {
  if (texts.length === 0) return null;
  return (
    <Panel title="Feedback for the next prompt" count={texts.length}>
      <ul class="note-list">
        {texts.map((text, index) => (
          <li key={index}>
            <LongText text={text} maxLines={6} />
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function SessionNote({ session }: { session: SessionSummary }) {
  return (
    <>
      <span class="mono">{session.name}</span>
      <Badge tone={session.tone}>{session.state}</Badge>
      {session.task !== null && <TaskLink id={session.task} />}
      <span>{session.agent}</span>
    </>
  );
}

function SessionFigures({ session }: { session: SessionSummary }) {
  return (
    <div class="session-figures">
      <IterationMeter session={session} />
      {session.maxSendBacks > 0 && (
        <span>
          sent back {session.sentBack} of {session.maxSendBacks}
        </span>
      )}
      <span>
        {session.endedAt === null ? "started " : "took "}
        {session.endedAt === null ? <RelativeTime at={session.startedAt} /> : <Duration from={session.startedAt} to={session.endedAt} />}
      </span>
      {session.endedAt !== null && (
        <span>
          ended <RelativeTime at={session.endedAt} />
        </span>
      )}
      <span>{describeUsage(session)}</span>
      {session.waitsFor !== null && <span>waits for <BacktickText text={session.waitsFor} /></span>}
    </div>
  );
}

function SessionActions({ session, reload }: { session: SessionSummary; reload: () => void }) {
  return (
    <>
      <Link to={`/why/${pathSegment(session.name)}`} class="button">
        Why
      </Link>
      <CancelSessionButton session={session} reload={reload} />
    </>
  );
}

/** The last decision of the gate, which is what the session asks about, and the output of each hook that blocks. */
function GateEvidence({ timeline }: { timeline: SessionTimeline }) {
  const items = timeline.groups.flatMap((group) => group.items);
  const gate = items.findLast((item) => item.kind === "gate");
  if (gate === undefined) return null;
  const hooks = items.filter((item) => item.kind === "hook" && gate.relatedSeqs.includes(item.seq));
  return (
    <div class="block-reason">
      <LongText text={gate.title} />
      {gate.details.map((detail, index) => (
        <p key={index} class="small wrap">
          <BacktickText text={detail} />
        </p>
      ))}
      {hooks.map((hook) => (
        <HookEvidence key={hook.seq} hook={hook} isAlone={hooks.length === 1} />
      ))}
    </div>
  );
}

function HookEvidence({ hook, isAlone }: { hook: TimelineItem; isAlone: boolean }) {
  return (
    <>
      {!isAlone && (
        <p class="small wrap">
          <VisibleText text={hook.title} />
        </p>
      )}
      <OutputBlock lines={hook.evidence} label={`Output of a hook that blocks: ${hook.title.slice(0, 100)}`} maxLines={10} />
    </>
  );
}
