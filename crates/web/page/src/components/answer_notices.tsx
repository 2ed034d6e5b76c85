// What came of questions that no longer wait: the outcome of the person's own answer, or the answer of another person who was faster.
// A text that was typed meanwhile stays on the screen.

import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";

import { getJson, pathSegment, postJson } from "../api_client";
import type { AnswerChoice, LogEntry, LogPage, SessionOutcome } from "../api_types";
import { ANSWER_DRAFTS } from "./answer_form";
import { Button } from "./button";
import { BacktickText, WarningNotice } from "./notice";
import { LongText } from "./text";
import { discardDraft, type ListedDraft, listDrafts } from "./text_form";
import { ToneShape } from "./tone";
import { VisibleText } from "./visible_text";

/** The outcomes of the answers that this page has sent, by the names of the questions. */
const outcomes = signal<ReadonlyMap<string, string>>(new Map());

/** The questions whose answers this page is sending. The answer is in the log before the hooks about it have run. */
const sending = signal<ReadonlySet<string>>(new Set());

/** Sends an answer, and keeps its outcome for the notices. */
export async function sendAnswer(subject: string, answer: AnswerChoice, text: string): Promise<void> {
  sending.value = new Set(sending.peek()).add(subject);
  try {
    const { outcome } = await postJson<SessionOutcome>("/api/answer", { subject, answer, text });
    // The form forgets its text too, but only after the next look at the drafts.
    discardDraft(ANSWER_DRAFTS + subject);
    outcomes.value = new Map(outcomes.peek()).set(subject, outcome);
  } finally {
    sending.value = new Set([...sending.peek()].filter((other) => other !== subject));
  }
}

function forgetOutcomes(subjects: string[]): void {
  if (!subjects.some((subject) => outcomes.peek().has(subject))) return;
  outcomes.value = new Map([...outcomes.peek()].filter(([subject]) => !subjects.includes(subject)));
}

interface AnswerNoticesProps {
  /** The questions that wait for an answer. */
  waiting: string[];
  /** Whether more questions wait than these: then a text may belong to one of the others. */
  hasMore?: boolean;
  /** The only question of the screen; without one, the notices are about all. */
  subject?: string;
}

export function AnswerNotices({ waiting, hasMore = false, subject }: AnswerNoticesProps) {
  const [, setDiscarded] = useState(0);
  const element = useRef<HTMLDivElement>(null);
  // A question that is asked again has a new answer to come.
  useEffect(() => forgetOutcomes(waiting), [waiting.join(" ")]);
  const isShown = (name: string) => !waiting.includes(name) && (subject === undefined || name === subject);
  const given = [...outcomes.value].filter(([name]) => isShown(name));
  const unsent = hasMore ? [] : listDrafts(ANSWER_DRAFTS);
  const drafts = unsent.filter(({ name }) => isShown(name) && !sending.value.has(name));
  const names = [...given.map(([name]) => name), ...drafts.map(({ name }) => name)].join(" ");
  useEffect(() => {
    // The form with the answer has just left its place.
    if (names !== "") element.current?.scrollIntoView({ block: "nearest" });
  }, [names]);
  const discard = (name: string) => {
    discardDraft(ANSWER_DRAFTS + name);
    setDiscarded((count) => count + 1);
  };
  return (
    <div ref={element} class="stack answer-notices" role="status">
      {given.map(([name, outcome]) => (
        <div key={name} class="notice notice-good">
          <ToneShape tone="good" />
          <div class="notice-text">
            <p class="wrap">
              Your answer was sent: <BacktickText text={outcome} />
            </p>
          </div>
          <Button kind="quiet" class="small-button" label={`Close the outcome of ${name}`} onClick={() => forgetOutcomes([name])}>
            Close
          </Button>
        </div>
      ))}
      {drafts.map((draft) => (
        <LateAnswer key={draft.name} draft={draft} onDiscard={() => discard(draft.name)} />
      ))}
    </div>
  );
}

/** Returns the last answer to a question after a position, from the log. */
function useLastAnswer(subject: string, after: number): LogEntry | null {
  const [answer, setAnswer] = useState<LogEntry | null>(null);
  useEffect(() => {
    const kind = /^T\d+$/.test(subject) ? "task" : "session";
    const path = `/api/log?type=task_answered,gate_answered&limit=1&${kind}=${pathSegment(subject)}`;
    // Without the log, the notice does not name the person.
    getJson<LogPage>(path).then((page) => setAnswer(page.entries.at(-1) ?? null), () => {});
  }, [subject]);
  return answer !== null && answer.seq > after ? answer : null;
}

/** A text for a question that another person has answered meanwhile, or that has ended without an answer. */
function LateAnswer({ draft, onDiscard }: { draft: ListedDraft; onDiscard: () => void }) {
  const answer = useLastAnswer(draft.name, draft.startedAfter);
  return (
    <WarningNotice>
      <p class="notice-title">
        {draft.name} waits for no answer any more
        {answer !== null && (
          <>
            : <VisibleText text={answer.triggeredBy} /> answered <VisibleText text={answer.summary} />
          </>
        )}
      </p>
      <p>Your text was not sent:</p>
      <LongText text={draft.text} />
      <Button kind="quiet" class="small-button" onClick={onDiscard}>
        Discard the text
      </Button>
    </WarningNotice>
  );
}
