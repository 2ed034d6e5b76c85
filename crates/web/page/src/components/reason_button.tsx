// A button that asks for a reason before it acts.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { Button, type ButtonKind } from "./button";
import { Dialog } from "./dialog";
import { TextForm } from "./text_form";

interface ReasonButtonProps {
  children: ComponentChildren;
  /** The name of the button for readers of the screen, where several say the same. */
  label?: string;
  title: string;
  submitLabel: string;
  isRequired: boolean;
  /** What happens then. */
  effect: string;
  kind?: ButtonKind;
  onSubmit: (reason: string) => Promise<unknown>;
}

export function ReasonButton({ children, label, title, submitLabel, isRequired, effect, kind = "plain", onSubmit }: ReasonButtonProps) {
  const [isOpen, setIsOpen] = useState(false);
  const submit = async (reason: string) => {
    await onSubmit(reason);
    setIsOpen(false);
  };
  return (
    <>
      <Button kind={kind} label={label} onClick={() => setIsOpen(true)}>
        {children}
      </Button>
      <Dialog title={title} isOpen={isOpen} onClose={() => setIsOpen(false)}>
        <p>{effect}</p>
        <TextForm
          label={isRequired ? "Reason" : "Reason (optional)"}
          submitLabel={submitLabel}
          kind={kind === "danger" ? "danger" : "primary"}
          isRequired={isRequired}
          takesFocus
          onSubmit={submit}
        />
      </Dialog>
    </>
  );
}
