// The answers to a question, each with what it does. The person confirms an answer and can add a text to it.

import { useState } from "preact/hooks";

import { Button, type ButtonKind } from "./button";
import { TextForm } from "./text_form";

interface AnswerText {
  label: string;
  effect: string;
  field: string;
  kind: ButtonKind;
}

const ANSWER_TEXTS: Record<string, AnswerText> = {
  continue: {
    label: "Continue",
    effect: "The agent goes on, and reads your text first.",
    field: "Text for the agent (optional)",
    kind: "primary",
  },
  retry: {
    label: "Retry",
    effect: "The work goes on, and all counts start again.",
    field: "Text for the agent (optional)",
    kind: "plain",
  },
  "ignore-hook": {
    label: "Ignore the hook",
    effect: "The hooks that block are ignored until the agent next says that it is done.",
    field: "Reason (optional)",
    kind: "plain",
  },
  approve: {
    label: "Approve",
    effect: "The task is completed, without its checks.",
    field: "Reason (optional)",
    kind: "plain",
  },
  reject: {
    label: "Reject",
    effect: "The work ends, and the task has failed.",
    field: "Reason (optional)",
    kind: "danger",
  },
};

function describeAnswer(answer: string): AnswerText {
  return ANSWER_TEXTS[answer] ?? { label: answer, effect: "", field: "Text (optional)", kind: "plain" };
}

interface AnswerFormProps {
  /** What the answers are about, for readers of the screen and for the kept text. */
  subject: string;
  answers: string[];
  onAnswer: (answer: string, text: string) => Promise<unknown>;
}

export function AnswerForm({ subject, answers, onAnswer }: AnswerFormProps) {
  const [chosen, setChosen] = useState<string | null>(null);
  const current = chosen !== null && answers.includes(chosen) ? chosen : null;
  if (answers.length === 0) return null;
  const text = current === null ? null : describeAnswer(current);
  return (
    <div class="answer-form">
      <div class="answer-buttons" role="group" aria-label={`Answers about ${subject}`}>
        {answers.map((answer) => {
          const { label, kind } = describeAnswer(answer);
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
          <p>{text.effect}</p>
          <TextForm
            key={current}
            label={text.field}
            submitLabel={text.label}
            kind={text.kind === "danger" ? "danger" : "primary"}
            isRequired={false}
            rows={2}
            takesFocus
            draftKey={`answer.${subject}`}
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
