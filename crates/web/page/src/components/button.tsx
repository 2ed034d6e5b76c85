// Buttons. One that waits for the server says so and takes no second press.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { type ApiError, toApiError } from "../api_client";
import { Dialog } from "./dialog";
import { ErrorNotice } from "./notice";

export type ButtonKind = "primary" | "plain" | "danger" | "quiet";

interface ButtonProps {
  children: ComponentChildren;
  kind?: ButtonKind;
  type?: "button" | "submit";
  isBusy?: boolean;
  disabled?: boolean;
  isPressed?: boolean;
  isExpanded?: boolean;
  controls?: string;
  label?: string;
  title?: string;
  class?: string;
  onClick?: (event: MouseEvent) => void;
}

export function Button({ children, kind = "plain", type = "button", isBusy = false, ...rest }: ButtonProps) {
  const { disabled, isPressed, isExpanded, controls, label, title, onClick } = rest;
  return (
    <button
      type={type}
      class={`button button-${kind} ${rest.class ?? ""}`}
      disabled={disabled}
      aria-disabled={isBusy || undefined}
      aria-busy={isBusy || undefined}
      aria-pressed={isPressed}
      aria-expanded={isExpanded}
      aria-controls={controls}
      aria-label={label}
      title={title}
      onClick={isBusy ? (event) => event.preventDefault() : onClick}
    >
      {isBusy && <span class="button-spinner" aria-hidden="true" />}
      {children}
    </button>
  );
}

interface ConfirmButtonProps {
  children: ComponentChildren;
  /** The name of the button for readers of the screen, where several say the same. */
  label?: string;
  question: string;
  confirmLabel: string;
  kind?: ButtonKind;
  onConfirm: () => Promise<unknown>;
  /** What the person should know before the answer. */
  details?: ComponentChildren;
}

/** A button that asks before it acts. An error stays in the dialog. */
export function ConfirmButton({ children, label, question, confirmLabel, kind = "plain", onConfirm, details }: ConfirmButtonProps) {
  const [isOpen, setIsOpen] = useState(false);
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const close = () => {
    setIsOpen(false);
    setError(null);
  };
  const confirm = async () => {
    setIsBusy(true);
    setError(null);
    try {
      await onConfirm();
      close();
    } catch (thrown) {
      // A person who has hidden the dialog sees why it failed.
      setError(toApiError(thrown));
      setIsOpen(true);
    }
    setIsBusy(false);
  };
  return (
    <>
      <Button kind={kind} label={label} isBusy={isBusy} onClick={() => setIsOpen(true)}>
        {children}
      </Button>
      <Dialog title={question} isOpen={isOpen} onClose={close}>
        {details}
        <ErrorNotice error={error} />
        <div class="row dialog-actions">
          <Button kind={kind === "danger" ? "danger" : "primary"} isBusy={isBusy} onClick={confirm}>
            {confirmLabel}
          </Button>
          <Button onClick={close}>{isBusy ? "Hide, it goes on" : "Keep as it is"}</Button>
        </div>
      </Dialog>
    </>
  );
}
