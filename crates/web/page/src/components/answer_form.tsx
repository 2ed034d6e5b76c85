// The answers to a question, each with what it does. The person confirms an answer and can add a text to it.

import { useState } from "preact/hooks";

import { ANSWER_CHOICE_MEANINGS, type AnswerChoice } from "../api_types";
import { Button, type ButtonKind } from "./button";
import { TextForm } from "./text_form";

interface AnswerText {
  label: string;
  field: string;
  kind: ButtonKind;
}

const ANSWER_TEXTS: Record<AnswerChoice, AnswerText> = {
  continue: {
    label: "Continue",
    field: "Text for the agent (optional)",
    kind: "primary",
  },
  retry: {
    label: "Retry",
    field: "Text for the agent (optional)",
    kind: "plain",
  },
  "ignore-hook": {
    label: "Ignore the hook",
    field: "Reason (optional)",
    kind: "plain",
  },
  approve: {
    label: "Approve",
    field: "Reason (optional)",
    kind: "plain",
  },
  reject: {
    label: "Reject",
    field: "Reason (optional)",
    kind: "danger",
  },
};

/** Texts of answers are kept under this prefix and the name of their question. */
export const ANSWER_DRAFTS = "answer.";

interface AnswerFormProps {
  /** What the answers are about, for readers of the screen and for the kept text. */
  subject: string;
  answers: AnswerChoice[];
  onAnswer: (answer: AnswerChoice, text: string) => Promise<unknown>;
}

export function AnswerForm({ subject, answers, onAnswer }: AnswerFormProps) {
  const [chosen, setChosen] = useState<AnswerChoice | null>(null);
  const current = chosen !== null && answers.includes(chosen) ? chosen : null;
  if (answers.length === 0) return null;
  const text = current === null ? null : ANSWER_TEXTS[current];
  return (
    <div class="answer-form">
      <div class="answer-buttons" role="group" aria-label={`Answers about ${subject}`}>
        {answers.map((answer) => {
          const { label, kind } = ANSWER_TEXTS[answer];
          return (
            <Button
              key={answer}
              kind={kind === "primary" && current !== null && current !== answer ? "plain" : kind}
              isPressed={current === answer}
              onClick={() => setChosen(current === answer ? null : answer)}
            >
              {label}
            </Button>
          );
        })}
      </div>
      {current !== null && text !== null && (
        <div class="answer-details">
          <p>{ANSWER_CHOICE_MEANINGS[current]}</p>
          <TextForm
            key={current}
            label={text.field}
            submitLabel={text.label}
            kind={text.kind === "danger" ? "danger" : "primary"}
            isRequired={false}
            rows={2}
            takesFocus
            draftKey={ANSWER_DRAFTS + subject}
            onSubmit={async (given) => {
              await onAnswer(current, given);
              setChosen(null);
            }}
            onCancel={() => setChosen(null)}
          />
        </div>
      )}
    </div>
  );
}
