// What a person can do to a session at work: say something to its agent, and cancel it.

import { useState } from "preact/hooks";

import { pathSegment, postJson } from "../api_client";
import type { SessionOutcome, SessionSummary } from "../api_types";
import { mayAnswer, mayManage } from "../viewer";
import { Button } from "./button";
import { Dialog } from "./dialog";
import { BacktickText } from "./notice";
import { ReasonButton } from "./reason_button";
import { TextForm } from "./text_form";

interface SessionControlProps {
  session: SessionSummary;
  reload: () => void;
}

interface SessionCommandProps {
  session: SessionSummary;
  onDone: (outcome: string) => void;
}

/** Returns what came of the last command, until the next iteration or the end, and the function that takes it. */
function useOutcome({ session, reload }: SessionControlProps): [string, (outcome: string) => void] {
  const [last, setLast] = useState({ iteration: -1, outcome: "" });
  const finish = (outcome: string) => {
    setLast({ iteration: session.iteration, outcome });
    reload();
  };
  const isCurrent = session.endedAt === null && last.iteration === session.iteration;
  return [isCurrent ? last.outcome : "", finish];
}

function OutcomeText({ outcome }: { outcome: string }) {
  return (
    <span role="status" class="muted small">
      <BacktickText text={outcome} />
    </span>
  );
}

/** The form with which a person speaks to an agent. A text that was not sent is kept for this session. */
function SayForm({ session, onDone, takesFocus }: SessionCommandProps & { takesFocus?: boolean }) {
  const say = async (text: string) => {
    const report = await postJson<SessionOutcome>("/api/say", { session: session.name, text });
    onDone(report.outcome);
  };
  return (
    <TextForm
      label="The agent reads it with its next prompt."
      submitLabel="Say"
      rows={3}
      draftKey={`say.${session.name}`}
      takesFocus={takesFocus}
      onSubmit={say}
    />
  );
}

/** The form with the outcome below it. */
export function SaySection(props: SessionControlProps) {
  const [outcome, finish] = useOutcome(props);
  return (
    <>
      <SayForm session={props.session} onDone={finish} />
      <OutcomeText outcome={outcome} />
    </>
  );
}

function CancelButton({ session, onDone }: SessionCommandProps) {
  if (!mayManage() || session.endedAt !== null) return null;
  const cancel = async (reason: string) => {
    const path = `/api/sessions/${pathSegment(session.name)}/cancel`;
    const report = await postJson<SessionOutcome>(path, { reason });
    onDone(report.outcome);
  };
  return (
    <ReasonButton
      kind="danger"
      label={`Cancel ${session.name}`}
      title={`Cancel ${session.name}`}
      submitLabel="Cancel the session"
      effect="The agent is stopped. Its work stays as it is, and the next run continues the task."
      isRequired={false}
      onSubmit={cancel}
    >
      Cancel
    </ReasonButton>
  );
}

/** The button that cancels a session, with the outcome beside it. */
export function CancelSessionButton(props: SessionControlProps) {
  const [outcome, finish] = useOutcome(props);
  return (
    <>
      <OutcomeText outcome={outcome} />
      <CancelButton session={props.session} onDone={finish} />
    </>
  );
}

function SayButton({ session, onDone }: SessionCommandProps) {
  const [isOpen, setIsOpen] = useState(false);
  const finish = (outcome: string) => {
    setIsOpen(false);
    onDone(outcome);
  };
  return (
    <>
      <Button label={`Say something to ${session.name}`} onClick={() => setIsOpen(true)}>
        Say
      </Button>
      <Dialog title={`Say something to ${session.name}`} isOpen={isOpen} onClose={() => setIsOpen(false)}>
        <SayForm session={session} onDone={finish} takesFocus />
      </Dialog>
    </>
  );
}

/** The controls of a session in a list. A person who may only look gets none. */
export function SessionControls(props: SessionControlProps) {
  const [outcome, finish] = useOutcome(props);
  const { session } = props;
  if (!mayAnswer() || session.endedAt !== null) return null;
  return (
    <div class="row">
      <SayButton session={session} onDone={finish} />
      <CancelButton session={session} onDone={finish} />
      <OutcomeText outcome={outcome} />
    </div>
  );
}
