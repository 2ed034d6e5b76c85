// The comments of a review until they are sent. The browser keeps them, so that a reload loses nothing.

import { effect, signal } from "@preact/signals";
import type { Signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { LineComment } from "../api_types";

/** The version of a file that a line belongs to. */
export type DiffSide = "old" | "new";

/** A line of the diff. */
export interface LineReference {
  path: string;
  line: number;
  side: DiffSide;
}

/** A comment that is not sent yet. The parts that change with each key are signals of their own. */
export interface DraftComment extends LineReference {
  /** The text of the line, to tell whether the line has changed since. */
  quoted: string;
  text: Signal<string>;
  isOpen: Signal<boolean>;
}

interface StoredDraft {
  general: string;
  comments: (LineReference & { quoted: string; text: string })[];
}

/** Returns a name for a line that is unique in a diff. */
export function lineKey({ path, line, side }: LineReference): string {
  return `${side}:${line}:${path}`;
}

/** The review of one change. */
export class ReviewDraft {
  readonly comments = signal<DraftComment[]>([]);
  readonly general = signal("");
  private readonly storageKey: string;

  constructor(storageKey: string) {
    this.storageKey = storageKey;
    const stored = readStoredDraft(storageKey);
    this.general.value = stored.general;
    this.comments.value = stored.comments.map((comment) => ({
      ...comment,
      text: signal(comment.text),
      isOpen: signal(false),
    }));
  }

  /** Writes every change to the browser's storage. Returns the function that ends it. */
  keepStored(): () => void {
    return effect(() => {
      const comments = this.listWrittenComments();
      const draft: StoredDraft = {
        general: this.general.value,
        comments: comments.map(({ path, line, side, quoted, text }) => ({ path, line, side, quoted, text: text.value })),
      };
      writeStoredDraft(this.storageKey, draft.general === "" && comments.length === 0 ? null : draft);
    });
  }

  /** Returns the comments with a text. */
  listWrittenComments(): DraftComment[] {
    return this.comments.value.filter((comment) => comment.text.value.trim() !== "");
  }

  /** Opens the comment of a line, or a new one. */
  openComment(place: LineReference, quoted: string): void {
    const existing = this.comments.peek().find((comment) => lineKey(comment) === lineKey(place));
    if (existing) {
      existing.isOpen.value = true;
      return;
    }
    this.comments.value = [...this.comments.peek(), { ...place, quoted, text: signal(""), isOpen: signal(true) }];
  }

  /** Closes the box of a comment. A comment without a text goes away. */
  closeComment(comment: DraftComment): void {
    comment.isOpen.value = false;
    if (comment.text.peek().trim() === "") {
      this.removeComment(comment);
    }
  }

  removeComment(comment: DraftComment): void {
    this.comments.value = this.comments.peek().filter((other) => other !== comment);
  }

  clear(): void {
    this.comments.value = [];
    this.general.value = "";
  }

  /** Returns the comments as the server takes them. A line number alone means the new file, so others say it. */
  buildLineComments(): LineComment[] {
    return this.listWrittenComments().map(({ path, line, side, text, quoted }) => {
      const place = side === "old" ? `(about the removed line \`${quoted.trim()}\`) ` : "";
      return { path, line, text: place + text.value.trim() };
    });
  }
}

function readStoredDraft(storageKey: string): StoredDraft {
  try {
    const stored = JSON.parse(localStorage.getItem(storageKey) ?? "null") as Partial<StoredDraft> | null;
    return { general: stored?.general ?? "", comments: stored?.comments ?? [] };
  } catch {
    // The storage can be switched off, and another version can have written something else.
    return { general: "", comments: [] };
  }
}

function writeStoredDraft(storageKey: string, draft: StoredDraft | null): void {
  try {
    if (draft) {
      localStorage.setItem(storageKey, JSON.stringify(draft));
    } else {
      localStorage.removeItem(storageKey);
    }
  } catch {
    // Without storage, the draft lives as long as the page.
  }
}

/** Returns the review of a change, which stays the same as long as the screen shows this change. */
export function useReviewDraft(project: string, task: string): ReviewDraft {
  const draft = useMemo(() => new ReviewDraft(`windlass:review:${project}:${task}`), [project, task]);
  useEffect(() => draft.keepStored(), [draft]);
  return draft;
}
