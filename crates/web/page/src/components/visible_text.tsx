// Text with its invisible characters made visible: they can make code look different from what a compiler reads.

import type { ComponentChildren, JSX } from "preact";

/** Control characters, zero-width characters, and characters that change the direction of text. */
const INVISIBLE_CHARACTERS =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/** The same, and the characters that no name has on its one line. */
const INVISIBLE_IN_NAMES = new RegExp(`${INVISIBLE_CHARACTERS.source}|[\\t\\n]`, "g");

function nameCharacter(character: string): string {
  return `U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}

/** Writes each invisible character of a text as its code point, for a title or a label. */
export function spellInvisible(text: string): string {
  return text.replace(INVISIBLE_CHARACTERS, (character) => `[${nameCharacter(character)}]`);
}

/** Shows a text and names each invisible character by its code point. */
export function VisibleText({ text }: { text: string }): JSX.Element {
  return markCharacters(text, INVISIBLE_CHARACTERS);
}

/** Shows the name of a file, in which a line break or a tab is an invisible character, too. */
export function VisibleName({ text }: { text: string }): JSX.Element {
  return markCharacters(text, INVISIBLE_IN_NAMES);
}

function markCharacters(text: string, characters: RegExp): JSX.Element {
  const parts: ComponentChildren[] = [];
  let end = 0;
  for (const found of text.matchAll(characters)) {
    parts.push(
      text.slice(end, found.index),
      <span class="invisible-character" title="an invisible character">
        {nameCharacter(found[0])}
      </span>,
    );
    end = found.index + 1;
  }
  return <>{end === 0 ? text : [...parts, text.slice(end)]}</>;
}
