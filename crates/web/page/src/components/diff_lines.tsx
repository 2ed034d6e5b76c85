// The lines of one file in a diff, with comments between them.

import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { DiffHunk, DiffLine, FileDiff } from "../api_types";
import { Button } from "./index";
import { lineKey } from "./review_draft";
import type { DiffSide, DraftComment, LineReference, ReviewDraft } from "./review_draft";
import { VisibleText } from "./visible_text";

/** The lines that are shown at first, and that each click adds. */
const FIRST_LINES = 400;
const MORE_LINES = 1000;
/** The characters of a line that are shown before the reader asks for all. */
const SHORT_LINE_LENGTH = 500;
/** The lines of a hunk that are drawn together: a comment makes only its own block be drawn again. */
const LINES_PER_BLOCK = 100;

const MARKERS = { context: " ", added: "+", removed: "−" } as const;

interface DiffTableProps {
  file: FileDiff;
  /** Absent if the viewer may not comment. */
  draft: ReviewDraft | null;
}

/** Returns the place of a line that a comment names. */
export function findLineReference(path: string, line: DiffLine): LineReference {
  return line.kind === "removed"
    ? { path, line: line.oldLine ?? 0, side: "old" }
    : { path, line: line.newLine ?? 0, side: "new" };
}

/** A table of the changed lines. The arrow keys move between lines, and Enter comments on one. */
export function DiffTable({ file, draft }: DiffTableProps): JSX.Element {
  const [limit, setLimit] = useState(FIRST_LINES);
  const comments = draft?.comments.value.filter((comment) => comment.path === file.path) ?? [];
  const blocks = useMemo(() => splitIntoBlocks(file.hunks, limit), [file.hunks, limit]);
  const total = file.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);
  return (
    <>
      <table class="diff-table" aria-label={`Changed lines of ${file.path}`} onKeyDown={moveBetweenLines}>
        <colgroup>
          <col class="number-column" />
          <col class="marker-column" />
          <col />
        </colgroup>
        <thead class="visually-hidden">
          <tr>
            <th scope="col">Old and new line</th>
            <th scope="col">Change</th>
            <th scope="col">Text</th>
          </tr>
        </thead>
        {blocks.map((block, index) => (
          <DiffBlock key={index} path={file.path} block={block} isFirst={index === 0} comments={comments} draft={draft} />
        ))}
      </table>
      {total > limit && (
        <div class="diff-more">
          <Button kind="quiet" onClick={() => setLimit(limit + MORE_LINES)}>
            Show {Math.min(MORE_LINES, total - limit)} more of {total} lines
          </Button>
        </div>
      )}
    </>
  );
}

interface LineBlock {
  /** The header of the hunk, above its first block. */
  header: string | null;
  lines: DiffLine[];
}

function splitIntoBlocks(hunks: DiffHunk[], limit: number): LineBlock[] {
  const blocks: LineBlock[] = [];
  let left = limit;
  for (const hunk of hunks) {
    for (let start = 0; start < hunk.lines.length && left > 0; start += LINES_PER_BLOCK) {
      const lines = hunk.lines.slice(start, start + Math.min(LINES_PER_BLOCK, left));
      blocks.push({ header: start === 0 ? hunk.header : null, lines });
      left -= lines.length;
    }
  }
  return blocks;
}

function moveBetweenLines(event: JSX.TargetedKeyboardEvent<HTMLTableElement>): void {
  const current = event.target as HTMLElement;
  if (!current.matches(".line-button") || event.ctrlKey || event.metaKey || event.altKey) {
    return;
  }
  const buttons = [...event.currentTarget.querySelectorAll<HTMLElement>(".line-button")];
  const index = buttons.indexOf(current);
  const targets: Record<string, number> = {
    ArrowDown: index + 1,
    ArrowUp: index - 1,
    PageDown: Math.min(index + 20, buttons.length - 1),
    PageUp: Math.max(index - 20, 0),
    Home: 0,
    End: buttons.length - 1,
  };
  const next = buttons[targets[event.key] ?? -1];
  if (next) {
    event.preventDefault();
    // One line of a file is in the order of Tab: the one that had the focus last.
    current.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }
}

interface DiffBlockProps {
  path: string;
  block: LineBlock;
  isFirst: boolean;
  comments: DraftComment[];
  draft: ReviewDraft | null;
}

function DiffBlock({ path, block, isFirst, comments, draft }: DiffBlockProps): JSX.Element {
  const own = block.lines.flatMap((line) => {
    const key = lineKey(findLineReference(path, line));
    return comments.filter((comment) => lineKey(comment) === key);
  });
  const changeKey = own.map(lineKey).join("\n");
  // Returning the same element makes Preact skip the lines that did not change.
  return useMemo(
    () => (
      <tbody>
        {block.header !== null && (
          <tr class="hunk-header">
            <td colSpan={3}>
              <VisibleText text={block.header} />
            </td>
          </tr>
        )}
        {block.lines.map((line, index) => (
          <DiffRow key={index} path={path} line={line} isFirst={isFirst && index === 0} comments={own} draft={draft} />
        ))}
      </tbody>
    ),
    [block, path, isFirst, changeKey, draft],
  );
}

