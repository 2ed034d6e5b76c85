// A diff by file: the list of files, and the lines of each file behind a fold.

import { Fragment, type JSX } from "preact";
import { useId, useMemo, useState } from "preact/hooks";
import type { FileDiff, FileDiffStatus } from "../api_types";
import { formatCount, pluralize } from "../formats";
import { DiffTable } from "./diff_lines";
import { Button } from "./index";
import type { ReviewDraft } from "./review_draft";
import { VisibleName } from "./visible_text";

/** The changed lines that are open at first. */
const OPEN_LINES = 600;
/** The files that the list names at first. */
const SHORT_FILE_COUNT = 12;

const STATUS_NAMES: Record<FileDiffStatus, string> = {
  added: "added",
  symlink: "added link",
  modified: "modified",
  mode_changed: "mode changed",
  deleted: "deleted",
  renamed: "renamed",
  binary: "binary",
  too_large: "cut",
};

const STATUS_TONES: Record<FileDiffStatus, string> = {
  added: "good",
  symlink: "warning",
  modified: "faint",
  mode_changed: "warning",
  deleted: "bad",
  renamed: "name",
  binary: "faint",
  too_large: "warning",
};

interface DiffViewProps {
  files: FileDiff[];
  isCut: boolean;
  /** The command that shows the whole diff. */
  command: string;
  /** Absent if the viewer may not comment. */
  draft: ReviewDraft | null;
}

/** All files of a change. */
export function DiffView({ files, isCut, command, draft }: DiffViewProps): JSX.Element {
  const prefix = useId();
  const [folds, setFolds] = useState<Record<string, boolean>>({});
  const openAtFirst = useMemo(() => chooseOpenFiles(files), [files]);
  const isOpen = (file: FileDiff): boolean => folds[file.path] ?? openAtFirst.has(file.path);
  const setAll = (open: boolean): void => setFolds(Object.fromEntries(files.map((file) => [file.path, open])));
  const showFile = (index: number): void => {
    const file = files[index];
    if (file) {
      setFolds({ ...folds, [file.path]: true });
      const header = document.getElementById(`${prefix}-${index}`);
      header?.scrollIntoView({ block: "start" });
      header?.focus({ preventScroll: true });
    }
  };
  const added = files.reduce((sum, file) => sum + file.added, 0);
  const removed = files.reduce((sum, file) => sum + file.removed, 0);
  return (
    <section class="diff-view" aria-label="Files">
      <header class="diff-summary">
        <h2>{pluralize(files.length, "file")}</h2>
        <LineCounts added={added} removed={removed} />
        {files.length > 1 && (
          <span class="diff-folds">
            <Button kind="quiet" onClick={() => setAll(true)}>
              Unfold all
            </Button>
            <Button kind="quiet" onClick={() => setAll(false)}>
              Fold all
            </Button>
          </span>
        )}
      </header>
      {files.length > 1 && <FileList files={files} onSelect={showFile} />}
      {isCut && (
        <p class="diff-note">
          A part of the diff is left out. <code>{command}</code> shows all of it.
        </p>
      )}
      {files.map((file, index) => (
        <DiffFile
          key={file.path}
          id={`${prefix}-${index}`}
          file={file}
          isOpen={isOpen(file)}
          onToggle={() => setFolds({ ...folds, [file.path]: !isOpen(file) })}
          command={command}
          draft={draft}
        />
      ))}
    </section>
  );
}

/** Chooses the first files with text until there are enough lines to read. */
function chooseOpenFiles(files: FileDiff[]): Set<string> {
  const chosen = new Set<string>();
  let lines = 0;
  for (const file of files) {
    const size = file.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);
    if (file.status !== "deleted" && size > 0 && (chosen.size === 0 || lines + size <= OPEN_LINES)) {
      chosen.add(file.path);
      lines += size;
    }
  }
  return chosen;
}

function LineCounts({ added, removed }: { added: number; removed: number }): JSX.Element {
  if (added === 0 && removed === 0) return <span />;
  return (
    <span class="line-counts">
      <span class="tone-good">
        <span class="visually-hidden">{formatCount(added)} lines added</span>
        <span aria-hidden="true">+{formatCount(added)}</span>
      </span>{" "}
      <span class="tone-bad">
        <span class="visually-hidden">{formatCount(removed)} lines removed</span>
        <span aria-hidden="true">−{formatCount(removed)}</span>
      </span>
    </span>
  );
}

