// Text with its invisible characters made visible: they can make code look different from what a compiler reads.

import type { ComponentChildren, JSX } from "preact";

/** Control characters, zero-width characters, and characters that change the direction of text. */
const INVISIBLE_CHARACTERS =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/** Shows a text and names each invisible character by its code point. */
export function VisibleText({ text }: { text: string }): JSX.Element {
  const parts: ComponentChildren[] = [];
  let end = 0;
  for (const found of text.matchAll(INVISIBLE_CHARACTERS)) {
    const name = `U+${found[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
    parts.push(
      text.slice(end, found.index),
      <span class="invisible-character" title="an invisible character">
        {name}
      </span>,
    );
    end = found.index + 1;
  }
  return <>{end === 0 ? text : [...parts, text.slice(end)]}</>;
}
