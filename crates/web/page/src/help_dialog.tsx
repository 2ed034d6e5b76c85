// The keys of the page, and the commands that do more than it.

import { CommandLine, Dialog } from "./components";
import { SCREEN_KEYS } from "./shortcuts";

export function HelpDialog({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  return (
    <Dialog title="Help" isOpen={isOpen} onClose={onClose}>
      <dl class="help-keys">
        {SCREEN_KEYS.map(({ key, name }) => (
          <>
            <dt>
              <kbd>g</kbd> <kbd>{key}</kbd>
            </dt>
            <dd>Open {name}</dd>
          </>
        ))}
        <dt>
          <kbd>/</kbd>
        </dt>
        <dd>Go to the filter of the screen</dd>
        <dt>
          <kbd>Ctrl</kbd> <kbd>Enter</kbd>
        </dt>
        <dd>Send the text that you write</dd>
        <dt>
          <kbd>Esc</kbd>
        </dt>
        <dd>Close a dialog, leave a field</dd>
        <dt>
          <kbd>?</kbd>
        </dt>
        <dd>Open this help</dd>
      </dl>
      <p>Everything on this page is also a command. A terminal does more, such as trusting a configuration:</p>
      <CommandLine command="windlass help" />
    </Dialog>
  );
}