/** The name of a file, after the former name of a renamed one. */
function FileName({ file }: { file: FileDiff }): JSX.Element {
  if (file.oldPath === null) return <FilePath path={file.path} />;
  return (
    <>
      <FilePath path={file.oldPath} />
      <span aria-hidden="true"> → </span>
      <span class="visually-hidden"> is now </span>
      <FilePath path={file.path} />
    </>
  );
}

function FilePath({ path }: { path: string }): JSX.Element {
  const end = path.lastIndexOf("/") + 1;
  return (
    <bdi class="file-path">
      <span class="file-directory">
        {path
          .slice(0, end)
          .split(/(?<=\/)/)
          .map((directory, index) => (
            <Fragment key={index}>
              <VisibleName text={directory} />
              <wbr />
            </Fragment>
          ))}
      </span>
      <VisibleName text={path.slice(end)} />
    </bdi>
  );
}

interface FileListProps {
  files: FileDiff[];
  onSelect: (index: number) => void;
}

function FileList({ files, onSelect }: FileListProps): JSX.Element {
  const [showsAll, setShowsAll] = useState(false);
  const shown = showsAll ? files : files.slice(0, SHORT_FILE_COUNT);
  return (
    <nav class="file-list" aria-label="Files of the change">
      <ul>
        {shown.map((file, index) => (
          <li key={file.path}>
            <button type="button" onClick={() => onSelect(index)}>
              <FileName file={file} />
              {file.status !== "modified" && <span class={`file-status tone-${STATUS_TONES[file.status]}`}>{STATUS_NAMES[file.status]}</span>}
              <LineCounts added={file.added} removed={file.removed} />
            </button>
          </li>
        ))}
      </ul>
      {files.length > SHORT_FILE_COUNT && (
        <button type="button" class="text-button" onClick={() => setShowsAll(!showsAll)}>
          {showsAll ? "Show fewer files" : `Show all ${files.length} files`}
        </button>
      )}
    </nav>
  );
}

interface DiffFileProps {
  id: string;
  file: FileDiff;
  isOpen: boolean;
  onToggle: () => void;
  command: string;
  draft: ReviewDraft | null;
}

function DiffFile({ id, file, isOpen, onToggle, command, draft }: DiffFileProps): JSX.Element {
  const comments = draft?.comments.value.filter((comment) => comment.path === file.path).length ?? 0;
  return (
    <article class="diff-file" aria-labelledby={id}>
      <h3 class="diff-file-header">
        <button type="button" id={id} aria-expanded={isOpen} onClick={onToggle}>
          <span class="fold-arrow" aria-hidden="true" />
          <span class="file-title">
            <FileName file={file} />
            <span class={`file-status tone-${STATUS_TONES[file.status]}`}>{STATUS_NAMES[file.status]}</span>
            {comments > 0 && <span class="comment-count">{pluralize(comments, "comment")}</span>}
          </span>
          <LineCounts added={file.added} removed={file.removed} />
        </button>
      </h3>
      {isOpen && <FileContents file={file} command={command} draft={draft} />}
    </article>
  );
}

function FileContents({ file, command, draft }: Pick<DiffFileProps, "file" | "command" | "draft">): JSX.Element {
  const note = describeMissingLines(file);
  return (
    <div class="diff-file-body">
      {file.hunks.length > 0 && <DiffTable file={file} draft={draft} />}
      {note && (
        <p class="diff-note">
          {note}
          {file.status === "too_large" && (
            <>
              {" "}
              <code>{command}</code> shows it.
            </>
          )}
        </p>
      )}
    </div>
  );
}

function describeMissingLines(file: FileDiff): string | null {
  if (file.status === "too_large") {
    return file.hunks.length > 0 ? "The rest of this file is left out." : "This file is too large for the page.";
  }
  if (file.hunks.length > 0) {
    return null;
  }
  switch (file.status) {
    case "binary":
      return "A binary file: its contents are not shown.";
    case "renamed":
      return "The file has a new name and the same contents.";
    case "added":
      return "A new, empty file.";
    default:
      return "No line has changed: only the permission to run the file is different.";
  }
}
