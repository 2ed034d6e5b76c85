// Something that waits for a person, with its evidence and its answers.

import type { AnswerChoice, WaitingItem, WaitingKind } from "../api_types";
import { Link } from "../router";
import { mayAnswer } from "../viewer";
import { AgentMessage } from "./agent_message";
import { AnswerForm } from "./answer_form";
import { sendAnswer } from "./answer_notices";
import { SessionLink, TaskLink } from "./panel";
import { LongText, OutputBlock } from "./text";
import { RelativeTime } from "./time";
import { Badge } from "./tone";
import { VisibleText } from "./visible_text";

const KIND_TEXTS: Record<WaitingKind, string> = {
  gate_question: "question",
  blocked_task: "blocked",
  failed_task: "failed",
  open_change: "change",
};

/** The name that the API knows the question by: a session that asks, else its task. */
export function waitingSubject(item: WaitingItem): string {
  return item.session ?? item.task ?? "";
}

function waitingPath(item: WaitingItem): string {
  if (item.kind === "open_change" && item.task !== null) return `/changes/${encodeURIComponent(item.task)}`;
  if (item.session !== null) return `/sessions/${encodeURIComponent(item.session)}`;
  return `/tasks/${encodeURIComponent(item.task ?? "")}`;
}

export function WaitingCard({ item, reload }: { item: WaitingItem; reload: () => void }) {
  const subject = waitingSubject(item);
  const answer = async (chosen: AnswerChoice, text: string) => {
    await sendAnswer(subject, chosen, text);
    reload();
  };
  return (
    <article class="waiting-card">
      <div class="list-row-top">
        <WaitingBadge item={item} />
        {item.task !== null && <TaskLink id={item.task} />}
        {item.session !== null && <SessionLink name={item.session} />}
        {item.since > 0 && (
          <span class="muted small push-end">
            <RelativeTime at={item.since} />
          </span>
        )}
      </div>
      <h3 class="list-row-title">
        <Link to={waitingPath(item)}>
          <VisibleText text={item.title} />
        </Link>
      </h3>
      <WaitingEvidence item={item} maxLines={6} />
      {item.kind === "open_change" && item.task !== null && (
        <div>
          <Link to={waitingPath(item)} class="button button-primary">
            Review the change
          </Link>
        </div>
      )}
      {mayAnswer() && <AnswerForm subject={subject} answers={item.answers} onAnswer={answer} />}
    </article>
  );
}

export function WaitingBadge({ item }: { item: WaitingItem }) {
  return <Badge tone={item.tone}>{KIND_TEXTS[item.kind]}</Badge>;
}

/** The reason of a question, the last message of the agent, and the output of the hooks that block. */
export function WaitingEvidence({ item, maxLines }: { item: WaitingItem; maxLines: number }) {
  return (
    <>
      {item.reason !== "" && <LongText text={item.reason} />}
      <AgentMessage message={item.message} />
      <OutputBlock lines={item.evidence} label={`Evidence about ${waitingSubject(item)}`} maxLines={maxLines} />
    </>
  );
}
