// One question, opened with a link that needs no login. It is made for a phone.

import { useEffect, useState } from "preact/hooks";

import { type ApiError, getJson, postJson, toApiError } from "../api_client";
import type { AnswerChoice, QuestionView, SessionOutcome } from "../api_types";
import { AnswerForm, BacktickText, ErrorNotice, Logo, Panel, RelativeTime, Spinner, ToneShape } from "../components";
import { VisibleText } from "../components/visible_text";
import { WaitingBadge, WaitingEvidence, waitingSubject } from "../components/waiting_card";

export function QuestionScreen({ token }: { token: string }) {
  const [item, setItem] = useState<QuestionView | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [given, setGiven] = useState<{ answer: AnswerChoice; outcome: string } | null>(null);
  const path = `/api/questions/${encodeURIComponent(token)}`;
  const load = async () => {
    setError(null);
    try {
      setItem(await getJson<QuestionView>(path));
    } catch (thrown) {
      setError(toApiError(thrown));
    }
  };
  useEffect(() => {
    document.title = "A question · Windlass";
    void load();
  }, [path]);
  const answer = async (chosen: AnswerChoice, text: string) => {
    const { outcome } = await postJson<SessionOutcome>(path, { answer: chosen, text });
    setGiven({ answer: chosen, outcome });
  };
  return (
    <main class="lone-page">
      <div class="lone-brand">
        <Logo />
        <h1>Windlass asks</h1>
      </div>
      <ErrorNotice error={error} onRetry={error?.status === 0 ? () => void load() : undefined} />
      {error?.status === 404 && <p class="muted">There is nothing left to do here. You can close this page.</p>}
      {item === null && error === null && <Spinner />}
      {given !== null && (
        <Panel class="all-clear">
          <h2 role="status">
            <ToneShape tone="good" /> Your answer was sent: {given.answer}
          </h2>
          <p class="wrap">
            <BacktickText text={given.outcome} />
          </p>
          <p class="muted">This link is used. You can close this page.</p>
        </Panel>
      )}
      {item !== null && given === null && (
        <Panel>
          <div class="waiting-card">
            <div class="list-row-top">
              <WaitingBadge item={item} />
              <span class="small">
                <VisibleText text={item.project} />
              </span>
              <span class="mono small">{waitingSubject(item)}</span>
              {item.since > 0 && (
                <span class="muted small push-end">
                  <RelativeTime at={item.since} />
                </span>
              )}
            </div>
            <h2 class="wrap">
              <VisibleText text={item.title} />
            </h2>
            <WaitingEvidence item={item} maxLines={20} />
            <AnswerForm subject={waitingSubject(item)} answers={item.answers} onAnswer={answer} />
          </div>
        </Panel>
      )}
    </main>
  );
}
