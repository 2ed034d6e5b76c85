// A modal dialog. The browser keeps the focus inside and closes it with Esc.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

import { Icon } from "./icons";

interface DialogProps {
  title: string;
  isOpen: boolean;
  onClose: () => void;
  children: ComponentChildren;
  class?: string;
}

export function Dialog({ title, isOpen, onClose, children, ...rest }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const headingId = useId();
  useEffect(() => {
    const dialog = element.current;
    if (dialog === null) return;
    if (isOpen && !dialog.open) {
      dialog.showModal();
      // The browser focuses the button that closes the dialog; a person who opened a form wants to type.
      dialog.querySelector<HTMLElement>("textarea, input")?.focus();
    }
    if (!isOpen && dialog.open) dialog.close();
  }, [isOpen]);
  const closeOutside = (event: MouseEvent) => {
    // A click on the backdrop has the dialog itself as its target.
    if (event.target === element.current) onClose();
  };
  return (
    <dialog ref={element} class={`dialog ${rest.class ?? ""}`} aria-labelledby={headingId} onClose={() => isOpen && onClose()} onMouseDown={closeOutside}>
      {/* The closed element stays, because only closing it gives the focus back. */}
      {isOpen && (
        <div class="dialog-content">
          <header class="dialog-header">
            <h2 id={headingId}>{title}</h2>
            <button type="button" class="button button-quiet icon-button" aria-label="Close" onClick={onClose}>
              <Icon name="close" />
            </button>
          </header>
          {children}
        </div>
      )}
    </dialog>
  );
}