interface DiffRowProps {
  path: string;
  line: DiffLine;
  isFirst: boolean;
  comments: DraftComment[];
  draft: ReviewDraft | null;
}

function DiffRow({ path, line, isFirst, comments, draft }: DiffRowProps): JSX.Element {
  const place = findLineReference(path, line);
  const key = lineKey(place);
  const comment = comments.find((other) => lineKey(other) === key);
  const openComment = (event: MouseEvent): void => {
    const target = event.target as HTMLElement;
    const isSelecting = !target.closest("button") && window.getSelection()?.isCollapsed === false;
    const isControl = target.closest("button:not(.line-button)") !== null;
    if (!isSelecting && !isControl) {
      draft?.openComment(place, line.text);
    }
  };
  return (
    <>
      <tr class={`diff-line ${line.kind}`} onClick={draft ? openComment : undefined}>
        <td>
          <div class="line-numbers">
            <LineNumber line={line} side="old" place={place} isFirst={isFirst} canComment={draft !== null} />
            <LineNumber line={line} side="new" place={place} isFirst={isFirst} canComment={draft !== null} />
          </div>
        </td>
        <td class="diff-marker">{MARKERS[line.kind]}</td>
        <td class="diff-text">
          <LineText text={line.text} />
        </td>
      </tr>
      {comment && draft && (
        <tr class="comment-row">
          <td colSpan={3}>
            <CommentBox comment={comment} draft={draft} />
          </td>
        </tr>
      )}
    </>
  );
}

interface LineNumberProps {
  line: DiffLine;
  side: DiffSide;
  place: LineReference;
  isFirst: boolean;
  canComment: boolean;
}

/** One of the two numbers of a line. The one that a comment names is a button. */
function LineNumber({ line, side, place, isFirst, canComment }: LineNumberProps) {
  const value = side === "old" ? line.oldLine : line.newLine;
  if (side !== place.side) return <span class="other-number">{value}</span>;
  if (!canComment) return <span>{value}</span>;
  const label = `Comment on ${side === "old" ? "removed line" : "line"} ${value}`;
  return (
    <button type="button" class="line-button" tabIndex={isFirst ? 0 : -1} aria-label={label}>
      {value}
    </button>
  );
}

function LineText({ text }: { text: string }): JSX.Element {
  const [showsAll, setShowsAll] = useState(false);
  if (showsAll || text.length <= SHORT_LINE_LENGTH) {
    return <VisibleText text={text} />;
  }
  return (
    <>
      <VisibleText text={text.slice(0, SHORT_LINE_LENGTH)} />…{" "}
      <button type="button" class="text-button" onClick={() => setShowsAll(true)}>
        show all {text.length} characters
      </button>
    </>
  );
}

interface CommentBoxProps {
  comment: DraftComment;
  draft: ReviewDraft;
}

/** A comment between the lines: a text, or a box while it is written. */
export function CommentBox({ comment, draft }: CommentBoxProps): JSX.Element {
  const box = useRef<HTMLTextAreaElement>(null);
  const isOpen = comment.isOpen.value;
  // At once, so that no key is lost.
  useLayoutEffect(() => {
    if (isOpen) {
      box.current?.focus();
    }
  }, [isOpen]);
  const close = (): void => {
    // The focus goes back to the line, so that the keyboard continues where it was.
    const line = box.current?.closest("tr")?.previousElementSibling?.querySelector<HTMLElement>(".line-button");
    draft.closeComment(comment);
    line?.focus();
  };
  if (!isOpen) {
    return (
      <div class="comment-box">
        <p class="comment-text">{comment.text.value}</p>
        <div class="row">
          <Button kind="quiet" onClick={() => (comment.isOpen.value = true)}>
            Edit
          </Button>
          <Button kind="quiet" onClick={() => draft.removeComment(comment)}>
            Delete
          </Button>
          <span class="muted">not sent yet</span>
        </div>
      </div>
    );
  }
  return (
    <div class="comment-box">
      <textarea
        ref={box}
        rows={3}
        aria-label={`Comment on line ${comment.line} of ${comment.path}`}
        placeholder="What should the agent change here?"
        value={comment.text.value}
        onInput={(event) => (comment.text.value = event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape" || (event.key === "Enter" && (event.ctrlKey || event.metaKey))) {
            event.preventDefault();
            event.stopPropagation();
            close();
          }
        }}
      />
      <div class="row">
        <Button kind="primary" onClick={close}>
          Keep comment
        </Button>
        <Button kind="quiet" onClick={() => draft.removeComment(comment)}>
          Delete
        </Button>
        <span class="muted">sent with the review</span>
      </div>
    </div>
  );
}
