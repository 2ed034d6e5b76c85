// What a person can do to a session at work: say something to its agent, and cancel it.

import { useState } from "preact/hooks";

import { pathSegment, postJson } from "../api_client";
import type { SessionSummary } from "../api_types";
import { mayAnswer, mayManage } from "../viewer";
import { Button } from "./button";
import { Dialog } from "./dialog";
import { ReasonButton } from "./reason_button";
import { TextForm } from "./text_form";

interface SessionControlProps {
  session: SessionSummary;
  reload: () => void;
}

/** The form with which a person speaks to an agent. A text that was not sent is kept for this session. */
export function SayForm({ session, reload, takesFocus }: SessionControlProps & { takesFocus?: boolean }) {
  const say = async (text: string) => {
    await postJson("/api/say", { session: session.name, text });
    reload();
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

export function CancelSessionButton({ session, reload }: SessionControlProps) {
  if (!mayManage() || session.endedAt !== null) return null;
  const cancel = async (reason: string) => {
    await postJson(`/api/sessions/${pathSegment(session.name)}/cancel`, { reason });
    reload();
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

function SayButton({ session, reload }: SessionControlProps) {
  const [isOpen, setIsOpen] = useState(false);
  const finish = () => {
    setIsOpen(false);
    reload();
  };
  return (
    <>
      <Button label={`Say something to ${session.name}`} onClick={() => setIsOpen(true)}>
        Say
      </Button>
      <Dialog title={`Say something to ${session.name}`} isOpen={isOpen} onClose={() => setIsOpen(false)}>
        <SayForm session={session} reload={finish} takesFocus />
      </Dialog>
    </>
  );
}

/** The controls of a session in a list. A person who may only look gets none. */
export function SessionControls({ session, reload }: SessionControlProps) {
  const [saidIn, setSaidIn] = useState<number | null>(null);
  if (!mayAnswer() || session.endedAt !== null) return null;
  const finish = () => {
    setSaidIn(session.iteration);
    reload();
  };
  return (
    <div class="row">
      <SayButton session={session} reload={finish} />
      <CancelSessionButton session={session} reload={reload} />
      <span role="status" class="muted small">
        {saidIn === session.iteration && "Said: the agent reads it with its next prompt."}
      </span>
    </div>
  );
}
